"""The debugger: where threads stop, who is told, and how they go on."""

from __future__ import annotations

import contextlib
import os
import re
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import Any, TypeVar

from cupola._above import above
from cupola.cpu import _driver, _instruments
from cupola.cpu.compiler import modules
from cupola.cpu.compiler.emit.instruments.debug import Line
from cupola.cpu.compiler.modules import Variant
from cupola.cpu.compiler.ptx import ast

from .code import Code
from .expressions import Expression
from .state import WARP, Dim3, Frame, Launch, Threads
from .values import ExpressionError, Value, element, member, show

AT_LINE, FAULTED, LAUNCH_OVER = range(3)
"""``enum reason`` of engine/instruments/debug.c."""
_GO_ON, _END_LAUNCH, _AS_BEFORE = -1, -2, -3

ENVIRONMENT = "CUPOLA_DEBUGGER"
"""Set while there is a debugger: programs are compiled with lines and without optimization, their texts are kept."""

_MOST_SEEN = 100_000
_MOST_PARTS = 100_000

_Function = TypeVar("_Function", bound=Callable[..., object])


class DebuggerError(ValueError):
    """Something that the debugger cannot do; the text says why."""


@dataclass(eq=False)
class Breakpoint:
    """Where threads stop.

    Attributes
    ----------
    number
        Counted from 1.
    where
        As it was given: a function, ``"file:line"`` or a line.
    condition
        An expression that must hold for a thread; empty for none.
    block
        The block whose threads stop; None for all.
    thread
        The thread of a block that stops; None for all.
    temporary
        Whether it is deleted when it was hit.
    enabled
        Whether it is heeded.
    hits
        How often warps have stopped there.
    places
        Where in the code that was loaded it is: ``"file:line in function"``.
    """

    number: int
    where: str
    condition: str = ""
    block: Dim3 | None = None
    thread: Dim3 | None = None
    temporary: bool = False
    enabled: bool = True
    hits: int = 0
    places: list[str] = field(default_factory=list)
    _file: str = field(default="", init=False, repr=False)
    _line: int = field(default=0, init=False, repr=False)
    _test: Expression | None = field(default=None, init=False, repr=False)
    _watch: Watch | None = field(default=None, init=False, repr=False)

    def __str__(self) -> str:
        parts = [f"breakpoint {self.number} at {self.where}"]
        if self.condition:
            parts.append(f"if {self.condition}")
        parts += [f"in block {self.block}"] * (self.block is not None)
        parts += [f"in thread {self.thread}"] * (self.thread is not None)
        return " ".join(parts)


@dataclass(frozen=True)
class Seen:
    """A value that a watch has seen.

    Attributes
    ----------
    kernel
        The name of the kernel.
    file
        The file of the line.
    line
        Where it was seen.
    block
        ``blockIdx`` of the thread.
    thread
        ``threadIdx``.
    value
        The value, as `Stop.evaluate` gives it; None where it could not be read.
    text
        The same in words, or why it could not be read.
    """

    kernel: str
    file: str
    line: int
    block: Dim3
    thread: Dim3
    value: object
    text: str


@dataclass(eq=False)
class Watch:
    """An expression that is evaluated whenever threads come to a line.

    Attributes
    ----------
    where
        The line.
    expression
        What is evaluated.
    values : list of Seen
        What it was; the first hundred thousand.
    """

    where: str
    expression: str
    values: list[Seen] = field(default_factory=list)
    _expression: Expression | None = field(default=None, init=False, repr=False)
    _tell: Callable[[Seen], object] | None = field(default=None, init=False, repr=False)


