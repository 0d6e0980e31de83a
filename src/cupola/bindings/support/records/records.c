/* Classes for C structs and unions, made from tables of fields when they are first used. */
#define _GNU_SOURCE
#include "records/records.h"

#include <errno.h>
#include <sys/uio.h>
#include <unistd.h>

static PyTypeObject *record_types[MAX_RECORDS];

static RecordObject *allocate(PyTypeObject *type, const RecordInfo *info) {
    RecordObject *self = (RecordObject *)type->tp_alloc(type, 0);
    if (self) {
        self->info = info;
        self->count = 1;
    }
    return self;
}

/* Room for the layout of either CUDA major: which one it will be is open until the library is loaded. */
static int own_memory(RecordObject *self) {
    const RecordInfo *info = self->info;
    size_t size = info->older_size > info->size ? info->older_size : info->size;
    self->storage = storage_new(size, info->align, 1);
    if (!self->storage) return -1;
    self->data = self->storage->data;
    return 0;
}

PyObject *record_new(int index) {
    PyTypeObject *type = record_type(index);
    RecordObject *self = type ? allocate(type, &module_info.records[index]) : NULL;
    if (self && own_memory(self) < 0) Py_CLEAR(self);
    return (PyObject *)self;
}

PyObject *record_copy(int index, const void *data) {
    PyObject *self = record_new(index);
    if (self) memcpy(record_data(self), data, record_size(&module_info.records[index]));
    return self;
}

/* A record over `data`; without a `storage` the memory belongs to somebody else. */
PyObject *record_view(int index, void *data, Storage *storage) {
    PyTypeObject *type = record_type(index);
    RecordObject *self = type ? allocate(type, &module_info.records[index]) : NULL;
    if (!self) return NULL;
    self->data = data;
    self->storage = storage ? (Storage *)Py_NewRef((PyObject *)storage) : storage_new(0, 0, 0);
    if (!self->storage) Py_CLEAR(self);
    return (PyObject *)self;
}

int to_record(PyObject *object, int index, bool optional, void **out) {
    if (optional && object == Py_None) {
        *out = NULL;
        return 0;
    }
    if (LIKELY(is_record(object)) && ((RecordObject *)object)->info->root == module_info.records[index].root) {
        *out = record_data(object);
        return 0;
    }
    PyErr_Format(PyExc_TypeError, "expected %s%s, got %.200s", module_info.records[index].texts,
                 optional ? " or None" : "", Py_TYPE(object)->tp_name);
    return -1;
}

bool is_foreign_record(PyObject *object) {
    PyTypeObject *base = Py_TYPE(object);
    while (base && strcmp(base->tp_name, RecordBase.tp_name) != 0) base = base->tp_base;
    return base;
}

int record_index(PyTypeObject *type) {
    for (PyTypeObject *base = type; base; base = base->tp_base)
        for (int i = 0; i < module_info.record_count; i++)
            if (PUBLISHED(record_types[i]) == base) return i;
    return -1;
}

static int field_set(PyObject *object, PyObject *value, void *closure);

/* Whether one of the first `values` fields is given by keyword, too. */
static bool repeated(PyTypeObject *type, const RecordInfo *info, PyObject *kwargs, Py_ssize_t values) {
    for (Py_ssize_t i = 0; i < values; i++) {
        const char *name = record_fields(info)[i].name;
        if (!PyDict_GetItemString(kwargs, name)) continue;
        PyErr_Format(PyExc_TypeError, "%s() got two values for %s", short_name(type), name);
        return true;
    }
    return false;
}

static PyObject *field_names(const RecordInfo *info) {
    const FieldInfo *fields = record_fields(info);
    PyObject *list = fields ? PyList_New(0) : NULL;
    for (int i = 0; list && i < info->field_count; i++) {
        PyObject *name = PyUnicode_FromString(fields[i].name);
        if (!name || PyList_Append(list, name) < 0) Py_CLEAR(list);
        Py_XDECREF(name);
    }
    return list;
}

