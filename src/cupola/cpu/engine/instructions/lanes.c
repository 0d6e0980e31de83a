/* Loads and stores that machine code does not do by one instruction: lanes with any addresses, lanes at regular
 * distances, partial units, the first access of a site, and whatever a check refused.
 *
 * First all lanes are checked, which for most accesses is one comparison for each, or one for all. Only when that
 * fails is each lane looked at by itself, in ascending order, so that a fault names the first offending one. */
#include "access.h"

#include <string.h>

#include "engine/memory/memory.h"

typedef unsigned __int128 u128;

/* Where the lanes' elements are: lane i's at origin + addresses[i] + i * pitch. */
struct places {
    const uint64_t *addresses;
    uint64_t origin, pitch;
};

static uint32_t everyone(const cpu_context *context) { return UINT32_MAX >> (32 - context->width); }

/* These helpers are all that stands between machine code and its data, and comparing 64-bit numbers takes vector
 * instructions that not every x86-64 has: the loader picks the variant for the processor. */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define CPU_VARIANTS __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define CPU_VARIANTS
#endif

#define ALWAYS_INLINE static inline __attribute__((always_inline))

ALWAYS_INLINE bool lanes_inside(uint32_t width, uint32_t mask, uint32_t misaligned, const uint64_t *addresses,
                                uint64_t base, uint64_t valid) {
    uint64_t outside = 0;
    for (uint32_t i = 0; i < width; i++) {
        uint64_t wrong = (uint64_t)(addresses[i] - base >= valid) | (addresses[i] & misaligned);
        outside |= wrong & -(uint64_t)(mask >> i & 1);
    }
    return !outside;
}

/* Are the accesses of all lanes of the mask aligned and inside [base, base + size)? */
ALWAYS_INLINE bool all_inside(const cpu_context *context, cpu_site site, uint32_t mask, const uint64_t *addresses,
                              uint64_t base, uint64_t size) {
    if (size < site.size) return false;
    const uint64_t valid = size - site.size + 1;
    const uint32_t misaligned = site.size - 1u, width = context->width;
    if (width == CPU_WARP_THREADS) // a loop of known length
        return lanes_inside(CPU_WARP_THREADS, mask, misaligned, addresses, base, valid);
    return lanes_inside(width, mask, misaligned, addresses, base, valid);
}

/* Find the elements of the lanes of the mask; false after a fault. `resolved` has room for an address of each lane. */
ALWAYS_INLINE bool locate(cpu_context *context, const cpu_warp *warp, cpu_site site, uint32_t mask,
                          const uint64_t *addresses, uint64_t *resolved, struct places *places) {
    *places = (struct places){addresses, 0, 0};
    const cpu_site_cache *cache = &context->sites[site.index];
    switch (site.space) {
        case CPU_SPACE_SHARED:
            places->origin = (uint64_t)(uintptr_t)context->shared;
            if (all_inside(context, site, mask, addresses, 0, context->shared_size)) return true;
            break;
        case CPU_SPACE_LOCAL:
            places->origin = (uint64_t)(uintptr_t)warp->local;
            places->pitch = context->local_size;
            if (all_inside(context, site, mask, addresses, 0, context->local_size)) return true;
            break;
        default:
            if (all_inside(context, site, mask, addresses, cache->base, cache->size)) return true;
            uint64_t start = addresses[__builtin_ctz(mask)] >> CPU_RANK_SHIFT << CPU_RANK_SHIFT;
            uint64_t window = place_in_window(context, site, start, 0);
            if (window && all_inside(context, site, mask, addresses, start, context->shared_size)) {
                places->origin = window - start;
                return true;
            }
    }
    for (uint32_t left = mask; left; left &= left - 1) {
        int lane = __builtin_ctz(left);
        void *element = cpu_resolve(context, warp, lane, site, addresses[lane]);
        if (!element) return false;
        resolved[lane] = (uint64_t)(uintptr_t)element;
    }
    *places = (struct places){resolved, 0, 0};
    return true;
}

