"""A program with Warp, which has NVIDIA's runtime inside: the CPU device says so.

usage: cupola run --device cpu tests/ecosystem/warp_programs.py [NAME ...]
"""

# mypy: ignore-errors

from __future__ import annotations

import sys

import warp


def zeros():
    assert warp.zeros(3, dtype=float, device="cuda:0").numpy().tolist() == [0, 0, 0]


PROGRAMS = {f.__name__: f for f in (zeros,)}

if __name__ == "__main__":
    for name in sys.argv[1:] or PROGRAMS:
        PROGRAMS[name]()
