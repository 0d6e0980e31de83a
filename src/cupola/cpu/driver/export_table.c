/* cuGetExportTable: how NVIDIA's own libraries find private functions of NVIDIA's driver, which no documentation
 * describes. NVIDIA's CUDA runtime, static or shared, also verifies by them that the driver is NVIDIA's. The CPU device
 * has none of them: the call returns an error, and the logger says which file has the runtime, and what to do. */
#define _GNU_SOURCE /* dladdr */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <dlfcn.h>

#include "driver/base/base.h"

CUresult cuGetExportTable(const void **table, const CUuuid *id) {
    if (!table) return fail_null("ppExportTable");
    if (!id) return fail_null("pExportTableId");
    *table = NULL;
    Dl_info caller = {0};
    dladdr(__builtin_return_address(0), &caller);
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *module = PyImport_ImportModule("cupola.cpu.programs");
    PyObject *file = caller.dli_fname ? PyUnicode_DecodeFSDefault(caller.dli_fname) : Py_NewRef(Py_None);
    PyObject *said = module && file ? PyObject_CallMethod(module, "say_private", "O", file) : NULL;
    if (!said) PyErr_WriteUnraisable(module);
    Py_XDECREF(said);
    Py_XDECREF(file);
    Py_XDECREF(module);
    PyGILState_Release(gil);
    return fail(CUDA_ERROR_NOT_SUPPORTED, "the CPU device has no private functions of NVIDIA's driver");
}

const struct entry export_table_entries[] = {
    ENTRY(cuGetExportTable),
    {NULL, NULL, NULL},
};
