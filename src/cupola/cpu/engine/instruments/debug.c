/* Threads that stop at lines, and the debugger that looks at them (compiler/emit/instruments/debug.py).
 *
 * Code for a debugger comes here at each line, with the warp's threads that run it. `stops` of the variant says at which
 * lines to stop; Python changes it at any time. A thread that stops calls Python, on the thread of the launch, and goes on
 * when that returns. One stops at a time. The registers of a warp are in its frame, since only the independent body runs,
 * where all of them have a place. A launch for a debugger has one worker, so blocks run one after the other, and the warps
 * of a block in turn: the others have not begun, have ended, or wait, and stay as they are. */
#define PY_SSIZE_T_CLEAN
#include "debug.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "common/common.h"
#include "engine/above.h"
#include "engine/memory/memory.h"
#include "engine/schedule/schedule.h"

enum reason { AT_LINE, FAULTED, LAUNCH_OVER };
enum answer { GO_ON = -1, END_LAUNCH = -2, AS_BEFORE = -3 }; /* or the thread to follow */

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static PyObject *asked; /* with the GIL */
static _Atomic bool interrupted;

/* Whose next line is a stop, too. */
static _Atomic(const cpu_warp *) followed;
static _Atomic uint32_t followed_lane;
static uint32_t followed_block[3];
static uint64_t followed_grid;

/* With the GIL: who is stopped. */
static cpu_context *stopped;
static cpu_warp *stopped_warp;

static void follow(const cpu_context *context, long thread) {
    const cpu_block *block = context->block;
    atomic_store(&followed, NULL);
    if (thread < 0 || !block || (unsigned long)thread / CPU_WARP_THREADS >= block->warp_count) return;
    memcpy(followed_block, block->ctaid, sizeof followed_block);
    followed_grid = context->grid_id;
    atomic_store(&followed_lane, (uint32_t)thread % CPU_WARP_THREADS);
    atomic_store(&followed, &block->warps[thread / CPU_WARP_THREADS]);
}

static PyObject *facts(const cpu_context *context, const cpu_warp *warp, uint32_t lanes, uint32_t number, int reason) {
    const cpu_launch *launch = context->job->launch;
    const uint32_t *at = context->ctaid, *grid = launch->grid, *block = launch->block;
    const struct cpu_origin *origin = launch->origin;
    return Py_BuildValue("(iOIIIK(III)(III)(III)zi)", reason, launch->variant->object, number, lanes,
                         warp ? warp->first : 0, (unsigned long long)context->grid_id, at[0], at[1], at[2], grid[0],
                         grid[1], grid[2], block[0], block[1], block[2], origin ? origin->file : NULL,
                         origin ? origin->line : 0);
}

static void ask(cpu_context *context, cpu_warp *warp, uint32_t lanes, uint32_t number, int reason) {
    if (!Py_IsInitialized()) return;
    void *paused = cpu_guard_pause();
    const int before = cpu_driver_forbid(1);
    const uint64_t left = cpu_stop_pause(context->job);
    pthread_mutex_lock(&turn);
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    long answer = GO_ON;
    if (asked) {
        PyObject *callback = Py_NewRef(asked), *said = NULL;
        PyObject *arguments = facts(context, warp, lanes, number, reason);
        stopped = context;
        stopped_warp = warp;
        if (arguments) said = PyObject_Call(callback, arguments, NULL);
        stopped = NULL;
        if (said) answer = PyLong_AsLong(said);
        if (PyErr_Occurred()) {
            PyErr_WriteUnraisable(callback);
            answer = GO_ON;
        }
        Py_XDECREF(said);
        Py_XDECREF(arguments);
        Py_DECREF(callback);
    }
    if (reason == AT_LINE && answer != AS_BEFORE) follow(context, answer);
    PyErr_Restore(type, value, traceback);
    PyGILState_Release(gil);
    pthread_mutex_unlock(&turn);
    cpu_stop_resume(context->job, left);
    if (answer == END_LAUNCH) cpu_stop_by_debugger(context->job);
    cpu_driver_forbid(before);
    cpu_guard_resume(paused);
}

