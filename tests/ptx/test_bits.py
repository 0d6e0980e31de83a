"""Logic, shifts and bit fields against the pseudo-code of the PTX ISA."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.ptx.harness import verify
from tests.ptx.oracle import clamp, integers, signed, unsigned

LOGIC: dict[str, Callable[[int, int], int]] = {
    "and": lambda x, y: x & y,
    "or": lambda x, y: x | y,
    "xor": lambda x, y: x ^ y,
}
AMOUNTS = [0, 1, 7, 15, 16, 17, 31, 32, 33, 63, 64, 65, 255, 256, 0x80000001, 0xFFFFFFFF]


@pytest.mark.parametrize("bits", [16, 32, 64])
@pytest.mark.parametrize("name", LOGIC)
def test_logic(name: str, bits: int) -> None:
    values = integers(bits)
    verify(f"{name}.b{bits} d, a, b", [values, values], LOGIC[name])


@pytest.mark.parametrize("name", LOGIC)
def test_logic_of_predicates(name: str) -> None:
    verify(f"{name}.pred d, a, b", [[0, 1], [0, 1]], LOGIC[name])


@pytest.mark.parametrize("bits", [16, 32, 64])
def test_not(bits: int) -> None:
    values = integers(bits)
    verify(f"not.b{bits} d, a", [values], lambda x: ~x)
    verify(f"cnot.b{bits} d, a", [values], lambda x: int(x == 0))


def test_not_of_a_predicate() -> None:
    verify("not.pred d, a", [[0, 1]], lambda x: 1 - x)


@pytest.mark.parametrize("bits", [16, 32, 64])
def test_shift(bits: int) -> None:
    values = integers(bits)
    verify(f"shl.b{bits} d, a, b", [values, AMOUNTS], lambda x, n: x << n if n < bits else 0)
    for type in ("b", "u"):
        verify(f"shr.{type}{bits} d, a, b", [values, AMOUNTS], lambda x, n: x >> n)
    verify(f"shr.s{bits} d, a, b", [values, AMOUNTS], lambda x, n: signed(x, bits) >> min(n, bits))


@pytest.mark.parametrize("amount", [0, 3, 31, 32, 200, -1])
def test_shift_by_a_constant(amount: int) -> None:
    values = integers(32)
    n = unsigned(amount, 32)
    verify(f"shl.b32 d, a, {amount}", [values, [0]], lambda x, _: x << n if n < 32 else 0)
    verify(f"shr.u32 d, a, {amount}", [values, [0]], lambda x, _: x >> n)
    verify(f"shr.s32 d, a, {amount}", [values, [0]], lambda x, _: signed(x, 32) >> min(n, 32))


@pytest.mark.parametrize("mode", ["clamp", "wrap"])
def test_funnel_shift(mode: str) -> None:
    values = integers(32)
    columns = [values, values, AMOUNTS]

    def amount(n: int) -> int:
        return min(n, 32) if mode == "clamp" else n & 31

    verify(f"shf.l.{mode}.b32 d, a, b, c", columns, lambda lo, hi, n: (hi << 32 | lo) << amount(n) >> 32)
    verify(f"shf.r.{mode}.b32 d, a, b, c", columns, lambda lo, hi, n: (hi << 32 | lo) >> amount(n))


def lop3(table: int, x: int, y: int, z: int) -> int:
    return sum((table >> ((x >> i & 1) << 2 | (y >> i & 1) << 1 | (z >> i & 1)) & 1) << i for i in range(32))


@pytest.mark.parametrize("table", range(256))
def test_lop3(table: int) -> None:
    values = [0xF0F0F0F0, 0xCCCCCCCC, 0xAAAAAAAA, 0, 0xFFFFFFFF, 0x12345678]
    verify(
        f"lop3.b32 d, a, b, c, {table}",
        [[0xF0F0F0F0, 7], [0xCCCCCCCC, 9], [0xAAAAAAAA, *values], [0]],
        lambda x, y, z, _: lop3(table, x, y, z),
    )


@pytest.mark.parametrize("combination", ["or", "and"])
def test_lop3_with_predicate(combination: str) -> None:
    def expected(x: int, y: int, z: int, _: int, q: int) -> tuple[int, int]:
        result = lop3(0x80, x, y, z)
        return result, LOGIC[combination](int(result != 0), q)

    columns = [[0, 1, 0xF0], [0, 1, 3], [0, 1], [0], [0, 1]]
    verify(f"lop3.{combination}.b32 d|p, a, b, c, 0x80, q", columns, expected)
    verify(f"lop3.{combination}.b32 _|p, a, b, c, 0x80, q", columns, expected)


@pytest.mark.parametrize("bits", [32, 64])
def test_counts(bits: int) -> None:
    values = integers(bits)
    verify(f"popc.b{bits} d, a", [values], lambda x: x.bit_count())
    verify(f"clz.b{bits} d, a", [values], lambda x: bits - x.bit_length())
    verify(f"brev.b{bits} d, a", [values], lambda x: int(f"{x:0{bits}b}"[::-1], 2))


@pytest.mark.parametrize("type", ["u32", "s32", "u64", "s64"])
def test_bfind(type: str) -> None:
    bits = int(type[1:])

    def position(x: int) -> int:
        if type[0] == "s" and x >> (bits - 1):
            x = unsigned(~x, bits)
        return x.bit_length() - 1

    values = [*integers(bits), 0]
    verify(f"bfind.{type} d, a", [values], position)
    verify(f"bfind.shiftamt.{type} d, a", [values], lambda x: -1 if position(x) < 0 else bits - 1 - position(x))


def fns(mask: int, base: int, offset: int) -> int:
    if offset == 0:
        return base if mask >> base & 1 else -1
    position, count, step = base, abs(offset) - 1, 1 if offset > 0 else -1
    while 0 <= position < 32:
        if mask >> position & 1:
            if count == 0:
                return position
            count -= 1
        position += step
    return -1


def test_fns() -> None:
    offsets = [0, 1, 2, 3, 16, 17, 32, 33, -1, -2, -5, -31, -32, -33, 0x7FFFFFFF, -0x80000000]
    verify(
        "fns.b32 d, a, b, c",
        [integers(32), list(range(32)), offsets],
        lambda mask, base, offset: fns(mask, base, signed(offset, 32)),
        limit=1000,
    )
    beyond = [32, 33, 255, 0x80000000]
    verify(
        "fns.b32 d, a, b, c",
        [integers(32), beyond, offsets],
        lambda mask, base, offset: 0 if signed(offset, 32) == -0x80000000 else -1,
    )


def within(bits: int, number: int) -> int:
    """A position or length as a GPU takes it: 8 bits of it for 32 bits, all for 64."""
    return number & 0xFF if bits == 32 else min(number, 255)


def bfe(type: str, x: int, position: int, length: int) -> int:
    last = int(type[1:]) - 1
    position, length = within(last + 1, position), within(last + 1, length)
    sign = 0 if type[0] == "u" or length == 0 else x >> min(position + length - 1, last) & 1
    return sum((x >> (position + i) & 1 if i < length and position + i <= last else sign) << i for i in range(last + 1))


POSITIONS = [0, 1, 5, 8, 16, 31, 32, 33, 63, 64, 100, 255, 256, 261, 0x80000000, 0xFFFFFFFF]


@pytest.mark.parametrize("type", ["u32", "s32", "u64", "s64"])
def test_bfe(type: str) -> None:
    columns = [integers(int(type[1:])), POSITIONS, POSITIONS]
    verify(f"bfe.{type} d, a, b, c", columns, lambda x, n, m: bfe(type, x, n, m), limit=500)


@pytest.mark.parametrize(("position", "length"), [(0, 8), (8, 8), (24, 8), (5, 0), (30, 5), (0, 32)])
def test_bfe_with_constants(position: int, length: int) -> None:
    for type in ("u32", "s32"):
        verify(
            f"bfe.{type} d, a, {position}, {length}",
            [integers(32), [0], [0]],
            lambda x, _n, _m, type=type: bfe(type, x, position, length),
        )


@pytest.mark.parametrize("bits", [32, 64])
def test_bfi(bits: int) -> None:
    def expected(x: int, into: int, position: int, length: int) -> int:
        position, length = within(bits, position), within(bits, length)
        for i in range(min(length, bits - position)):
            bit = 1 << (position + i)
            into = into & ~bit | (x >> i & 1) << (position + i)
        return into

    values = integers(bits)
    verify(f"bfi.b{bits} d, a, b, c, e", [values, values, POSITIONS, POSITIONS], expected, limit=500)


@pytest.mark.parametrize("mode", ["clamp", "wrap"])
def test_bmsk(mode: str) -> None:
    def expected(position: int, width: int) -> int:
        if mode == "wrap":
            position, width = position & 31, width & 31
        return ((1 << min(width, 64)) - 1) << position if position < 32 else 0

    verify(f"bmsk.{mode}.b32 d, a, b", [POSITIONS, POSITIONS], expected)


@pytest.mark.parametrize("mode", ["clamp", "wrap"])
@pytest.mark.parametrize("type", ["u32", "s32"])
def test_szext(mode: str, type: str) -> None:
    def expected(x: int, length: int) -> int:
        length = clamp(length, 0, 32) if mode == "clamp" else length & 31
        if length == 0:
            return 0
        low = unsigned(x, length)
        return signed(low, length) if type[0] == "s" else low

    verify(f"szext.{mode}.{type} d, a, b", [integers(32), [*POSITIONS, 0xFFFFFFFF]], expected)


def prmt(x: int, y: int, control: int) -> int:
    result = 0
    for i in range(4):
        selector = control >> 4 * i & 0xF
        byte = (y << 32 | x) >> 8 * (selector & 7) & 0xFF
        if selector & 8:
            byte = 0xFF if byte & 0x80 else 0
        result |= byte << 8 * i
    return result


WORDS = [0x83828180, 0x07060504, 0x7F80FF00, 0xDEADBEEF]


def test_prmt() -> None:
    controls = [0x3210, 0x7654, 0x0123, 0x5410, 0x7632, 0xBA98, 0xFEDC, 0x9180, 0xFFFF8888, 0x12345678]
    verify("prmt.b32 d, a, b, c", [WORDS, WORDS, controls], prmt)
    for control in controls:
        verify(
            f"prmt.b32 d, a, b, {control}", [WORDS, WORDS, [0]], lambda x, y, _, control=control: prmt(x, y, control)
        )


def byte_of(mode: str, i: int, n: int) -> int:
    """Which byte mode gives for byte i of the result, as the ISA's table has it."""
    return {
        "f4e": n + i,
        "b4e": (n - i) % 8,
        "rc8": n,
        "ecl": max(i, n),
        "ecr": min(i, n),
        "rc16": i % 2 + 2 * (n % 2),
    }[mode]


@pytest.mark.parametrize("mode", ["f4e", "b4e", "rc8", "ecl", "ecr", "rc16"])
def test_prmt_modes(mode: str) -> None:
    def expected(x: int, y: int, c: int) -> int:
        return sum(((y << 32 | x) >> 8 * byte_of(mode, i, c & 3) & 0xFF) << 8 * i for i in range(4))

    verify(f"prmt.b32.{mode} d, a, b, c", [WORDS, WORDS, [0, 1, 2, 3, 6, 0xFFFFFFFF]], expected)
    verify(f"prmt.b32.{mode} d, a, b, 2", [WORDS, WORDS, [0]], lambda x, y, _: expected(x, y, 2))
