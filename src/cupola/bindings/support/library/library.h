/* A library as its generated module describes it: constant tables of its enums, handles, records and functions, and the
 * table of function pointers that is filled from them. The bottom room: it knows of no Python objects but exceptions. */
#ifndef CUPOLA_SUPPORT_LIBRARY_H
#define CUPOLA_SUPPORT_LIBRARY_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "cupola/gil.h"
#include "cupola/table.h"
#include "library/threads.h"

#define LIKELY(condition) __builtin_expect(!!(condition), 1)
#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)
#define COLD __attribute__((cold)) /* errors and first times: their code, and the ways to it, are kept out of the way */
#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

/* ---- tables of the generated modules ----
 *
 * `texts` are C strings one behind the other. A pointer to each of the thousands of names and comments would take more
 * room than most of them, and time when the module is loaded. */

static inline const char *text_after(const char *text) { return text + strlen(text) + 1; }

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
    int16_t base;      /* handle class that this one derives from, or -1 */
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
    FIELD_NUMBER,  /* pointer to one number */
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
    /* name, comment, the module's attribute with the NumPy type or "", name and comment of each field */
    const char *texts;
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
    const char *name;    /* qualified: "cupola.bindings.driver" */
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
    const char *const *enum_aliases;     /* pairs: alias, name; NULL-terminated */
    const char *const *record_aliases;   /* the same */
    uint16_t enum_count, handle_count, record_count, constant_count, function_count;
    uint16_t status;              /* enum of the result */
    const PyMethodDef *generated; /* the functions of the table */
    PyMethodDef *methods;         /* functions written by hand, or NULL */
    const ErrorInfo *error;       /* NULL when functions return a tuple with the status */
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

/* ---- names (names.c) ---- */

char *qualified_name(const char *name); /* with the module; lives as long as the class; NULL with MemoryError set */
/* Names the function and argument in the exception that is set; returns NULL. */
COLD PyObject *bad_argument(const char *function, const char *argument);

/* ---- the function table (table.c) ---- */

/* Finds function `index` and stores it in its slot; NULL with a pending error when there is none. */
COLD void *table_resolve(int index);
int table_raise_pending(void);
bool table_is_older(void); /* whether the library is of the older CUDA major; loads it */
int table_init(PyObject *module);

#endif
