/* What the generated modules (driver.c, nvrtc.c) and the hand-written files beside them share.
 *
 * A generated module describes its library with the constant tables below and has one short function for each
 * CUDA function, made of the conversions declared here. Each extension module is linked with its own copy of
 * the support files, so their static state belongs to one library. Classes are made when they are first
 * needed. */
#ifndef CUPOLA_SUPPORT_H
#define CUPOLA_SUPPORT_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "cupola/gil.h"
#include "cupola/table.h"

#define LIKELY(condition) __builtin_expect(!!(condition), 1)
#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)
#define COLD __attribute__((cold)) /* errors and first times: their code, and the ways to it, are kept out of the way */
#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

/* ---- tables of the generated modules ----
 *
 * `texts` are C strings one behind the other. A pointer to each of the thousands of names and comments would take more
 * room than most of them, and time when the module is loaded. */

static inline const char *text_after(const char *text) {
    return text + strlen(text) + 1;
}

typedef enum {
    KIND_I8,
    KIND_U8,
    KIND_I16,
    KIND_U16,
    KIND_I32,
    KIND_U32,
    KIND_I64,
    KIND_U64,
    KIND_F32,
    KIND_F64,
    KIND_BOOL,    /* int that is 0 or 1 */
    KIND_ENUM,    /* int; index: into `enums` */
    KIND_HANDLE,  /* index: into `handles` */
    KIND_RECORD,  /* index: into `records` */
    KIND_ADDRESS, /* void * */
    KIND_KERNEL,  /* void ** of kernel arguments */
    KIND_TEXT,    /* char[] with a NUL */
} Kind;

typedef struct {
    uint8_t kind;
    uint16_t index;
    uint32_t size; /* of one value, in bytes */
} ValueType;

typedef struct {
    const char *texts; /* name, comment, then name and comment of each member */
    const long long *values;
    uint16_t count;
    bool wide; /* has values that need an unsigned long long */
} EnumInfo;

/* for (EnumMember m = first_member(info); m.index < info->count; m = next_member(info, m)) */
typedef struct {
    const char *name;
    const char *doc;
    long long value;
    int index;
} EnumMember;

static inline EnumMember member_at(const EnumInfo *info, const char *name, int index) {
    if (index >= info->count) return (EnumMember){.index = index};
    return (EnumMember){name, text_after(name), info->values[index], index};
}
static inline EnumMember first_member(const EnumInfo *info) {
    return member_at(info, text_after(text_after(info->texts)), 0);
}
static inline EnumMember next_member(const EnumInfo *info, EnumMember last) {
    return member_at(info, text_after(last.doc), last.index + 1);
}

typedef enum { HANDLE_POINTER, HANDLE_INTEGER, HANDLE_CALLBACK } HandleFamily;

typedef struct {
    const char *texts; /* name, comment, class of the module `driver` that this one derives from or "" */
    int16_t base; /* handle class that this one derives from, or -1 */
    uint8_t family;
    uint8_t kind; /* how the value is stored */
    bool stream;  /* has __cuda_stream__ */
} HandleInfo;

typedef enum {
    FIELD_VALUE,
    FIELD_ARRAY,   /* `count` values in place */
    FIELD_BYTES,   /* char[count] */
    FIELD_POINTER, /* pointer to as many values as the field at `count_offset` says (-1: one) */
    FIELD_TEXT,    /* char[count] up to the first NUL: str in modules whose functions raise, else bytes */
    FIELD_STRING,  /* char *, str in Python */
} FieldShape;

typedef struct {
    ValueType type;
    int32_t offset; /* -1: the newest CUDA does not have the field */
    int32_t older;  /* offset in the older CUDA major, or -1 */
    uint32_t count;
    int32_t count_offset;
    uint8_t shape;
    uint8_t count_size;
} FieldPlace;

typedef struct {
    const char *name;
    const char *doc;
    ValueType type;
    int32_t offset;
    int32_t older;
    uint32_t count;
    int32_t count_offset;
    uint8_t shape;
    uint8_t count_size;
} FieldInfo;

typedef struct {
    const char *texts; /* name, comment, the module's attribute with the NumPy type or "", name and comment of each field */
    const FieldPlace *places; /* of the fields; see record_fields() */
    uint16_t field_count;
    uint32_t size, older_size, align;
    int16_t base, root;
    bool hidden; /* an inner record without a name of its own: no attribute of the module */
    bool array;  /* objects may have several elements */
    bool ones;   /* fields of new objects are 1, and may be given in order */
} RecordInfo;

typedef struct {
    long long value;
    bool wide; /* an unsigned number beyond the range of `value` */
} ConstantInfo;

