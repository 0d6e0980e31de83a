/* The runtime as CUDA 12 has it, for programs that are linked with its libcudart.so.12.
 *
 * Most functions are the same in both majors. Some names have other signatures since CUDA 13, which had them with a _v2
 * before; and cudaDeviceProp lost eight fields. */
#include "cudart.h"
#include "driver/lookup.h"

enum { VERSION = 12090 };

/* ---- properties of devices ------------------------------------------------------------------------------------- */

struct device_properties {
    char name[256];
    cudaUUID_t uuid;
    char luid[8];
    unsigned luidDeviceNodeMask;
    size_t totalGlobalMem;
    size_t sharedMemPerBlock;
    int regsPerBlock;
    int warpSize;
    size_t memPitch;
    int maxThreadsPerBlock;
    int maxThreadsDim[3];
    int maxGridSize[3];
    int clockRate;
    size_t totalConstMem;
    int major;
    int minor;
    size_t textureAlignment;
    size_t texturePitchAlignment;
    int deviceOverlap;
    int multiProcessorCount;
    int kernelExecTimeoutEnabled;
    int integrated;
    int canMapHostMemory;
    int computeMode;
    int maxTexture1D;
    int maxTexture1DMipmap;
    int maxTexture1DLinear;
    int maxTexture2D[2];
    int maxTexture2DMipmap[2];
    int maxTexture2DLinear[3];
    int maxTexture2DGather[2];
    int maxTexture3D[3];
    int maxTexture3DAlt[3];
    int maxTextureCubemap;
    int maxTexture1DLayered[2];
    int maxTexture2DLayered[3];
    int maxTextureCubemapLayered[2];
    int maxSurface1D;
    int maxSurface2D[2];
    int maxSurface3D[3];
    int maxSurface1DLayered[2];
    int maxSurface2DLayered[3];
    int maxSurfaceCubemap;
    int maxSurfaceCubemapLayered[2];
    size_t surfaceAlignment;
    int concurrentKernels;
    int ECCEnabled;
    int pciBusID;
    int pciDeviceID;
    int pciDomainID;
    int tccDriver;
    int asyncEngineCount;
    int unifiedAddressing;
    int memoryClockRate;
    int memoryBusWidth;
    int l2CacheSize;
    int persistingL2CacheMaxSize;
    int maxThreadsPerMultiProcessor;
    int streamPrioritiesSupported;
    int globalL1CacheSupported;
    int localL1CacheSupported;
    size_t sharedMemPerMultiprocessor;
    int regsPerMultiprocessor;
    int managedMemory;
    int isMultiGpuBoard;
    int multiGpuBoardGroupID;
    int hostNativeAtomicSupported;
    int singleToDoublePrecisionPerfRatio;
    int pageableMemoryAccess;
    int concurrentManagedAccess;
    int computePreemptionSupported;
    int canUseHostPointerForRegisteredMem;
    int cooperativeLaunch;
    int cooperativeMultiDeviceLaunch;
    size_t sharedMemPerBlockOptin;
    int pageableMemoryAccessUsesHostPageTables;
    int directManagedMemAccessFromHost;
    int maxBlocksPerMultiProcessor;
    int accessPolicyMaxWindowSize;
    size_t reservedSharedMemPerBlock;
    int hostRegisterSupported;
    int sparseCudaArraySupported;
    int hostRegisterReadOnlySupported;
    int timelineSemaphoreInteropSupported;
    int memoryPoolsSupported;
    int gpuDirectRDMASupported;
    unsigned gpuDirectRDMAFlushWritesOptions;
    int gpuDirectRDMAWritesOrdering;
    unsigned memoryPoolSupportedHandleTypes;
    int deferredMappingCudaArraySupported;
    int ipcEventSupported;
    int clusterLaunch;
    int unifiedFunctionPointers;
    int reserved[63];
};
_Static_assert(sizeof(struct device_properties) == 1032, "the layout of CUDA 12");
enum { SIZE_IN_CUDA_11 = offsetof(struct device_properties, hostRegisterSupported) }; /* 728 */

