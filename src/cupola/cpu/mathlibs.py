"""The emulated math libraries (``cpu/math/``): the library that they calculate with, and their functions.

`prepare` opens OpenBLAS, which the package ``scipy-openblas64`` brings as a plain C library: ``pip install
"cupola[math]"``.
"""

from __future__ import annotations

import logging
import os
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SONAMES = {
    "cublas": (12, 13),
    "cublasLt": (12, 13),
    "cudss": (1, 1),
    "cufft": (11, 12),
    "curand": (10, 10),
    "cusolver": (11, 12),
    "cusparse": (12, 12),
    "nccl": (2, 2),
}
"""The libraries, and the versions in the names of their files in CUDA 12 and in CUDA 13."""

_WITH_OPENBLAS = ("cublas", "cublasLt", "cusolver")
_lock = threading.Lock()
_prepared: set[str] = set()
_refused: set[str] = set()


def prepare(library: str) -> Any:
    """Open what an emulated library calculates with. Returns the capsule of the lookup function of all of them.

    Parameters
    ----------
    library
        Name of the library, such as ``cublas``.

    Raises
    ------
    ImportError
        OpenBLAS is not installed, or cannot be loaded.
    """
    from cupola.cpu import _driver

    with _lock:
        if library in _WITH_OPENBLAS and "openblas" not in _prepared:
            _driver.load_math(_openblas(library), _threads())
            _prepared.add("openblas")
        if library == "cufft" and "transforms" not in _prepared:
            _driver.load_transforms(_transforms(), _threads())
            _prepared.add("transforms")
    return _driver.math_lookup


def prepare_program(library: str) -> bool:
    """`prepare` for a program that loads the library by name: whether it can be used. If not, the logger is told."""
    try:
        prepare(library)
    except ImportError as error:
        if library not in _refused:
            _refused.add(library)
            logging.getLogger("cupola").warning("%s", error)
        return False
    return True


def _threads() -> int:
    """As many threads as kernels have."""
    text = os.environ.get("CUPOLA_CPU_THREADS", "")
    return int(text) if text.isdecimal() and int(text) > 0 else len(os.sched_getaffinity(0))


def _transforms() -> str:
    """The path of the Fourier transforms, a library in C++ that is cupola's own."""
    from cupola.cpu.libcuda import library_path

    try:
        return library_path("_transforms")
    except ImportError:
        raise ImportError(
            "the CPU device calculates cufft with a library in C++, and this cupola was built without a C++ compiler: "
            "install one, such as g++, and build it again"
        ) from None


def _openblas(library: str) -> str:
    """The path of OpenBLAS. The package itself is not imported: nothing of it is needed but the file."""
    from importlib.util import find_spec

    spec = find_spec("scipy_openblas64")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        path = os.path.join(folder, "lib", "libscipy_openblas64_.so")
        if os.path.exists(path):
            return path
    raise ImportError(
        f"the CPU device calculates {library} with OpenBLAS, which is not installed: "
        'pip install "cupola[math]" (the package scipy-openblas64)'
    )
