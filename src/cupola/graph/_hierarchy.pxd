"""Graphs that are being defined, with the graphs inside them."""

from libc.stdint cimport uintptr_t

from cupola.core.base._cuda cimport CUcontext, CUgraph, CUgraphNode
from cupola.graph._retained cimport Hold
from cupola.graph._structure cimport Structure


cdef class Record:
    """What is known of a node beside what the driver tells."""
    cdef tuple kept             # the objects that the node needs
    cdef Hold hold              # through which its graph keeps them; None: it needs none, or a graph inside the node does it
    cdef object subject         # what it does: Kernel, SharedEvent, callable, GraphCondition; or None
    cdef object config          # of a kernel launch with attributes: the LaunchConfig; else None
    cdef CUcontext context      # it was made in; NULL: unknown
    cdef int form               # of a conditional node: the CUgraphConditionalNodeType
    cdef tuple place            # allocation: (device id, memory type, peers); copy: what each side keeps
    cdef tuple bodies           # addresses of the graphs inside


cdef class Hierarchy:
    """A graph that is not part of another, and everything inside it: they share one lifetime."""
    cdef CUgraph root           # NULL: the stream that captures it was not asked yet, or it is gone
    cdef bint owned             # destroyed with this object
    cdef bint gone              # destroyed by somebody else, as an unfinished capture is
    cdef CUcontext context      # of its first node that has one: after a reset of that it is of no use
    cdef unsigned long born     # `resets` at that time
    cdef object handles         # weak: address of a graph -> GraphHandle
    cdef dict records           # address of a graph -> {address of a node -> Record}
    cdef dict others            # address of a graph -> [Hold]: what it keeps that belongs to none of these nodes
    cdef int bare               # how many calls of the thread with the lock need the graphs without user objects: more
                                # than one when the collector runs a finalizer in one that makes an executable as well
    cdef Structure structure    # taken by whoever changes or reads a graph, or makes or destroys an executable of it
    cdef object __weakref__

    cdef Hierarchy remains(self)        # the graph alone, for its destruction later
    cdef Record find(self, CUgraph graph, CUgraphNode node)
    cdef Record note(self, CUgraph graph, CUgraphNode node, Record record)      # returns the record
    cdef int drop(self, CUgraph graph, CUgraphNode node) except -1              # and what was below the node
    cdef int keep_beside(self, CUgraph graph, object value) except -1           # have a graph keep what is of no node
    cdef int keep_copied(self, CUgraph graph, CUgraphNode node, Record record) except -1    # of a new child graph node
    cdef tuple attachments(self)                                                # all that is kept
    # Take the user objects off the graphs, so that executables made from them get none. Pass the result to put_back.
    cdef list take_off(self)
    cdef int put_back(self, list holds) except -1


cdef class GraphHandle:
    """One graph of a hierarchy: there is one object for each graph at a time."""
    cdef CUgraph pointer
    cdef Hierarchy hierarchy
    cdef GraphHandle parent     # the graph around this one, None for the root
    cdef CUgraphNode holder     # the node there that this graph belongs to
    cdef bint dead              # that node was destroyed, or has got another graph
    cdef object nodes           # weak: address of a node -> GraphNode
    cdef object __weakref__

    cdef bint is_valid(self)
    cdef bint is_gone(self)         # with its context
    cdef CUgraph open_pointer(self) except NULL     # RuntimeError when it is no longer valid
    cdef int bury(self, CUgraphNode node) except -1         # the node is gone: so is what was below it


cdef Hierarchy new_hierarchy(CUgraph root, bint owned)
cdef GraphHandle graph_handle(Hierarchy hierarchy, CUgraph pointer, GraphHandle parent, CUgraphNode holder)
