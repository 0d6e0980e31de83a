/* Values behind `void *` whose C type depends on an attribute, and the values of options. */
#include "arguments/arguments.h"

#define TEXT_ROOM 1024 /* bytes for a text attribute */

static const AttributeType *find(const AttributeTable *table, long long attribute) {
    for (int i = 0; i < table->count; i++)
        if (table->types[i].attribute == attribute) return &table->types[i];
    PyErr_Format(PyExc_TypeError, "%s has no attribute %lld of a known type", table->name, attribute);
    return NULL;
}

/* Room for the attribute's value. `*size` is the size that the caller asked for, or 0; it becomes that of the
 * room. */
void *attribute_room(const AttributeTable *table, long long attribute, Scratch *scratch, size_t *size) {
    const AttributeType *type = find(table, attribute);
    if (!type) return NULL;
    size_t room = type->type.kind == KIND_TEXT ? TEXT_ROOM : type->type.size;
    if (*size == 0) *size = room;
    return scratch_alloc(scratch, (*size > room ? *size : room) + sizeof(uint64_t));
}

PyObject *attribute_from(const AttributeTable *table, long long attribute, void *data, size_t size) {
    const AttributeType *type = find(table, attribute);
    if (!type) return NULL;
    if (type->list) return list_from(type->type, data, size / type->type.size);
    if (type->type.kind != KIND_RECORD) return value_get(type->type, data, NULL);
    PyObject *record = record_new(type->type.index);
    if (record) memcpy(record_data(record), data, type->type.size);
    return record;
}

int attribute_to(const AttributeTable *table, long long attribute, PyObject *object, Scratch *scratch, void **out,
                 size_t *size) {
    const AttributeType *type = find(table, attribute);
    if (!type) return -1;
    if (type->type.kind == KIND_TEXT) {
        if (to_string(object, false, scratch, (const char **)out) < 0) return -1;
        *size = strlen(*out) + 1;
        return 0;
    }
    *size = type->type.size;
    *out = scratch_alloc(scratch, type->type.size + sizeof(uint64_t));
    if (!*out) return -1;
    PyObject *keep;
    if (value_set(type->type, *out, object, &keep) < 0) return -1;
    return scratch_keep(scratch, keep);
}

void **attribute_rooms(const AttributeTable *table, const int *attributes, long long count, size_t *sizes,
                       Scratch *scratch) {
    void **rooms = scratch_alloc(scratch, sizeof *rooms * (size_t)(count > 0 ? count : 0) + 1);
    for (long long i = 0; rooms && i < count; i++) {
        size_t none = 0;
        rooms[i] = attribute_room(table, attributes[i], scratch, sizes ? &sizes[i] : &none);
        if (!rooms[i]) return NULL;
    }
    return rooms;
}

PyObject *attributes_from(const AttributeTable *table, const int *attributes, void **data, long long count,
                          const size_t *sizes) {
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (long long i = 0; list && i < count; i++) {
        PyObject *value = attribute_from(table, attributes[i], data[i], sizes ? sizes[i] : 0);
        if (value) PyList_SET_ITEM(list, i, value);
        else Py_CLEAR(list);
    }
    return list;
}

/* ---- options ---- */

static int to_option(PyObject *object, OptionKind kind, Scratch *scratch, void **out) {
    switch (kind) {
        case OPTION_FLOAT: return to_f32(object, (float *)out);
        case OPTION_STRINGS: return to_strings(object, -1, scratch, (const char *const **)out);
        case OPTION_ADDRESSES: return to_list(object, (ValueType){KIND_ADDRESS, 0, sizeof(void *)}, -1, scratch, out);
        case OPTION_BUFFER:
            if (PyBytes_Check(object)) return to_buffer(object, scratch, (char **)out);
            return to_address(object, scratch, out);
        case OPTION_RECORD: return to_address(object, scratch, out);
        case OPTION_INTEGER: break;
    }
    int64_t value;
    if (object == Py_None) return 0; /* an option without a value */
    if (to_i64(object, &value) < 0) return -1;
    *out = (void *)value;
    return 0;
}

int to_options(PyObject *object, const OptionType *types, size_t type_count, const int *keys, long long count,
               Scratch *scratch, void ***out) {
    *out = NULL;
    if (count > 0 && !PyList_Check(object) && !PyTuple_Check(object)) {
        PyErr_Format(PyExc_TypeError, "expected a list or tuple, got %.200s", Py_TYPE(object)->tp_name);
        return -1;
    }
    if (count <= 0) return 0;
    if (PySequence_Fast_GET_SIZE(object) < count) {
        PyErr_Format(PyExc_RuntimeError, "List is too small: %zd < %lld", PySequence_Fast_GET_SIZE(object), count);
        return -1;
    }
    void **values = scratch_alloc(scratch, sizeof *values * (size_t)count);
    PyObject *items = values ? scratch_items(scratch, object) : NULL;
    if (items && PyTuple_GET_SIZE(items) < count) { /* another thread has shortened the list */
        PyErr_SetString(PyExc_RuntimeError, "the list became shorter during the call");
        return -1;
    }
    for (long long i = 0; items && i < count; i++) {
        OptionKind kind = OPTION_INTEGER;
        for (size_t j = 0; j < type_count; j++)
            if (types[j].option == keys[i]) kind = types[j].kind;
        if (to_option(PyTuple_GET_ITEM(items, i), kind, scratch, &values[i]) < 0) return -1;
    }
    *out = values;
    return items ? 0 : -1;
}
