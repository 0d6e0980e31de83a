"""What the emitter knows about a kernel before it writes a line: the result of all analyses in one object."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from cupola.cpu.compiler.passes.control_flow import (
    Block,
    build_blocks,
    call_targets,
    connect_predecessors,
    decide,
    waits_for_warps,
)
from cupola.cpu.compiler.passes.divergence import Divergence
from cupola.cpu.compiler.passes.liveness import Liveness
from cupola.cpu.compiler.passes.loops import Loop, Order, may_wait, order_blocks
from cupola.cpu.compiler.passes.thread_numbers import LARGEST, copies_of_thread_number, known_numbers
from cupola.cpu.compiler.passes.uniformity import UNIFORM, VARYING, Shape, Uniformity, _Unknown
from cupola.cpu.compiler.passes.unsaved import unsaved_registers
from cupola.cpu.compiler.passes.warp_lines import WarpLines
from cupola.cpu.compiler.ptx import ast

__all__ = ["UNIFORM", "VARYING", "Analysis", "Shape", "analyze"]


Constant = ast.Immediate | ast.Symbol

_Edges = frozenset[tuple[int, int]]


@dataclass(slots=True)
class Analysis:
    """A kernel taken apart for a warp of ``width`` lanes.

    Attributes
    ----------
    function : ast.Function
    width : int
    blocks : list of Block
        In the order of execution, ``blocks[i].index == i``, the entry first. The order and ``Block.convergent``
        hold if lanes that wait at several blocks are run lowest index first. Blocks that only return come last. In a
        kernel with parts the functions that are called come before their callers, behind an empty first block.
    loops : list of Loop
        Outer ones first. ``loop.waits`` marks those in which a thread may wait for another one.
    spinning : frozenset of (int, int)
        The edges (from block, to block) that close loops in which a thread may wait for another one.
    watching : frozenset of (int, int)
        Those of them where it may wait for something else than an mbarrier.
    registers : dict
        The types of the registers that reachable instructions name, in order of first appearance.
    shapes : dict
        By register: `UNIFORM` (0), a stride other than 0, or `VARYING` (None). See `shape`.
    constants : dict
        Registers with one definition, an unguarded ``mov`` of a number or a variable's address: the `ast.Immediate` or
        `ast.Symbol`. And some that are found to be always one number.
    local : set of str
        Registers that never carry a value from one block to another (nor around a loop): they are written before
        they are read in every run of the block, so an unguarded write need not keep the old value of lanes that
        do not run.
    loaded : set of str
        Registers whose values come from memory, where the lanes read different places.
    warp_lines : set of str
        Registers that are a multiple of the width plus the lane number, wherever they are affine with stride 1.
    thread_numbers : list of frozenset
        By block: the registers that hold ``%tid.x`` where it begins.
    liveness : Liveness
    """

    function: ast.Function
    width: int
    blocks: list[Block]
    loops: list[Loop]
    spinning: _Edges
    watching: _Edges
    registers: dict[str, str]
    shapes: dict[str, Shape]
    constants: dict[str, Constant]
    local: set[str]
    loaded: set[str]
    warp_lines: set[str]
    thread_numbers: list[frozenset[str]]
    liveness: Liveness
    kept: set[str]
    """Registers that some lanes write while others still want the values that they have, so that writes are by mask."""
    unsaved: list[int]
    """By block: the registers, as bits of ``liveness``, that may have changed since the last barrier when it ends."""
    outside: dict[str, int]
    """By part: the registers, as bits of ``liveness``, that callers want after they are back."""

    def shape(self, register: str) -> Shape:
        """How a register depends on the lane.

        Returns
        -------
        int or None
            0 (`UNIFORM`): in every block, all lanes that run it see the same value; one scalar is enough. (Instructions
            may still produce it as a vector, then any running lane has it.)

            Another integer, the stride: lane ``i`` holds ``base + i * stride``, modulo the register's width, unless an
            instruction widened a value whose lanes had wrapped. That must be tested at run time.

            None (`VARYING`): nothing is known.
        """
        return self.shapes.get(register, UNIFORM)

    def live_in(self, block: Block) -> list[str]:
        """The registers whose value may be read in or after ``block`` before it is written, in a fixed order.

        What to keep when a warp is suspended in front of the block.
        """
        return list(self.liveness.names(self.liveness.live_in[block.index] | self.outside.get(block.part, 0)))

    def to_save(self, block: Block) -> list[str]:
        """Those of the registers that live behind the barrier at the end of ``block`` that the frame may not have."""
        behind = block.successors[0]
        live = self.liveness.live_in[behind.index] | self.outside.get(behind.part, 0)
        return list(self.liveness.names(live & self.unsaved[block.index]))


def analyze(
    function: ast.Function,
    *,
    width: int,
    x_is_contiguous: bool,
    rows_are_whole: bool = False,
    largest_x: int = LARGEST,
    suspends: Callable[[ast.Instruction], bool] = waits_for_warps,
) -> Analysis:
    """Analyze a function that `prepare` has made ready.

    Parameters
    ----------
    function : ast.Function
        With calls inlined and the carry explicit.
    width : int
        Lanes of a warp; with 1 every register is uniform and every block convergent.
    x_is_contiguous : bool
        All lanes of a warp have the same ``%tid.y`` and ``%tid.z``, and ``%tid.x`` goes up by one from lane to lane:
        blockDim.x is a multiple of the width, or the block has one row only.
    rows_are_whole : bool
        blockDim.x is a multiple of the width.
    largest_x : int
        What ``%tid.x`` is at most.
    suspends : callable, optional
        Which instructions end a block because the warp may be suspended there; barriers by default.

    Returns
    -------
    Analysis

    Raises
    ------
    PtxUnsupportedError
        For a branch that does not go to a label.

    Notes
    -----
    Registers are typed by their declaration, values by the instruction: a ``.b32`` register may hold a float. The
    address of a local variable counts as uniform (all lanes have the same offset in their own local memory); what
    is loaded from there never does.
    """
    built = build_blocks(function, suspends)
    copies: dict[str, frozenset[str]] = {}
    always: dict[str, int] = {}
    if width > 1 and not function.parts:
        built, copies, always = _decided(function, built, largest_x)
    functions = _Functions(function, built)
    blocks = functions.blocks
    liveness = Liveness(blocks)
    if functions.entries:  # the empty first block
        liveness.live_in[0] = liveness.live_in[blocks[0].successors[0].index]
    registers = {name: function.registers[name] for name in liveness.bit}
    constants, single = _definitions(blocks)
    local = _local(blocks, liveness)
    shapes: dict[str, Shape] = {}
    loaded: set[str] = set()
    kept = set(registers)
    numbers = _numbers(constants)
    thread_numbers = [copies.get(block.label, frozenset()) for block in blocks]
    constants = {**{name: ast.Immediate(number) for name, number in always.items()}, **constants}
    numbers = always | numbers
    lines = WarpLines(width, numbers, x_is_contiguous=x_is_contiguous, rows_are_whole=rows_are_whole)
    if width > 1:
        definitions = _writers(blocks)
        if functions.entries:
            definitions = {name: found for name, found in definitions.items() if name in single}
        lines.find(definitions)
        uniformity = Uniformity(
            x_is_contiguous=x_is_contiguous,
            has_local=uses_local_memory(function),
            warp_lines=lines,
        )
        uniformity.constants = numbers
        for block in blocks:
            for instruction, effect in zip(block.code(), block.effects, strict=True):
                uniformity.add(instruction, effect)
        functions.watch(liveness, uniformity)
        uniformity.solve()
        shapes = {name: shape for name, shape in uniformity.shapes.items() if not isinstance(shape, _Unknown)}
        loaded = uniformity.loaded()
        if not function.parts:
            kept = uniformity.forced
    spinning, watching = functions.waiting_edges()
    outside = functions.wanted_outside(liveness)
    functions.connect()
    loops = [loop for order in functions.orders.values() for loop in order.loops]
    return Analysis(
        function,
        width,
        blocks,
        loops,
        spinning,
        watching,
        registers,
        shapes,
        constants,
        local,
        loaded,
        lines.lines,
        thread_numbers,
        liveness,
        kept,
        unsaved_registers(blocks, liveness),
        outside,
    )


def uses_local_memory(function: ast.Function) -> bool:
    """Whether a generic address may be one of the thread's own memory."""
    stack = bool(function.parts) or function.stack_grows
    return stack or any(variable.space == "local" for variable in function.variables)


