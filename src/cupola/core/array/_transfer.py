"""Copies between arrays of any layout, and to and from the host.

Elements in one piece are copied by the driver. Where they lie apart, the host gathers those in its memory with NumPy,
and a kernel those in the device's (``above("copy_strided")``). Between the two there is then a piece of device memory
that has them in row-major order, allocated and released in the order of the stream.
"""

from __future__ import annotations

from cupola._above import above
from cupola.core.array._array import Array, element_type, new_array
from cupola.core.base._errors import CUDAError
from cupola.core.device._device import Device
from cupola.core.device._stream import Stream, stream_in_force
from cupola.core.exchange._view import StridedMemoryView
from cupola.core.memory._buffer import Buffer

TYPE_CHECKING = False  # typing is slow to import
if TYPE_CHECKING:
    from typing import Any

    import numpy as np


def readable(obj: Any, queue: Stream, dtype: Any = None) -> Array | np.ndarray:
    """What is to be copied, as an Array or a NumPy array; `queue` waits for what is making it."""
    import numpy

    if not isinstance(obj, (Array, numpy.ndarray)) and _is_on_device(obj):
        obj = _array_of(StridedMemoryView.from_any_interface(obj, stream_ptr=int(_stream_of(queue).handle)))
    if isinstance(obj, Array):
        if dtype is not None and element_type(dtype) != obj.dtype:
            raise TypeError(
                f"the array is of {obj.dtype}, not {element_type(dtype)}: device memory is copied without conversion"
            )
        return obj
    found = numpy.asarray(obj, None if dtype is None else element_type(dtype))
    element_type(found.dtype)
    return found


def _is_on_device(obj: Any) -> bool:
    if hasattr(obj, "__cuda_array_interface__"):
        return True
    return hasattr(obj, "__dlpack_device__") and obj.__dlpack_device__()[0] != 1  # kDLCPU


def _array_of(view: StridedMemoryView) -> Array:
    """A view of another library's array, as an Array that keeps it."""
    if view.dtype is None:
        raise TypeError("the array does not say the type of its elements")
    size = view.dtype.itemsize
    shape, strides = view.shape, view.strides
    if 0 in shape or strides is None:
        strides_in_bytes, low, high = None, 0, size * view.size
    else:
        strides_in_bytes = tuple(size * stride for stride in strides)
        reach = [(extent - 1) * stride for extent, stride in zip(shape, strides_in_bytes, strict=True)]
        low, high = sum(r for r in reach if r < 0), sum(r for r in reach if r > 0) + size
    memory = Buffer.from_handle(view.ptr + low, high - low, owner=view)
    return Array.from_buffer(memory, shape, view.dtype, strides=strides_in_bytes, offset=-low)


def _stream_of(queue: Any) -> Stream:
    return queue if isinstance(queue, Stream) else queue.stream


def _piece(array: Array) -> Buffer:
    """The memory of an array in one piece."""
    if array.nbytes == array.buffer.size:
        return array.buffer
    return Buffer.from_handle(array.handle, array.nbytes, owner=array.buffer)


def _between(array: Array, queue: Any) -> Array:
    """Device memory for the elements of `array` in row-major order, allocated in the order of `queue`."""
    if not isinstance(queue, Stream):
        raise ValueError(
            "elements that lie apart are copied between host and device by way of memory that a graph cannot have: "
            "record the copy of an array in one piece"
        )
    resource = array.buffer.memory_resource
    if resource is None or not resource.is_device_accessible:
        resource = queue.device.memory_resource
    return new_array(Array, resource.allocate(array.nbytes, stream=queue), array.shape, array.dtype)


def overwrite(target: Array, source: Array | np.ndarray, queue: Any) -> None:
    """Copy elements of one type and shape."""
    if isinstance(source, Array):
        if target.is_contiguous and source.is_contiguous:
            _piece(target).copy_from(_piece(source), stream=queue)
        elif _overlap(target, source):
            with _between(source, queue) as packed:
                above("copy_strided")(packed, source, queue)
                above("copy_strided")(target, packed, queue)
        else:
            above("copy_strided")(target, source, queue)
    elif target.is_contiguous:
        _piece(target).copy_from(source, stream=queue)
    else:
        with _between(target, queue) as packed:
            packed.buffer.copy_from(source, stream=queue)
            above("copy_strided")(target, packed, queue)


def _overlap(one: Array, other: Array) -> bool:
    low, high = (one.handle + place for place in one._bounds())
    from_, to = (other.handle + place for place in other._bounds())
    return low < to and from_ < high


def copy_to_array(target: Array, src: Any, stream: Any) -> None:
    """See :meth:`Array.copy_from`."""
    queue, wait = stream_in_force(stream)
    if isinstance(src, (bool, int, float, complex)):
        source = readable(src, queue, target.dtype)
    else:
        source = readable(src, queue)
    if source.dtype != target.dtype:
        raise TypeError(
            f"the source is of {source.dtype}, the array of {target.dtype}: elements are copied without conversion"
            + ("" if isinstance(source, Array) else f"; convert them first, source.astype({str(target.dtype)!r})")
        )
    source = _broadcast(source, target.shape)
    if target.size:
        overwrite(target, source, queue)
    if wait:
        queue.sync()


