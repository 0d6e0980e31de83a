/* The bits of a float. */
#ifndef CUPOLA_CPU_BITS_H
#define CUPOLA_CPU_BITS_H

#include <stdint.h>
#include <string.h>

static inline float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

#endif