static bool is_followed(const cpu_context *context, const cpu_warp *warp, uint32_t lanes) {
    if (atomic_load_explicit(&followed, memory_order_relaxed) != warp) return false;
    if (!(lanes >> atomic_load_explicit(&followed_lane, memory_order_relaxed) & 1)) return false;
    return followed_grid == context->grid_id && !memcmp(followed_block, context->ctaid, sizeof followed_block);
}

/* Threads of a warp come to a line. `record` has the line of each lane, in the frame, which may be read here. */
CPU_HELPER void cupola_debug_line(cpu_context *context, cpu_warp *warp, uint32_t lanes, uint32_t number,
                                  uint32_t *record) {
    cpu_variant *variant = (cpu_variant *)context->job->launch->variant;
    if (!lanes) return;
    variant->record = (uint32_t)((uint8_t *)record - warp->frame);
    bool stop = number < variant->stop_count && ((volatile uint8_t *)variant->stops)[number];
    stop = stop || is_followed(context, warp, lanes) || atomic_load_explicit(&interrupted, memory_order_relaxed);
    if (unlikely(stop)) ask(context, warp, lanes, number, AT_LINE); /* who sees where they came from */
    for (uint32_t i = 0; i < CPU_WARP_THREADS; i++) record[i] = lanes >> i & 1 ? number + 1 : record[i];
}

void cpu_debug_failed(cpu_context *context, cpu_warp *warp) {
    if (!context->block || context->job->fault_seen) return;
    context->job->fault_seen = true;
    ask(context, warp, 0, UINT32_MAX, FAULTED);
}

void cpu_debug_over(cpu_job *job) {
    cpu_context context = {.job = job, .grid_id = job->launch->grid_id};
    if (followed_grid == context.grid_id) atomic_store(&followed, NULL);
    ask(&context, NULL, 0, UINT32_MAX, LAUNCH_OVER);
}

/* ---- for Python ------------------------------------------------------------------------------------------------ */

void cpu_debug_ask(PyObject *callback) {
    PyObject *before = asked;
    asked = callback ? Py_NewRef(callback) : NULL;
    if (!callback) {
        atomic_store(&followed, NULL);
        atomic_store(&interrupted, false);
    }
    Py_XDECREF(before);
}

void cpu_debug_interrupt(bool on) { atomic_store(&interrupted, on); }

static bool is_stopped(void) {
    if (!stopped || !stopped->block) PyErr_SetString(PyExc_RuntimeError, "no kernel is stopped");
    return stopped && stopped->block;
}

struct copying {
    const void *from;
    void *to;
    size_t size;
};

static void copy(void *argument) {
    const struct copying *what = argument;
    memcpy(what->to, what->from, what->size);
}

/* NULL: it is not all there. */
static const uint8_t *place(int space, uint32_t who, uint64_t address, size_t size) {
    const cpu_launch *launch = stopped->job->launch;
    const cpu_block *block = stopped->block;
    const uint32_t width = launch->variant->width;
    const uint8_t *base = NULL;
    uint64_t room = 0;
    cpu_allocation allocation;
    switch (space) {
        case CPU_DEBUG_GLOBAL:
            if (!cpu_memory_find(address, &allocation)) return NULL;
            base = (const uint8_t *)(uintptr_t)allocation.base; /* NOLINT: addresses of the device are the host's */
            room = allocation.size;
            address -= allocation.base;
            break;
        case CPU_DEBUG_SHARED: base = block->shared, room = stopped->shared_size; break;
        case CPU_DEBUG_LOCAL:
            if (who / width >= block->warp_count) return NULL;
            base = block->warps[who / width].local + (size_t)(who % width) * stopped->local_size;
            room = stopped->local_size;
            break;
        case CPU_DEBUG_FRAME:
            if (who >= block->warp_count) return NULL;
            base = block->warps[who].frame, room = launch->variant->frame_bytes;
            break;
        case CPU_DEBUG_PARAM: base = launch->params, room = launch->param_bytes; break;
        default: return NULL;
    }
    return address <= room && size <= room - address ? base + address : NULL;
}

