"""DLPack's C exchange API in both directions, with ctypes in the part of the other library."""

from __future__ import annotations

import ctypes
import gc
import sys

import numpy as np
import pytest

from cupola.utils import StridedMemoryView as View


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


OBJECT_TO_POINTER = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(ctypes.c_void_p))
POINTER_TO_OBJECT = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p))
OBJECT_TO_TENSOR = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(DLTensor))
CURRENT_STREAM = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))
SET_ERROR = ctypes.PYFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)
ALLOCATE = ctypes.PYFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(DLTensor), ctypes.POINTER(ctypes.c_void_p), ctypes.c_void_p, SET_ERROR
)


class Api(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("previous", ctypes.c_void_p),
        ("allocate", ALLOCATE),
        ("to_managed", OBJECT_TO_POINTER),
        ("from_managed", POINTER_TO_OBJECT),
        ("to_tensor", OBJECT_TO_TENSOR),
        ("current_stream", CURRENT_STREAM),
    ]


def function(name, result, *arguments):
    return ctypes.PYFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))


get_pointer = function("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
set_name = function("PyCapsule_SetName", ctypes.c_int, ctypes.py_object, ctypes.c_char_p)
new_capsule = function("PyCapsule_New", ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)

OURS = Api.from_address(get_pointer(View.__dlpack_c_exchange_api__, b"dlpack_exchange_api"))


def test_the_table():
    assert (OURS.major, OURS.minor, OURS.previous) == (1, 3, None)
    assert View.__c_dlpack_exchange_api__ is View.__dlpack_c_exchange_api__
    stream = ctypes.c_void_p(5)
    assert OURS.current_stream(2, 0, stream) == 0 and stream.value is None
    errors: list[bytes] = []
    assert OURS.allocate(None, None, None, SET_ERROR(lambda _, kind, text: errors.append(kind))) == -1
    assert errors == [b"NotImplementedError"]


def test_a_borrowed_tensor():
    array = np.zeros((2, 3), dtype=np.int16)
    tensor = DLTensor()
    view = View.from_dlpack(array, -1)
    assert OURS.to_tensor(view, tensor) == 0
    assert (tensor.data, tensor.device_type, tensor.ndim) == (array.ctypes.data, 1, 2)
    assert (tensor.code, tensor.bits, tensor.lanes) == (0, 16, 1)
    assert (tensor.shape[:2], tensor.strides[:2]) == ([2, 3], [3, 1])
    with pytest.raises(TypeError):
        OURS.to_tensor("text", tensor)
    assert (tensor.data, tensor.ndim) == (None, 0)


# Functions of the table with the types of their arguments, and the arguments: what is None must not be.
NULLS = {
    "to_managed, the view": (OURS.to_managed, 2, (None, "out")),
    "to_managed, the result": (OURS.to_managed, 2, ("view", None)),
    "from_managed, the tensor": (OURS.from_managed, 2, (None, "out")),
    "from_managed, the result": (OURS.from_managed, 2, (None, None)),
    "to_tensor, the view": (OURS.to_tensor, 2, (None, "tensor")),
    "to_tensor, the result": (OURS.to_tensor, 2, ("view", None)),
}


@pytest.mark.parametrize("case", NULLS)
def test_null_is_an_error(case):
    function, count, arguments = NULLS[case]
    raw = ctypes.PYFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * count)(ctypes.cast(function, ctypes.c_void_p).value)
    out, tensor = ctypes.c_void_p(77), DLTensor(data=77, ndim=7)
    view = View.from_dlpack(np.zeros(3), -1)
    values = {"out": ctypes.addressof(out), "tensor": ctypes.addressof(tensor), "view": id(view), None: None}
    with pytest.raises(ValueError, match="must not be NULL"):
        raw(*[values[argument] for argument in arguments])
    assert out.value is None if "out" in arguments else out.value == 77
    assert (tensor.data, tensor.ndim) == ((None, 0) if "tensor" in arguments else (77, 7))


