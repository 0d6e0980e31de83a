/* Texels times weights: see mixing.c. */
#ifndef CUPOLA_CPU_MIXING_H
#define CUPOLA_CPU_MIXING_H

#include "texels.h"

enum { CPU_WHOLE = 256 }; /* the sum of the weights of a mixture */

/* Two neighbors in x, or two and two in x and y, of one slice or level: (x, y) is at x + 2 * y. Weights are 0 for
 * those that are not read. */
struct quad {
    const void *texel[4];
    uint32_t weight[4];
};

/* The sums so far, by channel. */
struct mixture {
    int64_t fixed[CPU_MAX_CHANNELS]; /* of numbers with a fixed point, integers included */
    double sum[CPU_MAX_CHANNELS];    /* of floats */
    uint8_t positive, special;       /* masks of channels: a term without a sign, an infinity or a NaN */
};

/* The weights of the texels around a position that is x and y 1/256 behind the first of them. */
void cpu_quad_weights(struct quad *quad, uint32_t x, uint32_t y, uint32_t whole);

void cpu_mix(struct mixture *mixture, enum channel channel, uint32_t channels, const struct quad *quad);

/* The bits of the four numbers of a mixture, as those of a texel. */
void cpu_mixed(const struct mixture *mixture, enum channel channel, uint32_t channels,
               uint32_t value[CPU_MAX_CHANNELS]);

#endif
