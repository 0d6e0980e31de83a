"""Walks (see walks.py) of the threads of a narrow unit, side by side.

A processor that goes through one row of a sparse matrix after the other cannot foresee where each of them ends. So
lanes walk *together* until the longest of their walks is over: each loads by itself, and they compute as vectors. Lanes
that are done go on to load from where their walk leads, and keep nothing of it. All places up to there are checked
where the walks begin. If one walk is far longer than the others, lanes walk *in turn* instead. Where a check fails, the
iteration begins anew in the careful block, which is the usual one, and its lanes walk on from there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cupola.cpu.compiler.emit.threads.registers import Demand
from cupola.cpu.compiler.emit.values.builder import constant
from cupola.cpu.compiler.emit.values.values import BITS, Value
from cupola.cpu.compiler.passes import Block
from cupola.cpu.compiler.ptx import ast

from .addresses import base_of
from .array_elements import Element, index_of, plan_elements, within_reach
from .bounds import Access, in_allocation, rotated
from .memory import scalar_load, write_loaded
from .places import FARTHEST, Places

if TYPE_CHECKING:
    from cupola.cpu.compiler.emit.control.body import Body

    from .walks import Counter, Line, Start, Walk

_TOGETHER, _ALONE, _SPARED = 28, 6, 90
"""What an iteration of all lanes costs, one of a single lane, and each end of a loop that nobody foresees."""

_ONE = constant("i64", 1)


def iterations(body: Body, counter: Counter) -> tuple[Value, Value]:
    """Whether it is known how often a loop runs behind the first time (an i1), and that, as an i64."""
    builder, bits = body.builder, int(counter.type[1:])
    type, step, signed = f"i{bits}", counter.step, counter.type[0] == "s"
    now, end = body.registers.read(counter.register, type), body.operand(counter.end, type)
    known = constant("i1", 1)
    if counter.comparison == "ne":
        way = builder.binary("sub", end, now) if step > 0 else builder.binary("sub", now, end)
        if abs(step) > 1:
            rest = builder.binary("and", way, constant(type, abs(step) - 1))
            known = builder.compare("icmp eq", rest, constant(type, 0))
    else:
        last = (1 << bits - signed) - step
        kind = "s" if signed else "u"
        known = builder.compare(f"icmp {kind}lt", now, end)
        if step > 1:  # or it may wrap on its way
            known = builder.binary("and", known, builder.compare(f"icmp {kind}le", end, constant(type, last)))
        way = builder.binary("sub", end, now)
    more = builder.binary("sub", way, constant(type, 1))
    if abs(step) > 1:
        more = builder.binary("udiv", more, constant(type, abs(step)))
    return known, builder.cast("zext", more, "i64") if bits < 64 else more


class Abreast(Places):
    """The blocks of a walk while they are written."""

    def __init__(self, body: Body, block: Block, walk: Walk, steps: dict[str, int], origins: dict[str, Start]) -> None:
        super().__init__(body, block, walk, steps)
        self.origins = origins
        self.careful = f"careful{block.index}"
        self.careful_mask = f"%careful.mask{block.index}"
        if block.index in body.control.regions:
            self.careful_mask = f"%m{block.index}"
        else:
            self.builder.allocas.append(f"  {self.careful_mask} = alloca i32")
        self.mask, self.times, self.waiting = (f"%{name}{block.index}" for name in ("mask", "times", "waiting"))
        self.builder.allocas += [f"  {name} = alloca i32" for name in (self.mask, self.waiting)]
        self.builder.allocas.append(f"  {self.times} = alloca i64")
        self.active = self.more = self.ends = constant("i1", 1)
        """Who walks, how often each of them goes on, and how many times that makes; 0 of the others."""
        self.starts: dict[str, Value] = {}
        self.places: dict[str, Value] = {}
        """The addresses where lines begin, of each lane, but for those that are ``led``."""
        self.index: Value | None = None
        """The index of the element where lines that are led begin."""
        self.at = [f"%at{block.index}.{lane}" for lane in range(body.width)]
        """Where the indices are kept of the elements at which lanes are."""
        self.builder.allocas += [f"  {name} = alloca i64" for name in self.at]
        self.indices: list[Value] = []
        """The index at which each lane is in an iteration."""
        self.scalars: dict[str, list[Value]] = {}
        """What the iteration has loaded for each lane by itself."""

    def write(self) -> None:
        """Write the choice between the blocks, and all of them."""
        body, builder, control = self.body, self.builder, self.body.control
        before, builder.lines = builder.lines, []
        self._write_careful()
        careful, builder.lines = builder.lines, before
        body.begin_block()
        control.begin(self.block)
        builder.line(f"store i32 {control.mask.ir}, ptr {self.mask}")
        self.active = control.active()
        known, more = iterations(body, self.walk.counter)
        self._find_places(more)
        most = builder.reduce("umax", self.more)
        self.starts = {name: body.registers.read(name, body.registers.homes[name].type) for name in self.steps}
        known = builder.binary("and", known, self._are_inside(most))
        if self.active.ir != "true":
            known = builder.binary("or", known, builder.binary("xor", self.active, constant("i1", 1)))
        everyone = constant("i32", (1 << body.width) - 1)
        fine = builder.compare("icmp eq", builder.ballot(known), everyone)
        inside, outside, together, in_turn = map(builder.new_label, ("inside", "outside", "together", "turn"))
        builder.line(f"br i1 {fine.ir}, label %{inside}, label %{outside}, !prof !1")
        builder.label(outside)
        self._go_to_careful(control.mask)
        builder.lines += careful
        builder.label(inside)
        if not self._have_turns():
            self._write_together(most)
            return
        cost = builder.binary("mul", most, constant("i64", _TOGETHER))
        alone = builder.binary("mul", builder.reduce("add", builder.splat(self.ends)), constant("i64", _ALONE))
        alone = builder.binary("add", alone, constant("i64", _SPARED * body.width))
        better = builder.compare("icmp ule", cost, alone)
        builder.line(f"br i1 {better.ir}, label %{together}, label %{in_turn}")
        builder.label(together)
        self._write_together(most)
        builder.label(in_turn)
        self._write_in_turn()

    def _begin(self, label: str, lanes: tuple[Value, Value] | None = None) -> None:
        """Begin one more block, with all lanes that walk, or with some of them: a mask, and an i1 for each."""
        body = self.body
        body.begin_block()
        body.control.begin_again(self.block, label, self.mask)
        if lanes is not None:
            body.control.run_with(*lanes)

    def _write_careful(self) -> None:
        """The usual block, which goes back to itself."""
        body, builder = self.body, self.builder
        first = len(body.sites)
        body.begin_block()
        body.control.begin_again(self.block, self.careful, self.careful_mask)
        builder.line(f"store i32 0, ptr {self.careful_mask}")
        for instruction in self.block.instructions:
            body.instruction(instruction)
        body.control.end(self.block)
        again = re.compile(rf"%b{self.block.index}\b")
        builder.lines = [again.sub(f"%{self.careful}", line) for line in builder.lines]
        for number, site in enumerate(body.sites[first:], body.first_site + first):
            self.sites.setdefault(id(site.instruction), number)

    def _find_places(self, more: Value) -> None:
        """Note where lines begin, and how often each lane goes on."""
        body, builder = self.body, self.builder
        names = [name for name, _ in self.walk.lines]
        for (name, size), line in self.walk.lines.items():
            start = self.origins.get(name)
            is_led = start is not None and start.element.bytes == line.step == size and names.count(name) == 1
            if start is not None and is_led and (start.offset + line.low) % size == 0:
                self.led[name] = body.pointer_parameters[start.element.pointer], size, start.offset
                self.index = self.index or index_of(body, start.element)
            else:
                self.places[name] = builder.splat(body.registers.read(name, "i64"))
        self.more, self.ends = more, builder.binary("add", more, _ONE)
        if self.active.ir != "true":
            self._leave_out_others()

    def _leave_out_others(self) -> None:
        """Have lanes that do not walk begin where one does that walks.

        Mostly all walk. That is a branch, so that no load has to wait for the mask.
        """
        builder = self.builder
        whole, part, walk = map(builder.new_label, ("whole", "part", "walk"))
        counts = [builder.splat(self.more), builder.splat(self.ends)]
        places = [*self.places.values(), *([builder.splat(self.index)] if self.index is not None else [])]
        everyone = constant("i32", (1 << self.body.width) - 1)
        all_walk = builder.compare("icmp eq", self.body.control.mask, everyone)
        builder.line(f"br i1 {all_walk.ir}, label %{whole}, label %{part}, !prof !1")
        builder.label(part)
        some = [builder.select(self.active, count, constant("i64", 0)) for count in counts]
        some += map(self._of_walkers, places)
        builder.line(f"br label %{walk}")
        builder.label(whole)
        builder.line(f"br label %{walk}")
        builder.label(walk)
        type = builder.vector_type("i64")
        both = zip([*counts, *places], some, strict=True)
        merged = [
            Value(builder.emit(f"phi {type} [ {of_all.ir}, %{whole} ], [ {of_some.ir}, %{part} ]"), "i64", True)
            for of_all, of_some in both
        ]
        self.more, self.ends, *merged = merged
        self.places = dict(zip(self.places, merged, strict=False))
        self.index = merged[-1] if self.index is not None else None

    def _are_inside(self, most: Value) -> Value:
        """Whether all places of all lines are inside (an i1), if the loop runs so often behind the first time."""
        body, builder = self.body, self.builder
        verdict = constant("i1", 1)
        limits: dict[int, list[Value]] = {}
        for (name, size), line in self.walk.lines.items():
            if name not in self.led or self.index is None:
                verdict = builder.binary("and", verdict, self._is_inside(name, line, size, most))
                continue
            place, size, offset = self.led[name]
            address = body.registers.read(name, "i64")
            expected = self.element(name, index_of(body, self.origins[name].element))
            verdict = builder.binary("and", verdict, builder.compare("icmp eq", address, expected))
            access = Access.of(line.lowest, write=False)
            number = self.remembers(line.lowest)
            beyond = (line.high - line.low) // size
            limits.setdefault((offset + line.low) // size, []).append(within_reach(body, place, access, number, beyond))
        for low, reaches in limits.items():
            least = reaches[0]
            for reach in reaches[1:]:
                least = builder.intrinsic("umin", least, reach)
            assert self.index is not None
            first = builder.binary("add", self.index, constant("i64", low)) if low else self.index
            inside = builder.compare("icmp ult", first, builder.intrinsic("usub.sat", least, most))
            verdict = builder.binary("and", verdict, inside)
        return verdict

    def _of_walkers(self, numbers: Value) -> Value:
        """Numbers of lanes; who does not walk has that of another lane."""
        builder = self.builder
        lowest = constant("i64", 1 << 63)
        some = builder.reduce("smax", builder.select(self.active, numbers, lowest))
        return builder.select(self.active, numbers, some)

    def _begin_lanes(self, lanes: Sequence[Value]) -> dict[str, list[Value]]:
        """Where some lanes begin to walk, by lines; what leads them is stored."""
        builder = self.builder
        for lane, at in zip(lanes, self.at, strict=False):
            first = builder.lane(self.index, lane) if self.index is not None else constant("i64", 0)
            builder.line(f"store i64 {first.ir}, ptr {at}")
        return {name: [builder.lane(place, lane) for lane in lanes] for name, place in self.places.items()}

    def _is_inside(self, name: str, line: Line, size: int, most: Value) -> Value:
        """Whether all loads of a line are inside of the allocation that the careful block remembers (an i1)."""
        body, builder = self.body, self.builder
        start = self.places[name]
        entry = self.entry(line.lowest)
        low = body.load_field(builder, entry, 0, "i64")
        limit = body.load_field(builder, entry, 8, "i64")
        if line.high > line.low:
            limit = builder.intrinsic("usub.sat", limit, constant("i64", (line.high - line.low) // size))
        span = builder.intrinsic("umin", most, constant("i64", FARTHEST))
        span = builder.binary("mul", span, constant("i64", line.step // size))
        limit = builder.intrinsic("usub.sat", limit, span)
        first = builder.binary("add", start, constant("i64", line.low)) if line.low else start
        return builder.compare("icmp ult", rotated(builder, builder.binary("sub", first, low), size), limit)

    # The quick blocks

    def _write_together(self, most: Value) -> None:
        builder = self.builder
        again, back, left = map(builder.new_label, ("together", "back", "left"))
        lanes = [constant("i32", lane) for lane in range(self.body.width)]
        starts = self._begin_lanes(lanes)
        rest = f"%rest{self.block.index}"
        self.builder.allocas.append(f"  {rest} = alloca {builder.vector_type('i64')}")
        builder.line(f"store {builder.typed(builder.splat(self.ends))}, ptr {rest}")
        builder.line(f"store i64 0, ptr {self.times}")
        builder.line(f"br label %{again}")
        self._begin(again)
        times = Value(builder.emit(f"load i64, ptr {self.times}"), "i64")
        ahead = Value(builder.emit(f"load {builder.vector_type('i64')}, ptr {rest}"), "i64", True)
        running = builder.compare("icmp sgt", ahead, constant("i64", 0))
        self.body.control.run_with(builder.ballot(running), running)
        following = self._write_iteration(times, lanes, starts, back)
        builder.line(f"store {builder.typed(builder.binary('sub', ahead, _ONE))}, ptr {rest}")
        over = builder.compare("icmp ugt", following, most)
        builder.line(f"br i1 {over.ir}, label %{left}, label %{again}")
        self._begin(back)
        times = self._hidden(Value(builder.emit(f"load i64, ptr {self.times}"), "i64"))
        running = builder.compare("icmp slt", builder.splat(times), self.ends)
        self._go_back(builder.intrinsic("umin", builder.splat(times), self.ends), builder.ballot(running))
        self._leave(left)

    def _write_in_turn(self) -> None:
        builder, body = self.builder, self.body
        turn, again, back, over_label, left = map(builder.new_label, ("turn", "alone", "back", "over", "left"))
        mask = Value(builder.emit(f"load i32, ptr {self.mask}"), "i32")
        builder.line(f"store i32 {mask.ir}, ptr {self.waiting}")
        before = {}
        for name in self._carried():
            value = body.registers.read(name, body.registers.homes[name].type)
            before[name] = value, builder.new_name()
            builder.allocas.append(f"  {before[name][1]} = alloca {builder.vector_type(value.type)}")
            builder.line(f"store {builder.typed(builder.splat(value))}, ptr {before[name][1]}")
        builder.line(f"br label %{turn}")
        self._begin(turn)
        for name, (value, _) in before.items():  # none waits for what another has computed
            body.registers.write(name, value, constant("i1", 1))
        waiting = Value(builder.emit(f"load i32, ptr {self.waiting}"), "i32")
        lane = builder.intrinsic("cttz", waiting, "i1 true")
        more = builder.lane(self.more, lane)
        starts = self._begin_lanes([lane])
        alone = builder.binary("shl", constant("i32", 1), lane)
        here = builder.spread(alone)
        builder.line(f"store i64 0, ptr {self.times}")
        builder.line(f"br label %{again}")
        self._begin(again, (alone, constant("i1", 1)))
        times = Value(builder.emit(f"load i64, ptr {self.times}"), "i64")
        following = self._write_iteration(times, [lane], starts, back)
        over = builder.compare("icmp ugt", following, more)
        builder.line(f"br i1 {over.ir}, label %{over_label}, label %{again}")
        self._begin(back)
        self._merge(here, before)
        times = self._hidden(Value(builder.emit(f"load i64, ptr {self.times}"), "i64"))
        ahead = builder.spread(waiting)
        done = builder.select(ahead, constant("i64", 0), builder.binary("add", self.more, _ONE))
        self._go_back(builder.select(here, times, done), waiting)
        self._begin(over_label)
        self._merge(here, before)
        rest = builder.binary("xor", waiting, alone)
        builder.line(f"store i32 {rest.ir}, ptr {self.waiting}")
        over = builder.compare("icmp eq", rest, constant("i32", 0))
        builder.line(f"br i1 {over.ir}, label %{left}, label %{turn}")
        self._leave(left)

    def _carried(self) -> list[str]:
        """The registers that live across blocks which the block writes, but for those that are counted."""
        names = {name: None for effect in self.block.effects for name in effect.writes}
        return [name for name in names if name in self.body.registers.homes and name not in self.starts]

    def _merge(self, here: Value, before: dict[str, tuple[Value, str]]) -> None:
        """Add what the lane whose turn it is has computed to what the others have."""
        builder, registers = self.builder, self.body.registers
        for name, (value, place) in before.items():
            others = Value(builder.emit(f"load {builder.vector_type(value.type)}, ptr {place}"), value.type, True)
            merged = builder.select(here, registers.read(name, value.type), others)
            builder.line(f"store {builder.typed(merged)}, ptr {place}")
            registers.write(name, merged, constant("i1", 1))

    def _have_turns(self) -> bool:
        """Whether lanes may walk in turn: not if all walk equally far. Then each has registers of its own."""
        registers = self.body.registers
        if self.block.index not in self.body.control.regions:
            return False
        for name in [*self._carried(), *self.starts]:
            if not registers.homes[name].is_varying:
                registers.irregular[name] = Demand.VARYING
        return True

    def _write_iteration(
        self, times: Value, lanes: Sequence[Value], starts: dict[str, list[Value]], back: str
    ) -> Value:
        """Write the instructions for some lanes, and count; returns the number of the next iteration."""
        body, builder, registers = self.body, self.builder, self.body.registers
        for name, start in self.starts.items():
            registers.values[name] = self._moved(name, start, times)
        self.scalars = {}
        self.indices = []
        if self.index is not None:
            self.indices = [Value(builder.emit(f"load i64, ptr {at}"), "i64") for at in self.at[: len(lanes)]]
        registers.hold()
        for instruction, effect in zip(self.block.instructions, self.block.effects, strict=False):
            if id(instruction) in self.walk.places or id(instruction) in self.walk.look_ups:
                self._load(instruction, times, lanes, starts, back)
                continue
            body.instruction(instruction)
            for name in effect.writes:
                self.scalars.pop(name, None)
        registers.release(without=self.starts)
        for at, index in zip(self.at, self.indices, strict=False):
            builder.line(f"store i64 {self._hidden(builder.binary('add', index, _ONE)).ir}, ptr {at}")
        following = self._hidden(builder.binary("add", times, _ONE))
        builder.line(f"store i64 {following.ir}, ptr {self.times}")
        return following

    def _load(
        self,
        instruction: ast.Instruction,
        times: Value,
        lanes: Sequence[Value],
        starts: dict[str, list[Value]],
        back: str,
    ) -> None:
        """Write a load of a quick block, of each lane by itself."""
        body, builder = self.body, self.builder
        access = Access.of(instruction, write=False)
        if id(instruction) in self.walk.places:
            name, offset = self.walk.places[id(instruction)]
            if name in self.led:
                addresses = [self.element(name, index) for index in self.indices]
            else:
                way = builder.binary("mul", times, constant("i64", self.steps[name]))
                addresses = [builder.binary("add", start, way) for start in starts[name]]
            if offset:
                addresses = [builder.binary("add", address, constant("i64", offset)) for address in addresses]
        else:
            addresses = self._found(instruction, access, lanes, back)
        loaded = [scalar_load(body, access, builder.emit(f"inttoptr i64 {address.ir} to ptr")) for address in addresses]
        values = [each[0] if len(lanes) == 1 else builder.from_lanes(each) for each in zip(*loaded, strict=True)]
        write_loaded(body, instruction, values)
        destination = instruction.operands[0]
        items = destination.items if isinstance(destination, ast.Vector) else (destination,)
        for item, scalars in zip(items, zip(*loaded, strict=True), strict=True):
            if isinstance(item, ast.Register):
                self.scalars.pop(item.name, None)
                if scalars[0].type == body.registers.natural_type(item.name):
                    self.scalars[item.name] = list(scalars)

    def _found(self, instruction: ast.Instruction, access: Access, lanes: Sequence[Value], back: str) -> list[Value]:
        """The address of each lane's look-up, checked."""
        body, builder = self.body, self.builder
        source = instruction.operands[1]
        assert isinstance(source, ast.Address)
        element = body.of_block(plan_elements).get(id(instruction))
        size = access.size
        known = element is not None and element.pointer in body.pointer_parameters and element.bytes == size
        if element is not None and known and source.offset % size == 0:
            return self._elements(element, source.offset, access, lanes, back)
        base, offset = base_of(body, source, access.space)
        entry = self.entry(instruction)
        addresses = []
        for lane in lanes:
            address = builder.lane(base, lane)
            address = builder.binary("add", address, constant("i64", offset)) if offset else address
            self._require(in_allocation(builder, entry, address, size), back)
            addresses.append(address)
        return addresses

    def _elements(
        self, element: Element, offset: int, access: Access, lanes: Sequence[Value], back: str
    ) -> list[Value]:
        """The addresses of elements of an array that is a pointer parameter, checked by the index."""
        body, builder = self.body, self.builder
        place = body.pointer_parameters[element.pointer]
        limit = within_reach(body, place, access, self.remembers(access.instruction))
        type = "i32" if element.widening else "i64"
        indices = self.scalars.get(element.index)
        if indices is None or indices[0].type != type:
            index = body.registers.read(element.index, type)
            indices = [builder.lane(index, lane) for lane in lanes]
        addresses = []
        for each in indices:
            number = builder.cast(element.widening, each, "i64") if element.widening else each
            number = builder.binary("add", number, constant("i64", offset // access.size)) if offset else number
            self._require(builder.compare("icmp ult", number, limit).ir, back)
            distance = builder.binary("mul", number, constant("i64", access.size))
            addresses.append(builder.binary("add", body.parameter(place, "i64", 8), distance))
        return addresses

    def _require(self, verdict: str, back: str) -> None:
        inside = self.builder.new_label("inside")
        self.builder.line(f"br i1 {verdict}, label %{inside}, label %{back}, !prof !1")
        self.builder.label(inside)

    def _hidden(self, number: Value) -> Value:
        """The same number, which the optimizer does not know, lest it keeps addresses instead of their parts."""
        return hidden(self.body, number)

    # The ways out

    def _moved(self, name: str, start: Value, times: Value) -> Value:
        builder = self.builder
        times = builder.cast("trunc", times, start.type) if BITS[start.type] < 64 else times
        return builder.binary("add", start, builder.binary("mul", times, constant(start.type, self.steps[name])))

    def _settle(self, times: Value) -> None:
        """Write to the homes what is counted, behind so many iterations of each lane."""
        for name, start in self.starts.items():
            self.body.registers.write(name, self._moved(name, start, times), self.active)

    def _go_back(self, times: Value, still: Value) -> None:
        """Lanes of a mask go on in the careful block; the others are behind the loop."""
        builder, control = self.builder, self.body.control
        over = builder.binary("and", control.lanes(), builder.binary("xor", still, constant("i32", -1)))
        control.run_with(still, builder.spread(still))
        self._settle(times)
        control.send_ahead(self.block.successors[1], over)
        self._go_to_careful(still)

    def _go_to_careful(self, mask: Value) -> None:
        self.builder.line(f"store i32 {mask.ir}, ptr {self.careful_mask}")
        self.builder.line(f"br label %{self.careful}")

    def _leave(self, label: str) -> None:
        self._begin(label)
        self._settle(self.builder.binary("add", self.more, _ONE))
        self.body.control.go(self.block.successors[1])


def hidden(body: Body, number: Value) -> Value:
    """The same number, which the optimizer does not know, lest it keeps addresses instead of their parts."""
    builder = body.builder
    builder.declarations["declare ptr @llvm.launder.invariant.group.p0(ptr)"] = None
    pointer = builder.emit(f"inttoptr i64 {number.ir} to ptr")
    same = builder.emit(f"call ptr @llvm.launder.invariant.group.p0(ptr {pointer})")
    return Value(builder.emit(f"ptrtoint ptr {same} to i64"), "i64")