/* A keyword that is no field: which there are, or of many those that may be meant. */
static void no_such_field(PyObject *record, PyObject *name) {
    enum { FEW = 24 };
    PyObject *fields = field_names(((RecordObject *)record)->info);
    bool few = fields && PyList_GET_SIZE(fields) <= FEW;
    PyObject *difflib = fields && !few ? PyImport_ImportModule("difflib") : NULL;
    PyObject *told = few       ? Py_NewRef(fields)
                     : difflib ? PyObject_CallMethod(difflib, "get_close_matches", "OO", name, fields)
                               : NULL;
    PyObject *comma = told ? PyUnicode_FromString(", ") : NULL, *text = comma ? PyUnicode_Join(comma, told) : NULL;
    const char *cls = short_name(Py_TYPE(record));
    if (text && !PyList_GET_SIZE(told))
        PyErr_Format(PyExc_TypeError, "%s() has no field %R; help(%s) lists all", cls, name, cls);
    else if (text)
        PyErr_Format(PyExc_TypeError,
                     few ? "%s() has no field %R; it has: %U" : "%s() has no field %R; did you mean: %U", cls, name,
                     text);
    Py_XDECREF(fields), Py_XDECREF(difflib), Py_XDECREF(told), Py_XDECREF(comma), Py_XDECREF(text);
}

int record_set_named(PyObject *record, PyObject *name, PyObject *value) {
    if (PyObject_SetAttr(record, name, value) == 0) return 0;
    if (!PyErr_ExceptionMatches(PyExc_AttributeError) || PyObject_HasAttr((PyObject *)Py_TYPE(record), name)) return -1;
    PyErr_Clear();
    no_such_field(record, name);
    return -1;
}

static PyObject *construct(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    int index = record_index(type);
    const RecordInfo *info = index < 0 ? NULL : &module_info.records[index];
    if (!info) {
        PyErr_Format(PyExc_TypeError, "cannot create %s objects", type->tp_name);
        return NULL;
    }
    PyObject *address = kwargs ? PyDict_GetItemString(kwargs, "_ptr") : NULL;
    Py_ssize_t positional = PyTuple_GET_SIZE(args), values = info->ones ? positional : 0;
    if (positional > (values ? info->field_count : 1) || (positional && address)) {
        PyErr_Format(PyExc_TypeError,
                     info->ones ? "%s() takes its fields, or an address as _ptr"
                                : "%s() takes an address as its only positional argument; fields are given by keyword",
                     short_name(type));
        return NULL;
    }
    if (positional && !values) address = PyTuple_GET_ITEM(args, 0);
    uint64_t where = 0;
    if (address && to_u64(address, &where) < 0) return NULL;
    if (where && where < FIRST_ADDRESS) {
        PyErr_Format(PyExc_ValueError,
                     "%s(%llu) is the record at the address %llu, where nothing can be: give fields by keyword",
                     short_name(type), (unsigned long long)where, (unsigned long long)where);
        return NULL;
    }
    RecordObject *self = allocate(type, info);
    if (!self) return NULL;
    if (where) {
        self->data = (char *)where;
        self->storage = storage_at(self->data);
        if (!self->storage) self->storage = storage_new(0, 0, 0);
    }
    if (where ? !self->storage : own_memory(self) < 0) goto error;
    for (uint32_t i = 0; !where && info->ones && i < info->size / sizeof(uint32_t); i++)
        ((uint32_t *)self->data)[i] = 1;
    if (values && kwargs && PyDict_GET_SIZE(kwargs) && repeated(type, info, kwargs, values)) goto error;
    for (Py_ssize_t i = 0; i < values; i++)
        if (field_set((PyObject *)self, PyTuple_GET_ITEM(args, i), (void *)&record_fields(info)[i]) < 0) goto error;
    PyObject *name, *value;
    for (Py_ssize_t i = 0; kwargs && PyDict_Next(kwargs, &i, &name, &value);) {
        if (PyUnicode_CompareWithASCIIString(name, "_ptr") == 0) continue;
        if (record_set_named((PyObject *)self, name, value) < 0) goto error;
    }
    return (PyObject *)self;
error:
    Py_DECREF(self);
    return NULL;
}

static int initialise(PyObject *self, PyObject *args, PyObject *kwargs) { /* all is done in construct() */
    (void)self, (void)args, (void)kwargs;
    return 0;
}

