"""Video instructions against the pseudo-code of the ISA (9.7.18), in integers of any size.

Where a GPU departs from it, as `cupola/cpu/compiler/emit/instructions/video.py` tells, so does this.
"""

from __future__ import annotations

import operator
import random
from collections.abc import Callable, Sequence

import pytest

from tests.ptx.harness import verify
from tests.ptx.oracle import clamp, integers, signed, unsigned

WORDS = integers(32)
COUNTS = [0, 1, 7, 8, 15, 16, 31, 32, 33, 63, 64, 255, 0x1001F, 0xFFFFFFFF]
COMPARISONS = {name: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")}


def bounds(type: str, bits: int) -> tuple[int, int]:
    """The smallest and the largest number of a type of so many bits."""
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if type[0] == "s" else (0, (1 << bits) - 1)


def extend(pattern: int, bits: int, type: str) -> int:
    return signed(pattern, bits) if type[0] == "s" else unsigned(pattern, bits)


def part(word: int, type: str, selector: str) -> int:
    """partSelectSignExtend."""
    bits = {"": 32, "b": 8, "h": 16}[selector[:1]]
    return extend(word >> bits * int(selector[1:] or 0), bits, type)


def average(x: int, y: int) -> int:
    return (x + y + (x + y >= 0)) >> 1


BINARY: dict[str, Callable[[int, int], int]] = {
    "vadd": operator.add,
    "vsub": operator.sub,
    "vavrg": average,
    "vabsdiff": lambda x, y: abs(x - y),
    "vmin": min,
    "vmax": max,
}
SECONDARY: dict[str, Callable[[int, int], int]] = {"add": operator.add, "min": min, "max": max}


def finish(name: str, value: int, c: int, type: str, destination: str, saturate: bool, secondary: str) -> int:
    """optSaturate, optSecondaryOp, optMerge."""
    bits = {"": 32, "b": 8, "h": 16}[destination[:1]]
    if saturate and name in ("vshl", "vshr"):
        value = clamp(value, *bounds(type, 32))
    elif saturate:
        value = unsigned(value, 32) if destination and type == "u32" else value
        value = clamp(value, *bounds(type, bits))
    if secondary:
        return unsigned(SECONDARY[secondary](value, extend(c, 32, type)), 32)
    if not destination:
        return unsigned(value, 32)
    at = bits * int(destination[1:])
    mask = ((1 << bits) - 1) << at
    if destination == "h1" and name in BINARY:
        return c & ~mask | (value & 0xFFFF if saturate else value) & mask
    return c & ~mask | (value << at) & mask


def choices(name: str, *lists: Sequence[str], count: int) -> list[tuple[str, ...]]:
    rng = random.Random(name)
    return sorted({tuple(rng.choice(items) for items in lists) for _ in range(count)})


TYPES = ["u32", "s32"]
PARTS = ["", "", "b0", "b1", "b2", "b3", "h0", "h1"]
DESTINATIONS = ["", "", "", "b0", "b2", "b3", "h0", "h1"]


def dotted(register: str, selector: str) -> str:
    return f"{register}.{selector}" if selector else register


def verify_scalar(
    head: str, selectors: tuple[str, str, str], secondary: str, second: Sequence[int], expected: Callable[..., int]
) -> None:
    destination, left, right = selectors
    text = f"{head}{'.' * bool(secondary)}{secondary} {dotted('d', destination)}, {dotted('a', left)}, "
    text += dotted("b", right)
    if destination or secondary:
        verify(f"{text}, c", [WORDS, second, WORDS], expected, limit=48)
    else:
        verify(text, [WORDS, second], lambda x, y: expected(x, y, 0), limit=48)


def check_scalar(
    name: str, to: str, ta: str, tb: str, sat: str, secondary: str, destination: str, left: str, right: str
) -> None:
    destination = "" if secondary else destination

    def expected(x: int, y: int, c: int) -> int:
        value = BINARY[name](part(x, ta, left), part(y, tb, right))
        if (to, ta, tb) == ("u32", "u32", "u32") and name in ("vadd", "vsub"):
            if secondary in ("min", "max"):
                value = signed(value, 32) & ((1 << 40) - 1)
            elif name == "vadd":
                value = unsigned(value, 32)
        return finish(name, value, c, to, destination, bool(sat), secondary)

    verify_scalar(f"{name}.{to}.{ta}.{tb}{sat}", (destination, left, right), secondary, WORDS, expected)


@pytest.mark.parametrize("name", ["vadd", "vsub", "vabsdiff", "vmin", "vmax"])
def test_scalar(name: str) -> None:
    lists = TYPES, TYPES, TYPES, ["", ".sat"], ["", "", "add", "min", "max"], DESTINATIONS, PARTS, PARTS
    for chosen in choices(name, *lists, count=9):
        check_scalar(name, *chosen)


def check_shift(
    name: str, mode: str, to: str, ta: str, sat: str, secondary: str, destination: str, left: str, right: str
) -> None:
    destination = "" if secondary else destination

    def expected(x: int, y: int, c: int) -> int:
        count = part(y, "u32", right)
        count = min(count, 32) if mode == "clamp" else count & 31
        value = part(x, ta, left)
        value = value << count if name == "vshl" else value >> count
        if sat and name == "vshl":
            value = signed(value, 34)
        return finish(name, value, c, to, destination, bool(sat), secondary)

    head = f"{name}.{to}.{ta}.u32{sat}.{mode}"
    verify_scalar(head, (destination, left, right), secondary, COUNTS, expected)


@pytest.mark.parametrize("mode", ["clamp", "wrap"])
@pytest.mark.parametrize("name", ["vshl", "vshr"])
def test_shift(name: str, mode: str) -> None:
    lists = TYPES, TYPES, ["", ".sat"], ["", "", "add", "min", "max"], DESTINATIONS, PARTS, ["", "b0", "h0"]
    for chosen in choices(name + mode, *lists, count=8):
        check_shift(name, mode, *chosen)


def check_vset(name: str, ta: str, tb: str, secondary: str, destination: str, left: str, right: str) -> None:
    destination = "" if secondary else destination

    def expected(x: int, y: int, c: int) -> int:
        value = int(COMPARISONS[name](part(x, ta, left), part(y, tb, right)))
        return finish("vset", value, c, "s32" if "s32" in (ta, tb) else "u32", destination, False, secondary)

    verify_scalar(f"vset.{ta}.{tb}.{name}", (destination, left, right), secondary, WORDS, expected)


@pytest.mark.parametrize("name", COMPARISONS)
def test_vset(name: str) -> None:
    lists = TYPES, TYPES, ["", "add", "min", "max"], DESTINATIONS, PARTS, PARTS
    for chosen in choices(name, *lists, count=6):
        check_vset(name, *chosen)


def check_vmad(
    sat: str, scale: str, ta: str, tb: str, left: str, right: str, sx: str, sy: str, sz: str, po: str
) -> None:
    if po:
        sx = sy = sz = ""
    if sz and (sx or sy):
        sz = ""

    def expected(x: int, y: int, z: int) -> int:
        minus = sx != sy
        is_signed = "s32" in (ta, tb) or minus or bool(sz)
        product = part(x, ta, left) * part(y, tb, right)
        c, low = z, 0
        if po:
            low = 1
        elif minus:
            product, low = ~product, 1
        elif sz:
            c, low = unsigned(~c, 32), 1
        total = product + signed(c, 32) + low
        if scale and not is_signed:
            total = unsigned(total, 64)
        total >>= {"": 0, ".shr7": 7, ".shr15": 15}[scale]
        return unsigned(clamp(total, *bounds("s32" if is_signed else "u32", 32)) if sat else total, 32)

    operands = f"{sx}{dotted('a', left)}, {sy}{dotted('b', right)}, {sz}c"
    verify(f"vmad.s32.{ta}.{tb}{sat}{scale}{po} d, {operands}", [WORDS] * 3, expected, limit=48)


@pytest.mark.parametrize("scale", ["", ".shr7", ".shr15"])
@pytest.mark.parametrize("sat", ["", ".sat"])
def test_vmad(sat: str, scale: str) -> None:
    signs = ["", "-"]
    lists = TYPES, TYPES, PARTS, PARTS, signs, signs, signs, ["", ".po"]
    for chosen in choices(sat + scale, *lists, count=9):
        check_vmad(sat, scale, *chosen)


def simd_lists(count: int) -> tuple[list[str], list[str]]:
    """Masks of the destination and selectors of a source, the default twice."""
    if count == 2:
        return ["", "", "h0", "h1", "h10"], ["", "", "h32", "h01", "h13", "h20"]
    return ["", "", "b0", "b31", "b210", "b3210"], ["", "", "b7654", "b0123", "b4271", "b5566"]


def verify_simd(
    head: str, count: int, adds: bool, chosen: tuple[str, str, str], types: tuple[str, str], one: Callable[..., int]
) -> None:
    """``one(x, y)`` is the result of a part, saturated or not."""
    mask, left, right = chosen
    width = 32 // count
    places = [
        [int(digit) for digit in reversed(selector[1:])] if selector else list(default)
        for selector, default in ((mask, range(count)), (left, range(count)), (right, range(count, 2 * count)))
    ]

    def expected(x: int, y: int, c: int) -> int:
        both = y << 32 | x
        result = c
        for index in places[0]:
            values = [extend(both >> width * p[index], width, t) for p, t in zip(places[1:], types, strict=True)]
            value = one(*values)
            if adds:
                result += value
            else:
                field = ((1 << width) - 1) << width * index
                result = result & ~field | (value << width * index) & field
        return unsigned(result, 32)

    text = f"{head}{'.add' * adds} {dotted('d', mask)}, {dotted('a', left)}, {dotted('b', right)}, c"
    verify(text, [WORDS] * 3, expected, limit=48)


def check_simd(name: str, count: int, to: str, ta: str, tb: str, more: str, *chosen: str) -> None:

    def one(x: int, y: int) -> int:
        value = BINARY[name](x, y)
        return clamp(value, *bounds(to, 32 // count)) if more == ".sat" else value

    head = f"{name}{count}.{to}.{ta}.{tb}{'.sat' * (more == '.sat')}"
    verify_simd(head, count, more == ".add", tuple(chosen), (ta, tb), one)


@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("name", BINARY)
def test_simd(name: str, count: int) -> None:
    masks, selectors = simd_lists(count)
    lists = TYPES, TYPES, TYPES, ["", ".sat", ".add"], masks, selectors, selectors
    for chosen in choices(f"{name}{count}", *lists, count=6):
        check_simd(name, count, *chosen)


def check_simd_comparison(name: str, count: int, ta: str, tb: str, more: str, *chosen: str) -> None:

    def one(x: int, y: int) -> int:
        return int(COMPARISONS[name](x, y))

    verify_simd(f"vset{count}.{ta}.{tb}.{name}", count, more == ".add", tuple(chosen), (ta, tb), one)


@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("name", COMPARISONS)
def test_simd_comparison(name: str, count: int) -> None:
    masks, selectors = simd_lists(count)
    for chosen in choices(name, TYPES, TYPES, ["", ".add"], masks, selectors, selectors, count=3):
        check_simd_comparison(name, count, *chosen)
