"""Lanes that access scattered places: checked vectors of addresses, and what to do when a check of them fails."""

from __future__ import annotations

import re

import numpy as np
import pytest

from cupola import Device
from tests.cpu.engine.faulting import explanations
from tests.cpu.engine.kernels import copy_to_device, run

WALK = r"""
// Each thread walks a row of its own, some none at all, as in a sparse matrix.
template <typename T> __device__ T walk(const int *starts, const int *places, const T *values, int row) {
    T total = 0;
    for (int i = starts[row]; i < starts[row + 1]; ++i) total += values[places[i]];
    return total;
}
#define WALK(T) extern "C" __global__ void walk_##T(const int *starts, const int *places, const T *values, T *sums) { \
    int row = blockIdx.x * blockDim.x + threadIdx.x; \
    sums[row] = walk(starts, places, values, row); \
}
WALK(int) WALK(double) WALK(short) WALK(char)

#define TURN(T) extern "C" __global__ void turn_##T(const int *places, const T *from, T *to) { \
    extern __shared__ T box_##T[]; \
    int t = threadIdx.x; \
    box_##T[places[t]] = from[places[t]]; \
    __syncthreads(); \
    if (places[t] % 3) to[places[t]] = box_##T[places[places[t]]]; \
}
TURN(float) TURN(double) TURN(float2) TURN(float4) TURN(short)

extern "C" __global__ void either(const int *places, int *first, int *second, int *out) {
    __shared__ int box[64];
    int t = threadIdx.x;
    box[t] = 1000 + t;
    __syncthreads();
    int *from = places[t] % 3 == 0 ? box : places[t] % 3 == 1 ? first : second;
    out[t] = from[places[t]];
    if (t % 5) from[places[t]] = -t;
    __syncthreads();
    out[64 + t] = box[t];
}
"""


