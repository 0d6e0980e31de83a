/* Launches that are ended from outside: those that run longer than is allowed, and those that the user interrupts.
 *
 * A kernel may loop forever without calling anything, and a test in every loop would cost speed. So a watchdog sends the
 * threads that work on the launch a signal, again and again until all have left it. A thread that it finds in the
 * kernel's machine code leaves that by a long jump (guard.c); one in a helper, which may hold a lock, goes on until a
 * later signal finds it outside. */
#define _GNU_SOURCE
#include "common/common.h"
#include "common/thread.h"
#include "schedule.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { KICK_NANOSECONDS = 1000000, KICKS_FOR_MAPPINGS = 32 };

/* A thread that has worked on launches. In the list from its first launch on until it ends. */
struct worker {
    pthread_t thread;
    _Atomic(cpu_job *) job;
    struct worker *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t change;
static struct worker *workers;
static cpu_job *jobs;            /* that are running */
static bool started, asleep;     /* the watchdog; asleep: until it is woken, since there is nothing to watch */
static _Atomic uint64_t timeout; /* nanoseconds, 0: none */
static __thread struct worker *self;
static pthread_key_t self_key;

/* ---- the list of threads ------------------------------------------------------------------------------------- */

static void forget_self(void *worker) {
    pthread_mutex_lock(&lock);
    struct worker **link = &workers;
    while (*link && *link != worker) link = &(*link)->next;
    if (*link) *link = (*link)->next;
    pthread_mutex_unlock(&lock);
    free(worker);
}

static void init_condition(void) {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&change, &attributes);
    pthread_condattr_destroy(&attributes);
}

/* A forked child has one thread, and no launch runs in it. */
static void forget_all(void) {
    pthread_mutex_init(&lock, NULL);
    init_condition();
    workers = NULL;
    jobs = NULL;
    self = NULL;
    started = asleep = false;
}

static void prepare(void) {
    init_condition();
    pthread_key_create(&self_key, forget_self);
    pthread_atfork(NULL, NULL, forget_all);
}

static void prepare_once(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, prepare);
}

/* Without memory for an entry the thread cannot be stopped. */
static struct worker *this_worker(void) {
    if (self) return self;
    struct worker *made = calloc(1, sizeof *made);
    if (!made) return NULL;
    prepare_once();
    made->thread = pthread_self();
    pthread_setspecific(self_key, made);
    pthread_mutex_lock(&lock);
    made->next = workers;
    workers = made;
    pthread_mutex_unlock(&lock);
    return self = made;
}

cpu_job *cpu_stop_enter(cpu_job *job) {
    struct worker *worker = this_worker();
    if (!worker) return NULL;
    cpu_job *before = atomic_load_explicit(&worker->job, memory_order_relaxed);
    atomic_store_explicit(&worker->job, job, memory_order_release);
    return before;
}

void cpu_stop_leave(cpu_job *before) {
    if (self) atomic_store_explicit(&self->job, before, memory_order_release);
}

cpu_job *cpu_stop_current(void) { return self ? atomic_load_explicit(&self->job, memory_order_relaxed) : NULL; }

/* ---- the watchdog -------------------------------------------------------------------------------------------- */

/* The executable mappings in which the kernel's bodies are. Nothing else of them runs on a thread of the launch. */
static void find_code(cpu_job *job) {
    const cpu_variant *variant = job->launch->variant;
    uintptr_t bodies[CPU_BODIES] = {(uintptr_t)variant->body, (uintptr_t)atomic_load(&variant->independent)};
    for (int i = 0; variant->better && i < 2; i++) bodies[2 + i] = atomic_load(&variant->better[i]);
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[512];
    while (maps && fgets(line, sizeof line, maps)) {
        unsigned long begin, end;
        if (sscanf(line, "%lx-%lx", &begin, &end) != 2) continue;
        for (int i = 0; i < CPU_BODIES; i++) {
            if (bodies[i] < begin || bodies[i] >= end) continue;
            atomic_store(&job->code[i].end, end);
            atomic_store(&job->code[i].begin, begin);
        }
    }
    if (maps) fclose(maps);
}

static void wake_watchdog(void);

/* ---- launches on the thread that handles signals --------------------------------------------------------------- */

/* That thread runs what is expected to be quick without telling anybody, since it costs as much as a small launch to
 * have another thread run it. The watchdog looks from time to time whether it still does. If so, it puts a handler in
 * front of the program's own for SIGINT, which cannot do anything but note that it was called until the launch is over. */
