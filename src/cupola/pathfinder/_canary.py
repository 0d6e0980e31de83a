"""Where the operating system's loader would take a library from, found out by a child process.

Some libraries of a toolkit (NVVM, CUPTI), its headers and its tools are on no loader's path, but cudart often is:
the folder that it comes from tells the toolkit's root. The child does the loading, because a cudart that is only
looked up must not stay in this process, where it could be another one than the program wants.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading

from . import _platform
from ._tables import LIBRARIES

_PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_lookup.py")
TIMEOUT = 10.0  # seconds; a healthy child takes some hundredths of one

_answers: dict[str, str | None] = {}
_lock = threading.Lock()


def system_library(name: str) -> str | None:
    """The file that the loader takes for a library, or None. Asked once per process.

    Raises
    ------
    ChildProcessError
        The child failed or did not end.
    """
    with _lock:
        if name not in _answers:
            # A loader does not take patterns as names.
            names = [each for each in LIBRARIES[name].names(_platform.current()) if "*" not in each]
            _answers[name] = _ask(tuple(names)) if names else None
        return _answers[name]


def system_toolkit() -> str | None:
    """The root of the toolkit that the loader takes cudart from, or None."""
    path = system_library("cudart")
    return toolkit_of(path) if path else None


def toolkit_of(library: str) -> str | None:
    """The root of the toolkit that a library is part of.

    The library is in ``<root>/lib64`` or ``<root>/targets/<arch>/lib``; on Windows in ``<root>/bin``, or in a folder of
    the processor's there.
    """
    folder, inner = os.path.split(os.path.dirname(os.path.abspath(library)))
    platform = _platform.current()
    if platform.windows:
        if inner == platform.folder:
            folder, inner = os.path.split(folder)
        return folder if inner == "bin" else None
    if inner not in ("lib", "lib64"):
        return None
    parent = os.path.dirname(folder)
    return os.path.dirname(parent) if os.path.basename(parent) == "targets" else folder


def _ask(sonames: tuple[str, ...]) -> str | None:
    # -I: the child must see neither this program's folder nor PYTHON* variables; LD_LIBRARY_PATH still counts.
    command = [sys.executable, "-I", "-S", _PROGRAM, *sonames]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    except subprocess.TimeoutExpired:
        raise ChildProcessError(
            f"the child process that looks for {sonames[0]} did not end within {TIMEOUT:g} s"
        ) from None
    if done.returncode != 0:
        raise ChildProcessError(
            f"the child process that looks for {sonames[0]} failed with status {done.returncode}: {done.stderr.strip()}"
        )
    return done.stdout.strip() or None
