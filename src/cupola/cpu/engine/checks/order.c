/* Which accesses are ordered before which others: happens-before, by vector clocks that exist only where they are needed.
 *
 * Most kernels order their threads by barriers of the block alone; then a stamp for the block is enough. Threads of a
 * warp get stamps of each other where they meet by bar.warp.sync, and *rows*, a stamp for each thread of the block, where
 * threads learn of others by named barriers, mbarriers, or fences with atomic operations. Blocks of a cluster and of the
 * grid know stamps of each other's blocks as a whole; that may take something for ordered which is not, never the other
 * way round.
 *
 * A block and its cluster run on one worker, so only what blocks of the grid tell each other is locked. */
#include "checks.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { MOST_BLOCKS = 1 << 14 }; /* of a launch, of which stamps are kept */

static uint32_t larger(uint32_t a, uint32_t b) { return a > b ? a : b; }

static void join(uint32_t *into, const uint32_t *from, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) into[i] = larger(into[i], from[i]);
}

static uint32_t *new_row(struct cpu_watch *watch) {
    watch->is_used = true;
    return calloc(watch->threads, sizeof(uint32_t));
}

static uint32_t *row_of_warp(struct cpu_watch *watch, uint32_t warp) {
    if (!watch->warp_row[warp]) watch->warp_row[warp] = new_row(watch);
    return watch->warp_row[warp];
}

static uint32_t *row_of_lane(struct cpu_watch *watch, uint32_t thread) {
    if (!watch->lane_row) watch->lane_row = calloc(watch->threads, sizeof *watch->lane_row);
    if (!watch->lane_row) return NULL;
    if (!watch->lane_row[thread]) watch->lane_row[thread] = new_row(watch);
    return watch->lane_row[thread];
}

/* ---- a block ------------------------------------------------------------------------------------------------------ */

static void forget(struct cpu_watch *watch) {
    if (!watch->is_used) return;
    watch->is_used = false;
    for (uint32_t i = 0; i < CPU_WARP_THREADS; i++) {
        free(watch->pairs[i]);
        free(watch->warp_row[i]);
        watch->pairs[i] = watch->warp_row[i] = NULL;
    }
    for (uint32_t i = 0; watch->lane_row && i < watch->threads; i++) free(watch->lane_row[i]);
    for (uint32_t i = 0; i < CPU_ALL_BARRIERS; i++) {
        free(watch->at_barrier[i]);
        watch->at_barrier[i] = NULL;
    }
    while (watch->objects) {
        cpu_watch_object *object = watch->objects;
        watch->objects = object->next;
        free(object->threads);
        free(object);
    }
    while (watch->copies) {
        cpu_watch_copy *copy = watch->copies;
        watch->copies = copy->next;
        free(copy);
    }
    free(watch->lane_row);
    free(watch->fenced);
    free(watch->groups);
    free(watch->bulk_groups);
    free(watch->others);
    watch->lane_row = NULL;
    watch->fenced = watch->groups = watch->bulk_groups = watch->others = NULL;
}

void cpu_watch_free(struct cpu_watch *watch) {
    if (!watch) return;
    forget(watch);
    if (watch->memory) munmap(watch->memory, watch->memory_bytes);
    free(watch);
}

void cpu_watch_launch(cpu_launch *launch, uint64_t blocks) {
    const uint32_t count = blocks < INT32_MAX ? (uint32_t)blocks : INT32_MAX;
    cpu_deed deed = {.origin = launch->origin, .variant = launch->variant};
    launch->moment = launch->variant->checks & CPU_CHECK_RACE ? cpu_moment_now : NULL;
    snprintf(deed.name, sizeof deed.name, "%s", cpu_kernel_name(launch->kernel));
    memcpy(deed.grid, launch->grid, sizeof deed.grid);
    memcpy(deed.cluster, launch->cluster, sizeof deed.cluster);
    cpu_deed_begin(&deed, launch->moment, count, &launch->low_watch);
    launch->first_watch = deed.first;
    launch->quiet = cpu_quiet_of(launch, launch->low_watch == deed.first && cpu_moments_in_one_line());
}

