"""Letting go of what an executable graph needs once its launches are over."""

from cupola.core.base._cuda cimport CUcontext, CUgraphExec, CUresult


# Keep `value` until the launches of an executable made so far are over. On failure it is kept for good, unless the
# context is broken, where nothing runs any more, or this is a host function, from where the driver cannot be asked.
cdef CUresult keep_until_over(CUgraphExec executable, CUcontext context, object value) except *

# Keep it for good: nobody can tell any more.
cdef int keep_for_good(object value) except -1
