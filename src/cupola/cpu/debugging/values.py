"""Values of C++ in a kernel that is stopped: what they are, where they are, and how they are written."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass

from cupola._counted import counted
from cupola.cpu.compiler.objects import abi

from .dwarf import Type

GLOBAL, SHARED, LOCAL, FRAME, PARAM = range(5)
"""``enum cpu_debug_space`` (engine/instruments/debug.h)."""

SPACES = ("global", "shared", "local", "register", "parameter")

SHOWN = 32
"""Elements of an array that are written."""
LONGEST = 4000
"""Characters of a value that are written."""
_DEEPEST = 16
_MOST_PARTS = 2000
_MOST_BYTES = 1 << 20

CHAR, BOOL = Type("char", "char", 1), Type("bool", "bool", 1)
SHORT, INT, LONG = Type("int", "short", 2), Type("int", "int", 4), Type("int", "long", 8)
UNSIGNED, ULONG = Type("uint", "unsigned int", 4), Type("uint", "unsigned long", 8)
FLOAT, DOUBLE = Type("float", "float", 4), Type("float", "double", 8)
VOID = Type("void", "void")

TYPES = {
    type.name: type
    for type in (
        *(CHAR, BOOL, SHORT, INT, LONG, UNSIGNED, ULONG, FLOAT, DOUBLE, VOID),
        Type("int", "signed char", 1),
        Type("uint", "unsigned char", 1),
        Type("uint", "unsigned short", 2),
        Type("uint", "unsigned", 4),
        Type("int", "long long", 8),
        Type("uint", "unsigned long long", 8),
        *(Type("int", f"int{8 * n}_t", n) for n in (1, 2, 4, 8)),
        *(Type("uint", f"uint{8 * n}_t", n) for n in (1, 2, 4, 8)),
        Type("uint", "size_t", 8),
        Type("float", "half", 2),
    )
}
"""Types that need no debug information."""


class ExpressionError(ValueError):
    """An expression cannot be evaluated; the text says why."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where something is in memory: a space, whose it is (a thread or a warp), and the address or offset there."""

    space: int
    who: int
    address: int

    def at(self, offset: int) -> Place:
        """The place so many bytes further."""
        return Place(self.space, self.who, self.address + offset)


Read = Callable[[Place, int], bytes | None]


@dataclass(frozen=True, slots=True)
class Value:
    """A value: its bytes, or None where they cannot be read, and its place, if it is in memory."""

    type: Type
    data: bytes | None
    place: Place | None = None
    bit: int = 0
    bits: int = 0

    @property
    def number(self) -> int | float:
        """What it is as a number.

        Raises
        ------
        ExpressionError
            When it is none, or cannot be read.
        """
        data, type = self.data, self.type
        if data is None:
            raise ExpressionError(unreadable(self))
        if _is_half(type) and len(data) >= 2:
            return _HALVES[type.name.rpartition("::")[2]](data[:2])
        if type.kind == "float":
            form = {2: "<e", 4: "<f", 8: "<d"}.get(len(data))
            if form is None:
                raise ExpressionError(f"a {type.name} of {len(data)} bytes cannot be shown")
            number: float = struct.unpack(form, data)[0]
            return number
        if type.kind in ("int", "char", "uint", "bool", "enum", "pointer", "function"):
            number = int.from_bytes(data, "little")
            if self.bits:
                number = number >> self.bit & (1 << self.bits) - 1
            width = self.bits or 8 * len(data)
            is_signed = type.kind in ("int", "char") or (type.kind == "enum" and any(v < 0 for v in type.values))
            if type.name in ("unsigned char", "uint8_t"):
                is_signed = False
            return number - (1 << width) if is_signed and width and number >> width - 1 else number
        raise ExpressionError(f"a {type.name} is no number")


def _bfloat(data: bytes) -> float:
    number: float = struct.unpack("<f", b"\0\0" + data)[0]
    return number


def _half(data: bytes) -> float:
    number: float = struct.unpack("<e", data)[0]
    return number


