/* Texels in memory to numbers and back (CUDA C++ Programming Guide, "Texture Memory": read modes). */
#include "texels.h"

#include <cupola/driver.h>
#include <math.h>
#include <string.h>

enum channel cpu_channel(const struct cpu_texels *texels, uint32_t flags) {
    const bool as_integer = flags & CU_TRSF_READ_AS_INTEGER;
    switch ((int)texels->format) {
        case CU_AD_FORMAT_UNSIGNED_INT8:
            if (as_integer) return CHANNEL_UINT8;
            return flags & CU_TRSF_SRGB ? CHANNEL_SRGB8 : CHANNEL_UNORM8;
        case CU_AD_FORMAT_UNSIGNED_INT16: return as_integer ? CHANNEL_UINT16 : CHANNEL_UNORM16;
        case CU_AD_FORMAT_UNSIGNED_INT32: return CHANNEL_UINT32;
        case CU_AD_FORMAT_SIGNED_INT8: return as_integer ? CHANNEL_SINT8 : CHANNEL_SNORM8;
        case CU_AD_FORMAT_SIGNED_INT16: return as_integer ? CHANNEL_SINT16 : CHANNEL_SNORM16;
        case CU_AD_FORMAT_SIGNED_INT32: return CHANNEL_SINT32;
        case CU_AD_FORMAT_UNORM_INT8X1: return flags & CU_TRSF_SRGB ? CHANNEL_SRGB8 : CHANNEL_UNORM8;
        case CU_AD_FORMAT_UNORM_INT16X1: return CHANNEL_UNORM16;
        case CU_AD_FORMAT_SNORM_INT8X1: return CHANNEL_SNORM8;
        case CU_AD_FORMAT_SNORM_INT16X1: return CHANNEL_SNORM16;
        case CU_AD_FORMAT_UNORM_INT_101010_2: return CHANNEL_UNORM10;
        case CU_AD_FORMAT_BC1_UNORM:
        case CU_AD_FORMAT_BC1_UNORM_SRGB:
        case CU_AD_FORMAT_BC2_UNORM:
        case CU_AD_FORMAT_BC2_UNORM_SRGB:
        case CU_AD_FORMAT_BC3_UNORM:
        case CU_AD_FORMAT_BC3_UNORM_SRGB:
        case CU_AD_FORMAT_BC7_UNORM:
        case CU_AD_FORMAT_BC7_UNORM_SRGB: return flags & CU_TRSF_SRGB ? CHANNEL_SRGB8 : CHANNEL_UNORM8;
        case CU_AD_FORMAT_BC4_UNORM:
        case CU_AD_FORMAT_BC5_UNORM: return CHANNEL_UNORM16;
        case CU_AD_FORMAT_BC4_SNORM:
        case CU_AD_FORMAT_BC5_SNORM: return CHANNEL_SNORM16;
        case CU_AD_FORMAT_HALF:
        case CU_AD_FORMAT_BC6H_UF16:
        case CU_AD_FORMAT_BC6H_SF16: return CHANNEL_HALF;
        default: return CHANNEL_FLOAT;
    }
}

/* ---- sRGB -------------------------------------------------------------------------------------------------------- */

/* What an H200 makes of the 256 numbers: near the formula of the standard, with mantissas of eight bits. Some of them
 * are not normalized, which shows in mixtures. */
