/* The 128 bytes of a tensor map (CUtensorMap), which are opaque to programs.
 *
 * They are the CPU device's own encoding, not a GPU's: programs pass a map on, or change it by
 * cuTensorMapReplaceAddress and tensormap.replace, which know the fields. 128 zeros are a map, too: kernels begin with
 * them and replace every field. Device code may write anything here, so each map is checked when it is read. */
#ifndef CUPOLA_CPU_TENSOR_MAP_H
#define CUPOLA_CPU_TENSOR_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TENSOR_RANK = 5, TENSOR_MAP_BYTES = 128, TENSOR_MAP_ALIGNMENT = 64 };
enum { TENSOR_UNIT = 16, TENSOR_MOST_BOX = 256, TENSOR_MOST_STEP = 8, TENSOR_MOST_PIXELS = 1024 };
#define TENSOR_END_OF_STRIDES (UINT64_C(1) << 40)
#define TENSOR_MOST_EXTENT (UINT64_C(1) << 32)

/* In the order of CUtensorMapDataType. */
enum tensor_type {
    TENSOR_U8,
    TENSOR_U16,
    TENSOR_U32,
    TENSOR_S32,
    TENSOR_U64,
    TENSOR_S64,
    TENSOR_F16,
    TENSOR_F32,
    TENSOR_F64,
    TENSOR_BF16,
    TENSOR_F32_FTZ,
    TENSOR_TF32,
    TENSOR_TF32_FTZ,
    TENSOR_TYPES
};

enum tensor_kind { TENSOR_TILES, TENSOR_IMAGES, TENSOR_WIDE_IMAGES, TENSOR_KINDS };
enum tensor_interleave { TENSOR_DENSE, TENSOR_SLICES_16, TENSOR_SLICES_32, TENSOR_INTERLEAVES };
enum tensor_swizzle { TENSOR_PLAIN, TENSOR_SWIZZLE_32, TENSOR_SWIZZLE_64, TENSOR_SWIZZLE_128, TENSOR_SWIZZLES };

/* Arrays begin with the innermost dimension. Extents, boxes, steps and the rank are kept less one, as a map of zeros
 * wants it. */
typedef struct cpu_tensor_map {
    uint64_t address;
    uint64_t strides[TENSOR_RANK - 1]; /* bytes; strides[i] belongs to dimension i + 1 */
    uint32_t last[TENSOR_RANK];        /* extents - 1 */
    uint16_t box_last[TENSOR_RANK];    /* tiles: elements - 1 */
    uint16_t pixels_last;              /* images: pixels in a column - 1 */
    int16_t lower[3], upper[3];        /* images: corners of the box, of dimension 1 on */
    uint8_t step_last[TENSOR_RANK];
    uint8_t rank_last, type, kind, interleave, swizzle, promotion, fill;
    uint8_t channels_last; /* images: elements of a pixel - 1 */
    uint8_t zeros[31];     /* reserved */
} cpu_tensor_map;

_Static_assert(sizeof(cpu_tensor_map) == TENSOR_MAP_BYTES, "a tensor map has 128 bytes");

extern const uint8_t cpu_tensor_size[TENSOR_TYPES]; /* bytes of an element */
bool cpu_tensor_is_float(uint8_t type);

/* What addresses and strides are multiples of, in bytes. */
uint32_t cpu_tensor_unit(uint8_t interleave);

/* What is wrong with a map for an instruction on tensors of a rank and kind, in words; false: nothing. */
bool cpu_tensor_map_problem(const cpu_tensor_map *map, uint32_t rank, uint32_t kind, char *text, size_t size);

#endif
