/* Faults of kernels: recorded once for each launch by the runtime, told in words by cupola.cpu.reports. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "fault.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "engine/above.h"
#include "engine/memory/memory.h"

/* The record to fill when this is the launch's first fault, else NULL. */
static cpu_fault *claim(cpu_context *context, const cpu_warp *warp, int lane, int kind) {
    int none = CPU_FAULT_NONE;
    if (!atomic_compare_exchange_strong(&context->job->fault, &none, kind)) return NULL;
    cpu_fault *fault = &context->job->launch->fault;
    memset(fault, 0, sizeof *fault);
    fault->kind = kind;
    memcpy(fault->block, context->ctaid, sizeof fault->block);
    if (warp) {
        for (int i = 0; i < 3; i++) fault->thread[i] = context->thread_ids[i][warp->first + (uint32_t)lane];
        fault->call_count = cpu_stack_calls(context, warp, lane, fault->calls);
    } else
        for (int i = 0; i < 3; i++) fault->thread[i] = UINT32_MAX; /* not known */
    return fault;
}

void cpu_fault_raise(cpu_context *context, const cpu_warp *warp, int lane, int kind, uint32_t site, const char *format,
                     ...) {
    cpu_fault *fault = claim(context, warp, lane, kind);
    if (!fault) return;
    fault->site = site;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(fault->message, sizeof fault->message, format, arguments);
    va_end(arguments);
}

void cpu_fault_raise_access(cpu_context *context, const cpu_warp *warp, int lane, int kind, cpu_site site,
                            uint64_t address, uint64_t size, const char *details) {
    cpu_fault *fault = claim(context, warp, lane, kind);
    if (!fault) return;
    fault->site = site.index;
    fault->address = address;
    fault->size = size > UINT32_MAX ? UINT32_MAX : (uint32_t)size;
    fault->is_write = site.flags & CPU_SITE_WRITE;
    fault->space = site.space == CPU_SITE_GENERIC ? CPU_SPACE_GLOBAL : site.space;
    snprintf(fault->message, sizeof fault->message, "%s", details ? details : "");
}

/* ---- called by machine code --------------------------------------------------------------------------------- */

/* trap, and calls of what cannot be called. */
CPU_HELPER void cupola_trap(cpu_context *context, cpu_warp *warp, uint32_t mask, uint32_t site) {
    cpu_fault_raise(context, warp, __builtin_ctz(mask), CPU_FAULT_TRAP, site, "%s", "");
}

/* Copy a string of device memory, cut to size. */
static void read_string(uint64_t address, char *text, size_t size) {
    cpu_allocation allocation;
    *text = 0;
    if (!cpu_memory_find(address, &allocation)) return;
    size_t room = allocation.base + allocation.size - address;
    const char *source = (const char *)(uintptr_t)address;
    size_t length = strnlen(source, room < size - 1 ? room : size - 1);
    memcpy(text, source, length);
    text[length] = 0;
}

/* __assertfail(message, file, line, function, size of a character) of the first lane in the mask. */
CPU_HELPER void cupola_assertfail(cpu_context *context, cpu_warp *warp, uint32_t mask, const uint64_t *message,
                                  const uint64_t *file, const uint32_t *line, const uint64_t *function, uint32_t site) {
    int lane = __builtin_ctz(mask);
    char what[200], where[160], who[128];
    read_string(message[lane], what, sizeof what);
    read_string(file[lane], where, sizeof where);
    read_string(function[lane], who, sizeof who);
    cpu_fault_raise(context, warp, lane, CPU_FAULT_ASSERT, site, "%s:%u: %s: assertion `%s` failed", where, line[lane],
                    who, what);
}

/* ---- in words ----------------------------------------------------------------------------------------------- */

/* How many calls the thread is in, and the numbers of the innermost ones. */
static PyObject *calls_of(const cpu_fault *fault) {
    Py_ssize_t known = fault->call_count < CPU_FAULT_CALLS ? (Py_ssize_t)fault->call_count : CPU_FAULT_CALLS;
    PyObject *sites = PyTuple_New(known);
    for (Py_ssize_t i = 0; sites && i < known; i++) {
        PyObject *number = PyLong_FromUnsignedLong(fault->calls[i]);
        if (!number) Py_CLEAR(sites);
        else PyTuple_SET_ITEM(sites, i, number);
    }
    return sites ? Py_BuildValue("IN", (unsigned)fault->call_count, sites) : NULL;
}

/* None, or (base, size, freed) of the allocation nearest to the address; `freed` is 2 of what is not mapped any more, and 3
 * of host memory that is not registered any more. */
static PyObject *nearest_allocation(const cpu_fault *fault) {
    cpu_allocation allocation;
    bool is_address = fault->kind == CPU_FAULT_OUT_OF_BOUNDS || fault->kind == CPU_FAULT_MISALIGNED ||
                      fault->kind == CPU_FAULT_NO_ACCESS || fault->kind == CPU_FAULT_HEAP;
    if (!is_address ||
        (!cpu_memory_last(fault->address, &allocation) && !cpu_memory_nearest(fault->address, &allocation)))
        Py_RETURN_NONE;
    const int freed = !allocation.freed ? 0 : allocation.elsewhere ? (cpu_memory_owns(allocation.base) ? 2 : 3) : 1;
    return Py_BuildValue("KKi", (unsigned long long)allocation.base, (unsigned long long)allocation.size, freed);
}

static PyObject *describe(const cpu_launch *launch, const cpu_fault *fault) {
    PyObject *checks = PyImport_ImportModule("cupola.cpu.reports");
    if (!checks) return NULL;
    PyObject *allocation = nearest_allocation(fault), *text = NULL;
    unsigned shared = launch->dynamic_shared;
    PyObject *calls = calls_of(fault);
    if (allocation && calls)
        text = PyObject_CallMethod(checks, "describe", "OiIKIBB(III)(III)IsOO", launch->variant->object, fault->kind,
                                   (unsigned)fault->site, (unsigned long long)fault->address, (unsigned)fault->size,
                                   fault->is_write, fault->space, fault->block[0], fault->block[1], fault->block[2],
                                   fault->thread[0], fault->thread[1], fault->thread[2], shared, fault->message,
                                   allocation, calls);
    Py_XDECREF(calls);
    Py_XDECREF(allocation);
    Py_DECREF(checks);
    return text;
}

size_t cpu_fault_describe(const cpu_launch *launch, const cpu_fault *fault, char *text, size_t size) {
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *message = describe(launch, fault);
    Py_ssize_t length = 0;
    const char *utf8 = message ? PyUnicode_AsUTF8AndSize(message, &length) : NULL;
    if (!utf8) {
        PyErr_WriteUnraisable(launch->variant->object);
        utf8 = fault->message;
        length = (Py_ssize_t)strlen(utf8);
    }
    if (size) {
        size_t copied = (size_t)length < size - 1 ? (size_t)length : size - 1;
        while (copied < (size_t)length && copied && (utf8[copied] & 0xC0) == 0x80) copied--; /* whole characters */
        memcpy(text, utf8, copied);
        text[copied] = 0;
        const struct cpu_origin *origin = launch->origin ?: cpu_driver_origin(launch->caller);
        if (origin && copied == (size_t)length)
            length += snprintf(text + copied, size - copied, "\n  launched at %s:%d", origin->file, origin->line);
    }
    Py_XDECREF(message);
    PyErr_Restore(type, value, traceback);
    PyGILState_Release(gil);
    return (size_t)length;
}
