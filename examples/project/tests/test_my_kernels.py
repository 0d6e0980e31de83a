"""Tests of the kernels; the fixtures are those of cupola's pytest plugin."""

import numpy as np
import pytest
from my_kernels import saxpy

from cupola.testing import assert_allclose


@pytest.mark.parametrize("n", [0, 1, 255, 256, 257, 10_000])
def test_saxpy(device, stream, n):
    x, y = np.linspace(-1, 1, n, dtype=np.float32), np.ones(n, np.float32)
    x_device, y_device = device.array(x, stream=stream), device.array(y, stream=stream)
    saxpy(2.0, x_device, y_device, stream)
    stream.sync()
    assert_allclose(y_device, 2 * x + y)


def test_arguments_that_do_not_fit(device, stream):
    x = device.zeros(10, "float32", stream=stream)
    with pytest.raises(ValueError, match="of one size"):
        saxpy(1.0, x, x[:5], stream)
    with pytest.raises(ValueError, match="in one piece"):
        saxpy(1.0, x[::2], x[:5], stream)


@pytest.mark.cupola(model="t4")
def test_an_older_gpu(device, stream):
    assert device.compute_capability == (7, 5)
    x = device.full(1000, 2.0, "float32", stream=stream)
    saxpy(3.0, x, x, stream)
    stream.sync()
    assert_allclose(x, 8.0)
