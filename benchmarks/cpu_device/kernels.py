"""The kernels of the comparison: CUDA C++, OpenCL C and a plain C loop of each, and NumPy where it has one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Benchmark:
    """One row of the table.

    ``arrays`` makes the arrays, ``scalars`` follow them as arguments of every version; ``result`` names the array
    that is compared. ``reset`` says whether it must be zeroed before each run (it accumulates). ``architecture`` is the
    one of the CUDA kernel, where that needs another than the device's; ``opencl`` is empty where it has no such thing.
    """

    name: str
    cuda: str
    opencl: str
    c: str
    arrays: Callable[[], list[Array]]
    scalars: tuple[Any, ...]
    grid: tuple[int, ...]
    block: tuple[int, ...]
    result: int
    numpy: Callable[..., Any] | None = None
    tolerance: float = 1e-5
    reset: bool = False
    note: str = ""
    opencl_options: list[str] = field(default_factory=list)
    c_options: list[str] = field(default_factory=list)
    architecture: str = ""


def uniform(*shape: int) -> Array:
    return np.random.default_rng(1).random(shape, dtype=np.float32)


N = 1 << 24
SAXPY = Benchmark(
    name="saxpy 16M",
    cuda=r"""extern "C" __global__ void k(const float* x, float* y, float a, int n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) y[i] = a * x[i] + y[i];
    }""",
    opencl=r"""kernel void k(global const float* x, global float* y, float a, int n) {
        int i = get_global_id(0);
        if (i < n) y[i] = a * x[i] + y[i];
    }""",
    c=r"""void k(const float* restrict x, float* restrict y, float a, int n) {
        for (int i = 0; i < n; ++i) y[i] = a * x[i] + y[i];
    }""",
    arrays=lambda: [uniform(N), np.zeros(N, np.float32)],
    scalars=(np.float32(1e-3), np.int32(N)),
    grid=(N // 256,),
    block=(256,),
    result=1,
    numpy=lambda x, y, a, n: np.add(np.multiply(x, a), y, out=y),
    reset=True,
)

SAXPY_GRID_STRIDE = Benchmark(
    name="grid-stride saxpy 16M",
    cuda=r"""extern "C" __global__ void k(const float* x, float* y, float a, int n) {
        for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
            y[i] = a * x[i] + y[i];
    }""",
    opencl=r"""kernel void k(global const float* x, global float* y, float a, int n) {
        for (int i = get_global_id(0); i < n; i += get_global_size(0)) y[i] = a * x[i] + y[i];
    }""",
    c=SAXPY.c,
    arrays=SAXPY.arrays,
    scalars=SAXPY.scalars,
    grid=(264,),
    block=(256,),
    result=1,
    reset=True,
)

REDUCTION_N = 1 << 14
REDUCTION = Benchmark(
    name="block reduction 16K",
    cuda=r"""extern "C" __global__ void k(const float* x, float* out, int n) {
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
    }""",
    opencl=r"""kernel void k(global const float* x, global float* out, int n) {
        local float s[256];
        int t = get_local_id(0);
        float a = 0;
        for (int i = get_global_id(0); i < n; i += get_global_size(0)) a += x[i];
        s[t] = a;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 128; k; k >>= 1) {
            if (t < k) s[t] += s[t + k];
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        if (!t) {
            volatile global uint* p = (volatile global uint*)out;
            uint seen = *p, before;
            do {
                before = seen;
                seen = atomic_cmpxchg(p, before, as_uint(as_float(before) + s[0]));
            } while (seen != before);
        }
    }""",
    c=r"""void k(const float* restrict x, float* restrict out, int n) {
        float a = 0;
        for (int i = 0; i < n; ++i) a += x[i];
        *out += a;
    }""",
    arrays=lambda: [uniform(REDUCTION_N), np.zeros(1, np.float32)],
    scalars=(np.int32(REDUCTION_N),),
    grid=(64,),
    block=(256,),
    result=1,
    numpy=lambda x, out, n: out.__setitem__(0, x.sum()),
    tolerance=1e-4,
    reset=True,
    c_options=["-ffast-math"],
)

M = 512
MATMUL = Benchmark(
    name="tiled matmul 512 (32 x 32)",
    cuda=r"""extern "C" __global__ void k(const float* a, const float* b, float* c, int n) {
        __shared__ float as[32][32], bs[32][32];
        int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 32 + y, column = blockIdx.x * 32 + x;
        float total = 0;
        for (int k0 = 0; k0 < n; k0 += 32) {
            as[y][x] = a[row * n + k0 + x];
            bs[y][x] = b[(k0 + y) * n + column];
            __syncthreads();
            for (int k = 0; k < 32; ++k) total += as[y][k] * bs[k][x];
            __syncthreads();
        }
        c[row * n + column] = total;
    }""",
    opencl=r"""kernel void k(global const float* a, global const float* b, global float* c, int n) {
        local float as[32][32], bs[32][32];
        int x = get_local_id(0), y = get_local_id(1), row = get_group_id(1) * 32 + y, column = get_group_id(0) * 32 + x;
        float total = 0;
        for (int k0 = 0; k0 < n; k0 += 32) {
            as[y][x] = a[row * n + k0 + x];
            bs[y][x] = b[(k0 + y) * n + column];
            barrier(CLK_LOCAL_MEM_FENCE);
            for (int k = 0; k < 32; ++k) total += as[y][k] * bs[k][x];
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        c[row * n + column] = total;
    }""",
    c=r"""#include <string.h>
    void k(const float* restrict a, const float* restrict b, float* restrict c, int n) {
        memset(c, 0, sizeof(float) * n * n);
        for (int i = 0; i < n; ++i)
            for (int k = 0; k < n; ++k)
                for (int j = 0; j < n; ++j) c[i * n + j] += a[i * n + k] * b[k * n + j];
    }""",
    arrays=lambda: [uniform(M, M), uniform(M, M), np.zeros((M, M), np.float32)],
    scalars=(np.int32(M),),
    grid=(M // 32, M // 32),
    block=(32, 32),
    result=2,
    numpy=lambda a, b, c, n: np.matmul(a, b, out=c),
    tolerance=1e-4,
    note="NumPy calls BLAS",
)

H = 1 << 22
HISTOGRAM = Benchmark(
    name="histogram 4M",
    cuda=r"""extern "C" __global__ void k(const unsigned char* x, unsigned* h, int n) {
        __shared__ unsigned s[256];
        s[threadIdx.x] = 0;
        __syncthreads();
        for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&s[x[i]], 1u);
        __syncthreads();
        atomicAdd(&h[threadIdx.x], s[threadIdx.x]);
    }""",
    opencl=r"""kernel void k(global const uchar* x, global uint* h, int n) {
        local uint s[256];
        s[get_local_id(0)] = 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int i = get_global_id(0); i < n; i += get_global_size(0)) atomic_add(&s[x[i]], 1u);
        barrier(CLK_LOCAL_MEM_FENCE);
        atomic_add(&h[get_local_id(0)], s[get_local_id(0)]);
    }""",
    c=r"""#include <string.h>
    void k(const unsigned char* restrict x, unsigned* restrict h, int n) {
        unsigned part[4][256];
        memset(part, 0, sizeof part);
        for (int i = 0; i < n; i += 4)
            for (int j = 0; j < 4; ++j) ++part[j][x[i + j]];
        for (int i = 0; i < 256; ++i) h[i] += part[0][i] + part[1][i] + part[2][i] + part[3][i];
    }""",
    arrays=lambda: [
        np.random.default_rng(2).integers(0, 256, H, dtype=np.uint8),
        np.zeros(256, np.uint32),
    ],
    scalars=(np.int32(H),),
    grid=(64,),
    block=(256,),
    result=1,
    numpy=lambda x, h, n: np.add(h, np.bincount(x, minlength=256).astype(np.uint32), out=h),
    reset=True,
)

MANDELBROT_BODY = r"""
    float cr = -2.0f + 3.0f * x / w, ci = -1.0f + 2.0f * y / h, zr = 0, zi = 0;
    int it = 0;
    while (it < most && zr * zr + zi * zi < 4.0f) {
        float t = zr * zr - zi * zi + cr;
        zi = 2 * zr * zi + ci;
        zr = t;
        ++it;
    }
    out[y * w + x] = it;