/* One element of a kernel's data. Loads and stores that are volatile, relaxed, or stronger come here, too, and threads
 * of other blocks may do the same at the same time: each access is one for the compiler as well.
 * C has none of 16 bytes. */
#define ELEMENT(TYPE)                                                                                                  \
    static inline TYPE get_##TYPE(const TYPE *element) { return __atomic_load_n(element, __ATOMIC_RELAXED); }          \
    static inline void put_##TYPE(TYPE *element, TYPE value) { __atomic_store_n(element, value, __ATOMIC_RELAXED); }
ELEMENT(uint8_t)
ELEMENT(uint16_t)
ELEMENT(uint32_t)
ELEMENT(uint64_t)
static inline u128 get_u128(const u128 *element) { return *element; }
static inline void put_u128(u128 *element, u128 value) { *element = value; }

/* Do COPY for each lane of the mask, with `element` pointing to its first element. The loop over all lanes has no
 * test, and the one element of most accesses no loop. */
#define FOR_LANES(TYPE, PLACE, COPY)                                                                                   \
    if (mask == everyone(context) && count == 1) {                                                                     \
        const uint32_t i = 0;                                                                                          \
        for (uint32_t lane = 0; lane < width; lane++) {                                                                \
            TYPE *element = (TYPE *)(uintptr_t)(PLACE);                                                                \
            COPY;                                                                                                      \
        }                                                                                                              \
        return 0;                                                                                                      \
    }                                                                                                                  \
    if (count == 1) {                                                                                                  \
        const uint32_t i = 0;                                                                                          \
        for (; mask; mask &= mask - 1) {                                                                               \
            const uint32_t lane = (uint32_t)__builtin_ctz(mask);                                                       \
            TYPE *element = (TYPE *)(uintptr_t)(PLACE);                                                                \
            COPY;                                                                                                      \
        }                                                                                                              \
        return 0;                                                                                                      \
    }                                                                                                                  \
    for (; mask; mask &= mask - 1) {                                                                                   \
        const uint32_t lane = (uint32_t)__builtin_ctz(mask);                                                           \
        TYPE *element = (TYPE *)(uintptr_t)(PLACE);                                                                    \
        for (uint32_t i = 0; i < count; i++) COPY;                                                                     \
    }                                                                                                                  \
    return 0;

#define LOAD(TYPE, PLACE) FOR_LANES(const TYPE, PLACE, ((TYPE *)elements)[i * width + lane] = get_##TYPE(element + i))
#define STORE(TYPE, PLACE) FOR_LANES(TYPE, PLACE, put_##TYPE(element + i, ((const TYPE *)elements)[i * width + lane]))

#define BY_SIZE(DIRECTION, PLACE)                                                                                      \
    switch (site.element) {                                                                                            \
    case 1: DIRECTION(uint8_t, PLACE)                                                                                  \
    case 2: DIRECTION(uint16_t, PLACE)                                                                                 \
    case 4: DIRECTION(uint32_t, PLACE)                                                                                 \
    case 8: DIRECTION(uint64_t, PLACE)                                                                                 \
    default: DIRECTION(u128, PLACE)                                                                                    \
    }

#define SCATTERED (places.origin + places.addresses[lane] + lane * places.pitch)
#define ON_LINE (start + lane * step)

/* Load for each lane of the mask; `elements` receives, for each element of the access, an array with one of each
 * lane. Returns nonzero on a fault. */
CPU_HELPER CPU_VARIANTS uint32_t cupola_load(CPU_ACCESS_ARGUMENTS, const uint64_t *addresses, void *elements) {
    CPU_ACCESS_ARGUMENTS_USED
    const cpu_site site = unpack_site(packed);
    const uint32_t width = context->width, count = site.size / site.element;
    uint64_t resolved[CPU_WARP_THREADS];
    struct places places;
    if (!locate(context, warp, site, mask, addresses, resolved, &places)) return 1;
    BY_SIZE(LOAD, SCATTERED)
}

