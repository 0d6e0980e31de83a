/* Barriers, fences, mbarriers and copies, as machine code and the scheduler tell them. */
#include "checks.h"

#include <stdlib.h>

#include "findings.h"

/* ---- barriers of the block ------------------------------------------------------------------------------------------ */

/* A barrier that all threads of the block come to needs no more than one stamp. */
static bool is_for_all(const cpu_block *block, const cpu_barrier *barrier) {
    return !barrier->expected || barrier->arrived >= block->live;
}

void cpu_watch_arrived(cpu_block *block, const cpu_warp *warp, uint32_t lanes, uint32_t id, uint32_t expected) {
    struct cpu_watch *watch = cpu_watch_of(block);
    if (watch && watch->checks & CPU_CHECK_RACE && expected && expected < block->live && id < CPU_BARRIERS)
        cpu_watch_arrive(watch, warp->first / CPU_WARP_THREADS, lanes << warp->first % CPU_WARP_THREADS, id);
}

/* A part of a warp is at a barrier for which the model wants all of it. Of instructions without .aligned that is allowed;
 * who tells the finding knows (cupola.cpu.reports). The site is one of the variant's. */
static void check_parts(const cpu_block *block, const struct cpu_watch *watch, const cpu_warp *warp, uint32_t here) {
    const uint32_t site = warp->lanes[__builtin_ctz(here)].site;
    uint32_t same = 0;
    for (uint32_t left = here; left; left &= left - 1)
        if (warp->lanes[__builtin_ctz(left)].site == site) same |= left & -left;
    const uint32_t missing = warp->live & ~same;
    if (!missing) return;
    struct cpu_finding finding = {.what = CPU_FOUND_PART,
                                  .site = site | CPU_SITE_OF_VARIANT,
                                  .other_site = UINT16_MAX,
                                  .lanes = missing,
                                  .space = CPU_SPACE_SHARED};
    const uint32_t other = (uint32_t)__builtin_ctz(missing);
    if (here >> other & 1) finding.other_site = warp->lanes[other].site | CPU_SITE_OF_VARIANT;
    cpu_watch_place(watch, watch->id, warp->first + other, finding.other_block, finding.other_thread);
    cpu_watch_place(watch, watch->id, warp->first + (uint32_t)__builtin_ctz(here), finding.block, finding.thread);
    (void)block;
    cpu_finding_add(watch, &finding);
}

/* The threads of an independent unit that wait at a barrier. */
static uint32_t parked_at(const cpu_warp *warp, uint32_t id) {
    uint32_t parked = 0;
    for (uint32_t left = warp->parked; left; left &= left - 1)
        if (warp->lanes[__builtin_ctz(left)].barrier == id) parked |= left & -left;
    return parked;
}

void cpu_watch_barrier(cpu_block *block, uint32_t id) {
    struct cpu_watch *watch = cpu_watch_of(block);
    if (!watch || id >= CPU_BARRIERS) return;
    const bool parts = watch->checks & CPU_CHECK_SYNC;
    if (!(watch->checks & CPU_CHECK_RACE)) {
        for (uint32_t i = 0; parts && i < block->warp_count; i++) {
            const uint32_t parked = block->warps[i].parked ? parked_at(&block->warps[i], id) : 0;
            if (parked) check_parts(block, watch, &block->warps[i], parked);
        }
        return;
    }
    uint32_t waiting[CPU_WARP_THREADS] = {0}, alive[CPU_WARP_THREADS] = {0};
    for (uint32_t i = 0; i < block->warp_count; i++) {
        const cpu_warp *warp = &block->warps[i];
        const uint32_t number = warp->first / CPU_WARP_THREADS;
        const uint32_t parked = parked_at(warp, id);
        if (parked && parts) check_parts(block, watch, warp, parked);
        const bool is_whole = warp->status == CPU_WARP_BLOCKED && !warp->independent && warp->barrier == id;
        waiting[number] |= (is_whole ? warp->live : parked) << warp->first % CPU_WARP_THREADS;
        alive[number] |= warp->live << warp->first % CPU_WARP_THREADS;
    }
    if (!is_for_all(block, &block->barriers[id])) {
        cpu_watch_release(watch, id, waiting, alive);
        return;
    }
    free(watch->at_barrier[id]);
    watch->at_barrier[id] = NULL;
    cpu_watch_all(watch);
}

/* ---- mbarriers ------------------------------------------------------------------------------------------------------ */

