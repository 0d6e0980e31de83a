"""Turning profilers on and off."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from cupola.standins.cupy.cuda import runtime


def start() -> None:
    """Let a profiler record from now on."""
    runtime.profilerStart()


def stop() -> None:
    """Let a profiler record no more."""
    runtime.profilerStop()


@contextlib.contextmanager
def profile() -> Iterator[None]:
    """Let a profiler record a ``with`` block."""
    start()
    try:
        yield
    finally:
        stop()
