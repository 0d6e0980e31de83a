/* Arguments of modules whose functions raise: text, and memory whose size is checked. */
#include "scalars/scalars.h"

int to_str(PyObject *object, bool optional, const char **out) {
    if (optional && object == Py_None) {
        *out = NULL;
        return 0;
    }
    if (!PyUnicode_Check(object)) {
        PyErr_Format(PyExc_TypeError, "expected str%s, got %.200s", optional ? " or None" : "",
                     Py_TYPE(object)->tp_name);
        return -1;
    }
    Py_ssize_t length;
    *out = PyUnicode_AsUTF8AndSize(object, &length);
    if (!*out) return -1;
    if (strlen(*out) == (size_t)length) return 0;
    PyErr_SetString(PyExc_ValueError, "embedded null character");
    return -1;
}

/* The memory of an int (an address) or a buffer: contiguous, and of `*size` bytes, which is set to its size. */
static int to_memory(PyObject *object, int flags, Scratch *scratch, void **out, Py_ssize_t *size) {
    *size = -1;
    if (PyLong_Check(object)) return to_u64(object, (uint64_t *)out);
    bool writable = flags & PyBUF_WRITABLE;
    Py_buffer *buffer;
    if (!PyObject_CheckBuffer(object) || scratch_buffer(scratch, object, flags, &buffer) < 0) {
        PyErr_Format(PyExc_ValueError, "expected an address or a contiguous%s buffer, got %.200s",
                     writable ? ", writable" : "", Py_TYPE(object)->tp_name);
        return -1;
    }
    *out = buffer->buf;
    *size = buffer->len;
    return 0;
}

int to_data(PyObject *object, uint64_t size, Scratch *scratch, void **out) {
    Py_ssize_t length;
    if (to_memory(object, PyBUF_SIMPLE, scratch, out, &length) < 0) return -1;
    if (length < 0 || (uint64_t)length == size) return 0;
    PyErr_Format(PyExc_ValueError, "the buffer has %zd bytes, but the size is given as %llu", length,
                 (unsigned long long)size);
    return -1;
}

int to_output(PyObject *object, size_t needed, Scratch *scratch, void **out) {
    Py_ssize_t length;
    if (to_memory(object, PyBUF_WRITABLE, scratch, out, &length) < 0) return -1;
    if (length < 0 || (size_t)length >= needed) return 0;
    PyErr_Format(PyExc_ValueError, "the buffer has %zd bytes, but %zu are needed", length, needed);
    return -1;
}

/* str for text, else bytes-like; the rest of the field becomes zero. Returns the number of bytes. */
int to_chars(PyObject *object, bool text, char *field, size_t size) {
    Py_buffer buffer;
    const char *data;
    Py_ssize_t length;
    bool pinned = !text && !PyUnicode_Check(object);
    if (pinned) {
        if (PyObject_GetBuffer(object, &buffer, PyBUF_SIMPLE) < 0) return -1;
        data = buffer.buf, length = buffer.len;
    } else {
        if (to_str(object, false, &data) < 0) return -1;
        length = (Py_ssize_t)strlen(data);
    }
    int result = length <= (Py_ssize_t)size - text ? (int)length : -1;
    if (result >= 0) {
        memset(field, 0, size);
        memcpy(field, data, (size_t)length);
    } else {
        PyErr_Format(PyExc_ValueError, "%zd bytes do not fit into %zu", length, size - text);
    }
    if (pinned) PyBuffer_Release(&buffer);
    return result;
}

PyObject *text_from(const char *text) {
    if (!text) Py_RETURN_NONE;
    return PyBytes_FromString(text);
}

PyObject *from_chars(const char *field, size_t size) {
    if (!size) return PyUnicode_FromStringAndSize(NULL, 0); /* of no length, a field may be NULL */
    return PyUnicode_DecodeUTF8(field, (Py_ssize_t)strnlen(field, size), "replace");
}
