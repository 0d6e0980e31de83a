/* The block scheduler: runs the units of a block until all are done, and keeps as many blocks begun as spinning
 * kernels need.
 *
 * A worker thread runs one block at a time: every unit in turn, up to where it must wait, until none is left.
 * When all units of a block only spin (waiting for another block, another stream or the host), the worker puts
 * the block aside and begins the next one, until as many are resident as the modeled GPU would hold; then it
 * goes round. So any block may wait for any other that fits on the GPU beside it, which is what cooperative
 * launches promise and what hand-written grid barriers rely on.
 *
 * The blocks of a cluster are one thing to the worker: they begin together, run in turn, and are put aside together. */
#include "schedule.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "common/common.h"
#include "engine/above.h"
#include "engine/checks/checks.h"
#include "engine/memory/memory.h"

enum {
    SPIN_BUDGET = 256,    /* trips of a waiting loop in one call of a body */
    SPINS_TO_DIVERGE = 8, /* calls in a row that end in YIELD before lanes are made independent */
    PATIENCE = 16,        /* passes over the units in which nothing but spinning happens, until a block stalls ... */
    LITTLE_PATIENCE = 2,  /* ... and when that has happened several times in the launch */
    STALLS_TO_LEARN = 8,
    RESIDENT_BLOCKS = 4224, /* 132 SMs with 32 blocks each */
    RESIDENT_BYTES = 1 << 30,
    ROW_BYTES = 32 * 32,            /* a warp's lanes with the largest access each */
    STUCK_NANOSECONDS = 1000000000, /* so long do threads look at mbarriers only, until that is called a deadlock */
};

/* ---- memory of resident blocks ------------------------------------------------------------------------------ */

/* Where the parts of a block lie in its memory. On both sides of shared memory there is room for a row of accesses,
 * since lanes that do not run may read outside; behind frames and local memory there is some for whole vector
 * registers. */
struct layout {
    size_t warps, lanes, stacks, shared, frames, local, total;
    uint32_t warp_count;
};

/* The program's shared memory and, behind it, what is reserved for the system. */
static uint32_t shared_size(const cpu_launch *launch) {
    const cpu_variant *variant = launch->variant;
    uint32_t size = variant->static_shared + launch->dynamic_shared;
    return variant->reserved_shared ? (uint32_t)round_up(size, 128) + variant->reserved_shared : size;
}

static struct layout lay_out(const cpu_launch *launch) {
    const cpu_variant *variant = launch->variant;
    size_t threads = (size_t)launch->block[0] * launch->block[1] * launch->block[2];
    struct layout layout;
    layout.warp_count = (uint32_t)((threads + variant->width - 1) / variant->width);
    layout.warps = 0;
    layout.lanes = round_up(layout.warp_count * sizeof(cpu_warp), 64);
    size_t lanes = layout.warp_count * (size_t)variant->width;
    layout.stacks = round_up(layout.lanes + lanes * sizeof(struct cpu_lane), 64);
    layout.shared = layout.stacks + (variant->has_stack ? lanes * 2 * sizeof(uint32_t) : 0);
    layout.shared = round_up(layout.shared + ROW_BYTES, 1024);
    layout.frames = round_up(layout.shared + shared_size(launch) + ROW_BYTES, 1024);
    layout.local = round_up(layout.frames + (size_t)layout.warp_count * variant->frame_bytes + 64, 1024);
    layout.total = layout.local + lanes * launch->local_size + 64;
    return layout;
}

/* What a thread keeps for its next launch, until it ends. */
struct keepsakes {
    cpu_block *spare; /* blocks that are not in use */
    uint32_t spare_count;
    cpu_site_cache *sites;
    uint32_t site_count;
};
enum { SPARE_BLOCKS = 4, SPARE_BYTES = 8 << 20 };

static pthread_key_t keepsakes_key;