@dataclass(frozen=True, slots=True)
class _Plan:
    """What ends a step of a thread: how, and where the thread was."""

    how: str
    grid_id: int
    block: Dim3
    thread: int
    depth: int
    place: tuple[str, int, str]
    line: int = 0


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
        Of a fault, what happened.
    """

    _debugger: Debugger
    _launch: Launch
    _threads: Threads
    _thread: int

    @classmethod
    def _of(cls, debugger: Debugger, launch: Launch, threads: Threads, thread: int) -> Stop:
        made = cls()
        made._begin(debugger, launch, threads, thread)
        return made

    def _begin(self, debugger: Debugger, launch: Launch, threads: Threads, thread: int) -> None:
        self._debugger = debugger
        self._launch = launch
        self._threads = threads
        self._thread = thread
        self._at: ast.Instruction | None = None
        self._is_over = False
        self._answer: int = _GO_ON
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
                f"the thread is in {len(frames)} functions, of which 0 is the innermost; there is no {frame}"
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

    def _value(self, expression: str, thread: int | Sequence[int] | None = None, frame: int = 0) -> Value:
        """The value of an expression, with its type and its bytes."""
        return Expression(expression)(self._frame(thread, frame))

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
        where = self._frame(thread, frame)
        return python_value(Expression(expression)(where), where)

    def show(self, expression: str, thread: int | Sequence[int] | None = None, frame: int = 0, base: str = "") -> str:
        """The value of an expression in words.

        Parameters
        ----------
        expression
            Of C++, such as ``"x[i] + 1"``.
        thread
            Linear index or ``threadIdx``; None for the one that is looked at.
        frame
            The function, from the innermost outwards.
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
        where = self._frame(thread, frame)
        return show(Expression(expression)(where), where.read, where.thread, base)

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
        self._debugger._plan = None
        self._answer = _GO_ON

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
        self._debugger._plan = None
        self._answer = _END_LAUNCH

    def _go(self, how: str, line: int = 0) -> None:
        self._require()
        if self.reason == "fault":
            raise DebuggerError("the kernel has failed, and cannot go on")
        frames = self._frames()
        if not frames:
            raise DebuggerError("the thread has not begun, or has exited: select one that runs")
        place = (frames[0].file, frames[0].line, frames[0].function)
        self._debugger._plan = _Plan(
            how, self._launch.grid_id, self.block, self._thread, len(frames), place, line or place[1] + 1
        )
        self._answer = self._thread


