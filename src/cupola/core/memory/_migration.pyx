"""The location of managed memory: advice, prefetching, discarding (CUDA Driver API, "Unified Addressing").

Places are Device and Host objects. A function that an older driver lacks gives CUDA_ERROR_NOT_FOUND, and that is where
the ways around it begin.
"""

from collections.abc import Sequence

from libc.stdint cimport uintptr_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from cupola.core.memory._buffer cimport Allocation, Buffer
from cupola.core.base._cuda cimport (
    CU_DEVICE_CPU, CU_DEVICE_INVALID, CU_MEM_ADVISE_SET_ACCESSED_BY, CU_MEM_ADVISE_SET_PREFERRED_LOCATION,
    CU_MEM_ADVISE_SET_READ_MOSTLY, CU_MEM_ADVISE_UNSET_ACCESSED_BY, CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION,
    CU_MEM_ADVISE_UNSET_READ_MOSTLY, CU_MEM_LOCATION_TYPE_DEVICE, CU_MEM_LOCATION_TYPE_HOST,
    CU_MEM_LOCATION_TYPE_HOST_NUMA, CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY,
    CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE,
    CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, CUDA_ERROR_NOT_FOUND, CUdeviceptr, CUmem_advise, CUmem_range_attribute,
    CUmemLocation, CUresult, CUstream, check, cu, forget_missing, initialise,
)
from cupola.core.device._device cimport Device
from cupola.core.device._stream cimport StreamHandle, stream_argument

from cupola.core.memory._host import Host

cdef enum:
    MOST_PLACES = 65        # devices and the host


cdef CUmemLocation as_location(object place) except *:
    cdef CUmemLocation location
    memset(&location, 0, sizeof(location))
    if isinstance(place, Device):
        location.type, location.id = CU_MEM_LOCATION_TYPE_DEVICE, (<Device>place).device_id
    elif isinstance(place, Host):
        if place.is_numa_current:
            location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT
        elif place.numa_id is not None:
            location.type, location.id = CU_MEM_LOCATION_TYPE_HOST_NUMA, place.numa_id
        else:
            location.type = CU_MEM_LOCATION_TYPE_HOST
        if location.type != CU_MEM_LOCATION_TYPE_HOST and _driver_version() < 13000:
            raise TypeError(f"{place} needs a driver for CUDA 13 or later; Host() is any memory of the host")
    elif place is None:
        raise ValueError("a location is required: a Device or Host()")
    else:
        raise TypeError(f"a location must be a Device or a Host, got {type(place).__name__}")
    return location


cdef int _driver_version() except -1:
    cdef int version = 0
    check(cu.cuDriverGetVersion(&version), b"cuDriverGetVersion")
    return version


cdef int _require_managed(Buffer buffer) except -1:
    buffer.open_allocation()
    if not buffer.is_managed:
        raise ValueError(f"{buffer!r} is not managed memory, and the operation requires a managed-memory allocation")
    return 0


# --- advice -----------------------------------------------------------------------------------------------


cdef int _advise(Buffer buffer, CUmem_advise advice, CUmemLocation location) except -1:
    _require_managed(buffer)
    return check(cu.cuMemAdvise(<CUdeviceptr>buffer.pointer, buffer.nbytes, advice, location), b"cuMemAdvise")


cdef CUmemLocation _nowhere() noexcept:
    """What advice that has no location is given."""
    cdef CUmemLocation location
    memset(&location, 0, sizeof(location))
    location.type = CU_MEM_LOCATION_TYPE_HOST
    return location


cdef int _read_attribute(Buffer buffer, CUmem_range_attribute attribute, int* data, size_t size) except -1:
    _require_managed(buffer)
    return check(
        cu.cuMemRangeGetAttribute(data, size, attribute, <CUdeviceptr>buffer.pointer, buffer.nbytes),
        b"cuMemRangeGetAttribute",
    )


def is_read_mostly(Buffer buffer not None):
    """Whether the advice holds for the whole buffer."""
    cdef int value = 0
    _read_attribute(buffer, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, &value, sizeof(value))
    return value != 0


def set_read_mostly(Buffer buffer not None, bint value):
    """Give or take back the advice that the memory is mostly read."""
    _advise(buffer, CU_MEM_ADVISE_SET_READ_MOSTLY if value else CU_MEM_ADVISE_UNSET_READ_MOSTLY, _nowhere())


def get_preferred_location(Buffer buffer not None):
    """The preferred Device or Host of the memory, or None."""
    cdef int kind = 0, number = 0
    _read_attribute(buffer, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE, &kind, sizeof(kind))
    if kind == CU_MEM_LOCATION_TYPE_DEVICE or kind == CU_MEM_LOCATION_TYPE_HOST_NUMA:
        _read_attribute(buffer, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID, &number, sizeof(number))
    if kind == CU_MEM_LOCATION_TYPE_DEVICE:
        return Device(number)
    if kind == CU_MEM_LOCATION_TYPE_HOST:
        return Host()
    if kind == CU_MEM_LOCATION_TYPE_HOST_NUMA:
        return Host(number)
    if kind == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
        return Host.numa_current()
    return None


