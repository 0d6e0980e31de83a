"""Find the folders that hold CUDA's headers."""

from __future__ import annotations

import functools
import glob
import os
from collections.abc import Iterator
from dataclasses import dataclass, field

from . import _platform
from ._header_table import HEADERS, TOOLKIT_HEADERS, Headers
from ._roots import (
    Place,
    in_conda,
    in_cuda_path,
    in_program_files,
    in_system_toolkit,
    in_variable,
    in_wheels,
    newest_first,
)


@dataclass(frozen=True)
class LocatedHeaderDir:
    """A folder of headers.

    Attributes
    ----------
    abs_path : str
        The folder, for ``ProgramOptions(include_path=...)``.
    found_via : str
        Why this one was chosen: ``"site-packages"``, ``"conda"``, the name of a product's own variable,
        ``"CUDA_PATH"``, ``"system-ctk-root"``, or ``"supported_install_dir"``.
    _name : str
        What was asked for.
    """

    abs_path: str
    found_via: str

    _name: str = field(default="", repr=False, compare=False)

    @property
    def version(self) -> str | None:
        """str or None: the version of the headers, such as ``"13.0"``; None when nothing tells it.

        A macro of theirs says it (``CUDART_VERSION``, ``CCCL_VERSION``, ...), else the wheel they came in.
        """
        from ._versions import header_version

        headers = HEADERS.get(self._name)
        return header_version(headers, self.abs_path) if headers else None


@functools.cache
def locate_nvidia_header_directory(name: str) -> LocatedHeaderDir | None:
    """Find the include folder of a part of the CUDA toolkit, or of a product on top of it.

    Parameters
    ----------
    name : str
        The part's name, such as ``"cudart"`` or ``"cccl"``: a key of ``SUPPORTED_HEADERS_CTK``, or a product's
        name such as ``"cudnn"`` or ``"cutlass"``.

    Returns
    -------
    LocatedHeaderDir or None
        None when the headers are not installed. The answer is remembered.

    Raises
    ------
    RuntimeError
        The name is not known, or not for this operating system.
    ChildProcessError
        The process that asks the loader where cudart is failed.
    """
    headers = HEADERS.get(name)
    if headers is None:
        raise RuntimeError(f"{name!r} is not a known set of headers; known are {', '.join(HEADERS)}")
    if headers.linux_only and _platform.current().windows:
        raise RuntimeError(f"the headers {name!r} do not exist for Windows")
    for folder, found_via in _candidates(name, headers):
        if os.path.isfile(os.path.join(folder, headers.key)):
            return LocatedHeaderDir(os.path.abspath(folder), found_via, name)
    return None


def find_nvidia_header_directory(name: str) -> str | None:
    """Find the include folder of a part of the CUDA toolkit; :func:`locate_nvidia_header_directory` says more.

    Parameters
    ----------
    name : str
        The part's name, such as ``"cudart"`` or ``"cccl"``.

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
    >>> options = ProgramOptions(include_path=find_nvidia_header_directory("cccl"))
    """
    found = locate_nvidia_header_directory(name)
    return found.abs_path if found else None


def _candidates(name: str, headers: Headers) -> Iterator[Place]:
    yield from in_wheels(headers.folders)
    platform = _platform.current()
    if name not in TOOLKIT_HEADERS:
        yield from in_conda(("include",))
    elif platform.windows:
        for inner in headers.in_toolkit:
            folder, _, rest = inner.partition("include")
            yield from in_conda((inner, f"{folder}include/targets/{platform.folder}{rest}"))
    else:
        for inner in headers.in_toolkit:
            yield from in_conda((inner,), inner)
    yield from in_variable(headers.environment, headers.in_toolkit)
    yield from in_cuda_path(headers.in_toolkit)
    if name in TOOLKIT_HEADERS:
        yield from in_system_toolkit(headers.in_toolkit)
    for pattern in headers.system if not platform.windows else ():
        for folder in newest_first(glob.glob(pattern.format(machine=platform.machine))):
            yield folder, "supported_install_dir"
    for folder, _ in in_program_files(headers.program_files):
        yield folder, "supported_install_dir"
