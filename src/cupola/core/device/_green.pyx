"""What keeps a green context: destroyed when the last context, stream or event of it lets go."""

from cupola.core.base._cuda cimport CUgreenCtx, CUresult, cu, driver_usable
from cupola.core.device._context cimport is_gone, remove_green
from cupola.core.device._later cimport destroy


cdef CUresult _destroy(void* green) noexcept nogil:
    return cu.cuGreenCtxDestroy(<CUgreenCtx>green)


cdef class GreenContext:
    def __dealloc__(self):
        if self.pointer == NULL:
            return
        remove_green(self.context)      # before its address may be given to another one
        if driver_usable() and not is_gone(self.context, self.born):
            destroy(_destroy, self.pointer, b"cuGreenCtxDestroy", self.context, self.born)
