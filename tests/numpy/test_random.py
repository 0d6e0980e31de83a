"""RandomState and the older functions: names, defaults, shapes, types, errors and statistics are those of NumPy."""

from __future__ import annotations

import pickle
import re
import sys

import numpy
import pytest

import cupola.numpy as np
from cupola.numpy.random._checks import check
from tests import processes

THERE = numpy.random.RandomState

# Of each method whose results are numbers: parameters.
PARAMETERS = {
    "beta": (2.0, 0.7), "binomial": (20, 0.3), "chisquare": (3,), "exponential": (2.0,), "f": (4, 9),
    "gamma": (2.5, 2.0), "geometric": (0.3,), "gumbel": (1.0, 2.0), "hypergeometric": (15, 20, 12),
    "laplace": (1.0, 2.0), "logistic": (1.0, 2.0), "lognormal": (0.5, 0.4), "logseries": (0.8,),
    "negative_binomial": (3, 0.4), "noncentral_chisquare": (3, 2.0), "noncentral_f": (3, 9, 1.5),
    "normal": (1.0, 2.0), "pareto": (3.0,), "poisson": (3.5,), "power": (2.0,), "rayleigh": (2.0,),
    "standard_cauchy": (), "standard_exponential": (), "standard_gamma": (0.6,), "standard_normal": (),
    "standard_t": (4,), "triangular": (-1.0, 0.5, 2.0), "uniform": (-1.0, 3.0), "vonmises": (2.5, 1.5),
    "zipf": (2.2,), "wald": (2.0, 3.0), "weibull": (1.5,), "random_sample": (), "random": (), "tomaxint": (),
    "randint": (3, 40),
}  # fmt: skip


def names_of(name):
    """The parameters of a method of NumPy's RandomState."""
    line = getattr(THERE, name).__doc__.strip().splitlines()[0]
    return re.findall(r"(\w+)(?:=[^,)]*)?[,)]", line.partition("(")[2])


@pytest.mark.parametrize("name", PARAMETERS)
def test_numbers(device, name):
    """20000 numbers are distributed as 20000 of NumPy's."""
    given = PARAMETERS[name]
    ours, theirs = np.random.RandomState(7), THERE(8)
    names = names_of(name)[: len(given)]
    found = getattr(ours, name)(*given, size=20_000)
    other = getattr(theirs, name)(*given, size=20_000)
    assert isinstance(found, np.ndarray) and found.dtype == other.dtype
    host, grid = found.to_numpy(), numpy.unique(numpy.quantile(other, numpy.linspace(0, 1, 400), method="nearest"))
    below = [numpy.searchsorted(numpy.sort(one), grid, "right") / 20_000 for one in (host, other)]
    assert abs(below[0] - below[1]).max() < 0.022  # of Kolmogorov and Smirnov: once in ten thousand seeds
    assert len(numpy.unique(host)) > 5
    # By names, in every shape, and the same again with the same seed.
    for size in (None, 3, (2, 3), (), (0, 2)):
        ours.seed(11)
        one = getattr(ours, name)(**dict(zip(names, given, strict=True)), size=size)
        right = getattr(theirs, name)(*given, size=size)
        assert one.shape == numpy.shape(right)
        again = getattr(np.random.RandomState(11), name)(*given, size)
        numpy.testing.assert_array_equal(one.to_numpy(), again.to_numpy())
        np.random.seed(11)
        if hasattr(np.random, name):
            numpy.testing.assert_array_equal(one.to_numpy(), getattr(np.random, name)(*given, size=size).to_numpy())


def test_names():
    assert not {name for name in dir(THERE) if not name.startswith("_")} - set(dir(np.random.RandomState))
    assert not {name for name in dir(numpy.random.Generator) if name[0] != "_"} - set(dir(np.random.Generator))
    assert set(np.random.__all__) >= {"RandomState", "f", "get_state", "multinomial", "set_state", "wald", "zipf"}


RARE = [
    ("hypergeometric", (3, 5, 4)), ("hypergeometric", (5, 3, 4)), ("hypergeometric", (5, 3, 6)),
    ("hypergeometric", (3000, 1000, 700)), ("hypergeometric", (1000, 3000, 3500)),
    ("hypergeometric", (400_000_000, 500_000_000, 1_000_000)), ("vonmises", (-1.0, 1e-9)), ("vonmises", (9.0, 1e-6)),
    ("vonmises", (3.0, 700.0)), ("vonmises", (0.0, 1e8)), ("zipf", (1.3,)), ("zipf", (9.0,)),
]  # fmt: skip


