/* Texture fetches (CUDA C++ Programming Guide, "Texture Fetching"; PTX ISA, "tex", "tld4").
 *
 * Coordinates become texels in three steps. The level of detail, from the instruction or from the gradients of the
 * coordinates, with the sampler's bias and limits, chooses one level of a mipmapped array or two neighbours. In a
 * level, each coordinate becomes the index of a texel (POINT) or those of two with a weight (LINEAR); address modes
 * bring an index beyond the edge back, or leave it outside, where the border's colour is. The texels are then mixed. As
 * on the hardware, weights have 8 bits of fraction: positions are rounded to 1/256 of a texel, levels to 1/256 of a
 * level.
 *
 * Directions into a cubemap choose the face of their largest component and a position on it. Where a filter reaches
 * over the edge of a face and the texture is seamless, it takes the texel beside the edge on the neighbouring face, and
 * at a corner, where there is none, the mean of the three texels that meet there.
 *
 * Textures are filtered as if they were isotropic, whatever the sampler's anisotropy. */
#include "sampling.h"

#include <cupola/driver.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "half.h"

enum { FRACTION = 256 };
static const double REACH = 1 << 30; /* texels: more than any texture has, less than what overflows below */

/* ---- texels ------------------------------------------------------------------------------------------------------ */

/* Where one texel is: on the face of a cubemap, z is the layer; -1 is outside. */
struct place {
    int32_t x, y, z;
};

/* An index beyond the edge: the one that stands for it, or -1. */
static int32_t address(int64_t index, uint32_t extent, uint32_t mode) {
    const int64_t n = extent;
    if (index >= 0 && index < n) return (int32_t)index;
    switch (mode) {
        case CU_TR_ADDRESS_MODE_WRAP: return (int32_t)((index % n + n) % n);
        case CU_TR_ADDRESS_MODE_MIRROR: {
            int64_t in_pair = (index % (2 * n) + 2 * n) % (2 * n);
            return (int32_t)(in_pair < n ? in_pair : 2 * n - 1 - in_pair);
        }
        case CU_TR_ADDRESS_MODE_BORDER: return -1;
        default: return index < 0 ? 0 : (int32_t)(n - 1);
    }
}

static void read_border(const struct view *view, uint32_t value[4]) {
    const uint32_t channels = view->texture->texels.channels;
    memcpy(value, view->texture->sampler.border_color, 4 * sizeof *value);
    for (uint32_t i = channels; i < 3; i++) value[i] = 0;
    if (channels < 4) value[3] = channel_is_float(view->channel) ? bits_of(1) : 1;
}

static void read_place(const struct view *view, const struct cpu_image *image, struct place at, uint32_t value[4]) {
    const struct cpu_texels *texels = &view->texture->texels;
    if ((at.x | at.y | at.z) < 0) {
        read_border(view, value);
        return;
    }
    uint64_t place = image->base + (uint64_t)at.z * image->slice + (uint64_t)at.y * image->row;
    cpu_texel_read(view->channel, texels->channels, place + (uint64_t)at.x * texels->bytes, value);
}

/* A depth comparison: does the reference not exceed the texel? */
static void compare(float reference, uint32_t value[4]) {
    value[0] = bits_of(reference <= float_of(value[0]) ? 1 : 0);
    value[1] = value[2] = 0;
    value[3] = bits_of(1);
}

/* ---- positions --------------------------------------------------------------------------------------------------- */

/* Two neighbouring indices of a dimension, and the weight of the second one in 1/256. */
struct pair {
    int64_t first;
    uint32_t weight;
};

static inline int64_t below(double x) { /* floor, of what is not beyond REACH */
    const int64_t whole = (int64_t)x;
    return whole - (x < (double)whole);
}

/* The position, in texels, of a coordinate. */
static double position(float coordinate, uint32_t extent, bool normalized, uint32_t mode) {
    double at = coordinate;
    if (!(at == at)) return 0;
    if (normalized) {
        if (mode == CU_TR_ADDRESS_MODE_WRAP && fabs(at) < INFINITY) at -= fabs(at) < REACH ? (double)below(at) : floor(at);
        if (mode == CU_TR_ADDRESS_MODE_MIRROR && fabs(at) < INFINITY) at -= 2 * floor(at / 2);
        at *= extent;
    }
    return at < -REACH ? -REACH : at > REACH ? REACH : at;
}

static struct pair neighbours(double position) {
    const int64_t fixed = below(position * FRACTION - (FRACTION / 2 - 0.5));
    return (struct pair){fixed >> 8, (uint32_t)(fixed & (FRACTION - 1))};
}

