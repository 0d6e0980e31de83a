/* Memory pools and stream-ordered allocation (CUDA Driver API, "Stream Ordered Memory Allocator"). */
#include "driver/base/origin.h"
#include "driver/trace/trace.h"
#include "engine/above.h"
#include "driver/stream/moment.h"
#include "pool.h"

#include <stdio.h>

/* ---- the pools of locations --------------------------------------------------------------------------- */

/* The default and the current pool of each location and allocation type, made when first asked for. */
struct place {
    CUmemLocationType type;
    int id;
    CUmemAllocationType allocation;
    CUmemoryPool default_pool, current;
};

enum { PLACES = 4 * MAX_DEVICES };
static pthread_mutex_t places_lock = PTHREAD_MUTEX_INITIALIZER;
static struct place places[PLACES];
static _Atomic(CUmemoryPool) device_pool[MAX_DEVICES];    /* the current pools that cuMemAllocAsync takes */
static _Atomic(CUmemoryPool) graph_pool[MAX_DEVICES + 2]; /* of each device, of the host, of managed memory */

CUmemoryPool pool_new(const CUmemPoolProps *properties) {
    CUmemoryPool pool = handle_make(HANDLE_POOL, sizeof *pool);
    if (pool == NULL) return NULL;
    pthread_mutex_init(&pool->lock, NULL);
    pool->properties = *properties;
    pool->device = properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE ? properties->location.id : CPU_MEMORY_HOST;
    pool->kind = properties->allocType == CU_MEM_ALLOCATION_TYPE_MANAGED ? CPU_MEMORY_MANAGED
                 : pool->device == CPU_MEMORY_HOST                       ? CPU_MEMORY_PINNED
                                                                         : CPU_MEMORY_DEVICE;
    for (int i = 0; i < 3; i++) pool->reuse[i] = 1;
    /* Pools of host memory begin as the host's alone, whatever the devices could do (cuMemPoolCreate). */
    for (int i = 0; i < device_count; i++)
        if (pool->kind == CPU_MEMORY_MANAGED || i == pool->device) pool->access[i] = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    pool->pending.next = pool->pending.previous = &pool->pending;
    return pool;
}

/* Bring a location into its one form, and check it. */
static CUresult check_location(CUmemLocation *location, CUmemAllocationType allocation) {
    struct device *device = NULL;
    if (allocation != CU_MEM_ALLOCATION_TYPE_PINNED && allocation != CU_MEM_ALLOCATION_TYPE_MANAGED)
        return fail(CUDA_ERROR_INVALID_VALUE, "the allocation type is %d; it must be PINNED or MANAGED.",
                    (int)allocation);
    switch (location->type) {
        case CU_MEM_LOCATION_TYPE_DEVICE: return device_get(location->id, &device);
        case CU_MEM_LOCATION_TYPE_NONE:
            if (allocation == CU_MEM_ALLOCATION_TYPE_MANAGED) break;
            return fail(CUDA_ERROR_INVALID_VALUE, "only pools of managed memory need no location.");
        case CU_MEM_LOCATION_TYPE_HOST: break;
        case CU_MEM_LOCATION_TYPE_HOST_NUMA:
            if (location->id == 0) return CUDA_SUCCESS;
            return fail(CUDA_ERROR_INVALID_VALUE, "there is no NUMA node %d: the CPU device has one, node 0.",
                        location->id);
        default:
            return fail(CUDA_ERROR_INVALID_VALUE, "location type %d is not one that a pool can have.",
                        (int)location->type);
    }
    location->id = 0;
    return CUDA_SUCCESS;
}

/* With places_lock. NULL: out of memory for another pool. */
static struct place *find_place(CUmemLocation location, CUmemAllocationType allocation) {
    for (int i = 0; i < PLACES; i++) {
        struct place *place = &places[i];
        if (place->default_pool == NULL) {
            CUmemPoolProps properties = {.allocType = allocation, .location = location};
            CUmemoryPool pool = pool_new(&properties);
            if (pool == NULL) return NULL;
            pool->is_default = true;
            handle_publish(pool);
            *place = (struct place){location.type, location.id, allocation, pool, pool};
            return place;
        }
        if (place->type == location.type && place->id == location.id && place->allocation == allocation) return place;
    }
    return NULL;
}

