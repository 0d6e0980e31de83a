"""Programs with numba-cuda, or with numba-cuda-mlir: each compares its result with NumPy.

usage: cupola run --device cpu tests/ecosystem/numba_programs.py [NAME ...]
"""

# mypy: ignore-errors

from __future__ import annotations

import math
import os
import sys
from importlib import import_module

import numpy as np

cuda = import_module(os.environ.get("NUMBA_PACKAGE", "numba") + ".cuda")
xoroshiro = import_module(cuda.__name__ + ".random")
uniform = xoroshiro.xoroshiro128p_uniform_float64

random = np.random.default_rng(5)


@cuda.jit
def saxpy_kernel(a, x, y, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a * x[i] + y[i]


def saxpy():
    x, y = random.random(10_000), random.random(10_000)
    out = cuda.device_array_like(x)
    saxpy_kernel[40, 256](2.0, cuda.to_device(x), cuda.to_device(y), out)
    np.testing.assert_allclose(out.copy_to_host(), 2 * x + y)


@cuda.jit
def histogram_kernel(values, counts):
    for i in range(cuda.grid(1), values.size, cuda.gridsize(1)):
        cuda.atomic.add(counts, values[i], 1)


def histogram():
    values, counts = random.integers(0, 50, 20_000), np.zeros(50, np.int32)
    histogram_kernel[16, 128](values, counts)
    np.testing.assert_array_equal(counts, np.bincount(values, minlength=50))


@cuda.jit
def block_sums_kernel(x, sums):
    shared = cuda.shared.array(128, np.float64)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    shared[t] = x[i] if i < x.size else 0.0
    step = cuda.blockDim.x // 2
    while step > 0:
        cuda.syncthreads()
        if t < step:
            shared[t] += shared[t + step]
        step //= 2
    if t == 0:
        sums[cuda.blockIdx.x] = shared[0]


def block_sums():
    x, sums = random.random(1000), np.zeros(8)
    block_sums_kernel[8, 128](x, sums)
    np.testing.assert_allclose(sums.sum(), x.sum())


@cuda.jit
def matmul_kernel(a, b, c):
    i, j = cuda.grid(2)
    if i < c.shape[0] and j < c.shape[1]:
        total = 0.0
        for k in range(a.shape[1]):
            total += a[i, k] * b[k, j]
        c[i, j] = total


def matmul():
    a, b, c = random.random((50, 70)), random.random((70, 30)), np.zeros((50, 30))
    matmul_kernel[(4, 2), (16, 16)](a, b, c)
    np.testing.assert_allclose(c, a @ b)


@cuda.jit
def warp_sums_kernel(x, sums):
    value = x[cuda.grid(1)]
    for distance in (16, 8, 4, 2, 1):
        value += cuda.shfl_down_sync(0xFFFFFFFF, value, distance)
    if cuda.laneid == 0:
        sums[cuda.grid(1) // 32] = value


def warp_sums():
    x, sums = random.random(256), np.zeros(8)
    warp_sums_kernel[2, 128](x, sums)
    np.testing.assert_allclose(sums, x.reshape(8, 32).sum(1))


@cuda.jit
def grid_barrier_kernel(x, out):
    g = cuda.cg.this_grid()
    i = cuda.grid(1)
    x[i] = i
    g.sync()
    out[i] = x[x.size - 1 - i]


def grid_barrier():
    x, out = np.zeros(512), np.zeros(512)
    grid_barrier_kernel[4, 128](x, out)
    np.testing.assert_array_equal(out, np.arange(512)[::-1])


@cuda.jit(device=True)
def escape(c, limit):
    z = 0j
    for step in range(limit):
        z = z * z + c
        if z.real * z.real + z.imag * z.imag > 4:
            return step
    return limit


@cuda.jit
def mandelbrot_kernel(out, limit):
    i, j = cuda.grid(2)
    if i < out.shape[0] and j < out.shape[1]:
        out[i, j] = escape(complex(-2 + 3 * j / out.shape[1], -1 + 2 * i / out.shape[0]), limit)


def mandelbrot():
    out = np.zeros((40, 60), np.int32)
    mandelbrot_kernel[(3, 4), (16, 16)](out, 50)
    c = (-2 + 3 * np.arange(60) / 60)[None, :] + 1j * (-1 + 2 * np.arange(40) / 40)[:, None]
    z, expected = np.zeros_like(c), np.full(c.shape, 50)
    for step in range(50):
        z = np.where(expected == 50, z * z + c, z)
        expected[(expected == 50) & (z.real**2 + z.imag**2 > 4)] = step
    assert (out != expected).mean() < 0.01  # the last bit of a multiplication and an addition in one


@cuda.jit
def pi_kernel(states, inside):
    i = cuda.grid(1)
    for _ in range(100):
        x, y = uniform(states, i), uniform(states, i)
        inside[i] += x * x + y * y < 1


def random_numbers():
    states, inside = xoroshiro.create_xoroshiro128p_states(256, seed=3), np.zeros(256, np.int32)
    pi_kernel[2, 128](states, inside)
    assert math.isclose(4 * inside.sum() / 25_600, math.pi, abs_tol=0.05)


@cuda.jit(lineinfo=True)
def beyond_kernel(x):
    x[cuda.grid(1)] = 1  # one block too many


def python_error():
    """A fault names the line of Python."""
    x = cuda.device_array(128)
    try:
        beyond_kernel[2, 128](x)
        cuda.synchronize()
    except Exception as error:
        text = str(error)
        assert "out-of-bounds write of 8 bytes" in text and "numba_programs.py:" in text, text
    else:
        raise AssertionError("it should have failed")


PROGRAMS = {
    f.__name__: f
    for f in (
        saxpy, histogram, block_sums, matmul, warp_sums, grid_barrier, mandelbrot, random_numbers, python_error
    )
}  # fmt: skip


def main(programs):
    for name in sys.argv[1:] or programs:
        programs[name]()
        print(name, "agrees with NumPy")


if __name__ == "__main__":
    main(PROGRAMS)
