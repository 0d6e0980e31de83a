"""CUDA sources whose PTX, as NVRTC makes it, the parser and the passes are tested with."""

# ruff: noqa: E501

from __future__ import annotations

SAXPY = r"""
extern "C" __global__ void saxpy(float a, const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}
extern "C" __global__ void saxpy_grid_stride(float a, const float* x, float* y, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = a * x[i] + y[i];
}
template <typename T> __global__ void fill(T* x, T value, size_t n) {
    for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) x[i] = value;
}
template __global__ void fill<double>(double*, double, size_t);
template __global__ void fill<unsigned char>(unsigned char*, unsigned char, size_t);
"""

REDUCE = r"""
extern "C" __global__ void reduce(const float* x, float* out, int n) {
    __shared__ float s[256];
    int t = threadIdx.x;
    float a = 0;
    for (int i = blockIdx.x * blockDim.x + t; i < n; i += gridDim.x * blockDim.x) a += x[i];
    s[t] = a;
    __syncthreads();
    for (int k = 128; k >= 32; k >>= 1) {
        if (t < k) s[t] += s[t + k];
        __syncthreads();
    }
    if (t < 32) {
        float v = s[t];
        for (int k = 16; k; k >>= 1) v += __shfl_down_sync(~0u, v, k);
        if (!t) atomicAdd(out, v);
    }
}
template <int T> __device__ void mm(const float* A, const float* B, float* C, int n) {
    __shared__ float As[T][T], Bs[T][T];
    int tx = threadIdx.x, ty = threadIdx.y;
    int r = blockIdx.y * T + ty, c = blockIdx.x * T + tx;
    float acc = 0;
    for (int k0 = 0; k0 < n; k0 += T) {
        As[ty][tx] = A[r * n + k0 + tx];
        Bs[ty][tx] = B[(k0 + ty) * n + c];
        __syncthreads();
        for (int k = 0; k < T; k++) acc += As[ty][k] * Bs[k][tx];
        __syncthreads();
    }
    C[r * n + c] = acc;
}
extern "C" __global__ void __launch_bounds__(1024, 1) matmul(const float* A, const float* B, float* C, int n) {
    mm<32>(A, B, C, n);
}
extern "C" __global__ void histogram(const unsigned char* x, unsigned* h, int n) {
    __shared__ unsigned s[256];
    s[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&s[x[i]], 1u);
    __syncthreads();
    atomicAdd(&h[threadIdx.x], s[threadIdx.x]);
}
extern "C" __global__ void mandelbrot(int* out, int w, int h, int maxit) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    float cr = -2.0f + 3.0f * x / w, ci = -1.0f + 2.0f * y / h, zr = 0, zi = 0;
    int it = 0;
    while (it < maxit && zr * zr + zi * zi < 4.0f) {
        float t = zr * zr - zi * zi + cr;
        zi = 2 * zr * zi + ci;
        zr = t;
        it++;
    }
    out[y * w + x] = it;
}
extern "C" __global__ void stencil(const float* x, float* y, int w, int h) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i > 0 && j > 0 && i < w - 1 && j < h - 1)
        y[j * w + i] = 0.25f * (x[j * w + i - 1] + x[j * w + i + 1] + x[(j - 1) * w + i] + x[(j + 1) * w + i]);
}
"""

