"""Matrices as diagonals."""

from __future__ import annotations

from typing import Any

import numpy

import cupola.numpy as _np
from cupola.standins.cupyx.scipy.sparse._arrays import number_type, positions
from cupola.standins.cupyx.scipy.sparse._base import spmatrix
from cupola.standins.cupyx.scipy.sparse._coo import dense_matrix, extents_of, is_scipy, is_shape, scipy_sparse


class dia_matrix(spmatrix):
    """A matrix as diagonals: element j of row k of `data` is in column j of the diagonal ``offsets[k]``.

    Parameters
    ----------
    arg1 : ndarray, spmatrix, matrix of SciPy, (int, int), or (data, offsets)
        The elements, or the extents.
    shape : (int, int), optional
        The extents.
    dtype : dtype, optional
        The type of elements.
    copy : bool
        Whether the lists are copied.
    """

    format = "dia"
    offsets: Any

    def __init__(self, arg1: Any, shape: Any = None, dtype: Any = None, copy: bool = False) -> None:
        wanted = None if shape is None else extents_of(shape)
        if is_shape(arg1):
            wanted = extents_of(arg1)
            data, offsets = _np.zeros((0, 0), float if dtype is None else dtype), _np.zeros(0, numpy.int32)
        elif isinstance(arg1, tuple):
            if wanted is None:
                raise ValueError("expected a shape argument")
            data, offsets = _np.atleast_2d(_np.asarray(arg1[0])), _np.atleast_1d(_np.asarray(arg1[1]))
            if data.ndim != 2 or offsets.ndim != 1:
                raise ValueError("data array must have rank 2, and offsets rank 1")
            if data.shape[0] != offsets.size:
                raise ValueError(
                    f"number of diagonals ({data.shape[0]}) does not match the number of offsets ({offsets.size})"
                )
            if _np.unique(offsets).size != offsets.size:
                raise ValueError("offset array contains duplicate values")
        else:
            if is_scipy(arg1) or isinstance(arg1, spmatrix):
                found = self._of("csr")(arg1).todia() if not isinstance(arg1, dia_matrix) else arg1
            else:
                found = self._of("csr")(dense_matrix(arg1, dtype)).todia()
            data, offsets, wanted = found.data, found.offsets, found._shape
        assert wanted is not None
        self._shape = wanted
        self.data = data.astype(number_type(data.dtype if dtype is None else dtype), copy=copy)
        self.offsets = offsets.astype(numpy.int32, copy=copy)

    def _with_data(self, data: Any) -> Any:
        return type(self)((data, self.offsets.copy()), shape=self._shape)

    def _inside(self) -> Any:
        """Rows of all elements of `data`, and which are in the matrix."""
        rows = positions(self.data.shape[1]) - self.offsets.astype(numpy.int64).reshape((-1, 1))
        columns = positions(self.data.shape[1])
        return rows, (rows >= 0) & (rows < self._shape[0]) & (columns < self._shape[1])

    def getnnz(self, axis: int | None = None) -> Any:
        """How many elements the diagonals have in the matrix."""
        if axis is not None:
            raise NotImplementedError("getnnz over an axis is not implemented for DIA format: tocsr() has it")
        rows, columns = self._shape
        offsets = self.offsets.to_numpy().astype(int)
        length = self.data.shape[1]
        return sum(max(0, min(rows + one, columns, length) - max(one, 0)) for one in offsets.tolist())

    def tocoo(self, copy: bool = False) -> Any:
        """As places and elements, without zeros."""
        rows, inside = self._inside()
        kept = inside & (self.data != 0)
        diagonal, column = _np.nonzero(kept)
        return self._of("coo")((self.data[kept], (rows[diagonal, column], column)), shape=self._shape)

    def tocsr(self, copy: bool = False) -> Any:
        """In compressed rows."""
        return self.tocoo().tocsr()

    def tocsc(self, copy: bool = False) -> Any:
        """In compressed columns."""
        return self.tocoo().tocsc()

    def todia(self, copy: bool = False) -> Any:
        """Itself, or a copy."""
        return self.copy() if copy else self

    def transpose(self, axes: Any = None, copy: bool = False) -> Any:
        """The transposed matrix."""
        if axes is not None and tuple(axes) != (1, 0):
            raise ValueError("Sparse matrices do not support an 'axes' parameter because swapping is all there is")
        return self.tocsr().T

    def get(self, stream: Any = None) -> Any:
        """The matrix of SciPy, on the host."""
        kind = getattr(scipy_sparse(), f"dia_{'array' if self._is_array else 'matrix'}")
        return kind((self.data.to_numpy(), self.offsets.to_numpy()), shape=self._shape)

    def __reduce__(self) -> Any:
        return type(self), ((self.data, self.offsets), self._shape)
