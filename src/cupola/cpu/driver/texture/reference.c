/* Texture and surface references, the predecessors of objects (CUDA Driver API, "Texture Reference Management",
 * "Surface Reference Management", deprecated).
 *
 * A reference stands for a variable of a module, `.global .texref` or `.surfref`. Kernels take from the variable's
 * memory the object to use, so binding a reference makes an object and writes it there; so does each change of a bound
 * one, after all work of the context that may still use the object before. Objects of references are not the program's
 * to destroy. */
#include "driver/module/module.h"
#include "texture.h"

#include <pthread.h>

struct reference {
    struct handle handle;
    CUcontext context;
    CUmodule module;        /* whose variable it is; NULL: made by cuTexRefCreate, for no kernel */
    uint64_t variable;      /* where kernels find the object */
    struct texture *object; /* NULL: not bound */
    bool is_bound;          /* to the resource */
    CUDA_RESOURCE_DESC resource;
    CUDA_TEXTURE_DESC sampler; /* this and the next two: of textures */
    CUarray_format format;
    int channels;
};

struct CUtexref_st {
    struct reference reference;
};
struct CUsurfref_st {
    struct reference reference;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* which references there are, and what they are bound to */

/* ---- life ------------------------------------------------------------------------------------------------------ */

static void set_object(struct reference *reference, enum handle_kind kind, struct texture *object) {
    uint64_t value = (uint64_t)object;
    if (reference->object || reference->variable) memory_wait_for_users(reference->context);
    if (reference->variable) memcpy((void *)reference->variable, &value, sizeof value);
    if (reference->object && handle_kill(reference->object)) handle_free(kind, reference->object);
    reference->object = object;
}

static struct reference *reference_new(enum handle_kind kind, CUcontext context, CUmodule module, uint64_t variable) {
    struct reference *reference = handle_make(kind, sizeof *reference);
    if (!reference) return NULL;
    reference->context = context;
    reference->module = module;
    reference->variable = variable;
    reference->format = CU_AD_FORMAT_FLOAT;
    reference->channels = 1;
    for (int i = 0; i < 3; i++) reference->sampler.addressMode[i] = CU_TR_ADDRESS_MODE_CLAMP;
    handle_publish(reference);
    return reference;
}

struct search {
    enum handle_kind kind;
    CUmodule module;
    CUcontext context;
    uint64_t variable;
    struct reference *found;
};

static void match(void *object, void *data) {
    struct reference *reference = object;
    struct search *search = data;
    if (reference->module == search->module && reference->variable == search->variable) search->found = reference;
}

static void forget(void *object, void *data) {
    struct reference *reference = object;
    const struct search *search = data;
    bool textures = search->kind == HANDLE_TEXTURE_REFERENCE;
    if (search->module ? reference->module != search->module : reference->context != search->context) return;
    reference->variable = 0; /* its memory goes, too, and nothing runs that reads it */
    if (reference->object && handle_kill(reference->object))
        handle_free(textures ? HANDLE_TEXTURE : HANDLE_SURFACE, reference->object);
    if (handle_kill(reference)) handle_free(search->kind, reference);
}

static void forget_all(CUmodule module, CUcontext context) {
    struct search textures = {HANDLE_TEXTURE_REFERENCE, module, context, 0, NULL};
    struct search surfaces = {HANDLE_SURFACE_REFERENCE, module, context, 0, NULL};
    pthread_mutex_lock(&lock);
    handle_each(HANDLE_TEXTURE_REFERENCE, forget, &textures);
    handle_each(HANDLE_SURFACE_REFERENCE, forget, &surfaces);
    pthread_mutex_unlock(&lock);
}

void references_module_released(CUmodule module) { forget_all(module, NULL); }
void references_context_destroyed(CUcontext context) { forget_all(NULL, context); }

/* The reference to a variable of a module; always the same. */
static CUresult of_module(CUmodule module, const char *name, enum handle_kind kind, struct reference **result) {
    bool textures = kind == HANDLE_TEXTURE_REFERENCE;
    uint64_t variable = 0;
    RETURN_IF(enter());
    if (!result) return fail_null(textures ? "pTexRef" : "pSurfRef");
    if (!handle_is_live(module, HANDLE_MODULE)) return fail_handle("module", module, HANDLE_MODULE);
    RETURN_IF(check_name(name));
    RETURN_IF(context_check(module->context));
    for (size_t i = 0; i < module->image->variable_count; i++)
        if (module->image->variables[i].reference == (textures ? REFERENCE_TEXTURE : REFERENCE_SURFACE) &&
            !strcmp(module->image->variables[i].name, name))
            variable = module->variables[i];
    if (!variable)
        return fail(CUDA_ERROR_NOT_FOUND,
                    "the module has no variable '%.200s' of type .%s: CUDA C++ 12 and newer has texture "
                    "and surface objects instead of references",
                    name, textures ? "texref" : "surfref");
    struct search search = {kind, module, NULL, variable, NULL};
    pthread_mutex_lock(&lock);
    handle_each(kind, match, &search);
    if (!search.found) search.found = reference_new(kind, module->context, module, variable);
    pthread_mutex_unlock(&lock);
    if (!search.found) return no_memory("another reference");
    *result = search.found;
    return CUDA_SUCCESS;
}

static CUresult check(struct reference *reference, enum handle_kind kind) {
    const char *what = kind == HANDLE_TEXTURE_REFERENCE ? "texture reference" : "surface reference";
    RETURN_IF(enter());
    if (!handle_is_live(reference, kind)) return fail_handle(what, reference, kind);
    return context_check(reference->context);
}

/* ---- binding --------------------------------------------------------------------------------------------------- */

/* Make a new object from what is set; if that fails, the last one stays. A texture of levels waits for
 * cuTexRefSetFlags to normalize its coordinates. */
static CUresult refresh(CUtexref texture) {
    struct reference *reference = &texture->reference;
    struct texture *object = NULL;
    CUresult status = CUDA_SUCCESS;
    bool waits = reference->resource.resType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY &&
                 !(reference->sampler.flags & CU_TRSF_NORMALIZED_COORDINATES);
    pthread_mutex_lock(&lock);
    if (reference->is_bound && !waits)
        status = texture_make(reference->context, &reference->resource, &reference->sampler, NULL, &object);
    if (!status) set_object(reference, HANDLE_TEXTURE, object);
    pthread_mutex_unlock(&lock);
    return status;
}

static CUresult bind(CUtexref texture, const CUDA_RESOURCE_DESC *resource) {
    struct reference *reference = &texture->reference;
    const CUDA_RESOURCE_DESC last = reference->resource;
    const bool was_bound = reference->is_bound;
    reference->is_bound = resource != NULL;
    if (resource) reference->resource = *resource;
    CUresult status = refresh(texture);
    if (!status) return CUDA_SUCCESS;
    reference->is_bound = was_bound;
    reference->resource = last;
    return status;
}

static CUresult check_texture(CUtexref texture) { return check(&texture->reference, HANDLE_TEXTURE_REFERENCE); }

static CUresult check_override(unsigned flags) {
    return flags & ~(unsigned)CU_TRSA_OVERRIDE_FORMAT
               ? fail(CUDA_ERROR_INVALID_VALUE, "Flags may be CU_TRSA_OVERRIDE_FORMAT, not %#x", flags)
               : CUDA_SUCCESS;
}

CUresult cuModuleGetTexRef(CUtexref *pTexRef, CUmodule hmod, const char *name) {
    return of_module(hmod, name, HANDLE_TEXTURE_REFERENCE, (struct reference **)pTexRef);
}

CUresult cuTexRefCreate(CUtexref *pTexRef) {
    CUcontext context;
    RETURN_IF(enter_context(&context));
    if (!pTexRef) return fail_null("pTexRef");
    *pTexRef = (CUtexref)reference_new(HANDLE_TEXTURE_REFERENCE, context, NULL, 0);
    return *pTexRef ? CUDA_SUCCESS : no_memory("another reference");
}

CUresult cuTexRefDestroy(CUtexref hTexRef) {
    RETURN_IF(check_texture(hTexRef));
    if (hTexRef->reference.module)
        return fail(CUDA_ERROR_INVALID_VALUE, "the texture reference belongs to a module, and is destroyed with it");
    RETURN_IF(bind(hTexRef, NULL));
    if (handle_kill(hTexRef)) handle_free(HANDLE_TEXTURE_REFERENCE, hTexRef);
    return CUDA_SUCCESS;
}

CUresult cuTexRefSetArray(CUtexref hTexRef, CUarray hArray, unsigned int Flags) {
    RETURN_IF(check_texture(hTexRef));
    RETURN_IF(check_override(Flags));
    RETURN_IF(array_check(hArray));
    hTexRef->reference.format = hArray->descriptor.Format;
    hTexRef->reference.channels = (int)hArray->descriptor.NumChannels;
    CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_ARRAY};
    resource.res.array.hArray = hArray;
    return bind(hTexRef, &resource);
}

