"""The programs: their arrays, their launches, and what bounds their time. The code is in ``sources/NAME.cu``.

Each file has both sides: the kernels, and a function of C, ``program``, that computes the same with OpenMP. It takes
all arrays and then all scalars, in the order of the table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Dim = tuple[int, ...]
Scalar = int | np.float32 | np.float64

COMPUTE, MEMORY, BOTH = "compute", "memory", "both"


@dataclass(frozen=True)
class Launch:
    """A kernel, its grid, its blocks, and the names of its arguments, or numbers."""

    kernel: str
    grid: Dim
    block: Dim
    arguments: str


@dataclass(frozen=True)
class Program:
    """One row of the table.

    ``results`` are the arrays that are compared: floats with a relative ``tolerance`` (of the largest number), integers
    as the part that may differ. ``bound`` says what a perfect program would wait for.
    """

    name: str
    bound: str
    arrays: Callable[[], dict[str, Array]]
    scalars: dict[str, Scalar]
    launches: Sequence[Launch]
    results: tuple[str, ...]
    tolerance: float = 1e-5


def rng() -> np.random.Generator:
    return np.random.default_rng(1)


def floats(*shape: int) -> Array:
    return rng().random(shape, dtype=np.float32)


def zeros(*shape: int, dtype: Any = np.float32) -> Array:
    return np.zeros(shape, dtype)


def ints(high: int, *shape: int, dtype: Any = np.int32) -> Array:
    return rng().integers(0, high, shape, dtype=dtype)


def sparse(rows: int, most: int) -> dict[str, Array]:
    """A matrix of rows with 0 to ``most`` numbers at random places."""
    counts = ints(most + 1, rows)
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    return {"starts": starts, "columns": ints(rows, int(starts[-1])), "values": floats(int(starts[-1]))}


def graph(nodes: int, most: int) -> dict[str, Array]:
    matrix = sparse(nodes, most)
    return {"starts": matrix["starts"], "targets": matrix["columns"]}


def roots_of_unity(count: int) -> Array:
    angles = -2 * np.pi * np.arange(count // 2) / count
    return np.stack([np.cos(angles), np.sin(angles)], -1).astype(np.float32)


def there_and_back(kernel: str, grid: Dim, block: Dim, times: int) -> list[Launch]:
    return [Launch(kernel, grid, block, "x out n"), Launch(kernel, grid, block, "out x n")] * times


def twice(array: Array) -> dict[str, Array]:
    return {"x": array, "out": array.copy()}


M = 1 << 20

PROGRAMS = [
    Program(
        "saxpy",
        MEMORY,
        lambda: {"x": floats(8 * M), "y": zeros(8 * M)},
        {"a": np.float32(1e-3), "n": 8 * M},
        [Launch("saxpy", (8 * M // 256,), (256,), "x y a n")],
        ("y",),
    ),
    Program(
        "triad",
        MEMORY,
        lambda: {"b": rng().random(4 * M), "c": rng().random(4 * M), "a": np.zeros(4 * M)},
        {"q": np.float64(3), "n": 4 * M},
        [Launch("triad", (1024,), (256,), "b c a q n")],
        ("a",),
    ),
    Program(
        "reduction",
        MEMORY,
        lambda: {"x": floats(16 * M), "parts": zeros(1024), "out": zeros(1)},
        {"n": 16 * M, "count": 1024},
        [Launch("partial", (1024,), (256,), "x parts n"), Launch("total", (1,), (32,), "parts out count")],
        ("out",),
        1e-3,
    ),
    Program(
        "scan",
        MEMORY,
        lambda: {"x": ints(100, 8 * M), "out": zeros(8 * M, dtype=np.int32), "sums": zeros(8192, dtype=np.int32)},
        {"n": 8 * M, "count": 8192},
        [
            Launch("scan_parts", (8192,), (256,), "x out sums"),
            Launch("scan_sums", (1,), (256,), "sums count"),
            Launch("add_sums", (8192,), (256,), "out sums"),
        ],
        ("out",),
    ),
    Program(
        "histogram",
        COMPUTE,
        lambda: {"x": ints(256, 8 * M, dtype=np.uint8), "bins": zeros(256, dtype=np.uint32)},
        {"n": 8 * M},
        [Launch("clear", (1,), (256,), "bins"), Launch("histogram", (256,), (256,), "x bins n")],
        ("bins",),
    ),
    Program(
        "matmul",
        COMPUTE,
        lambda: {"a": floats(768, 768), "b": floats(768, 768), "c": zeros(768, 768)},
        {"n": 768},
        [Launch("matmul", (48, 48), (16, 16), "a b c n")],
        ("c",),
    ),
    Program(
        "transpose",
        MEMORY,
        lambda: {"x": floats(2048, 2048), "out": zeros(2048, 2048)},
        {"n": 2048},
        [Launch("transpose", (64, 64), (32, 8), "x out n")],
        ("out",),
    ),
    Program(
        "jacobi2d",
        MEMORY,
        lambda: twice(floats(2048, 2048)),
        {"n": 2048},
        there_and_back("step", (64, 256), (32, 8), 5),
        ("x",),
    ),
    Program(
        "heat3d",
        MEMORY,
        lambda: twice(floats(160, 160, 160)),
        {"n": 160},
        there_and_back("step", (5, 20), (32, 8), 3),
        ("x",),
    ),
    Program(
        "nbody",
        COMPUTE,
        lambda: {"bodies": floats(4096, 4), "out": zeros(4096, 4)},
        {"n": 4096},
        [Launch("forces", (32,), (128,), "bodies out n")],
        ("out",),
        1e-4,
    ),
    Program(
        "mandelbrot",
        COMPUTE,
        lambda: {"out": zeros(768, 768, dtype=np.int32)},
        {"n": 768},
        [Launch("mandelbrot", (24, 96), (32, 8), "out n")],
        ("out",),
        1e-2,
    ),
    Program(
        "black_scholes",
        COMPUTE,
        lambda: {
            "price": 5 + 25 * floats(M),
            "strike": 1 + 99 * floats(M),
            "years": 0.25 + 9 * floats(M),
            "call": zeros(M),
            "put": zeros(M),
        },
        {"n": M},
        [Launch("options", (M // 256,), (256,), "price strike years call put n")],
        ("call", "put"),
    ),
    Program(
        "monte_carlo",
        COMPUTE,
        lambda: {"out": zeros(1 << 16, dtype=np.int32)},
        {"n": 1 << 16, "count": 500},
        [Launch("points", (256,), (256,), "out n count")],
        ("out",),
    ),
    Program(
        "convolution",
        COMPUTE,
        lambda: {"x": floats(1024, 1024), "weights": floats(49), "out": zeros(1024, 1024)},
        {"n": 1024},
        [Launch("convolve", (32, 64), (32, 16), "x weights out n")],
        ("out",),
    ),
    Program(
        "spmv",
        MEMORY,
        lambda: {**sparse(1 << 17, 64), "x": floats(1 << 17), "y": zeros(1 << 17)},
        {"n": 1 << 17},
        [Launch("spmv", (1 << 14,), (256,), "starts columns values x y n")],
        ("y",),
    ),
    Program(
        "bfs",
        MEMORY,
        lambda: {**graph(1 << 18, 8), "levels": zeros(1 << 18, dtype=np.int32)},
        {"n": 1 << 18},
        [
            Launch("begin", (1024,), (256,), "levels n"),
            *(Launch("level", (1024,), (256,), f"starts targets levels {depth} n") for depth in range(8)),
        ],
        ("levels",),
    ),
    Program(
        "kmeans",
        COMPUTE,
        lambda: {
            "points": floats(M, 4),
            "means": floats(16, 4),
            "sums": zeros(64),
            "counts": zeros(16, dtype=np.int32),
        },
        {"n": M},
        [Launch("begin", (1,), (64,), "sums counts"), Launch("assign", (256,), (256,), "points means sums counts n")],
        ("sums", "counts"),
        1e-3,
    ),
    Program(
        "sort_blocks",
        COMPUTE,
        lambda: {"x": ints(1 << 30, M), "out": zeros(M, dtype=np.int32)},
        {"n": M},
        [Launch("sort_blocks", (2048,), (256,), "x out")],
        ("out",),
    ),
    Program(
        "softmax",
        BOTH,
        lambda: {"x": floats(2048, 1024), "out": zeros(2048, 1024)},
        {"rows": 2048, "columns": 1024},
        [Launch("softmax", (2048,), (256,), "x out columns")],
        ("out",),
    ),
    Program(
        "layer_norm",
        BOTH,
        lambda: {
            "x": floats(4096, 1024),
            "weight": floats(1024),
            "bias": floats(1024),
            "out": zeros(4096, 1024),
        },
        {"rows": 4096, "columns": 1024},
        [Launch("layer_norm", (4096,), (128,), "x weight bias out columns")],
        ("out",),
        1e-4,
    ),
    Program(
        "gemv",
        MEMORY,
        lambda: {"a": rng().random((2048, 2048)), "x": rng().random(2048), "y": np.zeros(2048)},
        {"rows": 2048, "columns": 2048},
        [Launch("gemv", (512,), (32, 4), "a x y columns")],
        ("y",),
    ),
    Program(
        "fft",
        COMPUTE,
        lambda: {"x": floats(1024, 1024, 2), "roots": roots_of_unity(1024), "out": zeros(1024, 1024, 2)},
        {"batches": 1024},
        [Launch("fft", (1024,), (256,), "x roots out")],
        ("out",),
    ),
    Program(
        "life",
        COMPUTE,
        lambda: twice(ints(2, 2048, 2048, dtype=np.uint8)),
        {"n": 2048},
        there_and_back("generation", (64, 256), (32, 8), 5),
        ("x",),
    ),
    Program(
        "alignment",
        COMPUTE,
        lambda: {
            "a": ints(4, 1024, 128, dtype=np.int8),
            "b": ints(4, 1023, 128, dtype=np.int8)[[*range(1023), 0]],
            "scores": zeros(1024, dtype=np.int32),
        },
        {"pairs": 1024},
        [Launch("align", (1024,), (128,), "a b scores")],
        ("scores",),
    ),
    Program(
        "ray_tracer",
        COMPUTE,
        lambda: {"spheres": floats(64, 4) * [8, 8, 8, 1] - [4, 4, -4, -0.2], "out": zeros(512, 512)},
        {"count": 64, "n": 512},
        [Launch("trace", (16, 64), (32, 8), "spheres out count n")],
        ("out",),
        1e-3,
    ),
    Program(
        "floyd_warshall",
        MEMORY,
        lambda: {"d": floats(512, 512)},
        {"n": 512},
        [Launch("relax", (2, 512), (256,), f"d {k} n") for k in range(512)],
        ("d",),
    ),
    Program(
        "hashes",
        COMPUTE,
        lambda: {"x": ints(1 << 31, 4 * M, dtype=np.uint32), "out": zeros(4 * M, dtype=np.uint32)},
        {"n": 4 * M},
        [Launch("hashes", (4 * M // 256,), (256,), "x out n")],
        ("out",),
    ),
    Program(
        "tridiagonal",
        MEMORY,
        lambda: {
            "b": 3 + floats(128, 8192),
            "d": floats(128, 8192),
            "c": zeros(128, 8192),
            "x": zeros(128, 8192),
        },
        {"systems": 8192, "n": 128},
        [Launch("solve", (64,), (128,), "b d c x systems n")],
        ("x",),
    ),
]
