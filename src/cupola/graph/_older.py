"""Names of graphs from cuda.core 0.x: they work, with one warning that they are old.

Imported when one is used.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

TYPE_CHECKING = False  # typing is slow to import
if TYPE_CHECKING:
    from typing import Any

    from cupola.core.device._device import Device

_CLASSES = {"GraphDef": "GraphDefinition", "Condition": "GraphCondition"}

METHODS = {
    "alloc": "allocate",
    "free": "deallocate",
    "record_event": "record",
    "wait_event": "wait",
    "debug_print": "debug_dot_print",
    "add_child": "embed",
    "create_conditional_handle": "create_condition",
    "if_cond": "if_then",
    "callback_fn": "callback",
}
"""Older name of a method or property -> its name."""


@dataclass
class GraphAllocOptions:
    """The options that are now keywords of ``allocate``.

    Parameters
    ----------
    device : Device or int, optional
        Where.
    memory_type : str, optional
        ``"device"``, ``"host"`` or ``"managed"``.
    peer_access : list of (Device or int), optional
        Devices that get access beside it.
    """

    device: Device | int | None = None
    memory_type: str | None = None
    peer_access: Sequence[Device | int] | None = None


def find(name: str) -> object:
    """The class of an older name in ``cupola.graph``, or the name that it has now."""
    if name == "GraphAllocOptions":
        warnings.warn(
            "GraphAllocOptions is now the keyword arguments of allocate(): device, memory_type, peer_access",
            DeprecationWarning,
            stacklevel=3,
        )
        return GraphAllocOptions
    if name not in _CLASSES:
        raise AttributeError(f"module 'cupola.graph' has no attribute {name!r}")
    warnings.warn(f"{name} is now {_CLASSES[name]}", DeprecationWarning, stacklevel=3)
    return _CLASSES[name]


def attribute(value: object, name: str) -> object:
    """The method or property of an older name; for the ``__getattr__`` of the classes."""
    if name == "options" and hasattr(value, "bytesize"):
        warnings.warn("AllocNode.options is now its own properties", DeprecationWarning, stacklevel=2)
        node: Any = value
        return GraphAllocOptions(node.device_id, node.memory_type, node.peer_access)
    newer = METHODS.get(name)
    if newer is None or not hasattr(type(value), newer):
        raise AttributeError(f"{type(value).__name__!r} object has no attribute {name!r}")
    warnings.warn(f"{type(value).__name__}.{name} is now {newer}", DeprecationWarning, stacklevel=2)
    return getattr(value, newer)
