/* Streams: their life, the default ones, and the entry points; queue.c has what they do (CUDA Driver API, "Stream
 * Management"). */
#include <stdlib.h>

#include "engine/memory/memory.h"
#include "moment.h"
#include "stream.h"

enum { STREAMS_ARE_DETACHED = 13010 }; /* the version of CUDA since which a stream outlives its green context */

static _Atomic uint64_t next_id = 3; /* 1 and 2 stand for the default streams */

/* ---- entering ------------------------------------------------------------------------------------------------ */

CUresult enter_stream(CUstream handle, CUstream *stream) {
    pass_gate();
    return enter_stream_to_ask(handle, stream);
}

CUresult enter_stream_to_ask(CUstream handle, CUstream *stream) {
    if (likely((uintptr_t)handle > (uintptr_t)CU_STREAM_PER_THREAD)) {
        RETURN_IF(enter());
        if (unlikely(!handle_is_live(handle, HANDLE_STREAM))) {
            CUcontext context;
            RETURN_IF(enter_context_to_ask(&context)); /* a spoiled or missing context is the better diagnosis */
            return fail_handle("stream", handle, HANDLE_STREAM);
        }
        RETURN_IF(context_check(handle->context));
        if (unlikely(handle->green && !context_is_alive(handle->green)))
            return fail(settings.version < STREAMS_ARE_DETACHED ? CUDA_ERROR_CONTEXT_IS_DESTROYED
                                                                : CUDA_ERROR_STREAM_DETACHED,
                        "the green context of the stream has been destroyed: all that can be done with the stream is "
                        "to destroy it, too");
        *stream = handle;
        return CUDA_SUCCESS;
    }
    CUcontext context;
    RETURN_IF(enter_context_to_ask(&context));
    return context_default_stream(current_context(),
                                  handle == CU_STREAM_PER_THREAD || (!handle && thread_state.null_stream_is_per_thread),
                                  stream);
}

/* ---- life ------------------------------------------------------------------------------------------------------ */

static CUstream stream_new(CUcontext itself, enum stream_role role, unsigned flags, int priority) {
    CUstream stream = handle_new(HANDLE_STREAM, sizeof *stream);
    CUcontext context = itself->owner;
    if (!stream) return NULL;
    stream->context = context;
    stream->green = itself->green ? itself : NULL;
    stream->role = (uint8_t)role;
    stream->flags = stream->green ? CU_STREAM_NON_BLOCKING : flags; /* those of green contexts all are */
    stream->priority = priority;
    stream->id = role == STREAM_LEGACY || role == STREAM_PER_THREAD ? (uint64_t)role : atomic_fetch_add(&next_id, 1);
    pthread_mutex_init(&stream->lock, NULL);
    if (role == STREAM_USER) atomic_fetch_add(&cpu_moment_streams, 1);
    pthread_mutex_lock(&context->lock);
    stream->next_in_context = context->streams;
    if (context->streams) context->streams->previous_in_context = stream;
    context->streams = stream;
    pthread_mutex_unlock(&context->lock);
    return stream;
}

/* The user's reference. Work that is queued is still done: the run queue and the waits hold references of their own. */
static void stream_destroy(CUstream stream) {
    if (stream_is_capturing(stream)) capture_stream_destroyed(stream);
    stream_release(stream);
}

/* A stream stays in its context's list until the last reference goes, so that the context can wait for its work. */
void stream_release(CUstream stream) {
    if (!handle_release(stream)) return;
    CUcontext context = stream->context;
    moment_stream_ends(stream); /* before those who wait for the context miss it */
    pthread_mutex_lock(&context->lock);
    if (stream->previous_in_context) stream->previous_in_context->next_in_context = stream->next_in_context;
    else context->streams = stream->next_in_context;
    if (stream->next_in_context) stream->next_in_context->previous_in_context = stream->previous_in_context;
    pthread_mutex_unlock(&context->lock);
    pthread_mutex_destroy(&stream->lock);
    if (stream->role == STREAM_USER) atomic_fetch_sub(&cpu_moment_streams, 1);
    handle_free(HANDLE_STREAM, stream);
}

