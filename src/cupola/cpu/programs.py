"""The CPU device for programs of other languages, which load CUDA's libraries by name (``provider/connect.c``).

Such a program is started with `environment`, so that the dynamic linker finds the CPU device's libraries, and they find
Python. At the first call of CUDA they start an interpreter in the program's process and call `connect`. Nobody has set
up logging there, and nobody gets exceptions, so what is said on the ``cupola`` logger goes to stderr, and so does why a
call failed.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import importlib.metadata
import logging
import os
import re
import sys
import sysconfig
import tempfile
from typing import Any

from cupola._above import above
from cupola._private_folder import make_private, user_cache_folder
from cupola.cpu import libcuda
from cupola.cpu.libcuda import library_path
from cupola.cpu.mathlibs import SONAMES
from cupola.pathfinder._dynamic_libraries import copies_of

LIBRARIES = {
    "libcuda.so.1": "_libcuda",
    "libcuda.so": "_libcuda_unversioned",
    "libnvidia-ml.so.1": "_libnvml",
    "libcudart.so.12": "_libcudart12",
    "libcudart.so.13": "_libcudart13",
    "libnvrtc.so.12": "_libnvrtc12",
    "libnvrtc.so.13": "_libnvrtc13",
    "libnvJitLink.so.12": "_libnvjitlink12",
    "libnvJitLink.so.13": "_libnvjitlink13",
    **{f"lib{name}.so.{n}": f"_lib{name}{n}" for name, versions in SONAMES.items() for n in versions},
    "libcudss.so.0": "_libcudss0",
}
"""What programs load, and the module of this package that is its file."""

COMPILERS = {"nvrtc": "CUPOLA_LIBNVRTC", "nvJitLink": "CUPOLA_LIBNVJITLINK"}
"""Libraries that pass calls on to NVIDIA's, and the variables in which they find the paths of those."""

RUNTIMES = tuple(name for name in LIBRARIES if name.startswith("libcudart"))

PRIVATE_RUNTIME = (
    "{} has NVIDIA's CUDA runtime inside, which asks for private functions of NVIDIA's driver that the CPU device does "
    "not have: its calls fail. Programs and libraries that nvcc builds run with the shared runtime (cupola nvcc, "
    "nvcc -cudart shared), which the CPU device brings along; CuPy and others that have NVIDIA's runtime inside do not"
)
_DO_WITHOUT = ("libnvrtc.so", "libnvJitLink.so")
"""Libraries that ask for these functions, too, and work without them."""

_BEFORE_REAL = tuple(f"lib{library}.so" for library in COMPILERS)
"""Libraries that are of use only where NVIDIA's are, too."""

_said: set[str] = set()
_loaded: list[ctypes.CDLL] = []


# ---- in the process of a program ------------------------------------------------------------------------------------


def connect(started: bool) -> Any:
    """Start the CPU device, and give the capsule of the functions that the libraries call.

    Parameters
    ----------
    started
        Whether the interpreter was started for this.
    """
    from cupola.cpu import _driver

    above("request")("cpu")
    if started:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("cupola: %(message)s"))
        logging.getLogger("cupola").addHandler(handler)
        _driver.call_at_end()
    from cupola.cpu import _at_exit

    _at_exit.watch()
    if os.environ.get("CUPOLA_INJECT"):
        from cupola.cpu import _faults

        _faults.begin_from_environment()
    if os.environ.get("CUPOLA_COVERAGE") or os.environ.get("CUPOLA_PROFILE"):
        from cupola.cpu import observed

        observed.begin_from_environment()
    if os.environ.get("CUPOLA_CHECK"):
        from cupola.cpu import _checks

        _checks.begin_from_environment()
    _driver.report_images()
    return _driver.programs


def end() -> bool:
    """What Python does at the end of a process, in one that does not end it; returns whether work failed unheard."""
    import atexit

    from cupola.cpu import _at_exit

    failed = _at_exit.tell()
    atexit._run_exitfuncs()
    return failed


def say(text: str, status: str = "") -> None:
    """Warn on the logger, once of each thing.

    Parameters
    ----------
    text
        What to say.
    status
        The name of the status that this explains.
    """
    if text not in _said:
        _said.add(text)
        logging.getLogger("cupola").warning("%s", f"{status}: {text}" if status else text)


def say_private(caller: str | None) -> None:
    """Warn that a file has asked for private functions of NVIDIA's driver.

    Parameters
    ----------
    caller
        The file, if it is known.
    """
    if not os.path.basename(caller or "").startswith(_DO_WITHOUT):
        say(PRIVATE_RUNTIME.format(caller or "This process"))


def provide() -> None:
    """Give the CPU device's libraries to the extension modules of this process that are linked with NVIDIA's.

    The dynamic linker takes what is loaded under a library's name before it looks into the folders that the module
    names, such as those of NVIDIA's wheels. A library that was loaded earlier stays what modules get.
    """
    libcuda.provide()
    if _loaded:
        return
    there: set[str] = set()
    for library, variable in COMPILERS.items():
        copies = [path for path, _ in copies_of(library)]
        os.environ.setdefault(variable, ":".join(copies))
        there.update(os.path.basename(path) for path in copies)
    other_cudss = f"libcudss.so.{1 - cudss_version()}"  # packages ask for any, and then for its version
    for name, module in LIBRARIES.items():
        if name == other_cudss:
            continue
        if not name.startswith(_BEFORE_REAL) or name in there:
            _loaded.append(ctypes.CDLL(library_path(module)))


