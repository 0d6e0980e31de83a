/* Light integer enumerations: subclasses of int with a metaclass of their own, made from the module's tables
 * when they are first used. They behave like enum.IntEnum where both have a meaning, without the import of
 * enum. */
#include "scalars/scalars.h"

static PyTypeObject EnumMeta, EnumBase;

/* One of these per enum of the module. */
typedef struct {
    PyObject *type;      /* the class */
    PyObject *by_value;  /* dict: int -> member */
    PyObject *small[16]; /* members of the values from 0, which most results are; borrowed from the dict */
} EnumState;
static EnumState *states;
static Lock filling;

static int index_of(PyObject *type) {
    for (int i = 0; i < module_info.enum_count; i++)
        if (PUBLISHED(states[i].type) == type) return i;
    PyErr_Format(PyExc_TypeError, "%R is not an enumeration of %s", type, module_info.name);
    return -1;
}

/* The first member of a value; its index is beyond the last one when there is none. */
static EnumMember find_value(const EnumInfo *info, long long value) {
    EnumMember member = first_member(info);
    while (member.index < info->count && member.value != value) member = next_member(info, member);
    return member;
}

/* A value as the header means it: one of 64 bits stands for itself, not for a negative number. */
static PyObject *number(const EnumInfo *info, long long value) {
    return info->wide ? PyLong_FromUnsignedLongLong((unsigned long long)value) : PyLong_FromLongLong(value);
}

static PyObject *make_member(const EnumInfo *info, PyObject *type, long long value) {
    PyObject *args = Py_BuildValue("(N)", number(info, value));
    PyObject *member = args ? PyLong_Type.tp_new((PyTypeObject *)type, args, NULL) : NULL;
    Py_XDECREF(args);
    return member;
}

/* The member of a value that may have been made for an earlier name. */
static PyObject *member_for(const EnumInfo *info, EnumState *state, long long value) {
    PyObject *key = number(info, value);
    if (!key) return NULL;
    PyObject *member = Py_XNewRef(PyDict_GetItemWithError(state->by_value, key));
    if (!member && !PyErr_Occurred()) {
        member = make_member(info, state->type, value);
        if (member && PyDict_SetItem(state->by_value, key, member) < 0) Py_CLEAR(member);
    }
    Py_DECREF(key);
    return member;
}

/* All members, a name that repeats a value being the same object; fills `by_value` and the attributes of the
 * class. These go to its dictionary at once: setting thousands of attributes one by one would take most of the time. */
static int add_members(const EnumInfo *info, EnumState *state) {
    PyObject *attributes = ((PyTypeObject *)state->type)->tp_dict;
    for (EnumMember item = first_member(info); item.index < info->count; item = next_member(info, item)) {
        PyObject *member = member_for(info, state, item.value);
        PyObject *name = member ? PyUnicode_InternFromString(item.name) : NULL;
        int status = name ? PyDict_SetItem(attributes, name, member) : -1;
        if (item.value >= 0 && item.value < (long long)COUNT_OF(state->small)) state->small[item.value] = member;
        Py_XDECREF(name), Py_XDECREF(member);
        if (status < 0) return -1;
    }
    PyType_Modified((PyTypeObject *)state->type);
    return 0;
}

/* Members come last: whoever has one finds its class. */
static PyObject *publish(EnumState *state, EnumState *made) {
    LOCK(&filling);
    bool first = !state->type;
    if (first) {
        state->by_value = made->by_value;
        PUBLISH(state->type, made->type);
        for (size_t i = 0; i < COUNT_OF(made->small); i++) PUBLISH(state->small[i], made->small[i]);
    }
    UNLOCK(&filling);
    if (!first) {
        Py_DECREF(made->by_value);
        Py_DECREF(made->type);
    }
    return state->type;
}

