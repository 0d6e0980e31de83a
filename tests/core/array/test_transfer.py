"""Copies between arrays of any layout, and how arrays are made."""

from __future__ import annotations

import numpy as np
import pytest

from cupola import Array, LegacyPinnedMemoryResource

SOURCE = np.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5)

# How a part of an array of (2, 3, 4, 5) is taken, and how one of the same shape is.
PARTS = [np.s_[:], np.s_[::-1], np.s_[:, :, ::2], np.s_[..., ::-2], np.s_[1], np.s_[:, 1:2], np.s_[:, :, 1:3, 1:4]]
DTYPES = ["i1", "f2", "i4", "f8", "c16", "V3", "V12", [("a", "i4"), ("b", "u1")]]


def of_type(values: np.ndarray, dtype) -> np.ndarray:
    """Elements of any type whose bytes differ."""
    dtype = np.dtype(dtype)
    count = values.size * dtype.itemsize
    return (np.arange(count) % 251).astype(np.uint8).view(dtype).reshape(values.shape)


def same(one: np.ndarray, other: np.ndarray) -> bool:
    return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("key", PARTS, ids=repr)
def test_round_trip(device, key, dtype):
    source = of_type(SOURCE, dtype)
    x = device.array(source)
    assert same(x[key].to_numpy(), source[key].copy())
    assert same(x[key].T.to_numpy(), source[key].T.copy())


@pytest.mark.parametrize("dtype", ["i1", "f4", "c16", "V12"])
@pytest.mark.parametrize("to", PARTS, ids=repr)
def test_into_a_part(device, to, dtype):
    """From the host, from the device in one piece, and from elements that lie apart."""
    source = of_type(SOURCE, dtype)
    for turn in (lambda v: v, lambda v: v.T[::-1].T):
        expected = np.zeros_like(source)
        expected[to] = turn(source[to])
        for origin in (turn(source[to]), device.array(turn(source[to])), turn(device.array(source[to]))):
            x = device.array(np.zeros_like(source))
            x[to].copy_from(origin)
            assert same(x.to_numpy(), expected)


def test_broadcast(device):
    x = device.zeros((2, 3), np.int32)
    for source in (np.int32([1, 2, 3]), np.int32([[4], [5]]), np.int32(6), 7, device.array(np.int32([[8], [9]]))):
        x.copy_from(source)
        expected = source.to_numpy() if isinstance(source, Array) else source
        np.testing.assert_array_equal(x.to_numpy(), np.broadcast_to(expected, (2, 3)))
    for source in (np.zeros(2, np.int32), np.zeros((1, 2, 3), np.int32), device.zeros(2, np.int32)):
        with pytest.raises(ValueError, match="cannot be broadcast"):
            x.copy_from(source)


def test_types_must_be_equal(device):
    x = device.zeros(3, np.float32)
    with pytest.raises(TypeError, match=r"source\.astype\('float32'\)"):
        x.copy_from(np.zeros(3))
    with pytest.raises(TypeError, match="without conversion"):
        x.copy_from(device.zeros(3))
    with pytest.raises(TypeError, match="without conversion"):
        device.array(x, np.float64)
    with pytest.raises(TypeError, match="dst must be"):
        x.copy_to([0, 0, 0])
    with pytest.raises(TypeError, match="dst has shape"):
        x.copy_to(np.zeros(3))
    with pytest.raises(ValueError, match="dst has shape"):
        x.copy_to(np.zeros(4, np.float32))


def test_overlap(device):
    x = device.array(np.arange(10))
    x[1:].copy_from(x[:-1])
    assert x.to_numpy().tolist() == [0, 0, 1, 2, 3, 4, 5, 6, 7, 8]
    x[::2].copy_from(x[:5])
    assert x.to_numpy().tolist() == [0, 0, 0, 2, 1, 4, 2, 6, 3, 8]
    x.copy_from(x[::-1])
    assert x.to_numpy().tolist() == [8, 3, 6, 2, 4, 1, 2, 0, 0, 0]


