"""Copies that are not simply between two Buffers: host arrays, options, batches.

A *side* of a copy is a piece of memory and the object that keeps it alive: a Buffer, an array that exports
Python's buffer protocol, or one that exports DLPack or the CUDA array interface.

CUDA Driver API, "API synchronization behavior": when cuMemcpyAsync returns, a source in pageable host memory has been
read, and a destination there has been written. So only memory that the device accesses directly must be kept alive
longer; a host function behind the copy releases it. This is also why an array in pageable memory may have any strides:
the host gathers its elements before the copy, or scatters them after it.
"""

from collections.abc import Sequence

from cpython.buffer cimport (
    PyBUF_STRIDES, PyBUF_WRITABLE, PyBuffer_IsContiguous, PyBuffer_Release, PyObject_CheckBuffer, PyObject_GetBuffer,
)
from libc.stdint cimport uintptr_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcmp, memcpy, memset

from cupola.core.memory._access cimport copy_async
from cupola.core.memory._buffer cimport Allocation, Buffer, graph_operand
from cupola.core.device._context cimport enter, leave
from cupola.core.base._cuda cimport (
    CU_MEMCPY_FLAG_DEFAULT, CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE, CU_MEMCPY_SRC_ACCESS_ORDER_ANY,
    CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL, CU_MEMCPY_SRC_ACCESS_ORDER_STREAM, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
    CU_STREAM_CAPTURE_STATUS_NONE, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_NOT_FOUND, CUDA_SUCCESS, CUdeviceptr,
    CUmemcpyAttributes, CUresult, CUstream, CUstreamCaptureStatus, check, cu, forget_missing,
)
from cupola.core.base._keep cimport drop_released, keep, release_kept
from cupola.core.memory._migration cimport as_location, buffers_argument
from cupola.core.device._stream cimport Stream, begin_recording, end_recording, new_stream, stream_argument

from cupola.core.memory import _access
from cupola.core.exchange._copy_options import CopyOptions, MemcpyOverlapMode, MemcpySrcAccessOrder
from cupola.core.exchange._view import StridedMemoryView


# --- sides ------------------------------------------------------------------------------------------------


cdef class Side:

    cdef object keeper(self):
        return graph_operand(<Allocation>self.owner) if self.is_buffer else self

    cdef int take_strides(self, str name, object shape, object strides, Py_ssize_t itemsize, bint captured) except -1:
        """Note the strides of the elements, and allocate memory to gather them."""
        cdef int axis
        if captured or not _is_pageable(self.pointer):
            where = "the copies of a graph" if captured else "copies of memory that is not pageable"
            raise ValueError(
                f"{name} must be contiguous in row-major order: {where} do not gather single elements. Pass "
                f"ascontiguousarray(array), or array.T to copy the memory in its own order"
            )
        self.ndim, self.itemsize = <int>len(shape), itemsize
        self.extents = <Py_ssize_t*>malloc((2 * self.ndim + 1) * sizeof(Py_ssize_t))
        self.gathered = <char*>malloc(self.size + 1)
        if self.extents == NULL or self.gathered == NULL:
            raise MemoryError()
        for axis in range(self.ndim):
            self.extents[axis], self.extents[self.ndim + axis] = shape[axis], strides[axis]
        return 0

    cdef CUdeviceptr place(self) noexcept:
        return <CUdeviceptr>(self.pointer if self.extents == NULL else <uintptr_t>self.gathered)

    cdef void gather(self) noexcept:
        cdef char* packed = self.gathered
        if self.extents != NULL and self.size:
            _walk(&packed, <char*>self.pointer, self.ndim, self.extents, self.extents + self.ndim, self.itemsize, True)

    cdef void scatter(self) noexcept:
        cdef char* packed = self.gathered
        if self.extents != NULL and self.size:
            _walk(&packed, <char*>self.pointer, self.ndim, self.extents, self.extents + self.ndim, self.itemsize, False)

    cdef bint is_pageable(self) noexcept:
        return _is_pageable(<uintptr_t>self.place())

    def __dealloc__(self):
        if self.is_held:
            PyBuffer_Release(&self.view)
        free(self.extents)
        free(self.gathered)


