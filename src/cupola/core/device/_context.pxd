from cupola.core.base._cuda cimport CUcontext


cdef class Context:
    cdef CUcontext pointer          # NULL once closed
    cdef int device_id
    cdef object green               # what keeps the green context (_green.pyx), or None
    cdef Py_hash_t known_hash       # 0 until asked
    cdef object __weakref__


# A wrapper that does not own `pointer`; CUDAError when it is NULL or gone.
cdef Context wrap_context(CUcontext pointer)

# What keeps a green context that this package has made, or None; and that there is one now, or no more.
cdef int greens                     # how many there are
cdef object find_green(CUcontext pointer)
cdef inline object green_of(CUcontext pointer):
    return find_green(pointer) if greens else None
cdef int add_green(CUcontext pointer, object keeper) except -1
cdef void remove_green(CUcontext pointer) noexcept

# How Context.create_stream does it, which is in a module above (_stream.pyx).
cdef object (*green_stream)(CUcontext context, object green, object options)

cdef CUcontext current_context() except? NULL           # NULL: none is current on this thread
cdef CUcontext primary_context(int device_id) except NULL   # retained for the life of the process, anew after a reset

# After a reset the primary context has its old address, but its objects are gone, and new objects may get their
# addresses. So an object that calls the driver with a handle notes `resets` when it is made, and asks:
cdef unsigned long resets                                   # how many resets were noticed
cdef bint was_reset(CUcontext context, unsigned long since) noexcept
cdef inline bint is_gone(CUcontext context, unsigned long since) noexcept:
    """Whether `context` was reset after the time when `resets` was `since`."""
    return since != resets and was_reset(context, since)

cdef int when_reset(object forget) except -1    # call forget(address of the context) at every reset

# Make `context` current for the calls until leave(); returns whether it had to be pushed (pass that to leave).
cdef int enter(CUcontext context) except -1
cdef bint enter_if_there(CUcontext context, int* pushed) except -1      # NULL: none is needed; False: it was destroyed
cdef int leave(int pushed) except -1
