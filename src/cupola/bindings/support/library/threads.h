/* Where Python has no GIL (PEP 703, the builds whose names end in "t"), several threads are in this code at once. What
 * the modules make when it is first needed is then made outside of any lock and published with one atomic step: whoever
 * comes second drops what it made, since two threads must never see two classes of one name. Such things are never
 * replaced or freed, so reading them needs no lock. That is right with a GIL, too, which Python code that runs
 * meanwhile may give up, and there it costs nothing. Locks are for the few things that do change, and only where there
 * is no GIL. */
#ifndef CUPOLA_SUPPORT_THREADS_H
#define CUPOLA_SUPPORT_THREADS_H

#include <Python.h>
#include <stdbool.h>

/* What another thread published, whole. */
#define PUBLISHED(place) __atomic_load_n(&(place), __ATOMIC_ACQUIRE)
#define PUBLISH(place, value) __atomic_store_n(&(place), value, __ATOMIC_RELEASE)

/* Publishes `made` where nothing is yet; false: another thread was first. `place` is the address of any pointer. */
static inline bool publish_first(void *place, void *made) {
    void *nothing = NULL;
    return __atomic_compare_exchange_n((void **)place, &nothing, made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

/* A new object, or NULL with an exception set, becomes the one that all threads share: borrowed. */
static inline void *publish_object(void *place, void *made) {
    if (made && !publish_first(place, made)) Py_DECREF((PyObject *)made);
    return __atomic_load_n((void **)place, __ATOMIC_ACQUIRE);
}

#ifdef Py_GIL_DISABLED
typedef PyMutex Lock;
#define LOCK(lock) PyMutex_Lock(lock)
#define UNLOCK(lock) PyMutex_Unlock(lock)
#define BEGIN_ALONE(object) Py_BEGIN_CRITICAL_SECTION((PyObject *)(object))
#define END_ALONE() Py_END_CRITICAL_SECTION()
#else
typedef char Lock;
#define LOCK(lock) ((void)(lock))
#define UNLOCK(lock) ((void)(lock))
#define BEGIN_ALONE(object) {
#define END_ALONE() }
#endif

#endif
