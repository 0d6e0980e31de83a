from cpython.object cimport PyObject
from libc.stdint cimport uint32_t, uintptr_t

from cupola.core.device._context cimport resets
from cupola.core.base._cuda cimport CUDA_SUCCESS, CUcontext, cu
from cupola.core.base._shared cimport Alone, begin_alone, end_alone
from cupola.core.device._memory_resource cimport MemoryResource
from cupola.core.device._stream cimport StreamHandle
from cupola.core.memory._users cimport User, Users


cdef class Allocation:
    """A piece of memory and how to free it, shared by a Buffer and other users of the memory.

    Of exactly this class only if the driver alone frees it, otherwise of FinalizedAllocation.
    """
    cdef readonly uintptr_t pointer
    cdef readonly size_t size
    cdef readonly MemoryResource resource   # frees the memory; None: nobody does
    cdef readonly object owner              # kept alive as long as this; None when there is a resource
    cdef StreamHandle stream                # orders the release; None when nothing does
    cdef CUcontext context                  # the one that `stream` stands in, if that is a default stream, else NULL
    cdef object green                       # what keeps that context, if it is a green one of this package
    cdef object pool                        # what keeps the pool that the memory is of until it is freed, or None
    cdef unsigned long born                 # `resets` when it was made
    cdef Users users                        # None: `stream` alone, as far as is known here
    cdef object descriptor                  # what other processes know it by, once asked for
    cdef bint mapped                        # imported from another process
    cdef bint moved                         # nothing is left to give back
    cdef int kind                           # what the pointer's attributes say, read once; see _buffer.pyx
    cdef int device
    cdef int read_kind(self) except -1
    cdef bint is_gone(self) noexcept        # whether the memory went with the context of `stream`
    cdef int give_back(self) except -1
    cdef int release(self) except -1
    cdef Users known_users(self)            # which are kept from here on


cdef class FinalizedAllocation(Allocation):
    cdef dict imports                       # of imported memory, where to strike this one out, and under which key
    cdef object import_key
    cdef object __weakref__


# The object that a graph which uses the memory must keep alive: the allocation, or None.
cdef inline object graph_operand(Allocation allocation):
    if allocation is None or (allocation.resource is not None and allocation.resource.in_graph):
        return None
    return allocation


cdef class Buffer:
    # The launch path reads `pointer` inline; it is 0 once the buffer is closed (check `allocation is None`).
    cdef uintptr_t pointer
    cdef size_t nbytes
    cdef Allocation allocation              # None once closed
    cdef Py_hash_t known_hash               # 0 until asked
    cdef tuple parting                      # of a closed one: what multiprocessing sends in its place, or None
    cdef object attached                    # what a room above keeps with the memory, or None
    cdef object __weakref__
    cdef inline Allocation known_allocation(self):      # None once closed
        cdef Alone alone
        cdef Allocation allocation
        begin_alone(&alone, <PyObject*>self)
        allocation = self.allocation
        end_alone(&alone)
        return allocation
    cdef Allocation open_allocation(self)   # RuntimeError once closed, CUDAError once gone


cdef inline int require_open(Buffer buffer) except -1:
    """Like open_allocation, without a call in the usual case."""
    if buffer.allocation is None or resets != 0:
        buffer.open_allocation()
    return 0


cdef inline bint is_used_by(Buffer buffer, StreamHandle stream) noexcept:
    """Whether `stream` is the only one that has used the memory, as far as is known, or the last that has written it."""
    cdef Allocation allocation = buffer.allocation
    cdef User writer
    if allocation is None:
        return False
    if allocation.users is None:
        return allocation.stream is stream and (allocation.context == NULL or is_current(allocation.context))
    writer = allocation.users.writer
    return (
        writer is not None and writer.stream is stream and not allocation.users.readers
        and (writer.context == NULL or is_current(writer.context))
    )


# A default stream is another one in each context.
cdef inline bint is_current(CUcontext context) noexcept:
    cdef CUcontext current = NULL
    return cu.cuCtxGetCurrent(&current) == CUDA_SUCCESS and current == context


# What is released once nobody records who uses it, or orders its release; and to try that again.
cdef list put_off
cdef int release_put_off() except -1


# Who is known to use the memory. Who says so before using it is ordered with all others who do, and the release of the
# memory is behind them: cupola.numpy does that.
cdef Users users_of(Buffer buffer)

# Before a use by work that is recorded, and so waits for nothing: the release is in the order of its stream, which
# keeps the memory if that is still being recorded then.
cdef int order_recorded_use(Buffer buffer, StreamHandle stream) except -1

# A buffer over memory of `resource`, released behind the work in `stream` (None for host memory); of class Buffer
# unless a subclass is given.
cdef Buffer new_buffer(uintptr_t pointer, size_t size, MemoryResource resource, StreamHandle stream, object cls=*)

# The same in two steps, of which the second cannot fail. finalized: the release may run code written in Python.
cdef Buffer begin_buffer(StreamHandle stream, object cls, bint finalized)
cdef inline void fill_buffer(Buffer buffer, uintptr_t pointer, size_t size, MemoryResource resource) noexcept:
    buffer.pointer = buffer.allocation.pointer = pointer
    buffer.nbytes = buffer.allocation.size = size
    buffer.allocation.resource = resource

# Read the value of a fill into `pattern`; returns its width in bytes: 1, 2 or 4. ValueError, OverflowError, TypeError.
cdef int fill_pattern(object value, uint32_t* pattern) except -1