@pytest.mark.parametrize("name, given", RARE)
def test_forms_of_rare_distributions(device, name, given):
    """Each way in which numbers are made gives the distribution of NumPy's."""
    found = getattr(np.random.default_rng(3), name)(*given, size=20_000).to_numpy()
    other = getattr(numpy.random.default_rng(4), name)(*given, size=20_000)
    both = numpy.unique(numpy.concatenate([found, other]))
    below = [numpy.searchsorted(numpy.sort(one), both, "right") / 20_000 for one in (found, other)]
    assert found.dtype == other.dtype
    assert abs(below[0] - below[1]).max() < 0.022  # of Kolmogorov and Smirnov: once in ten thousand seeds


def test_edges_of_rare_distributions(device):
    rng = np.random.default_rng(5)
    for good, bad, sample, right in ((4, 0, 3, 3), (0, 4, 3, 0), (4, 6, 0, 0), (4, 6, 10, 4), (0, 0, 0, 0)):
        assert (rng.hypergeometric(good, bad, sample, 50) == right).all()
    assert (rng.zipf(2000.0, 50) == 1).all()
    colors = numpy.array([16, 8, 0, 4])
    drawn = rng.multivariate_hypergeometric(colors.tolist(), 10, 5000).to_numpy()
    assert (drawn.sum(axis=1) == 10).all() and (drawn <= colors).all() and drawn.dtype == numpy.int64
    numpy.testing.assert_allclose(drawn.mean(axis=0), 10 * colors / 28, atol=0.06)
    assert rng.multivariate_hypergeometric([3, 4], 7).to_numpy().tolist() == [3, 4]


def test_defaults(device):
    """Parameters that have defaults in NumPy have the same here."""
    for name in (
        "exponential",
        "gumbel",
        "laplace",
        "logistic",
        "lognormal",
        "normal",
        "poisson",
        "rayleigh",
        "uniform",
    ):
        values = [getattr(np.random.RandomState(3), name)(size=4).to_numpy()]
        line = getattr(THERE, name).__doc__.strip().splitlines()[0]
        given = [float(value) for value in re.findall(r"=([\d.]+)", line)]
        values.append(getattr(np.random.RandomState(3), name)(*given, size=4).to_numpy())
        numpy.testing.assert_array_equal(*values)


def test_parameters_in_arrays(device):
    ours, theirs = np.random.RandomState(1), THERE(1)
    for name, given, size in (
        ("normal", ([0.0, 100.0], 1.0), None),
        ("normal", ([[0.0], [100.0]], [1.0, 2.0]), (3, 2, 2)),
        ("poisson", ([1, 1000],), (4, 2)),
        ("beta", ([1.0, 2.0], 3.0), None),
        ("f", ([3, 4], 5), None),
        ("wald", ([1.0, 2.0], 3.0), (2, 2)),
        ("hypergeometric", ([1, 20], [30, 40], 10), None),
        ("randint", ([1, 100], [5, 200]), None),
        ("randint", ([1, 100], 200), (3, 2)),
        ("multinomial", (30, [0.2, 0.3, 0.5]), (4, 2)),
        ("multinomial", (30, [0.0, 1.0]), None),
        ("dirichlet", ([1.0, 2.0],), 3),
        ("multivariate_normal", ([0.0, 1.0], [[1.0, 1.0], [1.0, 1.0]]), 5),
    ):
        right = getattr(theirs, name)(*given, size=size)
        for parameters in (given, [np.asarray(one) if isinstance(one, list) else one for one in given]):
            found = getattr(ours, name)(*parameters, size=size)
            assert found.shape == right.shape and found.dtype == right.dtype, name
            if name == "randint":
                assert ((found >= np.asarray(given[0])) & (found < np.asarray(given[1]))).all()
            if name == "multinomial":
                assert (found.sum(axis=-1) == 30).all()


