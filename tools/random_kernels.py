#!/usr/bin/env python
"""Random CUDA kernels: run them on the present device, compare, show, and shrink those that fail.

    tools/random_kernels.py run --seeds 0:2400 --out tests/random_kernels/h200.txt
    tools/random_kernels.py compare tests/random_kernels/h200.txt [--seeds 0:100]
    tools/random_kernels.py show 17
    tools/random_kernels.py reduce 17

``run`` writes a line for each seed (seed, hash of the kernel's text, hash of what it wrote to memory) and says where
the device differs from the interpreter in `tests/random_kernels`. ``compare`` does the same and reports the seeds whose
hash is not the recorded one. The work is done in batches by processes of their own, so that a kernel which crashes or
hangs costs a line in the report. CUPOLA_DEVICE chooses the device.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.random_kernels.device import MISCOMPILED  # noqa: E402

BATCH = 20
"""Kernels in a program."""

PATIENCE = 60
"""Seconds after which a kernel counts as hanging."""


@dataclass
class Outcome:
    """What happened to one seed. ``difference`` is empty when the device agrees with the interpreter."""

    seed: int
    text: str = ""
    result: str = ""
    difference: str = ""


def batch(seeds: list[int]) -> None:
    """Child process: run some seeds, print an outcome for each."""
    faulthandler.dump_traceback_later(PATIENCE * (1 + len(seeds) // 10), exit=True)
    from tests.random_kernels.device import digest, first_difference, run_kernels, source_digest
    from tests.random_kernels.generator import generate
    from tests.random_kernels.interpreter import Interpreter

    kernels = [generate(seed) for seed in seeds]
    for kernel, found in run_kernels(kernels):
        faulthandler.dump_traceback_later(PATIENCE, exit=True)
        difference = first_difference(kernel, found, Interpreter(kernel).run())
        outcome = Outcome(kernel.seed, source_digest(kernel), digest(found), str(difference or ""))
        print(json.dumps(vars(outcome)), flush=True)


def run_seeds(seeds: list[int], jobs: int, seconds: float) -> Iterator[Outcome]:
    """Outcomes in the order of the seeds."""
    groups = [seeds[at : at + BATCH] for at in range(0, len(seeds), BATCH)]
    with ThreadPoolExecutor(jobs) as pool:
        for outcomes in pool.map(lambda group: settled(group, seconds), groups):
            yield from outcomes


def settled(seeds: list[int], seconds: float) -> list[Outcome]:
    """`run_group`; if it fails itself, only its seeds are lost."""
    try:
        return run_group(seeds, seconds)
    except Exception as error:
        return [Outcome(seed, difference=f"could not be run: {error!r}") for seed in seeds]


def run_group(seeds: list[int], seconds: float) -> list[Outcome]:
    """One batch in a child; seeds that it did not come to get children of their own."""
    command = [sys.executable, __file__, "batch", *map(str, seeds)]
    environment = {"CUPOLA_CPU_CACHE": "0", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", **os.environ}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, env=environment)
        output, why = done.stdout, complaint(done)
    except subprocess.TimeoutExpired as error:
        output, why = (error.stdout or b"").decode(), f"no result after {seconds:.0f} s"
    # A process that was killed in the midst of a line leaves a part of it.
    complete = (line for line in output.splitlines() if line.startswith("{") and line.endswith("}"))
    outcomes = [Outcome(**json.loads(line)) for line in complete]
    missing = [seed for seed in seeds if seed not in {outcome.seed for outcome in outcomes}]
    if len(seeds) == 1 and missing:
        return [Outcome(seeds[0], difference=why)]
    for seed in missing:
        outcomes += run_group([seed], seconds)
    return outcomes


def complaint(done: subprocess.CompletedProcess[str]) -> str:
    """Why a process ended early, in a line."""
    if "Timeout (" in done.stderr:
        return f"no result after {PATIENCE} s"
    if done.returncode < 0:
        return f"signal {-done.returncode}"
    return (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]


def recorded(path: Path) -> dict[int, tuple[str, str]]:
    """Hashes of text and result by seed."""
    rows = (line.split() for line in path.read_text().splitlines() if line and not line.startswith("#"))
    return {int(seed): (text, result) for seed, text, result in rows}


def command_run(arguments: argparse.Namespace) -> int:
    first, last = map(int, arguments.seeds.split(":"))
    start, wrong, lines = time.monotonic(), 0, []
    for outcome in run_seeds(list(range(first, last)), arguments.jobs, arguments.seconds):
        if outcome.difference:
            known = MISCOMPILED.get(outcome.seed)
            wrong += known is None
            print(f"seed {outcome.seed}: {outcome.difference}{f' (known: {known})' if known else ''}", flush=True)
        if outcome.result:
            lines.append(f"{outcome.seed} {outcome.text} {outcome.result}\n")
    if arguments.out:
        arguments.out.write_text("".join(lines))
    print(f"{last - first} seeds, {wrong} differ from the interpreter, {time.monotonic() - start:.0f} s")
    return 1 if wrong else 0


def command_compare(arguments: argparse.Namespace) -> int:
    known = recorded(arguments.file)
    seeds = list(known)
    if arguments.seeds:
        first, last = map(int, arguments.seeds.split(":"))
        seeds = [seed for seed in seeds if first <= seed < last]
    wrong = stale = 0
    for outcome in run_seeds(seeds, arguments.jobs, arguments.seconds):
        text, result = known[outcome.seed]
        if outcome.result == result and not outcome.difference:
            continue
        if (
            outcome.seed in MISCOMPILED
            and outcome.text == text
            and (outcome.result == result or not outcome.difference)
        ):
            continue
        if outcome.text and outcome.text != text:
            stale += 1
            continue
        wrong += 1
        if outcome.result == result:
            print(f"seed {outcome.seed}: as recorded, but the interpreter says {outcome.difference}")
        else:
            who = outcome.difference or "as the interpreter, but not as recorded"
            print(f"seed {outcome.seed}: {who}", flush=True)
    if stale:
        print(f"{stale} seeds have other kernels than those recorded: record again")
    print(f"{len(seeds)} seeds, {wrong} differ")
    return 1 if wrong or stale else 0


def command_show(arguments: argparse.Namespace) -> int:
    from tests.random_kernels.cuda import source
    from tests.random_kernels.generator import generate

    print(source([generate(arguments.seed)]))
    return 0


def trial(request: str) -> None:
    """Child process of ``reduce``: try candidates, and print what came of each, ``[number, what]``."""
    from tests.random_kernels.device import first_difference, run_kernels
    from tests.random_kernels.generator import generate
    from tests.random_kernels.interpreter import Interpreter
    from tests.random_kernels.reducer import apply_edits

    seed, base, tries = json.loads(request)
    for number, edits in enumerate(tries):
        print(json.dumps([number, TRYING]), flush=True)
        faulthandler.dump_traceback_later(SHORT_PATIENCE, exit=True)
        kernel = generate(seed)
        try:
            apply_edits(kernel, base + edits)
            expected = Interpreter(kernel).run()
        except Exception:
            continue  # not a kernel any more
        try:
            ((_, found),) = run_kernels([kernel])
        except Exception as error:
            if "NVRTC" in str(error):
                continue
            print(json.dumps([number, str(error).strip()[:300]]), flush=True)
            return
        difference = first_difference(kernel, found, expected)
        if difference:
            print(json.dumps([number, str(difference)]), flush=True)
            return


SHORT_PATIENCE = 20
"""Seconds after which a candidate of ``reduce`` counts as hanging: what is left of a kernel takes no longer than it."""

TRYING, HANGS, DIES = "trying", "no result", "signal"


def try_candidates(seed: int, base: list[object], tries: list[object], kind: str | None) -> tuple[int, str] | None:
    """The number of the first candidate that fails like the whole kernel, and how; None when none does.

    ``kind`` is how the whole kernel fails, if it hangs or ends the process: other candidates may hang for reasons of
    their own, and are passed over.
    """
    start = 0
    while start < len(tries):
        request = json.dumps([seed, base, tries[start:]])
        environment = {"CUPOLA_CPU_CACHE": "0", **os.environ}
        command = [sys.executable, __file__, "trial", request]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, env=environment, timeout=SHORT_PATIENCE * (1 + len(tries))
            )
            output, status = done.stdout, done.returncode
        except subprocess.TimeoutExpired as error:
            output, status = (error.stdout or b"").decode(), 1
        lines = [line for line in output.splitlines() if line.startswith("[") and line.endswith("]")]
        if not lines:
            return None
        number, what = json.loads(lines[-1])
        if what != TRYING:
            return start + number, what
        if status == 0:
            return None
        failure = DIES if status < 0 else HANGS
        if kind in (None, failure):
            return start + number, f"{failure} {-status}" if status < 0 else failure
        start += number + 1
    return None


def command_reduce(arguments: argparse.Namespace) -> int:
    from tests.random_kernels.cuda import text
    from tests.random_kernels.generator import generate
    from tests.random_kernels.reducer import apply_edits, candidates

    why = try_candidates(arguments.seed, [], [[]], None)
    if why is None:
        print(f"seed {arguments.seed} does not fail here")
        return 1
    kind = why[1].split(" ")[0] if why[1].startswith(DIES) else why[1] if why[1] == HANGS else "difference"
    print(f"seed {arguments.seed}: {why[1]}", file=sys.stderr)
    edits: list[object] = []
    limit = time.monotonic() + arguments.minutes * 60
    position = 0
    while time.monotonic() < limit:
        kernel = generate(arguments.seed)
        apply_edits(kernel, edits)  # type: ignore[arg-type]
        tries = list(candidates(kernel))
        if position >= len(tries):
            break
        # After a success the candidates are others; going on from the same place saves those that failed already.
        found = try_candidates(arguments.seed, edits, tries[position : position + 40], kind)
        if found is None:
            position += 40
            continue
        edits += tries[position + found[0]]
        position = max(0, position + found[0] - 1) if len(edits) % 10 else 0
        why = found
    kernel = generate(arguments.seed)
    apply_edits(kernel, edits)  # type: ignore[arg-type]
    print(text(kernel))
    print(f"// {why[1]}")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True, metavar="command")

    def add(name: str, function: object, help: str) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=help)
        command.set_defaults(function=function)
        return command

    run = add("run", command_run, "run seeds here and write down their results")
    run.add_argument("--seeds", default="0:2400", metavar="A:B", help="from A up to, without, B (default: %(default)s)")
    run.add_argument("--out", type=Path, metavar="FILE")
    compare = add("compare", command_compare, "run recorded seeds here and report differences")
    compare.add_argument("file", type=Path, metavar="FILE")
    compare.add_argument("--seeds", metavar="A:B", help="only these")
    for command in (run, compare):
        command.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: all cores)")
        command.add_argument("--seconds", type=float, default=300, help="patience for a batch (default: %(default)s)")
    reduce = add("reduce", command_reduce, "shrink a kernel that fails here")
    reduce.add_argument("seed", type=int)
    reduce.add_argument("--minutes", type=float, default=5, help="when to stop (default: %(default)s)")
    add("show", command_show, "print a kernel").add_argument("seed", type=int)

    if sys.argv[1:2] == ["batch"]:
        batch([int(seed) for seed in sys.argv[2:]])
        return 0
    if sys.argv[1:2] == ["trial"]:
        trial(sys.argv[2])
        return 0
    arguments = parser.parse_args()
    return arguments.function(arguments)


if __name__ == "__main__":
    sys.exit(main())
