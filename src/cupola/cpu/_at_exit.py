"""Faults that no call has returned are told when the process ends.

A kernel that fails after the program's last synchronization fails silently on a GPU: the results are wrong, or were
never copied, and the process ends with status 0. Imported when the CPU device is chosen.
"""

from __future__ import annotations

import atexit
import time

from cupola.cpu import _driver

PATIENCE = 2.0
"""Seconds that work which is still queued may take, once the program has ended."""

_told: list[int] = []


def watch() -> None:
    """Tell at the end of the process; once."""
    atexit.unregister(tell)
    atexit.register(tell)


def tell() -> bool:
    """Wait a moment for what still runs, and say on the logger what failed unheard; returns whether anything did."""
    end = time.monotonic() + PATIENCE
    while not _driver.is_idle() and time.monotonic() < end:
        time.sleep(0.002)
    _driver.tell_checks()
    for device, error, why in _driver.unheard_faults():
        import logging  # which is slow, and rarely needed here

        _told.append(device)
        logging.getLogger("cupola").error(
            "work on device %d failed, and no call of the program has returned the error: %s%s",
            device,
            error,
            f"\n{why}" if why else "",
        )
    return bool(_told)
