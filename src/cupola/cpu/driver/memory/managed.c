/* Managed memory: advice, prefetching and discarding (CUDA Driver API, "Unified Addressing").
 *
 * There is one memory here, so nothing moves. What the program says about an allocation is checked and
 * kept, so that it can be asked for again; it is kept for whole allocations, also when the call named only
 * a part of one. */
#include "pool.h"

#include <stdlib.h>

struct advice {
    struct advice *next;
    uint64_t base, id; /* of the allocation; ids are never used again */
    bool read_mostly, by_host;
    uint32_t by_device; /* a bit for each */
    CUmemLocation preferred, prefetched;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct advice *all_advice;

/* What is known about an allocation, made when there is nothing yet; what was freed is dropped. With the
 * lock. */
static struct advice *advice_of(const cpu_allocation *allocation) {
    cpu_allocation found;
    for (struct advice **link = &all_advice; *link;) {
        struct advice *advice = *link;
        if (advice->id == allocation->id) return advice;
        if (cpu_memory_find(advice->base, &found) && found.id == advice->id) {
            link = &advice->next;
        } else {
            *link = advice->next;
            free(advice);
        }
    }
    struct advice *made = calloc(1, sizeof *made);
    if (made == NULL) return NULL;
    made->base = allocation->base;
    made->id = allocation->id;
    made->next = all_advice;
    return all_advice = made;
}

static CUresult check_range(CUdeviceptr address, size_t count, cpu_allocation *found) {
    if (count == 0) return fail(CUDA_ERROR_INVALID_VALUE, "the range must have at least one byte");
    RETURN_IF(memory_check(address, count, RANGE_DEVICE, "the range", NULL));
    if (cpu_memory_find(address, found) && found->kind == CPU_MEMORY_MANAGED) return CUDA_SUCCESS;
    return fail(CUDA_ERROR_INVALID_VALUE, "0x%llx is not managed memory", (unsigned long long)address);
}

static CUresult check_location(const CUmemLocation *location) {
    switch ((int)location->type) {
        case CU_MEM_LOCATION_TYPE_DEVICE:
            if (location->id >= 0 && location->id < device_count) return CUDA_SUCCESS;
            return fail(CUDA_ERROR_INVALID_VALUE, "there is no device %d: there are %d", location->id, device_count);
        case CU_MEM_LOCATION_TYPE_HOST:
        case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT: return CUDA_SUCCESS;
        case CU_MEM_LOCATION_TYPE_HOST_NUMA:
            if (location->id == 0) return CUDA_SUCCESS;
            return fail(CUDA_ERROR_INVALID_VALUE, "there is no NUMA node %d: the CPU device has one, node 0",
                        location->id);
        default:
            return fail(CUDA_ERROR_INVALID_VALUE, "%d is not a type of location for managed memory",
                        (int)location->type);
    }
}

static CUmemLocation from_device(CUdevice device) {
    return device == CU_DEVICE_CPU ? (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_HOST}
                                   : (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device};
}

/* ---- advice ------------------------------------------------------------------------------------------- */

CUresult cuMemAdvise(CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUmemLocation location) {
    cpu_allocation found;
    RETURN_IF(enter_to_work());
    RETURN_IF(check_range(devPtr, count, &found));
    if ((int)advice < CU_MEM_ADVISE_SET_READ_MOSTLY || advice > CU_MEM_ADVISE_UNSET_ACCESSED_BY)
        return fail(CUDA_ERROR_INVALID_VALUE, "%d is not a CUmem_advise", (int)advice);
    /* The reference names cuMemAllocManaged and __managed__, and an H200 refuses the memory of a pool. */
    if (handle_was_live(found.owner, HANDLE_POOL))
        return fail(CUDA_ERROR_NOT_SUPPORTED,
                    "0x%llx is memory of a pool, which takes no advice; memory of cuMemAllocManaged does",
                    (unsigned long long)devPtr);
    bool uses_location = advice == CU_MEM_ADVISE_SET_PREFERRED_LOCATION || advice >= CU_MEM_ADVISE_SET_ACCESSED_BY;
    if (uses_location) RETURN_IF(check_location(&location));
    pthread_mutex_lock(&lock);
    struct advice *known = advice_of(&found);
    if (known) {
        bool set = advice == CU_MEM_ADVISE_SET_READ_MOSTLY || advice == CU_MEM_ADVISE_SET_PREFERRED_LOCATION ||
                   advice == CU_MEM_ADVISE_SET_ACCESSED_BY;
        switch ((int)advice) {
            case CU_MEM_ADVISE_SET_READ_MOSTLY:
            case CU_MEM_ADVISE_UNSET_READ_MOSTLY: known->read_mostly = set; break;
            case CU_MEM_ADVISE_SET_PREFERRED_LOCATION: known->preferred = location; break;
            case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION: known->preferred = (CUmemLocation){0}; break;
            default:
                if (location.type != CU_MEM_LOCATION_TYPE_DEVICE) known->by_host = set;
                else if (set) known->by_device |= 1u << location.id;
                else known->by_device &= ~(1u << location.id);
        }
    }
    pthread_mutex_unlock(&lock);
    return known ? CUDA_SUCCESS : no_memory("the advice");
}

static CUresult advise_v1(CUdeviceptr address, size_t count, CUmem_advise advice, CUdevice device) {
    return cuMemAdvise(address, count, advice, from_device(device));
}

/* ---- asking ------------------------------------------------------------------------------------------- */

static int ordinal_of(const CUmemLocation *location) {
    if (location->type == CU_MEM_LOCATION_TYPE_INVALID) return CU_DEVICE_INVALID;
    return location->type == CU_MEM_LOCATION_TYPE_DEVICE ? location->id : CU_DEVICE_CPU;
}

static void store_accessed_by(const struct advice *known, int *data, size_t room) {
    size_t n = 0;
    for (int i = 0; i < device_count && n < room; i++)
        if (known->by_device >> i & 1) data[n++] = i;
    if (known->by_host && n < room) data[n++] = CU_DEVICE_CPU;
    while (n < room) data[n++] = CU_DEVICE_INVALID;
}

CUresult cuMemRangeGetAttribute(void *data, size_t dataSize, CUmem_range_attribute attribute, CUdeviceptr devPtr,
                                size_t count) {
    cpu_allocation found;
    RETURN_IF(enter());
    if (data == NULL) return fail_null("data");
    RETURN_IF(check_range(devPtr, count, &found));
    bool is_list = attribute == CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY;
    if (is_list ? dataSize == 0 || dataSize % sizeof(int) : dataSize != sizeof(int))
        return fail(CUDA_ERROR_INVALID_VALUE, "dataSize is %zu; it must be %s4", dataSize,
                    is_list ? "a multiple of " : "");
    CUresult status = CUDA_SUCCESS;
    int *out = data;
    pthread_mutex_lock(&lock);
    const struct advice *known = advice_of(&found);
    if (known == NULL) status = no_memory("the advice");
    else switch ((int)attribute) {
            case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY: *out = known->read_mostly; break;
            case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION: *out = ordinal_of(&known->preferred); break;
            case CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY: store_accessed_by(known, out, dataSize / sizeof *out); break;
            case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION: *out = ordinal_of(&known->prefetched); break;
            case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE: *out = known->preferred.type; break;
            case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID: *out = known->preferred.id; break;
            case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE: *out = known->prefetched.type; break;
            case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID: *out = known->prefetched.id; break;
            default: status = fail(CUDA_ERROR_INVALID_VALUE, "a range of memory has no attribute %d", (int)attribute);
        }
    pthread_mutex_unlock(&lock);
    return status;
}

CUresult cuMemRangeGetAttributes(void **data, size_t *dataSizes, CUmem_range_attribute *attributes,
                                 size_t numAttributes, CUdeviceptr devPtr, size_t count) {
    RETURN_IF(enter());
    if (data == NULL || dataSizes == NULL || attributes == NULL) return fail_null("data, dataSizes or attributes");
    if (numAttributes == 0) return fail(CUDA_ERROR_INVALID_VALUE, "numAttributes must be at least 1");
    for (size_t i = 0; i < numAttributes; i++)
        RETURN_IF(cuMemRangeGetAttribute(data[i], dataSizes[i], attributes[i], devPtr, count));
    return CUDA_SUCCESS;
}

/* ---- prefetching and discarding ----------------------------------------------------------------------- */

/* A stream for a call that has an effect on managed memory and cannot be captured. */
static CUresult enter_uncaptured(const char *call, CUstream handle, CUstream *stream) {
    RETURN_IF(enter_stream(handle, stream));
    return stream_is_capturing(*stream) ? capture_refuse(*stream, call) : CUDA_SUCCESS;
}

/* The batches do not take the legacy default stream either. */
static CUresult enter_batch(const char *call, CUstream handle, CUstream *stream) {
    RETURN_IF(enter_uncaptured(call, handle, stream));
    if ((*stream)->role != STREAM_LEGACY) return CUDA_SUCCESS;
    return fail(CUDA_ERROR_INVALID_VALUE, "%s does not take the legacy default stream.", call);
}

/* It takes its place in the stream, as work that does nothing. */
static CUresult submit_nothing(CUstream stream) {
    struct op *op = op_new(OP_EMPTY, stream->context);
    return op ? stream_submit(stream, op) : no_memory("the advice");
}

static CUresult note_prefetch(const cpu_allocation *found, CUmemLocation location) {
    pthread_mutex_lock(&lock);
    struct advice *known = advice_of(found);
    if (known) known->prefetched = location;
    pthread_mutex_unlock(&lock);
    return known ? CUDA_SUCCESS : no_memory("the advice");
}

CUresult cuMemPrefetchAsync(CUdeviceptr devPtr, size_t count, CUmemLocation location, unsigned int flags,
                            CUstream hStream) {
    CUstream stream;
    cpu_allocation found;
    RETURN_IF(enter_uncaptured("cuMemPrefetchAsync", hStream, &stream));
    if (flags) return fail(CUDA_ERROR_INVALID_VALUE, "flags must be 0, not %u", flags);
    RETURN_IF(check_range(devPtr, count, &found));
    RETURN_IF(check_location(&location));
    RETURN_IF(note_prefetch(&found, location));
    return submit_nothing(stream);
}

static CUresult prefetch_v1(CUdeviceptr address, size_t count, CUdevice device, CUstream stream) {
    return cuMemPrefetchAsync(address, count, from_device(device), 0, stream);
}

/* Check the lists of a batch, and note where its ranges were prefetched to. */
static CUresult batch(CUdeviceptr *pointers, size_t *sizes, size_t count, const CUmemLocation *locations,
                      const size_t *indices, size_t location_count, unsigned long long flags, bool prefetch) {
    cpu_allocation found;
    if (pointers == NULL || sizes == NULL) return fail_null("dptrs or sizes");
    if (count == 0) return fail(CUDA_ERROR_INVALID_VALUE, "a batch must have at least one range");
    if (flags) return fail(CUDA_ERROR_INVALID_VALUE, "flags must be 0, not %llu", flags);
    if (prefetch) {
        if (locations == NULL || indices == NULL) return fail_null("prefetchLocs or prefetchLocIdxs");
        if (location_count == 0 || location_count > count)
            return fail(CUDA_ERROR_INVALID_VALUE, "%zu locations for %zu ranges: there must be 1 to as many as ranges",
                        location_count, count);
        for (size_t i = 0; i < location_count; i++) {
            RETURN_IF(check_location(&locations[i]));
            if (indices[i] >= count || (i == 0 ? indices[i] != 0 : indices[i] <= indices[i - 1]))
                return fail(CUDA_ERROR_INVALID_VALUE,
                            "prefetchLocIdxs must begin with 0, increase, and stay below count");
        }
    }
    for (size_t i = 0; i < count; i++) RETURN_IF(check_range(pointers[i], sizes[i], &found));
    for (size_t i = 0, at = 0; prefetch && i < count; i++) {
        while (at + 1 < location_count && indices[at + 1] <= i) at++;
        RETURN_IF(check_range(pointers[i], sizes[i], &found));
        RETURN_IF(note_prefetch(&found, locations[at]));
    }
    return CUDA_SUCCESS;
}

CUresult cuMemPrefetchBatchAsync(CUdeviceptr *dptrs, size_t *sizes, size_t count, CUmemLocation *prefetchLocs,
                                 size_t *prefetchLocIdxs, size_t numPrefetchLocs, unsigned long long flags,
                                 CUstream hStream) {
    CUstream stream;
    RETURN_IF(enter_batch("cuMemPrefetchBatchAsync", hStream, &stream));
    RETURN_IF(batch(dptrs, sizes, count, prefetchLocs, prefetchLocIdxs, numPrefetchLocs, flags, true));
    return submit_nothing(stream);
}

/* What a discarded range holds is undefined, so it may as well stay as it is. */
CUresult cuMemDiscardBatchAsync(CUdeviceptr *dptrs, size_t *sizes, size_t count, unsigned long long flags,
                                CUstream hStream) {
    CUstream stream;
    RETURN_IF(enter_batch("cuMemDiscardBatchAsync", hStream, &stream));
    RETURN_IF(batch(dptrs, sizes, count, NULL, NULL, 0, flags, false));
    return submit_nothing(stream);
}

CUresult cuMemDiscardAndPrefetchBatchAsync(CUdeviceptr *dptrs, size_t *sizes, size_t count, CUmemLocation *prefetchLocs,
                                           size_t *prefetchLocIdxs, size_t numPrefetchLocs, unsigned long long flags,
                                           CUstream hStream) {
    CUstream stream;
    RETURN_IF(enter_batch("cuMemDiscardAndPrefetchBatchAsync", hStream, &stream));
    RETURN_IF(batch(dptrs, sizes, count, prefetchLocs, prefetchLocIdxs, numPrefetchLocs, flags, true));
    return submit_nothing(stream);
}

PER_THREAD(cuMemPrefetchAsync, (CUdeviceptr p, size_t n, CUmemLocation where, unsigned flags, CUstream s),
           (p, n, where, flags, s))
PER_THREAD(cuMemPrefetchBatchAsync,
           (CUdeviceptr * p, size_t *n, size_t count, CUmemLocation *where, size_t *indices, size_t locations,
            unsigned long long flags, CUstream s),
           (p, n, count, where, indices, locations, flags, s))
PER_THREAD(cuMemDiscardBatchAsync,
           (CUdeviceptr * p, size_t *n, size_t count, unsigned long long flags, CUstream s),
           (p, n, count, flags, s))
PER_THREAD(cuMemDiscardAndPrefetchBatchAsync,
           (CUdeviceptr * p, size_t *n, size_t count, CUmemLocation *where, size_t *indices, size_t locations,
            unsigned long long flags, CUstream s),
           (p, n, count, where, indices, locations, flags, s))

const struct entry managed_entries[] = {
    ENTRY_V2(cuMemAdvise),
    ENTRY_AS(cuMemAdvise_v1, advise_v1),
    ENTRY(cuMemRangeGetAttribute),
    ENTRY(cuMemRangeGetAttributes),
    ENTRY_STREAM_V2(cuMemPrefetchAsync),
    ENTRY_AS(cuMemPrefetchAsync_v1, prefetch_v1),
    ENTRY_STREAM(cuMemPrefetchBatchAsync),
    ENTRY_STREAM(cuMemDiscardBatchAsync),
    ENTRY_STREAM(cuMemDiscardAndPrefetchBatchAsync),
    {NULL, NULL, NULL},
};
