/* Kernels that failed are findings where the memory check, or for barriers the sync check, is on. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "base.h"
#include "checks.h"
#include "engine/memory/memory.h"

_Atomic unsigned checks_on;

void check_fault(CUresult status, const cpu_launch *launch) {
    if (!checks(launch->fault.kind == CPU_FAULT_BARRIER ? CHECK_MEMORY | CPU_CHECK_SYNC : CHECK_MEMORY)) return;
    if (!Py_IsInitialized()) return;
    char text[EXPLANATION_SIZE] = "";
    (void)cpu_fault_describe(launch, &launch->fault, text, sizeof text);
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *module = PyImport_ImportModule("cupola.cpu.reports");
    PyObject *done = module ? PyObject_CallMethod(module, "add_fault", "ssis", error_name(status),
                                                  cpu_kernel_name(launch->kernel), (int)launch->fault.kind, text)
                            : NULL;
    if (!done) PyErr_WriteUnraisable(module);
    Py_XDECREF(done);
    Py_XDECREF(module);
    PyGILState_Release(gil);
}

void check_unset_copy(uint64_t address, uint64_t unset, uint64_t size) {
    cpu_allocation allocation;
    if (!checks(CPU_CHECK_INIT) || !Py_IsInitialized() || !cpu_memory_find(address, &allocation)) return;
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *module = PyImport_ImportModule("cupola.cpu.reports");
    PyObject *done = module
                         ? PyObject_CallMethod(module, "add_unset_copy", "KKKKK", (unsigned long long)address,
                                               (unsigned long long)unset, (unsigned long long)size,
                                               (unsigned long long)allocation.base, (unsigned long long)allocation.size)
                         : NULL;
    if (!done) PyErr_WriteUnraisable(module);
    Py_XDECREF(done);
    Py_XDECREF(module);
    PyGILState_Release(gil);
}
