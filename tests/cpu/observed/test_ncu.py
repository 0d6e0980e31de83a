"""What the CPU device counts is what Nsight Compute has counted on an H200, kernel by kernel."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tools.ncu_counts import counted, differences

RECORDED = Path(__file__).with_name("ncu_h200.json")


@pytest.mark.cpu_only
@pytest.mark.unchecked(reason="the kernels read shared memory that nobody has written: only accesses are counted")
def test_counts_are_those_of_a_gpu():
    recorded = json.loads(RECORDED.read_text())
    assert len(recorded) > 100
    said = differences(recorded, counted())
    assert not said, "\n".join(said)
