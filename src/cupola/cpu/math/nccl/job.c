/* Jobs: calls that make a communicator wait for other ranks, so those of a group run side by side, and those of communicators
 * that do not block run while the program goes on. */
#include <stdio.h>
#include <stdlib.h>

#include "common/thread.h"
#include "nccl.h"

/* The job that made the communicator is over. */
static void comm_made(ncclComm_t comm, ncclResult_t status, const char *text) {
    if (status) {
        comm_error(comm, status, text);
    } else {
        pthread_mutex_lock(&comm->lock);
        if (atomic_load(&comm->state) == ncclInProgress) atomic_store(&comm->state, ncclSuccess);
        pthread_cond_broadcast(&comm->changed);
        pthread_mutex_unlock(&comm->lock);
    }
}

/* Until a call of its is over, a communicator that does not block is in progress. */
static void parent_begin(ncclComm_t parent) {
    pthread_mutex_lock(&parent->lock);
    parent->calls++;
    if (!atomic_load(&parent->state)) atomic_store(&parent->state, ncclInProgress);
    pthread_mutex_unlock(&parent->lock);
}

static void parent_end(ncclComm_t parent, ncclResult_t status, const char *text) {
    pthread_mutex_lock(&parent->lock);
    bool last = !--parent->calls;
    pthread_mutex_unlock(&parent->lock);
    if (status || last) comm_made(parent, status, text);
}

/* A communicator that comes of another one is handed over when it is made, and not before. */
static void hand_over(struct job *job) {
    if (job->status) comm_drop(job->comm);
    else __atomic_store_n(job->place, job->comm, __ATOMIC_RELEASE);
}

/* The job is over, or is not to be done. */
static void job_end(struct job *job) {
    if (job->comm) {
        comm_made(job->comm, job->status, job->text);
        if (job->place) hand_over(job);
        comm_release(job->comm);
    }
    if (job->parent_waits) parent_end(job->parent, job->status, job->text);
    if (job->parent) comm_release(job->parent);
    free(job->others);
}

static void job_carry_out(struct job *job) {
    job->status = job->run(job);
    if (job->status) snprintf(job->text, sizeof job->text, "%s", nccl_last_text());
    job_end(job);
}

void comm_jobs_drop(struct job *jobs, ncclResult_t status) {
    while (jobs) {
        struct job *job = jobs;
        jobs = job->next;
        job->status = status;
        snprintf(job->text, sizeof job->text, "%s", nccl_last_text());
        job_end(job);
        free(job);
    }
}

static void *job_joined(void *argument) {
    job_carry_out(argument);
    return NULL;
}

static void *job_alone(void *argument) {
    job_carry_out(argument);
    free(argument);
    return NULL;
}

/* Whether nobody waits for it: the communicator that is called does not block. */
static bool is_left_alone(const struct job *job) {
    const struct ncclComm *called = job->place ? job->parent : job->comm;
    return called && !called->is_blocking;
}

ncclResult_t comm_jobs_run(struct job *jobs) {
    ncclResult_t status = ncclSuccess;
    struct job *joined = NULL, **end = &joined;
    while (jobs) {
        struct job *job = jobs;
        jobs = job->next;
        job->next = NULL;
        if (job->parent) {
            pthread_mutex_lock(&job->parent->lock);
            job->turn = job->parent->asked++;
            job->parent_stopped = atomic_load(&job->parent->stopped);
            pthread_mutex_unlock(&job->parent->lock);
        }
        if (is_left_alone(job)) {
            if (!status) status = ncclInProgress;
            job->parent_waits = job->place;
            if (job->parent_waits) parent_begin(job->parent);
            if (thread_start(job_alone, job)) continue;
            job_carry_out(job); /* the system has no room for a thread */
            free(job);
            continue;
        }
        *end = job;
        end = &job->next;
        if (jobs || job != joined) job->has_thread = thread_start_joined(&job->thread, job_joined, job);
    }
    for (struct job *job = joined; job; job = job->next)
        if (!job->has_thread) job_carry_out(job);
    while (joined) {
        struct job *job = joined;
        joined = job->next;
        if (job->has_thread) pthread_join(job->thread, NULL);
        if (job->status && (!status || status == ncclInProgress)) {
            status = job->status;
            fail((CUresult)status, "%s", job->text);
        }
        free(job);
    }
    return status;
}
