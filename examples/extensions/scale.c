/* A Python module in C that launches a kernel through cupola's table, without Python in between.
 *
 *     scale(function, pointer, by, n, stream) launches the kernel `function` (float *, float, int) on `n` floats.
 *
 * It needs Python's headers and those of cupola (`cupola.bindings.get_include()`), none of NVIDIA's and no library. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <cupola/driver.h>

static const cupola_driver_table *cu;

/* The exception of a failed call: a missing function or driver has one of its own. */
static PyObject *failure(CUresult status) {
    const char *name = NULL;
    if (cu->head.raise_pending() < 0) return NULL;
    cu->cuGetErrorName(status, &name);
    return PyErr_Format(PyExc_RuntimeError, "the launch failed: %s", name ? name : "unknown status");
}

static PyObject *scale(PyObject *module, PyObject *args) {
    unsigned long long function, pointer, stream;
    float by;
    int n;
    CUresult status;
    (void)module;
    if (!PyArg_ParseTuple(args, "KKfiK", &function, &pointer, &by, &n, &stream)) return NULL;
    CUdeviceptr x = pointer;
    void *arguments[] = {&x, &by, &n};
    Py_BEGIN_ALLOW_THREADS
    status = cu->cuLaunchKernel((CUfunction)(uintptr_t)function, (n + 127) / 128, 1, 1, 128, 1, 1, 0,
                                (CUstream)(uintptr_t)stream, arguments, NULL);
    if (status == CUDA_SUCCESS) status = cu->cuStreamSynchronize((CUstream)(uintptr_t)stream);
    Py_END_ALLOW_THREADS
    if (status != CUDA_SUCCESS) return failure(status);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {{"scale", scale, METH_VARARGS, "Multiply floats on the device."}, {0}};
static PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "scale_c", .m_size = -1, .m_methods = methods};

PyMODINIT_FUNC PyInit_scale_c(void) {
    cu = cupola_import_driver(); /* loads no library: the first call does */
    return cu ? PyModule_Create(&definition) : NULL;
}
