"""Load CUDA's dynamic libraries.

The candidate from the wheels or the conda environment is worked out first, since two copies of one library in a
process are trouble: when some other package has already loaded the library, its copy is used. Then the candidate
is loaded, else the operating system's loader is asked by soname, else the toolkit named by the environment.
"""

from __future__ import annotations

import glob
import os
import threading
from collections.abc import Iterator

from ._roots import conda_prefix, get_cuda_path_or_home, site_packages
from ._tables import DRIVER_LIBRARIES, EXTRAS, LIBRARIES, Library

_loaded: dict[str, LoadedDL] = {}
_lock = threading.RLock()
# Not in the ctypes module: RTLD_NOLOAD asks for a library only if it is in the process already.
_RTLD_NOLOAD = getattr(os, "RTLD_NOLOAD", 4)


class DynamicLibNotFoundError(RuntimeError):
    """A CUDA library was found nowhere; the text lists where it was looked for."""


class DynamicLibUnknownError(DynamicLibNotFoundError):
    """The name is not one of a CUDA library."""


class DynamicLibNotAvailableError(DynamicLibNotFoundError):
    """The library exists, but not for this operating system."""


for _public in (DynamicLibNotFoundError, DynamicLibUnknownError, DynamicLibNotAvailableError):
    _public.__module__ = "cupola.pathfinder"  # tracebacks then say the name that programs catch it by


class LoadedDL:
    """A loaded library.

    Attributes
    ----------
    abs_path : str or None
        The file it came from.
    was_already_loaded_from_elsewhere : bool
        Whether some other part of the process had loaded it before.
    found_via : str
        Why this copy was chosen: ``"site-packages"``, ``"conda"``, ``"system-search"``, ``"CUDA_PATH"``, the name
        of a product's own variable, or ``"was-already-loaded-from-elsewhere"``.
    _handle_uint : int
        The loader's handle (``dlopen``), for ``dlsym``.
    """

    __slots__ = ("_handle_uint", "abs_path", "found_via", "was_already_loaded_from_elsewhere")

    def __init__(
        self, abs_path: str | None, was_already_loaded_from_elsewhere: bool, _handle_uint: int, found_via: str
    ) -> None:
        self.abs_path = abs_path
        self.was_already_loaded_from_elsewhere = was_already_loaded_from_elsewhere
        self._handle_uint = _handle_uint
        self.found_via = found_via

    def __repr__(self) -> str:
        return (
            f"LoadedDL(abs_path={self.abs_path!r}, "
            f"was_already_loaded_from_elsewhere={self.was_already_loaded_from_elsewhere}, "
            f"_handle_uint={self._handle_uint:#x}, found_via={self.found_via!r})"
        )


def load_nvidia_dynamic_lib(libname: str) -> LoadedDL:
    """Find and load a CUDA library, and what it depends on.

    Parameters
    ----------
    libname : str
        The library's short name, such as ``"nvrtc"``; see ``SUPPORTED_NVIDIA_LIBNAMES``.

    Returns
    -------
    LoadedDL
        The same object for every call in the process. Failures are not remembered.

    Raises
    ------
    DynamicLibUnknownError
        The name is not known.
    DynamicLibNotFoundError
        It was found nowhere; the message says where it was looked for and what to install.
    RuntimeError
        A file was found, but the loader refused it.
    """
    found = _loaded.get(libname)
    if found is not None:
        return found
    library = LIBRARIES.get(libname)
    if library is None:
        known = ", ".join(sorted(LIBRARIES))
        raise DynamicLibUnknownError(f"{libname!r} is not a known CUDA library; known are {known}")
    with _lock:
        found = _loaded.get(libname)
        if found is None:
            found = _loaded[libname] = _load(libname, library)
        return found


def _load(name: str, library: Library) -> LoadedDL:
    candidate = None if name in DRIVER_LIBRARIES else _find_installed(library)
    elsewhere = _already_loaded(library)
    for dependency in library.depends:
        load_nvidia_dynamic_lib(dependency)
    if elsewhere is not None:
        return elsewhere
    if candidate is not None:
        path, found_via = candidate
        if name == "nvrtc" and found_via != "conda":
            _preload_nvrtc_builtins(path)
        return LoadedDL(path, False, _open(path), found_via)
    for soname in library.sonames:
        handle = _try_open(soname)
        if handle:
            return LoadedDL(_path_of(handle) or soname, False, handle, "system-search")
    for path, found_via in _in_toolkits(library):
        return LoadedDL(path, False, _open(path), found_via)
    raise DynamicLibNotFoundError(_not_found_text(name, library))


