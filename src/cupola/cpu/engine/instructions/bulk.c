/* Bulk copies (PTX ISA, "cp.async.bulk", "cp.reduce.async.bulk"), done at once when a thread issues them: waiting for a
 * bulk group is no work then, and an mbarrier learns of the bytes right away. A thread copies between global memory,
 * its block's shared memory and that of the cluster's other blocks, multiples of 16 bytes at multiples of 16.
 * And st.bulk, which does not wait for other threads, either. */
#include "atomics.h"

#include <string.h>

#include "engine/checks/checks.h"
#include "mbarrier.h"

enum { UNIT = 16 }; /* bytes */

/* The two ends of a lane's copy; false after a fault. A range of no bytes may be anywhere. */
static bool find_ends(cpu_context *context, const cpu_warp *warp, int lane, cpu_site target, cpu_site source,
                      uint64_t to, uint64_t from, uint32_t size, void **written, const void **read) {
    const cpu_block *owner;
    if (size % UNIT) {
        cpu_fault_raise(context, warp, lane, CPU_FAULT_INSTRUCTION, target.index,
                        "a bulk copy of %u bytes: it must be a multiple of %d", size, UNIT);
        return false;
    }
    *read = cpu_resolve_range(context, warp, lane, source, from, size, UNIT, &owner);
    if (!*read) return false;
    *written = cpu_resolve_range(context, warp, lane, target, to, size, UNIT, &owner);
    return *written != NULL;
}

/* ---- called by machine code --------------------------------------------------------------------------------- */

/* `packed` is the site of what is written, `source` of what is read. `barriers` is NULL for copies of a bulk group.
 * With `ranks`, each lane writes to the blocks whose bits are set there, and signals their mbarriers. */
CPU_HELPER uint32_t cupola_bulk_copy(CPU_ACCESS_ARGUMENTS, uint64_t source, const uint64_t *to, const uint64_t *from,
                                     const uint32_t *sizes, const uint64_t *barriers, const uint32_t *ranks) {
    CPU_ACCESS_ARGUMENTS_USED
    const cpu_site written = unpack_site(packed), read = unpack_site(source);
    for (; mask; mask &= mask - 1) {
        const int lane = __builtin_ctz(mask);
        uint32_t left = ranks ? ranks[lane] & 0xFFFF : 1;
        for (; left; left &= left - 1) {
            uint64_t target = to[lane], barrier = barriers ? barriers[lane] : 0;
            if (ranks) {
                target = address_in_rank(target, (uint32_t)__builtin_ctz(left));
                barrier = address_in_rank(barrier, (uint32_t)__builtin_ctz(left));
            }
            void *end;
            const void *begin;
            if (!find_ends(context, warp, lane, written, read, target, from[lane], sizes[lane], &end, &begin)) return 1;
            memmove(end, begin, sizes[lane]);
            if (asked(context->block->watch != NULL)) {
                cpu_watch_fetched(context, warp, lane, read, from[lane], sizes[lane], barrier);
                cpu_watch_moved(context, warp, lane, written, target, sizes[lane], barrier);
                cpu_watch_spread(context, target, from[lane], sizes[lane]);
            }
            if (barriers && cpu_mbarrier_complete(context, warp, lane, written, barrier, sizes[lane])) return 1;
        }
    }
    return 0;
}

/* Each element of the source goes into that of the target by an atomic operation on elements of the given size. */
CPU_HELPER uint32_t cupola_bulk_reduce(CPU_ACCESS_ARGUMENTS, uint64_t source, const uint64_t *to, const uint64_t *from,
                                       const uint32_t *sizes, const uint64_t *barriers, cpu_atomic *operation,
                                       uint32_t element) {
    CPU_ACCESS_ARGUMENTS_USED
    const cpu_site written = unpack_site(packed), read = unpack_site(source);
    for (; mask; mask &= mask - 1) {
        const int lane = __builtin_ctz(mask);
        void *end;
        const void *begin;
        if (!find_ends(context, warp, lane, written, read, to[lane], from[lane], sizes[lane], &end, &begin)) return 1;
        if (asked(context->block->watch != NULL)) {
            cpu_watch_fetched(context, warp, lane, read, from[lane], sizes[lane], barriers ? barriers[lane] : 0);
            cpu_watch_used(context, warp, lane, read, from[lane], sizes[lane]);
            cpu_watch_write(context, warp, lane, written, to[lane], sizes[lane], CPU_ACCESS_ATOMIC);
        }
        if (cpu_atomic_elements(context, warp, written, operation, to[lane], begin, element, sizes[lane] / element))
            return 1;
        if (barriers && cpu_mbarrier_complete(context, warp, lane, written, barriers[lane], sizes[lane])) return 1;
    }
    return 0;
}

