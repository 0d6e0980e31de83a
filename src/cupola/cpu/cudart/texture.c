/* Texture and surface objects (CUDA Runtime API, "Texture Object Management", "Surface Object Management"). The runtime
 * has other descriptors of resources and samplers than the driver, and the same of views. */
#include "cudart.h"

static CUresult resource_of(const struct cudaResourceDesc *r, CUDA_RESOURCE_DESC *resource) {
    CUarray_format format;
    unsigned channels;
    if (!r) return fail_null("pResDesc");
    *resource = (CUDA_RESOURCE_DESC){.resType = (CUresourcetype)r->resType, .flags = r->flags};
    switch ((int)r->resType) {
        case cudaResourceTypeArray: resource->res.array.hArray = (CUarray)r->res.array.array; break;
        case cudaResourceTypeMipmappedArray:
            resource->res.mipmap.hMipmappedArray = (CUmipmappedArray)r->res.mipmap.mipmap;
            break;
        case cudaResourceTypeLinear:
            RETURN_IF(format_of_channels(&r->res.linear.desc, &format, &channels));
            resource->res.linear.devPtr = (CUdeviceptr)r->res.linear.devPtr;
            resource->res.linear.format = format;
            resource->res.linear.numChannels = channels;
            resource->res.linear.sizeInBytes = r->res.linear.sizeInBytes;
            break;
        case cudaResourceTypePitch2D:
            RETURN_IF(format_of_channels(&r->res.pitch2D.desc, &format, &channels));
            resource->res.pitch2D.devPtr = (CUdeviceptr)r->res.pitch2D.devPtr;
            resource->res.pitch2D.format = format;
            resource->res.pitch2D.numChannels = channels;
            resource->res.pitch2D.width = r->res.pitch2D.width;
            resource->res.pitch2D.height = r->res.pitch2D.height;
            resource->res.pitch2D.pitchInBytes = r->res.pitch2D.pitchInBytes;
            break;
        default: break; /* the driver refuses it */
    }
    return CUDA_SUCCESS;
}

static void resource_to_runtime(const CUDA_RESOURCE_DESC *resource, struct cudaResourceDesc *r) {
    *r = (struct cudaResourceDesc){.resType = (enum cudaResourceType)resource->resType, .flags = resource->flags};
    switch ((int)resource->resType) {
        case CU_RESOURCE_TYPE_ARRAY: r->res.array.array = (cudaArray_t)resource->res.array.hArray; break;
        case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
            r->res.mipmap.mipmap = (cudaMipmappedArray_t)resource->res.mipmap.hMipmappedArray;
            break;
        case CU_RESOURCE_TYPE_LINEAR:
            r->res.linear.devPtr = (void *)resource->res.linear.devPtr;
            r->res.linear.desc = channels_of_format(resource->res.linear.format, resource->res.linear.numChannels);
            r->res.linear.sizeInBytes = resource->res.linear.sizeInBytes;
            break;
        default:
            r->res.pitch2D.devPtr = (void *)resource->res.pitch2D.devPtr;
            r->res.pitch2D.desc = channels_of_format(resource->res.pitch2D.format, resource->res.pitch2D.numChannels);
            r->res.pitch2D.width = resource->res.pitch2D.width;
            r->res.pitch2D.height = resource->res.pitch2D.height;
            r->res.pitch2D.pitchInBytes = resource->res.pitch2D.pitchInBytes;
            break;
    }
}

static CUresult sampler_of(const struct cudaTextureDesc *t, CUDA_TEXTURE_DESC *sampler) {
    if (!t) return fail_null("pTexDesc");
    if (t->readMode != cudaReadModeElementType && t->readMode != cudaReadModeNormalizedFloat)
        return fail(CUDA_ERROR_INVALID_VALUE, "%d is not a cudaTextureReadMode", (int)t->readMode);
    *sampler = (CUDA_TEXTURE_DESC){
        .filterMode = (CUfilter_mode)t->filterMode,
        .flags = (t->readMode == cudaReadModeElementType ? CU_TRSF_READ_AS_INTEGER : 0u) |
                 (t->normalizedCoords ? CU_TRSF_NORMALIZED_COORDINATES : 0u) | (t->sRGB ? CU_TRSF_SRGB : 0u) |
                 (t->disableTrilinearOptimization ? CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION : 0u) |
                 (t->seamlessCubemap ? CU_TRSF_SEAMLESS_CUBEMAP : 0u),
        .maxAnisotropy = t->maxAnisotropy,
        .mipmapFilterMode = (CUfilter_mode)t->mipmapFilterMode,
        .mipmapLevelBias = t->mipmapLevelBias,
        .minMipmapLevelClamp = t->minMipmapLevelClamp,
        .maxMipmapLevelClamp = t->maxMipmapLevelClamp,
    };
    for (int i = 0; i < 3; i++) sampler->addressMode[i] = (CUaddress_mode)t->addressMode[i];
    memcpy(sampler->borderColor, t->borderColor, sizeof sampler->borderColor);
    return CUDA_SUCCESS;
}

