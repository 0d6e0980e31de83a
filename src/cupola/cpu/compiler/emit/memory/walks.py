"""Loops in which a thread walks along arrays and looks up what it finds there, by threads that run one by one.

Such a loop (passes/walks.py) is one basic block, which does nothing but load and compute. How often it will run is
known where it begins, by the counter that ends it. So all places of a walk are checked there, by the first and the
last one, and only the look-ups are left to be checked one by one, by the register that has what was read. The block is
written twice. The *quick* one has these checks and no others, and calls nothing. It writes what lives across blocks at
its end only: where a check fails, the iteration begins anew in the *careful* one, which goes on to the end of the loop
and checks each access as everywhere else. What that finds out is known when the loop begins the next time.
"""

from __future__ import annotations

from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING

from cupola.cpu.compiler.emit.control.lowerings import writes_blocks
from cupola.cpu.compiler.emit.threads.pointers import is_wide
from cupola.cpu.compiler.emit.threads.shape import WALKERS
from cupola.cpu.compiler.emit.values.builder import Builder, constant
from cupola.cpu.compiler.emit.values.values import Value
from cupola.cpu.compiler.passes import Block
from cupola.cpu.compiler.ptx import ast
from cupola.cpu.compiler.records import dataclass

from .abreast import Abreast, hidden, iterations
from .addresses import base_of
from .array_elements import Element, index_of, is_within_reach, within_reach
from .bounds import Access, in_allocation, rotated
from .memory import scalar_load, write_loaded
from .places import FARTHEST, Places

if TYPE_CHECKING:
    from cupola.cpu.compiler.emit.control.body import Body

_LOADS = frozenset(["ld", "ldu"])
_INTEGERS = frozenset(["s32", "u32", "s64", "u64"])
_LARGEST_STEP = 1 << 12
_LONGEST_CHAIN = 6
_MOST_TIMES, _LONGEST = 2, 48
"""How often the quick block is written in a row, and how many instructions that may be if it is more than once."""


@dataclass(frozen=True, slots=True)
class Counter:
    """What ends a loop: it goes on while a register, to which ``step`` has been added, compares with ``end``."""

    register: str
    step: int
    comparison: str
    end: ast.Operand
    type: str


@dataclass(slots=True)
class Line:
    """The loads of one size from a register that moves by ``step``: the lowest, and how far up they go."""

    step: int
    low: int
    high: int
    lowest: ast.Instruction


@dataclass(slots=True)
class Walk:
    """A loop as above: its lines, by register and size, and its loads, by the instruction's ``id``.

    Those of lines have ``places``: the register, and how far from where that is when an iteration begins.
    """

    counter: Counter
    lines: dict[tuple[str, int], Line] = field(default_factory=dict)
    look_ups: dict[int, Access] = field(default_factory=dict)
    places: dict[int, tuple[str, int]] = field(default_factory=dict)

    def add(self, access: Access, name: str, offset: int, step: int | None) -> None:
        """Take a load at an offset from where a register is when an iteration begins."""
        if step is None or step <= 0 or step > _LARGEST_STEP or step % access.size:
            self.look_ups[id(access.instruction)] = access
            return
        line = self.lines.setdefault((name, access.size), Line(step, offset, offset, access.instruction))
        if (offset - line.low) % access.size:
            self.look_ups[id(access.instruction)] = access
            return
        self.places[id(access.instruction)] = name, offset
        line.high = max(line.high, offset)
        if offset < line.low:
            line.low, line.lowest = offset, access.instruction


def walk_of(body: Body, block: Block) -> Walk | None:
    """What a block is a walk by, or None."""
    if body.width not in (1, WALKERS) or not body.whole_blocks or body.instruments or body.registers.far:
        return None
    if len(block.successors) != 2 or block.successors[0] is not block or block.successors[1] is block:
        return None
    if not all(map(_is_harmless, block.instructions)):
        return None
    steps = _steps(block)
    counter = _counter(block, steps)
    if counter is None:
        return None
    walk = Walk(counter)
    moved: set[str] = set()
    for instruction, effect in zip(block.instructions, block.effects, strict=False):
        if instruction.opcode in _LOADS and not _is_param(instruction):
            access = Access.of(instruction, write=False)
            address = instruction.operands[1]
            if access.space not in ("global", "generic") or access.volatile:
                return None
            if access.space == "generic" and (body.layout.local_bytes > 0 or body.layout.has_stack):
                return None
            if not isinstance(address, ast.Address) or not isinstance(address.base, ast.Register):
                return None
            name, step = address.base.name, steps.get(address.base.name)
            walk.add(access, name, address.offset + (step or 0) * (name in moved), step)
        moved.update(effect.writes)
    return walk if walk.lines else None


