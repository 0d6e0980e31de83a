"""Arrays of cupola.numpy: making them, their parts and shapes, reductions, printing. NumPy says what is right."""

from __future__ import annotations

import collections
import gc
import inspect
import itertools
import pickle
import weakref

import numpy
import pytest

import cupola.numpy as np
from cupola import Array, CUDAError, OutOfMemoryError
from cupola.utils import StridedMemoryView

A = numpy.arange(24, dtype=numpy.float32).reshape(2, 3, 4) - 7


def same(ours, right):
    assert isinstance(ours, np.ndarray)
    assert ours.dtype == right.dtype
    assert ours.shape == right.shape
    numpy.testing.assert_array_equal(ours.to_numpy(), right)


CREATED = {
    "zeros": lambda n: n.zeros((2, 3)),
    "ones": lambda n: n.ones(3, n.int8),
    "full": lambda n: n.full((2, 2), 7),
    "full with a type": lambda n: n.full(2, 1.5, n.float16),
    "arange": lambda n: n.arange(5),
    "arange with steps": lambda n: n.arange(1.0, 3.0, 0.5),
    "linspace": lambda n: n.linspace(0, 1, 7),
    "eye": lambda n: n.eye(3, k=1),
    "array of lists": lambda n: n.array([[1, 2], [3, 4]]),
    "array of a type": lambda n: n.array([1, 2], n.complex64),
    "asarray": lambda n: n.asarray(3.5),
    "zeros_like": lambda n: n.zeros_like(n.ones((2, 3), n.int16)),
    "ones_like": lambda n: n.ones_like(n.zeros(3), n.int32),
    "full_like": lambda n: n.full_like(n.zeros(3), 4),
    "copy": lambda n: n.copy(n.arange(3)[::-1]),
}


@pytest.mark.parametrize("name", CREATED)
def test_creation(device, name):
    same(CREATED[name](np), numpy.asarray(CREATED[name](numpy)))


@pytest.mark.parametrize("code", "?bHiLefdFD")
def test_creation_of_one_value(device, code):
    """With a fill or a kernel, as the value and the size may be; bit by bit, for there are two zeros."""
    dtype = numpy.dtype(code)
    values = (
        [0, 1] + [-1, 77] * (dtype.kind not in "bu") + [-0.0, 3.5, float("nan"), float("inf")] * (dtype.kind in "fc")
    )
    values += [numpy.frombuffer(b"\x5a" * dtype.itemsize, dtype)[0]] * (dtype.kind != "b")
    values += [-0.0 - 0.0j, 2j, numpy.complex64(1 - 1j)] * (dtype.kind == "c")
    values += [numpy.float32(2.5), numpy.int64(3)]
    for shape in (
        (),
        0,
        3,
        [2, 2],
        (1, 5, 1),
        (0, 3),
        300,
        (1 << 16) // dtype.itemsize,
        (1 << 16) // dtype.itemsize + 1,
    ):
        for value in values:
            right = numpy.full(shape, value, dtype)
            for made in (np.full(shape, value, code), np.full_like(np.empty(shape, dtype), value)):
                same(made, right)
                assert value != value or made.to_numpy().tobytes() == right.tobytes(), (shape, value)
            same(made.copy(), right)
        for kind in (code, dtype, dtype.type, dtype.name, dtype.newbyteorder("=")):
            same(np.zeros(shape, kind), numpy.zeros(shape, kind))
            same(np.ones(shape, kind), numpy.ones(shape, kind))
            made = np.empty(shape, kind)
            assert (made.shape, made.dtype, made.base) == (numpy.empty(shape).shape, dtype, None)


def test_creation_with_names_of_types(device):
    for kind in (None, float, int, bool, complex, "f4", "uint8", "<i4", numpy.float16):
        for made, right in ((np.zeros(2, kind), numpy.zeros(2, kind)), (np.ones(2, kind), numpy.ones(2, kind))):
            same(made, right)
    for kind, error in (("nothing", TypeError), (">f8", TypeError), (object, TypeError), ("S3", TypeError)):
        for make in (np.zeros, np.ones, np.empty):
            with pytest.raises(error):
                make(2, kind)
    for shape in (-1, (2, -1), 2.0, (2, 1.5), None, "2"):
        for make in (np.zeros, np.ones, np.empty):
            with pytest.raises((TypeError, ValueError)):
                make(shape)
    with pytest.raises((ValueError, TypeError)):
        np.zeros(2, device="elsewhere")
    with pytest.raises(OverflowError):
        np.full(2, 300, np.uint8)


