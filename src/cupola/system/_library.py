"""NVML, initialized when it is first used and once per process: again after a fork."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

from cupola.bindings import nvml

if TYPE_CHECKING:
    from collections.abc import Iterator

_lock = threading.Lock()
_owner: int | None = None
"""The process that initialized NVML, or found that it cannot be."""

_UNUSABLE = (nvml.LibraryNotFoundError, nvml.DriverNotLoadedError, nvml.UnknownError)


def initialize() -> None:
    """Initialize NVML, unless this process has done so.

    Without a driver, NVML stays uninitialized and is not tried again: later calls raise `UninitializedError`.

    Raises
    ------
    DynamicLibNotFoundError
        When there is no NVML library, nor the CPU device.
    NvmlError
        When NVML cannot be initialized for another reason than a missing driver.
    """
    global _owner
    if _owner == os.getpid():
        return
    with _lock:
        if _owner == os.getpid():
            return
        with suppress(*_UNUSABLE):  # each later call raises
            nvml.init_v2()
        _owner = os.getpid()


def is_initialized() -> bool:
    """Whether this process has tried to initialize NVML."""
    return _owner == os.getpid()


def device_handles() -> Iterator[int]:
    """NVML's handles of all devices, in the order of their index."""
    initialize()
    for index in range(nvml.device_get_count_v2()):
        yield nvml.device_get_handle_by_index_v2(index)


class Unpicklable:
    """A base for handles and answers of NVML, which are only valid in this process."""

    __slots__ = ()

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"cannot pickle a {type(self).__name__}: it belongs to this process; send the device's uuid")
