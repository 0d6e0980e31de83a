"""Counters of kernels to lines: instructions by class, memory traffic, divergence and contention."""

from __future__ import annotations

import re
import struct
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from cupola.cpu import _driver
from cupola.cpu.compiler.emit.control.body import Facts
from cupola.cpu.compiler.emit.instruments import blocks
from cupola.cpu.compiler.emit.instruments import counters as accesses
from cupola.cpu.compiler.emit.instruments.blocks import RUNS, THREADS
from cupola.cpu.compiler.emit.instruments.instrument import instructions_of
from cupola.cpu.compiler.modules import Configuration, Counts, LoadedModule, Variant
from cupola.cpu.compiler.ptx import ast

from . import sources

CLASSES = (
    "integer", "fp32", "fp64", "fp16", "special", "convert", "compare", "move", "load", "store", "atomic", "copy",
    "tensor", "texture", "warp", "barrier", "branch", "other",
)  # fmt: skip
"""The classes of instructions."""

_OPCODES = {
    "load": "ld ldu", "store": "st", "atomic": "atom red", "copy": "cp prefetch prefetchu applypriority discard",
    "tensor": "mma wmma wgmma ldmatrix stmatrix movmatrix tcgen05", "texture": "tex tld4 txq suld sust sured suq",
    "warp": "shfl vote match redux elect activemask", "branch": "bra brx call ret exit .call .return trap brkpt",
    "barrier": "bar barrier membar fence mbarrier griddepcontrol nanosleep",
    "special": "rcp sqrt rsqrt sin cos lg2 ex2 tanh", "convert": "cvt cvta", "compare": "setp set testp",
    "move": "mov selp slct prmt mapa getctarank isspacep",
}  # fmt: skip
_CLASS = {opcode: name for name, opcodes in _OPCODES.items() for opcode in opcodes.split()}
_FLOATS = {
    "f32": "fp32",
    "f32x2": "fp32",
    "f64": "fp64",
    "f16": "fp16",
    "f16x2": "fp16",
    "bf16": "fp16",
    "bf16x2": "fp16",
}
_NOT_COUNTED = {".here", ".enter", ".leave", ".frame"}
_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)")

OPERATIONS = {"fma": 2, "mad": 2} | dict.fromkeys(["add", "sub", "mul", "div", "rcp", "sqrt", "rsqrt", "min", "max"], 1)
"""Floating-point operations of an instruction, by its opcode; those of the class "special" are one each."""


def class_of(instruction: ast.Instruction) -> str:
    """One of `CLASSES`."""
    opcode = instruction.opcode
    if opcode == "ld" and "param" in instruction.modifiers:
        return "move"  # a GPU has parameters at hand, as operands
    if opcode == "mbarrier" or (opcode == "cp" and "mbarrier" in instruction.modifiers):
        return "barrier"
    if opcode in ("rcp", "sqrt", "rsqrt", "div") and "f64" in instruction.modifiers:
        return "fp64"
    if opcode in _CLASS:
        return _CLASS[opcode]
    kind = next((_FLOATS[modifier] for modifier in reversed(instruction.modifiers) if modifier in _FLOATS), None)
    return kind or ("integer" if instruction.description.lowered == "values" else "other")


def operations_of(instruction: ast.Instruction) -> tuple[int, int]:
    """Floating-point operations of each thread, and of each warp."""
    modifiers = instruction.modifiers
    if instruction.opcode in ("mma", "wmma", "wgmma"):
        shape = next((found for modifier in modifiers if (found := _SHAPE.fullmatch(modifier))), None)
        if shape is None or instruction.opcode == "wmma" and "mma" not in modifiers:
            return 0, 0
        m, n, k = map(int, shape.groups())
        return 0, 2 * m * n * k // (4 if instruction.opcode == "wgmma" else 1)  # four warps work on it
    each = 2 if any(modifier.endswith("x2") for modifier in modifiers) else 1
    if not any(modifier in _FLOATS for modifier in modifiers):
        return 0, 0
    if class_of(instruction) == "special":
        return each, 0
    return each * OPERATIONS.get(instruction.opcode, 0), 0