CPU_HELPER CPU_VARIANTS uint32_t cupola_store(CPU_ACCESS_ARGUMENTS, const uint64_t *addresses, const void *elements) {
    CPU_ACCESS_ARGUMENTS_USED
    const cpu_site site = unpack_site(packed);
    const uint32_t width = context->width, count = site.size / site.element;
    uint64_t resolved[CPU_WARP_THREADS];
    struct places places;
    if (!locate(context, warp, site, mask, addresses, resolved, &places)) return 1;
    BY_SIZE(STORE, SCATTERED)
}

/* ---- lines: lane i accesses base + i * step ----------------------------------------------------------------------- */

/* The host address of lane 0 (which may lie outside) when the accesses of the first and of the last lane of the mask
 * are aligned and inside one allocation, or in shared memory, so that all are; else 0. */
static uint64_t whole_line(cpu_context *context, cpu_site site, uint32_t mask, uint64_t base, uint64_t step) {
    uint64_t one = base + (uint64_t)__builtin_ctz(mask) * step;
    uint64_t other = base + (uint64_t)(31 - __builtin_clz(mask)) * step;
    uint64_t low = (int64_t)step < 0 ? other : one, span = ((int64_t)step < 0 ? one : other) - low + site.size;
    if ((base | step) & (site.size - 1u)) return 0;
    if (site.space == CPU_SPACE_SHARED) {
        if (low > context->shared_size || context->shared_size - low < span) return 0;
        return (uint64_t)(uintptr_t)context->shared + base;
    }
    const cpu_site_cache *cache = &context->sites[site.index];
    uint64_t offset = low - cache->base;
    if (offset < cache->size && cache->size - offset >= span) return base;
    uint64_t window = place_in_window(context, site, low, span);
    if (window) return window + (base - low);
    cpu_allocation found;
    if (cpu_find(context, site, low, span, &found)) return 0;
    if (found.kind != CPU_MEMORY_HEAP) cpu_remember(context, site, &found);
    return base;
}

/* The addresses of a line, for the helpers above. Offsets in shared memory have 32 bits. */
static void line_up(uint64_t *addresses, cpu_site site, uint64_t base, uint64_t step, uint32_t width) {
    const uint64_t bits = site.space == CPU_SPACE_SHARED ? UINT32_MAX : UINT64_MAX;
    for (uint32_t i = 0; i < width; i++) addresses[i] = (base + i * step) & bits;
}

/* May a line's elements be copied as one piece of memory, parts of which memcpy may write twice? ThreadSanitizer takes
 * each by itself: it would report the copy of a piece that threads of several blocks use at once, and what brings them
 * in order is machine code, which it does not see. */
static bool is_piece(cpu_site site, uint32_t mask, uint64_t step) {
#ifdef __SANITIZE_THREAD__
    return (void)site, (void)mask, (void)step, false;
#endif
    mask >>= __builtin_ctz(mask);
    return site.size == site.element && step == site.size && !(mask & (mask + 1)) && !(site.flags & CPU_SITE_STRONG);
}

CPU_HELPER CPU_VARIANTS uint32_t cupola_load_line(CPU_ACCESS_ARGUMENTS, uint64_t base, uint64_t step, void *elements) {
    const cpu_site site = unpack_site(packed);
    const uint32_t width = context->width, count = site.size / site.element;
    const uint64_t start = whole_line(context, site, mask, base, step);
    if (!start) {
        uint64_t addresses[CPU_WARP_THREADS];
        line_up(addresses, site, base, step, width);
        return cupola_load(context, warp, shared, sites, packed, mask, addresses, elements);
    }
    if (is_piece(site, mask, step)) {
        size_t skipped = (size_t)__builtin_ctz(mask) * site.size;
        memcpy((uint8_t *)elements + skipped, (const uint8_t *)(uintptr_t)start + skipped,
               (size_t)__builtin_popcount(mask) * site.size);
        return 0;
    }
    BY_SIZE(LOAD, ON_LINE)
}

