/* The trace for Python: cupola.profile reads it when it has ended. */
#include "provider/trace.h"

#include "driver/inject/inject.h"
#include "driver/trace/trace.h"

PyObject *begin_trace(PyObject *self, PyObject *arguments) {
    unsigned long long most;
    (void)self;
    if (!PyArg_ParseTuple(arguments, "K:begin_trace", &most)) return NULL;
    trace_begin((size_t)most);
    injectable_update();
    return PyLong_FromUnsignedLongLong(clock_now());
}

PyObject *end_trace(PyObject *self, PyObject *arguments) {
    (void)self;
    (void)arguments;
    trace_end();
    injectable_update();
    PyObject *list = PyList_New(0);
    struct trace_record r;
    for (size_t i = 0; list && trace_read(i, &r); i++) {
        PyObject *record =
            Py_BuildValue("(iKKKKKKs(III)(III)IiiCC)", r.kind, (unsigned long long)r.begin, (unsigned long long)r.end,
                          (unsigned long long)r.call, (unsigned long long)r.place, (unsigned long long)r.bytes,
                          (unsigned long long)r.memory, r.name, r.grid[0], r.grid[1], r.grid[2], r.block[0], r.block[1],
                          r.block[2], r.shared, (int)r.device, (int)r.status, r.from ? r.from : ' ', r.to ? r.to : ' ');
        if (!record || PyList_Append(list, record)) Py_CLEAR(list);
        Py_XDECREF(record);
    }
    return list ? Py_BuildValue("(Nn)", list, (Py_ssize_t)trace_lost()) : NULL;
}