#define SAME_FIELDS(X) \
    X(name) X(uuid) X(luid) X(luidDeviceNodeMask) X(totalGlobalMem) X(sharedMemPerBlock) X(regsPerBlock) X(warpSize) \
    X(memPitch) X(maxThreadsPerBlock) X(maxThreadsDim) X(maxGridSize) X(totalConstMem) X(major) X(minor) \
    X(textureAlignment) X(texturePitchAlignment) X(multiProcessorCount) X(integrated) X(canMapHostMemory) \
    X(maxTexture1D) X(maxTexture1DMipmap) X(maxTexture2D) X(maxTexture2DMipmap) X(maxTexture2DLinear) \
    X(maxTexture2DGather) X(maxTexture3D) X(maxTexture3DAlt) X(maxTextureCubemap) X(maxTexture1DLayered) \
    X(maxTexture2DLayered) X(maxTextureCubemapLayered) X(maxSurface1D) X(maxSurface2D) X(maxSurface3D) \
    X(maxSurface1DLayered) X(maxSurface2DLayered) X(maxSurfaceCubemap) X(maxSurfaceCubemapLayered) \
    X(surfaceAlignment) X(concurrentKernels) X(ECCEnabled) X(pciBusID) X(pciDeviceID) X(pciDomainID) X(tccDriver) \
    X(asyncEngineCount) X(unifiedAddressing) X(memoryBusWidth) X(l2CacheSize) X(persistingL2CacheMaxSize) \
    X(maxThreadsPerMultiProcessor) X(streamPrioritiesSupported) X(globalL1CacheSupported) X(localL1CacheSupported) \
    X(sharedMemPerMultiprocessor) X(regsPerMultiprocessor) X(managedMemory) X(isMultiGpuBoard) \
    X(multiGpuBoardGroupID) X(hostNativeAtomicSupported) X(pageableMemoryAccess) X(concurrentManagedAccess) \
    X(computePreemptionSupported) X(canUseHostPointerForRegisteredMem) X(cooperativeLaunch) \
    X(sharedMemPerBlockOptin) X(pageableMemoryAccessUsesHostPageTables) X(directManagedMemAccessFromHost) \
    X(maxBlocksPerMultiProcessor) X(accessPolicyMaxWindowSize) X(reservedSharedMemPerBlock) X(hostRegisterSupported) \
    X(sparseCudaArraySupported) X(hostRegisterReadOnlySupported) X(timelineSemaphoreInteropSupported) \
    X(memoryPoolsSupported) X(gpuDirectRDMASupported) X(gpuDirectRDMAFlushWritesOptions) \
    X(gpuDirectRDMAWritesOrdering) X(memoryPoolSupportedHandleTypes) X(deferredMappingCudaArraySupported) \
    X(ipcEventSupported) X(clusterLaunch) X(unifiedFunctionPointers)

static const struct {
    size_t offset;
    CUdevice_attribute attribute;
} fields[] = {
#define FIELD(field, attribute) {offsetof(struct device_properties, field), CU_DEVICE_ATTRIBUTE_##attribute}
    FIELD(clockRate, CLOCK_RATE),
    FIELD(deviceOverlap, GPU_OVERLAP),
    FIELD(kernelExecTimeoutEnabled, KERNEL_EXEC_TIMEOUT),
    FIELD(computeMode, COMPUTE_MODE),
    FIELD(maxTexture1DLinear, MAXIMUM_TEXTURE1D_LINEAR_WIDTH),
    FIELD(memoryClockRate, MEMORY_CLOCK_RATE),
    FIELD(singleToDoublePrecisionPerfRatio, SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO),
    FIELD(cooperativeMultiDeviceLaunch, COOPERATIVE_MULTI_DEVICE_LAUNCH),
#undef FIELD
};

static CUresult get_properties(struct device_properties *made, int device) {
    struct cudaDeviceProp newer;
    cudaError_t (*get)(struct cudaDeviceProp *, int) = runtime_lookup("cudaGetDeviceProperties");
    RETURN_IF((CUresult)get(&newer, device));
    memset(made, 0, sizeof *made);
#define COPY(field) memcpy(&made->field, &newer.field, sizeof made->field);
    SAME_FIELDS(COPY)
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        RETURN_IF(cuDeviceGetAttribute((int *)((char *)made + fields[i].offset), fields[i].attribute, device));
    return CUDA_SUCCESS;
}

static CUresult give_properties(void *properties, size_t size, int device) {
    struct device_properties made;
    if (!properties) return fail_null("prop");
    RETURN_IF(get_properties(&made, device));
    memcpy(properties, &made, size);
    return CUDA_SUCCESS;
}

RUNTIME_BARE(get_properties_11, (void *prop, int device), give_properties(prop, SIZE_IN_CUDA_11, device))
RUNTIME_BARE(get_properties_12, (struct device_properties *prop, int device), give_properties(prop, sizeof *prop, device))

/* ---- older signatures ------------------------------------------------------------------------------------------ */

/* A function of the driver that has the older signature, too. */
#define OLDER(symbol, parameters) ((CUresult(*) parameters)lookup(symbol))

static CUresult version(int *runtime_version) {
    if (!runtime_version) return fail_null("runtimeVersion");
    *runtime_version = VERSION;
    return CUDA_SUCCESS;
}

