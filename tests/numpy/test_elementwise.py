"""Elementwise functions and operators, over tables of types, shapes and special values. NumPy says what is right."""

from __future__ import annotations

import itertools
import operator
import warnings

import numpy
import pytest

import cupola.numpy as np
from cupola.numpy._operations import ALIASES, OPERATIONS, expression

TYPES = ["?", "i1", "u4", "i8", "f2", "f8", "c8"]

# Functions of which CUDA's results may differ from those of the host's library, and by how much of the last place.
INEXACT = dict.fromkeys(
    [
        "power", "float_power", "logaddexp2", "cbrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin",
        "cos", "tan", "arcsin",
        "arccos", "arctan", "sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh", "arctan2", "hypot", "logaddexp",
        "deg2rad", "rad2deg",
    ],
    4,
)  # fmt: skip


def values_of(dtype: numpy.dtype) -> numpy.ndarray:
    """Values of a type, the special ones included."""
    if dtype.kind == "b":
        return numpy.array([False, True])
    if dtype.kind in "iu":
        info = numpy.iinfo(dtype)
        return numpy.array([0, 1, 2, 3, 5, 7, 100, info.max, info.max - 1, info.min, info.min // 2], dtype)
    if dtype.kind == "f":
        return numpy.array([0.0, -0.0, 1, -1, 0.5, -2.5, 3, 7.25, -100, 1e4, numpy.inf, -numpy.inf, numpy.nan], dtype)
    return numpy.array([0, 1, -1 + 2j, 0.5 - 0.25j, 3j, -7.5, 100 + 1j], dtype)


def same(ours: numpy.ndarray, right: numpy.ndarray, places: int = 0, *, signs: bool = True, what: str = "") -> None:
    assert ours.dtype == right.dtype, what
    assert ours.shape == right.shape, what
    if right.dtype.kind == "c" or (places and right.dtype.kind == "f"):
        eps = numpy.finfo(right.dtype).eps * max(places, 4)
        numpy.testing.assert_allclose(ours, right, rtol=eps, atol=eps / 100, err_msg=what)
    else:
        numpy.testing.assert_array_equal(ours, right, err_msg=what)
        if right.dtype.kind == "f" and signs:
            kept = ~numpy.isnan(right)
            numpy.testing.assert_array_equal(numpy.signbit(ours)[kept], numpy.signbit(right)[kept], err_msg=what)


def right(function, *operands):
    with warnings.catch_warnings(), numpy.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return function(*operands)


UNARY = [name for name in OPERATIONS if getattr(numpy, name).nin == 1]
BINARY = [name for name in OPERATIONS if getattr(numpy, name).nin == 2]


def test_tables_have_what_numpy_has():
    assert {getattr(numpy, name).nin for name in OPERATIONS} == {1, 2}
    assert all(hasattr(np, name) for name in np.__all__)
    for alias, name in ALIASES.items():
        assert getattr(np, alias) is getattr(np, name)
        if hasattr(numpy, alias) and alias not in ("degrees", "radians"):  # which are functions of their own there
            assert getattr(numpy, alias) is getattr(numpy, name)


def together(results: list[np.ndarray]) -> list[numpy.ndarray]:
    """The elements of expressions, those of a type and shape by one kernel for ten: compiling costs the most here.

    Functions of complex numbers are long, and for the compilers ten of them in a kernel are more work than ten kernels.
    """
    found: list[numpy.ndarray] = [numpy.empty(0)] * len(results)
    groups: dict[tuple[numpy.dtype, tuple[int, ...]], list[int]] = {}
    for k, one in enumerate(results):
        groups.setdefault((one.dtype, one.shape), []).append(k)
    for numbers in groups.values():
        most = 1 if results[numbers[0]].dtype.kind == "c" else 10
        for start in range(0, len(numbers), most):
            part = numbers[start : start + most]
            which = np.array(list(range(len(part)))).reshape((-1, *[1] * results[part[0]].ndim))
            chain = results[part[-1]]
            for k in reversed(range(len(part) - 1)):
                chain = np.where(which == k, results[part[k]], chain)
            rows = chain.to_numpy() if len(part) > 1 else chain.to_numpy()[None]
            for k, row in zip(part, rows, strict=True):
                found[k] = row
    return found


@pytest.mark.parametrize("code", TYPES)
def test_unary(device, code):
    values = values_of(numpy.dtype(code))
    x = np.array(values)
    names, results = [], []
    for name in UNARY:
        try:
            loop = getattr(numpy, name).resolve_dtypes((values.dtype, None))[0]
        except TypeError:
            with pytest.raises(TypeError):
                getattr(np, name)(x)
            continue
        if expression(name, loop.kind) is None:
            with pytest.raises(TypeError, match="is not in cupola.numpy yet"):
                getattr(np, name)(x)
            continue
        if values.dtype.kind in "iu" and loop.kind == "f" and code != "i1":
            continue  # the kernel of that type but for the conversion
        names.append(name)
        results.append(getattr(np, name)(x))
    for name, ours in zip(names, together(results), strict=True):
        expected = right(getattr(numpy, name), values)
        # Of zero NumPy has what the processor gives.
        first = int(name == "reciprocal" and values.dtype.kind in "iuc")
        same(ours[first:], expected[first:], INEXACT.get(name, 0), what=name)


# What the host's processor or library makes of it, and nobody else.
UNDEFINED = {
    "left_shift": lambda a, b: b >= 0,
    "right_shift": lambda a, b: b >= 0,
    "power": lambda a, b: b >= 0,
}


@pytest.mark.parametrize("code", TYPES)
def test_binary(device, code):
    values = values_of(numpy.dtype(code))
    pairs = numpy.array(list(itertools.product(values, values)), values.dtype)
    left, other = pairs[:, 0].copy(), pairs[:, 1].copy()
    x, y = np.array(left), np.array(other)
    names, results = [], []
    for name in BINARY:
        try:
            loop = getattr(numpy, name).resolve_dtypes((values.dtype, values.dtype, None))
        except TypeError:
            with pytest.raises(TypeError):
                getattr(np, name)(x, y)
            continue
        if expression(name, loop[0].kind) is None:
            with pytest.raises(TypeError, match="is not in cupola.numpy yet"):
                getattr(np, name)(x, y)
            continue
        if values.dtype.kind in "iu" and loop[0].kind == "f" and code != "i1":
            continue
        names.append(name)
        results.append(getattr(np, name)(x, y))
    for name, ours in zip(names, together(results), strict=True):
        chosen = numpy.ones(left.shape, bool)
        if name in UNDEFINED and values.dtype.kind == "i":
            chosen = UNDEFINED[name](left, other)
        if name in ("floor_divide", "remainder", "fmod") and values.dtype.kind == "f":
            chosen = numpy.isfinite(left)  # an infinite quotient is that of the standard, not NumPy's NaN
        if name == "divide" and values.dtype.kind == "c":
            chosen = other != 0
        # Which of two zeros is the greater one nobody says, and NumPy's halves have changed in what follows a zero.
        signs = name not in ("maximum", "minimum", "fmax", "fmin") and (name, code) != ("nextafter", "f2")
        expected = right(getattr(numpy, name), left[chosen], other[chosen])
        same(ours[chosen], expected, INEXACT.get(name, 0), signs=signs, what=name)


@pytest.mark.parametrize("name", ["add", "less"])
def test_mixed_types(device, name):
    """Array with array of every pair of types: NumPy's promotion."""
    results, expected = [], []
    for one, other in itertools.product(["?", "i1", "u4", "i8", "f2", "f4"], repeat=2):
        a, b = values_of(numpy.dtype(one))[:2], values_of(numpy.dtype(other))[:2]
        results.append(getattr(np, name)(np.array(a), np.array(b)))
        expected.append(right(getattr(numpy, name), a, b))
    for ours, theirs in zip(together(results), expected, strict=True):
        same(ours, theirs)


@pytest.mark.parametrize(
    "scalar", [2, True, 1.5, 1 + 2j, numpy.float64(1.5), numpy.int8(3), numpy.float32(0.1)], ids=repr
)
@pytest.mark.parametrize("code", ["i1", "u4", "f4", "c8"])
def test_scalars(device, code, scalar):
    """Python's numbers are weak, NumPy's are not (NEP 50)."""
    values = numpy.array([1, 2, 3], code)
    for function in (operator.add, operator.mul, operator.eq):
        same(function(np.array(values), scalar).to_numpy(), function(values, scalar))
        same(function(scalar, np.array(values)).to_numpy(), function(scalar, values))


def test_scalars_that_do_not_fit(device):
    with pytest.raises(OverflowError):
        np.zeros(3, numpy.int8) + 300
    with pytest.raises(ValueError, match="negative integer powers"):
        np.ones(3, numpy.int32) ** -1


OPERATORS = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow,
    operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift, operator.lt, operator.le, operator.gt,
    operator.ge, operator.eq, operator.ne,
]  # fmt: skip


@pytest.mark.parametrize("function", OPERATORS, ids=lambda f: f.__name__)
def test_operators(device, function):
    a, b = numpy.array([5, 6, 7, 8]), numpy.array([1, 2, 3, 4])
    same(function(np.array(a), np.array(b)).to_numpy(), function(a, b))
    same(function(np.array(a), 2).to_numpy(), function(a, 2))
    same(function(2, np.array(b)).to_numpy(), function(2, b))


@pytest.mark.parametrize(
    "function", [operator.neg, operator.pos, operator.abs, operator.invert], ids=lambda f: f.__name__
)
def test_unary_operators(device, function):
    a = numpy.array([5, -6, 0])
    same(function(np.array(a)).to_numpy(), function(a))


SHAPES = [((3, 4), (4,)), ((3, 1), (1, 4)), ((2, 3, 4), (3, 1)), ((), (3,)), ((0, 4), (1, 4)), ((1,), (5, 1)), ((), ())]


@pytest.mark.parametrize(("one", "other"), SHAPES, ids=str)
def test_broadcasting(device, one, other):
    a, b = numpy.arange(numpy.prod(one)).reshape(one), numpy.arange(numpy.prod(other)).reshape(other) + 1.0
    ours = np.array(a) * 2 + np.array(b)
    expected = numpy.asarray(a * 2 + b)
    assert ours.shape == expected.shape
    same(ours.to_numpy(), expected)
    with pytest.raises(ValueError, match="broadcast"):
        np.zeros((2, 3)) + np.zeros(4)


KEYS = [numpy.s_[:], numpy.s_[::-1], numpy.s_[:, ::2], numpy.s_[1:, :, ::-3], numpy.s_[..., 1:]]


@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_layouts(device, key):
    a = numpy.arange(24, dtype=numpy.float32).reshape(2, 3, 4)
    x, b = np.array(a)[key], a[key]
    same((x * x + 1).to_numpy(), b * b + 1)
    same((x.T * x.T + x.T).to_numpy(), b.T * b.T + b.T)
    out = np.zeros((2, 3, 4), numpy.float32)
    np.add(x, 1, out=out[key])
    expected = numpy.zeros((2, 3, 4), numpy.float32)
    expected[key] = b + 1
    same(out.to_numpy(), expected)


def test_many_dimensions(device):
    a = numpy.arange(2**10).reshape((2,) * 10)
    same((np.array(a) + 1).to_numpy(), a + 1)
    same((np.array(a).transpose(0, 2, 1, 3, 4, 5, 6, 7, 8, 9) + 1).to_numpy(), a.swapaxes(1, 2) + 1)
    x = np.array(a)
    with pytest.raises(NotImplementedError, match=r"copy\(\)"):
        (x.transpose(1, 0, 3, 2, 5, 4, 7, 6, 9, 8) + x).to_numpy()


# --- expressions ------------------------------------------------------------------------------------------


def test_one_kernel_for_an_expression(device):
    from cupola.numpy import _kernels

    def kernels():
        return _kernels.elementwise.cache_info().misses

    x = np.array([1.0, 2.0, 3.0])
    np.sqrt(x * x + 2 * x + 1).tolist()
    before = kernels()
    y = np.sqrt(x * x + 2 * x + 1) - x
    assert y._node is not None and y._node.nodes == 6
    assert kernels() == before
    assert y.tolist() == [1, 1, 1]
    assert kernels() == before + 1
    assert y._node is None  # it is in memory now
    assert (np.sqrt(x * x + 2 * x + 1) - x).tolist() == [1, 1, 1]
    assert kernels() == before + 1  # found by its key


def test_structures_share_kernels(device):
    from cupola.numpy import _kernels

    def run(a, b):
        return (np.array(a) * b - 1).tolist()

    run([1.0], 2.0)
    known = _kernels.elementwise.cache_info().currsize
    assert run([1.0, 2.0, 3.0], 5.0) == [4, 9, 14]
    assert run([[1.0, 2.0]], -1.0) == [[-2, -3]]
    assert _kernels.elementwise.cache_info().currsize == known + 1  # a single element is read in another way


def test_rounding_is_that_of_separate_steps(device):
    """No multiplication and addition in one step, and no float32 in double precision."""
    random = numpy.random.default_rng(1)
    for dtype in (numpy.float16, numpy.float32, numpy.float64):
        a, b, c = (random.standard_normal(1000).astype(dtype) for _ in range(3))
        same((np.array(a) * np.array(b) + np.array(c) / np.array(b)).to_numpy(), a * b + c / b)


def test_larger_than_one_kernel(device):
    x, expected = np.array([1.0, 2.0]), numpy.array([1.0, 2.0])
    for i in range(200):
        x, expected = x + i, expected + i
    same(x.to_numpy(), expected)
    many = [np.array([float(i)]) for i in range(40)]
    total = many[0]
    for one in many[1:]:
        total = total + one
    assert total.tolist() == [780]


def test_a_shared_part_is_computed_once_in_a_kernel(device):
    x = np.array([2.0])
    y = x + 1
    for _ in range(5):
        y = y * y
    assert y.tolist() == [3.0**32]


def test_writing_comes_after_what_reads(device):
    """An expression has the values that its operands had when it was written down."""
    x = np.array([1.0, 2.0, 3.0])
    changes = [
        lambda: operator.iadd(x, 1), lambda: x.__setitem__(0, 7), lambda: x[1:].fill(0), lambda: np.add(x, 1, out=x),
        lambda: x.copy_from(numpy.zeros(3)), lambda: x[::-1].__setitem__(slice(None), x),
    ]  # fmt: skip
    for change in changes:
        before = x.tolist()
        y = x * 2
        z = x[1:] + y[:-1]
        change()
        assert y.tolist() == [2 * value for value in before]
        assert z.tolist() == [b + 2 * a for a, b in itertools.pairwise(before)]


def test_overlap(device):
    x, a = np.arange(10), numpy.arange(10)
    x[1:] += x[:-1]
    a[1:] += a[:-1]
    same(x.to_numpy(), a)
    x[:] = x[::-1]
    same(x.to_numpy(), a[::-1].copy())
    np.multiply(x, 2, out=x)
    same(x.to_numpy(), 2 * a[::-1])


def test_out(device):
    x, out = np.array([1.5, 2.5]), np.empty(2)
    assert np.multiply(x, 2, out=out) is out
    assert np.multiply(x, 2, out) is out
    assert np.add(x, 1, out=(out,)) is out
    assert out.tolist() == [2.5, 3.5]
    narrow = np.empty(2, numpy.float32)
    np.multiply(x, 2, out=narrow)
    assert narrow.tolist() == [3, 5]
    wide = np.empty((3, 2))
    np.add(x, 1, out=wide)
    assert wide.tolist() == [[2.5, 3.5]] * 3
    whole = np.empty(2, numpy.int32)
    with pytest.raises(TypeError, match="Cannot cast ufunc 'multiply' output"):
        np.multiply(x, 2, out=whole)
    with pytest.raises(TypeError, match="Cannot cast"):
        whole += 1.5
    np.multiply(x, 2, out=whole, casting="unsafe")
    assert whole.tolist() == [3, 5]
    with pytest.raises(ValueError, match="non-broadcastable"):
        np.add(wide, 1, out=out)
    with pytest.raises(TypeError, match="must be an array of cupola.numpy"):
        np.add(x, 1, out=numpy.empty(2))


def test_dtype(device):
    a = numpy.array([1, 2, 3], numpy.int32)
    same(np.add(np.array(a), 1, dtype=numpy.float32).to_numpy(), numpy.add(a, 1, dtype=numpy.float32))
    with pytest.raises(TypeError):
        np.add(np.array([1.5]), 1, dtype=numpy.int32)


def test_where_and_clip(device):
    a = numpy.array([[1.0, -2.0], [numpy.nan, 4.0]])
    x = np.array(a)
    same(np.where(x > 0, x, 0).to_numpy(), numpy.where(a > 0, a, 0))
    same(np.where(x > 0, 1, x[0]).to_numpy(), numpy.where(a > 0, 1, a[0]))
    same(np.where(np.array([True, False]), np.int8(1), np.array([1.5], "f4")).to_numpy(),
         numpy.where([True, False], numpy.int8(1), numpy.array([1.5], "f4")))  # fmt: skip
    same(np.clip(x, -1, 2).to_numpy(), numpy.clip(a, -1, 2))
    same(np.clip(x, None, np.array([0.5, 1.0])).to_numpy(), numpy.clip(a, None, numpy.array([0.5, 1.0])))


def test_arrays_of_the_host(device):
    """They are not copied silently; numbers, NumPy's scalars and lists are no arrays of the host."""
    a = numpy.array([1.0, 2.0])
    x = np.array(a)
    for function in (
        lambda: x + a, lambda: a + x, lambda: numpy.add(a, x), lambda: np.add(a, x), lambda: np.sqrt(a),
        lambda: np.sum(a), lambda: np.mean(a), lambda: np.where(x > 0, x, a), lambda: np.reshape(a, (2, 1)),
        lambda: x.__setitem__(0, numpy.array(1.0)), lambda: operator.iadd(x, a), lambda: numpy.concatenate([x, a]),
    ):  # fmt: skip
        with pytest.raises(TypeError, match=r"asarray|not in cupola.numpy yet"):
            function()
    for result in (x + np.asarray(a), numpy.add(x, x), x * numpy.float64(2), x + [1.0, 2.0], [1.0, 2.0] + x):
        assert isinstance(result, np.ndarray)
        numpy.testing.assert_allclose(result.to_numpy(), 2 * a)
    assert isinstance(numpy.sum(x), np.ndarray)
    with pytest.raises(TypeError, match="numpy.isnat is not in cupola.numpy yet"):
        numpy.isnat(x)
    with pytest.raises(TypeError):
        x + "text"


# A name -> what the error about it says.
MISSING = {
    "nonsense": "no attribute 'nonsense'",
    "nanargmx": "'nanargmx'; did you mean 'nanargmax'",
    "matrix": "cupola.numpy has no 'matrix' yet; arrays of two dimensions and @ are there; x.to_numpy",
    "frombuffr": "did you mean 'frombuffer'",
    "linalg.solv": "'cupola.numpy.linalg' has no attribute 'solv'; did you mean 'solve'",
    "linalg.expm": "'expm'; for a symmetric matrix",
    "fft.fftshif": "did you mean 'fftshift'",
    "random.gama": "did you mean 'gamma'",
    "random.PCG64": r"Philox\(seed\) is the one there is",
    "x.getfield": r"ndarray.getfield is not in cupola.numpy yet; x\['name'\] is a field",
    "x.meam": "'ndarray' object has no attribute 'meam'; did you mean 'mean'",
    "x.nonsense": "no attribute 'nonsense'",
    "add.redus": "the ufunc 'add' has no attribute 'redus'; did you mean 'reduce'",
}


def test_what_is_missing_is_named(device):
    x = np.zeros(3)
    for path, text in MISSING.items():
        found = np if path.partition(".")[0] != "x" else x
        *parts, last = path.removeprefix("x.").split(".")
        for part in parts:
            found = getattr(found, part)
        with pytest.raises(AttributeError, match=text):
            getattr(found, last)
    with pytest.raises(ValueError, match="Maximum allowed size exceeded: arange would have 1e\\+300"):
        np.arange(0, 1e300)
    with pytest.raises(TypeError, match="no arrays of"):
        np.zeros(3, "V4")


def test_another_stream(device):
    x = np.arange(1000.0)
    y = x + 1
    with device.stream():
        z = (x * y).sum()
    assert float(z) == float((numpy.arange(1000.0) * (numpy.arange(1000.0) + 1)).sum())


def test_kernels_of_the_program(device, stream):
    """A kernel gets the elements; expressions do not see later what it writes."""
    import cupola

    source = 'extern "C" __global__ void twice(double* x, int n) { if (threadIdx.x < n) x[threadIdx.x] *= 2; }'
    twice = cupola.compile(source).get_kernel("twice")
    x = np.array([1.0, 2.0, 3.0]) + 1
    y = x * 10
    cupola.launch(stream, cupola.LaunchConfig(grid=1, block=32), twice, x, 3)
    stream.sync()
    assert x.tolist() == [4, 6, 8]
    assert y.tolist() == [20, 30, 40]
    late = x + 1
    cupola.launch(stream, cupola.LaunchConfig(grid=1, block=32), twice, x, 3)
    stream.sync()
    assert late.tolist() == [5, 7, 9]
    y = x[:2] + 1  # through another view of what the kernel has got
    x[:2].copy_from(numpy.zeros(2))
    assert y.tolist() == [9, 13]


@pytest.mark.parametrize("name", ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"])
def test_comparisons_with_integers_that_a_type_does_not_have(device, name):
    """They are right, and no OverflowError, as with NumPy: as functions, as operators and with `out`."""
    for code, greatest, values in (
        ("u1", 255, (-1, 255, 256)), ("i1", 127, (-129, -128, 128)), ("u8", 2**64 - 1, (-1, 2**64 - 1, 2**64)),
        ("i8", 2**63 - 1, (-(2**63) - 1, 2**63)), ("?", True, (2, 300)),
    ):  # fmt: skip
        a = numpy.asarray([0, 1, greatest], code)
        x, ours, right = np.asarray(a), getattr(np, name), getattr(numpy, name)
        for value in values:
            expected = right(a, value).tolist()
            assert ours(x, value).tolist() == expected
            assert ours(x, value, out=np.zeros(3, bool)).tolist() == expected
            assert ours(value, x).tolist() == right(value, a).tolist()
    assert (np.zeros(2, "u1") < 300).tolist() == [True, True]