static const uint8_t srgb_mantissas[256] = {
    0,   160, 160, 240, 160, 200, 240, 140, 160, 180, 200, 220, 240, 132, 144, 156, 170, 184, 198, 214, 230, 246,
    131, 140, 150, 159, 169, 180, 190, 201, 213, 224, 118, 125, 131, 138, 145, 152, 159, 166, 174, 182, 190, 198,
    206, 215, 224, 233, 121, 126, 131, 136, 141, 146, 151, 156, 162, 168, 173, 179, 185, 191, 197, 204, 105, 108,
    112, 115, 118, 122, 125, 129, 133, 136, 140, 144, 148, 152, 156, 160, 164, 169, 173, 177, 182, 186, 191, 195,
    200, 205, 209, 214, 219, 224, 229, 234, 120, 122, 125, 128, 130, 133, 136, 139, 142, 145, 148, 151, 154, 157,
    160, 163, 166, 169, 172, 176, 179, 182, 186, 189, 192, 196, 199, 203, 206, 210, 214, 217, 221, 225, 229, 232,
    236, 240, 244, 248, 126, 128, 130, 132, 134, 136, 138, 141, 143, 145, 147, 149, 152, 154, 156, 158, 161, 163,
    165, 168, 170, 173, 175, 178, 180, 182, 185, 188, 190, 193, 195, 198, 200, 203, 206, 209, 211, 214, 217, 219,
    222, 225, 228, 231, 234, 237, 240, 242, 123, 124, 126, 127, 129, 130, 132, 133, 135, 137, 138, 140, 141, 143,
    145, 146, 148, 150, 151, 153, 155, 156, 158, 160, 161, 163, 165, 167, 169, 170, 172, 174, 176, 178, 179, 181,
    183, 185, 187, 189, 191, 193, 195, 197, 199, 201, 203, 205, 207, 209, 211, 213, 215, 217, 219, 221, 223, 225,
    227, 229, 232, 234, 236, 238, 120, 121, 122, 123, 125, 126, 127, 128,
};
static const struct {
    int16_t first, exponent;
} srgb_exponents[] = {{248, 1}, {184, 0}, {136, -1}, {96, -2}, {64, -3}, {48, -4}, {32, -5},
                      {22, -6}, {13, -7}, {7, -8},   {4, -9},  {2, -10}, {0, -11}};

uint32_t cpu_srgb(uint8_t number, int32_t *exponent) {
    int i = 0;
    while (number < srgb_exponents[i].first) i++;
    *exponent = srgb_exponents[i].exponent;
    return srgb_mantissas[number];
}

float cpu_from_srgb(uint8_t number) {
    int32_t exponent;
    const uint32_t mantissa = cpu_srgb(number, &exponent);
    return ldexpf((float)mantissa, exponent - 8);
}

static inline float to_srgb(float x) { return x <= 0.0031308f ? x * 12.92f : 1.055f * powf(x, 1 / 2.4f) - 0.055f; }

/* ---- reading and writing ----------------------------------------------------------------------------------------- */

void cpu_texel_read(enum channel channel, uint32_t channels, uint64_t place, uint32_t value[CPU_MAX_CHANNELS]) {
    const void *memory = (const void *)(uintptr_t)place;
    for (uint32_t i = 0; i < CPU_MAX_CHANNELS; i++) value[i] = i < channels ? cpu_channel_read(channel, memory, i) : 0;
}

/* Not a number counts as zero. */
static inline float within(float x, float low, float high) {
    return x > low ? (x < high ? x : high) : x == x ? low : 0;
}
static inline uint32_t at_most(uint32_t x, uint32_t most) { return x < most ? x : most; }
static inline int32_t between(uint32_t x, int32_t low, int32_t high) {
    return (int32_t)x < low ? low : (int32_t)x > high ? high : (int32_t)x;
}

/* To the nearest, and what is between two, or a little above that, towards zero. */
static inline int32_t nearest_part(float x, float most) {
    return (int32_t)((double)x * most + (x < 0 ? -0.499 : 0.499));
}

static inline void write_channel(enum channel channel, void *memory, uint32_t i, uint32_t value) {
    uint8_t *u8 = memory;
    uint16_t *u16 = memory;
    const float x = float_of(value);
    switch (channel) {
        case CHANNEL_UINT8: u8[i] = (uint8_t)at_most(value, UINT8_MAX); break;
        case CHANNEL_UINT16: u16[i] = (uint16_t)at_most(value, UINT16_MAX); break;
        case CHANNEL_SINT8: u8[i] = (uint8_t)between(value, INT8_MIN, INT8_MAX); break;
        case CHANNEL_SINT16: u16[i] = (uint16_t)between(value, INT16_MIN, INT16_MAX); break;
        case CHANNEL_UNORM8: u8[i] = (uint8_t)nearest_part(within(x, 0, 1), 255); break;
        case CHANNEL_UNORM16: u16[i] = (uint16_t)nearest_part(within(x, 0, 1), 65535); break;
        case CHANNEL_SNORM8: u8[i] = (uint8_t)nearest_part(within(x, -1, 1), 127); break;
        case CHANNEL_SNORM16: u16[i] = (uint16_t)nearest_part(within(x, -1, 1), 32767); break;
        case CHANNEL_SRGB8: {
            float part = within(x, 0, 1);
            u8[i] = (uint8_t)rintf((i < 3 ? to_srgb(part) : part) * 255);
            break;
        }
        case CHANNEL_HALF: u16[i] = float_to_half(x); break;
        default: ((uint32_t *)memory)[i] = value;
    }
}

