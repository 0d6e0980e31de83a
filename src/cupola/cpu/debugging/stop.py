"""A kernel that is stopped, as functions and commands see it."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

from cupola._counted import counted
from cupola.cpu.compiler.ptx import ast

from .expressions import Expression
from .objects import python_value
from .points import Breakpoint, DebuggerError
from .state import WARP, Dim3, Frame, Launch, Threads
from .steps import Plan
from .values import ExpressionError, Value, show

GO_ON, END_LAUNCH, AS_BEFORE = -1, -2, -3
"""``enum answer`` of engine/instruments/debug.c; other answers are the thread to follow."""


class Stop:
    """A kernel that is stopped; valid until the function that was told of it returns.

    Attributes
    ----------
    reason : str
        ``"breakpoint"``, ``"step"``, ``"interrupt"``, ``"brkpt"`` (``__brkpt()`` in the kernel) or ``"fault"``.
    breakpoints : tuple of Breakpoint
        Those that were hit.
    kernel : str
        The name of the kernel.
    block : tuple of int
        ``blockIdx``.
    grid_dim : tuple of int
        ``gridDim``.
    block_dim : tuple of int
        ``blockDim``.
    launched : tuple of (str, int) or None
        The file and line of Python that launched it.
    explanation : str
        Of a fault, what happened; of a breakpoint, why its condition cannot be evaluated.
    """

    _launch: Launch
    _threads: Threads
    _thread: int

    @classmethod
    def _of(cls, launch: Launch, threads: Threads, thread: int) -> Stop:
        made = cls()
        made._begin(launch, threads, thread)
        return made

    def _begin(self, launch: Launch, threads: Threads, thread: int) -> None:
        self._launch = launch
        self._threads = threads
        self._thread = thread
        self._at: ast.Instruction | None = None
        self._is_over = False
        self._answer: int = GO_ON
        self._plan: Plan | None = None
        self.reason = ""
        self.breakpoints: tuple[Breakpoint, ...] = ()
        self.explanation = ""
        self.kernel = launch.code.function_of_kernel()
        self.block = threads.block
        self.grid_dim, self.block_dim = launch.grid, launch.block_dim
        self.launched = launch.origin

    def _require(self) -> None:
        if self._is_over:
            raise RuntimeError("this stop is over: the kernel has gone on")

    # --- where ------------------------------------------------------------------------------------------------------

    @property
    def thread_number(self) -> int:
        """int: the linear index in the block of the thread that is looked at."""
        return self._thread

    @property
    def thread(self) -> Dim3:
        """tuple of int: ``threadIdx`` of the thread that is looked at; choose another one with `select`."""
        return self._launch.place_of(self._thread)

    @property
    def lanes(self) -> tuple[int, ...]:
        """tuple of int: the linear indices of the threads of the warp that are stopped together."""
        first = self._threads.running_warp * WARP
        return tuple(first + lane for lane in range(WARP) if self._threads.running >> lane & 1)

    def select(self, thread: int | Sequence[int]) -> None:
        """Look at another thread of the block.

        Parameters
        ----------
        thread
            Its linear index, or its ``threadIdx``.

        Raises
        ------
        DebuggerError
            When the block has no such thread.
        """
        self._require()
        self._thread = self._number_of(thread)
        self._at = None

    def _number_of(self, thread: int | Sequence[int]) -> int:
        x, y, z = self.block_dim
        if isinstance(thread, int):
            number = thread
        else:
            index = (*thread, 0, 0)[:3]
            inside = all(0 <= i < extent for i, extent in zip(index, (x, y, z), strict=True))
            number = index[0] + x * (index[1] + y * index[2]) if inside else -1
        if not 0 <= number < x * y * z:
            raise DebuggerError(
                f"a block has the threads 0 to {x * y * z - 1}, as {x} x {y} x {z}; there is no {thread}"
            )
        return number

    def status(self, thread: int | Sequence[int] | None = None) -> str:
        """What a thread does: ``"here"``, ``"at a line"``, ``"at barrier 0"``, ``"exited"``, ``"not begun"``.

        Parameters
        ----------
        thread
            Linear index or ``threadIdx``; None for the one that is looked at.

        Returns
        -------
        str
        """
        self._require()
        return self._threads.status(self._thread if thread is None else self._number_of(thread))

    def _frames(self, thread: int | Sequence[int] | None = None) -> list[Frame]:
        """The functions that a thread is in, innermost first; none, if it has not begun or has exited."""
        self._require()
        number = self._thread if thread is None else self._number_of(thread)
        at = self._at if number == self._thread else None
        return [Frame(self._threads, number, call) for call in self._threads.calls(number, at)]

    def _frame(self, thread: int | Sequence[int] | None, frame: int) -> Frame:
        frames = self._frames(thread)
        if not frames:
            raise DebuggerError(f"the thread has {self.status(thread)}: there is nothing to look at")
        if not 0 <= frame < len(frames):
            raise DebuggerError(
                f"the thread is in {counted(len(frames), 'function')}, of which 0 is the innermost; there is no {frame}"
            )
        return frames[frame]

    @property
    def file(self) -> str:
        """str: the file of CUDA C++ of the line."""
        return self._frame(None, 0).file

    @property
    def line(self) -> int:
        """int: the line at which the thread is."""
        return self._frame(None, 0).line

    @property
    def function(self) -> str:
        """str: the function in which the thread is."""
        return self._frame(None, 0).function

    # --- what -------------------------------------------------------------------------------------------------------

    def _value(self, expression: str, thread: int | Sequence[int] | None = None, frame: int = 0) -> tuple[Value, Frame]:
        """The value of an expression, with its type and its bytes, and where that is."""
        where = self._frame(thread, frame)
        return Expression(expression)(where), where

    def evaluate(self, expression: str, thread: int | Sequence[int] | None = None, frame: int = 0) -> Any:
        """The value of an expression as a number, a list (of an array) or a dictionary (of a structure).

        Parameters
        ----------
        expression
            Of C++, such as ``"x[i] + 1"``.
        thread
            Linear index or ``threadIdx``; None for the one that is looked at.
        frame
            The function, from the innermost outwards.

        Returns
        -------
        int, float, bool, list, dict or None

        Raises
        ------
        ExpressionError
            When it has no value.
        """
        return python_value(*self._value(expression, thread, frame))

    def show(self, expression: str, thread: int | Sequence[int] | None = None, frame: int = 0, base: str = "") -> str:
        """The value of an expression in words.

        Parameters
        ----------
        expression, thread, frame
            As for `evaluate`.
        base
            ``"x"``, ``"b"`` or ``"o"`` to write whole numbers so.

        Returns
        -------
        str

        Raises
        ------
        ExpressionError
            When it has no value.
        """
        value, where = self._value(expression, thread, frame)
        return show(value, where.read, where.thread, base)

    @property
    def variables(self) -> dict[str, Any]:
        """dict: the variables that can be named here, with their values; those that have none now are left out."""
        where = self._frame(None, 0)
        found = {}
        for variable in where.declared():
            value = where.value_of(variable)
            if value.data is not None:
                with contextlib.suppress(ExpressionError):
                    found[variable.name] = python_value(value, where)
        return found

    def lane_values(self, expression: str, frame: int = 0) -> dict[int, Any]:
        """The value of an expression for each thread of the warp that can be asked, by its linear index.

        Parameters
        ----------
        expression
            Of C++.
        frame
            The function, from the innermost outwards.

        Returns
        -------
        dict
        """
        self._require()
        first = self._thread // WARP * WARP
        found = {}
        for thread in range(first, min(first + WARP, self._launch.threads)):
            try:
                found[thread] = self.evaluate(expression, thread, frame)
            except (ExpressionError, DebuggerError):
                continue
        return found

    # --- how it goes on ---------------------------------------------------------------------------------------------

    def resume(self) -> None:
        """Go on to the next breakpoint, which is what happens if nothing else is said."""
        self._require()
        self._plan, self._answer = None, GO_ON

    def step(self) -> None:
        """Stop again where the thread comes to another line, also in a function that it calls."""
        self._go("step")

    def next(self) -> None:
        """Stop again where the thread comes to another line of this function, or leaves it."""
        self._go("next")

    def finish(self) -> None:
        """Stop again where the thread comes back from this function."""
        self._go("finish")

    def until(self, line: int = 0) -> None:
        """Stop again at a later line of this function, which ends loops, or where the thread leaves it.

        Parameters
        ----------
        line
            The least line; 0 for one behind the current one.
        """
        self._go("until", line)

    def end(self) -> None:
        """End the kernel: its context fails with CUDA_ERROR_LAUNCH_TIMEOUT."""
        self._require()
        self._plan, self._answer = None, END_LAUNCH

    def _go(self, how: str, line: int = 0) -> None:
        self._require()
        if self.reason == "fault":
            raise DebuggerError("the kernel has failed, and cannot go on")
        frames = self._frames()
        if not frames:
            raise DebuggerError("the thread has not begun, or has exited: select one that runs")
        place = (frames[0].file, frames[0].line, frames[0].function)
        self._plan = Plan(how, self._launch.grid_id, self.block, self._thread, len(frames), place, line or place[1] + 1)
        self._answer = self._thread