static void block_delete(cpu_block *block) {
    if (block->memory) munmap(block->memory, block->memory_bytes);
    cpu_watch_free(block->watch);
    free(block);
}

static void drop_keepsakes(void *pointer) {
    struct keepsakes *kept = pointer;
    while (kept->spare) {
        cpu_block *block = kept->spare;
        kept->spare = block->next;
        block_delete(block);
    }
    free(kept->sites);
    free(kept);
}

static void make_keepsakes_key(void) { pthread_key_create(&keepsakes_key, drop_keepsakes); }

static struct keepsakes *keepsakes(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_keepsakes_key);
    struct keepsakes *kept = pthread_getspecific(keepsakes_key);
    if (!kept) {
        kept = calloc(1, sizeof *kept);
        if (kept) pthread_setspecific(keepsakes_key, kept);
    }
    return kept;
}

static cpu_block *block_new(const cpu_launch *launch, const struct layout *layout, struct keepsakes *kept) {
    cpu_block *block = kept->spare;
    if (block) {
        kept->spare = block->next;
        kept->spare_count--;
    } else {
        block = calloc(1, sizeof *block);
        if (!block) return NULL;
    }
    if (block->memory_bytes < layout->total) {
        if (block->memory) munmap(block->memory, block->memory_bytes);
        block->memory = NULL;
        size_t bytes = round_up(layout->total, 65536);
        void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED) {
            block_delete(block);
            return NULL;
        }
        block->memory = memory;
        block->memory_bytes = bytes;
    }
    const cpu_variant *variant = launch->variant;
    uint8_t *memory = block->memory;
    block->warps = (cpu_warp *)(memory + layout->warps);
    block->lanes = (struct cpu_lane *)(memory + layout->lanes);
    block->shared = memory + layout->shared;
    block->frames = memory + layout->frames;
    block->local = memory + layout->local;
    block->warp_count = layout->warp_count;
    for (uint32_t i = 0; i < block->warp_count; i++) {
        uint32_t first = i * variant->width;
        block->warps[i] = (cpu_warp){
            .first = first,
            .tid = {variant->thread_ids[0][first], variant->thread_ids[1][first], variant->thread_ids[2][first]},
            .local = block->local + (size_t)first * launch->local_size,
            .frames = (uint32_t *)(memory + layout->stacks) + 2 * (size_t)first,
            .frame = block->frames + (size_t)i * variant->frame_bytes,
            .lanes = block->lanes + first,
        };
    }
    return block;
}

static void block_free(cpu_block *block, struct keepsakes *kept) {
    if (kept->spare_count >= SPARE_BLOCKS || block->memory_bytes > SPARE_BYTES) {
        block_delete(block);
        return;
    }
    block->next = kept->spare;
    kept->spare = block;
    kept->spare_count++;
}

/* The place of a thing with an index in a box. */
static void place_in(const uint32_t extent[3], uint64_t index, uint32_t place[3]) {
    uint64_t row = index / extent[0];
    place[0] = (uint32_t)(index % extent[0]);
    place[1] = (uint32_t)(row % extent[1]);
    place[2] = (uint32_t)(row / extent[1]);
}

static void block_begin(cpu_block *block, const cpu_launch *launch) {
    block->live = launch->block[0] * launch->block[1] * launch->block[2];
    cpu_body body = cpu_variant_body(launch->variant);
    uint32_t width = launch->variant->width, left = block->live;
    for (uint32_t i = 0; i < block->warp_count; i++) {
        cpu_warp *warp = &block->warps[i];
        uint32_t count = left < width ? left : width;
        left -= count;
        warp->state = 0;
        warp->body = body;
        warp->mask = warp->live = warp->seen = (uint32_t)((UINT64_C(1) << count) - 1);
        warp->status = CPU_WARP_READY;
        warp->independent = launch->variant->stops != NULL; /* code for a debugger has no other body */
        warp->spins = 0;
        warp->parked = warp->syncing = warp->arrived = warp->stuck = 0;
        warp->turn = 0;
        warp->products = 0;
        if (launch->variant->has_stack) cpu_stack_begin(launch, warp);
    }
    if (block->busy_barriers) {
        memset(block->barriers, 0, sizeof block->barriers);
        block->busy_barriers = 0;
    }
}

