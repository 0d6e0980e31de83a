"""The entries of a fat binary, each an image for some GPUs.

A fat binary is a header and entries, each behind a header of its own, and often compressed. ``nvcc --concat``
compresses several images as one stream, since those for different GPUs are much alike. Such an entry has the kind 0x100
and no architecture. Behind its header come the number of images and the bytes up to the end of what describes them, and
then one header for each image, in which the place of the image in the stream stands instead of the header's own size.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from functools import cache, partial

from cupola.cpu.compiler.errors import ImageError
from cupola.cpu.compiler.images.targets import Target
from cupola.cpu.compiler.records import dataclass

MAGIC = struct.pack("<I", 0xBA55ED50)
PTX, CUBIN, LTO_IR, TILE_IR = 1, 2, 8, 0x80
_SEVERAL = 0x100

# Kind, version, bytes of the header, bytes of data, bytes of that in use when compressed, where the options stand, PTX
# version (minor, major), architecture, name (offset, bytes), flags, reserved, bytes when no longer compressed.
_HEADER = struct.Struct("<HHIQIIHHIIIQQQ")
_TEXT = struct.Struct("<II")  # where a text stands, and its bytes without the closing zero
_COUNTS = struct.Struct("<II")
_LZ4, _ZSTANDARD = 0x2000, 0x8000
_LIMITED, _FAMILY = 0x100000, 0x200000
_LARGEST = 1 << 30


@dataclass(frozen=True, slots=True)
class Entry:
    """An image in a fat binary.

    Attributes
    ----------
    kind
        What it is: `PTX`, `CUBIN`, `LTO_IR`, `TILE_IR`, or another number.
    target
        The GPU that it is for. Fat binaries up to CUDA 12 do not tell the suffix.
    name
        The file that it was compiled from, or empty.
    expand
        Gives the image, decompressed.
    """

    kind: int
    target: Target
    name: str
    expand: Callable[[], bytes]


def read(image: bytes) -> Iterator[Entry]:
    """The entries of a fat binary. Nothing is decompressed.

    Raises
    ------
    ImageError
        When the fat binary is damaged.
    """
    if len(image) < 16:
        raise ImageError("CUDA_ERROR_INVALID_IMAGE", "the fat binary is cut off")
    header_size, size = struct.unpack_from("<HQ", image, 6)
    at, end = header_size, min(header_size + size, len(image))
    while at + _HEADER.size <= end:
        kind, _, own_size, padded, used, _, _, _, number, _, _, flags, _, whole = _HEADER.unpack_from(image, at)
        if own_size < _HEADER.size or at + own_size + padded > end:
            raise ImageError("CUDA_ERROR_INVALID_IMAGE", f"an entry of this fat binary, at byte {at}, is cut off")
        expand = partial(_expand, image, at, own_size, padded, used, flags, whole)
        if kind == _SEVERAL:
            try:
                yield from _several(image[at : at + own_size], cache(expand))
            except (struct.error, ValueError) as error:
                raise _damaged(at, error) from error
        else:
            yield Entry(kind, _target(number, flags), _name(image, at), expand)
        at += own_size + padded


def _several(described: bytes, stream: Callable[[], bytes]) -> Iterator[Entry]:
    """The images of one entry, of which the header with all that follows it is given."""
    count, _ = _COUNTS.unpack_from(described, _HEADER.size)
    at = _HEADER.size + _COUNTS.size
    for _ in range(count):
        kind, _, place, size, _, _, _, _, number, _, _, flags, _, _ = _HEADER.unpack_from(described, at)
        yield Entry(kind, _target(number, flags), _name(described, at), partial(_piece, stream, place, size))
        at += _header_size(described, at)


def _header_size(described: bytes, at: int) -> int:
    """The bytes of a header with its name and options, each padded to 8 bytes behind its closing zero."""
    options, _, _, _, name, name_size = struct.unpack_from("<IHHIII", described, at + 20)
    size = _HEADER.size
    if name:
        size = max(size, name + _padded(name_size + 1))
    if options:
        place, options_size = _TEXT.unpack_from(described, at + options)
        size = max(size, place + _padded(options_size + 1))
    return size


def _padded(size: int) -> int:
    return -(-size // 8) * 8


def _piece(stream: Callable[[], bytes], place: int, size: int) -> bytes:
    data = stream()[place : place + size]
    if len(data) < size:
        raise ImageError(
            "CUDA_ERROR_INVALID_IMAGE",
            f"an image of this fat binary, at byte {place} of those that are compressed together, is cut off",
        )
    return data


def _target(number: int, flags: int) -> Target:
    return Target(number, "a" if flags & _LIMITED else "f" if flags & _FAMILY else "")


def _name(image: bytes, at: int) -> str:
    place, size = struct.unpack_from("<II", image, at + 32)
    return image[at + place : at + place + size].rstrip(b"\0").decode(errors="replace") if place else ""


def _expand(image: bytes, at: int, own_size: int, padded: int, used: int, flags: int, whole: int) -> bytes:
    """The data of the entry at byte `at` of a fat binary."""
    data = image[at + own_size : at + own_size + padded]
    if not flags & (_LZ4 | _ZSTANDARD):
        return data
    from cupola.cpu.compiler.images import decompress  # most images need none of it

    expand = decompress.lz4_block if flags & _LZ4 else decompress.zstandard
    try:
        return expand(data[:used], min(whole, _LARGEST))
    except ValueError as error:
        raise _damaged(at, error) from error


def _damaged(at: int, error: Exception) -> ImageError:
    return ImageError("CUDA_ERROR_INVALID_IMAGE", f"an entry of this fat binary, at byte {at}, is damaged: {error}")
