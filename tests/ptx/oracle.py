"""What instructions should give, computed in exact arithmetic: Python integers and fractions, no floating point."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import isqrt


def signed(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def unsigned(value: int, bits: int) -> int:
    return value & ((1 << bits) - 1)


def clamp(value: int, low: int, high: int) -> int:
    return max(low, min(high, value))


@dataclass(frozen=True)
class Format:
    """A binary floating format: total bits and explicit mantissa bits."""

    bits: int
    mantissa: int
    nan: int | None

    @property
    def exponent(self) -> int:
        return self.bits - self.mantissa - 1

    @property
    def bias(self) -> int:
        return (1 << (self.exponent - 1)) - 1

    @property
    def sign_bit(self) -> int:
        return 1 << (self.bits - 1)

    @property
    def infinity(self) -> int:
        return ((1 << self.exponent) - 1) << self.mantissa

    def is_nan(self, x: int) -> bool:
        return x & ~self.sign_bit > self.infinity

    def is_infinite(self, x: int) -> bool:
        return x & ~self.sign_bit == self.infinity

    def is_negative(self, x: int) -> bool:
        return bool(x & self.sign_bit)

    def is_subnormal(self, x: int) -> bool:
        return 0 < x & ~self.sign_bit < 1 << self.mantissa

    def is_zero(self, x: int) -> bool:
        return x & ~self.sign_bit == 0

    def value(self, x: int) -> Fraction:
        """The number with the pattern ``x``, which must be finite."""
        exponent = x >> self.mantissa & ((1 << self.exponent) - 1)
        fraction = x & ((1 << self.mantissa) - 1)
        if exponent:
            fraction |= 1 << self.mantissa
        else:
            exponent = 1
        size = Fraction(fraction) * Fraction(2) ** (exponent - self.bias - self.mantissa)
        return -size if self.is_negative(x) else size

    def round(self, value: Fraction, mode: str = "rn", zero: int = 0) -> int:
        """The pattern nearest to ``value`` in a rounding mode; ``zero`` is the pattern for an exact zero."""
        if value == 0:
            return zero
        sign = self.sign_bit if value < 0 else 0
        size = abs(value)
        # The exponent of the leading bit, not below that of the smallest normal number.
        exponent = size.numerator.bit_length() - size.denominator.bit_length()
        if Fraction(2) ** exponent > size:
            exponent -= 1
        exponent = max(exponent, 1 - self.bias)
        scaled = size / Fraction(2) ** (exponent - self.mantissa)
        whole, rest = divmod(scaled.numerator, scaled.denominator)
        remainder = Fraction(rest, scaled.denominator)
        up = {
            "rn": remainder > Fraction(1, 2) or (remainder == Fraction(1, 2) and whole & 1),
            "rna": remainder >= Fraction(1, 2),
            "rz": False,
            "rm": bool(sign) and remainder > 0,
            "rp": not sign and remainder > 0,
        }[mode]
        whole += bool(up)
        pattern = ((exponent + self.bias - 1) << self.mantissa) + whole
        if pattern >= self.infinity:
            toward_zero = mode == "rz" or (mode == "rm" and not sign) or (mode == "rp" and sign)
            pattern = self.infinity - 1 if toward_zero else self.infinity
        return sign | pattern


F16 = Format(16, 10, 0x7FFF)
BF16 = Format(16, 7, 0x7FFF)
F32 = Format(32, 23, 0x7FFFFFFF)
F64 = Format(64, 52, None)
FORMATS = {"f16": F16, "bf16": BF16, "f32": F32, "f64": F64}

NAN = -1
"""Stands for any NaN, where the pattern is not defined."""


def flush(f: Format, x: int) -> int:
    return x & f.sign_bit if f.is_subnormal(x) else x


def nan_of(f: Format) -> int:
    return NAN if f.nan is None else f.nan


def fma(f: Format, x: int, y: int, z: int, mode: str = "rn") -> int:
    if f.is_nan(x) or f.is_nan(y) or f.is_nan(z):
        return nan_of(f)
    sign = (x ^ y) & f.sign_bit
    if f.is_infinite(x) or f.is_infinite(y):
        if f.is_zero(x) or f.is_zero(y) or (f.is_infinite(z) and z & f.sign_bit != sign):
            return nan_of(f)
        return sign | f.infinity
    if f.is_infinite(z):
        return z
    exact = f.value(x) * f.value(y) + f.value(z)
    # An exact zero out of operands of the same sign keeps it; otherwise it is +0, but -0 when rounding down.
    negative = f.sign_bit if mode == "rm" else 0
    zero = sign if f.value(x) * f.value(y) == 0 and f.is_zero(z) and z == sign else negative
    return f.round(exact, mode, zero)


def add(f: Format, x: int, y: int, mode: str = "rn") -> int:
    return fma(f, x, f.bias << f.mantissa, y, mode)


def sub(f: Format, x: int, y: int, mode: str = "rn") -> int:
    return nan_of(f) if f.is_nan(y) else add(f, x, y ^ f.sign_bit, mode)


def mul(f: Format, x: int, y: int, mode: str = "rn") -> int:
    if f.is_nan(x) or f.is_nan(y):
        return nan_of(f)
    sign = (x ^ y) & f.sign_bit
    if f.is_infinite(x) or f.is_infinite(y):
        return nan_of(f) if f.is_zero(x) or f.is_zero(y) else sign | f.infinity
    return f.round(f.value(x) * f.value(y), mode, sign)


def div(f: Format, x: int, y: int, mode: str = "rn") -> int:
    if f.is_nan(x) or f.is_nan(y):
        return nan_of(f)
    sign = (x ^ y) & f.sign_bit
    if f.is_infinite(x):
        return nan_of(f) if f.is_infinite(y) else sign | f.infinity
    if f.is_infinite(y):
        return sign
    if f.is_zero(y):
        return nan_of(f) if f.is_zero(x) else sign | f.infinity
    return f.round(f.value(x) / f.value(y), mode, sign)


def sqrt(f: Format, x: int, mode: str = "rn") -> int:
    if f.is_nan(x):
        return nan_of(f)
    if f.is_zero(x):
        return x
    if f.is_negative(x):
        return nan_of(f)
    if f.is_infinite(x):
        return x
    value = f.value(x)
    # 2 * 80 more bits than needed, and a last bit that says "inexact", which no format can see otherwise.
    shift = 2 * (80 + 2 * f.mantissa + f.bias)
    number = value.numerator * (1 << shift) // value.denominator
    root = isqrt(number)
    exact = root * root == number and (value.numerator << shift) % value.denominator == 0
    return f.round(Fraction(2 * root + (not exact), 2) / Fraction(1 << (shift // 2)), mode)


def minimum(f: Format, x: int, y: int, *, largest: bool = False, propagate: bool = False) -> int:
    if f.is_nan(x) and f.is_nan(y) or propagate and (f.is_nan(x) or f.is_nan(y)):
        return nan_of(f)
    if f.is_nan(x):
        return y
    if f.is_nan(y):
        return x

    def order(v: int) -> int:
        return -(v & ~f.sign_bit) - 1 if v & f.sign_bit else v

    return max(x, y, key=order) if largest else min(x, y, key=order)


def saturate(f: Format, x: int) -> int:
    if f.is_nan(x) or f.is_negative(x):
        return 0
    return min(x, f.bias << f.mantissa)


def convert(x: int, source: Format, to: Format, mode: str = "rn") -> int:
    if source.is_nan(x):
        return nan_of(to)
    sign = to.sign_bit if source.is_negative(x) else 0
    if source.is_infinite(x):
        return sign | to.infinity
    return to.round(source.value(x), mode, sign)


def round_to_integer(value: Fraction, mode: str) -> int:
    floor = value.numerator // value.denominator
    if mode == "rmi":
        return floor
    if mode == "rpi":
        return -((-value.numerator) // value.denominator)
    if mode == "rzi":
        return floor if value >= 0 else -((-value.numerator) // value.denominator)
    rest = value - floor
    return floor + (rest > Fraction(1, 2) or (rest == Fraction(1, 2) and floor & 1))


# Operands worth trying


def integers(bits: int) -> list[int]:
    """Patterns at the edges of signed and unsigned integers, and a few others."""
    rng = random.Random(bits)
    edges = [0, 1, 2, 3, 7, bits - 1, bits, bits + 1, 0xFF, 1 << (bits - 1), (1 << (bits - 1)) - 1]
    edges += [(1 << bits) - 1, (1 << bits) - 2, (1 << (bits - 1)) + 1, 1 << (bits // 2), (1 << (bits // 2)) - 1]
    edges += [int("5" * (bits // 4), 16), int("a" * (bits // 4), 16)]
    return [unsigned(e, bits) for e in edges] + [rng.getrandbits(bits) for _ in range(6)]


def floats(f: Format) -> list[int]:
    """Zeros, subnormal and normal numbers, infinities and NaNs with payloads, of both signs."""
    rng = random.Random(f.bits + f.mantissa)
    one = f.bias << f.mantissa
    patterns = [0, 1, (1 << f.mantissa) - 1, 1 << f.mantissa, (1 << f.mantissa) + 1, one, one + 1, one - 1]
    patterns += [f.infinity - 1, f.infinity, f.infinity + 1, f.infinity | 1 << (f.mantissa - 1), f.infinity | 0x5]
    patterns += [f.round(Fraction(n, 2)) for n in (1, 3, 4, 5, 7, 20, 201, 255, 2**17 + 1, 2**33 + 1)]
    patterns += [f.round(Fraction(1, 3)), one + (1 << (f.mantissa // 2)), f.round(Fraction(2) ** 31)]
    patterns += [rng.randrange(1 << (f.bits - 1)) for _ in range(8)]
    near = [one + rng.randrange(-3, 4) * (1 << rng.randrange(f.mantissa)) for _ in range(4)]
    patterns += near
    return [p & (f.sign_bit - 1) for p in patterns] + [(p & (f.sign_bit - 1)) | f.sign_bit for p in patterns]


def combinations(*columns: Sequence[int], limit: int = 256, seed: int = 0) -> list[tuple[int, ...]]:
    """All combinations of the columns' values, or a random choice of ``limit`` of them."""
    total = 1
    for column in columns:
        total *= len(column)
    if total <= limit:
        return list(product(*columns))
    rng = random.Random(seed)
    return [tuple(rng.choice(column) for column in columns) for _ in range(limit)]


Oracle = Callable[..., int | Iterable[int]]
