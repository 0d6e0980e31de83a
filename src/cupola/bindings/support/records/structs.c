/* What records have in modules whose functions raise: arrays, `ptr`, comparison by content, views of other memory. */
#include "records/records.h"

static const RecordInfo *info_of_type(PyTypeObject *type) {
    int index = record_index(type);
    if (index < 0) PyErr_Format(PyExc_TypeError, "cannot create %s objects", type->tp_name);
    return index < 0 ? NULL : &module_info.records[index];
}

/* Takes over the reference to `storage`, which may be NULL with an exception set. */
static PyObject *make(PyTypeObject *type, const RecordInfo *info, void *data, Py_ssize_t count, Storage *storage) {
    RecordObject *self = storage ? (RecordObject *)type->tp_alloc(type, 0) : NULL;
    if (!self) {
        Py_XDECREF((PyObject *)storage);
        return NULL;
    }
    self->info = info;
    self->data = data;
    self->count = count;
    self->storage = storage;
    return (PyObject *)self;
}

static PyObject *make_zeroed(PyTypeObject *type, const RecordInfo *info, Py_ssize_t count) {
    if (count > PY_SSIZE_T_MAX / 2 / (Py_ssize_t)info->size) return PyErr_NoMemory();
    size_t room = info->size * (size_t)(count ? count : 1);
    Storage *storage = storage_new(room, info->align, (size_t)count);
    return make(type, info, storage ? storage->data : NULL, count, storage);
}

PyObject *struct_array(int index, size_t count) {
    PyTypeObject *type = record_type(index);
    return type ? make_zeroed(type, &module_info.records[index], (Py_ssize_t)count) : NULL;
}

PyObject *struct_array_view(int index, void *data, size_t count, Storage *storage) {
    PyTypeObject *type = record_type(index);
    if (!type) return NULL;
    Py_INCREF((PyObject *)storage);
    return make(type, &module_info.records[index], data, (Py_ssize_t)count, storage);
}

void struct_shorten(PyObject *self, size_t count) { ((RecordObject *)self)->count = (Py_ssize_t)count; }

PyObject *struct_sized(int index, size_t size) {
    PyTypeObject *type = record_type(index);
    const RecordInfo *info = &module_info.records[index];
    Storage *storage = type ? storage_new(size < info->size ? info->size : size, info->align, 1) : NULL;
    return type ? make(type, info, storage ? storage->data : NULL, 1, storage) : NULL;
}

int struct_room(PyObject *record, void **field, size_t size, size_t count) {
    Storage *room = storage_new(size * (count ? count : 1), 16, count);
    int status = -1;
    BEGIN_ALONE(((RecordObject *)record)->storage);
    if (room) status = storage_keep(((RecordObject *)record)->storage, field, (PyObject *)room);
    if (status == 0) *field = room->data;
    END_ALONE();
    Py_XDECREF((PyObject *)room);
    return status;
}

int to_struct(PyObject *object, int index, unsigned version, void **out) {
    if (PyLong_Check(object)) return to_u64(object, (uint64_t *)out);
    if (to_record(object, index, false, out) < 0) return -1;
    if (version && !((RecordObject *)object)->readonly && !*(unsigned *)*out) *(unsigned *)*out = version;
    return 0;
}

int to_struct_array(PyObject *object, int index, void **out, size_t *count) {
    if (to_record(object, index, false, out) < 0) return -1;
    *count = (size_t)((RecordObject *)object)->count;
    return 0;
}

/* ---- making them ---- */

static PyObject *construct(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    const RecordInfo *info = info_of_type(type);
    if (!info) return NULL;
    Py_ssize_t count = 1;
    if (PyTuple_GET_SIZE(args) > info->array) {
        PyErr_Format(PyExc_TypeError, "%s() takes %s", short_name(type),
                     info->array ? "a number of elements" : "no positional arguments");
        return NULL;
    }
    if (PyTuple_GET_SIZE(args)) {
        count = PyNumber_AsSsize_t(PyTuple_GET_ITEM(args, 0), PyExc_OverflowError);
        if (count < 0) {
            if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "the number of elements must not be negative");
            return NULL;
        }
    }
    PyObject *self = make_zeroed(type, info, count), *name, *value;
    for (Py_ssize_t i = 0; self && kwargs && PyDict_Next(kwargs, &i, &name, &value);)
        if (record_set_named(self, name, value) < 0) Py_CLEAR(self);
    return self;
}

