"""Programs with JAX's CUDA plugin: each compares its result with NumPy.

usage: cupola run --device cpu --model rtx5090 tests/ecosystem/jax_programs.py [NAME ...]
"""

# mypy: ignore-errors

from __future__ import annotations

import ctypes
import subprocess
import sys
import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

random = np.random.default_rng(5)


def normal(*shape):
    return random.standard_normal(shape).astype(np.float32)


def agree(found, expected, error=1e-5):
    assert {device.platform for device in found.devices()} == {"gpu"}
    np.testing.assert_allclose(np.asarray(found), expected, rtol=error, atol=error)


def elementwise():
    x, y = normal(30, 50), normal(30, 50)
    agree(jnp.sin(x) * y + jnp.where(x > 0, x, -2 * y), np.sin(x) * y + np.where(x > 0, x, -2 * y))


def reductions():
    x = normal(40, 60)
    agree(jnp.sum(x), x.sum(), 1e-3)
    agree(jnp.argmax(jnp.asarray(x), axis=1), x.argmax(1))
    e = np.exp(x - x.max(-1, keepdims=True))
    agree(jax.jit(jax.nn.softmax)(x), e / e.sum(-1, keepdims=True))
    agree(jnp.cumsum(jnp.asarray(x), axis=0), x.cumsum(0), 1e-4)


def matmul():
    a, b = normal(40, 70), normal(70, 30)
    agree(jnp.matmul(a, b, precision="highest"), a @ b, 1e-4)


def gradient():
    x = normal(100)
    agree(jax.jit(jax.grad(lambda x: jnp.sum(jnp.tanh(x) ** 2)))(x), 2 * np.tanh(x) * (1 - np.tanh(x) ** 2))


def training():
    """Steps of a descent, in a loop of the compiler's."""
    a, solution = normal(64, 8), normal(8)
    b = a @ solution

    def step(_, x):
        return x - 0.05 * jax.grad(lambda x: jnp.mean((jnp.matmul(a, x, precision="highest") - b) ** 2))(x)

    agree(jax.jit(lambda x: jax.lax.fori_loop(0, 400, step, x))(jnp.zeros(8)), solution, 1e-2)


def sort():
    x = normal(1000)
    agree(jnp.sort(jnp.asarray(x)), np.sort(x))


def random_numbers():
    """Counter-based, so they are those of the host."""
    with jax.default_device(jax.devices("cpu")[0]):
        expected = np.asarray(jax.random.normal(jax.random.key(3), (100,)))
    agree(jax.random.normal(jax.random.key(3), (100,)), expected)


def fourier_transform():
    x = normal(64)
    agree(jnp.fft.rfft(jnp.asarray(x)), np.fft.rfft(x), 1e-4)


def solve():
    a, b = normal(5, 5), normal(5)
    agree(jnp.linalg.solve(jnp.asarray(a), b), np.linalg.solve(a, b), 1e-2)


def convolution():
    x, w = normal(1, 3, 8, 8), normal(4, 3, 3, 3)
    found = jax.lax.conv(jnp.asarray(x), jnp.asarray(w), (1, 1), "VALID")
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (2, 3))
    agree(found, np.einsum("nchwij,ocij->nohw", windows, w), 1e-4)


SOURCE = """
#include "xla/ffi/api/ffi.h"
namespace ffi = xla::ffi;
__global__ void twice(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2 * x[i];
}
static ffi::Error Twice(cudaStream_t stream, ffi::Buffer<ffi::F32> x, ffi::ResultBuffer<ffi::F32> y) {
    int n = x.element_count();
    twice<<<(n + 127) / 128, 128, 0, stream>>>(x.typed_data(), y->typed_data(), n);
    return cudaGetLastError() ? ffi::Error::Internal("launch") : ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(TwiceHandler, Twice,
    ffi::Ffi::Bind().Ctx<ffi::PlatformStream<cudaStream_t>>().Arg<ffi::Buffer<ffi::F32>>().Ret<ffi::Buffer<ffi::F32>>());
"""


def ffi_kernel():
    """A kernel in CUDA C++ as an operation of JAX's, built by `cupola nvcc`."""
    x = normal(1000)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "twice.cu").write_text(SOURCE)
        flags = ["-std=c++17", "-shared", "-Xcompiler", "-fPIC", "-arch=native", f"-I{jax.ffi.include_dir()}"]
        command = [sys.executable, "-m", "cupola", "nvcc", "twice.cu", "-o", "libtwice.so", *flags]
        subprocess.run(command, cwd=folder, check=True)
        library = ctypes.CDLL(f"{folder}/libtwice.so")
    jax.ffi.register_ffi_target("twice", jax.ffi.pycapsule(library.TwiceHandler), platform="CUDA")
    call = jax.ffi.ffi_call("twice", jax.ShapeDtypeStruct(x.shape, x.dtype))
    agree(jax.jit(call)(x), 2 * x, 0)


PROGRAMS = {
    f.__name__: f
    for f in (
        elementwise, reductions, matmul, gradient, training, sort, random_numbers, fourier_transform, solve,
        convolution, ffi_kernel,
    )
}  # fmt: skip

if __name__ == "__main__":
    for name in sys.argv[1:] or PROGRAMS:
        PROGRAMS[name]()
        print(name, "agrees with NumPy")
