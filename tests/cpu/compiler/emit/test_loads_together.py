"""Which loads of a block are done together: no load comes before one that looks for what other threads write."""

from __future__ import annotations

import pytest

from cupola.cpu.compiler.emit import bodies
from cupola.cpu.compiler.modules import load_image
from cupola.cpu.compiler.objects import machine

pytestmark = pytest.mark.cpu_only

# Each lane loads four neighboring numbers from a place that it reads from memory.
KERNEL = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry kernel(.param .u64 from, .param .u64 to)
{{
    .reg .b64 %rd<9>;
    .reg .b32 %r<9>;
    .reg .pred %p;
    ld.param.u64 %rd1, [from];
    ld.param.u64 %rd2, [to];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd3, %r1, 8;
    add.s64 %rd4, %rd1, %rd3;
    ld.global.u64 %rd5, [%rd4];
    setp.ne.u32 %p, %r1, 77;
    ld.global.u32 %r2, [{address}];
    ld.global.u32 %r3, [{address}+4];
    {between}
    ld.global.u32 %r4, [{address}+8];
    ld.global.u32 %r5, [{address}+12];
    add.s32 %r2, %r2, %r3;
    add.s32 %r4, %r4, %r5;
    add.s32 %r2, %r2, %r4;
    st.global.u32 [%rd2], %r2;
    ret;
}}
"""
STRONG = ["ld.acquire.gpu.global.u32 %r6, [%rd1];", "@%p ld.volatile.global.u32 %r6, [%rd1];", "membar.gl;"]


def written(address: str, between: str) -> str:
    module = load_image(KERNEL.format(address=address, between=between).encode())
    return bodies.emit_body(module.facts(0, (32, 1, 1))).ir


@pytest.mark.parametrize("between", STRONG)
def test_runs(between: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "gathers", lambda: True)
    assert "@cupola.run" in written("%rd5", "")
    assert "@cupola.run" not in written("%rd5", between)


@pytest.mark.parametrize("between", STRONG)
def test_places_at_constant_distances(between: str) -> None:
    assert "i32 4, ptr %" in written("%rd1", "").partition("@cupola_load_places(")[2].partition("\n")[0]
    assert "i32 2, ptr %" in written("%rd1", between).partition("@cupola_load_places(")[2].partition("\n")[0]
