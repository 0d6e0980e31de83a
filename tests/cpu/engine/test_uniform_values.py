"""Values that are the same for all lanes are computed once, by scalar instructions: they must say what vectors say."""

from __future__ import annotations

import numpy as np
import pytest

from cupola import Device, LaunchConfig, LegacyPinnedMemoryResource, Program, ProgramOptions, Stream, launch

from .kernels import run

EXTREMA = r"""
extern "C" __global__ void extrema(float a, double b, float* singles, double* doubles) {
    const float f = float(blockIdx.x);      // a number, as the compiler can tell
    const double d = double(blockIdx.x);
    singles[0] = fmaxf(a, f), singles[1] = fmaxf(f, a), singles[2] = fminf(a, f), singles[3] = fminf(f, a);
    doubles[0] = fmax(b, d), doubles[1] = fmax(d, b), doubles[2] = fmin(b, d), doubles[3] = fmin(d, b);
}
"""


@pytest.mark.parametrize("value", [float("nan"), -1.5, 0.0, 7.0, float("inf")])
def test_a_nan_loses_against_a_number(device: Device, stream: Stream, value: float) -> None:
    options = ProgramOptions(arch=f"sm_{device.arch}")
    kernel = Program(EXTREMA, "c++", options).compile("cubin").get_kernel("extrema")
    singles, doubles = (LegacyPinnedMemoryResource().allocate(4 * size) for size in (4, 8))
    launch(stream, LaunchConfig(grid=1, block=32), kernel, np.float32(value), np.float64(value), singles, doubles)
    stream.sync()
    high, low = (0.0, 0.0) if np.isnan(value) else (max(value, 0.0), min(value, 0.0))
    for buffer, dtype in ((singles, np.float32), (doubles, np.float64)):
        assert np.from_dlpack(buffer).view(dtype).tolist() == [high, high, low, low]
        buffer.close()


DIVISION = r"""
template <typename T> __device__ void divide(const T* x, T y, T* quotients, T* remainders, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) quotients[i] = x[i] / y, remainders[i] = x[i] % y;
}
#define DIVIDE(T) extern "C" __global__ void divide_##T(const T* x, T y, T* quotients, T* remainders, int n) { \
    divide(x, y, quotients, remainders, n); }
typedef unsigned int u32;
DIVIDE(int) DIVIDE(u32)
"""


@pytest.mark.parametrize("type", ["int", "u32"])
def test_quotients_by_one_divisor_are_exact(type: str, engine: str) -> None:
    dtype = {"int": np.int32, "u32": np.uint32}[type]
    low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    divisors = [1, 2, 3, 5, 7, 641, 65535, 65537, 0x01000001, 0x7FFFFFFE, high, *([-1, -3, -65537, low] if low else [])]
    for y in divisors:
        multiples = [q * y + r for q in (1, 2, 3, 641, high // abs(y), low // abs(y)) for r in (-1, 0, 1)]
        x = np.array(
            [value for value in [0, 1, low, high - 1, high, *multiples] if low + (y == -1) <= value <= high], dtype
        )
        quotients, remainders = np.zeros_like(x), np.zeros_like(x)
        run(DIVISION + engine, f"divide_{type}", 1, 32, x, dtype(y), quotients, remainders, np.int32(x.size))
        expected = [abs(int(value)) // abs(y) * (1 if (value < 0) == (y < 0) else -1) for value in x]
        assert quotients.tolist() == expected
        assert remainders.tolist() == [int(value) - q * y for value, q in zip(x, expected, strict=True)]