static void sampler_to_runtime(const CUDA_TEXTURE_DESC *sampler, struct cudaTextureDesc *t) {
    *t = (struct cudaTextureDesc){
        .filterMode = (enum cudaTextureFilterMode)sampler->filterMode,
        .readMode = sampler->flags & CU_TRSF_READ_AS_INTEGER ? cudaReadModeElementType : cudaReadModeNormalizedFloat,
        .sRGB = !!(sampler->flags & CU_TRSF_SRGB),
        .normalizedCoords = !!(sampler->flags & CU_TRSF_NORMALIZED_COORDINATES),
        .maxAnisotropy = sampler->maxAnisotropy,
        .mipmapFilterMode = (enum cudaTextureFilterMode)sampler->mipmapFilterMode,
        .mipmapLevelBias = sampler->mipmapLevelBias,
        .minMipmapLevelClamp = sampler->minMipmapLevelClamp,
        .maxMipmapLevelClamp = sampler->maxMipmapLevelClamp,
        .disableTrilinearOptimization = !!(sampler->flags & CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION),
        .seamlessCubemap = !!(sampler->flags & CU_TRSF_SEAMLESS_CUBEMAP),
    };
    for (int i = 0; i < 3; i++) t->addressMode[i] = (enum cudaTextureAddressMode)sampler->addressMode[i];
    memcpy(t->borderColor, sampler->borderColor, sizeof t->borderColor);
}

static CUresult create_texture(cudaTextureObject_t *object, const struct cudaResourceDesc *r,
                               const struct cudaTextureDesc *t, const struct cudaResourceViewDesc *view) {
    CUDA_RESOURCE_DESC resource;
    CUDA_TEXTURE_DESC sampler;
    RETURN_IF(resource_of(r, &resource));
    RETURN_IF(sampler_of(t, &sampler));
    return cuTexObjectCreate(object, &resource, &sampler, (const CUDA_RESOURCE_VIEW_DESC *)view);
}

static CUresult create_surface(cudaSurfaceObject_t *object, const struct cudaResourceDesc *r) {
    CUDA_RESOURCE_DESC resource;
    RETURN_IF(resource_of(r, &resource));
    return cuSurfObjectCreate(object, &resource);
}

static CUresult texture_resource(struct cudaResourceDesc *r, cudaTextureObject_t object) {
    CUDA_RESOURCE_DESC resource;
    if (!r) return fail_null("pResDesc");
    RETURN_IF(cuTexObjectGetResourceDesc(&resource, object));
    resource_to_runtime(&resource, r);
    return CUDA_SUCCESS;
}

static CUresult surface_resource(struct cudaResourceDesc *r, cudaSurfaceObject_t object) {
    CUDA_RESOURCE_DESC resource;
    if (!r) return fail_null("pResDesc");
    RETURN_IF(cuSurfObjectGetResourceDesc(&resource, object));
    resource_to_runtime(&resource, r);
    return CUDA_SUCCESS;
}

static CUresult texture_sampler(struct cudaTextureDesc *t, cudaTextureObject_t object) {
    CUDA_TEXTURE_DESC sampler;
    if (!t) return fail_null("pTexDesc");
    RETURN_IF(cuTexObjectGetTextureDesc(&sampler, object));
    sampler_to_runtime(&sampler, t);
    return CUDA_SUCCESS;
}

RUNTIME(cudaCreateTextureObject,
        (cudaTextureObject_t *pTexObject, const struct cudaResourceDesc *pResDesc,
         const struct cudaTextureDesc *pTexDesc, const struct cudaResourceViewDesc *pResViewDesc),
        create_texture(pTexObject, pResDesc, pTexDesc, pResViewDesc))
RUNTIME(cudaDestroyTextureObject, (cudaTextureObject_t texObject), cuTexObjectDestroy(texObject))
RUNTIME(cudaGetTextureObjectResourceDesc, (struct cudaResourceDesc *pResDesc, cudaTextureObject_t texObject),
        texture_resource(pResDesc, texObject))
RUNTIME(cudaGetTextureObjectTextureDesc, (struct cudaTextureDesc *pTexDesc, cudaTextureObject_t texObject),
        texture_sampler(pTexDesc, texObject))
RUNTIME(cudaGetTextureObjectResourceViewDesc,
        (struct cudaResourceViewDesc *pResViewDesc, cudaTextureObject_t texObject),
        cuTexObjectGetResourceViewDesc((CUDA_RESOURCE_VIEW_DESC *)pResViewDesc, texObject))
RUNTIME(cudaCreateSurfaceObject, (cudaSurfaceObject_t *pSurfObject, const struct cudaResourceDesc *pResDesc),
        create_surface(pSurfObject, pResDesc))
RUNTIME(cudaDestroySurfaceObject, (cudaSurfaceObject_t surfObject), cuSurfObjectDestroy(surfObject))
RUNTIME(cudaGetSurfaceObjectResourceDesc, (struct cudaResourceDesc *pResDesc, cudaSurfaceObject_t surfObject),
        surface_resource(pResDesc, surfObject))

const struct entry runtime_texture_entries[] = {
    RUNTIME_ENTRY(cudaCreateTextureObject),
    RUNTIME_ENTRY(cudaDestroyTextureObject),
    RUNTIME_ENTRY(cudaGetTextureObjectResourceDesc),
    RUNTIME_ENTRY(cudaGetTextureObjectTextureDesc),
    RUNTIME_ENTRY(cudaGetTextureObjectResourceViewDesc),
    RUNTIME_ENTRY(cudaCreateSurfaceObject),
    RUNTIME_ENTRY(cudaDestroySurfaceObject),
    RUNTIME_ENTRY(cudaGetSurfaceObjectResourceDesc),
    {NULL, NULL, NULL},
};
