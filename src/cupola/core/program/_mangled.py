"""The types of a kernel's parameters from its mangled name (Itanium C++ ABI, "Mangling").

PTX says that a parameter is an integer of 32 bits; only the name says whether it is an ``int`` or an ``unsigned int``.
The name is read once for each kernel, together with its parameters. A name that is not understood is not an error: the
types are then unknown.
"""

from __future__ import annotations

SIGNED, UNSIGNED, OTHER = "s", "u", ""

# The letters of builtin types that a kernel may have. A plain char may be either, and is OTHER.
_BUILTIN = dict.fromkeys("asilxn", SIGNED) | dict.fromkeys("htjmyo", UNSIGNED) | dict.fromkeys("vwbcfdeg", OTHER)


class _Unknown(Exception):
    """The name has something that this does not read."""


# Classes that stand for numbers, under letters that no builtin type has.
_NUMBERS = {"6__half": "H", "13__nv_bfloat16": "B"}


def types_of(symbol: str) -> list[str] | None:
    """For each parameter of the function that `symbol` names its type; None if unknown.

    A type is the letter of a builtin type, P with the letter of a type that is pointed to, or OTHER.
    """
    if not symbol.startswith("_Z"):
        return None
    try:
        return _Reader(symbol[2:]).parameters()
    except (_Unknown, IndexError, ValueError, RecursionError):
        return None


def sign_of(kind: str) -> str:
    """SIGNED, UNSIGNED or OTHER for a type of types_of."""
    return _BUILTIN.get(kind, OTHER)


def signs_of(symbol: str) -> list[str] | None:
    """SIGNED, UNSIGNED or OTHER for each parameter of the function that `symbol` names; None if unknown."""
    types = types_of(symbol)
    return None if types is None else [sign_of(kind) for kind in types]


class _Reader:
    """Reads a mangled name from left to right; each method reads what it is named for and returns what a type is."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.substitutions: list[str] = []  # what S_, S0_ ... stand for
        self.arguments: list[str] = []  # what T_, T0_ ... stand for: the arguments of the last template

    def parameters(self) -> list[str]:
        is_template = self.name()
        if is_template:
            self.type()  # of the result, which only templates tell
        found = []
        while self.at < len(self.text) and self.text[self.at] != ".":
            found.append(self.type())
        return [] if found == ["v"] else found

    # --- parts ----------------------------------------------------------------------------------------

    def accept(self, text: str) -> bool:
        if self.text.startswith(text, self.at):
            self.at += len(text)
            return True
        return False

    def expect(self, text: str) -> None:
        if not self.accept(text):
            raise _Unknown

    def add(self, kind: str) -> str:
        self.substitutions.append(kind)
        return kind

    def number(self) -> int:
        start = self.at
        while self.text[self.at].isdigit():
            self.at += 1
        return int(self.text[start : self.at])

    def sequence(self) -> int:
        """The number of a substitution or a template parameter: nothing is the first, 0 the second."""
        end = self.text.index("_", self.at)
        digits, self.at = self.text[self.at : end], end + 1
        return int(digits, 36) + 1 if digits else 0

    # --- names ----------------------------------------------------------------------------------------

    def name(self) -> bool:
        """The name of a function or class; whether it ends with the arguments of a template."""
        if self.accept("N"):
            return self.nested()
        if self.accept("S"):
            if not self.accept("t"):
                self.substitution()
                self.template_arguments()
                return True
            self.source_name()
        else:
            self.source_name()
        if self.text[self.at : self.at + 1] != "I":
            return False
        self.add(OTHER)
        self.template_arguments()
        return True

    def nested(self) -> bool:
        while self.text[self.at] in "rVK":
            self.at += 1
        is_template = False
        parts = 0
        while not self.accept("E"):
            if self.accept("S"):
                if not self.accept("t"):
                    self.substitution()
                is_template = False
                continue
            if self.text[self.at] == "I":
                self.template_arguments()
                is_template = True
            else:
                self.source_name()
                is_template = False
            parts += 1
            if self.text[self.at] != "E":
                self.add(OTHER)
        if not parts:
            raise _Unknown
        return is_template

    def source_name(self) -> None:
        self.accept("L")  # of a static function
        length = self.number()
        if length <= 0 or self.at + length > len(self.text):
            raise _Unknown
        self.at += length
        while self.accept("B"):  # tags
            self.at += self.number()

    def template_arguments(self) -> None:
        self.expect("I")
        arguments = []
        while not self.accept("E"):
            arguments += self.template_argument()
        self.arguments = arguments

    def template_argument(self) -> list[str]:
        if self.accept("L"):  # a value
            if self.accept("_Z"):
                raise _Unknown
            self.type()
            self.at = self.text.index("E", self.at) + 1
            return [OTHER]
        if self.accept("J"):  # a pack
            pack: list[str] = []
            while not self.accept("E"):
                pack += self.template_argument()
            return [OTHER]
        if self.text[self.at] == "X":
            raise _Unknown
        outer = self.arguments
        found = self.type()
        self.arguments = outer
        return [found]

    def substitution(self) -> str:
        """What comes behind S."""
        if self.text[self.at] in "absiod":  # names of the standard library
            self.at += 1
            return OTHER
        return self.substitutions[self.sequence()]

    # --- types ----------------------------------------------------------------------------------------

    def type(self) -> str:
        letter = self.text[self.at]
        if letter in _BUILTIN:
            self.at += 1
            return letter
        if letter in "PRO":
            self.at += 1
            target = self.type()
            return self.add("P" + target if letter == "P" and len(target) == 1 else OTHER)
        if letter in "rVK":
            while self.text[self.at] in "rVK":
                self.at += 1
            return self.add(self.type())
        if letter == "T":
            self.at += 1
            return self.add(self.arguments[self.sequence()])
        if letter == "A":
            self.at += 1
            self.number()
            self.expect("_")
            self.type()
            return self.add(OTHER)
        if letter == "D":
            return self.extended()
        if letter == "F":
            self.at += 1
            while not self.accept("E"):
                self.type()
            return self.add(OTHER)
        if letter == "S" and self.text[self.at + 1] != "t":
            self.at += 1
            found = self.substitution()
            if self.text[self.at : self.at + 1] != "I":
                return found
            self.class_arguments()
            return self.add(OTHER)
        return self.class_or_enum()

    def extended(self) -> str:
        """A builtin type of two letters."""
        letters = self.text[self.at : self.at + 2]
        if letters not in ("Dh", "Di", "Ds", "Du", "Dn", "DF"):
            raise _Unknown
        self.at += 2
        if letters == "DF":  # _Float16 and its siblings
            self.at = self.text.index("_", self.at) + 1
        return OTHER

    def class_or_enum(self) -> str:
        outer, start = self.arguments, self.at
        self.name()
        self.arguments = outer
        return self.add(_NUMBERS.get(self.text[start : self.at], OTHER))

    def class_arguments(self) -> None:
        outer = self.arguments
        self.template_arguments()
        self.arguments = outer
