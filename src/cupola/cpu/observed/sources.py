"""The texts of programs: which module was made of which, and where in files of Python they stand.

The driver keeps each text that NVRTC gets, in the folder of what is observed, under its digest
(driver/module/observed.c).
"""

from __future__ import annotations

import ast
import os
import re
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path

_COMMENT = "// cupola: the "
_MARK = re.compile(_COMMENT + r"(?:source|digest) is ([0-9a-f]{32})$", re.MULTILINE)

Piece = tuple[int, int, str, int]
"""A first line of a text, how many lines, and where they stand: a file of Python, and the first line there."""


def digest_of(ptx: str) -> str:
    """The digest of the text that PTX was compiled from, or "" when it came from elsewhere or from several."""
    at = ptx.rfind(_COMMENT)
    found = _MARK.match(ptx, at) if at >= 0 and ptx.find(_COMMENT) == at else None
    return found[1] if found else ""


def read(folder: str | Path, digest: str) -> dict[str, str]:
    """A program by its digest: the names and texts of it and of the headers that came with it, the program first."""
    try:
        data = (Path(folder) / f"source-{digest}").read_bytes()
    except FileNotFoundError:
        return {}
    found = {}
    while data:
        head, _, data = data.partition(b"\n")
        name, text = map(int, head.split())
        found[data[:name].decode(errors="replace")] = data[name + 1 : name + 1 + text].decode(errors="replace")
        data = data[name + text + 2 :]
    return found


def places(digests: Iterable[str], folder: str) -> dict[str, list[Piece]]:
    """Where texts stand in the Python files of this process's program, as far as they do."""
    known = set(digests)
    if "" in known:  # linked code, which may be of any of them
        names = (path.name.removeprefix("source-") for path in Path(folder).glob("source-*"))
        known.update(name for name in names if "." not in name)
    texts = {digest: next(iter(read(folder, digest).values()), "") for digest in known if digest}
    found: dict[str, list[Piece]] = {}
    if not texts:
        return found
    for path, line, value in _literals():
        for digest, text in texts.items():
            at = text.find(value)
            if at >= 0:
                first = text.count("\n", 0, at) + 1
                pieces = found.setdefault(digest, [])
                if (piece := (first, value.count("\n") + 1, path, line)) not in pieces:
                    pieces.append(piece)
    return found


def _literals() -> Iterator[tuple[str, int, str]]:
    """The strings of several lines in the program's own files, with the line where each begins.

    They stand there line by line: those with escaped ends of lines do not.
    """
    for path in own_files():
        try:
            text = Path(path).read_bytes()
            tree = ast.parse(text)
        except (OSError, SyntaxError, ValueError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                ends = node.value.count("\n")
                if 0 < ends == (node.end_lineno or 0) - node.lineno:
                    yield path, node.lineno, node.value


def own_files() -> Iterator[str]:
    """The files of the modules that are imported, without those of Python and of what is installed."""
    others = tuple({sysconfig.get_path(name) + os.sep for name in ("stdlib", "purelib", "platlib")})
    package = str(Path(__file__).resolve().parents[2]) + os.sep
    # The main program has lost its __file__ when Python ends.
    for path in [sys.argv[0], *(getattr(module, "__file__", None) for module in list(sys.modules.values()))]:
        if isinstance(path, str) and path.endswith(".py"):
            path = os.path.abspath(path)
            if not path.startswith((package, *others)) and f"{os.sep}site-packages{os.sep}" not in path:
                yield path
