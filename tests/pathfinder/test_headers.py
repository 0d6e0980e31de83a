"""Header folders are found by a header they must contain."""

from __future__ import annotations

import os

import pytest

from cupola import pathfinder
from cupola.pathfinder import _headers as headers


@pytest.fixture(autouse=True)
def fresh():
    def clear():
        headers.locate_nvidia_header_directory.cache_clear()
        pathfinder.get_cuda_path_or_home.cache_clear()

    clear()
    yield
    clear()


@pytest.mark.parametrize("name", ["cudart", "cccl", "nvrtc"])
def test_the_installed_headers_are_found(name):
    found = pathfinder.locate_nvidia_header_directory(name)
    assert found is not None
    assert os.path.isfile(os.path.join(found.abs_path, pathfinder.SUPPORTED_HEADERS_CTK[name]))
    assert pathfinder.find_nvidia_header_directory(name) == found.abs_path


def test_unknown_name():
    with pytest.raises(RuntimeError, match="cudart"):
        pathfinder.find_nvidia_header_directory("cuda_runtime")


@pytest.mark.parametrize(
    ("variable", "folder", "via"),
    [
        ("CUDA_PATH", "include", "CUDA_PATH"),
        ("CONDA_PREFIX", f"targets/{os.uname().machine}-linux/include", "conda"),
    ],
)
def test_other_places(monkeypatch, tmp_path, variable, folder, via):
    monkeypatch.setattr(headers, "site_packages", lambda: [])
    for name in ("CUDA_PATH", "CUDA_HOME", "CONDA_PREFIX"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / folder).mkdir(parents=True)
    (tmp_path / folder / "cufft.h").touch()
    monkeypatch.setenv(variable, str(tmp_path))
    found = pathfinder.locate_nvidia_header_directory("cufft")
    assert found is not None and (found.abs_path, found.found_via) == (str(tmp_path / folder), via)


def test_absent_headers(monkeypatch):
    monkeypatch.setattr(headers, "_candidates", lambda name: [])
    assert pathfinder.locate_nvidia_header_directory("cufft") is None
    assert pathfinder.find_nvidia_header_directory("cufft") is None


def test_cuda_path_wins_over_cuda_home(monkeypatch):
    monkeypatch.setenv("CUDA_PATH", "/first")
    monkeypatch.setenv("CUDA_HOME", "/second")
    with pytest.warns(UserWarning, match="CUDA_PATH is used"):
        assert pathfinder.get_cuda_path_or_home() == "/first"
    monkeypatch.setenv("CUDA_PATH", "")
    pathfinder.get_cuda_path_or_home.cache_clear()
    assert pathfinder.get_cuda_path_or_home() == "/second"
