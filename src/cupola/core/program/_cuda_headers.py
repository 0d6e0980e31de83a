"""CUDA's own headers on the include path of NVRTC, which knows no folder by itself.

The folders come behind those of the program. A source without any #include gets none, so nothing is looked for then,
and the keys of caches do not depend on what is installed. Imported when CUDA C++ is first compiled, or its key is made.
"""

from __future__ import annotations

import functools
import os

from cupola.pathfinder import locate_nvidia_header_directory

TYPE_CHECKING = False  # typing is slow to import
if TYPE_CHECKING:
    from collections.abc import Callable

    from cupola.core.program._program_options import ProgramOptions

# In the order of search: the runtime with cuda_fp16.h, libcu++ with CUB and Thrust, cuRAND, CUTLASS.
PARTS = ("cudart", "cccl", "curand", "cutlass")


@functools.cache
def installed() -> tuple[str, ...]:
    """The folders of CUDA's headers that are there."""
    found = (locate_nvidia_header_directory(part) for part in PARTS)
    return tuple(dict.fromkeys(located.abs_path for located in found if located and located.abs_path))


def folders_for(options: ProgramOptions, code: str) -> tuple[str, ...]:
    """The folders of CUDA's headers for a source."""
    if options.cuda_headers is False or options.use_bundled_headers:
        return ()
    if "include" not in code and not options.pre_include:  # also of __has_include
        return ()
    return installed()


def flags_for(options: ProgramOptions, code: str, version: Callable[[], tuple[int, int]]) -> list[bytes]:
    """NVRTC's flags for these folders; none if they are of another CUDA than this NVRTC and not asked for."""
    from cupola.core.program._compatibility import wrong_headers

    flags = [f"--include-path={folder}" for folder in folders_for(options, code)]
    if flags and not options.cuda_headers and wrong_headers(flags, version()):
        return []
    return [os.fsencode(flag) for flag in flags]
