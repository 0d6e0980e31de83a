/* The functions of cupola.cpu._driver for the debugger (provider/debug.c). */
#ifndef CUPOLA_CPU_PROVIDER_DEBUG_H
#define CUPOLA_CPU_PROVIDER_DEBUG_H

#include <Python.h>

PyObject *debug_ask(PyObject *self, PyObject *callback);
PyObject *debug_interrupt(PyObject *self, PyObject *on);
PyObject *debug_read(PyObject *self, PyObject *arguments);
PyObject *debug_variable(PyObject *self, PyObject *place);
PyObject *debug_warps(PyObject *self, PyObject *unused);
PyObject *debug_barriers(PyObject *self, PyObject *unused);
PyObject *debug_calls(PyObject *self, PyObject *thread);
PyObject *debug_fault(PyObject *self, PyObject *unused);

#define DEBUG_METHODS                                                                                                 \
    {"debug_ask", debug_ask, METH_O,                                                                                  \
     PyDoc_STR("debug_ask(callback: Callable | None) -> None\n\nHave it called where threads stop "                   \
               "(engine/instruments/debug.c).")},                                                                     \
        {"debug_interrupt", debug_interrupt, METH_O,                                                                  \
         PyDoc_STR("debug_interrupt(on: bool) -> None\n\nWhether the next thread that comes to a line stops.")},      \
        {"debug_read", debug_read, METH_VARARGS,                                                                      \
         PyDoc_STR("debug_read(space: int, who: int, address: int, size: int) -> bytes | None\n\nMemory as the "      \
                   "stopped launch sees it.")},                                                                       \
        {"debug_variable", debug_variable, METH_O,                                                                    \
         PyDoc_STR("debug_variable(place: int) -> int\n\nThe address of a variable of the module.")},                 \
        {"debug_warps", debug_warps, METH_NOARGS,                                                                     \
         PyDoc_STR("debug_warps() -> list\n\nThe warps of the block that is stopped.")},                              \
        {"debug_barriers", debug_barriers, METH_NOARGS,                                                               \
         PyDoc_STR("debug_barriers() -> list\n\nThe barriers at which its threads wait.")},                           \
        {"debug_calls", debug_calls, METH_O,                                                                          \
         PyDoc_STR("debug_calls(thread: int) -> tuple[int, ...]\n\nThe calls that a thread is in.")},                 \
    {                                                                                                                 \
        "debug_fault", debug_fault, METH_NOARGS, PyDoc_STR("debug_fault() -> tuple\n\nThe fault of the launch.")      \
    }

#endif
