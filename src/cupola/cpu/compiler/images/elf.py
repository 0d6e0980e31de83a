"""The sections of a 64-bit ELF file, as cubins are."""

from __future__ import annotations

import struct

MAGIC = b"\x7fELF"
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


def sections(image: bytes) -> dict[bytes, bytes]:
    """The contents of the sections, by their names.

    Raises
    ------
    struct.error, ValueError, IndexError
        When the headers lead out of the file.
    """
    rows, names_index = section_headers(image)
    names = rows[names_index][4] if rows else 0
    contents = {}
    for name, _, _, _, start, length, *_ in rows:
        contents[image[names + name : image.index(b"\0", names + name)]] = image[start : start + length]
    return contents