/* ---- the blocks of a cluster -------------------------------------------------------------------------------- */

static void cluster_free(cpu_block *leader, struct keepsakes *kept) {
    for (uint32_t rank = leader->own.size; rank-- > 0;) block_free(leader->own.blocks[rank], kept);
}

/* Blocks for a cluster; the one of rank 0 stands for it. NULL when there is no memory. */
static cpu_block *cluster_new(const cpu_launch *launch, uint32_t size, const struct layout *layout,
                              struct keepsakes *kept) {
    cpu_block *leader = NULL;
    for (uint32_t rank = 0; rank < size; rank++) {
        cpu_block *block = block_new(launch, layout, kept);
        if (!block) {
            if (leader) cluster_free(leader, kept);
            return NULL;
        }
        if (!rank) {
            leader = block;
            leader->own = (cpu_cluster){.size = 0};
        }
        block->cluster = &leader->own;
        block->rank = rank;
        leader->own.blocks[leader->own.size++] = block;
    }
    return leader;
}

/* Blocks are dealt out to the multiprocessors in turn. Each has its number, of those that the launch may use. */
static uint32_t multiprocessor_of(const cpu_launch *launch, uint64_t block) {
    if (!launch->places) return (uint32_t)(block % launch->multiprocessors);
    return launch->places[block % launch->place_count];
}

/* Begin the cluster with an index in the grid of clusters. */
static void cluster_begin(cpu_context *context, cpu_block *leader, const cpu_launch *launch, uint64_t index) {
    cpu_cluster *cluster = &leader->own;
    cluster->block = cluster->unit = 0;
    cluster->watches = false;
    cluster->stuck_since = 0;
    place_in(context->nclusterid, index, leader->clusterid);
    for (uint32_t rank = 0; rank < cluster->size; rank++) {
        cpu_block *block = cluster->blocks[rank];
        if (rank) memcpy(block->clusterid, leader->clusterid, sizeof block->clusterid);
        if (cluster->size > 1) {
            place_in(launch->cluster, rank, block->cluster_ctaid);
            for (int i = 0; i < 3; i++)
                block->ctaid[i] = block->clusterid[i] * launch->cluster[i] + block->cluster_ctaid[i];
        } else {
            memcpy(block->ctaid, block->clusterid, sizeof block->ctaid);
        }
        block->multiprocessor = multiprocessor_of(launch, index * cluster->size + rank);
        block_begin(block, launch);
        if (asked(launch->variant->checks))
            cpu_watch_begin(block, launch, index * cluster->size + rank, context->shared_size);
        else if (asked(block->watch != NULL)) block->watch->checks = 0;
    }
}

/* ---- one block ---------------------------------------------------------------------------------------------- */

enum outcome { BLOCK_DONE, BLOCK_STALLED, BLOCK_WAITING, BLOCK_FAULTED };

/* Continue a unit whose whole state is in its frame with the body in which its lanes are independent. */
static bool make_independent(cpu_context *context, cpu_warp *warp) {
    if (warp->independent) return true;
    cpu_refusal refusal;
    void *paused = cpu_guard_pause(); /* this runs Python and LLVM */
    const int before = cpu_driver_forbid(1);
    warp->body = cpu_variant_independent(context->job->launch->variant, &refusal);
    cpu_driver_forbid(before);
    cpu_guard_resume(paused);
    if (!warp->body) {
        cpu_fault_raise(context, warp, 0, CPU_FAULT_INTERNAL, UINT32_MAX, "%s", refusal.message);
        return false;
    }
    warp->independent = 1;
    warp->seen = warp->mask;
    warp->spins = 0;
    warp->turn = 0;
    return true;
}

