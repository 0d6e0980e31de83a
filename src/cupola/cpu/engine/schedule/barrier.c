/* Barriers: of a block (PTX ISA, "bar, barrier") and of the named members of a warp ("bar.warp.sync").
 *
 * Since sm_70 threads arrive at a barrier one by one. Without a count the barrier is for all threads of the block
 * that have not exited. With a count, hardware adds a whole warp at a time, so a warp whose live threads have all
 * arrived counts for 32, however few they are. */
#include "schedule.h"

#include <string.h>

#include "engine/checks/checks.h"

static uint32_t *frame_masks(const cpu_warp *warp) { return (uint32_t *)warp->frame; }

/* The threads that count as arrived at a barrier with a count: whole warps as 32. */
uint32_t cpu_barrier_counted(const cpu_block *block, const cpu_barrier *barrier) {
    uint32_t live[CPU_BLOCK_THREADS / CPU_WARP_THREADS] = {0};
    for (uint32_t i = 0; i < block->warp_count; i++) {
        const cpu_warp *warp = &block->warps[i];
        live[warp->first / CPU_WARP_THREADS] |= warp->live << warp->first % CPU_WARP_THREADS;
    }
    uint32_t sum = 0;
    for (int i = 0; i < CPU_BLOCK_THREADS / CPU_WARP_THREADS; i++) {
        uint32_t here = barrier->lanes[i];
        sum += here && !(live[i] & ~here) ? CPU_WARP_THREADS : (uint32_t)__builtin_popcount(here);
    }
    return sum;
}

/* Let everybody who waits at the barrier go on. */
void cpu_barrier_release(cpu_block *block, uint32_t id) {
    cpu_barrier *barrier = &block->barriers[id];
    if (asked(block->watch != NULL)) cpu_watch_barrier(block, id);
    for (uint32_t i = 0; i < block->warp_count; i++) {
        cpu_warp *warp = &block->warps[i];
        if (warp->status == CPU_WARP_BLOCKED && !warp->independent && warp->barrier == id) {
            warp->agreed = barrier->agreed;
            warp->voters = barrier->voters;
            warp->status = CPU_WARP_READY;
        }
        for (uint32_t left = warp->parked; left; left &= left - 1) {
            int lane = __builtin_ctz(left);
            const struct cpu_lane *wait = &warp->lanes[lane];
            if (wait->barrier != id) continue;
            frame_masks(warp)[wait->successor] |= 1u << lane;
            warp->parked &= ~(1u << lane);
            if (warp->status == CPU_WARP_BLOCKED) warp->status = CPU_WARP_READY;
            uint32_t *slot = (uint32_t *)(warp->frame + wait->slot);
            bool all = barrier->agreed == barrier->voters, any = barrier->agreed != 0;
            if (wait->result_kind == CPU_RESULT_COUNT) slot[lane] = barrier->agreed;
            if (wait->result_kind == CPU_RESULT_ALL || wait->result_kind == CPU_RESULT_ANY) {
                bool result = wait->result_kind == CPU_RESULT_ALL ? all : any;
                *slot = (*slot & ~(1u << lane)) | (uint32_t)result << lane;
            }
        }
    }
    memset(barrier, 0, sizeof *barrier);
    block->busy_barriers &= ~(1u << id);
}

static bool release_if_complete(cpu_block *block, uint32_t id) {
    const cpu_barrier *barrier = &block->barriers[id];
    if (barrier->expected ? cpu_barrier_counted(block, barrier) < barrier->expected : barrier->arrived < block->live)
        return false;
    cpu_barrier_release(block, id);
    return true;
}

