/* Conversions of half precision for x86-64 processors without F16C, where LLVM calls functions for them.
 *
 * By the x86-64 ABI a half is in the low 16 bits of a vector register, which is where C has the low bits of a float. So
 * these take and return floats of which only those bits count. objects/machine.py gives them the names LLVM calls. */
#include "engine/abi.h"

#include <string.h>

static uint32_t bits_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static float from_bits(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* __extendhfsf2 */
CPU_HELPER float cupola_half_to_float(float half) {
    const uint32_t bits = bits_of(half) & 0xFFFF, sign = (bits & 0x8000) << 16, size = bits & 0x7FFF;
    if (size > 0x7C00) return from_bits(sign | 0x7FC00000 | size << 13); /* quiet, as the processor does it */
    if (size == 0x7C00) return from_bits(sign | 0x7F800000);
    /* The exponent of a half in a float, too small by 112; the product is exact, subnormals included. */
    return from_bits(sign | bits_of(from_bits(size << 13) * 0x1p112f));
}

/* __truncsfhf2: to nearest, ties to even. */
CPU_HELPER float cupola_float_to_half(float x) {
    const uint32_t bits = bits_of(x), sign = bits >> 16 & 0x8000, size = bits & 0x7FFFFFFF;
    uint32_t half;
    if (size > 0x7F800000) half = 0x7E00 | (size >> 13 & 0x3FF);
    else if (size >= 0x477FF000) /* 65520, half way to what would be the next number */ half = 0x7C00;
    else if (size < 0x38800000) /* subnormal: the sum with 1/2 has the last bit that a half has there */
        half = bits_of(from_bits(size) + 0.5f) - bits_of(0.5f);
    else half = (size + 0xFFF + (size >> 13 & 1) - (112u << 23)) >> 13;
    return from_bits(sign | half);
}
