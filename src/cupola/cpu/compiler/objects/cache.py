"""Object code on disk, so that a kernel is compiled once for each computer.

An entry is one file, named by a hash of all that the code depends on: the LLVM IR, the processor with its features,
LLVM's version, and the version of this format. Files are written beside their place and renamed, so a reader sees
a whole entry or none; a checksum of name and code tells a damaged or renamed one, which is removed. When the entries
exceed the limit, those not used for longest go. A full folder has so many that counting them takes a second: a process
counts only if it has made much code, or when it makes an entry whose name says so, one of 64. What others could have
written is not loaded (_private_folder.py).

The folder is ``cupola`` in ``$XDG_CACHE_HOME`` (default ``~/.cache``). ``CUPOLA_CPU_CACHE=0`` turns the cache off.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from pathlib import Path

from cupola._private_folder import is_private, make_private, read_private, user_cache_folder

FORMAT = 2
LIMIT_BYTES = 256 << 20
SELDOM = 64
"""One of so many entries makes the process that writes it count; so does this part of the limit."""
_MAGIC = b"cupola object\n"


class ObjectCache:
    """A folder of object code.

    Parameters
    ----------
    folder
        Where the entries are; None for a cache that keeps nothing.
    machine
        Describes what the code runs on, and what made it.
    limit
        Bytes that the entries may take.
    """

    def __init__(self, folder: Path | None, machine: str, limit: int = LIMIT_BYTES) -> None:
        self.folder = folder
        self.machine = machine
        self.limit = limit
        self._trusted = False
        self._total: int | None = None  # bytes of all entries, when last counted, and what was put there since
        self._own = 0  # bytes that this process has put there

    @classmethod
    def default(cls, machine: str) -> ObjectCache:
        """The cache of this user."""
        if os.environ.get("CUPOLA_CPU_CACHE") == "0":
            return cls(None, machine)
        try:
            return cls(Path(user_cache_folder()), machine)
        except RuntimeError:  # there is no home folder
            return cls(None, machine)

    def key(self, ir: str) -> str:
        """The name of the entry for a module."""
        text = f"{FORMAT}\n{self.machine}\n{ir}"
        return hashlib.sha256(text.encode()).hexdigest()

    def get(self, key: str) -> bytes | None:
        """The object code, or None when there is none (any more)."""
        if self.folder is None:
            return None
        path = self.folder / f"{key}.o"
        try:
            self._trusted = self._trusted or is_private(str(self.folder))
            data = read_private(str(path)) if self._trusted else None
        except OSError:
            return None
        if data is None:
            return None
        head = len(_MAGIC) + 32
        code = data[head:]
        if data[: len(_MAGIC)] != _MAGIC or _checksum(key, code) != data[len(_MAGIC) : head]:
            with contextlib.suppress(OSError):
                path.unlink()
            return None
        with contextlib.suppress(OSError):
            os.utime(path)
        return code

    def put(self, key: str, code: bytes) -> bool:
        """Keep object code; False when the cache cannot be written, so that the next process compiles again."""
        if self.folder is None:
            return False
        data = _MAGIC + _checksum(key, code) + code
        unfinished = None
        try:
            if not make_private(str(self.folder)):
                return False
            with tempfile.NamedTemporaryFile(dir=self.folder, suffix=".new", delete=False) as file:
                unfinished = file.name
                file.write(data)
            os.replace(unfinished, self.folder / f"{key}.o")
        except OSError:
            if unfinished is not None:
                with contextlib.suppress(OSError):
                    os.unlink(unfinished)
            return False
        self._own += len(data)
        if self._total is not None:
            self._total += len(data)
            must_count = self._total > self.limit
        else:
            must_count = self._own * SELDOM > self.limit or int(key[:8], 16) % SELDOM == 0
        if must_count:
            self._trim()
        return True

    def drop(self, key: str) -> None:
        """Remove an entry that is not needed any more."""
        if self.folder is not None:
            with contextlib.suppress(OSError):
                os.unlink(self.folder / f"{key}.o")

    def _trim(self) -> None:
        """Remove what was not used for longest until the entries take three quarters of the limit."""
        assert self.folder is not None
        entries = []
        with contextlib.suppress(OSError):
            for entry in os.scandir(self.folder):
                if entry.name.endswith((".o", ".new")):
                    with contextlib.suppress(OSError):
                        status = entry.stat()
                        entries.append((status.st_mtime, status.st_size, entry.path))
        self._total = total = sum(size for _, size, _ in entries)
        if total <= self.limit:
            return
        for _, size, path in sorted(entries):
            if total <= self.limit * 3 // 4:
                break
            with contextlib.suppress(OSError):
                os.unlink(path)
                total -= size
        self._total = total


def _checksum(key: str, code: bytes) -> bytes:
    return hashlib.sha256(key.encode() + code).digest()
