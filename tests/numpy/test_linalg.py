"""Linear algebra of what is singular, empty or no number, and of real matrices, as in NumPy."""

from __future__ import annotations

import numpy
import pytest

import cupola.numpy as np

_random = numpy.random.default_rng(5)
A = _random.normal(size=(4, 4))
STACK = _random.normal(size=(2, 3, 5, 5))
NAN = numpy.where(numpy.eye(4) == 1, A, numpy.nan)
INFINITE = numpy.where(A > 1, A, -numpy.inf)
SINGULAR = numpy.array([[1.0, 2.0], [2.0, 4.0]])


@pytest.mark.parametrize(
    "name", ["svd", "svdvals", "eigh", "eigvalsh", "eig", "eigvals", "pinv", "matrix_rank", "cond", "cholesky"]
)
@pytest.mark.parametrize("a", [NAN, INFINITE, numpy.stack([A @ A.T, NAN]), NAN.astype("F")])
def test_no_numbers(device, name, a):
    if name in ("svdvals", "matrix_rank", "cond"):  # NumPy does not tell infinite ones
        a = numpy.where(numpy.isinf(a), numpy.nan, a)
    with pytest.raises(numpy.linalg.LinAlgError) as theirs:
        getattr(numpy.linalg, name)(a)
    with pytest.raises(numpy.linalg.LinAlgError) as ours:
        getattr(np.linalg, name)(np.asarray(a))
    assert str(ours.value) in (str(theirs.value), "Matrix is not positive definite")


def _with_real_eigenvalues(count):
    vectors = _random.normal(size=(count, 7, 7))
    return vectors * _random.normal(size=(count, 1, 7)) @ numpy.linalg.inv(vectors)


EIGEN = {
    "one": A, "many": STACK, "all real": _with_real_eigenvalues(30), "integers": _random.integers(-9, 9, (3, 4, 4)),
    "rotation": numpy.array([[0.0, -1.0], [1.0, 0.0]]), "float32": STACK.astype("f4"), "complex": STACK + 1j * STACK.mT,
    "empty": numpy.zeros((0, 0)), "no matrices": numpy.zeros((0, 3, 3)), "of one element": numpy.full((3, 1, 1), 2.0),
    "singular": SINGULAR,
}  # fmt: skip


@pytest.mark.parametrize("name", EIGEN)
def test_eigenvalues(device, name):
    a = EIGEN[name]
    w, v = numpy.linalg.eig(a)
    found, vectors = np.linalg.eig(np.asarray(a))
    alone = np.linalg.eigvals(np.asarray(a)).to_numpy()
    found, vectors = found.to_numpy(), vectors.to_numpy()
    assert (found.dtype, found.shape) == (w.dtype, w.shape) == (alone.dtype, alone.shape)
    assert (vectors.dtype, vectors.shape) == (v.dtype, v.shape)
    precision = 2e-4 if w.dtype.char in "fF" else 1e-9
    numpy.testing.assert_allclose(a @ vectors, found[..., None, :] * vectors, atol=precision)
    numpy.testing.assert_allclose((abs(vectors) ** 2).sum(axis=-2), numpy.ones(w.shape), rtol=1e-5)
    for one in (found, alone):
        numpy.testing.assert_allclose(numpy.sort_complex(one), numpy.sort_complex(w), atol=precision)
        if a.dtype.kind in "fi":  # pairs are exact
            numpy.testing.assert_array_equal(numpy.sort_complex(one.conj()), numpy.sort_complex(one))


@pytest.mark.parametrize("p", [None, 1, -1, 2, -2, numpy.inf, -numpy.inf, "fro", "nuc"])  # codespell:ignore
def test_condition_numbers(device, p):
    for a in (A, numpy.zeros((3, 3)), SINGULAR * 0.5, numpy.stack([A, A * 0])):
        if p == "nuc" and a is not A:  # the inverse has no singular values
            for xp in (numpy, np):
                with pytest.raises(numpy.linalg.LinAlgError, match="SVD did not converge"):
                    xp.linalg.cond(xp.asarray(a), p)
            continue
        expected = numpy.linalg.cond(a, p)
        found = np.linalg.cond(np.asarray(a), p).to_numpy()
        large = expected > 1e12
        assert ((found > 1e12) == large).all()
        numpy.testing.assert_allclose(found[~large], expected[~large], rtol=1e-9)
        assert (numpy.isinf(found) == numpy.isinf(expected)).all() or not (a * 2 == SINGULAR).all()
    with pytest.raises(numpy.linalg.LinAlgError, match="not defined on empty"):
        np.linalg.cond(np.zeros((0, 0)), p)


@pytest.mark.parametrize("a", [A, A[:3], A[:, :3], STACK, STACK + 1j, STACK.astype("f4"), numpy.zeros((0, 3))])
def test_raw_factors(device, a):
    for found, right in zip(np.linalg.qr(np.asarray(a), "raw"), numpy.linalg.qr(a, "raw"), strict=True):
        found = found.to_numpy()
        assert found.dtype == right.dtype
        numpy.testing.assert_allclose(found, right, atol=2e-5 if found.dtype.char == "f" else 1e-12)
