"""Keeping Python objects alive until the driver no longer needs them.

The driver says so by calling a function, on a thread of its choice, where neither CUDA nor Python may be used (CUDA
Driver API, cuLaunchHostFunc and cuUserObjectCreate). Ours puts the object on a list without taking any lock; a Python
thread empties the list soon after.
"""

from cpython.ref cimport Py_DECREF, Py_INCREF, PyObject
from libc.stdlib cimport free, malloc

from cupola.core.base._cuda cimport CUresult, CUstream

cdef extern from *:
    """
    #include <stdatomic.h>
    #include <stdlib.h>

    typedef struct cupola_kept {
        struct cupola_kept *next;
        PyObject *value;
        void *memory;
    } cupola_kept;

    static _Atomic(cupola_kept *) cupola_released;

    static int cupola_drop_released(void *unused)
    {
        (void)unused;
        cupola_kept *item = atomic_exchange(&cupola_released, NULL);
        while (item) {
            cupola_kept *next = item->next;
            Py_DECREF(item->value);
            free(item->memory);
            free(item);
            item = next;
        }
        return 0;
    }

    /* Should the interpreter's list of pending calls be full, the next call of drop_released() empties ours. */
    static void cupola_release(void *data)
    {
        cupola_kept *item = data;
        item->next = atomic_load(&cupola_released);
        while (!atomic_compare_exchange_weak(&cupola_released, &item->next, item))
            ;
        if (Py_IsInitialized())     /* a driver's thread may outlive the interpreter */
            Py_AddPendingCall(cupola_drop_released, NULL);
    }
    """
    ctypedef struct cupola_kept:
        PyObject* value
        void* memory
    int cupola_drop_released(void*) noexcept
    void cupola_release(void*) noexcept nogil


cdef void* keep(object value, void* memory) except NULL:
    cdef cupola_kept* item = <cupola_kept*>malloc(sizeof(cupola_kept))
    if item == NULL:
        free(memory)
        raise MemoryError()
    item.value, item.memory = <PyObject*>value, memory
    Py_INCREF(value)
    return item


cdef void release_kept(void* kept) noexcept nogil:
    cupola_release(kept)


cdef void release_kept_behind(CUstream stream, CUresult status, void* kept) noexcept nogil:
    cupola_release(kept)


cdef void forget_kept(void* kept) noexcept:
    cdef cupola_kept* item = <cupola_kept*>kept
    value = <object>item.value
    free(item.memory)
    free(item)
    Py_DECREF(value)


cdef void drop_released() noexcept:
    cupola_drop_released(NULL)
