"""Values that a formula may lose on the way: NaN, infinities, and the ends of types. NumPy says what is right."""

from __future__ import annotations

import warnings

import numpy
import pytest

import cupola.numpy as np

INF, NAN = numpy.inf, numpy.nan
COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
UNSIGNED = numpy.array([0, 1, 5, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 1], "u8")


def signed(char):
    info = numpy.iinfo(char)
    return numpy.array([0, 1, 5, -1, -5, info.max, info.min], char)


def both(text, **given):
    """What both namespaces make of an expression of n and these arrays."""
    found = []
    with warnings.catch_warnings(), numpy.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for n in (np, numpy):
            arrays = {name: n.asarray(one) if isinstance(one, numpy.ndarray) else one for name, one in given.items()}
            found.append(eval(text, {"n": n, "inf": INF, "nan": NAN, **arrays}))
    return found


def same(ours, right):
    if isinstance(right, (tuple, list)):
        assert len(ours) == len(right)
        for one, other in zip(ours, right, strict=True):
            same(one, other)
        return
    ours, right = np.asnumpy(ours), numpy.asarray(right)
    assert (ours.dtype, ours.shape) == (right.dtype, right.shape)
    if right.dtype.kind in "fc":
        parts = ("real", "imag") if right.dtype.kind == "c" else ("real",)
        for part in parts:
            one, other = getattr(ours, part), getattr(right, part)
            numpy.testing.assert_allclose(one, other, rtol=64 * numpy.finfo(right.dtype).eps, atol=0)
    else:
        numpy.testing.assert_array_equal(ours, right)


# --- uint64 beside signed integers ----------------------------------------------------------------------------------


@pytest.mark.parametrize("char", "bhil")
@pytest.mark.parametrize("name", COMPARISONS)
def test_unsigned_numbers_of_64_bits_are_compared_with_signed_ones(device, name, char):
    given = {"u": UNSIGNED, "s": signed(char)}
    same(*both(f"n.{name}.outer(u, s), n.{name}.outer(s, u), n.{name}(u, s), n.{name}(s, u)", **given))
    same(*both(f"n.{name}(u, s, out=n.zeros(7, bool)), n.{name}(s, u, out=n.zeros(7, int))", **given))
    same(*both(f"n.{name}(u, s, out=n.zeros(7, bool), where=u > 1), n.{name}(u[:, None] + 0, s[::-1])", **given))
    for one in given["s"]:  # NumPy scalars, which have a type
        same(*both(f"n.{name}(u, k), n.{name}(k, u)", u=UNSIGNED, k=one))
    for one in UNSIGNED:
        same(*both(f"n.{name}(s, k), n.{name}(k, s)", s=given["s"], k=one))


def test_functions_that_compare_unsigned_numbers_with_signed_ones(device):
    given = {"u": UNSIGNED[-1:], "s": numpy.array([-1])}
    for name in ("array_equal", "array_equiv"):
        ours, right = both(f"n.{name}(u, s), n.{name}(u[:0], s[:0]), n.{name}(s - s, u - u)", **given)
        assert ours == right == (False, True, True)
    same(*both("n.where(u > s, 1, 2), n.where(s < u, s, 7), (u == s).any(), n.all(s != u)", **given))
    same(*both("n.less(u, -1), n.greater(u, 2**70), n.equal(s, 2**64 - 1), n.less(s, 2**63)", **given))


# --- infinities and NaN -----------------------------------------------------------------------------------------------

