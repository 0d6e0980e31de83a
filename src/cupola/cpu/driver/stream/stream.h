/* Streams: operations, the queues that carry them out in order, the threads that do so, and events.
 *
 * Work on a stream is a `struct op`, handed to stream_submit(). */
#ifndef CUPOLA_CPU_DRIVER_STREAM_H
#define CUPOLA_CPU_DRIVER_STREAM_H

#include "above.h"
#include "driver/base/base.h"
#include "driver/inject/inject.h"
#include "event.h"
#include "op.h"

/* How entry points that are about a stream begin: as with enter_context(), for the context of the stream. Resolves 0,
 * CU_STREAM_LEGACY and CU_STREAM_PER_THREAD in the current context. The stream may be capturing; stream_submit() deals with
 * that. It passes the gate, enter_stream_to_ask() does not. */
CUresult enter_stream(CUstream handle, CUstream *stream);
CUresult enter_stream_to_ask(CUstream handle, CUstream *stream);
CUresult stream_create(CUcontext context, unsigned flags, int priority, CUstream *stream);
CUresult cuStreamDestroy(CUstream stream);
CUresult cuStreamWaitEvent(CUstream handle, CUevent event, unsigned flags);

enum stream_role {
    STREAM_USER,
    STREAM_LEGACY,
    STREAM_PER_THREAD,
    STREAM_GREEN /* the default one of a green context */
};
enum stream_state {
    STREAM_IDLE,      /* nothing queued */
    STREAM_SCHEDULED, /* something queued, nobody at work yet */
    STREAM_RUNNING,   /* a worker, or a thread that waits for the stream, is at work */
    STREAM_PARKED,    /* at a wait for another stream, which will schedule this one again */
};

struct waiter { /* someone who waits until a stream has completed `sequence` */
    struct waiter *next;
    uint64_t sequence;
    CUstream stream;          /* to schedule again, or NULL: */
    _Atomic uint32_t *signal; /* a futex of a waiting thread, becomes 1 */
};

struct CUstream_st {
    struct handle handle;
    CUcontext context; /* the owner of what its work uses */
    CUcontext green;   /* the green context it was made in, or NULL */
    CUstream next_in_context, previous_in_context;
    uint64_t id;
    unsigned flags; /* CU_STREAM_NON_BLOCKING or 0 */
    int priority;
    uint8_t role;
    pthread_mutex_t lock; /* queue, state, waiters */
    struct op *first, *last;
    uint8_t state;
    bool queued;                           /* in the workers' run queue */
    CUstream next_to_run;                  /* there */
    bool awaits_turn;                      /* while streams take turns (turns.c): in the list of those without one, */
    CUstream next_turn;                    /* there, */
    uint64_t turn;                         /* and the sequence that its worker ends with; 0: it has no turn */
    _Atomic uint64_t submitted, completed; /* sequence of the last op */
    struct waiter *waiters;
    _Atomic bool has_waiters;
    struct waiter parked;                 /* this stream's own place among the waiters of another */
    uint64_t legacy_seen;                 /* place in the legacy stream that this one already waits for */
    CUlaunchAttributeValue attributes[2]; /* access policy window, synchronization policy */
    _Atomic(void *) capture;              /* owned by capture.c; NULL when the stream is not capturing */
    _Atomic(struct cpu_line *) line;      /* its clock, while races are checked (moment.c); NULL: none yet */
};

/* Queue an operation, which the stream owns from now on, failure included. Keeps the rules of the legacy default
 * stream. When the stream captures, the operation becomes a graph node instead. */
CUresult stream_submit(CUstream stream, struct op *op);
CUresult stream_submit_marked(CUstream stream, struct op *op, CUevent event); /* and mark the event there */

/* The same for a copy or fill of at most STREAM_BRIEF bytes: if nothing is queued that comes before it, the calling thread does
 * it, which takes less than to wake a worker. */
enum { STREAM_BRIEF = 1 << 16 };
CUresult stream_submit_brief(CUstream stream, struct op *op);

/* The same, and wait until it is done (the synchronous copies and fills). Reports the context's error. */
CUresult stream_submit_and_wait(CUstream stream, struct op *op);

static inline bool stream_is_capturing(CUstream stream) {
    return atomic_load_explicit(&stream->capture, memory_order_acquire) != NULL;
}
static inline bool stream_has_completed(CUstream stream, uint64_t sequence) {
    return atomic_load_explicit(&stream->completed, memory_order_acquire) >= sequence;
}
static inline bool stream_is_busy(CUstream stream) {
    return !stream_has_completed(stream, atomic_load_explicit(&stream->submitted, memory_order_acquire));
}
bool blocking_streams_are_idle(CUcontext context);
/* How often a stream has looked in vain for the value in memory that it waits for; 0: it has nothing to do, or waits for
 * another stream; -1: it has. */
int64_t stream_polls(CUstream stream);
/* An operation that waits for a place in a stream. Takes over a reference to the stream, also when it returns NULL. */
struct op *op_new_wait(CUcontext context, CUstream stream, uint64_t sequence);
void stream_wait_until(CUstream stream, uint64_t sequence); /* blocks; helps with the stream's work */
/* The same, but a signal may end it early: CUDA_ERROR_NOT_READY, and a Python exception is set. */
CUresult stream_wait_interruptibly(CUstream stream, uint64_t sequence);

/* Signals of Python (signals.c). Is this the thread that handles them? Then, while it waits: */
bool signals_are_ours(void);
bool signals_handled(void);             /* false: the wait is to end, with an exception set */
void signals_handle(bool *interrupted); /* of a wait that must not end early: true after Ctrl-C, which is to come ... */
void signals_again(void);               /* ... again when the wait is over */

void stream_run(CUstream stream, uint64_t until); /* the caller made the state STREAM_RUNNING and holds a reference */
CUstream stream_take_handed_over(void); /* a scheduled stream, referenced, that this worker is to go on with; or NULL */
extern __thread bool thread_is_worker;
void worker_schedule(CUstream stream); /* the caller has made the state STREAM_SCHEDULED */
void worker_begin(CUstream stream);    /* the same, whether streams take turns or not */

/* Streams that take turns (turns.c). */
struct demand { /* of a thread that waits for a stream */
    struct demand *next;
    CUstream stream;
    uint64_t sequence;
};
static inline bool streams_take_turns(void) { return injects(INJECT_TURNS); }
bool turns_add(CUstream stream);  /* the stream waits for its turn; false: streams do not take turns any more */
void turns_over(CUstream stream); /* a worker has carried out the turn */
void turns_demand(struct demand *demand);
void turns_demand_end(struct demand *demand);
CUresult context_default_stream(CUcontext context, bool per_thread, CUstream *stream); /* of green ones their own */
CUstream *context_streams(CUcontext context, size_t *count); /* all, referenced; in an array to be freed, or NULL */
void stream_release(CUstream stream);                        /* gives a reference (handle_retain) back */

#endif
