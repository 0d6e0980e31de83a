/* What streams do: queues of operations, each carried out in order and apart from the others (CUDA Driver API, "Stream
 * synchronization behavior").
 *
 * An operation's place in its stream is a sequence number, and everything that waits (events, other streams, the host)
 * waits for a stream to complete a sequence. A stream that comes to a wait for another one is parked among that
 * one's waiters, so it holds no thread; the thread that completes the sequence schedules it again.
 *
 * The legacy default stream waits for the blocking streams of its context, and they for it. Such waits are put in the
 * queues as operations when work is submitted, under the context's order_lock, so that two streams can never end up
 * waiting for each other. */
#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "driver/trace/trace.h"
#include "engine/above.h"
#include "moment.h"
#include "stream.h"

enum { SPIN_NANOSECONDS = 20000, SIGNALS_NANOSECONDS = 50000000 };

/* ---- carrying out ---------------------------------------------------------------------------------------------- */

/* The first stream that this worker released: it goes on with that one itself when it runs out of work, which saves
 * waking a thread for it. */
static __thread CUstream handed_over;

static void hand_over(CUstream stream) {
    if (thread_is_worker && !handed_over && !streams_take_turns()) handed_over = handle_retain(stream);
    else worker_schedule(stream);
}

CUstream stream_take_handed_over(void) {
    CUstream stream = handed_over;
    handed_over = NULL;
    return stream;
}

