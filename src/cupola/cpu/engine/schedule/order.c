/* The order in which blocks begin, and in which the warps of a block take turns. CUDA promises none; programs that need one are found by running them in another than
 * the ascending one, in which block 0 comes first. Turn i goes to block (start + i * stride) mod n, which is a
 * permutation, because stride and n have no common factor. */
#include "schedule.h"

static uint64_t common_factor(uint64_t a, uint64_t b) {
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

void cpu_order_begin(cpu_job *job) {
    const uint64_t count = job->cluster_count, order = job->launch->order;
    job->start = (order >> 32) % count;
    job->stride = (order & UINT32_MAX) % count;
    if (!job->stride) job->stride = 1;
    while (common_factor(job->stride, count) != 1) job->stride++;
    job->chunk = 1;
}

uint64_t cpu_order_place(const cpu_job *job, uint64_t turn) {
    if (turn >= job->cluster_count) return turn;
    return (uint64_t)((job->start + (unsigned __int128)turn * job->stride) % job->cluster_count);
}

uint32_t cpu_order_warp(const cpu_job *job, const cpu_block *block, uint32_t turn) {
    const uint64_t count = block->warp_count, mixed = job->start + block->ctaid[0] + block->ctaid[1] + block->ctaid[2];
    uint64_t stride = job->launch->order % count;
    while (common_factor(stride, count) != 1) stride++;
    return (uint32_t)((mixed + turn * stride) % count);
}
