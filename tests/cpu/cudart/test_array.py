"""Arrays, their copies, and texture and surface objects through the runtime."""

from __future__ import annotations

import numpy as np
import pytest

from cupola.bindings import driver, runtime
from tests.conftest import on_cpu_device
from tests.cpu.cudart.calls import ok, status

KIND = runtime.cudaMemcpyKind
CHANNEL = runtime.cudaChannelFormatKind
SIGNED, UNSIGNED, FLOAT = (
    CHANNEL.cudaChannelFormatKindSigned,
    CHANNEL.cudaChannelFormatKindUnsigned,
    CHANNEL.cudaChannelFormatKindFloat,
)
SURFACE = runtime.cudaArraySurfaceLoadStore


def channels(*bits, kind=FLOAT):
    return ok(runtime.cudaCreateChannelDesc(*bits, *(0,) * (4 - len(bits)), kind))


def same(a, b):
    return all(getattr(a, field) == getattr(b, field) for field in "xyzwf")


def numbers(*shape, dtype=np.float32):
    return (np.arange(int(np.prod(shape))) % 100 + 1).astype(dtype).reshape(shape)


@pytest.fixture
def make_array(device):
    """Make arrays of floats or other channels, freed behind the test: make_array(width, height=0, depth=0, ...)."""
    made = []

    def make(width, height=0, depth=0, desc=None, flags=0):
        extent = runtime.make_cudaExtent(width, height, depth)
        made.append(ok(runtime.cudaMalloc3DArray(desc or channels(32), extent, flags)))
        return made[-1]

    yield make
    for array in made:
        ok(runtime.cudaFreeArray(array))


FORMATS = [
    ((8,), SIGNED, "SIGNED_INT8", 1),
    ((16, 16), SIGNED, "SIGNED_INT16", 2),
    ((32, 32, 32, 32), SIGNED, "SIGNED_INT32", 4),
    ((8, 8, 8, 8), UNSIGNED, "UNSIGNED_INT8", 4),
    ((16,), UNSIGNED, "UNSIGNED_INT16", 1),
    ((32, 32), UNSIGNED, "UNSIGNED_INT32", 2),
    ((16,), FLOAT, "HALF", 1),
    ((32,), FLOAT, "FLOAT", 1),
    ((8,), CHANNEL.cudaChannelFormatKindUnsignedNormalized8X1, "UNORM_INT8X1", 1),
    ((16, 16), CHANNEL.cudaChannelFormatKindUnsignedNormalized16X2, "UNORM_INT16X2", 2),
    ((8, 8, 8, 8), CHANNEL.cudaChannelFormatKindSignedNormalized8X4, "SNORM_INT8X4", 4),
    ((16, 16, 16, 16), CHANNEL.cudaChannelFormatKindSignedNormalized16X4, "SNORM_INT16X4", 4),
    ((8, 8, 8, 8), CHANNEL.cudaChannelFormatKindUnsignedBlockCompressed1, "BC1_UNORM", 4),
    ((8, 8, 8, 8), CHANNEL.cudaChannelFormatKindUnsignedBlockCompressed3SRGB, "BC3_UNORM_SRGB", 4),
    ((8,), CHANNEL.cudaChannelFormatKindSignedBlockCompressed4, "BC4_SNORM", 1),
    ((8, 8), CHANNEL.cudaChannelFormatKindUnsignedBlockCompressed5, "BC5_UNORM", 2),
    ((16, 16, 16), CHANNEL.cudaChannelFormatKindSignedBlockCompressed6H, "BC6H_SF16", 3),
    ((8, 8, 8, 8), CHANNEL.cudaChannelFormatKindUnsignedBlockCompressed7SRGB, "BC7_UNORM_SRGB", 4),
    ((10, 10, 10, 2), CHANNEL.cudaChannelFormatKindUnsignedNormalized1010102, "UNORM_INT_101010_2", 4),
]


