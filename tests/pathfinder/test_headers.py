"""Header folders are found by a header they must contain."""

from __future__ import annotations

import os

import pytest

from cupola import pathfinder
from cupola.pathfinder._header_table import HEADERS, Headers
from tests.pathfinder.conftest import touch

MACHINE = os.uname().machine
TARGET = f"targets/{'sbsa' if MACHINE == 'aarch64' else MACHINE}-linux/include"


@pytest.mark.parametrize("name", ["cudart", "cccl", "nvrtc"])
def test_the_installed_headers_are_found(name):
    found = pathfinder.locate_nvidia_header_directory(name)
    assert found is not None
    assert os.path.isfile(os.path.join(found.abs_path, pathfinder.SUPPORTED_HEADERS_CTK[name]))
    assert pathfinder.find_nvidia_header_directory(name) == found.abs_path


def test_unknown_name():
    with pytest.raises(RuntimeError, match="cudart"):
        pathfinder.find_nvidia_header_directory("cuda_runtime")


# Headers, where the folder is put (a variable: below its value), found via.
PLACES = [
    ("cudart", "site", "nvidia/cu13/include", "site-packages"),
    ("cudart", "site", "nvidia/cuda_runtime/include", "site-packages"),
    ("cccl", "site", "nvidia/cu13/include/cccl", "site-packages"),
    ("cccl", "site", "nvidia/cuda_cccl/include", "site-packages"),
    ("nvvm", "site", "nvidia/cuda_nvcc/nvvm/include", "site-packages"),
    ("cutlass", "site", "cutlass_library/source/include", "site-packages"),
    ("cutensor", "site", "cutensor/include", "site-packages"),
    ("cufft", "CONDA_PREFIX", TARGET, "conda"),
    ("cccl", "CONDA_PREFIX", f"{TARGET}/cccl", "conda"),
    ("custatevec", "CONDA_PREFIX", "include", "conda"),
    ("nccl", "NCCL_HOME", "include", "NCCL_HOME"),
    ("cudnn", "CUDNN_PATH", "include", "CUDNN_PATH"),
    ("cccl", "CUDA_PATH", "include/cccl", "CUDA_PATH"),
    ("nvvm", "CUDA_HOME", "nvvm/include", "CUDA_PATH"),
]


@pytest.mark.parametrize(("name", "root", "folder", "via"), PLACES)
def test_places(site, monkeypatch, tmp_path, name, root, folder, via):
    base = site if root == "site" else tmp_path
    if root != "site":
        monkeypatch.setenv(root, str(tmp_path))
    touch(base / folder / HEADERS[name].key)
    assert pathfinder.locate_nvidia_header_directory(name) == pathfinder.LocatedHeaderDir(str(base / folder), via)


def test_the_toolkit_of_the_systems_cudart(system_toolkit):
    touch(system_toolkit / "include" / "cufft.h")
    touch(system_toolkit / "include" / "cudnn.h")
    found = pathfinder.locate_nvidia_header_directory("cufft")
    assert found == pathfinder.LocatedHeaderDir(str(system_toolkit / "include"), "system-ctk-root")
    assert pathfinder.find_nvidia_header_directory("cutensor") is None


def test_of_the_systems_folders_the_newest_counts(nowhere, monkeypatch, tmp_path):
    for version in ("nvshmem_2", "nvshmem_12", "nvshmem_9"):
        touch(tmp_path / version / "nvshmem.h")
    monkeypatch.setitem(HEADERS, "nvshmem", Headers("nvshmem.h", "nowhere", system=f"{tmp_path}/nvshmem_*"))
    found = pathfinder.locate_nvidia_header_directory("nvshmem")
    assert found == pathfinder.LocatedHeaderDir(str(tmp_path / "nvshmem_12"), "supported_install_dir")


def test_absent_headers(nowhere):
    assert pathfinder.locate_nvidia_header_directory("cufft") is None
    assert pathfinder.find_nvidia_header_directory("cufft") is None


def test_the_constant_has_the_toolkits_headers():
    assert len(pathfinder.SUPPORTED_HEADERS_CTK) == 17
    assert pathfinder.SUPPORTED_HEADERS_CTK["cccl"] == "cuda/std/version"
    assert len(HEADERS) == 17 + 14


def test_cuda_path_wins_over_cuda_home(nowhere, monkeypatch):
    monkeypatch.setenv("CUDA_PATH", "/first")
    monkeypatch.setenv("CUDA_HOME", "/second")
    with pytest.warns(UserWarning, match="CUDA_PATH is used"):
        assert pathfinder.get_cuda_path_or_home() == "/first"
    monkeypatch.setenv("CUDA_PATH", "")
    pathfinder.get_cuda_path_or_home.cache_clear()
    assert pathfinder.get_cuda_path_or_home() == "/second"
