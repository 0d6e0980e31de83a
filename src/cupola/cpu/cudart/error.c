/* Statuses of the runtime: names and descriptions, which need no device, and the error that a thread met last (CUDA
 * Runtime API, "Error Handling"). The values of cudaError are those of CUresult wherever both have the error. */
#include "cudart.h"
#include "driver/device_side/above.h"

static const struct {
    cudaError_t status;
    const char *name, *text;
} errors[] = {
#define ERROR(name, text) {name, #name, text}
    ERROR(cudaSuccess, "no error"),
    ERROR(cudaErrorInvalidValue, "invalid argument"),
    ERROR(cudaErrorMemoryAllocation, "out of memory"),
    ERROR(cudaErrorInitializationError, "initialization error"),
    ERROR(cudaErrorCudartUnloading, "driver shutting down"),
    ERROR(cudaErrorProfilerDisabled, "profiler disabled while using external profiling tool"),
    ERROR(cudaErrorProfilerNotInitialized, "profiler not initialized: call cudaProfilerInitialize()"),
    ERROR(cudaErrorProfilerAlreadyStarted, "profiler already started"),
    ERROR(cudaErrorProfilerAlreadyStopped, "profiler already stopped"),
    ERROR(cudaErrorInvalidConfiguration, "invalid configuration argument"),
    ERROR(cudaErrorVersionTranslation,
          "Driver is newer than runtime and returned parameters the runtime cannot process"),
    ERROR(cudaErrorInvalidPitchValue, "invalid pitch argument"),
    ERROR(cudaErrorInvalidSymbol, "invalid device symbol"),
    ERROR(cudaErrorInvalidHostPointer, "invalid host pointer"),
    ERROR(cudaErrorInvalidDevicePointer, "invalid device pointer"),
    ERROR(cudaErrorInvalidTexture, "invalid texture reference"),
    ERROR(cudaErrorInvalidTextureBinding, "texture is not bound to a pointer"),
    ERROR(cudaErrorInvalidChannelDescriptor, "invalid channel descriptor"),
    ERROR(cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy"),
    ERROR(cudaErrorAddressOfConstant, "invalid address of constant"),
    ERROR(cudaErrorTextureFetchFailed, "fetch from texture failed"),
    ERROR(cudaErrorTextureNotBound, "cannot fetch from a texture that is not bound"),
    ERROR(cudaErrorSynchronizationError, "incorrect use of __syncthreads()"),
    ERROR(cudaErrorInvalidFilterSetting, "linear filtering not supported for non-float type"),
    ERROR(cudaErrorInvalidNormSetting, "read as normalized float not supported for data type"),
    ERROR(cudaErrorMixedDeviceExecution, "device emulation mode and device execution mode cannot be mixed"),
    ERROR(cudaErrorNotYetImplemented, "feature not yet implemented"),
    ERROR(cudaErrorMemoryValueTooLarge, "memory size or pointer value too large to fit in 32 bit"),
    ERROR(cudaErrorStubLibrary, "CUDA driver is a stub library"),
    ERROR(cudaErrorInsufficientDriver, "CUDA driver version is insufficient for CUDA runtime version"),
    ERROR(cudaErrorCallRequiresNewerDriver, "API call is not supported in the installed CUDA driver"),
    ERROR(cudaErrorInvalidSurface, "invalid surface reference"),
    ERROR(cudaErrorDuplicateVariableName, "duplicate global variable looked up by string name"),
    ERROR(cudaErrorDuplicateTextureName, "duplicate texture looked up by string name"),
    ERROR(cudaErrorDuplicateSurfaceName, "duplicate surface looked up by string name"),
    ERROR(cudaErrorDevicesUnavailable, "CUDA-capable device(s) is/are busy or unavailable"),
    ERROR(cudaErrorIncompatibleDriverContext, "incompatible driver context"),
    ERROR(cudaErrorMissingConfiguration, "__global__ function call is not configured"),
    ERROR(cudaErrorPriorLaunchFailure, "unspecified launch failure in prior launch"),
    ERROR(cudaErrorLaunchMaxDepthExceeded, "launch would exceed maximum depth of nested launches"),
    ERROR(cudaErrorLaunchFileScopedTex,
          "launch failed because kernel uses unsupported, file-scoped textures (texture objects are supported)"),
    ERROR(cudaErrorLaunchFileScopedSurf,
          "launch failed because kernel uses unsupported, file-scoped surfaces (surface objects are supported)"),
    ERROR(cudaErrorSyncDepthExceeded,
          "cudaDeviceSynchronize failed because caller's grid depth exceeds cudaLimitDevRuntimeSyncDepth"),
    ERROR(cudaErrorLaunchPendingCountExceeded,
          "launch failed because launch would exceed cudaLimitDevRuntimePendingLaunchCount"),
    ERROR(cudaErrorInvalidDeviceFunction, "invalid device function"),
    ERROR(cudaErrorNoDevice, "no CUDA-capable device is detected"),
    ERROR(cudaErrorInvalidDevice, "invalid device ordinal"),
    ERROR(cudaErrorDeviceNotLicensed, "device doesn't have valid Grid license"),
    ERROR(cudaErrorSoftwareValidityNotEstablished, "integrity checks failed"),
    ERROR(cudaErrorStartupFailure, "startup failure in cuda runtime"),
    ERROR(cudaErrorInvalidKernelImage, "device kernel image is invalid"),
    ERROR(cudaErrorDeviceUninitialized, "invalid device context"),
    ERROR(cudaErrorMapBufferObjectFailed, "mapping of buffer object failed"),
    ERROR(cudaErrorUnmapBufferObjectFailed, "unmapping of buffer object failed"),
    ERROR(cudaErrorArrayIsMapped, "array is mapped"),
    ERROR(cudaErrorAlreadyMapped, "resource already mapped"),
    ERROR(cudaErrorNoKernelImageForDevice, "no kernel image is available for execution on the device"),
    ERROR(cudaErrorAlreadyAcquired, "resource already acquired"),
    ERROR(cudaErrorNotMapped, "resource not mapped"),
    ERROR(cudaErrorNotMappedAsArray, "resource not mapped as array"),
    ERROR(cudaErrorNotMappedAsPointer, "resource not mapped as pointer"),
    ERROR(cudaErrorECCUncorrectable, "uncorrectable ECC error encountered"),
    ERROR(cudaErrorUnsupportedLimit, "limit is not supported on this architecture"),
    ERROR(cudaErrorDeviceAlreadyInUse, "exclusive-thread device already in use by a different thread"),
    ERROR(cudaErrorPeerAccessUnsupported, "peer access is not supported between these two devices"),
    ERROR(cudaErrorInvalidPtx, "a PTX JIT compilation failed"),
    ERROR(cudaErrorInvalidGraphicsContext, "invalid OpenGL or DirectX context"),
    ERROR(cudaErrorNvlinkUncorrectable, "uncorrectable NVLink error detected during the execution"),
    ERROR(cudaErrorJitCompilerNotFound, "PTX JIT compiler library not found"),
    ERROR(cudaErrorUnsupportedPtxVersion, "the provided PTX was compiled with an unsupported toolchain."),
    ERROR(cudaErrorJitCompilationDisabled, "PTX JIT compilation was disabled"),
    ERROR(cudaErrorUnsupportedExecAffinity, "the provided execution affinity is not supported"),
    ERROR(cudaErrorUnsupportedDevSideSync, "the provided PTX contains unsupported call to cudaDeviceSynchronize"),
    ERROR(cudaErrorContained, "Invalid access of peer GPU memory over nvlink or a hardware error"),
    ERROR(cudaErrorInsufficientLoaderVersion, "Loader version is insufficient for fatbin"),
    ERROR(cudaErrorInvalidSource, "device kernel image is invalid"),
    ERROR(cudaErrorFileNotFound, "file not found"),
    ERROR(cudaErrorSharedObjectSymbolNotFound, "shared object symbol not found"),
    ERROR(cudaErrorSharedObjectInitFailed, "shared object initialization failed"),
    ERROR(cudaErrorOperatingSystem, "OS call failed or operation not supported on this OS"),
    ERROR(cudaErrorInvalidResourceHandle, "invalid resource handle"),
    ERROR(cudaErrorIllegalState, "the operation cannot be performed in the present state"),
    ERROR(cudaErrorLossyQuery, "attempted introspection would be semantically lossy"),
    ERROR(cudaErrorSymbolNotFound, "named symbol not found"),
    ERROR(cudaErrorNotReady, "device not ready"),
    ERROR(cudaErrorIllegalAddress, "an illegal memory access was encountered"),
    ERROR(cudaErrorLaunchOutOfResources, "too many resources requested for launch"),
    ERROR(cudaErrorLaunchTimeout, "the launch timed out and was terminated"),
    ERROR(cudaErrorLaunchIncompatibleTexturing, "launch uses incompatible texturing mode"),
    ERROR(cudaErrorPeerAccessAlreadyEnabled, "peer access is already enabled"),
    ERROR(cudaErrorPeerAccessNotEnabled, "peer access has not been enabled"),
    ERROR(cudaErrorSetOnActiveProcess, "cannot set while device is active in this process"),
    ERROR(cudaErrorContextIsDestroyed, "context is destroyed"),
    ERROR(cudaErrorAssert, "device-side assert triggered"),
    ERROR(cudaErrorTooManyPeers, "peer mapping resources exhausted"),
    ERROR(cudaErrorHostMemoryAlreadyRegistered, "part or all of the requested memory range is already mapped"),
    ERROR(cudaErrorHostMemoryNotRegistered, "pointer does not correspond to a registered memory region"),
    ERROR(cudaErrorHardwareStackError, "hardware stack error"),
    ERROR(cudaErrorIllegalInstruction, "an illegal instruction was encountered"),
    ERROR(cudaErrorMisalignedAddress, "misaligned address"),
    ERROR(cudaErrorInvalidAddressSpace, "operation not supported on global/shared address space"),
    ERROR(cudaErrorInvalidPc, "invalid program counter"),
    ERROR(cudaErrorLaunchFailure, "unspecified launch failure"),
    ERROR(cudaErrorCooperativeLaunchTooLarge, "too many blocks in cooperative launch"),
    ERROR(cudaErrorTensorMemoryLeak, "tensor memory not completely freed"),
    ERROR(cudaErrorNotPermitted, "operation not permitted"),
    ERROR(cudaErrorNotSupported, "operation not supported"),
    ERROR(cudaErrorSystemNotReady, "system not yet initialized"),
    ERROR(cudaErrorSystemDriverMismatch, "system has unsupported display driver / cuda driver combination"),
    ERROR(cudaErrorCompatNotSupportedOnDevice, "forward compatibility was attempted on non supported HW"),
    ERROR(cudaErrorMpsConnectionFailed, "MPS client failed to connect to the MPS control daemon or the MPS server"),
    ERROR(cudaErrorMpsRpcFailure, "the remote procedural call between the MPS server and the MPS client failed"),
    ERROR(cudaErrorMpsServerNotReady, "MPS server is not ready to accept new MPS client requests"),
    ERROR(cudaErrorMpsMaxClientsReached, "the hardware resources required to create MPS client have been exhausted"),
    ERROR(cudaErrorMpsMaxConnectionsReached,
          "the hardware resources required to support device connections have been exhausted"),
    ERROR(cudaErrorMpsClientTerminated, "the MPS client has been terminated by the server"),
    ERROR(cudaErrorCdpNotSupported,
          "is using CUDA Dynamic Parallelism, but the current configuration, like MPS, does not support it"),
    ERROR(cudaErrorCdpVersionMismatch,
          "unsupported interaction between different versions of CUDA Dynamic Parallelism"),
    ERROR(cudaErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing"),
    ERROR(cudaErrorStreamCaptureInvalidated, "operation failed due to a previous error during capture"),
    ERROR(cudaErrorStreamCaptureMerge, "operation would result in a merge of separate capture sequences"),
    ERROR(cudaErrorStreamCaptureUnmatched, "capture was not ended in the same stream as it began"),
    ERROR(cudaErrorStreamCaptureUnjoined, "capturing stream has unjoined work"),
    ERROR(cudaErrorStreamCaptureIsolation, "dependency created on uncaptured work in another stream"),
    ERROR(cudaErrorStreamCaptureImplicit,
          "operation would make the legacy stream depend on a capturing blocking stream"),
    ERROR(cudaErrorCapturedEvent, "operation not permitted on an event last recorded in a capturing stream"),
    ERROR(cudaErrorStreamCaptureWrongThread,
          "attempt to terminate a thread-local capture sequence from another thread"),
    ERROR(cudaErrorTimeout, "wait operation timed out"),
    ERROR(cudaErrorGraphExecUpdateFailure,
          "the graph update was not performed because it included changes which violated constraints specific "
          "to instantiated graph update"),
    ERROR(cudaErrorExternalDevice, "an async error has occured in external entity outside of CUDA"),
    ERROR(cudaErrorInvalidClusterSize, "a kernel launch error has occurred due to cluster misconfiguration"),
    ERROR(cudaErrorFunctionNotLoaded,
          "the function handle is not loaded when calling an API that requires a loaded function"),
    ERROR(cudaErrorInvalidResourceType,
          "one or more resources passed in are not valid resource types for the operation"),
    ERROR(cudaErrorInvalidResourceConfiguration,
          "one or more resources are insufficient or non-applicable for the operation"),
    ERROR(cudaErrorStreamDetached,
          "API call not permitted since the green context associated with the stream has been destroyed"),
    ERROR(cudaErrorGraphRecaptureFailure, "recapturing to the source graph failed and had to be terminated"),
    ERROR(cudaErrorFabricNotReady, "GPU fabric is not ready within the probe wait budget; application may retry (see "
                                   "CUDA_FABRIC_INIT_TIMEOUT_MS)"),
    ERROR(cudaErrorUnknown, "unknown error"),
    ERROR(cudaErrorApiFailureBase, "api failure base"),
#undef ERROR
};

static int error_index(cudaError_t status) {
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].status == status) return (int)i;
    return -1;
}

