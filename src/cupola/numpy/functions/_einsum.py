"""Sums of products by subscripts: each pair of operands becomes a product of stacks of matrices."""

from __future__ import annotations

import math
from typing import Any

import numpy

from cupola.numpy._lazy import reduce
from cupola.numpy._ndarray import into, known_type, ndarray, on_device
from cupola.numpy._order import in_order
from cupola.numpy.functions._products import matmul

__all__ = ["einsum", "einsum_path"]

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def _parsed(subscripts: str, operands: list[ndarray]) -> tuple[list[str], str]:
    """The labels of each operand and of the result, with letters in place of an ellipsis."""
    text = subscripts.replace(" ", "")
    inputs, arrow, output = text.partition("->")
    terms = inputs.split(",")
    if len(terms) != len(operands):
        raise ValueError("more operands provided to einstein sum function than specified in the subscripts string")
    unused = [letter for letter in _LETTERS if letter not in text]
    most = 0
    for term, operand in zip(terms, operands, strict=True):
        if "..." in term:
            most = max(most, operand.ndim - len(term.replace("...", "")))
    dots = "".join(unused[:most])
    found = []
    for term, operand in zip(terms, operands, strict=True):
        if "..." in term:
            count = operand.ndim - len(term.replace("...", ""))
            term = term.replace("...", dots[most - count :])
        if len(term) != operand.ndim or not term.isalpha() and term:
            raise ValueError(f"einsum: subscripts {term!r} for an operand of {operand.ndim} dimensions")
        found.append(term)
    if not arrow:
        letters = "".join(found)
        output = dots + "".join(sorted([x for x in set(letters) if letters.count(x) == 1 and x not in dots]))
    else:
        output = output.replace("...", dots)
    if len(set(output)) < len(output) or any([letter not in "".join(found) for letter in output]):
        raise ValueError(f"einsum: the output subscripts {output!r} occur twice, or in no operand")
    return found, output


def _diagonal(x: ndarray, labels: str) -> tuple[ndarray, str]:
    """A view without repeated labels."""
    if len(set(labels)) == len(labels):
        return x, labels
    x._compute_now()
    kept = "".join(dict.fromkeys(labels))
    shape, strides = [], []
    for letter in kept:
        axes = [k for k, one in enumerate(labels) if one == letter]
        extents = {x.shape[k] for k in axes}
        if len(extents) > 1:
            raise ValueError(f"einsum: dimensions of different size for subscript {letter!r}")
        shape.append(x.shape[axes[0]])
        strides.append(sum([x.strides[k] for k in axes]))
    return x._view_of(shape, strides), kept


def _summed(x: ndarray, labels: str, keep: set[str]) -> tuple[ndarray, str]:
    """The sum over labels that nobody needs."""
    gone = tuple([k for k, letter in enumerate(labels) if letter not in keep])
    if not gone:
        return x, labels
    how = "any" if x.dtype == bool else "sum"
    made = reduce(how, x, gone, x.dtype if how == "sum" else None, None, False)
    return made, "".join([letter for letter in labels if letter in keep])


def _ordered(x: ndarray, labels: str, wanted: str) -> ndarray:
    return x.transpose([labels.index(letter) for letter in wanted]) if labels != wanted else x