static CUresult get_place_pool(CUmemoryPool *pool, const CUmemLocation *where, CUmemAllocationType type, bool current) {
    if (pool == NULL) return fail_null("pool");
    if (where == NULL) return fail_null("location");
    CUmemLocation location = *where;
    RETURN_IF(check_location(&location, type));
    pthread_mutex_lock(&places_lock);
    struct place *place = find_place(location, type);
    CUmemoryPool found = place ? (current ? place->current : place->default_pool) : NULL;
    pthread_mutex_unlock(&places_lock);
    if (found == NULL) return fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for another memory pool.");
    *pool = found;
    return CUDA_SUCCESS;
}

CUresult pool_check(CUmemoryPool pool) {
    if (handle_is_live(pool, HANDLE_POOL)) return CUDA_SUCCESS;
    return fail(CUDA_ERROR_INVALID_VALUE, "%p is not a memory pool%s.", (void *)pool,
                handle_was_live(pool, HANDLE_POOL) ? " any more: it was destroyed" : "");
}

static CUresult set_place_pool(const CUmemLocation *where, CUmemAllocationType type, CUmemoryPool pool) {
    if (where == NULL) return fail_null("location");
    CUmemLocation location = *where;
    RETURN_IF(check_location(&location, type));
    RETURN_IF(pool_check(pool));
    if (pool->is_imported)
        return fail(CUDA_ERROR_INVALID_VALUE, "the pool was imported from another process: it makes no allocations.");
    if (pool->properties.location.type != location.type || pool->properties.location.id != location.id ||
        pool->properties.allocType != type)
        return fail(CUDA_ERROR_INVALID_VALUE, "the pool was made for another location or allocation type.");
    pthread_mutex_lock(&places_lock);
    struct place *place = find_place(location, type);
    if (place) place->current = pool;
    if (location.type == CU_MEM_LOCATION_TYPE_DEVICE && type == CU_MEM_ALLOCATION_TYPE_PINNED)
        atomic_store(&device_pool[location.id], pool);
    pthread_mutex_unlock(&places_lock);
    return place ? CUDA_SUCCESS : fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for another memory pool.");
}

static CUmemLocation on_device(int ordinal) {
    return (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = ordinal};
}

CUmemoryPool pool_of_graphs(const CUmemPoolProps *wanted) {
    CUmemPoolProps properties = {.allocType = wanted->allocType, .location = wanted->location};
    if (check_location(&properties.location, properties.allocType)) return NULL;
    int index = properties.allocType == CU_MEM_ALLOCATION_TYPE_MANAGED    ? MAX_DEVICES + 1
                : properties.location.type == CU_MEM_LOCATION_TYPE_DEVICE ? properties.location.id
                                                                          : MAX_DEVICES;
    CUmemoryPool pool = atomic_load(&graph_pool[index]);
    if (pool) return pool;
    pthread_mutex_lock(&places_lock);
    pool = atomic_load(&graph_pool[index]);
    if (pool == NULL) {
        pool = pool_new(&properties);
        if (pool) {
            pool->is_default = pool->is_graph = true;
            handle_publish(pool);
        }
        atomic_store(&graph_pool[index], pool);
    }
    pthread_mutex_unlock(&places_lock);
    if (pool == NULL) (void)fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for the memory pool of graphs.");
    return pool;
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool_out, CUdevice dev) {
    RETURN_IF(enter());
    CUmemLocation location = on_device(dev);
    return get_place_pool(pool_out, &location, CU_MEM_ALLOCATION_TYPE_PINNED, false);
}

CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice dev) {
    RETURN_IF(enter());
    CUmemLocation location = on_device(dev);
    return get_place_pool(pool, &location, CU_MEM_ALLOCATION_TYPE_PINNED, true);
}

CUresult cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool) {
    RETURN_IF(enter());
    CUmemLocation location = on_device(dev);
    return set_place_pool(&location, CU_MEM_ALLOCATION_TYPE_PINNED, pool);
}

CUresult cuMemGetDefaultMemPool(CUmemoryPool *pool_out, CUmemLocation *location, CUmemAllocationType type) {
    RETURN_IF(enter());
    return get_place_pool(pool_out, location, type, false);
}

CUresult cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type) {
    RETURN_IF(enter());
    return get_place_pool(pool, location, type, true);
}

CUresult cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool) {
    RETURN_IF(enter());
    return set_place_pool(location, type, pool);
}

