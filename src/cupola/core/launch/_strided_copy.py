"""Copies between elements that lie apart, by a kernel: for :meth:`cupola.Array.copy_from`.

The kernels are PTX that comes with the package (_strided_copy.ptx), which the driver compiles: no compiler is needed.
Imported when elements that lie apart are first copied.
"""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path

from cupola.core.launch._launch import launch
from cupola.core.launch._launch_config import LaunchConfig
from cupola.core.program._object_code import ObjectCode

TYPE_CHECKING = False  # typing is slow to import
if TYPE_CHECKING:
    from typing import Any

    from cupola.core.array._array import Array
    from cupola.core.program._kernel import Kernel

_MOST = 8  # dimensions of one launch
_BLOCK = 256
_GRID = 1 << 16  # blocks at most; their threads then copy several elements


class _Layout(ctypes.Structure):
    _fields_ = [
        ("count", ctypes.c_uint64),
        ("extent", ctypes.c_int64 * _MOST),
        ("to", ctypes.c_int64 * _MOST),
        ("from_", ctypes.c_int64 * _MOST),
        ("rank", ctypes.c_int32),
    ]


@functools.cache
def _kernels() -> dict[int, Kernel]:
    code = ObjectCode.from_ptx(Path(__file__).with_name("_strided_copy.ptx").read_bytes(), name="_strided_copy.ptx")
    return {width: code.get_kernel(f"copy{width}") for width in (1, 2, 4, 8, 16)}


def copy_strided(target: Array, source: Array, stream: Any) -> None:
    """Copy the elements of an array to another one of the same shape and type, in the order of `stream`.

    Parameters
    ----------
    target, source : Array
        Of any strides. Their memory must not overlap.
    stream : Stream or GraphBuilder
        Where the kernel is queued, or recorded.
    """
    axes = collapse(target.shape, target.strides, source.strides)
    if axes is None:
        return
    width = _width(target.itemsize, (target.handle, source.handle), axes)
    if width != target.itemsize:
        axes.append((target.itemsize // width, width, width))
    if len(axes) > _MOST:
        for i in range(target.shape[0]):
            copy_strided(target[i], source[i], stream)
        return
    count = 1
    for extent, _, _ in axes:
        count *= extent
    layout = _Layout(count=count, rank=len(axes))
    for i, (extent, to, from_) in enumerate(axes):
        layout.extent[i], layout.to[i], layout.from_[i] = extent, to, from_
    config = LaunchConfig(grid=min(-(-count // _BLOCK), _GRID), block=_BLOCK)
    launch(stream, config, _kernels()[width], target, source, layout)


def collapse(shape: tuple[int, ...], one: tuple[int, ...], other: tuple[int, ...]) -> list[tuple[int, int, int]] | None:
    """The dimensions as (extent, stride, stride), with those joined that both sides have in one piece.

    Returns
    -------
    list of tuple or None
        None if there are no elements.
    """
    axes: list[tuple[int, int, int]] = []
    for extent, to, from_ in zip(shape, one, other, strict=True):
        if extent == 0:
            return None
        if extent == 1:
            continue
        if axes and axes[-1][1] == to * extent and axes[-1][2] == from_ * extent:
            axes[-1] = (axes[-1][0] * extent, to, from_)
        else:
            axes.append((extent, to, from_))
    return axes


def _width(itemsize: int, addresses: tuple[int, ...], axes: list[tuple[int, int, int]]) -> int:
    """The widest unit of 1 to 16 bytes that elements consist of and that is aligned everywhere."""
    bits = itemsize | 16
    for address in addresses:
        bits |= address
    for _, to, from_ in axes:
        bits |= to | from_
    return bits & -bits
