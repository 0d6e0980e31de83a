"""The driver as a library, for programs that load ``libcuda.so.1`` themselves, with ctypes or ``dlopen``.

`provide` puts a library of that name into the process whose functions are the CPU device's (``provider/libcuda.c``).
The dynamic linker, asked for ``libcuda.so.1`` or ``libcuda.so``, gives what is loaded under that name before it looks
at the disk, so nothing else changes. A library of that name which was loaded earlier stays what programs get.
"""

from __future__ import annotations

import ctypes
import importlib.util
import threading

_lock = threading.Lock()
_loaded: list[ctypes.CDLL] = []


def provide() -> None:
    """Give the CPU device's driver to whoever loads ``libcuda.so.1`` or ``libcuda.so`` in this process from here on."""
    from cupola.cpu import _driver

    with _lock:
        if _loaded:
            return
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        versioned = ctypes.CDLL(_path("_libcuda"))
        versioned.cupola_libcuda_bind(ctypes.c_void_p(pointer(_driver.exported, b"cupola.cpu._driver.exported")))
        # This one needs libcuda.so.1, which it finds in the process.
        _loaded.extend([versioned, ctypes.CDLL(_path("_libcuda_unversioned"))])


def is_provided() -> bool:
    """Whether `provide` has been called."""
    return bool(_loaded)


def _path(name: str) -> str:
    spec = importlib.util.find_spec(f"cupola.cpu.{name}")
    if spec is None or spec.origin is None:
        raise ImportError(f"cupola.cpu.{name} is not installed")
    return spec.origin
