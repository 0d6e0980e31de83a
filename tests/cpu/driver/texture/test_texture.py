"""Texture and surface objects: what they can be of, what samplers and views may say, and what they tell.

The engine's tests have how kernels sample textures; here is what they see of views and formats.
"""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest

from cupola.bindings import driver
from tests.conftest import on_cpu_device
from tests.cpu.driver.calls import compiled, explanation, launch, ok, status
from tests.cpu.driver.texture.arrays import CUBEMAP, FORMAT, LAYERED, SURFACE, descriptor, numbers, write

ROOT = Path(__file__).parents[4]
BAD, HANDLE, UNSUPPORTED = "CUDA_ERROR_INVALID_VALUE", "CUDA_ERROR_INVALID_HANDLE", "CUDA_ERROR_NOT_SUPPORTED"
RESOURCE = driver.CUresourcetype
WRAP, CLAMP, MIRROR, BORDER = driver.CUaddress_mode
POINT, LINEAR = driver.CUfilter_mode
INTEGER, NORMALIZED, SRGB, NO_TRILINEAR, SEAMLESS = 0x01, 0x02, 0x10, 0x20, 0x40


@pytest.fixture
def make(context):
    """Make what textures are of, to be destroyed behind the test: arrays, mipmapped arrays and buffers."""
    made = []

    class Maker:
        def array(self, *arguments, **keywords):
            made.append((driver.cuArrayDestroy, ok(driver.cuArray3DCreate(descriptor(*arguments, **keywords)))))
            resource = driver.CUDA_RESOURCE_DESC()
            resource.resType = RESOURCE.CU_RESOURCE_TYPE_ARRAY
            resource.res.array.hArray = made[-1][1]
            return resource

        def mipmapped(self, levels, *arguments, **keywords):
            array = ok(driver.cuMipmappedArrayCreate(descriptor(*arguments, **keywords), levels))
            made.append((driver.cuMipmappedArrayDestroy, array))
            resource = driver.CUDA_RESOURCE_DESC()
            resource.resType = RESOURCE.CU_RESOURCE_TYPE_MIPMAPPED_ARRAY
            resource.res.mipmap.hMipmappedArray = array
            return resource

        def buffer(self, size):
            made.append((driver.cuMemFree, ok(driver.cuMemAlloc(size))))
            return int(made[-1][1])

        def linear(self, size, format="FLOAT", channels=1, offset=0, room=0):
            resource = driver.CUDA_RESOURCE_DESC()
            resource.resType = RESOURCE.CU_RESOURCE_TYPE_LINEAR
            resource.res.linear.devPtr = self.buffer(room or size or 4) + offset
            resource.res.linear.format = FORMAT[f"CU_AD_FORMAT_{format}"]
            resource.res.linear.numChannels = channels
            resource.res.linear.sizeInBytes = size
            return resource

        def pitched(self, width, height, pitch, format="FLOAT", channels=1, room=0):
            resource = driver.CUDA_RESOURCE_DESC()
            resource.resType = RESOURCE.CU_RESOURCE_TYPE_PITCH2D
            resource.res.pitch2D.devPtr = self.buffer(room or pitch * height or 4)
            resource.res.pitch2D.format = FORMAT[f"CU_AD_FORMAT_{format}"]
            resource.res.pitch2D.numChannels = channels
            resource.res.pitch2D.width, resource.res.pitch2D.height = width, height
            resource.res.pitch2D.pitchInBytes = pitch
            return resource

    yield Maker()
    for destroy, handle in reversed(made):
        ok(destroy(handle))


def sampler(modes=(CLAMP, CLAMP, CLAMP), filter=POINT, flags=0, **fields):
    made = driver.CUDA_TEXTURE_DESC()
    made.addressMode, made.filterMode, made.flags = list(modes), filter, flags
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def view(width, height=0, depth=0, format="NONE", levels=(0, 0), layers=(0, 0)):
    made = driver.CUDA_RESOURCE_VIEW_DESC()
    made.format = driver.CUresourceViewFormat[f"CU_RES_VIEW_FORMAT_{format}"]
    made.width, made.height, made.depth = width, height, depth
    made.firstMipmapLevel, made.lastMipmapLevel = levels
    made.firstLayer, made.lastLayer = layers
    return made


