/* Launches (CUDA Driver API, "Execution Control"). Everything that can be wrong with a launch is found, and the kernel
 * compiled for its block, before the launch is queued: so the error belongs to the call. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "driver/base/caller.h"
#include "driver/base/origin.h"
#include "driver/inject/inject.h"
#include "driver/stream/moment.h"
#include "driver/trace/trace.h"
#include "engine/memory/usage.h"
#include "module.h"

enum { MAX_GRID_X = INT_MAX, MAX_GRID_YZ = 65535, MAX_BLOCK_XY = 1024, MAX_BLOCK_Z = 64, MAX_THREADS = 1024 };

/* ---- checks ---------------------------------------------------------------------------------------------------- */

static CUresult wrong_shape(const unsigned grid[3], const unsigned block[3]) {
    static const unsigned max_grid[3] = {MAX_GRID_X, MAX_GRID_YZ, MAX_GRID_YZ};
    static const unsigned max_block[3] = {MAX_BLOCK_XY, MAX_BLOCK_XY, MAX_BLOCK_Z};
    for (int i = 0; i < 3; i++) {
        if (!grid[i] || !block[i])
            return fail(CUDA_ERROR_INVALID_VALUE,
                        "the grid is (%u, %u, %u) and the block (%u, %u, %u): no dimension may be 0", grid[0], grid[1],
                        grid[2], block[0], block[1], block[2]);
        if (grid[i] > max_grid[i])
            return fail(CUDA_ERROR_INVALID_VALUE,
                        "the grid is (%u, %u, %u), but this device allows at most %u blocks along %c", grid[0], grid[1],
                        grid[2], max_grid[i], 'x' + i);
        if (block[i] > max_block[i])
            return fail(CUDA_ERROR_INVALID_VALUE,
                        "the block is (%u, %u, %u), but this device allows at most %u threads along %c", block[0],
                        block[1], block[2], max_block[i], 'x' + i);
    }
    return fail(CUDA_ERROR_INVALID_VALUE,
                "the block is (%u, %u, %u), %u threads, but this device allows at most %d threads a "
                "block",
                block[0], block[1], block[2], block[0] * block[1] * block[2], MAX_THREADS);
}

static CUresult check_threads(CUfunction function, const unsigned block[3]) {
    const cpu_kernel_info *info = function->image_kernel->info;
    const char *name = cpu_kernel_name(function->kernel);
    unsigned threads = block[0] * block[1] * block[2];
    const uint32_t *required = info->required_block, *most = info->max_block;
    if (unlikely(required[0] && (required[0] != block[0] || required[1] != block[1] || required[2] != block[2])))
        return fail(CUDA_ERROR_INVALID_VALUE,
                    "%s requires blocks of (%u, %u, %u) threads (.reqntid, __block_size__), not "
                    "(%u, %u, %u)",
                    name, required[0], required[1], required[2], block[0], block[1], block[2]);
    if (unlikely(most[0] && threads > most[0] * most[1] * most[2]))
        return fail(CUDA_ERROR_INVALID_VALUE,
                    "the block has %u threads, but %s was compiled for at most %u "
                    "(__launch_bounds__)",
                    threads, name, most[0] * most[1] * most[2]);
    if (unlikely((int)threads > function_max_threads(function)))
        return fail(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES,
                    "%u threads of %u registers each do not fit on a multiprocessor: %s "
                    "runs with at most %d threads a block; use __launch_bounds__ or fewer threads",
                    threads, info->registers, name, function_max_threads(function));
    return CUDA_SUCCESS;
}

