/* Kernels: libraries, attributes, occupancy, launches (CUDA Runtime API, "Library Management", "Execution Control",
 * "Occupancy"). `func` is a cudaKernel_t, a cudaFunction_t, or, in programs compiled by nvcc, a host function that stands
 * for a kernel (host_code.c). */
#include "cudart.h"
#include "driver/device_side/above.h"
#include "driver/module/module.h"

/* What is no kernel is taken for a bad handle, unless it is null, as libcudart 13.0 takes it on an H200. */
CUresult function_of(const void *func, CUfunction *function) {
    CUkernel kernel = (CUkernel)func;
    if (!handle_is_live(func, HANDLE_KERNEL)) RETURN_IF(host_kernel(func, &kernel));
    CUresult status = function_find(kernel ? (CUfunction)(void *)kernel : (CUfunction)func, NULL, function);
    if (status == CUDA_ERROR_INVALID_HANDLE)
        return fail_runtime(
            func ? cudaErrorInvalidResourceHandle : cudaErrorInvalidDeviceFunction,
            "%p is not a kernel: it must be a cudaKernel_t of a library, a cudaFunction_t that is loaded, or a kernel of "
            "this program",
            func);
    return status;
}

/* Do something with the function behind `func`. */
#define WITH_FUNCTION(func, call) \
    ({                            \
        CUfunction function;      \
        function_of(func, &function) ?: (call); \
    })

/* ---- libraries ------------------------------------------------------------------------------------------------- */

RUNTIME(cudaLibraryLoadData,
        (cudaLibrary_t *library, const void *code, enum cudaJitOption *jitOptions, void **jitOptionsValues,
         unsigned numJitOptions, enum cudaLibraryOption *libraryOptions, void **libraryOptionValues,
         unsigned numLibraryOptions),
        cuLibraryLoadData(library, code, (CUjit_option *)jitOptions, jitOptionsValues, numJitOptions,
                          (CUlibraryOption *)libraryOptions, libraryOptionValues, numLibraryOptions))
RUNTIME(cudaLibraryLoadFromFile,
        (cudaLibrary_t *library, const char *fileName, enum cudaJitOption *jitOptions, void **jitOptionsValues,
         unsigned numJitOptions, enum cudaLibraryOption *libraryOptions, void **libraryOptionValues,
         unsigned numLibraryOptions),
        cuLibraryLoadFromFile(library, fileName, (CUjit_option *)jitOptions, jitOptionsValues, numJitOptions,
                              (CUlibraryOption *)libraryOptions, libraryOptionValues, numLibraryOptions))
RUNTIME(cudaLibraryUnload, (cudaLibrary_t library), cuLibraryUnload(library))
RUNTIME(cudaLibraryGetKernel, (cudaKernel_t *pKernel, cudaLibrary_t library, const char *name),
        cuLibraryGetKernel(pKernel, library, name))
RUNTIME(cudaLibraryGetGlobal, (void **dptr, size_t *bytes, cudaLibrary_t library, const char *name),
        cuLibraryGetGlobal((CUdeviceptr *)dptr, bytes, library, name))
RUNTIME(cudaLibraryGetManaged, (void **dptr, size_t *bytes, cudaLibrary_t library, const char *name),
        cuLibraryGetManaged((CUdeviceptr *)dptr, bytes, library, name))
RUNTIME(cudaLibraryGetKernelCount, (unsigned *count, cudaLibrary_t lib), cuLibraryGetKernelCount(count, lib))
RUNTIME(cudaLibraryEnumerateKernels, (cudaKernel_t *kernels, unsigned numKernels, cudaLibrary_t lib),
        cuLibraryEnumerateKernels(kernels, numKernels, lib))
RUNTIME(cudaKernelSetAttributeForDevice,
        (cudaKernel_t kernel, enum cudaFuncAttribute attr, int value, int device),
        cuKernelSetAttribute((CUfunction_attribute)attr, value, kernel, device))

/* The two functions that ask for a kernel have another status for what is none. */
static CUresult find_function(const void *func, CUfunction *function) {
    CUresult status = function_of(func, function);
    if (status != (CUresult)cudaErrorInvalidResourceHandle) return status;
    return thread_state.failed = (CUresult)cudaErrorInvalidDeviceFunction; /* the explanation stays */
}

static CUresult get_kernel(cudaKernel_t *kernel, const void *func) {
    CUfunction function;
    if (!kernel) return fail_null("kernelPtr");
    RETURN_IF(find_function(func, &function));
    if (!function->owner)
        return fail_runtime(cudaErrorInvalidDeviceFunction, "%p is a function of a module, not a kernel of a library",
                            func);
    *kernel = function->owner;
    return CUDA_SUCCESS;
}

