/* What a grid or a graph has begun below it, and the threads that carry it out (environment.c). */
#ifndef CUPOLA_CPU_DRIVER_ENVIRONMENT_H
#define CUPOLA_CPU_DRIVER_ENVIRONMENT_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "driver/base/base.h"

struct environment;

/* What the host has launched, in which all else is contained. */
struct origin {
    CUcontext context;
    cpu_stop_watch watch;
};

/* Something to carry out, a part of what contains it. */
struct jobs {
    struct job *first, *last;
};

struct job {
    struct job *next;
    struct environment *environment;
    const struct origin *origin;
    /* Carry it out, with all that it begins, and add to `tails` what is to follow it. The job frees itself. False: it
     * waits, and will be resumed. */
    bool (*run)(struct job *job, struct jobs *tails);
};

/* The environment of a grid or graph that runs (CUDA C++ Programming Guide, "Device Graph Launch"). It is over when all
 * its jobs are. */
struct environment {
    unsigned running;  /* jobs that have begun, or wait for a thread or to be resumed */
    struct jobs ready; /* those that wait for a thread */
    struct jobs tails;
    unsigned tail_count;
    pthread_cond_t over;
    const struct origin *origin;
    struct environment *next, *previous; /* of those with jobs that are ready */
    bool listed;
};

void environment_begin(struct environment *environment, const struct origin *origin);
struct origin origin_begin(CUcontext context);
/* One more job, at once, or again. */
void environment_add(struct environment *environment, struct job *job);
void environment_resume(struct job *job);
/* A job for when the environment is over; false: there are `most` already. */
bool environment_add_tail(struct environment *environment, struct job *job, unsigned most);
/* Wait until the environment is over, and hand its tails over. */
void environment_end(struct environment *environment, struct jobs *tails);

/* Carry out jobs and their tails, one after another: what a job leaves comes before what stood behind the job. */
void jobs_run(struct jobs *jobs);

/* The lock of all environments, for those who must look at several things at once. */
void environments_lock(void);
void environments_unlock(void);

#endif
