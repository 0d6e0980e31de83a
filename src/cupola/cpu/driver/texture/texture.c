/* Texture and surface objects (CUDA Driver API, "Texture Object Management", "Surface Object Management"): their
 * checks, and the registry in which kernels look them up. */
#include "engine/above.h"
#include "texture.h"

/* ---- the registry ------------------------------------------------------------------------------------- */

const struct cpu_texture *cpu_texture_find(uint64_t object) {
    const struct texture *texture = (const void *)object;
    return handle_is_live(texture, HANDLE_TEXTURE) ? &texture->texture : NULL;
}

const struct cpu_texture *cpu_surface_find(uint64_t object) {
    const struct texture *surface = (const void *)object;
    return handle_is_live(surface, HANDLE_SURFACE) ? &surface->texture : NULL;
}

static void forget_texture(void *object, void *context) {
    struct texture *texture = object;
    if (texture->context == context && handle_kill(texture)) handle_free(HANDLE_TEXTURE, texture);
}

static void forget_surface(void *object, void *context) {
    struct texture *surface = object;
    if (surface->context == context && handle_kill(surface)) handle_free(HANDLE_SURFACE, surface);
}

void textures_context_destroyed(CUcontext context) {
    handle_each(HANDLE_TEXTURE, forget_texture, context);
    handle_each(HANDLE_SURFACE, forget_surface, context);
}

/* ---- resources ---------------------------------------------------------------------------------------- */

static int limit(CUcontext context, CUdevice_attribute attribute) {
    return device_attribute(context->device, attribute);
}

/* Textures of no texel need no memory: all that is read of them is zero. */
static CUresult check_texture_address(CUcontext context, uint64_t address, size_t size) {
    uint64_t alignment = (uint64_t)limit(context, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT);
    if (!address) return fail_null("devPtr");
    if (address % alignment)
        return fail(CUDA_ERROR_INVALID_VALUE,
                    "devPtr, 0x%llx, must be a multiple of %llu, "
                    "CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT.",
                    (unsigned long long)address, (unsigned long long)alignment);
    return size ? memory_check(address, size, RANGE_DEVICE, "the texture's memory", NULL) : CUDA_SUCCESS;
}

/* Memory has the eight basic formats, and 10-10-10-2. */
static CUresult memory_texel(CUarray_format format, unsigned channels, struct cpu_texels *texels) {
    RETURN_IF(texel_check(format, channels, texels));
    if (texel_is_integer(texels->format) || texels->format == CU_AD_FORMAT_HALF ||
        texels->format == CU_AD_FORMAT_FLOAT || texels->format == CU_AD_FORMAT_UNORM_INT_101010_2)
        return CUDA_SUCCESS;
    if (texels->block > 1)
        return fail(CUDA_ERROR_INVALID_VALUE, "format 0x%x is for arrays: memory has no blocks of texels.",
                    (unsigned)format);
    return fail(CUDA_ERROR_INVALID_VALUE,
                "format 0x%x is for arrays; in memory, texels are integers, half or float: read integers of 8 or 16 "
                "bits without CU_TRSF_READ_AS_INTEGER instead, which makes floats of them.",
                (unsigned)format);
}

static CUresult linear(CUcontext context, const CUDA_RESOURCE_DESC *r, struct cpu_texels *texels) {
    RETURN_IF(memory_texel(r->res.linear.format, r->res.linear.numChannels, texels));
    size_t width = r->res.linear.sizeInBytes / texels->bytes, most = texel_most_linear(texels->bytes);
    if (r->res.linear.sizeInBytes > most * texels->bytes)
        return fail(CUDA_ERROR_INVALID_VALUE, "sizeInBytes is %zu; there may be %zu texels of %u bytes at most.",
                    r->res.linear.sizeInBytes, most, texels->bytes);
    uint64_t bytes = width * texels->bytes;
    RETURN_IF(check_texture_address(context, r->res.linear.devPtr, bytes));
    texels->linear = true;
    texels->dimensions = 1;
    texels->level_count = 1;
    texels->levels[0] = (struct cpu_image){r->res.linear.devPtr, bytes, (uint32_t)width, 1, 1, 1, bytes, bytes};
    return CUDA_SUCCESS;
}

