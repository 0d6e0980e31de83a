/* The exceptions of modules whose functions raise: one class, or one for each status under a common base. */
#include "support.h"

/* The classes, made when they are first used: the base, then the subclasses in the order of the table. */
static PyObject **classes;

static PyObject *default_text(long long status) {
    PyObject *member = enum_value(module_info.status, status);
    PyObject *name = member ? PyObject_GetAttrString(member, "name") : NULL;
    PyObject *text = name ? PyUnicode_FromFormat("%U (%lld)", name, status) : NULL;
    Py_XDECREF(member), Py_XDECREF(name);
    return text;
}

static int initialise(PyObject *self, PyObject *args, PyObject *kwargs) {
    static char *keywords[] = {"status", NULL};
    PyObject *given;
    int status;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O", keywords, &given)) return -1;
    if (to_enum(given, &status) < 0) return -1;
    PyObject *text = module_info.error->describe ? module_info.error->describe(status) : default_text(status);
    PyObject *arguments = text ? PyTuple_Pack(1, text) : NULL, *number = PyLong_FromLong(status);
    int result = arguments && number ? ((PyTypeObject *)PyExc_Exception)->tp_init(self, arguments, NULL) : -1;
    if (result == 0) result = PyObject_SetAttrString(self, "status", number);
    Py_XDECREF(text), Py_XDECREF(arguments), Py_XDECREF(number);
    return result;
}

static PyObject *reduce(PyObject *self, PyObject *unused) {
    (void)unused;
    PyObject *status = PyObject_GetAttrString(self, "status");
    return status ? Py_BuildValue("O(N)", Py_TYPE(self), status) : NULL;
}

static PyMethodDef methods[] = {{"__reduce__", reduce, METH_NOARGS, NULL}, {0}};

static PyObject *make_class(const char *name, const char *doc, PyObject *base) {
    PyType_Slot slots[] = {
        {Py_tp_doc, (void *)doc},
        {Py_tp_init, initialise},
        {Py_tp_methods, methods},
        {0, NULL},
    };
    PyType_Spec spec = {name, 0, 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
    return PyType_FromSpecWithBases(&spec, base);
}

/* Index 0 is the base class; borrowed. */
static PyObject *class_at(int index) {
    const ErrorInfo *info = module_info.error;
    if (!classes && !(classes = PyMem_Calloc(info->subclass_count + 1u, sizeof *classes)))
        return PyErr_NoMemory();
    if (classes[index]) return classes[index];
    if (index == 0) return classes[0] = make_class(info->name, info->doc, PyExc_Exception);
    PyObject *base = class_at(0);
    const ErrorSubclass *subclass = &info->subclasses[index - 1];
    return classes[index] = base ? make_class(subclass->name, subclass->doc, base) : NULL;
}

static bool is_named(const char *qualified, const char *name) {
    return !strcmp(qualified + strlen(module_info.name) + 1, name);
}

PyObject *error_class(const char *name) {
    const ErrorInfo *info = module_info.error;
    if (!info) return NULL;
    if (is_named(info->name, name)) return Py_XNewRef(class_at(0));
    for (int i = 0; i < info->subclass_count; i++)
        if (is_named(info->subclasses[i].name, name) || !strcmp(info->subclasses[i].alias, name))
            return Py_XNewRef(class_at(i + 1));
    return NULL;
}

PyObject *raise_status(long long status) {
    if (table_raise_pending() < 0) return NULL;
    int index = 0;
    for (int i = 0; i < module_info.error->subclass_count; i++)
        if (module_info.error->subclasses[i].status == status) index = i + 1;
    PyObject *type = class_at(index);
    PyObject *error = type ? PyObject_CallFunction(type, "L", status) : NULL;
    if (error) PyErr_SetObject(type, error);
    Py_XDECREF(error);
    return NULL;
}

void add_note(const char *text) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    PyObject *note = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
    PyObject *done = note ? PyObject_CallMethod(value, "add_note", "O", note) : NULL;
    if (!done) PyErr_Clear(); /* the error itself counts for more */
    Py_XDECREF(note), Py_XDECREF(done);
    PyErr_Restore(type, value, traceback);
}

PyObject *pack(PyObject **outputs, int count) {
    bool complete = true;
    for (int i = 0; i < count; i++) complete = complete && outputs[i];
    PyObject *result = complete ? PyTuple_New(count) : NULL;
    for (int i = 0; i < count; i++) {
        if (result)
            PyTuple_SET_ITEM(result, i, outputs[i]);
        else
            Py_XDECREF(outputs[i]);
    }
    return result;
}

static PyObject *check(PyObject *object, long long allowed) {
    int status;
    if (to_enum(object, &status) < 0) return NULL;
    return status == 0 || status == allowed ? PyLong_FromLong(0) : raise_status(status);
}

static PyObject *check_status(PyObject *module, PyObject *status) {
    (void)module;
    return check(status, 0);
}

static PyObject *check_status_size(PyObject *module, PyObject *status) {
    (void)module;
    return check(status, module_info.error->too_small);
}

PyMethodDef status_methods[] = {
    {"check_status", check_status, METH_O,
     "check_status(status, /)\n--\n\nRaise the exception of a status; 0 for success."},
    {"check_status_size", check_status_size, METH_O,
     "check_status_size(status, /)\n--\n\nLike `check_status`, but a buffer that is too small is no error."},
    {0},
};
