/* From the addresses of device code to host pointers, with every check. */
#ifndef CUPOLA_CPU_ACCESS_H
#define CUPOLA_CPU_ACCESS_H

#include "engine/fault/fault.h"
#include "engine/running.h"

/* How machine code calls what may access memory. It says itself where shared memory and the site caches are, which the
 * context knows as well, so that the optimizer sees that the call may read and write both. */
#define CPU_ACCESS_ARGUMENTS                                                                                           \
    cpu_context *context, cpu_warp *warp, void *shared, cpu_site_cache *sites, uint64_t packed, uint32_t mask
#define CPU_ACCESS_ARGUMENTS_USED (void)shared, (void)sites;

/* The host address of a generic address in the shared memory of a block of the cluster, whose range of `span` bytes is
 * all inside; else 0. */
static inline uint64_t place_in_window(const cpu_context *context, cpu_site site, uint64_t address, uint64_t span) {
    if (site.space != CPU_SITE_GENERIC || address >> 32 != CPU_SHARED_WINDOW >> 32) return 0;
    const cpu_cluster *cluster = context->block->cluster;
    uint32_t named = (uint32_t)address >> CPU_RANK_SHIFT, offset = (uint32_t)address & ((1u << CPU_RANK_SHIFT) - 1);
    if (named > cluster->size || offset > context->shared_size || context->shared_size - offset < span) return 0;
    const cpu_block *block = named ? cluster->blocks[named - 1] : context->block;
    return block->live ? (uint64_t)(uintptr_t)(block->shared + offset) : 0;
}

struct cpu_allocation;

/* The allocation around [address, address + size), or the kind of fault that an access of it is. */
int cpu_find(const cpu_context *context, cpu_site site, uint64_t address, uint64_t size, struct cpu_allocation *found);

/* Keep an allocation, in which the site may do what it does, in the site's cache; see cpu_site_cache. */
void cpu_remember(cpu_context *context, cpu_site site, const struct cpu_allocation *found);

/* The host address of an access by one lane, or NULL after a fault was raised. Remembers the allocation at the
 * site. Handles every space, and generic addresses. */
void *cpu_resolve(cpu_context *context, const cpu_warp *warp, int lane, cpu_site site, uint64_t address);

/* The same, when the site's last allocation is likely to be the right one. */
static inline void *cpu_resolve_cached(cpu_context *context, const cpu_warp *warp, int lane, cpu_site site,
                                       uint64_t address) {
    const cpu_site_cache *cache = &context->sites[site.index];
    uint64_t offset = address - cache->base;
    if (__builtin_expect(offset < cache->size && cache->size - offset >= site.size && !(address & (site.size - 1u)), 1))
        return (void *)(uintptr_t)address;
    return cpu_resolve(context, warp, lane, site, address);
}

/* As cpu_resolve, for any range of bytes, whose address must be a multiple of `alignment`. In a cluster, `owner`
 * receives the block whose shared memory it is; NULL: other memory. Leaves the site's cache as it is. */
void *cpu_resolve_range(cpu_context *context, const cpu_warp *warp, int lane, cpu_site site, uint64_t address,
                        uint64_t size, uint32_t alignment, const cpu_block **owner);

/* The generic address of the same place in the shared memory of the block with a rank. */
static inline uint64_t address_in_rank(uint64_t address, uint32_t rank) {
    return (address & ~(UINT64_C(0xFF) << CPU_RANK_SHIFT)) | (uint64_t)(rank + 1) << CPU_RANK_SHIFT;
}

#endif