static CUresult check_shared(CUfunction function, unsigned dynamic_shared) {
    int most = function_max_dynamic_shared(function);
    if (likely(dynamic_shared <= (unsigned)most)) return CUDA_SUCCESS;
    const struct model *model = function->module->context->device->model;
    int limit = model->shared_per_block_optin - (int)function->image_kernel->info->static_shared;
    if (dynamic_shared > (unsigned)limit)
        return fail(CUDA_ERROR_INVALID_VALUE,
                    "%u bytes of dynamic shared memory, but this device allows a block %d bytes, and "
                    "%s uses %u itself",
                    dynamic_shared, model->shared_per_block_optin, cpu_kernel_name(function->kernel),
                    function->image_kernel->info->static_shared);
    return fail(
        CUDA_ERROR_INVALID_VALUE,
        "%u bytes of dynamic shared memory, but %s may use %d: set "
        "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES (kernel.attributes.max_dynamic_shared_size_bytes) first, to "
        "at most %d",
        dynamic_shared, cpu_kernel_name(function->kernel), most, limit);
}

uint64_t launch_resident_blocks(const struct op *op) {
    const cpu_launch *launch = &op->kernel.launch;
    int each = occupancy_blocks(op->kernel.function, (int)(launch->block[0] * launch->block[1] * launch->block[2]),
                                launch->dynamic_shared);
    return (uint64_t)each * (uint64_t)context_multiprocessors(op->kernel.green ? op->kernel.green : op->context);
}

static CUresult check_attributes(const struct op *op, const struct launch_attributes *attributes) {
    if (!attributes->cooperative) return CUDA_SUCCESS;
    const uint32_t *grid = op->kernel.launch.grid;
    uint64_t blocks = (uint64_t)grid[0] * grid[1] * grid[2], resident = launch_resident_blocks(op);
    if (blocks <= resident) return CUDA_SUCCESS;
    return fail(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
                "%llu blocks in a cooperative launch, but only %llu can be on %s at once", (unsigned long long)blocks,
                (unsigned long long)resident,
                op->kernel.green ? "the multiprocessors of this green context" : "this device");
}

/* ---- parameters ------------------------------------------------------------------------------------------------ */

static CUresult copy_parameters(CUfunction function, void **params, char *target) {
    const struct image_kernel *kernel = function->image_kernel;
    for (uint32_t i = 0; i < kernel->info->param_count; i++) {
        if (unlikely(!params[i]))
            return fail(CUDA_ERROR_INVALID_VALUE, "parameter %u of %s is a null pointer in kernelParams", i,
                        cpu_kernel_name(function->kernel));
        memcpy(target + kernel->parameters[i].offset, params[i], kernel->parameters[i].size);
    }
    return CUDA_SUCCESS;
}

/* `extra`: pairs of a key and a value, closed by CU_LAUNCH_PARAM_END; gives the parameters as one block of bytes. */
static CUresult copy_extra(CUfunction function, void **extra, char *target) {
    const void *buffer = NULL;
    size_t size = 0;
    for (; (uintptr_t)*extra != CU_LAUNCH_PARAM_END_AS_INT; extra += 2) {
        if ((uintptr_t)*extra == CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT) buffer = extra[1];
        else if ((uintptr_t)*extra == CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT && extra[1]) size = *(size_t *)extra[1];
        else return fail(CUDA_ERROR_INVALID_VALUE, "%p is not a key of the launch argument 'extra'", *extra);
    }
    if (size < function->image_kernel->info->param_bytes || (size && !buffer))
        return fail(CUDA_ERROR_INVALID_VALUE, "%s takes %u bytes of parameters; 'extra' gives %zu at %p",
                    cpu_kernel_name(function->kernel), function->image_kernel->info->param_bytes, size, buffer);
    memcpy(target, buffer, function->image_kernel->info->param_bytes);
    return CUDA_SUCCESS;
}

/* ---- the operation ------------------------------------------------------------------------------------------------ */

enum { PARAMETER_SLACK = 64 }; /* the engine may read so many bytes behind the parameters */

static _Atomic uint64_t next_grid = 1;

/* The parameters stand behind the operation, in the same block of memory, 16-byte aligned as malloc's are. */
static char *parameters_of(struct op *op) { return (char *)op + round_up(sizeof *op, 16); }