CUstream *context_streams(CUcontext context, size_t *count) {
    pthread_mutex_lock(&context->lock);
    *count = 0;
    for (CUstream s = context->streams; s; s = s->next_in_context) ++*count;
    CUstream *streams = *count ? malloc(*count * sizeof *streams) : NULL;
    if (streams) {
        *count = 0;
        for (CUstream s = context->streams; s; s = s->next_in_context)
            if (handle_try_retain(s)) streams[(*count)++] = s;
    }
    pthread_mutex_unlock(&context->lock);
    return streams;
}

void streams_context_destroyed(CUcontext context) {
    size_t count;
    CUstream *streams = context_streams(context, &count);
    for (size_t i = 0; streams && i < count; i++) stream_wait_until(streams[i], atomic_load(&streams[i]->submitted));
    free(atomic_exchange(&context->moments, NULL));
    atomic_store(&context->legacy, NULL);
    atomic_store(&context->gate, NULL);
    for (size_t i = 0; streams && i < count; i++) {
        if (handle_kill(streams[i])) stream_destroy(streams[i]);
        stream_release(streams[i]);
    }
    free(streams);
}

/* A thread's own default streams, one for each context that it has used one in. */
struct own_stream {
    struct own_stream *next;
    CUcontext context;
    uint64_t context_id; /* a primary context that was reset has another id */
    CUstream stream;
};
static __thread struct own_stream *own_streams;
static pthread_key_t own_key;
static pthread_once_t own_once = PTHREAD_ONCE_INIT;

static void own_streams_end(void *list) {
    for (struct own_stream *own = list, *next; own; own = next) {
        next = own->next;
        if (context_is_alive(own->context) && own->context->id == own->context_id && handle_kill(own->stream))
            stream_destroy(own->stream);
        stream_release(own->stream);
        free(own);
    }
}
static void own_make_key(void) { pthread_key_create(&own_key, own_streams_end); }

static CUstream own_stream(CUcontext context) {
    for (struct own_stream *own = own_streams; own; own = own->next)
        if (own->context == context && own->context_id == context->id) return own->stream;
    struct own_stream *own = malloc(sizeof *own);
    CUstream stream = own ? stream_new(context, STREAM_PER_THREAD, 0, 0) : NULL;
    if (!stream) {
        free(own);
        return NULL;
    }
    *own = (struct own_stream){own_streams, context, context->id, handle_retain(stream)};
    own_streams = own;
    pthread_once(&own_once, own_make_key);
    pthread_setspecific(own_key, own);
    return stream;
}

static CUstream legacy_stream(CUcontext context) {
    CUstream legacy = atomic_load_explicit(&context->legacy, memory_order_acquire);
    if (likely(legacy)) return legacy;
    pthread_mutex_lock(&context->order_lock);
    legacy = atomic_load(&context->legacy);
    if (!legacy) {
        legacy = stream_new(context, context->green ? STREAM_GREEN : STREAM_LEGACY, 0, 0);
        atomic_store_explicit(&context->legacy, legacy, memory_order_release);
    }
    pthread_mutex_unlock(&context->order_lock);
    return legacy;
}

/* That of a green context and blocking streams do not wait for each other; threads have no default streams there. */
CUresult context_default_stream(CUcontext context, bool per_thread, CUstream *stream) {
    if (unlikely(context->green && (per_thread || !context->has_default_stream)))
        return fail(CUDA_ERROR_INVALID_HANDLE, per_thread ? "a green context has no default streams of threads"
                                                          : "the green context was made without a default stream "
                                                            "(CU_GREEN_CTX_DEFAULT_STREAM)");
    *stream = per_thread ? own_stream(context) : legacy_stream(context);
    return *stream ? CUDA_SUCCESS : no_memory("a stream's work");
}

