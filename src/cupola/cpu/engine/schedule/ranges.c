/* Which thread begins which blocks. Each thread that is expected to take part has a range of neighbors of its own, so
 * that launch after launch it comes back to the same memory; when it is through with them, it goes on with those of others.
 *
 * Where blocks may wait for each other, or print, there is one range for all: programs may rely on it that blocks with
 * lower numbers have begun. */
#include "schedule.h"

void cpu_ranges_begin(cpu_job *job, cpu_range *ranges, uint32_t count) {
    if (count > CPU_MOST_RANGES) count = CPU_MOST_RANGES;
    if (count > job->cluster_count) count = (uint32_t)job->cluster_count;
    uint64_t each = job->cluster_count / count, more = job->cluster_count % count, begin = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t end = begin + each + (i < more);
        atomic_init(&ranges[i].next, begin);
        ranges[i].begin = begin;
        ranges[i].end = end;
        begin = end;
    }
    job->ranges = ranges;
    job->range_count = count;
}

bool cpu_range_take(cpu_job *job, uint32_t *range, uint64_t *next, uint64_t *end) {
    for (uint32_t tried = 0; tried < job->range_count; tried++) {
        cpu_range *from = &job->ranges[*range];
        if (atomic_load_explicit(&from->next, memory_order_relaxed) < from->end) {
            *next = atomic_fetch_add_explicit(&from->next, job->chunk, memory_order_relaxed);
            *end = from->end - *next > job->chunk ? *next + job->chunk : from->end;
            if (*next < from->end) return true;
        }
        if (++*range == job->range_count) *range = 0;
    }
    atomic_store_explicit(&job->all_begun, true, memory_order_relaxed);
    return false;
}

uint64_t cpu_ranges_begun(const cpu_job *job) {
    uint64_t begun = 0;
    for (uint32_t i = 0; i < job->range_count; i++) {
        const cpu_range *range = &job->ranges[i];
        uint64_t next = atomic_load_explicit(&range->next, memory_order_relaxed);
        begun += (next < range->end ? next : range->end) - range->begin;
    }
    return begun;
}
