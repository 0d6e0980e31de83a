"""The places where CUDA may be installed: each function yields folders of one kind of place, with its name."""

from __future__ import annotations

import functools
import glob
import os
import re
import site
import sys
import sysconfig
import warnings
from collections.abc import Iterable, Iterator

from . import _platform

# A folder, and how it was come by.
Place = tuple[str, str]


@functools.cache
def get_cuda_path_or_home() -> str | None:
    """Return the toolkit folder named by ``CUDA_PATH``, else by ``CUDA_HOME``.

    An empty variable counts as unset. The answer is remembered for the life of the process.

    Returns
    -------
    str or None
        The folder as given, or None when neither variable is set.

    Warns
    -----
    UserWarning
        When both are set to different folders; ``CUDA_PATH`` wins.
    """
    path, home = os.environ.get("CUDA_PATH") or None, os.environ.get("CUDA_HOME") or None
    if path and home and os.path.realpath(path) != os.path.realpath(home):
        warnings.warn(
            f"CUDA_PATH ({path}) and CUDA_HOME ({home}) name different folders; CUDA_PATH is used",
            UserWarning,
            stacklevel=2,
        )
    return path or home


def in_wheels(folders: Iterable[str]) -> Iterator[Place]:
    """Folders below site-packages; the first folder of the first site-packages comes first."""
    for root in site_packages():
        for folder in folders:
            yield os.path.join(root, folder), "site-packages"


def in_conda(folders: Iterable[str], inner: str = "") -> Iterator[Place]:
    """Folders below the active conda environment (on Windows: its ``Library``), then `inner` of its targets."""
    prefix = conda_prefix()
    if prefix is None:
        return
    platform = _platform.current()
    if platform.windows:
        prefix = os.path.join(prefix, "Library")
    for folder in folders:
        yield os.path.join(prefix, folder), "conda"
    if inner:
        for target in platform.targets:
            yield os.path.join(prefix, "targets", target, inner), "conda"


def in_variable(variable: str | None, folders: Iterable[str]) -> Iterator[Place]:
    """Folders below the root of a product that has a variable of its own."""
    root = os.environ.get(variable) if variable else None
    if root and variable:
        for folder in folders:
            yield os.path.join(root, folder), variable


def in_cuda_path(folders: Iterable[str]) -> Iterator[Place]:
    """Folders below ``CUDA_PATH`` or ``CUDA_HOME``."""
    root = get_cuda_path_or_home()
    if root:
        for folder in folders:
            yield os.path.join(root, folder), "CUDA_PATH"


def in_program_files(patterns: Iterable[str]) -> Iterator[Place]:
    """Folders of installers for Windows, the newest version of each pattern first; none elsewhere."""
    root = _platform.current().program_files()
    if root:
        for pattern in patterns:
            for folder in newest_first(glob.glob(os.path.join(glob.escape(root), pattern))):
                if os.path.isdir(folder):
                    yield folder, "ProgramFiles"


def newest_first(paths: Iterable[str]) -> list[str]:
    """Paths in descending order of the versions in them: all numbers that follow each other."""
    return sorted(paths, key=lambda path: [int(number) for number in re.findall(r"\d+", path)], reverse=True)


def in_system_toolkit(folders: Iterable[str]) -> Iterator[Place]:
    """Folders below the toolkit that the loader takes cudart from; starts a child process to ask."""
    from ._canary import system_toolkit

    root = system_toolkit()
    if root:
        for folder in folders:
            yield os.path.join(root, folder), "system-ctk-root"


def site_packages() -> Iterator[str]:
    """Yield the site-packages folders.

    In a virtual environment its own come first and the user's last; elsewhere the user's come first, since what a
    user installs for himself is meant to replace what the system has.
    """
    own = [sysconfig.get_paths()["purelib"], sysconfig.get_paths()["platlib"]]
    user = [os.path.abspath(site.getusersitepackages())] if site.ENABLE_USER_SITE else []
    others = [entry for entry in sys.path if entry.endswith(("site-packages", "dist-packages"))]
    system = [entry for entry in map(os.path.abspath, [*own, *others]) if entry not in user]
    in_venv = sys.prefix != sys.base_prefix
    for folder in dict.fromkeys([*system, *user] if in_venv else [*user, *system]):
        if os.path.isdir(folder):
            yield folder


def conda_prefix() -> str | None:
    """Return the active conda environment, or None."""
    prefix = os.environ.get("CONDA_PREFIX")
    return prefix if prefix and os.path.isdir(prefix) else None
