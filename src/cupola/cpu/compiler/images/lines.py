"""Lines of the source for the PTX that a cubin was made of.

ptxas leaves the ``.loc`` directives out of the PTX that it keeps in a cubin; where they stood are empty lines. What
they said is in two tables (DWARF 2, "Line Number Information"), from addresses of the machine code to lines of the
source and of the PTX. Together they say which line of the PTX is of which line of the source, and so the directives
are written into the empty lines again. Instructions without machine code belong to the line in front of them.

Besides DWARF's own, the table of the source has NVIDIA's extended opcode 0x90: an inlined function follows, called
from a row of the sequence, with the place of its name in ``.debug_str``.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Mapping

from cupola.cpu.compiler.records import dataclass

_INLINED = 0x90
_MOST_CALLERS = 64
_ADVANCE_PC, _ADVANCE_LINE, _SET_FILE = 2, 3, 4
_COPY, _CONST_ADD_PC, _FIXED_ADVANCE_PC = 1, 8, 9

_Address = tuple[int, int]
"""The symbol that an address is relative to, and how far it is from there."""


@dataclass(frozen=True, slots=True)
class _Place:
    """A line, the call through which it was inlined, the function that was, and how many such calls there are."""

    file: int
    line: int
    caller: _Place | None = None
    function: str = ""
    depth: int = 0


_Vote = tuple[_Place, _Place]
"""For a line of the PTX a place of one of its instructions, and where its function begins."""


def restore(text: str, sections: Mapping[bytes, bytes]) -> str:
    """The PTX of a cubin with its ``.loc`` directives; as it is, if nobody has said where it is from.

    Parameters
    ----------
    text
        The PTX; its lines keep their numbers.
    sections
        The sections of the cubin, by their names.
    """
    try:
        files, source = _rows(sections, b".debug_line")
        _, ptx = _rows(sections, b".nv_debug_line_sass")
    except (struct.error, IndexError, ValueError, OverflowError):
        return text  # a damaged table costs the lines, nothing else
    if not source or not ptx or "\n.loc" in text or "\n\t.loc" in text:
        return text
    addresses = dict(source)
    heads: dict[int, _Place] = {}  # where the machine code of each function begins
    for (symbol, _), at in source:
        heads.setdefault(symbol, at)
    votes: dict[int, Counter[_Vote]] = {}
    for address, of_ptx in ptx:
        there = addresses.get(address)
        if there is not None and there.line:
            votes.setdefault(of_ptx.line, Counter())[there, heads[address[0]]] += 1
    return _with_directives(text, files, votes)


# ---- into the text --------------------------------------------------------------------------------------------------


def _with_directives(text: str, files: list[str], votes: Mapping[int, Counter[_Vote]]) -> str:
    lines = text.split("\n")
    strings: dict[str, str] = {}
    empty: int | None = None
    head: int | None = None  # the first empty line of a function
    depth = 0  # of braces: directives stand in functions
    for number, line in enumerate(lines):
        depth += line.count("{") - line.count("}")
        if not depth:
            empty = head = None
        elif not line.strip():
            empty = number
            head = number if head is None else head
        elif empty is not None and (found := _group(lines, number, votes)):
            place, begin = found.most_common(1)[0][0]
            if head is not None and 0 <= head < empty:
                lines[head] = _directive(begin, strings)
            lines[empty] = _directive(place, strings)
            empty, head = None, -1
    lines += [f'.file\t{number} "{_printable(name)}"' for number, name in enumerate(files, 1)]
    if strings:
        lines += ["\t.section\t.debug_str", "\t{"]
        for name, label in strings.items():
            lines += [f"{label}:", *(f".b8 {byte}" for byte in (*name.encode(), 0))]
        lines += ["\t}"]
    return "\n".join([*lines, ""])


def _group(lines: list[str], first: int, votes: Mapping[int, Counter[_Vote]]) -> Counter[_Vote]:
    """What is known of the lines up to the next empty one."""
    found: Counter[_Vote] = Counter()
    for number in range(first, len(lines)):
        if not lines[number].strip():
            break
        found += votes.get(number + 1, Counter())
    return found


def _printable(name: str) -> str:
    return "".join(c if c.isprintable() and c not in '"\\' else "_" for c in name)


def _directive(place: _Place, strings: dict[str, str]) -> str:
    """With those of the calls through which it was inlined in front, since a directive names the one before it."""
    text = f".loc\t{place.file} {place.line} 0"
    if place.caller is None:
        return text
    label = strings.setdefault(place.function, f"$L__cupola_string{len(strings)}")
    caller = place.caller
    return f"{_directive(caller, strings)} {text}, function_name {label}, inlined_at {caller.file} {caller.line} 0"


# ---- the tables -----------------------------------------------------------------------------------------------------


class _Reader:
    """Bytes that are read one after the other."""

    def __init__(self, data: bytes, at: int, end: int) -> None:
        if end > len(data):
            raise ValueError("the table is cut off")
        self.data, self.at, self.end = data, at, end

    def byte(self) -> int:
        """The next byte."""
        if self.at >= self.end:
            raise IndexError
        self.at += 1
        return self.data[self.at - 1]

    def number(self, *, signed: bool = False) -> int:
        """The next LEB128."""
        value = shift = 0
        while shift < 70:
            byte = self.byte()
            value |= (byte & 127) << shift
            shift += 7
            if not byte & 128:
                return value - (1 << shift) if signed and byte & 64 else value
        raise ValueError("the number is too long")

    def text(self) -> str:
        """The next text, which a zero ends."""
        end = self.data.index(b"\0", self.at, self.end)
        found = self.data[self.at : end].decode("utf-8", "replace")
        self.at = end + 1
        return found


def _rows(sections: Mapping[bytes, bytes], name: bytes) -> tuple[list[str], list[tuple[_Address, _Place]]]:
    """The files of a table, and its rows: addresses, each with its place."""
    data = sections.get(name, b"")
    symbols = {
        offset: (info >> 32, addend)
        for offset, info, addend in struct.iter_unpack("<QQq", sections.get(b".rela" + name, b""))
    }
    if len(data) < 15:
        return [], []
    length, version, header = struct.unpack_from("<IHI", data)
    if version not in (2, 3):
        return [], []
    reader = _Reader(data, 10, min(4 + length, len(data)))
    step, _, base, span, opcodes = struct.unpack_from("<BBbBB", data, 10)
    counts = [0, *data[15 : 14 + opcodes]]
    reader.at = 14 + opcodes
    folders = []
    while folder := reader.text():
        folders.append(folder)
    files = []
    while file := reader.text():
        number, _, _ = reader.number(), reader.number(), reader.number()
        is_plain = file.startswith("/") or not 0 < number <= len(folders)
        files.append(file if is_plain else f"{folders[number - 1]}/{file}")
    reader.at = 10 + header
    program = _Program(reader, step, base, span, opcodes, counts, symbols, sections.get(b".debug_str", b""))
    return files, program.rows()


class _Program:
    """The program of a table, which makes its rows."""

    def __init__(
        self,
        reader: _Reader,
        step: int,
        base: int,
        span: int,
        opcodes: int,
        counts: list[int],
        symbols: Mapping[int, _Address],
        strings: bytes,
    ) -> None:
        if not span:
            raise ValueError("the range of lines is 0")
        self.reader = reader
        self.step, self.base, self.span, self.opcodes = step, base, span, opcodes
        self.counts = counts
        self.symbols = symbols
        self.strings = strings
        self.found: list[tuple[_Address, _Place]] = []
        self.reset()

    def reset(self) -> None:
        """As at the beginning of a sequence."""
        self.address: _Address = (0, 0)
        self.file = self.line = 1
        self.caller: _Place | None = None
        self.function = ""
        self.first = len(self.found)

    def rows(self) -> list[tuple[_Address, _Place]]:
        """All that it makes; an address that has several rows is in the last one of them."""
        reader = self.reader
        while reader.at < reader.end:
            opcode = reader.byte()
            if opcode >= self.opcodes:
                advance, line = divmod(opcode - self.opcodes, self.span)
                self.advance(advance * self.step)
                self.line += self.base + line
                self.row()
            elif opcode == 0:
                self.extended()
            elif opcode == _COPY:
                self.row()
            elif opcode == _ADVANCE_PC:
                self.advance(reader.number() * self.step)
            elif opcode == _ADVANCE_LINE:
                self.line += reader.number(signed=True)
            elif opcode == _SET_FILE:
                self.file = reader.number()
            elif opcode == _CONST_ADD_PC:
                self.advance((255 - self.opcodes) // self.span * self.step)
            elif opcode == _FIXED_ADVANCE_PC:
                self.advance(reader.byte() | reader.byte() << 8)
            else:
                for _ in range(self.counts[opcode]):
                    reader.number()
        return self.found

    def advance(self, by: int) -> None:
        """Go on to another address."""
        self.address = (self.address[0], self.address[1] + by)

    def row(self) -> None:
        """Make a row."""
        depth = self.caller.depth + 1 if self.caller is not None else 0
        if not 0 <= self.line < 1 << 31:
            raise ValueError("there is no such line")
        self.found.append((self.address, _Place(self.file, self.line, self.caller, self.function, depth)))

    def extended(self) -> None:
        """An opcode of DWARF, or NVIDIA's."""
        reader = self.reader
        length = reader.number()
        end = reader.at + length
        opcode = reader.byte()
        if opcode == 1:
            self.reset()
        elif opcode == 2:
            (offset,) = struct.unpack_from("<Q", reader.data, reader.at)
            symbol, addend = self.symbols.get(reader.at, (0, 0))
            self.address = (symbol, offset + addend)
        elif opcode == _INLINED:
            row, name = reader.number(), reader.number()
            at = self.first + row - 1
            self.caller = self.found[at][1] if row and at < len(self.found) else None
            if self.caller is not None and self.caller.depth >= _MOST_CALLERS:
                self.caller = None
            self.function = self.strings[name : self.strings.find(b"\0", name)].decode("utf-8", "replace")
        reader.at = end
