/* CUDA arrays (CUDA Runtime API, "Memory Management", "Texture Object Management" for the descriptors of channels). */
#include "cudart.h"

/* ---- channels -------------------------------------------------------------------------------------------------- */

/* For each kind the formats of channels of 8, 16 and 32 bits; 0: there is none. */
static const CUarray_format plain_formats[][3] = {
    [cudaChannelFormatKindSigned] = {CU_AD_FORMAT_SIGNED_INT8, CU_AD_FORMAT_SIGNED_INT16, CU_AD_FORMAT_SIGNED_INT32},
    [cudaChannelFormatKindUnsigned] = {CU_AD_FORMAT_UNSIGNED_INT8, CU_AD_FORMAT_UNSIGNED_INT16,
                                       CU_AD_FORMAT_UNSIGNED_INT32},
    [cudaChannelFormatKindFloat] = {0, CU_AD_FORMAT_HALF, CU_AD_FORMAT_FLOAT},
};

/* The kinds that name the number of channels and their bits follow each other as the driver's formats do: 1, 2 and 4
 * channels of 8 bits, the same of 16, first unsigned and then signed. */
enum { FIRST_NORMALIZED = cudaChannelFormatKindUnsignedNormalized8X1, NORMALIZED = 12 };

/* So do the kinds of block compression and the driver's formats of it. */
enum { FIRST_BLOCK = cudaChannelFormatKindUnsignedBlockCompressed1, BLOCK_FORMATS = 14 };
static const uint8_t block_channels[BLOCK_FORMATS] = {4, 4, 4, 4, 4, 4, 1, 1, 2, 2, 3, 3, 4, 4};
static int block_bits(unsigned index) { return block_channels[index] == 3 ? 16 : 8; }

static unsigned normalized_channels(unsigned index) { return 1u << index % 3; }
static int normalized_bits(unsigned index) { return index / 3 % 2 ? 16 : 8; }

static CUresult bad_channels(const struct cudaChannelFormatDesc *c) {
    return fail_runtime(
        cudaErrorInvalidChannelDescriptor,
        "channels of %d, %d, %d and %d bits of kind %d: there must be 1, 2 or 4 of the same size, 8, 16 or "
        "32 bits for integers, 16 or 32 for floats",
        c->x, c->y, c->z, c->w, (int)c->f);
}

CUresult format_of_channels(const struct cudaChannelFormatDesc *c, CUarray_format *format, unsigned *count) {
    if (!c) return fail_null("desc");
    unsigned index = (unsigned)c->f - FIRST_NORMALIZED;
    unsigned channels = c->w ? 4 : c->z ? 3 : c->y ? 2 : 1;
    bool same = (channels < 2 || c->y == c->x) && (channels < 4 || (c->z == c->x && c->w == c->x));
    const unsigned block = (unsigned)c->f - FIRST_BLOCK;
    if (block < BLOCK_FORMATS) {
        if (channels != block_channels[block] || c->x != block_bits(block) || (channels == 3 && c->z != c->x))
            return bad_channels(c);
        *format = (CUarray_format)(CU_AD_FORMAT_BC1_UNORM + block);
        *count = channels;
        return CUDA_SUCCESS;
    }
    if (c->f == cudaChannelFormatKindUnsignedNormalized1010102) {
        if (c->x != 10 || c->y != 10 || c->z != 10 || c->w != 2) return bad_channels(c);
        *format = CU_AD_FORMAT_UNORM_INT_101010_2;
        *count = channels;
        return CUDA_SUCCESS;
    }
    if (channels == 3 || !same) return bad_channels(c);
    if (index < NORMALIZED) {
        if (channels != normalized_channels(index) || c->x != normalized_bits(index)) return bad_channels(c);
        *format = (CUarray_format)(CU_AD_FORMAT_UNORM_INT8X1 + index);
    } else {
        if ((unsigned)c->f > cudaChannelFormatKindUnsignedNormalized8X1 &&
            (unsigned)c->f <= cudaChannelFormatKindUnsigned16Planar444)
            return fail(CUDA_ERROR_NOT_SUPPORTED, "the CPU device has no texels of kind %d, which is for video",
                        (int)c->f);
        if ((unsigned)c->f > cudaChannelFormatKindFloat || (c->x != 8 && c->x != 16 && c->x != 32))
            return bad_channels(c);
        *format = plain_formats[c->f][c->x / 16];
        if (!*format) return bad_channels(c);
    }
    *count = channels;
    return CUDA_SUCCESS;
}

