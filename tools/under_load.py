#!/usr/bin/env python3
"""Run tests again and again on a busy machine, and say which of them have failed.

    tools/under_load.py                               # the suite once, with four busy processes beside it
    tools/under_load.py --times 3                     # three times
    tools/under_load.py --suspects --times 50         # the tests that have once failed for load, fifty times
    tools/under_load.py --times 50 tests/nccl -k killed

What follows the options goes to pytest, whose output is in build/under_load. No test depends on load: one that fails
here waits for a time where it should wait for an event. docs/testing.md has more.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SUSPECTS = Path(__file__).with_name("under_load.txt")
# It ends with its parent, however that ends.
SPIN = "import os\nparent = os.getppid()\nwhile os.getppid() == parent:\n    sum(range(100_000))"


@contextlib.contextmanager
def busy(count: int) -> Iterator[None]:
    """So many processes that do nothing but use a processor."""
    children = [subprocess.Popen([sys.executable, "-c", SPIN]) for _ in range(count)]
    try:
        yield
    finally:
        for child in children:
            child.kill()
            child.wait()


def suspects() -> list[str]:
    """The tests that have once failed for load."""
    lines = (line.partition("#")[0].strip() for line in SUSPECTS.read_text().splitlines())
    return [line for line in lines if line]


def failures(output: str) -> list[str]:
    """The tests that failed, by pytest's summary."""
    return re.findall(r"^(?:FAILED|ERROR) (.*?)(?: - .*)?$", output, re.M)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--busy", type=int, default=4, help="busy processes beside the tests (default: 4)")
    parser.add_argument("--times", type=int, default=1, help="how often (default: 1)")
    parser.add_argument("--suspects", action="store_true", help=f"the tests of {SUSPECTS.name}")
    parser.add_argument("--workers", default="2", help="workers of pytest-xdist (default: 2)")
    parser.add_argument("--logs", type=Path, default=ROOT / "build" / "under_load", help="a folder for the logs")
    options, arguments = parser.parse_known_args()
    if options.busy < 0 or options.times < 1:
        parser.error("--busy must not be negative, and --times must be at least 1")
    options.logs.mkdir(parents=True, exist_ok=True)
    chosen = [*(suspects() if options.suspects else []), *arguments]
    command = [sys.executable, "-m", "pytest", "-n", options.workers, "-rfE", "-p", "no:cacheprovider", *chosen]
    failed: collections.Counter[str] = collections.Counter()
    bad = 0
    with busy(options.busy):
        for number in range(1, options.times + 1):
            log, began = options.logs / f"{number}.log", time.monotonic()
            with log.open("w") as output:
                status = subprocess.run(command, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT).returncode
            text = log.read_text()
            failed.update(failures(text))
            bad += status != 0
            last = text.rstrip().rpartition("\n")[2].strip("= ")
            load = f"{os.getloadavg()[0]:.1f} threads want to run"
            print(f"{number}: status {status} after {time.monotonic() - began:.0f} s, {load}: {last}", flush=True)
    print(f"{bad} of {options.times} runs failed, with {options.busy} busy processes beside them")
    for test, count in failed.most_common():
        print(f"  {count} times: {test}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
