"""Accesses of shared memory whose lanes are at known distances: checked together, with common loads."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.cpu.engine.faulting import explanations
from tests.cpu.engine.kernels import run

BUTTERFLIES = r"""
#define STEP(M) { \
    int at = t / M * 2 * M + t % M; \
    T a = box[at], b = box[at + M]; \
    box[at] = a + 2 * b; box[at + M] = a - b; \
    __syncthreads(); \
}
template <typename T, int N>  // the threads that run have places, those that a warp lacks have none
__device__ void all_steps(const T *in, T *out) {
    __shared__ T box[2 * N];
    int t = threadIdx.x;
    box[t] = in[t]; box[t + N] = in[t + N];
    __syncthreads();
    STEP(1) STEP(2) STEP(4) STEP(8) STEP(16) STEP(2) STEP(1)
    out[t] = box[t]; out[t + N] = box[t + N];
}
#define STEPS(T, N) extern "C" __global__ void steps_##T##_##N(const T *in, T *out) { all_steps<T, N>(in, out); }
STEPS(float, 64) STEPS(double, 64) STEPS(short, 64) STEPS(float, 32) STEPS(float, 96)

// Some threads only, and a value that another access has changed between two loads of a group.
extern "C" __global__ void some(const int *in, int *out, int from, int zero) {
    __shared__ int box[96];
    int t = threadIdx.x, at = t / 4 * 8 + t % 4;
    for (int i = t; i < 96; i += 48) box[i] = in[i];
    __syncthreads();
    if (t >= from && t < 44) {
        int a = box[at], b = box[at + 4];
        box[at ^ zero] = 1000 + t;
        a += box[at] * 3;
        box[at + 4] = a + b;
        out[t] = box[at] + box[at + 4];
    }
    __syncthreads();
    out[48 + t] = box[2 * t] - 5 * box[2 * t + 1];
}
"""


def _steps(values: np.ndarray, n: int) -> np.ndarray:
    box, t = values.copy(), np.arange(n)
    for m in (1, 2, 4, 8, 16, 2, 1):
        at = t // m * 2 * m + t % m
        a, b = box[at], box[at + m]
        box[at], box[at + m] = a + 2 * b, a - b
    return box


@pytest.mark.parametrize(("type", "n"), [("float", 64), ("double", 64), ("short", 64), ("float", 32), ("float", 96)])
def test_butterflies(type: str, n: int, engine: str) -> None:
    dtype = {"float": np.float32, "double": np.float64, "short": np.int16}[type]
    values = (np.arange(2 * n) % 7 - 3).astype(dtype)
    out = np.zeros_like(values)
    run(engine + BUTTERFLIES, f"steps_{type}_{n}", 1, n, values, out)
    assert (out == _steps(values, n)).all()


@pytest.mark.parametrize("first", [0, 1, 31, 40])
def test_some_threads(first: int, engine: str) -> None:
    values, out = np.arange(100, 196, dtype=np.int32), np.zeros(96, np.int32)
    run(engine + BUTTERFLIES, "some", 1, 48, values, out, np.int32(first), np.int32(0))
    t = np.arange(first, 44)
    at, box, wanted = t // 4 * 8 + t % 4, values.copy(), np.zeros(96, np.int32)
    a, b = box[at], box[at + 4]
    box[at] = 1000 + t
    box[at + 4] = a + 3 * box[at] + b
    wanted[t] = box[at] + box[at + 4]
    wanted[48:] = box[::2] - 5 * box[1::2]
    assert (out == wanted).all()


OUTSIDE = r"""
extern "C" __global__ void load(int *out) {
    __shared__ int box[60];
    int t = threadIdx.x, at = t / 4 * 8 + t % 4;
    box[t] = t;
    __syncthreads();
    int a = box[at],
        b = box[at + 4]; // <load>
    out[t] = a + b;
}
extern "C" __global__ void store(int *out) {
    __shared__ int box[60];
    int t = threadIdx.x, at = t / 4 * 8 + t % 4;
    box[at] = 1;
    box[at + 4] = 2; // <store>
    __syncthreads();
    out[t] = box[t];
}
extern "C" __global__ void fits(int *out) { // 28 threads stay inside, those that the warp lacks do not matter
    __shared__ int box[56];
    int t = threadIdx.x, at = t / 4 * 8 + t % 4;
    box[at] = t;
    box[at + 4] = -t;
    __syncthreads();
    out[t] = box[at + 4] + 2 * box[at];
}
"""


@pytest.mark.cpu_only
def test_outside() -> None:
    found = explanations(
        OUTSIDE, {"load": {}, "store": {}, "fits": {"grid": 1, "block": 28}}, buffers=[128], numbers=[]
    )
    lines = {m[1]: n for n, line in enumerate(OUTSIDE.splitlines(), 1) for m in re.finditer(r"// <(\w+)>", line)}
    for name, kind in (("load", "read"), ("store", "write")):
        assert "CUDA_ERROR_ILLEGAL_ADDRESS" in found[name]
        assert f"out-of-bounds {kind} of 4 bytes in shared memory" in found[name]
        assert "in thread (28, 0, 0)" in found[name]
        assert re.search(rf":{lines[name]} in {name}", found[name]), found[name]
    assert found["fits"] == "no error"
