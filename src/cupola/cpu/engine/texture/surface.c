/* Surface instructions of a warp (PTX ISA, "suld", "sust", "sured").
 *
 * Surfaces are addressed by integers. The first one counts bytes, except in formatted stores and reductions (".p"),
 * where it counts texels. A place outside is a fault (.trap), is replaced by the nearest one inside (.clamp), or reads
 * as zero and is not written (.zero). */
#include <cupola/driver.h>
#include <stdio.h>
#include <string.h>

#include "engine/instructions/atomics.h"
#include "objects.h"
#include "sampling.h"

/* An instruction, as emit/memory/textures.py packs it: a byte each, from the lowest on. */
enum bounds { BOUNDS_TRAP, BOUNDS_CLAMP, BOUNDS_ZERO };
struct request {
    uint8_t geometry, bounds;
    uint8_t element, count; /* bytes of an element, and how many */
    uint8_t formatted;
};

static struct request unpack(uint64_t bits) {
    return (struct request){(uint8_t)bits, (uint8_t)(bits >> 8), (uint8_t)(bits >> 16), (uint8_t)(bits >> 24),
                            (uint8_t)(bits >> 32)};
}

/* The surface of the last lane, most often that of the next one. */
struct surface {
    uint64_t object;
    const struct cpu_texture *found;
};

static bool find(cpu_context *context, const cpu_warp *warp, int lane, cpu_site site, struct request request,
                 uint64_t object, struct surface *surface) {
    if (surface->found && surface->object == object) return true;
    surface->object = object;
    surface->found = cpu_surface_find(object);
    if (!surface->found) {
        cpu_wrong_object(context, warp, lane, site.index, object, true);
        return false;
    }
    const struct cpu_texels *texels = &surface->found->texels;
    if (!cpu_fits_geometry(texels, request.geometry)) {
        cpu_wrong_geometry(context, warp, lane, site.index, texels, request.geometry, "surface");
        return false;
    }
    return cpu_image_is_there(context, warp, lane, site, texels);
}

enum verdict { INSIDE, OUTSIDE, FAULT };
enum row { ROW_LAYER, ROW_AT, ROWS = ROW_AT + 3 };

static enum verdict out_of_range(cpu_context *context, const cpu_warp *warp, int lane, cpu_site site,
                                 const struct cpu_texels *texels, const int64_t at[4], bool formatted) {
    const struct cpu_image *image = &texels->levels[0];
    cpu_fault_raise(context, warp, lane, CPU_FAULT_SURFACE, site.index,
                    "at %s %lld, y %lld, z %lld, layer %lld of a surface of %u x %u x %u texels of %u bytes, %u layers",
                    formatted ? "x" : "byte", (long long)at[0], (long long)at[1], (long long)at[2], (long long)at[3],
                    image->width, image->height, image->depth, texels->bytes, image->layers);
    return FAULT;
}

/* The address that a lane accesses. */
static enum verdict locate(cpu_context *context, const cpu_warp *warp, int lane, cpu_site site, struct request request,
                           const struct cpu_texels *texels, const uint32_t *coordinates, uint64_t *address) {
    const struct cpu_image *image = &texels->levels[0];
    const uint32_t width = context->width;
    const int64_t unit = request.formatted ? texels->bytes : 1;
    const int64_t size = request.formatted ? texels->bytes : request.element * request.count;
    int64_t at[4] = {0}; /* x, y, z, layer */
    for (uint32_t i = 0; i < texels->dimensions; i++)
        at[i] = (int32_t)coordinates[(ROW_AT + i) * width + (uint32_t)lane];
    const bool layered = texels->layered || texels->cubemap;
    if (layered) at[3] = coordinates[ROW_LAYER * width + (uint32_t)lane];
    const int64_t last[4] = {((int64_t)image->width * texels->bytes - size) / unit, (int64_t)image->height - 1,
                             (int64_t)image->depth - 1, (int64_t)image->layers - 1};
    for (int i = 0; i < 4; i++) {
        if (at[i] >= 0 && at[i] <= last[i]) continue;
        if (request.bounds == BOUNDS_TRAP)
            return out_of_range(context, warp, lane, site, texels, at, request.formatted);
        if (request.bounds == BOUNDS_ZERO || last[i] < 0) return OUTSIDE;
        at[i] = at[i] < 0 ? 0 : last[i];
    }
    const uint64_t slice = (uint64_t)(layered ? at[3] : at[2]);
    *address = image->base + slice * image->slice + (uint64_t)at[1] * image->row + (uint64_t)(at[0] * unit);
    if (*address & (request.element - 1u)) {
        cpu_fault_raise_access(context, warp, lane, CPU_FAULT_MISALIGNED, site, *address, request.element, NULL);
        return FAULT;
    }
    return INSIDE;
}