@pytest.mark.parametrize(("bits", "kind", "format", "count"), FORMATS)
def test_channels_are_formats(make_array, bits, kind, format, count):
    desc = channels(*bits, kind=kind)
    array = make_array(8, 4, desc=desc)
    assert same(ok(runtime.cudaGetChannelDesc(array)), desc)
    found = driver.cuArray3DGetDescriptor(int(array))[1]
    assert (found.Format, found.NumChannels) == (driver.CUarray_format[f"CU_AD_FORMAT_{format}"], count)
    found, extent, flags = ok(runtime.cudaArrayGetInfo(array))
    assert same(found, desc) and (extent.width, extent.height, extent.depth, flags) == (8, 4, 0, 0)


@pytest.mark.parametrize(
    ("bits", "kind"),
    [
        *[((32, 32, 32), FLOAT), ((8, 16), SIGNED), ((8,), FLOAT), ((24,), UNSIGNED), ((0,), SIGNED)],
        ((8, 8), CHANNEL.cudaChannelFormatKindUnsignedBlockCompressed1),
        ((0,), CHANNEL.cudaChannelFormatKindUnsignedBlockCompressed1),
        ((8, 8, 8), CHANNEL.cudaChannelFormatKindUnsignedBlockCompressed6H),
        ((8, 8, 8, 8), CHANNEL.cudaChannelFormatKindUnsignedNormalized1010102),
    ],
)
def test_channels_that_are_none(device, bits, kind):
    result = runtime.cudaMallocArray(channels(*bits, kind=kind), 8, 8, 0)
    assert status(result) == "cudaErrorInvalidChannelDescriptor"


def test_arrays_that_are_refused(device):
    assert status(runtime.cudaMallocArray(channels(32), 0, 0, 0)) == "cudaErrorInvalidValue"
    cube = runtime.make_cudaExtent(8, 4, 6)
    assert status(runtime.cudaMalloc3DArray(channels(32), cube, runtime.cudaArrayCubemap)) == "cudaErrorInvalidValue"
    ok(runtime.cudaFreeArray(0))
    ok(runtime.cudaFreeMipmappedArray(0))


def test_levels(device):
    array = ok(runtime.cudaMallocMipmappedArray(channels(32), runtime.make_cudaExtent(16, 8, 0), 9, SURFACE))
    for level, size in enumerate([(16, 8), (8, 4), (4, 2), (2, 1), (1, 1)]):
        extent = ok(runtime.cudaArrayGetInfo(ok(runtime.cudaGetMipmappedArrayLevel(array, level))))[1]
        assert (extent.width, extent.height) == size
    assert status(runtime.cudaGetMipmappedArrayLevel(array, 5)) == "cudaErrorInvalidValue"
    ok(runtime.cudaFreeMipmappedArray(array))


def test_what_plain_arrays_do_not_have(make_array):
    array = make_array(8, 8)
    for call in (
        lambda: runtime.cudaArrayGetPlane(array, 0),
        lambda: runtime.cudaArrayGetSparseProperties(array),
        lambda: runtime.cudaArrayGetMemoryRequirements(array, 0),
    ):
        assert status(call()) == "cudaErrorInvalidValue"


@pytest.mark.parametrize("asynchronous", [False, True])
def test_matrices(make_array, stream, asynchronous):
    """From the middle of a matrix into the middle of an array, to another array, and back."""
    a, b, data, back = make_array(10, 6), make_array(10, 6), numbers(8, 12), np.zeros((8, 12), np.float32)
    zeros = np.zeros((6, 10), np.float32)
    for array in (a, b):
        ok(runtime.cudaMemcpy2DToArray(array, 0, 0, zeros, 40, 40, 6, KIND.cudaMemcpyHostToDevice))
    ok(runtime.cudaDeviceSynchronize())  # before what the stream does
    source, target = data.ctypes.data + 48 + 8, back.ctypes.data
    if asynchronous:
        ok(runtime.cudaMemcpy2DToArrayAsync(a, 4, 1, source, 48, 24, 4, KIND.cudaMemcpyHostToDevice, stream))
        ok(runtime.cudaStreamSynchronize(stream))
    else:
        ok(runtime.cudaMemcpy2DToArray(a, 4, 1, source, 48, 24, 4, KIND.cudaMemcpyDefault))
    ok(runtime.cudaMemcpy2DArrayToArray(b, 12, 2, a, 4, 1, 24, 4, KIND.cudaMemcpyDeviceToDevice))
    ok(runtime.cudaDeviceSynchronize())
    if asynchronous:
        ok(runtime.cudaMemcpy2DFromArrayAsync(target, 48, b, 0, 0, 40, 6, KIND.cudaMemcpyDeviceToHost, stream))
        ok(runtime.cudaStreamSynchronize(stream))
    else:
        ok(runtime.cudaMemcpy2DFromArray(target, 48, b, 0, 0, 40, 6, KIND.cudaMemcpyDeviceToHost))
    wanted = np.zeros((8, 12), np.float32)
    wanted[2:6, 3:9] = data[1:5, 2:8]
    assert (back == wanted).all()


