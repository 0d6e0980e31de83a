/* Execution contexts: calls that name the context they are about instead of using the thread's (CUDA Runtime API,
 * "Execution Context Management"). One is the primary context of a device, the others are green contexts, which stand
 * here for the CUcontext that the driver gives for them. Records of resources are those of the driver. */
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

_Static_assert(sizeof(cudaDevResource) == sizeof(CUdevResource) &&
                   sizeof(cudaDevSmResourceGroupParams) == sizeof(CU_DEV_SM_RESOURCE_GROUP_PARAMS),
               "the records of the runtime are those of the driver");

static CUresult create_green(cudaExecutionContext_t *execution, cudaDevResourceDesc_t description, int device,
                             unsigned flags) {
    CUgreenCtx green;
    if (!execution) return fail_null("phCtx");
    if (flags) return fail(CUDA_ERROR_INVALID_VALUE, "the flags of cudaGreenCtxCreate must be 0, not %#x", flags);
    RETURN_IF(cuGreenCtxCreate(&green, (CUdevResourceDesc)description, device, CU_GREEN_CTX_DEFAULT_STREAM));
    return cuCtxFromGreenCtx((CUcontext *)execution, green);
}

static CUresult destroy(cudaExecutionContext_t execution) {
    CUcontext context;
    RETURN_IF(context_of(execution, &context));
    if (!handle_was_live(context, HANDLE_CONTEXT) || !context->green)
        return fail(CUDA_ERROR_INVALID_VALUE,
                    "ctx is no green context; a primary context stays as long as it is retained");
    if (!context_is_alive(context)) return fail(CUDA_ERROR_INVALID_VALUE, "the green context has been destroyed");
    return cuGreenCtxDestroy(context->green);
}

static CUresult get_resource(cudaExecutionContext_t execution, cudaDevResource *resource,
                             enum cudaDevResourceType type) {
    CUcontext context;
    RETURN_IF(context_of(execution, &context));
    return cuCtxGetDevResource(context, (CUdevResource *)resource, (CUdevResourceType)type);
}

static CUresult record_event(cudaExecutionContext_t execution, cudaEvent_t event) {
    CUcontext context;
    RETURN_IF(context_of(execution, &context));
    return cuCtxRecordEvent(context, event);
}

static CUresult wait_event(cudaExecutionContext_t execution, cudaEvent_t event) {
    CUcontext context;
    RETURN_IF(context_of(execution, &context));
    return cuCtxWaitEvent(context, event);
}

RUNTIME_BARE(cudaDeviceGetDevResource, (int device, cudaDevResource *resource, enum cudaDevResourceType type),
             cuDeviceGetDevResource(device, (CUdevResource *)resource, (CUdevResourceType)type))
RUNTIME_BARE(cudaDevSmResourceSplitByCount,
             (cudaDevResource *result, unsigned *nbGroups, const cudaDevResource *input, cudaDevResource *remaining,
              unsigned flags, unsigned minCount),
             cuDevSmResourceSplitByCount((CUdevResource *)result, nbGroups, (const CUdevResource *)input,
                                         (CUdevResource *)remaining, flags, minCount))
RUNTIME_BARE(cudaDevSmResourceSplit,
             (cudaDevResource *result, unsigned nbGroups, const cudaDevResource *input, cudaDevResource *remainder,
              unsigned flags, cudaDevSmResourceGroupParams *groupParams),
             cuDevSmResourceSplit((CUdevResource *)result, nbGroups, (const CUdevResource *)input,
                                  (CUdevResource *)remainder, flags, (CU_DEV_SM_RESOURCE_GROUP_PARAMS *)groupParams))
RUNTIME_BARE(cudaDevResourceGenerateDesc,
             (cudaDevResourceDesc_t * phDesc, cudaDevResource *resources, unsigned nbResources),
             cuDevResourceGenerateDesc((CUdevResourceDesc *)phDesc, (CUdevResource *)resources, nbResources))
RUNTIME_BARE(cudaGreenCtxCreate,
             (cudaExecutionContext_t *phCtx, cudaDevResourceDesc_t desc, int device, unsigned flags),
             create_green(phCtx, desc, device, flags))
RUNTIME_BARE(cudaExecutionCtxDestroy, (cudaExecutionContext_t ctx), destroy(ctx))
RUNTIME_BARE(cudaExecutionCtxGetDevResource,
             (cudaExecutionContext_t ctx, cudaDevResource *resource, enum cudaDevResourceType type),
             get_resource(ctx, resource, type))
RUNTIME_BARE(cudaExecutionCtxRecordEvent, (cudaExecutionContext_t ctx, cudaEvent_t event), record_event(ctx, event))
RUNTIME_BARE(cudaExecutionCtxWaitEvent, (cudaExecutionContext_t ctx, cudaEvent_t event), wait_event(ctx, event))
RUNTIME_STREAM(cudaStreamGetDevResource,
               (cudaStream_t hStream, cudaDevResource *resource, enum cudaDevResourceType type),
               (hStream, resource, type),
               cuStreamGetDevResource(hStream, (CUdevResource *)resource, (CUdevResourceType)type))
RUNTIME_BARE(cudaDeviceGetExecutionCtx, (cudaExecutionContext_t *ctx, int device),
             ctx ? primary_context(device, (CUcontext *)ctx) : fail_null("ctx"))
RUNTIME_BARE(cudaExecutionCtxGetDevice, (int *device, cudaExecutionContext_t ctx), get_device(device, ctx))
RUNTIME_BARE(cudaExecutionCtxGetId, (cudaExecutionContext_t ctx, unsigned long long *ctxId), get_id(ctx, ctxId))
RUNTIME_BARE(cudaExecutionCtxStreamCreate,
             (cudaStream_t *phStream, cudaExecutionContext_t ctx, unsigned flags, int priority),
             create_stream(phStream, ctx, flags, priority))
RUNTIME_BARE(cudaExecutionCtxSynchronize, (cudaExecutionContext_t ctx), synchronize(ctx))

const struct entry runtime_execution_context_entries[] = {
    RUNTIME_ENTRY(cudaDeviceGetExecutionCtx),       RUNTIME_ENTRY(cudaExecutionCtxGetDevice),
    RUNTIME_ENTRY(cudaExecutionCtxGetId),           RUNTIME_ENTRY(cudaExecutionCtxStreamCreate),
    RUNTIME_ENTRY(cudaExecutionCtxSynchronize),     RUNTIME_ENTRY(cudaDeviceGetDevResource),
    RUNTIME_ENTRY(cudaDevSmResourceSplitByCount),   RUNTIME_ENTRY(cudaDevSmResourceSplit),
    RUNTIME_ENTRY(cudaDevResourceGenerateDesc),     RUNTIME_ENTRY(cudaGreenCtxCreate),
    RUNTIME_ENTRY(cudaExecutionCtxDestroy),         RUNTIME_ENTRY(cudaExecutionCtxGetDevResource),
    RUNTIME_ENTRY(cudaExecutionCtxRecordEvent),     RUNTIME_ENTRY(cudaExecutionCtxWaitEvent),
    RUNTIME_ENTRY_STREAM(cudaStreamGetDevResource), {NULL, NULL, NULL},
};
