/* Names in full, and names in messages. */
#include "library/library.h"

char *qualified_name(const char *name) {
    size_t size = strlen(module_info.name) + strlen(name) + 2;
    char *text = PyMem_Malloc(size);
    if (text) snprintf(text, size, "%s.%s", module_info.name, name);
    else PyErr_NoMemory();
    return text;
}

PyObject *bad_argument(const char *function, const char *argument) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (type == PyExc_TypeError || type == PyExc_OverflowError || type == PyExc_RuntimeError ||
        type == PyExc_IndexError)
        PyErr_Format(type, "%s, argument '%s': %S", function, argument, value);
    else PyErr_Restore(Py_XNewRef(type), Py_XNewRef(value), Py_XNewRef(traceback));
    Py_XDECREF(type), Py_XDECREF(value), Py_XDECREF(traceback);
    return NULL;
}
