"""Arithmetic in single and double precision against exact fractions, in all rounding modes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.ptx import oracle
from tests.ptx.harness import verify
from tests.ptx.oracle import F32, F64, FORMATS, Format, floats

MODES = ["rn", "rz", "rm", "rp"]
BINARY: dict[str, Callable[..., int]] = {"add": oracle.add, "sub": oracle.sub, "mul": oracle.mul}


@pytest.mark.parametrize("mode", ["", *MODES])
@pytest.mark.parametrize("type", ["f32", "f64"])
@pytest.mark.parametrize("name", BINARY)
def test_binary(name: str, type: str, mode: str) -> None:
    f = FORMATS[type]
    dotted = f".{mode}" if mode else ""
    verify(
        f"{name}{dotted}.{type} d, a, b", [floats(f)] * 2, lambda x, y: BINARY[name](f, x, y, mode or "rn"), limit=400
    )


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("type", ["f32", "f64"])
@pytest.mark.parametrize("name", ["fma", "mad"])
def test_fma(name: str, type: str, mode: str) -> None:
    f = FORMATS[type]
    verify(f"{name}.{mode}.{type} d, a, b, c", [floats(f)] * 3, lambda x, y, z: oracle.fma(f, x, y, z, mode), limit=500)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("type", ["f32", "f64"])
def test_division_and_roots(type: str, mode: str) -> None:
    f = FORMATS[type]
    one = f.bias << f.mantissa
    verify(f"div.{mode}.{type} d, a, b", [floats(f)] * 2, lambda x, y: oracle.div(f, x, y, mode), limit=400)
    verify(f"rcp.{mode}.{type} d, a", [floats(f)], lambda x: oracle.div(f, one, x, mode))
    verify(f"sqrt.{mode}.{type} d, a", [floats(f)], lambda x: oracle.sqrt(f, x, mode))


def flushed(function: Callable[..., int], *operands: int) -> int:
    result = function(F32, *(oracle.flush(F32, x) for x in operands))
    return oracle.flush(F32, result)


@pytest.mark.parametrize("name", BINARY)
def test_ftz_and_sat(name: str) -> None:
    columns = [floats(F32)] * 2
    f = BINARY[name]
    verify(f"{name}.ftz.f32 d, a, b", columns, lambda x, y: flushed(f, x, y), limit=400)
    verify(f"{name}.sat.f32 d, a, b", columns, lambda x, y: oracle.saturate(F32, f(F32, x, y)), limit=400)
    verify(f"{name}.ftz.sat.f32 d, a, b", columns, lambda x, y: oracle.saturate(F32, flushed(f, x, y)), limit=400)
    verify(f"{name}.rz.ftz.f32 d, a, b", columns, lambda x, y: flushed(lambda g, *v: f(g, *v, "rz"), x, y), limit=400)


def test_fma_ftz_and_sat() -> None:
    columns = [floats(F32)] * 3
    verify("fma.rn.ftz.f32 d, a, b, c", columns, lambda *v: flushed(oracle.fma, *v), limit=400)
    verify("fma.rn.sat.f32 d, a, b, c", columns, lambda *v: oracle.saturate(F32, oracle.fma(F32, *v)), limit=400)
    verify("mad.f32 d, a, b, c", columns, lambda *v: oracle.fma(F32, *v), limit=400)


def test_division_and_roots_ftz() -> None:
    one = F32.bias << F32.mantissa
    verify("div.rn.ftz.f32 d, a, b", [floats(F32)] * 2, lambda x, y: flushed(oracle.div, x, y), limit=400)
    verify("rcp.rn.ftz.f32 d, a", [floats(F32)], lambda x: flushed(oracle.div, one, x))
    verify("sqrt.rn.ftz.f32 d, a", [floats(F32)], lambda x: flushed(oracle.sqrt, x))


@pytest.mark.parametrize("type", ["f32", "f64"])
def test_sign(type: str) -> None:
    f = FORMATS[type]
    verify(f"neg.{type} d, a", [floats(f)], lambda x: x ^ f.sign_bit)
    verify(f"abs.{type} d, a", [floats(f)], lambda x: x & ~f.sign_bit)


def test_sign_ftz() -> None:
    verify("neg.ftz.f32 d, a", [floats(F32)], lambda x: oracle.flush(F32, x) ^ F32.sign_bit)
    verify("abs.ftz.f32 d, a", [floats(F32)], lambda x: oracle.flush(F32, x) & ~F32.sign_bit)


@pytest.mark.parametrize("type", ["f32", "f64"])
@pytest.mark.parametrize("name", ["min", "max"])
def test_extrema(name: str, type: str) -> None:
    f, largest = FORMATS[type], name == "max"
    columns = [floats(f)] * 2
    verify(f"{name}.{type} d, a, b", columns, lambda x, y: oracle.minimum(f, x, y, largest=largest), limit=600)


def extremum(f: Format, values: tuple[int, ...], modifiers: str, largest: bool) -> int:
    if "ftz" in modifiers:
        values = tuple(oracle.flush(f, v) for v in values)
    sign = 0
    if "xorsign" in modifiers:
        for v in values:
            sign ^= v & f.sign_bit
        values = tuple(v & ~f.sign_bit for v in values)
    result = values[0]
    for v in values[1:]:
        result = oracle.minimum(f, result, v, largest=largest, propagate="NaN" in modifiers)
    if f.is_nan(result):
        return oracle.nan_of(f)
    return result | sign if "xorsign" in modifiers else result


@pytest.mark.parametrize(
    "modifiers", ["ftz", "NaN", "ftz.NaN", "xorsign.abs", "NaN.xorsign.abs", "ftz.NaN.xorsign.abs"]
)
@pytest.mark.parametrize("name", ["min", "max"])
def test_extrema_modifiers(name: str, modifiers: str) -> None:
    largest = name == "max"
    columns = [floats(F32)] * 3
    verify(f"{name}.{modifiers}.f32 d, a, b", columns[:2], lambda *v: extremum(F32, v, modifiers, largest), limit=600)
    verify(f"{name}.{modifiers}.f32 d, a, b, c", columns, lambda *v: extremum(F32, v, modifiers, largest), limit=600)


def test_packed_singles() -> None:
    pairs = [high << 32 | low for high, low in oracle.combinations(floats(F32), floats(F32), limit=60)]

    def both(function: Callable[..., int], *operands: int) -> int:
        low = function(F32, *(v & 0xFFFFFFFF for v in operands))
        return function(F32, *(v >> 32 for v in operands)) << 32 | low

    for name, function in BINARY.items():
        verify(f"{name}.rn.f32x2 d, a, b", [pairs] * 2, lambda x, y, g=function: both(g, x, y))
    verify("fma.rn.f32x2 d, a, b, c", [pairs] * 3, lambda x, y, z: both(oracle.fma, x, y, z))
    verify("fma.rz.ftz.f32x2 d, a, b, c", [pairs] * 3, lambda *v: both(lambda f, *w: flushed_fma_rz(*w), *v))


def flushed_fma_rz(x: int, y: int, z: int) -> int:
    return flushed(lambda f, *v: oracle.fma(f, *v, "rz"), x, y, z)


def test_double_keeps_the_payload_of_a_nan() -> None:
    nan = 0x7FF8000000000123
    verify("add.f64 d, a, b", [[nan], [F64.bias << F64.mantissa]], lambda x, y: nan)
    verify("add.f64 d, a, b", [[F64.infinity], [F64.infinity | F64.sign_bit]], lambda x, y: 0xFFF8000000000000)