RUNTIME(cudaGetKernel, (cudaKernel_t *kernelPtr, const void *entryFuncAddr), get_kernel(kernelPtr, entryFuncAddr))
RUNTIME(cudaGetFuncBySymbol, (cudaFunction_t *functionPtr, const void *symbolPtr),
        functionPtr ? find_function(symbolPtr, functionPtr) : fail_null("functionPtr"))

/* ---- attributes ------------------------------------------------------------------------------------------------ */

CUresult runtime_function_attributes(struct cudaFuncAttributes *attributes, CUfunction function,
                                     CUresult (*get)(int *value, CUfunction_attribute attribute, CUfunction function)) {
    static const struct {
        size_t offset, size;
        CUfunction_attribute attribute;
    } fields[] = {
#define FIELD(field, attribute)                                                                      \
    {offsetof(struct cudaFuncAttributes, field), sizeof(((struct cudaFuncAttributes *)0)->field),      \
     CU_FUNC_ATTRIBUTE_##attribute}
        FIELD(sharedSizeBytes, SHARED_SIZE_BYTES),
        FIELD(constSizeBytes, CONST_SIZE_BYTES),
        FIELD(localSizeBytes, LOCAL_SIZE_BYTES),
        FIELD(maxThreadsPerBlock, MAX_THREADS_PER_BLOCK),
        FIELD(numRegs, NUM_REGS),
        FIELD(ptxVersion, PTX_VERSION),
        FIELD(binaryVersion, BINARY_VERSION),
        FIELD(cacheModeCA, CACHE_MODE_CA),
        FIELD(maxDynamicSharedSizeBytes, MAX_DYNAMIC_SHARED_SIZE_BYTES),
        FIELD(preferredShmemCarveout, PREFERRED_SHARED_MEMORY_CARVEOUT),
        FIELD(clusterDimMustBeSet, CLUSTER_SIZE_MUST_BE_SET),
        FIELD(requiredClusterWidth, REQUIRED_CLUSTER_WIDTH),
        FIELD(requiredClusterHeight, REQUIRED_CLUSTER_HEIGHT),
        FIELD(requiredClusterDepth, REQUIRED_CLUSTER_DEPTH),
        FIELD(clusterSchedulingPolicyPreference, CLUSTER_SCHEDULING_POLICY_PREFERENCE),
        FIELD(nonPortableClusterSizeAllowed, NON_PORTABLE_CLUSTER_SIZE_ALLOWED),
#undef FIELD
    };
    struct cudaFuncAttributes made = {0};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        int value = 0;
        RETURN_IF(get(&value, fields[i].attribute, function));
        if (fields[i].size == sizeof(size_t)) *(size_t *)((char *)&made + fields[i].offset) = (size_t)value;
        else *(int *)((char *)&made + fields[i].offset) = value;
    }
    *attributes = made;
    return CUDA_SUCCESS;
}

static CUresult get_attributes(struct cudaFuncAttributes *attributes, const void *func) {
    CUfunction function;
    if (!attributes) return fail_null("attr");
    RETURN_IF(function_of(func, &function));
    return runtime_function_attributes(attributes, function, cuFuncGetAttribute);
}

RUNTIME(cudaFuncGetAttributes, (struct cudaFuncAttributes *attr, const void *func), get_attributes(attr, func))
RUNTIME(cudaFuncSetAttribute, (const void *func, enum cudaFuncAttribute attr, int value),
        WITH_FUNCTION(func, cuFuncSetAttribute(function, (CUfunction_attribute)attr, value)))
RUNTIME(cudaFuncSetCacheConfig, (const void *func, enum cudaFuncCache cacheConfig),
        WITH_FUNCTION(func, cuFuncSetCacheConfig(function, (CUfunc_cache)cacheConfig)))
RUNTIME(cudaFuncSetSharedMemConfig, (const void *func, enum cudaSharedMemConfig config),
        WITH_FUNCTION(func, cuFuncSetSharedMemConfig(function, (CUsharedconfig)config)))
RUNTIME(cudaFuncGetName, (const char **name, const void *func), WITH_FUNCTION(func, cuFuncGetName(name, function)))
RUNTIME(cudaFuncGetParamInfo, (const void *func, size_t paramIndex, size_t *paramOffset, size_t *paramSize),
        WITH_FUNCTION(func, cuFuncGetParamInfo(function, paramIndex, paramOffset, paramSize)))