enum { INLINE_NANOSECONDS = 50000000, LOOKS_UNTIL_SLEEP = 20 };
static _Atomic uint32_t inline_turns; /* odd: a launch runs so */
static _Atomic bool inline_unwatched = true;
static _Atomic bool in_front, signalled;
static struct sigaction behind; /* the program's own */

static void on_interrupt(int signal, siginfo_t *information, void *machine_context) {
    cpu_job *job = cpu_stop_current();
    if (behind.sa_flags & SA_SIGINFO) behind.sa_sigaction(signal, information, machine_context);
    else behind.sa_handler(signal);
    signalled = true;
    if (!job) return;
    if (job->interrupted) job->stop = CPU_STOP_INTERRUPT; /* the watchdog looks soon */
    job->interrupted = true;
}

static void step_in_front(void) {
    struct sigaction action = {.sa_sigaction = on_interrupt, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};
    if (in_front || sigaction(SIGINT, NULL, &behind)) return;
    if (!(behind.sa_flags & SA_SIGINFO) && (behind.sa_handler == SIG_DFL || behind.sa_handler == SIG_IGN)) return;
    sigemptyset(&action.sa_mask);
    in_front = !sigaction(SIGINT, &action, NULL);
}

void cpu_stop_begin_inline(void) {
    atomic_fetch_add_explicit(&inline_turns, 1, memory_order_relaxed);
    if (__builtin_expect(!atomic_load_explicit(&inline_unwatched, memory_order_relaxed), 1)) return;
    prepare_once();
    pthread_mutex_lock(&lock);
    inline_unwatched = false;
    wake_watchdog();
    pthread_mutex_unlock(&lock);
}

bool cpu_stop_end_inline(void) {
    atomic_fetch_add_explicit(&inline_turns, 1, memory_order_relaxed);
    if (__builtin_expect(!atomic_load_explicit(&in_front, memory_order_relaxed), 1)) return false;
    struct sigaction now;
    pthread_mutex_lock(&lock);
    if (!sigaction(SIGINT, NULL, &now) && now.sa_sigaction == on_interrupt) sigaction(SIGINT, &behind, NULL);
    in_front = false;
    pthread_mutex_unlock(&lock);
    return atomic_exchange(&signalled, false);
}

/* With the lock. When to look again, 0: not before the next launch. */
static uint64_t watch_inline(uint64_t now) {
    static uint32_t last, quiet;
    if (inline_unwatched) return 0;
    uint32_t turns = atomic_load(&inline_turns);
    if (turns != last) {
        last = turns;
        quiet = 0;
    } else if (turns % 2) {
        step_in_front();
    } else if (++quiet > LOOKS_UNTIL_SLEEP) {
        quiet = 0;
        inline_unwatched = true;
        if (atomic_load(&inline_turns) == turns) return 0;
        inline_unwatched = false;
    }
    return now + INLINE_NANOSECONDS;
}

/* With the lock. Returns when to look again, 0: when there is something new. */
static uint64_t watch(uint64_t now, unsigned kicks) {
    uint64_t next = watch_inline(now);
    for (cpu_job *job = jobs; job; job = job->next_running) {
        if (!job->stop && job->deadline && now >= job->deadline) atomic_store(&job->stop, CPU_STOP_TIMEOUT);
        uint64_t when = job->deadline;
        if (job->stop) {
            if (kicks % KICKS_FOR_MAPPINGS == 0 || !job->code[0].begin) find_code(job);
            for (struct worker *worker = workers; worker; worker = worker->next)
                if (atomic_load(&worker->job) == job) pthread_kill(worker->thread, STOP_SIGNAL);
            when = now + KICK_NANOSECONDS;
        }
        if (when && (!next || when < next)) next = when;
    }
    return next;
}

static void *run_watchdog(void *unused) {
    (void)unused;
    pthread_setname_np(pthread_self(), "cupola-watchdog");
    pthread_mutex_lock(&lock);
    for (unsigned kicks = 0;; kicks++) {
        uint64_t next = watch(clock_now(), kicks);
        if (next) {
            struct timespec until = {(time_t)(next / 1000000000), (long)(next % 1000000000)};
            pthread_cond_timedwait(&change, &lock, &until);
        } else {
            asleep = true;
            pthread_cond_wait(&change, &lock);
            asleep = false;
        }
    }
    return NULL;
}

/* With the lock. */
static void wake_watchdog(void) {
    if (started) {
        pthread_cond_signal(&change);
        return;
    }
    cpu_guard_install_stop();
    started = thread_start(run_watchdog, NULL);
}

