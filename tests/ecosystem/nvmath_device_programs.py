"""Programs in nvmath-python's device module, which numba's kernels call: each compares its result with NumPy.

They need numba-cuda and libmathdx (``pip install "nvmath-python[cu13-dx]"``).

usage: cupola run --device cpu tests/ecosystem/nvmath_device_programs.py [NAME ...]
"""

# mypy: ignore-errors

from __future__ import annotations

import sys

import numpy as np
from numba import cuda
from nvmath.device import FFT, CholeskySolver, LUPivotSolver, Matmul, random

generator = np.random.default_rng(7)


def fft():
    """Two transforms in a block, each thread with some elements in registers."""
    size, count = 64, 2
    transform = FFT(
        size=size, precision=np.float32, fft_type="c2c", direction="forward", execution="Block", ffts_per_block=count
    )
    of_thread, step, storage = transform.elements_per_thread, transform.stride, transform.storage_size
    kind = transform.value_type

    @cuda.jit
    def kernel(x):
        registers = cuda.local.array(shape=(storage,), dtype=kind)
        shared = cuda.shared.array(shape=(0,), dtype=kind)
        row, at = cuda.threadIdx.y, cuda.threadIdx.x
        for i in range(of_thread):
            registers[i] = x[row, at + i * step]
        transform.execute(registers, shared)
        for i in range(of_thread):
            x[row, at + i * step] = registers[i]

    x = (generator.standard_normal((count, size)) + 1j * generator.standard_normal((count, size))).astype(np.complex64)
    on_device = cuda.to_device(x)
    kernel[1, transform.block_dim, 0, transform.shared_memory_size](on_device)
    np.testing.assert_allclose(on_device.copy_to_host(), np.fft.fft(x), atol=1e-4)


def matmul():
    """A product of matrices in shared memory."""
    m, n, k = 16, 16, 32
    product = Matmul(
        size=(m, n, k), precision=np.float32, data_type="real", arrangement=("row_major", "col_major", "row_major"),
        execution="Block",
    )  # fmt: skip
    kind, threads = product.c_value_type, product.block_size
    size_a, size_b, size_c = product.a_size, product.b_size, product.c_size
    lines = product.leading_dimension
    line_a, line_b, line_c = lines.a, lines.b, lines.c

    @cuda.jit
    def kernel(a, b, c):
        own_a = cuda.shared.array(size_a, kind)
        own_b = cuda.shared.array(size_b, kind)
        own_c = cuda.shared.array(size_c, kind)
        first = cuda.threadIdx.x
        for i in range(first, m * k, threads):
            own_a[i // k * line_a + i % k] = a[i // k, i % k]
        for i in range(first, n * k, threads):
            own_b[i // k * line_b + i % k] = b[i % k, i // k]
        cuda.syncthreads()
        product.execute(1.0, own_a, own_b, 0.0, own_c)
        cuda.syncthreads()
        for i in range(first, m * n, threads):
            c[i // n, i % n] = own_c[i // n * line_c + i % n]

    a, b = (generator.standard_normal(shape).astype(np.float32) for shape in ((m, k), (k, n)))
    c = cuda.device_array((m, n), np.float32)
    kernel[1, product.block_dim](a, b, c)
    np.testing.assert_allclose(c.copy_to_host(), a @ b, atol=1e-4)


def cholesky():
    n, elements = 16, 16 * 16
    solver = CholeskySolver(size=(n, n, 1), precision=np.float64, execution="Block", fill_mode="lower")
    threads = solver.block_size

    @cuda.jit
    def kernel(a, b, info):
        own_a = cuda.shared.array(elements, np.float64)
        own_b = cuda.shared.array(n, np.float64)
        for i in range(cuda.threadIdx.x, elements, threads):
            own_a[i] = a[i % n, i // n]
        for i in range(cuda.threadIdx.x, n, threads):
            own_b[i] = b[i]
        cuda.syncthreads()
        solver.factorize(own_a, info)
        cuda.syncthreads()
        solver.solve(own_a, own_b)
        cuda.syncthreads()
        for i in range(cuda.threadIdx.x, n, threads):
            b[i] = own_b[i]

    half = generator.standard_normal((n, n))
    a, b = half @ half.T + n * np.eye(n), generator.standard_normal(n)
    x, info = cuda.to_device(b), cuda.to_device(np.full(1, -1, np.int32))
    kernel[1, solver.block_dim](a, x, info)
    assert info.copy_to_host()[0] == 0
    np.testing.assert_allclose(x.copy_to_host(), np.linalg.solve(a, b), atol=1e-10)


def lu():
    n, elements = 16, 16 * 16
    solver = LUPivotSolver(size=(n, n, 1), precision=np.float64, execution="Block")
    threads = solver.block_size

    @cuda.jit
    def kernel(a, b, info):
        own_a = cuda.shared.array(elements, np.float64)
        own_b = cuda.shared.array(n, np.float64)
        pivots = cuda.shared.array(n, np.int32)
        for i in range(cuda.threadIdx.x, elements, threads):
            own_a[i] = a[i % n, i // n]
        for i in range(cuda.threadIdx.x, n, threads):
            own_b[i] = b[i]
        cuda.syncthreads()
        solver.factorize(own_a, pivots, info)
        cuda.syncthreads()
        solver.solve(own_a, pivots, own_b)
        cuda.syncthreads()
        for i in range(cuda.threadIdx.x, n, threads):
            b[i] = own_b[i]

    a, b = generator.standard_normal((n, n)), generator.standard_normal(n)
    x, info = cuda.to_device(b), cuda.to_device(np.full(1, -1, np.int32))
    kernel[1, solver.block_dim](a, x, info)
    assert info.copy_to_host()[0] == 0
    np.testing.assert_allclose(x.copy_to_host(), np.linalg.solve(a, b), atol=1e-9)


def random_numbers():
    """Philox in each thread: the same numbers each time, evenly in (0, 1]."""
    compiled = random.Compile(cc=None)

    @cuda.jit(link=compiled.files, extensions=compiled.extension)
    def prepare(states):
        i = cuda.grid(1)
        random.init(1234, i, 0, states[i])

    @cuda.jit(link=compiled.files, extensions=compiled.extension)
    def draw(states, out):
        i = cuda.grid(1)
        out[i] = random.uniform(states[i])

    results = []
    for _ in range(2):
        states, out = random.StatesPhilox4_32_10(1024), cuda.device_array(1024, np.float32)
        prepare[8, 128](states)
        draw[8, 128](states, out)
        results.append(out.copy_to_host())
    assert np.array_equal(*results)
    assert results[0].min() > 0 and results[0].max() <= 1 and abs(results[0].mean() - 0.5) < 0.05


PROGRAMS = {f.__name__: f for f in (fft, matmul, cholesky, lu, random_numbers)}

if __name__ == "__main__":
    for name in sys.argv[1:] or PROGRAMS:
        PROGRAMS[name]()
        print(f"{name} agrees with NumPy")
