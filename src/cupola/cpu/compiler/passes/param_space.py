"""Establishes: the only variables in ``.param`` space are the kernel's own parameters.

Calls pass values through ``.param`` variables that are written before and read behind them (PTX ISA 5.1.6.2). Once
calls are inlined such a variable is just storage. When all its accesses are to separate pieces of at most eight bytes,
each piece becomes a register ``name.atOFFSET``; a variable with other accesses, or whose address is taken, becomes a
local one.

Variables that `join_functions` copies to each other are taken apart in the same way, so that a copy is a move for each
piece. The calls that remain (``vprintf`` and other functions of the system) get registers for their arguments and
results.
"""

from __future__ import annotations

from dataclasses import replace

from cupola.cpu.compiler.passes.operands import rewrite
from cupola.cpu.compiler.ptx import ast
from cupola.cpu.compiler.ptx.errors import PtxUnsupportedError
from cupola.cpu.compiler.ptx.names import TYPE_BITS

_Cells = dict[int, int]  # offset -> bytes


def make_params_registers(function: ast.Function) -> ast.Function:
    """The function with its ``.param`` variables replaced; the same object when there are none."""
    if function.body is None or not any(variable.space == "param" for variable in function.variables):
        return function
    return _Rewriter(function).result()


def _is_param_access(instruction: ast.Instruction) -> bool:
    return instruction.opcode in ("ld", "st") and any(m.startswith("param") for m in instruction.modifiers)


def _vector_length(instruction: ast.Instruction) -> int:
    return next((int(m[1:]) for m in instruction.modifiers if m in ("v2", "v4", "v8")), 1)


