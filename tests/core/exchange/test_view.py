"""Views of host arrays, and of what stands in for device arrays."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

from cupola import Buffer
from cupola.utils import StridedMemoryView as View


class Wrapped:
    """Another array's DLPack, through Python."""

    def __init__(self, array, *, versions=True):
        self.array, self.versions, self.streams = array, versions, []

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __dlpack__(self, **keywords):
        self.streams.append(keywords["stream"])
        if not self.versions and "max_version" in keywords:
            raise TypeError("max_version")
        return self.array.__dlpack__(**keywords)


ARRAYS = {
    "C": lambda: np.arange(24, dtype=np.float32).reshape(2, 3, 4),
    "F": lambda: np.asfortranarray(np.arange(6, dtype=np.int16).reshape(2, 3)),
    "reversed": lambda: np.arange(6)[::-2],
    "0-d": lambda: np.array(5, dtype=np.uint8),
    "empty": lambda: np.empty((3, 0, 2)),
    "bool": lambda: np.array([True, False]),
    "complex": lambda: np.zeros(3, dtype=np.complex64),
    "half": lambda: np.zeros((1, 4), dtype=np.float16),
    "8-d": lambda: np.zeros((1, 2, 1, 2, 1, 2, 1, 2), dtype=np.int8),
    "transposed 8-d": lambda: np.zeros((1, 2, 3, 2, 1, 2, 1, 2), dtype=np.int8).T,
}


def check_view(view, array, *, implicit=False):
    assert view.ptr == array.__array_interface__["data"][0]
    assert (view.shape, view.size, view.dtype) == (array.shape, array.size, array.dtype)
    assert view.device_id == -1 and not view.is_device_accessible
    if array.ndim and not implicit:
        assert tuple(s * array.itemsize for s in view.strides) == array.strides
    else:
        assert view.strides is None


@pytest.mark.parametrize("create", ARRAYS.values(), ids=ARRAYS)
@pytest.mark.parametrize(
    "make",
    [
        lambda a: View.from_any_interface(a, -1),
        lambda a: View.from_dlpack(a, -1),
        lambda a: View.from_dlpack(Wrapped(a), -1),
        lambda a: View.from_dlpack(Wrapped(a, versions=False), 0),
        View.from_array_interface,
        lambda a: View.from_dlpack(View.from_array_interface(a), -1),
    ],
    ids=["any", "dlpack", "capsule", "old capsule", "array interface", "view of a view"],
)
def test_every_protocol_tells_the_same(make, create):
    array = create()
    view = make(array)
    if array.size:
        check_view(view, array, implicit=make == View.from_array_interface and array.flags.c_contiguous)
        assert not view.readonly
    else:
        assert (view.shape, view.dtype) == (array.shape, array.dtype)
    back = np.from_dlpack(view)
    assert back.shape == array.shape and back.dtype == array.dtype
    np.testing.assert_array_equal(back, array)
    if array.size:
        assert np.shares_memory(back, array)


def test_memory_is_shared_and_kept():
    array = np.zeros(4, dtype=np.float32)
    view = View.from_dlpack(Wrapped(array), -1)
    alias = np.from_dlpack(view)
    alias[:] = 7
    assert array.tolist() == [7] * 4
    gone = weakref.ref(array)
    del array, alias
    gc.collect()
    assert gone() is not None
    del view
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("make", [lambda a: View.from_dlpack(a, -1), View.from_array_interface])
def test_read_only(make):
    array = np.arange(3)
    array.flags.writeable = False
    view = make(array)
    assert view.readonly
    assert not np.from_dlpack(view).flags.writeable
    assert view.view(dtype=np.uint64).readonly


@pytest.mark.parametrize("source", [np.zeros(2), Wrapped(np.zeros(2))], ids=["array", "capsule"])
def test_host_memory_has_no_streams(source):
    with pytest.raises(BufferError, match="ambiguous"):
        View.from_dlpack(source)
    for stream in (-1, 0, 1, 12345):
        assert View.from_dlpack(source, stream).shape == (2,)
    if isinstance(source, Wrapped):
        assert source.streams == [None] * 4
    for wrong in ("1", 1.5, 1.5 + 1j, object()):
        with pytest.raises(TypeError, match="stream_ptr"):
            View.from_dlpack(source, wrong)