bool cpu_watch_begin(cpu_block *block, const cpu_launch *launch, uint64_t place, uint32_t shared_bytes) {
    struct cpu_watch *watch = block->watch;
    const unsigned checks = launch->variant->checks;
    const uint32_t threads = block->live;
    const bool sees_accesses = checks & (CPU_CHECK_RACE | CPU_CHECK_INIT);
    const uint32_t shared_words = sees_accesses ? (shared_bytes + 127) / 128 * CPU_SHADOW_ROW : 0;
    const uint32_t local_words = checks & CPU_CHECK_INIT ? ((launch->local_size + 3) / 4 * threads + 31) / 32 * 32 : 0;
    if (!watch && !(watch = block->watch = calloc(1, sizeof *watch))) return false;
    forget(watch);
    const size_t bytes = (size_t)(shared_words + local_words) * CPU_SHADOW_BYTES;
    bool is_new = false; /* and all 0 */
    if (watch->memory_bytes < bytes) {
        if (watch->memory) munmap(watch->memory, watch->memory_bytes);
        watch->memory_bytes = 0;
        watch->memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (watch->memory == MAP_FAILED) {
            watch->memory = NULL;
            watch->checks = 0; /* this block goes unchecked */
            return false;
        }
        watch->memory_bytes = bytes;
        watch->shared_words = watch->local_words = 0;
        is_new = true;
    }
    if (watch->shared_words != shared_words || watch->local_words != local_words) {
        /* What other launches have left lies elsewhere here: their records taken for those of rows would hide races. */
        if (bytes && !is_new) memset(watch->memory, 0, bytes);
        watch->shared_words = shared_words;
        watch->local_words = local_words;
        cpu_shadow_lay_out(&watch->shared, watch->memory, shared_words);
        cpu_shadow_lay_out(&watch->local, (char *)watch->memory + (size_t)shared_words * CPU_SHADOW_BYTES, local_words);
    }
    const uint32_t reserved = shared_words ? launch->variant->reserved_shared / 4 : 0;
    watch->reserved = shared_words - reserved;
    if (checks & CPU_CHECK_INIT && watch->memory) { /* NULL: the kernel has neither shared nor local memory */
        memset(watch->shared.unset, 15, watch->reserved);
        memset(watch->shared.unset + watch->reserved, 0, reserved);
        memset(watch->local.unset, 15, local_words);
    }
    watch->checks = checks;
    watch->launch = launch;
    watch->first = launch->first_watch;
    watch->count = launch->grid[0] * launch->grid[1] * launch->grid[2];
    watch->low = launch->low_watch;
    watch->moment = launch->moment;
    watch->asked[1] = 0;
    watch->id = watch->first + (uint32_t)place;
    watch->rank = block->rank;
    watch->cluster_size = block->cluster->size;
    watch->now = 1;
    watch->floor = watch->written = 0;
    watch->threads = threads;
    watch->warps = (threads + CPU_WARP_THREADS - 1) / CPU_WARP_THREADS;
    memset(watch->warp_floor, 0, sizeof watch->warp_floor);
    memset(watch->peers, 0, sizeof watch->peers);
    watch->knows_all = false;
    watch->later_count = 0;
    return true;
}

/* ---- who knows of what -------------------------------------------------------------------------------------------- */

bool cpu_watch_comes_after(struct cpu_watch *watch, uint32_t block) {
    if (!watch->moment || block < watch->low || block - watch->asked[0] < watch->asked[1]) return true;
    uint32_t range[2];
    if (!cpu_deed_comes_before(watch->moment, block, range)) return false;
    memcpy(watch->asked, range, sizeof range);
    return true;
}

bool cpu_watch_ordered(struct cpu_watch *watch, uint32_t thread, cpu_record before) {
    const uint32_t block = record_block(before), stamp = record_stamp(before), who = record_thread(before);
    if (!before || (stamp == STAMP_MOST && block - watch->first < watch->count)) return true; /* none, or forgotten */
    if (block != watch->id) {
        const uint32_t place = block - watch->first;
        if (watch->knows_all) return true;
        if (place >= watch->count) return cpu_watch_comes_after(watch, block);
        const uint32_t rank = block - (watch->id - watch->rank);
        if (rank < watch->cluster_size && stamp <= watch->peers[rank]) return true;
        return watch->others && stamp <= watch->others[place];
    }
    if (stamp <= watch->floor || who == thread) return true;
    if (who / CPU_WARP_THREADS == thread / CPU_WARP_THREADS) {
        const uint32_t warp = thread / CPU_WARP_THREADS;
        if (stamp <= watch->warp_floor[warp]) return true;
        const uint32_t *pairs = watch->pairs[warp];
        if (pairs && stamp <= pairs[thread % CPU_WARP_THREADS * CPU_WARP_THREADS + who % CPU_WARP_THREADS]) return true;
    }
    const uint32_t *row = watch->warp_row[thread / CPU_WARP_THREADS];
    if (row && stamp <= row[who]) return true;
    row = watch->lane_row ? watch->lane_row[thread] : NULL;
    return row && stamp <= row[who];
}

