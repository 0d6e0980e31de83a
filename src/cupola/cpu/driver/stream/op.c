/* Operations: what a stream or a graph carries out. */
#include <stdlib.h>

#include "driver/base/internal.h"

enum { PARAMETER_SLACK = 64 }; /* the engine may read so many bytes behind the parameters */

static _Atomic uint64_t next_grid = 1;

struct op *op_new(enum op_kind kind, CUcontext context) {
    struct op *op = calloc(1, sizeof *op);
    if (!op) return NULL;
    op->kind = (uint8_t)kind;
    op->context = context;
    return op;
}

/* The parameters stand behind the operation, in the same block of memory, 16-byte aligned as malloc's are. */
static char *parameters_of(struct op *op) { return (char *)op + ((sizeof *op + 15) & ~(size_t)15); }

struct op *op_new_kernel(CUfunction function, const void *params) {
    size_t bytes = function->param_bytes;
    size_t space = ((sizeof(struct op) + 15) & ~(size_t)15) + bytes + PARAMETER_SLACK;
    struct op *op = malloc(space);
    if (!op) return NULL;
    memset(op, 0, offsetof(struct op, kernel.launch.fault) + offsetof(cpu_fault, message) + 1);
    op->kind = OP_KERNEL;
    op->context = function->module->context;
    op->kernel.function = function;
    handle_retain(function->module);
    op->kernel.launch.kernel = function->kernel;
    op->kernel.attributes = (struct launch_attributes){0};
    op->kernel.launch.params = parameters_of(op);
    op->kernel.launch.param_bytes = bytes;
    op->kernel.launch.variables = function->module->variables;
    if (params)
        memcpy(parameters_of(op), params, bytes);
    else
        memset(parameters_of(op), 0, bytes);
    return op;
}

CUresult op_set_attributes(struct op *op, const struct launch_attributes *attributes) {
    cpu_launch *launch = &op->kernel.launch;
    RETURN_IF(cluster_of_launch(op->kernel.function, attributes, launch->grid, launch->cluster,
                                &launch->explicit_cluster));
    RETURN_IF(launch_check_attributes(op->kernel.function, launch, attributes));
    op->kernel.attributes = *attributes;
    return CUDA_SUCCESS;
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
        default: break;
    }
}

struct op *op_copy(const struct op *op) {
    struct op *copy;
    if (op->kind == OP_KERNEL) {
        copy = op_new_kernel(op->kernel.function, op->kernel.launch.params);
        if (!copy) return NULL;
        const void *params = copy->kernel.launch.params;
        copy->kernel.launch = op->kernel.launch;
        copy->kernel.launch.params = params;
        copy->kernel.attributes = op->kernel.attributes;
        copy->context = op->context;
        return copy;
    }
    copy = malloc(sizeof *copy);
    if (!copy) return NULL;
    *copy = *op;
    copy->next = NULL;
    retain(copy);
    return copy;
}

void op_free(struct op *op) {
    switch (op->kind) {
        case OP_KERNEL: module_release(op->kernel.function->module); break;
        case OP_COPY:
            free(op->copy.form);
            free(op->copy.staging);
            break;
        case OP_RECORD: event_release(op->record.event); break;
        case OP_WAIT:
            if (op->wait.stream) stream_release(op->wait.stream);
            if (op->wait.event) event_release(op->wait.event);
            break;
        case OP_ALLOCATE:
        case OP_FREE: memory_op_release(op); break;
        case OP_GRAPH: graph_op_release(op); break;
        default: break;
    }
    free(op);
}

static const CUresult fault_status[] = {
    [CPU_FAULT_OUT_OF_BOUNDS] = CUDA_ERROR_ILLEGAL_ADDRESS,
    [CPU_FAULT_MISALIGNED] = CUDA_ERROR_MISALIGNED_ADDRESS,
    [CPU_FAULT_ASSERT] = CUDA_ERROR_ASSERT,
    [CPU_FAULT_TRAP] = CUDA_ERROR_LAUNCH_FAILED,
    [CPU_FAULT_BARRIER] = CUDA_ERROR_LAUNCH_FAILED,
    [CPU_FAULT_STACK] = CUDA_ERROR_HARDWARE_STACK_ERROR,
    [CPU_FAULT_INTERNAL] = CUDA_ERROR_UNKNOWN,
    [CPU_FAULT_NO_ACCESS] = CUDA_ERROR_ILLEGAL_ADDRESS,
    [CPU_FAULT_CALL] = CUDA_ERROR_INVALID_PC,
    [CPU_FAULT_HEAP] = CUDA_ERROR_ILLEGAL_ADDRESS,
    [CPU_FAULT_INSTRUCTION] = CUDA_ERROR_ILLEGAL_INSTRUCTION,
    [CPU_FAULT_OBJECT] = CUDA_ERROR_ILLEGAL_INSTRUCTION,
    [CPU_FAULT_SURFACE] = CUDA_ERROR_LAUNCH_FAILED,
};

static CUresult run_kernel(struct op *op) {
    cpu_launch *launch = &op->kernel.launch;
    launch->grid_id = atomic_fetch_add_explicit(&next_grid, 1, memory_order_relaxed);
    launch->device = op->context->device->ordinal;
    launch->cooperative = op->kernel.attributes.cooperative;
    launch->context = op->context;
    launch->multiprocessors = (uint32_t)op->context->device->model->multiprocessors;
    launch->heap = &op->context->heap;
    launch->stack_limit = (uint32_t)op->context->limits[CU_LIMIT_STACK_SIZE];
    launch->fault.kind = CPU_FAULT_NONE;
    int fault = cpu_engine_run(launch);
    if (likely(!fault)) return CUDA_SUCCESS;
    CUresult status = (size_t)fault < sizeof fault_status / sizeof *fault_status && fault_status[fault]
                          ? fault_status[fault]
                          : CUDA_ERROR_UNKNOWN;
    context_fault(op->context, status, op->kernel.function->module, launch);
    return status;
}

static void run_host_function(struct op *op, CUresult error) {
    thread_state.in_callback = true;
    if (op->host.callback)
        op->host.callback(op->host.stream, error, op->host.data);
    else if (!error)
        op->host.function(op->host.data);
    thread_state.in_callback = false;
}

CUresult op_execute(struct op *op) {
    CUresult error =
        op->context ? (CUresult)atomic_load_explicit(&op->context->error, memory_order_acquire) : CUDA_SUCCESS;
    CUresult status = CUDA_SUCCESS;
    switch (op->kind) {
        case OP_RECORD: event_stamp(op->record.event, op->record.generation); return error;
        case OP_HOST: run_host_function(op, error); return error;
        case OP_FREE: status = memory_execute(op); break;
        default:
            if (unlikely(error)) return error;
            switch (op->kind) {
                case OP_KERNEL: return run_kernel(op);   /* has recorded its error */
                case OP_GRAPH: return graph_execute(op); /* its nodes have */
                case OP_COPY: status = copy_execute(&op->copy); break;
                case OP_FILL: status = fill_execute(&op->fill); break;
                case OP_ALLOCATE: status = memory_execute(op); break;
                case OP_WRITE_VALUE:
                case OP_WAIT_VALUE: status = value_execute(op); break;
                case OP_WAIT:
                    if (op->wait.event && op->wait.sequence)
                        status = shared_event_wait(op->wait.event->shared, op->wait.sequence, op->context);
                    else if (op->wait.event)
                        status = event_wait(op->wait.event);
                    break;
                default: break;
            }
    }
    if (unlikely(status)) context_fault(op->context, status, NULL, NULL);
    return status;
}
