"""Which facts about a block the machine code is made for."""

from __future__ import annotations

from cupola.cpu.compiler.records import dataclass

WARP = 32
WALKERS = 4
"""Threads that walk side by side (memory/abreast.py)."""
LARGEST_X = 1023


@dataclass(frozen=True, slots=True)
class Shape:
    """The facts about the block that a variant of a kernel relies on.

    Attributes
    ----------
    width
        Threads that one call of the body runs: 32, or fewer when the kernel has no operations among the threads
        of a warp and the block is narrow; four, or one, when it is better off without so many lanes.
    contiguous
        The threads of a unit lie in one row of the block: ``%tid.x`` counts up by one over the lanes, ``%tid.y``
        and ``%tid.z`` are the same in all of them.
    full
        Every unit has all its threads.
    largest_x
        What ``%tid.x`` is at most.
    counted
        Units have one thread, and the block one row: ``%tid.x`` is the number of the unit.
    """

    width: int
    contiguous: bool
    full: bool
    largest_x: int = LARGEST_X
    counted: bool = False


def choose_shape(block: tuple[int, int, int], *, whole_warps: bool, walkers: int, largest_compared: int) -> Shape:
    """The shape for a block of threads; with ``whole_warps`` units are warps whatever the block is like.

    Where ``%tid.x`` is compared with numbers that are larger than all of a block's (``largest_compared``), it matters
    how large a block is; its size counts as the next power of two, so that there are not too many shapes.

    Rows shorter than a warp would make lanes of one unit jump between rows, which costs far more than narrow
    vectors do; a block of a single row has no such problem and ends in a partial unit at most. ``walkers`` are how many
    threads are better run at a time (`KernelInfo.walkers`), or 0.
    """
    x, y, z = block
    threads = x * y * z
    one_row = y * z == 1
    if whole_warps:
        width = WARP
    elif walkers:
        width = walkers if threads % walkers == 0 and (one_row or x % walkers == 0) else 1
    elif one_row:
        width = min(WARP, 1 << (threads - 1).bit_length())
    else:
        width = min(WARP, x & -x)
    beyond = 1 << (x - 1).bit_length()
    largest_x = beyond - 1 if width > 1 and beyond - 1 <= largest_compared else LARGEST_X
    counted = width == 1 and one_row
    return Shape(width, one_row or x % width == 0, threads % width == 0, min(largest_x, LARGEST_X), counted)
