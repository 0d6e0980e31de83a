/* What the files of the engine share. */
#ifndef CUPOLA_CPU_SCHEDULER_H
#define CUPOLA_CPU_SCHEDULER_H

#include <stdatomic.h>
#include <stdbool.h>

#include "engine/abi.h"

/* Machine code of a kernel for one block shape. */
struct cpu_variant {
    cpu_kernel *kernel;
    struct _object *object; /* cupola.cpu.compiler.modules.Variant, which owns the code */
    cpu_body body;
    _Atomic(cpu_body) independent; /* NULL until a unit needs it */
    uint32_t block[3];
    uint32_t width, frame_bytes, site_count, static_shared, reserved_shared, local_bytes;
    uint32_t stack_bytes; /* that the frames of called functions take on a thread's stack ... */
    bool has_stack, stack_grows; /* ... and whether that may not be all */
    bool whole_blocks;           /* one call of the body runs all units of a block ... */
    bool rows_of_blocks;         /* ... or of several */
    const uint32_t *thread_ids[3];
    uint32_t resume_count, *resume_sites; /* the site of the barrier behind which a body resumes, by index - 1 */
    struct cpu_variant *next;
};

/* The independent body of the variant, compiled on first use (takes the GIL). NULL on failure. */
cpu_body cpu_variant_independent(const cpu_variant *variant, cpu_refusal *refusal);

enum cpu_warp_status { CPU_WARP_READY, CPU_WARP_BLOCKED, CPU_WARP_FINISHED };

/* Where a lane of an independent unit waits, and where it goes on. Of a lane that is stuck at an mbarrier (any unit):
 * its address as `barrier`, and the site. */
struct cpu_lane {
    uint32_t barrier;     /* of the block, or CPU_CLUSTER_BARRIER; or the members of a bar.warp.sync */
    uint32_t site;        /* of the instruction */
    uint32_t successor;   /* the basic block to go on with */
    uint32_t result_kind; /* enum cpu_result */
    uint32_t slot;        /* offset in the frame of the destination of bar.red */
};
enum { CPU_CLUSTER_BARRIER = CPU_BARRIERS }; /* stands for the cluster's barrier where a block's is named */
enum cpu_result { CPU_RESULT_NONE, CPU_RESULT_COUNT, CPU_RESULT_ALL, CPU_RESULT_ANY };

/* A barrier of the block. With `expected` 0 it is for all threads that have not exited. */
typedef struct cpu_barrier {
    uint32_t arrived, expected;
    uint32_t agreed, voters;
    uint32_t lanes[CPU_BLOCK_THREADS / CPU_WARP_THREADS]; /* who arrived, by hardware warp; only with `expected` */
} cpu_barrier;

/* Blocks that are resident together, by their rank (cluster.c). A block without a cluster is one of its own. */
typedef struct cpu_cluster {
    uint32_t size;
    uint32_t block, unit; /* all units in front of this one have arrived at the barrier */
    bool watches;         /* some thread waits for what others than the cluster's own may do */
    uint64_t stuck_since; /* 0, or since when its threads only wait for mbarriers, in nanoseconds */
    struct cpu_block *blocks[CPU_CLUSTER_BLOCKS];
} cpu_cluster;

/* A block that has begun and not ended. */
typedef struct cpu_block {
    uint32_t ctaid[3];
    uint32_t rank; /* in the cluster, and where it stands there */
    uint32_t clusterid[3], cluster_ctaid[3];
    uint32_t live;         /* threads that have not exited */
    uint32_t warp_count;
    uint32_t busy_barriers; /* bit b: some thread has arrived at barrier b */
    cpu_warp *warps;
    uint8_t *shared, *frames, *local;
    struct cpu_lane *lanes;
    void *memory;
    size_t memory_bytes;
    cpu_barrier barriers[CPU_BARRIERS + 1];
    cpu_cluster *cluster, own; /* its cluster: the one of the block of rank 0 */
    struct cpu_block *next;
} cpu_block;

