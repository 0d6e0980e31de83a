"""What can wait: called a moment later in another thread, or when the program ends, if that is sooner.

So processes that prepare something do not begin just when the program needs the processor itself.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections.abc import Callable

DELAY = 0.3  # seconds

_lock = threading.Lock()
_waiting: list[Callable[[], object]] = []


def call_soon(function: Callable[[], object]) -> None:
    """Have a function called that raises nothing and may be called in any thread.

    Parameters
    ----------
    function
        It is called once.
    """
    with _lock:
        _waiting.append(function)
        if len(_waiting) > 1:
            return  # somebody waits already
    try:
        threading.Thread(target=_wait, name="cupola: soon", daemon=True).start()
    except RuntimeError:  # the program ends already
        _call()


def _wait() -> None:
    time.sleep(DELAY)
    _call()


def _call() -> None:
    with _lock:
        functions = _waiting.copy()
        _waiting.clear()
    for function in functions:
        function()


def _forget() -> None:
    """After a fork: the parent calls them."""
    global _lock
    _lock = threading.Lock()
    _waiting.clear()


atexit.register(_call)
os.register_at_fork(after_in_child=_forget)
