/* Texture fetches (CUDA C++ Programming Guide, "Texture Fetching"; PTX ISA, "tex", "tld4").
 *
 * Coordinates become texels in three steps. The level of detail, from the instruction or from the gradients of the
 * coordinates, with the sampler's bias and limits, chooses one level of a mipmapped array or two neighbors. In a
 * level, each coordinate becomes the index of a texel (POINT) or those of two with a weight (LINEAR); address modes
 * bring an index beyond the edge back, or leave it outside, where the border's color is. The texels are then mixed
 * (mixing.c).
 *
 * What the guide leaves open is as on an H200, where it was measured. Normalized coordinates are cut off at 1/2^21,
 * positions are rounded to 1/256 of a texel, levels cut off at 1/256 of a level. The level of gradients comes from
 * lengths without square roots. A 1D texture is the row y = 0 of a 2D one, so that with BORDER for y, half of what a
 * filter gives is the border.
 *
 * Directions into a cubemap choose the face of their largest component and a position on it. Where a filter reaches
 * over the edge of a face and the texture is seamless, it takes the texel beside the edge on the neighboring face, and
 * at a corner, where there is no such texel, more of the three texels that meet there.
 *
 * There is no anisotropic filter: gradients with a sampler that asks for one are refused (texture.c). */
#include "sampling.h"

#include <cupola/driver.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/instructions/half.h"
#include "mixing.h"
#include "packed.h"

enum { FRACTION = 256 };
static const double REACH = 1 << 30; /* texels: more than any texture has, less than what overflows below */

/* ---- texels ------------------------------------------------------------------------------------------------------ */

/* Where one texel is: on the face of a cubemap, z is the layer; -1 is outside. */
struct place {
    int32_t x, y, z;
};

/* The index that replaces one beyond the edge, or -1. */
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

void cpu_texture_prepare(struct cpu_texture *texture) {
    const enum channel channel = cpu_channel(&texture->texels, texture->sampler.flags);
    cpu_border_write(channel, texture->texels.channels, texture->sampler.border_color, texture->border);
    if (texture->texels.block > 1) cpu_complete(channel, texture->texels.channels, texture->border);
}

/* What is unpacked of blocks has all channels. */
static inline uint32_t channels_of(const struct cpu_texels *texels) {
    return texels->block > 1 ? CPU_MAX_CHANNELS : texels->channels;
}

/* Where packed texels are unpacked to. */
struct unpacked {
    _Alignas(4) uint8_t texel[CPU_TEXEL_BYTES];
};

static inline const void *find_texel(const struct view *view, const struct cpu_image *image, struct place at,
                                     struct unpacked *unpacked) {
    const struct cpu_texels *texels = &view->texture->texels;
    if ((at.x | at.y | at.z) < 0) return view->texture->border;
    const uint64_t slice = image->base + (uint64_t)at.z * image->slice;
    if (!cpu_is_packed(texels->format))
        return (const void *)(uintptr_t)(slice + (uint64_t)at.y * image->row + (uint64_t)at.x * texels->bytes);
    const uint32_t x = (uint32_t)at.x / texels->block, y = (uint32_t)at.y / texels->block;
    const uint32_t within = (uint32_t)at.y % texels->block * texels->block + (uint32_t)at.x % texels->block;
    cpu_unpack(texels->format, (const void *)(uintptr_t)(slice + y * image->row + (uint64_t)x * texels->bytes), within,
               unpacked->texel);
    return unpacked->texel;
}

static void read_place(const struct view *view, const struct cpu_image *image, struct place at, uint32_t value[4]) {
    struct unpacked unpacked;
    const void *texel = find_texel(view, image, at, &unpacked);
    cpu_texel_read(view->channel, channels_of(&view->texture->texels), (uintptr_t)texel, value);
}

/* A depth comparison: does the reference not exceed the texel? */
static void compare(float reference, uint32_t value[4]) {
    value[0] = bits_of(reference <= float_of(value[0]) ? 1 : 0);
    value[1] = value[2] = 0;
    value[3] = bits_of(1);
}