@pytest.mark.parametrize(
    "given",
    [
        (0,), (1,), (10,), (-3,), (2.5,), (-0.0, 3), (1, 2, 0.25), (10, 0, -3), (0.1, 1, 0.1), (5, 1), (0, 5, None),
        (1 << 13,), ((1 << 13) + 1,), (1 << 14,), ((1 << 14) + 1,), (0, -1.5, -0.5), (True,), (0, 3, True),
        (numpy.float32(3),), (2, 7, numpy.int8(2)), (2**62, 2**62 + 3), (-(2**63), -(2**63) + 2),
    ],
)  # fmt: skip
def test_arange(device, given):
    """By the host, in a copy of few bytes or of more, and by the device."""
    same(np.arange(*given), numpy.arange(*given))
    with device.create_stream():
        same(np.arange(*given), numpy.arange(*given))
    for code in "bHifeD":
        if max(map(abs, (one or 0 for one in given))) < 100:
            same(np.arange(*given, dtype=code), numpy.arange(*given, dtype=code))


def test_arange_refuses(device):
    for given, error in (((0, 5, 0), ZeroDivisionError), (("a",), TypeError), ((1 << 62,), ValueError)):
        with pytest.raises(error):
            numpy.arange(*given)
        with pytest.raises((error, ValueError)):
            np.arange(*given)
    for given in ((float("nan"),), (float("inf"),), (0, float("-inf")), (1e308, -1e308, -1.0)):
        for xp in (numpy, np):
            with pytest.raises(ValueError):
                xp.arange(*given)
    with pytest.raises(ValueError, match="device"):
        np.arange(3, device="elsewhere")


def test_lists_that_are_arrays(device):
    """A class of lists may say that its elements are those of an array, in whatever order and memory that has them."""
    kept = A[0].T

    class Listed(list):
        def __array__(self, dtype=None, copy=None):
            return kept

    same(np.asarray(Listed([1])), numpy.asarray(Listed([1])))
    same(np.asarray(collections.namedtuple("Pair", "x y")(1, 2.5)), numpy.asarray([1, 2.5]))


def test_arange_in_order(device):
    """New sequences take over memory that work in the stream still reads."""
    total, right = np.zeros(1000), numpy.zeros(1000)
    for k in range(50):
        total += np.arange(k, k + 1000) * 2
        right += numpy.arange(k, k + 1000) * 2
    same(total, right)


def test_copies(device):
    """Of what lies in one piece, does not, and is pending; in a stream of their own."""
    a = np.asarray(A)
    for given, right in (
        (a, A), (a.T, A.T), (a[:, 1], A[:, 1]), (a[1], A[1]), (a[::-1], A[::-1]), (a + 1, A + 1),
        (a[0, 0, 0], A[0, 0, 0]), (a[:0], A[:0]), (np.asarray(A)[:, ::-2], A[:, ::-2]),
        (np.broadcast_to(a, (2, *A.shape)), numpy.stack([A, A])),
    ):  # fmt: skip
        made = given.copy()
        with device.create_stream():
            other = given.copy()
        same(made, numpy.asarray(right))
        same(other, numpy.asarray(right))
        assert made.base is None
        assert made.is_contiguous
    made = a.copy()
    a += 1
    same(made, A)
    same(a, A + 1)


def test_array_of_others(device):
    x = np.array(A)
    same(np.array(x), A)
    assert np.asarray(x) is x
    same(np.asarray(x, numpy.int32), A.astype(numpy.int32))
    same(np.array([x[0, 0, 0], 2.0]), numpy.array([-7.0, 2.0]))
    same(np.array(device.array(A)[:, ::2]), A[:, ::2])
    assert np.empty((2, 3), "i2").shape == (2, 3)
    assert np.ndarray(shape=(0, 3), dtype="f4").shape == (0, 3)
    assert isinstance(x, Array)
    with pytest.raises(TypeError, match="cannot be on a device"):
        np.array(["text"])


KEYS = [
    numpy.s_[1],
    numpy.s_[:, ::-1],
    numpy.s_[..., 1],
    numpy.s_[None, 0],
    numpy.s_[1:, 2, ::2],
    numpy.s_[2:0],
    numpy.s_[()],
]


@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_indices(device, key):
    x = np.array(A)
    same(x[key], A[key])
    same((x + 1)[key], (A + 1)[key])
    changed = A.copy()
    changed[key] = 5
    x[key] = 5
    same(x, changed)
    changed[key] = changed[key] * 2 + 1
    x[key] = x[key] * 2 + 1
    same(x, changed)
    view = x[key]
    view += 1
    changed[key] += 1
    same(x, changed)


