"""Loops from `threadIdx.x` to a constant, of which it depends on the size of the block how many trips they make."""

from __future__ import annotations

import numpy as np
import pytest

from .kernels import run

SOURCE = r"""
template <int N, int STEP>
__device__ int visit(const int *in, int *seen) {
    int total = 0;
    for (int i = threadIdx.x; i < N; i += STEP) {
        total = 3 * total + in[i];
        seen[__brev(i) >> 22] = i;
        seen[1024 + i] = total;
    }
    return total;
}

#define LOOP(N, STEP) extern "C" __global__ void loop_##N##_##STEP(const int *in, int *seen, int *out) { \
    out[threadIdx.x] = visit<N, STEP>(in, seen); \
    __syncthreads(); \
    if (threadIdx.x < STEP) out[threadIdx.x] += seen[1024 + threadIdx.x] + threadIdx.x / 8 * 16 + threadIdx.x % 8; \
    if (threadIdx.x > 700) return; \
    __syncthreads(); \
    out[threadIdx.x] += 7; \
}
LOOP(1024, 512) LOOP(1024, 256) LOOP(768, 256) LOOP(100, 32) LOOP(33, 64) LOOP(1000, 100)
"""


def _expected(values: np.ndarray, n: int, step: int, block: int) -> tuple[np.ndarray, np.ndarray]:
    """What the kernel leaves where no two threads write to one place: `seen`, and `out`."""
    seen, out = np.full(2048, -1, np.int32), np.zeros(block, np.int32)
    for t in range(block):
        total = 0
        for i in range(t, n, step):
            total = 3 * total + int(values[i])
            total = (total + 2**31) % 2**32 - 2**31
            seen[int(f"{i:010b}"[::-1], 2)] = i
            seen[1024 + i] = total
        out[t] = total
    for t in range(block):
        if t < step:
            out[t] += seen[1024 + t] + t // 8 * 16 + t % 8
        out[t] += 7 * (t <= 700)
    return seen, out


@pytest.mark.parametrize(("n", "step"), [(1024, 512), (1024, 256), (768, 256), (100, 32), (33, 64), (1000, 100)])
def test_loops_to_a_constant(n: int, step: int, engine: str) -> None:
    values = np.arange(1, 1025, dtype=np.int32) ** 2
    for block in {step, step // 2, step - 1, step // 2 + 1}:  # no larger than the step, so that places are one thread's
        seen, out = np.full(2048, -1, np.int32), np.zeros(block, np.int32)
        run(engine + SOURCE, f"loop_{n}_{step}", 1, block, values, seen, out)
        wanted_seen, wanted = _expected(values, n, step, block)
        assert (seen == wanted_seen).all()
        assert (out == wanted).all()


LIMITS = r"""
// The answers depend on how large blocks are.
extern "C" __global__ void limits(int *out) {
    int t = threadIdx.x, answers = 0;
    if (t < 64) answers |= 1;
    if (t <= 127) answers |= 2;
    if (t > 200) answers |= 4;
    if (max(t, 255) == 255) answers |= 8;
    if (min(t, 31) == t) answers |= 16;
    if (t - 512 < 0) answers |= 32;
    if ((unsigned)(t - 1) > 40u) answers |= 64;
    if (t != 1000) answers |= 128;
    out[t] = answers;
}
"""


@pytest.mark.parametrize("block", [1, 32, 40, 64, 65, 128, 130, 256, 512, 700, 1024])
def test_comparisons_with_constants(block: int, engine: str) -> None:
    out, t = np.zeros(block, np.int32), np.arange(block)
    run(engine + LIMITS, "limits", 1, block, out)
    conditions = [t < 64, t <= 127, t > 200, t <= 255, t <= 31, t < 512, (t == 0) | (t > 41), t != 1000]
    assert (out == sum(c.astype(int) << bit for bit, c in enumerate(conditions))).all()
