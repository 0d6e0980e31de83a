"""Kernel.prepare: what is fixed, what is checked, what arrives."""

from __future__ import annotations

import ctypes
import pickle
import struct
import threading
import weakref

import numpy as np
import pytest

from cupola import Buffer, CUDAError, LaunchConfig, ObjectCode, launch
from cupola.core.launch._prepared import PreparedLaunch

ONE = LaunchConfig(grid=1, block=1)


class Pair(ctypes.Structure):
    _fields_ = [("first", ctypes.c_double), ("second", ctypes.c_int)]


PAIR = np.dtype([("first", "f8"), ("second", "i4")], align=True)

# C type of the parameter, the type that is fixed, Python value, struct format of what arrives, what arrives
ACCEPTED = [
    ("int", None, 5, "i", 5),
    ("float", None, 5, "f", 5.0),
    ("int", int, -5, "i", -5),
    ("short", np.int16, -5, "h", -5),
    ("unsigned short", ctypes.c_uint16, 65535, "H", 65535),
    ("unsigned int", np.uint32, 2**32 - 1, "I", 2**32 - 1),
    ("unsigned int", np.dtype("uint32"), np.uint32(7), "I", 7),
    ("long long", np.int64, -(2**63), "q", -(2**63)),
    ("unsigned long long", ctypes.c_uint64, 2**64 - 1, "Q", 2**64 - 1),
    ("bool", bool, True, "?", True),
    ("bool", np.bool_, False, "?", False),
    ("float", np.float32, 3, "f", 3.0),
    ("float", ctypes.c_float, 2.5, "f", 2.5),
    ("float", float, 2.5, "f", 2.5),
    ("double", np.float64, 3, "d", 3.0),
    ("double", float, True, "d", 1.0),
    ("float2", np.complex64, 1 + 2j, "ff", (1.0, 2.0)),
    ("double2", complex, 1 + 2j, "dd", (1.0, 2.0)),
    ("char*", Buffer, 0x1234, "Q", 0x1234),
    ("char*", ctypes.c_void_p, 0x1234, "Q", 0x1234),
    ("Pair", Pair, Pair(1.5, 7), "di", (1.5, 7)),
    ("Pair", PAIR, np.array([(1.5, 7)], PAIR)[0], "di", (1.5, 7)),
    ("float2", ctypes.c_float * 2, (ctypes.c_float * 2)(1.5, 2.5), "ff", (1.5, 2.5)),
]


@pytest.mark.parametrize(("ctype", "kind", "value", "layout", "expected"), ACCEPTED, ids=lambda x: repr(x)[:30])
@pytest.mark.parametrize("known", [True, False], ids=["types known", "types not known"])
def test_arrives(stream, module, out, known, ctype, kind, value, layout, expected):
    if not known and ctype == "float" and kind is None:
        pytest.skip("an int is passed as an int where nobody knows better")
    source = module if known else ObjectCode.from_cubin(module.code, symbol_mapping=module.symbol_mapping)
    prepared = source.get_kernel(f"keep<{ctype}>").prepare(ONE, Buffer, kind)
    for _ in range(2):
        ctypes.memset(out.handle, 0xEE, 256)
        prepared(stream, out, value)
        stream.sync()
        arrived = struct.unpack(layout, ctypes.string_at(out.handle, struct.calcsize(layout)))
        assert arrived == (expected if isinstance(expected, tuple) else (expected,))


@pytest.mark.parametrize(
    ("ctype", "kind", "value", "error", "text"),
    [
        ("unsigned int", np.uint32, -1, OverflowError, r"32 bits wide: -1 does not fit; .* within \[0, 4294967295\]"),
        ("int", np.int32, 2**31, OverflowError, r"within \[-2147483648, 2147483647\]"),
        ("unsigned char", np.uint8, 256, OverflowError, "8 bits wide"),
        ("long long", np.int64, 2**63, OverflowError, "64 bits wide"),
        ("unsigned long long", np.uint64, -1, OverflowError, "64 bits wide"),
        ("unsigned long long", np.uint64, 2**64, OverflowError, "64 bits wide"),
        ("int", np.int32, 1.5, TypeError, "is an integer of 4 bytes"),
        ("float", np.float32, np.float64(1), TypeError, "numpy.float64 is 8 bytes"),
        ("double", np.float64, Buffer.from_handle(64, 4), TypeError, "is a double"),
        ("char*", Buffer, None, TypeError, "unsupported type NoneType"),
    ],
    ids=lambda x: repr(x)[:30],
)
def test_refused(stream, module, out, ctype, kind, value, error, text):
    prepared = module.get_kernel(f"keep<{ctype}>").prepare(ONE, Buffer, kind)
    with pytest.raises(error, match=text):
        prepared(stream, out, value)


