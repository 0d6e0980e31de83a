/* The types of elements: their sizes, and values of any type as one. */
#include <math.h>
#include <string.h>

#include "element.h"
#include "fp8.h"

size_t element_size(enum element type) {
    static const uint8_t sizes[ELEMENTS] = {[S] = 4,   [D] = 8,   [C] = 8,    [Z] = 16,   [H] = 2,  [B] = 2, [I8] = 1,
                                            [I32] = 4, [I64] = 8, [E4M3] = 1, [E5M2] = 1, [CH] = 4, [CB] = 4};
    return sizes[type];
}

enum element element_of(cudaDataType type) {
    switch ((int)type) {
        case CUDA_R_32F: return S;
        case CUDA_R_64F: return D;
        case CUDA_C_32F: return C;
        case CUDA_C_64F: return Z;
        case CUDA_R_16F: return H;
        case CUDA_R_16BF: return B;
        case CUDA_R_8I: return I8;
        case CUDA_R_32I: return I32;
        default: return ELEMENTS;
    }
}

static float half_to_float(uint16_t half) {
    int exponent = half >> 10 & 31;
    float magnitude = exponent == 31  ? (half & 1023 ? NAN : INFINITY)
                      : exponent == 0 ? ldexpf((float)(half & 1023), -24)
                                      : ldexpf((float)((half & 1023) | 1024), exponent - 25);
    return half & 0x8000 ? -magnitude : magnitude;
}

/* To nearest, ties to even, from a double: one rounding, which is right for sums of products of floats, too. */
static uint16_t double_to_half(double value) {
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    double magnitude = fabs(value);
    if (isnan(value)) return 0x7fff;
    if (magnitude >= 65520) return sign | 0x7c00;
    int exponent;
    frexp(magnitude, &exponent);
    if (exponent < -13) exponent = -13; /* subnormal: steps of 2^-24 */
    double steps = nearbyint(ldexp(magnitude, 11 - exponent));
    if (magnitude == 0) return sign;
    if (exponent == -13 && steps < 1024) return sign | (uint16_t)steps;
    if (steps >= 2048) steps /= 2, exponent++;
    return sign | (uint16_t)((exponent + 14) << 10 | ((int)steps & 1023));
}

static float bfloat_to_float(uint16_t bfloat) {
    uint32_t bits = (uint32_t)bfloat << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint16_t float_to_bfloat(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (isnan(value)) return 0x7fff;
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

number element_load(enum element type, const void *place, int64_t index) {
    switch (type) {
        case S: return ((const float *)place)[index];
        case D: return ((const double *)place)[index];
        case C: return CMPLX(((const float *)place)[2 * index], ((const float *)place)[2 * index + 1]);
        case Z: return CMPLX(((const double *)place)[2 * index], ((const double *)place)[2 * index + 1]);
        case H: return half_to_float(((const uint16_t *)place)[index]);
        case B: return bfloat_to_float(((const uint16_t *)place)[index]);
        case CH: {
            const uint16_t *parts = (const uint16_t *)place + 2 * index;
            return CMPLX(half_to_float(parts[0]), half_to_float(parts[1]));
        }
        case CB: {
            const uint16_t *parts = (const uint16_t *)place + 2 * index;
            return CMPLX(bfloat_to_float(parts[0]), bfloat_to_float(parts[1]));
        }
        case I8: return ((const int8_t *)place)[index];
        case I32: return ((const int32_t *)place)[index];
        case E4M3: return e4m3_to_float(((const uint8_t *)place)[index]);
        case E5M2: return e5m2_to_float(((const uint8_t *)place)[index]);
        default: return (double)((const int64_t *)place)[index];
    }
}

static int64_t whole(double value, int64_t least, int64_t most) {
    return isnan(value) ? 0 : value <= (double)least ? least : value >= (double)most ? most : (int64_t)nearbyint(value);
}

void element_store(enum element type, void *place, int64_t index, number value) {
    switch (type) {
        case S: ((float *)place)[index] = (float)creal(value); break;
        case D: ((double *)place)[index] = creal(value); break;
        case C:
            ((float *)place)[2 * index] = (float)creal(value);
            ((float *)place)[2 * index + 1] = (float)cimag(value);
            break;
        case Z:
            ((double *)place)[2 * index] = creal(value);
            ((double *)place)[2 * index + 1] = cimag(value);
            break;
        case H: ((uint16_t *)place)[index] = double_to_half(creal(value)); break;
        case B: ((uint16_t *)place)[index] = float_to_bfloat((float)creal(value)); break;
        case CH:
            ((uint16_t *)place)[2 * index] = double_to_half(creal(value));
            ((uint16_t *)place)[2 * index + 1] = double_to_half(cimag(value));
            break;
        case CB:
            ((uint16_t *)place)[2 * index] = float_to_bfloat((float)creal(value));
            ((uint16_t *)place)[2 * index + 1] = float_to_bfloat((float)cimag(value));
            break;
        case I8: ((int8_t *)place)[index] = (int8_t)whole(creal(value), INT8_MIN, INT8_MAX); break;
        case E4M3: ((uint8_t *)place)[index] = float_to_e4m3((float)creal(value)); break;
        case E5M2: ((uint8_t *)place)[index] = float_to_e5m2((float)creal(value)); break;
        case I64: ((int64_t *)place)[index] = (int64_t)creal(value); break;
        default: ((int32_t *)place)[index] = (int32_t)(int64_t)whole(creal(value), INT32_MIN, INT32_MAX); break;
    }
}
