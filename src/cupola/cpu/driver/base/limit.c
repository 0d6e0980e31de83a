/* Limits of contexts (CUDA Driver API, "Context Management": cuCtxSetLimit). What values become was recorded on an H200 (driver
 * 580.159; tests/cpu/driver/base/test_limit.py). */
#include "base.h"

enum {
    STACK_UNIT = 16,
    MOST_STACK = 523712, /* bytes of a thread */
    PRINT_UNIT = 256,    /* of what kernels print */
    LEAST_PRINT = 512 << 10,
    PRINT_OF_PROCESSOR = 65536, /* for each multiprocessor, when the program has not said */
    HEAP_UNIT = 64 << 10,
    LEAST_HEAP = 4 << 20,
    LEAST_PENDING = 32, /* launches by kernels */
    MOST_PENDING = 599186,
    PERSISTING_PARTS = 10, /* of the L2 cache that can be set aside */
};
#define MOST_PRINT ((size_t)2 << 30)

static const size_t defaults[CU_LIMIT_MAX] = {
    [CU_LIMIT_STACK_SIZE] = 1024,
    [CU_LIMIT_MALLOC_HEAP_SIZE] = 8388608,
    [CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH] = 2,
    [CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048,
    [CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64,
};

static size_t whole_units(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

/* All threads that can be resident have a stack. */
static size_t largest_stack(const struct model *model) {
    const size_t threads = (size_t)model->multiprocessors * (size_t)model->threads_per_multiprocessor;
    const size_t share = model->memory / threads / STACK_UNIT * STACK_UNIT;
    return share < MOST_STACK ? share : MOST_STACK;
}

void context_begin_limits(CUcontext context) {
    for (int i = 0; i < CU_LIMIT_MAX; i++) context->limits[i] = defaults[i];
    context->limits[CU_LIMIT_PRINTF_FIFO_SIZE] = (size_t)context->device->model->multiprocessors * PRINT_OF_PROCESSOR;
    context->limits[CU_LIMIT_SHMEM_SIZE] = (size_t)context->device->model->shared_per_block_optin;
    context->system_calls = 0;
    context->heap.used = 0;
    context->heap.limit = context->limits[CU_LIMIT_MALLOC_HEAP_SIZE];
}

void context_note_kernels(CUcontext context, uint32_t system_calls, size_t local_bytes) {
    if (unlikely(system_calls & ~atomic_load_explicit(&context->system_calls, memory_order_relaxed)))
        atomic_fetch_or(&context->system_calls, system_calls);
    if (unlikely(local_bytes > atomic_load_explicit(&context->limits[CU_LIMIT_STACK_SIZE], memory_order_relaxed)))
        context->limits[CU_LIMIT_STACK_SIZE] = whole_units(local_bytes, STACK_UNIT);
}

bool context_has_limit(CUcontext context, CUlimit limit) {
    switch ((int)limit) {
        case CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH: return context->device->model->major < 9;
        case CU_LIMIT_STACK_SIZE:
        case CU_LIMIT_PRINTF_FIFO_SIZE:
        case CU_LIMIT_MALLOC_HEAP_SIZE:
        case CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT:
        case CU_LIMIT_MAX_L2_FETCH_GRANULARITY:
        case CU_LIMIT_PERSISTING_L2_CACHE_SIZE:
        case CU_LIMIT_SHMEM_SIZE:
        case CU_LIMIT_CIG_ENABLED:
        case CU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED: return true;
        default: return false;
    }
}

static CUresult find(CUlimit limit, CUcontext *context) {
    RETURN_IF(context_find(NULL, context));
    if ((unsigned)limit >= CU_LIMIT_MAX) return fail(CUDA_ERROR_INVALID_VALUE, "%d is not a CUlimit", (int)limit);
    if (context_has_limit(*context, limit)) return CUDA_SUCCESS;
    return fail(CUDA_ERROR_UNSUPPORTED_LIMIT, "the CPU device has no limit %d (CUlimit)", (int)limit);
}

CUresult cuCtxGetLimit(size_t *value, CUlimit limit) {
    CUcontext context;
    RETURN_IF(find(limit, &context));
    if (!value) return fail_null("pvalue");
    *value = context->limits[limit];
    return CUDA_SUCCESS;
}

/* What the limit becomes. */
static CUresult check(CUcontext context, CUlimit limit, size_t *value) {
    const struct model *model = context->device->model;
    switch ((int)limit) {
        case CU_LIMIT_STACK_SIZE:
            if (*value > largest_stack(model))
                return fail(CUDA_ERROR_INVALID_VALUE, "a thread's stack has at most %zu bytes on this device, not %zu",
                            largest_stack(model), *value);
            *value = whole_units(*value, STACK_UNIT);
            break;
        case CU_LIMIT_PRINTF_FIFO_SIZE:
            if (context->system_calls & CPU_CALLS_PRINTF)
                return fail(CUDA_ERROR_INVALID_VALUE,
                            "CU_LIMIT_PRINTF_FIFO_SIZE is set before the first launch of a kernel that prints");
            if (*value < LEAST_PRINT) *value = LEAST_PRINT;
            *value = *value < MOST_PRINT ? whole_units(*value, PRINT_UNIT) : MOST_PRINT;
            break;
        case CU_LIMIT_MALLOC_HEAP_SIZE:
            if (context->system_calls & CPU_CALLS_HEAP)
                return fail(CUDA_ERROR_INVALID_VALUE, "CU_LIMIT_MALLOC_HEAP_SIZE is set before the first launch of a "
                                                      "kernel that calls malloc or free");
            if (*value > model->memory) *value = model->memory;
            *value = *value < LEAST_HEAP ? LEAST_HEAP : whole_units(*value, HEAP_UNIT);
            break;
        case CU_LIMIT_MAX_L2_FETCH_GRANULARITY:
            if (*value > 128)
                return fail(CUDA_ERROR_INVALID_VALUE, "the L2 fetch granularity is at most 128 bytes, not %zu", *value);
            break;
        case CU_LIMIT_PERSISTING_L2_CACHE_SIZE:
            if (*value > (size_t)model->l2_persisting)
                return fail(CUDA_ERROR_INVALID_VALUE, "at most %d bytes of the L2 cache can be set aside, not %zu",
                            model->l2_persisting, *value);
            if (*value) *value = whole_units(*value, (size_t)model->l2_persisting / PERSISTING_PARTS);
            break;
        case CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT:
            if (*value < LEAST_PENDING) *value = LEAST_PENDING;
            if (*value > MOST_PENDING) *value = MOST_PENDING;
            break;
        case CU_LIMIT_SHMEM_SIZE:
        case CU_LIMIT_CIG_ENABLED:
        case CU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED:
            return fail(CUDA_ERROR_NOT_PERMITTED, "limit %d (CUlimit) can only be asked for", (int)limit);
        default: break;
    }
    return CUDA_SUCCESS;
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value) {
    CUcontext context;
    RETURN_IF(find(limit, &context));
    RETURN_IF(check(context, limit, &value));
    context->limits[limit] = value;
    if (limit == CU_LIMIT_MALLOC_HEAP_SIZE) context->heap.limit = value;
    return CUDA_SUCCESS;
}

const struct entry limit_entries[] = {
    ENTRY(cuCtxGetLimit),
    ENTRY(cuCtxSetLimit),
    {NULL, NULL, NULL},
};
