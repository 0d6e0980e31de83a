"""``cupyx.scipy``: SciPy's functions for arrays of the device, computed by SciPy on the host, where it is installed."""

from __future__ import annotations

import importlib
from typing import Any

from cupola.standins.cupy._functions import get_array_module as _get_cupy
from cupola.standins.cupyx.scipy._host import MODULES as _MODULES

__name__ = "cupyx.scipy"
_OTHERS = {
    "fftpack": "cupyx.scipy.fft has the functions",
    "interpolate": "scipy.interpolate takes x.get(), and cupy.interp is there",
    "spatial": "scipy.spatial takes x.get()",
}


def get_array_module(*args: Any) -> Any:
    """``cupyx.scipy`` if there is an array of the device among the arguments, else ``scipy``."""
    target = "scipy" if _get_cupy(*args).__name__ == "numpy" else __spec__.name
    return importlib.import_module(target)


def __getattr__(name: str) -> Any:
    if name in (*_MODULES, "sparse"):
        return importlib.import_module(f"{__spec__.name}.{name}")
    if name in _OTHERS:
        raise AttributeError(
            f"CuPy has cupyx.scipy.{name}, and cupola's stand-in has not: {_OTHERS[name]} (docs/coming-from-cupy.md)"
        )
    raise AttributeError(f"module 'cupyx.scipy' has no attribute {name!r}")
