"""Operations of the threads of a warp that come to it at several instructions, in the independent body.

Threads named in a mask wait "until all non-exited threads corresponding to membermask have executed" an instruction
"with the same qualifiers and same membermask value" (PTX ISA 9.4, 9.7.10.6): any such instruction, not the same one.
So two arms of a branch may exchange values, and a thread that has left a loop takes part in one of its operations from
behind it. An H200 does the same; what else it does is a table in tests/cpu/engine/schedule/test_gatherings.py.

Instructions with the same qualifiers form a *gathering*, which has a mask in the frame behind those of the blocks, and
a slot for each operand. A thread that comes to one of them leaves its operands there. When all threads named in the
mask are present, the operation is carried out for all of them at once, and each continues after its own instruction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cupola.cpu.compiler.emit import instructions
from cupola.cpu.compiler.emit.values.builder import constant
from cupola.cpu.compiler.emit.values.values import BITS, Value
from cupola.cpu.compiler.passes import Block
from cupola.cpu.compiler.ptx import ast

if TYPE_CHECKING:
    from .body import Body


@dataclass(slots=True)
class Gathering:
    """Meetings at instructions with the same qualifiers.

    ``index`` is that of its mask, ``slots`` are the offsets in the frame of the operands, ``place`` of the number of
    the instruction at which each thread is, and ``site`` of that instruction's site.
    """

    blocks: list[Block]
    index: int
    types: tuple[str, ...]
    slots: list[int]
    place: int
    site: int

    @property
    def instruction(self) -> ast.Instruction:
        """The one with the most destinations."""
        found = [block.terminator for block in self.blocks if block.terminator is not None]
        return max(found, key=lambda i: len(instructions.split_operands(i)[0]))


class Gatherings:
    """The gatherings of a kernel, and the part of the frame in front of the registers."""

    def __init__(self, blocks: list[Block], width: int) -> None:
        found: dict[tuple[str, tuple[str, ...]], list[Block]] = {}
        for block in blocks:
            end = block.terminator
            does = end.description if end is not None else None
            if end is None or does is None or does.waits != "warp" or does.whole_warp:
                continue
            if does.lowered != "meeting":  # not bar.warp.sync, which exchanges nothing
                found.setdefault((end.opcode, end.modifiers), []).append(block)
        several = [same for same in found.values() if len(same) > 1 and width > 1]
        self.mask_count = 2 * len(blocks) + len(several)
        self.frame_bytes = -(-2 * 4 * self.mask_count // 64) * 64
        self.all: list[Gathering] = []
        self.by_block: dict[int, Gathering] = {}
        for number, same in enumerate(several):
            end = same[0].terminator
            assert end is not None
            types = tuple(instructions.operand_types(end).sources)
            slots = [self._slot(width * max(4, BITS[type] // 8)) for type in (*types, "i32", "i32")]
            self.all.append(Gathering(same, 2 * len(blocks) + number, types, slots[:-2], slots[-2], slots[-1]))
            self.by_block |= {block.index: self.all[-1] for block in same}

    def _slot(self, size: int) -> int:
        offset = self.frame_bytes
        self.frame_bytes += -(-size // 64) * 64
        return offset


def _at(body: Body, slot: int) -> str:
    return body.builder.emit(f"getelementptr i8, ptr %frame, i64 {slot}")


def _load(body: Body, slot: int, type: str) -> Value:
    kept = body.builder.vector_type("i32" if type == "i1" else type)
    value = Value(body.builder.emit(f"load {kept}, ptr {_at(body, slot)}"), kept.split(" x ")[1].rstrip(">"), True)
    return body.builder.compare("icmp ne", value, constant("i32", 0)) if type == "i1" else value


def _leave(body: Body, slot: int, value: Value, type: str) -> None:
    """Put the values of the threads that are here into a slot."""
    builder = body.builder
    if type == "i1":
        value = builder.select(value, constant("i32", 1), constant("i32", 0))
    value = builder.splat(value)
    value = builder.select(body.control.active(), value, _load(body, slot, value.type))
    builder.line(f"store {builder.typed(builder.splat(value))}, ptr {_at(body, slot)}")


def come(body: Body, block: Block, instruction: ast.Instruction) -> None:
    """Write what threads do that come to one of the instructions."""
    gathering = body.gatherings.by_block[block.index]
    _, sources = instructions.split_operands(instruction)
    for source, type, slot in zip(sources, gathering.types, gathering.slots, strict=True):
        _leave(body, slot, body.operand(source, type), type)
    _leave(body, gathering.place, constant("i32", gathering.blocks.index(block)), "i32")
    _leave(body, gathering.site, constant("i32", body.new_site(instruction)), "i32")
    body.control.add_threads(gathering.index, body.control.mask)
    body.control.dispatch_from(0)


def write_gathering(body: Body, gathering: Gathering) -> None:
    """Write the operation itself, behind the blocks of the body."""
    builder, control = body.builder, body.control
    control.begin_gathering(f"gathering{gathering.index}", gathering.index)
    arrived = control.mask
    values = [_load(body, slot, type) for slot, type in zip(gathering.slots, gathering.types, strict=True)]
    builder.declarations["declare i32 @cupola_missing_members(ptr, i32, i32)"] = None
    named = body.spill("members", values[-1])
    text = f"call i32 @cupola_missing_members(ptr {named}, i32 {arrived.ir}, i32 {control.live().ir})"
    waiting = Value(builder.emit(text), "i32")
    control.set_waiting(gathering.index, waiting)
    complete = builder.binary("xor", arrived, waiting)
    wait, go_on = builder.new_label("wait"), builder.new_label("together")
    nobody = builder.emit(f"icmp eq i32 {complete.ir}, 0")
    builder.line(f"br i1 {nobody}, label %{wait}, label %{go_on}")
    builder.label(wait)
    body.store_field("site", builder.lane(_load(body, gathering.site, "i32"), control.first_lane()))
    control.dispatch_from(gathering.index + 1)
    builder.label(go_on)
    control.set_mask(complete)
    for each in body.instruments:
        each.met(gathering.instruction, values[-1])
    if len(values) > 1:  # who takes no part has nothing to give
        values[0] = builder.select(control.active(), values[0], constant(values[0].type, 0))
    builder.active = control.active()
    results = instructions.lower(builder, gathering.instruction, values)
    places = _load(body, gathering.place, "i32")
    for number, block in enumerate(gathering.blocks):
        assert block.terminator is not None
        here = builder.ballot(builder.compare("icmp eq", places, constant("i32", number)))
        control.set_mask(builder.binary("and", complete, here))
        body.registers.begin_block()
        destinations, _ = instructions.split_operands(block.terminator)
        for destination, value in zip(destinations, results, strict=False):
            body.write(destination, value)
        control.leave_gathering(block)
    control.end_gathering(gathering.blocks)
