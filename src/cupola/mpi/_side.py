"""One buffer of a message, on its way between the device and MPI.

What mpi4py calls a buffer specification is an array, or a list of one with counts, displacements and an MPI type. MPI
gets the same specification with memory that it can use in the array's place: the array itself where it lies on the host
or where MPI takes device memory, and otherwise pinned memory with the same shape and type.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from mpi4py import MPI

from cupola import Array, Buffer
from cupola.core.array._transfer import readable

if TYPE_CHECKING:
    from cupola import Stream

    from ._staging import Stages

# Takes memory for a message, of the shape and type given: the memory, and what gives it back.
Taker = Callable[[tuple[int, ...], "np.dtype[Any]"], tuple[Any, Callable[[], None]]]


def is_of_device(memory: object) -> bool:
    """Tell whether MPI could read it with a library for CUDA only."""
    if isinstance(memory, Buffer):
        return not memory.is_host_accessible
    if isinstance(memory, Array):
        return memory.device_id >= 0
    if hasattr(memory, "__cuda_array_interface__"):
        return True
    return hasattr(memory, "__dlpack_device__") and memory.__dlpack_device__()[0] == 2  # kDLCUDA


class Side:
    """A buffer specification, and what has to be done before and after MPI uses it.

    Parameters
    ----------
    spec : buffer specification
        As mpi4py has them, with arrays of any device.
    reads, writes : bool
        What MPI does with the memory.
    """

    def __init__(self, spec: Any, *, reads: bool, writes: bool) -> None:
        self.reads, self.writes = reads, writes
        self._listed = isinstance(spec, (list, tuple))
        memory, self._rest = (spec[0], list(spec[1:])) if self._listed and spec else (spec, [])
        self._memory = memory
        self._array: Array | None = None
        self._stand_in: np.ndarray | None = None
        self._give_back: Callable[[], None] | None = None
        is_memory = memory is not None and memory is not MPI.BOTTOM and memory is not MPI.IN_PLACE
        self.is_of_device = is_memory and is_of_device(memory)
        # Pinned and managed memory: MPI takes it as it is, when the device is done with it.
        self.is_shared = not self.is_of_device and isinstance(memory, (Array, Buffer))
        if writes and len(self._rest) > 1:
            self.reads = True  # there may be gaps between the parts, which keep what they have

    def begin(self, queue: Stream, stages: Stages, by_address: bool) -> Any:
        """The specification for MPI, which may use it when `queue` has come to here.

        Parameters
        ----------
        queue : Stream
        stages : Stages
        by_address : bool
            Whether MPI takes device memory for this.
        """
        if self.is_shared:
            return self._with(np.asarray(self._memory))
        if not self.is_of_device:
            return self._with(self._memory)
        array = self._array = as_array(self._memory, queue)
        if by_address and array.is_contiguous:
            return self._with(array)
        stage = stages.take(array.nbytes, queue)
        self._give_back = partial(stages.give_back, stage, queue)
        self._stand_in = stage.view(array.shape, array.dtype)
        if self.reads:
            array.copy_to(self._stand_in, stream=queue)
        return self._with(self._stand_in)

    def end(self, queue: Stream, received: int | None) -> None:
        """Copy what has come to the device, in the order of `queue`.

        Parameters
        ----------
        received : int, optional
            How many bytes of it there are, where a message may be shorter than the memory for it.
        """
        array, stand_in = self._array, self._stand_in
        if array is None or stand_in is None:
            return
        if self.writes and array.size:
            if received is None or received >= array.nbytes:
                array.copy_from(stand_in, stream=queue)
            elif received:
                count = -(-received // array.itemsize)
                self._copy_first(array, stand_in, count, queue)
        self.release()

    def _copy_first(self, array: Array, stand_in: np.ndarray, count: int, queue: Stream) -> None:
        if array.is_contiguous:
            array.reshape(-1)[:count].copy_from(stand_in.reshape(-1)[:count], stream=queue)
            return
        # Elements that lie apart: the rest keeps what it has, which is copied there and back.
        came = stand_in.reshape(-1)[:count].copy()
        stand_in[...] = array.to_numpy(stream=queue)
        stand_in.reshape(-1)[:count] = came
        array.copy_from(stand_in, stream=queue)

    def release(self) -> None:
        """Give the pinned memory back; its last use is in the queue."""
        if self._give_back is not None:
            self._give_back()
            self._give_back = None
            self._stand_in = None

    def _with(self, memory: Any) -> Any:
        return [memory, *self._rest] if self._listed else memory


def as_array(memory: Any, queue: Stream) -> Array:
    """Device memory of any kind, with a type and a shape; a Buffer is of bytes."""
    if isinstance(memory, Array):
        return memory
    if isinstance(memory, Buffer):
        return Array.from_buffer(memory, memory.size, np.uint8)
    found = readable(memory, queue)
    assert isinstance(found, Array)
    return found
