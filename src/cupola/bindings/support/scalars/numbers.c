/* Python numbers to C. */
#include "scalars/scalars.h"

#include <math.h>

/* Besides ints, whatever has __index__ stands for its number, and so do a foreign handle that only has __int__ and a
 * float without a fraction: sizes are often quotients. A fraction would be lost silently, and a str has no number. */
PyObject *as_integer(PyObject *object) {
    if (PyFloat_Check(object)) {
        double number = PyFloat_AS_DOUBLE(object);
        if (number == floor(number) && isfinite(number)) return PyLong_FromDouble(number);
        PyErr_Format(PyExc_TypeError, "an integer is required, got %R", object);
        return NULL;
    }
    PyNumberMethods *number = Py_TYPE(object)->tp_as_number;
    if (number && number->nb_index) return PyNumber_Index(object);
    if (number && number->nb_int && !number->nb_add && !PyObject_CheckBuffer(object)) return PyNumber_Long(object);
    PyErr_Format(PyExc_TypeError, "an integer is required, got %.200s", Py_TYPE(object)->tp_name);
    return NULL;
}

int to_unsigned_slow(PyObject *object, uint64_t max, uint64_t *out) {
    if (LIKELY(is_short(object, out) && *out <= max)) return 0;
    if (LIKELY(PyLong_Check(object))) {
        *out = PyLong_AsSize_t(object); /* faster than PyLong_AsUnsignedLongLong before Python 3.12 */
    } else {
        PyObject *integer = as_integer(object);
        if (!integer) return -1;
        *out = PyLong_AsSize_t(integer);
        Py_DECREF(integer);
    }
    if (UNLIKELY(*out == (uint64_t)-1) && PyErr_Occurred()) return -1;
    if (UNLIKELY(*out > max)) {
        PyErr_Format(PyExc_OverflowError, "%llu is larger than %llu", (unsigned long long)*out,
                     (unsigned long long)max);
        return -1;
    }
    return 0;
}

int to_signed_slow(PyObject *object, int64_t min, int64_t max, int64_t *out) {
    if (LIKELY(PyLong_Check(object))) {
        *out = PyLong_AsLong(object);
    } else {
        PyObject *integer = as_integer(object);
        if (!integer) return -1;
        *out = PyLong_AsLong(integer);
        Py_DECREF(integer);
    }
    if (UNLIKELY(*out == -1) && PyErr_Occurred()) return -1;
    if (UNLIKELY(*out < min || *out > max)) {
        PyErr_Format(PyExc_OverflowError, "%lld is not between %lld and %lld", (long long)*out, (long long)min,
                     (long long)max);
        return -1;
    }
    return 0;
}

int to_f64(PyObject *object, double *out) {
    *out = PyFloat_AsDouble(object);
    return *out == -1.0 && PyErr_Occurred() ? -1 : 0;
}

int to_f32(PyObject *object, float *out) {
    double wide;
    if (to_f64(object, &wide) < 0) return -1;
    *out = (float)wide;
    return 0;
}

/* The sign of C enums is not fixed, and flags such as 1 << 31 are negative in one reading and positive in the
 * other: both are taken. */
int to_enum(PyObject *object, int *out) {
    if (object == Py_None) {
        PyErr_SetString(PyExc_TypeError, "must not be None");
        return -1;
    }
    int64_t wide;
    if (to_signed_slow(object, INT32_MIN, UINT32_MAX, &wide) < 0) return -1;
    *out = (int)(uint32_t)wide;
    return 0;
}

PyObject *hexadecimal(uint64_t value) {
    char text[24];
    PyOS_snprintf(text, sizeof text, "0x%llx", (unsigned long long)value);
    return PyUnicode_FromString(text);
}
