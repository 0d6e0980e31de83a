/* The functions of cupola.bindings.runtime that are none of libcudart's: what CUDA's headers define inline, and the
 * version of the library that is installed. */
#include "support.h"

#include <dlfcn.h>

/* A new record from keyword arguments; takes the reference to them. */
static PyObject *make(PyObject *module, const char *name, PyObject *fields) {
    PyObject *type = fields ? PyObject_GetAttrString(module, name) : NULL, *empty = PyTuple_New(0);
    PyObject *record = type && empty ? PyObject_Call(type, empty, fields) : NULL;
    Py_XDECREF(type), Py_XDECREF(empty), Py_XDECREF(fields);
    return record;
}

static PyObject *make_extent(PyObject *module, PyObject *args, PyObject *kwargs) {
    static char *keywords[] = {"w", "h", "d", NULL};
    PyObject *w, *h, *d;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOO:make_cudaExtent", keywords, &w, &h, &d)) return NULL;
    return make(module, "cudaExtent", Py_BuildValue("{sOsOsO}", "width", w, "height", h, "depth", d));
}

static PyObject *make_pos(PyObject *module, PyObject *args, PyObject *kwargs) {
    static char *keywords[] = {"x", "y", "z", NULL};
    PyObject *x, *y, *z;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOO:make_cudaPos", keywords, &x, &y, &z)) return NULL;
    return make(module, "cudaPos", Py_BuildValue("{sOsOsO}", "x", x, "y", y, "z", z));
}

static PyObject *make_pitched_pointer(PyObject *module, PyObject *args, PyObject *kwargs) {
    static char *keywords[] = {"d", "p", "xsz", "ysz", NULL};
    PyObject *d, *p, *x, *y;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOOO:make_cudaPitchedPtr", keywords, &d, &p, &x, &y)) return NULL;
    return make(module, "cudaPitchedPtr", Py_BuildValue("{sOsOsOsO}", "ptr", d, "pitch", p, "xsize", x, "ysize", y));
}

static PyObject *local_version(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    PyObject *provider = PyImport_ImportModule("cupola.bindings._provider");
    PyObject *library = provider ? PyObject_CallMethod(provider, "local_library", "s", module_info.library) : NULL;
    void *handle = library ? PyLong_AsVoidPtr(library) : NULL;
    Py_XDECREF(provider), Py_XDECREF(library);
    if (!handle) return NULL;
    int (*get_version)(int *), version = 0;
    *(void **)&get_version = dlsym(handle, "cudaRuntimeGetVersion");
    if (!get_version) return PyErr_Format(PyExc_RuntimeError, "%s", dlerror());
    int status = get_version(&version);
    return status ? failed(status, 1) : result_tuple(0, (PyObject *[]){PyLong_FromLong(version)}, 1);
}

#define KEYWORDS(function) (PyCFunction)(void (*)(void))function, METH_VARARGS | METH_KEYWORDS

PyMethodDef runtime_methods[] = {
    {"getLocalRuntimeVersion", local_version, METH_NOARGS,
     "getLocalRuntimeVersion()\n--\n\n"
     "Version of the CUDA runtime library that is installed, whatever device is used.\n\n"
     "Returns\n-------\n"
     "status : cudaError_t\n"
     "runtimeVersion : int\n    13050 is CUDA 13.5.\n\n"
     "Raises\n------\n"
     "DynamicLibNotFoundError\n    There is none; the message says what to install."},
    {"make_cudaExtent", KEYWORDS(make_extent),
     "make_cudaExtent(w, h, d)\n--\n\n"
     "An extent from its width, height and depth.\n\n"
     "Parameters\n----------\n"
     "w : int\n    Width in elements when referring to array memory, in bytes when referring to linear memory.\n"
     "h : int\n    Height in elements.\n"
     "d : int\n    Depth in elements.\n\n"
     "Returns\n-------\ncudaExtent"},
    {"make_cudaPitchedPtr", KEYWORDS(make_pitched_pointer),
     "make_cudaPitchedPtr(d, p, xsz, ysz)\n--\n\n"
     "A pitched pointer from its parts.\n\n"
     "Parameters\n----------\n"
     "d : int\n    Address of the memory.\n"
     "p : int\n    Pitch in bytes.\n"
     "xsz : int\n    Logical width in elements.\n"
     "ysz : int\n    Logical height in elements.\n\n"
     "Returns\n-------\ncudaPitchedPtr"},
    {"make_cudaPos", KEYWORDS(make_pos),
     "make_cudaPos(x, y, z)\n--\n\n"
     "A position from its coordinates in elements.\n\n"
     "Parameters\n----------\nx, y, z : int\n\n"
     "Returns\n-------\ncudaPos"},
    {0},
};