def test_null_for_the_place_of_a_stream():
    with pytest.raises(ValueError, match="must not be NULL"):
        OURS.current_stream(2, 0, None)


def test_an_allocation_without_a_function_for_the_error():
    out = ctypes.c_void_p(77)
    with pytest.raises(NotImplementedError, match="cannot allocate any"):
        OURS.allocate(None, out, None, SET_ERROR())
    assert out.value is None


def test_a_tensor_without_a_shape():
    kind = ctypes.c_uint8 * 256
    managed = kind()
    ctypes.c_uint32.from_buffer(managed).value = 1  # the version
    DLTensor.from_buffer(managed, 32).ndim = 3
    out = ctypes.c_void_p(77)
    with pytest.raises(BufferError, match="3 dimensions and no shape"):
        OURS.from_managed(ctypes.addressof(managed), out)
    assert out.value is None


def test_a_managed_tensor_there_and_back():
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    array.flags.writeable = False
    pointer, result = ctypes.c_void_p(), ctypes.c_void_p()
    assert OURS.to_managed(View.from_dlpack(array, -1), pointer) == 0
    address = array.ctypes.data
    del array
    gc.collect()
    assert OURS.from_managed(pointer, result) == 0
    view = ctypes.cast(result, ctypes.py_object).value
    ctypes.pythonapi.Py_DecRef(ctypes.py_object(view))
    assert type(view) is View and view.ptr == address and view.readonly
    assert np.from_dlpack(view).tolist() == [[0, 1, 2], [3, 4, 5]]
    alone = object()
    assert sys.getrefcount(view) == sys.getrefcount(alone)


@pytest.fixture
def foreign():
    """Makes a type with an exchange API that serves its attribute `view`."""
    keep = []

    def make(*, module="theirs", **slots):
        def to_tensor(source, out):
            return OURS.to_tensor(source.view, out)

        def to_managed(source, out):
            calls.append("managed")
            return OURS.to_managed(source.view, out)

        calls: list[str] = []
        functions = {
            "to_tensor": OBJECT_TO_TENSOR(to_tensor),
            "to_managed": OBJECT_TO_POINTER(to_managed),
            "current_stream": CURRENT_STREAM(lambda *_: calls.append("stream") or 0),
            **slots,
        }
        api = Api(1, 3, **functions)
        capsule = new_capsule(ctypes.addressof(api), b"dlpack_exchange_api", None)
        keep.append((api, functions, capsule))
        kind = type("Tensor", (), {"__dlpack_c_exchange_api__": capsule, "__module__": module, "calls": calls})
        kind.__dlpack__ = kind.__dlpack_device__ = lambda self: calls.append("python")
        return kind

    return make


def test_importing_through_the_api(foreign):
    array = np.arange(6, dtype=np.int32).reshape(2, 3)[:, ::2]
    array.flags.writeable = False
    kind = foreign()
    source = kind()
    source.view = View.from_dlpack(array, -1)
    for make in (View.from_dlpack, View.from_any_interface):
        for stream in (None, -1, 12345):
            view = make(source, stream)
            assert (view.ptr, view.shape, view.strides, view.dtype) == (array.ctypes.data, (2, 2), (3, 2), np.int32)
            assert view.readonly and view.exporting_obj is source and view.device_id == -1
    assert set(kind.calls) == {"managed"}


def test_importing_a_tensor_of_torch_borrows_it(foreign):
    kind = foreign(module="torch")
    source = kind()
    source.view = View.from_dlpack(np.zeros((1,) * 8, dtype=np.complex64), -1)
    view = View.from_any_interface(source)
    assert view.shape == (1,) * 8 and view.dtype == np.complex64 and not view.readonly
    assert kind.calls == []


def test_tables_that_are_too_new_or_incomplete_are_not_used(foreign):
    kind = foreign(current_stream=CURRENT_STREAM())
    source = kind()
    with pytest.raises(TypeError):
        View.from_dlpack(source, -1)  # the stand-in's __dlpack_device__ gives nothing
    assert kind.calls == ["python"]
