"""What ran, file by file: the records of all processes (`cupola.cpu.observed`) added up, with the texts."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cupola.cpu.observed import sources
from cupola.cpu.reports.names import readable

DEFAULT_NAME = "default_program"
"""What programs are called that have no name."""

_FOREIGN = ("/nvidia/", "/cuda/", "/cccl/", "/targets/", "/site-packages/")
"""In the paths of headers that are not the program's."""


@dataclass(slots=True)
class Count:
    """What threads did on a line.

    Attributes
    ----------
    runs
        How often warps ran it.
    threads
        With how many threads, in all.
    distinct
        How many threads have run it.
    launched
        How many threads there were.
    """

    runs: int = 0
    threads: int = 0
    distinct: int = 0
    launched: int = 0

    def add(self, numbers: Iterable[int]) -> None:
        """Add the numbers of another record."""
        runs, threads, distinct, launched = numbers
        self.runs += runs
        self.threads += threads
        self.distinct += distinct
        self.launched += launched

    @property
    def share(self) -> float:
        """The share of the threads that have run it."""
        return self.distinct / self.launched if self.launched else 0.0

    @property
    def lanes(self) -> float:
        """How many of a warp's 32 threads ran it together, on average."""
        return self.threads / self.runs if self.runs else 0.0


@dataclass(slots=True)
class Branch:
    """A branch: how often warps came there, and parted; for each way its line, 0 for an end, and its threads."""

    function: str
    number: int
    runs: int = 0
    parted: int = 0
    ways: list[tuple[int, int]] = field(default_factory=list)


@dataclass(slots=True)
class Barrier:
    """A barrier: how often warps came there, with how many threads, and how often without some of theirs."""

    function: str
    number: int
    runs: int = 0
    threads: int = 0
    apart: int = 0


@dataclass(slots=True)
class Line:
    """A line of a source: what was counted in each function that has it, the instances of a template among them."""

    functions: dict[str, Count] = field(default_factory=dict)
    branches: list[Branch] = field(default_factory=list)
    barriers: list[Barrier] = field(default_factory=list)

    @property
    def total(self) -> Count:
        """All functions together."""
        total = Count()
        for count in self.functions.values():
            total.add((count.runs, count.threads, count.distinct, count.launched))
        return total

    @property
    def ran(self) -> bool:
        """Whether any thread ran it."""
        return any(count.threads for count in self.functions.values())

    @property
    def idle(self) -> list[str]:
        """The functions in which no thread ran it, though one did in others."""
        return [name for name, count in self.functions.items() if not count.threads] if self.ran else []


@dataclass(slots=True)
class File:
    """A source.

    Attributes
    ----------
    name
        What it is called in reports.
    path
        Where it is, or None if its text is in no file.
    text
        Its lines.
    lines
        What was counted, by line number.
    pieces
        Where its lines stand in files of Python.
    """

    name: str
    path: str | None
    text: list[str]
    lines: dict[int, Line] = field(default_factory=dict)
    pieces: list[sources.Piece] = field(default_factory=list)

    def place(self, line: int) -> tuple[str, int] | None:
        """Where a line stands: a path, and the line there."""
        for first, count, path, at in self.pieces:
            if first <= line < first + count:
                return path, at + line - first
        return (self.path, line) if self.path is not None else None

    def shown(self, line: int) -> int:
        """The number by which reports call a line: where it stands in a file of Python, if it does."""
        place = self.place(line)
        return line if place is None else place[1]

    @property
    def missing(self) -> list[int]:
        """Lines that no thread ran."""
        return [number for number, line in sorted(self.lines.items()) if not line.ran]

    @property
    def ways(self) -> tuple[int, int]:
        """Ways of branches, and how many of them any thread took."""
        ways = [taken for line in self.lines.values() for branch in line.branches for _, taken in branch.ways]
        return len(ways), sum(taken > 0 for taken in ways)


class Sources:
    """The sources of programs.

    Attributes
    ----------
    texts : dict
        Of each source its names and texts.
    pieces : dict
        Of each source where it stands in files of Python.
    """

    def __init__(self) -> None:
        self.texts: dict[str, dict[str, str]] = {}
        self.pieces: dict[str, list[sources.Piece]] = {}
        self._files: dict[tuple[str, str], File | None] = {}

    def add(self, record: dict[str, Any]) -> None:
        """Add the record of a process."""
        for digest, pieces in record["texts"].items():
            self.pieces.setdefault(digest, [(a, b, c, d) for a, b, c, d in pieces])
        self.texts.update(record.get("sources", {}))

    def read_folder(self, folder: str | Path) -> None:
        """Add what processes have written to a folder."""
        for path in sorted(Path(folder).glob("part-*.json")):
            self.add(json.loads(path.read_text("utf-8")))
        for path in Path(folder).glob("source-*"):
            digest = path.name.removeprefix("source-")
            if "." not in digest:
                self.texts.setdefault(digest, sources.read(folder, digest))

    def file(self, source: str, name: str, function: str) -> File | None:
        """The source for a name in the table of files of some PTX; None if it is not the program's own.

        Linked code does not say which source it is from: that is then the one that has the name, and the function.
        """
        source = source or self._guess(name, function)
        if (source, name) not in self._files:
            self._files[source, name] = self._find(source, name)
        return self._files[source, name]

    def _guess(self, name: str, function: str) -> str:
        base = os.path.basename(name)
        found = [digest for digest, texts in self.texts.items() if base in map(os.path.basename, texts)]
        if len(found) > 1:
            plain = readable(function).partition("<")[0].rpartition("::")[2]
            found = [digest for digest in found if any(plain in text for text in self.texts[digest].values())]
        return found[0] if len(found) == 1 else ""

    def _find(self, source: str, name: str) -> File | None:
        texts = self.texts.get(source, {})
        main = next(iter(texts), None)
        short = next((own for own in texts if own == name or os.path.basename(own) == os.path.basename(name)), None)
        if short is None:
            if any(part in name for part in _FOREIGN) or not os.path.isfile(name):
                return None
            text = Path(name).read_text("utf-8", errors="replace")
        else:
            text = texts[short]
        path = os.path.abspath(name) if os.path.isfile(name) else None
        if path is not None and Path(path).read_text("utf-8", errors="replace") != text:
            path = None
        lines = text.splitlines()
        pieces = self.pieces.get(source, []) if short == main and path is None else []
        for file in self._files.values():  # the same file, in another program
            if file is not None and path is not None and file.path == path:
                return file
        return File(_name(name, path, pieces), path, lines, {}, pieces)


