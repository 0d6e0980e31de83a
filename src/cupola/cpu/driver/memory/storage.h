/* What the files about memory (memory.c, pool.c, copy.c, fill.c, pointer.c, managed.c, virtual.c) and
 * graphs share. */
#ifndef CUPOLA_CPU_DRIVER_STORAGE_H
#define CUPOLA_CPU_DRIVER_STORAGE_H

#include "driver/base/internal.h"

/* The status for a cpu_memory_status, with an explanation for an allocation of `size` bytes. */
CUresult memory_refused(int status, int device, size_t size) __attribute__((cold));

/* Memory in a context, which frees it if nobody else does; from what the pools hold back if need be. */
CUresult memory_allocate(CUcontext context, int kind, size_t size, uint64_t *address);
/* Wait for everything that may still use memory of a context. Streams that capture are no obstacle here. */
void memory_wait_for_users(CUcontext context);

/* What a range of addresses that a call was given may be. */
enum range_rule {
    RANGE_DEVICE,  /* memory that CUDA knows */
    RANGE_ANY,     /* that, or any host memory: an address outside the arena that is in no table */
    RANGE_PLANNED, /* as RANGE_DEVICE, and memory that a graph will have allocated when it runs */
    RANGE_PLANNED_ANY,
    RANGE_RUNNING, /* as RANGE_DEVICE, for work that was queued before a free of the memory */
};

/* Check the range [address, address + size) and say whether it is pageable host memory. `role` names the
 * range in the explanation ("the source"). */
CUresult memory_check(uint64_t address, size_t size, enum range_rule rule, const char *role, bool *pageable);

/* Whose access rights a call needs. Memory of a device's pools and mapped memory have such rights; what cuMemAlloc gave,
 * managed and host memory is copied for every device. Two H200s with driver 580 tell which device counts: for single
 * copies that of the current context, whatever the stream is; for batches that of the stream; copies that name the
 * contexts of their sides need no rights. Rights that contexts give (cuCtxEnablePeerAccess) do not count here. */
struct accessor {
    int device;        /* or ANYBODY */
    const char *whose; /* "the current context's" */
    bool is_fill;      /* for which a pool of host memory counts, too */
};
enum { ANYBODY = -1 };
CUresult memory_check_access(uint64_t address, size_t size, enum range_rule rule, const char *role, bool *pageable,
                             const struct accessor *accessor, bool is_write);

/* The box of bytes of a CUDA_MEMCPY3D. planned: for a graph. An empty one has width 0. */
CUresult copy_from_form(const CUDA_MEMCPY3D *form, bool planned, const struct accessor *accessor, struct copy *copy,
                        bool *source_pageable, bool *target_pageable);

/* Queue the copy of a form; `wait`: and wait until it is done, as the synchronous calls do. */
CUresult copy_submit_form(CUstream stream, const CUDA_MEMCPY3D *form, bool wait);
/* The stream of a synchronous call: the default stream. Such calls are unsafe while a stream captures. */
CUresult enter_synchronous(const char *call, CUstream *stream);

/* One side of a copy that is an array (copy_array.c): the address where its box begins and its distances, checked. */
struct array_place {
    CUarray array;
    const char *role;
    size_t x, y, z; /* bytes, rows, slices or layers */
};
CUresult array_place_check(const struct array_place *place, const CUDA_MEMCPY3D *form, uint64_t *start, size_t *pitch,
                           size_t *slice);
CUresult array_texel(CUarray array, size_t *bytes);

/* Check a fill, and bring it into its one form. */
CUresult fill_check(struct fill *fill, bool planned, const struct accessor *accessor);

/* A function that has the symbol NAME_v2 and, as the newest meaning, the name NAME in the function table. */
#define ENTRY_V2(name) ENTRY(name), ENTRY_AS(name##_v2, name)
#define ENTRY_STREAM_V2(name) ENTRY_STREAM(name), ENTRY_STREAM_AS(name##_v2, name)

/* ---- pools (pool.c, pool_storage.c) ------------------------------------------------------------------- */

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
    bool given_up; /* destroyed */
    bool is_imported;         /* from another process: what it has is mapped, not allocated */
    struct pool_share *share; /* of a pool for several processes (ipc/pool.c), else NULL */
    int reuse[3];  /* CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES and the two after it */
    uint64_t threshold;
    uint64_t used, used_high, reserved, reserved_high;
    uint64_t small_used, small_reserved; /* small allocations share places; reserved in steps */
    size_t outstanding; /* allocations and queued frees; a destroyed pool goes with the last */
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

/* Pools for several processes (ipc/pool.c). The last three with the pool's lock, or while nobody else has the pool. */
CUmemoryPool pool_new(const CUmemPoolProps *properties); /* checked properties; NULL: out of memory */
CUresult pool_check(CUmemoryPool pool);                  /* whether it is one that lives */
void pool_count_import(CUmemoryPool pool, uint64_t size);
CUresult pool_share_create(CUmemoryPool pool);
int pool_share_obtain(CUmemoryPool pool, uint64_t size, uint64_t *address);
void pool_share_release(CUmemoryPool pool, uint64_t address);
void pool_share_free(CUmemoryPool pool);

/* Memory of cuMemAlloc that processes share (ipc/memory.c). */
enum { MEMORY_IMPORTED = 1 << 29 }; /* how the table of allocations marks what came from another process */
void ipc_memory_freed(void);        /* after memory was freed */

/* Mapped virtual memory (virtual.c): how the table of allocations marks it, and whether kernels of a device may
 * access it. */
enum { MEMORY_VIRTUAL = 1 << 30 };
bool virtual_admits(uint64_t base, int device, bool is_write);

/* Memory of graphs. An allocation node has its address from its creation on; the memory is live from the
 * allocation node to the free node or, when the graph has no free node for it, from the launch to a free
 * by the program. */
CUmemoryPool pool_of_graphs(
    const CUmemPoolProps *properties); /* NULL: no memory, or a location that none can have */
CUresult memory_plan(struct op *op, const CUmemPoolProps *properties,
                     size_t size);                      /* op: a new OP_ALLOCATE */
CUresult memory_begin(const struct op *op, bool again); /* at the launch; again: it may be live still */
bool memory_is_of_graph(uint64_t address);
bool pool_is_planned(const cpu_allocation *found);

/* The same on a stream that captures: allocation and free nodes (capture.c). */
CUresult capture_allocate(CUstream stream, CUmemoryPool pool, size_t size, uint64_t *address);
CUresult capture_free(CUstream stream, uint64_t address);

/* Give back what the pools keep unused, because an allocation failed. */
void pools_trim(void);

#endif