/* A launch while it runs. */
typedef struct cpu_job {
    cpu_launch *launch;
    uint64_t cluster_count; /* of blocks, when they form no clusters */
    _Atomic uint64_t next_cluster;
    _Atomic int fault; /* enum cpu_fault_kind of the first block that faulted: nobody begins another */
    uint32_t chunk, cluster_size;
    uint64_t grid_workspace;
    int helpers; /* under the pool's lock */
    struct cpu_job *next;
} cpu_job;

/* Run blocks of the job on this thread until none is left. `between`, when not NULL, is called after each chunk. */
void cpu_worker_run(cpu_job *job, uint32_t worker, void (*between)(cpu_job *, void *), void *argument);

/* Nanoseconds since some time. */
uint64_t cupola_clock(void);

/* Let helper threads take part in the job; take the job back and wait until they have left it. */
void cpu_pool_offer(cpu_job *job);
void cpu_pool_withdraw(cpu_job *job);
int cpu_pool_threads(void); /* threads that may work on a launch, its own included */

/* The barriers of a block (barrier.c). */
bool cpu_barrier_arrive(cpu_block *block, cpu_warp *warp); /* CPU_STATE_BARRIER: true when that completed it */
bool cpu_barrier_release_complete(cpu_block *block);       /* after threads have exited */
bool cpu_warp_sync_release(cpu_warp *warp);                /* lanes at bar.warp.sync whose members all arrived */
void cpu_barrier_release(cpu_block *block, uint32_t id);   /* everybody who waits there goes on */
uint32_t cpu_barrier_counted(const cpu_block *block, const cpu_barrier *barrier); /* who counts as arrived */
uint32_t cpu_barrier_site(const cpu_context *context, const cpu_warp *warp); /* of the barrier where a unit waits */

/* The barrier of a cluster (cluster.c): let everybody go on if all live threads have arrived. */
bool cpu_cluster_release(cpu_cluster *cluster);

/* Threads that can never go on (deadlock.c): raise CPU_FAULT_BARRIER, saying who waits where. */
void cpu_deadlock(cpu_context *context, const cpu_cluster *cluster);

/* Nothing but waiting for mbarriers in all units of the cluster? */
bool cpu_mbarrier_stuck(const cpu_cluster *cluster);
/* Count bytes of a copy as completed at the mbarrier at a generic address. Nonzero after a fault. */
uint32_t cpu_mbarrier_complete(cpu_context *context, const cpu_warp *warp, int lane, cpu_site site, uint64_t address,
                               uint32_t bytes);
/* Of the mbarrier at an offset in shared memory: whether it is one, and what its phase lacks (mbarrier.c). */
bool cpu_mbarrier_lacks(const uint8_t *shared, uint32_t offset, uint32_t *arrivals, uint32_t *expected, int32_t *bytes);

/* The stacks of threads (stack.c). Local memory of a thread of the launch; its stack when a block begins; the calls
 * that a lane is in, innermost first: how many, of which the first ones are stored. */
uint32_t cpu_stack_local_size(const cpu_launch *launch);
void cpu_stack_begin(const cpu_launch *launch, cpu_warp *warp);
uint32_t cpu_stack_calls(const cpu_context *context, const cpu_warp *warp, int lane, uint32_t *calls);

/* Record a fault of a lane, if it is the first of the launch. */
void cpu_fault_raise(cpu_context *context, const cpu_warp *warp, int lane, int kind, uint32_t site,
                     const char *format, ...) __attribute__((format(printf, 6, 7)));
void cpu_fault_raise_access(cpu_context *context, const cpu_warp *warp, int lane, int kind, cpu_site site,
                            uint64_t address, uint64_t size, const char *details);

/* Call f, which runs machine code; a memory fault in it becomes a fault of the launch (guard.c). */
void cpu_guard_call(cpu_context *context, void (*f)(void *), void *argument);

#endif
