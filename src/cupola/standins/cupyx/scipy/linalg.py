"""``cupyx.scipy.linalg``: functions of ``scipy.linalg``, computed on the host."""

from __future__ import annotations

from typing import Any

from cupola.standins.cupyx.scipy._host import function

NAMES = [
    "bandwidth",
    "block_diag",
    "circulant",
    "companion",
    "convolution_matrix",
    "dft",
    "expm",
    "fiedler",
    "fiedler_companion",
    "hadamard",
    "hankel",
    "helmert",
    "hilbert",
    "khatri_rao",
    "lu",
    "lu_factor",
    "lu_solve",
    "solve_triangular",
    "toeplitz",
    "leslie",
]

__all__ = ["NAMES"]


def __getattr__(name: str) -> Any:
    globals()[name] = found = function("linalg", name, NAMES)
    return found


def __dir__() -> list[str]:
    return sorted([*globals(), *NAMES])
