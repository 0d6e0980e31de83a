"""Establishes: a call of a function with a body is a jump within the kernel.

The functions that are called, not inlined, become *parts* of the kernel: one copy of their code each, behind the
kernel's own. A call copies its arguments to variables that the caller and its possible callees share, notes which call
it is in ``%.site``, and jumps. The callee copies the arguments to variables of its own, and comes back by that number,
which ``.enter`` put on the thread's stack with the place of the caller's frame and ``.leave`` takes from there. So
nothing that runs code has to know more than branches: threads of a warp part at a call through a pointer as at any
branch, may be at different depths of a recursion, and wait in called functions at barriers or for each other.

The operations that stand for this, and that no PTX has (see `effects.OWN_OPERANDS`)::

    .call   part, site           go to a part; ``site`` is the number of the call
    .call   pointer, list, site  go to the part of the list at whose address the pointer points
    .enter  site, bytes          begin a frame of so many bytes on the thread's stack
    .leave  d                    end it: which call it was for
    .return site                 go to behind that call
    .frame  d                    where the thread's frame begins, as an address in local memory
    .copy   a, b                 a variable in .param space to another one (`param_space` makes moves of it)
"""

from __future__ import annotations

from dataclasses import replace

from cupola.cpu.compiler.passes.call_graph import CallGraph
from cupola.cpu.compiler.passes.inline_calls import Inliner, check_arguments, copy_function
from cupola.cpu.compiler.ptx import ast
from cupola.cpu.compiler.ptx.names import TYPE_BITS

SITE = ast.Register("%.site")
"""The number of the call that is being made."""


def join_functions(graph: CallGraph, kernel: ast.Function) -> ast.Function:
    """The kernel with the functions that it calls as its parts; what is to be inlined is.

    Raises
    ------
    PtxUnsupportedError
        For calls that do not fit their function.
    """
    inliner = Inliner(graph)
    function = inliner.flat(kernel.name)
    return _Joiner(graph, inliner, function).result() if graph.called or graph.has_pointers else function


class _Classes:
    """Which functions may be reached by the same calls: these share the variables for arguments and results."""

    def __init__(self) -> None:
        self.parent: dict[str, str] = {}

    def root(self, name: str) -> str:
        self.parent.setdefault(name, name)
        while self.parent[name] != name:
            self.parent[name] = self.parent[self.parent[name]]
            name = self.parent[name]
        return name

    def join(self, names: list[str]) -> None:
        for name in names[1:]:
            self.parent[self.root(name)] = self.root(names[0])