CUresult cuTexRefSetMipmappedArray(CUtexref hTexRef, CUmipmappedArray hMipmappedArray, unsigned int Flags) {
    RETURN_IF(check_texture(hTexRef));
    RETURN_IF(check_override(Flags));
    RETURN_IF(mipmapped_array_check(hMipmappedArray));
    hTexRef->reference.format = hMipmappedArray->descriptor.Format;
    hTexRef->reference.channels = (int)hMipmappedArray->descriptor.NumChannels;
    CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY};
    resource.res.mipmap.hMipmappedArray = hMipmappedArray;
    return bind(hTexRef, &resource);
}

/* Textures begin at multiples of an alignment: the texture begins before the address, and the program adds the
 * offset. */
CUresult cuTexRefSetAddress(size_t *ByteOffset, CUtexref hTexRef, CUdeviceptr dptr, size_t bytes) {
    RETURN_IF(check_texture(hTexRef));
    if (!dptr) return bind(hTexRef, NULL);
    struct reference *reference = &hTexRef->reference;
    size_t alignment = (size_t)device_attribute(reference->context->device, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT);
    size_t offset = dptr % alignment;
    if (offset && !ByteOffset)
        return fail(CUDA_ERROR_INVALID_VALUE, "dptr, 0x%llx, is not a multiple of %zu, so ByteOffset may not be null",
                    (unsigned long long)dptr, alignment);
    CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_LINEAR};
    resource.res.linear.devPtr = dptr - offset;
    resource.res.linear.format = reference->format;
    resource.res.linear.numChannels = (unsigned)reference->channels;
    resource.res.linear.sizeInBytes = bytes + offset;
    RETURN_IF(bind(hTexRef, &resource));
    if (ByteOffset) *ByteOffset = offset;
    return CUDA_SUCCESS;
}

