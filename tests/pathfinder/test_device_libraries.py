"""Bitcode and static libraries."""

from __future__ import annotations

import os

import pytest

from cupola import pathfinder
from tests.pathfinder.conftest import touch

KINDS = {
    "bitcode": (pathfinder.locate_bitcode_lib, pathfinder.find_bitcode_lib, pathfinder.LocatedBitcodeLib),
    "static": (pathfinder.locate_static_lib, pathfinder.find_static_lib, pathfinder.LocatedStaticLib),
}

# Kind, name, where the file is put (a variable: below its value), found via.
PLACES = [
    ("bitcode", "device", "site", "nvidia/cu13/nvvm/libdevice/libdevice.10.bc", "site-packages"),
    ("bitcode", "device", "site", "nvidia/cuda_nvcc/nvvm/libdevice/libdevice.10.bc", "site-packages"),
    ("bitcode", "device", "CONDA_PREFIX", "nvvm/libdevice/libdevice.10.bc", "conda"),
    ("bitcode", "device", "CUDA_PATH", "nvvm/libdevice/libdevice.10.bc", "CUDA_PATH"),
    ("bitcode", "nccl_device", "site", "nvidia/nccl/lib/libnccl_device.bc", "site-packages"),
    ("bitcode", "nvshmem_device", "CUDA_HOME", "lib/libnvshmem_device.bc", "CUDA_PATH"),
    ("static", "cudadevrt", "site", "nvidia/cuda_runtime/lib/libcudadevrt.a", "site-packages"),
    ("static", "cudadevrt", "CONDA_PREFIX", "lib/libcudadevrt.a", "conda"),
    ("static", "cudadevrt", "CUDA_PATH", "lib64/libcudadevrt.a", "CUDA_PATH"),
]


@pytest.mark.parametrize(("kind", "name", "root", "file", "via"), PLACES)
def test_places(site, monkeypatch, tmp_path, kind, name, root, file, via):
    locate, find, located = KINDS[kind]
    path = touch((site if root == "site" else tmp_path) / file)
    if root != "site":
        monkeypatch.setenv(root, str(tmp_path))
    assert locate(name) == located(name, path, os.path.basename(file), via)
    assert find(name) == path
    os.unlink(path)
    assert find(name) == path, "it is remembered"
    with pytest.raises(RuntimeError, match="was not found"):
        locate(name)


@pytest.mark.parametrize(
    ("kind", "name", "error"),
    [
        ("bitcode", "device", pathfinder.BitcodeLibNotFoundError),
        ("static", "cudadevrt", pathfinder.StaticLibNotFoundError),
    ],
)
def test_nowhere(site, kind, name, error):
    for function in KINDS[kind][:2]:
        with pytest.raises(error, match=f"(?s){site}.*pip install nvidia-"):
            function(name)
        with pytest.raises(ValueError, match=f"'nothing'.*{name}"):
            function("nothing")


def test_names():
    assert pathfinder.SUPPORTED_BITCODE_LIBS == ("device", "nccl_device", "nvshmem_device")
    assert pathfinder.SUPPORTED_STATIC_LIBS == ("cudadevrt",)
