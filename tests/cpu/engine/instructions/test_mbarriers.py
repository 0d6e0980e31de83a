"""mbarrier objects and what signals them: asynchronous copies of a few bytes and in bulk, asynchronous stores."""

from __future__ import annotations

import numpy as np
import pytest

from cupola import Device
from tests.cpu.engine.kernels import run


@pytest.fixture(autouse=True)
def needs_hopper() -> None:
    if Device(0).compute_capability < (9, 0):
        pytest.skip("bulk copies and most of mbarrier need compute capability 9.0")


COMMON = r"""
using u64 = unsigned long long;
__device__ unsigned address(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ void make(u64 *bar, unsigned count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(address(bar)), "r"(count) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster; fence.proxy.async;" ::: "memory");
}
__device__ u64 arrive(u64 *bar) {
    u64 state;
    asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1];" : "=l"(state) : "r"(address(bar)) : "memory");
    return state;
}
__device__ void expect(u64 *bar, unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(address(bar)), "r"(bytes) : "memory");
}
__device__ void wait(u64 *bar, unsigned parity) {
    asm volatile("{ .reg .pred p; L: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @!p bra L; }"
                 :: "r"(address(bar)), "r"(parity) : "memory");
}
__device__ bool test(u64 *bar, u64 state) {
    int done;
    asm volatile("{ .reg .pred p; mbarrier.test_wait.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                 : "=r"(done) : "r"(address(bar)), "l"(state) : "memory");
    return done;
}
__device__ bool test_parity(u64 *bar, unsigned parity) {
    int done;
    asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                 : "=r"(done) : "r"(address(bar)), "r"(parity) : "memory");
    return done;
}
"""

