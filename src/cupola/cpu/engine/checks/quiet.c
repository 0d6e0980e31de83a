/* Accesses that need not be told while a launch runs, since nothing can be wrong with them: reads of memory that nobody
 * writes meanwhile, and, as for reads of what nobody has written, accesses to memory that is written all over.
 *
 * The compiler has sorted accesses by the parameters that their addresses come from (cupola.cpu.compiler.passes.pointers).
 * An address that comes from a pointer is taken to be in the pointer's allocation. */
#include "checks.h"

#include <pthread.h>
#include <string.h>

#include "engine/memory/memory.h"
#include "host.h"

enum { MOST_WRITTEN = 64, KNOWN = 64, KNOWS_WRITES = 1 /* of Pointers.flat() */ };

/* The allocations of one set of parameters. */
struct set {
    const uint32_t *offsets;
    uint32_t count;
    bool writes;
};

static bool allocation_of(const cpu_launch *launch, uint32_t offset, cpu_allocation *allocation) {
    uint64_t address;
    if (offset + sizeof address > launch->param_bytes) return false;
    memcpy(&address, (const char *)launch->params + offset, sizeof address);
    return cpu_memory_find(address, allocation);
}

static bool next_set(const cpu_variant *variant, uint32_t *at, struct set *set) {
    if (*at + 2 > variant->pointer_count) return false;
    *set = (struct set){variant->pointers + *at + 2, variant->pointers[*at + 1], variant->pointers[*at]};
    *at += 2 + set->count;
    return *at <= variant->pointer_count;
}

/* ---- memory that is written all over --------------------------------------------------------------------------------- */

/* What was found to be so stays so until memory is allocated. */
static struct {
    uint64_t base, size, version;
} known[KNOWN];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool is_all_set(const cpu_allocation *allocation) {
    const uint64_t version = atomic_load(&cpu_shadow_version);
    const size_t place = (allocation->base >> 9) * UINT64_C(0x9E3779B97F4A7C15) >> 58;
    pthread_mutex_lock(&lock);
    const bool hit = known[place].base == allocation->base && known[place].size == allocation->size &&
                     known[place].version == version;
    pthread_mutex_unlock(&lock);
    if (hit) return true;
    if (!cpu_shadow_is_set(allocation->base, allocation->size)) return false;
    pthread_mutex_lock(&lock);
    known[place].base = allocation->base;
    known[place].size = allocation->size;
    known[place].version = version;
    pthread_mutex_unlock(&lock);
    return true;
}

/* ---- a launch -------------------------------------------------------------------------------------------------------- */

uint64_t cpu_quiet_of(const cpu_launch *launch, bool alone) {
    const cpu_variant *variant = launch->variant;
    uint64_t written[MOST_WRITTEN], quiet = 0;
    uint32_t count = 0, at = 1;
    struct set set;
    cpu_allocation allocation;
    if (!variant->pointer_count) return 0;
    const bool races = variant->checks & CPU_CHECK_RACE, inits = variant->checks & CPU_CHECK_INIT;
    bool may_read = alone && variant->pointers[0] & KNOWS_WRITES;
    while (may_read && next_set(variant, &at, &set))
        for (uint32_t i = 0; set.writes && i < set.count; i++) {
            if (!allocation_of(launch, set.offsets[i], &allocation)) continue;
            if (count == MOST_WRITTEN) may_read = false;
            else written[count++] = allocation.base;
        }
    if (races && !may_read) return 0;
    at = 1;
    for (uint32_t number = 0; next_set(variant, &at, &set); number++) {
        bool fine = !(races && set.writes), any = false;
        for (uint32_t i = 0; fine && i < set.count; i++) {
            if (!allocation_of(launch, set.offsets[i], &allocation)) continue;
            any = true;
            if (races) fine = !cpu_host_is_at(allocation.base); /* which may write there meanwhile */
            for (uint32_t k = 0; races && k < count; k++) fine &= written[k] != allocation.base;
            if (inits) fine = fine && is_all_set(&allocation);
        }
        if (fine && any) quiet |= UINT64_C(1) << number;
    }
    return quiet;
}
