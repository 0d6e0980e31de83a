"""Expressions of C++ over the variables of a thread that is stopped.

There are literals, variables, members, indices, pointers and addresses, arithmetic, comparisons, casts, ``sizeof``, the
registers of the PTX (``%r1``), and slices ``x[0:8]``, which are arrays. Nothing is written, and nothing is called.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Protocol

from cupola.cpu.compiler.objects import abi

from .dwarf import Type
from .values import (
    BOOL,
    CHAR,
    DOUBLE,
    FLOAT,
    INT,
    LOCAL,
    LONG,
    SHARED,
    TYPES,
    ULONG,
    UNSIGNED,
    VOID,
    ExpressionError,
    Place,
    Value,
    element,
    load,
    make,
    member,
    pointed,
)

_PATTERN = (
    r"\s*(?:(?P<real>\d+\.\d*(?:[eE][+-]?\d+)?[fF]?|\.\d+(?:[eE][+-]?\d+)?[fF]?|\d+[eE][+-]?\d+[fF]?|\d+[fF]\b)"
    r"|(?P<whole>0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)(?P<suffix>[uUlL]*)"
    r"|(?P<name>REGISTER[A-Za-z_$][\w$]*(?:::[A-Za-z_$][\w$]*)*)"
    r"|'(?P<char>\\.|[^'\\])'"
    r"|(?P<symbol><<|>>|<=|>=|==|!=|&&|\|\||->|[-+*/%&|^~!<>?:()\[\].,=]))"
)
_TOKEN = re.compile(_PATTERN.replace("REGISTER", r"%[A-Za-z_][\w.]*|"))
_BEHIND_OPERAND = re.compile(_PATTERN.replace("REGISTER", ""))
"""Behind a value a % is the operator: ``i %n`` is no register."""
_ESCAPES = {"n": "\n", "t": "\t", "0": "\0", "r": "\r", "\\": "\\", "'": "'"}
_LEVELS = (
    ("||",),
    ("&&",),
    ("|",),
    ("^",),
    ("&",),
    ("==", "!="),
    ("<", ">", "<=", ">="),
    ("<<", ">>"),
    ("+", "-"),
    ("*", "/", "%"),
)
_WORDS = frozenset(
    [
        "unsigned",
        "signed",
        "char",
        "short",
        "int",
        "long",
        "float",
        "double",
        "bool",
        "void",
        "const",
        "volatile",
        "struct",
    ]
)
_DEEPEST = 60
_LONGEST = 2000

Evaluate = Callable[["Scope"], Value]


class Scope(Protocol):
    """What an expression is evaluated in: a frame of a thread."""

    @property
    def thread(self) -> int:
        """The linear index of the thread."""

    def variable(self, name: str) -> Value:
        """A variable, a special variable such as ``threadIdx``, or a register.

        Raises
        ------
        ExpressionError
            When there is none of that name.
        """

    def type_named(self, name: str) -> Type | None:
        """A type of the program."""

    def read(self, place: Place, size: int) -> bytes | None:
        """Memory; None where there is none."""


class Expression:
    """An expression, ready to be evaluated.

    Parameters
    ----------
    text
        Of C++.

    Raises
    ------
    ExpressionError
        When it cannot be read.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._evaluate = _Parser(text).whole()

    def __call__(self, scope: Scope) -> Value:
        """The value in a frame of a thread.

        Raises
        ------
        ExpressionError
            When there is none.
        """
        try:
            return self._evaluate(scope)
        except (RecursionError, OverflowError) as error:
            raise ExpressionError(f"'{self.text}' cannot be evaluated: {error}") from None

    def holds(self, scope: Scope) -> bool:
        """Whether the value is not zero."""
        return is_true(self(scope))


def is_true(value: Value) -> bool:
    """Whether a value is not zero."""
    return bool(value.number)


