"""What an image of device code contains that is no fat binary: PTX text, or a cubin with its PTX behind it."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from cupola.cpu.compiler.errors import ImageError
from cupola.cpu.compiler.images import elf, targets

TRAILER = b"cupolaPT"
"""Ends a cubin made for the CPU device: the PTX, its length as a u64, and this."""

_CUDA_MACHINE = 190


@dataclass(slots=True)
class Image:
    """The PTX of an image, and the registers a thread of each kernel takes on a GPU (from the cubin)."""

    ptx: str
    registers: dict[str, int] = field(default_factory=dict)
    architecture: int = 0


def is_cubin(image: bytes) -> bool:
    """Whether an image is an ELF file."""
    return image.startswith(elf.MAGIC)


def open_image(image: bytes, architecture: int = 0) -> Image:
    """Find the PTX in an image that is not a fat binary (for those see `fat_binaries.unpack`).

    Parameters
    ----------
    image
        The image.
    architecture
        The number of the modeled GPU, 90 for sm_90, which cubins must be for; 0 to take any.

    Raises
    ------
    ImageError
        When the image has no PTX, such as a cubin that was made for a GPU only, or is a cubin for another GPU.
    """
    if is_cubin(image):
        return _open_cubin(image, architecture)
    text = image.partition(b"\0")[0]
    try:
        return Image(text.decode())
    except UnicodeDecodeError as error:
        raise ImageError("CUDA_ERROR_INVALID_IMAGE", f"the image is neither PTX text nor a cubin: {error}") from error


def make_cubin(ptx: str, architecture: int) -> bytes:
    """An ELF image of no sections with PTX behind it, as image.h of the driver has it."""
    text = ptx.encode()
    target = targets.of_ptx(text)
    flags = targets.cubin_flags(targets.Target(architecture, "a" if target and target.suffix == "a" else ""))
    ident = b"\x7fELF\x02\x01\x01\x33".ljust(16, b"\0")
    head = ident + struct.pack("<HHIQQQIHHHHHH", 2, _CUDA_MACHINE, 1, 0, 0, 0, flags, 64, 56, 0, 64, 0, 0)
    size = struct.pack("<Q", len(text))
    return head + TRAILER + size + text + size + TRAILER


# ---- cubins ---------------------------------------------------------------------------------------------------------


def debug_ptx(image: bytes) -> bytes | None:
    """The PTX that a cubin was made of, if its maker has put it there: ``ptxas -lineinfo`` does, and so do Triton and
    cuTile. A zero ends each of its lines. What may stand behind it is the source that the PTX was made of, not PTX."""
    if _DEBUG_PTX not in image:
        return None
    try:
        sections = elf.sections(image)
        texts = [text for name, text in sections.items() if name.startswith(_DEBUG_PTX)]
    except (struct.error, ValueError, IndexError):
        return None
    if len(texts) != 1:
        return None  # nvcc has linked it of several files, whose own fat binaries the program has, too
    text = texts[0].partition(b".nv_intermediate_source_section")[0]
    if b".version" not in text or b".target" not in text:
        return None
    from cupola.cpu.compiler.images import lines  # most images need none of it

    return lines.restore(text.replace(b"\0", b"\n").decode("utf-8", "replace"), sections).encode()


_DEBUG_PTX = b".nv_debug_ptx_txt"  # with a number behind it in relocatable code


def _open_cubin(image: bytes, architecture: int) -> Image:
    try:
        target = targets.of_cubin(image)
        if architecture and target and not target.runs_as_cubin(architecture):
            raise _other_gpu(target, architecture)
        return _ptx_of_cubin(image)
    except (struct.error, ValueError, IndexError, OverflowError) as error:
        raise ImageError("CUDA_ERROR_INVALID_IMAGE", f"the cubin is damaged: {error}") from error


def _other_gpu(target: targets.Target, architecture: int) -> ImageError:
    return ImageError(
        "CUDA_ERROR_NO_BINARY_FOR_GPU",
        f"the cubin is for {target}, and its machine code does not run on sm_{architecture}: "
        f"compile for sm_{architecture}, or to PTX",
    )


def _ptx_of_cubin(image: bytes) -> Image:
    if not image.rstrip(b"\0").endswith(TRAILER) and (text := debug_ptx(image)):
        return Image(text.decode(), *_read_elf(image))
    image = image.rstrip(b"\0")  # the machine code, if it is all there is, is not looked at
    if not image.endswith(TRAILER) or len(image) < 16:
        raise ImageError(
            "CUDA_ERROR_NO_BINARY_FOR_GPU",
            "the cubin holds machine code for a GPU only, which the CPU device cannot run: compile to PTX, with line "
            "information (ptxas -lineinfo keeps the PTX in the cubin), or while the CPU device is in use (which keeps "
            "it, too)",
        )
    (length,) = struct.unpack_from("<Q", image, len(image) - 16)
    start = len(image) - 16 - length
    if start < 0:
        raise ValueError(f"it should have {length} bytes of PTX")
    return Image(image[start : len(image) - 16].decode(), *_read_elf(image))


# Entries of the section .nv.info: a format byte, an attribute byte, two bytes of size or value, and with this format
# that many bytes of payload. The payload of the register count is the index of the kernel's symbol and the count.
_FORMAT_SIZED = 4
_REGISTER_COUNT = 0x2F


def _read_elf(image: bytes) -> tuple[dict[str, int], int]:
    """Registers by kernel, and the sm_ number.

    Up to CUDA 12 cubins keep the registers in the upper byte of sh_info of ``.text.<kernel>``, whose other bytes are
    the index of the kernel's symbol; CUDA 13 keeps them in ``.nv.info`` by that index.
    """
    target = targets.of_cubin(image)
    sections, names_index = elf.section_headers(image)
    names = sections[names_index][4] if names_index < len(sections) else 0
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
    return registers, target.number if target else 0


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
