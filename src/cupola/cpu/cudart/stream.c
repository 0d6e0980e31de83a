/* Streams, events, functions of the host, and recording a stream (CUDA Runtime API, "Stream Management", "Event
 * Management", "Execution Control"). */
#include "cudart.h"

/* ---- streams --------------------------------------------------------------------------------------------------- */

RUNTIME(cudaStreamCreate, (cudaStream_t *pStream), cuStreamCreate(pStream, CU_STREAM_DEFAULT))
RUNTIME(cudaStreamCreateWithFlags, (cudaStream_t *pStream, unsigned flags), cuStreamCreate(pStream, flags))
RUNTIME(cudaStreamCreateWithPriority, (cudaStream_t *pStream, unsigned flags, int priority),
        cuStreamCreateWithPriority(pStream, flags, priority))
RUNTIME(cudaStreamDestroy, (cudaStream_t stream), cuStreamDestroy(stream))
RUNTIME_STREAM(cudaStreamGetPriority, (cudaStream_t hStream, int *priority), (hStream, priority),
               cuStreamGetPriority(hStream, priority))
RUNTIME_STREAM(cudaStreamGetFlags, (cudaStream_t hStream, unsigned *flags), (hStream, flags),
               cuStreamGetFlags(hStream, flags))
RUNTIME_STREAM(cudaStreamGetId, (cudaStream_t hStream, unsigned long long *streamId), (hStream, streamId),
               cuStreamGetId(hStream, streamId))
RUNTIME_STREAM(cudaStreamGetDevice, (cudaStream_t hStream, int *device), (hStream, device),
               cuStreamGetDevice(hStream, device))
RUNTIME_STREAM(cudaStreamCopyAttributes, (cudaStream_t dst, cudaStream_t src), (dst, src),
               cuStreamCopyAttributes(dst, src))
RUNTIME_STREAM(cudaStreamGetAttribute,
               (cudaStream_t hStream, cudaLaunchAttributeID attr, cudaLaunchAttributeValue *value_out),
               (hStream, attr, value_out),
               cuStreamGetAttribute(hStream, (CUlaunchAttributeID)attr, (CUlaunchAttributeValue *)value_out))
RUNTIME_STREAM(cudaStreamSetAttribute,
               (cudaStream_t hStream, cudaLaunchAttributeID attr, const cudaLaunchAttributeValue *value),
               (hStream, attr, value),
               cuStreamSetAttribute(hStream, (CUlaunchAttributeID)attr, (const CUlaunchAttributeValue *)value))
RUNTIME_STREAM(cudaStreamWaitEvent, (cudaStream_t stream, cudaEvent_t event, unsigned flags), (stream, event, flags),
               cuStreamWaitEvent(stream, event, flags))
RUNTIME_STREAM(cudaStreamSynchronize, (cudaStream_t stream), (stream), cuStreamSynchronize(stream))
RUNTIME_STREAM(cudaStreamQuery, (cudaStream_t stream), (stream), cuStreamQuery(stream))
RUNTIME_STREAM(cudaStreamAttachMemAsync, (cudaStream_t stream, void *devPtr, size_t length, unsigned flags),
               (stream, devPtr, length, flags), cuStreamAttachMemAsync(stream, (CUdeviceptr)devPtr, length, flags))
RUNTIME_STREAM(cudaStreamAddCallback,
               (cudaStream_t stream, cudaStreamCallback_t callback, void *userData, unsigned flags),
               (stream, callback, userData, flags),
               cuStreamAddCallback(stream, (CUstreamCallback)(void *)callback, userData, flags))
RUNTIME_STREAM(cudaLaunchHostFunc, (cudaStream_t stream, cudaHostFn_t fn, void *userData), (stream, fn, userData),
               cuLaunchHostFunc(stream, fn, userData))
RUNTIME_STREAM(cudaLaunchHostFunc_v2, (cudaStream_t stream, cudaHostFn_t fn, void *userData, unsigned syncMode),
               (stream, fn, userData, syncMode), cuLaunchHostFunc_v2(stream, fn, userData, syncMode))

/* ---- events ---------------------------------------------------------------------------------------------------- */

RUNTIME(cudaEventCreate, (cudaEvent_t *event), cuEventCreate(event, CU_EVENT_DEFAULT))
RUNTIME(cudaEventCreateWithFlags, (cudaEvent_t *event, unsigned flags), cuEventCreate(event, flags))
RUNTIME(cudaEventDestroy, (cudaEvent_t event), cuEventDestroy(event))
RUNTIME(cudaEventQuery, (cudaEvent_t event), cuEventQuery(event))
RUNTIME(cudaEventSynchronize, (cudaEvent_t event), cuEventSynchronize(event))
RUNTIME(cudaEventElapsedTime, (float *ms, cudaEvent_t start, cudaEvent_t end), cuEventElapsedTime(ms, start, end))
RUNTIME_STREAM(cudaEventRecord, (cudaEvent_t event, cudaStream_t stream), (event, stream), cuEventRecord(event, stream))
RUNTIME_STREAM(cudaEventRecordWithFlags, (cudaEvent_t event, cudaStream_t stream, unsigned flags),
               (event, stream, flags), cuEventRecordWithFlags(event, stream, flags))
RUNTIME(cudaIpcGetEventHandle, (cudaIpcEventHandle_t *handle, cudaEvent_t event),
        cuIpcGetEventHandle((CUipcEventHandle *)handle, event))
RUNTIME(cudaIpcOpenEventHandle, (cudaEvent_t *event, cudaIpcEventHandle_t handle),
        cuIpcOpenEventHandle(event, AS(CUipcEventHandle, handle)))