static PyObject *over_buffer(PyTypeObject *type, PyObject *object) {
    const RecordInfo *info = info_of_type(type);
    PyObject *memory = info ? PyMemoryView_FromObject(object) : NULL;
    if (!memory) return NULL;
    Py_buffer *buffer = PyMemoryView_GET_BUFFER(memory);
    Py_ssize_t count = buffer->len / (Py_ssize_t)info->size;
    if (!PyBuffer_IsContiguous(buffer, 'C') || buffer->len % info->size || (count != 1 && !info->array)) {
        PyErr_Format(PyExc_ValueError, "expected a contiguous buffer of %s%u bytes, got %zd",
                     info->array ? "a multiple of " : "", info->size, buffer->len);
        Py_DECREF(memory);
        return NULL;
    }
    Storage *storage = storage_new(0, 0, 0);
    if (storage && storage_keep(storage, NULL, memory) < 0) Py_CLEAR(storage);
    PyObject *self = make(type, info, buffer->buf, count, storage);
    if (self) ((RecordObject *)self)->readonly = buffer->readonly;
    Py_DECREF(memory);
    return self;
}

static PyObject *from_buffer(PyObject *type, PyObject *object) { return over_buffer((PyTypeObject *)type, object); }

static PyObject *from_data(PyObject *type, PyObject *array) {
    int index = record_index((PyTypeObject *)type);
    return index < 0 || check_dtype(array, index) < 0 ? NULL : over_buffer((PyTypeObject *)type, array);
}

static PyObject *from_ptr(PyObject *cls, PyObject *args, PyObject *kwargs) {
    PyTypeObject *type = (PyTypeObject *)cls;
    const RecordInfo *info = info_of_type(type);
    if (!info) return NULL;
    static char *keywords[] = {"ptr", "size", "readonly", "owner", NULL};
    PyObject *address, *owner = Py_None;
    Py_ssize_t count = 1;
    int readonly = 0;
    const char *format = info->array ? "O|npO" : "O|pO";
    char **names = info->array ? keywords : (char *[]){"ptr", "readonly", "owner", NULL};
    int parsed = info->array
                     ? PyArg_ParseTupleAndKeywords(args, kwargs, format, names, &address, &count, &readonly, &owner)
                     : PyArg_ParseTupleAndKeywords(args, kwargs, format, names, &address, &readonly, &owner);
    uint64_t where;
    if (!parsed || to_u64(address, &where) < 0) return NULL;
    if (where < FIRST_ADDRESS || count < 0) {
        PyErr_SetString(PyExc_ValueError, where >= FIRST_ADDRESS ? "size must not be negative"
                                          : where                ? "ptr is not an address: nothing can be there"
                                                                 : "ptr must not be null");
        return NULL;
    }
    PyObject *self;
    if (owner == Py_None) {
        self = make_zeroed(type, info, count);
        if (self) memcpy(record_data(self), (void *)where, info->size * (size_t)count);
    } else {
        Storage *storage = storage_new(0, 0, 0);
        if (storage && storage_keep(storage, NULL, owner) < 0) Py_CLEAR(storage);
        self = make(type, info, (void *)where, count, storage);
    }
    if (self) ((RecordObject *)self)->readonly = readonly;
    return self;
}

/* ---- all of them ---- */

static PyObject *get_address(PyObject *self, void *closure) {
    (void)closure;
    return PyLong_FromVoidPtr(record_data(self));
}

static PyObject *as_integer_address(PyObject *self) { return get_address(self, NULL); }

static int always_true(PyObject *self) {
    (void)self;
    return 1;
}

static PyObject *compare(PyObject *a, PyObject *b, int op) {
    if ((op != Py_EQ && op != Py_NE) || Py_TYPE(a) != Py_TYPE(b)) Py_RETURN_NOTIMPLEMENTED;
    RecordObject *x = (RecordObject *)a, *y = (RecordObject *)b;
    bool equal = x->count == y->count && !memcmp(x->data, y->data, x->info->size * (size_t)x->count);
    return PyBool_FromLong(equal == (op == Py_EQ));
}

/* ---- arrays ---- */

static Py_ssize_t length(PyObject *self) { return ((RecordObject *)self)->count; }

