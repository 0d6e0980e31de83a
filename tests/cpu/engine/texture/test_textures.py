"""Textures: what CUDA C++ makes of them and PTX says about them, against the formulas of the CUDA C++ Programming Guide
("Texture Fetching") written down once more in Python."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from cupola import Device, LaunchConfig, ObjectCode, launch
from cupola.bindings import driver
from tests.cpu.driver.calls import ok
from tests.cpu.engine.kernels import copy_to_host, run, run_kernel
from tests.cpu.engine.texture.texturing import Sampler, textures

SOURCE = r"""
#pragma nv_diag_suppress 177
#define AT int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return;
#define KERNEL(name, call) \
    extern "C" __global__ void name(cudaTextureObject_t t, float4 *out, const float *c, int n) { \
        AT const float x = c[8 * i], y = c[8 * i + 1], z = c[8 * i + 2], l = c[8 * i + 3]; \
        const float *g = c + 8 * i; out[i] = call; }
KERNEL(tex_1d, tex1D<float4>(t, x))
KERNEL(tex_2d, tex2D<float4>(t, x, y))
KERNEL(tex_3d, tex3D<float4>(t, x, y, z))
KERNEL(tex_a1d, tex1DLayered<float4>(t, x, (int)l))
KERNEL(tex_a2d, tex2DLayered<float4>(t, x, y, (int)l))
KERNEL(tex_cube, texCubemap<float4>(t, x, y, z))
KERNEL(tex_acube, texCubemapLayered<float4>(t, x, y, z, (int)l))
KERNEL(lod_1d, tex1DLod<float4>(t, x, l))
KERNEL(lod_2d, tex2DLod<float4>(t, x, y, l))
KERNEL(lod_3d, tex3DLod<float4>(t, x, y, z, l))
KERNEL(lod_cube, texCubemapLod<float4>(t, x, y, z, l))
KERNEL(grad_2d, tex2DGrad<float4>(t, x, y, make_float2(g[4], g[5]), make_float2(g[6], g[7])))
KERNEL(gather_0, tex2Dgather<float4>(t, x, y, 0))
KERNEL(gather_1, tex2Dgather<float4>(t, x, y, 1))
KERNEL(gather_2, tex2Dgather<float4>(t, x, y, 2))
KERNEL(gather_3, tex2Dgather<float4>(t, x, y, 3))
KERNEL(fetch_1d, tex1Dfetch<float4>(t, (int)x))
"""
"""Each thread has eight numbers: coordinates, layer or level, gradients."""


def lookup(name: str, texture: np.uint64, coordinates: np.ndarray, source: str = SOURCE) -> np.ndarray:
    """What a kernel reads of a texture at rows of coordinates."""
    rows = np.zeros((len(coordinates), 8), np.float32)
    rows[:, : coordinates.shape[1]] = coordinates
    out = np.full((len(rows), 4), np.nan, np.float32)
    run(source, name, -(-len(rows) // 64), 64, texture, out, rows, np.int32(len(rows)))
    return out


# --- the formulas -------------------------------------------------------------------------------------------------


def resolve(index: int, extent: int, address: str) -> int | None:
    """The texel for an index beyond the edge; None: the border."""
    if 0 <= index < extent:
        return index
    if address == "wrap":
        return index % extent
    if address == "mirror":
        index %= 2 * extent
        return index if index < extent else 2 * extent - 1 - index
    return None if address == "border" else min(max(index, 0), extent - 1)


def sample(texels: np.ndarray, at: tuple[float, ...], sampler: Sampler) -> np.ndarray:
    """A texel, or a mixture: ``texels`` has the axes [z][y][x][channel] or fewer, ``at`` begins with x.

    A 1D texture is the row y = 0 of a 2D one: half of what a filter gives is from above.
    """
    if texels.ndim == 2 and sampler.linear and sampler.address == "border":
        texels, at = texels[None], (*at, 0.0)
    extents = texels.shape[-2::-1]
    position = [float(a) * n if sampler.normalized else float(a) for a, n in zip(at, extents, strict=True)]
    choices = []
    for p, n in zip(position, extents, strict=True):
        if sampler.linear:
            first = math.floor(p - 0.5)
            weight = round((p - 0.5 - first) * 256) / 256
            choices.append([(first, 1 - weight), (first + 1, weight)])
        else:
            choices.append([(math.floor(p), 1.0)])
        choices[-1] = [(resolve(i, n, sampler.address), w) for i, w in choices[-1]]
    total = np.zeros(texels.shape[-1])
    for corner in product(*choices):
        indices, weights = zip(*corner, strict=True)
        if None in indices:
            texel = np.array(sampler.border[: texels.shape[-1]])
        else:
            texel = texels[tuple(indices[::-1])].astype(np.float64)
        total += np.prod(weights) * texel
    return total


def random_texels(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    rng = np.random.default_rng(sum(shape))
    if dtype[0] == "f":
        return rng.uniform(-1, 1, shape).astype(dtype)
    information = np.iinfo(dtype)
    return rng.integers(information.min, information.max, shape, dtype, endpoint=True)


def as_floats(texels: np.ndarray) -> np.ndarray:
    """Integers as parts of the largest one."""
    if texels.dtype.kind == "f":
        return texels.astype(np.float64)
    parts: np.ndarray = np.maximum(texels.astype(np.float64) / np.iinfo(texels.dtype).max, -1)
    return parts


def points(dimensions: int, extents: tuple[int, ...], *, normalized: bool, count: int = 150) -> np.ndarray:
    """Coordinates inside and outside, not so near to where texels meet that the last bit counts."""
    rng = np.random.default_rng(dimensions)
    whole = np.stack([rng.integers(-n, 2 * n, count) for n in extents], axis=1)
    at = whole + rng.choice([0.125, 0.25, 0.375, 0.625, 0.75, 0.875], whole.shape)
    return (at / np.array(extents) if normalized else at).astype(np.float32)


SHAPES = {"1d": (16,), "2d": (16, 8), "3d": (8, 4, 16)}
"""Extents, x first; powers of two, by which normalized coordinates are exact."""


@pytest.mark.parametrize("linear", [False, True], ids=["point", "linear"])
@pytest.mark.parametrize("address", ["wrap", "clamp", "mirror", "border"])
@pytest.mark.parametrize("shape", SHAPES)
def test_filters_and_address_modes(engine: str, shape: str, address: str, linear: bool) -> None:
    normalized = address in ("wrap", "mirror")
    extents = SHAPES[shape]
    sampler = Sampler(address, linear=linear, normalized=normalized, border=(0.5, -0.25, 0.75, 2.0))
    texels = random_texels((*extents[::-1], 4), "f4")
    at = points(len(extents), extents, normalized=normalized)
    with textures() as made:
        found = lookup(f"tex_{shape}", made.of(texels, shape, sampler=sampler), at, SOURCE + engine)
    expected = np.array([sample(texels, tuple(row), sampler) for row in at])
    if linear:
        np.testing.assert_allclose(found, expected, atol=0.01)
    else:
        np.testing.assert_array_equal(found, expected.astype(np.float32))


@pytest.mark.parametrize("dtype", ["u1", "i1", "u2", "i2"])
@pytest.mark.parametrize("linear", [False, True], ids=["point", "linear"])
def test_integers_as_floats(dtype: str, linear: bool) -> None:
    sampler = Sampler(linear=linear)
    texels = random_texels((8, 16, 4), dtype)
    texels[0, 0] = np.iinfo(dtype).min
    at = points(2, (16, 8), normalized=False)
    with textures() as made:
        found = lookup("tex_2d", made.of(texels, "2d", sampler=sampler), at)
    expected = np.array([sample(as_floats(texels), tuple(row), sampler) for row in at])
    np.testing.assert_allclose(found, expected, atol=0.01 if linear else 1e-6)


def test_halves() -> None:
    texels = random_texels((8, 16, 4), "f2")
    at = points(2, (16, 8), normalized=False)
    with textures() as made:
        found = lookup("tex_2d", made.of(texels, "2d"), at)
    np.testing.assert_array_equal(found, np.array([sample(texels, tuple(row), Sampler()) for row in at], np.float32))


def test_srgb() -> None:
    texels = np.arange(1024, dtype=np.uint8).reshape(16, 16, 4)
    at = np.array([(x + 0.5, y + 0.5) for y in range(16) for x in range(16)], np.float32)
    with textures() as made:
        found = lookup("tex_2d", made.of(texels, "2d", sampler=Sampler(srgb=True)), at).reshape(16, 16, 4)
    part = texels / 255
    expected = np.where(part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4)
    np.testing.assert_allclose(found[..., :3], expected[..., :3], rtol=2**-7)  # eight bits of mantissa
    np.testing.assert_allclose(found[..., 3], part[..., 3], atol=1e-6)


INTEGERS = r"""
#define KERNEL(name, type) extern "C" __global__ void name(cudaTextureObject_t t, type *out, int w, int n) { \
    int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) out[i] = tex2D<type>(t, i % w + 0.5f, i / w + 0.5f); }
