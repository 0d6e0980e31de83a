/* What the devices are: properties, attributes, bus ids, peers (CUDA Runtime API, "Device Management", "Peer Device
 * Memory Access"), and the versions. */
#include "cudart.h"

/* Fields of cudaDeviceProp that are attributes of the device; those of arrays are given one by one. */
static const struct {
    size_t offset, size;
    CUdevice_attribute attribute;
} fields[] = {
#define FIELD(field, attribute)                                                              \
    {offsetof(struct cudaDeviceProp, field), sizeof(((struct cudaDeviceProp *)0)->field),      \
     CU_DEVICE_ATTRIBUTE_##attribute}
    FIELD(sharedMemPerBlock, MAX_SHARED_MEMORY_PER_BLOCK),
    FIELD(regsPerBlock, MAX_REGISTERS_PER_BLOCK),
    FIELD(warpSize, WARP_SIZE),
    FIELD(memPitch, MAX_PITCH),
    FIELD(maxThreadsPerBlock, MAX_THREADS_PER_BLOCK),
    FIELD(maxThreadsDim[0], MAX_BLOCK_DIM_X),
    FIELD(maxThreadsDim[1], MAX_BLOCK_DIM_Y),
    FIELD(maxThreadsDim[2], MAX_BLOCK_DIM_Z),
    FIELD(maxGridSize[0], MAX_GRID_DIM_X),
    FIELD(maxGridSize[1], MAX_GRID_DIM_Y),
    FIELD(maxGridSize[2], MAX_GRID_DIM_Z),
    FIELD(totalConstMem, TOTAL_CONSTANT_MEMORY),
    FIELD(major, COMPUTE_CAPABILITY_MAJOR),
    FIELD(minor, COMPUTE_CAPABILITY_MINOR),
    FIELD(textureAlignment, TEXTURE_ALIGNMENT),
    FIELD(texturePitchAlignment, TEXTURE_PITCH_ALIGNMENT),
    FIELD(multiProcessorCount, MULTIPROCESSOR_COUNT),
    FIELD(integrated, INTEGRATED),
    FIELD(canMapHostMemory, CAN_MAP_HOST_MEMORY),
    FIELD(maxTexture1D, MAXIMUM_TEXTURE1D_WIDTH),
    FIELD(maxTexture1DMipmap, MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH),
    FIELD(maxTexture2D[0], MAXIMUM_TEXTURE2D_WIDTH),
    FIELD(maxTexture2D[1], MAXIMUM_TEXTURE2D_HEIGHT),
    FIELD(maxTexture2DMipmap[0], MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH),
    FIELD(maxTexture2DMipmap[1], MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT),
    FIELD(maxTexture2DLinear[0], MAXIMUM_TEXTURE2D_LINEAR_WIDTH),
    FIELD(maxTexture2DLinear[1], MAXIMUM_TEXTURE2D_LINEAR_HEIGHT),
    FIELD(maxTexture2DLinear[2], MAXIMUM_TEXTURE2D_LINEAR_PITCH),
    FIELD(maxTexture2DGather[0], MAXIMUM_TEXTURE2D_GATHER_WIDTH),
    FIELD(maxTexture2DGather[1], MAXIMUM_TEXTURE2D_GATHER_HEIGHT),
    FIELD(maxTexture3D[0], MAXIMUM_TEXTURE3D_WIDTH),
    FIELD(maxTexture3D[1], MAXIMUM_TEXTURE3D_HEIGHT),
    FIELD(maxTexture3D[2], MAXIMUM_TEXTURE3D_DEPTH),
    FIELD(maxTexture3DAlt[0], MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE),
    FIELD(maxTexture3DAlt[1], MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE),
    FIELD(maxTexture3DAlt[2], MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE),
    FIELD(maxTextureCubemap, MAXIMUM_TEXTURECUBEMAP_WIDTH),
    FIELD(maxTexture1DLayered[0], MAXIMUM_TEXTURE1D_LAYERED_WIDTH),
    FIELD(maxTexture1DLayered[1], MAXIMUM_TEXTURE1D_LAYERED_LAYERS),
    FIELD(maxTexture2DLayered[0], MAXIMUM_TEXTURE2D_LAYERED_WIDTH),
    FIELD(maxTexture2DLayered[1], MAXIMUM_TEXTURE2D_LAYERED_HEIGHT),
    FIELD(maxTexture2DLayered[2], MAXIMUM_TEXTURE2D_LAYERED_LAYERS),
    FIELD(maxTextureCubemapLayered[0], MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH),
    FIELD(maxTextureCubemapLayered[1], MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS),
    FIELD(maxSurface1D, MAXIMUM_SURFACE1D_WIDTH),
    FIELD(maxSurface2D[0], MAXIMUM_SURFACE2D_WIDTH),
    FIELD(maxSurface2D[1], MAXIMUM_SURFACE2D_HEIGHT),
    FIELD(maxSurface3D[0], MAXIMUM_SURFACE3D_WIDTH),
    FIELD(maxSurface3D[1], MAXIMUM_SURFACE3D_HEIGHT),
    FIELD(maxSurface3D[2], MAXIMUM_SURFACE3D_DEPTH),
    FIELD(maxSurface1DLayered[0], MAXIMUM_SURFACE1D_LAYERED_WIDTH),
    FIELD(maxSurface1DLayered[1], MAXIMUM_SURFACE1D_LAYERED_LAYERS),
    FIELD(maxSurface2DLayered[0], MAXIMUM_SURFACE2D_LAYERED_WIDTH),
    FIELD(maxSurface2DLayered[1], MAXIMUM_SURFACE2D_LAYERED_HEIGHT),
    FIELD(maxSurface2DLayered[2], MAXIMUM_SURFACE2D_LAYERED_LAYERS),
    FIELD(maxSurfaceCubemap, MAXIMUM_SURFACECUBEMAP_WIDTH),
    FIELD(maxSurfaceCubemapLayered[0], MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH),
    FIELD(maxSurfaceCubemapLayered[1], MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS),
    FIELD(surfaceAlignment, SURFACE_ALIGNMENT),
    FIELD(concurrentKernels, CONCURRENT_KERNELS),
    FIELD(ECCEnabled, ECC_ENABLED),
    FIELD(pciBusID, PCI_BUS_ID),
    FIELD(pciDeviceID, PCI_DEVICE_ID),
    FIELD(pciDomainID, PCI_DOMAIN_ID),
    FIELD(tccDriver, TCC_DRIVER),
    FIELD(asyncEngineCount, ASYNC_ENGINE_COUNT),
    FIELD(unifiedAddressing, UNIFIED_ADDRESSING),
    FIELD(memoryBusWidth, GLOBAL_MEMORY_BUS_WIDTH),
    FIELD(l2CacheSize, L2_CACHE_SIZE),
    FIELD(persistingL2CacheMaxSize, MAX_PERSISTING_L2_CACHE_SIZE),
    FIELD(maxThreadsPerMultiProcessor, MAX_THREADS_PER_MULTIPROCESSOR),
    FIELD(streamPrioritiesSupported, STREAM_PRIORITIES_SUPPORTED),
    FIELD(globalL1CacheSupported, GLOBAL_L1_CACHE_SUPPORTED),
    FIELD(localL1CacheSupported, LOCAL_L1_CACHE_SUPPORTED),
    FIELD(sharedMemPerMultiprocessor, MAX_SHARED_MEMORY_PER_MULTIPROCESSOR),
    FIELD(regsPerMultiprocessor, MAX_REGISTERS_PER_MULTIPROCESSOR),
    FIELD(managedMemory, MANAGED_MEMORY),
    FIELD(isMultiGpuBoard, MULTI_GPU_BOARD),
    FIELD(multiGpuBoardGroupID, MULTI_GPU_BOARD_GROUP_ID),
    FIELD(hostNativeAtomicSupported, HOST_NATIVE_ATOMIC_SUPPORTED),
    FIELD(pageableMemoryAccess, PAGEABLE_MEMORY_ACCESS),
    FIELD(concurrentManagedAccess, CONCURRENT_MANAGED_ACCESS),
    FIELD(computePreemptionSupported, COMPUTE_PREEMPTION_SUPPORTED),
    FIELD(canUseHostPointerForRegisteredMem, CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM),
    FIELD(cooperativeLaunch, COOPERATIVE_LAUNCH),
    FIELD(sharedMemPerBlockOptin, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
    FIELD(pageableMemoryAccessUsesHostPageTables, PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES),
    FIELD(directManagedMemAccessFromHost, DIRECT_MANAGED_MEM_ACCESS_FROM_HOST),
    FIELD(maxBlocksPerMultiProcessor, MAX_BLOCKS_PER_MULTIPROCESSOR),
    FIELD(accessPolicyMaxWindowSize, MAX_ACCESS_POLICY_WINDOW_SIZE),
    FIELD(reservedSharedMemPerBlock, RESERVED_SHARED_MEMORY_PER_BLOCK),
    FIELD(hostRegisterSupported, HOST_REGISTER_SUPPORTED),
    FIELD(sparseCudaArraySupported, SPARSE_CUDA_ARRAY_SUPPORTED),
    FIELD(hostRegisterReadOnlySupported, READ_ONLY_HOST_REGISTER_SUPPORTED),
    FIELD(timelineSemaphoreInteropSupported, TIMELINE_SEMAPHORE_INTEROP_SUPPORTED),
    FIELD(memoryPoolsSupported, MEMORY_POOLS_SUPPORTED),
    FIELD(gpuDirectRDMASupported, GPU_DIRECT_RDMA_SUPPORTED),
    FIELD(gpuDirectRDMAFlushWritesOptions, GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS),
    FIELD(gpuDirectRDMAWritesOrdering, GPU_DIRECT_RDMA_WRITES_ORDERING),
    FIELD(memoryPoolSupportedHandleTypes, MEMPOOL_SUPPORTED_HANDLE_TYPES),
    FIELD(deferredMappingCudaArraySupported, DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED),
    FIELD(ipcEventSupported, IPC_EVENT_SUPPORTED),
    FIELD(clusterLaunch, CLUSTER_LAUNCH),
    FIELD(unifiedFunctionPointers, UNIFIED_FUNCTION_POINTERS),
    FIELD(deviceNumaConfig, NUMA_CONFIG),
    FIELD(deviceNumaId, NUMA_ID),
    FIELD(mpsEnabled, MPS_ENABLED),
    FIELD(hostNumaId, HOST_NUMA_ID),
    FIELD(gpuPciDeviceID, GPU_PCI_DEVICE_ID),
    FIELD(gpuPciSubsystemID, GPU_PCI_SUBSYSTEM_ID),
    FIELD(hostNumaMultinodeIpcSupported, HOST_NUMA_MULTINODE_IPC_SUPPORTED),
#undef FIELD
};

static CUresult get_properties(struct cudaDeviceProp *properties, int device) {
    if (!properties) return fail_null("prop");
    struct cudaDeviceProp made = {0};
    RETURN_IF(cuDeviceGetName(made.name, sizeof made.name, device));
    RETURN_IF(cuDeviceGetUuid((CUuuid *)&made.uuid, device));
    RETURN_IF(cuDeviceTotalMem(&made.totalGlobalMem, device));
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        int value = 0;
        RETURN_IF(cuDeviceGetAttribute(&value, fields[i].attribute, device));
        if (fields[i].size == sizeof(size_t)) *(size_t *)((char *)&made + fields[i].offset) = (size_t)value;
        else *(int *)((char *)&made + fields[i].offset) = value;
    }
    *properties = made;
    return CUDA_SUCCESS;
}

/* All devices are of one model, so the first is as good as any. */
static CUresult choose(int *device, const struct cudaDeviceProp *wanted) {
    if (!device) return fail_null("device");
    if (!wanted) return fail_null("prop");
    *device = 0;
    return CUDA_SUCCESS;
}

static CUresult linear_width(size_t *width, const struct cudaChannelFormatDesc *format, int device) {
    CUarray_format kind;
    unsigned channels;
    if (!format) return fail_null("fmtDesc");
    RETURN_IF(format_of_channels(format, &kind, &channels));
    return cuDeviceGetTexture1DLinearMaxWidth(width, kind, channels, device);
}

static CUresult enable_peer(int peer, unsigned flags) {
    CUcontext context;
    RETURN_IF(primary_context(peer, &context));
    return cuCtxEnablePeerAccess(context, flags);
}

static CUresult disable_peer(int peer) {
    CUcontext context;
    RETURN_IF(primary_context(peer, &context));
    return cuCtxDisablePeerAccess(context);
}

static CUresult runtime_version(int *version) {
    if (!version) return fail_null("runtimeVersion");
    *version = CUDA_VERSION;
    return CUDA_SUCCESS;
}

/* A symbol that is not there is no error when the caller has a place to be told so. */
static CUresult driver_entry_point(const char *symbol, void **function, unsigned version, unsigned long long flags,
                                   enum cudaDriverEntryPointQueryResult *result) {
    CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SUCCESS;
    if (!flags && thread_state.null_stream_is_per_thread) flags = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    CUresult status = cuGetProcAddress(symbol, function, (int)version, flags, &found);
    if (!result) return status;
    *result = (enum cudaDriverEntryPointQueryResult)found;
    return status == CUDA_ERROR_NOT_FOUND ? CUDA_SUCCESS : status;
}

RUNTIME_BARE(cudaGetDeviceCount, (int *count), cuDeviceGetCount(count))
RUNTIME_BARE(cudaGetDeviceProperties, (struct cudaDeviceProp *prop, int device), get_properties(prop, device))
RUNTIME_BARE(cudaDeviceGetAttribute, (int *value, enum cudaDeviceAttr attr, int device),
             cuDeviceGetAttribute(value, (CUdevice_attribute)attr, device))
RUNTIME_BARE(cudaDeviceGetByPCIBusId, (int *device, const char *pciBusId), cuDeviceGetByPCIBusId(device, pciBusId))
RUNTIME_BARE(cudaDeviceGetPCIBusId, (char *pciBusId, int len, int device), cuDeviceGetPCIBusId(pciBusId, len, device))
RUNTIME_BARE(cudaDeviceGetTexture1DLinearMaxWidth,
             (size_t *maxWidthInElements, const struct cudaChannelFormatDesc *fmtDesc, int device),
             linear_width(maxWidthInElements, fmtDesc, device))
RUNTIME_BARE(cudaChooseDevice, (int *device, const struct cudaDeviceProp *prop), choose(device, prop))
RUNTIME_BARE(cudaDeviceCanAccessPeer, (int *canAccessPeer, int device, int peerDevice),
             cuDeviceCanAccessPeer(canAccessPeer, device, peerDevice))
RUNTIME_BARE(cudaDeviceGetP2PAttribute, (int *value, enum cudaDeviceP2PAttr attr, int srcDevice, int dstDevice),
             cuDeviceGetP2PAttribute(value, (CUdevice_P2PAttribute)attr, srcDevice, dstDevice))
RUNTIME_BARE(cudaDeviceGetHostAtomicCapabilities,
             (unsigned *capabilities, const enum cudaAtomicOperation *operations, unsigned count, int device),
             cuDeviceGetHostAtomicCapabilities(capabilities, (const CUatomicOperation *)operations, count, device))
RUNTIME_BARE(cudaDeviceGetP2PAtomicCapabilities,
             (unsigned *capabilities, const enum cudaAtomicOperation *operations, unsigned count, int srcDevice,
              int dstDevice),
             cuDeviceGetP2PAtomicCapabilities(capabilities, (const CUatomicOperation *)operations, count, srcDevice,
                                              dstDevice))
RUNTIME(cudaDeviceEnablePeerAccess, (int peerDevice, unsigned flags), enable_peer(peerDevice, flags))
RUNTIME(cudaDeviceDisablePeerAccess, (int peerDevice), disable_peer(peerDevice))
RUNTIME_BARE(cudaGetDriverEntryPoint,
             (const char *symbol, void **funcPtr, unsigned long long flags,
              enum cudaDriverEntryPointQueryResult *driverStatus),
             driver_entry_point(symbol, funcPtr, CUDA_VERSION, flags, driverStatus))
RUNTIME_PER_THREAD(cudaGetDriverEntryPoint,
                   (const char *symbol, void **funcPtr, unsigned long long flags,
                    enum cudaDriverEntryPointQueryResult *driverStatus),
                   (symbol, funcPtr, flags, driverStatus))
RUNTIME_BARE(cudaGetDriverEntryPointByVersion,
             (const char *symbol, void **funcPtr, unsigned cudaVersion, unsigned long long flags,
              enum cudaDriverEntryPointQueryResult *driverStatus),
             driver_entry_point(symbol, funcPtr, cudaVersion, flags, driverStatus))
RUNTIME_PER_THREAD(cudaGetDriverEntryPointByVersion,
                   (const char *symbol, void **funcPtr, unsigned cudaVersion, unsigned long long flags,
                    enum cudaDriverEntryPointQueryResult *driverStatus),
                   (symbol, funcPtr, cudaVersion, flags, driverStatus))

/* Of CUDA 12: conversions for devices without double precision, of which there are none any more. */
static cudaError_t cudaSetDoubleForDevice(double *d) { return leave(d ? CUDA_SUCCESS : fail_null("d")); }
static cudaError_t cudaSetDoubleForHost(double *d) { return leave(d ? CUDA_SUCCESS : fail_null("d")); }

/* Versions need no device. */
static cudaError_t cudaDriverGetVersion(int *version) { return leave(cuDriverGetVersion(version)); }
static cudaError_t cudaRuntimeGetVersion(int *version) { return leave(runtime_version(version)); }

const struct entry runtime_device_entries[] = {
    RUNTIME_ENTRY(cudaGetDeviceCount),
    RUNTIME_ENTRY(cudaGetDeviceProperties),
    RUNTIME_ENTRY(cudaDeviceGetAttribute),
    RUNTIME_ENTRY(cudaDeviceGetByPCIBusId),
    RUNTIME_ENTRY(cudaDeviceGetPCIBusId),
    RUNTIME_ENTRY(cudaDeviceGetTexture1DLinearMaxWidth),
    RUNTIME_ENTRY(cudaChooseDevice),
    RUNTIME_ENTRY(cudaDeviceCanAccessPeer),
    RUNTIME_ENTRY(cudaDeviceGetP2PAttribute),
    RUNTIME_ENTRY(cudaDeviceGetHostAtomicCapabilities),
    RUNTIME_ENTRY(cudaDeviceGetP2PAtomicCapabilities),
    RUNTIME_ENTRY(cudaDeviceEnablePeerAccess),
    RUNTIME_ENTRY(cudaDeviceDisablePeerAccess),
    RUNTIME_ENTRY_STREAM(cudaGetDriverEntryPoint),
    RUNTIME_ENTRY_STREAM(cudaGetDriverEntryPointByVersion),
    RUNTIME_ENTRY(cudaDriverGetVersion),
    RUNTIME_ENTRY(cudaRuntimeGetVersion),
    RUNTIME_ENTRY(cudaSetDoubleForDevice),
    RUNTIME_ENTRY(cudaSetDoubleForHost),
    {NULL, NULL, NULL},
};
