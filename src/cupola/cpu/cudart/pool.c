/* Memory pools and stream-ordered allocation (CUDA Runtime API, "Stream Ordered Memory Allocator"). */
#include "cudart.h"

RUNTIME_BARE(cudaDeviceGetDefaultMemPool, (cudaMemPool_t *memPool, int device),
             cuDeviceGetDefaultMemPool(memPool, device))
RUNTIME_BARE(cudaDeviceGetMemPool, (cudaMemPool_t *memPool, int device), cuDeviceGetMemPool(memPool, device))
RUNTIME_BARE(cudaDeviceSetMemPool, (int device, cudaMemPool_t memPool), cuDeviceSetMemPool(device, memPool))
RUNTIME(cudaMemGetDefaultMemPool,
        (cudaMemPool_t *memPool, struct cudaMemLocation *location, enum cudaMemAllocationType type),
        cuMemGetDefaultMemPool(memPool, (CUmemLocation *)location, (CUmemAllocationType)type))
RUNTIME(cudaMemGetMemPool, (cudaMemPool_t *memPool, struct cudaMemLocation *location, enum cudaMemAllocationType type),
        cuMemGetMemPool(memPool, (CUmemLocation *)location, (CUmemAllocationType)type))
RUNTIME(cudaMemSetMemPool, (struct cudaMemLocation *location, enum cudaMemAllocationType type, cudaMemPool_t memPool),
        cuMemSetMemPool((CUmemLocation *)location, (CUmemAllocationType)type, memPool))
RUNTIME(cudaMemPoolCreate, (cudaMemPool_t *memPool, const struct cudaMemPoolProps *poolProps),
        cuMemPoolCreate(memPool, (const CUmemPoolProps *)poolProps))
RUNTIME(cudaMemPoolDestroy, (cudaMemPool_t memPool), cuMemPoolDestroy(memPool))
RUNTIME(cudaMemPoolTrimTo, (cudaMemPool_t memPool, size_t minBytesToKeep), cuMemPoolTrimTo(memPool, minBytesToKeep))
RUNTIME(cudaMemPoolSetAttribute, (cudaMemPool_t memPool, enum cudaMemPoolAttr attr, void *value),
        cuMemPoolSetAttribute(memPool, (CUmemPool_attribute)attr, value))
RUNTIME(cudaMemPoolGetAttribute, (cudaMemPool_t memPool, enum cudaMemPoolAttr attr, void *value),
        cuMemPoolGetAttribute(memPool, (CUmemPool_attribute)attr, value))
RUNTIME(cudaMemPoolSetAccess, (cudaMemPool_t memPool, const struct cudaMemAccessDesc *descList, size_t count),
        cuMemPoolSetAccess(memPool, (const CUmemAccessDesc *)descList, count))
RUNTIME(cudaMemPoolGetAccess,
        (enum cudaMemAccessFlags *flags, cudaMemPool_t memPool, struct cudaMemLocation *location),
        cuMemPoolGetAccess((CUmemAccess_flags *)flags, memPool, (CUmemLocation *)location))
RUNTIME_STREAM(cudaMallocAsync, (void **devPtr, size_t size, cudaStream_t hStream), (devPtr, size, hStream),
               cuMemAllocAsync((CUdeviceptr *)devPtr, size, hStream))
RUNTIME_STREAM(cudaMallocFromPoolAsync, (void **ptr, size_t size, cudaMemPool_t memPool, cudaStream_t stream),
               (ptr, size, memPool, stream), cuMemAllocFromPoolAsync((CUdeviceptr *)ptr, size, memPool, stream))
RUNTIME_STREAM(cudaFreeAsync, (void *devPtr, cudaStream_t hStream), (devPtr, hStream),
               cuMemFreeAsync((CUdeviceptr)devPtr, hStream))

/* ---- pools of other processes ---------------------------------------------------------------------------------- */

RUNTIME(cudaMemPoolExportToShareableHandle,
        (void *shareableHandle, cudaMemPool_t memPool, enum cudaMemAllocationHandleType handleType, unsigned flags),
        cuMemPoolExportToShareableHandle(shareableHandle, memPool, (CUmemAllocationHandleType)handleType, flags))
RUNTIME(cudaMemPoolImportFromShareableHandle,
        (cudaMemPool_t *memPool, void *shareableHandle, enum cudaMemAllocationHandleType handleType, unsigned flags),
        cuMemPoolImportFromShareableHandle(memPool, shareableHandle, (CUmemAllocationHandleType)handleType, flags))
RUNTIME(cudaMemPoolExportPointer, (struct cudaMemPoolPtrExportData *exportData, void *ptr),
        cuMemPoolExportPointer((CUmemPoolPtrExportData *)exportData, (CUdeviceptr)ptr))
RUNTIME(cudaMemPoolImportPointer,
        (void **ptr, cudaMemPool_t memPool, struct cudaMemPoolPtrExportData *exportData),
        cuMemPoolImportPointer((CUdeviceptr *)ptr, memPool, (CUmemPoolPtrExportData *)exportData))

/* ---- memory of graphs ------------------------------------------------------------------------------------------ */

RUNTIME_BARE(cudaDeviceGraphMemTrim, (int device), cuDeviceGraphMemTrim(device))
RUNTIME_BARE(cudaDeviceGetGraphMemAttribute, (int device, enum cudaGraphMemAttributeType attr, void *value),
             cuDeviceGetGraphMemAttribute(device, (CUgraphMem_attribute)attr, value))
RUNTIME_BARE(cudaDeviceSetGraphMemAttribute, (int device, enum cudaGraphMemAttributeType attr, void *value),
             cuDeviceSetGraphMemAttribute(device, (CUgraphMem_attribute)attr, value))

const struct entry runtime_pool_entries[] = {
    RUNTIME_ENTRY(cudaDeviceGetDefaultMemPool),
    RUNTIME_ENTRY(cudaDeviceGetMemPool),
    RUNTIME_ENTRY(cudaDeviceSetMemPool),
    RUNTIME_ENTRY(cudaMemGetDefaultMemPool),
    RUNTIME_ENTRY(cudaMemGetMemPool),
    RUNTIME_ENTRY(cudaMemSetMemPool),
    RUNTIME_ENTRY(cudaMemPoolCreate),
    RUNTIME_ENTRY(cudaMemPoolDestroy),
    RUNTIME_ENTRY(cudaMemPoolTrimTo),
    RUNTIME_ENTRY(cudaMemPoolSetAttribute),
    RUNTIME_ENTRY(cudaMemPoolGetAttribute),
    RUNTIME_ENTRY(cudaMemPoolSetAccess),
    RUNTIME_ENTRY(cudaMemPoolGetAccess),
    RUNTIME_ENTRY_STREAM(cudaMallocAsync),
    RUNTIME_ENTRY_STREAM(cudaMallocFromPoolAsync),
    RUNTIME_ENTRY_STREAM(cudaFreeAsync),
    RUNTIME_ENTRY(cudaMemPoolExportToShareableHandle),
    RUNTIME_ENTRY(cudaMemPoolImportFromShareableHandle),
    RUNTIME_ENTRY(cudaMemPoolExportPointer),
    RUNTIME_ENTRY(cudaMemPoolImportPointer),
    RUNTIME_ENTRY(cudaDeviceGraphMemTrim),
    RUNTIME_ENTRY(cudaDeviceGetGraphMemAttribute),
    RUNTIME_ENTRY(cudaDeviceSetGraphMemAttribute),
    {NULL, NULL, NULL},
};
