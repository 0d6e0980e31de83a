/* What the LINEAR filter makes of texels (CUDA C++ Programming Guide, "Linear Filtering").
 *
 * The guide has a formula with real numbers; this is what an H200 computes for it, found by comparing results bit for
 * bit.
 *
 * Weights have eight bits of fraction, also those of several dimensions: the whole, 256, is split between the slices or
 * levels, the part of each between the columns, and the part of each column between the rows. A part that is not whole
 * is rounded to the nearest, and what is between two goes to the second column, in that to the second row, and in the
 * first column to the first row. So the weights of a mixture add up to 256 always.
 *
 * Integers of 8 and 16 bits are mixed as they are, and the sum is rounded to the nearest, half up; integers of 32 bits
 * are rounded down. Parts of 255 or 65535 are mixed as parts of 65535, those of 127 and 32767 as parts of 32767; parts
 * of 127 become such behind the sum, by repeating their bits.
 *
 * Floats are first aligned to the largest exponent in their quad, that is in their slice or level, and lose what is
 * below four more bits than their mantissa has; the sums are exact, and rounded once, half away from zero: of floats to
 * floats without subnormal ones, of halves to halves. Decoded sRGB has mantissas of eight bits, no more bits than those
 * when aligned, and gives halves. */
#include "mixing.h"

#include <math.h>
#include <string.h>

#include "engine/instructions/half.h"

/* ---- weights ----------------------------------------------------------------------------------------------------- */

static inline uint32_t part(uint32_t whole, uint32_t of_256) { return (whole * of_256 + CPU_WHOLE / 2) / CPU_WHOLE; }

void cpu_quad_weights(struct quad *quad, uint32_t x, uint32_t y, uint32_t whole) {
    const uint32_t second = part(whole, x), first = whole - second;
    quad->weight[3] = part(second, y);
    quad->weight[1] = second - quad->weight[3];
    quad->weight[0] = part(first, CPU_WHOLE - y);
    quad->weight[2] = first - quad->weight[0];
}

/* ---- sums -------------------------------------------------------------------------------------------------------- */

/* A number taken apart: mantissa * 2^(exponent - a bias). The mantissa of a half has four bits below its own. */
struct parts {
    uint32_t mantissa;
    int32_t exponent;
    bool negative;
};

enum { BITS_BELOW = 4 };
/* What brings a mantissa times a weight to the value of the number. */
enum { HALF_BIAS = 15 + 10 + BITS_BELOW + 8, SRGB_BIAS = 8 + 8 };

static inline struct parts take_apart(enum channel channel, const void *texel, uint32_t c) {
    struct parts parts = {0};
    if (channel == CHANNEL_SRGB8) {
        parts.mantissa = cpu_srgb(((const uint8_t *)texel)[c], &parts.exponent);
        return parts;
    }
    const uint32_t bits = ((const uint16_t *)texel)[c], exponent = bits >> 10 & 31;
    parts.mantissa = ((bits & 0x3FF) | (exponent ? 0x400 : 0)) << BITS_BELOW;
    parts.exponent = exponent ? (int32_t)exponent : 1;
    parts.negative = bits >> 15;
    return parts;
}

