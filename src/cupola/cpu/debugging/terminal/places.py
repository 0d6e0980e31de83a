"""Commands about where threads stop."""

from __future__ import annotations

import re

from ..points import Breakpoint
from .infos import Infos
from .words import Usage, numbers, places


class Places(Infos):
    """Where to stop."""

    def do_break(self, argument: str) -> None:
        """break [FUNCTION | FILE:LINE | LINE] [block N] [thread N] [if CONDITION]

        Stop threads where a function begins, or at a line; without a place, at this line. The condition is an
        expression of C++ over the variables there. Blocks and threads are numbers, or x,y,z. Without arguments and
        without a stop, the breakpoints are listed."""
        self._break(argument, temporary=False)

    def do_tbreak(self, argument: str) -> None:
        """tbreak ...

        As break, for one stop only."""
        self._break(argument, temporary=True)

    def _break(self, argument: str, *, temporary: bool) -> None:
        if not argument and self.stop is None:
            self._info_breakpoints()
            return
        place, _, condition = re.sub(r"(^|\s)if(\s|\()", "\0\\2", argument, count=1).partition("\0")
        words = place.replace(", ", ",").split()
        indices: dict[str, tuple[int, ...]] = {}
        for word in ("block", "thread"):
            if word in words:
                at = words.index(word)
                if at + 1 == len(words):
                    raise Usage(f"{word} needs a number, or x,y,z")
                indices[word] = numbers(words[at + 1])
                del words[at : at + 2]
        where = " ".join(words)
        if not where:
            frame = self._frame()
            where = f"{frame.file}:{frame.line}"
        elif where.isdecimal() and self.file:
            where = f"{self.file}:{where}"
        made = self.debugger.breakpoint(
            where,
            condition=condition.strip(),
            block=indices.get("block"),
            thread=indices.get("thread"),
            temporary=temporary,
        )
        self.say(f"{made}{places(made, bool(self.debugger._codes_now()))}")

    def do_watch(self, argument: str) -> None:
        """watch FILE:LINE:EXPRESSION

        Print an expression whenever threads come to a line, without stopping."""
        made = self.debugger.watch(argument, tell=self.seen)
        self.say(f"watching {made.expression} at {made.where}")

    def _chosen(self, argument: str) -> list[Breakpoint]:
        stops = [each for each in self.debugger.breakpoints if each.number]
        if not argument:
            return stops
        known = {each.number: each for each in stops}
        chosen = []
        for word in argument.replace(",", " ").split():
            if not word.isdecimal() or int(word) not in known:
                raise Usage(f"there is no breakpoint {word}: info breakpoints lists them")
            chosen.append(known[int(word)])
        return chosen

    def do_clear(self, argument: str) -> None:
        """clear [NUMBER ...]

        Delete breakpoints; without numbers, all of them."""
        for each in self._chosen(argument):
            self.debugger.delete(each)
            self.say(f"deleted {each}")

    def do_disable(self, argument: str) -> None:
        """disable [NUMBER ...]

        Do not stop at breakpoints until they are enabled."""
        for each in self._chosen(argument):
            each.enabled = False

    def do_enable(self, argument: str) -> None:
        """enable [NUMBER ...]

        Stop at breakpoints again."""
        for each in self._chosen(argument):
            each.enabled = True
