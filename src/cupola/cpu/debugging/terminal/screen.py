"""What a terminal shows of a kernel that is stopped, and what it looks at."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Sequence
from typing import TextIO

from ..points import DebuggerError, Seen
from ..session import Debugger
from ..sources import line_of
from ..state import Frame
from ..stop import Stop
from ..values import ExpressionError
from .words import Usage, format_of, index, watched

_MOST_ROWS = 2000
_MORE = "... (the rest is not shown)"


class Screen:
    """Where answers go, and the thread and function that commands are about.

    Parameters
    ----------
    debugger
        The debugger.
    stdout
        Where answers go; None for that of the process.
    """

    def __init__(self, debugger: Debugger, stdout: TextIO | None = None) -> None:
        self.stdout = stdout or sys.stdout
        self.debugger = debugger
        self.stop: Stop | None = None
        self.frame = 0
        self.file = ""
        self.listed, self.listed_file = 0, ""
        self.displays: list[str] = []
        self.quitting = False
        self.leave: Callable[[], object] | None = None
        """Ends the process on ``quit`` where a kernel is stopped; None: the kernel is ended."""

    # --- what the debugger tells -------------------------------------------------------------------------------------

    def say(self, text: str = "") -> None:
        """Write a line."""
        with contextlib.suppress(BrokenPipeError):
            self.stdout.write(text + "\n")
            self.stdout.flush()

    def seen(self, seen: Seen) -> None:
        """A watch has seen a value."""
        self.say(watched(seen))

    def show_stop(self) -> None:
        """Say where the thread is, and why it has stopped."""
        stop = self.stop
        assert stop is not None
        if stop.reason == "fault":
            self.say("*** The kernel has failed:")
            self.say(stop.explanation)
            self.say("(it cannot go on; its variables can be looked at)")
        elif stop.reason == "brkpt":
            self.say("__brkpt() in the kernel")
        elif stop.reason == "interrupt":
            self.say("interrupted")
        for each in stop.breakpoints:
            self.say(str(each))
        if stop.reason == "breakpoint" and stop.explanation:
            self.say(f"*** {stop.explanation}")
        self.show_place()

    def show_place(self) -> None:
        """The line of the frame that is looked at."""
        frame = self.current()
        if frame is None:
            assert self.stop is not None
            self.say(f"thread {self._who()} has {self.stop.status()}")
            return
        self.file = frame.file
        self.say(f"> {frame.file}:{frame.line} in {frame.function}, {self._who()}{self._with()}")
        text = line_of(frame.code, frame.file, frame.line)
        if text:
            self.say(f"-> {text}")

    def _who(self) -> str:
        stop = self.stop
        assert stop is not None
        return f"block {index(stop.block)} thread {index(stop.thread)}"

    def _with(self) -> str:
        stop = self.stop
        assert stop is not None
        count = len(stop.lanes) - 1
        return f" and {count} more of its warp" if count > 0 and stop.thread_number in stop.lanes else ""

    # --- what is looked at -------------------------------------------------------------------------------------------

    def _require(self) -> Stop:
        if self.stop is None:
            raise Usage("no kernel is stopped: set a breakpoint, and continue")
        return self.stop

    def current(self) -> Frame | None:
        """The frame that is looked at; None if there is none."""
        if self.stop is None:
            return None
        frames = self.stop._frames()
        return frames[min(self.frame, len(frames) - 1)] if frames else None

    def _frame(self) -> Frame:
        stop = self._require()
        frame = self.current()
        if frame is None:
            raise Usage(f"the thread has {stop.status()}: there is nothing to look at")
        return frame

    def _show(self, expression: str, base: str = "", thread: int | None = None) -> str:
        stop = self._require()
        self._frame()
        return stop.show(expression, thread, self.frame, base)

    def _display(self, expression: str) -> None:
        base, text = format_of(expression)
        self.say(f"{text} = {self._show(text, base)}")

    def _table(self, rows: Sequence[Sequence[str]]) -> None:
        if not rows:
            self.say("There are none.")
            return
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        for number, row in enumerate(rows):
            if number == _MOST_ROWS:
                self.say(_MORE)
                return
            cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
            self.say("  ".join(cells).rstrip())

    def _guarded(self, action: Callable[[], object]) -> object:
        try:
            return action()
        except (ExpressionError, DebuggerError, Usage) as error:
            self.say(f"*** {error}")
        except Exception as error:  # a defect of the debugger must not end the program that is debugged
            self.say(f"*** the debugger failed: {type(error).__name__}: {error}")
        return False