"""
MANDELBROT = Benchmark(
    name="mandelbrot 512",
    cuda=r"""extern "C" __global__ void k(int* out, int w, int h, int most) {
        int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
        if (x >= w || y >= h) return;"""
    + MANDELBROT_BODY
    + "}",
    opencl=r"""kernel void k(global int* out, int w, int h, int most) {
        int x = get_global_id(0), y = get_global_id(1);
        if (x >= w || y >= h) return;"""
    + MANDELBROT_BODY
    + "}",
    c=r"""void k(int* restrict out, int w, int h, int most) {
        for (int y = 0; y < h; ++y) for (int x = 0; x < w; ++x) {"""
    + MANDELBROT_BODY
    + "}}",
    arrays=lambda: [np.zeros((512, 512), np.int32)],
    scalars=(np.int32(512), np.int32(512), np.int32(256)),
    grid=(16, 64),
    block=(32, 8),
    result=0,
    # Escape counts of single points differ where one compiler contracts a product and a sum and another does not.
    tolerance=0.02,
)

S = 1 << 10
STENCIL = Benchmark(
    name="stencil 1K x 1K",
    cuda=r"""extern "C" __global__ void k(const float* x, float* y, int w, int h) {
        int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
        if (i > 0 && j > 0 && i < w - 1 && j < h - 1)
            y[j * w + i] = 0.25f * (x[j * w + i - 1] + x[j * w + i + 1] + x[(j - 1) * w + i] + x[(j + 1) * w + i]);
    }""",
    opencl=r"""kernel void k(global const float* x, global float* y, int w, int h) {
        int i = get_global_id(0), j = get_global_id(1);
        if (i > 0 && j > 0 && i < w - 1 && j < h - 1)
            y[j * w + i] = 0.25f * (x[j * w + i - 1] + x[j * w + i + 1] + x[(j - 1) * w + i] + x[(j + 1) * w + i]);
    }""",
    c=r"""void k(const float* restrict x, float* restrict y, int w, int h) {
        for (int j = 1; j < h - 1; ++j)
            for (int i = 1; i < w - 1; ++i)
                y[j * w + i] = 0.25f * (x[j * w + i - 1] + x[j * w + i + 1] + x[(j - 1) * w + i] + x[(j + 1) * w + i]);
    }""",
    arrays=lambda: [uniform(S, S), np.zeros((S, S), np.float32)],
    scalars=(np.int32(S), np.int32(S)),
    grid=(S // 32, S // 8),
    block=(32, 8),
    result=1,
    numpy=lambda x, y, w, h: np.multiply(
        x[1:-1, :-2] + x[1:-1, 2:] + x[:-2, 1:-1] + x[2:, 1:-1], np.float32(0.25), out=y[1:-1, 1:-1]
    ),
)

BENCHMARKS = [SAXPY, SAXPY_GRID_STRIDE, REDUCTION, MATMUL, HISTOGRAM, MANDELBROT, STENCIL]
