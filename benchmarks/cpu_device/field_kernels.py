"""Ten more kernels as they are written every day in machine learning, finance, physics and signal processing."""

from __future__ import annotations

from typing import Any

import numpy as np

from .kernels import Array, Benchmark, uniform

ROWS = COLUMNS = 1024

# The sum (or maximum) over a block of 256: shuffles within a warp, one value a warp in shared memory.
CUDA_BLOCK_REDUCE = r"""
__device__ float across(float v, float* s, bool largest) {
    int t = threadIdx.x;
    for (int k = 16; k; k >>= 1) {
        float o = __shfl_xor_sync(~0u, v, k);
        v = largest ? fmaxf(v, o) : v + o;
    }
    if (t % 32 == 0) s[t / 32] = v;
    __syncthreads();
    v = s[t % 8];
    for (int k = 4; k; k >>= 1) {
        float o = __shfl_xor_sync(~0u, v, k);
        v = largest ? fmaxf(v, o) : v + o;
    }
    __syncthreads();
    return v;
}
"""

OPENCL_BLOCK_REDUCE = r"""
float across(float v, local float* s, int largest) {
    int t = get_local_id(0);
    s[t] = v;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k = 128; k; k >>= 1) {
        if (t < k) s[t] = largest ? fmax(s[t], s[t + k]) : s[t] + s[t + k];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    v = s[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    return v;
}
"""


def _numpy_softmax(x: Array, y: Array, n: int) -> None:
    np.exp(x - x.max(1, keepdims=True), out=y)
    y /= y.sum(1, keepdims=True)


SOFTMAX = Benchmark(
    name="softmax 1K x 1K",
    cuda=CUDA_BLOCK_REDUCE
    + r"""extern "C" __global__ void k(const float* x, float* y, int n) {
        __shared__ float s[8];
        const float* row = x + (size_t)blockIdx.x * n;
        float* out = y + (size_t)blockIdx.x * n;
        float top = -1e30f, total = 0;
        for (int i = threadIdx.x; i < n; i += blockDim.x) top = fmaxf(top, row[i]);
        top = across(top, s, true);
        for (int i = threadIdx.x; i < n; i += blockDim.x) total += __expf(row[i] - top);
        total = 1 / across(total, s, false);
        for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = __expf(row[i] - top) * total;
    }""",
    opencl=OPENCL_BLOCK_REDUCE
    + r"""kernel void k(global const float* x, global float* y, int n) {
        local float s[256];
        global const float* row = x + (size_t)get_group_id(0) * n;
        global float* out = y + (size_t)get_group_id(0) * n;
        float top = -1e30f, total = 0;
        for (int i = get_local_id(0); i < n; i += get_local_size(0)) top = fmax(top, row[i]);
        top = across(top, s, 1);
        for (int i = get_local_id(0); i < n; i += get_local_size(0)) total += native_exp(row[i] - top);
        total = 1 / across(total, s, 0);
        for (int i = get_local_id(0); i < n; i += get_local_size(0)) out[i] = native_exp(row[i] - top) * total;
    }""",
    c=r"""#include <math.h>
    void k(const float* restrict x, float* restrict y, int n) {
        for (int r = 0; r < ROWS; ++r, x += n, y += n) {
            float top = x[0], total = 0;
            for (int i = 1; i < n; ++i) top = x[i] > top ? x[i] : top;
            for (int i = 0; i < n; ++i) total += y[i] = expf(x[i] - top);
            total = 1 / total;
            for (int i = 0; i < n; ++i) y[i] *= total;
        }
    }""".replace("ROWS", str(ROWS)),
    arrays=lambda: [8 * uniform(ROWS, COLUMNS), np.zeros((ROWS, COLUMNS), np.float32)],
    scalars=(np.int32(COLUMNS),),
    grid=(ROWS,),
    block=(256,),
    result=1,
    numpy=_numpy_softmax,
    tolerance=1e-5,
    c_options=["-ffast-math"],
)


def _numpy_layer_norm(x: Array, gain: Array, y: Array, n: int) -> None:
    np.subtract(x, x.mean(1, keepdims=True), out=y)
    y *= gain / np.sqrt(np.square(y).mean(1, keepdims=True) + np.float32(1e-5))