static cudaError_t copy_batch(void **targets, void **sources, size_t *sizes, size_t count,
                              struct cudaMemcpyAttributes *attributes, size_t *indices, size_t attribute_count,
                              size_t *failed, cudaStream_t stream) {
    cudaError_t (*copy)(void **, void **, size_t *, size_t, struct cudaMemcpyAttributes *, size_t *, size_t,
                        cudaStream_t) = runtime_lookup("cudaMemcpyBatchAsync");
    cudaError_t status = copy(targets, sources, sizes, count, attributes, indices, attribute_count, stream);
    if (status && failed) *failed = SIZE_MAX; /* no copy in particular */
    return status;
}

static cudaError_t copy_boxes(size_t count, struct cudaMemcpy3DBatchOp *copies, size_t *failed,
                              unsigned long long flags, cudaStream_t stream) {
    cudaError_t (*copy)(size_t, struct cudaMemcpy3DBatchOp *, unsigned long long, cudaStream_t) =
        runtime_lookup("cudaMemcpy3DBatchAsync");
    cudaError_t status = copy(count, copies, flags, stream);
    if (status && failed) *failed = SIZE_MAX;
    return status;
}

typedef enum cudaDriverEntryPointQueryResult found_t;

static cudaError_t entry_point(const char *symbol, void **function, unsigned long long flags, found_t *found) {
    cudaError_t (*get)(const char *, void **, unsigned, unsigned long long, found_t *) =
        runtime_lookup("cudaGetDriverEntryPointByVersion");
    return get(symbol, function, VERSION, flags, found);
}

static cudaError_t entry_point_per_thread(const char *symbol, void **function, unsigned long long flags,
                                          found_t *found) {
    cudaError_t (*get)(const char *, void **, unsigned, unsigned long long, found_t *) =
        runtime_lookup("cudaGetDriverEntryPointByVersion_ptsz");
    return get(symbol, function, VERSION, flags, found);
}

RUNTIME_PER_THREAD(copy_batch,
                   (void **targets, void **sources, size_t *sizes, size_t count, struct cudaMemcpyAttributes *attributes,
                    size_t *indices, size_t attribute_count, size_t *failed, cudaStream_t stream),
                   (targets, sources, sizes, count, attributes, indices, attribute_count, failed, stream))
RUNTIME_PER_THREAD(copy_boxes,
                   (size_t count, struct cudaMemcpy3DBatchOp *copies, size_t *failed, unsigned long long flags,
                    cudaStream_t stream),
                   (count, copies, failed, flags, stream))
RUNTIME_BARE(runtime_version, (int *runtimeVersion), version(runtimeVersion))
RUNTIME(advise, (const void *pointer, size_t count, enum cudaMemoryAdvise advice, int device),
        OLDER("cuMemAdvise_v1", (CUdeviceptr, size_t, CUmem_advise, CUdevice))((CUdeviceptr)pointer, count,
                                                                             (CUmem_advise)advice, device))
RUNTIME_STREAM(prefetch, (const void *pointer, size_t count, int device, cudaStream_t stream),
               (pointer, count, device, stream),
               OLDER("cuMemPrefetchAsync_v1", (CUdeviceptr, size_t, CUdevice, CUstream))((CUdeviceptr)pointer, count,
                                                                                         device, stream))
RUNTIME_STREAM(capture_info, (cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id),
               (stream, status, id),
               cuStreamGetCaptureInfo(stream, (CUstreamCaptureStatus *)status, (cuuint64_t *)id, NULL, NULL, NULL, NULL))
RUNTIME_STREAM(capture_info_v2,
               (cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id, cudaGraph_t *graph,
                const cudaGraphNode_t **dependencies, size_t *count),
               (stream, status, id, graph, dependencies, count),
               OLDER("cuStreamGetCaptureInfo_v2", (CUstream, CUstreamCaptureStatus *, cuuint64_t *, CUgraph *,
                                                   const CUgraphNode **, size_t *))(
                   stream, (CUstreamCaptureStatus *)status, (cuuint64_t *)id, graph, dependencies, count))
RUNTIME_STREAM(update_capture, (cudaStream_t stream, cudaGraphNode_t *dependencies, size_t count, unsigned flags),
               (stream, dependencies, count, flags),
               OLDER("cuStreamUpdateCaptureDependencies_v1", (CUstream, CUgraphNode *, size_t, unsigned))(
                   stream, dependencies, count, flags))
RUNTIME(get_edges, (cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to, size_t *count),
        OLDER("cuGraphGetEdges_v1", (CUgraph, CUgraphNode *, CUgraphNode *, size_t *))(graph, from, to, count))
RUNTIME(get_dependencies, (cudaGraphNode_t node, cudaGraphNode_t *nodes, size_t *count),
        OLDER("cuGraphNodeGetDependencies_v1", (CUgraphNode, CUgraphNode *, size_t *))(node, nodes, count))
