/* Classes for opaque pointers (CUstream), named integers (CUdeviceptr) and function pointers (CUhostFn).
 *
 * An object holds its value, or with `_ptr` it is a view of a value in foreign memory. Handles compare and
 * hash by value within their chain of classes, never with a plain int. Some classes of the runtime derive from
 * those of the driver (cudaStream_t from CUstream): each module has a copy of this file, so nothing here may
 * depend on the module that made an object. */
#include "scalars/scalars.h"

static const HandleInfo *info_of(const HandleObject *self) { return self->info; }

uint64_t handle_load(const HandleObject *self) {
    switch (info_of(self)->kind) {
        case KIND_I32: return (uint64_t)*(const int32_t *)self->data;
        case KIND_U32: return *(const uint32_t *)self->data;
        default: return *(const uint64_t *)self->data;
    }
}

/* The number that `object` stands for, in the range of the handle's type. */
static int convert(PyObject *object, int kind, uint64_t *out) {
    int64_t number;
    if (kind == KIND_U32) return to_unsigned_slow(object, UINT32_MAX, out);
    if (kind != KIND_I32) return to_u64(object, out);
    if (to_signed_slow(object, INT32_MIN, INT32_MAX, &number) < 0) return -1;
    *out = (uint64_t)number;
    return 0;
}

static void store(HandleObject *self, uint64_t value) {
    if (info_of(self)->kind == KIND_I32 || info_of(self)->kind == KIND_U32) *(uint32_t *)self->data = (uint32_t)value;
    else *(uint64_t *)self->data = value;
}

static PyObject *as_long(PyObject *object) {
    HandleObject *self = (HandleObject *)object;
    return info_of(self)->kind == KIND_I32 ? PyLong_FromLong(*(int32_t *)self->data)
                                           : PyLong_FromUnsignedLong(handle_load(self));
}

int to_handle_slow(PyObject *object, int index, uint64_t *out) {
    if (object == Py_None) {
        *out = 0;
        return 0;
    }
    /* A ctypes function pointer is a buffer that holds the function's address. */
    if (PyCallable_Check(object) && PyObject_CheckBuffer(object)) {
        Py_buffer buffer;
        if (PyObject_GetBuffer(object, &buffer, PyBUF_SIMPLE) < 0) return -1;
        bool pointer = buffer.len == sizeof *out;
        if (pointer) memcpy(out, buffer.buf, sizeof *out);
        PyBuffer_Release(&buffer);
        if (pointer) return 0;
    }
    return convert(object, index < 0 ? KIND_U64 : module_info.handles[index].kind, out);
}

/* Handles come and go with every call, so the memory of some is kept. All have the same size. Without a GIL Python's own
 * allocator, which has memory for each thread, is quicker than a lock. */
#ifdef Py_GIL_DISABLED
enum { MAX_SPARE = 0 };
#else
enum { MAX_SPARE = 64 };
#endif
static HandleObject *spare[MAX_SPARE + 1];
static int spare_count;

PyObject *handle_new(int index, uint64_t value) {
    PyTypeObject *type = handle_type(index);
    if (UNLIKELY(!type)) return NULL;
    HandleObject *self;
    if (LIKELY(MAX_SPARE && spare_count > 0)) {
        self = spare[--spare_count];
        PyObject_Init((PyObject *)self, type);
    } else if (!(self = PyObject_New(HandleObject, type))) {
        return NULL;
    }
    self->data = &self->value;
    self->value = value;
    self->info = &module_info.handles[index];
    return (PyObject *)self;
}

/* Few are ever needed, and nobody knows when the library writes for the last time. All are in a list, since what nothing
 * points to is a leak to those who look for one. */
uint64_t *handle_cells(size_t count) {
    static uint64_t *newest;
    uint64_t *cells = count < SIZE_MAX / sizeof *cells ? PyMem_RawCalloc(count + 1, sizeof *cells) : NULL;
    if (!cells) {
        PyErr_NoMemory();
        return NULL;
    }
    cells[0] = (uint64_t)(uintptr_t)__atomic_exchange_n(&newest, cells, __ATOMIC_ACQ_REL);
    return cells + 1;
}

PyObject *handle_later(int index, const uint64_t *cell) {
    uint64_t value = __atomic_load_n(cell, __ATOMIC_ACQUIRE);
    PyObject *made = handle_new(index, value);
    if (made && !value) ((HandleObject *)made)->data = (void *)cell;
    return made;
}

PyObject *handles_later(int index, const uint64_t *cells, size_t count) {
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list && i < count; i++) {
        PyObject *one = handle_later(index, &cells[i]);
        if (one) PyList_SET_ITEM(list, (Py_ssize_t)i, one);
        else Py_CLEAR(list);
    }
    return list;
}

/* The class below HandleBase, or HandleBase itself. */
static PyTypeObject *root_of(PyTypeObject *type) {
    while (type->tp_base && type->tp_base->tp_base && type->tp_base->tp_base != &PyBaseObject_Type)
        type = type->tp_base;
    return type;
}

bool is_foreign_handle(PyObject *object) {
    PyTypeObject *base = root_of(Py_TYPE(object))->tp_base;
    return base && !strcmp(base->tp_name, HandleBase.tp_name);
}