CUresult cuTexRefSetAddress2D(CUtexref hTexRef, const CUDA_ARRAY_DESCRIPTOR *desc, CUdeviceptr dptr, size_t Pitch) {
    RETURN_IF(check_texture(hTexRef));
    if (!dptr) return bind(hTexRef, NULL);
    if (!desc) return fail_null("desc");
    CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_PITCH2D};
    resource.res.pitch2D.devPtr = dptr;
    resource.res.pitch2D.format = desc->Format;
    resource.res.pitch2D.numChannels = desc->NumChannels;
    resource.res.pitch2D.width = desc->Width;
    resource.res.pitch2D.height = desc->Height;
    resource.res.pitch2D.pitchInBytes = Pitch;
    RETURN_IF(bind(hTexRef, &resource));
    hTexRef->reference.format = desc->Format;
    hTexRef->reference.channels = (int)desc->NumChannels;
    return CUDA_SUCCESS;
}

/* ---- what is set of a texture ---------------------------------------------------------------------------------- */

/* A memory texture is given its format before its address: it holds from the next address on. */
CUresult cuTexRefSetFormat(CUtexref hTexRef, CUarray_format fmt, int NumPackedComponents) {
    struct cpu_texels texels;
    RETURN_IF(check_texture(hTexRef));
    RETURN_IF(texel_check(fmt, (unsigned)NumPackedComponents, &texels));
    hTexRef->reference.format = fmt;
    hTexRef->reference.channels = NumPackedComponents;
    return CUDA_SUCCESS;
}

