/* Accesses to memory, as machine code tells them. Most have nothing wrong with them, which is seen at a glance: those of lanes
 * that are neighbors in memory, plain ones to the block's shared memory, and small ones anywhere. words.c looks at the others. */
#include "access.h"

#include <string.h>

#include "common/common.h"

/* ---- rows: lane i accesses the i-th of words that follow each other --------------------------------------------------- */

/* What the words of a row, or a part of one, say of a slot, and the record in their place. */
struct slot {
    const cpu_shadow *shadow;
    uint64_t index;
    uint32_t count, shift;
    int which;
};

/* 1: harmless, 2: of other launches. */
static unsigned survey_slot(const struct limits *limits, const struct slot *slot, cpu_record mine, bool is_row) {
    cpu_record *row = &slot->shadow->rows[slot->which][slot->index / CPU_SHADOW_ROW];
    const cpu_record all = load(row);
    if (all && is_row) return (unsigned)is_harmless(limits, all, mine) | (unsigned)is_of_others(limits, all) << 1;
    if (all) { /* and the words are in two rows perhaps */
        const cpu_record next =
            load(row + ((slot->index + slot->count - 1) / CPU_SHADOW_ROW > slot->index / CPU_SHADOW_ROW));
        if (next && is_of_others(limits, all) && is_of_others(limits, next)) return 3;
    }
    for (uint64_t i = slot->index / CPU_SHADOW_ROW; !is_row && i <= (slot->index + slot->count - 1) / CPU_SHADOW_ROW;
         i++)
        unroll(slot->shadow, i * CPU_SHADOW_ROW, slot->which);
    const cpu_record *records = slot->shadow->records[slot->which] + slot->index;
    if (slot->count == 1) return (unsigned)is_harmless(limits, *records, mine);
    const unsigned result = cpu_rows_survey(limits, records, mine, slot->count, slot->shift);
    if (is_row && result & 2) store(row, NOTHING); /* to be seen at a glance the next time */
    return result;
}

static void set_slot(const struct slot *slot, cpu_record mine, uint16_t site, bool is_row, bool as_row) {
    cpu_record *row = &slot->shadow->rows[slot->which][slot->index / CPU_SHADOW_ROW];
    uint16_t *sites = slot->shadow->sites[slot->which] + slot->index;
    for (uint64_t i = slot->index / CPU_SHADOW_ROW; !is_row && i <= (slot->index + slot->count - 1) / CPU_SHADOW_ROW;
         i++)
        unroll(slot->shadow, i * CPU_SHADOW_ROW, slot->which);
    if (as_row || *row) {
        store(row, mine);
        store(sites, site);
        return;
    }
    cpu_rows_fill(slot->shadow->records[slot->which] + slot->index, sites, mine, site, slot->count, slot->shift);
}

static void clear_slot(const struct limits *limits, const struct slot *slot, bool is_row) {
    cpu_record *row = &slot->shadow->rows[slot->which][slot->index / CPU_SHADOW_ROW];
    if (is_row) {
        if (*row != NOTHING) store(row, NOTHING);
        return;
    }
    (void)limits;
    for (uint64_t i = slot->index / CPU_SHADOW_ROW; i <= (slot->index + slot->count - 1) / CPU_SHADOW_ROW; i++) {
        const cpu_record all = slot->shadow->rows[slot->which][i];
        if (all && all != NOTHING) unroll(slot->shadow, i * CPU_SHADOW_ROW, slot->which);
    }
    if (*row == NOTHING && slot->index % CPU_SHADOW_ROW + slot->count <= CPU_SHADOW_ROW) return;
    cpu_record *records = slot->shadow->records[slot->which] + slot->index, any = 0;
    for (uint32_t i = 0; i < slot->count; i++) any |= records[i];
    if (any) memset(records, 0, slot->count * sizeof *records);
}

/* The usual access of a row: nothing is wrong, and that is seen at a glance. False: look at each lane. */
static bool any_unset(const uint8_t *unset, uint32_t count) {
    uint64_t any = 0, eight;
    for (; count >= 8; count -= 8, unset += 8) {
        memcpy(&eight, unset, sizeof eight);
        any |= eight;
    }
    for (uint32_t i = 0; i < count; i++) any |= unset[i];
    return any;
}

static struct limits limits_of(const struct cpu_watch *watch, bool in_shared) {
    const int64_t begin = in_shared ? watch->id - watch->rank : watch->low, own = (int64_t)watch->id << 32;
    const int64_t end = in_shared       ? begin + watch->cluster_size
                        : watch->moment ? INT32_MAX /* what has begun meanwhile is not ordered */
                                        : (int64_t)watch->first + watch->count;
    return (struct limits){begin << 32, end << 32, own, own | (int64_t)(watch->floor + 1) << 16};
}

