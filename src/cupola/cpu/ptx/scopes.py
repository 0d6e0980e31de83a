"""Names in nested scopes (PTX ISA 4.3 and 6.4), flattened.

Inline assembly brings nested scopes whose registers and labels hide outer ones of the same name, and which often
exist many times over. What an inner scope declares is renamed to ``name.number``, which no PTX name can be.

Labels may be used before they are declared, so a name that is nothing else becomes a reference to a label, and
each scope settles, when it closes, the references to its own labels; the rest is its parent's.
"""

from __future__ import annotations

from collections.abc import Callable

from cupola.cpu.ptx import ast

_LONGEST_NUMBER = 9  # digits of a register in a range

Rename = Callable[[str], None]


class Scope:
    """The names of one pair of braces.

    Attributes
    ----------
    names : dict
        What each declared name stands for.
    ranges : dict
        Registers declared as ``%r<10>``: the type and the count by prefix.
    cache : dict
        Operands of one word that were met in this scope, by their text.
    labels : dict
        Declared labels, with their unique names.
    pending : dict
        References to labels that are not settled: how to rename each, and the index of its word.
    """

    __slots__ = ("cache", "labels", "names", "number", "parent", "pending", "ranges")

    def __init__(self, parent: Scope | None, number: int) -> None:
        self.parent = parent
        self.number = number
        self.names: dict[str, ast.Operand] = {}
        self.ranges: dict[str, tuple[str, int]] = {}
        self.cache: dict[str, ast.Operand] = {}
        self.labels: dict[str, str] = {}
        self.pending: dict[str, list[tuple[Rename, int]]] = {}

    def unique(self, name: str) -> str:
        """The name in the flattened function of what this scope declares as ``name``."""
        return f"{name}.{self.number}" if self.number else name

    def lookup(self, name: str, registers: dict[str, str]) -> ast.Operand | None:
        """What a name stands for here; a register of a range enters ``registers`` on first use."""
        scope: Scope | None = self
        while scope is not None:
            operand = scope.names.get(name)
            if operand is None and scope.ranges:
                operand = scope._from_range(name, registers)
            if operand is not None:
                return operand
            scope = scope.parent
        return None

    def _from_range(self, name: str, registers: dict[str, str]) -> ast.Register | None:
        digits = len(name) - len(name.rstrip("0123456789"))
        for count in range(min(digits, _LONGEST_NUMBER), 0, -1):
            prefix, number = name[:-count], name[-count:]
            declared = self.ranges.get(prefix)
            if declared and int(number) < declared[1] and (number[0] != "0" or number == "0"):
                unique = self.unique(name)
                registers[unique] = declared[0]
                register = self.names[name] = ast.Register(unique)
                return register
        return None

    def refer(self, label: str, rename: Rename, index: int) -> None:
        """Note a use of a label."""
        self.pending.setdefault(label, []).append((rename, index))

    def close(self) -> None:
        """Settle the references to this scope's labels and hand the others to the parent."""
        for label, unique in self.labels.items():
            for rename, _ in self.pending.pop(label, ()):
                rename(unique)
        if self.parent is None:
            return
        mine, other = self.pending, self.parent.pending
        if len(mine) > len(other):  # join the smaller one to the larger: deep nesting stays cheap
            mine, other = other, mine
        for label, uses in mine.items():
            known = other.setdefault(label, uses)
            if known is not uses:
                known.extend(uses)
        self.parent.pending = other
