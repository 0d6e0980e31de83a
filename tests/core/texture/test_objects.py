"""Textures and surfaces: what kernels read and write through them, their options, and what they keep."""

from __future__ import annotations

import numpy as np
import pytest

from cupola import CUDAError, LaunchConfig, Program, launch
from cupola.bindings import driver
from cupola.texture import (
    MipmappedArrayOptions,
    OpaqueArrayOptions,
    ResourceDescriptor,
    TextureObjectOptions,
)
from tests.cpu.driver.calls import ok

SOURCE = r"""
extern "C" __global__ void fetch(cudaTextureObject_t t, float* out, const float2* at) {
    out[threadIdx.x] = tex2D<float>(t, at[threadIdx.x].x, at[threadIdx.x].y);
}
extern "C" __global__ void linear(cudaTextureObject_t t, float4* out) {
    out[threadIdx.x] = tex1Dfetch<float4>(t, threadIdx.x);
}
extern "C" __global__ void level(cudaTextureObject_t t, float* out, float lod) {
    out[threadIdx.x] = tex2DLod<float>(t, 0.5f, 0.5f, lod);
}
extern "C" __global__ void twice(cudaSurfaceObject_t s) {
    const int x = threadIdx.x, y = threadIdx.y;
    surf2Dwrite(2 * surf2Dread<float>(s, 4 * x, y), s, 4 * x, y);
}
"""


@pytest.fixture(scope="module")
def code():
    from cupola import Device

    Device(0).set_current()
    return Program(SOURCE, "c++").compile("cubin")


@pytest.fixture
def picture(device, stream):
    """4 x 3 numbers, 10 y + x."""
    data = (10 * np.arange(3)[:, None] + np.arange(4)).astype(np.float32)
    array = device.create_opaque_array(OpaqueArrayOptions((4, 3), "float32", 1, is_surface_load_store=True))
    array.copy_from(data, stream=stream)
    return array


def fetched(device, stream, code, texture, places) -> list[float]:
    at = np.array(places, np.float32)
    where, out = device.allocate(at.nbytes, stream=stream), device.allocate(4 * len(at), stream=stream)
    where.copy_from(at, stream=stream)
    launch(stream, LaunchConfig(grid=1, block=len(at)), code.get_kernel("fetch"), texture, out, where)
    result = out.copy_to(np.zeros(len(at), np.float32), stream=stream)
    stream.sync()
    return result.tolist()


@pytest.mark.parametrize(
    ("options", "places", "values"),
    [
        ({}, [(0.5, 0.5), (3.9, 2.1), (-5, 0.5), (9, 9)], [0, 23, 0, 23]),
        ({"filter_mode": "linear"}, [(1, 0.5), (0.5, 1), (1, 1)], [0.5, 5, 5.5]),
        ({"address_mode": "border"}, [(-1, 0.5), (1.5, 0.5)], [0, 1]),
        ({"address_mode": "border", "border_color": (7, 0, 0, 0)}, [(-1, 0.5), (1.5, 0.5)], [7, 1]),
        ({"address_mode": ("border", "clamp"), "border_color": (7, 0, 0, 0)}, [(-1, 0.5), (1.5, -3)], [7, 1]),
        ({"address_mode": "wrap", "normalized_coords": True}, [(0.125, 0), (1.125, 0), (-0.125, 0)], [0, 0, 3]),
        ({"address_mode": "mirror", "normalized_coords": True}, [(1.125, 0), (-0.125, 0)], [3, 0]),
    ],
)
def test_options_are_what_the_kernel_sees(device, stream, code, picture, options, places, values):
    resource = ResourceDescriptor.from_opaque_array(picture)
    with device.create_texture_object(resource=resource, options=options) as texture:
        assert texture.options == TextureObjectOptions(**options)
        assert fetched(device, stream, code, texture, places) == values


