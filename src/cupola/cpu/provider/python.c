/* The extension module cupola.cpu._driver: the emulated driver and the engine, as the rest of cupola sees them.
 *
 * The bindings take `lookup` and `explain`, capsules of C functions; libcuda.py `exported`; cupola.cpu sets the device
 * up. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "cudart/cudart.h"
#include "cudart/host_code.h"
#include "driver/base/base.h"
#include "driver/lookup.h"
#include "math/base/math.h"
#include "math/blas/blas.h"
#include "math/fft/fft.h"
#include "math/lookup.h"
#include "nvml/nvml.h"

static PyObject *configure(PyObject *self, PyObject *arguments) {
    const char *key;
    int count;
    (void)self;
    if (!PyArg_ParseTuple(arguments, "si:configure", &key, &count)) return NULL;
    const struct model *model = model_find(key);
    if (!model) return PyErr_Format(PyExc_ValueError, "there is no model '%s'", key);
    if (count < 1 || count > MAX_DEVICES)
        return PyErr_Format(PyExc_ValueError, "devices must be between 1 and %d, not %d", MAX_DEVICES, count);
    if (!driver_configure(model, count)) {
        PyErr_SetString(PyExc_RuntimeError,
                        "the CPU device is in use already: set it up before the first CUDA call of the process");
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *get_models(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    PyObject *list = PyTuple_New((Py_ssize_t)model_count);
    for (size_t i = 0; list && i < model_count; i++) {
        const struct model *m = &models[i];
        PyObject *row =
            Py_BuildValue("(ss(ii)in)", m->key, m->name, m->major, m->minor, m->multiprocessors, (Py_ssize_t)m->memory);
        if (!row) {
            Py_CLEAR(list);
            break;
        }
        PyTuple_SET_ITEM(list, (Py_ssize_t)i, row);
    }
    return list;
}

static PyObject *names(size_t count, const char *(*name)(size_t index)) {
    PyObject *list = PyTuple_New((Py_ssize_t)count);
    for (size_t i = 0; list && i < count; i++) {
        PyObject *text = PyUnicode_FromString(name(i));
        if (!text) {
            Py_CLEAR(list);
            break;
        }
        PyTuple_SET_ITEM(list, (Py_ssize_t)i, text);
    }
    return list;
}

static PyObject *get_symbols(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    return names(lookup_count(), lookup_name);
}

static PyObject *get_runtime_symbols(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    return names(runtime_lookup_count(), runtime_lookup_name);
}

static PyObject *get_nvml_symbols(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    return names(nvml_lookup_count(), nvml_lookup_name);
}

/* ---- programs without Python (connect.c) ----------------------------------------------------------------------- */

static void say(const char *text) {
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *module = PyImport_ImportModule("cupola.cpu.programs");
    PyObject *done = module ? PyObject_CallMethod(module, "say", "s", text) : NULL;
    if (!done) PyErr_WriteUnraisable(module);
    Py_XDECREF(done);
    Py_XDECREF(module);
    PyGILState_Release(gil);
}

/* What a call of the runtime returned, and why: a program in C++ gets no exception that tells. */
static void report(cudaError_t error, const char *name) {
    char reason[EXPLANATION_SIZE], text[EXPLANATION_SIZE + 64];
    if (!explain((int)error, reason, sizeof reason)) return;
    snprintf(text, sizeof text, "%s: %s", name, reason);
    say(text);
}

static void *math(const char *library, const char *symbol) {
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *module = PyImport_ImportModule("cupola.cpu.mathlibs");
    PyObject *done = module ? PyObject_CallMethod(module, "prepare_program", "s", library) : NULL;
    bool is_ready = done && PyObject_IsTrue(done) == 1;
    if (!done) PyErr_WriteUnraisable(module);
    Py_XDECREF(done);
    Py_XDECREF(module);
    PyGILState_Release(gil);
    return is_ready ? math_lookup(symbol) : NULL;
}

static void explain_errors(void) {
    runtime_report = report;
    math_report = say;
}

static PyObject *get_math_symbols(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    return names(math_lookup_count(), math_lookup_name);
}

