"""Establishes: where registers hold ``%tid.x``, and what is known because it is a small number.

When a compiler no longer needs ``threadIdx.x``, it may use the same register to count a loop. So the register alone
says nothing, but in a block that only the copy of ``%tid.x`` reaches, it is the thread's number. Signed division by a
power of two has code for a negative ``threadIdx.x``, which never runs, since it has ten bits. And
``for (int i = threadIdx.x; i < 1024; i += 256)`` computes for each thread how many trips it makes: with blocks of 256
threads all make four. Compilers do not know that, so in such loops each thread tests three times whether there is
anything to do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import field

from cupola.cpu.compiler.passes.control_flow import Block
from cupola.cpu.compiler.ptx import ast
from cupola.cpu.compiler.records import dataclass

LARGEST = 1023
"""The largest ``%tid.x``, and all of its bits."""

_WORD = (1 << 32) - 1
_WORDS = frozenset([("u32",), ("s32",), ("b32",)])
_FOLLOWED = frozenset(["mov", "and", "add", "sub", "min", "max", "shr", "shl"])


def copies_of_thread_number(blocks: list[Block]) -> list[frozenset[str]]:
    """The registers that hold ``%tid.x`` in all threads that begin a block, for each block."""
    names: dict[str, int] = {}
    for block in blocks:
        for instruction in block.code():
            if _is_copy(instruction):
                names.setdefault(_target(instruction), 1 << len(names))
    if not names:
        return [frozenset()] * len(blocks)
    every = (1 << len(names)) - 1
    keeps, makes = [], []
    for block in blocks:
        kept, made = every, 0
        for instruction, effect in zip(block.code(), block.effects, strict=True):
            for name in effect.writes:
                bit = names.get(name, 0)
                kept, made = kept & ~bit, made & ~bit
            if _is_copy(instruction):
                made |= names[_target(instruction)]
        keeps.append(kept)
        makes.append(made)
    before = [0] + [every] * (len(blocks) - 1)
    waiting = list(blocks)
    while waiting:
        block = waiting.pop()
        behind = before[block.index] & keeps[block.index] | makes[block.index]
        for successor in block.successors:
            if before[successor.index] & ~behind:
                before[successor.index] &= behind
                waiting.append(successor)
    return [frozenset(name for name, bit in names.items() if bits & bit) for bits in before]


@dataclass(frozen=True, slots=True)
class Range:
    """Numbers of 32 bits without a sign: from ``low`` to ``high``, of which only the bits ``bits`` may be set."""

    low: int
    high: int
    bits: int

    @classmethod
    def of(cls, low: int, high: int, bits: int = _WORD) -> Range:
        return cls(low, min(high, bits), bits & (1 << high.bit_length()) - 1)

    @property
    def number(self) -> int | None:
        """The only number that is left, if it is one."""
        return self.low if self.low == self.high else None

    def signed(self) -> tuple[int, int]:
        """The lowest and the highest as signed numbers."""
        if self.high <= _WORD >> 1:
            return self.low, self.high
        if self.low > _WORD >> 1:
            return self.low - _WORD - 1, self.high - _WORD - 1
        return -(_WORD >> 1) - 1, _WORD >> 1


_ANY = Range(0, _WORD, _WORD)


@dataclass(slots=True)
class Known:
    """What is known because ``%tid.x`` is a small number: of registers with one definition, by their names.

    Attributes
    ----------
    numbers
        Registers that always hold one number, with that.
    conditions
        Predicates that are always true or always false.
    """

    numbers: dict[str, int] = field(default_factory=dict)
    conditions: dict[str, bool] = field(default_factory=dict)


def known_numbers(
    blocks: list[Block],
    copies: list[frozenset[str]],
    single: Set[str],
    constants: Mapping[str, int],
    largest: int = LARGEST,
) -> Known:
    """What follows from ``%tid.x`` being ``largest`` at most."""
    thread = Range.of(0, largest)
    ranges = {name: Range(number & _WORD, number & _WORD, number & _WORD) for name, number in constants.items()}

    def range_of(operand: ast.Operand) -> Range:
        """What an operand may be."""
        if isinstance(operand, ast.Immediate) and operand.kind == "int":
            number = operand.value & _WORD
            return Range(number, number, number)
        if isinstance(operand, ast.Register):
            return thread if operand.name in here else ranges.get(operand.name, _ANY)
        return thread if operand == ast.Special("tid", "x") else _ANY

    found = Known()
    if not any(_is_copy(instruction) for block in blocks for instruction in block.instructions):
        return found
    for block in blocks:
        here = set(copies[block.index])
        for instruction, effect in zip(block.code(), block.effects, strict=True):
            result: Range | None = None
            verdict: bool | None = None
            target = instruction.operands[0] if instruction.operands else None
            if instruction.guard is None and isinstance(target, ast.Register) and target.name in single:
                sources = instruction.operands[1:]
                if instruction.opcode in _FOLLOWED and instruction.modifiers in _WORDS:
                    result = _result(instruction, [range_of(source) for source in sources])
                elif instruction.opcode == "setp" and instruction.modifiers[1:] in _WORDS and len(sources) == 2:
                    verdict = _comparison(instruction.modifiers, range_of(sources[0]), range_of(sources[1]))
            here.difference_update(effect.writes)
            if _is_copy(instruction):
                here.add(_target(instruction))
            elif result is not None:
                ranges[_target(instruction)] = result
                if result.number is not None:
                    found.numbers[_target(instruction)] = result.number
            elif verdict is not None:
                found.conditions[_target(instruction)] = verdict
    return found


def largest_compared(instructions: Iterable[ast.Instruction]) -> int:
    """The largest number that ``%tid.x`` is compared with: in larger blocks, what comes of it depends on the thread."""
    instructions = list(instructions)
    copies = {_target(instruction) for instruction in instructions if _is_copy(instruction)}
    largest = 0
    for instruction in instructions:
        if instruction.opcode in ("setp", "min", "max") and instruction.modifiers[-1:] in _WORDS:
            sources = instruction.operands[1:]
            if any(isinstance(source, ast.Register) and source.name in copies for source in sources):
                numbers = [source.value for source in sources if isinstance(source, ast.Immediate)]
                largest = max([largest, *(number for number in numbers if number <= _WORD >> 1)])
    return largest


def _is_copy(instruction: ast.Instruction) -> bool:
    if instruction.opcode != "mov" or instruction.guard is not None or instruction.modifiers not in _WORDS:
        return False
    target, source = instruction.operands
    return isinstance(target, ast.Register) and source == ast.Special("tid", "x")


def _target(instruction: ast.Instruction) -> str:
    target = instruction.operands[0]
    assert isinstance(target, ast.Register)
    return target.name


def _result(instruction: ast.Instruction, sources: list[Range]) -> Range | None:
    """What an instruction on 32 bits gives; None where nothing is known."""
    is_signed = instruction.modifiers == ("s32",)
    match instruction.opcode, sources:
        case "mov", [source]:
            return source
        case "and", [first, second]:
            return Range.of(0, min(first.high, second.high), first.bits & second.bits)
        case "add", [first, second]:
            low, high = first.low + second.low, first.high + second.high
            return Range.of(low, high) if high <= _WORD else _wrapped(low, high)
        case "sub", [first, second]:
            low, high = first.low - second.high, first.high - second.low
            return Range.of(low, high) if low >= 0 else _wrapped(low, high)
        case "min" | "max", [first, second]:
            choose = min if instruction.opcode == "min" else max
            if is_signed and max(first.high, second.high) > _WORD >> 1:
                return None
            return Range.of(choose(first.low, second.low), choose(first.high, second.high))
        case "shr" | "shl", [source, _]:
            amount = instruction.operands[2]
            if not isinstance(amount, ast.Immediate) or not 0 <= amount.value < 32:
                return None
            if instruction.opcode == "shl":
                if source.high << amount.value > _WORD:
                    return Range.of(0, _WORD, source.bits << amount.value & _WORD)
                return Range.of(source.low << amount.value, source.high << amount.value, source.bits << amount.value)
            if is_signed and source.high > _WORD >> 1:
                return None
            return Range.of(source.low >> amount.value, source.high >> amount.value, source.bits >> amount.value)
    return None


def _wrapped(low: int, high: int) -> Range | None:
    """Numbers from ``low`` to ``high``, modulo 2**32, if they are still in order then."""
    if low >> 32 != high >> 32:
        return None
    return Range.of(low & _WORD, high & _WORD)


_COMPARISONS: dict[str, Callable[[tuple[int, int], tuple[int, int]], bool]] = {
    "lt": lambda a, b: a[1] < b[0],
    "le": lambda a, b: a[1] <= b[0],
    "gt": lambda a, b: a[0] > b[1],
    "ge": lambda a, b: a[0] >= b[1],
    "ne": lambda a, b: a[1] < b[0] or a[0] > b[1],
    "eq": lambda a, b: a == b and a[0] == a[1],
}
"""When a comparison is certainly true, by the lowest and the highest numbers of both sides."""

_OPPOSITE = {"lt": "ge", "ge": "lt", "gt": "le", "le": "gt", "eq": "ne", "ne": "eq"}
_NO_SIGN = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}


def _comparison(modifiers: tuple[str, ...], first: Range, second: Range) -> bool | None:
    """Whether a comparison of 32 bits is true or false; None when it may be either."""
    name = modifiers[0]
    is_signed = modifiers[1] == "s32" and name not in _NO_SIGN
    name = _NO_SIGN.get(name, name)
    if name not in _COMPARISONS:
        return None
    a, b = (side.signed() if is_signed else (side.low, side.high) for side in (first, second))
    if _COMPARISONS[name](a, b):
        return True
    return False if _COMPARISONS[_OPPOSITE[name]](a, b) else None
