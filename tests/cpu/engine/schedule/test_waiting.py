"""Threads that wait for each other: barriers, warp operations with members, locks, flags."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from tests.cpu.engine.kernels import run

COMMON = r"""
#define FULL 0xFFFFFFFFu
__device__ unsigned lane() { return threadIdx.x % 32; }
"""

WARP = (
    COMMON
    + r"""
// The halves of a warp shuffle among themselves, at two instructions.
extern "C" __global__ void halves(int *out) {
    int t = threadIdx.x, v;
    if (lane() < 16) v = __shfl_xor_sync(0x0000FFFF, t * 3, 5);
    else v = __shfl_xor_sync(0xFFFF0000, t * 7, 3);
    out[t] = v;
}
// Groups of lanes with the same key, each in its own mask at one instruction.
extern "C" __global__ void groups(const int *key, int *out) {
    int t = threadIdx.x;
    unsigned mask = __match_any_sync(FULL, key[t]);
    int leader = __ffs(mask) - 1;
    out[t] = __shfl_sync(mask, t * 10, leader) + __popc(mask);
}
// Lanes leave the loop one by one; the others go on with the mask of those that are left.
extern "C" __global__ void leaving(int *out) {
    int t = threadIdx.x, s = 0;
    for (int i = 0; i < 1 + t % 7; i++) s += __popc(__ballot_sync(__activemask(), true)) * (i + 1);
    out[t] = s;
}
// The members come to __syncwarp() from two places.
extern "C" __global__ void two_places(int *out) {
    __shared__ int box[64];
    int t = threadIdx.x;
    if (t % 2) { box[t] = t * 2; __syncwarp(); out[t] = box[t ^ 1]; }
    else { box[t] = t * 5; __syncwarp(); out[t] = box[t ^ 1] + 1; }
}
// Each lane comes to the shuffle in another trip of the loop.
extern "C" __global__ void trips(int *out) {
    int t = threadIdx.x, v = -1;
#pragma unroll 1
    for (int i = 0; i < 32; i++)
        if (i == int(lane())) v = __shfl_sync(FULL, t * 4 + i, 31 - lane());
    out[t] = v;
}
// An exited lane is waited for by nobody.
extern "C" __global__ void exited(int *out) {
    int t = threadIdx.x;
    if (t % 3 == 0) return;
    __syncwarp();
    out[t] = __reduce_add_sync(__activemask(), t);
}
extern "C" __global__ void scan(const int *in, int *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, v = i < n ? in[i] : 0;
    for (int d = 1; d < 32; d *= 2) { int u = __shfl_up_sync(FULL, v, d); if (lane() >= d) v += u; }
    if (i < n) out[i] = v;
}
extern "C" __global__ void guarded_scan(const int *in, int *out) {
    __shared__ int sums[32];
    int t = threadIdx.x, warp = t / 32, v = in[t];
    for (int d = 1; d < 32; d *= 2) { int u = __shfl_up_sync(FULL, v, d); if (lane() >= d) v += u; }
    if (lane() == 31) sums[warp] = v;
    __syncthreads();
    if (warp == 0) {
        int s = lane() < blockDim.x / 32 ? sums[lane()] : 0;
        for (int d = 1; d < 32; d *= 2) { int u = __shfl_up_sync(FULL, s, d); if (lane() >= d) s += u; }
        sums[lane()] = s;
    }
    __syncthreads();
    out[t] = v + (warp ? sums[warp - 1] : 0);
}
"""
)


@pytest.fixture(params=["chosen", pytest.param("independent", marks=pytest.mark.cpu_only)])
def bodies(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Kernels with warp operations always have whole warps, but two kinds of code."""
    if request.param == "independent":
        from cupola.cpu.compiler.emit import bodies
        from cupola.cpu.compiler.objects import recall

        monkeypatch.setattr(recall, "enabled", False)
        monkeypatch.setattr(bodies, "emit_body", functools.partial(bodies.emit_body, independent=True))
    return f"// {request.param}"


def test_halves_shuffle_apart(bodies: str) -> None:
    out = np.zeros(64, np.int32)
    run(WARP + bodies, "halves", 1, 64, out)
    expected = []
    for t in range(64):
        partner = t - t % 32 + (t % 32 ^ 5 if t % 32 < 16 else t % 32 ^ 3)
        expected.append(partner * (3 if t % 32 < 16 else 7))
    assert out.tolist() == expected


def test_groups_of_equal_keys(bodies: str) -> None:
    key = np.random.default_rng(1).integers(0, 5, 64).astype(np.int32)
    out = np.zeros(64, np.int32)
    run(WARP + bodies, "groups", 1, 64, key, out)
    for t in range(64):
        members = [u for u in range(t - t % 32, t - t % 32 + 32) if key[u] == key[t]]
        assert out[t] == members[0] * 10 + len(members)


