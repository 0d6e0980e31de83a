"""Methods of arrays that are functions of the namespace."""

from __future__ import annotations

import operator
import pickle
from typing import Any

import numpy

from cupola.core.device._device import Device
from cupola.numpy._flags import Flags
from cupola.numpy._known import UFUNCS
from cupola.numpy._lazy import made_current, write
from cupola.numpy._ndarray import _KNOWN, _operand, brought_here, elementwise, ndarray
from cupola.numpy._order import extents_of
from cupola.numpy.functions import _choosing, _numeric, _pairs, _products, _reductions, _shapes, _sorting
from cupola.numpy.functions._creation import zeros

# Functions whose first argument is the array.
METHODS = {
    **{name: getattr(_reductions, name) for name in ("mean", "var", "std", "cumsum", "cumprod")},
    **{name: getattr(_choosing, name) for name in ("argmax", "argmin", "clip", "nonzero", "take")},
    **{name: getattr(_shapes, name) for name in ("repeat", "swapaxes")},
    **{name: getattr(_sorting, name) for name in ("argsort", "argpartition", "searchsorted")},
    **{name: getattr(_products, name) for name in ("dot", "trace")},
    "round": _numeric.round,
    "choose": _choosing.choose,
}


def _method(name: str, function: Any) -> Any:
    def method(self: ndarray, *arguments: Any, **keywords: Any) -> Any:
        return function(self, *arguments, **keywords)

    method.__name__, method.__qualname__ = name, f"ndarray.{name}"
    method.__doc__ = f"As ``cupola.numpy.{name}`` of this array."
    return method