@pytest.mark.parametrize(
    ("ctype", "types", "text"),
    [
        ("int", (Buffer,), "has 2 parameters; types of 1 are given"),
        ("int", (Buffer, np.int64), "parameter 1 .* is 4 bytes .*int64'> has 8"),
        ("int", (Buffer, float), "is an integer or a pointer, not <class 'float'>"),
        ("float", (Buffer, np.int32), "is a floating-point number, not"),
        ("int", (Buffer, "int"), "'int' is not the type of a parameter"),
        ("int", (Buffer, np.datetime64), "not the type of a parameter"),
        ("int", (Buffer, str), "not the type of a parameter"),
    ],
)
def test_bad_types(module, ctype, types, text):
    with pytest.raises(TypeError, match=text):
        module.get_kernel(f"keep<{ctype}>").prepare(ONE, *types)
    with pytest.raises(TypeError):
        module.get_kernel(f"keep<{ctype}>").prepare({"grid": 1}, *types)


def test_calls(stream, module, out):
    prepared = module.get_kernel("add").prepare(ONE)
    assert prepared(stream, out, 1) is None
    assert prepared(*[stream, out, 2]) is None
    stream.sync()
    assert np.from_dlpack(out).view(np.int32)[0] == 3
    with pytest.raises(TypeError, match="takes 2 arguments behind the stream; 1 given"):
        prepared(stream, out)
    with pytest.raises(TypeError, match="a stream first"):
        prepared()
    with pytest.raises(TypeError, match="by position"):
        prepared(stream, out, n=1)
    with pytest.raises(TypeError, match="stream"):
        prepared(None, out, 1)
    closed = stream.device.create_stream()
    closed.close()
    with pytest.raises(RuntimeError, match="Stream has been closed"):
        prepared(closed, out, 1)


def test_more_than_fit_on_the_stack(stream, module, out):
    module.get_kernel("many").prepare(ONE)(stream, out, *range(29), 2)
    stream.sync()
    assert np.from_dlpack(out).view(np.int32)[0] == sum(range(29)) + 2000


def test_the_config_is_a_copy(stream, module, out):
    config = LaunchConfig(grid=3, block=32)
    prepared = module.get_kernel("sum_blocks").prepare(config)
    config.grid = 1000
    assert prepared.config == LaunchConfig(grid=3, block=32)
    prepared(stream, out)
    stream.sync()
    assert np.from_dlpack(out).view(np.uint32)[0] == 3 + (3 << 8)


def test_limits_are_named(stream, module):
    prepared = module.get_kernel("nothing").prepare(LaunchConfig(grid=1, block=1025))
    with pytest.raises(CUDAError, match=r"block.x is 1025; .* takes at most 1024"):
        prepared(stream)


def test_shared_memory_and_cooperation(device, stream, module, out):
    size = 64 * 1024
    module.get_kernel("dynamic").prepare(LaunchConfig(grid=1, block=128, shmem_size=size))(stream, out, size)
    stream.sync()
    assert np.from_dlpack(out).view(np.uint32)[0] == (size - 1) % 256
    prepared = module.get_kernel("nothing").prepare(LaunchConfig(grid=10**6, block=64, is_cooperative=True))
    with pytest.raises(ValueError, match="the grid has 1000000 blocks"):
        prepared(stream)


def test_is_captured(device, stream, module, out):
    builder = device.create_graph_builder().begin_building()
    prepared = module.get_kernel("add").prepare(ONE)
    for _ in range(3):
        prepared(builder, out, 5)
    graph = builder.end_building().complete()
    graph.launch(stream)
    stream.sync()
    assert np.from_dlpack(out).view(np.int32)[0] == 15


def test_object(module):
    kernel = module.get_kernel("add")
    prepared = kernel.prepare(ONE)
    assert prepared.kernel is kernel and callable(prepared) and isinstance(prepared, PreparedLaunch)
    assert repr(prepared) == f"<PreparedLaunch of add, {ONE!r}>"
    assert weakref.ref(prepared)() is prepared
    with pytest.raises(TypeError, match="prepare the kernel again"):
        pickle.dumps(prepared)
    with pytest.raises(RuntimeError, match="Kernel.prepare"):
        PreparedLaunch()


def test_keeps_the_code_loaded(stream, out):
    from cupola import Program

    source = 'extern "C" __global__ void k(int* x) { *x = 9; }'
    prepared = Program(source, "c++").compile("cubin").get_kernel("k").prepare(ONE)
    prepared(stream, out)
    stream.sync()
    assert np.from_dlpack(out).view(np.int32)[0] == 9


def test_threads(device, module):
    from cupola import LegacyPinnedMemoryResource

    prepared = module.get_kernel("add").prepare(ONE)
    with LegacyPinnedMemoryResource().allocate(64) as memory:
        ctypes.memset(memory.handle, 0, 64)

        def work():
            device.set_current()
            stream = device.create_stream()
            for _ in range(50):
                prepared(stream, memory, 1)
            stream.sync()
            stream.close()

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert np.from_dlpack(memory).view(np.int32)[0] == 200


def test_the_same_as_launch(stream, module, out):
    """Whatever launch takes."""
    kernel = module.get_kernel("keep<double2>")
    seen = np.from_dlpack(out).view(np.float64)
    for value in (1 + 2j, np.complex128(3 + 4j)):
        launch(stream, ONE, kernel, out, value)
        stream.sync()
        expected = seen[:2].tolist()
        kernel.prepare(ONE)(stream, out, value)
        stream.sync()
        assert seen[:2].tolist() == expected
