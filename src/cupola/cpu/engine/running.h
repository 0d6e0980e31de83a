/* The records of what runs, which all rooms of the engine know: the machine code of a kernel, and the blocks, clusters and
 * launches while they run. The records that machine code reads as well are in abi.h. */
#ifndef CUPOLA_CPU_RUNNING_H
#define CUPOLA_CPU_RUNNING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "abi.h"

/* Machine code of a kernel for one block shape. */
struct cpu_variant {
    cpu_kernel *kernel;
    struct _object *object; /* cupola.cpu.compiler.modules.Variant, which owns the code */
    cpu_body body;
    _Atomic(cpu_body) independent; /* NULL until a unit needs it */
    /* What replaces the two, each 0 until it is there (modules.Variant.better): machine code of the same LLVM IR, so that
     * units may go on in either. NULL: nothing will. */
    const _Atomic(uintptr_t) *better;
    uint32_t block[3];
    uint32_t checks;             /* enum cpu_check: those whose instruments are in the code */
    const uint8_t *stops;        /* for a debugger (instruments/debug.c): the lines to stop at; NULL: for none */
    uint32_t stop_count, record; /* how many, and where a frame has the lines of its lanes */
    uint32_t instruments, counter_count; /* the set of instruments in the code, and what they count in */
    uint32_t width, frame_bytes, site_count, static_shared, reserved_shared, local_bytes;
    uint32_t stack_bytes;          /* that the frames of called functions take on a thread's stack ... */
    bool has_stack, stack_grows;   /* ... and whether that may not be all */
    bool whole_blocks;             /* one call of the body runs all units of a block ... */
    bool rows_of_blocks;           /* ... or of several */
    bool apart;                    /* it does not matter in which order blocks begin */
    _Atomic uint64_t quick_blocks; /* the most blocks that have been run in a short time */
    _Atomic float block_time;      /* nanoseconds of one thread that a block took in the launches before; 0: none yet */
    const uint32_t *thread_ids[3];
    uint32_t pointer_count, *pointers;    /* Pointers.flat() of cupola.cpu.compiler.passes.pointers; with checks */
    uint32_t resume_count, *resume_sites; /* the site of the barrier behind which a body resumes, by index - 1 */
    struct cpu_variant *next;
};

enum { CPU_BODIES = 4 }; /* of a variant: two, and those that replace them */

enum cpu_warp_status { CPU_WARP_READY, CPU_WARP_BLOCKED, CPU_WARP_FINISHED };

/* Where a lane of an independent unit waits, and where it goes on. Of a lane that is stuck at an mbarrier (any unit):
 * its address as `barrier`, and the site. */
struct cpu_lane {
    uint32_t barrier;     /* of the block, or one of those below; or the members of a bar.warp.sync */
    uint32_t site;        /* of the instruction */
    uint32_t successor;   /* the basic block to go on with */
    uint32_t result_kind; /* enum cpu_result */
    uint32_t slot;        /* offset in the frame of the destination of bar.red */
};
/* Numbers behind those of the block's barriers: the barrier of the cluster, then one for each warpgroup. */
enum {
    CPU_CLUSTER_BARRIER = CPU_BARRIERS,
    CPU_WARPGROUP_BARRIER,
    CPU_WARPGROUP_THREADS = 128,
    CPU_ALL_BARRIERS = CPU_WARPGROUP_BARRIER + CPU_BLOCK_THREADS / CPU_WARPGROUP_THREADS,
};
enum cpu_result { CPU_RESULT_NONE, CPU_RESULT_COUNT, CPU_RESULT_ALL, CPU_RESULT_ANY };

