"""Patterns: what lanes differ by, followed through arithmetic, against the same arithmetic on numbers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cupola.cpu.compiler.emit.values.builder import Builder, constant
from cupola.cpu.compiler.emit.values.patterns import Pattern
from cupola.cpu.compiler.emit.values.values import Value

LANES = range(32)
WORD = 0xFFFFFFFF


def thread_number(builder: Builder) -> Value:
    """%tid.x of a warp: a multiple of 32, with ten bits, plus the lane."""
    return Value("%tid", "i32", True, pattern=Pattern("%first", tuple(LANES), 0x3E0))


def b(number: int, type: str = "i32") -> Value:
    return constant(type, number)


CASES: dict[str, tuple[Callable[[Builder, Value], Value], Callable[[int], int]]] = {
    "remainder": (lambda w, t: w.binary("and", t, b(7)), lambda t: t % 8),
    "quotient": (lambda w, t: w.binary("lshr", t, b(3)), lambda t: t // 8),
    "quotient of a whole warp": (lambda w, t: w.binary("lshr", t, b(5)), lambda t: t // 32),
    "signed quotient": (lambda w, t: w.binary("ashr", t, b(2)), lambda t: t // 4),
    "product": (lambda w, t: w.binary("mul", b(12), t), lambda t: 12 * t),
    "shift": (lambda w, t: w.binary("shl", t, b(4)), lambda t: t << 4),
    "shift that loses bits": (lambda w, t: w.binary("shl", t, b(27)), lambda t: t << 27),
    "sum": (lambda w, t: w.binary("add", w.binary("and", t, b(3)), w.binary("shl", t, b(1))), lambda t: t % 4 + 2 * t),
    "difference": (lambda w, t: w.binary("sub", w.binary("and", t, b(3)), b(9)), lambda t: t % 4 - 9),
    "remainder by difference": (lambda w, t: w.binary("sub", t, w.binary("and", t, b(-16))), lambda t: t % 16),
    "lane": (lambda w, t: w.binary("sub", t, w.binary("and", t, b(-32))), lambda t: t % 32),
    "bits apart": (lambda w, t: w.binary("or", w.binary("shl", t, b(2)), b(3)), lambda t: 4 * t + 3),
    "flipped bit": (lambda w, t: w.binary("xor", w.binary("shl", t, b(1)), b(1)), lambda t: 2 * t + 1),
    "wide": (lambda w, t: w.cast("sext", w.binary("mul", w.binary("and", t, b(3)), b(5)), "i64"), lambda t: t % 4 * 5),
    "narrow": (lambda w, t: w.cast("trunc", w.binary("shl", t, b(3)), "i8"), lambda t: t * 8 % 256),
    "reversed": (
        lambda w, t: w.binary("lshr", w.intrinsic("bitreverse", t), b(22)),
        lambda t: int(f"{t:010b}"[::-1], 2),
    ),
}


def evaluate(builder: Builder, name: str, first: int) -> int:
    """The value of a scalar that the builder has written, by reading its lines."""
    if name == "%first":
        return first
    if not name.startswith("%"):
        return int(name)
    text = next(line.split(" = ")[1] for line in builder.lines if line.strip().startswith(f"{name} = "))
    words = text.replace(",", " ").split()
    if words[0] == "call":
        bits, argument = int(words[1][1:]), words[-1].rstrip(")")
        return int(f"{evaluate(builder, argument, first):0{bits}b}"[::-1], 2)
    bits = int(words[1][1:])
    x = evaluate(builder, words[2], first) & ((1 << bits) - 1)
    if words[0] in ("zext", "trunc"):
        return x & ((1 << int(words[-1][1:])) - 1)
    y = int(words[3]) if not words[3].startswith("%") else evaluate(builder, words[3], first)
    operations = {"and": x & y, "add": x + y, "sub": x - y, "mul": x * y, "shl": x << (y & 63), "lshr": x >> (y & 63)}
    return operations[words[0]] & ((1 << bits) - 1)


@pytest.mark.parametrize("name", CASES)
def test_lanes_are_followed(name: str) -> None:
    write, compute = CASES[name]
    builder = Builder(32)
    value = write(builder, thread_number(builder))
    pattern = value.pattern or Pattern(value.ir, (0,) * 32, WORD)
    assert value.pattern is not None or not value.vector
    mask = (1 << int(value.type[1:])) - 1
    for first in (0, 32, 64, 352, 992):
        base = evaluate(builder, pattern.base, first)
        assert not base & ~pattern.bits & mask, "a bit is set that cannot be"
        assert [(base + offset) & mask for offset in pattern.offsets] == [compute(first + i) & mask for i in LANES]


@pytest.mark.parametrize(
    "write",
    [
        lambda w, t: w.binary("mul", t, t),
        lambda w, t: w.binary("and", w.binary("add", t, Value("%n", "i32")), b(7)),
        lambda w, t: w.binary("lshr", w.binary("sub", t, b(1)), b(2)),
        lambda w, t: w.cast("sext", w.binary("add", t, Value("%n", "i32")), "i64"),
        lambda w, t: w.cast("zext", w.binary("sub", t, b(4)), "i64"),
        lambda w, t: w.binary("xor", t, b(1)),
        # A carry of the sum may reach bit 6.
        lambda w, t: w.binary("or", w.binary("add", w.binary("and", t, b(63)), w.binary("and", t, b(31))), b(64)),
        lambda w, t: w.binary("shl", b(1), t),
    ],
)
def test_what_is_no_pattern(write: Callable[[Builder, Value], Value]) -> None:
    builder = Builder(32)
    value = write(builder, thread_number(builder))
    assert value.vector and value.pattern is None
