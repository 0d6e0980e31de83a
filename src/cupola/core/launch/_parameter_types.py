"""The types that :meth:`Kernel.prepare` takes: kind, size and signedness of a parameter.

Imported when types are first given.
"""

from __future__ import annotations

import sys

from cupola.core.memory._buffer import Buffer
from cupola.core.program._signatures import FLOATING, INTEGER, UNKNOWN

TYPE_CHECKING = False  # typing is slow to import
if TYPE_CHECKING:
    from typing import Any

# Kind, size in bytes (0: that of the parameter), whether it may be negative, whether it may be as large as unsigned.
Described = tuple[int, int, bool, bool]

_PLAIN: dict[object, Described] = {
    bool: (INTEGER, 0, True, True),
    int: (INTEGER, 0, True, True),
    float: (FLOATING, 0, True, True),
    complex: (UNKNOWN, 0, True, True),
}

# By the letters that NumPy has for kinds, and those that ctypes has for types.
_NUMPY = {"b": (INTEGER, True, True), "i": (INTEGER, True, False), "u": (INTEGER, False, True)}
_NUMPY |= {"f": (FLOATING, True, True), "c": (UNKNOWN, True, True), "V": (UNKNOWN, True, True)}
_CTYPES = {**dict.fromkeys("bhilq", "i"), **dict.fromkeys("BHILQ", "u"), **dict.fromkeys("fd", "f"), "?": "b", "P": "u"}


def describe(wanted: Any) -> Described | None:
    """What a type means; None for None.

    Raises
    ------
    TypeError
        It is not the type of a kernel's parameter.
    """
    if wanted is None:
        return None
    if isinstance(wanted, type):
        if wanted in _PLAIN:
            return _PLAIN[wanted]
        if issubclass(wanted, Buffer):
            return INTEGER, 8, True, True
        ctypes = sys.modules.get("ctypes")
        if ctypes is not None and issubclass(
            wanted, ctypes._SimpleCData | ctypes.Structure | ctypes.Union | ctypes.Array
        ):
            letter = _CTYPES.get(getattr(wanted, "_type_", "") if issubclass(wanted, ctypes._SimpleCData) else "")
            kind, signed, unsigned = _NUMPY[letter or "V"]
            return kind, ctypes.sizeof(wanted), signed, unsigned
    numpy = sys.modules.get("numpy")
    if numpy is not None and (isinstance(wanted, numpy.dtype) or _is_scalar_type(wanted, numpy)):
        dtype = numpy.dtype(wanted)
        if dtype.kind in _NUMPY:
            kind, signed, unsigned = _NUMPY[dtype.kind]
            return kind, int(dtype.itemsize), signed, unsigned
    raise TypeError(
        f"{wanted!r} is not the type of a parameter: give a NumPy or ctypes type, Buffer, int, float, bool, complex "
        f"or None"
    )


def _is_scalar_type(wanted: Any, numpy: Any) -> bool:
    return isinstance(wanted, type) and issubclass(wanted, numpy.generic)
