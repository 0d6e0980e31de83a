/* Which line of Python calls the driver. Each launch notes it, so that takes a few nanoseconds: no reference is taken, and no
 * line is looked up. cupola.cpu.reports.callers finds the code by its address among that which the program has, when a
 * fault is told.
 *
 * Frames are the interpreter's own records, which only their thread changes; they differ between versions of Python. */
#define PY_SSIZE_T_CLEAN
#define Py_BUILD_CORE_MODULE 1
#include <Python.h>

#include "caller.h"
#include "origin.h"

#include <stdatomic.h>
#include <string.h>

#if PY_VERSION_HEX < 0x030E0000 && !defined(Py_GIL_DISABLED)
#include <internal/pycore_frame.h>

#if PY_VERSION_HEX < 0x030D0000
#define INNERMOST(STATE) ((STATE)->cframe->current_frame)
#define CODE(FRAME) ((const PyObject *)(FRAME)->f_code)
#define AT(FRAME) ((FRAME)->prev_instr)
#else
#define INNERMOST(STATE) ((STATE)->current_frame)
#define CODE(FRAME) ((const PyObject *)(FRAME)->f_executable)
#define AT(FRAME) ((FRAME)->instr_ptr)
#endif

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

static void note(cpu_caller *caller, const _PyInterpreterFrame *frame) {
    caller->code = CODE(frame);
    caller->offset =
        (uint32_t)((const char *)AT(frame) - (const char *)_PyCode_CODE((const PyCodeObject *)caller->code));
}

void caller_note(cpu_caller *caller) {
    const PyThreadState *state = PyGILState_GetThisThreadState();
    if (!state) return;
    bool is_noted = false;
    int left = MOST_FRAMES;
    for (const _PyInterpreterFrame *frame = INNERMOST(state); frame && left; frame = frame->previous, left--) {
        const PyObject *code = CODE(frame);
        const unsigned of = code && PyCode_Check(code) ? whose((const PyCodeObject *)code) : OURS;
        if (of == OURS || (of == BETWEEN && is_noted)) continue;
        note(caller, frame);
        if (of != BETWEEN) return;
        is_noted = true; /* the innermost one, if there is no line of the program */
    }
}
#else
void caller_note(cpu_caller *caller) { (void)caller; }
#endif
