"""Functions that make sparse matrices: of diagonals, of blocks, of parts of others, at random."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

import cupola.numpy as _np
from cupola.numpy._ndarray import ndarray
from cupola.standins.cupyx.scipy.sparse._arrays import TYPES, number_type
from cupola.standins.cupyx.scipy.sparse._base import spmatrix
from cupola.standins.cupyx.scipy.sparse._classes import coo_array, coo_matrix, dia_array, dia_matrix, sparray


def issparse(x: Any) -> bool:
    """Whether it is a sparse matrix or array of the device."""
    return isinstance(x, spmatrix)


def isspmatrix(x: Any) -> bool:
    """Whether it is a sparse matrix of the device."""
    return isinstance(x, spmatrix) and not isinstance(x, sparray)


def _is_format(name: str) -> Any:
    def function(x: Any) -> bool:
        return isspmatrix(x) and x.format == name

    function.__name__ = function.__qualname__ = f"isspmatrix_{name}"
    function.__doc__ = f"Whether it is a sparse matrix of the format {name}."
    return function


isspmatrix_csr, isspmatrix_csc, isspmatrix_coo, isspmatrix_dia = map(_is_format, ("csr", "csc", "coo", "dia"))


def _coo(x: Any) -> Any:
    return (x if isinstance(x, spmatrix) else coo_matrix(x)).tocoo()


def get_index_dtype(arrays: Any = (), maxval: Any = None, check_contents: bool = False) -> Any:
    """The type of places: 32 bits unless `maxval` or an array needs 64."""
    wide = [one for one in (arrays if isinstance(arrays, (tuple, list)) else (arrays,)) if one.dtype.itemsize > 4]
    return numpy.int64 if wide and not check_contents or (maxval or 0) > numpy.iinfo(numpy.int32).max else numpy.int32


# --- diagonals ------------------------------------------------------------------------------------------------------


def eye(m: int, n: int | None = None, k: int = 0, dtype: Any = "d", format: str | None = None) -> Any:
    """Ones on a diagonal."""
    columns = m if n is None else n
    data = _np.ones((1, max(0, min(m + k, columns))), dtype)
    return dia_matrix((data, [k]), shape=(m, columns)).asformat(format)


def eye_array(m: int, n: int | None = None, *, k: int = 0, dtype: Any = float, format: str | None = None) -> Any:
    """As `eye`, as an array."""
    return dia_array(eye(m, n, k, dtype)).asformat(format)


def identity(n: int, dtype: Any = "d", format: str | None = None) -> Any:
    """The identity."""
    return eye(n, n, 0, dtype, format)


def spdiags(data: Any, diags: Any, m: int, n: int, format: str | None = None) -> Any:
    """The matrix of diagonals, column j of which is column j of `data`."""
    return dia_matrix((data, diags), shape=(m, n)).asformat(format)


def diags(diagonals: Any, offsets: Any = 0, shape: Any = None, format: str | None = None, dtype: Any = None) -> Any:
    """The matrix of diagonals, each of which begins at its first element."""
    if isinstance(offsets, (int, numpy.integer)):
        if isinstance(diagonals, ndarray) and diagonals.ndim == 1 or not hasattr(diagonals[0], "__len__"):
            diagonals = [diagonals]
        offsets = [int(offsets)]
    places = [int(one) for one in offsets]
    lists = [_np.atleast_1d(_np.asarray(one)) for one in diagonals]
    if len(lists) != len(places):
        raise ValueError("Different number of diagonals and offsets.")
    if len(set(places)) != len(places):
        raise ValueError("offset array contains duplicate values")
    extent = lists[0].size + abs(places[0])
    rows, columns = (extent, extent) if shape is None else shape
    to = numpy.result_type(*lists and [one.dtype for one in lists]) if dtype is None else numpy.dtype(dtype)
    to = to if to.char in TYPES else numpy.dtype(float)
    width = max([min(rows + k, columns - k) + max(0, k) for k in places])
    data = _np.zeros((len(lists), max(width, 0)), to)
    for number, (one, k) in enumerate(zip(lists, places, strict=True)):
        length = min(rows + k, columns - k, rows, columns)
        if length < 0:
            raise ValueError(f"Offset {k} (index {number}) out of bounds")
        if one.size not in (1, length):
            raise ValueError(
                f"Diagonal length (index {number}: {one.size} at offset {k}) does not agree with array size "
                f"({rows}, {columns})."
            )
        data[number, max(0, k) : max(0, k) + length] = one
    return dia_matrix((data, places), shape=(rows, columns)).asformat(format)


def diags_array(
    diagonals: Any, /, *, offsets: Any = 0, shape: Any = None, format: str | None = None, dtype: Any = None
) -> Any:
    """As `diags`, as an array."""
    return dia_array(diags(diagonals, offsets, shape, None, dtype)).asformat(format)


# --- parts -----------------------------------------------------------------------------------------------------------


def _part(A: Any, keep: Any, format: str | None) -> Any:
    coo = _coo(A)
    kept = keep(coo.row.astype(numpy.int64), coo.col.astype(numpy.int64))
    made = type(coo)((coo.data[kept], (coo.row[kept], coo.col[kept])), shape=coo.shape)
    return made.asformat(format)


def tril(A: Any, k: int = 0, format: str | None = None) -> Any:
    """The lower triangle."""
    return _part(A, lambda row, column: column - row <= k, format)


def triu(A: Any, k: int = 0, format: str | None = None) -> Any:
    """The upper triangle."""
    return _part(A, lambda row, column: column - row >= k, format)


def find(A: Any) -> tuple[Any, Any, Any]:
    """Rows, columns and elements that are not zero."""
    coo = _coo(A).tocsr().tocoo()
    kept = coo.data != 0
    return coo.row[kept], coo.col[kept], coo.data[kept]


# --- blocks -----------------------------------------------------------------------------------------------------------


def bmat(blocks: Any, format: str | None = None, dtype: Any = None) -> Any:
    """The matrix of blocks in rows; None stands for zeros."""
    table: Any = [list(row) for row in blocks]
    if not table or len({len(row) for row in table}) != 1:
        raise ValueError("blocks must be 2-D")
    table = [[None if one is None else _coo(one) for one in row] for row in table]
    heights: list[int] = [_common([one.shape[0] for one in row if one is not None], "row", i)
                          for i, row in enumerate(table)]  # fmt: skip
    widths: list[int] = [_common([one.shape[1] for one in column if one is not None], "column", i)
                         for i, column in enumerate(zip(*table, strict=True))]  # fmt: skip
    there = [one for row in table for one in row if one is not None]
    to = numpy.result_type(*[one.dtype for one in there]) if dtype is None else numpy.dtype(dtype)
    shape = (sum(heights), sum(widths))
    rows, columns, data = [], [], []
    for i, row in enumerate(table):
        for j, one in enumerate(row):
            if one is not None:
                rows.append(one.row.astype(numpy.int64) + sum(heights[:i]))
                columns.append(one.col.astype(numpy.int64) + sum(widths[:j]))
                data.append(one.data.astype(to, copy=False))
    kind = coo_array if any(isinstance(one, sparray) for row in blocks for one in row) else coo_matrix
    lists = (_np.concatenate(data), (_np.concatenate(rows), _np.concatenate(columns)))
    return kind(lists, shape=shape).asformat(format)


def _common(extents: Sequence[int], what: str, place: int) -> int:
    if not extents:
        raise ValueError(f"all blocks of {what} {place} are None")
    if len(set(extents)) != 1:
        raise ValueError(f"incompatible {what} dimensions: {sorted(set(extents))}")
    return extents[0]


block_array = bmat


def _stacked(blocks: Any, format: str | None) -> str | None:
    """The format of stacked matrices: that of the first ones if all have it, as in SciPy."""
    formats = {getattr(one, "format", "coo") for one in blocks}
    return format or ("csr" if formats == {"csr"} else None)


def hstack(blocks: Any, format: str | None = None, dtype: Any = None) -> Any:
    """Matrices beside one another."""
    given = list(blocks)
    formats = {getattr(one, "format", "coo") for one in given}
    return bmat([given], format or ("csc" if formats == {"csc"} else None), dtype)


def vstack(blocks: Any, format: str | None = None, dtype: Any = None) -> Any:
    """Matrices below one another."""
    given = list(blocks)
    return bmat([[one] for one in given], _stacked(given, format), dtype)


def block_diag(mats: Any, format: str | None = None, dtype: Any = None) -> Any:
    """Matrices along the diagonal."""
    given = list(mats)
    table = [[one if i == j else None for j in range(len(given))] for i, one in enumerate(given)]
    return bmat(table, format, dtype)


def kron(A: Any, B: Any, format: str | None = None) -> Any:
    """The Kronecker product."""
    one, two = _coo(A), _coo(B)
    shape = (one.shape[0] * two.shape[0], one.shape[1] * two.shape[1])
    rows, columns = (
        (x.astype(numpy.int64).reshape((-1, 1)) * n + y).reshape(-1)
        for x, y, n in ((one.row, two.row, two.shape[0]), (one.col, two.col, two.shape[1]))
    )
    data = (one.data.reshape((-1, 1)) * two.data).reshape(-1)
    return type(one)((data, (rows, columns)), shape=shape).asformat(format)


def kronsum(A: Any, B: Any, format: str | None = None) -> Any:
    """``kron(I, A) + kron(B, I)``."""
    one, two = _coo(A), _coo(B)
    for x in (one, two):
        if x.shape[0] != x.shape[1]:
            raise ValueError("matrices must be square")
    to = numpy.result_type(one.dtype, two.dtype)
    left = kron(identity(two.shape[0], to), one, "csr")
    return (left + kron(two, identity(one.shape[0], to), "csr")).asformat(format)


# --- other ------------------------------------------------------------------------------------------------------------


def random(
    m: int,
    n: int,
    density: float = 0.01,
    format: str = "coo",
    dtype: Any = None,
    random_state: Any = None,
    data_rvs: Any = None,
) -> Any:
    """Elements at random places."""
    if not 0 <= density <= 1:
        raise ValueError("density expected to be 0 <= density <= 1")
    from cupola.standins.cupy.random import RandomState, get_random_state

    state = random_state
    if state is None:
        state = get_random_state()
    elif not hasattr(state, "choice"):
        state = RandomState(state)
    count = int(m * n * density)
    places = state.permutation(m * n)[:count]
    sampled: Any = (state.random_sample if data_rvs is None else data_rvs)(count)
    data = _np.asarray(sampled).astype(number_type(float if dtype is None else dtype))
    return coo_matrix((data, (places // max(n, 1), places % max(n, 1))), shape=(m, n)).asformat(format)


def rand(
    m: int, n: int, density: float = 0.01, format: str = "coo", dtype: Any = None, random_state: Any = None
) -> Any:
    """Uniform numbers at random places."""
    return random(m, n, density, format, dtype, random_state)


def random_array(
    shape: Any,
    *,
    density: float = 0.01,
    format: str = "coo",
    dtype: Any = None,
    random_state: Any = None,
    data_sampler: Any = None,
) -> Any:
    """Elements at random places, as an array."""
    rows, columns = shape
    return coo_array(random(rows, columns, density, "coo", dtype, random_state, data_sampler)).asformat(format)


def matrix_transpose(A: Any) -> Any:
    """The transposed matrix."""
    return A.transpose()


def swapaxes(A: Any, axis1: int, axis2: int) -> Any:
    """The matrix with its dimensions exchanged."""
    return A.copy() if axis1 % 2 == axis2 % 2 else A.transpose()


def permute_dims(A: Any, axes: Any = None, copy: bool = False) -> Any:
    """The matrix with its dimensions in another order."""
    return A.copy() if axes is not None and tuple(one % 2 for one in axes) == (0, 1) else A.transpose(copy=copy)