class _Functions:
    """The kernel and its parts, each with its own order of blocks, and all of them one behind the other."""

    def __init__(self, function: ast.Function, blocks: list[Block]) -> None:
        self.function = function
        by_part: dict[str, list[Block]] = {}
        for block in blocks:
            by_part.setdefault(block.part, []).append(block)
        names = [name for name in function.parts if name in by_part]  # callees come first
        self.orders: dict[str, Order] = {name: order_blocks(by_part[name]) for name in [*names, ""]}
        self.blocks = [block for order in self.orders.values() for block in order.blocks]
        if names:
            first = Block(0, ".start", successors=[self.orders[""].blocks[0]])
            self.blocks.insert(0, first)
            for index, block in enumerate(self.blocks):
                block.index = index
        self.entries = {name: self.orders[name].blocks[0] for name in names}

    def targets(self, block: Block) -> list[str]:
        """The parts to which a block that ends in a call may go."""
        return list(call_targets(self.function, block.terminator)) if block.terminator is not None else []

    def _calls(self, name: str) -> list[Block]:
        return [block for block in self.orders[name].blocks if block.calls]

    def watch(self, liveness: Liveness, uniformity: Uniformity) -> None:
        """Find out, as the shapes of registers are found, where lanes are together."""

        def part(block: Block) -> None:
            for target in self.targets(block):
                found[target].give_up()

        found = {name: Divergence(order, liveness, uniformity, part) for name, order in self.orders.items()}
        for name, divergence in found.items():
            if name and self.function.parts[name].recursive:
                divergence.give_up()
            else:
                divergence.start()

    def waiting_edges(self) -> tuple[_Edges, _Edges]:
        """`Analysis.spinning` and `Analysis.watching`; a thread may also wait in a function that a loop calls."""
        waiting: set[str] = set()
        for name in self.entries:
            calls = {target for block in self._calls(name) for target in self.targets(block)}
            if any(map(may_wait, self.orders[name].blocks)) or calls & waiting:
                waiting.add(name)
        spinning: set[tuple[int, int]] = set()
        watching: set[tuple[int, int]] = set()
        for order in self.orders.values():
            for loop in order.loops:
                if any(waiting.intersection(self.targets(block)) for block in loop.blocks if block.calls):
                    loop.waits = loop.watches = True
                if loop.waits:
                    spinning.add((loop.latch.index, loop.header.index))
                if loop.waits and loop.watches:
                    watching.add((loop.latch.index, loop.header.index))
            if order.irreducible:  # its loops are not known
                back = {(b.index, s.index) for b in order.blocks for s in b.successors if s.index <= b.index}
                spinning |= back
                watching |= back
        return frozenset(spinning), frozenset(watching)

    def wanted_outside(self, liveness: Liveness) -> dict[str, int]:
        """For each part, the registers that its callers want after they are back."""
        found = dict.fromkeys(self.entries, 0)
        changed = True
        while changed:  # callers first, so once is enough without recursion
            changed = False
            for name in reversed(self.orders):
                for block in self._calls(name):
                    wanted = liveness.live_in[block.successors[0].index] | found.get(name, 0)
                    for target in self.targets(block):
                        if wanted & ~found[target]:
                            found[target] |= wanted
                            changed = True
        return found

    def connect(self) -> None:
        """Replace the edges around calls by the ways that threads go."""
        returns: dict[str, list[Block]] = {}
        cases: dict[str, list[int]] = {}
        for order in self.orders.values():
            for block in order.blocks:
                if block.calls and block.terminator is not None:
                    site = block.terminator.operands[-1]
                    assert isinstance(site, ast.Immediate)
                    targets = self.targets(block)
                    for target in targets:
                        returns.setdefault(target, []).append(block.successors[0])
                        cases.setdefault(target, []).append(site.value)
                    block.successors = [self.entries[target] for target in targets]
                    block.cases = [self.function.parts[target].number for target in targets]
        for name, order in self.orders.items():
            for block in order.blocks:
                if block.terminator is not None and block.terminator.opcode == ".return":
                    block.successors = returns.get(name, [])
                    block.cases = cases.get(name, [])
        if returns:
            connect_predecessors(self.blocks)


