/* Memory pools (pool.c, pool_storage.c), and the memory of graphs, which is in pools as well. */
#ifndef CUPOLA_CPU_DRIVER_POOL_H
#define CUPOLA_CPU_DRIVER_POOL_H

#include "memory.h"

struct cached_block { /* a large place that a pool keeps for the next allocation */
    struct cached_block *next;
    uint64_t base, room;
};

struct pending_free { /* a stream-ordered free that is queued */
    struct pending_free *next, *previous;
    CUmemoryPool pool; /* NULL: the memory is from cuMemAlloc */
    CUstream stream;   /* referenced */
    uint64_t base, size;
    struct op *op; /* outlives this */
};

struct CUmemPoolHandle_st {
    struct handle handle;
    pthread_mutex_t lock;
    CUmemPoolProps properties;
    int device; /* CPU_MEMORY_HOST for pools of host memory */
    int kind;   /* cpu_memory_kind of its allocations */
    bool is_default, is_graph;
    bool given_up;            /* destroyed */
    bool is_imported;         /* from another process: what it has is mapped, not allocated */
    struct pool_share *share; /* of a pool for several processes (ipc/pool.c), else NULL */
    int reuse[3];             /* CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES and the two after it */
    uint64_t threshold;
    uint64_t used, used_high, reserved, reserved_high;
    uint64_t small_used, small_reserved; /* small allocations share places; reserved in steps */
    size_t outstanding;                  /* allocations and queued frees; a destroyed pool goes with the last */
    struct cached_block *cached;
    struct pending_free pending; /* head of the ring of queued frees, the newest first */
    uint8_t access[MAX_DEVICES]; /* CUmemAccess_flags of each device */
};

/* Allocate now; the caller sees to the order. `stream`: whose queued frees may be used at once, or NULL. */
CUresult pool_allocate(CUmemoryPool pool, size_t size, CUstream stream, uint64_t *address);
void pool_free_now(const cpu_allocation *allocation);
/* Queue a free of memory from a pool or from cuMemAlloc. */
CUresult pool_free_on(const cpu_allocation *allocation, CUstream stream);

/* INVALID_VALUE when the memory is of a pool, or mapped, and the device has no right to access it. */
CUresult access_check(const cpu_allocation *found, uint64_t address, const struct accessor *accessor, bool is_write,
                      const char *role);

void pool_lock_and_trim(CUmemoryPool pool, uint64_t keep);
void pool_give_up(CUmemoryPool pool); /* destroyed: free it now, or with its last allocation */

/* For pools of several processes (ipc/pool.c). */
CUmemoryPool pool_new(const CUmemPoolProps *properties); /* checked properties; to be published; NULL: out of memory */
CUresult pool_check(CUmemoryPool pool);                  /* whether it is one that lives */
void pool_count_import(CUmemoryPool pool, uint64_t size);

/* Memory of graphs. An allocation node has its address from its creation on; the memory is live from the
 * allocation node to the free node or, when the graph has no free node for it, from the launch to a free
 * by the program. */
CUmemoryPool pool_of_graphs(const CUmemPoolProps *properties); /* NULL: no memory, or a location that none can have */
CUresult memory_plan(struct op *op, const CUmemPoolProps *properties, size_t size); /* op: a new OP_ALLOCATE */
CUresult memory_begin(const struct op *op, bool again); /* at the launch; again: it may be live still */
void memory_renew(const struct op *op); /* for checks: when the launch is carried out, and the memory is new */
bool memory_is_of_graph(uint64_t address);
bool pool_is_planned(const cpu_allocation *found);

/* Give back what the pools keep unused, because an allocation failed. */
void pools_trim(void);

/* What the pools of a device's memory have reserved, and what of it is allocated. */
struct pools_total {
    uint64_t reserved, used;
};
struct pools_total pools_total(int device);

#endif
