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

/* Files that are known to be of cupola, or not: the address of the name, and in bit 0 whether it is. */
static _Atomic uintptr_t known[KNOWN];

static bool look(const PyObject *file) {
    const char *folder = origin_folder();
    return *folder && PyUnicode_IS_COMPACT_ASCII(file) &&
           !strncmp((const char *)((const PyASCIIObject *)file + 1), folder, strlen(folder));
}

static bool is_ours(const PyCodeObject *code) {
    const uintptr_t file = (uintptr_t)code->co_filename;
    _Atomic uintptr_t *place = &known[(file >> 4) % KNOWN];
    const uintptr_t before = atomic_load_explicit(place, memory_order_relaxed);
    if ((before & ~(uintptr_t)1) == file) return before & 1;
    const bool result = look(code->co_filename);
    atomic_store_explicit(place, file | result, memory_order_relaxed);
    return result;
}

void caller_note(cpu_caller *caller) {
    const PyThreadState *state = PyGILState_GetThisThreadState();
    if (!state) return;
    int left = MOST_FRAMES;
    for (const _PyInterpreterFrame *frame = INNERMOST(state); frame && left; frame = frame->previous, left--) {
        const PyObject *code = CODE(frame);
        if (!code || !PyCode_Check(code) || is_ours((const PyCodeObject *)code)) continue;
        caller->code = code;
        caller->offset = (uint32_t)((const char *)AT(frame) - (const char *)_PyCode_CODE((const PyCodeObject *)code));
        return;
    }
}
#else
void caller_note(cpu_caller *caller) { (void)caller; }
#endif
