"""CUDA arrays: what can be made, what they are, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from cupola.bindings import driver
from tests.conftest import on_cpu_device
from tests.cpu.driver.calls import explanation, ok, status
from tests.cpu.driver.texture.arrays import (
    CUBEMAP,
    DTYPES,
    FORMAT,
    GATHER,
    LAYERED,
    SURFACE,
    descriptor,
    fields,
    numbers,
    read,
    write,
)

INVALID, UNSUPPORTED, HANDLE = "CUDA_ERROR_INVALID_VALUE", "CUDA_ERROR_NOT_SUPPORTED", "CUDA_ERROR_INVALID_HANDLE"
NORMALIZED = [f"{sign}NORM_INT{bits}X{n}" for sign in "US" for bits in (8, 16) for n in (1, 2, 4)]

# width, height, depth, flags; slices or layers, rows
SHAPES = {
    "1d": ((100, 0, 0, 0), (1, 1)),
    "2d": ((31, 7, 0, 0), (1, 7)),
    "2d of one row": ((31, 1, 0, 0), (1, 1)),
    "3d": ((9, 5, 4, 0), (4, 5)),
    "1d layered": ((40, 0, 3, LAYERED), (3, 1)),
    "2d layered": ((12, 6, 5, LAYERED), (5, 6)),
    "cubemap": ((8, 8, 6, CUBEMAP), (6, 8)),
    "cubemap layered": ((4, 4, 18, CUBEMAP | LAYERED), (18, 4)),
    "surface": ((16, 4, 0, SURFACE), (1, 4)),
    "3d surface": ((16, 4, 2, SURFACE), (2, 4)),
    "layered surface": ((16, 4, 3, SURFACE | LAYERED), (3, 4)),
    "gather": ((16, 4, 0, GATHER), (1, 4)),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_shapes(context, shape):
    (width, height, depth, flags), (slices, rows) = SHAPES[shape]
    wanted = descriptor(width, height, depth, flags=flags)
    array = ok(driver.cuArray3DCreate(wanted))
    assert fields(ok(driver.cuArray3DGetDescriptor(array))) == fields(wanted)
    data = numbers((slices, rows, width))
    write(array, data)
    assert (read(array, data.shape) == data).all()
    ok(driver.cuArrayDestroy(array))


@pytest.mark.parametrize("channels", [1, 2, 4])
@pytest.mark.parametrize("format", DTYPES)
def test_formats(context, format, channels):
    array = ok(driver.cuArray3DCreate(descriptor(5, 3, 0, format, channels)))
    found = ok(driver.cuArrayGetDescriptor(array))
    assert (found.Width, found.Height, found.NumChannels) == (5, 3, channels)
    assert found.Format == getattr(FORMAT, f"CU_AD_FORMAT_{format}")
    data = numbers((1, 3, 5, channels), DTYPES[format])
    write(array, data)
    assert (read(array, data.shape, data.dtype) == data).all()
    ok(driver.cuArrayDestroy(array))


@pytest.mark.parametrize("format", NORMALIZED)
def test_normalized_formats(context, format):
    channels, dtype = int(format[-1]), np.uint16 if "16" in format else np.uint8
    array = ok(driver.cuArray3DCreate(descriptor(6, 2, 0, format, channels)))
    assert ok(driver.cuArray3DGetDescriptor(array)).Format == getattr(FORMAT, f"CU_AD_FORMAT_{format}")
    data = numbers((1, 2, 6, channels), dtype)
    write(array, data)
    assert (read(array, data.shape, dtype) == data).all()
    ok(driver.cuArrayDestroy(array))


def test_arrays_of_the_older_form(context):
    wanted = driver.CUDA_ARRAY_DESCRIPTOR()
    wanted.Width, wanted.Height, wanted.NumChannels, wanted.Format = 10, 4, 2, FORMAT.CU_AD_FORMAT_HALF
    array = ok(driver.cuArrayCreate(wanted))
    assert fields(ok(driver.cuArray3DGetDescriptor(array))) == (10, 4, 0, FORMAT.CU_AD_FORMAT_HALF, 2, 0)
    ok(driver.cuArrayDestroy(array))


BAD = [
    (descriptor(0), INVALID, "Width is 0"),
    (descriptor(8, channels=3), INVALID, "1, 2 or 4 channels, not 3"),
    (descriptor(8, channels=0), INVALID, "1, 2 or 4 channels, not 0"),
    (descriptor(8, format=0x7F), INVALID, "0x7f is not a CUarray_format"),
    (descriptor(8, 0, 4), INVALID, "Depth is 4 and Height 0"),
    (descriptor(8, 8, 0, flags=LAYERED), INVALID, "the number of layers"),
    (descriptor(8, 4, 6, flags=CUBEMAP), INVALID, "square, not 8 x 4"),
    (descriptor(8, 8, 5, flags=CUBEMAP), INVALID, "Depth is 5; a cubemap has 6 faces"),
    (descriptor(8, 8, 13, flags=CUBEMAP | LAYERED), INVALID, "a multiple of 6 faces"),
    (descriptor(1 << 20), INVALID, "Width is 1048576; a 1D array of this device may have at most 131072"),
    (descriptor(8, 1 << 20), INVALID, "Height is 1048576; a 2D array"),
    (descriptor(8, 8, 1 << 16), INVALID, "Depth is 65536; a 3D array"),
    (descriptor(8, 8, 1 << 12, flags=LAYERED), INVALID, "Depth is 4096; a 2D layered array"),
    (descriptor(1 << 16, 1 << 16, 6, flags=CUBEMAP), INVALID, "Width is 65536; a cubemap"),
    (descriptor(8, 8, flags=0x10), INVALID, "depth textures and color attachments"),
    (descriptor(8, 8, flags=0x20), INVALID, "depth textures and color attachments"),
    (descriptor(8, 0, 0, "BC7_UNORM", 4), INVALID, "blocks of 4 x 4, have two dimensions or more"),
    (descriptor(8, 0, 3, "BC4_SNORM", 1, LAYERED), INVALID, "blocks of 4 x 4, have two dimensions or more"),
    (descriptor(8, 8, 0, "BC3_UNORM", 4, SURFACE), UNSUPPORTED, "is read only"),
    (descriptor(8, 8, 0, "BC5_UNORM", 4), INVALID, "have 2 channels, not 4"),
    (descriptor(8, 8, 0, "UNORM_INT_101010_2", 1), INVALID, "have 4 channels, not 1"),
]
BAD_HERE = [
    (descriptor(8, format="UNORM_INT8X4", channels=2), INVALID, "have 4 channels, not 2"),
    (descriptor(8, 8, 8, flags=GATHER), INVALID, "GATHER is for 2D arrays, this is a 3D array"),
    (descriptor(1 << 16, 8, flags=GATHER), INVALID, "a 2D array for gathers of this device may have at most 32768"),
    (descriptor(1 << 16, flags=SURFACE), INVALID, "a 1D array for surfaces of this device may have at most 32768"),
    (descriptor(8, flags=0x1000), INVALID, "unknown bits: 0x1000"),
    (descriptor(8, 8, flags=0x40), UNSUPPORTED, "no sparse arrays"),
    (descriptor(8, 8, format="BC1_UNORM"), INVALID, "have 4 channels, not 1"),
    (descriptor(8, 8, format="NV12", channels=3), UNSUPPORTED, "has no texels of format 0xb0"),
]


@pytest.mark.parametrize(("wanted", "expected", "text"), BAD)
def test_bad_descriptors(context, wanted, expected, text):
    result = driver.cuArray3DCreate(wanted)
    assert status(result) == expected
    assert not on_cpu_device() or text in explanation(result)


@pytest.mark.cpu_only
@pytest.mark.parametrize(("wanted", "expected", "text"), BAD_HERE)
def test_descriptors_that_the_cpu_device_refuses(context, wanted, expected, text):
    result = driver.cuArray3DCreate(wanted)
    assert status(result) == expected
    assert text in explanation(result)


@pytest.mark.parametrize(
    ("width", "height", "depth"), [(16384, 1, 1), (1, 1, 16384), (2, 2, 20000)], ids=["wide", "deep", "alternate"]
)
def test_limits_of_3d_arrays(context, width, height, depth):
    """Arrays of many slices have other limits, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE and its like."""
    ok(driver.cuArrayDestroy(ok(driver.cuArray3DCreate(descriptor(width, height, depth, "UNSIGNED_INT8")))))


LIMITS = [  # the attribute that bounds it, and an array with so many texels in a row, rows, slices or layers
    ("TEXTURE1D_WIDTH", lambda n: descriptor(n)),
    ("TEXTURE2D_WIDTH", lambda n: descriptor(n, 1)),
    ("TEXTURE2D_HEIGHT", lambda n: descriptor(1, n)),
    ("TEXTURE3D_WIDTH", lambda n: descriptor(n, 1, 1)),
    ("TEXTURE3D_HEIGHT", lambda n: descriptor(1, n, 1)),
    ("TEXTURE3D_DEPTH_ALTERNATE", lambda n: descriptor(1, 1, n)),
    ("TEXTURE1D_LAYERED_WIDTH", lambda n: descriptor(n, 0, 1, flags=LAYERED)),
    ("TEXTURE1D_LAYERED_LAYERS", lambda n: descriptor(1, 0, n, flags=LAYERED)),
    ("TEXTURE2D_LAYERED_WIDTH", lambda n: descriptor(n, 1, 1, flags=LAYERED)),
    ("TEXTURE2D_LAYERED_HEIGHT", lambda n: descriptor(1, n, 1, flags=LAYERED)),
    ("TEXTURE2D_LAYERED_LAYERS", lambda n: descriptor(1, 1, n, flags=LAYERED)),
    ("SURFACE1D_WIDTH", lambda n: descriptor(n, flags=SURFACE)),
    ("SURFACE2D_WIDTH", lambda n: descriptor(n, 1, flags=SURFACE)),
    ("SURFACE2D_HEIGHT", lambda n: descriptor(1, n, flags=SURFACE)),
    ("SURFACE1D_LAYERED_LAYERS", lambda n: descriptor(1, 0, n, flags=SURFACE | LAYERED)),
]


@pytest.mark.parametrize(("attribute", "make"), LIMITS)
def test_limits_are_the_attributes(context, attribute, make):
    number = driver.CUdevice_attribute[f"CU_DEVICE_ATTRIBUTE_MAXIMUM_{attribute}"]
    most = ok(driver.cuDeviceGetAttribute(number, ok(driver.cuCtxGetDevice())))
    ok(driver.cuArrayDestroy(ok(driver.cuArray3DCreate(make(most)))))
    assert status(driver.cuArray3DCreate(make(most + 1))) == INVALID


LEVELS = [  # the array, levels asked for, size of each level
    (descriptor(20), 9, [(20, 0, 0), (10, 0, 0), (5, 0, 0), (2, 0, 0), (1, 0, 0)]),
    (descriptor(16, 4), 3, [(16, 4, 0), (8, 2, 0), (4, 1, 0)]),
    (descriptor(16, 4), 0, [(16, 4, 0)]),
    (descriptor(8, 5, 3), 9, [(8, 5, 3), (4, 2, 1), (2, 1, 1), (1, 1, 1)]),
    (descriptor(4, 4, 5, flags=LAYERED), 9, [(4, 4, 5), (2, 2, 5), (1, 1, 5)]),
    (descriptor(4, 4, 6, flags=CUBEMAP), 2, [(4, 4, 6), (2, 2, 6)]),
    (descriptor(8, 8, flags=SURFACE), 2, [(8, 8, 0), (4, 4, 0)]),
]


@pytest.mark.parametrize(("wanted", "count", "sizes"), LEVELS)
def test_mipmapped_arrays(context, wanted, count, sizes):
    array = ok(driver.cuMipmappedArrayCreate(wanted, count))
    levels = [ok(driver.cuMipmappedArrayGetLevel(array, i)) for i in range(len(sizes))]
    assert [fields(ok(driver.cuArray3DGetDescriptor(level)))[:3] for level in levels] == sizes
    data = [numbers((max(d, 1), max(h, 1), w), start=i) for i, (w, h, d) in enumerate(sizes)]
    for level, values in zip(levels, data, strict=True):
        write(level, values)
    for level, values in zip(levels, data, strict=True):
        assert (read(level, values.shape) == values).all(), "levels do not overlap"
    assert status(driver.cuMipmappedArrayGetLevel(array, len(sizes))) == INVALID
    ok(driver.cuMipmappedArrayDestroy(array))


@pytest.mark.cpu_only
def test_bad_mipmapped_arrays(context):
    result = driver.cuMipmappedArrayCreate(descriptor(1 << 16), 1)
    assert status(result) == INVALID and "a 1D array with mipmap levels" in explanation(result)
    array = ok(driver.cuMipmappedArrayCreate(descriptor(8, 8), 2))
    level = ok(driver.cuMipmappedArrayGetLevel(array, 1))
    assert "there is no level 2: the array has 2" in explanation(driver.cuMipmappedArrayGetLevel(array, 2))
    ok(driver.cuArrayDestroy(level))  # nothing: it goes with its mipmapped array
    assert int(ok(driver.cuMipmappedArrayGetLevel(array, 1))) == int(level)
    ok(driver.cuMipmappedArrayDestroy(array))
    for call, handle in ((driver.cuMipmappedArrayDestroy, array), (driver.cuArray3DGetDescriptor, level)):
        result = call(handle)
        assert status(result) == HANDLE and "has been destroyed" in explanation(result)


def test_what_plain_arrays_do_not_have(context):
    """Neither planes nor tiles nor memory to be mapped."""
    array, mipmapped = ok(driver.cuArray3DCreate(descriptor(8, 8))), ok(driver.cuMipmappedArrayCreate(descriptor(8), 2))
    for result in (
        driver.cuArrayGetPlane(array, 0),
        driver.cuArrayGetSparseProperties(array),
        driver.cuMipmappedArrayGetSparseProperties(mipmapped),
        driver.cuArrayGetMemoryRequirements(array, 0),
        driver.cuMipmappedArrayGetMemoryRequirements(mipmapped, 0),
    ):
        assert status(result) == INVALID
    ok(driver.cuArrayDestroy(array))
    ok(driver.cuMipmappedArrayDestroy(mipmapped))


@pytest.mark.cpu_only
def test_handles(context):
    array = ok(driver.cuArray3DCreate(descriptor(8)))
    ok(driver.cuArrayDestroy(array))
    for call, handle, text in (
        (driver.cuArrayDestroy, array, "has been destroyed"),
        (driver.cuArrayGetDescriptor, array, "has been destroyed"),
        (driver.cuArray3DGetDescriptor, 0, "the CUDA array is null"),
        (driver.cuArray3DGetDescriptor, 0x1000, "is not a CUDA array"),
        (driver.cuMipmappedArrayDestroy, array, "is not a mipmapped CUDA array"),
    ):
        result = call(handle)
        assert status(result) == HANDLE and text in explanation(result), explanation(result)


@pytest.mark.cpu_only
def test_memory_is_accounted(context):
    result = driver.cuArray3DCreate(descriptor(16384, 16384, 512, channels=4))
    assert status(result) == "CUDA_ERROR_OUT_OF_MEMORY" and "do not fit" in explanation(result)
    before = ok(driver.cuMemGetInfo())[0]  # pools have given back what they kept
    array = ok(driver.cuArray3DCreate(descriptor(1024, 1024, 4, channels=4)))
    used = before - ok(driver.cuMemGetInfo())[0]
    assert used == 1024 * 1024 * 4 * 16
    ok(driver.cuArrayDestroy(array))
    mipmapped = ok(driver.cuMipmappedArrayCreate(descriptor(1024, 1024), 11))
    assert 1024 * 1024 * 4 * 4 // 3 <= before - ok(driver.cuMemGetInfo())[0] < 1024 * 1024 * 4 * 4 // 3 + 11 * 512
    ok(driver.cuMipmappedArrayDestroy(mipmapped))
    assert ok(driver.cuMemGetInfo())[0] == before


@pytest.mark.cpu_only
def test_arrays_go_with_their_context():
    ok(driver.cuInit(0))
    own = ok(driver.cuCtxCreate(None, 0, 0))
    before = ok(driver.cuMemGetInfo())[0]
    arrays = [ok(driver.cuArray3DCreate(descriptor(256, 256)))]
    mipmapped = ok(driver.cuMipmappedArrayCreate(descriptor(256, 256), 4))
    arrays.append(ok(driver.cuMipmappedArrayGetLevel(mipmapped, 1)))
    ok(driver.cuCtxDestroy(own))
    for array in arrays:
        assert status(driver.cuArray3DGetDescriptor(array)) == HANDLE
    assert status(driver.cuMipmappedArrayGetLevel(mipmapped, 0)) == HANDLE
    own = ok(driver.cuCtxCreate(None, 0, 0))
    assert ok(driver.cuMemGetInfo())[0] == before
    ok(driver.cuCtxDestroy(own))


@pytest.mark.cpu_only
def test_arrays_cannot_be_made_while_a_stream_captures(make_stream):
    stream = make_stream()
    ok(driver.cuStreamBeginCapture(stream, driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL))
    assert status(driver.cuArray3DCreate(descriptor(8))) == "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"
    assert status(driver.cuStreamEndCapture(stream)) == "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"