static bool watch_row(const struct access *access, uint32_t mask, uint64_t first, uint64_t step) {
    const struct cpu_watch *watch = access->watch;
    const uint32_t size = access->site.size, kind = access->kind & KIND;
    const uint32_t low = (uint32_t)__builtin_ctz(mask), lanes = mask + 1 ? (uint32_t)__builtin_popcount(mask) : 32;
    if (kind != CPU_ACCESS_PLAIN || access->site.flags >> CPU_SITE_UNUSED_SHIFT) return false;
    if (mask >> low != UINT32_MAX >> (32 - lanes)) return false;
    const bool uniform = !step;
    if ((!uniform && step != size) || size & 3 || size > 16) return false;
    struct place place;
    if (!find(access, low, first + low * step, &place) || place.space == CPU_SPACE_LOCAL || place.address & 3)
        return false;
    const uint32_t shift = uniform ? 8 : size == 4 ? 0 : size == 8 ? 1 : 2;
    const uint32_t count = uniform ? size / 4 : lanes << shift;
    const uint64_t words = place.owner ? place.owner->shared_words : UINT64_C(1) << (CPU_SHADOW_SHIFT - 2);
    if (place.index + count > words) return false;
    if (watch->checks & CPU_CHECK_INIT) {
        uint8_t *unset = place.shadow->unset + place.index;
        const bool any = any_unset(unset, count);
        if (any && !access->writes) return false;
        if (any) memset(unset, 0, count);
    }
    if (!(watch->checks & CPU_CHECK_RACE)) return true;
    const struct limits limits = limits_of(watch, place.owner);
    if (watch->floor + 1 >= STAMP_MOST || (uint64_t)watch->first + watch->count >= INT32_MAX) return false;
    /* In shared memory words are read in many ways, so each has its own record. */
    const bool is_row = !place.owner && count == CPU_SHADOW_ROW && !shift && place.index % CPU_SHADOW_ROW == 0;
    const cpu_record mine = make_record(watch->id, watch->now, access->warp->first + low, CPU_ACCESS_PLAIN, 15);
    const uint16_t site = (uint16_t)access->site.index;
    if (access->writes) note_written(watch, place.owner);
    else if (place.owner == watch && watch->written <= watch->floor &&
             !watch->copies) { /* the writes all lie behind a barrier */
        const cpu_record *first = place.shadow->records[READ] + place.index;
        const cpu_record *second = place.shadow->records[READ_TOO] + place.index;
        if (are_read(&limits, *first, *second) && (count == 1 || cpu_rows_are_read(&limits, first, second, count)))
            return true;
        cpu_rows_note_reads(&limits, place.shadow, place.index, mine, site, count, shift);
        if (uniform && lanes > 1)
            cpu_rows_note_reads(&limits, place.shadow, place.index, mine + ((uint64_t)(lanes - 1) << 6), site, count,
                                shift);
        return true;
    }
    struct slot slot = {place.shadow, place.index, count, shift, WRITTEN};
    /* Of several lanes that read one word no more than one may have written it. */
    const bool is_own = !uniform || lanes == 1 || access->writes;
    const unsigned written = survey_slot(&limits, &slot, is_own ? mine : mine | NO_THREAD, is_row);
    if (!(written & 1)) return false;
    slot.which = READ;
    const unsigned read = survey_slot(&limits, &slot, mine, is_row);
    if (!access->writes) {
        if (!(read & 1)) {
            slot.which = READ_TOO; /* as for single words: the first one stays */
            if (!is_row || !place.shadow->rows[READ][place.index / CPU_SHADOW_ROW]) {
                for (uint64_t i = place.index / CPU_SHADOW_ROW; i <= (place.index + count - 1) / CPU_SHADOW_ROW; i++) {
                    unroll(place.shadow, i * CPU_SHADOW_ROW, READ);
                    unroll(place.shadow, i * CPU_SHADOW_ROW, READ_TOO);
                }
                cpu_rows_note_reads(&limits, place.shadow, place.index,
                                    uniform ? mine + ((uint64_t)(lanes - 1) << 6) : mine, site, count, shift);
                return true;
            }
        }
        if (uniform && lanes > 1) { /* the lowest and the highest lane stand for all */
            set_slot(&slot, mine, site, false, false);
            slot.which = READ_TOO;
            set_slot(&slot, mine + ((uint64_t)(lanes - 1) << 6), site, false, false);
            return true;
        }
        set_slot(&slot, mine, site, is_row, is_row && read & 2);
        return true;
    }
    slot.which = READ_TOO;
    if (!(read & 1) || !(survey_slot(&limits, &slot, mine, is_row) & 1)) return false;
    clear_slot(&limits, &slot, is_row);
    slot.which = READ;
    clear_slot(&limits, &slot, is_row);
    slot.which = WRITTEN;
    set_slot(&slot, uniform ? mine + ((uint64_t)(lanes - 1) << 6) : mine, site, is_row, is_row && written & 2);
    return true;
}

