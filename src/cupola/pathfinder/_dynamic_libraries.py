"""Load CUDA's dynamic libraries.

Two copies of one library in a process are trouble: when some other package has already loaded the library, its copy is
used. Otherwise the one in the wheels or the conda environment is loaded, else the operating system's loader is asked by
soname, else the roots named by the environment are searched; last comes the toolkit that the loader takes cudart from.
"""

from __future__ import annotations

import glob
import os
import re
import sys
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from . import _loader, _platform
from ._errors import DynamicLibNotAvailableError, DynamicLibNotFoundError, DynamicLibUnknownError
from ._roots import (
    Place,
    conda_prefix,
    get_cuda_path_or_home,
    in_conda,
    in_cuda_path,
    in_program_files,
    in_system_toolkit,
    in_variable,
    in_wheels,
    newest_first,
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
        of a product's own variable, ``"ProgramFiles"`` (Windows), ``"system-ctk-root"``, or
        ``"was-already-loaded-from-elsewhere"``.
    _handle_uint : int
        The loader's handle, for ``dlsym`` or ``GetProcAddress``.
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
    if sys.maxsize < 2**32:
        raise RuntimeError("CUDA's libraries need a 64-bit Python; this one has 32 bits")
    platform = _platform.current()
    if platform.system not in ("linux", "windows"):
        raise DynamicLibNotAvailableError(f"{name} cannot be loaded on {platform.name}: CUDA is for Linux and Windows")
    if not library.names(platform):
        raise DynamicLibNotAvailableError(f"{name} does not exist for {platform.name}")
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
    for soname in _for_loader(library):
        handle = _loader.try_open(soname, deep_bind=library.deep_bind)
        if handle:
            return LoadedDL(_loader.path_of(handle) or soname, False, handle, "system-search")
    for path, found_via in _files(_roots(library), library):
        return _open(path, found_via, library)
    for soname in _for_loader(library):
        reason = _loader.refusal(soname)
        if reason:
            raise RuntimeError(f"the system's loader finds {soname}, but it cannot be loaded: {reason}")
    raise DynamicLibNotFoundError(_not_found_text(name, library))


def _open(path: str, found_via: str, library: Library) -> LoadedDL:
    return LoadedDL(path, False, _loader.open_file(path, deep_bind=library.deep_bind), found_via)


def _already_loaded(library: Library) -> LoadedDL | None:
    for soname in _for_loader(library):
        handle = _loader.try_open(soname, only_if_loaded=True)
        if handle:
            return LoadedDL(_loader.path_of(handle), True, handle, "was-already-loaded-from-elsewhere")
    return None


def _for_loader(library: Library) -> list[str]:
    return [name for name in library.names(_platform.current()) if "*" not in name]


def _installed(library: Library) -> Iterator[Place]:
    """What is searched before the loader is asked; nothing for the driver's libraries, which have no folders."""
    if library.folders:
        platform = _platform.current()
        yield from in_wheels(platform.wheel_folders(library.folders))
        yield from in_conda(dict.fromkeys(platform.toolkit_folders(("lib", *library.in_toolkit))), "lib")


def _roots(library: Library) -> Iterator[Place]:
    """What is searched when the loader does not find it."""
    platform = _platform.current()
    folders = platform.toolkit_folders(library.in_toolkit)
    if library.folders:
        yield from in_variable(library.environment, folders)
        yield from in_cuda_path(folders)
        yield from in_program_files(platform.program_folders(library.program_files))
    if library.anchored:
        yield from in_system_toolkit(folders)


def _files(folders: Iterable[Place], library: Library) -> Iterator[Place]:
    """The library's file in each of the folders that has one."""
    platform = _platform.current()
    names = library.names(platform)
    # Last, one of a CUDA that is not in the table: a toolkit's unversioned link, and what is named like the first.
    if platform.windows:
        names = (*names, re.sub(r"_\d[\d_]*\.dll$", "_*.dll", names[0]))
    else:
        names = (*names, names[0].partition(".so")[0] + ".so")
    for folder, found_via in folders:
        for name in dict.fromkeys(names):
            path = _file(folder, name)
            if path:
                yield os.path.abspath(path), found_via
                break


def _file(folder: str, name: str) -> str | None:
    """The file of that name in a folder; of a pattern (``cupti64_*.dll``) the newest version."""
    if "*" not in name:
        path = os.path.join(folder, name)
        return path if os.path.isfile(path) else None
    found = glob.glob(os.path.join(glob.escape(folder), name))
    # Versions are numbers: nvrtc64_130_0.alt.dll is another library.
    found = [path for path in found if re.search(r"_[\d_.]+\.dll$", path) and os.path.isfile(path)]
    return newest_first(found)[0] if found else None


def _preload_nvrtc_builtins(nvrtc: str) -> None:
    # NVRTC opens its builtins by bare name at the first compilation, which only works for a library that is in
    # the process already or on the loader's path.
    import warnings

    name = "nvrtc-builtins64_*.dll" if _platform.current().windows else "libnvrtc-builtins.so.*"
    for path in sorted(glob.glob(os.path.join(glob.escape(os.path.dirname(nvrtc)), name))):
        try:
            _loader.open_file(path)
        except RuntimeError as error:
            warnings.warn(f"NVRTC's builtins could not be loaded: {error}", RuntimeWarning, stacklevel=2)


def _not_found_text(name: str, library: Library) -> str:
    if name in DRIVER_LIBRARIES:
        return (
            f"{library.names(_platform.current())[0]} was not found: it comes with NVIDIA's display driver. "
            "Install the driver, or use the CPU device (CUPOLA_DEVICE=cpu), which needs none."
        )
    platform = _platform.current()
    lines = [f"the CUDA library {name} ({' or '.join(library.names(platform))}) was not found. Looked in:"]
    lines += map(_listing, _installed(library))
    if conda_prefix() is None:
        lines.append("  conda: CONDA_PREFIX is not set")
    lines.append(f"  the system's loader ({'PATH' if platform.windows else 'ldconfig, LD_LIBRARY_PATH'})")
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
        end = ".dll" if _platform.current().windows else ".so"
        names = sorted(name for name in os.listdir(folder) if end in name)
    except OSError:
        return f"  {folder} ({found_via}): no such folder"
    shown = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
    return f"  {folder} ({found_via}): " + (f"has {shown}" if names else "has no libraries")
