"""The debugger: where threads stop, who is told, and how they go on."""

from __future__ import annotations

import os
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import TypeVar

from cupola._above import above
from cupola.cpu import _driver, _instruments
from cupola.cpu.compiler import modules
from cupola.cpu.compiler.modules import Variant
from cupola.cpu.compiler.ptx import ast

from .code import Code
from .points import Breakpoint, Seen, Watch, dim3_or_none, make_watch
from .state import WARP, Dim3, Launch, Threads
from .steps import Plan
from .stop import AS_BEFORE, GO_ON, Stop

AT_LINE, FAULTED, LAUNCH_OVER = range(3)
"""``enum reason`` of engine/instruments/debug.c."""
_STOPPED = 14
"""CPU_FAULT_STOPPED."""

ENVIRONMENT = "CUPOLA_DEBUGGER"
"""Set while there is a debugger: programs are compiled with lines and without optimization, their texts are kept."""

_MOST_NAMES = 8

_Function = TypeVar("_Function", bound=Callable[..., object])


class _Known:
    """Code that was compiled for a debugger, and where it stops."""

    def __init__(self, variant: Variant) -> None:
        assert variant.stops is not None
        self.variant, self.stops = variant, variant.stops
        self.code = Code(variant)
        self.armed: dict[int, list[Breakpoint]] = {}
        for number in self.code.lines:
            self.stops[number] = self._always(number)

    def _always(self, number: int) -> int:
        return int(self.code.instructions[number].opcode == "brkpt")

    def arm(self, point: Breakpoint) -> None:
        """Stop there, too."""
        for line in point._arm(self.code):
            self.armed.setdefault(line.number, []).append(point)
            self.stops[line.number] = 1

    def disarm(self, point: Breakpoint) -> None:
        """Not there any more."""
        for number, points in list(self.armed.items()):
            points[:] = [each for each in points if each is not point]
            if not points:
                del self.armed[number]
                self.stops[number] = self._always(number)


def _some(names: Iterable[str]) -> str:
    known = sorted(set(names))
    return ", ".join(known[:_MOST_NAMES]) + (", ..." if len(known) > _MOST_NAMES else "")


