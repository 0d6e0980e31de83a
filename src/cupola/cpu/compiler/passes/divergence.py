"""Establishes: where lanes may be apart, and which registers that makes varying.

A branch whose condition is not uniform splits the lanes that run it. Because blocks run lowest index first, in the
order that `loops` makes, it is known where they meet again:

- *Within a loop body, or outside of loops,* at the nearest block that all ways on lead to (the post-dominator in the
  forward graph of that loop). The blocks before it are the split's region.
- *When some lanes leave a loop,* they wait behind it until the last one has left. Meanwhile those inside stay
  together, in the same iteration; so the loop's own variables may be uniform or affine although its lanes leave one by
  one. Behind the loop all are together if it has one exit, else they are split among its exits, in the loop around it.
- *Lanes that end* never come back: an arm that ends all its lanes, and comes before the other in the order, leaves that
  one with all the lanes there are.

Each function of a kernel (see `join_functions`) is looked at on its own. A call goes on to the block behind it, because
callees come before their callers in the order, so that who comes back waits until the last one does. When not all lanes
call a function together, or when it is recursive, nothing is known in it.

A register defined in a region by some lanes cannot stay uniform or affine when others, who wait at a later block for
their turn or to meet, still want the value that they have. One defined in a loop cannot when it is wanted behind a loop
that lanes leave one by one: each has the value of its own last iteration.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from cupola.cpu.compiler.passes.control_flow import Block
from cupola.cpu.compiler.passes.liveness import Liveness
from cupola.cpu.compiler.passes.loops import Loop, Order
from cupola.cpu.compiler.passes.uniformity import Uniformity

_Joins = dict[Block, Block | None]
_MOST_PAIRS = 100_000  # of blocks in a region and places to wait; beyond, a simpler rule forces more


class Divergence:
    """Watches the conditions of branches and marks blocks and registers as they turn out not to be uniform.

    Parameters
    ----------
    order
        The blocks of one function.
    liveness, uniformity
        Of all functions of the kernel.
    on_parting
        Told each block that ends in a call and that some lanes run without the others, or from which they go to
        different functions.
    """

    def __init__(
        self,
        order: Order,
        liveness: Liveness,
        uniformity: Uniformity,
        on_parting: Callable[[Block], None] = lambda block: None,
    ) -> None:
        self.order = order
        self.liveness = liveness
        self.uniformity = uniformity
        self.on_parting = on_parting
        self._joins: dict[Loop | None, _Joins] = {}
        self._split_loops: set[Loop] = set()
        self._dominators: dict[Block, Block] = {}
        self._alive: set[Block] = set()  # blocks outside of loops from which the function's last block is reached
        self._gave_up = False

    def start(self) -> None:
        """Begin to watch."""
        if self.order.irreducible:
            self.give_up(together=not self.order.blocks[0].predecessors)
            return
        for block in self.order.blocks:
            self._watch(block)

    def _watch(self, block: Block) -> None:
        terminator = block.terminator
        if terminator is not None and terminator.opcode == ".call":
            for register in block.effects[-1].reads:
                self.uniformity.watch(register, partial(self.on_parting, block))
        if terminator is None or terminator.opcode not in ("bra", "brx"):
            return
        targets = block.effective_successors()
        if len(targets) < 2:
            return
        for register in block.effects[-1].reads:
            self.uniformity.watch(register, partial(self._split, targets, block))

    def give_up(self, *, together: bool = False) -> None:
        """Every lane may be anywhere in the function; ``together`` says that all begin it together."""
        blocks = self.order.blocks
        if not self._gave_up:
            self._gave_up = True
            for block in blocks[1:]:
                self._mark(block)
            for name in {name for block in blocks for effect in block.effects for name in effect.writes}:
                self.uniformity.force(name)
        if not together and blocks[0].convergent:
            self._mark(blocks[0])
            # Arguments differ with the call that a lane comes from.
            for name in self.liveness.names(self.liveness.live_in[blocks[0].index]):
                self.uniformity.force(name)

    def _mark(self, block: Block) -> None:
        """Note that lanes may run the block while others wait elsewhere."""
        if block.convergent:
            block.convergent = False
            if block.calls:
                self.on_parting(block)

    # --- splits -----------------------------------------------------------------------------------------------

    def _split(self, targets: list[Block], block: Block) -> None:
        """The lanes that run ``block`` go on to different targets."""
        self._part(targets, self.order.innermost.get(block))

    def _part(self, targets: list[Block], loop: Loop | None) -> None:
        """Lanes that were together in the body of ``loop`` (None: the function's) part to ``targets``."""
        inside = [block for block in targets if loop is None or (block in loop.blocks and block is not loop.header)]
        leaves = loop is not None and any(block not in loop.blocks for block in targets)
        region, join = self._region(inside, loop)
        for block in region:
            self._mark(block)
            if loop is not None and not leaves:
                leaves = any(successor not in loop.blocks for successor in block.effective_successors())
        if region:
            self._force(region, inside, join)
        if loop is not None and leaves:
            self._leave(loop)

    def _force(self, region: set[Block], targets: list[Block], join: Block | None) -> None:
        """Find the registers that a block of a region writes while lanes elsewhere still want the value they have."""
        waits = self._waits(region, targets, join)
        live_in, bit = self.liveness.live_in, self.liveness.bit
        exact = len(waits) * len(region) < _MOST_PAIRS
        waits.sort(key=lambda wait: wait[0].index)
        behind = 0  # wanted at any later place
        for block in sorted(region, key=lambda block: block.index, reverse=True):
            while waits and not exact and waits[-1][0].index > block.index:
                behind |= live_in[waits.pop()[0].index]
            wanted = behind
            if exact:
                for place, origin in waits:
                    if place.index > block.index and not self._is_over(block, origin):
                        wanted |= live_in[place.index]
            for effect in block.effects:
                for name in effect.writes:
                    if bit[name] & wanted:
                        self.uniformity.force(name)

    def _waits(self, region: set[Block], targets: list[Block], join: Block | None) -> list[tuple[Block, Block | None]]:
        """Places where lanes of a split may wait while others run, and the block they come from (None: the split).

        Lanes wait unless the block that they go to is the next one anyway.
        """
        first = min(targets, key=lambda block: block.index, default=None)
        waits: list[tuple[Block, Block | None]] = [(block, None) for block in targets if block is not first]
        for block in region:
            for successor in self.order.forward[block]:
                if successor.index > block.index + 1 and (successor in region or successor is join):
                    waits.append((successor, block))
        return waits

    def _is_over(self, block: Block, origin: Block | None) -> bool:
        """Whether no lane that comes from ``origin`` waits while ``block`` runs.

        Either the block comes first; or all its lanes come from ``origin`` too, which then went one way together (if
        they did not, that is a split of its own).
        """
        return origin is not None and (block.index <= origin.index or self._dominates(origin, block))

    def _dominates(self, a: Block, b: Block) -> bool:
        """Whether all ways to ``b`` in the forward graph lead through ``a``."""
        if not self._dominators:
            self._dominators = self._find_dominators()
        while b.index > a.index:
            b = self._dominators[b]
        return a is b

    def _find_dominators(self) -> dict[Block, Block]:
        """Immediate dominators in the forward graph, which goes from lower to higher indices: one sweep."""
        entry = self.order.blocks[0]
        found = {entry: entry}
        for block in self.order.blocks:
            for successor in self.order.forward[block]:
                a, b = block, found.get(successor, block)
                while a is not b:
                    if a.index > b.index:
                        a = found[a]
                    else:
                        b = found[b]
                found[successor] = a
        return found

    def _leave(self, loop: Loop) -> None:
        """Lanes leave a loop one by one."""
        if loop in self._split_loops:
            return
        self._split_loops.add(loop)
        wanted = 0
        for target in loop.exits:
            wanted |= self.liveness.live_in[target.index]
        bit = self.liveness.bit
        for block in loop.blocks:
            self._mark(block)
            for effect in block.effects:
                for name in effect.writes:
                    if bit[name] & wanted:
                        self.uniformity.force(name)
        if len(loop.exits) > 1:
            self._part(loop.exits, loop.parent)

    # --- regions ----------------------------------------------------------------------------------------------

    def _region(self, targets: list[Block], loop: Loop | None) -> tuple[set[Block], Block | None]:
        """The blocks in which lanes that went to different targets are apart, and where they meet."""
        if len(targets) < 2:
            return set(), targets[0] if targets else None
        join = self._join(targets, loop)
        region = self._reach(targets, join, loop)
        if join is not None and any(block.index > join.index for block in region):
            # lanes that will end are still waiting when the others meet
            return self._reach(targets, None, loop), None
        return region, join

    def _reach(self, starts: list[Block], join: Block | None, loop: Loop | None) -> set[Block]:
        found: set[Block] = set()
        waiting = list(starts)
        while waiting:
            block = waiting.pop()
            if block is not join and block not in found:
                found.add(block)
                waiting += self._forward(block, loop)
        return found

    def _forward(self, block: Block, loop: Loop | None) -> list[Block]:
        following = self.order.forward[block]
        return following if loop is None else [successor for successor in following if successor in loop.blocks]

    def _join(self, targets: list[Block], loop: Loop | None) -> Block | None:
        joins = self._joins.get(loop)
        if joins is None:
            joins = self._joins[loop] = self._post_dominators(loop)
        alive = [target for target in targets if target in self._alive] if loop is None else targets
        meet: Block | None = (alive or targets)[0]
        for target in (alive or targets)[1:]:
            meet = _meet(meet, target, joins)
        return meet

    def _post_dominators(self, loop: Loop | None) -> _Joins:
        """For each block of a loop body the nearest later block that all ways on lead to; None at its end.

        All blocks of a loop lead to its latch. Outside of loops a function may end in several places: ways that do not
        lead to the last one of them end their lanes, who meet nobody, and do not count.

        The forward graph has no cycles and goes from lower to higher indices, so one sweep is enough.
        """
        forward = self.order.forward
        blocks = self.order.blocks if loop is None else sorted(loop.blocks, key=lambda block: block.index)
        blocks = [block for block in blocks if block in forward and not block.returns_only]
        if loop is None and blocks:
            returns = [b for b in blocks if b.terminator is not None and b.terminator.opcode == ".return"]
            self._alive.update(returns or blocks[-1:])
        joins: _Joins = {}
        for block in reversed(blocks):
            following = self._forward(block, loop)
            if loop is None:
                alive = [successor for successor in following if successor in self._alive]
                if alive:
                    self._alive.add(block)
                    following = alive
            meet: Block | None = following[0] if following else None
            for successor in following[1:]:
                meet = _meet(meet, successor, joins)
            joins[block] = meet
        return joins


def _meet(a: Block | None, b: Block | None, joins: _Joins) -> Block | None:
    while a is not b:
        if a is None or b is None:
            return None
        if a.index < b.index:
            a = joins[a]
        else:
            b = joins[b]
    return a
