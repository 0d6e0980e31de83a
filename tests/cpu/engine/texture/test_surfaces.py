"""Surfaces: what CUDA C++ makes of them, what PTX says beyond, and what is outside."""

from __future__ import annotations

import numpy as np
import pytest

from tests.cpu.engine.kernels import run
from tests.cpu.engine.texture.texturing import Sampler, fetch, textures

SOURCE = r"""
#define CAT(a, b) a##b
#define MODE(m) CAT(cudaBoundaryMode, m)
#define KERNELS(type, m) \
    extern "C" __global__ void read_1d_##type##_##m(cudaSurfaceObject_t s, type *out) { \
        int x = (int)threadIdx.x - 2; out[threadIdx.x] = surf1Dread<type>(s, x * (int)sizeof(type), MODE(m)); } \
    extern "C" __global__ void read_2d_##type##_##m(cudaSurfaceObject_t s, type *out) { \
        int x = (int)threadIdx.x - 2, y = (int)blockIdx.x - 2; \
        out[blockIdx.x * blockDim.x + threadIdx.x] = surf2Dread<type>(s, x * (int)sizeof(type), y, MODE(m)); } \
    extern "C" __global__ void read_3d_##type##_##m(cudaSurfaceObject_t s, type *out) { \
        int x = (int)threadIdx.x - 2, y = (int)threadIdx.y - 2, z = (int)blockIdx.x - 2; \
        out[(blockIdx.x * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x] = \
            surf3Dread<type>(s, x * (int)sizeof(type), y, z, MODE(m)); }
KERNELS(uchar1, Clamp) KERNELS(uchar1, Zero) KERNELS(short4, Clamp) KERNELS(short4, Zero)
KERNELS(float4, Clamp) KERNELS(float4, Zero) KERNELS(longlong2, Clamp) KERNELS(longlong2, Zero)
"""

ELEMENTS = {"uchar1": ("u1", 1), "short4": ("i2", 4), "float4": ("f4", 4), "longlong2": ("u4", 4)}
EXTENTS = {"1d": (9,), "2d": (5, 9), "3d": (3, 5, 9)}
"""x last."""


