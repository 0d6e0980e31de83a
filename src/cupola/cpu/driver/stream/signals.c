/* Signals of Python while the host waits: Ctrl-C must end a wait, and a second one the kernels.
 *
 * Only Python's main thread runs handlers of signals, and only when it gets to the interpreter. So where that thread
 * waits, it looks from time to time, and it carries out only work that will end soon. A
 * handler's exception stays set on this thread, and the status of the wait leads the bindings to it
 * (table_raise_pending). */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <unistd.h>

#include "engine/engine.h"
#include "stream.h"

bool signals_are_ours(void) {
    static __thread signed char ours; /* 0: not known, 1: yes, -1: no */
    if (unlikely(!ours)) ours = gettid() == getpid() ? 1 : -1;
    return ours > 0 && Py_IsInitialized() && PyGILState_GetThisThreadState();
}

/* Run the handlers of signals that have come. False: one of them raised an exception, which is set. */
bool signals_handled(void) {
    PyGILState_STATE gil = PyGILState_Ensure();
    bool handled = PyErr_Occurred() || !PyErr_CheckSignals();
    PyGILState_Release(gil);
    if (!handled) cpu_stop_interrupted();
    return handled;
}

/* In a wait that must not end early. What was raised is told later, Ctrl-C once the wait is over. */
void signals_handle(bool *interrupted) {
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    if (PyErr_CheckSignals()) {
        cpu_stop_interrupted();
        if (PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) *interrupted = true, PyErr_Clear();
        else PyErr_WriteUnraisable(NULL);
    }
    PyErr_Restore(type, value, traceback);
    PyGILState_Release(gil);
}

void signals_again(void) { PyErr_SetInterrupt(); }
