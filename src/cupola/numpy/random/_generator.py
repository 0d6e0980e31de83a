"""The generator: bits of Philox, and the distributions that are made of them."""

from __future__ import annotations

import operator
import sys
import threading
import warnings
from typing import Any

import numpy

import cupola.numpy._ufunc  # noqa: F401 - fills UFUNCS
from cupola.numpy._evaluate import current_stream
from cupola.numpy._index import getitem
from cupola.numpy._known import UFUNCS, nearest
from cupola.numpy._lazy import Node, compute_into, reduce, write
from cupola.numpy._ndarray import empty, into, known_type, ndarray, on_device, one_axis
from cupola.numpy.functions._choosing import where
from cupola.numpy.functions._creation import arange
from cupola.numpy.functions._products import matmul
from cupola.numpy.functions._reductions import cumsum
from cupola.numpy.functions._shapes import moveaxis
from cupola.numpy.functions._sorting import argsort, searchsorted
from cupola.numpy.linalg import cholesky, eigh
from cupola.numpy.random._checks import PARAMETERS, checked, fits

_WORD = numpy.dtype("uint64")
_RARE = ("hypergeometric(...)", "vonmises(...)", "zipf(...)")


class Philox:
    """Philox(seed=None)\n--\n\nRandom bits by Philox4x32-10, as a function of a key and a counter.

    Parameters
    ----------
    seed : optional
        What ``numpy.random.SeedSequence`` takes, or such a sequence.

    Attributes
    ----------
    state : dict
        Key and counter, to go on from there.
    """

    def __init__(self, seed: Any = None) -> None:
        self._seed_seq = seed if isinstance(seed, numpy.random.SeedSequence) else numpy.random.SeedSequence(seed)
        self._key = int(self._seed_seq.generate_state(1, numpy.uint64)[0])
        self._counter = 0
        self.lock = threading.Lock()

    @property
    def seed_seq(self) -> numpy.random.SeedSequence:
        """numpy.random.SeedSequence: what the key comes from."""
        return self._seed_seq

    @property
    def state(self) -> dict[str, Any]:
        """dict: key and counter, to go on from there."""
        return {"bit_generator": "Philox", "key": self._key, "counter": self._counter}

    @state.setter
    def state(self, value: dict[str, Any]) -> None:
        self._key, self._counter = int(value["key"]), int(value["counter"])

    def spawn(self, count: int) -> list[Philox]:
        """Generators of independent sequences."""
        return [Philox(one) for one in self._seed_seq.spawn(count)]

    def take(self, count: int) -> tuple[int, int]:
        """The key, and the first of `count` places in the sequence that nobody else gets."""
        with self.lock:
            first, self._counter = self._counter, self._counter + count
        return self._key, first % 2**64

    def __reduce__(self) -> Any:
        return _restored, (self._seed_seq, self.state)


def _restored(seed: Any, state: Any) -> Philox:
    made = Philox(seed)
    made.state = state
    return made


def default_rng(seed: Any = None) -> Generator:
    """A generator of random numbers, as ``numpy.random.default_rng``."""
    if isinstance(seed, Generator):
        return seed
    return Generator(seed if isinstance(seed, Philox) else Philox(seed))


def shape_of(size: Any) -> tuple[int, ...]:
    """The extents that `size` means."""
    if size is None:
        return ()
    return (operator.index(size),) if not isinstance(size, (tuple, list)) else tuple(size)


