/* Which calls of the driver wait, and for whom, while the queue of a stream is full? Whether a call may keep the GIL
 * depends on it (cupola/gil.h).
 *
 *     gcc -O2 tools/blocking_calls.c -lcuda -lpthread -o blocking_calls && ./blocking_calls      (needs a GPU)
 *
 * A stream is held up by a host function. First each call is repeated 3,000 times by the only thread;
 * then each is made once while another thread waits in a launch because the stream's queue is full. What has not come
 * back after 0.3 s waits: the host function is then let go.
 */
#include <cuda.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { REPEATS = 3000, QUEUE = 1021 };

static CUcontext context;
static CUdevice device;
static CUstream held, other, third;
static CUfunction function;
static CUkernel kernel;
static CUlibrary library;
static CUmodule module;
static CUmemoryPool pool;
static CUevent event, pending, asleep, timed, done_early, done_late, shared, events[REPEATS];
static CUdeviceptr memory, pieces[REPEATS], reserved;
static CUmemGenericAllocationHandle handle;
static void *pinned;
static CUgreenCtx green;
static CUarray array;
static CUgraph graph;
static CUgraphNode node;
static CUgraphExec executable;

static volatile int let_go, waits, over, filling;
static volatile double entered;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void must(CUresult status, const char *what) {
    if (!status) return;
    printf("%s: %d\n", what, status);
    exit(1);
}
#define MUST(call) must(call, #call)

static void CUDA_CB hold(void *unused) {
    (void)unused;
    while (!let_go) usleep(100);
}

static void CUDA_CB nothing(void *unused) { (void)unused; }

static void *watch(void *unused) {
    while (!over) {
        double since = entered;
        if (since > 0 && now() - since > 0.3) waits = let_go = 1;
        usleep(500);
    }
    return unused;
}

static CUresult launch(CUstream stream) {
    void *parameters[] = {&memory};
    return cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, parameters, NULL);
}

static CUresult user_object(CUuserObject *object) {
    return cuUserObjectCreate(object, NULL, nothing, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
}

static CUmemLocation on_device(void) { return (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}; }

static CUmemAllocationProp on_device_memory(void) {
    return (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = on_device()};
}

static CUmemPoolProps pool_of_device(void) {
    return (CUmemPoolProps){.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                            .location = on_device()};
}

/* One call each; `i` is the number of the repetition. */
#define CALL(name, ...) static CUresult name(int i) { (void)i; __VA_ARGS__ }
CALL(record, return cuEventRecord(event, held);)
CALL(record_new, return cuEventRecord(events[i], held);)
CALL(record_asleep, return cuEventRecord(asleep, held);)
CALL(record_timed, return cuEventRecord(timed, held);)
CALL(record_other, return cuEventRecord(event, other);)
CALL(wait_done, return cuStreamWaitEvent(held, done_early, 0);)
CALL(wait_pending, return cuStreamWaitEvent(other, pending, 0);)
CALL(wait_and_record, CUresult r = cuStreamWaitEvent(held, pending, 0); return r ? r : cuEventRecord(events[i], held);)
CALL(allocate, return cuMemAllocFromPoolAsync(&pieces[i], 1024, pool, held);)
CALL(release, return cuMemFreeAsync(pieces[i], held);)
CALL(create_event, return cuEventCreate(&events[i], CU_EVENT_DISABLE_TIMING);)
CALL(destroy_event, return cuEventDestroy(events[i]);)
CALL(query_event, CUresult r = cuEventQuery(pending); return r == CUDA_ERROR_NOT_READY ? 0 : r;)
CALL(query_stream, CUresult r = cuStreamQuery(held); return r == CUDA_ERROR_NOT_READY ? 0 : r;)
CALL(elapsed, float ms; return cuEventElapsedTime(&ms, done_early, done_late);)
CALL(ipc_event, CUipcEventHandle h; return cuIpcGetEventHandle(&h, shared);)
CALL(is_capturing, CUstreamCaptureStatus s; return cuStreamIsCapturing(held, &s);)
CALL(capture_info, CUstreamCaptureStatus s; return cuStreamGetCaptureInfo(held, &s, NULL, NULL, NULL, NULL, NULL);)
CALL(begin_capture, CUresult r = cuStreamBeginCapture(third, CU_STREAM_CAPTURE_MODE_RELAXED); return r;)
CALL(capture_launch, return launch(third);)
CALL(end_capture, CUgraph g; return cuStreamEndCapture(third, &g);)
CALL(stream_context, CUcontext c; return cuStreamGetCtx(held, &c);)
CALL(stream_priority, int p; return cuStreamGetPriority(held, &p);)
CALL(stream_flags, unsigned f; return cuStreamGetFlags(held, &f);)
CALL(stream_id, unsigned long long n; return cuStreamGetId(held, &n);)
CALL(create_stream, CUstream s; return cuStreamCreate(&s, CU_STREAM_NON_BLOCKING);)
CALL(stream_life, CUstream s; CUresult r = cuStreamCreate(&s, CU_STREAM_NON_BLOCKING);
     return r ? r : cuStreamDestroy(s);)
CALL(green_stream_life, CUstream s; CUresult r = cuGreenCtxStreamCreate(&s, green, CU_STREAM_NON_BLOCKING, 0);
     return r ? r : cuStreamDestroy(s);)
CALL(texture_life, CUtexObject t;
     const CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_ARRAY, .res.array.hArray = array};
     const CUDA_TEXTURE_DESC sampler = {.flags = CU_TRSF_READ_AS_INTEGER};
     CUresult r = cuTexObjectCreate(&t, &resource, &sampler, NULL); return r ? r : cuTexObjectDestroy(t);)