LAYER_NORM = Benchmark(
    name="layer norm 1K x 1K",
    cuda=CUDA_BLOCK_REDUCE
    + r"""extern "C" __global__ void k(const float* x, const float* gain, float* y, int n) {
        __shared__ float s[8];
        const float* row = x + (size_t)blockIdx.x * n;
        float* out = y + (size_t)blockIdx.x * n;
        float total = 0, squares = 0;
        for (int i = threadIdx.x; i < n; i += blockDim.x) total += row[i];
        float mean = across(total, s, false) / n;
        for (int i = threadIdx.x; i < n; i += blockDim.x) squares += (row[i] - mean) * (row[i] - mean);
        float scale = rsqrtf(across(squares, s, false) / n + 1e-5f);
        for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = (row[i] - mean) * scale * gain[i];
    }""",
    opencl=OPENCL_BLOCK_REDUCE
    + r"""kernel void k(global const float* x, global const float* gain, global float* y, int n) {
        local float s[256];
        global const float* row = x + (size_t)get_group_id(0) * n;
        global float* out = y + (size_t)get_group_id(0) * n;
        float total = 0, squares = 0;
        for (int i = get_local_id(0); i < n; i += get_local_size(0)) total += row[i];
        float mean = across(total, s, 0) / n;
        for (int i = get_local_id(0); i < n; i += get_local_size(0)) squares += (row[i] - mean) * (row[i] - mean);
        float scale = rsqrt(across(squares, s, 0) / n + 1e-5f);
        for (int i = get_local_id(0); i < n; i += get_local_size(0)) out[i] = (row[i] - mean) * scale * gain[i];
    }""",
    c=r"""#include <math.h>
    void k(const float* restrict x, const float* restrict gain, float* restrict y, int n) {
        for (int r = 0; r < ROWS; ++r, x += n, y += n) {
            float total = 0, squares = 0;
            for (int i = 0; i < n; ++i) total += x[i];
            float mean = total / n;
            for (int i = 0; i < n; ++i) squares += (x[i] - mean) * (x[i] - mean);
            float scale = 1 / sqrtf(squares / n + 1e-5f);
            for (int i = 0; i < n; ++i) y[i] = (x[i] - mean) * scale * gain[i];
        }
    }""".replace("ROWS", str(ROWS)),
    arrays=lambda: [uniform(ROWS, COLUMNS), uniform(COLUMNS), np.zeros((ROWS, COLUMNS), np.float32)],
    scalars=(np.int32(COLUMNS),),
    grid=(ROWS,),
    block=(256,),
    result=2,
    numpy=_numpy_layer_norm,
    tolerance=1e-4,
    c_options=["-ffast-math"],
)

