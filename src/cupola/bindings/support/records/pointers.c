/* Arguments that are pointers: memory, strings, buffers and handles that the call writes. */
#include "records/records.h"

/* A number that exports a buffer, such as a NumPy scalar, is still a number: it has no dimensions and cannot
 * be written, which tells it from an array without dimensions. */
static bool is_scalar(PyObject *object, const Py_buffer *buffer) {
    return PyIndex_Check(object) && buffer->ndim == 0 && buffer->readonly;
}

static int to_number(PyObject *object, void **out) {
    uint64_t address;
    if (to_u64(object, &address) < 0) {
        if (PyErr_ExceptionMatches(PyExc_TypeError) || PyErr_ExceptionMatches(PyExc_OverflowError))
            PyErr_Format(
                PyExc_TypeError,
                "Provided argument is of type %.200s but expected Type None, int or object with Buffer Protocol",
                Py_TYPE(object)->tp_name);
        return -1;
    }
    *out = (void *)address;
    return 0;
}

int to_address_slow(PyObject *object, Scratch *scratch, void **out) {
    if (object == Py_None) {
        *out = NULL;
        return 0;
    }
    if (PyLong_Check(object)) return to_number(object, out);
    if (is_handle(object)) {
        *out = (void *)handle_load((HandleObject *)object);
        return 0;
    }
    if (is_record(object)) {
        *out = record_data(object);
        return 0;
    }
    if (!PyObject_CheckBuffer(object)) return to_number(object, out);
    Py_buffer *buffer;
    if (scratch_buffer(scratch, object, PyBUF_ANY_CONTIGUOUS, &buffer) < 0) return -1;
    if (is_scalar(object, buffer)) return to_number(object, out);
    *out = buffer->buf;
    return 0;
}

int to_string(PyObject *object, bool optional, Scratch *scratch, const char **out) {
    if (optional && object == Py_None) {
        *out = NULL;
        return 0;
    }
    if (LIKELY(PyBytes_Check(object))) {
        *out = PyBytes_AS_STRING(object);
        return 0;
    }
    if (PyByteArray_Check(object)) {
        Py_buffer *buffer; /* a bytearray ends with a NUL too */
        if (scratch_buffer(scratch, object, PyBUF_SIMPLE, &buffer) < 0) return -1;
        *out = buffer->buf;
        return 0;
    }
    PyErr_Format(PyExc_TypeError, "expected bytes%s, %.200s found", optional ? " or None" : "",
                 Py_TYPE(object)->tp_name);
    return -1;
}

/* The library fills the buffer in place; bytes objects are taken for compatibility with existing programs. */
int to_buffer(PyObject *object, Scratch *scratch, char **out) {
    if (PyBytes_Check(object)) {
        *out = PyBytes_AS_STRING(object);
        return 0;
    }
    if (!PyObject_CheckBuffer(object)) {
        PyErr_Format(PyExc_TypeError, "expected bytes or bytearray, %.200s found", Py_TYPE(object)->tp_name);
        return -1;
    }
    Py_buffer *buffer;
    if (scratch_buffer(scratch, object, PyBUF_WRITABLE, &buffer) < 0) return -1;
    *out = buffer->buf;
    return 0;
}

int to_str_at(PyObject *object, Scratch *scratch, void **out) {
    return PyUnicode_Check(object) ? to_str(object, false, (const char **)out) : to_address(object, scratch, out);
}
