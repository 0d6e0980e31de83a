"""What kernels did, line by line: the records of all processes (`cupola.cpu.observed.counters`) added up."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from cupola.cli.coverage.model import Sources
from cupola.cpu.reports.names import readable

SECTOR = 32
"""Bytes of a sector, in which global memory is moved."""

WARP = 32


@dataclass(slots=True)
class Access:
    """What accesses of one kind did (the counters of ``engine/instruments/counters.c``).

    Attributes
    ----------
    global_requests, global_threads
        Warps, and their threads, that accessed global memory.
    sectors, least_sectors
        The sectors that they moved, and how many would have done for as many different places.
    shared_requests, shared_threads
        Warps, and their threads, that accessed shared memory.
    wavefronts, least_wavefronts
        How often the banks of shared memory were read or written, and how often would have done without conflicts.
    same
        Of atomic operations, the most threads of each warp that wanted one address, added up.
    global_bytes, shared_bytes
        What the threads wanted.
    """

    global_requests: int = 0
    global_threads: int = 0
    sectors: int = 0
    least_sectors: int = 0
    shared_requests: int = 0
    shared_threads: int = 0
    wavefronts: int = 0
    least_wavefronts: int = 0
    same: int = 0
    global_bytes: int = 0
    shared_bytes: int = 0

    def add(self, numbers: list[int]) -> None:
        """Add the numbers of a record."""
        for name, number in zip(Access.__slots__, numbers, strict=True):
            setattr(self, name, getattr(self, name) + number)

    def numbers(self) -> list[int]:
        """The numbers, in the order of the attributes."""
        return [getattr(self, name) for name in Access.__slots__]


@dataclass(slots=True)
class Counts:
    """What a line, or a whole kernel, did.

    Attributes
    ----------
    classes
        By class of instructions, how often warps ran one, and with how many threads.
    operations
        Floating-point operations.
    accesses
        By kind: load, store, atomic.
    branches, parted
        How often warps came to a branch, and how often their threads went different ways there.
    """

    classes: dict[str, list[int]] = field(default_factory=dict)
    operations: int = 0
    accesses: dict[str, Access] = field(default_factory=dict)
    branches: int = 0
    parted: int = 0

    def add(self, row: dict[str, Any]) -> None:
        """Add a row of a record, or what `dump` gives."""
        for name, (runs, threads) in row["classes"].items():
            counted = self.classes.setdefault(name, [0, 0])
            counted[0] += runs
            counted[1] += threads
        self.operations += row["operations"]
        for kind, numbers in row["accesses"].items():
            self.accesses.setdefault(kind, Access()).add(numbers)
        self.branches += row["branches"][0]
        self.parted += row["branches"][1]

    def dump(self) -> dict[str, Any]:
        """All of it in JSON's types, as `add` takes it."""
        return {
            "classes": self.classes,
            "operations": self.operations,
            "accesses": {kind: access.numbers() for kind, access in self.accesses.items()},
            "branches": [self.branches, self.parted],
        }

    @property
    def instructions(self) -> int:
        """How many instructions warps ran."""
        return sum(runs for runs, _ in self.classes.values())

    @property
    def threads(self) -> int:
        """How many instructions threads ran."""
        return sum(threads for _, threads in self.classes.values())

    @property
    def lanes(self) -> float:
        """How many of 32 threads ran an instruction together, on average."""
        return self.threads / self.instructions if self.instructions else 0.0

    @property
    def bytes(self) -> int:
        """Bytes of global memory that were moved, before any cache."""
        return SECTOR * sum(access.sectors for access in self.accesses.values())

    @property
    def intensity(self) -> float | None:
        """Floating-point operations for each byte; None if nothing was moved."""
        return self.operations / self.bytes if self.bytes else None


@dataclass(slots=True)
class Kernel:
    """A kernel that was launched in one configuration.

    Attributes
    ----------
    lines
        What its lines did, by the name of the source and the line there; that of code without a line is ("", 0).
    texts
        The text of each.
    """

    name: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    cluster: tuple[int, ...]
    dynamic_shared: int
    registers: int
    static_shared: int
    local_bytes: int
    launches: int = 0
    total: Counts = field(default_factory=Counts)
    lines: dict[tuple[str, int], Counts] = field(default_factory=dict)
    texts: dict[tuple[str, int], str] = field(default_factory=dict)

    @property
    def threads_of_block(self) -> int:
        """How many threads a block has."""
        x, y, z = self.block
        return x * y * z


class Profile(Sources):
    """Records of any number of processes, added up.

    Attributes
    ----------
    model : dict
        The limits of the modeled GPU.
    kernels : list of Kernel
        In the order in which they were first seen.
    """

    def __init__(self) -> None:
        super().__init__()
        self.model: dict[str, Any] = {}
        self._records: list[dict[str, Any]] = []

    def add(self, record: dict[str, Any]) -> None:
        """Add the record of a process."""
        super().add(record)
        self.model = record["model"]
        self._records += record["kernels"]

    @property
    def kernels(self) -> list[Kernel]:
        """The kernels by their configurations, the one with the most instructions first."""
        found: dict[tuple[Any, ...], Kernel] = {}
        for record in self._records:
            grid, block, cluster = (tuple(record[name]) for name in ("grid", "block", "cluster"))
            key = record["name"], record["source"], grid, block, cluster, record["dynamic_shared"]
            kernel = found.get(key)
            if kernel is None:
                limits = {name: record[name] for name in ("registers", "static_shared", "local_bytes")}
                kernel = Kernel(readable(record["name"]), grid, block, cluster, record["dynamic_shared"], **limits)
                found[key] = kernel
            kernel.launches += record["launches"]
            for row in record["rows"]:
                kernel.total.add(row)
                place, text = self._place(record["source"], row["at"])
                kernel.lines.setdefault(place, Counts()).add(row)
                kernel.texts[place] = text
        return sorted(found.values(), key=lambda kernel: -kernel.total.instructions)

    def _place(self, source: str, at: list[tuple[str, int, str]]) -> tuple[tuple[str, int], str]:
        """The innermost place that is in the program's own sources, and its text."""
        for name, line, function in at:
            file = self.file(source, name, function)
            if file is not None and 0 < line <= len(file.text):
                place = file.place(line)
                label = file.name.rpartition(":")[0] if file.pieces and ":" in file.name else file.name
                return (label, file.shown(line) if place else line), file.text[line - 1].strip()
        return ("", 0), ""
