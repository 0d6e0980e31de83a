/* The exceptions of modules whose functions raise: one class, or one for each status under a common base. */
#include "module/module.h"

/* The classes, made when they are first used: the base, then the subclasses in the order of the table. */
static PyObject **classes;

static PyObject *default_text(long long status) {
    PyObject *member = enum_value(module_info.status, status);
    PyObject *name = member ? PyObject_GetAttrString(member, "name") : NULL;
    PyObject *text = name ? PyUnicode_FromFormat("%U (%lld)", name, status) : NULL;
    Py_XDECREF(member), Py_XDECREF(name);
    return text;
}

/* The header's comment on a status. */
static const char *description(long long status) {
    const EnumInfo *info = &module_info.enums[module_info.status];
    for (EnumMember item = first_member(info); item.index < info->count; item = next_member(info, item))
        if (item.value == status) return item.doc;
    return "unknown error";
}

/* "NAME (value): description", and what the driver said. */
static PyObject *cuda_text(long long status, PyObject *cuda_error) {
    PyObject *head = default_text(status);
    PyObject *text = head ? PyUnicode_FromFormat("%U: %s", head, description(status)) : NULL;
    Py_XDECREF(head);
    if (!text || cuda_error == Py_None || PyObject_IsTrue(cuda_error) != 1) return text;
    PyObject *driver = PyImport_ImportModule("cupola.bindings.driver");
    PyObject *known = driver ? PyObject_GetAttrString(driver, "CUresult") : NULL;
    PyObject *member = known ? PyObject_CallOneArg(known, cuda_error) : NULL;
    if (known && !member) PyErr_Clear(); /* a status that is newer than this module */
    PyObject *name = member ? PyObject_GetAttrString(member, "name") : PyUnicode_FromString("unknown");
    PyObject *whole = known && name ? PyUnicode_FromFormat("%U; CUDA status: %U (%S)", text, name, cuda_error) : NULL;
    Py_XDECREF(driver), Py_XDECREF(known), Py_XDECREF(member), Py_XDECREF(name), Py_DECREF(text);
    return whole;
}

static int initialise(PyObject *self, PyObject *args, PyObject *kwargs) {
    static char *keywords[] = {"status", "cu_err", NULL};
    PyObject *given, *cuda_error = Py_None;
    int status;
    bool cuda = module_info.error->cuda;
    if (!cuda) keywords[1] = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, cuda ? "O|O" : "O", keywords, &given, &cuda_error)) return -1;
    if (to_enum(given, &status) < 0) return -1;
    PyObject *text = cuda                          ? cuda_text(status, cuda_error)
                     : module_info.error->describe ? module_info.error->describe(status)
                                                   : default_text(status);
    if (cuda && text && PyObject_SetAttrString(self, "cuda_error", cuda_error) < 0) Py_CLEAR(text);
    PyObject *arguments = text ? PyTuple_Pack(1, text) : NULL, *number = PyLong_FromLong(status);
    int result = arguments && number ? ((PyTypeObject *)PyExc_Exception)->tp_init(self, arguments, NULL) : -1;
    if (result == 0) result = PyObject_SetAttrString(self, "status", number);
    Py_XDECREF(text), Py_XDECREF(arguments), Py_XDECREF(number);
    return result;
}

static PyObject *reduce(PyObject *self, PyObject *unused) {
    (void)unused;
    PyObject *status = PyObject_GetAttrString(self, "status");
    if (!status || !module_info.error->cuda) return status ? Py_BuildValue("O(N)", Py_TYPE(self), status) : NULL;
    PyObject *cuda_error = PyObject_GetAttrString(self, "cuda_error");
    if (cuda_error) return Py_BuildValue("O(NN)", Py_TYPE(self), status, cuda_error);
    Py_DECREF(status);
    return NULL;
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
    if (!PUBLISHED(classes)) {
        void *made = PyMem_Calloc(info->subclass_count + 1u, sizeof *classes);
        if (!made) return PyErr_NoMemory();
        if (!publish_first(&classes, made)) PyMem_Free(made);
    }
    PyObject *known = PUBLISHED(classes[index]);
    if (known) return known;
    if (index == 0) return publish_object(&classes[0], make_class(info->name, info->doc, PyExc_Exception));
    PyObject *base = class_at(0);
    const ErrorSubclass *subclass = &info->subclasses[index - 1];
    return base ? publish_object(&classes[index], make_class(subclass->name, subclass->doc, base)) : NULL;
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
    char why[512]; /* what the CPU device has to say about it */
    if (error && module_info.table->explain((int)status, why, sizeof why)) add_note(why);
    return NULL;
}

PyObject *raise_cuda_status(long long status, int cuda_error) {
    if (table_raise_pending() < 0) return NULL;
    PyObject *type = class_at(0);
    PyObject *error = !type        ? NULL
                      : cuda_error ? PyObject_CallFunction(type, "Li", status, cuda_error)
                                   : PyObject_CallFunction(type, "L", status);
    if (error) PyErr_SetObject(type, error);
    Py_XDECREF(error);
    return NULL;
}

PyObject *raise_negative(long long result) {
    if (table_raise_pending() < 0) return NULL;
    return result == -1 ? PyErr_SetFromErrno(PyExc_OSError) : raise_cuda_status(-result, 0);
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
        if (result) PyTuple_SET_ITEM(result, i, outputs[i]);
        else Py_XDECREF(outputs[i]);
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

static PyObject *op_status_error(PyObject *module, PyObject *object) {
    (void)module;
    int status;
    return to_enum(object, &status) < 0 ? NULL : PyUnicode_FromString(description(status));
}

PyMethodDef description_methods[] = {
    {"op_status_error", op_status_error, METH_O, "op_status_error(status, /)\n--\n\nThe description of a status."},
    {0},
};
