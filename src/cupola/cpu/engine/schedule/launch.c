/* A launch from its beginning to its end, and the clocks. */
#include <stdlib.h>
#include <string.h>

#include "common/common.h"
#include "engine/above.h"
#include "engine/checks/checks.h"
#include "engine/checks/findings.h"
#include "engine/checks/host.h"
#include "engine/memory/memory.h"
#include "schedule.h"

/* %globaltimer: called by machine code, too. Nanoseconds. */
CPU_HELPER uint64_t cupola_clock(void) { return clock_now(); }

/* %clock: as many cycles as the modeled GPU would have had in the time, so that kernels which wait for some wait as long
 * as there. */
CPU_HELPER uint64_t cupola_cycles(void) {
    enum { MILLISECOND = 1000000 };
    uint64_t now = clock_now(), rate = cpu_driver_clock();
    return now / MILLISECOND * rate + now % MILLISECOND * rate / MILLISECOND;
}

/* A helper comes at once if it has not gone to sleep since the launch before, and otherwise after tens of microseconds.
 * So a launch asks for one more for each such time that the rest of it would take, since others would come too late. It
 * knows that from the launches before, or begins alone until it can tell. It looks again whenever it has run twice as long,
 * because later blocks may take longer. */
enum { COLD_NANOSECONDS = 40000, WARM_NANOSECONDS = 4000 };

struct progress {
    uint64_t begin, next; /* when to look */
    int helpers, most, warm;
    uint64_t blocks; /* that this thread has run */
};

static int helpers_worth(const struct progress *progress, double rest) {
    double cold = rest / COLD_NANOSECONDS, warm = rest / WARM_NANOSECONDS;
    if (warm > progress->warm) warm = progress->warm;
    double wanted = cold > warm ? cold : warm;
    return wanted < progress->most ? (int)wanted : progress->most;
}

static void ask_for_helpers(cpu_job *job, void *argument, uint64_t blocks) {
    struct progress *progress = argument;
    progress->blocks += blocks;
    if (progress->helpers >= progress->most) return;
    uint64_t now = clock_now(), elapsed = now - progress->begin;
    if (now < progress->next) return;
    progress->next = now + elapsed;
    uint64_t begun = cpu_ranges_begun(job);
    int wanted = progress->most;
    if (begun >= job->cluster_count) return;
    /* Blocks that wait for others have begun and are not done: they do not tell how long it takes. */
    if (progress->blocks && !atomic_load_explicit(&job->stalls, memory_order_relaxed))
        wanted =
            helpers_worth(progress, (double)elapsed / (double)progress->blocks * (double)(job->cluster_count - begun));
    if (wanted > progress->helpers && cpu_pool_offer(job, wanted)) progress->helpers = wanted;
}

/* How many helpers what took so long before is worth: it may have few long blocks. 0: none, or it is not known. */
static int expected_helpers(const cpu_job *job, const struct progress *progress) {
    float each = atomic_load_explicit(&job->launch->variant->block_time, memory_order_relaxed);
    return helpers_worth(progress, (double)each * (double)job->cluster_count);
}

/* By what this thread has done itself. A launch that was shorter counts at once, one that was longer by half. */
static void note_time(const cpu_job *job, const struct progress *progress) {
    if (!progress->blocks || job->stalls) return;
    cpu_variant *variant = (cpu_variant *)job->launch->variant;
    float each = (float)(clock_now() - progress->begin) / (float)progress->blocks;
    float before = atomic_load_explicit(&variant->block_time, memory_order_relaxed);
    if (each > before) each = (each + before) / 2;
    atomic_store_explicit(&variant->block_time, each, memory_order_relaxed);
}

/* How many blocks a thread takes at a time: enough that taking them costs nothing, but no longer than a helper is worth, so
 * that nobody waits at the end. One while it is not known how long they take. */
enum { MOST_AT_A_TIME = 16, CHUNKS_OF_A_THREAD = 32 };

static uint32_t blocks_at_a_time(const cpu_variant *variant, uint64_t clusters, uint64_t threads) {
    uint64_t count = clusters / (threads * CHUNKS_OF_A_THREAD);
    if (threads > 1) {
        float each = atomic_load_explicit(&variant->block_time, memory_order_relaxed);
        if ((float)count * each > COLD_NANOSECONDS) count = (uint64_t)(COLD_NANOSECONDS / each);
        if (each <= 0) count = 1;
    }
    return count < 1 ? 1 : count > MOST_AT_A_TIME ? MOST_AT_A_TIME : (uint32_t)count;
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
    if (cpu_kernel_get_info(launch->kernel)->launches || launch->variant->stops) return false;
    uint64_t known = atomic_load_explicit(&launch->variant->quick_blocks, memory_order_relaxed);
    return blocks_of(launch) <= QUICK_FACTOR * known;
}

