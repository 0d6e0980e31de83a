"""Nodes of graphs that are being defined."""

from libc.stdint cimport uintptr_t

from cupola.core.base._cuda cimport CUgraphNode, CUgraphNodeType
from cupola.graph._hierarchy cimport GraphHandle, Record
from cupola.graph._parameters cimport Parameters


cdef class NodeMaker:
    """The methods that make nodes: those of a definition make roots, those of a node make nodes that depend on it."""
    cdef GraphHandle home           # the graph that nodes are made in, or that this node is in
    cdef object __weakref__
    cdef CUgraphNode place(self) except? NULL       # what new nodes depend on; checked
    cdef GraphNode make(self, Parameters parameters)


cdef class GraphNode(NodeMaker):
    cdef CUgraphNode pointer
    cdef CUgraphNodeType kind
    cdef bint destroyed
    cdef CUgraphNode open_pointer(self) except NULL     # RuntimeError once destroyed
    cdef Record record(self)                            # never None
    cdef int change(self, Parameters parameters) except -1
    cdef int change_locked(self, CUgraphNode pointer, Parameters parameters) except -1
    cdef GraphHandle inner(self, uintptr_t graph)       # one of the graphs inside this node


# The object for a node of a graph: the one that Python holds, or a new one of the class for its kind.
cdef GraphNode node_object(GraphHandle graph, CUgraphNode pointer)

# All nodes, and all edges as pairs, of a graph.
cdef list list_nodes(GraphHandle graph)
cdef list list_edges(GraphHandle graph)

# The class for each CUgraphNodeType; conditional nodes have a function that tells. _node_kinds fills it.
cdef dict node_classes

# GraphDefinition is defined in a higher module, and registers itself here.
cdef int announce_definition(object cls) except -1
cdef NodeMaker wrap_definition(GraphHandle handle)
cdef GraphHandle definition_handle(object definition)       # TypeError when it is none
