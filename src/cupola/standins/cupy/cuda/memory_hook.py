"""Hooks that pools of memory call: the base class, and those that a thread has."""

from __future__ import annotations

import threading
from typing import Any


class _Registered(threading.local):
    """The hooks of a thread by their names, in the order in which they were entered."""

    def __init__(self) -> None:
        self.hooks: dict[str, MemoryHook] = {}


_registered = _Registered()


class MemoryHook:
    """Base class of what is called when pools get, give and take back memory.

    ``with hook:`` registers a hook for the thread. Methods are called with keyword arguments; those of this class do
    nothing.

    Attributes
    ----------
    name : str
        Under which the hook is registered: a name once at a time.
    """

    name = "MemoryHook"

    def __enter__(self) -> MemoryHook:
        if self.name in _registered.hooks:
            raise KeyError(f"memory hook {self.name} already exists")
        _registered.hooks[self.name] = self
        return self

    def __exit__(self, *_: object) -> None:
        del _registered.hooks[self.name]

    def alloc_preprocess(self, **kwargs: Any) -> None:
        """Before a pool gets memory from the device: device_id, mem_size."""

    def alloc_postprocess(self, **kwargs: Any) -> None:
        """Behind that: device_id, mem_size, mem_ptr, which is 0 if it failed."""

    def malloc_preprocess(self, **kwargs: Any) -> None:
        """Before a pool gives memory: device_id, size, which is what is asked for, mem_size."""

    def malloc_postprocess(self, **kwargs: Any) -> None:
        """Behind that: device_id, size, mem_size, mem_ptr, pmem_id, the last two of which are 0 if it failed."""

    def free_preprocess(self, **kwargs: Any) -> None:
        """Before a pool takes memory back: device_id, mem_size, mem_ptr, pmem_id."""

    def free_postprocess(self, **kwargs: Any) -> None:
        """Behind that: device_id, mem_size, mem_ptr, pmem_id."""


def hooks() -> list[MemoryHook]:
    """Those of this thread."""
    return list(_registered.hooks.values())


def call(of: list[MemoryHook], method: str, **what: int) -> None:
    """Call a method of hooks."""
    for hook in of:
        getattr(hook, method)(**what)