RESOURCES = {
    "1d": lambda make: make.array(100),
    "2d": lambda make: make.array(31, 7, format="UNSIGNED_INT8", channels=4),
    "3d": lambda make: make.array(9, 5, 4, format="HALF"),
    "layered": lambda make: make.array(12, 6, 5, flags=LAYERED),
    "cubemap": lambda make: make.array(8, 8, 6, flags=CUBEMAP),
    "mipmapped": lambda make: make.mipmapped(4, 16, 16),
    "linear": lambda make: make.linear(1024, channels=2),
    "pitched": lambda make: make.pitched(33, 5, 256),
}


@pytest.mark.parametrize("resource", RESOURCES)
def test_textures_tell_what_they_are_of(make, resource):
    given = RESOURCES[resource](make)
    wanted = sampler(
        (WRAP, MIRROR, BORDER),
        flags=0 if resource == "linear" else NORMALIZED,
        maxAnisotropy=3,
        mipmapFilterMode=LINEAR,
        mipmapLevelBias=0.5,
        minMipmapLevelClamp=1.0,
        maxMipmapLevelClamp=2.0,
        borderColor=[0.25, 0.5, 0.75, 1.0],
    )
    texture = ok(driver.cuTexObjectCreate(given, wanted, None))
    found = ok(driver.cuTexObjectGetResourceDesc(texture))
    assert found.resType == given.resType and found.flags == 0
    union = {
        RESOURCE.CU_RESOURCE_TYPE_ARRAY: ("array", ["hArray"]),
        RESOURCE.CU_RESOURCE_TYPE_MIPMAPPED_ARRAY: ("mipmap", ["hMipmappedArray"]),
        RESOURCE.CU_RESOURCE_TYPE_LINEAR: ("linear", ["devPtr", "format", "numChannels", "sizeInBytes"]),
        RESOURCE.CU_RESOURCE_TYPE_PITCH2D: (
            "pitch2D",
            ["devPtr", "format", "numChannels", "width", "height", "pitchInBytes"],
        ),
    }[given.resType]
    for field in union[1]:
        assert int(getattr(getattr(found.res, union[0]), field)) == int(getattr(getattr(given.res, union[0]), field))
    found = ok(driver.cuTexObjectGetTextureDesc(texture))
    for field in ("addressMode", "filterMode", "flags", "maxAnisotropy", "mipmapFilterMode", "mipmapLevelBias"):
        assert getattr(found, field) == getattr(wanted, field), field
    assert (found.minMipmapLevelClamp, found.maxMipmapLevelClamp) == (1.0, 2.0)
    if on_cpu_device():  # drivers tell zeros, and of views that there are not, nothing
        assert list(found.borderColor) == [0.25, 0.5, 0.75, 1.0]
        result = driver.cuTexObjectGetResourceViewDesc(texture)
        assert status(result) == BAD and "made without a view" in explanation(result)
    ok(driver.cuTexObjectDestroy(texture))


def test_objects_are_not_alike(make):
    resource = make.array(8, 8, flags=SURFACE)
    objects = [ok(driver.cuTexObjectCreate(resource, sampler(), None)) for _ in range(3)]
    surfaces = [ok(driver.cuSurfObjectCreate(resource)) for _ in range(3)]
    assert len({int(o) for o in objects}) == 3 and len({int(o) for o in surfaces}) == 3
    assert all(int(o) for o in objects + surfaces)
    for o in objects:
        ok(driver.cuTexObjectDestroy(o))
    for o in surfaces:
        assert int(ok(driver.cuSurfObjectGetResourceDesc(o)).res.array.hArray) == int(resource.res.array.hArray)
        ok(driver.cuSurfObjectDestroy(o))


