/* Which device and context a call of the runtime uses (CUDA Runtime API, "Device Management" and "Interactions with the
 * CUDA Driver API").
 *
 * A context that the program made current with the driver is used as it is. Without one it is the primary context of
 * the thread's device, which the runtime retains once per process when it first needs it, and makes active again after
 * a reset. */
#include "cudart.h"

__thread struct runtime_thread runtime_thread;
_Atomic bool runtime_retains[MAX_DEVICES];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int first_device; /* of threads that chose none: the first one of cudaSetValidDevices */

CUresult start_driver(void) {
    int phase = atomic_load_explicit(&driver_phase, memory_order_relaxed);
    return likely(phase == DRIVER_READY || phase == DRIVER_LOCKED) ? CUDA_SUCCESS : cuInit(0);
}

/* Retaining a second time is what activates a context that was reset; one reference is enough to keep. */
CUresult primary_context(int ordinal, CUcontext *context) {
    RETURN_IF(start_driver());
    struct device *device = NULL;
    RETURN_IF(device_get(ordinal, &device));
    *context = device->primary;
    if (likely(runtime_retains[ordinal] && device->primary->active)) return CUDA_SUCCESS;
    pthread_mutex_lock(&lock);
    CUresult status = cuDevicePrimaryCtxRetain(context, ordinal);
    if (!status && runtime_retains[ordinal] && device->primary_users > 1) cuDevicePrimaryCtxRelease(ordinal);
    if (!status) runtime_retains[ordinal] = true;
    pthread_mutex_unlock(&lock);
    return status;
}

CUresult make_current(void) {
    RETURN_IF(start_driver());
    CUcontext context = current_context();
    if (context && !context->is_primary) return context_check(context); /* it was destroyed */
    int device = 0;
    RETURN_IF(current_device(&device));
    RETURN_IF(primary_context(device, &context));
    return current_context() ? CUDA_SUCCESS : cuCtxSetCurrent(context);
}

CUresult current_device(int *device) {
    CUcontext context = current_context();
    *device = context ? context->device->ordinal : runtime_thread.has_device ? runtime_thread.device : first_device;
    return CUDA_SUCCESS;
}

static CUresult set_device(int device) {
    CUcontext context;
    RETURN_IF(primary_context(device, &context));
    RETURN_IF(cuCtxSetCurrent(context));
    runtime_thread.has_device = true;
    runtime_thread.device = device;
    return CUDA_SUCCESS;
}

static CUresult get_device(int *device) { return device ? current_device(device) : fail_null("device"); }

static CUresult set_valid_devices(const int *list, int count) {
    if (!list) return fail_null("device_arr");
    if (count < 1 || count > device_count)
        return fail(CUDA_ERROR_INVALID_VALUE, "len is %d, but there are %d devices to list", count, device_count);
    for (int i = 0; i < count; i++) {
        struct device *device;
        RETURN_IF(device_get(list[i], &device));
    }
    first_device = list[0];
    return CUDA_SUCCESS;
}

enum { FLAGS_ARE_VALID = 1, MAP_HOST = 8 }; /* cudaInitDeviceFlagsAreValid, cudaDeviceMapHost */

static CUresult init_device(int device, unsigned device_flags, unsigned flags) {
    CUcontext context;
    if (flags & ~(unsigned)FLAGS_ARE_VALID)
        return fail(CUDA_ERROR_INVALID_VALUE, "%#x are not flags of cudaInitDevice", flags);
    if (flags) RETURN_IF(cuDevicePrimaryCtxSetFlags(device, device_flags));
    return primary_context(device, &context);
}

static CUresult set_flags(unsigned flags) {
    int device = 0;
    RETURN_IF(current_device(&device));
    return cuDevicePrimaryCtxSetFlags(device, flags);
}

/* Memory of the host can always be mapped for the device, whatever was set. */
static CUresult get_flags(unsigned *flags) {
    int device = 0, active;
    if (!flags) return fail_null("flags");
    CUcontext context = current_context();
    if (context && !context->is_primary) return cuCtxGetFlags(flags);
    RETURN_IF(current_device(&device));
    RETURN_IF(cuDevicePrimaryCtxGetState(device, flags, &active));
    *flags |= MAP_HOST;
    return CUDA_SUCCESS;
}

static CUresult reset(void) {
    int device = 0;
    RETURN_IF(current_device(&device));
    return cuDevicePrimaryCtxReset(device);
}

RUNTIME_BARE(cudaSetDevice, (int device), set_device(device))
RUNTIME_BARE(cudaGetDevice, (int *device), get_device(device))
RUNTIME_BARE(cudaSetValidDevices, (int *device_arr, int len), set_valid_devices(device_arr, len))
RUNTIME_BARE(cudaInitDevice, (int device, unsigned deviceFlags, unsigned flags),
             init_device(device, deviceFlags, flags))