PHASES = (
    COMMON
    + r"""
// All threads exchange values in each phase.
extern "C" __global__ void exchange(int *out, int rounds) {
    __shared__ u64 bar;
    __shared__ int box[2][256];
    int t = threadIdx.x, n = blockDim.x, sum = 0;
    if (t == 0) make(&bar, n);
    __syncthreads();
    for (int r = 0; r < rounds; r++) {
        box[r & 1][t] = t * (r + 1);
        arrive(&bar);
        wait(&bar, r & 1);
        sum = sum * 3 + box[r & 1][(t + r) % n];
    }
    out[t] = sum;
}
// The same, waiting for the state that arriving returned; a look before that tells nothing wrong.
extern "C" __global__ void by_state(int *out, int rounds) {
    __shared__ u64 bar;
    __shared__ int box[2][256];
    int t = threadIdx.x, n = blockDim.x, sum = 0;
    if (t == 0) make(&bar, n);
    __syncthreads();
    for (int r = 0; r < rounds; r++) {
        box[r & 1][t] = t * (r + 1);
        u64 state = arrive(&bar);
        while (!test(&bar, state)) {}
        sum = sum * 3 + box[r & 1][(t + r) % n];
    }
    out[t] = sum;
}
// One thread plays through the operations.
extern "C" __global__ void alone(unsigned *out) {
    __shared__ u64 bar;
    unsigned a = address(&bar), i = 0;
    u64 state, other;
    make(&bar, 4);
    out[i++] = test_parity(&bar, 0), out[i++] = test_parity(&bar, 1);
    asm volatile("mbarrier.arrive.shared.b64 %0, [%1], 3;" : "=l"(state) : "r"(a) : "memory");
    out[i++] = test(&bar, state);
    asm volatile("mbarrier.pending_count.b64 %0, %1;" : "=r"(out[i++]) : "l"(state));
    other = arrive(&bar);                                    // completes phase 0
    asm volatile("mbarrier.pending_count.b64 %0, %1;" : "=r"(out[i++]) : "l"(other));
    out[i++] = test(&bar, state), out[i++] = test(&bar, other);
    out[i++] = test_parity(&bar, 0), out[i++] = test_parity(&bar, 1);
    asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], 48;" :: "r"(a) : "memory");
    asm volatile("mbarrier.arrive.noComplete.release.cta.shared::cta.b64 %0, [%1], 2;"
                 : "=l"(state) : "r"(a) : "memory");
    asm volatile("mbarrier.arrive_drop.shared::cta.b64 %0, [%1];" : "=l"(other) : "r"(a) : "memory");
    asm volatile("mbarrier.pending_count.b64 %0, %1;" : "=r"(out[i++]) : "l"(other));
    asm volatile("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], 16;" :: "r"(a) : "memory");
    arrive(&bar);
    out[i++] = test(&bar, state);                            // 32 bytes are missing
    asm volatile("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], 32;" :: "r"(a) : "memory");
    out[i++] = test(&bar, state);
    state = arrive(&bar);
    asm volatile("mbarrier.pending_count.b64 %0, %1;" : "=r"(out[i++]) : "l"(state)); // one was dropped
    asm volatile("mbarrier.arrive_drop.expect_tx.shared::cta.b64 %0, [%1], 8;" : "=l"(state) : "r"(a) : "memory");
    asm volatile("mbarrier.complete_tx.shared::cta.b64 [%0], 8;" :: "r"(a) : "memory");
    state = arrive(&bar);
    out[i++] = test(&bar, state);
    asm volatile("mbarrier.arrive.b64 %0, [%1], 2;" : "=l"(state) : "l"(&bar) : "memory"); // generic; two are left
    out[i++] = test(&bar, state);
    asm volatile("mbarrier.inval.shared::cta.b64 [%0];" :: "r"(a) : "memory");
    make(&bar, 1);
    out[i++] = test_parity(&bar, 0);
}
// Warps hand a row of numbers round; each has a barrier that the one before it signals.
extern "C" __global__ void relay(int *out, int rounds) {
    __shared__ u64 bars[8];
    __shared__ int box[32];
    int t = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    if (threadIdx.x < warps) make(&bars[threadIdx.x], 32);
    if (warp == 0) box[t] = t;
    __syncthreads();
    if (warp == 0) arrive(&bars[0]);
    for (int r = 0; r < rounds; r++) {
        wait(&bars[warp], r & 1);
        box[t] = box[t] * 3 + warp;
        arrive(&bars[(warp + 1) % warps]);
    }
    __syncthreads();
    if (warp == 0) out[t] = box[t];
}
// Threads of one warp wait for each other in divergent code, in an order that only independent threads can keep.
extern "C" __global__ void chain(int *out) {
    __shared__ u64 bars[33];
    __shared__ int box;
    int t = threadIdx.x;
    make(&bars[t], 1);
    if (t == 0) box = 7;
    __syncwarp();
    if (t == 31) arrive(&bars[31]);
    for (int k = 0; k < 32; k++)
        if (k == t) {
            wait(&bars[t], 0);
            box = *(volatile int *)&box * 3 + t;
            out[t] = box;
            if (t) arrive(&bars[t - 1]);
        }
}
extern "C" __global__ void suspended(int *out) {
    __shared__ u64 bar;
    if (threadIdx.x == 0) make(&bar, 1);
    __syncthreads();
    int done;
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [%1], 0, %2;"
                 " selp.u32 %0, 1, 0, p; }" : "=r"(done) : "r"(address(&bar)), "r"(100) : "memory");
    __syncthreads();
    if (threadIdx.x == 0) arrive(&bar);
    wait(&bar, 0);
    out[threadIdx.x] = done;
}
"""
)


@pytest.mark.parametrize("name", ["exchange", "by_state"])
@pytest.mark.parametrize("block", [1, 32, 96, 250])
def test_exchange_in_phases(name: str, block: int, engine: str) -> None:
    out, rounds = np.zeros(block, np.int32), 7
    run(PHASES + engine, name, 1, block, out, np.int32(rounds))
    t, total = np.arange(block), np.zeros(block, np.int64)
    for r in range(rounds):
        total = total * 3 + (t + r) % block * (r + 1)
    assert out.tolist() == total.astype(np.int32).tolist()


