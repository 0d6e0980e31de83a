"""Counters of basic blocks to lines: which lines, branches and barriers ran, how often, and with how many threads."""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from cupola.cpu.compiler.emit.control.body import Facts
from cupola.cpu.compiler.emit.instruments import blocks
from cupola.cpu.compiler.emit.instruments.blocks import APART, DISTINCT, RUNS, THREADS
from cupola.cpu.compiler.errors import ImageError
from cupola.cpu.compiler.modules import Configuration, Counts, LoadedModule, Variant
from cupola.cpu.compiler.passes import Block
from cupola.cpu.compiler.ptx import ast

from . import sources

_Key = tuple[str, int, str]  # file, line, function
_Copy = tuple[tuple[str | None, int, int], ...]  # the calls through which it was inlined

NOT_RUN = (32, 1, 1)
"""The shape of blocks for which kernels are looked at that no launch has run."""


def collect(
    folder: str, loaded: Iterable[LoadedModule], counts: Iterable[tuple[Variant, dict[Configuration, Counts]]]
) -> dict[str, Any]:
    """What was counted, and what there was to run: a record that is made of JSON's types.

    It has ``texts``, the texts of programs that stand in files of Python (`sources.places`), by their digests, and
    ``lines``, ``branches`` and ``barriers``: lists that begin with source, file, line and function, where the
    source is a digest of the program's text or "", and the function a mangled name. Behind these have

    - lines: how often warps ran them, with how many threads in all, how many threads have run them, and how many there
      were in all launches of kernels that have the line;
    - branches: the number of the branch among those of the line in the function, how often warps came there, how often
      they parted, and for each of its ways the line where it goes (0: threads end), and how many threads went there;
    - barriers: likewise the number, how often warps came there, with how many threads, and how often without some
      of their threads.
    """
    tables = _Tables()
    ran = set()
    for variant, configurations in counts:
        if "blocks" not in variant.instruments:
            continue
        ran.add((variant.module.identity, variant.info.name))
        launched, sums = _add_up(variant, configurations)
        _Kernel(variant.module, variant.facts()).add_to(tables, launched, sums)
    for module in loaded:
        if module.is_lazy and not sources.digest_of(module.text):
            continue  # a library with more kernels than anybody launches
        for index, (name, _) in enumerate(module.entries):
            if (module.identity, name) not in ran:
                ran.add((module.identity, name))
                try:
                    facts = module.facts(index, NOT_RUN)
                except ImageError:
                    continue  # cannot run at all, which launching it would say
                _Kernel(module, facts).add_to(tables, 0, [0] * blocks.places(facts)[-1])
    return {
        "texts": sources.places({key[0] for key in tables.lines}, folder),
        "lines": [[*key, *numbers] for key, numbers in tables.lines.items()],
        "branches": [[*key, *numbers] for key, numbers in tables.branches.items()],
        "barriers": [[*key, *numbers] for key, numbers in tables.barriers.items()],
    }


def _add_up(variant: Variant, configurations: dict[Configuration, Counts]) -> tuple[int, list[int]]:
    """Threads that were launched, and the sums of the counters of the instrument over all launches."""
    launched = 0
    sums = [0] * (variant.counter_count)
    for configuration, counts in configurations.items():
        threads = counts.launches
        for extent in (*configuration.grid, *configuration.block):
            threads *= extent
        launched += threads
        for number, value in enumerate(struct.unpack(f"<{variant.counter_count}Q", counts.counters)):
            sums[number] += value
    return launched, sums


class _Tables:
    """Rows of a record by their keys."""

    def __init__(self) -> None:
        self.lines: dict[tuple[str, str, int, str], list[int]] = defaultdict(lambda: [0] * 4)
        self.branches: dict[tuple[str, str, int, str, int], list[Any]] = {}
        self.barriers: dict[tuple[str, str, int, str, int], list[int]] = defaultdict(lambda: [0] * 3)


