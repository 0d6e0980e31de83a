/* The helper threads that take part in long launches. They are started when first needed, serve every launch of the
 * process, and sleep otherwise. By default as many threads work on one launch as this process may use processors.
 *
 * A launch that wants helpers puts itself into a slot, from which they take it without a lock. Slots stay where they
 * are, and count who holds what is in them, so that a launch ends only when nobody holds it any more. Helpers have
 * fixed numbers, and a launch asks for those from the slot's first one on: launch after launch, the same part of the
 * blocks goes to the same thread (ranges, scheduler.c), whose caches know its memory.
 *
 * Waking a thread takes long. So those that have helped watch for a while for the next call before they sleep, and
 * each that is woken wakes others. */
#define _GNU_SOURCE
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/common.h"
#include "common/thread.h"
#include "schedule.h"

enum { MOST_THREADS = 256, SLOTS = 16, WOKEN_BY_ONE = 2 };
enum { WATCH_NANOSECONDS = 100000, WATCH_LITTLE_NANOSECONDS = 20000, LEAVE_NANOSECONDS = 20000 };

struct cpu_slot {
    _Alignas(64) _Atomic(cpu_job *) job;
    _Atomic bool taken;
    _Atomic int first, wanted;            /* helpers: the number of the first one, and how many */
    _Atomic int next_to_wake;             /* counted from the first one */
    _Alignas(64) _Atomic uint32_t inside; /* helpers that hold the job, or look; and whether the launch sleeps */
};
static const uint32_t SLEEPS = 1u << 31;

struct helper {
    _Alignas(64) _Atomic uint32_t asleep;
};

static struct {
    pthread_mutex_t lock; /* of starting threads */
    _Atomic int started;
    _Atomic uint64_t warm_until; /* helpers watch, or are at work, until then ... */
    _Atomic int warm;            /* ... so many */
    _Alignas(64) _Atomic uint32_t calls;
    struct cpu_slot slots[SLOTS];
    struct helper helpers[MOST_THREADS];
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* After fork() the child has no helpers; its launches start new ones. */
static void forget_helpers(void) {
    pthread_mutex_init(&pool.lock, NULL);
    pool.started = pool.warm = 0;
    for (int i = 0; i < SLOTS; i++) {
        pool.slots[i].job = NULL;
        pool.slots[i].taken = false;
        pool.slots[i].inside = 0;
    }
}

static int count_threads(void) {
    cpu_set_t set;
    int count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return count > MOST_THREADS ? MOST_THREADS : count;
}

static _Atomic int threads_to_use; /* 0: not known yet */

void cpu_pool_set_threads(int threads) { atomic_store_explicit(&threads_to_use, threads, memory_order_relaxed); }

int cpu_pool_threads(void) {
    int threads = atomic_load_explicit(&threads_to_use, memory_order_relaxed);
    if (!threads) cpu_pool_set_threads(threads = count_threads());
    return threads;
}

static void futex_wait(_Atomic uint32_t *word, uint32_t value) {
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *word) { syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0); }

/* ---- what there is to do --------------------------------------------------------------------------------------- */

static bool has_work(const cpu_job *job) {
    return !atomic_load_explicit(&job->all_begun, memory_order_relaxed) &&
           !atomic_load_explicit(&job->fault, memory_order_relaxed);
}

static void run_tasks(cpu_job *job) {
    uint64_t first, end;
    for (uint32_t range = 0; cpu_range_take(job, &range, &first, &end);)
        for (; first < end; first++) job->task(job->task_data, first);
}

static void leave(struct cpu_slot *slot) {
    if (atomic_fetch_sub(&slot->inside, 1) == (SLEEPS | 1)) futex_wake(&slot->inside);
}

/* The place of a helper among those that a slot asks for. */
static int place_in(const struct cpu_slot *slot, int helper) {
    int place = helper - atomic_load_explicit(&slot->first, memory_order_relaxed);
    return place < 0 ? place + atomic_load_explicit(&pool.started, memory_order_relaxed) : place;
}

