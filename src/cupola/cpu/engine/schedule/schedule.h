/* Who runs when: launches from their beginning to their end, the blocks and units of a worker, the helper threads, and what
 * units wait for. */
#ifndef CUPOLA_CPU_SCHEDULE_H
#define CUPOLA_CPU_SCHEDULE_H

#include "above.h"
#include "engine/fault/fault.h"
#include "engine/running.h"

/* The body of the variant that is the best so far. */
cpu_body cpu_variant_body(const cpu_variant *variant);

/* The independent body of the variant, compiled on first use (takes the GIL). NULL on failure. */
cpu_body cpu_variant_independent(const cpu_variant *variant, cpu_refusal *refusal);

/* A launch of code with instruments has ended: add what it has counted to what its kernel has in Python (takes the GIL). */
void cpu_variant_count(const cpu_launch *launch, const _Atomic uint64_t *counters);

/* Run blocks of the job on this thread until none is left, those of the worker's own range first. `between`, when not NULL,
 * is called after each chunk, with the number of its blocks. */
void cpu_worker_run(cpu_job *job, uint32_t worker, void (*between)(cpu_job *, void *, uint64_t), void *argument);

/* The blocks of a launch in ranges, one for each thread that is expected (ranges.c): divide them; take some of a range, or,
 * when it has none left, of the next one that has; how many have been begun. */
enum { CPU_MOST_RANGES = 64 };
void cpu_ranges_begin(cpu_job *job, cpu_range *ranges, uint32_t count);
bool cpu_range_take(cpu_job *job, uint32_t *range, uint64_t *next, uint64_t *end);
uint64_t cpu_ranges_begun(const cpu_job *job);

/* The order of the blocks of a launch that asks for one (order.c): from now on, and the block whose turn it is. */
void cpu_order_begin(cpu_job *job);
uint64_t cpu_order_place(const cpu_job *job, uint64_t turn);
uint32_t cpu_order_warp(const cpu_job *job, const cpu_block *block, uint32_t turn); /* likewise among its warps */

/* Let so many helper threads take part in the job; it may be offered again with more. False: too many launches run at the
 * same time. Take it back and wait until they have left it. */
bool cpu_pool_offer(cpu_job *job, int helpers);
void cpu_pool_withdraw(cpu_job *job);
int cpu_pool_warm(void);        /* helpers that come at once, because they do not sleep yet */
int cpu_pool_threads(void);     /* threads that may work on a launch, its own included */
void cpu_pool_look_again(void); /* a launch that had enough helpers may have room for one */

/* A place in a share of the threads (share.c), for this thread. NULL: nothing to do. */
void cpu_share_enter(cpu_share *share);
bool cpu_share_try(cpu_share *share); /* without waiting */
void cpu_share_leave(cpu_share *share);
void cpu_share_turn(cpu_share *share);              /* let those go on who wait, if they have waited for long */
uint32_t cpu_share_threads(const cpu_share *share); /* that may work on a launch */

/* Launches that are ended from outside (stop.c): a launch begins and ends; this thread works on it, and goes back to
 * what it did before. */
void cpu_stop_begin(cpu_job *job);
void cpu_stop_end(cpu_job *job);
cpu_job *cpu_stop_enter(cpu_job *job);
void cpu_stop_leave(cpu_job *before);

/* While a debugger looks at a launch, no time limit ends it: returns what was left. The debugger ends it. */
uint64_t cpu_stop_pause(cpu_job *job);
void cpu_stop_resume(cpu_job *job, uint64_t left);
void cpu_stop_by_debugger(cpu_job *job);

/* The barriers of a block (barrier.c). */
bool cpu_barrier_arrive(cpu_block *block, cpu_warp *warp);       /* CPU_STATE_BARRIER: true when that completed it */
bool cpu_warpgroup_arrive(cpu_context *context, cpu_warp *warp); /* CPU_STATE_WARPGROUP: false after a fault */
bool cpu_barrier_release_complete(cpu_block *block);             /* after threads have exited */
bool cpu_warp_sync_release(cpu_warp *warp);                      /* lanes at bar.warp.sync whose members all arrived */
void cpu_barrier_release(cpu_block *block, uint32_t id);         /* everybody who waits there goes on */
uint32_t cpu_barrier_counted(const cpu_block *block, const cpu_barrier *barrier); /* who counts as arrived */
uint32_t cpu_barrier_site(const cpu_context *context, const cpu_warp *warp); /* of the barrier where a unit waits */

/* The barrier of a cluster (cluster.c): let everybody go on if all live threads have arrived. */
bool cpu_cluster_release(cpu_cluster *cluster);

/* Threads that can never go on (deadlock.c): raise CPU_FAULT_BARRIER, saying who waits where. */
void cpu_deadlock(cpu_context *context, const cpu_cluster *cluster);

/* The stacks of threads (stack.c). Local memory of a thread of the launch; its stack when a block begins. */
uint32_t cpu_stack_local_size(const cpu_launch *launch);
void cpu_stack_begin(const cpu_launch *launch, cpu_warp *warp);

#endif
