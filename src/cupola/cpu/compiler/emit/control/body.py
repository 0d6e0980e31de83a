"""The state of writing the body of a kernel, and what all parts of the emitter need: fields, operands, buffers."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from cupola.cpu.compiler.emit import instructions
from cupola.cpu.compiler.emit.threads.layout import Layout, Place
from cupola.cpu.compiler.emit.threads.pointers import pointer_parameters
from cupola.cpu.compiler.emit.threads.registers import REGISTER_TYPE, Inexact, Kind, Registers
from cupola.cpu.compiler.emit.threads.shape import Shape
from cupola.cpu.compiler.emit.threads.special import read_special
from cupola.cpu.compiler.emit.threads.units import begin_loops
from cupola.cpu.compiler.emit.values.builder import Builder, constant
from cupola.cpu.compiler.emit.values.nans import float_registers, ignores_nan_bits
from cupola.cpu.compiler.emit.values.values import BITS, Value
from cupola.cpu.compiler.objects import abi
from cupola.cpu.compiler.passes import Analysis, Block
from cupola.cpu.compiler.passes.pointers import Pointers, pointers
from cupola.cpu.compiler.ptx import ast
from cupola.cpu.compiler.records import dataclass

from .control import Control
from .gatherings import Gatherings, write_gathering
from .lowerings import BLOCK_WRITERS, Lowering, lowering_of
from .meetings import is_meeting

if TYPE_CHECKING:
    from cupola.cpu.compiler.emit.instruments.instrument import Instrument

    InstrumentType = type[Instrument]

_THREAD = ast.Special("tid", "x")
_Plan = TypeVar("_Plan")


@dataclass(frozen=True, slots=True)
class Site:
    """A place in the kernel that may fault: an access, a barrier, a trap."""

    instruction: ast.Instruction
    space: str = ""
    size: int = 0
    write: bool = False


@dataclass(slots=True)
class Facts:
    """What the emitter gets to know about a kernel."""

    name: str
    analysis: Analysis
    layout: Layout
    shape: Shape


def _names_cluster(instruction: ast.Instruction) -> bool:
    return any(isinstance(o, ast.Special) and o.name == "clusterid" for o in instruction.operands)


def _offset_of(place: Place | None) -> int | None:
    return place.offset if place is not None and place.space == "param" else None


class TooLong(Exception):
    """A body has more lines than it may have."""


class Body:
    """One body while it is written.

    Parameters
    ----------
    facts
        The kernel.
    independent
        Which of the two bodies of abi.h to write.
    kinds
        What each register may hold from lane to lane.
    inexact
        Affine registers whose lanes may have wrapped.
    first_site
        The number of the first site.
    far
        Whether to keep registers in the frame; see `registers`.
    instruments
        Those that observe the kernel (emit/instruments).

    Attributes
    ----------
    first_site
        The same.
    instruments
        The same, at work on this body.
    whole_blocks
        One call of the body runs all units of a block, one after the other: no unit ever waits for another.
    rows_of_blocks
        It runs those of several blocks in a row of the grid: each unit of all blocks before the next one.
    counts_units
        It counts units, so that the number of each is known without looking at it.
    apart
        No thread ever waits for another block, and it cannot be seen who comes first, but by atomic operations.
    """

    def __init__(
        self,
        facts: Facts,
        *,
        independent: bool,
        kinds: dict[str, Kind],
        inexact: dict[str, Inexact],
        first_site: int,
        far: bool = False,
        instruments: Sequence[InstrumentType] = (),
    ) -> None:
        self.facts = facts
        self.independent = independent
        self.kinds = kinds
        self.shape = facts.shape
        self.width = facts.shape.width
        self.layout = facts.layout
        self.analysis = facts.analysis
        self.blocks: list[Block] = facts.analysis.blocks
        self.builder = Builder(self.width)
        self.builder.canonical_nans = False
        self.sites: list[Site] = []
        self.first_site = first_site
        self.counter_count = 0
        self.pointers: Pointers | None = None
        """What an instrument wants to know about them."""
        self.entry: list[str] = []
        self._entry_values: dict[str, Value] = {}
        self._scratch: dict[tuple[str, int], str] = {}
        self._tables: dict[str, str] = {}
        self.gatherings = Gatherings(self.blocks, self.width)
        frame = self.gatherings.frame_bytes
        places = []
        for kind in instruments:
            places.append(frame)
            frame += -(-kind.frame_bytes_of(facts) // 64) * 64
        keeps_registers = any(kind.keeps_registers for kind in instruments)
        constants = {} if keeps_registers else self._constants()
        self.registers = Registers(
            self.builder,
            facts.analysis.registers,
            kinds,
            set(facts.analysis.registers) if keeps_registers else self._registers_with_homes() - constants.keys(),
            frame_offset=frame,
            in_frame=independent,
            far=far and not independent,
            inexact=inexact,
            floats=float_registers(self.blocks),
            warp_lines=facts.analysis.warp_lines,
            constants=constants,
        )
        self.apart = (
            not facts.analysis.spinning
            and not facts.layout.has_stack
            and all(i.opcode not in ("call", "trap", "brkpt") for b in self.blocks for i in b.code())
        )
        self.whole_blocks = (
            self.apart
            and not independent
            and all(kind.of_any_width for kind in instruments)
            and all(i.description.waits == "no" for b in self.blocks for i in b.code())
        )
        self.rows_of_blocks = self.whole_blocks and not instruments and self._may_mix_blocks()
        self.counts_units = self.whole_blocks and self.shape.counted
        self.control = Control(self)
        self._of_block: dict[Callable[[Block], Any], Any] = {}
        self.instruments: list[Instrument] = []
        for kind, place in zip(instruments, places, strict=True):
            self.instruments.append(kind(self, self.counter_count))
            self.instruments[-1].frame_offset = place
            self.counter_count += kind.counters_of(facts)
        if any(kind.asks_for_pointers for kind in instruments):
            places_of = facts.layout.places
            code = (instruction for block in self.blocks for instruction in block.code())
            self.pointers = pointers(code, lambda name: _offset_of(places_of.get(name)))

    def _constants(self) -> dict[str, Value]:
        """Registers that always hold one number, or the address of a variable in shared or local memory."""
        found: dict[str, Value] = {}
        for name, known in self.analysis.constants.items():
            type = REGISTER_TYPE[self.analysis.registers[name]]
            if isinstance(known, ast.Immediate):
                found[name] = self._immediate(known, f"i{BITS[type]}")
            elif self.layout.places[known.name].space in ("shared", "local") and type in ("i32", "i64"):
                found[name] = self.builder.cast("trunc", self.symbol(known), type)
        return found

    def _registers_with_homes(self) -> set[str]:
        """Those that live across blocks, across the way to a meeting, or around a guarded instruction."""
        names = {name for block in self.blocks for name in self.analysis.live_in(block)}
        for block in self.blocks:
            if is_meeting(block):
                names.update(block.effects[-1].reads, block.effects[-1].writes)
            for instruction, effect in zip(block.instructions, block.effects, strict=False):
                if instruction.guard is not None and instruction.description.lowered == "own":
                    names.update(effect.writes)
        return names

    @cached_property
    def read_registers(self) -> frozenset[str]:
        """The registers that anything reads."""
        return frozenset(name for block in self.blocks for effect in block.effects for name in effect.reads)

    @cached_property
    def writers(self) -> dict[str, list[tuple[Block, ast.Instruction]]]:
        """What writes each register, and in which block."""
        found: dict[str, list[tuple[Block, ast.Instruction]]] = {}
        for block in self.blocks:
            for instruction, effect in zip(block.code(), block.effects, strict=False):
                for name in effect.writes:
                    found.setdefault(name, []).append((block, instruction))
        return found

    @cached_property
    def pointer_parameters(self) -> dict[str, int]:
        """The registers that hold a parameter of 64 bits, with its place."""
        return pointer_parameters(self.blocks, self.layout)

    def _may_mix_blocks(self) -> bool:
        """Whether blocks may take turns in a kernel without waiting, and whether that promises neighboring accesses.

        Loops promise that a block comes back to what it has in the processor's cache. Who prints or counts first
        should be who comes first.
        """
        if self.analysis.loops or self.layout.static_shared:
            return False
        instructions = [i for block in self.blocks for i in block.instructions]
        return not any(i.description.ordered or _names_cluster(i) for i in instructions)

    # Values that hold for the whole call

    def at_entry(self, key: str, write: Callable[[Builder], Value]) -> Value:
        """A value computed once, at the beginning of the body."""
        if key not in self._entry_values:
            lines, self.builder.lines = self.builder.lines, []
            value = write(self.builder)
            self.entry += self.builder.lines
            self.builder.lines = lines
            self._entry_values[key] = value
        return self._entry_values[key]

    def context_field(self, name: str, type: str = "i32") -> Value:
        """A field of the context that does not change while the body runs."""
        if name == "ctaid.x" and self.rows_of_blocks:
            return Value("%block.x", type)
        return self.at_entry(
            f"context {name}", lambda b: self.load_field(b, "%context", abi.CONTEXT[name], type, fixed=True)
        )

    def parameter(self, offset: int, type: str, align: int) -> Value:
        """What is at an offset in the parameters; where one call runs whole blocks, it is loaded once."""

        def load(b: Builder) -> Value:
            place = b.emit(f"getelementptr i8, ptr %params, i64 {offset}")
            return Value(b.emit(f"load {type}, ptr {place}, align {align}, !invariant.load !0"), type)

        return self.at_entry(f"parameter {offset} {type}", load) if self.whole_blocks else load(self.builder)

    def warp_field(self, name: str, type: str = "i32") -> Value:
        """A field of the unit that does not change while the body runs."""
        return self.at_entry(f"warp {name}", lambda b: self.load_field(b, "%warp", abi.WARP[name], type, fixed=True))

    def load_field(self, builder: Builder, pointer: str, offset: int, type: str, *, fixed: bool = False) -> Value:
        """A field of a record; ``fixed``: nothing changes it while the body runs."""
        address = builder.emit(f"getelementptr i8, ptr {pointer}, i64 {offset}")
        return Value(builder.emit(f"load {type}, ptr {address}{', !invariant.load !0' if fixed else ''}"), type)

    def store_field(self, name: str, value: Value) -> None:
        """Set a field of the unit."""
        address = self.builder.emit(f"getelementptr i8, ptr %warp, i64 {abi.WARP[name]}")
        self.builder.line(f"store {self.builder.typed(value)}, ptr {address}")

    # Buffers for helpers

    def scratch(self, name: str, element_bytes: int) -> str:
        """A stack buffer with ``element_bytes`` for each lane, shared by all that use the name."""
        key = name, element_bytes
        if key not in self._scratch:
            self._scratch[key] = self.builder.alloca(f"[{max(64, self.width * element_bytes)} x i8]")
        return self._scratch[key]

    def spill(self, name: str, value: Value) -> str:
        """A stack buffer that holds the value of each lane."""
        value = self.builder.splat(value)
        buffer = self.scratch(name, int(value.type[1:]) // 8)
        self.builder.line(f"store {self.builder.typed(value)}, ptr {buffer}, align 16")
        return buffer

    def table(self, type: str, numbers: Sequence[int]) -> str:
        """A constant array of integers in the module."""
        text = f"internal unnamed_addr constant [{len(numbers)} x {type}] [{', '.join(f'{type} {n}' for n in numbers)}]"
        return "@" + self._tables.setdefault(text, f"table.{len(self._tables)}")

    def new_site(self, instruction: ast.Instruction, space: str = "", size: int = 0, *, write: bool = False) -> int:
        """Number a place that may fault."""
        self.sites.append(Site(instruction, space, size, write))
        return self.first_site + len(self.sites) - 1

    # Operands

    def operand(self, operand: ast.Operand, type: str, *, raw_nans: bool = False) -> Value:
        """The value of a source operand as an LLVM type; for ``raw_nans`` see `Registers.read`."""
        match operand:
            case ast.Register(name):
                return self.registers.read(name, type, raw_nans=raw_nans)
            case ast.Selector(register):  # the lowering takes the part that it names
                return self.registers.read(register.name, type)
            case ast.Negated(register):
                return self._negated(register.name)
            case ast.Immediate():
                return self._immediate(operand, type)
            case ast.Special():
                return self._fit(read_special(self, operand), type)
            case ast.Symbol(name):
                place = self.layout.places[name]
                return self._fit(self.opaque(operand) if place.opaque else self.symbol(operand), type)
        raise TypeError(f"{operand!r} is not a source operand")

    def guard(self, guard: ast.Guard) -> Value:
        """The predicate in front of an instruction."""
        return self._negated(guard.register.name) if guard.negated else self.registers.read(guard.register.name, "i1")

    def _negated(self, name: str) -> Value:
        return self.builder.binary("xor", self.registers.read(name, "i1"), constant("i1", 1))

    def _fit(self, value: Value, type: str) -> Value:
        return (
            self.builder.extend(value, type, is_signed=False) if type[0] == "i" else self.builder.bitcast(value, type)
        )

    def _immediate(self, operand: ast.Immediate, type: str) -> Value:
        bits = operand.value
        if operand.kind == "f64" and type == "float":
            (number,) = struct.unpack("<d", struct.pack("<Q", bits))
            return self.builder.real(type, number)
        return constant(type, int(bits != 0) if type == "i1" else bits)

    def symbol(self, operand: ast.Symbol) -> Value:
        """The address of a variable in its own space (of a parameter: its generic address)."""
        place = self.layout.places[operand.name]
        if place.space in ("shared", "local", "code"):
            return constant("i64", place.offset + operand.offset)
        if place.space == "param":
            base, offset = self.context_field("params", "i64"), place.offset + operand.offset
        else:

            def load(b: Builder) -> Value:
                table = self.load_field(b, "%context", abi.CONTEXT["variables"], "ptr", fixed=True)
                slot = b.emit(f"getelementptr i64, ptr {table.ir}, i64 {place.offset}")
                return Value(b.emit(f"load i64, ptr {slot}, !invariant.load !0"), "i64")

            base, offset = self.at_entry(f"variable {place.offset}", load), operand.offset
        return self.builder.binary("add", base, constant("i64", offset)) if offset else base

    def opaque(self, operand: ast.Symbol) -> Value:
        """What a variable of an opaque type, or a parameter, holds: the 64 bits of a texture or surface object."""
        place = self.layout.places[operand.name]
        if place.space not in ("global", "const", "param") or place.size < 8 or operand.offset:
            return constant("i64", 0)  # no object
        address = self.builder.emit(f"inttoptr {self.builder.typed(self.symbol(operand))} to ptr")
        return Value(self.builder.emit(f"load i64, ptr {address}, align 1"), "i64")

    def thread_numbers(self, block: Block) -> dict[str, Value]:
        """The registers that hold ``%tid.x`` where a block begins."""
        return {name: read_special(self, _THREAD) for name in self.analysis.thread_numbers[block.index]}

    def begin_block(self) -> None:
        """Forget what was worked out about the block before."""
        self._of_block = {}

    def of_block(self, plan: Callable[[Block], _Plan]) -> _Plan:
        """What a room works out about the block that is being written, and keeps until that ends."""
        if plan not in self._of_block:
            self._of_block[plan] = plan(self.control.block)
        found: _Plan = self._of_block[plan]
        return found

    # Instructions

    def write(self, operand: ast.Operand, value: Value, *, signed: bool = False) -> None:
        """Write a destination, in the lanes that run the instruction."""
        if isinstance(operand, ast.Register):
            self.registers.write(operand.name, value, self.control.written_lanes(operand.name), signed=signed)

    def instruction(self, instruction: ast.Instruction) -> None:
        """Write one instruction that does not end its block."""
        if instruction.description.lowered != "own":
            if self.instruments:
                self._observe(instruction)
            self.values(instruction)
            return
        lowering = lowering_of(instruction)
        if self.instruments:
            lowering = self._observed(lowering)
        if instruction.guard is None:
            lowering(self, instruction)
        else:
            self.control.guarded(instruction, lowering)

    def _observed(self, lowering: Lowering) -> Lowering:
        """What writes an instruction, behind what instruments write in front of it."""

        def observed(body: Body, instruction: ast.Instruction) -> None:
            body._observe(instruction)
            lowering(body, instruction)

        return observed

    def _observe(self, instruction: ast.Instruction) -> None:
        ends = instruction is self.control.block.terminator  # then it was observed when threads arrived
        for each in self.instruments:
            if not ends:
                each.instruction(instruction)
            each.accesses(instruction)

    def values(self, instruction: ast.Instruction) -> None:
        """Write an instruction that maps values to values; a guard only decides which lanes keep the result."""
        builder, control = self.builder, self.control
        types = instructions.operand_types(instruction)
        destinations, sources = instructions.split_operands(instruction)
        raw_nans = ignores_nan_bits(instruction)
        values = [
            self.operand(source, type, raw_nans=raw_nans) for source, type in zip(sources, types.sources, strict=True)
        ]
        lanes = control.active()
        kept = None
        if instruction.guard is not None:
            kept = self.guard(instruction.guard)
            lanes = kept if lanes.ir == "true" else builder.binary("and", lanes, kept)
        builder.active = lanes
        results = instructions.lower(builder, instruction, values)
        for destination, value in zip(destinations, results, strict=True):
            if isinstance(destination, ast.Selector):
                destination = destination.register
            if not isinstance(destination, ast.Register):
                continue
            written = control.written_lanes(destination.name)
            if kept is not None:
                written = kept if written.ir == "true" else lanes
            self.registers.write(destination.name, value, written, signed=types.signed)

    # The whole function

    def text(self, limit: float = math.inf) -> str:
        """Write the body.

        Raises
        ------
        TooLong
            As soon as it has more lines than the limit.
        """
        for block in self.blocks:
            self.begin_block()
            if any(write(self, block) for write in BLOCK_WRITERS):
                continue
            self.control.begin(block)
            for instruction in block.instructions:
                self.instruction(instruction)
                if len(self.builder.lines) > limit:
                    raise TooLong
            self.control.end(block)
        for gathering in self.gatherings.all if self.independent else ():
            write_gathering(self, gathering)
        self.control.finish()
        builder = self.builder
        first = "first.warp" if self.whole_blocks else "warp"
        signature = abi.SIGNATURE.format(warp=first, param_bytes=max(16, self.layout.param_bytes))
        return "\n".join(
            [
                f'define i32 @"{self.facts.name}"({signature}) #0 {{',
                "entry:",
                *builder.allocas,
                *(begin_loops(self) if self.whole_blocks else self.entry),
                *builder.lines,
                "}",
                *(f"@{name} = {text}" for text, name in self._tables.items()),
                *builder.functions.values(),
                *builder.declarations,
                "attributes #0 = { nounwind }",
                "!0 = !{}",
                '!1 = !{!"branch_weights", i32 100000, i32 1}',
                '!2 = !{!"branch_weights", i32 1, i32 100000}',
                "",
            ]
        )
