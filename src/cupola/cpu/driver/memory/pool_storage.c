/* How memory pools keep their memory (CUDA Driver API, "Stream Ordered Memory Allocator").
 *
 * An allocation exists as soon as the call returns: the stream's order only matters for frees. A free is
 * an operation on its stream; until it has run, the memory is "freeing": kernels that were launched before
 * may use it, new copies may not. An allocation of the same size on the same stream takes such memory over
 * at once, since the order of the stream keeps the uses apart, and the queued free then finds another id
 * there and does nothing.
 *
 * Small allocations go to the slabs of the arena, and the pool charges for them in steps of 2 MiB. Large
 * ones are kept after a free, with their pages, until the pool holds more than its release threshold when
 * the program synchronizes, is trimmed, or the memory is needed elsewhere. */
#include <Python.h>

#include <sched.h>
#include <stdlib.h>

#include "driver/trace/trace.h"
#include "driver/base/origin.h"
#include "driver/stream/moment.h"
#include "pool.h"

enum { ORPHAN = 1 }; /* in the flags of a graph's allocation: no graph has its place any more */
enum { STEP = CPU_MEMORY_STEP, PAGE = 4096, UNIT = 512, PENDING_LOOKED_AT = 16 };

static _Atomic bool has_excess; /* some pool may hold more than its threshold */

/* Small allocations share pages, which a pool for several processes cannot have: a process that maps one allocation
 * would see the others. So there each allocation has its own pages, and the pool is charged for these only. */
static bool is_small(const struct CUmemPoolHandle_st *pool, uint64_t size) {
    return size <= CPU_MEMORY_SMALL && !pool->share;
}
static uint64_t charge_for(const struct CUmemPoolHandle_st *pool, uint64_t room) {
    return round_up(room, pool->share ? PAGE : STEP);
}

static int charged_to(const struct CUmemPoolHandle_st *pool) {
    return pool->kind == CPU_MEMORY_DEVICE ? pool->device : CPU_MEMORY_HOST;
}

static int obtain(CUmemoryPool pool, uint64_t size, uint64_t *address, uint64_t *room) {
    if (!pool->share) return cpu_memory_obtain(pool->device, pool->kind, size, pool, address, room);
    *room = round_up(size, PAGE);
    return pool_share_obtain(pool, size, address);
}

static void release(CUmemoryPool pool, uint64_t base) {
    if (pool->share) pool_share_release(pool, base);
    else (void)cpu_memory_release(base);
}

/* ---- accounting; with the pool's lock ----------------------------------------------------------------- */

static int reserve_more(CUmemoryPool pool, uint64_t bytes) {
    if (pool->properties.maxSize && pool->reserved + bytes > pool->properties.maxSize) return CPU_MEMORY_DEVICE_FULL;
    int status = cpu_memory_charge(charged_to(pool), bytes);
    if (status) return status;
    pool->reserved += bytes;
    if (pool->reserved > pool->reserved_high) pool->reserved_high = pool->reserved;
    return CPU_MEMORY_OK;
}

static void reserve_less(CUmemoryPool pool, uint64_t bytes) {
    pool->reserved -= bytes;
    cpu_memory_uncharge(charged_to(pool), bytes);
}

static void count_use(CUmemoryPool pool, uint64_t size) {
    pool->used += round_up(size, UNIT);
    if (pool->used > pool->used_high) pool->used_high = pool->used;
}

static void trim(CUmemoryPool pool, uint64_t keep) {
    for (struct cached_block **at = &pool->cached; *at;) {
        struct cached_block *block = *at;
        uint64_t bytes = charge_for(pool, block->room);
        if (pool->reserved < keep + bytes) {
            at = &block->next;
            continue;
        }
        *at = block->next;
        release(pool, block->base);
        reserve_less(pool, bytes);
        free(block);
    }
    uint64_t unused = pool->small_reserved - round_up(pool->small_used, STEP);
    uint64_t above = pool->reserved > keep ? (pool->reserved - keep) / STEP * STEP : 0;
    uint64_t bytes = unused < above ? unused : above;
    pool->small_reserved -= bytes;
    reserve_less(pool, bytes);
}

