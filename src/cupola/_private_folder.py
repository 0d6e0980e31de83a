"""The folder for caches, and folders whose files are trusted, because only this user can have written them.

Code from a cache is run: machine code, and facts about where things are in it. So a folder and its files must belong
to this user, and no other user may write to them. Folders are made with mode 0700, and the mode is also set on a
folder that others can only read. A refused folder is reported on the ``cupola`` logger, once, and is not used as a
cache.
"""

from __future__ import annotations

import contextlib
import os
import stat

TYPE_CHECKING = False  # typing is slow to import
if TYPE_CHECKING:
    from typing import BinaryIO

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_WRITE = stat.S_IWGRP | stat.S_IWOTH
_refused: set[str] = set()


def user_cache_folder(name: str = "") -> str:
    """The folder `name` in cupola's part of the user's cache, ``$XDG_CACHE_HOME``, else ``~/.cache``. It may not exist.

    Raises
    ------
    RuntimeError
        When the variable is not set and the user has no home folder.
    """
    root = os.environ.get("XDG_CACHE_HOME")
    if not root:
        home = os.path.expanduser("~")
        if home == "~":
            raise RuntimeError("this user has no home folder to keep a cache in: set XDG_CACHE_HOME")
        root = os.path.join(home, ".cache")
    return os.path.join(root, "cupola", name) if name else os.path.join(root, "cupola")


def make_private(folder: str) -> bool:
    """Make a private folder, with its parents; False if the existing folder cannot be trusted.

    Raises
    ------
    OSError
        When there is none, and it cannot be made.
    """
    os.makedirs(os.path.dirname(folder) or ".", exist_ok=True)
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder, 0o700)
    return is_private(folder)


def is_private(folder: str) -> bool:
    """Whether the files of an existing folder can be trusted.

    Raises
    ------
    OSError
        When there is no such folder.
    """
    status = os.lstat(folder)
    if not stat.S_ISDIR(status.st_mode):
        return _refuse(folder, "it is not a folder")
    if status.st_uid != os.geteuid():
        return _refuse(folder, f"it belongs to the user with id {status.st_uid}")
    if status.st_mode & _WRITE:
        return _refuse(
            folder, f"other users may write to it (mode {stat.S_IMODE(status.st_mode):o}): chmod 700, and empty it"
        )
    if status.st_mode & _OTHERS:
        with contextlib.suppress(OSError):
            os.chmod(folder, 0o700)
    return True


def belongs_to_user(folder: str) -> bool:
    """Whether only this user can put files into a folder that a program has named; it may be a link.

    Raises
    ------
    OSError
        When there is no such folder.
    """
    status = os.stat(folder)
    if status.st_uid != os.geteuid():
        return _refuse(folder, f"it belongs to the user with id {status.st_uid}")
    if status.st_mode & _WRITE:
        return _refuse(folder, f"other users may write to it (mode {stat.S_IMODE(status.st_mode):o}): chmod go-w")
    return True


def open_private(path: str) -> BinaryIO | None:
    """A file in such a folder, open for reading; None when it cannot be trusted.

    Raises
    ------
    OSError
        When it is not there, or cannot be read.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        _refuse(path, "it is not a file")
    elif status.st_uid != os.geteuid():
        _refuse(path, f"it belongs to the user with id {status.st_uid}")
    elif status.st_mode & _WRITE:
        _refuse(path, f"other users may write to it (mode {stat.S_IMODE(status.st_mode):o})")
    else:
        return open(descriptor, "rb")
    os.close(descriptor)
    return None


def read_private(path: str) -> bytes | None:
    """The contents of a file in such a folder; None when it cannot be trusted.

    Raises
    ------
    OSError
        When it is not there, or cannot be read.
    """
    file = open_private(path)
    if file is None:
        return None
    with file:
        return file.read()


def _refuse(path: str, why: str) -> bool:
    if path not in _refused:
        _refused.add(path)
        import logging

        logging.getLogger("cupola").warning("%s is not used as a cache: %s", path, why)
    return False
