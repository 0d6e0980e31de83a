"""Kernel arguments: the bytes that arrive on the device."""

from __future__ import annotations

import ctypes
import enum
import pickle
import struct

import numpy as np
import pytest

from cupola import Buffer, LaunchConfig, ObjectCode, launch

ONE = LaunchConfig(grid=1, block=1)


class Pair(ctypes.Structure):
    _fields_ = [("first", ctypes.c_double), ("second", ctypes.c_int)]


class Wide(ctypes.Structure):
    _fields_ = [("numbers", ctypes.c_int * 32)]


class Level(enum.IntEnum):
    HIGH = 3


class MyFloat(float):
    pass


PAIR_DTYPE = np.dtype([("first", "f8"), ("second", "i4")], align=True)

# C type of the parameter, Python value, struct format of what arrives, what arrives
ACCEPTED = [
    # values without a width of their own take that of the parameter
    ("long long", 5, "q", 5),
    ("long long", -1, "q", -1),
    ("unsigned long long", 2**64 - 1, "Q", 2**64 - 1),
    ("int", -(2**31), "i", -(2**31)),
    ("unsigned int", 2**32 - 1, "I", 2**32 - 1),
    ("short", -2, "h", -2),
    ("unsigned char", 255, "B", 255),
    ("int", Level.HIGH, "i", 3),
    ("long long", Level.HIGH, "q", 3),
    ("double", 2.5, "d", 2.5),
    ("float", 2.5, "f", 2.5),
    ("float", MyFloat(2.5), "f", 2.5),
    ("double", MyFloat(2.5), "d", 2.5),
    ("bool", True, "?", True),
    ("bool", False, "?", False),
    ("int", True, "i", 1),
    ("long long", True, "q", 1),
    # ... and its kind
    ("double", 5, "d", 5.0),
    ("float", 5, "f", 5.0),
    ("float", True, "f", 1.0),
    ("double", False, "d", 0.0),
    ("double", Level.HIGH, "d", 3.0),
    ("double2", 1 + 2j, "dd", (1.0, 2.0)),
    ("float2", 1 + 2j, "ff", (1.0, 2.0)),
    ("char*", 0x7000_0000_1234, "Q", 0x7000_0000_1234),
    # NumPy scalars
    ("bool", np.bool_(True), "?", True),
    ("signed char", np.int8(-3), "b", -3),
    ("unsigned char", np.uint8(200), "B", 200),
    ("short", np.int16(-3), "h", -3),
    ("unsigned short", np.uint16(60000), "H", 60000),
    ("unsigned short", np.float16(1.5), "e", 1.5),
    ("int", np.int32(-3), "i", -3),
    ("unsigned int", np.uint32(2**32 - 1), "I", 2**32 - 1),
    ("float", np.float32(1.25), "f", 1.25),
    ("long long", np.int64(-3), "q", -3),
    ("unsigned long long", np.uint64(2**63 + 1), "Q", 2**63 + 1),
    ("double", np.float64(1.25), "d", 1.25),
    ("float2", np.complex64(1 + 2j), "ff", (1.0, 2.0)),
    ("double2", np.complex128(1 + 2j), "dd", (1.0, 2.0)),
    ("Pair", np.array([(1.5, 7)], PAIR_DTYPE)[0], "di", (1.5, 7)),
    # ctypes
    ("bool", ctypes.c_bool(True), "?", True),
    ("signed char", ctypes.c_int8(-3), "b", -3),
    ("unsigned short", ctypes.c_uint16(60000), "H", 60000),
    ("int", ctypes.c_int(-3), "i", -3),
    ("float", ctypes.c_float(1.25), "f", 1.25),
    ("double", ctypes.c_double(1.25), "d", 1.25),
    ("unsigned long long", ctypes.c_size_t(2**63 + 1), "Q", 2**63 + 1),
    ("char*", ctypes.c_void_p(0x1234), "Q", 0x1234),
    ("Pair", Pair(1.5, 7), "di", (1.5, 7)),
    ("float2", (ctypes.c_float * 2)(1.5, 2.5), "ff", (1.5, 2.5)),
    ("Wide", (ctypes.c_int * 32)(*range(32)), "32i", tuple(range(32))),
    ("Wide", Wide((ctypes.c_int * 32)(*range(32))), "32i", tuple(range(32))),
]


