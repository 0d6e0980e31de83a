"""PTX that comes of Triton: attention, products on tensor cores, scans and sorts, made by tools/triton_ptx.py."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cupola import Device, ObjectCode
from tests.cpu.engine.kernels import run_kernel

FOLDER = Path(__file__).parent / "triton"


def run(name: str, grid: int | tuple[int, int], *arguments: Any) -> None:
    text = (FOLDER / f"{name}.ptx").read_text()
    head = re.match(r"// kernel (\w+), (\d+) bytes", text)
    assert head
    Device(0).set_current()
    kernel = ObjectCode.from_ptx(text.encode()).get_kernel(head[1])
    values = [a if isinstance(a, np.ndarray) else np.int32(a) for a in arguments]
    values += [np.uint64(0)] * (kernel.num_arguments - len(values))  # scratch memory, which these kernels do not use
    run_kernel(kernel, grid, 128, *values, shared=int(head[2]))


@pytest.fixture
def random() -> np.random.Generator:
    return np.random.default_rng(11)


def softmax_of(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def test_softmax(random: np.random.Generator) -> None:
    x = random.standard_normal((8, 784)).astype(np.float32)
    out = np.zeros_like(x)
    run("softmax", 8, out, x, x.shape[1])
    np.testing.assert_allclose(out, softmax_of(x), rtol=1e-5)


@pytest.mark.parametrize(
    ("name", "type", "tile", "error"), [("f16", np.float16, 64, 1e-4), ("tf32", np.float32, 32, 0.1)]
)
def test_matmul(random: np.random.Generator, name: str, type: Any, tile: int, error: float) -> None:
    m, n, k = 128, 64, 96
    a, b = random.standard_normal((m, k)).astype(type), random.standard_normal((k, n)).astype(type)
    c = np.zeros((m, n), np.float32)
    run(f"matmul_{name}", (m // tile, n // tile), a, b, c, m, n, k)
    np.testing.assert_allclose(c, a.astype(np.float64) @ b.astype(np.float64), atol=error)


def test_attention(random: np.random.Generator) -> None:
    length, width = 128, 64
    q, k, v = (random.standard_normal((length, width)).astype(np.float16) for _ in range(3))
    out = np.zeros((length, width), np.float32)
    run("attention", length // 64, q, k, v, out, length)
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    np.testing.assert_allclose(out, softmax_of(q @ k.T * 0.125) @ v, atol=2e-3)


def test_histogram(random: np.random.Generator) -> None:
    x = random.integers(0, 50, 2000).astype(np.int32)
    out = np.zeros(50, np.int32)
    run("histogram", 4, x, out, x.size)
    assert (out == np.bincount(x, minlength=50)).all()


def test_scan(random: np.random.Generator) -> None:
    x = random.standard_normal(1024).astype(np.float32)
    out = np.zeros_like(x)
    run("scan", 1, x, out)
    np.testing.assert_allclose(out, np.cumsum(x.astype(np.float64)), atol=1e-4)


def test_sort(random: np.random.Generator) -> None:
    x = random.integers(-999, 999, 512).astype(np.int32)
    out = np.zeros_like(x)
    run("sort", 1, x, out)
    assert (out == np.sort(x)).all()