static inline uint32_t run_unit(cpu_context *context, cpu_block *block, cpu_warp *warp) {
    return warp->body(context, warp, context->job->launch->params, block->shared, warp->frame, context->sites);
}

/* Every unit is ready, and most often all of them go to the same barrier, time and again, and then end. As long as they
 * do, arrivals need not be counted. Returns 0 when the block is done. When a unit does something else, returns the
 * number of units that have run in this round; the last of them is that unit, and its state is in `other`. */
static uint32_t run_in_step(cpu_context *context, cpu_block *block, uint32_t *other) {
    cpu_warp *const warps = block->warps, *const end = warps + block->warp_count;
    for (;;) {
        uint32_t first = run_unit(context, block, warps);
        if (first != CPU_STATE_DONE && CPU_STATE_KIND(first) != CPU_STATE_SYNC) {
            *other = first;
            return 1;
        }
        warps->state = first;
        for (cpu_warp *warp = warps + 1; warp < end; warp++) {
            uint32_t state = run_unit(context, block, warp);
            if (__builtin_expect(state != first, 0)) {
                *other = state;
                return (uint32_t)(warp - warps) + 1;
            }
            warp->state = state;
        }
        if (first == CPU_STATE_DONE) return 0;
        if (asked(block->watch != NULL)) cpu_watch_barrier(block, 0);
    }
}

/* As CPU_STATE_WAITING below, for a checked launch. */
static bool release_watched(cpu_block *block, cpu_warp *warp) {
    struct cpu_watch *watch = cpu_watch_of(block);
    const uint32_t before = warp->syncing;
    if (!cpu_warp_sync_release(warp)) warp->status = CPU_WARP_BLOCKED;
    const uint32_t released = before & ~warp->syncing;
    if (watch && released) cpu_watch_warp(watch, warp->first / CPU_WARP_THREADS, released, warp->mask);
    return true;
}

/* What became of a unit whose body returned `state`: false after a fault. */
static bool settle(cpu_context *context, cpu_block *block, cpu_warp *warp, uint32_t state) {
    uint32_t kind = CPU_STATE_KIND(state);
    warp->state = state;
    uint32_t alive = kind == CPU_STATE_DONE ? 0 : warp->mask;
    if (warp->live != alive) {
        block->live -= (uint32_t)(__builtin_popcount(warp->live) - __builtin_popcount(alive));
        warp->live = alive;
        context->progress++;
    }
    switch (kind) {
        case CPU_STATE_DONE:
            warp->status = CPU_WARP_FINISHED;
            context->progress++;
            return true;
        case CPU_STATE_SYNC: warp->barrier = warp->expected = warp->votes = 0; break;
        case CPU_STATE_BARRIER:
            if (warp->barrier < CPU_BARRIERS) break;
            cpu_fault_raise(context, warp, __builtin_ctz(warp->mask), CPU_FAULT_BARRIER,
                            cpu_barrier_site(context, warp), "barrier %u does not exist (there are 0 to 15)",
                            warp->barrier);
            return false;
        case CPU_STATE_CLUSTER:
            context->progress++;
            warp->spins = 0;
            warp->barrier = CPU_CLUSTER_BARRIER;
            if (warp->arrived & warp->live) warp->status = CPU_WARP_BLOCKED;
            return true;
        case CPU_STATE_WARPGROUP:
            context->progress++;
            warp->spins = 0;
            return cpu_warpgroup_arrive(context, warp);
        case CPU_STATE_YIELD:
            if (warp->watches || !warp->stuck) block->cluster->watches = true;
            return !warp->diverged || ++warp->spins < SPINS_TO_DIVERGE || make_independent(context, warp);
        case CPU_STATE_INDEPENDENT: context->progress++; return make_independent(context, warp);
        case CPU_STATE_WAITING:
            context->progress++;
            if (asked(block->watch != NULL)) return release_watched(block, warp);
            if (!cpu_warp_sync_release(warp)) warp->status = CPU_WARP_BLOCKED;
            return true;
        default: /* CPU_STATE_FAULT */
            if (unlikely(context->job->launch->variant->stops != NULL)) cpu_debug_failed(context, warp);
            return false;
    }
    cpu_barrier_arrive(block, warp);
    warp->spins = 0;
    context->progress++;
    return true;
}