class _Parser:
    def __init__(self, text: str) -> None:
        if len(text) > _LONGEST:
            raise ExpressionError("the expression is too long")
        self.text = text
        self.tokens: list[re.Match[str]] = []
        at, end = 0, len(text.rstrip())
        while at < end:
            before = self.tokens[-1] if self.tokens else None
            is_value = before is not None and (not before["symbol"] or before["symbol"] in ")]")
            is_value &= not self._is_cast()
            match = (_BEHIND_OPERAND if is_value else _TOKEN).match(text, at)
            if match is None:
                rest = text[at:].strip()
                hint = "; several elements are x[0:3]" if rest.startswith("@") else ""
                raise ExpressionError(f"'{text}': {rest[:20]!r} is not understood{hint}")
            self.tokens.append(match)
            at = match.end()
        self.at = 0
        self.depth = 0

    def _is_cast(self) -> bool:
        """Whether the tokens so far end with ``(float *)`` and the like, behind which a value begins."""
        words = [token[0].strip() for token in self.tokens]
        if words[-1:] != [")"] or "(" not in words:
            return False
        begin = len(words) - 1 - words[::-1].index("(")
        inside = [word for word in words[begin + 1 : -1] if word != "*"]
        behind = words[begin - 1] if begin else ""
        known = all(word in _WORDS or word in TYPES for word in inside)
        return bool(inside) and (known or words[-2] == "*") and behind != "sizeof"

    def whole(self) -> Evaluate:
        if not self.tokens:
            raise ExpressionError("there is no expression")
        result = self.choice()
        if self.at < len(self.tokens):
            if self.peek() == "=":
                raise ExpressionError("variables are read only: write == to compare")
            raise ExpressionError(f"'{self.text}': {self.peek()!r} is not expected there")
        return result

    def peek(self) -> str:
        return self.tokens[self.at][0].strip() if self.at < len(self.tokens) else ""

    def accept(self, *words: str) -> str:
        word = self.peek()
        if word and word in words:
            self.at += 1
            return word
        return ""

    def expect(self, word: str) -> None:
        if not self.accept(word):
            found = f"not {self.peek()!r}" if self.peek() else "which is missing"
            raise ExpressionError(f"'{self.text}': {word!r} is expected, {found}")

    def choice(self) -> Evaluate:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise ExpressionError("the expression is nested too deeply")
        condition = self.binary(0)
        if self.accept("?"):
            yes = self.choice()
            self.expect(":")
            no = self.choice()
            chosen = condition
            condition = lambda scope: yes(scope) if is_true(chosen(scope)) else no(scope)  # noqa: E731
        self.depth -= 1
        return condition

    def binary(self, level: int) -> Evaluate:
        if level == len(_LEVELS):
            return self.unary()
        left = self.binary(level + 1)
        while word := self.accept(*_LEVELS[level]):
            left = _operation(word, left, self.binary(level + 1))
        return left

    def unary(self) -> Evaluate:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise ExpressionError("the expression is nested too deeply")
        result = self._unary()
        self.depth -= 1
        return result

    def _unary(self) -> Evaluate:
        if word := self.accept("-", "+", "!", "~", "*", "&"):
            inner = self.unary()
            return _UNARY[word](inner)
        if self.peek() == "sizeof":
            self.at += 1
            measured = self.cast()
            if measured is not None:
                return lambda scope: make(ULONG, measured(scope).size)
            named = [t[0].strip() for t in self.tokens[self.at : self.at + 3]]
            if len(named) == 3 and named[0] == "(" and named[2] == ")" and self.tokens[self.at + 1]["name"]:
                self.at += 3
                return _size_of(named[1])
            inner = self.unary()
            return lambda scope: make(ULONG, inner(scope).type.size)
        kind = self.cast()
        if kind is not None:
            inner = self.unary()
            return lambda scope: cast(inner(scope), kind(scope))
        return self.postfix(self.primary())

    def cast(self) -> Callable[[Scope], Type] | None:
        """``(type)``; None where there is something else."""
        before = self.at
        if not self.accept("("):
            return None
        words = []
        while self.at < len(self.tokens) and self.tokens[self.at]["name"] and self.peek()[0] != "%":
            words.append(self.peek())
            self.at += 1
        stars = 0
        while self.accept("*"):
            stars += 1
        names = [word for word in words if word not in ("const", "volatile", "struct")]
        follows = self.tokens[self.at + 1] if self.at + 1 < len(self.tokens) else None
        known = bool(names) and (all(word in _WORDS for word in names) or names[0] in TYPES)
        starts = follows is not None and (follows[0].strip() in ("(", "*", "&", "~", "!") or not follows["symbol"])
        if not words or self.peek() != ")" or not (known or stars or (len(names) == 1 and starts)):
            self.at = before
            return None
        if not known and not stars and follows is not None and follows[0].strip() in ("(", "*", "&"):
            self.at = before  # (a) * b, (a) & b
            return None
        self.at += 1
        return lambda scope: _type(scope, names, stars)

    def postfix(self, value: Evaluate) -> Evaluate:
        while word := self.accept("[", ".", "->"):
            if word == "[":
                first = self.choice()
                value = _slice(value, first, self.choice()) if self.accept(":") else _index(value, first)
                self.expect("]")
            else:
                match = self.tokens[self.at] if self.at < len(self.tokens) else None
                if match is None or not match["name"]:
                    raise ExpressionError(f"'{self.text}': the name of a member is expected behind {word!r}")
                self.at += 1
                value = _member(value, match["name"], is_pointer=word == "->")
        return value

    def primary(self) -> Evaluate:
        if self.accept("("):
            inner = self.choice()
            self.expect(")")
            return inner
        if self.at == len(self.tokens):
            raise ExpressionError(f"'{self.text}' ends too early")
        match = self.tokens[self.at]
        self.at += 1
        if match["real"]:
            text = match["real"]
            constant = make(FLOAT if text[-1] in "fF" else DOUBLE, float(text.rstrip("fF")))
        elif match["whole"]:
            constant = _whole(match["whole"], match["suffix"].lower())
        elif match["char"]:
            text = match["char"]
            constant = make(CHAR, ord(_ESCAPES.get(text[1], text[1]) if text[0] == "\\" else text) & 255)
        elif match["name"]:
            name = match["name"]
            if name in ("true", "false"):
                constant = make(BOOL, int(name == "true"))
            else:
                return lambda scope: scope.variable(name)
        else:
            raise ExpressionError(f"'{self.text}': {match[0].strip()!r} is not expected there")
        return lambda scope: constant