struct cpu_watch *cpu_watch_owner(const cpu_context *context, uint64_t *address) {
    const cpu_cluster *cluster = context->block->cluster;
    const uint32_t named = (uint32_t)*address >> CPU_RANK_SHIFT;
    *address &= (1u << CPU_RANK_SHIFT) - 1;
    if (named > cluster->size) return NULL;
    return cpu_watch_of(named ? cluster->blocks[named - 1] : context->block);
}

void cpu_watch_arrival(const cpu_context *context, const cpu_warp *warp, int lane, uint64_t address) {
    struct cpu_watch *watch = cpu_watch_of(context->block), *owner = watch ? cpu_watch_owner(context, &address) : NULL;
    if (!owner || !(watch->checks & CPU_CHECK_RACE)) return;
    cpu_watch_publish(watch, owner, address, warp->first + (uint32_t)lane, watch->now);
    watch->now++;
}

void cpu_watch_wait(const cpu_context *context, const cpu_warp *warp, uint32_t lanes, uint64_t address) {
    struct cpu_watch *watch = cpu_watch_of(context->block), *owner = watch ? cpu_watch_owner(context, &address) : NULL;
    if (!owner || !(watch->checks & CPU_CHECK_RACE)) return;
    const bool is_whole = context->width == CPU_WARP_THREADS; /* else others of the warp are in other units */
    cpu_watch_learn(watch, owner, address, warp->first / CPU_WARP_THREADS, lanes << warp->first % CPU_WARP_THREADS,
                    is_whole ? warp->mask : UINT32_MAX);
    const cpu_cluster *cluster = context->block->cluster;
    const uint64_t generic = CPU_SHARED_WINDOW | (uint64_t)(owner->rank + 1) << CPU_RANK_SHIFT | address;
    for (uint32_t i = 0; i < cluster->size; i++) /* copies into other blocks may signal here, too */
        if (cluster->blocks[i]->watch) cpu_watch_finish(cluster->blocks[i]->watch, UINT32_MAX, UINT32_MAX, generic);
}

/* ---- copies that are waited for ------------------------------------------------------------------------------------- */

static void settle_word(const cpu_watch_copy *copy, cpu_record *place, uint32_t stamp) {
    const cpu_record record = *place;
    if (record_kind(record) != CPU_ACCESS_COPY || record_thread(record) != copy->thread ||
        record_block(record) != copy->block)
        return;
    *place = make_record(copy->block, stamp ? stamp : record_stamp(record), copy->thread, CPU_ACCESS_PLAIN,
                         record_bytes(record));
}

/* In the words that a copy has written or read, its records become plain ones. */
static void settle(struct cpu_watch *watch, const cpu_watch_copy *copy, uint32_t stamp) {
    const bool is_shared = copy->address <= UINT32_MAX;
    if (is_shared && !copy->reads && watch->written < watch->now) watch->written = watch->now;
    for (uint64_t at = copy->address & ~UINT64_C(3); at < copy->address + copy->size; at += 4) {
        const cpu_shadow *shadow = is_shared ? &watch->shared : cpu_shadow_of(at);
        const uint64_t i = (is_shared ? at : at & ((UINT64_C(1) << CPU_SHADOW_SHIFT) - 1)) / 4;
        if (!shadow || (is_shared && i >= watch->shared_words)) return;
        cpu_watch_unroll(shadow, i);
        if (!copy->reads) settle_word(copy, &shadow->records[WRITTEN][i], stamp);
        for (int which = READ; copy->reads && which < RECORDS; which++)
            settle_word(copy, &shadow->records[which][i], stamp);
    }
}

static void drop(struct cpu_watch *watch, cpu_watch_copy **at, uint32_t stamp) {
    cpu_watch_copy *copy = *at;
    settle(watch, copy, stamp);
    *at = copy->next;
    free(copy);
}

void cpu_watch_finish(struct cpu_watch *watch, uint32_t thread, uint32_t group, uint64_t barrier) {
    uint32_t done[CPU_WARP_THREADS] = {0}; /* threads whose older copies are complete, too */
    for (cpu_watch_copy **at = &watch->copies; *at;) {
        const cpu_watch_copy *copy = *at;
        uint32_t *lanes = &done[copy->thread / CPU_WARP_THREADS], lane = 1u << copy->thread % CPU_WARP_THREADS;
        bool is_done =
            barrier ? copy->barrier == barrier : !copy->bulk && copy->thread == thread && copy->group <= group;
        if (!copy->bulk && is_done) *lanes |= lane;
        else if (!copy->bulk) is_done = *lanes & lane;
        if (is_done) drop(watch, at, barrier ? 0 : watch->now);
        else at = &(*at)->next;
    }
}

