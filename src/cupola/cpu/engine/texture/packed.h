/* Texels that do not lie channel by channel: blocks of 4 x 4 compressed ones, and ten bits a channel (packed.c). */
#ifndef CUPOLA_CPU_PACKED_H
#define CUPOLA_CPU_PACKED_H

#include <cupola/driver.h>

#include "texture.h"

static inline bool cpu_is_packed(uint32_t format) {
    return (format >= CU_AD_FORMAT_BC1_UNORM && format <= CU_AD_FORMAT_BC7_UNORM_SRGB) ||
           format == CU_AD_FORMAT_UNORM_INT_101010_2;
}

/* A texel, of a block the one with this number, counted row by row: as the four channels of the format's cpu_channel(). */
void cpu_unpack(uint32_t format, const void *memory, uint32_t number, uint8_t texel[CPU_TEXEL_BYTES]);

/* Of a block of BC7 and BC6H (bptc.c). */
void cpu_read_bc7(const uint8_t *block, uint32_t texel, uint8_t rgba[4]);
void cpu_read_bc6h(const uint8_t *block, uint32_t texel, bool is_signed, uint16_t rgb[3]);

#endif
