/* What operations on memory compute (PTX ISA, "atom", "red", "multimem"), on patterns of bits. */
#ifndef CUPOLA_CPU_ARITHMETIC_H
#define CUPOLA_CPU_ARITHMETIC_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "half.h"

static inline uint64_t add_f64(uint64_t a, uint64_t b) {
    double x, y;
    memcpy(&x, &a, sizeof x);
    memcpy(&y, &b, sizeof y);
    x += y;
    memcpy(&a, &x, sizeof a);
    return a;
}

/* By tensor maps: a NaN stays as it is, also a signaling one. */
static inline bool is_nan_f64(uint64_t a) { return (a & INT64_MAX) > UINT64_C(0x7FF0000000000000); }
static inline uint64_t add_f64_kept(uint64_t a, uint64_t b) {
    return is_nan_f64(a) ? a : is_nan_f64(b) ? b : add_f64(a, b);
}

/* Single precision has more than twice the bits of a half (and of a bfloat16), so rounding a sum to single precision
 * first does no harm. */
static inline float bfloat_to_float(uint16_t bits) { return float_of((uint32_t)bits << 16); }

static inline uint16_t float_to_bfloat(float value) {
    uint32_t bits = bits_of(value);
    if ((bits & 0x7FFFFFFF) > 0x7F800000) return 0x7FFF;
    return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

static inline uint16_t add_f16(uint16_t a, uint16_t b) { return float_to_half(half_to_float(a) + half_to_float(b)); }
static inline uint16_t add_bf16(uint16_t a, uint16_t b) {
    return float_to_bfloat(bfloat_to_float(a) + bfloat_to_float(b));
}
static inline uint32_t add_f16x2(uint32_t a, uint32_t b) {
    return (uint32_t)add_f16((uint16_t)(a >> 16), (uint16_t)(b >> 16)) << 16 | add_f16((uint16_t)a, (uint16_t)b);
}
static inline uint32_t add_bf16x2(uint32_t a, uint32_t b) {
    return (uint32_t)add_bf16((uint16_t)(a >> 16), (uint16_t)(b >> 16)) << 16 | add_bf16((uint16_t)a, (uint16_t)b);
}
/* The smaller or larger of two halves (NaN: above `infinity`) as "min" and "max" choose: a number wins over a NaN, -0
 * is below +0, and of two NaNs the canonical one is left. */
static inline int order_of(uint16_t half) { return half & 0x8000 ? -(half & 0x7FFF) - 1 : half; }
static inline uint16_t choose_half(uint16_t a, uint16_t b, uint16_t infinity, bool larger) {
    bool first_is_nan = (a & 0x7FFF) > infinity, second_is_nan = (b & 0x7FFF) > infinity;
    if (first_is_nan || second_is_nan) return first_is_nan && second_is_nan ? 0x7FFF : first_is_nan ? b : a;
    return (order_of(a) > order_of(b)) == larger ? a : b;
}
static inline uint32_t choose_halves(uint32_t a, uint32_t b, uint16_t infinity, bool larger) {
    return (uint32_t)choose_half((uint16_t)(a >> 16), (uint16_t)(b >> 16), infinity, larger) << 16 |
           choose_half((uint16_t)a, (uint16_t)b, infinity, larger);
}
/* The sum of two floats. In shared memory a GPU makes it like other sums; in global memory the unit at the L2 cache
 * takes subnormal operands and results as zero ("atom", on .add.f32). Both leave the canonical NaN. */
static inline uint32_t flushed(uint32_t bits) { return bits & 0x7F800000 ? bits : bits & 0x80000000; }
static inline uint32_t add_f32(uint32_t a, uint32_t b) {
    float sum = float_of(a) + float_of(b);
    return sum != sum ? 0x7FFFFFFF : bits_of(sum);
}
static inline uint32_t add_f32_flushed(uint32_t a, uint32_t b) { return flushed(add_f32(flushed(a), flushed(b))); }

#endif
