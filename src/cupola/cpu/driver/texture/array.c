/* CUDA arrays, mipmapped ones included (CUDA Driver API, "Memory Management": cuArray3DCreate,
 * cuMipmappedArrayCreate). */
#include "array.h"

/* ---- what a descriptor may ask for -------------------------------------------------------------------- */

enum shape { SHAPE_1D, SHAPE_2D, SHAPE_3D, SHAPE_1D_LAYERED, SHAPE_2D_LAYERED, SHAPE_CUBE, SHAPE_CUBE_LAYERED, SHAPES };
static const char *const shape_names[SHAPES] = {
    "1D array", "2D array", "3D array", "1D layered array", "2D layered array", "cubemap", "layered cubemap",
};

/* The attributes of the device that bound width, height and depth or layers; 0: the array has no such extent, or
 * any. */
#define MAXIMUM(name) CU_DEVICE_ATTRIBUTE_MAXIMUM_##name
#define PLAIN(name) MAXIMUM(name##_WIDTH), MAXIMUM(name##_HEIGHT)
struct bounds {
    int width, height, depth;
};
static const struct bounds texture_bounds[SHAPES] = {
    [SHAPE_1D] = {MAXIMUM(TEXTURE1D_WIDTH), 0, 0},
    [SHAPE_2D] = {PLAIN(TEXTURE2D), 0},
    [SHAPE_3D] = {PLAIN(TEXTURE3D), MAXIMUM(TEXTURE3D_DEPTH)},
    [SHAPE_1D_LAYERED] = {MAXIMUM(TEXTURE1D_LAYERED_WIDTH), 0, MAXIMUM(TEXTURE1D_LAYERED_LAYERS)},
    [SHAPE_2D_LAYERED] = {PLAIN(TEXTURE2D_LAYERED), MAXIMUM(TEXTURE2D_LAYERED_LAYERS)},
    [SHAPE_CUBE] = {MAXIMUM(TEXTURECUBEMAP_WIDTH), 0, 0},
    [SHAPE_CUBE_LAYERED] = {MAXIMUM(TEXTURECUBEMAP_LAYERED_WIDTH), 0, MAXIMUM(TEXTURECUBEMAP_LAYERED_LAYERS)},
};
static const struct bounds surface_bounds[SHAPES] = {
    [SHAPE_1D] = {MAXIMUM(SURFACE1D_WIDTH), 0, 0},
    [SHAPE_2D] = {PLAIN(SURFACE2D), 0},
    [SHAPE_3D] = {PLAIN(SURFACE3D), MAXIMUM(SURFACE3D_DEPTH)},
    [SHAPE_1D_LAYERED] = {MAXIMUM(SURFACE1D_LAYERED_WIDTH), 0, MAXIMUM(SURFACE1D_LAYERED_LAYERS)},
    [SHAPE_2D_LAYERED] = {PLAIN(SURFACE2D_LAYERED), MAXIMUM(SURFACE2D_LAYERED_LAYERS)},
    [SHAPE_CUBE] = {MAXIMUM(SURFACECUBEMAP_WIDTH), 0, 0},
    [SHAPE_CUBE_LAYERED] = {MAXIMUM(SURFACECUBEMAP_LAYERED_WIDTH), 0, MAXIMUM(SURFACECUBEMAP_LAYERED_LAYERS)},
};
static const struct bounds deep_bounds = {MAXIMUM(TEXTURE3D_WIDTH_ALTERNATE), MAXIMUM(TEXTURE3D_HEIGHT_ALTERNATE),
                                          MAXIMUM(TEXTURE3D_DEPTH_ALTERNATE)};
static const struct bounds gather_bounds = {PLAIN(TEXTURE2D_GATHER), 0};
static const struct bounds mipmapped_1d_bounds = {MAXIMUM(TEXTURE1D_MIPMAPPED_WIDTH), 0, 0};
static const struct bounds mipmapped_2d_bounds = {PLAIN(TEXTURE2D_MIPMAPPED), 0};

static bool exceeds(const struct device *device, size_t extent, int attribute) {
    return attribute && extent > (size_t)device_attribute(device, (CUdevice_attribute)attribute);
}