BAD_RESOURCES = [
    (lambda m: m.linear(1024, offset=4, room=2048), "must be a multiple of 512"),
    (lambda m: m.linear(1024, channels=3), "1, 2 or 4 channels, not 3"),
    (lambda m: m.pitched(33, 5, 100), "pitchInBytes is 100; it must be a multiple of 32"),
    (lambda m: m.pitched(8, 65001, 32), "the texture has 8 x 65001 texels; there may be 131072 x 65000 at most"),
    (lambda m: m.linear(1024, "UNORM_INT8X4", 4), "in memory, texels are integers, half or float"),
    (lambda m: m.pitched(8, 4, 64, "SNORM_INT16X2", 2), "in memory, texels are integers, half or float"),
]
BAD_RESOURCES_HERE = [
    (lambda m: m.linear(1024, room=512), BAD, "reaches 512 bytes past the end"),
    (lambda m: m.pitched(8, 4, 64, room=128), BAD, "past the end"),
    (lambda m: m.linear(1024, format="NV12"), UNSUPPORTED, "has no texels of format 0xb0"),
]


@pytest.mark.parametrize(("make_resource", "text"), BAD_RESOURCES)
def test_bad_resources(make, make_resource, text):
    result = driver.cuTexObjectCreate(make_resource(make), sampler(), None)
    assert status(result) == BAD
    assert not on_cpu_device() or text in explanation(result)


@pytest.mark.cpu_only
@pytest.mark.parametrize(("make_resource", "expected", "text"), BAD_RESOURCES_HERE)
def test_resources_that_the_cpu_device_refuses(make, make_resource, expected, text):
    result = driver.cuTexObjectCreate(make_resource(make), sampler(), None)
    assert status(result) == expected and text in explanation(result)


def test_resources_that_are_none(make):
    flagged, linear = make.array(8), make.linear(64)
    flagged.flags, linear.res.linear.devPtr = 1, 0
    none = driver.CUDA_RESOURCE_DESC()
    for resource, text in (
        (flagged, "flags of the resource must be 0"),
        (none, "'hArray' is a null pointer"),
        (linear, "'devPtr' is a null pointer"),
    ):
        result = driver.cuTexObjectCreate(resource, sampler(), None)
        assert status(result) == BAD
        assert not on_cpu_device() or text in explanation(result)
    assert status(driver.cuSurfObjectCreate(none)) == BAD


@pytest.mark.cpu_only
def test_resources_that_are_gone(context):
    resource = driver.CUDA_RESOURCE_DESC()
    array = ok(driver.cuArray3DCreate(descriptor(8, flags=SURFACE)))
    resource.res.array.hArray = array
    ok(driver.cuArrayDestroy(array))
    for create in (
        lambda: driver.cuTexObjectCreate(resource, sampler(), None),
        lambda: driver.cuSurfObjectCreate(resource),
    ):
        result = create()
        assert status(result) == HANDLE and "has been destroyed" in explanation(result)


BAD_SAMPLERS = [  # of a mipmapped or plain 2D array of floats
    ("mipmapped", sampler(), "add CU_TRSF_NORMALIZED_COORDINATES"),
    ("floats", sampler(flags=SEAMLESS), "SEAMLESS_CUBEMAP is for arrays made with CUDA_ARRAY3D_CUBEMAP"),
    ("floats", sampler(flags=0x100), "flags of the texture has unknown bits: 0x100"),
]


@pytest.mark.cpu_only
@pytest.mark.parametrize(("resource", "given", "text"), BAD_SAMPLERS)
def test_bad_samplers(make, resource, given, text):
    resource = {
        "mipmapped": lambda: make.mipmapped(2, 8, 8),
        "floats": lambda: make.array(8, 8),
    }[resource]()
    result = driver.cuTexObjectCreate(resource, given, None)
    assert status(result) == BAD and text in explanation(result)


GOOD_SAMPLERS = [
    ("HALF", sampler(filter=LINEAR)),
    ("UNSIGNED_INT8", sampler(filter=LINEAR)),
    ("UNSIGNED_INT8", sampler(filter=LINEAR, flags=NORMALIZED | SRGB)),
    ("SIGNED_INT16", sampler(flags=INTEGER)),
    ("UNSIGNED_INT32", sampler()),
    ("UNSIGNED_INT32", sampler(filter=LINEAR)),
    ("SIGNED_INT16", sampler(filter=LINEAR, flags=INTEGER)),
    ("FLOAT", sampler(filter=LINEAR, flags=INTEGER | NO_TRILINEAR, maxAnisotropy=40)),
    ("FLOAT", sampler((WRAP, MIRROR, WRAP))),  # without normalized coordinates: they clamp
]


