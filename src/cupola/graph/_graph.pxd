from cupola.core.base._cuda cimport CUcontext, CUgraph, CUgraphExec
from cupola.core.device._event cimport Event
from cupola.graph._hierarchy cimport GraphHandle
from cupola.graph._parameters cimport Parameters


cdef class Attachments:
    """What an executable needs, beside what the driver has it keep of the graph that it was made from.

    The executable holds it through a user object of the driver, so it stays until the last launch is over.
    """
    cdef tuple kept             # of the definition's nodes at that time
    cdef dict changed           # address of a node -> what it has needed since it was changed in the executable
    cdef list retired           # (Event of the last launch at that time, what a node needed until it was changed)
    cdef Event launched         # recorded behind the last launch; None before the first one with changed nodes
    cdef bint shared            # that event stands in `retired`: the next launch needs another one


cdef class Graph:
    cdef CUgraphExec pointer    # NULL once closed
    cdef CUcontext context      # of the stream that it was recorded in
    cdef unsigned long born     # `resets` at that time
    cdef Attachments attachments    # None once closed
    cdef object __weakref__
    cdef CUgraphExec open_pointer(self) except NULL     # RuntimeError once closed, CUDAError once gone
    cdef int change(self, object node, Parameters parameters) except -1


# The class of the view for each class of nodes; _executable_nodes fills it.
cdef dict executable_classes

cdef Graph instantiate(GraphHandle handle, CUcontext context, object options)
cdef int print_dot(CUgraph graph, object path, object options) except -1
