"""Pinned memory that messages pass through, used again when the copies out of it are done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cupola import LegacyPinnedMemoryResource

if TYPE_CHECKING:
    from cupola import Buffer, Event, Stream

SMALLEST = 4096


class Stage:
    """A piece of pinned memory. `bytes` is what the host sees of it."""

    def __init__(self, size: int) -> None:
        self.buffer: Buffer = LegacyPinnedMemoryResource().allocate(size)
        self.bytes = np.from_dlpack(self.buffer).view(np.uint8)
        self._last_use: Event | None = None

    def view(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
        """Its first bytes as an array."""
        size = dtype.itemsize * int(np.prod(shape, dtype=np.int64))
        return self.bytes[:size].view(dtype).reshape(shape)

    def is_free(self) -> bool:
        """Tell whether the device is done with it."""
        return self._last_use is None or self._last_use.is_done

    def used_by(self, queue: Stream) -> None:
        """The copies that are now in `queue` are the last that use it."""
        self._last_use = queue.record()


class Stages:
    """The pieces that a communicator has. Sizes are powers of two, so that few of them serve many messages."""

    def __init__(self) -> None:
        self._idle: dict[int, list[Stage]] = {}

    def take(self, size: int) -> Stage:
        """A piece of at least `size` bytes, which nobody else has until it is given back."""
        size = max(SMALLEST, 1 << (size - 1).bit_length()) if size else SMALLEST
        idle = self._idle.setdefault(size, [])
        for place, stage in enumerate(idle):
            if stage.is_free():
                return idle.pop(place)
        return Stage(size)

    def give_back(self, stage: Stage) -> None:
        """It may be used again, when the device is done with it."""
        self._idle.setdefault(stage.buffer.size, []).append(stage)