static CUresult check_bounds(const struct device *device, const CUDA_ARRAY3D_DESCRIPTOR *d, enum shape shape,
                             const struct bounds *bounds, const char *use) {
    const size_t extents[3] = {d->Width, d->Height, d->Depth};
    const int attributes[3] = {bounds->width, bounds->height, bounds->depth};
    static const char *const names[3] = {"Width", "Height", "Depth"};
    for (int i = 0; i < 3; i++)
        if (exceeds(device, extents[i], attributes[i]))
            return fail(CUDA_ERROR_INVALID_VALUE, "%s is %zu; a %s%s of this device may have at most %d.", names[i],
                        extents[i], shape_names[shape], use,
                        device_attribute(device, (CUdevice_attribute)attributes[i]));
    return CUDA_SUCCESS;
}

static enum shape shape_of(const CUDA_ARRAY3D_DESCRIPTOR *d) {
    bool layered = d->Flags & CUDA_ARRAY3D_LAYERED;
    if (d->Flags & CUDA_ARRAY3D_CUBEMAP) return layered ? SHAPE_CUBE_LAYERED : SHAPE_CUBE;
    if (layered) return d->Height ? SHAPE_2D_LAYERED : SHAPE_1D_LAYERED;
    return d->Depth ? SHAPE_3D : d->Height ? SHAPE_2D : SHAPE_1D;
}

static CUresult check_extents(const CUDA_ARRAY3D_DESCRIPTOR *d, enum shape shape) {
    if (d->Width == 0) return fail(CUDA_ERROR_INVALID_VALUE, "Width is 0: an array must have at least one texel.");
    switch (shape) {
        case SHAPE_1D_LAYERED:
        case SHAPE_2D_LAYERED:
            if (d->Depth == 0)
                return fail(CUDA_ERROR_INVALID_VALUE, "Depth is 0: for a layered array, it is the number of layers.");
            break;
        case SHAPE_CUBE:
        case SHAPE_CUBE_LAYERED:
            if (d->Width != d->Height)
                return fail(CUDA_ERROR_INVALID_VALUE, "the faces of a cubemap are square, not %zu x %zu.", d->Width,
                            d->Height);
            if (shape == SHAPE_CUBE ? d->Depth != 6 : d->Depth == 0 || d->Depth % 6)
                return fail(CUDA_ERROR_INVALID_VALUE, "Depth is %zu; a %s has %s.", d->Depth, shape_names[shape],
                            shape == SHAPE_CUBE ? "6 faces" : "a multiple of 6 faces");
            break;
        case SHAPE_3D:
            if (d->Height == 0)
                return fail(CUDA_ERROR_INVALID_VALUE,
                            "Depth is %zu and Height 0: give both, or the flag CUDA_ARRAY3D_LAYERED for layers.",
                            d->Depth);
            break;
        default: break;
    }
    return CUDA_SUCCESS;
}

static CUresult check_flags(unsigned flags, enum shape shape) {
    const unsigned known =
        CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SURFACE_LDST | CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_TEXTURE_GATHER;
    const unsigned graphics = CUDA_ARRAY3D_DEPTH_TEXTURE | CUDA_ARRAY3D_COLOR_ATTACHMENT;
    const unsigned missing = CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING | CUDA_ARRAY3D_VIDEO_ENCODE_DECODE;
    if (flags & ~(known | graphics | missing))
        return fail(CUDA_ERROR_INVALID_VALUE, "Flags has unknown bits: %#x.", flags & ~(known | graphics | missing));
    if (flags & graphics)
        return fail(CUDA_ERROR_INVALID_VALUE,
                    "Flags has %#x: depth textures and color attachments are made by graphics libraries.",
                    flags & graphics);
    if (flags & missing)
        return fail(CUDA_ERROR_NOT_SUPPORTED,
                    "Flags has %#x: the CPU device has no sparse arrays, no memory to be mapped later and no video.",
                    flags & missing);
    if (flags & CUDA_ARRAY3D_TEXTURE_GATHER && shape != SHAPE_2D)
        return fail(CUDA_ERROR_INVALID_VALUE, "CUDA_ARRAY3D_TEXTURE_GATHER is for 2D arrays, this is a %s.",
                    shape_names[shape]);
    return CUDA_SUCCESS;
}