/* ---- allocating --------------------------------------------------------------------------------------- */

static struct pending_free *find_pending(CUmemoryPool pool, CUstream stream, size_t size) {
    int left = PENDING_LOOKED_AT;
    for (struct pending_free *p = pool->pending.next; p != &pool->pending && left--; p = p->next)
        if (p->stream == stream && p->size == size) return p;
    return NULL;
}

static void unlink_pending(struct pending_free *p) {
    if (p->next == NULL) return;
    p->previous->next = p->next;
    p->next->previous = p->previous;
    p->next = p->previous = NULL;
}

/* The smallest kept place that holds the size and wastes little. */
static bool take_cached(CUmemoryPool pool, uint64_t size, uint64_t *address) {
    struct cached_block **best = NULL;
    uint64_t most = size + size / 4 + (pool->share ? PAGE : STEP);
    for (struct cached_block **at = &pool->cached; *at; at = &(*at)->next)
        if ((*at)->room >= size && (*at)->room <= most && (best == NULL || (*at)->room < (*best)->room)) best = at;
    if (best == NULL) return false;
    struct cached_block *block = *best;
    uint64_t id;
    *best = block->next;
    *address = block->base;
    free(block);
    if (cpu_memory_revive(*address, size, pool, &id)) return false;
    cpu_memory_renew(*address);
    return true;
}

static int allocate_locked(CUmemoryPool pool, size_t size, CUstream stream, uint64_t *address) {
    uint64_t id, room;
    /* Shadows are of what has happened: to them memory is new only when nothing that is queued uses it. */
    const bool may_take_over = stream && !checks(CPU_CHECK_RACE | CPU_CHECK_INIT);
    struct pending_free *pending = may_take_over ? find_pending(pool, stream, size) : NULL;
    if (pending) {
        unlink_pending(pending);
        *address = pending->base;
        int status = cpu_memory_revive(pending->base, size, pool, &id);
        if (status == CPU_MEMORY_OK) cpu_memory_renew(pending->base);
        return status;
    }
    if (is_small(pool, size)) {
        uint64_t bytes = round_up(size, UNIT), needed = pool->small_used + bytes;
        if (needed > pool->small_reserved) {
            uint64_t more = round_up(needed - pool->small_reserved, STEP);
            int status = reserve_more(pool, more);
            if (status) return status;
            pool->small_reserved += more;
        }
        int status = cpu_memory_obtain(pool->device, pool->kind, size, pool, address, &room);
        if (status == CPU_MEMORY_OK) pool->small_used += bytes;
        return status;
    }
    if (take_cached(pool, size, address)) return CPU_MEMORY_OK;
    uint64_t bytes = charge_for(pool, round_up(size, PAGE));
    int status = reserve_more(pool, bytes);
    if (status) return status;
    status = obtain(pool, size, address, &room);
    if (status) reserve_less(pool, bytes);
    return status;
}

static int try_allocate(CUmemoryPool pool, size_t size, CUstream stream, uint64_t *address) {
    pthread_mutex_lock(&pool->lock);
    int status = allocate_locked(pool, size, stream, address);
    if (status == CPU_MEMORY_OK) {
        count_use(pool, size);
        pool->outstanding++;
    }
    pthread_mutex_unlock(&pool->lock);
    return status;
}

void pool_count_import(CUmemoryPool pool, uint64_t size) {
    pthread_mutex_lock(&pool->lock);
    count_use(pool, size);
    pool->outstanding++;
    pthread_mutex_unlock(&pool->lock);
}

/* The caller may have kept the GIL (cupola/gil.h), and a host function written in Python may come before the free. */
static void wait_without_gil(CUstream stream, uint64_t sequence) {
    PyThreadState *here = PyGILState_GetThisThreadState() && PyGILState_Check() ? PyEval_SaveThread() : NULL;
    stream_wait_until(stream, sequence);
    if (here) PyEval_RestoreThread(here);
}

