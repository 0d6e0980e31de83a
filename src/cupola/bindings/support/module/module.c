/* What all generated modules do: classes and constants on demand, sizeof(), the capsule of the table. */
#include "module/module.h"

static PyObject *find_enum(const char *name) {
    for (const char *const *alias = module_info.enum_aliases; *alias; alias += 2)
        if (!strcmp(alias[0], name)) name = alias[1];
    for (int i = 0; i < module_info.enum_count; i++)
        if (!strcmp(module_info.enums[i].texts, name)) return Py_XNewRef(enum_type(i));
    return NULL;
}

static PyObject *find_class(const char *name) {
    for (const char *const *alias = module_info.record_aliases; *alias; alias += 2)
        if (!strcmp(alias[0], name)) name = alias[1];
    for (int i = 0; i < module_info.handle_count; i++)
        if (!strcmp(module_info.handles[i].texts, name)) return Py_XNewRef((PyObject *)handle_type(i));
    for (int i = 0; i < module_info.record_count; i++) {
        const char *texts = module_info.records[i].texts;
        if (module_info.records[i].hidden) continue;
        if (!strcmp(texts, name)) return Py_XNewRef((PyObject *)record_type(i));
        if (!strcmp(text_after(text_after(texts)), name)) return record_dtype(i);
    }
    return NULL;
}

static PyObject *constant_value(int index) {
    const ConstantInfo *constant = &module_info.constants[index];
    return constant->wide ? PyLong_FromUnsignedLongLong((unsigned long long)constant->value)
                          : PyLong_FromLongLong(constant->value);
}

static PyObject *find_constant(const char *name) {
    const char *known = module_info.constant_names;
    for (int i = 0; i < module_info.constant_count; i++, known = text_after(known))
        if (!strcmp(known, name)) return constant_value(i);
    return NULL;
}

static PyObject *find_function(PyObject *module, const char *name) {
    for (const char *const *alias = module_info.function_aliases; *alias; alias += 2)
        if (!strcmp(alias[0], name)) return PyObject_GetAttrString(module, alias[1]);
    return NULL;
}

static int append(PyObject *list, const char *name) {
    PyObject *text = PyUnicode_FromString(name);
    int status = text ? PyList_Append(list, text) : -1;
    Py_XDECREF(text);
    return status;
}

/* Every public name. */
static PyObject *all_names(void) {
    PyObject *list = PyList_New(0);
    size_t prefix = strlen(module_info.name) + 1;
    int status = list ? 0 : -1;
    for (const PyMethodDef *method = module_info.generated; !status && method->ml_name; method++)
        status = append(list, method->ml_name);
    for (const char *const *alias = module_info.function_aliases; !status && *alias; alias += 2)
        status = append(list, *alias);
    for (const PyMethodDef *method = module_info.methods; !status && method && method->ml_name; method++)
        status = append(list, method->ml_name);
    for (int i = 0; !status && i < module_info.enum_count; i++) status = append(list, module_info.enums[i].texts);
    for (const char *const *alias = module_info.enum_aliases; !status && *alias; alias += 2)
        status = append(list, *alias);
    for (int i = 0; !status && i < module_info.handle_count; i++) status = append(list, module_info.handles[i].texts);
    for (int i = 0; !status && i < module_info.record_count; i++)
        if (!module_info.records[i].hidden) status = append(list, module_info.records[i].texts);
    for (const char *const *alias = module_info.record_aliases; !status && *alias; alias += 2)
        if (!strstr(alias[0], "_dtype")) status = append(list, *alias);
    const char *constant = module_info.constant_names;
    for (int i = 0; !status && i < module_info.constant_count; i++, constant = text_after(constant))
        status = append(list, constant);
    if (!status) status = append(list, module_info.error ? module_info.error->name + prefix : "sizeof");
    if (!status && module_info.error && module_info.error->cuda) status = append(list, description_methods[0].ml_name);
    if (!status && module_info.error && module_info.error->too_small) {
        status = append(list, status_methods[0].ml_name);
        if (!status) status = append(list, status_methods[1].ml_name);
    }
    for (int i = 0; !status && module_info.error && i < module_info.error->subclass_count; i++) {
        const ErrorSubclass *subclass = &module_info.error->subclasses[i];
        status = append(list, subclass->name + prefix);
        if (!status && *subclass->alias) status = append(list, subclass->alias);
    }
    if (status) Py_CLEAR(list);
    return list;
}

static PyObject *module_getattr(PyObject *module, PyObject *name) {
    const char *text = PyUnicode_AsUTF8(name);
    if (!text) return NULL;
    PyObject *value = !strcmp(text, "__all__") ? all_names() : find_enum(text);
    if (!value && !PyErr_Occurred()) value = find_class(text);
    if (!value && !PyErr_Occurred()) value = find_constant(text);
    if (!value && !PyErr_Occurred()) value = error_class(text);
    if (!value && !PyErr_Occurred()) value = find_function(module, text);
    if (!value && !PyErr_Occurred())
        PyErr_Format(PyExc_AttributeError, "module '%s' has no attribute '%U'", module_info.name, name);
    if (value && PyObject_SetAttr(module, name, value) < 0) Py_CLEAR(value);
    return value;
}

