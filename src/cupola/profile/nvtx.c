/* Named ranges of other libraries.
 *
 * NVTX, with which libraries name their ranges, is headers only: at its first call it loads the library that
 * NVTX_INJECTION64_PATH names, and calls its InitializeInjectionNvtx2 (NVTX's nvtxInit.h, nvtxTypes.h). This module is that
 * library: it puts its functions in NVTX's tables and notes the times. Python reads them by take().
 *
 * A thread's open ranges are followed always, so that those that were begun before a timeline are known in it. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <wchar.h>

#include "common/common.h"
#include "growing.h"

enum { DEPTH = 64, MOST = 1000000, OPEN = 4096 };
enum { MODULE_CORE = 1, MODULE_CORE2 = 5, TABLE_CALLBACKS = 1 };
enum { TEXT_ASCII = 1, TEXT_WIDE = 2, TEXT_REGISTERED = 3 };

struct attributes { /* nvtxEventAttributes_t */
    uint16_t version, size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type, reserved;
    uint64_t payload;
    int32_t message_type;
    const void *message;
};

struct range {
    char *name; /* owned by the record it becomes */
    uint64_t begin, end, thread, id;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct range *done;
static size_t count, room, lost;
static bool on;
static struct range opened[OPEN]; /* by nvtxRangeStart; `id` 0: free */
static uint64_t next_id = 1;

static _Thread_local struct range stack[DEPTH];
static _Thread_local int depth;

static uint64_t this_thread(void) {
    static _Thread_local uint64_t number;
    if (!number) number = (uint64_t)syscall(SYS_gettid);
    return number;
}

static char *of_wide(const wchar_t *text) {
    size_t length = wcslen(text);
    char *utf8 = malloc(4 * length + 1), *out = utf8;
    for (size_t i = 0; utf8 && i < length; i++) {
        uint32_t c = (uint32_t)text[i];
        if (c < 0x80) *out++ = (char)c;
        else if (c < 0x800) {
            *out++ = (char)(0xc0 | c >> 6);
            *out++ = (char)(0x80 | (c & 0x3f));
        } else if (c < 0x10000) {
            *out++ = (char)(0xe0 | c >> 12);
            *out++ = (char)(0x80 | (c >> 6 & 0x3f));
            *out++ = (char)(0x80 | (c & 0x3f));
        } else {
            *out++ = (char)(0xf0 | (c >> 18 & 7));
            *out++ = (char)(0x80 | (c >> 12 & 0x3f));
            *out++ = (char)(0x80 | (c >> 6 & 0x3f));
            *out++ = (char)(0x80 | (c & 0x3f));
        }
    }
    if (utf8) *out = 0;
    return utf8;
}

/* Strings and domains that are registered stay: their handles are their texts. */
static char *of_attributes(const struct attributes *a) {
    if (!a || !a->message) return strdup("");
    switch (a->message_type) {
        case TEXT_ASCII:
        case TEXT_REGISTERED: return strdup(a->message);
        case TEXT_WIDE: return of_wide(a->message);
        default: return strdup("");
    }
}

static void add(struct range range) {
    pthread_mutex_lock(&lock);
    bool fits = on && count < MOST && room_for_one((void **)&done, count, &room, sizeof *done);
    if (fits) done[count++] = range;
    else lost += on;
    pthread_mutex_unlock(&lock);
    if (!fits) free(range.name);
}

static void mark(char *name) {
    uint64_t t = clock_now();
    if (name) add((struct range){.name = name, .begin = t, .end = t, .thread = this_thread()});
}

static int push(char *name) {
    if (depth < DEPTH) stack[depth] = (struct range){.name = name, .begin = clock_now(), .thread = this_thread()};
    else free(name);
    return depth++;
}

static int pop(void) {
    if (!depth) return -2; /* NVTX_NO_PUSH_POP_TRACKING would be -2: there is nothing to end */
    if (--depth < DEPTH && stack[depth].name) {
        stack[depth].end = clock_now();
        add(stack[depth]);
    }
    return depth;
}

static uint64_t start(char *name) {
    struct range range = {.name = name, .begin = clock_now(), .thread = this_thread()};
    pthread_mutex_lock(&lock);
    uint64_t id = range.id = next_id++;
    struct range *place = &opened[id % OPEN];
    char *before = place->id ? place->name : NULL; /* one that was never ended */
    *place = range;
    pthread_mutex_unlock(&lock);
    free(before);
    return id;
}

static void end(uint64_t id) {
    pthread_mutex_lock(&lock);
    struct range range = opened[id % OPEN];
    bool is_there = id && range.id == id;
    if (is_there) opened[id % OPEN] = (struct range){0};
    pthread_mutex_unlock(&lock);
    if (!is_there || !range.name) return;
    range.end = clock_now();
    add(range);
}

static char *copy(const char *text) { return strdup(text ? text : ""); }
static char *copy_wide(const wchar_t *text) { return text ? of_wide(text) : strdup(""); }

static void mark_ex(const struct attributes *a) { mark(of_attributes(a)); }
static void mark_a(const char *text) { mark(copy(text)); }
static void mark_w(const wchar_t *text) { mark(copy_wide(text)); }
static uint64_t start_ex(const struct attributes *a) { return start(of_attributes(a)); }
static uint64_t start_a(const char *text) { return start(copy(text)); }
static uint64_t start_w(const wchar_t *text) { return start(copy_wide(text)); }
static int push_ex(const struct attributes *a) { return push(of_attributes(a)); }
static int push_a(const char *text) { return push(copy(text)); }
static int push_w(const wchar_t *text) { return push(copy_wide(text)); }
static void domain_mark(const void *domain, const struct attributes *a) { (void)domain, mark_ex(a); }
static uint64_t domain_start(const void *domain, const struct attributes *a) { return (void)domain, start_ex(a); }
static void domain_end(const void *domain, uint64_t id) { (void)domain, end(id); }
static int domain_push(const void *domain, const struct attributes *a) { return (void)domain, push_ex(a); }
static int domain_pop(const void *domain) { return (void)domain, pop(); }
static char *register_a(const void *domain, const char *text) { return (void)domain, copy(text); }
static char *register_w(const void *domain, const wchar_t *text) { return (void)domain, copy_wide(text); }

typedef void (*function)(void);
#define F(name) ((function)(name))
/* By the numbers of NVTX_CBID_CORE_* and NVTX_CBID_CORE2_*. */
static const function core[] = {NULL,       F(mark_ex), F(mark_a),  F(mark_w), F(start_ex), F(start_a),
                                F(start_w), F(end),     F(push_ex), F(push_a), F(push_w),   F(pop)};
static const function core2[] = {
    NULL, F(domain_mark), F(domain_start), F(domain_end), F(domain_push), F(domain_pop), NULL, NULL,
    NULL, NULL,           F(register_a),   F(register_w), F(copy),        F(copy_wide)};

struct callbacks {
    size_t size;
    int (*table)(int module, function ***table, unsigned *size);
};

static void fill(const struct callbacks *callbacks, int module, const function *ours, unsigned many) {
    function **table;
    unsigned size;
    if (!callbacks->table(module, &table, &size)) return;
    for (unsigned i = 1; i < many && i < size; i++)
        if (ours[i] && table[i]) *table[i] = ours[i];
}

__attribute__((visibility("default"))) int InitializeInjectionNvtx2(const void *(*export_table)(uint32_t)) {
    const struct callbacks *callbacks = export_table(TABLE_CALLBACKS);
    if (!callbacks || callbacks->size < sizeof *callbacks) return 0;
    fill(callbacks, MODULE_CORE, core, sizeof core / sizeof *core);
    fill(callbacks, MODULE_CORE2, core2, sizeof core2 / sizeof *core2);
    return 1;
}

static PyObject *begin_ranges(PyObject *self, PyObject *none) {
    (void)self, (void)none;
    pthread_mutex_lock(&lock);
    on = true;
    lost = 0;
    pthread_mutex_unlock(&lock);
    Py_RETURN_NONE;
}

static PyObject *take_ranges(PyObject *self, PyObject *none) {
    (void)self, (void)none;
    pthread_mutex_lock(&lock);
    struct range *taken = done;
    size_t many = count, missing = lost;
    on = false;
    done = NULL;
    count = room = lost = 0;
    pthread_mutex_unlock(&lock);
    PyObject *list = PyList_New(0);
    for (size_t i = 0; i < many; i++) {
        PyObject *name =
            list ? PyUnicode_DecodeUTF8(taken[i].name, (Py_ssize_t)strlen(taken[i].name), "replace") : NULL;
        PyObject *each = name ? Py_BuildValue("(NKKK)", name, (unsigned long long)taken[i].begin,
                                              (unsigned long long)taken[i].end, (unsigned long long)taken[i].thread)
                              : NULL;
        if (list && (!each || PyList_Append(list, each))) Py_CLEAR(list);
        Py_XDECREF(each);
        free(taken[i].name);
    }
    free(taken);
    return list ? Py_BuildValue("(Nn)", list, (Py_ssize_t)missing) : NULL;
}

static PyMethodDef methods[] = {
    {"begin", begin_ranges, METH_NOARGS, PyDoc_STR("begin() -> None\n\nNote ranges from now on.")},
    {"take", take_ranges, METH_NOARGS,
     PyDoc_STR(
         "take() -> tuple[list[tuple[str, int, int, int]], int]\n\nEnd it: name, begin, end and thread of each, and "
         "how many were lost.")},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {
#ifdef Py_mod_gil
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_nvtx", "Named ranges of other libraries.", 0, methods, slots, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__nvtx(void) { return PyModuleDef_Init(&module); }
