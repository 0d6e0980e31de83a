/* Texture instructions of a warp (PTX ISA, "tex", "tld4", "txq", "istypep"): objects are found and checked here.
 *
 * An instruction that names no texture, or one of another shape, leaves the hardware to read what it will; here it is a
 * fault that says so. The memory behind an object is looked up in the table of allocations as that of any other
 * access. */
#include <cupola/driver.h>
#include <stdio.h>

#include "engine/instructions/access.h"
#include "engine/instructions/half.h"
#include "engine/memory/memory.h"
#include "objects.h"
#include "sampling.h"

/* ---- objects ----------------------------------------------------------------------------------------------------- */

static const char *const geometry_names[] = {"1d", "2d", "3d", "a1d", "a2d", "cube", "acube"};

/* The shape of a texture, as the instruction for it would name it. */
static enum geometry geometry_of(const struct cpu_texels *texels) {
    if (texels->cubemap) return texels->layered ? GEOMETRY_ACUBE : GEOMETRY_CUBE;
    if (texels->layered) return texels->dimensions == 1 ? GEOMETRY_A1D : GEOMETRY_A2D;
    return (enum geometry)(GEOMETRY_1D + (int)texels->dimensions - 1);
}

bool cpu_fits_geometry(const struct cpu_texels *texels, unsigned geometry) {
    /* The faces of cubemaps are layers, too, and the first cube of several is one. */
    if (texels->cubemap && (geometry == GEOMETRY_A2D || geometry == GEOMETRY_CUBE)) return true;
    return geometry == (unsigned)geometry_of(texels);
}

void cpu_wrong_object(cpu_context *context, const cpu_warp *warp, int lane, uint32_t site, uint64_t object,
                      bool is_surface) {
    const char *wanted = is_surface ? "surface" : "texture", *other = is_surface ? "texture" : "surface";
    const bool exists = is_surface ? cpu_texture_find(object) : cpu_surface_find(object);
    cpu_fault_raise(context, warp, lane, CPU_FAULT_OBJECT, site, "%#llx is %s %s object%s", (unsigned long long)object,
                    exists ? "a" : "not a live", exists ? other : wanted,
                    exists ? "" : ": was it destroyed before the kernel was done?");
}

void cpu_wrong_geometry(cpu_context *context, const cpu_warp *warp, int lane, uint32_t site,
                        const struct cpu_texels *texels, unsigned geometry, const char *what) {
    const struct cpu_image *image = &texels->levels[0];
    cpu_fault_raise(context, warp, lane, CPU_FAULT_OBJECT, site,
                    "the %s has the geometry '.%s' (%u x %u x %u texels, %u layers), the instruction is for '.%s'",
                    what, geometry_names[geometry_of(texels)], image->width, image->height, image->depth, image->layers,
                    geometry_names[geometry]);
}

/* A GPU reads zeros of arrays that it takes for linear memory, and the other way round. */
static bool fits_coordinates(cpu_context *context, const cpu_warp *warp, int lane, uint32_t site,
                             const struct cpu_texels *texels, struct lookup lookup) {
    const bool whole = !(lookup.flags & LOOKUP_FLOAT);
    if (lookup.geometry != GEOMETRY_1D || texels->linear == whole) return true;
    cpu_fault_raise(context, warp, lane, CPU_FAULT_OBJECT, site, "%s",
                    whole ? "the texture is of an array, which is read at float coordinates (tex1D, .f32); "
                            "the instruction has an integer coordinate, which is for linear memory"
                          : "the texture is of linear memory, which is read at integer coordinates (tex1Dfetch, .s32); "
                            "the instruction has a float coordinate, which is for arrays");
    return false;
}

/* A GPU takes several samples along the longer axis of the pixel's footprint, if that is longer than a texel. */
static bool is_isotropic(cpu_context *context, const cpu_warp *warp, int lane, uint32_t site, const struct view *view,
                         struct lookup lookup, const struct coordinates *where) {
    const uint32_t most = view->texture->sampler.max_anisotropy;
    if (lookup.level != LEVEL_GRADIENT || most <= 1 || cpu_is_magnified(view, lookup, where)) return true;
    cpu_fault_raise(
        context, warp, lane, CPU_FAULT_OBJECT, site,
        "the texture has a maxAnisotropy of %u, and the gradients (.grad) are longer than a texel: the CPU "
        "device has no anisotropic filter; make the texture with a maxAnisotropy of 0 or 1, or read a level "
        "(.level)",
        most);
    return false;
}