/* Rows may overlap. */
static CUresult pitched(CUcontext context, const CUDA_RESOURCE_DESC *r, struct cpu_texels *texels) {
    size_t width = r->res.pitch2D.width, height = r->res.pitch2D.height, pitch = r->res.pitch2D.pitchInBytes;
    size_t widest = (size_t)limit(context, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH);
    size_t highest = (size_t)limit(context, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT);
    size_t longest = (size_t)limit(context, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_PITCH);
    size_t unit = (size_t)limit(context, CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT);
    RETURN_IF(memory_texel(r->res.pitch2D.format, r->res.pitch2D.numChannels, texels));
    if (width > widest || height > highest)
        return fail(CUDA_ERROR_INVALID_VALUE, "the texture has %zu x %zu texels; there may be %zu x %zu at most.",
                    width, height, widest, highest);
    if (pitch % unit || pitch > longest)
        return fail(CUDA_ERROR_INVALID_VALUE, "pitchInBytes is %zu; it must be a multiple of %zu, %zu at most.", pitch,
                    unit, longest);
    uint64_t size = width && height ? (height - 1) * pitch + width * texels->bytes : 0;
    RETURN_IF(check_texture_address(context, r->res.pitch2D.devPtr, size));
    texels->dimensions = 2;
    texels->level_count = 1;
    texels->levels[0] =
        (struct cpu_image){r->res.pitch2D.devPtr, size, (uint32_t)width, (uint32_t)height, 1, 1, pitch, pitch * height};
    return CUDA_SUCCESS;
}

static CUresult describe_resource(CUcontext context, const CUDA_RESOURCE_DESC *r, struct cpu_texels *texels) {
    if (r->flags) return fail(CUDA_ERROR_INVALID_VALUE, "flags of the resource must be 0, not %#x.", r->flags);
    switch ((int)r->resType) {
        case CU_RESOURCE_TYPE_ARRAY: {
            CUarray array = r->res.array.hArray;
            if (!array) return fail_null("hArray");
            RETURN_IF(array_check(array));
            array_describe(&array->descriptor, texels);
            texels->level_count = 1;
            texels->levels[0] = array->image;
            return CUDA_SUCCESS;
        }
        case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY: {
            CUmipmappedArray array = r->res.mipmap.hMipmappedArray;
            if (!array) return fail_null("hMipmappedArray");
            RETURN_IF(mipmapped_array_check(array));
            array_describe(&array->descriptor, texels);
            texels->level_count = array->count;
            for (unsigned i = 0; i < array->count; i++) texels->levels[i] = array->level[i]->image;
            return CUDA_SUCCESS;
        }
        case CU_RESOURCE_TYPE_LINEAR: return linear(context, r, texels);
        case CU_RESOURCE_TYPE_PITCH2D: return pitched(context, r, texels);
        default:
            return fail(CUDA_ERROR_INVALID_VALUE,
                        "resType is %d; it must be ARRAY, MIPMAPPED_ARRAY, LINEAR or PITCH2D.", (int)r->resType);
    }
}

/* ---- views -------------------------------------------------------------------------------------------- */

/* A block is two or four integers of 32 bits in the array. */
static CUresult view_blocks(const CUDA_RESOURCE_VIEW_DESC *v, struct cpu_texels *texels) {
    static const struct {
        CUarray_format format;
        unsigned channels;
    } blocks[] = {{CU_AD_FORMAT_BC1_UNORM, 4}, {CU_AD_FORMAT_BC2_UNORM, 4}, {CU_AD_FORMAT_BC3_UNORM, 4},
                  {CU_AD_FORMAT_BC4_UNORM, 1}, {CU_AD_FORMAT_BC4_SNORM, 1}, {CU_AD_FORMAT_BC5_UNORM, 2},
                  {CU_AD_FORMAT_BC5_SNORM, 2}, {CU_AD_FORMAT_BC6H_UF16, 3}, {CU_AD_FORMAT_BC6H_SF16, 3},
                  {CU_AD_FORMAT_BC7_UNORM, 4}};
    const uint32_t index = (uint32_t)v->format - CU_RES_VIEW_FORMAT_UNSIGNED_BC1;
    const uint32_t bytes = texels->bytes, format = texels->format;
    RETURN_IF(texel_check(blocks[index].format, blocks[index].channels, texels));
    if (format == CU_AD_FORMAT_UNSIGNED_INT32 && texels->bytes == bytes) return CUDA_SUCCESS;
    return fail(CUDA_ERROR_INVALID_VALUE,
                "the view has blocks of %u bytes: for format %d the array must have %u channels of "
                "CU_AD_FORMAT_UNSIGNED_INT32, one texel a block.",
                texels->bytes, (int)v->format, texels->bytes / 4);
}