static void destroy(PyObject *object) {
    RecordObject *self = (RecordObject *)object;
    PyTypeObject *type = Py_TYPE(object);
    Py_XDECREF((PyObject *)self->storage);
    Py_XDECREF(self->views);
    type->tp_free(object);
    Py_DECREF(type);
}

/* ---- fields ---- */

const FieldInfo *record_fields(const RecordInfo *info) {
    static const FieldInfo *unpacked[COUNT_OF(record_types)];
    const FieldInfo **known = &unpacked[info->root];
    const FieldInfo *there = PUBLISHED(*known);
    if (there) return there;
    const RecordInfo *root = &module_info.records[info->root];
    FieldInfo *fields = PyMem_Calloc(root->field_count + 1u, sizeof *fields);
    if (!fields) return (const FieldInfo *)PyErr_NoMemory();
    const char *name = text_after(text_after(text_after(root->texts)));
    for (int i = 0; i < root->field_count; i++) {
        const FieldPlace *place = &root->places[i];
        const char *doc = text_after(name);
        fields[i] = (FieldInfo){
            .name = name,
            .doc = doc,
            .type = place->type,
            .offset = place->offset,
            .older = place->older,
            .count = place->count,
            .count_offset = place->count_offset,
            .shape = place->shape,
            .count_size = place->count_size,
        };
        name = text_after(doc);
    }
    if (!publish_first(known, fields)) PyMem_Free(fields);
    return PUBLISHED(*known);
}

size_t record_size(const RecordInfo *info) {
    return info->older_size != info->size && table_is_older() ? info->older_size : info->size;
}

/* The field as the loaded library has it: some fields are elsewhere in another CUDA major, or only there. */
static const FieldInfo *placed(PyObject *object, const FieldInfo *field, FieldInfo *moved) {
    if (LIKELY(field->offset == field->older)) return field;
    *moved = *field;
    bool older = table_is_older();
    moved->offset = moved->older = older ? field->older : field->offset;
    if (moved->offset >= 0) return moved;
    PyErr_Format(PyExc_AttributeError, "%s.%s does not exist in CUDA %d, whose library is loaded",
                 short_name(Py_TYPE(object)), field->name, module_info.version / 1000 - older);
    return NULL;
}

static size_t count_of(const RecordObject *self, const FieldInfo *field) {
    if (field->count_offset < 0) return 1;
    const char *count = self->data + field->count_offset;
    return field->count_size == 4 ? *(const uint32_t *)count : *(const uint64_t *)count;
}

/* What a pointer says may be memory of a device, or none at all: the kernel reads it first. -1 with an exception set. */
static int check_readable(RecordObject *self, const FieldInfo *field, char *data, size_t size) {
    char copy[4096];
    for (size_t done = 0; done < size; done += sizeof copy) {
        size_t part = size - done < sizeof copy ? size - done : sizeof copy;
        struct iovec here = {copy, part}, there = {data + done, part};
        ssize_t count = process_vm_readv(getpid(), &here, 1, &there, 1, 0);
        if (count < 0 && errno != EFAULT) return 0; /* the kernel does not let us ask */
        if (count == (ssize_t)part) continue;
        PyErr_Format(PyExc_ValueError, "%s.%s points to %p, which the host cannot read", short_name(Py_TYPE(self)),
                     field->name, data);
        return -1;
    }
    return 0;
}

static PyObject *get_number(RecordObject *self, const FieldInfo *field) {
    char *data = *(char **)(self->data + field->offset);
    uint64_t nothing = 0;
    if (data && check_readable(self, field, data, field->type.size) < 0) return NULL;
    return value_get(field->type, data ? data : (void *)&nothing, NULL);
}

/* An element of an array: a copy, as in cuda.bindings. It stays when the array goes, also the objects that it refers to. */
static PyObject *get_element(ValueType type, void *data, Storage *storage) {
    if (type.kind != KIND_RECORD) return value_get(type, data, storage);
    PyObject *copy = record_copy(type.index, data);
    if (copy && storage && storage_keep(((RecordObject *)copy)->storage, NULL, (PyObject *)storage) < 0) Py_CLEAR(copy);
    return copy;
}

