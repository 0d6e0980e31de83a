/* Limits of contexts (CUDA Driver API, "Context Management": cuCtxSetLimit). What values become was recorded on an H200 (driver
 * 580.159; tests/cpu/driver/base/test_limit.py). */
#include "base.h"

enum {
    STACK_UNIT = 16,
    MOST_STACK = 523712,     /* bytes of a thread */
    LEAST_PRINT = 512 << 10, /* bytes of what kernels print */
    LEAST_HEAP = 4 << 20,
    HEAP_UNIT = 64 << 10,
    PRINT_OF_PROCESSOR = 65536 /* of each multiprocessor, when the program has not said */
};

static const size_t defaults[CU_LIMIT_MAX] = {
    [CU_LIMIT_STACK_SIZE] = 1024,
    [CU_LIMIT_MALLOC_HEAP_SIZE] = 8388608,
    [CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH] = 2,
    [CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048,
    [CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64,
};

/* At most SIZE_MAX / 2 bytes. */
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

bool context_has_limit(CUlimit limit) {
    return limit == CU_LIMIT_STACK_SIZE || limit == CU_LIMIT_PRINTF_FIFO_SIZE || limit == CU_LIMIT_MALLOC_HEAP_SIZE ||
           limit == CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH || limit == CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT ||
           limit == CU_LIMIT_MAX_L2_FETCH_GRANULARITY || limit == CU_LIMIT_PERSISTING_L2_CACHE_SIZE;
}

static CUresult find(CUlimit limit, CUcontext *context) {
    RETURN_IF(context_find(NULL, context));
    if ((unsigned)limit >= CU_LIMIT_MAX) return fail(CUDA_ERROR_INVALID_VALUE, "%d is not a CUlimit", (int)limit);
    if (context_has_limit(limit)) return CUDA_SUCCESS;
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
            break;
        case CU_LIMIT_MALLOC_HEAP_SIZE:
            if (context->system_calls & CPU_CALLS_HEAP)
                return fail(CUDA_ERROR_INVALID_VALUE, "CU_LIMIT_MALLOC_HEAP_SIZE is set before the first launch of a "
                                                      "kernel that calls malloc or free");
            if (*value > SIZE_MAX / 2)
                return fail(CUDA_ERROR_INVALID_VALUE, "a heap of %zu bytes is more than there can be", *value);
            *value = *value < LEAST_HEAP ? LEAST_HEAP : whole_units(*value, HEAP_UNIT);
            break;
        case CU_LIMIT_MAX_L2_FETCH_GRANULARITY:
            if (*value > 128)
                return fail(CUDA_ERROR_INVALID_VALUE, "the L2 fetch granularity is at most 128 bytes, not %zu", *value);
            break;
        case CU_LIMIT_PERSISTING_L2_CACHE_SIZE:
            if (*value > (size_t)model->l2_persisting) *value = (size_t)model->l2_persisting;
            break;
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
