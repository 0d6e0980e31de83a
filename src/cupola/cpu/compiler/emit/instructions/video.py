"""Video instructions (PTX ISA, "Scalar Video Instructions" and "SIMD Video Instructions").

A scalar one takes a byte, a halfword or all of each operand, extends it by its type, computes in full precision,
saturates to the destination's part, and adds the third operand, takes the smaller or larger of the two, or puts the
result into a part of it. The others do that for two halfwords or four bytes at once; there, a selector lists what part
of the eight bytes ``{b, a}`` goes where, and a mask of the destination says which results count.

Newer GPUs have few of these instructions; NVIDIA's assembler makes the others of plain ones, and that is not always
what the pseudo-code of the ISA says. Where it is not (tests/ptx/recorded/video.txt), this does what the GPU does:

- the sum of two unsigned words has no carry, so that ``.sat`` finds nothing to saturate, and ``.min`` and ``.max`` of
  a sum or difference take one that has the upper bit for larger than all words;
- a left shift keeps 34 bits, and ``.sat`` of a shift sees the whole destination, never a part;
- ``.sat`` to an unsigned part takes a negative number for a large one;
- into the part ``h1`` goes the upper half of a sum, difference, minimum or maximum, not the lower one;
- the third operand is signed in an unsigned ``vmad``, and in a ``vset`` that compares signed numbers.

All is computed in 64 bits, which hold every sum of 32-bit numbers; ``vmad`` needs more.
"""

from __future__ import annotations

import re

from cupola.cpu.compiler.emit.values.builder import Builder, constant
from cupola.cpu.compiler.emit.values.values import Value

from .registry import Operation, instruction

SECONDARY = "sat add min max"
COMPARISONS = {"eq": "eq", "ne": "ne", "lt": "slt", "le": "sle", "gt": "sgt", "ge": "sge"}
WIDE = "i64"
PLAIN = ("vadd", "vsub", "vabsdiff", "vmin", "vmax")
SIMD = ("vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax")


def wide(number: int) -> Value:
    return constant(WIDE, number)


def extract(b: Builder, word: Value, shift: int, width: int, *, signed: bool) -> Value:
    """A part of a 32-bit word, extended to 64 bits by its sign or by zeros."""
    return _field(b, b.cast("zext", word, WIDE), shift, width, signed=signed)


def part_of(selector: str) -> tuple[int, int]:
    """Position and width of ``b2``, ``h1``, or of the whole word; a minus in front says nothing of that."""
    selector = selector.lstrip("-")
    if not selector:
        return 0, 32
    width = 8 if selector[0] == "b" else 16
    return width * int(selector[1]), width


def clamp(b: Builder, value: Value, width: int, *, signed: bool) -> Value:
    low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if signed else (0, (1 << width) - 1)
    return b.intrinsic("smin", b.intrinsic("smax", value, constant(value.type, low)), constant(value.type, high))


def combine(b: Builder, name: str, x: Value, y: Value) -> Value:
    """What ``vadd``, ``vsub``, ``vavrg``, ``vabsdiff``, ``vmin`` and ``vmax`` make of two numbers."""
    if name == "vadd":
        return b.binary("add", x, y)
    if name == "vsub":
        return b.binary("sub", x, y)
    if name == "vavrg":
        # Halves go up: (x + y + (x + y >= 0)) / 2, rounded down.
        total = b.binary("add", x, y)
        bias = b.binary("sub", wide(1), b.binary("lshr", total, wide(63)))
        return b.binary("ashr", b.binary("add", total, bias), wide(1))
    if name == "vabsdiff":
        return b.intrinsic("abs", b.binary("sub", x, y), "i1 false")
    return b.intrinsic(f"s{name[1:]}", x, y)


def saturate(b: Builder, op: Operation, value: Value, width: int, *, signed: bool) -> Value:
    """``.sat`` for a destination of so many bits."""
    if op.opcode in ("vshl", "vshr"):
        return clamp(b, value, 32, signed=signed)
    if width == 32 or signed:
        return clamp(b, value, width, signed=signed)
    return b.intrinsic("umin", b.binary("and", value, wide(0xFFFFFFFF)), wide((1 << width) - 1))