class Debugger:
    """Stops kernels of the CPU device; `cupola.cpu.debugger` makes one.

    Attributes
    ----------
    breakpoints : list of Breakpoint
        Those that there are.
    watches : list of Watch
        Those that there are.

    Notes
    -----
    Any thread may set breakpoints and watches at any time. One thread of a kernel stops at a time, and functions are
    told of it one after the other. A `Stop` is for the function that was told of it. The first exception that such a
    function raises is raised where the ``with`` statement ends; the kernel goes on meanwhile.
    """

    _current: Debugger | None = None
    _one = threading.Lock()

    def __init__(self) -> None:
        self.breakpoints: list[Breakpoint] = []
        self.watches: list[Watch] = []
        self._listeners: list[Callable[[Stop], object]] = []
        self._ended: list[Callable[[str], object]] = []
        self._known: dict[int, _Known] = {}
        self._numbers = 0
        self._plan: Plan | None = None
        self._wanted_block: Dim3 | None = None
        self._interrupted = False
        self._focus: tuple[int, Dim3, int] | None = None
        self._lock = threading.RLock()
        self._is_on = False
        self._environment: str | None = None
        self._error: BaseException | None = None

    # --- on and off -------------------------------------------------------------------------------------------------

    def __enter__(self) -> Debugger:
        """Stop threads of kernels that are launched from now on; chooses the CPU device, as `cupola.cpu.use` does."""
        with Debugger._one:
            if Debugger._current is not None:
                raise RuntimeError("there is a debugger already: one process has one at a time")
            try:
                above("request")("cpu")
            except RuntimeError as error:
                raise RuntimeError(f"kernels are debugged on the CPU device only: {error}") from None
            Debugger._current = self
            self._is_on = True
        self._environment = os.environ.get(ENVIRONMENT)
        os.environ[ENVIRONMENT] = "1"
        _instruments.switch_on("debug")
        modules.tell_debugged(self._add)
        _driver.debug_ask(self._asked)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait for what was launched, unless an exception goes through, and stop nothing any more.

        Raises what a function that was told of a stop has raised first; shows it, if another exception goes through.
        """
        try:
            if kind is None:
                while not _driver.is_idle():
                    time.sleep(0.001)
        finally:
            self.close()
        failed, self._error = self._error, None
        if failed is None:
            return
        if kind is None:
            raise failed
        traceback.print_exception(failed)

    def close(self) -> None:
        """Take it away: nothing stops any more."""
        with Debugger._one:
            if not self._is_on:
                return
            self._is_on = False
            Debugger._current = None
        _instruments.switch_off("debug")
        modules.tell_debugged(None)
        _driver.debug_ask(None)
        if self._environment is None:
            os.environ.pop(ENVIRONMENT, None)
        else:
            os.environ[ENVIRONMENT] = self._environment
        with self._lock:
            for known in self._known.values():
                known.variant.clear_stops()
            self._known.clear()

    def on_stop(self, function: _Function) -> _Function:
        """Have a function called with the `Stop` whenever a thread stops; a decorator, too.

        It is called on the thread that runs the kernel, which waits meanwhile. It must not call CUDA.

        Parameters
        ----------
        function
            What is called.

        Returns
        -------
        callable
            The same function.
        """
        self._listeners.append(function)
        return function

    @property
    def is_interrupted(self) -> bool:
        """bool: whether `interrupt` was called, and no thread has come to a line since."""
        return self._interrupted

    def interrupt(self) -> None:
        """Stop the next thread that comes to a line, of any kernel."""
        self._interrupted = True
        _driver.debug_interrupt(True)

    # --- breakpoints ------------------------------------------------------------------------------------------------

    def breakpoint(
        self,
        where: str | int,
        *,
        condition: str = "",
        block: int | Sequence[int] | None = None,
        thread: int | Sequence[int] | None = None,
        temporary: bool = False,
    ) -> Breakpoint:
        """Have threads stop at a line, or where a function begins.

        Parameters
        ----------
        where
            ``"saxpy"``, ``"kernel.cu:12"``, or ``12`` for that line of any file. The file may be the program in
            Python that has the source as a string: ``"program.py:12"``.
        condition
            An expression of C++ that must hold for a thread.
        block
            The block whose threads stop, as ``blockIdx`` has it; None for all.
        thread
            The thread of a block that stops, as ``threadIdx`` has it; None for all.
        temporary
            Whether it is for one stop only.

        Returns
        -------
        Breakpoint

        Raises
        ------
        ExpressionError
            When the condition cannot be read.
        DebuggerError
            When ``where`` cannot be understood.
        """
        made = Breakpoint(
            0, str(where).strip(), condition, dim3_or_none(block), dim3_or_none(thread), temporary=temporary
        )
        self._insert(made)
        return made

    def _insert(self, made: Breakpoint) -> None:
        with self._lock:
            if made._watch is None:
                self._numbers += 1
                made.number = self._numbers
            self.breakpoints.append(made)
            for known in self._known.values():
                known.arm(made)

    def delete(self, point: Breakpoint | Watch) -> None:
        """Take a breakpoint or a watch away.

        Parameters
        ----------
        point
            One of `breakpoints` or `watches`.
        """
        with self._lock:
            if isinstance(point, Watch):
                self.watches = [each for each in self.watches if each is not point]
            gone = [each for each in self.breakpoints if each is point or each._watch is point]
            for each in gone:
                self.breakpoints.remove(each)
                for known in self._known.values():
                    known.disarm(each)

    def watch(self, where: str, expression: str | None = None, tell: Callable[[Seen], object] | None = None) -> Watch:
        """Evaluate an expression whenever threads come to a line, without stopping.

        Parameters
        ----------
        where
            ``"kernel.cu:12"``, or ``"kernel.cu:12:x[i]"`` with the expression.
        expression
            Of C++; None when `where` has it.
        tell
            Called with each `Seen`.

        Returns
        -------
        Watch

        Raises
        ------
        ExpressionError
            When the expression cannot be read.
        DebuggerError
            When ``where`` cannot be understood.
        """
        made, hidden = make_watch(where, expression)
        made._tell = tell
        with self._lock:
            self._insert(hidden)
            self.watches.append(made)
        return made

    def never_reached(self) -> list[str]:
        """Say which breakpoints and watches no kernel has that was launched, and what the kernels have instead.

        Returns
        -------
        list of str
            A sentence for each; none if all were reached.
        """
        missing = [point for point in self.breakpoints if not point.places]
        codes = self._codes_now()
        if not codes:
            return [f"{point} was never reached: no kernel was launched" for point in missing]
        files = _some(file for code in codes for file in code.files())
        functions = _some(name for code in codes for name in code.functions())
        return [
            f"{point} was never reached: no kernel that was launched has it, "
            + (f"their files are {files}" if point._line else f"their functions are {functions}")
            for point in missing
        ]

    def _add(self, variant: Variant) -> _Known:
        """Code that was compiled for a debugger: note it, and where it is to stop."""
        with self._lock:
            known = self._known.get(id(variant))
            if known is None:
                known = self._known[id(variant)] = _Known(variant)
                for each in self.breakpoints:
                    known.arm(each)
            return known

    def _codes_now(self) -> list[Code]:
        """The kernels that were compiled so far, for each shape of blocks."""
        with self._lock:
            return [known.code for known in self._known.values()]

    # --- threads stop -----------------------------------------------------------------------------------------------

    def _asked(
        self,
        reason: int,
        variant: Variant,
        number: int,
        lanes: int,
        first: int,
        grid_id: int,
        block: Dim3,
        grid: Dim3,
        block_dim: Dim3,
        file: str | None,
        line: int,
    ) -> int:
        """Called by the engine; returns the thread to follow, or another answer."""
        try:
            known = self._add(variant)
            if reason == LAUNCH_OVER:
                self._launch_over(known, grid_id)
                return GO_ON
            origin = (file, line) if file is not None else None
            code = known.code
            launch = Launch(code, grid_id, grid, block_dim, origin)
            at = code.instructions[number] if number < len(code.instructions) else None
            threads = Threads(launch, block, lanes, first // WARP, at)
            if reason == FAULTED:
                return self._faulted(launch, threads)
            return self._at_line(known, launch, threads, number)
        except BaseException as error:  # of a function of the program, whose kernel must not hang: __exit__ raises it
            if self._error is None:
                self._error = error
            return GO_ON

    def _at_line(self, known: _Known, launch: Launch, threads: Threads, number: int) -> int:
        line = launch.code.lines.get(number)
        if line is None:
            return GO_ON
        with self._lock:
            armed = list(known.armed.get(number, ()))
        hit: list[Breakpoint] = []
        focus: int | None = None
        for each in armed:
            thread = each._hit_by(threads, number)
            if thread is not None and each._watch is None:
                each.hits += 1
                hit.append(each)
                focus = thread if focus is None else focus
        reason = "breakpoint" if hit else ""
        if focus is None and line.instruction.opcode == "brkpt":
            reason, focus = "brkpt", _first(threads)
        plan = self._plan
        if focus is None and plan is not None and plan.ends(threads, line):
            reason, focus = "step", plan.thread
        if focus is None and self._interrupted:
            wanted = self._wanted_block
            if wanted is None or wanted == threads.block:
                reason, focus = "interrupt", _first(threads)
        if focus is None:
            return AS_BEFORE if plan is not None else GO_ON
        self._plan, self._interrupted, self._wanted_block = None, False, None
        _driver.debug_interrupt(False)
        for each in hit:
            if each.temporary:
                self.delete(each)
        focus = self._still(launch, threads, focus, is_meant=any(each.condition or each.thread for each in hit))
        why = "\n".join(each._problem for each in hit if each._problem)
        return self._tell(launch, threads, focus, reason, tuple(hit), line.instruction, why)

    def _still(self, launch: Launch, threads: Threads, thread: int, *, is_meant: bool) -> int:
        """The thread that was looked at before, if it stops, too, and no other one is meant."""
        if is_meant or self._focus is None or self._focus[:2] != (launch.grid_id, threads.block):
            return thread
        before = self._focus[2]
        here = before // WARP == threads.running_warp and threads.running >> before % WARP & 1
        return before if here else thread

    def _tell(
        self,
        launch: Launch,
        threads: Threads,
        focus: int,
        reason: str,
        hit: tuple[Breakpoint, ...],
        at: ast.Instruction | None,
        explanation: str = "",
    ) -> int:
        stop = Stop._of(launch, threads, focus)
        stop.reason, stop.breakpoints, stop.explanation, stop._at = reason, hit, explanation, at
        try:
            for listener in list(self._listeners):
                listener(stop)
            self._focus = launch.grid_id, threads.block, stop._thread
            self._plan = stop._plan
            return stop._answer
        finally:
            stop._is_over = True

    def _faulted(self, launch: Launch, threads: Threads) -> int:
        kind, site, at, text = _driver.debug_fault()
        x, y, _ = launch.block_dim
        thread = at[0] + x * (at[1] + y * at[2]) if at[0] != 0xFFFFFFFF else None
        if thread is None:
            waiting = (t for t in range(launch.threads) if threads.status(t) not in ("exited", "not begun"))
            thread = next(waiting, 0)
        sites = launch.code.variant.sites
        instruction = sites[site].instruction if site < len(sites) else None
        if kind == _STOPPED:
            return GO_ON
        threads.running_warp, threads.running = thread // WARP, 1 << thread % WARP
        self._plan, self._interrupted = None, False
        _driver.debug_interrupt(False)
        return self._tell(launch, threads, thread, "fault", (), instruction, text)

    def _launch_over(self, known: _Known, grid_id: int) -> None:
        plan = self._plan
        if plan is None or plan.grid_id != grid_id:
            return
        self._plan = None
        for listener in list(self._ended):
            listener(known.code.function_of_kernel())


def _first(threads: Threads) -> int:
    lanes = threads.running
    return threads.running_warp * WARP + ((lanes & -lanes).bit_length() - 1 if lanes else 0)
