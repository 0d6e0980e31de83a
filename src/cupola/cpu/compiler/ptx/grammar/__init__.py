"""The instruction set as data: which forms an opcode has (PTX ISA chapter 9.7).

The tables of this package are written like the syntax lines of the PTX ISA::

    add{.sat}.s32        d, a, b
    ld.param.<vector>... d, [a]

``{.x}`` is a modifier that may be left out, ``.a|b`` one of several, ``.<name>`` one of a named set
(`sets.SETS`). Modifiers may come in any order, as ptxas takes them, but for types (the two of ``cvt``), which come in
the order given. Operands are written

====================  ===================================================================================
``d``, ``d1`` …       a destination: register, vector or ``_``
``d|p``               a destination that may be followed by a second one, ``d|p``
``=d``                read and written, such as the accumulators of ``wgmma``
``[a]``               an address, or a bracketed list such as ``[texture, {x, y}]``
``{, x}``             may be left out
``*``                 any further operands
anything else         a source
====================  ===================================================================================

A form in the table says that the front end understands the instruction, not that the CPU device runs it. What it does,
who writes its code, and whether it is refused is the opcode's row in `descriptions`.
"""

from __future__ import annotations

import re
from functools import cache

from cupola.cpu.compiler.ptx.grammar import (
    asynchronous,
    control,
    descriptions,
    floating,
    integer,
    logic,
    matrix,
    memory,
    miscellaneous,
    needs,
    synchronization,
    tensor,
    texture,
)
from cupola.cpu.compiler.ptx.grammar.descriptions import Description
from cupola.cpu.compiler.ptx.grammar.sets import SETS, TYPES
from cupola.cpu.compiler.records import dataclass

_TABLES = (
    integer,
    floating,
    logic,
    memory,
    control,
    synchronization,
    asynchronous,
    matrix,
    tensor,
    texture,
    miscellaneous,
)

_GROUP = re.compile(r"\{\.([^}]+)\}|\.([\w:|<>]+)")


@dataclass(frozen=True, slots=True)
class Group:
    """Modifiers of which an instruction has one, or none when ``optional``."""

    choices: frozenset[str]
    optional: bool


@dataclass(frozen=True, slots=True)
class OperandKind:
    """What one operand of a form may be."""

    name: str
    written: bool = False
    read: bool = True
    address: bool = False
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Form:
    """One syntax line of an instruction.

    ``variadic`` forms (``call``) take operands beyond the listed ones, all of them sources.
    """

    opcode: str
    syntax: str
    section: str
    groups: tuple[Group, ...]
    operands: tuple[OperandKind, ...]
    variadic: bool

    @property
    def least(self) -> int:
        """How many operands there must be."""
        return sum(not kind.optional for kind in self.operands)

    def takes(self, modifiers: tuple[str, ...]) -> bool:
        """Whether every modifier has its place in this form, and none that must be there is missing."""
        open_groups = list(enumerate(self.groups))
        last = -1  # the group of the type before: "f16x2.e4m3x2" is not "e4m3x2.f16x2"
        for modifier in modifiers:
            is_type = modifier in TYPES
            for place, (index, group) in enumerate(open_groups):
                if modifier in group.choices and not (is_type and index < last):
                    del open_groups[place]
                    last = index if is_type else last
                    break
            else:
                return False
        return all(group.optional for _, group in open_groups)


@cache
def _lines() -> dict[str, list[tuple[str, str]]]:
    """Per opcode, the lines of the tables as (section, line)."""
    found: dict[str, list[tuple[str, str]]] = {}
    for table in _TABLES:
        section = ""
        for line in table.INSTRUCTIONS.splitlines():
            line = line.strip()
            if line.startswith("#"):
                section = line[1:].strip()
            elif line:
                found.setdefault(re.split(r"[.{ ]", line, maxsplit=1)[0], []).append((section, line))
    return found


