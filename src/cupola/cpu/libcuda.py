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
    with _lock:
        if _loaded:
            return
        versioned = ctypes.CDLL(library_path("_libcuda"))
        # This one needs libcuda.so.1, which it finds in the process.
        _loaded.extend([versioned, ctypes.CDLL(library_path("_libcuda_unversioned"))])


def is_provided() -> bool:
    """Whether `provide` has been called."""
    return bool(_loaded)


def library_path(name: str) -> str:
    """The file of one of these libraries, whose name is that of a module."""
    spec = importlib.util.find_spec(f"cupola.cpu.{name}")
    if spec is None or spec.origin is None:
        raise ImportError(f"cupola.cpu.{name} is not installed")
    return spec.origin
