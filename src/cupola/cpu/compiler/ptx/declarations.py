"""Declarations of parameters and variables with their initial values (PTX ISA 5.4)."""

from __future__ import annotations

import logging
import struct
from dataclasses import dataclass

from cupola.cpu.compiler.ptx import ast
from cupola.cpu.compiler.ptx.constants import constant, constant_integer
from cupola.cpu.compiler.ptx.cursor import Cursor, is_name
from cupola.cpu.compiler.ptx.names import TYPE_BITS

SPACES = frozenset([".global", ".const", ".shared", ".local", ".param", ".tex"])
_LARGEST = 1 << 48  # bytes; a GPU's address space
_LARGEST_INITIALIZER = 1 << 30
_ALIGNMENTS = frozenset(1 << n for n in range(16))


@dataclass(slots=True)
class _Shape:
    """What comes before the name of a variable."""

    space: str
    type: str
    size: int
    align: int
    vector: int = 1
    is_pointer: bool = False
    managed: bool = False


def _alignment(cursor: Cursor) -> int:
    at = cursor.index
    value = cursor.integer("an alignment")
    if value not in _ALIGNMENTS:
        cursor.fail(f"{value} is not an alignment", "a power of two", at)
    return value


def _skip_parentheses(cursor: Cursor) -> list[str]:
    """The words between parentheses, for attributes."""
    cursor.expect("(")
    found: list[str] = []
    depth = 1
    while True:
        word = cursor.words[cursor.index]
        depth += (word == "(") - (word == ")")
        if not word:
            cursor.unexpected("')'")
        cursor.index += 1
        if not depth:
            return found
        found.append(word)


def _shape(cursor: Cursor, space: str) -> _Shape:
    """Everything between the state space and the name, in any order."""
    align = 0
    vector = 1
    kind = ""
    pointer = managed = False
    while True:
        word = cursor.words[cursor.index]
        if word == ".align":
            cursor.index += 1
            align = _alignment(cursor)
        elif word == ".attribute":
            cursor.index += 1
            managed |= ".managed" in _skip_parentheses(cursor)
        elif word == ".ptr":
            cursor.index += 1
            pointer = True
            if cursor.words[cursor.index] in SPACES or cursor.words[cursor.index] == ".generic":
                cursor.index += 1
            if cursor.accept(".align"):
                _alignment(cursor)
        elif word in (".v2", ".v4", ".v8"):
            cursor.index += 1
            vector = int(word[2:])
        elif word[:1] == "." and word[1:] in TYPE_BITS and not kind:
            cursor.index += 1
            kind = word[1:]
        else:
            break
    if not kind:
        cursor.unexpected("a type such as '.b32'")
    if kind == "pred" and space != "reg":
        cursor.fail("a predicate can only be in a register", at=cursor.index - 1)
    size = TYPE_BITS[kind] // 8
    return _Shape(space, kind, size, align or max(1, size * vector), vector, pointer, managed)


def _dimensions(cursor: Cursor) -> list[int] | None:
    """``[3][2]`` as [3, 2], ``[]`` as [0], none as None."""
    dimensions: list[int] = []
    while cursor.accept("["):
        if not dimensions and cursor.accept("]"):
            dimensions.append(0)
            continue
        at = cursor.index
        count = constant_integer(cursor)
        if not 0 <= count < _LARGEST:
            cursor.fail(f"{count} is not the size of an array", at=at)
        dimensions.append(count)
        cursor.expect("]")
    return dimensions or None


def _product(cursor: Cursor, element: int, dimensions: list[int]) -> int:
    total = element
    for count in dimensions:
        total *= count
        if total > _LARGEST:
            cursor.fail("the array is larger than any memory")
    return total


# --- parameters -------------------------------------------------------------------------------------------------


HIDDEN = (
    "the kernel has hidden parameters: tensor maps that NVIDIA's driver makes at each launch, by code for the host in "
    "the cubin, which the CPU device does not run. `cupola run` has cuTile compile without them; otherwise use a model "
    "of compute capability 8.0 (cupola run --model a100), or ct.load and ct.store with allow_tma=False"
)