_HALVES = {"__half": _half, "__nv_bfloat16": _bfloat}


def _is_half(type: Type) -> bool:
    return type.kind == "struct" and type.name.rpartition("::")[2] in _HALVES


def unreadable(value: Value) -> str:
    """Why the bytes of a value are not there."""
    if value.place is None:
        return "its value is not known here"
    space = SPACES[value.place.space]
    at = f"{value.place.address:#x}" if value.place.space == GLOBAL else f"offset {value.place.address}"
    return f"there is no {space} memory of {counted(max(1, value.type.size), 'byte')} at {at}"


def make(type: Type, number: int | float) -> Value:
    """A number as a value of a type, cut to its size as C++ does."""
    size = type.size or 4
    if type.kind == "float":
        form = {2: "<e", 4: "<f", 8: "<d"}.get(size, "<d")
        try:
            return Value(type, struct.pack(form, float(number)))
        except OverflowError:
            return Value(type, struct.pack(form, math.copysign(math.inf, number)))
    if isinstance(number, float):
        number = int(number) if math.isfinite(number) else 0
    if type.kind == "bool":
        number = int(bool(number))
    return Value(type, (int(number) & (1 << 8 * size) - 1).to_bytes(size, "little"))


def pointed(address: int, thread: int) -> Place:
    """The place of a generic address, as a thread sees it."""
    if abi.SHARED_WINDOW <= address < abi.LOCAL_WINDOW:
        return Place(SHARED, 0, address & (1 << abi.RANK_SHIFT) - 1)
    if abi.LOCAL_WINDOW <= address < abi.CODE_WINDOW:
        return Place(LOCAL, thread, address - abi.LOCAL_WINDOW)
    return Place(GLOBAL, 0, address)


def load(type: Type, place: Place, read: Read) -> Value:
    """What is at a place."""
    size = type.size
    if size > _MOST_BYTES:
        size = 0
    if type.kind == "void" or (not size and type.kind != "array"):
        return Value(type, None, place)
    return Value(type, read(place, size), place)


def element(value: Value, index: int, read: Read, thread: int) -> Value:
    """An element of an array, or of what a pointer points to."""
    type = value.type
    target = type.target or VOID
    if type.kind == "pointer":
        if target.kind == "void" or not target.size:
            raise ExpressionError(f"a {type.name} cannot be indexed: cast it, as in ((float *) p)[0]")
        address = int(value.number) + index * target.size
        return load(target, pointed(address & (1 << 64) - 1, thread), read)
    if type.kind != "array":
        raise ExpressionError(f"a {type.name} cannot be indexed")
    if value.place is not None:
        return load(target, value.place.at(index * target.size), read)
    begin = index * target.size
    if value.data is None or not 0 <= begin <= len(value.data) - target.size:
        raise ExpressionError(f"the index {index} is outside of a {type.name}")
    return Value(target, value.data[begin : begin + target.size])


def member(value: Value, name: str, read: Read) -> Value:
    """A member of a structure, or of what it derives from."""
    type = value.type
    if type.kind != "struct":
        raise ExpressionError(f"a {type.name} has no members")
    for each in type.members:
        if each.name != name:
            continue
        size = each.type.size
        place = value.place.at(each.offset) if value.place is not None else None
        data = value.data[each.offset : each.offset + size] if value.data is not None else None
        if data is None and place is not None:
            return load(each.type, place, read)
        return Value(each.type, data, place, each.bit, each.bits)
    for each in type.members:
        if each.name == each.type.name and each.type.kind == "struct":
            try:
                return member(member(value, each.name, read), name, read)
            except ExpressionError:
                continue
    known = ", ".join(each.name for each in type.members[:20])
    raise ExpressionError(f"{type.name} has no member {name!r}" + (f": it has {known}" if known else ""))