static CUresult check_descriptor(const struct device *device, const CUDA_ARRAY3D_DESCRIPTOR *d, bool mipmapped,
                                 struct cpu_texels *texels) {
    enum shape shape = shape_of(d);
    const struct bounds *bounds = &texture_bounds[shape];
    RETURN_IF(texel_check(d->Format, d->NumChannels, texels));
    RETURN_IF(check_flags(d->Flags, shape));
    RETURN_IF(check_extents(d, shape));
    if (texels->block > 1 && d->Height == 0)
        return fail(
            CUDA_ERROR_INVALID_VALUE,
            "Height is 0: arrays of format 0x%x, whose texels come in blocks of %u x %u, have two dimensions or more.",
            (unsigned)d->Format, texels->block, texels->block);
    if (texels->block > 1 && d->Flags & CUDA_ARRAY3D_SURFACE_LDST)
        return fail(CUDA_ERROR_NOT_SUPPORTED,
                    "Flags has CUDA_ARRAY3D_SURFACE_LDST: block compression (format 0x%x) is read only.",
                    (unsigned)d->Format);
    if (mipmapped && shape == SHAPE_1D) bounds = &mipmapped_1d_bounds;
    if (mipmapped && shape == SHAPE_2D) bounds = &mipmapped_2d_bounds;
    if (d->Flags & CUDA_ARRAY3D_TEXTURE_GATHER) bounds = &gather_bounds;
    bool deep = shape == SHAPE_3D && !exceeds(device, d->Width, deep_bounds.width) &&
                !exceeds(device, d->Height, deep_bounds.height) && !exceeds(device, d->Depth, deep_bounds.depth);
    if (!deep)
        RETURN_IF(check_bounds(device, d, shape, bounds,
                               bounds == &gather_bounds ? " for gathers"
                               : mipmapped              ? " with mipmap levels"
                                                        : ""));
    if (d->Flags & CUDA_ARRAY3D_SURFACE_LDST)
        RETURN_IF(check_bounds(device, d, shape, &surface_bounds[shape], " for surfaces"));
    return CUDA_SUCCESS;
}

void array_describe(const CUDA_ARRAY3D_DESCRIPTOR *d, struct cpu_texels *texels) {
    static const uint8_t dimensions[SHAPES] = {1, 2, 3, 1, 2, 2, 2};
    enum shape shape = shape_of(d);
    (void)texel_check(d->Format, d->NumChannels, texels);
    texels->dimensions = dimensions[shape];
    texels->layered = d->Flags & CUDA_ARRAY3D_LAYERED;
    texels->cubemap = d->Flags & CUDA_ARRAY3D_CUBEMAP;
}

/* ---- making and destroying ---------------------------------------------------------------------------- */

CUresult array_check(CUarray array) {
    return handle_is_live(array, HANDLE_ARRAY) ? CUDA_SUCCESS : fail_handle("CUDA array", array, HANDLE_ARRAY);
}

CUresult mipmapped_array_check(CUmipmappedArray array) {
    return handle_is_live(array, HANDLE_MIPMAPPED_ARRAY)
               ? CUDA_SUCCESS
               : fail_handle("mipmapped CUDA array", array, HANDLE_MIPMAPPED_ARRAY);
}

static CUresult no_handle(void) { return no_memory("another CUDA array"); }

static size_t blocks(size_t extent, const struct cpu_texels *texels) {
    return (extent + texels->block - 1) / texels->block;
}

/* The image of a level, without its address. A level halves all extents but the number of layers. */
static struct cpu_image image_of(const CUDA_ARRAY3D_DESCRIPTOR *d, const struct cpu_texels *texels, unsigned level,
                                 CUDA_ARRAY3D_DESCRIPTOR *own) {
    enum shape shape = shape_of(d);
    bool has_depth = shape == SHAPE_3D;
    *own = *d;
    own->Width = d->Width >> level ? d->Width >> level : 1;
    if (d->Height) own->Height = d->Height >> level ? d->Height >> level : 1;
    if (has_depth) own->Depth = d->Depth >> level ? d->Depth >> level : 1;
    struct cpu_image image = {
        .width = (uint32_t)own->Width,
        .height = own->Height ? (uint32_t)own->Height : 1,
        .depth = has_depth ? (uint32_t)own->Depth : 1,
        .layers = has_depth || !own->Depth ? 1 : (uint32_t)own->Depth,
        .row = blocks(own->Width, texels) * texels->bytes,
    };
    image.slice = image.row * blocks(image.height, texels);
    image.size = image.slice * image.depth * image.layers;
    return image;
}

