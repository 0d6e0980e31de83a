"""Whatever PTX a module has, loading, compiling and launching it ends in a CUDA error, or not at all."""

from __future__ import annotations

import pytest

from .campaign import campaign
from .mutation import corpus, mutant

pytestmark = pytest.mark.cpu_only

MENDED = [1822, 1880, 2354, 2383, 2775, 2833, 3116, 3400]
"""Seeds that once found a defect; `tools/fuzz_ptx.py` goes through as many as one wants."""


def test_mutants_are_the_same_everywhere() -> None:
    assert mutant(7) == mutant(7) != mutant(8)
    assert all(mutant(seed) != text for seed in range(8) for text in corpus().values())


@pytest.mark.parametrize("seeds", [MENDED, list(range(60))], ids=["mended", "more"])
def test_no_mutant_is_a_defect(seeds: list[int]) -> None:
    outcomes = list(campaign(seeds))
    assert [outcome.seed for outcome in outcomes] == seeds
    assert [outcome for outcome in outcomes if outcome.is_defect] == []
    if len(seeds) > 20:  # or the mutations would not test much
        found = {outcome.text for outcome in outcomes}
        assert "ok" in found and "INVALID_PTX" in found and len(found) > 2