def _whole(text: str, suffix: str) -> Value:
    is_octal = text[0] == "0" and text.isdecimal() and len(text) > 1
    try:
        number = int(text, 8 if is_octal else 0)
    except ValueError:
        raise ExpressionError(f"{text} is no number: one that begins with 0 is in base 8") from None
    if "u" in suffix:
        return make(ULONG if "l" in suffix or number >> 32 else UNSIGNED, number)
    if number >> 63:
        return make(ULONG, number)
    return make(LONG if "l" in suffix or number >> 31 else INT, number)


def _type(scope: Scope, names: list[str], stars: int) -> Type:
    name = " ".join(names)
    found = scope.type_named(name) or TYPES.get(name)
    if found is None and all(word in _WORDS for word in names):
        plain = [word for word in names if word not in ("signed", "int")]
        found = TYPES.get(" ".join(plain) or "int") or TYPES.get(name.replace(" int", ""))
    if found is None:
        raise ExpressionError(f"there is no type {name!r} here")
    for _ in range(stars):
        found = Type("pointer", f"{found.name}{'' if found.name.endswith('*') else ' '}*", 8, found)
    return found


def address_of(value: Value) -> int:
    """The generic address of what is in memory."""
    place = value.place
    if place is None:
        raise ExpressionError("it is in a register, and has no address")
    return {SHARED: abi.SHARED_WINDOW, LOCAL: abi.LOCAL_WINDOW}.get(place.space, 0) + place.address


def decayed(value: Value) -> Value:
    """An array as the pointer to its first element."""
    if value.type.kind == "array" and value.place is not None:
        target = value.type.target or VOID
        return make(Type("pointer", f"{target.name} *", 8, target), address_of(value))
    return value


def cast(value: Value, type: Type) -> Value:
    """A value as one of another type."""
    if type.kind in ("struct", "array", "void", "function"):
        raise ExpressionError(f"a value cannot be cast to {type.name}; *({type.name} *) &x reads memory as one")
    return make(type, decayed(value).number)


def _common(left: Type, right: Type) -> Type:
    """The usual arithmetic conversions."""
    for type in (left, right):
        if type.kind == "float" and type.size == 8:
            return DOUBLE
    if "float" in (left.kind, right.kind):
        return FLOAT
    if "struct" in (left.kind, right.kind):
        return FLOAT  # half precision
    ranks = []
    for type in (left, right):
        is_small = type.size < 4 or type.kind in ("bool", "char", "enum")
        ranks.append(INT if is_small else type)
    size = max(ranks[0].size, ranks[1].size)
    unsigned = any(rank.size == size and rank.kind in ("uint", "pointer") for rank in ranks)
    return {4: UNSIGNED if unsigned else INT}.get(size, ULONG if unsigned else LONG)


def _operation(word: str, left: Evaluate, right: Evaluate) -> Evaluate:
    if word == "||":
        return lambda scope: make(BOOL, int(is_true(left(scope)) or is_true(right(scope))))
    if word == "&&":
        return lambda scope: make(BOOL, int(is_true(left(scope)) and is_true(right(scope))))

    def operate(scope: Scope) -> Value:
        return compute(word, decayed(left(scope)), decayed(right(scope)))

    return operate


_COMPARISONS: dict[str, Callable[[int | float, int | float], bool]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    ">": lambda a, b: a > b,
    "<=": lambda a, b: a <= b,
    ">=": lambda a, b: a >= b,
}
_WHOLE: dict[str, Callable[[int, int], int]] = {
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
}


