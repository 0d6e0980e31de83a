"""What programs include: cuRAND, CUB's algorithms of a block and a warp, libcu++, cooperative groups, small floats.

The results are those of NumPy, of the definition, or of another way to the same numbers.
"""

from __future__ import annotations

import numpy as np
import pytest

from cupola.pathfinder import find_nvidia_header_directory
from tests.cpu.engine.kernels import run

needs_cccl = pytest.mark.skipif(
    not find_nvidia_header_directory("cccl"), reason="needs the headers of nvidia-cuda-cccl"
)
needs_curand = pytest.mark.skipif(
    not find_nvidia_header_directory("curand"), reason="needs the headers of nvidia-curand"
)

CURAND = r"""
#include <curand_kernel.h>
extern "C" __global__ void philox(unsigned long long seed, unsigned long long offset, uint4 *out) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    curandStatePhilox4_32_10_t state;
    curand_init(seed, t, offset, &state);
    out[t] = curand4(&state);
}
template <class State> __device__ void jumped(unsigned *out) {
    int t = threadIdx.x;
    State state, late;
    curand_init(2024, t, 0, &state);
    curand_init(2024, t, t, &late);
    for (int i = 0; i < t; i++) curand(&state);
    out[2 * t] = curand(&state);
    out[2 * t + 1] = curand(&late);
}
extern "C" __global__ void xorwow_jumped(unsigned *out) { jumped<curandStateXORWOW_t>(out); }
extern "C" __global__ void mrg_jumped(unsigned *out) { jumped<curandStateMRG32k3a_t>(out); }
extern "C" __global__ void moments(float *uniform, float *normal, double *normals, unsigned *poisson) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    curandState state;
    curand_init(7, t, 0, &state);
    for (int i = 0; i < 8; i++) {
        uniform[8 * t + i] = curand_uniform(&state);
        normal[8 * t + i] = curand_normal(&state);
        normals[8 * t + i] = curand_normal_double(&state);
        poisson[8 * t + i] = curand_poisson(&state, 6.0);
    }
}
"""


def philox(counter: np.ndarray, key: tuple[int, int]) -> np.ndarray:
    """Philox 4x32-10 (Salmon and others, "Parallel random numbers: as easy as 1, 2, 3")."""
    a, b, c, d = (counter[:, i].astype(np.uint64) for i in range(4))
    k0, k1 = key
    low = np.uint64(0xFFFFFFFF)
    for _ in range(10):
        first, second = np.uint64(0xD2511F53) * a, np.uint64(0xCD9E8D57) * c
        a, b, c, d = (
            second >> np.uint64(32) ^ b ^ np.uint64(k0),
            second & low,
            first >> np.uint64(32) ^ d ^ np.uint64(k1),
            first & low,
        )
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return np.stack([a, b, c, d], 1).astype(np.uint32)


@needs_curand
def test_curand_philox() -> None:
    seed, blocks, offset = 0x123456789ABCDEF0, 128, 12
    out = np.zeros((blocks, 4), np.uint32)
    run(CURAND, "philox", 4, 32, np.uint64(seed), np.uint64(offset), out)
    counter = np.zeros((blocks, 4), np.uint32)
    counter[:, 0] = offset // 4
    counter[:, 2] = np.arange(blocks)
    assert (out == philox(counter, (seed & 0xFFFFFFFF, seed >> 32))).all()


@needs_curand
@pytest.mark.parametrize("kernel", ["xorwow_jumped", "mrg_jumped"])
def test_curand_jumps_ahead(kernel: str) -> None:
    out = np.zeros((64, 2), np.uint32)
    run(CURAND, kernel, 1, 64, out)
    assert (out[:, 0] == out[:, 1]).all()
    assert len(np.unique(out[:, 0])) == 64


@needs_curand
def test_curand_distributions() -> None:
    count = 8 * 8 * 128
    uniform, normal = np.zeros(count, np.float32), np.zeros(count, np.float32)
    normals, poisson = np.zeros(count), np.zeros(count, np.uint32)
    run(CURAND, "moments", 8, 128, uniform, normal, normals, poisson)
    assert uniform.min() > 0 and uniform.max() <= 1
    error = 5 / np.sqrt(count)  # five standard deviations of the mean of what has a deviation of one
    for values, mean, deviation in [(uniform, 0.5, 12**-0.5), (normal, 0, 1), (normals, 0, 1), (poisson, 6, 6**0.5)]:
        assert abs(values.mean() - mean) < deviation * error
        assert abs(values.std() / deviation - 1) < error


