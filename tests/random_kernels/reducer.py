"""Shrinks a random kernel that a device gets wrong.

A smaller kernel is the seed and a list of edits, so a child process can try it: statements are numbered in the order
of the text, and each edit deletes one, replaces it by one of its bodies, or makes an expression simpler. Candidates
that are no longer well formed are found out by the interpreter or the compiler, and count as not failing.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.random_kernels.program import (
    Apply,
    Assign,
    Constant,
    Expression,
    If,
    Kernel,
    Let,
    Mix,
    Return,
    Statement,
    Store,
    Warp,
    bodies,
)

Edit = tuple[str, int, int]
"""What to do, the number of the statement, and which body or operand (or how many statements to delete)."""


def _places(kernel: Kernel) -> Iterator[tuple[list[Statement], int]]:
    """Every statement as a list and its index there."""

    def inside(statements: list[Statement]) -> Iterator[tuple[list[Statement], int]]:
        for index, statement in enumerate(statements):
            yield statements, index
            for body in bodies(statement):
                yield from inside(body)

    for function in kernel.functions:
        yield from inside(function.body)
    yield from inside(kernel.body)


def apply_edits(kernel: Kernel, edits: list[Edit]) -> None:
    for kind, number, detail in edits:
        statements, index = list(_places(kernel))[number]
        statement = statements[index]
        if kind == "delete":
            gone = statements[index : index + detail]
            del statements[index : index + detail]
            declared = {s.variable for s in gone if isinstance(s, Let)}
            kernel.results[:] = [v for v in kernel.results if v not in declared]
        elif kind == "unwrap":
            statements[index : index + 1] = bodies(statement)[detail]
        elif kind == "result":
            del kernel.results[detail]
        elif isinstance(statement, Let | Assign | Mix | Store | Return):
            statement.value = _simpler(statement.value, kind, detail)
        elif isinstance(statement, If):
            statement.condition = _simpler(statement.condition, kind, detail)


def _simpler(value: Expression, kind: str, detail: int) -> Expression:
    """``detail`` counts the sub-expressions in the order of the text."""
    nodes: list[tuple[list[Expression] | None, int, Expression]] = []

    def visit(holder: list[Expression] | None, index: int, e: Expression) -> None:
        nodes.append((holder, index, e))
        if isinstance(e, Apply):
            for i, operand in enumerate(e.operands):
                visit(e.operands, i, operand)

    visit(None, 0, value)
    holder, index, e = nodes[detail % len(nodes)]
    new: Expression = e
    if kind == "constant" and not isinstance(e, Constant):
        new = Constant(e.type, 1 if e.type.kind != "float" else 0)
    elif kind.startswith("operand") and isinstance(e, Apply):
        fitting = [operand for operand in e.operands if operand.type is e.type]
        number = int(kind[-1])
        if number < len(fitting):
            new = fitting[number]
    if new is e:
        raise ValueError("nothing to simplify there")
    if holder is None:
        return new
    holder[index] = new
    return value


def _size(e: Expression) -> int:
    return 1 + sum(map(_size, e.operands)) if isinstance(e, Apply) else 1


def candidates(kernel: Kernel) -> Iterator[list[Edit]]:
    """Smaller kernels to try, the most drastic first."""
    places = list(_places(kernel))
    total = len(places)
    chunk = 16
    while chunk:
        for number in range(total - 1, -1, -1):
            statements, index = places[number]
            if index + chunk <= len(statements):
                yield [("delete", number, chunk)]
        chunk //= 2
    for number in range(total):
        statements, index = places[number]
        for body, inner in enumerate(bodies(statements[index])):
            if inner:
                yield [("unwrap", number, body)]
    for index in range(len(kernel.results)):
        yield [("result", 0, index)]
    for number, (statements, index) in enumerate(places):
        statement = statements[index]
        value: Expression | None = None
        if isinstance(statement, Let | Assign | Mix | Store | Return):
            value = statement.value
        elif isinstance(statement, If):
            value = statement.condition
        if value is None or isinstance(value, Warp) and value.name == "ballot":
            continue
        for node in range(_size(value)):
            for kind in ("constant", "operand0", "operand1", "operand2"):
                yield [(kind, number, node)]