def test_operations_one_by_one(engine: str) -> None:
    out = np.full(16, 77, np.uint32)
    run(PHASES + engine, "alone", 1, 1, out)
    assert out.tolist() == [0, 1, 0, 4, 1, 1, 1, 1, 0, 2, 0, 1, 3, 1, 1, 0]


@pytest.mark.parametrize("warps", [2, 8])
def test_warps_hand_on(warps: int, engine: str) -> None:
    out, rounds = np.zeros(32, np.int32), 5
    run(PHASES + engine, "relay", 1, 32 * warps, out, np.int32(rounds))
    box = np.arange(32)
    for _ in range(rounds):
        for warp in range(warps):
            box = (box * 3 + warp).astype(np.int32)
    assert out.tolist() == box.tolist()


def test_threads_of_a_warp_wait_for_each_other(engine: str) -> None:
    out = np.zeros(32, np.int32)
    run(PHASES + engine, "chain", 1, 32, out)
    value, expected = 7, [0] * 32
    for t in reversed(range(32)):
        value = (value * 3 + t + 2**31) % 2**32 - 2**31
        expected[t] = value
    assert out.tolist() == expected


def test_a_wait_with_a_limit_ends(engine: str) -> None:
    out = np.full(64, 7, np.int32)
    run(PHASES + engine, "suspended", 1, 64, out)
    assert not out.any()


