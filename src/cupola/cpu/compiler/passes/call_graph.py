"""Which functions a kernel may call, and which of these calls are inlined.

A *direct* call names its function; an *indirect* one has a pointer, and may reach every function whose address somebody
takes (in code or in the initial value of a variable: virtual functions) and whose parameters fit the call's prototype,
unless the call lists its targets (PTX ISA 7.1, "call", ".calltargets", ".callprototype").

Direct calls are inlined, because code that is not called is analyzed and optimized with what surrounds it. What stays
a call: recursion; what is reached through a pointer; and large functions called from so many places that the kernel
would grow out of proportion, and its compile time with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from cupola.cpu.compiler.passes.effects import effects
from cupola.cpu.compiler.passes.operands import rewrite
from cupola.cpu.compiler.ptx import ast

SMALL = 100
"""Statements of a function that is inlined wherever it is called directly."""

MOST_COPIED = 2000
"""Statements that all copies of a larger function may come to in one kernel."""

Signature = tuple[tuple[int, ...], tuple[int, ...]]
"""The sizes of the parameters and of the results of a function; 0 for an array of any size."""


def signature(parameters: Iterable[ast.Parameter], returns: Iterable[ast.Parameter]) -> Signature:
    """What a call and the functions that it may reach have in common."""
    return tuple(p.size for p in parameters), tuple(p.size for p in returns)


def calls(function: ast.Function) -> Iterator[ast.Instruction]:
    """The calls in the body of a function."""
    return (s for s in function.body or () if isinstance(s, ast.Instruction) and s.opcode == "call")


@dataclass(slots=True)
class CallGraph:
    """The functions that a kernel may run.

    Attributes
    ----------
    module : ast.Module
    functions : dict
        The kernel and all functions that it may reach, with calls by name wherever the target is known.
    targets : dict
        For each function that its name: the functions it calls, by name, once for each call; indirect calls count once
        for each function that they may reach.
    recursive : set of str
        Functions that may come to call themselves.
    called : set of str
        Functions that are called, not inlined; their direct calls become jumps.
    has_pointers : bool
        There are indirect calls, perhaps with nothing that they can reach.
    order : list of str
        The functions, callees before their callers (in a cycle: in any order).
    """

    module: ast.Module
    functions: dict[str, ast.Function] = field(default_factory=dict)
    targets: dict[str, list[str]] = field(default_factory=dict)
    recursive: set[str] = field(default_factory=set)
    called: set[str] = field(default_factory=set)
    has_pointers: bool = False
    order: list[str] = field(default_factory=list)
    _addresses: dict[str, None] = field(default_factory=dict)
    """Functions whose address is in a variable or in the code of a function that the kernel may run."""

    @classmethod
    def of(cls, module: ast.Module, kernel: ast.Function) -> CallGraph:
        """Find out what a kernel may call."""
        graph = cls(module)
        graph._collect(kernel)
        components = _components(kernel.name, graph.targets)
        graph.order = [name for component in components for name in component]
        for component in components:
            if len(component) > 1 or component[0] in graph.targets[component[0]]:
                graph.recursive.update(component)
        graph.called |= graph.recursive
        graph._choose(kernel)
        return graph

    def callee(self, call: ast.Instruction) -> ast.Function | None:
        """The function with a body that a direct call calls; None for another one."""
        target = call.operands[1]
        function = self.module.functions.get(target.name) if isinstance(target, ast.Symbol) else None
        return function if function is not None and function.body is not None else None

    def reachable_by(self, call: ast.Instruction, caller: ast.Function) -> list[str]:
        """The functions that an indirect call may reach, by name."""
        listed: tuple[str, ...] | None = None
        wanted: Signature | None = None
        source = call.operands[3] if len(call.operands) > 3 else None
        if isinstance(source, ast.LabelRef):
            listed = caller.branch_targets.get(source.name)
            prototype = caller.prototypes.get(source.name)
            wanted = signature(prototype.parameters, prototype.returns) if prototype is not None else None
        elif isinstance(source, ast.Symbol):  # a table of functions
            variable = self.module.variables.get(source.name)
            listed = tuple(r[2] for r in variable.relocations) if variable is not None else ()
        names = listed if listed is not None else tuple(self._addresses)
        found = []
        for name in dict.fromkeys(names):
            function = self.module.functions.get(name)
            if function is None or function.body is None or function.is_entry:
                continue
            if wanted is None or _fits(wanted, signature(function.parameters, function.returns)):
                found.append(name)
        return found

    # --- collecting -----------------------------------------------------------------------------------------

    def _collect(self, kernel: ast.Function) -> None:
        functions = self.module.functions
        waiting = [kernel.name]
        self.functions[kernel.name] = with_known_targets(kernel)
        indirect: list[tuple[str, ast.Instruction]] = []
        looked_at_variables = False
        settled = 0
        noted: set[str] = set()
        while waiting or settled < len(self._addresses):
            settled = len(self._addresses)
            while waiting:
                name = waiting.pop()
                function = self.functions[name]
                self.targets[name] = []
                for call in calls(function):
                    if not isinstance(call.operands[1], ast.Symbol):
                        indirect.append((name, call))
                    elif self.callee(call) is not None:
                        self.targets[name].append(call.operands[1].name)
                        self._reach(call.operands[1].name, waiting)
            if indirect:  # otherwise nobody asks for addresses
                for name in [name for name in self.functions if name not in noted]:
                    self._note_addresses(self.functions[name])
                    noted.add(name)
            if indirect and not looked_at_variables:
                looked_at_variables = True
                for variable in self.module.variables.values():
                    for _, _, symbol, _, _ in variable.relocations:
                        if symbol in functions:
                            self._addresses[symbol] = None
            for caller, call in indirect:
                for name in self.reachable_by(call, self.functions[caller]):
                    self._reach(name, waiting)
        self.has_pointers = bool(indirect)
        for caller, call in indirect:
            reachable = self.reachable_by(call, self.functions[caller])
            self.targets[caller] += reachable
            self.called.update(reachable)

    def _reach(self, name: str, waiting: list[str]) -> None:
        if name not in self.functions:
            self.functions[name] = with_known_targets(self.module.functions[name])
            waiting.append(name)

    def _note_addresses(self, function: ast.Function) -> None:
        known = self.module.functions

        def leaf(operand: ast.Operand) -> ast.Operand:
            if isinstance(operand, ast.Symbol) and operand.name in known:
                self._addresses[operand.name] = None
            return operand

        for statement in function.body or ():
            if isinstance(statement, ast.Instruction):
                operands = statement.operands
                if statement.opcode == "call":
                    operands = (*operands[:1], *operands[2:3])
                for operand in operands:
                    rewrite(operand, leaf)

    # --- choosing -------------------------------------------------------------------------------------------

    def _choose(self, kernel: ast.Function) -> None:
        """Find functions that are too large to be copied to all places that call them."""
        sizes: dict[str, int] = {}
        for name in self.order:
            size = len(self.functions[name].body or ())
            for target in self.targets[name]:
                if target not in self.recursive:
                    size += sizes.get(target, 0)
            sizes[name] = min(size, 1 << 40)
        copies = dict.fromkeys(self.order, 0)
        copies[kernel.name] = 1
        for name in reversed(self.order):
            if name in self.called or name == kernel.name:
                copies[name] = 1
            elif sizes[name] > SMALL and copies[name] > 1 and sizes[name] * copies[name] > MOST_COPIED:
                self.called.add(name)
                copies[name] = 1
            for target in self.targets[name]:
                copies[target] += copies[name]


def _fits(wanted: Signature, have: Signature) -> bool:
    """Whether a function can be called by a prototype: an array of any size fits any other, or none."""
    if wanted[1] != have[1]:
        return False
    longer, shorter = sorted((wanted[0], have[0]), key=len, reverse=True)
    if len(longer) != len(shorter) and (len(longer) != len(shorter) + 1 or longer[-1] != 0):
        return False
    return all(a == b or 0 in (a, b) for a, b in zip(longer, shorter, strict=False))


def with_known_targets(function: ast.Function) -> ast.Function:
    """Call a function by name where the pointer is a register that only ever holds its address (``nvrtc -G``)."""
    pointers = {call.operands[1].name for call in calls(function) if isinstance(call.operands[1], ast.Register)}
    if not pointers:
        return function
    body = function.body or []
    targets: dict[str, ast.Symbol | None] = {}
    for statement in body:
        if isinstance(statement, ast.Instruction):
            for name in pointers.intersection(effects(statement).writes):
                symbol = statement.operands[-1] if statement.opcode == "mov" and statement.guard is None else None
                known = isinstance(symbol, ast.Symbol) and not symbol.offset and name not in targets
                targets[name] = symbol if known else None  # type: ignore[assignment]

    def named(statement: ast.Statement) -> ast.Statement:
        if isinstance(statement, ast.Instruction) and statement.opcode == "call":
            returns, pointer, *rest = statement.operands
            symbol = targets.get(pointer.name) if isinstance(pointer, ast.Register) else None
            if symbol is not None:
                return replace(statement, operands=(returns, symbol, rest[0]))
        return statement

    return replace(function, body=[named(statement) for statement in body])


def _components(root: str, edges: dict[str, list[str]]) -> list[list[str]]:
    """Tarjan's strongly connected components, callees before callers, without recursion."""
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    open_names: list[str] = []
    is_open: set[str] = set()
    found: list[list[str]] = []
    stack = [(root, iter(edges[root]))]
    number[root] = low[root] = 0
    open_names.append(root)
    is_open.add(root)
    while stack:
        name, rest = stack[-1]
        for target in rest:
            if target not in number:
                number[target] = low[target] = len(number)
                open_names.append(target)
                is_open.add(target)
                stack.append((target, iter(edges[target])))
                break
            if target in is_open:
                low[name] = min(low[name], number[target])
        else:
            stack.pop()
            if stack:
                caller = stack[-1][0]
                low[caller] = min(low[caller], low[name])
            if low[name] == number[name]:
                component = []
                while True:
                    member = open_names.pop()
                    is_open.discard(member)
                    component.append(member)
                    if member == name:
                        break
                found.append(component)
    return found
