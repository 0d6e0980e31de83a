/* Numbers of eight bits: E4M3, which has no infinity and reaches 448, and E5M2, which is the upper half of a half. */
#ifndef CUPOLA_CPU_MATH_FP8_H
#define CUPOLA_CPU_MATH_FP8_H

#include "common/bits.h"

/* Without a branch, which would keep the compiler from making vectors. */
static inline uint32_t either(bool condition, uint32_t one, uint32_t other) {
    uint32_t mask = -(uint32_t)condition;
    return (one & mask) | (other & ~mask);
}

/* Moved to their places in a float the bits have an exponent that is too small, which a product corrects, exactly, for
 * subnormal numbers as well. */
static inline float e4m3_to_float(uint8_t bits) {
    float magnitude = float_of((uint32_t)(bits & 0x7f) << 20) * 0x1p120f;
    uint32_t special = either((bits & 0x7f) == 0x7f, 0x7fffffff, bits_of(magnitude));
    return float_of(special | (uint32_t)(bits & 0x80) << 24);
}

static inline float e5m2_to_float(uint8_t bits) {
    float magnitude = float_of((uint32_t)(bits & 0x7f) << 21) * 0x1p112f;
    uint32_t special = either(magnitude >= 0x1p16f, 0x7f800000, 0);
    return float_of(bits_of(magnitude) | special | (uint32_t)(bits & 0x80) << 24);
}

/* To nearest even; what is too large becomes the largest number. Subnormal results are where adding `unit` leaves steps of
 * the smallest. */
#define FP8_FROM_FLOAT(name, cut, bias, unit, smallest_normal, largest, largest_bits)                                  \
    static inline uint8_t name(float value) {                                                                          \
        uint32_t bits = bits_of(value), magnitude = bits & 0x7fffffff;                                                 \
        uint32_t normal = (magnitude + ((1u << (cut - 1)) - 1) + (magnitude >> cut & 1) - ((uint32_t)(bias) << 23)) >> cut; \
        uint32_t small = bits_of(float_of(magnitude) + (unit)) - bits_of(unit);                                        \
        uint32_t narrow = either(magnitude < bits_of(smallest_normal), small, normal);                                 \
        narrow = either(magnitude > bits_of(largest), largest_bits, narrow);                                           \
        return (uint8_t)either(magnitude > 0x7f800000, 0x7f, narrow | (bits >> 24 & 0x80));                            \
    }
FP8_FROM_FLOAT(float_to_e4m3, 20, 120, 0x1p14f, 0x1p-6f, 448.0f, 0x7e)
FP8_FROM_FLOAT(float_to_e5m2, 21, 112, 0x1p7f, 0x1p-14f, 57344.0f, 0x7b)

#endif
