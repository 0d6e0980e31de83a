"""Keeping Python objects alive for as long as a graph, its clones and its executables need them.

CUDA Driver API, "Graph Management", user objects: a graph holds references to a user object, clones and executables
get their own, and an executable keeps its own until its last launch is over. When the last reference goes, the driver
calls a destructor on a thread of its choice.
"""

from cupola.core.base._cuda cimport (
    CU_GRAPH_USER_OBJECT_MOVE, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC, CUgraph, CUresult, CUuserObject, check, cu,
)
from cupola.core.base._keep cimport drop_released as drop_kept, forget_kept, keep, release_kept


cdef int retain(CUgraph graph, object value) except -1:
    cdef CUuserObject native = _user_object(value)
    cdef CUresult status = cu.cuGraphRetainUserObject(graph, native, 1, CU_GRAPH_USER_OBJECT_MOVE)
    if status != 0:
        cu.cuUserObjectRelease(native, 1)
        return check(status, b"cuGraphRetainUserObject")
    return 0


cdef CUuserObject attach(CUgraph graph, object value) except NULL:
    cdef CUuserObject native = _user_object(value)
    cdef CUresult status = cu.cuGraphRetainUserObject(graph, native, 1, 0)
    if status != 0:
        cu.cuUserObjectRelease(native, 1)
        check(status, b"cuGraphRetainUserObject")
    return native


cdef int detach(CUgraph graph, CUuserObject native) except -1:
    cdef CUresult status = cu.cuGraphReleaseUserObject(graph, native, 1)
    cu.cuUserObjectRelease(native, 1)
    return check(status, b"cuGraphReleaseUserObject")


cdef CUuserObject _user_object(object value) except NULL:
    """A user object with one reference, which is the caller's."""
    cdef CUuserObject native
    cdef CUresult status
    cdef void* kept = keep(value, NULL)
    status = cu.cuUserObjectCreate(&native, kept, release_kept, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
    if status != 0:
        forget_kept(kept)
        check(status, b"cuUserObjectCreate")
    return native


cdef void drop_released() noexcept:
    drop_kept()