/* CU_RES_VIEW_FORMAT_UINT_1X8 and the 23 that follow: eight formats of one, two and four channels. */
static CUresult view_format(const CUDA_RESOURCE_VIEW_DESC *v, struct cpu_texels *texels) {
    static const CUarray_format formats[] = {
        CU_AD_FORMAT_UNSIGNED_INT8,  CU_AD_FORMAT_SIGNED_INT8,  CU_AD_FORMAT_UNSIGNED_INT16, CU_AD_FORMAT_SIGNED_INT16,
        CU_AD_FORMAT_UNSIGNED_INT32, CU_AD_FORMAT_SIGNED_INT32, CU_AD_FORMAT_HALF,           CU_AD_FORMAT_FLOAT};
    uint32_t bytes = texels->bytes, index = (uint32_t)v->format - CU_RES_VIEW_FORMAT_UINT_1X8;
    if (texels->block > 1)
        return fail(CUDA_ERROR_INVALID_VALUE, "an array of format 0x%x, which is compressed, has no views.",
                    texels->format);
    if (v->format == CU_RES_VIEW_FORMAT_NONE)
        return fail(CUDA_ERROR_INVALID_VALUE, "the format of the view is NONE; give it one with texels of %u bytes.",
                    bytes);
    if (v->format >= CU_RES_VIEW_FORMAT_UNSIGNED_BC1 && v->format <= CU_RES_VIEW_FORMAT_UNSIGNED_BC7)
        return view_blocks(v, texels);
    if (index / 3 >= sizeof formats / sizeof *formats)
        return fail(CUDA_ERROR_INVALID_VALUE, "%d is not a CUresourceViewFormat.", (int)v->format);
    RETURN_IF(texel_check(formats[index / 3], 1u << index % 3, texels));
    if (texels->bytes != bytes)
        return fail(CUDA_ERROR_INVALID_VALUE,
                    "the view has texels of %u bytes, the array of %u; they must be the same.", texels->bytes, bytes);
    return CUDA_SUCCESS;
}

static CUresult apply_view(const CUDA_RESOURCE_DESC *r, const CUDA_RESOURCE_VIEW_DESC *v, struct cpu_texels *texels) {
    const struct cpu_image *whole = &texels->levels[0];
    RETURN_IF(view_format(v, texels));
    const CUDA_ARRAY3D_DESCRIPTOR *d = r->resType == CU_RESOURCE_TYPE_ARRAY
                                           ? &r->res.array.hArray->descriptor
                                           : &r->res.mipmap.hMipmappedArray->descriptor;
    if (v->width != texels->block * d->Width || v->height != texels->block * d->Height || v->depth != d->Depth)
        return fail(CUDA_ERROR_INVALID_VALUE, "the view is of %zu x %zu x %zu, the array of %zu x %zu x %zu; %s.",
                    v->width, v->height, v->depth, d->Width, d->Height, d->Depth,
                    texels->block > 1 ? "a view of blocks is four times as wide and high" : "they must be the same");
    /* What a GPU takes of levels and layers beyond the last one is cut off here. */
    const bool mipmapped = r->resType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
    if (v->firstMipmapLevel > v->lastMipmapLevel || v->firstMipmapLevel >= texels->level_count ||
        (!mipmapped && v->lastMipmapLevel))
        return fail(CUDA_ERROR_INVALID_VALUE, "the view has levels %u to %u; the array has 0 to %u.",
                    v->firstMipmapLevel, v->lastMipmapLevel, texels->level_count - 1);
    const uint32_t count = texels->layered ? whole->layers : 1, unit = texels->cubemap ? 6 : 1;
    if (v->firstLayer > v->lastLayer || v->firstLayer >= count || (!texels->layered && v->lastLayer))
        return fail(CUDA_ERROR_INVALID_VALUE, "the view has layers %u to %u; the array has 0 to %u.", v->firstLayer,
                    v->lastLayer, count - 1);
    uint32_t layers = (v->lastLayer < count ? v->lastLayer + 1 : count) - v->firstLayer;
    if (texels->layered && (layers % unit || v->firstLayer % unit))
        return fail(CUDA_ERROR_INVALID_VALUE, "the view of a cubemap has layers %u to %u, which are not whole cubes.",
                    v->firstLayer, v->lastLayer);
    const uint32_t last = v->lastMipmapLevel < texels->level_count ? v->lastMipmapLevel : texels->level_count - 1;
    texels->level_count = last - v->firstMipmapLevel + 1;
    for (uint32_t i = 0; i < texels->level_count; i++) {
        struct cpu_image image = texels->levels[i + v->firstMipmapLevel];
        if (texels->layered) {
            image.base += v->firstLayer * image.slice;
            image.layers = layers;
            image.size = image.slice * layers;
        }
        image.width *= texels->block;
        image.height *= texels->block;
        texels->levels[i] = image;
    }
    return CUDA_SUCCESS;
}