/* A function of the table. Its texts, "=" being the same as the name and "" nothing:
 *   public name, without a version
 *   newest exported symbol
 *   the same with the per-thread default stream
 *   older symbols of the same signature, separated by spaces
 *   name for cuGetProcAddress
 *   symbols that replace all these in the older CUDA major */
typedef struct {
    const char *texts;
    int since;     /* CUDA version that brought the newest symbol: 12050 is 12.5; 0 when not known */
    uint8_t only;  /* CUDA major that alone has the function, or 0 */
    bool replaced; /* the older CUDA major has other symbols, or none with this signature */
    bool wrapped;  /* the CPU device may have a wrapper of it */
} FunctionInfo;

/* A function of which the older library has another signature: `adapter` goes into the slot and calls `*target`. */
typedef struct {
    int index;
    const char *symbol; /* NULL ends the table */
    void (*adapter)(void);
    void **target;
} Adapter;

/* An exception class for one status; the alias is a second name, or empty. */
typedef struct {
    const char *name;
    const char *alias;
    const char *doc;
    long long status;
} ErrorSubclass;

typedef struct {
    const char *name;
    const char *doc;
    PyObject *(*describe)(long long status); /* the text of the exception; NULL: "NAME (value)" */
    const ErrorSubclass *subclasses;
    uint16_t subclass_count;
    long long too_small; /* the status of a buffer that is too small; 0 when there is none */
    bool cuda;           /* exceptions have the driver's status too, in `cuda_error` */
} ErrorInfo;

typedef struct {
    const char *name; /* qualified: "cupola.bindings.driver" */
    const char *library; /* the path finder's name of it */
    int version;         /* of CUDA, as in 13050 for 13.5 */
    const EnumInfo *enums;
    const HandleInfo *handles;
    const RecordInfo *records;
    const char *constant_names;
    const ConstantInfo *constants;
    const FunctionInfo *functions;
    const Adapter *adapters;
    const char *const *function_aliases; /* pairs: older name, name; NULL-terminated */
    const char *const *enum_aliases;   /* pairs: alias, name; NULL-terminated */
    const char *const *record_aliases; /* the same */
    uint16_t enum_count, handle_count, record_count, constant_count, function_count;
    uint16_t status; /* enum of the result */
    const PyMethodDef *generated; /* the functions of the table */
    PyMethodDef *methods;         /* functions written by hand, or NULL */
    const ErrorInfo *error; /* NULL when functions return a tuple with the status */
    cupola_table_head *table;
    void **slots;
} ModuleInfo;

extern const ModuleInfo module_info;

/* Attributes and options whose values differ in type. */
typedef struct {
    long long attribute;
    ValueType type;
    bool list;
} AttributeType;

typedef struct {
    const char *name; /* of the enum, for messages */
    const AttributeType *types;
    uint16_t count;
} AttributeTable;

typedef enum {
    OPTION_INTEGER,
    OPTION_FLOAT,
    OPTION_BUFFER,
    OPTION_STRINGS,
    OPTION_ADDRESSES,
    OPTION_RECORD
} OptionKind;

typedef struct {
    long long option;
    uint8_t kind;
} OptionType;

static inline const char *short_name(PyTypeObject *type) {
    const char *dot = strrchr(type->tp_name, '.');
    return dot ? dot + 1 : type->tp_name;
}

/* ---- memory that lives for one call: converted lists, pinned buffers ---- */

typedef struct ScratchBlock ScratchBlock;
typedef struct {
    ScratchBlock *blocks;
    size_t used;
    _Alignas(16) char inlined[256];
} Scratch;

static inline void scratch_init(Scratch *scratch) {
    scratch->blocks = NULL;
    scratch->used = 0;
}
void *scratch_alloc(Scratch *scratch, size_t size); /* zeroed; NULL with MemoryError set */
COLD void *scratch_more(Scratch *scratch, size_t size); /* the same of memory that is not on the stack */
/* Memory that is not zeroed. */
static inline void *scratch_take(Scratch *scratch, size_t size) {
    if (UNLIKELY(size > sizeof scratch->inlined - scratch->used)) return scratch_more(scratch, size);
    void *memory = scratch->inlined + scratch->used;
    scratch->used += (size + 15) & ~(size_t)15;
    return memory;
}
void *scratch_array(Scratch *scratch, size_t size, size_t count);
int scratch_buffer(Scratch *scratch, PyObject *object, int flags, Py_buffer **buffer);
COLD void scratch_release(Scratch *scratch);
static inline void scratch_free(Scratch *scratch) {
    if (UNLIKELY(scratch->blocks != NULL)) scratch_release(scratch);
}

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

/* ---- values of any kind (values.c) ---- */