/* A barrier of the block. With `expected` 0 it is for all threads that have not exited. */
typedef struct cpu_barrier {
    uint32_t arrived, expected;
    uint32_t agreed, voters;
    uint32_t lanes[CPU_BLOCK_THREADS / CPU_WARP_THREADS]; /* who arrived, by hardware warp; only with `expected` */
    uint32_t products;                                    /* of a warpgroup: cpu_warp.products of who came first */
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
    uint32_t multiprocessor;
    uint32_t clusterid[3], cluster_ctaid[3];
    uint32_t live; /* threads that have not exited */
    uint32_t warp_count;
    uint32_t busy_barriers; /* bit b: some thread has arrived at barrier b */
    cpu_warp *warps;
    uint8_t *shared, *frames, *local;
    struct cpu_lane *lanes;
    void *memory;
    size_t memory_bytes;
    cpu_barrier barriers[CPU_ALL_BARRIERS];
    struct cpu_watch *watch;   /* of a launch that is checked (checks/checks.h); NULL: none was yet */
    cpu_cluster *cluster, own; /* its cluster: the one of the block of rank 0 */
    struct cpu_block *next;
} cpu_block;

/* Clusters that one thread begins, in their order; the others when they have no more of their own (ranges.c). */
typedef struct cpu_range {
    _Alignas(64) _Atomic uint64_t next; /* beyond the end when all have been begun */
    uint64_t begin, end;
} cpu_range;

/* A launch while it runs. */
typedef struct cpu_job {
    cpu_launch *launch;
    uint64_t cluster_count; /* of blocks, when they form no clusters */
    cpu_range *ranges;
    uint32_t range_count;
    _Atomic bool all_begun;
    _Atomic int fault; /* enum cpu_fault_kind of the first block that faulted: nobody begins another */
    uint32_t chunk, cluster_size;
    uint64_t stride, start; /* of another order than the ascending one; stride 0: of that */
    uint64_t grid_workspace;
    _Atomic uint64_t *counters; /* of instruments: the sums over the workers that are done; NULL: there are none */
    _Atomic bool stalls;        /* a block was put aside because it waits for others */
    bool fault_seen;            /* by the debugger */
    struct cpu_slot *slot;      /* through which helpers come (threadpool.c); NULL: it has not asked for any */
    void (*task)(void *data, uint64_t index); /* not NULL: what is done for each index, instead of a kernel's blocks */
    void *task_data;
    /* For stop.c. */
    struct cpu_job *next_running;
    uint64_t deadline; /* of clock_now(), 0: none */
    bool interrupted;  /* a signal has come before */
    _Atomic int stop;  /* enum cpu_stop */
    struct {
        _Atomic uintptr_t begin, end;
    } code[CPU_BODIES]; /* where the bodies are, when it is to be stopped */
} cpu_job;

enum cpu_stop { CPU_STOP_NONE, CPU_STOP_TIMEOUT, CPU_STOP_INTERRUPT, CPU_STOP_FAILED, CPU_STOP_DEBUGGER };

/* A line of addresses that come from a narrow value which was widened: lane i has base + i * step unless its narrow
 * value wrapped (emit/values/values.py, Origin). `kind` is the narrow value's step | bits << 32 | signed << 40;
 * `narrow` is lane 0's. Returns whether no lane wrapped; if one did, `addresses` receives them all. */
static inline bool cpu_lanes_stay_on_line(uint64_t *addresses, uint64_t base, uint64_t step, uint64_t narrow,
                                          uint64_t kind, uint64_t scale, uint32_t width) {
    const uint64_t slope = (uint64_t)(int64_t)(int32_t)(uint32_t)kind;
    const unsigned unused = 64 - (unsigned)(kind >> 32 & 255);
    const bool is_signed = kind >> 40 & 1;
    bool on_line = true;
    for (uint32_t i = 0; i < width; i++) {
        uint64_t exact = narrow + i * slope, cut = exact << unused;
        uint64_t wide = is_signed ? (uint64_t)((int64_t)cut >> unused) : cut >> unused;
        on_line &= wide == exact;
        addresses[i] = base + i * step + scale * (wide - exact);
    }
    return on_line;
}

#endif
