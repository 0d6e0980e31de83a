/* Operations on the memory of several devices at once (PTX ISA, "multimem.ld_reduce, multimem.st, multimem.red"). An
 * address where a multicast object is mapped stands for one place on each of its devices (driver/memory/multicast.c).
 *
 * The ISA leaves open in which order replicas are read and added up. Here it is the order in which the devices were added
 * to the object, lane after lane. With .acc::f32, sums of halves are kept in single precision and rounded at the end. */
#include "access.h"

#include <stdio.h>
#include <string.h>

#include "arithmetic.h"
#include "engine/above.h"

enum operation { LOAD, STORE, REDUCE };
enum reduction { ADD, MIN, MAX, AND, OR, XOR };
enum type { BITS, UNSIGNED, SIGNED, F16, BF16, F32, F64 };

/* As emit/memory/multimem.py packs it into one integer. */
struct instruction {
    enum operation operation;
    enum reduction reduction;
    enum type type;
    uint32_t bytes; /* of an element, which may be a pair of halves */
    uint32_t count; /* of elements */
    bool in_single; /* .acc::f32 */
};

static struct instruction unpack(uint64_t packed) {
    return (struct instruction){(enum operation)(packed & 3),
                                (enum reduction)(packed >> 4 & 7),
                                (enum type)(packed >> 8 & 7),
                                packed >> 12 & 15,
                                packed >> 16 & 15,
                                packed >> 20 & 1};
}

static uint64_t read_element(const void *place, uint32_t bytes) {
    uint64_t value = 0;
    switch (bytes) { /* one access of the host: another thread may write it */
        case 2: value = __atomic_load_n((const uint16_t *)place, __ATOMIC_SEQ_CST); break;
        case 4: value = __atomic_load_n((const uint32_t *)place, __ATOMIC_SEQ_CST); break;
        default: value = __atomic_load_n((const uint64_t *)place, __ATOMIC_SEQ_CST);
    }
    return value;
}

static void write_element(void *place, uint32_t bytes, uint64_t value) {
    switch (bytes) {
        case 1: __atomic_store_n((uint8_t *)place, (uint8_t)value, __ATOMIC_SEQ_CST); break;
        case 2: __atomic_store_n((uint16_t *)place, (uint16_t)value, __ATOMIC_SEQ_CST); break;
        case 4: __atomic_store_n((uint32_t *)place, (uint32_t)value, __ATOMIC_SEQ_CST); break;
        default: __atomic_store_n((uint64_t *)place, value, __ATOMIC_SEQ_CST);
    }
}

static uint16_t combine_halves(const struct instruction *i, uint16_t a, uint16_t b) {
    const bool is_f16 = i->type == F16;
    if (i->reduction == ADD) return is_f16 ? add_f16(a, b) : add_bf16(a, b);
    return choose_half(a, b, is_f16 ? 0x7C00 : 0x7F80, i->reduction == MAX);
}

static uint64_t combine(const struct instruction *i, uint64_t a, uint64_t b) {
    const uint32_t shift = 64 - 8 * i->bytes;
    switch (i->type) {
        case F16:
        case BF16: {
            uint64_t result = 0;
            for (uint32_t at = 0; at < 8 * i->bytes; at += 16)
                result |= (uint64_t)combine_halves(i, (uint16_t)(a >> at), (uint16_t)(b >> at)) << at;
            return result;
        }
        case F32: return add_f32((uint32_t)a, (uint32_t)b);
        case F64: return add_f64(a, b);
        default: break;
    }
    const int64_t x = (int64_t)(a << shift) >> shift, y = (int64_t)(b << shift) >> shift;
    switch (i->reduction) {
        case ADD: return a + b;
        case AND: return a & b;
        case OR: return a | b;
        case XOR: return a ^ b;
        case MIN: return i->type == SIGNED ? (x < y ? a : b) : (a < b ? a : b);
        default: return i->type == SIGNED ? (x > y ? a : b) : (a > b ? a : b);
    }
}

