"""Which version of a library brought each of its symbols, where no header tells it: the libraries themselves do."""

from __future__ import annotations

import ctypes
import json
import subprocess
from pathlib import Path

from .ir import Module
from .libraries import ROOT


def path(library: str) -> Path:
    return ROOT / "ir" / f"{library}.symbols.json"


def record(libraries: list[Path]) -> dict[str, int]:
    """First version, as in 12080 for 12.8, of each symbol of the CUDA runtime that the oldest library lacks."""
    found: dict[int, set[str]] = {}
    for library in libraries:
        number = ctypes.c_int()
        ctypes.CDLL(str(library)).cudaRuntimeGetVersion(ctypes.byref(number))
        listing = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True)
        found[number.value] = {line.split()[-1].partition("@")[0] for line in listing.stdout.splitlines()}
    known: dict[str, int] = {}
    for version in sorted(found):
        known |= {s: version for s in found[version] if s.startswith("cuda") and s not in known}
    return {symbol: version for symbol, version in sorted(known.items()) if version > min(found)}


def add(module: Module) -> None:
    """Fill `since` of functions whose headers do not tell it."""
    if not path(module.library).exists():
        return
    first: dict[str, int] = json.loads(path(module.library).read_text())
    for function in module.functions:
        symbols = (function.older or function.symbol).split()
        if not function.since:
            function.since = min(first.get(symbol, 0) for symbol in symbols)