@pytest.mark.parametrize(("format", "given"), GOOD_SAMPLERS)
def test_good_samplers(make, format, given):
    texture = ok(driver.cuTexObjectCreate(make.array(8, 8, format=format, channels=4), given, None))
    assert list(ok(driver.cuTexObjectGetTextureDesc(texture)).addressMode) == list(given.addressMode)
    ok(driver.cuTexObjectDestroy(texture))


VIEWS = [
    (lambda m: m.array(8, 4), view(8, 4, format="FLOAT_1X32")),
    (lambda m: m.array(8, 4), view(8, 4, format="UINT_1X32")),
    (lambda m: m.array(8, 4, format="UNSIGNED_INT8", channels=4), view(8, 4, format="SINT_4X8")),
    (lambda m: m.mipmapped(4, 16, 16), view(16, 16, format="FLOAT_1X32", levels=(1, 3))),
    (lambda m: m.array(8, 4, 6, flags=LAYERED), view(8, 4, 6, format="FLOAT_1X32", layers=(2, 4))),
    # Levels and layers that there are not
    (lambda m: m.mipmapped(3, 16, 16), view(16, 16, format="FLOAT_1X32", levels=(1, 9))),
    (lambda m: m.array(8, 4, 3, flags=LAYERED), view(8, 4, 3, format="FLOAT_1X32", layers=(1, 3))),
]


@pytest.mark.parametrize(("make_resource", "given"), VIEWS)
def test_views(make, make_resource, given):
    texture = ok(driver.cuTexObjectCreate(make_resource(make), sampler(flags=NORMALIZED), given))
    found = ok(driver.cuTexObjectGetResourceViewDesc(texture))
    for field in (
        "format",
        "width",
        "height",
        "depth",
        "firstMipmapLevel",
        "lastMipmapLevel",
        "firstLayer",
        "lastLayer",
    ):
        assert getattr(found, field) == getattr(given, field), field
    ok(driver.cuTexObjectDestroy(texture))


KERNELS = """
extern "C" __global__ void layers(cudaTextureObject_t texture, float *out) {
    int x = threadIdx.x, y = threadIdx.y, z = threadIdx.z;
    out[(z * blockDim.y + y) * blockDim.x + x] = tex2DLayered<float>(texture, x + 0.5f, y + 0.5f, z);
}
extern "C" __global__ void levels(cudaTextureObject_t texture, float *out) {
    int x = threadIdx.x, y = threadIdx.y;
    out[y * blockDim.x + x] = tex2DLod<float>(texture, (x + 0.5f) / blockDim.x, (y + 0.5f) / blockDim.y, 0.0f);
}
extern "C" __global__ void texels(cudaTextureObject_t texture, float *out) {
    int x = threadIdx.x, y = threadIdx.y;
    out[y * blockDim.x + x] = tex2D<float>(texture, x + 0.5f, y + 0.5f);
}
extern "C" __global__ void fetched(cudaTextureObject_t texture, float *out) {
    out[threadIdx.x] = tex1Dfetch<float>(texture, threadIdx.x);
}
extern "C" __global__ void integers(cudaTextureObject_t texture, int4 *out) {
    out[threadIdx.x] = tex1D<int4>(texture, threadIdx.x + 0.5f);
}
extern "C" __global__ void floats(cudaTextureObject_t texture, float4 *out) {
    out[threadIdx.x] = tex1D<float4>(texture, threadIdx.x + 0.5f);
}
"""


@pytest.fixture
def fetch(context):
    """Run a kernel that reads a texture: fetch(name, resource, sampler, view, threads, type and count of results)."""
    module = ok(driver.cuModuleLoadData(compiled(KERNELS)))
    made = []

    def fetch(name, resource, desc, given, block, dtype, count=1):
        texture = ok(driver.cuTexObjectCreate(resource, desc, given))
        made.append(texture)
        out = np.zeros((int(np.prod(block)), count), dtype)
        address = int(ok(driver.cuMemAlloc(out.nbytes)))
        function = ok(driver.cuModuleGetFunction(module, name.encode()))
        ok(launch(function, 0, ctypes.c_uint64(int(texture)), ctypes.c_uint64(address), block=block))
        ok(driver.cuMemcpyDtoH(out.ctypes.data, address, out.nbytes))
        ok(driver.cuMemFree(address))
        return out

    yield fetch
    for texture in made:
        ok(driver.cuTexObjectDestroy(texture))
    ok(driver.cuModuleUnload(module))


