/* Accesses to memory, as machine code tells them: are they ordered behind what the words' records say, and was what they
 * read ever written? All lanes of an instruction are looked at before any of them is recorded, since lanes that do the
 * same at once are no race.
 *
 * A word keeps its last write and two of the reads since then, so a race with a third reader may be missed. None is
 * reported that there is not. Records of global memory are changed by several workers without locks, each as a whole. */
#include "checks.h"

#include <string.h>

#include "common/common.h"
#include "findings.h"
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

/* ---- findings ------------------------------------------------------------------------------------------------------- */

void cpu_watch_place(const struct cpu_watch *watch, uint32_t id, uint32_t thread, uint32_t block_at[3],
                     uint32_t thread_at[3]) {
    const cpu_launch *launch = watch->launch;
    const uint32_t size = watch->cluster_size;
    uint32_t rest = (id - watch->first) / size, rank = (id - watch->first) % size;
    for (int i = 0; i < 3; i++) {
        const uint32_t cluster = size > 1 ? launch->cluster[i] : 1, clusters = launch->grid[i] / cluster;
        block_at[i] = rest % clusters * cluster + rank % cluster;
        rest /= clusters;
        rank /= cluster;
        thread_at[i] = launch->variant->thread_ids[i][thread];
    }
}

static void found(const struct access *access, int what, uint32_t lane, const struct place *place, cpu_record before,
                  uint32_t site, bool was_write) {
    struct cpu_finding finding = {
        .what = what,
        .site = access->site.index,
        .other_site = site,
        .kind = (uint8_t)(access->kind & KIND),
        .is_write = access->writes,
        .other_is_write = was_write,
        .other_kind = (uint8_t)record_kind(before),
        .space = place->space,
        .address = place->address,
        .size = access->site.element,
    };
    const struct cpu_watch *watch = access->watch;
    cpu_watch_place(watch, watch->id, access->warp->first + lane, finding.block, finding.thread);
    if (before && !place->owner && record_block(before) - watch->first >= watch->count) {
        finding.deed = record_block(before);
        (void)cpu_deed_place(finding.deed, record_thread(before), finding.other_block, finding.other_thread);
    } else if (before)
        cpu_watch_place(watch, record_block(before), record_thread(before), finding.other_block, finding.other_thread);
    cpu_finding_add(watch, &finding);
}

static void unroll(const cpu_shadow *shadow, uint64_t index, int which) {
    const uint64_t row = index / CPU_SHADOW_ROW, first = row * CPU_SHADOW_ROW;
    const cpu_record all = load(&shadow->rows[which][row]);
    if (likely(!all)) return;
    if (all == NOTHING) memset(shadow->records[which] + first, 0, CPU_SHADOW_ROW * sizeof(cpu_record));
    else
        cpu_rows_fill(shadow->records[which] + first, shadow->sites[which] + first, all,
                      load(&shadow->sites[which][first]), CPU_SHADOW_ROW, 0);
    store(&shadow->rows[which][row], 0);
}

void cpu_watch_unroll(const cpu_shadow *shadow, uint64_t index) {
    for (int which = 0; which < RECORDS; which++) unroll(shadow, index, which);
}

/* ---- one word ------------------------------------------------------------------------------------------------------- */

/* Whether a record is of this launch or one that may run at the same time; in shared memory, of the blocks that have it at
 * present. */
static bool is_current(const struct access *access, const struct place *place, cpu_record before) {
    struct cpu_watch *watch = access->watch;
    if (place->owner) return record_block(before) - (watch->id - watch->rank) < watch->cluster_size;
    if (record_block(before) - watch->first < watch->count) return true;
    return watch->moment && record_block(before) >= watch->low && before != NOTHING &&
           !cpu_watch_comes_after(watch, record_block(before));
}