/* ---- cubemaps ---------------------------------------------------------------------------------------------------- */

/* For each face its outward axis, and the axes along which s and t grow, all of them as 1 + the number, negative when
 * they point the other way (CUDA C++ Programming Guide, "Cubemap Textures"). */
static const int8_t face_axes[6][3] = {{1, -3, -2}, {-1, 3, -2}, {2, 1, 3}, {-2, 1, -3}, {3, 1, -2}, {-3, -1, -2}};

static inline double along(const double vector[3], int8_t axis) {
    return axis > 0 ? vector[axis - 1] : -vector[-axis - 1];
}

static uint32_t face_of(const double d[3]) {
    const double x = fabs(d[0]), y = fabs(d[1]), z = fabs(d[2]);
    if (z >= x && z >= y) return d[2] < 0 ? 5 : 4;
    if (y >= x) return d[1] < 0 ? 3 : 2;
    return d[0] < 0 ? 1 : 0;
}

/* Replaces a direction by the coordinates on its face, from 0 to 1. */
static uint32_t onto_face(const float direction[3], float coordinate[2]) {
    double d[3];
    for (int i = 0; i < 3; i++) d[i] = direction[i] == direction[i] ? direction[i] : 0;
    const uint32_t face = face_of(d);
    const double major = along(d, face_axes[face][0]);
    for (int i = 0; i < 2; i++) {
        double part = major > 0 ? along(d, face_axes[face][i + 1]) / major : 0;
        coordinate[i] = (float)((part == part ? part + 1 : 1) / 2);
    }
    return face;
}

/* The texel beside the edge of a face, over which the index in one dimension is: on the neighbouring face. */
static struct place over_edge(uint32_t face, int64_t x, int64_t y, uint32_t extent) {
    const int64_t index[2] = {x, y};
    double d[3] = {0};
    int8_t outward = 0;
    const int8_t *axes = face_axes[face];
    d[abs(axes[0]) - 1] = axes[0] > 0 ? 1 : -1;
    for (int i = 0; i < 2; i++) {
        int8_t axis = axes[i + 1];
        double part = (2 * (double)index[i] + 1) / extent - 1;
        if (part < -1 || part > 1) {
            outward = part < 0 ? (int8_t)-axis : axis;
            part = part < 0 ? -1 : 1;
        }
        d[abs(axis) - 1] = axis > 0 ? part : -part;
    }
    uint32_t neighbour = 0;
    while (face_axes[neighbour][0] != outward) neighbour++;
    int32_t on_it[2];
    for (int i = 0; i < 2; i++) {
        double at = floor((along(d, face_axes[neighbour][i + 1]) + 1) / 2 * extent);
        on_it[i] = at < extent ? (int32_t)at : (int32_t)extent - 1;
    }
    return (struct place){on_it[0], on_it[1], (int32_t)neighbour};
}

/* ---- one level --------------------------------------------------------------------------------------------------- */

/* A level, and what of it is looked at: all dimensions, one layer, or one face of a cubemap. */
struct target {
    const struct view *view;
    const struct cpu_image *image;
    const float *compare; /* the reference of a depth comparison, or NULL */
    uint32_t dimensions;
    uint32_t layer; /* of a cubemap, its first */
    int32_t face;   /* -1: it is none, or its faces are not joined */
};

static inline bool outside(int64_t index, uint32_t extent) { return index < 0 || index >= extent; }

static void read_one(const struct target *target, struct place at, uint32_t value[4]) {
    read_place(target->view, target->image, at, value);
    if (target->compare) compare(*target->compare, value);
}

/* Where three faces meet, the mean of their texels there. */
static void read_corner(const struct target *target, int64_t x, int64_t y, uint32_t value[4]) {
    const uint32_t n = target->image->width;
    const int32_t near_x = x < 0 ? 0 : (int32_t)n - 1, near_y = y < 0 ? 0 : (int32_t)n - 1;
    struct place at[3] = {{near_x, near_y, target->face},
                          over_edge((uint32_t)target->face, x, near_y, n),
                          over_edge((uint32_t)target->face, near_x, y, n)};
    float sum[4] = {0};
    for (int i = 0; i < 3; i++) {
        at[i].z += (int32_t)target->layer;
        read_one(target, at[i], value);
        for (int c = 0; c < 4; c++) sum[c] += float_of(value[c]);
    }
    if (channel_is_float(target->view->channel)) /* integers stay those of the last face */
        for (int c = 0; c < 4; c++) value[c] = bits_of(sum[c] / 3);
}

