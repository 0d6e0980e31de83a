"""Neighboring places that each lane loads for itself, as in an unrolled loop over a row of its own.

Four loads of one block at consecutive places, with the same scattered register, are one load of 16 bytes for each lane
and a transposition of vectors: less than half of the work of four gathers. They are checked together, when the first
one is due. If that fails, each is done as if it were alone, in its turn, and may fault. Nothing comes between them that
writes memory, waits, or looks for what other threads write.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cupola.cpu.compiler.emit.values.builder import Builder
from cupola.cpu.compiler.emit.values.values import Value
from cupola.cpu.compiler.passes import Block
from cupola.cpu.compiler.ptx import ast

from .bounds import Access
from .gathers import Lanes, can_gather

if TYPE_CHECKING:
    pass

LENGTH = 4
"""Elements of a run, of four bytes each."""

_BLOCK = 16
"""Lanes whose pieces are transposed together."""


@dataclass(slots=True)
class Run:
    """Loads at consecutive places from ``start`` on.

    Once the first has been written, ``values`` are those of all, where ``verdict``, an i1, is true.
    """

    start: int
    places: dict[int, int]
    values: list[Value] = field(default_factory=list)
    verdict: str = ""


def plan_runs(block: Block) -> dict[int, Run]:
    """The run of each load of a block that is in one, by the instruction's ``id``."""
    versions: dict[str, int] = {}
    candidates: dict[tuple[object, ...], dict[int, int]] = {}
    epoch = 0
    for instruction, effect in zip(block.instructions, block.effects, strict=False):
        opcode, base = instruction.opcode, instruction.operands[1] if len(instruction.operands) > 1 else None
        epoch += instruction.description.loads == "stay"
        if opcode == "ld" and instruction.guard is None and isinstance(base, ast.Address):
            access = Access.of(instruction, write=False)
            if isinstance(base.base, ast.Register) and access.size == 4 and can_gather(access):
                name = base.base.name
                key = (access.space, access.type, name, versions.get(name, 0), epoch)
                candidates.setdefault(key, {}).setdefault(base.offset, id(instruction))
        for name in effect.writes:
            versions[name] = versions.get(name, 0) + 1
    found: dict[int, Run] = {}
    for offsets in candidates.values():
        for start in sorted(offsets):
            places = [start + 4 * index for index in range(LENGTH)]
            if all(place in offsets and offsets[place] not in found for place in places):
                run = Run(start, {offsets[place]: index for index, place in enumerate(places)})
                found.update(dict.fromkeys(run.places, run))
    return found


def load_pieces(b: Builder, type: str, lanes: Lanes) -> list[Value]:
    """Load a run for each lane, all of them in bounds; a vector for each element."""
    buffer = b.alloca(f"[{b.width} x {lanes.distances.type}]")
    b.line(f"store {b.typed(lanes.distances)}, ptr {buffer}, align 64")
    pieces = []
    for lane in range(b.width):
        at = b.emit(f"getelementptr {lanes.distances.type}, ptr {buffer}, i64 {lane}")
        # From memory, since taking a vector apart costs more; volatile, lest the optimizer does that after all.
        distance = b.emit(f"load volatile {lanes.distances.type}, ptr {at}")
        place = b.emit(f"getelementptr i8, ptr {lanes.start}, {lanes.distances.type} {distance}")
        pieces.append(b.emit(f"load <{LENGTH} x {type}>, ptr {place}, align 4"))
    blocks = [_transposed(b, type, pieces[first : first + _BLOCK]) for first in range(0, b.width, _BLOCK)]
    return [Value(_concatenated(b, type, list(parts), _BLOCK), type, True) for parts in zip(*blocks, strict=True)]


def _transposed(b: Builder, type: str, pieces: list[str]) -> list[str]:
    """Of 16 lanes with four elements each, four vectors of an element from each lane.

    First every fourth piece comes into one vector, so that the elements of a quarter of the result are in the same
    quarter of four vectors, where pairs are interleaved twice.
    """
    rows = [_concatenated(b, type, pieces[first::LENGTH], LENGTH) for first in range(LENGTH)]
    pairs = [
        [_interleaved(b, type, rows[i], rows[i + 1], picks) for i in (0, 2)]
        for picks in ((0, 16, 1, 17), (2, 18, 3, 19))
    ]
    return [_interleaved(b, type, x, y, picks) for x, y in pairs for picks in ((0, 1, 16, 17), (2, 3, 18, 19))]


def _interleaved(b: Builder, type: str, x: str, y: str, picks: tuple[int, ...]) -> str:
    """The same elements out of each quarter of two vectors."""
    indices = ", ".join(f"i32 {quarter + pick}" for quarter in range(0, _BLOCK, LENGTH) for pick in picks)
    vector = f"<{_BLOCK} x {type}>"
    return b.emit(f"shufflevector {vector} {x}, {vector} {y}, <{_BLOCK} x i32> <{indices}>")


def _concatenated(b: Builder, type: str, parts: list[str], size: int) -> str:
    while len(parts) > 1:
        vector, indices = f"<{size} x {type}>", ", ".join(f"i32 {i}" for i in range(2 * size))
        parts = [
            b.emit(f"shufflevector {vector} {x}, {vector} {y}, <{2 * size} x i32> <{indices}>")
            for x, y in zip(parts[::2], parts[1::2], strict=True)
        ]
        size *= 2
    return parts[0]
