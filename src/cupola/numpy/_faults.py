"""Indices out of bounds, which kernels find: they report one to memory of the host, and the next wait raises it.

The memory is pinned, so looking at it costs no call. A kernel reads the first element in place of one that is not
there.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy

from cupola.core.memory._unpooled import LegacyPinnedMemoryResource

_memory: list[Any] = []
_lock = threading.Lock()


def report_address() -> numpy.uint64:
    """Where kernels report an index that is out of bounds."""
    if not _memory:
        with _lock:
            if not _memory:
                buffer = LegacyPinnedMemoryResource().allocate(24)
                words = numpy.asarray(buffer).view(numpy.int64)
                words[:] = 0
                _memory.extend([numpy.uint64(int(buffer.handle)), words, buffer])
    found: numpy.uint64 = _memory[0]
    return found


def check() -> None:
    """Raise the IndexError of a kernel that has found an index out of bounds; called behind a wait."""
    if not _memory or not _memory[1][0]:
        return
    with _lock:
        words = _memory[1]
        _, index, extent = words.tolist()
        words[:] = 0
    raise IndexError(
        f"index {index} is out of bounds for an axis of size {extent}: it is in an array of indices that was used "
        "before, and is noticed now that elements are waited for"
    )