cdef void _walk(
    char** packed, char* place, int ndim, const Py_ssize_t* shape, const Py_ssize_t* strides, Py_ssize_t itemsize,
    bint gather
) noexcept:
    """Copy elements in row-major order to `packed`, or from there, which moves on."""
    cdef Py_ssize_t i
    if ndim == 0:
        if gather:
            memcpy(packed[0], place, itemsize)
        else:
            memcpy(place, packed[0], itemsize)
        packed[0] += itemsize
        return
    for i in range(shape[0]):
        _walk(packed, place + i * strides[0], ndim - 1, shape + 1, strides + 1, itemsize, gather)


cdef Side side_of(object memory, str name, bint writable, Stream queue, bint captured):
    cdef Side side = Side.__new__(Side)
    if isinstance(memory, Buffer):
        side.owner = (<Buffer>memory).open_allocation()
        side.pointer, side.size, side.is_buffer = (<Buffer>memory).pointer, (<Buffer>memory).nbytes, True
    elif PyObject_CheckBuffer(memory):
        _take_buffer(side, memory, name, writable, captured)
    elif hasattr(type(memory), "__dlpack__") or hasattr(memory, "__cuda_array_interface__"):
        _take_view(side, memory, name, writable, queue, captured)
    else:
        raise TypeError(
            f"{name} must be a Buffer, or an array with the buffer protocol or DLPack, got {type(memory).__name__}"
        )
    return side


cdef int _take_buffer(Side side, object array, str name, bint writable, bint captured) except -1:
    cdef int axis
    try:
        PyObject_GetBuffer(array, &side.view, PyBUF_STRIDES | (PyBUF_WRITABLE if writable else 0))
    except (BufferError, ValueError) as error:
        reason = "it must be writable" if writable else "it does not expose its memory"
        raise ValueError(f"{name}, of type {type(array).__name__}, cannot be copied: {reason} ({error})") from error
    side.is_held = True
    side.pointer, side.size = <uintptr_t>side.view.buf, side.view.len
    if not PyBuffer_IsContiguous(&side.view, b"C"):
        shape = [side.view.shape[axis] for axis in range(side.view.ndim)]
        strides = [side.view.strides[axis] for axis in range(side.view.ndim)]
        side.take_strides(name, shape, strides, side.view.itemsize, captured)
    return 0


cdef int _take_view(Side side, object array, str name, bint writable, Stream queue, bint captured) except -1:
    # What makes the array runs first, unless it is to become part of a graph, which cannot wait for anything outside.
    view = StridedMemoryView.from_any_interface(array, stream_ptr=-1 if captured else <uintptr_t>queue.pointer)
    if writable and view.readonly:
        raise ValueError(f"{name}, of type {type(array).__name__}, cannot be copied to: it is read-only")
    layout = view._layout
    side.pointer, side.size, side.owner = view.ptr, view.size * layout.itemsize, view
    if not layout.is_contiguous_c:
        side.take_strides(name, layout.shape, layout.strides_in_bytes, layout.itemsize, captured)
    return 0


cdef bint _is_pageable(uintptr_t pointer) noexcept:
    """Whether memory is unknown to CUDA."""
    cdef unsigned int kind = 0
    return cu.cuPointerGetAttribute(
        &kind, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, <CUdeviceptr>pointer
    ) != CUDA_SUCCESS or kind == 0


cdef int keep_until_done(Side side, CUstream stream) except -1:
    cdef void* kept
    cdef CUresult status
    if side.is_buffer or side.size == 0 or _is_pageable(side.pointer):
        return 0
    drop_released()
    kept = keep(side, NULL)
    with nogil:
        status = cu.cuLaunchHostFunc(stream, release_kept, kept)
    if status != CUDA_SUCCESS:
        # The copy is queued, but its end cannot be known: keep the array forever rather than too short.
        return check(status, b"cuLaunchHostFunc")
    return 0


