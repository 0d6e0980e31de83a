/* Releasing the GIL around calls that only ever wait for another thread.
 *
 * Queueing work waits when the queue of a stream is full (on an H200 behind 1,021 launches). The queue may wait for a
 * host function written in Python, so launches and copies release the GIL.
 *
 * Other calls take no place in that queue: recording an event without timing, letting a stream wait for one,
 * stream-ordered allocation and release, making and destroying events, streams and textures. They wait only for the lock of a
 * stream or context that another thread holds while it waits in a launch (tools/blocking_calls.c measures both on a GPU).
 * If the process has one Python thread, they keep the GIL, which saves as much time as the rest of such a call takes in
 * Python. If it has more, they release it, because one of those may be in a launch that ends only after another has run.
 *
 * Threads unknown to Python are not counted. So there is a deadlock if such a thread waits in a launch, behind a host
 * function written in Python, while the only Python thread uses the same stream. An allocation whose pool has no memory
 * until a free in another stream has run waits on the CPU device, which then releases the GIL itself
 * (cpu/driver/memory/pool_storage.c).
 *
 *     PyThreadState *others = cupola_let_others_run();
 *     status = cu->cuStreamWaitEvent(stream, event, 0);
 *     cupola_take_back(others);
 */
#ifndef CUPOLA_GIL_H
#define CUPOLA_GIL_H

#include <Python.h>

/* NULL when there is no other Python thread in this interpreter, and the GIL is kept. Where Python has no GIL the thread
 * always lets go of Python: the collector stops all threads that have not, and the host function that such a call waits
 * for would wait for the collector. */
static inline PyThreadState *cupola_let_others_run(void) {
#ifdef Py_GIL_DISABLED
    return PyEval_SaveThread();
#else
    PyThreadState *here = PyThreadState_Get();
    return here->next || here->prev ? PyEval_SaveThread() : NULL;
#endif
}

static inline void cupola_take_back(PyThreadState *others) {
    if (others) PyEval_RestoreThread(others);
}

#endif
