"""CUDA's mathematical functions, compiled by NVRTC, run on the device: whole programs out of the single instructions.

The bounds are those of the CUDA programming guide, in units in the last place of the correctly rounded result.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cupola import LaunchConfig, PinnedMemoryResource, Program, ProgramOptions, launch

BOUNDS = {
    "sin": (2, 2), "cos": (2, 2), "tan": (4, 2), "asin": (2, 2), "acos": (2, 2), "atan": (2, 2), "sinh": (3, 2),
    "cosh": (2, 1), "tanh": (2, 1), "asinh": (3, 3), "acosh": (4, 3), "atanh": (3, 2), "exp": (2, 1), "exp2": (2, 1),
    "exp10": (2, 1), "expm1": (1, 1), "log": (1, 1), "log2": (1, 1), "log10": (2, 1), "log1p": (1, 1),
    "sqrt": (0, 0), "rsqrt": (2, 1), "cbrt": (1, 1), "erf": (2, 2), "erfc": (4, 5), "tgamma": (5, 10),
    "ceil": (0, 0), "floor": (0, 0), "trunc": (0, 0), "rint": (0, 0),
}  # fmt: skip
"""Largest errors in single and in double precision."""

SPECIAL = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 0.5, 2.0, 1e-30, -1e-30, 1e30, 100.0, 1e5, -1e5, 1e10]


def gamma(x: float) -> float:
    if x == 0:
        return math.copysign(math.inf, x)
    try:
        return math.gamma(x)
    except OverflowError:
        return math.inf
    except ValueError:
        return math.nan


def scalar(function: Callable[[float], float]) -> Callable[[Any], Any]:
    return np.vectorize(lambda x: function(float(x)), otypes=[np.longdouble])


EXACT: dict[str, Callable[[Any], Any]] = {
    "exp10": lambda x: np.power(np.longdouble(10), x),
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "erf": scalar(math.erf),
    "erfc": scalar(math.erfc),
    "tgamma": scalar(gamma),
    **{f"a{name}": getattr(np, f"arc{name}") for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
}


class Runner:
    """Compiles kernels that apply a function to each element, and runs them."""

    def __init__(self, device, stream, source: str) -> None:
        self.stream = stream
        program = Program(source, code_type="c++", options=ProgramOptions(arch=f"sm_{device.arch}", device_int128=True))
        self.module = program.compile("cubin")

    def __call__(self, name: str, *columns: np.ndarray, out: type) -> np.ndarray:
        count = len(columns[0])
        pinned = PinnedMemoryResource()
        buffers = []
        for column in columns:
            buffer = pinned.allocate(column.nbytes, stream=self.stream)
            np.from_dlpack(buffer).view(np.uint8)[:] = column.view(np.uint8).ravel()
            buffers.append(buffer)
        result = pinned.allocate(count * np.dtype(out).itemsize, stream=self.stream)
        config = LaunchConfig(grid=(count + 127) // 128, block=128)
        launch(self.stream, config, self.module.get_kernel(name), result, *buffers, np.int32(count))
        self.stream.sync()
        values = np.from_dlpack(result).view(out).copy()
        for buffer in (*buffers, result):
            buffer.close(self.stream)
        return values


def unary_kernels(suffix: str, type: str) -> str:
    template = (
        'extern "C" __global__ void k_{0}({2}* o, const {2}* a, int n) '
        "{{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) o[i] = {0}{1}(a[i]); }}\n"
    )
    return "".join(template.format(name, suffix, type) for name in BOUNDS)


@pytest.mark.parametrize(("suffix", "type", "precision"), [("f", "float", 0), ("", "double", 1)])
def test_unary(device, stream, suffix: str, type: str, precision: int) -> None:
    dtype = np.float32 if precision == 0 else np.float64
    run = Runner(device, stream, unary_kernels(suffix, type))
    rng = np.random.default_rng(0)
    draws = [rng.uniform(-span, span, count) for span, count in ((10, 900), (1, 600), (1e4, 300))]
    x = np.concatenate([np.array(SPECIAL), *draws]).astype(dtype)
    complaints = []
    for name, bounds in BOUNDS.items():
        got = run(f"k_{name}", x, out=dtype)
        with np.errstate(all="ignore"):
            exact = EXACT.get(name, getattr(np, name, None))(x.astype(np.longdouble))
            want = exact.astype(dtype)
            ulp = np.abs(np.spacing(np.where(np.isfinite(want), want, dtype(1))))
            error = np.abs(got.astype(np.longdouble) - exact) / ulp
        # The reference of erf, erfc and tgamma is itself no better than double precision.
        bound = bounds[precision] + (1.5 if precision and name in ("erf", "erfc", "tgamma") else 0.5)
        special = (np.isnan(got) != np.isnan(want)) | (np.isinf(want) & (got != want))
        error = np.where(np.isfinite(want) & np.isfinite(got), error, 0)
        worst = int(error.argmax())
        if error[worst] > bound or special.any():
            complaints.append(f"{name}: {float(error[worst]):.2f} ulp at {x[worst]}, wrong at {x[special][:3]}")
    assert not complaints, "\n".join(complaints)


@pytest.mark.finds("race", reason="all threads store the same")
def test_nans_have_the_hardware_s_bits(device, stream) -> None:
    source = r"""
    extern "C" __global__ void k(unsigned* o, const unsigned* a, int n) {
        float x = __uint_as_float(a[0]), zero = __uint_as_float(a[1]);
        float sum = x;
        for (int i = 0; i < n; ++i) sum = sum * zero + x;
        o[0] = __float_as_uint(x - x); o[1] = __float_as_uint(zero / zero); o[2] = __float_as_uint(sqrtf(-1 - zero));
        o[3] = __float_as_uint(sum); o[4] = __float_as_uint(x); o[5] = __float_as_uint(n < 0 ? x * zero : x);
    }
    """
    run = Runner(device, stream, source)
    inputs = np.array([0x7F800000, 0, 0, 0, 0, 0], dtype=np.uint32)
    assert [hex(v) for v in run("k", inputs, out=np.uint32)] == [
        "0x7fffffff", "0x7fffffff", "0x7fffffff", "0x7fffffff", "0x7f800000", "0x7f800000",
    ]  # fmt: skip


@pytest.mark.finds("race", reason="all threads store the same")
def test_a_nan_from_memory_that_is_chosen_stays_what_it_is(device, stream) -> None:
    source = r"""
    extern "C" __global__ void k(unsigned* o, const unsigned* a, int n) {
        float x = __uint_as_float(a[0]), y = __uint_as_float(a[1]), sum = x + y, sign = copysignf(x, y);
        o[0] = __float_as_uint(n ? x : sum);
        o[1] = __float_as_uint(n ? sign : sum);
        o[2] = __float_as_uint(n ? sum : x);
        o[3] = __float_as_uint(n ? sum : 1.0f);
    }
    """
    inputs = np.array([0x7FC00123, 0xBF800000, 0, 0], dtype=np.uint32)
    found = Runner(device, stream, source)("k", inputs, out=np.uint32)
    assert [hex(v) for v in found] == ["0x7fc00123", "0xffc00123", "0x7fffffff", "0x7fffffff"]


def test_wide_integers(device, stream) -> None:
    source = r"""
    typedef unsigned __int128 u128; typedef __int128 s128;
    #define KERNEL(name, type, expression) \
        extern "C" __global__ void name(type* o, const type* a, const type* b, int n) { \
            int i = blockIdx.x * blockDim.x + threadIdx.x; \
            if (i < n) { type x = a[i], y = b[i]; o[i] = expression; } }
    KERNEL(add, u128, x + y) KERNEL(sub, u128, x - y) KERNEL(mul, u128, x * y)
    KERNEL(udiv, u128, x / y) KERNEL(urem, u128, x % y) KERNEL(sdiv, s128, x / y)
    KERNEL(shl, u128, x << (int)(y & 127)) KERNEL(sar, s128, x >> (int)(y & 127)) KERNEL(less, s128, x < y)
    """
    run = Runner(device, stream, source)
    rng = np.random.default_rng(1)
    numbers = [int.from_bytes(rng.bytes(size), "little") for size in (1, 4, 8, 9, 12, 16) for _ in range(12)]
    numbers += [1, (1 << 128) - 1, 1 << 127, 1 << 64, (1 << 64) - 1]
    pairs = [(x, y) for x in numbers for y in numbers[::5] if y]

    def column(values: list[int]) -> np.ndarray:
        return np.frombuffer(b"".join(v.to_bytes(16, "little") for v in values), dtype="V16")

    def signed(v: int) -> int:
        return v - (1 << 128) if v >> 127 else v

    def quotient(x: int, y: int) -> int:
        return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)

    expected: dict[str, Callable[[int, int], int]] = {
        "add": lambda x, y: x + y,
        "sub": lambda x, y: x - y,
        "mul": lambda x, y: x * y,
        "udiv": lambda x, y: x // y,
        "urem": lambda x, y: x % y,
        "sdiv": lambda x, y: quotient(signed(x), signed(y)),
        "shl": lambda x, y: x << (y & 127),
        "sar": lambda x, y: signed(x) >> (y & 127),
        "less": lambda x, y: int(signed(x) < signed(y)),
    }
    for name, function in expected.items():
        got = run(name, column([x for x, _ in pairs]), column([y for _, y in pairs]), out=np.dtype("V16"))
        for (x, y), raw in zip(pairs, got, strict=True):
            want = function(x, y) % (1 << 128)
            assert int.from_bytes(raw.tobytes(), "little") == want, f"{name} of {x:#x} and {y:#x}"