CALL(host_function, return cuLaunchHostFunc(other, nothing, NULL);)
CALL(launch_it, return launch(held);)
CALL(launch_other, return launch(other);)
CALL(copy, return cuMemcpyHtoDAsync(memory, pinned, 64, held);)
CALL(fill, return cuMemsetD8Async(memory, 0, 64, held);)
CALL(current, CUcontext c; return cuCtxGetCurrent(&c);)
CALL(push, return cuCtxPushCurrent(context);)
CALL(pop, CUcontext c; return cuCtxPopCurrent(&c);)
CALL(current_device, CUdevice d; return cuCtxGetDevice(&d);)
CALL(priorities, int a, b; return cuCtxGetStreamPriorityRange(&a, &b);)
CALL(primary_state, unsigned f; int active; return cuDevicePrimaryCtxGetState(device, &f, &active);)
CALL(device_pool, CUmemoryPool p; return cuDeviceGetMemPool(&p, device);)
CALL(pointer, unsigned t; return cuPointerGetAttribute(&t, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory);)
CALL(address_range, CUdeviceptr p; size_t n; return cuMemGetAddressRange(&p, &n, memory);)
CALL(host_pointer, CUdeviceptr p; return cuMemHostGetDevicePointer(&p, pinned, 0);)
CALL(memory_info, size_t a, b; return cuMemGetInfo(&a, &b);)
CALL(plain_allocate, CUdeviceptr p; return cuMemAlloc(&p, 1024);)
CALL(host_allocate, void *p; return cuMemHostAlloc(&p, 1024, 0);)
CALL(create_pool, CUmemPoolProps p = pool_of_device(); CUmemoryPool made; return cuMemPoolCreate(&made, &p);)
CALL(pool_attribute, cuuint64_t v; return cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &v);)
CALL(pool_threshold, cuuint64_t v = 1 << 30; return cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &v);)
CALL(pool_access, CUmemAccess_flags f; CUmemLocation l = on_device(); return cuMemPoolGetAccess(&f, pool, &l);)
CALL(set_pool_access, CUmemAccessDesc d = {.location = on_device(), .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
     return cuMemPoolSetAccess(pool, &d, 1);)
CALL(export_pool, int fd;
     return cuMemPoolExportToShareableHandle(&fd, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);)
CALL(export_pointer, CUmemPoolPtrExportData d; return cuMemPoolExportPointer(&d, pieces[1]);)
CALL(create_memory, CUmemAllocationProp p = on_device_memory(); CUmemGenericAllocationHandle h;
     return cuMemCreate(&h, 2 << 20, &p, 0);)
CALL(granularity, CUmemAllocationProp p = on_device_memory(); size_t n;
     return cuMemGetAllocationGranularity(&n, &p, CU_MEM_ALLOC_GRANULARITY_MINIMUM);)
CALL(reserve, CUdeviceptr p; return cuMemAddressReserve(&p, 2 << 20, 0, 0, 0);)
CALL(map, return cuMemMap(reserved, 2 << 20, 0, handle, 0);)
CALL(retain_handle, CUmemGenericAllocationHandle h; return cuMemRetainAllocationHandle(&h, (void *)reserved);)
CALL(set_access, CUmemAccessDesc d = {.location = on_device(), .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
     return cuMemSetAccess(reserved, 2 << 20, &d, 1);)
CALL(release_handle, return cuMemRelease(handle);)
CALL(create_graph, CUgraph g; return cuGraphCreate(&g, 0);)
CALL(destroy_graph, CUgraph g; CUresult r = cuGraphCreate(&g, 0); return r ? r : cuGraphDestroy(g);)
CALL(add_kernel, void *parameters[] = {&memory}; CUDA_KERNEL_NODE_PARAMS p = {.func = function,
                                                                              .gridDimX = 1,
                                                                              .gridDimY = 1,
                                                                              .gridDimZ = 1,
                                                                              .blockDimX = 1,
                                                                              .blockDimY = 1,
                                                                              .blockDimZ = 1,
                                                                              .kernelParams = parameters};
     return cuGraphAddKernelNode(&node, graph, NULL, 0, &p);)
CALL(add_child, CUgraph g; CUgraphNode n; CUresult r = cuGraphCreate(&g, 0);
     return r ? r : cuGraphAddChildGraphNode(&n, graph, NULL, 0, g);)
CALL(node_attribute, CUkernelNodeAttrValue v;
     return cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &v);)
CALL(set_node_attribute, CUkernelNodeAttrValue v = {.priority = 0};
     return cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &v);)
