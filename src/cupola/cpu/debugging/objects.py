"""Values of C++ as Python has them: numbers, lists and dictionaries."""

from __future__ import annotations

from typing import Any

from .state import Frame
from .values import ExpressionError, Value, element, member

_MOST_PARTS = 100_000


def python_value(value: Value, frame: Frame) -> Any:
    """A value as Python has it: a number, a list or a dictionary; None where it cannot be read.

    Raises
    ------
    ExpressionError
        When it has too many parts.
    """
    left = _MOST_PARTS

    def convert(value: Value) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise ExpressionError(f"the value has more than {_MOST_PARTS} parts: ask for a slice x[a:b]")
        kind = value.type.kind
        if kind == "array":
            count = min(value.type.count, left + 1)
            return [convert(element(value, i, frame.read, frame.thread)) for i in range(count)]
        if kind == "struct" and not value.type.name.endswith(("__half", "__nv_bfloat16")):
            return {m.name: convert(member(value, m.name, frame.read)) for m in value.type.members}
        try:
            number = value.number
        except ExpressionError:
            return None
        return bool(number) if kind == "bool" else number

    try:
        return convert(value)
    except RecursionError:
        raise ExpressionError("the value is nested too deeply") from None
