"""The tensor maps that recorded forms may use, by name. Change nothing here without recording again.

A map lies in device memory, in front of its tensor: 128 bytes of map, 128 of room for another, then the tensor, which
holds the numbers 0, 1, 2, ... as 32-bit words, or floating numbers of all kinds.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cupola.bindings import driver
from tests.cpu.driver.calls import ok
from tests.ptx.oracle import BF16, F16, F32, F64, Format, floats

TYPES = ["u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f64", "bf16", "f32ftz", "tf32", "tf32ftz"]
SIZES = dict(zip(TYPES, (1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4), strict=True))
FORMATS: dict[str, Format] = {"f16": F16, "bf16": BF16, "f64": F64}
FORMATS |= dict.fromkeys(("f32", "f32ftz", "tf32", "tf32ftz"), F32)
FRONT = 256
"""Bytes in front of the tensor."""

LEAST = 4096
"""Bytes that forms may read of any tensor."""


@dataclass(frozen=True)
class Map:
    """A tensor map; extents and so on begin with the innermost dimension, as the driver has them.

    ``strides`` are in bytes, those of a dense tensor unless given. ``box`` is for tiles; ``lower``, ``upper``,
    ``channels`` and ``pixels`` are for images.
    """

    type: str
    dims: Sequence[int]
    box: Sequence[int] = ()
    strides: Sequence[int] = ()
    steps: Sequence[int] = ()
    interleave: int = 0
    swizzle: int = 0
    nan: bool = False
    floats: bool = False
    lower: Sequence[int] = ()
    upper: Sequence[int] = ()
    channels: int = 0
    pixels: int = 0
    room: int = 0
    """Bytes of the tensor, if it is more than its extents say."""

    def all_strides(self) -> list[int]:
        if self.strides:
            return list(self.strides)
        found = [SIZES[self.type]]
        for extent in self.dims:
            found.append(found[-1] * extent)
        return found[1 : len(self.dims)] or [16]  # the driver wants some, also when there are none

    def data(self) -> np.ndarray:
        """The bytes of the tensor."""
        strides = [SIZES[self.type], *self.all_strides()][: len(self.dims)]
        reach = sum((extent - 1) * stride for extent, stride in zip(self.dims, strides, strict=True))
        size = max(self.room, reach + strides[0], LEAST)
        size = -(-size // 16) * 16
        if not self.floats:
            return np.arange(size // 4, dtype=np.uint32).view(np.uint8)
        f = FORMATS[self.type]
        width = SIZES[self.type]
        rng, edges = random.Random(f"tensor {self.type}"), floats(f)
        drawn = [rng.choice(edges) if rng.random() < 0.6 else rng.getrandbits(8 * width) for _ in range(size // width)]
        return np.frombuffer(b"".join(value.to_bytes(width, "little") for value in drawn), np.uint8)

    def encode(self, address: int) -> bytes:
        """The 128 bytes, for a tensor at an address."""
        rank = len(self.dims)
        first = (TYPES.index(self.type), rank, address, list(self.dims), self.all_strides())
        steps = list(self.steps) or [1] * rank
        last = (steps, self.interleave, self.swizzle, 0, int(self.nan))
        if self.box:
            encoded = driver.cuTensorMapEncodeTiled(*first, list(self.box), *last)
        else:
            images = (list(self.lower), list(self.upper), self.channels, self.pixels)
            encoded = driver.cuTensorMapEncodeIm2col(*first, *images, *last)
        return b"".join(int(word).to_bytes(8, "little") for word in ok(encoded).opaque)


_FLOATS = [name for name in TYPES if name in FORMATS]

# Tensors of images, by rank: channels, W, then H, D, and N.
_IMAGES = {3: (16, 9, 3), 4: (16, 6, 5, 3), 5: (16, 5, 4, 3, 2)}


def _image(rank: int, lower: Sequence[int], upper: Sequence[int], **words: object) -> Map:
    given = {"channels": 16, "pixels": 32, **words}
    return Map("u16", _IMAGES[rank], lower=lower, upper=upper, **given)  # type: ignore[arg-type]


MAPS: dict[str, Map] = {
    # Tiles of all ranks, of 1024 to 1536 bytes.
    "1d": Map("u32", (1000,), (256,)),
    "2d": Map("u32", (44, 37), (16, 16)),
    "3d": Map("u32", (20, 11, 9), (8, 8, 4)),
    "4d": Map("u32", (12, 7, 5, 6), (8, 4, 3, 3)),
    "5d": Map("u32", (12, 7, 5, 4, 3), (8, 4, 3, 2, 2)),
    "padded": Map("u16", (17, 9, 3), (24, 4, 4), strides=(48, 480)),
    "narrow": Map("u8", (33, 40), (16, 128), strides=(48,)),
    "overlapping": Map("u32", (16, 8, 8), (8, 8, 8), strides=(16, 32), room=1024),
    # Types; floating numbers of all kinds; and what is filled in outside.
    **{f"of_{name}": Map(name, (96 // SIZES[name], 9), (64 // SIZES[name], 8)) for name in TYPES},
    **{f"floats_{t}": Map(t, (128 // SIZES[t], 16), (128 // SIZES[t], 16), floats=True) for t in _FLOATS},
    **{f"nan_{name}": Map(name, (96 // SIZES[name], 9), (64 // SIZES[name], 8), nan=True) for name in _FLOATS},
    # Swizzles, with rows of all lengths.
    **{
        f"swizzle{32 << number - 1}_{row}": Map("u32", (40, 24), (row // 4, 16), swizzle=number)
        for number, rows in ((1, (16, 32)), (2, (32, 48, 64)), (3, (16, 48, 80, 128)))
        for row in rows
    },
    "swizzle64_3d": Map("u16", (40, 12, 6), (32, 6, 3), swizzle=2),
    "swizzle128_3d": Map("u16", (72, 12, 6), (64, 5, 3), swizzle=3),
    "swizzle128_u8": Map("u8", (160, 24), (128, 16), swizzle=3),
    # Interleaved layouts: slices of channels.
    **{
        f"slices{16 * number}_{swizzle}_{rank}d": Map(
            "u16",
            (20, 7, 5, 4, 3)[:rank],
            ((16 * number if rank == 3 else 16), 4, 3, 2)[:rank] if rank < 5 else (8, 2, 3, 2, 2),
            strides=(1 << 9, 1 << 12, 1 << 14, 1 << 16)[: rank - 1],
            interleave=number,
            swizzle=swizzle,
            room=1 << 18,
        )
        for number, swizzles in ((1, (0, 1, 2, 3)), (2, (1,)))
        for swizzle in swizzles
        for rank in (3, 4, 5)
    },
    **{
        f"slices{16 * number}_{extent}": Map(
            "u16",
            (44, 7, 5),
            (extent, 4, 3),
            strides=(1 << 9, 1 << 12),
            interleave=number,
            swizzle=number - 1,
            room=1 << 18,
        )
        for number in (1, 2)
        for extent in (8, 24, 40)
    },
    "slices16_u8": Map(
        "u8", (44, 7, 5), (32, 4, 3), strides=(1 << 9, 1 << 12), interleave=1, room=1 << 18
    ),
    "slices16_steps": Map(
        "u16", (44, 7, 5), (16, 4, 4), strides=(1 << 9, 1 << 12), steps=(2, 3, 2), interleave=1, room=1 << 18
    ),
    # Steps.
    "steps_2d": Map("u32", (44, 37), (16, 15), steps=(1, 2)),
    "steps_first": Map("u32", (44, 37), (16, 15), steps=(3, 1)),
    "steps_3d": Map("u16", (24, 19, 11), (16, 8, 7), steps=(1, 3, 8)),
    "steps_swizzled": Map("u16", (24, 30), (16, 20), steps=(1, 2), swizzle=1),
    # Images.
    "image_3d": _image(3, (-1,), (-1,)),
    "image_4d": _image(4, (-1, -1), (-1, -1)),
    "image_5d": _image(5, (-1, -1, -1), (-1, -1, -1)),
    "image_whole": _image(4, (0, 0), (0, 0), channels=8),
    "image_wide": _image(4, (-2, -1), (1, 0), pixels=20, swizzle=1),
    "image_small": _image(4, (1, 2), (-3, -1), pixels=7, channels=24),
    "image_steps": _image(4, (-1, -1), (0, 0), steps=(1, 2, 3, 1)),
    "image_steps_5d": _image(5, (-1, 0, -1), (0, -1, 0), steps=(2, 2, 1, 2, 2)),
    "image_nan": Map("f16", _IMAGES[4], lower=(-1, -1), upper=(0, 0), channels=16, pixels=32, nan=True),
    "image_slices16": Map(
        "u16", (20, 5, 4, 3), lower=(-1, -1), upper=(-1, 0), channels=16, pixels=16,
        strides=(1 << 9, 1 << 12, 1 << 14), interleave=1, room=1 << 18,
    ),
    "image_slices32": Map(
        "u16", (36, 5, 4, 3), lower=(-1, -1), upper=(-1, 0), channels=32, pixels=16,
        strides=(1 << 9, 1 << 12, 1 << 14), interleave=2, swizzle=1, room=1 << 18,
    ),
    "to_image_3d": Map("u16", (16, 9, 3), lower=(0,), upper=(-1,), channels=16, pixels=32),
    "to_image_4d": Map("u16", (16, 6, 5, 3), lower=(0, 0), upper=(-1, -1), channels=8, pixels=32),
    "to_image_steps": Map("u16", (16, 6, 5, 3), lower=(0, 0), upper=(0, 0), channels=8, pixels=16, steps=(1, 2, 3, 1)),
    "to_image_f16": Map("f16", (16, 6, 5, 3), lower=(0, 0), upper=(0, 0), channels=16, pixels=32),
    # Reductions.
    **{f"sum_{t}": Map(t, (64 // SIZES[t], 9), (64 // SIZES[t], 8), floats=t in FORMATS) for t in TYPES},
}  # fmt: skip
