/* How long a group will take, for ncclGroupSimulateEnd: time of this machine, as events of the CPU device measure it. What a
 * communicator has done before tells how long an exchange takes that moves little, and how many bytes a second go through. */
#include <stdlib.h>

#include "nccl.h"

enum { FEW = 4 << 10, MANY = 256 << 10 /* bytes */, TRIES = 3 };

/* That a rank moves, at most. */
static size_t task_bytes(ncclComm_t comm, const struct task *task) {
    const size_t ranks = (size_t)comm->count, size = task->count * type_size(task->type), others = size * (ranks - 1);
    switch (task->function) {
        case ALL_REDUCE: return size + 4 * (size / ranks) * (ranks - 1); /* each block comes, and goes again */
        case REDUCE: return size + 2 * (size / ranks) * (ranks - 1);
        case ALL_GATHER:
        case REDUCE_SCATTER:
        case ALL_TO_ALL: return size + 2 * others;
        case BROADCAST:
        case GATHER:
        case SCATTER: return size + others;
        default: return size;
    }
}

/* The best counts: in all others, a rank has waited for a late one. */
void pace_note(ncclComm_t comm, const struct task *tasks, double seconds) {
    size_t bytes = 0;
    int count = 0;
    for (; tasks; tasks = tasks->next, count++) bytes += task_bytes(comm, tasks);
    const double each = seconds / count;
    pthread_mutex_lock(&comm->lock);
    struct pace *pace = &comm->pace;
    if (bytes <= FEW && (pace->delay == 0 || each < pace->delay)) pace->delay = each;
    if (bytes >= MANY && (double)bytes / seconds > pace->rate) pace->rate = (double)bytes / seconds;
    pthread_mutex_unlock(&comm->lock);
}

static double since(uint64_t begin) { return (double)(clock_now() - begin + 1) * 1e-9; }

/* Where nothing was moved yet: how fast this process copies, and wakes up. */
static void measure(struct pace *pace) {
    char *from = calloc(2, MANY), *to = from ? from + MANY : NULL;
    struct pace best = {.delay = 1e-5, .rate = 1e9};
    for (int i = 0; i < TRIES; i++) {
        uint64_t begin = clock_now();
        if (from) memcpy(to, from, MANY);
        double copied = since(begin);
        if (from && MANY / copied > best.rate) best.rate = MANY / copied;
        begin = clock_now();
        nanosleep(&(struct timespec){.tv_nsec = 1}, NULL);
        if (!i || since(begin) < best.delay) best.delay = since(begin);
    }
    free(from);
    if (pace->delay == 0) pace->delay = best.delay;
    if (pace->rate == 0) pace->rate = best.rate;
}

double pace_estimate(ncclComm_t comm, const struct task *tasks) {
    pthread_mutex_lock(&comm->lock);
    struct pace pace = comm->pace;
    pthread_mutex_unlock(&comm->lock);
    if (pace.delay == 0 || pace.rate == 0) measure(&pace);
    double seconds = 0;
    for (const struct task *task = tasks; task; task = task->next)
        seconds += pace.delay + (double)task_bytes(comm, task) / pace.rate;
    return seconds;
}
