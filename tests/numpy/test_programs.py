"""What programs use besides computing: grids, lists of indices, functions of their own, files, text, polynomials."""

from __future__ import annotations

import math
import pickle

import numpy
import pytest

import cupola.numpy as np

X = numpy.random.default_rng(0).random((4, 6))
BYTES = numpy.arange(6, dtype="u1").reshape(2, 3) * 37

# Expressions with NumPy or cupola.numpy as np, and A, its asarray.
SAME = """
np.mgrid[0:3, 0:4]; np.mgrid[0:1:5j]; np.mgrid[0:3]; np.ogrid[0:3, 0:2:3j]; np.mgrid[-1:1:3j, 2:4]
np.r_[1:4, 0, 4]; np.r_[A(X)[0], 1, 2]; np.r_[0:1:5j]; np.r_[3]; np.r_[A([1, 2]).astype("f4"), 1.5]
np.r_["0,2", [1, 2, 3], [4, 5, 6]]; np.r_["1,2,0", [1, 2, 3], [4, 5, 6]]; np.r_["0,3,1", A(X)]; np.r_["-1", A(X), A(X)]
np.c_[A([1, 2, 3]), A([4, 5, 6])]; np.c_[A(X), A(X)]; np.c_[1:4, 0:3]; np.c_[A([[1, 2, 3]]), 0, 0, A([[4, 5, 6]])]
np.diag_indices(3); np.tril_indices(3, 1); np.triu_indices(4, -1, 3); np.tril_indices_from(A(X))
np.triu_indices_from(A(X), 1); np.mask_indices(3, np.triu); np.diag_indices_from(A(X[:4, :4])); np.diagonal(A(X), 1)
np.apply_along_axis(lambda row: row.sum(), 0, A(X)); np.apply_along_axis(lambda row: row[:2] * 2, 0, A(X))
np.apply_along_axis(np.diag, 0, A(X)); np.apply_along_axis(np.diag, -1, A(X))
np.apply_along_axis(lambda row, k: row * k, 1, A(X), 3); np.apply_over_axes(np.sum, A(X), (0, 1))
np.packbits(A(X > 0.5)); np.packbits(A(X > 0.5), 0); np.packbits(A(X > 0.5), 1, "little"); np.packbits(A([2, 0, 3]))
np.unpackbits(A(BYTES)); np.unpackbits(A(BYTES), 1, 13, "little"); np.unpackbits(A(BYTES), count=-5)
np.unpackbits(A(BYTES), count=60); np.unpackbits(A(BYTES), axis=0); np.packbits(A(X[:0] > 1))
np.vectorize(lambda a, b: a + 2 * b)(A(X), A(X[0])); np.vectorize(lambda a: a * a)(3)
np.vectorize(lambda a, b: (a, b))(A(X), 1.0); np.vectorize(lambda a: a, otypes="f")(A(X))
np.vectorize(lambda a, k=1: a + k, excluded=["k"])(A(X), k=3)
np.roots(A([1, -3, 2])); np.poly(A([1.0, 2.0])); np.polyadd(A([1, 2]), A([1])); np.polymul(A([1, 2]), A([1, 3]))
np.polydiv(A([1.0, 3, 2]), A([1.0, 1])); np.polyder(A([1, 2, 3])); np.polyint(A([1, 2, 3])); np.polysub([1, 2], A([3]))
np.poly1d(A([1, 2, 3]))(A(X)); (np.poly1d([1, 2]) * np.poly1d([1, 3])).coeffs
np.polyadd(np.poly1d([1, 2]), np.poly1d([1, 2])).c
np.histogramdd(A(X), bins=2)[0]; np.histogramdd(A(X[:, :3]), bins=(2, 3, 2))[0]
np.histogramdd(A(X[:, :2]), bins=3, density=True)[0]; np.histogramdd([A(X[0]), A(X[1])], bins=2)[1]
np.i0(A(X)); np.i0(A([1, 2])); A(BYTES).byteswap(); A(X).byteswap().byteswap(); A(X * 1j).byteswap().byteswap()
np.common_type(A(X), A(BYTES)) == np.float64; np.isfortran(A(X).T); A(X).T.flags.fnc; A(X)[::2].flags["C"]
"""


def same(ours, right):
    if isinstance(right, (tuple, list)):
        assert len(ours) == len(right)
        for one, other in zip(ours, right, strict=True):
            same(one, other)
    elif isinstance(right, bool):
        assert ours is right
    else:
        assert (ours.dtype, ours.shape) == (right.dtype, right.shape)
        numpy.testing.assert_allclose(ours.to_numpy(), right, 1e-12, 1e-12)


@pytest.mark.parametrize("line", [line for line in SAME.splitlines() if line])
def test_expressions(device, line):
    for text in line.split(";"):
        given = {"X": X, "BYTES": BYTES}
        ours = eval(text.strip(), {"np": np, "A": np.asarray, **given})
        same(ours, eval(text.strip(), {"np": numpy, "A": numpy.asarray, **given}))


def test_files(device, tmp_path):
    x = np.asarray(X)
    for module in (np, numpy):  # whose functions take arrays of the device
        module.save(tmp_path / "x.npy", x)
        same(np.load(tmp_path / "x.npy"), X)
    for write in (np.savez, np.savez_compressed):
        write(tmp_path / "x.npz", x, second=x[:2])
        with np.load(tmp_path / "x.npz") as archive:
            assert sorted(archive) == sorted(archive.keys()) == ["arr_0", "second"]
            assert "second" in archive and len(archive) == 2
            same(archive["second"], X[:2])
    np.savetxt(tmp_path / "x.txt", x)
    same(np.loadtxt(tmp_path / "x.txt"), X)
    same(np.genfromtxt(tmp_path / "x.txt"), X)
    x.tofile(tmp_path / "x.bin")
    same(np.fromfile(tmp_path / "x.bin"), X.ravel())
    x.dump(tmp_path / "x.pickle")
    assert numpy.load(tmp_path / "x.pickle", allow_pickle=True).to_numpy().tolist() == X.tolist()
    same(np.fromiter(iter([1, 2]), "i8"), numpy.array([1, 2]))