def test_the_handle_is_an_argument_too(device, stream, code, picture):
    texture = device.create_texture_object(resource=ResourceDescriptor.from_opaque_array(picture))
    assert type(texture.handle) is int
    for argument in (np.uint64(texture.handle), texture.handle, driver.CUtexObject(texture.handle)):
        assert fetched(device, stream, code, argument, [(2.5, 1.5)]) == [12]


@pytest.mark.parametrize(("format", "value"), [("uint8", 1.0), ("int16", 255 / 32767), ("uint16", 255 / 65535)])
def test_integers_as_floats(device, stream, code, format, value):
    array = device.create_opaque_array(OpaqueArrayOptions((1, 1), format, 1))
    array.copy_from(np.array([255], format), stream=stream)
    options = {"read_mode": "normalized_float"}
    texture = device.create_texture_object(resource=ResourceDescriptor.from_opaque_array(array), options=options)
    assert fetched(device, stream, code, texture, [(0.5, 0.5)]) == [np.float32(value)]


def test_linear_memory(device, stream, code):
    data = np.arange(32, dtype=np.float32)
    buffer = device.allocate(data.nbytes, stream=stream)
    buffer.copy_from(data, stream=stream)
    resource = ResourceDescriptor.from_linear(buffer, format="float32", num_channels=4)
    assert (resource.kind, resource.size_bytes, resource.source) == ("linear", 128, buffer)
    texture = device.create_texture_object(resource=resource)
    buffer.close()  # the texture keeps the memory
    out = device.allocate(data.nbytes, stream=stream)
    launch(stream, LaunchConfig(grid=1, block=8), code.get_kernel("linear"), texture, out)
    assert (out.copy_to(np.zeros_like(data), stream=stream) == data).all()


