"""Making arrays on a device: what the methods of :class:`cupola.Device` do.

The memory is allocated, and written, in the order of a stream. A caller who names none may use the array in any stream,
so the call then waits for that order.
"""

from __future__ import annotations

from cupola.core.array import _transfer
from cupola.core.array._array import element_type, empty_on
from cupola.core.device._device import Device
from cupola.core.device._stream import stream_in_force

TYPE_CHECKING = False  # typing is slow to import
if TYPE_CHECKING:
    from typing import Any

    from cupola.core.array._array import Array
    from cupola.core.device._stream import Stream


def zeros_on(device: Device, shape: Any, dtype: Any, stream: Stream | None) -> Array:
    """See :meth:`cupola.Device.zeros`."""
    queue, wait = stream_in_force(stream)
    made = empty_on(device, shape, dtype, queue)
    if made.size:
        made.buffer.fill(0, stream=queue)
    if wait:
        queue.sync()
    return made


def full_on(device: Device, shape: Any, fill_value: Any, dtype: Any, stream: Stream | None) -> Array:
    """See :meth:`cupola.Device.full`."""
    import numpy

    value = numpy.asarray(fill_value, None if dtype is None else element_type(dtype))
    queue, wait = stream_in_force(stream)
    made = empty_on(device, shape, value.dtype, queue)
    if made.size:
        pattern = value.tobytes()
        width = next((w for w in (1, 2, 4) if pattern == pattern[:w] * (len(pattern) // w)), 0)
        if value.ndim == 0 and width:
            made.buffer.fill(pattern[:width], stream=queue)
        else:
            made.copy_from(value, stream=queue)
    if wait:
        queue.sync()
    return made


def array_on(device: Device, obj: Any, dtype: Any, stream: Stream | None) -> Array:
    """See :meth:`cupola.Device.array`."""
    queue, wait = stream_in_force(stream)
    source = _transfer.readable(obj, queue, dtype)
    made = empty_on(device, source.shape, source.dtype, queue)
    if made.size:
        _transfer.overwrite(made, source, queue)
    if wait:
        queue.sync()
    return made


def reduce_array(array: Array) -> Any:
    """Pickling: the elements travel through the host, and arrive on the device that is current there."""
    return _restore, (array.to_numpy(),)


def _restore(elements: Any) -> Array:
    device = Device()
    device.set_current()
    return device.array(elements)
