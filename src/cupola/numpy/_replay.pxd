from libc.stdint cimport int64_t

from cupola.core.device._stream cimport StreamHandle
from cupola.core.program._kernel cimport Kernel

# Launch a kernel as a graph of one node, where that is quicker. False: it has to be launched.
cdef bint replayed(
    Kernel kernel, StreamHandle stream, int64_t blocks, unsigned int threads, void** parameters
) except -1