PyObject *enum_type(int index) {
    EnumState *state = &states[index];
    PyObject *known = PUBLISHED(state->type);
    if (LIKELY(known != NULL)) return known;
    const EnumInfo *info = &module_info.enums[index];
    PyObject *doc = PyDict_GetItemString(EnumBase.tp_dict, "__doc__");
    PyObject *type = PyObject_CallFunction((PyObject *)&EnumMeta, "s(O){s:s,s:(),s:O}", info->texts, &EnumBase,
                                           "__module__", module_info.name, "__slots__", "__doc__", doc);
    if (!type) return NULL;
    EnumState made = {.type = type, .by_value = PyDict_New()};
    if (!made.by_value || add_members(info, &made) < 0) {
        Py_CLEAR(made.by_value);
        Py_DECREF(type);
        return NULL;
    }
    return publish(state, &made);
}

/* A value that the tables do not have, such as the status of a newer driver or a union of flags, gets an
 * instance without a name of its own rather than an error: the call that returned it did happen. */
PyObject *enum_value(int index, long long value) {
    if (LIKELY((unsigned long long)value < COUNT_OF(states->small))) {
        PyObject *known = PUBLISHED(states[index].small[value]);
        if (LIKELY(known != NULL)) return Py_NewRef(known);
    }
    if (!enum_type(index)) return NULL;
    PyObject *key = number(&module_info.enums[index], value);
    if (!key) return NULL;
    PyObject *member = Py_XNewRef(PyDict_GetItemWithError(states[index].by_value, key));
    Py_DECREF(key);
    return member || PyErr_Occurred() ? member : make_member(&module_info.enums[index], states[index].type, value);
}

/* ---- the metaclass ---- */

static PyObject *lookup(PyObject *type, PyObject *value) {
    int index = index_of(type);
    if (index < 0) return NULL;
    PyObject *member = PyDict_GetItemWithError(states[index].by_value, value);
    if (!member && !PyErr_Occurred())
        PyErr_Format(PyExc_ValueError, "%R is not a valid %s", value, module_info.enums[index].texts);
    return Py_XNewRef(member);
}

static PyObject *meta_call(PyObject *type, PyObject *args, PyObject *kwargs) {
    if (type == (PyObject *)&EnumMeta || type == (PyObject *)&EnumBase) return PyType_Type.tp_call(type, args, kwargs);
    PyObject *value;
    static char *keywords[] = {"value", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O", keywords, &value)) return NULL;
    return lookup(type, value);
}

static PyObject *meta_subscript(PyObject *type, PyObject *name) {
    int index = index_of(type);
    if (index < 0) return NULL;
    const EnumInfo *info = &module_info.enums[index];
    EnumMember item = first_member(info);
    for (; PyUnicode_Check(name) && item.index < info->count; item = next_member(info, item))
        if (PyUnicode_CompareWithASCIIString(name, item.name) == 0) return enum_value(index, item.value);
    PyErr_SetObject(PyExc_KeyError, name);
    return NULL;
}

static Py_ssize_t meta_length(PyObject *type) {
    int index = index_of(type);
    return index < 0 ? -1 : PyDict_GET_SIZE(states[index].by_value);
}

static PyObject *meta_iter(PyObject *type) {
    int index = index_of(type);
    if (index < 0) return NULL;
    PyObject *values = PyDict_Values(states[index].by_value);
    PyObject *iterator = values ? PyObject_GetIter(values) : NULL;
    Py_XDECREF(values);
    return iterator;
}

static int meta_contains(PyObject *type, PyObject *value) {
    int index = index_of(type);
    if (index < 0) return -1;
    return PyLong_Check(value) ? PyDict_Contains(states[index].by_value, value) : 0;
}

static PyObject *meta_repr(PyObject *type) {
    return PyUnicode_FromFormat("<enum '%s'>", ((PyTypeObject *)type)->tp_name);
}

static PyObject *meta_members(PyObject *type, void *closure) {
    (void)closure;
    int index = index_of(type);
    if (index < 0) return NULL;
    PyObject *members = PyDict_New();
    const EnumInfo *info = &module_info.enums[index];
    EnumMember item = first_member(info);
    for (; members && item.index < info->count; item = next_member(info, item)) {
        PyObject *member = enum_value(index, item.value);
        if (!member || PyDict_SetItemString(members, item.name, member) < 0) Py_CLEAR(members);
        Py_XDECREF(member);
    }
    return members;
}

static PyObject *meta_doc(PyObject *type, void *closure) {
    (void)closure;
    int index = index_of(type);
    if (index < 0) {
        PyErr_Clear();
        Py_RETURN_NONE;
    }
    return PyUnicode_FromString(text_after(module_info.enums[index].texts));
}

static PyGetSetDef meta_getset[] = {
    {"__members__", meta_members, NULL, "Every name, aliases too, with its member.", NULL},
    {"__doc__", meta_doc, NULL, NULL, NULL},
    {0},
};
static PyMappingMethods meta_mapping = {.mp_length = meta_length, .mp_subscript = meta_subscript};
static PySequenceMethods meta_sequence = {.sq_contains = meta_contains};

static PyTypeObject EnumMeta = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "cupola.bindings.EnumType",
    .tp_base = &PyType_Type,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_call = meta_call,
    .tp_iter = meta_iter,
    .tp_repr = meta_repr,
    .tp_as_mapping = &meta_mapping,
    .tp_as_sequence = &meta_sequence,
    .tp_getset = meta_getset,
};

