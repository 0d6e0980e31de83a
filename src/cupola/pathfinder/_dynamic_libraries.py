"""Load CUDA's dynamic libraries.

Two copies of one library in a process are trouble: when some other package has already loaded the library, its copy is
used. Otherwise the one in the wheels or the conda environment is loaded, else the operating system's loader is asked by
soname, else the roots named by the environment are searched; last comes the toolkit that the loader takes cudart from.
"""

from __future__ import annotations

import glob
import os
import sys
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from . import _loader
from ._errors import DynamicLibNotAvailableError, DynamicLibNotFoundError, DynamicLibUnknownError
from ._roots import (
    Place,
    conda_prefix,
    get_cuda_path_or_home,
    in_conda,
    in_cuda_path,
    in_system_toolkit,
    in_variable,
    in_wheels,
)
from ._tables import DRIVER_LIBRARIES, IN_EXTRAS, LIBRARIES, Library

_loaded: dict[str, LoadedDL] = {}
_lock = threading.RLock()


@dataclass(frozen=True)
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
        of a product's own variable, ``"system-ctk-root"``, or ``"was-already-loaded-from-elsewhere"``.
    _handle_uint : int
        The loader's handle (``dlopen``), for ``dlsym``.
    """

    abs_path: str | None
    was_already_loaded_from_elsewhere: bool
    _handle_uint: int
    found_via: str

    @property
    def version(self) -> str | None:
        """str or None: the version, such as ``"13.0"``; None when nothing tells it.

        The library's own version function says it (``nvrtcVersion``, ``cudaRuntimeGetVersion``, ``cudnnGetVersion``,
        ...), else the wheel, else the name of the file. For ``cuda`` it is the newest CUDA that the driver serves.
        """
        from ._versions import library_version

        return library_version(self._handle_uint, self.abs_path)


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
    DynamicLibNotAvailableError
        It does not exist for this operating system.
    DynamicLibNotFoundError
        It was found nowhere; the message says where it was looked for and what to install.
    RuntimeError
        A file was found, but the loader refused it; or this is a 32-bit Python.
    ChildProcessError
        The process that asks the loader where cudart is failed.
    """
    found = _loaded.get(libname)
    if found is not None:
        return found
    library = _known(libname)
    with _lock:
        found = _loaded.get(libname)
        if found is None:
            found = _loaded[libname] = _load(libname, library)
        return found


def copies_of(libname: str) -> list[Place]:
    """Every copy of a library on this computer, the one that is preferred first: path, and how it was found.

    Nothing is loaded. Two names of one file count once.
    """
    library = _known(libname)
    folders = [*_installed(library), *_roots(library)]
    found = [place for folder in folders for place in _files((folder,), library)]
    from ._canary import system_library

    path = system_library(libname)
    if path:
        found.append((path, "system-search"))
    unique: dict[str, Place] = {}
    for place in found:
        unique.setdefault(os.path.realpath(place[0]), place)
    return list(unique.values())


def _known(name: str) -> Library:
    library = LIBRARIES.get(name)
    if library is None:
        raise DynamicLibUnknownError(f"{name!r} is not a known CUDA library; known are {', '.join(sorted(LIBRARIES))}")
    if not sys.platform.startswith("linux"):
        raise DynamicLibNotAvailableError(f"{name} cannot be loaded here: cupola finds CUDA's libraries on Linux only")
    if sys.maxsize < 2**32:
        raise RuntimeError("CUDA's libraries need a 64-bit Python; this one has 32 bits")
    return library


def _load(name: str, library: Library) -> LoadedDL:
    elsewhere = _already_loaded(library)
    candidate = None if elsewhere else next(_files(_installed(library), library), None)
    for dependency in library.depends:
        load_nvidia_dynamic_lib(dependency)
    if elsewhere is not None:
        return elsewhere
    if candidate is not None:
        path, found_via = candidate
        if name == "nvrtc" and found_via != "conda":
            _preload_nvrtc_builtins(path)
        return _open(path, found_via, library)
    for soname in library.sonames:
        handle = _loader.try_open(soname, deep_bind=library.deep_bind)
        if handle:
            return LoadedDL(_loader.path_of(handle) or soname, False, handle, "system-search")
    for path, found_via in _files(_roots(library), library):
        return _open(path, found_via, library)
    raise DynamicLibNotFoundError(_not_found_text(name, library))


