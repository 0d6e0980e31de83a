"""Copies and fills that the driver refuses because a device has no access, done in another way.

Memory of pools and mapped memory can be accessed by its own device and by those that were given access. Which device
needs access is not documented. On two H200s with driver 580, it is for a copy (``cuMemcpyAsync``) the device of the
*current* context, whatever the stream is, and for a batch of copies and a fill the device of the *stream's* context. A
copy that names the contexts of its sides (``cuMemcpyPeerAsync``) needs no access. The refusal is
CUDA_ERROR_INVALID_VALUE, as for many other errors. So another way is tried; if it fails, too, something else was
wrong.
"""

from libc.stdint cimport uint32_t, uintptr_t

from cupola.core.device._context cimport enter, leave, primary_context
from cupola.core.base._cuda cimport (
    CU_MEMORYTYPE_DEVICE, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, CU_STREAM_CAPTURE_STATUS_NONE,
    CUDA_ERROR_INVALID_CONTEXT, CUDA_ERROR_INVALID_VALUE, CUDA_SUCCESS, CUcontext, CUdeviceptr, CUresult, CUstream,
    CUstreamCaptureStatus, check, cu, fail_because,
)
from cupola.core.device._stream cimport Stream


def copy(uintptr_t to, uintptr_t frm, size_t size, Stream queue, int refused):
    """Copy what ``cuMemcpyAsync`` refused with the status `refused`, or raise CUDAError."""
    cdef CUresult status = <CUresult>refused
    cdef int device, target, source
    if _may_depend_on_context(status):
        status = _copy_in(queue.find_context(), to, frm, size, queue.pointer)
    if status == CUDA_ERROR_INVALID_VALUE:
        device, target, source = queue.find_device(), device_of(to), device_of(frm)
        if is_elsewhere(target, device) or is_elsewhere(source, device):
            _copy_of_other_device(to, frm, size, queue, device, target, source)
            return
    check(status, b"cuMemcpyAsync")


def fill(uintptr_t pointer, uint32_t pattern, int width, size_t count, Stream queue, int refused):
    """Fill what ``cuMemsetD8Async`` (D16, D32: `width` in bytes) refused with the status `refused`, or raise CUDAError."""
    cdef CUresult status = <CUresult>refused
    cdef CUstream stream = queue.pointer
    cdef const char* call = (
        b"cuMemsetD8Async" if width == 1 else b"cuMemsetD16Async" if width == 2 else b"cuMemsetD32Async"
    )
    cdef int device, owner, pushed
    if _may_depend_on_context(status):
        pushed = enter(queue.find_context())
        try:
            device, owner = queue.find_device(), device_of(pointer)
            with nogil:
                status = fill_async(pointer, pattern, width, count, stream)
        finally:
            leave(pushed)
        if status == CUDA_ERROR_INVALID_VALUE and is_elsewhere(owner, device):
            fail_because(status, call, advice(owner, device, stream))
    check(status, call)


cdef bint _may_depend_on_context(CUresult status) noexcept:
    return status == CUDA_ERROR_INVALID_VALUE or status == CUDA_ERROR_INVALID_CONTEXT


cdef int device_of(uintptr_t pointer) noexcept:
    """The device that memory is on; -1 for host, managed and unknown memory."""
    cdef unsigned int kind = 0, managed = 0
    cdef int device = -1
    if read_pointer(pointer, &kind, &device, &managed) != CUDA_SUCCESS:
        return -1
    return device if kind == CU_MEMORYTYPE_DEVICE and not managed else -1


def is_apart(uintptr_t pointer, Stream queue):
    """Whether memory is on another device than a stream."""
    return is_elsewhere(device_of(pointer), queue.find_device())


def devices_of(*pointers):
    """The devices that memory is on, as a set of their numbers."""
    return {device_of(pointer) for pointer in pointers} - {-1}


def has_access(buffer, int device):
    """Whether kernels of the device, which is current, may use the memory of another one."""
    cdef CUdeviceptr found = 0
    resource = buffer.memory_resource
    if hasattr(resource, "_has_access"):
        return not resource.is_closed and resource._has_access(device)
    if hasattr(resource, "config"):
        return device in [int(peer) for peer in resource.config.peers]
    return cu.cuPointerGetAttribute(
        &found, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, <CUdeviceptr><uintptr_t>int(buffer.handle)
    ) == CUDA_SUCCESS


cdef bint is_elsewhere(int owner, int device) noexcept:
    return owner >= 0 and owner != device


cdef bint _is_default(CUstream stream) noexcept:
    return <uintptr_t>stream <= 2       # another stream in each context


cdef CUresult _copy_in(CUcontext context, CUdeviceptr to, CUdeviceptr frm, size_t size, CUstream stream) except *:
    cdef CUresult status
    cdef int pushed = enter(context)
    with nogil:
        status = cu.cuMemcpyAsync(to, frm, size, stream)
    leave(pushed)
    return status


cdef int _copy_of_other_device(
    CUdeviceptr to, CUdeviceptr frm, size_t size, Stream queue, int device, int target, int source
) except -1:
    """Copy where a side is memory of another device than the stream's; a side that is not on a device has number -1."""
    cdef CUstream stream = queue.pointer
    cdef CUcontext of_target, of_source
    cdef CUresult status
    cdef int owner = target if is_elsewhere(target, device) else source
    cdef int pushed
    if target >= 0 and source >= 0 and target != source and _is_captured(stream):
        # Trying it would invalidate the capture, which cannot contain copies between contexts.
        fail_because(CUDA_ERROR_INVALID_VALUE, b"cuMemcpyAsync", advice(owner, device, stream))
    if target >= 0 and source >= 0 and (target != source or _is_default(stream)):
        of_target, of_source = primary_context(target), primary_context(source)
        pushed = enter(queue.find_context())
        with nogil:
            status = cu.cuMemcpyPeerAsync(to, of_target, frm, of_source, size, stream)
        leave(pushed)
        return check(status, b"cuMemcpyPeerAsync")
    if _is_default(stream):
        fail_because(CUDA_ERROR_INVALID_VALUE, b"cuMemcpyAsync", advice(owner, device, stream))
    return check(_copy_in(primary_context(owner), to, frm, size, stream), b"cuMemcpyAsync")


cdef bint _is_captured(CUstream stream) noexcept:
    cdef CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE
    return cu.cuStreamIsCapturing(stream, &capture) != CUDA_SUCCESS or capture != CU_STREAM_CAPTURE_STATUS_NONE


cdef str advice(int owner, int device, CUstream stream):
    """What to do if `device`, the stream's, has no access to memory of the device `owner`."""
    if _is_default(stream):
        where = f"the default stream is that of the current device, {device},"
        use = f"call Device({owner}).set_current() first, or use a stream of that device"
    else:
        where = f"the stream is of device {device},"
        use = f"use a stream of device {owner}"
    return (
        f"The memory is of device {owner}; {where} which has no access to it: {use}, or give device {device} access "
        "(peer_accessible_by of the buffer's memory resource, or the peers of a VirtualMemoryResource)."
    )