# What NumPy's generators give, of one or of both kinds, without a doubt.
EDGES = {
    "weibull": [((0,), 0.0), ((0, 3), [0.0] * 3), (([0.0, 0.0], (50, 2)), [[0.0, 0.0]] * 50),
                ((numpy.inf,), 1.0), ((numpy.nan,), numpy.nan)],
    "negative_binomial": [((5, 1), 0), ((5, [1.0, 1.0]), [0, 0]), ((numpy.inf, 1.0, 3), [0] * 3)],
    "binomial": [((0.5, 0.5, 3), [0] * 3), ((1.9, 1.0), 1), ((0, 0.5), 0), ((7, 0), 0), ((7, 1.0), 7)],
    "hypergeometric": [((1, 0, 1.5), 1), ((0.5, 2, 1, 3), [0] * 3), ((2, 0.5, 1.9), 1), ((3.9, 0, 2.9), 2)],
    "noncentral_chisquare": [((2.0, numpy.inf, 30), [numpy.inf] * 30), (([2.0], [numpy.inf]), [numpy.inf])],
    "noncentral_f": [((2.0, 3.0, numpy.inf, 30), [numpy.inf] * 30)],
    "beta": [((1e-300, 3.0, 5), [0.0] * 5), ((3.0, 1e-300, 5), [1.0] * 5)],
    "exponential": [((0, 3), [0.0] * 3), ((numpy.inf,), numpy.inf)], "gamma": [((0, 1.0), 0.0), ((2.0, 0), 0.0)],
    "geometric": [((1, 3), [1] * 3)], "logseries": [((1e-300,), 1)], "lognormal": [((0, 0), 1.0)],
    "normal": [((3, 0), 3.0)], "laplace": [((3, 0), 3.0)], "logistic": [((3, 0), 3.0)], "gumbel": [((3, 0), 3.0)],
    "poisson": [((0, 3), [0] * 3)], "rayleigh": [((0,), 0.0)], "standard_gamma": [((0,), 0.0)],
    "uniform": [((2, 2), 2.0)], "power": [((numpy.inf,), 1.0)],
    "vonmises": [((numpy.nan, 1.0), numpy.nan), ((1.0, numpy.nan), numpy.nan)],
    "triangular": [((numpy.nan, 1, 2), numpy.nan)],
    "dirichlet": [(([numpy.nan, 1.0],), [numpy.nan] * 2), (([],), [])],
}  # fmt: skip
EDGES_OF_GENERATORS = {
    "zipf": [((1e4,), 1)],
    "dirichlet": [(([0, 0],), [0.0, 0.0]), (([0.0, 0.0], 2), [[0.0, 0.0]] * 2), (([0, 0, 1e-3],), [0.0, 0.0, 1.0])],
}
EDGES_OF_STATES = {
    "negative_binomial": [
        ((numpy.nan, 0.5), 0),
        ((5, -0.0), 0),
        ((5, 0), -(2**63)),
        ((5, 0.0, 2), [-(2**63)] * 2),
        ((5, [0, 1.0], (30, 2)), [[-(2**63), 0]] * 30),
    ],
}


@pytest.mark.parametrize("kind", ["default_rng", "RandomState"])
def test_edges(device, kind):
    both = [EDGES, EDGES_OF_GENERATORS if kind == "default_rng" else EDGES_OF_STATES]
    ours, theirs = getattr(np.random, kind)(1), getattr(numpy.random, kind)(1)
    for name, cases in [item for table in both for item in table.items()]:
        for given, right in cases:
            for rng in (theirs, ours):
                found = np.asarray(getattr(rng, name)(*given)).to_numpy()
                numpy.testing.assert_array_equal(found, right, err_msg=f"{name}{given}")
                assert found.dtype == numpy.asarray(getattr(theirs, name)(*given)).dtype, name


@pytest.mark.parametrize("kind", ["default_rng", "RandomState"])
def test_triangles_in_arrays(device, kind):
    ours, theirs = getattr(np.random, kind)(1), getattr(numpy.random, kind)(2)
    for given in (([-1.0, 0.0], [0.5, 4.0], [2.0, 4.0]), (0, [[0], [1]], [3.0, 1.5]), (0.0, 1, [2, 3])):
        edges = numpy.broadcast_arrays(*given)
        for size in (None, (3, *edges[0].shape), (20_000, *edges[0].shape)):
            for arrays in (given, [np.asarray(one) for one in given], (given[0], np.asarray(given[1]), given[2])):
                found = ours.triangular(*arrays, size).to_numpy()
                assert found.shape == theirs.triangular(*given, size).shape
                assert (edges[0] <= found).all() and (found <= edges[2]).all()
        numpy.testing.assert_allclose(found.mean(axis=0), sum(edges) / 3, atol=0.03)  # of 20000 numbers
    for given, size in (([0, 1, 2], [1, 2], 3), None), ((0, [1, 2], 3), 3), (([0, 3], [1, 2], [3, 4]), None):
        for rng in (theirs, ours):
            with pytest.raises(ValueError):
                rng.triangular(*given, size)


