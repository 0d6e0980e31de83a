"""A kernel that a debugger can stop: its lines, functions, variables and registers."""

from __future__ import annotations

import bisect
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

from cupola.cpu.compiler.emit import bodies
from cupola.cpu.compiler.emit.control.body import Body
from cupola.cpu.compiler.emit.instruments.debug import Line, chain_of, lines_of
from cupola.cpu.compiler.emit.instruments.instrument import instructions_of
from cupola.cpu.compiler.emit.threads.registers import REGISTER_TYPE, Home
from cupola.cpu.compiler.emit.values.values import BITS
from cupola.cpu.compiler.modules import Variant
from cupola.cpu.compiler.passes.call_graph import CallGraph, calls
from cupola.cpu.compiler.passes.inline_calls import Inliner
from cupola.cpu.compiler.ptx import ast
from cupola.cpu.reports.names import of_tiles
from cupola.cpu.reports.texts import text_of

from . import dwarf


@dataclass(frozen=True, slots=True)
class Call:
    """A function that a thread is in.

    Attributes
    ----------
    location
        Where the thread is in it.
    suffix
        What the names of its registers and variables got when it was inlined in the kernel.
    outer
        How often it has been called since: of a recursive function only the last call has its variables.
    """

    location: ast.Location
    suffix: str
    outer: bool = False


def plain_name(symbol: str) -> str:
    """A function's name without what says its types: ``saxpy`` of ``_Z5saxpyPfi``, and of cuTile's names."""
    if tiles := of_tiles(symbol):
        return tiles
    match = re.match(r"_ZN?K?(?=\d)", symbol)
    if match is None:
        return symbol
    at, parts = match.end(), []
    while (number := re.match(r"\d+", symbol[at:])) is not None:
        begin = at + number.end()
        at = begin + int(number[0])
        parts.append(symbol[begin:at])
        if not symbol.startswith("_ZN"):
            break
    if parts[:1] == ["cudapy"]:  # numba puts this in front of the name of the module
        del parts[0]
    return "::".join(part for part in parts if part and not part.startswith("_GLOBAL__N_")) or symbol


