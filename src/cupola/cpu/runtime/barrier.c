/* Barriers: of a block (PTX ISA, "bar, barrier") and of the named members of a warp ("bar.warp.sync").
 *
 * Since sm_70 threads arrive at a barrier one by one. Without a count the barrier is for all threads of the block
 * that have not exited. With a count, hardware adds a whole warp at a time, so a warp whose live threads have all
 * arrived counts for 32, however few they are. */
#include "scheduler.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static uint32_t *frame_masks(const cpu_warp *warp) { return (uint32_t *)warp->frame; }

/* The threads that count as arrived at a barrier with a count: whole warps as 32. */
static uint32_t counted(const cpu_block *block, const cpu_barrier *barrier) {
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
static void release(cpu_block *block, uint32_t id) {
    cpu_barrier *barrier = &block->barriers[id];
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
    if (barrier->expected ? counted(block, barrier) < barrier->expected : barrier->arrived < block->live) return false;
    release(block, id);
    return true;
}

static void arrive(cpu_block *block, const cpu_warp *warp, uint32_t lanes, uint32_t id, uint32_t expected,
                   uint32_t votes) {
    cpu_barrier *barrier = &block->barriers[id];
    uint32_t count = (uint32_t)__builtin_popcount(lanes);
    barrier->arrived += count;
    barrier->voters += count;
    barrier->agreed += (uint32_t)__builtin_popcount(votes & lanes);
    if (expected) {
        barrier->expected = expected;
        barrier->lanes[warp->first / CPU_WARP_THREADS] |= lanes << warp->first % CPU_WARP_THREADS;
    }
    block->busy_barriers |= 1u << id;
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

bool cpu_warp_sync_release(cpu_warp *warp) {
    uint32_t released = 0;
    for (uint32_t left = warp->syncing; left; left &= left - 1) {
        int lane = __builtin_ctz(left);
        if (!(warp->lanes[lane].barrier & warp->mask & ~warp->syncing)) released |= 1u << lane;
    }
    for (uint32_t left = released; left; left &= left - 1) {
        int lane = __builtin_ctz(left);
        frame_masks(warp)[warp->lanes[lane].successor] |= 1u << lane;
    }
    warp->syncing &= ~released;
    return released != 0;
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
        release_if_complete(context->block, id);
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

/* ---- deadlocks ---------------------------------------------------------------------------------------------- */

struct text {
    char *at;
    size_t left;
};

__attribute__((format(printf, 2, 3))) static void append(struct text *text, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int written = vsnprintf(text->at, text->left, format, arguments);
    va_end(arguments);
    if (written < 0) return;
    size_t step = (size_t)written < text->left ? (size_t)written : text->left ? text->left - 1 : 0;
    text->at += step;
    text->left -= step;
}

/* The linear index of a thread as its coordinates in the block. */
static void append_thread(struct text *text, const cpu_context *context, uint32_t thread) {
    append(text, "(%u, %u, %u)", context->thread_ids[0][thread], context->thread_ids[1][thread],
           context->thread_ids[2][thread]);
}

/* "thread (0, 0, 0) to (31, 0, 0)" for the threads of a set given by a function of the index. */
static void append_group(struct text *text, const cpu_context *context, const uint32_t *set) {
    uint32_t first = UINT32_MAX, last = 0, count = 0;
    for (uint32_t i = 0; i < CPU_BLOCK_THREADS; i++) {
        if (!(set[i / 32] >> i % 32 & 1)) continue;
        if (first == UINT32_MAX) first = i;
        last = i;
        count++;
    }
    append(text, count == 1 ? "thread " : "%u threads from ", count);
    append_thread(text, context, first);
    if (count > 1) {
        append(text, " to ");
        append_thread(text, context, last);
    }
}

uint32_t cpu_barrier_site(const cpu_context *context, const cpu_warp *warp) {
    const cpu_variant *variant = context->job->launch->variant;
    uint32_t index = warp->state & 0xFFFFFF;
    return index && index <= variant->resume_count ? variant->resume_sites[index - 1] : UINT32_MAX;
}

void cpu_barrier_deadlock(cpu_context *context) {
    const cpu_block *block = context->block;
    char message[sizeof ((cpu_fault *)0)->message];
    struct text text = {message, sizeof message};
    uint32_t site = UINT32_MAX;
    const cpu_warp *culprit = &block->warps[0];
    int culprit_lane = 0;
    *message = 0;
    uint32_t warp_op[32] = {0}, member_wait[32] = {0}, at[CPU_BARRIERS][32] = {{0}};
    for (uint32_t i = 0; i < block->warp_count; i++) {
        const cpu_warp *warp = &block->warps[i];
        uint32_t shift = warp->first % 32, word = warp->first / 32, at_barrier = 0;
        if (warp->status != CPU_WARP_BLOCKED) continue;
        if (!warp->independent) {
            at_barrier = warp->live;
            at[warp->barrier][word] |= warp->live << shift;
        }
        for (uint32_t left = warp->parked; left; left &= left - 1) {
            int lane = __builtin_ctz(left);
            at[warp->lanes[lane].barrier][word] |= (left & -left) << shift;
        }
        at_barrier |= warp->parked;
        member_wait[word] |= warp->syncing << shift;
        uint32_t stuck = warp->live & ~at_barrier & ~warp->syncing;
        warp_op[word] |= stuck << shift;
        if (site == UINT32_MAX && warp->live) {
            culprit = warp;
            culprit_lane = __builtin_ctz(warp->live);
            uint32_t lanes = warp->parked | warp->syncing;
            if (warp->independent && lanes) culprit_lane = __builtin_ctz(lanes);
            site = !warp->independent ? cpu_barrier_site(context, warp)
                   : lanes            ? warp->lanes[culprit_lane].site
                                      : warp->site;
        }
    }
    const char *separator = "";
    for (int id = 0; id < CPU_BARRIERS; id++) {
        uint32_t any = 0;
        for (int i = 0; i < 32; i++) any |= at[id][i];
        if (!any) continue;
        append(&text, "%s", separator);
        append_group(&text, context, at[id]);
        const cpu_barrier *barrier = &block->barriers[id];
        if (barrier->expected)
            append(&text, " wait at barrier %d for %u threads, of which %u have arrived", id, barrier->expected,
                   counted(block, barrier));
        else
            append(&text, " wait at barrier %d for all %u threads of the block that have not exited", id, block->live);
        separator = "; ";
    }
    const struct {
        const uint32_t *set;
        const char *what;
    } rest[] = {{member_wait, "wait at __syncwarp() for members that do not come"},
                {warp_op, "wait in a warp operation (shuffle, vote, match, reduce, matrix product) for members that do "
                          "not come to it"}};
    for (int k = 0; k < 2; k++) {
        uint32_t any = 0;
        for (int i = 0; i < 32; i++) any |= rest[k].set[i];
        if (!any) continue;
        append(&text, "%s", separator);
        append_group(&text, context, rest[k].set);
        append(&text, " %s", rest[k].what);
        separator = "; ";
    }
    cpu_fault_raise(context, culprit, culprit_lane, CPU_FAULT_BARRIER, site, "%s", message);
}
