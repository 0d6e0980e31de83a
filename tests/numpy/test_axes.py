"""Every function that takes an axis, with axes that there are and that there are not, of empty arrays and of none."""

from __future__ import annotations

import warnings

import numpy
import pytest

import cupola.numpy as np

SHAPES = [(), (0,), (0, 3), (4,), (2, 3), (2, 0, 2)]
AXES = [None, 0, -1, 1, (0,), (0, 1), 3]

# Of the namespace n, an array x and an axis k.
CALLS = """
n.sum(x, k)
n.prod(x, k, keepdims=True)
n.max(x, k)
n.min(x, k, keepdims=True)
n.any(x, k)
n.all(x, k, keepdims=True)
n.mean(x, k)
n.var(x, k)
n.std(x, k, keepdims=True)
n.ptp(x, k)
n.median(x, k)
n.count_nonzero(x, k, keepdims=True)
n.nansum(x, k)
n.nanmax(x, k)
n.nanmean(x, k)
n.nanmedian(x, k, keepdims=True)
n.quantile(x, [0.3, 1], k)
n.quantile(x, 0.3, k, method="lower", keepdims=True)
n.hypot.reduce(x, k)
n.subtract.reduce(x, k)
n.argmax(x, k)
n.argmin(x, k, keepdims=True)
n.cumsum(x, k)
n.cumprod(x, k)
n.sort(x, k)
n.argsort(x, k, stable=True)
n.partition(x, 0, k).shape
n.lexsort((x, x), k)
n.unique(x, axis=k) if x.ndim > 1 and type(k) is not tuple else 0
n.flip(x, k)
n.roll(x, 1, k)
n.repeat(x, 2, k)
n.take(x, [0], k)
n.delete(x, 0, k)
n.insert(x, 0, 1, k)
n.append(x, x, k) if x.ndim else 0
n.concatenate([x, x], k) if x.ndim else 0
n.stack([x, x], k)
n.array_split(x, 2, k)
n.compress([True], x, k)
n.diff(x, axis=k)
n.trapezoid(x, axis=k)
n.packbits(x > 0, k) if x.ndim else 0
n.trim_zeros(x, axis=k) if x.ndim else 0
n.expand_dims(x, k)
n.squeeze(x, k)
n.apply_along_axis(n.sum, k, x)
n.fft.fft(x, axis=k)
n.fft.ifft(x, axis=k)
n.linalg.norm(x, axis=k)
n.linalg.norm(x, 1, k)
n.linalg.norm(x, n.inf, k, True)
""".strip().splitlines()


def outcome(n, call, x, axis):
    with warnings.catch_warnings(), numpy.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            found = eval(call, {"n": n, "x": x, "k": axis})
        except Exception as error:
            return error
    return found if isinstance(found, (list, tuple)) else [found]


@pytest.mark.parametrize("call", CALLS)
def test_axes(device, call):
    """What NumPy refuses is refused, with its class of error or one above or below; all else is the same."""
    for code in "Bd":
        for shape in SHAPES:
            a = (numpy.arange(numpy.prod(shape)) * 7 % 5).astype(code).reshape(shape)
            x = np.asarray(a)
            for axis in AXES:
                where = f"{call}: {code} {shape} {axis}"
                ours, right = outcome(np, call, x, axis), outcome(numpy, call, a, axis)
                if isinstance(right, Exception):
                    related = issubclass(type(ours), type(right)) or issubclass(type(right), type(ours))
                    assert isinstance(ours, Exception) and related, f"{where}: {ours!r}, not {right!r}"
                    continue
                assert not isinstance(ours, Exception), f"{where}: {ours!r}"
                assert len(ours) == len(right), where
                for one, other in zip(map(np.asnumpy, ours), map(numpy.asarray, right), strict=True):
                    assert (one.dtype, one.shape) == (other.dtype, other.shape), where
                    numpy.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12, err_msg=where)