static void arrive(cpu_block *block, const cpu_warp *warp, uint32_t lanes, uint32_t id, uint32_t expected,
                   uint32_t votes) {
    cpu_barrier *barrier = &block->barriers[id];
    uint32_t count = (uint32_t)__builtin_popcount(lanes);
    barrier->arrived += count;
    barrier->voters += count;
    barrier->agreed += (uint32_t)__builtin_popcount(votes & lanes);
    if (asked(block->watch != NULL)) cpu_watch_arrived(block, warp, lanes, id, expected);
    if (expected) {
        barrier->expected = expected;
        barrier->lanes[warp->first / CPU_WARP_THREADS] |= lanes << warp->first % CPU_WARP_THREADS;
    }
    block->busy_barriers |= 1u << id;
}

/* Threads arrive at wgmma.wait_group, behind which all four warps have executed the same products. False after a fault. */
static bool arrive_in_warpgroup(cpu_context *context, cpu_warp *warp, uint32_t lanes, uint32_t id, uint32_t site) {
    cpu_barrier *barrier = &context->block->barriers[id];
    if (!barrier->arrived) barrier->products = warp->products;
    if (barrier->products != warp->products) {
        cpu_fault_raise(
            context, warp, __builtin_ctz(lanes), CPU_FAULT_INSTRUCTION, site,
            "the four warps of a warpgroup must execute the same wgmma.mma_async instructions with the same "
            "descriptors, but this warp did not execute the same as another one that waits here");
        return false;
    }
    arrive(context->block, warp, lanes, id, CPU_WARPGROUP_THREADS, 0);
    return true;
}

bool cpu_warpgroup_arrive(cpu_context *context, cpu_warp *warp) {
    warp->barrier = CPU_WARPGROUP_BARRIER + warp->first / CPU_WARPGROUP_THREADS;
    warp->status = CPU_WARP_BLOCKED;
    if (!arrive_in_warpgroup(context, warp, warp->mask, warp->barrier, cpu_barrier_site(context, warp))) return false;
    release_if_complete(context->block, warp->barrier);
    return true;
}

bool cpu_barrier_arrive(cpu_block *block, cpu_warp *warp) {
    warp->status = CPU_WARP_BLOCKED;
    arrive(block, warp, warp->mask, warp->barrier, warp->expected, warp->votes);
    return release_if_complete(block, warp->barrier);
}

bool cpu_barrier_release_complete(cpu_block *block) {
    bool released = false;
    for (uint32_t left = block->busy_barriers; left; left &= left - 1)
        released |= release_if_complete(block, (uint32_t)__builtin_ctz(left));
    return released;
}

/* The threads of `here` whose mask names a live thread that is not here with the same
 * mask. Operations on different masks are different ones, also at one instruction, as in a recursive function. */
static uint32_t missing_members(const uint32_t *members, uint32_t here, uint32_t live) {
    uint32_t missing = 0;
    while (here) {
        const uint32_t mask = members[__builtin_ctz(here)];
        uint32_t same = 0;
        for (uint32_t left = here; left; left &= left - 1) {
            int lane = __builtin_ctz(left);
            if (members[lane] == mask) same |= 1u << lane;
        }
        if (mask & live & ~same) missing |= same;
        here &= ~same;
    }
    return missing;
}

bool cpu_warp_sync_release(cpu_warp *warp) {
    uint32_t members[CPU_WARP_THREADS] = {0};
    for (uint32_t left = warp->syncing; left; left &= left - 1) {
        int lane = __builtin_ctz(left);
        members[lane] = warp->lanes[lane].barrier;
    }
    const uint32_t released = warp->syncing & ~missing_members(members, warp->syncing, warp->mask);
    for (uint32_t left = released; left; left &= left - 1) {
        int lane = __builtin_ctz(left);
        frame_masks(warp)[warp->lanes[lane].successor] |= 1u << lane;
    }
    warp->syncing &= ~released;
    return released != 0;
}

uint32_t cpu_barrier_site(const cpu_context *context, const cpu_warp *warp) {
    const cpu_variant *variant = context->job->launch->variant;
    uint32_t index = warp->state & 0xFFFFFF;
    return index && index <= variant->resume_count ? variant->resume_sites[index - 1] : UINT32_MAX;
}

