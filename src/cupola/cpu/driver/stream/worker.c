/* The threads that run streams.
 *
 * Every stream must make progress of its own, whatever the others wait for, so a stream with work always has a thread
 * to itself; but it has one only while it has work. Idle threads are kept: one of them watches the run queue for a
 * short while before it sleeps, because waking a thread costs more than most launches take. The run queue holds more
 * streams than there are free threads only until the thread made for it has started. */
#define _GNU_SOURCE /* pthread_setname_np */
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/thread.h"
#include "stream.h"

enum { WATCH_NANOSECONDS = 30000 };

__thread bool thread_is_worker;

struct worker {
    struct worker *next; /* among the sleepers */
    _Atomic uint32_t awake;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static CUstream first, last; /* the run queue, higher priorities first */
static _Atomic int queued;   /* its length */
static int available;        /* threads awake, or being started, that have no stream */
static struct worker *sleepers;
static bool watched; /* an idle thread watches the queue */

/* Takes the first stream off the queue; with the lock. */
static CUstream take(void) {
    CUstream stream = first;
    if (!stream) return NULL;
    first = stream->next_to_run;
    if (!first) last = NULL;
    stream->next_to_run = NULL;
    stream->queued = false;
    atomic_store_explicit(&queued, queued - 1, memory_order_relaxed);
    available--;
    return stream;
}

static void run(CUstream stream) {
    while (stream) {
        pthread_mutex_lock(&stream->lock);
        bool mine = stream->state == STREAM_SCHEDULED; /* otherwise a thread that waits for it was faster */
        const uint64_t turn = stream->turn;
        if (mine) stream->state = STREAM_RUNNING;
        stream->turn = 0;
        pthread_mutex_unlock(&stream->lock);
        if (mine) stream_run(stream, turn ? turn : UINT64_MAX);
        if (unlikely(turn)) turns_over(stream);
        stream_release(stream);
        stream = stream_take_handed_over();
    }
}

static void watch(void) {
    uint64_t end = clock_now() + WATCH_NANOSECONDS;
    do {
        for (int i = 0; i < 64; i++) {
            if (atomic_load_explicit(&queued, memory_order_relaxed)) return;
            cpu_relax();
        }
    } while (clock_now() < end);
}

static void *work(void *argument) {
    struct worker self = {0};
    (void)argument;
    thread_is_worker = true;
    /* Compiling and describing faults run Python here, and so the garbage collector. What that destroys must not wait for
     * streams, of which this is one: it is refused, as in a host function, and destroyed later. */
    thread_state.in_callback = true;
    pthread_setname_np(pthread_self(), "cupola-stream");
    pthread_mutex_lock(&lock);
    for (;;) {
        CUstream stream = take();
        if (!stream && !watched) {
            watched = true;
            pthread_mutex_unlock(&lock);
            watch();
            pthread_mutex_lock(&lock);
            watched = false;
            stream = take();
        }
        if (stream) {
            pthread_mutex_unlock(&lock);
            run(stream);
            pthread_mutex_lock(&lock);
            available++;
            continue;
        }
        available--;
        self.next = sleepers;
        sleepers = &self;
        atomic_store_explicit(&self.awake, 0, memory_order_relaxed);
        pthread_mutex_unlock(&lock);
        while (!atomic_load_explicit(&self.awake, memory_order_acquire))
            syscall(SYS_futex, &self.awake, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
        pthread_mutex_lock(&lock);
    }
    return NULL;
}

void worker_schedule(CUstream stream) {
    if (likely(!streams_take_turns()) || !turns_add(stream)) worker_begin(stream);
}

void worker_begin(CUstream stream) {
    struct worker *wake = NULL;
    bool need_thread = false;
    pthread_mutex_lock(&lock);
    if (!stream->queued) {
        stream->queued = true;
        handle_retain(stream);
        CUstream before = NULL;
        if (last && last->priority <= stream->priority) before = last;
        else
            for (CUstream s = first; s && s->priority <= stream->priority; s = s->next_to_run) before = s;
        stream->next_to_run = before ? before->next_to_run : first;
        if (before) before->next_to_run = stream;
        else first = stream;
        if (!stream->next_to_run) last = stream;
        atomic_store_explicit(&queued, queued + 1, memory_order_release);
        if (queued > available) {
            available++;
            wake = sleepers;
            if (wake) sleepers = wake->next;
            else need_thread = true;
        }
    }
    pthread_mutex_unlock(&lock);
    if (wake) {
        atomic_store_explicit(&wake->awake, 1, memory_order_release);
        syscall(SYS_futex, &wake->awake, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    }
    /* Without a thread, the next worker that becomes idle does the work, or a thread that waits for the stream. */
    if (need_thread && !thread_start(work, NULL)) {
        pthread_mutex_lock(&lock);
        available--;
        pthread_mutex_unlock(&lock);
    }
}