static PyObject *module_dir(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    PyObject *list = all_names();
    if (list && append(list, "inspect") < 0) Py_CLEAR(list); /* not in __all__, where it would hide Python's own */
    return list;
}

static PyObject *size_of(PyObject *module, PyObject *cls) {
    (void)module;
    for (int i = 0; i < module_info.handle_count; i++)
        if ((PyObject *)PUBLISHED(handle_types[i]) == cls) {
            uint8_t kind = module_info.handles[i].kind;
            return PyLong_FromLong(kind == KIND_I32 || kind == KIND_U32 ? 4 : 8);
        }
    for (int i = 0; i < module_info.record_count; i++)
        if (record_type_if_made(i) == cls) return PyLong_FromSize_t(record_size(&module_info.records[i]));
    PyErr_Format(PyExc_TypeError, "%R is not a handle or record class of %s", cls, module_info.name);
    return NULL;
}

static PyObject *is_pointer_handle(PyObject *module, PyObject *cls) {
    (void)module;
    for (int i = 0; i < module_info.handle_count; i++)
        if ((PyObject *)PUBLISHED(handle_types[i]) == cls)
            return PyBool_FromLong(module_info.handles[i].family == HANDLE_POINTER);
    Py_RETURN_FALSE;
}

static PyMethodDef methods[] = {
    {"__getattr__", module_getattr, METH_O, NULL},
    {"__dir__", module_dir, METH_NOARGS, NULL},
    {0},
};
static PyMethodDef size_methods[] = {
    {"sizeof", size_of, METH_O, "sizeof(cls, /)\n--\n\nSize in bytes of the C type behind a handle or record class."},
    {"_is_pointer_handle", is_pointer_handle, METH_O,
     "_is_pointer_handle(cls, /)\n--\n\nWhether this is a class of the module for handles that are pointers to objects."},
    {0},
};

/* ---- settling ----
 *
 * CPython looks up an attribute of a module in two or three steps of machine code once it has seen that the module has
 * it, but never for a module with a `__getattr__`. So that function goes, and what it would make is made: in some 2 ms,
 * at the first call that succeeds, since importing should stay cheap for those who do not call. */

static PyObject *this_module; /* borrowed: the module lives as long as its functions */

static int put(PyObject *names, const char *name, PyObject *value) {
    PyObject *key = value ? PyUnicode_InternFromString(name) : NULL;
    int status = key && PyDict_SetDefault(names, key, value) ? 0 : -1;
    Py_XDECREF(key);
    return status;
}

static int put_new(PyObject *names, const char *name, PyObject *value) {
    int status = put(names, name, value);
    Py_XDECREF(value);
    return status;
}

static int put_aliases(PyObject *names, const char *const *aliases) {
    int status = 0;
    for (; !status && *aliases; aliases += 2) status = put(names, aliases[0], PyDict_GetItemString(names, aliases[1]));
    return status;
}

static int put_all(PyObject *names) {
    int status = 0;
    for (int i = 0; !status && i < module_info.enum_count; i++)
        status = put(names, module_info.enums[i].texts, enum_type(i));
    for (int i = 0; !status && i < module_info.handle_count; i++)
        status = put(names, module_info.handles[i].texts, (PyObject *)handle_type(i));
    for (int i = 0; !status && i < module_info.record_count; i++)
        if (!module_info.records[i].hidden)
            status = put(names, module_info.records[i].texts, (PyObject *)record_type(i));
    const char *constant = module_info.constant_names;
    for (int i = 0; !status && i < module_info.constant_count; i++, constant = text_after(constant))
        status = put_new(names, constant, constant_value(i));
    if (!status) status = put_new(names, "__all__", all_names());
    if (!status) status = put_aliases(names, module_info.enum_aliases);
    if (!status) status = put_aliases(names, module_info.record_aliases);
    return status ? status : put_aliases(names, module_info.function_aliases);
}

void module_settle(void) {
    PyObject *names = PyModule_GetDict(this_module);
    if (put_all(names) < 0 || PyDict_DelItemString(names, "__getattr__") < 0)
        PyErr_Clear(); /* then names are made one by one, as before */
}

int module_exec(PyObject *module) {
    this_module = module;
    if (enums_init() < 0 || handles_init() < 0 || records_init() < 0) return -1;
    if (PyModule_AddFunctions(module, methods) < 0) return -1;
    if (!module_info.error && PyModule_AddFunctions(module, size_methods) < 0) return -1;
    if (module_info.error && module_info.error->too_small && PyModule_AddFunctions(module, status_methods) < 0)
        return -1;
    if (module_info.error && module_info.error->cuda && PyModule_AddFunctions(module, description_methods) < 0)
        return -1;
    if (module_info.methods && PyModule_AddFunctions(module, module_info.methods) < 0) return -1;
    return table_init(module);
}
