/* When operations happen, while races are checked: what streams, events and the host tell the engine's clocks
 * (engine/checks/moments.h), and what operations that are not kernels do to memory.
 *
 * The legacy default stream and the blocking streams of a context know of each other whatever the time. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "moment.h"

#include <stdlib.h>
#include <time.h>

#include "driver/base/origin.h"
#include "engine/checks/host.h"
#include "engine/memory/memory.h"

struct moments { /* of a context */
    cpu_clock blocking, legacy;
    cpu_clock gone; /* streams that were destroyed, for which the host waits as well when it waits for the context */
};

/* NULL: there are more streams than lines. What such a stream does comes before nothing that is told (its operations have
 * no line), but order also goes through it, so whoever waits for it has waited for everything. */
static struct cpu_line *line_of(CUstream stream) {
    struct cpu_line *line = atomic_load(&stream->line), *none = NULL;
    if (line || !(line = cpu_line_new(stream->id))) return line;
    if (atomic_compare_exchange_strong(&stream->line, &none, line)) return line;
    cpu_line_free(line);
    return none;
}

static struct moments *moments_of(CUcontext context) {
    struct moments *moments = atomic_load(&context->moments), *none = NULL;
    if (moments || !(moments = calloc(1, sizeof *moments))) return moments;
    if (atomic_compare_exchange_strong(&context->moments, (void **)&none, moments)) return moments;
    free(moments);
    return none;
}

void moment_prepare(struct op *op) {
    const bool has_line = op->kind == OP_COPY || op->kind == OP_FILL || op->kind == OP_CALL;
    if (!op->moment) op->moment = calloc(1, sizeof *op->moment);
    if (has_line && !op->origin) op->origin = origin_here();
}

static bool next_of(CUstream stream, cpu_moment *moment) {
    struct cpu_line *line = line_of(stream);
    struct moments *moments = moments_of(stream->context);
    const bool legacy = stream->role == STREAM_LEGACY, blocking = !(stream->flags & CU_STREAM_NON_BLOCKING);
    if (!line && moments && (legacy || blocking)) cpu_clock_everything(legacy ? &moments->legacy : &moments->blocking);
    if (!line || !moments) return false;
    if (legacy) cpu_line_next(line, moment, &moments->blocking, &moments->legacy);
    else cpu_line_next(line, moment, blocking ? &moments->legacy : NULL, blocking ? &moments->blocking : NULL);
    return true;
}

void moment_submitted(CUstream stream, struct op *op) {
    if (op->moment && !next_of(stream, op->moment)) {
        free(op->moment);
        op->moment = NULL;
    }
}

void moment_recorded(CUevent event, CUstream stream) {
    struct cpu_line *line = line_of(stream);
    if (!event->clock) event->clock = calloc(1, sizeof *event->clock);
    if (!event->clock) return;
    if (line) cpu_line_copy(line, event->clock);
    else cpu_clock_everything(event->clock);
}

void moment_waits_for(CUstream stream, CUstream other) {
    struct cpu_line *line = line_of(stream), *known = line_of(other);
    cpu_clock clock = {0};
    if (!line) return;
    if (known) cpu_line_copy(known, &clock);
    else cpu_clock_everything(&clock);
    cpu_line_learn(line, &clock);
}

void moment_waits_for_event(CUstream stream, CUevent event) {
    struct cpu_line *line = line_of(stream);
    if (line && event->clock) cpu_line_learn(line, event->clock);
}

void moment_host_waited(CUstream stream) {
    struct cpu_line *line = line_of(stream);
    struct moments *moments = stream->role == STREAM_LEGACY ? moments_of(stream->context) : NULL;
    cpu_clock clock = {0};
    if (line) {
        cpu_host_learn_line(line);
    } else {
        cpu_clock_everything(&clock);
        cpu_host_learn(&clock);
    }
    if (moments) cpu_host_learn(&moments->blocking);
}

void moment_host_waited_for_context(CUcontext context) {
    const struct moments *moments = atomic_load(&context->moments);
    if (moments) cpu_host_learn(&moments->gone);
}

void moment_stream_ends(CUstream stream) {
    struct cpu_line *line = atomic_load(&stream->line);
    struct moments *moments = line ? atomic_load(&stream->context->moments) : NULL;
    if (moments) cpu_line_tell(line, &moments->gone);
    cpu_line_free(line);
}

void moment_host_waited_for_event(CUevent event) {
    if (event->clock) cpu_host_learn(event->clock);
}

/* ---- carrying out ------------------------------------------------------------------------------------------------------ */