/* ---- positions --------------------------------------------------------------------------------------------------- */

/* Two neighboring indices of a dimension, and the weight of the second one in 1/256. */
struct pair {
    int64_t first;
    uint32_t weight;
};

static inline int64_t below(double x) { /* floor, of what is not beyond REACH */
    const int64_t whole = (int64_t)x;
    return whole - (x < (double)whole);
}

/* The position, in texels, of a coordinate. NaN counts as 0, and so does infinity in textures that repeat. */
static double position(float coordinate, uint32_t extent, bool normalized, uint32_t mode) {
    const bool repeats = mode == CU_TR_ADDRESS_MODE_WRAP || mode == CU_TR_ADDRESS_MODE_MIRROR;
    double at = fabsf(coordinate) < 0x1p-126f ? 0 : coordinate;
    if (!(at == at)) return 0;
    if (normalized && fabs(at) < REACH) {
        at = (double)below(at * 0x1p21) * 0x1p-21;
        if (mode == CU_TR_ADDRESS_MODE_WRAP) at -= (double)below(at);
        if (mode == CU_TR_ADDRESS_MODE_MIRROR) at -= 2 * (double)below(at / 2);
    } else if (normalized && repeats) {
        return 0;
    }
    if (normalized) at *= extent;
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
    for (int i = 0; i < 3; i++) d[i] = isnan(direction[i]) ? 0 : direction[i];
    if (isinf(d[0]) || isinf(d[1]) || isinf(d[2])) d[0] = d[1] = d[2] = 0;
    const uint32_t face = face_of(d);
    const double major = along(d, face_axes[face][0]);
    for (int i = 0; i < 2; i++) {
        double part = major > 0 ? along(d, face_axes[face][i + 1]) / major : 0;
        coordinate[i] = (float)((part == part ? part + 1 : 1) / 2);
    }
    return face;
}

/* The texel beside the edge of a face, over which the index in one dimension is: on the neighboring face. */
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
    const uint32_t *compare; /* the bits of the reference of a depth comparison, or NULL */
    uint32_t dimensions;
    uint32_t layer; /* of a cubemap, its first */
    int32_t face;   /* -1: not a cubemap, or its faces are not joined */
};

static inline bool outside(int64_t index, uint32_t extent) { return index < 0 || index >= extent; }