/* Memory of a record or of an array that a record points to, with the objects that it refers to. */
typedef struct {
    PyObject_HEAD
    char *data;     /* NULL when it only keeps objects */
    size_t count;   /* elements of an array */
    PyObject *kept; /* dict: address of a pointer -> object that keeps its target alive; or NULL */
} Storage;

/* The Python object for the value at `data`; `storage` keeps that memory alive (for records), NULL copies it. */
PyObject *value_get(ValueType type, void *data, Storage *storage);
/* Stores `object` at `data`; objects that must live as long as the memory go to `*keep` (a new reference or
 * NULL). */
int value_set(ValueType type, void *data, PyObject *object, PyObject **keep);

/* ---- classes ---- */

char *qualified_name(const char *name); /* with the module; lives as long as the class; NULL with MemoryError set */

typedef struct {
    PyObject_HEAD
    void *data; /* where the value is: `value` or foreign memory */
    uint64_t value;
    const HandleInfo *info;
} HandleObject;

typedef struct {
    PyObject_HEAD
    char *data;
    const RecordInfo *info;
    Storage *storage;
    Py_ssize_t count; /* elements */
    bool readonly;
    PyObject
        *views; /* dict: field name -> view of a nested record, so that each read gives the same object */
} RecordObject;

int enums_init(void);
PyObject *enum_type(int index); /* borrowed */
PyObject *enum_value(int index, long long value);

int handles_init(void);
extern PyTypeObject *handle_types[];
extern PyTypeObject HandleBase;
PyTypeObject *handle_type(int index); /* borrowed */
PyObject *handle_new(int index, uint64_t value);
int to_handle_slow(PyObject *object, int index, uint64_t *out); /* index -1: any function pointer */
uint64_t handle_load(const HandleObject *handle);
bool is_foreign_handle(PyObject *object); /* of another module of the package, which has its own copy of all this */
static inline bool is_handle(PyObject *object) {
    return PyObject_TypeCheck(object, &HandleBase) || is_foreign_handle(object);
}
static inline int to_handle(PyObject *object, int index, uint64_t *out) {
    if (LIKELY(Py_TYPE(object) == handle_types[index]) &&
        ((HandleObject *)object)->data == &((HandleObject *)object)->value) {
        *out = ((HandleObject *)object)->value;
        return 0;
    }
    return to_handle_slow(object, index, out);
}

enum { MAX_RECORDS = 1024 };
extern PyTypeObject RecordBase;
PyTypeObject *record_type(int index);     /* borrowed */
PyObject *record_type_if_made(int index); /* borrowed, NULL when nobody has asked for it */
int record_index(PyTypeObject *type); /* of the class or the one it derives from; -1 without an exception */
PyObject *record_new(int index);
PyObject *record_copy(int index, const void *data);
/* Sets a field that a constructor got by keyword. */
int record_set_named(PyObject *record, PyObject *name, PyObject *value);
const FieldInfo *record_fields(const RecordInfo *info); /* `field_count` of them; NULL with MemoryError set */
size_t record_size(const RecordInfo *info); /* in the CUDA major of the loaded library, where that matters */
PyObject *record_view(int index, void *data, Storage *storage);
int to_record(PyObject *object, int index, bool optional, void **out);
static inline bool is_record(PyObject *object) {
    return PyObject_TypeCheck(object, &RecordBase);
}
static inline void *record_data(PyObject *object) {
    return ((RecordObject *)object)->data;
}
extern PyTypeObject StorageType;
Storage *storage_new(size_t size, size_t align, size_t count);           /* zeroed; no memory for size 0 */
int storage_keep(Storage *storage, const void *where, PyObject *object); /* replaces what was kept there */
PyObject *storage_kept(Storage *storage, const void *where);             /* borrowed or NULL, no exception */
int records_init(void);

/* ---- records and NumPy (arrays.c) ---- */

int arrays_init(void);
PyObject *record_dtype(int index);
int check_dtype(PyObject *array, int index); /* -1 with an exception set when it is not an array of the records */
bool is_record_array(PyObject *object);      /* may be one: it has a dtype */
Py_ssize_t to_records(PyObject *array, int index, Scratch *scratch, void **out); /* their number, or -1 */
PyObject *records_to_array(PyObject *type, PyObject *records);
PyObject *records_from_array(PyObject *type, PyObject *array);

PyObject *hexadecimal(uint64_t value); /* PyUnicode_FromFormat cannot before Python 3.12 */

/* ---- pointers and sequences (pointers.c, sequences.c) ---- */