def set_preferred_location(Buffer buffer not None, place):
    """Set the place that the memory prefers; None for no preference."""
    _require_managed(buffer)
    if place is None:
        _advise(buffer, CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION, _nowhere())
    else:
        _advise(buffer, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, as_location(place))


def accessed_by(Buffer buffer not None):
    """The set of Devices, and Host(), for which the memory stays mapped."""
    cdef int numbers[MOST_PLACES]
    cdef int i
    _read_attribute(buffer, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, numbers, sizeof(numbers))
    found = set()
    for i in range(MOST_PLACES):
        if numbers[i] == CU_DEVICE_CPU:
            found.add(Host())
        elif numbers[i] != CU_DEVICE_INVALID:
            found.add(Device(numbers[i]))
    return found


def set_accessed_by(Buffer buffer not None, place, bint value):
    """Give or take back the advice that a place accesses the memory."""
    _require_managed(buffer)
    _advise(buffer, CU_MEM_ADVISE_SET_ACCESSED_BY if value else CU_MEM_ADVISE_UNSET_ACCESSED_BY, as_location(place))


# --- prefetching and discarding ---------------------------------------------------------------------------


cdef int _prefetch(Buffer buffer, CUmemLocation location, StreamHandle stream) except -1:
    cdef Allocation allocation = buffer.open_allocation()       # read here, behind all code written in Python
    cdef CUdeviceptr pointer = <CUdeviceptr>buffer.pointer
    cdef size_t size = buffer.nbytes
    cdef CUstream native = stream.pointer
    cdef CUresult status
    with nogil:
        status = cu.cuMemPrefetchAsync(pointer, size, location, 0, native)
    return check(status, b"cuMemPrefetchAsync")


def prefetch(Buffer buffer not None, place, stream):
    """Move the memory to a place."""
    cdef CUmemLocation location
    _require_managed(buffer)
    location = as_location(place)
    _prefetch(buffer, location, stream_argument(stream).hold())


def discard(Buffer buffer not None, stream):
    """Drop what the memory holds."""
    _require_managed(buffer)
    _run([buffer], None, stream_argument(stream).hold(), True)


def discard_prefetch(Buffer buffer not None, place, stream):
    """Drop what the memory holds, and have its pages at a place."""
    _require_managed(buffer)
    as_location(place)
    _run([buffer], [place], stream_argument(stream).hold(), True)


cdef list buffers_argument(object buffers, str name, str single):
    if isinstance(buffers, Buffer):
        raise TypeError(f"{name} must be a sequence of Buffers; for a single one use {single}")
    if not isinstance(buffers, (list, tuple)):
        if not isinstance(buffers, Sequence):
            raise TypeError(f"{name} must be a sequence of Buffers, got {type(buffers).__name__}")
    found = list(buffers)
    if not found:
        raise ValueError(f"{name} must have at least one Buffer")
    for i, buffer in enumerate(found):
        if not isinstance(buffer, Buffer):
            raise TypeError(f"{name}[{i}] must be a Buffer, got {type(buffer).__name__}")
        (<Buffer>buffer).open_allocation()
    return found


cdef list _places_argument(object locations, Py_ssize_t count):
    """One place for each of `count` buffers, checked."""
    cdef CUmemLocation checked
    if isinstance(locations, (Device, Host)) or locations is None:
        places = [locations] * count
    else:
        if not isinstance(locations, Sequence):
            raise TypeError(
                f"locations must be a Device, a Host, or a sequence of these, got {type(locations).__name__}"
            )
        places = list(locations)
        if len(places) != count and not isinstance(locations, str):
            raise ValueError(f"there are {count} buffers and {len(places)} locations; give one each, or one for all")
    for place in places:
        checked = as_location(place)
    return places


cdef int _run_batch(list buffers, object places, object stream, bint discard) except -1:
    cdef StreamHandle held = stream_argument(stream).hold()
    for buffer in buffers:
        _require_managed(buffer)
    return _run(buffers, places, held, discard)


