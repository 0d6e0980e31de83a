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


def _read_elf(image: bytes) -> tuple[dict[str, int], int]:
    """Registers by kernel, which cubins keep in the upper byte of sh_info of ``.text.<kernel>``; and the sm_ number."""
    section_offset, flags = struct.unpack_from("<QI", image, 40)
    entry_size, count, names_index = struct.unpack_from("<HHH", image, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", image, section_offset + index * entry_size) for index in range(count)]
    names = sections[names_index][4] if names_index < count else 0
    registers = {}
    for name, _, _, _, _, _, _, info, _, _ in sections:
        start = names + name
        text = image[start : image.index(b"\0", start)].decode()
        if text.startswith(".text."):
            registers[text.removeprefix(".text.")] = info >> 24
    return registers, flags & 0xFF or flags >> 8 & 0xFF
