"""Places made for a test, in which nothing of this computer's is found."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from cupola import pathfinder
from cupola.pathfinder import _canary, _dynamic_libraries, _loader, _platform, _roots
from tests import processes

VARIABLES = (
    "CUDA_PATH",
    "CUDA_HOME",
    "CONDA_PREFIX",
    "CUDNN_PATH",
    "NCCL_HOME",
    "PROGRAMFILES",
    "PROGRAMW6432",
)
CACHED = (
    pathfinder.get_cuda_path_or_home,
    pathfinder.locate_nvidia_header_directory,
    pathfinder.find_bitcode_lib,
    pathfinder.find_static_lib,
    pathfinder.find_nvidia_binary_utility,
)


@pytest.fixture
def nowhere(monkeypatch):
    """No variable is set, no site-packages exists, and the loader finds nothing; nothing is remembered."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(_roots, "site_packages", lambda: [])
    monkeypatch.setattr(_canary, "_answers", dict.fromkeys(["cudart", "nvrtc"]))
    monkeypatch.setattr(_dynamic_libraries, "_loaded", {})
    monkeypatch.setattr(_loader, "try_open", lambda soname, **_: 0)
    monkeypatch.setattr(_loader, "refusal", lambda soname: "")
    for function in CACHED:
        function.cache_clear()
    yield
    for function in CACHED:
        function.cache_clear()


@pytest.fixture
def opened(nowhere, monkeypatch) -> list[str]:
    """The files that the loader was told to open, in order; it opens none of them."""
    paths: list[str] = []

    def open_file(path: str, **_: bool) -> int:
        paths.append(path)
        return len(paths)

    monkeypatch.setattr(_loader, "open_file", open_file)
    return paths


@pytest.fixture(params=["x86_64", "aarch64"])
def windows(nowhere, monkeypatch, request) -> _platform.Platform:
    """Searches are those for Windows on one processor, then the other; the tree is this computer's."""
    platform = _platform.Platform("windows", request.param)
    monkeypatch.setattr(_platform, "current", lambda: platform)
    return platform


@pytest.fixture
def site(nowhere, monkeypatch, tmp_path) -> Path:
    """A site-packages folder to put wheels into."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    monkeypatch.setattr(_roots, "site_packages", lambda: [str(folder)])
    return folder


@pytest.fixture
def system_toolkit(nowhere, monkeypatch, tmp_path) -> Path:
    """The root of a toolkit whose cudart the loader finds."""
    root = tmp_path / "system-toolkit"
    monkeypatch.setitem(_canary._answers, "cudart", str(root / "targets" / "x86_64-linux" / "lib" / "libcudart.so.13"))
    return root


def touch(path: Path, text: str = "") -> str:
    """Make a file and the folders above it; returns its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return str(path)


@pytest.fixture(scope="session")
def make_library() -> Callable[..., str]:
    """Build a shared library, as the loader refuses anything else: make_library(folder, soname, source, *needed)."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("needs a C compiler to make a library to be found")

    def make(folder: os.PathLike[str], soname: str, source: str = "", *needed: str) -> str:
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, soname)
        command = [compiler, "-shared", "-fPIC", "-x", "c", "-", "-x", "none", *needed]
        command += [f"-Wl,-soname,{soname}", "-o", path]
        processes.run(command, input=source, check=True)
        return path

    return make
