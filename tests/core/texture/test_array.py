"""Arrays and mipmapped arrays: what they say of themselves, their copies, and how long they live."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest

from cupola import CUDAError, LegacyPinnedMemoryResource
from cupola.bindings import driver
from cupola.texture import MipmappedArrayOptions, OpaqueArrayOptions, ResourceDescriptor
from cupola.typing import ArrayFormatType
from tests.cpu.driver.calls import ok

SHAPES = [(5,), (5, 3), (5, 3, 2)]


def free_memory() -> int:
    return int(ok(driver.cuMemGetInfo())[0])


def numbers(shape: tuple[int, ...], dtype: str, channels: int) -> np.ndarray:
    """Other numbers for other places, in NumPy's order: width last."""
    extents = (*reversed(shape), channels)
    return (np.arange(np.prod(extents)) % 120).astype(dtype).reshape(extents)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("channels", [1, 2, 4])
@pytest.mark.parametrize("format", ["uint8", "int16", "float16", "float32", "uint32"])
def test_copies_there_and_back(device, stream, shape, channels, format):
    with device.create_opaque_array(OpaqueArrayOptions(shape, format, channels)) as array:
        data = numbers(shape, format, channels)
        assert (array.shape, array.format, array.num_channels) == (shape, format, channels)
        assert isinstance(array.format, ArrayFormatType)
        assert array.element_bytes == data.itemsize * channels
        assert array.size_bytes == data.nbytes
        assert array.device == device
        array.copy_from(data, stream=stream)
        buffer = device.allocate(data.nbytes, stream=stream)
        assert array.copy_to(buffer, stream=stream) is buffer
        array.copy_from(np.zeros_like(data), stream=stream)
        array.copy_from(buffer, stream=stream)
        back = np.empty_like(data)
        assert array.copy_to(back, stream=stream) is back
        stream.sync()
        np.testing.assert_array_equal(back, data)


def test_memory_beyond_the_array_stays(device, stream):
    array = device.create_opaque_array(OpaqueArrayOptions((4,), "uint8", 1))
    array.copy_from(bytes([1, 2, 3, 4, 5, 6]), stream=stream)
    out = np.full(6, 9, np.uint8)
    array.copy_to(out, stream=stream)
    stream.sync()
    assert out.tolist() == [1, 2, 3, 4, 9, 9]


def test_elements_of_the_host_are_gathered_and_scattered(device, stream):
    data = np.arange(24, dtype=np.float32).reshape(6, 4)
    array = device.create_opaque_array(OpaqueArrayOptions((3, 4), "float32", 1))
    array.copy_from(data[::2].T, stream=stream)  # 4 rows of 3
    out = np.zeros((4, 6), np.float32)
    array.copy_to(out[:, ::2], stream=stream)
    assert (out[:, ::2] == data[::2].T).all()
    assert (out[:, 1::2] == 0).all()
    with pytest.raises(ValueError, match="48 bytes, src has 64, which are not contiguous"):
        array.copy_from(np.zeros((8, 4), np.float32)[::2].T, stream=stream)


def test_pageable_memory_is_read_during_the_call_and_written_by_it(device, stream):
    array = device.create_opaque_array(OpaqueArrayOptions((512, 512), "float32", 1))
    data, out = np.ones((512, 512), np.float32), np.zeros((512, 512), np.float32)
    array.copy_from(data, stream=stream)
    data[:] = 2
    array.copy_to(out, stream=stream)
    assert (out == 1).all()


def test_pinned_memory_is_kept_until_the_copy_is_over(device, stream):
    array = device.create_opaque_array(OpaqueArrayOptions((256, 256), "float32", 1))
    pinned = LegacyPinnedMemoryResource().allocate(4 * 256 * 256)
    view = np.from_dlpack(pinned).view(np.float32)
    view[:] = 3
    array.copy_from(view, stream=stream)
    del view, pinned
    gc.collect()
    out = np.zeros((256, 256), np.float32)
    array.copy_to(out, stream=stream)
    assert (out == 3).all()


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        (lambda array, stream: array.copy_from(bytes(15), stream=stream), ValueError, "16 bytes, src only 15"),
        (lambda array, stream: array.copy_to(bytearray(15), stream=stream), ValueError, "16 bytes, dst only 15"),
        (lambda array, stream: array.copy_to(bytes(16), stream=stream), ValueError, "must be writable"),
        (
            lambda array, stream: array.copy_from([0] * 16, stream=stream),
            TypeError,
            "src must be a Buffer, or an",
        ),
        (lambda array, stream: array.copy_from(array, stream=stream), TypeError, "not OpaqueArray"),
        (lambda array, stream: array.copy_from(bytes(16)), TypeError, "stream"),
    ],
)
def test_bad_copies(device, stream, change, error, text):
    array = device.create_opaque_array(OpaqueArrayOptions((4,), "float32", 1))
    with pytest.raises(error, match=text):
        change(array, stream)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        (dict(shape=5), TypeError, r"\(width,\), \(width, height\) or"),
        (dict(shape="55"), TypeError, "not str"),
        (dict(shape=()), ValueError, "1, 2 or 3 extents, width first; got 0"),
        (dict(shape=(1, 2, 3, 4)), ValueError, "got 4"),
        (dict(shape=(4, 0)), ValueError, r"shape\[1\] must be at least 1, got 0"),
        (dict(shape=(4.5,)), TypeError, r"shape\[0\] must be an int, not float"),
        (dict(format="f4"), ValueError, "'uint8', 'uint16'.*got 'f4'"),
        (dict(format=np.float64), ValueError, "format must be"),
        (dict(format=np.dtype(">f4")), ValueError, "format must be"),
        (dict(format=None), ValueError, "format must be"),
        (dict(num_channels=3), ValueError, "1, 2 or 4, got 3"),
        (dict(num_channels=True), ValueError, "got True"),
        (dict(num_chanels=1), TypeError, "no option 'num_chanels'; did you mean 'num_channels'"),
    ],
)
def test_bad_options(device, options, error, text):
    given = {"shape": (4, 4), "format": "float32", "num_channels": 1, **options}
    with pytest.raises(error, match=text):
        device.create_opaque_array(given)
    with pytest.raises(error, match=text):
        MipmappedArrayOptions(num_levels=1, **given)


