"""fma.oob: the NaN that copies of tensors write outside of them gives zero. Results are those of an H200."""

from __future__ import annotations

import numpy as np
import pytest

from cupola import Device, ObjectCode
from tests.cpu.engine.kernels import run_kernel

PTX = """
.version 8.1
.target sm_90
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d)
{{
    .reg .b64 %a, %b, %c, %d, %i;
    .reg .b32 %t;
    .reg .b{bits} %x, %y, %z;
    ld.param.u64 %a, [a];
    ld.param.u64 %b, [b];
    ld.param.u64 %c, [c];
    ld.param.u64 %d, [d];
    mov.u32 %t, %tid.x;
    mul.wide.u32 %i, %t, {bytes};
    add.u64 %a, %a, %i;
    add.u64 %b, %b, %i;
    add.u64 %c, %c, %i;
    add.u64 %d, %d, %i;
    ld.global.b{bits} %x, [%a];
    ld.global.b{bits} %y, [%b];
    ld.global.b{bits} %z, [%c];
    {instruction} %x, %x, %y, %z;
    st.global.b{bits} [%d], %x;
    ret;
}}
"""

OUTSIDE = 0x7FF7


@pytest.mark.parametrize(
    ("format", "one", "nan", "infinity"), [("f16", 0x3C00, 0x7E00, 0x7C00), ("bf16", 0x3F80, 0x7FC0, 0x7F80)]
)
@pytest.mark.parametrize("relu", ["", ".relu"])
@pytest.mark.parametrize("packed", ["", "x2"])
def test_fma(format: str, one: int, nan: int, infinity: int, relu: str, packed: str) -> None:
    minus = one | 0x8000
    cases = [  # a, b, c, a * b + c
        (OUTSIDE, nan, one, 0),
        (nan, OUTSIDE, one, 0),
        (OUTSIDE, one, nan, 0),
        (OUTSIDE, infinity, one, 0),
        (OUTSIDE, OUTSIDE, OUTSIDE, 0),
        (OUTSIDE | 0x8000, one, minus, 0),
        (one, one, OUTSIDE, 0x7FFF),
        (nan, one, OUTSIDE, 0x7FFF),
        (one, minus, one, 0),
        (minus, minus, nan, 0x7FFF),
        (minus, one, 0, 0 if relu else minus),
        (OUTSIDE - 1, one, one, 0x7FFF),
    ]
    columns = [np.array(column, np.uint16) for column in zip(*cases, strict=True)]
    size = 4 if packed else 2
    text = PTX.format(bits=8 * size, bytes=size, instruction=f"fma.rn.oob{relu}.{format}{packed}")
    Device(0).set_current()
    kernel = ObjectCode.from_ptx(text.encode()).get_kernel("k")
    result = np.zeros_like(columns[0])
    run_kernel(kernel, 1, result.nbytes // size, *columns[:3], result)
    assert [hex(x) for x in result] == [hex(x) for x in columns[3]]
