/* Graphics interop (CUDA Runtime API, "Graphics Interoperability", "OpenGL Interoperability"). */
#include "cudart.h"

RUNTIME(cudaGraphicsGLRegisterBuffer, (cudaGraphicsResource_t * resource, GLuint buffer, unsigned flags),
        cuGraphicsGLRegisterBuffer((CUgraphicsResource *)resource, buffer, flags))
RUNTIME(cudaGraphicsGLRegisterImage, (cudaGraphicsResource_t * resource, GLuint image, GLenum target, unsigned flags),
        cuGraphicsGLRegisterImage((CUgraphicsResource *)resource, image, target, flags))
RUNTIME(cudaGraphicsUnregisterResource, (cudaGraphicsResource_t resource),
        cuGraphicsUnregisterResource((CUgraphicsResource)resource))
RUNTIME(cudaGraphicsResourceSetMapFlags, (cudaGraphicsResource_t resource, unsigned flags),
        cuGraphicsResourceSetMapFlags((CUgraphicsResource)resource, flags))
RUNTIME(cudaGraphicsMapResources, (int count, cudaGraphicsResource_t *resources, cudaStream_t stream),
        cuGraphicsMapResources((unsigned)(count < 0 ? 0 : count), (CUgraphicsResource *)resources, (CUstream)stream))
RUNTIME(cudaGraphicsUnmapResources, (int count, cudaGraphicsResource_t *resources, cudaStream_t stream),
        cuGraphicsUnmapResources((unsigned)(count < 0 ? 0 : count), (CUgraphicsResource *)resources, (CUstream)stream))
RUNTIME(cudaGraphicsResourceGetMappedPointer, (void **pointer, size_t *size, cudaGraphicsResource_t resource),
        cuGraphicsResourceGetMappedPointer((CUdeviceptr *)pointer, size, (CUgraphicsResource)resource))
RUNTIME(cudaGraphicsSubResourceGetMappedArray,
        (cudaArray_t * array, cudaGraphicsResource_t resource, unsigned index, unsigned level),
        cuGraphicsSubResourceGetMappedArray((CUarray *)array, (CUgraphicsResource)resource, index, level))
RUNTIME(cudaGraphicsResourceGetMappedMipmappedArray, (cudaMipmappedArray_t * array, cudaGraphicsResource_t resource),
        cuGraphicsResourceGetMappedMipmappedArray((CUmipmappedArray *)array, (CUgraphicsResource)resource))

/* Without a context of OpenGL an H200's runtime has another error than its driver, once it has answered. */
static CUresult devices_of_opengl(unsigned *count, int *devices, unsigned room, enum cudaGLDeviceList list) {
    CUresult status = cuGLGetDevices(count, (CUdevice *)devices, room, (CUGLDeviceList)list);
    return status == CUDA_ERROR_INVALID_GRAPHICS_CONTEXT ? CUDA_ERROR_INVALID_CONTEXT : status;
}

RUNTIME(cudaGLGetDevices, (unsigned *count, int *devices, unsigned room, enum cudaGLDeviceList list),
        devices_of_opengl(count, devices, room, list))

const struct entry runtime_graphics_entries[] = {
    RUNTIME_ENTRY(cudaGraphicsGLRegisterBuffer),
    RUNTIME_ENTRY(cudaGraphicsGLRegisterImage),
    RUNTIME_ENTRY(cudaGraphicsUnregisterResource),
    RUNTIME_ENTRY(cudaGraphicsResourceSetMapFlags),
    RUNTIME_ENTRY(cudaGraphicsMapResources),
    RUNTIME_ENTRY(cudaGraphicsUnmapResources),
    RUNTIME_ENTRY(cudaGraphicsResourceGetMappedPointer),
    RUNTIME_ENTRY(cudaGraphicsSubResourceGetMappedArray),
    RUNTIME_ENTRY(cudaGraphicsResourceGetMappedMipmappedArray),
    RUNTIME_ENTRY(cudaGLGetDevices),
    {NULL, NULL, NULL},
};