RUNTIME(cudaFuncGetParamCount, (const void *func, size_t *paramCount),
        WITH_FUNCTION(func, cuFuncGetParamCount(function, paramCount)))

/* ---- launches -------------------------------------------------------------------------------------------------- */

/* A shape that no kernel can have on the device is refused before anything else is looked at, with the status that
 * libcudart has since CUDA 13, however the program names the kernel (recorded on an H200). */
static CUresult check_shape(const cudaLaunchConfig_t *config) {
    static const CUdevice_attribute limits[] = {
        CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X,  CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y,  CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z,
        CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z,
    };
    const dim3 grid = config->gridDim, block = config->blockDim;
    const unsigned shape[] = {grid.x, grid.y, grid.z, block.x, block.y, block.z};
    int device = 0, limit = 0;
    RETURN_IF(current_device(&device));
    for (int i = 0; i < 6; i++) {
        RETURN_IF(cuDeviceGetAttribute(&limit, limits[i], device));
        if (shape[i] - 1 >= (unsigned)limit)
            return fail_runtime(cudaErrorInvalidValue, "the %s has %u %s along %c: it must be from 1 to %d",
                                i < 3 ? "grid" : "block", shape[i], i < 3 ? "blocks" : "threads", 'x' + i % 3, limit);
    }
    uint64_t threads = (uint64_t)block.x * block.y * block.z;
    RETURN_IF(cuDeviceGetAttribute(&limit, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, device));
    if (threads > (uint64_t)limit)
        return fail_runtime(cudaErrorInvalidValue, "a block of %llu threads: the device allows %d",
                            (unsigned long long)threads, limit);
    return CUDA_SUCCESS;
}

static CUresult driver_config(const cudaLaunchConfig_t *config, CUlaunchConfig *made) {
    _Static_assert(sizeof(cudaLaunchAttribute) == sizeof(CUlaunchAttribute),
                   "the attributes are handed on as they are");
    if (!config) return fail_null("config");
    if (config->dynamicSmemBytes > UINT32_MAX)
        return fail(CUDA_ERROR_INVALID_VALUE, "%zu bytes of dynamic shared memory are more than any device has",
                    config->dynamicSmemBytes);
    *made = (CUlaunchConfig){config->gridDim.x,
                             config->gridDim.y,
                             config->gridDim.z,
                             config->blockDim.x,
                             config->blockDim.y,
                             config->blockDim.z,
                             (unsigned)config->dynamicSmemBytes,
                             config->stream,
                             (CUlaunchAttribute *)config->attrs,
                             config->numAttrs};
    return CUDA_SUCCESS;
}

static CUresult launch(const cudaLaunchConfig_t *config, const void *func, void **arguments) {
    CUlaunchConfig made;
    CUfunction function;
    RETURN_IF(driver_config(config, &made));
    RETURN_IF(function_of(func, &function));
    RETURN_IF(check_shape(config));
    return cuLaunchKernelEx(&made, function, arguments, NULL);
}

/* A block with more shared memory than the kernel may use finds no room, says a cooperative launch (recorded likewise). */
static CUresult check_room(const cudaLaunchConfig_t *config, const void *func) {
    CUfunction function;
    RETURN_IF(function_of(func, &function));
    RETURN_IF(check_shape(config));
    int most = function_max_dynamic_shared(function);
    if (config->dynamicSmemBytes <= (size_t)most) return CUDA_SUCCESS;
    return fail(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
                "%zu bytes of dynamic shared memory, but the kernel may use %d: set "
                "cudaFuncAttributeMaxDynamicSharedMemorySize first",
                config->dynamicSmemBytes, most);
}

static CUresult launch_plain(const void *func, dim3 grid, dim3 block, void **arguments, size_t dynamic_shared,
                             cudaStream_t stream, bool cooperative) {
    cudaLaunchAttribute attribute = {.id = cudaLaunchAttributeCooperative, .val = {.cooperative = 1}};
    cudaLaunchConfig_t config = {grid, block, dynamic_shared, stream, &attribute, cooperative};
    if (cooperative) RETURN_IF(check_room(&config, func));
    return launch(&config, func, arguments);
}

RUNTIME_STREAM(cudaLaunchKernel,
               (const void *func, dim3 gridDim, dim3 blockDim, void **args, size_t sharedMem, cudaStream_t stream),
               (func, gridDim, blockDim, args, sharedMem, stream),
               launch_plain(func, gridDim, blockDim, args, sharedMem, stream, false))
