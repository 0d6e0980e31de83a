"""Loaded code, unloaded when nothing needs it any more."""

from _weakref import ref

from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree
from libc.stdint cimport uintptr_t

from cupola.core.base._cuda cimport (
    CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CUlibrary, CUresult, cu, driver_usable
)
from cupola.core.device._context cimport resets
from cupola.core.device._later cimport destroy


cimport cython

# The libraries of kernels from get_kernel, by the kernels' addresses: a weak reference to a Library, which removes its
# entries before the addresses can be used again.
cdef dict known_kernels = {}


cdef CUresult _unload(void* library) noexcept nogil:
    return cu.cuLibraryUnload(<CUlibrary>library)


@cython.no_gc_clear  # __dealloc__ needs the list
cdef class Library:
    def __cinit__(self):
        self.kernels = []
        self.log = <char*>PyMem_RawCalloc(LOG_SIZE, 1)
        if self.log == NULL:
            raise MemoryError()
        self.options = [CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES]
        self.option_values = [<void*>self.log, <void*><uintptr_t>LOG_SIZE]

    def __dealloc__(self):
        if known_kernels is not None:  # it goes at the end of the interpreter
            for kernel in self.kernels:
                known_kernels.pop(kernel, None)
        if self.pointer != NULL and driver_usable():
            destroy(_unload, self.pointer, b"cuLibraryUnload", NULL, resets)
        PyMem_RawFree(self.log)

    cdef int remember(self, CUkernel kernel) except -1:
        """That `kernel` is one of this library's."""
        if <uintptr_t>kernel not in known_kernels:
            known_kernels[<uintptr_t>kernel] = ref(self)
            self.kernels.append(<uintptr_t>kernel)


cdef Library library_of(CUkernel kernel):
    found = known_kernels.get(<uintptr_t>kernel)
    return None if found is None else found()
