"""The inputs of recorded forms: sets of values that are worth trying, and the rows made of them.

Everything follows from the names of the sets and the number of the column, so that a row is the same on every machine
and forever: what a GPU gave for it was recorded. Change nothing here without recording again.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

from tests.ptx.oracle import BF16, F16, F32, F64, Format, floats, integers

Draw = Callable[[random.Random], int]


@dataclass(frozen=True, slots=True)
class Set:
    """Values for a register of ``bits`` bits (1: a predicate), and the format in which results are compared."""

    bits: int
    draw: Draw
    format: Format | None = None
    lanes: int = 1
    """Numbers in a register: 2 for packed pairs."""


def _of(values: list[int]) -> Draw:
    return lambda rng: rng.choice(values)


def _integers(bits: int) -> Draw:
    edges = integers(bits)
    return lambda rng: rng.choice(edges) if rng.random() < 0.7 else rng.getrandbits(rng.randrange(bits) + 1)


def _bits(bits: int) -> Draw:
    return lambda rng: rng.getrandbits(bits)


def _pair(draw: Draw, bits: int, count: int = 2) -> Draw:
    return lambda rng: sum(draw(rng) << bits * i for i in range(count))


def _between(f: Format, low: float, high: float) -> Draw:
    return lambda rng: f.round(Fraction(rng.uniform(low, high)))


def _whole(f: Format, low: int, high: int) -> Draw:
    values = [f.round(Fraction(number)) for number in range(low, high + 1)]
    return lambda rng: values[rng.randint(low, high) - low]


def _mixed(*draws: Draw) -> Draw:
    return lambda rng: rng.choice(draws)(rng)


def _narrow(f: Format) -> list[int]:
    """Numbers of formats with one to three bits of mantissa, what is halfway between them, and their neighbors."""
    found = []
    for exponent in (*range(-18, 18), 3, 3):
        for eighths in range(16, 33):
            pattern = f.round(Fraction(eighths, 16) * Fraction(2) ** exponent)
            found += [pattern, pattern + 1, max(pattern - 1, 0), pattern | f.sign_bit]
    return found


_EDGES = {f: floats(f) for f in (F16, BF16, F32, F64)}

SETS: dict[str, Set] = {
    "pred": Set(1, _bits(1)),
    # Integers: edges of the signed and the unsigned range, and numbers of all lengths.
    **{f"{kind}{bits}": Set(bits, _integers(bits)) for kind in "us" for bits in (8, 16, 32, 64)},
    **{f"{kind}16x2": Set(32, _pair(_integers(16), 16)) for kind in "us"},
    **{f"{kind}8x4": Set(32, _pair(_integers(8), 8, 4)) for kind in "us"},
    # Patterns without a meaning, and results that count to the bit.
    **{f"b{bits}": Set(bits, _bits(bits)) for bits in (8, 16, 32, 64, 128)},
    # Floating numbers: zeros, denormals, infinities, NaNs with payloads, ties.
    "f16": Set(16, _of(_EDGES[F16]), F16),
    "bf16": Set(16, _of(_EDGES[BF16]), BF16),
    "f32": Set(32, _of(_EDGES[F32]), F32),
    "f64": Set(64, _of(_EDGES[F64]), F64),
    "f16x2": Set(32, _pair(_of(_EDGES[F16]), 16), F16, 2),
    "bf16x2": Set(32, _pair(_of(_EDGES[BF16]), 16), BF16, 2),
    "f32x2": Set(64, _pair(_of(_EDGES[F32]), 32), F32, 2),
    # Floating numbers without surprises, whose sums and products are exact: matrices.
    "whole_f16": Set(16, _whole(F16, -8, 8), F16),
    "whole_f16x2": Set(32, _pair(_whole(F16, -8, 8), 16), F16, 2),
    "whole_bf16x2": Set(32, _pair(_whole(BF16, -8, 8), 16), BF16, 2),
    "whole_f32": Set(32, _whole(F32, -8, 8), F32),
    "whole_f64": Set(64, _whole(F64, -8, 8), F64),
    "whole_e4m3x4": Set(32, _pair(_of([0x00, 0x38, 0x40, 0x44, 0x48, 0xB8, 0xC0, 0xC4]), 8, 4)),
    "whole_e5m2x4": Set(32, _pair(_of([0x00, 0x3C, 0x40, 0x42, 0x44, 0xBC, 0xC0, 0xC2]), 8, 4)),
    # Indices of the elements that are stored of a sparse matrix: two of four, and one of two.
    "two_of_four": Set(32, _pair(_of([0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b1110]), 4, 8)),
    "one_of_two": Set(32, _pair(_of([0b0100, 0b1110]), 4, 8)),
    "unit_f16x2": Set(32, _pair(_between(F16, -1, 1), 16), F16, 2),
    "unit_bf16x2": Set(32, _pair(_between(BF16, -1, 1), 16), BF16, 2),
    "unit_f32": Set(32, _between(F32, -1, 1), F32),
    "unit_f64": Set(64, _between(F64, -1, 1), F64),
    # Floating numbers for one purpose.
    "angle": Set(32, _mixed(_between(F32, -6.28, 6.28), _of([0, 1 << 31, 0x7F800000, 0xFF800000, 0x7FC00001])), F32),
    "near_one": Set(32, _between(F32, 0.4, 2.5), F32),
    "in_reach": Set(32, _mixed(_between(F32, -300.0, 300.0), _between(F32, -2e10, 2e10), _of(_EDGES[F32])), F32),
    "wide_f64": Set(64, _mixed(_between(F64, -300.0, 300.0), _between(F64, -2e19, 2e19), _of(_EDGES[F64])), F64),
    # Floating numbers around those of narrow formats, and pairs of the powers of two that scale these.
    "narrow_f32": Set(32, _of(_narrow(F32)), F32),
    "narrow_f16x2": Set(32, _pair(_mixed(_of(_narrow(F16)), _of(_EDGES[F16])), 16), F16, 2),
    "narrow_bf16x2": Set(32, _pair(_mixed(_of(_narrow(BF16)), _of(_EDGES[BF16])), 16), BF16, 2),
    "scales": Set(16, _pair(_mixed(_of([0, 1, 126, 127, 128, 253, 254, 255]), lambda rng: rng.randint(110, 145)), 8)),
    # Small integers: counts beyond the width, positions in a word, selectors, lanes.
    "shift": Set(32, _mixed(_of([0, 1, 15, 16, 31, 32, 33, 63, 64, 65, 255, 256, 0xFFFFFFFF]), _bits(6))),
    "byte": Set(32, _bits(8)),
    "few": Set(32, _bits(2)),
    "lane": Set(32, _bits(5)),
    "selector": Set(32, _mixed(_bits(16), _bits(32))),
    # Places in textures and surfaces of 16 x 8 x 4 texels and 4 layers (`objects.py`), some of them outside.
    # Coordinates that are floats are apart from where texels meet, and exact when they are parts of the extents.
    "texel": Set(32, lambda rng: F32.round(Fraction(8 * rng.randint(-4, 19) + rng.choice([1, 2, 3, 5, 6, 7]), 8)), F32),
    "part": Set(
        32, lambda rng: F32.round(Fraction(8 * rng.randint(-20, 36) + rng.choice([1, 2, 3, 5, 6, 7]), 128)), F32
    ),
    "fine_texel": Set(32, lambda rng: F32.round(Fraction(rng.randint(0, 16384), 1024)), F32),
    "place": Set(32, lambda rng: rng.randint(-3, 18) & 0xFFFFFFFF),
    "inside": Set(32, _bits(2)),
    "layer": Set(32, lambda rng: rng.choice([0, 1, 2, 3, 3, 4, 100, 0xFFFFFFFF])),
    "level": Set(32, lambda rng: F32.round(Fraction(rng.randint(-40, 160), 32)), F32),
    "slope": Set(32, lambda rng: F32.round(Fraction(rng.choice([-5, -1, 0, 1, 2, 3, 7, 12, 20]), 64)), F32),
    "direction": Set(32, lambda rng: F32.round(Fraction(2 * rng.randint(-500, 499) + 1, 1000)), F32),
    "quads": Set(32, lambda rng: 16 * rng.randint(-3, 18) & 0xFFFFFFFF),
}
"""What may stand after ``%name:``."""


def _value(before: tuple[str, ...], row: list[int], type: str, rng: random.Random) -> int:
    """One value; now and then that of another column of the same type, for comparisons and cancellation."""
    same = [value for other, value in zip(before, row, strict=True) if other == type] if type in before else []
    return rng.choice(same) if same and rng.random() < 0.12 else SETS[type].draw(rng)


@cache
def table(types: tuple[str, ...], count: int) -> tuple[tuple[int, ...], ...]:
    """``count`` rows of values of some types. Many forms have the same types."""
    rng = random.Random("/".join(types))
    made = []
    for _ in range(count):
        row: list[int] = []
        for column, type in enumerate(types):
            row.append(_value(types[:column], row, type, rng))
        made.append(tuple(row))
    return tuple(made)


def rows(columns: dict[str, str], count: int) -> list[dict[str, int]]:
    """``count`` rows of values for registers whose types are given by name."""
    return [dict(zip(columns, values, strict=True)) for values in table(tuple(columns.values()), count)]


def memory(size: int, name: str) -> bytes:
    """What fills the memory of a space."""
    return random.Random(name).randbytes(size)