def test_methods_and_results_of_generators(device):
    ours, theirs = np.random.default_rng(1), numpy.random.default_rng(1)
    for name, given in (("standard_exponential", ()), ("standard_gamma", (2.0,)), ("standard_normal", ())):
        for dtype in ("f4", "f8"):
            out = np.zeros((3, 1000), dtype)
            assert getattr(ours, name)(*given, dtype=dtype, out=out) is out
            middle = getattr(theirs, name)(*given, size=(3, 1000), dtype=dtype).mean()
            assert abs(out.to_numpy().mean() - middle) < 0.2 and len(numpy.unique(out.to_numpy())) > 2000
        for xp, rng in ((numpy, theirs), (np, ours)):
            for error, out, size in ((TypeError, xp.zeros(3, "f4"), None), (ValueError, xp.zeros(3), 2)):
                with pytest.raises(error):
                    getattr(rng, name)(*given, size=size, out=out)
    for method in ("zig", "inv"):
        found = ours.standard_exponential((2, 3), "f4", method)
        right = theirs.standard_exponential((2, 3), "f4", method)
        assert found.shape == right.shape and found.dtype == right.dtype
        assert ours.standard_exponential(method=method).shape == ()


def test_vague_directions(device):
    """Without a concentration, an angle may be any, whatever the mean is."""
    for mean in (numpy.nan, numpy.inf, 1.0):
        found = np.random.default_rng(1).vonmises(mean, 0, 5000).to_numpy()
        right = numpy.random.default_rng(1).vonmises(mean, 0, 5000)
        numpy.testing.assert_allclose(
            numpy.quantile(found, [0.1, 0.5, 0.9]), numpy.quantile(right, [0.1, 0.5, 0.9]), atol=0.3
        )


@pytest.mark.parametrize(
    "a, b", [(1e-3, 1e-3), (1e-3, 3e-3), (0.02, 0.05), (0.5, 0.5), (1e-320, 1e-320), (1e-310, 3e-310)]
)
def test_small_parameters_of_beta(device, a, b):
    """Both gamma variates may be below the smallest number, and their quotient is not."""
    right = numpy.random.default_rng(2).beta(a, b, 20_000)
    for parameters in ((a, b), (np.asarray([a]), np.asarray([b]))):
        found = np.random.default_rng(1).beta(*parameters, 20_000).to_numpy()
        assert ((found >= 0) & (found <= 1)).all()
        if a > 1e-300:  # NumPy's are not divided as the parameters are, if those are that small
            numpy.testing.assert_allclose(found.mean(), right.mean(), atol=0.02)
            numpy.testing.assert_allclose((found < 1e-9).mean(), (right < 1e-9).mean(), atol=0.02)
        else:
            numpy.testing.assert_allclose(found.mean(), a / (a + b), atol=0.02)


def test_small_weights(device):
    """Their gamma variates are below the smallest number, and their quotients are not."""
    ours, theirs = np.random.default_rng(1), numpy.random.default_rng(2)
    for weights in ([1e-300, 3e-300], [1e-3, 3e-3], [0.05, 2.0, 0.0], [0.5, 1.5, 3.0]):
        found = ours.dirichlet(weights, 20_000).to_numpy()
        right = theirs.dirichlet(weights, 20_000)
        numpy.testing.assert_allclose(found.sum(axis=1), 1)
        numpy.testing.assert_allclose(found.mean(axis=0), right.mean(axis=0), atol=0.02)
        numpy.testing.assert_allclose(found.std(axis=0), right.std(axis=0), atol=0.02)
    with pytest.raises(ValueError, match="one dimension"):
        ours.dirichlet(np.ones((1, 2)))
    for a, b in ((1e-300, 3e-300), (1e-3, 1e-3), (1e-3, 5.0), (0.5, 1e-2), (1e6, 2e6)):
        found, right = ours.beta(a, b, 20_000).to_numpy(), theirs.beta(a, b, 20_000)
        numpy.testing.assert_allclose(found.mean(), right.mean(), atol=0.02)
        numpy.testing.assert_allclose(found.std(), right.std(), atol=0.02)


