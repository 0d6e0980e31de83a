/* Threads that wait for each other forever: who waits where.
 *
 * No thread can continue when all threads of a cluster, or of a block without one, wait at barriers or only look at
 * mbarriers again and again. The report goes through the blocks and groups the threads that wait for the same. */
#include "schedule.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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

/* What a thread may wait for. A number below CPU_BARRIERS is a barrier of the block. */
enum {
    AT_CLUSTER = CPU_CLUSTER_BARRIER,
    AT_MBARRIER = CPU_ALL_BARRIERS, /* the number holds its address, too */
    AT_WARP_SYNC,
    AT_OPERATION,
};

/* Where a lane of a unit waits, as a kind and the offset of an mbarrier; false when it has exited or does something
 * else. */
static bool place_of(const cpu_warp *warp, int lane, uint32_t *kind, uint32_t *offset, uint32_t *site) {
    uint32_t bit = 1u << lane;
    const struct cpu_lane *wait = &warp->lanes[lane];
    *offset = 0;
    *site = wait->site;
    if (!(warp->live & bit)) return false;
    if (warp->parked & bit) {
        *kind = wait->barrier;
    } else if (warp->syncing & bit) {
        *kind = AT_WARP_SYNC;
    } else if (warp->status == CPU_WARP_BLOCKED && !warp->independent) {
        *kind = warp->barrier;
        *site = UINT32_MAX;
    } else if (warp->stuck & bit) {
        *kind = AT_MBARRIER;
        *offset = wait->barrier;
    } else if (warp->independent) {
        *kind = AT_OPERATION;
        *site = warp->site;
    } else {
        return false; /* waits for the lanes of its unit that are stuck */
    }
    return true;
}

/* The linear index of a thread as its coordinates in the block. */
static void append_thread(struct text *text, const cpu_context *context, uint32_t thread) {
    append(text, "(%u, %u, %u)", context->thread_ids[0][thread], context->thread_ids[1][thread],
           context->thread_ids[2][thread]);
}

static void append_group(struct text *text, const cpu_context *context, uint32_t first, uint32_t last, uint32_t count) {
    append(text, count == 1 ? "thread " : "%u threads from ", count);
    append_thread(text, context, first);
    if (count > 1) {
        append(text, " to ");
        append_thread(text, context, last);
    }
}

static void append_mbarrier(struct text *text, const cpu_context *context, const cpu_block *block, uint32_t address) {
    const cpu_cluster *cluster = block->cluster;
    uint32_t rank = (address >> CPU_RANK_SHIFT) - 1, offset = address & ((1u << CPU_RANK_SHIFT) - 1);
    const uint8_t *shared = rank < cluster->size ? cluster->blocks[rank]->shared : block->shared;
    uint32_t arrivals, expected;
    int32_t bytes;
    append(text, " for the mbarrier at offset %u of shared memory", offset);
    if (offset + 8 > context->shared_size || !cpu_mbarrier_lacks(shared, offset, &arrivals, &expected, &bytes)) return;
    append(text, ", whose phase lacks %u of %u arrivals", arrivals, expected);
    if (bytes) append(text, " and %d bytes of asynchronous copies", (int)bytes);
}

static void append_place(struct text *text, const cpu_context *context, const cpu_block *block, uint32_t kind,
                         uint32_t offset) {
    const cpu_barrier *barrier = &block->barriers[kind < CPU_ALL_BARRIERS ? kind : 0];
    uint32_t threads = 0;
    switch (kind) {
        case AT_CLUSTER:
            for (uint32_t rank = 0; rank < block->cluster->size; rank++) threads += block->cluster->blocks[rank]->live;
            append(text, " at the cluster's barrier for all %u threads of the cluster that have not exited", threads);
            break;
        case AT_MBARRIER: append_mbarrier(text, context, block, offset); break;
        case AT_WARP_SYNC: append(text, " at __syncwarp() for members that never arrive"); break;
        case AT_OPERATION:
            append(text,
                   " in a warp operation (shuffle, vote, match, reduce, matrix product) for members that never arrive");
            break;
        default:
            if (kind >= CPU_WARPGROUP_BARRIER)
                append(text, " in wgmma.wait_group for the %u threads of their warpgroup, of which %u have arrived",
                       barrier->expected, cpu_barrier_counted(block, barrier));
            else if (barrier->expected)
                append(text, " at barrier %u for %u threads, of which %u have arrived", kind, barrier->expected,
                       cpu_barrier_counted(block, barrier));
            else append(text, " at barrier %u for all %u threads of the block that have not exited", kind, block->live);
    }
}

/* The groups of a block that wait for the same, in the order of their first threads. */
static void append_block(struct text *text, const cpu_context *context, const cpu_block *block) {
    uint32_t told[CPU_BLOCK_THREADS / CPU_WARP_THREADS] = {0};
    uint32_t width = context->width, total = block->warp_count * width;
    const char *separator = "";
    for (uint32_t first = 0; first < total; first++) {
        uint32_t kind, offset, site, count = 0, last = first, wanted, wanted_offset;
        if (told[first / 32] >> first % 32 & 1) continue;
        if (!place_of(&block->warps[first / width], (int)(first % width), &wanted, &wanted_offset, &site)) continue;
        for (uint32_t thread = first; thread < total; thread++) {
            if (!place_of(&block->warps[thread / width], (int)(thread % width), &kind, &offset, &site)) continue;
            if (kind != wanted || offset != wanted_offset) continue;
            told[thread / 32] |= 1u << thread % 32;
            last = thread;
            count++;
        }
        append(text, "%s", separator);
        append_group(text, context, first, last, count);
        append(text, count == 1 && wanted != AT_OPERATION ? " waits" : " wait");
        append_place(text, context, block, wanted, wanted_offset);
        separator = "; ";
    }
}

void cpu_deadlock(cpu_context *context, const cpu_cluster *cluster) {
    char message[sizeof((cpu_fault *)0)->message];
    struct text text = {message, sizeof message};
    *message = 0;
    const cpu_warp *culprit = NULL;
    const cpu_block *where = NULL;
    int culprit_lane = 0;
    uint32_t culprit_site = UINT32_MAX;
    for (uint32_t rank = 0; rank < cluster->size; rank++) {
        const cpu_block *block = cluster->blocks[rank];
        if (!block->live) continue;
        for (uint32_t i = 0; i < block->warp_count && !culprit; i++) {
            const cpu_warp *warp = &block->warps[i];
            for (uint32_t left = warp->live; left && !culprit; left &= left - 1) {
                uint32_t kind, offset;
                culprit_lane = __builtin_ctz(left);
                if (!place_of(warp, culprit_lane, &kind, &offset, &culprit_site)) continue;
                culprit = warp;
                where = block;
                if (culprit_site == UINT32_MAX) culprit_site = cpu_barrier_site(context, warp);
            }
        }
        if (cluster->size > 1)
            append(&text, "%sblock (%u, %u, %u): ", *message ? "\n  " : "", block->ctaid[0], block->ctaid[1],
                   block->ctaid[2]);
        append_block(&text, context, block);
    }
    if (where) memcpy(context->ctaid, where->ctaid, sizeof context->ctaid);
    cpu_fault_raise(context, culprit, culprit_lane, CPU_FAULT_BARRIER, culprit_site, "%s", message);
}
