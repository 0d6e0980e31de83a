/* Whether 128 bytes are a tensor map that an instruction can use. The driver's functions make only such maps, but
 * tensormap.replace and stores may leave anything. A GPU calls what is refused here an illegal instruction. */
#include "tensor_map.h"

#include <stdio.h>

const uint8_t cpu_tensor_size[TENSOR_TYPES] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};

bool cpu_tensor_is_float(uint8_t type) { return type >= TENSOR_F16; }

uint32_t cpu_tensor_unit(uint8_t interleave) { return interleave == TENSOR_SLICES_32 ? 32 : TENSOR_UNIT; }

static const char *const kinds[TENSOR_KINDS] = {"tiles", "images (im2col)", "wide images (im2col::w)"};

#define WRONG(...) return snprintf(text, size, __VA_ARGS__), true

bool cpu_tensor_map_problem(const cpu_tensor_map *map, uint32_t rank, uint32_t kind, char *text, size_t size) {
    for (size_t i = 0; i < sizeof map->zeros; i++)
        if (map->zeros[i]) WRONG("its bytes were not made by the driver or by tensormap.replace");
    if (map->type >= TENSOR_TYPES || map->kind >= TENSOR_KINDS || map->interleave >= TENSOR_INTERLEAVES ||
        map->swizzle >= TENSOR_SWIZZLES || map->fill > 1 || map->rank_last >= TENSOR_RANK)
        WRONG("its bytes were not made by the driver or by tensormap.replace");
    if (map->rank_last + 1u != rank)
        WRONG("it has %d dimension%s, the instruction %u", map->rank_last + 1, map->rank_last ? "s" : "", rank);
    if (map->kind != kind) WRONG("it was made for %s, the instruction is for %s", kinds[map->kind], kinds[kind]);
    const uint32_t unit = cpu_tensor_unit(map->interleave), bytes = cpu_tensor_size[map->type];
    if (map->address % unit) WRONG("its address, %#llx, is no multiple of %u", (unsigned long long)map->address, unit);
    for (uint32_t i = 0; i + 1 < rank; i++)
        if (map->strides[i] % unit || map->strides[i] >= TENSOR_END_OF_STRIDES)
            WRONG("the stride of dimension %u is %llu bytes; it must be a multiple of %u, and less than 2^40", i + 1,
                  (unsigned long long)map->strides[i], unit);
    for (uint32_t i = 0; i < rank; i++) {
        if (map->step_last[i] >= TENSOR_MOST_STEP)
            WRONG("the element stride of dimension %u is %u; it must be from 1 to %d", i, map->step_last[i] + 1u,
                  TENSOR_MOST_STEP);
        if (kind == TENSOR_TILES && map->box_last[i] >= TENSOR_MOST_BOX)
            WRONG("its box has %u elements in dimension %u; it must have 1 to %d", map->box_last[i] + 1u, i,
                  TENSOR_MOST_BOX);
    }
    if (kind == TENSOR_IMAGES && map->pixels_last >= TENSOR_MOST_PIXELS)
        WRONG("it has columns of %u pixels; there may be %d", map->pixels_last + 1u, TENSOR_MOST_PIXELS);
    if (map->interleave != TENSOR_DENSE && rank < 3)
        WRONG("an interleaved layout needs 3 dimensions or more, it has %u", rank);
    if (map->fill && !cpu_tensor_is_float(map->type)) WRONG("it is to be filled with NaNs, and its type is an integer");
    const uint32_t row = (kind == TENSOR_TILES ? map->box_last[0] + 1u : map->channels_last + 1u) * bytes;
    if (row % TENSOR_UNIT) WRONG("rows of its box have %u bytes; it must be a multiple of %d", row, TENSOR_UNIT);
    if (map->interleave == TENSOR_DENSE && map->swizzle && row > 16u << map->swizzle)
        WRONG("rows of its box have %u bytes; with a swizzle of %u bytes there may be %u", row, 16u << map->swizzle,
              16u << map->swizzle);
    return false;
}
