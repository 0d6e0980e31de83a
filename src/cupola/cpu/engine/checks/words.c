/* Accesses to words of memory, one by one: are they ordered behind what the words' records say, and was what they read ever
 * written? All lanes of an instruction are looked at before any of them is recorded, since lanes that do the same at once are
 * no race.
 *
 * A word keeps its last write and two of the reads since then, so a race with a third reader may be missed. None is
 * reported that there is not. Records of global memory are changed by several workers without locks, each as a whole. */
#include "access.h"

#include <string.h>

#include "common/common.h"
#include "findings.h"

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

/* Give the words of a row records of their own. `all` stands for them, and is not 0. */
void cpu_access_unroll_row(const cpu_shadow *shadow, uint64_t row, int which, cpu_record all) {
    const uint64_t first = row * CPU_SHADOW_ROW;
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

void cpu_access_note(const struct access *access, uint32_t lane, uint32_t bytes, const struct place *place) {
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

void cpu_access_lanes(const struct access *access, uint32_t mask, const uint64_t *addresses) {
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
                if (pass) cpu_access_note(access, lane, bytes, &place);
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
        cpu_access_lanes(&access, 1u << lane, addresses);
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
