/* The helper threads that take part in long launches. They are started when first needed, serve every launch of
 * the process, and sleep otherwise. By default as many threads work on one launch as this process may
 * use processors. */
#define _GNU_SOURCE
#include "common/thread.h"
#include "schedule.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

static struct {
    pthread_mutex_t lock;
    pthread_cond_t work, left; /* there is a job with blocks left; a helper left its job */
    cpu_job *jobs;
    int started, wanted; /* helpers; of them still to be woken */
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .work = PTHREAD_COND_INITIALIZER, .left = PTHREAD_COND_INITIALIZER};

/* After fork() the child has no helpers; its launches start new ones. */
static void forget_helpers(void) {
    pthread_mutex_init(&pool.lock, NULL);
    pthread_cond_init(&pool.work, NULL);
    pthread_cond_init(&pool.left, NULL);
    pool.jobs = NULL;
    pool.started = pool.wanted = 0;
}

enum { MOST_THREADS = 256 };

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

static bool has_work(const cpu_job *job) {
    return atomic_load_explicit(&job->next_cluster, memory_order_relaxed) < job->cluster_count &&
           !atomic_load_explicit(&job->fault, memory_order_relaxed);
}

static void run_tasks(cpu_job *job) {
    uint64_t index;
    while ((index = atomic_fetch_add_explicit(&job->next_cluster, 1, memory_order_relaxed)) < job->cluster_count)
        job->task(job->task_data, index);
}

/* Each helper that is woken wakes others, so that nobody wakes all of them one by one. */
enum { WOKEN_BY_ONE = 2 };

static int take_wanted(void) { /* with the lock */
    int count = pool.wanted < WOKEN_BY_ONE ? pool.wanted : WOKEN_BY_ONE;
    pool.wanted -= count;
    return count;
}

static void wake(int count) {
    while (count--) pthread_cond_signal(&pool.work);
}

static void *help(void *argument) {
    (void)argument;
    pthread_mutex_lock(&pool.lock);
    for (;;) {
        cpu_job *job = pool.jobs;
        while (job && !(has_work(job) && cpu_share_try(job->launch->share))) job = job->next;
        if (!job) {
            pool.wanted = 0;
            pthread_cond_wait(&pool.work, &pool.lock);
            continue;
        }
        job->helpers++;
        int next = take_wanted();
        pthread_mutex_unlock(&pool.lock);
        wake(next);
        if (job->task) run_tasks(job);
        else cpu_worker_run(job, NULL, NULL);
        cpu_share_leave(job->launch->share);
        pthread_mutex_lock(&pool.lock);
        if (--job->helpers == 0) pthread_cond_broadcast(&pool.left);
    }
    return NULL;
}

/* With the lock. */
static void start_helpers(void) {
    static bool registered;
    if (!registered) {
        pthread_atfork(NULL, NULL, forget_helpers);
        registered = true;
    }
    while (pool.started < cpu_pool_threads() - 1 && thread_start(help, NULL)) pool.started++;
}

void cpu_pool_look_again(void) {
    pthread_mutex_lock(&pool.lock);
    pthread_cond_broadcast(&pool.work);
    pthread_mutex_unlock(&pool.lock);
}

void cpu_pool_offer(cpu_job *job, int helpers) {
    pthread_mutex_lock(&pool.lock);
    start_helpers();
    if (!job->is_offered) {
        job->next = pool.jobs;
        pool.jobs = job;
        job->is_offered = true;
    }
    pool.wanted = pool.wanted + helpers < pool.started ? pool.wanted + helpers : pool.started;
    int next = take_wanted();
    pthread_mutex_unlock(&pool.lock);
    wake(next);
}

void cpu_pool_withdraw(cpu_job *job) {
    pthread_mutex_lock(&pool.lock);
    cpu_job **link = &pool.jobs;
    while (*link && *link != job) link = &(*link)->next;
    if (*link) *link = job->next;
    while (job->helpers) pthread_cond_wait(&pool.left, &pool.lock);
    pthread_mutex_unlock(&pool.lock);
}

void cpu_pool_run(void (*task)(void *data, uint64_t index), void *data, uint64_t count) {
    static cpu_launch none; /* of no share of the threads */
    cpu_job job = {.launch = &none, .cluster_count = count, .task = task, .task_data = data};
    bool together = count > 1 && cpu_pool_threads() > 1;
    if (together) cpu_pool_offer(&job, cpu_pool_threads() - 1);
    run_tasks(&job);
    if (together) cpu_pool_withdraw(&job);
}