def test_copy_to(device, stream):
    x = device.array(SOURCE, stream=stream)
    target = np.zeros((4, 5))
    host = np.zeros(SOURCE.shape, SOURCE.dtype, order="F")
    assert x.copy_to(host, stream=stream) is host
    np.testing.assert_array_equal(host, SOURCE)
    on_device = device.zeros(SOURCE.shape, SOURCE.dtype, stream=stream)
    x.copy_to(on_device, stream=stream)
    np.testing.assert_array_equal(on_device.to_numpy(stream=stream), SOURCE)
    assert not target.any()


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        (0, None, np.int64), (7, np.int8, np.int8), (-1, np.int16, np.int16), (2.5, None, np.float64),
        (1.5, np.float32, np.float32), (True, None, np.bool_), (1 + 2j, None, np.complex128),
        (np.float32(3), None, np.float32), (1 + 1j, np.complex64, np.complex64),
    ],
)  # fmt: skip
def test_full(device, value, dtype, expected):
    x = device.full((2, 3), value, dtype)
    np.testing.assert_array_equal(x.to_numpy(), np.full((2, 3), value, dtype))
    assert x.dtype == expected


def test_full_of_an_array(device):
    np.testing.assert_array_equal(device.full((2, 3), [1.0, 2.0, 3.0]).to_numpy(), np.full((2, 3), [1.0, 2.0, 3.0]))


@pytest.mark.parametrize(
    "source",
    [[1, 2], [[1.5], [2.5]], 3, (True, False), np.arange(6)[::2], np.asfortranarray(SOURCE), range(4)],
    ids=repr,
)
def test_array_of(device, source):
    x = device.array(source)
    np.testing.assert_array_equal(x.to_numpy(), np.asarray(source))
    assert x.dtype == np.asarray(source).dtype
    assert x.is_contiguous
    assert device.array(source, np.float32).dtype == np.float32


def test_array_of_arrays_on_the_device(device, stream):
    x = device.array(SOURCE)
    copy = device.array(x[:, ::2])
    assert copy.is_contiguous
    np.testing.assert_array_equal(copy.to_numpy(), SOURCE[:, ::2])

    class Theirs:  # of another library
        __cuda_array_interface__ = x[::-1, :, 1].__cuda_array_interface__

    np.testing.assert_array_equal(device.array(Theirs()).to_numpy(), SOURCE[::-1, :, 1])


def test_zeros_and_empty(device):
    assert not device.zeros((3, 4)).to_numpy().any()
    assert device.zeros((3, 4)).dtype == np.float64
    for shape in (0, (0, 5), (2, 0, 3)):
        assert device.zeros(shape).to_numpy().shape == np.zeros(shape).shape
        device.empty(shape).copy_from(np.empty(shape))
        device.full(shape, 3)


def test_stream_of_a_block(device):
    with device.stream() as s:
        x = device.array(SOURCE)
        x[0].copy_from(x[1])
        with device.stream() as inner:
            inner.wait(s)
            np.testing.assert_array_equal(x[0].to_numpy(), SOURCE[1])
        assert inner.is_closed
    assert s.is_closed
    np.testing.assert_array_equal(x[0].to_numpy(), SOURCE[1])


def test_a_block_that_fails_closes_its_stream(device):
    with pytest.raises(ZeroDivisionError), device.stream() as s:
        raise ZeroDivisionError
    assert s.is_closed
    device.zeros(3).to_numpy()  # in no closed stream
    with pytest.raises(RuntimeError, match="closed"), s:
        pass


def test_a_stream_closed_in_its_block(device):
    with device.stream() as s:
        s.close()
        with pytest.raises(RuntimeError, match="closed"):
            device.zeros(3)


def test_recorded(device, stream):
    """Copies in one piece and of elements that lie apart become nodes, which keep the memory."""
    x, y = device.array(np.arange(6)), device.zeros(6, np.int64)
    builder = device.create_graph_builder().begin_building()
    y[::-1].copy_from(x, stream=builder)
    x.copy_from(y, stream=builder)
    with pytest.raises(ValueError, match="in one piece"):
        y[::2].copy_from(np.arange(3), stream=builder)
    graph = builder.end_building().complete()
    graph.launch(stream)
    stream.sync()
    assert x.to_numpy().tolist() == [5, 4, 3, 2, 1, 0]


def test_pinned_memory(device, stream):
    pinned = Array.from_buffer(
        LegacyPinnedMemoryResource().allocate(8 * SOURCE.size, stream=stream), SOURCE.shape, SOURCE.dtype
    )
    pinned.copy_from(SOURCE)
    np.testing.assert_array_equal(device.array(pinned[:, ::2]).to_numpy(), SOURCE[:, ::2])
    np.testing.assert_array_equal(pinned[..., ::-1].to_numpy(), SOURCE[..., ::-1])