def test_types_that_dlpack_lacks_need_the_array_interface():
    for array in (
        np.zeros(2, dtype=">f4"),
        np.zeros(2, dtype=[("x", "f4"), ("n", "i4")]),
        np.array(["2026-11-21"], dtype="M8[D]"),
        np.zeros(2, dtype=np.longdouble),
    ):
        view = View.from_array_interface(array)
        assert view.dtype == array.dtype
        with pytest.raises(BufferError):
            view.__dlpack__()
    with pytest.raises(BufferError):
        View.from_dlpack(np.zeros(2, dtype=">f4"), -1)


def test_objects_without_a_protocol():
    with pytest.raises(BufferError, match="does not support any data exchange protocol"):
        View.from_any_interface([1, 2], -1)
    for make in (View.from_dlpack, View.from_cuda_array_interface):
        with pytest.raises(AttributeError):
            make([1, 2], -1)
    with pytest.raises(AttributeError):
        View.from_array_interface([1, 2])


class Interface:
    def __init__(self, **entries):
        self.__array_interface__ = {"version": 3, "typestr": "<f4", "shape": (2, 3), "data": (0x1000, False), **entries}


@pytest.mark.parametrize(
    ("entries", "error", "text"),
    [
        ({"version": 2}, BufferError, "version 3"),
        ({"version": 0}, BufferError, "version 3"),
        ({"mask": object()}, BufferError, "mask"),
        ({"data": None}, BufferError, "address"),
        ({"strides": (10, 4)}, ValueError, "multiples"),
        ({"strides": (4,)}, ValueError, "length"),
        ({"shape": (-1, 3)}, ValueError, "negative"),
        ({"shape": (1,) * 65}, ValueError, "64"),
        ({"typestr": "float"}, TypeError, "typestr"),
    ],
)
def test_bad_array_interfaces(entries, error, text):
    with pytest.raises(error, match=text):
        View.from_array_interface(Interface(**entries))


def test_interfaces_say_their_version_and_address():
    for missing, text in (("version", "version 3"), ("data", "address")):
        interface = Interface()
        del interface.__array_interface__[missing]
        with pytest.raises(BufferError, match=text):
            View.from_array_interface(interface)


def test_an_array_with_fields_is_writable():
    array = np.zeros((2, 3), [("x", "f4"), ("y", "i2")])
    view = View.from_array_interface(array)
    assert (view.dtype, view.readonly, view.strides) == (array.dtype, False, None)
    array.flags.writeable = False
    assert View.from_array_interface(array).readonly


def test_array_interface_without_strides():
    view = View.from_array_interface(Interface())
    assert (view.ptr, view.shape, view.strides) == (0x1000, (2, 3), None)
    assert View.from_array_interface(Interface(strides=(4, 8))).strides == (1, 2)


class Capsule:
    """An exporter with a capsule made by hand."""

    def __init__(self, capsule, device=(1, 0)):
        self.capsule, self.device = capsule, device

    def __dlpack__(self, **keywords):
        return self.capsule

    def __dlpack_device__(self):
        return self.device


