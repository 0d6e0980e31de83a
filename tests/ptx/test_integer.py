"""Integer arithmetic against Python's integers."""

from __future__ import annotations

import pytest

from tests.ptx.harness import verify
from tests.ptx.oracle import clamp, combinations, integers, signed, unsigned

TYPES = ["u16", "s16", "u32", "s32", "u64", "s64"]


def bits_of(type: str) -> int:
    return int(type[1:])


def number(x: int, type: str) -> int:
    return signed(x, bits_of(type)) if type[0] == "s" else x


def limits(type: str) -> tuple[int, int]:
    n = bits_of(type)
    return (-(1 << (n - 1)), (1 << (n - 1)) - 1) if type[0] == "s" else (0, (1 << n) - 1)


def quotient(x: int, y: int) -> int:
    """Rounded towards zero."""
    q = abs(x) // abs(y)
    return q if (x < 0) == (y < 0) else -q


def divide(x: int, y: int) -> int:
    return -1 if y == 0 else quotient(x, y)


def remainder(x: int, y: int) -> int:
    return -1 if y == 0 else x - quotient(x, y) * y


BINARY = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul.lo": lambda x, y: x * y,
    "div": divide,
    "rem": remainder,
    "min": min,
    "max": max,
}


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("name", BINARY)
def test_binary(name: str, type: str) -> None:
    values = integers(bits_of(type))
    verify(f"{name}.{type} d, a, b", [values, values], lambda x, y: BINARY[name](number(x, type), number(y, type)))


@pytest.mark.parametrize("type", TYPES)
def test_mul_hi(type: str) -> None:
    values = integers(bits_of(type))
    verify(f"mul.hi.{type} d, a, b", [values, values], lambda x, y: number(x, type) * number(y, type) >> bits_of(type))


@pytest.mark.parametrize("type", TYPES[:4])
def test_mul_wide(type: str) -> None:
    values = integers(bits_of(type))
    verify(f"mul.wide.{type} d, a, b", [values, values], lambda x, y: number(x, type) * number(y, type))


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("part", ["lo", "hi"])
def test_mad(part: str, type: str) -> None:
    values = integers(bits_of(type))
    shift = bits_of(type) if part == "hi" else 0
    verify(
        f"mad.{part}.{type} d, a, b, c",
        [values] * 3,
        lambda x, y, z: (number(x, type) * number(y, type) >> shift) + z,
    )


@pytest.mark.parametrize("type", TYPES[:4])
def test_mad_wide(type: str) -> None:
    values = integers(bits_of(type))
    verify(
        f"mad.wide.{type} d, a, b, c",
        [values, values, integers(2 * bits_of(type))],
        lambda x, y, z: number(x, type) * number(y, type) + z,
    )


@pytest.mark.parametrize("name", ["add", "sub"])
@pytest.mark.parametrize("type", ["s32", "u32"])
def test_saturating(name: str, type: str) -> None:
    values = integers(32)
    verify(
        f"{name}.sat.{type} d, a, b",
        [values, values],
        lambda x, y: clamp(BINARY[name](number(x, type), number(y, type)), *limits(type)),
    )


def test_mad_hi_sat() -> None:
    verify(
        "mad.hi.sat.s32 d, a, b, c",
        [integers(32)] * 3,
        lambda x, y, z: clamp((signed(x, 32) * signed(y, 32) >> 32) + signed(z, 32), *limits("s32")),
    )


def product24(x: int, y: int, type: str, part: str) -> int:
    def low(v: int) -> int:
        return signed(v, 24) if type[0] == "s" else unsigned(v, 24)

    return low(x) * low(y) >> (16 if part == "hi" else 0)


@pytest.mark.parametrize("type", ["u32", "s32"])
@pytest.mark.parametrize("part", ["lo", "hi"])
def test_24_bits(part: str, type: str) -> None:
    values = integers(32)
    verify(f"mul24.{part}.{type} d, a, b", [values, values], lambda x, y: product24(x, y, type, part))
    verify(f"mad24.{part}.{type} d, a, b, c", [values] * 3, lambda x, y, z: product24(x, y, type, part) + z)


def test_mad24_hi_sat() -> None:
    def expected(x: int, y: int, z: int) -> int:
        return clamp(signed(product24(x, y, "s32", "hi"), 32) + signed(z, 32), *limits("s32"))

    verify("mad24.hi.sat.s32 d, a, b, c", [integers(32)] * 3, expected)


@pytest.mark.parametrize("type", TYPES)
def test_sad(type: str) -> None:
    values = integers(bits_of(type))
    verify(f"sad.{type} d, a, b, c", [values] * 3, lambda x, y, z: abs(number(x, type) - number(y, type)) + z)


@pytest.mark.parametrize("type", ["s16", "s32", "s64"])
def test_sign(type: str) -> None:
    values = integers(bits_of(type))
    verify(f"abs.{type} d, a", [values], lambda x: abs(number(x, type)))
    verify(f"neg.{type} d, a", [values], lambda x: -x)