/* What a thread knows of all, itself up to `stamp`, goes into a row. */
static void tell(const struct cpu_watch *watch, uint32_t thread, uint32_t stamp, uint32_t *row) {
    const uint32_t warp = thread / CPU_WARP_THREADS, first = warp * CPU_WARP_THREADS, lane = thread % CPU_WARP_THREADS;
    if (watch->warp_row[warp]) join(row, watch->warp_row[warp], watch->threads);
    if (watch->lane_row && watch->lane_row[thread]) join(row, watch->lane_row[thread], watch->threads);
    for (uint32_t i = 0; i < CPU_WARP_THREADS && first + i < watch->threads; i++) {
        uint32_t known = watch->warp_floor[warp];
        if (watch->pairs[warp]) known = larger(known, watch->pairs[warp][lane * CPU_WARP_THREADS + i]);
        row[first + i] = larger(row[first + i], known);
    }
    row[thread] = larger(row[thread], stamp);
}

void cpu_watch_all(struct cpu_watch *watch) { watch->floor = watch->now++; }

/* What some threads of a warp have learned beyond it, in a row to be freed; NULL: nothing. */
static uint32_t *learned_by(struct cpu_watch *watch, uint32_t warp, uint32_t lanes) {
    uint32_t *together = NULL;
    for (uint32_t left = watch->lane_row ? lanes : 0; left; left &= left - 1) {
        const uint32_t *row = watch->lane_row[warp * CPU_WARP_THREADS + (uint32_t)__builtin_ctz(left)];
        if (!row) continue;
        if (!together && !(together = new_row(watch))) break;
        join(together, row, watch->threads);
    }
    return together;
}

/* Threads of a warp learn of a row. */
static void learn(struct cpu_watch *watch, uint32_t warp, uint32_t lanes, uint32_t alive, const uint32_t *row) {
    if (!(alive & ~lanes)) {
        uint32_t *all = row_of_warp(watch, warp);
        if (all) join(all, row, watch->threads);
        return;
    }
    for (uint32_t left = lanes; left; left &= left - 1) {
        uint32_t *mine = row_of_lane(watch, warp * CPU_WARP_THREADS + (uint32_t)__builtin_ctz(left));
        if (mine) join(mine, row, watch->threads);
    }
}

/* Shuffles, votes and the like. PTX ISA 9.4, 9.7.10.6: a thread waits "until all non-exited threads corresponding to
 * membermask have executed shfl.sync with the same qualifiers and same membermask value"; vote, match and redux say the
 * same. Only of bar.warp.sync it says (9.7.15.2): "bar.warp.sync also guarantee memory ordering among threads participating
 * in barrier." A shuffle is none of the synchronizing operations (8.4: "A barrier instruction, fence operation, release
 * operation or acquire operation"), nor of those that synchronize (8.9.4), and the CUDA C++ Programming Guide says of them:
 * "These intrinsics do not imply a memory barrier. They do not guarantee any memory ordering." So what threads have stored
 * themselves stays unordered.
 *
 * By the letter, what one of them has acquired does not come before what the others do behind the shuffle, either. That is
 * not told all the same: CUDA's own headers are written as if it did. In groups of several warps one thread sets a bit of a
 * mask (atom.or.acq_rel.cta), tells its warp the result by __shfl_sync, and all of them read what the other warps have
 * written, with no __syncwarp in between (cooperative_groups/details/sync.h, sync_warps_last_releases). Nobody who uses
 * cg::reduce could do anything about such a finding, and the same code of a user does the same. */