static void wake_waiters(CUstream stream) {
    struct waiter *ready = NULL, **link = &stream->waiters;
    pthread_mutex_lock(&stream->lock);
    uint64_t completed = atomic_load_explicit(&stream->completed, memory_order_relaxed);
    while (*link) {
        struct waiter *waiter = *link;
        if (waiter->sequence <= completed) {
            *link = waiter->next;
            waiter->next = ready;
            ready = waiter;
        } else {
            link = &waiter->next;
        }
    }
    atomic_store_explicit(&stream->has_waiters, stream->waiters != NULL, memory_order_relaxed);
    pthread_mutex_unlock(&stream->lock);
    while (ready) {
        struct waiter *waiter = ready;
        ready = waiter->next;
        CUstream parked = waiter->stream;
        if (parked) {
            pthread_mutex_lock(&parked->lock);
            parked->state = STREAM_SCHEDULED;
            pthread_mutex_unlock(&parked->lock);
            hand_over(parked);
            stream_release(parked);
        } else { /* the waiter is gone as soon as its signal is set */
            _Atomic uint32_t *signal = waiter->signal;
            atomic_store_explicit(signal, 1, memory_order_release);
            syscall(SYS_futex, signal, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
        }
    }
}

/* Either the waiter is in the list before the sequence is completed, or it is told that it need not wait: the store
 * to `completed` and the load of `has_waiters`, here and in complete(), are in one total order. */
static bool add_waiter(CUstream stream, struct waiter *waiter) {
    pthread_mutex_lock(&stream->lock);
    atomic_store(&stream->has_waiters, true);
    bool wait = atomic_load(&stream->completed) < waiter->sequence;
    if (wait) {
        waiter->next = stream->waiters;
        stream->waiters = waiter;
    } else {
        atomic_store(&stream->has_waiters, stream->waiters != NULL);
    }
    pthread_mutex_unlock(&stream->lock);
    return wait;
}

static void complete(CUstream stream, uint64_t sequence) {
    atomic_store(&stream->completed, sequence);
    if (unlikely(atomic_load(&stream->has_waiters))) wake_waiters(stream);
}

/* The stream waits for another one. False: no need any more. */
static bool park(CUstream stream, const struct op *op) {
    stream->parked = (struct waiter){.sequence = op->wait.sequence, .stream = stream};
    pthread_mutex_lock(&stream->lock);
    stream->state = STREAM_PARKED;
    pthread_mutex_unlock(&stream->lock);
    handle_retain(stream);
    if (add_waiter(op->wait.stream, &stream->parked)) return true;
    pthread_mutex_lock(&stream->lock);
    stream->state = STREAM_RUNNING;
    pthread_mutex_unlock(&stream->lock);
    stream_release(stream);
    return false;
}

int64_t stream_polls(CUstream stream) {
    int64_t polls = -1;
    pthread_mutex_lock(&stream->lock); /* the operation under way is the first one */
    if (stream->state == STREAM_PARKED || !stream_is_busy(stream)) polls = 0;
    else if (stream->state == STREAM_RUNNING && stream->first && stream->first->kind == OP_VALUES) {
        const uint64_t found = atomic_load_explicit(&stream->first->values.polls, memory_order_relaxed);
        if (found) polls = (int64_t)found;
    }
    pthread_mutex_unlock(&stream->lock);
    return polls;
}

/* Is it known that the operation ends by itself, or expected? */
static bool is_bounded(const struct op *op) {
    switch (op->kind) {
        case OP_KERNEL: return cpu_engine_is_quick(&op->kernel.launch) && cpu_share_is_free(op->kernel.launch.share);
        case OP_GRAPH: return graph_is_quick(op);
        case OP_VALUES: return !values_wait(op);
        case OP_WAIT: return op->wait.stream; /* the stream is parked */
        case OP_CALL: return !op_waits(op);
        default: return true;
    }
}

/* On the thread that handles signals; false when one came meanwhile. */
static bool execute_watched(struct op *op) {
    cpu_stop_begin_inline();
    op_execute(op);
    return !cpu_stop_end_inline();
}

/* Carry out operations until the sequence `until` is completed; with `watched` on the thread that handles signals, and
 * only those that will end soon, until one comes: false. */
static bool carry_out(CUstream stream, uint64_t until, bool watched) {
    uint64_t completed = 0;
    bool undisturbed = true;
    if (tracing()) trace_stream = stream;
    pthread_mutex_lock(&stream->lock);
    for (;;) {
        struct op *op = stream->first;
        const bool may_go_on = until != UINT64_MAX || likely(!streams_take_turns());
        if (!op || completed >= until || !may_go_on || !undisturbed || (watched && !is_bounded(op))) {
            stream->state = op ? STREAM_SCHEDULED : STREAM_IDLE;
            pthread_mutex_unlock(&stream->lock);
            if (op) worker_schedule(stream);
            return undisturbed;
        }
        pthread_mutex_unlock(&stream->lock);
        if (unlikely(op->cancelled))
            ;
        else if (watched && (op->kind == OP_KERNEL || op->kind == OP_GRAPH)) undisturbed = execute_watched(op);
        else if (op->kind != OP_WAIT || !op->wait.stream) op_execute(op);
        else if (!stream_has_completed(op->wait.stream, op->wait.sequence) && park(stream, op)) return true;
        completed = op->sequence;
        pthread_mutex_lock(&stream->lock);
        stream->first = op->next;
        if (!stream->first) stream->last = NULL;
        pthread_mutex_unlock(&stream->lock);
        op_free(op);
        complete(stream, completed);
        pthread_mutex_lock(&stream->lock);
        if (unlikely(handed_over) && stream->first) { /* not out of work */
            pthread_mutex_unlock(&stream->lock);
            CUstream other = stream_take_handed_over();
            worker_schedule(other);
            stream_release(other);
            pthread_mutex_lock(&stream->lock);
        }
    }
}

/* Any thread does this as a worker does (worker.c): what is destroyed meanwhile must not wait for this very stream. */
static bool run(CUstream stream, uint64_t until, bool watched) {
    const int before = cpu_driver_forbid(true);
    const bool undisturbed = carry_out(stream, until, watched);
    cpu_driver_forbid(before);
    return undisturbed;
}

void stream_run(CUstream stream, uint64_t until) { (void)run(stream, until, false); }

/* ---- waiting --------------------------------------------------------------------------------------------------- */

static void sleep_until(_Atomic uint32_t *signal, const struct timespec *patience) {
    syscall(SYS_futex, signal, FUTEX_WAIT_PRIVATE, 0, patience, NULL, 0);
}

/* Take a waiter off the list; false when it is on its way to be told that it need not wait any more. */
static bool remove_waiter(CUstream stream, struct waiter *waiter) {
    pthread_mutex_lock(&stream->lock);
    struct waiter **link = &stream->waiters;
    while (*link && *link != waiter) link = &(*link)->next;
    bool found = *link != NULL;
    if (found) *link = waiter->next;
    pthread_mutex_unlock(&stream->lock);
    return found;
}

/* Sleep until the stream has completed the sequence, or until a handler of a signal raised an exception, if it may end
 * early: false. */
static bool sleep_in(CUstream stream, uint64_t sequence, bool handle_signals, bool may_end, bool *interrupted) {
    _Atomic uint32_t signal = 0;
    struct waiter waiter = {.sequence = sequence, .signal = &signal};
    const struct timespec patience = {.tv_nsec = SIGNALS_NANOSECONDS};
    if (!add_waiter(stream, &waiter)) return true;
    while (!atomic_load_explicit(&signal, memory_order_acquire)) {
        sleep_until(&signal, handle_signals ? &patience : NULL);
        if (!handle_signals || atomic_load_explicit(&signal, memory_order_acquire)) continue;
        if (!may_end) {
            signals_handle(interrupted);
        } else if (!signals_handled()) {
            if (!remove_waiter(stream, &waiter)) /* any moment now */
                while (!atomic_load_explicit(&signal, memory_order_acquire)) sleep_until(&signal, NULL);
            return false;
        }
    }
    return true;
}

/* A thread that waits does the stream's work itself while no worker has begun: that saves handing it over. */
static bool wait_until(CUstream stream, uint64_t sequence, bool may_end) {
    if (stream_has_completed(stream, sequence)) return true;
    bool handle_signals = signals_are_ours(), done = true, interrupted = false;
    const bool in_turn = streams_take_turns();
    struct demand demand = {.stream = stream, .sequence = sequence};
    handle_retain(stream);
    if (unlikely(in_turn)) turns_demand(&demand);
    pthread_mutex_lock(&stream->lock);
    bool mine = stream->state == STREAM_SCHEDULED && !in_turn && !(handle_signals && !is_bounded(stream->first));
    if (mine) stream->state = STREAM_RUNNING;
    pthread_mutex_unlock(&stream->lock);
    if (mine && !run(stream, sequence, handle_signals)) {
        if (may_end) done = signals_handled();
        else signals_handle(&interrupted);
    }
    if (done && !(stream->context->flags & CU_CTX_SCHED_BLOCKING_SYNC))
        for (uint64_t end = clock_now() + SPIN_NANOSECONDS;
             !stream_has_completed(stream, sequence) && clock_now() < end;)
            for (int i = 0; i < 32 && !stream_has_completed(stream, sequence); i++) cpu_relax();
    if (done && !stream_has_completed(stream, sequence))
        done = sleep_in(stream, sequence, handle_signals, may_end, &interrupted);
    if (unlikely(in_turn)) turns_demand_end(&demand);
    stream_release(stream);
    if (unlikely(interrupted)) signals_again();
    return done;
}

void stream_wait_until(CUstream stream, uint64_t sequence) { (void)wait_until(stream, sequence, false); }

CUresult stream_wait_interruptibly(CUstream stream, uint64_t sequence) {
    return wait_until(stream, sequence, true)
               ? CUDA_SUCCESS
               : fail(CUDA_ERROR_NOT_READY, "a signal ended the wait; the work continues");
}

/* ---- submitting ------------------------------------------------------------------------------------------------ */

/* The sequence that the last operation got which this thread queued. */
static __thread uint64_t appended;

/* Queue an operation; the caller schedules the stream when the result is true. */
static bool append(CUstream stream, struct op *op, CUevent event) {
    op->call = tracing() ? trace_call : 0;
    pthread_mutex_lock(&stream->lock);
    op->next = NULL;
    op->sequence = appended = atomic_load_explicit(&stream->submitted, memory_order_relaxed) + 1;
    atomic_store_explicit(&stream->submitted, op->sequence, memory_order_release);
    if (unlikely(op->moment != NULL)) moment_submitted(stream, op);
    if (event) op->record.generation = event_mark(event, stream, op->sequence);
    if (stream->last) stream->last->next = op;
    else stream->first = op;
    stream->last = op;
    bool idle = stream->state == STREAM_IDLE;
    if (idle) stream->state = STREAM_SCHEDULED;
    pthread_mutex_unlock(&stream->lock);
    return idle;
}

struct op *op_new_wait(CUcontext context, CUstream stream, uint64_t sequence) {
    struct op *op = op_new(OP_WAIT, context);
    if (!op) {
        stream_release(stream);
        return NULL;
    }
    op->wait.stream = stream;
    op->wait.sequence = sequence;
    return op;
}

/* Submit to the legacy stream: what the blocking streams have been given comes first. With the order_lock. */
static CUresult wait_for_blocking_streams(CUstream legacy, bool *schedule) {
    size_t count;
    CUcontext context = legacy->context;
    CUstream *streams = context_streams(context, &count);
    CUresult status = count && !streams ? no_memory("the operation") : CUDA_SUCCESS;
    for (size_t i = 0; streams && i < count; i++) {
        CUstream stream = streams[i];
        if (status || stream == legacy || stream->flags & CU_STREAM_NON_BLOCKING || !stream_is_busy(stream)) {
            stream_release(stream);
            continue;
        }
        struct op *op = op_new_wait(context, stream, atomic_load(&stream->submitted));
        if (op) *schedule |= append(legacy, op, NULL);
        else status = no_memory("the operation");
    }
    free(streams);
    return status;
}

static CUresult wait_for_legacy(CUstream stream, CUstream legacy, bool *schedule) {
    uint64_t sequence = atomic_load(&legacy->submitted);
    if (stream->legacy_seen >= sequence || stream_has_completed(legacy, sequence)) return CUDA_SUCCESS;
    struct op *op = op_new_wait(stream->context, handle_retain(legacy), sequence);
    if (!op) return no_memory("the operation");
    stream->legacy_seen = sequence;
    *schedule |= append(stream, op, NULL);
    return CUDA_SUCCESS;
}

CUresult stream_submit_marked(CUstream stream, struct op *op, CUevent event) {
    if (moments()) moment_prepare(op);
    if (unlikely(stream_is_capturing(stream))) return capture_add(stream, op);
    bool schedule = false;
    CUstream legacy = stream->role == STREAM_LEGACY
                          ? stream
                          : (stream->flags & CU_STREAM_NON_BLOCKING
                                 ? NULL
                                 : atomic_load_explicit(&stream->context->legacy, memory_order_acquire));
    if (likely(!legacy || (legacy != stream && !stream_is_busy(legacy)))) {
        schedule = append(stream, op, event);
    } else {
        CUcontext context = stream->context;
        CUresult status = legacy == stream ? capture_check_legacy(context) : CUDA_SUCCESS;
        if (!status) {
            pthread_mutex_lock(&context->order_lock);
            status = legacy == stream ? wait_for_blocking_streams(stream, &schedule)
                                      : wait_for_legacy(stream, legacy, &schedule);
            if (!status) schedule |= append(stream, op, event);
            pthread_mutex_unlock(&context->order_lock);
        }
        if (status) {
            op_free(op);
            if (schedule) worker_schedule(stream);
            return status;
        }
    }
    if (schedule) worker_schedule(stream);
    return CUDA_SUCCESS;
}

CUresult stream_submit(CUstream stream, struct op *op) {
    const bool watch = moments() && moment_is_for_host(op) && !stream_is_capturing(stream);
    RETURN_IF(stream_submit_marked(stream, op, NULL));
    if (watch) moment_let_run(stream);
    return CUDA_SUCCESS;
}

/* Make the operation the only one of an idle stream, for this thread to carry out. */
static bool begin_if_idle(CUstream stream, struct op *op) {
    op->call = tracing() ? trace_call : 0;
    pthread_mutex_lock(&stream->lock);
    bool idle = stream->state == STREAM_IDLE && !streams_take_turns();
    if (idle) {
        op->next = NULL;
        op->sequence = atomic_load_explicit(&stream->submitted, memory_order_relaxed) + 1;
        atomic_store_explicit(&stream->submitted, op->sequence, memory_order_release);
        if (unlikely(op->moment != NULL)) moment_submitted(stream, op);
        stream->first = stream->last = op;
        stream->state = STREAM_RUNNING;
    }
    pthread_mutex_unlock(&stream->lock);
    return idle;
}

bool blocking_streams_are_idle(CUcontext context) {
    bool idle = true;
    pthread_mutex_lock(&context->lock);
    for (CUstream s = context->streams; s && idle; s = s->next_in_context)
        idle = s->flags & CU_STREAM_NON_BLOCKING || !stream_is_busy(s);
    pthread_mutex_unlock(&context->lock);
    return idle;
}

/* The caller goes on, and its memory may go away: the copy or fill is not begun any more, and if it has begun, it is waited
 * for. */
static void cancel(CUstream stream, uint64_t sequence) {
    uint64_t begun = 0;
    pthread_mutex_lock(&stream->lock);
    for (struct op *op = stream->first; op; op = op->next) {
        if (op->sequence != sequence) continue;
        if (op != stream->first || stream->state == STREAM_SCHEDULED) op->cancelled = true;
        else begun = sequence;
    }
    pthread_mutex_unlock(&stream->lock);
    if (begun) stream_wait_until(stream, begun);
}

/* When no other work has to come first, the calling thread does this at once. False: it has, and nothing happened. */
static bool carry_out_here(CUstream stream, struct op *op) {
    CUcontext context = stream->context;
    bool mine = false;
    if (stream->role == STREAM_LEGACY) {
        pthread_mutex_lock(&context->order_lock);
        mine = blocking_streams_are_idle(context) && begin_if_idle(stream, op);
        pthread_mutex_unlock(&context->order_lock);
    } else if (stream->flags & CU_STREAM_NON_BLOCKING) {
        mine = begin_if_idle(stream, op);
    }
    if (!mine) return false;
    handle_retain(stream);
    stream_run(stream, atomic_load(&stream->completed) + 1);
    stream_release(stream);
    return true;
}

CUresult stream_submit_brief(CUstream stream, struct op *op) {
    const bool may_be_at_once =
        !stream_is_capturing(stream) && !moments() && !injects_into_work() && !tracing() &&
        (stream->role != STREAM_LEGACY || capture_check_legacy(stream->context) == CUDA_SUCCESS);
    if (may_be_at_once && carry_out_here(stream, op)) return CUDA_SUCCESS;
    return stream_submit(stream, op);
}

CUresult stream_submit_and_wait(CUstream stream, struct op *op) {
    CUcontext context = stream->context;
    if (unlikely(stream_is_capturing(stream))) {
        op_free(op);
        return capture_refuse(stream, "a synchronous copy or fill");
    }
    if (moments()) moment_prepare(op);
    if (stream->role == STREAM_LEGACY) {
        CUresult status = capture_check_legacy(context);
        if (status) {
            op_free(op);
            return status;
        }
    }
    if (!carry_out_here(stream, op)) {
        RETURN_IF(stream_submit(stream, op));
        uint64_t sequence = appended;
        CUresult status = stream_wait_interruptibly(stream, sequence);
        if (unlikely(status)) {
            cancel(stream, sequence);
            return status;
        }
    }
    if (moments()) moment_host_waited(stream);
    return context_error(context);
}

CUresult context_synchronize(CUcontext context) {
    size_t count;
    CUstream *streams = context_streams(context->owner, &count);
    if (count && !streams) return no_memory("a list of the streams");
    CUresult status = CUDA_SUCCESS;
    for (size_t i = 0; context->green && i < count; i++)
        if (streams[i]->green != context) {
            stream_release(streams[i]);
            streams[i--] = streams[--count];
        }
    for (size_t i = 0; i < count; i++)
        if (stream_is_capturing(streams[i]) && !status) status = capture_refuse(streams[i], "cuCtxSynchronize");
    for (size_t i = 0; i < count; i++) {
        if (!status) status = stream_wait_interruptibly(streams[i], atomic_load(&streams[i]->submitted));
        if (!status && moments()) moment_host_waited(streams[i]);
        stream_release(streams[i]);
    }
    free(streams);
    if (!status && moments()) moment_host_waited_for_context(context->owner);
    if (!status) pools_synchronized();
    return status ? status : context_error(context->owner);
}
