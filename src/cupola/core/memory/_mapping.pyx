"""Addresses, memory and access as separate steps: the calls behind VirtualMemoryResource.

CUDA Driver API, "Virtual Memory Management". Handles of memory are plain integers here; memory lives as long as its
handle or a mapping of it.
"""

from libc.stdint cimport uintptr_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from cupola.core.memory._buffer cimport Buffer, new_buffer
from cupola.core.device._context cimport current_context, enter, leave, primary_context
from cupola.core.base._cuda cimport (
    CU_MEM_ACCESS_FLAGS_PROT_READ, CU_MEM_ACCESS_FLAGS_PROT_READWRITE, CU_MEM_ALLOC_GRANULARITY_MINIMUM,
    CU_MEM_ALLOC_GRANULARITY_RECOMMENDED, CU_MEM_ALLOCATION_TYPE_MANAGED, CU_MEM_ALLOCATION_TYPE_PINNED,
    CU_MEM_HANDLE_TYPE_FABRIC, CU_MEM_HANDLE_TYPE_NONE, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
    CU_MEM_HANDLE_TYPE_WIN32_KMT, CU_MEM_LOCATION_TYPE_DEVICE, CU_MEM_LOCATION_TYPE_HOST,
    CU_MEM_LOCATION_TYPE_HOST_NUMA, CUdeviceptr, CUmemAccess_flags, CUmemAccessDesc, CUmemAllocationGranularity_flags,
    CUmemAllocationHandleType, CUmemAllocationProp, CUmemAllocationType, CUmemGenericAllocationHandle,
    CUmemLocationType, CUresult, CUstream, check, cu, initialise,
)
from cupola.core.device._memory_resource cimport MemoryResource
from cupola.core.device._stream cimport StreamHandle, default_stream, stream_argument

cdef extern from *:
    """
    #include <sys/syscall.h>
    #include <unistd.h>
    static int cupola_numa_node(void)
    {
        unsigned node = 0;
        return syscall(SYS_getcpu, NULL, &node, NULL) ? 0 : (int)node;
    }
    """
    int cupola_numa_node() noexcept nogil

DEVICE = <int>CU_MEM_LOCATION_TYPE_DEVICE
HOST = <int>CU_MEM_LOCATION_TYPE_HOST
HOST_NUMA = <int>CU_MEM_LOCATION_TYPE_HOST_NUMA

PINNED = <int>CU_MEM_ALLOCATION_TYPE_PINNED
MANAGED = <int>CU_MEM_ALLOCATION_TYPE_MANAGED

NO_HANDLE = <int>CU_MEM_HANDLE_TYPE_NONE
POSIX_FD = <int>CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
WIN32_KMT = <int>CU_MEM_HANDLE_TYPE_WIN32_KMT
FABRIC = <int>CU_MEM_HANDLE_TYPE_FABRIC

READ = <int>CU_MEM_ACCESS_FLAGS_PROT_READ
READ_WRITE = <int>CU_MEM_ACCESS_FLAGS_PROT_READWRITE

MINIMUM = <int>CU_MEM_ALLOC_GRANULARITY_MINIMUM
RECOMMENDED = <int>CU_MEM_ALLOC_GRANULARITY_RECOMMENDED


def current_numa_node():
    """The NUMA node of the processor that this thread runs on."""
    return cupola_numa_node()


cdef class Kind:
    """The memory to make: its type, its location, and how it can be exported."""
    cdef CUmemAllocationProp properties

    def __init__(self, int allocation, int location, int number, int handles, bint rdma):
        memset(&self.properties, 0, sizeof(self.properties))
        self.properties.type = <CUmemAllocationType>allocation
        self.properties.location.type, self.properties.location.id = <CUmemLocationType>location, number
        self.properties.requestedHandleTypes = <CUmemAllocationHandleType>handles
        self.properties.allocFlags.gpuDirectRDMACapable = rdma

    def granularity(self, int which):
        """The bytes that sizes must be a multiple of."""
        cdef size_t size = 0
        initialise()
        check(
            cu.cuMemGetAllocationGranularity(&size, &self.properties, <CUmemAllocationGranularity_flags>which),
            b"cuMemGetAllocationGranularity",
        )
        return size

    def create(self, size_t size):
        """Make memory; the handle."""
        cdef CUmemGenericAllocationHandle handle = 0
        cdef CUresult status
        with nogil:
            status = cu.cuMemCreate(&handle, size, &self.properties, 0)
        check(status, b"cuMemCreate")
        return handle


