/* mbarrier objects (PTX ISA, "mbarrier"): barriers in shared memory whose phases count arrivals and bytes.
 *
 * A phase is complete when no arrivals are pending and the transaction count is zero; the next one then begins with the
 * expected arrivals pending. The 64 bits are opaque to programs. Here they are
 *
 *     pending arrivals (20 bits), expected arrivals (20), transaction count (22, signed), 1, parity of the phase
 *
 * and the state that an arrival returns is what they were before it. Asynchronous copies are done when they are issued,
 * so bytes may be counted as completed before they are expected: the count is below zero then, and the phase incomplete
 * because the thread that expects them has not arrived.
 *
 * Only threads of the block's cluster can complete a phase, so threads that do nothing but wait for mbarriers can be
 * found out when they wait forever. */
#include "mbarrier.h"

#include <stdio.h>
#include <string.h>

#include "access.h"
#include "engine/checks/checks.h"
#include "engine/schedule/above.h"

enum {
    COUNT_BITS = CPU_MBARRIER_COUNT_BITS,
    BYTES_BITS = 22,
    COUNT_MAX = (1 << COUNT_BITS) - 1,
    BYTES_MAX = (1 << 20) - 1
};

typedef struct mbarrier {
    uint32_t pending, expected;
    int32_t bytes;
    bool valid, parity;
} mbarrier;

static mbarrier unpack(uint64_t bits) {
    return (mbarrier){
        .pending = (uint32_t)bits & COUNT_MAX,
        .expected = (uint32_t)(bits >> COUNT_BITS) & COUNT_MAX,
        .bytes = (int32_t)((int64_t)(bits << (64 - 2 * COUNT_BITS - BYTES_BITS)) >> (64 - BYTES_BITS)),
        .valid = bits >> 62 & 1,
        .parity = bits >> 63,
    };
}

static uint64_t pack(mbarrier b) {
    return b.pending | (uint64_t)b.expected << COUNT_BITS |
           ((uint64_t)(uint32_t)b.bytes & ((1u << BYTES_BITS) - 1)) << 2 * COUNT_BITS | (uint64_t)b.valid << 62 |
           (uint64_t)b.parity << 63;
}

static void complete_if_done(mbarrier *b) {
    if (b->pending || b->bytes) return;
    b->pending = b->expected;
    b->parity = !b->parity;
}

bool cpu_mbarrier_lacks(const uint8_t *shared, uint32_t offset, uint32_t *arrivals, uint32_t *expected,
                        int32_t *bytes) {
    uint64_t bits;
    memcpy(&bits, shared + offset, sizeof bits);
    mbarrier b = unpack(bits);
    *arrivals = b.pending;
    *expected = b.expected;
    *bytes = b.bytes;
    return b.valid;
}

bool cpu_mbarrier_stuck(const cpu_cluster *cluster) {
    for (uint32_t rank = 0; rank < cluster->size; rank++) {
        const cpu_block *block = cluster->blocks[rank];
        for (uint32_t i = 0; block->live && i < block->warp_count; i++)
            if (block->warps[i].status == CPU_WARP_READY && !block->warps[i].stuck) return false;
    }
    return true;
}

/* ---- finding the object ------------------------------------------------------------------------------------- */

/* One lane's operation. */
struct operation {
    cpu_context *context;
    const cpu_warp *warp;
    int lane;
    cpu_site site;
    uint64_t address;
};

static uint32_t offset_of(const struct operation *op) { return (uint32_t)op->address & ((1u << CPU_RANK_SHIFT) - 1); }

static uint32_t misuse(const struct operation *op, const char *what, uint32_t number, uint32_t limit) {
    char text[256];
    snprintf(text, sizeof text, what, number, limit);
    cpu_fault_raise(op->context, op->warp, op->lane, CPU_FAULT_INSTRUCTION, op->site.index,
                    "the mbarrier at offset %u of shared memory: %s", offset_of(op), text);
    return 1;
}

/* The place of the object; NULL after a fault. */
static uint64_t *find_place(const struct operation *op, const cpu_block **owner) {
    uint64_t *place = cpu_resolve_range(op->context, op->warp, op->lane, op->site, op->address, 8, 8, owner);
    if (place && !*owner) {
        cpu_fault_raise(op->context, op->warp, op->lane, CPU_FAULT_INSTRUCTION, op->site.index,
                        "an mbarrier lies in shared memory; %#llx is an address elsewhere",
                        (unsigned long long)op->address);
        return NULL;
    }
    return place;
}

/* The same, of an object that was initialized. */
static uint64_t *find(const struct operation *op, mbarrier *b) {
    const cpu_block *owner;
    uint64_t *place = find_place(op, &owner);
    if (!place) return NULL;
    *b = unpack(*place);
    if (b->valid) return place;
    misuse(op, "it was not initialized (mbarrier.init, init() of cuda::barrier), or overwritten", 0, 0);
    return NULL;
}

/* ---- the operations ----------------------------------------------------------------------------------------- */

static uint32_t add_bytes(const struct operation *op, uint64_t *place, mbarrier *b, int64_t bytes) {
    int64_t sum = b->bytes + bytes;
    if (sum > BYTES_MAX || sum < -BYTES_MAX)
        return misuse(op, "its transaction count leaves the range of %u bytes", BYTES_MAX, 0);
    b->bytes = (int32_t)sum;
    *place = pack(*b);
    op->context->progress++;
    return 0;
}

uint32_t cpu_mbarrier_complete(cpu_context *context, const cpu_warp *warp, int lane, cpu_site site, uint64_t address,
                               uint32_t bytes) {
    const struct operation op = {context, warp, lane, site, address};
    mbarrier b;
    uint64_t *place = find(&op, &b);
    if (!place || add_bytes(&op, place, &b, -(int64_t)bytes)) return 1;
    complete_if_done(&b);
    *place = pack(b);
    if (asked(context->block->watch != NULL)) cpu_watch_arrival(context, warp, lane, address);
    return 0;
}

