"""What `order` means where arrays are made, copied and given other extents: row-major, column-major, or as it was."""

from __future__ import annotations

import operator
from typing import Any

from cupola.numpy import _lazy

_KNOWN = ("C", "F", "A", "K")


def letter(order: Any, default: str = "C") -> str:
    """The letter of an order; ValueError for what is none.

    Parameters
    ----------
    order : str or None
        What the caller gave.
    default : str
        What None stands for.
    """
    if order is None:
        return default
    found = order.upper() if isinstance(order, str) else order
    if found not in _KNOWN:
        raise ValueError(f"order must be one of 'C', 'F', 'A', or 'K' (got {order!r})")
    return str(found)


def is_column_major(order: Any) -> bool:
    """Whether new memory is column-major: for F, and not for C and None; ValueError for others."""
    found = letter(order)
    if found not in ("C", "F"):
        raise ValueError("only 'C' or 'F' order is permitted")
    return found == "F"


def turns(x: Any, order: Any) -> bool:
    """Whether an order asks for column-major elements of `x`; A and K: whether they are that already."""
    found = letter(order)
    if found in ("A", "K"):
        return not x.is_contiguous and x.transpose().is_contiguous
    return found == "F"


def in_order(x: Any, order: Any) -> Any:
    """The array itself if it is in that order, else a copy that is; with K and A it always is."""
    found = letter(order, "K")
    return x if has_order(x, found) else copied(x, found)


def has_order(x: Any, order: str) -> bool:
    """Whether an array is in that order; with K and A it always is."""
    return order in ("A", "K") or bool((x.transpose() if order == "F" else x).is_contiguous)


def copied(x: Any, order: Any) -> Any:
    """A copy in an order; K: the dimensions lie in memory as those of `x` do."""
    if letter(order) == "K" and not x.is_contiguous:
        axes = nested(x.strides)
        return _lazy.made_copy(x.transpose(*axes)).transpose(*undone(axes))
    return _lazy.made_copy(x.transpose()).transpose() if turns(x, order) else _lazy.made_copy(x)


def nested(strides: Any) -> list[int]:
    """The axes with those strides, the farthest steps first."""
    return sorted(range(len(strides)), key=lambda axis: -abs(strides[axis]))


def undone(axes: list[int]) -> list[int]:
    """The axes of a transposed array that give back the array."""
    return sorted(range(len(axes)), key=axes.__getitem__)


def extents_of(shape: Any) -> tuple[int, ...]:
    """A shape as a tuple."""
    return tuple(shape) if isinstance(shape, (tuple, list)) else (operator.index(shape),)