CALL(node_parameters, CUDA_KERNEL_NODE_PARAMS p; return cuGraphKernelNodeGetParams(node, &p);)
CALL(node_enabled, unsigned e; return cuGraphNodeGetEnabled(executable, node, &e);)
CALL(enable_node, return cuGraphNodeSetEnabled(executable, node, 1);)
CALL(instantiate, CUgraphExec e; return cuGraphInstantiate(&e, graph, 0);)
CALL(launch_graph, return cuGraphLaunch(executable, third);)
CALL(destroy_executable, return cuGraphExecDestroy(executable);)
CALL(conditional, CUgraphConditionalHandle h; return cuGraphConditionalHandleCreate(&h, graph, context, 0, 0);)
CALL(create_object, CUuserObject o; return user_object(&o);)
CALL(release_object, CUuserObject o; CUresult r = user_object(&o); return r ? r : cuUserObjectRelease(o, 1);)
CALL(retain_object, CUuserObject o; CUresult r = user_object(&o);
     return r ? r : cuGraphRetainUserObject(graph, o, 1, CU_GRAPH_USER_OBJECT_MOVE);)
CALL(graph_memory, cuuint64_t v; return cuDeviceGetGraphMemAttribute(device, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &v);)
CALL(kernel_name, const char *n; return cuKernelGetName(&n, kernel);)
CALL(kernel_count, unsigned n; return cuLibraryGetKernelCount(&n, library);)
CALL(library_kernel, return cuLibraryGetKernel(&kernel, library, "k");)
CALL(module_function, CUfunction f; return cuModuleGetFunction(&f, module, "k");)
CALL(kernel_function, CUfunction f; return cuKernelGetFunction(&f, kernel);)
CALL(function_attribute, int n; return cuFuncGetAttribute(&n, CU_FUNC_ATTRIBUTE_NUM_REGS, function);)
CALL(set_function, return cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 0);)
CALL(occupancy, int n; return cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, function, 32, 0);)

