/* The formats of texels (CUDA Driver API, CUarray_format; cuDeviceGetTexture1DLinearMaxWidth). */
#include "array.h"

/* A format of the eight basic ones has 1, 2 or 4 channels; the names of the others have the number in them. */
static const struct {
    uint32_t format, channel; /* as given; for the engine, the one of a single channel */
    uint8_t channels, bytes;  /* 0: 1, 2 or 4; of a channel */
} formats[] = {
    {CU_AD_FORMAT_UNSIGNED_INT8, CU_AD_FORMAT_UNSIGNED_INT8, 0, 1},
    {CU_AD_FORMAT_UNSIGNED_INT16, CU_AD_FORMAT_UNSIGNED_INT16, 0, 2},
    {CU_AD_FORMAT_UNSIGNED_INT32, CU_AD_FORMAT_UNSIGNED_INT32, 0, 4},
    {CU_AD_FORMAT_SIGNED_INT8, CU_AD_FORMAT_SIGNED_INT8, 0, 1},
    {CU_AD_FORMAT_SIGNED_INT16, CU_AD_FORMAT_SIGNED_INT16, 0, 2},
    {CU_AD_FORMAT_SIGNED_INT32, CU_AD_FORMAT_SIGNED_INT32, 0, 4},
    {CU_AD_FORMAT_HALF, CU_AD_FORMAT_HALF, 0, 2},
    {CU_AD_FORMAT_FLOAT, CU_AD_FORMAT_FLOAT, 0, 4},
    {CU_AD_FORMAT_UNORM_INT8X1, CU_AD_FORMAT_UNORM_INT8X1, 1, 1},
    {CU_AD_FORMAT_UNORM_INT8X2, CU_AD_FORMAT_UNORM_INT8X1, 2, 1},
    {CU_AD_FORMAT_UNORM_INT8X4, CU_AD_FORMAT_UNORM_INT8X1, 4, 1},
    {CU_AD_FORMAT_UNORM_INT16X1, CU_AD_FORMAT_UNORM_INT16X1, 1, 2},
    {CU_AD_FORMAT_UNORM_INT16X2, CU_AD_FORMAT_UNORM_INT16X1, 2, 2},
    {CU_AD_FORMAT_UNORM_INT16X4, CU_AD_FORMAT_UNORM_INT16X1, 4, 2},
    {CU_AD_FORMAT_SNORM_INT8X1, CU_AD_FORMAT_SNORM_INT8X1, 1, 1},
    {CU_AD_FORMAT_SNORM_INT8X2, CU_AD_FORMAT_SNORM_INT8X1, 2, 1},
    {CU_AD_FORMAT_SNORM_INT8X4, CU_AD_FORMAT_SNORM_INT8X1, 4, 1},
    {CU_AD_FORMAT_SNORM_INT16X1, CU_AD_FORMAT_SNORM_INT16X1, 1, 2},
    {CU_AD_FORMAT_SNORM_INT16X2, CU_AD_FORMAT_SNORM_INT16X1, 2, 2},
    {CU_AD_FORMAT_SNORM_INT16X4, CU_AD_FORMAT_SNORM_INT16X1, 4, 2},
};

/* Texels that are not channel by channel (engine/texture/packed.h). */
static const struct {
    uint32_t format;
    uint8_t channels, bytes, block; /* bytes of a texel or block, and texels along its sides */
} packed[] = {
    {CU_AD_FORMAT_UNORM_INT_101010_2, 4, 4, 1}, {CU_AD_FORMAT_BC1_UNORM, 4, 8, 4},
    {CU_AD_FORMAT_BC1_UNORM_SRGB, 4, 8, 4},     {CU_AD_FORMAT_BC2_UNORM, 4, 16, 4},
    {CU_AD_FORMAT_BC2_UNORM_SRGB, 4, 16, 4},    {CU_AD_FORMAT_BC3_UNORM, 4, 16, 4},
    {CU_AD_FORMAT_BC3_UNORM_SRGB, 4, 16, 4},    {CU_AD_FORMAT_BC4_UNORM, 1, 8, 4},
    {CU_AD_FORMAT_BC4_SNORM, 1, 8, 4},          {CU_AD_FORMAT_BC5_UNORM, 2, 16, 4},
    {CU_AD_FORMAT_BC5_SNORM, 2, 16, 4},         {CU_AD_FORMAT_BC6H_UF16, 3, 16, 4},
    {CU_AD_FORMAT_BC6H_SF16, 3, 16, 4},         {CU_AD_FORMAT_BC7_UNORM, 4, 16, 4},
    {CU_AD_FORMAT_BC7_UNORM_SRGB, 4, 16, 4},
};

