"""Kernels of these tests are compiled in the simplest way: they are many, run once, and are about what they compute."""

from __future__ import annotations

import pytest

from cupola.cpu.compiler.objects import machine


@pytest.fixture(autouse=True, scope="module")
def quick_compilation():
    """As with CUPOLA_CPU_OPTIMIZE=0."""
    patch = pytest.MonkeyPatch()
    patch.setattr(machine, "quick", True)
    yield
    patch.undo()
