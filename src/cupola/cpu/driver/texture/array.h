/* CUDA arrays, as the files about arrays, their copies, and textures and surfaces see them. */
#ifndef CUPOLA_CPU_DRIVER_ARRAY_H
#define CUPOLA_CPU_DRIVER_ARRAY_H

#include "engine/texture/texture.h"
#include "driver/memory/memory.h"

/* Rows of texels and slices of rows have no gaps. Programs cannot see the layout, so the simplest one is used. */
struct CUarray_st {
    struct handle handle;
    CUcontext context;
    CUDA_ARRAY3D_DESCRIPTOR descriptor; /* of a level: with its own size */
    struct cpu_image image;
    uint32_t texel;          /* bytes, of a block where texels come in blocks */
    CUmipmappedArray levels; /* what this is a level of, or NULL: it has memory of its own */
};

struct CUmipmappedArray_st {
    struct handle handle;
    CUcontext context;
    CUDA_ARRAY3D_DESCRIPTOR descriptor;
    uint64_t base;
    unsigned count;
    bool is_lent; /* by a graphics resource, with which it goes */
    CUarray level[CPU_MAX_LEVELS];
};

/* The live array behind a handle, or CUDA_ERROR_INVALID_HANDLE. */
CUresult array_check(CUarray array);
CUresult mipmapped_array_check(CUmipmappedArray array);

/* Format, channels and bytes of texels, or why the format is not supported (texel.c). */
CUresult texel_check(CUarray_format format, unsigned channels, struct cpu_texels *texels);
bool texel_is_integer(uint32_t format);
bool array_is_compressed(CUarray array);  /* its texels come in blocks */
size_t texel_most_linear(uint32_t bytes); /* how many texels of this size linear memory may have */

/* For images of OpenGL: a mipmapped array, and one layer or face of one of its levels as an array (NULL: out of
 * memory). Free layers before the whole array, and only when nothing uses it any more. */
CUresult array_make_levels(CUcontext context, const CUDA_ARRAY3D_DESCRIPTOR *descriptor, unsigned levels,
                           CUmipmappedArray *made);
void array_free_levels(CUmipmappedArray array);
CUarray array_make_layer(CUmipmappedArray array, unsigned level, unsigned layer);
void array_free_layer(CUarray layer);

/* All of an array's kind but its levels, from a checked descriptor. */
void array_describe(const CUDA_ARRAY3D_DESCRIPTOR *descriptor, struct cpu_texels *texels);

#endif
