"""What functions say of types, and what the Array API standard asks of a namespace."""

from __future__ import annotations

from typing import Any

import numpy

from cupola.core.device._device import Device
from cupola.numpy._evaluate import device as current
from cupola.numpy._ndarray import ndarray, on, on_device

__all__ = [
    "astype", "can_cast", "common_type", "finfo", "iinfo", "iscomplexobj", "isdtype", "isfortran", "isrealobj",
    "isscalar", "issubdtype", "may_share_memory", "min_scalar_type", "promote_types", "result_type", "shares_memory",
]  # fmt: skip


def _type_of(value: Any) -> Any:
    return value.dtype if isinstance(value, ndarray) else value


def result_type(*arrays_and_types: Any) -> numpy.dtype:
    """The type of a result of these arrays, types and numbers (NEP 50), as ``numpy.result_type``."""
    return numpy.result_type(*map(_type_of, arrays_and_types))


def promote_types(type1: Any, type2: Any) -> numpy.dtype:
    """As ``numpy.promote_types``."""
    return numpy.promote_types(type1, type2)


def min_scalar_type(a: Any) -> numpy.dtype:
    """As ``numpy.min_scalar_type``; of an array with dimensions its type. Waits for the element of one without any."""
    if isinstance(a, ndarray):
        return numpy.min_scalar_type(a.to_numpy()) if a.ndim == 0 else a.dtype
    return numpy.min_scalar_type(a)


def common_type(*arrays: Any) -> Any:
    """The floating-point type for arrays, as ``numpy.common_type``."""
    return numpy.common_type(*[numpy.empty(0, _type_of(one)) for one in arrays])


def isfortran(a: Any) -> bool:
    """Whether the array is column-major and not row-major, as ``numpy.isfortran``."""
    return bool(a.flags.fnc)


def can_cast(from_: Any, to: Any, casting: Any = "safe") -> bool:
    """As ``numpy.can_cast``."""
    return numpy.can_cast(_type_of(from_), to, casting)


def isdtype(dtype: Any, kind: Any) -> bool:
    """As ``numpy.isdtype``."""
    return numpy.isdtype(numpy.dtype(dtype), kind)


def issubdtype(arg1: Any, arg2: Any) -> bool:
    """As ``numpy.issubdtype``."""
    return numpy.issubdtype(arg1, arg2)


def isscalar(element: Any) -> bool:
    """As ``numpy.isscalar``; arrays are no scalars."""
    return numpy.isscalar(element)


def iscomplexobj(x: Any) -> bool:
    """Whether it has complex elements, as ``numpy.iscomplexobj``."""
    return numpy.dtype(_type_of(x)).kind == "c" if isinstance(x, ndarray) else numpy.iscomplexobj(x)


def isrealobj(x: Any) -> bool:
    """Whether it has no complex elements, as ``numpy.isrealobj``."""
    return not iscomplexobj(x)


def shares_memory(a: Any, b: Any, max_work: Any = None) -> bool:
    """Whether the bytes of two arrays overlap, from the first to the last of each."""
    if not (isinstance(a, ndarray) and isinstance(b, ndarray)):
        return False
    a._compute_now()
    b._compute_now()
    one, other = a._plain(), b._plain()
    if one.buffer is not other.buffer:
        return False
    (low, high), (lower, upper) = one._bounds(), other._bounds()
    return one.handle + low < other.handle + upper and other.handle + lower < one.handle + high


may_share_memory = shares_memory


def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> ndarray:
    """The elements converted to another type, as ``numpy.astype``."""
    on(device)
    return on_device(x).astype(dtype, copy=copy)


class finfo:
    """finfo(type)\n--\n\nLimits of a type of floating-point numbers, as ``numpy.finfo``.

    Attributes
    ----------
    bits, eps, max, min, smallest_normal : number
        What the standard names, as numbers of Python; the other attributes are NumPy's.
    """

    def __init__(self, type: Any) -> None:
        self._numpy = numpy.finfo(_type_of(type))
        self.dtype, self.bits = self._numpy.dtype, int(self._numpy.bits)
        for name in ("eps", "max", "min", "smallest_normal", "tiny"):
            setattr(self, name, float(getattr(self._numpy, name)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._numpy, name)

    def __repr__(self) -> str:
        return repr(self._numpy)


def iinfo(type: Any, /) -> Any:
    """Limits of a type of integers, as ``numpy.iinfo``."""
    return numpy.iinfo(_type_of(type))


class Info:
    """What ``__array_namespace_info__()`` gives."""

    def capabilities(self) -> dict[str, Any]:
        """What depends on the package."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Device:
        """Where arrays are made: on the current device."""
        return current()

    def devices(self) -> list[Device]:
        """All devices."""
        return list(Device.get_all_devices())

    def default_dtypes(self, *, device: Any = None) -> dict[str, numpy.dtype]:
        """The types without a `dtype` argument."""
        return {
            "real floating": numpy.dtype("float64"), "complex floating": numpy.dtype("complex128"),
            "integral": numpy.dtype("int64"), "indexing": numpy.dtype("int64"),
        }  # fmt: skip

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, numpy.dtype]:
        """The types of the standard, all or those of a kind."""
        names = (
            "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64",
            "complex64", "complex128",
        )  # fmt: skip
        found = {name: numpy.dtype(name) for name in names}
        return found if kind is None else {name: one for name, one in found.items() if numpy.isdtype(one, kind)}


def __array_namespace_info__() -> Info:
    """What the standard's ``__array_namespace_info__`` is."""
    return Info()
