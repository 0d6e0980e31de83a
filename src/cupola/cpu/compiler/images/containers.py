"""What an image of device code contains: PTX text, a cubin with its PTX behind it, or a fat binary of such."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from cupola.cpu.compiler.errors import ImageError

TRAILER = b"cupolaPT"
"""Ends a cubin made for the CPU device: the PTX, its length as a u64, and this."""

_ELF = b"\x7fELF"
_FATBIN = struct.pack("<I", 0xBA55ED50)
_CUDA_MACHINE = 190


@dataclass(slots=True)
class Image:
    """The PTX of an image, and the registers a thread of each kernel takes on a GPU (from the cubin)."""

    ptx: str
    registers: dict[str, int] = field(default_factory=dict)
    architecture: int = 0


def open_image(image: bytes) -> Image:
    """Find the PTX in an image that is not a fat binary (for those see `unpack`).

    Raises
    ------
    ImageError
        When the image has no PTX, such as a cubin that was made for a GPU only.
    """
    if image.startswith(_ELF):
        return _open_cubin(image)
    text = image.partition(b"\0")[0]
    try:
        return Image(text.decode())
    except UnicodeDecodeError as error:
        raise ImageError("CUDA_ERROR_INVALID_IMAGE", f"the image is neither PTX text nor a cubin: {error}") from error


def make_cubin(ptx: str, architecture: int) -> bytes:
    """An ELF image of no sections with PTX behind it, as image.h of the driver has it."""
    ident = b"\x7fELF\x02\x01\x01\x33".ljust(16, b"\0")
    head = ident + struct.pack("<HHIQQQIHHHHHH", 2, _CUDA_MACHINE, 1, 0, 0, 0, architecture, 64, 56, 0, 64, 0, 0)
    text = ptx.encode()
    size = struct.pack("<Q", len(text))
    return head + TRAILER + size + text + size + TRAILER


# ---- fat binaries ---------------------------------------------------------------------------------------------------

# An entry: kind, version, bytes of its header, bytes of its data, bytes of that in use when compressed, options, PTX
# version (minor, major), architecture, name (offset, bytes), flags, reserved, bytes when no longer compressed.
_ENTRY = struct.Struct("<HHIQIIHHIIIQQQ")
_KIND_PTX, _KIND_CUBIN = 1, 2
_LZ4, _ZSTANDARD = 0x2000, 0x8000
_LARGEST = 1 << 30
_TARGET = re.compile(rb"\.target\s+(?:sm|compute)_(\d+)([af]?)")


def unpack(image: bytes, architecture: int) -> bytes:
    """The entry of a fat binary that the CPU device runs: a cubin with its PTX behind it, or else the newest PTX.

    That may be in a cubin as well (`debug_ptx`). Of two for the same architecture, the entry of PTX is taken, because
    it has the lines of the source.

    Parameters
    ----------
    image
        Any image; one that is not a fat binary is returned.
    architecture
        The number of the modeled GPU, 90 for sm_90. What is for others is not taken.

    Raises
    ------
    ImageError
        When no entry fits, saying which there are.

    Notes
    -----
    Only what may run is decompressed: fat binaries of large libraries have machine code for many GPUs.
    """
    if not image.startswith(_FATBIN):
        return image
    best: tuple[tuple[bool, int, bool], bytes] | None = None
    described = []
    for kind, number, expand in _entries(image):
        made_here = False
        if kind == _KIND_CUBIN:
            described.append(f"a cubin for sm_{number}")
            if number // 10 != architecture // 10 or number > architecture:
                continue
            data = expand()
            made_here = data.endswith(TRAILER)
            runs = made_here or debug_ptx(data) is not None
            if not runs:
                described[-1] += " without its PTX"
        elif kind == _KIND_PTX:
            described.append(f"PTX for sm_{number}")
            if number > architecture:
                continue
            data = expand().rstrip(b"\0")
            runs = _runs_on(data, architecture)
        else:
            described.append(f"something else for sm_{number}")
            continue
        rank = (made_here, number, kind == _KIND_PTX)
        if runs and (best is None or rank > best[0]):
            best = (rank, data)
    if best is None:
        raise ImageError(
            "CUDA_ERROR_NO_BINARY_FOR_GPU",
            f"this fat binary has {', '.join(described) or 'nothing'}; the CPU device, here modeling "
            f"sm_{architecture}, runs PTX, for it or for older ones: build it with "
            f"-gencode arch=compute_{architecture},code=compute_{architecture} as well",
        )
    return best[1]


def name_of(image: bytes) -> str:
    """The name of the file that a fat binary was compiled from, as its first entry has it; empty if it has none."""
    if len(image) < 16 + _ENTRY.size:
        return ""
    (start,) = struct.unpack_from("<H", image, 6)
    if start + _ENTRY.size > len(image):
        return ""
    entry = _ENTRY.unpack_from(image, start)
    name = image[start + entry[9] : start + entry[9] + entry[10]] if entry[9] else b""
    return name.rstrip(b"\0").decode(errors="replace")


def _runs_on(ptx: bytes, architecture: int) -> bool:
    match = _TARGET.search(ptx)
    if not match:
        return True  # the compiler says what is wrong with it
    number = int(match[1])
    if match[2] == b"a":
        return number == architecture
    return number <= architecture and (match[2] != b"f" or number // 10 == architecture // 10)


def _entries(image: bytes) -> list[tuple[int, int, Callable[[], bytes]]]:
    """Kind and architecture of each entry, and a function that gives its data, decompressed."""
    found: list[tuple[int, int, Callable[[], bytes]]] = []
    if len(image) < 16:
        raise ImageError("CUDA_ERROR_INVALID_IMAGE", "the fat binary is cut off")
    header_size, size = struct.unpack_from("<HQ", image, 6)
    at, end = header_size, min(header_size + size, len(image))
    while at + _ENTRY.size <= end:
        kind, _, own_size, padded, used, _, _, _, number, _, _, flags, _, whole = _ENTRY.unpack_from(image, at)
        if own_size < _ENTRY.size or at + own_size + padded > end:
            raise ImageError("CUDA_ERROR_INVALID_IMAGE", f"an entry of this fat binary, at byte {at}, is cut off")
        found.append((kind, number, partial(_expand, image, at, own_size, padded, used, flags, whole)))
        at += own_size + padded
    return found


def _expand(image: bytes, at: int, own_size: int, padded: int, used: int, flags: int, whole: int) -> bytes:
    """The data of the entry at byte `at` of a fat binary."""
    data = image[at + own_size : at + own_size + padded]
    if not flags & (_LZ4 | _ZSTANDARD):
        return data[: data.rfind(TRAILER) + len(TRAILER)] if TRAILER in data else data
    from cupola.cpu.compiler.images import decompress  # most images need none of it

    expand = decompress.lz4_block if flags & _LZ4 else decompress.zstandard
    try:
        return expand(data[:used], min(whole, _LARGEST))
    except ValueError as error:
        raise ImageError(
            "CUDA_ERROR_INVALID_IMAGE", f"an entry of this fat binary, at byte {at}, is damaged: {error}"
        ) from error


# ---- cubins ---------------------------------------------------------------------------------------------------------


def debug_ptx(image: bytes) -> bytes | None:
    """The PTX that a cubin was made of, if its maker has put it there: ``ptxas -lineinfo`` does, and so do Triton and
    cuTile. A zero ends each of its lines. What may stand behind it is the source that the PTX was made of, not PTX."""
    if _DEBUG_PTX not in image:
        return None
    try:
        sections = _sections(image)
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


_SECTION = struct.Struct("<IIQQQQIIQQ")


def section_headers(image: bytes) -> tuple[list[tuple[int, ...]], int]:
    """The fields of the section headers of a 64-bit ELF file, and which section has their names.

    Raises
    ------
    struct.error
        When they are not inside the file.
    """
    (table,) = struct.unpack_from("<Q", image, 40)
    size, count, names_index = struct.unpack_from("<HHH", image, 58)
    return [_SECTION.unpack_from(image, table + index * size) for index in range(count)], names_index


def _sections(image: bytes) -> dict[bytes, bytes]:
    rows, names_index = section_headers(image)
    names = rows[names_index][4]
    found = {}
    for name, _, _, _, start, length, *_ in rows:
        found[image[names + name : image.index(b"\0", names + name)]] = image[start : start + length]
    return found


def _open_cubin(image: bytes) -> Image:
    if not image.rstrip(b"\0").endswith(TRAILER) and (text := debug_ptx(image)):
        try:
            return Image(text.decode(), *_read_elf(image))
        except (struct.error, ValueError, OverflowError) as error:
            raise ImageError("CUDA_ERROR_INVALID_IMAGE", f"the cubin is damaged: {error}") from error
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
    try:
        if start < 0:
            raise ValueError(f"it should have {length} bytes of PTX")
        return Image(image[start : len(image) - 16].decode(), *_read_elf(image))
    except (struct.error, ValueError, OverflowError) as error:
        raise ImageError("CUDA_ERROR_INVALID_IMAGE", f"the cubin is damaged: {error}") from error


# Entries of the section .nv.info: a format byte, an attribute byte, two bytes of size or value, and with this format
# that many bytes of payload. The payload of the register count is the index of the kernel's symbol and the count.
_FORMAT_SIZED = 4
_REGISTER_COUNT = 0x2F


# In the head of an ELF image: the byte with the version of the ABI, which tells where the flags have the architecture.
_ABI_VERSION, _ABI_OF_CUDA_13 = 8, 8


def _read_elf(image: bytes) -> tuple[dict[str, int], int]:
    """Registers by kernel, and the sm_ number.

    Up to CUDA 12 cubins keep the registers in the upper byte of sh_info of ``.text.<kernel>``, whose other bytes are
    the index of the kernel's symbol; CUDA 13 keeps them in ``.nv.info`` by that index.
    """
    (flags,) = struct.unpack_from("<I", image, 48)
    sections, names_index = section_headers(image)
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
    return registers, (flags >> 8 if image[_ABI_VERSION] >= _ABI_OF_CUDA_13 else flags) & 0xFF


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
