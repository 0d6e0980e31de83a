"""The text of a line of CUDA C++, and where it stands in a program in Python that has the source as a string.

The driver keeps the texts that NVRTC gets (driver/module/observed.c); other sources are files.
"""

from __future__ import annotations

import ast
import functools
import linecache
import os
import sys
import tempfile
from collections.abc import Iterator
from typing import NamedTuple

from cupola.cpu import _driver
from cupola.cpu.observed.sources import digest_of, own_files

_LARGEST = 1 << 24


class Text(NamedTuple):
    """The text of a line, without the spaces around it, and its place in Python, ``"file:line"``; empty: not known."""

    text: str = ""
    python: str = ""

    def __str__(self) -> str:
        return f"{self.python}: {self.text}" if self.python else self.text


def source_of(file: str, ptx: str) -> str | None:
    """The source that a line of PTX names, if it is a text that NVRTC got.

    Parameters
    ----------
    file
        Its name.
    ptx
        The module; "" where it is not known.
    """
    digest = digest_of(ptx)
    text = _driver.source_text(file, digest)
    if text is None and os.path.basename(file) != file and not os.path.isfile(file):
        text = _driver.source_text(os.path.basename(file), digest)
        if text is None and digest and os.path.dirname(file) == tempfile.gettempdir():  # of another run (SourceFile)
            text = _driver.source_text("", digest)
    return text


def text_of(file: str | None, line: int, ptx: str, launched: str | None = None) -> Text:
    """The text of a line of a source.

    Parameters
    ----------
    file, line
        As the PTX names them.
    ptx
        The module; "" where it is not known.
    launched
        The file of Python that launched, which is looked at first.
    """
    if file is None:
        return Text()
    source = source_of(file, ptx)
    if source is None:
        if not os.path.isfile(file) or os.path.getsize(file) > _LARGEST:
            return Text()
        return Text(linecache.getline(file, line).strip())
    lines = source.splitlines()
    text = lines[line - 1].strip() if 0 < line <= len(lines) else ""
    # Whether the program has read it from a file.
    is_read = os.path.isfile(file) and os.path.dirname(file) != tempfile.gettempdir()
    return Text(text, (_place(source, line, launched) or "") if text and not is_read else "")


@functools.lru_cache(maxsize=256)
def _place(source: str, line: int, launched: str | None) -> str | None:
    """Where a line of a source stands in the program, as ``"file:line"``."""
    wanted = source.splitlines()[line - 1].strip()
    for path in _files(launched):
        lines = linecache.getlines(path)
        if any(wanted in each for each in lines):
            number = _line_in(lines, source, line, wanted)
            if number:
                return f"{path}:{number}"
    return None


def _files(launched: str | None) -> Iterator[str]:
    """The files of the program, that which launched first, and what is a text in memory, such as a notebook's cells."""
    main = getattr(sys.modules.get("__main__"), "__file__", None)
    cells = [name for name in list(linecache.cache) if name.startswith("<ipython") or "ipykernel_" in name]
    yield from dict.fromkeys(path for path in [launched, main, *cells, *own_files()] if path)


def _line_in(lines: list[str], source: str, line: int, wanted: str) -> int:
    """The number of a source's line in a file of Python, or 0."""
    try:
        tree = ast.parse("".join(lines))
    except (SyntaxError, ValueError):
        return 0
    parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    best = (0, 0)  # how much of the source a string is, and the line
    guess = 0
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant | ast.JoinedStr) or id(node) in parts:
            continue
        begin, end = node.lineno, node.end_lineno or node.lineno
        there = [number for number in range(begin, end + 1) if wanted in lines[number - 1]]
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and wanted in node.value:
            at = source.find(node.value)
            first = source.count("\n", 0, at) + 1
            ends = node.value.count("\n")
            if at >= 0 and first <= line <= first + ends and len(node.value) > best[0]:
                straight = ends == end - begin  # else ends of lines are written otherwise, or parts are joined
                number = begin + line - first if straight else there[0] if len(there) == 1 else begin
                best = (len(node.value), number)
                continue
        if len(there) == 1 and _is_template(lines[begin - 1 : end], source):
            guess = there[0] if not guess else -1  # not if there are several
    return best[1] or max(guess, 0)


def _is_template(lines: list[str], source: str) -> bool:
    """Whether a source may be made of a string with these lines, most of which it has as they are."""
    stripped = [line.strip() for line in lines[1:-1] if line.strip()]
    known = {line.strip() for line in source.splitlines()}
    return len(stripped) > 1 and sum(line in known for line in stripped) * 2 >= len(stripped)
