"""What _lazy.pyx asks for: the kernel of an expression that has none yet, and the current device.

Work is queued in one stream, the current one, which waits for other streams that use the same memory.
"""

from __future__ import annotations

from typing import Any

import numpy

from cupola.core.base._errors import CUDAError
from cupola.core.device._device import Device
from cupola.core.device._stream import Stream, stream_in_force
from cupola.core.program._kernel import Kernel
from cupola.numpy import _kernels, _lazy
from cupola.numpy._expression import Operand, Text

MOST_BLOCKS = 2048  # of one launch; their threads then take several elements


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


def elementwise(
    value: Operand, to: numpy.dtype, at: tuple[Operand, ...] | None, combine: str, modes: str, axes: int, wide: bool
) -> Kernel:
    """The kernel of an expression; the arguments are those of `_lazy.compute_into`, how arrays lie, and if many."""
    text = Text()
    result = text.converted(text.add(value), value.dtype, to)
    place = text.place(at) if at else ""
    return _kernels.elementwise(tuple(text.lines), result, *_types(text), modes, axes, to.char, place, combine, wide)


def reduction(
    how: Any, value: Operand, to: numpy.dtype, modes: str, kept: int, axes: int, sharing: int, wide: bool
) -> Kernel:
    """The kernel of a reduction of an expression."""
    text = Text()
    result = text.converted(text.add(value), value.dtype, to)
    return _kernels.reduction(how, tuple(text.lines), result, *_types(text), modes, kept, axes, to.char, sharing, wide)


def _types(text: Text) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return tuple([array.dtype.char for array in text.arrays]), tuple([scalar.dtype.char for scalar in text.scalars])


_lazy.use(elementwise=elementwise, reduction=reduction, first_device=device, product=_kernels.product)