# Arrays of integers and of bool among the indices; ARRAYS says what their names mean.
ARRAYS = {
    "i": numpy.array([1, 0, -1]),
    "j": numpy.array([[1], [0]]),
    "m": A > 5,
    "h": A[0, :, 0] > -6,
    "t": numpy.array(True),
}
FANCY = (
    """
i % 2|:, i|0, i|j, :, j|:, j, i|None, 0, :, i|m|:, h|0, h|[0, 1], [[1], [2]]|True|t|..., i
1, ...|0, :, i|:, []|i % 2, None, i % 2
""".strip()
    .replace("\n", "|")
    .split("|")
)


TWICE = pytest.mark.finds("race", reason="a place is named twice, with the same value")


@pytest.mark.parametrize("text", [pytest.param(text, marks=TWICE if text == "i % 2" else ()) for text in FANCY])
def test_arrays_as_indices(device, text):
    ours, theirs = np.array(A), A.copy()
    key = eval(f"numpy.s_[{text}]", {"numpy": numpy, **{name: np.array(value) for name, value in ARRAYS.items()}})
    right = eval(f"numpy.s_[{text}]", {"numpy": numpy, **ARRAYS})
    same(ours[key], theirs[right])
    same(ours[right], theirs[right])  # indices in arrays of NumPy are copied
    ours[key] = ours[key] * 2 + 1
    theirs[right] = theirs[right] * 2 + 1
    same(ours, theirs)
    ours[key] = 5
    theirs[right] = 5
    same(ours, theirs)


def test_arrays_as_indices_refused(device):
    x = np.array(A)
    for key, error, words in (
        ([5], IndexError, "index 5 is out of bounds for axis 0 with size 2"),
        (np.array([1.0]), IndexError, "integer .or boolean. type"),
        (np.array([True, False, True]), IndexError, "boolean index did not match"),
        (numpy.array([0, 5]), IndexError, "index 5 is out of bounds for axis 0 with size 2"),
        (numpy.array([1.0]), IndexError, "integer .or boolean. type"),
        ((0, 0, 0, np.array([0])), IndexError, "too many indices"),
        ((np.array([0, 1]), np.array([0, 1, 2])), IndexError, "shape mismatch"),
        (..., TypeError, "asarray"),
    ):
        with pytest.raises(error, match=words):
            x[key] if key is not ... else x.__setitem__(key, numpy.zeros(4))
    late = x[np.array([0, 7])] + 1  # noticed where the elements are waited for
    with pytest.raises(IndexError, match="index 7 is out of bounds for an axis of size 2"):
        late.to_numpy()
    same(x[np.array([0, 1])], A)


def test_at(device):
    """Indices that occur several times, for each width of element."""
    places = numpy.array([0, 1, 1, 3, 1, 0])
    for function, code in (("add", "f8"), ("add", "i4"), ("multiply", "f2"), ("maximum", "u1"), ("subtract", "c16")):
        values = (numpy.arange(6) + 1).astype(code)
        ours, theirs = np.ones(5, code), numpy.ones(5, code)
        getattr(np, function).at(ours, np.array(places), np.array(values))
        getattr(numpy, function).at(theirs, places, values)
        same(ours, theirs)
    table, right = np.zeros((2, 3)), numpy.zeros((2, 3))
    np.add.at(table, (np.array([0, 1, 0]), np.array([1, 1, 1])), 2)
    numpy.add.at(right, ([0, 1, 0], [1, 1, 1]), 2)
    same(table, right)
    with pytest.raises(TypeError, match="Cannot cast"):
        np.add.at(np.zeros(3, int), [0], 1.5)


def test_flat_and_parts(device):
    x, a = np.array(A), A.copy()
    for key in (slice(None, None, 3), [0, 1, 2]):  # values begin anew, or are cut
        x.flat[key] = [4, 5]
        a.flat[key] = [4, 5]
    x.flat[3] = 9
    a.flat[3] = 9
    x.T.flat[1:3] = 7
    a.T.flat[1:3] = 7
    same(x, a)
    z, c = np.zeros((2, 2), complex), numpy.zeros((2, 2), complex)
    z.real, z.imag[0] = [[1, 2], [3, 4]], 5
    c.real, c.imag[0] = [[1, 2], [3, 4]], 5
    same(z, c)
    same(z.imag, c.imag)
    x.sort(1)
    a.sort(1)
    same(x, a)
    assert 9.0 in x
    assert x.device == device


