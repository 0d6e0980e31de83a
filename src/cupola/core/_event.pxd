from cupola.core._cuda cimport CUcontext, CUevent


cdef class Event:
    cdef CUevent pointer            # NULL once closed
    cdef CUcontext context
    cdef unsigned long born         # `resets` at that time
    cdef int device_id
    cdef bint timing
    cdef bint blocking
    cdef object __weakref__
    cdef CUevent open_pointer(self) except NULL         # RuntimeError once closed, CUDAError once gone


# An event in `context`; NULL is the current context.
cdef Event new_event(CUcontext context, bint timing, bint blocking)

# The same from what the user gave: EventOptions, a dict, or None; and keywords.
cdef Event event_from_options(CUcontext context, object options, dict keywords)
