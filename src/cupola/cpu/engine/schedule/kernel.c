/* Kernels of loaded modules and their compiled variants: the C side of cupola.cpu.compiler. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "engine/checks/moments.h"
#include "schedule.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct param {
    size_t offset, size;
};

struct cpu_kernel {
    PyObject *module; /* cupola.cpu.compiler.modules.LoadedModule */
    size_t index;
    char *name;
    _Atomic bool is_read; /* the next two are known, and stay as they are */
    cpu_kernel_info info;
    struct param *params;
    pthread_mutex_t lock; /* the list of variants, which only grows; and of reading */
    _Atomic(cpu_variant *) variants;
};

/* ---- reading Python objects ----------------------------------------------------------------------------------- */

/* An integer attribute; -1 with an exception when there is none. */
static long long get_integer(PyObject *object, const char *name) {
    PyObject *value = PyObject_GetAttrString(object, name);
    if (!value) return -1;
    long long result = PyLong_AsLongLong(value);
    Py_DECREF(value);
    return result;
}

static int get_uint32(PyObject *object, const char *name, uint32_t *result) {
    long long value = get_integer(object, name);
    if (value == -1 && PyErr_Occurred()) return -1;
    *result = (uint32_t)value;
    return 0;
}

/* A tuple of three integers, or None for three zeros. */
static int get_dim3(PyObject *object, const char *name, uint32_t *result) {
    PyObject *value = PyObject_GetAttrString(object, name);
    if (!value) return -1;
    int status = 0;
    memset(result, 0, 3 * sizeof *result);
    if (value != Py_None) status = PyArg_ParseTuple(value, "III", &result[0], &result[1], &result[2]) ? 0 : -1;
    Py_DECREF(value);
    return status;
}

static int read_params(cpu_kernel_info *to, struct param **result, PyObject *info) {
    PyObject *value = PyObject_GetAttrString(info, "params");
    PyObject *params = value ? PySequence_Fast(value, "params must be a sequence") : NULL;
    Py_XDECREF(value);
    if (!params) return -1;
    Py_ssize_t count = PySequence_Fast_GET_SIZE(params);
    struct param *list = *result = calloc(count ? (size_t)count : 1, sizeof *list);
    to->param_count = (uint32_t)count;
    int status = list ? 0 : -1;
    if (status) PyErr_NoMemory();
    for (Py_ssize_t i = 0; status == 0 && i < count; i++) {
        Py_ssize_t offset, size, align;
        const char *name;
        status = PyArg_ParseTuple(PySequence_Fast_GET_ITEM(params, i), "snnn", &name, &offset, &size, &align) ? 0 : -1;
        if (status) break;
        list[i].offset = (size_t)offset;
        list[i].size = (size_t)size;
    }
    Py_DECREF(params);
    return status;
}

static int read_info(cpu_kernel_info *to, struct param **params, PyObject *info) {
    const struct {
        const char *name;
        uint32_t *to;
    } fields[] = {
        {"static_shared", &to->static_shared},
        {"local_bytes", &to->local_bytes},
        {"reserved_shared", &to->reserved_shared},
        {"const_bytes", &to->const_bytes},
        {"registers", &to->registers},
        {"max_threads", &to->max_threads},
        {"param_bytes", &to->param_bytes},
        {"ptx_version", &to->ptx_version},
        {"binary_version", &to->binary_version},
        {"max_cluster", &to->max_cluster},
        {"must_have_cluster", &to->must_have_cluster},
        {"blocks_are_clusters", &to->blocks_are_clusters},
        {"launches", &to->launches},
        {"system_calls", &to->system_calls},
        {"is_tile_kernel", &to->is_tile_kernel},
    };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (get_uint32(info, fields[i].name, fields[i].to)) return -1;
    to->code = (uint64_t)get_integer(info, "code");
    if (PyErr_Occurred()) return -1;
    if (get_dim3(info, "required_block", to->required_block) || get_dim3(info, "max_block", to->max_block) ||
        get_dim3(info, "required_cluster", to->required_cluster))
        return -1;
    return read_params(to, params, info);
}