RUNTIME_STREAM(cudaLaunchCooperativeKernel,
               (const void *func, dim3 gridDim, dim3 blockDim, void **args, size_t sharedMem, cudaStream_t stream),
               (func, gridDim, blockDim, args, sharedMem, stream),
               launch_plain(func, gridDim, blockDim, args, sharedMem, stream, true))
RUNTIME_STREAM(cudaLaunchKernelExC, (const cudaLaunchConfig_t *config, const void *func, void **args),
               (config, func, args), launch(config, func, args))

/* ---- occupancy ------------------------------------------------------------------------------------------------- */

static CUresult potential_cluster(int *size, const void *func, const cudaLaunchConfig_t *config) {
    CUlaunchConfig made;
    RETURN_IF(driver_config(config, &made));
    return WITH_FUNCTION(func, cuOccupancyMaxPotentialClusterSize(size, function, &made));
}

static CUresult active_clusters(int *count, const void *func, const cudaLaunchConfig_t *config) {
    CUlaunchConfig made;
    RETURN_IF(driver_config(config, &made));
    return WITH_FUNCTION(func, cuOccupancyMaxActiveClusters(count, function, &made));
}

RUNTIME(cudaOccupancyMaxActiveBlocksPerMultiprocessor,
        (int *numBlocks, const void *func, int blockSize, size_t dynamicSMemSize),
        WITH_FUNCTION(func,
                      cuOccupancyMaxActiveBlocksPerMultiprocessor(numBlocks, function, blockSize, dynamicSMemSize)))
RUNTIME(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
        (int *numBlocks, const void *func, int blockSize, size_t dynamicSMemSize, unsigned flags),
        WITH_FUNCTION(func, cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(numBlocks, function, blockSize,
                                                                                 dynamicSMemSize, flags)))
RUNTIME(cudaOccupancyAvailableDynamicSMemPerBlock,
        (size_t *dynamicSmemSize, const void *func, int numBlocks, int blockSize),
        WITH_FUNCTION(func, cuOccupancyAvailableDynamicSMemPerBlock(dynamicSmemSize, function, numBlocks, blockSize)))
RUNTIME(cudaOccupancyMaxPotentialClusterSize,
        (int *clusterSize, const void *func, const cudaLaunchConfig_t *launchConfig),
        potential_cluster(clusterSize, func, launchConfig))
RUNTIME(cudaOccupancyMaxActiveClusters, (int *numClusters, const void *func, const cudaLaunchConfig_t *launchConfig),
        active_clusters(numClusters, func, launchConfig))

const struct entry runtime_launch_entries[] = {
    RUNTIME_ENTRY(cudaLibraryLoadData),
    RUNTIME_ENTRY(cudaLibraryLoadFromFile),
    RUNTIME_ENTRY(cudaLibraryUnload),
    RUNTIME_ENTRY(cudaLibraryGetKernel),
    RUNTIME_ENTRY(cudaLibraryGetGlobal),
    RUNTIME_ENTRY(cudaLibraryGetManaged),
    RUNTIME_ENTRY(cudaLibraryGetKernelCount),
    RUNTIME_ENTRY(cudaLibraryEnumerateKernels),
    RUNTIME_ENTRY(cudaKernelSetAttributeForDevice),
    RUNTIME_ENTRY(cudaGetKernel),
    RUNTIME_ENTRY(cudaGetFuncBySymbol),
    RUNTIME_ENTRY(cudaFuncGetAttributes),
    RUNTIME_ENTRY(cudaFuncSetAttribute),
    RUNTIME_ENTRY(cudaFuncSetCacheConfig),
    RUNTIME_ENTRY(cudaFuncSetSharedMemConfig),
    RUNTIME_ENTRY(cudaFuncGetName),
    RUNTIME_ENTRY(cudaFuncGetParamInfo),
    RUNTIME_ENTRY(cudaFuncGetParamCount),
    RUNTIME_ENTRY_STREAM(cudaLaunchKernel),
    RUNTIME_ENTRY_STREAM(cudaLaunchCooperativeKernel),
    RUNTIME_ENTRY_STREAM(cudaLaunchKernelExC),
    RUNTIME_ENTRY(cudaOccupancyMaxActiveBlocksPerMultiprocessor),
    RUNTIME_ENTRY(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags),
    RUNTIME_ENTRY(cudaOccupancyAvailableDynamicSMemPerBlock),
    RUNTIME_ENTRY(cudaOccupancyMaxPotentialClusterSize),
    RUNTIME_ENTRY(cudaOccupancyMaxActiveClusters),
    {NULL, NULL, NULL},
};
