"""Arrays of compressed blocks: shapes, copies in blocks, and what can be made of them, as an H200's driver has it."""

from __future__ import annotations

import numpy as np
import pytest

from cupola.bindings import driver
from tests.conftest import on_cpu_device
from tests.cpu.driver.calls import explanation, ok, status
from tests.cpu.driver.texture.arrays import (
    CUBEMAP,
    LAYERED,
    array_side,
    box,
    descriptor,
    fields,
    host_side,
)

INVALID = "CUDA_ERROR_INVALID_VALUE"
FORMATS = {
    **{f"BC{n}_UNORM{srgb}": (4, 8 if n == 1 else 16) for n in (1, 2, 3, 7) for srgb in ("", "_SRGB")},
    **{f"BC4_{sign}NORM": (1, 8) for sign in "US"},
    **{f"BC5_{sign}NORM": (2, 16) for sign in "US"},
    **{f"BC6H_{sign}F16": (3, 16) for sign in "US"},
}
"""Channels, and bytes of a block."""


def copy(array, data, *, out=False, x=0, y=0, width=None, rows=None):
    """Copy data[layer, row, byte], or a part of each layer, to an array, or from it."""
    form = box(data.shape[2] if width is None else width, data.shape[1] if rows is None else rows, data.shape[0])
    host_side(form, "dst" if out else "src", data)
    array_side(form, "src" if out else "dst", array, x, y)
    result = driver.cuMemcpy3D(form)
    ok(driver.cuCtxSynchronize())
    return result


def blocks(*shape):
    return np.frombuffer(np.random.default_rng(shape).bytes(int(np.prod(shape))), np.uint8).reshape(shape).copy()


@pytest.mark.parametrize("format", FORMATS)
def test_formats(context, format):
    channels, size = FORMATS[format]
    wanted = descriptor(32, 16, 0, format, channels)
    array = ok(driver.cuArray3DCreate(wanted))
    assert fields(ok(driver.cuArray3DGetDescriptor(array))) == fields(wanted)
    data, found = blocks(1, 4, 8 * size), np.zeros((1, 4, 8 * size), np.uint8)
    ok(copy(array, data))
    ok(copy(array, found, out=True))
    assert (found == data).all()
    assert ok(driver.cuDeviceGetTexture1DLinearMaxWidth(wanted.Format, channels, 0)) == 2**32 // size
    ok(driver.cuArrayDestroy(array))


@pytest.mark.parametrize(
    ("shape", "layers", "rows", "row"),
    [
        ((30, 14, 0, 0), 1, 4, 8),  # the last blocks are not full
        ((1, 1, 0, 0), 1, 1, 1),
        ((16, 16, 3, LAYERED), 3, 4, 4),
        ((16, 16, 6, CUBEMAP), 6, 4, 4),
        ((16, 16, 5, 0), 5, 4, 4),
    ],
)
def test_shapes(context, shape, layers, rows, row):
    *extents, flags = shape
    array = ok(driver.cuArray3DCreate(descriptor(*extents, "BC7_UNORM", 4, flags)))
    data, found = blocks(layers, rows, row * 16), np.zeros((layers, rows, row * 16), np.uint8)
    ok(copy(array, data))
    ok(copy(array, found, out=True))
    assert (found == data).all()
    assert status(copy(array, blocks(layers + 1, rows, row * 16))) == INVALID
    assert status(copy(array, blocks(layers, rows + 1, row * 16))) == INVALID
    ok(driver.cuArrayDestroy(array))


def test_parts(context):
    """Whole blocks can be copied, to the place of any block."""
    array = ok(driver.cuArray3DCreate(descriptor(32, 16, 0, "BC1_UNORM", 4)))
    data = np.zeros((1, 4, 64), np.uint8)
    ok(copy(array, data))
    part = blocks(1, 2, 16)
    ok(copy(array, part, x=24, y=1))
    data[:, 1:3, 24:40] = part
    found = np.zeros_like(data)
    ok(copy(array, found, out=True))
    assert (found == data).all()
    for place in ({"width": 4}, {"width": 12}, {"x": 4, "width": 8}, {"y": 3}):
        result = copy(array, part, **place)
        assert status(result) == INVALID
        if on_cpu_device():
            assert ("do not fit" if "y" in place else "are not whole blocks") in explanation(result)
    ok(driver.cuArrayDestroy(array))