def test_options_are_checked_again_where_they_are_used(device):
    options = OpaqueArrayOptions((4,), "float32", 1)
    options.num_channels = 3
    with pytest.raises(ValueError, match="num_channels"):
        device.create_opaque_array(options)
    with pytest.raises(TypeError, match="OpaqueArrayOptions or a dict of its fields, not None"):
        device.create_opaque_array(None)


def test_an_array_that_is_too_large(device):
    with pytest.raises(CUDAError, match="CUDA_ERROR_INVALID_VALUE"):
        device.create_opaque_array(OpaqueArrayOptions((10**9,), "uint8", 1))


def test_levels(device, stream):
    options = MipmappedArrayOptions((9, 5, 3), "uint16", 2, 4, is_surface_load_store=True)
    mipmapped = device.create_mipmapped_array(options)
    assert (mipmapped.shape, mipmapped.format, mipmapped.num_channels) == ((9, 5, 3), "uint16", 2)
    assert mipmapped.num_levels == 4
    levels = [mipmapped.get_level(i) for i in range(4)]
    assert [level.shape for level in levels] == [(9, 5, 3), (4, 2, 1), (2, 1, 1), (1, 1, 1)]
    assert all(level.is_surface_load_store for level in levels)
    for i, level in enumerate(levels):
        level.copy_from(np.full(level.size_bytes, i, np.uint8), stream=stream)
    mipmapped.close()  # the levels keep the memory
    for i, level in enumerate(levels):
        assert set(level.copy_to(bytearray(level.size_bytes), stream=stream)) == {i}
    for level in (4, -1):
        with pytest.raises(ValueError, match=f"no level {level}: the array has levels 0 to 3"):
            device.create_mipmapped_array(options).get_level(level)
    with pytest.raises(RuntimeError, match="MipmappedArray has been closed"):
        mipmapped.get_level(0)


def test_more_levels_than_halvings(device):
    with pytest.raises(ValueError, match="num_levels is 5; an array of 8 x 4 elements has at most 4 levels"):
        device.create_mipmapped_array(MipmappedArrayOptions((8, 4), "float32", 1, 5))
    assert device.create_mipmapped_array(MipmappedArrayOptions((8, 4), "float32", 1, 4)).num_levels == 4


@pytest.mark.cpu_only  # of a GPU's memory, other processes may take and give back some meanwhile
@pytest.mark.parametrize("kind", ["array", "mipmapped", "level"])
def test_memory_goes_with_the_last_holder(device, kind):
    def make():
        shape = (1024, 1024, 8)
        if kind == "array":
            return device.create_opaque_array(OpaqueArrayOptions(shape, "float32", 1))
        mipmapped = device.create_mipmapped_array(MipmappedArrayOptions(shape, "float32", 1, 2))
        return mipmapped if kind == "mipmapped" else mipmapped.get_level(1)

    make()
    before = free_memory()
    array = make()
    assert before - free_memory() >= 1 << 25
    array.close()
    array.close()
    assert (array.handle, array.is_closed) == (0, True)
    assert before - free_memory() < 1 << 20
    del array
    array = make()
    del array
    assert before - free_memory() < 1 << 20


@pytest.mark.filterwarnings("error")
def test_objects_may_end_on_a_thread_without_a_context(device):
    array = device.create_opaque_array(OpaqueArrayOptions((16, 16), "float32", 1, is_surface_load_store=True))
    resource = ResourceDescriptor.from_opaque_array(array)
    held = [
        device.create_texture_object(resource=resource),
        device.create_surface_object(resource=resource),
        device.create_mipmapped_array(MipmappedArrayOptions((16,), "float32", 1, 2)),
        array,
    ]
    del array, resource
    thread = threading.Thread(target=held.clear)
    thread.start()
    thread.join()


def test_copies_in_a_graph_keep_the_array(device, stream):
    data = np.arange(64, dtype=np.float32)
    array = device.create_opaque_array(OpaqueArrayOptions((64,), "float32", 1))
    source, target = (device.allocate(256, stream=stream) for _ in range(2))
    source.copy_from(data, stream=stream)
    builder = device.create_graph_builder().begin_building()
    array.copy_from(source, stream=builder)
    array.copy_to(target, stream=builder)
    graph = builder.end_building().complete()
    array.close()
    source.close(stream)
    graph.launch(stream)
    out = target.copy_to(np.zeros(64, np.float32), stream=stream)
    stream.sync()
    assert (out == data).all()


def test_no_context(device, run_python):
    done = run_python(
        "from cupola import Device\n"
        "try: Device().create_opaque_array({'shape': (4,), 'format': 'float32', 'num_channels': 1})\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    assert "CUDAError Device 0 is not yet initialized on this thread" in done.stdout, done.stderr
