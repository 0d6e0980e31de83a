"""Copies, packing and unpacking."""

from __future__ import annotations

import random

import pytest

from tests.ptx.harness import verify
from tests.ptx.oracle import integers

TYPES = ["b16", "u16", "s16", "b32", "u32", "s32", "b64", "u64", "s64", "f32", "f64"]


@pytest.mark.parametrize("type", TYPES)
def test_copy(type: str) -> None:
    verify(f"mov.{type} d, a", [integers(int(type[1:]))], lambda x: x)


def test_copy_of_a_predicate() -> None:
    verify("mov.pred d, a", [[0, 1]], lambda x: x)


def test_copy_of_128_bits() -> None:
    verify("mov.b128 d, a", [[random.Random(1).getrandbits(128), (1 << 127) | 1]], lambda x: x)


SHAPES = [(16, 2), (32, 2), (64, 2), (64, 4), (32, 4), (128, 2), (128, 4)]


@pytest.mark.parametrize(("bits", "parts"), SHAPES)
def test_pack_and_unpack(bits: int, parts: int) -> None:
    width = bits // parts
    names = ", ".join(f"a{i}" for i in range(parts))
    rng = random.Random(bits)
    columns = [[rng.getrandbits(width) for _ in range(5)] + [0, (1 << width) - 1] for _ in range(parts)]

    def pack(*values: int) -> int:
        return sum(v << width * i for i, v in enumerate(values))

    verify(f"mov.b{bits} d, {{{names}}}", columns, pack)
    wholes = [rng.getrandbits(bits) for _ in range(8)]
    mask = (1 << width) - 1
    verify(f"mov.b{bits} {{{names}}}, d", [wholes], lambda x: [x >> width * i & mask for i in range(parts)])


def test_unpack_with_sink() -> None:
    verify("mov.b64 {_, h}, d", [[0x123456789ABCDEF0]], lambda x: (x & 0xFFFFFFFF, x >> 32))