bool cpu_image_is_there(cpu_context *context, const cpu_warp *warp, int lane, cpu_site site,
                        const struct cpu_texels *texels) {
    const cpu_site_cache *cache = &context->sites[site.index];
    for (uint32_t i = 0; i < texels->level_count; i++) {
        const struct cpu_image *image = &texels->levels[i];
        if (!image->size) continue; /* memory without a texel */
        uint64_t offset = image->base - cache->base;
        if (offset < cache->size && cache->size - offset >= image->size) continue;
        cpu_allocation found;
        int fault = cpu_find(context, site, image->base, image->size, &found);
        if (fault) {
            cpu_fault_raise_access(context, warp, lane, fault, site, image->base, image->size, NULL);
            return false;
        }
        cpu_remember(context, site, &found);
    }
    return true;
}

/* ---- called by machine code -------------------------------------------------------------------------------------- */

enum row {
    ROW_LAYER,
    ROW_AT,
    ROW_LEVEL = ROW_AT + 3, /* or the two gradients */
    ROW_DX = ROW_LEVEL,
    ROW_DY = ROW_DX + 3,
    ROW_OFFSET = ROW_DY + 3,
    ROW_COMPARE = ROW_OFFSET + 3,
    ROWS
};

/* `operands` and `results` have a row for each number, which is as long as the unit is wide; of the operands only those
 * that the instruction has are filled. */
CPU_HELPER uint32_t cupola_texture_sample(CPU_ACCESS_ARGUMENTS, uint64_t lookup_bits, const uint64_t *objects,
                                          const uint32_t *operands, uint32_t *results) {
    CPU_ACCESS_ARGUMENTS_USED
    const cpu_site site = unpack_site(packed);
    const struct lookup lookup = {(uint8_t)lookup_bits, (uint8_t)(lookup_bits >> 8), (uint8_t)(lookup_bits >> 16),
                                  (uint8_t)(lookup_bits >> 24)};
    const uint32_t width = context->width;
    struct view view = {NULL, CHANNEL_FLOAT};
    uint64_t last = 0;
    for (; mask; mask &= mask - 1) {
        const int lane = __builtin_ctz(mask);
        if (!view.texture || objects[lane] != last) {
            last = objects[lane];
            view.texture = cpu_texture_find(last);
            if (!view.texture) {
                cpu_wrong_object(context, warp, lane, site.index, last, false);
                return 1;
            }
            const struct cpu_texels *texels = &view.texture->texels;
            if (!cpu_fits_geometry(texels, lookup.geometry)) {
                cpu_wrong_geometry(context, warp, lane, site.index, texels, lookup.geometry, "texture");
                return 1;
            }
            if (!fits_coordinates(context, warp, lane, site.index, texels, lookup)) return 1;
            if (!cpu_image_is_there(context, warp, lane, site, texels)) return 1;
            view.channel = cpu_channel(texels, view.texture->sampler.flags);
        }
        struct coordinates where = {0};
        const uint32_t *operand = operands + lane;
        where.layer = operand[ROW_LAYER * width];
        for (uint32_t i = 0; i < 3; i++) where.at[i] = operand[(ROW_AT + i) * width];
        if (lookup.level == LEVEL_GIVEN) where.level = operand[ROW_LEVEL * width];
        if (lookup.level == LEVEL_GRADIENT)
            for (uint32_t i = 0; i < 3; i++) {
                where.dx[i] = operand[(ROW_DX + i) * width];
                where.dy[i] = operand[(ROW_DY + i) * width];
            }
        if (lookup.flags & LOOKUP_OFFSET)
            for (uint32_t i = 0; i < 3; i++) /* four bits each */
                where.offset[i] = (int32_t)(operand[(ROW_OFFSET + i) * width] << 28) >> 28;
        if (lookup.flags & LOOKUP_COMPARE) where.compare = operand[ROW_COMPARE * width];
        if (!is_isotropic(context, warp, lane, site.index, &view, lookup, &where)) return 1;
        uint32_t value[CPU_MAX_CHANNELS];
        cpu_sample(&view, lookup, &where, value);
        for (uint32_t i = 0; i < CPU_MAX_CHANNELS; i++) {
            if (lookup.flags & LOOKUP_HALF && channel_is_float(view.channel))
                value[i] = float_to_half(float_of(value[i]));
            results[i * width + (uint32_t)lane] = value[i];
        }
    }
    return 0;
}