static PyObject *element(PyObject *object, Py_ssize_t i) {
    RecordObject *self = (RecordObject *)object;
    if (i < 0 || i >= self->count) {
        PyErr_Format(PyExc_IndexError, "%s index out of range", short_name(Py_TYPE(object)));
        return NULL;
    }
    Storage *storage = (Storage *)Py_NewRef((PyObject *)self->storage);
    PyObject *item = make(Py_TYPE(object), self->info, self->data + (size_t)i * self->info->size, 1, storage);
    if (item) ((RecordObject *)item)->readonly = self->readonly;
    return item;
}

static PyObject *slice(RecordObject *self, PyObject *key) {
    Py_ssize_t start, stop, step;
    if (PySlice_Unpack(key, &start, &stop, &step) < 0) return NULL;
    Py_ssize_t count = PySlice_AdjustIndices(self->count, &start, &stop, step);
    PyTypeObject *type = Py_TYPE((PyObject *)self);
    size_t size = self->info->size;
    if (step != 1) { /* records are views of consecutive memory, so this one is a copy */
        PyObject *copy = make_zeroed(type, self->info, count);
        for (Py_ssize_t i = 0; copy && i < count; i++)
            memcpy((char *)record_data(copy) + (size_t)i * size, self->data + (start + i * step) * (Py_ssize_t)size,
                   size);
        return copy;
    }
    Storage *storage = (Storage *)Py_NewRef((PyObject *)self->storage);
    PyObject *view = make(type, self->info, self->data + (size_t)start * size, count, storage);
    if (view) ((RecordObject *)view)->readonly = self->readonly;
    return view;
}

static PyObject *subscript(PyObject *object, PyObject *key) {
    if (PySlice_Check(key)) return slice((RecordObject *)object, key);
    Py_ssize_t i = PyNumber_AsSsize_t(key, PyExc_IndexError);
    if (i == -1 && PyErr_Occurred()) return NULL;
    return element(object, i < 0 ? i + ((RecordObject *)object)->count : i);
}

static int assign_subscript(PyObject *object, PyObject *key, PyObject *value) {
    if (!value || PySlice_Check(key)) {
        PyErr_SetString(PyExc_TypeError, "only single elements can be assigned");
        return -1;
    }
    PyObject *target = subscript(object, key);
    void *source = NULL;
    int status =
        target ? to_record(value, (int)(((RecordObject *)object)->info - module_info.records), false, &source) : -1;
    if (status == 0 && ((RecordObject *)object)->readonly) {
        PyErr_SetString(PyExc_ValueError, "the record is read-only");
        status = -1;
    }
    if (status == 0) memmove(record_data(target), source, ((RecordObject *)object)->info->size);
    Py_XDECREF(target);
    return status;
}

/* ---- the classes ---- */

static PyMethodDef methods[] = {
    {"from_buffer", from_buffer, METH_O | METH_CLASS,
     "from_buffer($type, buffer, /)\n--\n\nA view of the memory of a buffer."},
    {"from_data", from_data, METH_O | METH_CLASS,
     "from_data($type, data, /)\n--\n\nA view of a NumPy array of the record's type."},
    {"from_ptr", (PyCFunction)(void (*)(void))from_ptr, METH_VARARGS | METH_KEYWORDS | METH_CLASS,
     "The record at an address: a view when an `owner` that keeps the memory alive is given, else a copy."},
    {0},
};
static PyGetSetDef getset[] = {
    {"ptr", get_address, NULL, "Address of the record.", NULL},
    {0},
};
static PyNumberMethods number = {.nb_int = as_integer_address, .nb_bool = always_true};

PyTypeObject StructBase = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "cupola.bindings.Struct",
    .tp_base = &RecordBase,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_new = construct,
    .tp_richcompare = compare,
    .tp_hash = PyObject_HashNotImplemented,
    .tp_as_number = &number,
    .tp_methods = methods,
    .tp_getset = getset,
};

static PySequenceMethods sequence = {.sq_length = length, .sq_item = element};
static PyMappingMethods mapping = {
    .mp_length = length, .mp_subscript = subscript, .mp_ass_subscript = assign_subscript};

PyTypeObject StructArrayBase = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "cupola.bindings.StructArray",
    .tp_base = &StructBase,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_as_sequence = &sequence,
    .tp_as_mapping = &mapping,
};

int structs_init(void) { return PyType_Ready(&StructBase) < 0 || PyType_Ready(&StructArrayBase) < 0 ? -1 : 0; }