def test_lanes_leave_a_loop(bodies: str) -> None:
    out = np.zeros(32, np.int32)
    run(WARP + bodies, "leaving", 1, 32, out)
    left = [sum(1 + u % 7 > i for u in range(32)) for i in range(7)]
    assert out.tolist() == [sum(left[i] * (i + 1) for i in range(1 + t % 7)) for t in range(32)]


def test_syncwarp_at_two_places(bodies: str) -> None:
    out = np.zeros(64, np.int32)
    run(WARP + bodies, "two_places", 1, 64, out)
    assert out.tolist() == [(t ^ 1) * 5 if t % 2 else (t ^ 1) * 2 + 1 for t in range(64)]


def test_members_come_in_different_trips(bodies: str) -> None:
    out = np.zeros(64, np.int32)
    run(WARP + bodies, "trips", 1, 64, out)
    for t in range(64):
        source = 31 - t % 32
        assert out[t] == (t - t % 32 + source) * 4 + source


@pytest.mark.unchecked(reason="masks name threads that are elsewhere or have exited")
def test_exited_lanes_are_not_waited_for(bodies: str) -> None:
    out = np.zeros(40, np.int32)
    run(WARP + bodies, "exited", 1, 40, out)
    sums = [sum(u for u in range(first, min(first + 32, 40)) if u % 3) for first in (0, 32)]
    assert out.tolist() == [sums[t // 32] if t % 3 else 0 for t in range(40)]


@pytest.mark.parametrize("block", [32, 64, 40, 96])
def test_warp_scan(block: int, bodies: str) -> None:
    n = 1000
    values = np.random.default_rng(2).integers(-50, 50, n).astype(np.int32)
    out = np.zeros(n, np.int32)
    run(WARP + bodies, "scan", (n + block - 1) // block, block, values, out, np.int32(n))
    for first in range(0, n, block):
        for warp in range(first, min(first + block, n), 32):
            end = min(warp + 32, first + block, n)
            assert out[warp:end].tolist() == np.cumsum(values[warp:end]).tolist()


@pytest.mark.parametrize("block", [32, 256, 1024])
def test_block_scan(block: int, bodies: str) -> None:
    values = np.random.default_rng(3).integers(-50, 50, block).astype(np.int32)
    out = np.zeros(block, np.int32)
    run(WARP + bodies, "guarded_scan", 1, block, values, out)
    assert out.tolist() == np.cumsum(values).tolist()


BARRIERS = (
    COMMON
    + r"""
extern "C" __global__ void early_exit(int *out, int n) {
    __shared__ int box[1024];
    int t = threadIdx.x;
    if (t >= n) return;
    box[t] = t * t;
    __syncthreads();
    out[t] = box[n - 1 - t];
    __syncthreads();
    if (t % 2) return;
    box[t] = -t;
    __syncthreads();
    out[t] += box[(t + 2) % ((n + 1) / 2 * 2)];
}
// Warps wait at the same barrier at different places of the program.
extern "C" __global__ void warp_roles(int *out) {
    __shared__ int box[128];
    int t = threadIdx.x;
    if (t < 32) { box[t] = t + 1; __syncthreads(); out[t] = box[127 - t]; __syncthreads(); }
    else { for (int i = 0; i < t; i++) box[t] = t + i; __syncthreads(); out[t] = box[t % 32]; __syncthreads(); }
}
// Threads of one warp do.
extern "C" __global__ void thread_roles(int *out) {
    __shared__ int box[96];
    int t = threadIdx.x;
    if (t % 3 == 0) { box[t] = t * 2; asm volatile("barrier.sync 0;" ::: "memory"); out[t] = box[(t + 1) % 96]; }
    else { box[t] = t * 3; asm volatile("barrier.sync 0;" ::: "memory"); out[t] = box[(t + 95) % 96]; }
}
// Half of the block produces, the other half consumes; two barriers take turns.
extern "C" __global__ void pipeline(int *out, int rounds) {
    __shared__ int box[64];
    int t = threadIdx.x % 64, s = 0;
    if (threadIdx.x < 64) {
        for (int r = 0; r < rounds; r++) {
            asm volatile("bar.sync 1, 128;" ::: "memory");
            box[t] = r * 100 + t;
            asm volatile("bar.arrive 2, 128;" ::: "memory");
        }
    } else {
        for (int r = 0; r < rounds; r++) {
            asm volatile("bar.arrive 1, 128;" ::: "memory");
            asm volatile("bar.sync 2, 128;" ::: "memory");
            s = s * 3 + box[63 - t];
        }
        out[t] = s;
    }
}
extern "C" __global__ void votes(const int *in, int *out, int rounds) {
    int t = threadIdx.x, v = in[t];
    for (int r = 0; r < rounds; r++) {
        int count = __syncthreads_count(v > r), all = __syncthreads_and(v >= r), any = __syncthreads_or(v == r);
        out[t * rounds + r] = count * 4 + (all != 0) * 2 + (any != 0);
    }
}
// Only part of the warps; the number of the barrier and of threads depend on the warp. Counts are whole warps.
extern "C" __global__ void named(int *out) {
    __shared__ int box[160];
    int t = threadIdx.x, group = t / 64;
    box[t] = t;
    asm volatile("bar.sync %0, %1;" :: "r"(group + 3), "r"(64) : "memory");
    out[t] = box[min(group * 64 + 63 - t % 64, int(blockDim.x) - 1)];
}
// A barrier inside a loop whose number of trips the whole block agrees on, in divergent company.
extern "C" __global__ void in_loop(int *out, int n) {
    __shared__ int box[256];
    int t = threadIdx.x, s = t;
    for (int i = 0; i < n; i++) {
        if ((t + i) % 3 == 0) s += i; else for (int k = 0; k < t % 4; k++) s ^= k;
        box[t] = s;
        __syncthreads();
        s += box[(t + i) % blockDim.x];
        __syncthreads();
    }
    out[t] = s;
}
"""
)


@pytest.mark.parametrize(("block", "n"), [(64, 33), (128, 128), (1024, 7), (48, 48)])
def test_threads_exit_before_a_barrier(block: int, n: int, engine: str) -> None:
    out = np.zeros(block, np.int32)
    run(BARRIERS + engine, "early_exit", 1, block, out, np.int32(n))
    even = (n + 1) // 2 * 2
    expected = []
    for t in range(block):
        if t >= n:
            expected.append(0)
        else:
            other = (t + 2) % even
            later = -other if other < n and other % 2 == 0 else 0
            expected.append((n - 1 - t) ** 2 + (later if t % 2 == 0 else 0))
    assert out.tolist() == expected


def test_warps_wait_at_different_places(engine: str) -> None:
    out = np.zeros(128, np.int32)
    run(BARRIERS + engine, "warp_roles", 1, 128, out)
    assert out.tolist() == [2 * (127 - t) - 1 if t < 32 else t % 32 + 1 for t in range(128)]


def test_threads_of_a_warp_wait_at_different_places(engine: str) -> None:
    out = np.zeros(96, np.int32)
    run(BARRIERS + engine, "thread_roles", 1, 96, out)
    box = [t * 2 if t % 3 == 0 else t * 3 for t in range(96)]
    assert out.tolist() == [box[(t + 1) % 96] if t % 3 == 0 else box[(t + 95) % 96] for t in range(96)]


def test_producers_and_consumers(engine: str) -> None:
    out = np.zeros(64, np.int32)
    run(BARRIERS + engine, "pipeline", 1, 128, out, np.int32(9))
    expected = np.zeros(64, np.int64)
    for r in range(9):
        expected = expected * 3 + r * 100 + 63 - np.arange(64)
    assert out.tolist() == expected.astype(np.int32).tolist()


@pytest.mark.parametrize("block", [32, 96, 250])
def test_barriers_that_vote(block: int, engine: str) -> None:
    values = np.random.default_rng(4).integers(0, 6, block).astype(np.int32)
    out = np.zeros((block, 6), np.int32)
    run(BARRIERS + engine, "votes", 1, block, values, out, np.int32(6))
    for r in range(6):
        word = int((values > r).sum()) * 4 + bool((values >= r).all()) * 2 + bool((values == r).any())
        assert (out[:, r] == word).all()


@pytest.mark.parametrize("block", [128, 150])
def test_named_barriers(block: int, engine: str) -> None:
    out = np.zeros(block, np.int32)
    if block % 64:
        block = 128  # the last group of 150 threads would have 22 of 64: it never completes
    run(BARRIERS + engine, "named", 1, block, out)
    assert out[:block].tolist() == [t // 64 * 64 + 63 - t % 64 for t in range(block)]


@pytest.mark.parametrize("block", [32, 100, 256])
def test_barriers_in_a_loop(block: int, engine: str) -> None:
    out = np.zeros(block, np.int32)
    run(BARRIERS + engine, "in_loop", 1, block, out, np.int32(8))
    s = list(range(block))
    for i in range(8):
        for t in range(block):
            if (t + i) % 3 == 0:
                s[t] += i
            else:
                for k in range(t % 4):
                    s[t] ^= k
        box = list(s)
        s = [s[t] + box[(t + i) % block] for t in range(block)]
    assert out.tolist() == [np.int64(v).astype(np.int32) for v in s]


SPINS = (
    COMMON
    + r"""
// The lock of text books: lanes of one warp wait for each other.
extern "C" __global__ void lock(int *mutex, int *count) {
    while (atomicCAS(mutex, 0, 1) != 0) {}
    __threadfence();
    *(volatile int *)count = *(volatile int *)count + 1;
    __threadfence();
    atomicExch(mutex, 0);
}
// The form that older GPUs needed.
extern "C" __global__ void polite_lock(int *mutex, int *count) {
    for (bool done = false; !done;) {
        if (atomicCAS(mutex, 0, 1) == 0) {
            *(volatile int *)count = *(volatile int *)count + 1;
            __threadfence();
            atomicExch(mutex, 0);
            done = true;
        }
    }
}
// Every thread waits for the one with the next higher number in its block.
extern "C" __global__ void relay(int *out) {
    __shared__ volatile int turn;
    int t = threadIdx.x;
    if (t == 0) turn = blockDim.x - 1;
    __syncthreads();
    while (turn != t) {}
    out[t] = blockDim.x - t;
    __threadfence_block();
    turn = t - 1;
}
// Blocks in ascending, then in descending order.
extern "C" __global__ void in_order(int *turn, int *out, int step) {
    if (threadIdx.x == 0) {
        while (*(volatile int *)turn != int(blockIdx.x)) __nanosleep(20);
        out[blockIdx.x] = *(volatile int *)&out[gridDim.x] = *(volatile int *)&out[gridDim.x] + 1;
        __threadfence();
        *(volatile int *)turn = blockIdx.x + step;
    }
    __syncthreads();
}
// A barrier of the whole grid, made by hand.
__device__ void grid_barrier(unsigned *arrived, unsigned goal) {
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(arrived, 1);
        while (*(volatile unsigned *)arrived < goal) {}
        __threadfence();
    }
    __syncthreads();
}
extern "C" __global__ void grid_sum(unsigned *arrived, int *values, int rounds) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, n = gridDim.x * blockDim.x;
    for (int r = 0; r < rounds; r++) {
        int other = ((volatile int *)values)[r % 2 * n + (i + blockDim.x) % n];
        values[(r + 1) % 2 * n + i] = ((volatile int *)values)[r % 2 * n + i] + other;
        grid_barrier(arrived, gridDim.x * (r + 1));
    }
}
"""
)


@pytest.mark.parametrize("name", ["lock", "polite_lock"])
@pytest.mark.parametrize(("grid", "block"), [(1, 32), (3, 50), (8, 64)])
def test_lock(name: str, grid: int, block: int, engine: str) -> None:
    mutex, count = np.zeros(1, np.int32), np.zeros(1, np.int32)
    run(SPINS + engine, name, grid, block, mutex, count)
    assert count[0] == grid * block and mutex[0] == 0


@pytest.mark.parametrize("block", [32, 70])
def test_threads_take_turns(block: int, engine: str) -> None:
    out = np.zeros(block, np.int32)
    run(SPINS + engine, "relay", 1, block, out)
    assert out.tolist() == [block - t for t in range(block)]


@pytest.mark.parametrize("step", [1, -1])
def test_blocks_take_turns(step: int, engine: str) -> None:
    grid = 40
    turn = np.array([0 if step == 1 else grid - 1], np.int32)
    out = np.zeros(grid + 1, np.int32)
    run(SPINS + engine, "in_order", grid, 64, turn, out, np.int32(step))
    expected = list(range(1, grid + 1))
    assert out[:grid].tolist() == (expected if step == 1 else expected[::-1])


def test_barrier_of_the_grid(engine: str) -> None:
    grid, block, rounds = 12, 64, 3
    n = grid * block
    values = np.random.default_rng(5).integers(0, 100, (2, n)).astype(np.int32)
    expected = values[0].copy()
    for _ in range(rounds):
        expected = expected + np.roll(expected, -block)
    arrived = np.zeros(1, np.uint32)
    run(SPINS + engine, "grid_sum", grid, block, arrived, values, np.int32(rounds), cooperative=True)
    assert values[rounds % 2].tolist() == expected.tolist()


COOPERATIVE = r"""
#include <cooperative_groups.h>
extern "C" __global__ void grid_sync(int *values, int rounds) {
    auto grid = cooperative_groups::this_grid();
    int i = grid.thread_rank(), n = grid.size();
    for (int r = 0; r < rounds; r++) {
        int other = ((volatile int *)values)[(i + blockDim.x) % n];
        grid.sync();
        values[i] += other;
        grid.sync();
    }
}
"""


@pytest.mark.parametrize(("grid", "block"), [(1, 32), (20, 48), (150, 64)])
def test_cooperative_groups_grid(grid: int, block: int, engine: str) -> None:
    n, rounds = grid * block, 3
    values = np.random.default_rng(6).integers(0, 100, n).astype(np.int32)
    expected = values.copy()
    for _ in range(rounds):
        expected = expected + np.roll(expected, -block)
    run(COOPERATIVE + engine, "grid_sync", grid, block, values, np.int32(rounds), cooperative=True)
    assert values.tolist() == expected.tolist()
