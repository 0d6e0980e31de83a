/* The extension module cupola.cpu._driver: the emulated driver and the engine, as the rest of cupola sees them.
 *
 * The bindings take `lookup` and `explain`, capsules of C functions; libcuda.py `exported`; cupola.cpu sets the device
 * up. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdlib.h>
#include <unistd.h>

#include "cudart/cudart.h"
#include "cudart/host_code.h"
#include "driver/base/base.h"
#include "driver/base/checks.h"
#include "driver/base/origin.h"
#include "engine/above.h"
#include "engine/checks/host.h"
#include "engine/checks/moments.h"
#include "engine/memory/absence.h"
#include "engine/memory/hidden.h"
#include "engine/memory/memory.h"
#include "engine/memory/shadow.h"
#include "driver/inject/inject.h"
#include "driver/lookup.h"
#include "driver/module/module.h"
#include "driver/module/observed.h"
#include "driver/stream/stream.h"
#include "math/base/math.h"
#include "math/blas/blas.h"
#include "math/fft/fft.h"
#include "math/lookup.h"
#include "provider/debug.h"
#include "provider/trace.h"
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

/* Of the GPU that a device stands for, as far as a profile needs it. Starts the driver. */
static PyObject *get_model_facts(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    if (cuInit(0)) return PyErr_Format(PyExc_RuntimeError, "the CPU device has not started");
    const struct model *m = devices[0].model;
    return Py_BuildValue("{ss,si,si,si,si,si,si,si,si,si,si,si,si,si}", "name", m->name, "major", m->major, "minor",
                         m->minor, "multiprocessors", m->multiprocessors, "threads", m->threads_per_multiprocessor,
                         "blocks", m->blocks_per_multiprocessor, "registers", m->registers_per_multiprocessor,
                         "registers_per_block", m->registers_per_block, "shared", m->shared_per_multiprocessor,
                         "shared_reserved", m->shared_reserved, "clock", m->clock, "memory_clock", m->memory_clock,
                         "memory_bus", m->memory_bus, "double_ratio", m->double_ratio);
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

/* The name is that of the status which a text explains. */
static void say_of(const char *text, const char *name) {
    if (!Py_IsInitialized()) return; /* the process ends, and there is no logger any more */
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *module = PyImport_ImportModule("cupola.cpu.programs");
    PyObject *done = module ? PyObject_CallMethod(module, "say", "ss", text, name) : NULL;
    if (!done) PyErr_WriteUnraisable(module);
    Py_XDECREF(done);
    Py_XDECREF(module);
    PyGILState_Release(gil);
}

static void say(const char *text) { say_of(text, ""); }

/* What a call of the runtime returned, and why: a program in C++ gets no exception that tells. */
static void report(cudaError_t error, const char *name) {
    char reason[EXPLANATION_SIZE];
    if (explain((int)error, reason, sizeof reason)) say_of(reason, name);
}

static PyObject *report_images(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    image_report = say;
    Py_RETURN_NONE;
}

/* Destructors of C++ free their handles when Python has ended: what made the handles has prepared the library. */
static void *math(const char *library, const char *symbol) {
    if (!Py_IsInitialized()) return math_lookup(symbol);
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

/* ---- injected faults ------------------------------------------------------------------------------------------- */

/* What programs get goes through a jump that can be made to fail (inject/calls.c). */
static CUresult failed_runtime(CUresult status) { return (CUresult)runtime_failed(status); }
static void *give(const char *symbol, void *function) {
    return injectable(symbol, function, strncmp(symbol, "cuda", 4) ? NULL : failed_runtime);
}
static void *give_driver(const char *symbol) { return give(symbol, lookup(symbol)); }
static void *give_exported(const char *symbol) { return give(symbol, exported(symbol)); }
static void *give_runtime(const char *symbol) { return give(symbol, runtime_lookup(symbol)); }
static void *give_host(const char *symbol) { return give(symbol, host_lookup(symbol)); }
static void *give_host_12(const char *symbol) { return give(symbol, host_lookup_12(symbol)); }

static bool add_call(PyObject *set, const char *symbol) {
    char name[64];
    if (!injectable_name(symbol, name, sizeof name)) return true;
    PyObject *text = PyUnicode_FromString(name);
    bool added = text && !PySet_Add(set, text);
    Py_XDECREF(text);
    return added;
}

static PyObject *injectable_calls(PyObject *self, PyObject *unused) {
    PyObject *set = PySet_New(NULL);
    bool whole = set;
    (void)self, (void)unused;
    for (size_t i = 0; whole && i < lookup_count(); i++) whole = add_call(set, lookup_name(i));
    for (size_t i = 0; whole && i < runtime_lookup_count(); i++) whole = add_call(set, runtime_lookup_name(i));
    if (!whole) Py_CLEAR(set);
    return set;
}

static PyObject *error_names(PyObject *self, PyObject *unused) {
    PyObject *list = PyList_New(0);
    CUresult status;
    (void)self, (void)unused;
    for (size_t i = 1; list && (status = error_at(i)); i++) {
        PyObject *text = PyUnicode_FromString(error_name(status));
        if (!text || PyList_Append(list, text)) Py_CLEAR(list);
        Py_XDECREF(text);
    }
    return list;
}

static PyObject *inject(PyObject *self, PyObject *arguments) {
    struct injection_rule rule;
    const char *error;
    int kind;
    unsigned long long nth, times, seed;
    (void)self;
    if (!PyArg_ParseTuple(arguments, "issiKKKdd:inject", &kind, &rule.pattern, &error, &rule.device, &nth, &times,
                          &seed, &rule.probability, &rule.amount))
        return NULL;
    if (kind < 0 || kind >= INJECTION_KINDS) return PyErr_Format(PyExc_ValueError, "there is no kind %d", kind);
    if (cuInit(0)) { /* there are devices from here on */
        char why[EXPLANATION_SIZE];
        if (!explain((int)thread_state.failed, why, sizeof why)) strcpy(why, "cuInit fails");
        return PyErr_Format(PyExc_RuntimeError, "%s", why);
    }
    rule.status = error_status(error);
    if (strcmp(error_name(rule.status), error)) return PyErr_Format(PyExc_ValueError, "there is no error '%s'", error);
    if (rule.device >= device_count)
        return PyErr_Format(PyExc_ValueError, "there is no device %d: the CPU device has %d", rule.device,
                            device_count);
    rule.kind = (enum injection_kind)kind;
    rule.nth = nth;
    rule.times = times;
    rule.seed = seed;
    unsigned id = injection_begin(&rule);
    return id ? PyLong_FromUnsignedLong(id) : PyErr_NoMemory();
}

static PyObject *end_injection(PyObject *self, PyObject *arguments) {
    unsigned id;
    (void)self;
    if (!PyArg_ParseTuple(arguments, "I:end_injection", &id)) return NULL;
    injection_end(id);
    Py_RETURN_NONE;
}

static PyObject *injected(PyObject *self, PyObject *arguments) {
    unsigned id;
    uint64_t applied;
    (void)self;
    if (!PyArg_ParseTuple(arguments, "I:injected", &id)) return NULL;
    size_t count = injection_report(id, &applied, NULL, 0), room = count < MOST_HAPPENINGS ? count : MOST_HAPPENINGS;
    struct happening *list = PyMem_Calloc(room ? room : 1, sizeof *list);
    if (!list) return PyErr_NoMemory();
    count = injection_report(id, &applied, list, room);
    PyObject *happenings = PyTuple_New((Py_ssize_t)room);
    for (size_t i = 0; happenings && i < room; i++) {
        PyObject *row = Py_BuildValue("(Ks)", (unsigned long long)list[i].number, list[i].what);
        if (row) PyTuple_SET_ITEM(happenings, (Py_ssize_t)i, row);
        else Py_CLEAR(happenings);
    }
    PyMem_Free(list);
    return happenings ? Py_BuildValue("(KKN)", (unsigned long long)applied, (unsigned long long)count, happenings)
                      : NULL;
}

/* ---- instruments ------------------------------------------------------------------------------------------------ */

static PyObject *set_checks(PyObject *self, PyObject *arguments) {
    unsigned set;
    (void)self;
    if (!PyArg_ParseTuple(arguments, "I:set_checks", &set)) return NULL;
    const unsigned new = set & ~atomic_exchange(&checks_on, set);
    if (new & CPU_CHECK_RACE) cpu_moments_reset();
    /* While the check was off, nobody noted what was written, freed and allocated again. */
    if (new & CPU_CHECK_INIT) cpu_shadow_set_all_written();
    cpu_host_tell();
    atomic_store(&cpu_shadow_remembers, set & CPU_CHECK_RACE);
    if (!(set & CPU_CHECK_RACE)) cpu_hidden_forget(0, UINT64_MAX);
    atomic_store(&cpu_shadow_tracks, set & CPU_CHECK_INIT);
    if (set & CHECK_LEAK) origin_watch_end();
    Py_RETURN_NONE;
}

static PyObject *tell_checks(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    cpu_host_tell();
    Py_RETURN_NONE;
}

static PyObject *source_text(PyObject *self, PyObject *arguments) {
    const char *name, *digest;
    (void)self;
    if (!PyArg_ParseTuple(arguments, "ss:source_text", &name, &digest)) return NULL;
    char *text = observed_text(name, digest);
    if (!text) Py_RETURN_NONE;
    PyObject *result = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
    free(text);
    return result;
}

static PyObject *keep_source(PyObject *self, PyObject *arguments) {
    const char *name, *text;
    (void)self;
    if (!PyArg_ParseTuple(arguments, "ss:keep_source", &name, &text)) return NULL;
    observed_keep(name, text);
    Py_RETURN_NONE;
}

static PyObject *line_with(uint32_t number) {
    const struct cpu_origin *origin = cpu_driver_origin(number);
    if (!origin) Py_RETURN_NONE;
    return PyUnicode_FromFormat("%s:%d", origin->file, origin->line);
}

/* (allocated, freed): the lines of what is, or was, allocated at an address. */
static PyObject *lines_of_memory(PyObject *self, PyObject *arguments) {
    unsigned long long base;
    cpu_allocation found;
    (void)self;
    if (!PyArg_ParseTuple(arguments, "K:lines_of_memory", &base)) return NULL;
    if (!cpu_memory_last(base, &found)) found = (cpu_allocation){0};
    PyObject *allocated = line_with(found.allocated_at);
    PyObject *freed = allocated ? line_with(found.freed_at) : NULL;
    return freed ? Py_BuildValue("(NN)", allocated, freed) : (Py_XDECREF(allocated), NULL);
}

static PyObject *caller_line(PyObject *self, PyObject *arguments) {
    int asked;
    (void)self;
    if (!PyArg_ParseTuple(arguments, "p:caller_line", &asked)) return NULL;
    return line_with(asked ? caller_ask() : caller_here());
}

/* A process in which something was found ends with a status that says so. */
static _Atomic bool found_something;

static void end_with_failure(int status, void *unused) {
    (void)unused;
    if (status || !atomic_load(&found_something)) return;
    fflush(NULL);
    _exit(1);
}

static PyObject *fail_at_end(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    if (!atomic_exchange(&found_something, true) && on_exit(end_with_failure, NULL)) return PyErr_NoMemory();
    Py_RETURN_NONE;
}

static PyObject *set_instruments(PyObject *self, PyObject *arguments) {
    unsigned set;
    (void)self;
    if (!PyArg_ParseTuple(arguments, "I:set_instruments", &set)) return NULL;
    cpu_instruments_set(set);
    Py_RETURN_NONE;
}

/* ---- faults that nobody has heard of (cupola.cpu._at_exit) ------------------------------------------------------- */

static void find_busy(void *object, void *busy) {
    CUstream stream = object;
    if (atomic_load(&stream->completed) < atomic_load(&stream->submitted)) *(bool *)busy = true;
}

static PyObject *is_idle(PyObject *self, PyObject *unused) {
    bool busy = false;
    (void)self, (void)unused;
    handle_each(HANDLE_STREAM, find_busy, &busy);
    return PyBool_FromLong(!busy);
}

struct polls {
    bool busy;
    PyObject *list;
};

static void note_polls(void *object, void *given) {
    struct polls *polls = given;
    if (!handle_acquire(object, HANDLE_STREAM)) return;
    const int64_t count = stream_polls(object);
    stream_release(object);
    if (count < 0) polls->busy = true;
    if (count <= 0) return;
    PyObject *number = PyLong_FromLongLong(count);
    if (!number || PyList_Append(polls->list, number)) PyErr_WriteUnraisable(polls->list);
    Py_XDECREF(number);
}

static PyObject *vain_polls(PyObject *self, PyObject *unused) {
    struct polls polls = {.list = PyList_New(0)};
    (void)self, (void)unused;
    if (!polls.list) return NULL;
    handle_each(HANDLE_STREAM, note_polls, &polls);
    if (!polls.busy) return polls.list;
    Py_DECREF(polls.list);
    Py_RETURN_NONE;
}

static void find_unheard(void *object, void *list) {
    CUcontext context = object;
    char why[EXPLANATION_SIZE];
    const CUresult status = (CUresult)atomic_load(&context->error);
    if (context->green || !context_is_alive(context) || !status || atomic_exchange(&context->heard, true)) return;
    size_t length = context_explain(context, status, why, sizeof why);
    PyObject *row = Py_BuildValue("(iss)", context->device->ordinal, error_name(status), length ? why : "");
    if (!row || PyList_Append(list, row)) PyErr_WriteUnraisable(list);
    Py_XDECREF(row);
}

static PyObject *unheard_faults(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    PyObject *list = PyList_New(0);
    if (list) handle_each(HANDLE_CONTEXT, find_unheard, list);
    return list;
}

/* The end of a program of another language, in which nobody finalizes Python. What failed unheard makes its status 1
 * where it is 0. This module stays loaded to the end, unlike the library that the program may have closed. */
static void end_program(int status, void *unused) {
    (void)unused;
    if (!Py_IsInitialized()) return;
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *module = PyImport_ImportModule("cupola.cpu.programs");
    PyObject *failed = module ? PyObject_CallMethod(module, "end", NULL) : NULL;
    const bool change = failed == Py_True && status == 0;
    if (!failed) PyErr_WriteUnraisable(module);
    Py_XDECREF(failed);
    Py_XDECREF(module);
    PyGILState_Release(gil);
    if (!change) return;
    fflush(NULL);
    _exit(1);
}

static PyObject *call_at_end(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    if (on_exit(end_program, NULL)) return PyErr_NoMemory();
    Py_RETURN_NONE;
}

/* ---- what is live, for tests of leaks ------------------------------------------------------------------------- */

static void count_handle(void *object, void *count) {
    (void)object;
    ++*(size_t *)count;
}

static PyObject *live_handles(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    PyObject *counts = PyTuple_New(HANDLE_KINDS);
    for (int kind = 0; counts && kind < HANDLE_KINDS; kind++) {
        size_t count = 0;
        handle_each((enum handle_kind)kind, count_handle, &count);
        PyObject *number = PyLong_FromSize_t(count);
        if (number) PyTuple_SET_ITEM(counts, kind, number);
        else Py_CLEAR(counts);
    }
    return counts;
}

static PyMethodDef methods[] = {
    {"configure", configure, METH_VARARGS,
     PyDoc_STR("configure(model: str, devices: int) -> None\n\nChoose the modeled GPU and the number of devices.")},
    {"models", get_models, METH_NOARGS,
     PyDoc_STR(
         "models() -> tuple\n\nKey, name, compute capability, multiprocessors and bytes of memory of each model.")},
    {"model_facts", get_model_facts, METH_NOARGS,
     PyDoc_STR("model_facts() -> dict\n\nWhat a multiprocessor of the modeled GPU holds, and its clocks in kHz.")},
    {"symbols", get_symbols, METH_NOARGS, PyDoc_STR("symbols() -> tuple[str, ...]\n\nThe driver functions provided.")},
    {"runtime_symbols", get_runtime_symbols, METH_NOARGS,
     PyDoc_STR("runtime_symbols() -> tuple[str, ...]\n\nThe functions of the CUDA runtime that are provided.")},
    {"nvml_symbols", get_nvml_symbols, METH_NOARGS,
     PyDoc_STR("nvml_symbols() -> tuple[str, ...]\n\nThe functions of NVML that do more than to say that they are not "
               "supported.")},
    {"report_images", report_images, METH_NOARGS,
     PyDoc_STR("report_images() -> None\n\nSay on the logger why images of device code are refused.")},
    {"math_symbols", get_math_symbols, METH_NOARGS,
     PyDoc_STR("math_symbols() -> tuple[str, ...]\n\nThe functions of the math libraries that are provided.")},
    {"load_math", load_math, METH_VARARGS,
     PyDoc_STR("load_math(path: str, threads: int) -> None\n\nOpen the OpenBLAS that the math libraries use.")},
    {"load_transforms", load_transforms, METH_VARARGS,
     PyDoc_STR("load_transforms(path: str, threads: int) -> None\n\nOpen the Fourier transforms that cuFFT uses.")},
    {"injectable_calls", injectable_calls, METH_NOARGS,
     PyDoc_STR("injectable_calls() -> set[str]\n\nThe functions that can be made to fail, by their plain names.")},
    {"error_names", error_names, METH_NOARGS, PyDoc_STR("error_names() -> list[str]\n\nThe errors of the driver.")},
    {"inject", inject, METH_VARARGS,
     PyDoc_STR("inject(kind: int, pattern: str, error: str, device: int, nth: int, times: int, seed: int, "
               "probability: float, amount: float) -> int\n\nBegin to inject a fault (driver/inject/inject.h).")},
    {"tell_checks", tell_checks, METH_NOARGS,
     PyDoc_STR("tell_checks() -> None\n\nMake findings of what the host has done, before it has waited.")},
    {"set_checks", set_checks, METH_VARARGS,
     PyDoc_STR("set_checks(set: int) -> None\n\nChoose which checks are on (cupola.cpu.reports.kinds).")},
    {"keep_source", keep_source, METH_VARARGS,
     PyDoc_STR(
         "keep_source(name: str, source: str) -> None\n\nKeep the CUDA C++ of a program whose code comes from a cache.")},
    {"source_text", source_text, METH_VARARGS,
     PyDoc_STR(
         "source_text(name: str, digest: str) -> str | None\n\nThe CUDA C++ of a program of NVRTC, or of a header of "
         "its, by the digest in its PTX; without one, that which is the only one of the name.")},
    {"lines_of_memory", lines_of_memory, METH_VARARGS,
     PyDoc_STR(
         "lines_of_memory(base: int) -> tuple\n\nThe lines of Python that allocated what is, or was, at an address, "
         "and that freed it; None where they are not known.")},
    {"caller_line", caller_line, METH_VARARGS,
     PyDoc_STR(
         "caller_line(asked: bool) -> str | None\n\nThe line that a call would note, from the interpreter's records, "
         "or asked for by its functions.")},
    {"fail_at_end", fail_at_end, METH_NOARGS,
     PyDoc_STR("fail_at_end() -> None\n\nEnd the process with status 1 where it would be 0.")},
    {"set_instruments", set_instruments, METH_VARARGS,
     PyDoc_STR("set_instruments(set: int) -> None\n\nChoose what observes the kernels that are launched from now on "
               "(compiler/emit/instruments).")},
    DEBUG_METHODS,
    {"begin_trace", begin_trace, METH_VARARGS,
     PyDoc_STR(
         "begin_trace(most: int) -> int\n\nRecord at most so many calls and operations; returns the time in ns.")},
    {"end_trace", end_trace, METH_NOARGS,
     PyDoc_STR("end_trace() -> tuple[list, int]\n\nThe records (driver/trace/trace.h), and how many were lost.")},
    {"vain_polls", vain_polls, METH_NOARGS,
     PyDoc_STR(
         "vain_polls() -> list of int, or None\n\nNone while a stream has something to do; else how often each that "
         "waits for a value in memory\nhas looked for it in vain.")},
    {"is_idle", is_idle, METH_NOARGS,
     PyDoc_STR("is_idle() -> bool\n\nWhether all streams have done all that was put in them.")},
    {"unheard_faults", unheard_faults, METH_NOARGS,
     PyDoc_STR("unheard_faults() -> list\n\nDevice, error and explanation of each context that failed without a call "
               "that returned it; once.")},
    {"call_at_end", call_at_end, METH_NOARGS,
     PyDoc_STR("call_at_end() -> None\n\nCall cupola.cpu.programs.end() when the process ends.")},
    {"live_handles", live_handles, METH_NOARGS,
     PyDoc_STR("live_handles() -> tuple[int, ...]\n\nHow many of each kind of handle exist (driver/base/handle.h).")},
    {"injected", injected, METH_VARARGS,
     PyDoc_STR("injected(id: int) -> tuple\n\nHow often it applied, how often it struck, and what it did.")},
    {"end_injection", end_injection, METH_VARARGS, PyDoc_STR("end_injection(id: int) -> None\n\nStop injecting.")},
    {NULL, NULL, 0, NULL},
};

static int add_capsule(PyObject *module, const char *attribute, const char *name, void *pointer) {
    PyObject *capsule = PyCapsule_New(pointer, name, NULL);
    int status = capsule ? PyModule_AddObjectRef(module, attribute, capsule) : -1;
    Py_XDECREF(capsule);
    return status;
}

/* Whether the host may read and write device memory at this moment without a copy: all of the range is in one allocation of
 * its own pages, and nothing watches who does so. */
static int host_may_use(uint64_t address, uint64_t size) {
    cpu_allocation found;
    if (checks(CHECK_ANY) || !cpu_memory_find(address, &found)) return 0;
    return found.kind == CPU_MEMORY_DEVICE && !found.freeing && !(found.flags & MEMORY_VIRTUAL) &&
           size <= found.size - (address - found.base) && !cpu_memory_is_away(address);
}

static int execute(PyObject *module) {
    (void)origin_find_folder();
    static const struct cpu_programs programs = {give_host,   give_host_12, give_exported, nvml_lookup,   host_adopt,
                                                 host_disown, say,          math,          explain_errors};
    if (PyModule_AddIntMacro(module, CUDA_VERSION)) return -1;
    if (add_capsule(module, "lookup", "cupola.cpu._driver.lookup", (void *)give_driver)) return -1;
    if (add_capsule(module, "exported", "cupola.cpu._driver.exported", (void *)give_exported)) return -1;
    if (add_capsule(module, "nvml_lookup", "cupola.cpu._driver.nvml_lookup", (void *)nvml_lookup)) return -1;
    if (add_capsule(module, "runtime_lookup", "cupola.cpu._driver.runtime_lookup", (void *)give_runtime)) return -1;
    if (add_capsule(module, "programs", "cupola.cpu._driver.programs", (void *)&programs)) return -1;
    if (add_capsule(module, "math_lookup", "cupola.cpu._driver.math_lookup", (void *)math_lookup)) return -1;
    if (add_capsule(module, "host_may_use", "cupola.cpu._driver.host_may_use", (void *)host_may_use)) return -1;
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
