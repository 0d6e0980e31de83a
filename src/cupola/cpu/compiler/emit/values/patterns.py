"""Values whose lanes differ by numbers that are known when code is written.

``threadIdx.x % 8`` or ``threadIdx.x / 8 * 16`` does not grow by the same number from lane to lane. But if the first
lane's ``threadIdx.x`` is a multiple of the width, the difference of every lane to the first one is a constant. A
*pattern* is one scalar and these differences. To follow bit operations, a pattern also knows which bits of the scalar
may be set. As long as no difference has one of these bits, adding it only sets bits, so shifts, masks and extensions
can be applied to the scalar and the differences separately. An access at addresses that are a pattern is a few vector
loads and a shuffle (see spans.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cupola.cpu.compiler.records import dataclass

from .values import BITS, Affine, Value, signed

if TYPE_CHECKING:
    from .builder import Builder


@dataclass(frozen=True, slots=True)
class Pattern:
    """Lane ``i`` holds ``base + offsets[i]`` modulo the width of the type.

    ``base`` is a scalar LLVM operand, ``bits`` has all bits that may be set in it.
    """

    base: str
    offsets: tuple[int, ...]
    bits: int

    @property
    def is_uniform(self) -> bool:
        return not any(self.offsets)

    @property
    def used(self) -> int:
        """The bits that may be set in the offsets; -1 when one is negative."""
        used = 0
        for offset in self.offsets:
            used |= offset if offset >= 0 else -1
        return used

    @property
    def is_disjoint(self) -> bool:
        """Whether adding an offset is setting bits that are zero."""
        return not self.used & self.bits


def pattern_of(builder: Builder, value: Value) -> Pattern | None:
    """A value as a pattern; uniform ones have no offsets."""
    if value.vector:
        return value.pattern
    number = value.integer
    mask = (1 << BITS[value.type]) - 1
    return Pattern(value.ir, (0,) * builder.width, mask if number is None else number & mask)


def line(pattern: Pattern) -> Affine | None:
    """The pattern as a line over the lanes, if it is one."""
    first, second = pattern.offsets[:2]
    step = second - first
    if not all(offset == first + lane * step for lane, offset in enumerate(pattern.offsets)) or first:
        return None
    return Affine(pattern.base, step)


def combine(builder: Builder, op: str, a: Value, b: Value) -> Pattern | None:
    """The pattern of ``a op b``, or None if the result is not a pattern."""
    x, y = pattern_of(builder, a), pattern_of(builder, b)
    if x is None or y is None or a.type[0] != "i" or a.type == "i1":
        return None
    name, bits = op.split()[0], BITS[a.type]
    number = b.integer
    if name in ("add", "sub"):
        return _sum(builder, name, a.type, x, y)
    if name in ("mul", "shl"):
        if number is None and name == "mul" and a.integer is not None:
            x, number = y, a.integer
        if number is None or number < 0 or (name == "shl" and number >= bits):
            return None
        factor = 1 << number if name == "shl" else number
        return _made(builder, "mul", a.type, x, factor, tuple(o * factor for o in x.offsets), _product(x.bits, factor))
    apart = x.is_disjoint and y.is_disjoint and not (x.bits | x.used) & (y.bits | y.used)
    if name in ("or", "xor") and apart:
        return _sum(builder, "add", a.type, x, y)
    if number is None or not x.is_disjoint:
        return None
    whole = (1 << bits) - 1
    if name == "and":
        return _made(builder, "and", a.type, x, number, tuple(o & number & whole for o in x.offsets), x.bits & number)
    is_positive = not (x.bits | x.used) >> (bits - 1)
    if 0 <= number < bits and (name == "lshr" or (name == "ashr" and is_positive)):
        offsets = tuple((o & whole) >> number for o in x.offsets)
        return _made(builder, "lshr", a.type, x, number, offsets, x.bits >> number)
    return None


def widened(builder: Builder, op: str, value: Value, type: str) -> Pattern | None:
    """The pattern after ``zext``, ``sext`` or ``trunc``."""
    pattern = value.pattern
    if pattern is None or type == "i1" or op not in ("zext", "sext", "trunc"):
        return None
    bits = BITS[value.type]
    if op == "trunc":
        mask = (1 << BITS[type]) - 1
        offsets = tuple(signed(o, BITS[type]) for o in pattern.offsets)
        return Pattern(builder.cast("trunc", Value(pattern.base, value.type), type).ir, offsets, pattern.bits & mask)
    highest = pattern.bits + max(pattern.offsets)
    if min(pattern.offsets) < 0 or highest >> (bits - (op == "sext")):
        return None  # some lane might wrap, or be negative
    base = builder.cast("zext", Value(pattern.base, value.type), type)
    return Pattern(base.ir, pattern.offsets, pattern.bits)


def reversed_bits(builder: Builder, value: Value) -> Pattern | None:
    """The pattern with the bits of each lane in reverse order."""
    pattern, bits = value.pattern, BITS[value.type]
    if pattern is None or not pattern.is_disjoint:
        return None

    def reverse(number: int) -> int:
        return int(f"{number & ((1 << bits) - 1):0{bits}b}"[::-1], 2)

    base = builder.intrinsic("bitreverse", Value(pattern.base, value.type))
    return Pattern(base.ir, tuple(map(reverse, pattern.offsets)), reverse(pattern.bits))


def _sum(builder: Builder, op: str, type: str, x: Pattern, y: Pattern) -> Pattern:
    bits, sign = BITS[type], -1 if op == "sub" else 1
    offsets = tuple(signed(a + sign * b, bits) for a, b in zip(x.offsets, y.offsets, strict=True))
    if not y.bits:
        return Pattern(x.base, offsets, x.bits)
    if op == "add" and not x.bits:
        return Pattern(y.base, offsets, y.bits)
    base = builder.binary(op, Value(x.base, type), Value(y.base, type))
    if op == "add" and not x.bits & y.bits:
        return Pattern(base.ir, offsets, x.bits | y.bits)
    whole, lowest = (1 << bits) - 1, (x.bits | y.bits) & -(x.bits | y.bits)
    highest = x.bits + y.bits
    below = whole if op == "sub" or highest > whole else (1 << highest.bit_length()) - 1
    return Pattern(base.ir, offsets, below & -lowest)


def _product(bits: int, factor: int) -> int:
    """The bits that may be set in a product."""
    lowest = (bits & -bits) * (factor & -factor)
    if factor & (factor - 1) == 0:
        return bits * factor
    return ((1 << (bits * factor).bit_length()) - 1) & -lowest if lowest else 0


def _made(
    builder: Builder, op: str, type: str, x: Pattern, number: int, offsets: tuple[int, ...], bits: int
) -> Pattern:
    """What an operation with a constant gives, done to the scalar and to each offset."""
    width = BITS[type]
    bits &= (1 << width) - 1
    offsets = tuple(signed(offset, width) for offset in offsets)
    if not bits:
        return Pattern("0", offsets, 0)
    return Pattern(builder.binary(op, Value(x.base, type), builder.constant(type, number)).ir, offsets, bits)
