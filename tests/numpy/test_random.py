"""RandomState and the older functions: names, defaults, shapes, types, errors and statistics are those of NumPy."""

from __future__ import annotations

import itertools
import pickle
import re

import numpy
import pytest

import cupola.numpy as np

THERE = numpy.random.RandomState

# Of each method whose results are numbers: parameters.
PARAMETERS = {
    "beta": (2.0, 0.7), "binomial": (20, 0.3), "chisquare": (3,), "exponential": (2.0,), "f": (4, 9),
    "gamma": (2.5, 2.0), "geometric": (0.3,), "gumbel": (1.0, 2.0), "laplace": (1.0, 2.0), "logistic": (1.0, 2.0),
    "lognormal": (0.5, 0.4), "logseries": (0.8,), "negative_binomial": (3, 0.4), "noncentral_chisquare": (3, 2.0),
    "noncentral_f": (3, 9, 1.5), "normal": (1.0, 2.0), "pareto": (3.0,), "poisson": (3.5,), "power": (2.0,),
    "rayleigh": (2.0,), "standard_cauchy": (), "standard_exponential": (), "standard_gamma": (0.6,),
    "standard_normal": (), "standard_t": (4,), "triangular": (-1.0, 0.5, 2.0), "uniform": (-1.0, 3.0),
    "wald": (2.0, 3.0), "weibull": (1.5,), "random_sample": (), "random": (), "tomaxint": (), "randint": (3, 40),
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
    """Three methods are missing, whose errors say what to do."""
    missing = {name for name in dir(THERE) if not name.startswith("_")} - set(dir(np.random.RandomState))
    assert missing == {"hypergeometric", "vonmises", "zipf"}
    for name, where in itertools.product(missing, (np.random, np.random.RandomState())):
        with pytest.raises(AttributeError, match=rf"{name}.* on the host, and asarray"):
            getattr(where, name)
    assert set(np.random.__all__) >= {"RandomState", "f", "get_state", "multinomial", "set_state", "wald"}


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
