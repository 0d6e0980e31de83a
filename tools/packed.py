"""Write the files that cupola._packed reads."""

from __future__ import annotations

import lzma
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from cupola._packed import CHUNK, ENTRY, FILTERS, HEAD, MAGIC

CHUNK_BYTES = 1 << 18  # what one look takes some milliseconds to unpack


def packed(pieces: Mapping[bytes, bytes], chunk_bytes: int = CHUNK_BYTES) -> bytes:
    """The file of these pieces. Those of about the same length are alike, and packed together."""
    entries, chunks, compressed, texts = [], [], [], [b""]
    for name, piece in sorted(pieces.items(), key=lambda one: (len(one[1]), one[1])):
        if len(texts[-1]) > chunk_bytes:
            texts.append(b"")
        entries.append((name, len(texts) - 1, len(texts[-1]), len(texts[-1]) + len(piece)))
        texts[-1] += piece
    at = 0
    for text in texts:
        data = lzma.compress(text, lzma.FORMAT_RAW, filters=FILTERS)
        chunks.append(CHUNK.pack(at, at + len(data)))
        compressed.append(data)
        at += len(data)
    packed_entries = [ENTRY.pack(*entry) for entry in sorted(entries)]
    return b"".join([MAGIC, HEAD.pack(len(entries), len(chunks)), *packed_entries, *chunks, *compressed])


def write(path: Path, data: bytes) -> None:
    """Replace a file, whole or not at all."""
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        file.write(data)
    Path(file.name).chmod(0o644)
    os.replace(file.name, path)
