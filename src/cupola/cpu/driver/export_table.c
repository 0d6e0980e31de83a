/* cuGetExportTable: how NVIDIA's own libraries find private functions of NVIDIA's driver, which no documentation
 * describes. NVIDIA's CUDA runtime, static or shared, also verifies by them that the driver is NVIDIA's. The CPU device
 * has none of them: the call returns an error, and the explanation says what to do. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "driver/base/base.h"

CUresult cuGetExportTable(const void **table, const CUuuid *id) {
    if (!table) return fail_null("ppExportTable");
    if (!id) return fail_null("pExportTableId");
    *table = NULL;
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *module = PyImport_ImportModule("cupola.cpu.programs");
    PyObject *text = module ? PyObject_GetAttrString(module, "PRIVATE_RUNTIME") : NULL;
    PyObject *said = text ? PyObject_CallMethod(module, "say", "O", text) : NULL;
    if (!said) PyErr_WriteUnraisable(module);
    Py_XDECREF(said);
    Py_XDECREF(text);
    Py_XDECREF(module);
    PyGILState_Release(gil);
    return fail(CUDA_ERROR_NOT_SUPPORTED, "the CPU device has no private functions of NVIDIA's driver");
}

const struct entry export_table_entries[] = {
    ENTRY(cuGetExportTable),
    {NULL, NULL, NULL},
};
