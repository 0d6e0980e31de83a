"""What graphs, and the driver's copies of them, keep alive: user objects."""

from cupola.core.base._cuda cimport CUgraph, CUuserObject


cdef class Hold:
    """A Python object that a graph keeps."""
    cdef CUuserObject native    # one reference is ours
    cdef CUgraph graph
    cdef bint attached          # the graph has a reference of its own
    cdef bint dropped           # let go for good
    cdef object value
    cdef int attach(self) except -1
    cdef int detach(self) except -1     # the graph must exist, as for let_go
    cdef int let_go(self) except -1
    cdef void forget(self)              # the graph is gone


cdef Hold hold(CUgraph graph, object value)

# Drop what graphs have released since the last call.
cdef void drop_released() noexcept