@pytest.mark.parametrize("method", ["svd", "eigh", "cholesky"])
def test_vectors_of_a_generator(device, method):
    ours = np.random.default_rng(3)
    spread = [[2.0, 0.6], [0.6, 1.0]]
    vectors = ours.multivariate_normal([3.0, -1.0], spread, 20_000, method=method).to_numpy()
    numpy.testing.assert_allclose(vectors.mean(axis=0), [3, -1], atol=0.05)
    numpy.testing.assert_allclose(numpy.cov(vectors.T), spread, atol=0.06)
    singular = [0.0, 1.0], [[1.0, 1.0], [1.0, 1.0]], 5
    if method == "cholesky":
        assert ours.multivariate_normal([1.0], [[4.0]], method=method).shape == (1,)
        return
    few = ours.multivariate_normal(*singular, method=method).to_numpy()
    numpy.testing.assert_allclose(few[:, 0] + 1, few[:, 1], atol=1e-6)
    with pytest.warns(RuntimeWarning, match="positive-semidefinite") as told:
        ours.multivariate_normal([0, 0], [[1, 2], [2, 1]], method=method)
    assert told[0].filename == __file__
    assert ours.multivariate_normal([0, 0], [[1, 2], [2, 1]], check_valid="ignore", method=method).shape == (2,)
    for wrong in ({"check_valid": "raise"}, {"check_valid": "x"}):
        with pytest.raises(ValueError, match="positive-semidefinite|must equal"):
            ours.multivariate_normal([0, 0], [[1, 2], [2, 1]], method=method, **wrong)
    with pytest.raises(ValueError, match="method must be"):
        ours.multivariate_normal([0], [[1]], method="x")


def test_vectors(device):
    ours = np.random.RandomState(2)
    chances = numpy.array([0.2, 0.3, 0.5])
    several = ours.multinomial(1000, chances.tolist(), 4000).to_numpy()
    numpy.testing.assert_allclose(several.mean(axis=0), 1000 * chances, rtol=0.01)
    covariances = 1000 * (numpy.diag(chances) - numpy.outer(chances, chances))
    numpy.testing.assert_allclose(numpy.cov(several.T), covariances, atol=25)
    rest = ours.multinomial(1000, [0.5, 0.1], 4000).to_numpy()  # as in NumPy, the last one gets it
    numpy.testing.assert_allclose(rest.mean(axis=0), [500, 500], rtol=0.01)
    spread = [[2.0, 0.6], [0.6, 1.0]]
    vectors = ours.multivariate_normal([3.0, -1.0], spread, 20_000).to_numpy()
    numpy.testing.assert_allclose(vectors.mean(axis=0), [3, -1], atol=0.05)
    numpy.testing.assert_allclose(numpy.cov(vectors.T), spread, atol=0.06)
    singular = ours.multivariate_normal([0.0, 1.0], [[1.0, 1.0], [1.0, 1.0]], 5).to_numpy()
    numpy.testing.assert_allclose(singular[:, 0] + 1, singular[:, 1], atol=1e-6)
    with pytest.warns(RuntimeWarning, match="positive-semidefinite"):
        ours.multivariate_normal([0, 0], [[1, 2], [2, 1]])
    with pytest.raises(ValueError, match="positive-semidefinite"):
        ours.multivariate_normal([0, 0], [[1, 2], [2, 1]], check_valid="raise")


