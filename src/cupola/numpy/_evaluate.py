"""Computing expressions: into new memory, into an array that is there, or into the results of a reduction.

All of it is queued in one stream, the current one. An array that was computed in another stream is waited for there.
"""

from __future__ import annotations

from typing import Any

import numpy

from cupola.core.array._array import Array, empty_on
from cupola.core.base._errors import CUDAError
from cupola.core.device._device import Device
from cupola.core.device._stream import Stream, stream_in_force
from cupola.core.launch._launch import launch
from cupola.core.launch._launch_config import LaunchConfig
from cupola.core.program._kernel import Kernel
from cupola.numpy._expression import Node, Operand, Text, structure
from cupola.numpy._kernels import BLOCK, MOST_AXES, Layout, elementwise, reduction

MOST_BLOCKS = 2048  # of one launch; their threads then take several elements
SHARE = 1 << 14  # elements of a reduction that a block takes when there are few results


# The kernels of expressions of a structure. A kernel is found by its text, too, but writing that takes longer.
_known: dict[Any, Kernel] = {}


def device() -> Device:
    """The current device, which is made current if the thread has none."""
    found = Device()
    try:
        found.context  # noqa: B018 - an error before set_current()
    except CUDAError:
        found.set_current()
    return found


def current_stream() -> Stream:
    """The stream that work is queued in: that of the innermost ``with`` block, else the default stream."""
    return stream_in_force(None)[0]


def new_memory(shape: tuple[int, ...], dtype: numpy.dtype, queue: Stream) -> Array:
    """Memory for an array in row-major order, allocated in the order of a stream."""
    return empty_on(device(), shape, dtype, queue)


def _strides_over(array: Array, shape: tuple[int, ...]) -> list[int]:
    """The strides of an array that is broadcast to a shape."""
    own = [0 if extent == 1 else stride for extent, stride in zip(array.shape, array.strides, strict=True)]
    return [0] * (len(shape) - len(own)) + own


def _collapsed(shape: tuple[int, ...], strides: list[list[int]]) -> tuple[list[int], list[list[int]]]:
    """Extents and strides with those dimensions joined that all arrays have in one piece."""
    extents: list[int] = []
    found: list[list[int]] = [[] for _ in strides]
    for axis, extent in enumerate(shape):
        if extent == 1:
            continue
        if extents and all(mine[-1] == all_of[axis] * extent for mine, all_of in zip(found, strides, strict=True)):
            extents[-1] *= extent
            for mine, all_of in zip(found, strides, strict=True):
                mine[-1] = all_of[axis]
        else:
            extents.append(extent)
            for mine, all_of in zip(found, strides, strict=True):
                mine.append(all_of[axis])
    return extents, found


def _layout(shape: tuple[int, ...], arrays: list[Array], order: tuple[int, ...] | None) -> tuple[str, int, Layout]:
    """How arrays are read in the order of a shape: a letter for each, the number of dimensions, and the layout."""
    modes = ""
    for array in arrays:
        if array.size == 1:
            modes += "1"
        elif order is None and array.shape == shape and array.is_contiguous:
            modes += "c"
        else:
            modes += "g"
    layout = Layout()
    if "g" not in modes:
        return modes, -1, layout
    strides = [_strides_over(array, shape) for array in arrays]
    if order is not None:
        shape = tuple(shape[axis] for axis in order)
        strides = [[all_of[axis] for axis in order] for all_of in strides]
    extents, strides = _collapsed(shape, strides)
    if len(extents) > MOST_AXES:
        raise NotImplementedError(
            f"an expression of arrays whose strides need {len(extents)} dimensions; at most {MOST_AXES} are computed. "
            "copy() makes an array lie in one piece"
        )
    for axis, extent in enumerate(extents):
        layout.extent[axis] = extent
        for k, all_of in enumerate(strides):
            layout.stride[k][axis] = all_of[axis]
    return modes.replace("c", "g"), len(extents), layout


def _scalars(values: list[numpy.generic]) -> list[numpy.generic]:
    """Scalars as kernels take them: a half as the float that it is computed as."""
    return [numpy.float32(value) if value.dtype.char == "e" else value for value in values]


