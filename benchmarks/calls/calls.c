/* The same operations through the driver's C interface: what every Python call is measured against.
 *
 * Each function repeats its operation n times and returns nanoseconds per repetition. It is built at run time
 * against the table header that ships with cupola; the entry points are passed in by name. */
#include <cupola/driver.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void *driver;

#define ENTRY(result, name, symbol, ...)                                                                           \
    typedef result (*name##_fn)(__VA_ARGS__);                                                                      \
    static name##_fn p_##name;                                                                                     \
    static void find_##name(void)                                                                                  \
    {                                                                                                              \
        p_##name = (name##_fn)dlsym(driver, symbol);                                                               \
        if (!p_##name) {                                                                                           \
            fprintf(stderr, "no %s in the driver\n", symbol);                                                      \
            abort();                                                                                               \
        }                                                                                                          \
    }

ENTRY(CUresult, launch, "cuLaunchKernel", CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
      unsigned, CUstream, void **, void **)
ENTRY(CUresult, alloc, "cuMemAllocAsync", CUdeviceptr *, size_t, CUstream)
ENTRY(CUresult, release, "cuMemFreeAsync", CUdeviceptr, CUstream)
ENTRY(CUresult, event_create, "cuEventCreate", CUevent *, unsigned)
ENTRY(CUresult, event_destroy, "cuEventDestroy_v2", CUevent)
ENTRY(CUresult, event_record, "cuEventRecord", CUevent, CUstream)
ENTRY(CUresult, wait_event, "cuStreamWaitEvent", CUstream, CUevent, unsigned)
ENTRY(CUresult, copy, "cuMemcpyAsync", CUdeviceptr, CUdeviceptr, size_t, CUstream)
ENTRY(CUresult, fill, "cuMemsetD8Async", CUdeviceptr, unsigned char, size_t, CUstream)
ENTRY(CUresult, stream_create, "cuStreamCreateWithPriority", CUstream *, unsigned, int)
ENTRY(CUresult, green_stream_create, "cuGreenCtxStreamCreate", CUstream *, CUgreenCtx, unsigned, int)
ENTRY(CUresult, stream_destroy, "cuStreamDestroy_v2", CUstream)
ENTRY(CUresult, sync, "cuStreamSynchronize", CUstream)
ENTRY(CUresult, graph_launch, "cuGraphLaunch", CUgraphExec, CUstream)
ENTRY(CUresult, begin_capture, "cuStreamBeginCapture_v2", CUstream, CUstreamCaptureMode)
ENTRY(CUresult, end_capture, "cuStreamEndCapture", CUstream, CUgraph *)
ENTRY(CUresult, host_function, "cuLaunchHostFunc", CUstream, CUhostFn, void *)
ENTRY(CUresult, instantiate, "cuGraphInstantiateWithFlags", CUgraphExec *, CUgraph, unsigned long long)
ENTRY(CUresult, upload, "cuGraphUpload", CUgraphExec, CUstream)

ENTRY(CUresult, texture_create, "cuTexObjectCreate", CUtexObject *, const CUDA_RESOURCE_DESC *,
      const CUDA_TEXTURE_DESC *, const CUDA_RESOURCE_VIEW_DESC *)
ENTRY(CUresult, texture_destroy, "cuTexObjectDestroy", CUtexObject)
ENTRY(CUresult, encode, "cuTensorMapEncodeTiled", CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *,
      const cuuint64_t *, const cuuint64_t *, const cuuint32_t *, const cuuint32_t *, CUtensorMapInterleave,
      CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill)
ENTRY(CUresult, map, "cuGraphicsMapResources", unsigned, CUgraphicsResource *, CUstream)
ENTRY(CUresult, unmap, "cuGraphicsUnmapResources", unsigned, CUgraphicsResource *, CUstream)
ENTRY(CUresult, pointer, "cuGraphicsResourceGetMappedPointer_v2", CUdeviceptr *, size_t *, CUgraphicsResource)

int bench_open(const char *path) {
    driver = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (!driver) return -1;
    find_launch(), find_alloc(), find_release(), find_event_create(), find_event_destroy(), find_event_record();
    find_wait_event(), find_copy(), find_fill(), find_stream_create(), find_stream_destroy(), find_sync();
    find_graph_launch(), find_begin_capture(), find_end_capture(), find_host_function(), find_instantiate();
    find_upload(), find_green_stream_create(), find_texture_create(), find_texture_destroy(), find_map(), find_unmap(),
        find_pointer(), find_encode();
    return 0;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

#define MEASURE(statement)                                                                                         \
    double start = now();                                                                                          \
    for (int i = 0; i < n; ++i) {                                                                                  \
        statement;                                                                                                 \
    }                                                                                                              \
    return (now() - start) / n

double bench_launch(int n, CUfunction kernel, CUstream stream, void **arguments) {
    MEASURE(p_launch(kernel, 1, 1, 1, 32, 1, 1, 0, stream, arguments, NULL));
}

double bench_launch_sync(int n, CUfunction kernel, CUstream stream, void **arguments) {
    MEASURE(p_launch(kernel, 1, 1, 1, 32, 1, 1, 0, stream, arguments, NULL); p_sync(stream));
}

double bench_alloc_free(int n, size_t size, CUstream stream) {
    CUdeviceptr pointer;
    MEASURE(p_alloc(&pointer, size, stream); p_release(pointer, stream));
}

double bench_event_record(int n, CUevent event, CUstream stream) { MEASURE(p_event_record(event, stream)); }

double bench_event_life(int n, CUstream stream) {
    CUevent event;
    MEASURE(p_event_create(&event, CU_EVENT_DISABLE_TIMING); p_event_record(event, stream); p_event_destroy(event));
}

double bench_wait_event(int n, CUevent event, CUstream stream) { MEASURE(p_wait_event(stream, event, 0)); }

double bench_copy(int n, CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream) {
    MEASURE(p_copy(to, from, size, stream));
}

double bench_fill(int n, CUdeviceptr to, size_t size, CUstream stream) { MEASURE(p_fill(to, 0, size, stream)); }

double bench_stream_life(int n, int priority) {
    CUstream stream;
    MEASURE(p_stream_create(&stream, CU_STREAM_NON_BLOCKING, priority); p_stream_destroy(stream));
}

double bench_tensor_map(int n, CUdeviceptr memory) {
    CUtensorMap map __attribute__((aligned(64)));
    const cuuint64_t extents[] = {64, 64}, strides[] = {256};
    const cuuint32_t box[] = {16, 8}, steps[] = {1, 1};
    MEASURE(
        p_encode(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, (void *)memory, extents, strides, box, steps, 0, 0, 0, 0));
}

double bench_green_stream_life(int n, CUgreenCtx green) {
    CUstream stream;
    MEASURE(p_green_stream_create(&stream, green, CU_STREAM_NON_BLOCKING, 0); p_stream_destroy(stream));
}

double bench_texture_life(int n, CUarray array) {
    const CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_ARRAY, .res.array.hArray = array};
    const CUDA_TEXTURE_DESC sampler = {
        .addressMode = {CU_TR_ADDRESS_MODE_CLAMP, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_ADDRESS_MODE_CLAMP},
        .flags = CU_TRSF_READ_AS_INTEGER};
    CUtexObject texture;
    MEASURE(p_texture_create(&texture, &resource, &sampler, NULL); p_texture_destroy(texture));
}

double bench_map(int n, CUgraphicsResource resource, CUstream stream) {
    CUdeviceptr pointer;
    size_t size;
    MEASURE(p_map(1, &resource, stream); p_pointer(&pointer, &size, resource); p_unmap(1, &resource, stream));
}

static void do_nothing(void *data) { (void)data; }

/* A graph of n launches and of m calls of a function that does nothing, which C captures by itself. NULL: it failed. */
CUgraphExec bench_capture(int n, int m, CUfunction kernel, void **arguments) {
    CUstream stream;
    CUgraph graph;
    CUgraphExec executable;
    CUresult failed = p_stream_create(&stream, CU_STREAM_NON_BLOCKING, 0);
    failed |= p_begin_capture(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
    for (int i = 0; i < n; ++i) failed |= p_launch(kernel, 1, 1, 1, 32, 1, 1, 0, stream, arguments, NULL);
    for (int i = 0; i < m; ++i) failed |= p_host_function(stream, do_nothing, NULL);
    failed |= p_end_capture(stream, &graph);
    if (!failed) failed = p_instantiate(&executable, graph, 0);
    if (!failed) failed = p_upload(executable, stream) | p_sync(stream);
    return failed ? NULL : executable;
}

double bench_graph_launch(int n, CUgraphExec graph, CUstream stream) { MEASURE(p_graph_launch(graph, stream)); }