def _decided(
    function: ast.Function, blocks: list[Block], largest_x: int
) -> tuple[list[Block], dict[str, frozenset[str]], dict[str, int]]:
    """The blocks without those that no thread reaches because ``%tid.x`` is a small number.

    By the label of each block, the registers that hold ``%tid.x`` where it begins; and the registers that always hold
    one number.
    """
    while True:
        constants, single = _definitions(blocks)
        numbers = _numbers(constants)
        copies = copies_of_thread_number(blocks)
        known = known_numbers(blocks, copies, single, numbers, largest_x)
        ends = (block.terminator for block in blocks)
        if not any(end and end.guard and end.guard.register.name in known.conditions for end in ends):
            return blocks, {block.label: copies[block.index] for block in blocks}, known.numbers
        blocks = decide(function, blocks, known.conditions)


def _definitions(blocks: list[Block]) -> tuple[dict[str, Constant], set[str]]:
    """Registers that hold a constant, and those with one definition."""
    count: dict[str, int] = {}
    constants: dict[str, Constant] = {}
    for block in blocks:
        for instruction, effect in zip(block.code(), block.effects, strict=True):
            for name in effect.writes:
                count[name] = count.get(name, 0) + 1
            if instruction.opcode == "mov" and instruction.guard is None:
                target, source = instruction.operands
                if isinstance(target, ast.Register) and isinstance(source, Constant):
                    constants[target.name] = source
    single = {name for name, number in count.items() if number == 1}
    return {name: value for name, value in constants.items() if name in single}, single


def _numbers(constants: Mapping[str, Constant]) -> dict[str, int]:
    return {name: c.value for name, c in constants.items() if isinstance(c, ast.Immediate) and c.kind == "int"}


def _writers(blocks: list[Block]) -> dict[str, list[ast.Instruction]]:
    """The instructions that write each register."""
    found: dict[str, list[ast.Instruction]] = {}
    for block in blocks:
        for instruction, effect in zip(block.code(), block.effects, strict=True):
            for name in effect.writes:
                found.setdefault(name, []).append(instruction)
    return found


def _local(blocks: list[Block], liveness: Liveness) -> set[str]:
    """Registers that stay within a block."""
    home: dict[str, Block | None] = {}
    across = 0
    for bits in liveness.live_in:
        across |= bits
    for block in blocks:
        for effect in block.effects:
            for name in effect.writes:
                home[name] = block if home.setdefault(name, block) is block else None
    return {name for name, block in home.items() if block is not None and not liveness.bit[name] & across}
