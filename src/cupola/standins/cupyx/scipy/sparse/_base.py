"""What sparse matrices of all formats have. Most of it is done in compressed rows."""

from __future__ import annotations

from typing import Any

import numpy

import cupola.numpy as _np
from cupola.numpy._known import UFUNCS, nearest
from cupola.numpy._ndarray import ndarray
from cupola.standins.cupyx.scipy.sparse._arrays import (
    canonical,
    dense_of,
    dense_product,
    elements_at,
    index_type,
    keys_of,
    number_type,
    places_in,
    places_of,
    positions,
    starts_of,
)

MOST_LINES = 50  # that print() shows
CLASSES: dict[str, Any] = {}  # by their names
_SCALARS = (bool, int, float, complex, numpy.generic)
_INSTEAD = {
    "tobsr": "tocsr is there", "todok": "tocoo is there", "tolil": "tocsr is there, whose elements can be set",
    "getmaxprint": "print(x) shows a few elements",
}  # fmt: skip


class SparseWarning(Warning):
    """Warnings about sparse matrices."""


class SparseEfficiencyWarning(SparseWarning):
    """Something takes longer than another way."""


def is_number(value: Any) -> bool:
    """Whether it is a number, or an array of one without dimensions."""
    return isinstance(value, _SCALARS) or isinstance(value, (ndarray, numpy.ndarray)) and value.ndim == 0


