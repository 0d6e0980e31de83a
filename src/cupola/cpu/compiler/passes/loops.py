"""Establishes: blocks are in the order in which lanes that part ways come together again.

The engine runs a warp's blocks lowest index first: lanes that wait at a block run when no lane waits at an earlier one.
With three properties that makes them meet as early as the graph allows:

- an edge goes to a later block unless it closes a loop (reverse post-order);
- a loop's blocks are contiguous, so lanes that leave it wait until the last one has left ("loop exits last");
- a loop is closed by one edge only, from its *latch*, so lanes that ``continue`` wait at the end of the body for
  the others, and all lanes in a loop are in the same iteration. Where a loop has several such edges, an empty block
  is put in front of its header to join them.

A graph in which a loop can be entered other than through its header (irreducible) has none of this; it is
marked so, and the analysis then takes every lane to be on its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from cupola.cpu.compiler.passes.control_flow import Block, connect_predecessors
from cupola.cpu.compiler.ptx import ast


@dataclass(eq=False, slots=True)
class Loop:
    """A natural loop.

    Attributes
    ----------
    header, latch : Block
        Where it is entered, and the one block that goes back there.
    blocks : set of Block
        All its blocks, those of inner loops too.
    parent : Loop or None
        The next enclosing loop.
    exits : list of Block
        The blocks outside that its edges go to, without those that only return.
    waits : bool
        It reads memory in a way that shows what other threads write meanwhile (atomics, volatile and ordered loads,
        ``mbarrier`` tests, ``nanosleep``): it may wait for them.
    watches : bool
        Something else than an ``mbarrier`` may end the waiting: other memory, a clock, what a call does.
    """

    header: Block
    latch: Block
    blocks: set[Block] = field(default_factory=set)
    parent: Loop | None = None
    exits: list[Block] = field(default_factory=list)
    waits: bool = False
    watches: bool = False


@dataclass(slots=True)
class Order:
    """The blocks of a function in order, with their loops.

    Attributes
    ----------
    blocks : list of Block
        ``blocks[i].index == i``; the entry is the first.
    loops : list of Loop
        Outer loops before inner ones.
    innermost : dict
        The innermost loop of each block that is in one.
    forward : dict
        The graph without the edges that close loops, and with one from each latch to its loop's exits; edges to blocks
        that only return are left out. Empty when the graph is irreducible.
    irreducible : bool
    """

    blocks: list[Block]
    loops: list[Loop]
    innermost: dict[Block, Loop]
    forward: dict[Block, list[Block]]
    irreducible: bool = False


def order_blocks(blocks: list[Block]) -> Order:
    """Find the loops of a graph (entry first), give each one latch, and put the blocks in order."""
    entry = blocks[0]
    text = {block: place for place, block in enumerate(blocks)}
    first = _reverse_post_order(entry, lambda block: sorted(block.successors, key=text.__getitem__, reverse=True))
    place = {block: index for index, block in enumerate(first)}
    dominators = _dominators(first, place)
    closing: dict[Block, list[Block]] = {}  # header -> blocks with an edge back to it
    for block in first:
        for successor in dict.fromkeys(block.successors):
            if place[successor] <= place[block]:
                if not _dominates(successor, block, dominators, place):
                    for index, each in enumerate(first):
                        each.index = index
                    return Order(first, [], {}, {}, irreducible=True)
                closing.setdefault(successor, []).append(block)

    loops = [Loop(header, latches[0], _natural_loop(header, latches)) for header, latches in closing.items()]
    loops.sort(key=lambda loop: len(loop.blocks), reverse=True)
    innermost: dict[Block, Loop] = {}
    for loop in loops:
        loop.parent = innermost.get(loop.header)
        for block in loop.blocks:
            innermost[block] = loop
    for loop in loops:
        latches = closing[loop.header]
        if len(latches) > 1 or innermost[latches[0]] is not loop:
            _insert_latch(loop, latches, innermost)
            text[loop.latch] = max(text[latch] for latch in latches)
    everything = [*first, *(loop.latch for loop in loops if loop.latch not in place)]
    connect_predecessors(everything)
    forward = _forward_edges(everything, loops, innermost)
    ordered = _final_order(entry, everything, forward, text)
    for index, block in enumerate(ordered):
        block.index = index
    for loop in loops:
        loop.exits.sort(key=lambda block: block.index)
        loop.waits = any(map(may_wait, loop.blocks))
        loop.watches = any(map(may_watch, loop.blocks))
    return Order(ordered, loops, innermost, forward)


def may_wait(block: Block) -> bool:
    """Whether the block reads what other threads may write meanwhile."""
    return any(i.description.polls for i in block.instructions)


def may_watch(block: Block) -> bool:
    """Whether what the block waits for may be something else than an mbarrier."""
    return any(i.description.watches or _reads_clock(i) for i in block.instructions)


def _reads_clock(instruction: ast.Instruction) -> bool:
    return any(isinstance(o, ast.Special) and o.name.startswith(("clock", "globaltimer")) for o in instruction.operands)


def _reverse_post_order(entry: Block, successors: Callable[[Block], Iterable[Block]]) -> list[Block]:
    """Depth first from the entry; of two successors the one that is visited first comes later."""
    found: list[Block] = []
    seen = {entry}
    stack = [(entry, iter(successors(entry)))]
    while stack:
        block, rest = stack[-1]
        for successor in rest:
            if successor not in seen:
                seen.add(successor)
                stack.append((successor, iter(successors(successor))))
                break
        else:
            found.append(block)
            stack.pop()
    found.reverse()
    return found


def _dominators(order: list[Block], place: dict[Block, int]) -> dict[Block, Block]:
    """The immediate dominator of every block but the entry (Cooper, Harvey and Kennedy)."""
    entry = order[0]
    found = {entry: entry}
    changed = True
    while changed:
        changed = False
        for block in order[1:]:
            meet: Block | None = None
            for predecessor in block.predecessors:
                if predecessor in found:
                    meet = predecessor if meet is None else _meet(predecessor, meet, found, place)
            if meet is not None and found.get(block) is not meet:
                found[block] = meet
                changed = True
    return found


def _meet(a: Block, b: Block, dominators: dict[Block, Block], place: dict[Block, int]) -> Block:
    while a is not b:
        if place[a] > place[b]:
            a = dominators[a]
        else:
            b = dominators[b]
    return a


def _dominates(a: Block, b: Block, dominators: dict[Block, Block], place: dict[Block, int]) -> bool:
    while place[b] > place[a]:
        b = dominators[b]
    return a is b


def _natural_loop(header: Block, latches: list[Block]) -> set[Block]:
    found = {header}
    waiting = list(latches)
    while waiting:
        block = waiting.pop()
        if block not in found:
            found.add(block)
            waiting += block.predecessors
    return found


def _insert_latch(loop: Loop, latches: list[Block], innermost: dict[Block, Loop]) -> None:
    """Let all edges that close the loop go through one new, empty block."""
    latch = Block(0, f"{loop.header.label}.latch")
    latch.successors = [loop.header]
    for block in latches:
        block.successors = [latch if successor is loop.header else successor for successor in block.successors]
    loop.latch = latch
    innermost[latch] = loop
    outer: Loop | None = loop
    while outer is not None:
        outer.blocks.add(latch)
        outer = outer.parent


def _forward_edges(blocks: list[Block], loops: list[Loop], innermost: dict[Block, Loop]) -> dict[Block, list[Block]]:
    forward = {block: block.effective_successors() for block in blocks}
    for loop in loops:
        forward[loop.latch].remove(loop.header)
    for block in blocks:
        for successor in block.effective_successors():
            inner = innermost.get(block)
            while inner is not None and successor not in inner.blocks:
                if successor not in inner.exits:
                    inner.exits.append(successor)
                inner = inner.parent
    for loop in loops:
        for target in loop.exits:
            if target not in forward[loop.latch]:
                forward[loop.latch].append(target)
    return forward


def _final_order(
    entry: Block, blocks: list[Block], forward: dict[Block, list[Block]], text: dict[Block, int]
) -> list[Block]:
    """Reverse post-order of the forward graph; arms that soon end come first, else the order of the text counts."""

    def soon_ends(block: Block) -> bool:
        for _ in range(8):
            if len(block.predecessors) != 1:
                return False
            following = forward[block]
            if not following:
                return True
            if len(following) > 1:
                return False
            block = following[0]
        return False

    def successors(block: Block) -> list[Block]:
        following = forward[block]
        if len(following) > 1:
            following = sorted(following, key=lambda b: (soon_ends(b), -text[b]))
        return following

    ordered = _reverse_post_order(entry, successors)
    # Blocks that only return are no way on, so they are not met above; they come last.
    known = set(ordered)
    return ordered + [block for block in blocks if block not in known]