def _open(path: str, found_via: str, library: Library) -> LoadedDL:
    return LoadedDL(path, False, _loader.open_file(path, deep_bind=library.deep_bind), found_via)


def _already_loaded(library: Library) -> LoadedDL | None:
    for soname in library.sonames:
        handle = _loader.try_open(soname, only_if_loaded=True)
        if handle:
            return LoadedDL(_loader.path_of(handle), True, handle, "was-already-loaded-from-elsewhere")
    return None


def _installed(library: Library) -> Iterator[Place]:
    """What is searched before the loader is asked; nothing for the driver's libraries, which have no folders."""
    if library.folders:
        yield from in_wheels(library.folders)
        yield from in_conda(dict.fromkeys(("lib", *library.in_toolkit)), "lib")


def _roots(library: Library) -> Iterator[Place]:
    """What is searched when the loader does not find it."""
    if library.folders:
        yield from in_variable(library.environment, library.in_toolkit)
        yield from in_cuda_path(library.in_toolkit)
    if library.anchored:
        yield from in_system_toolkit(library.in_toolkit)


def _files(folders: Iterable[Place], library: Library) -> Iterator[Place]:
    """The library's file in each of the folders that has one."""
    # A toolkit's unversioned link, last: it may be of a CUDA that is not in the table.
    names = dict.fromkeys((*library.sonames, library.sonames[0].partition(".so")[0] + ".so"))
    for folder, found_via in folders:
        for name in names:
            path = os.path.join(folder, name)
            if os.path.isfile(path):
                yield os.path.abspath(path), found_via
                break


def _preload_nvrtc_builtins(nvrtc: str) -> None:
    # NVRTC opens its builtins by bare name at the first compilation, which only works for a library that is in
    # the process already or on the loader's path.
    import warnings

    for path in sorted(glob.glob(os.path.join(glob.escape(os.path.dirname(nvrtc)), "libnvrtc-builtins.so.*"))):
        try:
            _loader.open_file(path)
        except RuntimeError as error:
            warnings.warn(f"NVRTC's builtins could not be loaded: {error}", RuntimeWarning, stacklevel=2)


def _not_found_text(name: str, library: Library) -> str:
    if name in DRIVER_LIBRARIES:
        return (
            f"{library.sonames[0]} was not found: it comes with NVIDIA's display driver. Install the driver, or use "
            "the CPU device (CUPOLA_DEVICE=cpu), which needs none."
        )
    lines = [f"the CUDA library {name} ({' or '.join(library.sonames)}) was not found. Looked in:"]
    lines += map(_listing, _installed(library))
    if conda_prefix() is None:
        lines.append("  conda: CONDA_PREFIX is not set")
    lines.append("  the system's loader (ldconfig, LD_LIBRARY_PATH)")
    lines += map(_listing, _roots(library))
    if library.environment and not os.environ.get(library.environment):
        lines.append(f"  {library.environment} is not set")
    if get_cuda_path_or_home() is None:
        lines.append("  CUDA_PATH and CUDA_HOME are not set")
    lines.append(how_to_install(name))
    return "\n".join(lines)


def how_to_install(name: str) -> str:
    """One sentence that says what to install to get a library."""
    if name in IN_EXTRAS:
        return 'Install it with: pip install "cupola[cu13]" (or "cupola[cu12]" for CUDA 12)'
    pip = LIBRARIES[name].pip
    if not pip:
        return "Install it with NVIDIA's own installer, and set CUDA_PATH to its root"
    return f"Install it with: pip install {pip[0]}" + (f" (or {pip[1]} for CUDA 12)" if len(pip) > 1 else "")


def _listing(place: Place) -> str:
    folder, found_via = place
    try:
        names = sorted(name for name in os.listdir(folder) if ".so" in name)
    except OSError:
        return f"  {folder} ({found_via}): no such folder"
    shown = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
    return f"  {folder} ({found_via}): " + (f"has {shown}" if names else "has no libraries")