cdef int _run(list buffers, list places, StreamHandle stream, bint discard) except -1:
    """Discard, prefetch (with `places`), or both, in one call of the driver."""
    cdef Py_ssize_t count = len(buffers), i
    cdef size_t groups = 0
    cdef CUstream native = stream.pointer
    cdef CUresult status
    cdef const char* call
    cdef CUdeviceptr* pointers = NULL
    cdef size_t* sizes = NULL
    cdef size_t* first = NULL
    cdef CUmemLocation* locations = NULL
    pointers = <CUdeviceptr*>malloc(count * sizeof(CUdeviceptr))
    sizes = <size_t*>malloc(count * sizeof(size_t))
    first = <size_t*>malloc(count * sizeof(size_t))
    locations = <CUmemLocation*>malloc(count * sizeof(CUmemLocation))
    try:
        if pointers == NULL or sizes == NULL or first == NULL or locations == NULL:
            raise MemoryError()
        for i in range(count):
            # A location stands for all ranges up to where the next begins.
            if places is not None and (i == 0 or places[i] != places[i - 1]):
                locations[groups] = as_location(places[i])
                first[groups] = i
                groups += 1
        for i in range(count):      # behind all code written in Python
            (<Buffer>buffers[i]).open_allocation()
            pointers[i] = <CUdeviceptr>(<Buffer>buffers[i]).pointer
            sizes[i] = (<Buffer>buffers[i]).nbytes
        with nogil:
            if groups == 0:
                call = b"cuMemDiscardBatchAsync"
                status = cu.cuMemDiscardBatchAsync(pointers, sizes, count, 0, native)
            elif discard:
                call = b"cuMemDiscardAndPrefetchBatchAsync"
                status = cu.cuMemDiscardAndPrefetchBatchAsync(
                    pointers, sizes, count, locations, first, groups, 0, native
                )
            else:
                call = b"cuMemPrefetchBatchAsync"
                status = cu.cuMemPrefetchBatchAsync(pointers, sizes, count, locations, first, groups, 0, native)
    finally:
        free(pointers)
        free(sizes)
        free(first)
        free(locations)
    if status == CUDA_ERROR_NOT_FOUND and discard:
        forget_missing()
        raise NotImplementedError("memory can be discarded only with a driver for CUDA 13 or later")
    return check(status, call)


cdef bint _has_batches(StreamHandle stream) except -1:
    """Whether prefetches can be batched: not before CUDA 13, and not in the legacy default stream."""
    return <uintptr_t>stream.pointer > 1 and _driver_version() >= 13000


def prefetch_batch(stream, buffers, locations):
    """Move several pieces of managed memory in one call of the driver (``cuMemPrefetchBatchAsync``).

    Parameters
    ----------
    stream : Stream or GraphBuilder
        Orders the whole batch; within it there is no order.
    buffers : sequence of Buffer
        Managed memory.
    locations : Device, Host, or sequence of these
        Where to: one place for all, or one for each.

    Raises
    ------
    TypeError
        When `buffers` is no sequence of Buffers, or a location is something else.
    ValueError
        When there is no buffer, one is not managed, or the lengths differ.
    """
    cdef list found = buffers_argument(buffers, "buffers", "ManagedBuffer.prefetch()")
    cdef list places = _places_argument(locations, len(found))
    cdef StreamHandle held = stream_argument(stream).hold()
    for buffer in found:
        _require_managed(buffer)
    if _has_batches(held):
        _run(found, places, held, False)
        return
    for buffer, place in zip(found, places):
        _prefetch(buffer, as_location(place), held)


def discard_batch(stream, buffers):
    """Discard the contents of several pieces of managed memory (``cuMemDiscardBatchAsync``, CUDA 13).

    Their contents are undefined until they are written again. Until then no page needs to migrate.

    Parameters
    ----------
    stream : Stream or GraphBuilder
        Orders the whole batch; within it there is no order.
    buffers : sequence of Buffer
        Managed memory.

    Raises
    ------
    TypeError
        When `buffers` is no sequence of Buffers.
    ValueError
        When there is no buffer, or one is not managed.
    NotImplementedError
        When the driver is older than CUDA 13.
    """
    _run_batch(buffers_argument(buffers, "buffers", "ManagedBuffer.discard()"), None, stream, True)


def discard_prefetch_batch(stream, buffers, locations):
    """Discard the contents of managed memory, and place its pages (``cuMemDiscardAndPrefetchBatchAsync``).

    Needs CUDA 13.

    Parameters
    ----------
    stream : Stream or GraphBuilder
        Orders the whole batch; within it there is no order.
    buffers : sequence of Buffer
        Managed memory.
    locations : Device, Host, or sequence of these
        Where to: one place for all, or one for each.

    Raises
    ------
    TypeError
        When `buffers` is no sequence of Buffers, or a location is something else.
    ValueError
        When there is no buffer, one is not managed, or the lengths differ.
    NotImplementedError
        When the driver is older than CUDA 13.
    """
    cdef list found = buffers_argument(buffers, "buffers", "ManagedBuffer.discard_prefetch()")
    _run_batch(found, _places_argument(locations, len(found)), stream, True)