ERRORS = {
    name: (lambda r, name=name, given=given: getattr(r, name)(*given))
    for name, given in {
        "normal": (0, -1), "lognormal": (0, -1), "exponential": (-1,), "gamma": (-1,), "beta": (0, 1), "f": (0, 1),
        "chisquare": (0,), "noncentral_f": (1, 2, -1), "noncentral_chisquare": (1, -1), "wald": (-1, 1), "power": (0,),
        "standard_t": (0,), "weibull": (-1,), "pareto": (0,), "rayleigh": (-1,), "triangular": (3, 1, 2),
        "poisson": (-1,), "binomial": (5, 1.5), "geometric": (0,), "logseries": (2.0,), "negative_binomial": (1, 2),
        "dirichlet": ([0, 1],), "multinomial": (5, [0.8, 0.8, 0.1]), "uniform": (0, numpy.inf), "randint": (5, 2),
        "standard_gamma": ([1, -1],), "choice": ([],), "multivariate_normal": ([0, 0], [[1]]), "seed": (-1,),
        "hypergeometric": (2, 3, 9), "zipf": (1.0,), "vonmises": (0, -1),
        "set_state": (3,), "rand": (-1,), "randn": ("a",), "gumbel": ("a",),
    }.items()
} | {
    "too many parameters": lambda r: r.normal(1, 2, 3, 4),
    "a keyword": lambda r: r.normal(scale=2, foo=1),
    "too few": lambda r: r.beta(1),
    "size twice": lambda r: r.normal(0, 1, 3, size=3),
    "a size of fractions": lambda r: r.normal(0, 1, 2.5),
    "a negative size": lambda r: r.normal(0, 1, -2),
    "a size that does not fit": lambda r: r.normal([1, 2], 1, size=(3,)),
    "a size that is too small": lambda r: r.normal([[1, 2], [3, 4]], 1, size=(2,)),
    "probabilities": lambda r: r.choice(3, p=[0.5, 0.6, 0.1]),
    "probabilities of others": lambda r: r.choice(3, p=[0.5, 0.5]),
    "a larger sample": lambda r: r.choice(3, 5, replace=False),
    "two dimensions": lambda r: r.choice([[1]]),
    "a type": lambda r: r.randint(3, dtype="f4"),
    "out of bounds": lambda r: r.randint(300, dtype="i1"),
    "a text as seed": lambda r: r.seed("a"),
    "check_valid": lambda r: r.multivariate_normal([0], [[1]], check_valid="x"),
    "shuffle": lambda r: r.shuffle(3),
}  # fmt: skip


@pytest.mark.parametrize("name", ERRORS)
def test_errors(device, name):
    """The classes of NumPy's errors."""
    with pytest.raises((ValueError, TypeError, OverflowError)) as right:
        ERRORS[name](THERE())
    with pytest.raises(right.type):
        ERRORS[name](np.random.RandomState())


@pytest.mark.parametrize("name", [name for name in ERRORS if hasattr(numpy.random.Generator, name)])
def test_errors_of_generators(device, name):
    if name == "dirichlet":
        return  # there a weight of zero is allowed
    with pytest.raises((ValueError, TypeError, OverflowError)) as right:
        ERRORS[name](numpy.random.default_rng())
    with pytest.raises(right.type, match=re.escape(str(right.value)) if isinstance(right.value, ValueError) else None):
        ERRORS[name](np.random.default_rng())


# Parameters that are right, and with them one after the other that is wrong whatever the others are (None: none is).
BESIDE = {
    "beta": ((2.0, 3.0), (-1, 0)), "binomial": ((10, 0.2), (-1, 1.5)), "f": ((4.0, 5.0), (0, -2)),
    "gamma": ((2.0, 3.0), (-1, -1)), "gumbel": ((0.0, 2.0), (None, -1)), "hypergeometric": ((9, 8, 7), (-1, -2, -3)),
    "laplace": ((0.0, 2.0), (None, -1)), "logistic": ((0.0, 2.0), (None, -1)), "lognormal": ((0.0, 2.0), (None, -1)),
    "multinomial": ((9, [0.5, 0.5]), (-1, [0.8, 0.8, 0.1])), "negative_binomial": ((1e18, 0.999), (0, 1.5)),
    "noncentral_chisquare": ((3.0, 2.0), (0, -1)), "noncentral_f": ((3.0, 4.0, 2.0), (0, 0, -1)),
    "normal": ((0.0, 2.0), (None, -1)), "triangular": ((7.0, 8.0, 8.0), (None, None, None)),
    "uniform": ((1e308, 1.1e308), (numpy.inf, numpy.nan)), "vonmises": ((0.0, 2.0), (None, -1)),
    "wald": ((2.0, 3.0), (0, 0)),
}  # fmt: skip