@pytest.mark.parametrize("name", ["min", "max"])
def test_relu(name: str) -> None:
    choose = min if name == "min" else max
    verify(f"{name}.relu.s32 d, a, b", [integers(32)] * 2, lambda x, y: max(choose(signed(x, 32), signed(y, 32)), 0))


@pytest.mark.parametrize("divisor", [1, 2, 3, 7, 10, 640, -1, -5, 0])
@pytest.mark.parametrize("type", ["u32", "s32", "s64"])
def test_division_by_a_constant(type: str, divisor: int) -> None:
    y = number(unsigned(divisor, bits_of(type)), type)
    values = integers(bits_of(type))
    verify(f"div.{type} d, a, {divisor}", [values, [0]], lambda x, _: divide(number(x, type), y))
    verify(f"rem.{type} d, a, {divisor}", [values, [0]], lambda x, _: remainder(number(x, type), y))


@pytest.mark.parametrize("type", ["u32", "s32"])
def test_division_is_exact_in_double_precision(type: str) -> None:
    near = [unsigned(q * y + r, 32) for y in (3, 5, 641, 65537, 0x7FFFFFFF) for q in (1, 2, 6700417) for r in (-1, 0)]
    values = [0xFFFFFFFF, 0xFFFFFFFE, 0x80000000, *near]
    divisors = [3, 5, 641, 65537, 0x7FFFFFFF, 0xFFFFFFFF]
    verify(f"div.{type} d, a, b", [values, divisors], lambda x, y: divide(number(x, type), number(y, type)), limit=400)


def carry_of(total: int, bits: int) -> int:
    return int(not 0 <= total < 1 << bits)


@pytest.mark.parametrize("type", ["u32", "s32", "u64", "s64"])
def test_carries(type: str) -> None:
    n = bits_of(type)
    values = integers(n)
    two, three = [values, values], [values, values, [0, 1]]
    verify(f"add.cc.{type} d|cc, a, b", two, lambda x, y: (x + y, carry_of(x + y, n)))
    verify(f"sub.cc.{type} d|cc, a, b", two, lambda x, y: (x - y, int(x >= y)))
    verify(f"addc.{type} d, a, b, cc", three, lambda x, y, c: x + y + c)
    # The carry of a subtraction is 1 when there is nothing to borrow.
    verify(f"subc.{type} d, a, b, cc", three, lambda x, y, c: x - y - (1 - c))
    verify(f"addc.cc.{type} d|cc, a, b, cc", three, lambda x, y, c: (x + y + c, carry_of(x + y + c, n)))
    verify(f"subc.cc.{type} d|cc, a, b, cc", three, lambda x, y, c: (x - y - (1 - c), int(x >= y + 1 - c)))


@pytest.mark.parametrize("type", ["u32", "s32", "u64", "s64"])
@pytest.mark.parametrize("part", ["lo", "hi"])
def test_mad_carries(part: str, type: str) -> None:
    n = bits_of(type)
    values = integers(n)

    def left(x: int, y: int) -> int:
        return unsigned(number(x, type) * number(y, type) >> (n if part == "hi" else 0), n)

    verify(
        f"mad.{part}.cc.{type} d|cc, a, b, c",
        [values] * 3,
        lambda x, y, z: (left(x, y) + z, carry_of(left(x, y) + z, n)),
    )
    verify(
        f"madc.{part}.cc.{type} d|cc, a, b, c, cc",
        [values] * 3 + [[0, 1]],
        lambda x, y, z, c: (left(x, y) + z + c, carry_of(left(x, y) + z + c, n)),
    )
    verify(f"madc.{part}.{type} d, a, b, c, cc", [values] * 3 + [[0, 1]], lambda x, y, z, c: left(x, y) + z + c)


def small(x: int, position: int, length: int, type: str) -> int:
    part = x >> position & ((1 << length) - 1)
    return signed(part, length) if type[0] == "s" else part


@pytest.mark.parametrize("left", ["u32", "s32"])
@pytest.mark.parametrize("right", ["u32", "s32"])
def test_dot_products(left: str, right: str) -> None:
    columns = [integers(32)] * 3

    def dp4a(x: int, y: int, z: int) -> int:
        return z + sum(small(x, 8 * i, 8, left) * small(y, 8 * i, 8, right) for i in range(4))

    verify(f"dp4a.{left}.{right} d, a, b, c", columns, dp4a)
    for part, base in (("lo", 0), ("hi", 16)):

        def dp2a(x: int, y: int, z: int, base: int = base) -> int:
            return z + sum(small(x, 16 * i, 16, left) * small(y, base + 8 * i, 8, right) for i in range(2))

        verify(f"dp2a.{part}.{left}.{right} d, a, b, c", columns, dp2a)


def test_oracle_draws_enough_rows() -> None:
    assert len(combinations(integers(32), integers(32))) >= 200