static CUresult check_dimension(int dim) {
    return dim >= 0 && dim < 3 ? CUDA_SUCCESS : fail(CUDA_ERROR_INVALID_VALUE, "dim is %d; it must be 0, 1 or 2", dim);
}

CUresult cuTexRefSetAddressMode(CUtexref hTexRef, int dim, CUaddress_mode am) {
    RETURN_IF(check_texture(hTexRef));
    RETURN_IF(check_dimension(dim));
    if ((unsigned)am > CU_TR_ADDRESS_MODE_BORDER)
        return fail(CUDA_ERROR_INVALID_VALUE, "%d is not a CUaddress_mode", (int)am);
    hTexRef->reference.sampler.addressMode[dim] = am;
    return refresh(hTexRef);
}

static CUresult check_filter(CUfilter_mode mode) {
    return mode == CU_TR_FILTER_MODE_POINT || mode == CU_TR_FILTER_MODE_LINEAR
               ? CUDA_SUCCESS
               : fail(CUDA_ERROR_INVALID_VALUE, "%d is not a CUfilter_mode", (int)mode);
}

CUresult cuTexRefSetFlags(CUtexref hTexRef, unsigned int Flags) {
    const unsigned known = CU_TRSF_READ_AS_INTEGER | CU_TRSF_NORMALIZED_COORDINATES | CU_TRSF_SRGB |
                           CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION;
    RETURN_IF(check_texture(hTexRef));
    if (Flags & ~known) return fail(CUDA_ERROR_INVALID_VALUE, "Flags has unknown bits: %#x", Flags & ~known);
    hTexRef->reference.sampler.flags = Flags;
    return refresh(hTexRef);
}

/* A value of the sampler: the function that sets it, and the one that gets it. */
#define SAMPLER(Name, type, given, field, test)                            \
    CUresult cuTexRefSet##Name(CUtexref texture, type value) {             \
        RETURN_IF(check_texture(texture));                                 \
        RETURN_IF(test);                                                   \
        texture->reference.sampler.field = value;                          \
        return refresh(texture);                                           \
    }                                                                      \
    CUresult cuTexRefGet##Name(given *value, CUtexref texture) {           \
        RETURN_IF(check_texture(texture));                                 \
        if (!value) return fail_null(#field);                              \
        *value = (given)texture->reference.sampler.field;                  \
        return CUDA_SUCCESS;                                               \
    }
SAMPLER(FilterMode, CUfilter_mode, CUfilter_mode, filterMode, check_filter(value))
SAMPLER(MipmapFilterMode, CUfilter_mode, CUfilter_mode, mipmapFilterMode, check_filter(value))
SAMPLER(MipmapLevelBias, float, float, mipmapLevelBias, CUDA_SUCCESS)
SAMPLER(MaxAnisotropy, unsigned, int, maxAnisotropy, CUDA_SUCCESS)

CUresult cuTexRefSetMipmapLevelClamp(CUtexref hTexRef, float minMipmapLevelClamp, float maxMipmapLevelClamp) {
    RETURN_IF(check_texture(hTexRef));
    hTexRef->reference.sampler.minMipmapLevelClamp = minMipmapLevelClamp;
    hTexRef->reference.sampler.maxMipmapLevelClamp = maxMipmapLevelClamp;
    return refresh(hTexRef);
}

CUresult cuTexRefSetBorderColor(CUtexref hTexRef, float *pBorderColor) {
    RETURN_IF(check_texture(hTexRef));
    if (!pBorderColor) return fail_null("pBorderColor");
    memcpy(hTexRef->reference.sampler.borderColor, pBorderColor, sizeof hTexRef->reference.sampler.borderColor);
    return refresh(hTexRef);
}

