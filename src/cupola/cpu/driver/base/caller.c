/* Which line of Python calls the driver. Each launch, allocation and free notes it, so that takes a few nanoseconds: places in
 * code are numbered, and the line of each is looked up once. The code is kept, so its address stays its own.
 *
 * Frames are the interpreter's own records, which differ between versions of Python. Where their layout is known, they
 * are read in place, also without the GIL, since only their thread changes them; elsewhere they are asked for. */
#define PY_SSIZE_T_CLEAN
#define Py_BUILD_CORE_MODULE 1
#include <Python.h>

#include "caller.h"
#include "engine/above.h"
#include "origin.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

/* ---- places ----------------------------------------------------------------------------------------------------------- */

enum { PLACES = 1 << 15, MOST_PLACES = PLACES / 4 * 3 }; /* what comes then has no number */

static struct place {
    _Atomic(PyObject *) code; /* written last; NULL: free */
    uint32_t offset;          /* of an instruction, in bytes */
    struct cpu_origin origin;
} places[PLACES];
static uint32_t place_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of who adds a place; within it nobody waits for the GIL */

/* The place, or the free one where it goes. */
static struct place *find(const PyObject *code, uint32_t offset) {
    uint64_t hash = ((uint64_t)(uintptr_t)code >> 4 ^ (uint64_t)offset << 32) * UINT64_C(0x9e3779b97f4a7c15);
    for (uint32_t i = (uint32_t)(hash >> 49);; i = (i + 1) % PLACES) {
        const PyObject *there = atomic_load_explicit(&places[i].code, memory_order_acquire);
        if (!there || (there == code && places[i].offset == offset)) return &places[i];
    }
}

/* Cold: once for each place. Without locks held. */
static uint32_t add(PyObject *code, uint32_t offset) {
    PyGILState_STATE gil = PyGILState_Ensure();
    pthread_mutex_lock(&lock);
    struct place *place = find(code, offset);
    const bool is_new = !atomic_load_explicit(&place->code, memory_order_relaxed), fits = place_count < MOST_PLACES;
    if (is_new && fits) {
        const PyCodeObject *of = (const PyCodeObject *)code;
        const int line = PyCode_Addr2Line((PyCodeObject *)code, (int)offset);
        const char *file = PyUnicode_AsUTF8(of->co_filename); /* which is the code's own */
        if (!file) PyErr_Clear();
        place->origin = (struct cpu_origin){file ? file : "?", line > 0 ? line : of->co_firstlineno};
        place->offset = offset;
        place_count++;
        atomic_store_explicit(&place->code, Py_NewRef(code), memory_order_release);
    }
    pthread_mutex_unlock(&lock);
    PyGILState_Release(gil);
    return is_new && !fits ? 0 : (uint32_t)(place - places) + 1;
}

static uint32_t number_of(PyObject *code, uint32_t offset) {
    const struct place *place = find(code, offset);
    if (unlikely(!atomic_load_explicit(&place->code, memory_order_relaxed))) return add(code, offset);
    return (uint32_t)(place - places) + 1;
}

const struct cpu_origin *cpu_driver_origin(uint32_t number) {
    if (!number || number > PLACES) return NULL;
    const struct place *place = &places[number - 1];
    return atomic_load_explicit(&place->code, memory_order_acquire) ? &place->origin : NULL;
}

/* ---- whose code it is --------------------------------------------------------------------------------------------------- */

enum { KNOWN = 256, MOST_FRAMES = 64 };

/* Whose a file is: of cupola, of a package that launches kernels for others, or neither. */
enum { OURS = 1, BETWEEN = 2, WHOSE = 3 };

/* Files that were looked at: the address of the name, and in its lowest bits whose the file is. */
static _Atomic uintptr_t known[KNOWN];

static unsigned look(const PyObject *file) {
    const char *folder = origin_folder(), *name = (const char *)((const PyASCIIObject *)file + 1);
    if (!PyUnicode_IS_COMPACT_ASCII(file)) return 0;
    if (*folder && !strncmp(name, folder, strlen(folder))) return OURS;
    return origin_is_between(name) ? BETWEEN : 0;
}

static unsigned whose(const PyCodeObject *code) {
    const uintptr_t file = (uintptr_t)code->co_filename;
    _Atomic uintptr_t *place = &known[(file >> 4) % KNOWN];
    const uintptr_t before = atomic_load_explicit(place, memory_order_relaxed);
    if ((before & ~(uintptr_t)WHOSE) == file) return before & WHOSE;
    const unsigned result = look(code->co_filename);
    atomic_store_explicit(place, file | result, memory_order_relaxed);
    return result;
}

/* ---- frames ------------------------------------------------------------------------------------------------------------ */

/* By the functions that every version of Python has. */
uint32_t caller_ask(void) {
    if (!Py_IsInitialized() || !PyGILState_GetThisThreadState()) return 0; /* a thread that runs no Python */
    PyGILState_STATE gil = PyGILState_Ensure();
    PyFrameObject *frame = PyThreadState_GetFrame(PyThreadState_Get());
    uint32_t found = 0;
    bool is_found = false;
    for (int left = MOST_FRAMES; frame && left && !is_found; left--) {
        PyCodeObject *code = PyFrame_GetCode(frame);
        const unsigned of = whose(code);
        if (of != OURS && (of != BETWEEN || !found)) {
            const int offset = PyFrame_GetLasti(frame);
            found = number_of((PyObject *)code, offset > 0 ? (uint32_t)offset : 0);
            is_found = of != BETWEEN; /* else it is the innermost one, if there is no line of the program */
        }
        Py_DECREF(code);
        PyFrameObject *back = PyFrame_GetBack(frame);
        Py_DECREF(frame);
        frame = back;
    }
    Py_XDECREF(frame);
    PyGILState_Release(gil);
    return found;
}

#if PY_VERSION_HEX < 0x030E0000 && !defined(Py_GIL_DISABLED)
#include <internal/pycore_frame.h>

#if PY_VERSION_HEX < 0x030D0000
#define INNERMOST(STATE) ((STATE)->cframe->current_frame)
#define CODE(FRAME) ((PyObject *)(FRAME)->f_code)
#define AT(FRAME) ((FRAME)->prev_instr)
#else
#define INNERMOST(STATE) ((STATE)->current_frame)
#define CODE(FRAME) ((PyObject *)(FRAME)->f_executable)
#define AT(FRAME) ((FRAME)->instr_ptr)
#endif

static uint32_t number_of_frame(const _PyInterpreterFrame *frame) {
    PyObject *code = CODE(frame);
    const ptrdiff_t offset = (const char *)AT(frame) - (const char *)_PyCode_CODE((const PyCodeObject *)code);
    return number_of(code, offset > 0 ? (uint32_t)offset : 0);
}

uint32_t caller_here(void) {
    const PyThreadState *state = PyGILState_GetThisThreadState();
    if (!state) return 0;
    const _PyInterpreterFrame *between = NULL; /* the innermost one, if there is no line of the program */
    int left = MOST_FRAMES;
    for (const _PyInterpreterFrame *frame = INNERMOST(state); frame && left; frame = frame->previous, left--) {
        const PyObject *code = CODE(frame);
        const unsigned of = code && PyCode_Check(code) ? whose((const PyCodeObject *)code) : OURS;
        if (!of) return number_of_frame(frame);
        if (of == BETWEEN && !between) between = frame;
    }
    return between ? number_of_frame(between) : 0;
}
#else
uint32_t caller_here(void) { return caller_ask(); }
#endif
