"""Find CUDA's command-line tools."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator

from . import _platform
from ._errors import UnsupportedBinaryError
from ._roots import Place, in_conda, in_cuda_path, in_program_files, in_system_toolkit, in_wheels

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

# On Windows these are installed on their own, each version in a folder for itself.
_NSIGHT: dict[str, tuple[str, ...]] = {
    "nsys": ("NVIDIA Corporation/Nsight Systems */target-windows-*", "NVIDIA Corporation/Nsight Systems */bin"),
    "ncu": ("NVIDIA Corporation/Nsight Compute *", "NVIDIA Corporation/Nsight Compute */target/windows-*"),
}
_ALSO_BATCH = ("compute-sanitizer", "ncu")  # there may be a .bat that starts the .exe

SUPPORTED_BINARY_UTILITIES: tuple[str, ...] = tuple(_COMPONENTS)


@functools.cache
def find_nvidia_binary_utility(name: str) -> str | None:
    """Find one of CUDA's command-line tools.

    The wheels are searched, then the conda environment, then ``CUDA_PATH`` or ``CUDA_HOME``, then the toolkit that the
    system's loader takes cudart from; never ``PATH``, where a tool of another CUDA may be. On Windows, nsys and ncu are
    looked for where their own installers put them instead of in the last two.

    Parameters
    ----------
    name : str
        The tool's name, one of ``SUPPORTED_BINARY_UTILITIES``, such as ``"nvcc"``.

    Returns
    -------
    str or None
        The path of an executable file, or None. The answer is remembered.

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
    files = _files(name)
    for folder, _ in _candidates(name):
        for file in files:
            path = os.path.join(folder, file)
            if os.path.isfile(path) and _can_be_run(path):
                return os.path.abspath(path)
    return None


def _files(name: str) -> tuple[str, ...]:
    if not _platform.current().windows:
        return (name,)
    return (f"{name}.exe", f"{name}.bat") if name in _ALSO_BATCH else (f"{name}.exe",)


def _can_be_run(path: str) -> bool:
    # Windows has no such permission: the file's name tells.
    return _platform.current().windows or os.access(path, os.X_OK)


def _candidates(name: str) -> Iterator[Place]:
    platform = _platform.current()
    component = _COMPONENTS[name]
    in_components = ("nvidia/cu13/bin", *([f"nvidia/{component}/bin"] if component else []))
    yield from in_wheels(platform.tool_folders(in_components))
    yield from in_conda(("bin",))
    if platform.windows and name in _NSIGHT:
        yield from in_program_files(_NSIGHT[name])
        return
    yield from in_cuda_path(platform.tool_folders(("bin",)))
    yield from in_system_toolkit(platform.tool_folders(("bin",)))
