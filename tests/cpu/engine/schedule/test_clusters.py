"""Clusters of blocks: their special registers, their barrier, each other's shared memory."""

from __future__ import annotations

import numpy as np
import pytest

from cupola import Device
from tests.cpu.engine.kernels import run


@pytest.fixture(autouse=True)
def needs_clusters() -> None:
    if Device(0).compute_capability < (9, 0):
        pytest.skip("clusters need compute capability 9.0")


REGISTERS = r"""
#define READ(i, name) { unsigned v; asm volatile("mov.u32 %0, %%" name ";" : "=r"(v)); mine[i] = v; }
extern "C" __global__ void registers(unsigned *out) {
    unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    unsigned *mine = out + block * 18;
    READ(0, "clusterid.x") READ(1, "clusterid.y") READ(2, "clusterid.z")
    READ(3, "nclusterid.x") READ(4, "nclusterid.y") READ(5, "nclusterid.z")
    READ(6, "cluster_ctaid.x") READ(7, "cluster_ctaid.y") READ(8, "cluster_ctaid.z")
    READ(9, "cluster_nctaid.x") READ(10, "cluster_nctaid.y") READ(11, "cluster_nctaid.z")
    READ(12, "cluster_ctarank") READ(13, "cluster_nctarank")
    asm volatile("{ .reg .pred p; mov.pred p, %%is_explicit_cluster; selp.u32 %0, 1, 0, p; }" : "=r"(mine[14]));
    READ(15, "ctaid.x") READ(16, "ctaid.y") READ(17, "ctaid.z")
}
"""


