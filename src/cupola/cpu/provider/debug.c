/* What the debugger (cupola.cpu.debugger) asks of the engine: arguments from Python, and back. */
#define PY_SSIZE_T_CLEAN
#include "debug.h"

#include "engine/instruments/debug.h"

enum { MOST_BYTES = 1 << 24 };

PyObject *debug_ask(PyObject *self, PyObject *callback) {
    (void)self;
    cpu_debug_ask(callback == Py_None ? NULL : callback);
    Py_RETURN_NONE;
}

PyObject *debug_interrupt(PyObject *self, PyObject *on) {
    (void)self;
    const int truth = PyObject_IsTrue(on);
    if (truth < 0) return NULL;
    cpu_debug_interrupt(truth);
    Py_RETURN_NONE;
}

PyObject *debug_read(PyObject *self, PyObject *arguments) {
    int space;
    unsigned who;
    unsigned long long address;
    Py_ssize_t size;
    (void)self;
    if (!PyArg_ParseTuple(arguments, "iIKn:debug_read", &space, &who, &address, &size)) return NULL;
    if (size < 0 || size > MOST_BYTES) return PyErr_Format(PyExc_ValueError, "%zd bytes cannot be read at once", size);
    return cpu_debug_read(space, who, address, (size_t)size);
}

PyObject *debug_variable(PyObject *self, PyObject *place) {
    (void)self;
    const unsigned long number = PyLong_AsUnsignedLong(place);
    return PyErr_Occurred() ? NULL : cpu_debug_variable((uint32_t)number);
}

PyObject *debug_warps(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    return cpu_debug_warps();
}

PyObject *debug_barriers(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    return cpu_debug_barriers();
}

PyObject *debug_calls(PyObject *self, PyObject *thread) {
    (void)self;
    const unsigned long number = PyLong_AsUnsignedLong(thread);
    return PyErr_Occurred() ? NULL : cpu_debug_calls((uint32_t)number);
}

PyObject *debug_fault(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    return cpu_debug_fault();
}