def random_texels(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = np.frombuffer(np.random.default_rng(size).bytes(size), np.uint8)
    if dtype == "f4":
        raw = raw & 0x3F  # no NaNs
    return raw.view(dtype).reshape(shape).copy()


@pytest.mark.parametrize("mode", ["Clamp", "Zero"])
@pytest.mark.parametrize("type", ELEMENTS)
@pytest.mark.parametrize("shape", EXTENTS)
def test_reads_inside_and_outside(engine: str, shape: str, type: str, mode: str) -> None:
    """``suld``, of one to four elements."""
    dtype, channels = ELEMENTS[type]
    extents = EXTENTS[shape]
    texels = random_texels((*extents, channels), dtype)
    wide = tuple(n + 4 for n in extents)
    out = np.zeros((*wide, channels), dtype)
    grid, block = {1: (1, wide[-1]), 2: (wide[0], wide[-1]), 3: (wide[0], wide[:0:-1])}[len(extents)]
    with textures() as made:
        surface = made.surface(made.array(texels, shape, "surface"))
        run(SOURCE + engine, f"read_{shape}_{type}_{mode}", grid, block, surface, out)
    padding = [(2, 2)] * len(extents) + [(0, 0)]
    np.testing.assert_array_equal(out, np.pad(texels, padding, "edge" if mode == "Clamp" else "constant"))


WRITES = r"""
#pragma nv_diag_suppress 177
#define AT int x = threadIdx.x, y = blockIdx.x, z = blockIdx.y;
extern "C" __global__ void write_1d(cudaSurfaceObject_t s) { AT surf1Dwrite<int>(x + 1, s, 4 * x); }
extern "C" __global__ void write_2d(cudaSurfaceObject_t s) { AT surf2Dwrite<int>(x + 10 * y, s, 4 * x, y); }
extern "C" __global__ void write_3d(cudaSurfaceObject_t s) {
    AT surf3Dwrite<int>(x + 10 * y + 100 * z, s, 4 * x, y, z);
}
extern "C" __global__ void write_a1d(cudaSurfaceObject_t s) { AT surf1DLayeredwrite<int>(x + 100 * z, s, 4 * x, z); }
extern "C" __global__ void write_a2d(cudaSurfaceObject_t s) {
    AT surf2DLayeredwrite<int>(x + 10 * y + 100 * z, s, 4 * x, y, z);
}
extern "C" __global__ void write_cube(cudaSurfaceObject_t s) {
    AT surfCubemapwrite<int>(x + 10 * y + 100 * z, s, 4 * x, y, z);
}
extern "C" __global__ void copy_a2d(cudaSurfaceObject_t s, int *out) {
    AT out[(z * gridDim.x + y) * blockDim.x + x] = surf2DLayeredread<int>(s, 4 * x, y, z);
}
extern "C" __global__ void write_outside(cudaSurfaceObject_t s) {
    int x = (int)threadIdx.x - 2, y = (int)blockIdx.x - 2;
    surf2Dwrite<int>(7 + x, s, 4 * x, y, cudaBoundaryModeZero);
}
"""


@pytest.mark.parametrize("shape", ["1d", "2d", "3d", "a1d", "a2d", "cube"])
def test_writes(engine: str, shape: str) -> None:
    width, height, slices = 5, 1 if shape in ("1d", "a1d") else 5, {"1d": 1, "2d": 1, "cube": 6}.get(shape, 3)
    z, y, x = np.indices((slices, height, width), np.int32)
    expected = x + 1 if shape == "1d" else x + 10 * y + 100 * z
    flags = {"a": ["layered"], "c": ["cubemap"]}.get(shape[0], [])
    extents = (*([slices] if slices > 1 else []), *([height] if height > 1 else []), width)
    dimensions = "2d" if shape == "cube" else shape[-2:]
    with textures() as made:
        array = made.array(np.zeros((*extents, 1), np.int32), dimensions, "surface", *flags)
        run(WRITES + engine, f"write_{shape}", (height, slices), width, made.surface(array))
        found = fetch(array, np.zeros((slices, height, width, 1), np.int32))[..., 0]
        np.testing.assert_array_equal(found, expected)
        if shape in ("a2d", "cube"):
            out = np.zeros_like(expected)
            run(WRITES + engine, "copy_a2d", (height, slices), width, made.surface(array), out)
            np.testing.assert_array_equal(out, expected)


def test_writes_outside_are_dropped() -> None:
    with textures() as made:
        array = made.array(np.full((4, 6, 1), -1, np.int32), "2d", "surface")
        run(WRITES, "write_outside", 8, 10, made.surface(array))
        found = fetch(array, np.zeros((4, 6, 1), np.int32))[..., 0]
    np.testing.assert_array_equal(found, np.broadcast_to(7 + np.arange(6), (4, 6)))


def test_textures_see_what_surfaces_wrote() -> None:
    """In the next kernel."""
    source = r"""
    extern "C" __global__ void write(cudaSurfaceObject_t s) {
        surf2Dwrite<float>(threadIdx.x + 0.5f * blockIdx.x, s, 4 * threadIdx.x, blockIdx.x);
    }
    extern "C" __global__ void read(cudaTextureObject_t t, float *out) {
        out[blockIdx.x * blockDim.x + threadIdx.x] = tex2D<float>(t, threadIdx.x + 1.0f, blockIdx.x + 0.5f);
    }"""
    out = np.zeros((4, 7), np.float32)
    with textures() as made:
        array = made.array(np.zeros((4, 8, 1), np.float32), "2d", "surface")
        run(source, "write", 4, 8, made.surface(array))
        run(source, "read", 4, 7, made.of_array(array, Sampler(linear=True)), out)
    np.testing.assert_allclose(out, np.arange(7) + 0.5 + 0.5 * np.arange(4)[:, None], atol=0.01)


# --- PTX ----------------------------------------------------------------------------------------------------------

PTX = r"""
extern "C" __global__ void formatted(cudaSurfaceObject_t s, float scale) {
    int x = threadIdx.x, y = blockIdx.x;
    float r = scale * x, g = scale * y, b = 0.5f, a = -1.0f;
    asm volatile("sust.p.2d.v4.b32.trap [%0, {%1, %2}], {%3, %4, %5, %6};"
        :: "l"(s), "r"(x), "r"(y), "f"(r), "f"(g), "f"(b), "f"(a));
}
extern "C" __global__ void formatted_integers(cudaSurfaceObject_t s) {
    int x = threadIdx.x, y = blockIdx.x;
    asm volatile("sust.p.2d.v2.b32.zero [%0, {%1, %2}], {%3, %4};" :: "l"(s), "r"(x), "r"(y), "r"(10 * x), "r"(10 * y));
}
#define REDUCE(name, operation, value) \
    extern "C" __global__ void name(cudaSurfaceObject_t s) { \
        int x = threadIdx.x, v = value; \
        asm volatile("sured." operation " [%0, {%1, %2}], %3;" :: "l"(s), "r"(x % 4 * UNIT), "r"(0), "r"(v)); }
#define UNIT 4
REDUCE(reduce_add, "b.add.2d.u32.trap", x)
REDUCE(reduce_min, "b.min.2d.s32.zero", 3 - x)
REDUCE(reduce_max, "b.max.2d.u32.clamp", 3 - x)
REDUCE(reduce_and, "b.and.2d.b32.trap", ~(1 << x % 8))
REDUCE(reduce_or, "b.or.2d.b32.trap", 1 << x % 16)
#undef UNIT
#define UNIT 1
REDUCE(sample_add, "p.add.2d.b32.trap", x)
REDUCE(sample_min, "p.min.2d.b32.trap", 3 - x)
extern "C" __global__ void queries(cudaSurfaceObject_t s, int *out) {
    asm volatile("suq.width.b32 %0, [%1];" : "=r"(out[0]) : "l"(s));
    asm volatile("suq.height.b32 %0, [%1];" : "=r"(out[1]) : "l"(s));
}
"""


def test_formatted_stores() -> None:
    with textures() as made:
        halves = made.array(np.zeros((4, 8, 4), np.float16), "2d", "surface")
        run(PTX, "formatted", 4, 8, made.surface(halves), np.float32(0.25))
        found = fetch(halves, np.zeros((4, 8, 4), np.float16))
        integers = made.array(np.zeros((4, 8, 2), np.int16), "2d", "surface")
        run(PTX, "formatted_integers", 4, 8, made.surface(integers))
        whole = fetch(integers, np.zeros((4, 8, 2), np.int16))
    y, x = np.indices((4, 8))
    np.testing.assert_array_equal(found, np.stack([x / 4, y / 4, 0 * x + 0.5, 0 * x - 1], axis=-1))
    np.testing.assert_array_equal(whole, np.stack([10 * x, 10 * y], axis=-1))


@pytest.mark.parametrize(
    ("name", "dtype"),
    [(f"reduce_{o}", "u4") for o in ("add", "max", "and", "or")]
    + [("reduce_min", "i4"), ("sample_add", "u4"), ("sample_min", "i4"), ("sample_min", "u4")],
)
def test_reductions(engine: str, name: str, dtype: str) -> None:
    start = np.array([[5, 100, 0xFF, 7]], dtype)
    with textures() as made:
        array = made.array(start[..., None], "2d", "surface")
        run(PTX + engine, name, 1, 64, made.surface(array))
        found = fetch(array, np.zeros((1, 4, 1), dtype))[0, :, 0]
    lanes = np.arange(64)
    operation = name.split("_")[1]
    value = {
        "add": lanes, "min": 3 - lanes, "max": 3 - lanes, "and": ~(1 << lanes % 8), "or": 1 << lanes % 16,
    }[operation].astype(np.int32).view(dtype)  # fmt: skip
    function = {
        "add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or,
    }[operation]  # fmt: skip
    expected = start[0].copy()
    for lane in lanes:
        expected[lane % 4] = function(expected[lane % 4], value[lane])
    np.testing.assert_array_equal(found, expected)


def test_queries() -> None:
    out = np.zeros(2, np.int32)
    with textures() as made:
        run(PTX, "queries", 1, 1, made.surface(made.array(np.zeros((6, 10, 1), np.int32), "2d", "surface")), out)
    assert list(out) == [10, 6]
