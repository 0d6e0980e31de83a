"""Triton on the CPU device: what its CUDA backend needs besides a driver.

Triton takes its CUDA backend when PyTorch's CUDA build has found a GPU, and it has no other way to ask. So where the
CPU device runs CUDA programs, this asks for the backend in PyTorch's place: a finder waits for the backend's module,
and answers its question whether it is active. Triton also compiles C against ``libcuda.so.1``, which it looks for on
the disk.

`install` is called by ``cupola run`` and the pytest plugin. It imports nothing of Triton.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.abc import Loader
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

BACKEND = "triton.backends.nvidia.driver"


def install() -> None:
    """Make Triton's CUDA backend the active one of this process and those that it starts with cupola."""
    if BACKEND in sys.modules:
        _activate(sys.modules[BACKEND])
    elif not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


class _Finder:
    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != BACKEND:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)
        return spec


class _Loader(Loader):
    """Loads the backend by its own loader, and then answers its question."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        _activate(module)


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