@pytest.mark.parametrize("block", [32, 50, 8])
@pytest.mark.parametrize("type", ["int", "double", "short", "char"])
def test_rows_of_their_own(type: str, block: int, engine: str) -> None:
    dtype = {"int": np.int32, "double": np.float64, "short": np.int16, "char": np.int8}[type]
    random = np.random.default_rng(0)
    lengths = random.integers(0, 9, 200) * (random.random(200) < 0.8)
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    places = random.integers(0, 77, starts[-1]).astype(np.int32)
    values, sums = random.integers(0, 9, 77).astype(dtype), np.zeros(200, dtype)
    run(WALK + engine, f"walk_{type}", 200 // block, block, starts, places, values, sums)
    rows = 200 // block * block
    assert sums[:rows].tolist() == [
        values[places[a:b]].sum() for a, b in zip(starts, starts[1 : rows + 1], strict=False)
    ]


@pytest.mark.parametrize("type", ["float", "double", "float2", "float4", "short"])
def test_places_in_shared_memory(type: str, engine: str) -> None:
    element = {"double": np.float64, "short": np.int16}.get(type, np.float32)
    count = int(type[-1]) if type[-1] in "24" else 1
    places = np.random.default_rng(1).permutation(64).astype(np.int32)
    values = np.arange(64 * count).astype(element).reshape(64, count)
    out = np.zeros_like(values)
    run(WALK + engine, f"turn_{type}", 1, 64, places, values, out, shared=values.nbytes)
    expected = np.zeros_like(values)
    stored = places[places % 3 != 0]
    expected[stored] = values[places[stored]]
    assert (out == expected).all()


def test_lanes_in_different_allocations(engine: str) -> None:
    places = np.random.default_rng(2).permutation(64).astype(np.int32)
    sources = [1000 + np.arange(64), 2000 + np.arange(64), 3000 + np.arange(64)]
    first, second = (source.astype(np.int32) for source in sources[1:])
    out = np.zeros(128, np.int32)
    run(WALK + engine, "either", 1, 64, places, first, second, out)
    assert out[:64].tolist() == [sources[p % 3][p] for p in places]
    for t, p in enumerate(places):
        if t % 5:
            sources[p % 3][p] = -t
    assert (out[64:] == sources[0]).all() and (first == sources[1]).all() and (second == sources[2]).all()


RUNS = r"""
#define SUM(T) extern "C" __global__ void sum_##T(const int *places, const T *first, const T *second, T *out, int n) { \
    __shared__ T box[256]; \
    int t = threadIdx.x; \
    for (int i = t; i < 256; i += blockDim.x) box[i] = first[i]; \
    __syncthreads(); \
    if (t < n) { \
        const T *p = (t % 3 ? first : second) + places[t]; \
        const T *q = box + places[t]; \
        out[t] = p[0] + 2 * p[1] + 3 * p[2] + 4 * p[3] - p[5] + q[7] + 5 * q[6] + 6 * q[5] + 7 * q[4]; \
    } \
}
SUM(int) SUM(float) SUM(short) SUM(double)
"""


@pytest.mark.parametrize("n", [64, 45])
@pytest.mark.parametrize("type", ["int", "float", "short", "double"])
def test_each_lane_loads_neighbouring_places(type: str, n: int, engine: str) -> None:
    dtype = {"int": np.int32, "float": np.float32, "short": np.int16, "double": np.float64}[type]
    random = np.random.default_rng(6)
    places = random.integers(0, 248, 64).astype(np.int32)
    first, second = random.integers(0, 99, (2, 256)).astype(dtype)
    out = np.zeros(64, dtype)
    run(RUNS + engine, f"sum_{type}", 1, 64, places, first, second, out, np.int32(n))
    for t in range(64):
        p, q = (first if t % 3 else second)[places[t] :].astype(int), first[places[t] :].astype(int)
        value = p[:4] @ [1, 2, 3, 4] - p[5] + q[4:8] @ [7, 6, 5, 1] if t < n else 0
        assert out[t] == value


DISTANCES = r"""
struct Three { float x, y, z; };
#define COPY(name, T, place) extern "C" __global__ void name(const T *from, T *to, int n) { \
    extern __shared__ T box_##name[]; \
    int t = threadIdx.x, i = place; \
    if (t < n) box_##name[i] = from[i]; \
    __syncthreads(); \
    if (t < n) to[i] = box_##name[i]; \
}
COPY(pairs, float, 2 * t + 1)
COPY(backwards, int, 3 * (blockDim.x - 1 - t))
COPY(triples, Three, t)
COPY(vectors, float4, 3 * t)
COPY(bytes, unsigned char, 2 * t)
COPY(halves, short, 5 * t)
COPY(butterflies, float, t / 4 * 8 + t % 4)
COPY(doubles, double, t / 8 * 16 + 8 + t % 8)
COPY(columns, int, t % 8 * 8 + t / 8)
COPY(far, float, t % 16 * 100 + t / 16)
COPY(same, int, t / 8)
COPY(bits, int, __brev(t) >> 26)
"""
SIZES = {"pairs": 4, "triples": 12, "vectors": 16, "bytes": 1, "halves": 2, "doubles": 8}


@pytest.mark.parametrize(
    ("name", "block", "n"),
    [(name, 64, 64) for name in re.findall(r"(?m)^COPY\((\w+), ", DISTANCES)]
    + [("pairs", 64, 50), ("butterflies", 64, 50), ("pairs", 48, 48), ("butterflies", 48, 48), ("columns", 16, 16)],
)
def test_lanes_at_known_distances(name: str, block: int, n: int, engine: str) -> None:
    t = np.arange(block)
    place = np.array(
        {
            "pairs": 2 * t + 1,
            "backwards": 3 * (block - 1 - t),
            "triples": t,
            "vectors": 3 * t,
            "bytes": 2 * t,
            "halves": 5 * t,
            "butterflies": t // 4 * 8 + t % 4,
            "doubles": t // 8 * 16 + 8 + t % 8,
            "columns": t % 8 * 8 + t // 8,
            "far": t % 16 * 100 + t // 16,
            "same": t // 8,
            "bits": [int(f"{i:06b}"[::-1], 2) for i in t],
        }[name]
    )
    size = SIZES.get(name, 4)
    # What lies between is other memory, which must stay, and nothing lies behind.
    values = np.random.default_rng(4).integers(0, 256, (place.max() + 1, size)).astype(np.uint8)
    out = np.full_like(values, 77)
    run(DISTANCES + engine, name, 1, block, values, out, np.int32(n), shared=values.nbytes + 16 & -16)
    expected = np.full_like(values, 77)
    expected[place[:n]] = values[place[:n]]
    assert (out == expected).all()


FAULTS = r"""
// The places that lanes `a` and `b` access are wrong.
#define PLACE(a, at_a, b, at_b) i == a ? at_a : i == b ? at_b : (i * 7 + n) % 32 * 4
#define KERNEL(name, ...) extern "C" __global__ void name(int *data, int *other, int n) { \
    __shared__ int box[64]; \
    int i = threadIdx.x; \
    box[i] = box[i + 32] = 0; \
    __syncthreads(); \
    __VA_ARGS__ }
#define READS(name, ...) KERNEL(name, \
    for (int k = 0; k < 1 + i % 3; ++k) other[i] += *(int *)((char *)data + (PLACE(__VA_ARGS__))); )
#define WRITES(name, ...) KERNEL(name, if (i % 2) *(int *)((char *)data + (PLACE(__VA_ARGS__))) = n; )
#define SHARES(name, ...) KERNEL(name, *(int *)((char *)box + (PLACE(__VA_ARGS__))) = n; other[i] = box[i]; )
#define RUNS(name, ...) KERNEL(name, \
    box[i] = PLACE(__VA_ARGS__); \
    __syncthreads(); \
    const int *p = (const int *)((const char *)data + box[i]); \
    other[i] = p[0] + p[1] * 2 + p[2] * 3 + p[3] * 4; )
"""
CASES = {  # lane a, its place, lane b, its place; who is named, and how
    "READS": [
        (9, 1 << 20, 11, 1, 9, "out-of-bounds read of 4 bytes in global memory"),
        (9, 6, 11, 1 << 20, 9, "misaligned read of 4 bytes in global memory"),
        (31, -4, 40, 0, 31, "4 bytes before a 256-byte allocation"),
    ],
    "WRITES": [
        (8, 1 << 20, 13, 256, 13, "just past the end of a 256-byte allocation"),
        (13, 255, 15, 256, 13, "misaligned write of 4 bytes"),
    ],
    # Each lane loads four places; the first load at which a lane is wrong comes first.
    "RUNS": [
        (3, 248, 5, 252, 5, "just past the end of a 256-byte allocation"),
        (3, 248, 5, 0, 3, "just past the end of a 256-byte allocation"),
        (3, 0, 5, -4, 5, "4 bytes before a 256-byte allocation"),
        (3, 2, 5, -4, 3, "misaligned read of 4 bytes in global memory"),
    ],
    "SHARES": [
        (3, 256, 5, 2, 3, "out-of-bounds write of 4 bytes in shared memory"),
        (3, 254, 5, 256, 3, "misaligned write of 4 bytes in shared memory"),
    ],
}


@pytest.fixture(scope="module")
def faults() -> dict[str, str]:
    source = FAULTS
    for macro, cases in CASES.items():
        for number, (a, at_a, b, at_b, *_) in enumerate(cases):
            source += f"{macro}({macro}_{number}, {a}, {at_a}, {b}, {at_b})\n"
    return explanations(source, {f"{macro}_{i}": {} for macro, cases in CASES.items() for i in range(len(cases))})


@pytest.mark.cpu_only
@pytest.mark.parametrize(
    "kernel", [f"{macro}_{number}" for macro, cases in CASES.items() for number in range(len(cases))]
)
def test_the_first_lane_at_fault_is_named(kernel: str, faults: dict[str, str]) -> None:
    macro, _, number = kernel.partition("_")
    *_, thread, text = CASES[macro][int(number)]
    assert text in faults[kernel] and f"in thread ({thread}, 0, 0)" in faults[kernel], faults[kernel]


WALKS = r"""
extern "C" __global__ void multiply(const int *starts, const int *columns, const double *values, const double *x,
                                    double *y, int n) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= n) return;
    double total = 0;
    for (int i = starts[row]; i < starts[row + 1]; ++i) total += values[i] * x[columns[i]];
    y[row] = total;
}
"""


@pytest.mark.parametrize("longest", [1, 3, 17])
def test_each_thread_walks_by_itself(longest: int, engine: str) -> None:
    """A sparse matrix with a row for each thread; the last row ends where the memory does."""
    random = np.random.default_rng(longest)
    starts = np.concatenate([[0], np.cumsum(random.integers(0, longest + 1, 150))]).astype(np.int32)
    columns = random.integers(0, 150, starts[-1]).astype(np.int32)
    values, x, y = (
        random.integers(-9, 9, starts[-1]).astype(float),
        random.integers(-9, 9, 150).astype(float),
        np.ones(160),
    )
    run(WALKS + engine, "multiply", 5, 32, starts, columns, values, x, y, np.int32(150))
    rows = [values[a:b] @ x[columns[a:b]] for a, b in zip(starts[:-1], starts[1:], strict=True)]
    assert y.tolist() == [*rows, *[1] * 10]


WRONG_WALKS = r"""
#define WALK(name, stop, found) extern "C" __global__ void name(int *data, int *other, int n) { \
    int i = threadIdx.x, total = 0; \
    data[2 * i] = 2 * i; data[2 * i + 1] = stop; other[2 * i] = found; \
    asm volatile("" ::: "memory"); \
    for (int j = data[2 * i], end = data[2 * i + 1]; j < end; ++j) total += data[other[j]]; \
    other[2 * i + 1] = total; }
WALK(too_far, i == 9 || i == 12 ? 67 + i : 2 * i + 2, 0)
WALK(wrong_place, 2 * i + 2, i == 11 || i == 20 ? -i : 0)
"""


@pytest.mark.cpu_only
def test_the_first_walk_at_fault_is_named() -> None:
    texts = explanations(WRONG_WALKS, dict.fromkeys(["too_far", "wrong_place"], {}))
    assert "in thread (9, 0, 0)" in texts["too_far"] and "past the end of a 256-byte allocation" in texts["too_far"]
    assert "in thread (11, 0, 0)" in texts["wrong_place"] and "44 bytes before a 256-byte" in texts["wrong_place"]
    assert all("out-of-bounds read of 4 bytes in global memory" in text for text in texts.values())


LATE_WALKS = r"""
// The first blocks find everything in its place, so that the last one is checked by what they have left behind.
#define WALK(name, wrong) extern "C" __global__ void name(int *data, int *other, int n) { \
    int i = threadIdx.x, total = 0; \
    for (int j = 2 * i % 62, end = j + 2; j < end; ++j) \
        total += data[other[j] + (blockIdx.x == gridDim.x - 1 && i == 5 ? wrong : 63)]; \
    if (total) other[0] = 0; }
WALK(past, n) WALK(before, -1) WALK(far_away, 0x7fffffff) WALK(far_back, -0x7fffffff)
"""


@pytest.mark.cpu_only
def test_a_walk_that_goes_wrong_late_is_named() -> None:
    names = ["past", "before", "far_away", "far_back"]
    texts = explanations(LATE_WALKS, {name: {"grid": 40} for name in names}, numbers=(64,))
    assert all("in thread (5, 0, 0) of block (39, 0, 0)" in text for text in texts.values()), texts
    assert all("out-of-bounds read of 4 bytes in global memory" in text for text in texts.values())
    assert "just past the end of a 256-byte allocation" in texts["past"]
    assert "4 bytes before a 256-byte allocation" in texts["before"]


def test_walks_from_the_middle_of_an_allocation(engine: str) -> None:
    """Indices of both signs, and none that is more than what is behind the pointer."""
    random = np.random.default_rng(11)
    starts, places = 3 * np.arange(161, dtype=np.int32), random.integers(-50, 78, 480).astype(np.int32)
    values, sums = np.arange(128, dtype=np.int32), np.zeros(160, np.int32)
    source = (
        WALK
        + engine
        + r"""
    extern "C" __global__ void middle(const int *starts, const int *places, unsigned long long values, int *sums) {
        int row = blockIdx.x * blockDim.x + threadIdx.x;
        sums[row] = walk(starts, places, (const int *)values, row);
    }"""
    )
    device = Device(0)
    device.set_current()
    stream = device.create_stream()
    buffer = device.allocate(values.nbytes, stream=stream)
    copy_to_device(buffer, values, stream)
    stream.sync()
    address = np.uint64(int(buffer.handle) + 50 * values.itemsize)
    run(source, "middle", 5, 32, starts, places, address, sums)
    assert sums.tolist() == values[places + 50].reshape(160, 3).sum(axis=1).tolist()
    buffer.close()
    stream.close()
