"""Write pictures and animations as PNG files, with nothing but the standard library: what some examples share."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

Pixels = np.ndarray[Any, Any]


def colors(values: Pixels) -> Pixels:
    """Colors for numbers from 0 to 1: black, blue, red, yellow, white."""
    stops = np.array([(0, 0, 0), (30, 30, 140), (200, 40, 60), (250, 200, 40), (255, 255, 255)], np.float64)
    places = np.linspace(0, 1, len(stops))
    clipped = np.clip(values, 0, 1)
    return np.stack([np.interp(clipped, places, stops[:, c]) for c in range(3)], axis=-1).astype(np.uint8)


def save(path: str, *frames: Pixels, delay: float = 0.1) -> None:
    """Write a picture of bytes, (height, width) or (height, width, 3), or several as an animation."""
    height, width = frames[0].shape[:2]
    kind = 2 if frames[0].ndim == 3 else 0  # with colors, or gray
    chunks = [(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0))]
    if len(frames) > 1:
        chunks.append((b"acTL", struct.pack(">II", len(frames), 0)))
    number = 0
    for i, frame in enumerate(frames):
        if len(frames) > 1:
            about = struct.pack(">IIIIIHHBB", number, width, height, 0, 0, round(1000 * delay), 1000, 0, 0)
            chunks.append((b"fcTL", about))
            number += 1
        rows = np.ascontiguousarray(frame, np.uint8).reshape(height, -1)
        data = zlib.compress(np.hstack([np.zeros((height, 1), np.uint8), rows]).tobytes(), 6)
        chunks.append((b"IDAT", data) if i == 0 else (b"fdAT", struct.pack(">I", number) + data))
        number += i > 0
    write(path, [*chunks, (b"IEND", b"")])


def write(path: str, chunks: Sequence[tuple[bytes, bytes]]) -> None:
    """Write a PNG file of chunks, each a name and data."""
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n")
        for name, data in chunks:
            file.write(struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)))