static bool conflicts(const struct access *access, uint32_t thread, uint32_t bytes, const struct place *place,
                      cpu_record before) {
    if (!(record_bytes(before) & bytes) || !is_current(access, place, before)) return false;
    const uint32_t kind = record_kind(before), mine = access->kind & KIND;
    if (kind == CPU_ACCESS_COPY) return true;
    if (kind != CPU_ACCESS_PLAIN && mine != CPU_ACCESS_PLAIN && mine != CPU_ACCESS_COPY) return false;
    return !cpu_watch_ordered(access->watch, thread, before);
}

/* Where units are narrower than a warp, they run one after the other what the warp's threads do by one instruction. */
static bool is_same_instruction(const struct access *access, uint32_t thread, cpu_record before, uint32_t site) {
    const struct cpu_watch *watch = access->watch;
    return access->context->width < CPU_WARP_THREADS && site == access->site.index &&
           record_block(before) == watch->id && record_stamp(before) == watch->now &&
           record_thread(before) / CPU_WARP_THREADS == thread / CPU_WARP_THREADS;
}

/* Which records matter. In what is reserved for the system (%reserved_smem_offset_1), cooperative groups write a warp's slot
 * again when no more than a vote or a shuffle has come behind the reads of it (collectives_scheme in cooperative_groups.h).
 * A GPU carries out what a warp does to shared memory in the order of its instructions, and CUDA's own headers may know
 * that; a user could not do anything about it. Reads of what was not written in order are found there, too. */
static int records_of(const struct access *access, const struct place *place) {
    if (!access->writes) return WRITTEN + 1;
    return place->owner && place->index >= place->owner->reserved ? WRITTEN + 1 : RECORDS;
}

static void look(const struct access *access, uint32_t lane, uint32_t bytes, const struct place *place) {
    const uint32_t thread = access->warp->first + lane;
    cpu_watch_unroll(place->shadow, place->index);
    for (int i = 0; i < records_of(access, place); i++) {
        const cpu_record before = load(&place->shadow->records[i][place->index]);
        if (likely(!conflicts(access, thread, bytes, place, before))) continue;
        const uint32_t site = load(&place->shadow->sites[i][place->index]);
        if (access->writes && i == WRITTEN && is_same_instruction(access, thread, before, site)) continue;
        const bool is_copy = record_kind(before) == CPU_ACCESS_COPY;
        found(access, is_copy ? CPU_FOUND_EARLY : CPU_FOUND_RACE, lane, place, before, site, i == WRITTEN);
        return;
    }
}

static void put(const struct place *place, int which, cpu_record record, uint32_t site) {
    store(&place->shadow->sites[which][place->index], (uint16_t)(site < UINT16_MAX ? site : UINT16_MAX));
    store(&place->shadow->records[which][place->index], record);
}

/* What the same thread did just before with other bytes of the word goes on to count, too. */
static cpu_record with_bytes(cpu_record before, cpu_record record) {
    return (before ^ record) & ~UINT64_C(15) ? record : before | record;
}

static void note_written(const struct cpu_watch *watch, struct cpu_watch *owner) {
    if (owner) owner->written = watch == owner && owner->written != UINT32_MAX ? watch->now : UINT32_MAX;
}

static void note(const struct access *access, uint32_t lane, uint32_t bytes, const struct place *place) {
    const struct cpu_watch *watch = access->watch;
    if (access->writes) note_written(watch, place->owner);
    const uint32_t thread = access->warp->first + lane;
    const cpu_record record = make_record(watch->id, watch->now, thread, access->kind & KIND, bytes);
    if (access->writes) {
        const cpu_record before = load(&place->shadow->records[WRITTEN][place->index]);
        put(place, WRITTEN, with_bytes(before, record), access->site.index);
        if (bytes == 15) {
            if (load(&place->shadow->records[READ][place->index])) put(place, READ, 0, 0);
            if (load(&place->shadow->records[READ_TOO][place->index])) put(place, READ_TOO, 0, 0);
        }
        return;
    }
    const cpu_record first = load(&place->shadow->records[READ][place->index]);
    const bool old = record_block(first) == watch->id && record_stamp(first) <= watch->floor;
    const bool mine = record_block(first) == watch->id && record_thread(first) == thread;
    const bool is_copied = record_kind(first) == CPU_ACCESS_COPY; /* and will be, until somebody waits */
    const bool is_free = ((old || mine) && !is_copied) || !is_current(access, place, first);
    if (is_free) put(place, READ, with_bytes(first, record), access->site.index);
    else put(place, READ_TOO, record, access->site.index);
}

