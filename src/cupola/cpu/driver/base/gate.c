/* The gate before the driver: closed while a checkpoint of this process is being made or stands (driver/checkpoint).
 *
 * What an H200 shows: calls that make, change or free something, or that give a device work, wait until the process is
 * unlocked; calls that only ask are answered. So there are two ways to enter: calls that ask use enter() and the forms
 * with _to_ask. No lock may be held at the gate, since work that is still running may need it.
 *
 * A thread waits without Python's global lock: the thread that is to open the gate may be one of Python's. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base.h"

static _Atomic uint32_t closed; /* a futex */

static void wait(void) {
    while (atomic_load_explicit(&closed, memory_order_acquire))
        syscall(SYS_futex, &closed, FUTEX_WAIT_PRIVATE, 1, NULL, NULL, 0);
}

void gate_wait(void) {
    if (thread_state.in_callback) return; /* of work that the gate waits for */
    bool python = Py_IsInitialized() && PyGILState_GetThisThreadState() && PyGILState_Check();
    PyThreadState *thread = python ? PyEval_SaveThread() : NULL;
    wait();
    if (thread) PyEval_RestoreThread(thread);
}

void gate_close(void) {
    atomic_store(&closed, 1);
    driver_phase = DRIVER_LOCKED;
}

void gate_open(void) {
    driver_phase = DRIVER_READY;
    atomic_store(&closed, 0);
    syscall(SYS_futex, &closed, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}
