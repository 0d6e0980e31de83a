"""Kernels that came with the package, so that what programs begin with waits for no compiler.

``kernels/ahead.bin`` has the PTX of common kernels, each under a hash of its source and of how it was compiled. What is
not there is compiled by NVRTC and kept on disk. ``tools/kernels_ahead.py`` makes the file, of the statements of
_common.py; a test tells when it has to be made again. Imported when the first kernel is needed.

The PTX is that of compute capability 7.5, in the version of CUDA 12.0: drivers and GPUs since then take it. Of kernels
that a driver needs long for, the file also has machine code, for some GPUs and drivers of CUDA 13.
"""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path
from typing import Any

from cupola._packed import Packed
from cupola.bindings import _provider, driver
from cupola.core._compile import compile_to
from cupola.core.device._device import Device
from cupola.core.program import _nvrtc
from cupola.core.program._object_code import ObjectCode

FILE = Path(__file__).with_name("kernels") / "ahead.bin"
OLDEST = (7, 5)
MACHINE_CODE = {8: "sm_80", 9: "sm_90", 10: "sm_100", 12: "sm_120"}
"""Of which architecture there is machine code, by the major number of compute capabilities: later ones run it, too."""
TEGRA = ((8, 7), (10, 1))  # which do not
DRIVER = 13000  # the oldest driver that is sure to take it
QUICK_FIRST = b"\n// cupola: quick first\n"
"""Behind PTX for the CPU device: its kernels are to run soon, and well a little later."""


def code(source: str, *, fma: bool = False, **options: Any) -> ObjectCode:
    """Machine code or PTX of a source: what came with the package, else compiled or from the disk."""
    chosen = {"fma": fma, "name": "cupola.numpy", **options}
    device = Device()
    if _provider.current() == "cpu":
        source = for_cpu(source)
    if _provider.is_observed():  # observers know the sources that this process compiles
        return compile_to("cubin", source, options=chosen)
    quick_first = _provider.current() == "cpu" and _prepare()
    if not options and device.compute_capability >= OLDEST:
        if (architecture := _architecture(device)) and (cubin := known().get(name_of(source, fma, architecture))):
            return ObjectCode.from_cubin(cubin, name="cupola.numpy")
        ptx = known().get(name_of(source, fma))
        if ptx is not None:
            return ObjectCode.from_ptx(ptx + (QUICK_FIRST if quick_first else b""), name="cupola.numpy")
    if _provider.current() != "cpu" or _driver_version() < _compiler_version():
        return compile_to("cubin", source, options=chosen)
    # The CPU device runs PTX, and half of the time that NVRTC takes is making a GPU's machine code.
    made = compile_to("ptx", source, options={"arch": f"compute_{device.arch}", **chosen})
    if not quick_first:
        return made
    text = made.code.encode() if isinstance(made.code, str) else bytes(made.code)
    return ObjectCode.from_ptx(text.rstrip(b"\0") + QUICK_FIRST, name="cupola.numpy")


def _architecture(device: Device) -> str | None:
    """That of the machine code which this device runs, if the file may have some."""
    if _provider.current() == "cpu" or _driver_version() < DRIVER or tuple(device.compute_capability) in TEGRA:
        return None
    return MACHINE_CODE.get(device.compute_capability[0])


@functools.cache
def _driver_version() -> int:
    status, version = driver.cuDriverGetVersion()
    return int(version) if status == driver.CUresult.CUDA_SUCCESS else 0


def _compiler_version() -> int:
    """NVRTC's, whose PTX older drivers refuse."""
    major, minor = _nvrtc.version()
    return 1000 * major + 10 * minor


@functools.cache
def _prepare() -> bool:
    """Once for each process: see to what programs begin with. Returns whether the background may compile."""
    from cupola.numpy import _background

    _background.begin(FILE)
    return _background.is_allowed()


def for_cpu(source: str) -> str:
    """A source as the CPU device gets it: with what stands behind ``//CPU``, which is no part of it for a GPU."""
    return source.replace("//CPU ", "")


def name_of(source: str, fma: bool, architecture: str | None = None) -> bytes:
    """The name of a kernel's PTX, or of its machine code for an architecture."""
    return hashlib.sha256(f"{architecture or ''}{fma}\n{source}".encode()).digest()[:16]


@functools.cache
def known() -> Packed:
    """The kernels that came with the package."""
    return Packed(FILE.read_bytes())
