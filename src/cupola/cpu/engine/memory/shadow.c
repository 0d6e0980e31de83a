/* Shadows: what is known of each word of memory. Those of global memory come into being with the first access. */
#include "shadow.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "memory.h"

enum { WORDS = 1 << (CPU_SHADOW_SHIFT - 2), PIECES = 1 << 12, TABLES = 1 << 15 };

/* By address: the high part names a table, the low one an entry. What is there stays. */
typedef _Atomic(cpu_shadow *) entry;
static _Atomic(entry *) tables[TABLES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void cpu_shadow_lay_out(cpu_shadow *shadow, void *memory, size_t words) {
    char *place = memory;
    for (int i = 0; i < RECORDS; i++) {
        shadow->records[i] = (cpu_record *)place;
        place += words * sizeof(cpu_record);
    }
    for (int i = 0; i < RECORDS; i++) {
        shadow->rows[i] = (cpu_record *)place;
        place += words / CPU_SHADOW_ROW * sizeof(cpu_record);
    }
    for (int i = 0; i < RECORDS; i++) {
        shadow->sites[i] = (uint16_t *)place;
        place += words * sizeof(uint16_t);
    }
    shadow->unset = (uint8_t *)place;
}

static void *pages(size_t bytes) {
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static entry *entry_of(uint64_t address, bool make) {
    const uint64_t piece = address >> CPU_SHADOW_SHIFT;
    if (piece / PIECES >= TABLES) return NULL;
    _Atomic(entry *) *slot = &tables[piece / PIECES];
    entry *table = atomic_load_explicit(slot, memory_order_acquire);
    if (!table && make) {
        pthread_mutex_lock(&lock);
        table = atomic_load(slot);
        if (!table && (table = calloc(PIECES, sizeof *table))) atomic_store_explicit(slot, table, memory_order_release);
        pthread_mutex_unlock(&lock);
    }
    return table ? &table[piece % PIECES] : NULL;
}

static const cpu_shadow *look(uint64_t address, bool make) {
    entry *place = entry_of(address, make);
    cpu_shadow *shadow = place ? atomic_load_explicit(place, memory_order_acquire) : NULL;
    if (shadow || !place || !make || !cpu_memory_owns(address)) return shadow;
    pthread_mutex_lock(&lock);
    shadow = atomic_load(place);
    void *memory = shadow ? NULL : pages((size_t)WORDS * CPU_SHADOW_BYTES);
    if (memory && (shadow = malloc(sizeof *shadow))) {
        cpu_shadow_lay_out(shadow, memory, WORDS);
        atomic_store_explicit(place, shadow, memory_order_release);
    }
    pthread_mutex_unlock(&lock);
    return shadow;
}

const cpu_shadow *cpu_shadow_of(uint64_t address) { return look(address, true); }

_Atomic bool cpu_shadow_tracks, cpu_shadow_remembers;
_Atomic uint64_t cpu_shadow_version;

/* ---- what was written, between launches --------------------------------------------------------------------------- */

static void mark(uint64_t address, uint64_t size, bool unset) {
    for (uint64_t end = address + size; address < end;) {
        const uint64_t piece_end = ((address >> CPU_SHADOW_SHIFT) + 1) << CPU_SHADOW_SHIFT;
        const uint64_t here = end < piece_end ? end : piece_end;
        const cpu_shadow *shadow = look(address, unset);
        if (!shadow) {
            address = here;
            continue;
        }
        uint64_t at = address & ((UINT64_C(1) << CPU_SHADOW_SHIFT) - 1), last = at + (here - address);
        for (; at < last && at & 3; at++)
            shadow->unset[at / 4] =
                (uint8_t)(unset ? shadow->unset[at / 4] | 1u << (at & 3) : shadow->unset[at / 4] & ~(1u << (at & 3)));
        if (last - at >= 4) memset(shadow->unset + at / 4, unset ? 15 : 0, (last - at) / 4);
        for (at += (last - at) / 4 * 4; at < last; at++)
            shadow->unset[at / 4] =
                (uint8_t)(unset ? shadow->unset[at / 4] | 1u << (at & 3) : shadow->unset[at / 4] & ~(1u << (at & 3)));
        address = here;
    }
}

void cpu_shadow_set_unset(uint64_t address, uint64_t size) {
    mark(address, size, true);
    atomic_fetch_add(&cpu_shadow_version, 1);
}

bool cpu_shadow_is_set(uint64_t address, uint64_t size) {
    for (const uint64_t end = address + size; address < end;) {
        const uint64_t piece_end = ((address >> CPU_SHADOW_SHIFT) + 1) << CPU_SHADOW_SHIFT;
        const uint64_t here = end < piece_end ? end : piece_end;
        const cpu_shadow *shadow = look(address, false);
        if (shadow) {
            const uint64_t word = (address & ((UINT64_C(1) << CPU_SHADOW_SHIFT) - 1)) / 4;
            uint64_t count = (here - (address & ~UINT64_C(3)) + 3) / 4;
            const uint8_t *unset = shadow->unset + word;
            uint64_t any = 0, eight;
            for (; count >= 8 && !any; count -= 8, unset += 8) {
                memcpy(&eight, unset, sizeof eight);
                any |= eight;
            }
            for (; count && !any; count--) any |= *unset++;
            if (any) return false;
        }
        address = here;
    }
    return true;
}

void cpu_shadow_set_written(uint64_t address, uint64_t size) { mark(address, size, false); }

void cpu_shadow_set_all_written(void) {
    for (int i = 0; i < TABLES; i++) {
        entry *table = atomic_load_explicit(&tables[i], memory_order_acquire);
        for (int k = 0; table && k < PIECES; k++) {
            const cpu_shadow *shadow = atomic_load_explicit(&table[k], memory_order_acquire);
            if (shadow && madvise(shadow->unset, WORDS, MADV_DONTNEED)) memset(shadow->unset, 0, WORDS);
        }
    }
}

/* The bytes of the word of an address that nobody has written. */
static uint8_t unset_at(uint64_t address) {
    const cpu_shadow *shadow = look(address, false);
    return shadow ? shadow->unset[(address & ((UINT64_C(1) << CPU_SHADOW_SHIFT) - 1)) / 4] : 0;
}

static bool is_unset(uint64_t address) { return unset_at(address) >> (address & 3) & 1; }

/* How many bytes from an address on surely are written: whole words, up to the end of a piece of the shadow. */
static uint64_t written_run(uint64_t address, uint64_t size) {
    const uint64_t at = address & ((UINT64_C(1) << CPU_SHADOW_SHIFT) - 1),
                   room = (UINT64_C(1) << CPU_SHADOW_SHIFT) - at;
    const uint64_t most = size < room ? size : room;
    const cpu_shadow *shadow = look(address, false);
    if (!shadow) return most;
    if (address & 3) return 0;
    uint64_t words = 0;
    while (words < most / 4 && !shadow->unset[at / 4 + words]) words++;
    return words * 4;
}

uint64_t cpu_shadow_first_unset(uint64_t address, uint64_t size, uint64_t *count) {
    uint64_t first = UINT64_MAX;
    *count = 0;
    for (uint64_t i = 0; i < size;) {
        const uint64_t run = written_run(address + i, size - i);
        if (run) {
            i += run;
            continue;
        }
        if (is_unset(address + i)) {
            if (first == UINT64_MAX) first = i;
            ++*count;
        }
        i++;
    }
    return first;
}

void cpu_shadow_copy(uint64_t target, uint64_t source, uint64_t size) {
    for (uint64_t i = 0; i < size;) {
        const uint64_t run = written_run(source + i, size - i);
        mark(target + i, run ? run : 1, run ? false : is_unset(source + i));
        i += run ? run : 1;
    }
}

/* Rows of which nothing is known. */
static void forget_rows(const cpu_shadow *shadow, uint64_t row, uint64_t count) {
    for (int i = 0; i < RECORDS; i++)
        for (uint64_t k = row; k < row + count; k++) __atomic_store_n(&shadow->rows[i][k], NOTHING, __ATOMIC_RELAXED);
}

static void forget_words(const cpu_shadow *shadow, uint64_t word, uint64_t count) {
    for (int i = 0; i < RECORDS; i++)
        for (uint64_t k = word; k < word + count; k++) {
            cpu_record *row = &shadow->rows[i][k / CPU_SHADOW_ROW];
            const cpu_record all = __atomic_load_n(row, __ATOMIC_RELAXED);
            if (all == NOTHING) continue;
            if (all) { /* it stands for all of the row, and goes with a part of it */
                __atomic_store_n(row, NOTHING, __ATOMIC_RELAXED);
                continue;
            }
            __atomic_store_n(&shadow->records[i][k], 0, __ATOMIC_RELAXED);
        }
}

void cpu_shadow_forget(uint64_t address, uint64_t size) {
    for (const uint64_t end = address + size; address < end;) {
        const uint64_t piece_end = ((address >> CPU_SHADOW_SHIFT) + 1) << CPU_SHADOW_SHIFT;
        const uint64_t here = end < piece_end ? end : piece_end;
        const cpu_shadow *shadow = look(address, false);
        if (shadow) {
            uint64_t word = (address & ((UINT64_C(1) << CPU_SHADOW_SHIFT) - 1)) / 4;
            const uint64_t last = word + (here - (address & ~UINT64_C(3)) + 3) / 4;
            const uint64_t first_row = (word + CPU_SHADOW_ROW - 1) / CPU_SHADOW_ROW, end_row = last / CPU_SHADOW_ROW;
            if (first_row >= end_row) {
                forget_words(shadow, word, last - word);
            } else {
                forget_words(shadow, word, first_row * CPU_SHADOW_ROW - word);
                forget_rows(shadow, first_row, end_row - first_row);
                forget_words(shadow, end_row * CPU_SHADOW_ROW, last - end_row * CPU_SHADOW_ROW);
            }
        }
        address = here;
    }
}
