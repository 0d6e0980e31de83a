/* A timeline of a GPU, by CUPTI's activity API (CUPTI's documentation, "CUPTI Activity API").
 *
 * CUPTI asks for buffers and gives them back full, in threads of its own. Their records are turned into ours then, which
 * are few bytes; Python gets them at the end. All times are those of CLOCK_MONOTONIC: CUPTI asks us for the time.
 *
 * The library is loaded by its path. Of its records only fields are read that lie at the same place in the headers of CUDA
 * 12.9 to 13.5; how long records are is the library's own business. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "common/common.h"
#include "common/names.h"
#include "growing.h"

enum { BUFFER = 4 << 20, ALIGNMENT = 8 };
enum { SUCCESS = 0, MAX_LIMIT_REACHED = 12, SYSTEM_THREADS = 1, DRIVER_API = 1, RUNTIME_API = 2, FLUSH_FORCED = 1 };
enum { /* CUpti_ActivityKind */
       COPY = 1,
       FILL = 2,
       DRIVER = 4,
       RUNTIME = 5,
       KERNEL = 10,
       PEER_COPY = 22,
       SYNCHRONIZATION = 38,
       MEMORY = 49,
};
static const int kinds[] = {COPY, FILL, DRIVER, RUNTIME, KERNEL, PEER_COPY, MEMORY};

/* The beginnings of records, as far as they are read. */
struct kernel_record { /* CUpti_ActivityKernel9 to 13 */
    uint32_t kind, before[3];
    uint64_t start, end, completed;
    uint32_t device, context, stream;
    int32_t grid[3], block[3], static_shared, dynamic_shared;
    uint32_t local[2], correlation;
    int64_t grid_id;
    const char *name;
};
struct copy_record { /* CUpti_ActivityMemcpy6, 7 */
    uint32_t kind;
    uint8_t copy_kind, source, target, flags;
    uint64_t bytes, start, end;
    uint32_t device, context, stream, correlation;
};
struct peer_copy_record {    /* CUpti_ActivityMemcpyPtoP4 */
    struct copy_record copy; /* without the correlation, which is further behind */
    uint32_t between[3], correlation;
};
struct fill_record { /* CUpti_ActivityMemset4, 5 */
    uint32_t kind, value;
    uint64_t bytes, start, end;
    uint32_t device, context, stream, correlation;
};
struct call_record { /* CUpti_ActivityAPI */
    uint32_t kind, function;
    uint64_t start, end;
    uint32_t process, thread, correlation, status;
};
struct memory_record { /* CUpti_ActivityMemory4 */
    uint32_t kind;
    int32_t operation, memory;
    uint32_t correlation;
    uint64_t address, bytes, time, counter;
    uint32_t process, device, context, stream;
};
_Static_assert(offsetof(struct kernel_record, name) == 104 && offsetof(struct kernel_record, correlation) == 92, "");
_Static_assert(offsetof(struct kernel_record, dynamic_shared) == 80 && offsetof(struct kernel_record, stream) == 48,
               "");
_Static_assert(offsetof(struct copy_record, correlation) == 44 && offsetof(struct copy_record, bytes) == 8, "");
_Static_assert(offsetof(struct peer_copy_record, correlation) == 60, "");
_Static_assert(offsetof(struct fill_record, correlation) == 44 && offsetof(struct fill_record, bytes) == 8, "");
_Static_assert(offsetof(struct call_record, status) == 36 && offsetof(struct call_record, thread) == 28, "");
_Static_assert(offsetof(struct memory_record, stream) == 60 && offsetof(struct memory_record, time) == 32, "");

/* Ours: the numbers of the CPU device's trace (cpu/driver/trace/trace.h). */
enum { OUR_CALL, OUR_KERNEL, OUR_COPY, OUR_FILL, OUR_ALLOCATE = 8, OUR_FREE };
struct record {
    uint64_t begin, end, bytes;
    const char *name; /* of a kernel: in `names` */
    uint32_t call, place, grid[3], block[3], shared, status, function;
    int32_t device;
    uint8_t kind, is_runtime;
    char from, to;
};

