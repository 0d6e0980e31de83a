from cupola.core._cuda cimport CUcontext, CUgraph, CUgraphExec


cdef class GraphHandle:
    """A graph that is being defined; destroyed with the object when `owned`."""
    cdef CUgraph pointer
    cdef bint owned
    cdef object root            # the handle of the graph that this one is part of, kept alive; or None


cdef class Graph:
    cdef CUgraphExec pointer    # NULL once closed
    cdef CUcontext context      # of the stream that it was recorded in
    cdef unsigned long born     # `resets` at that time
    cdef CUgraphExec open_pointer(self) except NULL     # RuntimeError once closed, CUDAError once gone
    cdef object __weakref__


cdef GraphHandle new_graph_handle(CUgraph pointer, bint owned, object root)
cdef Graph instantiate(CUgraph graph, CUcontext context, object options)