/* ---- members ---- */

/* Without a name when the tables do not have the value. */
static EnumMember member_of(PyObject *self) {
    int index = index_of((PyObject *)Py_TYPE(self));
    if (index < 0) {
        PyErr_Clear();
        return (EnumMember){0};
    }
    return find_value(&module_info.enums[index], (long long)PyLong_AsUnsignedLongLongMask(self));
}

static PyObject *member_value(PyObject *self, void *closure) {
    (void)closure;
    return PyNumber_Long(self); /* an int of no class of its own */
}

static PyObject *member_name(PyObject *self, void *closure) {
    const char *name = member_of(self).name;
    if (name) return PyUnicode_FromString(name);
    PyObject *value = member_value(self, closure);
    PyObject *text = value ? PyUnicode_FromFormat("UNKNOWN_%S", value) : NULL;
    Py_XDECREF(value);
    return text;
}

static PyObject *member_doc(PyObject *self, void *closure) {
    (void)closure;
    const char *doc = member_of(self).doc;
    if (!doc || !*doc) Py_RETURN_NONE;
    return PyUnicode_FromString(doc);
}

static PyObject *member_repr(PyObject *self) {
    PyObject *name = member_name(self, NULL), *value = member_value(self, NULL);
    PyObject *text = name && value ? PyUnicode_FromFormat("<%s.%U: %S>", Py_TYPE(self)->tp_name, name, value) : NULL;
    Py_XDECREF(name), Py_XDECREF(value);
    return text;
}

static PyObject *member_reduce(PyObject *self, PyObject *unused) {
    (void)unused;
    return Py_BuildValue("O(N)", Py_TYPE(self), member_value(self, NULL));
}

static PyObject *member_format(PyObject *self, PyObject *spec) {
    if (PyUnicode_Check(spec) && PyUnicode_GET_LENGTH(spec) == 0) return PyObject_Str(self);
    PyObject *value = member_value(self, NULL);
    PyObject *text = value ? PyObject_Format(value, spec) : NULL;
    Py_XDECREF(value);
    return text;
}

static PyGetSetDef member_getset[] = {
    {"name", member_name, NULL, "The name in the header.", NULL},
    {"value", member_value, NULL, "The number.", NULL},
    {"__doc__", member_doc, NULL, NULL, NULL},
    {0},
};
static PyMethodDef member_methods[] = {
    {"__reduce__", member_reduce, METH_NOARGS, NULL},
    {"__format__", member_format, METH_O, NULL},
    {0},
};

static PyTypeObject EnumBase = {
    PyVarObject_HEAD_INIT(&EnumMeta, 0)
    .tp_name = "cupola.bindings.Enum",
    .tp_base = &PyLong_Type,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_repr = member_repr,
    .tp_str = member_repr,
    .tp_getset = member_getset,
    .tp_methods = member_methods,
};

int enums_init(void) {
    if (states) return 0;
    states = PyMem_Calloc(module_info.enum_count, sizeof *states);
    if (!states) {
        PyErr_NoMemory();
        return -1;
    }
    return PyType_Ready(&EnumMeta) < 0 || PyType_Ready(&EnumBase) < 0 ? -1 : 0;
}