@pytest.mark.parametrize(
    ("clusters", "cluster"),
    [((3, 1, 1), (4, 1, 1)), ((2, 3, 2), (2, 2, 1)), ((1, 2, 3), (1, 2, 4)), ((2, 1, 2), (1, 1, 1)), ((5, 2, 1), None)],
)
def test_special_registers(clusters: tuple[int, int, int], cluster: tuple[int, int, int] | None) -> None:
    each = cluster or (1, 1, 1)
    grid = [n * c for n, c in zip(clusters, each, strict=True)]
    out = np.full((grid[2], grid[1], grid[0], 18), 77, np.uint32)
    run(REGISTERS, "registers", clusters, 1, out, cluster=cluster)
    for z, y, x in np.ndindex(grid[2], grid[1], grid[0]):
        block = (x, y, z)
        place = [b // c for b, c in zip(block, each, strict=True)]
        inside = [b % c for b, c in zip(block, each, strict=True)]
        rank = inside[0] + each[0] * (inside[1] + each[1] * inside[2])
        size = each[0] * each[1] * each[2]
        expected = [*place, *clusters, *inside, *each, rank, size, int(cluster is not None), *block]
        assert out[z, y, x].tolist() == expected


SHARED = r"""
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
// Every block reads the next one's memory, in the order of its threads and in another, and one place of it.
extern "C" __global__ void ring(int *out) {
    extern __shared__ int mine[];
    auto cluster = cg::this_cluster();
    int t = threadIdx.x, n = blockDim.x, rank = cluster.block_rank(), size = cluster.num_blocks();
    mine[t] = blockIdx.x * 1000 + t;
    cluster.sync();
    int *next = cluster.map_shared_rank(mine, (rank + 1) % size);
    int sum = next[t] + next[n - 1 - t] * 3 + next[(t * 7) % n] * 5 + next[n / 2] * 7;
    cluster.sync();
    out[blockIdx.x * n + t] = sum;
}
// Every block writes to and counts in the memory of another one.
extern "C" __global__ void scatter(int *out) {
    __shared__ int box[64], count;
    auto cluster = cg::this_cluster();
    int t = threadIdx.x, rank = cluster.block_rank(), size = cluster.num_blocks();
    box[t] = -1;
    if (t == 0) count = 0;
    cluster.sync();
    int other = (rank + t) % size;
    cluster.map_shared_rank(box, other)[t] = rank * 100 + t;
    atomicAdd(cluster.map_shared_rank(&count, other), t + 1);
    cluster.sync();
    out[blockIdx.x * 65 + t] = box[t];
    if (t == 0) out[blockIdx.x * 65 + 64] = count;
}
// The addresses of shared::cluster: loads, stores and atomics of several widths.
extern "C" __global__ void window(unsigned *out) {
    __shared__ alignas(16) unsigned box[128];
    unsigned t = threadIdx.x, base = (unsigned)__cvta_generic_to_shared(box), rank, size, remote, old;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
    box[t] = rank * 1000 + t;
    asm volatile("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;" ::: "memory");
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(base), "r"((rank + 1) % size));
    unsigned a, b, c, d, e;
    asm volatile("ld.shared::cluster.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(remote + t / 4 * 16) : "memory");
    asm volatile("ld.shared::cluster.u8 %0, [%1+1];" : "=r"(e) : "r"(remote + t * 4) : "memory");
    asm volatile("barrier.cluster.arrive.relaxed; barrier.cluster.wait;" ::: "memory");
    asm volatile("atom.shared::cluster.add.u32 %0, [%1], %2;" : "=r"(old) : "r"(remote + t * 4), "r"(5) : "memory");
    asm volatile("red.relaxed.cluster.shared::cluster.max.u32 [%0], %1;" :: "r"(remote + t * 4), "r"(1500) : "memory");
    asm volatile("barrier.cluster.arrive; barrier.cluster.wait;" ::: "memory");
    if (t % 2) asm volatile("st.shared::cluster.u16 [%0+2], %1;" :: "r"(remote + t * 4), "h"((short)t) : "memory");
    asm volatile("barrier.cluster.arrive; barrier.cluster.wait;" ::: "memory");
    unsigned *mine = out + (blockIdx.x * blockDim.x + t) * 4;
    mine[0] = a + b * 2 + c * 3 + d * 4, mine[1] = e, mine[2] = old, mine[3] = box[t];
}
// What an address tells: its rank, its space.
extern "C" __global__ void tell(unsigned long long *out, int *global, int constant) {
    __shared__ int box[4];
    auto cluster = cg::this_cluster();
    unsigned rank = cluster.block_rank(), other = (rank + 1) % cluster.num_blocks();
    int local[2] = {constant, constant + 1};
    box[threadIdx.x] = local[constant & 1];
    cluster.sync();
    int *mine = cluster.map_shared_rank(box + 1, rank), *remote = cluster.map_shared_rank(box + 1, other);
    unsigned long long word = 0;
    const void *places[5] = {box, mine, remote, global, local};
    for (int i = 0; i < 5; i++) {
        unsigned cta, all, glob, loc, param, con;
        asm("{ .reg .pred a, b, c, d, e, f; isspacep.shared::cta a, %6; isspacep.shared::cluster b, %6;"
            " isspacep.global c, %6; isspacep.local d, %6; isspacep.param e, %6; isspacep.const f, %6;"
            " selp.u32 %0, 1, 0, a; selp.u32 %1, 1, 0, b; selp.u32 %2, 1, 0, c; selp.u32 %3, 1, 0, d;"
            " selp.u32 %4, 1, 0, e; selp.u32 %5, 1, 0, f; }"
            : "=r"(cta), "=r"(all), "=r"(glob), "=r"(loc), "=r"(param), "=r"(con) : "l"(places[i]));
        word = word << 6 | cta << 5 | all << 4 | glob << 3 | loc << 2 | param << 1 | con;
    }
    unsigned long long *line = out + blockIdx.x * 4;
    if (threadIdx.x == 0) {
        line[0] = word;
        line[1] = cluster.query_shared_rank(box) * 100 + cluster.query_shared_rank(mine) * 10
                  + cluster.query_shared_rank(remote);
        line[2] = mine == box + 1;
        unsigned own, far;
        unsigned base = (unsigned)__cvta_generic_to_shared(box);
        asm("{ .reg .u32 a; mapa.shared::cluster.u32 a, %1, %2; getctarank.shared::cluster.u32 %0, a; }"
            : "=r"(far) : "r"(base), "r"(other));
        asm("getctarank.shared::cluster.u32 %0, %1;" : "=r"(own) : "r"(base));
        line[3] = own * 10 + far;
    }
    cluster.sync();
}
"""


@pytest.mark.parametrize(("clusters", "size", "block"), [(2, 4, 64), (3, 2, 96), (1, 8, 33), (2, 1, 64)])
def test_reading_each_others_memory(clusters: int, size: int, block: int, engine: str) -> None:
    grid = clusters * size
    out = np.zeros((grid, block), np.int32)
    run(SHARED + engine, "ring", clusters, block, out, cluster=size, shared=4 * block)
    t = np.arange(block)
    for b in range(grid):
        other = b // size * size + (b % size + 1) % size
        values = other * 1000 + t
        expected = values + values[block - 1 - t] * 3 + values[t * 7 % block] * 5 + values[block // 2] * 7
        assert out[b].tolist() == expected.tolist()


@pytest.mark.parametrize("size", [2, 3, 8])
def test_writing_to_each_others_memory(size: int, engine: str) -> None:
    out = np.zeros((2 * size, 65), np.int32)
    run(SHARED + engine, "scatter", 2, 64, out, cluster=size)
    for b in range(2 * size):
        rank = b % size
        writers = [(rank - t) % size for t in range(64)]
        assert out[b, :64].tolist() == [w * 100 + t for t, w in enumerate(writers)]
        assert out[b, 64] == sum(t + 1 for t in range(64) for r in range(size) if (r + t) % size == rank)


@pytest.mark.parametrize("size", [2, 4])
def test_addresses_of_the_cluster(size: int, engine: str) -> None:
    out = np.zeros((size, 128, 4), np.uint32)
    run(SHARED + engine, "window", 1, 128, out, cluster=size)
    t = np.arange(128)
    for rank in range(size):
        theirs = (rank + 1) % size * 1000 + t
        four = theirs.reshape(32, 4)
        assert out[rank, :, 0].tolist() == np.repeat((four * [1, 2, 3, 4]).sum(1), 4).tolist()
        assert out[rank, :, 1].tolist() == (theirs >> 8 & 255).tolist()
        assert out[rank, :, 2].tolist() == theirs.tolist()
        after = np.maximum(rank * 1000 + t + 5, 1500)
        after = np.where(t % 2, (after & 0xFFFF) | t << 16, after)
        assert out[rank, :, 3].tolist() == after.tolist()


def test_what_addresses_tell(engine: str) -> None:
    size = 3
    out, number = np.zeros((size, 4), np.uint64), np.zeros(4, np.int32)
    run(SHARED + engine, "tell", 1, 4, out, number, np.int32(1), cluster=size)
    spaces = [0b110000, 0b110000, 0b010000, 0b001000, 0b000100]
    word = 0
    for space in spaces:
        word = word << 6 | space
    for rank in range(size):
        other = (rank + 1) % size
        assert [bin(int(out[rank, 0]) >> 6 * i & 63) for i in range(5)] == [bin(word >> 6 * i & 63) for i in range(5)]
        assert out[rank, 1:].tolist() == [rank * 110 + other, 1, rank * 10 + other]


BARRIER = r"""
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
#define ARRIVE asm volatile("barrier.cluster.arrive.release;" ::: "memory")
#define WAIT asm volatile("barrier.cluster.wait.acquire;" ::: "memory")
// Blocks take different times for each round.
extern "C" __global__ void rounds(int *out, int count) {
    __shared__ int box;
    auto cluster = cg::this_cluster();
    int rank = cluster.block_rank(), size = cluster.num_blocks(), sum = 0;
    for (int r = 0; r < count; r++) {
        if (threadIdx.x == 0) {
            int v = rank;
            for (int i = 0; i < (rank * 37 + r * 11) % 50; i++) v = v * 3 + 1;
            box = v + r;
        }
        cluster.sync();
        sum = sum * 5 + *cluster.map_shared_rank(&box, (rank + r) % size);
        cluster.sync();
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
// Work between arriving and waiting; a barrier of the block in between, too.
extern "C" __global__ void split_phases(int *out) {
    __shared__ int box[64];
    auto cluster = cg::this_cluster();
    int t = threadIdx.x, rank = cluster.block_rank(), size = cluster.num_blocks();
    box[t] = rank * 64 + t;
    ARRIVE;
    __syncthreads();
    int own = box[63 - t];
    WAIT;
    int theirs = cluster.map_shared_rank(box, size - 1 - rank)[t];
    ARRIVE;
    out[blockIdx.x * 64 + t] = own * 1000 + theirs;
    WAIT;
}
// Threads that have exited are not waited for, whole blocks of them neither.
extern "C" __global__ void exits(int *out, int *arrived) {
    auto cluster = cg::this_cluster();
    int t = threadIdx.x, rank = cluster.block_rank();
    if (rank == 1 || (rank == 2 && t % 3 == 0)) return;
    atomicAdd(arrived, 1);
    cluster.sync();
    out[rank * blockDim.x + t] = *(volatile int *)arrived;
    if (t % 2) return;
    cluster.sync();
}
// Threads of one warp arrive and wait at different places.
extern "C" __global__ void places(int *out, int *counter) {
    auto cluster = cg::this_cluster();
    int t = threadIdx.x, rank = cluster.block_rank();
    if ((t + rank) % 3 == 0) {
        atomicAdd(counter, 1);
        ARRIVE;
        out[rank * blockDim.x + t] = 1;
        WAIT;
        out[rank * blockDim.x + t] += *(volatile int *)counter * 10;
    } else {
        atomicAdd(counter, 1);
        ARRIVE;
        WAIT;
        out[rank * blockDim.x + t] = *(volatile int *)counter * 10 + 2;
    }
}
// Blocks wait for each other by a flag in shared memory, without a barrier.
extern "C" __global__ void flags(int *out) {
    __shared__ int turn;
    auto cluster = cg::this_cluster();
    int rank = cluster.block_rank(), size = cluster.num_blocks();
    if (threadIdx.x == 0) turn = rank == size - 1;
    cluster.sync();
    if (threadIdx.x == 0) {
        while (*(volatile int *)&turn == 0) {}
        out[blockIdx.x] = atomicAdd(&out[gridDim.x], 1);
        __threadfence();
        if (rank) *(volatile int *)cluster.map_shared_rank(&turn, rank - 1) = 1;
    }
    cluster.sync();
}
extern "C" __global__ void __cluster_dims__(2, 2, 1) of_four(unsigned *out) {
    auto cluster = cg::this_cluster();
    cluster.sync();
    unsigned block = blockIdx.x + gridDim.x * blockIdx.y;
    out[block] = cluster.num_blocks() * 100 + cluster.block_rank();
}
"""


@pytest.mark.parametrize(("clusters", "size", "block"), [(1, 4, 64), (3, 8, 32), (2, 2, 160), (2, None, 64)])
def test_rounds(clusters: int, size: int | None, block: int, engine: str) -> None:
    each, count = size or 1, 6
    out = np.zeros((clusters * each, block), np.int32)
    run(BARRIER + engine, "rounds", clusters, block, out, np.int32(count), cluster=size)

    def value(rank: int, r: int) -> int:
        v = rank
        for _ in range((rank * 37 + r * 11) % 50):
            v = v * 3 + 1
        return v + r

    for b in range(clusters * each):
        total = 0
        for r in range(count):
            total = total * 5 + value((b % each + r) % each, r)
        total = (total + 2**31) % 2**32 - 2**31
        assert (out[b] == total).all()


@pytest.mark.parametrize("size", [1, 2, 5])
def test_work_between_arriving_and_waiting(size: int, engine: str) -> None:
    out = np.zeros((2 * size, 64), np.int32)
    run(BARRIER + engine, "split_phases", 2, 64, out, cluster=size)
    t = np.arange(64)
    for b in range(2 * size):
        rank = b % size
        assert out[b].tolist() == ((rank * 64 + 63 - t) * 1000 + (size - 1 - rank) * 64 + t).tolist()


def test_exited_threads_are_not_waited_for(engine: str) -> None:
    out, arrived = np.zeros((4, 48), np.int32), np.zeros(1, np.int32)
    run(BARRIER + engine, "exits", 1, 48, out, arrived, cluster=4)
    everybody = 48 * 3 - 16
    t = np.arange(48)
    assert arrived[0] == everybody
    assert out[0].tolist() == out[3].tolist() == [everybody] * 48 and not out[1].any()
    assert out[2].tolist() == np.where(t % 3, everybody, 0).tolist()


def test_threads_of_a_warp_at_different_places(engine: str) -> None:
    out, counter = np.zeros((3, 64), np.int32), np.zeros(1, np.int32)
    run(BARRIER + engine, "places", 1, 64, out, counter, cluster=3)
    for rank in range(3):
        assert out[rank].tolist() == [1921 if (t + rank) % 3 == 0 else 1922 for t in range(64)]


def test_blocks_of_a_cluster_wait_for_flags(engine: str) -> None:
    out = np.zeros(13, np.int32)
    run(BARRIER + engine, "flags", 3, 32, out, cluster=4)
    assert out[12] == 12
    for first in range(0, 12, 4):
        assert (np.diff(out[first : first + 4]) < 0).all()


def test_dimensions_of_the_kernel_itself(engine: str) -> None:
    out = np.zeros((4, 6), np.uint32)
    run(BARRIER + engine, "of_four", (6, 4), 32, out)
    y, x = np.mgrid[:4, :6]
    assert out.tolist() == (400 + x % 2 + y % 2 * 2).tolist()
