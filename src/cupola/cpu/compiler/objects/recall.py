"""What was found out about an image before, perhaps by another process: enough to run its kernels without reading it.

Reading PTX, analyzing kernels and writing LLVM IR takes longer than loading object code does. So the cache of object
code (cache.py) also keeps, named by a hash of the PTX, the facts that the driver wants of a module, and
for each body of a kernel which object code is its. The PTX is then only read to tell where a fault is.

All of that depends on the code of this package, so its files are part of the names. The names of source files in the
PTX are not: those of sources that are strings differ each time.
"""

from __future__ import annotations

import functools
import hashlib
import marshal
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from cupola.cpu.compiler.objects.cache import ObjectCache

T = TypeVar("T")

enabled = True
"""Whether anything is recalled or remembered; tests that change the compiler turn it off."""

_SOURCE_NAMES = re.compile(r"^\s*\.file\s[^\n]*\n", re.MULTILINE)


@functools.cache
def _package() -> str:
    """A hash of the state of the files of cupola.cpu."""
    folder = Path(__file__).parents[2]
    found = [sys.version]
    for place, _, names in os.walk(folder):
        for name in names:
            if name.endswith((".py", ".so", ".ptx")):
                path = os.path.join(place, name)
                status = os.stat(path)
                found.append(f"{path} {status.st_size} {status.st_mtime_ns}")
    return hashlib.sha256("\n".join(sorted(found)).encode()).hexdigest()


@functools.cache
def _store() -> ObjectCache:
    return ObjectCache.default("facts")


def without_source_names(ptx: str) -> str:
    """PTX without what differs each time a source is compiled that is a string."""
    return _SOURCE_NAMES.sub("", ptx)


def content_of(ptx: str, registers: dict[str, int], architecture: int) -> str:
    """A name for an image: its PTX, the registers that its kernels take, and the architecture of its cubin."""
    text = f"{architecture}\n{sorted(registers.items())}\n{without_source_names(ptx)}"
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def identify(content: str) -> str:
    """A name for what this state of the package finds out about an image."""
    return hashlib.sha256(f"{_package()}\n{content}".encode()).hexdigest()


def recall(read: Callable[[Any], T], *what: object) -> T | None:
    """What `read` makes of what was remembered under a name of several parts.

    None when nothing was, when it was lost, or when it is not what it should be, so that it is found out again.
    """
    if not enabled:
        return None
    store = _store()
    data = store.get(store.key(repr(what)))
    if data is None:
        return None
    try:
        return read(marshal.loads(data))
    except (EOFError, TypeError, ValueError):
        return None


def remember(value: Any, *what: object) -> None:
    """Keep a value made of tuples, numbers, strings, bytes and None under a name of several parts."""
    if enabled:
        store = _store()
        store.put(store.key(repr(what)), marshal.dumps(value))