# --- single copies ----------------------------------------------------------------------------------------


def copy_arrays(dst, src, stream, options):
    """Copy between a Buffer and a Buffer or array."""
    cdef Stream queue = new_stream(stream_argument(stream).hold())      # which no code written in Python can close
    cdef CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE
    cdef CUmemcpyAttributes attributes
    cdef CUdeviceptr to, frm
    cdef CUstream native = queue.pointer
    cdef CUresult status
    cdef int pushed
    cdef Side target, source
    check(cu.cuStreamIsCapturing(native, &capture), b"cuStreamIsCapturing")
    if options is not None:
        _read_options(options, &attributes)
        if type(stream) is not Stream or capture != CU_STREAM_CAPTURE_STATUS_NONE:
            raise TypeError("copies with options cannot be captured into a graph: pass no options, or another stream")
        _refuse_legacy_stream(queue, "a copy with options")
    target = side_of(dst, "dst", True, queue, capture != CU_STREAM_CAPTURE_STATUS_NONE)
    source = side_of(src, "src", False, queue, capture != CU_STREAM_CAPTURE_STATUS_NONE)
    if target.size != source.size:
        raise ValueError(f"the sizes differ: the source has {source.size} bytes, the destination {target.size}")
    turn = None
    if type(stream) is not Stream:
        turn = begin_recording(stream, (target.keeper(), source.keeper()))
    try:
        to, frm = target.place(), source.place()
        if source.size == 0:
            return
        source.gather()
        if options is None or source.extents != NULL or target.extents != NULL:
            _copy_plainly(to, frm, source.size, queue)      # of elements that are gathered, it does all that options ask for
        else:
            status = _copy_with_attributes(to, frm, source.size, &attributes, native)
            if status == CUDA_ERROR_NOT_FOUND:
                _without_options(&attributes, -1)
                _copy_plainly(to, frm, source.size, queue)
            elif status == CUDA_ERROR_INVALID_VALUE and _is_apart(to, frm, queue):
                _copy_as_told(to, frm, source.size, &attributes, queue)
            elif status != CUDA_SUCCESS:
                # Either the context was the reason, or the call reports the error again.
                pushed = enter(queue.find_context())
                status = _copy_with_attributes(to, frm, source.size, &attributes, native)
                leave(pushed)
                check(status, b"cuMemcpyWithAttributesAsync")
        if target.extents != NULL:
            with nogil:
                status = cu.cuStreamSynchronize(native)     # which is needed only where the source is memory of the host
            check(status, b"cuStreamSynchronize")
            target.scatter()
        if capture == CU_STREAM_CAPTURE_STATUS_NONE:
            keep_until_done(target, native)
            keep_until_done(source, native)
    finally:
        end_recording(turn)


cdef int _copy_plainly(CUdeviceptr to, CUdeviceptr frm, size_t size, Stream queue) except -1:
    cdef CUstream stream = queue.pointer
    cdef CUresult status
    with nogil:
        status = copy_async(to, frm, size, stream)
    if status != CUDA_SUCCESS:
        _access.copy(to, frm, size, queue, status)
    return 0


cdef bint _is_apart(CUdeviceptr to, CUdeviceptr frm, Stream queue):
    return _access.is_apart(to, queue) or _access.is_apart(frm, queue)


cdef int _copy_as_told(
    CUdeviceptr to, CUdeviceptr frm, size_t size, const CUmemcpyAttributes* attributes, Stream queue
) except -1:
    """Copy plainly what a copy with attributes cannot: those need that the stream's device has access."""
    cdef CUstream stream = queue.pointer
    cdef CUresult status
    _access.copy(to, frm, size, queue, CUDA_ERROR_INVALID_VALUE)
    if attributes.srcAccessOrder == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL and not _is_pageable(frm):
        with nogil:
            status = cu.cuStreamSynchronize(stream)     # the source is to be read when the call returns
        check(status, b"cuStreamSynchronize")
    return 0


