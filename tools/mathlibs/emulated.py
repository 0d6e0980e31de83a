"""The CPU device's driver and math libraries, by ctypes, for the bench."""

from __future__ import annotations

import ctypes
from typing import Any

_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def provide_driver(library: str) -> None:
    """From here on ``libcuda.so.1`` is the CPU device's, and the math library can be used."""
    from cupola.cpu import libcuda, mathlibs

    libcuda.provide()
    mathlibs.prepare(library)


def function(name: str) -> Any:
    """A function of the emulated math libraries; AttributeError when there is none."""
    from cupola.cpu import _driver

    lookup = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_char_p)(
        _pointer(_driver.math_lookup, b"cupola.cpu._driver.math_lookup")
    )
    address = lookup(name.encode())
    if not address:
        raise AttributeError(f"the CPU device does not emulate {name}")
    return ctypes.CFUNCTYPE(ctypes.c_int)(address)
