"""Reading commands: from a terminal with a history and completion, or from a pipe."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
from collections.abc import Iterable
from typing import TextIO

from ..session import Debugger
from ..state import BUILTIN
from .infos import INFOS
from .screen import Screen
from .words import ALIASES

_HISTORY = "~/.cache/cupola/debug-history"


class Reading(Screen):
    """Commands come from here: those that were given first, then those that are read."""

    prompt = "(cupola) "

    def __init__(
        self,
        debugger: Debugger,
        commands: Iterable[str] = (),
        stdin: TextIO | None = None,
        stdout: TextIO | None = None,
    ) -> None:
        super().__init__(debugger, stdout)
        self.stdin = stdin or sys.stdin
        self.use_rawinput = stdin is None and sys.stdin.isatty()
        self.waiting = list(commands)
        self._history_read = False

    def read(self) -> str:
        """The next command."""
        if self.waiting:
            line = self.waiting.pop(0)
            self.say(f"{self.prompt}{line}")
            return line
        try:
            if self.use_rawinput:
                self._start_history()
                return input(self.prompt)
            self.stdout.write(self.prompt)
            self.stdout.flush()
            line = self.stdin.readline()
        except EOFError:
            line = ""
        except KeyboardInterrupt:
            self.say()
            return "#"
        if not line:
            self.say()
            return "quit"
        return line.rstrip("\n")

    def _commands(self) -> list[str]:
        return [name[3:] for name in dir(self) if name.startswith("do_")]

    def _start_history(self) -> None:
        if self._history_read:
            return
        self._history_read = True
        try:
            import readline
        except ImportError:  # a Python without it
            return
        readline.set_completer(self.completed)
        readline.parse_and_bind("tab: complete")
        readline.set_completer_delims(" \t\n()[]+-*/=<>!&|,.")
        path = os.path.expanduser(_HISTORY)
        with contextlib.suppress(OSError):
            readline.read_history_file(path)
        atexit.register(self.save_history)

    def save_history(self) -> None:
        """Keep what was typed for the next time."""
        if not self._history_read:
            return
        import readline

        path = os.path.expanduser(_HISTORY)
        with contextlib.suppress(OSError):
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
            readline.set_history_length(1000)
            readline.write_history_file(path)

    def completed(self, text: str, state: int) -> str | None:
        """What a word may go on with: a command, a variable, a function or a file."""
        if state == 0:
            try:
                import readline

                line, begin = readline.get_line_buffer(), readline.get_begidx()
            except ImportError:
                line, begin = text, 0
            self._matches = self.candidates(text, line, begin)
        return self._matches[state] if state < len(self._matches) else None

    def candidates(self, text: str, line: str, begin: int) -> list[str]:
        """The words that begin with a text, for the place in a line where it stands."""
        if not line[:begin].strip():
            words: Iterable[str] = self._commands()
        else:
            command = ALIASES.get(line.split()[0], line.split()[0])
            words = []
            if command in ("break", "tbreak", "watch"):
                for code in self.debugger._codes_now():
                    words += [*code.functions(), *(f"{os.path.basename(file)}:" for file in code.files())]
            elif command == "info":
                words = sorted(INFOS)
            elif command == "help":
                words = self._commands()
            else:
                frame = self.current()
                if frame is not None:
                    words = [v.name for v in frame.declared()] + list(BUILTIN)
                    words += frame.registers() if text.startswith("%") else []
        return sorted({word for word in words if word.startswith(text)})
