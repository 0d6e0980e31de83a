"""`assert_allclose`: what is equal, and what the error says."""

from __future__ import annotations

import numpy as np
import pytest

from cupola.testing import assert_allclose

F = np.float32
EQUAL = [
    ([1.0, 2.0], [1.0, 2.0], {}),
    (F([1.0]), [1.000001], {}),  # the precision of the lesser type counts
    (np.float16([1000]), F([1000.5]), {}),
    (F([1, np.nan, np.inf]), [1, np.nan, np.inf], {}),
    (np.int64([2**62 + 1]), np.int64([2**62 + 1]), {}),
    (np.array([1 + 2j], "c8"), [1 + 2.000001j], {}),
    (F([[1, 1], [1, 1]]), 1, {}),
    (F([]), F([]), {}),
    ([1, 2], [1, 3], {"atol": 1}),
    ([True, False], [True, False], {}),
]
DIFFERENT = [
    ([1.0], [1.1], {}, r"1 of 1 elements differs by more than 1e-12 \+ 1e-07"),
    (F([1, np.nan]), F([1, np.nan]), {"equal_nan": False}, r"\[1\]  actual nan  desired nan  difference nan"),
    (F([1]), [np.nan], {}, "actual 1.0  desired nan"),
    (F([np.inf]), F([-np.inf]), {}, "difference inf"),
    (np.int64([2**62 + 1]), np.int64([2**62]), {}, "differs at all\n.*difference 1$"),
    (
        [[1, 2], [3, 4]],
        [[1, 2], [5, 9]],
        {},
        r"2 of 4 .*\n  \[1, 0\]  actual 3 .*\n  \[1, 1\]  actual 4  .*difference 5",
    ),
    (np.zeros(20), np.ones(20), {}, r"20 of 20 elements differ(.|\n)*\.\.\. and 12 more"),
    ([1.0], [1.0, 2.0], {}, r"actual has shape \(1,\), desired \(2,\)"),
    ([True], [False], {}, "1 of 1"),
    (1.0, 2.0, {}, r"\[\]  actual 1.0"),
]


@pytest.mark.parametrize("on_device", [False, True])
def test_equal(device, on_device):
    for actual, desired, options in EQUAL:
        assert_allclose(device.array(actual) if on_device else actual, desired, **options)


def test_different(device):
    for actual, desired, options, text in DIFFERENT:
        for left in (actual, device.array(actual)):
            with pytest.raises(AssertionError, match=text):
                assert_allclose(left, desired, **options)


def test_arrays_of_other_libraries(device):
    class Foreign:
        def __init__(self, array):
            self.array, self.__cuda_array_interface__ = array, array.__cuda_array_interface__

    made = device.array(F([[1, 2, 3], [4, 5, 6]]))
    assert_allclose(Foreign(made.T), [[1, 4], [2, 5], [3, 6]])
    with pytest.raises(AssertionError, match=r"\[1, 2\]  actual 6.0  desired 7 "):
        assert_allclose(Foreign(made), [[1, 2, 3], [4, 5, 7]])


def test_what_has_no_differences():
    with pytest.raises(TypeError, match="actual is an array of <U1, which has no differences"):
        assert_allclose(["a"], ["a"])