enum { FILL_UNIT = 8, FILL_LIMIT = 1 << 24 }; /* bytes */

/* st.bulk: zeros in a range of the block's own shared memory. */
CPU_HELPER uint32_t cupola_bulk_fill(CPU_ACCESS_ARGUMENTS, const uint64_t *to, const uint64_t *sizes) {
    CPU_ACCESS_ARGUMENTS_USED
    const cpu_site site = unpack_site(packed);
    for (; mask; mask &= mask - 1) {
        const int lane = __builtin_ctz(mask);
        const uint64_t size = sizes[lane];
        if (size % FILL_UNIT || size > FILL_LIMIT) {
            cpu_fault_raise(context, warp, lane, CPU_FAULT_INSTRUCTION, site.index,
                            "st.bulk of %llu bytes: it must be a multiple of %d and at most %d",
                            (unsigned long long)size, FILL_UNIT, FILL_LIMIT);
            return 1;
        }
        const cpu_block *owner;
        void *begin = cpu_resolve_range(context, warp, lane, site, to[lane], size, FILL_UNIT, &owner);
        if (!begin) return 1;
        if (owner != context->block) {
            cpu_fault_raise(context, warp, lane, CPU_FAULT_INSTRUCTION, site.index,
                            "st.bulk at %#llx, which is not in the shared memory of the block",
                            (unsigned long long)to[lane]);
            return 1;
        }
        memset(begin, 0, size);
        if (asked(context->block->watch != NULL))
            cpu_watch_write(context, warp, lane, site,
                            CPU_SHARED_WINDOW | (uint64_t)((uint8_t *)begin - context->shared), size, CPU_ACCESS_PLAIN);
    }
    return 0;
}

/* What st.async and red.async do after their access. */
CPU_HELPER uint32_t cupola_bulk_signal(CPU_ACCESS_ARGUMENTS, const uint64_t *to, const uint64_t *barriers,
                                       uint32_t bytes, uint32_t reduces) {
    CPU_ACCESS_ARGUMENTS_USED
    const cpu_site site = unpack_site(packed);
    for (; mask; mask &= mask - 1) {
        const int lane = __builtin_ctz(mask);
        if (asked(context->block->watch != NULL)) {
            if (reduces) cpu_watch_used(context, warp, lane, site, to[lane], bytes);
            else cpu_watch_moved(context, warp, lane, site, to[lane], bytes, barriers[lane]);
        }
        if (cpu_mbarrier_complete(context, warp, lane, site, barriers[lane], bytes)) return 1;
    }
    return 0;
}

/* cp.async of lanes whose source may be shorter than what is written: the rest becomes zero, and is not read. */
CPU_HELPER uint32_t cupola_copy_some(CPU_ACCESS_ARGUMENTS, uint64_t source, const uint64_t *to, const uint64_t *from,
                                     const uint32_t *sizes) {
    CPU_ACCESS_ARGUMENTS_USED
    const cpu_site written = unpack_site(packed), read = unpack_site(source);
    for (; mask; mask &= mask - 1) {
        const int lane = __builtin_ctz(mask);
        const cpu_block *owner;
        uint32_t size = sizes[lane] < written.size ? sizes[lane] : written.size;
        uint8_t *end = cpu_resolve(context, warp, lane, written, to[lane]);
        if (!end) return 1;
        if (size) {
            const void *begin = cpu_resolve_range(context, warp, lane, read, from[lane], size, read.size, &owner);
            if (!begin) return 1;
            memcpy(end, begin, size);
            if (asked(context->block->watch != NULL)) {
                cpu_watch_fetched(context, warp, lane, read, from[lane], size, 0);
                cpu_watch_spread(context, CPU_SHARED_WINDOW | (uint32_t)to[lane], from[lane], size);
            }
        }
        memset(end + size, 0, written.size - size);
    }
    return 0;
}
