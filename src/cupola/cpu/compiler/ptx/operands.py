"""Operands of instructions (PTX ISA 6.4)."""

from __future__ import annotations

import re
from collections.abc import Callable

from cupola.cpu.compiler.ptx import ast
from cupola.cpu.compiler.ptx.constants import constant, constant_integer
from cupola.cpu.compiler.ptx.cursor import Cursor, is_name, parse_integer
from cupola.cpu.compiler.ptx.grammar import needs
from cupola.cpu.compiler.ptx.names import SPECIAL_REGISTERS
from cupola.cpu.compiler.ptx.scopes import Scopes

_SELECTOR = re.compile(r"b[0-7]{1,4}|h[0-3]{1,2}")
"""Parts of registers in video instructions; which of them an instruction takes is its own affair."""
_SINK = ast.Sink()


class OperandParser:
    """Reads operands in the names of the current scope.

    Attributes
    ----------
    scopes : Scopes
        The names; the reader of the body opens and closes scopes.
    labels : list
        References to labels in the operands read since it was cleared, with the index of their words.
    """

    def __init__(
        self, cursor: Cursor, scopes: Scopes, module_names: dict[str, int], problem_with: Callable[[str], str]
    ) -> None:
        self.cursor = cursor
        self.scopes = scopes
        self.module_names = module_names
        self.problem_with = problem_with  # a special register
        self.elements: dict[str, int] = {}
        self.labels: list[tuple[str, int]] = []

    def read(self, depth: int = 0) -> ast.Operand:
        """The next operand."""
        cursor = self.cursor
        words = cursor.words
        at = cursor.index
        word = words[at]
        if word == "{":
            cursor.index += 1
            return self._with_predicate(ast.Vector(self._items("}", depth)), depth)
        if word[:1] == "[":
            return self._bracket(word, depth)
        if word == "!":
            cursor.index += 1
            negated = self.read(depth)
            if not isinstance(negated, ast.Register):
                cursor.unexpected("a predicate", at + 1)
            return ast.Negated(negated)
        if word == "-" and is_name(words[at + 1].partition(".")[0]) and words[at + 1] != "WARP_SZ":  # vmad has that
            cursor.index += 1
            part = self.read(depth)
            if isinstance(part, ast.Selector):
                return ast.Selector(part.register, part.part, True)
            if not isinstance(part, ast.Register):
                cursor.unexpected("a register", at + 1)
            return ast.Selector(part, "", True)
        if word == "_":
            cursor.index += 1
            operand: ast.Operand = _SINK
        elif word and (word[0].isalpha() or word[0] in "_$%"):
            if word == "WARP_SZ":
                return constant(cursor)
            cursor.index += 1
            operand = self.resolve(word, at)
            if isinstance(operand, ast.Symbol):
                return self._offset(word, operand)
        else:
            return constant(cursor)
        return self._with_predicate(operand, depth)

    def _with_predicate(self, operand: ast.Operand, depth: int) -> ast.Operand:
        """The operand, or the pair ``d|p`` that it begins."""
        cursor = self.cursor
        if cursor.words[cursor.index] != "|" or not isinstance(operand, ast.Register | ast.Vector | ast.Sink):
            return operand
        cursor.index += 1
        second = self.read(depth)
        if not isinstance(second, ast.Register | ast.Sink):
            cursor.unexpected("a register", cursor.index - 1)
        return ast.Pair(operand, second)

    def register(self, what: str) -> ast.Register:
        """The next operand, which must be a register."""
        at = self.cursor.index
        word = self.cursor.words[at]
        operand = self.scopes.lookup(word)
        if not isinstance(operand, ast.Register):
            self.cursor.unexpected(what)
        self.cursor.index += 1
        return operand

    def _items(self, close: str, depth: int) -> tuple[ast.Operand, ...]:
        cursor = self.cursor
        if depth > 3:
            cursor.fail("the operand is nested too deeply")
        items: list[ast.Operand] = []
        if cursor.accept(close):
            return ()
        while True:
            items.append(self.read(depth + 1))
            if cursor.accept(close):
                return tuple(items)
            if not cursor.accept(","):
                cursor.unexpected(f"',' or '{close}'")

    def _bracket(self, word: str, depth: int) -> ast.Operand:
        """``[base+4]`` or a list of operands in brackets."""
        cursor = self.cursor
        at = cursor.index
        cursor.index += 1
        if len(word) > 1:  # the lexer has taken a plain address as one word
            name, _, rest = word[1:-1].replace(" ", "").replace("\t", "").partition("+")
            base = self._address_base(self.resolve(name, at), at)
            offset = 0
            if rest:
                value = parse_integer(rest.lstrip("-"))
                if value is None:
                    cursor.unexpected("an offset", at)
                offset = -value if rest[0] == "-" else value
            if isinstance(base, ast.Symbol):
                return ast.Address(ast.Symbol(base.name), base.offset + offset)
            return ast.Address(base, offset)
        if cursor.words[cursor.index] == "{":
            return ast.AddressList(self._items("]", depth))
        first = self.read(depth + 1)
        if cursor.words[cursor.index] in ("+", "-") and isinstance(first, ast.Register):
            negative = cursor.take() == "-"
            offset = constant_integer(cursor)
            address = ast.Address(first, -offset if negative else offset)
        elif isinstance(first, ast.Immediate):
            address = ast.Address(None, first.value)
        else:
            base = self._address_base(first, at + 1)
            if isinstance(base, ast.Symbol):
                address = ast.Address(ast.Symbol(base.name), base.offset)
            else:
                address = ast.Address(base)
        if cursor.accept("]"):
            return address
        if not cursor.accept(","):
            cursor.unexpected("',' or ']'")
        whole = first if not address.offset else address
        return ast.AddressList((whole, *self._items("]", depth)))

    def _address_base(self, operand: ast.Operand, at: int) -> ast.Register | ast.Symbol:
        if not isinstance(operand, ast.Register | ast.Symbol):
            self.cursor.unexpected("a register or variable", at)
        return operand

    def _offset(self, word: str, symbol: ast.Symbol) -> ast.Symbol:
        """``name+4``, ``name-4`` and ``name[2]``."""
        cursor = self.cursor
        offset = symbol.offset
        while (sign := cursor.words[cursor.index]) in ("+", "-", "["):
            at = cursor.index
            cursor.index += 1
            value = cursor.integer("a constant") if sign != "[" else constant_integer(cursor)
            if sign == "[":
                cursor.expect("]")
                size = self.elements.get(symbol.name) or self.module_names.get(word)
                if not size:
                    cursor.fail(f"{word!r} is not an array", at=at)
                value *= size
            offset += -value if sign == "-" else value
        return ast.Symbol(symbol.name, offset)

    def resolve(self, word: str, at: int) -> ast.Operand:
        """What a name stands for; a reference to a label when it is nothing else."""
        operand = self.scopes.lookup(word)
        if operand is not None:
            return operand
        if word in SPECIAL_REGISTERS:
            name, _, component = word[1:].partition(".")
            if problem := self.problem_with(f"%{name}"):
                self.cursor.fail(problem, at=at)
            return ast.Special(name, component or None)
        if word in self.module_names:
            return ast.Symbol(word)
        base, _, part = word.partition(".")
        if part:
            register = self.scopes.lookup(base)
            if isinstance(register, ast.Register) and _SELECTOR.fullmatch(part):
                return ast.Selector(register, part)
        if word[0] == "%":
            if newer := needs.of_unknown(word, (), 0, ""):
                self.cursor.fail(f"the register {word!r} {newer}, and the CPU device does not have it", at=at)
            self.cursor.fail(f"the register {word!r} is not declared", at=at)
        if not is_name(word):
            self.cursor.unexpected("an operand", at)
        self.labels.append((word, at))
        return ast.LabelRef(word)
