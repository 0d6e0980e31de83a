"""Find CUDA's command-line tools."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator

from ._errors import UnsupportedBinaryError
from ._roots import Place, in_conda, in_cuda_path, in_system_toolkit, in_wheels

# Tool -> the component of CUDA 12 whose wheel has it; CUDA 13 has one folder for all. Empty: in no such wheel.
_COMPONENTS: dict[str, str] = {
    "nvcc": "cuda_nvcc",
    "ptxas": "cuda_nvcc",
    "nvdisasm": "cuda_nvdisasm",
    "cuobjdump": "cuda_cuobjdump",
    "nvprune": "cuda_nvprune",
    "fatbinary": "cuda_nvcc",
    "bin2c": "cuda_nvcc",
    "nvlink": "cuda_nvcc",
    "cuda-gdb": "cuda_gdb",
    "cuda-gdbserver": "cuda_gdb",
    "compute-sanitizer": "cuda_sanitizer_api",
    "nvprof": "cuda_nvprof",
    "nsys": "",
    "nsight-sys": "",
    "ncu": "",
    "nsight-compute": "",
}

SUPPORTED_BINARY_UTILITIES: tuple[str, ...] = tuple(_COMPONENTS)


@functools.cache
def find_nvidia_binary_utility(name: str) -> str | None:
    """Find one of CUDA's command-line tools.

    The wheels are searched, then the conda environment, then ``CUDA_PATH`` or ``CUDA_HOME``, then the toolkit that the
    system's loader takes cudart from; never ``PATH``, where a tool of another CUDA may be.

    Parameters
    ----------
    name : str
        The tool's name, one of ``SUPPORTED_BINARY_UTILITIES``, such as ``"nvcc"``.

    Returns
    -------
    str or None
        The path of an executable file; None when there is none. The answer is remembered.

    Raises
    ------
    UnsupportedBinaryError
        The name is not known.
    ChildProcessError
        The process that asks the loader where cudart is failed.
    """
    if name not in _COMPONENTS:
        raise UnsupportedBinaryError(
            f"{name!r} is not a known CUDA tool; known are {', '.join(SUPPORTED_BINARY_UTILITIES)}"
        )
    for folder, _ in _candidates(_COMPONENTS[name]):
        path = os.path.join(folder, name)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return os.path.abspath(path)
    return None


def _candidates(component: str) -> Iterator[Place]:
    yield from in_wheels(("nvidia/cu13/bin", *([f"nvidia/{component}/bin"] if component else [])))
    yield from in_conda(("bin",))
    yield from in_cuda_path(("bin",))
    yield from in_system_toolkit(("bin",))
