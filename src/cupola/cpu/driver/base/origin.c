/* Lines of Python, and leaks: memory that was allocated, registered, mapped or reserved while something was checked, with the
 * line that did it.
 *
 * Leaks are told when Python has ended: until then, objects that are still there may free what they have. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "origin.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/checks/above.h"
#include "engine/memory/memory.h"

enum { BUCKETS = 1024 };

/* ---- lines ---------------------------------------------------------------------------------------------------------- */

struct line {
    struct cpu_origin origin;
    struct line *next;
};

struct allocation {
    enum origin_kind kind;
    uint64_t base;
    size_t size;
    const char *call;
    const struct cpu_origin *origin; /* NULL: not known */
    bool is_freed;
    struct allocation *next;
};

static struct line *lines[BUCKETS];
static struct allocation *allocations[BUCKETS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static const struct cpu_origin *intern(const char *file, int number) {
    uint32_t hash = (uint32_t)number;
    for (const char *c = file; *c; c++) hash = hash * 31 + (unsigned char)*c;
    struct line **bucket = &lines[hash % BUCKETS];
    pthread_mutex_lock(&lock);
    struct line *line = *bucket;
    while (line && (line->origin.line != number || strcmp(line->origin.file, file))) line = line->next;
    if (!line && (line = malloc(sizeof *line))) {
        *line = (struct line){{strdup(file), number}, *bucket};
        if (line->origin.file) {
            *bucket = line;
        } else {
            free(line);
            line = NULL;
        }
    }
    pthread_mutex_unlock(&lock);
    return line ? &line->origin : NULL;
}

static char folder[1024];
const char *origin_folder(void) { return folder; }

const char *origin_find_folder(void) {
    if (*folder) return folder;
    PyObject *module = PyImport_ImportModule("cupola"),
             *file = module ? PyObject_GetAttrString(module, "__file__") : NULL;
    const char *path = file ? PyUnicode_AsUTF8(file) : NULL;
    const char *end = path ? strrchr(path, '/') : NULL;
    if (end && (size_t)(end - path) + 2 < sizeof folder)
        snprintf(folder, sizeof folder, "%.*s/", (int)(end - path), path);
    PyErr_Clear();
    Py_XDECREF(file);
    Py_XDECREF(module);
    return folder;
}

/* Packages that the program has not written itself. */
static bool is_installed(const char *file) {
    return strstr(file, "/site-packages/") || strstr(file, "/dist-packages/");
}

/* Packages that launch kernels for others: of a launch by one of these, the line that has called it is the program's. */
bool origin_is_between(const char *file) {
    static const char *const packages[] = {"triton/",     "torch/", "cuda/",   "cupy/",   "numba/",
                                           "numba_cuda/", "jax/",   "jaxlib/", "nvmath/", "warp/"};
    const char *installed = strstr(file, "-packages/"); /* site-packages, dist-packages */
    if (!installed) return false;
    installed += sizeof "-packages/" - 1;
    for (size_t i = 0; i < sizeof packages / sizeof *packages; i++)
        if (!strncmp(installed, packages[i], strlen(packages[i]))) return true;
    return false;
}

/* The innermost line that is not of cupola; if there is one, of the program and not of a package, or else of no package
 * that launches for others. */
static const struct cpu_origin *find_line(bool of_program) {
    if (!Py_IsInitialized() || !PyGILState_GetThisThreadState()) return NULL; /* a thread that runs no Python */
    const struct cpu_origin *found = NULL, *installed = NULL;
    PyGILState_STATE gil = PyGILState_Ensure();
    const char *own = origin_find_folder();
    PyFrameObject *frame = PyThreadState_GetFrame(PyThreadState_Get());
    while (frame && !found) {
        PyCodeObject *code = PyFrame_GetCode(frame);
        const char *file = PyUnicode_AsUTF8(code->co_filename);
        if (!file) PyErr_Clear();
        const bool is_ours = file && *own && !strncmp(file, own, strlen(own));
        const bool is_passed = file && (of_program ? is_installed(file) : origin_is_between(file));
        if (file && !is_ours && !is_passed) found = intern(file, PyFrame_GetLineNumber(frame));
        else if (file && !is_ours && !installed) installed = intern(file, PyFrame_GetLineNumber(frame));
        Py_DECREF(code);
        PyFrameObject *back = PyFrame_GetBack(frame);
        Py_DECREF(frame);
        frame = back;
    }
    Py_XDECREF(frame);
    PyGILState_Release(gil);
    return found ? found : installed;
}

const struct cpu_origin *origin_here(void) { return find_line(false); }
const struct cpu_origin *cpu_host_origin(void) { return find_line(true); }

/* ---- allocations ---------------------------------------------------------------------------------------------------- */

static struct allocation **bucket_of(uint64_t base) { return &allocations[(base >> 8) % BUCKETS]; }

/* With the lock. */
static struct allocation *find(enum origin_kind kind, uint64_t base) {
    struct allocation *allocation = *bucket_of(base);
    while (allocation && (allocation->base != base || allocation->kind != kind)) allocation = allocation->next;
    return allocation;
}

void origin_begun(enum origin_kind kind, uint64_t base, size_t size, const char *call) {
    if (!base) return;
    const struct cpu_origin *origin = origin_here();
    pthread_mutex_lock(&lock);
    struct allocation *allocation = find(kind, base), **bucket = bucket_of(base);
    if (!allocation && (allocation = malloc(sizeof *allocation))) {
        allocation->next = *bucket;
        *bucket = allocation;
    }
    if (allocation) *allocation = (struct allocation){kind, base, size, call, origin, false, allocation->next};
    pthread_mutex_unlock(&lock);
}

void origin_ended(enum origin_kind kind, uint64_t base) {
    pthread_mutex_lock(&lock);
    struct allocation *allocation = find(kind, base);
    if (allocation) allocation->is_freed = true;
    pthread_mutex_unlock(&lock);
}

/* ---- the end of the process ------------------------------------------------------------------------------------------- */

static const struct {
    const char *noun, *begun, *ended, *advice;
} words[] = {
    [ORIGIN_ALLOCATED] = {"allocation", "allocated", "freed", "free it, or close the buffer"},
    [ORIGIN_OF_GRAPH] = {"allocation", "allocated", "freed",
                         "free it, by a node of the graph that allocates it, of another one, or by cuMemFree"},
    [ORIGIN_REGISTERED] = {"registration", "registered", "unregistered", "call cuMemHostUnregister"},
    [ORIGIN_MAPPED] = {"mapping", "mapped", "unmapped", "call cuMemUnmap, or close the buffer"},
    [ORIGIN_CREATED] = {"handle", "made", "released", "call cuMemRelease, which may be done as soon as it is mapped"},
    [ORIGIN_RESERVED] = {"reservation", "reserved", "freed", "call cuMemAddressFree, or close the buffer"},
};

struct leak {
    enum origin_kind kind;
    const struct cpu_origin *origin;
    const char *call;
    size_t count, bytes;
};

/* Without quotes and backslashes, which names of files hardly have. */
static void put_name(FILE *file, const char *name) {
    for (; *name; name++) fputc(*name == '"' || *name == '\\' || (unsigned char)*name < ' ' ? '?' : *name, file);
}

static void tell(const struct leak *leak, int number) {
    const char *path = getenv("CUPOLA_FINDINGS");
    FILE *log = path && *path ? fopen(path, "ae") : NULL;
    const char *plural = leak->count > 1 ? "s" : "";
    if (!log) {
        fprintf(stderr, "cupola: leak: %zu bytes in %zu %s%s by %s were never %s", leak->bytes, leak->count,
                words[leak->kind].noun, plural, leak->call, words[leak->kind].ended);
        if (leak->origin)
            fprintf(stderr, "\n  %s at %s:%d", words[leak->kind].begun, leak->origin->file, leak->origin->line);
        fputc('\n', stderr);
        return;
    }
    fprintf(log,
            "{\"kind\": \"leak\", \"kernel\": \"\", \"summary\": \"%zu bytes in %zu %s%s by %s were never %s\", "
            "\"places\": [], \"details\": [",
            leak->bytes, leak->count, words[leak->kind].noun, plural, leak->call, words[leak->kind].ended);
    if (leak->origin) {
        fprintf(log, "\"%s at ", words[leak->kind].begun);
        put_name(log, leak->origin->file);
        fprintf(log, ":%d\"", leak->origin->line);
    }
    fprintf(log,
            "], \"launched\": \"\", \"advice\": \"%s, before the program ends\", \"count\": %zu, "
            "\"silenced\": null, \"number\": %d, \"process\": %d, \"taken\": false}\n",
            words[leak->kind].advice, leak->count, -number, (int)getpid());
    fclose(log);
}

/* Whether it is there still. What a context had goes with it, and memory of a graph's node is there from a launch on until
 * something frees it; the table of allocations knows. */
static bool is_there(const struct allocation *a) {
    cpu_allocation found;
    if (a->kind != ORIGIN_OF_GRAPH && a->is_freed) return false;
    if (a->kind > ORIGIN_REGISTERED) return true;
    return cpu_memory_find(a->base, &found) && found.base == a->base && !found.freeing;
}

/* All from one line by one function are one leak. */
static size_t collect(struct leak *leaks, size_t room) {
    size_t count = 0;
    for (size_t i = 0; i < BUCKETS; i++)
        for (const struct allocation *a = allocations[i]; a; a = a->next) {
            if (!is_there(a)) continue;
            size_t k = 0;
            while (k < count && (leaks[k].origin != a->origin || strcmp(leaks[k].call, a->call))) k++;
            if (k == room) continue;
            if (k == count) leaks[count++] = (struct leak){a->kind, a->origin, a->call, 0, 0};
            leaks[k].count++;
            leaks[k].bytes += a->size;
        }
    return count;
}

static pid_t watched;

static void tell_leaks(int status, void *unused) {
    struct leak leaks[64];
    (void)unused;
    if (!checks(CHECK_LEAK) || watched != getpid()) return; /* a child of fork() has its parent's */
    pthread_mutex_lock(&lock);
    const size_t count = collect(leaks, sizeof leaks / sizeof *leaks);
    pthread_mutex_unlock(&lock);
    for (size_t i = 0; i < count; i++) tell(&leaks[i], (int)i + 1);
    if (!count || status) return;
    fflush(NULL);
    _exit(1);
}

void origin_watch_end(void) {
    if (watched == getpid()) return;
    watched = getpid();
    (void)on_exit(tell_leaks, NULL);
}