static struct { /* the library */
    int (*register_callbacks)(void (*)(uint8_t **, size_t *, size_t *),
                              void (*)(void *, uint32_t, uint8_t *, size_t, size_t));
    int (*register_clock)(uint64_t (*)(void));
    int (*enable)(int), (*disable)(int);
    int (*flush)(uint32_t);
    int (*next)(uint8_t *, size_t, void **);
    int (*dropped)(void *, uint32_t, size_t *);
    int (*callback_name)(int, uint32_t, const char **);
    int (*thread_type)(int);
    int (*result_string)(int, const char **);
    int (*version)(uint32_t *);
    int (*finalize)(void);
} cupti;
static const struct {
    const char *name;
    size_t place;
} symbols[] = {
#define SYMBOL(name, field) {name, offsetof(__typeof__(cupti), field)}
    SYMBOL("cuptiActivityRegisterCallbacks", register_callbacks),
    SYMBOL("cuptiActivityRegisterTimestampCallback", register_clock),
    SYMBOL("cuptiActivityEnable", enable),
    SYMBOL("cuptiActivityDisable", disable),
    SYMBOL("cuptiActivityFlushAll", flush),
    SYMBOL("cuptiActivityGetNextRecord", next),
    SYMBOL("cuptiActivityGetNumDroppedRecords", dropped),
    SYMBOL("cuptiGetCallbackName", callback_name),
    SYMBOL("cuptiSetThreadIdType", thread_type),
    SYMBOL("cuptiGetResultString", result_string),
    SYMBOL("cuptiGetVersion", version),
    SYMBOL("cuptiFinalize", finalize),
#undef SYMBOL
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct record *records;
static size_t count, room, limit, lost;
static struct names names;

static void add(const struct record *record) {
    if (count < limit && room_for_one((void **)&records, count, &room, sizeof *records)) records[count++] = *record;
    else lost++;
}

static void add_copy(const struct copy_record *r, uint32_t correlation) {
    static const char places[] = " HPDAMDM"; /* CUpti_ActivityMemoryKind */
    add(&(struct record){.kind = OUR_COPY,
                         .begin = r->start,
                         .end = r->end,
                         .bytes = r->bytes,
                         .call = correlation,
                         .place = r->stream,
                         .device = (int32_t)r->device,
                         .from = r->source < sizeof places - 1 ? places[r->source] : ' ',
                         .to = r->target < sizeof places - 1 ? places[r->target] : ' '});
}

static void read_record(const void *record) {
    switch (*(const uint32_t *)record) {
        case KERNEL: {
            const struct kernel_record *r = record;
            struct record ours = {.kind = OUR_KERNEL,
                                  .begin = r->start,
                                  .end = r->end,
                                  .name = names_keep(&names, r->name ? r->name : ""),
                                  .call = r->correlation,
                                  .place = r->stream,
                                  .device = (int32_t)r->device,
                                  .shared = (uint32_t)r->dynamic_shared};
            for (int i = 0; i < 3; i++) {
                ours.grid[i] = (uint32_t)r->grid[i];
                ours.block[i] = (uint32_t)r->block[i];
            }
            add(&ours);
            break;
        }
        case COPY: add_copy(record, ((const struct copy_record *)record)->correlation); break;
        case PEER_COPY: add_copy(record, ((const struct peer_copy_record *)record)->correlation); break;
        case FILL: {
            const struct fill_record *r = record;
            add(&(struct record){.kind = OUR_FILL,
                                 .begin = r->start,
                                 .end = r->end,
                                 .bytes = r->bytes,
                                 .call = r->correlation,
                                 .place = r->stream,
                                 .device = (int32_t)r->device});
            break;
        }
        case DRIVER:
        case RUNTIME: {
            const struct call_record *r = record;
            add(&(struct record){.kind = OUR_CALL,
                                 .begin = r->start,
                                 .end = r->end,
                                 .call = r->correlation,
                                 .place = r->thread,
                                 .device = -1,
                                 .status = r->status,
                                 .function = r->function,
                                 .is_runtime = r->kind == RUNTIME});
            break;
        }
        case MEMORY: {
            const struct memory_record *r = record;
            if (r->operation != 1 && r->operation != 2) break;
            add(&(struct record){.kind = r->operation == 1 ? OUR_ALLOCATE : OUR_FREE,
                                 .begin = r->time,
                                 .end = r->time,
                                 .bytes = r->bytes,
                                 .call = r->correlation,
                                 .place = r->stream,
                                 .device = (int32_t)r->device});
            break;
        }
        default: break;
    }
}

static void buffer_wanted(uint8_t **buffer, size_t *size, size_t *most) {
    *buffer = aligned_alloc(ALIGNMENT, BUFFER);
    *size = *buffer ? BUFFER : 0;
    *most = 0;
}

static void buffer_full(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) {
    void *record = NULL;
    size_t missing = 0;
    (void)size;
    pthread_mutex_lock(&lock);
    while (cupti.next(buffer, valid, &record) == SUCCESS) read_record(record);
    if (cupti.dropped(context, stream, &missing) == SUCCESS) lost += missing;
    pthread_mutex_unlock(&lock);
    free(buffer);
}

static PyObject *failed(const char *what, int status) {
    const char *text = NULL;
    if (cupti.result_string(status, &text) || !text) text = "unknown";
    return PyErr_Format(PyExc_RuntimeError,
                        "CUPTI cannot record a timeline: %s gives %s (%d). Another profiler may have it, or the "
                        "driver may keep it for administrators",
                        what, text, status);
}

static PyObject *load(PyObject *self, PyObject *arguments) {
    const char *path;
    uint32_t version = 0;
    (void)self;
    if (!PyArg_ParseTuple(arguments, "s:load", &path)) return NULL;
    if (!cupti.version) {
        void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (!library) return PyErr_Format(PyExc_RuntimeError, "CUPTI cannot be loaded: %s", dlerror());
        for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
            void *symbol = dlsym(library, symbols[i].name);
            if (!symbol) {
                memset(&cupti, 0, sizeof cupti);
                return PyErr_Format(PyExc_RuntimeError, "%s has no %s: CUPTI of CUDA 12 or later is needed", path,
                                    symbols[i].name);
            }
            memcpy((char *)&cupti + symbols[i].place, &symbol, sizeof symbol);
        }
    }
    if (cupti.version(&version)) version = 0;
    return PyLong_FromUnsignedLong(version);
}