INLINE_ASM = r"""
__device__ __forceinline__ unsigned lane() { unsigned r; asm("mov.u32 %0, %%laneid;" : "=r"(r)); return r; }
extern "C" __global__ void scopes(unsigned* out, const unsigned long long* in) {
    unsigned r = lane();
    asm volatile("{ .reg .pred p; .reg .u32 t<3>; setp.ge.u32 p, %1, 16;\n"
                 "  @p add.u32 t0, %1, 1; @!p mov.u32 t0, 0x10U;\n"
                 "  { .reg .u32 t1; mul.lo.u32 t1, t0, 3; add.u32 %0, t1, 07; }\n}" : "=r"(out[0]) : "r"(r));
    asm volatile("{\n.reg .pred P1;\nLOOP:\nsetp.eq.u32 P1, %0, %1;\n@P1 bra DONE;\nbra.uni LOOP;\nDONE:\n}"
                 :: "r"(r), "r"(r));
    asm volatile("{\n.reg .pred P1;\nLOOP:\nsetp.eq.u32 P1, %0, %1;\n@P1 bra DONE;\nbra LOOP;\nDONE:\n}"
                 :: "r"(r), "r"(r));
    unsigned long long low, high;
    asm("mul.lo.u64 %0, %2, %3; /* a comment; with { brackets */ mul.hi.u64 %1, %2, %3; // another ;"
        : "=l"(low), "=l"(high) : "l"(in[0]), "l"(in[1]));
    asm("{ add.cc.u64 %0, %0, %2; addc.u64 %1, %1, 0b11; }" : "+l"(low), "+l"(high) : "l"(in[2]));
    unsigned a, b, c, d;
    asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4 + 16];" : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "l"(in));
    asm volatile("{ .reg .b16 lo, hi; mov.b32 {lo, hi}, %1; mov.b32 %0, {hi, lo}; }" : "=r"(a) : "r"(b));
    unsigned member; bool all;
    asm volatile("{ .reg .pred q, s; setp.ne.u32 q|s, %1, 0; selp.u32 %0, 1, 0, s; }" : "=r"(member) : "r"(c));
    out[1] = a + b + c + d + member; out[2] = (unsigned)low + (unsigned)high;
}
"""

CALLS = r"""
struct Item { int a; double b; char c[3]; };
__device__ __noinline__ int twice(int x) { return x * 2; }
__device__ __noinline__ Item make(Item item, int x) { item.a += x; item.b *= x; return item; }
__device__ __noinline__ int factorial(int n) { return n < 2 ? 1 : n * factorial(n - 1); }
__device__ __noinline__ int one(int x) { return x + 1; }
__device__ __noinline__ int two(int x) { return x + 2; }
typedef int (*function)(int);
__device__ function table[] = {one, two, twice};
__device__ int numbers[3][2] = {{1, 2}, {3, -4}, {5, 6}};
__device__ int* pointer = &numbers[1][1];
__constant__ float weights[4] = {0.5f, -1.5f, 2.5e10f, 0.f};
__constant__ const char* words[] = {"one", "two;\n{", "three"};
__managed__ int managed = 7;
extern __shared__ int dynamic[];
extern "C" __global__ void calls(Item item, int* out, int n) {
    Item made = make(item, n);
    out[0] = made.a + twice(n);
    out[1] = table[n % 3](n);
    out[2] = factorial(n);
    out[3] = numbers[n % 3][n % 2] + *pointer + managed;
    dynamic[n] = (int)weights[n & 3];
    int local[16];
    for (int i = 0; i < 16; i++) local[i] = i * n;
    out[4] = local[n & 15] + words[n % 3][0];
    printf("n = %d %f %s\n", n, made.b, words[0]);
    assert(n > 3 && "a message");
}
extern "C" __global__ void switches(int* out, int n) {
    switch (n) {
    case 0: out[0] = 3; break;
    case 1: out[1] = 5; break;
    case 2: out[7] = n * 3; break;
    case 3: out[2] = 8; break;
    case 4: out[3] = n; break;
    case 5: out[4] = 99; break;
    case 6: asm volatile("trap;"); break;
    default: __nanosleep(20);
    }
}
extern "C" __global__ void allocate(void** out) { out[threadIdx.x] = malloc(threadIdx.x); free(out[0]); }
"""

FP16 = r"""
#include <cuda_fp16.h>
#include <cuda_bf16.h>
extern "C" __global__ void halves(__half* h, __half2* h2, __nv_bfloat16* b, float* f) {
    int i = threadIdx.x;
    h[i] = __hfma(h[i], h[i + 1], __float2half(f[i]));
    h2[i] = __hadd2(h2[i], __floats2half2_rn(f[i], f[i + 1]));
    h2[i] = __hmax2(h2[i], h2exp(h2[i + 1]));
    b[i] = __hadd(b[i], __float2bfloat16(f[i]));
    f[i] = __half2float(h[i]) + __bfloat162float(b[i]) + (__hlt(h[i], h[i + 1]) ? 1.f : 2.f);
    atomicAdd(&h[7], h[i]);
    atomicAdd(&h2[7], h2[i]);
}
"""