static void finish_bulk(struct cpu_watch *watch, uint32_t thread, uint32_t group, bool only_reads) {
    for (cpu_watch_copy **at = &watch->copies; *at;) {
        const cpu_watch_copy *copy = *at;
        const bool is_one = copy->bulk && !copy->barrier && copy->thread == thread && copy->group <= group;
        if (is_one && (copy->reads || !only_reads)) drop(watch, at, watch->now);
        else at = &(*at)->next;
    }
}

static uint32_t *counts_of(const struct cpu_watch *watch, uint32_t **counts) {
    if (!*counts) *counts = calloc(watch->threads, sizeof **counts);
    return *counts;
}

/* A copy begins, of those that `owner` keeps: it has the shared memory, or the copy is of this block. */
static void begin_copy(struct cpu_watch *owner, struct cpu_watch *watch, const cpu_watch_copy *copy) {
    if (!(watch->checks & CPU_CHECK_RACE)) return;
    owner->is_used = watch->is_used = true;
    const bool counted = copy->bulk && !copy->barrier;
    if (counted && !counts_of(watch, &watch->bulk_groups)) return;
    cpu_watch_copy *kept = malloc(sizeof *kept);
    if (!kept) return;
    *kept = *copy;
    kept->block = watch->id;
    if (counted) kept->group = watch->bulk_groups[copy->thread] + 1;
    kept->next = owner->copies;
    owner->copies = kept;
}

/* The generic address of an mbarrier with the rank of its block. */
static uint64_t ranked(const cpu_context *context, uint64_t barrier) {
    const struct cpu_watch *signaled = barrier ? cpu_watch_owner(context, &barrier) : NULL;
    return signaled ? barrier | CPU_SHARED_WINDOW | (uint64_t)(signaled->rank + 1) << CPU_RANK_SHIFT : barrier;
}

void cpu_watch_copied(const cpu_context *context, const cpu_warp *warp, int lane, cpu_site site, uint64_t address,
                      uint64_t size, uint64_t barrier) {
    struct cpu_watch *watch = cpu_watch_of(context->block), *owner = watch ? cpu_watch_owner(context, &address) : NULL;
    if (!owner) return;
    const uint32_t thread = warp->first + (uint32_t)lane;
    cpu_watch_write(context, warp, lane, site,
                    CPU_SHARED_WINDOW | (uint64_t)(owner->rank + 1) << CPU_RANK_SHIFT | address, size,
                    barrier ? CPU_ACCESS_COPY : CPU_ACCESS_PLAIN);
    const cpu_watch_copy copy = {.thread = thread,
                                 .bulk = true,
                                 .barrier = ranked(context, barrier),
                                 .address = address,
                                 .size = (uint32_t)size,
                                 .site = site.index};
    if (barrier) begin_copy(owner, watch, &copy);
}

static bool is_in_shared(uint64_t address) { return address >> 32 == CPU_SHARED_WINDOW >> 32; }

void cpu_watch_moved(const cpu_context *context, const cpu_warp *warp, int lane, cpu_site site, uint64_t address,
                     uint64_t size, uint64_t barrier) {
    struct cpu_watch *watch = cpu_watch_of(context->block);
    if (!watch) return;
    if (is_in_shared(address)) {
        cpu_watch_copied(context, warp, lane, site, address, size, barrier);
        return;
    }
    cpu_watch_write(context, warp, lane, site, address, size, CPU_ACCESS_COPY);
    const cpu_watch_copy copy = {
        .thread = warp->first + (uint32_t)lane, .bulk = true, .address = address, .size = (uint32_t)size};
    begin_copy(watch, watch, &copy);
}

/* Global memory that is read is taken to be read at once. */
void cpu_watch_fetched(const cpu_context *context, const cpu_warp *warp, int lane, cpu_site site, uint64_t address,
                       uint64_t size, uint64_t barrier) {
    struct cpu_watch *watch = cpu_watch_of(context->block);
    if (!watch) return;
    const bool is_shared = is_in_shared(address);
    cpu_watch_read(context, warp, lane, site, address, size, is_shared ? CPU_ACCESS_COPY : CPU_ACCESS_PLAIN);
    struct cpu_watch *owner = is_shared ? cpu_watch_owner(context, &address) : NULL;
    const cpu_watch_copy copy = {.thread = warp->first + (uint32_t)lane,
                                 .bulk = true,
                                 .reads = true,
                                 .barrier = ranked(context, barrier),
                                 .address = address,
                                 .size = (uint32_t)size,
                                 .site = site.index};
    if (owner) begin_copy(owner, watch, &copy);
}