cpu_kernel *cpu_kernel_new(PyObject *module, size_t index) {
    cpu_kernel *kernel = calloc(1, sizeof *kernel);
    if (!kernel) {
        PyErr_NoMemory();
        return NULL;
    }
    pthread_mutex_init(&kernel->lock, NULL);
    kernel->module = Py_NewRef(module);
    kernel->index = index;
    PyObject *entries = PyObject_GetAttrString(module, "entries");
    PyObject *entry = entries ? PySequence_GetItem(entries, (Py_ssize_t)index) : NULL;
    Py_XDECREF(entries);
    const char *name;
    unsigned long long code;
    if (!entry || !PyArg_ParseTuple(entry, "sK", &name, &code)) {
        Py_XDECREF(entry);
        cpu_kernel_free(kernel);
        return NULL;
    }
    kernel->info.code = code;
    kernel->name = strdup(name);
    Py_DECREF(entry);
    if (kernel->name) return kernel;
    PyErr_NoMemory();
    cpu_kernel_free(kernel);
    return NULL;
}

bool cpu_kernel_is_read(const cpu_kernel *kernel) {
    return atomic_load_explicit(&kernel->is_read, memory_order_acquire);
}

int cpu_kernel_read(cpu_kernel *kernel) {
    if (cpu_kernel_is_read(kernel)) return 0;
    cpu_kernel_info read = {0};
    struct param *params = NULL;
    PyObject *kernels = PyObject_GetAttrString(kernel->module, "kernels");
    PyObject *info = kernels ? PySequence_GetItem(kernels, (Py_ssize_t)kernel->index) : NULL;
    Py_XDECREF(kernels);
    int status = info ? read_info(&read, &params, info) : -1;
    Py_XDECREF(info);
    /* Another thread may have been here meanwhile, because Python lets others run. */
    pthread_mutex_lock(&kernel->lock);
    if (!status && !cpu_kernel_is_read(kernel)) {
        kernel->info = read;
        kernel->params = params;
        params = NULL;
        atomic_store_explicit(&kernel->is_read, true, memory_order_release);
    }
    pthread_mutex_unlock(&kernel->lock);
    free(params);
    return status;
}

void cpu_kernel_free(cpu_kernel *kernel) {
    if (!kernel) return;
    cpu_deeds_forget(kernel);
    cpu_variant *next;
    for (cpu_variant *variant = atomic_load(&kernel->variants); variant; variant = next) {
        next = variant->next;
        Py_XDECREF(variant->object);
        free((void *)variant->thread_ids[0]);
        free(variant->resume_sites);
        free(variant->pointers);
        free(variant);
    }
    pthread_mutex_destroy(&kernel->lock);
    Py_XDECREF(kernel->module);
    free(kernel->params);
    free(kernel->name);
    free(kernel);
}

const cpu_kernel_info *cpu_kernel_get_info(const cpu_kernel *kernel) { return &kernel->info; }
const char *cpu_kernel_name(const cpu_kernel *kernel) { return kernel->name; }

int cpu_kernel_param(const cpu_kernel *kernel, size_t index, size_t *offset, size_t *size) {
    if (index >= kernel->info.param_count) return -1;
    *offset = kernel->params[index].offset;
    *size = kernel->params[index].size;
    return 0;
}

/* ---- variants ------------------------------------------------------------------------------------------------- */

static _Atomic uint32_t instruments_on;

void cpu_instruments_set(uint32_t instruments) {
    atomic_store_explicit(&instruments_on, instruments, memory_order_relaxed);
}

static cpu_variant *find_variant(cpu_kernel *kernel, const uint32_t block[3], uint32_t instruments) {
    cpu_variant *variant = atomic_load_explicit(&kernel->variants, memory_order_acquire);
    while (variant && (memcmp(variant->block, block, sizeof variant->block) || variant->instruments != instruments))
        variant = variant->next;
    return variant;
}

/* The coordinates of every thread, x, y and z one after the other, each padded by a unit that vector code may read. */
static uint32_t *make_thread_ids(const uint32_t block[3], size_t *stride) {
    size_t threads = (size_t)block[0] * block[1] * block[2], padded = threads + CPU_WARP_THREADS;
    padded = (padded + 15) / 16 * 16;
    uint32_t *ids = aligned_alloc(64, (3 * padded * sizeof *ids + 63) / 64 * 64);
    if (!ids) return NULL;
    for (size_t i = 0; i < padded; i++) {
        uint32_t thread = i < threads ? (uint32_t)i : 0;
        ids[i] = thread % block[0];
        ids[padded + i] = thread / block[0] % block[1];
        ids[2 * padded + i] = thread / block[0] / block[1];
    }
    *stride = padded;
    return ids;
}