def sort(self: ndarray, axis: int = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> None:
    """Sort the elements in place."""
    write(self, _sorting.sort(self, operator.index(axis), kind, order, stable=stable))


def partition(self: ndarray, kth: Any, axis: int = -1, kind: str = "introselect", order: Any = None) -> None:
    """Sort the elements in place."""
    write(self, _sorting.partition(self, kth, operator.index(axis), kind, order))


def resize(self: ndarray, *new_shape: Any, refcheck: bool = True) -> None:
    """Change the extents in place; what is new is zero. Views keep the elements that there were.

    Parameters
    ----------
    *new_shape : int, or a tuple of int
        The extents.
    refcheck : bool
        Means nothing here.
    """
    shape = extents_of(new_shape[0] if len(new_shape) == 1 else new_shape)
    if not self.is_contiguous:
        raise ValueError("resize only works on single-segment arrays")
    if self.base is not None:
        raise ValueError("cannot resize this array: it does not own its data")
    made = zeros(shape, self.dtype)
    count = min(made.size, self.size)
    write(made._view_only(-1)._part(slice(0, count)), self.reshape(-1)._part(slice(0, count)))
    self._before_writing()
    memory = made._memory()
    self._describe(shape, self.dtype)
    self._node, self._stream = None, made._stream
    self._settle(memory)


def set_attribute(self: ndarray, name: str, value: Any) -> None:
    """Assignments to attributes: of the shape, where no elements have to move."""
    if name == "shape":
        shape = self.reshape(value, copy=False).shape if self.is_contiguous else None
        if shape is None:
            raise AttributeError(
                "Incompatible shape for in-place modification. Use `.reshape()` to make a copy with the desired shape."
            )
        self._before_writing()
        self._describe(shape, self.dtype)
    elif name in ("dtype", "strides"):
        raise AttributeError(f"x.{name} cannot be assigned: x.view(dtype) is the same memory as elements of a type")
    else:
        object.__setattr__(self, name, value)


def conjugate(self: ndarray) -> ndarray:
    """The complex conjugates."""
    made: ndarray = UFUNCS["conjugate"](self) if self.dtype.kind == "c" else self
    return made


def view(self: ndarray, dtype: Any = None, type: Any = None) -> ndarray:
    """The same memory as elements of another type."""
    if dtype is None or dtype is ndarray:
        return self._part(...)
    return super(ndarray, self).view(dtype)


def tobytes(self: ndarray, order: Any = "C") -> bytes:
    """The elements as bytes in row-major order."""
    return self.to_numpy().tobytes(order)


def dump(self: ndarray, file: Any) -> None:
    """Write a pickle of the array to a file."""
    if hasattr(file, "write"):
        pickle.dump(self, file)
    else:
        with open(file, "wb") as opened:
            pickle.dump(self, opened)


def dumps(self: ndarray) -> bytes:
    """A pickle of the array."""
    return pickle.dumps(self)


def tofile(self: ndarray, fid: Any, sep: str = "", format: str = "%s") -> None:
    """Write the elements to a file."""
    self.to_numpy().tofile(fid, sep, format)


def byteswap(self: ndarray, inplace: bool = False) -> ndarray:
    """The elements with their bytes in the opposite order."""
    width = self.itemsize // (2 if self.dtype.kind == "c" else 1)
    if width == 1:
        made = self.copy()
    else:
        made = self.ravel().view(numpy.uint8).reshape((-1, width))[:, ::-1].ravel().view(self.dtype).reshape(self.shape)
    if inplace:
        write(self, made)
        return self
    return made


def contains(self: ndarray, value: Any) -> bool:
    """Whether an element equals the value. Waits for the answer."""
    return bool(_reductions.any(UFUNCS["equal"](self, _operand(value))))


def divmod_(self: ndarray, other: Any) -> Any:
    """Quotient and remainder."""
    return _pairs.divmod(self, other)


def rdivmod(self: ndarray, other: Any) -> Any:
    """Quotient and remainder of another one by this array."""
    return _pairs.divmod(other, self)


def put(self: ndarray, indices: Any, values: Any, mode: str = "raise") -> None:
    """Overwrite elements by their places in row-major order."""
    _choosing.put(self, indices, values, mode)


def compress(self: ndarray, condition: Any, axis: int | None = None, out: Any = None) -> ndarray:
    """Slices for which a condition holds."""
    return _choosing.compress(condition, self, axis, out)


def round_(self: ndarray, decimals: int = 0) -> ndarray:
    """The nearest numbers of so many decimals."""
    return _numeric.round(self, decimals)


def matmul(self: ndarray, other: Any) -> Any:
    """The matrix product."""
    return _products.matmul(self, other) if isinstance(other, _KNOWN) else NotImplemented


def rmatmul(self: ndarray, other: Any) -> Any:
    """The matrix product."""
    return _products.matmul(other, self) if isinstance(other, _KNOWN) else NotImplemented


def imatmul(self: ndarray, other: Any) -> Any:
    """The matrix product in place."""
    made = _products.matmul(self, other)
    if made.shape != self.shape:
        raise ValueError(f"the product has shape {made.shape}, the array {self.shape}")
    write(self, made.astype(numpy.result_type(self.dtype), copy=False))
    return self


def power(self: ndarray, other: Any, modulus: Any = None) -> Any:
    """This array to a power; small whole powers are products, as in NumPy."""
    if modulus is not None:
        return NotImplemented
    if type(other) is int and other == 2 and self.dtype.kind in "biufc":
        return UFUNCS["square"](self)
    if not isinstance(other, (bool, int, float, complex, numpy.generic, ndarray, list, tuple, numpy.ndarray)):
        return NotImplemented
    return elementwise(UFUNCS["power"], (self, other), None, None, "same_kind")


def device(self: ndarray) -> Device:
    """Device: where the elements are."""
    ordinal = self._place()
    return Device() if ordinal < 0 else Device(ordinal)


def to_device(self: ndarray, device: Any, /, *, stream: Any = None) -> ndarray:
    """The array on a device: a copy, which is waited for, if that is not its own."""
    if device == self.device:
        return self
    if not isinstance(device, Device):
        raise ValueError(f"arrays go to a cupola.Device, not to {device!r}")
    with made_current(device.device_id):
        return brought_here(self)


def from_host(self: ndarray, value: Any) -> None:
    """Overwrite the elements with those of an array of NumPy."""
    self.copy_from(numpy.ascontiguousarray(value, self.dtype))


class Flat:
    """The elements in row-major order, as ``numpy.ndarray.flat``."""

    def __init__(self, of: ndarray) -> None:
        self._of = of

    def __getitem__(self, key: Any) -> ndarray:
        return self._of.ravel()[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        part = self._of.reshape(-1)
        new = _operand(value, part.dtype)
        part[key] = _choosing.repeated(new, part[key].size) if isinstance(new, ndarray) and new.ndim else new
        if not self._of.is_contiguous:
            write(self._of, part.reshape(self._of.shape))

    def __iter__(self) -> Any:
        return iter(self._of.ravel())

    def __len__(self) -> int:
        return self._of.size

    def __array__(self, dtype: Any = None, copy: Any = None) -> numpy.ndarray:
        return self._of.ravel().__array__(dtype)


def flat(self: ndarray) -> Flat:
    """Flat: the elements in row-major order."""
    return Flat(self)


def set_flat(self: ndarray, value: Any) -> None:
    """Overwrite the elements in row-major order."""
    Flat(self)[...] = value


for _name, _function in METHODS.items():
    setattr(ndarray, _name, _method(_name, _function))
for _name, _function in {
    "sort": sort, "partition": partition, "conj": conjugate, "conjugate": conjugate, "view": view, "tobytes": tobytes,
    "__contains__": contains, "__divmod__": divmod_, "__rdivmod__": rdivmod, "__round__": round_,
    "dump": dump, "dumps": dumps, "tofile": tofile, "byteswap": byteswap, "flags": property(Flags),
    "compress": compress, "put": put, "resize": resize, "__setattr__": set_attribute, "__matmul__": matmul,
    "__rmatmul__": rmatmul, "__imatmul__": imatmul, "__pow__": power, "to_device": to_device, "set": from_host,
    "device": property(device), "flat": property(flat, set_flat),
}.items():  # fmt: skip
    setattr(ndarray, _name, _function)