@pytest.mark.parametrize("kind", ["default_rng", "RandomState"])
def test_checks_beside_arrays_of_the_device(device, kind):
    """NumPy's errors are raised for a parameter on the host also if another one is on the device, and no others."""
    ours, theirs = getattr(np.random, kind)(1), getattr(numpy.random, kind)(1)
    for name, (right, wrong) in BESIDE.items():
        method, names = getattr(ours, name), names_of(name)[: len(right)]
        for k in range(len(right)):
            for is_list in (False, True) if name != "multinomial" else (False,):
                host = [[one, one] if is_list else one for one in right]
                check(theirs, name, (*host[:k], np.asarray(right[k]), *host[k + 1 :]), None)
                if wrong[k] is None:
                    continue
                host[k] = [wrong[k], wrong[k]] if is_list else wrong[k]
                with pytest.raises((ValueError, OverflowError)) as error:
                    getattr(theirs, name)(*host)
                given = [value if i == k else np.asarray(value) for i, value in enumerate(host)]
                for positional, named in ((given, {}), ((), dict(zip(names, given, strict=True)))):
                    with pytest.raises(error.type) as found:
                        method(*positional, **named)
                    if name != "uniform":  # whose low is checked together with its high
                        assert str(found.value) == str(error.value), name
    for given in (np.asarray(1.0), 3.0, 2.0), (2.0, np.asarray(1.0), 2.0), (2.0, 1.0, np.asarray(3.0)):
        with pytest.raises(ValueError):
            ours.triangular(*given)
    assert method(np.asarray(2.0), np.asarray(3.0), 5).shape == (5,)
    if kind == "RandomState":
        with pytest.raises(TypeError, match="out"):
            ours.standard_exponential(out=np.zeros(3))


def test_colors_and_samples_on_the_device(device):
    rng = np.random.default_rng(1)
    assert rng.multivariate_hypergeometric(np.asarray([3, 4]), 7).to_numpy().tolist() == [3, 4]
    with pytest.raises(ValueError):
        rng.multivariate_hypergeometric(np.asarray([3, 4]), -1)
    with pytest.raises(ValueError):
        rng.multivariate_hypergeometric([3, -4], np.asarray(2))


@pytest.mark.parametrize(
    "call",
    [
        lambda r, a: r.zipf([2.0, 3.0, 4.0], size=2000), lambda r, a: r.zipf([2.0, 3.0, 4.0], size=2),
        lambda r, a: r.hypergeometric(a([1, 2, 3]), 5, 2, size=2), lambda r, a: r.poisson(a([1.0, 2.0]), size=(2, 3)),
        lambda r, a: r.normal([2.0, 3.0, 4.0], 1, size=1), lambda r, a: r.zipf(numpy.array([0.5, 2.0])),
        lambda r, a: r.poisson(numpy.array([-1.0, 2.0])), lambda r, a: r.poisson(lam=-1.0),
    ],
)  # fmt: skip
def test_sizes_and_parameters_of_generators(device, call):
    """What NumPy refuses, and what would read behind an array."""
    with pytest.raises(ValueError):
        call(numpy.random.default_rng(1), numpy.asarray)
    with pytest.raises(ValueError):
        call(np.random.default_rng(1), np.asarray)


def test_parameters_that_are_no_plain_numbers(device):
    class Theirs:
        """An array of another library."""

        def __init__(self, array):
            self.kept, self.__cuda_array_interface__ = array, array.__cuda_array_interface__

    rng = np.random.default_rng(1)
    assert rng.multinomial([10, 20], [0.5, 0.5]).sum(axis=-1).to_numpy().tolist() == [10, 20]
    assert rng.multinomial(n=[10, 20], pvals=[0.5, 0.5], size=(3, 2)).shape == (3, 2, 2)
    assert rng.normal(Theirs(np.arange(3.0) * 1e9), 1.0).to_numpy().round(-6).tolist() == [0, 1e9, 2e9]
    assert rng.normal([np.asarray(1e9), np.asarray(2e9)], 1.0).shape == (2,)
    assert numpy.isnan(rng.noncentral_chisquare(3, numpy.nan, 4).to_numpy()).all()
    numpy.testing.assert_allclose(rng.noncentral_chisquare(3, 1e20, 4).to_numpy(), 1e20, rtol=1e-3)
    assert numpy.isnan(rng.vonmises(0.0, numpy.nan, 4).to_numpy()).all()
    assert (rng.geometric(1.0, 50) == 1).all()
    assert (rng.zipf(1.0000001, 50).to_numpy() > 1).mean() > 0.9


@pytest.mark.parametrize("name", ["exponential", "rayleigh", "lognormal", "wald"])
def test_in_a_new_process(name):
    """Nothing else has been used before."""
    given = (1.0, 2.0)[: 2 if name == "wald" else 1]
    program = f"import cupola.numpy as np; np.random.default_rng(1).{name}(*{given}); np.random.{name}(*{given})"
    processes.run([sys.executable, "-c", program], check=True)