def test_pitched_memory(device, stream, code):
    pitch = max(64, device.properties.texture_pitch_alignment)
    rows = np.zeros((3, pitch // 4), np.float32)
    rows[:, :4] = 10 * np.arange(3)[:, None] + np.arange(4)
    buffer = device.allocate(rows.nbytes, stream=stream)
    buffer.copy_from(rows, stream=stream)
    resource = ResourceDescriptor.from_pitch2d(
        buffer, format=np.float32, num_channels=1, width=4, height=3, pitch_bytes=pitch
    )
    assert (resource.width, resource.height, resource.pitch_bytes) == (4, 3, pitch)
    texture = device.create_texture_object(resource=resource, options={"filter_mode": "linear"})
    assert fetched(device, stream, code, texture, [(1, 1), (3.5, 2.5)]) == [5.5, 23]


def test_levels(device, stream, code):
    mipmapped = device.create_mipmapped_array(MipmappedArrayOptions((4, 4), "float32", 1, 3))
    for i in range(3):
        level = mipmapped.get_level(i)
        level.copy_from(np.full(level.size_bytes // 4, i, np.float32), stream=stream)
    resource = ResourceDescriptor.from_mipmapped_array(mipmapped)
    options = {"normalized_coords": True, "mipmap_filter_mode": "linear", "max_mipmap_level_clamp": 2}
    texture = device.create_texture_object(resource=resource, options=options)
    mipmapped.close()  # the texture keeps it
    out = device.allocate(4, stream=stream)
    for lod in (0, 0.5, 1, 2, 7):
        launch(stream, LaunchConfig(grid=1, block=1), code.get_kernel("level"), texture, out, np.float32(lod))
        assert out.copy_to(np.zeros(1, np.float32), stream=stream)[0] == min(lod, 2)


def test_surfaces(device, stream, code, picture):
    surface = device.create_surface_object(resource=ResourceDescriptor.from_opaque_array(picture))
    launch(stream, LaunchConfig(grid=1, block=(4, 3)), code.get_kernel("twice"), surface)
    launch(stream, LaunchConfig(grid=1, block=(4, 3)), code.get_kernel("twice"), np.uint64(surface.handle))
    out = picture.copy_to(np.zeros((3, 4), np.float32), stream=stream)
    assert (out == 4 * (10 * np.arange(3)[:, None] + np.arange(4))).all()


def test_surface_of_a_level(device, stream, code):
    options = MipmappedArrayOptions((8, 6), "float32", 1, 2, is_surface_load_store=True)
    mipmapped = device.create_mipmapped_array(options)
    level = mipmapped.get_level(1)
    level.copy_from(np.ones((3, 4), np.float32), stream=stream)
    surface = device.create_surface_object(resource=ResourceDescriptor.from_opaque_array(level))
    mipmapped.close()
    launch(stream, LaunchConfig(grid=1, block=(4, 3)), code.get_kernel("twice"), surface)
    assert (level.copy_to(np.zeros((3, 4), np.float32), stream=stream) == 2).all()


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda d, r: d.create_texture_object(resource=r.source), TypeError, "resource must be a ResourceDescriptor"),
        (lambda d, r: d.create_texture_object(resource=r, options={"filter": "linear"}), TypeError, "filter_mode"),
        (
            lambda d, r: d.create_texture_object(resource=r, options={"address_mode": "x"}),
            ValueError,
            "'wrap', 'clamp'",
        ),
        (lambda d, r: d.create_texture_object(resource=r, options={"address_mode": 3}), TypeError, "address_mode"),
        (lambda d, r: d.create_texture_object(resource=r, options={"address_mode": ()}), ValueError, "1 to 3"),
        (
            lambda d, r: d.create_texture_object(resource=r, options={"filter_mode": "x"}),
            ValueError,
            "'point', 'linear'",
        ),
        (lambda d, r: d.create_texture_object(resource=r, options={"max_anisotropy": -1}), ValueError, "got -1"),
        (lambda d, r: d.create_texture_object(resource=r, options={"border_color": (1, 2)}), ValueError, "four"),
        (lambda d, r: d.create_texture_object(resource=r, options={"mipmap_level_bias": "1"}), TypeError, "number"),
        (
            lambda d, r: d.create_texture_object(resource=r, options={"seamless_cubemap": True}),
            CUDAError,
            "INVALID_VALUE",
        ),
        (lambda d, r: d.create_surface_object(resource=r), ValueError, "is_surface_load_store=True"),
        (lambda d, r: d.create_surface_object(resource=None), TypeError, "ResourceDescriptor.from_"),
    ],
)
def test_mistakes(device, make, error, text):
    array = device.create_opaque_array(OpaqueArrayOptions((4, 4), "float32", 1))
    with pytest.raises(error, match=text):
        make(device, ResourceDescriptor.from_opaque_array(array))


def test_surfaces_are_of_arrays(device, stream):
    mipmapped = device.create_mipmapped_array(MipmappedArrayOptions((4, 4), "float32", 1, 1, True))
    with pytest.raises(ValueError, match=r"kind 'mipmapped_array'; make one of a level, mipmapped.get_level\(i\)"):
        device.create_surface_object(resource=ResourceDescriptor.from_mipmapped_array(mipmapped))
    buffer = device.allocate(64, stream=stream)
    with pytest.raises(ValueError, match="kind 'linear'"):
        device.create_surface_object(resource=ResourceDescriptor.from_linear(buffer, format="uint8", num_channels=1))


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"size_bytes": 128}, ValueError, "size_bytes is 128, the buffer has 100 bytes"),
        ({}, ValueError, "100 bytes, must be a multiple of an element, 16 bytes.*pass size_bytes"),
        ({"size_bytes": 20}, ValueError, "multiple of an element, 16 bytes"),
        ({"size_bytes": 0}, ValueError, "at least one"),
        ({"size_bytes": 16.0}, TypeError, "not float"),
        ({"format": "float64"}, ValueError, "format"),
        ({"num_channels": 3}, ValueError, "num_channels"),
    ],
)
def test_bad_linear_memory(device, stream, arguments, error, text):
    buffer = device.allocate(100, stream=stream)
    with pytest.raises(error, match=text):
        ResourceDescriptor.from_linear(buffer, **{"format": "float32", "num_channels": 4, **arguments})


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"width": 0}, ValueError, "width must be at least 1"),
        ({"height": -1}, ValueError, "height must be at least 1"),
        ({"pitch_bytes": 12}, ValueError, "pitch_bytes is 12; a row of 4 elements has 16 bytes"),
        ({"height": 5}, ValueError, "5 rows of 512 bytes are 2560 bytes; the buffer has 2048"),
        ({"width": "4"}, TypeError, "width must be an int"),
    ],
)
def test_bad_pitched_memory(device, stream, arguments, error, text):
    buffer = device.allocate(2048, stream=stream)
    form = {"format": "float32", "num_channels": 1, "width": 4, "height": 4, "pitch_bytes": 512, **arguments}
    with pytest.raises(error, match=text):
        ResourceDescriptor.from_pitch2d(buffer, **form)