def test_levels(context):
    array = ok(driver.cuMipmappedArrayCreate(descriptor(20, 12, 0, "BC3_UNORM", 4), 5))
    for level, (width, height) in enumerate([(20, 12), (10, 6), (5, 3), (2, 1), (1, 1)]):
        one = ok(driver.cuMipmappedArrayGetLevel(array, level))
        assert fields(ok(driver.cuArray3DGetDescriptor(one)))[:2] == (width, height)
        data = blocks(1, -(-height // 4), -(-width // 4) * 16)
        found = np.zeros_like(data)
        ok(copy(one, data))
        ok(copy(one, found, out=True))
        assert (found == data).all()
    ok(driver.cuMipmappedArrayDestroy(array))


def of_array(array):
    resource = driver.CUDA_RESOURCE_DESC()
    resource.resType = driver.CUresourcetype.CU_RESOURCE_TYPE_ARRAY
    resource.res.array.hArray = array
    return resource


def sampler(flags=0):
    wanted = driver.CUDA_TEXTURE_DESC()
    wanted.flags = flags
    return wanted


def view(format, width, height):
    wanted = driver.CUDA_RESOURCE_VIEW_DESC()
    wanted.format = driver.CUresourceViewFormat[f"CU_RES_VIEW_FORMAT_{format}"]
    wanted.width, wanted.height = width, height
    return wanted


@pytest.mark.parametrize("format", FORMATS)
def test_textures(context, format):
    """What is called sRGB must be read so; the others may be."""
    array = ok(driver.cuArray3DCreate(descriptor(16, 16, 0, format, FORMATS[format][0])))
    for flags in (0, 1, 2, 0x10, 0x11):
        result = driver.cuTexObjectCreate(of_array(array), sampler(flags), None)
        if format.endswith("SRGB") and not flags & 0x10:
            assert status(result) == INVALID
            assert not on_cpu_device() or "add CU_TRSF_SRGB" in explanation(result)
        else:
            ok(driver.cuTexObjectDestroy(ok(result)))
    assert status(driver.cuSurfObjectCreate(of_array(array))) == INVALID
    for wanted in (view("UINT_2X32", 16, 16), view("UINT_4X32", 4, 4), view("UNSIGNED_BC1", 16, 16)):
        assert status(driver.cuTexObjectCreate(of_array(array), sampler(0x10), wanted)) == INVALID
    ok(driver.cuArrayDestroy(array))


VIEWS = {"UNSIGNED_BC1": 2, "UNSIGNED_BC4": 2, "SIGNED_BC4": 2, "UNSIGNED_BC2": 4, "UNSIGNED_BC3": 4}
VIEWS |= {"UNSIGNED_BC5": 4, "SIGNED_BC5": 4, "UNSIGNED_BC6H": 4, "SIGNED_BC6H": 4, "UNSIGNED_BC7": 4}


@pytest.mark.parametrize("format", VIEWS)
def test_views(context, format):
    """An array of integers, one element for a block."""
    for type, channels in (("UNSIGNED_INT32", 2), ("UNSIGNED_INT32", 4), ("SIGNED_INT32", 4), ("UNSIGNED_INT16", 4)):
        array = ok(driver.cuArray3DCreate(descriptor(8, 4, 0, type, channels)))
        for width, height in ((32, 16), (8, 4), (31, 16), (32, 13)):
            result = driver.cuTexObjectCreate(of_array(array), sampler(), view(format, width, height))
            if (type, channels, width, height) == ("UNSIGNED_INT32", VIEWS[format], 32, 16):
                ok(driver.cuTexObjectDestroy(ok(result)))
            else:
                assert status(result) == INVALID
        ok(driver.cuArrayDestroy(array))


def test_memory(context):
    """Textures of memory know no blocks, but packed texels."""
    pointer = ok(driver.cuMemAlloc(1024))
    resource = driver.CUDA_RESOURCE_DESC()
    resource.resType = driver.CUresourcetype.CU_RESOURCE_TYPE_LINEAR
    linear = resource.res.linear
    linear.devPtr, linear.sizeInBytes, linear.numChannels = pointer, 1024, 4
    linear.format = driver.CUarray_format.CU_AD_FORMAT_BC1_UNORM
    assert status(driver.cuTexObjectCreate(resource, sampler(), None)) == INVALID
    linear.format = driver.CUarray_format.CU_AD_FORMAT_UNORM_INT_101010_2
    ok(driver.cuTexObjectDestroy(ok(driver.cuTexObjectCreate(resource, sampler(), None))))
    ok(driver.cuMemFree(pointer))
