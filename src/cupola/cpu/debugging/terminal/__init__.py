"""The debugger in a terminal: commands like those of pdb.

A file has the commands of one kind: `places` where to stop, `going` how to go on, `looking` and `infos` what there is,
`around` where it is. Each is a class on top of `screen`, and `Terminal` is all of them.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable
from functools import partial
from typing import TextIO

from ..session import Debugger
from ..stop import Stop
from ..values import ExpressionError
from .around import Around
from .going import Going
from .infos import INFOS
from .looking import Looking
from .places import Places
from .reading import Reading
from .words import ALIASES, ELSEWHERE, GROUPS, Usage, dedented, watched

__all__ = ["ALIASES", "GROUPS", "Terminal", "watched"]


class Terminal(Reading, Places, Going, Looking, Around):
    """Commands for a debugger, read from a terminal or a pipe.

    Parameters
    ----------
    debugger
        The debugger.
    commands
        What to do first, before anything is read.
    stdin, stdout
        Where commands come from, and where answers go; None for those of the process.
    """

    def __init__(
        self,
        debugger: Debugger,
        commands: Iterable[str] = (),
        stdin: TextIO | None = None,
        stdout: TextIO | None = None,
    ) -> None:
        super().__init__(debugger, commands, stdin, stdout)
        self.lastcmd = ""
        self._lock = threading.RLock()
        debugger.on_stop(self.stopped)
        debugger._ended.append(self.ended)

    # --- what the debugger tells -------------------------------------------------------------------------------------

    def stopped(self, stop: Stop) -> None:
        """A thread has stopped: read commands until one lets it go on."""
        if self.quitting:
            stop.end()
            return
        self.stop, self.frame, self.listed = stop, 0, 0
        try:
            self.show_stop()
            for expression in self.displays:
                self._guarded(partial(self._display, expression))
            self.talk()
        finally:
            self.stop = None

    def ended(self, kernel: str) -> None:
        """A launch is over, of which a thread was followed."""
        self.say(f"The thread has ended, and so has the kernel '{kernel}'.")

    # --- reading commands --------------------------------------------------------------------------------------------

    def talk(self) -> None:
        """Read commands until one goes on."""
        with self._lock:
            while True:
                line = self.read()
                if self.handled(line):
                    return

    def handled(self, line: str) -> bool:
        """Do what a line says; whether the thread goes on."""
        line = line.strip()
        if line.startswith("#"):
            return False
        if not line:
            line = self.lastcmd
            if not line:
                return False
        result = self._guarded(lambda: self.onecmd(line))
        return bool(result)

    def onecmd(self, line: str) -> bool:
        """Do a command; whether the thread goes on."""
        self.lastcmd = line
        match = re.match(r"([A-Za-z]+)(/\w+)?\s*(.*)", line, re.DOTALL)
        if match is None:
            if line[:1] in "0123456789(*&%'!~-":
                self.do_print(line)
                return False
            raise Usage(f"{line!r} is no command: try help")
        word = ALIASES.get(match[1], match[1])
        command = getattr(self, f"do_{word}", None)
        if command is None:
            candidates = sorted(n for n in self._commands() if n.startswith(match[1]))
            if len(candidates) == 1:
                word, command = candidates[0], getattr(self, f"do_{candidates[0]}")
            elif candidates:
                raise Usage(f"{match[1]!r} may be {', '.join(candidates)}")
            else:
                self._print_unless_elsewhere(line, match[1])
                return False
        rest = f"{match[2]} {match[3]}" if match[2] and word in ("print", "x", "lanes", "display") else match[3]
        if match[2] and word not in ("print", "x", "lanes", "display"):
            raise Usage(f"{word} takes no {match[2]}")
        return bool(command(rest.strip()))

    def _print_unless_elsewhere(self, line: str, word: str) -> None:
        """Print a variable by its name alone; there may be one with the name of another debugger's command."""
        advice = ELSEWHERE.get(word) or (f"'info {word}' says that" if word in INFOS else "")
        if self.stop is None:
            raise Usage(f"{word!r} is no command: {advice or 'try help'}")
        try:
            self.do_print(line)
        except ExpressionError:
            if not advice:
                raise
            raise Usage(f"{word!r} is no command: {advice}") from None

    # --- help --------------------------------------------------------------------------------------------------------

    def do_help(self, argument: str) -> None:
        """help [COMMAND]

        What a command does."""
        if argument:
            word = ALIASES.get(argument, argument)
            command = getattr(self, f"do_{word}", None)
            if command is None:
                raise Usage(f"{argument!r} is no command: try help")
            self.say(dedented(command.__doc__ or ""))
            short = sorted(alias for alias, name in ALIASES.items() if name == word)
            if short:
                self.say(f"Also: {', '.join(short)}")
            return
        for title, names in GROUPS.items():
            shown = []
            for name in names:
                brief = min((alias for alias, full in ALIASES.items() if full == name), key=len, default="")
                shown.append(f"{name} ({brief})" if brief else name)
            self.say(f"{title + ':':18} {', '.join(shown)}")
        self.say("help COMMAND tells more. An empty line repeats the last command; a variable's name prints it.")