/* PTX ISA 9.4, 9.7.10.28.2: "Async-group OR mbarrier-based completion mechanism must be used to wait for the completion of
 * the cp{.reduce}.async.bulk instructions." Shared memory is "owned by an executing CTA" (5.1.7): when the block ends, it
 * becomes that of another one, which writes what such a copy still reads (undefined by 9.7.10.28.1), or is written by the
 * copy. For copies out of shared memory it is enough to wait for the reads (cp.async.bulk.wait_group.read): what they write
 * to global memory outlives the block. */
void cpu_watch_end(const cpu_block *block) {
    const struct cpu_watch *watch = cpu_watch_of(block);
    for (const cpu_watch_copy *copy = watch ? watch->copies : NULL; copy; copy = copy->next) {
        if (!copy->bulk || copy->address > UINT32_MAX) continue;
        struct cpu_finding finding = {.what = CPU_FOUND_ENDED,
                                      .site = copy->site | CPU_SITE_OF_VARIANT,
                                      .other_site = UINT16_MAX,
                                      .kind = CPU_ACCESS_COPY,
                                      .is_write = !copy->reads,
                                      .space = CPU_SPACE_SHARED,
                                      .address = copy->address,
                                      .size = copy->size};
        cpu_watch_place(watch, copy->block, copy->thread, finding.block, finding.thread);
        cpu_watch_place(watch, watch->id, 0, finding.other_block, finding.other_thread);
        cpu_finding_add(watch, &finding);
    }
}

/* ---- called by machine code ------------------------------------------------------------------------------------------- */

/* cp.async has begun to copy, of each lane to its place in shared memory. */
CPU_HELPER void cupola_watch_copy(cpu_context *context, cpu_warp *warp, uint32_t mask, uint32_t size,
                                  const uint64_t *addresses) {
    struct cpu_watch *watch = cpu_watch_of(context->block);
    if (!watch || !(watch->checks & CPU_CHECK_RACE)) return;
    watch->is_used = true;
    for (uint32_t left = mask; left; left &= left - 1) {
        const uint32_t lane = (uint32_t)__builtin_ctz(left), thread = warp->first + lane;
        if (!counts_of(watch, &watch->groups)) return;
        cpu_watch_copy *copy = malloc(sizeof *copy);
        if (!copy) return;
        *copy = (cpu_watch_copy){.thread = thread,
                                 .block = watch->id,
                                 .group = watch->groups[thread] + 1,
                                 .address = (uint32_t)addresses[lane],
                                 .size = size,
                                 .next = watch->copies};
        watch->copies = copy;
    }
}

/* cp.async.commit_group, and cp.async.wait_group: all but `pending` of the groups are done; -1: and what is in none. */
CPU_HELPER void cupola_watch_commit(cpu_context *context, cpu_warp *warp, uint32_t mask) {
    struct cpu_watch *watch = cpu_watch_of(context->block);
    for (; watch && watch->groups && mask; mask &= mask - 1)
        watch->groups[warp->first + (uint32_t)__builtin_ctz(mask)]++;
}

CPU_HELPER void cupola_watch_group(cpu_context *context, cpu_warp *warp, uint32_t mask, uint32_t pending) {
    struct cpu_watch *watch = cpu_watch_of(context->block);
    for (; watch && watch->groups && mask; mask &= mask - 1) {
        const uint32_t thread = warp->first + (uint32_t)__builtin_ctz(mask), committed = watch->groups[thread];
        if (pending == UINT32_MAX) cpu_watch_finish(watch, thread, UINT32_MAX, 0);
        else if (committed >= pending) cpu_watch_finish(watch, thread, committed - pending, 0);
    }
    if (watch) watch->now++;
}

/* The same of bulk copies; of some waits only what they read matters. */
CPU_HELPER void cupola_watch_bulk_commit(cpu_context *context, cpu_warp *warp, uint32_t mask) {
    struct cpu_watch *watch = cpu_watch_of(context->block);
    for (; watch && watch->bulk_groups && mask; mask &= mask - 1)
        watch->bulk_groups[warp->first + (uint32_t)__builtin_ctz(mask)]++;
}

CPU_HELPER void cupola_watch_bulk_group(cpu_context *context, cpu_warp *warp, uint32_t mask, uint32_t pending,
                                        uint32_t only_reads) {
    struct cpu_watch *watch = cpu_watch_of(context->block);
    for (; watch && watch->bulk_groups && mask; mask &= mask - 1) {
        const uint32_t thread = warp->first + (uint32_t)__builtin_ctz(mask), committed = watch->bulk_groups[thread];
        if (committed >= pending) finish_bulk(watch, thread, committed - pending, only_reads);
    }
    if (watch) watch->now++;
}

