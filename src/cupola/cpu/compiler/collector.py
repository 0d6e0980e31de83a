"""Python's garbage collector pauses while the compiler makes its trees.

They are hundreds of thousands of objects that all stay alive, so each collection meanwhile walks over them and finds
nothing: a third of the time in which a large module is read.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_users = 0
_was_enabled = False


@contextmanager
def paused() -> Iterator[None]:
    """No automatic collection in this process until the last of those that are inside leaves."""
    global _users, _was_enabled
    with _lock:
        if not _users:
            _was_enabled = gc.isenabled()
            gc.disable()
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if not _users and _was_enabled:
                gc.enable()
