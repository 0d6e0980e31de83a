/* Ranges are in an array sorted by address, under a sequence lock: a reader looks again when a writer was
 * at work meanwhile, and blocks no other thread. */
#include "ranges.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

static struct {
    pthread_mutex_t lock; /* among writers */
    uint32_t sequence;    /* odd while a writer moves entries */
    uint32_t count, capacity;
    cpu_allocation *entries; /* an outgrown array is left to its readers */
} ranges = {.lock = PTHREAD_MUTEX_INITIALIZER};

enum { GONE = 64 };
static cpu_allocation gone[GONE]; /* the last that were removed, for the diagnosis of late accesses; with the lock */
static uint32_t gone_count;

#define load(p) __atomic_load_n(p, __ATOMIC_ACQUIRE)
#define store(p, v) __atomic_store_n(p, v, __ATOMIC_RELEASE)

/* Number of ranges that begin at or before an address. */
static uint32_t count_until(const cpu_allocation *entries, uint32_t count, uint64_t address) {
    uint32_t low = 0, high = count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (entries[middle].base <= address) low = middle + 1;
        else high = middle;
    }
    return low;
}

int ranges_near(uint64_t address, uint32_t next, cpu_allocation *found) {
    for (;;) {
        uint32_t before = load(&ranges.sequence);
        if (before & 1) {
            sched_yield();
            continue;
        }
        /* The count is read before the array, which only grows: it never exceeds the array that is read. */
        uint32_t count = load(&ranges.count);
        const cpu_allocation *entries = load(&ranges.entries);
        uint32_t index = count_until(entries, count, address) + next;
        int hit = index > 0 && index <= count;
        if (hit) *found = entries[index - 1];
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        if (load(&ranges.sequence) == before) return hit;
    }
}

/* A place for one more entry. With the lock. */
static int grow(void) {
    if (ranges.count < ranges.capacity) return 1;
    uint32_t capacity = ranges.capacity ? ranges.capacity * 2 : 64;
    cpu_allocation *entries = malloc(capacity * sizeof *entries);
    if (entries == NULL) return 0;
    if (ranges.count) memcpy(entries, ranges.entries, ranges.count * sizeof *entries);
    store(&ranges.entries, entries);
    ranges.capacity = capacity;
    return 1;
}

static void begin_change(void) {
    store(&ranges.sequence, ranges.sequence + 1);
    __atomic_thread_fence(__ATOMIC_RELEASE);
}

static void end_change(void) { store(&ranges.sequence, ranges.sequence + 1); }

int ranges_add(const cpu_allocation *range) {
    int status = CPU_MEMORY_OK;
    pthread_mutex_lock(&ranges.lock);
    uint32_t at = count_until(ranges.entries, ranges.count, range->base);
    if ((at > 0 && range->base - ranges.entries[at - 1].base < ranges.entries[at - 1].size) ||
        (at < ranges.count && ranges.entries[at].base - range->base < range->size)) {
        status = CPU_MEMORY_OVERLAPS;
    } else if (!grow()) {
        status = CPU_MEMORY_HOST_FULL;
    } else {
        cpu_allocation *place = ranges.entries + at;
        begin_change();
        memmove(place + 1, place, (ranges.count - at) * sizeof *place);
        *place = *range;
        store(&ranges.count, ranges.count + 1);
        end_change();
    }
    pthread_mutex_unlock(&ranges.lock);
    return status;
}

/* The range that begins at an address. With the lock. */
static cpu_allocation *beginning_at(uint64_t base) {
    uint32_t at = count_until(ranges.entries, ranges.count, base);
    return at > 0 && ranges.entries[at - 1].base == base ? &ranges.entries[at - 1] : NULL;
}

int ranges_remove(uint64_t base) {
    pthread_mutex_lock(&ranges.lock);
    cpu_allocation *place = beginning_at(base);
    if (place) {
        cpu_allocation *kept = &gone[gone_count++ % GONE];
        *kept = *place;
        kept->freed = 1;
        begin_change();
        memmove(place, place + 1, (size_t)(ranges.entries + ranges.count - place - 1) * sizeof *place);
        store(&ranges.count, ranges.count - 1);
        end_change();
    }
    pthread_mutex_unlock(&ranges.lock);
    return place ? CPU_MEMORY_OK : CPU_MEMORY_UNKNOWN;
}

void ranges_set_flags(uint64_t base, uint32_t flags) {
    pthread_mutex_lock(&ranges.lock);
    cpu_allocation *place = beginning_at(base);
    if (place) store(&place->flags, flags);
    pthread_mutex_unlock(&ranges.lock);
}

void ranges_set_lines(uint64_t base, uint32_t allocated_at, uint32_t freed_at) {
    pthread_mutex_lock(&ranges.lock);
    cpu_allocation *place = beginning_at(base);
    if (place && allocated_at) store(&place->allocated_at, allocated_at);
    if (place && freed_at) store(&place->freed_at, freed_at);
    pthread_mutex_unlock(&ranges.lock);
}

int ranges_gone(uint64_t address, cpu_allocation *found) {
    int hit = 0;
    pthread_mutex_lock(&ranges.lock);
    for (uint32_t i = 0; i < GONE; i++) { /* ids count up: the last one is told */
        if (address - gone[i].base >= gone[i].size || (hit && gone[i].id < found->id)) continue;
        *found = gone[i];
        hit = 1;
    }
    pthread_mutex_unlock(&ranges.lock);
    return hit;
}