/* ---- any places ------------------------------------------------------------------------------------------------------- */

/* Whether a slot of a word says nothing against an access. */
static bool slot_allows(const struct limits *limits, const cpu_shadow *shadow, uint64_t index, int which,
                        cpu_record mine, uint32_t kind) {
    const cpu_record all = load(&shadow->rows[which][index / CPU_SHADOW_ROW]);
    if (all) {
        if (is_of_others(limits, all)) return true;
        unroll(shadow, index, which);
    }
    const cpu_record before = load(&shadow->records[which][index]);
    if (is_harmless(limits, before, mine)) return true;
    return kind == CPU_ACCESS_ATOMIC &&
           (record_kind(before) == CPU_ACCESS_ATOMIC || record_kind(before) == CPU_ACCESS_STRONG);
}

/* Plain accesses to whole words of the block's own shared memory, whose words all have records of their own. */
static bool watch_shared(const struct access *access, uint32_t mask, const uint64_t *addresses) {
    struct cpu_watch *watch = access->watch;
    const uint32_t size = access->site.size, words = size / 4;
    const bool races = watch->checks & CPU_CHECK_RACE, inits = watch->checks & CPU_CHECK_INIT, writes = access->writes;
    if (access->kind & KIND || access->site.space != CPU_SPACE_SHARED || size & 3 || size > 16) return false;
    if (access->site.flags >> CPU_SITE_UNUSED_SHIFT || watch->floor + 1 >= STAMP_MOST) return false;
    const struct limits limits = limits_of(watch, true);
    const cpu_shadow *shadow = &watch->shared;
    const bool looks =
        writes || watch->written > watch->floor || watch->copies; /* else all writes lie behind a barrier */
    cpu_record mine = make_record(watch->id, watch->now, access->warp->first, CPU_ACCESS_PLAIN, 15);
    for (uint32_t left = mask; left; left &= left - 1) {
        const uint32_t lane = (uint32_t)__builtin_ctz(left), address = (uint32_t)addresses[lane], index = address / 4;
        if (address & 3 || (uint64_t)index + words > watch->shared_words) return false; /* or of another block */
        for (uint32_t i = index; i < index + words; i++) {
            if (inits && !writes && shadow->unset[i]) return false;
            if (!races || !looks) continue;
            const cpu_record own = mine + ((uint64_t)lane << 6);
            if (!is_harmless(&limits, shadow->records[WRITTEN][i], own)) return false;
            if (writes && !(is_harmless(&limits, shadow->records[READ][i], own) &&
                            is_harmless(&limits, shadow->records[READ_TOO][i], own)))
                return false;
        }
    }
    const uint16_t site = (uint16_t)access->site.index;
    if (writes && races) note_written(watch, watch);
    for (uint32_t left = mask; left; left &= left - 1) {
        const uint32_t lane = (uint32_t)__builtin_ctz(left), index = (uint32_t)addresses[lane] / 4;
        const cpu_record own = mine + ((uint64_t)lane << 6);
        for (uint32_t i = index; i < index + words; i++) {
            if (inits && writes) shadow->unset[i] = 0;
            if (!races) continue;
            int which = WRITTEN;
            if (writes) shadow->records[READ][i] = shadow->records[READ_TOO][i] = 0;
            else which = is_harmless(&limits, shadow->records[READ][i], own) ? READ : READ_TOO;
            shadow->records[which][i] = own;
            shadow->sites[which][i] = site;
        }
    }
    return true;
}

