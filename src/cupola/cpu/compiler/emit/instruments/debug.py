"""Lines at which threads can be stopped by a debugger.

The code of a body for a debugger calls ``cupola_debug_line`` (engine/instruments/debug.c) wherever a line begins. Only
the independent body is written for it, with a place in the frame for every register, so that what a register holds for
a thread can be read there at any time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cupola.cpu.compiler.emit.values.values import Value
from cupola.cpu.compiler.ptx import ast
from cupola.cpu.compiler.records import dataclass

from .instrument import Instrument, instructions_of

if TYPE_CHECKING:
    from cupola.cpu.compiler.emit.control.body import Body, Facts

RECORD_BYTES = 128
"""The line of each lane, as the engine notes it."""


@dataclass(frozen=True, slots=True)
class Line:
    """A place at which threads can be stopped.

    Attributes
    ----------
    number
        Of the instruction.
    instruction
        The instruction before which it is; its ``location`` is that of the place.
    begins
        Whether the line begins here; else a call has come back to it, or it is ``brkpt``.
    """

    number: int
    instruction: ast.Instruction
    begins: bool


def chain_of(location: ast.Location) -> tuple[int, ...]:
    """What tells the copies of inlined code apart: the PTX lines of the calls, outwards."""
    found = []
    outer = location.inlined_at
    while outer is not None:
        found.append(outer.ptx_line)
        outer = outer.inlined_at
    return tuple(found)


def lines_of(facts: Facts) -> dict[int, Line]:
    """The places of a kernel by the numbers of their instructions; every instruction, where nothing has a line."""
    code = instructions_of(facts)
    numbers = {id(instruction): number for number, instruction in enumerate(code)}
    if not any(instruction.location.line for instruction in code):
        return {number: Line(number, instruction, True) for number, instruction in enumerate(code)}
    found: dict[int, Line] = {}
    copies: dict[tuple[int, ...], list[int]] = {}
    for number, instruction in enumerate(code):
        copies.setdefault(chain_of(instruction.location), []).append(number)
    for members in copies.values():
        before: tuple[object, ...] | None = None
        for number in sorted(members, key=lambda n: (code[n].location.ptx_line, n)):
            at = code[number].location
            here = (at.file, at.line, at.column, at.function)
            if here != before and at.line:
                found[number] = Line(number, code[number], True)
            before = here
    for number, instruction in enumerate(code):
        if instruction.opcode == "brkpt":
            found.setdefault(number, Line(number, instruction, False))
    # Where calls come back.
    depth, after_call = 0, False
    for statement in facts.analysis.function.body or ():
        if not isinstance(statement, ast.Instruction):
            continue
        deeper = len(chain_of(statement.location))
        at_number = numbers.get(id(statement))
        if (deeper < depth or after_call) and at_number is not None and statement.location.line:
            found.setdefault(at_number, Line(at_number, statement, False))
            after_call = False
        after_call |= statement.opcode == ".call"
        depth = deeper if at_number is not None or deeper > depth else depth
    return found


class Debug(Instrument):
    """Stops threads at lines."""

    keeps_registers = True

    def __init__(self, body: Body, first: int) -> None:
        super().__init__(body, first)
        self._lines = lines_of(body.facts)

    @classmethod
    def frame_bytes_of(cls, facts: Facts) -> int:
        return RECORD_BYTES

    def enter(self, lanes: Value) -> None:
        self.builder.declarations["declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)"] = None
        # The registers come behind the record.
        size = self.body.registers.frame_bytes - self.frame_offset
        self.builder.line(f"call void @llvm.memset.p0.i64(ptr {self.memory(0)}, i8 0, i64 {size}, i1 false)")

    def instruction(self, instruction: ast.Instruction) -> None:
        number = self.number(instruction)
        if number in self._lines:
            self.call("cupola_debug_line", f"i32 {number}", f"ptr {self.memory(0)}")