static bool all_ready(const cpu_block *block) {
    for (uint32_t i = 0; i < block->warp_count; i++)
        if (block->warps[i].status != CPU_WARP_READY || block->warps[i].independent) return false;
    return true;
}

static void enter(cpu_context *context, cpu_block *block) {
    memcpy(context->ctaid, block->ctaid, sizeof context->ctaid);
    memcpy(context->clusterid, block->clusterid, sizeof context->clusterid);
    if (block->cluster->size > 1) {
        memcpy(context->cluster_ctaid, block->cluster_ctaid, sizeof context->cluster_ctaid);
        context->cluster_ctarank = block->rank;
    }
    context->multiprocessor = block->multiprocessor;
    context->block = block;
    context->shared = block->shared;
    context->units_end = block->warps + block->warp_count;
    context->row_end = block->ctaid[0] + 1;
}

/* All units of the block have ended. */
static enum outcome end_block(cpu_block *block) {
    block->live = 0;
    if (asked(block->watch != NULL)) cpu_watch_end(block);
    return BLOCK_DONE;
}

/* Run the block until it is done, until its units do nothing but spin for so many passes, or until all of them wait. */
static enum outcome advance(cpu_context *context, cpu_block *block, int patience) {
    enter(context, block);
    if (context->job->launch->variant->whole_blocks) {
        if (run_unit(context, block, block->warps) != CPU_STATE_DONE) return BLOCK_FAULTED;
        return end_block(block);
    }
    for (int idle = 0; idle < patience;) {
        uint64_t progress = context->progress;
        bool ran = false;
        uint32_t i = 0;
        if (likely(!context->job->stride) && all_ready(block)) {
            uint32_t state, count = run_in_step(context, block, &state);
            if (!count) return end_block(block);
            for (; i < count; i++) {
                cpu_warp *warp = &block->warps[i];
                if (!settle(context, block, warp, i == count - 1 ? state : warp->state)) return BLOCK_FAULTED;
            }
            ran = true;
        }
        for (; i < block->warp_count; i++) {
            cpu_warp *warp = &block->warps[likely(!context->job->stride) ? i : cpu_order_warp(context->job, block, i)];
            if (warp->status != CPU_WARP_READY) continue;
            ran = true;
            if (!settle(context, block, warp, run_unit(context, block, warp))) return BLOCK_FAULTED;
        }
        if (block->live == 0) return end_block(block);
        if (block->busy_barriers && cpu_barrier_release_complete(block)) {
            context->progress++;
        } else if (!ran) {
            if (!cpu_cluster_release(block->cluster)) return BLOCK_WAITING;
            context->progress++;
        }
        idle = context->progress != progress ? 0 : idle + 1;
    }
    return BLOCK_STALLED;
}

/* The same with the blocks of a cluster. */
static enum outcome advance_together(cpu_context *context, cpu_cluster *cluster, int patience) {
    if (cluster->size == 1) return advance(context, cluster->blocks[0], patience);
    for (int idle = 0; idle < patience;) {
        uint64_t progress = context->progress;
        bool alive = false, spins = false;
        for (uint32_t rank = 0; rank < cluster->size; rank++) {
            cpu_block *block = cluster->blocks[rank];
            if (!block->live) continue;
            enum outcome outcome = advance(context, block, 1);
            if (outcome == BLOCK_FAULTED) return outcome;
            if (outcome == BLOCK_DONE) context->progress++;
            spins |= outcome == BLOCK_STALLED;
            alive |= block->live != 0;
        }
        if (!alive) return BLOCK_DONE;
        if (context->progress == progress && !spins) {
            if (!cpu_cluster_release(cluster)) return BLOCK_WAITING;
            context->progress++;
        }
        idle = context->progress != progress ? 0 : idle + 1;
    }
    return BLOCK_STALLED;
}

