"""The approximate functions against the error bounds and the special cases of the PTX ISA."""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Callable, Sequence

import pytest

from tests.ptx import oracle
from tests.ptx.harness import check, verify
from tests.ptx.oracle import BF16, F16, F32, F64, Format, floats

NAN, INF = 0x7FFFFFFF, 0x7F800000
NEGATIVE = 0x80000000


@pytest.fixture(params=["exact", "fast"], autouse=True)
def numerics(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways keep to the bounds."""
    monkeypatch.setenv("CUPOLA_CPU_NUMERICS", request.param)


def pattern(x: float) -> int:
    return struct.unpack("<I", struct.pack("<f", x))[0]


def number(x: int) -> float:
    return struct.unpack("<f", struct.pack("<I", x))[0]


def positive(count: int = 400) -> list[int]:
    rng = random.Random(3)
    return [rng.randrange(1, INF) for _ in range(count)]


def near_one(count: int = 300) -> list[int]:
    rng = random.Random(4)
    return [pattern(rng.uniform(0.4, 2.5)) for _ in range(count)] + [pattern(1.0) + d for d in range(-40, 40)]


def uniform(low: float, high: float, count: int = 400) -> list[int]:
    rng = random.Random(5)
    return [pattern(rng.uniform(low, high)) for _ in range(count)]


def relative(bound: float, exact: Callable[[float], float], smallest: float = 2.0**-126):
    """Agreement up to a relative error; below the normal range up to that error of the smallest normal number."""

    def agrees(row: Sequence[int], results: list[int]) -> str | None:
        want = exact(number(row[0]))
        got = number(results[0])
        error = abs(got - want) / max(abs(want), smallest)
        return None if error <= bound else f"{got!r} instead of {want!r}: relative error 2**{math.log2(error):.2f}"

    return agrees


def absolute(bound: float, exact: Callable[[float], float]):
    def agrees(row: Sequence[int], results: list[int]) -> str | None:
        error = abs(number(results[0]) - exact(number(row[0])))
        return None if error <= bound else f"absolute error 2**{math.log2(error):.2f}"

    return agrees


@pytest.mark.parametrize(
    ("text", "values", "bound", "exact"),
    [
        ("rcp.approx.f32 d, a", positive(), 2.0**-23, lambda x: 1 / x),
        ("sqrt.approx.f32 d, a", positive(), 2.0**-23, math.sqrt),
        ("rsqrt.approx.f32 d, a", positive(2000), 2.0**-22.9, lambda x: 1 / math.sqrt(x)),
        ("ex2.approx.f32 d, a", uniform(-126, 128, 1500), 2.0**-22, lambda x: 2.0**x),
        ("ex2.approx.f32 d, a", uniform(-1, 1), 2.0**-22, lambda x: 2.0**x),
        ("ex2.approx.f32 d, a", uniform(-150, -126), 2.0**-22, lambda x: 2.0**x),
        ("ex2.approx.ftz.f32 d, a", uniform(-126, 128, 1500), 2.0**-22, lambda x: 2.0**x),
        ("lg2.approx.f32 d, a", [x for x in positive(1500) if not 0.5 < number(x) < 2], 2.0**-22, math.log2),
        ("tanh.approx.f32 d, a", uniform(-10, 10, 1500), 2.0**-11, math.tanh),
        ("tanh.approx.f32 d, a", uniform(-0.3, 0.3), 2.0**-11, math.tanh),
    ],
)  # fmt: skip
def test_relative_error(text: str, values: list[int], bound: float, exact: Callable[[float], float]) -> None:
    # 2**128 and what rounds to it are infinite.
    rows = [[x] for x in values if abs(exact(number(x))) < 2.0**128 - 2.0**104]
    check(text, rows, relative(bound, exact))


@pytest.mark.parametrize("ftz", ["", ".ftz"])
def test_absolute_error(ftz: str) -> None:
    turn = [[x] for x in uniform(-2 * math.pi, 2 * math.pi, 2000)]
    check(f"sin.approx{ftz}.f32 d, a", turn, absolute(2.0**-20.5, math.sin))
    check(f"cos.approx{ftz}.f32 d, a", turn, absolute(2.0**-20.5, math.cos))
    check(f"lg2.approx{ftz}.f32 d, a", [[x] for x in near_one()], absolute(2.0**-22, math.log2))


@pytest.mark.parametrize("ftz", ["", ".ftz"])
def test_division(ftz: str) -> None:
    rng = random.Random(8)
    rows = [[pattern(rng.uniform(-1e3, 1e3)), pattern(rng.uniform(0.1, 1e6))] for _ in range(400)]

    def agrees(row: Sequence[int], results: list[int]) -> str | None:
        want = number(row[0]) / number(row[1])
        error = abs(number(results[0]) - want) / abs(want)
        return None if error <= 2.0**-22 else f"relative error {error}"

    check(f"div.approx{ftz}.f32 d, a, b", rows, agrees)
    check(f"div.full{ftz}.f32 d, a, b", rows, agrees)


SPECIAL: dict[str, dict[int, int]] = {
    "rsqrt": {0: INF, NEGATIVE: INF | NEGATIVE, INF: 0, INF | NEGATIVE: NAN, 0xBF800000: NAN, 0xFFC00000: NAN},
    "rcp": {0: INF, NEGATIVE: INF | NEGATIVE, INF: 0, INF | NEGATIVE: NEGATIVE, 0x7F800001: NAN},
    "sqrt": {0: 0, NEGATIVE: NEGATIVE, INF: INF, 0xBF800000: NAN, INF | NEGATIVE: NAN, 0x7FC00001: NAN},
    "lg2": {0: INF | NEGATIVE, NEGATIVE: INF | NEGATIVE, INF: INF, 0xBF800000: NAN, INF | NEGATIVE: NAN,
            0x7FC00001: NAN, 0x3F800000: 0, 0x41000000: 0x40400000},
    "ex2": {0: 0x3F800000, NEGATIVE: 0x3F800000, INF: INF, INF | NEGATIVE: 0, 0x7FC00001: NAN, pattern(128.0): INF,
            pattern(3.0): pattern(8.0), pattern(-1.0): pattern(0.5), pattern(-200.0): 0, pattern(1e30): INF},
    "sin": {0: 0, NEGATIVE: NEGATIVE, INF: NAN, INF | NEGATIVE: NAN, 0x7FC00001: NAN},
    "cos": {0: 0x3F800000, NEGATIVE: 0x3F800000, INF: NAN, INF | NEGATIVE: NAN, 0x7FC00001: NAN},
    "tanh": {0: 0, NEGATIVE: NEGATIVE, INF: 0x3F800000, INF | NEGATIVE: 0xBF800000, 0x7FC00001: NAN},
}  # fmt: skip


@pytest.mark.parametrize("name", SPECIAL)
def test_special_operands(name: str) -> None:
    table = SPECIAL[name]
    forms = [f"{name}.approx.f32"] + ([f"{name}.approx.ftz.f32"] if name != "tanh" else [])
    for form in forms:
        verify(f"{form} d, a", [list(table)], lambda x: table[x])


def test_subnormal_operands() -> None:
    subnormal = [[x] for x in (1, 2, 77, 0x1234, 0x400000, 0x7FFFFF)]
    check("rsqrt.approx.f32 d, a", subnormal, relative(2.0**-22.9, lambda x: 1 / math.sqrt(x)))
    check("lg2.approx.f32 d, a", subnormal, relative(2.0**-22, math.log2))
    check("sqrt.approx.f32 d, a", subnormal, relative(2.0**-23, math.sqrt))
    flat = [x for (x,) in subnormal]
    verify("rsqrt.approx.ftz.f32 d, a", [flat + [x | NEGATIVE for x in flat]], lambda x: INF | x & NEGATIVE)
    verify("lg2.approx.ftz.f32 d, a", [flat], lambda x: INF | NEGATIVE)
    verify("sin.approx.ftz.f32 d, a", [flat], lambda x: 0)
    verify("ex2.approx.ftz.f32 d, a", [[pattern(-126.5), pattern(-140.0)]], lambda x: 0)


def test_sine_stays_in_range_far_out() -> None:
    rows = [[pattern(s * 10.0**k)] for k in range(3, 38) for s in (1.7, -1.3)]

    def agrees(row: Sequence[int], results: list[int]) -> str | None:
        return None if abs(number(results[0])) <= 1 else "out of range"

    check("sin.approx.f32 d, a", rows, agrees)
    check("cos.approx.f32 d, a", rows, agrees)


@pytest.mark.parametrize("name", ["rcp", "rsqrt"])
def test_coarse_double(name: str) -> None:
    rng = random.Random(9)
    rows = [[rng.randrange(1 << 52, 0x7FDF << 48)] for _ in range(400)]

    def agrees(row: Sequence[int], results: list[int]) -> str | None:
        value = F64.value(row[0])
        want = float(1 / value) if name == "rcp" else 1 / math.sqrt(value)
        got = float(F64.value(results[0]))
        if results[0] & 0xFFFFFFFF:
            return "the lower word is not zero"
        return None if abs(got - want) <= want * 2.0**-19 else f"{got} instead of {want}"

    check(f"{name}.approx.ftz.f64 d, a", rows, agrees)
    infinity = F64.infinity
    special = {0: infinity, 5: infinity, infinity: 0, F64.sign_bit: infinity | F64.sign_bit}
    verify(f"{name}.approx.ftz.f64 d, a", [list(special)], lambda x: special[x])
    # Only the upper word counts, so that some NaNs are infinities.
    verify(f"{name}.approx.ftz.f64 d, a", [[infinity | 1]], lambda x: 0)
    nan = [infinity | 1 << 51, infinity | 1 << 32, infinity | F64.sign_bit | 7 << 40]
    verify(f"{name}.approx.ftz.f64 d, a", [nan], lambda x: 0x7FFFFFFF00000000)
    if name == "rsqrt":
        negative = [F64.sign_bit | infinity, F64.sign_bit | infinity - 1]
        verify("rsqrt.approx.ftz.f64 d, a", [negative], lambda x: 0x7FFFFFFF00000000)


def test_rsqrt_of_doubles() -> None:
    rng = random.Random(10)
    rows = [[rng.randrange(1, F64.infinity)] for _ in range(300)]

    def agrees(row: Sequence[int], results: list[int]) -> str | None:
        want = 1 / math.sqrt(F64.value(row[0]))
        return None if abs(float(F64.value(results[0])) - want) <= want * 2.0**-50 else "inexact"

    check("rsqrt.approx.f64 d, a", rows, agrees)


HALF_FORMS = [
    ("ex2.approx.f16", F16, 2.0**-9.9, 0.0, lambda x: 2.0**x),
    ("ex2.approx.ftz.bf16", BF16, 2.0**-7, 0.0, lambda x: 2.0**x),
    ("tanh.approx.f16", F16, 0.0, 2.0**-10.987, math.tanh),
    ("tanh.approx.bf16", BF16, 0.0, 2.0**-8, math.tanh),
]


@pytest.mark.parametrize(("form", "f", "relative_bound", "absolute_bound", "exact"), HALF_FORMS)
def test_halves(form: str, f: Format, relative_bound: float, absolute_bound: float, exact) -> None:
    values = [x for x in floats(f) if not f.is_nan(x) and not f.is_infinite(x)]
    values = [x for x in values if abs(f.value(x)) < 14 and not f.is_subnormal(x)]

    def close(x: int, result: int) -> str | None:
        want = exact(float(f.value(x)))
        error = abs(float(f.value(result)) - want)
        return None if error <= absolute_bound + relative_bound * want else f"{hex(x)}: error {error}"

    check(f"{form} d, a", [[x] for x in values], lambda row, results: close(row[0], results[0]))
    rows = [[x << 16 | y] for x, y in oracle.combinations(values, values, limit=60)]

    def both(row: Sequence[int], results: list[int]) -> str | None:
        return close(row[0] >> 16, results[0] >> 16) or close(row[0] & 0xFFFF, results[0] & 0xFFFF)

    check(f"{form}x2 d, a", rows, both)
    verify(f"{form} d, a", [[f.infinity | 1]], lambda x: f.nan or 0)


def test_single_precision_is_meant() -> None:
    assert F32.round(F32.value(pattern(0.1))) == pattern(0.1)
