/* Events: places in streams, with the time when they were reached (CUDA Driver API, "Event Management").
 *
 * An event that was recorded names a stream and a sequence, and is complete when the stream has completed that
 * sequence. So recording needs an operation in the stream only to take the time. */
#include <stdlib.h>
#include <time.h>

#include "moment.h"
#include "stream.h"

enum {
    CREATE_FLAGS = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS,
};

uint64_t event_mark(CUevent event, CUstream stream, uint64_t sequence) {
    pthread_mutex_lock(&event->lock);
    CUstream before = event->stream;
    if (before == stream) before = NULL;
    else event->stream = handle_retain(stream);
    event->sequence = sequence;
    uint64_t generation = event->shared ? shared_event_mark(event->shared) : event->generation + 1;
    event->generation = generation;
    if (moments()) moment_recorded(event, stream);
    pthread_mutex_unlock(&event->lock);
    if (before) stream_release(before);
    return generation;
}

void event_stamp(CUevent event, uint64_t generation) {
    if (event->shared) /* a graph's record is made when it is reached */
        shared_event_complete(event->shared, generation ? generation : shared_event_mark(event->shared));
    if (event->flags & CU_EVENT_DISABLE_TIMING) return;
    const uint64_t now = clock_now();
    pthread_mutex_lock(&event->lock);
    if (!generation || generation == event->generation) atomic_store_explicit(&event->time, now, memory_order_relaxed);
    pthread_mutex_unlock(&event->lock);
}

/* The place it was last recorded at, referenced; NULL: nowhere. */
static CUstream place(CUevent event, uint64_t *sequence) {
    pthread_mutex_lock(&event->lock);
    CUstream stream = event->stream;
    *sequence = event->sequence;
    if (stream) handle_retain(stream);
    pthread_mutex_unlock(&event->lock);
    return stream;
}

uint64_t event_record_elsewhere(CUevent event) {
    if (!event->shared) return 0;
    pthread_mutex_lock(&event->lock);
    uint64_t last = shared_event_last(event->shared);
    bool here = event->stream && last == event->generation;
    pthread_mutex_unlock(&event->lock);
    return here ? 0 : last;
}

