"""Releasing what an executable graph needs once its launches are over."""

from cupola.core.base._cuda cimport CUcontext, CUgraphExec, CUresult


# Keep `value` until the launches of an executable made so far are over. On failure it is kept forever, unless the
# context is broken, so that nothing runs any more, or this is a host function, where the driver must not be called.
cdef CUresult keep_until_over(CUgraphExec executable, CUcontext context, object value) except *

# Keep it forever, because it cannot be known any more whether it is needed.
cdef int keep_for_good(object value) except -1
