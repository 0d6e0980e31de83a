"""Arithmetic that is given on the command line, such as ``8*n*n``."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable
from typing import Any

_OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow,
}  # fmt: skip
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "min": min, "max": max, "ceil": math.ceil, "sqrt": math.sqrt, "log2": math.log2,
}  # fmt: skip


def evaluate(text: str, **names: float) -> int | float:
    """The value of arithmetic with numbers, the given names, and min, max, ceil, sqrt and log2.

    Raises
    ------
    ValueError
        It is something else, or has no value.
    """

    def value(node: ast.expr) -> Any:
        match node:
            case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
                return number
            case ast.Name(id=name) if name in names:
                return names[name]
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
                first, second = value(left), value(right)
                if isinstance(op, ast.Pow) and (abs(second) > 64 or abs(first) > 2**32):
                    raise ValueError(f"{text!r} is too large")
                return _OPERATORS[type(op)](first, second)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -value(operand)
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in _FUNCTIONS:
                return _FUNCTIONS[name](*map(value, arguments))
        known = ", ".join([*names, *_FUNCTIONS])
        raise ValueError(f"{text!r} is no arithmetic of numbers and {known}")

    try:
        found: int | float = value(ast.parse(text.strip(), mode="eval").body)
        return found
    except (SyntaxError, TypeError, ArithmeticError, RecursionError, MemoryError) as error:
        raise ValueError(f"{text!r} has no value: {error}") from None


def size(text: str) -> int:
    """A number of elements, such as 1000, 64k, 16M or 2**20.

    Raises
    ------
    ValueError
        It is none.
    """
    number, factor = text.strip(), 1
    if number and number[-1] in "kKMG":
        number, factor = number[:-1], {"k": 1 << 10, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}[number[-1]]
    found = evaluate(number) * factor
    if found != int(found) or found < 1:
        raise ValueError(f"{text!r} is no number of elements: write 1000, 64k, 16M or 2**20")
    return int(found)
