/* The address of one lane to a host pointer, or to a fault.
 *
 * An address is in one of these spaces (PTX ISA, "State Spaces"): global memory, constants and parameters are
 * host addresses, found in the table of allocations; shared memory is an offset in the block's window; local
 * memory is an offset in the thread's own. A generic address may be any of them, told apart by the windows of
 * engine.h; it may also be in the shared memory of another block of the cluster, which shared::cluster addresses are
 * treated as. */
#include "access.h"

#include <stdio.h>
#include <string.h>

#include "engine/above.h"
#include "engine/memory/memory.h"

enum { WINDOW_SHIFT = 32 };

static bool is_permitted(const cpu_context *context, const cpu_allocation *found, bool is_write) {
    const cpu_launch *launch = context->job->launch;
    if (__builtin_expect(found->device == launch->device && !(found->flags & CPU_MEMORY_RESTRICTED), 1)) return true;
    return cpu_driver_permits(launch, found, is_write);
}

int cpu_find(const cpu_context *context, cpu_site site, uint64_t address, uint64_t size, cpu_allocation *found) {
    if (!cpu_memory_find(address, found) || found->size - (address - found->base) < size)
        return CPU_FAULT_OUT_OF_BOUNDS;
    return is_permitted(context, found, site.flags & CPU_SITE_WRITE) ? CPU_FAULT_NONE : CPU_FAULT_NO_ACCESS;
}

void cpu_remember(cpu_context *context, cpu_site site, const cpu_allocation *found) {
    if (site.flags & CPU_SITE_FOR_STORES && !is_permitted(context, found, true)) return;
    cpu_site_cache *cache = &context->sites[site.index];
    const uint64_t base = found->base, size = found->size;
    cache->base = base;
    cache->size = size;
    uint64_t low = (base + site.size - 1) & ~(uint64_t)(site.size - 1), skipped = low - base;
    uint64_t width = site.flags & CPU_SITE_CONTIGUOUS ? (uint64_t)context->width * site.size : site.size;
    cache->low = low;
    cache->limit = size >= skipped + width ? (size - skipped - width) / site.size + 1 : 0;
}

/* An access under examination. */
struct access {
    cpu_context *context;
    const cpu_warp *warp;
    int lane;
    cpu_site site;
    uint64_t size;
};

static void *refuse(const struct access *access, int kind, uint8_t space, uint64_t address, const char *details) {
    cpu_site site = access->site;
    site.space = space;
    cpu_fault_raise_access(access->context, access->warp, access->lane, kind, site, address, access->size, details);
    return NULL;
}

/* Shared memory of another block of the cluster, or of this one by its rank. */
static void *in_cluster(const struct access *access, uint32_t address, const cpu_block **owner) {
    const cpu_block *self = access->context->block;
    const cpu_cluster *cluster = self->cluster;
    uint32_t rank = (address >> CPU_RANK_SHIFT) - 1, offset = address & ((1u << CPU_RANK_SHIFT) - 1);
    char details[160];
    if (rank >= cluster->size) {
        snprintf(details, sizeof details, "it is the shared memory of a block with rank %u, in a cluster of %u block%s",
                 rank, cluster->size, cluster->size > 1 ? "s" : "");
        return refuse(access, CPU_FAULT_OUT_OF_BOUNDS, CPU_SPACE_SHARED, offset, details);
    }
    const cpu_block *block = *owner = cluster->blocks[rank];
    uint32_t limit = access->context->shared_size;
    if (offset >= limit || limit - offset < access->size) {
        snprintf(details, sizeof details,
                 "it is the shared memory of block (%u, %u, %u), rank %u of the cluster, of which there are %u bytes",
                 block->ctaid[0], block->ctaid[1], block->ctaid[2], rank, limit);
        return refuse(access, CPU_FAULT_OUT_OF_BOUNDS, CPU_SPACE_SHARED, offset, details);
    }
    if (!block->live) {
        snprintf(details, sizeof details,
                 "it is the shared memory of block (%u, %u, %u), rank %u of the cluster, which has exited: let all "
                 "blocks meet at the cluster's barrier before one ends",
                 block->ctaid[0], block->ctaid[1], block->ctaid[2], rank);
        return refuse(access, CPU_FAULT_OUT_OF_BOUNDS, CPU_SPACE_SHARED, offset, details);
    }
    return block->shared + offset;
}

