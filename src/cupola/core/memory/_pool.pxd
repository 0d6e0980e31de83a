from cpython.object cimport PyObject

from cupola.core.base._cuda cimport CUdevice_attribute, CUmemoryPool, CUmemPool_attribute, CUresult, closed_error
from cupola.core.base._shared cimport Alone, begin_alone, end_alone
from cupola.core.device._memory_resource cimport MemoryResource


cdef class PoolHandle:
    """The native pool. If owned, it is destroyed with the last object that holds it: what was allocated from it does,
    since a driver may not survive that memory is freed on one thread while another destroys its pool (580.159: SIGFPE,
    or SIGSEGV some calls later), which CUDA does not forbid."""
    cdef CUmemoryPool pointer
    cdef bint owned


cdef class PoolMemoryResource(MemoryResource):
    cdef PoolHandle pool                # None once closed
    cdef object cached_attributes
    cdef bint overridden                # a subclass in Python has its own `deallocate`
    cdef int ordinal                    # of the memory's device, -1 for the host
    cdef bint imported                  # from another process: it has what that one allocates
    cdef bint only_device               # the host cannot access the memory
    cdef public object _buffer_class            # Buffer, or the subclass that `allocate` makes
    cdef inline PoolHandle known_pool(self):        # None once closed
        cdef Alone alone
        cdef PoolHandle pool
        begin_alone(&alone, <PyObject*>self)
        pool = self.pool
        end_alone(&alone)
        return pool
    cdef inline PoolHandle open_pool(self):         # RuntimeError once closed; keep it for the duration of a call
        cdef Alone alone
        cdef PoolHandle pool
        begin_alone(&alone, <PyObject*>self)
        pool = self.pool
        end_alone(&alone)
        if pool is None:
            raise closed_error(self)
        return pool
    cdef _let_devices_in(self, CUdevice_attribute supported)
    cdef _hold(self, CUmemoryPool pool, bint owned)
    cdef _fail(self, CUresult status, object stream)


cdef class PoolAttributes:
    cdef PoolHandle pool
    cdef object resource_name
    cdef int read_flag(self, CUmemPool_attribute attribute) except -1
    cdef object read_number(self, CUmemPool_attribute attribute)
