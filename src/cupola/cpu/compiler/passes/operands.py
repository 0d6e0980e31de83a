"""Rewriting operands."""

from __future__ import annotations

from collections.abc import Callable

from cupola.cpu.compiler.ptx import ast

Rewrite = Callable[[ast.Operand], ast.Operand]


def rewrite(operand: ast.Operand, leaf: Rewrite) -> ast.Operand:
    """``operand`` with every register, symbol and label in it replaced by what ``leaf`` makes of it."""
    match operand:
        case ast.Register() | ast.Symbol() | ast.LabelRef():
            return leaf(operand)
        case ast.Address(base, offset):
            if base is None:
                return operand
            new = leaf(base)
            if isinstance(new, ast.Symbol) and new.offset:
                return ast.Address(ast.Symbol(new.name), new.offset + offset)
            assert isinstance(new, ast.Register | ast.Symbol)
            return ast.Address(new, offset)
        case ast.Vector(items):
            return ast.Vector(tuple(rewrite(item, leaf) for item in items))
        case ast.ArgumentList(items):
            return ast.ArgumentList(tuple(rewrite(item, leaf) for item in items))
        case ast.AddressList(items):
            return ast.AddressList(tuple(rewrite(item, leaf) for item in items))
        case ast.Negated(register):
            return ast.Negated(_register(leaf, register))
        case ast.Selector(register, part, negated):
            return ast.Selector(_register(leaf, register), part, negated)
        case ast.Pair(first, second):
            return ast.Pair(
                _register(leaf, first) if isinstance(first, ast.Register) else _destination(leaf, first),
                second if isinstance(second, ast.Sink) else _register(leaf, second),
            )
    return operand


def _destination(leaf: Rewrite, operand: ast.Vector | ast.Sink) -> ast.Vector | ast.Sink:
    new = rewrite(operand, leaf)
    assert isinstance(new, ast.Vector | ast.Sink)
    return new


def _register(leaf: Rewrite, register: ast.Register) -> ast.Register:
    new = leaf(register)
    assert isinstance(new, ast.Register)
    return new
