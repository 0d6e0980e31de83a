"""Conversions to and from narrow formats by tables of all their numbers, in exact fractions (PTX ISA 9.7.9.21).

Two readings of the ISA that its text leaves open:

- ``.rs``: the number, in units of its result's last place, is increased by a random part of one and cut. The random
  bits are the upper ones of that part. Two numbers of 8 or 6 bits share 16 of them; of ``.e2m1x4``, the
  first of a pair has the byte of the upper half, the second that of the lower one.
- What is beyond the range of s2f6 becomes -2 or 127/64, its "negative and positive max representation".
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache

from tests.ptx.forms import Form
from tests.ptx.oracle import BF16, F16, F32, Format

NARROW = {"e4m3": (8, 3), "e5m2": (8, 2), "e2m3": (6, 3), "e3m2": (6, 2), "e2m1": (4, 1)}
"""Bits, and those of the mantissa."""

Special = str
"""``nan``, ``inf`` or ``-inf``; zeros have no sign in fractions, so ``-0`` is one, too."""


def value(f: Format, x: int) -> Fraction | Special:
    if f.is_nan(x):
        return "nan"
    if f.is_infinite(x):
        return "-inf" if f.is_negative(x) else "inf"
    return f.value(x) if not f.is_zero(x) else "-0" if f.is_negative(x) else Fraction(0)


@cache
def numbers(name: str) -> dict[int, Fraction]:
    """The finite positive numbers of a narrow format by pattern."""
    bits, mantissa = NARROW[name]
    bias = (1 << (bits - mantissa - 2)) - 1
    found = {}
    for x in range(1 << (bits - 1)):
        exponent, fraction = divmod(x, 1 << mantissa)
        if (name == "e5m2" and exponent == 31) or (name == "e4m3" and x == 0x7F):
            continue
        lead = 1 if exponent else 0
        size = Fraction(fraction, 1 << mantissa) + lead
        found[x] = size * Fraction(2) ** (max(exponent, 1) - bias)
    return found


def parts(x: Fraction | Special) -> tuple[bool, Fraction | Special]:
    """Whether it is negative, and its size."""
    if isinstance(x, str):
        return x[0] == "-", Fraction(0) if x == "-0" else x.removeprefix("-")
    return x < 0, abs(x)


def nearest(table: dict[int, Fraction], size: Fraction) -> int:
    return min(table, key=lambda p: (abs(table[p] - size), p & 1))


def by_chance(table: dict[int, Fraction], size: Fraction, part: Fraction) -> int:
    """The number below, or the one above if what is cut off and the random part make a unit."""
    below = max(p for p in table if table[p] <= size)
    if below + 1 not in table:
        return below
    unit = table[below + 1] - table[below]
    return below + ((size - table[below]) / unit + part >= 1)


def narrowed(name: str, x: Fraction | Special, relu: bool, part: Fraction | None) -> int:
    table = numbers(name)
    if x == "nan":
        return {"e4m3": 0x7F, "e5m2": 0x7F}.get(name, max(table))
    negative, size = parts(x)
    if negative and relu:
        return 0
    sign = 1 << (NARROW[name][0] - 1) if negative else 0
    if isinstance(size, str) or size >= table[max(table)]:
        return sign | max(table)
    return sign | (nearest(table, size) if part is None else by_chance(table, size, part))


def half(f: Format, x: Fraction | Special, names: set[str], part: Fraction | None = None) -> int:
    """f16 or bf16."""
    if x == "nan":
        return 0x7FFF
    negative, size = parts(x)
    if isinstance(size, str):
        pattern = f.infinity
    elif part is None:
        pattern = f.round(size)
    else:
        below = f.round(size, "rz")
        unit = f.value(1) if below >> f.mantissa == 0 else f.value(1) * 2 ** ((below >> f.mantissa) - 1)
        cut = (size - f.value(below)) / unit
        pattern = f.infinity if cut >= 1 else below + (cut + part >= 1)
    if "satfinite" in names:
        pattern = min(pattern, f.infinity - 1)
    if negative and "relu" in names:
        return 0
    return pattern | (f.sign_bit if negative else 0)


def to_scale(x: Fraction | Special, names: set[str]) -> int:
    """The power of two at the size or above it. Sizes below 2**-127 become that."""
    if x == "nan":
        return 0xFF
    _, size = parts(x)
    if isinstance(size, str):
        return 0xFE if "satfinite" in names else 0xFF
    pattern = 0
    powers = [Fraction(2) ** (p - 127) for p in range(256)]
    if "rz" in names:
        pattern = max((p for p in range(255) if powers[p] <= size), default=0)
    else:
        pattern = min(p for p in range(256) if powers[p] >= size)
    return min(pattern, 0xFE) if "satfinite" in names else pattern


def to_fixed(x: Fraction | Special, relu: bool) -> int:
    if x == "nan":
        return 127
    negative, size = parts(x)
    if negative and relu:
        return 0
    units = 200 if isinstance(size, str) else min(round(size * 64), 200)
    return (max(-units, -128) if negative else min(units, 127)) & 0xFF


def times(x: Fraction | Special, scale: int, divide: bool) -> Fraction | Special:
    if scale == 0xFF or x == "nan":
        return "nan"
    if isinstance(x, str):
        return x
    factor = Fraction(2) ** (scale - 127)
    return x / factor if divide else x * factor


def widened(name: str, x: int) -> Fraction | Special:
    if name == "ue8m0":
        return "nan" if x == 0xFF else Fraction(2) ** (x - 127)
    if name == "s2f6":
        return Fraction(x - 256 if x & 0x80 else x, 64)
    bits, _ = NARROW[name]
    size, sign = x & ((1 << (bits - 1)) - 1), x >> (bits - 1) & 1
    if size not in numbers(name):
        infinite = name == "e5m2" and size == 0x7C
        return ("-inf" if sign else "inf") if infinite else "nan"
    number = numbers(name)[size]
    return (-number if number else "-0") if sign else number


def random_parts(to: str, bits: int) -> list[Fraction | None]:
    """The random part of each number."""
    if to == "f16x2":
        return [Fraction(bits >> at & 0x1FFF, 1 << 13) for at in (16, 0)]
    if to == "e2m1x4":
        return [Fraction(bits >> at & 0xFF, 1 << 8) for at in (24, 8, 16, 0)]
    upper, lower = Fraction(bits >> 16, 1 << 16), Fraction(bits & 0xFFFF, 1 << 16)
    return [upper, lower] if to == "bf16x2" else [upper, upper, lower, lower]


def convert(names: list[str], row: dict[str, int]) -> int:
    to, source = names[-2:]
    given = set(names)
    registers = [row[name] for name in row if name != "c"]
    if to == "tf32":
        return tf32(registers[0], given)
    # The numbers, the first one of the upper part
    if source == "f32":
        values = [value(F32, x) for x in registers]
    elif source in ("f16x2", "bf16x2"):
        f = F16 if source == "f16x2" else BF16
        values = [value(f, registers[0] >> at & 0xFFFF) for at in (16, 0)]
    else:
        width = 4 if source == "e2m1x2" else 8
        mask = (1 << (6 if source in ("e2m3x2", "e3m2x2") else width)) - 1
        values = [widened(source[:-2], registers[0] >> at & mask) for at in (width, 0)]
    if "scaled::n2::ue8m0" in given:
        divide = to == "s2f6x2"
        values = [times(x, row["c"] >> at & 0xFF, divide) for x, at in zip(values, (8, 0), strict=True)]
    random = random_parts(to, row["c"]) if "rs" in given else [None] * len(values)
    if to in ("f16x2", "bf16x2"):
        f, width = (F16 if to == "f16x2" else BF16), 16
        results = [half(f, x, given, part) for x, part in zip(values, random, strict=True)]
    else:
        name, width = to[:-2], 4 if to.startswith("e2m1") else 8
        relu = "relu" in given
        if name == "ue8m0":
            results = [to_scale(x, given) for x in values]
        elif name == "s2f6":
            results = [to_fixed(x, relu) for x in values]
        else:
            results = [narrowed(name, x, relu, part) for x, part in zip(values, random, strict=True)]
    word = 0
    for result in results:
        word = word << width | result
    return word


def tf32(x: int, names: set[str]) -> int:
    f = Format(19, 10, None)
    number = value(F32, x)
    if number == "nan":
        return 0x7FFFE000
    negative, size = parts(number)
    pattern = f.infinity if isinstance(size, str) else f.round(size, "rz" if "rz" in names else "rn")
    pattern = min(pattern, f.infinity - 1)
    if negative and "relu" in names:
        return 0
    return (pattern | (f.sign_bit if negative else 0)) << 13


def results(form: Form, rows: list[dict[str, int]]) -> list[list[int]]:
    names = form.code.split()[0].split(".")[1:]
    return [[convert(names, row) for row in rows]]