def make_capsule(array, *, byte_offset=0, strides=True, lanes=1, code=2, bits=32, extent=None):
    """A legacy capsule over a one-dimensional float32 array."""
    import ctypes

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

    class Managed(ctypes.Structure):
        _fields_ = [("tensor", DLTensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]

    calls = []
    deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda pointer: calls.append(pointer))
    shape = (ctypes.c_int64 * 1)(len(array) - byte_offset // 4 if extent is None else extent)
    steps = (ctypes.c_int64 * 1)(1) if strides else None
    tensor = DLTensor(array.ctypes.data, 1, 0, 1, code, bits, lanes, shape, steps, byte_offset)
    managed = Managed(tensor, None, ctypes.cast(deleter, ctypes.c_void_p))
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    return new(ctypes.addressof(managed), b"dltensor", None), calls, (managed, deleter, shape, steps, array)


def test_byte_offset_and_missing_strides():
    array = np.arange(8, dtype=np.float32)
    capsule, calls, keep = make_capsule(array, byte_offset=8, strides=False)
    view = View.from_dlpack(Capsule(capsule), -1)
    assert view.ptr == array.ctypes.data + 8
    assert (view.shape, view.strides) == ((6,), None)
    assert np.from_dlpack(view).tolist() == [2, 3, 4, 5, 6, 7]
    with pytest.raises(BufferError, match="unused"):
        View.from_dlpack(Capsule(capsule), -1)  # consumed
    assert calls == []
    del view
    gc.collect()
    assert len(calls) == 1


@pytest.mark.parametrize("strides", [True, False])
@pytest.mark.parametrize("extent", [-1, -(2**63)])
def test_negative_extents(extent, strides):
    """Refused when they are read, and the tensor is given back."""
    capsule, calls, keep = make_capsule(np.zeros(8, dtype=np.float32), extent=extent, strides=strides)
    with pytest.raises(BufferError, match=f"extents must not be negative, got shape .{extent},"):
        View.from_dlpack(Capsule(capsule), -1)
    gc.collect()
    assert len(calls) == 1


@pytest.mark.parametrize(
    ("dtype", "error"),
    [({"lanes": 4}, NotImplementedError), ({"code": 4, "bits": 16}, None), ({"code": 10, "bits": 8}, TypeError)],
)
def test_types_are_found_out_when_asked_for(dtype, error):
    capsule, _, keep = make_capsule(np.zeros(8, dtype=np.float32), **dtype)
    view = View.from_dlpack(Capsule(capsule), -1)
    assert view.shape == (8,)
    if error is None:
        try:
            from ml_dtypes import bfloat16
        except ImportError:
            with pytest.raises(NotImplementedError, match="ml_dtypes"):
                _ = view.dtype
        else:
            assert view.dtype == bfloat16
    else:
        with pytest.raises(error):
            _ = view.dtype
    del view  # before what its deleter needs


def test_other_devices_are_refused():
    with pytest.raises(BufferError, match="type 10"):
        View.from_dlpack(Capsule(None, device=(10, 0)), -1)
    with pytest.raises(BufferError, match="capsule"):
        View.from_dlpack(Capsule("not a capsule"), -1)


def test_views_of_views():
    array = np.arange(24, dtype=np.float32).reshape(4, 6)
    view = View.from_dlpack(array, -1)
    assert view.view() is view
    part = view.view(view._layout[1:3, ::2])
    np.testing.assert_array_equal(np.from_dlpack(part), array[1:3, ::2])
    assert part.exporting_obj is array and part.dtype == np.float32
    assert view.view(dtype="u4").dtype == np.uint32
    wide = view.view(view._layout.repacked(8), np.complex64)
    np.testing.assert_array_equal(np.from_dlpack(wide), array.view(np.complex64))
    with pytest.raises(ValueError, match="bytes"):
        view.view(dtype=np.float64)
    with pytest.raises(TypeError, match="layout"):
        view.view((4, 6))


def test_host_buffers():
    array = np.arange(16, dtype=np.uint8)
    buffer = Buffer.from_handle(array.ctypes.data, 16, owner=array)
    view = View.from_dlpack(buffer, -1)
    assert (view.shape, view.strides, view.dtype) == ((16,), (1,), np.int8)
    assert view.exporting_obj is buffer
    view = View.from_buffer(buffer, (2, 2), (3, 1), dtype=np.dtype("<u2"))
    assert np.from_dlpack(view).tolist() == [[0x0100, 0x0302], [0x0706, 0x0908]]
    assert View.from_buffer(buffer, (4,), itemsize=4).dtype is None
    assert View.from_buffer(buffer, (4,), itemsize=4).strides is None
    assert View.from_buffer(buffer, (4,), itemsize=4, is_readonly=True).readonly
    with pytest.raises(BufferError, match="dtype"):
        View.from_buffer(buffer, (4,), itemsize=4).__dlpack__()


@pytest.mark.parametrize(
    ("arguments", "keywords", "error"),
    [
        (((4,),), {}, ValueError),
        (([4],), {"itemsize": 4}, TypeError),
        (((4,), [1]), {"itemsize": 4}, TypeError),
        (((4,),), {"dtype": "f4"}, TypeError),
        (((4,),), {"dtype": np.float32}, TypeError),
        (((4,),), {"itemsize": 8, "dtype": np.dtype("f4")}, ValueError),
        (((4,), (1, 1)), {"itemsize": 4}, ValueError),
        (((-4,),), {"itemsize": 4}, ValueError),
        (((4,),), {"itemsize": 0}, ValueError),
    ],
)
def test_bad_views_of_buffers(arguments, keywords, error):
    buffer = Buffer.from_handle(0x1000, 16)
    with pytest.raises(error):
        View.from_buffer(buffer, *arguments, **keywords)
    buffer.close()
    with pytest.raises(RuntimeError, match="closed"):
        View.from_buffer(buffer, (4,), itemsize=4)


def test_a_buffer_may_be_a_part_of_foreign_memory():
    array = np.arange(8, dtype=np.int32)
    buffer = Buffer.from_handle(array.ctypes.data + 28, 4, owner=array)  # the last element
    view = View.from_buffer(buffer, (8,), (-1,), dtype=array.dtype)
    assert np.from_dlpack(view).tolist() == [7, 6, 5, 4, 3, 2, 1, 0]


@pytest.mark.parametrize(
    ("shape", "strides", "text"),
    [
        ((5,), None, "needs 20 bytes, the buffer has 16"),
        ((2, 2), (3, 1), "needs 20 bytes"),
        ((2,), (-1,), "reaches 4 bytes below"),
    ],
)
def test_a_view_stays_in_memory_of_a_resource(device, stream, shape, strides, text):
    with device.allocate(16, stream=stream) as buffer:
        with pytest.raises(ValueError, match=text):
            View.from_buffer(buffer, shape, strides, itemsize=4)
        assert View.from_buffer(buffer, (4,), itemsize=4).size == 4


def test_other_layouts_stay_in_memory_of_a_resource(device, stream):
    with device.allocate(16, stream=stream) as buffer:
        view = View.from_buffer(buffer, (4,), itemsize=4)
        half = view.view(view._layout[2:])
        assert half.view(half._layout[1:]).ptr == view.ptr + 12
        for wrong in (half._layout.broadcast_to((2, 2)).to_dense("C"), view._layout.to_dense("C")):
            with pytest.raises(ValueError, match="the buffer has 16"):
                half.view(wrong)
        with pytest.raises(ValueError, match="reaches 4 bytes below"):
            view.view(type(view._layout)((2,), (-1,), 4))
        assert half.view(type(view._layout)((2,), (-1,), 4)).shape == (2,)


def test_the_view_of_a_closed_buffer(device, stream):
    buffer = device.allocate(16, stream=stream)
    view = View.from_buffer(buffer, (4,), dtype=np.dtype(np.int32))
    buffer.close()
    assert view.shape == (4,)
    for use in (view.__dlpack__, view.__dlpack_device__, lambda: view.view(dtype=np.float32)):
        with pytest.raises(RuntimeError, match="Buffer has been closed"):
            use()


def test_views_do_not_copy():
    view = View.from_dlpack(np.zeros(4), -1)
    with pytest.raises(NotImplementedError, match=r"Buffer.copy_from\(array"):
        view.copy_from(view, None)
    with pytest.raises(NotImplementedError, match=r"Buffer.copy_to\(array"):
        view.copy_to(view)


def test_not_a_buffer():
    with pytest.raises(AttributeError):
        View.from_buffer(np.zeros(4), (4,), itemsize=8)


def test_protocol_details():
    view = View.from_dlpack(np.zeros((2, 2), dtype=np.int32), -1)
    assert view.__dlpack_device__() == (1, 0)
    assert "dltensor_versioned" in repr(view.__dlpack__(max_version=(1, 0)))
    assert '"dltensor"' in repr(view.__dlpack__(max_version=(0, 8)))
    for keywords, error in (
        ({"dl_device": (1, 0)}, BufferError),
        ({"copy": True}, BufferError),
        ({"max_version": (1,)}, BufferError),
        ({"max_version": 1}, TypeError),
        ({"stream": "1"}, TypeError),
    ):
        with pytest.raises(error):
            view.__dlpack__(**keywords)
    text = repr(view)
    assert text.count("\n") == 8 and "exporting_obj=numpy.ndarray" in text
    with pytest.raises(AttributeError):
        view.ptr = 1


def test_deprecated_constructor():
    with pytest.warns(DeprecationWarning):
        empty = View()
    assert empty.ptr == 0 and empty.dtype is None
    for name in ("shape", "strides", "size"):
        with pytest.raises(ValueError, match="Cannot infer layout"):
            getattr(empty, name)
    with pytest.warns(DeprecationWarning):
        assert View(np.zeros(3), -1).shape == (3,)


def test_subclasses():
    class Mine(View):
        pass

    assert type(Mine.from_dlpack(np.zeros(3), -1)) is Mine
