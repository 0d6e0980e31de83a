"""Compressed blocks and packed texels, read in all ways: what an H200 makes of random blocks, bit for bit.

``recorded_packed.txt`` has a checksum of the numbers for each format and way. ``python -m
tests.cpu.engine.texture.test_packed`` writes it, on a machine with that GPU.
"""

from __future__ import annotations

import functools
import random
import zlib
from pathlib import Path

import numpy as np
import pytest

from cupola import Device
from cupola.bindings import driver
from tests.cpu.driver.calls import ok
from tests.cpu.engine.kernels import run
from tests.cpu.engine.texture.texturing import Sampler, fetch, textures

RECORDED = Path(__file__).with_name("recorded_packed.txt")
SIDE = 64  # texels
BLOCKS = SIDE // 4

SOURCE = r"""
extern "C" __global__ void read(cudaTextureObject_t t, float4* out, const float2* at) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = tex2D<float4>(t, at[i].x, at[i].y);
}
extern "C" __global__ void gather(cudaTextureObject_t t, float4* out, const float2* at) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[4 * i] = tex2Dgather<float4>(t, at[i].x, at[i].y, 0);
    out[4 * i + 1] = tex2Dgather<float4>(t, at[i].x, at[i].y, 1);
    out[4 * i + 2] = tex2Dgather<float4>(t, at[i].x, at[i].y, 2);
    out[4 * i + 3] = tex2Dgather<float4>(t, at[i].x, at[i].y, 3);
}
extern "C" __global__ void fetch(cudaTextureObject_t t, float4* out) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = tex1Dfetch<float4>(t, i);
}
extern "C" __global__ void store(cudaSurfaceObject_t s, const uint4* numbers) {
    const int x = threadIdx.x, y = blockIdx.x;
    const uint4 v = numbers[y * blockDim.x + x];
    asm volatile("sust.p.2d.v4.b32.trap [%0, {%1, %2}], {%3, %4, %5, %6};"
                 :: "l"(s), "r"(x), "r"(y), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w));
}
"""

FORMATS = {
    **{f"BC{n}_UNORM{srgb}": (4, 8 if n == 1 else 16) for n in (1, 2, 3, 7) for srgb in ("", "_SRGB")},
    **{f"BC4_{sign}NORM": (1, 8) for sign in "US"},
    **{f"BC5_{sign}NORM": (2, 16) for sign in "US"},
    **{f"BC6H_{sign}F16": (3, 16) for sign in "US"},
    "UNORM_INT_101010_2": (4, 4),
}
"""Channels, and bytes of a block or texel."""

BORDER = (0.3, 0.6, -0.75, 0.9)
WAYS = {
    "texels": Sampler(),
    "filtered": Sampler(linear=True),
    "as sRGB": Sampler(srgb=True),
    "filtered as sRGB": Sampler(srgb=True, linear=True),
    "border": Sampler(address="border", border=BORDER),
    "filtered border": Sampler(address="border", border=BORDER, linear=True),
    "gathered": Sampler(),
}


def texels(format: str) -> np.ndarray:
    """Rows of random bytes, in which each mode of BC6H and BC7 is as frequent as the others."""
    size = FORMATS[format][1]
    name = format.removesuffix("_SRGB")
    if size == 4:
        return np.frombuffer(random.Random(name).randbytes(SIDE * SIDE * 4), np.uint8).reshape(SIDE, -1)
    data = np.frombuffer(random.Random(name).randbytes(BLOCKS * BLOCKS * size), np.uint8).reshape(-1, size).copy()
    number = np.arange(len(data))
    if name == "BC7_UNORM":  # so many zeros and a one
        data[:, 0] = np.where(number % 9 == 8, 0, (data[:, 0].astype(int) << 1 | 1) << number % 9)
    if name.startswith("BC6H"):
        codes = np.array([0, 1, 2, 6, 10, 14, 18, 22, 26, 30, 3, 7, 11, 15, 19, 23, 27, 31])[number % 18]
        data[:, 0] = np.where(codes < 2, data[:, 0] & 0xFC, data[:, 0] & 0xE0) | codes
    return data.reshape(BLOCKS, -1)


@functools.cache
def coordinates(way: str) -> np.ndarray:
    """All texels, or random places; a third of those with a border are outside."""
    if way in ("texels", "as sRGB"):
        y, x = np.divmod(np.arange(SIDE * SIDE), SIDE)
        return (np.stack([x, y], 1) + 0.5).astype(np.float32)
    raw = np.frombuffer(random.Random(way).randbytes(2048 * 2 * 2), np.uint16).reshape(-1, 2) / 2.0**16
    return ((raw * 1.25 - 0.125) * SIDE if "border" in way else raw * SIDE).astype(np.float32)


