/* Tables that are NVIDIA's, of Sobol sequences (cpu/quasirandom.py) and of MTGP32 (cpu/mtgp32.py): they come from its
 * package, once, when the first generator of a kind is made. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdlib.h>
#include <string.h>

#include "rand.h"

static struct {
    _Atomic(const void *) data; /* once it is there it stays */
} tables[CURAND_RNG_QUASI_SCRAMBLED_SOBOL64 - CURAND_RNG_PSEUDO_MTGP32 + 1];

const void *rand_table(curandRngType_t type) { return atomic_load(&tables[type - CURAND_RNG_PSEUDO_MTGP32].data); }

bool rand_load_table(curandRngType_t type, size_t size) {
    if (rand_table(type)) return true;
    void *made = NULL;
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *module =
        PyImport_ImportModule(type == CURAND_RNG_PSEUDO_MTGP32 ? "cupola.cpu.mtgp32" : "cupola.cpu.quasirandom");
    PyObject *bytes = module ? PyObject_CallMethod(module, "tables", "i", (int)type) : NULL;
    if (bytes && PyBytes_Check(bytes) && (size_t)PyBytes_GET_SIZE(bytes) == size && (made = malloc(size)))
        memcpy(made, PyBytes_AS_STRING(bytes), size);
    if (!bytes) {
        PyObject *kind, *error, *trace;
        PyErr_Fetch(&kind, &error, &trace);
        PyObject *text = error ? PyObject_Str(error) : NULL;
        const char *utf8 = text ? PyUnicode_AsUTF8(text) : NULL;
        (fail)(CUDA_ERROR_UNKNOWN, "%s", utf8 ? utf8 : "the tables of the generator cannot be had");
        PyErr_Clear();
        Py_XDECREF(text);
        Py_XDECREF(kind);
        Py_XDECREF(error);
        Py_XDECREF(trace);
    }
    Py_XDECREF(bytes);
    Py_XDECREF(module);
    PyGILState_Release(gil);
    const void *none = NULL;
    if (made && !atomic_compare_exchange_strong(&tables[type - CURAND_RNG_PSEUDO_MTGP32].data, &none, made))
        free(made); /* another thread was faster */
    return made;
}
