/* Records as NumPy arrays: the structured type of a record, arrays of records and back. NumPy is imported when it is
 * asked for. */
#include "records/records.h"

static PyObject *numpy(void) {
    PyObject *module = PyImport_ImportModule("numpy");
    if (!module && PyErr_ExceptionMatches(PyExc_ImportError)) {
        PyErr_Clear();
        PyErr_SetString(PyExc_ImportError, "this needs NumPy: pip install numpy");
    }
    return module;
}

/* ---- the type ---- */

static const char *scalar_format(ValueType type) {
    static const char *const formats[] = {"i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8", "i4", "i4"};
    if (type.kind == KIND_HANDLE) return formats[module_info.handles[type.index].kind];
    return type.kind < COUNT_OF(formats) ? formats[type.kind] : "u8"; /* addresses */
}

static PyObject *field_format(const FieldInfo *field) {
    if (field->shape == FIELD_TEXT) return PyUnicode_FromFormat("S%u", field->count);
    if (field->shape == FIELD_BYTES) return Py_BuildValue("(s(I))", "u1", field->count);
    PyObject *format = field->shape == FIELD_POINTER || field->shape == FIELD_STRING ? PyUnicode_FromString("u8")
                       : field->type.kind == KIND_RECORD ? record_dtype(field->type.index)
                                                         : PyUnicode_FromString(scalar_format(field->type));
    return format && field->shape == FIELD_ARRAY ? Py_BuildValue("(N(I))", format, field->count) : format;
}

static PyObject *make_dtype(int index) {
    const RecordInfo *info = &module_info.records[index];
    const FieldInfo *fields = record_fields(info);
    if (!fields) return NULL;
    size_t size = record_size(info);
    bool older = size != info->size;
    PyObject *names = PyList_New(0), *formats = PyList_New(0), *offsets = PyList_New(0), *result = NULL;
    int status = names && formats && offsets ? 0 : -1;
    for (int i = 0; status == 0 && i < info->field_count; i++) {
        const FieldInfo *field = &fields[i];
        long where = older ? field->older : field->offset;
        if (where < 0) continue; /* not in the loaded library */
        PyObject *name = PyUnicode_FromString(field->name), *format = field_format(field);
        PyObject *offset = PyLong_FromLong(where);
        status = name && format && offset ? 0 : -1;
        if (status == 0) status = PyList_Append(names, name);
        if (status == 0) status = PyList_Append(formats, format);
        if (status == 0) status = PyList_Append(offsets, offset);
        Py_XDECREF(name), Py_XDECREF(format), Py_XDECREF(offset);
    }
    PyObject *module = status == 0 ? numpy() : NULL;
    if (module)
        result = PyObject_CallMethod(module, "dtype", "({sOsOsOsn})", "names", names, "formats", formats, "offsets",
                                     offsets, "itemsize", (Py_ssize_t)size);
    Py_XDECREF(names), Py_XDECREF(formats), Py_XDECREF(offsets), Py_XDECREF(module);
    return result;
}

PyObject *record_dtype(int index) {
    static PyObject *made[MAX_RECORDS];
    PyObject *known = PUBLISHED(made[index]);
    return Py_XNewRef(known ? known : publish_object(&made[index], make_dtype(index)));
}

int check_dtype(PyObject *array, int index) {
    PyObject *expected = record_dtype(index);
    PyObject *given = expected ? PyObject_GetAttrString(array, "dtype") : NULL;
    int same = given ? PyObject_RichCompareBool(given, expected, Py_EQ) : -1;
    if (same == 0)
        PyErr_Format(PyExc_ValueError, "expected an array of type %s.dtype, got %R", module_info.records[index].texts,
                     given);
    Py_XDECREF(expected), Py_XDECREF(given);
    return same == 1 ? 0 : -1;
}

/* ---- arrays as arguments ---- */

bool is_record_array(PyObject *object) {
    return PyObject_CheckBuffer(object) && !is_record(object) && PyObject_HasAttrString(object, "dtype");
}

/* The records of an array, where they are when C may find them there, else a copy. */
Py_ssize_t to_records(PyObject *array, int index, Scratch *scratch, void **out) {
    const RecordInfo *info = &module_info.records[index];
    Py_buffer *buffer;
    if (check_dtype(array, index) < 0 || scratch_buffer(scratch, array, PyBUF_SIMPLE, &buffer) < 0) return -1;
    *out = buffer->len ? buffer->buf : NULL;
    if ((uintptr_t)*out % info->align) {
        char *copy = scratch_alloc(scratch, (size_t)buffer->len + info->align);
        if (!copy) return -1;
        copy += (info->align - (uintptr_t)copy % info->align) % info->align;
        *out = memcpy(copy, buffer->buf, (size_t)buffer->len);
    }
    return buffer->len / (Py_ssize_t)info->size;
}

/* ---- methods of the classes ---- */

