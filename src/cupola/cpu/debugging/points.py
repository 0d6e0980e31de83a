"""Where threads stop, and what is watched: breakpoints, watches, and the places that they name."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from cupola.cpu.compiler.emit.instruments.debug import Line

from .code import Code
from .expressions import Expression
from .objects import python_value
from .state import WARP, Dim3, Frame, Threads
from .values import ExpressionError, show

_MOST_SEEN = 100_000


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
    _problem: str = field(default="", init=False, repr=False)

    def __post_init__(self) -> None:
        self._file, self._line = file_and_line(self.where)
        if self.condition:
            self._test = Expression(self.condition)

    def _arm(self, code: Code) -> list[Line]:
        """Where it is in the code of a kernel."""
        lines = code.at_line(self._file, self._line) if self._line else code.at_function(self.where)
        for line in lines:
            at = line.instruction.location
            place = f"{code.file_of(at)}:{code.line_of(at)} in {code.function_of(at)}"
            if place not in self.places:
                self.places.append(place)
        return lines

    def _hit_by(self, threads: Threads, number: int) -> int | None:
        """The first thread of those that come to a line for which it is meant; a watch looks at all of them."""
        if not self.enabled or (self.block is not None and self.block != threads.block):
            return None
        launch = threads.launch
        for lane in range(WARP):
            if not threads.running >> lane & 1:
                continue
            thread = threads.running_warp * WARP + lane
            if self.thread is not None and self.thread != launch.place_of(thread):
                continue
            # Of a function that is all in one line, what copies the parameters is further up in that line.
            if self._line and launch.code.goes_on(partial(threads.before, thread), number):
                continue
            if self._test is None and self._watch is None:
                return thread
            calls = threads.calls(thread)
            if not calls:
                continue
            frame = Frame(threads, thread, calls[0])
            if self._watch is not None:
                self._watch._see(frame)
            elif self._holds(frame):
                return thread
        return None

    def _holds(self, frame: Frame) -> bool:
        assert self._test is not None
        try:
            return self._test.holds(frame)
        except ExpressionError as error:
            self._problem = f"the condition of breakpoint {self.number} cannot be evaluated: {error}"
            return True  # stop, so that somebody sees it

    def __str__(self) -> str:
        what = f"breakpoint {self.number}" if self._watch is None else f"the watch of {self._watch.expression}"
        parts = [f"{what} at {self.where}"]
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
    _tell: Callable[[Seen], object] | None = field(default=None, init=False, repr=False)
    _evaluated: Expression = field(init=False, repr=False)
    _failed: set[str] = field(default_factory=set, init=False, repr=False)

    def __post_init__(self) -> None:
        self._evaluated = Expression(self.expression)

    def _see(self, frame: Frame) -> None:
        is_new = True
        try:
            value = self._evaluated(frame)
            seen: object = python_value(value, frame)
            text = show(value, frame.read, frame.thread)
        except ExpressionError as error:
            seen, text = None, f"<{error}>"
            is_new = text not in self._failed  # what is wrong is often the same for all threads
            self._failed.add(text)
        place = frame.launch.place_of(frame.thread)
        kernel = frame.code.function_of_kernel()
        made = Seen(kernel, frame.file, frame.line, frame.threads.block, place, seen, text)
        if len(self.values) < _MOST_SEEN:
            self.values.append(made)
        if self._tell is not None and is_new:
            self._tell(made)


def make_watch(where: str, expression: str | None = None) -> tuple[Watch, Breakpoint]:
    """A watch, with the breakpoint at which it looks.

    Parameters
    ----------
    where
        The line, or both, as in ``kernel.cu:12:x[i]``.
    expression
        The expression; None when `where` has it.

    Raises
    ------
    DebuggerError, ExpressionError
        When one of them cannot be read.
    """
    if expression is None:
        parts = re.match(r"((?:[^:]|::)+:\d+|\d+|[\w:]*\w):([^:].*)", where, re.DOTALL)
        if parts is None:
            raise DebuggerError(f"{where!r} is not FILE:LINE:EXPRESSION, such as kernel.cu:12:x[i]")
        where, expression = parts[1], parts[2]
    made, hidden = Watch(where, expression.strip()), Breakpoint(0, where)
    hidden._watch = made
    return made, hidden


def file_and_line(where: str) -> tuple[str, int]:
    """The file and the line of ``"kernel.cu:12"`` or ``"12"``; no line for the name of a function."""
    match = re.fullmatch(r"(?:(.*[^:]):)?(\d+)", where)
    if match:
        if not int(match[2]):
            raise DebuggerError(f"{where!r} is no line: they count from 1")
        return match[1] or "", int(match[2])
    if not re.fullmatch(r"[A-Za-z_$~][\w$~]*(::[\w$~]+)*(<.*>)?", where):
        raise DebuggerError(f"{where!r} is neither a function, nor a line, nor FILE:LINE")
    return "", 0


def dim3(index: int | Sequence[int]) -> Dim3:
    """An index with three parts."""
    x, y, z = (index, 0, 0) if isinstance(index, int) else (*index, 0, 0)[:3]
    return int(x), int(y), int(z)


def dim3_or_none(index: int | Sequence[int] | None) -> Dim3 | None:
    return None if index is None else dim3(index)
