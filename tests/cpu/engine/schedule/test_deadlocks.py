"""What the CPU device says when threads wait for each other forever, or misuse what they would wait with.

Each kernel runs on a device of its own, which its fault spoils.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import pytest

from tests.cpu.engine.faulting import explanations

pytestmark = pytest.mark.cpu_only

SOURCE = r"""
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
using u64 = unsigned long long;
__device__ unsigned address(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ void make(u64 *bar, unsigned count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(address(bar)), "r"(count) : "memory");
}
__device__ void arrive(u64 *bar) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(address(bar)) : "memory");
}
__device__ void expect(u64 *bar, unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(address(bar)), "r"(bytes) : "memory");
}
__device__ void wait(u64 *bar, unsigned parity) {
    asm volatile("{ .reg .pred p; L: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @!p bra L; }"
                 :: "r"(address(bar)), "r"(parity) : "memory");
}
#define ENTRY extern "C" __global__ void
ENTRY cluster_barrier(int *data) {
    if (cg::this_cluster().block_rank() != 1) cg::this_cluster().sync();
    else if (threadIdx.x % 2) __syncthreads();
    else asm volatile("barrier.sync 3;");
}
ENTRY one_arrives_short(int *data) {
    __shared__ u64 pad, bar;
    if (threadIdx.x == 0) { make(&pad, 1); make(&bar, 65); }
    __syncthreads();
    arrive(&bar);
    wait(&bar, 0);
}
ENTRY bytes_are_missing(int *data) {
    __shared__ alignas(16) int box[64];
    __shared__ u64 bar;
    if (threadIdx.x == 0) {
        make(&bar, 1);
        expect(&bar, 256);
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 192, [%2];"
                     :: "r"(address(box)), "l"(data), "r"(address(&bar)) : "memory");
    }
    __syncthreads();
    if (threadIdx.x < 40) wait(&bar, 0);
    else __syncthreads();
}
// The second block arrives, but not at the mbarrier that the first one waits for.
ENTRY wrong_block(int *data) {
    __shared__ u64 bar;
    auto cluster = cg::this_cluster();
    if (threadIdx.x == 0) make(&bar, 1);
    cluster.sync();
    if (cluster.block_rank() == 1 && threadIdx.x == 0) arrive(&bar);
    wait(&bar, 0);
    cluster.sync();
}
ENTRY not_initialised(int *data) {
    __shared__ u64 bar;
    bar = 0;
    __syncthreads();
    arrive(&bar);
}
ENTRY too_many(int *data) {
    __shared__ u64 bar;
    if (threadIdx.x == 0) make(&bar, 2);
    __syncthreads();
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0], 3;" :: "r"(address(&bar)) : "memory");
}
ENTRY in_global_memory(int *data) {
    asm volatile("mbarrier.init.b64 [%0], 1;" :: "l"(data) : "memory");
}
ENTRY arrives_twice(int *data) {
    asm volatile("barrier.cluster.arrive; barrier.cluster.arrive; barrier.cluster.wait;");
}
ENTRY no_such_block(int *data) {
    __shared__ int box[16];
    box[threadIdx.x % 16] = 1;
    auto cluster = cg::this_cluster();
    cluster.sync();
    data[threadIdx.x] = cluster.map_shared_rank(box, 2)[threadIdx.x % 16];
    cluster.sync();
}
ENTRY beyond_the_end(int *data) {
    __shared__ int box[16];
    auto cluster = cg::this_cluster();
    box[threadIdx.x % 16] = 1;
    cluster.sync();
    if (cluster.block_rank() == 0 && threadIdx.x == 5) cluster.map_shared_rank(box, 1)[16] = 3;
    cluster.sync();
}
ENTRY has_exited(int *data) {
    __shared__ int box[16];
    auto cluster = cg::this_cluster();
    box[threadIdx.x % 16] = 1;
    cluster.sync();
    if (cluster.block_rank() == 1) return;
    for (int i = 0; i < 2000; i++) atomicAdd(data, cluster.map_shared_rank(box, 1)[threadIdx.x % 16]);
    cluster.sync();
}
ENTRY odd_bytes(int *data) {
    __shared__ alignas(16) int box[64];
    __shared__ u64 bar;
    make(&bar, 1);
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %3, [%2];"
                 :: "r"(address(box)), "l"(data), "r"(address(&bar)), "r"(data[0] + 24) : "memory");
}
ENTRY bulk_beyond_the_end(int *data) {
    __shared__ alignas(16) int box[1024];
    __shared__ u64 bar;
    make(&bar, 1);
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 4096, [%2];"
                 :: "r"(address(box)), "l"(data), "r"(address(&bar)) : "memory");
}
"""


@dataclass(frozen=True)
class Fault:
    """Blocks of the cluster, threads of a block; what the text must have."""

    cluster: int
    block: int
    status: str
    patterns: tuple[str, ...]


FAILED, ILLEGAL, ADDRESS = "CUDA_ERROR_LAUNCH_FAILED", "CUDA_ERROR_ILLEGAL_INSTRUCTION", "CUDA_ERROR_ILLEGAL_ADDRESS"
FAULTS = {
    "cluster_barrier": Fault(
        3,
        64,
        FAILED,
        (
            r"block \(0, 0, 0\): 64 threads from \(0, 0, 0\) to \(63, 0, 0\) wait at the cluster's barrier for all 192",
            r"block \(1, 0, 0\): 32 threads from \(0, 0, 0\) to \(62, 0, 0\) wait at barrier 3 for all 64 threads.*;"
            r" 32 threads from \(1, 0, 0\) to \(63, 0, 0\) wait at barrier 0",
            r"barrier\.cluster\.wait",
        ),
    ),
    "one_arrives_short": Fault(
        1,
        64,
        FAILED,
        (
            r"64 threads from \(0, 0, 0\) to \(63, 0, 0\) wait for the mbarrier at offset 8 of shared memory, whose "
            r"phase lacks 1 of 65 arrivals",
            r"mbarrier\.try_wait",
        ),
    ),
    "bytes_are_missing": Fault(
        1,
        64,
        FAILED,
        (
            r"40 threads from \(0, 0, 0\) to \(39, 0, 0\) wait for the mbarrier at offset \d+ of shared memory, whose "
            r"phase lacks 0 of 1 arrivals and 64 bytes of asynchronous copies",
            r"24 threads from \(40, 0, 0\) to \(63, 0, 0\) wait at barrier 0",
        ),
    ),
    "wrong_block": Fault(
        2,
        32,
        FAILED,
        (
            r"block \(0, 0, 0\): 32 threads .* wait for the mbarrier at offset 0",
            r"block \(1, 0, 0\): 32 threads .* wait at the cluster's barrier",
        ),
    ),
    "not_initialised": Fault(1, 32, ILLEGAL, (r"mbarrier at offset 0 of shared memory: it was not initialized",)),
    "too_many": Fault(1, 1, ILLEGAL, (r"3 arrivals, but its phase lacks 2 only",)),
    "in_global_memory": Fault(1, 1, ILLEGAL, (r"an mbarrier lies in shared memory; 0x\w+ is an address elsewhere",)),
    "arrives_twice": Fault(2, 32, ILLEGAL, (r"arrives at the cluster's barrier a second time",)),
    "no_such_block": Fault(
        2, 32, ADDRESS, (r"read of 4 bytes in shared memory at offset 0", r"rank 2, in a cluster of 2 blocks")
    ),
    "beyond_the_end": Fault(
        2,
        32,
        ADDRESS,
        (
            r"write of 4 bytes in shared memory at offset 64",
            r"shared memory of block \(1, 0, 0\), rank 1 of the cluster, of which there are 64 bytes",
            r"in thread \(5, 0, 0\) of block \(0, 0, 0\)",
        ),
    ),
    "has_exited": Fault(2, 32, ADDRESS, (r"block \(1, 0, 0\), rank 1 of the cluster, which has exited",)),
    "odd_bytes": Fault(1, 1, ILLEGAL, (r"a bulk copy of 24 bytes: it must be a multiple of 16",)),
    "bulk_beyond_the_end": Fault(1, 1, ADDRESS, (r"out-of-bounds read of 4096 bytes in global memory",)),
}


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    """The error of each kernel."""
    launches = {name: {"cluster": fault.cluster, "block": fault.block} for name, fault in FAULTS.items()}
    return explanations(SOURCE, launches, buffers=[1024], numbers=[])


@pytest.mark.parametrize("name", FAULTS)
def test_it_is_explained(name: str, texts: dict[str, str]) -> None:
    fault, text = FAULTS[name], texts[name]
    assert text.startswith(fault.status), text
    assert f"kernel '{name}'" in text
    for pattern in fault.patterns:
        assert re.search(pattern, text), text