struct cudaChannelFormatDesc channels_of_format(CUarray_format format, unsigned count) {
    unsigned index = (unsigned)format - CU_AD_FORMAT_UNORM_INT8X1;
    const unsigned block = (unsigned)format - CU_AD_FORMAT_BC1_UNORM;
    struct cudaChannelFormatDesc c = {.f = cudaChannelFormatKindNone};
    if (format == CU_AD_FORMAT_UNORM_INT_101010_2)
        return (struct cudaChannelFormatDesc){10, 10, 10, 2, cudaChannelFormatKindUnsignedNormalized1010102};
    int bits = index < NORMALIZED ? normalized_bits(index) : 0;
    if (index < NORMALIZED) c.f = (enum cudaChannelFormatKind)(FIRST_NORMALIZED + index);
    for (unsigned kind = 0; kind <= cudaChannelFormatKindFloat; kind++)
        for (int size = 0; size < 3; size++)
            if (plain_formats[kind][size] == format) {
                c.f = (enum cudaChannelFormatKind)kind;
                bits = 8 << size;
            }
    if (block < BLOCK_FORMATS) {
        c.f = (enum cudaChannelFormatKind)(FIRST_BLOCK + block);
        bits = block_bits(block);
    }
    c.x = bits;
    c.y = count > 1 ? bits : 0;
    c.z = count > 2 ? bits : 0;
    c.w = count > 3 ? bits : 0;
    return c;
}

/* The only function of the runtime that returns no status; it needs no device. */
static struct cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, enum cudaChannelFormatKind f) {
    return (struct cudaChannelFormatDesc){x, y, z, w, f};
}

/* ---- arrays ---------------------------------------------------------------------------------------------------- */

static CUresult describe(const struct cudaChannelFormatDesc *channels, struct cudaExtent extent, unsigned flags,
                         CUDA_ARRAY3D_DESCRIPTOR *descriptor) {
    *descriptor = (CUDA_ARRAY3D_DESCRIPTOR){
        .Width = extent.width, .Height = extent.height, .Depth = extent.depth, .Flags = flags};
    return format_of_channels(channels, &descriptor->Format, &descriptor->NumChannels);
}

static CUresult allocate(cudaArray_t *array, const struct cudaChannelFormatDesc *channels, struct cudaExtent extent,
                         unsigned flags) {
    CUDA_ARRAY3D_DESCRIPTOR descriptor;
    if (!array) return fail_null("array");
    RETURN_IF(describe(channels, extent, flags, &descriptor));
    return cuArray3DCreate((CUarray *)array, &descriptor);
}

static CUresult allocate_levels(cudaMipmappedArray_t *array, const struct cudaChannelFormatDesc *channels,
                                struct cudaExtent extent, unsigned levels, unsigned flags) {
    CUDA_ARRAY3D_DESCRIPTOR descriptor;
    if (!array) return fail_null("mipmappedArray");
    RETURN_IF(describe(channels, extent, flags, &descriptor));
    return cuMipmappedArrayCreate((CUmipmappedArray *)array, &descriptor, levels);
}

static CUresult get_info(struct cudaChannelFormatDesc *channels, struct cudaExtent *extent, unsigned *flags,
                         cudaArray_const_t array) {
    CUDA_ARRAY3D_DESCRIPTOR d;
    RETURN_IF(cuArray3DGetDescriptor(&d, (CUarray)array));
    if (channels) *channels = channels_of_format(d.Format, d.NumChannels);
    if (extent) *extent = (struct cudaExtent){d.Width, d.Height, d.Depth};
    if (flags) *flags = d.Flags;
    return CUDA_SUCCESS;
}

static CUresult get_channels(struct cudaChannelFormatDesc *channels, cudaArray_const_t array) {
    return channels ? get_info(channels, NULL, NULL, array) : fail_null("desc");
}

/* Bytes of a texel, or of a block with so many along its sides: BC1 and BC4 have 8, the others 16. */
CUresult texel_of(cudaArray_t array, size_t *bytes, size_t *block) {
    struct cudaChannelFormatDesc c;
    RETURN_IF(get_info(&c, NULL, NULL, array));
    const unsigned index = (unsigned)c.f - FIRST_BLOCK;
    *block = index < BLOCK_FORMATS ? 4 : 1;
    *bytes = (size_t)(c.x + c.y + c.z + c.w) / 8;
    if (index < BLOCK_FORMATS)
        *bytes = c.f <= cudaChannelFormatKindUnsignedBlockCompressed1SRGB || block_channels[index] == 1 ? 8 : 16;
    return CUDA_SUCCESS;
}

