"""Rows of neighboring accesses: parts of rows, kernels that run whole blocks in one call, blocks that take turns."""

from __future__ import annotations

import numpy as np
import pytest

from tests.cpu.engine.faulting import explanations
from tests.cpu.engine.kernels import run

PARTS = r"""
#define PART(T) extern "C" __global__ void part_##T(T *to, int first, int count) { \
    int i = blockIdx.x * blockDim.x + threadIdx.x; \
    if (i >= first && i < first + count) to[i - first] = (T)(i + 1); \
} \
extern "C" __global__ void holes_##T(const T *from, T *to, int n) { \
    __shared__ T box[64]; \
    int i = blockIdx.x * blockDim.x + threadIdx.x; \
    box[threadIdx.x] = (T)7; \
    if (i % 3 && i < n) box[threadIdx.x] = from[i] + (T)1; \
    __syncthreads(); \
    if (i % 5) to[i] = box[threadIdx.x ^ 1]; \
}
PART(char) PART(short) PART(int) PART(double)
"""
TYPES = {"char": np.int8, "short": np.int16, "int": np.int32, "double": np.float64}


@pytest.mark.parametrize("type", TYPES)
def test_parts_of_rows_leave_the_rest_alone(type: str, engine: str) -> None:
    """The array is as large as what is written: the rows that begin before it and end behind it are not all inside."""
    for first, count in ((0, 64), (1, 62), (13, 9), (31, 2), (63, 1)):
        to = np.zeros(count, TYPES[type])
        run(PARTS + engine, f"part_{type}", 2, 32, to, np.int32(first), np.int32(count))
        assert to.tolist() == np.arange(first + 1, first + count + 1).astype(TYPES[type]).tolist()


@pytest.mark.parametrize("type", TYPES)
def test_rows_with_holes(type: str, engine: str) -> None:
    dtype, n = TYPES[type], 100
    values, to = np.arange(128).astype(dtype), np.full(128, 50, dtype)
    run(PARTS + engine, f"holes_{type}", 2, 64, values, to, np.int32(n))
    lanes = np.arange(128)
    box = np.where((lanes % 3 > 0) & (lanes < n), lanes + 1, 7)
    assert to.tolist() == np.where(lanes % 5 > 0, box[lanes ^ 1], 50).tolist()


PLACES = r"""
extern "C" __global__ void border(const float *x, float *y, int w, int h, int d) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y, k = blockIdx.z;
    if (i < 1 || j < 1 || i >= w - 1 || j >= h - 1 || k >= d) return;
    const float *p = x + (k * h + j) * w + i;
    y[(k * h + j) * w + i] = p[-1] + 2 * p[1] + 4 * p[-w] + 8 * p[w];
}
// Where each thread is, by every register that tells.
extern "C" __global__ void places(int *out) {
    int block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    int thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x, cluster;
    asm("mov.u32 %0, %%clusterid.x;" : "=r"(cluster));
    out[block * blockDim.x * blockDim.y * blockDim.z + thread] = block * 10000 + thread + cluster % 2 * 1000000;
}
// A counter of each block, in memory that it shares without a barrier.
extern "C" __global__ void own_memory(int *out) {
    extern __shared__ int box[];
    volatile int *own = box + threadIdx.y * blockDim.x + threadIdx.x;
    *own = blockIdx.x + 1;
    out[(blockIdx.x * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x] = *own;
}
"""


