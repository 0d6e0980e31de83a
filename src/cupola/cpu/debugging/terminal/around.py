"""Commands about where the thread is: functions, threads and the source."""

from __future__ import annotations

from ..sources import line_of, lines_of, python_line
from .screen import Screen
from .words import Usage, numbers

_ROWS = 11


class Around(Screen):
    """Where it is."""

    def do_where(self, argument: str) -> None:
        """where

        The functions that the thread is in, the innermost first, and the line of Python that launched the kernel."""
        stop = self._require()
        frames = stop._frames()
        if not frames:
            self.say(f"the thread has {stop.status()}")
        for number, frame in enumerate(frames):
            mark = ">" if number == self.frame else " "
            text = line_of(frame.code, frame.file, frame.line)
            self.say(
                f"{mark} #{number} {frame.function} at {frame.file}:{frame.line}" + (f"    {text}" if text else "")
            )
        if stop.launched:
            file, line = stop.launched
            self.say(f"  launched at {file}:{line}    {python_line(file, line)}".rstrip())

    def _move(self, by: int) -> None:
        frames = self._require()._frames()
        if not 0 <= self.frame + by < len(frames):
            raise Usage("that is the innermost function" if by < 0 else "that is the kernel")
        self.frame += by
        self.listed = 0
        self.show_place()

    def do_up(self, argument: str) -> None:
        """up

        Look at the function that has called this one."""
        self._move(1)

    def do_down(self, argument: str) -> None:
        """down

        Look at the function that this one has called."""
        self._move(-1)

    def do_thread(self, argument: str) -> None:
        """thread [N | x,y,z]

        Look at another thread of the block; without a number, say which one this is."""
        stop = self._require()
        if argument:
            chosen = numbers(argument)
            stop.select(chosen[0] if len(chosen) == 1 else chosen)
            self.frame = self.listed = 0
        self.say(f"thread {stop.thread_number}, {stop.status()}")
        self.show_place()

    def do_list(self, argument: str) -> None:
        """list [LINE | FUNCTION | .]

        Lines of the source: around this one, then those behind; or around LINE, or a function."""
        frame = self._frame()
        code, file, line = frame.code, frame.file, frame.line
        if argument and not argument.isdecimal() and argument != ".":
            found = code.at_function(argument)
            if not found:
                raise Usage(f"there is no function {argument!r} in this kernel")
            at = found[0].instruction.location
            file, line = code.file_of(at), code.line_of(at)
        elif argument.isdecimal():
            line = int(argument)
        lines = lines_of(code, file)
        if not lines:
            raise Usage(
                f"the text of {file} is not known: no such file is here. If the program was moved since its kernels "
                "were compiled, compile them again (for Triton: TRITON_ALWAYS_COMPILE=1)"
            )
        goes_on = not argument and self.listed and file == self.listed_file
        first = self.listed + 1 if goes_on else max(1, line - _ROWS // 2)
        last = min(len(lines), first + _ROWS - 1)
        if first > len(lines):
            raise Usage("that is the end of the file")
        begins = [each.instruction.location for each in code.lines.values() if each.begins]
        stops = {at.line for at in begins if at.line and code.file_of(at) == file}
        marked = set()
        for place in (place for each in self.debugger.breakpoints for place in each.places):
            where, _, marked_line = place.rpartition(" in ")[0].rpartition(":")
            marked |= {int(marked_line)} if where == file else set()
        for number in range(first, last + 1):
            arrow = "->" if (file, number) == (frame.file, frame.line) else "  "
            point = "B" if number in marked else "." if number in stops else " "
            self.say(f"{number:4d} {point}{arrow} {lines[number - 1]}".rstrip())
        self.listed, self.listed_file = last, file