static CUarray new_array(CUcontext context, const CUDA_ARRAY3D_DESCRIPTOR *descriptor, const struct cpu_texels *texels,
                         unsigned level) {
    CUarray array = handle_make(HANDLE_ARRAY, sizeof *array);
    if (!array) return NULL;
    array->context = context;
    array->texel = texels->bytes;
    array->image = image_of(descriptor, texels, level, &array->descriptor);
    handle_publish(array);
    return array;
}

static CUresult enter_create(const char *call, const void *result, const void *descriptor, CUcontext *context) {
    RETURN_IF(enter_context(context));
    if (!result) return fail_null("pHandle");
    if (!descriptor) return fail_null("the descriptor");
    return capture_check_thread(call);
}

CUresult cuArray3DCreate(CUarray *pHandle, const CUDA_ARRAY3D_DESCRIPTOR *pAllocateArray) {
    CUcontext context;
    struct cpu_texels texels;
    RETURN_IF(enter_create("cuArray3DCreate", pHandle, pAllocateArray, &context));
    RETURN_IF(check_descriptor(context->device, pAllocateArray, false, &texels));
    CUarray array = new_array(context, pAllocateArray, &texels, 0);
    if (!array) return no_handle();
    CUresult status = memory_allocate(context, CPU_MEMORY_ARRAY, array->image.size, &array->image.base);
    if (status) {
        handle_free(HANDLE_ARRAY, array);
        return status;
    }
    *pHandle = array;
    return CUDA_SUCCESS;
}

CUresult cuArrayCreate(CUarray *pHandle, const CUDA_ARRAY_DESCRIPTOR *pAllocateArray) {
    RETURN_IF(enter());
    if (!pAllocateArray) return fail_null("pAllocateArray");
    CUDA_ARRAY3D_DESCRIPTOR descriptor = {
        .Width = pAllocateArray->Width,
        .Height = pAllocateArray->Height,
        .Format = pAllocateArray->Format,
        .NumChannels = pAllocateArray->NumChannels,
    };
    return cuArray3DCreate(pHandle, &descriptor);
}

CUresult cuArrayDestroy(CUarray hArray) {
    RETURN_IF(enter_to_work());
    RETURN_IF(capture_check_thread("cuArrayDestroy"));
    RETURN_IF(array_check(hArray));
    if (hArray->levels) return CUDA_SUCCESS; /* destroyed with its mipmapped array */
    memory_wait_for_users(hArray->context);
    if (!handle_kill(hArray)) return fail_handle("CUDA array", hArray, HANDLE_ARRAY);
    (void)cpu_memory_free(hArray->image.base);
    handle_free(HANDLE_ARRAY, hArray);
    return CUDA_SUCCESS;
}

static void forget_levels(CUmipmappedArray array) {
    for (unsigned i = 0; i < array->count; i++)
        if (array->level[i]) handle_free(HANDLE_ARRAY, array->level[i]);
    handle_free(HANDLE_MIPMAPPED_ARRAY, array);
}

/* 1 + floor(log2(the largest extent)), layers aside. */
static unsigned most_levels(const CUDA_ARRAY3D_DESCRIPTOR *d) {
    size_t largest = d->Width > d->Height ? d->Width : d->Height;
    if (shape_of(d) == SHAPE_3D && d->Depth > largest) largest = d->Depth;
    return 64 - (unsigned)__builtin_clzll(largest);
}

