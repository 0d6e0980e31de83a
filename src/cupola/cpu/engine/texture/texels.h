/* Texels in memory, and the four numbers that an instruction reads of one or writes to it. */
#ifndef CUPOLA_CPU_TEXELS_H
#define CUPOLA_CPU_TEXELS_H

#include "engine/instructions/half.h"
#include "texture.h"

/* How a channel is stored and read; what is read as a number of another kind has a name of its own. */
enum channel {
    CHANNEL_UINT8,
    CHANNEL_UINT16,
    CHANNEL_UINT32,
    CHANNEL_SINT8,
    CHANNEL_SINT16,
    CHANNEL_SINT32,
    CHANNEL_UNORM8, /* from here on the numbers are floats */
    CHANNEL_UNORM16,
    CHANNEL_SNORM8,
    CHANNEL_SNORM16,
    CHANNEL_UNORM10, /* the highest bits of UNORM16; in mixtures and in the fourth channel all of them */
    CHANNEL_SRGB8,   /* except the fourth channel, which is UNORM8 */
    CHANNEL_HALF,
    CHANNEL_FLOAT,
};

/* Of textures by the flags of their sampler (CU_TRSF_*). Surfaces are read and written with CU_TRSF_READ_AS_INTEGER. */
enum channel cpu_channel(const struct cpu_texels *texels, uint32_t flags);

static inline bool channel_is_float(enum channel channel) { return channel >= CHANNEL_UNORM8; }
static inline bool channel_is_signed(enum channel channel) {
    return channel >= CHANNEL_SINT8 && channel <= CHANNEL_SINT32;
}

/* A decoded number of sRGB is the result * 2^(exponent - 8). */
uint32_t cpu_srgb(uint8_t number, int32_t *exponent);
float cpu_from_srgb(uint8_t number);

static inline float signed_part(int value, float most) {
    float part = (float)value / most;
    return part < -1 ? -1 : part; /* the smallest integer has no counterpart */
}

/* The bits of one number. */
static inline uint32_t cpu_channel_read(enum channel channel, const void *memory, uint32_t i) {
    const uint8_t *u8 = memory;
    const uint16_t *u16 = memory;
    switch (channel) {
        case CHANNEL_UINT8: return u8[i];
        case CHANNEL_UINT16: return u16[i];
        case CHANNEL_SINT8: return (uint32_t)(int8_t)u8[i];
        case CHANNEL_SINT16: return (uint32_t)(int16_t)u16[i];
        case CHANNEL_UNORM8: return bits_of((float)u8[i] / 255);
        case CHANNEL_UNORM16: return bits_of((float)u16[i] / 65535);
        case CHANNEL_UNORM10: return bits_of(i < 3 ? (float)(u16[i] >> 6) / 1023 : (float)u16[i] / 65535);
        case CHANNEL_SNORM8: return bits_of(signed_part((int8_t)u8[i], 127));
        case CHANNEL_SNORM16: return bits_of(signed_part((int16_t)u16[i], 32767));
        case CHANNEL_SRGB8: return bits_of(i < 3 ? cpu_from_srgb(u8[i]) : (float)u8[i] / 255);
        case CHANNEL_HALF: return bits_of(half_to_float(u16[i]));
        default: return ((const uint32_t *)memory)[i];
    }
}

/* The bits of the four numbers of a texel: integers, or floats. Channels that it lacks are 0, also the fourth one. */
void cpu_texel_read(enum channel channel, uint32_t channels, uint64_t place, uint32_t value[CPU_MAX_CHANNELS]);

/* The opposite; numbers that the format does not have become the nearest one that it has. */
void cpu_texel_write(enum channel channel, uint32_t channels, uint64_t place, const uint32_t value[CPU_MAX_CHANNELS]);

/* The color of a border as a texel: numbers as near as the format has them, of integers the lowest bits. */
void cpu_border_write(enum channel channel, uint32_t channels, const float color[4], uint8_t texel[CPU_TEXEL_BYTES]);

/* Gives a texel the channels that it lacks: zero, and for the fourth one, one. */
void cpu_complete(enum channel channel, uint32_t channels, uint8_t texel[CPU_TEXEL_BYTES]);

/* What "txq" and "suq" say: the numbers of OpenCL's cl_channel_type and cl_channel_order (PTX ISA 5.3.2). */
uint32_t cpu_channel_data_type(enum channel channel);
uint32_t cpu_channel_order(uint32_t channels);

#endif