struct op *op_new_kernel(CUfunction function, const void *params) {
    size_t bytes = function->image_kernel->info->param_bytes;
    size_t space = round_up(sizeof(struct op), 16) + bytes + PARAMETER_SLACK;
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
    if (params) memcpy(parameters_of(op), params, bytes);
    else memset(parameters_of(op), 0, bytes);
    return op;
}

CUresult op_set_attributes(struct op *op, const struct launch_attributes *attributes) {
    cpu_launch *launch = &op->kernel.launch;
    RETURN_IF(
        cluster_of_launch(op->kernel.function, attributes, launch->grid, launch->cluster, &launch->explicit_cluster));
    RETURN_IF(cluster_check_room(op));
    RETURN_IF(check_attributes(op, attributes));
    op->kernel.attributes = *attributes;
    return CUDA_SUCCESS;
}

struct op *kernel_op_copy(const struct op *op) {
    struct op *copy = op_new_kernel(op->kernel.function, op->kernel.launch.params);
    if (!copy) return NULL;
    const void *params = copy->kernel.launch.params;
    copy->kernel.launch = op->kernel.launch;
    copy->kernel.launch.params = params;
    copy->kernel.attributes = op->kernel.attributes;
    copy->kernel.green = op->kernel.green;
    copy->context = op->context;
    return copy;
}

void kernel_op_release(struct op *op) { module_release(op->kernel.function->module); }

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
    [CPU_FAULT_STOPPED] = CUDA_ERROR_LAUNCH_TIMEOUT,
    [CPU_FAULT_LAUNCH] = CUDA_ERROR_ILLEGAL_ADDRESS,
};

/* A GPU says nothing of what finds no room. */
static void tell_lost_prints(const struct op *op) {
    const cpu_launch *launch = &op->kernel.launch;
    fprintf(
        stderr,
        "cupola: kernel '%s' printed more than a GPU is sure to keep of one launch: the text of %llu calls of printf is lost. "
        "CU_LIMIT_PRINTF_FIFO_SIZE (%llu bytes; cuCtxSetLimit before the first kernel that prints) makes room for more\n",
        kernel_op_name(op), (unsigned long long)launch->prints_lost, (unsigned long long)launch->print_room);
}

CUresult kernel_run(struct op *op) {
    cpu_launch *launch = &op->kernel.launch;
    launch->grid_id = atomic_fetch_add_explicit(&next_grid, 1, memory_order_relaxed);
    launch->device = op->context->device->ordinal;
    launch->cooperative = op->kernel.attributes.cooperative;
    launch->context = op->context;
    launch->multiprocessors = (uint32_t)op->context->device->model->multiprocessors;
    if (op->kernel.green) {
        launch->places = op->kernel.green->places;
        launch->place_count = op->kernel.green->part.count;
    }
    launch->heap = &op->context->heap;
    launch->print_room = op->context->limits[CU_LIMIT_PRINTF_FIFO_SIZE];
    launch->printed = launch->prints_lost = 0;
    launch->stack_limit = (uint32_t)op->context->limits[CU_LIMIT_STACK_SIZE];
    launch->fault.kind = CPU_FAULT_NONE;
    launch->order = injects(INJECT_ORDER) ? inject_order(launch->device, kernel_op_name(op)) : 0;
    cpu_usage_track *track = &cpu_usage_of(launch->device)->kernels;
    cpu_usage_begin(track);
    const uint64_t begin = tracing() ? clock_now() : 0;
    int fault = cpu_engine_run(launch);
    cpu_usage_end(track);
    if (unlikely(launch->prints_lost)) tell_lost_prints(op);
    if (tracing()) op_trace(op, begin, fault ? CUDA_ERROR_LAUNCH_FAILED : CUDA_SUCCESS);
    if (likely(!fault)) return CUDA_SUCCESS;
    CUresult status = (size_t)fault < sizeof fault_status / sizeof *fault_status && fault_status[fault]
                          ? fault_status[fault]
                          : CUDA_ERROR_UNKNOWN;
    context_fault(op->context, status, op->kernel.function->module, launch);
    return status;
}

