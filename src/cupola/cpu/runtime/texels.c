/* Texels in memory to numbers and back (CUDA C++ Programming Guide, "Texture Memory": read modes). */
#include "texels.h"

#include <cupola/driver.h>
#include <math.h>

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
        case CU_AD_FORMAT_HALF: return CHANNEL_HALF;
        default: return CHANNEL_FLOAT;
    }
}

float cpu_from_srgb(float x) { return x <= 0.04045f ? x / 12.92f : powf((x + 0.055f) / 1.055f, 2.4f); }
static inline float to_srgb(float x) { return x <= 0.0031308f ? x * 12.92f : 1.055f * powf(x, 1 / 2.4f) - 0.055f; }

void cpu_texel_read(enum channel channel, uint32_t channels, uint64_t place, uint32_t value[CPU_MAX_CHANNELS]) {
    const void *memory = (const void *)(uintptr_t)place;
    value[1] = value[2] = 0;
    value[3] = channel_is_float(channel) ? bits_of(1) : 1;
    for (uint32_t i = 0; i < channels; i++) value[i] = cpu_channel_read(channel, memory, i);
}

/* Not a number counts as zero. */
static inline float within(float x, float low, float high) { return x > low ? (x < high ? x : high) : x == x ? low : 0; }
static inline uint32_t at_most(uint32_t x, uint32_t most) { return x < most ? x : most; }
static inline int32_t between(uint32_t x, int32_t low, int32_t high) {
    return (int32_t)x < low ? low : (int32_t)x > high ? high : (int32_t)x;
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
        case CHANNEL_UNORM8: u8[i] = (uint8_t)rintf(within(x, 0, 1) * 255); break;
        case CHANNEL_UNORM16: u16[i] = (uint16_t)rintf(within(x, 0, 1) * 65535); break;
        case CHANNEL_SNORM8: u8[i] = (uint8_t)(int8_t)rintf(within(x, -1, 1) * 127); break;
        case CHANNEL_SNORM16: u16[i] = (uint16_t)(int16_t)rintf(within(x, -1, 1) * 32767); break;
        case CHANNEL_SRGB8: {
            float part = within(x, 0, 1);
            u8[i] = (uint8_t)rintf((i < 3 ? to_srgb(part) : part) * 255);
            break;
        }
        case CHANNEL_HALF: u16[i] = float_to_half(x); break;
        default: ((uint32_t *)memory)[i] = value;
    }
}

void cpu_texel_write(enum channel channel, uint32_t channels, uint64_t place, const uint32_t value[CPU_MAX_CHANNELS]) {
    for (uint32_t i = 0; i < channels; i++) write_channel(channel, (void *)(uintptr_t)place, i, value[i]);
}

uint32_t cpu_channel_data_type(enum channel channel) {
    static const uint16_t types[] = {
        [CHANNEL_SNORM8] = 0x10D0, [CHANNEL_SNORM16] = 0x10D1, [CHANNEL_UNORM8] = 0x10D2, [CHANNEL_UNORM16] = 0x10D3,
        [CHANNEL_SINT8] = 0x10D7,  [CHANNEL_SINT16] = 0x10D8,  [CHANNEL_SINT32] = 0x10D9, [CHANNEL_UINT8] = 0x10DA,
        [CHANNEL_UINT16] = 0x10DB, [CHANNEL_UINT32] = 0x10DC,  [CHANNEL_HALF] = 0x10DD,   [CHANNEL_FLOAT] = 0x10DE,
        [CHANNEL_SRGB8] = 0x10D2,
    };
    return types[channel];
}

uint32_t cpu_channel_order(uint32_t channels) {
    enum { R = 0x10B0, RG = 0x10B2, RGBA = 0x10B5 };
    return channels == 1 ? R : channels == 2 ? RG : RGBA;
}