bool cpu_engine_is_debugged(const cpu_launch *launch) { return launch->variant->stops; }

static void note_if_quick(const cpu_launch *launch, uint64_t begin) {
    if (clock_now() - begin > QUICK_NANOSECONDS) return;
    atomic_store_explicit(&((cpu_variant *)launch->variant)->quick_blocks, blocks_of(launch), memory_order_relaxed);
}

int cpu_engine_run(cpu_launch *launch) {
    uint32_t size = launch->cluster[0] * launch->cluster[1] * launch->cluster[2];
    uint64_t clusters = blocks_of(launch) / size;
    /* Under a debugger, and in an order that is asked for, blocks run one after the other. */
    const bool one_by_one = launch->variant->stops || launch->order;
    uint64_t threads = unlikely(one_by_one) ? 1 : cpu_share_threads(launch->share);
    cpu_range ranges[CPU_MOST_RANGES];
    cpu_job job = {
        .launch = launch,
        .cluster_count = clusters,
        .cluster_size = size,
        .chunk = blocks_at_a_time(launch->variant, clusters, threads),
    };
    uint64_t to_learn = cpu_engine_is_quick(launch) ? 0 : clock_now();
    launch->fault = (cpu_fault){.kind = CPU_FAULT_NONE};
    launch->local_size = cpu_stack_local_size(launch);
    if (unlikely(launch->order)) cpu_order_begin(&job);
    if (launch->cooperative && !(job.grid_workspace = new_grid_workspace(launch->device))) {
        launch->fault = (cpu_fault){.kind = CPU_FAULT_INTERNAL, .message = "there is no memory for the grid's barrier"};
        return CPU_FAULT_INTERNAL;
    }
    if (unlikely(launch->variant->counter_count) &&
        !(job.counters = calloc(launch->variant->counter_count, sizeof *job.counters))) {
        launch->fault = (cpu_fault){.kind = CPU_FAULT_INTERNAL, .message = "there is no memory for what is counted"};
        if (job.grid_workspace) cpu_memory_release(job.grid_workspace);
        return CPU_FAULT_INTERNAL;
    }
    bool entered = false;
    if (asked(launch->variant->checks)) {
        entered = cpu_deed_enter(cpu_moment_now);
        cpu_watch_launch(launch, blocks_of(launch));
        launch->findings = cpu_findings_new();
    }
    struct progress progress = {.most = (int)(threads < clusters ? threads : clusters) - 1};
    int expected = 0;
    if (progress.most) {
        progress.warm = launch->variant->apart ? cpu_pool_warm() : 0;
        progress.begin = clock_now();
        progress.next = progress.begin + (progress.warm ? 2 * WARM_NANOSECONDS : COLD_NANOSECONDS);
        expected = expected_helpers(&job, &progress);
    }
    bool one_range = launch->order || !launch->variant->apart || size > 1;
    cpu_ranges_begin(&job, ranges, one_range ? 1 : 1 + (uint32_t)(expected ? expected : progress.most));
    cpu_share_enter(launch->share);
    cpu_stop_begin(&job);
    if (expected && cpu_pool_offer(&job, expected)) progress.helpers = expected;
    cpu_worker_run(&job, 0, progress.most ? ask_for_helpers : NULL, &progress);
    if (progress.most) note_time(&job, &progress);
    cpu_share_leave(launch->share);
    cpu_pool_withdraw(&job);
    cpu_stop_end(&job);
    if (to_learn) note_if_quick(launch, to_learn);
    if (job.grid_workspace) cpu_memory_release(job.grid_workspace);
    if (asked(launch->variant->checks)) {
        if (launch->variant->checks & CPU_CHECK_RACE) cpu_host_launched(launch);
        cpu_deed_leave(entered);
        cpu_watch_end_launch(launch);
        cpu_findings_tell(launch);
        cpu_findings_free(launch->findings);
        launch->findings = NULL;
    }
    if (unlikely(launch->variant->instruments)) cpu_variant_count(launch, job.counters);
    free((void *)job.counters);
    if (unlikely(launch->variant->stops != NULL)) cpu_debug_over(&job);
    return atomic_load(&job.fault);
}