const char *kernel_op_name(const struct op *op) { return cpu_kernel_name(op->kernel.function->kernel); }

CUresult kernel_execute(struct op *op) {
    if (unlikely(op->kernel.function->image_kernel->info->launches & CPU_LAUNCHES_ASKS)) return grid_execute(op);
    return kernel_run(op);
}

/* ---- preparing ------------------------------------------------------------------------------------------------- */

/* With .blocksareclusters a grid is given in clusters. */
static void count_in_blocks(const cpu_kernel_info *info, unsigned grid[3]) {
    for (int i = 0; i < 3; i++)
        if (info->blocks_are_clusters && info->required_cluster[i] && grid[i] <= UINT_MAX / info->required_cluster[i])
            grid[i] *= info->required_cluster[i];
}

/* A tile program has no threads: it is launched with blocks of one, and its compiler has chosen how many there are. */
static const unsigned *block_of(const cpu_kernel_info *info, const unsigned given[3]) {
    bool is_one = given[0] == 1 && given[1] == 1 && given[2] == 1;
    return unlikely(info->is_tile_kernel) && is_one ? info->required_block : given;
}

CUresult launch_prepare(CUfunction function, const unsigned given_grid[3], const unsigned given_block[3],
                        unsigned dynamic_shared, void **params, void **extra,
                        const struct launch_attributes *attributes, CUcontext where, struct op **result) {
    static const struct launch_attributes none;
    unsigned grid[] = {given_grid[0], given_grid[1], given_grid[2]};
    count_in_blocks(function->image_kernel->info, grid);
    const unsigned *block = block_of(function->image_kernel->info, given_block);
    bool fits = grid[0] - 1 < MAX_GRID_X && grid[1] - 1 < MAX_GRID_YZ && grid[2] - 1 < MAX_GRID_YZ &&
                block[0] - 1 < MAX_BLOCK_XY && block[1] - 1 < MAX_BLOCK_XY && block[2] - 1 < MAX_BLOCK_Z &&
                block[0] * block[1] * block[2] <= MAX_THREADS;
    if (unlikely(!fits)) return wrong_shape(grid, block);
    RETURN_IF(check_threads(function, block));
    RETURN_IF(check_shared(function, dynamic_shared));
    if (unlikely(params && extra))
        return fail(CUDA_ERROR_INVALID_VALUE, "kernelParams and extra are both given: use one of them");
    if (unlikely(!params && !extra && function->image_kernel->info->param_count))
        return fail(CUDA_ERROR_INVALID_VALUE, "%s takes %u parameters, but neither kernelParams nor extra is given",
                    cpu_kernel_name(function->kernel), function->image_kernel->info->param_count);
    cpu_refusal refusal;
    const cpu_variant *variant = cpu_engine_prepare(function->kernel, block, &refusal);
    if (unlikely(!variant)) return fail(error_status(refusal.status), "%s", refusal.message);
    struct op *op = op_new_kernel(function, NULL);
    if (!op) return no_memory("the launch");
    cpu_launch *launch = &op->kernel.launch;
    CUresult status = params  ? copy_parameters(function, params, (char *)launch->params)
                      : extra ? copy_extra(function, extra, (char *)launch->params)
                              : CUDA_SUCCESS;
    if (unlikely(status)) {
        op_free(op);
        return status;
    }
    launch->variant = variant;
    if (checks(CHECK_ANY) || unlikely(cpu_engine_is_debugged(launch))) launch->origin = origin_here();
    else launch->caller = caller_here();
    if (unlikely(where && where->green)) {
        op->kernel.green = where;
        launch->share = where->share;
    }
    memcpy(launch->grid, grid, sizeof launch->grid);
    memcpy(launch->block, block, sizeof launch->block);
    launch->dynamic_shared = dynamic_shared;
    status = op_set_attributes(op, attributes ? attributes : &none);
    if (unlikely(status)) {
        op_free(op);
        return status;
    }
    *result = op;
    return CUDA_SUCCESS;
}

