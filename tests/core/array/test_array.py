"""Arrays: their layout, their views, and what other libraries see of them. NumPy says what is right."""

from __future__ import annotations

import gc
import pickle
import weakref

import numpy as np
import pytest

from cupola import Array, CUDAError, LegacyPinnedMemoryResource

A = np.arange(24, dtype=np.float32).reshape(2, 3, 4)

INDICES = [
    np.s_[1], np.s_[-1], np.s_[:, ::-1], np.s_[..., 1], np.s_[::-1, 1:, ::2], np.s_[None, 0, :, None, -1], np.s_[2:0],
    np.s_[()], np.s_[...], np.s_[1, 2, 3], np.s_[:, 1:1], np.s_[0, ..., None], np.s_[5:, 0], np.s_[np.int64(1)],
    np.s_[:, -3:-1, 3::-2],
]  # fmt: skip

SHAPES = [(24,), (6, 4), (2, 3, 2, 2), (1, 24, 1), (-1,), (3, -1), (4, 3, 2), (2, 12), (8, 3)]


@pytest.fixture
def x(device):
    return device.array(A)


@pytest.mark.parametrize("key", INDICES, ids=repr)
def test_indices(x, key):
    part, expected = x[key], A[key]
    assert part.shape == expected.shape
    assert part.dtype == expected.dtype
    if expected.size:
        assert part.strides == expected.strides
    assert part.is_contiguous == expected.flags.c_contiguous
    assert part.buffer is x.buffer
    np.testing.assert_array_equal(part.to_numpy(), expected)


@pytest.mark.parametrize(
    ("key", "error", "text"),
    [
        (2, IndexError, "index 2 is out of bounds for axis 0 with size 2"),
        ((0, -4), IndexError, "index -4 is out of bounds for axis 1"),
        ((0, 0, 0, 0), IndexError, "too many indices for an array of 3 dimensions: 4"),
        ((..., ...), IndexError, "single ellipsis"),
        ([0, 1], TypeError, "not by list: other indices copy"),
        (True, TypeError, "not by bool"),
        (1.0, TypeError, "not by float"),
        (slice(None, None, 0), ValueError, "zero"),
    ],
)
def test_bad_indices(x, key, error, text):
    with pytest.raises(error, match=text):
        x[key]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("key", [np.s_[:], np.s_[::-1], np.s_[:, :, ::2], np.s_[:, :1], np.s_[:, 1:]], ids=repr)
def test_reshape(x, key, shape):
    """A view wherever NumPy has one, an error where NumPy copies."""
    part, expected = x[key], A[key]
    if np.prod([abs(extent) for extent in shape]) != expected.size and -1 not in shape:
        shape = (-1, *shape[1:2])
    try:
        wanted = expected.reshape(shape)
    except ValueError:
        with pytest.raises(ValueError, match="elements cannot have the shape"):
            part.reshape(shape)
        return
    if np.shares_memory(wanted, A):
        np.testing.assert_array_equal(part.reshape(shape).to_numpy(), wanted)
        assert part.reshape(*shape).shape == wanted.shape
    else:
        with pytest.raises(ValueError, match="make a copy"):
            part.reshape(shape)


@pytest.mark.parametrize("axes", [(), (0, 2, 1), ((2, 0, 1),), (-1, 0, 1), (None,)], ids=str)
def test_transpose(x, axes):
    np.testing.assert_array_equal(x.transpose(*axes).to_numpy(), A.transpose(*axes))


def test_refused_views(x):
    with pytest.raises(ValueError, match="not the 3 dimensions"):
        x.transpose(0, 1)
    with pytest.raises(ValueError, match="only one extent"):
        x.reshape(-1, -1)
    with pytest.raises(ValueError, match="lie apart"):
        x[..., ::2].view(np.float64)
    with pytest.raises(ValueError, match="no multiple"):
        x.view("V3")
    with pytest.raises(TypeError, match="no dimensions has no length"):
        len(x[0, 0, 0])
    with pytest.raises(TypeError, match="truth value"):
        bool(x)