def finish(b: Builder, op: Operation, value: Value, third: Value | None, *, signed: bool) -> Value:
    """Saturate, then use the third operand as the instruction says."""
    shift, width = part_of(op.parts[0])
    if op.has("sat"):
        value = saturate(b, op, value, width, signed=signed)
    if third is None:
        return b.cast("trunc", value, "i32")
    if width < 32:
        word = b.cast("trunc", value, "i32")
        mask = (1 << width) - 1 << shift
        if op.parts[0] != "h1" or op.opcode not in PLAIN:
            word = b.binary("shl", word, constant("i32", shift))
        elif op.has("sat"):
            word = b.binary("and", word, constant("i32", 0xFFFF))
        part = b.binary("and", word, constant("i32", mask))
        return b.binary("or", part, b.binary("and", third, constant("i32", ~mask)))
    other = b.extend(third, value.type, is_signed=signed)
    secondary = op.one_of("add", "min", "max")
    value = b.binary("add", value, other) if secondary == "add" else b.intrinsic(f"s{secondary}", value, other)
    return b.cast("trunc", value, "i32")


def operands(b: Builder, op: Operation, types: tuple[str, ...], *words: Value) -> list[Value]:
    return [
        extract(b, word, *part_of(part), signed=type[0] == "s")
        for word, part, type in zip(words, op.parts[1:], types, strict=False)
    ]


def wrong_part(op: Operation, pattern: str, destination: str) -> str | None:
    """What is wrong with a part of a register that the instruction does not take, or None."""
    for index, part in enumerate(op.parts):
        taken = pattern if index else destination
        if part and not re.fullmatch(taken, part.lstrip("-") if op.opcode == "vmad" and index else part):
            return f"'{op.opcode}' does not take the part '.{part}' there"
    return None


SCALAR_PART = "b[0-3]|h[01]"


def objection(op: Operation, sources: int) -> str | None:
    """Whether the third source fits what is done with it, and the parts are those of scalar instructions."""
    if op.opcode == "vmad":
        return wrong_part(op, f"({SCALAR_PART})?", "")
    if wrong := wrong_part(op, SCALAR_PART, SCALAR_PART):
        return wrong
    uses = bool(op.one_of("add", "min", "max")) or bool(op.parts[0])
    if uses != (sources == 3):
        return f"'{op.opcode}' takes {'three' if uses else 'two'} source operands here"
    if op.parts[0] and op.one_of("add", "min", "max"):
        return f"'{op.opcode}' has either a part as its destination or a secondary operation"
    return None


@instruction(*PLAIN, on="u32 s32", modifiers=SECONDARY, sources=(2, 3), objection=objection)
def scalar(b: Builder, op: Operation, x: Value, y: Value, third: Value | None = None) -> Value:
    left, right = operands(b, op, op.types[1:], x, y)
    value = combine(b, op.opcode, left, right)
    if op.opcode in ("vadd", "vsub") and set(op.types) == {"u32"}:
        if op.one_of("min", "max"):
            value = b.cast("sext", b.cast("trunc", value, "i32"), WIDE)
            value = b.binary("and", value, wide((1 << 40) - 1))
        elif op.opcode == "vadd":
            value = b.binary("and", value, wide(0xFFFFFFFF))
    return finish(b, op, value, third, signed=op.types[0] == "s32")


@instruction("vshl", "vshr", on="u32", modifiers=f"{SECONDARY} clamp wrap", sources=(2, 3), objection=objection)
def shift(b: Builder, op: Operation, x: Value, y: Value, third: Value | None = None) -> Value:
    left, count = operands(b, op, op.types[1:], x, y)
    count = b.intrinsic("umin", count, wide(32)) if op.has("clamp") else b.binary("and", count, wide(31))
    signed = op.types[1] == "s32"
    if op.opcode == "vshl":
        # 64 bits when whole words are moved by 32, and a sign.
        result = b.binary("shl", b.extend(left, "i128", is_signed=True), b.cast("zext", count, "i128"))
        if op.has("sat"):
            up = constant("i128", 128 - 34)
            result = b.binary("ashr", b.binary("shl", result, up), up)
    else:
        result = b.binary("ashr" if signed else "lshr", left, count)
    return finish(b, op, result, third, signed=op.types[0] == "s32")


@instruction(
    "vset", on="u32 s32", modifiers=f"add min max {' '.join(COMPARISONS)}", sources=(2, 3), objection=objection
)
def compare(b: Builder, op: Operation, x: Value, y: Value, third: Value | None = None) -> Value:
    left, right = operands(b, op, op.types, x, y)
    found = b.compare(f"icmp {COMPARISONS[op.one_of(*COMPARISONS)]}", left, right)
    return finish(b, op, b.cast("zext", found, WIDE), third, signed="s32" in op.types)