def compute_into(target: Array, value: Operand, queue: Stream, at: tuple[Operand, ...] = (), combine: str = "") -> None:
    """Compute an expression, converted to the type of an array, into that array.

    The expression broadcasts to its shape. It must not read the array's memory in another layout than it is written.

    Parameters
    ----------
    target : Array
        What is written; a dimension that indices go through has a stride of 0.
    value : Node, Array or numpy scalar
        The elements.
    queue : Stream
        Where the work is queued.
    at : tuple
        Index, extent, stride and address of the report for each index, as in `Text.place`.
    combine : str
        How elements are combined with those that are there, ``a`` and ``b`` in CUDA C++; they are overwritten without.
    """
    if target.size == 0:
        return
    arrays: list[Array] = []
    scalars: list[numpy.generic] = []
    form = structure(value, arrays, scalars, {}) if isinstance(value, Node) and not at else None
    text = place = None
    if form is None:
        text = Text()
        result = text.converted(text.add(value), value.dtype, target.dtype)
        place = text.place(at) if at else ""
        arrays, scalars = text.arrays, text.scalars
    modes, axes, layout = _layout(target.shape, [*arrays, target], None)
    if modes[-1] == "1":
        modes = modes[:-1] + ("c" if axes < 0 else "g")
    key = (form, modes, axes, target.dtype.char, combine)
    kernel = _known.get(key) if form is not None else None
    if kernel is None:
        if text is None:
            text = Text()
            result = text.converted(text.add(value), value.dtype, target.dtype)
        kernel = elementwise(
            tuple(text.lines), result, tuple([array.dtype.char for array in text.arrays]),
            tuple([scalar.dtype.char for scalar in text.scalars]), modes, axes, target.dtype.char, place or "", combine,
        )  # fmt: skip
        if form is not None:
            _known[key] = kernel
    config = LaunchConfig(grid=min(-(-target.size // BLOCK), MOST_BLOCKS), block=BLOCK)
    launch(queue, config, kernel, target, target.size, layout, *arrays, *_scalars(scalars))


def compute(value: Node, queue: Stream) -> Array:
    """Compute an expression into new memory."""
    made = new_memory(value.shape, value.dtype, queue)
    compute_into(made, value, queue)
    return made


def reduce_into(
    target: Array,
    how: str | tuple[str, str],
    value: Operand,
    shape: tuple[int, ...],
    axes: tuple[int, ...],
    queue: Stream,
) -> None:
    """Reduce an expression over some of the dimensions of its shape.

    Parameters
    ----------
    target : Array
        In one piece, with an element for each place of the other dimensions.
    how : str
        A key of COMBINE, or what to begin with and how ``a`` and ``b`` are combined.
        The expression has the type of the target.
    value : Node, Array or numpy scalar
        What is reduced, broadcast to `shape`.
    shape : tuple of int
        Of the expression.
    axes : tuple of int
        The dimensions that go.
    queue : Stream
        Where the work is queued.
    """
    kept = [axis for axis in range(len(shape)) if axis not in axes]
    order = (*kept, *axes)
    count = 1
    for axis in axes:
        count *= shape[axis]
    results = target.size
    if results == 0:
        return
    arrays: list[Array] = []
    scalars: list[numpy.generic] = []
    form = structure(value, arrays, scalars, {}) if isinstance(value, Node) else None
    if isinstance(value, Array):
        form, arrays = (value.dtype.char,), [value]
    text = None
    if form is None:
        text = Text()
        result = text.converted(text.add(value), value.dtype, target.dtype)
        arrays, scalars = text.arrays, text.scalars
    modes, dimensions, layout = _layout(shape, arrays, None if order == tuple(range(len(shape))) else order)
    alone = results >= 1 << 16 or count <= 32
    key = (how, form, modes, dimensions, target.dtype.char, alone)
    kernel = _known.get(key) if form is not None else None
    if kernel is None:
        if text is None:
            text = Text()
            result = text.converted(text.add(value), value.dtype, target.dtype)
        types = tuple([array.dtype.char for array in text.arrays])
        kinds = tuple([scalar.dtype.char for scalar in text.scalars])
        kernel = reduction(how, tuple(text.lines), result, types, kinds, modes, dimensions, target.dtype.char, alone)
        if form is not None:
            _known[key] = kernel
    more = (layout, *arrays, *_scalars(scalars))
    if alone:
        config = LaunchConfig(grid=min(-(-results // BLOCK), MOST_BLOCKS), block=BLOCK)
        launch(queue, config, kernel, target, results, count, max(count, 1), *more)
        return
    share = count if results >= 256 else SHARE
    shares = -(-count // share)
    partial = target if shares == 1 else new_memory((results, shares), target.dtype, queue)
    config = LaunchConfig(grid=min(results * shares, 1 << 16), block=BLOCK)
    launch(queue, config, kernel, partial, results, count, share, *more)
    if shares > 1:
        reduce_into(target, how, partial, (results, shares), (1,), queue)
        partial.close(queue)