/* A tuple of numbers that a Variant has. */
static int read_numbers(PyObject *object, const char *name, uint32_t *length, uint32_t **numbers) {
    PyObject *given = PyObject_GetAttrString(object, name);
    Py_ssize_t count = given ? PyTuple_Size(given) : -1;
    int status = -1;
    if (count >= 0) *numbers = calloc((size_t)count + 1, sizeof **numbers);
    if (count >= 0 && *numbers) {
        *length = (uint32_t)count;
        for (Py_ssize_t i = 0; i < count; i++)
            (*numbers)[i] = (uint32_t)PyLong_AsUnsignedLong(PyTuple_GET_ITEM(given, i));
        status = PyErr_Occurred() ? -1 : 0;
    } else if (count >= 0) {
        PyErr_NoMemory();
    }
    Py_XDECREF(given);
    return status;
}

/* What holds or does not hold of the code. */
static int read_flags(cpu_variant *variant, PyObject *object) {
    const struct {
        const char *name;
        bool *flag;
    } flags[] = {
        {"has_stack", &variant->has_stack},
        {"stack_grows", &variant->stack_grows},
        {"whole_blocks", &variant->whole_blocks},
        {"rows_of_blocks", &variant->rows_of_blocks},
        {"apart", &variant->apart},
    };
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        uint32_t value;
        if (get_uint32(object, flags[i].name, &value)) return -1;
        *flags[i].flag = value;
    }
    return 0;
}

/* The bytearray `stops` of a Variant for a debugger, which stays as it is but for its bytes. */
static int read_stops(cpu_variant *variant, PyObject *object) {
    PyObject *stops = PyObject_GetAttrString(object, "stops");
    if (stops && PyByteArray_Check(stops)) {
        variant->stops = (const uint8_t *)PyByteArray_AS_STRING(stops);
        variant->stop_count = (uint32_t)PyByteArray_GET_SIZE(stops);
    }
    Py_XDECREF(stops);
    return stops ? 0 : -1;
}

/* With the GIL. */
static cpu_variant *make_variant(cpu_kernel *kernel, const uint32_t block[3], uint32_t instruments) {
    PyObject *object = PyObject_CallMethod(kernel->module, "compile", "n(III)I", (Py_ssize_t)kernel->index, block[0],
                                           block[1], block[2], instruments);
    if (!object) return NULL;
    cpu_variant *variant = calloc(1, sizeof *variant);
    size_t stride = 0;
    uint32_t *ids = make_thread_ids(block, &stride);
    long long address = get_integer(object, "address"), better = get_integer(object, "better");
    if (!variant || !ids) PyErr_NoMemory();
    if (PyErr_Occurred() || get_uint32(object, "width", &variant->width) ||
        get_uint32(object, "frame_bytes", &variant->frame_bytes) ||
        get_uint32(object, "site_count", &variant->site_count) ||
        get_uint32(object, "counter_count", &variant->counter_count) ||
        get_uint32(object, "checks", &variant->checks) || get_uint32(object, "stack_bytes", &variant->stack_bytes) ||
        read_flags(variant, object) || read_stops(variant, object) ||
        read_numbers(object, "resume_sites", &variant->resume_count, &variant->resume_sites) ||
        read_numbers(object, "pointers", &variant->pointer_count, &variant->pointers)) {
        if (variant) {
            free(variant->resume_sites);
            free(variant->pointers);
        }
        free(variant);
        free(ids);
        Py_DECREF(object);
        return NULL;
    }
    variant->kernel = kernel;
    variant->object = object;
    variant->body = (cpu_body)(uintptr_t)address;
    variant->better = (const _Atomic(uintptr_t) *)(uintptr_t)better;
    variant->instruments = instruments;
    memcpy(variant->block, block, sizeof variant->block);
    variant->static_shared = kernel->info.static_shared;
    variant->reserved_shared = kernel->info.reserved_shared;
    variant->local_bytes = kernel->info.local_bytes;
    for (int i = 0; i < 3; i++) variant->thread_ids[i] = ids + (size_t)i * stride;
    return variant;
}

static const char *utf8_of(PyObject *text) {
    const char *utf8 = text && PyUnicode_Check(text) ? PyUnicode_AsUTF8(text) : NULL;
    PyErr_Clear();
    return utf8;
}