KERNEL(u1, uchar4) KERNEL(i1, char4) KERNEL(u2, ushort4) KERNEL(i2, short4) KERNEL(u4, uint4) KERNEL(i4, int4)
KERNEL(u1_2, uchar2) KERNEL(i2_2, short2) KERNEL(u4_2, uint2) KERNEL(u1_1, unsigned char) KERNEL(i2_1, short)
KERNEL(i4_1, int)
"""


@pytest.mark.parametrize(
    ("dtype", "channels"),
    [*((d, 4) for d in ("u1", "i1", "u2", "i2", "u4", "i4")), ("u1", 2), ("i2", 2), ("u4", 2), ("u1", 1), ("i2", 1)]
    + [("i4", 1)],
)
def test_integers(dtype: str, channels: int) -> None:
    texels = random_texels((5, 7, channels), dtype)
    out = np.zeros_like(texels)
    name = dtype if channels == 4 else f"{dtype}_{channels}"
    with textures() as made:
        run(
            INTEGERS,
            name,
            2,
            32,
            made.of(texels, "2d", sampler=Sampler(as_integer=True)),
            out,
            np.int32(7),
            np.int32(35),
        )
    np.testing.assert_array_equal(out, texels)


@pytest.mark.parametrize("dtype", ["u1", "i1", "u2", "i2", "u4", "i4"])
def test_integers_are_mixed(dtype: str) -> None:
    """Halfway between four of them; CUDA documents that it refuses to."""
    texels = random_texels((6, 8, 4), dtype)
    out = np.zeros((5, 7, 4), dtype)
    source = INTEGERS.replace("0.5f", "1.0f")
    with textures() as made:
        texture = made.of(texels, "2d", sampler=Sampler(as_integer=True, linear=True))
        run(source, dtype, 2, 32, texture, out, np.int32(7), np.int32(35))
    sums = sum(texels[y : y + 5, x : x + 7].astype(np.int64) for y in (0, 1) for x in (0, 1))
    rounded = 2 if np.dtype(dtype).itemsize < 4 else 0
    np.testing.assert_array_equal(out, (sums + rounded) >> 2)


@pytest.mark.parametrize("shape", ["a1d", "a2d"])
@pytest.mark.parametrize("linear", [False, True], ids=["point", "linear"])
def test_layers(shape: str, linear: bool) -> None:
    extents = SHAPES[shape[1:]]
    sampler = Sampler(linear=linear)
    texels = random_texels((5, *extents[::-1], 4), "f4")
    at = np.zeros((150, 4), np.float32)
    at[:, : len(extents)] = points(len(extents), extents, normalized=False)
    at[:, 3] = np.arange(150) % 9  # layers beyond the last one stand for it
    with textures() as made:
        texture = made.of(texels, shape[1:], "layered", sampler=sampler)
        found = lookup(f"tex_{shape}", texture, at)
    expected = [sample(texels[min(int(row[3]), 4)], tuple(row[: len(extents)]), sampler) for row in at]
    np.testing.assert_allclose(found, expected, atol=0.01 if linear else 0)


# --- memory of the device -----------------------------------------------------------------------------------------


def test_linear_memory(engine: str) -> None:
    texels = random_texels((100, 4), "f4")
    at = np.arange(-10, 120, dtype=np.float32)[:, None]
    with textures() as made:
        found = lookup("fetch_1d", made.linear(texels), at, SOURCE + engine)
    expected = np.zeros((130, 4), np.float32)  # zero outside
    expected[10:110] = texels
    np.testing.assert_array_equal(found, expected)


def test_pitched_memory() -> None:
    sampler = Sampler(linear=True)
    texels = random_texels((8, 16, 4), "f4")
    at = points(2, (16, 8), normalized=False)
    with textures() as made:
        found = lookup("tex_2d", made.pitched(texels, sampler), at)
    np.testing.assert_allclose(found, [sample(texels, tuple(row), sampler) for row in at], atol=0.01)


# --- levels -------------------------------------------------------------------------------------------------------


def levels_of(extents: tuple[int, ...], count: int) -> list[np.ndarray]:
    return [
        random_texels((*(max(1, n >> level) for n in extents[::-1]), 4), "f4") + np.float32(10 * level)
        for level in range(count)
    ]


def sample_level(levels: list[np.ndarray], at: tuple[float, ...], level: float, sampler: Sampler) -> np.ndarray:
    level = min(max(level + sampler.bias, sampler.least_level), sampler.last_level, len(levels) - 1)
    if not sampler.mipmap_linear:
        return sample(levels[math.floor(level + 0.5)], at, sampler)
    first = math.floor(level)
    part = level - first
    result = (1 - part) * sample(levels[first], at, sampler)
    return result + part * sample(levels[first + 1], at, sampler) if part else result


@pytest.mark.parametrize("shape", ["1d", "2d", "3d"])
@pytest.mark.parametrize("mipmap_linear", [False, True], ids=["nearest", "between"])
def test_levels(shape: str, mipmap_linear: bool) -> None:
    extents = {"1d": (32,), "2d": (32, 16), "3d": (16, 16, 16)}[shape]
    sampler = Sampler(
        normalized=True, linear=True, mipmap_linear=mipmap_linear, bias=0.25, least_level=0.375, last_level=3.625
    )
    levels = levels_of(extents, 5)
    at = np.zeros((200, 4), np.float32)
    at[:, : len(extents)] = points(len(extents), extents, normalized=True, count=200)
    at[:, 3] = np.random.default_rng(4).integers(-8, 40, 200) / 8 + 1 / 16
    with textures() as made:
        found = lookup(f"lod_{shape}", made.of_array(made.mipmapped(levels, shape), sampler), at)
    expected = [sample_level(levels, tuple(row[: len(extents)]), float(row[3]), sampler) for row in at]
    np.testing.assert_allclose(found, expected, atol=0.08)


def test_gradients() -> None:
    sampler = Sampler(normalized=True, linear=True, last_level=4)
    levels = levels_of((64, 32), 5)
    rng = np.random.default_rng(1)
    at = np.zeros((200, 8), np.float32)
    at[:, :2] = points(2, (64, 32), normalized=True, count=200)
    steps = 2.0 ** rng.choice([-1, 0, 1.2, 1.8, 2.3, 3.1, 6], 200)  # texels from pixel to pixel
    turned = rng.integers(0, 2, 200)
    at[:, 4] = np.where(turned, steps / 64, 0.25 / 64)
    at[:, 7] = np.where(turned, 0.25 / 32, steps / 32)
    with textures() as made:
        found = lookup("grad_2d", made.of_array(made.mipmapped(levels, "2d"), sampler), at)
    expected = [
        sample_level(levels, tuple(row[:2]), math.log2(step), sampler) for row, step in zip(at, steps, strict=True)
    ]
    np.testing.assert_allclose(found, expected, atol=0.05)


def test_without_a_level_it_is_the_first() -> None:
    levels = levels_of((32, 16), 3)
    sampler = Sampler(normalized=True, last_level=2)
    at = points(2, (32, 16), normalized=True)
    with textures() as made:
        found = lookup("tex_2d", made.of_array(made.mipmapped(levels, "2d"), sampler), at)
    np.testing.assert_array_equal(found, np.array([sample(levels[0], tuple(row), sampler) for row in at], np.float32))


# --- cubemaps -----------------------------------------------------------------------------------------------------


def on_face(x: float, y: float, z: float) -> tuple[int, float, float]:
    """The table of the Programming Guide: face and coordinates from 0 to 1."""
    m = max(abs(x), abs(y), abs(z))
    if m == abs(x):
        face, s, t = (0, -z, -y) if x >= 0 else (1, z, -y)
    elif m == abs(y):
        face, s, t = (2, x, z) if y >= 0 else (3, x, -z)
    else:
        face, s, t = (4, x, -y) if z >= 0 else (5, -x, -y)
    return face, (s / m + 1) / 2, (t / m + 1) / 2


def directions(count: int, margin: int = 0) -> np.ndarray:
    """Towards points of the faces that are no edges of texels of a cube with 8, and so many texels from its edges."""
    rng = np.random.default_rng(6)
    found: list[np.ndarray] = []
    while len(found) < count:
        minor = (rng.integers(margin, 8 - margin, 2) + rng.choice([0.25, 0.375, 0.625, 0.75], 2)) / 4 - 1
        axis, sign = rng.integers(0, 3), rng.choice([-1, 1])
        found.append(np.insert(minor, axis, sign) * 2.0 ** rng.integers(-3, 4))
    return np.array(found, np.float32)


@pytest.mark.parametrize("linear", [False, True], ids=["point", "linear"])
def test_cubemaps(linear: bool) -> None:
    sampler = Sampler(normalized=True, linear=linear)
    faces = random_texels((6, 8, 8, 4), "f4")
    at = directions(300, margin=int(linear))
    with textures() as made:
        found = lookup("tex_cube", made.of(faces, "2d", "cubemap", sampler=sampler), at)
    expected = []
    for row in at:
        face, s, t = on_face(*map(float, row))
        expected.append(sample(faces[face], (s, t), sampler))
    np.testing.assert_allclose(found, expected, atol=0.02 if linear else 0)


def test_layers_of_cubemaps() -> None:
    sampler = Sampler(normalized=True)
    cubes = random_texels((18, 8, 8, 4), "f4")
    at = np.concatenate([directions(200), np.arange(200)[:, None] % 5], axis=1).astype(np.float32)
    with textures() as made:
        texture = made.of(cubes, "2d", "cubemap", "layered", sampler=sampler)
        found = lookup("tex_acube", texture, at)
    expected = []
    for row in at:
        face, s, t = on_face(*map(float, row[:3]))
        expected.append(sample(cubes[6 * min(int(row[3]), 2) + face], (s, t), sampler))
    np.testing.assert_array_equal(found, np.array(expected, np.float32))


def test_filters_reach_over_the_edges_of_seamless_cubemaps() -> None:
    """A function of the direction that is smooth everywhere stays so at the edges."""
    n = 16
    faces = np.zeros((6, n, n, 4), np.float32)
    for face, row, column in product(range(6), range(n), range(n)):
        s, t = 2 * (column + 0.5) / n - 1, 2 * (row + 0.5) / n - 1
        x, y, z = [(1, -t, -s), (-1, -t, s), (s, 1, t), (s, -1, -t), (s, -t, 1), (-s, -t, -1)][face]
        length = math.hypot(x, y, z)
        faces[face, row, column] = (x / length, y / length, z / length, 1)
    rng = np.random.default_rng(3)
    at = rng.normal(size=(400, 3)).astype(np.float32)
    at[:200, 1] = at[:200, 0] * 1.02  # near the edge of two faces
    at /= np.linalg.norm(at, axis=1, keepdims=True)
    sampler = Sampler(normalized=True, linear=True, seamless=True)
    with textures() as made:
        found = lookup("tex_cube", made.of(faces, "2d", "cubemap", sampler=sampler), at)
    np.testing.assert_allclose(found[:, :3], at, atol=0.02)
    np.testing.assert_allclose(found[:, 3], 1, atol=0.005)


# --- gathers ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("component", range(4))
def test_gather(component: int) -> None:
    """What the C++ function makes of PTX is ``tld4``."""
    texels = random_texels((8, 16, 4), "f4")
    at = points(2, (16, 8), normalized=False)
    with textures() as made:
        found = lookup(f"gather_{component}", made.of(texels, "2d", "gather"), at)
    expected = []
    for x, y in at:
        i, j = math.floor(x - 0.5), math.floor(y - 0.5)
        expected.append(
            [
                texels[resolve(j + dj, 8, "clamp"), resolve(i + di, 16, "clamp"), component]
                for di, dj in [(0, 1), (1, 1), (1, 0), (0, 0)]
            ]
        )
    np.testing.assert_array_equal(found, np.array(expected))


# --- PTX ----------------------------------------------------------------------------------------------------------

PTX = r"""
extern "C" __global__ void forms(cudaTextureObject_t t, float *out, int n) {
    float x = threadIdx.x % 16 + 0.5f, y = threadIdx.x / 16 + 0.5f;
    int i = threadIdx.x % 16, j = threadIdx.x / 16, resident;
    float4 a, b, c;
    unsigned first, second;
    asm volatile("{ .reg .pred p; tex.2d.v4.f32.f32 {%0, %1, %2, %3}|p, [%5, {%6, %7}]; selp.s32 %4, 1, 0, p; }"
        : "=f"(a.x), "=f"(a.y), "=f"(a.z), "=f"(a.w), "=r"(resident) : "l"(t), "f"(x), "f"(y));
    asm volatile("tex.2d.v4.f32.f32 {%0, %1, %2, %3}, [%4, {%5, %6}], {1, -2};"
        : "=f"(b.x), "=f"(b.y), "=f"(b.z), "=f"(b.w) : "l"(t), "f"(x), "f"(y));
    asm volatile("tex.2d.v4.f32.s32 {%0, %1, %2, %3}, [%4, {%5, %6}];"
        : "=f"(c.x), "=f"(c.y), "=f"(c.z), "=f"(c.w) : "l"(t), "r"(i), "r"(j));
    asm volatile("tex.2d.v2.f16x2.f32 {%0, %1}, [%2, {%3, %4}];" : "=r"(first), "=r"(second) : "l"(t), "f"(x), "f"(y));
    float *row = out + 16 * threadIdx.x;
    ((float4 *)row)[0] = a; ((float4 *)row)[1] = b; ((float4 *)row)[2] = c;
    row[12] = __uint_as_float(first); row[13] = __uint_as_float(second); row[14] = resident;
}
extern "C" __global__ void queries(cudaTextureObject_t t, int *out, int n) {
    int width, height, depth, levels, size;
    asm volatile("txq.width.b32 %0, [%1];" : "=r"(width) : "l"(t));
    asm volatile("txq.height.b32 %0, [%1];" : "=r"(height) : "l"(t));
    asm volatile("txq.depth.b32 %0, [%1];" : "=r"(levels) : "l"(t));
    asm volatile("txq.level.width.b32 %0, [%1], 1;" : "=r"(depth) : "l"(t));
    asm volatile("txq.level.height.b32 %0, [%1], %2;" : "=r"(size) : "l"(t), "r"((int)threadIdx.x));
    int *row = out + 8 * threadIdx.x;
    row[0] = width; row[1] = height; row[2] = levels; row[3] = depth; row[4] = size;
}
extern "C" __global__ void divergent(const cudaTextureObject_t *t, float *out, int n) {
    int i = threadIdx.x;
    if (i % 3 == 0) out[i] = tex2D<float>(t[i % 2], i % 8 + 0.5f, 1.5f);
    else if (i % 3 == 1) out[i] = -tex2D<float>(t[1], 2.5f, 0.5f);
}
"""


def test_forms_of_ptx(engine: str) -> None:
    texels = random_texels((8, 16, 4), "f4")
    out = np.zeros((128, 16), np.float32)
    with textures() as made:
        run(PTX + engine, "forms", 1, 128, made.of(texels, "2d"), out, np.int32(0))
    flat = texels.reshape(128, 4)
    np.testing.assert_array_equal(out[:, :4], flat)
    moved = texels[np.clip(np.arange(8) - 2, 0, 7)][:, np.clip(np.arange(16) + 1, 0, 15)]
    np.testing.assert_array_equal(out[:, 4:8], moved.reshape(128, 4))
    np.testing.assert_array_equal(out[:, 8:12], flat)
    np.testing.assert_array_equal(out[:, 12:14].copy().view(np.float16), flat.astype(np.float16))
    assert (out[:, 14] == 1).all()


def test_queries(engine: str) -> None:
    out = np.zeros((3, 8), np.int32)
    levels = levels_of((32, 16), 3)
    with textures() as made:
        texture = made.of_array(made.mipmapped(levels, "2d"), Sampler(normalized=True, last_level=2))
        run(PTX + engine, "queries", 1, 3, texture, out, np.int32(0))
    assert (out[:, :4] == (32, 16, 0, 16)).all()
    assert list(out[:, 4]) == [16, 8, 4]


def test_threads_with_different_textures(engine: str) -> None:
    first, second = (random_texels((2, 8, 1), "f4") for _ in range(2))
    second = second + np.float32(3)
    out = np.zeros(64, np.float32)
    with textures() as made:
        objects = np.array([made.of(first, "2d"), made.of(second, "2d")], np.uint64)
        run(PTX + engine, "divergent", 1, 64, objects, out, np.int32(0))
    expected = np.zeros(64, np.float32)
    for i in range(64):
        if i % 3 == 0:
            expected[i] = (first, second)[i % 2][1, i % 8, 0]
        elif i % 3 == 1:
            expected[i] = -second[0, 2, 0]
    np.testing.assert_array_equal(out, expected)


REFERENCES = """
.version 8.0
.target sm_80
.address_size 64
.visible .global .texref picture;
.visible .entry by_pointer(.param .u64 out)
{
    .reg .b64 %o, %p;
    .reg .b32 %x;
    .reg .f32 %f<4>, %y;
    mov.u32 %x, %tid.x;
    ld.param.u64 %o, [out];
    mad.wide.u32 %o, %x, 4, %o;
    mov.u64 %p, picture;
    cvt.rn.f32.u32 %y, %x;
    tex.1d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%p, {%y}];
    st.global.f32 [%o], %f1;
    ret;
}
"""
BY_PARAMETER = """
.visible .entry by_parameter(.param .texref picture, .param .u64 out)
{
    .reg .b64 %o;
    .reg .b32 %x;
    .reg .f32 %f<4>, %y;
    mov.u32 %x, %tid.x;
    ld.param.u64 %o, [out];
    mad.wide.u32 %o, %x, 4, %o;
    cvt.rn.f32.u32 %y, %x;
    tex.1d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [picture, {%y}];
    st.global.f32 [%o], %f2;
    ret;
}
"""


INDEPENDENT = """
.version 8.0
.target sm_50, texmode_independent
.address_size 64
.visible .entry between(.param .u64 picture, .param .u64 sampler, .param .u64 out) {
    .reg .b64 %picture, %sampler, %out;
    .reg .f32 %f<6>;
    ld.param.u64 %picture, [picture];
    ld.param.u64 %sampler, [sampler];
    ld.param.u64 %out, [out];
    mov.f32 %f4, 0f3F800000;
    tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%picture, %sampler, {%f4, %f4}];
    st.global.v4.f32 [%out], {%f0, %f1, %f2, %f3};
    ret;
}
"""


def test_samplers_of_their_own() -> None:
    """In the independent mode, a GPU takes the sampler of the object, and not the other one."""
    Device(0).set_current()
    kernel = ObjectCode.from_ptx(INDEPENDENT.encode()).get_kernel("between")
    texels = np.arange(16, dtype=np.float32).reshape(4, 4, 1) * 10
    with textures() as made:
        array = made.array(texels, "2d")
        point, linear = made.of_array(array), made.of_array(array, Sampler(linear=True))
        for object, sampler, expected in [(point, linear, 50), (linear, point, 25), (point, point, 50)]:
            out = np.full(4, np.nan, np.float32)
            run_kernel(kernel, 1, 1, object, sampler, out)
            assert out.tolist() == [expected, 0, 0, 0]


@pytest.mark.parametrize("name", ["by_pointer", pytest.param("by_parameter", marks=pytest.mark.cpu_only)])
def test_references(name: str) -> None:
    """Variables and parameters of type ``.texref`` stand for the texture that they hold; drivers refuse the latter."""
    texels = random_texels((32, 4), "f4")
    device = Device(0)
    device.set_current()
    stream = device.create_stream()
    code = ObjectCode.from_ptx((REFERENCES + BY_PARAMETER * (name == "by_parameter")).encode())
    kernel = code.get_kernel(name)
    out = np.zeros(32, np.float32)
    with textures() as made, device.allocate(out.nbytes, stream=stream) as buffer:
        array = made.array(texels, "1d")
        if name == "by_pointer":
            status, module = driver.cuLibraryGetModule(int(code.handle))
            ok((status,))
            status, reference = driver.cuModuleGetTexRef(module, b"picture")
            ok((status,))
            ok(driver.cuTexRefSetArray(reference, array, driver.CU_TRSA_OVERRIDE_FORMAT))
            arguments = []
        else:
            arguments = [made.of_array(array)]
        launch(stream, LaunchConfig(grid=1, block=32), kernel, *arguments, buffer)
        copy_to_host(out, buffer, stream)
    np.testing.assert_array_equal(out, texels[:, 1 if name == "by_pointer" else 2])


QUERIES = {  # of `test_every_query`: of the texture, and of a surface of the same array
    "width": (16, 16),
    "height": (8, 8),
    "depth": (3, 3),
    "channel_data_type": (0x10D2, 0x10DA),  # UNORM_INT8 and UNSIGNED_INT8
    "channel_order": (0x10B2, 0x10B2),  # RG
    "array_size": (3, 3),
    "normalized_coords": (1, None),
    "num_mipmap_levels": (1, None),
    "num_samples": (1, None),
    "force_unnormalized_coords": (0, None),
    "filter_mode": (1, None),
    "addr_mode_0": (2, None),
    "addr_mode_1": (2, None),
    "addr_mode_2": (2, None),
    "memory_layout": (None, 0),
}


@pytest.mark.cpu_only
def test_every_query(engine: str) -> None:
    """A driver loads kernels only that ask for width, height and depth."""
    lines = []
    for index, (name, values) in enumerate(QUERIES.items()):
        for opcode, object, column, value in zip(("txq", "suq"), "ts", (0, 1), values, strict=True):
            if value is not None:
                row = f'"=r"(out[2 * {index} + {column}]) : "l"({object})'
                lines.append(f'asm volatile("{opcode}.{name}.b32 %0, [%1];" : {row});')
    source = f"""extern "C" __global__ void all(cudaTextureObject_t t, cudaSurfaceObject_t s, int *out) {{
        {" ".join(lines)} }}"""
    out = np.full((len(QUERIES), 2), -1, np.int32)
    sampler = Sampler("mirror", normalized=True, linear=True)
    with textures() as made:
        array = made.array(random_texels((3, 8, 16, 2), "u1"), "2d", "layered", "surface")
        run(source + engine, "all", 1, 1, made.of_array(array, sampler), made.surface(array), out)
    expected = [[-1 if value is None else value for value in values] for values in QUERIES.values()]
    np.testing.assert_array_equal(out, expected)


@pytest.mark.cpu_only
def test_depths_are_compared() -> None:
    """With what is not more than the texel, before texels are mixed; a GPU has depth textures for that."""
    source = r"""
    extern "C" __global__ void compared(cudaTextureObject_t t, float *out) {
        float r, x = threadIdx.x * 0.25f + 0.5f;
        asm volatile("tex.2d.v4.f32.f32 {%0, _, _, _}, [%1, {%2, %3}], %4;"
            : "=f"(r) : "l"(t), "f"(x), "f"(0.5f), "f"(0.5f));
        out[threadIdx.x] = r;
    }"""
    depths = np.array([[0.25, 0.5, 0.75, 0.25, 0.25]], np.float32)
    out = np.zeros(17, np.float32)
    with textures() as made:
        run(source, "compared", 1, 17, made.of(depths[..., None], "2d", sampler=Sampler(linear=True)), out)
    np.testing.assert_array_equal(out, np.interp(np.arange(17) / 4, np.arange(5), [0, 1, 1, 0, 0]))


@pytest.mark.cpu_only
def test_objects_are_told_apart() -> None:
    """``istypep``; of the types of objects that are no pointers to variables, a GPU says nothing."""
    source = r"""
    extern "C" __global__ void kinds(cudaTextureObject_t t, cudaSurfaceObject_t s, int *out) {
        unsigned long long objects[3] = {t, s, 16};
        for (int i = 0; i < 3; i++) asm volatile("{ .reg .pred p, q, r; istypep.texref p, %3; istypep.surfref q, %3; "
            "istypep.samplerref r, %3; selp.s32 %0, 1, 0, p; selp.s32 %1, 1, 0, q; selp.s32 %2, 1, 0, r; }"
            : "=r"(out[3 * i]), "=r"(out[3 * i + 1]), "=r"(out[3 * i + 2]) : "l"(objects[i]));
    }"""
    out = np.full(9, -1, np.int32)
    with textures() as made:
        array = made.array(random_texels((4, 4, 1), "f4"), "2d", "surface")
        run(source, "kinds", 1, 1, made.of_array(array), made.surface(array), out)
    assert list(out) == [1, 0, 0, 0, 1, 0, 0, 0, 0]
