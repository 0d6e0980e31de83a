/* Lists and tuples to C arrays and back. */
#include "arguments/arguments.h"

static int check_length(Py_ssize_t length, long long count) {
    if (length >= count) return 0;
    PyErr_Format(PyExc_RuntimeError, "List is too small: %zd < %lld", length, count);
    return -1;
}

/* Checks the type and length; returns the number of items, or -1. None has none. */
Py_ssize_t sequence_length(PyObject *object, long long count) {
    if (object != Py_None && !PyList_Check(object) && !PyTuple_Check(object)) {
        PyErr_Format(PyExc_TypeError, "expected a list or tuple, got %.200s", Py_TYPE(object)->tp_name);
        return -1;
    }
    Py_ssize_t length = object == Py_None ? 0 : PySequence_Fast_GET_SIZE(object);
    return check_length(length, count) < 0 ? -1 : length;
}

/* A new reference: converting an item may run Python code that changes the list. */
static PyObject *item_at(PyObject *sequence, Py_ssize_t i) {
#ifdef Py_GIL_DISABLED
    if (PyList_Check(sequence)) { /* another thread may shorten it between any two steps */
        PyObject *item = PyList_GetItemRef(sequence, i);
        if (!item) PyErr_SetString(PyExc_RuntimeError, "the list became shorter during the call");
        return item;
    }
#endif
    if (i < PySequence_Fast_GET_SIZE(sequence)) return Py_NewRef(PySequence_Fast_GET_ITEM(sequence, i));
    PyErr_SetString(PyExc_RuntimeError, "the list became shorter during the call");
    return NULL;
}

/* scratch_items() of `length` items at least: without a GIL another thread may have shortened the list since. */
static PyObject *items_of(PyObject *sequence, Py_ssize_t length, Scratch *scratch) {
    PyObject *items = scratch_items(scratch, sequence);
    return items && check_length(PyTuple_GET_SIZE(items), length) == 0 ? items : NULL;
}

int to_list(PyObject *object, ValueType type, long long count, Scratch *scratch, void **out) {
    *out = NULL;
    if (type.kind == KIND_RECORD && count <= 1 && is_record(object)) return to_record(object, type.index, false, out);
    if (type.kind == KIND_RECORD && is_record_array(object)) {
        Py_ssize_t there = to_records(object, type.index, scratch, out);
        return there < 0 ? -1 : check_length(there, count);
    }
    Py_ssize_t length = sequence_length(object, count);
    if (length <= 0) return (int)length;
    uint32_t align = type.kind == KIND_RECORD ? module_info.records[type.index].align : 1;
    char *array = scratch_alloc(scratch, type.size * (size_t)length + align);
    if (!array) return -1;
    array += (align - (uintptr_t)array % align) % align;
    for (Py_ssize_t i = 0; i < length; i++) {
        PyObject *keep, *item = item_at(object, i);
        if (!item) return -1;
        int status = value_set(type, array + (size_t)i * type.size, item, &keep);
        if (status == 0) status = scratch_keep(scratch, keep); /* the list may lose the item during the call */
        Py_DECREF(item);
        if (status < 0) return -1;
    }
    *out = array;
    return 0;
}

int to_strings(PyObject *object, long long count, Scratch *scratch, const char *const **out) {
    *out = NULL;
    Py_ssize_t length = sequence_length(object, count);
    if (length <= 0) return (int)length;
    const char **array = scratch_alloc(scratch, sizeof *array * (size_t)length);
    PyObject *items = array ? items_of(object, length, scratch) : NULL;
    if (!items) return -1;
    for (Py_ssize_t i = 0; i < length; i++)
        if (to_string(PyTuple_GET_ITEM(items, i), false, scratch, &array[i]) < 0) return -1;
    *out = array;
    return 0;
}

/* str or bytes */
int to_strs(PyObject *object, long long count, Scratch *scratch, const char *const **out) {
    *out = NULL;
    Py_ssize_t length = sequence_length(object, count);
    if (length <= 0) return (int)length;
    const char **array = scratch_alloc(scratch, sizeof *array * (size_t)length);
    PyObject *items = array ? items_of(object, length, scratch) : NULL;
    if (!items) return -1;
    for (Py_ssize_t i = 0; i < length; i++) {
        PyObject *item = PyTuple_GET_ITEM(items, i);
        int status =
            PyUnicode_Check(item) ? to_str(item, false, &array[i]) : to_string(item, false, scratch, &array[i]);
        if (status < 0) return -1;
    }
    *out = array;
    return 0;
}

int to_handles(PyObject *object, Scratch *scratch, void **out) {
    if (is_handle(object)) {
        *out = ((HandleObject *)object)->data;
        return 0;
    }
    if (PyList_Check(object) || PyTuple_Check(object))
        return to_list(object, (ValueType){KIND_ADDRESS, 0, sizeof(void *)}, -1, scratch, out);
    return to_address(object, scratch, out);
}

/* Records are copied: the array may be the library's own. */
PyObject *list_from(ValueType type, const void *data, size_t count) {
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list && i < count; i++) {
        char *where = (char *)data + i * type.size;
        PyObject *item;
        if (type.kind == KIND_RECORD) {
            item = record_new(type.index);
            if (item) memcpy(record_data(item), where, type.size);
        } else {
            item = value_get(type, where, NULL);
        }
        if (item) PyList_SET_ITEM(list, i, item);
        else Py_CLEAR(list);
    }
    return list;
}