/* Ten, ten, ten and two bits. */
static uint32_t pack_tens(const uint32_t value[CPU_MAX_CHANNELS]) {
    uint32_t packed = 0;
    for (uint32_t i = 0; i < CPU_MAX_CHANNELS; i++)
        packed |= (uint32_t)nearest_part(within(float_of(value[i]), 0, 1), i < 3 ? 1023 : 3) << (10 * i);
    return packed;
}

void cpu_texel_write(enum channel channel, uint32_t channels, uint64_t place, const uint32_t value[CPU_MAX_CHANNELS]) {
    if (channel == CHANNEL_UNORM10) {
        *(uint32_t *)(uintptr_t)place = pack_tens(value);
        return;
    }
    for (uint32_t i = 0; i < channels; i++) write_channel(channel, (void *)(uintptr_t)place, i, value[i]);
}

static uint16_t half_toward_zero(float x) {
    const float magnitude = fminf(fabsf(x), 65504);
    const uint16_t sign = (uint16_t)(signbit(x) ? 0x8000 : 0);
    if (magnitude < 0x1p-14f) return sign | (uint16_t)(magnitude * 0x1p24f);
    return sign | (uint16_t)((bits_of(magnitude) - 0x38000000) >> 13);
}

void cpu_border_write(enum channel channel, uint32_t channels, const float color[4], uint8_t texel[CPU_TEXEL_BYTES]) {
    for (uint32_t i = 0; i < channels; i++) {
        uint16_t *u16 = (uint16_t *)texel;
        const float x = color[i];
        const uint32_t bits = bits_of(x);
        switch (channel) {
            case CHANNEL_UINT8:
            case CHANNEL_SINT8: texel[i] = (uint8_t)bits; break;
            case CHANNEL_UNORM8: texel[i] = (uint8_t)nearest_part(within(x, 0, 1), 255); break;
            case CHANNEL_SNORM8: texel[i] = (uint8_t)nearest_part(within(x, -1, 1), 127); break;
            case CHANNEL_SRGB8:
                if (i < 3) write_channel(CHANNEL_SRGB8, texel, i, bits);
                else texel[i] = (uint8_t)nearest_part(within(x, 0, 1), 255);
                break;
            case CHANNEL_UINT16:
            case CHANNEL_SINT16: u16[i] = (uint16_t)bits; break;
            case CHANNEL_UNORM10:
            case CHANNEL_UNORM16: u16[i] = (uint16_t)nearest_part(within(x, 0, 1), 65535); break;
            case CHANNEL_SNORM16: u16[i] = (uint16_t)nearest_part(within(x, -1, 1), 32767); break;
            case CHANNEL_HALF: u16[i] = half_toward_zero(x); break;
            default: memcpy(texel + 4 * i, &bits, sizeof bits); break;
        }
    }
}

void cpu_complete(enum channel channel, uint32_t channels, uint8_t texel[CPU_TEXEL_BYTES]) {
    const float none[] = {0, 0, 0, 1};
    uint8_t whole[CPU_TEXEL_BYTES];
    const uint32_t bytes = channel == CHANNEL_UNORM8 || channel == CHANNEL_SRGB8 ? 1 : 2;
    cpu_border_write(channel, CPU_MAX_CHANNELS, none, whole);
    memcpy(texel + channels * bytes, whole + channels * bytes, (CPU_MAX_CHANNELS - channels) * bytes);
}

uint32_t cpu_channel_data_type(enum channel channel) {
    static const uint16_t types[] = {
        [CHANNEL_SNORM8] = 0x10D0, [CHANNEL_SNORM16] = 0x10D1, [CHANNEL_UNORM8] = 0x10D2, [CHANNEL_UNORM16] = 0x10D3,
        [CHANNEL_SINT8] = 0x10D7,  [CHANNEL_SINT16] = 0x10D8,  [CHANNEL_SINT32] = 0x10D9, [CHANNEL_UINT8] = 0x10DA,
        [CHANNEL_UINT16] = 0x10DB, [CHANNEL_UINT32] = 0x10DC,  [CHANNEL_HALF] = 0x10DD,   [CHANNEL_FLOAT] = 0x10DE,
        [CHANNEL_SRGB8] = 0x10D2,  [CHANNEL_UNORM10] = 0x10D3,
    };
    return types[channel];
}

uint32_t cpu_channel_order(uint32_t channels) {
    enum { R = 0x10B0, RG = 0x10B2, RGBA = 0x10B5 };
    return channels == 1 ? R : channels == 2 ? RG : RGBA;
}