@pytest.mark.parametrize("dtype", ["i4", "u1", "f8", "c8", "V12"])
def test_view_of_another_type(x, dtype):
    expected = A.reshape(2, 12).view(dtype)
    np.testing.assert_array_equal(x.reshape(2, 12).view(dtype).to_numpy(), expected)


def test_properties(x):
    assert (x.ndim, x.size, x.itemsize, x.nbytes, len(x)) == (3, 24, 4, 96, 2)
    assert [part.shape for part in x] == [(3, 4), (3, 4)]
    assert x.T.shape == (4, 3, 2)
    assert x[1].handle == x.handle + 48
    assert x.device_id == 0


def test_many_dimensions(device):
    shape = (1, 2, 1, 3, 1, 2, 2, 1)
    many = device.array(np.arange(24).reshape(shape))
    np.testing.assert_array_equal(many.transpose()[0, 1].to_numpy(), np.arange(24).reshape(shape).transpose()[0, 1])
    with pytest.raises(ValueError, match="at most 64 dimensions"):
        device.empty((1,) * 65)


def test_views_keep_the_memory(device):
    part = device.array(A)[1, :, 1]
    gc.collect()
    device.zeros(24, np.float32)
    np.testing.assert_array_equal(part.to_numpy(), A[1, :, 1])
    kept = weakref.ref(part.buffer)
    del part
    gc.collect()
    assert kept() is None


def test_close_is_for_all_views(x):
    part = x[0]
    with x:
        pass
    assert x.is_closed
    assert part.is_closed
    for use in (part.to_numpy, lambda: part[0], lambda: part.handle, lambda: part.copy_from(1.0)):
        with pytest.raises(RuntimeError, match="Array has been closed"):
            use()
    assert repr(part) == "<Array shape=(3, 4) dtype=float32 closed>"
    x.close()


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda d: d.array(A), "<Array shape=(2, 3, 4) dtype=float32: [0. 1. 2. 3. 4. 5. ...]>"),
        (lambda d: d.array(A)[:, 0, :2], "<Array shape=(2, 2) dtype=float32: [ 0.  1. 12. 13.]>"),
        (lambda d: d.array(A)[::-1, :, ::3], "<Array shape=(2, 3, 2) dtype=float32: [12. 15. 16. 19. 20. 23. ...]>"),
        (lambda d: d.array(5), "<Array shape=() dtype=int64: [5]>"),
        (lambda d: d.empty((0, 3), np.int8), "<Array shape=(0, 3) dtype=int8: []>"),
    ],
)
def test_repr(device, make, expected):
    assert repr(make(device)) == expected


def test_from_buffer(device, stream):
    buffer = device.allocate(96, stream=stream)
    buffer.copy_from(A, stream=stream)
    stream.sync()
    np.testing.assert_array_equal(Array.from_buffer(buffer, (2, 12), np.float32).to_numpy(), A.reshape(2, 12))
    backwards = Array.from_buffer(buffer, 24, np.float32, strides=(-4,), offset=92)
    np.testing.assert_array_equal(backwards.to_numpy(), A.reshape(-1)[::-1])
    for arguments in (
        {"shape": 25},
        {"shape": 24, "offset": 4},
        {"shape": 2, "strides": (-4,)},
        {"shape": 1, "offset": 97},
    ):
        with pytest.raises(ValueError, match="the buffer"):
            Array.from_buffer(buffer, **{"dtype": np.float32, **arguments})
    with pytest.raises(TypeError, match="must be a Buffer"):
        Array.from_buffer(A, 24)
    with pytest.raises(ValueError, match="1 extents and 2 strides"):
        Array.from_buffer(buffer, 24, "f4", strides=(4, 4))


@pytest.mark.parametrize(
    ("shape", "error"),
    [((-1,), ValueError), (1.5, TypeError), ("3", TypeError), ((2, None), TypeError), ((2**40, 2**40), ValueError)],
)
def test_bad_shapes(device, shape, error):
    with pytest.raises(error):
        device.empty(shape)


@pytest.mark.parametrize("dtype", ["O", "U3", "S4", "M8[s]", [("a", "O")]])
def test_types_that_no_device_has(device, dtype):
    with pytest.raises(TypeError, match="cannot be on a device"):
        device.empty(3, dtype)


