"""The places where CUDA may be installed, in the order in which they are searched."""

from __future__ import annotations

import functools
import os
import site
import sys
import sysconfig
import warnings
from collections.abc import Iterator


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


def site_packages() -> Iterator[str]:
    """Yield the site-packages folders: the virtual environment's own, the user's and the system's."""
    in_venv = sys.prefix != sys.base_prefix
    own = [sysconfig.get_paths()["purelib"], sysconfig.get_paths()["platlib"]]
    user = [site.getusersitepackages()] if site.ENABLE_USER_SITE else []
    others = [entry for entry in sys.path if entry.endswith(("site-packages", "dist-packages"))]
    ordered = [*own, *user, *others] if in_venv else [*user, *own, *others]
    for folder in dict.fromkeys(map(os.path.abspath, ordered)):
        if os.path.isdir(folder):
            yield folder


def conda_prefix() -> str | None:
    """Return the active conda environment, or None."""
    prefix = os.environ.get("CONDA_PREFIX")
    return prefix if prefix and os.path.isdir(prefix) else None
