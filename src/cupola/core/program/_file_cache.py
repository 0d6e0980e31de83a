"""The program cache on disk.

A directory that any number of processes read, write and clean up at the same time, without a lock between them. An
entry is a file named by the hash of its key. It is written under another name and then renamed, so no reader sees half
an entry. It is never changed, only replaced or removed. A read that finds an entry gone is a miss. A checksum behind
the code detects damage when an entry is read; a damaged entry is removed, and the code compiled again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import time
from collections.abc import Iterator
from threading import RLock

from cupola._private_folder import belongs_to_user, is_private, make_private, open_private, user_cache_folder
from cupola.core.program._program_cache import Key, ProgramCacheResource, Value, checked_limit
from cupola.core.program._signatures import from_cache

_MAGIC = b"cupolaP2"  # ends an entry, behind the SHA-256 of its name and the code
_FOOTER = 32 + len(_MAGIC)
_STALE = 3600  # seconds after which a temporary file belongs to nobody any more
_ATTEMPTS = 1000  # to put an entry into a folder that others remove because it is empty
_COUNT_AGAIN = 64  # writes after which the sizes on disk, which others change, too, are looked at again


class FileStreamProgramCache(ProgramCacheResource):
    """A cache on disk, safe to share among threads and processes.

    Parameters
    ----------
    path : str or PathLike, optional
        The directory, made when there is none; by default ``cupola/program-cache`` in the user's cache
        (``$XDG_CACHE_HOME``, else ``~/.cache``).
    max_size_bytes : int, optional
        About how many bytes to keep on disk; the entries not used for the longest time go first. Several processes may
        exceed it together for a while. None: no limit.

    Raises
    ------
    ValueError
        The limit is not positive.
    FileExistsError
        `path` is a file.
    PermissionError
        No `path` is given, and the folder in the user's cache belongs to somebody else, or others may write to it.
    RuntimeError
        No `path` is given, and the user has no home folder.

    Notes
    -----
    Entries are files ``entries/xx/yyyy`` with the SHA-256 of their key in hexadecimal digits: the code, a checksum of
    name and code, and a mark. One that is damaged counts as missing and is removed. Threads may share it, and
    processes of one user its folder.

    Code from a cache is run, so what another user could have written is not believed: entries that are links or of
    somebody else are missing, and a folder that is not this user's, or to which others may write, neither gives nor
    keeps anything. The ``cupola`` logger says so.

    Examples
    --------
    >>> with FileStreamProgramCache(max_size_bytes=256 << 20) as cache:
    ...     code = program.compile("cubin", cache=cache)
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, *, max_size_bytes: int | None = None) -> None:
        self._limit = checked_limit(max_size_bytes)
        if path is None:
            path = user_cache_folder("program-cache")
            if not (make_private(os.path.dirname(path)) and make_private(path)):
                raise PermissionError(
                    f"{path!r} is not private to this user (see the 'cupola' logger): choose another path"
                )
        self._path = os.path.abspath(os.fspath(path))
        self._entries = os.path.join(self._path, "entries")
        self._temporary = os.path.join(self._path, "tmp")
        self._lock = RLock()
        self._writes = 0
        self._make_directories()
        self._size: int | None = None  # of all files, as far as is known; counted when the first is written
        self._unfinished()

    @property
    def path(self) -> str:
        """str: the directory."""
        return self._path

    def __getitem__(self, key: Key) -> bytes:
        path = self._path_of(key)
        try:
            file = open_private(path) if self._is_trusted() else None
            if file is None:
                raise KeyError(key)
            with file:
                stored = file.read()
                _mark_used(file.fileno())
                if _is_whole(path, stored):
                    return from_cache(stored[:-_FOOTER])
                seen = _Entry.of(path, os.fstat(file.fileno()))
            _remove(seen)
        except OSError:  # not there, or nothing that can be read
            pass
        raise KeyError(key)

    def __setitem__(self, key: Key, value: Value) -> None:
        path, data = self._path_of(key), self.as_value(value)
        stored = b"".join((data, _checksum(path, data), _MAGIC))
        with contextlib.suppress(FileNotFoundError):  # it is made anew
            if not self._is_trusted():
                return
        temporary = self._write_temporary(stored)
        try:
            replaced = _size_of(path)
            _move(temporary, path)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary)
            raise
        self._count(len(stored) - replaced)

    def __delitem__(self, key: Key) -> None:
        path = self._path_of(key)
        size = _size_of(path)
        try:
            os.unlink(path)
        except (FileNotFoundError, NotADirectoryError):
            raise KeyError(key) from None
        with self._lock:
            if self._size is not None:
                self._size -= size

    def __len__(self) -> int:
        return sum(1 for _ in _files_below(self._entries))

    def clear(self) -> None:
        """Remove all present entries. Entries that other processes store meanwhile stay."""
        for entry in list(_files_below(self._entries)):
            _remove(entry)
        with os.scandir(self._entries) as folders:
            for folder in folders:
                with contextlib.suppress(OSError):  # somebody has stored something in it
                    os.rmdir(folder.path)
        with self._lock:
            self._size = None

    def __reduce__(self) -> str:
        raise TypeError("a FileStreamProgramCache is not pickled: open another one with the same path")

    def __repr__(self) -> str:
        return f"<FileStreamProgramCache {self._path!r}>"

    def _path_of(self, key: Key) -> str:
        digest = hashlib.sha256(self.as_key(key)).hexdigest()
        return os.path.join(self._entries, digest[:2], digest[2:])

    def _make_directories(self) -> None:
        os.makedirs(self._path, exist_ok=True)  # of its own, for FileExistsError where a file is in the way
        os.makedirs(self._entries, mode=0o700, exist_ok=True)
        os.makedirs(self._temporary, mode=0o700, exist_ok=True)

    def _is_trusted(self) -> bool:
        """Whether only this user can have put entries there."""
        return belongs_to_user(self._path) and is_private(self._entries)

    def _write_temporary(self, data: bytes) -> str:
        try:
            descriptor, path = tempfile.mkstemp(prefix="entry-", dir=self._temporary)
        except FileNotFoundError:
            self._make_directories()
            descriptor, path = tempfile.mkstemp(prefix="entry-", dir=self._temporary)
        try:
            with open(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                # The file system's clock is some milliseconds behind the clock with which readers record their use.
                os.utime(file.fileno(), ns=(time.time_ns(), time.time_ns()))
                os.fsync(file.fileno())
        except BaseException:
            os.unlink(path)
            raise
        return path

    def _count(self, grown: int) -> None:
        """Note that the cache has grown by so many bytes, and make room if that is too much."""
        if self._limit is None:
            return
        with self._lock:
            self._writes += 1
            if self._size is not None:
                self._size += grown
            if self._size is None or self._size > self._limit or self._writes % _COUNT_AGAIN == 0:
                self._evict(self._limit)

    def _evict(self, limit: int) -> None:
        """Count all files, and remove those not used for longest if they are too much."""
        found = sorted(self._scan(), key=lambda entry: entry.used)
        self._size = sum(entry.size for entry in found)
        for entry in found:
            if self._size <= limit:
                break
            if not entry.path.startswith(self._temporary) and _remove(entry):
                self._size -= entry.size

    def _scan(self) -> list[_Entry]:
        """All files of the cache."""
        return [*_files_below(self._entries), *self._unfinished()]

    def _unfinished(self) -> list[_Entry]:
        """Temporary files; those of processes that have ended are removed."""
        found = []
        oldest = (time.time() - _STALE) * 1e9
        for entry in _files_below(self._temporary):
            if entry.written < oldest:
                _remove(entry)
            else:
                found.append(entry)
        return found


class _Entry:
    """A file as it was seen."""

    __slots__ = ("inode", "path", "size", "used", "written")

    def __init__(self, path: str, inode: int, size: int, used: int, written: int) -> None:
        self.path = path
        self.inode = inode
        self.size = size
        self.used = used
        self.written = written

    @classmethod
    def of(cls, path: str, status: os.stat_result) -> _Entry:
        return cls(path, status.st_ino, status.st_size, status.st_atime_ns, status.st_mtime_ns)

    def is_same(self, other: os.stat_result) -> bool:
        """Whether nobody has replaced it since."""
        return (self.inode, self.size, self.written) == (other.st_ino, other.st_size, other.st_mtime_ns)


def _files_below(folder: str) -> Iterator[_Entry]:
    try:
        with os.scandir(folder) as items:
            for item in items:
                if item.is_dir(follow_symlinks=False):
                    yield from _files_below(item.path)
                    continue
                with contextlib.suppress(FileNotFoundError):  # somebody was faster
                    yield _Entry.of(item.path, item.stat(follow_symlinks=False))
    except FileNotFoundError:
        return


def _remove(entry: _Entry) -> bool:
    """Remove a file unless it was replaced since it was seen; whether it is gone."""
    try:
        if not entry.is_same(os.lstat(entry.path)):
            return False
        os.unlink(entry.path)
    except FileNotFoundError:
        pass
    return True


def _move(temporary: str, path: str) -> None:
    """Rename a file; the folder that it goes to is made, again and again while others clear it away."""
    folder = os.path.dirname(path)
    for _ in range(_ATTEMPTS):
        try:
            # Not with exist_ok: then makedirs looks whether a folder is there, and fails if it has gone since.
            with contextlib.suppress(FileExistsError):
                os.makedirs(folder)
            return os.replace(temporary, path)
        except FileNotFoundError:
            if not os.path.exists(temporary):
                raise
    raise FileNotFoundError(f"{folder} is removed each time it is created")


def _mark_used(descriptor: int) -> None:
    """Set the time of the last access, which file systems do not all note."""
    status = os.fstat(descriptor)
    with contextlib.suppress(OSError):  # a cache of somebody else's: then the oldest entries go first
        os.utime(descriptor, ns=(time.time_ns(), status.st_mtime_ns))


def _is_whole(path: str, stored: bytes) -> bool:
    if not stored.endswith(_MAGIC) or len(stored) < _FOOTER:
        return False
    return _checksum(path, stored[:-_FOOTER]) == stored[-_FOOTER : -len(_MAGIC)]


def _checksum(path: str, data: bytes) -> bytes:
    """Of the code and the name under which it is kept: that of its key, wherever the folder is."""
    folder, name = os.path.split(path)
    return hashlib.sha256((os.path.basename(folder) + name).encode() + data).digest()


def _size_of(path: str) -> int:
    try:
        return os.lstat(path).st_size
    except OSError:
        return 0