/* Whether a cluster that stalled can never go on: for some time all of its threads have waited for each other, and for
 * mbarriers, which no other thread can reach. */
static bool is_stuck(cpu_cluster *cluster, bool progressed) {
    bool hopeful = progressed || cluster->watches || !cpu_mbarrier_stuck(cluster);
    cluster->watches = false;
    if (hopeful) {
        cluster->stuck_since = 0;
        return false;
    }
    if (!cluster->stuck_since) {
        cluster->stuck_since = clock_now();
        return false;
    }
    return clock_now() - cluster->stuck_since > STUCK_NANOSECONDS;
}

/* ---- a worker ----------------------------------------------------------------------------------------------- */

struct run {
    cpu_context context;
    cpu_job *job;
    cpu_share *share;
    struct keepsakes *kept;
    struct layout layout;
    cpu_block *first, *last; /* resident clusters that stalled, longest ago first */
    cpu_block *current;
    uint32_t residents, limit;
    bool exhausted; /* all clusters have been begun */
    uint32_t range; /* from which it takes them */
    uint64_t taken; /* how many at last */
    void (*between)(cpu_job *, void *, uint64_t);
    void *argument;
};

static void put_aside(struct run *run, cpu_block *block) {
    block->next = NULL;
    if (run->last) run->last->next = block;
    else run->first = block;
    run->last = block;
    run->residents++;
}

static cpu_block *take_oldest(struct run *run) {
    cpu_block *block = run->first;
    run->first = block->next;
    if (!run->first) run->last = NULL;
    run->residents--;
    return block;
}

/* Everything here spins: give way to the threads that it may wait for, longer each time. */
static void give_way(cpu_share *share, unsigned rounds) {
    struct timespec pause = {0, rounds < 1024 ? 20000 : 200000};
    cpu_share_leave(share);
    if (rounds < 64) sched_yield();
    else nanosleep(&pause, NULL);
    cpu_share_enter(share);
}

/* After some blocks. */
static void pause_between(struct run *run) {
    if (run->between) run->between(run->job, run->argument, run->taken);
    cpu_share_turn(run->share);
}

static void raise_no_memory(struct run *run) {
    cpu_fault_raise(&run->context, NULL, 0, CPU_FAULT_INTERNAL, UINT32_MAX,
                    "there is no memory for the registers and shared memory of a block");
}

/* Take the next blocks that have not been begun. Returns whether there are any. */
static bool take_blocks(struct run *run, uint64_t *next, uint64_t *end) {
    cpu_job *job = run->job;
    if (!cpu_range_take(job, &run->range, next, end)) return false;
    run->taken = *end - *next;
    if (unlikely(job->stride)) *next = cpu_order_place(job, *next), *end = *next + 1;
    return true;
}

/* Should neighboring blocks run together? When each unit is a row of its block, the units that are neighbors in
 * memory are those of neighboring blocks, and processors like to read on where they are. */
static bool prefers_rows(const cpu_launch *launch, const cpu_variant *variant) {
    return variant->rows_of_blocks && !launch->dynamic_shared && variant->block[0] == variant->width &&
           variant->block[1] > 1;
}

