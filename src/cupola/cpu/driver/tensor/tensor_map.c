/* Tensor maps (CUDA Driver API, "Tensor Map Object Management"): the rules that the documentation has for them, checked
 * as an H200's driver checks (tests/cpu/driver/tensor/h200.txt), and their encoding (engine/tensor/tensor_map.h). */
#include "engine/tensor/tensor_map.h"

#include <string.h>

#include "driver/base/base.h"

enum { ADDRESS_BITS = 57, MOST_BYTES = 228 * 1024, MOST_WIDE = 32768 };

#define WRONG(...) fail(CUDA_ERROR_INVALID_VALUE, __VA_ARGS__)

/* What the functions have in common. */
struct tensor {
    CUtensorMapDataType type;
    cuuint32_t rank;
    void *address;
    const cuuint64_t *extents, *strides;
    const cuuint32_t *steps;
    CUtensorMapInterleave interleave;
    CUtensorMapSwizzle swizzle;
    CUtensorMapL2promotion promotion;
    CUtensorMapFloatOOBfill fill;
};

/* A usable context on a device with tensor maps, and somewhere to put one. The documentation wants the map aligned to 64
 * bytes, but the driver takes any; the kernel that uses it does not. */
static CUresult begin(const CUtensorMap *map) {
    CUcontext context;
    RETURN_IF(enter_context(&context));
    int major = device_attribute(context->device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    int minor = device_attribute(context->device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    if (major < 9)
        return fail(CUDA_ERROR_NOT_SUPPORTED, "tensor maps need compute capability 9.0; the device has %d.%d.", major,
                    minor);
    return map ? CUDA_SUCCESS : fail_null("tensorMap");
}

/* Whose memory it is, if anybody's, is for the kernel to find out. */
static CUresult check_address(const void *address, unsigned interleave) {
    unsigned unit = cpu_tensor_unit((uint8_t)interleave);
    if ((uintptr_t)address >> ADDRESS_BITS)
        return WRONG("globalAddress is %p; addresses have %d bits.", address, ADDRESS_BITS);
    if ((uintptr_t)address % unit)
        return WRONG("globalAddress is %p; it must be aligned to %u bytes%s.", address, unit,
                     unit > TENSOR_UNIT ? " with CU_TENSOR_MAP_INTERLEAVE_32B" : "");
    return CUDA_SUCCESS;
}

static CUresult check_enum(const char *name, unsigned value, unsigned count, const char *type) {
    if (value < count) return CUDA_SUCCESS;
    return WRONG("%s is %d; %s goes from 0 to %u.", name, (int)value, type, count - 1);
}

static CUresult check_dimensions(const struct tensor *t) {
    unsigned unit = cpu_tensor_unit((uint8_t)t->interleave);
    for (unsigned i = 0; i < t->rank; i++) {
        if (!t->extents[i] || t->extents[i] > TENSOR_MOST_EXTENT)
            return WRONG("globalDim[%u] is %llu; it must be from 1 to 2^32.", i, (unsigned long long)t->extents[i]);
        if (!t->steps[i] || t->steps[i] > TENSOR_MOST_STEP)
            return WRONG("elementStrides[%u] is %u; it must be from 1 to %d.", i, t->steps[i], TENSOR_MOST_STEP);
    }
    for (unsigned i = 0; i + 1 < t->rank; i++) {
        if (t->strides[i] % unit)
            return WRONG("globalStrides[%u] is %llu bytes; it must be a multiple of %u%s.", i,
                         (unsigned long long)t->strides[i], unit,
                         unit > TENSOR_UNIT ? " with CU_TENSOR_MAP_INTERLEAVE_32B" : "");
        if (t->strides[i] >= TENSOR_END_OF_STRIDES)
            return WRONG("globalStrides[%u] is %llu bytes; it must be less than 2^40.", i,
                         (unsigned long long)t->strides[i]);
    }
    return CUDA_SUCCESS;
}

/* Rows of `row` elements: of the box, or of a pixel. */
static CUresult check_row(const struct tensor *t, const char *name, unsigned row) {
    unsigned size = cpu_tensor_size[t->type], bytes = row * size, span = 16u << t->swizzle;
    if (!row || row > TENSOR_MOST_BOX) return WRONG("%s is %u; it must be from 1 to %d.", name, row, TENSOR_MOST_BOX);
    if (bytes % TENSOR_UNIT)
        return WRONG("%s is %u elements of %u bytes, %u bytes; it must be a multiple of %d bytes.", name, row, size,
                     bytes, TENSOR_UNIT);
    if (t->interleave == CU_TENSOR_MAP_INTERLEAVE_NONE && t->swizzle && bytes > span)
        return WRONG("%s is %u elements of %u bytes, %u bytes; with a swizzle of %u bytes it must be %u bytes at most.",
                     name, row, size, bytes, span, span);
    return CUDA_SUCCESS;
}

/* A box must fit into shared memory. The driver counts elements, also where slices are copied. */
static CUresult check_bytes(const struct tensor *t, uint64_t elements) {
    uint64_t bytes = elements * cpu_tensor_size[t->type];
    if (bytes > MOST_BYTES)
        return WRONG("the box has %llu elements, %llu bytes; it may have %d bytes.", (unsigned long long)elements,
                     (unsigned long long)bytes, MOST_BYTES);
    return CUDA_SUCCESS;
}

static CUresult check_tensor(const struct tensor *t, unsigned least_rank) {
    if ((unsigned)t->type > CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ &&
        (unsigned)t->type <= CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B)
        return WRONG("tensorDataType is %d; packed elements of 4 and 6 bits need compute capability 10.0.",
                     (int)t->type);
    RETURN_IF(check_enum("tensorDataType", (unsigned)t->type, TENSOR_TYPES, "CUtensorMapDataType"));
    RETURN_IF(check_enum("interleave", (unsigned)t->interleave, 3, "CUtensorMapInterleave"));
    RETURN_IF(check_enum("swizzle", (unsigned)t->swizzle, 4, "on this device CUtensorMapSwizzle"));
    RETURN_IF(check_enum("l2Promotion", (unsigned)t->promotion, 4, "CUtensorMapL2promotion"));
    RETURN_IF(check_enum("oobFill", (unsigned)t->fill, 2, "CUtensorMapFloatOOBfill"));
    if (t->interleave) least_rank = 3;
    if (t->rank < least_rank || t->rank > TENSOR_RANK)
        return WRONG("tensorRank is %u; it must be from %u to %d%s.", t->rank, least_rank, TENSOR_RANK,
                     t->interleave ? " with an interleaved layout" : "");
    RETURN_IF(check_address(t->address, t->interleave));
    if (!t->extents) return fail_null("globalDim");
    if (!t->strides) return fail_null("globalStrides");
    if (!t->steps) return fail_null("elementStrides");
    if (t->fill && !cpu_tensor_is_float((uint8_t)t->type))
        return WRONG("oobFill is NAN_REQUEST_ZERO_FMA; tensorDataType, %d, is no floating type.", (int)t->type);
    return check_dimensions(t);
}

static void encode(const struct tensor *t, cpu_tensor_map *map) {
    *map = (cpu_tensor_map){
        .address = (uintptr_t)t->address,
        .rank_last = (uint8_t)(t->rank - 1),
        .type = (uint8_t)t->type,
        .interleave = (uint8_t)t->interleave,
        .swizzle = (uint8_t)t->swizzle,
        .promotion = (uint8_t)t->promotion,
        .fill = (uint8_t)t->fill,
    };
    for (unsigned i = 0; i < t->rank; i++) {
        map->last[i] = (uint32_t)(t->extents[i] - 1);
        map->step_last[i] = (uint8_t)(t->steps[i] - 1);
        if (i) map->strides[i - 1] = t->strides[i - 1];
    }
}

CUresult cuTensorMapEncodeTiled(CUtensorMap *tensorMap, CUtensorMapDataType tensorDataType, cuuint32_t tensorRank,
                                void *globalAddress, const cuuint64_t *globalDim, const cuuint64_t *globalStrides,
                                const cuuint32_t *boxDim, const cuuint32_t *elementStrides,
                                CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion l2Promotion, CUtensorMapFloatOOBfill oobFill) {
    const struct tensor t = {tensorDataType, tensorRank, globalAddress, globalDim,   globalStrides,
                             elementStrides, interleave, swizzle,       l2Promotion, oobFill};
    cpu_tensor_map map;
    RETURN_IF(begin(tensorMap));
    RETURN_IF(check_tensor(&t, 1));
    if (!boxDim) return fail_null("boxDim");
    encode(&t, &map);
    RETURN_IF(check_row(&t, "boxDim[0]", boxDim[0]));
    uint64_t elements = 1;
    for (unsigned i = 0; i < tensorRank; i++) {
        if (!boxDim[i] || boxDim[i] > TENSOR_MOST_BOX)
            return WRONG("boxDim[%u] is %u; it must be from 1 to %d.", i, boxDim[i], TENSOR_MOST_BOX);
        map.box_last[i] = (uint16_t)(boxDim[i] - 1);
        elements *= i ? (boxDim[i] + elementStrides[i] - 1) / elementStrides[i] : boxDim[i];
    }
    RETURN_IF(check_bytes(&t, elements));
    memcpy(tensorMap, &map, sizeof map);
    return CUDA_SUCCESS;
}

/* What images have: `corners` of them, within [-most - 1, most]. They belong to the dimensions from 1 on, behind the
 * channels, or in an interleaved layout from 0 on. */
static CUresult encode_images(const struct tensor *t, unsigned corners, int most, const int *lower, const int *upper,
                              unsigned channels, unsigned pixels, cpu_tensor_map *map) {
    const unsigned first = t->interleave ? 0 : 1;
    encode(t, map);
    for (unsigned i = 0; i < corners; i++) {
        if (lower[i] < -most - 1 || lower[i] > most)
            return WRONG("pixelBoxLowerCorner[%u] is %d; with tensorRank %u it must be from %d to %d.", i, lower[i],
                         t->rank, -most - 1, most);
        if (upper[i] < -most - 1 || upper[i] > most)
            return WRONG("pixelBoxUpperCorner[%u] is %d; with tensorRank %u it must be from %d to %d.", i, upper[i],
                         t->rank, -most - 1, most);
        const unsigned at = i + first;
        const int64_t end = (int64_t)(int32_t)t->extents[at] + upper[i]; /* as the driver has it */
        if (end <= lower[i])
            return WRONG("the box of dimension %u goes from pixelBoxLowerCorner[%u], %d, to globalDim[%u] + "
                         "pixelBoxUpperCorner[%u], %lld, and is empty.",
                         at, i, lower[i], at, i, (long long)end);
        map->lower[i] = (int16_t)lower[i];
        map->upper[i] = (int16_t)upper[i];
    }
    RETURN_IF(check_row(t, "channelsPerPixel", channels));
    if (!pixels || pixels > TENSOR_MOST_PIXELS)
        return WRONG("pixelsPerColumn is %u; it must be from 1 to %d.", pixels, TENSOR_MOST_PIXELS);
    RETURN_IF(check_bytes(t, (uint64_t)channels * pixels));
    map->channels_last = (uint8_t)(channels - 1);
    map->pixels_last = (uint16_t)(pixels - 1);
    return CUDA_SUCCESS;
}

CUresult cuTensorMapEncodeIm2col(CUtensorMap *tensorMap, CUtensorMapDataType tensorDataType, cuuint32_t tensorRank,
                                 void *globalAddress, const cuuint64_t *globalDim, const cuuint64_t *globalStrides,
                                 const int *pixelBoxLowerCorner, const int *pixelBoxUpperCorner,
                                 cuuint32_t channelsPerPixel, cuuint32_t pixelsPerColumn,
                                 const cuuint32_t *elementStrides, CUtensorMapInterleave interleave,
                                 CUtensorMapSwizzle swizzle, CUtensorMapL2promotion l2Promotion,
                                 CUtensorMapFloatOOBfill oobFill) {
    static const int most[] = {32767, 127, 15}; /* by rank - 3 */
    const struct tensor t = {tensorDataType, tensorRank, globalAddress, globalDim,   globalStrides,
                             elementStrides, interleave, swizzle,       l2Promotion, oobFill};
    cpu_tensor_map map;
    RETURN_IF(begin(tensorMap));
    RETURN_IF(check_tensor(&t, 3));
    if (!pixelBoxLowerCorner) return fail_null("pixelBoxLowerCorner");
    if (!pixelBoxUpperCorner) return fail_null("pixelBoxUpperCorner");
    RETURN_IF(encode_images(&t, tensorRank - 2, most[tensorRank - 3], pixelBoxLowerCorner, pixelBoxUpperCorner,
                            channelsPerPixel, pixelsPerColumn, &map));
    map.kind = TENSOR_IMAGES;
    memcpy(tensorMap, &map, sizeof map);
    return CUDA_SUCCESS;
}

/* Instructions with such maps (.im2col::w) need compute capability 10.0, but an H200's driver encodes them, too. */
CUresult cuTensorMapEncodeIm2colWide(CUtensorMap *tensorMap, CUtensorMapDataType tensorDataType, cuuint32_t tensorRank,
                                     void *globalAddress, const cuuint64_t *globalDim, const cuuint64_t *globalStrides,
                                     int pixelBoxLowerCornerWidth, int pixelBoxUpperCornerWidth,
                                     cuuint32_t channelsPerPixel, cuuint32_t pixelsPerColumn,
                                     const cuuint32_t *elementStrides, CUtensorMapInterleave interleave,
                                     CUtensorMapIm2ColWideMode mode, CUtensorMapSwizzle swizzle,
                                     CUtensorMapL2promotion l2Promotion, CUtensorMapFloatOOBfill oobFill) {
    const struct tensor t = {tensorDataType, tensorRank, globalAddress, globalDim,   globalStrides,
                             elementStrides, interleave, swizzle,       l2Promotion, oobFill};
    cpu_tensor_map map;
    RETURN_IF(begin(tensorMap));
    RETURN_IF(check_tensor(&t, 3));
    RETURN_IF(check_enum("mode", (unsigned)mode, 2, "CUtensorMapIm2ColWideMode"));
    for (unsigned i = 2; i + 1 < tensorRank; i++)
        if ((int32_t)globalDim[i] <= 0)
            return WRONG("globalDim[%u] is %llu; of images it must be less than 2^31.", i,
                         (unsigned long long)globalDim[i]);
    RETURN_IF(encode_images(&t, 1, MOST_WIDE - 1, &pixelBoxLowerCornerWidth, &pixelBoxUpperCornerWidth,
                            channelsPerPixel, pixelsPerColumn, &map));
    const int64_t width = (int64_t)globalDim[interleave ? 0 : 1] + pixelBoxUpperCornerWidth - pixelBoxLowerCornerWidth;
    if (width > MOST_WIDE) return WRONG("the box is %lld pixels wide; it may be %d.", (long long)width, MOST_WIDE);
    map.kind = TENSOR_WIDE_IMAGES;
    memcpy(tensorMap, &map, sizeof map);
    return CUDA_SUCCESS;
}

CUresult cuTensorMapReplaceAddress(CUtensorMap *tensorMap, void *globalAddress) {
    cpu_tensor_map map;
    RETURN_IF(begin(tensorMap));
    memcpy(&map, tensorMap, sizeof map);
    if (!globalAddress) return fail_null("globalAddress");
    RETURN_IF(check_address(globalAddress, TENSOR_DENSE)); /* the driver asks for no more, whatever the layout is */
    map.address = (uintptr_t)globalAddress;
    memcpy(tensorMap, &map, sizeof map);
    return CUDA_SUCCESS;
}

const struct entry tensor_map_entries[] = {
    ENTRY(cuTensorMapEncodeTiled),
    ENTRY(cuTensorMapEncodeIm2col),
    ENTRY(cuTensorMapEncodeIm2colWide),
    ENTRY(cuTensorMapReplaceAddress),
    {NULL, NULL, NULL},
};
