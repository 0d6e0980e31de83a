/* An access to memory, and the words that it is to: what words.c and watch.c share. */
#ifndef CUPOLA_CPU_CHECKS_ACCESS_H
#define CUPOLA_CPU_CHECKS_ACCESS_H

#include "checks.h"
#include "rows.h"

enum {
    KIND = 3,
    ACQUIRES = 4,
    RELEASES = 8,
    ORDERS = 16 /* the kernel has fences or releases */,
    COPIES = 32 /* only to put it elsewhere */
}; /* bits of `kind` */

struct access {
    const cpu_context *context;
    const cpu_warp *warp;
    struct cpu_watch *watch;
    cpu_site site;
    uint32_t kind;
    bool writes;
};

/* A word of some memory. */
struct place {
    const cpu_shadow *shadow;
    uint64_t index;
    uint64_t address;        /* as it is told */
    struct cpu_watch *owner; /* of the block whose shared memory it is; NULL: none's */
    uint8_t space;
};

/* Records of a row's words, where one stands for all of them (words.c). */
void cpu_access_unroll_row(const cpu_shadow *shadow, uint64_t row, int which, cpu_record all);
/* An access happens to a word, of which nothing is wrong. */
void cpu_access_note(const struct access *access, uint32_t lane, uint32_t bytes, const struct place *place);
/* Look at each lane, tell what is wrong, and note them. */
void cpu_access_lanes(const struct access *access, uint32_t mask, const uint64_t *addresses);

static inline void unroll(const cpu_shadow *shadow, uint64_t index, int which) {
    const uint64_t row = index / CPU_SHADOW_ROW;
    const cpu_record all = load(&shadow->rows[which][row]);
    if (unlikely(all)) cpu_access_unroll_row(shadow, row, which, all);
}

/* Where an address leads; false: to none that is looked at. */
static inline bool find(const struct access *access, uint32_t lane, uint64_t address, struct place *place) {
    const cpu_context *context = access->context;
    uint8_t space = access->site.space;
    struct cpu_watch *owner = access->watch;
    place->address = address;
    if (space == CPU_SITE_GENERIC) {
        const uint64_t window = address >> 32 << 32;
        space = window == CPU_SHARED_WINDOW  ? CPU_SPACE_SHARED
                : window == CPU_LOCAL_WINDOW ? CPU_SPACE_LOCAL
                                             : CPU_SPACE_GLOBAL;
        if (space != CPU_SPACE_GLOBAL) address -= window;
    }
    place->space = space;
    place->owner = NULL;
    if (space == CPU_SPACE_SHARED) {
        const uint32_t named = (uint32_t)address >> CPU_RANK_SHIFT;
        if (named) {
            if (named > context->block->cluster->size) return false;
            owner = context->block->cluster->blocks[named - 1]->watch;
            address &= (1u << CPU_RANK_SHIFT) - 1;
        }
        place->address = address;
        place->index = (uint32_t)address / 4;
        place->owner = owner;
        if (!owner || place->index >= owner->shared_words) return false;
        place->shadow = &owner->shared;
        return true;
    }
    if (space == CPU_SPACE_LOCAL) {
        const uint32_t words = (context->local_size + 3) / 4;
        place->address = (uint32_t)address;
        place->index = (uint32_t)address / 4;
        if (place->index >= words || !owner->local_words) return false;
        place->index += (uint64_t)(access->warp->first + lane) * words;
        place->shadow = &owner->local;
        return true;
    }
    if (space != CPU_SPACE_GLOBAL) return false; /* constants and parameters */
    place->shadow = cpu_shadow_of(address);
    place->index = (address & ((UINT64_C(1) << CPU_SHADOW_SHIFT) - 1)) / 4;
    return place->shadow != NULL;
}

static inline uint32_t bytes_of(uint64_t address, uint32_t size) {
    return size >= 4 ? 15 : ((1u << size) - 1) << (address & 3) & 15;
}

static inline void note_written(const struct cpu_watch *watch, struct cpu_watch *owner) {
    if (owner) owner->written = watch == owner && owner->written != UINT32_MAX ? watch->now : UINT32_MAX;
}

/* Bytes of a word are written. Another worker may write others of them at the same time. */
static inline void note_set(uint8_t *unset, uint32_t bytes) {
    if (likely(!(load(unset) & bytes))) return;
    if (bytes == 15) store(unset, 0);
    else __atomic_fetch_and(unset, (uint8_t)~bytes, __ATOMIC_RELAXED);
}

#endif