/* ---- what a texture is ----------------------------------------------------------------------------------------- */

static CUresult bound_to(CUtexref texture, const void *result, CUresourcetype type, CUresourcetype other) {
    RETURN_IF(check_texture(texture));
    if (!result) return fail_null("what is asked for");
    CUresourcetype found = texture->reference.resource.resType;
    if (texture->reference.is_bound && (found == type || found == other)) return CUDA_SUCCESS;
    return fail(CUDA_ERROR_INVALID_VALUE, "the texture reference is bound to %s",
                texture->reference.is_bound ? "something else" : "nothing");
}

CUresult cuTexRefGetAddress(CUdeviceptr *pdptr, CUtexref hTexRef) {
    RETURN_IF(bound_to(hTexRef, pdptr, CU_RESOURCE_TYPE_LINEAR, CU_RESOURCE_TYPE_PITCH2D));
    const CUDA_RESOURCE_DESC *resource = &hTexRef->reference.resource;
    *pdptr = resource->resType == CU_RESOURCE_TYPE_LINEAR ? resource->res.linear.devPtr : resource->res.pitch2D.devPtr;
    return CUDA_SUCCESS;
}

CUresult cuTexRefGetArray(CUarray *phArray, CUtexref hTexRef) {
    RETURN_IF(bound_to(hTexRef, phArray, CU_RESOURCE_TYPE_ARRAY, CU_RESOURCE_TYPE_ARRAY));
    *phArray = hTexRef->reference.resource.res.array.hArray;
    return CUDA_SUCCESS;
}

CUresult cuTexRefGetMipmappedArray(CUmipmappedArray *phMipmappedArray, CUtexref hTexRef) {
    RETURN_IF(bound_to(hTexRef, phMipmappedArray, CU_RESOURCE_TYPE_MIPMAPPED_ARRAY, CU_RESOURCE_TYPE_MIPMAPPED_ARRAY));
    *phMipmappedArray = hTexRef->reference.resource.res.mipmap.hMipmappedArray;
    return CUDA_SUCCESS;
}

CUresult cuTexRefGetAddressMode(CUaddress_mode *pam, CUtexref hTexRef, int dim) {
    RETURN_IF(check_texture(hTexRef));
    if (!pam) return fail_null("pam");
    RETURN_IF(check_dimension(dim));
    *pam = hTexRef->reference.sampler.addressMode[dim];
    return CUDA_SUCCESS;
}

CUresult cuTexRefGetFormat(CUarray_format *pFormat, int *pNumChannels, CUtexref hTexRef) {
    RETURN_IF(check_texture(hTexRef));
    if (pFormat) *pFormat = hTexRef->reference.format;
    if (pNumChannels) *pNumChannels = hTexRef->reference.channels;
    return CUDA_SUCCESS;
}

CUresult cuTexRefGetMipmapLevelClamp(float *pminMipmapLevelClamp, float *pmaxMipmapLevelClamp, CUtexref hTexRef) {
    RETURN_IF(check_texture(hTexRef));
    if (pminMipmapLevelClamp) *pminMipmapLevelClamp = hTexRef->reference.sampler.minMipmapLevelClamp;
    if (pmaxMipmapLevelClamp) *pmaxMipmapLevelClamp = hTexRef->reference.sampler.maxMipmapLevelClamp;
    return CUDA_SUCCESS;
}

CUresult cuTexRefGetBorderColor(float *pBorderColor, CUtexref hTexRef) {
    RETURN_IF(check_texture(hTexRef));
    if (!pBorderColor) return fail_null("pBorderColor");
    memcpy(pBorderColor, hTexRef->reference.sampler.borderColor, sizeof hTexRef->reference.sampler.borderColor);
    return CUDA_SUCCESS;
}

