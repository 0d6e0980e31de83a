"""Packages above CUDA: with which of their versions cupola has been tried on the CPU device (docs/ecosystem.md).

Another version may do as well. The ``cupola`` logger says so when a program imports one, so that whoever sees it fail
knows where to look first, and ``cupola doctor`` lists them.

`install` is called by ``cupola run`` and the pytest plugin. It imports nothing of the packages.
"""

from __future__ import annotations

import logging
from types import ModuleType

from cupola._after_import import after_import

# Distribution -> the modules of which a program imports the first that there is, and the versions.
TRIED = {
    "cuda-tile": (("cuda.tile",), ("1.7",)),
    "jax": (("jax_plugins.xla_cuda12", "jax_plugins.xla_cuda13"), ("0.10",)),
    "nccl4py": (("nccl.core",), ("0.6",)),
    "numba-cuda": (("numba.cuda.cudadrv.driver",), ("0.30",)),
    "numba-cuda-mlir": (("numba_cuda_mlir.numba_cuda.cudadrv.driver",), ("0.6",)),
    "nvmath-python": (("nvmath",), ("1.0",)),
    "torch": (("torch",), ("2.15",)),
    "triton": (("triton",), ("3.9",)),
}


def install() -> None:
    """Have the logger tell when a package of another version is imported, once in each process."""
    for distribution, (modules, _) in TRIED.items():
        for module in modules:
            after_import(module, _Tell(distribution))


def version_of(distribution: str) -> tuple[str, bool] | None:
    """The version of one of the packages, and whether it has been tried; None: it is not installed."""
    from importlib import metadata

    try:
        version = metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None
    return version, ".".join(version.split(".")[:2]) in TRIED[distribution][1]


def advice(distribution: str) -> str:
    """What to do if a version that has not been tried fails."""
    wanted = " or ".join(TRIED[distribution][1])
    return f'it has been tried with {wanted}: if something fails, pip install "{distribution}=={wanted}.*"'


class _Tell:
    def __init__(self, distribution: str) -> None:
        self._distribution = distribution

    def __call__(self, module: ModuleType) -> None:
        name = self._distribution
        if name == "torch" and getattr(getattr(module, "version", None), "cuda", None) is None:
            return  # not the build for CUDA
        version, is_tried = version_of(name) or ("", True)
        if not is_tried:
            text = "%s %s is a version that the CPU device does not know; %s"
            logging.getLogger("cupola").warning(text, name, version, advice(name))
