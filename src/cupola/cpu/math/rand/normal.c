/* Normal numbers: after the generator has put uniform ones in their place, a kernel makes normal ones of them, two of two
 * (cpu/normals.py). It is loaded when it is first needed. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cudart/driver_functions.h"
#include "driver/module/module.h"
#include "rand.h"

/* Its PTX from Python; NULL: with the thread's explanation. */
static char *make_ptx(void) {
    char *result = NULL;
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *module = PyImport_ImportModule("cupola.cpu.normals");
    PyObject *ptx = module ? PyObject_CallMethod(module, "kernels", NULL) : NULL;
    if (ptx && PyBytes_Check(ptx)) result = strdup(PyBytes_AS_STRING(ptx));
    if (!ptx) {
        PyObject *type, *error, *trace;
        PyErr_Fetch(&type, &error, &trace);
        PyObject *text = error ? PyObject_Str(error) : NULL;
        const char *utf8 = text ? PyUnicode_AsUTF8(text) : NULL;
        (fail)(CUDA_ERROR_UNKNOWN, "normal numbers need a kernel, which cannot be compiled: %s", utf8 ? utf8 : "");
        PyErr_Clear();
        Py_XDECREF(text);
        Py_XDECREF(type);
        Py_XDECREF(error);
        Py_XDECREF(trace);
    }
    Py_XDECREF(ptx);
    Py_XDECREF(module);
    PyGILState_Release(gil);
    return result;
}

/* A library of the driver belongs to no context, so one is enough. */
static CUresult load(CUlibrary *library) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static _Atomic(CUlibrary) loaded;
    *library = atomic_load(&loaded);
    if (*library) return CUDA_SUCCESS;
    char *ptx = make_ptx(); /* without the lock: it takes the GIL */
    if (!ptx) return CUDA_ERROR_UNKNOWN;
    pthread_mutex_lock(&lock);
    CUresult status = CUDA_SUCCESS;
    *library = atomic_load(&loaded);
    if (!*library) {
        status = cuLibraryLoadData(library, ptx, NULL, NULL, 0, NULL, NULL, 0);
        if (!status) atomic_store(&loaded, *library);
    }
    pthread_mutex_unlock(&lock);
    free(ptx);
    return status;
}

CUresult rand_normal_kernel(curandRngType_t type, bool is_double, bool is_log, CUkernel *kernel) {
    const char *from =
        type == CURAND_RNG_PSEUDO_MRG32K3A ? "uniform"
        : type >= CURAND_RNG_QUASI_SOBOL64 ? "sobol64"
        : type >= CURAND_RNG_QUASI_SOBOL32 || type == CURAND_RNG_PSEUDO_MT19937 || type == CURAND_RNG_PSEUDO_MTGP32
            ? "sobol32"
            : "bits";
    char name[64];
    snprintf(name, sizeof name, "%s_%s%s", from, is_double ? "double" : "float", is_log ? "_log" : "");
    CUlibrary library;
    RETURN_IF(load(&library));
    return cuLibraryGetKernel(kernel, library, name);
}

CUresult rand_normal(CUkernel kernel, CUstream stream, void *numbers, size_t count, bool is_double, double mean,
                     double deviation) {
    enum { THREADS = 128, MOST_BLOCKS = 8192 };
    float narrow[2] = {(float)mean, (float)deviation};
    uint64_t numbers_or_pairs = count;
    void *parameters[] = {&numbers, &numbers_or_pairs, is_double ? (void *)&mean : &narrow[0],
                          is_double ? (void *)&deviation : &narrow[1]};
    uint64_t blocks = (count + THREADS - 1) / THREADS;
    return cuLaunchKernel((CUfunction)kernel, (unsigned)(blocks > MOST_BLOCKS ? MOST_BLOCKS : blocks), 1, 1, THREADS, 1,
                          1, 0, stream, parameters, NULL);
}