static bool rouse(int helper) {
    _Atomic uint32_t *asleep = &pool.helpers[helper].asleep;
    if (!atomic_load(asleep) || !atomic_exchange(asleep, 0)) return false;
    futex_wake(asleep);
    return true;
}

/* Wake some of the helpers that the slot asks for and that sleep. */
static void rouse_some(struct cpu_slot *slot) {
    int helpers = atomic_load_explicit(&pool.started, memory_order_relaxed);
    for (int woken = 0; woken < WOKEN_BY_ONE;) {
        int place = atomic_load(&slot->next_to_wake);
        if (place >= atomic_load(&slot->wanted)) return;
        if (!atomic_compare_exchange_weak(&slot->next_to_wake, &place, place + 1)) continue;
        int helper = atomic_load_explicit(&slot->first, memory_order_relaxed) + place;
        woken += rouse(helper < helpers ? helper : helper - helpers);
    }
}

static void work(struct cpu_slot *slot, cpu_job *job, int place) {
    rouse_some(slot);
    if (job->task) run_tasks(job);
    else cpu_worker_run(job, 1 + (uint32_t)place, NULL, NULL);
    cpu_share_leave(job->launch->share);
}

/* Take part in what asks for this helper. False when nothing does. */
static bool help_once(int helper) {
    for (int i = 0; i < SLOTS; i++) {
        struct cpu_slot *slot = &pool.slots[i];
        if (!atomic_load(&slot->job)) continue;
        int place = place_in(slot, helper);
        if (place >= atomic_load(&slot->wanted)) continue;
        atomic_fetch_add(&slot->inside, 1);
        cpu_job *job = atomic_load(&slot->job);
        bool mine = job && has_work(job) && cpu_share_try(job->launch->share);
        if (mine) work(slot, job, place);
        leave(slot);
        if (mine) return true;
    }
    return false;
}

/* Until there is another call, or for about so long. Whoever else wants this processor gets it. */
static bool watch(uint32_t calls, uint64_t nanoseconds) {
    uint64_t end = clock_now() + nanoseconds;
    do {
        for (int i = 0; i < 32; i++) {
            if (atomic_load_explicit(&pool.calls, memory_order_relaxed) != calls) return true;
            cpu_relax();
        }
        sched_yield();
    } while (clock_now() < end);
    return false;
}

static void sleep_until_roused(int helper, uint32_t calls) {
    _Atomic uint32_t *asleep = &pool.helpers[helper].asleep;
    atomic_store(asleep, 1);
    if (atomic_load(&pool.calls) != calls && atomic_exchange(asleep, 0)) return;
    while (atomic_load(asleep)) futex_wait(asleep, 1);
}

static void *help(void *argument) {
    const int helper = (int)(intptr_t)argument;
    for (;;) {
        uint32_t calls = atomic_load(&pool.calls);
        uint64_t began = clock_now();
        bool helped = false;
        while (help_once(helper)) helped = true;
        /* At most as long as it has worked: what is short comes often, or is not worth it. */
        uint64_t patience = helped ? clock_now() - began : 0;
        if (patience < WATCH_LITTLE_NANOSECONDS) patience = helped ? WATCH_LITTLE_NANOSECONDS : 0;
        if (patience > WATCH_NANOSECONDS) patience = WATCH_NANOSECONDS;
        if (!watch(calls, patience)) sleep_until_roused(helper, calls);
    }
    return NULL;
}

static void start_helpers(void) {
    static bool registered;
    int wanted = cpu_pool_threads() - 1;
    if (atomic_load_explicit(&pool.started, memory_order_relaxed) >= wanted) return;
    pthread_mutex_lock(&pool.lock);
    if (!registered) {
        pthread_atfork(NULL, NULL, forget_helpers);
        registered = true;
    }
    while (pool.started < wanted && thread_start(help, (void *)(intptr_t)pool.started)) pool.started++;
    pthread_mutex_unlock(&pool.lock);
}

