/* What machine code and the runtime share: the body's signature, its states, and the records it reads.
 *
 * The code generator writes one LLVM function per variant of a kernel, the *body*. It runs one *unit* of W threads
 * (a warp when W is 32) from where the unit stands to the next point where it must wait for others. All that has
 * to outlive its return is in the unit's frame: a mask for each basic block (the threads that are to run it), then
 * a slot for each register that lives across blocks. The body of a kernel in which no thread ever waits runs all units
 * of a block in one call, from the one that it is given on, and leaves nothing in them. Some may run several blocks
 * that are neighbors in x, where it does not matter that they take turns.
 *
 * There are two bodies. The *convergent* one trusts that a unit's threads meet again after each divergent region,
 * so what is computed outside such regions may be kept once for all lanes. When threads of the unit must wait for
 * each other inside a region (a lock, a barrier that only some reached, a warp operation whose members come
 * along different paths) the unit goes on in the *independent* body, where every thread has its own registers and
 * any group of threads may run ahead, as the hardware allows since sm_70. Both use the same frame.
 *
 * cupola/cpu/compiler/objects/abi.py repeats the offsets; tests/cpu/engine/test_abi.py compares them. */
#ifndef CUPOLA_CPU_ABI_H
#define CUPOLA_CPU_ABI_H

#include <stddef.h>
#include <stdint.h>

#include "engine.h"

/* Called by machine code, by name. */
#define CPU_HELPER __attribute__((visibility("default")))

enum { CPU_WARP_THREADS = 32, CPU_BLOCK_THREADS = 1024, CPU_BARRIERS = 16, CPU_CLUSTER_BLOCKS = 16 };

/* What a body returned, and how to call it again (cpu_warp.state): a kind in the high byte, an index below. */
enum cpu_state {
    CPU_STATE_DONE = 0,        /* every thread has exited; as input: begin */
    CPU_STATE_BARRIER = 1,     /* + where to resume: all live threads of the unit wait at `barrier` */
    CPU_STATE_YIELD = 2,       /* + block: a loop that may be waiting for others gives way */
    CPU_STATE_INDEPENDENT = 3, /* + block: only the independent body can go on */
    CPU_STATE_WAITING = 4,     /* from the independent body: no thread can go on before others arrive */
    CPU_STATE_FAULT = 5,       /* cpu_launch.fault says why */
    CPU_STATE_SYNC = 6,        /* + where to resume: as BARRIER, at barrier 0 for all threads, without a vote */
    CPU_STATE_CLUSTER = 7,     /* + where to resume: all live threads of the unit are at barrier.cluster.wait */
    CPU_STATE_WARPGROUP = 8,   /* + where to resume: ... or at wgmma.wait_group */
};
#define CPU_STATE(kind, index) ((uint32_t)(kind) << 24 | (uint32_t)(index))
#define CPU_STATE_KIND(state) ((state) >> 24)

/* The allocation that an access site touched last. An access by all lanes of the unit, contiguous from `address`,
 * is aligned and inside when rotate_right(address - low, log2(size)) < limit; one lane's when
 * address - base < size of the allocation minus the access. */
typedef struct cpu_site_cache {
    uint64_t low, limit;
    uint64_t base, size;
} cpu_site_cache;

/* An access site as the helpers get it, packed into one integer: index | size << 32 | element << 40 | space << 48
 * | flags << 56. */
typedef struct cpu_site {
    uint32_t index;  /* into the variant's table of sites */
    uint8_t size;    /* bytes that one lane touches, and its alignment */
    uint8_t element; /* bytes of each element of a vector access */
    uint8_t space;   /* enum cpu_space, or CPU_SITE_GENERIC */
    uint8_t flags;
} cpu_site;
static inline cpu_site unpack_site(uint64_t packed) {
    return (cpu_site){(uint32_t)packed, (uint8_t)(packed >> 32), (uint8_t)(packed >> 40), (uint8_t)(packed >> 48),
                      (uint8_t)(packed >> 56)};
}

enum { CPU_SITE_GENERIC = 5 };
enum { CPU_SITE_WRITE = 1, CPU_SITE_CONTIGUOUS = 2 };
/* A flag: what the site remembers is looked at in front of stores, too, so it must be memory that may be written. */
enum { CPU_SITE_FOR_STORES = 4 };
/* A flag: volatile, relaxed or stronger, so each element is accessed once and as a whole. */
enum { CPU_SITE_STRONG = 8 };
/* The flags above these hold how many elements at the end of a vector load are not used: compilers load a whole vector
 * for a part of it. The unused rest may be out of bounds: on GPUs, memory that is aligned to its size never crosses the
 * end of what was allocated. */
