"""What the commands print."""

from __future__ import annotations

import os
import sys


def show(text: str) -> None:
    """Print to a reader who may leave early, as ``head`` does; what cannot be written ends the command."""
    try:
        print(text, flush=True)
    except OSError as error:
        # Python flushes once more when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            sys.exit(f"cupola: the output cannot be written: {error.strerror}")
