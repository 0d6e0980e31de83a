"""Variables and types of CUDA C++, from the DWARF that compilers write into PTX as tables of numbers (``.section``).

Versions 2 to 4, as NVRTC, nvcc and LLVM's NVPTX write it (PTX ISA 11.5; the DWARF standard). Addresses of code are
labels of the PTX, registers are their names as numbers, and ``DW_AT_address_class`` says in which memory a variable is.
What is read is input: whatever is wrong with it raises `DwarfError`, and nothing else.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_SECTION = re.compile(r"^[ \t]*\.section[ \t]+(\.debug_\w+)\s*,?\s*\{([^}]*)\}", re.MULTILINE)
_LABEL = re.compile(r"^[ \t]*([A-Za-z_$%][\w$]*):", re.MULTILINE)
_ITEM = re.compile(r"([A-Za-z_$%][\w$]*):|\.(b8|b16|b32|b64)\b|([^\s,:]+)")
_SIZES = {"b8": 1, "b16": 2, "b32": 4, "b64": 8}
_MOST_BYTES = 1 << 26
_MOST_ENTRIES = 1 << 20
_DEEPEST = 64

COMPILE_UNIT, SUBPROGRAM, BLOCK, INLINED = 0x11, 0x2E, 0x0B, 0x1D
_VARIABLE, _PARAMETER = 0x34, 0x05
_SCOPES = frozenset([SUBPROGRAM, BLOCK, INLINED])
_POINTERS = {0x0F: "*", 0x10: "&", 0x42: "&&"}
_QUALIFIERS = {0x26: "const", 0x35: "volatile", 0x37: "restrict"}
_STRUCTS = {0x13: "struct", 0x02: "class", 0x17: "union"}
_BASE, _TYPEDEF, _ARRAY, _SUBRANGE, _ENUM, _ENUMERATOR = 0x24, 0x16, 0x01, 0x21, 0x04, 0x28
_MEMBER, _INHERITANCE, _FUNCTION_TYPE, _NAMESPACE = 0x0D, 0x1C, 0x15, 0x39

_LOCATION, _NAME, _SIZE, _LOW, _HIGH = 0x02, 0x03, 0x0B, 0x11, 0x12
_CONST_VALUE, _UPPER, _COUNT, _ORIGIN, _ENCODING = 0x1C, 0x2F, 0x37, 0x31, 0x3E
_LINE, _SPECIFICATION, _TYPE, _OFFSET, _CLASS = 0x3B, 0x47, 0x49, 0x38, 0x33
_BIT_SIZE, _BIT_OFFSET, _DATA_BIT_OFFSET = 0x0D, 0x0C, 0x6B
_LINKAGE, _MIPS_LINKAGE = 0x6E, 0x2007

_OP_ADDR, _OP_PLUS, _OP_REGX, _OP_CONSTU, _OP_PIECE = 0x03, 0x23, 0x90, 0x10, 0x93


class DwarfError(ValueError):
    """The tables cannot be understood."""


@dataclass(frozen=True, slots=True)
class Symbol:
    """A number that is the address of something, plus an offset."""

    name: str
    offset: int = 0


@dataclass(slots=True)
class Type:
    """A type of C++.

    ``kind`` is ``"int"``, ``"uint"``, ``"float"``, ``"bool"``, ``"char"``, ``"pointer"``, ``"struct"``, ``"array"``,
    ``"enum"``, ``"void"`` or ``"function"``; qualifiers and other names are in ``name`` only.
    """

    kind: str
    name: str
    size: int = 0
    target: Type | None = None
    count: int = 0
    members: list[Member] = field(default_factory=list)
    values: dict[int, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name


@dataclass(slots=True)
class Member:
    """A member of a structure; of a bit field the bits, from the lowest one of ``type`` at ``offset``."""

    name: str
    type: Type
    offset: int
    bit: int = 0
    bits: int = 0


@dataclass(frozen=True, slots=True)
class Location:
    """Where a variable is: in a register, in memory at a symbol, or it is a number (``constant``)."""

    register: str = ""
    symbol: Symbol | None = None
    constant: int | None = None


@dataclass(frozen=True, slots=True)
class Range:
    """Lines of the PTX between two labels."""

    begin: int
    end: int

    def __contains__(self, line: int) -> bool:
        return self.begin <= line < self.end


@dataclass(slots=True)
class Variable:
    """A variable or parameter.

    Attributes
    ----------
    places
        Where it is: ranges of lines of the PTX, None for all, and locations.
    space
        ``DW_AT_address_class``: 2 register, 3 constant, 4 global, 6 local, 7 parameter, 8 shared, 12 generic.
    """

    name: str
    type: Type
    places: list[tuple[Range | None, Location]]
    space: int
    line: int
    is_parameter: bool

    def place_at(self, line: int) -> Location | None:
        """Where it is in front of the instruction on a line of the PTX."""
        return next((where for range, where in self.places if range is None or line in range), None)


@dataclass(slots=True)
class Scope:
    """A function, a block of one, or a function inlined in one, with the variables that are declared there."""

    name: str
    symbol: str
    range: Range | None
    variables: list[Variable] = field(default_factory=list)
    scopes: list[Scope] = field(default_factory=list)

    def at(self, line: int) -> Iterator[Scope]:
        """The innermost scope on a line of the PTX, and those around it."""
        for scope in self.scopes:
            if scope.range is not None and line in scope.range:
                yield from scope.at(line)
        yield self


@dataclass(slots=True)
class Info:
    """What the tables of a module say."""

    functions: list[Scope] = field(default_factory=list)
    variables: list[Variable] = field(default_factory=list)
    types: dict[str, Type] = field(default_factory=dict)

    def function_at(self, line: int) -> Scope | None:
        """The function whose code is on a line of the PTX."""
        return next((f for f in self.functions if f.range is not None and line in f.range), None)


class _Section:
    """The bytes of a section, with the symbols in it."""

    def __init__(self, text: str, labels: dict[str, tuple[str, int]], name: str) -> None:
        self.data = bytearray()
        self.symbols: dict[int, Symbol] = {}
        size = 1
        for match in _ITEM.finditer(text):
            label, directive, word = match.groups()
            if label is not None:
                labels[label] = name, len(self.data)
            elif directive is not None:
                size = _SIZES[directive]
            else:
                self._put(word, size)
            if len(self.data) > _MOST_BYTES:
                raise DwarfError(f"{name} is too large")

    def _put(self, word: str, size: int) -> None:
        value = 0
        try:
            value = int(word, 0)
        except ValueError:
            name, sign, offset = re.match(r"([^+-]*)([+-]?)(.*)", word).groups()  # type: ignore[union-attr]
            distance = int(offset, 0) if offset.isdigit() else 0
            if sign == "-" and not offset.isdigit():
                raise DwarfError(f"'{word}' is a difference of labels") from None
            self.symbols[len(self.data)] = Symbol(name, -distance if sign == "-" else distance)
        self.data += (value & (1 << 8 * size) - 1).to_bytes(size, "little")


class _Cursor:
    """Reads the bytes of a section one after the other."""

    def __init__(self, section: _Section, at: int, end: int | None = None) -> None:
        self.section = section
        self.at = at
        self.end = len(section.data) if end is None else end

    def take(self, size: int) -> bytes:
        if size < 0 or not 0 <= self.at <= self.end - size:
            raise DwarfError("a table ends too early")
        self.at += size
        return bytes(self.section.data[self.at - size : self.at])

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "little")

    def address(self, size: int) -> int | Symbol:
        symbol = self.section.symbols.get(self.at)
        number = self.number(size)
        return number if symbol is None else symbol

    def leb(self, *, signed: bool = False) -> int:
        result = shift = 0
        while True:
            byte = self.number(1)
            result |= (byte & 0x7F) << shift
            shift += 7
            if shift > 512:
                raise DwarfError("a number is too long")
            if not byte & 0x80:
                return result - (1 << shift) if signed and byte & 0x40 else result

    def string(self) -> str:
        end = self.section.data.find(0, self.at, self.end)
        if end < 0:
            raise DwarfError("a string does not end")
        text = bytes(self.section.data[self.at : end])
        self.at = end + 1
        return text.decode("utf-8", "replace")


@dataclass(slots=True)
class _Block:
    """An attribute that is a piece of a section."""

    at: int
    size: int


_Value = int | str | Symbol | _Block


@dataclass(slots=True)
class _Entry:
    offset: int
    tag: int
    values: dict[int, _Value]
    children: list[_Entry] = field(default_factory=list)


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.labels: dict[str, tuple[str, int]] = {}
        self.sections = {name: _Section(body, self.labels, name) for name, body in _SECTION.findall(text)}
        self.entries: dict[int, _Entry] = {}
        self.types: dict[int, Type] = {}
        self.lines: dict[str, int] = {}
        starts = [0, *(match.end() for match in re.finditer("\n", text))]
        for match in _LABEL.finditer(text):
            self.lines.setdefault(match[1], bisect.bisect_right(starts, match.start(1)))
        self.info = Info()

    def read(self) -> Info:
        section = self.sections.get(".debug_info")
        if section is None or not section.data:
            return self.info
        cursor = _Cursor(section, 0)
        while cursor.at + 11 <= len(section.data):
            unit = cursor.at
            size = cursor.number(4)
            end = min(cursor.at + size, len(section.data))
            version = cursor.number(2)
            if not 2 <= version <= 4:
                raise DwarfError(f"version {version} of DWARF is not known here")
            abbreviations = self._abbreviations(self._offset(cursor, ".debug_abbrev"))
            width = cursor.number(1)
            if width not in (4, 8):
                raise DwarfError(f"addresses of {width} bytes")
            roots = self._entries(_Cursor(section, cursor.at, end), unit, abbreviations, width)
            for root in roots:
                self._collect(root, 0)
            cursor.at = end
            if not size:
                break
        return self.info

    def _offset(self, cursor: _Cursor, name: str) -> int:
        value = cursor.address(4)
        return self._resolve(value, name)

    def _resolve(self, value: _Value | None, name: str) -> int:
        """An offset in a section, which may be written as its name or a label in it."""
        if isinstance(value, Symbol):
            if value.name == name.lstrip("."):
                return value.offset
            section, at = self.labels.get(value.name, ("", 0))
            if section == name:
                return at + value.offset
            return value.offset
        return value if isinstance(value, int) else 0

    def _abbreviations(self, at: int) -> dict[int, tuple[int, bool, list[tuple[int, int]]]]:
        section = self.sections.get(".debug_abbrev")
        if section is None:
            raise DwarfError("there is no .debug_abbrev")
        cursor = _Cursor(section, at)
        found: dict[int, tuple[int, bool, list[tuple[int, int]]]] = {}
        while cursor.at < cursor.end and (code := cursor.leb()):
            tag, children = cursor.leb(), bool(cursor.number(1))
            attributes = []
            while True:
                pair = cursor.leb(), cursor.leb()
                if pair == (0, 0):
                    break
                attributes.append(pair)
            found[code] = tag, children, attributes
        return found

    def _entries(
        self, cursor: _Cursor, unit: int, known: dict[int, tuple[int, bool, list[tuple[int, int]]]], width: int
    ) -> list[_Entry]:
        roots: list[_Entry] = []
        open_lists = [roots]
        while cursor.at < cursor.end:
            offset = cursor.at
            code = cursor.leb()
            if not code:
                if len(open_lists) > 1:
                    open_lists.pop()
                continue
            if code not in known:
                raise DwarfError(f"there is no abbreviation {code}")
            tag, has_children, attributes = known[code]
            values = {name: self._form(cursor, form, unit, width) for name, form in attributes}
            entry = _Entry(offset, tag, values)
            self.entries[offset] = entry
            if len(self.entries) > _MOST_ENTRIES:
                raise DwarfError("there are too many entries")
            open_lists[-1].append(entry)
            if has_children:
                open_lists.append(entry.children)
                if len(open_lists) > 4 * _DEEPEST:
                    raise DwarfError("entries are nested too deeply")
        return roots

    def _form(self, cursor: _Cursor, form: int, unit: int, width: int) -> _Value:
        match form:
            case 0x01:
                return cursor.address(width)
            case 0x0B | 0x0C:
                return cursor.number(1)
            case 0x05:
                return cursor.number(2)
            case 0x06 | 0x17:
                return cursor.address(4)
            case 0x07:
                return cursor.address(8)
            case 0x08:
                return cursor.string()
            case 0x0D:
                return cursor.leb(signed=True)
            case 0x0F:
                return cursor.leb()
            case 0x0E:
                section = self.sections.get(".debug_str")
                at = self._resolve(cursor.address(4), ".debug_str")
                return "" if section is None else _Cursor(section, at).string()
            case 0x10:
                return self._resolve(cursor.address(4), ".debug_info")
            case 0x11 | 0x12 | 0x13 | 0x14:
                return unit + self._resolve(cursor.address(1 << form - 0x11), ".debug_info")
            case 0x15:
                return unit + cursor.leb()
            case 0x19:
                return 1
            case 0x0A | 0x03 | 0x04 | 0x09 | 0x18:
                size = cursor.number({0x0A: 1, 0x03: 2, 0x04: 4}[form]) if form in (0x0A, 3, 4) else cursor.leb()
                at = cursor.at
                cursor.take(size)
                return _Block(at, size)
            case 0x16:
                return self._form(cursor, cursor.leb(), unit, width)
        raise DwarfError(f"form {form:#x} is not known here")

    # --- entries ------------------------------------------------------------------------------------------------

    def _value(self, entry: _Entry, name: int, depth: int = 0) -> _Value | None:
        """An attribute, perhaps of what the entry is an instance of."""
        value = entry.values.get(name)
        if value is not None or depth > 8:
            return value
        for link in (_ORIGIN, _SPECIFICATION):
            other = self.entries.get(_int(entry.values.get(link), -1))
            if other is not None and other is not entry:
                value = self._value(other, name, depth + 1)
                if value is not None:
                    return value
        return None

    def _text(self, entry: _Entry, *names: int) -> str:
        for name in names:
            value = self._value(entry, name)
            if isinstance(value, str):
                return value
        return ""

    def _collect(self, entry: _Entry, depth: int) -> None:
        """What is declared in a unit or a namespace."""
        for child in entry.children:
            if child.tag == SUBPROGRAM and child.values.get(_LOW) is not None:
                self.info.functions.append(self._scope(child, 0))
            elif child.tag == _VARIABLE:
                variable = self._variable(child)
                if variable is not None and variable.places:
                    self.info.variables.append(variable)
            elif child.tag in _STRUCTS or child.tag in (_TYPEDEF, _BASE, _ENUM):
                type = self._type(child.offset)
                self.info.types.setdefault(type.name, type)
            if child.tag in (_NAMESPACE, COMPILE_UNIT) and depth < _DEEPEST:
                self._collect(child, depth + 1)

    def _range(self, entry: _Entry) -> Range | None:
        low, high = entry.values.get(_LOW), entry.values.get(_HIGH)
        if not isinstance(low, Symbol) or not isinstance(high, Symbol):
            return None
        begin, end = self.lines.get(low.name), self.lines.get(high.name)
        return None if begin is None or end is None else Range(begin, end)

    def _scope(self, entry: _Entry, depth: int) -> Scope:
        symbol = self._text(entry, _LINKAGE, _MIPS_LINKAGE)
        name = self._text(entry, _NAME)
        scope = Scope(name or symbol, symbol or name, self._range(entry))
        for child in entry.children:
            if child.tag in (_VARIABLE, _PARAMETER):
                variable = self._variable(child)
                if variable is not None:
                    scope.variables.append(variable)
            elif child.tag in _SCOPES and depth < _DEEPEST:
                scope.scopes.append(self._scope(child, depth + 1))
        return scope

    def _variable(self, entry: _Entry) -> Variable | None:
        name = self._text(entry, _NAME)
        if not name:
            return None
        type = self._type(_int(self._value(entry, _TYPE), -1))
        space = _int(self._value(entry, _CLASS), 0)
        line = _int(self._value(entry, _LINE), 0)
        return Variable(name, type, self._places(entry), space, line, entry.tag == _PARAMETER)

    def _places(self, entry: _Entry) -> list[tuple[Range | None, Location]]:
        constant = self._value(entry, _CONST_VALUE)
        if isinstance(constant, int):
            return [(None, Location(constant=constant))]
        value = self._value(entry, _LOCATION)
        if isinstance(value, _Block):
            where = self._location(self.sections[".debug_info"], value)
            return [] if where is None else [(None, where)]
        section = self.sections.get(".debug_loc")
        if value is None or isinstance(value, str) or section is None:
            return []
        cursor = _Cursor(section, self._resolve(value, ".debug_loc"))
        places: list[tuple[Range | None, Location]] = []
        while True:
            begin, end = cursor.address(8), cursor.address(8)
            if not isinstance(begin, Symbol) or not isinstance(end, Symbol):
                return places
            size = cursor.number(2)
            where = self._location(section, _Block(cursor.at, size))
            cursor.take(size)
            first, last = self.lines.get(begin.name), self.lines.get(end.name)
            if where is not None and first is not None and last is not None:
                places.append((Range(first, last), where))
            if len(places) > _MOST_ENTRIES:
                raise DwarfError("a variable has too many places")

    def _location(self, section: _Section, block: _Block) -> Location | None:
        cursor = _Cursor(section, block.at, block.at + block.size)
        result: Location | None = None
        while cursor.at < cursor.end:
            op = cursor.number(1)
            if op == _OP_ADDR:
                address = cursor.address(8)
                if not isinstance(address, Symbol):
                    return None
                result = Location(symbol=address)
            elif op == _OP_PLUS and result is not None and result.symbol is not None:
                symbol = result.symbol
                result = Location(symbol=Symbol(symbol.name, symbol.offset + cursor.leb()))
            elif op == _OP_REGX:
                number = cursor.leb()
                size = (number.bit_length() + 7) // 8
                result = Location(register=number.to_bytes(size, "big").decode("ascii", "replace"))
            elif op == _OP_CONSTU:
                result = Location(constant=cursor.leb())
            else:
                return None  # in pieces, or computed: not known
        return result

    # --- types --------------------------------------------------------------------------------------------------

    def _type(self, offset: int, depth: int = 0) -> Type:
        entry = self.entries.get(offset)
        if entry is None:
            return Type("void", "void")
        known = self.types.get(offset)
        if known is not None:
            return known
        if depth > _DEEPEST:
            raise DwarfError("types are nested too deeply")
        made = self.types[offset] = Type("void", self._text(entry, _NAME) or "?")
        self._fill(made, entry, depth + 1)
        return made

    def _fill(self, type: Type, entry: _Entry, depth: int) -> None:
        name = self._text(entry, _NAME)
        size = _int(entry.values.get(_SIZE), 0)
        target = self._type(_int(self._value(entry, _TYPE), -1), depth)
        if entry.tag == _BASE:
            kinds = {2: "bool", 4: "float", 5: "int", 6: "char", 7: "uint", 8: "char"}
            type.kind = kinds.get(_int(entry.values.get(_ENCODING), 0), "uint")
            type.name, type.size = name or type.kind, size if 0 < size <= 16 else 4
        elif entry.tag in _POINTERS:
            type.kind, type.size, type.target = "pointer", size or 8, target
            type.name = f"{target.name}{'' if target.name.endswith('*') else ' '}{_POINTERS[entry.tag]}"
        elif entry.tag in _QUALIFIERS or entry.tag == _TYPEDEF:
            type.kind, type.size, type.target, type.count = target.kind, target.size, target.target, target.count
            type.members, type.values = target.members, target.values
            word = _QUALIFIERS.get(entry.tag, "")
            type.name = name or (f"{target.name} {word}" if target.kind == "pointer" else f"{word} {target.name}")
        elif entry.tag == _ARRAY:
            self._fill_array(type, entry, target)
        elif entry.tag in _STRUCTS:
            type.kind, type.name, type.size = "struct", name or "{...}", size
            for child in entry.children:
                if child.tag in (_MEMBER, _INHERITANCE) and child.values.get(_TYPE) is not None:
                    type.members.append(self._member(child, depth))
        elif entry.tag == _ENUM:
            type.kind, type.name, type.size = "enum", name or "enum", size or 4
            for child in entry.children:
                if child.tag == _ENUMERATOR:
                    type.values[_int(child.values.get(_CONST_VALUE), 0)] = self._text(child, _NAME)
        elif entry.tag == _FUNCTION_TYPE:
            type.kind, type.name, type.size = "function", f"{target.name} ()", 1

    def _fill_array(self, type: Type, entry: _Entry, target: Type) -> None:
        counts = []
        for child in entry.children:
            if child.tag == _SUBRANGE:
                upper = child.values.get(_UPPER)
                count = child.values.get(_COUNT)
                counts.append(_int(count, 0) if count is not None else _int(upper, -1) + 1)
        element = target
        for count in reversed(counts[1:]):
            if not 0 <= count * element.size < 1 << 48:
                raise DwarfError("an array is larger than any memory")
            element = Type("array", array_name(element, count), count * element.size, element, count)
        count = counts[0] if counts else 0
        if not 0 <= count * element.size < 1 << 48:
            raise DwarfError("an array is larger than any memory")
        type.kind, type.target, type.count, type.size = "array", element, count, count * element.size
        type.name = array_name(element, count)

    def _member(self, entry: _Entry, depth: int) -> Member:
        type = self._type(_int(entry.values.get(_TYPE), -1), depth)
        name = self._text(entry, _NAME) or type.name
        place = entry.values.get(_OFFSET)
        offset = place if isinstance(place, int) else 0
        if isinstance(place, _Block):
            cursor = _Cursor(self.sections[".debug_info"], place.at, place.at + place.size)
            if place.size and cursor.number(1) in (_OP_PLUS, _OP_CONSTU):
                offset = cursor.leb()
        bits = _int(entry.values.get(_BIT_SIZE), 0)
        bit = _int(entry.values.get(_DATA_BIT_OFFSET), 0)
        if bits and _BIT_OFFSET in entry.values:  # from the highest bit
            storage = _int(entry.values.get(_SIZE), type.size) or type.size
            bit = 8 * storage - _int(entry.values.get(_BIT_OFFSET), 0) - bits
        if bits and not 0 <= bit <= 8 * type.size - bits:
            bit = bits = 0
        return Member(name, type, offset, bit, bits)


def array_name(element: Type, count: int) -> str:
    """The name of an array's type: ``float[4][8]`` of ``float[8]`` and 4."""
    base, bracket, rest = element.name.partition("[")
    return f"{base}[{count}]{bracket}{rest}"


def _int(value: _Value | None, otherwise: int) -> int:
    return value if isinstance(value, int) else otherwise


def read(text: str) -> Info:
    """What the tables in a module of PTX say.

    Parameters
    ----------
    text
        The PTX.

    Returns
    -------
    Info
        Empty, if there are none.

    Raises
    ------
    DwarfError
        When they cannot be understood.
    """
    try:
        return _Reader(text).read()
    except DwarfError:
        raise
    except (ValueError, KeyError, IndexError, OverflowError, RecursionError) as error:
        raise DwarfError(f"the debug information is damaged: {error!r}") from error
