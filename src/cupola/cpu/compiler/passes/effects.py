"""Which registers an instruction reads and writes, by the operand kinds of its form in the grammar."""

from __future__ import annotations

from functools import cache

from cupola.cpu.compiler.ptx import ast, grammar
from cupola.cpu.compiler.records import dataclass

CARRY = ast.Register("%cc")
"""The condition code, once `carry` has made it an operand."""

_TARGET = grammar.OperandKind("target")
_RESULT = grammar.OperandKind("d", written=True, read=False)
OWN_OPERANDS = {
    ".call": (_TARGET, grammar.OperandKind("labels"), grammar.OperandKind("site")),
    ".return": (_TARGET,),
    ".enter": (_TARGET, grammar.OperandKind("bytes")),
    ".leave": (_RESULT,),
    ".here": (),
    ".frame": (_RESULT,),
}
"""The operands of the operations that only passes write; `join_functions` tells what they do."""

_SOURCE = grammar.OperandKind("carry")


@dataclass(frozen=True, slots=True)
class Effects:
    """Names of the registers that an instruction writes and reads (its guard among them), in operand order."""

    writes: tuple[str, ...]
    reads: tuple[str, ...]


@cache
def operand_kinds(opcode: str, modifiers: tuple[str, ...], count: int) -> tuple[grammar.OperandKind, ...]:
    """What each operand of an instruction is, the operands that passes have added included."""
    if opcode in OWN_OPERANDS:
        return OWN_OPERANDS[opcode][:count]
    form = grammar.form_of(opcode, modifiers, count)
    if form is None and grammar.description(opcode, modifiers).carry:
        form = grammar.form_of(opcode, modifiers, count - 1)
        if form is not None:
            return (*form.operands[: count - 1], _SOURCE)
    if form is None:
        raise ValueError(grammar.problem(opcode, modifiers, count))
    kinds = form.operands[:count]
    return kinds + (_SOURCE,) * (count - len(kinds))


def effects(instruction: ast.Instruction) -> Effects:
    """The registers that ``instruction`` writes and reads."""
    writes: list[str] = []
    reads: list[str] = []
    if instruction.guard is not None:
        reads.append(instruction.guard.register.name)
    operands = instruction.operands
    for kind, operand in zip(
        operand_kinds(instruction.opcode, instruction.modifiers, len(operands)), operands, strict=True
    ):
        if type(operand) is ast.Register:
            if kind.written:
                writes.append(operand.name)
                if kind.read:
                    reads.append(operand.name)
            else:
                reads.append(operand.name)
        else:
            _collect(operand, kind, writes, reads)
    return Effects(tuple(writes), tuple(reads))


def _collect(operand: ast.Operand, kind: grammar.OperandKind, writes: list[str], reads: list[str]) -> None:
    match operand:
        case ast.Register(name):
            if kind.written:
                writes.append(name)
            if not kind.written or kind.read:
                reads.append(name)
        case ast.Address(base):
            if isinstance(base, ast.Register):
                reads.append(base.name)
        case ast.Vector(items) | ast.ArgumentList(items) | ast.AddressList(items):
            for item in items:
                _collect(item, kind, writes, reads)
        case ast.Pair(first, second):
            _collect(first, kind, writes, reads)
            _collect(second, kind, writes, reads)
        case ast.Negated(register):
            reads.append(register.name)
        case ast.Selector(register):
            reads.append(register.name)  # the other bytes of a destination stay as they are
            if kind.written:
                writes.append(register.name)
        case _:
            pass