static const struct call {
    const char *name;
    CUresult (*run)(int i);
    int alone; /* 1: repeat it alone, 2: nothing else */
} calls[] = {
    {"cuEventRecord", record, 1},
    {"cuEventRecord, new events", record_new, 1},
    {"cuEventRecord, CU_EVENT_BLOCKING_SYNC", record_asleep, 1},
    {"cuEventRecord with timing", record_timed, 1},
    {"cuEventRecord in another stream", record_other, 1},
    {"cuStreamWaitEvent, over", wait_done, 1},
    {"cuStreamWaitEvent, pending", wait_pending, 1},
    {"cuStreamWaitEvent and cuEventRecord", wait_and_record, 2},
    {"cuMemAllocFromPoolAsync", allocate, 1},
    {"cuMemFreeAsync", release, 1},
    {"cuEventDestroy", destroy_event, 1},
    {"cuEventCreate", create_event, 1},
    {"cuEventQuery", query_event, 0},
    {"cuStreamQuery", query_stream, 1},
    {"cuEventElapsedTime", elapsed, 0},
    {"cuIpcGetEventHandle", ipc_event, 0},
    {"cuStreamIsCapturing", is_capturing, 0},
    {"cuStreamGetCaptureInfo", capture_info, 0},
    {"cuStreamBeginCapture", begin_capture, 0},
    {"cuLaunchKernel, captured", capture_launch, 0},
    {"cuStreamEndCapture", end_capture, 0},
    {"cuStreamGetCtx", stream_context, 0},
    {"cuStreamGetPriority", stream_priority, 0},
    {"cuStreamGetFlags", stream_flags, 0},
    {"cuStreamGetId", stream_id, 0},
    {"cuStreamCreate", create_stream, 0},
    {"cuStreamCreate and cuStreamDestroy", stream_life, 1},
    {"cuGreenCtxStreamCreate and cuStreamDestroy", green_stream_life, 1},
    {"cuTexObjectCreate and cuTexObjectDestroy", texture_life, 1},
    {"cuLaunchHostFunc in another stream", host_function, 1},
    {"cuLaunchKernel", launch_it, 1},
    {"cuLaunchKernel in another stream", launch_other, 0},
    {"cuMemcpyHtoDAsync", copy, 1},
    {"cuMemsetD8Async", fill, 1},
    {"cuCtxGetCurrent", current, 0},
    {"cuCtxPushCurrent", push, 0},
    {"cuCtxPopCurrent", pop, 0},
    {"cuCtxGetDevice", current_device, 0},
    {"cuCtxGetStreamPriorityRange", priorities, 0},
    {"cuDevicePrimaryCtxGetState", primary_state, 0},
    {"cuDeviceGetMemPool", device_pool, 0},
    {"cuPointerGetAttribute", pointer, 0},
    {"cuMemGetAddressRange", address_range, 0},
    {"cuMemHostGetDevicePointer", host_pointer, 0},
    {"cuMemGetInfo", memory_info, 0},
    {"cuMemAlloc", plain_allocate, 0},
    {"cuMemHostAlloc", host_allocate, 0},
    {"cuMemPoolCreate", create_pool, 0},
    {"cuMemPoolGetAttribute", pool_attribute, 0},
    {"cuMemPoolSetAttribute", pool_threshold, 0},
    {"cuMemPoolGetAccess", pool_access, 0},
    {"cuMemPoolSetAccess", set_pool_access, 0},
    {"cuMemPoolExportToShareableHandle", export_pool, 0},
    {"cuMemPoolExportPointer", export_pointer, 0},
    {"cuMemCreate", create_memory, 0},
    {"cuMemGetAllocationGranularity", granularity, 0},
    {"cuMemAddressReserve", reserve, 0},
    {"cuMemMap", map, 0},
    {"cuMemRetainAllocationHandle", retain_handle, 0},
    {"cuMemSetAccess", set_access, 0},
    {"cuMemRelease", release_handle, 0},
    {"cuGraphCreate", create_graph, 0},
    {"cuGraphDestroy", destroy_graph, 0},
    {"cuGraphNodeGetEnabled", node_enabled, 0},
    {"cuGraphNodeSetEnabled", enable_node, 0},
    {"cuGraphInstantiate", instantiate, 0},
    {"cuGraphLaunch", launch_graph, 0},
    {"cuGraphExecDestroy", destroy_executable, 0},
    {"cuGraphAddKernelNode", add_kernel, 0},
    {"cuGraphAddChildGraphNode", add_child, 0},
    {"cuGraphKernelNodeGetAttribute", node_attribute, 0},
    {"cuGraphKernelNodeSetAttribute", set_node_attribute, 0},
    {"cuGraphKernelNodeGetParams", node_parameters, 0},
    {"cuGraphConditionalHandleCreate", conditional, 0},
    {"cuUserObjectCreate", create_object, 0},
    {"cuUserObjectRelease", release_object, 0},
    {"cuGraphRetainUserObject", retain_object, 0},
    {"cuDeviceGetGraphMemAttribute", graph_memory, 0},
    {"cuKernelGetName", kernel_name, 0},
    {"cuLibraryGetKernelCount", kernel_count, 0},
    {"cuLibraryGetKernel", library_kernel, 0},
    {"cuModuleGetFunction", module_function, 0},
    {"cuKernelGetFunction", kernel_function, 0},
    {"cuFuncGetAttribute", function_attribute, 0},
    {"cuFuncSetAttribute", set_function, 0},
    {"cuOccupancyMaxActiveBlocksPerMultiprocessor", occupancy, 0},
};
enum { CALLS = sizeof calls / sizeof *calls };