COPIES = (
    COMMON
    + r"""
__device__ void load(void *to, const void *from, unsigned bytes, u64 *bar) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 :: "r"(address(to)), "l"(from), "r"(bytes), "r"(address(bar)) : "memory");
}
// A producer fills stages, consumers empty them: the ring of every pipelined kernel.
extern "C" __global__ void ring(const int *in, int *out, int tiles) {
    __shared__ alignas(128) int stage[3][64];
    __shared__ u64 full[3], empty[3];
    int t = threadIdx.x;
    if (t < 3) { make(&full[t], 1); make(&empty[t], 64); }
    __syncthreads();
    if (t >= 64) {
        if (t == 64)
            for (int i = 0; i < tiles; i++) {
                int s = i % 3, use = i / 3;
                if (use) wait(&empty[s], (use - 1) & 1);
                expect(&full[s], 256);
                load(stage[s], in + i * 64, 256, &full[s]);
            }
    } else {
        int sum = 0;
        for (int i = 0; i < tiles; i++) {
            int s = i % 3;
            wait(&full[s], i / 3 & 1);
            sum = sum * 5 + stage[s][(t * 3 + i) % 64];
            arrive(&empty[s]);
        }
        out[t] = sum;
    }
}
// The bytes may come before they are expected.
extern "C" __global__ void early(const int *in, int *out) {
    __shared__ alignas(16) int box[32];
    __shared__ u64 bar;
    int t = threadIdx.x;
    if (t == 0) {
        make(&bar, 1);
        load(box, in, 64, &bar);
        load(box + 16, in + 64, 64, &bar);
        expect(&bar, 128);
    }
    __syncthreads();
    wait(&bar, 0);
    out[t] = box[t];
}
extern "C" __global__ void back(const int *in, int *out) {
    __shared__ alignas(16) int box[64];
    int t = threadIdx.x;
    box[t] = in[t] * 3;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (t == 0) {
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 256;"
                     :: "l"(out), "r"(address(box)) : "memory");
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 16;"
                     :: "l"(out + 64), "r"(address(box + 8)) : "memory");
        asm volatile("cp.async.bulk.prefetch.L2.global [%0], 64;" :: "l"(in) : "memory");
        asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;"
                     "cp.async.bulk.wait_group 0;" ::: "memory");
    }
    __syncthreads();
}
#define REDUCE(type, name) asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group." name \
    " [%0], [%1], %2;" :: "l"(out), "r"(address(box)), "r"(n * (int)sizeof(type)) : "memory");
#define REDUCER(function, type, name)                                                                   \
    extern "C" __global__ void function(const type *in, type *out, int n) {                             \
        __shared__ alignas(16) type box[256];                                                           \
        for (int i = threadIdx.x; i < n; i += blockDim.x) box[i] = in[i];                               \
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");                                    \
        __syncthreads();                                                                                \
        if (threadIdx.x == 0) {                                                                         \
            REDUCE(type, name)                                                                          \
            asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory");       \
        }                                                                                               \
        __syncthreads();                                                                                \
    }
REDUCER(add_u32, unsigned, "add.u32") REDUCER(add_u64, u64, "add.u64") REDUCER(min_s32, int, "min.s32")
REDUCER(max_s64, long long, "max.s64") REDUCER(xor_b64, u64, "xor.b64") REDUCER(inc_u32, unsigned, "inc.u32")
REDUCER(add_f32, float, "add.f32") REDUCER(add_f64, double, "add.f64")
REDUCER(add_f16, unsigned short, "add.noftz.f16") REDUCER(min_f16, unsigned short, "min.f16")
REDUCER(add_bf16, unsigned short, "add.noftz.bf16")
// Between the blocks of a cluster: plain, reducing and multicast copies, single stores and atomics.
__device__ unsigned in_block(const void *p, unsigned rank) {
    unsigned result;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(result) : "r"(address(p)), "r"(rank));
    return result;
}
__device__ void meet() { asm volatile("barrier.cluster.arrive; barrier.cluster.wait;" ::: "memory"); }
extern "C" __global__ void neighbours(const int *in, int *out) {
    __shared__ alignas(16) int mine[64], copied[64], summed[64], cast[64], stored[128];
    __shared__ u64 bar;
    unsigned t = threadIdx.x, rank, size;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
    mine[t] = rank * 1000 + t, summed[t] = t, cast[t] = -1;
    stored[t] = stored[t + 64] = 0;
    if (t == 0) {
        make(&bar, 1);
        expect(&bar, 256 + 256 + 64 * size + 64 * 12);
    }
    asm volatile("fence.proxy.async;" ::: "memory");
    meet();
    unsigned next = (rank + 1) % size, far = in_block(&bar, next);
    if (t == 0) {
        asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], 256, [%2];"
                     :: "r"(in_block(copied, next)), "r"(address(mine)), "r"(far) : "memory");
        asm volatile("cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.s32"
                     " [%0], [%1], 256, [%2];"
                     :: "r"(in_block(summed, next)), "r"(address(mine)), "r"(far) : "memory");
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
                     " [%0], [%1], 64, [%2], %3;"
                     :: "r"(address(cast + 16 * rank)), "l"(in + 16 * rank), "r"(address(&bar)),
                        "h"((short)((1 << size) - 1)) : "memory");
    }
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.s32 [%0], {%1, %2}, [%3];"
                 :: "r"(in_block(stored + 2 * t, next)), "r"(rank * 100 + t), "r"(t), "r"(far) : "memory");
    asm volatile("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.max.s32 [%0], %1, [%2];"
                 :: "r"(in_block(&summed[63 - t], next)), "r"(5), "r"(far) : "memory");
    wait(&bar, 0);
    int *line = out + (blockIdx.x * 64 + t) * 5;
    line[0] = copied[t], line[1] = cast[t], line[2] = stored[2 * t], line[3] = stored[2 * t + 1];
    line[4] = t > 4 ? summed[t] : 0;
    meet();
}
// Everybody arrives at the mbarrier of the block with rank 0.
extern "C" __global__ void remote(int *out) {
    __shared__ u64 bar;
    unsigned t = threadIdx.x, rank, size;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
    if (t == 0) make(&bar, size * (blockDim.x + 2));
    meet();
    unsigned far = in_block(&bar, 0);
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" :: "r"(far) : "memory");
    if (t == 1) asm volatile("mbarrier.arrive.expect_tx.shared::cluster.b64 _, [%0], 8;" :: "r"(far) : "memory");
    if (t == 1) asm volatile("mbarrier.complete_tx.shared::cluster.b64 [%0], 8;" :: "r"(far) : "memory");
    if (t == 2) asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0], 1;" :: "r"(far) : "memory");
    if (rank == 0) {
        asm volatile("{ .reg .pred p; L: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], 0;"
                     " @!p bra L; }" :: "r"(address(&bar)) : "memory");
        out[t] = t + 1;
    }
    meet();
}
"""
)


