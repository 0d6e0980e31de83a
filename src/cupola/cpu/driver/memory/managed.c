/* Managed memory: advice, prefetching and discarding (CUDA Driver API, "Unified Addressing").
 *
 * There is one memory here, so nothing moves. What the program says is checked and kept for the pages that it says it of, so
 * that it can be asked for again. */
#include "pool.h"

#include <stdlib.h>

enum { PAGE = 4096 };

struct said { /* of a page */
    bool read_mostly, by_host;
    uint32_t by_device; /* a bit for each */
    CUmemLocation preferred, prefetched;
};

struct range { /* pages of which the same was said */
    struct range *next;
    uint64_t begin, end;
    struct said said;
};

struct advice {
    struct advice *next;
    uint64_t base, id;    /* of the allocation; ids are never used again */
    struct range *ranges; /* in ascending order; of other pages nothing was said */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct advice *all_advice;

static void advice_free(struct advice *advice) {
    for (struct range *range = advice->ranges, *next; range; range = next) {
        next = range->next;
        free(range);
    }
    free(advice);
}

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
            advice_free(advice);
        }
    }
    struct advice *made = calloc(1, sizeof *made);
    if (made == NULL) return NULL;
    made->base = allocation->base;
    made->id = allocation->id;
    made->next = all_advice;
    return all_advice = made;
}

static uint64_t page_of(uint64_t address) { return address / PAGE * PAGE; }

static bool same_location(const CUmemLocation *a, const CUmemLocation *b) {
    return a->type == b->type && a->id == b->id;
}

static bool same_said(const struct said *a, const struct said *b) {
    return a->read_mostly == b->read_mostly && a->by_host == b->by_host && a->by_device == b->by_device &&
           same_location(&a->preferred, &b->preferred) && same_location(&a->prefetched, &b->prefetched);
}

static struct range *range_insert(struct range **link, uint64_t begin, uint64_t end, struct said said) {
    struct range *range = malloc(sizeof *range);
    if (range) *range = (struct range){*link, begin, end, said};
    if (range) *link = range;
    return range;
}

/* Make a range end at the address if one contains it; false without memory. */
static bool split_at(struct advice *advice, uint64_t address) {
    for (struct range *range = advice->ranges; range && range->begin < address; range = range->next)
        if (address < range->end) {
            if (!range_insert(&range->next, address, range->end, range->said)) return false;
            range->end = address;
        }
    return true;
}

/* Neighbours of which the same was said become one, so that there are no more than the program tells apart. */
static void join_ranges(struct advice *advice) {
    for (struct range *range = advice->ranges; range;) {
        struct range *next = range->next;
        if (next == NULL || next->begin != range->end || !same_said(&range->said, &next->said)) {
            range = next;
            continue;
        }
        range->end = next->end;
        range->next = next->next;
        free(next);
    }
}

/* Have all pages between two addresses covered by ranges that end with them, and call `change` for each. */
static bool change_said(struct advice *advice, uint64_t address, size_t count,
                        void (*change)(struct said *said, const void *data), const void *data) {
    static const struct said nothing;
    const uint64_t begin = page_of(address), end = page_of(address + count - 1) + PAGE;
    if (!split_at(advice, begin) || !split_at(advice, end)) return false;
    struct range **link = &advice->ranges;
    while (*link && (*link)->end <= begin) link = &(*link)->next;
    for (uint64_t at = begin; at < end; link = &(*link)->next) {
        if (*link == NULL || (*link)->begin > at) {
            const uint64_t next = *link && (*link)->begin < end ? (*link)->begin : end;
            if (!range_insert(link, at, next, nothing)) return false;
        }
        change(&(*link)->said, data);
        at = (*link)->end;
    }
    join_ranges(advice);
    return true;
}

/* What holds for all pages: a location that is not the same for all counts as none. */
static struct said said_of_all(const struct advice *advice, uint64_t address, size_t count) {
    static const struct said nothing;
    const uint64_t end = page_of(address + count - 1) + PAGE;
    uint64_t at = page_of(address);
    struct said all = nothing;
    bool first = true;
    for (const struct range *range = advice->ranges; at < end; first = false) {
        while (range && range->end <= at) range = range->next;
        const bool inside = range && range->begin <= at;
        const struct said *said = inside ? &range->said : &nothing;
        at = inside ? range->end : range ? range->begin : end;
        if (first) {
            all = *said;
            continue;
        }
        all.read_mostly &= said->read_mostly;
        all.by_host &= said->by_host;
        all.by_device &= said->by_device;
        if (!same_location(&all.preferred, &said->preferred)) all.preferred = nothing.preferred;
        if (!same_location(&all.prefetched, &said->prefetched)) all.prefetched = nothing.prefetched;
    }
    return all;
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

static CUresult check_type(const CUmemLocation *location) {
    if (location->type >= CU_MEM_LOCATION_TYPE_DEVICE && location->type <= CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT)
        return CUDA_SUCCESS;
    return check_location(location);
}

static CUmemLocation from_device(CUdevice device) {
    return device == CU_DEVICE_CPU ? (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_HOST}
                                   : (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device};
}

/* ---- advice ------------------------------------------------------------------------------------------- */

struct given {
    CUmem_advise advice;
    CUmemLocation location;
};

static void take_advice(struct said *said, const void *data) {
    const struct given *given = data;
    const CUmemLocation *location = &given->location;
    switch ((int)given->advice) {
        case CU_MEM_ADVISE_SET_READ_MOSTLY: said->read_mostly = true; break;
        case CU_MEM_ADVISE_UNSET_READ_MOSTLY: said->read_mostly = false; break;
        case CU_MEM_ADVISE_SET_PREFERRED_LOCATION: said->preferred = *location; break;
        case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION: said->preferred = (CUmemLocation){0}; break;
        default: {
            const bool set = given->advice == CU_MEM_ADVISE_SET_ACCESSED_BY;
            if (location->type != CU_MEM_LOCATION_TYPE_DEVICE) said->by_host = set;
            else if (set) said->by_device |= UINT32_C(1) << location->id;
            else said->by_device &= ~(UINT32_C(1) << location->id);
        }
    }
}

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
    RETURN_IF(check_type(&location));
    bool uses_location = advice == CU_MEM_ADVISE_SET_PREFERRED_LOCATION || advice >= CU_MEM_ADVISE_SET_ACCESSED_BY;
    if (uses_location) RETURN_IF(check_location(&location));
    if (advice >= CU_MEM_ADVISE_SET_ACCESSED_BY && location.type > CU_MEM_LOCATION_TYPE_HOST)
        return fail(CUDA_ERROR_INVALID_VALUE, "who accesses memory is a device or the host, not a NUMA node");
    pthread_mutex_lock(&lock);
    struct advice *known = advice_of(&found);
    bool fine = known && change_said(known, devPtr, count, take_advice, &(struct given){advice, location});
    pthread_mutex_unlock(&lock);
    return fine ? CUDA_SUCCESS : no_memory("the advice");
}

