/* Findings on their way to Python. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "checks.h"
#include "engine/memory/memory.h"
#include "findings.h"

static PyObject *triple(const uint32_t numbers[3]) { return Py_BuildValue("III", numbers[0], numbers[1], numbers[2]); }

/* None, or (base, size) of the allocation that an address is in. */
static PyObject *allocation_of(const struct cpu_finding *finding) {
    cpu_allocation allocation;
    if (finding->space != CPU_SPACE_GLOBAL || !cpu_memory_lookup(finding->address, &allocation)) Py_RETURN_NONE;
    return Py_BuildValue("KK", (unsigned long long)allocation.base, (unsigned long long)allocation.size);
}

/* None, or whose the other access is: what it does, the kernel, its code, the line of Python and the stream. */
static PyObject *other_of(const struct cpu_finding *finding) {
    cpu_deed deed;
    if (!finding->deed) Py_RETURN_NONE;
    if (!cpu_deed_find(finding->deed, &deed)) return Py_BuildValue("zsOziK", "something", "", Py_None, NULL, 0, 0ULL);
    PyObject *variant = deed.variant ? deed.variant->object : Py_None; /* the GIL keeps it */
    return Py_BuildValue("zsOziK", deed.what, deed.name, variant, deed.origin ? deed.origin->file : NULL,
                         deed.origin ? deed.origin->line : 0, (unsigned long long)deed.stream);
}

static PyObject *row(const struct cpu_finding *f) {
    return Py_BuildValue("iIIBBBBBKKIKNNNNNN", f->what, f->site, f->other_site, f->kind, f->other_kind, f->is_write,
                         f->other_is_write, f->space, (unsigned long long)f->address, (unsigned long long)f->size,
                         f->lanes, (unsigned long long)f->count, triple(f->block), triple(f->thread),
                         triple(f->other_block), triple(f->other_thread), allocation_of(f), other_of(f));
}

static void tell(const struct cpu_findings *findings, PyObject *variant, const char *what,
                 const struct cpu_origin *origin, uint64_t stream) {
    const size_t count = cpu_findings_count(findings);
    if (!count || !Py_IsInitialized()) return;
    const struct cpu_finding *list = cpu_findings_list(findings);
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *module = PyImport_ImportModule("cupola.cpu.reports"), *rows = PyList_New(0), *done = NULL;
    for (size_t i = 0; rows && i < count; i++) {
        PyObject *one = row(&list[i]);
        if (!one || PyList_Append(rows, one)) Py_CLEAR(rows);
        Py_XDECREF(one);
    }
    if (module && rows)
        done = PyObject_CallMethod(module, "add", "OzOziK", variant ? variant : Py_None, what, rows,
                                   origin ? origin->file : NULL, origin ? origin->line : 0, (unsigned long long)stream);
    if (!done) PyErr_WriteUnraisable(module);
    Py_XDECREF(done);
    Py_XDECREF(rows);
    Py_XDECREF(module);
    PyGILState_Release(gil);
}

void cpu_findings_tell(const cpu_launch *launch) {
    tell(launch->findings, launch->variant->object, NULL, launch->origin, launch->moment ? launch->moment->stream : 0);
}

void cpu_findings_tell_of(const struct cpu_findings *findings, const cpu_deed *deed) {
    tell(findings, NULL, deed->what, deed->origin, deed->stream);
}