@pytest.mark.parametrize("tiles", [1, 3, 11])
def test_ring_of_stages(tiles: int, engine: str) -> None:
    values = np.random.default_rng(7).integers(-100, 100, (tiles, 64)).astype(np.int32)
    out = np.zeros(64, np.int32)
    run(COPIES + engine, "ring", 1, 96, values, out, np.int32(tiles))
    t, total = np.arange(64), np.zeros(64, np.int64)
    for i in range(tiles):
        total = total * 5 + values[i, (t * 3 + i) % 64]
    assert out.tolist() == total.astype(np.int32).tolist()


def test_bytes_before_they_are_expected(engine: str) -> None:
    values, out = np.arange(100, 180, dtype=np.int32), np.zeros(32, np.int32)
    run(COPIES + engine, "early", 1, 32, values, out)
    assert out.tolist() == [*range(100, 116), *range(164, 180)]


def test_bulk_copies_to_global_memory(engine: str) -> None:
    values, out = np.arange(64, dtype=np.int32), np.zeros(72, np.int32)
    run(COPIES + engine, "back", 1, 64, values, out)
    assert out.tolist() == [*range(0, 192, 3), 24, 27, 30, 33, 0, 0, 0, 0]


def _bfloat(values: np.ndarray) -> np.ndarray:
    """Small whole numbers as bfloat16."""
    return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)


@pytest.mark.parametrize(
    ("name", "type", "reduce"),
    [
        ("add_u32", np.uint32, np.add),
        ("add_u64", np.uint64, np.add),
        ("min_s32", np.int32, np.minimum),
        ("max_s64", np.int64, np.maximum),
        ("xor_b64", np.uint64, np.bitwise_xor),
        ("inc_u32", np.uint32, lambda old, limit: np.where(old >= limit, 0, old + 1)),
        ("add_f32", np.float32, np.add),
        ("add_f64", np.float64, np.add),
        ("add_f16", np.float16, np.add),
        ("min_f16", np.float16, np.minimum),
    ],
)
def test_bulk_reductions(name: str, type: type, reduce: object, engine: str) -> None:
    rng = np.random.default_rng(8)
    low = -50 if np.issubdtype(type, np.signedinteger) or np.issubdtype(type, np.floating) else 0
    values, out = (rng.integers(low, 50, 104).astype(type) for _ in range(2))
    expected = np.concatenate([reduce(out[:96], values[:96]), out[96:]])  # type: ignore[operator]
    run(COPIES + engine, name, 1, 32, values, out, np.int32(96))
    assert out.tolist() == expected.tolist()


def test_bulk_sum_of_bfloats(engine: str) -> None:
    a, b = (np.random.default_rng(seed).integers(-50, 50, 64) for seed in (9, 10))
    out = _bfloat(b)
    run(COPIES + engine, "add_bf16", 1, 32, _bfloat(a), out, np.int32(64))
    assert out.tolist() == _bfloat(a + b).tolist()