/* ---- recording into a graph ------------------------------------------------------------------------------------ */

RUNTIME_STREAM(cudaStreamBeginCapture, (cudaStream_t stream, enum cudaStreamCaptureMode mode), (stream, mode),
               cuStreamBeginCapture(stream, (CUstreamCaptureMode)mode))
RUNTIME_STREAM(cudaStreamBeginCaptureToGraph,
               (cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                const cudaGraphEdgeData *dependencyData, size_t numDependencies, enum cudaStreamCaptureMode mode),
               (stream, graph, dependencies, dependencyData, numDependencies, mode),
               cuStreamBeginCaptureToGraph(stream, graph, dependencies, (const CUgraphEdgeData *)dependencyData,
                                           numDependencies, (CUstreamCaptureMode)mode))
RUNTIME_STREAM(cudaStreamEndCapture, (cudaStream_t stream, cudaGraph_t *pGraph), (stream, pGraph),
               cuStreamEndCapture(stream, pGraph))
RUNTIME_STREAM(cudaStreamIsCapturing, (cudaStream_t stream, enum cudaStreamCaptureStatus *pCaptureStatus),
               (stream, pCaptureStatus), cuStreamIsCapturing(stream, (CUstreamCaptureStatus *)pCaptureStatus))
RUNTIME_STREAM(cudaStreamGetCaptureInfo,
               (cudaStream_t stream, enum cudaStreamCaptureStatus *captureStatus_out, unsigned long long *id_out,
                cudaGraph_t *graph_out, const cudaGraphNode_t **dependencies_out,
                const cudaGraphEdgeData **edgeData_out, size_t *numDependencies_out),
               (stream, captureStatus_out, id_out, graph_out, dependencies_out, edgeData_out, numDependencies_out),
               cuStreamGetCaptureInfo(stream, (CUstreamCaptureStatus *)captureStatus_out, (cuuint64_t *)id_out,
                                      graph_out, dependencies_out, (const CUgraphEdgeData **)edgeData_out,
                                      numDependencies_out))
RUNTIME_STREAM(cudaStreamUpdateCaptureDependencies,
               (cudaStream_t stream, cudaGraphNode_t *dependencies, const cudaGraphEdgeData *dependencyData,
                size_t numDependencies, unsigned flags),
               (stream, dependencies, dependencyData, numDependencies, flags),
               cuStreamUpdateCaptureDependencies(stream, dependencies, (const CUgraphEdgeData *)dependencyData,
                                                 numDependencies, flags))
RUNTIME_BARE(cudaThreadExchangeStreamCaptureMode, (enum cudaStreamCaptureMode *mode),
             cuThreadExchangeStreamCaptureMode((CUstreamCaptureMode *)mode))

const struct entry runtime_stream_entries[] = {
    RUNTIME_ENTRY(cudaStreamCreate),
    RUNTIME_ENTRY(cudaStreamCreateWithFlags),
    RUNTIME_ENTRY(cudaStreamCreateWithPriority),
    RUNTIME_ENTRY(cudaStreamDestroy),
    RUNTIME_ENTRY_STREAM(cudaStreamGetPriority),
    RUNTIME_ENTRY_STREAM(cudaStreamGetFlags),
    RUNTIME_ENTRY_STREAM(cudaStreamGetId),
    RUNTIME_ENTRY_STREAM(cudaStreamGetDevice),
    RUNTIME_ENTRY_STREAM(cudaStreamCopyAttributes),
    RUNTIME_ENTRY_STREAM(cudaStreamGetAttribute),
    RUNTIME_ENTRY_STREAM(cudaStreamSetAttribute),
    RUNTIME_ENTRY_STREAM(cudaStreamWaitEvent),
    RUNTIME_ENTRY_STREAM(cudaStreamSynchronize),
    RUNTIME_ENTRY_STREAM(cudaStreamQuery),
    RUNTIME_ENTRY_STREAM(cudaStreamAttachMemAsync),
    RUNTIME_ENTRY_STREAM(cudaStreamAddCallback),
    RUNTIME_ENTRY_STREAM(cudaLaunchHostFunc),
    RUNTIME_ENTRY_STREAM(cudaLaunchHostFunc_v2),
    RUNTIME_ENTRY(cudaEventCreate),
    RUNTIME_ENTRY(cudaEventCreateWithFlags),
    RUNTIME_ENTRY(cudaEventDestroy),
    RUNTIME_ENTRY(cudaEventQuery),
    RUNTIME_ENTRY(cudaEventSynchronize),
    RUNTIME_ENTRY(cudaEventElapsedTime),
    RUNTIME_ENTRY_STREAM(cudaEventRecord),
    RUNTIME_ENTRY_STREAM(cudaEventRecordWithFlags),
    RUNTIME_ENTRY(cudaIpcGetEventHandle),
    RUNTIME_ENTRY(cudaIpcOpenEventHandle),
    RUNTIME_ENTRY_STREAM(cudaStreamBeginCapture),
    RUNTIME_ENTRY_STREAM(cudaStreamBeginCaptureToGraph),
    RUNTIME_ENTRY_STREAM(cudaStreamEndCapture),
    RUNTIME_ENTRY_STREAM(cudaStreamIsCapturing),
    RUNTIME_ENTRY_STREAM(cudaStreamGetCaptureInfo),
    RUNTIME_ENTRY_STREAM(cudaStreamUpdateCaptureDependencies),
    RUNTIME_ENTRY(cudaThreadExchangeStreamCaptureMode),
    {NULL, NULL, NULL},
};