/* ---- pools of the program ----------------------------------------------------------------------------- */

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *poolProps) {
    RETURN_IF(enter_to_work());
    if (pool == NULL) return fail_null("pool");
    if (poolProps == NULL) return fail_null("poolProps");
    CUmemPoolProps properties = *poolProps;
    RETURN_IF(check_location(&properties.location, properties.allocType));
    if (properties.handleTypes & ~(unsigned)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return fail(CUDA_ERROR_NOT_SUPPORTED,
                    "handleTypes is %#x; the CPU device shares memory pools as POSIX file descriptors only.",
                    (unsigned)properties.handleTypes);
    if (properties.handleTypes && (properties.allocType == CU_MEM_ALLOCATION_TYPE_MANAGED ||
                                   properties.location.type == CU_MEM_LOCATION_TYPE_HOST))
        return fail(CUDA_ERROR_INVALID_VALUE,
                    "pools of managed memory, and of host memory without a NUMA node, are not shared "
                    "between processes: set handleTypes to NONE.");
    if (properties.allocType == CU_MEM_ALLOCATION_TYPE_MANAGED && properties.maxSize)
        return fail(CUDA_ERROR_INVALID_VALUE, "maxSize must be 0 for a pool of managed memory.");
    if (properties.maxSize)
        properties.maxSize = (properties.maxSize + CPU_MEMORY_STEP - 1) / CPU_MEMORY_STEP * CPU_MEMORY_STEP;
    CUmemoryPool made = pool_new(&properties);
    if (made == NULL) return fail(CUDA_ERROR_OUT_OF_MEMORY, "no memory for another memory pool.");
    CUresult status = properties.handleTypes ? pool_share_create(made) : CUDA_SUCCESS;
    if (status) {
        handle_free(HANDLE_POOL, made);
        return status;
    }
    handle_publish(made);
    *pool = made;
    return CUDA_SUCCESS;
}

CUresult cuMemPoolDestroy(CUmemoryPool pool) {
    RETURN_IF(enter_to_work());
    RETURN_IF(pool_check(pool));
    if (pool->is_default) return fail(CUDA_ERROR_INVALID_VALUE, "a default memory pool cannot be destroyed.");
    pthread_mutex_lock(&places_lock);
    bool mine = handle_kill(pool);
    for (int i = 0; i < PLACES; i++)
        if (places[i].current == pool) {
            places[i].current = places[i].default_pool;
            if (places[i].type == CU_MEM_LOCATION_TYPE_DEVICE && places[i].allocation == CU_MEM_ALLOCATION_TYPE_PINNED)
                atomic_store(&device_pool[places[i].id], places[i].default_pool);
        }
    pthread_mutex_unlock(&places_lock);
    if (!mine) return pool_check(pool);
    pool_give_up(pool);
    return CUDA_SUCCESS;
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t minBytesToKeep) {
    RETURN_IF(enter_to_work());
    RETURN_IF(pool_check(pool));
    pool_lock_and_trim(pool, minBytesToKeep);
    return CUDA_SUCCESS;
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value) {
    RETURN_IF(enter());
    RETURN_IF(pool_check(pool));
    if (value == NULL) return fail_null("value");
    CUresult status = CUDA_SUCCESS;
    cuuint64_t *wide = value;
    int *narrow = value;
    pthread_mutex_lock(&pool->lock);
    switch ((int)attr) {
        case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
        case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
        case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
            *narrow = pool->reuse[attr - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES];
            break;
        case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: *wide = pool->threshold; break;
        case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT: *wide = pool->reserved; break;
        case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH: *wide = pool->reserved_high; break;
        case CU_MEMPOOL_ATTR_USED_MEM_CURRENT: *wide = pool->used; break;
        case CU_MEMPOOL_ATTR_USED_MEM_HIGH: *wide = pool->used_high; break;
        case CU_MEMPOOL_ATTR_ALLOCATION_TYPE: *narrow = pool->properties.allocType; break;
        case CU_MEMPOOL_ATTR_EXPORT_HANDLE_TYPES: *narrow = pool->properties.handleTypes; break;
        case CU_MEMPOOL_ATTR_LOCATION_ID: *narrow = pool->properties.location.id; break;
        case CU_MEMPOOL_ATTR_LOCATION_TYPE: *narrow = pool->properties.location.type; break;
        case CU_MEMPOOL_ATTR_MAX_POOL_SIZE: *wide = pool->properties.maxSize; break;
        case CU_MEMPOOL_ATTR_HW_DECOMPRESS_ENABLED: *narrow = 0; break;
        default: status = CUDA_ERROR_INVALID_VALUE;
    }
    pthread_mutex_unlock(&pool->lock);
    return status ? fail(status, "a memory pool has no attribute %d.", (int)attr) : CUDA_SUCCESS;
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attr, void *value) {
    RETURN_IF(enter_to_work());
    RETURN_IF(pool_check(pool));
    if (value == NULL) return fail_null("value");
    CUresult status = CUDA_SUCCESS;
    cuuint64_t wide = 0;
    if (attr >= CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) memcpy(&wide, value, sizeof wide);
    pthread_mutex_lock(&pool->lock);
    switch ((int)attr) {
        case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
        case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
        case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
            pool->reuse[attr - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES] = *(int *)value != 0;
            break;
        case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: pool->threshold = wide; break;
        case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
            if (wide) status = CUDA_ERROR_INVALID_VALUE;
            else pool->reserved_high = pool->reserved;
            break;
        case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
            if (wide) status = CUDA_ERROR_INVALID_VALUE;
            else pool->used_high = pool->used;
            break;
        default: status = CUDA_ERROR_NOT_SUPPORTED;
    }
    pthread_mutex_unlock(&pool->lock);
    if (status == CUDA_ERROR_INVALID_VALUE) return fail(status, "a high watermark can only be set to 0.");
    if (status) return fail(CUDA_ERROR_INVALID_VALUE, "attribute %d of a memory pool cannot be set.", (int)attr);
    return CUDA_SUCCESS;
}

CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *map, size_t count) {
    RETURN_IF(enter_to_work());
    RETURN_IF(pool_check(pool));
    if (map == NULL && count) return fail_null("map");
    for (size_t i = 0; i < count; i++) {
        struct device *device;
        int flags = map[i].flags;
        if (map[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE)
            return fail(CUDA_ERROR_INVALID_VALUE, "descriptor %zu names no device: access is set for devices.", i);
        RETURN_IF(device_get(map[i].location.id, &device));
        if (flags != CU_MEM_ACCESS_FLAGS_PROT_NONE && flags != CU_MEM_ACCESS_FLAGS_PROT_READ &&
            flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
            return fail(CUDA_ERROR_INVALID_VALUE, "descriptor %zu has unknown flags %d.", i, flags);
        if (device->ordinal == pool->device && flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
            return fail(CUDA_ERROR_INVALID_VALUE, "the access of device %d to its own pool cannot be revoked.",
                        device->ordinal);
    }
    pthread_mutex_lock(&pool->lock);
    for (size_t i = 0; i < count; i++) pool->access[map[i].location.id] = (uint8_t)map[i].flags;
    pthread_mutex_unlock(&pool->lock);
    return CUDA_SUCCESS;
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool memPool, CUmemLocation *location) {
    struct device *device = NULL;
    RETURN_IF(enter());
    RETURN_IF(pool_check(memPool));
    if (flags == NULL) return fail_null("flags");
    if (location == NULL) return fail_null("location");
    if (location->type == CU_MEM_LOCATION_TYPE_DEVICE) {
        RETURN_IF(device_get(location->id, &device));
        *flags = memPool->access[device->ordinal];
    } else {
        *flags =
            memPool->kind == CPU_MEMORY_DEVICE ? CU_MEM_ACCESS_FLAGS_PROT_NONE : CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    }
    return CUDA_SUCCESS;
}

/* Access to the memory of graphs is given node by node, and not followed here. */
static bool pool_admits(const cpu_allocation *found, int device, bool is_write) {
    CUmemoryPool pool = found->owner;
    if (pool->is_graph || pool->access[device] == CU_MEM_ACCESS_FLAGS_PROT_READWRITE) return true;
    return pool->access[device] == CU_MEM_ACCESS_FLAGS_PROT_READ && !is_write;
}

CUresult access_check(const cpu_allocation *found, uint64_t address, const struct accessor *accessor, bool is_write,
                      const char *role) {
    bool is_virtual = found->flags & MEMORY_VIRTUAL;
    bool is_open = found->device == accessor->device || (found->device < 0 && !accessor->is_fill) ||
                   !handle_was_live(found->owner, HANDLE_POOL);
    bool admitted = is_virtual ? virtual_admits(found->base, accessor->device, is_write)
                               : is_open || pool_admits(found, accessor->device, is_write);
    if (admitted) return CUDA_SUCCESS;
    char where[32] = "the host";
    if (found->device >= 0) snprintf(where, sizeof where, "device %d", found->device);
    return fail(CUDA_ERROR_INVALID_VALUE,
                "%s, 0x%llx, is %s of %s that device %d, %s, may not %s: use a stream and a context of a device that "
                "may, give this one access with %s, or copy between devices with cuMemcpyPeerAsync.",
                role, (unsigned long long)address, is_virtual ? "mapped memory" : "memory of a pool", where,
                accessor->device, accessor->whose, is_write ? "write to" : "read",
                is_virtual ? "cuMemSetAccess" : "cuMemPoolSetAccess");
}

int cpu_driver_lacks(int device) { return injects(INJECT_LOST) && device >= 0 && injected_loss(device); }

int cpu_driver_permits(const cpu_launch *launch, const cpu_allocation *found, int is_write) {
    const struct CUctx_st *context = launch->context;
    if (cpu_driver_lacks(found->device)) return 0;
    if (found->flags & MEMORY_VIRTUAL) return virtual_admits(found->base, launch->device, is_write);
    if (handle_was_live(found->owner, HANDLE_POOL)) return pool_admits(found, launch->device, is_write);
    bool is_plain =
        found->kind == CPU_MEMORY_DEVICE || found->kind == CPU_MEMORY_ARRAY || found->kind == CPU_MEMORY_GRAPHICS;
    if (found->device < 0 || !is_plain || !handle_was_live(found->owner, HANDLE_CONTEXT)) return 1;
    return context->peers >> found->device & 1;
}

/* ---- stream-ordered allocation ------------------------------------------------------------------------ */

static CUresult allocate_on(CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool, CUstream stream) {
    uint64_t address = 0;
    if (dptr == NULL) return fail_null("dptr");
    if (unlikely(stream_is_capturing(stream))) {
        RETURN_IF(capture_allocate(stream, pool, bytesize, &address));
    } else if (likely(bytesize)) {
        RETURN_IF(pool_allocate(pool, bytesize, stream, &address));
        note_allocation(address, bytesize, "cuMemAllocFromPoolAsync");
        if (moments()) moment_touch_at_once(stream, address, bytesize, false);
        if (tracing() && pool->device >= 0) memory_trace(false, pool->device, bytesize, stream);
    }
    *dptr = address;
    return CUDA_SUCCESS;
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool, CUstream hStream) {
    CUstream stream;
    RETURN_IF(enter_stream(hStream, &stream));
    RETURN_IF(pool_check(pool));
    if (unlikely(pool->is_imported))
        return fail(CUDA_ERROR_INVALID_VALUE, "the pool was imported from another process: it makes no allocations.");
    return allocate_on(dptr, bytesize, pool, stream);
}

CUresult cuMemAllocAsync(CUdeviceptr *dptr, size_t bytesize, CUstream hStream) {
    CUstream stream;
    RETURN_IF(enter_stream(hStream, &stream));
    CUdevice ordinal = stream->context->device->ordinal;
    CUmemoryPool pool = atomic_load_explicit(&device_pool[ordinal], memory_order_acquire);
    if (unlikely(pool == NULL)) {
        RETURN_IF(cuDeviceGetMemPool(&pool, ordinal));
        atomic_store(&device_pool[ordinal], pool);
    }
    return allocate_on(dptr, bytesize, pool, stream);
}

CUresult cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream) {
    CUstream stream;
    cpu_allocation found;
    RETURN_IF(enter_stream(hStream, &stream));
    if (unlikely(stream_is_capturing(stream))) return capture_free(stream, dptr);
    if (dptr == 0) return CUDA_SUCCESS; /* what an allocation of no bytes gave */
    if (unlikely(!cpu_memory_lookup(dptr, &found) || found.base != dptr))
        return fail(CUDA_ERROR_INVALID_VALUE, "0x%llx is not the beginning of an allocation.",
                    (unsigned long long)dptr);
    if (unlikely(found.freed || found.freeing))
        return fail(CUDA_ERROR_INVALID_VALUE, "the memory at 0x%llx was freed already.", (unsigned long long)dptr);
    if (unlikely(!handle_was_live(found.owner, HANDLE_POOL) &&
                 (found.kind != CPU_MEMORY_DEVICE && found.kind != CPU_MEMORY_MANAGED)))
        return fail(CUDA_ERROR_INVALID_VALUE, "the memory at 0x%llx is not from a pool or cuMemAlloc.",
                    (unsigned long long)dptr);
    note_free(dptr);
    return pool_free_on(&found, stream);
}

/* ---- the memory of graphs ----------------------------------------------------------------------------- */

static CUresult find_graph_pool(CUdevice ordinal, CUmemoryPool *pool) {
    struct device *device = NULL;
    RETURN_IF(enter());
    RETURN_IF(device_get(ordinal, &device));
    CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = on_device(device->ordinal)};
    *pool = pool_of_graphs(&properties);
    return *pool ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* All memory that this pool holds belongs to nodes of existing graphs, so there is nothing to give back. */
CUresult cuDeviceGraphMemTrim(CUdevice device) {
    CUmemoryPool pool;
    return find_graph_pool(device, &pool);
}

CUresult cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr, void *value) {
    CUmemoryPool pool;
    RETURN_IF(find_graph_pool(device, &pool));
    if (value == NULL) return fail_null("value");
    switch ((int)attr) {
        case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT: *(cuuint64_t *)value = pool->used; break;
        case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH: *(cuuint64_t *)value = pool->used_high; break;
        case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT: *(cuuint64_t *)value = pool->reserved; break;
        case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH: *(cuuint64_t *)value = pool->reserved_high; break;
        default: return fail(CUDA_ERROR_INVALID_VALUE, "graph memory has no attribute %d.", (int)attr);
    }
    return CUDA_SUCCESS;
}

CUresult cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr, void *value) {
    CUmemoryPool pool;
    RETURN_IF(find_graph_pool(device, &pool));
    if (value == NULL) return fail_null("value");
    if (attr != CU_GRAPH_MEM_ATTR_USED_MEM_HIGH && attr != CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH)
        return fail(CUDA_ERROR_INVALID_VALUE, "attribute %d of graph memory cannot be set.", (int)attr);
    if (*(cuuint64_t *)value) return fail(CUDA_ERROR_INVALID_VALUE, "a high watermark can only be set to 0.");
    pthread_mutex_lock(&pool->lock);
    if (attr == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH) pool->used_high = pool->used;
    else pool->reserved_high = pool->reserved;
    pthread_mutex_unlock(&pool->lock);
    return CUDA_SUCCESS;
}

