/* Operations: what a stream or a graph carries out. */
#include <stdlib.h>
#include <string.h>

#include "driver/inject/inject.h"
#include "driver/trace/trace.h"
#include "engine/above.h"
#include "engine/checks/host.h"
#include "engine/memory/usage.h"
#include "moment.h"
#include "stream.h"

struct op *op_new(enum op_kind kind, CUcontext context) {
    struct op *op = calloc(1, sizeof *op);
    if (!op) return NULL;
    op->kind = (uint8_t)kind;
    op->context = context;
    return op;
}

void call_release(struct call *call) {
    if (atomic_fetch_sub_explicit(&call->references, 1, memory_order_acq_rel) != 1) return;
    if (call->end) call->end(call);
    free(call);
}

/* A graph shows it as a host function. */
static void call_run(void *call) { ((struct call *)call)->run(call); }

bool op_is_call(CUhostFn function) { return function == call_run; }

bool op_waits(const struct op *op) { return op->kind == OP_CALL && ((const struct call *)op->host.data)->waits; }

struct op *op_new_call(CUcontext context, struct call *call) {
    struct op *op = op_new(OP_CALL, context);
    if (op) op->host.function = call_run, op->host.data = call;
    else call_release(call);
    return op;
}

static void retain(struct op *op) {
    switch (op->kind) {
        case OP_COPY:
            if (op->copy.form) {
                CUDA_MEMCPY3D *form = malloc(sizeof *form);
                if (form) *form = *op->copy.form;
                op->copy.form = form;
            }
            break;
        case OP_RECORD: handle_retain(op->record.event); break;
        case OP_WAIT:
            if (op->wait.stream) handle_retain(op->wait.stream);
            if (op->wait.event) handle_retain(op->wait.event);
            break;
        case OP_ALLOCATE:
        case OP_FREE: memory_op_retain(op); break;
        case OP_GRAPH: graph_op_retain(op); break;
        case OP_CALL:
            atomic_fetch_add_explicit(&((struct call *)op->host.data)->references, 1, memory_order_relaxed);
            break;
        default: break;
    }
}

struct op *op_copy(const struct op *op) {
    if (op->kind == OP_KERNEL) return kernel_op_copy(op);
    struct op *copy = malloc(sizeof *copy);
    if (!copy) return NULL;
    *copy = *op;
    if (op->kind == OP_VALUES && op->values.list) {
        copy->values.list = malloc(op->values.count * sizeof *op->values.list);
        if (!copy->values.list) {
            free(copy);
            return NULL;
        }
        memcpy(copy->values.list, op->values.list, op->values.count * sizeof *op->values.list);
    }
    copy->next = NULL;
    copy->moment = NULL;
    retain(copy);
    return copy;
}

void op_free(struct op *op) {
    switch (op->kind) {
        case OP_KERNEL: kernel_op_release(op); break;
        case OP_COPY:
            free(op->copy.form);
            free(op->copy.staging);
            break;
        case OP_VALUES: free(op->values.list); break;
        case OP_RECORD: event_release(op->record.event); break;
        case OP_WAIT:
            if (op->wait.stream) stream_release(op->wait.stream);
            if (op->wait.event) event_release(op->wait.event);
            break;
        case OP_ALLOCATE:
        case OP_FREE: memory_op_release(op); break;
        case OP_GRAPH: graph_op_release(op); break;
        case OP_CALL: call_release(op->host.data); break;
        default: break;
    }
    free(op->moment);
    free(op);
}

int cpu_driver_forbid(int forbidden) {
    const int before = thread_state.in_callback;
    thread_state.in_callback = forbidden;
    return before;
}

static void run_host_function(struct op *op, CUresult error) {
    const int before = cpu_driver_forbid(true);
    if (asked(cpu_moment_now != NULL)) cpu_host_learn_moment(cpu_moment_now);
    if (op->host.callback) op->host.callback(op->host.stream, error, op->host.data);
    else if (!error) op->host.function(op->host.data);
    cpu_driver_forbid(before);
}

static CUresult transfer(struct op *op) {
    if (asked(cpu_moment_now != NULL)) moment_touch(op);
    cpu_usage_track *track = op->context ? &cpu_usage_of(op->context->device->ordinal)->transfers : NULL;
    if (track) cpu_usage_begin(track);
    CUresult status = op->kind == OP_COPY ? copy_execute(&op->copy) : fill_execute(&op->fill);
    if (track) cpu_usage_end(track);
    return status;
}