def test_memory_without_a_texel(make, fetch):
    """Or with a part of one only. Zeros are read of it, though a GPU may read what lies where the first would be."""
    for size, room in ((0, 4), (2, 4), (6, 64)):
        resource = make.linear(size, room=room)
        ok(driver.cuMemsetD8(resource.res.linear.devPtr, 0x3F, room))
        out = fetch("fetched", resource, sampler(), None, (3, 1, 1), np.float32).view(np.uint32)[:, 0]
        assert not out[2:].any()
        if on_cpu_device():
            assert list(out) == [0x3F3F3F3F if size == 6 else 0, 0, 0]
    for width, height in ((0, 5), (5, 0)):
        resource = make.pitched(width, height, 128, room=1024)
        out = fetch("texels", resource, sampler(), None, (4, 4, 1), np.float32)
        assert not on_cpu_device() or not out.any()


def test_rows_of_memory_overlap(make, fetch):
    resource, data = make.pitched(33, 5, 128, room=1024), numbers((256,))
    ok(driver.cuMemcpyHtoD(resource.res.pitch2D.devPtr, data.ctypes.data, data.nbytes))
    out = fetch("texels", resource, sampler(), None, (33, 5, 1), np.float32).reshape(5, 33)
    assert (out == [data[32 * y : 32 * y + 33] for y in range(5)]).all()


def test_kernels_see_the_layers_of_a_view(make, fetch):
    resource, data = make.array(8, 4, 6, flags=LAYERED), numbers((6, 4, 8))
    write(resource.res.array.hArray, data)
    given = view(8, 4, 6, format="FLOAT_1X32", layers=(2, 4))
    out = fetch("layers", resource, sampler(), given, (8, 4, 3), np.float32)
    assert (out.reshape(3, 4, 8) == data[2:5]).all()


def test_kernels_see_the_levels_of_a_view(make, fetch):
    resource = make.mipmapped(4, 16, 8)
    data = [numbers((1, 8 >> i, 16 >> i), start=i) for i in range(4)]
    for i, values in enumerate(data):
        write(ok(driver.cuMipmappedArrayGetLevel(resource.res.mipmap.hMipmappedArray, i)), values)
    given = view(16, 8, format="FLOAT_1X32", levels=(1, 3))
    out = fetch("levels", resource, sampler(flags=NORMALIZED), given, (8, 4, 1), np.float32)
    assert (out.reshape(4, 8) == data[1][0]).all()


def test_kernels_see_the_format_of_a_view(make, fetch):
    resource, data = make.array(16, format="UNSIGNED_INT8", channels=4), np.arange(64, dtype=np.uint8) * 4
    write(resource.res.array.hArray, data.reshape(1, 1, 16, 4))
    out = fetch("integers", resource, sampler(flags=INTEGER), view(16, format="SINT_4X8"), (16, 1, 1), np.int32, 4)
    assert (out == data.view(np.int8).reshape(16, 4)).all()


@pytest.mark.parametrize(
    ("format", "dtype", "most"),
    [
        ("UNORM_INT8X4", np.uint8, 255),
        ("SNORM_INT8X4", np.int8, 127),
        ("UNORM_INT16X4", np.uint16, 65535),
        ("SNORM_INT16X4", np.int16, 32767),
    ],
)
@pytest.mark.parametrize("flags", [0, pytest.param(INTEGER, marks=pytest.mark.cpu_only)], ids=["", "as integers"])
def test_kernels_read_normalized_formats_as_floats(make, fetch, format, dtype, most, flags):
    """Whatever the flags say: the format has no integers."""
    resource = make.array(16, format=format, channels=4)
    data = np.linspace(np.iinfo(dtype).min, np.iinfo(dtype).max, 64).astype(dtype).reshape(16, 4)
    write(resource.res.array.hArray, data.reshape(1, 1, 16, 4))
    out = fetch("floats", resource, sampler(flags=flags), None, (16, 1, 1), np.float32, 4)
    assert np.allclose(out, np.maximum(data.astype(np.float32) / most, -1), rtol=0, atol=1e-6)


