"""PTX that comes of Triton for sm_80 and sm_90a: attention, products on tensor cores, scans and sorts, made by
tools/triton_ptx.py."""

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
    head = re.match(r"// kernel (\w+), (\d+) bytes[^,\n]*(?:, (\d+) of scratch)?", text)
    assert head
    Device(0).set_current()
    kernel = ObjectCode.from_ptx(text.encode()).get_kernel(head[1])
    values = [a if isinstance(a, np.ndarray | np.generic) else np.int32(a) for a in arguments]
    if head[3]:  # where a kernel makes its tensor maps
        values.append(np.zeros(int(head[3]) * int(np.prod(grid)), np.uint8))
    values += [np.uint64(0)] * (kernel.num_arguments - len(values))  # other scratch memory, which is not used
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


hopper = pytest.mark.skipif(tuple(Device(0).compute_capability) != (9, 0), reason="this PTX is for sm_90a alone")


def as_e4m3(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Bytes of small multiples of 1/8, and what they are worth."""
    worth = np.array([0, 0.125, 0.25, 0.5, 1, 1.5, 2, 3])
    code = np.array([0x00, 0x20, 0x28, 0x30, 0x38, 0x3C, 0x40, 0x44], np.uint8)
    number = np.clip(np.abs(x) * 3, 0, 7).astype(int)
    return code[number] | (x < 0).astype(np.uint8) << 7, np.where(x < 0, -worth[number], worth[number])


@hopper
@pytest.mark.parametrize(("name", "type", "error"), [("f16", np.float16, 1e-3), ("tf32", np.float32, 0.1)])
def test_matmul_of_warpgroups(random: np.random.Generator, name: str, type: Any, error: float) -> None:
    m, n, k = 128, 64, 192
    a, b = random.standard_normal((m, k)).astype(type), random.standard_normal((k, n)).astype(type)
    c = np.zeros((m, n), np.float32)
    run(f"matmul_{name}_90", (m // 64, n // 64), a, b, c, m, n, k)
    np.testing.assert_allclose(c, a.astype(np.float64) @ b.astype(np.float64), atol=error)


@hopper
def test_matmul_of_fp8(random: np.random.Generator) -> None:
    m, n, k = 64, 128, 128
    (a, left), (b, right) = as_e4m3(random.standard_normal((m, k))), as_e4m3(random.standard_normal((k, n)))
    c = np.zeros((m, n), np.float32)
    run("matmul_e4m3_90", (m // 64, n // 64), a, b, c, m, n, k)
    np.testing.assert_allclose(c, left @ right, atol=0.3)  # an H200 keeps 13 bits


@hopper
def test_persistent_matmul(random: np.random.Generator) -> None:
    """Three programs share twelve tiles, in one loop over tiles and steps."""
    m, n, k = 256, 192, 128
    a, b = (random.standard_normal(shape).astype(np.float16) for shape in ((m, k), (k, n)))
    c = np.zeros((m, n), np.float32)
    run("persistent_90", 3, a, b, c, m, n, k)
    np.testing.assert_allclose(c, a.astype(np.float64) @ b.astype(np.float64), atol=1e-3)


@pytest.mark.parametrize("name", ["attention", pytest.param("attention_90", marks=hopper)])
def test_attention(random: np.random.Generator, name: str) -> None:
    length, width = 128, 64
    q, k, v = (random.standard_normal((length, width)).astype(np.float16) for _ in range(3))
    out = np.zeros((length, width), np.float32)
    run(name, length // 64, q, k, v, out, length)
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


@hopper
def test_tiles_by_descriptors(random: np.random.Generator) -> None:
    """Three programs make tensor maps of their own and share tiles, of which some reach beyond the tensor."""
    x = random.standard_normal((70, 100)).astype(np.float32)
    out = np.zeros_like(x)
    run("scaled_90", 3, x, out, *x.shape, np.float32(1.5))
    np.testing.assert_array_equal(out, x * np.float32(1.5))


@hopper
def test_matmul_by_descriptors(random: np.random.Generator) -> None:
    """A persistent product on warpgroups whose operands come as tensor copies."""
    m, n, k = 160, 96, 192
    a, b = random.standard_normal((m, k)).astype(np.float16), random.standard_normal((k, n)).astype(np.float16)
    c = np.zeros((m, n), np.float32)
    run("described_90", 3, a, b, c, m, n, k)
    np.testing.assert_allclose(c, a.astype(np.float64) @ b.astype(np.float64), atol=1e-3)
