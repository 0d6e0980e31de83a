"""Copies from and to CUDA arrays: rows, boxes, batches, in streams and in graphs."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from cupola.bindings import driver
from tests.conftest import on_cpu_device
from tests.cpu.driver.calls import driver_version, explanation, ok, status
from tests.cpu.driver.texture.arrays import (
    LAYERED,
    TYPE,
    array_side,
    as_bytes,
    box,
    descriptor,
    device_side,
    host_side,
    numbers,
    read,
    write,
)

BAD = "CUDA_ERROR_INVALID_VALUE"


@pytest.fixture
def make_array(context):
    """Make arrays, destroyed behind the test: make_array(width, height=0, depth=0, ...) as `descriptor` has it."""
    made = []

    def make(*arguments, **keywords):
        made.append(ok(driver.cuArray3DCreate(descriptor(*arguments, **keywords))))
        return made[-1]

    yield make
    for array in made:
        ok(driver.cuArrayDestroy(array))


@pytest.fixture
def make_buffer(context):
    """Memory of the device with the bytes of an array of NumPy."""
    made = []

    def make(data: np.ndarray) -> int:
        made.append(int(ok(driver.cuMemAlloc(data.nbytes))))
        ok(driver.cuMemcpyHtoD(made[-1], data.ctypes.data, data.nbytes))
        return made[-1]

    yield make
    for address in made:
        ok(driver.cuMemFree(address))


def test_rows(make_array, make_buffer, make_stream):
    """Every way into and out of a 1D array, at an offset."""
    a, b = make_array(16, channels=2), make_array(16, channels=2)  # texels of 8 bytes
    data, back, stream = numbers((1, 1, 32)), numbers((1, 1, 32)), make_stream()
    write(a, np.zeros_like(data))
    write(b, np.zeros_like(data))
    buffer = make_buffer(data)
    ok(driver.cuMemcpyHtoA(a, 8, data.ctypes.data, 40))  # texels 1 to 5
    ok(driver.cuMemcpyDtoA(a, 64, buffer, 64))  # texels 8 to 15
    ok(driver.cuMemcpyAtoA(b, 0, a, 64, 24))
    ok(driver.cuCtxSynchronize())  # before what the stream does
    ok(driver.cuMemcpyHtoAAsync(b, 120, data.ctypes.data, 8, stream))
    ok(driver.cuMemcpyAtoHAsync(back.ctypes.data, b, 0, 128, stream))
    ok(driver.cuStreamSynchronize(stream))
    flat = data.ravel()
    assert (back.ravel() == np.concatenate([flat[:6], np.zeros(24), flat[:2]])).all()
    ok(driver.cuMemcpyAtoH(back.ctypes.data, a, 0, 128))
    wanted = np.concatenate([[0, 0], flat[:10], np.zeros(4), flat[:16]])
    assert (back.ravel() == wanted).all()
    ok(driver.cuMemcpyAtoD(buffer, a, 16, 16))
    ok(driver.cuMemcpyDtoH(back.ctypes.data, buffer, 128))
    assert (back.ravel() == np.concatenate([flat[2:6], flat[4:]])).all()


@pytest.mark.parametrize("call", ["2D", "2DUnaligned", "2DAsync"])
def test_matrices(make_array, make_stream, call):
    """Rows from the middle of the host's matrix into the middle of the array."""
    array, stream = make_array(10, 6, format="UNSIGNED_INT16"), make_stream()
    matrix = numbers((9, 20), np.uint16)
    write(array, np.zeros((1, 6, 10), np.uint16))
    form = driver.CUDA_MEMCPY2D()
    form.srcMemoryType, form.srcHost, form.srcPitch = TYPE.CU_MEMORYTYPE_HOST, matrix.ctypes.data, 40
    form.srcXInBytes, form.srcY = 6, 2
    form.dstMemoryType, form.dstArray, form.dstXInBytes, form.dstY = TYPE.CU_MEMORYTYPE_ARRAY, array, 4, 1
    form.WidthInBytes, form.Height = 14, 4
    copy = getattr(driver, f"cuMemcpy{call}")
    ok(copy(form, stream) if "Async" in call else copy(form))
    ok(driver.cuStreamSynchronize(stream))
    wanted = np.zeros((1, 6, 10), np.uint16)
    wanted[0, 1:5, 2:9] = matrix[2:6, 3:10]
    assert (read(array, wanted.shape, np.uint16) == wanted).all()