REALS = [
    numpy.array([3.0, NAN, 1.0, -INF, 2.0]),
    numpy.array([3.0, INF, 1.0, NAN, 2.0]),
    numpy.array([-INF, -INF, NAN, -INF]),
    numpy.array([INF, -INF, 0.5]),
    numpy.array([1.0, 2.0, 5.0]),
]
COMPLEX = [
    numpy.array([complex(a, b) for a in (2, 1, -INF, NAN) for b in (1, NAN, -3, INF)]),
    numpy.array([complex(NAN, 1), 1 + 2j, complex(1, NAN), 3 - 1j, 3 - 2j]),
    numpy.array([complex(-INF, -INF), complex(NAN, 2), complex(-INF, 3)]),
]
EXTREMES = "n.nanmax(x), n.nanmin(x), n.nanargmax(x), n.nanargmin(x), n.nanmax(x, initial=0), n.nanmin(x[None], axis=1)"
SPREADS = """
n.nanvar(x), n.nanstd(x), n.nanvar(x, ddof=1), n.nanstd(x[None], axis=1), n.nanvar(x, keepdims=True)
n.nanvar(x, where=n.isfinite(x)), n.nanvar(x, mean=1.0), n.nanmean(x), n.var(x), n.std(x)
n.median(x), n.nanmedian(x), n.median(n.stack([x, x[::-1]]), axis=1), n.nanmedian(n.stack([x, x[::-1]]), axis=0)
""".strip().splitlines()


@pytest.mark.parametrize("x", [*REALS, *COMPLEX], ids=str)
def test_extremes_without_nan(device, x):
    same(*both(EXTREMES, x=x))


@pytest.mark.parametrize("x", REALS, ids=str)
@pytest.mark.parametrize("text", SPREADS)
def test_spreads_with_infinities(device, text, x):
    same(*both(text, x=x))
    same(*both(text, x=x.astype("f4")))


def test_spreads_of_complex_numbers_with_infinities(device):
    for x in COMPLEX:
        same(*both("n.nanvar(x), n.nanstd(x)", x=x))


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_convolutions_spread_nothing(device, mode):
    sequences = [
        *REALS[:2],
        numpy.arange(6.0),
        numpy.array([1.0, INF]),
        numpy.array([NAN, 1.0, 2.0]),
        numpy.array([2.5]),
    ]
    for a in sequences:
        for v in sequences:
            same(*both(f"n.convolve(a, v, '{mode}'), n.correlate(a, v, '{mode}')", a=a, v=v))
    for a, v in (([2**62, 2**62, -5], [3, 1]), ([200, 100], [1, 2, 3]), ([True, False, True], [True, True])):
        for dtype in ("i8", "u1", "?", "f2"):
            a_of, v_of = (numpy.array(one).astype(dtype) for one in (a, v))
            same(*both(f"n.convolve(a, v[::-1], '{mode}'), n.correlate(a[::-1], v, '{mode}')", a=a_of, v=v_of))


def test_complex_numbers_with_nan_are_sorted_as_in_numpy(device):
    values = numpy.array([complex(a, b) for a in (2, 1, INF, -INF, NAN) for b in (1, NAN, -3, INF)])
    values = numpy.random.default_rng(0).permutation(numpy.tile(values, 40))
    for x in (values, values[:20], values.astype("F"), values.reshape(20, 40)):
        same(*both("n.sort(x), n.sort_complex(x), n.sort(x, axis=0)", x=x))
        order = np.argsort(np.asarray(x)).to_numpy()
        same(numpy.take_along_axis(x, order, -1), numpy.sort(x))
    same(*both("n.searchsorted(n.sort(x), x), n.searchsorted(n.sort(x), x, 'right')", x=values))
    same(*both("n.median(x)", x=values[~numpy.isnan(values)]))


POINTS = numpy.array([-INF, -1, 0, 0.5, 1, 1.5, 2, 2.5, 3, 4, INF, NAN, 1e308])


PLACES = ([0.0, 1, 2, 3], [-INF, 0, 1, INF], [0.0, 1, 1, 2], [1.0, 1, 1, 1], [0, 1e308, 1.5e308, 1.7e308])


@pytest.mark.parametrize("places", PLACES, ids=str)
def test_interpolation_between_infinities(device, places):
    for values in (
        [0.0, 1, 2, 3],
        [0, INF, 2, 3],
        [0, 1, NAN, 3],
        [-INF, -INF, 1, 2],
        [INF] * 4,
        [1e308, -1e308, 1e308, 5],
    ):
        given = {"x": POINTS, "p": numpy.array(places), "f": numpy.array(values)}
        same(*both("n.interp(x, p, f), n.interp(x, p, f, left=-7, right=9)", **given))
    same(*both("n.interp(x, p, f + 2j * f)", x=POINTS, p=numpy.array(places), f=numpy.array([1.0, INF, 2, 3])))
    same(*both("n.interp(x, [1.0], [5.0]), n.interp(x, [1.0, 2.0], [5.0, 6.0])", x=POINTS))


