/* Streams that take turns: a fuzzer of schedules (cupola.cpu.faults(reorder=True)).
 *
 * CUDA promises no order between streams but the one that events and waits make. So all streams of the process may as well
 * carry out one operation at a time, in any order that keeps those promises. One thread, the conductor, gives out the turns. A seed
 * says whose turn is next. For the same seed to give the same order, which streams have something to do must not depend on
 * how quick threads are. So turns are given only while the program stands still: while a thread waits for a stream (until
 * that has come so far, and no turn longer), and some, as the seed says, at the beginning of calls that queue work or ask
 * whether it is done.
 *
 * Two things may not be waited for for ever. An operation may need another stream or the host to go on: then it runs beside
 * the others after a while. And a program may wait in a way that no call shows, such as for a word of pinned memory: then turns are
 * given although nobody asks. Both take their time, and what they do is not the same every time. */
#include <time.h>

#include "common/thread.h"
#include "driver/inject/above.h"
#include "stream.h"

enum { MILLISECOND = 1000000, PATIENCE = 1000 * MILLISECOND, PATIENCE_OF_POLLS = 50 * MILLISECOND };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
static bool has_conductor;
static CUstream first;         /* without a turn, by their ids */
static CUstream current;       /* whose turn it is, referenced */
static uint64_t current_until; /* when the others stop waiting for it */
static unsigned granted;       /* turns that are given though nobody waits */
static struct demand *demands;
static uint64_t quiet_until; /* when it is noticed that the program makes no call */

static void wait_for_change(uint64_t until) {
    const struct timespec time = {(time_t)(until / 1000000000), (long)(until % 1000000000)};
    pthread_cond_timedwait(&changed, &lock, &time);
}

static void program_calls(void) {
    quiet_until = clock_now() + PATIENCE;
    pthread_cond_broadcast(&changed);
}

/* ---- whose turn it may be; with the lock ----------------------------------------------------------------------- */

struct head {             /* of a stream's queue */
    bool is_ready, waits; /* for something that other streams or the host do, as far as is known */
    bool is_debugged;     /* a kernel that somebody may look at for as long as they like */
    uint64_t sequence;
    const char *what;
};

static const char *name_of(const struct op *op) {
    switch (op->kind) {
        case OP_KERNEL: return kernel_op_name(op);
        case OP_COPY: return "copy";
        case OP_FILL: return "fill";
        case OP_HOST: return "host function";
        case OP_RECORD: return "event";
        case OP_WAIT: return "wait";
        case OP_VALUES: return "value";
        case OP_GRAPH: return "graph";
        case OP_CALL: return "call of a library";
        default: return "memory";
    }
}

static struct head look(CUstream stream) {
    struct head head = {0};
    pthread_mutex_lock(&stream->lock);
    const struct op *op = stream->state == STREAM_SCHEDULED ? stream->first : NULL;
    if (op) {
        head.is_ready =
            op->kind != OP_WAIT || !op->wait.stream || stream_has_completed(op->wait.stream, op->wait.sequence);
        head.waits = op_waits(op) || (op->kind == OP_VALUES && values_wait(op));
        head.is_debugged = op->kind == OP_KERNEL && cpu_engine_is_debugged(&op->kernel.launch);
        head.sequence = op->sequence;
        head.what = name_of(op);
    }
    pthread_mutex_unlock(&stream->lock);
    return head;
}

static unsigned count_ready(void) {
    unsigned count = 0;
    for (CUstream s = first; s; s = s->next_turn) count += look(s).is_ready;
    return count;
}

static bool is_waited_for(void) {
    for (const struct demand *d = demands; d; d = d->next)
        if (!stream_has_completed(d->stream, d->sequence)) return true;
    return false;
}

/* ---- the conductor --------------------------------------------------------------------------------------------- */

static CUstream take(CUstream *link) {
    CUstream stream = *link;
    *link = stream->next_turn;
    stream->awaits_turn = false;
    return stream;
}

/* Without the lock: workers take it. */
static void begin(CUstream stream) {
    pthread_mutex_unlock(&lock);
    worker_begin(stream);
    stream_release(stream);
    pthread_mutex_lock(&lock);
}

