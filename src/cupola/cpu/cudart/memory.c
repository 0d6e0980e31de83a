/* Memory: allocation, memory of the host, what an address is, managed memory (CUDA Runtime API, "Memory Management",
 * "Unified Addressing"). */
#include "cudart.h"

enum { ELEMENT = 4 }; /* bytes: what rows are to be aligned for, the least that cuMemAllocPitch takes */

/* Nothing, for no bytes, is not an error of the runtime. */
static CUresult allocate(void **pointer, size_t size) {
    if (!pointer) return fail_null("devPtr");
    *pointer = NULL;
    return size ? cuMemAlloc((CUdeviceptr *)pointer, size) : CUDA_SUCCESS;
}

static CUresult allocate_rows(void **pointer, size_t *pitch, size_t width, size_t height) {
    if (!pointer) return fail_null("devPtr");
    if (!pitch) return fail_null("pitch");
    *pointer = NULL;
    *pitch = 0;
    return width && height ? cuMemAllocPitch((CUdeviceptr *)pointer, pitch, width, height, ELEMENT) : CUDA_SUCCESS;
}

static CUresult allocate_box(struct cudaPitchedPtr *box, struct cudaExtent extent) {
    size_t rows;
    if (!box) return fail_null("pitchedDevPtr");
    if (__builtin_mul_overflow(extent.height, extent.depth, &rows))
        return fail(CUDA_ERROR_OUT_OF_MEMORY, "%zu slices of %zu rows are more than there is memory", extent.depth,
                    extent.height);
    *box = (struct cudaPitchedPtr){.xsize = extent.width, .ysize = extent.height};
    return allocate_rows(&box->ptr, &box->pitch, extent.width, rows);
}

static CUresult allocate_host(void **pointer, size_t size, unsigned flags) {
    if (!pointer) return fail_null("ptr");
    *pointer = NULL;
    return size ? cuMemHostAlloc(pointer, size, flags) : CUDA_SUCCESS;
}

static CUresult describe_pointer(struct cudaPointerAttributes *attributes, const void *pointer) {
    unsigned type = 0, managed = 0;
    int device = 0;
    void *device_pointer = NULL, *host_pointer = NULL;
    if (!attributes) return fail_null("attributes");
    RETURN_IF(cuPointerGetAttributes(
        5,
        (CUpointer_attribute[]){CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
                                CU_POINTER_ATTRIBUTE_HOST_POINTER},
        (void *[]){&type, &managed, &device, &device_pointer, &host_pointer}, (CUdeviceptr)pointer));
    *attributes = (struct cudaPointerAttributes){
        .type = !type                        ? cudaMemoryTypeUnregistered
                : managed                    ? cudaMemoryTypeManaged
                : type == CU_MEMORYTYPE_HOST ? cudaMemoryTypeHost
                                             : cudaMemoryTypeDevice,
        .device = device,
        .devicePointer = device_pointer,
        .hostPointer = type ? host_pointer : (void *)pointer,
    };
    return CUDA_SUCCESS;
}

RUNTIME(cudaMalloc, (void **devPtr, size_t size), allocate(devPtr, size))
RUNTIME(cudaMallocPitch, (void **devPtr, size_t *pitch, size_t width, size_t height),
        allocate_rows(devPtr, pitch, width, height))
RUNTIME(cudaMalloc3D, (struct cudaPitchedPtr *pitchedDevPtr, struct cudaExtent extent),
        allocate_box(pitchedDevPtr, extent))
RUNTIME(cudaFree, (void *devPtr), devPtr ? cuMemFree((CUdeviceptr)devPtr) : CUDA_SUCCESS)
RUNTIME(cudaMallocManaged, (void **devPtr, size_t size, unsigned flags),
        size ? cuMemAllocManaged((CUdeviceptr *)devPtr, size, flags) : allocate_host(devPtr, 0, 0))
RUNTIME(cudaMallocHost, (void **ptr, size_t size), allocate_host(ptr, size, 0))
RUNTIME(cudaHostAlloc, (void **pHost, size_t size, unsigned flags), allocate_host(pHost, size, flags))
RUNTIME(cudaFreeHost, (void *ptr), ptr ? cuMemFreeHost(ptr) : CUDA_SUCCESS)
RUNTIME(cudaHostRegister, (void *ptr, size_t size, unsigned flags), cuMemHostRegister(ptr, size, flags))
RUNTIME(cudaHostUnregister, (void *ptr), cuMemHostUnregister(ptr))
RUNTIME(cudaHostGetDevicePointer, (void **pDevice, void *pHost, unsigned flags),
        cuMemHostGetDevicePointer((CUdeviceptr *)pDevice, pHost, flags))
RUNTIME(cudaHostGetFlags, (unsigned *pFlags, void *pHost), cuMemHostGetFlags(pFlags, pHost))
RUNTIME(cudaMemGetInfo, (size_t *free, size_t *total), cuMemGetInfo(free, total))
RUNTIME(cudaPointerGetAttributes, (struct cudaPointerAttributes *attributes, const void *ptr),
        describe_pointer(attributes, ptr))

/* ---- memory of other processes, by address --------------------------------------------------------------------- */

RUNTIME(cudaIpcGetMemHandle, (cudaIpcMemHandle_t *handle, void *devPtr),
        cuIpcGetMemHandle((CUipcMemHandle *)handle, (CUdeviceptr)devPtr))
