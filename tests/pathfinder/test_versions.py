"""Versions come from the library itself, its wheel, or the file's name."""

from __future__ import annotations

import os

import pytest

from cupola import pathfinder
from cupola.pathfinder import LoadedDL, LocatedHeaderDir, _loader, _versions
from tests.pathfinder.conftest import touch

# Soname, what its version function does, and what that means.
FUNCTIONS = [
    ("libcudart.so.12", "int cudaRuntimeGetVersion(int *v) { *v = 12080; return 0; }", "12.8"),
    ("libnvrtc.so.13", "int nvrtcVersion(int *a, int *b) { *a = 13; *b = 1; return 0; }", "13.1"),
    ("libcublas.so.13", "int cublasGetProperty(int w, int *v) { *v = w + 4; return 0; }", "4.5.6"),
    ("libcudnn.so.9", "unsigned long cudnnGetVersion(void) { return 91002; }", "9.10.2"),
    ("libcudnn.so.9", "unsigned long cudnnGetVersion(void) { return 8907; }", "8.9.7"),
    ("libnccl.so.2", "int ncclGetVersion(int *v) { *v = 22804; return 0; }", "2.28.4"),
    ("libnccl.so.2", "int ncclGetVersion(int *v) { *v = 2708; return 0; }", "2.7.8"),
    ("libnccl.so.2", "int ncclGetVersion(int *v) { (void)v; return 1; }", "2"),
    ("libnccl.so.2", "", "2"),  # no such function: the name of the file
    ("libcuda.so.1", "", None),  # its name says nothing
    ("libcufft.so.11", "int cufftGetProperty(int w, int *v) { *v = 1; return w == 2; }", "11"),
]


@pytest.mark.parametrize(("soname", "source", "version"), FUNCTIONS)
def test_the_library_says(make_library, tmp_path, soname, source, version):
    path = make_library(tmp_path, soname, source)
    assert LoadedDL(path, False, _loader.open_file(path), "test").version == version


def test_the_name_behind_the_link(make_library, tmp_path):
    path = make_library(tmp_path, "libcudla.so.1.22.3")
    os.symlink(path, tmp_path / "libcudla.so.1")
    loaded = LoadedDL(str(tmp_path / "libcudla.so.1"), False, _loader.open_file(path), "test")
    assert loaded.version == "1.22.3"


def test_the_wheel_says(site):
    touch(site / "nvidia_other-9.9.dist-info" / "RECORD", "nvidia/cu13/lib/libother.so.1,sha256=,1\n")
    touch(site / "numpy-2.0.dist-info" / "RECORD", "nvidia/cu13/include/cufft.h,sha256=,1\n")
    touch(site / "nvidia_cufft-12.1.0.31.dist-info" / "RECORD", "a,,\nnvidia/cu13/include/cufft.h,sha256=,1\n")
    folder = site / "nvidia" / "cu13" / "include"
    touch(folder / "cufft.h")
    assert LocatedHeaderDir(str(folder), "site-packages", "cufft").version == "12.1.0.31"


@pytest.mark.parametrize(
    ("name", "header", "line", "version"),
    [
        ("cudart", "cuda_runtime_api.h", "#define CUDART_VERSION  12090", "12.9"),
        ("cccl", "cuda/std/__cccl/version.h", "#define CCCL_VERSION 3003005", "3.3.5"),
        ("nccl", "nccl.h", " # define NCCL_VERSION_CODE 22804", "2.28.4"),
        ("cudart", "cuda_runtime_api.h", "#define CUDART_VERSION __CUDART_API_VERSION", None),
        ("cudart", "other.h", "", None),
        ("cublas", "other.h", "", None),
    ],
)
def test_the_headers_say(tmp_path, name, header, line, version):
    touch(tmp_path / {"cudart": "cuda_runtime.h", "cccl": "cuda/std/version"}.get(name, "x.h"))
    touch(tmp_path / header, f"/* text */\n{line}\n")
    assert LocatedHeaderDir(str(tmp_path), "test", name).version == version


def test_an_unknown_folder_has_no_version(tmp_path):
    assert LocatedHeaderDir(str(tmp_path), "test").version is None


def test_what_is_installed_here():
    nvrtc = pathfinder.load_nvidia_dynamic_lib("nvrtc").version
    assert nvrtc is not None and int(nvrtc.split(".")[0]) >= 12


@pytest.mark.parametrize(
    ("text", "release"),
    [
        ("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 2023\n", "535.104.05"),
        ("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build\n", "580.65.06"),
        ("something else\n", None),
    ],
)
def test_release_of_the_driver(monkeypatch, tmp_path, text, release):
    path = touch(tmp_path / "version", text)
    monkeypatch.setattr(_versions, "DRIVER_FILE", path)
    assert _versions.driver_release() == release
    monkeypatch.setattr(_versions, "DRIVER_FILE", str(tmp_path / "nothing"))
    assert _versions.driver_release() is None


def test_importing_the_finder_loads_no_library(run_python):
    source = "import cupola.pathfinder; print(open('/proc/self/maps').read().count('nvrtc'))"
    done = run_python(source)
    assert done.stdout.strip() == "0", done.stderr
