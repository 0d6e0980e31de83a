"""Expressions of arrays with long rows, along which kernels go: the results are those of NumPy."""

from __future__ import annotations

import itertools

import numpy
import pytest

import cupola.numpy as np
from cupola.numpy import _kernels

_random = numpy.random.default_rng(8)
LENGTHS = (1, 127, 128, 129, 255, 256, 257, 700)


def _made(*shape, char="d"):
    return _random.integers(-9, 9, shape).astype(char)


def _same(run, *arrays):
    """Whether a function of a namespace and arrays gives what NumPy gives; it may write to the arrays."""
    here, there = [a.copy() for a in arrays], [np.asarray(a) for a in arrays]
    expected, found = run(numpy, *here), run(np, *there)
    numpy.testing.assert_array_equal(found.to_numpy(), expected)
    assert found.dtype == expected.dtype
    for one, other in zip(here, there, strict=True):
        numpy.testing.assert_array_equal(other.to_numpy(), one)


@pytest.mark.parametrize("char", "?bhldF")
def test_parts_of_all_lengths(device, char):
    for length in LENGTHS:
        a = _made(5, length + 3, char=char)
        _same(lambda xp, x, length=length: x[1:, 2 : length + 2] + x[:-1, 3:], a)

        def put(xp, x, length=length):
            x[:-1, 1 : length + 1] = x[1:, 2 : length + 2]
            return x

        _same(put, a)


def test_rows_and_columns_for_all(device):
    m, row, column = _made(6, 300), _made(300), _made(6, 1)
    for one, other in itertools.permutations((m, row, column, m[:1], m[:, 5:6], m[:, ::-1], m[::-1], _made(1)), 2):
        _same(lambda xp, x, y: x - 2 * y, one, other)
    cube = _made(3, 4, 200)
    for other in (cube[0], cube[:, :1], cube[:, :, :1], cube[1, 2], cube.transpose(1, 0, 2)[:3, :3][:, [0, 1, 2, 0]]):
        _same(lambda xp, x, y: x * y - x, cube, other)
    _same(lambda xp, x: x[::2, ::3, 3:-3] + x[1:, 1:2, 6:], cube)
    _same(lambda xp, x: x.transpose(1, 0, 2) * 2, cube)
    _same(lambda xp, x: (x.transpose(2, 0, 1) * 2).transpose(1, 2, 0)[1:] + x[1:], cube)
    _same(lambda xp, x: xp.broadcast_to(x[1:, None, :, None, 7:], (2, 3, 4, 2, 193)) + x[0, 0, :193], cube)
    _same(lambda xp, x: xp.where(x[1:] > x[:-1], x[1:], x[0]), _made(40, 150, char="f"))


@pytest.mark.parametrize("shape", [(2, 300_001), (1, 5000), (1057, 130), (2200, 129), (3, 7, 40_000)])
def test_few_and_many_rows(device, shape):
    a = _made(*shape, char="i")
    _same(lambda xp, x: x[..., 1:] - x[..., :-1], a)


def test_in_place(device):
    def shifted(xp, x):
        x[1:, 1:] += x[:-1, :-1]
        x[:, 3:] = x[:, :-3]
        x[2] = x[1]
        x[:, :] = x[3]
        return x

    _same(shifted, _made(9, 400))
    _same(lambda xp, x, y: xp.add(x[:, :200], y, out=x[:, 200:]), _made(4, 400), _made(4, 1))


@pytest.mark.finds("race", reason="a place is named twice, with the same value")
def test_indices(device):
    a, places = _made(20, 300), _random.integers(-20, 20, 7)
    _same(lambda xp, x, i: x[i, 5:] + x[:7, :-5], a, places)
    _same(lambda xp, x, i: x[i][:, 1:] * x[0, 1:], a, places)

    def put(xp, x, i):
        x[abs(i) % 20, 9:] = 5
        xp.add.at(x, (i, slice(3, 200)), x[0, 3:200] * 0 + 2)
        return x

    _same(put, a, places)


def test_the_number_of_an_element(device):
    """What is drawn for element i does not depend on how the parameters lie."""
    means = numpy.linspace(1, 60, 300)
    one = np.random.default_rng(4).poisson(np.asarray(means), (5, 300))
    other = np.random.default_rng(4).poisson(np.asarray(numpy.tile(means, (5, 1))))
    numpy.testing.assert_array_equal(one.to_numpy(), other.to_numpy())


def test_how_arrays_lie(device, monkeypatch):
    seen = []
    real = _kernels.elementwise

    def elementwise(lines, result, types, scalars, modes, axes, *rest):
        seen.append((modes, axes))
        return real(lines, result, types, scalars, modes, axes, *rest)

    monkeypatch.setattr(_kernels, "elementwise", elementwise)
    m, row, cube = np.asarray(_made(6, 300)), np.asarray(_made(300)), np.asarray(_made(3, 4, 200))
    expected = set()
    for x, y, modes, axes in (
        (m[:, 1:], m[:, :-1], "rrr", 1),
        (m, row, "rrr", 1),
        (m, m[:, :1], "rsr", 1),
        (m, m[:1, :1], "c1c", -1),
        (m[:, ::2], row[:150], "ggg", 2),
        (m[:, :127], row[:127], "ggg", 2),
        (cube[:, :2, 1:], cube[:, 1:3, 1:], "rrr", 2),
        (row, m[:1], "rrr", 0),
    ):
        # An expression that nothing else has, so that the kernels are not known yet.
        np.hypot(x * 3, np.arctan2(y / 7, x * x - y))._compute_now()
        expected.add((modes, axes))
    assert set(seen) == expected
