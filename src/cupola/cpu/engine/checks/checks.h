/* The checks that are done while kernels run, when somebody asks for them: data races, reads of what nobody has written,
 * and wrong use of what synchronizes.
 *
 * Machine code with the instrument of a check tells each access, barrier and fence (watch.c, words.c, told.c). For each block there
 * is a `cpu_watch`: which accesses of which threads are ordered before which others (order.c). What was accessed last is
 * in *shadows* beside shared, local and global memory (shadow.c). What is wrong is a finding of the launch (findings.c).
 *
 * Time is counted in stamps: the number of things that have ordered something in the block so far. */
#ifndef CUPOLA_CPU_CHECKS_H
#define CUPOLA_CPU_CHECKS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/common.h"
#include "engine/memory/shadow.h"
#include "moments.h"
#include "engine/running.h"

/* What an access is, beside reading or writing. */
enum cpu_access_kind { CPU_ACCESS_PLAIN, CPU_ACCESS_STRONG, CPU_ACCESS_ATOMIC, CPU_ACCESS_COPY };

/* What a synchronizing object has been told by those who released at it, until somebody acquires. */
typedef struct cpu_watch_object {
    uint64_t address;
    uint32_t peers[CPU_CLUSTER_BLOCKS]; /* stamps of the blocks of the cluster, by rank */
    uint32_t *threads;                  /* stamps of the threads of the block; NULL: none has */
    struct cpu_watch_object *next;
} cpu_watch_object;

/* A copy that is not waited for. */
typedef struct cpu_watch_copy {
    uint32_t block, thread; /* who has begun it */
    uint32_t group;         /* of the copies of that thread, bulk ones apart: it has committed so many before */
    bool bulk;              /* the mbarrier tells, or the bulk group */
    bool reads;             /* what the copy reads from; else what it writes to */
    uint64_t barrier;       /* a generic address: which learns of the bytes; 0: none */
    uint64_t address;       /* an offset in shared memory, or in global memory */
    uint32_t size;
    uint32_t site; /* of the variant */
    struct cpu_watch_copy *next;
} cpu_watch_copy;

struct cpu_watch {
    unsigned checks; /* enum cpu_check; 0: the launch is not checked */
    bool is_used;    /* something below is not NULL */
    const cpu_launch *launch;
    uint32_t id, first, count; /* its number, and those of the launch's blocks, by their places in the launch */
    uint32_t low;              /* numbers below are of deeds that are ordered before (moments.h) */
    cpu_moment *moment;        /* NULL: all that is not of the launch is */
    uint32_t asked[2];         /* numbers of a deed that is as well: the first, and how many */
    uint32_t rank, cluster_size;
    uint32_t now, floor; /* everybody knows what has happened up to `floor` */
    uint32_t written;    /* when shared memory was last written; UINT32_MAX: by another block of the cluster */
    uint32_t threads, warps;
    uint32_t warp_floor[CPU_WARP_THREADS]; /* the same among the threads of a warp */
    uint32_t *pairs[CPU_WARP_THREADS];     /* [32][32] of a warp: what the one knows of the other; NULL: nothing more */
    uint32_t *warp_row[CPU_WARP_THREADS];  /* what all threads of a warp know of the block's; NULL: nothing more */
    uint32_t **lane_row;                   /* the same of a single one, by thread; NULL */
    uint32_t *fenced;                      /* of each thread: when it last came to a fence; NULL: none has */
    uint32_t *groups;                      /* of each thread: how many groups of copies it has committed; NULL: none */
    uint32_t *bulk_groups;                 /* and of bulk copies */
    uint32_t peers[CPU_CLUSTER_BLOCKS];    /* what is known of the other blocks of the cluster */
    uint32_t *others;                      /* of the other blocks of the launch; NULL: nothing */
    uint64_t later[CPU_WARP_THREADS];      /* where to learn what other blocks of the launch tell ... */
    uint32_t later_count;                  /* ... when the access that is about to happen has happened */
    bool knows_all;                        /* there are too many of them: nothing is said any more */
    uint32_t *at_barrier[CPU_ALL_BARRIERS];
    cpu_watch_object *objects;
    cpu_watch_copy *copies;
    cpu_shadow shared, local;
    void *memory; /* of both */
    size_t memory_bytes;
    uint32_t shared_words, local_words;
    uint32_t reserved; /* the first word of shared memory that is the system's: CUDA's headers use it */
};

/* The launch begins and ends. (order.c) */
void cpu_watch_launch(cpu_launch *launch, uint64_t blocks);

/* Which sets of pointers of a launch need not be told (quiet.c). `alone`: no operation can run at the same time. */
uint64_t cpu_quiet_of(const cpu_launch *launch, bool alone);

/* A block begins, the `place`-th of its launch. False: no memory. (order.c) */
bool cpu_watch_begin(cpu_block *block, const cpu_launch *launch, uint64_t place, uint32_t shared_bytes);
void cpu_watch_free(struct cpu_watch *watch);