/* Wait for the oldest queued free of the pool; false when there is none. */
static bool wait_for_pending(CUmemoryPool pool) {
    pthread_mutex_lock(&pool->lock);
    struct pending_free *oldest = pool->pending.previous;
    bool any = oldest != &pool->pending;
    CUstream stream = any ? handle_retain(oldest->stream) : NULL;
    uint64_t sequence = any ? __atomic_load_n(&oldest->op->sequence, __ATOMIC_RELAXED) : 0;
    pthread_mutex_unlock(&pool->lock);
    if (!any) return false;
    if (sequence) wait_without_gil(stream, sequence);
    else sched_yield(); /* it is being queued by another thread */
    stream_release(stream);
    return true;
}

CUresult pool_allocate(CUmemoryPool pool, size_t size, CUstream stream, uint64_t *address) {
    if (size >= UINT64_C(1) << 47) return memory_refused(CPU_MEMORY_DEVICE_FULL, pool->device, size);
    int status = try_allocate(pool, size, stream, address);
    if (likely(status == CPU_MEMORY_OK)) return CUDA_SUCCESS;
    for (bool waited = true; waited;) {
        pools_trim();
        status = try_allocate(pool, size, stream, address);
        if (status == CPU_MEMORY_OK) return CUDA_SUCCESS;
        waited = wait_for_pending(pool);
    }
    /* Nothing is queued any more, but the last free may have run only since the attempt before. */
    pools_trim();
    status = try_allocate(pool, size, stream, address);
    if (status == CPU_MEMORY_DEVICE_FULL && pool->properties.maxSize &&
        pool->reserved + size > pool->properties.maxSize)
        return fail(CUDA_ERROR_OUT_OF_MEMORY,
                    "%zu bytes do not fit: the pool may hold %zu bytes, of which %llu are in use.", size,
                    pool->properties.maxSize, (unsigned long long)pool->used);
    if (status == CPU_MEMORY_OK) return CUDA_SUCCESS;
    return memory_refused_to_pool(status, pool->device, size, charge_for(pool, size));
}

/* ---- freeing ------------------------------------------------------------------------------------------ */

/* Give back the pool's lock, and the pool itself when it was destroyed and nothing is left of it. The lock
 * is not destroyed, so that a thread that looks through all pools may still take it. */
static void unlock(CUmemoryPool pool) {
    bool gone = pool->given_up && pool->outstanding == 0;
    pthread_mutex_unlock(&pool->lock);
    if (!gone) return;
    pool_share_free(pool);
    handle_free(HANDLE_POOL, pool);
}

/* Memory of another process's pool stays mapped after a free until the program synchronizes, with whatever stream. So an
 * H200's driver keeps it, and work that was queued before the free may use it, in other streams, too. */
static pthread_mutex_t leaving_lock = PTHREAD_MUTEX_INITIALIZER;
static struct cached_block *leaving;

static void unmap_later(uint64_t base) {
    struct cached_block *block = malloc(sizeof *block);
    if (block == NULL) {
        (void)cpu_memory_release(base);
        return;
    }
    (void)cpu_memory_mark_freeing(base); /* unless a queued free has done so */
    pthread_mutex_lock(&leaving_lock);
    *block = (struct cached_block){.next = leaving, .base = base};
    leaving = block;
    pthread_mutex_unlock(&leaving_lock);
    atomic_store(&has_excess, true);
}

static void unmap_leaving(void) {
    pthread_mutex_lock(&leaving_lock);
    struct cached_block *block = leaving;
    leaving = NULL;
    pthread_mutex_unlock(&leaving_lock);
    while (block) {
        struct cached_block *next = block->next;
        (void)cpu_memory_release(block->base);
        free(block);
        block = next;
    }
}