static inline double power_of_two(int exponent) {
    const uint64_t bits = (uint64_t)(exponent + 1023) << 52;
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Infinities and NaNs, beside which nothing else counts. */
static void mix_special(struct mixture *mixture, enum channel channel, uint32_t c, const struct quad *quad) {
    mixture->special |= (uint8_t)(1 << c);
    for (int i = 0; i < 4; i++) {
        if (!quad->weight[i]) continue;
        const float x = float_of(cpu_channel_read(channel, quad->texel[i], c));
        if (!isfinite(x)) mixture->sum[c] += (double)x;
    }
}

static inline void mix_parts(struct mixture *mixture, enum channel channel, uint32_t channels,
                             const struct quad *quad) {
    enum { SPECIAL = 31 };
    const int bias = channel == CHANNEL_HALF ? HALF_BIAS : SRGB_BIAS;
    for (uint32_t c = 0; c < channels; c++) {
        struct parts parts[4];
        int32_t most = -1000;
        bool positive = false;
        for (int i = 0; i < 4; i++) {
            parts[i] = take_apart(channel, quad->texel[i], c);
            most = parts[i].exponent > most ? parts[i].exponent : most;
            positive |= !parts[i].negative;
        }
        if (positive) mixture->positive |= (uint8_t)(1 << c);
        if (most == SPECIAL) {
            mix_special(mixture, channel, c, quad);
            continue;
        }
        int64_t sum = 0;
        for (int i = 0; i < 4; i++) {
            const int64_t term = (int64_t)(parts[i].mantissa >> (most - parts[i].exponent)) * quad->weight[i];
            sum += parts[i].negative ? -term : term;
        }
        mixture->sum[c] += (double)sum * power_of_two(most - bias);
    }
}

/* The largest exponent makes a scale by which floats become integers of 28 bits, cut off behind the point. */
static inline void mix_floats(struct mixture *mixture, uint32_t channels, const struct quad *quad) {
    enum { EXPONENT = 0x7F800000, BIAS = 127 - 1 + 24 + BITS_BELOW };
    for (uint32_t c = 0; c < channels; c++) {
        double numbers[4], sum = 0;
        uint32_t most = 0, negative = UINT32_MAX;
        for (int i = 0; i < 4; i++) {
            const uint32_t bits = ((const uint32_t *)quad->texel[i])[c], exponent = bits & EXPONENT;
            numbers[i] = (double)float_of(exponent ? bits : 0); /* subnormal ones are zero */
            most = exponent > most ? exponent : most;
            negative &= bits;
        }
        if (!(negative >> 31)) mixture->positive |= (uint8_t)(1 << c);
        if (most == EXPONENT) {
            mix_special(mixture, CHANNEL_FLOAT, c, quad);
            continue;
        }
        const int exponent = (int)(most >> 23);
        const double scale = power_of_two(BIAS - exponent);
        for (int i = 0; i < 4; i++) sum += (double)((int32_t)(numbers[i] * scale) * (int64_t)quad->weight[i]);
        mixture->sum[c] += sum * power_of_two(exponent - BIAS - 8);
    }
}

static inline int32_t stored(enum channel channel, const void *texel, uint32_t c) {
    switch (channel) {
        case CHANNEL_UINT8:
        case CHANNEL_UNORM8:
        case CHANNEL_SRGB8: return ((const uint8_t *)texel)[c];
        case CHANNEL_SINT8:
        case CHANNEL_SNORM8: return ((const int8_t *)texel)[c];
        case CHANNEL_UINT16:
        case CHANNEL_UNORM10:
        case CHANNEL_UNORM16: return ((const uint16_t *)texel)[c];
        case CHANNEL_SINT16:
        case CHANNEL_SNORM16: return ((const int16_t *)texel)[c];
        default: return ((const int32_t *)texel)[c];
    }
}

static inline void mix_fixed(struct mixture *mixture, enum channel channel, uint32_t first, uint32_t channels,
                             const struct quad *quad) {
    for (int i = 0; i < 4; i++)
        for (uint32_t c = first; c < channels; c++) {
            const int32_t number = stored(channel, quad->texel[i], c);
            mixture->fixed[c] += quad->weight[i] * (channel == CHANNEL_UINT32 ? (int64_t)(uint32_t)number : number);
        }
}

void cpu_mix(struct mixture *mixture, enum channel channel, uint32_t channels, const struct quad *given) {
    struct quad quad = *given;
    const void *live = NULL;
    for (int i = 0; i < 4; i++) live = quad.weight[i] ? quad.texel[i] : live;
    for (int i = 0; i < 4; i++) quad.texel[i] = quad.weight[i] ? quad.texel[i] : live; /* that adds nothing */
    switch (channel) {
        case CHANNEL_FLOAT: mix_floats(mixture, channels, &quad); break;
        case CHANNEL_HALF: mix_parts(mixture, CHANNEL_HALF, channels, &quad); break;
        case CHANNEL_SRGB8:
            mix_parts(mixture, CHANNEL_SRGB8, channels < 3 ? channels : 3, &quad);
            mix_fixed(mixture, CHANNEL_SRGB8, 3, channels, &quad);
            break;
        case CHANNEL_UNORM8: mix_fixed(mixture, CHANNEL_UNORM8, 0, channels, &quad); break; /* with code of its own */
        default: mix_fixed(mixture, channel, 0, channels, &quad); break;
    }
}

/* ---- results ----------------------------------------------------------------------------------------------------- */

/* Without the lowest bits of its mantissa, rounded half away from zero. */
static inline double round_bits(double x, int bits) {
    uint64_t pattern;
    memcpy(&pattern, &x, sizeof pattern);
    pattern += UINT64_C(1) << (bits - 1);
    pattern &= ~((UINT64_C(1) << bits) - 1);
    memcpy(&x, &pattern, sizeof pattern);
    return x;
}

static uint32_t rounded_float(double x) {
    enum { NOT_IN_FLOAT = 52 - 23 };
    const float rounded = (float)round_bits(x, NOT_IN_FLOAT);
    return bits_of(fabsf(rounded) < 0x1p-126f ? copysignf(0, rounded) : rounded);
}

static uint32_t rounded_half(double x) {
    enum { NOT_IN_HALF = 52 - 10 };
    if (fabs(x) < 0x1p-14) return bits_of((float)copysign(floor(fabs(x) * 0x1p24 + 0.5) * 0x1p-24, x));
    return bits_of((float)round_bits(x, NOT_IN_HALF));
}

static inline uint32_t signed_parts(int64_t number) {
    return bits_of((float)(number < -32767 ? -32767 : number) / 32767);
}

static inline uint32_t result(const struct mixture *mixture, enum channel channel, uint32_t c) {
    enum { HALF_UP = CPU_WHOLE / 2 };
    const int64_t fixed = mixture->fixed[c];
    switch (channel) {
        case CHANNEL_UINT8:
        case CHANNEL_UINT16:
        case CHANNEL_SINT8:
        case CHANNEL_SINT16: return (uint32_t)((fixed + HALF_UP) >> 8);
        case CHANNEL_UINT32:
        case CHANNEL_SINT32: return (uint32_t)(fixed >> 8);
        case CHANNEL_UNORM8: return bits_of((float)((fixed * 257 + HALF_UP) >> 8) / 65535);
        case CHANNEL_UNORM10:
        case CHANNEL_UNORM16: return bits_of((float)((fixed + HALF_UP) >> 8) / 65535);
        case CHANNEL_SNORM8: {
            const int64_t more = fixed * 8; /* three bits below */
            return signed_parts((more + (more >> 7) + (more >> 15) + 4) >> 3);
        }
        case CHANNEL_SNORM16: return signed_parts((fixed + HALF_UP) >> 8);
        default: break;
    }
    if (mixture->special >> c & 1) {
        enum { QUIET_NAN = 0x7FFFFFFF };
        return isnan(mixture->sum[c]) ? QUIET_NAN : bits_of((float)mixture->sum[c]);
    }
    if (mixture->sum[c] == 0) return mixture->positive >> c & 1 ? 0 : bits_of(-0.0f);
    return channel == CHANNEL_FLOAT ? rounded_float(mixture->sum[c]) : rounded_half(mixture->sum[c]);
}

void cpu_mixed(const struct mixture *mixture, enum channel channel, uint32_t channels,
               uint32_t value[CPU_MAX_CHANNELS]) {
    for (uint32_t c = 0; c < CPU_MAX_CHANNELS; c++) {
        const enum channel own = channel == CHANNEL_SRGB8 && c == 3 ? CHANNEL_UNORM8 : channel;
        value[c] = c < channels ? result(mixture, own, c) : 0;
    }
}