RUNTIME(cudaIpcOpenMemHandle, (void **devPtr, cudaIpcMemHandle_t handle, unsigned flags),
        cuIpcOpenMemHandle((CUdeviceptr *)devPtr, AS(CUipcMemHandle, handle), flags))
RUNTIME(cudaIpcCloseMemHandle, (void *devPtr), cuIpcCloseMemHandle((CUdeviceptr)devPtr))

/* ---- managed memory -------------------------------------------------------------------------------------------- */

RUNTIME_STREAM(cudaMemPrefetchAsync,
               (const void *devPtr, size_t count, struct cudaMemLocation location, unsigned flags, cudaStream_t stream),
               (devPtr, count, location, flags, stream),
               cuMemPrefetchAsync((CUdeviceptr)devPtr, count, AS(CUmemLocation, location), flags, stream))
RUNTIME_STREAM(cudaMemPrefetchBatchAsync,
               (void **dptrs, size_t *sizes, size_t count, struct cudaMemLocation *prefetchLocs,
                size_t *prefetchLocIdxs, size_t numPrefetchLocs, unsigned long long flags, cudaStream_t stream),
               (dptrs, sizes, count, prefetchLocs, prefetchLocIdxs, numPrefetchLocs, flags, stream),
               cuMemPrefetchBatchAsync((CUdeviceptr *)dptrs, sizes, count, (CUmemLocation *)prefetchLocs,
                                       prefetchLocIdxs, numPrefetchLocs, flags, stream))
RUNTIME_STREAM(cudaMemDiscardBatchAsync,
               (void **dptrs, size_t *sizes, size_t count, unsigned long long flags, cudaStream_t stream),
               (dptrs, sizes, count, flags, stream),
               cuMemDiscardBatchAsync((CUdeviceptr *)dptrs, sizes, count, flags, stream))
RUNTIME_STREAM(cudaMemDiscardAndPrefetchBatchAsync,
               (void **dptrs, size_t *sizes, size_t count, struct cudaMemLocation *prefetchLocs,
                size_t *prefetchLocIdxs, size_t numPrefetchLocs, unsigned long long flags, cudaStream_t stream),
               (dptrs, sizes, count, prefetchLocs, prefetchLocIdxs, numPrefetchLocs, flags, stream),
               cuMemDiscardAndPrefetchBatchAsync((CUdeviceptr *)dptrs, sizes, count, (CUmemLocation *)prefetchLocs,
                                                 prefetchLocIdxs, numPrefetchLocs, flags, stream))
RUNTIME(cudaMemAdvise,
        (const void *devPtr, size_t count, enum cudaMemoryAdvise advice, struct cudaMemLocation location),
        cuMemAdvise((CUdeviceptr)devPtr, count, (CUmem_advise)advice, AS(CUmemLocation, location)))
RUNTIME(cudaMemRangeGetAttribute,
        (void *data, size_t dataSize, enum cudaMemRangeAttribute attribute, const void *devPtr, size_t count),
        cuMemRangeGetAttribute(data, dataSize, (CUmem_range_attribute)attribute, (CUdeviceptr)devPtr, count))
RUNTIME(cudaMemRangeGetAttributes,
        (void **data, size_t *dataSizes, enum cudaMemRangeAttribute *attributes, size_t numAttributes,
         const void *devPtr, size_t count),
        cuMemRangeGetAttributes(data, dataSizes, (CUmem_range_attribute *)attributes, numAttributes,
                                (CUdeviceptr)devPtr, count))

const struct entry runtime_memory_entries[] = {
    RUNTIME_ENTRY(cudaMalloc),
    RUNTIME_ENTRY(cudaMallocPitch),
    RUNTIME_ENTRY(cudaMalloc3D),
    RUNTIME_ENTRY(cudaFree),
    RUNTIME_ENTRY(cudaMallocManaged),
    RUNTIME_ENTRY(cudaMallocHost),
    RUNTIME_ENTRY(cudaHostAlloc),
    RUNTIME_ENTRY(cudaFreeHost),
    RUNTIME_ENTRY(cudaHostRegister),
    RUNTIME_ENTRY(cudaHostUnregister),
    RUNTIME_ENTRY(cudaHostGetDevicePointer),
    RUNTIME_ENTRY(cudaHostGetFlags),
    RUNTIME_ENTRY(cudaMemGetInfo),
    RUNTIME_ENTRY(cudaPointerGetAttributes),
    RUNTIME_ENTRY(cudaIpcGetMemHandle),
    RUNTIME_ENTRY(cudaIpcOpenMemHandle),
    RUNTIME_ENTRY(cudaIpcCloseMemHandle),
    RUNTIME_ENTRY_STREAM(cudaMemPrefetchAsync),
    RUNTIME_ENTRY_STREAM(cudaMemPrefetchBatchAsync),
    RUNTIME_ENTRY_STREAM(cudaMemDiscardBatchAsync),
    RUNTIME_ENTRY_STREAM(cudaMemDiscardAndPrefetchBatchAsync),
    RUNTIME_ENTRY(cudaMemAdvise),
    RUNTIME_ENTRY(cudaMemRangeGetAttribute),
    RUNTIME_ENTRY(cudaMemRangeGetAttributes),
    {NULL, NULL, NULL},
};