def test_setitem_converts_and_broadcasts(device):
    x, a = np.zeros((2, 3), numpy.int32), numpy.zeros((2, 3), numpy.int32)
    for key, value in ((0, [1.7, 2.2, -3.9]), (numpy.s_[:, 1], 9), (numpy.s_[...], [[1], [2]])):
        x[key] = value
        a[key] = value
        same(x, a)
    with pytest.raises(ValueError, match="broadcast"):
        x[0] = np.zeros(4)
    with pytest.raises(IndexError, match="only integers, slices"):
        x["a"] = 1


def test_views_changed_in_place(device):
    """By expressions of the same memory, where each statement ends with ``x[k] = x[k]``."""

    def program(n):
        x = n.arange(20.0)
        m = x.reshape(4, 5)
        for _ in range(3):
            x[1:-1] += 0.25 * (x[2:] - 2 * x[1:-1] + x[:-2])
            m[1:, ::2] -= m[:-1, 1::1][:, 1:4] * m[1:, ::2]
            x[::-1] *= x + 0.5
            m.T[1:3] += m.T[2:4]
            x -= x * x / (1 + x)
        x[2:5] = x[2:5]
        x[:] = x[::-1]
        return x

    numpy.testing.assert_allclose(program(np).to_numpy(), program(numpy), rtol=1e-12)


def test_pending_arrays_and_writing(device):
    """What reads an array is computed before that is written, also if some of it is gone, or is going."""
    x, y = np.arange(10.0), np.ones(10)
    pending = [x * k + y for k in range(200)]
    del pending[::2]
    x += 1
    for k, one in enumerate(pending):
        numpy.testing.assert_array_equal(one.to_numpy(), numpy.arange(10.0) * (2 * k + 1) + 1)

    doubled, tripled, seen = x * 2, x * 3, []
    last = weakref.ref(doubled, lambda _: seen.append(x.__iadd__(1)))
    before = x.to_numpy()
    del doubled
    assert last() is None and len(seen) == 1
    numpy.testing.assert_array_equal(tripled.to_numpy(), 3 * before)


def test_numbers_in_several_types(device):
    """The same number of Python, as the operand of two types in one kernel."""
    for number in (0.1, 3, True):
        found = np.arange(4, dtype="f") * number + np.arange(4.0) * number + np.arange(4, dtype="e") * number
        right = numpy.arange(4, dtype="f") * number + numpy.arange(4.0) * number + numpy.arange(4, dtype="e") * number
        numpy.testing.assert_array_equal(found.to_numpy(), right)
    for number, kind in itertools.product((10**400, 2**60 + 1, -3), "fdilD"):
        try:
            right = numpy.ones(2, kind) + number
        except OverflowError as error:
            with pytest.raises(type(error)):
                np.ones(2, kind) + number
        else:
            numpy.testing.assert_array_equal((np.ones(2, kind) + number).to_numpy(), right)


def test_setitem_with_a_mask(device):
    x, a = np.array(A), A.copy()
    x[x < 0] = 0
    a[a < 0] = 0
    same(x, a)
    x[x > 5] = x[x > 5] * 2
    a[a > 5] = a[a > 5] * 2
    same(x, a)
    with pytest.raises(ValueError, match="broadcast"):
        x[x > 5] = np.zeros(3)


SHAPED = {
    "reshape": lambda n, x: n.reshape(x, (4, 6)),
    "reshape of a view": lambda n, x: x[:, ::2].reshape(-1),
    "reshape of an expression": lambda n, x: (x + 1).reshape(6, 4),
    "transpose": lambda n, x: n.transpose(x, (1, 2, 0)),
    "T": lambda n, x: x.T,
    "mT": lambda n, x: x.mT,
    "ravel": lambda n, x: n.ravel(x.T),
    "flatten": lambda n, x: x.flatten(),
    "squeeze": lambda n, x: n.squeeze(x[:1, :, :1]),
    "squeeze an axis": lambda n, x: n.squeeze(x[:1, :, :1], 0),
    "expand_dims": lambda n, x: n.expand_dims(x, (0, -1)),
    "moveaxis": lambda n, x: n.moveaxis(x, 0, -1),
    "moveaxis of two": lambda n, x: n.moveaxis(x, [0, 1], [2, 0]),
    "swapaxes": lambda n, x: n.swapaxes(x, 0, -1),
    "flip": lambda n, x: n.flip(x, 1),
    "flip all": lambda n, x: n.flip(x),
    "broadcast_to": lambda n, x: n.broadcast_to(x[:, :1], (5, 2, 3, 4)),
    "astype": lambda n, x: x.astype(n.int8),
    "astype bool": lambda n, x: x.astype(bool),
    "view": lambda n, x: x.view(n.int32),
}


@pytest.mark.parametrize("name", SHAPED)
def test_shapes(device, name):
    same(SHAPED[name](np, np.array(A)), SHAPED[name](numpy, A))


