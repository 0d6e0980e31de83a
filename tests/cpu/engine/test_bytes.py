"""Integers made of bytes, which are computed in 16 bits as far as they fit: around where they do not."""

from __future__ import annotations

import numpy as np
import pytest

from tests.cpu.engine.kernels import run

EXPRESSIONS = [
    "a + b",
    "a * b",  # 65,025 at most
    "a * b + 510",  # 65,535
    "a * b + 511",
    "a * b + a + b",
    "a * b + a + b + 1",
    "a * 257",
    "a * 258",
    "a + 65280",
    "a + 65281",
    "a + b + -1",
    "a - b",
    "(a + b) * (a + c)",
    "(a + b + c) * 85 + 510",
    "(a + b + c) * 86",
    "a * b * 2",
    "a + b > 255 ? a + c : b + c",
    "(a + b + c) / 3",
    "(a << 8) + b",
    "(a + b) >> 1",
    "a + b == 256",
    "a + b < 256",
    "-(a + b)",
    "(a + b) % 7 + t",
]
SOURCE = """
extern "C" __global__ void compute(const unsigned char* x, unsigned* words, unsigned long long* longs, float* floats) {
    int t = threadIdx.x, i = 0;
    int a = x[t], b = x[t + 64], c = x[t + 128];
""" + "".join(
    f"    words[64 * i + t] = {text}; longs[64 * i + t] = (long long)({text}); floats[64 * i++ + t] = float({text});\n"
    for text in EXPRESSIONS
)


@pytest.mark.parametrize("kind", ["largest", "any", "small"])
def test_sums_and_products_of_bytes(kind):
    random = np.random.default_rng(3)
    low, high = {"largest": (254, 256), "any": (0, 256), "small": (0, 2)}[kind]
    x = random.integers(low, high, 192, dtype=np.uint8)
    x[:8] = x[64:72] = x[128:136] = high - 1
    count = len(EXPRESSIONS)
    words, longs, floats = (np.zeros((count, 64), dtype) for dtype in (np.uint32, np.uint64, np.float32))
    run(SOURCE + "}", "compute", 1, 64, x, words, longs, floats)
    a, b, c = x.astype(np.int64).reshape(3, 64)
    names = {"a": a, "b": b, "c": c, "t": np.arange(64), "where": np.where}
    for i, text in enumerate(EXPRESSIONS):
        if "?" in text:
            text = "where(a + b > 255, a + c, b + c)"
        expected = np.asarray(eval(text.replace("/", "//"), names)).astype(np.int64)
        assert (words[i] == expected.astype(np.uint32)).all(), text
        assert (longs[i] == expected.astype(np.uint64)).all(), text
        assert (floats[i] == expected.astype(np.float32)).all(), text