PyObject *cpu_debug_read(int space, uint32_t who, uint64_t address, size_t size) {
    if (!is_stopped()) return NULL;
    const uint8_t *from = place(space, who, address, size);
    if (!from) Py_RETURN_NONE;
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size);
    if (!bytes) return NULL;
    struct copying what = {from, PyBytes_AS_STRING(bytes), size};
    if (cpu_guard_access(copy, &what)) return bytes;
    Py_DECREF(bytes);
    Py_RETURN_NONE;
}

PyObject *cpu_debug_variable(uint32_t place) {
    return is_stopped() ? PyLong_FromUnsignedLongLong(stopped->job->launch->variables[place]) : NULL;
}

/* For each warp: its first thread, the threads that there are, those that have not exited, whether it has begun, those at
 * barriers of the block and at bar.warp.sync, the barrier of each lane, and its lines, counted from 1. */
PyObject *cpu_debug_warps(void) {
    if (!is_stopped()) return NULL;
    const cpu_block *block = stopped->block;
    const cpu_launch *launch = stopped->job->launch;
    uint32_t left = launch->block[0] * launch->block[1] * launch->block[2];
    PyObject *list = PyList_New(0);
    for (uint32_t i = 0; list && i < block->warp_count; i++) {
        const cpu_warp *warp = &block->warps[i];
        uint32_t count = left < CPU_WARP_THREADS ? left : CPU_WARP_THREADS, barriers[CPU_WARP_THREADS];
        left -= count;
        const uint32_t there = (uint32_t)((UINT64_C(1) << count) - 1);
        const bool over = warp->status == CPU_WARP_FINISHED;
        const bool begun = warp == stopped_warp || warp->state || over || warp->live != there;
        const uint32_t alive = over ? 0 : warp == stopped_warp ? warp->mask : warp->live;
        for (int lane = 0; lane < CPU_WARP_THREADS; lane++) barriers[lane] = warp->lanes[lane].barrier;
        const char *record = (const char *)warp->frame + launch->variant->record;
        PyObject *row =
            Py_BuildValue("(IIIiIIy#y#)", warp->first, there, alive, (int)begun, warp->parked, warp->syncing,
                          (char *)barriers, (Py_ssize_t)sizeof barriers, record, (Py_ssize_t)sizeof barriers);
        if (!row || PyList_Append(list, row)) Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

PyObject *cpu_debug_barriers(void) {
    if (!is_stopped()) return NULL;
    PyObject *list = PyList_New(0);
    for (uint32_t i = 0; list && i < CPU_ALL_BARRIERS; i++) {
        const cpu_barrier *barrier = &stopped->block->barriers[i];
        if (!barrier->arrived) continue;
        PyObject *row = Py_BuildValue("(III)", i, barrier->arrived, barrier->expected);
        if (!row || PyList_Append(list, row)) Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

PyObject *cpu_debug_calls(uint32_t thread) {
    uint32_t calls[CPU_FAULT_CALLS];
    if (!is_stopped()) return NULL;
    const cpu_block *block = stopped->block;
    if (thread / CPU_WARP_THREADS >= block->warp_count) return PyTuple_New(0);
    const cpu_warp *warp = &block->warps[thread / CPU_WARP_THREADS];
    uint32_t count = cpu_stack_calls(stopped, warp, (int)(thread % CPU_WARP_THREADS), calls);
    if (count > CPU_FAULT_CALLS) count = CPU_FAULT_CALLS;
    PyObject *numbers = PyTuple_New(count);
    for (uint32_t i = 0; numbers && i < count; i++) {
        PyObject *number = PyLong_FromUnsignedLong(calls[i]);
        if (number) PyTuple_SET_ITEM(numbers, i, number);
        else Py_CLEAR(numbers);
    }
    return numbers;
}

PyObject *cpu_debug_fault(void) {
    char text[2048];
    if (!is_stopped()) return NULL;
    const cpu_launch *launch = stopped->job->launch;
    const cpu_fault *fault = &launch->fault;
    size_t length = cpu_fault_describe(launch, fault, text, sizeof text);
    if (length >= sizeof text) length = strlen(text);
    return Py_BuildValue("(iI(III)N)", fault->kind, fault->site, fault->thread[0], fault->thread[1], fault->thread[2],
                         PyUnicode_DecodeUTF8(text, (Py_ssize_t)length, "replace"));
}