def compute(word: str, a: Value, b: Value) -> Value:
    """Two values combined as C++ does."""
    if "pointer" in (a.type.kind, b.type.kind) and word in ("+", "-"):
        return _pointers(word, a, b)
    type = _common(a.type, b.type)
    x, y = make(type, a.number).number, make(type, b.number).number
    if word in _COMPARISONS:
        return make(BOOL, int(_COMPARISONS[word](x, y)))
    if isinstance(x, float) or isinstance(y, float):
        if word not in ("+", "-", "*", "/"):
            raise ExpressionError(f"{word!r} is for whole numbers")
        if word == "/" and y == 0:
            return make(type, float("nan") if x == 0 or x != x else float("inf") * (1 if x > 0 else -1))
        return make(type, {"+": x + y, "-": x - y, "*": x * y}[word] if word != "/" else x / y)
    if word in ("/", "%"):
        if y == 0:
            raise ExpressionError("division by zero")
        quotient = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
        return make(type, quotient if word == "/" else x - y * quotient)
    if word in ("<<", ">>"):
        own = _common(a.type, INT)
        count = int(b.number)
        if not 0 <= count < 8 * own.size:
            raise ExpressionError(f"a shift by {count} of {8 * own.size} bits")
        number = int(make(own, a.number).number)
        return make(own, number << count if word == "<<" else number >> count)
    if word in _WHOLE:
        return make(type, _WHOLE[word](x, y))
    return make(type, {"+": x + y, "-": x - y, "*": x * y}[word])


def _pointers(word: str, a: Value, b: Value) -> Value:
    if a.type.kind != "pointer":
        a, b = b, a
        if word == "-":
            raise ExpressionError("a pointer cannot be subtracted from a number")
    size = max(1, (a.type.target or VOID).size)
    if b.type.kind == "pointer":
        if word == "+":
            raise ExpressionError("pointers cannot be added")
        return make(LONG, (int(a.number) - int(b.number)) // size)
    distance = int(b.number) * size
    return make(a.type, int(a.number) + (distance if word == "+" else -distance))


def _negated(inner: Evaluate) -> Evaluate:
    def negate(scope: Scope) -> Value:
        value = inner(scope)
        type = _common(value.type, INT)
        return make(type, -value.number)

    return negate


def _flipped(inner: Evaluate) -> Evaluate:
    def flip(scope: Scope) -> Value:
        value = inner(scope)
        number = value.number
        if isinstance(number, float):
            raise ExpressionError("'~' is for whole numbers")
        return make(_common(value.type, INT), ~number)

    return flip


def _pointee(inner: Evaluate) -> Evaluate:
    return lambda scope: element(decayed(inner(scope)), 0, scope.read, scope.thread)


def _address(inner: Evaluate) -> Evaluate:
    def take(scope: Scope) -> Value:
        value = inner(scope)
        return make(Type("pointer", f"{value.type.name} *", 8, value.type), address_of(value))

    return take


_UNARY: dict[str, Callable[[Evaluate], Evaluate]] = {
    "-": _negated,
    "+": lambda inner: inner,
    "!": lambda inner: lambda scope: make(BOOL, int(not is_true(inner(scope)))),
    "~": _flipped,
    "*": _pointee,
    "&": _address,
}


def _size_of(name: str) -> Evaluate:
    def evaluate(scope: Scope) -> Value:
        try:
            kind = scope.variable(name).type
        except ExpressionError:
            kind = _type(scope, [name], 0)
        return make(ULONG, kind.size)

    return evaluate


def _index(value: Evaluate, index: Evaluate) -> Evaluate:
    def evaluate(scope: Scope) -> Value:
        number = index(scope).number
        if isinstance(number, float):
            raise ExpressionError("an index is a whole number")
        return element(value(scope), number, scope.read, scope.thread)

    return evaluate


def _slice(value: Evaluate, first: Evaluate, last: Evaluate) -> Evaluate:
    def evaluate(scope: Scope) -> Value:
        begin, end = int(first(scope).number), int(last(scope).number)
        if not 0 < end - begin <= 1 << 16:
            raise ExpressionError("a slice x[a:b] has at least one element, and at most 65536")
        whole = value(scope)
        one = element(whole, begin, scope.read, scope.thread)
        kind = Type("array", f"{one.type.name}[{end - begin}]", (end - begin) * one.type.size, one.type, end - begin)
        if one.place is not None:
            return load(kind, one.place, scope.read)
        parts = [element(whole, i, scope.read, scope.thread).data or b"" for i in range(begin, end)]
        return Value(kind, b"".join(parts))

    return evaluate


def _member(value: Evaluate, name: str, *, is_pointer: bool) -> Evaluate:
    def evaluate(scope: Scope) -> Value:
        whole = value(scope)
        if whole.type.kind == "pointer":  # a dot is understood, too
            target = whole.type.target or VOID
            whole = load(target, pointed(int(whole.number), scope.thread), scope.read)
        elif is_pointer:
            raise ExpressionError(f"a {whole.type.name} is no pointer: use '.'")
        return member(whole, name, scope.read)

    return evaluate
