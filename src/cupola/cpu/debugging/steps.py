"""Steps: how a thread goes on, and where that ends."""

from __future__ import annotations

from dataclasses import dataclass

from cupola.cpu.compiler.emit.instruments.debug import Line

from .state import WARP, Dim3, Threads


@dataclass(frozen=True, slots=True)
class Plan:
    """What ends a step of a thread: how, and where the thread was.

    Attributes
    ----------
    how
        ``"step"``, ``"next"``, ``"finish"`` or ``"until"``.
    grid_id, block, thread
        Which thread.
    depth
        How many functions it was in.
    place
        The file, line and function.
    line
        For ``"until"``, the least line.
    """

    how: str
    grid_id: int
    block: Dim3
    thread: int
    depth: int
    place: tuple[str, int, str]
    line: int = 0

    def ends(self, threads: Threads, line: Line) -> bool:
        """Whether the thread has come to where its step ends, if it is among those that have come to a line."""
        if self.grid_id != threads.launch.grid_id or self.block != threads.block:
            return False
        if self.thread // WARP != threads.running_warp or not threads.running >> self.thread % WARP & 1:
            return False
        calls = threads.calls(self.thread, line.instruction)
        code = threads.launch.code
        at = calls[0].location
        depth = len(calls)
        if self.how == "finish":
            return depth < self.depth
        if not line.begins:
            return False
        place = (code.file_of(at), code.line_of(at), code.function_of(at))
        if self.how == "step":
            return place != self.place or depth != self.depth
        if depth < self.depth:
            return True
        if self.how == "next":
            return depth == self.depth and place != self.place
        return depth == self.depth and place[0] == self.place[0] and place[1] >= self.line
