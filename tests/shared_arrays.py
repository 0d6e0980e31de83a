"""The arrays of a test module are shared by its tests: who wrote to one would change what others compare with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import ModuleType

import numpy


def protect(modules: Iterable[ModuleType]) -> None:
    """Make the arrays among the globals of modules read-only: a test that writes to one fails, in any order."""
    for module in modules:
        for value in list(vars(module).values()):
            for array in arrays_in(value):
                array.flags.writeable = False


def arrays_in(value: object) -> Iterator[numpy.ndarray]:
    if isinstance(value, numpy.ndarray):
        yield value
    elif type(value) in (list, tuple):
        for element in value:
            yield from arrays_in(element)
    elif type(value) is dict:
        for element in value.values():
            yield from arrays_in(element)
