"""What kernels do, counted line by line while a program runs: coverage, and counters for a profile.

``CUPOLA_COVERAGE`` or ``CUPOLA_PROFILE`` names a folder, and each process that has them writes a file there when it
ends, in which everything is named by the source and the line. Who started them adds the files up (`cupola.cli`).
Programs are compiled with lines for that (driver/module/observed.c). Imported when one of the variables is set.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
import tempfile
import time
from typing import Any

from cupola.cpu import _at_exit, _driver, _instruments
from cupola.cpu.compiler import modules

from . import counters, coverage

VARIABLES = {"CUPOLA_COVERAGE": ("blocks",), "CUPOLA_PROFILE": ("blocks", "counters")}
"""The variables, and the instruments that each needs."""

COLLECTORS = {"CUPOLA_COVERAGE": coverage.collect, "CUPOLA_PROFILE": counters.collect}
"""What makes a record of what was counted."""

_begun: dict[str, str] = {}


def begin_from_environment() -> None:
    """Observe what this process does, as the environment says, and write it down when it ends."""
    for variable in VARIABLES:
        folder = os.environ.get(variable)
        if folder and variable not in _begun:
            begin(variable, folder)


def begin(variable: str, folder: str) -> None:
    """Observe what this process does from here on."""
    if not _begun:
        atexit.register(save)
        if "multiprocessing" in sys.modules:  # its processes end without atexit
            from multiprocessing.util import Finalize

            Finalize(None, save, exitpriority=0)
    _begun[variable] = folder
    modules.keep_loaded()
    _instruments.switch_on(*VARIABLES[variable])


def save() -> None:
    """Write what was counted since the last time, once work that still runs has had a moment to end."""
    end = time.monotonic() + _at_exit.PATIENCE
    while not _driver.is_idle() and time.monotonic() < end:
        time.sleep(0.002)
    loaded, counts = modules.take_loaded(), modules.take_counts()
    if not loaded and not counts:
        return
    for variable, folder in _begun.items():
        _write(folder, COLLECTORS[variable](folder, loaded, counts))


def _write(folder: str, record: Any) -> None:
    """A file of its own for each process and time, which a reader sees whole or not at all."""
    handle, beside = tempfile.mkstemp(dir=folder, prefix="part-", suffix=".new")
    with open(handle, "w", encoding="utf-8") as file:
        json.dump(record, file)
    os.rename(beside, beside.removesuffix(".new") + ".json")
