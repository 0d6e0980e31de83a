"""Source locations: ``.file``, ``.loc`` and the function names in ``.debug_str`` (PTX ISA 11.5).

With ``-lineinfo`` an instruction that was inlined says ``.loc 2 91 5, function_name $L__info_string0, inlined_at
1 8 5``: the third triple repeats an earlier ``.loc``, whose own ``inlined_at`` continues the chain up to the
kernel. NVRTC writes the file names and the strings behind the functions, so the parser reads the module's
directives first and the bodies last.
"""

from __future__ import annotations

import contextlib
import os

from cupola.cpu.compiler.ptx import ast
from cupola.cpu.compiler.ptx.cursor import Cursor, parse_integer

_DEEPEST_CHAIN = 64


def _as_compiled(file: str) -> str:
    """A file by the name that it was compiled under: NVRTC puts the current folder in front of relative ones."""
    with contextlib.suppress(OSError):  # the current folder may be gone
        return file.removeprefix(os.path.join(os.getcwd(), ""))
    return file


class Locations:
    """The files and strings of a module, and the source line that is current while a body is read."""

    def __init__(self) -> None:
        self.files: dict[int, str] = {}
        self.strings: dict[str, str] = {}
        self._enter: str | None = None
        self._current: tuple[str | None, int, int, str | None, ast.Location | None] = (None, 0, 0, None, None)
        self._seen: dict[tuple[int, int, int], tuple[ast.Location, int]] = {}

    def start(self, function: str) -> None:
        """Begin a function: nothing before it says anything about its lines."""
        self._enter = function
        self._current = (None, 0, 0, function, None)
        self._seen.clear()

    def at(self, ptx_line: int) -> ast.Location:
        """The location of an instruction on a line of the PTX."""
        return ast.Location(ptx_line, *self._current)

    def read_file(self, cursor: Cursor) -> None:
        """``.file 1 "kernel.cu"[, timestamp, size]``; the directive itself is already read."""
        number = cursor.integer("the number of a file")
        name = cursor.take()
        if len(name) < 2 or name[0] != '"' or name[-1] != '"':
            cursor.unexpected("a file name in quotes", cursor.index - 1)
        self.files[number] = _as_compiled(name[1:-1])
        while cursor.accept(","):
            cursor.integer()

    def read_loc(self, cursor: Cursor) -> None:
        """``.loc file line column[, function_name label[+offset], inlined_at file line column]``."""
        ptx_line = cursor.tokens.line(cursor.index)
        place = self._triple(cursor)
        function = self._enter
        inlined_at, depth = None, 0
        while cursor.accept(","):
            word = cursor.take()
            if word == "function_name":
                function = self._string(cursor)
            elif word == "inlined_at":
                caller = self._triple(cursor)
                inlined_at, depth = self._seen.get(caller) or (self._location(ptx_line, caller), 0)
            else:
                cursor.unexpected("'function_name' or 'inlined_at'", cursor.index - 1)
        if depth >= _DEEPEST_CHAIN:
            inlined_at, depth = None, 0
        file = self.files.get(place[0])
        self._current = (file, place[1], place[2], function, inlined_at)
        self._seen[place] = (ast.Location(ptx_line, *self._current), depth + 1)

    def _location(self, ptx_line: int, place: tuple[int, int, int]) -> ast.Location:
        return ast.Location(ptx_line, self.files.get(place[0]), place[1], place[2], self._enter)

    @staticmethod
    def _triple(cursor: Cursor) -> tuple[int, int, int]:
        return cursor.integer("a file number"), cursor.integer("a line"), cursor.integer("a column")

    def _string(self, cursor: Cursor) -> str | None:
        label = cursor.name("the label of a function's name")
        if cursor.accept("+"):
            cursor.integer()
        return self.strings.get(label)

    def read_section(self, cursor: Cursor) -> None:
        """``.section name { ... }``: only the strings of ``.debug_str`` are of use here."""
        section = cursor.take()
        cursor.expect("{")
        words = cursor.words
        index = cursor.index
        label = ""
        found: dict[str, bytearray] = {}
        depth = 1
        while depth:
            word = words[index]
            if word == "{":
                depth += 1
            elif word == "}":
                depth -= 1
            elif not word:
                cursor.unexpected("'}'", index)
            elif section == ".debug_str":
                if words[index + 1] == ":":
                    label = word
                    found[label] = bytearray()
                elif word[0].isdigit() and label:
                    value = parse_integer(word)
                    found[label].append((value or 0) & 255)
            index += 1
        cursor.index = index
        for name, text in found.items():
            self.strings[name] = text.partition(b"\0")[0].decode("utf-8", "replace")
