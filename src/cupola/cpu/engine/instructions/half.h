/* IEEE half precision, in portable integer arithmetic; any NaN becomes the one that PTX instructions give. */
#ifndef CUPOLA_CPU_HALF_H
#define CUPOLA_CPU_HALF_H

#include <stdint.h>

#include "common/bits.h"

static inline float half_to_float(uint16_t half) {
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = half >> 10 & 31, mantissa = half & 0x3FF;
    if (exponent == 31) return float_of(sign | 0x7F800000 | mantissa << 13);
    if (exponent == 0) {
        float value = (float)mantissa * 0x1p-24f;
        return sign ? -value : value;
    }
    return float_of(sign | (exponent + 112) << 23 | mantissa << 13);
}

static inline uint16_t float_to_half(float value) {
    uint32_t bits = bits_of(value), magnitude = bits & 0x7FFFFFFF;
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    if (magnitude > 0x7F800000) return 0x7FFF;
    if (magnitude >= 0x47800000) return sign | 0x7C00;
    if (magnitude < 0x38800000) { /* subnormal: the addition rounds at the half's last bit */
        return sign | (uint16_t)(bits_of(float_of(magnitude) + 0.5f) - 0x3F000000);
    }
    magnitude += 0xFFF + (magnitude >> 13 & 1);
    return sign | (uint16_t)((magnitude - 0x38000000) >> 13);
}

#endif
