"""Keeping Python objects alive for as long as a graph, its clones and its executables need them."""

from cupola.core.base._cuda cimport CUgraph, CUuserObject

# Have `graph` keep `value`.
cdef int retain(CUgraph graph, object value) except -1

# The same for executables: what is instantiated from `graph`, or updated by it, between the two calls keeps `value`.
cdef CUuserObject attach(CUgraph graph, object value) except NULL
cdef int detach(CUgraph graph, CUuserObject native) except -1

# Drop what graphs have let go of since the last time.
cdef void drop_released() noexcept
