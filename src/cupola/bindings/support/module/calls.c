/* The frame of every call: binding arguments, and the result tuple. */
#include "module/module.h"

PyObject *succeeded_alone;

static const char *keyword_at(const char *keywords, int index) {
    while (index--) keywords = text_after(keywords);
    return keywords;
}

int bind_arguments(const char *function, const char *keywords, int count, int required, PyObject *const *args,
                   Py_ssize_t nargs, PyObject *names, PyObject **bound) {
    if (nargs > count) {
        PyErr_Format(PyExc_TypeError, "%s() takes %d argument%s, got %zd", function, count, count == 1 ? "" : "s",
                     nargs);
        return -1;
    }
    for (int i = 0; i < count; i++) bound[i] = i < nargs ? args[i] : NULL;
    for (Py_ssize_t k = 0; names && k < PyTuple_GET_SIZE(names); k++) {
        PyObject *name = PyTuple_GET_ITEM(names, k);
        int i = 0;
        const char *keyword = keywords;
        while (i < count && PyUnicode_CompareWithASCIIString(name, keyword) != 0) i++, keyword = text_after(keyword);
        if (i == count) {
            PyErr_Format(PyExc_TypeError, "%s() got an unexpected keyword argument %R", function, name);
            return -1;
        }
        if (bound[i]) {
            PyErr_Format(PyExc_TypeError, "%s() got two values for argument %R", function, name);
            return -1;
        }
        bound[i] = args[nargs + k];
    }
    for (int i = 0; i < required; i++) {
        if (!bound[i]) {
            PyErr_Format(PyExc_TypeError, "%s() is missing argument '%s'", function, keyword_at(keywords, i));
            return -1;
        }
    }
    return 0;
}

PyObject *succeeded_slow(void) {
    PyObject *status = enum_value(module_info.status, 0);
    PyObject *alone = status ? PyTuple_Pack(1, status) : NULL;
    Py_XDECREF(status);
    if (alone && publish_first(&succeeded_alone, alone)) module_settle();
    else Py_XDECREF(alone);
    return Py_XNewRef(PUBLISHED(succeeded_alone));
}

PyObject *failed(long long status, int outputs) {
    if (table_raise_pending() < 0) return NULL;
    PyObject *member = enum_value(module_info.status, status);
    PyObject *result = member ? PyTuple_New(outputs + 1) : NULL;
    if (!result) {
        Py_XDECREF(member);
        return NULL;
    }
    PyTuple_SET_ITEM(result, 0, member);
    for (int i = 1; i <= outputs; i++) PyTuple_SET_ITEM(result, i, Py_NewRef(Py_None));
    return result;
}

PyObject *result_tuple(long long status, PyObject **outputs, int count) {
    PyObject *member = NULL, *result = NULL;
    bool complete = true;
    for (int i = 0; i < count; i++) complete = complete && outputs[i];
    if (complete) {
        if (status == 0) {
            PyObject *alone = succeeded();
            member = alone ? Py_NewRef(PyTuple_GET_ITEM(alone, 0)) : NULL;
            Py_XDECREF(alone);
        } else {
            member = enum_value(module_info.status, status);
        }
        result = member ? PyTuple_New(count + 1) : NULL;
    }
    if (!result) {
        Py_XDECREF(member);
        for (int i = 0; i < count; i++) Py_XDECREF(outputs[i]);
        return NULL;
    }
    PyTuple_SET_ITEM(result, 0, member);
    for (int i = 0; i < count; i++) PyTuple_SET_ITEM(result, i + 1, outputs[i]);
    return result;
}

/* A tuple that the caller has already let go of is used again, as zip() does: most are unpacked at once. Only outputs
 * that refer to nothing else stay in it so long: ints, enum members and handles. Not without a GIL, when another thread
 * may take it at the same moment. */
#ifdef Py_GIL_DISABLED
PyObject *result_pair(PyObject *output) { return result_tuple(0, &output, 1); }
#else
PyObject *result_pair(PyObject *output) {
    static PyObject *last;
    if (UNLIKELY(!output || !succeeded_alone)) return result_tuple(0, &output, 1);
    if (LIKELY(last && Py_REFCNT(last) == 1)) {
        PyObject *before = PyTuple_GET_ITEM(last, 1);
        PyTuple_SET_ITEM(last, 1, output);
        Py_INCREF(last);
        Py_DECREF(before);
        return last;
    }
    PyObject *result = PyTuple_New(2);
    if (UNLIKELY(!result)) {
        Py_DECREF(output);
        return NULL;
    }
    PyTuple_SET_ITEM(result, 0, Py_NewRef(PyTuple_GET_ITEM(succeeded_alone, 0)));
    PyTuple_SET_ITEM(result, 1, output);
    if (PyLong_Check(output) || PyObject_TypeCheck(output, &HandleBase)) Py_XSETREF(last, Py_NewRef(result));
    return result;
}
#endif