def outcome(format: str, way: str) -> int:
    """The checksum of what the device reads."""
    at = coordinates(way)
    sampler = WAYS[way]
    if format.endswith("_SRGB"):
        sampler = Sampler(address=sampler.address, linear=sampler.linear, border=sampler.border, srgb=True)
    with textures() as made:
        array = made.packed(texels(format), SIDE, SIDE, format, FORMATS[format][0], *["gather"] * (way == "gathered"))
        texture = made.of_array(array, sampler)
        out = np.zeros((len(at), 4 if way == "gathered" else 1, 4), np.float32)
        run(SOURCE, "gather" if way == "gathered" else "read", len(at) // 64, 64, texture, out, at)
    return zlib.crc32(out.tobytes())


def cases() -> list[tuple[str, str]]:
    return [(format, way) for format in FORMATS for way in WAYS]


@functools.cache
def recorded() -> dict[tuple[str, str], int]:
    lines = (line.split("\t") for line in RECORDED.read_text().splitlines() if not line.startswith("#"))
    return {(format, way): int(sum, 16) for format, way, sum in lines}


@pytest.mark.parametrize(("format", "way"), cases())
def test_read(format: str, way: str) -> None:
    assert outcome(format, way) == recorded()[format, way]


def test_every_mode_is_there() -> None:
    modes = texels("BC7_UNORM").reshape(-1, 16)[:, 0]
    assert {int(mode & -mode) for mode in modes.astype(int)} == {0, *(1 << n for n in range(8))}


def test_stores_to_packed_texels() -> None:
    """Numbers become the nearest ones, and what is between two the smaller one."""
    x, y = np.meshgrid(np.arange(32, dtype=np.float32), np.arange(8, dtype=np.float32))
    numbers = np.stack([x / 31, y / 7, x / 16 - np.float32(0.25), x / 10], -1)
    with textures() as made:
        array = made.packed(np.zeros((8, 32 * 4), np.uint8), 32, 8, "UNORM_INT_101010_2", 4, "surface")
        run(SOURCE, "store", 8, 32, made.surface(array), numbers)
        found = fetch(array, np.zeros((8, 32, 1), np.uint32))[..., 0]
    most = np.array([1023, 1023, 1023, 3], np.float32)
    wanted = np.ceil(np.clip(numbers, 0, 1) * most - 0.5).astype(np.uint32)
    assert (found == (wanted << np.array([0, 10, 20, 30], np.uint32)).sum(-1)).all()


@pytest.mark.parametrize(("format", "most", "type"), [("UNORM_INT8X4", 255, np.uint8), ("SNORM_INT8X4", 127, np.int8)])
def test_stores_of_what_is_between(format: str, most: int, type: type) -> None:
    """What is half way between two numbers, or next to that, goes towards zero."""
    halves = ((np.arange(-8, 120) + 0.5) / most).astype(np.float32)
    above, below = (np.nextafter(halves, np.float32(to)) for to in (9, -9))
    numbers = np.stack([halves, above, below, halves[::-1]], 1).reshape(4, 32, 4)
    with textures() as made:
        array = made.packed(np.zeros((4, 32 * 4), np.uint8), 32, 4, format, 4, "surface")
        run(SOURCE, "store", 4, 32, made.surface(array), numbers)
        found = fetch(array, np.zeros((4, 32, 4), type))
    exact = np.clip(numbers.astype(float), 0 if format[0] == "U" else -1, 1) * most
    assert (found == np.trunc(exact + np.copysign(0.499, exact))).all()


def test_memory_of_packed_texels() -> None:
    """Textures of memory have packed texels, too."""
    rows = texels("UNORM_INT_101010_2")[:2]
    pointer = ok(driver.cuMemAlloc(rows.nbytes))
    ok(driver.cuMemcpyHtoD(pointer, np.ascontiguousarray(rows).ctypes.data, rows.nbytes))
    ok(driver.cuCtxSynchronize())
    resource = driver.CUDA_RESOURCE_DESC()
    resource.resType = driver.CUresourcetype.CU_RESOURCE_TYPE_LINEAR
    linear = resource.res.linear
    linear.devPtr, linear.sizeInBytes, linear.numChannels = pointer, rows.nbytes, 4
    linear.format = driver.CUarray_format.CU_AD_FORMAT_UNORM_INT_101010_2
    texture = ok(driver.cuTexObjectCreate(resource, Sampler().descriptor(), None))
    out = np.zeros((2 * SIDE, 4), np.float32)
    run(SOURCE, "fetch", 2, SIDE, np.uint64(int(texture)), out)
    ok(driver.cuTexObjectDestroy(texture))
    ok(driver.cuMemFree(pointer))
    bits = rows.view(np.uint32).reshape(-1)
    numbers = np.stack([bits & 1023, bits >> 10 & 1023, bits >> 20 & 1023, bits >> 30], 1).astype(np.float32)
    assert (out == numbers / np.array([1023, 1023, 1023, 3], np.float32)).all()


def test_views_of_blocks() -> None:
    """Blocks in an array of integers are those of an array of blocks."""
    rows = texels("BC7_UNORM")
    at = coordinates("texels")
    with textures() as made:
        array = made.array(rows.view(np.uint32).reshape(BLOCKS, BLOCKS, 4), "2d")
        view = driver.CUDA_RESOURCE_VIEW_DESC()
        view.format = driver.CUresourceViewFormat.CU_RES_VIEW_FORMAT_UNSIGNED_BC7
        view.width = view.height = SIDE
        resource = driver.CUDA_RESOURCE_DESC()
        resource.resType = driver.CUresourcetype.CU_RESOURCE_TYPE_ARRAY
        resource.res.array.hArray = array
        texture = ok(driver.cuTexObjectCreate(resource, Sampler().descriptor(), view))
        out = np.zeros((len(at), 4), np.float32)
        run(SOURCE, "read", len(at) // 64, 64, np.uint64(int(texture)), out, at)
        ok(driver.cuTexObjectDestroy(texture))
    assert zlib.crc32(out.tobytes()) == recorded()["BC7_UNORM", "texels"]


if __name__ == "__main__":
    with RECORDED.open("w") as file:
        file.write(f"# Checksums (CRC-32) of what {Device(0).name} reads: format, way.\n")
        for format, way in cases():
            file.write(f"{format}\t{way}\t{outcome(format, way):08x}\n")
