"""A kernel of Triton for the debugger: `test_programs.py` says where it stops."""

# mypy: ignore-errors

from __future__ import annotations

import triton
import triton.language as tl
from arrays import agree, normal, zeros


@triton.jit
def scaled(v, factor):
    return v * factor + 1


@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + i, i < n)
    total = scaled(a, 2.0) + tl.load(y + i, i < n)
    tl.store(out + i, total, i < n)


x, y, out = normal(1000), normal(1000), zeros(1000)
add_kernel[(8,)](x, y, out, 1000, BLOCK=128)
agree(out, x.host * 2 + 1 + y.host, 1e-5)