FORMULAS = """
n.linspace(x[0], x[1], 4), n.linspace(x, x[::-1], 4), n.linspace(x, x, 3), n.linspace(0, x, 3, endpoint=False)
n.linspace(x, 1, 1), n.logspace(x, 2, 3), n.linspace(x, 1, 4, retstep=True), n.linspace(x, [1, 2, 3], 3, axis=-1)
n.average(x), n.average(x, weights=[1.0, 0, 2]), n.average(x, weights=[1.0, inf, 2]), n.ptp(x), n.mean(x)
n.gradient(x), n.gradient(x, 2.0, edge_order=2), n.gradient(x, [0.0, 1, 3]), n.diff(x), n.ediff1d(x)
n.trapezoid(x), n.trapezoid(x, [0.0, 1, inf]), n.cov(x), n.cov(x, x[::-1]), n.corrcoef(x, x[::-1])
n.pad(x, 2, "mean"), n.pad(x, 2, "median"), n.pad(x, 2, "linear_ramp", end_values=1), n.pad(x, (1, 2), "maximum")
n.pad(x, 3, "reflect", reflect_type="odd"), n.pad(x, 3, "symmetric", reflect_type="odd")
n.pad(x, 1, constant_values=inf), n.round(x, 1), n.round(x, -1), n.round(x, 320), n.round(x, -320), n.round(x, 300)
n.round(x + 1j, 1), n.round(x + 1j, 320), n.isclose(x, x[::-1]), n.isclose(x, inf), n.isclose(x, x, equal_nan=True)
n.isclose(x, 1, rtol=inf), n.isclose(x, 1, atol=inf)
n.unwrap(x), n.sinc(x), n.angle(x), n.nan_to_num(x, posinf=1, neginf=-1, nan=7), n.clip(x, 0, inf), n.clip(x, nan, 1)
n.histogram(x, [0, 1, 2, inf]), n.histogram(x, 3, (0, 3), weights=x), n.bincount([0, 1, 1], weights=x)
""".strip().splitlines()


@pytest.mark.parametrize("text", FORMULAS)
@pytest.mark.parametrize(
    "values", [[0.0, INF, 2], [-INF, -INF, 1], [INF, INF, INF], [0.5, NAN, -3], [1e308, -1e308, 1e308]], ids=str
)
def test_formulas_keep_infinities(device, text, values):
    same(*both(text, x=numpy.array(values)))


def test_rounding_of_halves(device):
    same(*both("n.round(x, 5), n.round(x, 1), n.round(x, -5), n.round(x, 39)", x=numpy.array([1.53, 300, INF], "f2")))


# --- quantiles --------------------------------------------------------------------------------------------------------

METHODS = (
    "linear",
    "lower",
    "higher",
    "midpoint",
    "nearest",
    "inverted_cdf",
    "averaged_inverted_cdf",
    "hazen",
    "weibull",
)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1"])
def test_quantiles_of_each_type(device, dtype, method):
    x = (numpy.random.default_rng(0).normal(size=9) * 20).astype(dtype)
    for q in (0.1, 1 / 3, 1, numpy.float32(0.3), [0.1, 0.5, 0.99], numpy.array([0.25, 0.75], "f2")):
        same(*both(f"n.quantile(x, q, method={method!r}), n.nanquantile(x, q, method={method!r})", x=x, q=q))
    same(*both(f"n.percentile(x, 12.5, method={method!r}), n.nanpercentile(x, [10, 90], method={method!r})", x=x))