/* ---- entry points ---------------------------------------------------------------------------------------------- */

CUresult stream_create(CUcontext context, unsigned flags, int priority, CUstream *stream) {
    if (!stream) return fail_null("phStream");
    if (flags & ~(unsigned)CU_STREAM_NON_BLOCKING)
        return fail(CUDA_ERROR_INVALID_VALUE, "%#x are not flags of a stream: 0 or CU_STREAM_NON_BLOCKING (1)", flags);
    CUstream made = stream_new(context, STREAM_USER, flags, nearest_priority(priority));
    if (!made) return no_memory("another stream");
    CUstream gate = atomic_load_explicit(&context->gate, memory_order_acquire);
    if (unlikely(gate) && moments()) moment_waits_for(made, gate);
    if (unlikely(gate && stream_is_busy(gate))) {
        struct op *op = op_new_wait(made->context, handle_retain(gate), atomic_load(&gate->submitted));
        CUresult status = op ? stream_submit(made, op) : no_memory("the operation");
        if (status) {
            (void)cuStreamDestroy(made);
            return status;
        }
    }
    *stream = made;
    return CUDA_SUCCESS;
}

CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority) {
    CUcontext context;
    RETURN_IF(enter_context(&context));
    return stream_create(current_context(), flags, priority, stream);
}

CUresult cuStreamCreate(CUstream *stream, unsigned flags) { return cuStreamCreateWithPriority(stream, flags, 0); }

CUresult cuStreamDestroy(CUstream stream) {
    pass_gate();
    RETURN_IF(enter_anywhere());
    if ((uintptr_t)stream <= (uintptr_t)CU_STREAM_PER_THREAD)
        return fail(CUDA_ERROR_INVALID_HANDLE, "a default stream cannot be destroyed");
    if (!handle_is_live(stream, HANDLE_STREAM)) return fail_handle("stream", stream, HANDLE_STREAM);
    if (stream->role != STREAM_USER) return fail(CUDA_ERROR_INVALID_HANDLE, "a default stream cannot be destroyed");
    if (handle_kill(stream)) stream_destroy(stream);
    return CUDA_SUCCESS;
}

CUresult cuStreamQuery(CUstream handle) {
    CUstream stream;
    RETURN_IF(enter_stream_to_ask(handle, &stream));
    if (stream_is_capturing(stream)) return capture_refuse(stream, "cuStreamQuery");
    if (stream_is_busy(stream)) return CUDA_ERROR_NOT_READY;
    if (stream->role == STREAM_LEGACY) {
        RETURN_IF(capture_check_legacy(stream->context));
        if (!blocking_streams_are_idle(stream->context)) return CUDA_ERROR_NOT_READY;
    }
    if (moments()) moment_host_waited(stream);
    return context_error(stream->context);
}

CUresult cuStreamSynchronize(CUstream handle) {
    CUstream stream;
    RETURN_IF(enter_stream_to_ask(handle, &stream));
    if (stream_is_capturing(stream)) return capture_refuse(stream, "cuStreamSynchronize");
    CUcontext context = stream->context;
    if (stream->role == STREAM_LEGACY) { /* as if an operation stood there: it waits for the blocking streams */
        RETURN_IF(capture_check_legacy(context));
        size_t count;
        CUstream *streams = context_streams(context, &count);
        if (!streams) return no_memory("a stream's work");
        CUresult status = CUDA_SUCCESS;
        for (size_t i = 0; i < count; i++) {
            if (!(streams[i]->flags & CU_STREAM_NON_BLOCKING) && !status)
                status = stream_wait_interruptibly(streams[i], atomic_load(&streams[i]->submitted));
            stream_release(streams[i]);
        }
        free(streams);
        RETURN_IF(status);
    } else {
        RETURN_IF(stream_wait_interruptibly(stream, atomic_load_explicit(&stream->submitted, memory_order_acquire)));
    }
    if (moments()) moment_host_waited(stream);
    pools_synchronized();
    return context_error(context);
}

