"""Expressions as statements of CUDA C++.

The operands of a node (`_lazy.pyx`) are other nodes, arrays in memory, or scalars; each is converted to the type in
which the operation computes, which is NumPy's choice (NEP 50). The text contains neither values of scalars, nor shapes,
nor strides, so that it names the kernel: expressions of the same structure have the same text.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy

from cupola.core.array._array import Array
from cupola.numpy._lazy import Node
from cupola.numpy._operations import COMPUTED, MEMORY, MIXED, expression

INDEX = numpy.dtype("int64")  # the type of places

Operand: TypeAlias = Node | Array | numpy.generic


class Text:
    """The statements that compute a node for one index, and what they read.

    Attributes
    ----------
    lines : list of str
        Statements. ``in0(i)`` reads an element of the first array, ``s0`` is the first scalar.
    arrays, scalars : list
        In that order.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.arrays: list[Array] = []
        self.scalars: list[numpy.generic] = []
        self._known: dict[int, str] = {}

    def add(self, operand: Operand) -> str:
        """Write what computes an operand, and return the name of its value."""
        found = self._known.get(id(operand))
        if found is None:
            found = self._known[id(operand)] = self._write(operand)
        return found

    def _write(self, operand: Operand) -> str:
        if isinstance(operand, Array):
            self.arrays.append(operand)
            name = f"v{len(self.lines)}"
            self.lines.append(f"const {COMPUTED[operand.dtype.char]} {name} = READ({len(self.arrays) - 1});")
            return name
        if not isinstance(operand, Node):
            self.scalars.append(operand)
            return f"s{len(self.scalars) - 1}"
        if operand.name == "gather":
            return self._gather(operand)
        values = [
            self.converted(self.add(value), value.dtype, to)
            for value, to in zip(operand.operands, operand.loop, strict=True)
        ]
        if operand.name == "convert":
            text = values[0]
        elif operand.form:
            text = operand.form.format(*values)
        elif operand.name == "where":
            text = f"({values[0]} ? {values[1]} : {values[2]})"
        else:
            loop = operand.loop[0]
            kinds = "".join([to.kind for to in operand.loop])
            form = MIXED.get((operand.name, kinds)) or expression(operand.name, loop.kind, loop.char)
            assert form is not None, "the operation was checked when the node was made"
            text = form.replace("T(", f"({COMPUTED[loop.char]})(").replace("<T>", f"<{COMPUTED[loop.char]}>")
            text = text.format(*values)
        name = f"v{len(self.lines)}"
        kind = COMPUTED[operand.dtype.char]
        cast = f"rounded_to_half({text})" if operand.dtype.char == "e" else f"({kind})({text})"
        self.lines.append(f"const {kind} {name} = {cast};")
        return name

    def place(self, indices: tuple[Operand, ...]) -> str:
        """Bytes that indices are from the first element: index, extent, stride and address of the report, repeated."""
        found = []
        for k in range(0, len(indices), 4):
            index = self.converted(self.add(indices[k]), indices[k].dtype, INDEX)
            found.append(f"place_of({', '.join([index, *map(self.add, indices[k + 1 : k + 4])])})")
        return " + ".join(found)

    def _gather(self, operand: Node) -> str:
        array, *indices = operand.operands
        assert isinstance(array, Array)
        place = self.place(tuple(indices))
        self.arrays.append(array)
        name = f"v{len(self.lines)}"
        char = array.dtype.char
        read = f"*(const {MEMORY[char]}*)(AT({len(self.arrays) - 1}) + {place})"
        self.lines.append(f"const {COMPUTED[char]} {name} = {read};")
        return name

    def converted(self, value: str, given: numpy.dtype, to: numpy.dtype) -> str:
        """A value of one type as one of another."""
        if given == to:
            return value
        if to.char == "e":
            return f"rounded_to_half({real_part(value, given)})"
        if to.kind == "c":
            return f"{COMPUTED[to.char]}({value})"
        if to.kind == "b" and given.kind == "c":
            return f"is_true({value})"
        return f"convert<{COMPUTED[to.char]}>::from({real_part(value, given)})"


def real_part(value: str, given: numpy.dtype) -> str:
    """What a complex number is converted to a real one by."""
    return f"{value}.re" if given.kind == "c" else value