PER_THREAD(cuMemAllocFromPoolAsync,
           (CUdeviceptr * dptr, size_t bytesize, CUmemoryPool pool, CUstream hStream),
           (dptr, bytesize, pool, hStream))
PER_THREAD(cuMemAllocAsync, (CUdeviceptr * dptr, size_t bytesize, CUstream hStream),
           (dptr, bytesize, hStream))
PER_THREAD(cuMemFreeAsync, (CUdeviceptr dptr, CUstream hStream), (dptr, hStream))

const struct entry pool_entries[] = {
    ENTRY(cuDeviceGetDefaultMemPool),
    ENTRY(cuDeviceGetMemPool),
    ENTRY(cuDeviceSetMemPool),
    ENTRY(cuMemGetDefaultMemPool),
    ENTRY(cuMemGetMemPool),
    ENTRY(cuMemSetMemPool),
    ENTRY(cuMemPoolCreate),
    ENTRY(cuMemPoolDestroy),
    ENTRY(cuMemPoolTrimTo),
    ENTRY(cuMemPoolGetAttribute),
    ENTRY(cuMemPoolSetAttribute),
    ENTRY(cuMemPoolSetAccess),
    ENTRY(cuMemPoolGetAccess),
    ENTRY_STREAM(cuMemAllocFromPoolAsync),
    ENTRY_STREAM(cuMemAllocAsync),
    ENTRY_STREAM(cuMemFreeAsync),
    ENTRY(cuDeviceGraphMemTrim),
    ENTRY(cuDeviceGetGraphMemAttribute),
    ENTRY(cuDeviceSetGraphMemAttribute),
    {NULL, NULL, NULL},
};
