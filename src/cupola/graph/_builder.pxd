from cupola.core._cuda cimport CUgraph, CUgraphNode, CUgraphNodeParams, CUresult
from cupola.core._stream cimport Stream
from cupola.graph._graph cimport GraphHandle


cdef enum Kind:
    PRIMARY         # made from a stream
    FORKED          # made by split
    BODY            # of a conditional node


cdef enum State:
    NOT_STARTED
    CAPTURING
    ENDED
    CLOSED


cdef class GraphBuilder:
    cdef Stream queue               # None once closed
    cdef GraphHandle graph          # of a body always; of a primary once it has ended; else None
    cdef Kind kind
    cdef State state
    cdef list bodies                # weak references to the builders of conditional bodies made here, or None
    cdef object __weakref__

    cdef int require_open(self) except -1
    cdef bint has_stream(self) noexcept
    cdef int require_capturing(self, str what) except -1
    cdef CUgraph captured_graph(self) except NULL
    cdef int append(self, CUgraph child, CUgraphNodeParams* parameters) except -1
    cdef tuple conditional(self, object condition, int kind, unsigned int count, int since)
    cdef CUresult end_bodies(self) except *
    cdef GraphBuilder fork(self)