static uint32_t arrive(const struct operation *op, uint32_t count, uint32_t bytes, uint32_t flags, uint64_t *state) {
    mbarrier b;
    uint64_t *place = find(op, &b);
    if (!place) return 1;
    *state = pack(b);
    if (bytes && add_bytes(op, place, &b, bytes)) return 1;
    if (count > b.pending) return misuse(op, "%u arrivals, but its phase lacks %u only", count, b.pending);
    if (flags & CPU_MBARRIER_DROP) b.expected -= count;
    b.pending -= count;
    if (flags & CPU_MBARRIER_NO_COMPLETE && !b.pending && !b.bytes)
        return misuse(op, "an arrival with .noComplete completes its phase", 0, 0);
    complete_if_done(&b);
    *place = pack(b);
    op->context->progress++;
    if (asked(op->context->block->watch != NULL)) cpu_watch_arrival(op->context, op->warp, op->lane, op->address);
    return 0;
}

/* ---- called by machine code --------------------------------------------------------------------------------- */

#define FOR_LANES(...)                                                                                                 \
    CPU_ACCESS_ARGUMENTS_USED                                                                                          \
    const cpu_site site = unpack_site(packed);                                                                         \
    for (; mask; mask &= mask - 1) {                                                                                   \
        const int lane = __builtin_ctz(mask);                                                                          \
        const struct operation op = {context, warp, lane, site, addresses[lane]};                                      \
        const cpu_block *owner;                                                                                        \
        uint64_t *place;                                                                                               \
        mbarrier b;                                                                                                    \
        (void)owner, (void)place, (void)b;                                                                             \
        __VA_ARGS__                                                                                                    \
    }                                                                                                                  \
    return 0;

CPU_HELPER uint32_t cupola_mbarrier_init(CPU_ACCESS_ARGUMENTS, const uint64_t *addresses,
                                         const uint32_t *counts){FOR_LANES({
    if (!(place = find_place(&op, &owner))) return 1;
    if (!counts[lane] || counts[lane] > COUNT_MAX)
        return misuse(&op, "%u arrivals are expected; it can be 1 to %u", counts[lane], COUNT_MAX);
    *place = pack((mbarrier){.pending = counts[lane], .expected = counts[lane], .valid = true});
    context->progress++;
})}

CPU_HELPER uint32_t cupola_mbarrier_inval(CPU_ACCESS_ARGUMENTS, const uint64_t *addresses){FOR_LANES({
    if (!(place = find(&op, &b))) return 1;
    *place = 0;
})}

CPU_HELPER uint32_t
    cupola_mbarrier_expect(CPU_ACCESS_ARGUMENTS, const uint64_t *addresses, const uint32_t *bytes){FOR_LANES({
        if (!(place = find(&op, &b)) || add_bytes(&op, place, &b, bytes[lane])) return 1;
    })}

CPU_HELPER uint32_t cupola_mbarrier_complete(CPU_ACCESS_ARGUMENTS, const uint64_t *addresses, const uint32_t *bytes) {
    CPU_ACCESS_ARGUMENTS_USED
    for (; mask; mask &= mask - 1) {
        const int lane = __builtin_ctz(mask);
        if (cpu_mbarrier_complete(context, warp, lane, unpack_site(packed), addresses[lane], bytes[lane])) return 1;
    }
    return 0;
}

/* `flags` is made of enum cpu_mbarrier_flags; `bytes` are expected in front of the arrival. */
CPU_HELPER uint32_t cupola_mbarrier_arrive(CPU_ACCESS_ARGUMENTS, const uint64_t *addresses, const uint32_t *counts,
                                           const uint32_t *bytes, uint64_t *states, uint32_t flags){FOR_LANES({
    if (arrive(&op, counts[lane], bytes[lane], flags, &states[lane])) return 1;
})}

/* test_wait and try_wait: `phases` holds the states that arrivals returned, or parities; `results` receives 0 or 1.
 * Lanes that ask for the same of one object are answered together. Returns 1 on a fault, 2 when a lane's phase is
 * incomplete. */
CPU_HELPER uint32_t cupola_mbarrier_wait(CPU_ACCESS_ARGUMENTS, const uint64_t *addresses, const uint64_t *phases,
                                         uint32_t *results, uint32_t flags) {
    CPU_ACCESS_ARGUMENTS_USED
    const cpu_site site = unpack_site(packed);
    uint32_t incomplete = 0;
    for (uint32_t left = mask, group; left; left &= ~group) {
        const int lane = __builtin_ctz(left);
        const struct operation op = {context, warp, lane, site, addresses[lane]};
        mbarrier b;
        if (!find(&op, &b)) return 1;
        group = flags & CPU_MBARRIER_TOGETHER ? left : 1u << lane;
        bool parity = flags & CPU_MBARRIER_PARITY ? phases[lane] & 1 : phases[lane] >> 63;
        results[lane] = parity != b.parity;
        if (!results[lane]) incomplete |= group;
        else if (asked(context->block->watch != NULL)) cpu_watch_wait(context, warp, group, addresses[lane]);
    }
    if (mask & ~incomplete) context->progress++;
    warp->stuck = (warp->stuck & ~mask) | incomplete;
    for (uint32_t left = incomplete; left; left &= left - 1) {
        const int lane = __builtin_ctz(left);
        warp->lanes[lane] = (struct cpu_lane){.barrier = (uint32_t)addresses[lane], .site = site.index};
    }
    return incomplete ? 2 : 0;
}
