"""Matrices in compressed rows and in compressed columns."""

from __future__ import annotations

import operator
from typing import Any

import numpy

import cupola.numpy as _np
from cupola.numpy._known import UFUNCS
from cupola.numpy._ndarray import ndarray
from cupola.standins.cupyx.scipy.sparse._arrays import (
    canonical,
    elements_at,
    index_type,
    keys_of,
    majors_of,
    number_type,
    places_in,
    places_of,
    positions,
    starts_of,
)
from cupola.standins.cupyx.scipy.sparse._base import is_number, spmatrix
from cupola.standins.cupyx.scipy.sparse._coo import (
    dense_matrix,
    extents_of,
    is_scipy,
    is_shape,
    list_of,
    scipy_sparse,
)


class compressed(spmatrix):
    """A matrix whose rows (or columns) lie one behind the other: where each begins, and places and elements in it.

    Parameters
    ----------
    arg1 : ndarray, spmatrix, matrix of SciPy, (int, int), (data, (row, col)), or (data, indices, indptr)
        The elements, or the extents.
    shape : (int, int), optional
        The extents.
    dtype : dtype, optional
        The type of elements.
    copy : bool
        Whether the lists are copied.
    """

    indices: Any
    indptr: Any
    _sorted: bool | None
    _canonical: bool
    _major = 0  # the dimension that is compressed

    def __init__(self, arg1: Any, shape: Any = None, dtype: Any = None, copy: bool = False) -> None:
        wanted = None if shape is None else extents_of(shape)
        if isinstance(arg1, tuple) and len(arg1) == 3:
            data, indices, indptr = map(list_of, arg1)
            if data.size != indices.size:
                raise ValueError("indices and data should have the same size")
            if wanted is None:
                minor = int(indices.max()) + 1 if indices.size else 0
                wanted = (indptr.size - 1, minor) if self._major == 0 else (minor, indptr.size - 1)
            if indptr.size != wanted[self._major] + 1:
                raise ValueError(f"index pointer size ({indptr.size}) should be ({wanted[self._major] + 1})")
            ends = (int(indptr[0]), int(indptr[-1])) if indptr.size else (0, 0)
            if ends[0] != 0:
                raise ValueError("index pointer should start with 0")
            if ends[1] > indices.size:
                raise ValueError("Last value of index pointer should be less than the size of index and data arrays")
            if bool((indptr[1:] < indptr[:-1]).any()):
                raise ValueError("index pointer values must form a non-decreasing sequence")
            if indices.size and not 0 <= int(indices.min()) <= int(indices.max()) < wanted[1 - self._major]:
                raise ValueError(f"indices must be from 0 to {wanted[1 - self._major] - 1}")
            data, indices = data[: ends[1]], indices[: ends[1]]
            data = data.astype(number_type(data.dtype if dtype is None else dtype), copy=copy)
            kind = index_type(wanted, data.size)
            self._fill(data, indices.astype(kind, copy=copy), indptr.astype(kind, copy=copy), wanted, None)
            return
        if is_shape(arg1):
            wanted = extents_of(arg1)
            kind = index_type(wanted, 0)
            data = _np.zeros(0, number_type(float if dtype is None else dtype))
            starts = _np.zeros(wanted[self._major] + 1, kind)
            self._fill(data, _np.zeros(0, kind), starts, wanted, True)
            return
        if isinstance(arg1, spmatrix):
            found = arg1
        elif is_scipy(arg1):
            found = self._of("coo")(arg1)
        elif isinstance(arg1, tuple):
            found = self._of("coo")(arg1, wanted, dtype)
        else:
            found = self._of("coo")(dense_matrix(arg1, dtype), wanted)
        made = found.tocsr() if self._major == 0 else found.tocsc()
        if wanted is not None and wanted != made._shape:
            raise ValueError(f"inconsistent shapes: {wanted} and {made._shape}")
        made = made.astype(made.dtype if dtype is None else dtype, copy=copy)
        self._fill(made.data, made.indices, made.indptr, made._shape, made._sorted)
        self._canonical = made._canonical

    def _fill(self, data: Any, indices: Any, indptr: Any, shape: Any, is_sorted: bool | None) -> None:
        self.data, self.indices, self.indptr = data, indices, indptr
        self._shape = (int(shape[0]), int(shape[1]))
        self._sorted, self._canonical = is_sorted, bool(is_sorted)

    @classmethod
    def _made(cls, data: Any, indices: Any, indptr: Any, shape: Any, canonical: bool) -> Any:
        """The matrix of lists that are known to fit."""
        made = cls.__new__(cls)
        made._fill(data, indices, indptr, shape, canonical or None)
        return made

    def _with_data(self, data: Any) -> Any:
        made = self._made(data, self.indices.copy(), self.indptr.copy(), self._shape, False)
        made._sorted, made._canonical = self._sorted, self._canonical
        return made

    def _majors(self) -> Any:
        """The row (or column) of each element."""
        return majors_of(self.indptr, self.data.size)

    def _in_order(self) -> bool:
        """Whether the places of each row (or column) are sorted."""
        if self._sorted is None:
            majors = self._majors()
            back = (majors[1:] == majors[:-1]) & (self.indices[1:] < self.indices[:-1])
            self._sorted = not bool(back.any())
        return self._sorted

    @property
    def has_sorted_indices(self) -> bool:
        """bool: whether the places of each row (or column) are sorted."""
        return self._in_order()

    @property
    def has_canonical_format(self) -> bool:
        """bool: whether they are sorted, and each is there once."""
        if not self._canonical and self._in_order():
            majors = self._majors()
            twice = (majors[1:] == majors[:-1]) & (self.indices[1:] == self.indices[:-1])
            self._canonical = not bool(twice.any())
        return self._canonical

    def sort_indices(self) -> None:
        """Sort the places of each row (or column), in place."""
        if not self._in_order():
            order = _np.argsort(keys_of(self._majors(), self.indices, self._minor_extent()), stable=True)
            self.data, self.indices, self._sorted = self.data[order], self.indices[order], True

    def sorted_indices(self) -> Any:
        """A copy with sorted places."""
        made = self.copy()
        made.sort_indices()
        return made

    def sum_duplicates(self) -> None:
        """Add up elements of one place, in place."""
        if not self.has_canonical_format:
            self._take(*canonical(keys_of(self._majors(), self.indices, self._minor_extent()), self.data))

    def eliminate_zeros(self) -> None:
        """Forget elements that are zero, in place."""
        kept = self.data != 0
        majors, extent = self._majors()[kept], self._shape[self._major]
        self.indptr = starts_of(majors, extent, self.indptr.dtype)
        self.data, self.indices = self.data[kept], self.indices[kept]

    def prune(self) -> None:
        """Forget what is behind the last element."""
        count = int(self.indptr[-1])
        self.data, self.indices = self.data[:count].copy(), self.indices[:count].copy()

    def _minor_extent(self) -> int:
        return self._shape[1 - self._major]

    def _take(self, keys: Any, data: Any) -> None:
        """Have these elements at sorted places, each there once."""
        majors, self.indices = places_of(keys, self._minor_extent(), self.indptr.dtype)
        self.indptr = starts_of(majors, self._shape[self._major], self.indptr.dtype)
        self.data, self._sorted, self._canonical = data, True, True

    def getnnz(self, axis: int | None = None) -> Any:
        """How many elements are stored, of each column or row if `axis` is given."""
        if axis is not None and axis % 2 != self._major:
            return _np.diff(self.indptr)
        return super().getnnz(axis)

    def tocoo(self, copy: bool = False) -> Any:
        """As places and elements."""
        count = self.data.size
        places = (self._majors(), self.indices.copy() if copy else self.indices)
        made = self._of("coo").__new__(self._of("coo"))
        made.data, made._shape = self.data.copy() if copy else self.data, self._shape
        made.row, made.col = places if self._major == 0 else places[::-1]
        made.has_canonical_format = bool(self._canonical) and count >= 0
        return made

    def todia(self, copy: bool = False) -> Any:
        """As diagonals."""
        coo = self.tocoo()
        offsets, place = _np.unique(coo.col.astype(numpy.int64) - coo.row, return_inverse=True)
        data = _np.zeros((offsets.size, int(coo.col.max()) + 1 if coo.nnz else 0), self.dtype)
        if coo.nnz:
            UFUNCS["add"].at(data, (place, coo.col), coo.data)
        return self._of("dia")((data, offsets.astype(coo.row.dtype)), shape=self._shape)

    def toarray(self, order: Any = None, out: Any = None) -> Any:
        """All elements in an array."""
        if order not in (None, "C", "F"):
            raise ValueError("order not understood")
        keys, data = self._keyed()
        made = _np.zeros(self._shape[0] * self._shape[1], self.dtype)
        made[keys] = data
        made = made.reshape(self._shape)
        if out is not None:
            out[...] = made
            return out
        return _np.ascontiguousarray(made.T).T if order == "F" and made.size else made

    def get(self, stream: Any = None) -> Any:
        """The matrix of SciPy, on the host."""
        kind = getattr(scipy_sparse(), f"{self.format}_{'array' if self._is_array else 'matrix'}")
        lists = (self.data.to_numpy(), self.indices.to_numpy(), self.indptr.to_numpy())
        return kind(lists, shape=self._shape)

    def __reduce__(self) -> Any:
        return type(self), ((self.data, self.indices, self.indptr), self._shape)

    def transpose(self, axes: Any = None, copy: bool = False) -> Any:
        """The transposed matrix, in the other format, with the same lists."""
        if axes is not None and tuple(axes) != (1, 0):
            raise ValueError("Sparse matrices do not support an 'axes' parameter because swapping is all there is")
        made = self._of("csc" if self._major == 0 else "csr")._made(
            self.data.copy() if copy else self.data,
            self.indices.copy() if copy else self.indices,
            self.indptr.copy() if copy else self.indptr,
            self._shape[::-1],
            False,
        )
        made._sorted, made._canonical = self._sorted, self._canonical
        return made

    def _turned(self) -> Any:
        """The same matrix in the other format."""
        order = _np.argsort(self.indices, stable=True)
        minors, other = self.indices[order], self._of("csc" if self._major == 0 else "csr")
        starts = starts_of(minors, self._minor_extent(), self.indptr.dtype)
        made = other._made(self.data[order], self._majors()[order], starts, self._shape, False)
        made._sorted, made._canonical = True, self._canonical
        return made

    # --- what has the greatest element -----------------------------------------------------------------------------

    def max(self, axis: Any = None, out: Any = None, *, explicit: bool = False) -> Any:
        """The greatest element, of each column or row if `axis` is given."""
        return self._greatest("max", axis, out, explicit)

    def min(self, axis: Any = None, out: Any = None, *, explicit: bool = False) -> Any:
        """The least element, of each column or row if `axis` is given."""
        return self._greatest("min", axis, out, explicit)

    def _greatest(self, name: str, axis: Any, out: Any, explicit: bool) -> Any:
        if out is not None:
            raise ValueError("Sparse matrices do not support an 'out' parameter.")
        if explicit:
            raise NotImplementedError("max and min of stored elements alone: x.data.max() is there for all of them")
        if 0 in self._shape:
            raise ValueError("zero-size array to reduction operation")
        function = UFUNCS["maximum" if name == "max" else "minimum"]
        if axis is None:
            found = getattr(self._keyed()[1], name)() if self.nnz else _np.zeros((), self.dtype)
            whole = self._keyed()[0].size == self._shape[0] * self._shape[1]
            return found if whole else function(found, _np.zeros((), self.dtype))
        place = self._axis(axis)
        of = self.tocsr() if place else self.tocsc()
        keys, data = (of if place else of.T)._keyed()
        extent, count = self._shape[1 - place], self._shape[place]
        rows = keys // count
        full = _np.bincount(rows, minlength=extent) == count
        begin = numpy.finfo(self.dtype).min if self.dtype.kind == "f" else 0
        made = _np.full(extent, begin if name == "max" else -begin, self.dtype)
        function.at(made, rows, data)
        made = _np.where(full, made, function(made, self.dtype.type(0)))
        found = self._of("coo")(made.reshape((-1, 1) if place else (1, -1)))
        return made if self._is_array else found

    def argmax(self, axis: Any = None, out: Any = None, *, explicit: bool = False) -> Any:
        """Where the greatest element is, of each column or row if `axis` is given."""
        return self._where("argmax", axis, out)

    def argmin(self, axis: Any = None, out: Any = None, *, explicit: bool = False) -> Any:
        """Where the least element is, of each column or row if `axis` is given."""
        return self._where("argmin", axis, out)

    def _where(self, name: str, axis: Any, out: Any) -> Any:
        if out is not None:
            raise ValueError("Sparse matrices do not support an 'out' parameter.")
        if 0 in self._shape:
            raise ValueError("Can't apply the operation along a zero-sized dimension.")
        found = getattr(_np, name)(self.toarray(), None if axis is None else self._axis(axis))
        return found if axis is None or self._is_array else found.reshape((-1, 1) if self._axis(axis) else (1, -1))

    # --- indices ----------------------------------------------------------------------------------------------------

    def _parts(self, key: Any) -> tuple[Any, Any]:
        """What an index says of rows and of columns: numbers, slices, or arrays of the device."""
        parts = list(key) if isinstance(key, tuple) else [key]
        if any(one is None for one in parts):
            raise IndexError("newaxis is not supported for indexing a sparse matrix")
        dots = [place for place, one in enumerate(parts) if one is Ellipsis]
        if len(dots) > 1:
            raise IndexError("an index can only have a single ellipsis ('...')")
        if dots:
            parts[dots[0] : dots[0] + 1] = [slice(None)] * (3 - len(parts))
        parts += [slice(None)] * (2 - len(parts))
        if len(parts) > 2:
            raise IndexError("invalid number of indices: a matrix has two dimensions")
        return self._part(parts[0], 0), self._part(parts[1], 1)

    def _part(self, part: Any, axis: int) -> Any:
        extent = self._shape[axis]
        if isinstance(part, slice):
            return part
        if isinstance(part, (int, numpy.integer)) and not isinstance(part, (bool, numpy.bool_)):
            if not -extent <= part < extent:
                raise IndexError(f"{('row', 'column')[axis]} ({part}) out of range")
            return int(part) % extent
        found = part if isinstance(part, ndarray) else _np.asarray(part)
        if found.dtype.kind == "b":
            if found.ndim != 1 or found.size != extent:
                raise IndexError(f"a boolean index has shape {found.shape}, and there are {extent} places")
            return _np.nonzero(found)[0]
        if found.dtype.kind not in "iu" and found.size:
            raise IndexError(f"arrays used as indices must be of integer (or boolean) type, not {found.dtype}")
        if found.ndim == 0:
            return self._part(operator.index(found), axis)
        found = found.astype(numpy.int64)
        if found.size and not -extent <= int(found.min()) <= int(found.max()) < extent:
            raise IndexError(f"index ({int(found.max())}) out of range")
        return _np.where(found < 0, found + extent, found)

    def _list(self, part: Any, axis: int) -> Any:
        """The places that a part of an index chooses."""
        if isinstance(part, int):
            return _np.asarray([part])
        return positions(self._shape[axis])[part] if isinstance(part, slice) else part

    def _chosen(self, wanted: Any, axis: int) -> Any:
        """Some rows or columns."""
        of = self.tocsr() if axis == 0 else self.tocsc()
        places, begins = places_in(of.indptr, wanted)
        shape = list(self._shape)
        shape[axis] = wanted.size
        made = of._made(of.data[places], of.indices[places], begins.astype(of.indptr.dtype), shape, False)
        made._sorted, made._canonical = of._sorted, of._canonical
        return made

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, (spmatrix, ndarray)) and key.ndim == 2:
            if key.dtype.kind != "b":
                raise IndexError("an index of two dimensions is one of bool")
            return self._pairs(*key.nonzero())
        row, column = self._parts(key)
        if isinstance(row, int) and isinstance(column, int):
            return self._elements(_np.asarray(row), _np.asarray(column))
        if not isinstance(row, (int, slice)) and not isinstance(column, (int, slice)):
            return self._pairs(row, column)
        if isinstance(row, ndarray) and row.ndim > 1 or isinstance(column, ndarray) and column.ndim > 1:
            raise IndexError("Index dimension must be 1 or 2, and beside a slice 1")
        made = self
        for part, axis in ((row, 0), (column, 1)):
            if not (isinstance(part, slice) and part == slice(None)):
                made = made._chosen(self._list(part, axis), axis)
        if made is self:
            return self.copy()
        if self._is_array and (isinstance(row, int) or isinstance(column, int)):
            return made.toarray().reshape(-1)
        return made.asformat(self.format)

    def _elements(self, rows: Any, columns: Any) -> Any:
        """The elements at places."""
        csr = self.tocsr()
        wanted = rows.astype(numpy.int64) * self._shape[1] + columns
        keys, data = csr._keyed()
        return elements_at(keys, data, wanted)

    def _pairs(self, rows: Any, columns: Any) -> Any:
        """The elements at pairs of places: a matrix of one row, or of the shape of the indices."""
        rows, columns = _np.broadcast_arrays(rows, columns)
        found = self._elements(rows, columns)
        if found.ndim == 1:
            return found if self._is_array else found.reshape((1, -1))
        return self._of(self.format)(found)

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(key, (spmatrix, ndarray)) and key.ndim == 2:
            if key.dtype.kind != "b":
                raise IndexError("an index of two dimensions is one of bool")
            rows, columns = key.nonzero()
        else:
            row, column = self._parts(key)
            slices = isinstance(row, slice) or isinstance(column, slice)
            rows, columns = self._list(row, 0), self._list(column, 1)
            if slices:
                rows = rows.reshape((-1, 1))
        if isinstance(value, spmatrix):
            value = value.toarray()
        rows, columns = _np.broadcast_arrays(rows.astype(numpy.int64), columns.astype(numpy.int64))
        given = _np.asarray(value, self.dtype) if not isinstance(value, ndarray) else value.astype(self.dtype)
        if given.ndim == 2 and rows.ndim == 1 and given.shape[0] == 1:
            given = given.reshape(-1)
        values = _np.broadcast_to(given, rows.shape).reshape(-1)
        self._set(rows.reshape(-1), columns.reshape(-1), values)

    def _set(self, rows: Any, columns: Any, values: Any) -> None:
        """Elements at places, in place; of several for one place the last stays."""
        minor = self._minor_extent()
        wanted = keys_of(rows, columns, minor) if self._major == 0 else keys_of(columns, rows, minor)
        if not wanted.size:
            return
        of = self if self._major == 0 else self.T
        keys, data = of._keyed()
        order = _np.argsort(wanted, stable=True)
        wanted, values = wanted[order], values[order]
        last: Any = _np.concatenate([wanted[1:] != wanted[:-1], _np.ones(1, bool)])
        wanted, values = wanted[last], values[last]
        place = _np.minimum(_np.searchsorted(wanted, keys), wanted.size - 1)
        kept = wanted[place] != keys
        self._take(*canonical(_np.concatenate([keys[kept], wanted]), _np.concatenate([data[kept], values])))

    def setdiag(self, values: Any, k: int = 0) -> None:
        """Set the elements of a diagonal."""
        rows, columns = self._shape
        if k <= -rows or k >= columns:
            raise ValueError("k exceeds matrix dimensions")
        length = min(rows + min(k, 0), columns - max(k, 0))
        given = _np.asarray(values)
        if given.ndim:
            length = min(length, given.size)
            given = given[:length]
        place = positions(length)
        self._set(place - min(k, 0), place + max(k, 0), _np.broadcast_to(given.astype(self.dtype), (length,)))

    def __imul__(self, other: Any) -> Any:
        return self * other if not is_number(other) else self._scaled(other)


class csr_matrix(compressed):
    __doc__ = compressed.__doc__
    format = "csr"

    def tocsr(self, copy: bool = False) -> Any:
        """Itself, or a copy."""
        return self.copy() if copy else self

    def tocsc(self, copy: bool = False) -> Any:
        """In compressed columns."""
        return self._turned()


class csc_matrix(compressed):
    __doc__ = compressed.__doc__
    format = "csc"
    _major = 1

    def tocsr(self, copy: bool = False) -> Any:
        """In compressed rows."""
        return self._turned()

    def tocsc(self, copy: bool = False) -> Any:
        """Itself, or a copy."""
        return self.copy() if copy else self
