"""Keeping Python objects alive for as long as a graph, its clones and its executables need them."""

from cupola.core._cuda cimport CUgraph

# Have `graph` keep `value` and the C memory `memory` (NULL, or from malloc; taken over in any case).
cdef int retain(CUgraph graph, object value, void* memory) except -1

# Drop what graphs have let go of since the last time.
cdef void drop_released() noexcept
