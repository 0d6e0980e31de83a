"""CUDA's C libraries, function by function: ``from cupola.bindings import driver, nvrtc, nvjitlink``.

Importing a module loads no library; its first call does.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._inspection import Function as Function
    from ._inspection import Inspection as Inspection


def get_include() -> str:
    """Return the folder for C compilers (``-I``) whose headers, such as ``cupola/driver.h``, declare the tables.

    Cython finds the ``.pxd`` files by itself, in the package.

    Returns
    -------
    str
        Absolute path of the folder.
    """
    from pathlib import Path

    return str(Path(__file__).resolve().parent / "include")


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name in ("Inspection", "Function"):
            from . import _inspection

            return getattr(_inspection, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
