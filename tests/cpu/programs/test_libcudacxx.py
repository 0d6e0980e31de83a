"""What programs write with libcu++ (nvidia-cuda-cccl): cuda::barrier, cuda::pipeline, cuda::memcpy_async, latches."""

from __future__ import annotations

import numpy as np
import pytest

from cupola.pathfinder import find_nvidia_header_directory
from tests.cpu.engine.kernels import run

pytestmark = pytest.mark.skipif(
    not find_nvidia_header_directory("cccl"), reason="needs the headers of nvidia-cuda-cccl"
)

SOURCE = r"""
#pragma nv_diag_suppress static_var_with_dynamic_init
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/latch>
#include <cuda/pipeline>
#include <cuda/semaphore>
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
namespace cg = cooperative_groups;
using block_barrier = cuda::barrier<cuda::thread_scope_block>;
extern "C" __global__ void copy_each(const int *in, int *out) {
    __shared__ block_barrier bar;
    __shared__ int box[256];
    int t = threadIdx.x, n = blockDim.x;
    if (t == 0) init(&bar, n);
    __syncthreads();
    cuda::memcpy_async(box + t, in + t, sizeof(int), bar);
    bar.arrive_and_wait();
    out[t] = box[n - 1 - t];
}
extern "C" __global__ void copy_together(const int *in, int *out) {
    __shared__ block_barrier bar;
    __shared__ alignas(16) int box[256];
    auto block = cg::this_thread_block();
    int t = threadIdx.x, n = blockDim.x, sum = 0;
    if (t == 0) init(&bar, n);
    block.sync();
    for (int i = 0; i < 3; i++) {
        cuda::memcpy_async(block, box, in + i * n, cuda::aligned_size_t<16>(sizeof(int) * n), bar);
        bar.arrive_and_wait();
        sum = sum * 7 + box[n - 1 - t];
        block.sync();
    }
    cg::memcpy_async(block, box, in, sizeof(int) * n);
    cg::wait(block);
    out[t] = sum * 7 + box[t];
}
extern "C" __global__ void tokens(int *out) {
    __shared__ block_barrier bar;
    __shared__ int box[256];
    int t = threadIdx.x, n = blockDim.x;
    if (t == 0) init(&bar, n);
    __syncthreads();
    if (t % 3 == 0) { bar.arrive_and_drop(); return; }
    for (int r = 0; r < 4; r++) {
        box[t] = t + r * 10;
        auto token = bar.arrive();
        out[t] = out[t] * 3 + r;
        bar.wait(std::move(token));
        out[t] += box[t % 3 == 1 ? (t + 1 < n ? t + 1 : t) : t - 1];
        bar.arrive_and_wait();
    }
}
extern "C" __global__ void stages(const int *in, int *out, int tiles) {
    __shared__ alignas(16) int box[3][64];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 3> state;
    auto block = cg::this_thread_block();
    auto pipe = cuda::make_pipeline(block, &state);
    int t = threadIdx.x, sum = 0;
    for (int i = 0, filled = 0; i < tiles; i++) {
        for (; filled < tiles && filled < i + 3; filled++) {
            pipe.producer_acquire();
            cuda::memcpy_async(block, box[filled % 3], in + filled * 64, cuda::aligned_size_t<16>(256), pipe);
            pipe.producer_commit();
        }
        pipe.consumer_wait();
        sum = sum * 5 + box[i % 3][(t + i) % 64];
        pipe.consumer_release();
    }
    out[t] = sum;
}
extern "C" __global__ void roles(const int *in, int *out, int tiles) {
    __shared__ int box[2][64];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
    auto block = cg::this_thread_block();
    bool produces = threadIdx.x >= 64;
    auto role = produces ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer;
    auto pipe = cuda::make_pipeline(block, &state, role);
    int t = threadIdx.x % 64, sum = 0;
    for (int i = 0; i < tiles; i++) {
        if (produces) {
            pipe.producer_acquire();
            cuda::memcpy_async(&box[i % 2][t], in + i * 64 + t, sizeof(int), pipe);
            pipe.producer_commit();
        } else {
            pipe.consumer_wait();
            sum = sum * 5 + box[i % 2][63 - t];
            pipe.consumer_release();
        }
    }
    if (!produces) out[t] = sum;
}
extern "C" __global__ void of_a_thread(const int *in, int *out) {
    __shared__ int box[2][64];
    auto pipe = cuda::make_pipeline();
    int t = threadIdx.x;
    for (int i = 0; i < 2; i++) {
        pipe.producer_acquire();
        cuda::memcpy_async(&box[i][t], in + i * 64 + t, sizeof(int), pipe);
        pipe.producer_commit();
    }
    cuda::pipeline_consumer_wait_prior<1>(pipe);
    int first = box[0][t];
    pipe.consumer_release();
    cuda::pipeline_consumer_wait_prior<0>(pipe);
    out[t] = first * 1000 + box[1][t];
    pipe.consumer_release();
}
extern "C" __global__ void bulk(const int *in, int *out) {
    __shared__ alignas(16) int box[64];
    __shared__ block_barrier bar;
    int t = threadIdx.x;
    if (t == 0) init(&bar, blockDim.x);
    __syncthreads();
    block_barrier::arrival_token token;
    if (t == 0) {
        cuda::device::memcpy_async_tx(box, in, cuda::aligned_size_t<16>(sizeof box), bar);
        token = cuda::device::barrier_arrive_tx(bar, 1, sizeof box);
    } else {
        token = bar.arrive();
    }
    bar.wait(std::move(token));
    out[t] = box[63 - t];
}
// In memory of the device, among blocks.
extern "C" __global__ void among_blocks(cuda::barrier<cuda::thread_scope_device> *bar, cuda::std::latch *unused,
                                        int *values, int *out) {
    if (blockIdx.x == 0 && threadIdx.x == 0) init(bar, gridDim.x);
    cg::this_grid().sync();
    for (int r = 0; r < 3; r++) {
        if (threadIdx.x == 0) {
            values[r * gridDim.x + blockIdx.x] = blockIdx.x * 10 + r;
            bar->arrive_and_wait();
            out[blockIdx.x] = out[blockIdx.x] * 3 + values[r * gridDim.x + (blockIdx.x + 1 + r) % gridDim.x];
        }
    }
}
extern "C" __global__ void primitives(int *out) {
    __shared__ cuda::latch<cuda::thread_scope_block> *latch;
    __shared__ alignas(8) char memory[sizeof(*latch) + 64];
    __shared__ cuda::atomic<int, cuda::thread_scope_block> count;
    int t = threadIdx.x;
    if (t == 0) { latch = new (memory) cuda::latch<cuda::thread_scope_block>(blockDim.x); count = 0; }
    __syncthreads();
    count.fetch_add(t, cuda::std::memory_order_relaxed);
    latch->arrive_and_wait();
    out[t] = count.load(cuda::std::memory_order_acquire);
}
extern "C" __global__ void timed(int *out) {
    __shared__ block_barrier bar;
    int t = threadIdx.x;
    if (t == 0) init(&bar, blockDim.x + 1);
    __syncthreads();
    auto token = bar.arrive();
    out[t] = bar.try_wait_for(std::move(token), cuda::std::chrono::microseconds(50));
    __syncthreads();
    if (t == 0) (void)bar.arrive();
    bar.wait_parity(false);
}
"""