CPU_HELPER CPU_VARIANTS uint32_t cupola_store_line(CPU_ACCESS_ARGUMENTS, uint64_t base, uint64_t step,
                                                   const void *elements) {
    const cpu_site site = unpack_site(packed);
    const uint32_t width = context->width, count = site.size / site.element;
    const uint64_t start = whole_line(context, site, mask, base, step);
    if (!start) {
        uint64_t addresses[CPU_WARP_THREADS];
        line_up(addresses, site, base, step, width);
        return cupola_store(context, warp, shared, sites, packed, mask, addresses, elements);
    }
    if (is_piece(site, mask, step)) {
        size_t skipped = (size_t)__builtin_ctz(mask) * site.size;
        memcpy((uint8_t *)(uintptr_t)start + skipped, (const uint8_t *)elements + skipped,
               (size_t)__builtin_popcount(mask) * site.size);
        return 0;
    }
    BY_SIZE(STORE, ON_LINE)
}

CPU_HELPER uint32_t cupola_load_wrapping_line(CPU_ACCESS_ARGUMENTS, uint64_t base, uint64_t step, uint64_t narrow,
                                              uint64_t kind, uint64_t scale, void *elements) {
    uint64_t addresses[CPU_WARP_THREADS];
    if (cpu_lanes_stay_on_line(addresses, base, step, narrow, kind, scale, context->width))
        return cupola_load_line(context, warp, shared, sites, packed, mask, base, step, elements);
    return cupola_load(context, warp, shared, sites, packed, mask, addresses, elements);
}

CPU_HELPER uint32_t cupola_store_wrapping_line(CPU_ACCESS_ARGUMENTS, uint64_t base, uint64_t step, uint64_t narrow,
                                               uint64_t kind, uint64_t scale, const void *elements) {
    uint64_t addresses[CPU_WARP_THREADS];
    if (cpu_lanes_stay_on_line(addresses, base, step, narrow, kind, scale, context->width))
        return cupola_store_line(context, warp, shared, sites, packed, mask, base, step, elements);
    return cupola_store(context, warp, shared, sites, packed, mask, addresses, elements);
}

/* ---- several places at constant distances (emit/memory/fetches.py) ---------------------------------------------  */

/* Load one element from each of `count` places, whose sites are numbered in sequence; `out` receives them at the same
 * distances. Returns nonzero on a fault. */
CPU_HELPER uint32_t cupola_load_places(CPU_ACCESS_ARGUMENTS, uint64_t first, const uint32_t *offsets, uint32_t count,
                                       uint8_t *out) {
    CPU_ACCESS_ARGUMENTS_USED
    for (uint32_t i = 0; i < count; i++) {
        const cpu_site site = unpack_site(packed + i);
        const void *element = cpu_resolve(context, warp, __builtin_ctz(mask), site, first + offsets[i]);
        if (!element) return 1;
        memcpy(out + offsets[i], element, site.size);
    }
    return 0;
}

/* The same for lines, which `out` receives at the same distances and a pitch more for each; for those whose lanes may
 * have wrapped, `kind` is not zero. */
CPU_HELPER uint32_t cupola_load_lines(CPU_ACCESS_ARGUMENTS, uint64_t base, uint64_t step, uint64_t narrow,
                                      uint64_t kind, uint64_t scale, const uint32_t *offsets, uint32_t count,
                                      uint8_t *out, uint64_t pitch) {
    for (uint32_t i = 0; i < count; i++) {
        uint8_t *elements = out + offsets[i] + i * pitch;
        const uint64_t start = base + offsets[i];
        uint32_t failed = kind
                              ? cupola_load_wrapping_line(context, warp, shared, sites, packed + i, mask, start, step,
                                                          narrow, kind, scale, elements)
                              : cupola_load_line(context, warp, shared, sites, packed + i, mask, start, step, elements);
        if (failed) return 1;
    }
    return 0;
}