def test_shapes_refused(device):
    x = np.array(A)
    for function in (
        lambda: np.squeeze(x, 0), lambda: np.broadcast_to(x, (2, 3, 5)), lambda: x.reshape(5), lambda: np.zeros(3).mT,
    ):  # fmt: skip
        with pytest.raises(ValueError):
            function()


CONVERTED = ["?", "i1", "u2", "i4", "u8", "f2", "f4", "f8", "c8"]


@pytest.mark.parametrize("given", CONVERTED)
def test_astype(device, given):
    """All conversions of a type. A third is stored as it is; the others are computed by one kernel."""
    values = numpy.array([0, 1, 2, 100], given)
    x = np.array(values)
    together = []
    for k, to in enumerate(CONVERTED, CONVERTED.index(given)):
        if numpy.dtype(given).kind == "c" and numpy.dtype(to).kind != "c":
            continue  # NumPy warns of the imaginary part that is lost
        found, right = x.astype(to), values.astype(to)
        if k % 3 == 0:
            same(found, right)
        else:
            assert found.dtype == right.dtype
            together.append((found, right))
    which = np.array(list(range(len(together)))).reshape((-1, 1))
    rows = np.zeros((len(together), 4), numpy.complex128)
    for k, (found, _) in enumerate(together):
        rows = np.where(which == k, found, rows)
    same(rows, numpy.array([right for _, right in together], numpy.complex128).reshape((-1, 4)))


# --- reductions -------------------------------------------------------------------------------------------

REDUCTIONS = ["sum", "prod", "max", "min", "any", "all", "mean"]
AXES = [None, 0, 1, -1, (0, 2), (1, 2), ()]


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", AXES, ids=str)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(device, name, axis, keepdims):
    values = (A.astype(numpy.int64) % 5 - 1).astype(numpy.float64)  # whose sums and products are exact
    for one in (values, values[:, ::-1], values.T):
        expected = numpy.asarray(getattr(numpy, name)(one, axis=axis, keepdims=keepdims))
        ours = (
            np.array(values)[:, ::-1]
            if one.strides[1] < 0
            else np.array(values).T
            if one is not values
            else np.array(values)
        )
        result = getattr(np, name)(ours, axis=axis, keepdims=keepdims)
        assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
        numpy.testing.assert_allclose(result.to_numpy(), expected, rtol=1e-15)
        numpy.testing.assert_allclose(
            getattr(ours, name)(axis=axis, keepdims=keepdims).to_numpy(), expected, rtol=1e-15
        )


# A mean is a sum; a product combines what a sum does, and a minimum what a maximum does.
KINDS = ["?", "i1", "u8", "f2", "c8"]
ALL = [*KINDS, "u1", "i2", "u4", "i8", "f4", "f8", "c16"]
REDUCED = {
    "sum": ALL, "max": ALL, "any": ALL, "all": KINDS, "prod": KINDS, "min": KINDS, "mean": KINDS,
}  # fmt: skip


@pytest.mark.parametrize(("name", "code"), [(name, code) for name, codes in REDUCED.items() for code in codes])
def test_types_of_reductions(device, name, code):
    values = numpy.array([1, 2, 3, 1], code)
    expected = numpy.asarray(getattr(numpy, name)(values))
    result = getattr(np, name)(np.array(values))
    assert result.dtype == expected.dtype
    numpy.testing.assert_allclose(result.to_numpy(), expected, rtol=1e-3 if code == "f2" else 1e-6)


@pytest.mark.parametrize("shape", [(100_000,), (3, 70_000), (70_000, 3), (300, 500), (1, 33), (257, 1000, 1)], ids=str)
def test_large_reductions(device, shape):
    """Several blocks for a result, a block, and a thread."""
    values = numpy.random.default_rng(2).integers(0, 100, shape)
    for axis in (None, 0, -1):
        numpy.testing.assert_array_equal(np.array(values).sum(axis=axis).to_numpy(), values.sum(axis=axis))
        numpy.testing.assert_array_equal(
            (np.array(values) * 2 - 3).max(axis=axis).to_numpy(), (values * 2 - 3).max(axis=axis)
        )


def test_reductions_are_repeatable(device):
    x = np.array(numpy.random.default_rng(3).standard_normal(100_000).astype(numpy.float32))
    assert len({float(x.sum()) for _ in range(5)}) == 1