RUNTIME(cudaMallocArray,
        (cudaArray_t *array, const struct cudaChannelFormatDesc *desc, size_t width, size_t height, unsigned flags),
        allocate(array, desc, (struct cudaExtent){width, height, 0}, flags))
RUNTIME(cudaMalloc3DArray,
        (cudaArray_t *array, const struct cudaChannelFormatDesc *desc, struct cudaExtent extent, unsigned flags),
        allocate(array, desc, extent, flags))
RUNTIME(cudaMallocMipmappedArray,
        (cudaMipmappedArray_t *mipmappedArray, const struct cudaChannelFormatDesc *desc, struct cudaExtent extent,
         unsigned numLevels, unsigned flags),
        allocate_levels(mipmappedArray, desc, extent, numLevels, flags))
RUNTIME(cudaGetMipmappedArrayLevel,
        (cudaArray_t *levelArray, cudaMipmappedArray_const_t mipmappedArray, unsigned level),
        cuMipmappedArrayGetLevel((CUarray *)levelArray, (CUmipmappedArray)mipmappedArray, level))
RUNTIME(cudaFreeArray, (cudaArray_t array), array ? cuArrayDestroy((CUarray)array) : CUDA_SUCCESS)
RUNTIME(cudaFreeMipmappedArray, (cudaMipmappedArray_t mipmappedArray),
        mipmappedArray ? cuMipmappedArrayDestroy((CUmipmappedArray)mipmappedArray) : CUDA_SUCCESS)
RUNTIME(cudaArrayGetInfo,
        (struct cudaChannelFormatDesc *desc, struct cudaExtent *extent, unsigned *flags, cudaArray_t array),
        get_info(desc, extent, flags, array))
RUNTIME(cudaGetChannelDesc, (struct cudaChannelFormatDesc *desc, cudaArray_const_t array), get_channels(desc, array))
RUNTIME(cudaArrayGetPlane, (cudaArray_t *pPlaneArray, cudaArray_t hArray, unsigned planeIdx),
        cuArrayGetPlane((CUarray *)pPlaneArray, (CUarray)hArray, planeIdx))
RUNTIME(cudaArrayGetMemoryRequirements,
        (struct cudaArrayMemoryRequirements *memoryRequirements, cudaArray_t array, int device),
        cuArrayGetMemoryRequirements((CUDA_ARRAY_MEMORY_REQUIREMENTS *)memoryRequirements, (CUarray)array, device))
RUNTIME(cudaMipmappedArrayGetMemoryRequirements,
        (struct cudaArrayMemoryRequirements *memoryRequirements, cudaMipmappedArray_t mipmap, int device),
        cuMipmappedArrayGetMemoryRequirements((CUDA_ARRAY_MEMORY_REQUIREMENTS *)memoryRequirements,
                                              (CUmipmappedArray)mipmap, device))
RUNTIME(cudaArrayGetSparseProperties, (struct cudaArraySparseProperties *sparseProperties, cudaArray_t array),
        cuArrayGetSparseProperties((CUDA_ARRAY_SPARSE_PROPERTIES *)sparseProperties, (CUarray)array))
RUNTIME(cudaMipmappedArrayGetSparseProperties,
        (struct cudaArraySparseProperties *sparseProperties, cudaMipmappedArray_t mipmap),
        cuMipmappedArrayGetSparseProperties((CUDA_ARRAY_SPARSE_PROPERTIES *)sparseProperties, (CUmipmappedArray)mipmap))

const struct entry runtime_array_entries[] = {
    RUNTIME_ENTRY(cudaCreateChannelDesc),
    RUNTIME_ENTRY(cudaGetChannelDesc),
    RUNTIME_ENTRY(cudaMallocArray),
    RUNTIME_ENTRY(cudaMalloc3DArray),
    RUNTIME_ENTRY(cudaMallocMipmappedArray),
    RUNTIME_ENTRY(cudaGetMipmappedArrayLevel),
    RUNTIME_ENTRY(cudaFreeArray),
    RUNTIME_ENTRY(cudaFreeMipmappedArray),
    RUNTIME_ENTRY(cudaArrayGetInfo),
    RUNTIME_ENTRY(cudaArrayGetPlane),
    RUNTIME_ENTRY(cudaArrayGetMemoryRequirements),
    RUNTIME_ENTRY(cudaMipmappedArrayGetMemoryRequirements),
    RUNTIME_ENTRY(cudaArrayGetSparseProperties),
    RUNTIME_ENTRY(cudaMipmappedArrayGetSparseProperties),
    {NULL, NULL, NULL},
};