CUresult array_make_levels(CUcontext context, const CUDA_ARRAY3D_DESCRIPTOR *descriptor, unsigned levels,
                           CUmipmappedArray *made) {
    struct cpu_texels texels;
    RETURN_IF(check_descriptor(context->device, descriptor, true, &texels));
    CUmipmappedArray array = handle_new(HANDLE_MIPMAPPED_ARRAY, sizeof *array);
    if (!array) return no_handle();
    unsigned most = most_levels(descriptor);
    uint64_t size = 0;
    CUresult status = CUDA_SUCCESS;
    array->context = context;
    array->descriptor = *descriptor;
    array->count = levels < 1 ? 1 : levels > most ? most : levels;
    for (unsigned i = 0; i < array->count && !status; i++) {
        CUarray level = array->level[i] = new_array(context, descriptor, &texels, i);
        if (!level) {
            status = no_handle();
            break;
        }
        level->levels = array;
        level->image.base = size; /* its place, for now */
        size += (level->image.size + 511) & ~(uint64_t)511;
    }
    if (!status) status = memory_allocate(context, CPU_MEMORY_ARRAY, size, &array->base);
    if (status) {
        forget_levels(array);
        return status;
    }
    for (unsigned i = 0; i < array->count; i++) array->level[i]->image.base += array->base;
    *made = array;
    return CUDA_SUCCESS;
}

void array_free_levels(CUmipmappedArray array) {
    (void)handle_kill(array);
    (void)cpu_memory_free(array->base);
    forget_levels(array);
}

CUarray array_make_layer(CUmipmappedArray whole, unsigned level, unsigned layer) {
    CUarray array = handle_make(HANDLE_ARRAY, sizeof *array);
    if (!array) return NULL;
    array->context = whole->context;
    array->texel = whole->level[level]->texel;
    array->levels = whole;
    array->descriptor = whole->level[level]->descriptor;
    array->descriptor.Depth = 0;
    array->descriptor.Flags &= ~(unsigned)(CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP);
    array->image = whole->level[level]->image;
    array->image.base += layer * array->image.slice;
    array->image.layers = 1;
    array->image.size = array->image.slice;
    handle_publish(array);
    return array;
}

void array_free_layer(CUarray layer) {
    (void)handle_kill(layer);
    handle_free(HANDLE_ARRAY, layer);
}

CUresult cuMipmappedArrayCreate(CUmipmappedArray *pHandle, const CUDA_ARRAY3D_DESCRIPTOR *pMipmappedArrayDesc,
                                unsigned int numMipmapLevels) {
    CUcontext context;
    RETURN_IF(enter_create("cuMipmappedArrayCreate", pHandle, pMipmappedArrayDesc, &context));
    return array_make_levels(context, pMipmappedArrayDesc, numMipmapLevels, pHandle);
}

CUresult cuMipmappedArrayGetLevel(CUarray *pLevelArray, CUmipmappedArray hMipmappedArray, unsigned int level) {
    RETURN_IF(enter());
    if (!pLevelArray) return fail_null("pLevelArray");
    RETURN_IF(mipmapped_array_check(hMipmappedArray));
    if (level >= hMipmappedArray->count)
        return fail(CUDA_ERROR_INVALID_VALUE, "there is no level %u: the array has %u, counted from 0.", level,
                    hMipmappedArray->count);
    *pLevelArray = hMipmappedArray->level[level];
    return CUDA_SUCCESS;
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray hMipmappedArray) {
    RETURN_IF(enter_to_work());
    RETURN_IF(capture_check_thread("cuMipmappedArrayDestroy"));
    RETURN_IF(mipmapped_array_check(hMipmappedArray));
    if (hMipmappedArray->is_lent)
        return fail(CUDA_ERROR_INVALID_VALUE,
                    "the array is that of a graphics resource, with which it goes (cuGraphicsUnregisterResource).");
    memory_wait_for_users(hMipmappedArray->context);
    if (!handle_kill(hMipmappedArray))
        return fail_handle("mipmapped CUDA array", hMipmappedArray, HANDLE_MIPMAPPED_ARRAY);
    (void)cpu_memory_free(hMipmappedArray->base);
    forget_levels(hMipmappedArray);
    return CUDA_SUCCESS;
}

static void forget_array(void *object, void *context) {
    CUarray array = object;
    if (array->context == context && !array->levels && handle_kill(array)) handle_free(HANDLE_ARRAY, array);
}

static void forget_mipmapped(void *object, void *context) {
    CUmipmappedArray array = object;
    if (array->context == context && handle_kill(array)) forget_levels(array);
}