/* What the driver has yet to fill in, by C's names (phGraph_out): as many handles that are 0. */
static bool is_to_come(const FieldInfo *field) {
    size_t length = strlen(field->name);
    return field->type.kind == KIND_HANDLE && length > 4 && strcmp(field->name + length - 4, "_out") == 0;
}

static PyObject *nothing_yet(RecordObject *self, const FieldInfo *field) {
    enum { MOST = 1 << 20 };
    size_t count = count_of(self, field);
    if (count > MOST) {
        PyErr_Format(PyExc_ValueError, "%s.%s cannot have %zu entries", short_name(Py_TYPE(self)), field->name, count);
        return NULL;
    }
    PyObject *result = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; result && i < count; i++) {
        PyObject *item = handle_new(field->type.index, 0);
        if (item) PyList_SET_ITEM(result, i, item);
        else Py_CLEAR(result);
    }
    return result;
}

/* What was assigned reads back with the length it had; what the library filled in has the length it says. */
static PyObject *get_pointed(RecordObject *self, const FieldInfo *field) {
    void **pointer = (void **)(self->data + field->offset), *data = *pointer;
    if (!data && is_to_come(field)) return nothing_yet(self, field);
    PyObject *kept = storage_kept(self->storage, pointer);
    bool ours = kept && Py_IS_TYPE(kept, &StorageType) && ((Storage *)kept)->data == data;
    Storage *target = ours ? (Storage *)kept : NULL; /* a destructor may set the field meanwhile */
    if (!ours) Py_XDECREF(kept);
    size_t count = !data ? 0 : target ? target->count : count_of(self, field);
    if (module_info.error && field->count_offset >= 0 && count_of(self, field) < count) count = count_of(self, field);
    PyObject *result = NULL;
    if (!target && check_readable(self, field, data, count * field->type.size) < 0) {
        /* nothing can be made of it */
    } else if (module_info.error && field->type.kind == KIND_RECORD) {
        result = struct_array_view(field->type.index, data, count, target ? target : self->storage);
    } else {
        result = PyList_New((Py_ssize_t)count);
        for (size_t i = 0; result && i < count; i++) {
            PyObject *item = get_element(field->type, (char *)data + i * field->type.size, target);
            if (item) PyList_SET_ITEM(result, i, item);
            else Py_CLEAR(result);
        }
    }
    Py_XDECREF((PyObject *)target);
    return result;
}

static int set_pointed(RecordObject *self, const FieldInfo *field, PyObject *value) {
    void **pointer = (void **)(self->data + field->offset);
    if (PyLong_Check(value)) {
        uint64_t address;
        if (to_u64(value, &address) < 0) return -1;
        *pointer = (void *)address;
        return storage_keep(self->storage, pointer, NULL);
    }
    if (field->type.kind == KIND_RECORD && is_record(value)) {
        void *data;
        if (to_record(value, field->type.index, false, &data) < 0) return -1;
        *pointer = data;
        return storage_keep(self->storage, pointer, (PyObject *)((RecordObject *)value)->storage);
    }
    if (field->type.kind == KIND_RECORD && is_record_array(value)) {
        PyObject *type = (PyObject *)record_type(field->type.index);
        PyObject *items = type ? records_from_array(type, value) : NULL;
        int status = items ? set_pointed(self, field, items) : -1;
        Py_XDECREF(items);
        return status;
    }
    if (!PyList_Check(value) && !PyTuple_Check(value)) {
        PyErr_Format(PyExc_TypeError, "expected a list or tuple, got %.200s", Py_TYPE(value)->tp_name);
        return -1;
    }
    PyObject *items = PySequence_Tuple(value); /* converting one may run Python code that changes the list */
    if (!items) return -1;
    Py_ssize_t count = PyTuple_GET_SIZE(items);
    uint32_t align = field->type.kind == KIND_RECORD ? module_info.records[field->type.index].align : 16;
    Storage *target = storage_new(field->type.size * (size_t)count, align, (size_t)count);
    int status = target ? 0 : -1;
    for (Py_ssize_t i = 0; status == 0 && i < count; i++) {
        PyObject *keep = NULL;
        char *where = target->data + (size_t)i * field->type.size;
        status = value_set(field->type, where, PyTuple_GET_ITEM(items, i), &keep);
        if (status == 0 && keep) status = storage_keep(target, where, keep);
        Py_XDECREF(keep);
    }
    Py_DECREF(items);
    if (status == 0) status = storage_keep(self->storage, pointer, (PyObject *)target);
    if (status == 0) *pointer = target->data;
    Py_XDECREF((PyObject *)target);
    return status;
}