/* ---- samplers ----------------------------------------------------------------------------------------- */

static CUresult check_filter(CUfilter_mode mode, const char *name) {
    if (mode == CU_TR_FILTER_MODE_POINT || mode == CU_TR_FILTER_MODE_LINEAR) return CUDA_SUCCESS;
    return fail(CUDA_ERROR_INVALID_VALUE, "%s is %d; it must be POINT or LINEAR.", name, (int)mode);
}

static CUresult check_sampler(const CUDA_RESOURCE_DESC *r, const CUDA_TEXTURE_DESC *t,
                              const struct cpu_texels *texels) {
    const unsigned unused = 0x4 | 0x8; /* which drivers let pass */
    const unsigned known = CU_TRSF_READ_AS_INTEGER | CU_TRSF_NORMALIZED_COORDINATES | CU_TRSF_SRGB |
                           CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION | CU_TRSF_SEAMLESS_CUBEMAP | unused;
    if (t->flags & ~known)
        return fail(CUDA_ERROR_INVALID_VALUE, "flags of the texture has unknown bits: %#x.", t->flags & ~known);
    const uint32_t format = texels->format;
    if ((format == CU_AD_FORMAT_BC1_UNORM_SRGB || format == CU_AD_FORMAT_BC2_UNORM_SRGB ||
         format == CU_AD_FORMAT_BC3_UNORM_SRGB || format == CU_AD_FORMAT_BC7_UNORM_SRGB) &&
        !(t->flags & CU_TRSF_SRGB))
        return fail(CUDA_ERROR_INVALID_VALUE, "the texels of format 0x%x are sRGB: add CU_TRSF_SRGB to the flags.",
                    format);
    if (t->flags & CU_TRSF_SEAMLESS_CUBEMAP && !texels->cubemap)
        return fail(CUDA_ERROR_INVALID_VALUE, "CU_TRSF_SEAMLESS_CUBEMAP is for arrays made with CUDA_ARRAY3D_CUBEMAP.");
    for (uint32_t i = 0; i < texels->dimensions; i++)
        if ((unsigned)t->addressMode[i] > CU_TR_ADDRESS_MODE_BORDER)
            return fail(CUDA_ERROR_INVALID_VALUE, "addressMode[%u] is %d; it must be WRAP, CLAMP, MIRROR or BORDER.", i,
                        (int)t->addressMode[i]);
    if (r->resType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY && !(t->flags & CU_TRSF_NORMALIZED_COORDINATES))
        return fail(CUDA_ERROR_INVALID_VALUE,
                    "a texture of a mipmapped array has normalized coordinates: add CU_TRSF_NORMALIZED_COORDINATES.");
    RETURN_IF(check_filter(t->filterMode, "filterMode"));
    return check_filter(t->mipmapFilterMode, "mipmapFilterMode");
}

