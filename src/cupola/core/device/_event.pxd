from cupola.core.device._context cimport is_gone
from cupola.core.base._cuda cimport CUcontext, CUevent, CUstream
from cupola.core.base._shared cimport Uses, begin_use, end_use


cdef class SharedEvent:
    """The native event of an Event that graphs use, destroyed with the last object that holds it."""
    cdef CUevent pointer
    cdef CUcontext context
    cdef unsigned long born
    cdef int device_id
    cdef bint timing
    cdef bint blocking
    cdef object green


cdef class Event:
    cdef CUevent pointer            # NULL once closed
    cdef CUcontext context
    cdef unsigned long born         # `resets` at that time
    cdef int device_id
    cdef bint timing
    cdef bint blocking
    cdef bint ipc                   # for several processes
    cdef object descriptor          # IPCEventDescriptor, once asked for
    cdef Py_hash_t known_hash       # 0 until asked
    cdef object green               # what keeps its green context, or None
    cdef object shared              # who destroys the native event instead of this object, or None
    cdef Uses uses                  # of `pointer`, by calls
    cdef object __weakref__
    cdef inline CUevent open_pointer(self) except NULL:         # RuntimeError once closed, CUDAError once gone
        cdef CUevent pointer = self.pointer     # once: NULL without an exception would end the process
        if pointer == NULL or is_gone(self.context, self.born):
            self.refuse()
        return pointer

    # The native event for the duration of a call that ends with end(): it stays, even if the event is closed meanwhile.
    cdef inline CUevent begin(self) except NULL:
        cdef CUevent pointer = self.pointer
        if pointer == NULL or is_gone(self.context, self.born) or not begin_use(&self.uses):
            self.refuse()
        return pointer

    cdef inline void end(self, CUevent pointer) noexcept:
        if end_use(&self.uses):
            self.destroy(pointer)

    cdef void destroy(self, CUevent pointer) noexcept
    cdef int refuse(self) except -1


# Record an event in a stream, releasing the GIL if that may wait.
cdef int record_event(Event event, CUstream stream) except -1

# An event in `context`; NULL is the current context.
cdef Event new_event(CUcontext context, bint timing, bint blocking)

# The same from what the user gave: EventOptions, a dict, or None; and keywords. in_stream: to be recorded at once.
cdef Event event_from_options(CUcontext context, object options, dict keywords, bint in_stream=*)

# The object that keeps the native event of an open Event alive after the Event is closed; and the Event for such an
# object.
cdef object share_event(Event event)
cdef Event shared_event(SharedEvent shared)

# An Event for a native event that `owner` keeps alive; nothing else is known about it.
cdef Event foreign_event(CUevent pointer, object owner)
