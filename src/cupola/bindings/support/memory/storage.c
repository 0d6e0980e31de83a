/* Memory of records. Views of a record's parts share its storage, so that they outlive the object they came
 * from. */
#include "memory/memory.h"

#include <stdlib.h>

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
    PyObject *object = key ? PyDict_GetItemWithError(self->kept, key) : NULL;
    Py_XDECREF(key);
    PyErr_Clear();
    return object;
}

static void destroy(PyObject *object) {
    Storage *self = (Storage *)object;
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
