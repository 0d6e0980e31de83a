"""Which versions of PTX a driver takes: that of its own CUDA, and all before (PTX ISA, chapter "Release Notes")."""

from __future__ import annotations

import re

from cupola.cpu.compiler.errors import ImageError

_OF_CUDA_12 = ((8, 0), (8, 1), (8, 2), (8, 3), (8, 4), (8, 5), (8, 5), (8, 6), (8, 7), (8, 8))
"""By the minor version. From CUDA 13.0 on, which has PTX 9.0, the minor versions are the same."""

_VERSION = re.compile(r"^[^\n/]*\.version\s+(\d{1,4})\.(\d{1,4})", re.MULTILINE)


def newest(driver: int) -> tuple[int, int]:
    """The newest version that a driver takes, by its version of CUDA as cuDriverGetVersion has it (13050 for 13.5)."""
    major, minor = driver // 1000, driver % 1000 // 10
    return _OF_CUDA_12[min(minor, len(_OF_CUDA_12) - 1)] if major < 13 else (9 + major - 13, minor)


def check(ptx: str, driver: int) -> None:
    """Refuse PTX that is newer than a driver.

    Raises
    ------
    ImageError
        CUDA_ERROR_UNSUPPORTED_PTX_VERSION, with what can be done.
    """
    match = _VERSION.search(ptx)
    if match is None:
        return  # the compiler says what is wrong with it
    version = int(match[1]), int(match[2])
    if version <= newest(driver):
        return
    cuda = f"{driver // 1000}.{driver % 1000 // 10}"
    raise ImageError(
        "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
        f"the PTX is of version {_text(version)}, but the modelled driver, of CUDA {cuda}, takes PTX up to version "
        f"{_text(newest(driver))}: compile with the compiler of CUDA {cuda} or older, or to machine code (a cubin), "
        "which drivers of the same major version load whatever made it; CUPOLA_CPU_CUDA_VERSION chooses the driver",
    )


def _text(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"