def test_bad_matrices(make_array):
    array, data = make_array(10, 6), numbers(8, 12)
    pointer = data.ctypes.data
    for arguments, expected in (
        ((array, 0, 0, pointer, 16, 32, 4), "cudaErrorInvalidPitchValue"),
        ((array, 0, 0, pointer, 48, 44, 4), "cudaErrorInvalidValue"),
        ((array, 0, 4, pointer, 48, 40, 3), "cudaErrorInvalidValue"),
    ):
        assert status(runtime.cudaMemcpy2DToArray(*arguments, KIND.cudaMemcpyHostToDevice)) == expected
    ok(runtime.cudaMemcpy2DToArray(array, 0, 0, pointer, 48, 0, 4, KIND.cudaMemcpyHostToDevice))


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize(
    ("x", "y", "count"), [(0, 0, 240), (12, 1, 8), (12, 1, 100), (0, 2, 80), (36, 0, 4), (36, 0, 8)]
)
def test_bytes_that_go_on_from_row_to_row(make_array, stream, x, y, count, asynchronous):
    """cudaMemcpyToArray and its like, which CUDA calls deprecated: an offset, and then bytes to the end of each row."""
    a, data, back = make_array(10, 6), numbers(60), np.zeros(60, np.float32)
    ok(runtime.cudaMemcpyToArray(a, 0, 0, np.zeros(60, np.float32), 240, KIND.cudaMemcpyHostToDevice))
    if asynchronous:
        ok(runtime.cudaDeviceSynchronize())
        ok(runtime.cudaMemcpyToArrayAsync(a, x, y, data, count, KIND.cudaMemcpyHostToDevice, stream))
        ok(runtime.cudaMemcpyFromArrayAsync(back, a, 0, 0, 240, KIND.cudaMemcpyDeviceToHost, stream))
        ok(runtime.cudaStreamSynchronize(stream))
    else:
        ok(runtime.cudaMemcpyToArray(a, x, y, data, count, KIND.cudaMemcpyHostToDevice))
        ok(runtime.cudaMemcpyFromArray(back, a, 0, 0, 240, KIND.cudaMemcpyDeviceToHost))
    wanted = np.zeros(60, np.float32)
    first = y * 10 + x // 4
    wanted[first : first + count // 4] = data[: count // 4]
    assert (back == wanted).all()
    part = np.zeros(60, np.float32)
    ok(runtime.cudaMemcpyFromArray(part, a, x, y, count, KIND.cudaMemcpyDeviceToHost))
    assert (part[: count // 4] == data[: count // 4]).all() and not part[count // 4 :].any()


@pytest.mark.cpu_only
def test_bytes_from_array_to_array(make_array):
    """Rows of other lengths."""
    a, b, data, back = make_array(10, 6), make_array(7, 8), numbers(60), np.zeros(56, np.float32)
    ok(runtime.cudaMemcpyToArray(a, 0, 0, data, 240, KIND.cudaMemcpyHostToDevice))
    ok(runtime.cudaMemcpyToArray(b, 0, 0, back, 224, KIND.cudaMemcpyHostToDevice))
    ok(runtime.cudaMemcpyArrayToArray(b, 8, 1, a, 20, 0, 120, KIND.cudaMemcpyDeviceToDevice))
    ok(runtime.cudaMemcpyFromArray(back, b, 0, 0, 224, KIND.cudaMemcpyDeviceToHost))
    wanted = np.zeros(56, np.float32)
    wanted[9:39] = data[5:35]
    assert (back == wanted).all()


def pitched(data):
    return runtime.make_cudaPitchedPtr(data.ctypes.data, data.strides[1], data.shape[2], data.shape[1])


@pytest.mark.parametrize("asynchronous", [False, True])
def test_boxes_count_texels(make_array, stream, asynchronous):
    """Also of memory, when there is an array at the other end."""
    a, b = make_array(8, 6, 5, channels(32, 32)), make_array(6, 6, 4, channels(32, 32))
    data, back = numbers(5, 6, 16), np.zeros((4, 6, 12), np.float32)
    copy = runtime.cudaMemcpy3DParms()
    copy.srcPtr, copy.dstArray, copy.extent = pitched(data), a, runtime.make_cudaExtent(8, 6, 5)
    copy.kind = KIND.cudaMemcpyHostToDevice
    between = runtime.cudaMemcpy3DParms()
    between.srcArray, between.dstArray = a, b
    between.srcPos, between.dstPos = runtime.make_cudaPos(2, 1, 1), runtime.make_cudaPos(1, 2, 0)
    between.extent, between.kind = runtime.make_cudaExtent(4, 3, 4), KIND.cudaMemcpyDeviceToDevice
    clear = runtime.cudaMemcpy3DParms()
    clear.srcPtr, clear.dstArray, clear.extent = pitched(back), b, runtime.make_cudaExtent(6, 6, 4)
    clear.kind = KIND.cudaMemcpyHostToDevice
    out = runtime.cudaMemcpy3DParms()
    out.srcArray, out.dstPtr, out.extent = b, pitched(back), runtime.make_cudaExtent(5, 6, 4)
    out.srcPos, out.dstPos = runtime.make_cudaPos(1, 0, 0), runtime.make_cudaPos(1, 0, 0)
    out.kind = KIND.cudaMemcpyDeviceToHost
    for parameters in (clear, copy, between, out):
        if asynchronous:
            ok(runtime.cudaMemcpy3DAsync(parameters, stream))
        else:
            ok(runtime.cudaMemcpy3D(parameters))
    ok(runtime.cudaStreamSynchronize(stream))
    wanted = np.zeros((4, 6, 12), np.float32)
    wanted[0:4, 2:5, 2:10] = data[1:5, 1:4, 4:12]
    assert (back == wanted).all()


def test_bad_boxes(make_array):
    a, b, data = make_array(8, 6, 5, channels(32, 32)), make_array(8, 6, 5), numbers(5, 6, 16)
    past_the_row, other_texels = runtime.cudaMemcpy3DParms(), runtime.cudaMemcpy3DParms()
    past_the_row.srcPtr, past_the_row.dstArray = pitched(data), a
    past_the_row.srcPos, past_the_row.extent = runtime.make_cudaPos(4, 0, 0), runtime.make_cudaExtent(5, 6, 5)
    other_texels.srcArray, other_texels.dstArray, other_texels.extent = a, b, runtime.make_cudaExtent(4, 6, 5)
    past_the_row.kind, other_texels.kind = KIND.cudaMemcpyHostToDevice, KIND.cudaMemcpyDeviceToDevice
    for parameters in (past_the_row, other_texels):
        assert status(runtime.cudaMemcpy3D(parameters)) == "cudaErrorInvalidValue"


def test_an_end_is_one_thing(make_array):
    array, data = make_array(8, 6, 5), numbers(5, 6, 8)
    copy = runtime.cudaMemcpy3DParms()
    copy.srcPtr, copy.srcArray, copy.dstArray = pitched(data), array, array
    copy.extent, copy.kind = runtime.make_cudaExtent(8, 6, 5), KIND.cudaMemcpyHostToDevice
    assert status(runtime.cudaMemcpy3D(copy)) == "cudaErrorInvalidValue"


def test_graph_nodes(make_array, graph, stream):
    array, data, back = make_array(8, 6, 2, channels(32, 32)), numbers(2, 6, 16), np.zeros((2, 6, 16), np.float32)
    into, out = runtime.cudaMemcpy3DParms(), runtime.cudaMemcpy3DParms()
    into.srcPtr, into.dstArray, into.kind = pitched(data), array, KIND.cudaMemcpyHostToDevice
    out.srcArray, out.dstPtr, out.kind = array, pitched(back), KIND.cudaMemcpyDeviceToHost
    into.extent = out.extent = runtime.make_cudaExtent(8, 6, 2)
    into.dstPos = out.srcPos = runtime.make_cudaPos(0, 0, 0)
    first = ok(runtime.cudaGraphAddMemcpyNode(graph, [], 0, into))
    ok(runtime.cudaGraphAddMemcpyNode(graph, [first], 1, out))
    found = ok(runtime.cudaGraphMemcpyNodeGetParams(first))
    assert int(found.dstArray) == int(array) and (found.extent.width, found.extent.height) == (8, 6)
    executable = ok(runtime.cudaGraphInstantiate(graph, 0))
    ok(runtime.cudaGraphLaunch(executable, stream))
    ok(runtime.cudaStreamSynchronize(stream))
    assert (back == data).all()
    ok(runtime.cudaGraphExecDestroy(executable))


def resource(kind, **fields):
    made = runtime.cudaResourceDesc()
    made.resType = runtime.cudaResourceType[f"cudaResourceType{kind}"]
    for name, value in fields.items():
        first, _, last = name.partition("_")
        setattr(getattr(made.res, first), last, value)
    return made


def test_textures(make_array, memory):
    wanted = runtime.cudaTextureDesc()
    wanted.addressMode = [runtime.cudaTextureAddressMode.cudaAddressModeWrap] * 3
    wanted.filterMode = runtime.cudaTextureFilterMode.cudaFilterModeLinear
    wanted.readMode = runtime.cudaTextureReadMode.cudaReadModeElementType
    wanted.normalizedCoords, wanted.borderColor, wanted.maxAnisotropy = 1, [0.5, 0, 0, 1], 2
    array = make_array(8, 4)
    texture = ok(runtime.cudaCreateTextureObject(resource("Array", array_array=array), wanted, None))
    found = ok(runtime.cudaGetTextureObjectTextureDesc(texture))
    for field in ("addressMode", "filterMode", "readMode", "sRGB", "normalizedCoords", "maxAnisotropy", "borderColor"):
        if on_cpu_device() or field != "borderColor":  # of which drivers tell zeros
            assert getattr(found, field) == getattr(wanted, field), field
    assert int(ok(runtime.cudaGetTextureObjectResourceDesc(texture)).res.array.array) == int(array)
    if on_cpu_device():  # drivers tell nothing, with success
        assert status(runtime.cudaGetTextureObjectResourceViewDesc(texture)) == "cudaErrorInvalidValue"
    ok(runtime.cudaDestroyTextureObject(texture))
    view = runtime.cudaResourceViewDesc()
    view.format, view.width, view.height = runtime.cudaResourceViewFormat.cudaResViewFormatFloat1, 8, 4
    texture = ok(runtime.cudaCreateTextureObject(resource("Array", array_array=array), wanted, view))
    assert ok(runtime.cudaGetTextureObjectResourceViewDesc(texture)).width == 8
    ok(runtime.cudaDestroyTextureObject(texture))


def test_textures_of_memory(memory):
    wanted = runtime.cudaTextureDesc()
    desc = channels(8, 8, kind=UNSIGNED)
    linear = resource("Linear", linear_devPtr=memory, linear_desc=desc, linear_sizeInBytes=512)
    texture = ok(runtime.cudaCreateTextureObject(linear, wanted, None))
    found = ok(runtime.cudaGetTextureObjectResourceDesc(texture)).res.linear
    assert same(found.desc, desc) and (int(found.devPtr), found.sizeInBytes) == (int(memory), 512)
    ok(runtime.cudaDestroyTextureObject(texture))
    rows = resource(
        "Pitch2D",
        pitch2D_devPtr=memory,
        pitch2D_desc=desc,
        pitch2D_width=30,
        pitch2D_height=4,
        pitch2D_pitchInBytes=64,
    )
    texture = ok(runtime.cudaCreateTextureObject(rows, wanted, None))
    found = ok(runtime.cudaGetTextureObjectResourceDesc(texture)).res.pitch2D
    assert same(found.desc, desc) and (found.width, found.height, found.pitchInBytes) == (30, 4, 64)
    ok(runtime.cudaDestroyTextureObject(texture))
    linear.res.linear.desc = channels(8, 8, 8, kind=UNSIGNED)
    assert status(runtime.cudaCreateTextureObject(linear, wanted, None)) == "cudaErrorInvalidChannelDescriptor"


def test_surfaces(make_array):
    array = make_array(8, 4, flags=SURFACE)
    surface = ok(runtime.cudaCreateSurfaceObject(resource("Array", array_array=array)))
    assert int(ok(runtime.cudaGetSurfaceObjectResourceDesc(surface)).res.array.array) == int(array)
    ok(runtime.cudaDestroySurfaceObject(surface))
    plain = resource("Array", array_array=make_array(8, 4))
    ok(runtime.cudaDestroySurfaceObject(ok(runtime.cudaCreateSurfaceObject(plain))))


BC1, BC7 = (channels(8, 8, 8, 8, kind=CHANNEL[f"cudaChannelFormatKindUnsignedBlockCompressed{n}"]) for n in (1, 7))


@pytest.mark.parametrize(("desc", "size"), [(BC1, 8), (BC7, 16)], ids=["BC1", "BC7"])
@pytest.mark.parametrize(
    ("width", "height", "columns", "rows"),
    [(32, 16, 8, 4), (8, 4, 2, 1), (5, 4, 2, 1), (1, 1, 1, 1), (32, 4, 8, 1), (8, 16, 2, 4)],
)
def test_boxes_of_compressed_arrays(make_array, desc, size, width, height, columns, rows):
    """Boxes count texels, and copy all blocks that they touch."""
    array = make_array(32, 16, desc=desc)
    data = np.random.default_rng(width).integers(1, 256, (4, 16 * size), np.uint8)
    found = np.zeros((4, 8 * size), np.uint8)
    ok(runtime.cudaMemcpy2DToArray(array, 0, 0, found.ctypes.data, 8 * size, 8 * size, 4, KIND.cudaMemcpyHostToDevice))
    box = runtime.cudaMemcpy3DParms()
    box.srcPtr = runtime.make_cudaPitchedPtr(data.ctypes.data, 16 * size, 16 * size, 4)
    box.dstArray, box.extent = array, runtime.make_cudaExtent(width, height, 1)
    box.kind = KIND.cudaMemcpyHostToDevice
    ok(runtime.cudaMemcpy3D(box))
    ok(
        runtime.cudaMemcpy2DFromArray(
            found.ctypes.data, 8 * size, array, 0, 0, 8 * size, 4, KIND.cudaMemcpyDeviceToHost
        )
    )
    assert (found[:rows, : columns * size] == data[:rows, : columns * size]).all()
    assert np.count_nonzero(found) == rows * columns * size
    box.extent = runtime.make_cudaExtent(64, 4, 1)
    assert status(runtime.cudaMemcpy3D(box)) == "cudaErrorInvalidValue"


def test_bytes_of_compressed_arrays(make_array):
    """Bytes of one row after the other, of blocks."""
    array = make_array(30, 14, desc=BC1)
    data = np.random.default_rng(3).integers(0, 256, 256, np.uint8)
    found = np.zeros_like(data)
    ok(runtime.cudaMemcpyToArray(array, 0, 0, data.ctypes.data, 256, KIND.cudaMemcpyHostToDevice))
    ok(runtime.cudaMemcpyFromArray(found.ctypes.data, array, 0, 0, 256, KIND.cudaMemcpyDeviceToHost))
    assert (found == data).all()
