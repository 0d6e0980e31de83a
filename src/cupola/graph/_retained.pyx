"""Keeping Python objects alive for as long as a graph, its clones and its executables need them.

CUDA Driver API, "Graph Management", user objects: a graph holds references to a user object, clones and executables
get their own, and an executable keeps its own until its last launch is over. When the last reference goes, the driver
calls a destructor on a thread of its choice, where neither CUDA nor Python may be used. Ours puts the object on a
list without taking any lock; a Python thread empties the list soon after.
"""

from cpython.ref cimport Py_DECREF, Py_INCREF, PyObject
from libc.stdlib cimport free, malloc

from cupola.core._cuda cimport (
    CU_GRAPH_USER_OBJECT_MOVE, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC, CUgraph, CUresult, CUuserObject, check, cu,
)

cdef extern from *:
    """
    #include <stdatomic.h>
    #include <stdlib.h>

    typedef struct cupola_retained {
        struct cupola_retained *next;
        PyObject *value;
        void *memory;
    } cupola_retained;

    static _Atomic(cupola_retained *) cupola_released;

    static int cupola_drop_released(void *unused)
    {
        (void)unused;
        cupola_retained *item = atomic_exchange(&cupola_released, NULL);
        while (item) {
            cupola_retained *next = item->next;
            Py_DECREF(item->value);
            free(item->memory);
            free(item);
            item = next;
        }
        return 0;
    }

    /* The driver's destructor. Should the interpreter's list of pending calls be full, the next graph to be closed
       or built empties ours. */
    static void cupola_release(void *data)
    {
        cupola_retained *item = data;
        item->next = atomic_load(&cupola_released);
        while (!atomic_compare_exchange_weak(&cupola_released, &item->next, item))
            ;
        if (Py_IsInitialized())     /* a driver's thread may outlive the interpreter */
            Py_AddPendingCall(cupola_drop_released, NULL);
    }
    """
    ctypedef struct cupola_retained:
        PyObject* value
        void* memory
    int cupola_drop_released(void*) noexcept
    void cupola_release(void*) noexcept nogil


cdef int retain(CUgraph graph, object value, void* memory) except -1:
    cdef CUuserObject native
    cdef CUresult status
    cdef cupola_retained* item = <cupola_retained*>malloc(sizeof(cupola_retained))
    if item == NULL:
        free(memory)
        raise MemoryError()
    item.value, item.memory = <PyObject*>value, memory
    Py_INCREF(value)
    status = cu.cuUserObjectCreate(&native, item, cupola_release, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
    if status != 0:
        free(memory)
        free(item)
        Py_DECREF(value)
        return check(status, b"cuUserObjectCreate")
    status = cu.cuGraphRetainUserObject(graph, native, 1, CU_GRAPH_USER_OBJECT_MOVE)
    if status != 0:
        cu.cuUserObjectRelease(native, 1)
        return check(status, b"cuGraphRetainUserObject")
    return 0


cdef void drop_released() noexcept:
    cupola_drop_released(NULL)
