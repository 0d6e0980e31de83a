"""What modules above hand down to the arrays: the ufuncs by name, and the namespace itself."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

UFUNCS: dict[str, Any] = {}
NAMESPACE: list[Any] = []  # the module, once it is imported


def nearest(name: str, names: Iterable[str], instead: str | None = None) -> str:
    """What an error about a name that is not there adds: what there is instead, or the name that is nearest.

    Parameters
    ----------
    name : str
        The name.
    names : iterable of str
        Those that there are.
    instead : str, optional
        What is known to do the same.
    """
    import difflib

    if instead is not None:
        return f"; {instead}"
    there = {one.lower(): one for one in names if not one.startswith("_")}
    near = difflib.get_close_matches(name.lower(), there, 1)
    return f"; did you mean {there[near[0]]!r}?" if near else ""


def missing(module: str, name: str, names: Iterable[str], instead: dict[str, str]) -> AttributeError:
    """The error about a name that a module of this package has not.

    Parameters
    ----------
    module, name : str
        Whose name it would be.
    names : iterable of str
        Those that there are.
    instead : dict
        What does the same as names of NumPy that are not there.
    """
    near = "" if name.startswith("_") else nearest(name, names, instead.get(name))
    return AttributeError(f"module {module!r} has no attribute {name!r}{near}")
