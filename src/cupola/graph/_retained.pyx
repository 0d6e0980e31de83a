"""What graphs, and the driver's copies of them, keep alive: user objects.

CUDA Driver API, "Graph Management", user objects: a graph holds references to a user object, and clones, child graphs
and executables get their own. When the last reference goes, the driver calls a destructor on a thread of its choice.
Executables must not get any, because launching one that has some takes several times as long. So the graph's user
objects are taken off while an executable is made or updated (Hierarchy.take_off).
"""

from cupola.core.base._cuda cimport (
    CU_USER_OBJECT_NO_DESTRUCTOR_SYNC, CUgraph, CUresult, CUuserObject, check, cu, driver_usable, report,
)
from cupola.core.base._keep cimport drop_released as drop_kept, forget_kept, keep, release_kept


cdef class Hold:
    def __dealloc__(self):
        if self.native != NULL and driver_usable():
            report(cu.cuUserObjectRelease(self.native, 1), b"cuUserObjectRelease")

    cdef int attach(self) except -1:
        cdef CUresult status
        if not self.attached and not self.dropped:
            with nogil:
                status = cu.cuGraphRetainUserObject(self.graph, self.native, 1, 0)
            check(status, b"cuGraphRetainUserObject")
            self.attached = True
        return 0

    cdef int detach(self) except -1:
        cdef CUresult status
        if self.attached:
            self.attached = False
            with nogil:
                status = cu.cuGraphReleaseUserObject(self.graph, self.native, 1)
            check(status, b"cuGraphReleaseUserObject")
        return 0

    cdef int let_go(self) except -1:
        self.dropped = True
        return self.detach()

    cdef void forget(self):
        self.dropped, self.attached = True, False


cdef Hold hold(CUgraph graph, object value):
    cdef Hold made = Hold.__new__(Hold)
    cdef CUuserObject native
    cdef void* kept = keep(value, NULL)
    cdef CUresult status = cu.cuUserObjectCreate(&native, kept, release_kept, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
    if status != 0:
        forget_kept(kept)
        check(status, b"cuUserObjectCreate")
    made.native, made.graph, made.value = native, graph, value
    made.attach()
    return made


cdef void drop_released() noexcept:
    drop_kept()
