"""Kernels to LLVM IR: `emit_body` writes one body of a kernel, `problem_with` says what cannot be run.

The modules of `control` and `memory` register what lowers their instructions when they are imported, and those of
`instructions` what an instruction computes. Everything that grammar/descriptions.py names must be there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from cupola.cpu.compiler.objects import machine
from cupola.cpu.compiler.ptx import ast

from . import instructions
from .control import calls, functions, lowerings, meetings  # noqa: F401
from .control.body import Body, Facts, Site, TooLong
from .instruments.blocks import Blocks
from .instruments.checks import Init, Race, Sync
from .instruments.counters import Counters
from .instruments.debug import Debug
from .instruments.instrument import Instrument
from .memory import (  # noqa: F401
    addresses,
    atomics,
    bulk,
    copies,
    matrix_memory,
    mbarriers,
    memory,
    multimem,
    tensors,
    textures,
    walks,
    warpgroups,
)
from .threads.registers import Demand, Inexact, Kind

lowerings.require_all(instructions.opcodes())


def problem_with(instruction: ast.Instruction) -> str | None:
    """Why the CPU device cannot run an instruction, or None when it can."""
    does = instruction.description
    if not does.parts and ast.Selector in map(type, instruction.operands):
        return "only video instructions take parts of registers, or a minus in front of one"
    match does.lowered:
        case "refused":
            return does.reason
        case "own":
            return lowerings.problem_with(instruction)
        case "values":
            return instructions.supported(instruction)
    return None


INSTRUMENTS: dict[str, type[Instrument]] = {
    "blocks": Blocks,
    "race": Race,
    "init": Init,
    "sync": Sync,
    "counters": Counters,
    "debug": Debug,
}
"""By their names (instruments/__init__.py)."""

LARGE_STATEMENTS = 6000
"""Statements of a kernel whose body is certainly very large."""


@dataclass(slots=True)
class Code:
    """What `emit_body` made: LLVM IR of a module with one function, and what the runtime must know about it.

    ``whole_blocks`` says that one call runs all units of a block, ``rows_of_blocks`` that it may run those of several,
    ``apart`` that it does not matter in which order blocks begin; ``counter_count`` is what its instruments count in;
    ``pointers`` says where its addresses come from, if one of them asked; ``instruments`` are those that found
    something to observe.
    """

    ir: str
    sites: list[Site]
    frame_bytes: int
    resume_sites: tuple[int, ...]
    whole_blocks: bool
    rows_of_blocks: bool
    apart: bool
    counter_count: int
    pointers: tuple[int, ...]
    instruments: tuple[str, ...]


def emit_body(
    facts: Facts, *, independent: bool = False, first_site: int = 0, instruments: tuple[str, ...] = ()
) -> Code:
    """Write the convergent or the independent body of a kernel.

    The lowerings may write less regular values than the analysis expects of an instruction. The body is then
    written once more, with these registers as affine ones whose lanes may have wrapped, or as varying ones. So is a
    body that turns out to be very large, with its registers in memory, as soon as that is known.
    """
    kinds: dict[str, Kind] = dict(facts.analysis.shapes)
    inexact: dict[str, Inexact] = {}
    far = len(facts.analysis.function.body or ()) > LARGE_STATEMENTS
    instruments = tuple(name for name in instruments if INSTRUMENTS[name].observes(facts))
    while True:
        body = Body(
            facts,
            independent=independent,
            kinds=kinds,
            inexact=inexact,
            first_site=first_site,
            far=far,
            instruments=[INSTRUMENTS[name] for name in instruments],
        )
        try:
            text = body.text(math.inf if far or independent else machine.LARGE)
        except TooLong:
            text = None
        irregular = body.registers.irregular
        if text is None or (not irregular and not far and not independent and text.count("\n") > machine.LARGE):
            far = True
        elif not irregular:
            frame_bytes = -(-body.registers.frame_bytes // 64) * 64
            resume_sites = tuple(body.control.resume_sites)
            return Code(
                text,
                body.sites,
                frame_bytes,
                resume_sites,
                body.whole_blocks,
                body.rows_of_blocks,
                body.apart,
                body.counter_count,
                body.pointers.flat() if body.pointers is not None else (),
                instruments,
            )
        for name, demand in irregular.items():
            if demand is Demand.VARYING:
                kinds[name] = None
            else:
                inexact[name] = demand