void cpu_watch_hand_on(struct cpu_watch *watch, uint32_t warp, uint32_t lanes, uint32_t alive) {
    uint32_t *together = learned_by(watch, warp, lanes);
    if (!together) return;
    learn(watch, warp, lanes, alive, together);
    free(together);
    for (uint32_t left = alive & ~lanes ? 0 : lanes; left; left &= left - 1) { /* the warp's row has it all */
        uint32_t **row = &watch->lane_row[warp * CPU_WARP_THREADS + (uint32_t)__builtin_ctz(left)];
        free(*row);
        *row = NULL;
    }
}

void cpu_watch_warp(struct cpu_watch *watch, uint32_t warp, uint32_t lanes, uint32_t alive) {
    cpu_watch_hand_on(watch, warp, lanes, alive);
    if (!(alive & ~lanes)) {
        watch->warp_floor[warp] = watch->now++;
        return;
    }
    uint32_t *pairs = watch->pairs[warp], known[CPU_WARP_THREADS];
    watch->is_used = true;
    if (!pairs) pairs = watch->pairs[warp] = calloc(CPU_WARP_THREADS * CPU_WARP_THREADS, sizeof *pairs);
    if (pairs) {
        for (uint32_t i = 0; i < CPU_WARP_THREADS; i++) {
            known[i] = lanes >> i & 1 ? watch->now : 0;
            for (uint32_t left = lanes; left; left &= left - 1)
                known[i] = larger(known[i], pairs[(uint32_t)__builtin_ctz(left) * CPU_WARP_THREADS + i]);
        }
        for (uint32_t left = lanes; left; left &= left - 1)
            memcpy(pairs + (uint32_t)__builtin_ctz(left) * CPU_WARP_THREADS, known, sizeof known);
    }
    watch->now++;
}

/* ---- barriers of the block, and of the cluster --------------------------------------------------------------------- */

void cpu_watch_arrive(struct cpu_watch *watch, uint32_t warp, uint32_t lanes, uint32_t barrier) {
    uint32_t **row = &watch->at_barrier[barrier];
    if (!*row && !(*row = new_row(watch))) return;
    for (uint32_t left = lanes; left; left &= left - 1)
        tell(watch, warp * CPU_WARP_THREADS + (uint32_t)__builtin_ctz(left), watch->now, *row);
    watch->now++;
}

/* For each warp, the threads that go on, and those that have not exited. */
void cpu_watch_release(struct cpu_watch *watch, uint32_t barrier, const uint32_t *waiting, const uint32_t *alive) {
    uint32_t *row = watch->at_barrier[barrier];
    watch->at_barrier[barrier] = NULL;
    for (uint32_t warp = 0; row && warp < watch->warps; warp++)
        if (waiting[warp]) learn(watch, warp, waiting[warp], alive[warp], row);
    free(row);
    watch->now++;
}

void cpu_watch_cluster(cpu_cluster *cluster) {
    if (!cpu_watch_of(cluster->blocks[0])) return;
    for (uint32_t i = 0; i < cluster->size; i++)
        if (cluster->blocks[i]->watch) cpu_watch_all(cluster->blocks[i]->watch);
    for (uint32_t i = 0; i < cluster->size; i++)
        for (uint32_t k = 0; cluster->blocks[i]->watch && k < cluster->size; k++)
            if (cluster->blocks[k]->watch) cluster->blocks[i]->watch->peers[k] = cluster->blocks[k]->watch->floor;
}

/* ---- what threads tell each other at an object --------------------------------------------------------------------- */

static cpu_watch_object *object_of(struct cpu_watch *owner, uint64_t address, bool make) {
    cpu_watch_object *object = owner->objects;
    while (object && object->address != address) object = object->next;
    if (object || !make || !(object = calloc(1, sizeof *object))) return object;
    owner->is_used = true;
    object->address = address;
    object->next = owner->objects;
    owner->objects = object;
    return object;
}

void cpu_watch_publish(struct cpu_watch *watch, struct cpu_watch *owner, uint64_t address, uint32_t thread,
                       uint32_t stamp) {
    cpu_watch_object *object = object_of(owner, address, true);
    if (!object) return;
    join(object->peers, watch->peers, CPU_CLUSTER_BLOCKS);
    object->peers[watch->rank] = larger(object->peers[watch->rank], stamp);
    if (watch == owner && (object->threads || (object->threads = new_row(watch))))
        tell(watch, thread, stamp, object->threads);
}

