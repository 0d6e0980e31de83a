/* Memory accesses that machine code does not do itself: lanes with scattered addresses, partial warps, the first
 * access of a site, and whatever a check refused. Each lane is checked, in ascending order, so a fault names the
 * first offending one.
 *
 * An address is in one of these spaces (PTX ISA, "State Spaces"): global memory, constants and parameters are
 * host addresses, found in the table of allocations; shared memory is an offset in the block's window; local
 * memory is an offset in the thread's own. A generic address may be any of them, told apart by the windows of
 * engine.h. */
#include "access.h"

#include <string.h>

#include "memory.h"

enum { WINDOW_SHIFT = 32 };

static void *refuse(cpu_context *context, const cpu_warp *warp, int lane, int kind, cpu_site site, uint64_t address) {
    cpu_fault_raise_access(context, warp, lane, kind, site, address);
    return NULL;
}

/* The allocation around [address, address + size), or the kind of fault that an access of it is. */
static int find(const cpu_context *context, cpu_site site, uint64_t address, uint64_t size, cpu_allocation *found) {
    const cpu_launch *launch = context->job->launch;
    if (!cpu_memory_find(address, found) || found->size - (address - found->base) < size)
        return CPU_FAULT_OUT_OF_BOUNDS;
    if (__builtin_expect(found->device == launch->device, 1)) return CPU_FAULT_NONE;
    return cpu_driver_permits(launch, found, site.flags & CPU_SITE_WRITE) ? CPU_FAULT_NONE : CPU_FAULT_NO_ACCESS;
}

/* Remember the allocation; see cpu_site_cache. */
static void remember(cpu_context *context, cpu_site site, uint64_t base, uint64_t size) {
    cpu_site_cache *cache = &context->sites[site.index];
    cache->base = base;
    cache->size = size;
    uint64_t low = (base + site.size - 1) & ~(uint64_t)(site.size - 1), skipped = low - base;
    uint64_t width = site.flags & CPU_SITE_CONTIGUOUS ? (uint64_t)context->width * site.size : site.size;
    cache->low = low;
    cache->limit = size >= skipped + width ? (size - skipped - width) / site.size + 1 : 0;
}

void *cpu_resolve(cpu_context *context, const cpu_warp *warp, int lane, cpu_site site, uint64_t address) {
    uint8_t space = site.space;
    uint64_t offset = address;
    if (space != CPU_SPACE_SHARED && space != CPU_SPACE_LOCAL) {
        uint64_t window = address >> WINDOW_SHIFT << WINDOW_SHIFT;
        if (space == CPU_SITE_GENERIC && window == CPU_SHARED_WINDOW) space = CPU_SPACE_SHARED;
        if (space == CPU_SITE_GENERIC && window == CPU_LOCAL_WINDOW) space = CPU_SPACE_LOCAL;
        if (space != site.space) {
            offset = address - window;
            site.space = space;
        }
    }
    if (address & (site.size - 1u)) return refuse(context, warp, lane, CPU_FAULT_MISALIGNED, site, address);
    if (space == CPU_SPACE_SHARED) {
        if (offset >= context->shared_size || context->shared_size - offset < site.size)
            return refuse(context, warp, lane, CPU_FAULT_OUT_OF_BOUNDS, site, offset);
        return context->shared + offset;
    }
    if (space == CPU_SPACE_LOCAL) {
        if (offset >= context->local_size || context->local_size - offset < site.size)
            return refuse(context, warp, lane, CPU_FAULT_OUT_OF_BOUNDS, site, offset);
        return warp->local + (size_t)lane * context->local_size + offset;
    }
    if (address - context->params < context->param_bytes) {
        if (context->param_bytes - (address - context->params) < site.size || site.flags & CPU_SITE_WRITE)
            return refuse(context, warp, lane, CPU_FAULT_OUT_OF_BOUNDS, site, address);
        return (void *)(uintptr_t)address;
    }
    cpu_allocation found;
    int fault = find(context, site, address, site.size, &found);
    if (fault) return refuse(context, warp, lane, fault, site, address);
    remember(context, site, found.base, found.size);
    return (void *)(uintptr_t)address;
}