@pytest.mark.parametrize(("ctype", "value", "layout", "expected"), ACCEPTED, ids=lambda x: repr(x)[:30])
def test_arrives(stream, module, out, ctype, value, layout, expected):
    kernel = module.get_kernel(f"keep<{ctype}>")
    for _ in range(2):  # the second time by what was learned of the type
        ctypes.memset(out.handle, 0xEE, 256)
        launch(stream, ONE, kernel, out, value)
        stream.sync()
        arrived = struct.unpack(layout, ctypes.string_at(out.handle, struct.calcsize(layout)))
        assert arrived == (expected if isinstance(expected, tuple) else (expected,))


def test_values_of_a_known_type_differ(stream, module, out):
    kernel = module.get_kernel("keep<float>")
    seen = np.from_dlpack(out).view(np.float32)
    for make in (np.float32, ctypes.c_float):
        for number in (0.0, 1.5, -2.0):
            launch(stream, ONE, kernel, out, make(number))
            stream.sync()
            assert seen[0] == number


def test_ctypes_value_in_the_memory_of_another(stream, module, out):
    array = (ctypes.c_int * 2)(5, 6)
    second = ctypes.c_int.from_buffer(array, 4)
    launch(stream, ONE, module.get_kernel("keep<int>"), out, second)
    stream.sync()
    assert np.from_dlpack(out).view(np.int32)[0] == 6


def test_buffers_and_addresses(stream, module, out, device):
    for pointer in (out, out.handle, np.uint64(out.handle), ctypes.c_void_p(out.handle)):
        launch(stream, ONE, module.get_kernel("add"), pointer, 1)
    stream.sync()
    assert np.from_dlpack(out).view(np.int32)[0] == 4
    launch(stream, ONE, module.get_kernel("keep<char*>"), out, Buffer.from_handle(0, 0))
    stream.sync()
    assert np.from_dlpack(out).view(np.uint64)[0] == 0


def test_handles_of_the_bindings(stream, module, out):
    from cupola.bindings.driver import CUdeviceptr

    launch(stream, ONE, module.get_kernel("keep<char*>"), out, CUdeviceptr(0x1234))
    stream.sync()
    assert np.from_dlpack(out).view(np.uint64)[0] == 0x1234


def test_more_than_fit_on_the_stack(stream, module, out):
    launch(stream, ONE, module.get_kernel("many"), out, *range(29), np.int32(2))
    stream.sync()
    assert np.from_dlpack(out).view(np.int32)[0] == sum(range(29)) + 2000


def test_closed_buffer(device, stream, module, out):
    buffer = device.allocate(16, stream=stream)
    buffer.close()
    with pytest.raises(RuntimeError, match="^Buffer has been closed: it is given for parameter 0 of kernel add$"):
        launch(stream, ONE, module.get_kernel("add"), buffer, 1)
    array = device.zeros(4, np.float32, stream=stream)
    array.close()
    with pytest.raises(RuntimeError, match="^Array has been closed: it is given for parameter 0 of kernel add$"):
        launch(stream, ONE, module.get_kernel("add"), array, 1)