def real(number: float, size: int) -> str:
    """A floating-point number with as few digits as tell it from its neighbours."""
    if math.isnan(number) or math.isinf(number):
        return str(number)
    if size == 8:
        return f"{number:.17g}" if float(f"{number:.15g}") != number else f"{number:.15g}"
    form = "<e" if size == 2 else "<f"
    packed = struct.pack(form, number)
    for digits in range(3 if size == 2 else 6, 10):
        text = f"{number:.{digits}g}"
        try:
            if struct.pack(form, float(text)) == packed:
                return text
        except OverflowError:
            continue
    return repr(number)


def show(value: Value, read: Read, thread: int = 0, base: str = "") -> str:
    """A value in words.

    Parameters
    ----------
    value
        The value.
    read
        Reads memory.
    thread
        Whose local memory pointers may mean.
    base
        ``"x"``, ``"b"``, ``"o"`` or ``"d"`` for whole numbers; empty for what their type suggests.
    """
    text = _Writer(read, thread, base).write(value, 0)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


class _Writer:
    """Writes a value, of which there may be any number of parts: debug information is input."""

    def __init__(self, read: Read, thread: int, base: str) -> None:
        self.read = read
        self.thread = thread
        self.base = base
        self.left = _MOST_PARTS

    def write(self, value: Value, depth: int) -> str:
        """A value, or dots where there are too many."""
        type = value.type
        self.left -= 1
        if self.left < 0 or depth > _DEEPEST:
            return "..."
        if type.kind == "array":
            return self._array(value, depth)
        if type.kind == "struct" and not _is_half(type):
            if value.data is None:
                return f"<{unreadable(value)}>"
            parts = [f"{m.name} = {self._member(value, m.name, depth)}" for m in type.members[: self.left + 1]]
            return f"{{{', '.join(parts)}}}"
        if value.data is None:
            return "void" if type.kind == "void" and value.place is None else f"<{unreadable(value)}>"
        try:
            return self._number(value, value.number, value.data)
        except ExpressionError as error:
            return f"<{error}>"

    def _member(self, value: Value, name: str, depth: int) -> str:
        return self.write(member(value, name, self.read), depth + 1)

    def _number(self, value: Value, number: int | float, data: bytes) -> str:
        type, base = value.type, self.base
        if type.kind == "struct":
            return f"{number:.4g}"
        if isinstance(number, float):
            return real(number, len(data)) if not base else _based(int.from_bytes(data, "little"), base)
        if base:
            bits = value.bits or 8 * len(data)
            return str(number) if base == "d" else _based(number & (1 << bits) - 1, base)
        if type.kind == "pointer":
            return f"({type.name}) {describe_address(number)}"
        if type.kind == "enum":
            return type.values.get(number, str(number))
        if type.kind == "bool":
            return "true" if number else "false"
        if type.kind == "char" and len(data) == 1:
            return f"{number} {chr(number)!r}" if 32 <= number < 127 else str(number)
        return str(number)

    def _array(self, value: Value, depth: int) -> str:
        type = value.type
        target = type.target or VOID
        if value.data is not None and target.kind == "char" and not self.base and b"\0" in value.data:
            text = value.data.partition(b"\0")[0]
            if text and all(32 <= c < 127 or c in (9, 10) for c in text):
                return '"' + text.decode("ascii").replace("\n", "\\n").replace("\t", "\\t") + '"'
        shown: list[str] = []
        for index in range(min(type.count, SHOWN)):
            try:
                each = element(value, index, self.read, self.thread)
            except ExpressionError as error:
                return f"<{error}>"
            if each.data is None and not shown:
                return f"<{unreadable(each)}>"
            shown.append(self.write(each, depth + 1))
        more = f", ... {type.count} in all" if type.count > SHOWN else ""
        return f"{{{', '.join(shown)}{more}}}"


def _based(number: int, base: str) -> str:
    return {"x": hex, "o": oct, "b": bin}.get(base, str)(number)


def describe_address(address: int) -> str:
    """A generic address, with the memory in which it is."""
    place = pointed(address, 0)
    return hex(address) if place.space == GLOBAL else f"{SPACES[place.space]} + {place.address:#x}"
