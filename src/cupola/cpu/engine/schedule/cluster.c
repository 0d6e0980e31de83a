/* Clusters: blocks that run at the same time and reach each other's shared memory (PTX ISA, "barrier.cluster"; CUDA C++
 * Programming Guide, "Thread Block Clusters").
 *
 * One worker holds all blocks of a cluster and runs them in turn (scheduler.c), so what they share needs no host
 * atomics. Arriving at the cluster's barrier and waiting for it are two instructions. A thread that has arrived keeps a
 * mark until the phase is complete, when all threads that have not exited have one; the marks are then removed. To wait
 * is to have the mark and not to go on. */
#include "schedule.h"

#include "engine/checks/checks.h"

bool cpu_cluster_release(cpu_cluster *cluster) {
    /* A unit that has arrived stays so until the phase is complete, and one that has exited forever. So continue where
     * a unit was missing. */
    for (; cluster->block < cluster->size; cluster->block++, cluster->unit = 0) {
        const cpu_block *block = cluster->blocks[cluster->block];
        for (; block->live && cluster->unit < block->warp_count; cluster->unit++) {
            const cpu_warp *warp = &block->warps[cluster->unit];
            if (warp->live & ~warp->arrived) return false;
        }
    }
    cluster->block = cluster->unit = 0;
    if (asked(cluster->blocks[0]->watch != NULL)) cpu_watch_cluster(cluster);
    for (uint32_t rank = 0; rank < cluster->size; rank++) {
        cpu_block *block = cluster->blocks[rank];
        if (!block->live) continue;
        for (uint32_t i = 0; i < block->warp_count; i++) block->warps[i].arrived = 0;
        cpu_barrier_release(block, CPU_CLUSTER_BARRIER);
    }
    return true;
}

/* ---- called by machine code --------------------------------------------------------------------------------- */

/* barrier.cluster.arrive. Returns nonzero on a fault. */
CPU_HELPER uint32_t cupola_cluster_arrive(cpu_context *context, cpu_warp *warp, uint32_t mask, uint32_t site) {
    uint32_t again = warp->arrived & mask;
    if (again) {
        cpu_fault_raise(context, warp, __builtin_ctz(again), CPU_FAULT_INSTRUCTION, site,
                        "the thread arrives at the cluster's barrier a second time, without waiting for it in between");
        return 1;
    }
    warp->arrived |= mask;
    context->progress++;
    return 0;
}

/* barrier.cluster.wait in the independent body: the lanes that must wait do so; returns those that need not. */
CPU_HELPER uint32_t cupola_cluster_park(cpu_context *context, cpu_warp *warp, uint32_t mask, uint32_t successor,
                                        uint32_t site) {
    (void)context;
    for (uint32_t left = mask & warp->arrived; left; left &= left - 1) {
        int lane = __builtin_ctz(left);
        warp->lanes[lane] = (struct cpu_lane){CPU_CLUSTER_BARRIER, site, successor, CPU_RESULT_NONE, 0};
    }
    warp->parked |= mask & warp->arrived;
    return mask & ~warp->arrived;
}
