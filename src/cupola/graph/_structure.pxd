"""The lock of a graph's structure, and the executables that wait for it."""


cdef class Structure:
    """One for each hierarchy of graphs, shared with the executables made of it."""
    cdef object lock
    cdef int depth          # how often the thread that has it took it
    cdef list abandoned     # executables that nobody uses, to be destroyed by whoever has the lock
    cdef int take(self) except -1
    cdef bint try_take(self) except -1      # whether it could be had at once
    cdef int give(self) except -1
    cdef int abandon(self, object executable) except -1     # destroy it now, or leave that to the thread that has the lock


# Those of a graph and of one that is copied into it (None: there is none), in an order that all threads keep.
cdef int take_both(Structure one, Structure other) except -1
cdef int give_both(Structure one, Structure other) except -1
