"""Memory shared with code outside: arrays over memory of somebody else, and arrays that are given to kernels."""

from __future__ import annotations

import numpy

from cupola.core.array._array import Array
from cupola.core.device._stream import Stream
from cupola.core.memory._buffer import Buffer
from cupola.numpy._ndarray import ndarray


def borrowed(
    buffer: Buffer, shape: tuple[int, ...], dtype: numpy.dtype, strides: tuple[int, ...] | None, queue: Stream
) -> ndarray:
    """An array over a Buffer that others may write at any time: expressions of it are computed at once.

    Parameters
    ----------
    buffer : Buffer
        Begins at the first element, and has all of them.
    shape : tuple of int
        Extents.
    dtype : numpy.dtype
        Of elements.
    strides : tuple of int, optional
        In bytes; by default those of the row-major order.
    queue : Stream
        In which the elements are.

    Returns
    -------
    ndarray
    """
    made = ndarray.__new__(ndarray)
    made._describe(shape, dtype)
    made._node, made._stream = None, queue
    made._settle(buffer)
    if strides is not None and strides != made.strides:
        made = made._view_of(shape, strides)
    made._join(queue, True)
    made._lend()
    return made


def handed_over(array: ndarray, queue: Stream) -> Array:
    """The array as the argument of a kernel that is launched in a stream next, which may read and write it."""
    array._before_writing()
    array._compute_now()
    array._join(queue, True)
    array._stream = queue
    return array._plain()
