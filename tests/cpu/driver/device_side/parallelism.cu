// Kernels that launch kernels, behind the helpers of programs.py.
#define CODE(what, status) tell(log, what); tell(log, (int)(status))
extern "C" __global__ void child(int* log, int what, int milliseconds) {
    nap(milliseconds);
    if (threadIdx.x + blockIdx.x + blockIdx.y == 0) tell(log, what);
}
extern "C" __global__ void grand(int* log) {
    child<<<1, 1>>>(log, 31, 20);
    child<<<1, 1, 0, cudaStreamTailLaunch>>>(log, 33, 0);
    tell(log, 32);
}
// ---- order
extern "C" __global__ void in_a_stream(int* log) {
    child<<<1, 1>>>(log, 1, 20);
    child<<<1, 1>>>(log, 2, 10);
    child<<<1, 1>>>(log, 3, 0);
}
extern "C" __global__ void tails(int* log) {
    child<<<1, 1, 0, cudaStreamTailLaunch>>>(log, 11, 10);
    grand<<<1, 1, 0, cudaStreamTailLaunch>>>(log);
    child<<<1, 1, 0, cudaStreamTailLaunch>>>(log, 12, 0);
    child<<<1, 1, 0, cudaStreamFireAndForget>>>(log, 10, 20);
    child<<<1, 1>>>(log, 9, 10);
    nap(40);
    tell(log, 8);
}
extern "C" __global__ void nested(int* log) {
    grand<<<1, 1>>>(log);
    child<<<1, 1>>>(log, 40, 0);
}
extern "C" __global__ void set(volatile int* flag) { *flag = 1; }
extern "C" __global__ void at_once(int* log, volatile int* flag) {
    set<<<1, 1>>>(flag);
    while (!*flag) nap(1);
    tell(log, *flag);
}
extern "C" __global__ void by_blocks(int* log) {
    child<<<1, 1>>>(log, 100 + blockIdx.x, 20);
    child<<<1, 1>>>(log, 200 + blockIdx.x, 0);
}
__global__ void add(int* sum, int number) { atomicAdd(sum, number); }
extern "C" __global__ void by_threads(int* sums) {
    if (threadIdx.x % 3 == 0) add<<<2, 32>>>(sums + threadIdx.x, threadIdx.x);
}
extern "C" __global__ void deep(int* log, int depth, int most) {
    if (depth == most) tell(log, depth);
    else {
        deep<<<1, 1>>>(log, depth + 1, most);
        if (int status = cudaGetLastError()) { CODE(depth, status); }
    }
}
extern "C" __global__ void deep_tails(int* log, int depth, int most) {
    if (depth == most) tell(log, depth);
    else deep_tails<<<1, 1, 0, cudaStreamTailLaunch>>>(log, depth + 1, most);
}
extern "C" __global__ void count(int* number) { atomicAdd(number, 1); }
extern "C" __global__ void many(int* log, int* number, int launches, u64 stream) {
    int good = 0, status = 0;
    for (int i = 0; i < launches; i++) {
        count<<<1, 1, 0, (cudaStream_t)stream>>>(number);
        int one = cudaGetLastError();
        good += !one;
        status |= one;
    }
    CODE(good, status);
}
// ---- streams and events
extern "C" __global__ void streams(int* log) {
    cudaStream_t s, t;
    CODE(1, cudaStreamCreateWithFlags(&s, 0));
    CODE(2, cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    CODE(3, cudaStreamCreateWithFlags(&t, 5));
    CODE(4, cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking));
    CODE(5, cudaGetLastError());
    CODE(6, cudaGetLastError());
    cudaEvent_t e, f;
    CODE(7, cudaEventCreateWithFlags(&e, 0));
    CODE(8, cudaEventCreateWithFlags(&f, cudaEventBlockingSync | cudaEventDisableTiming));
    CODE(9, cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
    CODE(10, cudaEventCreateWithFlags(&e, cudaEventInterprocess | cudaEventDisableTiming));
    CODE(11, cudaEventRecord(e, s));
    CODE(12, cudaStreamWaitEvent(t, e, 0));
    CODE(13, cudaEventRecord(f, 0));
    CODE(14, cudaEventRecord(f, cudaStreamTailLaunch));
    CODE(15, cudaEventRecord(f, cudaStreamFireAndForget));
    CODE(16, cudaStreamWaitEvent(0, f, 0));
    CODE(17, cudaStreamWaitEvent(cudaStreamTailLaunch, f, 0));
    CODE(18, cudaStreamWaitEvent(cudaStreamFireAndForget, f, 0));
    CODE(19, cudaEventDestroy(e));
    CODE(20, cudaStreamDestroy(s));
    CODE(21, cudaStreamDestroy(0));
    CODE(22, cudaStreamDestroy(cudaStreamTailLaunch));
    CODE(23, cudaGetLastError());
    child<<<1, 1, 0, (cudaStream_t)1>>>(log + 2000, 0, 0);
    CODE(24, cudaGetLastError());
    child<<<1, 1, 0, (cudaStream_t)2>>>(log + 2000, 0, 0);
    CODE(25, cudaGetLastError());
    CODE(26, cudaEventRecord(0, 0));
    CODE(27, cudaStreamWaitEvent(0, 0, 0));
    CODE(28, cudaEventDestroy(0));
}
extern "C" __global__ void waits(int* log) {
    cudaStream_t s, t;
    cudaEvent_t e;
    cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&e, cudaEventDisableTiming);
    child<<<1, 1, 0, s>>>(log, 1, 30);
    cudaEventRecord(e, s);
    cudaStreamWaitEvent(t, e, 0);
    child<<<1, 1, 0, t>>>(log, 2, 0);
    cudaEventRecord(e, t);
    cudaStreamWaitEvent(0, e, 0);
    child<<<1, 1>>>(log, 3, 0);
    cudaEventDestroy(e);
    cudaStreamDestroy(s);
    cudaStreamDestroy(t);
}
extern "C" __global__ void shared_stream(int* log, volatile u64* box) {
    cudaStream_t s;
    if (blockIdx.x == 0) {
        cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
        child<<<1, 1, 0, s>>>(log, 1, 30);
        *box = (u64)s;
    } else {
        while (!(s = (cudaStream_t)*box)) nap(1);
        child<<<1, 1, 0, s>>>(log, 2, 0);
    }
}
extern "C" __global__ void wrong_stream(int* log, u64 stream) {
    child<<<1, 1, 0, (cudaStream_t)stream>>>(log, 100, 0);
    tell(log, cudaGetLastError());
}
// ---- errors
extern "C" __global__ void shape(int* log, int gx, int gy, int gz, int bx, int by, int bz, int shared) {
    child<<<dim3(gx, gy, gz), dim3(bx, by, bz), shared>>>(log + 2000, 0, 0);
    CODE(1, cudaPeekAtLastError());
    CODE(2, cudaGetLastError());
    CODE(3, cudaGetLastError());
}
extern "C" __global__ void errors_of_threads(int* log, int* errors) {
    if (threadIdx.x % 32 == 1) child<<<0, 1>>>(log, 0, 0);
    errors[threadIdx.x] = cudaGetLastError();
}
extern "C" __global__ void __launch_bounds__(64) small(int*) {}
extern "C" __global__ void __cluster_dims__(2, 1, 1) pair(int* log) {
    unsigned rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    if (threadIdx.x == 0) tell(log, 500 + rank);
}
extern "C" __global__ void kernels(int* log, int blocks) {
    small<<<1, 128>>>(log);
    CODE(1, cudaGetLastError());
    pair<<<blocks, 32>>>(log);
    CODE(2, cudaGetLastError());
}
extern "C" __global__ void buffers(int* log) {
    void* b = cudaGetParameterBufferV2((void*)child, dim3(1, 1, 1), dim3(1, 1, 1), 0);
    *(int**)b = log + 2000; ((int*)b)[2] = 0; ((int*)b)[3] = 0;
    CODE(1, cudaLaunchDeviceV2(b, 0));
    b = cudaGetParameterBuffer(64, 16);
    *(int**)b = log + 2000; ((int*)b)[2] = 0; ((int*)b)[3] = 0;
    CODE(2, cudaLaunchDevice((void*)child, b, dim3(1, 1, 1), dim3(1, 1, 1), 0, 0));
    CODE(3, cudaLaunchDevice((void*)child, 0, dim3(0, 1, 1), dim3(1, 1, 1), 0, 0));
    CODE(4, cudaGetParameterBuffer(64, 1 << 16) != 0);
}
extern "C" __global__ void texts(const int* statuses, int count, char* target) {
    for (int i = 0; i < count; i++) {
        for (const char* c = cudaGetErrorName((cudaError_t)statuses[i]); *c; c++) *target++ = *c;
        *target++ = ':';
        for (const char* c = cudaGetErrorString((cudaError_t)statuses[i]); *c; c++) *target++ = *c;
        *target++ = '\n';
    }
    *target = 0;
}
// ---- memory
extern "C" __global__ void memory(int* log, int* pinned, int* dev) {
    int* p = (int*)5;
    CODE(1, cudaMalloc((void**)&p, 1024));
    p[0] = p[255] = 1;
    CODE(2, cudaFree(p));
    CODE(3, cudaFree(0));
    p = (int*)5;
    CODE(4, cudaMalloc((void**)&p, 0));
    CODE(5, cudaMalloc((void**)&p, 1ull << 40));
    CODE(6, p == (int*)5);
    CODE(7, cudaGetLastError());
    CODE(8, cudaMalloc((void**)&p, 64));
    free(p);
    CODE(9, cudaFree(malloc(64)));
    CODE(20, cudaMemcpyAsync(dev + 4, dev, 16, cudaMemcpyDeviceToDevice, 0));
    CODE(21, cudaMemcpyAsync(dev + 8, dev, 16, cudaMemcpyDefault, 0));
    CODE(22, cudaMemcpyAsync(dev + 12, pinned, 16, cudaMemcpyHostToDevice, 0));
    CODE(23, cudaMemcpyAsync(pinned + 4, dev, 16, cudaMemcpyDeviceToHost, 0));
    CODE(24, cudaMemcpyAsync(pinned + 8, pinned, 16, cudaMemcpyHostToHost, 0));
    CODE(25, cudaMemcpyAsync(dev + 16, pinned, 16, cudaMemcpyDefault, 0));
    CODE(26, cudaMemcpyAsync(dev + 20, dev, 16, (cudaMemcpyKind)9, 0));
    CODE(27, cudaMemcpyAsync(dev + 24, dev, 0, cudaMemcpyDeviceToDevice, 0));
    CODE(28, cudaMemsetAsync(dev + 28, 0, 16, 0));
    CODE(29, cudaMemcpy2DAsync(dev + 32, 8, dev, 8, 4, 4, cudaMemcpyDeviceToDevice, 0));
    CODE(30, cudaMemset2DAsync(dev + 48, 8, 0, 4, 4, 0));
    CODE(31, cudaMemcpy2DAsync(dev + 64, 2, dev, 8, 4, 4, cudaMemcpyDeviceToDevice, 0));
    CODE(32, cudaMemset2DAsync(dev + 64, 2, 0, 4, 4, 0));
    cudaPitchedPtr box = {dev + 80, 16, 8, 2};
    cudaExtent extent = {8, 2, 2};
    CODE(33, cudaMemset3DAsync(box, 0, extent, 0));
    CODE(34, cudaMemcpyAsync(dev + 100, dev, 16, cudaMemcpyDeviceToDevice, cudaStreamTailLaunch));
    CODE(35, cudaMemcpyAsync(dev + 104, dev, 16, cudaMemcpyDeviceToDevice, cudaStreamFireAndForget));
    cudaMemcpy3DParms copy;
    memset(&copy, 0, sizeof copy);
    copy.srcPtr = copy.dstPtr = box;
    copy.srcPtr.ptr = dev;
    copy.dstPtr.ptr = dev + 112;
    copy.extent = extent;
    copy.kind = cudaMemcpyDeviceToDevice;
    CODE(36, cudaMemcpy3DAsync(&copy, 0));
    volatile char local[16];
    local[0] = 1;
    CODE(37, cudaMemcpyAsync(dev + 140, (const void*)local, 16, cudaMemcpyDeviceToDevice, 0));
}
extern "C" __global__ void fill(char* target, int value) { cudaMemsetAsync(target, value, 16, 0); }
// ---- facts
extern "C" __global__ void facts(int* log, int* attributes, int* function, long long* limits) {
    for (int i = 1; i < 147; i++) attributes[2 * i] = cudaDeviceGetAttribute(attributes + 2 * i + 1, (cudaDeviceAttr)i, 0);
    cudaGetLastError();
    int v = -1;
    CODE(1, cudaDeviceGetAttribute(&v, cudaDevAttrWarpSize, -1));
    CODE(2, cudaGetDevice(&v)); CODE(3, v);
    CODE(4, cudaGetDeviceCount(&v)); CODE(5, v > 0);
    CODE(6, cudaRuntimeGetVersion(&v)); CODE(7, v);
    for (int i = 0; i < 7; i++) limits[2 * i] = cudaDeviceGetLimit((size_t*)limits + 2 * i + 1, (cudaLimit)i);
    cudaFuncCache cache; cudaSharedMemConfig config;
    CODE(8, cudaDeviceGetCacheConfig(&cache)); CODE(9, cache);
    CODE(10, cudaDeviceGetSharedMemConfig(&config)); CODE(11, config);
    CODE(12, cudaFuncGetAttributes((cudaFuncAttributes*)function, (const void*)child));
    CODE(13, cudaFuncGetAttributes((cudaFuncAttributes*)function, (const void*)0));
    CODE(14, cudaOccupancyMaxActiveBlocksPerMultiprocessor(&v, (const void*)child, 128, 0)); CODE(15, v);
    CODE(16, cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&v, (const void*)child, 1024, 1024, 0)); CODE(17, v);
    CODE(18, cudaOccupancyMaxActiveBlocksPerMultiprocessor(&v, (const void*)child, 0, 0));
    CODE(19, cudaOccupancyMaxActiveBlocksPerMultiprocessor(&v, (const void*)child, 2000, 0)); CODE(20, v);
    CODE(21, cudaOccupancyMaxActiveBlocksPerMultiprocessor(&v, (const void*)child, 128, 1 << 20)); CODE(22, v);
}
// ---- faults
extern "C" __global__ void wild(int* place) { *place = 1; }
extern "C" __global__ void fault_of_child(int*) { wild<<<1, 1>>>((int*)16); }
extern "C" __global__ void no_buffer(int*) { cudaLaunchDeviceV2((void*)0, 0); }
extern "C" __global__ void no_kernel(int*) { cudaGetParameterBufferV2((void*)0, dim3(1, 1, 1), dim3(1, 1, 1), 0); }
extern "C" __global__ void free_during_fill(int*) {
    for (int i = 0; i < 50; i++) {
        volatile char* memory = (char*)malloc(4 << 20);
        *memory = 0;
        cudaMemsetAsync((void*)memory, 7, 4 << 20, 0);
        while (!*memory) {}
        free((void*)memory);
    }
}
extern "C" __global__ void twice(int* log) {
    void* b = cudaGetParameterBufferV2((void*)small, dim3(1, 1, 1), dim3(1, 1, 1), 0);
    *(int**)b = log;
    cudaLaunchDeviceV2(b, 0);
    cudaLaunchDeviceV2(b, 0);
}
extern "C" __global__ void launches_a_graph(int* log, u64 graph) { cudaGraphLaunch((cudaGraphExec_t)graph, cudaStreamGraphFireAndForget); }
extern "C" __global__ void child_launches_a_graph(int* log) { launches_a_graph<<<1, 1>>>(log, 0x12345678); }
extern "C" __global__ void tails_forever(int* log) { tails_forever<<<1, 1, 0, cudaStreamTailLaunch>>>(log); }
extern "C" __global__ void more_and_more(int* log) { more_and_more<<<2, 1, 0, cudaStreamFireAndForget>>>(log); }
extern "C" __global__ void waits_for_a_fault(int* log) {
    wild<<<1, 1>>>((int*)16);
    set<<<1, 1>>>(log + 3000);
    while (!((volatile int*)log)[3000]) nap(1);
}