static void read_one(const struct target *target, struct place at, uint32_t value[4]) {
    read_place(target->view, target->image, at, value);
    if (target->compare) compare(float_of(*target->compare), value);
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

/* The sampler does not mix what is left of a texel's neighbor beyond the edge. */
static struct pair clamped(struct pair pair, uint32_t extent, uint32_t mode) {
    if (mode != CU_TR_ADDRESS_MODE_CLAMP) return pair;
    if (pair.first < 0) return (struct pair){0, 0};
    return pair.first + 1 < extent ? pair : (struct pair){extent - 1, 0};
}

/* What a level adds to. */
struct part {
    struct mixture *mixture;
    uint32_t whole; /* the sum of the weights: less than CPU_WHOLE for one of two levels */
    bool is_first;  /* of two levels */
};

/* A comparison makes numbers of its own: mixed as floats. */
static void mix_comparisons(const struct target *target, const struct pair pairs[3], struct part part) {
    uint32_t numbers[4][4];
    struct quad quad;
    cpu_quad_weights(&quad, pairs[0].weight, pairs[1].weight, part.whole);
    for (uint32_t corner = 0; corner < 4; corner++) {
        const int64_t index[3] = {pairs[0].first + (corner & 1), pairs[1].first + (corner >> 1), 0};
        quad.texel[corner] = numbers[corner];
        if (quad.weight[corner]) read_index(target, index, numbers[corner]);
    }
    cpu_mix(part.mixture, CHANNEL_FLOAT, CPU_MAX_CHANNELS, &quad);
}

/* Where three faces meet, the fourth texel of a quad is missing: the others share its weight. What is left of three
 * equal shares goes to the one that faces it, or to the two beside it. */
static void share_weight(struct quad *quad, uint32_t missing) {
    const uint32_t weight = quad->weight[missing], left = weight % 3;
    for (uint32_t i = 0; i < 4; i++) quad->weight[i] += weight / 3 + (left && (i == (missing ^ 3)) == (left == 1));
    quad->weight[missing] = 0;
}

static void mix_face(const struct target *target, const struct pair pairs[3], struct part part) {
    const struct cpu_image *image = target->image;
    struct quad quad;
    struct unpacked unpacked[4];
    cpu_quad_weights(&quad, pairs[0].weight, pairs[1].weight, part.whole);
    for (uint32_t corner = 0; corner < 4; corner++) {
        const int64_t x = pairs[0].first + (corner & 1), y = pairs[1].first + (corner >> 1);
        const bool beyond_x = outside(x, image->width), beyond_y = outside(y, image->height);
        struct place at = {(int32_t)x, (int32_t)y, target->face};
        if (beyond_x && beyond_y) {
            share_weight(&quad, corner);
            continue;
        }
        if (beyond_x || beyond_y) at = over_edge((uint32_t)target->face, x, y, image->width);
        at.z += (int32_t)target->layer;
        quad.texel[corner] = find_texel(target->view, image, at, &unpacked[corner]);
    }
    cpu_mix(part.mixture, target->view->channel, channels_of(&target->view->texture->texels), &quad);
}

/* The common case. */
static void mix_slices(const struct target *target, const struct pair pairs[3], struct part part) {
    const struct cpu_texture *texture = target->view->texture;
    const struct cpu_image *image = target->image;
    const uint32_t *modes = texture->sampler.address_mode, extents[2] = {image->width, image->height};
    struct pair flat[2];
    int32_t index[2][2];
    for (int i = 0; i < 2; i++) {
        flat[i] = clamped(pairs[i], extents[i], modes[i]);
        for (int second = 0; second < 2; second++)
            index[i][second] = address(flat[i].first + second, extents[i], modes[i]);
    }
    const bool deep = target->dimensions > 2;
    const struct pair depth = deep ? clamped(pairs[2], image->depth, modes[2]) : (struct pair){0, 0};
    /* Of two levels the first rounds what is between two down: so its first slice has the more. */
    const uint32_t behind = (part.whole * depth.weight + CPU_WHOLE / 2 - part.is_first) / CPU_WHOLE;
    for (int second = 0; second < 2; second++) {
        const uint32_t whole = second ? behind : part.whole - behind;
        if (!whole) continue;
        const int32_t slice = deep ? address(depth.first + second, image->depth, modes[2]) : (int32_t)target->layer;
        struct quad quad;
        struct unpacked unpacked[4];
        cpu_quad_weights(&quad, flat[0].weight, flat[1].weight, whole);
        for (int corner = 0; corner < 4; corner++)
            quad.texel[corner] =
                find_texel(target->view, image, (struct place){index[0][corner & 1], index[1][corner >> 1], slice},
                           &unpacked[corner]);
        cpu_mix(part.mixture, target->view->channel, channels_of(&texture->texels), &quad);
    }
}

/* The texels around a position, to a mixture. Returns the channel that it is of. */
static enum channel mix_around(const struct target *target, const double at[3], const int32_t offset[3],
                               struct part part) {
    struct pair pairs[3] = {{0, 0}, {0, 0}, {0, 0}};
    const bool linear = target->view->texture->sampler.filter_mode == CU_TR_FILTER_MODE_LINEAR;
    for (uint32_t i = 0; i < target->dimensions; i++) {
        pairs[i] = linear ? neighbours(at[i]) : (struct pair){below(at[i]), 0};
        pairs[i].first += offset[i];
    }
    if (target->compare) {
        mix_comparisons(target, pairs, part);
        return CHANNEL_FLOAT;
    }
    if (target->face >= 0) mix_face(target, pairs, part);
    else mix_slices(target, pairs, part);
    return target->view->channel;
}

/* "tld4": a component of the four texels that LINEAR would mix, counter-clockwise from (first, second). */
static void gather(const struct target *target, const double at[3], const int32_t offset[3], uint32_t component,
                   uint32_t value[4]) {
    static const uint8_t corners[4][2] = {{0, 1}, {1, 1}, {1, 0}, {0, 0}};
    const int64_t first[2] = {neighbours(at[0]).first + offset[0], neighbours(at[1]).first + offset[1]};
    struct view view = *target->view;
    struct target around = *target;
    if (view.channel == CHANNEL_UNORM10) view.channel = CHANNEL_UNORM16; /* as in mixtures */
    around.view = &view;
    for (int i = 0; i < 4; i++) {
        uint32_t texel[4];
        read_index(&around, (int64_t[3]){first[0] + corners[i][0], first[1] + corners[i][1], 0}, texel);
        value[i] = texel[component];
    }
}

/* ---- levels ------------------------------------------------------------------------------------------------------ */

/* A level, in 1/256, within the limits of the texture; the lower one counts more. `given`: with the bias. */
static uint32_t fixed_level(const struct cpu_texture *texture, float level, bool given) {
    const struct cpu_sampler *sampler = &texture->sampler;
    const double farthest = 1 << 16, least = sampler->min_mipmap_level_clamp, most = sampler->max_mipmap_level_clamp;
    const int64_t last = (texture->texels.level_count - 1) * FRACTION;
    const double bias = given ? fmin(fmax(sampler->mipmap_level_bias, -16), 16) : 0;
    const double wanted = level == level ? fmin(fmax(level, -farthest), farthest) : 0;
    int64_t fixed = (int64_t)floor(wanted * FRACTION) + (int64_t)(bias * FRACTION);
    if (fixed > most * FRACTION) fixed = (int64_t)fmax(most * FRACTION, 0);
    if (fixed < least * FRACTION) fixed = (int64_t)fmin(least * FRACTION, farthest);
    return (uint32_t)(fixed < 0 ? 0 : fixed < last ? fixed : last);
}

/* How long a vector is, about: the largest component, 11/32 of the next and 8/32 of the smallest. */
static double length_of(const double vector[3]) {
    const double a = fabs(vector[0]), b = fabs(vector[1]), c = fabs(vector[2]);
    const double low = fmin(a, b), high = fmax(a, b);
    return fmax(high, c) + fmax(low, fmin(high, c)) * 11 / 32 + fmin(low, c) * 8 / 32;
}

/* How fast the position on the texture changes, in texels of level 0 a pixel: about the longest axis of the ellipse
 * that two gradients make of a circle, from them and their diagonals. */
static double steepness(const double a[3], const double b[3]) {
    double sum[3], difference[3];
    for (int i = 0; i < 3; i++) {
        sum[i] = a[i] + b[i];
        difference[i] = a[i] - b[i];
    }
    return fmax(fmax(length_of(a), length_of(b)), fmax(length_of(sum), length_of(difference)) * 11 / 16);
}

/* The gradients of a direction on the face of a cube: the quotient rule, for s / (2 * major) and t / (2 * major). */
static void gradients_on_face(const struct coordinates *where, uint32_t extent, double gradients[2][3]) {
    const uint32_t *changes[2] = {where->dx, where->dy};
    double direction[3];
    for (int i = 0; i < 3; i++) direction[i] = float_of(where->at[i]);
    const int8_t *axes = face_axes[face_of(direction)];
    const double major = along(direction, axes[0]);
    for (int g = 0; g < 2; g++) {
        double change[3];
        for (int i = 0; i < 3; i++) change[i] = float_of(changes[g][i]);
        const double outward = along(change, axes[0]);
        for (int i = 0; i < 2; i++)
            gradients[g][i] = (along(change, axes[i + 1]) * major - along(direction, axes[i + 1]) * outward) /
                              (2 * major * major) * extent;
    }
}

static float level_of_gradients(const struct cpu_texture *texture, const struct coordinates *where, bool on_cube) {
    const struct cpu_image *image = &texture->texels.levels[0];
    const bool normalized = texture->sampler.flags & CU_TRSF_NORMALIZED_COORDINATES;
    const uint32_t extents[3] = {image->width, image->height, image->depth};
    const uint32_t *given[2] = {where->dx, where->dy};
    double gradients[2][3] = {{0}};
    if (on_cube) {
        gradients_on_face(where, extents[0], gradients);
    } else {
        for (int g = 0; g < 2; g++)
            for (uint32_t i = 0; i < texture->texels.dimensions; i++)
                gradients[g][i] = (double)float_of(given[g][i]) * (normalized ? extents[i] : 1);
    }
    return (float)(floor(log2(steepness(gradients[0], gradients[1])) * FRACTION + 0.5) / FRACTION);
}

bool cpu_is_magnified(const struct view *view, struct lookup lookup, const struct coordinates *where) {
    return level_of_gradients(view->texture, where, lookup.geometry >= GEOMETRY_CUBE) <= 0;
}

/* ---- fetches ----------------------------------------------------------------------------------------------------- */

/* By integer coordinates: no filter, no address modes. Outside there are zeros, or, when a level is given, the nearest
 * texels. */
static void fetch(const struct view *view, struct lookup lookup, const struct coordinates *where, uint32_t value[4]) {
    const struct cpu_texels *texels = &view->texture->texels;
    const bool given = lookup.level == LEVEL_GIVEN, layered = lookup.geometry >= GEOMETRY_A1D;
    const uint32_t level = given ? where->level : 0;
    memset(value, 0, 4 * sizeof *value);
    if (level >= texels->level_count) return;
    const struct cpu_image *image = &texels->levels[level];
    const int64_t extents[3] = {image->width, image->height, image->depth};
    int64_t at[3] = {0};
    for (uint32_t i = 0; i < texels->dimensions; i++) {
        at[i] = (int64_t)(int32_t)where->at[i] + where->offset[i];
        if (at[i] >= 0 && at[i] < extents[i]) continue;
        if (!given) return;
        at[i] = at[i] < 0 ? 0 : extents[i] - 1;
    }
    if (layered) {
        at[2] = where->layer;
        if (at[2] >= image->layers) {
            if (!given) return;
            at[2] = image->layers - 1;
        }
    }
    read_place(view, image, (struct place){(int32_t)at[0], (int32_t)at[1], (int32_t)at[2]}, value);
}

/* Where a fetch looks in a level: at which position, of what. */
static struct target aim(const struct view *view, struct lookup lookup, const struct coordinates *where, uint32_t level,
                         uint32_t layer, double at[3]) {
    const struct cpu_sampler *sampler = &view->texture->sampler;
    const struct cpu_image *image = &view->texture->texels.levels[level];
    const bool on_cube = lookup.geometry >= GEOMETRY_CUBE;
    const uint32_t extents[3] = {image->width, image->height, image->depth};
    struct target target = {
        view,  image, lookup.flags & LOOKUP_COMPARE ? &where->compare : NULL, view->texture->texels.dimensions,
        layer, -1};
    float coordinate[3];
    for (int i = 0; i < 3; i++) coordinate[i] = float_of(where->at[i]);
    if (on_cube) {
        const uint32_t face = onto_face(coordinate, coordinate);
        if (sampler->flags & CU_TRSF_SEAMLESS_CUBEMAP) target.face = (int32_t)face;
        else target.layer += face;
    }
    for (uint32_t i = 0; i < target.dimensions; i++) {
        const uint32_t mode = target.face >= 0 ? CU_TR_ADDRESS_MODE_CLAMP : sampler->address_mode[i];
        const bool normalized = on_cube || sampler->flags & CU_TRSF_NORMALIZED_COORDINATES;
        at[i] = position(coordinate[i], extents[i], normalized, mode);
        if (target.face >= 0 && at[i] >= extents[i]) at[i] = nextafter(extents[i], 0); /* on the face's edge */
    }
    if (lookup.geometry == GEOMETRY_1D && sampler->filter_mode == CU_TR_FILTER_MODE_LINEAR &&
        sampler->address_mode[1] == CU_TR_ADDRESS_MODE_BORDER)
        target.dimensions = 2; /* at y = 0 */
    return target;
}

/* One texel, without a filter. */
static void pick(const struct target *target, const double at[3], const int32_t offset[3], uint32_t value[4]) {
    int64_t index[3] = {0};
    for (uint32_t i = 0; i < target->dimensions; i++) index[i] = below(at[i]) + offset[i];
    read_index(target, index, value);
}

/* Two levels, or one with all of the weight. */
static void filter(const struct view *view, struct lookup lookup, const struct coordinates *where, uint32_t layer,
                   uint32_t level, uint32_t weight, uint32_t value[4]) {
    struct mixture mixture = {{0}, {0}, 0, 0};
    enum channel channel = view->channel;
    for (uint32_t i = 0; i <= (weight != 0); i++) {
        double at[3] = {0};
        const struct target target = aim(view, lookup, where, level + i, layer, at);
        const struct part part = {&mixture, i ? weight : CPU_WHOLE - weight, !i && weight};
        channel = mix_around(&target, at, where->offset, part);
    }
    cpu_mixed(&mixture, channel, channel == view->channel ? channels_of(&view->texture->texels) : CPU_MAX_CHANNELS,
              value);
}

void cpu_sample(const struct view *view, struct lookup lookup, const struct coordinates *where, uint32_t value[4]) {
    const struct cpu_texture *texture = view->texture;
    const struct cpu_texels *texels = &texture->texels;
    const bool on_cube = lookup.geometry >= GEOMETRY_CUBE;
    const bool linear = texture->sampler.filter_mode == CU_TR_FILTER_MODE_LINEAR;
    if (!(lookup.flags & LOOKUP_FLOAT)) {
        fetch(view, lookup, where, value);
        return;
    }
    if (!texels->levels[0].size) { /* memory without a texel */
        memset(value, 0, CPU_MAX_CHANNELS * sizeof *value);
        return;
    }
    uint32_t layer = 0, level = 0, weight = 0;
    if (lookup.geometry >= GEOMETRY_A1D && lookup.geometry != GEOMETRY_CUBE) {
        const uint32_t faces = on_cube ? 6 : 1, layers = texels->levels[0].layers / faces;
        layer = (where->layer < layers ? where->layer : layers - 1) * faces;
    }
    if (texels->level_count > 1) {
        float wanted = lookup.level == LEVEL_GIVEN ? float_of(where->level) : 0;
        if (lookup.level == LEVEL_GRADIENT) wanted = level_of_gradients(texture, where, on_cube);
        const uint32_t fixed = fixed_level(texture, wanted, lookup.level != LEVEL_BASE);
        const bool between = texture->sampler.mipmap_filter_mode == CU_TR_FILTER_MODE_LINEAR && !lookup.gather;
        level = (fixed + (between ? 0 : FRACTION / 2)) / FRACTION;
        weight = between ? fixed % FRACTION : 0;
    }
    if (!lookup.gather && (linear || weight)) {
        filter(view, lookup, where, layer, level, weight, value);
        return;
    }
    double at[3] = {0};
    const struct target target = aim(view, lookup, where, level, layer, at);
    if (lookup.gather) gather(&target, at, where->offset, lookup.gather - 1u, value);
    else pick(&target, at, where->offset, value);
}