@pytest.mark.parametrize("call", ["3D", "3DAsync", "3DPeer", "3DPeerAsync"])
@pytest.mark.parametrize("flags", [0, LAYERED], ids=["slices", "layers"])
def test_boxes(make_array, make_buffer, make_stream, flags, call):
    """Host to array, array to array, array to device; each from the middle to the middle."""
    a, b = make_array(8, 6, 5, flags=flags), make_array(9, 7, 4, flags=flags)
    data, stream = numbers((4, 7, 10)), make_stream()
    write(a, np.zeros((5, 6, 8), np.float32))
    write(b, np.zeros((4, 7, 9), np.float32))
    target = np.zeros((3, 8, 12), np.float32)
    buffer = make_buffer(target)

    def copy(width, height, depth, fill):
        form = driver.CUDA_MEMCPY3D_PEER() if "Peer" in call else driver.CUDA_MEMCPY3D()
        form.WidthInBytes, form.Height, form.Depth = width * 4, height, depth
        fill(form)
        if "Peer" in call:
            form.srcContext = form.dstContext = ok(driver.cuCtxGetCurrent())
        function = getattr(driver, f"cuMemcpy{call}")
        ok(function(form, stream) if "Async" in call else function(form))

    def host_to_a(form):
        host_side(form, "src", as_bytes(data))
        form.srcXInBytes, form.srcY, form.srcZ = 8, 1, 1
        array_side(form, "dst", a, 4, 2, 1)

    def a_to_b(form):
        array_side(form, "src", a, 8, 2, 2)
        array_side(form, "dst", b, 16, 3, 1)

    def b_to_device(form):
        array_side(form, "src", b, 12, 2, 1)
        device_side(form, "dst", buffer, 48, 8)
        form.dstXInBytes, form.dstY, form.dstZ = 4, 1, 1

    copy(6, 4, 3, host_to_a)
    copy(5, 3, 2, a_to_b)
    copy(6, 5, 2, b_to_device)
    ok(driver.cuStreamSynchronize(stream))
    in_a, in_b = np.zeros((5, 6, 8), np.float32), np.zeros((4, 7, 9), np.float32)
    in_a[1:4, 2:6, 1:7] = data[1:4, 1:5, 2:8]
    in_b[1:3, 3:6, 4:9] = in_a[2:4, 2:5, 2:7]
    target[1:3, 1:6, 1:7] = in_b[1:3, 2:7, 3:9]
    assert (read(a, in_a.shape) == in_a).all()
    assert (read(b, in_b.shape) == in_b).all()
    found = np.zeros_like(target)
    ok(driver.cuMemcpyDtoH(found.ctypes.data, buffer, found.nbytes))
    assert (found == target).all()


CASES = [  # what is wrong with a copy of 16 bytes, 2 rows and 2 slices into an array of 8 x 4 x 3 texels of 4 bytes
    ({"WidthInBytes": 36}, "36 bytes of a row from 0 on do not fit in the target, an array with 32"),
    ({"dstXInBytes": 20}, "16 bytes of a row from 20 on do not fit"),
    ({"Height": 5}, "5 rows from 0 on do not fit in the target, an array with 4"),
    ({"dstY": 3}, "2 rows from 3 on do not fit"),
    ({"Depth": 4}, "4 slices or layers from 0 on do not fit in the target, an array with 3"),
    ({"dstZ": 2}, "2 slices or layers from 2 on do not fit"),
    ({"dstLOD": 1}, "the LOD of the target must be 0"),
]


@pytest.mark.parametrize("flags", [0, LAYERED], ids=["slices", "layers"])
@pytest.mark.parametrize(("change", "text"), CASES)
def test_bad_boxes(make_array, change, text, flags):
    array, form = make_array(8, 4, 3, flags=flags), box(16, 2, 2)
    memory = np.zeros((4, 8, 64), np.uint8)
    host_side(form, "src", memory)
    array_side(form, "dst", array)
    for name, value in change.items():
        setattr(form, name, value)
    result = driver.cuMemcpy3D(form)
    assert status(result) == BAD
    assert not on_cpu_device() or text in explanation(result)