/* ---- of launches ----------------------------------------------------------------------------------------------- */

static bool anything_to_do(void) {
    bool found = false;
    for (int i = 0; !found && i < SLOTS; i++) {
        struct cpu_slot *slot = &pool.slots[i];
        if (!atomic_load(&slot->job)) continue;
        atomic_fetch_add(&slot->inside, 1);
        const cpu_job *job = atomic_load(&slot->job);
        found = job && has_work(job);
        leave(slot);
    }
    return found;
}

void cpu_pool_look_again(void) {
    if (!anything_to_do()) return;
    atomic_fetch_add(&pool.calls, 1);
    int helpers = atomic_load(&pool.started);
    for (int i = 0; i < helpers; i++) rouse(i);
}

/* A free slot, with helpers that others do not ask for, if there are any. NULL: none is free. */
static struct cpu_slot *take_slot(void) {
    int first = 0;
    for (int i = 0; i < SLOTS; i++) {
        struct cpu_slot *slot = &pool.slots[i];
        if (!atomic_load_explicit(&slot->taken, memory_order_relaxed) && !atomic_exchange(&slot->taken, true)) {
            int helpers = atomic_load_explicit(&pool.started, memory_order_relaxed);
            atomic_store(&slot->first, helpers ? first % helpers : 0);
            return slot;
        }
        first += atomic_load_explicit(&slot->wanted, memory_order_relaxed);
    }
    return NULL;
}

bool cpu_pool_offer(cpu_job *job, int helpers) {
    start_helpers();
    struct cpu_slot *slot = job->slot;
    if (!slot) {
        if (!(slot = job->slot = take_slot())) return false;
        atomic_store(&slot->next_to_wake, 0);
        atomic_store(&slot->wanted, helpers);
        atomic_store(&slot->job, job);
    } else {
        atomic_store(&slot->wanted, helpers);
    }
    atomic_fetch_add(&pool.calls, 1);
    rouse_some(slot);
    return true;
}

int cpu_pool_warm(void) {
    if (clock_now() > atomic_load_explicit(&pool.warm_until, memory_order_relaxed)) return 0;
    return atomic_load_explicit(&pool.warm, memory_order_relaxed);
}

void cpu_pool_withdraw(cpu_job *job) {
    struct cpu_slot *slot = job->slot;
    if (!slot) return;
    atomic_store(&slot->job, NULL);
    uint64_t now = clock_now(), end = now + LEAVE_NANOSECONDS;
    while (atomic_load(&slot->inside) && (now = clock_now()) < end)
        for (int i = 0; i < 32 && atomic_load_explicit(&slot->inside, memory_order_relaxed); i++) cpu_relax();
    if (atomic_load(&slot->inside)) {
        atomic_fetch_or(&slot->inside, SLEEPS);
        for (uint32_t inside; (inside = atomic_load(&slot->inside)) != SLEEPS;) futex_wait(&slot->inside, inside);
        atomic_fetch_and(&slot->inside, ~SLEEPS);
        now = clock_now();
    }
    atomic_store_explicit(&pool.warm, atomic_load_explicit(&slot->wanted, memory_order_relaxed), memory_order_relaxed);
    atomic_store_explicit(&pool.warm_until, now + WATCH_LITTLE_NANOSECONDS, memory_order_relaxed);
    atomic_store(&slot->wanted, 0);
    atomic_store(&slot->taken, false);
    job->slot = NULL;
}

void cpu_pool_run(void (*task)(void *data, uint64_t index), void *data, uint64_t count) {
    static cpu_launch none; /* of no share of the threads */
    cpu_range all = {.end = count};
    cpu_job job = {.launch = &none,
                   .cluster_count = count,
                   .chunk = 1,
                   .ranges = &all,
                   .range_count = 1,
                   .task = task,
                   .task_data = data};
    if (count > 1 && cpu_pool_threads() > 1) cpu_pool_offer(&job, cpu_pool_threads() - 1);
    run_tasks(&job);
    cpu_pool_withdraw(&job);
}
