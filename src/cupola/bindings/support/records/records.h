/* Values of any kind: records, and what may stand in their fields. */
#ifndef CUPOLA_SUPPORT_RECORDS_H
#define CUPOLA_SUPPORT_RECORDS_H

#include "scalars/scalars.h"

/* ---- values of any kind (values.c) ---- */

/* The Python object for the value at `data`; `storage` keeps that memory alive (for records), NULL copies it. */
PyObject *value_get(ValueType type, void *data, Storage *storage);
/* Stores `object` at `data`; objects that must live as long as the memory go to `*keep` (a new reference or
 * NULL). */
int value_set(ValueType type, void *data, PyObject *object, PyObject **keep);

/* ---- records ---- */

typedef struct {
    PyObject_HEAD
    char *data;
    const RecordInfo *info;
    Storage *storage;
    Py_ssize_t count; /* elements */
    bool readonly;
    PyObject *views; /* dict: field name -> view of a nested record, so that each read gives the same object */
} RecordObject;

enum { MAX_RECORDS = 1024 };
extern PyTypeObject RecordBase;
PyTypeObject *record_type(int index);     /* borrowed */
PyObject *record_type_if_made(int index); /* borrowed, NULL when nobody has asked for it */
int record_index(PyTypeObject *type);     /* of the class or the one it derives from; -1 without an exception */
PyObject *record_new(int index);
PyObject *record_copy(int index, const void *data);
/* Sets a field that a constructor got by keyword. */
int record_set_named(PyObject *record, PyObject *name, PyObject *value);
const FieldInfo *record_fields(const RecordInfo *info); /* `field_count` of them; NULL with MemoryError set */
size_t record_size(const RecordInfo *info); /* in the CUDA major of the loaded library, where that matters */
PyObject *record_view(int index, void *data, Storage *storage);
int to_record(PyObject *object, int index, bool optional, void **out);
static inline bool is_record(PyObject *object) { return PyObject_TypeCheck(object, &RecordBase); }
bool is_foreign_record(PyObject *object); /* of another module of the package; record_data() works for it, too */
static inline void *record_data(PyObject *object) { return ((RecordObject *)object)->data; }
int records_init(void);

/* ---- records and NumPy (arrays.c) ---- */

int arrays_init(void);
PyObject *record_dtype(int index);
int check_dtype(PyObject *array, int index); /* -1 with an exception set when it is not an array of the records */
bool is_record_array(PyObject *object);      /* may be one: it has a dtype */
Py_ssize_t to_records(PyObject *array, int index, Scratch *scratch, void **out); /* their number, or -1 */
PyObject *records_to_array(PyObject *type, PyObject *records);
PyObject *records_from_array(PyObject *type, PyObject *array);

/* ---- records of modules whose functions raise (structs.c) ---- */

extern PyTypeObject StructBase, StructArrayBase;
int structs_init(void);
PyObject *struct_array(int index, size_t count); /* zeroed */
PyObject *struct_array_view(int index, void *data, size_t count, Storage *storage);
PyObject *struct_sized(int index, size_t size); /* one element, followed by memory up to `size` */
/* Memory for `count` elements, to which a field of a record points and that lives as long as the record. */
int struct_room(PyObject *record, void **field, size_t size, size_t count);
void struct_shorten(PyObject *self, size_t count);
PyObject *struct_bulk_get(RecordObject *self, const FieldInfo *field);
int struct_bulk_set(RecordObject *self, const FieldInfo *field, PyObject *value);
int to_struct(PyObject *object, int index, unsigned version, void **out); /* a record or an address */
int to_struct_array(PyObject *object, int index, void **out, size_t *count);

/* ---- pointers (pointers.c) ---- */

int to_address_slow(PyObject *object, Scratch *scratch, void **out);
static inline int to_address(PyObject *object, Scratch *scratch, void **out) {
    uint64_t address;
    if (UNLIKELY(!is_short(object, &address))) return to_address_slow(object, scratch, out);
    *out = (void *)address;
    return 0;
}
int to_string(PyObject *object, bool optional, Scratch *scratch, const char **out);
int to_buffer(PyObject *object, Scratch *scratch, char **out);
int to_str_at(PyObject *object, Scratch *scratch, void **out); /* str, or memory as to_address() takes it */

/* ---- kernel arguments (kernel_arguments.c) ---- */

int to_kernel_values(PyObject *object, Scratch *scratch, void ***out);
static inline int to_kernel_arguments(PyObject *object, Scratch *scratch, void ***out) {
    uint64_t address;
    if (!is_short(object, &address)) return to_kernel_values(object, scratch, out);
    *out = (void **)address;
    return 0;
}
int to_kernel_storage(PyObject *object, PyObject **keep, void ***out); /* the same, kept alive by `*keep` */

#endif