def opcodes() -> list[str]:
    """Every opcode of the instruction set, in the order of the tables."""
    return list(_lines())


OWN_OPCODES = (".call", ".return", ".enter", ".leave", ".frame", ".here")
"""Operations that only passes write; see `passes.join_functions`."""


@cache
def descriptions_of(opcode: str) -> tuple[Description, ...]:
    """The rows that say what an opcode does, the one without modifiers last."""
    return _descriptions()[opcode]


@cache
def _descriptions() -> dict[str, tuple[Description, ...]]:
    return descriptions.rows([*opcodes(), *OWN_OPCODES])


def described() -> list[str]:
    """Every opcode that there may be in a function, also those that only passes write."""
    return list(_descriptions())


@cache
def description(opcode: str, modifiers: tuple[str, ...]) -> Description:
    """What an instruction does."""
    return next(row for row in descriptions_of(opcode) if set(row.modifiers) <= set(modifiers))


@cache
def forms(opcode: str) -> tuple[Form, ...]:
    """The forms of an opcode; empty when there is no such opcode."""
    return tuple(_parse(opcode, section, line) for section, line in _lines().get(opcode, ()))


def _parse(opcode: str, section: str, line: str) -> Form:
    head, _, tail = line.partition(" ")
    groups = []
    for match in _GROUP.finditer(head, len(opcode)):
        optional = match[1] is not None
        choices: set[str] = set()
        for choice in (match[1] or match[2]).split("|"):
            choices |= SETS[choice[1:-1]] if choice[0] == "<" else {choice}
        groups.append(Group(frozenset(choices), optional))
    operands = []
    variadic = False
    optional = False
    for word in tail.replace("{,", " {").replace("}", " }").replace(",", " ").split():
        if word == "{":
            optional = True
        elif word == "}":
            optional = False
        elif word == "*":
            variadic = True
        elif word.startswith("=") or re.fullmatch(r"\(?d\d?(\|[pq])?\)?", word):
            operands.append(OperandKind(word.lstrip("="), written=True, read=word[0] == "=", optional=optional))
        else:
            operands.append(OperandKind(word, address=word[0] == "[", optional=optional))
    return Form(opcode, line, section, tuple(groups), tuple(operands), variadic)


@cache
def matching(opcode: str, modifiers: tuple[str, ...]) -> tuple[Form, ...]:
    """The forms that take these modifiers; empty when the instruction set has no such instruction."""
    return tuple(form for form in forms(opcode) if form.takes(modifiers))


@cache
def form_of(opcode: str, modifiers: tuple[str, ...], count: int) -> Form | None:
    """The form of an instruction with ``count`` operands, or None."""
    for form in matching(opcode, modifiers):
        if form.least <= count and (form.variadic or count <= len(form.operands)):
            return form
    return None


def problem(opcode: str, modifiers: tuple[str, ...], count: int) -> str:
    """Why an instruction has no form, in words for an error message."""
    known = forms(opcode)
    name = ".".join((opcode, *modifiers))
    unsupported = f"unsupported PTX instruction {name!r}: "
    if not known:
        newer = needs.of_unknown(opcode, modifiers, count, "")
        return unsupported + (_newer(newer) if newer else f"there is no opcode {opcode!r}")
    if found := matching(opcode, modifiers):
        operands = " or ".join(dict.fromkeys(form.syntax.partition(" ")[2].strip() or "none" for form in found))
        return f"{name!r} has {count} operands, it takes {operands}"
    every = {choice for form in known for group in form.groups for choice in group.choices}
    for modifier in modifiers:
        if modifier not in every:
            newer = needs.of_unknown(opcode, modifiers, count, modifier)
            return unsupported + (_newer(newer) if newer else f"{opcode!r} has no modifier '.{modifier}'")
    return unsupported + f"no form of {opcode!r} has these modifiers together"


def _newer(words: str) -> str:
    return f"it {words}, and the CPU device does not have it"
