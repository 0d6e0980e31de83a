"""Matrices as lists of places and elements."""

from __future__ import annotations

import importlib
from typing import Any

import numpy

import cupola.numpy as _np
from cupola.numpy._ndarray import ndarray
from cupola.standins.cupyx.scipy.sparse._arrays import canonical, index_type, keys_of, number_type
from cupola.standins.cupyx.scipy.sparse._base import spmatrix


def is_scipy(value: Any) -> bool:
    """Whether it is a sparse matrix of SciPy."""
    return type(value).__module__.startswith("scipy.sparse") and hasattr(value, "tocoo")


def extents_of(shape: Any) -> tuple[int, int]:
    """The two extents.

    Raises
    ------
    ValueError
        When they are not two, or negative.
    """
    found = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    if len(found) != 2 or not all(isinstance(one, (int, numpy.integer)) for one in found):
        raise ValueError(f"invalid shape (must be a 2-tuple of int): {shape!r}")
    rows, columns = map(int, found)
    if rows < 0 or columns < 0:
        raise ValueError(f"'shape' elements cannot be negative: {shape!r}")
    return rows, columns


def dense_matrix(value: Any, dtype: Any) -> Any:
    """An array of the device with two dimensions.

    Raises
    ------
    ValueError
        When no matrix can be made of it.
    """
    if not isinstance(value, ndarray):
        raise ValueError(
            f"Unsupported initializer format: {type(value).__name__}; "
            "arrays of the device (cupy.asarray copies others), sparse matrices, and shapes are taken"
        )
    found = value
    if found.ndim > 2:
        raise ValueError("expected dimension <= 2 array or matrix")
    found = found.reshape((1, -1)) if found.ndim < 2 else found
    return found.astype(number_type(found.dtype if dtype is None else dtype), copy=False)


def is_shape(value: Any) -> bool:
    """Whether it is a tuple of two numbers."""
    return isinstance(value, tuple) and len(value) == 2 and all(isinstance(one, (int, numpy.integer)) for one in value)


def list_of(value: Any, dtype: Any = None) -> Any:
    """An array of the device of one dimension.

    Raises
    ------
    ValueError
        When it has several.
    """
    found = _np.asarray(value, dtype) if not isinstance(value, ndarray) or dtype is not None else value
    if found.ndim != 1:
        raise ValueError("row, column, and data arrays must be 1-D")
    return found


