"""Half precision, bfloat16, packed pairs, mixed precision, and pairs of 16-bit integers."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import pytest

from tests.ptx import oracle
from tests.ptx.harness import verify, verify_rows
from tests.ptx.oracle import BF16, F16, F32, FORMATS, Format, clamp, combinations, floats, integers, signed
from tests.ptx.test_compare import FLOAT_NAMES, compare_floats
from tests.ptx.test_floating import extremum

BINARY: dict[str, Callable[..., int]] = {"add": oracle.add, "sub": oracle.sub, "mul": oracle.mul}
HALVES = ["f16", "bf16"]


def pairs(f: Format, limit: int = 80) -> list[int]:
    return [high << 16 | low for high, low in combinations(floats(f), floats(f), limit=limit)]


def each(function: Callable[..., int], *operands: int) -> int:
    """The function on the upper and on the lower halves."""
    return function(*(v >> 16 for v in operands)) << 16 | function(*(v & 0xFFFF for v in operands))


@pytest.mark.parametrize("type", HALVES)
@pytest.mark.parametrize("name", BINARY)
def test_binary(name: str, type: str) -> None:
    f, g = FORMATS[type], BINARY[name]
    verify(f"{name}.{type} d, a, b", [floats(f)] * 2, lambda x, y: g(f, x, y), limit=600)
    verify(f"{name}.rn.{type}x2 d, a, b", [pairs(f)] * 2, lambda x, y: each(lambda *v: g(f, *v), x, y))


@pytest.mark.parametrize("name", BINARY)
def test_ftz_and_sat(name: str) -> None:
    g = BINARY[name]

    def flushed(x: int, y: int) -> int:
        x, y = oracle.flush(F16, x), oracle.flush(F16, y)
        result = g(F16, x, y)
        finite = not any(F16.is_nan(v) or F16.is_infinite(v) for v in (x, y))
        # What is below the normal range before it is rounded is flushed.
        if name == "mul" and finite and abs(F16.value(x) * F16.value(y)) < Fraction(1, 1 << 14):
            return result & F16.sign_bit
        return oracle.flush(F16, result)

    columns = [floats(F16)] * 2
    verify(f"{name}.ftz.f16 d, a, b", columns, flushed, limit=400)
    verify(f"{name}.sat.f16 d, a, b", columns, lambda x, y: oracle.saturate(F16, g(F16, x, y)), limit=400)
    verify(
        f"{name}.ftz.sat.f16x2 d, a, b",
        [pairs(F16)] * 2,
        lambda x, y: each(lambda *v: oracle.saturate(F16, flushed(*v)), x, y),
    )


def ties(f: Format) -> list[tuple[int, int, int]]:
    """Operands of fma whose exact result lies just beside a tie, where rounding twice goes wrong."""
    one = f.bias << f.mantissa
    near = [one + k for k in (1, 2, 3, 5, 0x11, 0x21)]
    tiny = [1, 2, f.sign_bit | 1, 1 << f.mantissa, f.sign_bit | 1 << f.mantissa]
    return [(x, y, z) for x in near for y in near for z in tiny]


@pytest.mark.parametrize("type", HALVES)
def test_fma(type: str) -> None:
    f = FORMATS[type]

    def relu(x: int, y: int, z: int) -> int:
        result = oracle.fma(f, x, y, z)
        return 0 if result & f.sign_bit else result

    columns = [floats(f)] * 3
    verify(f"fma.rn.{type} d, a, b, c", columns, lambda *v: oracle.fma(f, *v), limit=800)
    verify(f"fma.rn.relu.{type} d, a, b, c", columns, relu, limit=400)
    verify(f"fma.rn.{type}x2 d, a, b, c", [pairs(f)] * 3, lambda *v: each(lambda *w: oracle.fma(f, *w), *v))
    verify_rows(f"fma.rn.{type} d, a, b, c", ties(f), lambda *v: oracle.fma(f, *v))


@pytest.mark.parametrize("type", HALVES)
def test_sign(type: str) -> None:
    f = FORMATS[type]
    verify(f"neg.{type} d, a", [floats(f)], lambda x: x ^ 0x8000)
    verify(f"abs.{type} d, a", [floats(f)], lambda x: x & 0x7FFF)
    verify(f"neg.{type}x2 d, a", [pairs(f)], lambda x: x ^ 0x80008000)
    verify(f"abs.{type}x2 d, a", [pairs(f)], lambda x: x & 0x7FFF7FFF)


@pytest.mark.parametrize("modifiers", ["", "NaN", "xorsign.abs", "NaN.xorsign.abs"])
@pytest.mark.parametrize("type", HALVES)
@pytest.mark.parametrize("name", ["min", "max"])
def test_extrema(name: str, type: str, modifiers: str) -> None:
    f = FORMATS[type]
    dotted = f"{name}.{modifiers}." if modifiers else f"{name}."

    def expected(*v: int) -> int:
        return extremum(f, v, modifiers, name == "max")

    verify(f"{dotted}{type} d, a, b", [floats(f)] * 2, expected, limit=400)
    verify(f"{dotted}{type}x2 d, a, b", [pairs(f)] * 2, lambda x, y: each(expected, x, y))


@pytest.mark.parametrize("name", FLOAT_NAMES)
@pytest.mark.parametrize("type", HALVES)
def test_setp_and_set(type: str, name: str) -> None:
    f = FORMATS[type]
    one = f.bias << f.mantissa

    def outcome(x: int, y: int) -> int:
        return compare_floats(name, f, x, y)

    verify(f"setp.{name}.{type} p|q, a, b", [floats(f)] * 2, lambda x, y: (outcome(x, y), 1 - outcome(x, y)))
    verify(
        f"setp.{name}.and.{type}x2 p|q, a, b, c",
        [pairs(f), pairs(f), [0, 1]],
        lambda x, y, c: (outcome(x & 0xFFFF, y & 0xFFFF) & c, outcome(x >> 16, y >> 16) & c),
    )
    verify(f"set.{name}.{type}.{type} d, a, b", [floats(f)] * 2, lambda x, y: one * outcome(x, y), limit=100)
    verify(f"set.{name}.u32.{type} d, a, b", [floats(f)] * 2, lambda x, y: -outcome(x, y), limit=100)
    verify(
        f"set.{name}.{type}x2.{type}x2 d, a, b",
        [pairs(f)] * 2,
        lambda x, y: each(lambda *v: one * outcome(*v), x, y),
        limit=100,
    )
    verify(
        f"set.{name}.u32.{type}x2 d, a, b",
        [pairs(f)] * 2,
        lambda x, y: each(lambda *v: 0xFFFF * outcome(*v), x, y),
        limit=100,
    )


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
@pytest.mark.parametrize("type", HALVES)
def test_mixed_precision(type: str, mode: str) -> None:
    f = FORMATS[type]

    def wide(x: int) -> int:
        return oracle.convert(x, f, F32)

    for name in ("add", "sub"):
        verify(
            f"{name}.{mode}.f32.{type} d, a, c",
            [floats(f), floats(F32)],
            lambda x, z, g=BINARY[name]: g(F32, wide(x), z, mode),
        )
    verify(
        f"fma.{mode}.f32.{type} d, a, b, c",
        [floats(f), floats(f), floats(F32)],
        lambda x, y, z: oracle.fma(F32, wide(x), wide(y), z, mode),
    )


SHORTS = [high << 16 | low for high, low in combinations(integers(16), integers(16), limit=60)]


@pytest.mark.parametrize("type", ["u16x2", "s16x2"])
def test_pairs_of_shorts(type: str) -> None:
    is_signed = type[0] == "s"
    low, high = (-0x8000, 0x7FFF) if is_signed else (0, 0xFFFF)

    def number(x: int) -> int:
        return signed(x, 16) if is_signed else x

    functions: dict[str, Callable[[int, int], int]] = {
        "add": lambda x, y: x + y,
        "sub": lambda x, y: x - y,
        "min": min,
        "max": max,
        "add.sat": lambda x, y: clamp(x + y, low, high),
        "sub.sat": lambda x, y: clamp(x - y, low, high),
    }
    if is_signed:
        functions |= {"min.relu": lambda x, y: max(min(x, y), 0), "max.relu": lambda x, y: max(x, y, 0)}
        verify("neg.s16x2 d, a", [SHORTS], lambda x: each(lambda v: -v & 0xFFFF, x))
    for name, function in functions.items():
        verify(
            f"{name}.{type} d, a, b",
            [SHORTS] * 2,
            lambda x, y, g=function: each(lambda *v: g(*map(number, v)) & 0xFFFF, x, y),
        )


def parts(x: int, count: int, type: str) -> list[int]:
    width = 32 // count
    values = [x >> width * i & ((1 << width) - 1) for i in range(count)]
    return [signed(v, width) for v in values] if type[0] == "s" else values


SIMD: dict[str, Callable[[int, int], int]] = {
    "vadd": lambda x, y: x + y,
    "vsub": lambda x, y: x - y,
    "vavrg": lambda x, y: (x + y + (x + y >= 0)) >> 1,
    "vabsdiff": lambda x, y: abs(x - y),
    "vmin": min,
    "vmax": max,
}


@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("types", ["u32.u32.u32", "s32.s32.s32", "s32.u32.s32"])
@pytest.mark.parametrize("name", SIMD)
def test_simd_video(name: str, types: str, count: int) -> None:
    to, left, right = types.split(".")
    width = 32 // count
    low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if to[0] == "s" else (0, (1 << width) - 1)

    def values(x: int, y: int) -> list[int]:
        return [SIMD[name](p, q) for p, q in zip(parts(x, count, left), parts(y, count, right), strict=True)]

    def merged(values: list[int]) -> int:
        return sum((v & ((1 << width) - 1)) << width * i for i, v in enumerate(values))

    columns = [SHORTS, SHORTS, integers(32)]
    verify(f"{name}{count}.{types} d, a, b, c", columns, lambda x, y, _: merged(values(x, y)))
    verify(
        f"{name}{count}.{types}.sat d, a, b, c",
        columns,
        lambda x, y, _: merged([clamp(v, low, high) for v in values(x, y)]),
    )
    verify(f"{name}{count}.{types}.add d, a, b, c", columns, lambda x, y, z: sum(values(x, y)) + z)


def test_formats_differ() -> None:
    assert (F16.bias, BF16.bias) == (15, 127)
