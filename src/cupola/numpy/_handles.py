"""Handles of the math libraries: one for each thread, device and library, in the current stream."""

from __future__ import annotations

import threading
from typing import Any

from cupola.numpy._evaluate import current_stream, device

_threads = threading.local()


def handle(library: Any) -> int:
    """The handle of a library, whose calls are queued in the current stream."""
    known: dict[Any, list[int]] = _threads.__dict__.setdefault("handles", {})
    key = (library.__name__, device().device_id)
    found = known.get(key)
    if found is None:
        found = known[key] = [library.create(), -1]
    stream = int(current_stream().handle)
    if stream != found[1]:
        library.set_stream(found[0], stream)
        found[1] = stream
    return found[0]