static PyObject *get_array(RecordObject *self, const FieldInfo *field) {
    if (module_info.error && field->type.kind == KIND_RECORD)
        return struct_array_view(field->type.index, self->data + field->offset, field->count, self->storage);
    PyObject *list = PyList_New(field->count);
    for (uint32_t i = 0; list && i < field->count; i++) {
        PyObject *item = get_element(field->type, self->data + field->offset + i * field->type.size, self->storage);
        if (item) PyList_SET_ITEM(list, i, item);
        else Py_CLEAR(list);
    }
    return list;
}

static int set_array(RecordObject *self, const FieldInfo *field, PyObject *value) {
    PyObject *items = PySequence_Tuple(value);
    if (!items) return -1;
    int status = 0;
    if (PyTuple_GET_SIZE(items) != (Py_ssize_t)field->count) {
        PyErr_Format(PyExc_IndexError, "%s has %u items, got %zd", field->name, field->count, PyTuple_GET_SIZE(items));
        status = -1;
    }
    for (uint32_t i = 0; status == 0 && i < field->count; i++) {
        PyObject *keep = NULL;
        char *where = self->data + field->offset + i * field->type.size;
        status = value_set(field->type, where, PyTuple_GET_ITEM(items, i), &keep);
        if (status == 0) status = storage_keep(self->storage, where, keep);
        Py_XDECREF(keep);
    }
    Py_DECREF(items);
    return status;
}

static int set_bytes(RecordObject *self, const FieldInfo *field, PyObject *value) {
    if (PyList_Check(value) || PyTuple_Check(value)) { /* of numbers from 0 to 255 */
        PyObject *bytes = PyBytes_FromObject(value);
        int status = bytes ? set_bytes(self, field, bytes) : -1;
        Py_XDECREF(bytes);
        return status;
    }
    Py_buffer buffer;
    if (PyUnicode_Check(value) || PyObject_GetBuffer(value, &buffer, PyBUF_SIMPLE) < 0) {
        PyErr_Format(PyExc_TypeError, "expected bytes, got %.200s", Py_TYPE(value)->tp_name);
        return -1;
    }
    int status = 0;
    if (buffer.len > (Py_ssize_t)field->count) {
        PyErr_Format(PyExc_IndexError, "%s holds %u bytes, got %zd", field->name, field->count, buffer.len);
        status = -1;
    } else {
        memset(self->data + field->offset, 0, field->count);
        memcpy(self->data + field->offset, buffer.buf, (size_t)buffer.len);
    }
    PyBuffer_Release(&buffer);
    return status;
}

/* Text is str where functions raise, and bytes where they return a status, as it is for functions. */
static PyObject *get_text(RecordObject *self, const FieldInfo *field) {
    const char *text = self->data + field->offset;
    Py_ssize_t length = (Py_ssize_t)strnlen(text, field->count);
    return module_info.error ? PyUnicode_DecodeUTF8(text, length, "replace") : PyBytes_FromStringAndSize(text, length);
}

static int set_text(RecordObject *self, const FieldInfo *field, PyObject *value) {
    if (!module_info.error || !PyUnicode_Check(value)) return set_bytes(self, field, value);
    PyObject *bytes = PyUnicode_AsUTF8String(value);
    int status = bytes ? set_bytes(self, field, bytes) : -1;
    Py_XDECREF(bytes);
    return status;
}

static int set_string(RecordObject *self, const FieldInfo *field, PyObject *value) {
    const char **pointer = (const char **)(self->data + field->offset);
    if (to_str(value, true, pointer) < 0) return -1;
    return storage_keep(self->storage, pointer, value == Py_None ? NULL : value);
}