def _find_installed(library: Library) -> tuple[str, str] | None:
    for root in site_packages():
        for folder in library.folders:
            path = _first_file(os.path.join(root, folder), library)
            if path:
                return path, "site-packages"
    prefix = conda_prefix()
    if prefix:
        for folder in ("lib", *library.in_toolkit):
            path = _first_file(os.path.join(prefix, folder), library)
            if path:
                return path, "conda"
    return None


def _in_toolkits(library: Library) -> Iterator[tuple[str, str]]:
    roots = []
    if library.environment and os.environ.get(library.environment):
        roots.append((os.environ[library.environment], library.environment))
    cuda = get_cuda_path_or_home()
    if cuda:
        roots.append((cuda, "CUDA_PATH"))
    for root, found_via in roots:
        for folder in library.in_toolkit:
            path = _first_file(os.path.join(root, folder), library)
            if path:
                yield path, found_via


def _first_file(folder: str, library: Library) -> str | None:
    for soname in library.sonames:
        path = os.path.join(folder, soname)
        if os.path.isfile(path):
            return os.path.abspath(path)
    return None


def _already_loaded(library: Library) -> LoadedDL | None:
    for soname in library.sonames:
        handle = _try_open(soname, _RTLD_NOLOAD)
        if handle:
            return LoadedDL(_path_of(handle), True, handle, "was-already-loaded-from-elsewhere")
    return None


def _preload_nvrtc_builtins(nvrtc: str) -> None:
    # NVRTC opens its builtins by bare name at the first compilation, which only works for a library that is in
    # the process already or on the loader's path.
    import warnings

    for path in sorted(glob.glob(os.path.join(os.path.dirname(nvrtc), "libnvrtc-builtins.so.*"))):
        try:
            _open(path)
        except RuntimeError as error:
            warnings.warn(f"NVRTC's builtins could not be loaded: {error}", RuntimeWarning, stacklevel=2)


def _open(path: str) -> int:
    import ctypes

    try:
        return int(ctypes.CDLL(path, mode=os.RTLD_NOW | os.RTLD_GLOBAL)._handle)
    except OSError as error:
        raise RuntimeError(f"found {path}, but it cannot be loaded: {error}") from error


def _try_open(soname: str, extra_mode: int = 0) -> int:
    import ctypes

    try:
        return int(ctypes.CDLL(soname, mode=os.RTLD_NOW | os.RTLD_GLOBAL | extra_mode)._handle)
    except OSError:
        return 0


def _path_of(handle: int) -> str | None:
    """Ask the loader for the file behind a handle (dlinfo, RTLD_DI_LINKMAP)."""
    import ctypes

    class LinkMap(ctypes.Structure):
        _fields_ = [("address", ctypes.c_void_p), ("name", ctypes.c_char_p)]

    dlinfo = getattr(ctypes.CDLL(None), "dlinfo", None)
    if dlinfo is None:
        return None
    dlinfo.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]
    entry = ctypes.POINTER(LinkMap)()
    if dlinfo(handle, 2, ctypes.byref(entry)) != 0 or not entry or not entry.contents.name:
        return None
    return os.path.abspath(os.fsdecode(entry.contents.name))


def _not_found_text(name: str, library: Library) -> str:
    if name in DRIVER_LIBRARIES:
        return (
            f"{library.sonames[0]} was not found: it comes with NVIDIA's display driver. Install the driver, or use "
            "the CPU device (CUPOLA_DEVICE=cpu), which needs none."
        )
    lines = [f"the CUDA library {name} ({' or '.join(library.sonames)}) was not found. Looked in:"]
    for root in site_packages():
        lines += [f"  {os.path.join(root, folder)} (wheels)" for folder in library.folders]
    prefix, cuda = conda_prefix(), get_cuda_path_or_home()
    lines.append(f"  {os.path.join(prefix, 'lib')} (conda)" if prefix else "  conda: CONDA_PREFIX is not set")
    lines.append("  the system's loader (ldconfig, LD_LIBRARY_PATH)")
    lines.append(f"  {cuda} (CUDA_PATH or CUDA_HOME)" if cuda else "  CUDA_PATH and CUDA_HOME are not set")
    extra = EXTRAS.get(name)
    if extra:
        lines.append(f'Install it with: pip install "{extra}" (or "cupola[cu12]" for CUDA 12)')
    return "\n".join(lines)
