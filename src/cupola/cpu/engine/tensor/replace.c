/* Changing tensor maps on the device (PTX ISA, "tensormap.replace", "tensormap.cp_fenceproxy"). Kernels do that in shared
 * or global memory, to a map that the host has made or to one of zeros. */
#include <stdio.h>
#include <string.h>

#include "engine/instructions/access.h"
#include "tensor_map.h"

/* In the order of emit/memory/tensors.py. */
enum field {
    FIELD_GLOBAL_ADDRESS,
    FIELD_RANK,
    FIELD_BOX_DIM,
    FIELD_GLOBAL_DIM,
    FIELD_GLOBAL_STRIDE,
    FIELD_ELEMENT_STRIDE,
    FIELD_ELEMTYPE,
    FIELD_INTERLEAVE_LAYOUT,
    FIELD_SWIZZLE_MODE,
    FIELD_FILL_MODE,
    FIELDS
};

static const struct {
    const char *name;
    uint64_t least, most;
    uint8_t ordinals; /* of an array's field: how many it has */
} fields[FIELDS] = {
    [FIELD_GLOBAL_ADDRESS] = {"global_address", 0, UINT64_MAX, 0},
    [FIELD_RANK] = {"rank", 0, TENSOR_RANK - 1, 0},
    [FIELD_BOX_DIM] = {"box_dim", 1, TENSOR_MOST_BOX, TENSOR_RANK},
    [FIELD_GLOBAL_DIM] = {"global_dim", 1, UINT32_MAX, TENSOR_RANK},
    [FIELD_GLOBAL_STRIDE] = {"global_stride", 0, TENSOR_END_OF_STRIDES - 1, TENSOR_RANK - 1},
    [FIELD_ELEMENT_STRIDE] = {"element_stride", 1, TENSOR_MOST_STEP, TENSOR_RANK},
    [FIELD_ELEMTYPE] = {"elemtype", 0, TENSOR_TYPES - 1, 0},
    [FIELD_INTERLEAVE_LAYOUT] = {"interleave_layout", 0, TENSOR_INTERLEAVES - 1, 0},
    [FIELD_SWIZZLE_MODE] = {"swizzle_mode", 0, TENSOR_SWIZZLES - 1, 0},
    [FIELD_FILL_MODE] = {"fill_mode", 0, 1, 0},
};

/* The instruction's numbers of types. */
static const uint8_t types[TENSOR_TYPES] = {TENSOR_U8,   TENSOR_U16,  TENSOR_U32,     TENSOR_S32,     TENSOR_U64,
                                            TENSOR_S64,  TENSOR_F16,  TENSOR_F32,     TENSOR_F32_FTZ, TENSOR_F64,
                                            TENSOR_BF16, TENSOR_TF32, TENSOR_TF32_FTZ};

static void put(cpu_tensor_map *map, enum field field, uint32_t at, uint64_t value) {
    switch (field) {
        case FIELD_GLOBAL_ADDRESS: map->address = value; break;
        case FIELD_RANK: map->rank_last = (uint8_t)value; break;
        case FIELD_BOX_DIM: map->box_last[at] = (uint16_t)(value - 1); break;
        case FIELD_GLOBAL_DIM: map->last[at] = (uint32_t)value - 1; break;
        case FIELD_GLOBAL_STRIDE: map->strides[at] = value; break;
        case FIELD_ELEMENT_STRIDE: map->step_last[at] = (uint8_t)(value - 1); break;
        case FIELD_ELEMTYPE: map->type = types[value]; break;
        case FIELD_INTERLEAVE_LAYOUT: map->interleave = (uint8_t)value; break;
        case FIELD_SWIZZLE_MODE: map->swizzle = (uint8_t)value; break;
        default: map->fill = (uint8_t)value; break;
    }
}

/* ---- called by machine code ------------------------------------------------------------------------------------- */

/* `what` is a field and, from bit 8 on, the ordinal of an array's element. */
CPU_HELPER uint32_t cupola_tensor_replace(CPU_ACCESS_ARGUMENTS, uint32_t what, const uint64_t *maps,
                                          const uint64_t *values) {
    CPU_ACCESS_ARGUMENTS_USED
    const cpu_site site = unpack_site(packed);
    const enum field field = what & 0xFF;
    const uint32_t ordinal = what >> 8;
    for (; mask; mask &= mask - 1) {
        const int lane = __builtin_ctz(mask);
        const cpu_block *owner;
        if (values[lane] < fields[field].least || values[lane] > fields[field].most) {
            cpu_fault_raise(context, warp, lane, CPU_FAULT_INSTRUCTION, site.index,
                            "tensormap.replace with .%s %llu; it can be %llu to %llu", fields[field].name,
                            (unsigned long long)values[lane], (unsigned long long)fields[field].least,
                            (unsigned long long)fields[field].most);
            return 1;
        }
        void *place =
            cpu_resolve_range(context, warp, lane, site, maps[lane], TENSOR_MAP_BYTES, TENSOR_MAP_ALIGNMENT, &owner);
        if (!place) return 1;
        put(place, field, ordinal, values[lane]);
    }
    return 0;
}

/* The whole warp copies a map from shared to global memory. */
CPU_HELPER uint32_t cupola_tensor_publish(CPU_ACCESS_ARGUMENTS, uint64_t source, const uint64_t *to,
                                          const uint64_t *from) {
    CPU_ACCESS_ARGUMENTS_USED
    const int lane = __builtin_ctz(mask);
    const cpu_block *owner;
    const void *begin = cpu_resolve_range(context, warp, lane, unpack_site(source), from[lane], TENSOR_MAP_BYTES,
                                          TENSOR_MAP_BYTES, &owner);
    if (!begin) return 1;
    void *end = cpu_resolve_range(context, warp, lane, unpack_site(packed), to[lane], TENSOR_MAP_BYTES,
                                  TENSOR_MAP_BYTES, &owner);
    if (!end) return 1;
    memcpy(end, begin, TENSOR_MAP_BYTES);
    return 0;
}