def cudss_version() -> int:
    """The major version of cuDSS for this process: 0 (0.8) or 1, as the wheel that is installed has it.

    Without one it is 1, unless nvmath-python is there and asks for 0.8.
    """
    for path, _ in copies_of("cudss"):
        return int(path.endswith(".so.1"))
    try:
        wanted = importlib.metadata.requires("nvmath-python") or ()
    except importlib.metadata.PackageNotFoundError:
        return 1
    return int(not any(re.match(r"nvidia-cudss-cu\d+\W*0\.", requirement) for requirement in wanted))


# ---- before it starts -----------------------------------------------------------------------------------------------


def environment() -> dict[str, str]:
    """The environment variables with which a program runs on the CPU device.

    Raises
    ------
    RuntimeError
        When this Python cannot be used in a program of another language.
    """
    folder = library_folder()
    others = os.environ.get("LD_LIBRARY_PATH")
    return {
        "CUPOLA_DEVICE": "cpu",
        "CUPOLA_PYTHON": sys.executable,
        "CUPOLA_LIBPYTHON": find_libpython(),
        **{variable: ":".join(path for path, _ in copies_of(library)) for library, variable in COMPILERS.items()},
        "LD_LIBRARY_PATH": f"{folder}:{others}" if others and folder not in others.split(":") else others or folder,
    }


def compilers() -> list[str]:
    """The paths of those libraries that stand before a compiler or linker of NVIDIA's which is installed.

    Packages of Python ask whether one is loaded under its name, and else load NVIDIA's from the folder of its wheel.
    """
    folder = library_folder()
    names = {os.path.basename(path) for library in COMPILERS for path, _ in copies_of(library)}
    return [os.path.join(folder, name) for name in LIBRARIES if name.startswith(_BEFORE_REAL) and name in names]


def library_folder() -> str:
    """A folder that has the libraries under the names by which programs load them.

    The linker, given ``-lcudart`` or ``-lcublas``, takes the file without a version in the folder ``link13`` in it.
    """
    files = {name: library_path(module) for name, module in LIBRARIES.items()}
    for major in (12, 13):
        files[f"link{major}/libcuda.so"] = files["libcuda.so.1"]
        for name in ("cudart", *COMPILERS):
            files[f"link{major}/lib{name}.so"] = files[f"lib{name}.so.{major}"]
    for name, versions in SONAMES.items():
        for major, version in zip((12, 13), versions, strict=True):
            files[f"link{major}/lib{name}.so"] = files[f"lib{name}.so.{version}"]
    identity = hashlib.sha256(repr(sorted(files.items())).encode()).hexdigest()[:16]
    folder = _private_or_temporary(f"libraries-{identity}")
    for name, target in files.items():
        link = os.path.join(folder, name)
        if os.path.exists(link) and os.readlink(link) == target:
            continue
        os.makedirs(os.path.dirname(link), mode=0o700, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(link)
        with contextlib.suppress(FileExistsError):  # another process was faster
            os.symlink(target, link)
    return folder


def _private_or_temporary(name: str) -> str:
    try:
        folder = user_cache_folder(name)
        if make_private(folder):
            return folder
    except (OSError, RuntimeError) as error:
        logging.getLogger("cupola").info("links to libraries are made in a temporary folder: %s", error)
    folder = os.path.join(tempfile.gettempdir(), f"cupola-{os.geteuid()}-{name}")
    return folder if make_private(folder) else tempfile.mkdtemp(prefix="cupola-")


def find_libpython() -> str:
    """The shared library of this interpreter.

    Raises
    ------
    RuntimeError
        When it has none; the text says how to get one.
    """
    version = f"{sys.version_info.major}.{sys.version_info.minor}{sys.abiflags}"
    with open("/proc/self/maps") as maps:
        loaded = re.search(rf" (/\S*/libpython{re.escape(version)}\.so\S*)", maps.read())
    if loaded:
        return loaded[1]
    folders = [sysconfig.get_config_var(name) for name in ("LIBDIR", "LIBPL")]
    multiarch = sysconfig.get_config_var("MULTIARCH")
    folders += [os.path.join(sys.base_prefix, "lib"), f"/usr/lib/{multiarch}", "/usr/lib64", "/usr/lib"]
    names = (f"libpython{version}.so.1.0", f"libpython{version}.so")
    for folder in filter(None, folders):
        for name in names:
            path = os.path.join(folder, name)
            if os.path.exists(path):
                return path
    raise RuntimeError(
        f"the CPU device's compiler needs {names[0]}, which {sys.executable} comes without: install it (Debian and "
        f"Ubuntu: apt install libpython{version}), or use a Python that has it: conda's, uv's, that of the image "
        "'python', or pyenv's, built with PYTHON_CONFIGURE_OPTS=--enable-shared"
    )