/* ---- called by machine code --------------------------------------------------------------------------------- */

/* A uniform access: the host address, or NULL on a fault of the first lane in the mask. For a contiguous site the
 * access of all lanes is what is checked by machine code; this answers for the one at `address` only. */
CPU_HELPER void *cupola_resolve(cpu_context *context, cpu_warp *warp, uint64_t site, uint32_t mask,
                                uint64_t address) {
    return cpu_resolve(context, warp, __builtin_ctz(mask), unpack_site(site), address);
}

/* Are the accesses of the lanes of the mask, at offset + lane * step in shared memory, inside? Nonzero on a fault. */
CPU_HELPER uint32_t cupola_check(cpu_context *context, cpu_warp *warp, uint64_t packed, uint32_t mask, uint32_t offset,
                                 uint32_t step) {
    const cpu_site site = unpack_site(packed);
    for (; mask; mask &= mask - 1) {
        int lane = __builtin_ctz(mask);
        if (!cpu_resolve(context, warp, lane, site, offset + (uint32_t)lane * step)) return 1;
    }
    return 0;
}

/* Load for each lane of the mask; out holds an array of `width` elements for each element of the access. Returns
 * nonzero on a fault. */
#define LOAD_LANES(TYPE)                                                                                               \
    for (; mask; mask &= mask - 1) {                                                                                   \
        int lane = __builtin_ctz(mask);                                                                                \
        const TYPE *source = cpu_resolve_cached(context, warp, lane, site, addresses[lane]);                           \
        if (!source) return 1;                                                                                         \
        for (uint32_t i = 0; i < count; i++) ((TYPE *)out)[i * width + (uint32_t)lane] = source[i];                    \
    }                                                                                                                  \
    return 0;

#define STORE_LANES(TYPE)                                                                                              \
    for (; mask; mask &= mask - 1) {                                                                                   \
        int lane = __builtin_ctz(mask);                                                                                \
        TYPE *target = cpu_resolve_cached(context, warp, lane, site, addresses[lane]);                                 \
        if (!target) return 1;                                                                                         \
        for (uint32_t i = 0; i < count; i++) target[i] = ((const TYPE *)values)[i * width + (uint32_t)lane];           \
    }                                                                                                                  \
    return 0;

typedef unsigned __int128 u128;

CPU_HELPER uint32_t cupola_load(cpu_context *context, cpu_warp *warp, uint64_t packed, uint32_t mask,
                                const uint64_t *addresses, void *out) {
    const cpu_site site = unpack_site(packed);
    const uint32_t width = context->width, count = site.size / site.element;
    switch (site.element) {
    case 1: LOAD_LANES(uint8_t)
    case 2: LOAD_LANES(uint16_t)
    case 4: LOAD_LANES(uint32_t)
    case 8: LOAD_LANES(uint64_t)
    default: LOAD_LANES(u128)
    }
}

CPU_HELPER uint32_t cupola_store(cpu_context *context, cpu_warp *warp, uint64_t packed, uint32_t mask,
                                 const uint64_t *addresses, const void *values) {
    const cpu_site site = unpack_site(packed);
    const uint32_t width = context->width, count = site.size / site.element;
    switch (site.element) {
    case 1: STORE_LANES(uint8_t)
    case 2: STORE_LANES(uint16_t)
    case 4: STORE_LANES(uint32_t)
    case 8: STORE_LANES(uint64_t)
    default: STORE_LANES(u128)
    }
}

/* ---- rows: lane i accesses base + i * size ----------------------------------------------------------------------- */

/* The host address of lane 0 (which may lie outside) when everything from the first to the last lane of the mask is
 * aligned and within one allocation, or in shared memory; else NULL. */