enum { CPU_SITE_UNUSED_SHIFT = 4 };

/* How a thread arrives at an mbarrier or waits for it. */
enum { CPU_MBARRIER_DROP = 1, CPU_MBARRIER_NO_COMPLETE = 2, CPU_MBARRIER_PARITY = 4, CPU_MBARRIER_TOGETHER = 8 };
enum { CPU_MBARRIER_COUNT_BITS = 20 };

struct cpu_block;
struct cpu_job;

/* One for each running worker. */
typedef struct cpu_context {
    uint32_t ctaid[3];
    uint32_t shared_size; /* static and dynamic together */
    uint32_t ntid[3];
    uint32_t dynamic_shared;
    uint32_t nctaid[3];
    uint32_t local_size; /* bytes a thread */
    uint64_t grid_id;
    const uint64_t *variables;
    const uint32_t *thread_ids[3]; /* x, y and z of every thread of a block, by linear index */
    uint64_t params;               /* the generic address of the parameters */
    uint32_t budget;               /* trips of a waiting loop before it gives way */
    uint32_t multiprocessor;       /* that the block is said to run on */
    uint64_t grid_workspace;       /* of a cooperative launch: address of an unused word, and the grid's barrier */
    uint32_t clusterid[3], cluster_ctarank;
    uint32_t nclusterid[3], cluster_nctarank;
    uint32_t cluster_ctaid[3], is_explicit_cluster;
    uint32_t cluster_nctaid[3], nsmid;
    const struct cpu_warp *units_end; /* behind the last unit of a block */
    uint32_t row_end;                 /* x behind the last of the blocks to run together, the first being at ctaid */
    uint64_t current_graph;           /* %current_graph_exec */
    uint64_t *counters;               /* of the instruments in the code, of this worker alone */
    uint64_t quiet;                   /* bits of sets of pointers (cpu_variant) whose accesses need not be told */
    /* For the runtime only. */
    uint64_t progress; /* counts events after which waiting threads may continue */
    uint64_t param_bytes;
    uint32_t width;
    uint8_t *shared;
    cpu_site_cache *sites;
    struct cpu_block *block;
    struct cpu_job *job;
} cpu_context;

struct cpu_warp;
typedef uint32_t (*cpu_body)(cpu_context *context, struct cpu_warp *warp, const void *params, void *shared, void *frame,
                             cpu_site_cache *sites);

/* One for each unit of a resident block. */
typedef struct cpu_warp {
    uint32_t state;   /* see cpu_state */
    uint32_t first;   /* linear index of lane 0 in the block */
    uint32_t tid[3];  /* of lane 0 */
    uint32_t mask;    /* in: the threads that exist; out: those that are alive */
    uint32_t barrier; /* CPU_STATE_BARRIER: which one, and for how many threads (0: for all) */
    uint32_t expected;
    uint32_t votes; /* bar.red: the predicate of each lane; after it, how many were true of how many */
    uint32_t agreed, voters;
    uint32_t diverged; /* CPU_STATE_YIELD: whether other threads of the unit wait for the loop to end */
    uint32_t site;     /* CPU_STATE_WAITING: the site of the last warp operation whose members were missing */
    uint32_t watches;  /* CPU_STATE_YIELD: whether the loop looks at more than mbarriers */
    uint32_t turn;     /* the independent body gave way: where it goes on to look for threads to run */
    uint8_t *local;    /* local memory of lane 0; that of lane i lies i * local_size behind */
    uint32_t *frames;  /* offsets in local memory: of the frame of each lane, then of the end of its stack (stack.c) */
    /* For the runtime only. */
    uint8_t *frame;
    cpu_body body;
    uint32_t live;  /* the threads that had not exited when the body last returned ... */
    uint32_t seen;  /* ... and, for the independent body, when it last looked for a block to run */
    uint8_t status; /* enum cpu_warp_status */
    uint8_t independent;
    uint16_t spins;    /* how often in a row it gave way */
    uint32_t parked;   /* independent: lanes that wait at a barrier of the block ... */
    uint32_t syncing;  /* ... or at bar.warp.sync */
    uint32_t arrived;  /* lanes that have arrived at the cluster's barrier, whose phase is not complete */
    uint32_t stuck;    /* lanes whose last mbarrier wait found the phase incomplete; see cpu_lane */
    uint32_t products; /* a digest of the products of its warpgroup that it took part in (wgmma.c) */
    struct cpu_lane *lanes;
} cpu_warp;

#endif