CUresult event_query(CUevent event) {
    if (event_record_elsewhere(event)) return shared_event_query(event->shared);
    pthread_mutex_lock(&event->lock);
    bool completed = !event->stream || stream_has_completed(event->stream, event->sequence);
    pthread_mutex_unlock(&event->lock);
    return completed ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult event_wait(CUevent event) {
    uint64_t sequence, record = event_record_elsewhere(event);
    if (record) return shared_event_wait(event->shared, record, event->context);
    CUstream stream = place(event, &sequence);
    if (!stream) return CUDA_SUCCESS;
    CUresult status = stream_wait_interruptibly(stream, sequence);
    stream_release(stream);
    return status;
}

void event_release(CUevent event) {
    if (!handle_release(event)) return;
    if (event->stream) stream_release(event->stream);
    if (event->shared) shared_event_free(event->shared);
    free(event->clock);
    pthread_mutex_destroy(&event->lock);
    handle_free(HANDLE_EVENT, event);
}

static void event_destroy(CUevent event) {
    if (event->capture) capture_event_forget(event);
    event_release(event);
}

static void destroy_if_in(void *object, void *context) {
    CUevent event = object;
    if (event->context == context && handle_kill(event)) event_destroy(event);
}

void events_context_destroyed(CUcontext context) { handle_each(HANDLE_EVENT, destroy_if_in, context); }

/* ---- entry points ---------------------------------------------------------------------------------------------- */

static CUresult enter_event(CUevent event) {
    RETURN_IF(enter_anywhere());
    if (unlikely(!handle_is_live(event, HANDLE_EVENT))) return fail_handle("event", event, HANDLE_EVENT);
    return context_check(event->context);
}

CUevent event_new(CUcontext context, unsigned flags, struct shared_event *shared) {
    CUevent made = handle_make(HANDLE_EVENT, sizeof *made);
    if (!made) return NULL;
    made->context = context;
    made->flags = flags;
    made->shared = shared;
    pthread_mutex_init(&made->lock, NULL);
    handle_publish(made);
    return made;
}

CUresult cuEventCreate(CUevent *event, unsigned flags) {
    CUcontext context;
    RETURN_IF(enter_context(&context));
    if (!event) return fail_null("phEvent");
    if (flags & ~(unsigned)CREATE_FLAGS)
        return fail(CUDA_ERROR_INVALID_VALUE, "%#x are not flags of an event (CUevent_flags)", flags);
    if (flags & CU_EVENT_INTERPROCESS && !(flags & CU_EVENT_DISABLE_TIMING))
        return fail(CUDA_ERROR_INVALID_VALUE,
                    "an event for several processes cannot have timing: add CU_EVENT_DISABLE_TIMING");
    struct shared_event *shared = NULL;
    if (flags & CU_EVENT_INTERPROCESS) RETURN_IF(shared_event_new(&shared));
    CUevent made = event_new(context, flags, shared);
    if (made) *event = made;
    else if (shared) shared_event_free(shared);
    return made ? CUDA_SUCCESS : no_memory("another event");
}

CUresult cuEventDestroy(CUevent event) {
    pass_gate();
    RETURN_IF(enter_anywhere());
    if (!handle_is_live(event, HANDLE_EVENT)) return fail_handle("event", event, HANDLE_EVENT);
    if (handle_kill(event)) event_destroy(event);
    return CUDA_SUCCESS;
}

CUresult event_record(CUevent event, CUstream stream, unsigned flags) {
    if (!handle_is_live(event, HANDLE_EVENT)) return fail_handle("event", event, HANDLE_EVENT);
    if (event->context != stream->context)
        return fail(CUDA_ERROR_INVALID_HANDLE, "the event was made in another context than the stream");
    if (flags & ~(unsigned)CU_EVENT_RECORD_EXTERNAL)
        return fail(CUDA_ERROR_INVALID_VALUE, "%#x are not flags of cuEventRecordWithFlags", flags);
    if (unlikely(stream_is_capturing(stream))) return capture_record(stream, event, flags);
    if (flags & CU_EVENT_RECORD_EXTERNAL)
        return fail(CUDA_ERROR_INVALID_VALUE, "CU_EVENT_RECORD_EXTERNAL is for streams that are capturing");
    if (event->capture) capture_event_forget(event);
    if (stream->flags & CU_STREAM_NON_BLOCKING) {
        uint64_t sequence = atomic_load_explicit(&stream->submitted, memory_order_acquire);
        /* Other processes cannot see how far the stream is: they have to be told by an operation. */
        if ((event->flags & CU_EVENT_DISABLE_TIMING && !event->shared) || stream_has_completed(stream, sequence)) {
            event_stamp(event, event_mark(event, stream, sequence));
            return CUDA_SUCCESS;
        }
    }
    struct op *op = op_new(OP_RECORD, stream->context);
    if (!op) return no_memory("the operation");
    op->record.event = handle_retain(event);
    return stream_submit_marked(stream, op, event);
}

CUresult cuEventRecordWithFlags(CUevent event, CUstream handle, unsigned flags) {
    CUstream stream;
    RETURN_IF(enter_stream(handle, &stream));
    return event_record(event, stream, flags);
}

CUresult cuEventRecord(CUevent event, CUstream stream) { return cuEventRecordWithFlags(event, stream, 0); }

static CUresult refuse_captured(CUevent event) {
    if (likely(event->capture == NULL)) return CUDA_SUCCESS;
    return capture_refuse_event(event);
}

CUresult cuEventQuery(CUevent event) {
    RETURN_IF(enter_event(event));
    RETURN_IF(refuse_captured(event));
    CUresult status = event_query(event);
    if (!status && moments()) moment_host_waited_for_event(event);
    return status ? status : context_error(event->context);
}

static CUresult synchronize(CUevent event) {
    RETURN_IF(context_check(event->context));
    RETURN_IF(refuse_captured(event));
    RETURN_IF(event_wait(event));
    if (moments()) moment_host_waited_for_event(event);
    pools_synchronized();
    return context_error(event->context);
}

CUresult cuEventSynchronize(CUevent event) {
    RETURN_IF(enter());
    if (!handle_acquire(event, HANDLE_EVENT)) return fail_handle("event", event, HANDLE_EVENT);
    CUresult status = synchronize(event);
    event_release(event);
    return status;
}

CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end) {
    RETURN_IF(enter_event(start));
    RETURN_IF(enter_event(end));
    if (!milliseconds) return fail_null("pMilliseconds");
    CUevent events[] = {start, end};
    for (int i = 0; i < 2; i++) {
        const char *which = i ? "end" : "start";
        if (events[i]->flags & CU_EVENT_DISABLE_TIMING)
            return fail(CUDA_ERROR_INVALID_HANDLE, "the %s event was made without timing (CU_EVENT_DISABLE_TIMING)",
                        which);
        RETURN_IF(refuse_captured(events[i]));
        uint64_t sequence;
        CUstream stream = place(events[i], &sequence);
        if (!stream) return fail(CUDA_ERROR_INVALID_HANDLE, "the %s event has not been recorded", which);
        bool completed = stream_has_completed(stream, sequence);
        stream_release(stream);
        if (!completed)
            return fail(CUDA_ERROR_NOT_READY, "the %s event has not been reached yet: synchronize with it first",
                        which);
    }
    RETURN_IF(context_error(end->context));
    uint64_t from = atomic_load_explicit(&start->time, memory_order_relaxed);
    uint64_t to = atomic_load_explicit(&end->time, memory_order_relaxed);
    *milliseconds = (float)((double)(int64_t)(to - from) * 1e-6);
    return CUDA_SUCCESS;
}

PER_THREAD(cuEventRecord, (CUevent e, CUstream s), (e, s))
PER_THREAD(cuEventRecordWithFlags, (CUevent e, CUstream s, unsigned f), (e, s, f))

const struct entry event_entries[] = {
    ENTRY(cuEventCreate),
    ENTRY(cuEventDestroy),
    ENTRY_AS(cuEventDestroy_v2, cuEventDestroy),
    ENTRY_STREAM(cuEventRecord),
    ENTRY_STREAM(cuEventRecordWithFlags),
    ENTRY(cuEventQuery),
    ENTRY(cuEventSynchronize),
    ENTRY(cuEventElapsedTime),
    ENTRY_AS(cuEventElapsedTime_v2, cuEventElapsedTime),
    {NULL, NULL, NULL},
};