static uint8_t *whole_row(cpu_context *context, cpu_site site, uint32_t mask, uint64_t base) {
    uint64_t first = base + (uint64_t)__builtin_ctz(mask) * site.size;
    uint64_t span = (uint64_t)(32 - __builtin_clz(mask) - __builtin_ctz(mask)) * site.size;
    if (base & (site.size - 1u)) return NULL;
    if (site.space == CPU_SPACE_SHARED) {
        if (first > context->shared_size || context->shared_size - first < span) return NULL;
        return context->shared + base;
    }
    const cpu_site_cache *cache = &context->sites[site.index];
    uint64_t offset = first - cache->base;
    if (offset < cache->size && cache->size - offset >= span) return (uint8_t *)(uintptr_t)base;
    cpu_allocation found;
    if (find(context, site, first, span, &found)) return NULL;
    remember(context, site, found.base, found.size);
    return (uint8_t *)(uintptr_t)base;
}

/* The lanes of the mask without a gap between them? */
static bool is_run(uint32_t mask) {
    mask >>= __builtin_ctz(mask);
    return !(mask & (mask + 1));
}

#define ROW(TYPE, COPY)                                                                                                \
    for (; mask; mask &= mask - 1) {                                                                                   \
        uint32_t lane = (uint32_t)__builtin_ctz(mask);                                                                 \
        TYPE *element = (TYPE *)row + lane * count;                                                                    \
        for (uint32_t i = 0; i < count; i++) COPY;                                                                     \
    }                                                                                                                  \
    return 0;

static void line_up(uint64_t *addresses, uint64_t base, uint64_t step, uint32_t width) {
    for (uint32_t i = 0; i < width; i++) addresses[i] = base + i * step;
}

/* Load for each lane of the mask from a row of elements; `out` as for cupola_load. */
CPU_HELPER uint32_t cupola_load_row(cpu_context *context, cpu_warp *warp, uint64_t packed, uint32_t mask, uint64_t base,
                                    void *out, uint8_t *shared) {
    const cpu_site site = unpack_site(packed);
    const uint32_t width = context->width, count = site.size / site.element;
    const uint8_t *row = whole_row(context, site, mask, base);
    (void)shared; /* an argument, so that the optimiser knows what is read and written */
    if (!row) {
        uint64_t addresses[CPU_WARP_THREADS];
        line_up(addresses, base, site.size, width);
        return cupola_load(context, warp, packed, mask, addresses, out);
    }
    if (count == 1 && is_run(mask)) {
        size_t skipped = (size_t)__builtin_ctz(mask) * site.size;
        memcpy((uint8_t *)out + skipped, row + skipped, (size_t)__builtin_popcount(mask) * site.size);
        return 0;
    }
    switch (site.element) {
    case 1: ROW(const uint8_t, ((uint8_t *)out)[i * width + lane] = element[i])
    case 2: ROW(const uint16_t, ((uint16_t *)out)[i * width + lane] = element[i])
    case 4: ROW(const uint32_t, ((uint32_t *)out)[i * width + lane] = element[i])
    case 8: ROW(const uint64_t, ((uint64_t *)out)[i * width + lane] = element[i])
    default: ROW(const u128, ((u128 *)out)[i * width + lane] = element[i])
    }
}

CPU_HELPER uint32_t cupola_store_row(cpu_context *context, cpu_warp *warp, uint64_t packed, uint32_t mask, uint64_t base,
                                     const void *values, uint8_t *shared) {
    const cpu_site site = unpack_site(packed);
    const uint32_t width = context->width, count = site.size / site.element;
    uint8_t *row = whole_row(context, site, mask, base);
    (void)shared;
    if (!row) {
        uint64_t addresses[CPU_WARP_THREADS];
        line_up(addresses, base, site.size, width);
        return cupola_store(context, warp, packed, mask, addresses, values);
    }
    if (count == 1 && is_run(mask)) {
        size_t skipped = (size_t)__builtin_ctz(mask) * site.size;
        memcpy(row + skipped, (const uint8_t *)values + skipped, (size_t)__builtin_popcount(mask) * site.size);
        return 0;
    }
    switch (site.element) {
    case 1: ROW(uint8_t, element[i] = ((const uint8_t *)values)[i * width + lane])
    case 2: ROW(uint16_t, element[i] = ((const uint16_t *)values)[i * width + lane])
    case 4: ROW(uint32_t, element[i] = ((const uint32_t *)values)[i * width + lane])
    case 8: ROW(uint64_t, element[i] = ((const uint64_t *)values)[i * width + lane])
    default: ROW(u128, element[i] = ((const u128 *)values)[i * width + lane])
    }
}