static void make_green_context(void) {
    CUdevResource all, some;
    CUdevResourceDesc description;
    unsigned int groups = 1;
    MUST(cuDeviceGetDevResource(device, &all, CU_DEV_RESOURCE_TYPE_SM));
    MUST(cuDevSmResourceSplitByCount(&some, &groups, &all, NULL, 0, 16));
    MUST(cuDevResourceGenerateDesc(&description, &some, 1));
    MUST(cuGreenCtxCreate(&green, description, device, CU_GREEN_CTX_DEFAULT_STREAM));
}

static void prepare(void) {
    static const char ptx[] = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p){ret;}\n";
    cuuint64_t keep = 1ull << 30;
    CUmemAllocationProp properties;
    CUmemPoolProps pool_properties;
    MUST(cuInit(0));
    MUST(cuDeviceGet(&device, 0));
    MUST(cuDevicePrimaryCtxRetain(&context, device));
    MUST(cuCtxSetCurrent(context));
    MUST(cuStreamCreate(&held, CU_STREAM_NON_BLOCKING));
    MUST(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    MUST(cuStreamCreate(&third, CU_STREAM_NON_BLOCKING));
    make_green_context();
    MUST(cuArrayCreate(
        &array, &(CUDA_ARRAY_DESCRIPTOR){.Width = 64, .Height = 64, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1}));
    MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    MUST(cuEventCreate(&pending, CU_EVENT_DISABLE_TIMING));
    MUST(cuEventCreate(&shared, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS));
    MUST(cuEventCreate(&asleep, CU_EVENT_DISABLE_TIMING | CU_EVENT_BLOCKING_SYNC));
    MUST(cuEventCreate(&timed, 0));
    MUST(cuEventCreate(&done_early, 0));
    MUST(cuEventCreate(&done_late, 0));
    for (int i = 0; i < REPEATS; i++) MUST(create_event(i));
    MUST(cuMemAlloc(&memory, 1 << 20));
    MUST(cuMemAllocHost(&pinned, 1024));
    MUST(cuModuleLoadData(&module, ptx));
    MUST(cuModuleGetFunction(&function, module, "k"));
    MUST(cuLibraryLoadData(&library, ptx, NULL, NULL, 0, NULL, NULL, 0));
    MUST(cuLibraryGetKernel(&kernel, library, "k"));
    pool_properties = pool_of_device();
    MUST(cuMemPoolCreate(&pool, &pool_properties));
    MUST(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep));
    properties = on_device_memory();
    MUST(cuMemCreate(&handle, 2 << 20, &properties, 0));
    MUST(cuMemAddressReserve(&reserved, 2 << 20, 0, 0, 0));
    MUST(cuEventRecord(done_early, other));
    MUST(cuEventRecord(done_late, other));
    for (int i = 0; i < REPEATS; i++) MUST(cuMemAllocFromPoolAsync(&pieces[i], 1024, pool, other));
    for (int i = 0; i < REPEATS; i++) MUST(cuMemFreeAsync(pieces[i], other));
    MUST(cuGraphCreate(&graph, 0));
    MUST(add_kernel(0));
    MUST(cuGraphInstantiate(&executable, graph, 0));
    MUST(cuGraphLaunch(executable, third));
    MUST(launch(held));
    MUST(launch(other));
    MUST(launch(third));
    MUST(cuCtxSynchronize());
}

