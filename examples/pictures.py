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


def curves(*series: Pixels, width: int = 480, height: int = 200) -> Pixels:
    """A picture of several curves on one scale, dark on white, from left to right."""
    picture = np.full((height, width, 3), 255, np.uint8)
    low, high = min(map(np.min, series)), max(map(np.max, series))
    for number, values in enumerate(series):
        there = np.interp(np.linspace(0, len(values) - 1, width), np.arange(len(values)), values)
        rows = ((height - 5) * (high - there) / (high - low or 1)).astype(int) + 1
        for column, (a, b) in enumerate(zip(rows, [*rows[1:], rows[-1]], strict=True)):
            picture[min(a, b) : max(a, b) + 2, column] = colors(np.array((number + 1) / (len(series) + 1.5)))
    return picture


def bars(values: Pixels, width: int = 512, height: int = 200) -> Pixels:
    """A picture of numbers as bars."""
    tall = np.repeat(values, max(1, width // len(values))) * (height - 5) / max(values.max(), 1)
    return np.where((np.arange(height)[::-1, None] < tall)[:, :, None], colors(tall / height * 0.7), 255).astype(
        np.uint8
    )


def points(x: Pixels, y: Pixels, values: Pixels, size: int = 400) -> Pixels:
    """A picture of points between 0 and 1, each in the color of its value."""
    picture = np.full((size, size, 3), 255, np.uint8)
    column, row = (np.clip(size * places, 0, size - 2).astype(int) for places in (x, y))
    for j, i in ((0, 0), (0, 1), (1, 0), (1, 1)):
        picture[row + j, column + i] = colors(values)
    return picture


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