def _broadcast(source: Any, shape: tuple[int, ...]) -> Any:
    if source.shape == shape:
        return source
    missing = len(shape) - source.ndim
    if missing < 0 or any(
        mine not in (1, wanted) for mine, wanted in zip(source.shape, shape[max(missing, 0) :], strict=True)
    ):
        raise ValueError(f"a source of shape {source.shape} cannot be broadcast to the shape {shape}")
    if not isinstance(source, Array):
        import numpy

        return numpy.broadcast_to(source, shape)
    strides = [0 if mine == 1 else stride for mine, stride in zip(source.shape, source.strides, strict=True)]
    return source._view_of(shape, [0] * missing + strides)


def copy_array_to(source: Array, dst: Any, stream: Any) -> Any:
    """See :meth:`Array.copy_to`."""
    import numpy

    if isinstance(dst, Array):
        dst.copy_from(source, stream=stream)
    elif isinstance(dst, numpy.ndarray):
        if dst.shape != source.shape or dst.dtype != source.dtype:
            raise (ValueError if dst.dtype == source.dtype else TypeError)(
                f"dst has shape {dst.shape} and type {dst.dtype}, the array {source.shape} and {source.dtype}"
            )
        queue, wait = stream_in_force(stream)
        if wait:
            _wait_for_device(source)
        if source.size:
            _to_host(source, dst, queue)
        if wait:
            queue.sync()
    else:
        raise TypeError(f"dst must be an Array or a NumPy array, got {type(dst).__name__}")
    return dst


def _wait_for_device(array: Array) -> None:
    """Wait for all work of the array's device: it may have been queued in any stream."""
    number = array.device_id
    (Device() if number < 0 else Device(number)).sync()


def _to_host(source: Array, target: np.ndarray, queue: Any) -> None:
    if source.is_contiguous:
        _piece(source).copy_to(target, stream=queue)
    else:
        with _between(source, queue) as packed:
            above("copy_strided")(packed, source, queue)
            packed.buffer.copy_to(target, stream=queue)


def array_to_numpy(array: Array, stream: Stream | None) -> np.ndarray:
    """See :meth:`Array.to_numpy`."""
    import numpy

    queue, wait = stream_in_force(stream)
    if not isinstance(queue, Stream):
        raise TypeError("to_numpy() waits for the elements, which a graph that is being made cannot: use copy_to()")
    found = numpy.empty(array.shape, array.dtype)
    if wait:
        _wait_for_device(array)  # which computes the elements, if nobody has asked for them
    if array.size:
        _to_host(array, found, queue)
        queue.sync()  # a copy from pinned memory does not wait
    return found


class _HostMemory:
    """Lets NumPy see memory of the host, and keeps it."""

    def __init__(self, owner: object, interface: dict[str, Any]) -> None:
        self.owner = owner
        self.__array_interface__ = interface


def array_as_ndarray(array: Array, dtype: Any, copy: bool | None) -> np.ndarray:
    """``numpy.asarray``: a view of memory that the host can read, otherwise a copy."""
    import numpy

    if array.buffer.is_host_accessible and not copy:
        interface = {
            "version": 3,
            "shape": array.shape,
            "strides": array.strides,
            "typestr": array.dtype.str,
            "descr": array.dtype.descr,
            "data": (array.handle, False),
        }
        found = numpy.asarray(_HostMemory(array.buffer, interface))
        found = found if found.dtype == array.dtype else found.view(array.dtype)
    elif copy is False:
        raise ValueError("the elements are on a device: NumPy can only have a copy of them")
    else:
        found = array_to_numpy(array, None)
    if dtype is not None and found.dtype != dtype:
        if copy is False:
            raise ValueError(f"elements of {found.dtype} can become {numpy.dtype(dtype)} only in a copy")
        found = found.astype(dtype)
    return found


def buffer_as_ndarray(buffer: Buffer, dtype: Any, copy: bool | None) -> np.ndarray:
    """``numpy.asarray`` of a Buffer: its bytes, where the host can read them."""
    if not buffer.is_host_accessible:
        raise TypeError(
            "this memory is on a device, where NumPy cannot read it: copy it, buffer.copy_to(array, stream=stream), "
            "or give it a type and a shape, Array.from_buffer(buffer, shape, dtype).to_numpy()"
        )
    return array_as_ndarray(Array.from_buffer(buffer, buffer.size, "u1"), dtype, copy)


def first_elements(array: Array, count: int) -> str:
    """The first elements as text, for a repr; without them where they cannot be read now."""
    import numpy

    part = array
    shown = array.size
    try:
        while part.ndim > 1 and part.size > count and part[0].size >= count:
            part = part[0]
        if part.ndim and part.size > count:
            part = part[: -(-count // part[0].size)]
        values = part.to_numpy().reshape(-1)[:count]
    except (CUDAError, RuntimeError) as error:
        return f"not readable now, {type(error).__name__}"
    text = numpy.array2string(values, separator=" ", max_line_width=10**6, threshold=10**6)
    return text if shown <= count else text[:-1] + " ...]"
