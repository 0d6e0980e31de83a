"""Machine code that came with the package, of kernels that many programs begin with: no first use waits for LLVM.

``packaged.bin`` has what would be remembered (recall.py) had they been compiled here before, for processors of the
level x86-64-v3, which nearly all have. A kernel runs that code until better code for this computer is there, as it
would run code made in the simplest way (later.py). ``tools/machine_code_ahead.py`` makes the file; a test tells when it
has to be made again. Where the sources can be edited they may be newer than the file, so it is not used.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import marshal
from pathlib import Path
from typing import Any

from cupola._packed import Packed
from cupola.cpu.compiler.numerics import DEFAULT, numerics
from cupola.cpu.compiler.objects import machine, recall

FILE = Path(__file__).with_name("packaged.bin")
LEVEL = "x86-64-v3"


def name_of(*what: object) -> bytes:
    """A name for what is there, of several parts."""
    return hashlib.sha256(repr(what).encode()).digest()[:16]


def find(*what: object) -> Any:
    """What the package has under a name of several parts, made of tuples, numbers, strings, bytes and None; or None."""
    data = pieces().get(name_of(*what)) if recall.enabled and is_used() else None
    return None if data is None else marshal.loads(data)


@functools.cache
def is_used() -> bool:
    """Whether this processor can run it, it belongs to this package, and it is what this process would compile."""
    is_same = numerics() == DEFAULT and not machine.quick
    return is_same and FILE.exists() and not _may_be_edited() and machine.runs(LEVEL)


def _may_be_edited() -> bool:
    """Whether compiled modules are elsewhere, as in an editable build."""
    spec = importlib.util.find_spec("cupola.cpu._driver")
    return spec is None or spec.origin is None or Path(spec.origin).parent != FILE.parents[2]


@functools.cache
def pieces() -> Packed:
    """The file."""
    return Packed(FILE.read_bytes())