def test_what_is_closed_makes_no_texture(device, stream):
    array = device.create_opaque_array(OpaqueArrayOptions((4,), "float32", 1))
    mipmapped = device.create_mipmapped_array(MipmappedArrayOptions((4,), "float32", 1, 1))
    buffer = device.allocate(64, stream=stream)
    for source, resource in (
        (array, ResourceDescriptor.from_opaque_array(array)),
        (mipmapped, ResourceDescriptor.from_mipmapped_array(mipmapped)),
        (buffer, ResourceDescriptor.from_linear(buffer, format="float32", num_channels=1)),
    ):
        source.close()
        with pytest.raises(RuntimeError, match=f"{type(source).__name__} has been closed"):
            device.create_texture_object(resource=resource)


def test_a_closed_texture(device, stream, code, picture):
    texture = device.create_texture_object(resource=ResourceDescriptor.from_opaque_array(picture))
    texture.close()
    texture.close()
    assert (texture.handle, texture.resource, texture.is_closed) == (0, None, True)
    assert texture.options == TextureObjectOptions()
    with pytest.raises(RuntimeError, match="TextureObject has been closed"):
        fetched(device, stream, code, texture, [(0, 0)])


@pytest.mark.cpu_only  # of a GPU's memory, other processes may take and give back some meanwhile
def test_the_array_lives_as_long_as_its_texture(device, stream):
    def free() -> int:
        return int(ok(driver.cuMemGetInfo())[0])

    before = free()
    array = device.create_opaque_array(OpaqueArrayOptions((1024, 1024, 8), "float32", 1, is_surface_load_store=True))
    resource = ResourceDescriptor.from_opaque_array(array)
    texture = device.create_texture_object(resource=resource)
    surface = device.create_surface_object(resource=resource)
    array.close()
    assert before - free() >= 1 << 25
    texture.close()
    assert before - free() >= 1 << 25
    del surface
    assert before - free() < 1 << 20


def test_a_graph_keeps_what_it_is_given(device, stream, code):
    data = np.arange(12, dtype=np.float32).reshape(3, 4)
    array = device.create_opaque_array(OpaqueArrayOptions((4, 3), "float32", 1))
    array.copy_from(data, stream=stream)
    texture = device.create_texture_object(resource=ResourceDescriptor.from_opaque_array(array))
    at, out = device.allocate(8, stream=stream), device.allocate(4, stream=stream)
    at.copy_from(np.array([2.5, 1.5], np.float32), stream=stream)
    stream.sync()
    builder = device.create_graph_builder().begin_building()
    launch(builder, LaunchConfig(grid=1, block=1), code.get_kernel("fetch"), texture, out, at)
    graph = builder.end_building().complete()
    texture.close()
    array.close()
    graph.launch(stream)
    assert out.copy_to(np.zeros(1, np.float32), stream=stream)[0] == data[1, 2]