/* Formats of CUDA that are not emulated: those of video. */
static const struct {
    uint32_t first, last;
} others[] = {
    {CU_AD_FORMAT_UINT8_PACKED_422, CU_AD_FORMAT_UINT16_PLANAR_444},
    {CU_AD_FORMAT_P010, CU_AD_FORMAT_P010},
    {CU_AD_FORMAT_P016, CU_AD_FORMAT_Y410},
    {CU_AD_FORMAT_NV12, CU_AD_FORMAT_YUV444_16bit_SemiPlanar},
};

CUresult texel_check(CUarray_format format, unsigned channels, struct cpu_texels *texels) {
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        if (formats[i].format != (uint32_t)format) continue;
        if (channels != 1 && channels != 2 && channels != 4)
            return fail(CUDA_ERROR_INVALID_VALUE, "a texel has 1, 2 or 4 channels, not %u.", channels);
        if (formats[i].channels && formats[i].channels != channels)
            return fail(CUDA_ERROR_INVALID_VALUE, "texels of format 0x%x have %u channels, not %u.", (unsigned)format,
                        formats[i].channels, channels);
        texels->format = formats[i].channel;
        texels->channels = channels;
        texels->bytes = channels * formats[i].bytes;
        texels->block = 1;
        return CUDA_SUCCESS;
    }
    for (size_t i = 0; i < sizeof packed / sizeof *packed; i++) {
        if (packed[i].format != (uint32_t)format) continue;
        if (channels != packed[i].channels)
            return fail(CUDA_ERROR_INVALID_VALUE, "texels of format 0x%x have %u channels, not %u.", (unsigned)format,
                        packed[i].channels, channels);
        texels->format = packed[i].format;
        texels->channels = channels;
        texels->bytes = packed[i].bytes;
        texels->block = packed[i].block;
        return CUDA_SUCCESS;
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if ((uint32_t)format >= others[i].first && (uint32_t)format <= others[i].last)
            return fail(CUDA_ERROR_NOT_SUPPORTED,
                        "the CPU device has no texels of format 0x%x, which is for video: it has integers of 8, 16 "
                        "and 32 bits, normalized integers of 8, 16 and 10-10-10-2, half, float and block compression.",
                        (unsigned)format);
    return fail(CUDA_ERROR_INVALID_VALUE, "0x%x is not a CUarray_format.", (unsigned)format);
}

size_t texel_most_linear(uint32_t bytes) {
    const uint64_t most = (UINT64_C(1) << 32) / bytes;
    return most < 1 << 30 ? (size_t)most : (size_t)1 << 30;
}

bool array_is_compressed(CUarray array) {
    const uint32_t format = (uint32_t)array->descriptor.Format;
    return format >= CU_AD_FORMAT_BC1_UNORM && format <= CU_AD_FORMAT_BC7_UNORM_SRGB;
}

bool texel_is_integer(uint32_t format) {
    return format >= CU_AD_FORMAT_UNSIGNED_INT8 && format <= CU_AD_FORMAT_SIGNED_INT32;
}

CUresult cuDeviceGetTexture1DLinearMaxWidth(size_t *width, CUarray_format format, unsigned channels, CUdevice ordinal) {
    struct device *device = NULL;
    struct cpu_texels texels;
    RETURN_IF(device_get(ordinal, &device));
    if (!width) return fail_null("maxWidthInElements");
    RETURN_IF(texel_check(format, channels, &texels));
    *width = texel_most_linear(texels.bytes);
    return CUDA_SUCCESS;
}

const struct entry texel_entries[] = {
    ENTRY(cuDeviceGetTexture1DLinearMaxWidth),
    {NULL, NULL, NULL},
};
