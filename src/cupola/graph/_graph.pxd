from cupola.core.base._cuda cimport CUcontext, CUgraph, CUgraphExec, CUresult
from cupola.core.base._shared cimport Turn, Uses, begin_use, end_use, give_turn, turn_is_taken
from cupola.core.device._context cimport is_gone
from cupola.graph._hierarchy cimport GraphHandle
from cupola.graph._parameters cimport Parameters
from cupola.graph._structure cimport Structure


cdef class Retired:
    """Objects that an executable needed before a change, and that running launches may still need."""
    cdef list values
    cdef object __weakref__


cdef class Graph:
    cdef CUgraphExec pointer    # NULL once closed
    cdef Structure structure    # of the graph that it was made of
    cdef CUcontext context      # of the stream that it was recorded in
    cdef unsigned long born     # `resets` at that time
    cdef bint launched          # it may have been
    cdef tuple kept             # what the nodes of the definition needed at that time
    cdef dict changed           # address of a node -> what it has needed since it was changed in the executable
    cdef list waiting           # what it needed before it was changed; some launches of that time may not be over
    cdef object retiring        # weak: the Retired that is kept until those are over; None: there was none
    cdef Uses uses              # of `pointer`, by calls
    cdef Turn turn              # of these calls
    cdef object drawn           # weak: the GraphHandle that it was made of, to draw it
    cdef object __weakref__
    cdef CUgraphExec open_pointer(self) except NULL     # RuntimeError once closed, CUDAError once gone
    # The same for the duration of a call that ends with end(): the graph is not destroyed meanwhile, and no other thread
    # uses it. Who needs the lock of a Structure as well takes it behind this.
    cdef inline CUgraphExec begin(self) except NULL:
        cdef CUgraphExec pointer = self.pointer
        if pointer == NULL or is_gone(self.context, self.born) or not begin_use(&self.uses):
            self.refuse()
        if turn_is_taken(&self.turn):
            self.wait(pointer)
        return pointer

    cdef inline void end(self, CUgraphExec pointer) noexcept:
        give_turn(&self.turn)
        if end_use(&self.uses):
            self.destroy_soon(pointer)

    cdef int wait(self, CUgraphExec pointer) except -1
    cdef int refuse(self) except -1
    cdef void destroy_soon(self, CUgraphExec pointer) noexcept      # what closing leaves to the last call that uses it
    cdef int change(self, object node, Parameters parameters) except -1
    cdef int retire(self, CUgraphExec pointer, tuple values) except -1
    cdef CUresult destroy(self, CUgraphExec pointer) except *
    cdef CUresult destroy_now(self, CUgraphExec pointer) except *   # with the structure's lock
    cdef Graph remains(self, CUgraphExec pointer)       # all of it, as another object; this one is closed


# The class of the view for each class of nodes; _executable_nodes fills it.
cdef dict executable_classes

cdef Graph instantiate(GraphHandle handle, CUcontext context, object options)
cdef int print_dot(CUgraph graph, object path, object options) except -1