def test_files_of_what_the_device_has_not(device, tmp_path):
    """Pickles give what was pickled, and arrays of other types stay on the host."""
    objects = numpy.array([{"a": 1}, None, "text"], dtype=object)
    for saved in (objects, numpy.array(["a", "bc"]), numpy.array(["2020-01-01"], "M8[D]")):
        np.save(tmp_path / "x.npy", saved)
        found = np.load(tmp_path / "x.npy", allow_pickle=True)
        assert type(found) is numpy.ndarray and found.dtype == saved.dtype and found.tolist() == saved.tolist()
        np.savez(tmp_path / "x.npz", saved=saved, x=np.asarray(X))
        with np.load(tmp_path / "x.npz", allow_pickle=True) as archive:
            assert archive["saved"].tolist() == saved.tolist()
            same(archive["x"], X)
    with open(tmp_path / "x.pickle", "wb") as file:
        pickle.dump({"x": np.asarray(X), "n": 3}, file)
    found = np.load(tmp_path / "x.pickle", allow_pickle=True)
    assert found["n"] == 3
    same(found["x"], X)
    with pytest.raises(ValueError, match="allow_pickle"):
        np.load(tmp_path / "x.pickle")
    with pytest.raises(ValueError, match="allow_pickle"):
        np.save(tmp_path / "y.npy", objects, allow_pickle=False)


def test_text(device):
    x = np.asarray(X)
    assert np.array2string(x, precision=2) == numpy.array2string(X, precision=2)
    assert np.array_repr(x) == numpy.array_repr(X) and np.array_str(x, 30) == numpy.array_str(X, 30)
    assert [(place, float(value)) for place, value in np.ndenumerate(x[:1, :2])] == [
        ((0, 0), X[0, 0]), ((0, 1), X[0, 1]),
    ]  # fmt: skip
    flags = x.T.flags
    assert (flags.c_contiguous, flags.f_contiguous, flags.writeable) == (False, True, True)
    assert not x[1:].flags.owndata and "C_CONTIGUOUS : False" in repr(flags) and x.flags == np.zeros((2, 3)).flags
    with pytest.raises(KeyError, match="Q is not among the flags"):
        flags["Q"]


@pytest.mark.parametrize(
    ("error", "text", "function"),
    [
        (TypeError, r"with arrays, and it raises ValueError.*Write where\(condition, a, b\)",
         lambda x: np.vectorize(lambda v: 1 if v > 0 else 2)(x)),
        (TypeError, "functions of cupola.numpy in place of those of math", lambda x: np.vectorize(math.sin)(x)),
        (NotImplementedError, "apply_along_axis", lambda x: np.vectorize(sum, signature="(n)->()")),
        (ValueError, "unknown special directive 'x'", lambda x: np.r_["x", 1]),
        (TypeError, "integer or boolean", lambda x: np.packbits(x)),
        (TypeError, "unsigned byte", lambda x: np.unpackbits(x)),
        (ValueError, "'little' or 'big'", lambda x: np.packbits(x > 0, bitorder="none")),
        (IndexError, "axis 5 is out of bounds", lambda x: np.apply_along_axis(np.sum, 5, x)),
        (ValueError, "dimension of bins", lambda x: np.histogramdd(x, bins=(2, 3))),
        (ValueError, "2-d", lambda x: np.tril_indices_from(x[0])),
        (TypeError, "complex", lambda x: np.i0(x * 1j)),
        (TypeError, "takes a numpy.poly1d", lambda x: np.poly1d([1]).set(x)),
    ],
)  # fmt: skip
def test_bad_input(device, error, text, function):
    with pytest.raises(error, match=text):
        function(np.asarray(X))


@pytest.mark.parametrize("kind", ["?", "i1", "u1"])
def test_elements_of_a_byte_are_combined_in_their_memory(device, kind):
    """Threads compare and swap two bytes at least, and seven elements do not fill them."""
    indices, values = numpy.array([6, 6, 0, 3, 3]), numpy.array([1, 2, 1, 100, 100])
    for name in ("add", "maximum", "logical_or", "multiply", "logical_not"):
        right = numpy.arange(1, 8).astype(kind)
        ours = np.asarray(right)
        given = () if name == "logical_not" else (values.astype(kind),)
        getattr(numpy, name).at(right, indices, *given)
        getattr(np, name).at(ours, np.asarray(indices), *map(np.asarray, given))
        assert ours.to_numpy().tolist() == right.tolist(), name
    x = np.asarray(numpy.ones(7, kind))
    np.add.at(x, slice(1, None, 2), x[::2][:3])
    assert x.dtype == kind and x.tolist() == (numpy.array([1, 2, 1, 2, 1, 2, 1]).astype(kind)).tolist()


def test_functions_of_one_shared_generator(device):
    """numpy.random's older functions are those of the generator."""
    for name, parameters in {
        "beta": (1, 2), "binomial": (3, 0.5), "dirichlet": ([1, 2],), "gamma": (2,), "geometric": (0.5,),
        "multivariate_normal": ([0, 0], [[1, 0], [0, 1]]), "poisson": (), "triangular": (0, 1, 2),
    }.items():  # fmt: skip
        np.random.seed(5)
        ours = getattr(np.random, name)(*parameters, size=2)
        same(ours, getattr(np.random.default_rng(5), name)(*parameters, size=2).to_numpy())
    assert len(np.random.bytes(7)) == 7
