"""Find the folders that hold CUDA's headers."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator

from ._roots import conda_prefix, get_cuda_path_or_home, site_packages
from ._tables import HEADER_COMPONENTS, SUPPORTED_HEADERS_CTK


class LocatedHeaderDir:
    """A folder of headers.

    Attributes
    ----------
    abs_path : str
        The folder.
    found_via : str
        Why this one was chosen: ``"site-packages"``, ``"conda"`` or ``"CUDA_PATH"``.
    """

    __slots__ = ("abs_path", "found_via")

    def __init__(self, abs_path: str, found_via: str) -> None:
        self.abs_path = abs_path
        self.found_via = found_via

    def __repr__(self) -> str:
        return f"LocatedHeaderDir(abs_path={self.abs_path!r}, found_via={self.found_via!r})"


@functools.cache
def locate_nvidia_header_directory(name: str) -> LocatedHeaderDir | None:
    """Find the include folder of a part of the CUDA toolkit.

    Parameters
    ----------
    name : str
        The part's name, a key of ``SUPPORTED_HEADERS_CTK``, such as ``"cudart"`` or ``"cccl"``.

    Returns
    -------
    LocatedHeaderDir or None
        None when the headers are not installed.

    Raises
    ------
    RuntimeError
        The name is not known.
    """
    if name not in SUPPORTED_HEADERS_CTK:
        raise RuntimeError(f"{name!r} is not a known set of headers; known are {', '.join(SUPPORTED_HEADERS_CTK)}")
    for folder, found_via in _candidates(name):
        if os.path.isfile(os.path.join(folder, SUPPORTED_HEADERS_CTK[name])):
            return LocatedHeaderDir(os.path.abspath(folder), found_via)
    return None


def find_nvidia_header_directory(name: str) -> str | None:
    """Find the include folder of a part of the CUDA toolkit; :func:`locate_nvidia_header_directory` says more.

    Parameters
    ----------
    name : str
        The part's name, a key of ``SUPPORTED_HEADERS_CTK``.

    Returns
    -------
    str or None
        The folder; None when the headers are not installed.

    Raises
    ------
    RuntimeError
        The name is not known.

    Examples
    --------
    >>> ProgramOptions(include_path=find_nvidia_header_directory("cccl"))
    """
    found = locate_nvidia_header_directory(name)
    return found.abs_path if found else None


def _candidates(name: str) -> Iterator[tuple[str, str]]:
    # CCCL's headers sit in a folder of their own in CUDA 13; everything else is flat.
    inner = ("include/cccl", "include") if name == "cccl" else ("include",)
    component = HEADER_COMPONENTS.get(name, name)
    for root in site_packages():
        for folder in (*(f"cu13/{i}" for i in inner), f"{component}/include", f"{component}/nvvm/include"):
            yield os.path.join(root, "nvidia", folder), "site-packages"
    prefix = conda_prefix()
    if prefix:
        target = f"targets/{os.uname().machine}-linux/include"
        for folder in (target, *inner):
            yield os.path.join(prefix, folder), "conda"
        yield os.path.join(prefix, target, "cccl"), "conda"
    cuda = get_cuda_path_or_home()
    if cuda:
        for folder in (*inner, "nvvm/include"):
            yield os.path.join(cuda, folder), "CUDA_PATH"