WARP = r"""
extern "C" __global__ void warp(unsigned* out, const int* in) {
    unsigned i = threadIdx.x, m = __activemask();
    int v = in[i];
    int pred;
    out[i] = __shfl_xor_sync(m, v, 3) + __shfl_sync(m, v, 2, 16) + __shfl_up_sync(m, v, 1);
    out[i] += __ballot_sync(m, v > 3) + __any_sync(m, v == 2) + __all_sync(m, v == 9);
    out[i] += __match_any_sync(m, v) + __match_all_sync(m, v, &pred) + pred;
    out[i] += __reduce_add_sync(m, v) + __reduce_max_sync(m, v);
    out[i] += __popc(v) + __clz(v) + __brev(v) + __ffs(v) + __funnelshift_l(v, i, 5) + __byte_perm(v, i, 0x1234);
    out[i] += __dp4a(v, v, 3) + __sad(v, 3, 4) + __mulhi(v, 7) + __vadd4(v, i);
    out[i] += __syncthreads_count(v) + __syncthreads_or(v) + __syncthreads_and(v);
    __syncwarp();
    out[i] += (unsigned)clock64();
}
"""

ATOMICS = r"""
#include <cuda/atomic>
#include <cuda/std/complex>
extern "C" __global__ void atomics(int* i, unsigned long long* u, float* f, double* d, unsigned short* s) {
    atomicAdd(i, 1); atomicSub(i, 2); atomicExch(i, 4); atomicMin(i, 5); atomicMax(i + 1, 5); atomicInc((unsigned*)i, 7);
    i[3] = atomicDec((unsigned*)i, 9); atomicAnd(i, 3); atomicOr(i, 4); atomicXor(i, 6);
    atomicCAS(u, 3ull, 5ull); atomicCAS(s, (unsigned short)3, (unsigned short)5);
    f[1] = atomicAdd(f, 1.5f); atomicAdd(d, 2.5); atomicAdd_system(i, 5); atomicAdd_block(i, 6);
    cuda::atomic_ref<int, cuda::thread_scope_device> r(*i);
    r.fetch_add(1, cuda::memory_order_relaxed);
    int expected = 5;
    r.compare_exchange_strong(expected, 6, cuda::memory_order_acq_rel);
    i[2] = r.load(cuda::memory_order_acquire);
    cuda::atomic_ref<double, cuda::thread_scope_system> rd(*d);
    rd.fetch_max(3.0);
    __threadfence(); __threadfence_block(); __threadfence_system();
    cuda::std::complex<float> z(f[0], f[1]);
    z = z * z / cuda::std::complex<float>(f[2], f[3]);
    f[4] = z.real();
}
"""

COOPERATIVE = r"""
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
extern "C" __global__ void groups(int* out, const int* in) {
    cg::thread_block block = cg::this_thread_block();
    auto tile = cg::tiled_partition<16>(block);
    int v = cg::reduce(tile, in[block.thread_rank()], cg::plus<int>());
    auto active = cg::coalesced_threads();
    if (active.thread_rank() == 0) atomicAdd(out, v);
    block.sync();
    cg::grid_group grid = cg::this_grid();
    grid.sync();
    out[grid.thread_rank()] = tile.shfl(v, 0) + tile.any(v > 3) + active.size();
}
"""

PIPELINE = r"""
#include <cuda/barrier>
#include <cuda/pipeline>
extern "C" __global__ void pipelined(int* out, const int* in) {
    __shared__ int buffer[256];
    __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
    if (threadIdx.x == 0) init(&barrier, blockDim.x);
    __syncthreads();
    cuda::memcpy_async(buffer + threadIdx.x, in + threadIdx.x, 4, barrier);
    barrier.arrive_and_wait();
    out[threadIdx.x] = buffer[255 - threadIdx.x];
}
"""