def parameters(cursor: Cursor) -> list[ast.Parameter]:
    """``(.param .u64 x, .param .align 8 .b8 y[24])``; the buffer's layout is that of a C structure."""
    found: list[ast.Parameter] = []
    offset = 0
    cursor.expect("(")
    if cursor.accept(")"):
        return found
    while True:
        if cursor.accept(".hidden"):
            logging.getLogger("cupola").warning("%s", HIDDEN)  # cuTile's own error does not have the driver's text
            cursor.fail(HIDDEN, at=cursor.index - 1)
        word = cursor.take()
        if word == ".reg":
            shape = _shape(cursor, "reg")
        elif word == ".param":
            shape = _shape(cursor, "param")
        else:
            cursor.unexpected("'.param' or '.reg'", cursor.index - 1)
        name = "_" if cursor.accept("_") else cursor.name("the name of a parameter")
        size = _product(cursor, shape.size * shape.vector, _dimensions(cursor) or [])
        offset = -(-offset // shape.align) * shape.align
        found.append(ast.Parameter(name, shape.type, size, shape.align, offset, shape.is_pointer, shape.space == "reg"))
        offset += size
        if cursor.accept(")"):
            return found
        cursor.expect(",")


# --- variables --------------------------------------------------------------------------------------------------


def variables(cursor: Cursor, linkage: str | None) -> list[ast.Variable]:
    """One declaration statement, with the state space as the next word."""
    space = cursor.take()[1:]
    if space == "tex":
        space = "global"
    shape = _shape(cursor, space)
    found = []
    while True:
        line = cursor.tokens.line(cursor.index)
        name = cursor.name("the name of a variable")
        if cursor.accept("<"):
            cursor.fail("only registers are declared in ranges", at=cursor.index - 1)
        dimensions = _dimensions(cursor)
        element = shape.size * shape.vector
        variable = ast.Variable(
            name,
            space,
            shape.type,
            _product(cursor, element, dimensions or []),
            shape.align,
            linkage=linkage,
            location=ast.Location(line),
            managed=shape.managed,
        )
        if cursor.accept("="):
            extents = [*(dimensions or []), *([shape.vector] if shape.vector > 1 else [])]
            _Initializer(cursor, variable, shape.size).read(extents)
        found.append(variable)
        if cursor.accept(";"):
            return found
        if not cursor.accept(","):
            cursor.unexpected("',' or ';'")


class _Initializer:
    """Reads ``{{1, 2}, {3}}``, ``generic(symbol)+4``, ``0xFF00(symbol)`` into bytes and relocations."""

    def __init__(self, cursor: Cursor, variable: ast.Variable, width: int) -> None:
        self.cursor = cursor
        self.variable = variable
        self.width = width
        self.is_float = variable.type in ("f32", "f64")
        self.data = bytearray()
        self.relocations: list[tuple[int, int, str, int, bool]] = []
        # bytes of an address that are written one by one: offset -> (byte number, symbol, addend, is_generic)
        self.pieces: dict[int, tuple[int, str, int, bool]] = {}

    def read(self, extents: list[int]) -> None:
        cursor = self.cursor
        if cursor.words[cursor.index][:1] == '"':
            text = cursor.take()
            self.data += text.strip('"').encode()
            end = len(self.data)
        elif cursor.words[cursor.index] == "{":
            end = self._braces(extents)
        else:
            self._item(0)
            end = self.width
        if extents and extents[0] == 0:
            self.variable.size = end
        if end > self.variable.size:
            cursor.fail("there are more initial values than elements", at=cursor.index - 1)
        self._join_pieces()
        self.variable.initializer = bytes(self.data)
        self.variable.relocations = tuple(self.relocations)

    def _braces(self, extents: list[int]) -> int:
        """Nested braces, with a stack of their own; returns how many bytes they fill."""
        cursor = self.cursor
        strides = [self.width] * max(1, len(extents))
        for level in range(len(extents) - 2, -1, -1):
            strides[level] = strides[level + 1] * extents[level + 1]
        starts: list[int] = []
        offset = highest = 0
        while True:
            if cursor.accept("{"):
                if len(starts) >= len(strides):
                    cursor.fail("there are more braces than dimensions", "a value", cursor.index - 1)
                starts.append(offset)
                continue
            if cursor.words[cursor.index] != "}":
                self._item(offset)
                offset += self.width
                highest = max(highest, offset)
            while cursor.accept("}"):
                start = starts.pop()
                if not starts:
                    return highest
                # an inner brace fills its whole row
                offset = start + strides[len(starts) - 1]
            if not cursor.accept(",") and cursor.words[cursor.index] != "{":
                cursor.unexpected("',' or '}'")

    def _item(self, offset: int) -> None:
        cursor = self.cursor
        word = cursor.words[cursor.index]
        if word == "generic":
            cursor.index += 1
            cursor.expect("(")
            symbol, addend = self._address()
            cursor.expect(")")
            self._relocate(offset, symbol, addend + self._addend(), True)
        elif is_name(word):
            symbol, addend = self._address()
            self._relocate(offset, symbol, addend, False)
        elif cursor.words[cursor.index + 1] == "(" and word[:1].isdigit():
            self._masked(offset)
        else:
            at = cursor.index
            self._store(offset, constant(cursor), at)

    def _address(self) -> tuple[str, int]:
        return self.cursor.name("a variable or function"), self._addend()

    def _addend(self) -> int:
        total = 0
        while self.cursor.words[self.cursor.index] in ("+", "-"):
            sign = self.cursor.take()
            value = self.cursor.integer("a number of bytes")
            total += value if sign == "+" else -value
        return total

    def _relocate(self, offset: int, symbol: str, addend: int, is_generic: bool) -> None:
        if self.width not in (4, 8):
            self.cursor.fail(
                f"an address does not fit '.{self.variable.type}'", "'.b32' or '.b64'", self.cursor.index - 1
            )
        self._reserve(offset)
        self.relocations.append((offset, self.width, symbol, addend, is_generic))

    def _masked(self, offset: int) -> None:
        """``0xFF00(symbol)``: one byte of an address (PTX ISA 5.4.4, the mask operator)."""
        cursor = self.cursor
        at = cursor.index
        mask = cursor.integer()
        byte = (mask.bit_length() - 1) // 8
        if byte < 0 or byte > 7 or mask != 0xFF << (8 * byte) or self.width != 1:
            cursor.fail("this mask does not take one byte of an address", "0xFF, 0xFF00, ...", at)
        cursor.expect("(")
        is_generic = cursor.words[cursor.index] == "generic" and cursor.words[cursor.index + 1] == "("
        if is_generic:
            cursor.index += 2
        symbol, addend = self._address()
        if is_generic:
            cursor.expect(")")
            addend += self._addend()
        cursor.expect(")")
        self._reserve(offset)
        self.pieces[offset] = (byte, symbol, addend, is_generic)

    def _join_pieces(self) -> None:
        """Eight bytes of one address, lowest first, are one relocation; so are four."""
        offsets = sorted(self.pieces)
        index = 0
        while index < len(offsets):
            first = offsets[index]
            target = self.pieces[first][1:]
            count = 0
            while count < 8 and self.pieces.get(first + count) == (count, *target):
                count += 1
            width = 8 if count == 8 else 4
            if count < width:
                self.cursor.fail(f"the bytes of the address of {target[0]!r} are not together")
            self.relocations.append((first, width, *target))
            index += width

    def _store(self, offset: int, value: ast.Immediate, at: int) -> None:
        bits = value.value
        if value.kind == "int":
            if self.is_float:
                packed = struct.pack("<d", float(bits))
                packed = _narrow(int.from_bytes(packed, "little")) if self.width == 4 else packed
            else:
                packed = (bits & ((1 << 8 * self.width) - 1)).to_bytes(self.width, "little")
        elif not self.is_float:
            self.cursor.fail("a floating-point value for an integer variable", "a whole number", at)
        elif value.kind == "f64" and self.width == 4:
            packed = _narrow(bits)
        elif value.kind == "f32" and self.width == 8:
            packed = struct.pack("<d", struct.unpack("<f", bits.to_bytes(4, "little"))[0])
        else:
            packed = bits.to_bytes(self.width, "little")
        self._reserve(offset)
        self.data[offset : offset + self.width] = packed

    def _reserve(self, offset: int) -> None:
        """Make the bytes of an element exist."""
        end = offset + self.width
        if end > len(self.data):
            if end > _LARGEST_INITIALIZER:
                self.cursor.fail("the initial value is larger than any module")
            self.data += bytes(end - len(self.data))


def _narrow(bits: int) -> bytes:
    """The bits of a double as a float; what is too large becomes an infinity."""
    value = struct.unpack("<d", bits.to_bytes(8, "little"))[0]
    try:
        return struct.pack("<f", value)
    except OverflowError:
        return struct.pack("<f", float("inf") if value > 0 else float("-inf"))