void cpu_watch_learn(struct cpu_watch *watch, struct cpu_watch *owner, uint64_t address, uint32_t warp, uint32_t lanes,
                     uint32_t alive) {
    const cpu_watch_object *object = owner->objects ? object_of(owner, address, false) : NULL;
    if (!object) return;
    const uint32_t own = watch->peers[watch->rank];
    join(watch->peers, object->peers, CPU_CLUSTER_BLOCKS);
    watch->peers[watch->rank] = own;
    if (object->threads && watch == owner) learn(watch, warp, lanes, alive, object->threads);
}

/* ---- and the blocks of a grid -------------------------------------------------------------------------------------- */

/* What was told at an address, by blocks of one launch. */
struct told {
    uint64_t address;
    uint32_t first; /* of the launch */
    uint32_t *stamps;
    struct told *next;
};
enum { BUCKETS = 1024 };
static struct told *told[BUCKETS];
static pthread_mutex_t told_lock = PTHREAD_MUTEX_INITIALIZER;

static struct told **bucket_of(uint64_t address) { return &told[(address >> 2) * UINT64_C(0x9E3779B97F4A7C15) >> 54]; }

void cpu_watch_publish_to_grid(struct cpu_watch *watch, uint64_t address, uint32_t stamp) {
    if (watch->count > MOST_BLOCKS || (watch->count < 2 && !watch->moment)) return;
    pthread_mutex_lock(&told_lock);
    struct told **bucket = bucket_of(address), *found = *bucket;
    while (found && (found->address != address || found->first != watch->first)) found = found->next;
    if (!found && (found = calloc(1, sizeof *found))) {
        *found = (struct told){address, watch->first, calloc(watch->count, sizeof(uint32_t)), *bucket};
        *bucket = found;
    }
    if (found && found->stamps) {
        if (watch->others) join(found->stamps, watch->others, watch->count);
        const uint32_t place = watch->id - watch->first;
        found->stamps[place] = larger(found->stamps[place], stamp);
    }
    pthread_mutex_unlock(&told_lock);
}

void cpu_watch_learn_of_grid(struct cpu_watch *watch, uint64_t address) {
    if (watch->count < 2 && !watch->moment) return;
    if (watch->count > MOST_BLOCKS) {
        watch->knows_all = true;
        return;
    }
    if (watch->moment) cpu_deed_listen(watch->moment, address);
    pthread_mutex_lock(&told_lock);
    const struct told *found = NULL;
    for (const struct told *other = *bucket_of(address); other; other = other->next) {
        if (other->address != address) continue;
        if (other->first == watch->first) found = other;
        else if (watch->moment) cpu_deed_learn(watch->moment, other->first);
    }
    if (found && found->stamps) {
        watch->is_used = true;
        if (!watch->others) watch->others = calloc(watch->count, sizeof(uint32_t));
        if (watch->others) join(watch->others, found->stamps, watch->count);
    }
    pthread_mutex_unlock(&told_lock);
}

/* Helpers are told of an access before it happens, and another block may release between the two. What this block does next
 * comes behind both. */
void cpu_watch_learn_later(struct cpu_watch *watch, uint64_t address) {
    for (uint32_t i = 0; i < watch->later_count; i++)
        if (watch->later[i] == address) return;
    if (watch->later_count == CPU_WARP_THREADS) cpu_watch_learn_now(watch);
    watch->later[watch->later_count++] = address;
}

void cpu_watch_learn_now(struct cpu_watch *watch) {
    for (uint32_t i = 0; i < watch->later_count; i++) cpu_watch_learn_of_grid(watch, watch->later[i]);
    watch->later_count = 0;
}

void cpu_watch_end_launch(cpu_launch *launch) {
    pthread_mutex_lock(&told_lock);
    for (int i = 0; i < BUCKETS; i++)
        for (struct told **at = &told[i]; *at;) {
            struct told *entry = *at;
            if (entry->first != launch->first_watch) {
                at = &entry->next;
                continue;
            }
            if (launch->moment) cpu_deed_told(entry->address, entry->first);
            *at = entry->next;
            free(entry->stamps);
            free(entry);
        }
    pthread_mutex_unlock(&told_lock);
}