CUresult cuStreamWaitEvent(CUstream handle, CUevent event, unsigned flags) {
    CUstream stream;
    RETURN_IF(enter_stream(handle, &stream));
    if (!handle_is_live(event, HANDLE_EVENT)) return fail_handle("event", event, HANDLE_EVENT);
    if (flags & ~(unsigned)CU_EVENT_WAIT_EXTERNAL)
        return fail(CUDA_ERROR_INVALID_VALUE, "%#x are not flags of cuStreamWaitEvent", flags);
    if (unlikely(stream_is_capturing(stream) || capture_owns_event(event))) return capture_wait(stream, event, flags);
    if (flags & CU_EVENT_WAIT_EXTERNAL)
        return fail(CUDA_ERROR_INVALID_VALUE, "CU_EVENT_WAIT_EXTERNAL is for streams that are capturing");
    if (moments()) moment_waits_for_event(stream, event);
    uint64_t elsewhere = event_record_elsewhere(event);
    if (unlikely(elsewhere)) {
        struct op *op = op_new(OP_WAIT, stream->context);
        if (!op) return no_memory("a stream's work");
        op->wait.event = handle_retain(event);
        op->wait.sequence = elsewhere;
        return stream_submit(stream, op);
    }
    pthread_mutex_lock(&event->lock);
    CUstream recorded = event->stream;
    uint64_t sequence = event->sequence;
    bool wait = recorded && recorded != stream && !stream_has_completed(recorded, sequence);
    if (wait) handle_retain(recorded);
    pthread_mutex_unlock(&event->lock);
    if (!wait) return CUDA_SUCCESS;
    struct op *op = op_new_wait(stream->context, recorded, sequence);
    return op ? stream_submit(stream, op) : no_memory("a stream's work");
}

static CUresult submit_host(CUstream handle, CUhostFn function, CUstreamCallback callback, void *data) {
    CUstream stream;
    RETURN_IF(enter_stream(handle, &stream));
    if (!function && !callback) return fail_null("the function to call");
    struct op *op = op_new(OP_HOST, stream->context);
    if (!op) return no_memory("a stream's work");
    op->host.function = function;
    op->host.callback = callback;
    op->host.stream = handle;
    op->host.data = data;
    return stream_submit(stream, op);
}

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void *data) {
    return submit_host(stream, function, NULL, data);
}

CUresult cuLaunchHostFunc_v2(CUstream stream, CUhostFn function, void *data, unsigned mode) {
    if (mode > CU_HOST_TASK_SPINWAIT) return fail(CUDA_ERROR_INVALID_VALUE, "%u is not a CUhostTaskSyncMode", mode);
    return submit_host(stream, function, NULL, data);
}

CUresult cuStreamAddCallback(CUstream handle, CUstreamCallback callback, void *data, unsigned flags) {
    CUstream stream;
    if (flags) return fail(CUDA_ERROR_INVALID_VALUE, "the flags of cuStreamAddCallback must be 0, not %u", flags);
    RETURN_IF(enter_stream(handle, &stream));
    if (stream_is_capturing(stream)) return capture_refuse(stream, "cuStreamAddCallback");
    return submit_host(handle, NULL, callback, data);
}

/* Managed memory is one memory here, so there is nothing to attach. But the call counts as work of the stream. */
CUresult cuStreamAttachMemAsync(CUstream handle, CUdeviceptr pointer, size_t length, unsigned flags) {
    CUstream stream;
    cpu_allocation allocation;
    RETURN_IF(enter_stream(handle, &stream));
    if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST && flags != CU_MEM_ATTACH_SINGLE)
        return fail(CUDA_ERROR_INVALID_VALUE, "%#x is not one of CUmemAttach_flags", flags);
    if (!cpu_memory_find(pointer, &allocation) || allocation.kind != CPU_MEMORY_MANAGED)
        return fail(CUDA_ERROR_INVALID_VALUE, "%#llx is not the address of managed memory",
                    (unsigned long long)pointer);
    if (length && (pointer != allocation.base || length != allocation.size))
        return fail(CUDA_ERROR_INVALID_VALUE, "only a whole allocation can be attached: pass a length of 0");
    struct op *op = op_new(OP_EMPTY, stream->context);
    return op ? stream_submit(stream, op) : no_memory("a stream's work");
}