@pytest.mark.parametrize("flags", [0, LAYERED], ids=["slices", "layers"])
@pytest.mark.parametrize(("channels", "x", "width"), [(1, 2, 16), (1, 1, 3), (1, 3, 29), (2, 4, 10), (4, 1, 17)])
def test_parts_of_texels(make_array, channels, x, width, flags):
    """Bytes are copied, into an array and from it."""
    array = make_array(8, 4, 2, channels=channels, flags=flags)
    data, back = numbers((2, 2, 64), np.uint8, start=1), np.zeros((2, 2, 64), np.uint8)
    wanted = np.zeros((2, 4, 32 * channels), np.uint8)
    write(array, wanted)
    into, out_of = box(width, 2, 2), box(width, 2, 2)
    host_side(into, "src", data)
    array_side(into, "dst", array, x, 1)
    array_side(out_of, "src", array, x, 1)
    host_side(out_of, "dst", back)
    ok(driver.cuMemcpy3D(into))
    ok(driver.cuMemcpy3D(out_of))
    wanted[:, 1:3, x : x + width] = data[..., :width]
    assert (read(array, wanted.shape, np.uint8) == wanted).all()
    assert (back[..., :width] == data[..., :width]).all() and not back[..., width:].any()


@pytest.mark.parametrize(
    ("source", "target"),
    [(("FLOAT", 1), ("FLOAT", 2)), (("FLOAT", 4), ("FLOAT", 1)), (("FLOAT", 1), ("SIGNED_INT16", 2))],
)
def test_texels_of_other_sizes(make_array, source, target):
    a, b = (make_array(8, 4, format=format, channels=channels) for format, channels in (source, target))
    data = numbers((1, 4, 128 if source[1] == 4 else 32), np.uint8)
    wanted = np.zeros((1, 4, 64 if target == ("FLOAT", 2) else 32), np.uint8)
    write(a, data)
    write(b, wanted)
    form = box(16, 2)
    array_side(form, "src", a)
    array_side(form, "dst", b)
    ok(driver.cuMemcpy3D(form))
    ok(driver.cuMemcpyAtoA(b, 16, a, 4, 10))
    wanted[0, :2, :16], wanted[0, 0, 16:26] = data[0, :2, :16], data[0, 0, 4:14]
    assert (read(b, wanted.shape, np.uint8) == wanted).all()


def test_arrays_that_are_none(context):
    host = np.zeros(32, np.uint8)
    result = driver.cuMemcpyHtoA(0, 0, host.ctypes.data, 32)
    assert status(result) == BAD
    assert not on_cpu_device() or "the array of the target is null" in explanation(result)
    ok(driver.cuMemcpyHtoA(0, 0, host.ctypes.data, 0))


@pytest.mark.cpu_only
def test_destroyed_arrays(context):
    array = ok(driver.cuArray3DCreate(descriptor(8)))
    ok(driver.cuArrayDestroy(array))
    result = driver.cuMemcpyHtoA(array, 0, ctypes.addressof(ctypes.create_string_buffer(32)), 32)
    assert status(result) == "CUDA_ERROR_INVALID_HANDLE" and "has been destroyed" in explanation(result)


def pointer(base: int, row: int = 0, rows: int = 0):
    made = driver.CUmemcpy3DOperand()
    made.type = driver.CUmemcpy3DOperandType.CU_MEMCPY_OPERAND_TYPE_POINTER
    made.op.ptr.ptr, made.op.ptr.rowLength, made.op.ptr.layerHeight = base, row, rows
    return made


def part(array, x: int = 0, y: int = 0, z: int = 0):
    made = driver.CUmemcpy3DOperand()
    made.type = driver.CUmemcpy3DOperandType.CU_MEMCPY_OPERAND_TYPE_ARRAY
    made.op.array.array = array
    made.op.array.offset.x, made.op.array.offset.y, made.op.array.offset.z = x, y, z
    return made


def test_batches_count_texels(make_array, make_buffer, make_stream):
    if driver_version() < 13000:
        pytest.skip("the driver is too old")
    a, b, stream = make_array(8, 4, 3, channels=2), make_array(6, 5, 2, channels=2), make_stream()
    data = numbers((3, 4, 8, 2))
    write(b, np.zeros((2, 5, 6, 2), np.float32))
    buffer = make_buffer(data)
    operations = []
    for source, target, extent in (
        (pointer(buffer, 8, 4), part(a), (8, 4, 3)),
        (part(a, 2, 1, 1), part(b, 1, 2, 0), (4, 3, 2)),
    ):
        operation = driver.CUDA_MEMCPY3D_BATCH_OP()
        operation.src, operation.dst = source, target
        operation.extent.width, operation.extent.height, operation.extent.depth = extent
        operation.srcAccessOrder = driver.CUmemcpySrcAccessOrder.CU_MEMCPY_SRC_ACCESS_ORDER_STREAM
        operations.append(operation)
    for operation in operations:  # those of a batch may run in any order
        ok(driver.cuMemcpy3DBatchAsync(1, [operation], 0, stream))
    ok(driver.cuStreamSynchronize(stream))
    assert (read(a, data.shape) == data).all()
    wanted = np.zeros((2, 5, 6, 2), np.float32)
    wanted[0:2, 2:5, 1:5] = data[1:3, 1:4, 2:6]
    assert (read(b, wanted.shape) == wanted).all()