class _Joiner:
    def __init__(self, graph: CallGraph, inliner: Inliner, kernel: ast.Function) -> None:
        self.graph = graph
        self.kernel = kernel
        self.registers = dict(kernel.registers)
        self.variables = {variable.name: variable for variable in kernel.variables}
        self.branch_targets = dict(kernel.branch_targets)
        self.body: list[ast.Statement] = []
        self.sites: list[ast.Instruction] = []
        numbers = {name: index for index, name in enumerate(graph.module.functions)}
        called = [name for name in graph.order if name in graph.called]
        self.flat = {name: inliner.flat(name) for name in called}
        self.suffixes = {name: f".f{index}" for index, name in enumerate(called, 1)}
        self.parts = {
            name: ast.Part(name, f".part{suffix}", numbers[name], name in graph.recursive)
            for name, suffix in self.suffixes.items()
        }
        self.classes = _Classes()
        for function in (kernel, *self.flat.values()):
            for statement in function.body or ():
                if isinstance(statement, ast.Instruction) and statement.opcode == "call":
                    targets = self._targets(statement)
                    if targets:
                        self.classes.join(targets)

    def result(self) -> ast.Function:
        kernel = self.kernel
        self.registers[SITE.name] = "u32"
        self._join(kernel.body or [])
        last = self.body[-1] if self.body else None
        location = last.location if isinstance(last, ast.Instruction) else kernel.location or ast.Location(0)
        self.body.append(ast.Instruction("ret", (), (), None, location, "ret;"))
        for name, function in self.flat.items():
            self._add_part(name, function)
        return replace(
            kernel,
            body=self.body,
            registers=self.registers,
            variables=list(self.variables.values()),
            branch_targets=self.branch_targets,
            parts={part.label: part for part in self.parts.values()},
            call_sites=tuple(self.sites),
        )

    def _targets(self, call: ast.Instruction) -> list[str] | None:
        """The parts that a call may reach; None when it is a call of a function without a body."""
        if len(call.operands) > 3 and not isinstance(call.operands[1], ast.Symbol):
            targets = call.operands[3]
            assert isinstance(targets, ast.ArgumentList)
            return [item.name for item in targets.items if isinstance(item, ast.Symbol)]
        callee = self.graph.callee(call)
        return None if callee is None else [callee.name]

    def _emit(
        self,
        near: ast.Instruction,
        opcode: str,
        modifiers: tuple[str, ...],
        *operands: ast.Operand,
        guard: ast.Guard | None = None,
    ) -> None:
        self.body.append(ast.Instruction(opcode, modifiers, operands, guard, near.location, near.text))

    # --- variables ------------------------------------------------------------------------------------------

    def _shared(self, kind: str, name: str, index: int, size: int, align: int) -> ast.Symbol:
        """The variable for an argument or a result of a function and its class."""
        symbol = ast.Symbol(f".{kind}{index}{self.suffixes[self.classes.root(name)]}")
        known = self.variables.get(symbol.name)
        if known is not None:
            size, align = max(size, known.size), max(align, known.align)
        self.variables[symbol.name] = ast.Variable(symbol.name, "param", "b8", size, align)
        return symbol

    def _is_param(self, operand: ast.Operand) -> bool:
        if not isinstance(operand, ast.Symbol):
            return False
        variable = self.variables.get(operand.name)
        return variable is not None and variable.space == "param"

    def _put(self, near: ast.Instruction, shared: ast.Symbol, value: ast.Operand, type: str) -> None:
        """Set a shared variable."""
        if self._is_param(value):
            self._emit(near, ".copy", (), shared, value)
        elif type == "pred":
            number = ast.Register(f"%.truth{len(self.body)}")
            self.registers[number.name] = "b32"
            assert isinstance(value, ast.Register)
            self._emit(near, "selp", ("b32",), number, ast.Immediate(1), ast.Immediate(0), value)
            self._emit(near, "st", ("param", "b32"), ast.Address(shared), number)
        else:
            self._emit(near, "st", ("param", type), ast.Address(shared), value)

    def _get(self, near: ast.Instruction, shared: ast.Symbol, target: ast.Operand, type: str) -> None:
        """Read a shared variable."""
        if self._is_param(target):
            self._emit(near, ".copy", (), target, shared)
        elif type == "pred":
            number = ast.Register(f"%.truth{len(self.body)}")
            self.registers[number.name] = "b32"
            self._emit(near, "ld", ("param", "b32"), number, ast.Address(shared))
            self._emit(near, "setp", ("ne", "b32"), target, number, ast.Immediate(0))
        elif not isinstance(target, ast.Sink):
            self._emit(near, "ld", ("param", type), target, ast.Address(shared))

    def _size(self, operand: ast.Operand, formal: ast.Parameter) -> int:
        if self._is_param(operand):
            assert isinstance(operand, ast.Symbol)
            return self.variables[operand.name].size
        return max(formal.size, 4 if formal.type == "pred" else TYPE_BITS[formal.type] // 8)

    # --- calls ----------------------------------------------------------------------------------------------

    def _join(self, statements: list[ast.Statement]) -> None:
        """Append code, with its calls as jumps."""
        for statement in statements:
            targets = None
            if isinstance(statement, ast.Instruction) and statement.opcode == "call":
                targets = self._targets(statement)
            if targets is None:
                self.body.append(statement)
            else:
                assert isinstance(statement, ast.Instruction)
                self._call(statement, targets)

    def _call(self, call: ast.Instruction, targets: list[str]) -> None:
        self.sites.append(call)
        site = len(self.sites)
        skip = f".skip.s{site}"
        if call.guard is not None:
            around = ast.Guard(call.guard.register, not call.guard.negated)
            self._emit(call, "bra", (), ast.LabelRef(skip), guard=around)
        returns, pointer, arguments = call.operands[:3]
        assert isinstance(returns, ast.ArgumentList) and isinstance(arguments, ast.ArgumentList)
        if targets:
            callee = self.graph.module.functions[targets[0]]
            check_arguments(call, callee)
            for index, (formal, actual) in enumerate(zip(callee.parameters, arguments.items, strict=False)):
                size = self._size(actual, formal)
                shared = self._shared("argument", targets[0], index, size, formal.align)
                self._put(call, shared, actual, formal.type)
        self._emit(call, "mov", ("u32",), SITE, ast.Immediate(site))
        labels = tuple(self.parts[name].label for name in targets)
        if isinstance(pointer, ast.Symbol):
            self._emit(call, ".call", (), ast.LabelRef(labels[0]), ast.Immediate(site))
        else:
            self.branch_targets[f".targets.s{site}"] = labels
            self._emit(call, ".call", (), pointer, ast.LabelRef(f".targets.s{site}"), ast.Immediate(site))
        self.body.append(ast.Label(f".back.s{site}"))
        if targets:
            for index, (formal, actual) in enumerate(zip(callee.returns, returns.items, strict=True)):
                size = self._size(actual, formal)
                shared = self._shared("result", targets[0], index, size, formal.align)
                self._get(call, shared, actual, formal.type)
        if call.guard is not None:
            self.body.append(ast.Label(skip))

    # --- parts ----------------------------------------------------------------------------------------------

    def _add_part(self, name: str, function: ast.Function) -> None:
        suffix, part = self.suffixes[name], self.parts[name]
        symbols: dict[str, ast.Symbol] = {}
        location = function.location or ast.Location(0)
        first = next((s for s in function.body or () if isinstance(s, ast.Instruction)), None)
        near = first or ast.Instruction("ret", (), (), None, location, "ret;")
        end = ast.LabelRef(f".end{suffix}")
        for formal in [*function.parameters, *function.returns]:
            if not formal.is_register:
                symbols[formal.name] = ast.Symbol(formal.name + suffix)
                size = max(1, formal.size)
                self.variables[formal.name + suffix] = ast.Variable(
                    formal.name + suffix, "param", formal.type, size, formal.align
                )
        copy = copy_function(function, suffix, symbols, end, lambda location: location)
        self.registers |= copy.registers
        for formal in [*function.parameters, *function.returns]:
            if formal.is_register:
                self.registers[formal.name + suffix] = formal.type
        for variable in copy.variables:
            self.variables[variable.name] = variable
        self.branch_targets |= copy.branch_targets

        self.body.append(ast.Label(part.label))
        self._emit(near, ".enter", (), SITE, ast.Immediate(0))
        for index, formal in enumerate(function.parameters):
            own: ast.Operand = ast.Register(formal.name + suffix) if formal.is_register else symbols[formal.name]
            shared = self._shared("argument", name, index, self._size(own, formal), formal.align)
            if formal.size == 0 and isinstance(own, ast.Symbol):
                # What the largest call passes; calls come before the parts that they reach, or are in parts.
                self.variables[own.name].size = self._largest_argument(name, index)
                self.variables[shared.name].size = max(self.variables[shared.name].size, self.variables[own.name].size)
            self._get(near, shared, own, formal.type)
        self.body.append(ast.Label(f".begin{suffix}"))
        self._join(copy.body or [])
        self.body.append(ast.Label(end.name))
        last = next((s for s in reversed(function.body or ()) if isinstance(s, ast.Instruction)), near)
        for index, formal in enumerate(function.returns):
            own = ast.Register(formal.name + suffix) if formal.is_register else symbols[formal.name]
            shared = self._shared("result", name, index, self._size(own, formal), formal.align)
            self._put(last, shared, own, formal.type)
        site = ast.Register(f"%.from{suffix}")
        self.registers[site.name] = "u32"
        self._emit(last, ".leave", (), site)
        self._emit(last, ".return", (), site)

    def _largest_argument(self, name: str, index: int) -> int:
        """The most bytes that a call passes for a parameter that is an array of any size."""
        largest = 8
        for function in (self.kernel, *self.flat.values()):
            sizes = {variable.name: variable.size for variable in function.variables}
            for statement in function.body or ():
                if isinstance(statement, ast.Instruction) and statement.opcode == "call":
                    arguments = statement.operands[2]
                    assert isinstance(arguments, ast.ArgumentList)
                    if name in (self._targets(statement) or ()) and len(arguments.items) > index:
                        actual = arguments.items[index]
                        largest = max(largest, sizes.get(getattr(actual, "name", ""), 0))
        return largest