def test_special_values_of_reductions(device):
    with_nan = np.array([1.0, numpy.nan, 3.0])
    assert numpy.isnan(float(with_nan.max()))
    assert numpy.isnan(float(with_nan.min()))
    nothing = np.zeros((0, 3))
    assert float(nothing.sum()) == 0
    assert float(nothing.prod()) == 1
    assert bool(nothing.all())
    assert not bool(nothing.any())
    assert nothing.sum(axis=1).shape == (0,)
    assert nothing.sum(axis=0).tolist() == [0, 0, 0]
    for name in ("max", "min"):
        with pytest.raises(ValueError, match="zero-size array to reduction operation"):
            getattr(np, name)(nothing)
    with pytest.raises(numpy.exceptions.AxisError):
        with_nan.sum(axis=1)


def test_reductions_into_arrays(device):
    x, out = np.array(A), np.empty(3, numpy.float32)
    assert np.sum(x, axis=(0, 2), out=out) is out
    numpy.testing.assert_array_equal(out.to_numpy(), A.sum(axis=(0, 2)))
    same(np.sum(x, dtype=numpy.float64), numpy.asarray(A.sum(dtype=numpy.float64)))
    same(np.add.reduce(x), numpy.add.reduce(A))
    same(np.maximum.reduce(x, axis=None), numpy.asarray(A.max()))


# --- to the host ------------------------------------------------------------------------------------------


def test_numbers(device):
    x = np.array([3])
    assert (int(x[0]), float(x[0]), complex(x[0]), bool(x[0]), x.item(), range(5)[x[0]]) == (3, 3.0, 3 + 0j, True, 3, 3)
    assert f"{np.array(1.23456):.2f}" == "1.23"
    assert np.array([[1, 2]]).tolist() == [[1, 2]]
    with pytest.raises(TypeError):
        range(5)[np.array(1.0)]
    with pytest.raises(ValueError):
        bool(np.zeros(2))
    with pytest.raises(TypeError, match="unhashable"):
        hash(x)


@pytest.mark.parametrize(
    "values", [A, numpy.arange(3), numpy.array(2.5), numpy.zeros((0, 2)), numpy.array([True])], ids=str
)
def test_printing(device, values):
    assert repr(np.array(values)) == repr(values)
    assert str(np.array(values)) == str(values)


def test_pickle(device):
    same(pickle.loads(pickle.dumps(np.array(A) + 1)), A + 1)


def test_as_numpy(device):
    x = np.array(A) + 1
    numpy.testing.assert_array_equal(numpy.asarray(x), A + 1)
    numpy.testing.assert_array_equal(np.asnumpy(x), A + 1)
    numpy.testing.assert_array_equal(x.get(), A + 1)
    assert x.__cuda_array_interface__["shape"] == A.shape
    assert x.__dlpack_device__()[0] == 2
    assert x.__array_namespace__() is np


class Capsule:
    """What a consumer of DLPack is given."""

    def __init__(self, capsule, device):
        self.capsule, self.device = capsule, device

    def __dlpack__(self, **arguments):
        return self.capsule

    def __dlpack_device__(self):
        return self.device


@pytest.mark.parametrize("version", [None, (1, 0)])
@pytest.mark.parametrize(
    "make",
    [
        lambda: np.array(A),
        lambda: np.array(A) + 1,
        lambda: np.array(A)[:, ::-1],
        lambda: np.zeros((0, 3)),
        lambda: np.sum(np.array(A)),
    ],
    ids=["array", "expression", "reversed", "empty", "scalar"],
)
def test_dlpack_to_the_host_and_as_a_copy(device, make, version):
    """What the Array API standard asks of ``__dlpack__``."""
    x = make()
    own, expected = x.__dlpack_device__(), numpy.array(x.to_numpy())
    for copy in (None, True):
        host = numpy.from_dlpack(Capsule(x.__dlpack__(dl_device=(1, 0), copy=copy, max_version=version), (1, 0)))
        numpy.testing.assert_array_equal(host, expected)
    numpy.testing.assert_array_equal(numpy.from_dlpack(x, device="cpu"), expected)
    for given in ({}, {"dl_device": own}, {"copy": False}, {"dl_device": own, "copy": False}):
        view = StridedMemoryView.from_dlpack(Capsule(x.__dlpack__(max_version=version, **given), own), -1)
        assert not x.size or view.ptr == x.handle
    for given in ({"copy": True}, {"dl_device": own, "copy": True}):
        view = StridedMemoryView.from_dlpack(Capsule(x.__dlpack__(max_version=version, **given), own), -1)
        assert not x.size or view.ptr != x.handle
        numpy.testing.assert_array_equal(np.from_dlpack(view).to_numpy(), expected)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"dl_device": (1, 0), "copy": False}, "copy must not be False"),
        ({"dl_device": (2, 77)}, "can be copied to .1, 0., the host"),
        ({"dl_device": (10, 0), "copy": True}, "can be copied to"),
    ],
)
def test_dlpack_refuses(device, given, text):
    with pytest.raises(BufferError, match=text):
        np.array(A).__dlpack__(**given)