static CUresult advise_v1(CUdeviceptr address, size_t count, CUmem_advise advice, CUdevice device) {
    return cuMemAdvise(address, count, advice, from_device(device));
}

/* ---- asking ------------------------------------------------------------------------------------------- */

static int ordinal_of(const CUmemLocation *location) {
    if (location->type == CU_MEM_LOCATION_TYPE_INVALID) return CU_DEVICE_INVALID;
    return location->type == CU_MEM_LOCATION_TYPE_DEVICE ? location->id : CU_DEVICE_CPU;
}

static int id_of(const CUmemLocation *location) {
    if (location->type == CU_MEM_LOCATION_TYPE_INVALID) return CU_DEVICE_INVALID;
    if (location->type == CU_MEM_LOCATION_TYPE_HOST) return CU_DEVICE_CPU;
    return location->type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT ? 0 : location->id; /* there is one node */
}

static void store_accessed_by(const struct said *known, int *data, size_t room) {
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
    struct said said = {0};
    if (known) said = said_of_all(known, devPtr, count);
    else status = no_memory("the advice");
    pthread_mutex_unlock(&lock);
    if (status) return status;
    switch ((int)attribute) {
        case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY: *out = said.read_mostly; break;
        case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION: *out = ordinal_of(&said.preferred); break;
        case CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY: store_accessed_by(&said, out, dataSize / sizeof *out); break;
        case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION: *out = ordinal_of(&said.prefetched); break;
        case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE: *out = said.preferred.type; break;
        case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID: *out = id_of(&said.preferred); break;
        case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE: *out = said.prefetched.type; break;
        case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID: *out = id_of(&said.prefetched); break;
        default: return fail(CUDA_ERROR_INVALID_VALUE, "a range of memory has no attribute %d", (int)attribute);
    }
    return CUDA_SUCCESS;
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

/* Where to: a device that does not exist has a status of its own here. */
static CUresult check_place(const CUmemLocation *location) {
    if (location->type == CU_MEM_LOCATION_TYPE_DEVICE && (location->id < 0 || location->id >= device_count))
        return fail(CUDA_ERROR_INVALID_DEVICE, "there is no device %d: there are %d", location->id, device_count);
    return check_location(location);
}

static void take_prefetch(struct said *said, const void *location) {
    memcpy(&said->prefetched, location, sizeof said->prefetched);
}

static CUresult note_prefetch(const cpu_allocation *found, uint64_t address, size_t count, CUmemLocation location) {
    pthread_mutex_lock(&lock);
    struct advice *known = advice_of(found);
    bool fine = known && change_said(known, address, count, take_prefetch, &location);
    pthread_mutex_unlock(&lock);
    return fine ? CUDA_SUCCESS : no_memory("the advice");
}

CUresult cuMemPrefetchAsync(CUdeviceptr devPtr, size_t count, CUmemLocation location, unsigned int flags,
                            CUstream hStream) {
    CUstream stream;
    cpu_allocation found;
    RETURN_IF(enter_uncaptured("cuMemPrefetchAsync", hStream, &stream));
    if (flags) return fail(CUDA_ERROR_INVALID_VALUE, "flags must be 0, not %u", flags);
    RETURN_IF(check_range(devPtr, count, &found));
    RETURN_IF(check_place(&location));
    RETURN_IF(note_prefetch(&found, devPtr, count, location));
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
            RETURN_IF(check_place(&locations[i]));
            if (indices[i] >= count || (i == 0 ? indices[i] != 0 : indices[i] <= indices[i - 1]))
                return fail(CUDA_ERROR_INVALID_VALUE,
                            "prefetchLocIdxs must begin with 0, increase, and stay below count");
        }
    }
    for (size_t i = 0; i < count; i++) RETURN_IF(check_range(pointers[i], sizes[i], &found));
    for (size_t i = 0, at = 0; prefetch && i < count; i++) {
        while (at + 1 < location_count && indices[at + 1] <= i) at++;
        RETURN_IF(check_range(pointers[i], sizes[i], &found));
        RETURN_IF(note_prefetch(&found, pointers[i], sizes[i], locations[at]));
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