class Code:
    """The code of a kernel for blocks of one shape.

    Parameters
    ----------
    variant
        Compiled for a debugger.

    Attributes
    ----------
    variant : Variant
    instructions : list of ast.Instruction
        By their numbers.
    lines : dict of int to Line
        Where threads can be stopped, by the number of the instruction.
    has_lines : bool
        Whether there are lines of a source; else those of the PTX.
    """

    def __init__(self, variant: Variant) -> None:
        self.variant = variant
        self.facts = variant.facts()
        self.instructions = instructions_of(self.facts)
        self.lines = lines_of(self.facts)
        self._calls: dict[int, list[Call]] = {}
        self._declared: dict[int, dict[str, dwarf.Variable]] = {}
        self.has_lines = any(instruction.location.line for instruction in self.instructions)

    @property
    def name(self) -> str:
        """The name of the kernel, as the PTX has it."""
        return self.variant.info.name

    def function_of_kernel(self) -> str:
        """The name of the kernel, as it is written."""
        return self.function_of(ast.Location(0, function=self.name))

    @property
    def is_debug(self) -> bool:
        """Whether the program was compiled with ``debug=True``."""
        return re.search(r"^\.target .*\bdebug\b", self.variant.module.text, re.MULTILINE) is not None

    @cached_property
    def info(self) -> dwarf.Info:
        """Variables and types; empty where nothing is known, and then `problem` says why."""
        try:
            return dwarf.read(self.variant.module.text)
        except dwarf.DwarfError as error:
            self.problem = str(error)
            return dwarf.Info()

    problem = ""

    @cached_property
    def homes(self) -> dict[str, Home]:
        """The registers, with their places in the frame of a warp."""
        body = Body(
            self.facts,
            independent=True,
            kinds=dict(self.facts.analysis.shapes),
            inexact={},
            first_site=0,
            instruments=[bodies.INSTRUMENTS[name] for name in self.variant.instruments],
        )
        return body.registers.homes

    def register_bytes(self, name: str) -> int:
        """How many bytes a register has; 0 for a predicate."""
        type = REGISTER_TYPE[self.facts.analysis.registers[name]]
        return 0 if type == "i1" else BITS[type] // 8

    # --- lines ------------------------------------------------------------------------------------------------------

    def file_of(self, location: ast.Location) -> str:
        """The file of a location; of the PTX where there is no other."""
        return location.file or self._ptx_file

    @cached_property
    def _ptx_file(self) -> str:
        """The PTX as a file: names of C++ and numba have all types in them."""
        return f"{self.function_of_kernel().partition('<')[0].rpartition('::')[2]}.ptx"

    def line_of(self, location: ast.Location) -> int:
        """The line of a location; of the PTX where there is no other.

        Compilers give some instructions no line: these belong to the one in front of them.
        """
        if location.line or not self.has_lines:
            return location.line if self.has_lines else location.ptx_line
        function = self.ptx_function(location.ptx_line)
        before = bisect.bisect_left(self._numbered, (location.ptx_line, 0)) - 1
        if before >= 0 and self.ptx_function(self._numbered[before][0]) == function:
            return self._numbered[before][1]
        return 0

    def _where(self, location: ast.Location) -> tuple[int, int]:
        return self.line_of(location), location.column

    @cached_property
    def _numbered(self) -> list[tuple[int, int]]:
        """Lines of the PTX that have one of the source, in order."""
        known = {i.location.ptx_line: i.location.line for i in self.instructions if i.location.line}
        return sorted(known.items())

    def function_of(self, location: ast.Location) -> str:
        """The name of the function at a location, as it is written."""
        symbol = location.function or self.name
        written = self._written.get(symbol)
        return written if written is not None and written != symbol else plain_name(symbol)

    @cached_property
    def _written(self) -> dict[str, str]:
        return {function.symbol: function.name for function in self.info.functions}

    @cached_property
    def _again(self) -> set[int]:
        """Lines that begin a second time further down, as the parts of one statement do."""
        found: dict[tuple[object, ...], list[Line]] = {}
        for line in self.lines.values():
            if line.begins:
                found.setdefault(self._place(line.instruction), []).append(line)
        again: set[int] = set()
        for lines in found.values():
            lines.sort(key=lambda line: line.instruction.location.ptx_line)
            again.update(line.number for line in lines[1:])
        return again

    def _place(self, instruction: ast.Instruction) -> tuple[object, ...]:
        at = instruction.location
        return at.file, at.line, at.function, chain_of(at)

    def goes_on(self, before: Callable[[], ast.Instruction | None], number: int) -> bool:
        """Whether a thread that comes to a line was in that line already, further up: it has not left it."""
        if number not in self._again:
            return False
        last, now = before(), self.instructions[number]
        if last is None or not self.has_lines or self._place(last) != self._place(now):
            return False
        return last.location.ptx_line < now.location.ptx_line

    def files(self) -> set[str]:
        """The files of its lines."""
        return {self.file_of(line.instruction.location) for line in self.lines.values()}

    def functions(self) -> dict[str, list[Line]]:
        """The lines of each function by its name, those of each copy of its code in order."""
        found: dict[str, list[Line]] = {}
        for line in self.lines.values():
            if line.begins:
                found.setdefault(self.function_of(line.instruction.location), []).append(line)
        return found

    def at_line(self, file: str, number: int) -> list[Line]:
        """Where a line of a file begins, or else the next one of the same function that has code.

        The file may be the program in Python that has the source as a string; the lines are then those of the program.
        """
        there = self._lines_in(lambda known, line: line if not file or is_same_file(known, file) else 0)
        if not there and file.endswith(".py"):
            there = self._lines_in(lambda known, line: self._line_in_python(known, line, file))
        exact = [line for lines in there.values() for line in lines.get(number, ())]
        if exact:
            return exact
        behind = [
            (min(line for line in lines if line > number), lines)
            for lines in there.values()
            if min(lines) < number < max(lines)
        ]
        if not behind:
            return []
        after, lines = min(behind, key=lambda each: each[0])
        return lines[after]

    def _lines_in(self, number_of: Callable[[str, int], int]) -> dict[str, dict[int, list[Line]]]:
        """The lines that have a number in some file, by function and that number; 0: it has none."""
        there: dict[str, dict[int, list[Line]]] = {}
        for line in self.lines.values():
            at = line.instruction.location
            if line.begins and (number := number_of(self.file_of(at), self.line_of(at))):
                there.setdefault(self.function_of(at), {}).setdefault(number, []).append(line)
        return there

    def _line_in_python(self, known: str, line: int, file: str) -> int:
        """Where a line of a source stands in a program in Python; 0: not there."""
        path, _, number = text_of(known, line, self.variant.module.text).python.rpartition(":")
        return int(number) if path and is_same_file(path, file) else 0

    def at_function(self, name: str) -> list[Line]:
        """Where a function begins, behind what copies its parameters."""
        names = self.functions()
        lines = [line for known, lines in names.items() if is_same_name(known, name) for line in lines]
        symbols = {line.instruction.location.function for line in self.lines.values()}
        if not lines and name in symbols:
            lines = [x for x in self.lines.values() if x.begins and x.instruction.location.function == name]
        copies: dict[tuple[int, ...], list[Line]] = {}
        for line in lines:
            copies.setdefault(chain_of(line.instruction.location), []).append(line)
        found = []
        for copy in copies.values():
            copy.sort(key=lambda line: line.instruction.location.ptx_line)
            head = copy[0].instruction.location
            is_head = self.is_debug and len(copy) > 1
            # A function may be all in one line: what copies its parameters is at column 0.
            behind = (x for x in copy if self._where(x.instruction.location) != self._where(head))
            found.append(next(behind, copy[0]) if is_head else copy[0])
        return found

    # --- calls ------------------------------------------------------------------------------------------------------

    @cached_property
    def _extents(self) -> list[tuple[int, int, str]]:
        """The lines of the PTX of each function of it that this kernel may run."""
        found = []
        for name, function in self._graph.functions.items():
            lines = [s.location.ptx_line for s in function.body or () if isinstance(s, ast.Instruction)]
            if lines:
                found.append((min(lines), max(lines), name))
        return found

    @cached_property
    def _graph(self) -> CallGraph:
        module = self.variant.module.parsed().module
        return CallGraph.of(module, module.functions[self.name])

    @cached_property
    def _inlined(self) -> dict[tuple[str, int], int]:
        """The number that a call got when it was inlined, by its function and line of PTX."""
        inliner = Inliner(self._graph)
        found = {}
        for name, function in self._graph.functions.items():
            inline = [call for call in calls(function) if inliner.callee(call) is not None]
            found.update({(name, call.location.ptx_line): n for n, call in enumerate(inline, 1)})
        return found

    def ptx_function(self, ptx_line: int) -> str:
        """The function of the PTX that has a line."""
        return next((name for first, last, name in self._extents if first <= ptx_line <= last), self.name)

    def inlined_at(self, instruction: ast.Instruction) -> list[Call]:
        """The functions that threads are in at an instruction, in a kernel where all of them are inlined."""
        known = self._calls.get(id(instruction))
        if known is None:
            known = self._calls[id(instruction)] = self.calls_at(instruction, ())
        return known

    def declared_at(self, ptx_line: int) -> dict[str, dwarf.Variable]:
        """The variables that can be named on a line of the PTX, the innermost of each name."""
        known = self._declared.get(ptx_line)
        if known is None:
            known = self._declared[ptx_line] = {}
            function = self.info.function_at(ptx_line)
            for scope in function.at(ptx_line) if function is not None else ():
                for variable in scope.variables:
                    known.setdefault(variable.name, variable)
        return known

    def calls_at(self, instruction: ast.Instruction, sites: tuple[int, ...]) -> list[Call]:
        """The functions that a thread is in, innermost first.

        Parameters
        ----------
        instruction
            Where it is.
        sites
            The numbers of the calls that it is in, innermost first, of functions that are not inlined.
        """
        found: list[Call] = []
        called = self.variant.call_sites
        seen: set[str] = set()
        location: ast.Location = instruction.location
        rest = list(sites)
        while True:
            found += self._chain(location, seen)
            if not rest or not 0 < rest[0] <= len(called):
                break
            location = called[rest.pop(0) - 1].location
        while len(found) > 1 and not self.line_of(found[0].location):
            del found[0]  # a function without lines, such as __brkpt()
        return found

    def _chain(self, location: ast.Location, seen: set[str]) -> Iterator[Call]:
        chain = [location]
        while chain[-1].inlined_at is not None:
            chain.append(chain[-1].inlined_at)
        functions = [self.ptx_function(each.ptx_line) for each in chain]
        suffix = ""
        base = functions[-1]
        for label, part in self.facts.analysis.function.parts.items():
            if part.name == base:
                suffix = label.removeprefix(".part")
        again = base in seen
        seen.add(base)
        suffixes = [suffix]
        for place in range(len(chain) - 1, 0, -1):
            if functions[place - 1] != functions[place]:
                number = self._inlined.get((functions[place], chain[place].ptx_line))
                suffix = f".i{number}{suffix}" if number is not None else suffix
            suffixes.append(suffix)
        for each, its in zip(chain, reversed(suffixes), strict=True):
            yield Call(each, its, again)


def is_same_file(known: str, given: str) -> bool:
    """Whether a file that was given, perhaps without its folders, is one that the code names."""
    known, given = os.path.normpath(known), os.path.normpath(given)
    while given.startswith("../"):
        given = given.removeprefix("../")
    return known == given or known.endswith("/" + given) or given.endswith("/" + known)


def is_same_name(known: str, given: str) -> bool:
    """Whether a function that was given, perhaps without namespace or template arguments, is meant by a name."""
    if known == given or known.endswith("::" + given):
        return True
    bare = known.partition("<")[0]
    return bare == given or bare.endswith("::" + given)