/* Take memory back whose uses are over; with the pool's lock, which this gives back. */
static void take_back(CUmemoryPool pool, uint64_t base, uint64_t size) {
    if (pool->is_graph) {
        cpu_allocation found;
        bool orphan = cpu_memory_lookup(base, &found) && found.flags & ORPHAN;
        uint64_t bytes = round_up(cpu_memory_room(base), UNIT);
        (void)(orphan ? cpu_memory_release(base) : cpu_memory_retire(base));
        if (orphan) reserve_less(pool, bytes);
    } else if (is_small(pool, size)) {
        (void)cpu_memory_release(base);
        pool->small_used -= round_up(size, UNIT);
    } else if (pool->is_imported) {
        unmap_later(base);
    } else {
        struct cached_block *block = !pool->given_up ? malloc(sizeof *block) : NULL;
        uint64_t room = cpu_memory_room(base);
        if (block) {
            (void)cpu_memory_retire(base);
            *block = (struct cached_block){pool->cached, base, room};
            pool->cached = block;
        } else {
            release(pool, base);
            reserve_less(pool, charge_for(pool, room));
        }
    }
    pool->outstanding--;
    if (pool->given_up) trim(pool, 0);
    else if (pool->reserved > pool->threshold) atomic_store_explicit(&has_excess, true, memory_order_relaxed);
    unlock(pool);
}

void pool_free_now(const cpu_allocation *allocation) {
    CUmemoryPool pool = allocation->owner;
    pthread_mutex_lock(&pool->lock);
    pool->used -= round_up(allocation->size, UNIT);
    take_back(pool, allocation->base, allocation->size);
}

/* The stream has come to the free. */
static void finish(struct pending_free *p) {
    CUmemoryPool pool = p->pool;
    if (pool == NULL) {
        (void)cpu_memory_free(p->base);
    } else {
        pthread_mutex_lock(&pool->lock);
        if (p->next) {
            unlink_pending(p);
            take_back(pool, p->base, p->size);
        } else {
            pool->outstanding--; /* the memory was taken over by an allocation */
            unlock(pool);
        }
    }
    stream_release(p->stream);
    free(p);
}

/* Whether nothing that an operation of the stream would wait for is still to be done: its own, and for the legacy stream what
 * blocking streams have, for these what the legacy stream has. */
static bool is_idle(CUstream stream) {
    if (!stream_has_completed(stream, atomic_load(&stream->submitted))) return false;
    if (stream->role == STREAM_LEGACY) return blocking_streams_are_idle(stream->context);
    CUstream legacy = stream->flags & CU_STREAM_NON_BLOCKING ? NULL : stream->context->legacy;
    return legacy == NULL || stream_has_completed(legacy, atomic_load(&legacy->submitted));
}

CUresult pool_free_on(const cpu_allocation *allocation, CUstream stream) {
    CUmemoryPool pool = handle_was_live(allocation->owner, HANDLE_POOL) ? allocation->owner : NULL;
    struct pending_free *p = NULL;
    struct op *op = NULL;
    if (stream->role == STREAM_LEGACY) RETURN_IF(capture_check_legacy(stream->context)); /* else the memory stays */
    if (tracing() && allocation->device >= 0) memory_trace(true, allocation->device, allocation->size, stream);
    if (cpu_memory_mark_freeing(allocation->base))
        return fail(CUDA_ERROR_INVALID_VALUE, "the memory at 0x%llx was freed already.",
                    (unsigned long long)allocation->base);
    if (is_idle(stream)) {
        if (moments()) moment_touch_at_once(stream, allocation->base, allocation->size, true);
        if (pool) pool_free_now(allocation);
        else (void)cpu_memory_free(allocation->base);
        return CUDA_SUCCESS;
    }
    p = calloc(1, sizeof *p);
    op = p ? op_new(OP_FREE, stream->context) : NULL;
    if (op == NULL) {
        free(p);
        wait_without_gil(stream, atomic_load(&stream->submitted)); /* no memory to queue it: do it here */
        if (pool) pool_free_now(allocation);
        else (void)cpu_memory_free(allocation->base);
        return CUDA_SUCCESS;
    }
    p->pool = pool;
    p->stream = handle_retain(stream);
    p->base = allocation->base;
    p->size = allocation->size;
    p->op = op;
    if (pool) {
        pthread_mutex_lock(&pool->lock);
        pool->used -= round_up(allocation->size, UNIT);
        p->next = pool->pending.next;
        p->previous = &pool->pending;
        p->next->previous = pool->pending.next = p;
        pthread_mutex_unlock(&pool->lock);
    }
    op->memory.pool = pool;
    op->memory.address = allocation->base;
    op->memory.size = allocation->size;
    op->memory.owner = p;
    if (moments()) op->origin = origin_here();
    return stream_submit(stream, op);
}

