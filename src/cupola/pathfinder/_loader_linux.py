"""The loader of Linux (dlopen(3)): open a library, ask whether it is open, ask where it came from."""

from __future__ import annotations

import ctypes
import os

# Not in every os module: RTLD_NOLOAD asks for a library only if it is in the process already.
_NOLOAD = getattr(os, "RTLD_NOLOAD", 4)
_DEEPBIND = getattr(os, "RTLD_DEEPBIND", 8)
_DI_LINKMAP = 2  # dlinfo(3)


def open_file(path: str, *, deep_bind: bool = False) -> int:
    """Load the library at `path` with its symbols global; returns the handle.

    Raises
    ------
    RuntimeError
        The loader refuses the file.
    """
    mode = os.RTLD_NOW | os.RTLD_GLOBAL | (_DEEPBIND if deep_bind else 0)
    try:
        return int(ctypes.CDLL(path, mode=mode)._handle)
    except OSError as error:
        reason = str(error).removeprefix(f"{path}: ")
        raise RuntimeError(f"found {path}, but it cannot be loaded: {reason}") from error


def try_open(soname: str, *, deep_bind: bool = False, only_if_loaded: bool = False) -> int:
    """Load a library by its soname; returns the handle, or 0 when the loader does not find it."""
    mode = os.RTLD_NOW | os.RTLD_GLOBAL
    mode |= (_DEEPBIND if deep_bind else 0) | (_NOLOAD if only_if_loaded else 0)
    try:
        library = ctypes.CDLL(soname, mode=mode)
    except OSError:
        return 0
    # What the CPU device gives to extension modules (cpu/provider/real.c) passes their calls on to the real one.
    # Libraries that are linked with it seem to have its symbols, too.
    passes_on = soname.startswith(("libnvrtc.", "libnvJitLink.")) and hasattr(library, "cupola_keeps_ptx")
    return 0 if passes_on else int(library._handle)


def refusal(soname: str) -> str:
    """Why the library that the loader finds by a name cannot be loaded; empty if it can, or if none was found."""
    try:
        ctypes.CDLL(soname, mode=os.RTLD_NOW)
    except OSError as error:
        # Of what is not there the loader says so under its own name; under another's, it is needed and missing.
        absent = str(error).startswith(f"{soname}: cannot open shared object file: No such file")
        return "" if absent else str(error)
    return ""


class _LinkMap(ctypes.Structure):
    """The beginning of struct link_map (<link.h>)."""

    _fields_ = [("address", ctypes.c_void_p), ("name", ctypes.c_char_p)]


def path_of(handle: int) -> str | None:
    """The file behind a handle (dlinfo, RTLD_DI_LINKMAP), or None when the loader does not say."""
    dlinfo = getattr(ctypes.CDLL(None), "dlinfo", None)
    if dlinfo is None:
        return None
    dlinfo.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]
    entry = ctypes.POINTER(_LinkMap)()
    if dlinfo(handle, _DI_LINKMAP, ctypes.byref(entry)) != 0 or not entry or not entry.contents.name:
        return None
    return os.path.abspath(os.fsdecode(entry.contents.name))