static void read_index(const struct target *target, const int64_t index[3], uint32_t value[4]) {
    const struct cpu_image *image = target->image;
    const uint32_t *modes = target->view->texture->sampler.address_mode;
    if (target->face >= 0) {
        const bool x = outside(index[0], image->width), y = outside(index[1], image->height);
        if (x && y) {
            read_corner(target, index[0], index[1], value);
            return;
        }
        struct place at = {(int32_t)index[0], (int32_t)index[1], target->face};
        if (x || y) at = over_edge((uint32_t)target->face, index[0], index[1], image->width);
        at.z += (int32_t)target->layer;
        read_one(target, at, value);
        return;
    }
    struct place at = {address(index[0], image->width, modes[0]), 0, (int32_t)target->layer};
    if (target->dimensions > 1) at.y = address(index[1], image->height, modes[1]);
    if (target->dimensions > 2) at.z = address(index[2], image->depth, modes[2]);
    read_one(target, at, value);
}

/* The texels that LINEAR mixes along one dimension: how far each is from the image's beginning, in bytes, and its
 * weight. Those outside are at a negative place. */
struct span {
    int64_t at[2];
    float weight[2];
};

static inline __attribute__((always_inline)) void mix_as(enum channel channel, const struct target *target,
                                                         const struct span spans[3], float sum[4]) {
    const uint32_t channels = target->view->texture->texels.channels;
    const uint64_t base = target->image->base + target->layer * target->image->slice;
    const float *border = target->view->texture->sampler.border_color;
    for (uint32_t corner = 0; corner < 1u << target->dimensions; corner++) {
        const uint32_t x = corner & 1, y = corner >> 1 & 1, z = corner >> 2;
        const float weight = spans[0].weight[x] * spans[1].weight[y] * spans[2].weight[z];
        if (weight == 0) continue; /* what does not count may be infinite */
        const int64_t at[3] = {spans[0].at[x], spans[1].at[y], spans[2].at[z]};
        const bool is_border = (at[0] | at[1] | at[2]) < 0;
        const void *texel = (const void *)(uintptr_t)(base + (uint64_t)(at[0] + at[1] + at[2]));
        for (uint32_t c = 0; c < channels; c++)
            sum[c] += weight * (is_border ? border[c] : float_of(cpu_channel_read(channel, texel, c)));
    }
    if (channels < 4) sum[3] = 1;
}

/* The common case, without what joins the faces of cubemaps and compares depths. */
static void mix(const struct target *target, const struct pair pairs[3], const int32_t offset[3], uint32_t value[4]) {
    const struct cpu_image *image = target->image;
    const uint32_t *modes = target->view->texture->sampler.address_mode;
    const uint32_t extents[3] = {image->width, image->height, image->depth};
    const uint64_t steps[3] = {target->view->texture->texels.bytes, image->row, image->slice};
    struct span spans[3] = {{{0, 0}, {1, 0}}, {{0, 0}, {1, 0}}, {{0, 0}, {1, 0}}};
    for (uint32_t i = 0; i < target->dimensions; i++) {
        for (int second = 0; second < 2; second++) {
            const int32_t index = address(pairs[i].first + offset[i] + second, extents[i], modes[i]);
            spans[i].at[second] = index < 0 ? -1 : index * (int64_t)steps[i];
        }
        spans[i].weight[1] = (float)pairs[i].weight / FRACTION;
        spans[i].weight[0] = 1 - spans[i].weight[1];
    }
    float sum[4] = {0};
    switch (target->view->channel) { /* each with code of its own */
        case CHANNEL_UNORM8: mix_as(CHANNEL_UNORM8, target, spans, sum); break;
        case CHANNEL_FLOAT: mix_as(CHANNEL_FLOAT, target, spans, sum); break;
        default: mix_as(target->view->channel, target, spans, sum); break;
    }
    for (int c = 0; c < 4; c++) value[c] = bits_of(sum[c]);
}