def rng() -> np.random.Generator:
    return np.random.default_rng(12)


@pytest.mark.parametrize("block", [32, 100, 256])
def test_each_thread_copies(block: int) -> None:
    values, out = np.arange(block, dtype=np.int32), np.zeros(block, np.int32)
    run(SOURCE, "copy_each", 1, block, values, out)
    assert out.tolist() == values[::-1].tolist()


@pytest.mark.parametrize("block", [64, 256])
def test_a_group_copies(block: int) -> None:
    values, out = rng().integers(0, 99, (3, block)).astype(np.int32), np.zeros(block, np.int32)
    run(SOURCE, "copy_together", 1, block, values, out)
    total = np.zeros(block, np.int64)
    for row in values:
        total = total * 7 + row[::-1]
    assert out.tolist() == (total * 7 + values[0]).tolist()


def test_arrival_tokens() -> None:
    out, n = np.zeros(96, np.int32), 96
    run(SOURCE, "tokens", 1, n, out)
    for t in range(n):
        total = 0
        for r in range(4):
            other = (t + 1 if t + 1 < n else t) if t % 3 == 1 else t - 1
            total = total * 3 + r + other + r * 10
        assert out[t] == (total if t % 3 else 0)


@pytest.mark.parametrize(("name", "block"), [("stages", 64), ("roles", 128)])
@pytest.mark.parametrize("tiles", [1, 9])
def test_pipelines(name: str, block: int, tiles: int) -> None:
    values, out = rng().integers(0, 99, (tiles, 64)).astype(np.int32), np.zeros(64, np.int32)
    run(SOURCE, name, 1, block, values, out, np.int32(tiles))
    t, total = np.arange(64), np.zeros(64, np.int64)
    for i, row in enumerate(values):
        total = total * 5 + (row[(t + i) % 64] if name == "stages" else row[63 - t])
    assert out.tolist() == total.astype(np.int32).tolist()


def test_pipeline_of_a_thread() -> None:
    values, out = np.arange(128, dtype=np.int32), np.zeros(64, np.int32)
    run(SOURCE, "of_a_thread", 1, 64, values, out)
    assert out.tolist() == [t * 1000 + 64 + t for t in range(64)]


def test_bulk_copies() -> None:
    values, out = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
    run(SOURCE, "bulk", 1, 64, values, out)
    assert out.tolist() == values[::-1].tolist()


@pytest.mark.parametrize("grid", [1, 7])
def test_barrier_among_blocks(grid: int) -> None:
    out = np.zeros(grid, np.int32)
    memory, values = np.zeros(64, np.int64), np.zeros(3 * grid, np.int32)
    run(SOURCE, "among_blocks", grid, 32, memory, memory, values, out, cooperative=True)
    for b in range(grid):
        total = 0
        for r in range(3):
            total = total * 3 + (b + 1 + r) % grid * 10 + r
        assert out[b] == total


def test_latch_and_atomic() -> None:
    out = np.zeros(160, np.int32)
    run(SOURCE, "primitives", 1, 160, out)
    assert (out == 159 * 160 // 2).all()


def test_waiting_for_a_time() -> None:
    out = np.full(64, 7, np.int32)
    run(SOURCE, "timed", 1, 64, out)
    assert not out.any()