int to_address_slow(PyObject *object, Scratch *scratch, void **out);
static inline int to_address(PyObject *object, Scratch *scratch, void **out) {
    uint64_t address;
    if (UNLIKELY(!is_short(object, &address))) return to_address_slow(object, scratch, out);
    *out = (void *)address;
    return 0;
}
int to_string(PyObject *object, bool optional, Scratch *scratch, const char **out);
int to_buffer(PyObject *object, Scratch *scratch, char **out);
/* An array of at least `count` values; any length when count < 0. */
int to_list(PyObject *object, ValueType type, long long count, Scratch *scratch, void **out);
int to_strings(PyObject *object, long long count, Scratch *scratch, const char *const **out);
int to_handles(PyObject *object, Scratch *scratch, void **out);
PyObject *list_from(ValueType type, const void *data, size_t count);
PyObject *text_from(const char *text); /* bytes, or None for NULL */
Py_ssize_t sequence_length(PyObject *object, long long count); /* of a list, tuple or None; -1 when too short */

/* ---- modules whose functions raise (buffers.c, errors.c) ---- */

int to_str(PyObject *object, bool optional, const char **out);
int to_strs(PyObject *object, long long count, Scratch *scratch, const char *const **out);
int to_data(PyObject *object, uint64_t size, Scratch *scratch, void **out);     /* of exactly `size` bytes */
int to_output(PyObject *object, size_t needed, Scratch *scratch, void **out); /* of at least `needed` bytes */

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
int to_str_at(PyObject *object, Scratch *scratch, void **out); /* str, or memory as to_address() takes it */
int to_chars(PyObject *object, bool text, char *field, size_t size); /* fills a field; -1 when it is too small */
PyObject *from_chars(const char *field, size_t size);                /* str up to the NUL */

PyObject *error_class(const char *name); /* new reference; NULL without an exception when there is none */
PyObject *raise_status(long long status); /* returns NULL, like the next ones */
PyObject *raise_cuda_status(long long status, int cuda_error);
PyObject *raise_negative(long long result); /* -1: OSError for errno, else the negated status */
extern PyMethodDef status_methods[], description_methods[];
void add_note(const char *text);          /* to the exception that is set */
PyObject *pack(PyObject **outputs, int count); /* a tuple of new references, any of which may be NULL */

/* ---- kernel arguments, attributes, options ---- */

int to_kernel_values(PyObject *object, Scratch *scratch, void ***out);
static inline int to_kernel_arguments(PyObject *object, Scratch *scratch, void ***out) {
    uint64_t address;
    if (!is_short(object, &address)) return to_kernel_values(object, scratch, out);
    *out = (void **)address;
    return 0;
}
int to_kernel_storage(PyObject *object, PyObject **keep, void ***out); /* the same, kept alive by `*keep` */

int attribute_to(const AttributeTable *table, long long attribute, PyObject *object, Scratch *scratch,
                 void **out, size_t *size);
void *attribute_room(const AttributeTable *table, long long attribute, Scratch *scratch, size_t *size);
PyObject *attribute_from(const AttributeTable *table, long long attribute, void *data, size_t size);
void **attribute_rooms(const AttributeTable *table, const int *attributes, long long count, size_t *sizes,
                       Scratch *scratch);
PyObject *attributes_from(const AttributeTable *table, const int *attributes, void **data, long long count,
                          const size_t *sizes);
int to_options(PyObject *object, const OptionType *types, size_t type_count, const int *keys, long long count,
               Scratch *scratch, void ***out);

/* ---- calls (calls.c) ---- */

#define CALL_PARAMETERS PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names

/* Puts positional and keyword arguments in order; `required` of `count` must be there, the others become
 * NULL. `keywords` are texts. */
COLD int bind_arguments(const char *function, const char *keywords, int count, int required,
                   PyObject *const *args, Py_ssize_t nargs, PyObject *names, PyObject **bound);
/* Names the function and argument in the exception that is set; returns NULL. */
COLD PyObject *bad_argument(const char *function, const char *argument);
COLD PyObject *failed(long long status, int outputs);
extern PyObject *succeeded_alone; /* the 1-tuple of success */
COLD PyObject *succeeded_slow(void);
static inline PyObject *succeeded(void) {
    return LIKELY(succeeded_alone != NULL) ? Py_NewRef(succeeded_alone) : succeeded_slow();
}
/* The tuple of a status and `count` new references, any of which may be NULL with an exception set. */
PyObject *result_tuple(long long status, PyObject **outputs, int count);
/* The same of success and one output. */
PyObject *result_pair(PyObject *output);

/* ---- the function table (table.c) ---- */

/* Finds function `index` and stores it in its slot; NULL with a pending error when there is none. */
COLD void *table_resolve(int index);
int table_raise_pending(void);
bool table_is_older(void); /* whether the library is of the older CUDA major; loads it */
int table_init(PyObject *module);

/* ---- the module (module.c) ---- */

int module_exec(PyObject *module);
COLD void module_settle(void); /* of modules without exceptions of their own: make every name */

#endif
