/* Environments, and the threads that carry out what kernels launch.
 *
 * A job begins as soon as a thread is free, and there may be as many threads as a GPU runs grids at once. More jobs wait
 * their turn, like grids on a GPU. Whoever waits for an environment runs its jobs meanwhile, so that even without any
 * further thread everything comes to its end: the depth of such calls is bounded by that of nested launches. Threads
 * without work end after a while. */
#define _GNU_SOURCE /* pthread_setname_np */
#include "environment.h"

#include <time.h>

#include "common/thread.h"
#include "driver/stream/stream.h"

enum { MOST_THREADS = 128, PATIENCE_SECONDS = 1 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work_is_there = PTHREAD_COND_INITIALIZER;
static struct environment *first; /* with jobs that are ready; in a circle */
static unsigned ready, threads, idle;

void environments_lock(void) { pthread_mutex_lock(&lock); }
void environments_unlock(void) { pthread_mutex_unlock(&lock); }

/* ---- lists ------------------------------------------------------------------------------------------------------- */

static void append(struct jobs *jobs, struct job *job) {
    job->next = NULL;
    if (jobs->last) jobs->last->next = job;
    else jobs->first = job;
    jobs->last = job;
}

static struct job *take_first(struct jobs *jobs) {
    struct job *job = jobs->first;
    jobs->first = job->next;
    if (!jobs->first) jobs->last = NULL;
    return job;
}

static void list(struct environment *environment) {
    if (environment->listed) return;
    environment->listed = true;
    if (!first) {
        first = environment->next = environment->previous = environment;
        return;
    }
    environment->next = first;
    environment->previous = first->previous;
    first->previous->next = environment;
    first->previous = environment;
}

static void unlist(struct environment *environment) {
    environment->listed = false;
    environment->next->previous = environment->previous;
    environment->previous->next = environment->next;
    if (first == environment) first = environment->next == environment ? NULL : environment->next;
}

/* ---- running, with the lock -------------------------------------------------------------------------------------- */

static struct job *take(struct environment *environment) {
    struct job *job = take_first(&environment->ready);
    ready--;
    if (!environment->ready.first) unlist(environment);
    return job;
}

/* Kernels that launch each other forever end like one that loops forever: what follows in the context does not run. */
static void stop_if_due(const struct origin *origin) {
    if (likely(!cpu_stop_is_due(&origin->watch)) || atomic_load(&origin->context->error)) return;
    CUresult status =
        fail(CUDA_ERROR_LAUNCH_TIMEOUT,
             "what kernels have launched one behind the other was stopped: it took too long (CUPOLA_CPU_TIMEOUT), "
             "or Ctrl-C was pressed twice");
    context_fault(origin->context, status, NULL, NULL);
}

/* As on a GPU, nothing of the context goes on. */
static void stop_if_failed(const struct origin *origin) {
    if (unlikely(atomic_load(&origin->context->error))) cpu_stop_launching(origin->context);
}

void jobs_run(struct jobs *jobs) {
    while (jobs->first) {
        struct jobs own = {NULL, NULL};
        struct job *job = take_first(jobs);
        const struct origin *origin = job->origin;
        stop_if_due(origin);
        (void)job->run(job, &own);
        stop_if_failed(origin);
        if (!own.first) continue;
        own.last->next = jobs->first;
        if (!jobs->first) jobs->last = own.last;
        jobs->first = own.first;
    }
}

/* A job that is no tail, without the lock meanwhile. Nothing that this thread is in the middle of is the job's business. */
static void run(struct environment *environment, struct job *job) {
    pthread_mutex_unlock(&lock);
    struct graph_run *const around = thread_state.graph_run;
    const bool before = thread_state.in_callback;
    thread_state.graph_run = NULL;
    thread_state.in_callback = true; /* see worker.c */
    struct jobs tails = {NULL, NULL};
    const struct origin *origin = job->origin;
    stop_if_due(origin);
    bool over = job->run(job, &tails);
    stop_if_failed(origin);
    jobs_run(&tails);
    thread_state.graph_run = around;
    thread_state.in_callback = before;
    pthread_mutex_lock(&lock);
    if (over && --environment->running == 0) pthread_cond_broadcast(&environment->over);
}

static void *work(void *argument) {
    (void)argument;
    pthread_setname_np(pthread_self(), "cupola-launched");
    pthread_mutex_lock(&lock);
    for (;;) {
        if (first) {
            struct environment *environment = first;
            first = environment->next; /* in turn */
            run(environment, take(environment));
            continue;
        }
        struct timespec end;
        clock_gettime(CLOCK_REALTIME, &end);
        end.tv_sec += PATIENCE_SECONDS;
        idle++;
        int status = pthread_cond_timedwait(&work_is_there, &lock, &end);
        idle--;
        if (status && !first) break;
    }
    threads--;
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void push(struct environment *environment, struct job *job) {
    append(&environment->ready, job);
    list(environment);
    ready++;
    if (environment->running) pthread_cond_broadcast(&environment->over); /* who waits may run it */
    if (ready <= idle) {
        pthread_cond_signal(&work_is_there);
    } else if (threads < MOST_THREADS) {
        threads++;
        if (!thread_start(work, NULL)) threads--;
    }
}

/* ---- for others -------------------------------------------------------------------------------------------------- */

struct origin origin_begin(CUcontext context) { return (struct origin){context, cpu_stop_watch_begin()}; }

void environment_begin(struct environment *environment, const struct origin *origin) {
    *environment = (struct environment){.origin = origin};
    pthread_cond_init(&environment->over, NULL);
}

void environment_add(struct environment *environment, struct job *job) {
    job->environment = environment;
    job->origin = environment->origin;
    pthread_mutex_lock(&lock);
    environment->running++;
    push(environment, job);
    pthread_mutex_unlock(&lock);
}

void environment_resume(struct job *job) { push(job->environment, job); }

bool environment_add_tail(struct environment *environment, struct job *job, unsigned most) {
    job->environment = environment;
    job->origin = environment->origin;
    pthread_mutex_lock(&lock);
    bool fits = environment->tail_count < most;
    if (fits) {
        environment->tail_count++;
        append(&environment->tails, job);
    }
    pthread_mutex_unlock(&lock);
    return fits;
}

void environment_end(struct environment *environment, struct jobs *tails) {
    pthread_mutex_lock(&lock);
    while (environment->running)
        if (environment->ready.first) run(environment, take(environment));
        else pthread_cond_wait(&environment->over, &lock);
    *tails = environment->tails;
    pthread_mutex_unlock(&lock);
    pthread_cond_destroy(&environment->over);
}