/* ---- graphs ------------------------------------------------------------------------------------------- */

/* The place of an allocation node, shared with the node's copies in executable graphs. */
struct place {
    _Atomic uint32_t references;
    uint64_t address;
};

CUresult memory_plan(struct op *op, const CUmemPoolProps *properties, size_t size) {
    CUmemoryPool pool = pool_of_graphs(properties);
    if (pool == NULL) return CUDA_ERROR_INVALID_VALUE;
    if (size >= UINT64_C(1) << 47) return memory_refused(CPU_MEMORY_DEVICE_FULL, pool->device, size);
    struct place *place = malloc(sizeof *place);
    if (place == NULL) return no_memory("the allocation node");
    uint64_t room = 0;
    pthread_mutex_lock(&pool->lock);
    int status = cpu_memory_obtain(pool->device, pool->kind, size, pool, &place->address, &room);
    if (status == CPU_MEMORY_OK) {
        status = reserve_more(pool, round_up(room, UNIT));
        (void)(status ? cpu_memory_release(place->address) : cpu_memory_retire(place->address));
    }
    pthread_mutex_unlock(&pool->lock);
    if (status) {
        free(place);
        return memory_refused(status, pool->device, size);
    }
    place->references = 1;
    op->memory.pool = pool;
    op->memory.address = place->address;
    op->memory.size = size;
    op->memory.owner = place;
    return CUDA_SUCCESS;
}

static bool is_of_graph(const cpu_allocation *found) {
    return handle_is_live(found->owner, HANDLE_POOL) && ((CUmemoryPool)found->owner)->is_graph;
}

bool memory_is_of_graph(uint64_t address) {
    cpu_allocation found;
    return cpu_memory_lookup(address, &found) && found.base == address && is_of_graph(&found);
}

bool pool_is_planned(const cpu_allocation *found) { return found->freed && is_of_graph(found); }

static void place_release(struct place *place) {
    cpu_allocation found;
    if (atomic_fetch_sub(&place->references, 1) != 1) return;
    if (cpu_memory_lookup(place->address, &found)) {
        CUmemoryPool pool = found.owner;
        pthread_mutex_lock(&pool->lock);
        (void)cpu_memory_lookup(place->address, &found);
        if (found.freed) {
            uint64_t bytes = round_up(cpu_memory_room(place->address), UNIT);
            (void)cpu_memory_release(place->address);
            reserve_less(pool, bytes);
        } else {
            cpu_memory_set_flags(place->address, ORPHAN);
        }
        pthread_mutex_unlock(&pool->lock);
    }
    free(place);
}