CUB = r"""
#include <cub/block/block_discontinuity.cuh>
#include <cub/block/block_exchange.cuh>
#include <cub/block/block_histogram.cuh>
#include <cub/block/block_load.cuh>
#include <cub/block/block_merge_sort.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_shuffle.cuh>
#include <cub/block/block_store.cuh>
#include <cub/warp/warp_merge_sort.cuh>
#include <cub/warp/warp_reduce.cuh>
#include <cub/warp/warp_scan.cuh>
extern "C" __global__ void sort_and_sum(const int *in, int *out) {
    constexpr int T = 128, I = 8;
    using Load = cub::BlockLoad<int, T, I, cub::BLOCK_LOAD_WARP_TRANSPOSE>;
    using Store = cub::BlockStore<int, T, I, cub::BLOCK_STORE_TRANSPOSE>;
    using Sort = cub::BlockRadixSort<int, T, I>;
    using Scan = cub::BlockScan<int, T, cub::BLOCK_SCAN_WARP_SCANS>;
    __shared__ union {
        Load::TempStorage load; Store::TempStorage store; Sort::TempStorage sort; Scan::TempStorage scan;
    } temp;
    int values[I];
    Load(temp.load).Load(in, values);
    __syncthreads();
    Sort(temp.sort).Sort(values);
    __syncthreads();
    Scan(temp.scan).InclusiveSum(values, values);
    __syncthreads();
    Store(temp.store).Store(out, values);
}
extern "C" __global__ void each(const int *in, int *out) {
    constexpr int T = 256;
    int t = threadIdx.x, x = in[t];
    {
        using Reduce = cub::BlockReduce<int, T, cub::BLOCK_REDUCE_RAKING>;
        __shared__ Reduce::TempStorage temp;
        int sum = Reduce(temp).Sum(x);
        if (!t) out[0] = sum;
    }
    {
        using Reduce = cub::BlockReduce<int, T, cub::BLOCK_REDUCE_WARP_REDUCTIONS>;
        __shared__ Reduce::TempStorage temp;
        int most = Reduce(temp).Reduce(x, cuda::maximum<>{});
        if (!t) out[1] = most;
    }
    {
        using Reduce = cub::BlockReduce<int, T, cub::BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY>;
        __shared__ Reduce::TempStorage temp;
        int sum = Reduce(temp).Sum(x, 200);
        if (!t) out[2] = sum;
    }
    {
        __shared__ cub::BlockDiscontinuity<int, T>::TempStorage temp;
        int v[1] = {x / 100}, f[1];
        cub::BlockDiscontinuity<int, T>(temp).FlagHeads(f, v, cuda::std::not_equal_to<>{});
        int heads = __syncthreads_count(f[0]);
        if (!t) out[3] = heads;
    }
    {
        __shared__ cub::BlockMergeSort<int, T, 1>::TempStorage temp;
        int v[1] = {x};
        cub::BlockMergeSort<int, T, 1>(temp).Sort(v, cuda::std::greater<>{});
        if (t < 4) out[4 + t] = v[0];
    }
    {
        __shared__ cub::BlockShuffle<int, T>::TempStorage temp;
        int v;
        cub::BlockShuffle<int, T>(temp).Rotate(x, v, 3);
        if (t < 8) out[8 + t] = v;
    }
    __shared__ int histogram[16];
    {
        using Histogram = cub::BlockHistogram<unsigned char, T, 1, 16>;
        __shared__ Histogram::TempStorage temp;
        unsigned char v[1] = {(unsigned char)(x & 15)};
        Histogram(temp).Histogram(v, histogram);
        __syncthreads();
    }
    if (t < 16) out[16 + t] = histogram[t];
    __shared__ cub::WarpReduce<int>::TempStorage reduce[8];
    int sum = cub::WarpReduce<int>(reduce[t / 32]).Sum(x);
    if (t % 32 == 0) out[32 + t / 32] = sum;
    __shared__ cub::WarpMergeSort<int, 1, 32>::TempStorage sort[8];
    int v[1] = {x};
    cub::WarpMergeSort<int, 1, 32>(sort[t / 32]).Sort(v, cuda::std::less<>{});
    if (t % 32 == 0) out[40 + t / 32] = v[0];
}
"""


@needs_cccl
def test_cub_sorts_and_sums() -> None:
    values = np.random.default_rng(1).integers(-1000, 1000, 1024).astype(np.int32)
    out = np.zeros_like(values)
    run(CUB, "sort_and_sum", 1, 128, values, out)
    assert (out == np.cumsum(np.sort(values))).all()