class spmatrix:
    """A sparse matrix: what is common to the formats ``csr``, ``csc``, ``coo`` and ``dia``."""

    __array_ufunc__ = None
    __array_priority__ = 101
    __hash__ = None  # type: ignore[assignment]
    format = "any"
    ndim = 2
    _is_array = False  # of the classes *_array: * is elementwise
    _shape: tuple[int, int]
    data: Any

    # --- what a format has ----------------------------------------------------------------------------------------

    def tocsr(self, copy: bool = False) -> Any:
        """In compressed rows."""
        raise NotImplementedError

    def _with_data(self, data: Any) -> Any:
        """The same places with other elements."""
        raise NotImplementedError

    def _of(self, format: str) -> Any:
        """The class of another format of the same family."""
        return CLASSES[f"{format}_{'array' if self._is_array else 'matrix'}"]

    # --- attributes -----------------------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, int]:
        """tuple of int: rows and columns."""
        return self._shape

    def get_shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self._shape

    @property
    def dtype(self) -> numpy.dtype:
        """numpy.dtype: of the elements."""
        found: numpy.dtype = self.data.dtype
        return found

    @property
    def nnz(self) -> int:
        """int: how many elements are stored."""
        return int(self.getnnz())

    @property
    def size(self) -> int:
        """int: how many elements are stored."""
        return self.nnz

    @property
    def device(self) -> Any:
        """Device: where the elements are."""
        return self.data.device

    def getnnz(self, axis: int | None = None) -> Any:
        """How many elements are stored, of each column or row if `axis` is given."""
        if axis is None:
            return int(self.data.size)
        csr = self.tocsr()
        places = csr.indices if axis % 2 == 0 else csr._majors()
        return _np.bincount(places, minlength=self._shape[1 - axis % 2])

    def count_nonzero(self) -> int:
        """How many elements are not zero."""
        return int(_np.count_nonzero(self.tocsr().data))

    def getformat(self) -> str:
        """The name of the format."""
        return self.format

    @property
    def T(self) -> Any:
        """spmatrix: the transposed matrix."""
        return self.transpose()

    @property
    def mT(self) -> Any:
        """spmatrix: the transposed matrix."""
        return self.transpose()

    @property
    def H(self) -> Any:
        """spmatrix: the transposed matrix of complex conjugates."""
        return self.getH()

    def getH(self) -> Any:
        """The transposed matrix of complex conjugates."""
        return self.transpose().conj()

    @property
    def real(self) -> Any:
        """spmatrix: the real parts."""
        return self._with_data(self.data.real.copy())

    @property
    def imag(self) -> Any:
        """spmatrix: the imaginary parts."""
        return self._with_data(_np.imag(self.data).copy())

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        if name in ("A", "H"):
            return self.toarray()
        near = nearest(name, dir(type(self)), _INSTEAD.get(name))
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{near}")

    def __len__(self) -> int:
        raise TypeError("sparse matrix length is ambiguous; use getnnz() or shape[0]")

    def __bool__(self) -> bool:
        if self._shape == (1, 1):
            return self.nnz != 0
        raise ValueError("The truth value of an array with more than one element is ambiguous. Use a.any() or a.all().")

    def __iter__(self) -> Any:
        for row in range(self._shape[0]):
            yield self.tocsr()[row]

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} of shape {self._shape} with {self.nnz} stored elements of type {self.dtype}, "
            f"format {self.format}>"
        )

    def __str__(self) -> str:
        coo = self.tocoo()
        lines = [
            f"  ({row}, {column})\t{value}"
            for row, column, value in zip(
                *[one[:MOST_LINES].tolist() for one in (coo.row, coo.col, coo.data)], strict=True
            )
        ]
        more = ["  :\t:"] if coo.nnz > MOST_LINES else []
        return "\n".join([repr(self), *lines, *more])

    def __reduce__(self) -> Any:
        raise NotImplementedError

    # --- to other formats -----------------------------------------------------------------------------------------

    def get(self, stream: Any = None) -> Any:
        """The matrix of SciPy, on the host."""
        raise NotImplementedError

    def tocoo(self, copy: bool = False) -> Any:
        """As places and elements."""
        return self.tocsr().tocoo()

    def tocsc(self, copy: bool = False) -> Any:
        """In compressed columns."""
        return self.tocsr().tocsc()

    def todia(self, copy: bool = False) -> Any:
        """As diagonals."""
        return self.tocsr().todia()

    def toarray(self, order: Any = None, out: Any = None) -> Any:
        """All elements in an array."""
        return self.tocsr().toarray(order, out)

    def todense(self, order: Any = None, out: Any = None) -> Any:
        """All elements in an array."""
        return self.toarray(order, out)

    def asformat(self, format: str | None) -> Any:
        """In the format of that name."""
        if format is None or format == self.format:
            return self
        if format not in ("csr", "csc", "coo", "dia"):
            raise ValueError(f"Format {format} is unknown: csr, csc, coo and dia are there")
        return getattr(self, f"to{format}")()

    def tobsr(self, blocksize: Any = None, copy: bool = False) -> Any:
        """Blocks are not there, as in CuPy."""
        raise NotImplementedError("sparse matrices of blocks are not there: tocsr() is")

    def todok(self, copy: bool = False) -> Any:
        """Dictionaries are not there, as in CuPy."""
        raise NotImplementedError("sparse matrices as dictionaries are not there: tocoo() is")

    def tolil(self, copy: bool = False) -> Any:
        """Lists of lists are not there, as in CuPy."""
        raise NotImplementedError("sparse matrices as lists are not there: elements of tocsr() can be set")

    def copy(self) -> Any:
        """A copy."""
        return self._with_data(self.data.copy())

    def astype(self, dtype: Any, casting: str = "unsafe", copy: bool = True) -> Any:
        """With elements of another type."""
        to = number_type(dtype)
        return self if to == self.dtype and not copy else self._with_data(self.data.astype(to, copy=True))

    def asfptype(self) -> Any:
        """With elements of a floating-point type."""
        return self if self.dtype.kind in "fc" else self.astype(float)

    def reshape(self, *shape: Any, order: str = "C") -> Any:
        """The same elements with other extents, in the format coo."""
        to = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        rows, columns = self._shape
        if len(to) != 2:
            raise ValueError("shape must be a sequence of two integers")
        if -1 in to:
            known = max(1, -to[0] * to[1])
            to = (rows * columns // known, to[1]) if to[0] == -1 else (to[0], rows * columns // known)
        if to[0] * to[1] != rows * columns:
            raise ValueError(f"cannot reshape array of size {rows * columns} into shape {to}")
        if order not in ("C", "F"):
            raise ValueError("'order' must be 'C' or 'F'")
        coo = self.tocoo()
        if order == "F":
            return coo.T.reshape(to[::-1]).T
        row, column = places_of(keys_of(coo.row, coo.col, columns), to[1], index_type(to, coo.nnz))
        return self._of("coo")((coo.data, (row, column)), shape=to)

    def conj(self, copy: bool = True) -> Any:
        """The complex conjugates."""
        return self._with_data(_np.conj(self.data)) if self.dtype.kind == "c" else self.copy() if copy else self

    conjugate = conj

    def transpose(self, axes: Any = None, copy: bool = False) -> Any:
        """The transposed matrix."""
        return self.tocsr().transpose(axes, copy)

    # --- arithmetic -----------------------------------------------------------------------------------------------

    def _keyed(self) -> tuple[Any, Any]:
        """Sorted places, each once, and their elements."""
        csr = self.tocsr()
        keys = keys_of(csr._majors(), csr.indices, self._shape[1])
        return (keys, csr.data) if csr._canonical else canonical(keys, csr.data)

    def _from_keys(self, keys: Any, data: Any, shape: Any = None) -> Any:
        """The matrix in compressed rows of sorted places."""
        extents = self._shape if shape is None else shape
        rows, columns = places_of(keys, extents[1], index_type(extents, keys.size))
        starts = starts_of(rows, extents[0], rows.dtype)
        return self._of("csr")._made(data, columns, starts, extents, True)

    def _aligned(self, other: spmatrix) -> tuple[Any, Any, Any]:
        """The places that either matrix has, and the elements of both there."""
        if self._shape != other._shape:
            raise ValueError(f"inconsistent shapes: {self._shape} and {other._shape}")
        (keys, one), (more, two) = self._keyed(), other._keyed()
        both = canonical(_np.concatenate([keys, more]), _np.zeros(keys.size + more.size, bool))[0]
        return both, elements_at(keys, one, both), elements_at(more, two, both)

    def _combined(self, name: str, other: spmatrix) -> Any:
        """A function of two matrices that is zero where both are."""
        keys, one, two = self._aligned(other)
        found = UFUNCS[name](one, two)
        kept = found != 0
        return self._from_keys(keys[kept], found[kept])

    def _added(self, other: Any, sign: int) -> Any:
        if is_number(other):
            if other == 0:
                return self.copy()
            raise NotImplementedError("adding a nonzero scalar to a sparse matrix is not supported: toarray() is there")
        if isinstance(other, spmatrix):
            keys, one, two = self._aligned(other)
            made = self._from_keys(keys, one + two if sign > 0 else one - two)
            return made if other.format != self.format or self.format == "csr" else made.asformat(self.format)
        dense = dense_of(other)
        return NotImplemented if dense is None else self.toarray() + sign * dense

    def __add__(self, other: Any) -> Any:
        return self._added(other, 1)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self._added(other, -1)

    def __rsub__(self, other: Any) -> Any:
        return (-self)._added(other, 1)

    def __neg__(self) -> Any:
        return self._with_data(-self.data)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return self._with_data(abs(self.data))

    def _scaled(self, other: Any) -> Any:
        return self._with_data(self.data * other)

    def dot(self, other: Any) -> Any:
        """The product with a matrix, a vector, an array or a number."""
        return self._scaled(other) if is_number(other) else self._product(other)

    def _product(self, other: Any) -> Any:
        if isinstance(other, spmatrix):
            return self._sparse_product(other)
        dense = dense_of(other)
        if dense is None:
            return NotImplemented
        if dense.ndim not in (1, 2):
            raise ValueError(f"could not interpret dimensions: an array of {dense.ndim} beside a sparse matrix")
        if dense.shape[0] != self._shape[1]:
            raise ValueError(f"dimension mismatch: {self._shape} and {dense.shape}")
        csr = self.tocsr()
        return dense_product(csr.indptr, csr.indices, csr.data, self._shape[0], dense)

    def _sparse_product(self, other: spmatrix) -> Any:
        if self._shape[1] != other._shape[0]:
            raise ValueError(f"dimension mismatch: {self._shape} and {other._shape}")
        one, two = self.tocsr(), other.tocsr()
        to = numpy.result_type(one.dtype, two.dtype)
        shape = (self._shape[0], other._shape[1])
        places, begins = places_in(two.indptr, one.indices)
        of = _np.searchsorted(begins, positions(places.size), "right") - 1
        keys = keys_of(one._majors()[of], two.indices[places], shape[1])
        found = one.data.astype(to, copy=False)[of] * two.data.astype(to, copy=False)[places]
        made = self._from_keys(*canonical(keys, found), shape)
        return made.asformat("csc") if self.format == other.format == "csc" else made

    def __matmul__(self, other: Any) -> Any:
        if is_number(other):
            raise ValueError("Scalar operands are not allowed, use '*' instead")
        return self._product(other)

    def __rmatmul__(self, other: Any) -> Any:
        if is_number(other):
            raise ValueError("Scalar operands are not allowed, use '*' instead")
        dense = dense_of(other)
        return NotImplemented if dense is None else self.transpose()._product(dense.T).T

    def __mul__(self, other: Any) -> Any:
        return self.multiply(other) if self._is_array else self.dot(other)

    def __rmul__(self, other: Any) -> Any:
        if self._is_array or is_number(other):
            return self.multiply(other)
        return self.__rmatmul__(other)

    def multiply(self, other: Any) -> Any:
        """The product element by element."""
        if is_number(other):
            return self._scaled(other)
        if isinstance(other, spmatrix):
            if other._shape != self._shape:
                return self.multiply(other.toarray()) if other.nnz else self._scaled(0)
            keys, one, two = self._aligned(other)
            there = (one != 0) & (two != 0)
            return self._from_keys(keys[there], one[there] * two[there])
        return self._times(other, "multiply")

    def _times(self, other: Any, name: str) -> Any:
        """Element by element with a dense array, which is broadcast."""
        dense = dense_of(other)
        if dense is None:
            return NotImplemented
        shape = numpy.broadcast_shapes(self._shape, dense.shape)
        if shape != self._shape:
            if len(shape) != 2:
                raise ValueError(f"inconsistent shapes: {self._shape} and {dense.shape}")
            whole = UFUNCS[name](self.toarray(), dense)
            return self._of("coo")(whole)
        coo = self.tocoo()
        found = UFUNCS[name](coo.data, _np.broadcast_to(dense, shape)[coo.row, coo.col])
        made = coo._with_data(found)
        return made.asformat(self.format) if self.format in ("csr", "csc") else made

    def __truediv__(self, other: Any) -> Any:
        if is_number(other):
            to = numpy.result_type(self.dtype, float) if self.dtype.kind == "b" else self.dtype
            return self._with_data(self.data.astype(to, copy=False) / other)
        if isinstance(other, spmatrix):
            if other._shape != self._shape:
                raise ValueError(f"inconsistent shapes: {self._shape} and {other._shape}")
            return self.toarray() / other.toarray()
        return self._times(other, "divide")

    def __rtruediv__(self, other: Any) -> Any:
        return NotImplemented

    def __pow__(self, power: Any) -> Any:
        if self._is_array:
            return self.power(power)
        rows, columns = self._shape
        if rows != columns:
            raise TypeError("sparse matrix is not square")
        if not isinstance(power, (int, numpy.integer)):
            raise ValueError("exponent must be an integer")
        if power < 0:
            raise ValueError("exponent must be >= 0")
        if power == 0:
            return self._of("dia")((_np.ones((1, rows), self.dtype), _np.zeros(1, int)), shape=self._shape).tocsr()
        half = self ** (power // 2) if power > 1 else None
        if half is None:
            return self.copy()
        return half @ half @ self if power % 2 else half @ half

    def power(self, n: Any, dtype: Any = None) -> Any:
        """Each element to a power."""
        if not is_number(n):
            raise NotImplementedError("input is not scalar")
        if not n:
            raise NotImplementedError("zero power is not supported as it would densify the matrix: toarray() ** 0")
        return self._with_data((self.data if dtype is None else self.data.astype(dtype)) ** n)

    # --- comparisons ----------------------------------------------------------------------------------------------

    def _compared(self, name: str, other: Any) -> Any:
        """The matrix of bool of a comparison."""
        if is_number(other):
            zero = bool(UFUNCS[name](self.dtype.type(0), other).item())
            if not zero:
                keys, data = self._keyed()
                found = UFUNCS[name](data, other)
                return self._from_keys(keys[found], found[found])
            return self._of("csr")(UFUNCS[name](self.toarray(), other))
        if isinstance(other, spmatrix):
            if other._shape != self._shape:
                raise ValueError(f"inconsistent shapes: {self._shape} and {other._shape}")
            if name in ("less", "greater", "not_equal"):
                return self._combined(name, other)
            return self._of("csr")(UFUNCS[name](self.toarray(), other.toarray()))
        dense = dense_of(other)
        return NotImplemented if dense is None else UFUNCS[name](self.toarray(), dense)

    def __lt__(self, other: Any) -> Any:
        return self._compared("less", other)

    def __le__(self, other: Any) -> Any:
        return self._compared("less_equal", other)

    def __gt__(self, other: Any) -> Any:
        return self._compared("greater", other)

    def __ge__(self, other: Any) -> Any:
        return self._compared("greater_equal", other)

    def __eq__(self, other: object) -> Any:
        return self._compared("equal", other)

    def __ne__(self, other: object) -> Any:
        return self._compared("not_equal", other)

    def _extreme(self, name: str, other: Any) -> Any:
        if is_number(other):
            if UFUNCS[name](self.dtype.type(0), other).item() == 0:
                found = UFUNCS[name](self.tocsr().data, other)
                return self.tocsr()._with_data(found)
            return self._of("csr")(UFUNCS[name](self.toarray(), other))
        if isinstance(other, spmatrix):
            return self._combined(name, other)
        dense = dense_of(other)
        return NotImplemented if dense is None else UFUNCS[name](self.toarray(), dense)

    def maximum(self, other: Any) -> Any:
        """The greater of each two elements."""
        return self._extreme("maximum", other)

    def minimum(self, other: Any) -> Any:
        """The lesser of each two elements."""
        return self._extreme("minimum", other)

    # --- reductions -----------------------------------------------------------------------------------------------

    def _axis(self, axis: Any) -> int:
        if axis not in (0, 1, -1, -2):
            raise ValueError(f"axis out of range: {axis}")
        return int(axis) % 2

    def sum(self, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        """The sum of all elements, or of each column or row."""
        csr = self.tocsr()
        data = csr.data
        if data.dtype.kind == "b":
            data = data.astype(numpy.int64)
        if axis is None:
            made = data.sum(dtype=dtype)
        else:
            place = self._axis(axis)
            # Of columns: the rows of the transposed matrix, which are summed in the same order in each run.
            of = csr if place else csr.T.tocsr()
            elements = data if place else (of.data.astype(data.dtype, copy=False))
            ones = _np.ones(of._shape[1], elements.dtype)
            made = dense_product(of.indptr, of.indices, elements, of._shape[0], ones)
            made = made if dtype is None else made.astype(dtype)
            made = made if self._is_array else made.reshape((-1, 1) if place else (1, -1))
        if out is None:
            return made
        if out.shape != made.shape:
            raise ValueError("dimensions do not match")
        out[...] = made
        return out

    def mean(self, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        """The mean of all elements, or of each column or row."""
        count = self._shape[0] * self._shape[1] if axis is None else self._shape[self._axis(axis)]
        made = self.sum(axis, dtype) / count
        if out is None:
            return made
        out[...] = made
        return out

    def trace(self, offset: int = 0) -> Any:
        """The sum of a diagonal."""
        return self.diagonal(offset).sum()

    def diagonal(self, k: int = 0) -> Any:
        """The elements of a diagonal."""
        rows, columns = self._shape
        if k <= -rows or k >= columns:
            raise ValueError("k exceeds matrix dimensions")
        length = min(rows + min(k, 0), columns - max(k, 0))
        place = positions(length)
        return elements_at(*self._keyed(), (place - min(k, 0)) * columns + place + max(k, 0))

    def nonzero(self) -> tuple[Any, Any]:
        """The rows and columns of the elements that are not zero."""
        coo = self.tocoo()
        kept = coo.data != 0
        return coo.row[kept], coo.col[kept]

    def setdiag(self, values: Any, k: int = 0) -> None:
        """Set the elements of a diagonal."""
        raise NotImplementedError(f"elements of the format {self.format} cannot be set: tocsr().setdiag(...) is there")

    def getrow(self, i: int) -> Any:
        """A row as a matrix."""
        return self.tocsr()[[i]]

    def getcol(self, j: int) -> Any:
        """A column as a matrix."""
        return self.tocsr()[:, [j]]


def _function(name: str) -> Any:
    def function(self: Any) -> Any:
        return self._with_data(UFUNCS[name](self.data))

    function.__name__, function.__qualname__ = name, f"spmatrix.{name}"
    function.__doc__ = f"``{name}`` of each element."
    return function


for _name in (
    "arcsin", "arcsinh", "arctan", "arctanh", "ceil", "deg2rad", "expm1", "floor", "log1p", "rad2deg", "rint", "sign",
    "sin", "sinh", "sqrt", "tan", "tanh", "trunc",
):  # fmt: skip
    setattr(spmatrix, _name, _function(_name))