def _is_param(instruction: ast.Instruction) -> bool:
    return any(modifier.partition("::")[0] == "param" for modifier in instruction.modifiers)


def _is_harmless(instruction: ast.Instruction) -> bool:
    if instruction.guard is not None:
        return False
    return instruction.opcode in (*_LOADS, "cvta") or instruction.description.lowered == "values"


def _steps(block: Block) -> dict[str, int]:
    """The registers to which an iteration adds a number, and does nothing else to them."""
    written = [name for effect in block.effects for name in effect.writes]
    found: dict[str, int] = {}
    for instruction in block.instructions:
        match instruction.opcode, instruction.operands:
            case "add", (ast.Register(name), ast.Register(other), ast.Immediate(step)):
                (type,) = instruction.modifiers[-1:]
                if name == other and written.count(name) == 1 and type in _INTEGERS and len(instruction.modifiers) == 1:
                    half = 1 << int(type[1:]) - 1
                    found[name] = (step + half) % (2 * half) - half
    return found


def _counter(block: Block, steps: dict[str, int]) -> Counter | None:
    """What ends the loop of a block; None if it cannot be known before how often that runs."""
    end = block.terminator
    if end is None or end.opcode != "bra" or end.guard is None or end.guard.negated:
        return None
    written = [name for effect in block.effects for name in effect.writes]
    if written.count(end.guard.register.name) != 1:
        return None
    moved: set[str] = set()
    for instruction, effect in zip(block.instructions, block.effects, strict=False):
        if end.guard.register.name in effect.writes:
            match instruction.opcode, instruction.modifiers, instruction.operands:
                case "setp", (comparison, type), (ast.Register(), ast.Register(name), limit):
                    step = steps.get(name, 0)
                    known = isinstance(limit, ast.Immediate | ast.Register) and (
                        isinstance(limit, ast.Immediate) or limit.name not in written
                    )
                    if known and name in moved and type in _INTEGERS and _is_counted(comparison, step):
                        return Counter(name, step, comparison, limit, type)
            return None
        moved.update(effect.writes)
    return None


def _is_counted(comparison: str, step: int) -> bool:
    if comparison == "ne":
        return 0 < abs(step) <= _LARGEST_STEP and abs(step) & abs(step) - 1 == 0
    return comparison == "lt" and 0 < step <= _LARGEST_STEP


@dataclass(frozen=True, slots=True)
class Start:
    """Where a line begins, if all goes well: ``offset`` bytes behind an element."""

    element: Element
    offset: int


def _start_of(body: Body, block: Block, name: str) -> Start | None:
    """What a register has been made of that is an address when a loop begins.

    It may have changed since then: who uses this compares.
    """
    offset = 0
    index, widening, factor = "", "", 0
    pointer, place = "", name
    for _ in range(_LONGEST_CHAIN):
        instruction = _only_writer(body, block, place)
        if instruction is None:
            return None
        match instruction.opcode, instruction.operands:
            case "add", (_, ast.Register(source), ast.Immediate(step)) if is_wide(instruction):
                offset, place = offset + step, source
            case "add", (_, ast.Register(x), ast.Register(y)) if is_wide(instruction) and not pointer:
                pointer, place = (x, y) if x in body.pointer_parameters else (y, x)
            case "mul", (_, ast.Register(source), ast.Immediate(factor)) if "wide" in instruction.modifiers:
                widening = {"s32": "sext", "u32": "zext"}.get(instruction.modifiers[-1], "")
                index = source if widening else ""
                break
            case "shl", (_, ast.Register(source), ast.Immediate(bits)) if "b64" in instruction.modifiers and bits < 16:
                index, factor = source, 1 << bits
                break
            case _:
                return None
    if not index or pointer not in body.pointer_parameters:
        return None
    return Start(Element(pointer, index, widening, factor), (offset + (1 << 63)) % (1 << 64) - (1 << 63))


def _only_writer(body: Body, block: Block, name: str) -> ast.Instruction | None:
    """The one instruction outside of a block that writes a register."""
    writers = [i for other, i in body.writers.get(name, ()) if other is not block]
    return writers[0] if len(writers) == 1 and writers[0].guard is None else None