static PyObject *get_nested(RecordObject *self, const FieldInfo *field) {
    PyObject *view = self->views ? PyDict_GetItemString(self->views, field->name) : NULL;
    if (view) return Py_NewRef(view);
    view = value_get(field->type, self->data + field->offset, self->storage);
    if (view) ((RecordObject *)view)->readonly = self->readonly;
    if (view &&
        ((!self->views && !(self->views = PyDict_New())) || PyDict_SetItemString(self->views, field->name, view) < 0))
        Py_CLEAR(view);
    return view;
}

static PyObject *read_field(RecordObject *self, const FieldInfo *field) {
    switch ((FieldShape)field->shape) {
        case FIELD_POINTER: return get_pointed(self, field);
        case FIELD_ARRAY: return get_array(self, field);
        case FIELD_NUMBER: return get_number(self, field);
        case FIELD_BYTES: return PyBytes_FromStringAndSize(self->data + field->offset, field->count);
        case FIELD_TEXT: return get_text(self, field);
        case FIELD_STRING: {
            const char *text = *(const char **)(self->data + field->offset);
            if (!text) Py_RETURN_NONE;
            return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
        }
        case FIELD_VALUE: break;
    }
    if (field->type.kind == KIND_RECORD) return get_nested(self, field);
    return value_get(field->type, self->data + field->offset, self->storage);
}

/* One thread at a time reads or sets the fields of a record, so that a pointer is never without what it points to. */
static PyObject *field_get(PyObject *object, void *closure) {
    RecordObject *self = (RecordObject *)object;
    FieldInfo moved;
    const FieldInfo *field = placed(object, closure, &moved);
    if (!field) return NULL;
    if (UNLIKELY(self->count != 1)) return struct_bulk_get(self, field);
    PyObject *value;
    BEGIN_ALONE(self->storage);
    value = read_field(self, field);
    END_ALONE();
    return value;
}

static int set_value(RecordObject *self, const FieldInfo *field, PyObject *value) {
    PyObject *keep;
    char *where = self->data + field->offset;
    if (value_set(field->type, where, value, &keep) < 0) return -1;
    int status = keep == (PyObject *)self->storage ? 0 : storage_keep(self->storage, where, keep);
    Py_XDECREF(keep);
    return status;
}

/* The address of the number, or what has memory for it. */
static int set_number(RecordObject *self, const FieldInfo *field, PyObject *value) {
    if (PyList_Check(value) || PyTuple_Check(value)) return set_pointed(self, field, value);
    FieldInfo address = *field;
    address.type = (ValueType){KIND_ADDRESS, 0, sizeof(void *)};
    return set_value(self, &address, value);
}

static int field_set(PyObject *object, PyObject *value, void *closure) {
    RecordObject *self = (RecordObject *)object;
    FieldInfo moved;
    const FieldInfo *field = placed(object, closure, &moved);
    if (!field) return -1;
    if (!value) {
        PyErr_Format(PyExc_AttributeError, "cannot delete %s", field->name);
        return -1;
    }
    if (self->readonly) {
        PyErr_SetString(PyExc_ValueError, "the record is read-only");
        return -1;
    }
    if (UNLIKELY(self->count != 1)) return struct_bulk_set(self, field, value);
    int status = -1;
    BEGIN_ALONE(self->storage);
    switch ((FieldShape)field->shape) {
        case FIELD_VALUE: status = set_value(self, field, value); break;
        case FIELD_ARRAY: status = set_array(self, field, value); break;
        case FIELD_BYTES: status = set_bytes(self, field, value); break;
        case FIELD_TEXT: status = set_text(self, field, value); break;
        case FIELD_STRING: status = set_string(self, field, value); break;
        case FIELD_POINTER: status = set_pointed(self, field, value); break;
        case FIELD_NUMBER: status = set_number(self, field, value); break;
    }
    END_ALONE();
    if (status < 0) bad_argument(short_name(Py_TYPE(object)), field->name);
    return status;
}

/* ---- what all records have ---- */