class coo_matrix(spmatrix):
    """A matrix as lists of rows, columns and elements, in any order; elements of one place count together.

    Parameters
    ----------
    arg1 : ndarray, spmatrix, matrix of SciPy, (int, int), or (data, (row, col))
        The elements, or the extents.
    shape : (int, int), optional
        The extents.
    dtype : dtype, optional
        The type of elements.
    copy : bool
        Whether the lists are copied.
    """

    format = "coo"
    row: Any
    col: Any

    def __init__(self, arg1: Any, shape: Any = None, dtype: Any = None, copy: bool = False) -> None:
        wanted = None if shape is None else extents_of(shape)
        self.has_canonical_format = False
        if is_shape(arg1):
            wanted = extents_of(arg1)
            data = _np.zeros(0, number_type(float if dtype is None else dtype))
            row = col = _np.zeros(0, numpy.int32)
        elif isinstance(arg1, spmatrix):
            coo = arg1.tocoo()
            data, row, col, wanted = coo.data, coo.row, coo.col, wanted or coo._shape
            self.has_canonical_format = coo.has_canonical_format
        elif is_scipy(arg1):
            coo = arg1.tocoo()
            data, row, col, wanted = _np.asarray(coo.data), _np.asarray(coo.row), _np.asarray(coo.col), coo.shape
        elif isinstance(arg1, tuple):
            try:
                data, (row, col) = arg1
            except (TypeError, ValueError):
                raise ValueError("Unsupported initializer format: (data, (row, col)) is one") from None
            data, row, col = list_of(data), list_of(row), list_of(col)
            if not data.size == row.size == col.size:
                raise ValueError("row, column, and data array must all be the same length")
            if wanted is None:
                if not row.size:
                    raise ValueError("cannot infer dimensions from zero sized index arrays")
                wanted = int(row.max()) + 1, int(col.max()) + 1
            elif row.size:
                for name, list_, extent in (("row", row, wanted[0]), ("column", col, wanted[1])):
                    if int(list_.max()) >= extent:
                        raise ValueError(f"{name} index exceeds matrix dimensions")
                    if int(list_.min()) < 0:
                        raise ValueError(f"negative {name} index found")
        else:
            dense = dense_matrix(arg1, dtype)
            row, col = _np.nonzero(dense)
            data, wanted = dense[row, col], wanted or dense.shape
            self.has_canonical_format = True
            if wanted != dense.shape:
                raise ValueError(f"inconsistent shapes: {wanted} and {dense.shape}")
        assert wanted is not None
        kind = index_type(wanted, data.size)
        self._shape = (int(wanted[0]), int(wanted[1]))
        self.data = data.astype(number_type(data.dtype if dtype is None else dtype), copy=copy)
        self.row, self.col = row.astype(kind, copy=copy), col.astype(kind, copy=copy)

    @property
    def coords(self) -> tuple[Any, Any]:
        """tuple of ndarray: rows and columns."""
        return self.row, self.col

    def _with_data(self, data: Any) -> Any:
        made = type(self)((data, (self.row.copy(), self.col.copy())), shape=self._shape)
        made.has_canonical_format = self.has_canonical_format
        return made

    def tocoo(self, copy: bool = False) -> Any:
        """Itself, or a copy."""
        return self.copy() if copy else self

    def tocsr(self, copy: bool = False) -> Any:
        """In compressed rows; elements of one place are added up."""
        keys, data = canonical(keys_of(self.row, self.col, self._shape[1]), self.data)
        return self._from_keys(keys, data)

    def tocsc(self, copy: bool = False) -> Any:
        """In compressed columns; elements of one place are added up."""
        return self.T.tocsr().T

    def transpose(self, axes: Any = None, copy: bool = False) -> Any:
        """The transposed matrix."""
        if axes is not None and tuple(axes) != (1, 0):
            raise ValueError("Sparse matrices do not support an 'axes' parameter because swapping is all there is")
        return type(self)((self.data, (self.col, self.row)), shape=self._shape[::-1], copy=copy)

    def sum_duplicates(self) -> None:
        """Add up elements of one place, in place."""
        if not self.has_canonical_format:
            made = self.tocsr().tocoo()
            self.data, self.row, self.col = made.data, made.row, made.col
            self.has_canonical_format = True

    def eliminate_zeros(self) -> None:
        """Forget elements that are zero, in place."""
        kept = self.data != 0
        self.data, self.row, self.col = self.data[kept], self.row[kept], self.col[kept]

    def setdiag(self, values: Any, k: int = 0) -> None:
        """Set the elements of a diagonal."""
        made = self.tocsr()
        made.setdiag(values, k)
        made = made.tocoo()
        self.data, self.row, self.col = made.data, made.row, made.col

    def get(self, stream: Any = None) -> Any:
        """The matrix of SciPy, on the host."""
        scipy = scipy_sparse()
        place = (self.row.to_numpy(), self.col.to_numpy())
        return getattr(scipy, self._name())((self.data.to_numpy(), place), shape=self._shape)

    def _name(self) -> str:
        return f"{self.format}_{'array' if self._is_array else 'matrix'}"

    def __reduce__(self) -> Any:
        return type(self), ((self.data, (self.row, self.col)), self._shape)


def scipy_sparse() -> Any:
    """scipy.sparse.

    Raises
    ------
    ImportError
        When SciPy is not installed.
    """
    try:
        return importlib.import_module("scipy.sparse")
    except ImportError:
        raise ImportError("a sparse matrix on the host is one of SciPy's: pip install scipy") from None
