/* What the files of the engine share. */
#ifndef CUPOLA_CPU_SCHEDULER_H
#define CUPOLA_CPU_SCHEDULER_H

#include <stdatomic.h>
#include <stdbool.h>

#include "abi.h"

/* Machine code of a kernel for one block shape. */
struct cpu_variant {
    cpu_kernel *kernel;
    struct _object *object; /* cupola.cpu.compiler.Variant, which owns the code */
    cpu_body body;
    _Atomic(cpu_body) independent; /* NULL until a unit needs it */
    uint32_t block[3];
    uint32_t width, frame_bytes, site_count, static_shared, local_bytes;
    const uint32_t *thread_ids[3];
    uint32_t resume_count, *resume_sites; /* the site of the barrier behind which a body resumes, by index - 1 */
    struct cpu_variant *next;
};

/* The independent body of the variant, compiled on first use (takes the GIL). NULL with a message. */
cpu_body cpu_variant_independent(const cpu_variant *variant, char *message, size_t size);

enum cpu_warp_status { CPU_WARP_READY, CPU_WARP_BLOCKED, CPU_WARP_FINISHED };

/* Where a lane of an independent unit waits, and where it goes on. */
struct cpu_lane {
    uint32_t barrier;     /* of the block; or the members of a bar.warp.sync */
    uint32_t site;        /* of the instruction */
    uint32_t successor;   /* the basic block to go on with */
    uint32_t result_kind; /* enum cpu_result */
    uint32_t slot;        /* offset in the frame of the destination of bar.red */
};
enum cpu_result { CPU_RESULT_NONE, CPU_RESULT_COUNT, CPU_RESULT_ALL, CPU_RESULT_ANY };

/* A barrier of the block. With `expected` 0 it is for all threads that have not exited. */
typedef struct cpu_barrier {
    uint32_t arrived, expected;
    uint32_t agreed, voters;
    uint32_t lanes[CPU_BLOCK_THREADS / CPU_WARP_THREADS]; /* who arrived, by hardware warp; only with `expected` */
} cpu_barrier;

/* A block that has begun and not ended. */
typedef struct cpu_block {
    uint64_t index;
    uint32_t ctaid[3];
    uint32_t live;         /* threads that have not exited */
    uint32_t warp_count;
    uint32_t busy_barriers; /* bit b: some thread has arrived at barrier b */
    cpu_warp *warps;
    uint8_t *shared, *frames, *local;
    struct cpu_lane *lanes;
    void *memory;
    size_t memory_bytes;
    cpu_barrier barriers[CPU_BARRIERS];
    struct cpu_block *next;
} cpu_block;

/* A launch while it runs. */
typedef struct cpu_job {
    cpu_launch *launch;
    uint64_t block_count;
    _Atomic uint64_t next_block;
    _Atomic int fault; /* enum cpu_fault_kind of the first block that faulted: nobody begins another */
    uint32_t chunk;
    uint64_t grid_workspace;
    int helpers; /* under the pool's lock */
    struct cpu_job *next;
} cpu_job;

/* Run blocks of the job on this thread until none is left. `between`, when not NULL, is called after each chunk. */
void cpu_worker_run(cpu_job *job, uint32_t worker, void (*between)(cpu_job *, void *), void *argument);

/* Let helper threads take part in the job; take the job back and wait until they have left it. */
void cpu_pool_offer(cpu_job *job);
void cpu_pool_withdraw(cpu_job *job);
int cpu_pool_threads(void); /* threads that may work on a launch, its own included */

/* The barriers of a block (barrier.c). */
bool cpu_barrier_arrive(cpu_block *block, cpu_warp *warp); /* CPU_STATE_BARRIER: true when that completed it */
bool cpu_barrier_release_complete(cpu_block *block);       /* after threads have exited */
bool cpu_warp_sync_release(cpu_warp *warp);                /* lanes at bar.warp.sync whose members all arrived */
uint32_t cpu_barrier_site(const cpu_context *context, const cpu_warp *warp); /* of the barrier where a unit waits */
void cpu_barrier_deadlock(cpu_context *context);           /* raises CPU_FAULT_BARRIER */

/* Record a fault of a lane, if it is the first of the launch. */
void cpu_fault_raise(cpu_context *context, const cpu_warp *warp, int lane, int kind, uint32_t site,
                     const char *format, ...) __attribute__((format(printf, 6, 7)));
void cpu_fault_raise_access(cpu_context *context, const cpu_warp *warp, int lane, int kind, cpu_site site,
                            uint64_t address);

/* Call f, which runs machine code; a memory fault in it becomes a fault of the launch (guard.c). */
void cpu_guard_call(cpu_context *context, void (*f)(void *), void *argument);

#endif
