"""Arithmetic in exact fractions and Python's integers, by the text of the ISA."""

from __future__ import annotations

import math
from fractions import Fraction

from tests.ptx import oracle
from tests.ptx.forms import Form
from tests.ptx.oracle import BF16, F16, F32, clamp, signed

MODES = ("rz", "rm", "rp")
NAN = 0x7FFFFFFF


def mode_of(names: list[str]) -> str:
    return next((name for name in names if name in MODES), "rn")


def float_pair(names: list[str], words: list[int]) -> int:
    result = 0
    for at in (0, 32):
        values = [word >> at & 0xFFFFFFFF for word in words]
        if "ftz" in names:
            values = [oracle.flush(F32, x) for x in values]
        found = getattr(oracle, names[0])(F32, *values, mode_of(names))
        result |= (oracle.flush(F32, found) if "ftz" in names else found) << at
    return result


def least(names: list[str], values: list[int], largest: bool) -> int:
    """Of several: a NaN loses, or wins with ``.NaN``, and -0 is less than +0."""
    if "ftz" in names:
        values = [oracle.flush(F32, x) for x in values]
    if "abs" in names:
        values = [x & 0x7FFFFFFF for x in values]
    result = values[0]
    for x in values[1:]:
        result = oracle.minimum(F32, result, x, largest=largest, propagate="NaN" in names)
    return NAN if F32.is_nan(result) else result


def mixed(names: list[str], values: list[int]) -> int:
    """f16 or bf16 operands, and a result and addend that are f32."""
    source = F16 if names[-1] == "f16" else BF16
    *halves, c = values
    exact = [oracle.convert(x, source, F32) for x in halves]
    if names[0] == "fma":
        result = oracle.fma(F32, *exact, c, mode_of(names))
    else:
        result = getattr(oracle, names[0])(F32, exact[0], c, mode_of(names))
    return oracle.saturate(F32, result) if "sat" in names else result


def lanes(names: list[str], words: list[int], width: int, is_signed: bool) -> int:
    """An operation on each part of a word."""
    low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if is_signed else (0, (1 << width) - 1)
    result = 0
    for at in range(0, 32, width):
        parts = [word >> at & ((1 << width) - 1) for word in words]
        values = [signed(x, width) if is_signed else x for x in parts]
        if names[0] == "neg":
            found = -values[0]
        else:
            found = {"add": sum, "sub": lambda v: v[0] - v[1], "min": min, "max": max}[names[0]](values)
        if "sat" in names:
            found = clamp(found, low, high)
        result |= (found & ((1 << width) - 1)) << at
    return result


def polynomial_product(x: int, y: int) -> int:
    result = 0
    for bit in range(64):
        if y >> bit & 1:
            result ^= x << bit
    return result


def circular(name: str, x: int) -> int:
    """In double precision, the cycles reduced exactly; subnormal numbers are zero."""
    x = oracle.flush(F32, x)
    if F32.is_nan(x) or F32.is_infinite(x):
        return NAN
    part = F32.value(x) % 1
    angle = 2 * math.pi * float(part)
    value = math.sin(angle) if name == "sin" else math.cos(angle)
    return F32.round(Fraction(value))


LANES = {"u8x4": 8, "s8x4": 8, "u16x2": 16, "s16x2": 16, "u32": 32}


def result(names: list[str], values: list[int]) -> int:
    type = names[-1]
    if type == "f32x2":
        return float_pair(names, values)
    if names[0] in ("min", "max") and type == "f32":
        return least(names, values, names[0] == "max")
    if type in ("f16", "bf16"):
        return mixed(names, values)
    if type in LANES:
        return lanes(names, values, LANES[type], type[0] == "s")
    if names[0] == "clmad":
        x, y, z = values if len(values) == 3 else (values[0], 0x1B, values[1])
        product = polynomial_product(x, y)
        return (product >> 64 if "hi" in names else product) & ((1 << 64) - 1) ^ z
    return circular(names[0], values[0])


def reduced(names: list[str], column: list[int], members: int) -> list[int]:
    """The minimum or maximum of the lanes of each warp that take part; zero in the others."""
    found = []
    for row in range(len(column)):
        warp = column[row & ~31 : (row & ~31) + 32]
        inside = [x for lane, x in enumerate(warp) if members >> lane & 1]
        found.append(least(names, inside, "max" in names) if members >> (row & 31) & 1 else 0)
    return found


def results(form: Form, rows: list[dict[str, int]]) -> list[list[int]]:
    code = form.code
    if "noftz" in code:
        columns = {"d0": [row["b"] for row in rows], "d1": [oracle.add(F32, row["b"], row["a"]) for row in rows]}
        return [columns[name] for name in form.outputs]
    if "redux" in code:
        names = next(word for word in code.split() if word.startswith("redux")).split(".")
        members = 0xA0A0A0A0 if "0xa0a0a0a0" in code else 0xFFFFFFFF
        return [reduced(names, [row["a"] for row in rows], members)]
    names = code.split()[0].split(".")
    return [[result(names, list(row.values())) for row in rows]]
