/* Functions of the module _driver about the trace (trace.c). */
#ifndef CUPOLA_CPU_PROVIDER_TRACE_H
#define CUPOLA_CPU_PROVIDER_TRACE_H

#include <Python.h>

PyObject *begin_trace(PyObject *self, PyObject *arguments);
PyObject *end_trace(PyObject *self, PyObject *arguments);

#endif
