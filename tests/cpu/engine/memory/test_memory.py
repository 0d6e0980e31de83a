"""Loads and stores of every kind, in every space, and atomic operations."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cupola import Device
from tests.cpu.engine.kernels import run

BLOCKS = [1, 50, 256]

TYPES = {
    "signed char": np.int8,
    "unsigned char": np.uint8,
    "short": np.int16,
    "unsigned short": np.uint16,
    "int": np.int32,
    "unsigned": np.uint32,
    "long long": np.int64,
    "unsigned long long": np.uint64,
    "float": np.float32,
    "double": np.float64,
}

COPY = """
extern "C" __global__ void copy_{1}(const {0} *in, {0} *out, {0} *reversed, {0} *strided, const int *where, int n) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    {0} x = in[i];
    out[i] = x;
    reversed[n - 1 - i] = x;
    strided[3 * i] = in[where[i]];
}}
"""


def random_array(dtype: Any, size: int | tuple[int, ...], seed: int = 0) -> np.ndarray:
    generator = np.random.default_rng(seed)
    if np.issubdtype(dtype, np.floating):
        return generator.standard_normal(size).astype(dtype)
    info = np.iinfo(dtype)
    return generator.integers(info.min, info.max, size, dtype=dtype, endpoint=True)


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("type", TYPES)
def test_every_type(type: str, block: int, engine: str) -> None:
    n = 333
    values = random_array(TYPES[type], n)
    where = np.random.default_rng(1).integers(0, n, n).astype(np.int32)
    out, backwards, strided = np.zeros_like(values), np.zeros_like(values), np.zeros(3 * n, values.dtype)
    grid = -(-n // block)
    source = "".join(COPY.format(name, name.replace(" ", "_")) for name in TYPES) + engine
    run(source, f"copy_{type.replace(' ', '_')}", grid, block, values, out, backwards, strided, where, np.int32(n))
    assert (out == values).all() and (backwards == values[::-1]).all()
    assert (strided[::3] == values[where]).all() and not strided[1::3].any()


VECTORS = r"""
template <typename V> __device__ void rotate(const V *in, V *out, int n, V (*f)(V)) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[(i + 1) % n] = f(in[i]);
}
__device__ float2 f(float2 v) { return make_float2(v.y, v.x); }
__device__ float4 f(float4 v) { return make_float4(v.w, v.z, v.y, v.x); }
__device__ double2 f(double2 v) { return make_double2(v.y, v.x); }
__device__ short4 f(short4 v) { return make_short4(v.w, v.z, v.y, v.x); }
__device__ uchar4 f(uchar4 v) { return make_uchar4(v.w, v.z, v.y, v.x); }
__device__ int2 f(int2 v) { return make_int2(v.y, v.x); }
#define KERNEL(V) extern "C" __global__ void k_##V(const V *in, V *out, int n) { \
    int i = blockIdx.x * blockDim.x + threadIdx.x; \
    if (i < n) out[i] = f(in[i]); \
    if (i == n - 1) out[n] = in[n / 2]; }