def release(CUmemGenericAllocationHandle handle):
    """Give a handle back."""
    check(cu.cuMemRelease(handle), b"cuMemRelease")


def handle_at(uintptr_t address):
    """Another handle of the memory that is mapped at an address."""
    cdef CUmemGenericAllocationHandle handle = 0
    check(cu.cuMemRetainAllocationHandle(&handle, <void*>address), b"cuMemRetainAllocationHandle")
    return handle


def reserve(size_t size, size_t alignment, uintptr_t hint):
    """Reserve addresses, at `hint` if that is possible."""
    cdef CUdeviceptr address = 0
    check(cu.cuMemAddressReserve(&address, size, alignment, <CUdeviceptr>hint, 0), b"cuMemAddressReserve")
    return <uintptr_t>address


def free_addresses(uintptr_t address, size_t size):
    """Give reserved addresses back."""
    check(cu.cuMemAddressFree(<CUdeviceptr>address, size), b"cuMemAddressFree")


def map_at(uintptr_t address, size_t size, CUmemGenericAllocationHandle handle):
    """Map memory, which nobody has access to yet."""
    check(cu.cuMemMap(<CUdeviceptr>address, size, 0, handle, 0), b"cuMemMap")


def unmap(uintptr_t address, size_t size):
    """Undo a mapping."""
    cdef CUresult status
    with nogil:
        status = cu.cuMemUnmap(<CUdeviceptr>address, size)
    check(status, b"cuMemUnmap")


def set_access(uintptr_t address, size_t size, list entries):
    """Say who may do what: entries are (type of location, its number, flags)."""
    cdef Py_ssize_t count = len(entries), i
    cdef CUresult status
    cdef CUmemAccessDesc* descriptions
    if count == 0:
        return
    descriptions = <CUmemAccessDesc*>malloc(count * sizeof(CUmemAccessDesc))
    if descriptions == NULL:
        raise MemoryError()
    try:
        memset(descriptions, 0, count * sizeof(CUmemAccessDesc))
        for i in range(count):
            kind, number, flags = entries[i]
            descriptions[i].location.type = <CUmemLocationType><int>kind
            descriptions[i].location.id = number
            descriptions[i].flags = <CUmemAccess_flags><int>flags
        with nogil:
            status = cu.cuMemSetAccess(<CUdeviceptr>address, size, descriptions, count)
    finally:
        free(descriptions)
    check(status, b"cuMemSetAccess")


# --- buffers ----------------------------------------------------------------------------------------------


def make_buffer(uintptr_t address, size_t size, MemoryResource resource not None, int device_id):
    """A buffer released behind the default stream of a device; with -1, at any time."""
    cdef int pushed
    if device_id < 0:
        return new_buffer(address, size, resource, None)
    pushed = enter(primary_context(device_id))
    try:
        return new_buffer(address, size, resource, default_stream().known_handle())
    finally:
        leave(pushed)


def resize(Buffer buffer not None, size_t size):
    """The memory of the buffer has grown in its place."""
    hash(buffer)        # which is that of the buffer as it was made
    buffer.open_allocation().size = size
    buffer.nbytes = size


def empty(Buffer buffer not None):
    """The memory of the buffer has moved away: close it without giving anything back."""
    buffer.open_allocation().moved = True
    buffer.close()


def check_stream(stream):
    """TypeError unless it is a stream or None."""
    if stream is not None:
        stream_argument(stream)


def wait_for(stream, int device_id):
    """Wait for a stream; a default stream is that of the current context, or else that of the device."""
    cdef StreamHandle held = stream_argument(stream).hold()
    cdef CUstream native = held.pointer
    cdef CUresult status
    cdef int pushed = 0
    if <uintptr_t>native <= 2 and current_context() == NULL:
        pushed = enter(primary_context(device_id))
    try:
        with nogil:
            status = cu.cuStreamSynchronize(native)
        check(status, b"cuStreamSynchronize")
    finally:
        leave(pushed)