static void filter(const struct target *target, const double at[3], const int32_t offset[3], uint32_t value[4]) {
    const bool linear = target->view->texture->sampler.filter_mode == CU_TR_FILTER_MODE_LINEAR &&
                        channel_is_float(target->view->channel);
    int64_t index[3] = {0};
    if (!linear) {
        for (uint32_t i = 0; i < target->dimensions; i++) index[i] = below(at[i]) + offset[i];
        read_index(target, index, value);
        return;
    }
    struct pair pairs[3] = {{0, 0}, {0, 0}, {0, 0}};
    for (uint32_t i = 0; i < target->dimensions; i++) pairs[i] = neighbours(at[i]);
    if (target->face < 0 && !target->compare) {
        mix(target, pairs, offset, value);
        return;
    }
    float sum[4] = {0};
    for (uint32_t corner = 0; corner < 1u << target->dimensions; corner++) {
        float weight = 1;
        for (uint32_t i = 0; i < target->dimensions; i++) {
            const uint32_t second = corner >> i & 1;
            index[i] = pairs[i].first + offset[i] + second;
            weight *= (float)(second ? pairs[i].weight : FRACTION - pairs[i].weight) / FRACTION;
        }
        if (weight == 0) continue; /* what does not count may be infinite */
        read_index(target, index, value);
        for (int c = 0; c < 4; c++) sum[c] += weight * float_of(value[c]);
    }
    for (int c = 0; c < 4; c++) value[c] = bits_of(sum[c]);
}

/* "tld4": a component of the four texels that LINEAR would mix, counter-clockwise from (first, second). */
static void gather(const struct target *target, const double at[3], const int32_t offset[3], uint32_t component,
                   uint32_t value[4]) {
    static const uint8_t corners[4][2] = {{0, 1}, {1, 1}, {1, 0}, {0, 0}};
    const int64_t first[2] = {neighbours(at[0]).first + offset[0], neighbours(at[1]).first + offset[1]};
    for (int i = 0; i < 4; i++) {
        uint32_t texel[4];
        read_index(target, (int64_t[3]){first[0] + corners[i][0], first[1] + corners[i][1], 0}, texel);
        value[i] = texel[component];
    }
}

/* ---- levels ------------------------------------------------------------------------------------------------------ */

/* The level, in 1/256, from 0 to the last one. */
static uint32_t fixed_level(const struct cpu_texture *texture, float level) {
    const struct cpu_sampler *sampler = &texture->sampler;
    const float last = (float)(texture->texels.level_count - 1);
    if (!(level == level)) level = 0;
    level += sampler->mipmap_level_bias;
    if (!(level > sampler->min_mipmap_level_clamp)) level = sampler->min_mipmap_level_clamp;
    if (level > sampler->max_mipmap_level_clamp) level = sampler->max_mipmap_level_clamp;
    if (!(level > 0)) level = 0;
    if (level > last) level = last;
    return (uint32_t)floorf(level * FRACTION + 0.5f);
}

/* How fast the position on the texture changes from pixel to pixel, in texels of level 0: the larger of two lengths,
 * squared. */
static float steepness(const struct cpu_texture *texture, const struct coordinates *where, uint32_t dimensions,
                       bool on_cube) {
    const struct cpu_image *image = &texture->texels.levels[0];
    const bool normalized = texture->sampler.flags & CU_TRSF_NORMALIZED_COORDINATES;
    const uint32_t extents[3] = {image->width, image->height, image->depth};
    const uint32_t *gradients[2] = {where->dx, where->dy};
    double most = 0, direction[3];
    uint32_t face = 0;
    if (on_cube) {
        for (int i = 0; i < 3; i++) direction[i] = float_of(where->at[i]);
        face = face_of(direction);
    }
    for (int g = 0; g < 2; g++) {
        double sum = 0;
        if (on_cube) { /* the quotient rule, for s / (2 * major) and t / (2 * major) */
            double change[3];
            for (int i = 0; i < 3; i++) change[i] = float_of(gradients[g][i]);
            const double major = along(direction, face_axes[face][0]), outward = along(change, face_axes[face][0]);
            for (int i = 1; i < 3; i++) {
                const int8_t axis = face_axes[face][i];
                double part = (along(change, axis) * major - along(direction, axis) * outward) / (2 * major * major);
                sum += part * part * extents[0] * extents[0];
            }
        } else {
            for (uint32_t i = 0; i < dimensions; i++) {
                double part = (double)float_of(gradients[g][i]) * (normalized ? extents[i] : 1);
                sum += part * part;
            }
        }
        if (sum > most) most = sum;
    }
    return (float)most;
}

/* ---- fetches ----------------------------------------------------------------------------------------------------- */

/* By integer coordinates: no filter, no address modes, and zeros outside. */
static void fetch(const struct view *view, struct lookup lookup, const struct coordinates *where, uint32_t dimensions,
                  uint32_t layer, uint32_t value[4]) {
    const struct cpu_texels *texels = &view->texture->texels;
    const uint32_t level = lookup.level == LEVEL_GIVEN ? where->level : 0;
    memset(value, 0, 4 * sizeof *value);
    if (level >= texels->level_count) return;
    const struct cpu_image *image = &texels->levels[level];
    const uint32_t extents[3] = {image->width, image->height, image->depth};
    int64_t at[3] = {0};
    for (uint32_t i = 0; i < dimensions; i++) {
        at[i] = (int64_t)(int32_t)where->at[i] + where->offset[i];
        if (outside(at[i], extents[i])) return;
    }
    struct place place = {(int32_t)at[0], (int32_t)at[1], dimensions > 2 ? (int32_t)at[2] : (int32_t)layer};
    read_place(view, image, place, value);
}