enum query {
    QUERY_WIDTH,
    QUERY_HEIGHT,
    QUERY_DEPTH,
    QUERY_CHANNEL_DATA_TYPE,
    QUERY_CHANNEL_ORDER,
    QUERY_NORMALIZED_COORDS,
    QUERY_ARRAY_SIZE,
    QUERY_NUM_MIPMAP_LEVELS,
    QUERY_NUM_SAMPLES,
    QUERY_FORCE_UNNORMALIZED_COORDS,
    QUERY_FILTER_MODE,
    QUERY_ADDR_MODE, /* three of them */
    QUERY_MEMORY_LAYOUT = QUERY_ADDR_MODE + 3
};

/* Layers stand for the extent that an array does not have, but not the six faces of a cube of textures. */
static uint32_t height_of(const struct cpu_texels *texels, const struct cpu_image *image, bool is_surface) {
    if (texels->dimensions == 1 && texels->layered) return image->layers;
    return texels->dimensions == 1 && (is_surface || texels->linear) ? 0 : image->height;
}

static uint32_t depth_of(const struct cpu_texels *texels, const struct cpu_image *image, bool is_surface) {
    if (texels->dimensions == 3) return image->depth;
    if (texels->dimensions == 1) return 0;
    if (texels->cubemap && !is_surface) return texels->layered ? image->layers / 6 : 0;
    return texels->layered || texels->cubemap ? image->layers : 0;
}

/* What is said of textures, which have a sampler, and of surfaces. */
static uint32_t answer(const struct cpu_texture *texture, bool is_surface, uint32_t query, uint32_t level) {
    const uint32_t flags = is_surface ? CU_TRSF_READ_AS_INTEGER : texture->sampler.flags;
    const struct cpu_texels *texels = &texture->texels;
    const struct cpu_sampler *sampler = &texture->sampler;
    static const struct cpu_image nothing;
    const struct cpu_image *image = level < texels->level_count ? &texels->levels[level] : &nothing;
    const bool layered = texels->layered || texels->cubemap;
    switch (query) {
        case QUERY_WIDTH: return image->width;
        case QUERY_HEIGHT: return height_of(texels, image, is_surface);
        case QUERY_DEPTH: return depth_of(texels, image, is_surface);
        case QUERY_CHANNEL_DATA_TYPE: return cpu_channel_data_type(cpu_channel(texels, flags));
        case QUERY_CHANNEL_ORDER: return cpu_channel_order(texels->channels);
        case QUERY_NORMALIZED_COORDS: return (flags & CU_TRSF_NORMALIZED_COORDINATES) != 0;
        case QUERY_ARRAY_SIZE: return layered ? image->layers : 0;
        case QUERY_NUM_MIPMAP_LEVELS: return texels->level_count;
        case QUERY_NUM_SAMPLES: return 1;
        case QUERY_FORCE_UNNORMALIZED_COORDS: return 0;
        case QUERY_FILTER_MODE: return sampler->filter_mode;
        case QUERY_MEMORY_LAYOUT: return texels->linear;
        default: return sampler->address_mode[query - QUERY_ADDR_MODE];
    }
}

/* "txq", "suq": the answer for each lane. `levels` is NULL for those about level 0. */
CPU_HELPER uint32_t cupola_texture_query(CPU_ACCESS_ARGUMENTS, uint32_t query, uint32_t is_surface,
                                         const uint64_t *objects, const uint32_t *levels, uint32_t *results) {
    CPU_ACCESS_ARGUMENTS_USED
    for (; mask; mask &= mask - 1) {
        const int lane = __builtin_ctz(mask);
        const uint64_t object = objects[lane];
        const struct cpu_texture *texture = is_surface ? cpu_surface_find(object) : cpu_texture_find(object);
        if (!texture) {
            cpu_wrong_object(context, warp, lane, unpack_site(packed).index, object, is_surface);
            return 1;
        }
        results[lane] = answer(texture, is_surface, query, levels ? levels[lane] : 0);
    }
    return 0;
}

/* "istypep" */
CPU_HELPER uint32_t cupola_is_object(uint64_t object, uint32_t is_surface) {
    return is_surface ? cpu_surface_find(object) != NULL : cpu_texture_find(object) != NULL;
}