void arrays_context_destroyed(CUcontext context) {
    handle_each(HANDLE_MIPMAPPED_ARRAY, forget_mipmapped, context);
    handle_each(HANDLE_ARRAY, forget_array, context);
}

/* ---- what arrays are ---------------------------------------------------------------------------------- */

CUresult cuArray3DGetDescriptor(CUDA_ARRAY3D_DESCRIPTOR *pArrayDescriptor, CUarray hArray) {
    RETURN_IF(enter());
    if (!pArrayDescriptor) return fail_null("pArrayDescriptor");
    RETURN_IF(array_check(hArray));
    *pArrayDescriptor = hArray->descriptor;
    return CUDA_SUCCESS;
}

CUresult cuArrayGetDescriptor(CUDA_ARRAY_DESCRIPTOR *pArrayDescriptor, CUarray hArray) {
    RETURN_IF(enter());
    if (!pArrayDescriptor) return fail_null("pArrayDescriptor");
    RETURN_IF(array_check(hArray));
    *pArrayDescriptor = (CUDA_ARRAY_DESCRIPTOR){hArray->descriptor.Width, hArray->descriptor.Height,
                                                hArray->descriptor.Format, hArray->descriptor.NumChannels};
    return CUDA_SUCCESS;
}

/* Only video formats have planes, and the CPU device has no video formats. */
CUresult cuArrayGetPlane(CUarray *pPlaneArray, CUarray hArray, unsigned int planeIdx) {
    RETURN_IF(enter());
    if (!pPlaneArray) return fail_null("pPlaneArray");
    RETURN_IF(array_check(hArray));
    return fail(CUDA_ERROR_INVALID_VALUE, "the array's format, 0x%x, has no planes, so it has no plane %u.",
                (unsigned)hArray->descriptor.Format, planeIdx);
}

static CUresult not_sparse(void) {
    return fail(CUDA_ERROR_INVALID_VALUE, "the array was not made with CUDA_ARRAY3D_SPARSE.");
}

static CUresult not_deferred(void) {
    return fail(CUDA_ERROR_INVALID_VALUE, "the array was not made with CUDA_ARRAY3D_DEFERRED_MAPPING.");
}

CUresult cuArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES *sparseProperties, CUarray array) {
    RETURN_IF(enter());
    if (!sparseProperties) return fail_null("sparseProperties");
    RETURN_IF(array_check(array));
    return not_sparse();
}

CUresult cuMipmappedArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES *sparseProperties, CUmipmappedArray mipmap) {
    RETURN_IF(enter());
    if (!sparseProperties) return fail_null("sparseProperties");
    RETURN_IF(mipmapped_array_check(mipmap));
    return not_sparse();
}

CUresult cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *memoryRequirements, CUarray array,
                                      CUdevice device) {
    struct device *found;
    RETURN_IF(device_get(device, &found));
    if (!memoryRequirements) return fail_null("memoryRequirements");
    RETURN_IF(array_check(array));
    return not_deferred();
}

CUresult cuMipmappedArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *memoryRequirements,
                                               CUmipmappedArray mipmap, CUdevice device) {
    struct device *found;
    RETURN_IF(device_get(device, &found));
    if (!memoryRequirements) return fail_null("memoryRequirements");
    RETURN_IF(mipmapped_array_check(mipmap));
    return not_deferred();
}

const struct entry array_entries[] = {
    ENTRY_V2(cuArrayCreate),
    ENTRY_V2(cuArray3DCreate),
    ENTRY_V2(cuArrayGetDescriptor),
    ENTRY_V2(cuArray3DGetDescriptor),
    ENTRY(cuArrayDestroy),
    ENTRY(cuArrayGetPlane),
    ENTRY(cuArrayGetSparseProperties),
    ENTRY(cuArrayGetMemoryRequirements),
    ENTRY(cuMipmappedArrayCreate),
    ENTRY(cuMipmappedArrayGetLevel),
    ENTRY(cuMipmappedArrayDestroy),
    ENTRY(cuMipmappedArrayGetSparseProperties),
    ENTRY(cuMipmappedArrayGetMemoryRequirements),
    {NULL, NULL, NULL},
};
