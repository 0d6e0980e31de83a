"""What differs between operating systems and processors, as data, so that every search can be tested on any of them.

The tables of this package name folders as Linux has them. Windows has the same products elsewhere: DLLs are in ``bin``
instead of ``lib``, in a folder of the processor where CUDA 13 has them, and a conda environment is below ``Library``.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ._errors import UnsupportedArchError

# The processor's names: of conda's and the toolkit's targets on Linux (servers, then embedded systems), and in the
# folders of Windows (the toolkit's, then those of wheels).
_TARGETS = {"x86_64": ("x86_64-linux",), "aarch64": ("sbsa-linux", "aarch64-linux")}
_WINDOWS_FOLDERS = {"x86_64": ("x64", "x86_64"), "aarch64": ("arm64",)}


@dataclass(frozen=True)
class Platform:
    """An operating system on a processor.

    Attributes
    ----------
    system : str
        ``"linux"`` or ``"windows"``; another name of Python's where CUDA does not exist.
    machine : str
        ``"x86_64"`` or ``"aarch64"``.
    """

    system: str
    machine: str

    @property
    def windows(self) -> bool:
        """bool: whether files and folders have the names of Windows."""
        return self.system == "windows"

    @property
    def name(self) -> str:
        """str: the system's name in a sentence."""
        return {"linux": "Linux", "windows": "Windows", "darwin": "macOS"}.get(self.system, self.system)

    @property
    def targets(self) -> tuple[str, ...]:
        """tuple of str: folders below ``targets`` that a toolkit has for this processor, on Linux."""
        return () if self.windows else _TARGETS.get(self.machine, ())

    @property
    def folder(self) -> str:
        """str: the processor's folder in a toolkit for Windows."""
        return _WINDOWS_FOLDERS[self.machine][0]

    def wheel_folders(self, folders: Iterable[str]) -> tuple[str, ...]:
        """Where wheels have dynamic libraries, from where those for Linux have them."""
        if not self.windows:
            return tuple(folders)
        return tuple(dict.fromkeys(bin for folder in folders for bin in self._wheel_bins(_bin_of(folder))))

    def toolkit_folders(self, folders: Iterable[str]) -> tuple[str, ...]:
        """Where a toolkit has dynamic libraries, from where one for Linux has them."""
        if not self.windows:
            return tuple(folders)
        found: list[str] = []
        for folder in folders:
            if folder.startswith("extras/"):  # CUPTI's DLLs are beside its import libraries
                found += [folder.replace("lib64", f"lib/{self.folder}"), folder]
            elif self.machine == "aarch64":
                found.append(f"{_bin_of(folder)}/{self.folder}")
            else:
                found += [f"{_bin_of(folder)}/{self.folder}", _bin_of(folder)]
        return tuple(dict.fromkeys(found))

    def link_folders(self, folders: Iterable[str]) -> tuple[str, ...]:
        """Where a toolkit or a wheel has static libraries, from where one for Linux has them."""
        if not self.windows:
            return tuple(folders)
        libs = [folder.replace("lib64", "lib") for folder in folders]
        return tuple(dict.fromkeys(found for lib in libs for found in (f"{lib}/{self.folder}", lib)))

    def tool_folders(self, folders: Iterable[str]) -> tuple[str, ...]:
        """Where a toolkit or a wheel has programs, from where one for Linux has them (``.../bin``)."""
        if not self.windows:
            return tuple(folders)
        return tuple(
            f"{folder}{inner}"
            for folder in folders
            for inner in ("", *(f"/{f}" for f in _WINDOWS_FOLDERS[self.machine]))
        )

    def program_folders(self, patterns: Iterable[str]) -> list[str]:
        """Patterns below ``Program Files`` for this processor: ``{arch}`` is its folder; without it they are of x64."""
        return [
            p.format(arch=self.folder) for p in patterns if self.windows and ("{arch}" in p or self.folder == "x64")
        ]

    def program_files(self) -> str | None:
        """The folder in which installers for Windows put programs; None elsewhere."""
        if not self.windows:
            return None
        return os.environ.get("PROGRAMW6432") or os.environ.get("PROGRAMFILES") or None

    def _wheel_bins(self, folder: str) -> Iterator[str]:
        # CUDA 13's wheels serve several processors.
        yield from (f"{folder}/{inner}" for inner in reversed(_WINDOWS_FOLDERS[self.machine]))
        if self.machine == "x86_64":
            yield folder


def _bin_of(folder: str) -> str:
    parent, _, last = folder.rpartition("/")
    return f"{parent}/bin".lstrip("/") if last in ("lib", "lib64") else folder


@functools.cache
def current() -> Platform:
    """The platform of this Python.

    Raises
    ------
    UnsupportedArchError
        There is no CUDA for the processor under Windows.
    """
    if sys.platform == "win32":
        import sysconfig

        tag = sysconfig.get_platform()  # of this Python, which may run emulated
        machine = {"win-amd64": "x86_64", "win-arm64": "aarch64"}.get(tag)
        if machine is None:
            raise UnsupportedArchError(
                f"CUDA's libraries for Windows need a 64-bit Python for x64 or arm64; this one is for {tag}"
            )
        return Platform("windows", machine)
    return Platform("linux" if sys.platform.startswith("linux") else sys.platform, os.uname().machine)
