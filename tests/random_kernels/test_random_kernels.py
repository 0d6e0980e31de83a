"""Random kernels leave in memory what the interpreter says, and what an H200 left there.

`h200.txt` has the hashes that `tools/random_kernels.py run` made there; the same tool goes through as many seeds as one
likes, and shrinks a kernel that fails.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.random_kernels.device import digest, first_difference, run_kernels, source_digest
from tests.random_kernels.generator import RECURSIVE, generate
from tests.random_kernels.interpreter import Interpreter, Malformed
from tests.random_kernels.program import Kernel, Let, Loop, Warp, walk

RECORDED = Path(__file__).with_name("h200.txt")
SEEDS = [*range(120), *range(RECURSIVE, RECURSIVE + 40)]
BATCH = 10
PARTS = 4  # of the batches, of which each run has one (tests/turns.py)
BATCHES = [pytest.param(first, marks=pytest.mark.turn(n % PARTS, of=PARTS)) for n, first in enumerate(SEEDS[::BATCH])]


def recorded() -> dict[int, tuple[str, str]]:
    if not RECORDED.exists():
        return {}
    rows = (line.split() for line in RECORDED.read_text().splitlines())
    return {int(seed): (text, result) for seed, text, result in rows}


@pytest.mark.unchecked(reason="ballots name threads that have exited")
@pytest.mark.parametrize("first", BATCHES)
def test_device_agrees_with_the_interpreter_and_with_a_gpu(first: int) -> None:
    known = recorded()
    wrong = []
    for kernel, found in run_kernels([generate(seed) for seed in range(first, first + BATCH)]):
        difference = first_difference(kernel, found, Interpreter(kernel).run())
        if difference:
            wrong.append(f"seed {kernel.seed}: {difference}")
        if kernel.seed not in known and kernel.seed >= RECURSIVE and not any(seed >= RECURSIVE for seed in known):
            continue
        text, result = known[kernel.seed]
        if source_digest(kernel) != text:
            wrong.append(f"seed {kernel.seed}: the kernel is another than the recorded one; record again")
        elif digest(found) != result:
            wrong.append(f"seed {kernel.seed}: as interpreted, but not what the H200 left")
    assert not wrong, "\n".join(wrong)


def test_every_seed_without_recursion_is_recorded() -> None:
    assert set(range(RECURSIVE)) <= set(recorded())


@pytest.mark.parametrize("seed", range(1000, 1060))
def test_interpreter_finds_generated_kernels_well_formed(seed: int) -> None:
    Interpreter(generate(seed)).run()


def without_masks_of_loops(kernel: Kernel) -> bool:
    """Take the loop's own ballot away, so that lanes which have left stay in its mask."""
    for loop in walk(kernel.body):
        if isinstance(loop, Loop) and loop.form == "endless":
            first = loop.body[0]
            ballot = loop.body[1]
            assert isinstance(first, Let) and isinstance(ballot, Let) and isinstance(ballot.value, Warp)
            ballot.value = ballot.value.mask
            return any(isinstance(s, Let) and isinstance(s.value, Warp) for s in walk(loop.body))
    return False


def test_interpreter_refuses_masks_that_name_absent_lanes() -> None:
    refused = 0
    for seed in range(1000, 1100):
        kernel = generate(seed)
        if without_masks_of_loops(kernel):
            try:
                Interpreter(kernel).run()
            except Malformed:
                refused += 1
    assert refused


def test_interpreter_refuses_loops_without_an_end() -> None:
    kernel = generate(1)
    loops = [s for seed in range(1000, 1100) for s in walk(generate(seed).body) if isinstance(s, Loop)]
    loop = next(s for s in loops if s.form == "endless")
    loop.body = [Let(loop.counter, loop.counter)]
    kernel.body = [loop]
    kernel.results = []
    with pytest.raises(Malformed):
        Interpreter(kernel).run()


def test_interpreter_runs_a_kernel_that_ends_everywhere_before_its_last_variables() -> None:
    kernel = generate(515)
    left = Interpreter(kernel).run()
    assert not left.output[:, 2:].any()