static void sample_level(const struct view *view, struct lookup lookup, const struct coordinates *where,
                         uint32_t level, uint32_t layer, uint32_t value[4]) {
    const struct cpu_texture *texture = view->texture;
    const struct cpu_sampler *sampler = &texture->sampler;
    const struct cpu_image *image = &texture->texels.levels[level];
    const bool on_cube = lookup.geometry >= GEOMETRY_CUBE;
    const uint32_t extents[3] = {image->width, image->height, image->depth};
    const float reference = float_of(where->compare);
    struct target target = {view, image, lookup.flags & LOOKUP_COMPARE ? &reference : NULL, texture->texels.dimensions,
                            layer, -1};
    float coordinate[3];
    for (int i = 0; i < 3; i++) coordinate[i] = float_of(where->at[i]);
    if (on_cube) {
        const uint32_t face = onto_face(coordinate, coordinate);
        if (sampler->flags & CU_TRSF_SEAMLESS_CUBEMAP) target.face = (int32_t)face;
        else target.layer += face;
    }
    double at[3] = {0};
    for (uint32_t i = 0; i < target.dimensions; i++) {
        /* The coordinates on a face are between 0 and 1, and 1 itself does not come round again. */
        const uint32_t mode = on_cube ? CU_TR_ADDRESS_MODE_CLAMP : sampler->address_mode[i];
        const bool normalized = on_cube || sampler->flags & CU_TRSF_NORMALIZED_COORDINATES;
        at[i] = position(coordinate[i], extents[i], normalized, mode);
        if (on_cube && at[i] >= extents[i]) at[i] = nextafter(extents[i], 0);
    }
    if (lookup.gather) gather(&target, at, where->offset, lookup.gather - 1u, value);
    else filter(&target, at, where->offset, value);
}

void cpu_sample(const struct view *view, struct lookup lookup, const struct coordinates *where, uint32_t value[4]) {
    const struct cpu_texture *texture = view->texture;
    const struct cpu_texels *texels = &texture->texels;
    const bool on_cube = lookup.geometry >= GEOMETRY_CUBE;
    uint32_t layer = 0;
    if (lookup.geometry >= GEOMETRY_A1D && lookup.geometry != GEOMETRY_CUBE) {
        const uint32_t faces = on_cube ? 6 : 1, layers = texels->levels[0].layers / faces;
        layer = (where->layer < layers ? where->layer : layers - 1) * faces;
    }
    if (!(lookup.flags & LOOKUP_FLOAT)) {
        fetch(view, lookup, where, texels->dimensions, layer, value);
        return;
    }
    if (texels->linear) { /* has nothing but texels */
        double at = position(float_of(where->at[0]), 1, false, CU_TR_ADDRESS_MODE_CLAMP);
        struct coordinates whole = *where;
        whole.at[0] = (uint32_t)(int32_t)floor(at);
        fetch(view, lookup, &whole, 1, 0, value);
        return;
    }
    if (texels->level_count == 1) {
        sample_level(view, lookup, where, 0, layer, value);
        return;
    }
    float level = lookup.level == LEVEL_GIVEN ? float_of(where->level) : 0;
    if (lookup.level == LEVEL_GRADIENT)
        level = 0.5f * log2f(steepness(texture, where, texels->dimensions, on_cube));
    const uint32_t fixed = fixed_level(texture, level);
    const bool between = texture->sampler.mipmap_filter_mode == CU_TR_FILTER_MODE_LINEAR && fixed % FRACTION &&
                         channel_is_float(view->channel) && !lookup.gather;
    if (!between) {
        sample_level(view, lookup, where, (fixed + FRACTION / 2) / FRACTION, layer, value);
        return;
    }
    uint32_t next[4];
    const float part = (float)(fixed % FRACTION) / FRACTION;
    sample_level(view, lookup, where, fixed / FRACTION, layer, value);
    sample_level(view, lookup, where, fixed / FRACTION + 1, layer, next);
    for (int c = 0; c < 4; c++) value[c] = bits_of((1 - part) * float_of(value[c]) + part * float_of(next[c]));
}
