from cupola.core.base._cuda cimport CUcontext, CUevent, CUstream

# Have the work queued in `consumer` from here on wait for the work already in `producer`. The host does not wait.
cdef int wait_for(CUstream producer, CUstream consumer) except -1


# The same in two steps, between which another context may be made current: a default stream is that of the current one.
cdef struct Awaited:
    CUcontext context
    CUevent event
    unsigned long born

cdef bint begin_wait(CUstream producer, Awaited* awaited) except -1
cdef int end_wait(Awaited* awaited, CUstream consumer) except -1