static PyObject *load_math(PyObject *self, PyObject *arguments) {
    const char *path;
    int threads;
    char problem[512];
    (void)self;
    if (!PyArg_ParseTuple(arguments, "si:load_math", &path, &threads)) return NULL;
    if (!math_load(path, threads, problem, sizeof problem)) return PyErr_Format(PyExc_ImportError, "%s", problem);
    Py_RETURN_NONE;
}

static PyObject *load_transforms(PyObject *self, PyObject *arguments) {
    const char *path;
    int threads;
    char problem[512];
    (void)self;
    if (!PyArg_ParseTuple(arguments, "si:load_transforms", &path, &threads)) return NULL;
    if (!fft_load(path, threads, problem, sizeof problem)) return PyErr_Format(PyExc_ImportError, "%s", problem);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"configure", configure, METH_VARARGS,
     PyDoc_STR("configure(model: str, devices: int) -> None\n\nChoose the modeled GPU and the number of devices.")},
    {"models", get_models, METH_NOARGS,
     PyDoc_STR(
         "models() -> tuple\n\nKey, name, compute capability, multiprocessors and bytes of memory of each model.")},
    {"symbols", get_symbols, METH_NOARGS, PyDoc_STR("symbols() -> tuple[str, ...]\n\nThe driver functions provided.")},
    {"runtime_symbols", get_runtime_symbols, METH_NOARGS,
     PyDoc_STR("runtime_symbols() -> tuple[str, ...]\n\nThe functions of the CUDA runtime that are provided.")},
    {"nvml_symbols", get_nvml_symbols, METH_NOARGS,
     PyDoc_STR("nvml_symbols() -> tuple[str, ...]\n\nThe functions of NVML that do more than to say that they are not "
               "supported.")},
    {"math_symbols", get_math_symbols, METH_NOARGS,
     PyDoc_STR("math_symbols() -> tuple[str, ...]\n\nThe functions of the math libraries that are provided.")},
    {"load_math", load_math, METH_VARARGS,
     PyDoc_STR("load_math(path: str, threads: int) -> None\n\nOpen the OpenBLAS that the math libraries use.")},
    {"load_transforms", load_transforms, METH_VARARGS,
     PyDoc_STR("load_transforms(path: str, threads: int) -> None\n\nOpen the Fourier transforms that cuFFT uses.")},
    {NULL, NULL, 0, NULL},
};

static int add_capsule(PyObject *module, const char *attribute, const char *name, void *pointer) {
    PyObject *capsule = PyCapsule_New(pointer, name, NULL);
    int status = capsule ? PyModule_AddObjectRef(module, attribute, capsule) : -1;
    Py_XDECREF(capsule);
    return status;
}

static int execute(PyObject *module) {
    static const struct cpu_programs programs = {host_lookup, host_lookup_12, exported,      host_adopt, host_disown,
                                                 say,         math,           explain_errors};
    if (PyModule_AddIntMacro(module, CUDA_VERSION)) return -1;
    if (add_capsule(module, "lookup", "cupola.cpu._driver.lookup", (void *)lookup)) return -1;
    if (add_capsule(module, "exported", "cupola.cpu._driver.exported", (void *)exported)) return -1;
    if (add_capsule(module, "nvml_lookup", "cupola.cpu._driver.nvml_lookup", (void *)nvml_lookup)) return -1;
    if (add_capsule(module, "runtime_lookup", "cupola.cpu._driver.runtime_lookup", (void *)runtime_lookup)) return -1;
    if (add_capsule(module, "programs", "cupola.cpu._driver.programs", (void *)&programs)) return -1;
    if (add_capsule(module, "math_lookup", "cupola.cpu._driver.math_lookup", (void *)math_lookup)) return -1;
    return add_capsule(module, "explain", "cupola.cpu._driver.explain", (void *)explain);
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, (void *)execute},
#if PY_VERSION_HEX >= 0x030C0000
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
#endif
#ifdef Py_GIL_DISABLED
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "cupola.cpu._driver",
    .m_doc = PyDoc_STR("The emulated CUDA driver of the CPU device."),
    .m_methods = methods,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__driver(void) { return PyModuleDef_Init(&definition); }