BAD_VIEWS = [
    (lambda m: m.array(8, 4), view(8, 4), "the format of the view is NONE; give it one with texels of 4 bytes"),
    (lambda m: m.array(8, 4), view(8, 5, format="FLOAT_1X32"), "the view is of 8 x 5 x 0, the array of 8 x 4 x 0"),
    (lambda m: m.array(8, 4), view(8, 4, format="UINT_4X16"), "texels of 8 bytes, the array of 4"),
    (lambda m: m.array(8, 4), view(8, 4, format="FLOAT_1X32", levels=(0, 1)), "levels 0 to 1; the array has 0 to 0"),
    (lambda m: m.mipmapped(3, 8, 8), view(8, 8, format="FLOAT_1X32", levels=(2, 1)), "levels 2 to 1"),
    (lambda m: m.array(8, 4), view(8, 4, format="FLOAT_1X32", layers=(0, 1)), "layers 0 to 1; the array has 0 to 0"),
    (lambda m: m.array(8, 8, 6, flags=CUBEMAP), view(8, 8, 6, format="FLOAT_1X32", layers=(0, 5)), "layers 0 to 5"),
]
BAD_VIEWS_HERE = [
    (lambda m: m.mipmapped(3, 8, 8), view(8, 8, format="FLOAT_1X32", levels=(3, 3)), BAD, "the array has 0 to 2"),
    (lambda m: m.array(8, 4, 3, flags=LAYERED), view(8, 4, 3, format="FLOAT_1X32", layers=(3, 3)), BAD, "0 to 2"),
    (
        lambda m: m.array(8, 8, 12, flags=LAYERED | CUBEMAP),
        view(8, 8, 12, format="FLOAT_1X32", layers=(6, 9)),
        BAD,
        "not whole cubes",
    ),
    (lambda m: m.array(8, 4, channels=2), view(32, 16, format="UNSIGNED_BC1"), BAD, "2 channels of CU_AD_FORMAT_UNS"),
]


@pytest.mark.parametrize(("make_resource", "given", "text"), BAD_VIEWS)
def test_bad_views(make, make_resource, given, text):
    result = driver.cuTexObjectCreate(make_resource(make), sampler(flags=NORMALIZED), given)
    assert status(result) == BAD
    assert not on_cpu_device() or text in explanation(result)


@pytest.mark.cpu_only
@pytest.mark.parametrize(("make_resource", "given", "expected", "text"), BAD_VIEWS_HERE)
def test_views_that_the_cpu_device_refuses(make, make_resource, given, expected, text):
    result = driver.cuTexObjectCreate(make_resource(make), sampler(flags=NORMALIZED), given)
    assert status(result) == expected and text in explanation(result)


def test_memory_has_no_views(make):
    """One that is given does not count."""
    for resource in (make.linear(1024), make.pitched(8, 4, 64)):
        texture = ok(driver.cuTexObjectCreate(resource, sampler(), view(256)))
        assert not on_cpu_device() or status(driver.cuTexObjectGetResourceViewDesc(texture)) == BAD
        ok(driver.cuTexObjectDestroy(texture))


def test_bad_surfaces(make):
    cases = (
        (make.linear(1024), "resType is 2, not ARRAY"),
        (make.mipmapped(2, 8, 8, flags=SURFACE), "resType is 1, not ARRAY"),
    )
    for resource, text in cases:
        result = driver.cuSurfObjectCreate(resource)
        assert status(result) == BAD
        assert not on_cpu_device() or text in explanation(result)


def test_plain_arrays_can_be_surfaces(make):
    """Though CUDA_ARRAY3D_SURFACE_LDST is documented as needed."""
    for resource in (make.array(8), make.array(8, 8), make.array(8, 8, 4), make.array(8, 8, 6, flags=CUBEMAP)):
        ok(driver.cuSurfObjectDestroy(ok(driver.cuSurfObjectCreate(resource))))


def test_levels_can_be_surfaces(make):
    mipmapped = make.mipmapped(3, 8, 8, flags=SURFACE)
    resource = driver.CUDA_RESOURCE_DESC()
    resource.res.array.hArray = ok(driver.cuMipmappedArrayGetLevel(mipmapped.res.mipmap.hMipmappedArray, 1))
    ok(driver.cuSurfObjectDestroy(ok(driver.cuSurfObjectCreate(resource))))