T = 2048
TRANSPOSE = Benchmark(
    name="transpose 2K x 2K",
    cuda=r"""extern "C" __global__ void k(const float* x, float* y, int n) {
        __shared__ float tile[32][33];
        int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 32 + threadIdx.y;
        for (int j = 0; j < 32; j += 8) tile[threadIdx.y + j][threadIdx.x] = x[(row + j) * n + column];
        __syncthreads();
        column = blockIdx.y * 32 + threadIdx.x, row = blockIdx.x * 32 + threadIdx.y;
        for (int j = 0; j < 32; j += 8) y[(row + j) * n + column] = tile[threadIdx.x][threadIdx.y + j];
    }""",
    opencl=r"""kernel void k(global const float* x, global float* y, int n) {
        local float tile[32][33];
        int tx = get_local_id(0), ty = get_local_id(1), bx = get_group_id(0), by = get_group_id(1);
        int column = bx * 32 + tx, row = by * 32 + ty;
        for (int j = 0; j < 32; j += 8) tile[ty + j][tx] = x[(row + j) * n + column];
        barrier(CLK_LOCAL_MEM_FENCE);
        column = by * 32 + tx, row = bx * 32 + ty;
        for (int j = 0; j < 32; j += 8) y[(row + j) * n + column] = tile[tx][ty + j];
    }""",
    c=r"""void k(const float* restrict x, float* restrict y, int n) {
        for (int i0 = 0; i0 < n; i0 += 32)
            for (int j0 = 0; j0 < n; j0 += 32)
                for (int i = i0; i < i0 + 32; ++i)
                    for (int j = j0; j < j0 + 32; ++j) y[i * n + j] = x[j * n + i];
    }""",
    arrays=lambda: [uniform(T, T), np.zeros((T, T), np.float32)],
    scalars=(np.int32(T),),
    grid=(T // 32, T // 32),
    block=(32, 8),
    result=1,
    numpy=lambda x, y, n: np.copyto(y, x.T),
)

GEMV = Benchmark(
    name="GEMV 2K x 2K",
    cuda=r"""extern "C" __global__ void k(const float* a, const float* x, float* y, int n) {
        int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
        float total = 0;
        for (int i = lane; i < n; i += 32) total += a[(size_t)row * n + i] * x[i];
        for (int k = 16; k; k >>= 1) total += __shfl_down_sync(~0u, total, k);
        if (lane == 0) y[row] = total;
    }""",
    opencl=r"""kernel void k(global const float* a, global const float* x, global float* y, int n) {
        local float s[256];
        int t = get_local_id(0), row = get_group_id(0) * 8 + t / 32, lane = t % 32;
        float total = 0;
        for (int i = lane; i < n; i += 32) total += a[(size_t)row * n + i] * x[i];
        s[t] = total;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 16; k; k >>= 1) {
            if (lane < k) s[t] += s[t + k];
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        if (lane == 0) y[row] = s[t];
    }""",
    c=r"""void k(const float* restrict a, const float* restrict x, float* restrict y, int n) {
        for (int r = 0; r < n; ++r, a += n) {
            float total = 0;
            for (int i = 0; i < n; ++i) total += a[i] * x[i];
            y[r] = total;
        }
    }""",
    arrays=lambda: [uniform(T, T), uniform(T), np.zeros(T, np.float32)],
    scalars=(np.int32(T),),
    grid=(T // 8,),
    block=(256,),
    result=2,
    numpy=lambda a, x, y, n: np.dot(a, x, out=y),
    tolerance=1e-4,
    note="NumPy calls BLAS",
    c_options=["-ffast-math"],
)

KEYS = 1 << 20
RADIX_PASS = Benchmark(
    name="radix-sort pass 1M",
    cuda=r"""extern "C" __global__ void k(const unsigned* x, unsigned* y, int shift) {
        // Each block sorts its 256 keys by four bits, one bit after the other, keeping the order of equals.
        __shared__ unsigned keys[256], zeros[8];
        int t = threadIdx.x, warp = t / 32;
        unsigned key = x[blockIdx.x * 256 + t], below = (1u << t % 32) - 1;
        for (int bit = shift; bit < shift + 4; ++bit) {
            bool one = key >> bit & 1;
            unsigned ballot = __ballot_sync(~0u, !one);
            if (t % 32 == 0) zeros[warp] = __popc(ballot);
            __syncthreads();
            unsigned before = 0, total = 0;
            for (int w = 0; w < 8; ++w) {
                if (w < warp) before += zeros[w];
                total += zeros[w];
            }
            before += __popc(ballot & below);
            keys[one ? total + t - before : before] = key;
            __syncthreads();
            key = keys[t];
        }
        y[blockIdx.x * 256 + t] = key;
    }""",
    opencl=r"""kernel void k(global const uint* x, global uint* y, int shift) {
        local uint keys[256], sums[256];
        int t = get_local_id(0);
        uint key = x[get_group_id(0) * 256 + t];
        for (int bit = shift; bit < shift + 4; ++bit) {
            int one = key >> bit & 1;
            sums[t] = !one;
            barrier(CLK_LOCAL_MEM_FENCE);
            for (int k = 1; k < 256; k <<= 1) {
                uint v = t >= k ? sums[t - k] : 0;
                barrier(CLK_LOCAL_MEM_FENCE);
                sums[t] += v;
                barrier(CLK_LOCAL_MEM_FENCE);
            }
            uint before = sums[t] - !one, total = sums[255];
            keys[one ? total + t - before : before] = key;
            barrier(CLK_LOCAL_MEM_FENCE);
            key = keys[t];
        }
        y[get_group_id(0) * 256 + t] = key;
    }""",
    c=r"""void k(const unsigned* restrict x, unsigned* restrict y, int shift) {
        for (int b = 0; b < KEYS; b += 256, x += 256, y += 256) {
            unsigned at[17] = {0};
            for (int i = 0; i < 256; ++i) ++at[1 + (x[i] >> shift & 15)];
            for (int d = 1; d < 16; ++d) at[d] += at[d - 1];
            for (int i = 0; i < 256; ++i) y[at[x[i] >> shift & 15]++] = x[i];
        }
    }""".replace("KEYS", str(KEYS)),
    arrays=lambda: [
        np.random.default_rng(4).integers(0, 1 << 32, KEYS, dtype=np.uint32),
        np.zeros(KEYS, np.uint32),
    ],
    scalars=(np.int32(8),),
    grid=(KEYS // 256,),
    block=(256,),
    result=1,
    tolerance=0,
)

OPTIONS = 1 << 20
BLACK_SCHOLES_BODY = r"""
    float d1 = (LOG(s[i] / e[i]) + (0.02f + 0.5f * 0.3f * 0.3f) * t[i]) / (0.3f * SQRT(t[i]));
    float d2 = d1 - 0.3f * SQRT(t[i]);
    float discounted = e[i] * EXP(-0.02f * t[i]);
    float k1 = 1 / (1 + 0.2316419f * FABS(d1)), k2 = 1 / (1 + 0.2316419f * FABS(d2));
    float n1 = 0.39894228f * EXP(-0.5f * d1 * d1) * k1
        * (0.31938153f + k1 * (-0.356563782f + k1 * (1.781477937f + k1 * (-1.821255978f + k1 * 1.330274429f))));
    float n2 = 0.39894228f * EXP(-0.5f * d2 * d2) * k2
        * (0.31938153f + k2 * (-0.356563782f + k2 * (1.781477937f + k2 * (-1.821255978f + k2 * 1.330274429f))));
    n1 = d1 > 0 ? 1 - n1 : n1;
    n2 = d2 > 0 ? 1 - n2 : n2;
    call[i] = s[i] * n1 - discounted * n2;
"""


def _spelled(body: str, **names: str) -> str:
    for name, spelling in names.items():
        body = body.replace(name, spelling)
    return body


BLACK_SCHOLES = Benchmark(
    name="Black-Scholes 1M",
    cuda=r"""extern "C" __global__ void k(const float* s, const float* e, const float* t, float* call, int n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i >= n) return;
    """
    + _spelled(BLACK_SCHOLES_BODY, LOG="__logf", EXP="__expf", SQRT="sqrtf", FABS="fabsf")
    + "}",
    opencl=r"""kernel void k(global const float* s, global const float* e, global const float* t,
            global float* call, int n) {
        int i = get_global_id(0);
        if (i >= n) return;
    """
    + _spelled(BLACK_SCHOLES_BODY, LOG="native_log", EXP="native_exp", SQRT="sqrt", FABS="fabs")
    + "}",
    c=r"""#include <math.h>
    void k(const float* restrict s, const float* restrict e, const float* restrict t, float* restrict call, int n) {
        for (int i = 0; i < n; ++i) {
    """
    + _spelled(BLACK_SCHOLES_BODY, LOG="logf", EXP="expf", SQRT="sqrtf", FABS="fabsf")
    + "}}",
    arrays=lambda: [
        5 + 25 * uniform(OPTIONS),
        1 + 99 * uniform(OPTIONS)[::-1].copy(),
        np.float32(0.25) + 9 * uniform(OPTIONS),
        np.zeros(OPTIONS, np.float32),
    ],
    scalars=(np.int32(OPTIONS),),
    grid=(OPTIONS // 256,),
    block=(256,),
    result=3,
    tolerance=1e-3,
    c_options=["-ffast-math"],
)

POINTS, TRANSFORMS = 1024, 256
FFT_STEP = r"""
            int middle = length / 2, j = t % middle, at = (t / middle) * length + j, w = j * (1024 / length);
            float c = twiddle[2 * w], d = twiddle[2 * w + 1];
            float br = re[at + middle] * c - im[at + middle] * d, bi = re[at + middle] * d + im[at + middle] * c;
            float ar = re[at], ai = im[at];
            re[at] = ar + br, im[at] = ai + bi;
            re[at + middle] = ar - br, im[at + middle] = ai - bi;
"""


def _twiddles() -> Array:
    angles = -2 * np.pi * np.arange(POINTS // 2) / POINTS
    return np.stack([np.cos(angles), np.sin(angles)], 1).astype(np.float32).ravel()


def _numpy_fft(x: Array, twiddle: Array, y: Array, n: int) -> None:
    y[:] = np.fft.fft(x.view(np.complex64).reshape(TRANSFORMS, POINTS)).astype(np.complex64).view(np.float32).ravel()


FFT = Benchmark(
    name="FFT 256 x 1024 points",
    cuda=r"""extern "C" __global__ void k(const float* x, const float* twiddle, float* y, int n) {
        __shared__ float re[1024], im[1024];
        int t = threadIdx.x;
        x += blockIdx.x * 2048, y += blockIdx.x * 2048;
        for (int i = t; i < 1024; i += 512) {
            int from = __brev(i) >> 22;
            re[i] = x[2 * from], im[i] = x[2 * from + 1];
        }
        __syncthreads();
        for (int length = 2; length <= 1024; length *= 2) {"""
    + FFT_STEP
    + r"""
            __syncthreads();
        }
        for (int i = t; i < 1024; i += 512) y[2 * i] = re[i], y[2 * i + 1] = im[i];
    }""",
    opencl=r"""kernel void k(global const float* x, global const float* twiddle, global float* y, int n) {
        local float re[1024], im[1024];
        int t = get_local_id(0);
        x += get_group_id(0) * 2048, y += get_group_id(0) * 2048;
        for (int i = t; i < 1024; i += 512) {
            int from = 0;
            for (int b = 0; b < 10; ++b) from |= (i >> b & 1) << (9 - b);
            re[i] = x[2 * from], im[i] = x[2 * from + 1];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int length = 2; length <= 1024; length *= 2) {"""
    + FFT_STEP
    + r"""
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        for (int i = t; i < 1024; i += 512) y[2 * i] = re[i], y[2 * i + 1] = im[i];
    }""",
    c=r"""void k(const float* restrict x, const float* restrict twiddle, float* restrict y, int n) {
        static float re[1024], im[1024];
        for (int b = 0; b < TRANSFORMS; ++b, x += 2048, y += 2048) {
            for (int i = 0; i < 1024; ++i) {
                int from = 0;
                for (int b = 0; b < 10; ++b) from |= (i >> b & 1) << (9 - b);
                re[i] = x[2 * from], im[i] = x[2 * from + 1];
            }
            for (int length = 2; length <= 1024; length *= 2)
                for (int first = 0; first < 1024; first += length)
                    for (int j = 0; j < length / 2; ++j) {
                        int at = first + j, half = length / 2, w = j * (1024 / length);
                        float c = twiddle[2 * w], d = twiddle[2 * w + 1];
                        float br = re[at + half] * c - im[at + half] * d, bi = re[at + half] * d + im[at + half] * c;
                        float ar = re[at], ai = im[at];
                        re[at] = ar + br, im[at] = ai + bi;
                        re[at + half] = ar - br, im[at + half] = ai - bi;
                    }
            for (int i = 0; i < 1024; ++i) y[2 * i] = re[i], y[2 * i + 1] = im[i];
        }
    }""".replace("TRANSFORMS", str(TRANSFORMS)),
    arrays=lambda: [
        uniform(2 * POINTS * TRANSFORMS),
        _twiddles(),
        np.zeros(2 * POINTS * TRANSFORMS, np.float32),
    ],
    scalars=(np.int32(POINTS),),
    grid=(TRANSFORMS,),
    block=(512,),
    result=2,
    numpy=_numpy_fft,
    tolerance=1e-3,
)

EDGE = 128
JACOBI = Benchmark(
    name="Jacobi 128 x 128 x 128",
    cuda=r"""extern "C" __global__ void k(const float* u, float* v, int n) {
        int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, z = blockIdx.z;
        if (x < 1 || y < 1 || z < 1 || x >= n - 1 || y >= n - 1 || z >= n - 1) return;
        int i = (z * n + y) * n + x;
        v[i] = (u[i - 1] + u[i + 1] + u[i - n] + u[i + n] + u[i - n * n] + u[i + n * n]) / 6;
    }""",
    opencl=r"""kernel void k(global const float* u, global float* v, int n) {
        int x = get_global_id(0), y = get_global_id(1), z = get_global_id(2);
        if (x < 1 || y < 1 || z < 1 || x >= n - 1 || y >= n - 1 || z >= n - 1) return;
        int i = (z * n + y) * n + x;
        v[i] = (u[i - 1] + u[i + 1] + u[i - n] + u[i + n] + u[i - n * n] + u[i + n * n]) / 6;
    }""",
    c=r"""void k(const float* restrict u, float* restrict v, int n) {
        for (int z = 1; z < n - 1; ++z)
            for (int y = 1; y < n - 1; ++y)
                for (int x = 1; x < n - 1; ++x) {
                    int i = (z * n + y) * n + x;
                    v[i] = (u[i - 1] + u[i + 1] + u[i - n] + u[i + n] + u[i - n * n] + u[i + n * n]) / 6;
                }
    }""",
    arrays=lambda: [uniform(EDGE, EDGE, EDGE), np.zeros((EDGE, EDGE, EDGE), np.float32)],
    scalars=(np.int32(EDGE),),
    grid=(EDGE // 32, EDGE // 8, EDGE),
    block=(32, 8, 1),
    result=1,
)

SPARSE_ROWS, ENTRIES = 1 << 16, 16


def _sparse() -> list[Array]:
    """A matrix of 65,536 rows with 8 to 24 entries each, in compressed rows."""
    random = np.random.default_rng(5)
    lengths = random.integers(8, 25, SPARSE_ROWS)
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    columns = random.integers(0, SPARSE_ROWS, starts[-1], dtype=np.int32)
    values = random.random(starts[-1], dtype=np.float32)
    return [starts, columns, values, uniform(SPARSE_ROWS), np.zeros(SPARSE_ROWS, np.float32)]


SPMV = Benchmark(
    name="SpMV 64K rows",
    cuda=r"""extern "C" __global__ void k(const int* starts, const int* columns, const float* values, const float* x,
            float* y, int n) {
        int row = blockIdx.x * blockDim.x + threadIdx.x;
        if (row >= n) return;
        float total = 0;
        for (int i = starts[row]; i < starts[row + 1]; ++i) total += values[i] * x[columns[i]];
        y[row] = total;
    }""",
    opencl=r"""kernel void k(global const int* starts, global const int* columns, global const float* values,
            global const float* x, global float* y, int n) {
        int row = get_global_id(0);
        if (row >= n) return;
        float total = 0;
        for (int i = starts[row]; i < starts[row + 1]; ++i) total += values[i] * x[columns[i]];
        y[row] = total;
    }""",
    c=r"""void k(const int* restrict starts, const int* restrict columns, const float* restrict values,
            const float* restrict x, float* restrict y, int n) {
        for (int row = 0; row < n; ++row) {
            float total = 0;
            for (int i = starts[row]; i < starts[row + 1]; ++i) total += values[i] * x[columns[i]];
            y[row] = total;
        }
    }""",
    arrays=_sparse,
    scalars=(np.int32(SPARSE_ROWS),),
    grid=(SPARSE_ROWS // 128,),
    block=(128,),
    result=4,
    numpy=lambda starts, columns, values, x, y, n: np.add.reduceat(values * x[columns], starts[:-1], out=y),
    tolerance=1e-4,
)

PICTURE = 1024
CONVOLUTION_BODY = r"""
    float total = 0;
    for (int j = 0; j < 7; ++j)
        for (int i = 0; i < 7; ++i) total += in[(y + j) * (n + 6) + x + i] * filter[j * 7 + i];
    out[y * n + x] = total;
"""


def _numpy_convolution(source: Array, weights: Array, out: Array, n: int) -> None:
    out[:] = 0
    for j in range(7):
        for i in range(7):
            out += source[j : j + n, i : i + n] * weights[j, i]


def _picture() -> list[Any]:
    return [uniform(PICTURE + 6, PICTURE + 6), uniform(7, 7), np.zeros((PICTURE, PICTURE), np.float32)]


CONVOLUTION = Benchmark(
    name="convolution 1K x 1K, 7 x 7",
    cuda=r"""extern "C" __global__ void k(const float* in, const float* filter, float* out, int n) {
        int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    """
    + CONVOLUTION_BODY
    + "}",
    opencl=r"""kernel void k(global const float* in, global const float* filter, global float* out, int n) {
        int x = get_global_id(0), y = get_global_id(1);
    """
    + CONVOLUTION_BODY
    + "}",
    c=r"""void k(const float* restrict in, const float* restrict filter, float* restrict out, int n) {
        for (int y = 0; y < n; ++y)
            for (int x = 0; x < n; ++x) {
    """
    + CONVOLUTION_BODY
    + "}}",
    arrays=_picture,
    scalars=(np.int32(PICTURE),),
    grid=(PICTURE // 32, PICTURE // 8),
    block=(32, 8),
    result=2,
    numpy=_numpy_convolution,
    tolerance=1e-4,
    c_options=["-ffast-math"],
)

FIELD_BENCHMARKS = [
    SOFTMAX,
    LAYER_NORM,
    TRANSPOSE,
    GEMV,
    RADIX_PASS,
    BLACK_SCHOLES,
    FFT,
    JACOBI,
    SPMV,
    CONVOLUTION,
]
