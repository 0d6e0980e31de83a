from cupola.core._cuda cimport CUgraph, CUgraphExec


cdef class GraphHandle:
    """A graph that is being defined; destroyed with the object when `owned`."""
    cdef CUgraph pointer
    cdef bint owned
    cdef object root            # the handle of the graph that this one is part of, kept alive; or None


cdef class Graph:
    cdef CUgraphExec pointer    # NULL once closed
    cdef object __weakref__


cdef GraphHandle new_graph_handle(CUgraph pointer, bint owned, object root)
cdef Graph instantiate(CUgraph graph, object options)