@instruction("vmad", on="u32 s32", modifiers="sat shr7 shr15 po", sources=3, objection=objection)
def multiply_and_add(b: Builder, op: Operation, x: Value, y: Value, z: Value) -> Value:
    """The product of two parts plus a word, or plus one more (``.po``); operands may be negated.

    Whole words and their types make 66 bits, so the sum is made in 128.
    """
    negated = [part.startswith("-") for part in op.parts[1:]]
    minus = negated[0] != negated[1]
    signed = "s32" in op.types[1:] or minus or negated[2]
    left, right = (
        b.extend(v, "i128", is_signed=type == "s32")
        for v, type in zip(operands(b, op, op.types[1:], x, y), op.types[1:], strict=True)
    )
    product = b.binary("mul", left, right)
    addend = b.extend(z, "i128", is_signed=True)
    zero = constant("i128", 0)
    if not op.has("po"):
        if minus:
            product = b.binary("sub", zero, product)
        elif negated[2]:
            addend = b.binary("sub", zero, addend)
    total = b.binary("add", product, addend)
    if op.has("po"):
        total = b.binary("add", total, constant("i128", 1))
    scale = {"shr7": 7, "shr15": 15}.get(op.one_of("shr7", "shr15"), 0)
    if scale and not signed:
        total = b.binary("and", total, constant("i128", (1 << 64) - 1))
    total = b.binary("ashr", total, constant("i128", scale))
    if op.has("sat"):
        low, high = (-(1 << 31), (1 << 31) - 1) if signed else (0, (1 << 32) - 1)
        total = b.intrinsic("smin", b.intrinsic("smax", total, constant("i128", low)), constant("i128", high))
    return b.cast("trunc", total, "i32")


def simd_objection(op: Operation, sources: int) -> str | None:
    if op.opcode[-1] == "2":
        return wrong_part(op, "h[0-3]{2}", "h1?0?")
    return wrong_part(op, "b[0-7]{4}", "b3?2?1?0?")


@instruction(
    *(f"{name}{count}" for name in SIMD for count in "24"),
    on="u32 s32",
    modifiers="sat add",
    sources=3,
    objection=simd_objection,
)
@instruction(
    "vset2", "vset4", on="u32 s32", modifiers=f"add {' '.join(COMPARISONS)}", sources=3, objection=simd_objection
)
def simd(b: Builder, op: Operation, x: Value, y: Value, z: Value) -> Value:
    """Two or four small integers at once; the results that the mask names are summed up (``.add``) or merged."""
    name, count = op.opcode[:-1], int(op.opcode[-1])
    width = 32 // count
    types = op.types if name == "vset" else op.types[1:]
    bytes_of_both = b.binary("or", b.cast("zext", x, WIDE), b.binary("shl", b.cast("zext", y, WIDE), wide(32)))
    choices = [_digits(op.parts[1], range(count)), _digits(op.parts[2], range(count, 2 * count))]
    result = z
    for index in sorted(_digits(op.parts[0], range(count))):
        left, right = (
            _field(b, bytes_of_both, width * places[index], width, signed=type == "s32")
            for places, type in zip(choices, types, strict=True)
        )
        if name == "vset":
            part = b.cast("zext", b.compare(f"icmp {COMPARISONS[op.one_of(*COMPARISONS)]}", left, right), WIDE)
        else:
            part = combine(b, name, left, right)
        if op.has("sat"):
            part = clamp(b, part, width, signed=op.types[0] == "s32")
        word = b.cast("trunc", part, "i32")
        if op.has("add"):
            result = b.binary("add", result, word)
        else:
            mask = (1 << width) - 1 << width * index
            moved = b.binary("and", b.binary("shl", word, constant("i32", width * index)), constant("i32", mask))
            result = b.binary("or", b.binary("and", result, constant("i32", ~mask)), moved)
    return result


def _digits(selector: str, default: range) -> list[int]:
    """``h31`` as [1, 3]: the lowest first."""
    return [int(digit) for digit in reversed(selector[1:])] if selector else list(default)


def _field(b: Builder, value: Value, shift: int, width: int, *, signed: bool) -> Value:
    """A part of 64 bits, extended by its sign or by zeros."""
    up = b.binary("shl", value, wide(64 - shift - width))
    return b.binary("ashr" if signed else "lshr", up, wide(64 - width))
