/* Memory of records. Views of a record's parts share its storage, so that they outlive the object they came from. So
 * does a view that is made from the address of a record: what its pointers refer to lives as long as the memory. */
#include "memory/memory.h"

#include <stdlib.h>

static Storage *newest; /* of those that have memory */
static Lock listed;

Storage *storage_at(const void *address) {
    const char *place = address;
    LOCK(&listed);
    Storage *storage = newest;
    while (storage && (place < storage->data || place >= storage->data + storage->size)) storage = storage->before;
    Py_XINCREF((PyObject *)storage);
    UNLOCK(&listed);
    return storage;
}

static void enter(Storage *self) {
    LOCK(&listed);
    self->before = newest;
    self->after = NULL;
    if (newest) newest->after = self;
    newest = self;
    UNLOCK(&listed);
}

static void leave(Storage *self) {
    LOCK(&listed);
    *(self->after ? &self->after->before : &newest) = self->before;
    if (self->before) self->before->after = self->after;
    UNLOCK(&listed);
}

Storage *storage_new(size_t size, size_t align, size_t count) {
    Storage *self = PyObject_New(Storage, &StorageType);
    if (!self) return NULL;
    self->data = NULL;
    self->count = count;
    self->kept = NULL;
    if (size) {
        if (align < 16) align = 16;
        size = (size + align - 1) / align * align;
        self->data = aligned_alloc(align, size);
        if (!self->data) {
            Py_DECREF(self);
            PyErr_NoMemory();
            return NULL;
        }
        memset(self->data, 0, size);
        self->size = size;
        enter(self);
    }
    return self;
}

int storage_keep(Storage *self, const void *where, PyObject *object) {
    if (!object && !self->kept) return 0;
    PyObject *key = PyLong_FromVoidPtr((void *)where);
    if (!key) return -1;
    int status = 0;
    if (object) {
        if (!self->kept) self->kept = PyDict_New();
        status = self->kept ? PyDict_SetItem(self->kept, key, object) : -1;
    } else if (PyDict_Contains(self->kept, key) == 1) {
        status = PyDict_DelItem(self->kept, key);
    }
    Py_DECREF(key);
    return status;
}

PyObject *storage_kept(Storage *self, const void *where) {
    if (!self->kept) return NULL;
    PyObject *key = PyLong_FromVoidPtr((void *)where);
    PyObject *object = key ? Py_XNewRef(PyDict_GetItemWithError(self->kept, key)) : NULL;
    Py_XDECREF(key);
    PyErr_Clear();
    return object;
}

/* Pointers in somebody else's memory to arrays that go now. */
static void clear_pointers(Storage *self) {
    PyObject *key, *value;
    for (Py_ssize_t i = 0; PyDict_Next(self->kept, &i, &key, &value);) {
        void **pointer = PyLong_AsVoidPtr(key);
        bool array = pointer && Py_IS_TYPE(value, &StorageType) && Py_REFCNT(value) == 1;
        if (array && *pointer == ((Storage *)value)->data) *pointer = NULL;
    }
}

static void destroy(PyObject *object) {
    Storage *self = (Storage *)object;
    if (self->data) leave(self);
    if (!self->data && self->kept) clear_pointers(self);
    free(self->data);
    Py_XDECREF(self->kept);
    PyObject_Free(self);
}

PyTypeObject StorageType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "cupola.bindings.Storage",
    .tp_basicsize = sizeof(Storage),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_dealloc = destroy,
};