static void settle(void) { /* not the third stream, which may be captured */
    MUST(cuStreamSynchronize(held));
    MUST(cuStreamSynchronize(other));
}

static void hold_up(void) {
    settle();
    let_go = waits = 0;
    MUST(cuLaunchHostFunc(held, hold, NULL));
    MUST(cuEventRecord(pending, held));
}

static void alone(const struct call *call) {
    CUresult status = CUDA_SUCCESS;
    int i;
    hold_up();
    for (i = 0; i < REPEATS && !waits && !status; i++) {
        entered = now();
        status = call->run(i);
        entered = 0;
    }
    printf("%-46s %s", call->name, waits ? "waits" : "does not wait");
    printf(waits ? ", after %d calls" : "", i);
    printf(status ? ", CUresult %d\n" : "\n", status);
    let_go = 1;
    settle();
}

static void *wait_in_launch(void *unused) {
    cuCtxSetCurrent(context);
    filling = 1;
    MUST(launch(held));
    return unused;
}

static void beside_a_launch(const struct call *call) {
    pthread_t thread;
    hold_up();
    for (int i = 0; i < QUEUE; i++) MUST(launch(held));
    filling = 0;
    pthread_create(&thread, NULL, wait_in_launch, NULL);
    while (!filling) usleep(100);
    usleep(20000);
    entered = now();
    CUresult status = call->run(0);
    entered = 0;
    printf("%-46s %s", call->name, waits ? "waits" : "does not wait");
    printf(status ? ", CUresult %d\n" : "\n", status);
    let_go = 1;
    pthread_join(thread, NULL);
}

int main(void) {
    pthread_t watcher;
    prepare();
    pthread_create(&watcher, NULL, watch, NULL);
    printf("== alone, %d times\n", REPEATS);
    for (int i = 0; i < CALLS; i++)
        if (calls[i].alone) alone(&calls[i]);
    printf("== beside a thread that waits in a launch\n");
    for (int i = 0; i < REPEATS; i++) MUST(cuMemAllocFromPoolAsync(&pieces[i], 1024, pool, other));
    for (int i = 0; i < CALLS; i++)
        if (calls[i].alone != 2) beside_a_launch(&calls[i]);
    over = 1;
    return 0;
}