/* No thread waits, and blocks form no clusters: one block after the other, in memory that is prepared once. */
static void run_whole_blocks(struct run *run) {
    cpu_job *job = run->job;
    cpu_context *context = &run->context;
    uint64_t next, end;
    if (!take_blocks(run, &next, &end)) return;
    cpu_block *block = run->current = cluster_new(job->launch, 1, &run->layout, run->kept);
    if (!block) {
        raise_no_memory(run);
        return;
    }
    cluster_begin(context, block, job->launch, next);
    enter(context, block);
    const bool rows = prefers_rows(job->launch, job->launch->variant);
    do {
        uint32_t at[3], count = 1;
        place_in(context->nctaid, next, at);
        for (; next < end; next += count) {
            uint64_t left = end - next, in_row = context->nctaid[0] - at[0];
            if (rows) count = (uint32_t)(left < in_row ? left : in_row);
            for (int i = 0; i < 3; i++) context->ctaid[i] = context->clusterid[i] = block->ctaid[i] = at[i];
            context->row_end = at[0] + count;
            context->multiprocessor = multiprocessor_of(job->launch, next);
            if (atomic_load_explicit(&job->fault, memory_order_relaxed)) return;
            if (asked(job->launch->variant->checks)) cpu_watch_begin(block, job->launch, next, context->shared_size);
            if (run_unit(context, block, block->warps) != CPU_STATE_DONE) return;
            if (asked(block->watch != NULL)) cpu_watch_end(block);
            at[0] += count;
            if (at[0] < context->nctaid[0]) continue;
            at[0] = 0;
            if (++at[1] < context->nctaid[1]) continue;
            at[1] = 0;
            at[2]++;
        }
        pause_between(run);
    } while (take_blocks(run, &next, &end));
}

/* No thread of the cluster can ever go on. */
static void give_up(struct run *run, const cpu_cluster *cluster) {
    cpu_deadlock(&run->context, cluster);
    if (unlikely(run->job->launch->variant->stops != NULL)) cpu_debug_failed(&run->context, NULL);
}

/* The body of cpu_worker_run: machine code runs below here, so a fault may leave it by a long jump. */
static void run_blocks(void *argument) {
    struct run *run = argument;
    cpu_job *job = run->job;
    if (job->launch->variant->whole_blocks && job->cluster_size == 1) {
        run_whole_blocks(run);
        return;
    }
    uint64_t next = 0, end = 0;
    uint32_t stalled_in_a_row = 0;
    unsigned rounds = 0, stalls = 0;
    for (;;) {
        if (atomic_load_explicit(&job->fault, memory_order_relaxed)) return;
        if (atomic_load_explicit(&job->stop, memory_order_relaxed)) {
            cpu_stop_raise(&run->context);
            return;
        }
        if (next == end && !run->exhausted && run->residents < run->limit) {
            if (end) pause_between(run);
            run->exhausted = !take_blocks(run, &next, &end);
            if (run->exhausted) end = next;
        }
        cpu_block *block = run->current;
        run->current = NULL;
        if (next != end && run->residents < run->limit) {
            if (!block) block = cluster_new(job->launch, job->cluster_size, &run->layout, run->kept);
            if (!block) {
                if (!run->residents) {
                    raise_no_memory(run);
                    return;
                }
                run->limit = run->residents;
                continue;
            }
            cluster_begin(&run->context, block, job->launch, next++);
        } else if (run->residents) {
            if (block) cluster_free(block, run->kept);
            block = take_oldest(run);
        } else {
            run->current = block;
            return;
        }
        run->current = block;
        uint64_t progress = run->context.progress;
        switch (advance_together(&run->context, &block->own, stalls < STALLS_TO_LEARN ? PATIENCE : LITTLE_PATIENCE)) {
            case BLOCK_DONE: stalled_in_a_row = rounds = 0; break; /* run->current is begun again */
            case BLOCK_WAITING: give_up(run, &block->own); return;
            case BLOCK_STALLED:
                if (is_stuck(&block->own, run->context.progress != progress)) {
                    give_up(run, &block->own);
                    return;
                }
                if (!stalls++) atomic_store_explicit(&job->stalls, true, memory_order_relaxed);
                run->current = NULL;
                put_aside(run, block);
                if (++stalled_in_a_row > run->residents) {
                    give_way(run->share, rounds++);
                    stalled_in_a_row = 0;
                }
                break;
            case BLOCK_FAULTED: return;
        }
    }
}

