"""Helpers are told which accesses are volatile, relaxed or stronger: they do each element of those by one access."""

from __future__ import annotations

import re

import pytest

from cupola.cpu.compiler.emit import bodies
from cupola.cpu.compiler.modules import load_image
from cupola.cpu.compiler.objects import abi

pytestmark = pytest.mark.cpu_only

KERNEL = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry kernel(.param .u64 at)
{{
    .reg .b64 %rd<9>;
    .reg .b32 %r<9>;
    ld.param.u64 %rd1, [at];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd3, %rd1, %rd2;
    {access};
    st.shared.u32 [0], %r1;
    ret;
}}
"""


@pytest.mark.parametrize(
    ("access", "helper"),
    [("st{}.global.u32 [%rd3], %r1", "cupola_store_line"), ("ld{}.global.u32 %r2, [%rd3]", "cupola_load_line")],
)
@pytest.mark.parametrize("strength", ["", ".volatile", ".relaxed.gpu"])
def test_sites(access: str, helper: str, strength: str) -> None:
    module = load_image(KERNEL.format(access=access.format(strength)).encode())
    ir = bodies.emit_body(module.facts(0, (32, 1, 1))).ir
    (packed,) = re.findall(rf"call [^\n]*@{helper}\([^\n]*? i64 (\d+), i32", ir)
    assert bool(int(packed) >> 56 & abi.SITE_STRONG) == bool(strength)
