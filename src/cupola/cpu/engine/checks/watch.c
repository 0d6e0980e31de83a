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

enum { ACQUIRES = 4, RELEASES = 8, KIND = 3 }; /* bits of `kind` */

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

#define load(P) __atomic_load_n(P, __ATOMIC_RELAXED)
#define store(P, V) __atomic_store_n(P, V, __ATOMIC_RELAXED)

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
    if (before)
        cpu_watch_place(watch, record_block(before), record_thread(before), finding.other_block, finding.other_thread);
    cpu_finding_add(watch, &finding);
}

/* ---- one word ------------------------------------------------------------------------------------------------------- */

/* Whether a record is of this launch; in shared memory, of the blocks that have it at present. */
static bool is_current(const struct access *access, const struct place *place, cpu_record before) {
    const struct cpu_watch *watch = access->watch;
    if (place->owner) return record_block(before) - (watch->id - watch->rank) < watch->cluster_size;
    return record_block(before) - watch->first < watch->count;
}

static bool conflicts(const struct access *access, uint32_t thread, uint32_t bytes, const struct place *place,
                      cpu_record before) {
    if (!(record_bytes(before) & bytes) || !is_current(access, place, before)) return false;
    const uint32_t kind = record_kind(before), mine = access->kind & KIND;
    if (kind == CPU_ACCESS_COPY) return true;
    if (kind != CPU_ACCESS_PLAIN && mine != CPU_ACCESS_PLAIN && mine != CPU_ACCESS_COPY) return false;
    return !cpu_watch_ordered(access->watch, thread, before);
}

static void look(const struct access *access, uint32_t lane, uint32_t bytes, const struct place *place) {
    const uint32_t thread = access->warp->first + lane;
    for (int i = 0; i < (access->writes ? RECORDS : 1); i++) {
        const cpu_record before = load(&place->shadow->records[i][place->index]);
        if (likely(!conflicts(access, thread, bytes, place, before))) continue;
        const uint32_t site = load(&place->shadow->sites[i][place->index]);
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

static void note(const struct access *access, uint32_t lane, uint32_t bytes, const struct place *place) {
    const struct cpu_watch *watch = access->watch;
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
    const bool is_free = old || mine || !is_current(access, place, first);
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
        cpu_watch_learn(watch, place->owner ? place->owner : watch, place->address, access->warp->first / 32,
                        1u << lane, access->warp->mask);
        if (!place->owner) cpu_watch_learn_of_grid(watch, place->address);
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
                if (access->writes && unlikely(*unset)) *unset = (uint8_t)(*unset & ~bytes);
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
    if (watch->checks & CPU_CHECK_INIT) init(access, mask, addresses, used);
    if (!(watch->checks & CPU_CHECK_RACE) || access->site.space == CPU_SPACE_LOCAL) return;
    struct place place;
    if ((access->kind & KIND) != CPU_ACCESS_PLAIN)
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

void cpu_watch_write(const cpu_context *context, const cpu_warp *warp, int lane, cpu_site site, uint64_t address,
                     uint64_t size, uint32_t kind) {
    struct cpu_watch *watch = cpu_watch_of(context->block);
    if (!watch) return;
    site.index |= CPU_SITE_OF_VARIANT;
    site.size = site.element = 4;
    site.flags = CPU_SITE_WRITE;
    site.space = CPU_SITE_GENERIC;
    const struct access access = {context, warp, watch, site, kind, true};
    uint64_t addresses[CPU_WARP_THREADS];
    for (uint64_t done = 0; done < size; done += 4) {
        addresses[lane] = address + done;
        watch_lanes(&access, 1u << lane, addresses);
    }
}

/* ---- called by machine code ------------------------------------------------------------------------------------------- */

/* An access is about to happen. `kind`: enum cpu_access_kind, and whether it acquires and releases. */
CPU_HELPER void cupola_watch_access(cpu_context *context, cpu_warp *warp, uint64_t packed, uint32_t mask, uint32_t kind,
                                    const uint64_t *addresses) {
    struct cpu_watch *watch = cpu_watch_of(context->block);
    if (!watch) return;
    const cpu_site site = unpack_site(packed);
    const struct access access = {context, warp, watch, site, kind, site.flags & CPU_SITE_WRITE};
    watch_lanes(&access, mask, addresses);
}
