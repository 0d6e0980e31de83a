/* Shares of the worker threads: how many of them the launches of one green context may use at a time, all together.
 *
 * A thread that runs blocks holds a place of the share. Threads that find no place free queue for one, first come first
 * served. A thread with a place gives it to them when its time slice is over, between two chunks of blocks, and when
 * its blocks only wait. So kernels of a share may wait for each other, however few places it has. */
#include <pthread.h>
#include <stdlib.h>

#include "common/common.h"
#include "schedule.h"

enum { SLICE_NANOSECONDS = 1000000 };

struct cpu_share {
    uint32_t places;
    pthread_mutex_t lock;
    pthread_cond_t left_one;
    uint64_t came, left; /* threads so far; those beyond left + places wait */
};

static __thread uint64_t slice_end;

cpu_share *cpu_share_new(uint32_t part, uint32_t whole) {
    cpu_share *share = calloc(1, sizeof *share);
    if (!share) return NULL;
    share->places = (uint32_t)((uint64_t)cpu_pool_threads() * part / whole);
    if (!share->places) share->places = 1;
    pthread_mutex_init(&share->lock, NULL);
    pthread_cond_init(&share->left_one, NULL);
    return share;
}

uint32_t cpu_share_threads(const cpu_share *share) { return share ? share->places : (uint32_t)cpu_pool_threads(); }

_Bool cpu_share_is_free(cpu_share *share) {
    if (!share) return true;
    pthread_mutex_lock(&share->lock);
    bool is_free = share->came < share->left + share->places;
    pthread_mutex_unlock(&share->lock);
    return is_free;
}

bool cpu_share_try(cpu_share *share) {
    if (!share) return true;
    pthread_mutex_lock(&share->lock);
    bool found = share->came < share->left + share->places;
    if (found) share->came++;
    pthread_mutex_unlock(&share->lock);
    if (found) slice_end = clock_now() + SLICE_NANOSECONDS;
    return found;
}

void cpu_share_enter(cpu_share *share) {
    if (!share) return;
    pthread_mutex_lock(&share->lock);
    uint64_t ticket = share->came++;
    while (ticket >= share->left + share->places) pthread_cond_wait(&share->left_one, &share->lock);
    pthread_mutex_unlock(&share->lock);
    slice_end = clock_now() + SLICE_NANOSECONDS;
}

void cpu_share_leave(cpu_share *share) {
    if (!share) return;
    pthread_mutex_lock(&share->lock);
    share->left++;
    pthread_cond_broadcast(&share->left_one);
    pthread_mutex_unlock(&share->lock);
    if (share->places > 1) cpu_pool_look_again(); /* helpers do not queue */
}

static bool others_wait(cpu_share *share) {
    pthread_mutex_lock(&share->lock);
    bool wait = share->came > share->left + share->places;
    pthread_mutex_unlock(&share->lock);
    return wait;
}

void cpu_share_turn(cpu_share *share) {
    if (!share || clock_now() < slice_end || !others_wait(share)) return;
    cpu_share_leave(share);
    cpu_share_enter(share);
}
