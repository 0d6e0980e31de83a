"""Operations of a warp without ``.sync``, as old PTX has them: a warp is 32 threads whatever the rows of the block."""

from __future__ import annotations

import numpy as np
import pytest

from cupola import Device, LaunchConfig, ObjectCode, launch
from tests.cpu.engine.kernels import copy_to_host

PTX = """
.version 6.0
.target sm_60
.address_size 64
.visible .entry k(.param .u64 out)
{{
    .reg .b64 %out, %i;
    .reg .b32 %x, %y, %n, %r;
    .reg .pred %p;
    ld.param.u64 %out, [out];
    mov.u32 %x, %tid.x;
    mov.u32 %y, %tid.y;
    mov.u32 %n, %ntid.x;
    mad.lo.u32 %x, %y, %n, %x;
    setp.ge.u32 %p, %x, 8;
    {code}
    mul.wide.u32 %i, %x, 4;
    add.u64 %out, %out, %i;
    st.global.u32 [%out], %r;
    ret;
}}
"""
THREADS = np.arange(64)
CASES = {
    "vote": ("vote.ballot.b32 %r, %p;", np.where(THREADS < 32, 0xFFFFFF00, 0xFFFFFFFF)),
    "any": ("vote.any.pred %p, %p; selp.u32 %r, 1, 0, %p;", np.ones(64)),
    "shuffle": ("shfl.bfly.b32 %r, %x, 16, 31;", THREADS ^ 16),
    "active": ("activemask.b32 %r;", np.full(64, 0xFFFFFFFF)),
}


@pytest.mark.cpu_only
@pytest.mark.parametrize("block", [(64, 1), (16, 4), (8, 8)])
@pytest.mark.parametrize("case", CASES)
def test_a_warp_is_32_threads(case: str, block: tuple[int, int]) -> None:
    code, expected = CASES[case]
    ptx = PTX.format(code=code)
    if case == "active":
        ptx = ptx.replace(".version 6.0", ".version 6.2")
    device = Device()
    device.set_current()
    stream = device.create_stream()
    out = device.allocate(256, stream=stream)
    kernel = ObjectCode.from_ptx(ptx.encode()).get_kernel("k")
    launch(stream, LaunchConfig(grid=1, block=block), kernel, out)
    found = np.zeros(64, np.uint32)
    copy_to_host(found, out, stream)
    stream.sync()
    np.testing.assert_array_equal(found, expected.astype(np.uint32))
