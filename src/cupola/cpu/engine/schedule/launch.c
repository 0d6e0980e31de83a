/* A launch from its beginning to its end, and the clock. */
#include <string.h>

#include "common/common.h"
#include "engine/memory/memory.h"
#include "schedule.h"

/* %clock and %globaltimer: called by machine code, too. Nanoseconds. */
CPU_HELPER uint64_t cupola_clock(void) { return clock_now(); }

/* Waking a helper costs tens of microseconds, so a launch asks for them once it has run that long. */
enum { ALONE_NANOSECONDS = 40000 };

struct progress {
    uint64_t begin;
    bool offered;
};

static void offer_when_long(cpu_job *job, void *argument) {
    struct progress *progress = argument;
    if (progress->offered || clock_now() - progress->begin < ALONE_NANOSECONDS) return;
    progress->offered = true;
    cpu_pool_offer(job);
}

/* Cooperative groups keep the barrier of a grid in memory that the driver provides, by %envreg1 and %envreg2: a word
 * for its size, which nobody reads, and the barrier, which is zero at first. 0 when there is no memory. */
static uint64_t new_grid_workspace(int device) {
    enum { BYTES = 16 };
    uint64_t base, room;
    if (cpu_memory_obtain(device, CPU_MEMORY_MODULE, BYTES, NULL, &base, &room)) return 0;
    memset((void *)(uintptr_t)base, 0, BYTES);
    return base;
}

/* What has been quick before, with as many blocks or nearly so, is expected to be quick again. */
enum { QUICK_NANOSECONDS = 2000000, QUICK_FACTOR = 4 };

static uint64_t blocks_of(const cpu_launch *launch) {
    return (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
}

/* Not what may launch more, whose end is not known. */
bool cpu_engine_is_quick(const cpu_launch *launch) {
    if (cpu_kernel_get_info(launch->kernel)->launches) return false;
    uint64_t known = atomic_load_explicit(&launch->variant->quick_blocks, memory_order_relaxed);
    return blocks_of(launch) <= QUICK_FACTOR * known;
}

static void note_if_quick(const cpu_launch *launch, uint64_t begin) {
    if (clock_now() - begin > QUICK_NANOSECONDS) return;
    atomic_store_explicit(&((cpu_variant *)launch->variant)->quick_blocks, blocks_of(launch), memory_order_relaxed);
}

int cpu_engine_run(cpu_launch *launch) {
    uint32_t size = launch->cluster[0] * launch->cluster[1] * launch->cluster[2];
    uint64_t clusters = blocks_of(launch) / size;
    uint64_t threads = cpu_share_threads(launch->share), chunk = clusters / (threads * 32);
    cpu_job job = {
        .launch = launch,
        .cluster_count = clusters,
        .cluster_size = size,
        .chunk = chunk < 1    ? 1
                 : chunk > 16 ? 16
                              : (uint32_t)chunk,
    };
    uint64_t to_learn = cpu_engine_is_quick(launch) ? 0 : clock_now();
    launch->fault = (cpu_fault){.kind = CPU_FAULT_NONE};
    launch->local_size = cpu_stack_local_size(launch);
    if (unlikely(launch->order)) cpu_order_begin(&job);
    if (launch->cooperative && !(job.grid_workspace = new_grid_workspace(launch->device))) {
        launch->fault = (cpu_fault){.kind = CPU_FAULT_INTERNAL, .message = "there is no memory for the grid's barrier"};
        return CPU_FAULT_INTERNAL;
    }
    struct progress progress = {.begin = threads > 1 && clusters > 1 ? clock_now() : 0,
                                .offered = threads < 2 || clusters < 2};
    cpu_share_enter(launch->share);
    cpu_stop_begin(&job);
    cpu_worker_run(&job, progress.offered ? NULL : offer_when_long, &progress);
    cpu_share_leave(launch->share);
    if (progress.offered && threads > 1 && clusters > 1) cpu_pool_withdraw(&job);
    cpu_stop_end(&job);
    if (to_learn) note_if_quick(launch, to_learn);
    if (job.grid_workspace) cpu_memory_release(job.grid_workspace);
    return atomic_load(&job.fault);
}