CUresult cuTexRefGetFlags(unsigned int *pFlags, CUtexref hTexRef) {
    RETURN_IF(check_texture(hTexRef));
    if (!pFlags) return fail_null("pFlags");
    *pFlags = hTexRef->reference.sampler.flags;
    return CUDA_SUCCESS;
}

/* ---- surfaces -------------------------------------------------------------------------------------------------- */

CUresult cuModuleGetSurfRef(CUsurfref *pSurfRef, CUmodule hmod, const char *name) {
    return of_module(hmod, name, HANDLE_SURFACE_REFERENCE, (struct reference **)pSurfRef);
}

CUresult cuSurfRefSetArray(CUsurfref hSurfRef, CUarray hArray, unsigned int Flags) {
    struct reference *reference = &hSurfRef->reference;
    struct texture *object = NULL;
    RETURN_IF(check(reference, HANDLE_SURFACE_REFERENCE));
    if (Flags) return fail(CUDA_ERROR_INVALID_VALUE, "Flags must be 0, not %#x", Flags);
    CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_ARRAY};
    resource.res.array.hArray = hArray;
    RETURN_IF(array_check(hArray));
    if (!(hArray->descriptor.Flags & CUDA_ARRAY3D_SURFACE_LDST))
        return fail(CUDA_ERROR_INVALID_VALUE, "the array was not made for surfaces: give it CUDA_ARRAY3D_SURFACE_LDST");
    RETURN_IF(surface_make(reference->context, &resource, &object));
    pthread_mutex_lock(&lock);
    set_object(reference, HANDLE_SURFACE, object);
    reference->resource = resource;
    reference->is_bound = true;
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

CUresult cuSurfRefGetArray(CUarray *phArray, CUsurfref hSurfRef) {
    RETURN_IF(check(&hSurfRef->reference, HANDLE_SURFACE_REFERENCE));
    if (!phArray) return fail_null("phArray");
    if (!hSurfRef->reference.is_bound)
        return fail(CUDA_ERROR_INVALID_VALUE, "the surface reference is bound to nothing");
    *phArray = hSurfRef->reference.resource.res.array.hArray;
    return CUDA_SUCCESS;
}

const struct entry texture_reference_entries[] = {
    ENTRY(cuModuleGetTexRef),
    ENTRY(cuTexRefCreate),
    ENTRY(cuTexRefDestroy),
    ENTRY(cuTexRefSetArray),
    ENTRY(cuTexRefSetMipmappedArray),
    ENTRY_V2(cuTexRefSetAddress),
    ENTRY_V2(cuTexRefSetAddress2D),
    ENTRY_AS(cuTexRefSetAddress2D_v3, cuTexRefSetAddress2D),
    ENTRY(cuTexRefSetFormat),
    ENTRY(cuTexRefSetAddressMode),
    ENTRY(cuTexRefSetFilterMode),
    ENTRY(cuTexRefSetMipmapFilterMode),
    ENTRY(cuTexRefSetMipmapLevelBias),
    ENTRY(cuTexRefSetMipmapLevelClamp),
    ENTRY(cuTexRefSetMaxAnisotropy),
    ENTRY(cuTexRefSetBorderColor),
    ENTRY(cuTexRefSetFlags),
    ENTRY_V2(cuTexRefGetAddress),
    ENTRY(cuTexRefGetArray),
    ENTRY(cuTexRefGetMipmappedArray),
    ENTRY(cuTexRefGetAddressMode),
    ENTRY(cuTexRefGetFilterMode),
    ENTRY(cuTexRefGetFormat),
    ENTRY(cuTexRefGetMipmapFilterMode),
    ENTRY(cuTexRefGetMipmapLevelBias),
    ENTRY(cuTexRefGetMipmapLevelClamp),
    ENTRY(cuTexRefGetMaxAnisotropy),
    ENTRY(cuTexRefGetBorderColor),
    ENTRY(cuTexRefGetFlags),
    ENTRY(cuModuleGetSurfRef),
    ENTRY(cuSurfRefSetArray),
    ENTRY(cuSurfRefGetArray),
    {NULL, NULL, NULL},
};