class Data(Sources):
    """Records of any number of processes and runs, added up.

    Attributes
    ----------
    tables : dict
        For ``lines``, ``branches`` and ``barriers`` the numbers by source, file, line, function (and number).
    """

    def __init__(self) -> None:
        super().__init__()
        self.tables: dict[str, dict[tuple[Any, ...], list[Any]]] = {"lines": {}, "branches": {}, "barriers": {}}

    def add(self, record: dict[str, Any]) -> None:
        """Add the record of a process, or of `dump`."""
        super().add(record)
        for kind, keys in (("lines", 4), ("branches", 5), ("barriers", 5)):
            table = self.tables[kind]
            for row in record[kind]:
                key, numbers = tuple(row[:keys]), row[keys:]
                if key not in table:
                    table[key] = numbers
                elif kind != "branches":
                    table[key] = [a + b for a, b in zip(table[key], numbers, strict=True)]
                else:
                    runs, parted, ways = table[key]
                    more = [[line, taken + other] for (line, taken), (_, other) in zip(ways, numbers[2], strict=False)]
                    table[key] = [runs + numbers[0], parted + numbers[1], more]

    def dump(self) -> dict[str, Any]:
        """All of it, in JSON's types, for `add`."""
        return {
            "texts": self.pieces,
            "sources": self.texts,
            **{kind: [[*key, *numbers] for key, numbers in table.items()] for kind, table in self.tables.items()},
        }

    def files(self) -> list[File]:
        """The program's own sources, by their names."""
        self._files.clear()

        def line_of(key: tuple[Any, ...]) -> Line | None:
            source, name, number, function = key[:4]
            file = self.file(source, name, function)
            return None if file is None else file.lines.setdefault(number, Line())

        for key, numbers in self.tables["lines"].items():
            if line := line_of(key):
                line.functions.setdefault(readable(key[3]), Count()).add(numbers)
        for key, (runs, parted, ways) in sorted(self.tables["branches"].items()):
            if line := line_of(key):
                line.branches.append(
                    Branch(readable(key[3]), key[4], runs, parted, [(to, taken) for to, taken in ways])
                )
        for key, numbers in sorted(self.tables["barriers"].items()):
            if line := line_of(key):
                line.barriers.append(Barrier(readable(key[3]), key[4], *numbers))
        files = {id(file): file for file in self._files.values() if file is not None}.values()
        _tell_apart(list(files))
        return sorted(files, key=lambda file: file.name)


def _name(name: str, path: str | None, pieces: list[sources.Piece]) -> str:
    if path is not None:
        return relative(path)
    base = os.path.basename(name)
    if pieces:
        first = min(pieces)
        place = f"{relative(first[2])}:{first[3]}"
        return place if base == DEFAULT_NAME else f"{place} ({base})"
    return base


def relative(path: str) -> str:
    """A path from the current folder, if it is in there."""
    short = os.path.relpath(path)
    return path if short.startswith("..") else short


def _tell_apart(files: list[File]) -> None:
    """Number the files that have one name."""
    names: dict[str, list[File]] = {}
    for file in files:
        names.setdefault(file.name, []).append(file)
    for name, several in names.items():
        for number, file in enumerate(several[1:], 2):
            file.name = f"{name} #{number}"


def placed(files: Iterable[File], folder: str) -> Iterator[tuple[str, dict[int, Line]]]:
    """The lines by the paths of files: texts in no file are written to a folder. Several may be in one file."""
    found: dict[str, dict[int, Line]] = {}
    for file in files:
        own = None
        for number, line in file.lines.items():
            place = file.place(number)
            if place is None:
                if own is None:
                    own = os.path.join(folder, _file_name(file.name))
                    os.makedirs(folder, exist_ok=True)
                    Path(own).write_text("\n".join(file.text) + "\n", "utf-8")
                place = own, number
            lines = found.setdefault(place[0], {})
            if place[1] in lines:  # programs of different names have one text
                _merge(lines[place[1]], line)
            else:
                lines[place[1]] = line
    yield from sorted(found.items())


def _merge(line: Line, other: Line) -> None:
    for name, count in other.functions.items():
        line.functions.setdefault(name, Count()).add((count.runs, count.threads, count.distinct, count.launched))
    known = {(branch.function, branch.number): branch for branch in line.branches}
    for branch in other.branches:
        same = known.get((branch.function, branch.number))
        if same is None:
            line.branches.append(branch)
            continue
        same.runs += branch.runs
        same.parted += branch.parted
        same.ways = [(to, taken + more) for (to, taken), (_, more) in zip(same.ways, branch.ways, strict=False)]


def _file_name(name: str) -> str:
    clean = "".join(c if c.isalnum() or c in "._-" else "_" for c in name)
    return clean if clean.endswith((".cu", ".cuh", ".h", ".hpp")) else clean + ".cu"