def _pair(a: ndarray, ours: str, b: ndarray, theirs: str, keep: set[str]) -> tuple[ndarray, str]:
    """The product of two operands, summed over what only they have."""
    a, ours = _summed(a, ours, keep | set(theirs))
    b, theirs = _summed(b, theirs, keep | set(ours))
    # An extent of one is broadcast.
    size: dict[str, int] = {}
    for letter, extent in (*zip(ours, a.shape, strict=True), *zip(theirs, b.shape, strict=True)):
        if size.get(letter, 1) not in (1, extent) and extent != 1:
            raise ValueError(
                f"einsum: operands could not be broadcast together: {letter!r} is {size[letter]} and {extent}"
            )
        size[letter] = extent if size.get(letter, 1) == 1 else size[letter]
    both = [letter for letter in ours if letter in theirs]
    batch = "".join([letter for letter in both if letter in keep])
    inner = "".join([letter for letter in both if letter not in keep])
    left, right = ("".join([x for x in one if x not in both]) for one in (ours, theirs))
    if not inner:
        whole = batch + left + right
        one = _ordered(a, ours, batch + left)
        made = one.reshape((*one.shape, *[1] * len(right))) * _spread(b, theirs, batch, left, right)
        return made, whole

    def extents(letters: str) -> list[int]:
        return [size[letter] for letter in letters]

    from_left = _wide(_ordered(a, ours, batch + left + inner), extents(batch + left + inner))
    from_right = _wide(_ordered(b, theirs, batch + inner + right), extents(batch + inner + right))
    count = math.prod(extents(inner))
    one = from_left.reshape((*extents(batch), math.prod(extents(left)), count))
    other = from_right.reshape((*extents(batch), count, math.prod(extents(right))))
    return matmul(one, other).reshape(extents(batch + left + right)), batch + left + right


def _wide(x: ndarray, shape: list[int]) -> ndarray:
    from_one = [k for k, extent in enumerate(shape) if x.shape[k] != extent]
    if not from_one:
        return x
    x._compute_now()
    return x._view_of(shape, [0 if k in from_one else stride for k, stride in enumerate(x.strides)])


def _spread(b: ndarray, theirs: str, batch: str, left: str, right: str) -> ndarray:
    other = _ordered(b, theirs, batch + right)
    extents = other.shape
    return other.reshape((*extents[: len(batch)], *[1] * len(left), *extents[len(batch) :]))


def einsum(
    subscripts: Any, *operands: Any, out: Any = None, dtype: Any = None, casting: Any = "safe", order: str = "K",
    optimize: Any = False,
) -> ndarray:  # fmt: skip
    """Sums of products by subscripts, as ``numpy.einsum``."""
    if not isinstance(subscripts, str):
        parts = [subscripts, *operands]
        result = parts.pop() if len(parts) % 2 else None
        named = ["".join([_LETTERS[k] if k is not Ellipsis else "..." for k in one]) for one in parts[1::2]]
        subscripts = ",".join(named)
        if result is not None:
            subscripts += "->" + "".join([_LETTERS[k] if k is not Ellipsis else "..." for k in result])
        operands = tuple(parts[::2])
    given = [on_device(one) for one in operands]
    to = known_type(numpy.result_type(*[one.dtype for one in given]) if dtype is None else dtype)
    for one in given:
        if not numpy.can_cast(one.dtype, to, casting):
            raise TypeError(f"Cannot cast an operand from {one.dtype!r} to {to!r} by the rule {casting!r}")
    terms, output = _parsed(subscripts, given)
    left = [_diagonal(one.astype(to, copy=False), term) for one, term in zip(given, terms, strict=True)]
    steps = _path(subscripts, given, optimize) if len(left) > 2 else [tuple(range(len(left)))]
    for step in steps:
        chosen = [left.pop(k) for k in sorted(step, reverse=True)]
        keep = set(output).union(*[set(labels) for _, labels in left])
        made, labels = chosen.pop()
        while chosen:
            other, theirs = chosen.pop()
            needed = keep.union(*[set(more) for _, more in chosen])
            made, labels = _pair(made, labels, other, theirs, needed)
        left.append(_summed(made, labels, keep))
    (result_of, labels) = left[0]
    made = _ordered(result_of, labels, output)
    return into(out, in_order(made, order), casting)


def _path(subscripts: str, operands: list[ndarray], optimize: Any) -> list[Any]:
    stand_ins = [numpy.broadcast_to(numpy.float32(0), one.shape) for one in operands]
    path: list[Any] = numpy.einsum_path(subscripts, *stand_ins, optimize=optimize or "greedy")[0]
    return path[1:]


def einsum_path(subscripts: str, *operands: Any, optimize: Any = "greedy") -> Any:
    """The order of products that ``einsum`` takes, as ``numpy.einsum_path``."""
    stand_ins = [numpy.broadcast_to(numpy.float32(0), on_device(one).shape) for one in operands]
    return numpy.einsum_path(subscripts, *stand_ins, optimize=optimize)