/* The cached allocations of the access sites: of one launch, since memory may be freed after it. */
static cpu_site_cache *fresh_site_caches(struct keepsakes *kept, uint32_t count) {
    if (kept->site_count < count) {
        free(kept->sites);
        kept->sites = aligned_alloc(64, round_up(count * sizeof *kept->sites, 64));
        kept->site_count = kept->sites ? count : 0;
    }
    if (kept->sites) memset(kept->sites, 0, count * sizeof *kept->sites);
    return kept->sites;
}

/* What a worker has counted goes to the launch. */
static void add_counters(cpu_job *job, const uint64_t *counters) {
    for (uint32_t i = 0; i < job->launch->variant->counter_count; i++)
        if (counters[i]) atomic_fetch_add_explicit(&job->counters[i], counters[i], memory_order_relaxed);
}

void cpu_worker_run(cpu_job *job, uint32_t worker, void (*between)(cpu_job *, void *, uint64_t), void *argument) {
    const cpu_launch *launch = job->launch;
    const cpu_variant *variant = launch->variant;
    struct keepsakes *kept = keepsakes();
    struct run run = {.job = job,
                      .share = launch->share,
                      .kept = kept,
                      .layout = lay_out(launch),
                      .range = worker % job->range_count,
                      .between = between,
                      .argument = argument};
    size_t affordable = RESIDENT_BYTES / run.layout.total;
    run.limit = (affordable < RESIDENT_BLOCKS ? (uint32_t)affordable : RESIDENT_BLOCKS) / job->cluster_size;
    if (!run.limit) run.limit = 1;
    run.context = (cpu_context){
        .shared_size = shared_size(launch),
        .ntid = {launch->block[0], launch->block[1], launch->block[2]},
        .dynamic_shared = launch->dynamic_shared,
        .nctaid = {launch->grid[0], launch->grid[1], launch->grid[2]},
        .local_size = launch->local_size,
        .grid_id = launch->grid_id,
        .current_graph = launch->current_graph,
        .quiet = launch->quiet,
        .variables = launch->variables,
        .thread_ids = {variant->thread_ids[0], variant->thread_ids[1], variant->thread_ids[2]},
        .params = (uint64_t)(uintptr_t)launch->params,
        .budget = SPIN_BUDGET,
        .grid_workspace = job->grid_workspace,
        .nclusterid = {launch->grid[0] / launch->cluster[0], launch->grid[1] / launch->cluster[1],
                       launch->grid[2] / launch->cluster[2]},
        .cluster_nctaid = {launch->cluster[0], launch->cluster[1], launch->cluster[2]},
        .cluster_nctarank = job->cluster_size,
        .is_explicit_cluster = launch->explicit_cluster,
        .nsmid = launch->multiprocessors,
        .param_bytes = launch->param_bytes,
        .width = variant->width,
        .sites = kept ? fresh_site_caches(kept, variant->site_count + 1) : NULL,
        .job = job,
    };
    if (unlikely(job->counters)) run.context.counters = calloc(variant->counter_count, sizeof *run.context.counters);
    if (!run.context.sites || (job->counters && !run.context.counters)) {
        cpu_fault_raise(&run.context, NULL, 0, CPU_FAULT_INTERNAL, UINT32_MAX, "out of memory");
        return;
    }
    cpu_job *before = cpu_stop_enter(job);
    cpu_guard_call(&run.context, run_blocks, &run);
    if (unlikely(variant->stops != NULL) && atomic_load(&job->fault)) cpu_debug_failed(&run.context, NULL);
    cpu_stop_leave(before);
    if (run.current) cluster_free(run.current, kept);
    while (run.first) cluster_free(take_oldest(&run), kept);
    if (unlikely(job->counters)) {
        add_counters(job, run.context.counters);
        free(run.context.counters);
    }
}
