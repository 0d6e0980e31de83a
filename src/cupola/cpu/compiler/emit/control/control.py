"""Control flow: which threads of a unit run which block, and how the body waits.

Blocks are numbered in reverse post-order with loop exits last, and the lowest block that has threads to run it runs
first; so threads that part at a branch wait for each other where their paths meet.

*Convergent body.* A convergent block is one that all live threads run together: their mask is ``%live``, and a
branch that all decide alike is a plain branch. The other blocks form regions (see regions.py). Each block of a region
has a mask of the threads that are to run it. After a block of a region comes a chain of tests for the next higher
one that has threads, ending where the region is left. A branch to a block that only exits just ends threads.

*Independent body.* Every block has its mask, in the frame, and a helper finds the next block to run. In a loop that
may be waiting for other threads it looks from the following block on, so that everybody gets a turn.

*Waiting.* At a barrier that all live threads of the unit reach together, what is needed later is saved and the body
returns. In loops that may be waiting for something (`Analysis.spinning`) a budget of trips is counted down, and the
body returns to let others run. Barriers, and instructions at which threads of a warp meet by name (``shfl.sync``,
``bar.warp.sync``…), are terminators of blocks, *meetings*. If not all threads that have to meet are present, the
convergent body gives up in favor of the independent one, where a meeting has a mask of its own behind its block's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from cupola.cpu.compiler.emit.threads.units import end_loops
from cupola.cpu.compiler.emit.values.builder import constant
from cupola.cpu.compiler.emit.values.values import Value
from cupola.cpu.compiler.objects import abi
from cupola.cpu.compiler.passes import Block, effects
from cupola.cpu.compiler.ptx import ast

from .functions import end_call, end_return
from .meetings import emit_meeting, is_meeting
from .regions import Region, find_regions, is_exit, loses_threads

if TYPE_CHECKING:
    from .body import Body

TRUE = constant("i1", 1)
NOBODY = constant("i32", 0)


class Control:
    """Masks and branches of one body."""

    def __init__(self, body: Body) -> None:
        self.body = body
        self.builder = body.builder
        self.blocks = body.blocks
        self.width = body.width
        self.everyone = constant("i32", (1 << body.width) - 1)
        self.regions: dict[int, Region] = {}
        if not body.independent and body.width > 1:
            self.regions = find_regions(self.blocks, {b.index for b in self.blocks if b.convergent}, self.is_uniform)
        self.always_full = body.width == 1 or (
            body.shape.full and not body.independent and not loses_threads(self.blocks, self.regions, self.is_uniform)
        )
        self.block: Block = self.blocks[0]
        self.mask = self.everyone
        """The threads that run the current block, as an i32."""
        self._vector: Value | None = None
        self._guard: tuple[Value, Value] | None = None
        self._guarded = False
        self._resume_points: list[tuple[int, str]] = []
        self.resume_sites: list[int] = []
        self._yield_targets: set[int] = set()
        self._suspends = False
        body.registers.first_lane = self.first_lane
        for name in ("live", "code", "target", "target.mask", "budget", "start", "exit"):
            self.builder.allocas.append(f"  %{name} = alloca i32")
        for index in self.regions:
            self.builder.allocas.append(f"  %m{index} = alloca i32")

    # What others ask

    def active(self) -> Value:
        """The lanes that execute, as an i1: the constant true when that is everybody."""
        if self._guard is not None:
            return self._guard[1]
        if self.mask.ir == self.everyone.ir:
            return TRUE
        if self._vector is None:
            self._vector = self.builder.spread(self.mask)
        return self._vector

    def lanes(self) -> Value:
        """The same as an i32 mask."""
        return self.mask if self._guard is None else self._guard[0]

    def first_lane(self) -> Value:
        """The lowest lane that executes."""
        if self.lanes().ir == self.everyone.ir:
            return NOBODY
        self.builder.declarations["declare i32 @llvm.cttz.i32(i32, i1)"] = None
        return Value(self.builder.emit(f"call i32 @llvm.cttz.i32(i32 {self.lanes().ir}, i1 true)"), "i32")

    @property
    def is_guarded(self) -> bool:
        """Whether an instruction with a predicate is being written."""
        return self._guarded

    def written_lanes(self, name: str) -> Value:
        """The lanes that a write of a register is for; true where those of the others do not matter."""
        if self._guard is not None:
            return self._guard[1]
        home = self.body.registers.homes.get(name)
        if self.body.independent:
            return TRUE if home is None else self.active()
        if home is None or not home.is_varying or name not in self.body.analysis.kept:
            return TRUE
        return self.active() if self.block.index in self.regions else TRUE

    def is_uniform(self, block: Block) -> bool:
        """Whether all threads that run the block leave it the same way."""
        end = block.terminator
        if end is None or self.width == 1:
            return True
        if end.opcode == ".return":
            return block.convergent and not self.body.independent
        if end.opcode in ("brx", ".call"):
            index = end.operands[0]
            is_known = isinstance(index, ast.LabelRef | ast.Immediate)
            return is_known or (isinstance(index, ast.Register) and self.body.kinds.get(index.name) == 0)
        return end.guard is None or self.body.kinds.get(end.guard.register.name) == 0

    def divided(self) -> bool:
        """Whether the current block may run with some of the live threads only."""
        return self.body.independent or self.block.index in self.regions

    # Fields in memory and on the stack

    def load(self, name: str) -> Value:
        return Value(self.builder.emit(f"load i32, ptr %{name}"), "i32")

    def store(self, name: str, value: Value) -> None:
        self.builder.line(f"store i32 {value.ir}, ptr %{name}")

    # The frame begins with a mask for each block and each meeting, and then, again for each, the mask of those
    # that were waiting when it was last tried.

    @property
    def mask_count(self) -> int:
        return self.body.gatherings.mask_count

    def frame_mask(self, index: int) -> str:
        """Pointer to a mask in the frame."""
        return self.builder.emit(f"getelementptr i32, ptr %frame, i64 {index}")

    def waiting_mask(self, index: int) -> str:
        return self.frame_mask(self.mask_count + index)

    @staticmethod
    def entry_index(block: Block) -> int:
        """The number of a block's mask."""
        return 2 * block.index

    @staticmethod
    def meeting_index(block: Block) -> int:
        """The number of the mask of the meeting at a block's end."""
        return 2 * block.index + 1

    def live(self) -> Value:
        """The threads of the unit that have not exited."""
        if self.body.independent:
            return self.body.load_field(self.builder, "%warp", abi.WARP["mask"], "i32")
        return self.load("live")

    def _end_threads(self, mask: Value) -> None:
        builder = self.builder
        for each in self.body.instruments:
            each.leave(mask)
        rest = builder.binary("and", self.live(), builder.binary("xor", mask, constant("i32", -1)))
        if self.body.independent:
            self.body.store_field("mask", rest)
        else:
            self.store("live", rest)

    # Blocks

    def begin(self, block: Block, label: str = "") -> None:
        """Begin a basic block, or one more copy of it, under a label of its own, where nobody waits for others."""
        builder, index = self.builder, block.index
        self.block = block
        self.set_mask(self.everyone)
        self.body.registers.begin_block(self.body.thread_numbers(block))
        if self.body.independent:
            self._begin_independent(f"b{index}", self.entry_index(block))
        elif index in self.regions:
            builder.label(f"check{index}")
            empty = builder.emit(f"icmp eq i32 {self.load(f'm{index}').ir}, 0")
            builder.line(f"br i1 {empty}, label %{self.regions[index].after(index)}, label %b{index}")
            builder.label(f"b{index}")
            self.set_mask(self.load(f"m{index}"))
            self.store(f"m{index}", NOBODY)
        else:
            builder.label(label or f"b{index}")
            if not self.always_full:
                self.set_mask(self.load("live"))
        for each in self.body.instruments:
            each.block(block)

    def begin_again(self, block: Block, label: str, mask: str) -> None:
        """Begin a part of a basic block under a label of its own, with the threads of a mask on the stack."""
        self.block = block
        self.body.registers.begin_block(self.body.thread_numbers(block))
        self.builder.label(label)
        self.set_mask(Value(self.builder.emit(f"load i32, ptr {mask}"), "i32"))

    def run_with(self, mask: Value, lanes: Value) -> None:
        """From here on the block runs with the threads of a mask, which is also given as an i1 for each lane."""
        self.mask, self._vector = mask, lanes

    def send_ahead(self, target: Block, mask: Value) -> None:
        """Some threads of the block go on behind it, before it ends."""
        if target.returns_only:
            self._end_threads(mask)
        elif target.index in self.regions:
            self._enter(target, mask)
        elif self.block.index in self.regions:
            self._leave_region(self.regions[self.block.index], target, mask)

    def _begin_independent(self, label: str, index: int) -> None:
        builder = self.builder
        builder.label(label)
        pointer = self.frame_mask(index)
        self.set_mask(Value(builder.emit(f"load i32, ptr {pointer}"), "i32"))
        builder.line(f"store i32 0, ptr {pointer}")
        builder.line(f"store i32 0, ptr {self.waiting_mask(index)}")

    # Gatherings (gatherings.py)

    def begin_gathering(self, label: str, index: int) -> None:
        self._begin_independent(label, index)
        self.body.registers.begin_block()

    def set_waiting(self, index: int, waiting: Value) -> None:
        """Who stays at a mask, and was there when it was last tried."""
        self.builder.line(f"store i32 {waiting.ir}, ptr {self.frame_mask(index)}")
        self.builder.line(f"store i32 {waiting.ir}, ptr {self.waiting_mask(index)}")

    def leave_gathering(self, block: Block) -> None:
        """The threads of the mask go on behind the block."""
        target = block.successors[0]
        if target.returns_only:
            self._end_threads(self.mask)
        else:
            self.add_threads(self.entry_index(target), self.mask)

    def end_gathering(self, blocks: list[Block]) -> None:
        """Go to the next block that has threads; perhaps give way, when a loop may be waiting for somebody."""
        self.store("start", NOBODY)
        spinning = any((b.index, b.successors[0].index) in self.body.analysis.spinning for b in blocks)
        if spinning:
            self.body.store_field("watches", constant("i32", 1))
            self.builder.line(f"br i1 {self._spend()}, label %give.way, label %dispatch")
        else:
            self.builder.line("br label %dispatch")

    def begin_meeting(self, block: Block) -> None:
        """In the independent body, before the instruction at which threads meet: gather who comes along."""
        if self.body.independent:
            index = self.meeting_index(block)
            self.add_threads(index, self.mask)
            self.dispatch_from(0)
            self._begin_independent(f"meeting{block.index}", index)
            self.body.registers.begin_block()

    def set_mask(self, mask: Value) -> None:
        """From here on the block runs with these threads."""
        self.mask = mask
        self._vector = None

    def end(self, block: Block) -> None:
        """End a basic block: go to where its threads go on."""
        end = block.terminator
        if end is not None:
            for each in self.body.instruments:
                each.instruction(end)
        if end is None:
            self.go(block.successors[0])
        elif is_exit(end):
            if end.guard is None:
                self.leave()
            else:
                self.split(self.body.guard(end.guard), None, block.successors[0])
        elif end.opcode == "bra":
            if end.guard is None:
                self.go(block.successors[0])
            else:
                self.split(self.body.guard(end.guard), block.successors[0], block.successors[-1])
        elif end.opcode == "brx":
            self._end_indexed(block, end)
        elif end.opcode == ".call":
            end_call(self.body, block, end)
        elif end.opcode == ".return":
            end_return(self.body, block, end)
        else:
            self.begin_meeting(block)
            emit_meeting(self.body, block, end)

    def _end_indexed(self, block: Block, end: ast.Instruction) -> None:
        """``brx.idx``: the threads for one target after the other part from the rest."""
        builder = self.builder
        targets = block.successors
        index = self.body.operand(end.operands[0], "i32")
        if not index.vector:
            self.switch(
                index,
                list(zip(range(len(targets) - 1), targets, strict=False)),
                lambda: self._go_way(len(targets) - 1, targets[-1]),
                self._go_way,
            )
            return
        rest = self.mask
        moves: list[tuple[Block | None, Value]] = []
        for number, target in enumerate(targets[:-1]):
            here = builder.ballot(builder.compare("icmp eq", index, constant("i32", number)))
            moves.append((target, builder.binary("and", rest, here)))
            rest = builder.binary("xor", rest, moves[-1][1])
        self._tell_ways([*(mask for _, mask in moves), rest])
        self.part([*moves, (targets[-1], rest)])

    # Branches

    def _go_way(self, way: int, target: Block | None) -> None:
        """End the block at a branch that all its threads decide alike."""
        for each in self.body.instruments:
            each.branch(self.block, way, self.mask)
        self.go(target)

    def _tell_ways(self, masks: list[Value]) -> None:
        for each in self.body.instruments:
            for way, mask in enumerate(masks):
                each.branch(self.block, way, mask)

    def switch(
        self,
        value: Value,
        ways: list[tuple[int, Block]],
        otherwise: Callable[[], None],
        go: Callable[[int, Block], None] | None = None,
    ) -> None:
        """End the block: all threads go where a uniform value says; ``go`` writes how, if not as usual."""
        builder = self.builder
        labels = [builder.new_label("case") for _ in ways]
        default = builder.new_label("case")
        cases = " ".join(f"{value.type} {n}, label %{label}" for (n, _), label in zip(ways, labels, strict=True))
        builder.line(f"switch {builder.typed(value)}, label %{default} [ {cases} ]")
        for way, ((_, target), label) in enumerate(zip(ways, labels, strict=True)):
            builder.label(label)
            if go is None:
                self.go(target)
            else:
                go(way, target)
        builder.label(default)
        otherwise()

    def split(self, condition: Value, taken: Block | None, other: Block | None) -> None:
        """End the block: the threads for which the condition holds go to ``taken``, the rest to ``other``.

        None stands for the end of the thread.
        """
        builder = self.builder
        if not condition.vector:
            yes, no = builder.new_label("yes"), builder.new_label("no")
            builder.line(f"br i1 {condition.ir}, label %{yes}, label %{no}")
            builder.label(yes)
            self._go_way(0, taken)
            builder.label(no)
            self._go_way(1, other)
            return
        yes_mask = builder.binary("and", self.mask, builder.ballot(condition))
        no_mask = builder.binary("xor", self.mask, yes_mask)
        self._tell_ways([yes_mask, no_mask])
        self.part([(taken, yes_mask), (other, no_mask)])

    def go(self, target: Block | None) -> None:
        """End the block: all its threads go to one target."""
        here = self.regions.get(self.block.index)
        if target is None or target.returns_only:
            self.leave()
        elif self.body.independent:
            self.add_threads(self.entry_index(target), self.mask)
            self._dispatch([target])
        elif target.index in self.regions:
            self._enter(target, self.mask)
            self._jump_back(target)
            forward = here is not None and target.index > self.block.index
            next_check = here.after(self.block.index) if here is not None and forward else ""
            direct = not forward or next_check == f"check{target.index}"
            self.builder.line(f"br label %{f'b{target.index}' if direct else next_check}")
        elif here is not None:
            self._leave_region(here, target)
            self.builder.line(f"br label %{here.after(self.block.index)}")
        else:
            self._jump_back(target)
            self.builder.line(f"br label %b{target.index}")

    def leave(self) -> None:
        """End the block: its threads exit."""
        if self.body.independent:
            self._end_threads(self.mask)
            self._dispatch([])
        elif self.block.index in self.regions:
            self._end_threads(self.mask)
            self.builder.line(f"br label %{self.regions[self.block.index].after(self.block.index)}")
        else:
            for each in self.body.instruments:
                each.leave(self.mask)
            self.builder.line("br label %done")

    def part(self, moves: list[tuple[Block | None, Value]]) -> None:
        """End the block: its threads go different ways."""
        builder, index = self.builder, self.block.index
        merged: dict[int, tuple[Block, Value]] = {}
        for target, mask in moves:
            if target is None or target.returns_only:
                self._end_threads(mask)
            elif target.index in merged:
                merged[target.index] = target, builder.binary("or", merged[target.index][1], mask)
            else:
                merged[target.index] = target, mask
        ways = [merged[i] for i in sorted(merged)]
        leaving = [target for target, _ in ways if target.index not in self.regions]
        for target, mask in ways:
            if self.body.independent:
                self.add_threads(self.entry_index(target), mask)
            elif target.index in self.regions:
                self._enter(target, mask)
            elif index in self.regions:
                self._leave_region(self.regions[index], target, mask if len(leaving) > 1 else None)
        if self.body.independent:
            self._dispatch([target for target, _ in ways])
            return
        for target, mask in ways:
            if target.index > index or (target.index not in self.regions and len(ways) > 1):
                continue
            back, on = builder.new_label("back"), builder.new_label("on")
            some = builder.emit(f"icmp ne i32 {mask.ir}, 0")
            builder.line(f"br i1 {some}, label %{back}, label %{on}")
            builder.label(back)
            self._jump_back(target)
            builder.line(f"br label %b{target.index}")
            builder.label(on)
        region = self.regions.get(index)
        if region is None:
            region = next((self.regions[t.index] for t, _ in ways if t.index in self.regions), None)
        if region is not None:
            outside = [t for t, _ in ways if t.index not in self.regions]
            if outside and index not in self.regions:
                self._leave_region(region, outside[0])
            builder.line(f"br label %{region.after(index)}")
            return
        # The others have exited: who is left goes one way.
        ahead = [target for target, _ in ways if target.index > index]
        if ahead:
            over = builder.emit(f"icmp eq i32 {self.load('live').ir}, 0")
            builder.line(f"br i1 {over}, label %done, label %b{ahead[0].index}")
        else:
            builder.line("br label %done")

    def _enter(self, target: Block, mask: Value) -> None:
        """Have threads run a block of a region."""
        if self.block.index in self.regions:
            mask = self.builder.binary("or", self.load(f"m{target.index}"), mask)
        self.store(f"m{target.index}", mask)

    def add_threads(self, index: int, mask: Value) -> None:
        """Add threads to a mask of the frame."""
        pointer = self.frame_mask(index)
        there = Value(self.builder.emit(f"load i32, ptr {pointer}"), "i32")
        self.builder.line(f"store i32 {self.builder.binary('or', there, mask).ir}, ptr {pointer}")

    def _leave_region(self, region: Region, target: Block, mask: Value | None = None) -> None:
        """Note where the region is left (with a mask: if by any thread)."""
        if len(region.exits) > 1:
            place = constant("i32", target.index)
            if mask is not None:
                place = self.builder.select(self.builder.compare("icmp ne", mask, NOBODY), place, self.load("exit"))
            self.store("exit", place)

    # Giving way

    def _is_spinning(self, target: Block) -> bool:
        return (self.block.index, target.index) in self.body.analysis.spinning

    def _watches(self, target: Block) -> Value:
        return constant("i32", (self.block.index, target.index) in self.body.analysis.watching)

    def give_way_if(self, condition: str) -> None:
        """Give way at the next opportunity, when an i1 says so."""
        budget = self.load("budget")
        self.store("budget", Value(self.builder.emit(f"select i1 {condition}, i32 1, i32 {budget.ir}"), "i32"))

    def _spend(self) -> str:
        """Count down the budget; the i1 that says that it is spent."""
        left = self.builder.binary("sub", self.load("budget"), constant("i32", 1))
        self.store("budget", left)
        return self.builder.emit(f"icmp sle i32 {left.ir}, 0")

    def _jump_back(self, target: Block) -> None:
        """Before a jump in the convergent body: perhaps give way instead."""
        if not self._is_spinning(target):
            return
        builder = self.builder
        spent, stay = builder.new_label("spent"), builder.new_label("stay")
        builder.line(f"br i1 {self._spend()}, label %{spent}, label %{stay}")
        builder.label(spent)
        mask, others = self.live(), NOBODY
        if target.index in self.regions:
            mask = self.load(f"m{target.index}")
            others = builder.binary("xor", self.live(), mask)
        self.body.store_field("diverged", others)
        self.body.store_field("watches", self._watches(target))
        self._yield_targets.add(target.index)
        self.suspend_everything(abi.YIELD, self.entry_index(target), mask)
        builder.label(stay)

    def suspend_everything(self, kind: int, index: int, mask: Value) -> None:
        """Return with the whole state in the frame; the threads in ``mask`` go on at the frame mask ``index``."""
        self._suspends = True
        region = self.regions.get(self.block.index)
        if region is not None and len(region.exits) == 1:
            self.store("exit", constant("i32", region.exits[0]))
        self.store("code", constant("i32", abi.state(kind, index)))
        self.store("target", constant("i32", index))
        self.store("target.mask", mask)
        self.builder.line("br label %suspend")

    def _dispatch(self, targets: list[Block]) -> None:
        """End a block of the independent body: go to the next block that has threads."""
        if any(self._is_spinning(target) for target in targets):
            watched = any(self._watches(target).integer for target in targets if self._is_spinning(target))
            self.body.store_field("watches", constant("i32", watched))
            self.store("start", constant("i32", self.entry_index(self.block) + 2))
            self.builder.line(f"br i1 {self._spend()}, label %give.way, label %dispatch")
        else:
            self.dispatch_from(0)

    def dispatch_from(self, index: int) -> None:
        """End a block of the independent body: go to the next mask from ``index`` on that has threads."""
        self.store("start", constant("i32", index))
        self.builder.line("br label %dispatch")

    def new_resume_point(self, kind: int, site: int) -> tuple[int, str]:
        """A state in which the scheduler may call the body again, and the label where it then goes on."""
        index = len(self._resume_points) + 1
        self._resume_points.append((abi.state(kind, index), f"resume{index}"))
        self.resume_sites.append(site)
        return self._resume_points[-1]

    def resumed(self, successor: Block) -> None:
        """After a barrier: the live threads go on with the successor."""
        if successor.index in self.regions:
            self.store(f"m{successor.index}", self.load("live"))
        if successor.returns_only:
            for each in self.body.instruments:
                each.leave(self.live())
            self.builder.line("br label %done")
        else:
            self.builder.line(f"br label %b{successor.index}")

    # Faults and guarded instructions

    def fault_if(self, condition: str) -> None:
        """Leave the body when an i1 says that a helper has raised a fault."""
        after = self.builder.new_label("fine")
        self.builder.line(f"br i1 {condition}, label %fault, label %{after}, !prof !2")
        self.builder.label(after)

    def fault(self) -> None:
        """Leave the body after a fault; what follows is not reached."""
        self.builder.line("br label %fault")
        self.builder.label(self.builder.new_label("dead"))

    def guarded(self, instruction: ast.Instruction, lower: Callable[[Body, ast.Instruction], None]) -> None:
        """Write an instruction with a predicate, which is skipped when no lane is to run it.

        Its destinations have homes, so that both ways leave their values in one place.
        """
        assert instruction.guard is not None
        builder, registers = self.builder, self.body.registers
        condition = self.body.guard(instruction.guard)
        before = dict(registers.values)
        if condition.vector:
            mask = builder.binary("and", self.mask, builder.ballot(condition))
            self._guard = mask, builder.spread(mask)
            test = builder.emit(f"icmp ne i32 {mask.ir}, 0")
        else:
            test = condition.ir
        run, skip = builder.new_label("run"), builder.new_label("skip")
        builder.line(f"br i1 {test}, label %{run}, label %{skip}")
        builder.label(run)
        vector, self._vector = self._vector, None
        self._guarded = True
        lower(self.body, instruction)
        self._guarded = False
        self._guard, self._vector = None, vector
        builder.line(f"br label %{skip}")
        builder.label(skip)
        written = set(effects(instruction).writes)
        registers.values = {name: value for name, value in before.items() if name not in written}

    # The frame of the function

    def finish(self) -> None:
        """After the last block: how the body begins and ends, and how it saves and restores everything."""
        builder = self.builder
        blocks, builder.lines = builder.lines, []
        self._write_beginning()
        builder.lines += blocks
        builder.label("done")
        if self.body.whole_blocks:
            end_loops(self.body)
        builder.line(f"ret i32 {abi.state(abi.DONE)}")
        builder.label("fault")
        builder.line(f"ret i32 {abi.state(abi.FAULT)}")
        if self.body.independent:
            self._write_dispatch()
            return
        written: set[int] = set()
        for region in self.regions.values():
            if region.blocks[0] not in written:
                written.add(region.blocks[0])
                self._write_meeting(region)
        if self._suspends:
            self._write_suspend()
        if self._yield_targets:
            self._write_resume()

    def _write_beginning(self) -> None:
        body, builder = self.body, self.builder
        if body.whole_blocks:
            live = self.everyone if body.shape.full else body.load_field(builder, "%warp", abi.WARP["mask"], "i32")
            self.store("live", live)
            for index in self.regions:
                self.store(f"m{index}", NOBODY)
            body.registers.clear(body.analysis.live_in(self.blocks[0]))
            if 0 in self.regions:
                self.store("m0", live)
            builder.line("br label %b0")
            return
        state = body.load_field(builder, "%warp", abi.WARP["state"], "i32")
        live = body.load_field(builder, "%warp", abi.WARP["mask"], "i32")
        self.store("live", live)
        self.store("budget", body.load_field(builder, "%context", abi.CONTEXT["budget"], "i32"))
        self.store("exit", NOBODY)
        for index in self.regions:
            self.store(f"m{index}", NOBODY)
        if body.independent:
            self.store("start", body.load_field(builder, "%warp", abi.WARP["turn"], "i32"))
            body.store_field("turn", NOBODY)
            builder.line(f"switch i32 {state.ir}, label %dispatch [ i32 0, label %begin ]")
        else:
            points = [f"i32 {code}, label %{label}" for code, label in self._resume_points]
            points += [f"i32 {abi.state(abi.YIELD, 2 * i)}, label %resume" for i in sorted(self._yield_targets)]
            builder.line(f"switch i32 {state.ir}, label %begin [ {' '.join(points)} ]")
        builder.label("begin")
        body.registers.clear(body.analysis.live_in(self.blocks[0]))
        for each in body.instruments:
            each.enter(live)
        if body.independent:
            self._clear_masks()
            builder.line(f"store i32 {live.ir}, ptr {self.frame_mask(0)}")
            builder.line("br label %dispatch")
        else:
            if 0 in self.regions:
                self.store("m0", live)
            builder.line("br label %b0")

    def _clear_masks(self) -> None:
        self.builder.declarations["declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)"] = None
        self.builder.line(f"call void @llvm.memset.p0.i64(ptr %frame, i8 0, i64 {8 * self.mask_count}, i1 false)")

    def _write_meeting(self, region: Region) -> None:
        builder = self.builder
        builder.label(region.meeting)
        for index in region.blocks:
            self.store(f"m{index}", NOBODY)
        if not region.exits:
            builder.line("br label %done")
            return
        over = builder.emit(f"icmp eq i32 {self.load('live').ir}, 0")
        if len(region.exits) == 1:
            builder.line(f"br i1 {over}, label %done, label %b{region.exits[0]}")
            return
        choose = builder.new_label("choose")
        builder.line(f"br i1 {over}, label %done, label %{choose}")
        builder.label(choose)
        ways = " ".join(f"i32 {i}, label %b{i}" for i in region.exits[1:])
        builder.line(f"switch i32 {self.load('exit').ir}, label %b{region.exits[0]} [ {ways} ]")

    def _write_suspend(self) -> None:
        body, builder = self.body, self.builder
        builder.label("suspend")
        self._clear_masks()
        ahead = self.load("target.mask")
        for index in self.regions:
            mask = self.load(f"m{index}")
            builder.line(f"store i32 {mask.ir}, ptr {self.frame_mask(2 * index)}")
            ahead = builder.binary("or", ahead, mask)
        # Who is nowhere in the region has left it.
        left = builder.binary("and", self.load("live"), builder.binary("xor", ahead, constant("i32", -1)))
        exit = builder.binary("mul", self.load("exit"), constant("i32", 2))
        place = builder.emit(f"getelementptr i32, ptr %frame, i32 {exit.ir}")
        builder.line(f"store i32 {left.ir}, ptr {place}")
        target = builder.emit(f"getelementptr i32, ptr %frame, i32 {self.load('target').ir}")
        builder.line(f"store i32 {self.load('target.mask').ir}, ptr {target}")
        body.store_field("mask", self.load("live"))
        body.registers.save_all()
        builder.line(f"ret i32 {self.load('code').ir}")

    def _write_resume(self) -> None:
        body, builder = self.body, self.builder
        builder.label("resume")
        for index in self.regions:
            mask = Value(builder.emit(f"load i32, ptr {self.frame_mask(2 * index)}"), "i32")
            self.store(f"m{index}", mask)
        for exit in sorted({e for region in self.regions.values() if len(region.exits) > 1 for e in region.exits}):
            left = Value(builder.emit(f"load i32, ptr {self.frame_mask(2 * exit)}"), "i32")
            here = builder.compare("icmp ne", left, NOBODY)
            self.store("exit", builder.select(here, constant("i32", exit), self.load("exit")))
        body.registers.restore(body.registers.homes)
        state = body.load_field(builder, "%warp", abi.WARP["state"], "i32")
        targets = sorted(self._yield_targets)
        ways = " ".join(f"i32 {abi.state(abi.YIELD, 2 * i)}, label %b{i}" for i in targets[1:])
        builder.line(f"switch i32 {state.ir}, label %b{targets[0]} [ {ways} ]")

    def _write_dispatch(self) -> None:
        builder, count = self.builder, self.mask_count
        builder.declarations["declare i32 @cupola_next_block(ptr, ptr, i32, i32)"] = None
        builder.label("dispatch")
        index = builder.emit(
            f"call i32 @cupola_next_block(ptr %warp, ptr %frame, i32 {count}, i32 {self.load('start').ir})"
        )
        ways = [f"i32 {self.entry_index(b)}, label %b{b.index}" for b in self.blocks]
        ways += [f"i32 {self.meeting_index(b)}, label %meeting{b.index}" for b in self.blocks if is_meeting(b)]
        ways += [f"i32 {g.index}, label %gathering{g.index}" for g in self.body.gatherings.all]
        builder.line(f"switch i32 {index}, label %idle [ {' '.join(ways)} ]")
        builder.label("idle")
        over = builder.emit(f"icmp eq i32 {self.live().ir}, 0")
        kind = builder.emit(f"select i1 {over}, i32 {abi.state(abi.DONE)}, i32 {abi.state(abi.WAITING)}")
        builder.line(f"ret i32 {kind}")
        builder.label("give.way")
        self.body.store_field("turn", self.load("start"))
        builder.line(f"ret i32 {abi.state(abi.YIELD)}")
