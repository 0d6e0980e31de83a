"""What the CPU device says when matrix instructions go wrong. Each fault happens on a device of its own."""

from __future__ import annotations

import re

import pytest

from tests.cpu.engine.faulting import explanations

pytestmark = pytest.mark.cpu_only

SOURCE = r"""
#include <mma.h>
using namespace nvcuda;
using A = wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major>;
using B = wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major>;
using C = wmma::fragment<wmma::accumulator, 16, 16, 16, float>;
__device__ void multiply(const half* a, float* out) {
    A fa; B fb; C sum;
    wmma::fill_fragment(sum, 0.0f);
    wmma::fill_fragment(fa, __float2half(1.0f));
    wmma::fill_fragment(fb, __float2half(1.0f));
    wmma::mma_sync(sum, fa, fb, sum);  // LINE multiply
    out[threadIdx.x] = sum.x[0];
}
extern "C" __global__ void small_block(half* a, float* out) { multiply(a, out); }
extern "C" __global__ void one_has_ended(half* a, float* out) {
    if (threadIdx.x == 37) return;
    multiply(a, out);
}
extern "C" __global__ void half_a_warp(half* a, float* out) {
    if (threadIdx.x % 32 < 16) multiply(a, out);
    else out[threadIdx.x] = 1;
}
extern "C" __global__ void never_together(half* a, float* out) {
    if (threadIdx.x % 32 < 16) multiply(a, out);
    else __syncthreads();
    out[threadIdx.x + 64] = 1;
}
extern "C" __global__ void uneven(half* a, float* out) {
    A fa;
    wmma::load_matrix_sync(fa, a + (threadIdx.x == 7 ? 16 : 0), 16);  // LINE uneven
    out[threadIdx.x] = fa.x[0];
}
extern "C" __global__ void past_the_end(half* a, float* out) {
    A fa;
    wmma::load_matrix_sync(fa, a, 96);  // LINE past_the_end
    out[threadIdx.x] = fa.x[0];
}
extern "C" __global__ void misaligned(half* a, float* out) {
    A fa;
    wmma::load_matrix_sync(fa, a, 20);  // LINE misaligned
    out[threadIdx.x] = fa.x[0];
}
extern "C" __global__ void store(half* a, float* out) {
    C sum;
    wmma::fill_fragment(sum, 0.0f);
    wmma::store_matrix_sync(out, sum, 64, wmma::mem_row_major);  // LINE store
}
extern "C" __global__ void in_shared_memory(half* a, float* out) {
    __shared__ __align__(32) half tile[16 * 16];
    tile[threadIdx.x] = a[threadIdx.x];
    __syncthreads();
    A fa;
    wmma::load_matrix_sync(fa, tile + 16, 16);  // LINE in_shared_memory
    out[threadIdx.x] = fa.x[0];
}
__device__ void load_rows(const void* p, float* out) {
    unsigned r[4];
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "l"(p) : "memory");  // LINE rows
    out[threadIdx.x] = r[0] + r[1] + r[2] + r[3];
}
extern "C" __global__ void rows_misaligned(half* a, float* out) {
    __shared__ __align__(16) half tile[32 * 8 + 8];
    tile[threadIdx.x] = a[threadIdx.x];
    load_rows(tile + 8 * threadIdx.x + (threadIdx.x == 9 ? 2 : 0), out);
}
extern "C" __global__ void rows_outside(half* a, float* out) {
    __shared__ __align__(16) half tile[31 * 8];
    tile[threadIdx.x] = a[threadIdx.x];
    load_rows(tile + 8 * threadIdx.x, out);
}
extern "C" __global__ void rows_of_global_memory(half* a, float* out) { load_rows(a + 8 * threadIdx.x, out); }
"""

