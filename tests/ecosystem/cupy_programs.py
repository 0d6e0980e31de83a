"""A program with CuPy, which has NVIDIA's runtime inside: the CPU device says so.

usage: cupola run --device cpu --no-cupy tests/ecosystem/cupy_programs.py [NAME ...]
"""

# mypy: ignore-errors

from __future__ import annotations

import sys

import cupy


def add():
    assert (cupy.arange(3) + 1).get().tolist() == [1, 2, 3]


PROGRAMS = {f.__name__: f for f in (add,)}

if __name__ == "__main__":
    for name in sys.argv[1:] or PROGRAMS:
        PROGRAMS[name]()
