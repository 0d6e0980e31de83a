"""``cvt`` between all types against exact fractions."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cache

import pytest

from tests.ptx import oracle
from tests.ptx.harness import verify
from tests.ptx.oracle import BF16, F16, F32, F64, FORMATS, Format, clamp, floats, integers, signed

INTEGERS = ["u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"]
FLOATS = ["f16", "bf16", "f32", "f64"]
INTEGER_MODES = ["rni", "rzi", "rmi", "rpi"]
MODES = ["rn", "rz", "rm", "rp"]


def number(x: int, type: str) -> int:
    return signed(x, int(type[1:])) if type[0] == "s" else x


def limits(type: str) -> tuple[int, int]:
    n = int(type[1:])
    return (-(1 << (n - 1)), (1 << (n - 1)) - 1) if type[0] == "s" else (0, (1 << n) - 1)


@pytest.mark.parametrize("source", INTEGERS)
@pytest.mark.parametrize("to", INTEGERS)
def test_between_integers(to: str, source: str) -> None:
    values = integers(int(source[1:]))
    verify(f"cvt.{to}.{source} d, a", [values], lambda x: number(x, source))
    (low, high), (least, most) = limits(to), limits(source)
    if low > least or high < most:
        verify(f"cvt.sat.{to}.{source} d, a", [values], lambda x: clamp(number(x, source), low, high))


def spread(type: str) -> Sequence[int]:
    """Integers with long mantissas, around ties of every narrower format."""
    bits = int(type[1:])
    values = integers(bits)
    for top in range(bits):
        for low in (0, 1, 2, 3, 8, 9, 11, 24, 25, 53, 54):
            if low < top:
                values += [
                    (1 << top) + (1 << low),
                    (1 << top) + (1 << low) - 1,
                    (1 << top) - 1,
                    (3 << top) + (1 << low) + 1,
                ]
    return [oracle.unsigned(v, bits) for v in values]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("to", FLOATS)
@pytest.mark.parametrize("source", INTEGERS)
def test_integer_to_float(to: str, source: str, mode: str) -> None:
    f = FORMATS[to]
    verify(
        f"cvt.{mode}.{to}.{source} d, a",
        [spread(source)],
        lambda x: f.round(Fraction(number(x, source)), mode),
        limit=700,
    )


def to_integer(x: int, source: str, to: str, mode: str) -> int:
    f = FORMATS[source]
    low, high = limits(to)
    if f.is_nan(x):
        return 1 << (int(to[1:]) - 1) if source == "f64" or to[1:] == "64" else 0
    if f.is_infinite(x):
        return low if f.is_negative(x) else high
    return clamp(oracle.round_to_integer(f.value(x), mode), low, high)


def near_integers(type: str) -> list[int]:
    """Patterns around halves and around the limits of the integers."""
    f = FORMATS[type]
    values = [Fraction(n, 4) for n in range(-20, 21)]
    values += [s * (Fraction(2) ** p + d) for p in (7, 8, 15, 16, 31, 32, 63, 64) for d in (-1, 0, 1) for s in (-1, 1)]
    return floats(f) + [f.round(v) for v in values]


@pytest.mark.parametrize("mode", INTEGER_MODES)
@pytest.mark.parametrize("source", FLOATS)
@pytest.mark.parametrize("to", INTEGERS)
def test_float_to_integer(to: str, source: str, mode: str) -> None:
    verify(
        f"cvt.{mode}.{to}.{source} d, a", [near_integers(source)], lambda x: to_integer(x, source, to, mode), limit=300
    )


def test_float_to_integer_ftz() -> None:
    verify("cvt.rpi.ftz.s32.f32 d, a", [floats(F32)], lambda x: to_integer(oracle.flush(F32, x), "f32", "s32", "rpi"))


@pytest.mark.parametrize("mode", INTEGER_MODES)
@pytest.mark.parametrize("type", FLOATS)
def test_round_to_integral_float(type: str, mode: str) -> None:
    f = FORMATS[type]

    def expected(x: int) -> int:
        if f.is_nan(x):
            return oracle.nan_of(f)
        if f.is_infinite(x):
            return x
        return f.round(Fraction(oracle.round_to_integer(f.value(x), mode)), "rn", x & f.sign_bit)

    verify(f"cvt.{mode}.{type}.{type} d, a", [near_integers(type)], expected, limit=300)


NARROWING = ["f32.f64", "f16.f64", "bf16.f64", "f16.f32", "bf16.f32", "f16.bf16", "bf16.f16"]


def between(to: str, source: str) -> list[int]:
    """Patterns of the source around values and ties of the target."""
    f, g = FORMATS[source], FORMATS[to]
    values = floats(f)
    for x in floats(g):
        if g.is_nan(x) or g.is_infinite(x) or g.is_zero(x):
            continue
        value = g.value(x)
        following = g.value((x & ~g.sign_bit) - 1)
        for candidate in (value, (abs(value) + following) / 2 * (-1 if g.is_negative(x) else 1)):
            pattern = f.round(candidate)
            values += [pattern, pattern + 1, max(0, pattern - 1)]
    largest = g.infinity - 1
    values += [f.round(g.value(largest)), f.round(g.value(largest)) + 1, f.round(2 * g.value(largest))]
    return [v & ((1 << f.bits) - 1) for v in values]


def narrowed(x: int, f: Format, g: Format, mode: str = "rn") -> int:
    """A NaN of f64 keeps its sign and its upper bits, and is quiet."""
    if f is not F64 or not f.is_nan(x):
        return oracle.convert(x, f, g, mode)
    fraction = g.infinity.bit_length() - g.infinity.bit_count()
    sign = g.sign_bit if f.is_negative(x) else 0
    return sign | g.infinity | 1 << fraction - 1 | x >> 52 - fraction & (1 << fraction) - 1


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("types", NARROWING)
def test_narrowing(types: str, mode: str) -> None:
    to, source = types.split(".")
    f, g = FORMATS[source], FORMATS[to]
    verify(f"cvt.{mode}.{to}.{source} d, a", [between(to, source)], lambda x: narrowed(x, f, g, mode), limit=300)


@pytest.mark.parametrize("types", ["f64.f32", "f64.f16", "f32.f16", "f64.bf16", "f32.bf16"])
def test_widening(types: str) -> None:
    to, source = types.split(".")
    f, g = FORMATS[source], FORMATS[to]
    verify(f"cvt.{to}.{source} d, a", [floats(f)], lambda x: oracle.convert(x, f, g))


def test_ftz() -> None:
    verify("cvt.ftz.f32.f32 d, a", [[x for x in floats(F32) if not F32.is_nan(x)]], lambda x: oracle.flush(F32, x))
    verify("cvt.ftz.f64.f32 d, a", [floats(F32)], lambda x: oracle.convert(oracle.flush(F32, x), F32, F64))
    verify("cvt.rn.ftz.f16.f32 d, a", [floats(F32)], lambda x: oracle.convert(oracle.flush(F32, x), F32, F16))
    verify("cvt.rn.ftz.f32.f64 d, a", [between("f32", "f64")], lambda x: oracle.flush(F32, narrowed(x, F64, F32)))


def test_copy_keeps_every_bit() -> None:
    verify("cvt.f32.f32 d, a", [floats(F32)], lambda x: x)


def test_sat_to_float() -> None:
    for to, source in (("f32", "f32"), ("f16", "f32"), ("f32", "f64"), ("f32", "f16")):
        f, g = FORMATS[source], FORMATS[to]
        mode = "rn." if g.bits < f.bits else ""
        verify(
            f"cvt.{mode}sat.{to}.{source} d, a",
            [between(to, source)],
            lambda x, f=f, g=g: oracle.saturate(g, oracle.convert(x, f, g)),
        )


@pytest.mark.parametrize("modifiers", ["", "relu", "satfinite", "relu.satfinite"])
@pytest.mark.parametrize("mode", ["rn", "rz"])
@pytest.mark.parametrize("to", ["f16", "bf16"])
def test_half_modifiers_and_pairs(to: str, mode: str, modifiers: str) -> None:
    g = FORMATS[to]

    def one(x: int) -> int:
        result = oracle.convert(x, F32, g, mode)
        if "satfinite" in modifiers and g.is_infinite(result):
            result -= 1
        if "relu" in modifiers and result & g.sign_bit:
            result = 0
        return result

    dotted = f"cvt.{mode}." + (f"{modifiers}." if modifiers else "")
    values = between(to, "f32")
    verify(f"{dotted}{to}.f32 d, a", [values], one, limit=400)
    verify(f"{dotted}{to}x2.f32 d, a, b", [values] * 2, lambda x, y: one(x) << 16 | one(y), limit=400)


@pytest.mark.parametrize(
    "modifiers", ["rna", "rn", "rz", "rna.satfinite", "rn.satfinite", "rn.relu", "rz.satfinite.relu"]
)
def test_tf32(modifiers: str) -> None:
    tf32 = oracle.Format(19, 10, 0x3FFFF)
    mode = modifiers.split(".")[0]

    def expected(x: int) -> int:
        if F32.is_nan(x):
            if mode != "rna":
                return 0x7FFFE000
            return (x & 0xFFFFE000) - (0x2000 if "satfinite" in modifiers else 0)
        result = oracle.convert(x, F32, tf32, mode)
        if "satfinite" in modifiers and tf32.is_infinite(result):
            result -= 1
        if "relu" in modifiers and result & tf32.sign_bit:
            result = 0
        return result << 13

    values = floats(F32) + [x & 0xFFFFE000 | low for x in floats(F32) for low in (0xFFF, 0x1000, 0x1001, 0x1FFF)]
    verify(f"cvt.{modifiers}.tf32.f32 d, a", [values], expected, limit=300)


def eight(mantissa: int) -> dict[int, Fraction]:
    """The finite numbers of an 8-bit format by pattern; e4m3 has no infinity and one NaN."""
    f = oracle.Format(8, mantissa, None)
    top = 0x7E if mantissa == 3 else 0x7B
    values = {x: f.value(x) for x in range(min(top, f.infinity - 1) + 1)}
    if mantissa == 3:
        values |= {x: Fraction(8 + (x & 7), 8) * 256 for x in range(0x78, 0x7F)}
    return values


@pytest.mark.parametrize("relu", ["", ".relu"])
@pytest.mark.parametrize(("name", "mantissa", "nan"), [("e4m3x2", 3, 0x7F), ("e5m2x2", 2, 0x7F)])
def test_eight_bits(name: str, mantissa: int, nan: int, relu: str) -> None:
    table = eight(mantissa)
    largest = max(table.values())

    @cache
    def nearest(size: Fraction) -> int:
        return min(table, key=lambda p: (abs(table[p] - size), p & 1))

    def one(x: int, f: oracle.Format) -> int:
        if f.is_nan(x):
            return nan
        sign = 0x80 if f.is_negative(x) else 0
        if sign and relu:
            return 0
        size = largest if f.is_infinite(x) else min(abs(f.value(x)), largest)
        return sign | nearest(size)

    ties = [F32.round((table[p] + table[p + 1]) / 2) for p in list(table)[:-1]]
    values = floats(F32) + [F32.round(v) for v in table.values()] + ties + [t + d for t in ties for d in (-1, 1)]
    values += [v | F32.sign_bit for v in ties]
    verify(
        f"cvt.rn.satfinite{relu}.{name}.f32 d, a, b",
        [values] * 2,
        lambda x, y: one(x, F32) << 8 | one(y, F32),
        limit=700,
    )
    pairs = [F16.round(a) << 16 | F16.round(-b) for a in table.values() for b in list(table.values())[::16]]
    verify(
        f"cvt.rn.satfinite{relu}.{name}.f16x2 d, a", [pairs], lambda x: one(x >> 16, F16) << 8 | one(x & 0xFFFF, F16)
    )

    def back(x: int) -> int:
        infinite = mantissa == 2 and x & 0x7F == 0x7C
        if not infinite and x & 0x7F not in table:
            return 0x7FFF
        sign = (x & 0x80) << 8
        if sign and relu:
            return 0
        return sign | (0x7C00 if infinite else F16.round(table[x & 0x7F]))

    every = [x << 8 | (255 - x) for x in range(256)]
    verify(f"cvt.rn{relu}.f16x2.{name} d, a", [every], lambda x: back(x >> 8) << 16 | back(x & 0xFF), limit=300)


def test_bf16_is_the_upper_half_of_f32() -> None:
    verify("cvt.f32.bf16 d, a", [[x for x in floats(BF16) if not BF16.is_nan(x)]], lambda x: x << 16)


@pytest.mark.parametrize("name", ["u16", "s16", "u8", "s8", "u4", "s4", "u2", "s2"])
def test_pack(name: str) -> None:
    bits = int(name[1:])
    low, high = limits(name)

    def one(x: int) -> int:
        return clamp(signed(x, 32), low, high) & ((1 << bits) - 1)

    values = integers(32)
    if bits == 16:
        verify(f"cvt.pack.sat.{name}.s32 d, a, b", [values] * 2, lambda x, y: one(x) << 16 | one(y))
    else:
        verify(
            f"cvt.pack.sat.{name}.s32.b32 d, a, b, c",
            [values] * 3,
            lambda x, y, z: z << 2 * bits | one(x) << bits | one(y),
        )