static CUresult prepare_on(CUstream stream, CUfunction handle, const unsigned grid[3], const unsigned block[3],
                           unsigned dynamic_shared, void **params, void **extra,
                           const struct launch_attributes *attributes, struct op **op) {
    CUfunction function;
    RETURN_IF(function_find(handle, stream->context, &function));
    if (unlikely(function->module->context != stream->context))
        return fail(CUDA_ERROR_INVALID_HANDLE, "%s was loaded into another context than the stream's",
                    cpu_kernel_name(function->kernel));
    if (unlikely(function->image_kernel->info->launches & CPU_LAUNCHES_GRAPHS && !stream_is_capturing(stream)))
        return fail(
            CUDA_ERROR_NOT_SUPPORTED,
            "%s calls cudaGraphLaunch, so it runs only as a node of a graph: capture the launch, or add it to a graph",
            cpu_kernel_name(function->kernel));
    return launch_prepare(function, grid, block, dynamic_shared, params, extra, attributes, stream->green, op);
}

/* For CUDA_LAUNCH_BLOCKING, by which a fault belongs to the launch that has it. */
static CUresult wait_for_launch(CUstream stream) {
    if (stream_is_capturing(stream)) return CUDA_SUCCESS;
    RETURN_IF(stream_wait_interruptibly(stream, atomic_load(&stream->submitted)));
    if (moments()) moment_host_waited(stream);
    return context_error(stream->context);
}

/* What the launch does to limits of the context. A graph does it when it is launched. */
static void note_kernel(CUstream stream, const struct op *op) {
    const cpu_kernel_info *info = op->kernel.function->image_kernel->info;
    if (unlikely(info->system_calls || info->local_bytes) && !stream_is_capturing(stream))
        context_note_kernels(stream->context, info->system_calls, info->local_bytes);
}

static CUresult launch_on(CUstream stream, CUfunction handle, const unsigned grid[3], const unsigned block[3],
                          unsigned dynamic_shared, void **params, void **extra,
                          const struct launch_attributes *attributes) {
    struct op *op;
    RETURN_IF(prepare_on(stream, handle, grid, block, dynamic_shared, params, extra, attributes, &op));
    note_kernel(stream, op);
    RETURN_IF(stream_submit(stream, op));
    return unlikely(settings.launch_blocking) ? wait_for_launch(stream) : CUDA_SUCCESS;
}

/* ---- entry points ---------------------------------------------------------------------------------------------- */

CUresult cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                        unsigned bz, unsigned dynamic_shared, CUstream handle, void **params, void **extra) {
    CUstream stream;
    RETURN_IF(enter_stream(handle, &stream));
    return launch_on(stream, function, (unsigned[]){gx, gy, gz}, (unsigned[]){bx, by, bz}, dynamic_shared, params,
                     extra, NULL);
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                                   unsigned bz, unsigned dynamic_shared, CUstream handle, void **params) {
    CUstream stream;
    struct launch_attributes attributes = {.cooperative = 1};
    RETURN_IF(enter_stream(handle, &stream));
    return launch_on(stream, function, (unsigned[]){gx, gy, gz}, (unsigned[]){bx, by, bz}, dynamic_shared, params, NULL,
                     &attributes);
}

/* What a launch asks for beside what its operation keeps. Work of one stream runs in order, so programmatic
 * serialization and completion events are kept by doing things later than allowed. */
struct requests {
    CUevent events[2];
    unsigned event_count;
    CUlaunchAttribute *updatable; /* where the handle of a device-updatable node goes; NULL: none asked for */
};