/* ---- where an address leads ----------------------------------------------------------------------------------------- */

static bool find(const struct access *access, uint32_t lane, uint64_t address, struct place *place) {
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

static uint32_t bytes_of(uint64_t address, uint32_t size) {
    return size >= 4 ? 15 : ((1u << size) - 1) << (address & 3) & 15;
}

/* ---- what strong accesses order ------------------------------------------------------------------------------------- */

static void publish(const struct access *access, uint32_t thread, const struct place *place, uint32_t stamp) {
    cpu_watch_publish(access->watch, place->owner ? place->owner : access->watch, place->address, thread, stamp);
    if (!place->owner) cpu_watch_publish_to_grid(access->watch, place->address, stamp);
}

/* A release, or what comes behind a fence: whoever reads it later knows of what was in front of it. And what reads learns
 * of that; a fence behind it is not asked for. */
static void order(const struct access *access, uint32_t lane, const struct place *place) {
    struct cpu_watch *watch = access->watch;
    const uint32_t thread = access->warp->first + lane;
    if (!access->writes || (access->kind & KIND) == CPU_ACCESS_ATOMIC) {
        cpu_watch_learn(watch, place->owner ? place->owner : watch, place->address, thread / CPU_WARP_THREADS,
                        1u << thread % CPU_WARP_THREADS, UINT32_MAX);
        if (!place->owner) cpu_watch_learn_later(watch, place->address);
    }
    if (!access->writes) return;
    if (access->kind & RELEASES) publish(access, thread, place, watch->now);
    else if (watch->fenced && watch->fenced[thread]) publish(access, thread, place, watch->fenced[thread]);
}

/* Bytes of a word are written. Another worker may write others of them at the same time. */
static void note_set(uint8_t *unset, uint32_t bytes) {
    if (likely(!(load(unset) & bytes))) return;
    if (bytes == 15) store(unset, 0);
    else __atomic_fetch_and(unset, (uint8_t)~bytes, __ATOMIC_RELAXED);
}

/* ---- all lanes ------------------------------------------------------------------------------------------------------ */

static void init(const struct access *access, uint32_t mask, const uint64_t *addresses, uint32_t used) {
    const uint32_t element = access->site.element;
    const bool reads = !access->writes || (access->kind & KIND) == CPU_ACCESS_ATOMIC;
    for (uint32_t left = mask; left; left &= left - 1) {
        const uint32_t lane = (uint32_t)__builtin_ctz(left);
        for (uint32_t done = 0; done < used; done += element) {
            const uint64_t address = addresses[lane] + done;
            struct place place;
            bool set = !reads;
            for (uint32_t i = 0; i < element && (access->writes || !set); i += 4) {
                if (!find(access, lane, address + i, &place)) {
                    set = true;
                    break;
                }
                const uint32_t bytes = bytes_of(address, element);
                uint8_t *unset = &place.shadow->unset[place.index];
                set |= (*unset & bytes) != bytes;
                if (access->writes) note_set(unset, bytes);
            }
            if (set) continue;
            place.address = place.space == CPU_SPACE_GLOBAL ? address : (uint32_t)address;
            found(access, CPU_FOUND_UNSET, lane, &place, 0, UINT16_MAX, false);
            for (uint32_t i = 0; i < element; i += 4) /* told once */
                if (find(access, lane, address + i, &place)) place.shadow->unset[place.index] = 0;
        }
    }
}

static void watch_lanes(const struct access *access, uint32_t mask, const uint64_t *addresses) {
    struct cpu_watch *watch = access->watch;
    const uint32_t size = access->site.size,
                   unused = access->site.element * (access->site.flags >> CPU_SITE_UNUSED_SHIFT);
    const uint32_t used = size - unused;
    const uint32_t kind = access->kind & KIND;
    if (watch->checks & CPU_CHECK_INIT && !(access->kind & COPIES)) init(access, mask, addresses, used);
    if (!(watch->checks & CPU_CHECK_RACE) || access->site.space == CPU_SPACE_LOCAL) return;
    struct place place;
    if (kind == CPU_ACCESS_STRONG || kind == CPU_ACCESS_ATOMIC)
        for (uint32_t left = mask; left; left &= left - 1) {
            const uint32_t lane = (uint32_t)__builtin_ctz(left);
            if (find(access, lane, addresses[lane], &place) && place.space != CPU_SPACE_LOCAL)
                order(access, lane, &place);
        }
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t left = mask; left; left &= left - 1) {
            const uint32_t lane = (uint32_t)__builtin_ctz(left);
            for (uint32_t done = 0; done < used; done += 4) {
                const uint64_t address = addresses[lane] + done;
                if (!find(access, lane, address, &place) || place.space == CPU_SPACE_LOCAL) continue;
                const uint32_t bytes = bytes_of(address, size);
                if (pass) note(access, lane, bytes, &place);
                else look(access, lane, bytes, &place);
            }
        }
    if (access->kind & RELEASES) watch->now++;
}

