"""Names of functions as they are written, from mangled ones: of C++ (Itanium C++ ABI), as far as kernels and their
helpers usually need it, and of cuTile.

What is not understood stays mangled. Parameters are left out, and so are ABI tags, of which numba has long ones.
"""

from __future__ import annotations

import fnmatch
import re

_BUILTIN = {
    "v": "void", "b": "bool", "c": "char", "a": "signed char", "h": "unsigned char", "s": "short",
    "t": "unsigned short", "i": "int", "j": "unsigned int", "l": "long", "m": "unsigned long", "x": "long long",
    "y": "unsigned long long", "f": "float", "d": "double", "w": "wchar_t",
}  # fmt: skip
_SUFFIX = {"j": "u", "l": "l", "m": "ul", "x": "ll", "y": "ull"}


class _Unknown(Exception):
    """Something that this does not read."""


def readable(symbol: str) -> str:
    """``scale<float>`` for ``_Z5scaleIfEvPT_f``, and what cuTile has put types to; other names as they are."""
    if not symbol.startswith("_Z"):
        return of_tiles(symbol) or symbol
    try:
        return _Reader(symbol[2:]).encoding()
    except (_Unknown, IndexError):
        return symbol


def of_tiles(symbol: str) -> str:
    """The name of a function in cuTile; empty if it is none."""
    tiles = re.fullmatch(r"(\w+)@[^@]*:\d+:\d+.*|([A-Za-z_]\w*?)_Kt\d+(?:_\w+)*", symbol)
    return (tiles[1] or tiles[2]) if tiles else ""


def matches(symbol: str, pattern: str) -> bool:
    """Whether a pattern is for a function, by its name in C++ or by its mangled one."""
    return any(name == pattern or fnmatch.fnmatchcase(name, pattern) for name in {symbol, readable(symbol)})


class _Reader:
    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.known: list[str] = []  # what S_, S0_ ... stand for

    def peek(self, text: str) -> bool:
        return self.text.startswith(text, self.at)

    def take(self, text: str) -> bool:
        if not self.peek(text):
            return False
        self.at += len(text)
        return True

    def encoding(self) -> str:
        return self.name()

    def name(self) -> str:
        if self.take("N"):
            return self.nested()
        if self.take("L"):
            pass  # of a file: static
        if self.peek("S") and not self.peek("St"):
            found = self.substitution()
        else:
            found = ("std::" if self.take("St") else "") + self.unqualified()
            if self.peek("I"):
                self.known.append(found)
        return found + self.arguments() if self.peek("I") else found

    def nested(self) -> str:
        while self.take("K") or self.take("V") or self.take("r"):
            pass
        parts: list[str] = []
        while not self.take("E"):
            if self.peek("I"):
                parts[-1] += self.arguments()
            elif self.peek("S") and not self.peek("St"):
                parts = [self.substitution()]
                continue
            else:
                self.take("L")
                parts.append("std" if self.take("St") else self.unqualified())
            if not self.peek("E"):
                self.known.append("::".join(parts))
        return "::".join(part for part in parts if not part.startswith("_GLOBAL__N"))

    def unqualified(self) -> str:
        name = self.source_name()
        while self.take("B"):
            self.source_name()
        return name

    def source_name(self) -> str:
        number = re.compile(r"\d+").match(self.text, self.at)
        if number is None:
            raise _Unknown
        self.at = number.end() + int(number[0])
        return self.text[number.end() : self.at]

    def substitution(self) -> str:
        found = re.compile(r"S([0-9A-Z]*)_").match(self.text, self.at)
        if found is None:
            raise _Unknown
        self.at = found.end()
        return self.known[int(found[1], 36) + 1 if found[1] else 0]

    def arguments(self) -> str:
        self.take("I")
        found: list[str] = []
        while not self.take("E"):
            if self.take("J"):
                while not self.take("E"):
                    found.append(self.argument())
            else:
                found.append(self.argument())
        return f"<{', '.join(found)}>"

    def argument(self) -> str:
        if not self.take("L"):
            return self.type()
        kind = self.type()
        value = re.compile(r"(n?)([0-9a-f]+)E").match(self.text, self.at)
        if value is None:
            raise _Unknown
        self.at = value.end()
        if kind == "bool":
            return "true" if value[2] == "1" else "false"
        return ("-" if value[1] else "") + value[2]

    def type(self) -> str:
        for mark, behind in (("P", "*"), ("R", "&"), ("O", "&&")):
            if self.take(mark):
                found = self.type() + behind
                self.known.append(found)
                return found
        if self.take("K"):
            found = f"const {self.type()}"
            self.known.append(found)
            return found
        letter = self.text[self.at]
        if letter in _BUILTIN:
            self.at += 1
            return _BUILTIN[letter]
        if letter == "S" and not self.peek("St"):
            return self.name()
        if letter.isdigit() or letter == "N" or self.peek("St"):
            found = self.name()
            self.known.append(found)
            return found
        raise _Unknown