static int index_of(PyObject *type) {
    int index = record_index((PyTypeObject *)type);
    if (index < 0) PyErr_Format(PyExc_TypeError, "%s has no fields", ((PyTypeObject *)type)->tp_name);
    return index;
}

PyObject *records_to_array(PyObject *type, PyObject *records) {
    int index = index_of(type);
    PyObject *items = index < 0 ? NULL : PySequence_Tuple(records);
    PyObject *dtype = items ? record_dtype(index) : NULL, *module = dtype ? numpy() : NULL;
    PyObject *array = module ? PyObject_CallMethod(module, "zeros", "(n)O", PyTuple_GET_SIZE(items), dtype) : NULL;
    Py_buffer buffer;
    int status = array ? PyObject_GetBuffer(array, &buffer, PyBUF_WRITABLE) : -1;
    if (status == 0) {
        size_t size = record_size(&module_info.records[index]);
        for (Py_ssize_t i = 0; status == 0 && i < PyTuple_GET_SIZE(items); i++) {
            void *data;
            status = to_record(PyTuple_GET_ITEM(items, i), index, false, &data);
            if (status == 0) memcpy((char *)buffer.buf + (size_t)i * size, data, size);
        }
        PyBuffer_Release(&buffer);
    }
    if (status < 0) Py_CLEAR(array);
    Py_XDECREF(items), Py_XDECREF(dtype), Py_XDECREF(module);
    return array;
}

PyObject *records_from_array(PyObject *type, PyObject *array) {
    int index = index_of(type);
    Py_buffer buffer;
    if (index < 0 || check_dtype(array, index) < 0) return NULL;
    bool readonly = PyObject_GetBuffer(array, &buffer, PyBUF_WRITABLE) < 0;
    if (readonly) {
        PyErr_Clear();
        if (PyObject_GetBuffer(array, &buffer, PyBUF_SIMPLE) < 0) return NULL;
    }
    size_t size = record_size(&module_info.records[index]);
    Py_ssize_t count = buffer.len / (Py_ssize_t)size;
    Storage *storage = storage_new(0, 0, 0);
    if (storage && storage_keep(storage, NULL, array) < 0) Py_CLEAR(storage);
    PyObject *list = storage ? PyList_New(count) : NULL;
    for (Py_ssize_t i = 0; list && i < count; i++) {
        PyObject *item = record_view(index, (char *)buffer.buf + (size_t)i * size, storage);
        if (item) {
            ((RecordObject *)item)->readonly = readonly;
            PyList_SET_ITEM(list, i, item);
        } else {
            Py_CLEAR(list);
        }
    }
    PyBuffer_Release(&buffer); /* the storage keeps the array, which does not move while it is referred to */
    Py_XDECREF((PyObject *)storage);
    return list;
}

/* The attribute `dtype` of a class. */
static PyObject *get_dtype(PyObject *self, PyObject *object, PyObject *type) {
    int index = record_index(type && type != Py_None ? (PyTypeObject *)type : Py_TYPE(object));
    return index < 0 ? Py_NewRef(self) : record_dtype(index);
}

static PyTypeObject DtypeType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "cupola.bindings.RecordDtype",
    .tp_doc = "The NumPy type of a record class.",
    .tp_basicsize = sizeof(PyObject),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_descr_get = get_dtype,
};

int arrays_init(void) {
    if (PyType_Ready(&DtypeType) < 0) return -1;
    PyObject *descriptor = PyType_GenericAlloc(&DtypeType, 0);
    int status = descriptor ? PyDict_SetItemString(RecordBase.tp_dict, "dtype", descriptor) : -1;
    Py_XDECREF(descriptor);
    PyType_Modified(&RecordBase);
    return status;
}

/* ---- fields of all elements ---- */

/* All elements as a NumPy array over their memory. */
static PyObject *as_array(RecordObject *self) {
    PyObject *module = numpy();
    PyObject *type = module ? record_dtype((int)(self->info - module_info.records)) : NULL;
    PyObject *array = type ? PyObject_CallMethod(module, "ndarray", "(n)OO", self->count, type, self) : NULL;
    Py_XDECREF(module), Py_XDECREF(type);
    return array;
}

PyObject *struct_bulk_get(RecordObject *self, const FieldInfo *field) {
    PyObject *array = as_array(self);
    PyObject *name = PyUnicode_FromString(field->name);
    PyObject *values = array && name ? PyObject_GetItem(array, name) : NULL;
    Py_XDECREF(array), Py_XDECREF(name);
    return values;
}

int struct_bulk_set(RecordObject *self, const FieldInfo *field, PyObject *value) {
    PyObject *array = as_array(self);
    PyObject *name = PyUnicode_FromString(field->name);
    int status = array && name ? PyObject_SetItem(array, name, value) : -1;
    Py_XDECREF(array), Py_XDECREF(name);
    return status;
}
