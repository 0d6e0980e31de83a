/* From the addresses of device code to host pointers, with every check. */
#ifndef CUPOLA_CPU_ACCESS_H
#define CUPOLA_CPU_ACCESS_H

#include "scheduler.h"

static inline cpu_site unpack_site(uint64_t packed) {
    return (cpu_site){(uint32_t)packed, (uint8_t)(packed >> 32), (uint8_t)(packed >> 40), (uint8_t)(packed >> 48),
                      (uint8_t)(packed >> 56)};
}

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