cdef CUresult _copy_with_attributes(
    CUdeviceptr to, CUdeviceptr frm, size_t size, CUmemcpyAttributes* attributes, CUstream stream
) noexcept:
    """CUDA 13.2 has a function for it; 13.0 has batches, of which one copy is one; before there is nothing."""
    cdef size_t first = 0
    cdef CUresult status
    with nogil:
        status = cu.cuMemcpyWithAttributesAsync(to, frm, size, attributes, stream)
    if status == CUDA_ERROR_NOT_FOUND:
        forget_missing()
        with nogil:
            status = cu.cuMemcpyBatchAsync(&to, &frm, &size, 1, attributes, &first, 1, stream)
    if status == CUDA_ERROR_NOT_FOUND:
        forget_missing()
    return status


cdef int _without_options(const CUmemcpyAttributes* attributes, Py_ssize_t number) except -1:
    """Whether a plain copy may stand for one with attributes, which the driver lacks: RuntimeError if not."""
    if attributes.srcAccessOrder == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL:
        which = "the option" if number < 0 else f"option {number}:"
        raise RuntimeError(f"{which} src_access_order='during_api_call' needs a driver for CUDA 13 or later")
    return 0


cdef int _read_options(object options, CUmemcpyAttributes* attributes) except -1:
    if not isinstance(options, CopyOptions):
        raise TypeError(f"options must be CopyOptions, got {type(options).__name__}")
    memset(attributes, 0, sizeof(CUmemcpyAttributes))
    order = options.src_access_order
    attributes.srcAccessOrder = (
        CU_MEMCPY_SRC_ACCESS_ORDER_STREAM if order is MemcpySrcAccessOrder.STREAM
        else CU_MEMCPY_SRC_ACCESS_ORDER_ANY if order is MemcpySrcAccessOrder.ANY
        else CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL
    )
    if options.src_location_hint is not None:
        attributes.srcLocHint = as_location(options.src_location_hint)
    if options.dst_location_hint is not None:
        attributes.dstLocHint = as_location(options.dst_location_hint)
    attributes.flags = (
        CU_MEMCPY_FLAG_DEFAULT if options.overlap_mode is MemcpyOverlapMode.DEFAULT
        else CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE
    )
    return 0


cdef int _refuse_legacy_stream(Stream queue, str what) except -1:
    if <uintptr_t>queue.pointer <= 1:
        raise TypeError(
            f"{what} cannot be queued in the legacy default stream; make a stream, or use PER_THREAD_DEFAULT_STREAM"
        )
    return 0


# --- batches ----------------------------------------------------------------------------------------------


def copy_batch(stream, srcs, dsts, *, options=None):
    """Copy between many pairs of buffers in one call of the driver (``cuMemcpyBatchAsync``, CUDA 13).

    The copies may run at the same time and in any order, so no destination may overlap another range of the batch, which
    is not checked. Older drivers get one copy after the other.

    Parameters
    ----------
    stream : Stream
        Orders the whole batch. Neither the legacy default stream nor one that is captured.
    srcs, dsts : sequence of Buffer
        Sources and destinations. Both buffers of a pair have the same size.
    options : CopyOptions, or sequence of them, optional
        For all copies, or one for each.

    Raises
    ------
    TypeError
        For another stream, or when something is no sequence of Buffers or CopyOptions.
    ValueError
        When there is no pair, or lengths or sizes differ.
    RuntimeError
        When a buffer is closed, or the driver is older than CUDA 13 and cannot read sources during the call.
    """
    cdef Stream queue
    cdef CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE
    cdef list sources, targets
    if not isinstance(stream, Stream):
        raise TypeError(
            f"copy_batch needs a Stream, got {type(stream).__name__}; "
            "into a graph, copy with Buffer.copy_to(dst, stream=builder)"
        )
    queue = new_stream(stream_argument(stream).hold())
    _refuse_legacy_stream(queue, "a batch of copies")
    check(cu.cuStreamIsCapturing(queue.pointer, &capture), b"cuStreamIsCapturing")
    if capture != CU_STREAM_CAPTURE_STATUS_NONE:
        raise TypeError("a batch of copies cannot be captured into a graph: use Buffer.copy_to for each")
    sources = buffers_argument(srcs, "srcs", "Buffer.copy_to()")
    targets = buffers_argument(dsts, "dsts", "Buffer.copy_from()")
    if len(sources) != len(targets):
        raise ValueError(f"there are {len(sources)} sources and {len(targets)} destinations")
    for i in range(len(sources)):
        if (<Buffer>sources[i]).nbytes != (<Buffer>targets[i]).nbytes:
            raise ValueError(
                f"the sizes of pair {i} differ: the source has {sources[i].size} bytes, "
                f"the destination {targets[i].size}"
            )
    _run_batch(queue, sources, targets, _options_argument(options, len(sources)))