/* With `found`, an allocation that the address is in is left there. */
static void *resolve(const struct access *access, uint64_t address, uint32_t alignment, const cpu_block **owner,
                     cpu_allocation *found) {
    const cpu_context *context = access->context;
    const cpu_site site = access->site;
    uint64_t size = access->size, offset = address;
    uint8_t space = site.space;
    if (space == CPU_SITE_GENERIC) {
        uint64_t window = address >> WINDOW_SHIFT << WINDOW_SHIFT;
        if (window == CPU_SHARED_WINDOW || window == CPU_LOCAL_WINDOW) {
            space = window == CPU_SHARED_WINDOW ? CPU_SPACE_SHARED : CPU_SPACE_LOCAL;
            offset = address - window;
        }
    }
    if (address & (alignment - 1u)) return refuse(access, CPU_FAULT_MISALIGNED, space, offset, NULL);
    if (space == CPU_SPACE_SHARED) {
        if (site.space == CPU_SITE_GENERIC && offset >> CPU_RANK_SHIFT)
            return in_cluster(access, (uint32_t)offset, owner);
        if (offset >= context->shared_size || context->shared_size - offset < size)
            return refuse(access, CPU_FAULT_OUT_OF_BOUNDS, space, offset, NULL);
        *owner = context->block;
        return context->shared + offset;
    }
    if (space == CPU_SPACE_LOCAL) {
        if (offset >= context->local_size || context->local_size - offset < size)
            return refuse(access, CPU_FAULT_OUT_OF_BOUNDS, space, offset, NULL);
        return access->warp->local + (size_t)access->lane * context->local_size + offset;
    }
    if (address - context->params < context->param_bytes) {
        if (context->param_bytes - (address - context->params) < size || site.flags & CPU_SITE_WRITE)
            return refuse(access, CPU_FAULT_OUT_OF_BOUNDS, space, address, NULL);
        return (void *)(uintptr_t)address;
    }
    int fault = cpu_find(context, site, address, size, found);
    if (!fault) return (void *)(uintptr_t)address;
    char lost[64] = "";
    if (fault == CPU_FAULT_NO_ACCESS && cpu_driver_lacks(found->device))
        snprintf(lost, sizeof lost, "it is memory of device %d, which is lost", found->device);
    return refuse(access, fault, space, address, lost[0] ? lost : NULL);
}

void *cpu_resolve_range(cpu_context *context, const cpu_warp *warp, int lane, cpu_site site, uint64_t address,
                        uint64_t size, uint32_t alignment, const cpu_block **owner) {
    cpu_allocation found;
    *owner = NULL;
    return resolve(&(struct access){context, warp, lane, site, size}, address, alignment, owner, &found);
}

void *cpu_resolve(cpu_context *context, const cpu_warp *warp, int lane, cpu_site site, uint64_t address) {
    cpu_allocation found = {.size = 0};
    const cpu_block *owner;
    const uint32_t wanted = site.size - site.element * (site.flags >> CPU_SITE_UNUSED_SHIFT);
    void *place = resolve(&(struct access){context, warp, lane, site, wanted}, address, site.size, &owner, &found);
    if (place && found.size && found.kind != CPU_MEMORY_HEAP) cpu_remember(context, site, &found);
    return place;
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

/* The same for several accesses at constant distances from `offset`: pairs of a packed site and its distance. */
CPU_HELPER uint32_t cupola_check_all(cpu_context *context, cpu_warp *warp, uint32_t mask, uint32_t offset,
                                     uint32_t step, const uint64_t (*checks)[2], uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        if (cupola_check(context, warp, checks[i][0], mask, offset + (uint32_t)checks[i][1], step)) return 1;
    return 0;
}

/* The same for lanes at any distances from there. */
CPU_HELPER uint32_t cupola_check_places(cpu_context *context, cpu_warp *warp, uint32_t mask, uint32_t offset,
                                        const uint32_t *distances, const uint64_t (*checks)[2], uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t rest = mask; rest; rest &= rest - 1) {
            int lane = __builtin_ctz(rest);
            const uint32_t address = offset + (uint32_t)checks[i][1] + distances[lane];
            if (!cpu_resolve(context, warp, lane, unpack_site(checks[i][0]), address)) return 1;
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
