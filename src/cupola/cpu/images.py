"""What an image of device code contains: PTX text, or a cubin with its PTX behind it."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from cupola.cpu.errors import ImageError

TRAILER = b"cupolaPT"
"""Ends a cubin made for the CPU device: the PTX, its length as a u64, and this."""

_ELF = b"\x7fELF"
_FATBIN = struct.pack("<I", 0xBA55ED50)


@dataclass(slots=True)
class Image:
    """The PTX of an image, and the registers a thread of each kernel takes on a GPU (from the cubin)."""

    ptx: str
    registers: dict[str, int] = field(default_factory=dict)
    architecture: int = 0


def open_image(image: bytes) -> Image:
    """Find the PTX in an image.

    Raises
    ------
    ImageError
        When there is none: for a cubin or a fat binary made for a GPU only.
    """
    if image.startswith(_ELF):
        return _open_cubin(image)
    if image.startswith(_FATBIN):
        raise ImageError(
            "CUDA_ERROR_NO_BINARY_FOR_GPU",
            "the image is a fat binary, of which the CPU device runs nothing: compile to PTX, or to a cubin "
            "with cupola's Program",
        )
    text = image.partition(b"\0")[0]
    try:
        return Image(text.decode())
    except UnicodeDecodeError as error:
        raise ImageError("CUDA_ERROR_INVALID_IMAGE", f"the image is neither PTX text nor a cubin: {error}") from error


def _open_cubin(image: bytes) -> Image:
    if not image.endswith(TRAILER) or len(image) < 16:
        raise ImageError(
            "CUDA_ERROR_NO_BINARY_FOR_GPU",
            "the cubin holds machine code for a GPU only, which the CPU device cannot run: compile to PTX, or to a "
            "cubin while the CPU device is in use (its PTX is then kept in the cubin)",
        )
    (length,) = struct.unpack_from("<Q", image, len(image) - 16)
    ptx = image[len(image) - 16 - length : len(image) - 16]
    return Image(ptx.decode(), *_read_elf(image))


# Entries of the section .nv.info: a format byte, an attribute byte, two bytes of size or value, and with this format
# that many bytes of payload. The payload of the register count is the index of the kernel's symbol and the count.
_FORMAT_SIZED = 4
_REGISTER_COUNT = 0x2F


def _read_elf(image: bytes) -> tuple[dict[str, int], int]:
    """Registers by kernel, and the sm_ number.

    Up to CUDA 12 cubins keep the registers in the upper byte of sh_info of ``.text.<kernel>``, whose other bytes are
    the index of the kernel's symbol; CUDA 13 keeps them in ``.nv.info`` by that index.
    """
    section_offset, flags = struct.unpack_from("<QI", image, 40)
    entry_size, count, names_index = struct.unpack_from("<HHH", image, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", image, section_offset + index * entry_size) for index in range(count)]
    names = sections[names_index][4] if names_index < count else 0
    symbols: dict[str, int] = {}
    registers: dict[str, int] = {}
    by_symbol: dict[int, int] = {}
    for name, _, _, _, offset, size, _, info, _, _ in sections:
        start = names + name
        text = image[start : image.index(b"\0", start)].decode()
        if text.startswith(".text."):
            kernel = text.removeprefix(".text.")
            symbols[kernel] = info & 0xFFFFFF
            registers[kernel] = info >> 24
        elif text == ".nv.info":
            by_symbol = _register_counts(image[offset : offset + size])
    for kernel, symbol in symbols.items():
        registers[kernel] = registers[kernel] or by_symbol.get(symbol, 0)
    return registers, flags & 0xFF or flags >> 8 & 0xFF


def _register_counts(entries: bytes) -> dict[int, int]:
    counts: dict[int, int] = {}
    at = 0
    while at + 4 <= len(entries):
        form, attribute, size = struct.unpack_from("<BBH", entries, at)
        at += 4
        if form != _FORMAT_SIZED:
            continue
        if attribute == _REGISTER_COUNT and size >= 8:
            symbol, count = struct.unpack_from("<II", entries, at)
            counts[symbol] = count
        at += size
    return counts