/* ---- called by machine code --------------------------------------------------------------------------------- */

/* The barriers of the lanes in `mask` exist? Otherwise a fault. */
static bool valid(cpu_context *context, const cpu_warp *warp, uint32_t mask, const uint32_t *ids, uint32_t site) {
    for (uint32_t left = mask; left; left &= left - 1) {
        int lane = __builtin_ctz(left);
        if (ids[lane] < CPU_BARRIERS) continue;
        cpu_fault_raise(context, warp, lane, CPU_FAULT_BARRIER, site, "barrier %u does not exist (there are 0 to 15)",
                        ids[lane]);
        return false;
    }
    return true;
}

/* bar.arrive: count the threads without waiting. Returns nonzero on a fault. */
CPU_HELPER uint32_t cupola_barrier_arrive(cpu_context *context, cpu_warp *warp, uint32_t mask, const uint32_t *ids,
                                          const uint32_t *counts, uint32_t site) {
    if (!valid(context, warp, mask, ids, site)) return 1;
    warp->live = warp->mask;
    while (mask) {
        int lane = __builtin_ctz(mask);
        uint32_t id = ids[lane], group = 0;
        for (uint32_t left = mask; left; left &= left - 1)
            if (ids[__builtin_ctz(left)] == id) group |= left & -left;
        arrive(context->block, warp, group, id, counts[lane], 0);
        context->block->barriers[id].voters -= (uint32_t)__builtin_popcount(group);
        context->progress += release_if_complete(context->block, id);
        mask &= ~group;
    }
    return 0;
}

/* bar.sync and bar.red in the independent body: the lanes wait, the others go on. Returns nonzero on a fault. */
CPU_HELPER uint32_t cupola_barrier_park(cpu_context *context, cpu_warp *warp, uint32_t mask, const uint32_t *ids,
                                        const uint32_t *counts, uint32_t votes, uint32_t successor,
                                        uint32_t result_kind, uint32_t slot, uint32_t site) {
    if (!valid(context, warp, mask, ids, site)) return 1;
    for (uint32_t left = mask; left; left &= left - 1) {
        int lane = __builtin_ctz(left);
        warp->lanes[lane] = (struct cpu_lane){ids[lane], site, successor, result_kind, slot};
        warp->parked |= 1u << lane;
        arrive(context->block, warp, 1u << lane, ids[lane], counts[lane], votes);
    }
    return 0;
}

/* wgmma.wait_group in the independent body. Returns nonzero on a fault. */
CPU_HELPER uint32_t cupola_warpgroup_park(cpu_context *context, cpu_warp *warp, uint32_t mask, uint32_t successor,
                                          uint32_t site) {
    const uint32_t id = CPU_WARPGROUP_BARRIER + warp->first / CPU_WARPGROUP_THREADS;
    if (!arrive_in_warpgroup(context, warp, mask, id, site)) return 1;
    for (uint32_t left = mask; left; left &= left - 1)
        warp->lanes[__builtin_ctz(left)] = (struct cpu_lane){id, site, successor, CPU_RESULT_NONE, 0};
    warp->parked |= mask;
    return 0;
}

/* The threads that must wait at an operation to which threads have come with different masks. */
CPU_HELPER uint32_t cupola_missing_members(const uint32_t *members, uint32_t here, uint32_t live) {
    return missing_members(members, here, live);
}

/* bar.warp.sync in the independent body. */
CPU_HELPER void cupola_warp_park(cpu_context *context, cpu_warp *warp, uint32_t mask, const uint32_t *members,
                                 uint32_t successor, uint32_t site) {
    (void)context;
    for (uint32_t left = mask; left; left &= left - 1) {
        int lane = __builtin_ctz(left);
        warp->lanes[lane] = (struct cpu_lane){members[lane], site, successor, CPU_RESULT_NONE, 0};
        warp->syncing |= 1u << lane;
    }
}
