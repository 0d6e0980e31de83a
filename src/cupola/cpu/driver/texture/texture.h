/* Texture and surface objects, which have their likeness in references (reference.c). */
#ifndef CUPOLA_CPU_DRIVER_TEXTURE_H
#define CUPOLA_CPU_DRIVER_TEXTURE_H

#include "array.h"

/* The object behind a CUtexObject or CUsurfObject, whose value is its address. */
struct texture {
    struct handle handle;
    CUcontext context;
    CUDA_RESOURCE_DESC resource; /* this and the next two as the program gave them */
    CUDA_TEXTURE_DESC sampler;
    CUDA_RESOURCE_VIEW_DESC view;
    bool has_view;
    struct cpu_texture texture;
};

CUresult texture_make(CUcontext context, const CUDA_RESOURCE_DESC *resource, const CUDA_TEXTURE_DESC *sampler,
                      const CUDA_RESOURCE_VIEW_DESC *view, struct texture **made);
CUresult surface_make(CUcontext context, const CUDA_RESOURCE_DESC *resource, struct texture **made);

#endif
