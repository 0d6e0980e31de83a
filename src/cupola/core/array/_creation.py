"""Making arrays on a device: what the methods of :class:`cupola.Device` do.

The memory is allocated, and written, in the order of a stream. A caller who names none may use the array in any stream,
so the call then waits for that order. The context of the device is current, whatever device the caller's thread has.
"""

from __future__ import annotations

from cupola.core.array import _transfer
from cupola.core.array._array import element_type, empty_on
from cupola.core.device._device import Device
from cupola.core.device._stream import Stream, stream_in_force

TYPE_CHECKING = False  # typing is slow to import
if TYPE_CHECKING:
    from typing import Any

    from cupola.core.array._array import Array


def _queue(device: Device, stream: Stream | None) -> tuple[Any, bool]:
    """The stream of a call, and whether it must wait. One that is only in force may be of another device."""
    queue, wait = stream_in_force(stream)
    if stream is None and isinstance(queue, Stream) and not wait and queue.device.device_id != device.device_id:
        queue.sync()  # what the elements are taken from may be its work
        return device.default_stream, True
    return queue, wait


def zeros_on(device: Device, shape: Any, dtype: Any, stream: Stream | None) -> Array:
    """See :meth:`cupola.Device.zeros`."""
    queue, wait = _queue(device, stream)
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
    queue, wait = _queue(device, stream)
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
    queue, wait = _queue(device, stream)
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
