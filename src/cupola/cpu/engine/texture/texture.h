/* What texture and surface objects are to a kernel (CUDA C++ Programming Guide, "Texture Fetching"; CUDA Driver API,
 * CUDA_ARRAY3D_DESCRIPTOR, CUDA_TEXTURE_DESC). The driver makes and destroys them, the engine reads them. */
#ifndef CUPOLA_CPU_TEXTURE_H
#define CUPOLA_CPU_TEXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A box of texels in memory: one level of an array, or memory of the device. Texels of a row follow each other. */
struct cpu_image {
    uint64_t base;
    uint64_t size;                 /* bytes, for the check against the table of allocations */
    uint32_t width, height, depth; /* in texels; 1 for what the image does not have; depth: slices, without layers */
    uint32_t layers;               /* six for each cube of an array of cubes */
    uint64_t row, slice;           /* bytes from a row, and from a slice or layer, to the next */
};

enum { CPU_MAX_LEVELS = 17, CPU_MAX_CHANNELS = 4, CPU_TEXEL_BYTES = 16 };

struct cpu_texels {
    /* CUarray_format of a channel: one of the integers, HALF, FLOAT, or one of {U,S}NORM_INT{8,16}X1. Of packed texels
     * (packed.h) that of a texel. */
    uint32_t format;
    uint32_t channels;   /* 1, 2 or 4 */
    uint32_t bytes;      /* of a texel, or a block of them */
    uint32_t block;      /* texels along a side of a block; 1 where there are none */
    uint32_t dimensions; /* 1, 2 or 3; 2 for a cube map */
    bool layered, cubemap;
    bool linear; /* memory of the device as one row: no filter, no address modes */
    uint32_t level_count;
    struct cpu_image levels[CPU_MAX_LEVELS]; /* the layers of a view and its levels are counted from its first */
};

struct cpu_sampler {
    uint32_t address_mode[3]; /* CUaddress_mode; those that apply: without normalized coordinates, CLAMP or BORDER */
    uint32_t filter_mode, mipmap_filter_mode; /* CUfilter_mode */
    uint32_t flags;                           /* CU_TRSF_* */
    uint32_t max_anisotropy;                  /* 1 to 16 */
    float mipmap_level_bias, min_mipmap_level_clamp, max_mipmap_level_clamp;
    float border_color[4];
};

struct cpu_texture {
    struct cpu_texels texels;
    struct cpu_sampler sampler;                  /* this and the next: of a texture */
    _Alignas(4) uint8_t border[CPU_TEXEL_BYTES]; /* a texel of its color */
};

/* To be called when the rest of a texture is known. */
void cpu_texture_prepare(struct cpu_texture *texture);

#endif
