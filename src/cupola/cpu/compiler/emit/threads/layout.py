"""Where the named things of a kernel lie: parameters, variables of the module, shared and local memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field

from cupola.cpu.compiler.objects import abi
from cupola.cpu.compiler.ptx import ast
from cupola.cpu.compiler.records import dataclass

SHARED_RESERVED = 1024
"""Bytes of shared memory that the system takes for each block (compute capability 8.0 on)."""


@dataclass(frozen=True, slots=True)
class Place:
    """A symbol's state space and its offset there (``global`` and ``const``: its number in the module's order).

    The space of a function is ``code``, its offset its address. ``opaque`` is a texture or surface reference, which
    stands for the object that it holds, not for its address. ``align`` is what the driver makes the address of a
    variable in ``global`` and ``const`` a multiple of; the offsets of others are from a place with any alignment.
    """

    space: str
    offset: int
    size: int
    opaque: bool = False
    align: int = 1

    def misalignment(self, offset: int, size: int) -> int:
        """How far the byte at an offset may be behind a multiple of a size, a power of two; 0 when it is one."""
        if self.space not in ("global", "const"):
            return (self.offset + offset) % size
        return offset % size if self.align % size == 0 else size - 1


OPAQUE = frozenset(["texref", "samplerref", "surfref"])
"""Types of variables that nobody knows the inside of (PTX ISA 5.3)."""


@dataclass(slots=True)
class Layout:
    """The places of all symbols that one kernel can name.

    Attributes
    ----------
    param_bytes
        Size of the buffer of parameters.
    static_shared
        Bytes of shared memory declared with a size; dynamic shared memory begins there.
    reserved_shared
        Bytes of shared memory behind all others that are the system's: none, or `SHARED_RESERVED` when the kernel asks
        where they are, as cooperative groups do that keep barriers and values there.
    local_bytes
        Bytes of local memory that a thread's variables take.
    has_stack
        A thread also has a stack in local memory, behind the variables (see `passes.join_functions`).
    code_base
        That of the module (`ast.Module`).
    """

    places: dict[str, Place] = field(default_factory=dict)
    param_bytes: int = 0
    static_shared: int = 0
    reserved_shared: int = 0
    local_bytes: int = 0
    has_stack: bool = False
    code_base: int = 0

    @classmethod
    def of(cls, module: ast.Module, function: ast.Function, places: dict[str, Place]) -> Layout:
        """Lay out a kernel whose calls are inlined, in a module whose own places (`module_places`) are known."""
        layout = cls(dict(places), code_base=module.code_base)
        for parameter in function.parameters:  # which hide names of the module
            layout.places[parameter.name] = Place("param", parameter.offset, parameter.size)
            layout.param_bytes = max(layout.param_bytes, parameter.offset + parameter.size)
        outer = [v for v in module.variables.values() if v.space == "shared"]
        if outer:
            used = set(symbols(function)) - {variable.name for variable in function.variables}
            outer = [variable for variable in outer if variable.name in used]
        if any(special.name.startswith("reserved_smem") for special in specials(function)):
            layout.reserved_shared = SHARED_RESERVED
        layout._place_shared([*outer, *(v for v in function.variables if v.space == "shared")])
        for variable in function.variables:
            if variable.space == "local":
                layout.local_bytes = _align(layout.local_bytes, variable.align)
                layout.places[variable.name] = Place("local", layout.local_bytes, variable.size)
                layout.local_bytes += variable.size
        layout.local_bytes = _align(layout.local_bytes, 16)
        layout.has_stack = bool(function.parts) or function.stack_grows
        return layout

    def _place_shared(self, variables: Sequence[ast.Variable]) -> None:
        for variable in variables:
            if variable.size:
                self.static_shared = _align(self.static_shared, variable.align)
                self.places[variable.name] = Place("shared", self.static_shared, variable.size)
                self.static_shared += variable.size
        dynamic = [variable for variable in variables if not variable.size]
        if dynamic:
            self.static_shared = _align(self.static_shared, max(variable.align for variable in dynamic))
        for variable in dynamic:
            self.places[variable.name] = Place("shared", self.static_shared, 0)


def module_places(module: ast.Module) -> dict[str, Place]:
    """The places of variables and functions, which are the same for all kernels of a module."""
    places = {
        variable.name: Place(variable.space, index, variable.size, variable.type in OPAQUE, variable.align)
        for index, variable in enumerate(module_variables(module))
    }
    for number, name in enumerate(module.functions):
        places[name] = Place("code", code_address(module.code_base, number), 0)
    return places


def code_address(base: int, number: int) -> int:
    """The address of a function by its number in the module with that `code_base`: one at which no memory can be."""
    return abi.CODE_WINDOW + base + 16 * (number + 1)


def module_variables(module: ast.Module) -> list[ast.Variable]:
    """The variables that the driver allocates when it loads the module, in the order of its address array."""
    return [v for v in module.variables.values() if v.space in ("global", "const")]


def symbols(function: ast.Function) -> Iterator[str]:
    """Every name of a variable or parameter in the body of a function."""
    for statement in function.body or ():
        if isinstance(statement, ast.Instruction):
            yield from _names(statement.operands)


def specials(function: ast.Function) -> Iterator[ast.Special]:
    """Every special register in the body of a function."""
    for statement in function.body or ():
        if isinstance(statement, ast.Instruction):
            yield from (operand for operand in statement.operands if isinstance(operand, ast.Special))


def _names(operands: Iterable[ast.Operand | None]) -> Iterator[str]:
    for operand in operands:
        if isinstance(operand, ast.Symbol):
            yield operand.name
        elif isinstance(operand, ast.Address):
            yield from _names([operand.base])
        elif isinstance(operand, (ast.Vector, ast.ArgumentList, ast.AddressList)):
            yield from _names(operand.items)


def _align(offset: int, alignment: int) -> int:
    return -(-offset // alignment) * alignment