void (*_Atomic runtime_report)(cudaError_t error, const char *name);

/* The explanation that the driver left belongs to its status; it goes with the one that the user sees. */
cudaError_t runtime_failed(CUresult status) {
    cudaError_t error = error_index((cudaError_t)status) < 0 ? cudaErrorUnknown : (cudaError_t)status;
    if (thread_state.failed == status) thread_state.failed = (CUresult)error;
    if (error == cudaErrorNotReady) return error; /* that is an answer, as on a GPU */
    runtime_thread.last_error = error;
    void (*tell)(cudaError_t, const char *) = runtime_report;
    if (tell) tell(error, errors[error_index(error)].name);
    return error;
}

/* What an asynchronous error left in the current context: it stays whatever is cleared. */
static cudaError_t sticky(void) {
    CUcontext context = current_owner();
    return context && context->active ? (cudaError_t)context_error(context) : cudaSuccess;
}

static cudaError_t cudaPeekAtLastError(void) {
    cudaError_t error = runtime_thread.last_error;
    return error ? error : sticky();
}

static cudaError_t cudaGetLastError(void) {
    cudaError_t error = cudaPeekAtLastError();
    runtime_thread.last_error = cudaSuccess;
    return error;
}

static const char *cudaGetErrorName(cudaError_t error) {
    int index = error_index(error);
    return index < 0 ? "unrecognized error code" : errors[index].name;
}

static const char *cudaGetErrorString(cudaError_t error) {
    int index = error_index(error);
    return index < 0 ? "unrecognized error code" : errors[index].text;
}

void runtime_error_texts(int error, const char **name, const char **text) {
    *name = cudaGetErrorName((cudaError_t)error);
    *text = cudaGetErrorString((cudaError_t)error);
}

const struct entry runtime_error_entries[] = {
    RUNTIME_ENTRY(cudaGetLastError),
    RUNTIME_ENTRY(cudaPeekAtLastError),
    RUNTIME_ENTRY(cudaGetErrorName),
    RUNTIME_ENTRY(cudaGetErrorString),
    {NULL, NULL, NULL},
};
