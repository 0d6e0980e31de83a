"""Arrays that the tests of a module share cannot be changed by one of them."""

from __future__ import annotations

from types import ModuleType

import numpy
import pytest

from tests import shared_arrays

SHARED = numpy.arange(3)


@pytest.mark.parametrize("place", [lambda a: a, lambda a: [a], lambda a: (1, [a]), lambda a: {"key": a}])
def test_globals_are_read_only(place):
    module, array = ModuleType("tests_of_something"), numpy.arange(3)
    module.VALUES = place(array)
    shared_arrays.protect([module])
    with pytest.raises(ValueError, match="read-only"):
        array.sort()


def test_this_module_is_protected():
    with pytest.raises(ValueError, match="read-only"):
        SHARED[0] = 1