/* The same for shared memory, where the addresses are offsets and one comparison is the whole check. */
#define SHARED_LANES(TYPE, COPY)                                                                                       \
    for (; mask; mask &= mask - 1) {                                                                                   \
        uint32_t lane = (uint32_t)__builtin_ctz(mask);                                                                 \
        uint64_t offset = offsets[lane];                                                                               \
        if (__builtin_expect(offset > last || offset & (site.size - 1u), 0)) {                                         \
            if (!cpu_resolve(context, warp, (int)lane, site, offset)) return 1;                                        \
        }                                                                                                              \
        TYPE *element = (TYPE *)(shared + offset);                                                                     \
        for (uint32_t i = 0; i < count; i++) COPY;                                                                     \
    }                                                                                                                  \
    return 0;

CPU_HELPER uint32_t cupola_load_shared(cpu_context *context, cpu_warp *warp, uint64_t packed, uint32_t mask,
                                       const uint64_t *offsets, void *out, uint8_t *shared) {
    const cpu_site site = unpack_site(packed);
    const uint32_t width = context->width, count = site.size / site.element;
    if (context->shared_size < site.size) return !cpu_resolve(context, warp, __builtin_ctz(mask), site, UINT64_MAX / 32);
    const uint64_t last = context->shared_size - site.size;
    switch (site.element) {
    case 1: SHARED_LANES(uint8_t, ((uint8_t *)out)[i * width + lane] = element[i])
    case 2: SHARED_LANES(uint16_t, ((uint16_t *)out)[i * width + lane] = element[i])
    case 4: SHARED_LANES(uint32_t, ((uint32_t *)out)[i * width + lane] = element[i])
    case 8: SHARED_LANES(uint64_t, ((uint64_t *)out)[i * width + lane] = element[i])
    default: SHARED_LANES(u128, ((u128 *)out)[i * width + lane] = element[i])
    }
}

CPU_HELPER uint32_t cupola_store_shared(cpu_context *context, cpu_warp *warp, uint64_t packed, uint32_t mask,
                                        const uint64_t *offsets, const void *values, uint8_t *shared) {
    const cpu_site site = unpack_site(packed);
    const uint32_t width = context->width, count = site.size / site.element;
    if (context->shared_size < site.size) return !cpu_resolve(context, warp, __builtin_ctz(mask), site, UINT64_MAX / 32);
    const uint64_t last = context->shared_size - site.size;
    switch (site.element) {
    case 1: SHARED_LANES(uint8_t, element[i] = ((const uint8_t *)values)[i * width + lane])
    case 2: SHARED_LANES(uint16_t, element[i] = ((const uint16_t *)values)[i * width + lane])
    case 4: SHARED_LANES(uint32_t, element[i] = ((const uint32_t *)values)[i * width + lane])
    case 8: SHARED_LANES(uint64_t, element[i] = ((const uint64_t *)values)[i * width + lane])
    default: SHARED_LANES(u128, element[i] = ((const u128 *)values)[i * width + lane])
    }
}

/* The next basic block for the independent body to run: the lowest one from `start` on, then from the beginning,
 * that has threads other than those which found there that they must wait. `frame` begins with a mask for each
 * block, followed by the mask of the threads that were waiting when the block was last tried. Returns the number
 * of blocks when no thread can go on. */
CPU_HELPER uint32_t cupola_next_block(cpu_warp *warp, uint32_t *frame, uint32_t count, uint32_t start) {
    uint32_t *waiting = frame + count;
    if (warp->seen != warp->mask) { /* threads have exited: others may not wait for them any more */
        warp->seen = warp->mask;
        memset(waiting, 0, count * sizeof *waiting);
    }
    for (uint32_t i = start; i < count; i++)
        if (frame[i] && frame[i] != waiting[i]) return i;
    for (uint32_t i = 0; i < start && i < count; i++)
        if (frame[i] && frame[i] != waiting[i]) return i;
    return count;
}
