/* Kernel arguments: `void **kernelParams`, one pointer for each argument's value.
 *
 * Python gives them as an address, as a buffer of addresses, or as a pair ((values), (types)). A type is a
 * ctypes scalar, into which the value is converted, or None for a value that has memory of its own (a ctypes
 * structure, a handle, a record) or that is an enum member. Beside c_void_p, what has memory of its own stands for
 * the address of that memory. A handle that holds its value itself is the value: nobody means Python's memory. */
#include "records/records.h"

#define SLOT 16 /* bytes for one converted value */

/* Memory of a value of another package's class, such as those of cuda.bindings: 1, or 0 if it does not say, or -1. */
static int foreign_memory(PyObject *value, void **pointer) {
    PyObject *method = PyObject_GetAttrString(value, "getPtr");
    if (!method && PyErr_ExceptionMatches(PyExc_AttributeError)) {
        PyErr_Clear();
        return 0;
    }
    PyObject *address = method ? PyObject_CallNoArgs(method) : NULL;
    uint64_t number;
    int status = address ? to_u64(address, &number) : -1;
    if (status == 0) *pointer = (void *)number;
    Py_XDECREF(method), Py_XDECREF(address);
    return status < 0 ? -1 : 1;
}

/* A value that knows its own layout. */
static int own_memory(PyObject *value, char *slot, Scratch *scratch, void **pointer) {
    if (is_handle(value)) {
        *pointer = ((HandleObject *)value)->data;
        return 0;
    }
    if (is_record(value) || is_foreign_record(value)) {
        *pointer = record_data(value);
        return 0;
    }
    if (PyLong_Check(value) && !PyLong_CheckExact(value) && !PyBool_Check(value)) {
        *pointer = slot;
        return to_enum(value, (int *)slot);
    }
    if (PyObject_CheckBuffer(value)) {
        Py_buffer *buffer;
        if (scratch_buffer(scratch, value, PyBUF_SIMPLE, &buffer) < 0) return -1;
        *pointer = buffer->buf;
        return 0;
    }
    int known = foreign_memory(value, pointer);
    if (known) return known < 0 ? -1 : 0;
    PyErr_Format(PyExc_TypeError, "a kernel argument of type %.200s needs a ctypes type", Py_TYPE(value)->tp_name);
    return -1;
}

/* ctypes scalars of earlier launches. Without a GIL the first type of a place stays there: nobody may change what another
 * thread is reading. */
static struct {
    PyObject *type;
    char letter;
    uint8_t bits; /* a non-negative int of so many bits has the type's value in its low bytes */
} known[64];
static Lock learning;

static inline size_t place_of(PyObject *type) {
    return ((uintptr_t)type >> 4 ^ (uintptr_t)type >> 10) % COUNT_OF(known);
}

static uint8_t bits_of(char letter) {
    switch (letter) {
        case 'b': return 7;
        case 'B': return 8;
        case 'h': return 15;
        case 'H': return 16;
        case 'i': return 31;
        case 'I': return 32;
        case 'l':
        case 'L':
        case 'q':
        case 'Q':
        case 'P': return 63;
        default: return 0; /* zero has no bits, in a float either */
    }
}

static void learn(size_t place, PyObject *type, char letter) {
    PyObject *forgotten = NULL;
    LOCK(&learning);
#ifdef Py_GIL_DISABLED
    bool vacant = !known[place].type;
#else
    bool vacant = true;
#endif
    if (vacant) {
        forgotten = known[place].type;
        known[place].letter = letter;
        known[place].bits = bits_of(letter);
        PUBLISH(known[place].type, Py_NewRef(type));
    }
    UNLOCK(&learning);
    Py_XDECREF(forgotten);
}

/* The letter by which ctypes knows a scalar type, or 0 with TypeError set. */
static char code_of(PyObject *type) {
    size_t place = place_of(type);
    if (LIKELY(PUBLISHED(known[place].type) == type)) return known[place].letter;
    PyObject *code = PyObject_GetAttrString(type, "_type_");
    char letter = 0;
    if (code && PyUnicode_Check(code) && PyUnicode_GET_LENGTH(code) == 1 && PyUnicode_READ_CHAR(code, 0) < 128)
        letter = (char)PyUnicode_READ_CHAR(code, 0);
    Py_XDECREF(code);
    if (!letter || !strchr("cubBhHiIlLqQfd?P", letter)) {
        PyErr_Format(PyExc_TypeError, "Unsupported type: %R", type);
        return 0;
    }
    if (letter == 'u') return letter; /* the quick way would take 0 for it */
    learn(place, type, letter);
    return letter;
}

