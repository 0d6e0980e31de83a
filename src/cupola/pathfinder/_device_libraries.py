"""Find the libraries that are linked into device code: LLVM bitcode, and static archives."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from . import _platform
from ._errors import BitcodeLibNotFoundError, StaticLibNotFoundError
from ._roots import Place, in_conda, in_cuda_path, in_wheels


class _File:
    """A file's name, its folders below site-packages, those below a toolkit or conda root, its wheels."""

    __slots__ = ("_folders", "_in_toolkit", "_name", "pip", "windows")

    def __init__(self, name: str, folders: str, in_toolkit: str, pip: str, *, windows: str | None) -> None:
        self._name = name
        self._folders = tuple(folders.split())
        self._in_toolkit = tuple(in_toolkit.split())
        self.pip = pip
        self.windows = windows  # its name there; None: it does not exist for Windows

    @property
    def name(self) -> str:
        return self.windows if self.windows and _platform.current().windows else self._name

    @property
    def folders(self) -> tuple[str, ...]:
        return self._placed(self._folders)

    @property
    def in_toolkit(self) -> tuple[str, ...]:
        return self._placed(self._in_toolkit)

    def _placed(self, folders: tuple[str, ...]) -> tuple[str, ...]:
        return _platform.current().link_folders(folders) if self._name.endswith(".a") else folders


_BITCODE = {
    "device": _File(
        "libdevice.10.bc",
        "nvidia/cu13/nvvm/libdevice nvidia/cuda_nvcc/nvvm/libdevice",
        "nvvm/libdevice",
        "nvidia-nvvm (or nvidia-cuda-nvcc-cu12 for CUDA 12)",
        windows="libdevice.10.bc",
    ),
    "nccl_device": _File(
        "libnccl_device.bc", "nvidia/nccl/lib", "lib", "nvidia-nccl-cu13 (or nvidia-nccl-cu12)", windows=None
    ),
    "nvshmem_device": _File(
        "libnvshmem_device.bc",
        "nvidia/nvshmem/lib",
        "lib",
        "nvidia-nvshmem-cu13 (or nvidia-nvshmem-cu12)",
        windows=None,
    ),
}
_STATIC = {
    "cudadevrt": _File(
        "libcudadevrt.a",
        "nvidia/cu13/lib nvidia/cuda_runtime/lib",
        "lib64 lib",
        "nvidia-cuda-runtime (or nvidia-cuda-runtime-cu12 for CUDA 12)",
        windows="cudadevrt.lib",
    ),
}


def _supported(table: dict[str, _File], windows: bool) -> tuple[str, ...]:
    return tuple(name for name, file in table.items() if file.windows or not windows)


SUPPORTED_BITCODE_LIBS: tuple[str, ...] = _supported(_BITCODE, sys.platform == "win32")
SUPPORTED_STATIC_LIBS: tuple[str, ...] = _supported(_STATIC, sys.platform == "win32")


@dataclass(frozen=True)
class LocatedBitcodeLib:
    """A library of LLVM bitcode.

    Attributes
    ----------
    name : str
        The short name that it was asked for by.
    abs_path : str
        The file.
    filename : str
        The file's name without its folder.
    found_via : str
        Why this one was chosen: ``"site-packages"``, ``"conda"`` or ``"CUDA_PATH"``.
    """

    name: str
    abs_path: str
    filename: str
    found_via: str


@dataclass(frozen=True)
class LocatedStaticLib:
    """A static library.

    Attributes
    ----------
    name : str
        The short name that it was asked for by.
    abs_path : str
        The file.
    filename : str
        The file's name without its folder.
    found_via : str
        Why this one was chosen: ``"site-packages"``, ``"conda"`` or ``"CUDA_PATH"``.
    """

    name: str
    abs_path: str
    filename: str
    found_via: str


def locate_bitcode_lib(name: str) -> LocatedBitcodeLib:
    """Find a library of LLVM bitcode.

    Parameters
    ----------
    name : str
        ``"device"`` (libdevice), ``"nccl_device"`` or ``"nvshmem_device"``.

    Returns
    -------
    LocatedBitcodeLib

    Raises
    ------
    ValueError
        The name is not known.
    BitcodeLibNotFoundError
        It was found nowhere; the message says where it was looked for and what to install.
    """
    file = _known(name, _BITCODE, "bitcode library")
    found = _find(file)
    if found is None:
        raise BitcodeLibNotFoundError(_not_found_text(name, file, "bitcode library"))
    return LocatedBitcodeLib(name, found[0], file.name, found[1])


def locate_static_lib(name: str) -> LocatedStaticLib:
    """Find a static library.

    Parameters
    ----------
    name : str
        ``"cudadevrt"``, the device-side part of the CUDA runtime.

    Returns
    -------
    LocatedStaticLib

    Raises
    ------
    ValueError
        The name is not known.
    StaticLibNotFoundError
        It was found nowhere; the message says where it was looked for and what to install.
    """
    file = _known(name, _STATIC, "static library")
    found = _find(file)
    if found is None:
        raise StaticLibNotFoundError(_not_found_text(name, file, "static library"))
    return LocatedStaticLib(name, found[0], file.name, found[1])


@functools.cache
def find_bitcode_lib(name: str) -> str:
    """Find a library of LLVM bitcode, and remember where it is; :func:`locate_bitcode_lib` says more.

    Parameters
    ----------
    name : str
        ``"device"`` (libdevice), ``"nccl_device"`` or ``"nvshmem_device"``.

    Returns
    -------
    str
        The path of the file.

    Raises
    ------
    ValueError
        The name is not known.
    BitcodeLibNotFoundError
        It was found nowhere.
    """
    return locate_bitcode_lib(name).abs_path


@functools.cache
def find_static_lib(name: str) -> str:
    """Find a static library, and remember where it is; :func:`locate_static_lib` says more.

    Parameters
    ----------
    name : str
        ``"cudadevrt"``, the device-side part of the CUDA runtime.

    Returns
    -------
    str
        The path of the file.

    Raises
    ------
    ValueError
        The name is not known.
    StaticLibNotFoundError
        It was found nowhere.
    """
    return locate_static_lib(name).abs_path


def _known(name: str, table: dict[str, _File], kind: str) -> _File:
    file = table.get(name)
    if file is None:
        raise ValueError(f"{name!r} is not a known {kind}; known are {', '.join(table)}")
    if file.windows is None and _platform.current().windows:
        raise ValueError(f"the {kind} {name!r} does not exist for Windows")
    return file


def _find(file: _File) -> Place | None:
    for folder, found_via in _candidates(file):
        path = os.path.join(folder, file.name)
        if os.path.isfile(path):
            return os.path.abspath(path), found_via
    return None


def _candidates(file: _File) -> Iterator[Place]:
    yield from in_wheels(file.folders)
    yield from in_conda(file.in_toolkit, "lib")
    yield from in_cuda_path(file.in_toolkit)


def _not_found_text(name: str, file: _File, kind: str) -> str:
    lines = [f"the {kind} {name} ({file.name}) was not found. Looked in:"]
    lines += [f"  {folder} ({found_via})" for folder, found_via in _candidates(file)]
    lines.append(f"Install it with: pip install {file.pip}, or set CUDA_PATH to a toolkit")
    return "\n".join(lines)
