"""Command-line tools: executable files only, and never from PATH."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cupola import pathfinder
from tests.pathfinder.conftest import touch


def tool(path: Path) -> str:
    touch(path, "#!/bin/sh\n")
    os.chmod(path, 0o755)
    return str(path)


PLACES = [
    ("nvcc", "site", "nvidia/cu13/bin"),
    ("ptxas", "site", "nvidia/cuda_nvcc/bin"),
    ("cuobjdump", "site", "nvidia/cuda_cuobjdump/bin"),
    ("cuda-gdb", "CONDA_PREFIX", "bin"),
    ("nsys", "CUDA_PATH", "bin"),
    ("compute-sanitizer", "CUDA_HOME", "bin"),
]


@pytest.mark.parametrize(("name", "root", "folder"), PLACES)
def test_places(site, monkeypatch, tmp_path, name, root, folder):
    path = tool((site if root == "site" else tmp_path) / folder / name)
    if root != "site":
        monkeypatch.setenv(root, str(tmp_path))
    assert pathfinder.find_nvidia_binary_utility(name) == path


def test_the_toolkit_of_the_systems_cudart(system_toolkit):
    assert pathfinder.find_nvidia_binary_utility("nvcc") is None
    pathfinder.find_nvidia_binary_utility.cache_clear()
    path = tool(system_toolkit / "bin" / "nvcc")
    assert pathfinder.find_nvidia_binary_utility("nvcc") == path


def test_what_cannot_be_run_is_passed_over(site, monkeypatch, tmp_path):
    touch(site / "nvidia" / "cu13" / "bin" / "nvcc")
    (site / "nvidia" / "cuda_nvcc" / "bin" / "nvcc").mkdir(parents=True)
    tool(tmp_path / "path" / "nvcc")
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    assert pathfinder.find_nvidia_binary_utility("nvcc") is None


def test_unknown_name():
    with pytest.raises(pathfinder.UnsupportedBinaryError, match="'gcc'.*nvcc"):
        pathfinder.find_nvidia_binary_utility("gcc")
    assert len(pathfinder.SUPPORTED_BINARY_UTILITIES) == 16