/* cp.async.mbarrier.arrive: who waits for the mbarrier waits for all copies of the thread. */
CPU_HELPER void cupola_watch_follow(cpu_context *context, cpu_warp *warp, uint32_t mask, const uint64_t *addresses) {
    struct cpu_watch *watch = cpu_watch_of(context->block);
    for (cpu_watch_copy *copy = watch ? watch->copies : NULL; copy; copy = copy->next) {
        const uint32_t lane = copy->thread - warp->first;
        if (copy->bulk || copy->barrier || lane >= CPU_WARP_THREADS || !(mask >> lane & 1)) continue;
        uint64_t address = addresses[lane];
        const struct cpu_watch *owner = cpu_watch_owner(context, &address);
        if (owner) copy->barrier = CPU_SHARED_WINDOW | (uint64_t)(owner->rank + 1) << CPU_RANK_SHIFT | address;
    }
}

/* The threads of a warp that an operation names are together; `members` is what each of them names. bar.warp.sync also
 * orders what they have done (1), others hand on what they have learned (2). */
CPU_HELPER void cupola_watch_met(cpu_context *context, cpu_warp *warp, uint32_t mask, const uint32_t *members,
                                 uint32_t number, uint32_t orders) {
    struct cpu_watch *watch = cpu_watch_of(context->block);
    if (!watch) return;
    if (watch->checks & CPU_CHECK_RACE && orders == 1)
        cpu_watch_warp(watch, warp->first / CPU_WARP_THREADS, mask, warp->mask);
    else if (watch->checks & CPU_CHECK_RACE && orders && watch->lane_row)
        cpu_watch_hand_on(watch, warp->first / CPU_WARP_THREADS, mask, warp->mask);
    if (!(watch->checks & CPU_CHECK_SYNC)) return;
    const uint32_t begun = watch->threads - warp->first;
    const uint32_t exist = begun < CPU_WARP_THREADS ? (1u << begun) - 1 : UINT32_MAX;
    for (uint32_t left = mask; left; left &= left - 1) {
        const uint32_t lane = (uint32_t)__builtin_ctz(left), named = members[lane];
        const bool unnamed = !(named >> lane & 1);
        const uint32_t absent = named & exist & ~mask;
        if (!unnamed && !absent) continue;
        struct cpu_finding finding = {.what = unnamed ? CPU_FOUND_UNNAMED : CPU_FOUND_ABSENT,
                                      .site = number,
                                      .other_site = UINT16_MAX,
                                      .address = named,
                                      .lanes = unnamed ? 1u << lane : absent};
        const uint32_t other = unnamed ? lane : (uint32_t)__builtin_ctz(absent);
        cpu_watch_place(watch, watch->id, warp->first + other, finding.other_block, finding.other_thread);
        cpu_watch_place(watch, watch->id, warp->first + lane, finding.block, finding.thread);
        cpu_finding_add(watch, &finding);
        return;
    }
}

/* Threads exit while others of their warp wait at a barrier that is for all of it. */
CPU_HELPER void cupola_watch_leave(cpu_context *context, cpu_warp *warp, uint32_t mask) {
    struct cpu_watch *watch = cpu_watch_of(context->block);
    const uint32_t waiting = warp->parked & ~mask;
    if (!watch || !waiting || !(watch->checks & CPU_CHECK_SYNC)) return;
    const struct cpu_lane *lane = &warp->lanes[__builtin_ctz(waiting)];
    if (lane->barrier >= CPU_BARRIERS) return;
    struct cpu_finding finding = {.what = CPU_FOUND_PART,
                                  .site = lane->site | CPU_SITE_OF_VARIANT,
                                  .other_site = UINT16_MAX,
                                  .lanes = mask,
                                  .space = CPU_SPACE_SHARED};
    cpu_watch_place(watch, watch->id, warp->first + (uint32_t)__builtin_ctz(mask), finding.other_block,
                    finding.other_thread);
    cpu_watch_place(watch, watch->id, warp->first + (uint32_t)__builtin_ctz(waiting), finding.block, finding.thread);
    cpu_finding_add(watch, &finding);
}

/* fence and membar: what comes behind tells of what was in front. */
CPU_HELPER void cupola_watch_fence(cpu_context *context, cpu_warp *warp, uint32_t mask) {
    struct cpu_watch *watch = cpu_watch_of(context->block);
    if (!watch) return;
    watch->is_used = true;
    if (!watch->fenced && !(watch->fenced = calloc(watch->threads, sizeof *watch->fenced))) return;
    for (uint32_t left = mask; left; left &= left - 1)
        watch->fenced[warp->first + (uint32_t)__builtin_ctz(left)] = watch->now;
    watch->now++;
}
