"""A matrix product on tensor cores: by warpgroups (wgmma), of halves with single-precision sums; C = A B^T."""

from __future__ import annotations

from typing import Any

import numpy as np

from .kernels import Array, Benchmark

SIZE = 512
SUMS = 64  # of a thread: 64 rows by 128 columns, of 128 threads


def _numpy_product(a: Array, b: Array, c: Array, n: Any) -> None:
    np.matmul(a.astype(np.float32), b.astype(np.float32).T, out=c)


def _matrices() -> list[Array]:
    rng = np.random.default_rng(1)
    a, b = (rng.uniform(-1, 1, (SIZE, SIZE)).astype(np.float16) for _ in range(2))
    return [a, b, np.zeros((SIZE, SIZE), np.float32)]


_REGISTERS = ", ".join(f"%{i}" for i in range(SUMS))
_OPERANDS = ", ".join(f'"+f"(sum[{i}])' for i in range(SUMS))

PRODUCT = Benchmark(
    name="wgmma product 512, halves",
    # A tile of 64 elements along K is in blocks of 8 rows by 16 bytes, those along K 128 bytes apart.
    cuda=r"""
    __device__ void fetch(char* tile, const uint4* from, int rows, int line) {
        for (int i = threadIdx.x; i < rows * 8; i += 128)
            *(uint4*)(tile + i / 64 * 1024 + i % 8 * 128 + i / 8 % 8 * 16) = from[i / 8 * line + i % 8];
    }
    __device__ unsigned long long matrix(const char* tile) {
        return (unsigned)__cvta_generic_to_shared(tile) >> 4 | 128ull >> 4 << 16 | 1024ull >> 4 << 32;
    }
    extern "C" __global__ void k(const uint4* a, const uint4* b, float* c, int n) {
        __shared__ alignas(128) char left[64 * 128], right[128 * 128];
        const int row = blockIdx.y * 64, column = blockIdx.x * 128, line = n / 8;
        float sum[64];
        for (int at = 0; at < line; at += 8) {
            __syncthreads();
            fetch(left, a + row * line + at, 64, line);
            fetch(right, b + column * line + at, 128, line);
            asm volatile("fence.proxy.async;" ::: "memory");
            __syncthreads();
            asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
            for (int part = 0; part < 4; part++)
                asm volatile("{ .reg .pred keep; setp.ne.b32 keep, %66, 0;\n"
                             "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
                             "{REGISTERS}, %64, %65, keep, 1, 1, 0, 0; }"
                             : OPERANDS
                             : "l"(matrix(left + part * 256)), "l"(matrix(right + part * 256)), "r"(at + part)
                             : "memory");
            asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
        }
        const int y = row + threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, x = column + threadIdx.x % 4 * 2;
        for (int i = 0; i < 64; i++) c[(y + (i & 2) * 4) * n + x + i / 4 * 8 + (i & 1)] = sum[i];
    }""".replace("REGISTERS", _REGISTERS).replace("OPERANDS", _OPERANDS),
    opencl="",
    c=r"""void k(const _Float16* restrict a, const _Float16* restrict b, float* restrict c, int n) {
        for (int i = 0; i < n; ++i)
            for (int j = 0; j < n; ++j) {
                float sum = 0;
                for (int k = 0; k < n; ++k) sum += (float)a[i * n + k] * (float)b[j * n + k];
                c[i * n + j] = sum;
            }
    }""",
    arrays=_matrices,
    scalars=(np.int32(SIZE),),
    grid=(SIZE // 128, SIZE // 64),
    block=(128, 1),
    result=2,
    numpy=_numpy_product,
    tolerance=1e-3,
    c_options=["-ffast-math"],
    architecture="sm_90a",
)

MATRIX_BENCHMARKS = [PRODUCT]
