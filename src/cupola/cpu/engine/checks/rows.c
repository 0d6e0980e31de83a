/* Loops over records. Other workers may change those of global memory at the same time, each as a whole: then one of them
 * is lost, and with it perhaps a race that the next run shows. */
#include "rows.h"

#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define VARIANTS __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define VARIANTS
#endif
#ifdef __SANITIZE_THREAD__
#define RACES __attribute__((no_sanitize_thread))
#else
#define RACES
#endif

enum { MOST = 128 }; /* words: 32 lanes with 16 bytes each */

/* All ones where the record is harmless, and where it is of others. */
static inline uint64_t harmless_bits(int64_t low, int64_t high, int64_t own, int64_t known, uint64_t r, uint64_t mine,
                                     uint64_t *others) {
    const int64_t n = (int64_t)r;
    const uint64_t other = -(uint64_t)(n < low) | -(uint64_t)(n >= high);
    const uint64_t is_known = -(uint64_t)(n >= own) & -(uint64_t)(n < known);
    const uint64_t same = -(uint64_t)(((r ^ mine) & THREAD_OF) == 0), copy = -(uint64_t)((r & 0x30) == 0x30);
    *others = other;
    return other | ((is_known | same) & ~copy);
}

RACES VARIANTS unsigned cpu_rows_survey(const struct limits *limits, const cpu_record *records, cpu_record mine,
                                        uint32_t count, uint32_t shift) {
    const int64_t low = limits->low, high = limits->high, own = limits->own, known = limits->known;
    uint64_t harmless = UINT64_MAX, others = UINT64_MAX;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t other;
        harmless &= harmless_bits(low, high, own, known, records[i], mine + ((uint64_t)(i >> shift) << 6), &other);
        others &= other;
    }
    return (harmless ? 1 : 0) | (others ? 2 : 0);
}

RACES VARIANTS bool cpu_rows_are_read(const struct limits *limits, const cpu_record *first, const cpu_record *second,
                                      uint32_t count) {
    const int64_t known = limits->known, end = limits->own + (INT64_C(1) << 32);
    uint64_t all = UINT64_MAX;
    for (uint32_t i = 0; i < count; i++) {
        const int64_t one = (int64_t)first[i], two = (int64_t)second[i];
        const uint64_t apart = (first[i] ^ second[i]) >> WARP_SHIFT & WARPS;
        all &= -(uint64_t)(one >= known) & -(uint64_t)(one < end) & -(uint64_t)(two >= known) & -(uint64_t)(two < end) &
               -(uint64_t)(apart != 0);
    }
    return all;
}

RACES VARIANTS void cpu_rows_fill(cpu_record *records, uint16_t *sites, cpu_record mine, uint16_t site, uint32_t count,
                                  uint32_t shift) {
    for (uint32_t i = 0; i < count; i++) records[i] = mine + ((uint64_t)(i >> shift) << 6);
    for (uint32_t i = 0; i < count; i++) sites[i] = site;
}

RACES VARIANTS void cpu_rows_note_reads(const struct limits *limits, const cpu_shadow *shadow, uint64_t index,
                                        cpu_record mine, uint16_t site, uint32_t count, uint32_t shift) {
    const int64_t low = limits->low, high = limits->high, own = limits->own, known = limits->known;
    cpu_record *restrict first = shadow->records[READ] + index, *restrict second = shadow->records[READ_TOO] + index;
    uint16_t *restrict first_site = shadow->sites[READ] + index, *restrict second_site =
                                                                     shadow->sites[READ_TOO] + index;
    uint64_t free[MOST];
    if (count > MOST) count = MOST;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t other;
        const uint64_t me = mine + ((uint64_t)(i >> shift) << 6);
        const uint64_t is_free = harmless_bits(low, high, own, known, first[i], me, &other);
        free[i] = is_free;
        first[i] = (first[i] & ~is_free) | (me & is_free);
        second[i] = (second[i] & is_free) | (me & ~is_free);
    }
    for (uint32_t i = 0; i < count; i++) {
        const uint16_t is_free = (uint16_t)free[i];
        first_site[i] = (uint16_t)((first_site[i] & ~is_free) | (site & is_free));
        second_site[i] = (uint16_t)((second_site[i] & is_free) | (site & ~is_free));
    }
}