static PyObject *construct(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    int index = -1;
    for (PyTypeObject *base = type; base && index < 0; base = base->tp_base)
        for (int i = 0; i < module_info.handle_count; i++)
            if (PUBLISHED(handle_types[i]) == base) index = i;
    if (index < 0) {
        PyErr_Format(PyExc_TypeError, "cannot create %s objects", type->tp_name);
        return NULL;
    }
    PyObject *value = NULL, *address = NULL;
    static char *keywords[] = {"init_value", "_ptr", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OO", keywords, &value, &address)) return NULL;
    HandleObject *self = (HandleObject *)type->tp_alloc(type, 0);
    if (!self) return NULL;
    self->data = &self->value;
    self->info = &module_info.handles[index];
    uint64_t where = 0;
    if (address && to_u64(address, &where) < 0) goto error;
    if (where && where < FIRST_ADDRESS) {
        PyErr_Format(PyExc_ValueError, "%s(_ptr=%llu): nothing can be at this address", short_name(type),
                     (unsigned long long)where);
        goto error;
    }
    if (where) self->data = (void *)where;
    if (value == Py_None) {
        PyErr_SetString(PyExc_TypeError, "an integer is required, got None");
        goto error;
    }
    uint64_t number = 0;
    if (value && convert(value, info_of(self)->kind, &number) < 0) goto error;
    if (value && (number || !where)) store(self, number);
    return (PyObject *)self;
error:
    Py_DECREF(self);
    return NULL;
}

static void destroy(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    /* Not of a class derived in Python. What a class of the runtime inherits from one of the driver may have made
     * it. */
    size_t index = (size_t)(((HandleObject *)self)->info - module_info.handles);
    bool ours = index < module_info.handle_count && type == PUBLISHED(handle_types[index]);
    if (LIKELY(MAX_SPARE && ours && spare_count < MAX_SPARE)) spare[spare_count++] = (HandleObject *)self;
    else type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *repr(PyObject *object) {
    HandleObject *self = (HandleObject *)object;
    PyObject *value = info_of(self)->family == HANDLE_INTEGER ? as_long(object) : hexadecimal(handle_load(self));
    PyObject *text = value ? PyUnicode_FromFormat("<%s %S>", short_name(Py_TYPE(object)), value) : NULL;
    Py_XDECREF(value);
    return text;
}

static PyObject *compare(PyObject *a, PyObject *b, int op) {
    if ((op != Py_EQ && op != Py_NE) || !is_handle(b) || root_of(Py_TYPE(a)) != root_of(Py_TYPE(b)))
        Py_RETURN_NOTIMPLEMENTED;
    bool equal = handle_load((HandleObject *)a) == handle_load((HandleObject *)b);
    return PyBool_FromLong(equal == (op == Py_EQ));
}

static Py_hash_t hash(PyObject *self) {
    PyObject *value = as_long(self);
    Py_hash_t result = value ? PyObject_Hash(value) : -1;
    Py_XDECREF(value);
    return result;
}

static int always_true(PyObject *self) {
    (void)self;
    return 1;
}

static PyObject *get_pointer(PyObject *self, PyObject *unused) {
    (void)unused;
    return PyLong_FromVoidPtr(((HandleObject *)self)->data);
}

static PyObject *cuda_stream(PyObject *self, PyObject *unused) {
    (void)unused;
    return Py_BuildValue("(iN)", 0, as_long(self));
}

static PyMethodDef methods[] = {
    {"getPtr", get_pointer, METH_NOARGS,
     "getPtr($self, /)\n--\n\nAddress of the memory that holds the handle, usable as a pointer to it in C."},
    {0},
};
static PyMethodDef stream_methods[] = {
    {"__cuda_stream__", cuda_stream, METH_NOARGS, "The CUDA stream protocol: version 0 and the handle."},
    {0},
};
static PyNumberMethods number = {.nb_int = as_long, .nb_index = as_long, .nb_bool = always_true};

PyTypeObject HandleBase = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "cupola.bindings.Handle",
    .tp_basicsize = sizeof(HandleObject),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_new = construct,
    .tp_dealloc = destroy,
    .tp_repr = repr,
    .tp_richcompare = compare,
    .tp_hash = hash,
    .tp_as_number = &number,
    .tp_methods = methods,
};

/* A class of the module `driver`, which keeps it. */
static PyTypeObject *foreign_type(const char *name) {
    PyObject *driver = PyImport_ImportModule("cupola.bindings.driver");
    PyObject *type = driver ? PyObject_GetAttrString(driver, name) : NULL;
    Py_XDECREF(driver);
    Py_XDECREF(type);
    return (PyTypeObject *)type;
}

PyTypeObject *handle_type(int index) {
    PyTypeObject *known = PUBLISHED(handle_types[index]);
    if (LIKELY(known != NULL)) return known;
    const HandleInfo *info = &module_info.handles[index];
    const char *doc = text_after(info->texts), *foreign = text_after(doc);
    PyTypeObject *base = *foreign ? foreign_type(foreign) : info->base < 0 ? &HandleBase : handle_type(info->base);
    char *name = base ? qualified_name(info->texts) : NULL;
    if (!name) return NULL;
    PyType_Slot slots[] = {
        {Py_tp_doc, (void *)doc},
        /* Without this a class made from a spec gets subtype_dealloc, which drops the type itself. */
        {Py_tp_dealloc, destroy},
        {info->stream ? Py_tp_methods : 0, stream_methods},
        {0, NULL},
    };
    PyType_Spec spec = {name, 0, 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
    return publish_object(&handle_types[index], PyType_FromSpecWithBases(&spec, (PyObject *)base));
}

int handles_init(void) { return PyType_Ready(&HandleBase); }