/* As for rows: what is right at a glance, of accesses of up to 4 bytes by each lane. */
static bool watch_scattered(const struct access *access, uint32_t mask, const uint64_t *addresses) {
    struct cpu_watch *watch = access->watch;
    const uint32_t kind = access->kind & KIND, size = access->site.size;
    const bool races = watch->checks & CPU_CHECK_RACE, inits = watch->checks & CPU_CHECK_INIT;
    if (size > 4 || access->site.space == CPU_SPACE_LOCAL) return false;
    if (kind != CPU_ACCESS_PLAIN && (kind != CPU_ACCESS_ATOMIC || (races && access->kind & ORDERS))) return false;
    if (watch->floor + 1 >= STAMP_MOST || (uint64_t)watch->first + watch->count >= INT32_MAX) return false;
    const struct limits of_shared = limits_of(watch, true), of_global = limits_of(watch, false);
    struct place places[CPU_WARP_THREADS];
    for (uint32_t left = mask; left; left &= left - 1) {
        const uint32_t lane = (uint32_t)__builtin_ctz(left);
        struct place *place = &places[lane];
        if (!find(access, lane, addresses[lane], place) || place->space == CPU_SPACE_LOCAL) return false;
        if (inits && place->shadow->unset[place->index] && (!access->writes || kind == CPU_ACCESS_ATOMIC)) return false;
        if (!races) continue;
        const struct limits *limits = place->owner ? &of_shared : &of_global;
        const cpu_record mine = make_record(watch->id, watch->now, access->warp->first + lane, kind, 15);
        for (int which = 0; which < (access->writes ? RECORDS : 1); which++)
            if (!slot_allows(limits, place->shadow, place->index, which, mine, kind)) return false;
    }
    for (uint32_t left = mask; left; left &= left - 1) {
        const uint32_t lane = (uint32_t)__builtin_ctz(left);
        const struct place *place = &places[lane];
        const uint32_t bytes = bytes_of(addresses[lane], size);
        uint8_t *unset = &place->shadow->unset[place->index];
        if (inits && access->writes) note_set(unset, bytes);
        if (!races) continue;
        for (int which = access->writes ? WRITTEN : READ; which < RECORDS; which++)
            unroll(place->shadow, place->index, which);
        cpu_access_note(access, lane, bytes, place);
    }
    return true;
}

/* ---- called by machine code ------------------------------------------------------------------------------------------- */

/* An access is about to happen. `kind`: enum cpu_access_kind, and whether it acquires and releases. */
CPU_HELPER void cupola_watch_access(cpu_context *context, cpu_warp *warp, uint64_t packed, uint32_t mask, uint32_t kind,
                                    const uint64_t *addresses) {
    struct cpu_watch *watch = cpu_watch_of(context->block);
    if (!watch) return;
    const cpu_site site = unpack_site(packed);
    const struct access access = {context, warp, watch, site, kind, site.flags & CPU_SITE_WRITE};
    if (unlikely(watch->later_count)) cpu_watch_learn_now(watch);
    if (!watch_shared(&access, mask, addresses) && !watch_scattered(&access, mask, addresses))
        cpu_access_lanes(&access, mask, addresses);
}

/* The same where lane i has its place at first + i * step. */
CPU_HELPER void cupola_watch_line(cpu_context *context, cpu_warp *warp, uint64_t packed, uint32_t mask, uint32_t kind,
                                  uint64_t first, uint64_t step) {
    struct cpu_watch *watch = cpu_watch_of(context->block);
    if (!watch || !mask) return;
    const cpu_site site = unpack_site(packed);
    const struct access access = {context, warp, watch, site, kind, site.flags & CPU_SITE_WRITE};
    if (unlikely(watch->later_count)) cpu_watch_learn_now(watch);
    if (likely(watch_row(&access, mask, first, step))) return;
    const uint64_t bits = site.space == CPU_SPACE_SHARED || site.space == CPU_SPACE_LOCAL ? UINT32_MAX : UINT64_MAX;
    uint64_t addresses[CPU_WARP_THREADS];
    for (uint32_t i = 0; i < CPU_WARP_THREADS; i++) addresses[i] = (first + i * step) & bits;
    if (!watch_shared(&access, mask, addresses) && !watch_scattered(&access, mask, addresses))
        cpu_access_lanes(&access, mask, addresses);
}

/* The same where lanes may have wrapped: the narrow value that was widened tells (emit/values/values.py, Origin). */
CPU_HELPER void cupola_watch_wrapping(cpu_context *context, cpu_warp *warp, uint64_t packed, uint32_t mask,
                                      uint32_t kind, uint64_t first, uint64_t step, uint64_t narrow, uint64_t origin,
                                      uint64_t scale) {
    uint64_t addresses[CPU_WARP_THREADS];
    if (cpu_lanes_stay_on_line(addresses, first, step, narrow, origin, scale, context->width))
        cupola_watch_line(context, warp, packed, mask, kind, first, step);
    else cupola_watch_access(context, warp, packed, mask, kind, addresses);
}
