"""Views with other strides are those of NumPy, and stay in the memory."""

from __future__ import annotations

import numpy
import pytest

import cupola.numpy as np

HOST = numpy.arange(24.0).reshape(4, 6)


@pytest.fixture
def x():
    return np.asarray(HOST)


@pytest.mark.parametrize(
    "arguments", [((2, 3),), ((2,), 0), (3, 1), (3, -1), ((2, 3), (0, 0)), ((0,), 1), ((4, 6),), ((), ())]
)
def test_windows(x, arguments):
    wanted = numpy.lib.stride_tricks.sliding_window_view(HOST, *arguments)
    found = np.lib.stride_tricks.sliding_window_view(x, *arguments)
    numpy.testing.assert_array_equal(found.to_numpy(), wanted)
    assert np.shares_memory(found, x) or not found.size
    assert isinstance(numpy.lib.stride_tricks.sliding_window_view(x, *arguments), np.ndarray)
    numpy.testing.assert_array_equal(found.sum(axis=-1).to_numpy(), wanted.sum(axis=-1))


@pytest.mark.parametrize("arguments", [(8, 1), (-1, 1), ((2,), (0, 1)), (2, 2), (3,)])
def test_windows_that_cannot_be(x, arguments):
    for n, array in ((numpy, HOST), (np, x)):
        with pytest.raises(ValueError):  # AxisError is one
            n.lib.stride_tricks.sliding_window_view(array, *arguments)


@pytest.mark.parametrize(
    "arguments", [((3, 2), (48, 8)), ((23, 2), (8, 8)), ((6,), (-0,)), ((2, 0), (8, 8)), (None, (8, 8)), ((2, 2), None)]
)
def test_strides(x, arguments):
    wanted = numpy.lib.stride_tricks.as_strided(HOST, *arguments)
    found = np.lib.stride_tricks.as_strided(x, *arguments)
    numpy.testing.assert_array_equal(found.to_numpy(), wanted)
    assert found.strides == wanted.strides


def test_strides_backwards(x):
    found = np.lib.stride_tricks.as_strided(x[1:, 3:], (2, 4), (-48, -8))
    numpy.testing.assert_array_equal(found.to_numpy(), HOST[1::-1, 3::-1])


@pytest.mark.parametrize(
    "arguments, message",
    [
        (((25,), (8,)), r"reaches from byte 0 to 200 of memory of 192 bytes"),
        (((2,), (-8,)), "reaches from byte -8 to 8"),
        (((2, 2), (8,)), "strides must have a number for each dimension: 2, got 1"),
        (((-1,), (8,)), "negative dimensions"),
    ],
)
def test_strides_that_leave_the_memory(x, arguments, message):
    with pytest.raises(ValueError, match=message):
        np.lib.stride_tricks.as_strided(x, *arguments)


def test_what_lib_does_not_have():
    with pytest.raises(AttributeError):
        np.lib.npyio  # noqa: B018
    assert "lib" in dir(np) and np.lib.__all__ == ["stride_tricks"]