static PyObject *get_pointer(PyObject *self, PyObject *unused) {
    (void)unused;
    return PyLong_FromVoidPtr(record_data(self));
}

enum { LONGEST_NAME = 16 }; /* bytes: UUIDs and LUIDs are written as digits */

static PyObject *field_text(PyObject *self, const FieldInfo *field) {
    PyObject *value = field_get(self, (void *)field);
    PyObject *text = NULL;
    if (value && is_record(value)) {
        PyObject *inner = PyObject_Str(value), *newline = PyUnicode_FromString("\n"),
                 *indented = PyUnicode_FromString("\n    ");
        PyObject *moved = inner && newline && indented ? PyUnicode_Replace(inner, newline, indented, -1) : NULL;
        if (moved) text = PyUnicode_FromFormat("%s :\n    %U", field->name, moved);
        Py_XDECREF(inner), Py_XDECREF(newline), Py_XDECREF(indented), Py_XDECREF(moved);
    } else if (value && (field->type.kind == KIND_ADDRESS || field->type.kind == KIND_KERNEL) && PyLong_Check(value)) {
        PyObject *address = hexadecimal(PyLong_AsUnsignedLongLongMask(value));
        text = address ? PyUnicode_FromFormat("%s : %U", field->name, address) : NULL;
        Py_XDECREF(address);
    } else if (value && field->shape == FIELD_BYTES && field->count <= LONGEST_NAME) {
        PyObject *digits = PyObject_CallMethod(value, "hex", NULL);
        text = digits ? PyUnicode_FromFormat("%s : %U", field->name, digits) : NULL;
        Py_XDECREF(digits);
    } else if (value && field->shape == FIELD_TEXT && PyBytes_Check(value)) {
        text = PyUnicode_FromFormat("%s : %s", field->name, PyBytes_AS_STRING(value));
    } else if (value) {
        text = PyUnicode_FromFormat("%s : %S", field->name, value);
    } else if (PyErr_ExceptionMatches(PyExc_ValueError)) {
        PyErr_Clear();
        text = PyUnicode_FromFormat("%s : <ValueError>", field->name);
    }
    Py_XDECREF(value);
    return text;
}

static PyObject *to_text(PyObject *self) {
    const RecordInfo *info = ((RecordObject *)self)->info;
    Py_ssize_t count = ((RecordObject *)self)->count;
    if (count != 1) return PyUnicode_FromFormat("<%s: %zd elements>", short_name(Py_TYPE(self)), count);
    const FieldInfo *fields = record_fields(info);
    if (!fields) return NULL;
    PyObject *lines = PyList_New(0), *newline = PyUnicode_FromString("\n"), *text = NULL;
    for (int i = 0; lines && i < info->field_count; i++) {
        PyObject *line = field_text(self, &fields[i]);
        if (!line && PyErr_ExceptionMatches(PyExc_AttributeError)) { /* not in the loaded library */
            PyErr_Clear();
            continue;
        }
        if (!line || PyList_Append(lines, line) < 0) Py_CLEAR(lines);
        Py_XDECREF(line);
    }
    if (lines && newline) text = PyUnicode_Join(newline, lines);
    Py_XDECREF(lines), Py_XDECREF(newline);
    return text;
}

static int get_buffer(PyObject *self, Py_buffer *view, int flags) {
    RecordObject *record = (RecordObject *)self;
    Py_ssize_t size = (Py_ssize_t)record_size(record->info) * record->count;
    return PyBuffer_FillInfo(view, self, record->data, size, record->readonly, flags);
}

/* Arrays whose lengths one field holds: cuda.bindings sets all three at once, and none alone. */
static PyObject *set_dsts_srcs(PyObject *self, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"dsts", "srcs", NULL};
    PyObject *dsts, *srcs;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO", names, &dsts, &srcs)) return NULL;
    Py_ssize_t count = PyObject_Size(dsts), others = count < 0 ? -1 : PyObject_Size(srcs);
    if (others < 0) return NULL;
    if (count != others) {
        PyErr_Format(PyExc_ValueError, "dsts and srcs must all have the same length, not %zd and %zd", count, others);
        return NULL;
    }
    PyObject *number = PyLong_FromSsize_t(count);
    bool ok = number && PyObject_SetAttrString(self, "dsts", dsts) == 0 &&
              PyObject_SetAttrString(self, "srcs", srcs) == 0 && PyObject_SetAttrString(self, "count", number) == 0;
    Py_XDECREF(number);
    return ok ? Py_NewRef(Py_None) : NULL;
}

