"""Arithmetic that NumPy does not have, exactly as CUDA defines it: rounding modes, ``fma``, bit fields, packed words.

Rounding modes come from the host's floating-point environment, which NumPy's loops obey.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from tests.random_kernels.scalars import Lanes, Scalar

Evaluate = Callable[..., Lanes]

# --- the host's floating-point environment --------------------------------------------------------

_libm = ctypes.CDLL(ctypes.util.find_library("m") or "libm.so.6")
_fma = _libm.fma
_fma.restype, _fma.argtypes = ctypes.c_double, [ctypes.c_double] * 3
_MODES = {"x86_64": {"rn": 0, "rd": 0x400, "ru": 0x800, "rz": 0xC00}}.get(
    platform.machine(), {"rn": 0, "ru": 0x400000, "rd": 0x800000, "rz": 0xC00000}
)


@contextmanager
def rounding(mode: str) -> Iterator[None]:
    """Round as ``mode`` says (``"rn"``, ``"rz"``, ``"ru"``, ``"rd"``) until the end of the block."""
    _libm.fesetround(_MODES[mode])
    try:
        yield
    finally:
        _libm.fesetround(_MODES["rn"])


def rounded(mode: str, function: Evaluate) -> Evaluate:
    def evaluate(*operands: Lanes) -> Lanes:
        with rounding(mode):
            return function(*operands)

    return evaluate


def fused_double(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    return np.array([_fma(x, y, z) for x, y, z in zip(a.tolist(), b.tolist(), c.tolist(), strict=True)])


def fused(mode: str, dtype: str) -> Evaluate:
    """``fma`` of a narrower type: exact product and a sum rounded to odd in double, then rounded once more.

    The sum carries at least two more bits than the result, so that the sticky last bit makes the second rounding right.
    """

    def evaluate(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
        product, addend = a.astype("f8") * b.astype("f8"), c.astype("f8")
        total = product + addend
        other = total - product
        error = (product - (total - other)) + (addend - other)
        inexact = np.isfinite(error) & (error != 0) & np.isfinite(total)
        even = (total.view("u8") & np.uint64(1)) == 0
        odd = np.where(inexact & even, np.nextafter(total, np.where(error > 0, np.inf, -np.inf)), total)
        with rounding(mode):
            exact = product + addend
            return np.where(odd == 0, exact, odd).astype(dtype)

    return evaluate


# --- integers and bits ----------------------------------------------------------------------------


def popcount(x: Lanes) -> Lanes:
    x = x.copy()
    total = np.zeros(x.shape, "i4")
    while x.any():
        total += (x & x.dtype.type(1)).astype("i4")
        x >>= x.dtype.type(1)
    return total


def bit_length(x: Lanes) -> Lanes:
    x = x.copy()
    total = np.zeros(x.shape, "i4")
    while x.any():
        total += x != 0
        x >>= x.dtype.type(1)
    return total


def _guard(b: Lanes) -> Lanes:
    minus_one = np.invert(np.zeros(1, b.dtype))[0]
    return (b == 0) | (b == minus_one)


def quotient(a: Lanes, b: Lanes) -> Lanes:
    safe = np.where(_guard(b), b.dtype.type(1), b)
    return np.where(_guard(b), a, (a - np.fmod(a, safe)) // safe).astype(a.dtype)


def remainder(a: Lanes, b: Lanes) -> Lanes:
    safe = np.where(_guard(b), b.dtype.type(1), b)
    return np.where(_guard(b), b, np.fmod(a, safe)).astype(a.dtype)


def high_product(a: Lanes, b: Lanes) -> Lanes:
    """The upper 64 bits of a product of unsigned 64-bit numbers."""
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    a0, a1, b0, b1 = a & low, a >> half, b & low, b >> half
    middle = (a0 * b0 >> half) + (a1 * b0 & low) + (a0 * b1 & low)
    return a1 * b1 + (a1 * b0 >> half) + (a0 * b1 >> half) + (middle >> half)


def signed_high_product(a: Lanes, b: Lanes) -> Lanes:
    x, y = a.view("u8"), b.view("u8")
    zero = np.uint64(0)
    return (high_product(x, y) - np.where(a < 0, y, zero) - np.where(b < 0, x, zero)).view("i8")


def pieces(dtype: str) -> Callable[[Lanes], Lanes]:
    """The bytes or halves of 32-bit words, one row a word."""
    return lambda x: np.ascontiguousarray(x)[:, None].view(dtype)


def reverse(x: Lanes) -> Lanes:
    result = np.zeros_like(x)
    one = x.dtype.type(1)
    for _ in range(8 * x.dtype.itemsize):
        result = result << one | x & one
        x = x >> one
    return result


def packed(dtype: str, function: Evaluate) -> Evaluate:
    """An operation on the parts of 32-bit words; ``function`` works in 64-bit integers, results wrap."""

    def evaluate(*operands: Lanes) -> Lanes:
        parts = [pieces(dtype)(x).astype("i8") for x in operands]
        return np.ascontiguousarray(function(*parts).astype(dtype)).view("u4").reshape(-1)

    return evaluate


def dot(left: str, right: str) -> Evaluate:
    def evaluate(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
        products = pieces(left)(a).astype("i8") * pieces(right)(b).astype("i8")
        return (products.sum(axis=1) + c.astype("i8")).astype(c.dtype)

    return evaluate


def dot_half(half: int) -> Evaluate:
    def evaluate(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
        bytes_ = pieces("i1")(b).astype("i8")[:, 2 * half : 2 * half + 2]
        return ((pieces("i2")(a).astype("i8") * bytes_).sum(axis=1) + c.astype("i8")).astype(c.dtype)

    return evaluate


def permute(a: Lanes, b: Lanes, selector: Lanes) -> Lanes:
    pool = np.concatenate([pieces("u1")(a), pieces("u1")(b)], axis=1)
    picks = (selector[:, None] >> np.array([0, 4, 8, 12], "u4")) & np.uint32(7)
    return np.ascontiguousarray(np.take_along_axis(pool, picks.astype("i8"), axis=1)).view("u4").reshape(-1)


def funnel(left: bool, clamp: bool) -> Evaluate:
    def evaluate(low: Lanes, high: Lanes, count: Lanes) -> Lanes:
        n = (np.minimum(count, np.uint32(32)) if clamp else count & np.uint32(31)).astype("u8")
        both = high.astype("u8") << np.uint64(32) | low.astype("u8")
        return ((both << n >> np.uint64(32)) if left else both >> n).astype("u4")

    return evaluate


def field(a: Lanes, position: Lanes, count: Lanes) -> Lanes:
    mask = (np.uint64(1) << (count & np.uint32(31)).astype("u8")) - np.uint64(1)
    return (a.astype("u8") >> (position & np.uint32(31)).astype("u8") & mask).astype("u4")


def signed_field(a: Lanes, position: Lanes, count: Lanes) -> Lanes:
    """PTX ``bfe.s32``: bits beyond the word repeat its sign."""
    n, p = (count & np.uint32(31)).astype("i8"), (position & np.uint32(31)).astype("i8")
    top = a.astype("i8") >> p
    return np.where(n == 0, 0, top << (64 - np.maximum(n, 1)) >> (64 - np.maximum(n, 1))).astype("i4")


def insert(a: Lanes, b: Lanes, position: Lanes, count: Lanes) -> Lanes:
    p = (position & np.uint32(31)).astype("u8")
    mask = ((np.uint64(1) << (count & np.uint32(31)).astype("u8")) - np.uint64(1)) << p
    return ((b.astype("u8") & ~mask) | (a.astype("u8") << p & mask)).astype("u4")


def shift(left: bool, bits: int) -> Evaluate:
    return lambda a, n: (np.left_shift if left else np.right_shift)(
        a, (n & np.uint32(bits - 1)).astype(a.dtype)
    ).astype(a.dtype)


def rotated(a: Lanes, n: Lanes) -> Lanes:
    bits = 8 * a.dtype.itemsize
    left, right = (n & np.uint32(bits - 1)).astype(a.dtype), (-n & np.uint32(bits - 1)).astype(a.dtype)
    return (a << left | a >> right).astype(a.dtype)


def to_integer(mode: str, target: Scalar) -> Evaluate:
    function = {"rn": np.rint, "rz": np.trunc, "ru": np.ceil, "rd": np.floor}[mode]
    info = np.iinfo(target.dtype)
    low, high = info.min, info.max

    def evaluate(x: Lanes) -> Lanes:
        whole = function(x.astype("f8"))
        inside = (whole >= float(low)) & (whole < 2.0 ** high.bit_length())
        result = np.where(inside, whole, 0.0).astype(target.dtype)
        result = np.where(whole >= 2.0 ** high.bit_length(), target.dtype.type(high), result)
        result = np.where(whole < float(low), target.dtype.type(low), result)
        return np.where(np.isnan(x), target.dtype.type(17), result).astype(target.dtype)

    return evaluate


def word_bits(x: Lanes) -> Lanes:
    """The bits of floats, NaNs made one, as ``bits`` in the prelude does."""
    dtype = f"u{x.dtype.itemsize}"
    one_nan = {2: 0x7FFF, 4: 0x7FFFFFFF, 8: 0x7FFFFFFFFFFFFFFF}[x.dtype.itemsize]
    return np.where(np.isnan(x), np.dtype(dtype).type(one_nan), np.ascontiguousarray(x).view(dtype)).astype(dtype)


def with_sign(a: Lanes, b: Lanes) -> Lanes:
    return np.copysign(a, np.where(np.isnan(b), a.dtype.type(1), b))


def cast(target: Scalar) -> Evaluate:
    return lambda x: x.astype(target.dtype)
