"""Loaded code, unloaded when nobody needs it any more."""

from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree
from libc.stdint cimport uintptr_t

from cupola.core.base._cuda cimport (
    CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CUresult, cu, driver_usable, report
)


cdef class Library:
    def __cinit__(self):
        self.log = <char*>PyMem_RawCalloc(LOG_SIZE, 1)
        if self.log == NULL:
            raise MemoryError()
        self.options = [CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES]
        self.option_values = [<void*>self.log, <void*><uintptr_t>LOG_SIZE]

    def __dealloc__(self):
        cdef CUresult status
        if self.pointer != NULL and driver_usable():
            with nogil:
                status = cu.cuLibraryUnload(self.pointer)
            report(status, b"cuLibraryUnload")
        PyMem_RawFree(self.log)
