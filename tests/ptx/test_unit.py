"""The approximate functions give the bits of an H200: for all inputs, of which the suite tries one block in fifteen.

`CUPOLA_ALL_INPUTS=1 pytest tests/ptx/test_unit.py` tries them all, which takes a minute.
"""

from __future__ import annotations

import os

import numpy as np
import pytest

from tests.ptx.unit_sums import FUNCTIONS, recorded, sums

STEP = 1 if os.environ.get("CUPOLA_ALL_INPUTS") == "1" else 15


@pytest.mark.parametrize("function", FUNCTIONS)
def test_results_are_those_of_an_h200(function: str) -> None:
    expected = recorded()[function]
    blocks = range(0, len(expected), STEP if len(expected) > STEP else 1)
    found = sums(function, blocks)
    wrong = [blocks[int(at)] for at in np.flatnonzero(found != expected[blocks])]
    assert not wrong, f"inputs that begin with {', '.join(f'{block << 20:#010x}' for block in wrong[:8])} differ"


@pytest.mark.cpu_only
def test_fast_numbers_are_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUPOLA_CPU_NUMERICS", "fast")
    block = 0x3F8
    assert sums("rcp.approx.f32", [block])[0] != recorded()["rcp.approx.f32"][block]