# C type of the parameter, Python value, error, what its text says
REFUSED = [
    ("int", 2**32, OverflowError, "32 bits wide: 4294967296 does not fit"),
    ("int", 2**31, OverflowError, r"does not fit; it must be within \[-2147483648, 2147483647\]"),
    ("unsigned int", -1, OverflowError, r"within \[0, 4294967295\]"),
    ("unsigned int", 2**32, OverflowError, "32 bits wide"),
    ("short", 2**15, OverflowError, r"within \[-32768, 32767\]"),
    ("unsigned short", -1, OverflowError, r"within \[0, 65535\]"),
    ("signed char", 128, OverflowError, r"within \[-128, 127\]"),
    ("unsigned char", -1, OverflowError, r"within \[0, 255\]"),
    ("long long", 2**63, OverflowError, "64 bits wide"),
    ("unsigned long long", -1, OverflowError, "64 bits wide"),
    ("int", -(2**31) - 1, OverflowError, "32 bits wide"),
    ("unsigned char", 256, OverflowError, "8 bits wide"),
    ("long long", 2**64, OverflowError, "64 bits wide"),
    ("long long", -(2**63) - 1, OverflowError, "64 bits wide"),
    ("int", np.int64(1), TypeError, r"is 4 bytes \(at offset 8\), but numpy.int64 is 8 bytes; it takes: int, float"),
    ("float", np.float64(1), TypeError, "numpy.float64 is 8 bytes"),
    ("long long", np.int32(1), TypeError, "numpy.int32 is 4 bytes"),
    ("double", ctypes.c_float(1), TypeError, "ctypes.c_float is 4 bytes"),
    ("short", 1.5, TypeError, r"is an integer of 2 bytes, 1.5 is a float: pass int\("),
    ("int", 2.0, TypeError, "is an integer of 4 bytes"),
    ("unsigned long long", 2.0, TypeError, r"a pointer or an integer of 8 bytes, but 2.0 is a float: .*int\("),
    ("char*", 1.5, TypeError, "is a pointer or .* 1.5 is a float: pass a Buffer, an array on the device or an address"),
    ("int", 1j, TypeError, "complex is 16 bytes"),
    ("Pair", 1, TypeError, "ctypes.Structure"),
    ("Wide", Pair(1, 2), TypeError, "is 128 bytes"),
    ("Pair", Wide(), TypeError, "is 16 bytes"),
    ("char*", None, TypeError, "unsupported type NoneType for parameter 1 of kernel keep<char\\*>; pass 0"),
    ("char*", "text", TypeError, "unsupported type str"),
    ("char*", b"text", TypeError, "unsupported type bytes"),
    ("char*", (1,), TypeError, "unsupported type tuple"),
    ("char*", [1], TypeError, "unsupported type list"),
    ("char*", np.zeros(3), TypeError, "array on the host"),
    ("double", np.array(1.0), TypeError, "array on the host"),
    ("double2", np.longdouble(1), TypeError, "nothing on the device"),
    ("long long", np.datetime64(0, "s"), TypeError, "nothing on the device"),
    ("signed char", ctypes.c_char(b"a"), TypeError, "unsupported type ctypes.c_char"),
    ("char*", (ctypes.c_float * 2)(), TypeError, "memory of the host"),
    ("Pair", (ctypes.c_int * 3)(), TypeError, "is 12 bytes"),
    ("char*", Ellipsis, TypeError, "unsupported type ellipsis"),
]


@pytest.mark.parametrize(("ctype", "value", "error", "text"), REFUSED, ids=lambda x: repr(x)[:30])
def test_refused(stream, module, out, ctype, value, error, text):
    with pytest.raises(error, match=text):
        launch(stream, ONE, module.get_kernel(f"keep<{ctype}>"), out, value)


def test_arrays_of_gpu_libraries_are_explained(stream, module, out):
    class Tensor:
        def data_ptr(self):
            return 0

    with pytest.raises(TypeError, match=r"pass its address as an int.*data_ptr\(\)"):
        launch(stream, ONE, module.get_kernel("keep<char*>"), out, Tensor())


class CudaArray:
    """As CuPy's arrays and Numba's."""

    def __init__(self, pointer):
        self.__cuda_array_interface__ = {"data": (pointer, False), "shape": (1,), "typestr": "<i4", "version": 3}


class CudaTensor:
    """As PyTorch's; without gradients it has the interface above, too."""

    def __init__(self, pointer, array=None):
        self._pointer, self._array = pointer, array
        self.is_cuda = array is None
        self.ndim = 1 if array is None else array.ndim

    def data_ptr(self):
        return self._pointer

    def numpy(self):
        return self._array

    @property
    def __cuda_array_interface__(self):
        raise AttributeError("grad")


