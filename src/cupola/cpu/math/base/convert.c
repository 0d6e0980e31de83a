/* Rows of numbers from one type to another.
 *
 * What matrices of halves and bfloat16 are converted with before and after a product, so these loops have no branches and
 * no calls, and the compiler makes vectors of them. All else goes element by element (element.c). */
#include "convert.h"

#include "fp8.h"

/* The bits of a half, moved to their places in a float, have an exponent that is 112 too small, which a product corrects,
 * exactly, for subnormal halves as well. Infinity and NaN get the largest exponent. */
static inline float half_to_float(uint16_t half) {
    float magnitude = float_of((uint32_t)(half & 0x7fff) << 13) * 0x1p112f;
    uint32_t special = either(magnitude >= 0x1p16f, 0x7f800000, 0);
    return float_of(bits_of(magnitude) | special | (uint32_t)(half & 0x8000) << 16);
}

/* To nearest even: what is to be cut off is rounded in the bits. Subnormal results are where adding 1/2 leaves steps of
 * 2^-24. */
static inline uint16_t float_to_half(float value) {
    uint32_t bits = bits_of(value), magnitude = bits & 0x7fffffff;
    uint32_t normal = (magnitude + 0xfff + (magnitude >> 13 & 1) - (112u << 23)) >> 13;
    uint32_t small = bits_of(float_of(magnitude) + 0.5f) - 0x3f000000;
    uint32_t half = either(magnitude < 0x38800000, small, normal);
    half = either(magnitude >= 0x477ff000, 0x7c00, half);
    return (uint16_t)either(magnitude > 0x7f800000, 0x7fff, half | (bits >> 16 & 0x8000));
}

static inline uint16_t float_to_bfloat(float value) {
    uint32_t bits = bits_of(value), rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    return (uint16_t)either((bits & 0x7fffffff) > 0x7f800000, 0x7fff, rounded);
}

void load_floats(enum element type, const void *array, int64_t first, int64_t step, int64_t count, float *to) {
    if (step == 1 && type == S) memcpy(to, (const float *)array + first, (size_t)count * sizeof *to);
    else if (step == 1 && type == H) {
        const uint16_t *from = (const uint16_t *)array + first;
        for (int64_t i = 0; i < count; i++) to[i] = half_to_float(from[i]);
    } else if (step == 1 && type == B) {
        const uint16_t *from = (const uint16_t *)array + first;
        for (int64_t i = 0; i < count; i++) to[i] = float_of((uint32_t)from[i] << 16);
    } else if (step == 1 && type == I8) {
        const int8_t *from = (const int8_t *)array + first;
        for (int64_t i = 0; i < count; i++) to[i] = from[i];
    } else if (step == 1 && type == E4M3) {
        const uint8_t *from = (const uint8_t *)array + first;
        for (int64_t i = 0; i < count; i++) to[i] = e4m3_to_float(from[i]);
    } else if (step == 1 && type == E5M2) {
        const uint8_t *from = (const uint8_t *)array + first;
        for (int64_t i = 0; i < count; i++) to[i] = e5m2_to_float(from[i]);
    } else
        for (int64_t i = 0; i < count; i++) to[i] = (float)creal(element_load(type, array, first + i * step));
}

void store_floats(enum element type, void *array, int64_t first, int64_t step, int64_t count, const float *from) {
    if (step == 1 && type == S) memcpy((float *)array + first, from, (size_t)count * sizeof *from);
    else if (step == 1 && type == H) {
        uint16_t *to = (uint16_t *)array + first;
        for (int64_t i = 0; i < count; i++) to[i] = float_to_half(from[i]);
    } else if (step == 1 && type == B) {
        uint16_t *to = (uint16_t *)array + first;
        for (int64_t i = 0; i < count; i++) to[i] = float_to_bfloat(from[i]);
    } else if (step == 1 && type == E4M3) {
        uint8_t *to = (uint8_t *)array + first;
        for (int64_t i = 0; i < count; i++) to[i] = float_to_e4m3(from[i]);
    } else if (step == 1 && type == E5M2) {
        uint8_t *to = (uint8_t *)array + first;
        for (int64_t i = 0; i < count; i++) to[i] = float_to_e5m2(from[i]);
    } else
        for (int64_t i = 0; i < count; i++) element_store(type, array, first + i * step, (double)from[i]);
}

void load_doubles(enum element type, const void *array, int64_t first, int64_t step, int64_t count, double *to) {
    if (step == 1 && type == D) memcpy(to, (const double *)array + first, (size_t)count * sizeof *to);
    else
        for (int64_t i = 0; i < count; i++) to[i] = creal(element_load(type, array, first + i * step));
}

void store_doubles(enum element type, void *array, int64_t first, int64_t step, int64_t count, const double *from) {
    if (step == 1 && type == D) memcpy((double *)array + first, from, (size_t)count * sizeof *from);
    else
        for (int64_t i = 0; i < count; i++) element_store(type, array, first + i * step, from[i]);
}

void load_numbers(enum element type, const void *array, int64_t first, int64_t step, int64_t count, number *to) {
    for (int64_t i = 0; i < count; i++) to[i] = element_load(type, array, first + i * step);
}

void store_numbers(enum element type, void *array, int64_t first, int64_t step, int64_t count, const number *from) {
    for (int64_t i = 0; i < count; i++) element_store(type, array, first + i * step, from[i]);
}

void convert_matrix(enum element from, const void *source, int64_t rows, int64_t columns, int64_t ld, enum element to,
                    void *target) {
    for (int64_t j = 0; j < columns; j++) {
        if (to == S) load_floats(from, source, j * ld, 1, rows, (float *)target + j * rows);
        else if (to == D) load_doubles(from, source, j * ld, 1, rows, (double *)target + j * rows);
        else
            for (int64_t i = 0; i < rows; i++) {
                number value = element_load(from, source, j * ld + i);
                element_store(to, target, j * rows + i, value);
            }
    }
}