/* ---- ranges ----------------------------------------------------------------------------------------------------------- */

static struct access range_access(const cpu_context *context, const cpu_warp *warp, cpu_site site, uint32_t kind,
                                  bool writes) {
    site.index |= CPU_SITE_OF_VARIANT;
    site.size = site.element = 4;
    site.flags = writes ? CPU_SITE_WRITE : 0;
    site.space = CPU_SITE_GENERIC;
    return (struct access){context, warp, cpu_watch_of(context->block), site, kind, writes};
}

static void watch_range(const cpu_context *context, const cpu_warp *warp, int lane, cpu_site site, uint64_t address,
                        uint64_t size, uint32_t kind, bool writes) {
    const struct access access = range_access(context, warp, site, kind, writes);
    uint64_t addresses[CPU_WARP_THREADS];
    for (uint64_t done = 0; done < size; done += 4) {
        addresses[lane] = address + done;
        watch_lanes(&access, 1u << lane, addresses);
    }
}

void cpu_watch_write(const cpu_context *context, const cpu_warp *warp, int lane, cpu_site site, uint64_t address,
                     uint64_t size, uint32_t kind) {
    if (cpu_watch_of(context->block)) watch_range(context, warp, lane, site, address, size, kind, true);
}

void cpu_watch_read(const cpu_context *context, const cpu_warp *warp, int lane, cpu_site site, uint64_t address,
                    uint64_t size, uint32_t kind) {
    const struct cpu_watch *watch = cpu_watch_of(context->block);
    if (watch && watch->checks & CPU_CHECK_RACE)
        watch_range(context, warp, lane, site, address, size, kind | COPIES, false);
}

void cpu_watch_used(const cpu_context *context, const cpu_warp *warp, int lane, cpu_site site, uint64_t address,
                    uint64_t size) {
    if (!cpu_watch_sees_unset(context)) return;
    const struct access access = range_access(context, warp, site, CPU_ACCESS_PLAIN, false);
    uint64_t addresses[CPU_WARP_THREADS];
    for (uint64_t done = 0; done < size; done += 4) {
        addresses[lane] = address + done;
        init(&access, 1u << lane, addresses, 4);
    }
}

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
        note(access, lane, bytes, place);
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
        watch_lanes(&access, mask, addresses);
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
        watch_lanes(&access, mask, addresses);
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
