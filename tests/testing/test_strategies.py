"""Strategies for hypothesis: what they make is within its limits, and can be launched."""

from __future__ import annotations

import os

import numpy as np
import pytest

import cupola
from cupola.testing import assert_allclose

if os.environ.get("CI"):
    import hypothesis
else:
    hypothesis = pytest.importorskip("hypothesis")

from cupola.testing import strategies as cuda

few = hypothesis.settings(
    max_examples=15,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture, hypothesis.HealthCheck.too_slow],
)

SOURCE = r"""
extern "C" __global__ void scale(const float* x, float* y, unsigned n) {
    unsigned threads = blockDim.x * blockDim.y * blockDim.z, blocks = gridDim.x * gridDim.y * gridDim.z;
    unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    for (unsigned i = block * threads + thread; i < n; i += threads * blocks) y[i] = 2 * x[i];
}
"""


@few
@hypothesis.given(x=cuda.device_arrays("float32"), shape=cuda.launch_shapes(max_blocks=8))
def test_a_kernel_with_any_launch(device, x, shape):
    y = device.zeros(x.size, np.float32)
    stream = device.create_stream()
    cupola.launch(stream, shape, cupola.compile(SOURCE).get_kernel("scale"), x, y, x.size)
    stream.sync()
    with np.errstate(over="ignore"):
        assert_allclose(y, 2 * x.to_numpy())


@few
@hypothesis.given(
    size=cuda.sizes(block=100, max_size=300),
    shape=cuda.shapes(max_dims=2, max_size=50),
    launch=cuda.launch_shapes(max_blocks=4, max_threads=64, max_dims=2, shared_memory=16),
)
def test_limits(size, shape, launch):
    assert 1 <= size <= 300
    assert 1 <= len(shape) <= 2 and 1 <= np.prod(shape) <= 50
    assert np.prod(launch.grid) <= 4 and np.prod(launch.block) <= 64 and launch.block[2] == 1
    assert launch.shmem_size == 16


@few
@hypothesis.given(hypothesis.strategies.data())
def test_layouts_have_the_same_elements(device, data):
    values = np.arange(12, dtype=np.int16).reshape(3, 4)
    for layout in cuda.LAYOUTS:
        made = cuda._lay_out(values, layout, device.array)
        assert made.shape == (3, 4) and made.to_numpy().tolist() == values.tolist()
        assert made.is_contiguous == (layout == "plain")
    odd = data.draw(cuda.device_arrays("int16", (2, 3), contiguous=False))
    assert odd.shape == (2, 3) and odd.dtype == np.int16
    host = data.draw(cuda.arrays("float64", 5, elements=hypothesis.strategies.just(2.5)))
    assert host.tolist() == [2.5] * 5


def test_without_hypothesis(run_python):
    done = run_python(
        "import sys; sys.modules['hypothesis'] = None\n"
        "try:\n    import cupola.testing.strategies\nexcept ImportError as e: print(e)"
    )
    assert "pip install hypothesis numpy" in done.stdout, done.stderr