class _Quick(Places):
    """Both blocks of a walk while they are written."""

    def __init__(self, body: Body, block: Block, walk: Walk, steps: dict[str, int]) -> None:
        super().__init__(body, block, walk, steps)
        self.quick, self.careful, self.back = (f"{word}{block.index}" for word in ("quick", "careful", "back"))
        self.at = f"%at{block.index}"
        self.builder.allocas.append(f"  {self.at} = alloca i64")
        self.first = constant("i64", 0)
        """What counts the iterations begins with: the index of the elements that are walked along, or 0."""
        self.lead: tuple[str, str] | None = None
        """The register with that index, and what widens it."""

    def write(self) -> None:
        """Write the choice between the two blocks, and both."""
        body, builder = self.body, self.builder
        before, builder.lines = builder.lines, []
        self._write_careful()
        careful, builder.lines = builder.lines, before
        body.begin_block()
        body.control.begin(self.block)
        known, more = iterations(body, self.walk.counter)
        verdict = builder.both(known.ir, self._are_inside(more))
        starts = {name: body.registers.read(name, body.registers.homes[name].type) for name in self.steps}
        builder.line(f"br i1 {verdict}, label %{self.quick}.begin, label %{self.careful}, !prof !1")
        builder.lines += careful
        body.begin_block()
        builder.label(f"{self.quick}.begin")
        self._write_quick(starts, more)

    def _write_careful(self) -> None:
        body = self.body
        first = len(body.sites)
        body.control.begin(self.block, self.careful)
        for instruction in self.block.instructions:
            body.instruction(instruction)
        assert self.block.terminator is not None and self.block.terminator.guard is not None
        left = self.builder.new_label("left")
        again = body.guard(self.block.terminator.guard).ir
        self.builder.line(f"br i1 {again}, label %{self.careful}, label %{left}")
        self.builder.label(left)
        body.control.go(self.block.successors[1])
        for number, site in enumerate(body.sites[first:], body.first_site + first):
            self.sites[id(site.instruction)] = number

    def _write_quick(self, starts: dict[str, Value], more: Value) -> None:
        body, builder, registers = self.body, self.builder, self.body.registers
        end = builder.binary("add", builder.binary("add", self.first, more), constant("i64", 1))
        builder.line(f"store i64 {self.first.ir}, ptr {self.at}")
        builder.line(f"br label %{self.quick}")
        times = max(1, min(_MOST_TIMES, _LONGEST // len(self.block.instructions)))
        left = builder.new_label("left")
        for time in range(times):
            body.control.begin(self.block, f"{self.quick}.{time}" if time else self.quick)
            at = Value(builder.emit(f"load i64, ptr {self.at}"), "i64")
            for name, start in starts.items():
                registers.values[name] = self._moved(name, start, at)
            registers.hold()
            for instruction in self.block.instructions:
                if instruction.opcode in _LOADS and not _is_param(instruction):
                    self._load(instruction)
                else:
                    body.instruction(instruction)
            registers.release(without=starts)
            following = builder.binary("add", at, constant("i64", 1))
            again = f"{self.quick}.{time + 1}"
            if time + 1 == times:
                following, again = hidden(body, following), self.quick
            builder.line(f"store i64 {following.ir}, ptr {self.at}")
            over = builder.compare("icmp eq", following, end)
            builder.line(f"br i1 {over.ir}, label %{left}, label %{again}")
        builder.label(self.back)
        self._settle(starts, hidden(body, Value(builder.emit(f"load i64, ptr {self.at}"), "i64")))
        builder.line(f"br label %{self.careful}")
        builder.label(left)
        self._settle(starts, end)
        body.control.go(self.block.successors[1])

    def _moved(self, name: str, start: Value, at: Value) -> Value:
        """What a register that is counted holds when an iteration with this number begins."""
        builder = self.builder
        if name in self.led:
            return self.element(name, at)
        times = builder.binary("sub", at, self.first) if self.led else at
        times = builder.cast("trunc", times, start.type) if start.type != "i64" else times
        return builder.binary("add", start, builder.binary("mul", times, constant(start.type, self.steps[name])))

    def _settle(self, starts: dict[str, Value], at: Value) -> None:
        """Write to the homes what is counted."""
        for name, start in starts.items():
            self.body.registers.write(name, self._moved(name, start, at), constant("i1", 1))

    def _load(self, instruction: ast.Instruction) -> None:
        """Write a load of the quick block."""
        body, builder = self.body, self.builder
        access = Access.of(instruction, write=False)
        source = instruction.operands[1]
        assert isinstance(source, ast.Address)
        base, offset = base_of(body, source, access.space)
        address = builder.binary("add", base, constant("i64", offset)) if offset else base
        if id(instruction) in self.walk.look_ups:
            inside = is_within_reach(body, access, self.remembers(instruction))
            if inside is None:
                inside = in_allocation(builder, self.entry(instruction), address, access.size)
            found = builder.new_label("found")
            builder.line(f"br i1 {inside}, label %{found}, label %{self.back}, !prof !1")
            builder.label(found)
        write_loaded(body, instruction, scalar_load(body, access, builder.emit(f"inttoptr i64 {address.ir} to ptr")))

    def _are_inside(self, more: Value) -> str:
        """Whether all places of all lines are inside (an i1), if the loop runs so often behind the first time."""
        body, builder = self.body, self.builder
        verdict = "true"
        elements: dict[tuple[str, str, int, int, int], tuple[Value, list[tuple[int, Access]]]] = {}
        for (name, size), line in self.walk.lines.items():
            start = _start_of(body, self.block, name)
            address = body.registers.read(name, "i64")
            if start is None or start.element.bytes != size or (start.offset + line.low) % size:
                verdict = builder.both(verdict, self._is_inside(line, address, size, more))
                continue
            element = start.element
            place = body.pointer_parameters[element.pointer]
            index = index_of(body, element)
            distance = builder.binary("mul", index, constant("i64", size))
            expected = builder.binary("add", body.parameter(place, "i64", 8), distance)
            if start.offset:
                expected = builder.binary("add", expected, constant("i64", start.offset))
            verdict = builder.both(verdict, builder.compare("icmp eq", address, expected).ir)
            if line.step == size and self.lead in (None, (element.index, element.widening)):
                self.lead = element.index, element.widening
                self.first = index
                self.led[name] = place, size, start.offset
            first = (start.offset + line.low) // size
            key = element.index, element.widening, first, line.step // size, (line.high - line.low) // size
            access = Access.of(line.lowest, write=False)
            elements.setdefault(key, (index, []))[1].append((place, access))
        for (_, _, first, step, beyond), (index, arrays) in elements.items():
            limit = self._least(arrays, beyond)
            number = builder.binary("add", index, constant("i64", first)) if first else index
            verdict = builder.both(verdict, self._fits(number, limit, more, step))
        return verdict

    def _least(self, arrays: list[tuple[int, Access]], beyond: int) -> Value:
        """How many elements are in all of some arrays that have so many behind them."""
        body = self.body
        limits = [
            within_reach(body, place, access, self.remembers(access.instruction), beyond) for place, access in arrays
        ]
        least = limits[0]
        for limit in limits[1:]:
            least = body.at_entry(f"least {least.ir} {limit.ir}", partial(_smaller, least, limit))
        return least

    def _is_inside(self, line: Line, start: Value, size: int, more: Value) -> str:
        """Whether all loads of a line are inside of the allocation that the careful block remembers (an i1)."""
        body, builder = self.body, self.builder
        entry = self.entry(line.lowest)
        low = body.load_field(builder, entry, 0, "i64")
        limit = body.load_field(builder, entry, 8, "i64")
        beyond = (line.high - line.low) // size
        if beyond:
            limit = builder.intrinsic("usub.sat", limit, constant("i64", beyond))
        first = builder.binary("add", start, constant("i64", line.low)) if line.low else start
        number = rotated(builder, builder.binary("sub", first, low), size)
        return self._fits(number, limit, more, line.step // size)

    def _fits(self, number: Value, limit: Value, more: Value, step: int) -> str:
        """Whether an element's number, and those that follow at a distance, are below a limit (an i1)."""
        builder, span = self.builder, more
        if step > 1:
            farthest = builder.intrinsic("umin", more, constant("i64", FARTHEST))
            span = builder.binary("mul", farthest, constant("i64", step))
        return builder.compare("icmp ult", number, builder.intrinsic("usub.sat", limit, span)).ir


def _smaller(x: Value, y: Value, b: Builder) -> Value:
    return b.intrinsic("umin", x, y)


@writes_blocks
def write_walk(body: Body, block: Block) -> bool:
    """Write the block of a walk; False if it is none."""
    walk = walk_of(body, block)
    if walk is None:
        return False
    steps = {name: step for name, step in _steps(block).items() if name in body.registers.homes}
    if body.width > 1:
        starts = {name: _start_of(body, block, name) for name, _ in walk.lines}
        origins = {name: start for name, start in starts.items() if start is not None}
        common = {(start.element.index, start.element.widening) for start in origins.values()}
        Abreast(body, block, walk, steps, origins if len(common) == 1 else {}).write()
    else:
        _Quick(body, block, walk, steps).write()
    return True