LAUNCHES = {"small_block": 48, "one_has_ended": 64, "half_a_warp": 32, "never_together": 32} | dict.fromkeys(
    [
        "uneven", "past_the_end", "misaligned", "store", "in_shared_memory", "rows_misaligned", "rows_outside",
        "rows_of_global_memory",
    ],
    32,
)  # fmt: skip

TOGETHER = r"all 32 threads of a warp must execute a matrix instruction together"

FAULTS: dict[str, tuple[str, int, str, tuple[str, ...]]] = {
    # status, thread, the marked line, patterns
    "small_block": ("CUDA_ERROR_ILLEGAL_INSTRUCTION", 32, "multiply", (TOGETHER, r"this warp has 16: make the number")),
    "one_has_ended": (
        "CUDA_ERROR_ILLEGAL_INSTRUCTION", 32, "multiply", (TOGETHER, r"but 31 of them \(lanes 0xffffffdf\) do"),
    ),
    "half_a_warp": ("CUDA_ERROR_ILLEGAL_INSTRUCTION", 0, "multiply", (TOGETHER, r"16 of them \(lanes 0x0000ffff\)")),
    "never_together": (
        "CUDA_ERROR_LAUNCH_FAILED",
        0,
        "multiply",
        (
            r"16 threads from \(16, 0, 0\) to \(31, 0, 0\) wait at barrier 0",
            r"16 threads from \(0, 0, 0\) to \(15, 0, 0\) wait in a warp operation \(.*matrix product\)",
        ),
    ),
    "uneven": ("CUDA_ERROR_ILLEGAL_INSTRUCTION", 7, "uneven", (r"differ from those of lane 0",)),
    "past_the_end": (
        "CUDA_ERROR_ILLEGAL_ADDRESS", 0, "past_the_end",
        (r"read of 16 bytes in global memory", r"wmma\.load\.a", r"64 bytes past the end of a 2048-byte allocation"),
    ),
    "misaligned": (
        "CUDA_ERROR_MISALIGNED_ADDRESS", 0, "misaligned", (r"misaligned read of 16 bytes", r"a multiple of 16"),
    ),
    "store": ("CUDA_ERROR_ILLEGAL_ADDRESS", 0, "store", (r"write of 16 bytes in global memory", r"wmma\.store\.d")),
    "in_shared_memory": (
        "CUDA_ERROR_ILLEGAL_ADDRESS", 0, "in_shared_memory",
        (r"read of 16 bytes in shared memory at offset 512", r"has 512 bytes of shared memory"),
    ),
    "rows_misaligned": ("CUDA_ERROR_MISALIGNED_ADDRESS", 9, "rows", (r"misaligned read of 16 bytes in shared memory",)),
    "rows_outside": (
        "CUDA_ERROR_ILLEGAL_ADDRESS", 31, "rows", (r"read of 16 bytes in shared memory at offset 496",),
    ),
    "rows_of_global_memory": ("CUDA_ERROR_ILLEGAL_ADDRESS", 0, "rows", (r"read of 16 bytes in shared memory",)),
}  # fmt: skip


def line_of(mark: str) -> int:
    return next(number for number, line in enumerate(SOURCE.splitlines(), 1) if line.endswith(f"// LINE {mark}"))


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    """The error of each kernel."""
    launches = {name: {"block": block} for name, block in LAUNCHES.items()}
    return explanations(SOURCE, launches, buffers=[2048, 2048], numbers=[])


@pytest.mark.parametrize("name", FAULTS)
def test_fault_is_explained(name: str, texts: dict[str, str]) -> None:
    status, thread, mark, patterns = FAULTS[name]
    text = texts[name]
    assert text.startswith(status), text
    assert f"in thread ({thread}, 0, 0) of block (0, 0, 0)" in text, text
    for pattern in patterns:
        assert re.search(pattern, text), text
    if mark == "rows":  # a statement of several lines is where it begins
        assert "ldmatrix" in text
    elif mark:
        assert re.search(rf"(inlined )?at \S+:{line_of(mark)} in ", text), text
