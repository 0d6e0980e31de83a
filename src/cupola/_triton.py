"""Triton on the CPU device: what its CUDA backend needs besides a driver.

Triton takes its CUDA backend when PyTorch's CUDA build has found a GPU, and it has no other way to ask. So where the
CPU device runs CUDA programs, this asks for the backend in PyTorch's place: it answers the question of the backend's
module whether it is active. Triton also compiles C against ``libcuda.so.1``, which it looks for on
the disk.

`install` is called by ``cupola run`` and the pytest plugin. It imports nothing of Triton.
"""

from __future__ import annotations

import os
from types import ModuleType

from cupola._after_import import after_import

BACKEND = "triton.backends.nvidia.driver"


def install() -> None:
    """Make Triton's CUDA backend the active one of this process and those that it starts with cupola."""
    after_import(BACKEND, _activate)


def _activate(module: ModuleType) -> None:
    from cupola.cpu import programs

    os.environ.setdefault("TRITON_LIBCUDA_PATH", programs.library_folder())  # read when C is compiled
    driver = getattr(module, "CudaDriver", None)
    if driver is not None:  # Triton then says that no backend is active
        driver.is_active = staticmethod(_is_active)


def _is_active() -> bool:
    """Yes, and a device is current from now on, as PyTorch makes it."""
    from cupola import Device

    Device().set_current()
    return True