def test_not_made_directly():
    with pytest.raises(RuntimeError, match=r"Device\.array"):
        Array()


def test_pickle(x):
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(x[:, 1])).to_numpy(), A[:, 1])


def test_cuda_array_interface(x):
    assert x.__cuda_array_interface__ == {
        "version": 3, "shape": (2, 3, 4), "strides": None, "typestr": "<f4", "descr": [("", "<f4")],
        "data": (x.handle, False), "stream": None,
    }  # fmt: skip
    part = x[:, ::2]
    assert part.__cuda_array_interface__["strides"] == part.strides
    assert x[2:].__cuda_array_interface__["data"] == (0, False)


def test_dlpack(device, x, stream):
    assert x.__dlpack_device__() == (2, 0)
    with pytest.raises(BufferError, match="stays on its device"):
        x.__dlpack__(dl_device=(1, 0))
    pinned = Array.from_buffer(LegacyPinnedMemoryResource().allocate(96, stream=stream), (2, 3, 4), np.float32)
    pinned.copy_from(x)
    part = np.from_dlpack(pinned[:, ::-1, 1])
    np.testing.assert_array_equal(part, A[:, ::-1, 1])
    with pytest.raises(BufferError, match="no type"):
        device.empty(1, "V12").__dlpack__()
    fields = device.zeros(4, [("a", "f4"), ("b", "u1"), ("c", "f8")])
    with pytest.raises(BufferError, match="no strides"):
        fields.view("V1").reshape(4, 13)[:, 0:8].view("f8").__dlpack__()


def test_bfloat16(device):
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="bfloat16 is a type of ml_dtypes")
    values = np.arange(4).astype(ml_dtypes.bfloat16)
    x = device.array(values)
    np.testing.assert_array_equal(x.to_numpy(), values)
    assert x[::2].to_numpy().dtype == values.dtype


def test_asarray(x):
    np.testing.assert_array_equal(np.asarray(x[:, 1]), A[:, 1])
    assert np.asarray(x, dtype=np.float64).dtype == np.float64
    with pytest.raises(ValueError, match="only have a copy"):
        np.asarray(x, copy=False)


def test_asarray_of_host_memory(stream):
    """No copy: NumPy and the array see the same memory, which NumPy keeps."""
    x = Array.from_buffer(LegacyPinnedMemoryResource().allocate(16, stream=stream), 4, np.int32)
    seen = np.asarray(x)
    seen[:] = [1, 2, 3, 4]
    assert x.to_numpy().tolist() == [1, 2, 3, 4]
    buffer = x.buffer
    del x
    gc.collect()
    assert seen.tolist() == [1, 2, 3, 4]
    assert np.asarray(buffer).dtype == np.uint8
    assert np.asarray(buffer).view(np.int32).tolist() == [1, 2, 3, 4]


def test_asarray_of_a_buffer_on_the_device(device, stream):
    buffer = device.allocate(16, stream=stream)
    with pytest.raises(TypeError, match=r"copy it, buffer\.copy_to"):
        np.asarray(buffer)


def test_without_a_current_device(run_python):
    run = run_python("import cupola; cupola.Device().zeros(3)")
    assert "set_current" in run.stderr


def test_a_fault_before_the_copy_is_raised_there(run_python):
    run = run_python(
        """
import cupola, numpy as np
dev = cupola.Device(); dev.set_current()
source = 'extern "C" __global__ void bad(int* x) { *(int*)16 = 1; }'
bad = cupola.Program(source, "c++").compile("cubin").get_kernel("bad")
x = dev.zeros(4, np.int32)
bad[1, 1](x)
print(repr(x))
try:
    x.to_numpy()
except cupola.CUDAError as error:
    print(error)
"""
    )
    assert "<Array shape=(4,) dtype=int32: not readable now, CUDAError>" in run.stdout, run.stderr
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in run.stdout


def test_too_much_memory(device):
    with pytest.raises(CUDAError):
        device.empty(1 << 45, np.float64)
