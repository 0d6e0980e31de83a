"""Establishes: a function is a graph of basic blocks, each with at most one control instruction, at its end.

An instruction ends a block when it goes elsewhere (``bra``, ``brx.idx``), ends the thread (``ret``, ``exit``), or
may have to wait for other warps (``bar.sync``, ``bar.red`` and whatever else the caller says), because the engine
suspends the warp there and comes back to the block behind. In a kernel with parts (see `join_functions`) calls and
returns end blocks, too: the graph is one of each function on its own, in which a call just goes on to the block behind
it; `analysis` later puts the real ways in. Of these only ``bra``, ``ret`` and ``exit`` keep a guard:
``@p bar.sync`` becomes a branch around a plain ``bar.sync``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from cupola.cpu.compiler.passes.effects import Effects, effects
from cupola.cpu.compiler.ptx import ast
from cupola.cpu.compiler.ptx.errors import PtxUnsupportedError


@dataclass(eq=False, slots=True)
class Block:
    """Instructions that run one after the other.

    Attributes
    ----------
    index : int
        The place in the order of execution, from 0: see `loops`.
    label : str
        A unique name: the PTX label, or a made-up one.
    instructions : list of Instruction
        All but the terminator. They may have guards.
    terminator : Instruction or None
        A guarded ``bra``, ``ret`` or ``exit`` with or without a guard, ``brx`` or a suspending instruction without one;
        None when the block just goes on to its one successor (as it does after a plain ``bra``). A block without
        successors always ends in ``ret`` or ``exit``.
    successors : list of Block
        For a guarded ``bra`` the target and then the next block; for ``brx`` the targets in the order of its list;
        for a guarded ``ret`` or ``exit`` and for a suspending instruction the next block.
    predecessors : list of Block
        Every block that has this one among its successors, once each.
    returns_only : bool
        Nothing but a plain ``ret`` or ``exit``: an edge to this block just ends the lanes that take it.
    convergent : bool
        Whenever the block runs, all lanes of the warp that have not ended run it: no lane waits elsewhere.
    effects : list of Effects
        Registers read and written, for each instruction and, last, for the terminator if there is one.
    part : str
        The label of the part of the kernel that it belongs to; empty for the kernel's own code.
    cases : list of int
        Of a call through a pointer, the numbers of the functions it may reach, and of a return the numbers of the
        calls that it may be for, in the order of the successors.
    """

    index: int
    label: str
    instructions: list[ast.Instruction] = field(default_factory=list)
    terminator: ast.Instruction | None = None
    successors: list[Block] = field(default_factory=list)
    predecessors: list[Block] = field(default_factory=list)
    returns_only: bool = False
    convergent: bool = True
    effects: list[Effects] = field(default_factory=list)
    part: str = ""
    cases: list[int] = field(default_factory=list)

    @property
    def calls(self) -> bool:
        """Whether the block ends in a call."""
        return self.terminator is not None and self.terminator.opcode == ".call"

    def __repr__(self) -> str:
        return f"<Block {self.index} {self.label} -> {[block.label for block in self.successors]}>"

    def code(self) -> list[ast.Instruction]:
        """All instructions, the terminator last."""
        return [*self.instructions, self.terminator] if self.terminator is not None else self.instructions

    def effective_successors(self) -> list[Block]:
        """Where lanes go on: the distinct successors that do more than end them."""
        found: list[Block] = []
        for block in self.successors:
            if not block.returns_only and block not in found:
                found.append(block)
        return found


_GUARDED = frozenset(["bra", "ret", "exit", ".call", ".return"])
"""What keeps its guard at the end of a block."""


def waits_for_warps(instruction: ast.Instruction) -> bool:
    """Whether an instruction is a barrier at which a warp may have to wait for others (PTX ISA 9.7.13.1 to .4)."""
    return instruction.description.waits in ("group", "block", "cluster")


def meets_warp(instruction: ast.Instruction) -> bool:
    """Whether the threads of a warp that the instruction names wait for each other there."""
    return instruction.description.waits == "warp"


def suspends(instruction: ast.Instruction) -> bool:
    """Whether a thread may have to wait at the instruction for anybody, so that it ends its block."""
    return instruction.description.suspends


def build_blocks(function: ast.Function, suspends: Callable[[ast.Instruction], bool] = waits_for_warps) -> list[Block]:
    """The reachable blocks of a function in the order of the text, the entry first."""
    blocks = _split(function, suspends)
    _connect(function, blocks)
    return _finished(function, blocks)


def decide(function: ast.Function, blocks: list[Block], conditions: Mapping[str, bool]) -> list[Block]:
    """The blocks without the ways that nobody goes, where the values of predicates are known."""
    for block in blocks:
        end = block.terminator
        if end is None or end.guard is None or end.guard.register.name not in conditions:
            continue
        if conditions[end.guard.register.name] == end.guard.negated:  # it does nothing
            block.terminator, block.successors = None, block.successors[-1:]
        elif end.opcode == "bra":
            block.terminator, block.successors = None, block.successors[:1]
        else:
            block.terminator, block.successors = _without_guard(end), []
    return _finished(function, blocks)


def _finished(function: ast.Function, blocks: list[Block]) -> list[Block]:
    blocks = _simplify(function, blocks)
    for index, block in enumerate(blocks):
        block.index = index
        block.effects = [effects(instruction) for instruction in block.code()]
    connect_predecessors(blocks)
    return blocks


def connect_predecessors(blocks: list[Block]) -> None:
    """Set ``predecessors`` from ``successors``."""
    for block in blocks:
        block.predecessors = []
    for block in blocks:
        for successor in dict.fromkeys(block.successors):
            successor.predecessors.append(block)


def _split(function: ast.Function, suspends: Callable[[ast.Instruction], bool]) -> list[Block]:
    blocks = [Block(0, ".entry")]
    part = ""

    def begin(label: str | None = None) -> None:
        blocks.append(Block(len(blocks), label or f".block{len(blocks)}", part=part))

    for statement in function.body or ():
        if isinstance(statement, ast.Label):
            if statement.name in function.parts:
                part = statement.name
            begin(statement.name)
            continue
        if blocks[-1].terminator is not None:
            begin()
        is_control = statement.description.lowered == "control"
        if is_control or suspends(statement):
            if statement.guard is not None and statement.opcode not in _GUARDED:
                _branch_around(blocks[-1], statement, f".behind{len(blocks) + 1}")
                begin()
                blocks[-1].terminator = _without_guard(statement)
                begin(f".behind{len(blocks)}")
            else:
                blocks[-1].terminator = statement
        else:
            blocks[-1].instructions.append(statement)
    last = blocks[-1]
    ends = ("ret", "exit", ".return")
    if last.terminator is None or last.terminator.opcode not in ends or last.terminator.guard is not None:
        if last.terminator is not None:
            begin()
        line = last.code()[-1].location if last.code() else function.location or ast.Location(0)
        blocks[-1].terminator = ast.Instruction("ret", (), (), None, line, "ret;")
    return blocks


def _without_guard(instruction: ast.Instruction) -> ast.Instruction:
    return ast.Instruction(
        instruction.opcode,
        instruction.modifiers,
        instruction.operands,
        None,
        instruction.location,
        instruction.text,
    )


def _branch_around(block: Block, instruction: ast.Instruction, label: str) -> None:
    assert instruction.guard is not None
    inverse = ast.Guard(instruction.guard.register, not instruction.guard.negated)
    target = (ast.LabelRef(label),)
    block.terminator = ast.Instruction("bra", (), target, inverse, instruction.location, instruction.text)


def _connect(function: ast.Function, blocks: list[Block]) -> None:
    labels = {block.label: block for block in blocks}
    for block, following in zip(blocks, [*blocks[1:], None], strict=True):
        terminator = block.terminator
        if terminator is None:
            targets = [following]
        elif terminator.opcode == "bra":
            targets = [_target(labels, terminator, _label_of(terminator, 0))]
            if terminator.guard is not None:
                targets.append(following)
        elif terminator.opcode == "brx":
            names = function.branch_targets.get(_label_of(terminator, 1), ())
            targets = [_target(labels, terminator, name) for name in names]
            if not targets:
                raise PtxUnsupportedError("'brx.idx' has no list of targets", terminator.location)
        elif terminator.opcode in ("ret", "exit", ".return"):
            targets = [] if terminator.guard is None else [following]
        else:
            targets = [following]
        block.successors = [target for target in targets if target is not None]


def _label_of(terminator: ast.Instruction, index: int) -> str:
    operand = terminator.operands[index]
    if not isinstance(operand, ast.LabelRef):
        raise PtxUnsupportedError(f"{terminator.text!r} does not name a label", terminator.location)
    return operand.name


def _target(labels: dict[str, Block], terminator: ast.Instruction, name: str) -> Block:
    if name not in labels:
        raise PtxUnsupportedError(f"{terminator.text!r} does not go to a label", terminator.location)
    return labels[name]


def call_targets(function: ast.Function, call: ast.Instruction) -> tuple[str, ...]:
    """The labels of the parts that a ``.call`` may go to."""
    label = call.operands[-2]
    assert isinstance(label, ast.LabelRef)
    return (label.name,) if len(call.operands) == 2 else function.branch_targets[label.name]


def _simplify(function: ast.Function, blocks: list[Block]) -> list[Block]:
    """Skip blocks that only go on, join chains, and drop what cannot be reached."""
    entry = blocks[0]
    for block in blocks:
        block.returns_only = (
            not block.instructions
            and block.terminator is not None
            and block.terminator.description.exits
            and block.terminator.guard is None
        )
    for block in blocks:
        if not block.calls:  # each call has a block of its own behind it
            block.successors = [_destination(successor) for successor in block.successors]
        terminator = block.terminator
        if terminator is not None and terminator.opcode == "bra" and terminator.guard is None:
            block.terminator = None  # an edge says it already
    reachable = _reachable(function, blocks)
    blocks = [block for block in blocks if block in reachable]
    connect_predecessors(blocks)
    gone: set[Block] = set()
    for block in blocks:
        while block not in gone and block.terminator is None and len(block.successors) == 1:
            successor = block.successors[0]
            if len(successor.predecessors) != 1 or successor is block or successor is entry or successor.returns_only:
                break
            block.instructions.extend(successor.instructions)
            block.terminator = successor.terminator
            block.successors = successor.successors
            for following in block.successors:
                following.predecessors = [block if b is successor else b for b in following.predecessors]
            gone.add(successor)
    return [block for block in blocks if block not in gone]


def _destination(block: Block) -> Block:
    """The first block on the way from here that does something."""
    seen = set()
    while not block.instructions and len(block.successors) == 1 and block not in seen:
        terminator = block.terminator
        if terminator is not None and (terminator.opcode != "bra" or terminator.guard is not None):
            break
        seen.add(block)
        block = block.successors[0]
    return block


def _reachable(function: ast.Function, blocks: list[Block]) -> set[Block]:
    parts = {block.label: block for block in blocks if block.label in function.parts}
    found = {blocks[0]}
    waiting = [blocks[0]]
    while waiting:
        block = waiting.pop()
        following = block.successors
        if block.calls and block.terminator is not None:
            following = [*following, *(parts[label] for label in call_targets(function, block.terminator))]
        for successor in following:
            if successor not in found:
                found.add(successor)
                waiting.append(successor)
    return found
