"""Establishes: a kernel calls no function that has a body.

Each call is replaced by the body of its function (PTX ISA 7.1 and 9.7.12.6), whose registers, labels and local
variables get the names ``name.iN``, different for every call. Static variables (``.shared``, ``.global``, ``.const`` in
a function) stay one variable each. The function's parameters in ``.param`` space become the caller's own ``.param``
variables; `param_space` then makes registers of them. Locations tell the call as where the code was inlined.

Functions without a body (``vprintf``, ``__assertfail``, ``malloc``) are still called; recursion and calls through
pointers are refused.
"""

from __future__ import annotations

from dataclasses import replace

from cupola.cpu.passes.effects import effects
from cupola.cpu.passes.operands import rewrite
from cupola.cpu.ptx import ast
from cupola.cpu.ptx.errors import PtxUnsupportedError

_MOST_STATEMENTS = 1 << 16
_DEEPEST_CALL = 100
_STATIC = frozenset(["shared", "global", "const"])


def inline_calls(module: ast.Module, function: ast.Function) -> ast.Function:
    """The function with all calls of functions of ``module`` inlined; the same object when it has none.

    Raises
    ------
    PtxUnsupportedError
        For recursion, calls through pointers, and calls that do not fit their function.
    """
    return _Inliner(module).flat(function)


class _Inliner:
    def __init__(self, module: ast.Module) -> None:
        self.module = module
        self.done: dict[str, ast.Function] = {}
        self.active: list[str] = []

    def flat(self, function: ast.Function) -> ast.Function:
        """``function`` without calls of functions that have a body."""
        known = self.done.get(function.name)
        if known is not None:
            return known
        self.active.append(function.name)
        if not function.is_entry:
            function = _with_unique_statics(function)
        function = _with_known_targets(function)
        calls = [s for s in function.body or () if isinstance(s, ast.Instruction) and s.opcode == "call"]
        if any(self.callee(call) is not None for call in calls):
            function = _Expansion(self, function).result()
        self.active.pop()
        self.done[function.name] = function
        return function

    def callee(self, call: ast.Instruction) -> ast.Function | None:
        """The function to inline; None when it has no body."""
        target = call.operands[1]
        if not isinstance(target, ast.Symbol):
            raise PtxUnsupportedError(f"calls through pointers are not supported: {call.text!r}", call.location)
        function = self.module.functions.get(target.name)
        if function is None or function.body is None:
            return None
        if function.name in self.active:
            raise PtxUnsupportedError(f"the recursive call of {function.name!r} is not supported", call.location)
        if len(self.active) > _DEEPEST_CALL:
            raise PtxUnsupportedError(f"calls are nested more than {_DEEPEST_CALL} deep", call.location)
        return function


def _with_known_targets(function: ast.Function) -> ast.Function:
    """Call a function by name where the pointer is a register that only ever holds its address (``nvrtc -G``)."""
    body = function.body or []
    calls = [s for s in body if isinstance(s, ast.Instruction) and s.opcode == "call"]
    pointers = {call.operands[1].name for call in calls if isinstance(call.operands[1], ast.Register)}
    if not pointers:
        return function
    targets: dict[str, ast.Symbol | None] = {}
    for statement in body:
        if isinstance(statement, ast.Instruction):
            for name in pointers.intersection(effects(statement).writes):
                symbol = statement.operands[-1] if statement.opcode == "mov" and statement.guard is None else None
                known = isinstance(symbol, ast.Symbol) and name not in targets
                targets[name] = symbol if known else None  # type: ignore[assignment]

    def named(statement: ast.Statement) -> ast.Statement:
        if isinstance(statement, ast.Instruction) and statement.opcode == "call":
            returns, pointer, *rest = statement.operands
            symbol = targets.get(pointer.name) if isinstance(pointer, ast.Register) else None
            if symbol is not None:
                return replace(statement, operands=(returns, symbol, rest[0]))
        return statement

    return replace(function, body=[named(statement) for statement in body])


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


class _Expansion:
    """One function with its calls being replaced."""

    def __init__(self, inliner: _Inliner, function: ast.Function) -> None:
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
                    self._expand(statement, self.inliner.flat(callee))
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
        if len(returns.items) != len(callee.returns) or len(arguments.items) != len(callee.parameters):
            raise PtxUnsupportedError(f"the call of {callee.name!r} does not fit the function", call.location)

        skip = f".skip{suffix}"
        if call.guard is not None:
            around = ast.Guard(call.guard.register, not call.guard.negated)
            self._emit(call, "bra", (), (ast.LabelRef(skip),), around)
        symbols: dict[str, ast.Symbol] = {}
        for formal, actual in zip(callee.parameters, arguments.items, strict=True):
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
        for name, kind in callee.registers.items():
            self.registers[name + suffix] = kind
        for variable in callee.variables:
            if variable.space in _STATIC:
                self.variables[variable.name] = variable
            else:
                name = variable.name + suffix
                symbols[variable.name] = ast.Symbol(name)
                self.variables[name] = replace(variable, name=name)
        for name, targets in callee.branch_targets.items():
            self.branch_targets[name + suffix] = tuple(target + suffix for target in targets)

        def leaf(operand: ast.Operand) -> ast.Operand:
            if isinstance(operand, ast.Register):
                return ast.Register(operand.name + suffix)
            if isinstance(operand, ast.LabelRef):
                return ast.LabelRef(operand.name + suffix)
            assert isinstance(operand, ast.Symbol)
            symbol = symbols.get(operand.name)
            return operand if symbol is None else ast.Symbol(symbol.name, symbol.offset + operand.offset)

        end = ast.LabelRef(f".end{suffix}")
        ends_early = False
        places = _CallSites(call.location)
        statements = callee.body or []
        for index, statement in enumerate(statements):
            if isinstance(statement, ast.Label):
                self.body.append(ast.Label(statement.name + suffix))
                continue
            guard = statement.guard
            if guard is not None:
                guard = ast.Guard(ast.Register(guard.register.name + suffix), guard.negated)
            opcode, modifiers = statement.opcode, statement.modifiers
            operands = tuple(rewrite(operand, leaf) for operand in statement.operands)
            if opcode == "ret":
                if index == len(statements) - 1 and guard is None:
                    continue
                opcode, modifiers, operands = "bra", (), (end,)
                ends_early = True
            location = places.of(statement.location)
            self.body.append(ast.Instruction(opcode, modifiers, operands, guard, location, statement.text))
        if ends_early:
            self.body.append(ast.Label(end.name))


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
