"""The table of CUDA programs beside OpenMP: every program is complete, and one runs."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

pytest.importorskip("numpy", reason="the programs' arrays are NumPy's")

from benchmarks.programs import sides, table

SOURCES = Path(sides.__file__).parent / "sources"


def test_each_source_has_a_row():
    assert {path.stem for path in SOURCES.iterdir()} == {program.name for program in table.PROGRAMS}
    assert len(table.PROGRAMS) >= 20


@pytest.mark.parametrize("program", table.PROGRAMS, ids=lambda program: program.name)
def test_a_row_fits_its_source(program):
    text = sides.source_of(program)
    kernels = dict(re.findall(r"KERNEL void (\w+)\(([^)]*)\)", text))
    assert {launch.kernel for launch in program.launches} == kernels.keys()
    for launch in program.launches:
        assert len(launch.arguments.split()) == kernels[launch.kernel].count(",") + 1, launch
    function = re.search(r"^void program\(([^)]*)\)", text, re.MULTILINE)
    arrays = program.arrays()
    assert function and re.findall(r"(\w+)(?=,|$)", function[1]) == [*arrays, *program.scalars]
    assert set(program.results) <= arrays.keys()


@pytest.mark.cpu_only
@pytest.mark.skipif(not shutil.which("gcc"), reason="needs gcc")
def test_both_sides_agree(tmp_path):
    program = next(program for program in table.PROGRAMS if program.name == "sort_blocks")
    sides.build([program], str(tmp_path))
    arrays = sides.arrays_of(program)
    results = []
    for run, result in (sides.cupola(program, arrays), sides.openmp(program, arrays, str(tmp_path))):
        run()
        results.append(result()["out"])
    assert sides.difference(program, *results) == 0
    assert sides.difference(program, results[0][::-1], results[1]) > 1
