"""What the commands print."""

from __future__ import annotations

import os
import sys


def show(text: str) -> None:
    """Print to a reader who may leave early, as ``head`` does."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        # Python flushes once more when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
