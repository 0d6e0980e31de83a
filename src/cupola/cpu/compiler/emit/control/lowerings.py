"""The functions that write the code of instructions which do more than map values to values, by opcode.

A function is registered where it is written, together with what tells why an instruction cannot be run. Which opcodes
must have one says grammar/descriptions.py (``own``); `require_all` compares the two when the emitter is loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import TYPE_CHECKING

from cupola.cpu.compiler.ptx import ast, grammar
from cupola.cpu.compiler.ptx.grammar.descriptions import Description

if TYPE_CHECKING:
    from cupola.cpu.compiler.passes import Block

    from .body import Body

Lowering = Callable[["Body", ast.Instruction], None]
Objection = Callable[[ast.Instruction], str | None]

BlockWriter = Callable[["Body", "Block"], bool]

BLOCK_WRITERS: list[BlockWriter] = []
"""What writes some blocks as a whole, and says whether it has."""

LOWERINGS: dict[str, tuple[Lowering, Objection | None]] = {}
"""With the objections, by opcode or row."""


def writes_blocks(writer: BlockWriter) -> BlockWriter:
    """Register a function that writes blocks."""
    BLOCK_WRITERS.append(writer)
    return writer


def lowers(*names: str, objection: Objection | None = None) -> Callable[[Lowering], Lowering]:
    """Register a function.

    Parameters
    ----------
    names
        The opcodes whose instructions it writes, or rows of theirs (``st.async``).
    objection
        Says why the CPU device cannot run one of these instructions, or None when it can.
    """

    def register(lowering: Lowering) -> Lowering:
        for name in names:
            if name in LOWERINGS:
                raise ValueError(f"'{name}' has a lowering already")
            LOWERINGS[name] = lowering, objection
        return lowering

    return register


@cache
def _of(row: Description) -> tuple[Lowering, Objection | None]:
    return LOWERINGS[row.name if row.name in LOWERINGS else row.opcode]


def lowering_of(instruction: ast.Instruction) -> Lowering:
    """What writes the code of an instruction that is lowered by its ``own`` function."""
    return _of(instruction.description)[0]


def problem_with(instruction: ast.Instruction) -> str | None:
    """Why such an instruction cannot be run, or None when it can."""
    objection = _of(instruction.description)[1]
    return None if objection is None else objection(instruction)


def require_all(values: Iterable[str]) -> None:
    """Check that each opcode has the function that writes its code, and that there is no function without an opcode.

    Parameters
    ----------
    values
        The opcodes for which there are functions that map values to values.

    Raises
    ------
    NotImplementedError
        With the names of the opcodes that differ.
    """
    rows = [row for opcode in grammar.described() for row in grammar.descriptions_of(opcode)]
    own = {row.name if row.name in LOWERINGS else row.opcode for row in rows if row.lowered == "own"}
    given = {row.opcode for row in rows if row.lowered == "values"}
    written = set(values) - LOWERINGS.keys()  # some also have a part that maps values to values
    if wrong := sorted((own ^ LOWERINGS.keys()) | (given ^ written)):
        raise NotImplementedError(f"grammar/descriptions.py and the lowerings do not agree on {', '.join(wrong)}")
