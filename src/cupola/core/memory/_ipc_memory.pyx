"""Pools and buffers that come from, or go to, other processes.

CUDA Driver API, "Stream Ordered Memory Allocator", cuMemPoolExport… and cuMemPoolImport….

Imported when memory is first shared, as _ipc.py is.
"""

from libc.stdint cimport uintptr_t
from libc.string cimport memcpy, memset

from cupola.core.memory._buffer cimport Allocation, Buffer, FinalizedAllocation, new_buffer
from cupola.core.device._context cimport current_context, enter, leave, primary_context
from cupola.core.base._cuda cimport (
    CU_DEVICE_ATTRIBUTE_HOST_NUMA_MEMORY_POOLS_SUPPORTED, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, CUDA_SUCCESS,
    CUcontext, CUdeviceptr, CUmemoryPool, CUmemPoolPtrExportData, CUresult, check, cu, initialise,
)
from cupola.core.memory._pool cimport PoolHandle, PoolMemoryResource
from cupola.core.device._stream cimport StreamHandle, default_stream, stream_argument

from _thread import RLock
from _weakref import ref

from cupola.core.device._event_ipc import check_payload
from cupola.core.memory._ipc import IPCBufferDescriptor, buffer_descriptor

cimport cython

# The imported memory, by (address of the pool, bytes of the descriptor): importing it again shares the mapping.
cdef dict _imports = {}
cdef object _importing = RLock()        # the collector may import in its turn


def export_pool(PoolMemoryResource resource):
    """A new file descriptor for the pool (``cuMemPoolExportToShareableHandle``)."""
    cdef int descriptor = -1
    cdef PoolHandle pool = resource.open_pool()
    check(
        cu.cuMemPoolExportToShareableHandle(
            &descriptor, pool.pointer, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0
        ),
        b"cuMemPoolExportToShareableHandle",
    )
    return descriptor


def import_pool(PoolMemoryResource resource, int descriptor, int ordinal):
    """Give `resource`, which has no pool yet, the pool that another process exported; -1: of host memory."""
    cdef CUmemoryPool pool
    initialise()
    check(
        cu.cuMemPoolImportFromShareableHandle(
            &pool, <void*><uintptr_t>descriptor, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0
        ),
        b"cuMemPoolImportFromShareableHandle",
    )
    resource._hold(pool, True)
    resource.imported = resource.shared = True
    resource.ordinal, resource.only_device = ordinal, ordinal >= 0
    if ordinal < 0:
        resource._let_devices_in(CU_DEVICE_ATTRIBUTE_HOST_NUMA_MEMORY_POOLS_SUPPORTED)


def export_buffer(Buffer buffer):
    """The descriptor of an open buffer (``cuMemPoolExportPointer``), or the one that it was imported with."""
    cdef CUmemPoolPtrExportData data
    cdef Allocation allocation = buffer.open_allocation()
    with cython.critical_section(allocation):
        descriptor = allocation.descriptor
    if descriptor is None:
        resource = allocation.resource
        if resource is None:
            raise AttributeError("the buffer has no memory resource, so its memory is not shared between processes")
        if not resource.is_ipc_enabled:
            raise RuntimeError(
                f"memory of this {type(resource).__name__} is not shared between processes (IPC): make the resource "
                "with options {'ipc_enabled': True}"
            )
        memset(&data, 0, sizeof(data))
        if buffer.nbytes:
            resource.allocation_handle      # drivers export no memory of a pool that was not itself exported
            check(cu.cuMemPoolExportPointer(&data, <CUdeviceptr>buffer.pointer), b"cuMemPoolExportPointer")
        made = buffer_descriptor((<char*>&data)[:sizeof(data)], buffer.nbytes)
        with cython.critical_section(allocation):
            if allocation.descriptor is None:       # and no other thread was faster
                allocation.descriptor = made
            descriptor = allocation.descriptor
    return descriptor


def import_buffer(cls, resource, descriptor, stream):
    """Buffer.from_ipc_descriptor for `cls`."""
    cdef StreamHandle native
    cdef PoolMemoryResource mr
    if not isinstance(resource, PoolMemoryResource):
        raise TypeError(f"mr must be a memory resource with a pool, not {type(resource).__name__}")
    mr = <PoolMemoryResource>resource
    mr.open_pool()
    if not mr.is_ipc_enabled:
        raise RuntimeError(f"the {type(mr).__name__} is not shared between processes (IPC)")
    if not isinstance(descriptor, IPCBufferDescriptor):
        raise TypeError(f"ipc_descriptor must be an IPCBufferDescriptor, not {type(descriptor).__name__}")
    native = stream_argument(stream).hold()
    payload = check_payload(descriptor)
    _importing.acquire()
    try:
        return _import(cls, mr, descriptor, payload, native)
    finally:
        _importing.release()


cdef Buffer _import(object cls, PoolMemoryResource mr, object descriptor, bytes payload, StreamHandle stream):
    cdef CUmemPoolPtrExportData data
    cdef CUdeviceptr pointer = 0
    cdef size_t size = descriptor.size, extent = 0
    cdef PoolHandle held = mr.open_pool()
    cdef CUmemoryPool pool = held.pointer
    cdef CUresult status
    cdef FinalizedAllocation allocation
    cdef Buffer buffer
    if size == 0:
        return new_buffer(0, 0, mr, stream, cls)
    key = (<uintptr_t>pool, payload)
    known = _imports.get(key)
    allocation = None if known is None else known()
    if allocation is not None:
        _check_size(size, allocation.size)
        buffer = cls.__new__(cls)
        buffer.pointer, buffer.nbytes, buffer.allocation = allocation.pointer, size, allocation
        return buffer
    memcpy(&data, <const char*>payload, sizeof(data))
    with nogil:
        status = cu.cuMemPoolImportPointer(&pointer, pool, &data)
    check(status, b"cuMemPoolImportPointer")
    try:
        if cu.cuMemGetAddressRange(NULL, &extent, pointer) == CUDA_SUCCESS:
            _check_size(size, extent)
        buffer = new_buffer(pointer, size, mr, stream, cls)
    except:
        cu.cuMemFree(pointer)
        raise
    allocation = <FinalizedAllocation>buffer.allocation
    allocation.mapped = True
    allocation.descriptor = descriptor
    allocation.imports, allocation.import_key = _imports, key
    _imports[key] = ref(allocation)
    return buffer


cdef int _check_size(size_t claimed, size_t extent) except -1:
    if claimed > extent:
        raise ValueError(f"the descriptor claims {claimed} bytes, but the memory has {extent}")
    return 0


def reduce_buffer(Buffer buffer):
    """What a pickle holds of an open buffer."""
    descriptor = export_buffer(buffer)
    return rebuild_buffer, (buffer.open_allocation().resource, descriptor)


def reduce_sent(Buffer buffer):
    """Sent by multiprocessing for a buffer; a queue does so on its own thread, perhaps after close()."""
    return reduce_buffer(buffer) if buffer.parting is None else buffer.parting


def rebuild_buffer(resource, descriptor):
    """Import a buffer that was pickled; its release is ordered by the default stream.

    Arguments of a process arrive before the process could make a context current, so the primary context of the device
    is used if none is current.
    """
    cdef CUcontext context
    cdef int pushed
    initialise()
    context = current_context()
    if context == NULL:
        context = primary_context(max(resource.device_id, 0))
    pushed = enter(context)
    try:
        return import_buffer(Buffer, resource, descriptor, default_stream())
    finally:
        leave(pushed)