def python_value(value: Value, frame: Frame) -> Any:
    """A value as Python has it: a number, a list or a dictionary; None where it cannot be read.

    Raises
    ------
    ExpressionError
        When it has too many parts.
    """
    left = _MOST_PARTS

    def convert(value: Value) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise ExpressionError(f"the value has more than {_MOST_PARTS} parts: ask for a slice x[a:b]")
        kind = value.type.kind
        if kind == "array":
            count = min(value.type.count, left + 1)
            return [convert(element(value, i, frame.read, frame.thread)) for i in range(count)]
        if kind == "struct" and not value.type.name.endswith(("__half", "__nv_bfloat16")):
            return {m.name: convert(member(value, m.name, frame.read)) for m in value.type.members}
        try:
            number = value.number
        except ExpressionError:
            return None
        return bool(number) if kind == "bool" else number

    try:
        return convert(value)
    except RecursionError:
        raise ExpressionError("the value is nested too deeply") from None


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
    told of it one after the other. A `Stop` is for the function that was told of it.
    """

    _current: Debugger | None = None

    def __init__(self) -> None:
        self.breakpoints: list[Breakpoint] = []
        self.watches: list[Watch] = []
        self._listeners: list[Callable[[Stop], object]] = []
        self._over: list[Callable[[str, bool], object]] = []
        self._codes: dict[int, Code] = {}
        self._variants: dict[int, Variant] = {}
        self._armed: dict[int, dict[int, list[Breakpoint]]] = {}
        self._numbers = 0
        self._plan: _Plan | None = None
        self._wanted_block: Dim3 | None = None
        self._interrupted = False
        self._focus: tuple[int, Dim3, int] | None = None
        self._lock = threading.RLock()
        self._is_on = False
        self._environment: str | None = None
        self._failed: set[int] = set()

    # --- on and off -------------------------------------------------------------------------------------------------

    def __enter__(self) -> Debugger:
        """Stop threads of kernels that are launched from now on; chooses the CPU device, as `cupola.cpu.use` does."""
        if Debugger._current is not None:
            raise RuntimeError("there is a debugger already: one process has one at a time")
        try:
            above("request")("cpu")
        except RuntimeError as error:
            raise RuntimeError(f"kernels are debugged on the CPU device only: {error}") from None
        Debugger._current = self
        self._is_on = True
        self._codes.clear()
        self._armed.clear()
        self._environment = os.environ.get(ENVIRONMENT)
        os.environ[ENVIRONMENT] = "1"
        _instruments.switch_on("debug")
        modules.tell_debugged(self._add)
        _driver.debug_ask(self._asked)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait for what was launched, unless an exception goes through, and stop nothing any more."""
        if kind is None:
            while not _driver.is_idle():
                time.sleep(0.001)
        self.close()

    def close(self) -> None:
        """Take it away: nothing stops any more."""
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
        for variant in self._variants.values():
            variant.clear_stops()

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
            ``"saxpy"``, ``"kernel.cu:12"``, or ``12`` for that line of any file.
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
        text = str(where).strip()
        file, line = _file_and_line(text)
        made = Breakpoint(0, text, condition, _dim3(block), _dim3(thread), temporary)
        made._file, made._line = file, line
        if condition:
            made._test = Expression(condition)
        self._insert(made)
        return made

    def _insert(self, made: Breakpoint) -> None:
        with self._lock:
            if made._watch is None:
                self._numbers += 1
                made.number = self._numbers
            self.breakpoints.append(made)
            for identity in list(self._codes):
                self._arm(identity, made)

    def delete(self, breakpoint: Breakpoint) -> None:
        """Take a breakpoint away.

        Parameters
        ----------
        breakpoint
            One of `breakpoints`.
        """
        with self._lock:
            if breakpoint in self.breakpoints:
                self.breakpoints.remove(breakpoint)
            for identity, armed in self._armed.items():
                for number, there in list(armed.items()):
                    if breakpoint in there:
                        there.remove(breakpoint)
                    if not there:
                        del armed[number]
                        stops = self._variants[identity].stops
                        assert stops is not None
                        stops[number] = self._always(identity, number)

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
        if expression is None:
            parts = re.match(r"((?:[^:]|::)+:\d+|\d+|[\w:]*\w):([^:].*)", where, re.DOTALL)
            if parts is None:
                raise DebuggerError(f"{where!r} is not FILE:LINE:EXPRESSION, such as kernel.cu:12:x[i]")
            where, expression = parts[1], parts[2]
        made = Watch(where, expression.strip())
        made._expression, made._tell = Expression(expression), tell
        hidden = Breakpoint(0, where)
        hidden._file, hidden._line = _file_and_line(where)
        hidden._watch = made
        self._insert(hidden)
        self.watches.append(made)
        return made

    def _always(self, identity: int, number: int) -> int:
        return int(self._codes[identity].instructions[number].opcode == "brkpt")

    def _add(self, variant: Variant) -> None:
        """Code that was compiled for a debugger: note it, and where it is to stop."""
        with self._lock:
            identity = id(variant)
            if identity in self._codes or variant.stops is None:
                return
            self._variants[identity] = variant
            code = self._codes[identity] = Code(variant)
            self._armed[identity] = {}
            for number in code.lines:
                variant.stops[number] = self._always(identity, number)
            for each in self.breakpoints:
                self._arm(identity, each)

    def _arm(self, identity: int, each: Breakpoint) -> None:
        code, stops = self._codes[identity], self._variants[identity].stops
        assert stops is not None
        if each._line:
            _, lines = code.at_line(each._file, each._line)
        else:
            lines = code.at_function(each.where)
        for line in lines:
            at = line.instruction.location
            place = f"{code.file_of(at)}:{code.line_of(at)} in {code.function_of(at)}"
            if place not in each.places:
                each.places.append(place)
            self._armed[identity].setdefault(line.number, []).append(each)
            stops[line.number] = 1

    def _codes_now(self) -> list[Code]:
        """The kernels that were compiled so far, for each shape of blocks."""
        with self._lock:
            return list(self._codes.values())

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
            if id(variant) not in self._codes:
                self._add(variant)
            if reason == LAUNCH_OVER:
                self._launch_over(variant, grid_id)
                return _GO_ON
            origin = (file, line) if file is not None else None
            launch = Launch(self._codes[id(variant)], grid_id, grid, block_dim, origin)
            code = self._codes[id(variant)]
            at = code.instructions[number] if number < len(code.instructions) else None
            threads = Threads(launch, block, lanes, first // WARP, at)
            if reason == FAULTED:
                return self._faulted(launch, threads)
            return self._at_line(launch, threads, number)
        except Exception:
            traceback.print_exc()  # an error of the debugger, or of a function of the program that it has called
            return _GO_ON

    def _at_line(self, launch: Launch, threads: Threads, number: int) -> int:
        code = launch.code
        line = code.lines.get(number)
        if line is None:
            return _GO_ON
        hit: list[Breakpoint] = []
        focus: int | None = None
        for each in list(self._armed[id(code.variant)].get(number, ())):
            thread = self._hit_by(each, threads, number)
            if thread is not None and each._watch is None:
                each.hits += 1
                hit.append(each)
                focus = thread if focus is None else focus
        reason = "breakpoint" if hit else ""
        if focus is None and line.instruction.opcode == "brkpt":
            reason, focus = "brkpt", _first(threads)
        plan = self._plan
        if focus is None and plan is not None and self._ends(plan, threads, line):
            reason, focus = "step", plan.thread
        if focus is None and self._interrupted:
            wanted = self._wanted_block
            if wanted is None or wanted == threads.block:
                reason, focus = "interrupt", _first(threads)
        if focus is None:
            return _AS_BEFORE if plan is not None else _GO_ON
        self._plan, self._interrupted, self._wanted_block = None, False, None
        _driver.debug_interrupt(False)
        for each in hit:
            if each.temporary:
                self.delete(each)
        focus = self._still(launch, threads, focus, is_meant=any(each.condition or each.thread for each in hit))
        return self._tell(launch, threads, focus, reason, tuple(hit), line.instruction)

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
        stop = Stop._of(self, launch, threads, focus)
        stop.reason, stop.breakpoints, stop.explanation, stop._at = reason, hit, explanation, at
        try:
            for listener in self._listeners:
                listener(stop)
            self._focus = launch.grid_id, threads.block, stop._thread
            return stop._answer
        finally:
            stop._is_over = True

    def _hit_by(self, each: Breakpoint, threads: Threads, number: int) -> int | None:
        """The first thread of those that come to a line for which a breakpoint is meant."""
        if not each.enabled or (each.block is not None and each.block != threads.block):
            return None
        launch = threads.launch
        for lane in range(WARP):
            if not threads.running >> lane & 1:
                continue
            thread = threads.running_warp * WARP + lane
            if each.thread is not None and each.thread != launch.place_of(thread):
                continue
            if launch.code.goes_on(partial(threads.before, thread), number):
                continue
            if each._test is None and each._watch is None:
                return thread
            calls = threads.calls(thread)
            if not calls:
                continue
            frame = Frame(threads, thread, calls[0])
            if each._watch is not None:
                _see(each._watch, frame)
            elif each._test is not None and self._holds(each, frame):
                return thread
        return None

    def _holds(self, each: Breakpoint, frame: Frame) -> bool:
        assert each._test is not None
        try:
            return each._test.holds(frame)
        except ExpressionError as error:
            if each.number not in self._failed:
                self._failed.add(each.number)
                for listener in self._over:
                    listener(f"the condition of breakpoint {each.number} cannot be evaluated: {error}", False)
            return True  # stop, so that somebody sees it

    def _ends(self, plan: _Plan, threads: Threads, line: Line) -> bool:
        """Whether the thread that is followed has come to where its step ends."""
        if plan.grid_id != threads.launch.grid_id or plan.block != threads.block:
            return False
        if plan.thread // WARP != threads.running_warp or not threads.running >> plan.thread % WARP & 1:
            return False
        calls = threads.calls(plan.thread, line.instruction)
        code = threads.launch.code
        at = calls[0].location
        depth = len(calls)
        if plan.how == "finish":
            return depth < plan.depth
        if not line.begins:
            return False
        place = (code.file_of(at), code.line_of(at), code.function_of(at))
        if plan.how == "step":
            return place != plan.place or depth != plan.depth
        if depth < plan.depth:
            return True
        if plan.how == "next":
            return depth == plan.depth and place != plan.place
        return depth == plan.depth and place[0] == plan.place[0] and place[1] >= plan.line

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
            return _GO_ON
        threads.running_warp, threads.running = thread // WARP, 1 << thread % WARP
        self._plan, self._interrupted = None, False
        _driver.debug_interrupt(False)
        return self._tell(launch, threads, thread, "fault", (), instruction, text)

    def _launch_over(self, variant: Variant, grid_id: int) -> None:
        plan = self._plan
        was_followed = plan is not None and plan.grid_id == grid_id
        if was_followed:
            self._plan = None
        code = self._codes[id(variant)]
        name = code.function_of_kernel()
        for listener in self._over:
            listener(name, was_followed)


_STOPPED = 14  # CPU_FAULT_STOPPED


def _first(threads: Threads) -> int:
    lanes = threads.running
    return threads.running_warp * WARP + ((lanes & -lanes).bit_length() - 1 if lanes else 0)


def _see(watch: Watch, frame: Frame) -> None:
    assert watch._expression is not None
    try:
        value = watch._expression(frame)
        seen: object = python_value(value, frame)
        text = show(value, frame.read, frame.thread)
    except ExpressionError as error:
        seen, text = None, f"<{error}>"
    place = frame.launch.place_of(frame.thread)
    kernel = frame.code.function_of_kernel()
    made = Seen(kernel, frame.file, frame.line, frame.threads.block, place, seen, text)
    if len(watch.values) < _MOST_SEEN:
        watch.values.append(made)
    if watch._tell is not None:
        watch._tell(made)


def _file_and_line(where: str) -> tuple[str, int]:
    """The file and the line of ``"kernel.cu:12"`` or ``"12"``; no line for the name of a function."""
    match = re.fullmatch(r"(?:(.*[^:]):)?(\d+)", where)
    if match:
        return match[1] or "", int(match[2])
    if not re.fullmatch(r"[A-Za-z_$~][\w$~]*(::[\w$~]+)*(<.*>)?", where):
        raise DebuggerError(f"{where!r} is neither a function, nor a line, nor FILE:LINE")
    return "", 0


def dim3(index: int | Sequence[int]) -> Dim3:
    """An index with three parts."""
    x, y, z = (index, 0, 0) if isinstance(index, int) else (*index, 0, 0)[:3]
    return int(x), int(y), int(z)


def _dim3(index: int | Sequence[int] | None) -> Dim3 | None:
    return None if index is None else dim3(index)
