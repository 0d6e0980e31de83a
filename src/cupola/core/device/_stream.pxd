from cpython.object cimport PyObject

from cupola.core.device._context cimport is_gone
from cupola.core.base._cuda cimport CUcontext, CUstream
from cupola.core.base._shared cimport Alone, begin_alone, end_alone


cdef class StreamHandle:
    """The native stream. If owned, it is destroyed with the last object that holds it.

    Held by Stream objects and by whatever must still submit work after Stream.close(), such as the release of
    a Buffer.
    """
    cdef CUstream pointer
    cdef CUcontext context          # NULL until asked, and always for the default streams
    cdef unsigned long born         # `resets` at that time
    cdef unsigned long long serial  # of this process: a later stream under the same pointer has another
    cdef bint owned                 # destroy the stream in the end
    cdef object owner               # what is kept alive: who owns it instead, or its green context; or None
    cdef bint is_gone(self) noexcept        # whether it went with its context


cdef class Stream:
    cdef CUstream pointer           # valid while `native` is not None
    cdef StreamHandle native        # None once closed
    cdef int nonblocking            # -1 until asked
    cdef object level               # the priority, None until asked
    cdef Py_hash_t known_hash       # 0 until asked
    cdef object __weakref__
    cdef inline StreamHandle known_handle(self):        # None once closed
        cdef Alone alone
        cdef StreamHandle native
        begin_alone(&alone, <PyObject*>self)
        native = self.native
        end_alone(&alone)
        return native
    cdef StreamHandle open_handle(self)     # RuntimeError once closed, CUDAError once gone
    # The native stream for the duration of a call: it stays alive even if the stream is closed meanwhile. So take it
    # after the last Python code that may close the stream; `pointer` is then its pointer.
    cdef inline StreamHandle hold(self):
        cdef Alone alone
        cdef StreamHandle native
        begin_alone(&alone, <PyObject*>self)
        native = self.native
        end_alone(&alone)
        if native is None or is_gone(native.context, native.born):
            self.refuse()
        return native
    cdef inline int require_open(self) except -1:       # the same, to find out early
        cdef Alone alone
        cdef bint refused
        begin_alone(&alone, <PyObject*>self)
        refused = self.native is None or is_gone(self.native.context, self.native.born)
        end_alone(&alone)
        if refused:
            self.refuse()
        return 0
    cdef int refuse(self) except -1
    cdef CUcontext find_context(self) except NULL      # of the default streams: the caller's current context
    cdef int find_device(self) except -1


cdef class Recorder:
    """The base class of GraphBuilder, which APIs accept in place of a stream: it records the work."""
    cdef object turn                        # the lock of all recorders of a graph: one thread at a time uses any of them
    cdef Stream recorded_stream(self)       # None once closed
    cdef int keep_operands(self, object operands) except -1     # of what is about to be recorded


cdef Stream new_stream(StreamHandle native)             # a further Stream object on the same native stream
cdef Stream create_stream(CUcontext context, object options, object nonblocking, object priority)
cdef Stream foreign_stream(object owner)                # by __cuda_stream__; TypeError, RuntimeError

# What APIs with a `stream` parameter take: Stream or Recorder; the Stream, open. TypeError for anything else.
cdef inline Stream stream_argument(object stream):
    if type(stream) is Stream:
        (<Stream>stream).require_open()
        return <Stream>stream
    return other_stream_argument(stream)

cdef Stream other_stream_argument(object stream)

# The stream of a call that got it by position, as releases before 1.0 took it; with a DeprecationWarning.
cdef object older_stream(object older, object stream, str call)     # call: "allocate(size"

# If `stream` is a Recorder, have its graph keep the operands of the next recorded work alive. No other thread uses the
# graph until end_recording(), since the driver does not synchronize graphs that are captured.
cdef object begin_recording(object stream, tuple operands)      # what end_recording() takes; None: it is a stream
cdef int end_recording(object turn) except -1

cdef Stream default_stream()        # legacy or per-thread, as the environment variable says now

# The stream of the innermost `with` block of this thread, or None.
cdef Stream current_stream()