static CUresult read_event(const CUlaunchAttribute *attribute, bool captures, struct requests *requests) {
    /* Both kinds begin with the event and its flags. */
    CUevent event = attribute->value.launchCompletionEvent.event;
    int flags = attribute->value.launchCompletionEvent.flags;
    if (!handle_is_live(event, HANDLE_EVENT)) return fail_handle("event", event, HANDLE_EVENT);
    if (flags)
        return fail(captures ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_ILLEGAL_STATE,
                    "the event of a launch takes no flags, not %#x", (unsigned)flags);
    if (!(event->flags & CU_EVENT_DISABLE_TIMING) || event->shared)
        return fail(CUDA_ERROR_NOT_SUPPORTED,
                    "the event of a launch must be made without timing (CU_EVENT_DISABLE_TIMING) and for this process");
    if (requests->event_count == 2) return fail(CUDA_ERROR_INVALID_VALUE, "a launch attribute is given twice");
    requests->events[requests->event_count++] = event;
    return CUDA_SUCCESS;
}

static CUresult read_attributes(const CUlaunchConfig *config, bool captures, struct launch_attributes *attributes,
                                struct requests *requests) {
    if (config->numAttrs && !config->attrs) return fail_null("attrs");
    for (unsigned i = 0; i < config->numAttrs; i++) {
        const CUlaunchAttributeValue *value = &config->attrs[i].value;
        switch ((int)config->attrs[i].id) {
            case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION: break;
            case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
            case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
                RETURN_IF(read_event(&config->attrs[i], captures, requests));
                break;
            case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
                if ((unsigned)value->deviceUpdatableKernelNode.deviceUpdatable > 1)
                    return fail(CUDA_ERROR_INVALID_VALUE, "deviceUpdatable is %d: it must be 0 or 1",
                                value->deviceUpdatableKernelNode.deviceUpdatable);
                if (value->deviceUpdatableKernelNode.deviceUpdatable) requests->updatable = &config->attrs[i];
                break;
            default: RETURN_IF(attribute_set(attributes, config->attrs[i].id, value));
        }
    }
    return CUDA_SUCCESS;
}

CUresult launch_read_attributes(const CUlaunchConfig *config, struct launch_attributes *attributes) {
    struct requests ignored = {0};
    return read_attributes(config, false, attributes, &ignored);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **params, void **extra) {
    CUstream stream;
    struct launch_attributes attributes = {0};
    struct requests requests = {0};
    if (!config) return fail_null("config");
    RETURN_IF(enter_stream(config->hStream, &stream));
    if (config->numAttrs) RETURN_IF(read_attributes(config, stream_is_capturing(stream), &attributes, &requests));
    const unsigned grid[] = {config->gridDimX, config->gridDimY, config->gridDimZ};
    const unsigned block[] = {config->blockDimX, config->blockDimY, config->blockDimZ};
    struct op *op;
    RETURN_IF(prepare_on(stream, function, grid, block, config->sharedMemBytes, params, extra,
                         config->numAttrs ? &attributes : NULL, &op));
    if (unlikely(requests.updatable != NULL))
        RETURN_IF(capture_add_updatable(stream, op, &requests.updatable->value.deviceUpdatableKernelNode.devNode));
    else {
        note_kernel(stream, op);
        RETURN_IF(stream_submit(stream, op));
    }
    for (unsigned i = 0; i < requests.event_count; i++) RETURN_IF(event_record(requests.events[i], stream, 0));
    return unlikely(settings.launch_blocking) ? wait_for_launch(stream) : CUDA_SUCCESS;
}

PER_THREAD(cuLaunchKernel,
           (CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned n,
            CUstream s, void **p, void **e),
           (f, gx, gy, gz, bx, by, bz, n, s, p, e))
PER_THREAD(cuLaunchCooperativeKernel,
           (CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned n,
            CUstream s, void **p),
           (f, gx, gy, gz, bx, by, bz, n, s, p))
PER_THREAD(cuLaunchKernelEx, (const CUlaunchConfig *c, CUfunction f, void **p, void **e), (c, f, p, e))

const struct entry launch_entries[] = {
    ENTRY_STREAM(cuLaunchKernel),
    ENTRY_STREAM(cuLaunchKernelEx),
    ENTRY_STREAM(cuLaunchCooperativeKernel),
    {NULL, NULL, NULL},
};