static void give_turn(unsigned ready) {
    unsigned chosen = inject_choose(ready);
    CUstream *link = &first;
    struct head head;
    while (*link && (!(head = look(*link)).is_ready || chosen--)) link = &(*link)->next_turn;
    if (!*link) return; /* a thread has begun with it meanwhile, since before streams took turns */
    CUstream stream = take(link);
    inject_turn(head.what, stream->id);
    pthread_mutex_lock(&stream->lock);
    stream->turn = head.sequence;
    pthread_mutex_unlock(&stream->lock);
    if (!head.waits) {
        current = handle_retain(stream);
        current_until = head.is_debugged ? UINT64_MAX : clock_now() + PATIENCE;
    }
    if (granted) granted--;
    begin(stream);
}

static void end_turn(void) {
    CUstream stream = current;
    current = NULL;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    stream_release(stream);
    pthread_mutex_lock(&lock);
}

static void *conduct(void *argument) {
    (void)argument;
    thread_state.in_callback = true; /* see worker.c */
    pthread_mutex_lock(&lock);
    for (;;) {
        if (!streams_take_turns()) {
            granted = 0;
            if (first) begin(take(&first));
            else pthread_cond_wait(&changed, &lock);
            continue;
        }
        if (current) {
            if (clock_now() >= current_until) end_turn();
            else wait_for_change(current_until);
            continue;
        }
        const unsigned ready = count_ready();
        const bool wanted = granted || is_waited_for();
        if (!ready && granted) {
            granted = 0;
            pthread_cond_broadcast(&changed);
        } else if (!ready) {
            /* A stream that was at work before streams took turns may end what another one waits for. */
            if (first && wanted) wait_for_change(clock_now() + MILLISECOND);
            else pthread_cond_wait(&changed, &lock);
        } else if (wanted || clock_now() >= quiet_until) {
            give_turn(ready);
        } else {
            wait_for_change(quiet_until);
        }
    }
    return NULL;
}

/* With the lock. */
static bool has_started(void) {
    if (has_conductor) return true;
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&changed, &attributes);
    pthread_condattr_destroy(&attributes);
    return has_conductor = thread_start(conduct, NULL);
}

/* ---- of the streams -------------------------------------------------------------------------------------------- */

bool turns_add(CUstream stream) {
    pthread_mutex_lock(&lock);
    const bool added = streams_take_turns() && has_started();
    if (added && !stream->awaits_turn) {
        CUstream *link = &first;
        while (*link && (*link)->id < stream->id) link = &(*link)->next_turn;
        stream->next_turn = *link;
        stream->awaits_turn = true;
        *link = handle_retain(stream);
    }
    if (added && thread_is_worker) pthread_cond_broadcast(&changed); /* which has carried out something of it */
    else if (added) program_calls();
    pthread_mutex_unlock(&lock);
    return added;
}

void turns_over(CUstream stream) {
    pthread_mutex_lock(&lock);
    if (current == stream) end_turn();
    pthread_mutex_unlock(&lock);
}

void turns_demand(struct demand *demand) {
    pthread_mutex_lock(&lock);
    demand->next = demands;
    demands = demand;
    if (has_conductor) program_calls();
    pthread_mutex_unlock(&lock);
}

void turns_demand_end(struct demand *demand) {
    pthread_mutex_lock(&lock);
    struct demand **link = &demands;
    while (*link != demand) link = &(*link)->next;
    *link = demand->next;
    pthread_mutex_unlock(&lock);
}

/* ---- of the program -------------------------------------------------------------------------------------------- */

void turns_at_call(bool polls) {
    enum { MOST_TURNS = 3 };
    if (thread_is_worker || thread_state.in_callback) return;
    /* Every other call that queues work gives none; one that asks gives some, so that whoever asks again and again gets on. */
    unsigned turns = inject_choose(2) || polls ? 1 + inject_choose(MOST_TURNS) : 0;
    pthread_mutex_lock(&lock);
    if (has_conductor && (first || current)) {
        program_calls();
        granted = turns;
        /* Who asks may have the GIL, which the operation may need. */
        const uint64_t until = clock_now() + (polls ? PATIENCE_OF_POLLS : PATIENCE);
        while (turns && (granted || current) && clock_now() < until) wait_for_change(until);
    }
    pthread_mutex_unlock(&lock);
}

void turns_end(void) {
    pthread_mutex_lock(&lock);
    if (has_conductor) pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}
