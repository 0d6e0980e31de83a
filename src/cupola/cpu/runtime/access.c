/* The address of one lane to a host pointer, or to a fault.
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

int cpu_find(const cpu_context *context, cpu_site site, uint64_t address, uint64_t size, cpu_allocation *found) {
    const cpu_launch *launch = context->job->launch;
    if (!cpu_memory_find(address, found) || found->size - (address - found->base) < size)
        return CPU_FAULT_OUT_OF_BOUNDS;
    if (__builtin_expect(found->device == launch->device, 1)) return CPU_FAULT_NONE;
    return cpu_driver_permits(launch, found, site.flags & CPU_SITE_WRITE) ? CPU_FAULT_NONE : CPU_FAULT_NO_ACCESS;
}

void cpu_remember(cpu_context *context, cpu_site site, uint64_t base, uint64_t size) {
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
    int fault = cpu_find(context, site, address, site.size, &found);
    if (fault) return refuse(context, warp, lane, fault, site, address);
    cpu_remember(context, site, found.base, found.size);
    return (void *)(uintptr_t)address;
}

/* ---- called by machine code --------------------------------------------------------------------------------- */

/* A uniform access: the host address, or NULL on a fault of the first lane in the mask. */
CPU_HELPER void *cupola_resolve(CPU_ACCESS_ARGUMENTS, uint64_t address) {
    CPU_ACCESS_ARGUMENTS_USED
    return cpu_resolve(context, warp, __builtin_ctz(mask), unpack_site(packed), address);
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