@pytest.mark.parametrize("size", [2, 4])
def test_copies_between_blocks(size: int, engine: str) -> None:
    values, out = np.arange(500, 564, dtype=np.int32), np.zeros((2 * size, 64, 5), np.int32)
    run(COPIES + engine, "neighbours", 2, 64, values, out, cluster=size)
    t = np.arange(64)
    for b in range(2 * size):
        before = (b % size - 1) % size
        assert out[b, :, 0].tolist() == (before * 1000 + t).tolist()
        assert out[b, :, 1].tolist() == [500 + i if i < 16 * size else -1 for i in range(64)]
        assert out[b, :, 2].tolist() == (before * 100 + t).tolist() and out[b, :, 3].tolist() == t.tolist()
        assert out[b, 5:, 4].tolist() == (before * 1000 + 2 * t)[5:].tolist()


@pytest.mark.parametrize("size", [1, 4])
def test_arriving_in_another_block(size: int, engine: str) -> None:
    out = np.zeros(40, np.int32)
    run(COPIES + engine, "remote", 1, 40, out, cluster=size)
    assert out.tolist() == list(range(1, 41))


SMALL_COPIES = (
    COMMON
    + r"""
// Sources that are shorter than what is written, or to be ignored; those are not even looked at.
extern "C" __global__ void shorter(const char *in, char *out) {
    __shared__ alignas(16) char box[64][48];
    int t = threadIdx.x;
    for (int i = 0; i < 48; i++) box[t][i] = 99;
    unsigned to = address(box[t]);
    int size = t % 20;
    const char *from = size ? in + t * 16 : nullptr;
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;"
                 :: "r"(to), "l"(from), "r"(size < 16 ? size : 16));
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" :: "r"(to + 16), "l"(from), "r"(size < 8 ? size : 8));
    asm volatile("{ .reg .pred p; setp.lt.u32 p, %2, 10; cp.async.ca.shared::cta.global [%0], [%1], 4, p; }"
                 :: "r"(to + 24), "l"(size < 10 ? nullptr : in + t * 16), "r"(size));
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, 0;" :: "r"(to + 28), "l"((const char *)nullptr));
    asm volatile("cp.async.commit_group; cp.async.wait_group 0; cp.async.wait_all;" ::: "memory");
    for (int i = 0; i < 48; i++) out[t * 48 + i] = box[t][i];
}
extern "C" __global__ void signalled(const int *in, int *out) {
    __shared__ alignas(16) int box[128];
    __shared__ u64 bars[2];
    int t = threadIdx.x;
    if (t == 0) { make(&bars[0], blockDim.x); make(&bars[1], blockDim.x); }
    __syncthreads();
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(address(box + t)), "l"(in + t) : "memory");
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" :: "r"(address(&bars[0])) : "memory");
    wait(&bars[0], 0);
    int value = box[blockDim.x - 1 - t];
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(address(box + 64 + t)), "l"(in + 64 + t) : "memory");
    asm volatile("cp.async.mbarrier.arrive.b64 [%0];" :: "l"(&bars[1]) : "memory");
    arrive(&bars[1]);
    wait(&bars[1], 0);
    out[t] = value * 1000 + box[64 + blockDim.x - 1 - t];
}
"""
)


def test_short_sources(engine: str) -> None:
    values = np.random.default_rng(11).integers(0, 90, 64 * 16 + 16).astype(np.uint8)
    out = np.zeros((64, 48), np.uint8)
    run(SMALL_COPIES + engine, "shorter", 1, 64, values, out)
    for t in range(64):
        source, size = values[t * 16 : t * 16 + 16], t % 20
        expected = [*source[: min(size, 16)], *[0] * (16 - min(size, 16))]
        expected += [*source[: min(size, 8)], *[0] * (8 - min(size, 8))]
        expected += [0] * 4 if size < 10 else [*source[:4]]
        assert out[t].tolist() == [*expected, 0, 0, 0, 0, *[99] * 16]


def test_copies_that_arrive(engine: str) -> None:
    values, out = np.arange(128, dtype=np.int32), np.zeros(64, np.int32)
    run(SMALL_COPIES + engine, "signalled", 1, 64, values, out)
    assert out.tolist() == [(63 - t) * 1000 + 127 - t for t in range(64)]