/* What most launches pass: an int or a float of a type that is known already. False: it is something else. */
static inline bool fill_usual(PyObject *value, PyObject *type, char *slot) {
    size_t place = place_of(type);
    uint64_t number;
    if (PUBLISHED(known[place].type) != type) return false;
    if (is_short(value, &number)) {
        memcpy(slot, &number, sizeof number); /* the low bytes come first */
        return number >> known[place].bits == 0;
    }
    if (known[place].letter != 'd' && known[place].letter != 'f') return false;
    if (!PyFloat_CheckExact(value)) return false;
    double wide = PyFloat_AS_DOUBLE(value);
    float narrow = (float)wide;
    if (known[place].letter == 'd') memcpy(slot, &wide, sizeof wide);
    else memcpy(slot, &narrow, sizeof narrow);
    return true;
}

static int convert(PyObject *value, char code, char *slot) {
    if (UNLIKELY(PyFloat_Check(value)) && !strchr("fd?", code)) { /* likely meant for another parameter */
        PyErr_Format(PyExc_TypeError, "an integer is required, got %.200s", Py_TYPE(value)->tp_name);
        return -1;
    }
    switch (code) {
        case 'c': {
            if (!PyBytes_Check(value) || PyBytes_GET_SIZE(value) != 1) return to_i8(value, (int8_t *)slot);
            *slot = *PyBytes_AS_STRING(value);
            return 0;
        }
        case 'u': {
            if (!PyUnicode_Check(value) || PyUnicode_GetLength(value) != 1) {
                PyErr_Format(PyExc_TypeError, "a str of one character is required, got %.200R", value);
                return -1;
            }
            *(wchar_t *)slot = (wchar_t)PyUnicode_READ_CHAR(value, 0);
            return 0;
        }
        case 'b': return to_i8(value, (int8_t *)slot);
        case 'B': return to_u8(value, (uint8_t *)slot);
        case 'h': return to_i16(value, (int16_t *)slot);
        case 'H': return to_u16(value, (uint16_t *)slot);
        case 'i': return to_i32(value, (int32_t *)slot);
        case 'I': return to_u32(value, (uint32_t *)slot);
        case 'l':
        case 'q': return to_i64(value, (int64_t *)slot);
        case 'L':
        case 'Q': return to_u64(value, (uint64_t *)slot);
        case 'f': return to_f32(value, (float *)slot);
        case 'd': return to_f64(value, (double *)slot);
        case '?': {
            int truth = PyObject_IsTrue(value);
            *slot = (char)truth;
            return truth < 0 ? -1 : 0;
        }
        default: break;
    }
    if (value == Py_None) {
        memset(slot, 0, sizeof(void *));
        return 0;
    }
    if (is_record(value) || is_foreign_record(value)) {
        *(void **)slot = record_data(value);
        return 0;
    }
    int known = PyLong_Check(value) ? 0 : foreign_memory(value, (void **)slot);
    if (known) return known < 0 ? -1 : 0;
    return to_u64(value, (uint64_t *)slot);
}

/* A handle over memory that is not its own (`_ptr=`) passes the address of that, as a record does. */
static uint64_t passed_by_handle(const HandleObject *handle) {
    return handle->data == &handle->value ? handle_load(handle) : (uint64_t)handle->data;
}