def test_host_arrays_are_no_parameters(device):
    with pytest.raises(TypeError, match="asarray"):
        np.random.RandomState().normal(numpy.zeros(3))


def test_states(device):
    state = np.random.RandomState([3, 5])
    state.rand(7)
    kept, kept_dict, copy = state.get_state(), state.get_state(legacy=False), pickle.loads(pickle.dumps(state))
    right = state.randn(2, 3).to_numpy()
    assert kept[0] == "Philox" and len(kept) == 5
    for one in (kept, kept_dict):
        state.set_state(one)
        numpy.testing.assert_array_equal(state.randn(2, 3).to_numpy(), right)
    numpy.testing.assert_array_equal(copy.randn(2, 3).to_numpy(), right)
    with pytest.raises(ValueError, match="Philox"):
        state.set_state(THERE().get_state())
    generator = np.random.default_rng(9)
    shared = np.random.RandomState(generator.bit_generator)
    shared.rand(5)
    assert generator.bit_generator.state["counter"] == 5 and "at 5" in repr(shared)
    np.random.set_state(kept)
    numpy.testing.assert_array_equal(np.random.randn(2, 3).to_numpy(), right)


def test_orders_and_choices(device):
    state = np.random.RandomState(4)
    x = np.arange(50)
    state.shuffle(x)
    assert sorted(x.tolist()) == list(range(50)) != x.tolist()
    assert sorted(state.permutation(20).tolist()) == list(range(20))
    assert sorted(state.permutation([1, 2, 3]).tolist()) == [1, 2, 3]
    assert state.choice(5).shape == () and state.choice([1.5, 2.5], (2, 3)).dtype == numpy.float64
    assert sorted(state.choice(5, 5, replace=False).tolist()) == list(range(5))
    assert set(state.choice(4, 100, p=[0, 0.5, 0.5, 0]).tolist()) == {1, 2}
    assert len(state.bytes(9)) == 9 and state.rand().shape == () and state.randn(2, 3).shape == (2, 3)
    with pytest.warns(DeprecationWarning, match="randint"):
        assert set(state.random_integers(2, size=100).tolist()) == {1, 2}


def test_bounds_of_integers_may_have_fractions(device):
    """They do not count, as in NumPy, where a bound is often written 1e6."""
    for draw in (np.random.default_rng(1).integers, np.random.RandomState(1).randint):
        assert set(draw(0.5, 3.7, 200).tolist()) == {0, 1, 2}
        assert set(draw(numpy.float32(2), size=200).tolist()) == {0, 1}
        for bounds in ((0, 0.5), (0, numpy.nan), (0, numpy.inf), (1e20,), ("a",)):
            with pytest.raises((ValueError, OverflowError, TypeError)):
                draw(*bounds)
    with pytest.warns(DeprecationWarning, match="randint"):
        assert set(np.random.RandomState(1).random_integers(1.5, 2.5, 100).tolist()) == {1, 2}


REFUSED = """
r.integers([0, 5], [1, 5])
r.integers(3, dtype=bool)
r.integers(5, dtype="f4")
r.random(3, dtype=int)
r.standard_normal(3, dtype="i4")
r.standard_exponential(3, dtype="f2")
r.standard_gamma(2, 3, dtype=complex)
r.choice(2.5)
r.choice(8, p=[1, 0])
r.choice(2, p=[0.5, 0.1])
r.choice(2, p=[-1, 2])
r.choice(2, p=[numpy.nan, 1])
r.choice(2, p=a([0.5, 0.25, 0.25]))
r.shuffle(a(2.5))
""".strip().splitlines()


@pytest.mark.parametrize("call", REFUSED)
def test_calls_refused_as_by_numpy(device, call):
    with pytest.raises((TypeError, ValueError)) as right:
        eval(call, {"r": numpy.random.default_rng(1), "a": numpy.asarray, "numpy": numpy})
    with pytest.raises(right.type):
        eval(call, {"r": np.random.default_rng(1), "a": np.asarray, "numpy": numpy})


def test_no_choice_of_nothing(device):
    assert np.random.default_rng(1).choice(0, 0).shape == numpy.random.default_rng(1).choice(0, 0).shape
