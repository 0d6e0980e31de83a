"""Kernels of the program over arrays, the report of what costs time, and random numbers."""

from __future__ import annotations

import pickle

import numpy
import pytest

import cupola.numpy as np

# --- kernels --------------------------------------------------------------------------------------------------


def test_elementwise_kernel(device):
    squared = np.ElementwiseKernel("T x, T y", "T z", "z = (x - y) * (x - y)", "squared")
    a = numpy.arange(6.0).reshape(2, 3)
    x = np.asarray(a)
    assert squared(x, 1).tolist() == ((a - 1) ** 2).tolist()
    assert squared(x.T, np.asarray([1.0, 2.0])).tolist() == ((a.T - [1, 2]) ** 2).tolist()
    out = np.zeros((2, 3))
    pending = out + 1
    assert squared(x, x[0], out) is out
    assert out.tolist() == ((a - a[0]) ** 2).tolist()
    assert pending.tolist() == [[1.0] * 3] * 2  # it had the values of before
    neighbors = np.ElementwiseKernel(
        "raw T x, int32 by", "T y, bool last", "y = x[(i + by) % _ind.size()]; last = i == _ind.size() - 1"
    )
    moved, last = neighbors(np.arange(4), 1, size=4)
    assert (moved.tolist(), last.tolist()) == ([1, 2, 3, 0], [False, False, False, True])


def test_elementwise_kernel_refused(device):
    twice = np.ElementwiseKernel("T x", "T y", "y = 2 * x", "twice")
    for function, error, words in (
        (lambda: twice(), TypeError, "takes 1 arguments"),
        (lambda: twice(np.zeros(3), np.zeros(3, "f4")), TypeError, "T would be both"),
        (lambda: twice(np.zeros(3), np.zeros(2)), ValueError, "broadcast"),
        (lambda: twice(numpy.zeros(3)), TypeError, "asarray"),
        (lambda: np.ElementwiseKernel("x", "T y", ""), ValueError, "a type and a name"),
        (lambda: np.ElementwiseKernel("raw T x", "T y", "y = x[i]")(np.zeros(3)), ValueError, "size= is needed"),
        (lambda: np.ElementwiseKernel("T x", "U y", "y = x")(np.zeros(3)), TypeError, "what U is"),
    ):
        with pytest.raises(error, match=words):
            function()


def test_reduction_kernel(device):
    norm = np.ReductionKernel("T x", "T y", "x * x", "a + b", "y = sqrt(a)", 0, "norm")
    a = numpy.array([[3.0, 4.0], [6.0, 8.0]])
    assert norm(np.asarray(a), axis=1).tolist() == [5, 10]
    assert norm(np.asarray(a), axis=1, keepdims=True).shape == (2, 1)
    assert float(norm(np.asarray(a))) == pytest.approx(125**0.5)


def test_raw_kernel(device):
    code = """extern "C" __global__ void axpb(double* x, double a, long long b, float c) {
        x[threadIdx.x] = a * x[threadIdx.x] + b + c + SHIFT; }"""
    axpb = np.RawKernel(code, "axpb", ("-DSHIFT=1",))
    x = np.arange(3.0)
    late = x * 10
    axpb((1,), (3,), (x, 2.0, 3, numpy.float32(0.5)))
    assert x.tolist() == [4.5, 6.5, 8.5]
    assert late.tolist() == [0, 10, 20]
    with pytest.raises(ValueError, match="-D and -I"):
        np.RawKernel(code, "axpb", ("--fast",))
    with pytest.raises(TypeError, match="asarray"):
        axpb((1,), (3,), (numpy.zeros(3), 2.0, 3, numpy.float32(0.5)))


# --- the report -----------------------------------------------------------------------------------------------


def test_report(device):
    np.report(reset=True)
    x = np.asarray([1.0, 2.0])
    for _ in range(3):
        float(x[0])
    found = np.report(reset=True)
    rows = {row.kind: row for row in found}
    assert rows["copy"].times == 1
    assert rows["wait"].times == 3
    assert rows["wait"].file == __file__
    assert "float(x[0])" in str(found)
    assert str(np.report()) == "no waits, copies or compiled kernels"


# --- random numbers -------------------------------------------------------------------------------------------


def test_philox(device):
    """The numbers that its authors publish: they are the same on every device."""
    bits = np.random.Philox(1)
    for key, counter, words in (
        (0, 0, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
        (2**64 - 1, 2**64 - 1, None),
    ):
        bits.state = {"key": key, "counter": counter}
        found = np.random.Generator(bits).integers(0, 2**64 - 1, dtype=numpy.uint64, endpoint=True)
        if words is not None:
            assert int(found) == words[0] | words[1] << 32


MOMENTS = [
    ("random", (), 1 / 2, 1 / 12),
    ("integers", (-3, 9), 2.5, 143 / 12),
    ("normal", (3, 2), 3, 4),
    ("exponential", (2,), 2, 4),
    ("gamma", (0.5, 2), 1, 2),
    ("poisson", (3,), 3, 3),
    ("poisson", (50,), 50, 50),
    ("binomial", (20, 0.3), 6, 4.2),
    ("binomial", (1000, 0.7), 700, 210),
]


@pytest.mark.parametrize(("name", "parameters", "mean", "variance"), MOMENTS)
def test_moments(device, name, parameters, mean, variance):
    """Within five standard errors; the seed is fixed."""
    count = 40_000
    found = getattr(np.random.default_rng(5), name)(*parameters, size=count).to_numpy().astype(float)
    assert abs(found.mean() - mean) < 5 * (variance / count) ** 0.5
    assert abs(found.var() / variance - 1) < 0.1


def test_generator(device):
    rng, same = np.random.default_rng(7), np.random.default_rng(7)
    whole = rng.random(10).tolist()
    assert [*same.random(4).tolist(), *same.random((2, 3)).ravel().tolist()] == whole  # however it is divided
    assert pickle.loads(pickle.dumps(rng)).random(3).tolist() == rng.random(3).tolist()
    assert len({float(one.random()) for one in [rng, *rng.spawn(3)]}) == 4
    assert sorted(rng.permutation(20).tolist()) == list(range(20))
    assert sorted(rng.choice(8, 8, replace=False).tolist()) == list(range(8))
    assert set(rng.choice([5.0, 6.0, 7.0], 50, p=[0.5, 0.5, 0]).tolist()) == {5.0, 6.0}
    with pytest.raises(ValueError, match="larger sample"):
        rng.choice(3, 4, replace=False)
    with pytest.raises(ValueError, match="low >= high"):
        rng.integers(3, 3)
    np.random.seed(1)
    first = np.random.rand(3).tolist()
    np.random.seed(1)
    assert np.random.rand(3).tolist() == first