void cpu_take_exception(cpu_refusal *refusal) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (value && !PyErr_GivenExceptionMatches(value, PyExc_Exception)) { /* Ctrl-C, which goes on to the caller */
        *refusal = (cpu_refusal){"CUDA_ERROR_UNKNOWN", "the compiler of the CPU device was interrupted"};
        PyErr_Restore(type, value, traceback);
        return;
    }
    PyObject *status = value ? PyObject_GetAttrString(value, "status") : NULL;
    PyErr_Clear();
    PyObject *text = value ? PyObject_Str(value) : NULL;
    const char *name = utf8_of(status), *said = utf8_of(text), *form = "%s";
    char message[sizeof refusal->message - 128];
    snprintf(message, sizeof message, "%s", said ? said : "");
    if (!name && value && PyErr_GivenExceptionMatches(value, PyExc_ImportError)) {
        name = "CUDA_ERROR_JIT_COMPILER_NOT_FOUND";
        form = "the CPU device needs llvmlite to compile kernels (%s): pip install 'cupola[cpu]'";
    } else if (!name && value && PyErr_GivenExceptionMatches(value, PyExc_MemoryError)) {
        name = "CUDA_ERROR_OUT_OF_MEMORY";
        form = "the compiler ran out of host memory";
    }
    snprintf(refusal->status, sizeof refusal->status, "%s", name ? name : "CUDA_ERROR_UNKNOWN");
    if (name) snprintf(refusal->message, sizeof refusal->message, form, message);
    else
        snprintf(refusal->message, sizeof refusal->message, "the compiler of the CPU device failed: %.64s: %s",
                 value ? Py_TYPE(value)->tp_name : "unknown", message);
    Py_XDECREF(status);
    Py_XDECREF(text);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
}

const cpu_variant *cpu_engine_prepare(cpu_kernel *kernel, const uint32_t block[3], cpu_refusal *refusal) {
    const uint32_t instruments = atomic_load_explicit(&instruments_on, memory_order_relaxed);
    cpu_variant *variant = find_variant(kernel, block, instruments);
    if (variant) return variant;
    PyGILState_STATE gil = PyGILState_Ensure();
    variant = make_variant(kernel, block, instruments);
    if (!variant) cpu_take_exception(refusal);
    PyGILState_Release(gil);
    if (!variant) return NULL;
    /* Two threads may have compiled the same one (the compiler hands both the same code); both stay in the list. */
    pthread_mutex_lock(&kernel->lock);
    variant->next = atomic_load_explicit(&kernel->variants, memory_order_relaxed);
    atomic_store_explicit(&kernel->variants, variant, memory_order_release);
    pthread_mutex_unlock(&kernel->lock);
    return variant;
}

/* Machine code that replaces other code from now on, at a place that cpu_variant.better points to. */
CPU_HELPER void cpu_code_replace(_Atomic(uintptr_t) *place, uintptr_t code) {
    atomic_store_explicit(place, code, memory_order_release);
}

static cpu_body better(const cpu_variant *variant, int which) {
    return variant->better ? (cpu_body)atomic_load_explicit(&variant->better[which], memory_order_acquire) : NULL;
}

cpu_body cpu_variant_body(const cpu_variant *variant) {
    const cpu_body found = better(variant, 0);
    return found ? found : variant->body;
}

cpu_body cpu_variant_independent(const cpu_variant *variant, cpu_refusal *refusal) {
    cpu_body body = better(variant, 1);
    if (!body) body = atomic_load(&variant->independent);
    if (body) return body;
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *address = PyObject_CallMethod(variant->object, "independent_address", NULL);
    if (address) body = (cpu_body)(uintptr_t)PyLong_AsUnsignedLongLong(address);
    Py_XDECREF(address);
    if (PyErr_Occurred()) {
        cpu_take_exception(refusal);
        body = NULL;
    }
    PyGILState_Release(gil);
    if (body) atomic_store(&((cpu_variant *)variant)->independent, body);
    return body;
}

void cpu_variant_count(const cpu_launch *launch, const _Atomic uint64_t *counters) {
    const cpu_variant *variant = launch->variant;
    const uint32_t *grid = launch->grid, *block = launch->block, *cluster = launch->cluster;
    if (!Py_IsInitialized()) return;
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *totals =
        PyObject_CallMethod(variant->object, "totals", "(III)(III)(III)I", grid[0], grid[1], grid[2], block[0],
                            block[1], block[2], cluster[0], cluster[1], cluster[2], launch->dynamic_shared);
    if (totals && PyByteArray_GET_SIZE(totals) == (Py_ssize_t)(8 * (size_t)variant->counter_count)) {
        uint64_t *sums = (uint64_t *)(void *)PyByteArray_AS_STRING(totals);
        for (uint32_t i = 0; i < variant->counter_count; i++)
            sums[i] += atomic_load_explicit(&counters[i], memory_order_relaxed);
    }
    if (!totals) PyErr_WriteUnraisable(variant->object);
    Py_XDECREF(totals);
    PyGILState_Release(gil);
}
