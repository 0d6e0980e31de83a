"""Loads of one block at constant distances: one test for all, and what is done together when it fails."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.cpu.engine.faulting import explanations
from tests.cpu.engine.kernels import run

SUMS = r"""
#define SUM(T) extern "C" __global__ void sum_##T(const T *in, T *out, int n) { \
    int i = blockIdx.x * blockDim.x + threadIdx.x; \
    if (i < n) out[i] = in[i] + 2 * in[i + 1] + 3 * in[i + 2] + 4 * in[i + 3] + 5 * in[i + 4]; \
}
SUM(float) SUM(double) SUM(short) SUM(char)

// The lanes of a warp go once around 65536.
extern "C" __global__ void around(const int *in, int *out, int from) {
    unsigned short i = from + threadIdx.x;
    out[threadIdx.x] = in[i] - 2 * in[i + 1] + 3 * in[i + 2] - 4 * in[i + 3];
}

// Each lane begins where its own loop ended: in a row, or not.
extern "C" __global__ void counted(const int *lengths, const float *in, float *out) {
    __shared__ float box[160];
    int t = threadIdx.x, at = 0;
    for (int i = 0; i < 160; i += blockDim.x) if (i + t < 160) box[i + t] = 1000 + i + t;
    __syncthreads();
    for (int i = 0; i < lengths[t]; ++i) at += i & 1 ? 3 : 1;
    out[4 * t] = in[at] + 2 * in[at + 1] + 3 * in[at + 2];
    out[4 * t + 1] = box[at] + 2 * box[at + 1] + 3 * box[at + 2];
    if (t % 3) out[4 * t + 2] = in[at + 2] - in[at];
    out[4 * t + 3] = in[at + 1];
}

// All lanes load the same, from one array and the other in turns.
extern "C" __global__ void same(const int *first, const int *second, int *out, int count) {
    for (int k = 0; k < count; ++k) {
        const int *a = k % 3 ? first : second;
        out[k * blockDim.x + threadIdx.x] = a[0] + 2 * a[1] + 3 * a[2] + 4 * a[7] + threadIdx.x;
    }
}

// A store between the loads.
extern "C" __global__ void between(int *data, int *out) {
    int t = threadIdx.x;
    int a = data[t + 1];
    data[t + 2] = a + 100;
    out[t] = a + 1000 * data[t + 2] + data[t + 1];
}
"""


@pytest.mark.parametrize("n", [96, 97, 70, 33, 5, 1])
@pytest.mark.parametrize("type", ["float", "double", "short", "char"])
def test_to_the_end_of_the_array(type: str, n: int, engine: str) -> None:
    dtype = {"float": np.float32, "double": np.float64, "short": np.int16, "char": np.int8}[type]
    values = np.random.default_rng(n).integers(0, 8, n + 4).astype(dtype)
    out = np.zeros(n, dtype)
    run(SUMS + engine, f"sum_{type}", 4, 32, values, out, np.int32(n))
    expected = sum((k + 1) * values[k : k + n].astype(int) for k in range(5))
    assert out.tolist() == expected.astype(dtype).tolist()


@pytest.mark.parametrize("start", [0, 65472, 65510, 65535])
def test_lanes_that_wrap(start: int, engine: str) -> None:
    values = np.random.default_rng(2).integers(0, 1000, 65536 + 3).astype(np.int32)
    out = np.zeros(64, np.int32)
    run(SUMS + engine, "around", 1, 64, values, out, np.int32(start))
    at = (start + np.arange(64)) % 65536
    assert out.tolist() == (values[at] - 2 * values[at + 1] + 3 * values[at + 2] - 4 * values[at + 3]).tolist()


@pytest.mark.parametrize("block", [32, 40, 64])
@pytest.mark.parametrize("order", ["row", "reverse", "random"])
def test_lanes_that_may_be_in_a_row(order: str, block: int, engine: str) -> None:
    lengths = np.arange(block, dtype=np.int32)
    if order == "reverse":
        lengths = lengths[::-1].copy()
    elif order == "random":
        lengths = np.random.default_rng(3).permutation(lengths)
    at = np.array([sum(3 if i & 1 else 1 for i in range(n)) for n in lengths])
    values = np.random.default_rng(4).integers(0, 9, at.max() + 3).astype(np.float32)
    out = np.zeros((block, 4), np.float32)
    run(SUMS + engine, "counted", 1, block, lengths, values, out)
    box = 1000 + np.arange(160)
    expected = np.stack(
        [
            values[at] + 2 * values[at + 1] + 3 * values[at + 2],
            box[at] + 2 * box[at + 1] + 3 * box[at + 2],
            np.where(np.arange(block) % 3 > 0, values[at + 2] - values[at], 0),
            values[at + 1],
        ],
        axis=1,
    )
    assert out.tolist() == expected.tolist()


def test_one_place_for_all_lanes(engine: str) -> None:
    first, second, out = np.arange(8, dtype=np.int32), np.arange(100, 150, dtype=np.int32), np.zeros((7, 40), np.int32)
    run(SUMS + engine, "same", 1, 40, first, second, out, np.int32(7))
    sums = [int(a[0] + 2 * a[1] + 3 * a[2] + 4 * a[7]) for a in (first, second)]
    assert out.tolist() == [[sums[k % 3 == 0] + t for t in range(40)] for k in range(7)]


def test_a_store_between_loads(engine: str) -> None:
    data, out = np.arange(67, dtype=np.int32), np.zeros(64, np.int32)
    before = data.copy()
    run(SUMS + engine, "between", 1, 1, data, out)
    assert out[0] == before[1] + 1000 * (before[1] + 100) + before[1]
    assert data[2] == before[1] + 100


FAULTS = r"""
extern "C" __global__ void row_of_three(int *data, int *other, int n) {
    int i = threadIdx.x + 31;
    other[threadIdx.x] =
        data[i] +
        data[i + 1] +
        data[i + 2];  // LINE row_of_three
}
extern "C" __global__ void same_place(int *data, int *other, int n) {
    int *at = data + n - 251;
    other[threadIdx.x] =
        at[61] +
        at[62] +
        at[63];  // LINE same_place
}
extern "C" __global__ void any_place(int *data, int *other, int n) {
    int i = 0;
    for (int k = 0; k < threadIdx.x; ++k) i += k & 1 ? 3 : 1;
    other[threadIdx.x] =
        data[i] +
        data[i + 1] +
        data[i + 3];  // LINE any_place
}
"""


@pytest.mark.unchecked(reason="sources of checked programs get no file, which the text names")
@pytest.mark.cpu_only
@pytest.mark.parametrize("name", ["row_of_three", "same_place", "any_place"])
def test_fault(name: str, faults: dict[str, str]) -> None:
    line = next(n for n, text in enumerate(FAULTS.splitlines(), 1) if text.endswith(f"// LINE {name}"))
    assert re.search(rf"\.cu:{line} in {name}", faults[name]), faults[name]


@pytest.fixture(scope="module")
def faults() -> dict[str, str]:
    return explanations(FAULTS, {"row_of_three": {}, "same_place": {}, "any_place": {}})
