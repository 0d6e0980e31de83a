/* From coordinates to the value of a texture: see sampling.c. */
#ifndef CUPOLA_CPU_SAMPLING_H
#define CUPOLA_CPU_SAMPLING_H

#include "texels.h"

/* An instruction ("tex", "tld4"), as emit/memory/textures.py packs it: a byte each, from the lowest on. */
enum geometry { GEOMETRY_1D, GEOMETRY_2D, GEOMETRY_3D, GEOMETRY_A1D, GEOMETRY_A2D, GEOMETRY_CUBE, GEOMETRY_ACUBE };
enum level_mode { LEVEL_BASE, LEVEL_GIVEN, LEVEL_GRADIENT };
enum { LOOKUP_FLOAT = 1, LOOKUP_OFFSET = 2, LOOKUP_COMPARE = 4, LOOKUP_HALF = 8 };
struct lookup {
    uint8_t geometry, level;
    uint8_t flags;
    uint8_t gather; /* the component that "tld4" wants, counted from 1; 0: "tex" */
};

/* What one lane gives: integers, or the bits of floats. */
struct coordinates {
    uint32_t layer, at[3];
    uint32_t level, dx[3], dy[3];
    int32_t offset[3];
    uint32_t compare;
};

/* A texture whose memory was found to be there. */
struct view {
    const struct cpu_texture *texture;
    enum channel channel;
};

/* Whether gradients say that a pixel covers no more than a texel of level 0. */
bool cpu_is_magnified(const struct view *view, struct lookup lookup, const struct coordinates *where);

void cpu_sample(const struct view *view, struct lookup lookup, const struct coordinates *where,
                uint32_t value[CPU_MAX_CHANNELS]);

#endif