class Generator:
    """Generator(bit_generator)\n--\n\nRandom numbers on the device, as ``numpy.random.Generator``.

    Parameters
    ----------
    bit_generator : Philox
        Where the bits come from.

    Notes
    -----
    Threads may share it; which of them gets which numbers then depends on timing. Without `size`, results have no
    dimensions.
    """

    def __init__(self, bit_generator: Philox) -> None:
        if not isinstance(bit_generator, Philox):
            raise TypeError(f"the bits come from cupola.numpy.random.Philox, not from {type(bit_generator).__name__}")
        self._bits = bit_generator

    @property
    def bit_generator(self) -> Philox:
        """Philox: where the bits come from."""
        return self._bits

    def spawn(self, count: int) -> list[Generator]:
        """Generators of independent sequences."""
        return [Generator(one) for one in self._bits.spawn(count)]

    def __reduce__(self) -> Any:
        return Generator, (self._bits,)

    def __repr__(self) -> str:
        return f"Generator(Philox) at {self._bits.state['counter']}"

    def __getattr__(self, name: str) -> Any:
        near = "" if name.startswith("_") else nearest(name, dir(Generator))
        raise AttributeError(f"'Generator' object has no attribute {name!r}{near}")

    # --- inside ---------------------------------------------------------------------------------------------------

    def _draw(self, form: str, size: Any, dtype: Any, *parameters: Any, out: ndarray | None = None) -> ndarray:
        """New elements: `form` is the call of a method of random_source, or of rare_source where it is one of its.

        The parameters are the arguments in its place of ``(...)``, or ``{2}``, ``{3}`` and so on.
        """
        to = known_type(dtype)
        given = [
            value if isinstance(value, ndarray) else numpy.asarray(value, numpy.float64)[()] for value in parameters
        ]
        given = [on_device(value.tolist()) if isinstance(value, numpy.ndarray) else value for value in given]
        shapes = [getattr(value, "shape", ()) for value in given]
        shape = shape_of(size) if size is not None else numpy.broadcast_shapes(*shapes)
        if out is not None:
            if size is not None and out.shape != shape:
                raise ValueError("size must match out.shape when used together")
            if out.dtype != to:
                raise TypeError(f"Supplied output array has the wrong type. Expected {to}, got {out.dtype}")
            shape = out.shape
        fits(shape, *shapes)
        made = empty(shape, to)
        key, first = self._bits.take(made.size)
        names = "".join([f", {{{k + 2}}}" for k in range(len(given))])
        node = Node(
            "random",
            (numpy.uint64(key), numpy.uint64(first), *[_plain(value) for value in given]),
            (_WORD, _WORD, *[numpy.dtype(float)] * len(given)),
            to,
            shape,
            f"{'rare' if form in _RARE else 'random'}_source({{0}}, {{1}} + i).{form}".replace(
                "(...)", f"({names.removeprefix(', ')})"
            ),
        )
        compute_into(made._plain(), node, current_stream())
        return into(out, made)

    # --- uniform ----------------------------------------------------------------------------------------------------

    def random(self, size: Any = None, dtype: Any = numpy.float64, out: ndarray | None = None) -> ndarray:
        """Uniform numbers from 0 to below 1."""
        to = _real(dtype, "random")
        if to.char == "f":  # 24 bits, so that no number is rounded to 1
            return self._draw("single()", size, to, out=out)
        return self._draw("uniform()", size, to, out=out)

    def integers(
        self, low: Any, high: Any = None, size: Any = None, dtype: Any = numpy.int64, endpoint: bool = False
    ) -> ndarray:
        """Integers from `low` to below `high`, or to `high` with `endpoint`."""
        if high is None:
            low, high = 0, low
        to = known_type(dtype)
        if to.kind not in "biu":
            raise TypeError(f"Unsupported dtype {to!r} for integers")
        if isinstance(low, (ndarray, list, tuple)) or isinstance(high, (ndarray, list, tuple)):
            on_host = not isinstance(low, ndarray) and not isinstance(high, ndarray)
            if on_host and (numpy.asarray(low) > numpy.asarray(high) - (not endpoint)).any():
                raise ValueError("low >= high")
            low, high = (on_device(value).astype(numpy.int64, copy=False) for value in (low, high))
            span = (high - low + int(endpoint)).astype(_WORD)
            result: ndarray = (self._below(span, _size(size, span)) + low.astype(_WORD)).astype(to)
            return result
        # Fractions of numbers that are no integers do not count.
        low, high = (int(v) if isinstance(v, (float, numpy.floating)) else operator.index(v) for v in (low, high))
        last = high if endpoint else high - 1
        if last < low:
            raise ValueError("low >= high")
        least, greatest = (0, 1) if to.kind == "b" else (numpy.iinfo(to).min, numpy.iinfo(to).max)
        if not least <= low <= last <= greatest:
            raise ValueError(f"{'low' if low < least else 'high'} is out of bounds for {to}")
        span = last - low + 1
        bits = self._draw("bits()", size, _WORD) if span == 2**64 else self._below(span, size)
        return (bits + numpy.uint64(low % 2**64)).astype(to)

    def _below(self, span: Any, size: Any) -> ndarray:
        made = empty(shape_of(size), _WORD)
        key, first = self._bits.take(made.size)
        operands = (
            numpy.uint64(key), numpy.uint64(first), _plain(span) if isinstance(span, ndarray) else numpy.uint64(span),
        )  # fmt: skip
        form = "random_source({0}, {1} + i).below({2})"
        compute_into(made._plain(), Node("random", operands, (_WORD,) * 3, _WORD, made.shape, form), current_stream())
        return made

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> ndarray:
        """Uniform numbers from `low` to below `high`."""
        low, high = _parameter(low), _parameter(high)
        return self._draw("uniform() * {2} + {3}", size, float, high - low, low)

    def bytes(self, length: int) -> bytes:
        """Random bytes. Waits for them."""
        return self.integers(0, 256, length, numpy.uint8).to_numpy().tobytes()

    # --- of real numbers --------------------------------------------------------------------------------------------

    def standard_normal(self, size: Any = None, dtype: Any = numpy.float64, out: ndarray | None = None) -> ndarray:
        """Numbers of the standard normal distribution."""
        return self._draw("normal()", size, _real(dtype, "standard_normal"), out=out)

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> ndarray:
        """Numbers of a normal distribution."""
        loc, scale = _parameter(loc), _parameter(scale)
        return self._draw("normal() * {2} + {3}", size, float, scale, loc)

    def lognormal(self, mean: Any = 0.0, sigma: Any = 1.0, size: Any = None) -> ndarray:
        """Numbers whose logarithm is of a normal distribution."""
        result: ndarray = UFUNCS["exp"](self.normal(mean, sigma, size))
        return result

    def standard_exponential(
        self, size: Any = None, dtype: Any = numpy.float64, method: str = "zig", out: ndarray | None = None
    ) -> ndarray:
        """Numbers of the exponential distribution of mean 1. What `method` names makes no difference."""
        return self._draw("exponential()", size, _real(dtype, "standard_exponential"), out=out)

    def exponential(self, scale: Any = 1.0, size: Any = None) -> ndarray:
        """Numbers of an exponential distribution."""
        return self._draw("exponential() * {2}", size, float, _parameter(scale))

    def standard_gamma(
        self, shape: Any, size: Any = None, dtype: Any = numpy.float64, out: ndarray | None = None
    ) -> ndarray:
        """Numbers of the gamma distribution of scale 1."""
        return self._draw("gamma(...)", size, _real(dtype, "standard_gamma"), shape, out=out)

    def gamma(self, shape: Any, scale: Any = 1.0, size: Any = None) -> ndarray:
        """Numbers of a gamma distribution."""
        scale = _parameter(scale)
        result: ndarray = self.standard_gamma(shape, _size(size, _parameter(shape), scale)) * scale
        return result

    def chisquare(self, df: Any, size: Any = None) -> ndarray:
        """Numbers of a chi-square distribution."""
        half = _parameter(df) / 2
        return self.standard_gamma(half, _size(size, half)) * 2.0

    def noncentral_chisquare(self, df: Any, nonc: Any, size: Any = None) -> ndarray:
        """Numbers of a noncentral chi-square distribution, a mixture of central ones."""
        df, nonc = _parameter(df), _parameter(nonc)
        size = _size(size, df, nonc)
        largest = sys.float_info.max
        finite = UFUNCS["minimum"](nonc, largest) if isinstance(nonc, ndarray) else min(nonc, largest)
        df = df + 0.0 * finite  # which is no number if that is none
        made = self.chisquare(df + 2.0 * self._draw("poisson(...)", size, float, finite / 2.0), size)
        if not isinstance(nonc, ndarray) and nonc != numpy.inf:
            return made
        result: ndarray = where(on_device(nonc) == numpy.inf, numpy.inf, made)
        return result

    def f(self, dfnum: Any, dfden: Any, size: Any = None) -> ndarray:
        """Numbers of Fisher's distribution, the quotient of two variances."""
        dfnum, dfden = _parameter(dfnum), _parameter(dfden)
        size = _size(size, dfnum, dfden)
        result: ndarray = (self.chisquare(dfnum, size) / dfnum) / (self.chisquare(dfden, size) / dfden)
        return result

    def noncentral_f(self, dfnum: Any, dfden: Any, nonc: Any, size: Any = None) -> ndarray:
        """Numbers of the noncentral distribution of Fisher."""
        dfnum, dfden, nonc = _parameter(dfnum), _parameter(dfden), _parameter(nonc)
        size = _size(size, dfnum, dfden, nonc)
        above = self.noncentral_chisquare(dfnum, nonc, size) / dfnum
        result: ndarray = above / (self.chisquare(dfden, size) / dfden)
        return result

    def wald(self, mean: Any, scale: Any, size: Any = None) -> ndarray:
        """Numbers of a Wald distribution (Michael, Schucany and Haas, 1976)."""
        mean, scale = _parameter(mean), _parameter(scale)
        size = _size(size, mean, scale)
        y = mean * UFUNCS["square"](self.standard_normal(size)) / (2.0 * scale)
        # The smaller root of the quadratic equation, without a difference of numbers that are nearly the same.
        x = mean / (1.0 + y + UFUNCS["sqrt"](y * (y + 2.0)))
        result: ndarray = where(self.random(size) * (mean + x) <= mean, x, mean * mean / x)
        return result

    def beta(self, a: Any, b: Any, size: Any = None) -> ndarray:
        """Numbers of a beta distribution."""
        a, b = _parameter(a), _parameter(b)
        size = _size(size, a, b)
        one, other = self._logs_of_gammas(a, size), self._logs_of_gammas(b, size)
        # Even the logarithms may be below the smallest number: then it is one or the other.
        first = self.random(size) * (a + b) < a
        result: ndarray = where(
            (one == -numpy.inf) & (other == -numpy.inf), first, 1.0 / (1.0 + UFUNCS["exp"](other - one))
        )
        return result

    def _logs_of_gammas(self, shapes: Any, size: Any) -> ndarray:
        """Logarithms of gamma variates, which are below the smallest number where shapes are small."""
        u = self._draw("between()", size, float)
        result: ndarray = UFUNCS["log"](self._draw("gamma(...)", size, float, shapes + 1.0)) + UFUNCS["log"](u) / shapes
        return result

    def dirichlet(self, alpha: Any, size: Any = None) -> ndarray:
        """Vectors of a Dirichlet distribution."""
        weights = on_device(alpha).astype(float, copy=False)
        if weights.ndim != 1:
            raise ValueError(f"alpha has one dimension, not {weights.ndim}")
        shape = (*shape_of(size), weights.size)
        if not weights.size:
            return empty(shape, float)
        logs = self._logs_of_gammas(weights, shape)
        top = reduce("max", logs, -1, None, None, True)
        parts = UFUNCS["exp"](logs - where(top == -numpy.inf, 0.0, top))
        result: ndarray = parts / UFUNCS["maximum"](reduce("sum", parts, -1, None, None, True), 1.0)
        return result

    def standard_cauchy(self, size: Any = None) -> ndarray:
        """Numbers of the standard Cauchy distribution."""
        return self.standard_normal(size) / self.standard_normal(size)

    def standard_t(self, df: Any, size: Any = None) -> ndarray:
        """Numbers of Student's distribution."""
        df = _parameter(df)
        size = _size(size, df)
        spread: ndarray = UFUNCS["sqrt"](self.chisquare(df, size) / df)
        return self.standard_normal(size) / spread

    def laplace(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> ndarray:
        """Numbers of a Laplace distribution."""
        loc, scale = _parameter(loc), _parameter(scale)
        u = self._draw("positive()", _size(size, loc, scale), float) - 0.5
        result: ndarray = loc - scale * UFUNCS["sign"](u) * UFUNCS["log1p"](-2 * UFUNCS["minimum"](abs(u), 0.5 - 1e-17))
        return result

    def logistic(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> ndarray:
        """Numbers of a logistic distribution."""
        loc, scale = _parameter(loc), _parameter(scale)
        u = self._draw("between()", _size(size, loc, scale), float)
        result: ndarray = loc + scale * UFUNCS["log"](u / (1 - u))
        return result

    def gumbel(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> ndarray:
        """Numbers of a Gumbel distribution."""
        loc, scale = _parameter(loc), _parameter(scale)
        u = self._draw("between()", _size(size, loc, scale), float)
        result: ndarray = loc - scale * UFUNCS["log"](-UFUNCS["log"](u))
        return result

    def rayleigh(self, scale: Any = 1.0, size: Any = None) -> ndarray:
        """Numbers of a Rayleigh distribution."""
        scale = _parameter(scale)
        result: ndarray = scale * UFUNCS["sqrt"](2.0 * self.standard_exponential(_size(size, scale)))
        return result

    def weibull(self, a: Any, size: Any = None) -> ndarray:
        """Numbers of a Weibull distribution."""
        a = _parameter(a)
        made = self.standard_exponential(_size(size, a))
        if not isinstance(a, ndarray):
            return made * 0.0 if a == 0 else made ** (1.0 / a)
        result: ndarray = where(a == 0.0, 0.0, made ** (1.0 / a))
        return result

    def pareto(self, a: Any, size: Any = None) -> ndarray:
        """Numbers of a Pareto distribution of the second kind."""
        a = _parameter(a)
        result: ndarray = UFUNCS["expm1"](self.standard_exponential(_size(size, a)) / a)
        return result

    def power(self, a: Any, size: Any = None) -> ndarray:
        """Numbers whose density is a power."""
        a = _parameter(a)
        result: ndarray = self._draw("positive()", _size(size, a), float) ** (1.0 / a)
        return result

    def triangular(self, left: Any, mode: Any, right: Any, size: Any = None) -> ndarray:
        """Numbers of a triangular distribution."""
        left, mode, right = _parameter(left), _parameter(mode), _parameter(right)
        u, width = self.random(_size(size, left, mode, right)), right - left
        rising = left + UFUNCS["sqrt"](u * width * (mode - left))
        falling = right - UFUNCS["sqrt"]((1 - u) * width * (right - mode))
        result: ndarray = where(u * width < mode - left, rising, falling)
        return result

    def multivariate_normal(
        self, mean: Any, cov: Any, size: Any = None, check_valid: str = "warn", tol: float = 1e-8, *,
        method: str = "svd",
    ) -> ndarray:  # fmt: skip
        """Vectors of a normal distribution, whose covariances may be singular but by ``method="cholesky"``.

        The check waits for the device; ``check_valid="ignore"`` is none. Methods "svd" and "eigh" are one here.
        """
        if method not in ("svd", "eigh", "cholesky"):
            raise ValueError("method must be one of {'eigh', 'svd', 'cholesky'}")
        center, spread = center_and_spread(mean, cov)
        factor = root_of(spread, check_valid, tol) if method != "cholesky" else cholesky(spread)
        return matmul(self.standard_normal((*shape_of(size), center.size)), factor.T) + center

    def vonmises(self, mu: Any, kappa: Any, size: Any = None) -> ndarray:
        """Angles from -pi to pi, radians, of a von Mises distribution."""
        return self._draw("vonmises(...)", size, float, mu, kappa)

    # --- of integers ------------------------------------------------------------------------------------------------

    def poisson(self, lam: Any = 1.0, size: Any = None) -> ndarray:
        """Numbers of a Poisson distribution."""
        return self._draw("poisson(...)", size, numpy.int64, lam)

    def binomial(self, n: Any, p: Any, size: Any = None) -> ndarray:
        """Numbers of a binomial distribution."""
        return self._draw("binomial(...)", size, numpy.int64, _whole(n), p)

    def geometric(self, p: Any, size: Any = None) -> ndarray:
        """How many trials there are up to the first success."""
        p = _parameter(p)
        u = self._draw("between()", _size(size, p), float)
        result: ndarray = UFUNCS["maximum"](UFUNCS["ceil"](UFUNCS["log"](u) / UFUNCS["log1p"](-p)), 1.0).astype(
            numpy.int64
        )
        return result

    def logseries(self, p: Any, size: Any = None) -> ndarray:
        """Numbers of a logarithmic series distribution (Kemp, 1981)."""
        p = _parameter(p)
        size = _size(size, p)
        u, v = self._draw("between()", size, float), self._draw("between()", size, float)
        q = -UFUNCS["expm1"](u * UFUNCS["log1p"](-p))
        large = UFUNCS["maximum"](UFUNCS["floor"](1.0 + UFUNCS["log"](v) / UFUNCS["log"](q)), 1.0)
        result: ndarray = where(v <= q * q, large, where(v <= q, 2.0, 1.0)).astype(numpy.int64)
        return result

    def zipf(self, a: Any, size: Any = None) -> ndarray:
        """Numbers of a Zipf distribution."""
        return self._draw("zipf(...)", size, numpy.int64, a)

    def hypergeometric(self, ngood: Any, nbad: Any, nsample: Any, size: Any = None) -> ndarray:
        """How many of a sample of `nsample` are of the `ngood`, and not of the `nbad`."""
        return self._draw("hypergeometric(...)", size, numpy.int64, *map(_whole, (ngood, nbad, nsample)))

    def multivariate_hypergeometric(
        self, colors: Any, nsample: int, size: Any = None, method: str = "marginals"
    ) -> ndarray:
        """How many of a sample are of each color: one hypergeometric distribution after the other.

        What `method` names makes no difference.
        """
        if method not in ("count", "marginals"):
            raise ValueError('method must be "count" or "marginals".')
        counts = on_device(colors).astype(float, copy=False)
        if counts.ndim != 1:
            raise ValueError(f"colors has one dimension, not {counts.ndim}")
        kinds = counts.shape[0]
        behind = reduce("sum", counts, None, None, None, False) - cumsum(counts)
        left = empty(shape_of(size), float)
        write(left, numpy.float64(operator.index(nsample)))
        made = empty((*left.shape, kinds), numpy.int64)
        for k in range(kinds):  # of the last one there is the rest
            part = self.hypergeometric(counts._part(k), behind._part(k), left, left.shape)
            write(made._part((..., k)), part)
            left = left - part
        return made

    def multinomial(self, n: Any, pvals: Any, size: Any = None) -> ndarray:
        """How often each of several things happens in `n` experiments: a binomial distribution after the other."""
        chances = on_device(pvals).astype(float, copy=False)
        if chances.ndim != 1:
            raise ValueError(f"pvals has one dimension, not {chances.ndim}")
        kinds = chances.shape[0]
        count = _parameter(n)
        left = empty(_size(size, count), float)
        write(left, count if isinstance(count, ndarray) else numpy.float64(count))
        made = empty((*left.shape, kinds), numpy.int64)
        totals = 1.0 - (cumsum(chances) - chances)  # of this kind and those behind it; the last one gets the rest
        for k in range(kinds - 1):
            share = UFUNCS["minimum"](chances._part(k) / UFUNCS["maximum"](totals._part(k), 1e-300), 1.0)
            part = self.binomial(left, share.astype(float), left.shape)
            write(made._part((..., k)), part)
            left = left - part
        if kinds:
            write(made._part((..., kinds - 1)), left)
        return made

    def negative_binomial(self, n: Any, p: Any, size: Any = None) -> ndarray:
        """How many failures there are up to the n-th success."""
        n, p = _parameter(n), _parameter(p)
        if not isinstance(p, ndarray):
            p = numpy.float64(p)  # which may be zero: there is no end then
        with numpy.errstate(divide="ignore"):
            scale = (1 - p) / p
        size = _size(size, n, scale)
        return self._draw("poisson(...)", size, numpy.int64, self._draw("gamma(...)", size, float, n) * scale)

    # --- orders -----------------------------------------------------------------------------------------------------

    def permutation(self, x: Any, axis: int = 0) -> ndarray:
        """Elements, or the numbers below an integer, in a random order."""
        values = arange(x) if isinstance(x, (int, numpy.integer)) else on_device(x)
        axis = one_axis(axis, values.ndim)
        order = argsort(self._draw("bits()", values.shape[axis], _WORD))
        return getitem(values, (*[slice(None)] * axis, order))

    def permuted(self, x: Any, axis: int | None = None) -> ndarray:
        """Elements with each row along an axis in a random order of its own."""
        values = on_device(x)
        if axis is None:
            return self.permutation(values.reshape(-1)).reshape(values.shape)
        moved = moveaxis(values, axis, -1)
        order = argsort(self._draw("bits()", moved.shape, _WORD), -1)
        rows = getitem(
            moved.reshape((-1, moved.shape[-1])),
            (arange(order.size // max(moved.shape[-1], 1)).reshape((-1, 1)), order.reshape((-1, moved.shape[-1]))),
        )
        return moveaxis(rows.reshape(moved.shape), -1, axis)

    def shuffle(self, x: ndarray, axis: int = 0) -> None:
        """Bring elements into a random order in place."""
        if numpy.ndim(x) == 0:
            raise TypeError("len() of unsized object: there is nothing to bring into an order")
        write(x, self.permutation(x, axis))

    def choice(
        self, a: Any, size: Any = None, replace: bool = True, p: Any = None, axis: int = 0, shuffle: bool = True
    ) -> ndarray:
        """Elements chosen at random, or numbers below an integer."""
        number = isinstance(a, (int, numpy.integer))
        values = None if number else on_device(a)
        if values is not None and values.ndim == 0:
            raise ValueError(f"a must be a sequence or an integer, not {type(a)}")
        count = int(a) if number else values.shape[axis] if values is not None else 0
        shape = shape_of(size)
        wanted = 1
        for extent in shape:
            wanted *= extent
        if count <= 0 and wanted:
            raise ValueError("a cannot be empty unless no samples are taken")
        if isinstance(p, ndarray) and p.shape != (count,):
            raise ValueError("a and p must have same size")
        if p is not None and not isinstance(p, ndarray):
            _checker.choice(count, 0, p=p)
        if replace:
            if p is None:
                places = self.integers(0, max(count, 1), shape)
            else:
                totals = cumsum(on_device(p).astype(float, copy=False))
                places = searchsorted(totals / totals[-1], self.random(shape), "right")
        else:
            if wanted > count:
                raise ValueError("Cannot take a larger sample than population when replace is False")
            keys = self._draw("positive()", count, float)
            if p is not None:  # the first ones of exponential times (Efraimidis and Spirakis, 2006)
                keys = -UFUNCS["log"](keys) / on_device(p)
            places = argsort(keys)._part(slice(0, wanted)).reshape(shape)
        return places if values is None else getitem(values, (*[slice(None)] * axis, places))


def center_and_spread(mean: Any, cov: Any) -> tuple[ndarray, ndarray]:
    """The parameters of a normal distribution of vectors."""
    center, spread = on_device(mean).astype(float, copy=False), on_device(cov).astype(float, copy=False)
    if center.ndim != 1:
        raise ValueError("mean must be 1 dimensional")
    if spread.ndim != 2 or spread.shape[0] != spread.shape[1]:
        raise ValueError("cov must be 2 dimensional and square")
    if center.shape[0] != spread.shape[0]:
        raise ValueError("mean and cov must have same length")
    return center, spread


def root_of(spread: ndarray, check_valid: str, tol: float) -> ndarray:
    """A matrix whose product with its transpose is that of the covariances."""
    if check_valid not in ("warn", "raise", "ignore"):
        raise ValueError("check_valid must equal 'warn', 'raise', or 'ignore'")
    values, vectors = eigh(spread)
    if check_valid != "ignore":
        symmetric = bool((abs(spread - spread.T) <= tol).all())
        if not symmetric or float(values.min()) < -tol * max(float(values.max()), 1):
            text = "covariance is not symmetric positive-semidefinite."
            if check_valid == "raise":
                raise ValueError(text)
            warnings.warn(text, RuntimeWarning, 3)
    root: ndarray = vectors * UFUNCS["sqrt"](UFUNCS["maximum"](values, 0.0))
    return root


def _plain(value: Any) -> Any:
    if not isinstance(value, ndarray):
        return value
    value._compute_now()
    value._join()
    return value._plain()


def _parameter(value: Any) -> Any:
    """A parameter of a distribution: a number, or an array of the device."""
    if isinstance(value, (int, float, numpy.generic)):
        return float(value)
    return on_device(value).astype(float, copy=False)


def _real(dtype: Any, name: str) -> numpy.dtype:
    """The type of real numbers that are drawn."""
    to = known_type(dtype)
    if to.char not in "fd":
        raise TypeError(f"Unsupported dtype {to!r} for {name}")
    return to


def _whole(value: Any) -> Any:
    """A number without its fraction, as NumPy takes it where integers are expected."""
    return int(value) if isinstance(value, (float, numpy.floating)) else value


def _size(size: Any, *parameters: Any) -> Any:
    """The shape of results: what is asked for, or that of the parameters."""
    shapes = [getattr(value, "shape", ()) for value in parameters]
    if size is None:
        return numpy.broadcast_shapes(*shapes)
    fits(shape_of(size), *shapes)
    return size


_checker = numpy.random.default_rng(0)
for _name, _parameters in PARAMETERS.items():
    setattr(Generator, _name, checked(_checker, _name, len(_parameters), getattr(Generator, _name)))
