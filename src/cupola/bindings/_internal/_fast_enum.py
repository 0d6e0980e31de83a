"""The classes of the bindings' enumerations, for ``isinstance`` and ``functools.singledispatch``.

Each module of the bindings has a base class and a metaclass of its own, so these two know theirs by what they are.
"""

from __future__ import annotations

from abc import ABC

from cupola.bindings import driver

_METACLASS = f"{type(driver.CUresult).__module__}.{type(driver.CUresult).__qualname__}"


def _is_metaclass(cls: type) -> bool:
    return any(f"{base.__module__}.{base.__qualname__}" == _METACLASS for base in cls.__mro__)


class FastEnum(ABC):  # noqa: B024, nobody makes one
    """An enumeration of the bindings."""

    @classmethod
    def __subclasshook__(cls, other: type) -> bool:
        return _is_metaclass(type(other))


class FastEnumMetaclass(ABC):  # noqa: B024
    """The class of the bindings' enumerations."""

    @classmethod
    def __subclasshook__(cls, other: type) -> bool:
        return _is_metaclass(other)
