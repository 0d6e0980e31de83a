"""What processes of cupola may leave on the machine when they are killed: nothing."""

from __future__ import annotations

import os


def left_behind() -> set[str]:
    """The names of shared memory that are cupola's."""
    return {name for name in os.listdir("/dev/shm") if "cupola" in name}