def test_quantiles_at_infinities(device):
    """Where NumPy has the difference of two infinities, an element that is the quantile is it here."""
    x = np.asarray([1.0, INF, INF, NAN])
    for method in ("linear", "lower", "higher", "nearest", "midpoint", "hazen", "weibull"):
        found = np.nanquantile(x, [0.5, 1], method=method)
        assert found.tolist() == np.quantile(x[:3], [0.5, 1], method=method).tolist() == [INF, INF], method
    assert np.nanquantile(np.asarray([NAN, 1, 2, INF]), 0.5).item() == 2


# --- integers at the ends of their types ------------------------------------------------------------------------------

ENDS = {
    "b": [-128, 127, 100], "B": [255, 0, 200], "h": [-32768, 32767, 30000], "i": [-2147483000, 2147483000, 7],
    "l": [-(2**62), 2**62, 3], "L": [2**63, 0, 2**62], "?": [True, False, True],
}  # fmt: skip
WRAPPED = """
n.linspace(x, x[::-1], 5), n.linspace(x[0], x[1], 5), n.linspace(x, x[::-1], 4, endpoint=False), n.linspace(x, 1, 1)
n.linspace(x, x[::-1], 3, dtype=x.dtype), n.linspace(x, x.astype("f4")[::-1], 3), n.linspace(x, 7, 3, retstep=True)
n.logspace(x / x.max(), x[::-1] / x.max(), 3), n.logspace(x % 3, [1, 2, 3], 3, base=[2.0, 3, 4])
n.average(x, weights=x), n.average(x, weights=x.astype("f4")), n.average(x), n.mean(x), n.var(x), n.std(x)
n.gradient(x * 1), n.gradient(x * 1, edge_order=2), n.trapezoid(x), n.cov(x, x[::-1]), n.interp(x, [0, 100], [0, 1])
n.round(x, -1), n.round(x, -3), n.round(x, -25), n.round(x, 2), n.round(x, 320)
n.median(x), n.nanmedian(x), n.isclose(x, x[::-1]), n.ptp(x * 1), n.digitize(x, [0, 100])
n.min_scalar_type(x), n.min_scalar_type(x[0]), n.min_scalar_type(x[1:2])
""".strip().splitlines()


@pytest.mark.parametrize("char", ENDS)
@pytest.mark.parametrize("text", WRAPPED)
def test_integers_do_not_wrap_on_the_way(device, text, char):
    if char == "?" and "gradient" in text:
        text = "n.trapezoid(x), n.cov(x, x[::-1])"
    if char == "?":
        text = "n.round(x)" if "round" in text else text
    ours, right = both(text, x=numpy.array(ENDS[char], char))
    if "min_scalar_type" in text:
        assert ours == right
    else:
        same(ours, right)


def test_sequences_of_each_pair_of_types(device):
    for one, other in (("u1", "u1"), ("u1", "i1"), ("u8", "i8"), ("u1", "f4"), ("f2", "u8"), ("i2", "c8"), ("?", "u1")):
        given = {"a": numpy.array([10, 20]).astype(one), "b": numpy.array([0, 5]).astype(other)}
        same(*both("n.linspace(a, b, 3), n.linspace(b, a, 4, axis=-1), n.linspace(a, b, 2, endpoint=False)", **given))


def test_sequences_that_the_device_computes(device):
    """Long ones: halves have no places above 65504, and a step may be too small for its type."""
    same(*both("n.arange(0, 7000, 0.1, dtype='f2')[::100], n.arange(20000, dtype='i1')[::999]"))
    same(*both("n.linspace(0, 5e-324, 20001)[::5000], n.linspace(0, x, 5)", x=numpy.array([5e-324, 1.0])))
    for n in (np, numpy):
        with pytest.raises(ValueError, match="non-negative"):
            n.linspace(n.zeros(2), 1, -1)


def test_bins_that_no_type_has(device):
    for n in (np, numpy):
        with pytest.raises(ValueError, match="Too many bins"):
            n.histogram(n.asarray([1e308, -1e308]), 4)
        with pytest.raises(OverflowError):
            n.pad(n.asarray([1, 2], dtype="i1"), 1, constant_values=300)
