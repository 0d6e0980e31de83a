from cupola.core.device._context cimport is_gone
from cupola.core.base._cuda cimport CUcontext, CUevent, CUstream


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
    cdef object __weakref__
    cdef inline CUevent open_pointer(self) except NULL:         # RuntimeError once closed, CUDAError once gone
        if self.pointer == NULL or is_gone(self.context, self.born):
            self.refuse()
        return self.pointer

    cdef int refuse(self) except -1


# Record an open event in a stream, releasing the GIL if that may wait.
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
