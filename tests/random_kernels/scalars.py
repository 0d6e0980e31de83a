"""The scalar types of random kernels, their nasty values, and the generator of random numbers behind everything.

The numbers come from splitmix64, written out here: a seed must give the same kernel on every version of Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

Lanes = npt.NDArray[np.generic]
"""One value for each thread of the grid."""

_WORD = (1 << 64) - 1
T = TypeVar("T")


@dataclass(frozen=True)
class Scalar:
    """A C++ type of the generated kernels; ``name`` is its typedef there."""

    name: str
    bits: int
    kind: str
    """One of ``"unsigned"``, ``"signed"``, ``"float"`` and ``"bool"``."""

    @property
    def dtype(self) -> np.dtype[np.generic]:
        letter = {"unsigned": "u", "signed": "i", "float": "f", "bool": "b"}[self.kind]
        return np.dtype(f"{letter}{max(1, self.bits // 8)}")

    def __repr__(self) -> str:
        return self.name


PRED = Scalar("bool", 1, "bool")
U8, U16, U32, U64 = (Scalar(f"u{bits}", bits, "unsigned") for bits in (8, 16, 32, 64))
I8, I16, I32, I64 = (Scalar(f"i{bits}", bits, "signed") for bits in (8, 16, 32, 64))
F16, F32, F64 = (Scalar(f"f{bits}", bits, "float") for bits in (16, 32, 64))
INTEGERS = (U8, I8, U16, I16, U32, I32, U64, I64)
FLOATS = (F16, F32, F64)

_MANTISSA = {16: 10, 32: 23, 64: 52}


class Random:
    """Numbers from a seed (splitmix64)."""

    def __init__(self, seed: int):
        self._state = seed * 0xD1342543DE82EF95 & _WORD

    def word(self) -> int:
        self._state = (self._state + 0x9E3779B97F4A7C15) & _WORD
        z = self._state
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & _WORD
        z = (z ^ z >> 27) * 0x94D049BB133111EB & _WORD
        return z ^ z >> 31

    def below(self, limit: int) -> int:
        return self.word() % limit

    def between(self, low: int, high: int) -> int:
        """From ``low`` to ``high``, both possible."""
        return low + self.below(high - low + 1)

    def chance(self, percent: int) -> bool:
        return self.below(100) < percent

    def choice(self, items: Sequence[T]) -> T:
        return items[self.below(len(items))]

    def weighted(self, items: Sequence[tuple[int, T]]) -> T:
        left = self.below(sum(weight for weight, _ in items))
        for weight, item in items:
            left -= weight
            if left < 0:
                return item
        raise AssertionError("weights are positive")

    def pattern(self, scalar: Scalar) -> int:
        """Bits of a value that is likely to be at the edge of something."""
        bits = scalar.bits
        full = (1 << bits) - 1
        if scalar.kind == "float":
            mantissa = _MANTISSA[bits]
            exponents = (full >> 1) - ((1 << mantissa) - 1)
            one = (exponents >> 1) & ~((1 << mantissa) - 1) & exponents
            special = (0, exponents, exponents | 1 << (mantissa - 1), 1, (1 << mantissa) - 1, 1 << mantissa)
            match self.below(8):
                case 0:
                    value = self.choice(special)
                case 1:
                    value = self.word() & full >> 1
                case 2:
                    value = exponents - 1 - self.below(4)
                case 3:
                    value = self.word() & ((1 << mantissa) - 1)
                case _:
                    value = one + (self.between(-6, 6) << mantissa) + (self.word() & ((1 << mantissa) - 1))
            if value & ~full >> 1 or value & exponents == exponents:  # infinities; NaNs quiet, of one sign
                value = exponents | (1 << (mantissa - 1) if value & ((1 << mantissa) - 1) else 0)
                return value if value != exponents or self.chance(50) else value | 1 << (bits - 1)
            return value | self.below(2) << (bits - 1)
        match self.below(6):
            case 0:
                return self.choice((0, 1, full, full >> 1, (full >> 1) + 1, 2, full - 1))
            case 1:
                return self.below(bits + 2) & full
            case 2:
                return 1 << self.below(bits)
            case 3:
                return ((1 << self.below(bits)) + self.between(-2, 2)) & full
            case _:
                return self.word() & full


def words(seed: int, count: int) -> npt.NDArray[np.uint64]:
    """Many random words at once."""
    state = np.uint64(seed * 0xD1342543DE82EF95 & _WORD) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(
        0x9E3779B97F4A7C15
    )
    z = (state ^ state >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ z >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return z ^ z >> np.uint64(31)