def test_the_signature_of_dlpack(device):
    parameters = inspect.signature(np.array(A).__dlpack__).parameters.values()
    assert [(p.name, p.default) for p in parameters] == [
        (name, None) for name in ("stream", "max_version", "dl_device", "copy")
    ]
    assert all(p.kind is p.KEYWORD_ONLY for p in parameters)


def test_a_thread_of_its_own(device):
    """No device was made current there."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(lambda: (np.arange(5) * 2).tolist()).result() == [0, 2, 4, 6, 8]


def test_out_of_memory(device):
    """On a GPU, too, 256 TiB are more than there is."""
    x = np.broadcast_to(np.arange(1.0), (1 << 22, 1 << 23))
    larger = x + 1
    for too_much in (
        lambda: np.empty(1 << 45),
        lambda: np.ones((1 << 15, 1 << 30)),
        lambda: larger.handle,
        lambda: larger.copy(),
        lambda: x.cumsum(axis=0),
    ):
        with pytest.raises(MemoryError, match="CUDA_ERROR_OUT_OF_MEMORY") as caught:
            too_much()
        error = pickle.loads(pickle.dumps(caught.value))
        assert type(OutOfMemoryError.__new__(OutOfMemoryError, "text")) is OutOfMemoryError  # which tblib does
        assert isinstance(error, OutOfMemoryError) and isinstance(error, CUDAError)
        assert (error.name, error.status) == ("CUDA_ERROR_OUT_OF_MEMORY", 2)
    assert float((x[3] + 1).max()) == 1  # all goes on


KEYS = {
    "mask": A[0, 0] > -6,
    "mask of all dimensions": A > 3,
    "mask of two dimensions": A[:, :, 0] > 0,
    "mask behind a slice": (slice(None), numpy.array([True, False, True])),
    "mask of nothing": A > 100,
    "mask of no dimensions": numpy.array(True),
    "mask beside indices": (A[:, 0, 0] > -8, numpy.array([1, 2])),
    "indices": numpy.array([1, 0, -1]),
    "indices of few bits": numpy.array([[1, 0]], "u1"),
    "no indices": numpy.array([], "i8"),
}


@pytest.mark.parametrize("name", [pytest.param(name, marks=TWICE if name == "indices" else ()) for name in KEYS])
def test_keys_of_the_host(device, name):
    """Arrays of NumPy as indices are copied to the device, which the report shows."""
    key = KEYS[name]
    right = A[0, 0].copy() if name == "mask" else A.copy()
    x = np.asarray(right)
    np.report(reset=True)
    chosen = x[key]
    copies = [row for row in np.report() if row.kind == "copy"]
    assert sum(row.times for row in copies) == (2 if name == "mask beside indices" else 1)
    assert {row.file for row in copies} == {__file__}
    same(chosen, right[key])
    x[key] = 5
    right[key] = 5
    same(x, right)
    x[key] += np.asarray(1.0, right.dtype)
    right[key] += 1
    same(x, right)


def test_wrong_keys_of_the_host(device):
    x = np.asarray(A)
    for key in (A[0] > 0, A[..., :2] > 0, numpy.array([7]), numpy.array([0.5])):
        for use in (lambda key=key: x[key], lambda key=key: x.__setitem__(key, 1)):
            with pytest.raises(IndexError) as ours:
                use()
            with pytest.raises(IndexError) as right:
                A[key]
            assert str(right.value).split(";")[0] in str(ours.value)
    with pytest.raises(TypeError, match="asarray"):
        x[A > 0] = A[A > 0]  # what is assigned is no key


VIEWS = {
    "a slice": lambda n, x: x[1:],
    "a slice of a slice": lambda n, x: x[1:][:, ::2],
    "an element": lambda n, x: x[0, 0, 0:1],
    "transposed": lambda n, x: x.T,
    "reshaped": lambda n, x: x.reshape(4, 6),
    "in one dimension": lambda n, x: x.ravel(),
    "broadcast": lambda n, x: n.broadcast_to(x, (2, *x.shape)),
    "another type": lambda n, x: x.view("i4"),
    "diagonal": lambda n, x: x.diagonal(),
    "squeezed": lambda n, x: x[:1].squeeze(),
    "all of it": lambda n, x: x[...],
}
OWN = {
    "a copy": lambda n, x: x[1:].copy(),
    "flattened": lambda n, x: x.flatten(),
    "a result": lambda n, x: x + 1,
    "chosen": lambda n, x: x[n.asarray([1, 0])],
    "a sum": lambda n, x: x.sum(axis=0),
    "another type": lambda n, x: x.astype("f8"),
    "itself": lambda n, x: x,
}


def test_base(device):
    """The base of a view is the array that it looks into, also through other views."""
    for module, x in ((np, np.asarray(A)), (numpy, A.copy())):
        for name, view in VIEWS.items():
            assert view(module, x).base is x, (module, name)
        for name, own in OWN.items():
            assert own(module, x).base is None, (module, name)
        pending = x * 2
        assert pending[1:].base is pending
    x = np.asarray(A)
    view = x[1]
    assert pickle.loads(pickle.dumps(view)).base is None
    kept = weakref.ref(x)
    del x
    assert kept() is view.base is not None


def test_arrays_that_are_gone_leave_nothing_to_the_next(device):
    class Derived(np.ndarray):
        pass

    class Watched(np.ndarray):
        def __del__(self):
            ended.append(self.shape)

    ended = []
    for shape in ((2,) * 6, (3,), (), (2, 2)):  # six extents are not kept in the array itself
        x = np.ones(shape)
        gone = weakref.ref(x, lambda _: ended.append("a reference"))
        y = x + 1
        del x
        same(y, numpy.full(shape, 2.0))
        del y
        assert gone() is None
        assert ended.pop() == "a reference"
    owner = np.ones((3, 4))
    views = [owner[:, ::2], owner[1]]
    gone = weakref.ref(owner)
    del owner, views
    assert gone() is None
    assert [(np.ones(2) * k).base for k in range(3)] == [None] * 3
    Watched((2, 3))
    assert ended == [(2, 3)]
    for kind in (Derived, Watched):
        x = kind(3)
        x.name, x.itself = "an attribute", x
        last = weakref.ref(x)
        del x
        gc.collect()
        assert last() is None
    pending = [np.ones(k % 5 + 1) * k for k in range(200)]  # more than are kept
    del pending[::2]
    pending += [np.ones((2, 2)) * k for k in range(50)]
    for k, one in enumerate(pending[:100]):
        same(one, numpy.ones((2 * k + 1) % 5 + 1) * (2 * k + 1))
    for k, one in enumerate(pending[100:]):
        same(one, numpy.ones((2, 2)) * k)


def test_shapes_changed_in_place(device):
    for n in (numpy, np):
        x = n.arange(6.0)
        before = x * 2
        x.resize(2, 2)
        more = n.arange(3)
        more.resize((2, 3), refcheck=False)
        y = n.arange(6.0)
        later = y + 1
        y.shape = (2, -1)
        y[0, 0] = 9
        same(np.asarray(x), numpy.asarray([[0.0, 1], [2, 3]]))
        same(np.asarray(more), numpy.asarray([[0, 1, 2], [0, 0, 0]]))
        same(np.asarray(y), numpy.asarray([[9.0, 1, 2], [3, 4, 5]]))
        same(np.asarray(before), numpy.arange(6.0) * 2)
        same(np.asarray(later), numpy.arange(6.0) + 1)
        with pytest.raises(ValueError):
            y.shape = (4,)
        with pytest.raises(AttributeError, match="Incompatible shape for in-place modification"):
            y.T.shape = (6,)
        with pytest.raises(ValueError):
            y.T.resize(2)
        with pytest.raises(ValueError, match="own its data"):
            y[:1].resize(2)
    with pytest.raises(AttributeError, match=r"x\.view\(dtype\)"):
        y.dtype = "i8"


def test_what_is_refused_is_no_copy(device):
    np.report(reset=True)
    with pytest.raises(TypeError, match="cannot be on a device"):
        np.asarray(["a"])
    assert not np.report(reset=True)


@pytest.mark.parametrize("shape", [(3,), (3, 4), (0,), (0, 4), (2, 3, 4)])
def test_masks_without_elements(device, shape):
    """Where a mask has none along a dimension, it chooses nothing; the standard allows that, and NumPy does not."""
    x = np.ones(shape)
    for mask_shape in [(0,), (0, *shape[1:2]), (*shape[:1], 0)][: 1 if len(shape) == 1 else 3]:
        rest = shape[len(mask_shape) :]
        for mask in (np.zeros(mask_shape, bool), numpy.zeros(mask_shape, bool)):
            assert x[mask].shape == (0, *rest)
            x[mask] = 5
    assert (x == 1).all()
    with pytest.raises(IndexError, match="boolean index did not match"):
        x[np.zeros(7, bool)]