@needs_cccl
def test_cub_algorithms() -> None:
    x = np.random.default_rng(2).integers(-1000, 1000, 256).astype(np.int32)
    out = np.zeros(48, np.int32)
    run(CUB, "each", 1, 256, x, out)
    rounded = np.trunc(x / 100)
    assert out[0] == x.sum()
    assert out[1] == x.max()
    assert out[2] == x[:200].sum()
    assert out[3] == 1 + np.count_nonzero(rounded[1:] != rounded[:-1])
    assert (out[4:8] == np.sort(x)[::-1][:4]).all()
    assert (out[8:16] == x[3:11]).all()
    assert (out[16:32] == np.bincount(x & 15, minlength=16)).all()
    assert (out[32:40] == x.reshape(8, 32).sum(1)).all()
    assert (out[40:48] == x.reshape(8, 32).min(1)).all()


LIBCUDACXX = r"""
#include <cuda/std/array>
#include <cuda/std/bit>
#include <cuda/std/bitset>
#include <cuda/std/chrono>
#include <cuda/std/complex>
#include <cuda/std/mdspan>
#include <cuda/std/numeric>
#include <cuda/std/optional>
#include <cuda/std/tuple>
#include <cuda/std/utility>
#include <cuda/std/variant>
namespace std_ = cuda::std;
struct weigh {
    template <class T> __device__ double operator()(T x) const { return double(x) * sizeof x; }
};
extern "C" __global__ void mixture(double *out) {
    int t = threadIdx.x, n = 0;
    double *o = out + 12 * t;
    std_::array<int, 8> a{};
    std_::iota(a.begin(), a.end(), t);
    for (int i = 0; i < 4; i++) std_::swap(a[i], a[7 - i]);
    o[n++] = a[0];
    o[n++] = std_::accumulate(a.begin(), a.end(), 0);
    std_::variant<int, double> v;
    if (t & 1) v = t + 0.5; else v = t;
    o[n++] = std_::visit(weigh{}, v);
    std_::optional<int> maybe;
    if (t % 3 == 0) maybe = t;
    o[n++] = maybe.value_or(-1);
    auto e = std_::exp(std_::complex<double>(0, 0.1 * t));
    o[n++] = e.real();
    o[n++] = std_::abs(std_::complex<double>(3, 4) * e);
    int data[12];
    std_::iota(data, data + 12, t);
    std_::mdspan<int, std_::extents<int, 3, 4>, std_::layout_left> m(data);
    o[n++] = m(2, 1);
    std_::bitset<40> bits;
    for (int i = 0; i < 40; i += t + 1) bits.set(i);
    o[n++] = bits.count();
    auto [p, q] = std_::make_tuple(t, 2 * t);
    o[n++] = p + q;
    o[n++] = std_::popcount(unsigned(t));
    o[n++] = std_::chrono::duration_cast<std_::chrono::milliseconds>(std_::chrono::seconds(t)).count();
    o[n++] = std_::gcd(t + 4, 12);
}
"""


@needs_cccl
def test_libcudacxx() -> None:
    out = np.zeros((48, 12))
    run(LIBCUDACXX, "mixture", 1, 48, out)
    for t, row in enumerate(out):
        expected = [
            t + 7,
            8 * t + 28,
            (t + 0.5) * 8 if t & 1 else t * 4,
            t if t % 3 == 0 else -1,
            np.cos(0.1 * t),
            5,
            t + 2 + 3,
            len(range(0, 40, t + 1)),
            3 * t,
            t.bit_count(),
            1000 * t,
            np.gcd(t + 4, 12),
        ]
        assert row == pytest.approx(expected, rel=1e-12, abs=1e-12)


GROUPS = r"""
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;
extern "C" __global__ void groups(int *out) {
    auto block = cg::this_thread_block();
    auto warp = cg::tiled_partition<32>(block);
    auto four = cg::tiled_partition<4>(warp);
    int t = block.thread_rank(), *o = out + 8 * t, n = 0;
    o[n] = -1;
    if (t % 3 == 1) {
        auto here = cg::coalesced_threads();
        o[n] = cg::reduce(here, t, cg::plus<int>());
        auto alike = cg::labeled_partition(here, t % 2);
        o[n] += 10000 * cg::inclusive_scan(alike, 1);
    }
    n++;
    o[n++] = cg::exclusive_scan(four, t);
    o[n++] = cg::binary_partition(warp, t % 32 < 5).size();
    auto large = cg::tiled_partition<128>(block);
    o[n++] = cg::reduce(large, t, cg::greater<int>());
    o[n++] = large.meta_group_rank();
    large.sync();
    o[n++] = cg::invoke_one_broadcast(four, [&] { return (int)four.meta_group_rank(); });
    o[n++] = cg::inclusive_scan(large, 1, cg::plus<int>());
}
"""


