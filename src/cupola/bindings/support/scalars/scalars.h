/* Values of one word and text: numbers, members of enums, handles, and the memory of buffers. */
#ifndef CUPOLA_SUPPORT_SCALARS_H
#define CUPOLA_SUPPORT_SCALARS_H

#include "memory/memory.h"

/* ---- numbers (numbers.c); all return -1 with an exception set on failure ---- */

int to_unsigned_slow(PyObject *object, uint64_t max, uint64_t *out);
int to_signed_slow(PyObject *object, int64_t min, int64_t max, int64_t *out);
PyObject *as_integer(PyObject *object); /* new reference to the int that `object` stands for */

/* An int from 0 to 2**60, which one or two of Python's digits hold: all sizes and addresses. */
static inline bool is_short(PyObject *object, uint64_t *out) {
    if (!PyLong_CheckExact(object) || PyLong_SHIFT != 30) return false;
#if PY_VERSION_HEX >= 0x030c0000
    const digit *digits = ((PyLongObject *)object)->long_value.ob_digit;
    uintptr_t tag = ((PyLongObject *)object)->long_value.lv_tag; /* number of digits, above three bits for the sign */
    if (tag >= 3 << 3 || (tag & 3) == 2) return false;
    size_t count = tag >> 3;
#else
    const digit *digits = ((PyLongObject *)object)->ob_digit;
    size_t count = (size_t)Py_SIZE(object); /* negative with the number */
    if (count > 2) return false;
#endif
    *out = count == 1 ? digits[0] : count == 0 ? 0 : (uint64_t)digits[1] << 30 | digits[0];
    return true;
}

/* Linux maps nothing below this (vm.mmap_min_addr), so such a number is a value in the place of an address. */
enum { FIRST_ADDRESS = 0x10000 };

static inline int to_u64(PyObject *object, uint64_t *out) {
    return LIKELY(is_short(object, out)) ? 0 : to_unsigned_slow(object, UINT64_MAX, out);
}
#define UNSIGNED_CONVERSION(name, type, max)                                                                   \
    static inline int name(PyObject *object, type *out) {                                                      \
        uint64_t wide;                                                                                         \
        if (UNLIKELY(!is_short(object, &wide) || wide > max) && to_unsigned_slow(object, max, &wide) < 0) return -1; \
        *out = (type)wide;                                                                                     \
        return 0;                                                                                              \
    }
#define SIGNED_CONVERSION(name, type, min, max)                                                                \
    static inline int name(PyObject *object, type *out) {                                                      \
        uint64_t small;                                                                                        \
        int64_t wide;                                                                                          \
        if (LIKELY(is_short(object, &small) && small <= max)) wide = (int64_t)small;                           \
        else if (to_signed_slow(object, min, max, &wide) < 0) return -1;                                       \
        *out = (type)wide;                                                                                     \
        return 0;                                                                                              \
    }
UNSIGNED_CONVERSION(to_u8, uint8_t, UINT8_MAX)
UNSIGNED_CONVERSION(to_u16, uint16_t, UINT16_MAX)
UNSIGNED_CONVERSION(to_u32, uint32_t, UINT32_MAX)
SIGNED_CONVERSION(to_i8, int8_t, INT8_MIN, INT8_MAX)
SIGNED_CONVERSION(to_i16, int16_t, INT16_MIN, INT16_MAX)
SIGNED_CONVERSION(to_i32, int32_t, INT32_MIN, INT32_MAX)
SIGNED_CONVERSION(to_i64, int64_t, INT64_MIN, INT64_MAX)
int to_f32(PyObject *object, float *out);
int to_f64(PyObject *object, double *out);
int to_enum(PyObject *object, int *out); /* a member or any int */
PyObject *hexadecimal(uint64_t value);   /* PyUnicode_FromFormat cannot before Python 3.12 */

/* ---- enums and handles ---- */

typedef struct {
    PyObject_HEAD
    void *data; /* where the value is: `value` or foreign memory */
    uint64_t value;
    const HandleInfo *info;
} HandleObject;

int enums_init(void);
PyObject *enum_type(int index); /* borrowed */
PyObject *enum_value(int index, long long value);

int handles_init(void);
extern PyTypeObject *handle_types[];
extern PyTypeObject HandleBase;
PyTypeObject *handle_type(int index); /* borrowed */
PyObject *handle_new(int index, uint64_t value);
/* Room for handles that the library fills in when it likes, maybe long after the call: it stays for good. */
COLD uint64_t *handle_cells(size_t count);
COLD PyObject *handle_later(int index, const uint64_t *cell); /* sees the value when it is there */
COLD PyObject *handles_later(int index, const uint64_t *cells, size_t count);
int to_handle_slow(PyObject *object, int index, uint64_t *out); /* index -1: any function pointer */
uint64_t handle_load(const HandleObject *handle);
bool is_foreign_handle(PyObject *object); /* of another module of the package, which has its own copy of all this */
static inline bool is_handle(PyObject *object) {
    return PyObject_TypeCheck(object, &HandleBase) || is_foreign_handle(object);
}
static inline int to_handle(PyObject *object, int index, uint64_t *out) {
    if (LIKELY(Py_TYPE(object) == PUBLISHED(handle_types[index])) &&
        ((HandleObject *)object)->data == &((HandleObject *)object)->value) {
        *out = ((HandleObject *)object)->value;
        return 0;
    }
    return to_handle_slow(object, index, out);
}

/* ---- text, and memory whose size is checked (buffers.c) ---- */

int to_str(PyObject *object, bool optional, const char **out);
int to_data(PyObject *object, uint64_t size, Scratch *scratch, void **out);   /* of exactly `size` bytes */
int to_output(PyObject *object, size_t needed, Scratch *scratch, void **out); /* of at least `needed` bytes */
int to_chars(PyObject *object, bool text, char *field, size_t size); /* fills a field; -1 when it is too small */
PyObject *from_chars(const char *field, size_t size);                /* str up to the NUL */
PyObject *text_from(const char *text);                               /* bytes, or None for NULL */

#endif
