"""Copies: plain, boxes, batches; what is checked, and what has happened when a call returns."""

from __future__ import annotations

import ctypes
import threading

import pytest

from cupola.bindings import driver
from tests.cpu.driver.calls import driver_version, explanation, ok, status

SIZE = 4096
HOST, DEVICE, UNIFIED = (
    driver.CUmemorytype.CU_MEMORYTYPE_HOST,
    driver.CUmemorytype.CU_MEMORYTYPE_DEVICE,
    driver.CUmemorytype.CU_MEMORYTYPE_UNIFIED,
)
PATTERN = bytes(range(256)) * (SIZE // 256)


@pytest.fixture
def buffers(context):
    """Two device buffers of SIZE bytes, filled with 0xee."""
    made = [int(ok(driver.cuMemAlloc(SIZE))) for _ in range(2)]
    for address in made:
        ok(driver.cuMemsetD8(address, 0xEE, SIZE))
    ok(driver.cuCtxSynchronize())  # before what streams do
    yield made
    for address in made:
        ok(driver.cuMemFree(address))


def read(address: int, size: int = SIZE) -> bytes:
    memory = ctypes.create_string_buffer(size)
    ok(driver.cuMemcpyDtoH(ctypes.addressof(memory), address, size))
    return memory.raw


def write(address: int, data: bytes) -> None:
    memory = ctypes.create_string_buffer(data, len(data))
    ok(driver.cuMemcpyHtoD(address, ctypes.addressof(memory), len(data)))
    ok(driver.cuCtxSynchronize())  # pageable memory may have been read only, not yet copied


@pytest.mark.parametrize("asynchronous", [False, True])
def test_round_trip(buffers, make_stream, asynchronous):
    a, b = buffers
    source, back = ctypes.create_string_buffer(PATTERN, SIZE), ctypes.create_string_buffer(SIZE)
    if asynchronous:
        stream = make_stream()
        ok(driver.cuMemcpyHtoDAsync(a, ctypes.addressof(source), SIZE, stream))
        ctypes.memset(source, 0, SIZE)  # pageable memory has been read when the call returns
        ok(driver.cuMemcpyDtoDAsync(b, a, SIZE, stream))
        ok(driver.cuMemcpyDtoHAsync(ctypes.addressof(back), b, SIZE, stream))  # and written
    else:
        ok(driver.cuMemcpyHtoD(a, ctypes.addressof(source), SIZE))
        ok(driver.cuMemcpyDtoD(b, a, SIZE))
        ok(driver.cuMemcpyDtoH(ctypes.addressof(back), b, SIZE))
    assert back.raw == PATTERN


@pytest.mark.parametrize("size", [1000, 1 << 20])
def test_pageable_sources_have_been_read_when_the_call_returns(make_stream, host, size):
    stream = make_stream()
    target = int(ok(driver.cuMemAlloc(size)))
    source = ctypes.create_string_buffer(b"\5" * size, size)
    timer = threading.Timer(0.05, host.release)
    host.block(stream)
    timer.start()
    ok(driver.cuMemcpyHtoDAsync(target, ctypes.addressof(source), size, stream))
    ctypes.memset(source, 0, size)
    ok(driver.cuStreamSynchronize(stream))
    timer.join()
    assert read(target, size) == b"\5" * size
    ok(driver.cuMemFree(target))


def test_pinned_copies_only_queue(make_stream, host, memory, buffers):
    stream = make_stream()
    host.block(stream)
    ok(driver.cuMemcpyHtoDAsync(buffers[0], ctypes.addressof(memory), SIZE, stream))
    ok(driver.cuMemcpyDtoHAsync(ctypes.addressof(memory), buffers[0], SIZE, stream))
    memory[0] = 77  # before the copy reads it
    assert status(driver.cuStreamQuery(stream)) == "CUDA_ERROR_NOT_READY"
    host.release()
    ok(driver.cuStreamSynchronize(stream))
    assert read(buffers[0], 4) == (77).to_bytes(4, "little")


def test_the_direction_is_inferred(buffers):
    source, back = ctypes.create_string_buffer(PATTERN, SIZE), ctypes.create_string_buffer(SIZE)
    ok(driver.cuMemcpy(buffers[0], ctypes.addressof(source), SIZE))
    ok(driver.cuMemcpy(buffers[1], buffers[0], SIZE))
    ok(driver.cuMemcpy(ctypes.addressof(back), buffers[1], SIZE))
    assert back.raw == PATTERN


def test_peer_copies(buffers, context, make_stream):
    write(buffers[0], PATTERN)
    stream = make_stream()
    ok(driver.cuMemcpyPeer(buffers[1], context, buffers[0], context, SIZE // 2))
    ok(driver.cuMemcpyPeerAsync(buffers[1] + SIZE // 2, context, buffers[0] + SIZE // 2, context, SIZE // 2, stream))
    ok(driver.cuStreamSynchronize(stream))
    assert read(buffers[1]) == PATTERN
    ok(driver.cuMemsetD8(buffers[1], 0, SIZE))
    ok(driver.cuMemcpyPeer(buffers[1], 0, buffers[0], context, SIZE))  # the addresses tell the devices
    assert read(buffers[1]) == PATTERN


@pytest.mark.cpu_only
def test_peer_copies_between_contexts_that_are_none(buffers, context):
    """A GPU's driver is not asked: it may follow the wrong handle."""
    nonsense = driver.CUcontext(12345)
    assert status(driver.cuMemcpyPeer(buffers[1], nonsense, buffers[0], context, SIZE)) != "CUDA_SUCCESS"
    assert status(driver.cuMemcpyPeer(buffers[1], context, buffers[0], nonsense, SIZE)) != "CUDA_SUCCESS"


def test_nothing_to_copy(buffers):
    ok(driver.cuMemcpyDtoD(buffers[0], buffers[1], 0))


@pytest.mark.cpu_only
def test_ranges_are_checked(buffers, memory):
    a, b = buffers
    pinned = ctypes.addressof(memory)
    cases = [
        (lambda: driver.cuMemcpyDtoD(a, b, SIZE + 1), "the source, 4097 bytes"),
        (lambda: driver.cuMemcpyDtoD(a + 1, b, SIZE), "1 bytes past the end of the allocation of 4096 bytes"),
        (lambda: driver.cuMemcpyDtoH(pinned, a, SIZE + 8), "8 bytes past the end"),
        (lambda: driver.cuMemcpyHtoD(a, pinned, 2 * SIZE), "the source"),
        (lambda: driver.cuMemcpyDtoD(a, b + SIZE, 4), "0 bytes past the end"),
        (lambda: driver.cuMemcpyDtoD(a, 0, 4), "null pointer"),
        (lambda: driver.cuMemcpyHtoD(a, 0, 4), "null pointer"),
        (lambda: driver.cuMemcpyDtoD(a, (1 << 64) - 2, 16), "does not fit in the address space"),
        (lambda: driver.cuMemcpyDtoD(a, 4096, 16), "is not an address of device memory"),
    ]
    for call, text in cases:
        result = call()
        assert status(result) == "CUDA_ERROR_INVALID_VALUE"
        assert text in explanation(result)
    assert read(a) == b"\xee" * SIZE


@pytest.mark.cpu_only
def test_memory_that_was_freed_under_a_queued_copy(run_python):
    program = """
import ctypes, threading
from cupola.bindings import driver
from tests.cpu.driver.calls import HostWork, explanation, ok
ok(driver.cuInit(0)); ok(driver.cuCtxSetCurrent(ok(driver.cuDevicePrimaryCtxRetain(0))))
one, two, work = ok(driver.cuStreamCreate(1)), ok(driver.cuStreamCreate(1)), HostWork()
source, target = ok(driver.cuMemAlloc(8 << 20)), ok(driver.cuMemAllocAsync(8 << 20, two))
work.block(one)
ok(driver.cuMemcpyDtoDAsync(target, source, 8 << 20, one))
ok(driver.cuMemFreeAsync(target, two))
ok(driver.cuStreamSynchronize(two))
work.release()
failed = driver.cuStreamSynchronize(one)
assert failed[0].name == "CUDA_ERROR_ILLEGAL_ADDRESS", failed
assert "was freed before the copy" in explanation(failed), explanation(failed)
"""
    done = run_python(program)
    assert done.returncode == 0, done.stderr


@pytest.mark.unchecked(reason="it frees what a stream uses")
@pytest.mark.cpu_only
@pytest.mark.parametrize(
    "call, what",
    [("cuMemsetD8Async(target, 1, SIZE, one)", "a fill"), ("cuMemcpyDtoDAsync(target, source, SIZE, one)", "a copy")],
)
def test_memory_that_is_freed_during_a_transfer(run_python, call, what):
    """The stream that frees it should wait for the other one. It ended the process."""
    program = f"""
import ctypes
from cupola.bindings import driver
from tests.cpu.driver.calls import explanation, ok
SIZE, MANY = 64 << 20, 500
ok(driver.cuInit(0)); ok(driver.cuCtxSetCurrent(ok(driver.cuDevicePrimaryCtxRetain(0))))
one, two = ok(driver.cuStreamCreate(1)), ok(driver.cuStreamCreate(1))
source, target = ok(driver.cuMemAlloc(SIZE)), ok(driver.cuMemAllocAsync(SIZE, two))
ok(driver.cuMemsetD8(source, 1, SIZE)); ok(driver.cuMemsetD8(target, 0, SIZE))
for _ in range(MANY):
    ok(driver.{call})
while ctypes.string_at(int(target), 1) == bytes(1):
    pass
ok(driver.cuMemFreeAsync(target, two))
driver.cuStreamSynchronize(two)
driver.cuMemPoolTrimTo(ok(driver.cuDeviceGetDefaultMemPool(0)), 0)
failed = driver.cuStreamSynchronize(one)
assert failed[0].name == "CUDA_ERROR_ILLEGAL_ADDRESS", failed
assert "{what}" in explanation(failed) and "was freed" in explanation(failed), explanation(failed)
"""
    done = run_python(program)
    assert done.returncode == 0, done.stderr


def box_2d(**fields):
    box = driver.CUDA_MEMCPY2D()
    for name, value in fields.items():
        setattr(box, name, value)
    return box


def test_rows_with_pitches(buffers, make_stream):
    source = ctypes.create_string_buffer(PATTERN, SIZE)
    box = box_2d(
        srcMemoryType=HOST,
        srcHost=ctypes.addressof(source),
        srcPitch=64,
        srcXInBytes=8,
        srcY=2,
        dstMemoryType=DEVICE,
        dstDevice=buffers[0],
        dstPitch=100,
        dstXInBytes=4,
        dstY=1,
        WidthInBytes=20,
        Height=5,
    )
    expected = bytearray(b"\xee" * SIZE)
    for y in range(5):
        expected[(y + 1) * 100 + 4 : (y + 1) * 100 + 24] = PATTERN[(y + 2) * 64 + 8 : (y + 2) * 64 + 28]
    ok(driver.cuMemcpy2D(box))
    assert read(buffers[0]) == bytes(expected)
    stream = make_stream()
    box.dstDevice = buffers[1]
    ok(driver.cuMemcpy2DAsync(box, stream))
    ok(driver.cuStreamSynchronize(stream))
    assert read(buffers[1]) == bytes(expected)
    ok(driver.cuMemcpy2DUnaligned(box))


def test_boxes(buffers):
    write(buffers[0], PATTERN)
    box = driver.CUDA_MEMCPY3D()
    box.srcMemoryType, box.srcDevice, box.srcPitch, box.srcHeight = UNIFIED, buffers[0], 32, 8
    box.dstMemoryType, box.dstDevice, box.dstPitch, box.dstHeight = DEVICE, buffers[1], 48, 6
    box.srcXInBytes, box.srcY, box.srcZ = 4, 1, 1
    box.dstXInBytes, box.dstY, box.dstZ = 2, 3, 1
    box.WidthInBytes, box.Height, box.Depth = 10, 2, 3
    ok(driver.cuMemcpy3D(box))
    expected = bytearray(b"\xee" * SIZE)
    for z in range(3):
        for y in range(2):
            s = ((z + 1) * 8 + y + 1) * 32 + 4
            d = ((z + 1) * 6 + y + 3) * 48 + 2
            expected[d : d + 10] = PATTERN[s : s + 10]
    assert read(buffers[1]) == bytes(expected)


@pytest.mark.cpu_only
@pytest.mark.parametrize(
    ("change", "expected", "text"),
    [
        ({"dstPitch": 12}, "CUDA_ERROR_INVALID_VALUE", "do not fit in the pitch"),
        ({"Height": 1000}, "CUDA_ERROR_INVALID_VALUE", "past the end"),
        ({"srcDevice": 0}, "CUDA_ERROR_INVALID_VALUE", "null pointer"),
        (
            {"srcMemoryType": driver.CUmemorytype.CU_MEMORYTYPE_ARRAY},
            "CUDA_ERROR_INVALID_VALUE",
            "the array of the source",
        ),
    ],
)
def test_bad_boxes(buffers, change, expected, text):
    a, b = buffers
    fields = {
        "srcMemoryType": DEVICE,
        "srcDevice": a,
        "srcPitch": 16,
        "dstMemoryType": DEVICE,
        "dstDevice": b,
        "dstPitch": 16,
        "WidthInBytes": 16,
        "Height": 4,
    }
    result = driver.cuMemcpy2D(box_2d(**{**fields, **change}))
    assert status(result) == expected
    assert text in explanation(result)


def test_batches(buffers, make_stream):
    stream = make_stream()
    source = ctypes.create_string_buffer(PATTERN, SIZE)
    during, ordered = driver.CUmemcpyAttributes(), driver.CUmemcpyAttributes()
    order = driver.CUmemcpySrcAccessOrder
    during.srcAccessOrder = order.CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL
    ordered.srcAccessOrder = order.CU_MEMCPY_SRC_ACCESS_ORDER_STREAM
    sources = [ctypes.addressof(source) + 1000 * i for i in range(3)]
    targets = [buffers[0] + 1000 * i for i in range(3)]
    ok(driver.cuMemcpyBatchAsync(targets, sources, [1000, 500, 100], 3, [during, ordered], [0, 2], 2, stream))
    ok(driver.cuStreamSynchronize(stream))
    data = read(buffers[0])
    assert data[:1000] == PATTERN[:1000]
    assert data[1000:1500] == PATTERN[1000:1500] and data[1500:2000] == b"\xee" * 500
    assert data[2000:2100] == PATTERN[2000:2100]
    assert status(driver.cuMemcpyBatchAsync(targets, sources, [1, 1, 1], 3, [during], [1], 1, stream)) == (
        "CUDA_ERROR_INVALID_VALUE"
    )
    assert status(driver.cuMemcpyBatchAsync(targets, sources, [1, 1, 1], 3, [during], [0], 1, 0)) == (
        "CUDA_ERROR_INVALID_VALUE"
    )


def operand(base: int, row: int = 0, rows: int = 0):
    made = driver.CUmemcpy3DOperand()
    made.type = driver.CUmemcpy3DOperandType.CU_MEMCPY_OPERAND_TYPE_POINTER
    made.op.ptr.ptr, made.op.ptr.rowLength, made.op.ptr.layerHeight = base, row, rows
    return made


def box_operation(source, target, extent, order: str = "STREAM"):
    made = driver.CUDA_MEMCPY3D_BATCH_OP()
    made.src, made.dst = source, target
    made.extent.width, made.extent.height, made.extent.depth = extent
    made.srcAccessOrder = driver.CUmemcpySrcAccessOrder[f"CU_MEMCPY_SRC_ACCESS_ORDER_{order}"]
    return made


@pytest.mark.parametrize("call", ["batch", "one by one"])
def test_batches_of_boxes(buffers, make_stream, call):
    if driver_version() < (13000 if call == "batch" else 13020):
        pytest.skip("the driver is too old")
    a, b = buffers
    stream = make_stream()
    source = ctypes.create_string_buffer(PATTERN, SIZE)
    operations = [
        box_operation(operand(ctypes.addressof(source), 64, 4), operand(a, 32, 3), (20, 3, 2), "DURING_API_CALL"),
        box_operation(operand(ctypes.addressof(source) + 5), operand(b), (7, 2, 1), "ANY"),
    ]
    if call == "batch":
        ok(driver.cuMemcpy3DBatchAsync(len(operations), operations, 0, stream))
    else:
        for operation in operations:
            ok(driver.cuMemcpy3DWithAttributesAsync(operation, 0, stream))
    ok(driver.cuStreamSynchronize(stream))
    expected = bytearray(b"\xee" * SIZE)
    for z in range(2):
        for y in range(3):
            s, d = (z * 4 + y) * 64, (z * 3 + y) * 32
            expected[d : d + 20] = PATTERN[s : s + 20]
    assert read(a) == bytes(expected)
    assert read(b, 16) == PATTERN[5:19] + b"\xee\xee"


@pytest.mark.cpu_only
def test_bad_batches_of_boxes(buffers, make_stream):
    a, b = buffers
    stream = make_stream()
    good = box_operation(operand(a), operand(b), (4, 4, 4))
    array = driver.CUmemcpy3DOperand()
    array.type = driver.CUmemcpy3DOperandType.CU_MEMCPY_OPERAND_TYPE_ARRAY
    nothing = driver.CUmemcpy3DOperand()
    flagged = box_operation(operand(a), operand(b), (4, 4, 4))
    flagged.flags = 64
    cases = [
        (box_operation(operand(a), operand(b), (4, 0, 4)), 0, "none may be 0"),
        (box_operation(operand(a, 3), operand(b), (4, 4, 4)), 0, "the source has rows of 3 elements"),
        (
            box_operation(operand(a), operand(b, 4, 2), (4, 4, 4)),
            0,
            "the target has rows of 4 elements and layers of 2",
        ),
        (box_operation(operand(a), operand(b), (SIZE, 2, 1)), 0, "past the end"),
        (box_operation(operand(a), operand(0), (4, 4, 4)), 0, "null pointer"),
        (box_operation(operand(a), operand(b), (4, 4, 4), "INVALID"), 0, "srcAccessOrder is 0"),
        (box_operation(operand(a), array, (4, 4, 4)), 0, "CUDA array is null"),
        (box_operation(nothing, operand(b), (4, 4, 4)), 0, "must be POINTER or ARRAY"),
        (flagged, 0, "unknown flags: 0x40"),
        (good, 1, "flags must be 0"),
    ]
    for operation, flags, text in cases:
        for result in (
            driver.cuMemcpy3DBatchAsync(2, [good, operation], flags, stream),
            driver.cuMemcpy3DWithAttributesAsync(operation, flags, stream),
        ):
            expected = "CUDA_ERROR_INVALID_HANDLE" if "array" in text else "CUDA_ERROR_INVALID_VALUE"
            assert status(result) == expected and text in explanation(result), (text, explanation(result))
    assert read(b) == b"\xee" * SIZE, "nothing was queued"
    assert "at least one copy" in explanation(driver.cuMemcpy3DBatchAsync(0, [good], 0, stream))
    for legacy in (0, 1):
        assert "legacy default stream" in explanation(driver.cuMemcpy3DBatchAsync(1, [good], 0, legacy))


FILLS = [("D8", 1, 0xAB), ("D16", 2, 0x1234), ("D16", 2, 0x7777), ("D32", 4, 0xDEADBEEF)]


@pytest.mark.parametrize(("name", "size", "value"), FILLS)
@pytest.mark.parametrize("asynchronous", [False, True])
def test_fills(buffers, make_stream, name, size, value, asynchronous):
    stream = make_stream()
    start, count = 8, 100
    if asynchronous:
        ok(getattr(driver, f"cuMemset{name}Async")(buffers[0] + start, value, count, stream))
        ok(driver.cuStreamSynchronize(stream))
    else:
        ok(getattr(driver, f"cuMemset{name}")(buffers[0] + start, value, count))
    expected = bytearray(b"\xee" * SIZE)
    expected[start : start + count * size] = value.to_bytes(size, "little") * count
    assert read(buffers[0]) == bytes(expected)


@pytest.mark.parametrize(("name", "size", "value"), FILLS)
@pytest.mark.parametrize("asynchronous", [False, True])
def test_fills_of_rows(buffers, make_stream, name, size, value, asynchronous):
    stream = make_stream()
    if asynchronous:
        ok(getattr(driver, f"cuMemsetD2{name}Async")(buffers[0], 64, value, 10, 5, stream))
        ok(driver.cuStreamSynchronize(stream))
    else:
        ok(getattr(driver, f"cuMemsetD2{name}")(buffers[0], 64, value, 10, 5))
    expected = bytearray(b"\xee" * SIZE)
    for y in range(5):
        expected[y * 64 : y * 64 + 10 * size] = value.to_bytes(size, "little") * 10
    assert read(buffers[0]) == bytes(expected)


@pytest.mark.cpu_only
@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda a: driver.cuMemsetD8(a, 0, SIZE + 1), "1 bytes past the end"),
        (lambda a: driver.cuMemsetD32(a + 2, 0, 4), "not a multiple of the element size"),
        (lambda a: driver.cuMemsetD2D16(a, 63, 0, 4, 4), "the pitch is 63 bytes"),
        (lambda a: driver.cuMemsetD2D8(a, 4, 0, 8, 2), "the pitch is 4 bytes"),
        (lambda a: driver.cuMemsetD2D8(a, 1024, 0, 8, 5), "past the end"),
        (lambda a: driver.cuMemsetD8(0, 0, 4), "null pointer"),
    ],
)
def test_bad_fills(buffers, call, text):
    result = call(buffers[0])
    assert status(result) == "CUDA_ERROR_INVALID_VALUE"
    assert text in explanation(result)


def test_filling_nothing(buffers):
    ok(driver.cuMemsetD8(buffers[0], 1, 0))
    ok(driver.cuMemsetD2D8(buffers[0], 64, 1, 0, 9))