static CUresult inject(const struct op *op) {
    const int device = op->context ? op->context->device->ordinal : 0;
    switch (op->kind) {
        case OP_KERNEL: return inject_work(INJECT_KERNEL, kernel_op_name(op), device);
        case OP_COPY: return inject_work(INJECT_COPY, "copy", device);
        case OP_FILL: return inject_work(INJECT_COPY, "fill", device);
        default: return CUDA_SUCCESS;
    }
}

_Thread_local struct call_range call_range;

static CUresult run_call_watched(struct call *call, const struct cpu_origin *origin) {
    cpu_touch touch;
    cpu_touch_begin(&touch, cpu_moment_now, "call of a math library", origin);
    cpu_touch_now = &touch;
    CUresult status = call->run(call);
    cpu_touch_now = NULL;
    cpu_touch_end(&touch);
    return status;
}

/* Threads of the library underneath may be at work on memory that is freed. */
static CUresult run_call(struct call *call, const struct cpu_origin *origin) {
    call_range = (struct call_range){UINT64_MAX, 0};
    uint64_t number = cpu_guard_lend();
    CUresult status = asked(cpu_moment_now != NULL) ? run_call_watched(call, origin) : call->run(call);
    if (unlikely(cpu_guard_take_back(number, call_range.low, call_range.high)) && !status)
        status = fail(CUDA_ERROR_ILLEGAL_ADDRESS,
                      "memory that a function of a math library works on was freed before it was done");
    return status;
}

static CUresult execute(struct op *op) {
    CUresult error =
        op->context ? (CUresult)atomic_load_explicit(&op->context->error, memory_order_acquire) : CUDA_SUCCESS;
    CUresult status = CUDA_SUCCESS;
    switch (op->kind) {
        case OP_RECORD: event_stamp(op->record.event, op->record.generation); return error;
        case OP_HOST: run_host_function(op, error); return error;
        case OP_FREE:
            if (asked(cpu_moment_now != NULL)) moment_touch(op);
            status = memory_execute(op);
            break;
        default:
            if (unlikely(error)) return error;
            if (injects_into_work() && (status = inject(op))) break;
            switch (op->kind) {
                case OP_KERNEL: return kernel_execute(op); /* has recorded its error */
                case OP_GRAPH: return graph_execute(op);   /* its nodes have */
                case OP_COPY:
                case OP_FILL: status = transfer(op); break;
                case OP_ALLOCATE: status = memory_execute(op); break;
                case OP_CALL: status = run_call(op->host.data, op->origin); break;
                case OP_VALUES: status = values_execute(op); break;
                case OP_WAIT:
                    if (op->wait.event && op->wait.sequence)
                        status = shared_event_wait(op->wait.event->shared, op->wait.sequence, op->context);
                    else if (op->wait.event) status = event_wait(op->wait.event);
                    if (asked(cpu_moment_now != NULL) && op->wait.event && op->wait.event->clock)
                        cpu_moment_learn(cpu_moment_now, op->wait.event->clock);
                    break;
                default: break;
            }
    }
    if (unlikely(status)) context_fault(op->context, status, NULL, NULL);
    return status;
}

static CUresult execute_traced(struct op *op) {
    if (!tracing()) return execute(op);
    const uint64_t begin = clock_now(), outside = trace_call;
    if (op->call) trace_call = op->call;
    CUresult status = execute(op);
    if (op->kind != OP_KERNEL) op_trace(op, begin, status); /* kernels may launch others: kernel_run */
    trace_call = outside;
    return status;
}

/* Nodes of a graph happen when their launch does (graph/exec.c). */
CUresult op_execute(struct op *op) {
    if (!asked(op->moment != NULL) && likely(!tracing())) return execute(op);
    if (!asked(op->moment != NULL)) return execute_traced(op);
    cpu_moment *const before = cpu_moment_now;
    cpu_moment_now = op->moment;
    cpu_moment_begin(cpu_moment_now);
    const bool works =
        op->kind != OP_WAIT && op->kind != OP_VALUES && op->kind != OP_HOST; /* those may wait for the host */
    if (works) cpu_host_begin();
    CUresult status = execute_traced(op);
    if (works) cpu_host_end();
    cpu_moment_now = before;
    return status;
}
