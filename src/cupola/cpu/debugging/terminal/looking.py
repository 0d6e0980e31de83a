"""Commands that show values."""

from __future__ import annotations

import re

from ..state import WARP
from ..values import ExpressionError, pointed
from .infos import Infos
from .words import Usage, format_of, index, parts, product

_UNKNOWN = "?"
"""The value of an expression that a thread does not have."""


class Looking(Infos):
    """What there is."""

    def do_print(self, argument: str) -> None:
        """print[/x|/b|/o|/d] EXPRESSION

        The value of an expression of C++: variables, members, x[i], *p, slices x[0:8], casts, arithmetic, threadIdx
        and the like, registers such as %r1. /x writes whole numbers in base 16."""
        base, expression = format_of(argument)
        self.say(self._show(expression, base))

    def do_display(self, argument: str) -> None:
        """display [EXPRESSION]

        Print an expression at each stop; without one, print those that there are."""
        if argument:
            self.displays.append(argument)
        for expression in [argument] if argument else self.displays:
            self._display(expression)

    def do_undisplay(self, argument: str) -> None:
        """undisplay [EXPRESSION]

        Do not print it any more; without one, none."""
        if argument and argument not in self.displays:
            raise Usage(f"{argument!r} is not displayed")
        self.displays = [each for each in self.displays if argument and each != argument]

    def do_ptype(self, argument: str) -> None:
        """ptype EXPRESSION

        The type of an expression, with its members."""
        stop = self._require()
        try:
            kind = stop._value(argument, frame=self.frame)[0].type
        except ExpressionError:
            named = self._frame().type_named(argument)
            if named is None:
                raise
            kind = named
        self.say(f"{kind.name}, {kind.size} bytes")
        for each in kind.members:
            bits = f" : {each.bits}" if each.bits else ""
            self.say(f"    {each.type.name} {each.name}{bits};  // at {each.offset}")

    def do_lanes(self, argument: str) -> None:
        """lanes[/x] [EXPRESSION ...]

        Expressions, separated by commas, for all threads of the warp side by side; without any, where they are. A star
        is in front of threads that are stopped here together."""
        stop = self._require()
        base, text = format_of(argument)
        expressions = [part.strip() for part in parts(text)] if text else []
        first = stop.thread_number // WARP * WARP
        last = min(first + WARP, product(stop.block_dim))
        rows = [["", "thread", *(expressions or ["line", "status"])]]
        here = set(stop.lanes)
        for thread in range(first, last):
            mark = ">" if thread == stop.thread_number else "*" if thread in here else ""
            cells = [mark, index(stop._launch.place_of(thread))]
            if expressions:
                cells += [self._lane(thread, expression, base) for expression in expressions]
            else:
                frames = stop._frames(thread)
                cells += [f"{frames[0].line} {frames[0].function}" if frames else "", stop.status(thread)]
            rows.append(cells)
        for column, expression in enumerate(expressions, 2):
            if {row[column] for row in rows[1:]} == {_UNKNOWN}:
                stop.show(expression, frame=self.frame, base=base)  # says what is wrong
        self._table(rows)

    def _lane(self, thread: int, expression: str, base: str) -> str:
        stop = self._require()
        frames = stop._frames(thread)
        if not frames:
            return f"({stop.status(thread)})"
        try:
            return stop.show(expression, thread, min(self.frame, len(frames) - 1), base)
        except ExpressionError:
            return _UNKNOWN

    def do_x(self, argument: str) -> None:
        """x[/COUNT] EXPRESSION

        Bytes of memory from an address or a variable on."""
        stop = self._require()
        match = re.match(r"/(\d+)\s*(.*)", argument)
        count, expression = (int(match[1]), match[2]) if match else (64, argument)
        value, frame = stop._value(expression, frame=self.frame)
        if value.type.kind == "pointer" or value.place is None:
            place = pointed(int(value.number) & (1 << 64) - 1, frame.thread)
        else:
            place = value.place
        for offset in range(0, min(count, 4096), 16):
            size = min(16, count - offset)
            data = frame.read(place.at(offset), size)
            if data is None:
                raise ExpressionError(f"there is no memory of {size} bytes at {place.address + offset:#x}")
            text = "".join(chr(b) if 32 <= b < 127 else "." for b in data)
            self.say(f"{place.address + offset:#x}:  {data.hex(' ', 4):<36} {text}")

    def do_args(self, argument: str) -> None:
        """args

        The parameters of the function."""
        self._info_args(argument)
