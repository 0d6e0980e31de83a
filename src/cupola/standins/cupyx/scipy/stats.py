"""``cupyx.scipy.stats``: functions of ``scipy.stats``, computed on the host."""

from __future__ import annotations

from typing import Any

from cupola.standins.cupyx.scipy._host import function

NAMES = ["boxcox_llf", "entropy", "trim_mean", "zmap", "zscore"]

__all__ = ["NAMES"]


def __getattr__(name: str) -> Any:
    globals()[name] = found = function("stats", name, NAMES)
    return found


def __dir__() -> list[str]:
    return sorted([*globals(), *NAMES])