cdef list _options_argument(object options, Py_ssize_t count):
    if options is None or isinstance(options, CopyOptions):
        return [options or CopyOptions()] * count
    if not isinstance(options, (list, tuple)):
        if not isinstance(options, Sequence) or isinstance(options, (str, bytes)):
            raise TypeError(f"options must be CopyOptions or a sequence of them, got {type(options).__name__}")
    found = list(options)
    if len(found) != count:
        raise ValueError(f"there are {count} copies and {len(found)} options; give one each, or one for all")
    return found


cdef int _run_batch(Stream queue, list sources, list targets, list options) except -1:
    cdef Py_ssize_t count = len(sources), i
    cdef size_t groups = 0
    cdef CUstream stream = queue.pointer
    cdef CUresult status
    cdef CUmemcpyAttributes now
    cdef CUdeviceptr* frm = <CUdeviceptr*>malloc(count * sizeof(CUdeviceptr))
    cdef CUdeviceptr* to = <CUdeviceptr*>malloc(count * sizeof(CUdeviceptr))
    cdef size_t* sizes = <size_t*>malloc(count * sizeof(size_t))
    cdef size_t* first = <size_t*>malloc(count * sizeof(size_t))
    cdef CUmemcpyAttributes* attributes = <CUmemcpyAttributes*>malloc(count * sizeof(CUmemcpyAttributes))
    cdef int pushed
    try:
        if frm == NULL or to == NULL or sizes == NULL or first == NULL or attributes == NULL:
            raise MemoryError()
        for i in range(count):
            _read_options(options[i], &now)
            # Attributes stand for all copies up to where the next ones begin.
            if groups == 0 or memcmp(&now, &attributes[groups - 1], sizeof(now)) != 0:
                attributes[groups], first[groups] = now, i
                groups += 1
        for i in range(count):      # behind all code written in Python
            (<Buffer>sources[i]).open_allocation()
            (<Buffer>targets[i]).open_allocation()
            frm[i], to[i] = (<Buffer>sources[i]).pointer, (<Buffer>targets[i]).pointer
            sizes[i] = (<Buffer>sources[i]).nbytes
        with nogil:
            status = cu.cuMemcpyBatchAsync(to, frm, sizes, count, attributes, first, groups, stream)
        if status == CUDA_ERROR_NOT_FOUND:
            forget_missing()
            for i in range(count):
                _read_options(options[i], &now)
                _without_options(&now, i)
            for i in range(count):
                _copy_plainly(to[i], frm[i], sizes[i], queue)
        elif status == CUDA_ERROR_INVALID_VALUE and any([_is_apart(to[i], frm[i], queue) for i in range(count)]):
            for i in range(count):
                _read_options(options[i], &now)
                _copy_as_told(to[i], frm[i], sizes[i], &now, queue)
        elif status != CUDA_SUCCESS:
            pushed = enter(queue.find_context())    # as above
            with nogil:
                status = cu.cuMemcpyBatchAsync(to, frm, sizes, count, attributes, first, groups, stream)
            leave(pushed)
            check(status, b"cuMemcpyBatchAsync")
    finally:
        free(frm)
        free(to)
        free(sizes)
        free(first)
        free(attributes)
    return 0