RUNTIME_BARE(cudaSetDeviceFlags, (unsigned flags), set_flags(flags))
RUNTIME_BARE(cudaGetDeviceFlags, (unsigned *flags), get_flags(flags))
RUNTIME_BARE(cudaDeviceReset, (void), reset())
RUNTIME_BARE(cudaThreadExit, (void), reset())
RUNTIME(cudaDeviceSynchronize, (void), cuCtxSynchronize())
RUNTIME(cudaThreadSynchronize, (void), cuCtxSynchronize())
RUNTIME(cudaDeviceSetLimit, (enum cudaLimit limit, size_t value), cuCtxSetLimit((CUlimit)limit, value))
RUNTIME(cudaThreadSetLimit, (enum cudaLimit limit, size_t value), cuCtxSetLimit((CUlimit)limit, value))
RUNTIME(cudaDeviceGetLimit, (size_t *pValue, enum cudaLimit limit), cuCtxGetLimit(pValue, (CUlimit)limit))
RUNTIME(cudaThreadGetLimit, (size_t *pValue, enum cudaLimit limit), cuCtxGetLimit(pValue, (CUlimit)limit))
RUNTIME(cudaDeviceGetCacheConfig, (enum cudaFuncCache *pCacheConfig), cuCtxGetCacheConfig((CUfunc_cache *)pCacheConfig))
RUNTIME(cudaThreadGetCacheConfig, (enum cudaFuncCache *pCacheConfig), cuCtxGetCacheConfig((CUfunc_cache *)pCacheConfig))
RUNTIME(cudaDeviceSetCacheConfig, (enum cudaFuncCache cacheConfig), cuCtxSetCacheConfig((CUfunc_cache)cacheConfig))
RUNTIME(cudaThreadSetCacheConfig, (enum cudaFuncCache cacheConfig), cuCtxSetCacheConfig((CUfunc_cache)cacheConfig))
RUNTIME(cudaDeviceGetSharedMemConfig, (enum cudaSharedMemConfig *pConfig),
        cuCtxGetSharedMemConfig((CUsharedconfig *)pConfig))
RUNTIME(cudaDeviceSetSharedMemConfig, (enum cudaSharedMemConfig config),
        cuCtxSetSharedMemConfig((CUsharedconfig)config))
RUNTIME(cudaDeviceGetStreamPriorityRange, (int *leastPriority, int *greatestPriority),
        cuCtxGetStreamPriorityRange(leastPriority, greatestPriority))
RUNTIME(cudaCtxResetPersistingL2Cache, (void), cuCtxResetPersistingL2Cache())
RUNTIME(cudaProfilerStart, (void), cuProfilerStart())
RUNTIME(cudaProfilerStop, (void), cuProfilerStop())

const struct entry runtime_context_entries[] = {
    RUNTIME_ENTRY(cudaSetDevice),
    RUNTIME_ENTRY(cudaGetDevice),
    RUNTIME_ENTRY(cudaSetValidDevices),
    RUNTIME_ENTRY(cudaInitDevice),
    RUNTIME_ENTRY(cudaSetDeviceFlags),
    RUNTIME_ENTRY(cudaGetDeviceFlags),
    RUNTIME_ENTRY(cudaDeviceReset),
    RUNTIME_ENTRY(cudaThreadExit),
    RUNTIME_ENTRY(cudaDeviceSynchronize),
    RUNTIME_ENTRY(cudaThreadSynchronize),
    RUNTIME_ENTRY(cudaDeviceSetLimit),
    RUNTIME_ENTRY(cudaThreadSetLimit),
    RUNTIME_ENTRY(cudaDeviceGetLimit),
    RUNTIME_ENTRY(cudaThreadGetLimit),
    RUNTIME_ENTRY(cudaDeviceGetCacheConfig),
    RUNTIME_ENTRY(cudaThreadGetCacheConfig),
    RUNTIME_ENTRY(cudaDeviceSetCacheConfig),
    RUNTIME_ENTRY(cudaThreadSetCacheConfig),
    RUNTIME_ENTRY(cudaDeviceGetSharedMemConfig),
    RUNTIME_ENTRY(cudaDeviceSetSharedMemConfig),
    RUNTIME_ENTRY(cudaDeviceGetStreamPriorityRange),
    RUNTIME_ENTRY(cudaCtxResetPersistingL2Cache),
    RUNTIME_ENTRY(cudaProfilerStart),
    RUNTIME_ENTRY(cudaProfilerStop),
    {NULL, NULL, NULL},
};
