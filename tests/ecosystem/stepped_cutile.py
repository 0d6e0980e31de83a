"""A kernel of cuTile for the debugger: `test_programs.py` says where it stops."""

# mypy: ignore-errors

from __future__ import annotations

import cuda.tile as ct
from arrays import agree, normal, stream, zeros


def scaled(t):
    return t * 2 + 1


@ct.kernel
def add_kernel(a, b, out, T: ct.Constant[int]):
    i = ct.bid(0)
    x = ct.load(a, index=(i,), shape=(T,))
    total = scaled(x) + ct.load(b, index=(i,), shape=(T,))
    ct.store(out, index=(i,), tile=total)


a, b, out = normal(1000), normal(1000), zeros(1000)
ct.launch(int(stream.handle), (8, 1, 1), add_kernel, (a, b, out, 128))
agree(out, a.host * 2 + 1 + b.host, 1e-5)
