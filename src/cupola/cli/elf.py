"""What a program in an ELF file needs of CUDA: the libraries that it is linked with, and the device code in it."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

from cupola.cpu.compiler.images.elf import MAGIC, section_headers

__all__ = ["MAGIC", "Program", "is_elf", "read"]

_DYNAMIC, _NEEDED, _RPATH = 6, 1, 15


@dataclass(frozen=True, slots=True)
class Program:
    """What is in an ELF file.

    Attributes
    ----------
    needed
        The libraries that it is linked with, such as ``"libcudart.so.13"``.
    sections
        The names of its sections. Fat binaries of nvcc are in ``.nv_fatbin``.
    has_rpath
        It has a list of folders for libraries that counts more than ``LD_LIBRARY_PATH``.
    """

    needed: tuple[str, ...]
    sections: frozenset[str]
    has_rpath: bool

    @property
    def runtime(self) -> str | None:
        """The shared CUDA runtime that it is linked with."""
        return next((name for name in self.needed if name.startswith("libcudart.so")), None)

    @property
    def has_device_code(self) -> bool:
        """Whether nvcc, or a compiler like it, put device code into it."""
        return ".nv_fatbin" in self.sections or ".nvFatBinSegment" in self.sections


def is_elf(path: Path) -> bool:
    """Whether a file is a program or a library in machine code."""
    with path.open("rb") as file:
        return file.read(4) == MAGIC


def read(path: Path) -> Program:
    """Read the headers of a 64-bit ELF file.

    Raises
    ------
    ValueError
        When it is none, or damaged.
    """
    image = path.read_bytes()
    if image[:6] != MAGIC + b"\2\1":
        raise ValueError(f"{path} is not a 64-bit ELF file")
    try:
        return _read(image)
    except (struct.error, ValueError, IndexError) as error:
        raise ValueError(f"the headers of {path} are damaged: {error}") from error


def _read(image: bytes) -> Program:
    sections, names_index = section_headers(image)
    names = sections[names_index][4] if sections else 0
    needed: list[str] = []
    has_rpath = False
    for section in sections:
        kind, offset, size, link = section[1], section[4], section[5], section[6]
        if kind != _DYNAMIC:
            continue
        strings = sections[link][4]
        for at in range(offset, offset + size, 16):
            tag, value = struct.unpack_from("<qQ", image, at)
            if tag == _NEEDED:
                needed.append(_text(image, strings + value))
            has_rpath |= tag == _RPATH
    return Program(tuple(needed), frozenset(_text(image, names + section[0]) for section in sections), has_rpath)


def _text(image: bytes, start: int) -> str:
    return image[start : image.index(b"\0", start)].decode()
