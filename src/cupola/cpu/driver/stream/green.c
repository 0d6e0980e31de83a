/* Green contexts (CUDA Driver API, "Green Contexts"): contexts whose kernels run on some of the multiprocessors.
 *
 * Everything that is made in one, except streams, belongs to the primary context of the device, which it retains. Its
 * kernels get the same share of the worker threads as it has of the multiprocessors (engine/schedule/share.c). When it
 * is destroyed, the work that is queued in its streams is still done, but no more can be queued. */
#include "green.h"

#include <stdlib.h>

#include "moment.h"

static CUresult find_green(CUgreenCtx green) {
    RETURN_IF(enter());
    if (handle_is_live(green, HANDLE_GREEN)) return CUDA_SUCCESS;
    if (handle_was_live(green, HANDLE_GREEN))
        return fail(CUDA_ERROR_CONTEXT_IS_DESTROYED, "the green context has been destroyed");
    return fail(CUDA_ERROR_INVALID_CONTEXT, "%p is not a green context of the CPU device", (void *)green);
}

/* ---- life ------------------------------------------------------------------------------------------------------ */

enum { CREATE_FLAGS = CU_GREEN_CTX_DEFAULT_STREAM, FLAGS_MAY_BE_NONE = 13010 /* since that version of CUDA */ };

static CUresult make(const struct CUdevResourceDesc_st *desc, unsigned flags, CUgreenCtx *result) {
    CUgreenCtx green = handle_make(HANDLE_GREEN, sizeof *green);
    if (!green) return no_memory("a green context");
    CUresult status = context_new_green(desc->device, &desc->part, &green->context);
    if (status) {
        handle_free(HANDLE_GREEN, green);
        return status;
    }
    green->queues = desc->queues;
    green->context->green = green;
    green->context->has_default_stream = flags & CU_GREEN_CTX_DEFAULT_STREAM;
    handle_publish(green);
    *result = green;
    return CUDA_SUCCESS;
}

CUresult cuGreenCtxCreate(CUgreenCtx *result, CUdevResourceDesc desc, CUdevice ordinal, unsigned flags) {
    struct device *device = NULL;
    pass_gate();
    RETURN_IF(device_get(ordinal, &device));
    if (!result) return fail_null("phCtx");
    if (!handle_is_live(desc, HANDLE_RESOURCE_DESC))
        return fail(CUDA_ERROR_INVALID_VALUE, "%p is not a descriptor of cuDevResourceGenerateDesc", (void *)desc);
    if (flags & ~(unsigned)CREATE_FLAGS)
        return fail(CUDA_ERROR_INVALID_VALUE, "%#x are not flags of a green context (CUgreenCtxCreate_flags)", flags);
    if (!flags && settings.version < FLAGS_MAY_BE_NONE)
        return fail(CUDA_ERROR_INVALID_VALUE, "the flags of a green context must be CU_GREEN_CTX_DEFAULT_STREAM (1)");
    if (!desc->part.count)
        return fail(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION, "a green context needs multiprocessors");
    if (desc->device != device)
        return fail(CUDA_ERROR_INVALID_VALUE, "the resources are of device %d, not of %d", desc->device->ordinal,
                    ordinal);
    return make(desc, flags, result);
}

/* Its default streams are destroyed with it. Streams that the program made can only be destroyed from now on. */
static void detach(CUcontext context) {
    size_t count;
    CUstream *streams = context_streams(context->owner, &count);
    for (size_t i = 0; streams && i < count; i++) {
        CUstream stream = streams[i];
        if (stream->green == context) {
            if (stream_is_capturing(stream)) (void)capture_refuse(stream, "cuGreenCtxDestroy");
            if ((stream->role != STREAM_USER || stream == context->gate) && handle_kill(stream)) stream_release(stream);
        }
        stream_release(stream);
    }
    free(streams);
}

CUresult cuGreenCtxDestroy(CUgreenCtx green) {
    pass_gate();
    RETURN_IF(find_green(green));
    if (!handle_kill(green)) return fail(CUDA_ERROR_CONTEXT_IS_DESTROYED, "the green context has been destroyed");
    CUcontext context = green->context;
    context->active = false;
    detach(context);
    context_end_green(context);
    return CUDA_SUCCESS;
}

/* ---- what it has ----------------------------------------------------------------------------------------------- */

CUresult cuCtxFromGreenCtx(CUcontext *context, CUgreenCtx green) {
    RETURN_IF(find_green(green));
    if (!context) return fail_null("pContext");
    *context = green->context;
    return CUDA_SUCCESS;
}

CUresult cuGreenCtxGetDevResource(CUgreenCtx green, CUdevResource *resource, CUdevResourceType type) {
    RETURN_IF(find_green(green));
    return context_resource(green->context, resource, type);
}

CUresult cuGreenCtxGetId(CUgreenCtx green, unsigned long long *id) {
    RETURN_IF(enter());
    if (!green && current_context()) green = current_context()->green;
    RETURN_IF(find_green(green));
    if (!id) return fail_null("greenCtxId");
    *id = green->context->id;
    return CUDA_SUCCESS;
}

CUresult cuGreenCtxStreamCreate(CUstream *stream, CUgreenCtx green, unsigned flags, int priority) {
    pass_gate();
    RETURN_IF(find_green(green));
    RETURN_IF(context_check(green->context));
    if (!(flags & CU_STREAM_NON_BLOCKING))
        return fail(CUDA_ERROR_INVALID_VALUE,
                    "the flags of a stream in a green context are %#x: they must be CU_STREAM_NON_BLOCKING (1)", flags);
    return stream_create(green->context, flags, priority, stream);
}

