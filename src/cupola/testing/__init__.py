"""Tests of programs that use a GPU, with pytest, where there is one and where there is none.

The plugin (:mod:`cupola.testing.plugin`) registers itself where cupola is installed. It has the fixtures ``device``,
``stream`` and ``fresh_device``, the mark ``cupola`` and options that choose the device. `assert_allclose` compares
arrays of the device, and :mod:`cupola.testing.strategies` has strategies for hypothesis.

``pytest -p cupola.testing`` also runs the tests of a program written for CUDA Python: as long as this module is a
plugin, ``cuda.core``, ``cuda.bindings`` and ``cuda.pathfinder`` are cupola, as with ``cupola run``.
"""

from __future__ import annotations

import pytest

from cupola.testing._compare import assert_allclose as assert_allclose

__all__ = ["assert_allclose"]

pytest_plugins = ["cupola.testing.plugin"]  # where plugins are not loaded by themselves


# As early as can be: a conftest.py may import the program under test.
@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Take the names over before any conftest.py is read."""
    _take_names(early_config)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Do the same where a conftest.py names this plugin, which is late but in time for the tests."""
    _take_names(config)


def _take_names(config: pytest.Config) -> None:
    from cupola.testing import plugin  # not before pytest does, which prepares it for its messages

    plugin.start(config, names=True)
