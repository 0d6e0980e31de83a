"""examples/hopper_matmul.py for other sizes than its own."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from cupola import Device

pytestmark = pytest.mark.skipif(
    tuple(Device(0).compute_capability) != (9, 0), reason="wgmma is for devices of compute capability 9.0"
)


@pytest.mark.parametrize(
    ("m", "n", "k", "blocks"),
    [
        (128, 256, 64, 1),  # one tile, one step
        (130, 258, 8, 3),  # four tiles, most of them and of the only step outside of the matrices
        (384, 512, 264, 1),  # one block makes six tiles, each with five steps through the four stages
        (256, 512, 448, 2),
    ],
)
def test_product(m, n, k, blocks, monkeypatch, capsys):
    """The example compares with NumPy itself."""
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "examples")
    importlib.import_module("hopper_matmul").main(m, n, k, blocks)
    assert f"{m} x {n} x {k}" in capsys.readouterr().out
