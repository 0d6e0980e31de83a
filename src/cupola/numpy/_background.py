"""What programs begin with, compiled by a process in the background when the CPU device's cache is new.

The CPU device makes machine code of PTX, for 0.1 to 0.5 seconds a kernel, and keeps it on disk, where the first program
of a user finds nothing. So that program starts a process of low priority, once for each state of the package, which
belongs to nobody: no program waits for it, or has it for a child. ``CUPOLA_NUMPY_AHEAD=0`` turns that off.

Imported when the CPU device first needs a kernel of an array.
"""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

from cupola._private_folder import make_private, user_cache_folder
from cupola._soon import call_soon

# What tells a process to observe its kernels, or to let something fail.
_OBSERVED = ("CHECK", "COVERAGE", "DEBUGGER", "FINDINGS", "INJECT", "PROFILE")


def begin(file: Path) -> bool:
    """Start the process, unless one was started before for this `file` of kernels; returns whether it was started."""
    if not is_allowed():
        return False
    if not os.path.basename(sys.executable or "").startswith("python"):
        return False  # a program that has an interpreter inside would be started anew
    with contextlib.suppress(OSError, RuntimeError):  # nothing that is compiled would be kept
        if make_private(user_cache_folder()):
            os.close(os.open(_mark(file), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            call_soon(_start)
            return True
    return False


def is_allowed() -> bool:
    """Whether processes in the background may compile, whose work would be kept."""
    return "0" not in (os.environ.get("CUPOLA_NUMPY_AHEAD"), os.environ.get("CUPOLA_CPU_CACHE"))


def _mark(file: Path) -> str:
    """The file that says that this state of the package has been prepared."""
    # Of the version, importlib.metadata would read for 10 ms.
    status = file.stat()
    return user_cache_folder(f"numpy-{status.st_size}-{status.st_mtime_ns}.prepared")


def _start() -> None:
    import subprocess  # which few processes need here

    environment = {name: value for name, value in os.environ.items() if name not in map("CUPOLA_{}".format, _OBSERVED)}
    environment |= {"CUPOLA_DEVICE": "cpu", "CUPOLA_NUMPY_AHEAD": "0"}
    # The shell ends at once, so that the program gets no child that it knows nothing of.
    with contextlib.suppress(OSError, RuntimeError):  # nothing is compiled ahead
        subprocess.run(
            ["/bin/sh", "-c", 'nice -n 19 "$0" -m cupola.numpy &', sys.executable],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            check=False,
        )