static PyMethodDef batch_methods[] = {
    {"set_dsts_srcs", (PyCFunction)(void (*)(void))set_dsts_srcs, METH_VARARGS | METH_KEYWORDS,
     "set_dsts_srcs($self, dsts, srcs)\n--\n\nSet both arrays, and their length."},
    {0},
};

static bool has_array(const RecordInfo *info, const FieldInfo *fields, const char *name) {
    for (int i = 0; i < info->field_count; i++)
        if (strcmp(fields[i].name, name) == 0) return fields[i].shape == FIELD_POINTER;
    return false;
}

static PyMethodDef methods[] = {
    {"getPtr", get_pointer, METH_NOARGS, "getPtr($self, /)\n--\n\nAddress of the record."},
    {"to_array", records_to_array, METH_O | METH_CLASS,
     "to_array($type, records, /)\n--\n\nA NumPy array, of the class's `dtype`, with copies of the records."},
    {"from_array", records_from_array, METH_O | METH_CLASS,
     "from_array($type, array, /)\n--\n\nRecords over the elements of a NumPy array, whose memory they share."},
    {0},
};
static PyBufferProcs buffer_procs = {.bf_getbuffer = get_buffer};

PyTypeObject RecordBase = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "cupola.bindings.Record",
    .tp_basicsize = sizeof(RecordObject),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_new = construct,
    .tp_init = initialise,
    .tp_dealloc = destroy,
    .tp_repr = to_text,
    .tp_str = to_text,
    .tp_as_buffer = &buffer_procs,
    .tp_methods = methods,
};

PyTypeObject *record_type(int index) {
    PyTypeObject *known = PUBLISHED(record_types[index]);
    if (LIKELY(known != NULL)) return known;
    const RecordInfo *info = &module_info.records[index];
    PyTypeObject *base = info->base >= 0      ? record_type(info->base)
                         : !module_info.error ? &RecordBase
                         : info->array        ? &StructArrayBase
                                              : &StructBase;
    /* The descriptors live as long as the class, which is forever. Derived classes inherit them. */
    const FieldInfo *fields = base ? record_fields(info) : NULL;
    char *name = fields ? qualified_name(info->texts) : NULL;
    PyGetSetDef *accessors = name ? PyMem_Calloc(info->field_count + 1u, sizeof *accessors) : NULL;
    if (!accessors) return name ? (PyTypeObject *)PyErr_NoMemory() : NULL;
    for (int i = 0; info->base < 0 && i < info->field_count; i++) {
        const FieldInfo *field = &fields[i];
        accessors[i] = (PyGetSetDef){field->name, field_get, field_set, field->doc, (void *)field};
    }
    bool batch = !module_info.error && has_array(info, fields, "dsts") && has_array(info, fields, "srcs");
    PyType_Slot slots[] = {
        {Py_tp_doc, (void *)text_after(info->texts)},
        {Py_tp_getset, accessors},
        /* Without this a class made from a spec gets subtype_dealloc, which drops the type itself. */
        {Py_tp_dealloc, destroy},
        {batch ? Py_tp_methods : 0, batch_methods},
        {0, NULL},
    };
    PyType_Spec spec = {name, 0, 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
    return publish_object(&record_types[index], PyType_FromSpecWithBases(&spec, (PyObject *)base));
}

PyObject *record_type_if_made(int index) { return (PyObject *)PUBLISHED(record_types[index]); }

int records_init(void) {
    if (module_info.record_count > COUNT_OF(record_types)) {
        PyErr_SetString(PyExc_SystemError, "too many records");
        return -1;
    }
    if (PyType_Ready(&StorageType) < 0 || PyType_Ready(&RecordBase) < 0 || arrays_init() < 0) return -1;
    return structs_init();
}
