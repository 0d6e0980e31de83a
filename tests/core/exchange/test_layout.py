"""Layouts, against what NumPy says of arrays with the same shape and strides."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

from cupola.core.exchange._layout import _StridedLayout as Layout


def layout_of(array: np.ndarray) -> Layout:
    return Layout(array.shape, array.strides, array.itemsize, divide_strides=True)


def base(*shape: int, dtype=np.float32) -> np.ndarray:
    return np.arange(np.prod(shape, dtype=int), dtype=dtype).reshape(shape)


ARRAYS = {
    "0-d": base().reshape(()),
    "1-d": base(5),
    "C": base(2, 3, 4),
    "F": np.asfortranarray(base(2, 3, 4)),
    "permuted": base(2, 3, 4).transpose(1, 2, 0),
    "every second": base(4, 7)[:, ::2],
    "rows": base(6, 4)[1::2],
    "ones": base(1, 3, 1),
    "empty": base(2, 0, 3),
    "broadcast": np.broadcast_to(base(3), (2, 3)),
}


@pytest.mark.parametrize("array", ARRAYS.values(), ids=ARRAYS)
def test_properties_agree_with_numpy(array):
    layout = layout_of(array)
    assert (layout.ndim, layout.shape, layout.volume, layout.itemsize) == (
        array.ndim,
        array.shape,
        array.size,
        array.itemsize,
    )
    assert layout.strides_in_bytes == array.strides
    assert layout.is_contiguous_c == array.flags.c_contiguous
    assert layout.is_contiguous_f == array.flags.f_contiguous
    dense = np.copy(array, order="K")
    assert layout.to_dense().is_dense
    if array.size and 0 not in array.strides and 1 not in array.shape:
        assert layout.to_dense().strides_in_bytes == dense.strides


@pytest.mark.parametrize(
    ("array", "shape"),
    [
        (ARRAYS["C"], (6, 4)),
        (ARRAYS["C"], (-1,)),
        (ARRAYS["C"], (2, 3, 2, 2)),
        (ARRAYS["C"], (1, 24, 1)),
        (ARRAYS["rows"], (3, 2, 2)),
        (ARRAYS["every second"], (4, 4, 1)),
        (ARRAYS["every second"], (2, 2, 4)),
        (ARRAYS["ones"], (3,)),
        (ARRAYS["0-d"], (1, 1)),
        (ARRAYS["empty"], (0,)),
    ],
)
def test_reshape_gives_numpys_strides(array, shape):
    expected = array.view()
    expected.shape = shape  # raises if NumPy would have to copy
    reshaped = layout_of(array).reshaped(shape)
    assert reshaped.shape == expected.shape
    if expected.size:
        steps = reshaped.strides_in_bytes or Layout.dense(reshaped.shape, 4, "F").to_dense("C").strides_in_bytes
        if steps is None:
            assert expected.flags.c_contiguous
        else:
            wide = [(n, s) for n, s in zip(expected.shape, expected.strides, strict=True) if n > 1]
            assert [(n, s) for n, s in zip(reshaped.shape, steps, strict=True) if n > 1] == wide


@pytest.mark.parametrize(
    ("array", "shape", "text"),
    [
        (ARRAYS["every second"], (16,), "in place"),
        (ARRAYS["F"], (6, 4), "in place"),
        (ARRAYS["C"], (5, 5), "do not fill"),
        (ARRAYS["C"], (-1, -1), "only one"),
        (ARRAYS["C"], (-1, 7), "no single value"),
        (ARRAYS["empty"], (-1, 0), "no single value"),
        (ARRAYS["C"], (-2, 3), "negative"),
    ],
)
def test_reshape_refuses(array, shape, text):
    with pytest.raises(ValueError, match=text):
        layout_of(array).reshaped(shape)


KEYS = [1, -1, slice(None), slice(None, None, -1), (0, slice(1, None)), (slice(0, 2), 1, slice(3, 0, -2)), ()]


@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_slices_select_numpys_elements(key):
    array = base(2, 3, 4)
    layout, expected = layout_of(array)[key], array[key]
    flat = array.reshape(-1)[layout.slice_offset :]
    found = as_strided(flat, layout.shape, [s * 4 for s in layout.strides])
    # Negative strides start at the last element: as_strided must be given that one.
    np.testing.assert_array_equal(found, expected)
    assert layout.offset_bounds == (expected.min(), expected.max())


@pytest.mark.parametrize(
    ("key", "error"),
    [(2, ValueError), ((0, 0, 0, 0), ValueError), (..., TypeError), (None, TypeError), (1.0, TypeError)],
)
def test_slices_refuse(key, error):
    with pytest.raises(error):
        Layout.dense((2, 3, 4), 4)[key]


def test_transformations():
    layout = Layout.dense((2, 3, 4), 4, "F")
    assert layout.strides == (1, 2, 6)
    assert layout.stride_order == (2, 1, 0)
    assert Layout.dense((2, 3, 4), 4, (1, 2, 0)).strides == (1, 8, 2)
    assert layout.permuted((2, 1, 0)).is_contiguous_c
    assert layout.unsqueezed(1).shape == (2, 1, 3, 4)
    assert layout.unsqueezed((0, -1)).squeezed().strides == layout.strides
    assert Layout((1, 3), None, 4).broadcast_to((5, 2, 3)).strides == (0, 0, 1)
    assert Layout((2, 0), None, 4).squeezed().shape == (0,)
    assert Layout.dense_like(layout).strides == layout.strides
    assert layout.to_dense("C").strides == (12, 4, 1)
    assert layout.to_dense() is layout and Layout((3, 4), None, 4).to_dense("C").strides is None
    assert Layout((3, 4), (8, 2), 4).unsqueezed(-1).strides == (8, 2, 2)
    assert layout.unsqueezed([]) is layout
    with pytest.raises(TypeError, match="layout"):
        Layout.dense_like((2, 3))


@pytest.mark.parametrize(
    ("shape", "strides", "order"),
    [
        ((3, 4), (0, 0), (1, 0)),
        ((5, 3, 4), (0, 0, 0), (0, 2, 1)),
        ((1, 3, 4), (3, 1, 3), (2, 0, 1)),
        ((0, 4), None, (0, 1)),
    ],
)
def test_among_equal_strides_the_longest_axis_is_first(shape, strides, order):
    assert Layout(shape, strides, 4).stride_order == order


def test_a_layout_without_elements():
    assert Layout.dense((0, 4), 4).strides == (0, 0)
    assert Layout((0, 4), None, 4).reshaped((2, -1)).strides == (0, 0)
    assert Layout((3, 4), None, 4)[5:].strides == (0, 0)
    assert Layout((0, 4), (5, 6), 4)[:].shape == (0, 4)


def test_flattening():
    whole = Layout.dense((2, 3, 4), 4)
    assert whole.flattened().shape == (24,)
    assert whole.flattened(1).shape == (2, 12)
    assert whole.flattened(0, 1).shape == (6, 4)
    gaps = layout_of(base(4, 6)[:, ::2])
    assert gaps.flattened_axis_mask() == 0b10
    rows = layout_of(base(4, 6, 2)[:, :3])
    assert rows.flattened_axis_mask() == 0b100
    assert rows.flattened().shape == (4, 6)
    both = whole.flattened_axis_mask() & rows.flattened_axis_mask()
    assert Layout.dense((4, 3, 2), 4).flattened(mask=both).shape == (4, 6)
    assert rows.flattened(mask=0b110) == rows.flattened(), "what cannot be merged stays"
    assert Layout((), None, 4).flattened().shape == (1,)
    with pytest.raises(ValueError, match="out of range"):
        Layout((), None, 4).flattened(0, 0)


def test_repacking():
    layout = Layout.dense((3, 8), 2)
    assert layout.repacked(8).shape == (3, 2)
    assert layout.repacked(8).strides == (2, 1)
    assert layout.repacked(1).shape == (3, 16)
    assert layout.repacked(16, keep_dim=False).shape == (3,)
    assert layout.max_compatible_itemsize() == 16
    assert layout.max_compatible_itemsize(data_ptr=0x1004) == 4
    assert layout[:, 2:].max_compatible_itemsize() == 4
    for arguments in ((8, 4), (3,), (0,), (32,)):
        with pytest.raises(ValueError):
            layout.repacked(*arguments)
    with pytest.raises(ValueError, match="stride 1"):
        layout.repacked(4, axis=0)


def test_range():
    layout = Layout((3, 4), (-4, 1), 2)
    assert layout.offset_bounds == (-8, 3)
    with pytest.raises(ValueError, match="below the start"):
        layout.required_size_in_bytes()
    assert Layout((3, 4), None, 2).required_size_in_bytes() == 24
    assert Layout((3, 0), None, 2).offset_bounds == (0, -1)
    assert Layout((3, 0), None, 2).required_size_in_bytes() == 0
    assert not Layout((2, 2), (0, 1), 4).is_unique
    assert Layout((2, 2), (2, 1), 4).is_unique


def test_value_semantics():
    implicit, explicit = Layout((3, 4), None, 4), Layout((3, 4), (4, 1), 4)
    assert implicit != explicit and implicit == Layout((3, 4), None, 4)
    assert repr(explicit[1]) == "_StridedLayout(shape=(4,), strides=(1,), itemsize=4, _slice_offset=4)"
    with pytest.raises(AttributeError):
        implicit.shape = (4, 3)
    with pytest.raises(TypeError):
        hash(implicit)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (((2,), None, 0), "positive"),
        (((-1,), None, 4), "negative"),
        (((2, 3), (1,), 4), "dimensions"),
        (((2,), (6,), 4, True), "multiples"),
        (((1,) * 65, None, 4), "at most 64"),
    ],
)
def test_constructor_refuses(arguments, text):
    with pytest.raises(ValueError, match=text):
        Layout(*arguments)


@pytest.mark.parametrize("order", ["K", "A", (0, 0), (0,), (0, 5)])
def test_orders_refused(order):
    with pytest.raises(ValueError):
        Layout.dense((2, 3), 4, order)
