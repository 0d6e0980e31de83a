"""Find and load CUDA's libraries, headers and tools, wherever they were installed.

Everything is looked for in the same order: the wheels in ``site-packages``, the conda environment, the operating
system's loader (libraries only), then ``CUDA_PATH`` or ``CUDA_HOME``. What was found, and why that one was
chosen, is part of every answer.
"""

from ._dynamic_libraries import (
    DynamicLibNotAvailableError,
    DynamicLibNotFoundError,
    DynamicLibUnknownError,
    LoadedDL,
    load_nvidia_dynamic_lib,
)
from ._headers import LocatedHeaderDir, find_nvidia_header_directory, locate_nvidia_header_directory
from ._roots import get_cuda_path_or_home
from ._tables import SUPPORTED_HEADERS_CTK, SUPPORTED_NVIDIA_LIBNAMES

__all__ = [
    "SUPPORTED_HEADERS_CTK",
    "SUPPORTED_NVIDIA_LIBNAMES",
    "DynamicLibNotAvailableError",
    "DynamicLibNotFoundError",
    "DynamicLibUnknownError",
    "LoadedDL",
    "LocatedHeaderDir",
    "find_nvidia_header_directory",
    "get_cuda_path_or_home",
    "load_nvidia_dynamic_lib",
    "locate_nvidia_header_directory",
]