CUresult cuStreamGetCtx(CUstream handle, CUcontext *context) {
    CUstream stream;
    RETURN_IF(enter_stream_to_ask(handle, &stream));
    if (!context) return fail_null("pctx");
    *context = stream->green ? stream->green : stream->context;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx_v2(CUstream handle, CUcontext *context, CUgreenCtx *green) {
    CUstream stream;
    RETURN_IF(enter_stream_to_ask(handle, &stream));
    if (!context) return fail_null("pCtx");
    *context = stream->context;
    if (green) *green = stream->green ? stream->green->green : NULL;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetFlags(CUstream handle, unsigned *flags) {
    CUstream stream;
    RETURN_IF(enter_stream_to_ask(handle, &stream));
    if (!flags) return fail_null("flags");
    *flags = stream->flags;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetPriority(CUstream handle, int *priority) {
    CUstream stream;
    RETURN_IF(enter_stream_to_ask(handle, &stream));
    if (!priority) return fail_null("priority");
    *priority = stream->priority;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetId(CUstream handle, unsigned long long *id) {
    CUstream stream;
    RETURN_IF(enter_stream_to_ask(handle, &stream));
    if (!id) return fail_null("streamId");
    *id = stream->id;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetDevice(CUstream handle, CUdevice *device) {
    CUstream stream;
    RETURN_IF(enter_stream_to_ask(handle, &stream));
    if (!device) return fail_null("device");
    *device = stream->context->device->ordinal;
    return CUDA_SUCCESS;
}

/* ---- attributes: hints that the CPU device keeps and has no use for -------------------------------------------- */

CUresult cuStreamGetAttribute(CUstream handle, CUstreamAttrID attribute, CUstreamAttrValue *value) {
    CUstream stream;
    RETURN_IF(enter_stream_to_ask(handle, &stream));
    if (!value) return fail_null("value_out");
    switch (attribute) {
        case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW: *value = stream->attributes[0]; return CUDA_SUCCESS;
        case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
            *value = stream->attributes[1];
            if (!value->syncPolicy) value->syncPolicy = CU_SYNC_POLICY_AUTO;
            return CUDA_SUCCESS;
        case CU_LAUNCH_ATTRIBUTE_PRIORITY:
            memset(value, 0, sizeof *value);
            value->priority = stream->priority;
            return CUDA_SUCCESS;
        default: return fail(CUDA_ERROR_INVALID_VALUE, "%d is not an attribute of streams", (int)attribute);
    }
}

CUresult cuStreamSetAttribute(CUstream handle, CUstreamAttrID attribute, const CUstreamAttrValue *value) {
    CUstream stream;
    RETURN_IF(enter_stream(handle, &stream));
    if (!value) return fail_null("value");
    switch (attribute) {
        case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW: stream->attributes[0] = *value; return CUDA_SUCCESS;
        case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
            if (value->syncPolicy < CU_SYNC_POLICY_AUTO || value->syncPolicy > CU_SYNC_POLICY_BLOCKING_SYNC)
                return fail(CUDA_ERROR_INVALID_VALUE, "%d is not a CUsynchronizationPolicy", (int)value->syncPolicy);
            stream->attributes[1] = *value;
            return CUDA_SUCCESS;
        case CU_LAUNCH_ATTRIBUTE_PRIORITY:
            if (value->priority > PRIORITY_LEAST || value->priority < PRIORITY_GREATEST)
                return fail(CUDA_ERROR_INVALID_VALUE, "the priority %d is outside [%d, %d]", value->priority,
                            PRIORITY_GREATEST, PRIORITY_LEAST);
            stream->priority = value->priority;
            return CUDA_SUCCESS;
        default: return fail(CUDA_ERROR_INVALID_VALUE, "%d is not an attribute of streams", (int)attribute);
    }
}

CUresult cuStreamCopyAttributes(CUstream target_handle, CUstream source_handle) {
    CUstream target, source;
    RETURN_IF(enter_stream(target_handle, &target));
    RETURN_IF(enter_stream(source_handle, &source));
    if (target->context != source->context)
        return fail(CUDA_ERROR_INVALID_VALUE, "the two streams belong to different contexts");
    memcpy(target->attributes, source->attributes, sizeof target->attributes);
    return CUDA_SUCCESS;
}

PER_THREAD(cuStreamQuery, (CUstream s), (s))
PER_THREAD(cuStreamSynchronize, (CUstream s), (s))
PER_THREAD(cuStreamWaitEvent, (CUstream s, CUevent e, unsigned f), (s, e, f))
PER_THREAD(cuStreamAddCallback, (CUstream s, CUstreamCallback c, void *d, unsigned f), (s, c, d, f))
PER_THREAD(cuStreamAttachMemAsync, (CUstream s, CUdeviceptr p, size_t n, unsigned f), (s, p, n, f))
PER_THREAD(cuLaunchHostFunc, (CUstream s, CUhostFn f, void *d), (s, f, d))
PER_THREAD(cuLaunchHostFunc_v2, (CUstream s, CUhostFn f, void *d, unsigned m), (s, f, d, m))
PER_THREAD(cuStreamGetCtx, (CUstream s, CUcontext *c), (s, c))
PER_THREAD(cuStreamGetCtx_v2, (CUstream s, CUcontext *c, CUgreenCtx *g), (s, c, g))
PER_THREAD(cuStreamGetFlags, (CUstream s, unsigned *f), (s, f))
PER_THREAD(cuStreamGetPriority, (CUstream s, int *p), (s, p))
PER_THREAD(cuStreamGetId, (CUstream s, unsigned long long *i), (s, i))
PER_THREAD(cuStreamGetDevice, (CUstream s, CUdevice *d), (s, d))
PER_THREAD(cuStreamGetAttribute, (CUstream s, CUstreamAttrID a, CUstreamAttrValue *v), (s, a, v))
PER_THREAD(cuStreamSetAttribute, (CUstream s, CUstreamAttrID a, const CUstreamAttrValue *v), (s, a, v))
PER_THREAD(cuStreamCopyAttributes, (CUstream t, CUstream s), (t, s))

const struct entry stream_entries[] = {
    ENTRY(cuStreamCreate),
    ENTRY(cuStreamCreateWithPriority),
    ENTRY(cuStreamDestroy),
    ENTRY_AS(cuStreamDestroy_v2, cuStreamDestroy),
    ENTRY_STREAM(cuStreamQuery),
    ENTRY_STREAM(cuStreamSynchronize),
    ENTRY_STREAM(cuStreamWaitEvent),
    ENTRY_STREAM(cuStreamAddCallback),
    ENTRY_STREAM(cuStreamAttachMemAsync),
    ENTRY_STREAM(cuLaunchHostFunc),
    ENTRY_STREAM(cuLaunchHostFunc_v2),
    ENTRY_STREAM(cuStreamGetCtx),
    ENTRY_STREAM(cuStreamGetCtx_v2),
    ENTRY_STREAM(cuStreamGetFlags),
    ENTRY_STREAM(cuStreamGetPriority),
    ENTRY_STREAM(cuStreamGetId),
    ENTRY_STREAM(cuStreamGetDevice),
    ENTRY_STREAM(cuStreamGetAttribute),
    ENTRY_STREAM(cuStreamSetAttribute),
    ENTRY_STREAM(cuStreamCopyAttributes),
    {NULL, NULL, NULL},
};