def test_nothing_can_be_destroyed(context):
    ok(driver.cuTexObjectDestroy(0))
    ok(driver.cuSurfObjectDestroy(0))
    assert status(driver.cuTexObjectGetTextureDesc(0)) == BAD


@pytest.mark.cpu_only
def test_destroyed_objects(make):
    resource = make.array(8, flags=SURFACE)
    texture, surface = ok(driver.cuTexObjectCreate(resource, sampler(), None)), ok(driver.cuSurfObjectCreate(resource))
    ok(driver.cuTexObjectDestroy(texture))
    ok(driver.cuSurfObjectDestroy(surface))
    for call, value, text in (
        (driver.cuTexObjectDestroy, texture, "has been destroyed"),
        (driver.cuTexObjectGetTextureDesc, texture, "has been destroyed"),
        (driver.cuSurfObjectDestroy, surface, "has been destroyed"),
        (driver.cuSurfObjectGetResourceDesc, texture, "is not a surface object"),
        (driver.cuTexObjectDestroy, 16, "0x10 is not a texture object"),
    ):
        result = call(value)
        assert status(result) == BAD and text in explanation(result)


@pytest.mark.cpu_only
def test_objects_go_with_their_context():
    ok(driver.cuInit(0))
    own = ok(driver.cuCtxCreate(None, 0, 0))
    resource = driver.CUDA_RESOURCE_DESC()
    resource.res.array.hArray = ok(driver.cuArray3DCreate(descriptor(8, flags=SURFACE)))
    texture, surface = ok(driver.cuTexObjectCreate(resource, sampler(), None)), ok(driver.cuSurfObjectCreate(resource))
    ok(driver.cuCtxDestroy(own))
    assert status(driver.cuTexObjectDestroy(texture)) == BAD
    assert status(driver.cuSurfObjectDestroy(surface)) == BAD


PEERS = """
import ctypes
import cupola.cpu
cupola.cpu.use(devices=2)
import numpy as np
from cupola.bindings import driver
from tests.cpu.driver.texture.arrays import as_bytes, box, array_side, descriptor, numbers, read, write
from tests.cpu.driver.calls import compiled, launch, ok, status
from tests.cpu.driver.texture.test_texture import KERNELS, sampler

ok(driver.cuInit(0))
first, second = (ok(driver.cuDevicePrimaryCtxRetain(i)) for i in range(2))
ok(driver.cuCtxSetCurrent(first))
source, data = ok(driver.cuArray3DCreate(descriptor(16, channels=4))), numbers((1, 1, 64))
write(source, data)
resource = driver.CUDA_RESOURCE_DESC()
resource.res.array.hArray = source

ok(driver.cuCtxSetCurrent(second))
target = ok(driver.cuArray3DCreate(descriptor(16, channels=4)))
form = driver.CUDA_MEMCPY3D_PEER()
form.WidthInBytes, form.Height, form.Depth = 256, 1, 1
array_side(form, "src", source)
array_side(form, "dst", target)
form.srcContext, form.dstContext = first, second
ok(driver.cuMemcpy3DPeer(form))
assert (read(target, data.shape) == data).all()

function = ok(driver.cuModuleGetFunction(ok(driver.cuModuleLoadData(compiled(KERNELS))), b"floats"))
out = ok(driver.cuMemAlloc(256))
if ALLOWED:
    ok(driver.cuCtxEnablePeerAccess(first, 0))
texture = ok(driver.cuTexObjectCreate(resource, sampler(), None))
ok(launch(function, 0, ctypes.c_uint64(int(texture)), ctypes.c_uint64(int(out)), block=16))
assert status(driver.cuCtxSynchronize()) == ("CUDA_SUCCESS" if ALLOWED else "CUDA_ERROR_ILLEGAL_ADDRESS")
"""


@pytest.mark.cpu_only
@pytest.mark.parametrize("allowed", [False, True])
def test_arrays_of_another_device(run_python, allowed):
    """Copies reach them; kernels do with access to the peer."""
    done = run_python(PEERS.replace("ALLOWED", str(allowed)), CUPOLA_DEVICE="auto", PYTHONPATH=str(ROOT))
    assert done.returncode == 0, done.stdout + done.stderr