def test_cooperative_groups() -> None:
    """Groups of several warps keep their barriers in the shared memory that is reserved for the system."""
    threads = 256
    out = np.zeros((threads, 8), np.int32)
    run(GROUPS, "groups", 1, threads, out)
    for t, row in enumerate(out):
        warp = range(t // 32 * 32, t // 32 * 32 + 32)
        here = [u for u in warp if u % 3 == 1]
        alike = [u for u in here if u % 2 == t % 2 and u <= t]
        small = sum(u % 32 < 5 for u in warp)
        assert row[:7].tolist() == [
            sum(here) + 10000 * len(alike) if t in here else -1,
            sum(range(t // 4 * 4, t)),
            small if t % 32 < 5 else 32 - small,
            t // 128 * 128 + 127,
            t // 128,
            t % 32 // 4,
            t % 128 + 1,
        ]


RESERVED = r"""
extern __shared__ int words[];
extern "C" __global__ void reserved(unsigned *out) {
    unsigned begin, end, cap, zero, one, total, dynamic;
    asm volatile("mov.u32 %0, %%reserved_smem_offset_begin;" : "=r"(begin));
    asm volatile("mov.u32 %0, %%reserved_smem_offset_end;" : "=r"(end));
    asm volatile("mov.u32 %0, %%reserved_smem_offset_cap;" : "=r"(cap));
    asm volatile("mov.u32 %0, %%reserved_smem_offset_0;" : "=r"(zero));
    asm volatile("mov.u32 %0, %%reserved_smem_offset_1;" : "=r"(one));
    asm volatile("mov.u32 %0, %%total_smem_size;" : "=r"(total));
    asm volatile("mov.u32 %0, %%dynamic_smem_size;" : "=r"(dynamic));
    words[threadIdx.x] = threadIdx.x;
    unsigned own = (unsigned)__cvta_generic_to_shared(words);
    out[0] = end - begin;
    out[1] = cap;
    out[2] = zero >= begin && zero < end;
    out[3] = one >= begin && one + 288 <= end;
    out[4] = own + dynamic <= begin || own >= end;
    out[5] = dynamic;
    out[6] = total;
    out[7] = begin, out[8] = zero, out[9] = one, out[10] = own;
}
"""


def test_reserved_shared_memory() -> None:
    out = np.zeros(11, np.uint32)
    run(RESERVED, "reserved", 1, 32, out, shared=160)
    assert 288 <= out[0] <= 1024, out
    assert out[1:6].tolist() == [1024, 1, 1, 1, 160], out
    assert out[6] % 128 == 0 and 160 <= out[6] <= 160 + 1024 + 128


FLOATS = r"""
#include <cuda_fp4.h>
#include <cuda_fp6.h>
#include <cuda_fp8.h>
extern "C" __global__ void small(const float *in, float *out) {
    int t = threadIdx.x;
    float x = in[t];
    out[5 * t] = float(__nv_fp8_e4m3(x));
    out[5 * t + 1] = float(__nv_fp8_e5m2(x));
    out[5 * t + 2] = float(__nv_fp6_e3m2(x));
    out[5 * t + 3] = float(__nv_fp6_e2m3(x));
    out[5 * t + 4] = float(__nv_fp4_e2m1(x));
}
"""


@pytest.mark.parametrize(
    ("column", "exponent", "mantissa", "bias", "largest"),
    [(0, 4, 3, 7, 448.0), (1, 5, 2, 15, 57344.0), (2, 3, 2, 3, 28.0), (3, 2, 3, 1, 7.5), (4, 2, 1, 1, 6.0)],
)
def test_small_floats(column: int, exponent: int, mantissa: int, bias: int, largest: float) -> None:
    x = np.concatenate([np.linspace(-40, 40, 500), np.geomspace(1e-5, 1e5, 262), [0.0, -0.0]]).astype(np.float32)
    out = np.zeros((x.size, 5), np.float32)
    run(FLOATS, "small", 1, x.size, x, out)
    scale = np.maximum(np.floor(np.log2(np.maximum(np.abs(x), 1e-30))), 1 - bias) - mantissa
    expected = np.clip(np.rint(x / 2.0**scale) * 2.0**scale, -largest, largest)
    assert (out[:, column] == expected.astype(np.float32)).all()