/* Who knows of what. (order.c) */
bool cpu_watch_ordered(struct cpu_watch *watch, uint32_t thread, cpu_record before);
/* Whether a block of another launch, or another deed, comes before. */
bool cpu_watch_comes_after(struct cpu_watch *watch, uint32_t block);
void cpu_watch_all(struct cpu_watch *watch); /* all threads of the block have met */
void cpu_watch_warp(struct cpu_watch *watch, uint32_t warp, uint32_t lanes, uint32_t alive);
/* Threads of a warp that wait for each other, without a barrier: each knows what the others have acquired. */
void cpu_watch_hand_on(struct cpu_watch *watch, uint32_t warp, uint32_t lanes, uint32_t alive);
void cpu_watch_arrive(struct cpu_watch *watch, uint32_t warp, uint32_t lanes, uint32_t barrier);
void cpu_watch_release(struct cpu_watch *watch, uint32_t barrier, const uint32_t *waiting, const uint32_t *alive);
void cpu_watch_cluster(cpu_cluster *cluster);
void cpu_watch_publish(struct cpu_watch *watch, struct cpu_watch *owner, uint64_t object, uint32_t thread,
                       uint32_t stamp);
void cpu_watch_learn(struct cpu_watch *watch, struct cpu_watch *owner, uint64_t object, uint32_t warp, uint32_t lanes,
                     uint32_t alive);
void cpu_watch_publish_to_grid(struct cpu_watch *watch, uint64_t object, uint32_t stamp);
void cpu_watch_learn_later(struct cpu_watch *watch, uint64_t object);
void cpu_watch_learn_now(struct cpu_watch *watch);
void cpu_watch_learn_of_grid(struct cpu_watch *watch, uint64_t object);
void cpu_watch_end_launch(cpu_launch *launch);

/* Any thread (findings.c). */
struct cpu_finding;
void cpu_finding_add(const struct cpu_watch *watch, const struct cpu_finding *finding);

/* The watch of a block whose launch is checked; else NULL. */
static inline struct cpu_watch *cpu_watch_of(const cpu_block *block) {
    return asked(block->watch != NULL) && block->watch->checks ? block->watch : NULL;
}

/* Where a block of the launch and a thread of it are (words.c). */
void cpu_watch_place(const struct cpu_watch *watch, uint32_t id, uint32_t thread, uint32_t block_at[3],
                     uint32_t thread_at[3]);

/* What the scheduler tells (told.c): a barrier lets those go on who wait there; threads of a warp that have waited for each
 * other at bar.warp.sync go on. */
void cpu_watch_barrier(cpu_block *block, uint32_t id);
/* What helpers tell: a thread arrives at an mbarrier, threads have found its phase complete, a thread copies to shared
 * memory by a bulk copy, whose bytes an mbarrier counts (0: none); all at generic addresses, of shared memory. */
void cpu_watch_arrival(const cpu_context *context, const cpu_warp *warp, int lane, uint64_t address);
void cpu_watch_wait(const cpu_context *context, const cpu_warp *warp, uint32_t lanes, uint64_t address);
void cpu_watch_copied(const cpu_context *context, const cpu_warp *warp, int lane, cpu_site site, uint64_t address,
                      uint64_t size, uint64_t barrier);
/* The same of a bulk copy to anywhere, and what such a copy reads. Without a barrier, it is one of a bulk group. */
void cpu_watch_moved(const cpu_context *context, const cpu_warp *warp, int lane, cpu_site site, uint64_t address,
                     uint64_t size, uint64_t barrier);
void cpu_watch_fetched(const cpu_context *context, const cpu_warp *warp, int lane, cpu_site site, uint64_t address,
                       uint64_t size, uint64_t barrier);
/* Copies of memory that nobody has written, at generic addresses that are multiples of 4: what is copied to has been told to
 * be written, and is unset where the source is. Or in two steps, with the unset bytes of each word in between. (spread.c) */
void cpu_watch_spread(const cpu_context *context, uint64_t to, uint64_t from, uint64_t size);
bool cpu_watch_sees_unset(const cpu_context *context);
void cpu_watch_take_unset(const cpu_context *context, uint64_t address, uint64_t size, uint8_t *unset);
void cpu_watch_put_unset(const cpu_context *context, uint64_t address, uint64_t size, const uint8_t *unset);
/* The block whose shared memory has a generic address, and where it is there; NULL: none of this cluster. (told.c) */
struct cpu_watch *cpu_watch_owner(const cpu_context *context, uint64_t *address);
/* Give each word of a row a record of its own, where one stands for all of them. (words.c) */
void cpu_watch_unroll(const cpu_shadow *shadow, uint64_t index);
/* Copies are complete: those of a thread up to a group, or those that a barrier counts. */
void cpu_watch_finish(struct cpu_watch *watch, uint32_t thread, uint32_t group, uint64_t barrier);
/* All threads of a block have ended, and its shared memory goes to another one. */
void cpu_watch_end(const cpu_block *block);
/* A range of bytes is written by one thread, at a generic address; for the checks that are on (words.c). Or read, for
 * races only; or what was read is used, for reads of unset memory only. */
void cpu_watch_used(const cpu_context *context, const cpu_warp *warp, int lane, cpu_site site, uint64_t address,
                    uint64_t size);
void cpu_watch_read(const cpu_context *context, const cpu_warp *warp, int lane, cpu_site site, uint64_t address,
                    uint64_t size, uint32_t kind);
void cpu_watch_write(const cpu_context *context, const cpu_warp *warp, int lane, cpu_site site, uint64_t address,
                     uint64_t size, uint32_t kind);
void cpu_watch_arrived(cpu_block *block, const cpu_warp *warp, uint32_t lanes, uint32_t id, uint32_t expected);

#endif