CUresult memory_begin(const struct op *op, bool again) {
    CUmemoryPool pool = op->memory.pool;
    uint64_t address = op->memory.address, id;
    cpu_allocation found;
    CUresult status = CUDA_SUCCESS;
    pthread_mutex_lock(&pool->lock);
    bool known = cpu_memory_lookup(address, &found);
    if (known && !found.freed && !found.freeing) {
        if (!again) status = CUDA_ERROR_INVALID_VALUE;
    } else if (known) {
        for (struct pending_free *p = pool->pending.next; found.freeing && p != &pool->pending; p = p->next)
            if (p->base == address) { /* a free is queued; it will leave this new use alone */
                unlink_pending(p);
                break;
            }
        (void)cpu_memory_revive(address, op->memory.size, pool, &id);
        cpu_memory_set_lines(address, found.allocated_at, found.freed_at); /* those of its nodes */
        count_use(pool, op->memory.size);
        pool->outstanding++;
    }
    pthread_mutex_unlock(&pool->lock);
    if (status == CUDA_SUCCESS) return status;
    return fail(
        status,
        "the graph allocates the memory at 0x%llx, which its last launch allocated and nothing has freed: free it, "
        "or instantiate the graph with CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH.",
        (unsigned long long)address);
}

void memory_renew(const struct op *op) { cpu_memory_renew(op->memory.address); }

static CUresult memory_end(uint64_t address) {
    cpu_allocation found;
    if (cpu_memory_find(address, &found) && found.base == address) {
        pool_free_now(&found);
        return CUDA_SUCCESS;
    }
    return fail(CUDA_ERROR_ILLEGAL_ADDRESS, "a graph frees 0x%llx, which is not allocated.",
                (unsigned long long)address);
}

/* ---- operations --------------------------------------------------------------------------------------- */

CUresult memory_execute(struct op *op) {
    if (op->kind == OP_ALLOCATE) {
        RETURN_IF(memory_begin(op, false));
        memory_renew(op);
        return CUDA_SUCCESS;
    }
    if (op->memory.owner == NULL) return memory_end(op->memory.address);
    finish(op->memory.owner);
    op->memory.owner = NULL;
    return CUDA_SUCCESS;
}

/* Of the frees, only those of graphs are copied, which have nothing to share. */
void memory_op_retain(struct op *op) {
    if (op->kind == OP_ALLOCATE && op->memory.owner)
        atomic_fetch_add(&((struct place *)op->memory.owner)->references, 1);
}

void memory_op_release(struct op *op) {
    if (op->memory.owner == NULL) return;
    if (op->kind == OP_FREE) finish(op->memory.owner);
    else place_release(op->memory.owner);
}

/* ---- giving back -------------------------------------------------------------------------------------- */

void pool_lock_and_trim(CUmemoryPool pool, uint64_t keep) {
    pthread_mutex_lock(&pool->lock);
    trim(pool, keep);
    pthread_mutex_unlock(&pool->lock);
}

void pool_give_up(CUmemoryPool pool) {
    pthread_mutex_lock(&pool->lock);
    pool->given_up = true;
    trim(pool, 0);
    unlock(pool);
}

static void trim_all(void *pool, void *data) {
    (void)data;
    if (!((CUmemoryPool)pool)->is_graph) pool_lock_and_trim(pool, 0);
}

static void trim_excess(void *pool, void *data) {
    (void)data;
    if (!((CUmemoryPool)pool)->is_graph) pool_lock_and_trim(pool, ((CUmemoryPool)pool)->threshold);
}

void pools_trim(void) { handle_each(HANDLE_POOL, trim_all, NULL); }

struct counting {
    int device;
    struct pools_total total;
};

static void count_pool(void *pool_, void *data) {
    CUmemoryPool pool = pool_;
    struct counting *of = data;
    pthread_mutex_lock(&pool->lock);
    if (charged_to(pool) == of->device && !pool->is_imported) {
        of->total.reserved += pool->reserved;
        of->total.used += pool->used;
    }
    pthread_mutex_unlock(&pool->lock);
}

struct pools_total pools_total(int device) {
    struct counting counting = {.device = device};
    handle_each(HANDLE_POOL, count_pool, &counting);
    return counting.total;
}

void pools_synchronized(void) {
    if (likely(!atomic_load_explicit(&has_excess, memory_order_relaxed))) return;
    atomic_store_explicit(&has_excess, false, memory_order_relaxed);
    handle_each(HANDLE_POOL, trim_excess, NULL);
    unmap_leaving();
}