def test_graph_nodes(make_array, make_stream, graph, context):
    array, stream = make_array(8, 4, 2), make_stream()
    first, back = numbers((2, 4, 8)), np.zeros((2, 4, 8), np.float32)
    into, out_of = box(32, 4, 2), box(32, 4, 2)
    host_side(into, "src", as_bytes(first))
    array_side(into, "dst", array)
    array_side(out_of, "src", array)
    host_side(out_of, "dst", as_bytes(back))
    a = ok(driver.cuGraphAddMemcpyNode(graph, [], 0, into, context))
    ok(driver.cuGraphAddMemcpyNode(graph, [a], 1, out_of, context))
    found = ok(driver.cuGraphMemcpyNodeGetParams(a))
    assert (found.dstMemoryType, int(found.dstArray)) == (TYPE.CU_MEMORYTYPE_ARRAY, int(array))
    executable = ok(driver.cuGraphInstantiate(graph, 0))
    ok(driver.cuGraphLaunch(executable, stream))
    ok(driver.cuStreamSynchronize(stream))
    assert (back == first).all()
    ok(driver.cuGraphExecDestroy(executable))


def test_nodes_of_a_row_change_in_an_executable(make_array, make_stream, graph, context):
    array, stream = make_array(8), make_stream()
    first, second = numbers((1, 1, 8)), numbers((1, 1, 8), start=5)
    form = box(32)
    host_side(form, "src", as_bytes(first))
    array_side(form, "dst", array)
    node = ok(driver.cuGraphAddMemcpyNode(graph, [], 0, form, context))
    executable = ok(driver.cuGraphInstantiate(graph, 0))
    host_side(form, "src", as_bytes(second))
    ok(driver.cuGraphExecMemcpyNodeSetParams(executable, node, form, context))
    ok(driver.cuGraphLaunch(executable, stream))
    ok(driver.cuStreamSynchronize(stream))
    assert (read(array, second.shape) == second).all()
    ok(driver.cuGraphExecDestroy(executable))


def test_updates_keep_arrays_arrays(make_array, make_buffer, graph, context):
    array, buffer = make_array(8), make_buffer(np.zeros(8, np.float32))
    form = box(32)
    device_side(form, "src", buffer, 32, 1)
    array_side(form, "dst", array)
    ok(driver.cuGraphAddMemcpyNode(graph, [], 0, form, context))
    executable = ok(driver.cuGraphInstantiate(graph, 0))
    form.dstMemoryType, form.dstDevice = TYPE.CU_MEMORYTYPE_DEVICE, buffer
    other = ok(driver.cuGraphCreate(0))
    ok(driver.cuGraphAddMemcpyNode(other, [], 0, form, context))
    assert status(driver.cuGraphExecUpdate(executable, other)) == "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE"
    ok(driver.cuGraphDestroy(other))
    ok(driver.cuGraphExecDestroy(executable))


def test_capture(make_array, make_stream):
    array, stream = make_array(8, 4), make_stream()
    address = int(ok(driver.cuMemHostAlloc(256, 0)))
    numbers_there = (ctypes.c_float * 64).from_address(address)
    numbers_there[:] = range(64)
    into, out_of = box(32, 4), box(32, 4)
    device_side(into, "src", address, 32, 4)
    array_side(into, "dst", array)
    array_side(out_of, "src", array)
    device_side(out_of, "dst", address + 128, 32, 4)
    ok(driver.cuStreamBeginCapture(stream, driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL))
    ok(driver.cuMemcpy3DAsync(into, stream))
    ok(driver.cuMemcpyHtoAAsync(array, 0, address + 64, 32, stream))
    ok(driver.cuMemcpy3DAsync(out_of, stream))
    captured = ok(driver.cuStreamEndCapture(stream))
    executable = ok(driver.cuGraphInstantiate(captured, 0))
    ok(driver.cuGraphLaunch(executable, stream))
    ok(driver.cuStreamSynchronize(stream))
    assert list(numbers_there[32:]) == [*range(16, 24), *range(8, 32)]
    ok(driver.cuGraphExecDestroy(executable))
    ok(driver.cuGraphDestroy(captured))
    ok(driver.cuMemFreeHost(address))