/* ---- called by machine code -------------------------------------------------------------------------------------- */

/* `coordinates` has a row of numbers for the layer and three more, `elements` one for each element. */
CPU_HELPER uint32_t cupola_surface_load(CPU_ACCESS_ARGUMENTS, uint64_t request_bits, const uint64_t *objects,
                                        const uint32_t *coordinates, uint8_t *elements) {
    CPU_ACCESS_ARGUMENTS_USED
    const cpu_site site = unpack_site(packed);
    const struct request request = unpack(request_bits);
    const size_t row = (size_t)context->width * request.element;
    struct surface surface = {0, NULL};
    for (; mask; mask &= mask - 1) {
        const int lane = __builtin_ctz(mask);
        uint64_t address;
        if (!find(context, warp, lane, site, request, objects[lane], &surface)) return 1;
        enum verdict verdict =
            locate(context, warp, lane, site, request, &surface.found->texels, coordinates, &address);
        if (verdict == FAULT) return 1;
        for (uint32_t i = 0; i < request.count; i++) {
            uint8_t *to = elements + i * row + (size_t)lane * request.element;
            if (verdict == OUTSIDE) memset(to, 0, request.element);
            else memcpy(to, (const void *)(uintptr_t)(address + i * request.element), request.element);
        }
    }
    return 0;
}

CPU_HELPER uint32_t cupola_surface_store(CPU_ACCESS_ARGUMENTS, uint64_t request_bits, const uint64_t *objects,
                                         const uint32_t *coordinates, const uint8_t *elements) {
    CPU_ACCESS_ARGUMENTS_USED
    const cpu_site site = unpack_site(packed);
    const struct request request = unpack(request_bits);
    const size_t row = (size_t)context->width * request.element;
    struct surface surface = {0, NULL};
    for (; mask; mask &= mask - 1) {
        const int lane = __builtin_ctz(mask);
        uint64_t address;
        if (!find(context, warp, lane, site, request, objects[lane], &surface)) return 1;
        const struct cpu_texels *texels = &surface.found->texels;
        struct request access = request;
        if (request.formatted) access.element = (uint8_t)(texels->bytes / texels->channels);
        enum verdict verdict = locate(context, warp, lane, site, access, texels, coordinates, &address);
        if (verdict == FAULT) return 1;
        if (verdict == OUTSIDE) continue;
        if (request.formatted) {
            uint32_t value[CPU_MAX_CHANNELS] = {0};
            for (uint32_t i = 0; i < request.count; i++) memcpy(&value[i], elements + i * row + (size_t)lane * 4, 4);
            cpu_texel_write(cpu_channel(texels, CU_TRSF_READ_AS_INTEGER), texels->channels, address, value);
            continue;
        }
        for (uint32_t i = 0; i < request.count; i++)
            memcpy((void *)(uintptr_t)(address + i * request.element),
                   elements + i * row + (size_t)lane * request.element, request.element);
    }
    return 0;
}

/* `as_signed` is for surfaces whose channels are signed integers. */
CPU_HELPER uint32_t cupola_surface_reduce(CPU_ACCESS_ARGUMENTS, uint64_t request_bits, const uint64_t *objects,
                                          const uint32_t *coordinates, const void *operands, cpu_atomic *as_unsigned,
                                          cpu_atomic *as_signed) {
    const cpu_site site = unpack_site(packed);
    const struct request request = unpack(request_bits);
    struct surface surface = {0, NULL};
    uint64_t addresses[CPU_WARP_THREADS], results[CPU_WARP_THREADS];
    uint32_t inside[2] = {0, 0};
    for (; mask; mask &= mask - 1) {
        const int lane = __builtin_ctz(mask);
        if (!find(context, warp, lane, site, request, objects[lane], &surface)) return 1;
        const struct cpu_texels *texels = &surface.found->texels;
        enum verdict verdict = locate(context, warp, lane, site, request, texels, coordinates, &addresses[lane]);
        if (verdict == FAULT) return 1;
        if (verdict == INSIDE) inside[channel_is_signed(cpu_channel(texels, CU_TRSF_READ_AS_INTEGER))] |= 1u << lane;
    }
    for (int i = 0; i < 2; i++) {
        cpu_atomic *operation = i ? as_signed : as_unsigned;
        if (inside[i] && operation(context, warp, shared, sites, packed, inside[i], addresses, operands, NULL, results))
            return 1;
    }
    return 0;
}