@pytest.mark.parametrize("block", [(32, 8), (32, 1), (16, 4), (64, 4), (8, 2)])
def test_neighbours_in_space(block: tuple[int, int], engine: str) -> None:
    w, h, d = 97, 26, 3
    x = np.random.default_rng(0).integers(0, 100, (d, h, w)).astype(np.float32)
    y = np.full_like(x, -1)
    grid = (-(-w // block[0]), -(-h // block[1]), d)
    run(PLACES + engine, "border", grid, block, x, y, np.int32(w), np.int32(h), np.int32(d))
    expected = np.full_like(x, -1)
    expected[:, 1:-1, 1:-1] = x[:, 1:-1, :-2] + 2 * x[:, 1:-1, 2:] + 4 * x[:, :-2, 1:-1] + 8 * x[:, 2:, 1:-1]
    assert (y == expected).all()


@pytest.mark.parametrize(("grid", "block"), [((7, 3, 2), (32, 2)), ((50, 2, 1), (32, 4)), ((3, 1, 1), (32, 2, 2))])
def test_every_thread_runs_once_and_knows_its_place(
    grid: tuple[int, int, int], block: tuple[int, ...], engine: str
) -> None:
    blocks, threads = int(np.prod(grid)), int(np.prod(block))
    out = np.zeros(blocks * threads, np.int32)
    run(PLACES + engine, "places", grid, block, out)
    number, thread = np.divmod(np.arange(blocks * threads), threads)
    assert out.tolist() == (number * 10000 + thread + number % grid[0] % 2 * 1000000).tolist()


def test_blocks_have_shared_memory_of_their_own(engine: str) -> None:
    out = np.zeros((20, 4, 32), np.int32)
    run(PLACES + engine, "own_memory", 20, (32, 4), out, shared=4 * out[0].size)
    assert (out == np.arange(1, 21)[:, None, None]).all()


WALK = r"""
// What the compiler unrolls: threads may begin the unrolled loop at different places.
extern "C" __global__ void dot(const float *a, const float *x, float *sums, int n) {
    float total = 0;
    for (int i = threadIdx.x; i < n; i += 32) total += a[blockIdx.x * n + i] * x[i];
    sums[blockIdx.x * 32 + threadIdx.x] = total;
}
extern "C" __global__ void shift(int *to, int n) {
    for (int i = threadIdx.x; i < n; i += 32) to[i] += i;
}
"""


@pytest.mark.parametrize("n", [1, 31, 32, 100, 128, 161, 256])
def test_unrolled_loops(n: int, engine: str) -> None:
    random = np.random.default_rng(n)
    a, x = random.integers(0, 9, (3, n)).astype(np.float32), random.integers(0, 9, n).astype(np.float32)
    sums, to = np.zeros((3, 32), np.float32), np.arange(n, dtype=np.int32)
    run(WALK + engine, "dot", 3, 32, a, x, sums, np.int32(n))
    product = np.zeros((3, -(-n // 32) * 32), np.float32)
    product[:, :n] = a * x
    assert (sums == product.reshape(3, -1, 32).sum(1)).all()
    run(WALK + engine, "shift", 1, 32, to, np.int32(n))
    assert (to == 2 * np.arange(n)).all()


ALTERNATING = r"""
extern "C" __global__ void alternating(const float *a, const float *b, float *to) {
    int i = threadIdx.x + threadIdx.y;
    float total = 0;
    #pragma unroll
    for (int k = 0; k < 4; ++k) total += a[i * STEP + 32 * k] * b[i * STEP + 32 * k];
    to[i] = total;
}
"""


@pytest.mark.parametrize("block", [(32, 1), (1, 32)])
@pytest.mark.parametrize("step", [0, 1, 3])
def test_loads_of_two_arrays_that_alternate(block: tuple[int, int], step: int, engine: str) -> None:
    """At first nothing is remembered of either array, so the places of each are loaded into a buffer of its own."""
    a, b, to = np.arange(224, dtype=np.float32), np.arange(224, dtype=np.float32) % 7 + 2, np.zeros(32, np.float32)
    run(f"#define STEP {step}\n" + ALTERNATING + engine, "alternating", 1, block, a, b, to)
    places = (np.arange(32) * step)[:, None] + np.arange(0, 128, 32)
    assert to.tolist() == (a[places] * b[places]).sum(axis=1).tolist()


FAULTS = r"""
extern "C" __global__ void strip(int *data, int *other, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i > 0 && j == 1) data[i] = n;
}
extern "C" __global__ void part(int *data, int *other, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i % 2) data[i] = n;
}
"""


@pytest.mark.cpu_only
def test_faults_name_block_and_thread() -> None:
    """The arrays have room for 64 numbers."""
    texts = explanations(FAULTS, {"strip": {"grid": (4, 2), "block": (32, 2)}, "part": {"grid": 3}})
    assert "thread (0, 1, 0) of block (2, 0, 0)" in texts["strip"]
    assert "thread (1, 0, 0) of block (2, 0, 0)" in texts["part"]
    assert all("write of 4 bytes" in text for text in texts.values())
