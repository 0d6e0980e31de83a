"""The truth: small kernels, faulty and sound in pairs, and what the checks find in each of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from cupola import Device, LaunchConfig, Program, ProgramOptions, cpu, launch

pytestmark = [
    pytest.mark.cpu_only,
    pytest.mark.unchecked(reason="it switches checks on itself, and runs faulty programs to see what they find"),
]

TABLE = Path(__file__).parent / "table"
ROW = re.compile(r"^//: (\w+) <<<(\d+), (?:dim3\()?([\d, ]+)\)?>>>\nK (\w+)\(int\* out(, int n)?\)", re.MULTILINE)
WORDS = 4096
CONCERNED = {"init.cu": "init", "sync.cu": "sync"}
"""The check that a file is about, where it is not races."""


class Case(NamedTuple):
    file: str
    name: str
    expected: str
    grid: int
    block: tuple[int, ...]
    has_number: bool


def cases(file: str) -> Iterator[Case]:
    for expected, grid, block, name, number in ROW.findall((TABLE / file).read_text()):
        yield Case(file, name, expected, int(grid), tuple(map(int, block.split(","))), bool(number))


def run(dev: Device, code: object, case: Case) -> set[str]:
    """What is found when the kernel runs on memory that is filled, but for the cases about that."""
    stream = dev.create_stream()
    kernel = code.get_kernel(case.name)
    with cpu.checks(race=True, init=True, sync=True) as checks:
        memory = dev.allocate(4 * WORDS, stream=stream)
        if case.file != "init.cu":
            memory.fill(b"\0", stream=stream)
        numbers = (5,) if case.has_number else ()
        launch(stream, LaunchConfig(grid=case.grid, block=case.block), kernel, memory, *numbers)
        stream.sync()
    memory.close()
    stream.close()
    found = {finding.kind for finding in checks.findings}
    return found & {CONCERNED.get(case.file, "race")} if case.expected != "none" else found


@pytest.mark.parametrize("file", sorted(path.name for path in TABLE.glob("*.cu")))
def test_table(device: Device, file: str) -> None:
    dev = device
    options = ProgramOptions(name=file, arch=f"sm_{dev.arch}", lineinfo=True)
    code = Program((TABLE / file).read_text(), "c++", options).compile("cubin")
    wrong = []
    for case in cases(file):
        found = run(dev, code, case)
        if found != {case.expected} - {"none"}:
            wrong.append((case.name, case.expected, *sorted(found)))
    assert not wrong, "\n".join(map(str, wrong))


def test_the_table_is_large() -> None:
    rows = [case for path in TABLE.glob("*.cu") for case in cases(path.name)]
    faulty = [case for case in rows if case.expected != "none"]
    assert len(rows) >= 150
    assert len(rows) == sum(path.read_text().count("//: ") for path in TABLE.glob("*.cu"))
    assert len(faulty) >= len(rows) // 3 and len(rows) - len(faulty) >= len(rows) // 3
