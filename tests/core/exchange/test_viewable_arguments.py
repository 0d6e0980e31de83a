"""args_viewable_as_strided_memory: functions that take arrays of any library."""

from __future__ import annotations

import numpy as np
import pytest

from cupola.utils import StridedMemoryView, args_viewable_as_strided_memory


@args_viewable_as_strided_memory((0, 2))
def describe(first, number, second, *, option=None):
    """Text."""
    return first, number, second.view(-1).shape, option


def test_arguments_are_replaced():
    array = np.zeros((2, 3), dtype=np.float32)
    first, number, shape, option = describe(array, 5, np.zeros(4), option="x")
    assert (number, shape, option) == (5, (4,), "x")
    assert first.obj is array and first.has_dlpack
    view = first.view(-1)
    assert isinstance(view, StridedMemoryView) and view.exporting_obj is array
    assert first.view(12345).shape == (2, 3)
    with pytest.raises(BufferError, match="ambiguous"):
        first.view()
    with pytest.raises(AttributeError):
        first.obj = None
    assert describe.__name__ == "describe" and describe.__doc__ == "Text."


def test_what_cannot_be_viewed():
    with pytest.raises(BufferError, match="list"):
        describe([1], 5, np.zeros(4))
    with pytest.raises(IndexError, match="position"):
        describe(np.zeros(4), 5, second=np.zeros(4))
