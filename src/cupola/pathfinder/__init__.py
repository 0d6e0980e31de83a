"""Find and load CUDA's libraries, headers and tools, wherever they were installed.

Everything is looked for in the same order: the wheels in ``site-packages``, the conda environment, the operating
system's loader (libraries only), the roots that products have variables for, ``CUDA_PATH`` or ``CUDA_HOME``, where
installers for Windows put things, and the toolkit that the loader takes cudart from. What was found, its version, and
why that one was chosen, is part of every answer.
"""

from ._binaries import SUPPORTED_BINARY_UTILITIES, find_nvidia_binary_utility
from ._device_libraries import (
    SUPPORTED_BITCODE_LIBS,
    SUPPORTED_STATIC_LIBS,
    LocatedBitcodeLib,
    LocatedStaticLib,
    find_bitcode_lib,
    find_static_lib,
    locate_bitcode_lib,
    locate_static_lib,
)
from ._dynamic_libraries import LoadedDL, load_nvidia_dynamic_lib
from ._errors import (
    BitcodeLibNotFoundError,
    DynamicLibNotAvailableError,
    DynamicLibNotFoundError,
    DynamicLibUnknownError,
    StaticLibNotFoundError,
    UnsupportedArchError,
    UnsupportedBinaryError,
)
from ._header_table import SUPPORTED_HEADERS_CTK
from ._headers import LocatedHeaderDir, find_nvidia_header_directory, locate_nvidia_header_directory
from ._roots import get_cuda_path_or_home
from ._tables import SUPPORTED_NVIDIA_LIBNAMES

TYPE_CHECKING = False
if TYPE_CHECKING:
    __version__: str

__all__ = [
    "SUPPORTED_BINARY_UTILITIES",
    "SUPPORTED_BITCODE_LIBS",
    "SUPPORTED_HEADERS_CTK",
    "SUPPORTED_NVIDIA_LIBNAMES",
    "SUPPORTED_STATIC_LIBS",
    "BitcodeLibNotFoundError",
    "DynamicLibNotAvailableError",
    "DynamicLibNotFoundError",
    "DynamicLibUnknownError",
    "LoadedDL",
    "LocatedBitcodeLib",
    "LocatedHeaderDir",
    "LocatedStaticLib",
    "StaticLibNotFoundError",
    "UnsupportedArchError",
    "UnsupportedBinaryError",
    "find_bitcode_lib",
    "find_nvidia_binary_utility",
    "find_nvidia_header_directory",
    "find_static_lib",
    "get_cuda_path_or_home",
    "load_nvidia_dynamic_lib",
    "locate_bitcode_lib",
    "locate_nvidia_header_directory",
    "locate_static_lib",
]


def __getattr__(name: str) -> str:
    if name == "__version__":
        from importlib.metadata import version

        return version("cupola")
    raise AttributeError(f"module 'cupola.pathfinder' has no attribute {name!r}")