class _Kernel:
    """One kernel, and what its blocks have counted.

    Code can be there several times: the compiler may have inlined a function at several calls, and the CPU device
    inlines, too. The former differ in their chain of calls, the latter are copies of one instruction of the PTX. All of
    them count together. Of a line that has several blocks, such as the head of a loop, the one with the most threads
    counts.
    """

    def __init__(self, module: LoadedModule, facts: Facts) -> None:
        self.source = sources.digest_of(module.text)
        self.facts = facts

    def add_to(self, tables: _Tables, launched: int, counters: list[int]) -> None:
        places = blocks.places(self.facts)
        lines: dict[_Key, dict[_Copy, dict[int, list[int]]]] = defaultdict(lambda: defaultdict(dict))
        branches: dict[_Key, dict[tuple[int, int], list[Any]]] = defaultdict(dict)
        barriers: dict[_Key, dict[tuple[int, int], list[int]]] = defaultdict(dict)
        for block in self.facts.analysis.blocks:
            counted = counters[places[block.index] : places[block.index + 1]]
            if block.returns_only:  # which nobody runs: its threads end on the way there
                if any(before.terminator and before.terminator.opcode == ".return" for before in block.predecessors):
                    continue
                ended = [_edge(counters, places, before, block) for before in block.predecessors]
                runs, threads = (sum(numbers) for numbers in zip((0, 0), *ended, strict=True))
                counted = [runs, threads, threads, 0]
            seen = set()
            for instruction in block.code():
                place = instruction.location
                key = _key(place)
                if key is None or (key, place.ptx_line) in seen:
                    continue
                seen.add((key, place.ptx_line))
                rows = lines[key][_copy(place)]
                _add(rows.setdefault(place.ptx_line, [0, 0, 0]), counted[:APART])
            end = block.terminator
            key = _key(end.location) if end is not None else None
            if end is None or key is None:
                continue
            order = (end.location.ptx_line, end.location.column)
            if blocks.is_branch(block):
                self._add_branch(branches[key], order, block, counted)
            if end.description.waits in ("block", "cluster") and end.description.suspends:
                _add(barriers[key].setdefault(order, [0, 0, 0]), [counted[RUNS], counted[THREADS], counted[APART]])
        for key, copies in lines.items():
            numbers = tables.lines[self.source, *key]
            best = [max(rows.values(), key=lambda row: row[THREADS]) for rows in copies.values()]
            _add(numbers, [sum(row[RUNS] for row in best), sum(row[THREADS] for row in best)])
            numbers[DISTINCT] += max(row[DISTINCT] for row in best)
            numbers[3] += launched
        for key, found in branches.items():
            for number, order in enumerate(sorted(found)):
                _merge_branch(tables.branches, (self.source, *key, number), found[order])
        for key, several in barriers.items():
            for number, order in enumerate(sorted(several)):
                _add(tables.barriers[self.source, *key, number], several[order])

    def _add_branch(
        self, found: dict[tuple[int, int], list[Any]], order: tuple[int, int], block: Block, counted: list[int]
    ) -> None:
        taken = counted[4:]
        ways = [[_line_of(target), taken[2 * way + 1]] for way, target in enumerate(_targets(block))]
        parted = max(0, sum(taken[::2]) - counted[RUNS])
        row = found.setdefault(order, [0, 0, [[line, 0] for line, _ in ways]])
        _merge_ways(row, [counted[RUNS], parted, ways])


def _edge(counters: list[int], places: list[int], block: Block, target: Block) -> tuple[int, int]:
    """How often warps went from a block to another one, and with how many threads."""
    at = places[block.index]
    if not blocks.is_branch(block):
        return counters[at + RUNS], counters[at + THREADS]
    runs = threads = 0
    for way, successor in enumerate(_targets(block)):
        if successor is target:
            runs += counters[at + 4 + 2 * way + RUNS]
            threads += counters[at + 4 + 2 * way + THREADS]
    return runs, threads


def _targets(block: Block) -> list[Block | None]:
    """Where the ways of a branch go; None where threads end."""
    end = block.terminator
    assert end is not None
    if end.opcode == "brx":
        return [*block.successors]
    return [block.successors[0] if end.opcode == "bra" else None, block.successors[-1]]


def _merge_branch(table: dict[Any, list[Any]], key: Any, row: list[Any]) -> None:
    if key not in table:
        table[key] = row
    else:
        _merge_ways(table[key], row)


def _merge_ways(row: list[Any], other: list[Any]) -> None:
    row[0] += other[0]
    row[1] += other[1]
    for way, more in zip(row[2], other[2], strict=False):
        way[1] += more[1]


def _add(to: list[int], numbers: Iterable[int]) -> None:
    for place, number in enumerate(numbers):
        to[place] += number


def _key(place: ast.Location) -> _Key | None:
    if not place.file or not place.line:
        return None
    return place.file, place.line, place.function or ""


def _chain(place: ast.Location) -> Iterator[tuple[str | None, int, int]]:
    at = place.inlined_at
    while at is not None:
        yield at.file, at.line, at.column
        at = at.inlined_at


def _copy(place: ast.Location) -> _Copy:
    return tuple(_chain(place))


def _line_of(block: Block | None) -> int:
    """The line where a block begins; that of the next one if it has none of its own. 0: its threads end."""
    for _ in range(8):
        if block is None:
            return 0
        for instruction in block.code():
            if instruction.location.line:
                return instruction.location.line
        block = block.successors[0] if block.successors else None
    return 0
