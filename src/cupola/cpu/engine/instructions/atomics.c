/* Atomic operations (PTX ISA, "atom", "red"), lane by lane in ascending order.
 *
 * A block runs on one thread, so its shared memory needs no host atomics. Global memory is shared with other
 * worker threads and the host: there each operation is one atomic of the host, sequentially consistent, which is
 * stronger than every .sem that PTX knows. Scopes need no distinction. */
#include "atomics.h"

#include <string.h>

#include "arithmetic.h"

typedef unsigned __int128 u128;

/* ---- one function for each operation and type ------------------------------------------------------------------- */

/* uint32_t cupola_atomic_<operation>_<type>(..., addresses, operands, compares, results):
 * results receives what was in memory before. Nonzero on a fault. `old`, `operand` and `compare` are what
 * the expression of the new value is made of; `plain` says whether the host has that operation itself. */
#define ATOMIC_LANES(NAME, TYPE, RESOLVE, UPDATE)                                                                      \
    CPU_HELPER uint32_t NAME(CPU_ACCESS_ARGUMENTS, const uint64_t *addresses, const TYPE *operands,                    \
                             const TYPE *compares, TYPE *results) {                                                    \
        const cpu_site site = unpack_site(packed);                                                                     \
        CPU_ACCESS_ARGUMENTS_USED                                                                                      \
        (void)compares;                                                                                                \
        for (; mask; mask &= mask - 1) {                                                                               \
            int lane = __builtin_ctz(mask);                                                                            \
            TYPE *target = RESOLVE;                                                                                    \
            if (!target) return 1;                                                                                     \
            TYPE operand = operands[lane], old;                                                                        \
            UPDATE                                                                                                     \
            results[lane] = old;                                                                                       \
        }                                                                                                              \
        return 0;                                                                                                      \
    }

#define ANYWHERE cpu_resolve_cached(context, warp, lane, site, addresses[lane])
#define SHARED                                                                                                         \
    (addresses[lane] + site.size <= context->shared_size && !(addresses[lane] & (site.size - 1u))                      \
         ? (void *)(context->shared + addresses[lane])                                                                 \
         : cpu_resolve(context, warp, lane, site, addresses[lane]))

/* Whether a generic address led to the block's shared memory. */
#define IS_SHARED ((uint64_t)((uint8_t *)target - context->shared) < context->shared_size)