class _Rewriter:
    def __init__(self, function: ast.Function) -> None:
        self.function = function
        self.params = {v.name: v for v in function.variables if v.space == "param"}
        self.cells: dict[str, _Cells] = {name: {} for name in self.params}
        self.leaders: dict[str, str] = {}  # by variable: one of those that are copied to each other
        self.in_memory: set[str] = set()
        self.address_taken = False
        self.registers = dict(function.registers)
        self.body: list[ast.Statement] = []

    def result(self) -> ast.Function:
        body = self.function.body or []
        self._find_copies(body)
        for statement in body:
            if isinstance(statement, ast.Instruction):
                self._look(statement)
        for name, variable in self.params.items():
            end = 0
            cells = self.cells[self._leader(name)]
            for offset, width in sorted(cells.items()):
                if offset < end or width > 8:
                    self.in_memory.add(self._leader(name))
                end = offset + width
            if end > variable.size and not self._is_copied(name):
                self.in_memory.add(name)
        for statement in body:
            if isinstance(statement, ast.Instruction):
                self._replace(statement)
            else:
                self.body.append(statement)
        variables = [
            replace(variable, space="local") if variable.name in self.params else variable
            for variable in self.function.variables
            if variable.name not in self.params or self._is_in_memory(variable.name)
        ]
        return replace(self.function, body=self.body, registers=self.registers, variables=variables)

    # --- copies -------------------------------------------------------------------------------------------

    def _find_copies(self, body: list[ast.Statement]) -> None:
        for statement in body:
            if isinstance(statement, ast.Instruction) and statement.opcode == ".copy":
                first, second = (self._leader(o.name) for o in statement.operands if isinstance(o, ast.Symbol))
                self.leaders[second] = first

    def _leader(self, name: str) -> str:
        leaders = self.leaders
        while (leader := leaders.get(name, name)) != name:
            leaders[name] = leaders.get(leader, leader)
            name = leader
        return name

    def _is_copied(self, name: str) -> bool:
        return name in self.leaders or name in self.leaders.values()

    def _is_in_memory(self, name: str) -> bool:
        return self._leader(name) in self.in_memory

    # --- finding out --------------------------------------------------------------------------------------

    def _look(self, instruction: ast.Instruction) -> None:
        """Note which pieces of which variables an instruction uses."""
        if instruction.opcode == ".copy":
            return
        if _is_param_access(instruction):
            address = instruction.operands[0 if instruction.opcode == "st" else 1]
            assert isinstance(address, ast.Address)
            if isinstance(address.base, ast.Symbol) and address.base.name in self.params:
                width = TYPE_BITS[instruction.modifiers[-1]] // 8
                for index in range(_vector_length(instruction)):
                    self._note(address.base.name, address.offset + index * width, width)
            return
        for operand in instruction.operands:
            if instruction.opcode == "call" and isinstance(operand, ast.ArgumentList):
                for item in operand.items:
                    if isinstance(item, ast.Symbol) and item.name in self.params:
                        self._note(item.name, item.offset, self.params[item.name].size)
            else:
                rewrite(operand, self._note_address)

    def _note(self, name: str, offset: int, width: int) -> None:
        name = self._leader(name)
        if self.cells[name].setdefault(offset, width) != width or width not in (1, 2, 4, 8):
            self.in_memory.add(name)

    def _note_address(self, operand: ast.Operand) -> ast.Operand:
        if isinstance(operand, ast.Symbol) and operand.name in self.params:
            self.in_memory.add(self._leader(operand.name))
            self.address_taken = True
        return operand

    # --- replacing ----------------------------------------------------------------------------------------

    def _replace(self, instruction: ast.Instruction) -> None:
        opcode = instruction.opcode
        if opcode == ".copy":
            self._copy(instruction)
        elif opcode == "call":
            operands = tuple(
                ast.ArgumentList(tuple(self._argument(item) for item in operand.items))
                if isinstance(operand, ast.ArgumentList)
                else operand
                for operand in instruction.operands
            )
            self.body.append(replace(instruction, operands=operands))
        elif opcode == "cvta" and self.address_taken and "param" in instruction.modifiers:
            self.body.append(self._in_local(instruction))
        elif not _is_param_access(instruction):
            self.body.append(instruction)
        else:
            self._replace_access(instruction)

    def _argument(self, item: ast.Operand) -> ast.Operand:
        if isinstance(item, ast.Symbol) and item.name in self.params and not self._is_in_memory(item.name):
            return self._cell(item.name, item.offset, self.params[item.name].size)
        return item

    def _copy(self, copy: ast.Instruction) -> None:
        """One variable to another, piece by piece."""
        target, source = copy.operands
        assert isinstance(target, ast.Symbol) and isinstance(source, ast.Symbol)
        to, of = self.params[target.name], self.params[source.name]
        if not self._is_in_memory(to.name):
            for offset, width in self.cells[self._leader(to.name)].items():
                cells = self._cell(to.name, offset, width), self._cell(of.name, offset, width)
                self._emit(copy, "mov", (f"b{max(16, 8 * width)}",), *cells)
            return
        at, size, step = 0, min(to.size, of.size), min(8, to.align, of.align)
        while at < size:
            width = step
            while at + width > size:
                width //= 2
            type = f"b{8 * width}"
            piece = ast.Register(f"%.piece{len(self.body)}")
            self.registers[piece.name] = f"b{max(16, 8 * width)}"
            self._emit(copy, "ld", ("local", type), piece, ast.Address(source, at))
            self._emit(copy, "st", ("local", type), ast.Address(target, at), piece)
            at += width

    def _in_local(self, instruction: ast.Instruction) -> ast.Instruction:
        modifiers = tuple("local" if m.startswith("param") else m for m in instruction.modifiers)
        return replace(instruction, modifiers=modifiers)

    def _replace_access(self, instruction: ast.Instruction) -> None:
        is_store = instruction.opcode == "st"
        address, value = instruction.operands if is_store else reversed(instruction.operands)
        assert isinstance(address, ast.Address)
        if not isinstance(address.base, ast.Symbol):
            if not self.address_taken:
                self.body.append(instruction)  # of a kernel parameter
                return
            if any(_mentions(self.function, p.name) for p in self.function.parameters):
                raise PtxUnsupportedError(
                    f"which parameter {instruction.text!r} accesses is not known", instruction.location
                )
            self.body.append(self._in_local(instruction))
        elif address.base.name not in self.params:
            self.body.append(instruction)
        elif self._is_in_memory(address.base.name):
            self.body.append(self._in_local(instruction))
        else:
            kind = instruction.modifiers[-1]
            width = TYPE_BITS[kind] // 8
            items = value.items if isinstance(value, ast.Vector) else (value,)
            for index, item in enumerate(items):
                cell = self._cell(address.base.name, address.offset + index * width, width)
                if is_store:
                    self._store(instruction, kind, cell, item)
                elif isinstance(item, ast.Register):
                    self._load(instruction, kind, item, cell)

    def _cell(self, name: str, offset: int, width: int) -> ast.Register:
        register = ast.Register(f"{name}.at{offset}")
        self.registers[register.name] = f"b{max(16, 8 * width)}"
        return register

    def _emit(self, old: ast.Instruction, opcode: str, modifiers: tuple[str, ...], *operands: ast.Operand) -> None:
        self.body.append(ast.Instruction(opcode, modifiers, operands, old.guard, old.location, old.text))

    def _store(self, old: ast.Instruction, kind: str, cell: ast.Register, value: ast.Operand) -> None:
        if kind[1:] != "8":
            self._emit(old, "mov", (kind,), cell, value)
        elif isinstance(value, ast.Immediate):
            self._emit(old, "mov", ("b16",), cell, ast.Immediate(value.value & 0xFF))
        else:
            self._emit(old, "cvt", ("u16", "u8"), cell, value)

    def _load(self, old: ast.Instruction, kind: str, target: ast.Register, cell: ast.Register) -> None:
        """A load widens to the register's size, with the sign for ``.s`` types (PTX ISA 9.4.1)."""
        bits = TYPE_BITS[self.registers[target.name]]
        if bits <= TYPE_BITS[kind] and kind[1:] != "8":
            self._emit(old, "mov", (kind,), target, cell)
        else:
            sign = "s" if kind[0] == "s" else "u"
            self._emit(old, "cvt", (f"{sign}{bits}", f"{sign}{TYPE_BITS[kind]}"), target, cell)


def _mentions(function: ast.Function, name: str) -> bool:
    """Whether the address of a parameter is taken."""
    found = False

    def leaf(operand: ast.Operand) -> ast.Operand:
        nonlocal found
        found = found or (isinstance(operand, ast.Symbol) and operand.name == name)
        return operand

    for statement in function.body or ():
        if isinstance(statement, ast.Instruction) and not _is_param_access(statement):
            for operand in statement.operands:
                rewrite(operand, leaf)
    return found
