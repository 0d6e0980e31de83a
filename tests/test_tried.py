"""Versions of packages above CUDA: those that were tried are the records', and of others a program is told."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from cupola._tried import TRIED
from tests import processes

ROOT = Path(__file__).resolve().parents[1]
ONLY_GPUS = {"cupy-cuda13x", "warp-lang"}  # NVIDIA's runtime inside, of whatever version

PROGRAM = """
import importlib, sys
for name in sys.argv[1:]:
    print(importlib.import_module(name).__name__)
    importlib.import_module(name)
"""


def test_the_versions_are_those_of_the_records() -> None:
    recorded = [
        run for file in (ROOT / "tools/ecosystem/records").glob("*.json") for run in json.loads(file.read_text())
    ]
    assert recorded
    versions = {(run["package"], ".".join(run["version"].split(".")[:2])) for run in recorded}
    known = {(package, version) for package, (_, tried) in TRIED.items() for version in tried}
    assert {each for each in versions if each[0] not in ONLY_GPUS} == known


def install(folder: Path, distribution: str, version: str, module: str, text: str = "") -> None:
    """A package that has nothing but a name and a version."""
    info = folder / f"{distribution.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")
    package = folder / module.replace(".", "/")
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(text)


@pytest.mark.cpu_only
def test_a_program_is_told_of_a_version_that_is_not_known(tmp_path: Path) -> None:
    install(tmp_path, "triton", "99.1.0", "triton")
    install(tmp_path, "nvmath-python", "1.0.7", "nvmath")
    install(tmp_path, "cuda-tile", "0.3", "cuda/tile")
    cpu_only = "class version:\n    cuda = None\n"  # the build of PyTorch without CUDA
    install(tmp_path, "torch", "99.0", "torch", cpu_only)
    (tmp_path / "program.py").write_text(PROGRAM)
    names = ["triton", "nvmath", "cuda.tile", "torch"]
    command = [sys.executable, "-m", "cupola", "run", "--device", "cpu", str(tmp_path / "program.py"), *names]
    done = processes.run(command)
    assert (done.returncode, done.stdout.split()) == (0, names), done.stderr
    told = [line for line in done.stderr.splitlines() if "does not know" in line]
    assert len(told) == 2, done.stderr
    assert told[0].startswith(
        "triton 99.1.0 is a version that the CPU device does not know; it has been tried with 3.9"
    )
    assert told[1].startswith("cuda-tile 0.3 ") and 'pip install "cuda-tile==1.7.*"' in told[1]
