from cupola.core.base._cuda cimport CUgraph, CUgraphNode, CUgraphNodeParams, CUresult
from cupola.core.device._stream cimport Recorder, Stream
from cupola.graph._hierarchy cimport GraphHandle, Hierarchy


cdef enum Kind:
    PRIMARY         # made from a stream
    FORKED          # made by split
    BODY            # of a conditional node


cdef enum State:
    NOT_STARTED
    CAPTURING
    ENDED
    CLOSED


cdef class GraphBuilder(Recorder):
    cdef Stream queue               # None once closed; an object of its own: closing others does not end the capture
    cdef Stream shown               # what `stream` gives: the one it was made from, or None until somebody asks
    cdef Hierarchy hierarchy        # what is recorded, with all branches and bodies; None before building begins
    cdef GraphHandle graph          # of a body always; of a primary once it has ended; else None
    cdef GraphBuilder parent        # of a body: the builder that it was made by, or that this was joined into
    cdef Kind kind
    cdef State state
    cdef list bodies                # weak references to the builders of conditional bodies made here, or None
    cdef object __weakref__

    cdef int require_open(self) except -1
    cdef bint has_stream(self) noexcept
    cdef int require_capturing(self, str what) except -1
    cdef CUgraph captured_graph(self) except NULL
    cdef CUgraph root_graph(self) except NULL
    cdef CUgraphNode append(self, CUgraphNodeParams* parameters) except NULL
    cdef tuple conditional(self, object condition, int form, unsigned int count, int since)
    cdef CUresult end_bodies(self) except *
    cdef bint has_unfinished_bodies(self) except *
    cdef GraphBuilder fork(self)