/* The reduction of one element of all replicas. */
static uint64_t reduce(const struct instruction *i, void *const *places, int count, uint32_t offset) {
    uint64_t result = read_element((const char *)places[0] + offset, i->bytes);
    if (!i->in_single || i->reduction != ADD) {
        for (int p = 1; p < count; p++)
            result = combine(i, result, read_element((const char *)places[p] + offset, i->bytes));
        return result;
    }
    float sums[2] = {0, 0};
    for (int p = 0; p < count; p++) {
        const uint64_t value = p ? read_element((const char *)places[p] + offset, i->bytes) : result;
        for (uint32_t half = 0; half < i->bytes / 2; half++) {
            const uint16_t bits = (uint16_t)(value >> 16 * half);
            const float number = i->type == F16 ? half_to_float(bits) : bfloat_to_float(bits);
            sums[half] = p ? sums[half] + number : number;
        }
    }
    result = 0;
    for (uint32_t half = 0; half < i->bytes / 2; half++)
        result |= (uint64_t)(i->type == F16 ? float_to_half(sums[half]) : float_to_bfloat(sums[half])) << 16 * half;
    return result;
}

/* One element of one replica, reduced with an operand, as an atomic operation. */
static void reduce_into(const struct instruction *i, void *place, uint64_t operand) {
#define SWAP(TYPE)                                                                                                     \
    {                                                                                                                  \
        TYPE old = __atomic_load_n((TYPE *)place, __ATOMIC_RELAXED);                                                   \
        while (!__atomic_compare_exchange_n((TYPE *)place, &old, (TYPE)combine(i, old, operand), 1, __ATOMIC_SEQ_CST,  \
                                            __ATOMIC_RELAXED)) {}                                                      \
    }
    if (i->bytes == 2) SWAP(uint16_t)
    else if (i->bytes == 4) SWAP(uint32_t)
    else SWAP(uint64_t)
#undef SWAP
}

/* ---- called by machine code ---------------------------------------------------------------------------------------- */

/* `values`: an array with an element of each lane for each element of the vector. Returns nonzero on a fault. */
CPU_HELPER uint32_t cupola_multimem(CPU_ACCESS_ARGUMENTS, const uint64_t *addresses, uint64_t description,
                                    uint8_t *values) {
    CPU_ACCESS_ARGUMENTS_USED
    const cpu_site site = unpack_site(packed);
    const struct instruction i = unpack(description);
    const uint32_t size = i.bytes * i.count;
    for (; mask; mask &= mask - 1) {
        const int lane = __builtin_ctz(mask);
        void *places[CPU_MULTICAST_DEVICES];
        char why[160] = "";
        if (addresses[lane] % size) {
            cpu_fault_raise_access(context, warp, lane, CPU_FAULT_MISALIGNED, site, addresses[lane], size, "");
            return 1;
        }
        const int count = cpu_driver_multicast(context->job->launch, addresses[lane], size, i.operation != LOAD, places,
                                               why, sizeof why);
        if (!count) {
            cpu_fault_raise_access(context, warp, lane, CPU_FAULT_OUT_OF_BOUNDS, site, addresses[lane], size, why);
            return 1;
        }
        for (uint32_t element = 0; element < i.count; element++) {
            uint8_t *mine = values + ((size_t)element * context->width + (uint32_t)lane) * i.bytes;
            const uint32_t offset = element * i.bytes;
            uint64_t value = 0;
            if (i.operation == LOAD) {
                value = reduce(&i, places, count, offset);
                memcpy(mine, &value, i.bytes); /* of little-endian numbers the low bytes */
                continue;
            }
            memcpy(&value, mine, i.bytes);
            for (int p = 0; p < count; p++) {
                if (i.operation == STORE) write_element((char *)places[p] + offset, i.bytes, value);
                else reduce_into(&i, (char *)places[p] + offset, value);
            }
        }
    }
    return 0;
}