def collect(
    folder: str, loaded: Iterable[LoadedModule], counts: Iterable[tuple[Variant, dict[Configuration, Counts]]]
) -> dict[str, Any]:
    """What kernels did: a record that is made of JSON's types.

    ``model`` has the limits of the modeled GPU. ``kernels`` has for each kernel and configuration its name, source,
    grid, block, cluster, dynamic shared memory, launches, the facts that limit its occupancy, and its ``rows``: for
    each place in the source

    - ``at``: file, line and function of the innermost place, then of the calls through which it was inlined;
    - ``classes``: by class of instructions, how often warps ran one, with how many threads;
    - ``operations``: floating-point operations;
    - ``accesses``: by kind (load, store, atomic, copy) the counters of `accesses`, with the bytes that threads wanted
      of global and of shared memory behind them;
    - ``branches``: how often warps came to a branch, and how often they parted there.
    """
    kernels = []
    digests = set()
    for variant, configurations in counts:
        if not {"blocks", "counters"} <= set(variant.instruments):
            continue
        facts = variant.facts()
        digest = sources.digest_of(variant.module.text)
        digests.add(digest)
        for configuration, counted in configurations.items():
            values = struct.unpack(f"<{variant.counter_count}Q", counted.counters)
            info = variant.info
            kernels.append(
                {
                    "name": info.name,
                    "source": digest,
                    "grid": configuration.grid,
                    "block": configuration.block,
                    "cluster": configuration.cluster,
                    "dynamic_shared": configuration.dynamic_shared,
                    "launches": counted.launches,
                    "registers": info.registers,
                    "static_shared": info.static_shared,
                    "local_bytes": info.local_bytes,
                    "rows": _rows(facts, _first(variant), values),
                }
            )
    return {"model": _driver.model_facts(), "texts": sources.places(digests, folder), "kernels": kernels}


def _first(variant: Variant) -> dict[str, int]:
    """Where the counters of each instrument begin."""
    from cupola.cpu.compiler.emit.bodies import INSTRUMENTS

    found, at = {}, 0
    for name in variant.instruments:
        found[name] = at
        at += INSTRUMENTS[name].counters_of(variant.facts())
    return found


class _Row:
    def __init__(self) -> None:
        self.classes: dict[str, list[int]] = defaultdict(lambda: [0, 0])
        self.operations = 0
        self.accesses: dict[str, list[int]] = defaultdict(lambda: [0] * (accesses.SLOTS + 2))
        self.branches = [0, 0]


def _rows(facts: Facts, first: dict[str, int], values: tuple[int, ...]) -> list[dict[str, Any]]:
    rows: dict[tuple[tuple[str, int, str], ...], _Row] = defaultdict(_Row)
    own = values[first["blocks"] :]
    costs = values[first["counters"] :]
    block_places, cost_places = blocks.places(facts), accesses.places(facts)
    numbers = {id(instruction): number for number, instruction in enumerate(instructions_of(facts))}
    for block in facts.analysis.blocks:
        counted = own[block_places[block.index] : block_places[block.index + 1]]
        for instruction in block.code():
            if instruction.opcode in _NOT_COUNTED:
                continue
            row = rows[_at(instruction.location)]
            at = cost_places[numbers[id(instruction)]]
            threads = counted[THREADS]
            if accesses.guard_counts(instruction):
                threads = costs[at]
                at += 1
            kind = class_of(instruction)
            row.classes[kind][0] += counted[RUNS]
            row.classes[kind][1] += threads
            each, of_warp = operations_of(instruction)
            row.operations += each * threads + of_warp * counted[RUNS]
            for access in accesses.counted(instruction):
                sums = row.accesses[_kind(kind, access.reads)]
                cost = costs[at : at + accesses.SLOTS]
                wanted = [access.size * cost[accesses.GLOBAL_THREADS], access.size * cost[accesses.SHARED_THREADS]]
                for place, number in enumerate((*cost, *wanted)):
                    sums[place] += number
                at += accesses.SLOTS
        if blocks.is_branch(block) and block.terminator is not None:
            row = rows[_at(block.terminator.location)]
            row.branches[0] += counted[RUNS]
            row.branches[1] += max(0, sum(counted[4::2]) - counted[RUNS])
    return [
        {
            "at": [list(place) for place in at],
            "classes": row.classes,
            "operations": row.operations,
            "accesses": row.accesses,
            "branches": row.branches,
        }
        for at, row in rows.items()
        if any(runs for runs, _ in row.classes.values())
    ]


def _kind(kind: str, reads: bool) -> str:
    if kind in ("atomic", "barrier"):
        return "atomic"
    if kind in ("load", "store"):
        return kind
    return "load" if reads else "store"  # each side of a copy, and matrices


def _at(place: ast.Location) -> tuple[tuple[str, int, str], ...]:
    found = []
    at: ast.Location | None = place
    while at is not None:
        if at.file and at.line:
            found.append((at.file, at.line, at.function or ""))
        at = at.inlined_at
    return tuple(found)
