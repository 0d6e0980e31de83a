"""Names in nested scopes (PTX ISA 4.3 and 6.4), flattened.

Inline assembly brings nested scopes whose registers and labels hide outer ones of the same name, and which often
exist many times over. What an inner scope declares is renamed to ``name.number``, which no PTX name can be.

A name has a stack of meanings, the innermost on top, so that finding one does not take longer the deeper it is nested.
Labels may be used before they are declared: a name that is nothing else becomes a reference to a label, and each scope
settles, when it closes, the references to its own labels; the rest is its parent's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from cupola.cpu.compiler.ptx import ast

_LONGEST_NUMBER = 9  # digits of a register in a range

Rename = Callable[[str], None]


@dataclass(eq=False, slots=True)
class Scope:
    """One pair of braces.

    Attributes
    ----------
    number, depth : int
        Every inner scope of a function has its own number; the function's own has number and depth 0.
    cache : dict
        Operands of one word that were met in this scope, by their text.
    labels : dict
        Declared labels, with their unique names.
    pending : dict
        References to labels that are not settled: how to rename each, and the index of its word.
    """

    number: int
    depth: int
    cache: dict[str, ast.Operand] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    pending: dict[str, list[tuple[Rename, int]]] = field(default_factory=dict)
    declared: set[str] = field(default_factory=set)
    found: list[str] = field(default_factory=list)  # registers of this scope's ranges that are in use
    ranges: list[str] = field(default_factory=list)

    def unique(self, name: str) -> str:
        """The name in the flattened function of what this scope declares as ``name``."""
        return f"{name}.{self.number}" if self.number else name

    def refer(self, label: str, rename: Rename, index: int) -> None:
        """Note a use of a label."""
        self.pending.setdefault(label, []).append((rename, index))


class Scopes:
    """The names that can be seen at one place of a function.

    Attributes
    ----------
    current : Scope
        The innermost open scope.
    registers : dict
        The types of the registers in use, by unique name: a register of a range enters here when it is first named.
    """

    def __init__(self, registers: dict[str, str]) -> None:
        self.registers = registers
        self.current = Scope(0, 0)
        self._open = [self.current]
        self._count = 0
        self._names: dict[str, list[tuple[int, ast.Operand]]] = {}  # (depth, meaning), innermost last
        self._ranges: dict[str, list[tuple[int, str, int]]] = {}  # by prefix: (depth, type, count), innermost last
        self._range_depths = [-1]

    def enter(self) -> None:
        """Open a scope."""
        self._count += 1
        self.current = Scope(self._count, self.current.depth + 1)
        self._open.append(self.current)

    def leave(self) -> None:
        """Close the innermost scope, settle its labels, and go on in its parent."""
        scope = self._open.pop()
        self.settle(scope)
        for name in (*scope.declared, *scope.found):
            self._names[name].pop()
        for prefix in scope.ranges:
            self._ranges[prefix].pop()
        if self._range_depths[-1] == scope.depth:
            self._range_depths.pop()
        self.current = parent = self._open[-1]
        mine, other = scope.pending, parent.pending
        if len(mine) > len(other):  # join the smaller one to the larger: deep nesting stays cheap
            mine, other = other, mine
        for label, uses in mine.items():
            known = other.setdefault(label, uses)
            if known is not uses:
                known.extend(uses)
        parent.pending = other

    @staticmethod
    def settle(scope: Scope) -> None:
        """Rename the references to the scope's own labels."""
        for label, unique in scope.labels.items():
            for rename, _ in scope.pending.pop(label, ()):
                rename(unique)

    def declare(self, name: str, meaning: ast.Operand) -> bool:
        """Give a name a meaning in the current scope; False when it has one there already."""
        scope = self.current
        if name in scope.declared:
            return False
        scope.declared.add(name)
        self._names.setdefault(name, []).append((scope.depth, meaning))
        scope.cache.clear()  # an outer name may be hidden from here on
        return True

    def declare_range(self, prefix: str, kind: str, count: int) -> None:
        """Declare the registers ``prefix0`` to ``prefix(count-1)``."""
        scope = self.current
        scope.ranges.append(prefix)
        self._ranges.setdefault(prefix, []).append((scope.depth, kind, count))
        if self._range_depths[-1] != scope.depth:
            self._range_depths.append(scope.depth)
        scope.cache.clear()

    def lookup(self, name: str) -> ast.Operand | None:
        """What a name stands for here, if it is declared; labels are not."""
        stack = self._names.get(name)
        depth, meaning = stack[-1] if stack else (-1, None)
        if self._range_depths[-1] > depth:
            return self._from_range(name, depth) or meaning
        return meaning

    def _from_range(self, name: str, outer: int) -> ast.Register | None:
        """The register of the innermost range that has it, among those deeper than ``outer``."""
        digits = len(name) - len(name.rstrip("0123456789"))
        best: tuple[int, str] = (outer, "")
        for count in range(min(digits, _LONGEST_NUMBER), 0, -1):
            number = name[-count:]
            if number[0] == "0" and count > 1:
                continue
            for depth, kind, size in reversed(self._ranges.get(name[:-count], ())):
                if depth <= best[0]:
                    break
                if int(number) < size:
                    best = (depth, kind)
                    break
        depth, kind = best
        if depth == outer:
            return None
        scope = self._open[depth]
        register = ast.Register(scope.unique(name))
        self.registers[register.name] = kind
        self._names.setdefault(name, []).append((depth, register))
        scope.found.append(name)
        return register
