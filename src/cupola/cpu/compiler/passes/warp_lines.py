"""Which registers count up from a multiple of the warp's width.

``threadIdx.x % 32`` and ``threadIdx.x / 32`` are how kernels name a lane and a warp. As a sum of the first lane's value
and the lane number, ``%tid.x`` says nothing about them; but the first lane's value is a multiple of the width, so the
low bits are the lane number and those above are the same in all lanes. Two sets of registers are kept: *multiples*,
uniform multiples of the width, and *lines*, which are a multiple plus the lane number. All definitions of such a
register, none of them guarded, make it one: a loop that adds 512 to ``%tid.x`` counts in lines.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cupola.cpu.compiler.ptx import ast

_WORDS = frozenset(["u32", "s32", "b32", "u64", "s64", "b64"])


_MADE_BY = frozenset(["mov", "add", "sub", "mul", "mad", "cvt", "and", "shl"])


def _may_be_line(instruction: ast.Instruction) -> bool:
    is_register = bool(instruction.operands) and isinstance(instruction.operands[0], ast.Register)
    return is_register and instruction.guard is None and instruction.opcode in _MADE_BY


class WarpLines:
    """What is known of registers as multiples of the width, and multiples plus lane number.

    Parameters
    ----------
    width : int
        Lanes of a warp, a power of two.
    constants : mapping
        Registers with one known integer.
    x_is_contiguous : bool
        ``%tid.x`` counts up by one over the lanes.
    rows_are_whole : bool
        ``%ntid.x`` is a multiple of the width.
    """

    def __init__(
        self, width: int, constants: Mapping[str, int], *, x_is_contiguous: bool, rows_are_whole: bool
    ) -> None:
        self.width = width
        self.constants = constants
        self.x_is_contiguous = x_is_contiguous
        self.rows_are_whole = rows_are_whole and x_is_contiguous
        self.lines: set[str] = set()
        self.multiples: set[str] = set()

    def find(self, definitions: Mapping[str, Sequence[ast.Instruction]]) -> None:
        """Fill both sets, by all instructions that write a register; what one of them contradicts is taken out."""
        known = {name: found for name, found in definitions.items() if all(_may_be_line(i) for i in found)}
        self.multiples, self.lines = set(known), set(known)
        changed = True
        while changed:
            changed = False
            for name, found in known.items():
                for held, is_so in ((self.multiples, self._is_multiple), (self.lines, self._is_line)):
                    if name in held and not all(map(is_so, found)):
                        held.discard(name)
                        changed = True
        self.lines -= self.multiples  # what only loops define by themselves

    def keeps_lane(self, mask: int) -> bool:
        """Whether ``line & mask`` is again a line: the mask has all bits of the lane number."""
        return mask & (self.width - 1) == self.width - 1

    def drops_lane(self, mask: int) -> bool:
        """Whether ``line & mask`` is the same in all lanes: the mask has no bit of the lane number."""
        return mask & (self.width - 1) == 0

    def _is_line(self, instruction: ast.Instruction) -> bool:
        sources = instruction.operands[1:]
        match instruction.opcode, instruction.modifiers:
            case "mov", (type,) if type in _WORDS:
                return self._operand_is_line(sources[0])
            case "add", (type,) if type in _WORDS:
                first, second = sources
                return (self._operand_is_line(first) and self._operand_is_multiple(second)) or (
                    self._operand_is_line(second) and self._operand_is_multiple(first)
                )
            case "mad", ("lo", type) if type in _WORDS:
                return self._is_product(sources[0], sources[1]) and self._operand_is_line(sources[2])
            case "cvt", ("u64" | "s64", "u32" | "s32"):
                return self._operand_is_line(sources[0])  # no lane wraps where lane 0 has a multiple
            case "and", ("b32" | "b64",):
                mask = self.number(sources[1])
                return mask is not None and self.keeps_lane(mask) and self._operand_is_line(sources[0])
        return False

    def _is_multiple(self, instruction: ast.Instruction) -> bool:
        sources = instruction.operands[1:]
        match instruction.opcode, instruction.modifiers:
            case "mov", (type,) if type in _WORDS:
                return self._operand_is_multiple(sources[0])
            case "add" | "sub", (type,) if type in _WORDS:
                return all(map(self._operand_is_multiple, sources))
            case "mul", ("lo", type) if type in _WORDS:
                return self._is_product(*sources)
            case "mad", ("lo", type) if type in _WORDS:
                return self._is_product(sources[0], sources[1]) and self._operand_is_multiple(sources[2])
            case "cvt", ("u64" | "s64", "u32" | "s32"):
                return self._operand_is_multiple(sources[0])
            case "shl", ("b32" | "b64",):
                return self._operand_is_multiple(sources[0])
        return False

    def _is_product(self, first: ast.Operand, second: ast.Operand) -> bool:
        """A multiple times any number is a multiple, modulo 2**32 as well."""
        return self._operand_is_multiple(first) or self._operand_is_multiple(second)

    def _operand_is_line(self, operand: ast.Operand) -> bool:
        match operand:
            case ast.Register(name):
                return name in self.lines
            case ast.Special("laneid"):
                return True
            case ast.Special("tid", "x"):
                return self.x_is_contiguous
        return False

    def _operand_is_multiple(self, operand: ast.Operand) -> bool:
        match operand:
            case ast.Register(name) if name in self.multiples:
                return True
            case ast.Special("ntid", "x"):
                return self.rows_are_whole
        number = self.number(operand)
        return number is not None and number % self.width == 0

    def number(self, operand: ast.Operand) -> int | None:
        """The value of an integer operand that is known."""
        if isinstance(operand, ast.Immediate) and operand.kind == "int":
            return operand.value
        return self.constants.get(operand.name) if isinstance(operand, ast.Register) else None