/* ---- launches ------------------------------------------------------------------------------------------------ */

void cpu_stop_begin(cpu_job *job) {
    uint64_t allowed = atomic_load_explicit(&timeout, memory_order_relaxed);
    job->deadline = allowed ? clock_now() + allowed : 0;
    prepare_once();
    pthread_mutex_lock(&lock);
    job->next_running = jobs;
    jobs = job;
    if (allowed && (asleep || !started)) wake_watchdog();
    pthread_mutex_unlock(&lock);
}

void cpu_stop_end(cpu_job *job) {
    pthread_mutex_lock(&lock);
    cpu_job **link = &jobs;
    while (*link != job) link = &(*link)->next_running;
    *link = job->next_running;
    pthread_mutex_unlock(&lock);
}

uint64_t cpu_stop_pause(cpu_job *job) {
    pthread_mutex_lock(&lock);
    const uint64_t deadline = job->deadline, now = clock_now();
    job->deadline = 0;
    pthread_mutex_unlock(&lock);
    return deadline > now ? deadline - now : deadline ? 1 : 0;
}

void cpu_stop_resume(cpu_job *job, uint64_t left) {
    pthread_mutex_lock(&lock);
    if (left) job->deadline = clock_now() + left;
    if (left && asleep) wake_watchdog();
    pthread_mutex_unlock(&lock);
}

void cpu_stop_by_debugger(cpu_job *job) {
    pthread_mutex_lock(&lock);
    atomic_store(&job->stop, CPU_STOP_DEBUGGER);
    wake_watchdog();
    pthread_mutex_unlock(&lock);
}

void cpu_stop_after(uint64_t nanoseconds) { atomic_store(&timeout, nanoseconds); }

void cpu_stop_launching(const void *context) {
    bool stop = false;
    prepare_once();
    pthread_mutex_lock(&lock);
    for (cpu_job *job = jobs; job; job = job->next_running)
        if (job->launch->launched && job->launch->context == context && !job->stop) {
            atomic_store(&job->stop, CPU_STOP_FAILED);
            stop = true;
        }
    if (stop) wake_watchdog();
    pthread_mutex_unlock(&lock);
}

static _Atomic unsigned signals; /* that came while the host waited */

cpu_stop_watch cpu_stop_watch_begin(void) {
    return (cpu_stop_watch){.begin = atomic_load(&timeout) ? clock_now() : 0, .signals = atomic_load(&signals)};
}

bool cpu_stop_is_due(const cpu_stop_watch *watch) {
    enum { ENOUGH = 2 };
    uint64_t limit = atomic_load_explicit(&timeout, memory_order_relaxed);
    if (limit && watch->begin && clock_now() - watch->begin >= limit) return true;
    return atomic_load_explicit(&signals, memory_order_relaxed) - watch->signals >= ENOUGH;
}

void cpu_stop_interrupted(void) {
    bool stop = false;
    atomic_fetch_add(&signals, 1);
    prepare_once();
    pthread_mutex_lock(&lock);
    for (cpu_job *job = jobs; job; job = job->next_running) {
        if (!job->interrupted) {
            job->interrupted = true;
        } else if (!job->stop) {
            atomic_store(&job->stop, CPU_STOP_INTERRUPT);
            stop = true;
        }
    }
    if (stop) wake_watchdog();
    pthread_mutex_unlock(&lock);
}

void cpu_stop_raise(cpu_context *context) {
    if (atomic_load(&context->job->stop) == CPU_STOP_TIMEOUT)
        cpu_fault_raise(
            context, NULL, 0, CPU_FAULT_STOPPED, UINT32_MAX,
            "it ran for more than %g seconds, which is as long as CUPOLA_CPU_TIMEOUT or cupola.cpu.use(timeout=...) "
            "allows",
            (double)atomic_load(&timeout) * 1e-9);
    else if (atomic_load(&context->job->stop) == CPU_STOP_DEBUGGER)
        cpu_fault_raise(context, NULL, 0, CPU_FAULT_STOPPED, UINT32_MAX, "the debugger was told to end it");
    else if (atomic_load(&context->job->stop) == CPU_STOP_FAILED)
        cpu_fault_raise(context, NULL, 0, CPU_FAULT_STOPPED, UINT32_MAX, "something that it has launched failed");
    else
        cpu_fault_raise(context, NULL, 0, CPU_FAULT_STOPPED, UINT32_MAX,
                        "it still ran when a second signal (Ctrl-C) came while the program waited for the device");
}