static PyObject *begin(PyObject *self, PyObject *arguments) {
    unsigned long long most;
    (void)self;
    if (!PyArg_ParseTuple(arguments, "K:begin", &most)) return NULL;
    if (!cupti.version) return PyErr_Format(PyExc_RuntimeError, "load CUPTI first");
    pthread_mutex_lock(&lock);
    count = lost = 0;
    limit = (size_t)most;
    pthread_mutex_unlock(&lock);
    int status = cupti.register_clock(clock_now);
    if (status) return failed("cuptiActivityRegisterTimestampCallback", status);
    status = cupti.register_callbacks(buffer_wanted, buffer_full);
    if (status) return failed("cuptiActivityRegisterCallbacks", status);
    (void)cupti.thread_type(SYSTEM_THREADS); /* older libraries number threads otherwise */
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        status = cupti.enable(kinds[i]);
        if (!status) continue;
        while (i--) (void)cupti.disable(kinds[i]);
        return failed("cuptiActivityEnable", status);
    }
    Py_RETURN_NONE;
}

/* The names of calls are the library's, which stays loaded. */
static void name_calls(void) {
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < count; i++) {
        struct record *r = &records[i];
        int domain = r->is_runtime ? RUNTIME_API : DRIVER_API;
        if (r->kind == OUR_CALL && (cupti.callback_name(domain, r->function, &r->name) || !r->name)) r->name = "call";
    }
    pthread_mutex_unlock(&lock);
}

static PyObject *take(PyObject *self, PyObject *none) {
    (void)self, (void)none;
    if (!cupti.version) return PyErr_Format(PyExc_RuntimeError, "load CUPTI first");
    Py_BEGIN_ALLOW_THREADS
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) (void)cupti.disable(kinds[i]);
    (void)cupti.flush(FLUSH_FORCED);
    name_calls();
    (void)cupti.finalize(); /* else each call goes on to cost more than before; the next one sets all up again */
    Py_END_ALLOW_THREADS
    pthread_mutex_lock(&lock);
    struct record *taken = records;
    size_t many = count, missing = lost;
    records = NULL;
    count = room = lost = limit = 0;
    pthread_mutex_unlock(&lock);
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < many; i++) {
        const struct record *r = &taken[i];
        PyObject *each =
            Py_BuildValue("(iKKIIKis(III)(III)IiICC)", r->kind, (unsigned long long)r->begin,
                          (unsigned long long)r->end, r->call, r->place, (unsigned long long)r->bytes, 0,
                          r->name ? r->name : "", r->grid[0], r->grid[1], r->grid[2], r->block[0], r->block[1],
                          r->block[2], r->shared, r->device, r->status, r->from ? r->from : ' ', r->to ? r->to : ' ');
        if (!each || PyList_Append(list, each)) Py_CLEAR(list);
        Py_XDECREF(each);
    }
    free(taken);
    return list ? Py_BuildValue("(Nn)", list, (Py_ssize_t)missing) : NULL;
}

static PyMethodDef methods[] = {
    {"load", load, METH_VARARGS, PyDoc_STR("load(path: str) -> int\n\nLoad the library, once; returns its version.")},
    {"begin", begin, METH_VARARGS,
     PyDoc_STR("begin(most: int) -> None\n\nRecord at most so many calls and operations.")},
    {"take", take, METH_NOARGS,
     PyDoc_STR(
         "take() -> tuple[list, int]\n\nEnd it: the records, as those of the CPU device, and how many were lost.")},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {
#ifdef Py_mod_gil
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_cupti_records", "Timelines of GPUs.", 0, methods, slots, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__cupti_records(void) { return PyModuleDef_Init(&module); }
