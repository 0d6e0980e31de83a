"""Whether a library that is installed has a function."""

from __future__ import annotations

import ctypes
from collections.abc import Callable


def inspector(library: str, prefix: str) -> Callable[[str], int]:
    """Make the function that looks up the functions of `library`, whose names begin with `prefix`.

    Parameters
    ----------
    library
        The library's name for the path finder.
    prefix
        For example ``nvvm``.

    Returns
    -------
    callable
        Takes a name with two underscores before it, such as ``__nvvmVersion``, and returns the function's address, or
        0 when the library does not have it. Raises ``KeyError`` for a name that cannot be one of the library, and what
        the path finder raises when the library is not installed.
    """

    def inspect_function_pointer(name: str) -> int:
        if not name.startswith(f"__{prefix}"):
            raise KeyError(name)
        from cupola.bindings._provider import local_library

        loaded = ctypes.CDLL(None, handle=local_library(library))
        try:
            return ctypes.cast(getattr(loaded, name[2:]), ctypes.c_void_p).value or 0
        except AttributeError:
            return 0

    return inspect_function_pointer