static int fill_one(PyObject *value, PyObject *type, char *slot, Scratch *scratch, void **pointer) {
    if (type == Py_None) return own_memory(value, slot, scratch, pointer);
    char code = code_of(type);
    if (!code) return -1;
    *pointer = slot;
    if (LIKELY(PyLong_CheckExact(value) || PyFloat_CheckExact(value))) return convert(value, code, slot);
    if (code == 'P' && is_handle(value)) {
        *(uint64_t *)slot = passed_by_handle((HandleObject *)value);
        return 0;
    }
    /* An instance of a ctypes scalar, not necessarily of the same type, holds its number in `value`. Arrays and pointers
     * of ctypes have a `_type_`, too, but no number. */
    if (!PyLong_Check(value) && !PyFloat_Check(value) && !is_handle(value) && !is_record(value) &&
        PyObject_HasAttrString((PyObject *)Py_TYPE(value), "_type_") && PyObject_HasAttrString(value, "value")) {
        PyObject *inner = PyObject_GetAttrString(value, "value");
        int status = inner ? convert(inner, code, slot) : -1;
        Py_XDECREF(inner);
        return status;
    }
    return convert(value, code, slot);
}

static bool is_sequence(PyObject *object) { return PyTuple_Check(object) || PyList_Check(object); }

/* The values and types of a pair as tuples of the same length, which live as long as `scratch`. */
typedef struct {
    PyObject *values, *types;
    Py_ssize_t count;
} Arguments;

static int take_apart(PyObject *pair, Scratch *scratch, Arguments *out) {
    if (PyTuple_GET_SIZE(pair) != 2 || !is_sequence(PyTuple_GET_ITEM(pair, 0)) ||
        !is_sequence(PyTuple_GET_ITEM(pair, 1))) {
        PyErr_SetString(PyExc_TypeError, "kernel arguments are a pair of tuples, (values, ctypes types)");
        return -1;
    }
    out->values = scratch_items(scratch, PyTuple_GET_ITEM(pair, 0));
    out->types = out->values ? scratch_items(scratch, PyTuple_GET_ITEM(pair, 1)) : NULL;
    if (!out->types) return -1;
    out->count = PyTuple_GET_SIZE(out->values);
    if (out->count == PyTuple_GET_SIZE(out->types)) return 0;
    PyErr_Format(PyExc_TypeError, "%zd kernel arguments but %zd types", out->count, PyTuple_GET_SIZE(out->types));
    return -1;
}

/* `memory` has room for `count` slots and then `count` pointers. */
static int fill(const Arguments *arguments, char *memory, Scratch *scratch) {
    void **pointers = (void **)(memory + arguments->count * SLOT);
    for (Py_ssize_t i = 0; i < arguments->count; i++, memory += SLOT) {
        PyObject *value = PyTuple_GET_ITEM(arguments->values, i), *type = PyTuple_GET_ITEM(arguments->types, i);
        pointers[i] = memory;
        if (UNLIKELY(!fill_usual(value, type, memory)) && fill_one(value, type, memory, scratch, &pointers[i]) < 0)
            return -1;
    }
    return 0;
}

int to_kernel_values(PyObject *object, Scratch *scratch, void ***out) {
    if (!PyTuple_Check(object)) return to_address(object, scratch, (void **)out);
    Arguments arguments;
    if (take_apart(object, scratch, &arguments) < 0) return -1;
    char *memory = scratch_take(scratch, (size_t)arguments.count * (SLOT + sizeof(void *)) + 1);
    if (!memory || fill(&arguments, memory, scratch) < 0) return -1;
    *out = (void **)(memory + arguments.count * SLOT);
    return 0;
}

static void drop(PyObject *holder) {
    Scratch *scratch = PyCapsule_GetPointer(holder, NULL);
    scratch_free(scratch);
    PyMem_Free(scratch);
}

int to_kernel_storage(PyObject *object, PyObject **keep, void ***out) {
    *keep = NULL;
    if (!PyTuple_Check(object)) return value_set((ValueType){KIND_ADDRESS, 0, sizeof(void *)}, out, object, keep);
    Scratch *scratch = PyMem_Malloc(sizeof *scratch);
    if (!scratch) {
        PyErr_NoMemory();
        return -1;
    }
    scratch_init(scratch);
    PyObject *holder = PyCapsule_New(scratch, NULL, drop);
    if (!holder) PyMem_Free(scratch);
    if (!holder || scratch_keep(scratch, Py_NewRef(object)) < 0 || to_kernel_values(object, scratch, out) < 0) {
        Py_XDECREF(holder);
        return -1;
    }
    *keep = holder;
    return 0;
}