/* Operations that the host has. */
#define HOST(OPERATION, SUFFIX, TYPE, BUILTIN, NEW)                                                                    \
    ATOMIC_LANES(cupola_atomic_##OPERATION##_##SUFFIX, TYPE, ANYWHERE, old = BUILTIN(target, operand, __ATOMIC_SEQ_CST);)\
    ATOMIC_LANES(cupola_shared_##OPERATION##_##SUFFIX, TYPE, SHARED, old = *target; *target = NEW;)

/* Operations made of compare-and-swap. */
#define LOOPS(OPERATION, SUFFIX, TYPE, NEW, NEW_IN_SHARED)                                                             \
    ATOMIC_LANES(cupola_atomic_##OPERATION##_##SUFFIX, TYPE, ANYWHERE,                                                 \
                 old = __atomic_load_n(target, __ATOMIC_RELAXED);                                                      \
                 while (!__atomic_compare_exchange_n(target, &old, (TYPE)(NEW), 1, __ATOMIC_SEQ_CST,                   \
                                                     __ATOMIC_RELAXED)) {})                                            \
    ATOMIC_LANES(cupola_shared_##OPERATION##_##SUFFIX, TYPE, SHARED, old = *target; *target = (TYPE)(NEW_IN_SHARED);)
#define LOOP(OPERATION, SUFFIX, TYPE, NEW) LOOPS(OPERATION, SUFFIX, TYPE, NEW, NEW)

#define CAS(SUFFIX, TYPE)                                                                                              \
    ATOMIC_LANES(cupola_atomic_cas_##SUFFIX, TYPE, ANYWHERE, old = compares[lane];                                     \
                 __atomic_compare_exchange_n(target, &old, operand, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);)           \
    ATOMIC_LANES(cupola_shared_cas_##SUFFIX, TYPE, SHARED, old = *target; if (old == compares[lane]) *target = operand;)

#define INTEGER(UNSIGNED, SIGNED, B, U, S)                                                                             \
    HOST(add, U, UNSIGNED, __atomic_fetch_add, (UNSIGNED)(old + operand))                                              \
    HOST(and, B, UNSIGNED, __atomic_fetch_and, old & operand)                                                          \
    HOST(or, B, UNSIGNED, __atomic_fetch_or, old | operand)                                                            \
    HOST(xor, B, UNSIGNED, __atomic_fetch_xor, old ^ operand)                                                          \
    HOST(exch, B, UNSIGNED, __atomic_exchange_n, operand)                                                              \
    LOOP(min, U, UNSIGNED, old < operand ? old : operand)                                                              \
    LOOP(max, U, UNSIGNED, old > operand ? old : operand)                                                              \
    LOOP(min, S, UNSIGNED, (SIGNED)old < (SIGNED)operand ? old : operand)                                              \
    LOOP(max, S, UNSIGNED, (SIGNED)old > (SIGNED)operand ? old : operand)                                              \
    LOOP(inc, U, UNSIGNED, old >= operand ? 0 : old + 1)                                                               \
    LOOP(dec, U, UNSIGNED, old == 0 || old > operand ? operand : old - 1)                                              \
    CAS(B, UNSIGNED)

INTEGER(uint32_t, int32_t, b32, u32, s32)
INTEGER(uint64_t, int64_t, b64, u64, s64)
CAS(b16, uint16_t)
LOOPS(add, f32, uint32_t, IS_SHARED ? add_f32(old, operand) : add_f32_flushed(old, operand), add_f32(old, operand))
LOOP(add, f32_subnormal, uint32_t, add_f32(old, operand))
LOOP(add, f64, uint64_t, add_f64(old, operand))
LOOP(add, f64_kept, uint64_t, add_f64_kept(old, operand))
LOOP(add, f16, uint16_t, add_f16(old, operand))
LOOP(add, bf16, uint16_t, add_bf16(old, operand))
LOOP(add, f16x2, uint32_t, add_f16x2(old, operand))
LOOP(add, bf16x2, uint32_t, add_bf16x2(old, operand))
LOOP(min, f16, uint16_t, choose_half(old, operand, 0x7C00, false))
LOOP(max, f16, uint16_t, choose_half(old, operand, 0x7C00, true))
LOOP(min, bf16, uint16_t, choose_half(old, operand, 0x7F80, false))
LOOP(max, bf16, uint16_t, choose_half(old, operand, 0x7F80, true))
LOOP(min, f16x2, uint32_t, choose_halves(old, operand, 0x7C00, false))
LOOP(max, f16x2, uint32_t, choose_halves(old, operand, 0x7C00, true))
LOOP(min, bf16x2, uint32_t, choose_halves(old, operand, 0x7F80, false))
LOOP(max, bf16x2, uint32_t, choose_halves(old, operand, 0x7F80, true))

/* 16 bytes (sm_90). By hand, as compilers call a library for it, libatomic, which need not be there. An aarch64
 * processor without LSE2 reads 16 bytes at once only if it then writes them, so what is not to change is written
 * back. */
static bool swap_wide(u128 *target, u128 *old, u128 new) {
#ifdef __x86_64__
    uint64_t low = (uint64_t)*old, high = (uint64_t)(*old >> 64);
    bool done;
    __asm__ __volatile__("lock cmpxchg16b %1"
                         : "=@ccz"(done), "+m"(*target), "+a"(low), "+d"(high)
                         : "b"((uint64_t)new), "c"((uint64_t)(new >> 64))
                         : "memory");
    *old = (u128)high << 64 | low;
    return done;
#elif defined(__aarch64__)
    uint64_t want_low = (uint64_t)*old, want_high = (uint64_t)(*old >> 64), low, high, to_low, to_high;
    uint32_t failed;
    __asm__ __volatile__("1: ldaxp %[low], %[high], %[target]\n\t"
                         "cmp %[low], %[want_low]\n\t"
                         "ccmp %[high], %[want_high], #0, eq\n\t"
                         "csel %[to_low], %[new_low], %[low], eq\n\t"
                         "csel %[to_high], %[new_high], %[high], eq\n\t"
                         "stlxp %w[failed], %[to_low], %[to_high], %[target]\n\t"
                         "cbnz %w[failed], 1b"
                         : [low] "=&r"(low), [high] "=&r"(high), [to_low] "=&r"(to_low), [to_high] "=&r"(to_high),
                           [failed] "=&r"(failed), [target] "+Q"(*target)
                         : [want_low] "r"(want_low), [want_high] "r"(want_high), [new_low] "r"((uint64_t)new),
                           [new_high] "r"((uint64_t)(new >> 64))
                         : "cc", "memory");
    *old = (u128)high << 64 | low;
    return low == want_low && high == want_high;
#else
    return __atomic_compare_exchange_n(target, old, new, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
#endif
}

ATOMIC_LANES(cupola_atomic_cas_b128, u128, ANYWHERE, old = compares[lane]; swap_wide(target, &old, operand);)
ATOMIC_LANES(cupola_shared_cas_b128, u128, SHARED, old = *target; if (old == compares[lane]) *target = operand;)
ATOMIC_LANES(cupola_atomic_exch_b128, u128, ANYWHERE, old = 0; while (!swap_wide(target, &old, operand)) {})
ATOMIC_LANES(cupola_shared_exch_b128, u128, SHARED, old = *target; *target = operand;)

/* ---- by number -------------------------------------------------------------------------------------------------- */

#define BY_TYPE(OPERATION, TYPE) (cpu_atomic *)cupola_atomic_##OPERATION##_##TYPE
static cpu_atomic *const reductions[REDUCTIONS][REDUCED_TYPES] = {
    [REDUCE_ADD] = {[REDUCED_U32] = BY_TYPE(add, u32),
                    [REDUCED_S32] = BY_TYPE(add, u32),
                    [REDUCED_U64] = BY_TYPE(add, u64),
                    [REDUCED_F16] = BY_TYPE(add, f16),
                    [REDUCED_BF16] = BY_TYPE(add, bf16),
                    [REDUCED_F32] = BY_TYPE(add, f32_subnormal),
                    [REDUCED_F32_FLUSHED] = BY_TYPE(add, f32),
                    [REDUCED_F64] = BY_TYPE(add, f64_kept)},
    [REDUCE_MIN] = {[REDUCED_U32] = BY_TYPE(min, u32),
                    [REDUCED_S32] = BY_TYPE(min, s32),
                    [REDUCED_U64] = BY_TYPE(min, u64),
                    [REDUCED_S64] = BY_TYPE(min, s64),
                    [REDUCED_F16] = BY_TYPE(min, f16),
                    [REDUCED_BF16] = BY_TYPE(min, bf16)},
    [REDUCE_MAX] = {[REDUCED_U32] = BY_TYPE(max, u32),
                    [REDUCED_S32] = BY_TYPE(max, s32),
                    [REDUCED_U64] = BY_TYPE(max, u64),
                    [REDUCED_S64] = BY_TYPE(max, s64),
                    [REDUCED_F16] = BY_TYPE(max, f16),
                    [REDUCED_BF16] = BY_TYPE(max, bf16)},
    [REDUCE_INC] = {[REDUCED_U32] = BY_TYPE(inc, u32)},
    [REDUCE_DEC] = {[REDUCED_U32] = BY_TYPE(dec, u32)},
    [REDUCE_AND] = {[REDUCED_U32] = BY_TYPE(and, b32),
                    [REDUCED_S32] = BY_TYPE(and, b32),
                    [REDUCED_U64] = BY_TYPE(and, b64)},
    [REDUCE_OR] = {[REDUCED_U32] = BY_TYPE(or, b32),
                   [REDUCED_S32] = BY_TYPE(or, b32),
                   [REDUCED_U64] = BY_TYPE(or, b64)},
    [REDUCE_XOR] = {[REDUCED_U32] = BY_TYPE(xor, b32),
                    [REDUCED_S32] = BY_TYPE(xor, b32),
                    [REDUCED_U64] = BY_TYPE(xor, b64)},
};

cpu_atomic *cpu_atomic_find(enum reduction operation, enum reduced type) { return reductions[operation][type]; }

/* ---- many of them ----------------------------------------------------------------------------------------------- */

uint32_t cpu_atomic_elements(cpu_context *context, cpu_warp *warp, cpu_site site, cpu_atomic *operation,
                             uint64_t address, const void *elements, uint32_t bytes, uint64_t count) {
    enum { MOST = 16 };
    const uint64_t packed = site.index | (uint64_t)bytes << 32 | (uint64_t)bytes << 40 | (uint64_t)site.space << 48 |
                            (uint64_t)site.flags << 56;
    for (uint64_t done = 0; done < count;) {
        uint64_t addresses[MOST], operands[MOST], results[MOST];
        uint32_t n = 0;
        for (; n < MOST && done + n < count; n++) addresses[n] = address + (done + n) * bytes;
        memcpy(operands, (const uint8_t *)elements + done * bytes, (size_t)n * bytes);
        if (operation(context, warp, context->shared, context->sites, packed, (1u << n) - 1, addresses, operands, NULL,
                      results))
            return 1;
        done += n;
    }
    return 0;
}