TENSOR = r"""
#include <mma.h>
using namespace nvcuda;
extern "C" __global__ void tensor(const half* a, const half* b, float* c) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
    wmma::load_matrix_sync(fa, a, 16); wmma::load_matrix_sync(fb, b, 16); wmma::fill_fragment(fc, 0.f);
    wmma::mma_sync(fc, fa, fb, fc);
    wmma::store_matrix_sync(c, fc, 16, wmma::mem_row_major);
}
extern "C" __global__ void textures(cudaTextureObject_t t, cudaSurfaceObject_t s, float* out) {
    out[0] = tex1Dfetch<float>(t, 3) + tex2D<float>(t, 1.5f, 2.5f) + tex3D<float4>(t, 1.f, 2.f, 3.f).y;
    out[1] = tex2DLod<float>(t, 1.f, 2.f, 3.f) + tex2Dgather<float4>(t, 1.f, 2.f, 1).x;
    int v; surf2Dread(&v, s, 4, 5); surf2Dwrite(v, s, 8, 9);
}
"""

MATHS = r"""
extern "C" __global__ void maths(float* f, double* d, int n) {
    int i = threadIdx.x;
    f[i] = sinf(f[i]) + cosf(f[i + 1]) + expf(f[i]) + logf(f[i]) + powf(f[i], f[i + 1]) + sqrtf(f[i]) + tanf(f[i]);
    d[i] = sin(d[i]) + exp(d[i]) + log(d[i]) + pow(d[i], d[i + 1]) + sqrt(d[i]) + d[i] / d[i + 1] + erf(d[i]);
    f[i + 1] = __sinf(f[i]) + __expf(f[i]) + __fdividef(f[i], 3.f) + rsqrtf(f[i]) + fmaf(f[i], 2.f, 3.f);
    __int128 a = (__int128)n * i * 1234567;
    d[0] = (double)(long long)(a / (n + 1));
}
"""

ALGORITHMS = r"""
#include <cub/block/block_scan.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cuda/std/optional>
#include <cuda/std/algorithm>
extern "C" __global__ void algorithms(int* data) {
    using Scan = cub::BlockScan<int, 128>;
    using Sort = cub::BlockRadixSort<int, 128, 2>;
    __shared__ union { typename Scan::TempStorage scan; typename Sort::TempStorage sort; } temp;
    int keys[2] = {data[threadIdx.x], data[threadIdx.x + 128]};
    Sort(temp.sort).Sort(keys);
    __syncthreads();
    int sum;
    Scan(temp.scan).ExclusiveSum(keys[0], sum);
    cuda::std::optional<int> maybe;
    if (sum > 3) maybe = sum;
    data[threadIdx.x] = maybe.value_or(cuda::std::max(keys[0], keys[1]));
}
"""

CLUSTER = r"""
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void __cluster_dims__(2, 1, 1) clustered(int* out) {
    __shared__ int cell;
    cell = threadIdx.x;
    cg::cluster_group cluster = cg::this_cluster();
    cluster.sync();
    out[0] = *cluster.map_shared_rank(&cell, 1);
    cluster.sync();
}
extern "C" __global__ void grid_constant(const __grid_constant__ int4 p, int* out) { out[0] = (&p.x)[threadIdx.x]; }
"""

DYNAMIC_PARALLELISM = r"""
__global__ void child(int* x) { x[threadIdx.x] = 1; }
extern "C" __global__ void parent(int* x) { child<<<1, 32>>>(x); }
"""

SOURCES = {
    "saxpy": (SAXPY, ()),
    "reduce": (REDUCE, ()),
    "inline_asm": (INLINE_ASM, ()),
    "calls": (CALLS, ()),
    "fp16": (FP16, ()),
    "warp": (WARP, ()),
    "atomics": (ATOMICS, ()),
    "cooperative": (COOPERATIVE, ()),
    "pipeline": (PIPELINE, ()),
    "tensor": (TENSOR, ()),
    "maths": (MATHS, ("--device-int128",)),
    "algorithms": (ALGORITHMS, ()),
    "cluster": (CLUSTER, ()),
    "dynamic_parallelism": (DYNAMIC_PARALLELISM, ("-rdc=true",)),
}
