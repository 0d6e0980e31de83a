"""The loader of Windows (libloaderapi.h): open a DLL, ask whether it is loaded, ask where it came from."""

from __future__ import annotations

import ctypes
import functools
import os
from typing import Any

# libloaderapi.h: the DLL's own folder, and the default ones, to which AddDllDirectory adds, in place of PATH.
_SEARCH_DLL_LOAD_DIR = 0x00000100
_SEARCH_DEFAULT_DIRS = 0x00001000

_NOT_FOUND = 126  # ERROR_MOD_NOT_FOUND; also when a DLL that is needed is missing
_LONGEST_PATH = 32767  # characters, of a path with the prefix \\\\?\\


@functools.cache
def _kernel32() -> Any:
    kernel32 = getattr(ctypes, "WinDLL")("kernel32", use_last_error=True)  # noqa: B009 (exists on Windows only)
    handle, text, flags = ctypes.c_void_p, ctypes.c_wchar_p, ctypes.c_uint32
    for name, result, *arguments in (
        ("LoadLibraryExW", handle, text, handle, flags),
        ("GetModuleHandleW", handle, text),
        ("GetModuleFileNameW", ctypes.c_uint32, handle, text, ctypes.c_uint32),
        ("AddDllDirectory", handle, text),
    ):
        function = getattr(kernel32, name)
        function.restype, function.argtypes = result, arguments
    return kernel32


def open_file(path: str, *, deep_bind: bool = False) -> int:
    """Load the DLL at `path`, after its folder has been made one in which DLLs that it needs are found.

    Raises
    ------
    RuntimeError
        The loader refuses the file.
    """
    kernel32 = _kernel32()
    _add_folder(os.path.dirname(path))
    handle = kernel32.LoadLibraryExW(path, None, _SEARCH_DEFAULT_DIRS | _SEARCH_DLL_LOAD_DIR)
    if not handle:
        raise RuntimeError(f"found {path}, but it cannot be loaded: {_last_error()}")
    return int(handle)


def try_open(soname: str, *, deep_bind: bool = False, only_if_loaded: bool = False) -> int:
    """Load a DLL by its name, from the folders of ``PATH`` and of the system; returns 0 when it is in none."""
    kernel32 = _kernel32()
    handle = kernel32.GetModuleHandleW(soname)
    if not handle and not only_if_loaded:
        handle = kernel32.LoadLibraryExW(soname, None, 0)
    return int(handle or 0)


def refusal(soname: str) -> str:
    """Why the DLL that the loader finds by a name cannot be loaded; empty if it can, or if there is no such DLL."""
    if try_open(soname) or _last_error_number() == _NOT_FOUND:
        return ""
    return _last_error()


def path_of(handle: int) -> str | None:
    """The file behind a handle (GetModuleFileNameW), or None when the loader does not say."""
    kernel32 = _kernel32()
    size = 260
    while True:
        buffer = ctypes.create_unicode_buffer(size)
        length = int(kernel32.GetModuleFileNameW(handle, buffer, size))
        if length == 0:
            return None
        if length < size:
            return os.path.abspath(buffer.value)
        if size >= _LONGEST_PATH:  # a path that is cut off looks as long as the buffer
            return None
        size = min(2 * size, _LONGEST_PATH)


@functools.cache
def _add_folder(folder: str) -> None:
    # Once each, for the life of the process. Where it fails, loading says what is missing.
    _kernel32().AddDllDirectory(folder)


def _last_error_number() -> int:
    return int(getattr(ctypes, "get_last_error")())  # noqa: B009 (exists on Windows only)


def _last_error() -> str:
    number = _last_error_number()
    return f"{str(getattr(ctypes, 'FormatError')(number)).strip()} (error {number})"  # noqa: B009