RUNTIME(get_dependents, (cudaGraphNode_t node, cudaGraphNode_t *nodes, size_t *count),
        OLDER("cuGraphNodeGetDependentNodes_v1", (CUgraphNode, CUgraphNode *, size_t *))(node, nodes, count))
RUNTIME(add_dependencies, (cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to, size_t count),
        OLDER("cuGraphAddDependencies_v1", (CUgraph, const CUgraphNode *, const CUgraphNode *, size_t))(graph, from, to,
                                                                                                      count))
RUNTIME(remove_dependencies, (cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to, size_t count),
        OLDER("cuGraphRemoveDependencies_v1", (CUgraph, const CUgraphNode *, const CUgraphNode *, size_t))(graph, from,
                                                                                                         to, count))

/* cudaGraphAddNode of CUDA 13 with edges of the usual kind. */
static cudaError_t add_node(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies, size_t count,
                            struct cudaGraphNodeParams *params) {
    cudaError_t (*add)(cudaGraphNode_t *, cudaGraph_t, const cudaGraphNode_t *, const cudaGraphEdgeData *, size_t,
                       struct cudaGraphNodeParams *) = runtime_lookup("cudaGraphAddNode");
    return add(node, graph, dependencies, NULL, count, params);
}

/* ---- the table ------------------------------------------------------------------------------------------------- */

static const struct entry entries[] = {
    ENTRY_AS(cudaGetDeviceProperties, get_properties_11),
    ENTRY_AS(cudaGetDeviceProperties_v2, get_properties_12),
    ENTRY_AS(cudaRuntimeGetVersion, runtime_version),
    ENTRY_STREAM_AS(cudaMemcpyBatchAsync, copy_batch),
    ENTRY_STREAM_AS(cudaMemcpy3DBatchAsync, copy_boxes),
    ENTRY_STREAM_AS(cudaGetDriverEntryPoint, entry_point),
    ENTRY_AS(cudaMemAdvise, advise),
    ENTRY_STREAM_AS(cudaMemPrefetchAsync, prefetch),
    ENTRY_STREAM_AS(cudaStreamGetCaptureInfo, capture_info),
    ENTRY_STREAM_AS(cudaStreamGetCaptureInfo_v2, capture_info_v2),
    ENTRY_STREAM_AS(cudaStreamUpdateCaptureDependencies, update_capture),
    ENTRY_AS(cudaGraphGetEdges, get_edges),
    ENTRY_AS(cudaGraphNodeGetDependencies, get_dependencies),
    ENTRY_AS(cudaGraphNodeGetDependentNodes, get_dependents),
    ENTRY_AS(cudaGraphAddDependencies, add_dependencies),
    ENTRY_AS(cudaGraphRemoveDependencies, remove_dependencies),
    ENTRY_AS(cudaGraphAddNode, add_node),
    {NULL, NULL, NULL},
};

/* Names with a version, which CUDA 13 has without. */
static const char *const renamed[][2] = {
    {"cudaEventElapsedTime_v2", "cudaEventElapsedTime"},
    {"cudaGraphAddDependencies_v2", "cudaGraphAddDependencies"},
    {"cudaGraphAddNode_v2", "cudaGraphAddNode"},
    {"cudaGraphGetEdges_v2", "cudaGraphGetEdges"},
    {"cudaGraphNodeGetDependencies_v2", "cudaGraphNodeGetDependencies"},
    {"cudaGraphNodeGetDependentNodes_v2", "cudaGraphNodeGetDependentNodes"},
    {"cudaGraphRemoveDependencies_v2", "cudaGraphRemoveDependencies"},
    {"cudaMemAdvise_v2", "cudaMemAdvise"},
    {"cudaMemPrefetchAsync_v2", "cudaMemPrefetchAsync"},
    {"cudaMemPrefetchAsync_v2_ptsz", "cudaMemPrefetchAsync_ptsz"},
    {"cudaStreamGetCaptureInfo_v3", "cudaStreamGetCaptureInfo"},
    {"cudaStreamGetCaptureInfo_v3_ptsz", "cudaStreamGetCaptureInfo_ptsz"},
    {"cudaStreamUpdateCaptureDependencies_v2", "cudaStreamUpdateCaptureDependencies"},
    {"cudaStreamUpdateCaptureDependencies_v2_ptsz", "cudaStreamUpdateCaptureDependencies_ptsz"},
};

void *host_lookup_12(const char *symbol) {
    static const struct entry *const tables[] = {entries, NULL};
    void *function = entry_lookup(tables, symbol);
    if (function) return function;
    for (size_t i = 0; i < sizeof renamed / sizeof *renamed; i++)
        if (!strcmp(renamed[i][0], symbol)) return runtime_lookup(renamed[i][1]);
    return host_lookup(symbol);
}