/* Coordinates that are not normalized can neither wrap nor be mirrored: such modes clamp. */
static uint32_t mode_that_applies(CUaddress_mode mode, unsigned flags) {
    bool repeats = mode == CU_TR_ADDRESS_MODE_WRAP || mode == CU_TR_ADDRESS_MODE_MIRROR;
    return repeats && !(flags & CU_TRSF_NORMALIZED_COORDINATES) ? CU_TR_ADDRESS_MODE_CLAMP : mode;
}

static void make_sampler(const CUDA_TEXTURE_DESC *t, struct cpu_sampler *sampler) {
    for (int i = 0; i < 3; i++) sampler->address_mode[i] = mode_that_applies(t->addressMode[i], t->flags);
    sampler->filter_mode = t->filterMode;
    sampler->mipmap_filter_mode = t->mipmapFilterMode;
    sampler->flags = t->flags;
    sampler->max_anisotropy = t->maxAnisotropy < 1 ? 1 : t->maxAnisotropy > 16 ? 16 : t->maxAnisotropy;
    sampler->mipmap_level_bias = t->mipmapLevelBias;
    sampler->min_mipmap_level_clamp = t->minMipmapLevelClamp;
    sampler->max_mipmap_level_clamp = t->maxMipmapLevelClamp;
    memcpy(sampler->border_color, t->borderColor, sizeof sampler->border_color);
}

/* ---- objects ------------------------------------------------------------------------------------------ */

static struct texture *object_new(enum handle_kind kind, CUcontext context, const CUDA_RESOURCE_DESC *resource,
                                  const struct cpu_texels *texels) {
    struct texture *object = handle_make(kind, sizeof *object);
    if (!object) return NULL;
    object->context = context;
    object->resource = *resource;
    object->texture.texels = *texels;
    handle_publish(object);
    return object;
}

static CUresult no_object(void) { return no_memory("another texture or surface object"); }

CUresult texture_make(CUcontext context, const CUDA_RESOURCE_DESC *resource, const CUDA_TEXTURE_DESC *sampler,
                      const CUDA_RESOURCE_VIEW_DESC *view, struct texture **made) {
    struct cpu_texels texels = {0};
    RETURN_IF(describe_resource(context, resource, &texels));
    const CUresourcetype type = resource->resType;
    const bool is_memory = type != CU_RESOURCE_TYPE_ARRAY && type != CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
    if (view && !is_memory) RETURN_IF(apply_view(resource, view, &texels)); /* memory has none, whatever is given */
    RETURN_IF(check_sampler(resource, sampler, &texels));
    struct texture *object = object_new(HANDLE_TEXTURE, context, resource, &texels);
    if (!object) return no_object();
    object->sampler = *sampler;
    object->has_view = view && !is_memory;
    if (object->has_view) object->view = *view;
    make_sampler(sampler, &object->texture.sampler);
    cpu_texture_prepare(&object->texture);
    *made = object;
    return CUDA_SUCCESS;
}

CUresult surface_make(CUcontext context, const CUDA_RESOURCE_DESC *resource, struct texture **made) {
    struct cpu_texels texels = {0};
    if (resource->resType != CU_RESOURCE_TYPE_ARRAY)
        return fail(CUDA_ERROR_INVALID_VALUE, "a surface is one of a CUDA array: resType is %d, not ARRAY.",
                    (int)resource->resType);
    RETURN_IF(describe_resource(context, resource, &texels));
    if (texels.block > 1)
        return fail(CUDA_ERROR_INVALID_VALUE,
                    "a surface cannot be one of an array of format 0x%x, which is compressed.", texels.format);
    *made = object_new(HANDLE_SURFACE, context, resource, &texels);
    return *made ? CUDA_SUCCESS : no_object();
}

static CUresult find(uint64_t object, enum handle_kind kind, struct texture **found) {
    const char *what = kind == HANDLE_TEXTURE ? "texture" : "surface";
    *found = (void *)object;
    if (handle_is_live(*found, kind)) return CUDA_SUCCESS;
    if (handle_was_live(*found, kind))
        return fail(CUDA_ERROR_INVALID_VALUE, "%s object 0x%llx has been destroyed.", what, (unsigned long long)object);
    return fail(CUDA_ERROR_INVALID_VALUE, "0x%llx is not a %s object.", (unsigned long long)object, what);
}

