"""Functions of cupyx.scipy that SciPy computes on the host: what goes there, and what comes back."""

from __future__ import annotations

import importlib.util
import sys

import pytest

from tests import processes

PROGRAM = """
import numpy
import cupy, cupyx.scipy
from cupyx.scipy import fft, linalg, ndimage, signal, special, stats
import scipy.fft, scipy.linalg, scipy.ndimage, scipy.signal, scipy.special, scipy.stats

host = numpy.random.default_rng(1).random((6, 8))
x = cupy.asarray(host)

def same(ours, theirs):
    assert type(ours) is cupy.ndarray, type(ours)
    numpy.testing.assert_allclose(ours.get(), theirs, rtol=1e-12)

same(fft.dct(x, norm="ortho"), scipy.fft.dct(host, norm="ortho"))
same(linalg.expm(x[:, :6]), scipy.linalg.expm(host[:, :6]))
same(ndimage.gaussian_filter(x, 1.5), scipy.ndimage.gaussian_filter(host, 1.5))
same(signal.convolve2d(x, x[:2], mode="same"), scipy.signal.convolve2d(host, host[:2], mode="same"))
same(signal.windows.hann(5), scipy.signal.windows.hann(5))
same(special.digamma(x), scipy.special.digamma(host))
same(stats.zscore(x), scipy.stats.zscore(host))
same(stats.entropy(x), scipy.stats.entropy(host))
for given in ({"output": cupy.zeros((6, 8))}, cupy.zeros((6, 8))):
    out = given["output"] if isinstance(given, dict) else given
    found = ndimage.sobel(x, 0, **given) if isinstance(given, dict) else ndimage.sobel(x, 0, given)
    assert found is out
    same(out, scipy.ndimage.sobel(host, 0))
block = numpy.zeros((5, 5), bool)
block[1:4, 1:4] = True
ring = block.copy()
ring[2, 2] = False
both = (cupy.ones((1, 2), bool), cupy.zeros((1, 2), bool))
for by_name in (True, False):  # what SciPy fills, and does not return
    def call(function, *arguments, into, name="output"):
        return function(*arguments, **{name: into}) if by_name else function(*arguments, into)

    filled = cupy.zeros((5, 5), bool)
    assert call(ndimage.binary_fill_holes, cupy.asarray(ring), None, into=filled) is filled
    assert (filled.get() == block).all()
    hit = cupy.ones((5, 5), bool)
    assert call(ndimage.binary_hit_or_miss, cupy.asarray(block), *both, into=hit) is None
    assert (hit.get() == scipy.ndimage.binary_hit_or_miss(block, *[one.get() for one in both])).all()
    numbers = cupy.zeros((5, 5), "i4")
    assert call(ndimage.label, cupy.asarray(block), None, into=numbers) == 1
    assert (numbers.get() == block).all()
far = cupy.zeros((5, 5))
assert ndimage.distance_transform_edt(cupy.asarray(block), distances=far) is far
assert (far.get() == scipy.ndimage.distance_transform_edt(block)).all()
assert ndimage.label(cupy.asarray(block), output="i2")[0].dtype == "i2"
labels, count = ndimage.label(x > 0.5)
expected = scipy.ndimage.label(host > 0.5)
same(labels, expected[0])
assert int(count) == expected[1]
peaks, more = signal.find_peaks(x[0], height=0.1)
theirs = scipy.signal.find_peaks(host[0], height=0.1)
same(peaks, theirs[0])
same(more["peak_heights"], theirs[1]["peak_heights"])
odd = numpy.array([numpy.nan, 0.0, -0.0, 1.0, -1.0, numpy.inf])
for name in ("entr", "erf", "log_expit", "expit"):
    same(getattr(special, name)(cupy.asarray(odd)), getattr(scipy.special, name)(odd))
a, b = (one.ravel() for one in numpy.meshgrid(odd, odd))
for name in ("kl_div", "rel_entr", "huber"):
    same(getattr(special, name)(cupy.asarray(a), cupy.asarray(b)), getattr(scipy.special, name)(a, b))
assert cupyx.scipy.get_array_module(x).__name__ == "cupyx.scipy"
assert cupyx.scipy.get_array_module(host).__name__ == "scipy"
for module in (fft, linalg, ndimage, signal, special, stats):
    lacking = [name for name in module.NAMES if not hasattr(module, name)]
    assert lacking in ([], ["btdtr", "btdtri"]), lacking  # which SciPy has removed
"""


@pytest.mark.skipif(importlib.util.find_spec("scipy") is None, reason="SciPy is not installed: make ecosystem has it")
def test_what_scipy_computes(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    command = [sys.executable, "-m", "cupola", "run", "--cupy", str(program)]
    done = processes.run(command)
    assert done.returncode == 0, done.stderr