static void touch_box(cpu_touch *touch, const char *start, const struct copy *box, size_t pitch, size_t slice,
                      enum cpu_touching how) {
    for (size_t z = 0; z < box->depth; z++)
        for (size_t y = 0; y < box->height; y++)
            cpu_touch_range(touch, (uint64_t)(start + z * slice + y * pitch), box->width, how);
}

void moment_touch(const struct op *op) {
    static const char *const names[] = {[OP_COPY] = "copy", [OP_FILL] = "fill", [OP_FREE] = "free"};
    cpu_touch touch;
    const bool entered = cpu_deed_enter(cpu_moment_now);
    cpu_touch_begin(&touch, cpu_moment_now, names[op->kind], op->origin);
    const struct copy *copy = &op->copy;
    const struct fill *fill = &op->fill;
    if (op->kind == OP_COPY) {
        touch_box(&touch, copy->source, copy, copy->source_pitch, copy->source_slice, CPU_TOUCH_READ);
        touch_box(&touch, copy->target, copy, copy->target_pitch, copy->target_slice, CPU_TOUCH_WRITE);
    } else if (op->kind == OP_FILL) {
        for (size_t y = 0; y < fill->height; y++)
            cpu_touch_range(&touch, (uint64_t)fill->target + y * fill->pitch, fill->width * fill->element,
                            CPU_TOUCH_WRITE);
    } else {
        cpu_touch_range(&touch, op->memory.address, op->memory.size, CPU_TOUCH_FREE);
    }
    cpu_deed_leave(entered);
    cpu_touch_end(&touch);
}

/* What was queued before a free is done first, if that does not take long: then its accesses are seen, where otherwise it
 * would fail. Without locks. */
enum { PATIENCE_NANOSECONDS = 50000000, NAP_NANOSECONDS = 100000 };

static PyThreadState *let_others_run(void) {
    return PyGILState_GetThisThreadState() && PyGILState_Check() ? PyEval_SaveThread() : NULL;
}

static void wait_for_others(CUcontext context) {
    PyThreadState *here = let_others_run();
    const uint64_t end = clock_now() + PATIENCE_NANOSECONDS;
    size_t count;
    CUstream *streams = context_streams(context, &count);
    for (size_t i = 0; streams && i < count; i++) {
        const uint64_t last = atomic_load(&streams[i]->submitted);
        while (!stream_has_completed(streams[i], last) && clock_now() < end)
            nanosleep(&(struct timespec){0, NAP_NANOSECONDS}, NULL);
        stream_release(streams[i]);
    }
    free(streams);
    if (here) PyEval_RestoreThread(here);
}

bool moment_is_for_host(const struct op *op) {
    if (thread_state.in_callback) return false;
    switch (op->kind) {
        case OP_KERNEL: return cpu_host_is_given(&op->kernel.launch);
        case OP_COPY: return cpu_host_is_at((uint64_t)op->copy.source) || cpu_host_is_at((uint64_t)op->copy.target);
        case OP_FILL: return cpu_host_is_at((uint64_t)op->fill.target);
        case OP_GRAPH:
        case OP_CALL: return cpu_memory_used(CPU_MEMORY_HOST);
        default: return false;
    }
}

void moment_let_run(CUstream stream) {
    PyThreadState *here = let_others_run();
    const uint64_t end = clock_now() + PATIENCE_NANOSECONDS, last = atomic_load(&stream->submitted);
    while (!stream_has_completed(stream, last) && clock_now() < end)
        nanosleep(&(struct timespec){0, NAP_NANOSECONDS}, NULL);
    if (here) PyEval_RestoreThread(here);
}

void moment_touch_at_once(CUstream stream, uint64_t address, uint64_t size, bool frees) {
    cpu_moment moment = {0};
    cpu_touch touch;
    if (!next_of(stream, &moment)) return;
    if (frees) wait_for_others(stream->context);
    cpu_touch_begin(&touch, &moment, frees ? "free" : "allocation", origin_here());
    cpu_touch_range(&touch, address, size, frees ? CPU_TOUCH_FREE : CPU_TOUCH_ALLOCATE);
    cpu_touch_end(&touch);
}

void moment_value_written(uint64_t address) {
    cpu_touch touch;
    cpu_touch_begin(&touch, cpu_moment_now, "value", NULL);
    cpu_deed_told(address, touch.deed.first);
    cpu_touch_end(&touch);
    if (cpu_host_is_at(address)) cpu_host_learn_moment(cpu_moment_now); /* for which it may be looking */
}

/* It may have been written by the host, a kernel, or another stream. */
void moment_value_seen(uint64_t address) {
    cpu_moment_learn_host(cpu_moment_now);
    cpu_deed_listen(cpu_moment_now, address);
    cpu_touch_learn_writer(cpu_moment_now, address);
}