static CUresult destroy(uint64_t object, enum handle_kind kind) {
    struct texture *found;
    RETURN_IF(enter_to_work());
    if (!object) return CUDA_SUCCESS;
    RETURN_IF(find(object, kind, &found));
    if (!handle_kill(found)) return find(object, kind, &found);
    handle_free(kind, found);
    return CUDA_SUCCESS;
}

CUresult cuTexObjectCreate(CUtexObject *pTexObject, const CUDA_RESOURCE_DESC *pResDesc,
                           const CUDA_TEXTURE_DESC *pTexDesc, const CUDA_RESOURCE_VIEW_DESC *pResViewDesc) {
    CUcontext context;
    struct texture *made;
    RETURN_IF(enter_context(&context));
    if (!pTexObject) return fail_null("pTexObject");
    if (!pResDesc) return fail_null("pResDesc");
    if (!pTexDesc) return fail_null("pTexDesc");
    RETURN_IF(texture_make(context, pResDesc, pTexDesc, pResViewDesc, &made));
    *pTexObject = (CUtexObject)made;
    return CUDA_SUCCESS;
}

CUresult cuTexObjectDestroy(CUtexObject texObject) { return destroy(texObject, HANDLE_TEXTURE); }

CUresult cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC *pResDesc, CUtexObject texObject) {
    struct texture *found;
    RETURN_IF(enter());
    if (!pResDesc) return fail_null("pResDesc");
    RETURN_IF(find(texObject, HANDLE_TEXTURE, &found));
    *pResDesc = found->resource;
    return CUDA_SUCCESS;
}

CUresult cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC *pTexDesc, CUtexObject texObject) {
    struct texture *found;
    RETURN_IF(enter());
    if (!pTexDesc) return fail_null("pTexDesc");
    RETURN_IF(find(texObject, HANDLE_TEXTURE, &found));
    *pTexDesc = found->sampler;
    return CUDA_SUCCESS;
}

CUresult cuTexObjectGetResourceViewDesc(CUDA_RESOURCE_VIEW_DESC *pResViewDesc, CUtexObject texObject) {
    struct texture *found;
    RETURN_IF(enter());
    if (!pResViewDesc) return fail_null("pResViewDesc");
    RETURN_IF(find(texObject, HANDLE_TEXTURE, &found));
    if (!found->has_view) return fail(CUDA_ERROR_INVALID_VALUE, "the texture object was made without a view.");
    *pResViewDesc = found->view;
    return CUDA_SUCCESS;
}

CUresult cuSurfObjectCreate(CUsurfObject *pSurfObject, const CUDA_RESOURCE_DESC *pResDesc) {
    CUcontext context;
    struct texture *made;
    RETURN_IF(enter_context(&context));
    if (!pSurfObject) return fail_null("pSurfObject");
    if (!pResDesc) return fail_null("pResDesc");
    RETURN_IF(surface_make(context, pResDesc, &made));
    *pSurfObject = (CUsurfObject)made;
    return CUDA_SUCCESS;
}

CUresult cuSurfObjectDestroy(CUsurfObject surfObject) { return destroy(surfObject, HANDLE_SURFACE); }

CUresult cuSurfObjectGetResourceDesc(CUDA_RESOURCE_DESC *pResDesc, CUsurfObject surfObject) {
    struct texture *found;
    RETURN_IF(enter());
    if (!pResDesc) return fail_null("pResDesc");
    RETURN_IF(find(surfObject, HANDLE_SURFACE, &found));
    *pResDesc = found->resource;
    return CUDA_SUCCESS;
}

const struct entry texture_entries[] = {
    ENTRY(cuTexObjectCreate),
    ENTRY(cuTexObjectDestroy),
    ENTRY(cuTexObjectGetResourceDesc),
    ENTRY(cuTexObjectGetTextureDesc),
    ENTRY(cuTexObjectGetResourceViewDesc),
    ENTRY(cuSurfObjectCreate),
    ENTRY(cuSurfObjectDestroy),
    ENTRY(cuSurfObjectGetResourceDesc),
    {NULL, NULL, NULL},
};
