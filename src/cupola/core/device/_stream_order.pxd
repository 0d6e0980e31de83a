from cupola.core.base._cuda cimport CUstream

# Have the work queued in `consumer` from here on wait for the work already in `producer`. The host does not wait.
cdef int wait_for(CUstream producer, CUstream consumer) except -1