CUresult cuStreamGetGreenCtx(CUstream handle, CUgreenCtx *green) {
    CUstream stream;
    RETURN_IF(enter_stream(handle, &stream));
    if (!green) return fail_null("phCtx");
    *green = stream->green ? stream->green->green : NULL;
    return CUDA_SUCCESS;
}

/* ---- events of all its streams --------------------------------------------------------------------------------- */

/* The streams of the context, of a green one its own; none of them may be capturing. To be given back with let_go(). */
static CUresult streams_of(CUcontext context, const char *call, CUstream **result, size_t *count) {
    CUresult status = CUDA_SUCCESS;
    size_t all, kept = 0;
    CUstream *streams = context_streams(context->owner, &all);
    if (all && !streams) return no_memory("a list of the streams");
    for (size_t i = 0; i < all; i++) {
        if (streams[i]->green == (context->green ? context : NULL)) {
            if (stream_is_capturing(streams[i])) status = capture_refuse(streams[i], call);
            streams[kept++] = streams[i];
        } else {
            stream_release(streams[i]);
        }
    }
    *result = streams;
    *count = kept;
    return status;
}

static void let_go(CUstream *streams, size_t count) {
    for (size_t i = 0; i < count; i++) stream_release(streams[i]);
    free(streams);
}

/* A stream of its own waits for all others, and the event is recorded behind that. */
static CUresult record_all(CUcontext context, CUevent event, const char *call) {
    CUstream *streams = NULL, gate = NULL;
    size_t count = 0;
    if (!handle_is_live(event, HANDLE_EVENT)) return fail_handle("event", event, HANDLE_EVENT);
    if (event->context != context->owner)
        return fail(CUDA_ERROR_INVALID_HANDLE, "the event was made on another device than the context");
    CUresult status = streams_of(context, call, &streams, &count);
    if (!status) status = stream_create(context, CU_STREAM_NON_BLOCKING, 0, &gate);
    for (size_t i = 0; i < count && !status; i++) {
        if (moments()) moment_waits_for(gate, streams[i]);
        if (!stream_is_busy(streams[i])) continue;
        struct op *op = op_new_wait(context->owner, handle_retain(streams[i]), atomic_load(&streams[i]->submitted));
        status = op ? stream_submit(gate, op) : no_memory("the operation");
    }
    if (!status) status = event_record(event, gate, 0);
    if (gate) (void)cuStreamDestroy(gate);
    let_go(streams, count);
    return status;
}

/* Streams that are made later wait, too: for a stream that waits for all such events. */
static CUresult need_gate(CUcontext context) {
    CUstream made = NULL, none = NULL;
    if (atomic_load(&context->gate)) return CUDA_SUCCESS;
    RETURN_IF(stream_create(context, CU_STREAM_NON_BLOCKING, 0, &made));
    if (!atomic_compare_exchange_strong(&context->gate, &none, made)) (void)cuStreamDestroy(made);
    return CUDA_SUCCESS;
}

static CUresult wait_all(CUcontext context, CUevent event, const char *call) {
    CUstream *streams = NULL;
    size_t count = 0;
    if (!handle_is_live(event, HANDLE_EVENT)) return fail_handle("event", event, HANDLE_EVENT);
    if (capture_owns_event(event))
        return fail(CUDA_ERROR_CAPTURED_EVENT, "%s: the event was last recorded in a stream that captures", call);
    RETURN_IF(need_gate(context));
    CUresult status = streams_of(context, call, &streams, &count);
    for (size_t i = 0; i < count && !status; i++)
        if (handle_is_live(streams[i], HANDLE_STREAM)) status = cuStreamWaitEvent(streams[i], event, 0);
    let_go(streams, count);
    return status;
}

CUresult cuGreenCtxRecordEvent(CUgreenCtx green, CUevent event) {
    pass_gate();
    RETURN_IF(find_green(green));
    return record_all(green->context, event, "cuGreenCtxRecordEvent");
}

CUresult cuGreenCtxWaitEvent(CUgreenCtx green, CUevent event) {
    pass_gate();
    RETURN_IF(find_green(green));
    return wait_all(green->context, event, "cuGreenCtxWaitEvent");
}

CUresult cuCtxRecordEvent(CUcontext context, CUevent event) {
    pass_gate();
    RETURN_IF(enter());
    if (!context) return fail(CUDA_ERROR_INVALID_CONTEXT, "the context is null");
    RETURN_IF(context_find_itself(context, &context));
    return record_all(context, event, "cuCtxRecordEvent");
}

CUresult cuCtxWaitEvent(CUcontext context, CUevent event) {
    pass_gate();
    RETURN_IF(enter());
    if (!context) return fail(CUDA_ERROR_INVALID_CONTEXT, "the context is null");
    RETURN_IF(context_find_itself(context, &context));
    return wait_all(context, event, "cuCtxWaitEvent");
}

const struct entry green_entries[] = {
    ENTRY(cuGreenCtxCreate),         ENTRY(cuGreenCtxDestroy),     ENTRY(cuCtxFromGreenCtx),
    ENTRY(cuGreenCtxGetDevResource), ENTRY(cuGreenCtxGetId),       ENTRY(cuGreenCtxStreamCreate),
    ENTRY(cuStreamGetGreenCtx),      ENTRY(cuGreenCtxRecordEvent), ENTRY(cuGreenCtxWaitEvent),
    ENTRY(cuCtxRecordEvent),         ENTRY(cuCtxWaitEvent),        {NULL, NULL, NULL},
};
