"""Files of many small pieces, compressed: what comes with the package and is looked for by name.

A file has MAGIC, HEAD, an ENTRY for each piece in the order of names, a CHUNK for each group of pieces, and these
groups, compressed. Looking for one piece unpacks the others of its group, so like pieces should lie together.
``tools/packed.py`` writes such files.
"""

from __future__ import annotations

import functools
import lzma
import struct

MAGIC = b"cupola kernels 1\n"
HEAD = struct.Struct("<II")  # how many pieces and how many chunks there are
ENTRY = struct.Struct("<16sHII")  # a piece: its name, its chunk, and where it is in that
CHUNK = struct.Struct("<II")  # where a chunk is behind all of these
FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 9, "lc": 4, "lp": 0, "pb": 0, "dict_size": 1 << 20}]


class Packed:
    """The pieces of a file.

    Parameters
    ----------
    data : bytes
        The file.
    """

    def __init__(self, data: bytes) -> None:
        if data[: len(MAGIC)] != MAGIC:
            raise ValueError("this is no file of kernels, or one of another version of cupola: install cupola again")
        count, chunks = HEAD.unpack_from(data, len(MAGIC))
        start = len(MAGIC) + HEAD.size
        middle = start + count * ENTRY.size
        end = middle + chunks * CHUNK.size
        self._entries, self._count = data[start:middle], count
        self._chunks = list(CHUNK.iter_unpack(data[middle:end]))
        self._data = data[end:]
        self._text = functools.lru_cache(4)(self._unpacked)

    @property
    def names(self) -> set[bytes]:
        """The names of the pieces, of 16 bytes."""
        return {name for name, *_ in ENTRY.iter_unpack(self._entries)}

    def get(self, name: bytes) -> bytes | None:
        """A piece, or None."""
        first, behind = 0, self._count
        while first < behind:  # a dict of all would take a millisecond
            middle = (first + behind) // 2
            found, chunk, start, end = ENTRY.unpack_from(self._entries, middle * ENTRY.size)
            if found == name:
                return self._text(chunk)[start:end]
            if found < name:
                first = middle + 1
            else:
                behind = middle
        return None

    def _unpacked(self, chunk: int) -> bytes:
        start, end = self._chunks[chunk]
        return lzma.decompress(self._data[start:end], lzma.FORMAT_RAW, filters=FILTERS)
