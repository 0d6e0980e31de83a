from cupola.core._cuda cimport CUcontext


cdef class Context:
    cdef CUcontext pointer          # NULL once closed
    cdef int device_id
    cdef object __weakref__


# A wrapper that does not own `pointer`; CUDAError when it is NULL or gone.
cdef Context wrap_context(CUcontext pointer)

cdef CUcontext current_context() except? NULL           # NULL: none is current on this thread
cdef CUcontext primary_context(int device_id) except NULL   # retained once for the life of the process

# Make `context` current for the calls until leave(); returns whether it had to be pushed (pass that to leave).
cdef int enter(CUcontext context) except -1
cdef int leave(int pushed) except -1