KERNEL(float2) KERNEL(float4) KERNEL(double2) KERNEL(short4) KERNEL(uchar4) KERNEL(int2)
"""


@pytest.mark.parametrize(
    ("type", "dtype", "count"),
    [
        ("float2", np.float32, 2),
        ("float4", np.float32, 4),
        ("double2", np.float64, 2),
        ("short4", np.int16, 4),
        ("uchar4", np.uint8, 4),
        ("int2", np.int32, 2),
    ],
)
def test_vectors(type: str, dtype: Any, count: int, engine: str) -> None:
    n = 100
    values = random_array(dtype, n * count).reshape(n, count)
    out = np.zeros((n + 1, count), dtype)
    run(VECTORS + engine, f"k_{type}", 4, 32, values, out, np.int32(n))
    assert (out[:n] == values[:, ::-1]).all() and (out[n] == values[n // 2]).all()


SPACES = r"""
__constant__ int table[4] = {10, 20, 30, 40};
__constant__ struct { int *where; float f; } box = {nullptr, 2.5f};
__device__ int counter = 7;
__device__ float grid_values[3] = {1.5f, 2.5f, 3.5f};
__device__ int *pointer_to_counter = &counter;
extern "C" __global__ void variables(int *out) {
    int t = threadIdx.x;
    out[t] = table[t % 4] + int(grid_values[t % 3] * 2) + *pointer_to_counter + int(box.f * 2) + (box.where == nullptr);
}
extern "C" __global__ void local_arrays(int *out, int n) {
    int t = threadIdx.x, a[40], b[8];
    for (int i = 0; i < 40; i++) a[i] = i * t;
    for (int i = 0; i < 8; i++) b[i] = a[(i * 7 + t) % 40];
    int s = 0;
    for (int i = 0; i < n; i++) { s += a[(t * 3 + i) % 40] ^ b[i % 8]; a[(i + t) % 40] = s & 255; }
    out[t] = s;
}
__device__ __noinline__ int sum(const int *p, int n) { int s = 0; for (int i = 0; i < n; i++) s += p[i]; return s; }
__device__ __noinline__ void fill(int *p, int n, int v) { for (int i = 0; i < n; i++) p[i] = v + i; }
// One generic pointer that is in global, shared or local memory.
extern "C" __global__ void generic(int *data, int *out) {
    __shared__ int box[32];
    int mine[4], t = threadIdx.x;
    fill(mine, 4, t);
    if (t < 8) fill(box + 4 * t, 4, 100 * t);
    __syncthreads();
    int *p = t % 3 == 0 ? data + 4 * (t % 8) : t % 3 == 1 ? box + 4 * (t % 8) : mine;
    out[t] = sum(p, 4) + __isGlobal(p) * 1000000 + __isShared(p) * 2000000 + __isLocal(p) * 3000000;
    p[1] = -t;
    out[t] += p[1] * 7;
}
extern "C" __global__ void dynamic(int *out) {
    extern __shared__ char memory[];
    __shared__ short fixed[3];
    int *ints = (int *)memory;
    double *doubles = (double *)(memory + 64);
    int t = threadIdx.x;
    if (t < 3) fixed[t] = 5 * t;
    if (t < 16) ints[t] = t * t;
    doubles[t] = t * 0.5;
    __syncthreads();
    unsigned size; asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(size));
    out[t] = ints[15 - t % 16] + int(doubles[(t + 1) % blockDim.x] * 2) + fixed[t % 3] + int(size);
}
struct Params { char c; short s; int i[5]; double d; };
extern "C" __global__ void by_value(Params p, int *out, int n) {
    int t = threadIdx.x;
    if (t < n) out[t] = p.c + p.s + p.i[t % 5] + int(p.d);
}
extern "C" __global__ void coordinates(int *out) {
    int b = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    int t = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    int n = blockDim.x * blockDim.y * blockDim.z;
    unsigned lane; asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    unsigned below; asm("mov.u32 %0, %%lanemask_lt;" : "=r"(below));
    int *o = out + 6 * (b * n + t);
    o[0] = threadIdx.x; o[1] = threadIdx.y; o[2] = threadIdx.z; o[3] = b; o[4] = lane; o[5] = below;
}
"""


CLOCKS = r"""
extern "C" __global__ void clocks(long long *out) {
    long long before = clock64();
    unsigned long long ns; asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    int ticks = clock();
    for (int i = 0; i < 20; i++) __nanosleep(1000);
    out[3 * threadIdx.x] = clock64() - before;
    unsigned long long end; asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(end));
    out[3 * threadIdx.x + 1] = end - ns;
    out[3 * threadIdx.x + 2] = clock() - ticks;
}
"""


def test_clocks_go_on(engine: str) -> None:
    out = np.zeros((32, 3), np.int64)
    run(CLOCKS + engine, "clocks", 1, 32, out)
    assert (out[:, 0] > 0).all() and (out[:, 1] >= 0).all() and (out[:, 2] != 0).all()


RATE = r"""
__device__ unsigned long long timer() {
    unsigned long long ns; asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return ns;
}
extern "C" __global__ void rate(long long *out) {
    long long t0 = timer(), c0 = clock64(), t1 = timer();
    unsigned low0 = clock();
    for (int i = 0; i < 200; i++) __nanosleep(1000);
    unsigned low1 = clock();
    long long t2 = timer(), c1 = clock64(), t3 = timer();
    out[0] = c1 - c0; out[1] = t2 - t1; out[2] = t3 - t0; out[3] = low1 - low0;
}
"""


@pytest.mark.cpu_only
def test_the_clock_has_the_rate_that_is_reported(engine: str) -> None:
    """Between what passed while it was read and what passed around that, whatever else the computer did."""
    out = np.zeros(4, np.int64)
    run(RATE + engine, "rate", 1, 1, out)
    cycles, inner, outer, low = out.tolist()
    rate = Device().properties.clock_rate / 1e6  # cycles a nanosecond
    assert rate > 0.5
    assert inner * rate - 2 <= cycles <= outer * rate + 2
    assert 0 < low <= cycles


def test_variables(engine: str) -> None:
    out = np.zeros(50, np.int32)
    run(SPACES + engine, "variables", 1, 50, out)
    table, values = [10, 20, 30, 40], [3, 5, 7]
    assert out.tolist() == [table[t % 4] + values[t % 3] + 7 + 5 + 1 for t in range(50)]


@pytest.mark.parametrize("block", [1, 33, 64])
def test_local_memory(block: int, engine: str) -> None:
    out = np.zeros(block, np.int32)
    run(SPACES + engine, "local_arrays", 1, block, out, np.int32(100))
    for t in range(block):
        a = [i * t for i in range(40)]
        b = [a[(i * 7 + t) % 40] for i in range(8)]
        s = 0
        for i in range(100):
            s += a[(t * 3 + i) % 40] ^ b[i % 8]
            a[(i + t) % 40] = s & 255
        assert out[t] == s


def test_generic_pointers(engine: str) -> None:
    data = np.arange(1000, 1032, dtype=np.int32)
    out = np.zeros(24, np.int32)
    run(SPACES + engine, "generic", 1, 24, data.copy(), out)
    for t in range(24):
        first = [1000 + 4 * (t % 8), 100 * (t % 8), t][t % 3]
        assert out[t] == 4 * first + 6 + 1000000 * (1 + t % 3) - 7 * t


def test_dynamic_shared_memory(engine: str) -> None:
    out = np.zeros(48, np.int32)
    run(SPACES + engine, "dynamic", 1, 48, out, shared=64 + 48 * 8)
    expected = [(15 - t % 16) ** 2 + (t + 1) % 48 + 5 * (t % 3) + 64 + 48 * 8 for t in range(48)]
    assert out.tolist() == expected


def test_structures_by_value(engine: str) -> None:
    layout = np.dtype([("c", np.int8), ("s", np.int16), ("i", np.int32, 5), ("d", np.float64)], align=True)
    value = np.zeros((), layout)
    value["c"], value["s"], value["i"], value["d"] = -3, 300, [1, 2, 3, 4, 5], 7.9
    out = np.zeros(40, np.int32)
    run(SPACES + engine, "by_value", 1, 40, value[()], out, np.int32(37))
    assert out.tolist() == [297 + 1 + t % 5 + 7 if t < 37 else 0 for t in range(40)]


@pytest.mark.parametrize("block", [(8, 1, 1), (7, 5, 2), (32, 2, 2), (48, 3, 1)])
def test_coordinates(block: tuple[int, int, int], engine: str) -> None:
    x, y, z = block
    grid = (3, 2, 2)
    n = x * y * z
    out = np.zeros((12, n, 6), np.int32)
    run(SPACES + engine, "coordinates", grid, block, out)
    t = np.arange(n)
    assert (out[:, :, 0] == t % x).all() and (out[:, :, 1] == t // x % y).all() and (out[:, :, 2] == t // x // y).all()
    assert (out[:, :, 3] == np.arange(12)[:, None]).all()
    assert (out[:, :, 4] == t % 32).all()
    assert (out[:, :, 5].astype(np.uint32) == (np.uint64(1) << (t % 32).astype(np.uint64)) - np.uint64(1)).all()


INTEGER_OPERATIONS = {
    "Add": lambda old, x: old + x,
    "Sub": lambda old, x: old - x,
    "Min": min,
    "Max": max,
    "And": lambda old, x: old & x,
    "Or": lambda old, x: old | x,
    "Xor": lambda old, x: old ^ x,
    "Exch": lambda old, x: x,
    "Inc": lambda old, x: 0 if old >= x else old + 1,
    "Dec": lambda old, x: x if old == 0 or old > x else old - 1,
}

ATOMIC_TYPES = {"int": "Add Sub Min Max And Or Xor Exch", "unsigned": " ".join(INTEGER_OPERATIONS)} | {
    "unsigned long long": "Add Min Max And Or Xor Exch"
}


def atomics_source(type: str) -> str:
    """Kernels that do every operation on the type, each in five places of its own."""
    operations = ATOMIC_TYPES[type].split()

    def statements(places: str, index: str, result: str = "") -> str:
        target = f"{result}[{{0}} * n + i] = " if result else ""
        return "".join(
            f"{target.format(k)}atomic{name}(&{places}[{k * 5} + {index}], x[i]);\n"
            for k, name in enumerate(operations)
        )

    size = 5 * len(operations)
    return f"""
    extern "C" __global__ void one(const {type} *x, {type} *places, {type} *old, int n) {{
        for (int i = 0; i < n; i++) {{ {statements("places", "i % 5", "old")} }}
    }}
    extern "C" __global__ void in_shared(const {type} *x, {type} *places, int n) {{
        __shared__ {type} box[{size}];
        for (int i = threadIdx.x; i < {size}; i += blockDim.x) box[i] = places[i];
        __syncthreads();
        for (int i = threadIdx.x; i < n; i += blockDim.x) {{ {statements("box", "i % 5")} }}
        __syncthreads();
        for (int i = threadIdx.x; i < {size}; i += blockDim.x) places[i] = box[i];
    }}
    extern "C" __global__ void by_many(const {type} *x, {type} *places, int n) {{
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) {{ {statements("places", "i % 5")} }}
    }}
    """


def apply(operation: str, dtype: Any, places: np.ndarray, values: np.ndarray) -> list[int]:
    """The operation for one value after the other; what was there before each."""
    bits = 8 * np.dtype(dtype).itemsize
    current, before = [int(p) for p in places], []
    for i, x in enumerate(values):
        before.append(current[i % 5])
        result = INTEGER_OPERATIONS[operation](current[i % 5], int(x)) & ((1 << bits) - 1)
        signed = np.issubdtype(dtype, np.signedinteger) and result >> (bits - 1)
        current[i % 5] = result - (1 << bits) if signed else result
    places[:] = np.array(current, dtype)
    return before


@pytest.mark.parametrize("type", ATOMIC_TYPES, ids=lambda x: x.replace(" ", "_"))
def test_atomics_on_integers(type: str, engine: str) -> None:
    dtype, n = TYPES[type], 200
    operations = ATOMIC_TYPES[type].split()
    values, start = random_array(dtype, n, 7), random_array(dtype, (len(operations), 5), 8)
    if type == "unsigned":  # so that inc and dec come round
        values, start = values % 50, start % 20
    source = atomics_source(type) + engine
    expected = start.copy()
    before = [apply(name, dtype, expected[k], values) for k, name in enumerate(operations)]
    places, old = start.copy(), np.zeros((len(operations), n), dtype)
    run(source, "one", 1, 1, values, places, old, np.int32(n))
    assert places.tolist() == expected.tolist() and old.tolist() == before
    commutes = [name not in ("Exch", "Inc", "Dec") for name in operations]  # others depend on the order of threads
    for name, grid, block in (("in_shared", 1, 64), ("by_many", 7, 32)):
        places = start.copy()
        run(source, name, grid, block, values, places, np.int32(n))
        assert places[commutes].tolist() == expected[commutes].tolist(), name


RANKS = r"""
extern "C" __global__ void ranks(const int *x, unsigned *rank, unsigned long long *last, unsigned *bits, int n) {
    __shared__ unsigned counts[8], seen[8];
    __shared__ unsigned long long sums[8];
    int t = threadIdx.x;
    if (t < 8) counts[t] = seen[t] = 0, sums[t] = 1ull << 40;
    __syncthreads();
    rank[t] = atomicAdd(&counts[x[t]], 1u);
    atomicAdd(&sums[x[t]], (unsigned long long)t);
    if (t >= n) atomicOr(&seen[x[t]], 1u << t % 32);  // not all lanes of the first warp
    __syncthreads();
    if (t < 8) last[t] = sums[t], bits[t] = seen[t];
}
"""


@pytest.mark.parametrize("block", [8, 64, 80])
def test_places_in_shared_memory_that_several_lanes_count(block: int, engine: str) -> None:
    x, t = np.random.default_rng(9).integers(0, 8, block, dtype=np.int32), np.arange(block)
    rank, last, bits = np.zeros(block, np.uint32), np.zeros(8, np.uint64), np.zeros(8, np.uint32)
    run(engine + RANKS, "ranks", 1, block, x, rank, last, bits, np.int32(3))
    for key in range(8):
        mine = x == key
        assert sorted(rank[mine]) == list(range(mine.sum()))
        assert last[key] == (1 << 40) + t[mine].sum()
        assert bits[key] == np.bitwise_or.reduce(1 << (t[mine & (t >= 3)] % 32), initial=0)


OTHER_ATOMICS = r"""
#include <cuda_fp16.h>
#include <cuda_bf16.h>
extern "C" __global__ void floats(float *f, double *d, __half *h, __half2 *h2, __nv_bfloat16 *b) {
    __shared__ float s;
    if (threadIdx.x == 0) s = 0.5f;
    __syncthreads();
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(&f[t % 3], 0.25f);
    atomicAdd(&d[t % 3], t * 0.5);
    atomicAdd(&h[t % 2], __float2half(0.5f));
    atomicAdd(h2, __floats2half2_rn(1.0f, 2.0f));
    atomicAdd(b, __float2bfloat16(1.0f));
    atomicAdd(&s, 2.0f);
    __syncthreads();
    if (threadIdx.x == 0) atomicAdd(&f[3], s);
}
extern "C" __global__ void swaps(unsigned short *half_words, int *words, unsigned long long *longs, int *won) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    won[t] = (atomicCAS(&words[t / 4], -1, t) == -1) + 2 * (atomicCAS(&longs[t / 8], ~0ull, 5000000000ull + t) == ~0ull)
           + 4 * (atomicCAS(&half_words[t / 2], (unsigned short)7, (unsigned short)t) == 7);
}
// The double add of old: a loop around compare-and-swap.
extern "C" __global__ void by_hand(unsigned long long *sum) {
    unsigned long long old = *sum, assumed;
    do {
        assumed = old;
        old = atomicCAS(sum, assumed, __double_as_longlong(__longlong_as_double(assumed) + 1.5));
    } while (assumed != old);
}
"""


def test_atomics_on_floats(engine: str) -> None:
    f, d = np.zeros(4, np.float32), np.zeros(3)
    h, h2, b = np.zeros(2, np.float16), np.zeros(2, np.float16), np.zeros(1, np.uint16)
    run(OTHER_ATOMICS + engine, "floats", 4, 48, f, d, h, h2, b)
    assert f.tolist() == [16.0, 16.0, 16.0, 4 * 96.5]
    assert d.tolist() == [sum(t * 0.5 for t in range(r, 192, 3)) for r in range(3)]
    assert h.tolist() == [48.0, 48.0] and h2.tolist() == [192.0, 384.0]
    assert b.view(np.uint16)[0] == np.float32(192.0).view(np.uint32) >> 16


def test_compare_and_swap(engine: str) -> None:
    threads = 64
    half_words = np.full(32, 7, np.uint16)
    words, longs = np.full(16, -1, np.int32), np.full(8, 2**64 - 1, np.uint64)
    won = np.zeros(threads, np.int32)
    run(OTHER_ATOMICS + engine, "swaps", 2, 32, half_words, words, longs, won)
    for t in range(threads):
        assert (won[t] & 1 != 0) == (words[t // 4] == t)
        assert (won[t] & 2 != 0) == (longs[t // 8] == 5000000000 + t)
        assert (won[t] & 4 != 0) == (half_words[t // 2] == t)


@pytest.mark.finds("race", reason="the loop begins with a plain read, as programs have it")
@pytest.mark.parametrize("block", [1, 40, 64])
def test_loop_around_compare_and_swap(block: int, engine: str) -> None:
    total = np.zeros(1)
    run(OTHER_ATOMICS + engine, "by_hand", 5, block, total)
    assert total[0] == 1.5 * 5 * block


PRINTF = r"""
extern "C" __global__ void print(int n, float x, const char *unused) {
    int t = threadIdx.x;
    if (t % 3 == 0) {
        int count = printf("t=%d %5.2f|%-4u|%08llx|%c|%s%%|%*d|%lld\n", t, x * t, n + t, 255ull + t, 'a' + t,
                           "text", 4, -t, -1ll << 40);
        if (count != 9) printf("count %d\n", count);
    }
    if (t == 1) printf("no arguments\n");
}
"""


@pytest.mark.parametrize("width", ["warp", "scalar"])
def test_printf(width: str, run_python: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = run_python(f"""
import numpy as np
from tests.cpu.engine.kernels import run
run({PRINTF!r}, "print", 1, {32 if width == "warp" else 1}, np.int32(7), np.float32(1.5), np.uint64(0))
""")
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if line]
    expected = [
        f"t={t} {1.5 * t:5.2f}|{7 + t:<4}|{255 + t:08x}|{chr(ord('a') + t)}|text%|{-t:4}|{-1 << 40}"
        for t in range(0, 32 if width == "warp" else 1, 3)
    ]
    assert sorted(lines) == sorted([*expected, "no arguments"] if width == "warp" else expected)


FORMS = {
    'printf("%.*f|%.*f", -1, 1.5, 2, 1.5)': "1.500000|1.50",  # a negative precision is none
    'printf("%*d|%-*d|%0*d", -4, 5, 4, 5, 4, 5)': "5   |5   |0005",
    'printf("%-+-5d|% 05d|%#x|%+.3d", 5, 5, 255, 5)': "+5   | 0005|0xff|+005",
    'printf("%5s|%-5s|%.2s|%*.*s|", "abc", "abc", "abc", 4, 1, "abc")': "  abc|abc  |ab|   a|",
    'printf("%5c|%.0d|%5.%|%", 65, 0)': "    A||%|",
}


@pytest.mark.cpu_only  # a GPU's driver formats by itself
def test_printf_forms(run_python: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    calls = " ".join(f'{call}; printf("\\n");' for call in FORMS)
    source = f'extern "C" __global__ void print() {{ {calls} }}'
    done = run_python(f"from tests.cpu.engine.kernels import run\nrun({source!r}, 'print', 1, 1)")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == list(FORMS.values())


# What C leaves undefined (a second star, a flag behind a width) is no conversion. Nothing is written beyond its place.
ODD_FORMATS = {
    "a flag behind a width": ("%-512-512d|", "5"),
    "four stars": ("%****d|", "-2000000000, -2000000000, -2000000000, -2000000000, 5"),
    "five stars": ("%*****d|", "-2000000000, -2000000000, -2000000000, -2000000000, -2000000000, 5"),
    "very many stars": ("%" + 1500 * "*" + "d|", 1500 * "-2000000000, " + "5"),
    "flags and stars": ("%" + 30 * "0" + 9 * "*" + "lld|", 9 * "-1234567890, " + "5ll"),
    "flags": ("%" + 200 * "-" + "d|", "5"),
}


@pytest.mark.cpu_only  # a GPU's driver formats by itself
def test_printf_of_odd_formats(run_python: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    calls = " ".join(f'printf("{form}", {arguments}); printf("and on\\n");' for form, arguments in ODD_FORMATS.values())
    source = f'extern "C" __global__ void print() {{ {calls} }}'
    done = run_python(f"from tests.cpu.engine.kernels import run\nrun({source!r}, 'print', 1, 1)")
    assert done.returncode == 0, done.stderr
    *printed, rest = done.stdout.split("and on\n")
    assert len(printed) == len(ODD_FORMATS) and not rest
    assert {odd: text for odd, text in zip(ODD_FORMATS, printed, strict=True) if len(text) >= 2000} == {}


PATTERNS = r"""
// Atomics and plain accesses of the same places without a barrier between them.
extern "C" __global__ void mixed(int *out) {
    __shared__ int box[64];
    int t = threadIdx.x;
    box[t] = 3;
    atomicAdd(&box[t], t);
    int v = box[t];
    atomicMax(&box[t], 40);
    out[t] = v * 100 + box[t];
}
__device__ __noinline__ int exchange(int *p, int v) { int old = *p; *p = v; return old; }
// The same place of shared memory by a shared and by a generic address.
extern "C" __global__ void two_names(int *out, int which) {
    __shared__ int box[64];
    int t = threadIdx.x;
    box[t] = t;
    __syncwarp();
    int *p = which ? &box[5] : out;
    int old = t == 0 ? exchange(p, 1000) : 0;
    __syncwarp();
    out[t] = box[5] + old;
}
// Rows that reach over the ends of shared memory where no thread is.
extern "C" __global__ void neighbours(int *out, int n) {
    extern __shared__ int box[];
    int t = threadIdx.x;
    box[t] = t + 1;
    __syncthreads();
    int v = 0;
    if (t > 0) v += box[t - 1];
    if (t < n - 1) v += box[t + 1] * 1000;
    __syncthreads();
    if (t > 1) box[t - 2] = v;
    __syncthreads();
    out[t] = box[t];
}
extern "C" __global__ void strides(const int *in, int *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[4 * n - 1 - 4 * i] = in[3 * i + 1] + in[3 * (n - 1 - i)];
        ((short *)out)[8 * i + 1] = (short)in[3 * i + 2];
    }
}
"""


def test_atomics_between_plain_accesses(engine: str) -> None:
    out = np.zeros(64, np.int32)
    run(PATTERNS + engine, "mixed", 1, 64, out)
    assert out.tolist() == [(3 + t) * 100 + max(3 + t, 40) for t in range(64)]


def test_two_names_of_shared_memory() -> None:
    out = np.zeros(32, np.int32)
    run(PATTERNS, "two_names", 1, 32, out, np.int32(1))
    assert out.tolist() == [1005, *[1000] * 31]


@pytest.mark.parametrize("n", [1, 31, 32, 33, 64, 100])
def test_rows_over_the_ends_of_shared_memory(n: int, engine: str) -> None:
    out = np.zeros(n, np.int32)
    run(PATTERNS + engine, "neighbours", 1, n, out, np.int32(n), shared=4 * n)
    v = [(t if t > 0 else 0) + ((t + 2) * 1000 if t < n - 1 else 0) for t in range(n)]
    box = [t + 1 for t in range(n)]
    box[: max(n - 2, 0)] = v[2:]
    assert out.tolist() == box


@pytest.mark.parametrize("block", [32, 50, 128])
def test_regular_distances(block: int, engine: str) -> None:
    n = 90
    values = random_array(np.int32, 3 * n) // 4
    out = np.zeros(4 * n, np.int32)
    run(PATTERNS + engine, "strides", -(-n // block), block, values, out, np.int32(n))
    expected = np.zeros(4 * n, np.int32)
    expected[::-1][::4] = values[1::3] + values[::3][::-1]
    expected.view(np.int16)[1::8] = values[2::3].astype(np.int16)
    assert (out == expected).all()