@pytest.mark.parametrize("make", [CudaArray, CudaTensor])
def test_arrays_on_a_device_are_pointers(stream, module, out, make):
    launch(stream, ONE, module.get_kernel("add"), make(out.handle), 7)
    stream.sync()
    assert np.from_dlpack(out).view(np.int32)[0] == 7
    with pytest.raises(TypeError, match="is a double, .*Cuda.* is a pointer"):
        launch(stream, ONE, module.get_kernel("keep<double>"), out, make(out.handle))


def test_tensors_of_one_number_on_the_host(stream, module, out):
    launch(stream, ONE, module.get_kernel("keep<float>"), out, CudaTensor(0, np.array(2.5, np.float32)))
    stream.sync()
    assert np.from_dlpack(out).view(np.float32)[0] == 2.5
    with pytest.raises(TypeError, match="is 8 bytes"):
        launch(stream, ONE, module.get_kernel("keep<float>"), out, CudaTensor(0, np.array(2.5)))
    with pytest.raises(TypeError, match="unsupported type"):
        launch(stream, ONE, module.get_kernel("keep<char*>"), out, CudaTensor(0, np.zeros(3)))


def test_a_pointer_is_no_double(stream, module, out):
    with pytest.raises(TypeError, match="is a double, .*Buffer is a pointer"):
        launch(stream, ONE, module.get_kernel("keep<double>"), out, out)


@pytest.mark.parametrize("forget", [lambda code: pickle.loads(pickle.dumps(code)), lambda code: code])
def test_types_survive_pickling(stream, module, out, forget):
    launch(stream, ONE, forget(module).get_kernel("keep<float>"), out, 3)
    stream.sync()
    assert np.from_dlpack(out).view(np.float32)[0] == 3.0


def test_without_types_the_width_decides(stream, module, out):
    """Machine code from elsewhere: nobody knows what the four bytes are."""
    bare = ObjectCode.from_cubin(module.code)
    kernel = bare.get_kernel(module.symbol_mapping["keep<float>"])
    launch(stream, ONE, kernel, out, 2.5)
    stream.sync()
    assert np.from_dlpack(out).view(np.float32)[0] == 2.5
    launch(stream, ONE, kernel, out, 3)
    stream.sync()
    assert np.from_dlpack(out).view(np.int32)[0] == 3


def test_foreign_objects(stream, module, out):
    with pytest.raises(TypeError, match="unsupported type .*Stream"):
        launch(stream, ONE, module.get_kernel("keep<char*>"), out, stream)


@pytest.mark.parametrize(
    ("name", "arguments", "text"),
    [
        ("add", (), r"kernel add takes 2 arguments of 8, 4 bytes; 0 given"),
        ("add", (0,), "; 1 given"),
        ("add", (0, 1, 2), "; 3 given"),
        ("fault", (0, 1), r"kernel fault takes 1 argument of 8 bytes; 2 given"),
        ("nothing", (0,), r"kernel nothing takes 0 arguments; 1 given"),
    ],
)
def test_wrong_count(stream, module, name, arguments, text):
    with pytest.raises(TypeError, match=text):
        launch(stream, ONE, module.get_kernel(name), *arguments)


def test_own_argument_types(stream, module, out):
    from cupola.core.launch._arguments import register_argument_type

    class Vector:
        def __init__(self, x, y):
            self.memory = (ctypes.c_double * 2)(x, y)

    register_argument_type(Vector, lambda v: (ctypes.addressof(v.memory), 16))
    launch(stream, ONE, module.get_kernel("keep<double2>"), out, Vector(1.0, 2.0))
    stream.sync()
    assert np.from_dlpack(out).view(np.float64)[:2].tolist() == [1.0, 2.0]
    with pytest.raises(TypeError, match="is 16 bytes"):
        launch(stream, ONE, module.get_kernel("keep<int>"), out, Vector(1.0, 2.0))
