"""Kernels to LLVM IR: `emit_body` writes one body of a kernel, `problem_with` says what cannot be run.

The work is divided: `control` (masks, branches), `meetings` (barriers), `memory` with `bounds`, `atomics`, `addresses`,
`copies`, `bulk` and `mbarriers`, `special` (special registers), `calls` and `functions`; `registers` and `layout` know
where things are kept. What an instruction computes is in the package `instructions`.
"""

from __future__ import annotations

from dataclasses import dataclass

from cupola.cpu.compiler.objects import machine
from cupola.cpu.compiler.ptx import ast

from . import instructions
from .control import calls, functions, meetings
from .control.body import Body, Facts, Lowering, Site
from .memory import addresses, atomics, bulk, copies, matrix_memory, mbarriers, memory, textures
from .threads.registers import Demand, Inexact, Kind

LOWERINGS: dict[str, Lowering] = {
    "ld": memory.load,
    "ldu": memory.load,
    "st": lambda body, i: (bulk.store_async if "async" in i.modifiers else memory.store)(body, i),
    "atom": atomics.atomic,
    "red": lambda body, i: (bulk.reduce_async if "async" in i.modifiers else atomics.atomic)(body, i),
    "cp": copies.copy_async,
    "cvta": addresses.convert_address,
    "isspacep": addresses.is_in_space,
    "mapa": addresses.map_to_rank,
    "getctarank": addresses.rank_of,
    "mbarrier": mbarriers.mbarrier,
    "bar": meetings.arrive,
    "barrier": meetings.arrive,
    "membar": calls.fence,
    "fence": calls.fence,
    "nanosleep": calls.nanosleep,
    "call": calls.call,
    "trap": calls.trap,
    "brkpt": calls.trap,
    "createpolicy": calls.create_policy,
    "wmma": matrix_memory.wmma,
    "ldmatrix": matrix_memory.ldmatrix,
    "stmatrix": matrix_memory.stmatrix,
    **dict.fromkeys(["tex", "tld4"], textures.lookup),
    **dict.fromkeys(["txq", "suq"], textures.query),
    "istypep": textures.is_type,
    **dict.fromkeys(["suld", "sust", "sured"], textures.surface),
    ".enter": functions.enter,
    ".leave": functions.leave,
    ".frame": functions.frame,
    "alloca": functions.allocate,
    "stacksave": functions.save_stack,
    "stackrestore": functions.restore_stack,
    **dict.fromkeys(
        ["prefetch", "prefetchu", "applypriority", "discard", "pmevent", "griddepcontrol", "setmaxnreg"], calls.nothing
    ),
}
"""What lowers each instruction that does more than map values to values."""

_REFUSED = {
    "multimem": "there are no multicast objects, whose addresses it takes",
    "clusterlaunchcontrol": "it needs compute capability 10.0",
    "tensormap": "tensor copies (TMA) are not supported",
}

_CONTROL = frozenset(["bra", "brx", "ret", "exit", ".call", ".return"])


def problem_with(instruction: ast.Instruction) -> str | None:
    """Why the CPU device cannot run an instruction, or None when it can."""
    opcode = instruction.opcode
    if opcode not in instructions.VIDEO and any(isinstance(operand, ast.Selector) for operand in instruction.operands):
        return "only video instructions take parts of registers, or a minus in front of one"
    if opcode in _REFUSED:
        return _REFUSED[opcode]
    if opcode in ("red", "st") and "async" in instruction.modifiers:
        return bulk.problem_with(instruction)
    if opcode in ("atom", "red"):
        return atomics.problem_with(instruction)
    if opcode in ("ld", "ldu", "st"):
        return memory.problem_with(instruction)
    if opcode == "cp":
        return copies.problem_with(instruction)
    if opcode in ("wmma", "ldmatrix", "stmatrix"):
        return matrix_memory.problem_with(instruction)
    if opcode in textures.OPCODES:
        return textures.problem_with(instruction)
    if opcode == "call":
        return calls.problem_with(instruction)
    if opcode in LOWERINGS or opcode in _CONTROL:
        return None
    problem = instructions.supported(instruction)
    return instructions.selector_problem(instruction) if problem is None and opcode == "mma" else problem


LARGE_STATEMENTS = 6000
"""Statements of a kernel whose body is certainly very large."""


@dataclass(slots=True)
class Code:
    """What `emit_body` made: LLVM IR of a module with one function, and what the runtime must know about it.

    ``whole_blocks`` says that one call runs all units of a block, ``rows_of_blocks`` that it may run those of several.
    """

    ir: str
    sites: list[Site]
    frame_bytes: int
    resume_sites: tuple[int, ...]
    whole_blocks: bool
    rows_of_blocks: bool


def emit_body(facts: Facts, *, independent: bool = False, first_site: int = 0) -> Code:
    """Write the convergent or the independent body of a kernel.

    The lowerings may write less regular values than the analysis expects of an instruction. The body is then
    written once more, with these registers as affine ones whose lanes may have wrapped, or as varying ones. So is a
    body that turns out to be very large, with its registers in memory.
    """
    kinds: dict[str, Kind] = dict(facts.analysis.shapes)
    inexact: dict[str, Inexact] = {}
    far = len(facts.analysis.function.body or ()) > LARGE_STATEMENTS
    while True:
        body = Body(
            facts, LOWERINGS, independent=independent, kinds=kinds, inexact=inexact, first_site=first_site, far=far
        )
        text = body.text()
        irregular = body.registers.irregular
        if not irregular and not far and not independent and text.count("\n") > machine.LARGE:
            far = True
        elif not irregular:
            frame_bytes = -(-body.registers.frame_bytes // 64) * 64
            resume_sites = tuple(body.control.resume_sites)
            return Code(text, body.sites, frame_bytes, resume_sites, body.whole_blocks, body.rows_of_blocks)
        for name, demand in irregular.items():
            if demand is Demand.VARYING:
                kinds[name] = None
            else:
                inexact[name] = demand
