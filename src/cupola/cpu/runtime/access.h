/* From the addresses of device code to host pointers, with every check. */
#ifndef CUPOLA_CPU_ACCESS_H
#define CUPOLA_CPU_ACCESS_H

#include "scheduler.h"

static inline cpu_site unpack_site(uint64_t packed) {
    return (cpu_site){(uint32_t)packed, (uint8_t)(packed >> 32), (uint8_t)(packed >> 40), (uint8_t)(packed >> 48),
                      (uint8_t)(packed >> 56)};
}

/* How machine code calls what may access memory. It says itself where shared memory and the site caches are, which the
 * context knows as well, so that the optimiser sees that the call may read and write both. */
#define CPU_ACCESS_ARGUMENTS                                                                                           \
    cpu_context *context, cpu_warp *warp, void *shared, cpu_site_cache *sites, uint64_t packed, uint32_t mask
#define CPU_ACCESS_ARGUMENTS_USED (void)shared, (void)sites;

struct cpu_allocation;

/* The allocation around [address, address + size), or the kind of fault that an access of it is. */
int cpu_find(const cpu_context *context, cpu_site site, uint64_t address, uint64_t size, struct cpu_allocation *found);

/* Keep an allocation in the site's cache; see cpu_site_cache. */
void cpu_remember(cpu_context *context, cpu_site site, uint64_t base, uint64_t size);

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

#endif
