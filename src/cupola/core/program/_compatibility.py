"""Which versions of CUDA's parts fit together, and what to install if they do not.

A driver loads the code of every older compiler, and machine code of newer compilers of its own major version (CUDA
Compatibility, "minor version compatibility"); PTX it loads up to the PTX version that it was released with. Headers
belong to a compiler of their own major version. Versions are pairs (major, minor).

Imported when something was refused, and by the doctor.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from cupola.bindings.utils import cuda_of_ptx
from cupola.core.base._errors import NVRTCError
from cupola.core.program import _nvrtc

Version = tuple[int, int]

UNSUPPORTED_PTX_VERSION = 222  # CUDA_ERROR_UNSUPPORTED_PTX_VERSION

# Oldest release of the display driver for Linux that serves a CUDA major version (CUDA Toolkit release notes).
DRIVER_RELEASES = {12: "525.60.13", 13: "580.65.06"}

# EI_ABIVERSION of a cubin, by the major version of CUDA that made it.
_ELF_ABI = {7: 12, 8: 13}


class Mismatch(NamedTuple):
    """Two parts that do not fit together: what is wrong, what to do about it, and whether something will fail."""

    problem: str
    remedy: str
    fatal: bool

    def __str__(self) -> str:
        return f"{self.problem} {self.remedy}"


def compiler_and_driver(compiler: Version, driver: Version) -> Mismatch | None:
    """Check that the driver can load what NVRTC makes."""
    if compiler[0] > driver[0]:
        return Mismatch(
            f"NVRTC is from CUDA {_dotted(compiler)}, and the driver supports CUDA {_dotted(driver)} at most: it "
            f"can load "
            "neither the machine code nor the PTX of a newer major version.",
            f"{_update_driver(compiler[0])}, or use the compiler of CUDA {driver[0]}: {_install(driver[0])}.",
            True,
        )
    if compiler > driver:
        return Mismatch(
            f"NVRTC is from CUDA {_dotted(compiler)} and the driver is for CUDA {_dotted(driver)}: it loads cubins of "
            "this NVRTC, but not its PTX.",
            "Compile to 'cubin', or update the driver.",
            False,
        )
    return None


def headers_and_compiler(headers: Version, compiler: Version) -> Mismatch | None:
    """Check that CUDA's headers are of the compiler's major version."""
    if headers[0] == compiler[0]:
        return None
    return Mismatch(
        f"CUDA's headers are of CUDA {_dotted(headers)}, and NVRTC is from CUDA {_dotted(compiler)}.",
        f"Use headers of the same major version: {_install(compiler[0])}.",
        False,
    )


def libraries_and_compiler(name: str, library: Version, compiler: Version) -> Mismatch | None:
    """Check that a linker or library, such as nvJitLink, takes the intermediate code of the compiler."""
    if library[0] == compiler[0] and library >= compiler:
        return None
    return Mismatch(
        f"{name} is of CUDA {_dotted(library)} and NVRTC of CUDA {_dotted(compiler)}: it may refuse the LTO-IR of "
        "another major or a newer version.",
        f"Install both from one CUDA version: {_install(compiler[0])} --upgrade.",
        False,
    )


def target_and_compiler(arch: int, supported: Sequence[int], compiler: Version) -> Mismatch | None:
    """Check that NVRTC compiles for an architecture, such as 90."""
    if not supported or arch in supported:
        return None
    problem = (
        f"NVRTC of CUDA {_dotted(compiler)} does not compile for sm_{arch}; it knows "
        f"{', '.join(f'sm_{known}' for known in supported)}."
    )
    if arch > supported[0]:
        return Mismatch(problem, f"Use a newer NVRTC: {_install(max(compiler[0], 13))} --upgrade.", True)
    return Mismatch(problem, f"CUDA 12 still supports GPUs from sm_50 on: {_install(12)}.", True)


def ptx_and_driver(ptx: Version, driver: Version) -> Mismatch | None:
    """Check that the driver loads PTX of a version."""
    needed = cuda_of_ptx(*ptx)
    if needed is None:
        needed = (ptx[0] + 4, ptx[1])  # newer than what is known; so far they count in step
    if needed <= driver:
        return None
    same_major = needed[0] == driver[0]
    update = "Update the driver" if same_major else _update_driver(needed[0])
    return Mismatch(
        f"The PTX has version {_dotted(ptx)}, which came with CUDA {_dotted(needed)}, and the driver is for CUDA "
        f"{_dotted(driver)}.",
        f"{update}, or make the PTX with a compiler of CUDA {_dotted(driver)} or older"
        + (", or compile to 'cubin'." if same_major else f": {_install(driver[0])}."),
        True,
    )


def cubin_and_driver(major: int, driver: Version) -> Mismatch | None:
    """Check that the driver loads machine code that a compiler of a CUDA major version made."""
    if major <= driver[0]:
        return None
    return Mismatch(
        f"The cubin was made by CUDA {major}, and the driver supports CUDA {_dotted(driver)} at most.",
        f"{_update_driver(major)}, or compile with CUDA {driver[0]}: {_install(driver[0])}.",
        True,
    )


def explain_load(status: int, code: object, driver: Version) -> str:
    """Why a driver of this version refuses PTX or a cubin; empty when versions are not the reason."""
    head = _beginning(code)
    found = None
    if head[:4] == b"\x7fELF" and len(head) > 8:
        found = cubin_and_driver(_ELF_ABI.get(head[8], 0), driver)
    elif status == UNSUPPORTED_PTX_VERSION:
        version = re.search(rb"^\s*\.version\s+(\d+)\.(\d+)", head, re.MULTILINE)
        found = ptx_and_driver((int(version[1]), int(version[2])), driver) if version else None
    return str(found) if found else ""


def explain_link(log: str, linker: Version) -> str:
    """Why nvJitLink refuses an input; empty when versions are not the reason."""
    if not re.search(r"version|newer|NVVM_ERROR_IR_VERSION|libnvvm", log, re.IGNORECASE):
        return ""
    try:
        compiler = _nvrtc.version()
    except (RuntimeError, ImportError):
        return ""
    found = libraries_and_compiler("nvJitLink", linker, compiler)
    return str(found) if found else ""


def explain_compile(error: NVRTCError, flags: Iterable[bytes]) -> NVRTCError:
    """The error itself, or one with more text when a mismatch of versions may be the reason."""
    texts = [os.fsdecode(flag) for flag in flags]
    compiler = _nvrtc.version()
    found: Mismatch | str | None = wrong_headers(texts, compiler)
    if found is None and error.name == "NVRTC_ERROR_INVALID_OPTION":
        arch = next((match for text in texts if (match := re.match(r"-arch=(?:sm|compute)_(\d+)", text))), None)
        if arch:
            found = target_and_compiler(int(arch[1]), supported_targets(), compiler)
        elif "architecture" in str(error):
            found = _malformed_arch(texts)
    if found is None:
        return error
    return NVRTCError(f"{error}\n\n{found}", name=error.name, status=error.status)


def _malformed_arch(flags: list[str]) -> str:
    given = next((flag.removeprefix("-arch=") for flag in flags if flag.startswith("-arch=")), "")
    return f"arch must look like 'sm_90' or 'compute_90', not {given!r}: write arch=f'sm_{{device.arch}}'"


def wrong_headers(flags: Iterable[str], compiler: Version) -> Mismatch | None:
    """The first of the include folders among the flags that has CUDA headers of another major version."""
    for flag in flags:
        if flag.startswith("--include-path="):
            headers = _cuda_of_folder(flag.removeprefix("--include-path="))
            found = headers_and_compiler(headers, compiler) if headers else None
            if found:
                return found
    return None


def supported_targets() -> list[int]:
    """The architectures that NVRTC compiles for, in ascending order (nvrtcGetSupportedArchs)."""
    from cupola.bindings.nvrtc import nvrtcGetSupportedArchs

    status, found = nvrtcGetSupportedArchs()
    return sorted(found) if not status else []


def parse_version(text: str | None) -> Version | None:
    """The first two numbers of a version, such as ``"13.0.48"``; None when it has none."""
    numbers = re.findall(r"\d+", text or "")
    return (int(numbers[0]), int(numbers[1]) if len(numbers) > 1 else 0) if numbers else None


@functools.cache
def _cuda_of_folder(folder: str) -> Version | None:
    from cupola.pathfinder import LocatedHeaderDir

    return parse_version(LocatedHeaderDir(folder, "include_path", "cudart").version)


def _beginning(code: object) -> bytes:
    if isinstance(code, str):
        try:
            with open(code, "rb") as file:
                return file.read(4096)
        except OSError:
            return b""  # which the driver has said already
    return bytes(code[:4096]) if isinstance(code, bytes | bytearray) else b""


def _dotted(version: Version) -> str:
    return f"{version[0]}.{version[1]}"


def _update_driver(major: int) -> str:
    release = DRIVER_RELEASES.get(major)
    return f"Update the driver to release {release} or newer" if release else "Update the driver"


def _install(major: int) -> str:
    # The wheels of CUDA 13 and later have no number in their names, and win when both are there.
    if major <= 12:
        return 'pip uninstall nvidia-cuda-nvrtc; pip install "cupola[cu12]"'
    return f'pip install "cupola[cu{major}]"'
