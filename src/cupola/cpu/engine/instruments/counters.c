/* What an access to memory costs on a GPU, counted for a warp (compiler/emit/instruments/counters.py).
 *
 * Global memory is moved in sectors of 32 bytes: a request takes all that its threads touch. Shared memory has 32 banks
 * of 4 bytes, each of which gives one word at a time; wide accesses are done by parts of the warp. Atomic operations of threads on one address are done one after the other. */
#include <string.h>

#include "engine/running.h"

enum {
    GLOBAL_REQUESTS,
    GLOBAL_THREADS,
    SECTORS,
    LEAST_SECTORS,
    SHARED_REQUESTS,
    SHARED_THREADS,
    WAVEFRONTS,
    LEAST_WAVEFRONTS,
    SAME_ADDRESS,
    SLOTS
}; /* the same in counters.py */
enum { SECTOR = 32, BANKS = 32, WORD = 4 };

/* Adds a number to a set, whose size it returns. */
static unsigned put(uint64_t *set, unsigned size, uint64_t number) {
    for (unsigned i = size; i--;)
        if (set[i] == number) return size;
    set[size] = number;
    return size + 1;
}

static unsigned count_sectors(uint32_t lanes, const uint64_t *addresses, unsigned size) {
    uint64_t set[CPU_WARP_THREADS * 2];
    unsigned count = 0;
    for (uint32_t left = lanes; left; left &= left - 1) {
        uint64_t first = addresses[__builtin_ctz(left)], last = first + size - 1;
        count = put(set, count, first / SECTOR);
        if (last / SECTOR != first / SECTOR) count = put(set, count, last / SECTOR);
    }
    return count;
}

/* How many sectors would do for as many different places. */
static unsigned least_sectors(uint32_t lanes, const uint64_t *addresses, unsigned size) {
    uint64_t set[CPU_WARP_THREADS];
    unsigned count = 0;
    for (uint32_t left = lanes; left; left &= left - 1) count = put(set, count, addresses[__builtin_ctz(left)]);
    return (count * size + SECTOR - 1) / SECTOR;
}

/* An atomic operation at one place is done for one thread after another, as an H200 does: a sector counts as often as the
 * place in it that most threads want. Where all threads want the same one, NVIDIA's assembler adds their values first. */
static unsigned atomic_sectors(uint32_t lanes, const uint64_t *addresses) {
    uint64_t places[CPU_WARP_THREADS], sectors[CPU_WARP_THREADS];
    unsigned wanted[CPU_WARP_THREADS] = {0}, most[CPU_WARP_THREADS] = {0}, place_count = 0, sector_count = 0, total = 0;
    for (uint32_t left = lanes; left; left &= left - 1) {
        uint64_t address = addresses[__builtin_ctz(left)];
        unsigned place = 0, sector = 0;
        place_count = put(places, place_count, address);
        sector_count = put(sectors, sector_count, address / SECTOR);
        while (places[place] != address) place++;
        while (sectors[sector] != address / SECTOR) sector++;
        if (++wanted[place] > most[sector]) most[sector] = wanted[place];
    }
    if (place_count == 1) return 1;
    for (unsigned i = 0; i < sector_count; i++) total += most[i];
    return total;
}

/* The most words that any bank has to give, and how many rounds would do for as many words in the best case. */
static unsigned count_words(uint32_t lanes, const uint64_t *addresses, unsigned size, unsigned *least) {
    uint64_t set[CPU_WARP_THREADS * 4];
    unsigned count = 0, most = 0, used[BANKS] = {0};
    for (uint32_t left = lanes; left; left &= left - 1) {
        uint64_t first = addresses[__builtin_ctz(left)] / WORD;
        for (unsigned word = 0; word < (size + WORD - 1) / WORD; word++) {
            unsigned before = count;
            count = put(set, count, first + word);
            if (count == before) continue;
            unsigned here = ++used[(first + word) % BANKS];
            if (most < here) most = here;
        }
    }
    *least = (count + BANKS - 1) / BANKS;
    return most;
}

/* Parts of the warp whose accesses are done together, one after the other: what a round moves is 128 bytes of a store, and
 * 256 bytes of a load, which may give the same word to several threads (recorded on an H200, tools/ncu_counts.py). */
static unsigned count_wavefronts(uint32_t lanes, const uint64_t *addresses, unsigned size, bool is_store,
                                 unsigned *least) {
    unsigned limit = is_store ? WORD : 2 * WORD;
    unsigned parts = size <= limit ? 1 : size <= 2 * limit ? 2 : 4, count = 0, best;
    *least = 0;
    for (unsigned part = 0; part < parts; part++) {
        unsigned width = CPU_WARP_THREADS / parts;
        uint32_t here = lanes & (uint32_t)(((UINT64_C(1) << width) - 1) << part * width);
        count += count_words(here, addresses, size, &best);
        *least += is_store ? here != 0 : best;
    }
    return count;
}

/* How many threads want the address that most want. */
static unsigned count_same(uint32_t lanes, const uint64_t *addresses) {
    unsigned most = 0;
    for (uint32_t left = lanes; left; left &= left - 1) {
        unsigned same = 0;
        for (uint32_t other = left; other; other &= other - 1)
            same += addresses[__builtin_ctz(other)] == addresses[__builtin_ctz(left)];
        if (most < same) most = same;
    }
    return most;
}

/* The counters of the access begin at `place`. `what`: the bytes of a lane, the space in bits 8 to 15 (enum cpu_space, or
 * CPU_SITE_GENERIC), in bit 16 whether it is an atomic operation, and in bit 17 whether it stores. Local memory and constants are not counted. */
CPU_HELPER void cupola_count_access(cpu_context *context, cpu_warp *warp, uint32_t lanes, const uint64_t *addresses,
                                    uint32_t what, uint64_t place) {
    uint64_t *counters = context->counters + place;
    unsigned size = what & 0xFF, space = what >> 8 & 0xFF, threads = (unsigned)__builtin_popcount(lanes), least;
    const bool is_atomic = what >> 16 & 1, is_store = what >> 17 & 1;
    (void)warp;
    if (!lanes) return;
    if (space ==
        CPU_SITE_GENERIC) { /* all lanes of one request are of one space, in most programs: the first says which */
        uint64_t high = addresses[__builtin_ctz(lanes)] >> 32;
        space = high == CPU_SHARED_WINDOW >> 32  ? CPU_SPACE_SHARED
                : high == CPU_LOCAL_WINDOW >> 32 ? CPU_SPACE_LOCAL
                                                 : CPU_SPACE_GLOBAL;
    }
    if (space == CPU_SPACE_GLOBAL) {
        counters[GLOBAL_REQUESTS]++;
        counters[GLOBAL_THREADS] += threads;
        unsigned sectors = count_sectors(lanes, addresses, size), needed = least_sectors(lanes, addresses, size);
        unsigned again = is_atomic ? atomic_sectors(lanes, addresses) - sectors : 0; /* no other layout saves these */
        counters[SECTORS] += sectors + again;
        counters[LEAST_SECTORS] += needed + again;
    } else if (space == CPU_SPACE_SHARED) {
        counters[SHARED_REQUESTS]++;
        counters[SHARED_THREADS] += threads;
        counters[WAVEFRONTS] += count_wavefronts(lanes, addresses, size, is_store, &least);
        counters[LEAST_WAVEFRONTS] += least;
    }
    if (is_atomic) counters[SAME_ADDRESS] += count_same(lanes, addresses);
}
