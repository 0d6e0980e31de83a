/* Execution contexts: calls that name the context they are about instead of using the thread's (CUDA Runtime API,
 * "Execution Context Management"). One is the primary context of a device: the emulated driver has no green
 * contexts. */
#include "cudart.h"

static CUresult context_of(cudaExecutionContext_t execution, CUcontext *context) {
    if (!execution) return fail(CUDA_ERROR_INVALID_VALUE, "ctx is NULL: take the one of cudaDeviceGetExecutionCtx");
    *context = (CUcontext)execution;
    return CUDA_SUCCESS;
}

static CUresult create_stream(cudaStream_t *stream, cudaExecutionContext_t execution, unsigned flags, int priority) {
    CUcontext context;
    RETURN_IF(context_of(execution, &context));
    RETURN_IF(cuCtxPushCurrent(context));
    CUresult status = cuStreamCreateWithPriority(stream, flags, priority);
    cuCtxPopCurrent(&context);
    return status;
}

static CUresult get_device(int *device, cudaExecutionContext_t execution) {
    CUcontext context;
    RETURN_IF(context_of(execution, &context));
    return cuCtxGetDevice_v2(device, context);
}

static CUresult get_id(cudaExecutionContext_t execution, unsigned long long *id) {
    CUcontext context;
    RETURN_IF(context_of(execution, &context));
    return cuCtxGetId(context, id);
}

static CUresult synchronize(cudaExecutionContext_t execution) {
    CUcontext context;
    RETURN_IF(context_of(execution, &context));
    return cuCtxSynchronize_v2(context);
}

RUNTIME_BARE(cudaDeviceGetExecutionCtx, (cudaExecutionContext_t *ctx, int device),
             ctx ? primary_context(device, (CUcontext *)ctx) : fail_null("ctx"))
RUNTIME_BARE(cudaExecutionCtxGetDevice, (int *device, cudaExecutionContext_t ctx), get_device(device, ctx))
RUNTIME_BARE(cudaExecutionCtxGetId, (cudaExecutionContext_t ctx, unsigned long long *ctxId), get_id(ctx, ctxId))
RUNTIME_BARE(cudaExecutionCtxStreamCreate,
             (cudaStream_t *phStream, cudaExecutionContext_t ctx, unsigned flags, int priority),
             create_stream(phStream, ctx, flags, priority))
RUNTIME_BARE(cudaExecutionCtxSynchronize, (cudaExecutionContext_t ctx), synchronize(ctx))

const struct entry runtime_execution_context_entries[] = {
    RUNTIME_ENTRY(cudaDeviceGetExecutionCtx),   RUNTIME_ENTRY(cudaExecutionCtxGetDevice),
    RUNTIME_ENTRY(cudaExecutionCtxGetId),       RUNTIME_ENTRY(cudaExecutionCtxStreamCreate),
    RUNTIME_ENTRY(cudaExecutionCtxSynchronize), {NULL, NULL, NULL},
};
