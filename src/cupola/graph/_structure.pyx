"""Who may change a graph, or destroy an executable made of it.

The driver does not lock graphs: calls about one graph must not overlap (CUDA Driver API, Graph Management). That goes for
the destruction of an executable, too: on an H200 it crashes the process while another thread makes an executable of the
same definition, adds or removes a node there, or copies the definition into another. So each of these takes a lock, one
for each hierarchy of graphs.

An executable is often destroyed by the garbage collector, on any thread and at any time, and must not wait there: the
thread with the lock may itself wait in the driver for a host function, which waits for the GIL. If the lock cannot be had
at once, the executable is left with the lock, and destroyed by the thread that gives it back.
"""

from _thread import RLock

from cupola.core.base._cuda cimport CUDA_ERROR_NOT_PERMITTED, check
from cupola.core.device._later cimport in_host_function

cimport cython


@cython.no_gc_clear     # destructors of what is collected with it need the lock
cdef class Structure:
    def __cinit__(self):
        self.lock = RLock()     # of the same thread: the collector may come in between
        self.abandoned = []

    cdef int take(self) except -1:
        # A host function must not wait for the driver, and the driver would refuse the call that follows.
        if not self.lock.acquire(not in_host_function()):
            check(CUDA_ERROR_NOT_PERMITTED, b"a change of a graph in a host function")
        self.depth += 1
        return 0

    cdef bint try_take(self) except -1:
        if not self.lock.acquire(False):
            return False
        self.depth += 1
        return True

    cdef int give(self) except -1:
        cdef bint last = self.depth == 1
        while True:
            while last and self.abandoned:
                self.abandoned.pop()        # its destructor takes the lock once more
            self.depth -= 1
            self.lock.release()
            # One may have been left between the two lines above.
            if not last or not self.abandoned or not self.try_take():
                return 0

    cdef int abandon(self, object executable) except -1:
        self.abandoned.append(executable)
        if self.try_take():     # given back in the meantime
            self.give()
        return 0


cdef int take_both(Structure one, Structure other) except -1:
    cdef Structure first = one, second = other
    if other is None or other is one:
        return one.take()
    if <void*>other < <void*>one:
        first, second = other, one
    first.take()
    try:
        second.take()
    except BaseException:       # Ctrl-C
        first.give()
        raise
    return 0


cdef int give_both(Structure one, Structure other) except -1:
    try:
        if other is not None and other is not one:
            other.give()
    finally:
        one.give()
    return 0
