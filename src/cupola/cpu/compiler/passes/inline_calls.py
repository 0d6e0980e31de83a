"""Establishes: no function is called that the call graph wants inlined.

Such a call is replaced by the body of its function (PTX ISA 7.1 and 9.7.12.6), whose registers, labels and local
variables get the names ``name.iN``, different for every call. Static variables (``.shared``, ``.global``, ``.const`` in
a function) stay one variable each. The function's parameters in ``.param`` space become the caller's own ``.param``
variables; `param_space` then makes registers of them. Locations tell the call as where the code was inlined.

Functions without a body (``vprintf``, ``__assertfail``, ``malloc``) are still called, and so are those that
`CallGraph.called` names (see `join_functions`). An indirect call then has a list of the functions that it may reach as
its fourth operand.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from cupola.cpu.compiler.passes.call_graph import CallGraph
from cupola.cpu.compiler.passes.operands import rewrite
from cupola.cpu.compiler.ptx import ast
from cupola.cpu.compiler.ptx.errors import PtxUnsupportedError

_MOST_STATEMENTS = 1 << 20
_STATIC = frozenset(["shared", "global", "const"])


class Inliner:
    """Inlines calls in the functions of one kernel."""

    def __init__(self, graph: CallGraph) -> None:
        self.graph = graph
        self.done: dict[str, ast.Function] = {}

    def flat(self, name: str) -> ast.Function:
        """A function of the graph with what is to be inlined in place of its calls.

        Raises
        ------
        PtxUnsupportedError
            For calls that do not fit their function.
        """
        if not self.done:
            for each in self.graph.order:  # callees first
                self.done[each] = self._flatten(self.graph.functions[each])
        return self.done[name]

    def _flatten(self, function: ast.Function) -> ast.Function:
        inlines = any(self.callee(call) is not None for call in _calls(function))
        if not function.is_entry:
            function = _with_unique_statics(function)
        function = self._with_listed_targets(function)
        return _Expansion(self, function).result() if inlines else function

    def callee(self, call: ast.Instruction) -> ast.Function | None:
        """The function to inline for a call; None when it stays a call."""
        function = self.graph.callee(call)
        return None if function is None or function.name in self.graph.called else function

    def _with_listed_targets(self, function: ast.Function) -> ast.Function:
        """Let each indirect call name the functions that it may reach, instead of its prototype."""
        original = self.graph.functions[function.name]
        if all(isinstance(call.operands[1], ast.Symbol) for call in _calls(function)):
            return function

        def listed(statement: ast.Statement) -> ast.Statement:
            if not isinstance(statement, ast.Instruction) or statement.opcode != "call":
                return statement
            if isinstance(statement.operands[1], ast.Symbol):
                return statement
            if len(statement.operands) < 4:
                raise PtxUnsupportedError(
                    f"the indirect call {statement.text!r} has neither a prototype nor a list of targets",
                    statement.location,
                )
            names = self.graph.reachable_by(statement, original)
            targets = ast.ArgumentList(tuple(ast.Symbol(name) for name in names))
            return replace(statement, operands=(*statement.operands[:3], targets))

        return replace(function, body=[listed(statement) for statement in function.body or ()])


def _calls(function: ast.Function) -> list[ast.Instruction]:
    return [s for s in function.body or () if isinstance(s, ast.Instruction) and s.opcode == "call"]


def _with_unique_statics(function: ast.Function) -> ast.Function:
    """Name the static variables after their function, as several functions come together in one kernel."""
    names = {v.name: f"{v.name}.{function.name}" for v in function.variables if v.space in _STATIC}
    if not names:
        return function

    def leaf(operand: ast.Operand) -> ast.Operand:
        if isinstance(operand, ast.Symbol) and operand.name in names:
            return ast.Symbol(names[operand.name], operand.offset)
        return operand

    body: list[ast.Statement] = [
        replace(s, operands=tuple(rewrite(operand, leaf) for operand in s.operands))
        if isinstance(s, ast.Instruction)
        else s
        for s in function.body or ()
    ]
    variables = [replace(v, name=names.get(v.name, v.name)) for v in function.variables]
    return replace(function, body=body, variables=variables)


def check_arguments(call: ast.Instruction, callee: ast.Function) -> None:
    """Refuse a call that does not fit its function; a last array of any size may be left out."""
    returns, _, arguments = call.operands[:3]
    assert isinstance(returns, ast.ArgumentList) and isinstance(arguments, ast.ArgumentList)
    missing = len(callee.parameters) - len(arguments.items)
    if missing == 1 and callee.parameters[-1].size == 0:
        missing = 0
    if missing or len(returns.items) != len(callee.returns):
        raise PtxUnsupportedError(f"the call of {callee.name!r} does not fit the function", call.location)


class _Expansion:
    """One function with its calls being replaced."""

    def __init__(self, inliner: Inliner, function: ast.Function) -> None:
        self.inliner = inliner
        self.function = function
        self.registers = dict(function.registers)
        self.variables = {variable.name: variable for variable in function.variables}
        self.branch_targets = dict(function.branch_targets)
        self.body: list[ast.Statement] = []
        self.count = 0

    def result(self) -> ast.Function:
        for statement in self.function.body or ():
            if isinstance(statement, ast.Instruction) and statement.opcode == "call":
                callee = self.inliner.callee(statement)
                if callee is not None:
                    self._expand(statement, self.inliner.flat(callee.name))
                    continue
            self.body.append(statement)
        return replace(
            self.function,
            body=self.body,
            registers=self.registers,
            variables=list(self.variables.values()),
            branch_targets=self.branch_targets,
        )

    def _expand(self, call: ast.Instruction, callee: ast.Function) -> None:
        assert callee.body is not None
        if len(self.body) + len(callee.body) > _MOST_STATEMENTS:
            raise PtxUnsupportedError("with its calls inlined the kernel is too large", call.location)
        self.count += 1
        suffix = f".i{self.count}"
        returns, _, arguments = call.operands[:3]
        assert isinstance(returns, ast.ArgumentList) and isinstance(arguments, ast.ArgumentList)
        check_arguments(call, callee)

        skip = f".skip{suffix}"
        if call.guard is not None:
            around = ast.Guard(call.guard.register, not call.guard.negated)
            self._emit(call, "bra", (), (ast.LabelRef(skip),), around)
        symbols: dict[str, ast.Symbol] = {}
        for formal in callee.parameters[len(arguments.items) :]:
            symbols[formal.name] = self._new_param(formal, suffix)
        for formal, actual in zip(callee.parameters, arguments.items, strict=False):
            self._pass(call, formal, actual, suffix, symbols)
        results = [
            self._receive(call, formal, actual, suffix, symbols)
            for formal, actual in zip(callee.returns, returns.items, strict=True)
        ]
        self._copy(call, callee, suffix, symbols)
        for instruction in results:
            if instruction is not None:
                self.body.append(instruction)
        if call.guard is not None:
            self.body.append(ast.Label(skip))

    def _emit(
        self,
        call: ast.Instruction,
        opcode: str,
        modifiers: tuple[str, ...],
        operands: tuple[ast.Operand, ...],
        guard: ast.Guard | None = None,
    ) -> None:
        self.body.append(ast.Instruction(opcode, modifiers, operands, guard, call.location, call.text))

    # --- parameters -----------------------------------------------------------------------------------------

    def _is_param(self, operand: ast.Operand) -> bool:
        if not isinstance(operand, ast.Symbol):
            return False
        variable = self.variables.get(operand.name)
        formals = [*self.function.parameters, *self.function.returns]
        return (variable is not None and variable.space == "param") or any(
            formal.name == operand.name and not formal.is_register for formal in formals
        )

    def _new_param(self, formal: ast.Parameter, suffix: str) -> ast.Symbol:
        name = formal.name + suffix
        self.variables[name] = ast.Variable(name, "param", formal.type, formal.size, formal.align)
        return ast.Symbol(name)

    def _pass(
        self,
        call: ast.Instruction,
        formal: ast.Parameter,
        actual: ast.Operand,
        suffix: str,
        symbols: dict[str, ast.Symbol],
    ) -> None:
        """Before the body: make the value of an argument known under the name of the parameter."""
        if formal.is_register:
            target = ast.Register(formal.name + suffix)
            self.registers[target.name] = formal.type
            if self._is_param(actual):
                assert isinstance(actual, ast.Symbol)
                source = ast.Address(ast.Symbol(actual.name), actual.offset)
                self._emit(call, "ld", ("param", formal.type), (target, source))
            else:
                self._emit(call, "mov", (formal.type,), (target, actual))
        elif self._is_param(actual):
            assert isinstance(actual, ast.Symbol)
            symbols[formal.name] = actual
        else:
            symbol = symbols[formal.name] = self._new_param(formal, suffix)
            self._emit(call, "st", ("param", formal.type), (ast.Address(symbol), actual))

    def _receive(
        self,
        call: ast.Instruction,
        formal: ast.Parameter,
        actual: ast.Operand,
        suffix: str,
        symbols: dict[str, ast.Symbol],
    ) -> ast.Instruction | None:
        """What brings a result to the caller behind the body."""
        location, text = call.location, call.text
        if formal.is_register:
            source = ast.Register(formal.name + suffix)
            self.registers[source.name] = formal.type
            if self._is_param(actual):
                assert isinstance(actual, ast.Symbol)
                target = ast.Address(ast.Symbol(actual.name), actual.offset)
                return ast.Instruction("st", ("param", formal.type), (target, source), None, location, text)
            return ast.Instruction("mov", (formal.type,), (actual, source), None, location, text)
        if self._is_param(actual):
            assert isinstance(actual, ast.Symbol)
            symbols[formal.name] = actual
            return None
        symbol = symbols[formal.name] = self._new_param(formal, suffix)
        return ast.Instruction("ld", ("param", formal.type), (actual, ast.Address(symbol)), None, location, text)

    # --- the body -------------------------------------------------------------------------------------------

    def _copy(self, call: ast.Instruction, callee: ast.Function, suffix: str, symbols: dict[str, ast.Symbol]) -> None:
        end = ast.LabelRef(f".end{suffix}")
        copy = copy_function(callee, suffix, symbols, end, _CallSites(call.location).of)
        self.registers |= copy.registers
        for variable in copy.variables:
            self.variables[variable.name] = variable
        self.branch_targets |= copy.branch_targets
        statements = copy.body or []
        last = statements[-1] if statements else None
        if isinstance(last, ast.Instruction) and last.operands == (end,) and last.guard is None:
            statements = statements[:-1]
        self.body += statements
        if any(isinstance(s, ast.Instruction) and end in s.operands for s in statements):
            self.body.append(ast.Label(end.name))


def copy_function(
    function: ast.Function,
    suffix: str,
    symbols: dict[str, ast.Symbol],
    end: ast.LabelRef,
    locate: Callable[[ast.Location], ast.Location],
) -> ast.Function:
    """A copy of a function to become a piece of another one.

    Parameters
    ----------
    function
        With unique names for its static variables.
    suffix
        What the names of registers, labels and variables get.
    symbols
        Variables that are known by other names outside; the function's own are added.
    end
        Where ``ret`` goes instead.
    locate
        Makes the location of each instruction.
    """
    variables = []
    for variable in function.variables:
        if variable.space in _STATIC:
            variables.append(variable)
        else:
            name = variable.name + suffix
            symbols[variable.name] = ast.Symbol(name)
            variables.append(replace(variable, name=name))

    def leaf(operand: ast.Operand) -> ast.Operand:
        if isinstance(operand, ast.Register):
            return ast.Register(operand.name + suffix)
        if isinstance(operand, ast.LabelRef):
            return ast.LabelRef(operand.name + suffix)
        assert isinstance(operand, ast.Symbol)
        symbol = symbols.get(operand.name)
        return operand if symbol is None else ast.Symbol(symbol.name, symbol.offset + operand.offset)

    body: list[ast.Statement] = []
    for statement in function.body or ():
        if isinstance(statement, ast.Label):
            body.append(ast.Label(statement.name + suffix))
            continue
        guard = statement.guard
        if guard is not None:
            guard = ast.Guard(ast.Register(guard.register.name + suffix), guard.negated)
        opcode, modifiers = statement.opcode, statement.modifiers
        operands = tuple(rewrite(operand, leaf) for operand in statement.operands)
        if opcode == "ret":
            opcode, modifiers, operands = "bra", (), (end,)
        location = locate(statement.location)
        body.append(ast.Instruction(opcode, modifiers, operands, guard, location, statement.text))
    return replace(
        function,
        body=body,
        registers={name + suffix: kind for name, kind in function.registers.items()},
        variables=variables,
        branch_targets={
            name + suffix: tuple(target + suffix for target in targets)
            for name, targets in function.branch_targets.items()
        },
    )


class _CallSites:
    """Locations of a function's instructions as seen from where it is inlined."""

    def __init__(self, call: ast.Location) -> None:
        self.call = call
        self.chains: dict[int, ast.Location] = {}

    def of(self, location: ast.Location) -> ast.Location:
        """``location`` with the call at the end of its chain."""
        outer = self.call if location.inlined_at is None else self._chain(location.inlined_at)
        return replace(location, inlined_at=outer)

    def _chain(self, location: ast.Location) -> ast.Location:
        known = self.chains.get(id(location))  # the syntax tree keeps the locations alive meanwhile
        if known is None:
            known = self.chains[id(location)] = self.of(location)
        return known
