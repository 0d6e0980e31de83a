"""Libraries are found in the documented order, once, and a miss says where it was looked for."""

from __future__ import annotations

import os
import sys
import textwrap

import pytest

from cupola import pathfinder
from cupola.pathfinder import _dynamic_libraries as dynamic
from cupola.pathfinder import _platform
from cupola.pathfinder._tables import DRIVER_LIBRARIES, LIBRARIES, TOOLKIT_LIBRARIES
from tests import processes
from tests.pathfinder.conftest import touch

# cudla exists on no ordinary machine, so only the library made here can be found.
PRINT_CUDLA = """
from cupola.pathfinder import load_nvidia_dynamic_lib
found = load_nvidia_dynamic_lib("cudla")
print(found.abs_path, found.found_via, found.was_already_loaded_from_elsewhere)
"""


def run(source: str, **environment: str) -> str:
    env = {k: v for k, v in os.environ.items() if k not in ("CUDA_PATH", "CUDA_HOME", "CONDA_PREFIX")}
    done = processes.run(
        [sys.executable, "-c", textwrap.dedent(source)],
        env={**env, **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_nvrtc_is_loaded_only_once():
    first = pathfinder.load_nvidia_dynamic_lib("nvrtc")
    assert first is pathfinder.load_nvidia_dynamic_lib("nvrtc")
    assert first.abs_path is not None and os.path.isabs(first.abs_path) and "libnvrtc.so" in first.abs_path
    assert first._handle_uint


def test_unknown_name_lists_the_known_ones():
    with pytest.raises(pathfinder.DynamicLibUnknownError, match=r"'nvrct'.*nvrtc"):
        pathfinder.load_nvidia_dynamic_lib("nvrct")


def test_a_missing_library_says_where_it_was_looked_for_and_what_to_install(site, monkeypatch, tmp_path):
    touch(site / "nvidia" / "cuda_nvrtc" / "lib" / "libnvrtc.so.11.2")
    monkeypatch.setenv("CUDA_PATH", str(tmp_path))
    with pytest.raises(pathfinder.DynamicLibNotFoundError) as error:
        pathfinder.load_nvidia_dynamic_lib("nvrtc")
    text = str(error.value)
    for part in (
        "libnvrtc.so.13 or libnvrtc.so.12",
        f"{site}/nvidia/cu13/lib (site-packages): no such folder",
        f"{site}/nvidia/cuda_nvrtc/lib (site-packages): has libnvrtc.so.11.2",
        "CONDA_PREFIX is not set",
        f"{tmp_path}/lib64 (CUDA_PATH): no such folder",
        'pip install "cupola[cu13]"',
    ):
        assert part in text, part


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("cublasLt", "pip install nvidia-cublas (or nvidia-cublas-cu12 for CUDA 12)"),
        ("nccl", "NCCL_HOME is not set"),
        ("cudla", "set CUDA_PATH"),
    ],
)
def test_advice_for_other_libraries(nowhere, name, advice):
    with pytest.raises(pathfinder.DynamicLibNotFoundError) as error:
        pathfinder.load_nvidia_dynamic_lib(name)
    assert advice in str(error.value)


def test_the_driver_is_not_looked_for_in_wheels(site, opened):
    touch(site / "nvidia" / "cu13" / "lib" / "libcuda.so.1")
    with pytest.raises(pathfinder.DynamicLibNotFoundError, match="CUPOLA_DEVICE=cpu"):
        pathfinder.load_nvidia_dynamic_lib("cuda")
    assert not opened


@pytest.mark.parametrize("system", ["darwin", "freebsd14"])
def test_other_systems(nowhere, monkeypatch, system):
    monkeypatch.setattr(_platform, "current", lambda: _platform.Platform(system, "aarch64"))
    with pytest.raises(pathfinder.DynamicLibNotAvailableError, match="CUDA is for Linux and Windows"):
        pathfinder.load_nvidia_dynamic_lib("cudart")


def test_32_bits(monkeypatch):
    monkeypatch.setattr(dynamic, "_loaded", {})
    monkeypatch.setattr(sys, "maxsize", 2**31 - 1)
    with pytest.raises(RuntimeError, match="64-bit"):
        pathfinder.load_nvidia_dynamic_lib("cudart")


# Library, where its file is put ({site}: site-packages; else the variable that is set to the root), found via.
PLACES = [
    ("cudart", "site", "nvidia/cu13/lib/libcudart.so.13", "site-packages"),
    ("cudart", "site", "nvidia/cuda_runtime/lib/libcudart.so.12", "site-packages"),
    ("nvvm", "site", "nvidia/cuda_nvcc/nvvm/lib64/libnvvm.so", "site-packages"),
    ("cublasLt", "site", "nvidia/cublas/lib/libcublasLt.so.12", "site-packages"),
    ("nvpl_fftw", "site", "nvpl/lib/libnvpl_fftw.so.0", "site-packages"),
    ("cupauliprop", "site", "cuquantum/lib/libcupauliprop.so.0", "site-packages"),
    ("cudart", "CONDA_PREFIX", "lib/libcudart.so.13", "conda"),
    ("nvvm", "CONDA_PREFIX", "nvvm/lib64/libnvvm.so.4", "conda"),
    ("nccl", "NCCL_HOME", "build/lib/libnccl.so.2", "NCCL_HOME"),
    ("nccl", "CUDA_PATH", "lib64/libnccl.so.2", "CUDA_PATH"),
    ("nvvm", "CUDA_PATH", "nvvm/lib64/libnvvm.so.4", "CUDA_PATH"),
    ("cupti", "CUDA_HOME", "extras/CUPTI/lib64/libcupti.so.12", "CUDA_PATH"),
    ("cufile", "CUDA_HOME", "lib/libcufile.so", "CUDA_PATH"),
]


@pytest.mark.parametrize(("name", "root", "file", "via"), PLACES)
def test_places(site, opened, monkeypatch, tmp_path, name, root, file, via):
    if root == "site":
        path = touch(site / file)
    else:
        path = touch(tmp_path / file)
        monkeypatch.setenv(root, str(tmp_path))
    found = pathfinder.load_nvidia_dynamic_lib(name)
    assert (found.abs_path, found.found_via, found.was_already_loaded_from_elsewhere) == (path, via, False)
    assert opened == [path]


def test_order_of_places(site, opened, monkeypatch, tmp_path):
    """Each place is removed in turn, and the next one is used."""
    monkeypatch.setenv("CONDA_PREFIX", str(tmp_path / "conda"))
    monkeypatch.setenv("NCCL_HOME", str(tmp_path / "nccl"))
    monkeypatch.setenv("CUDA_PATH", str(tmp_path / "cuda"))
    roots = [(site / "nvidia" / "nccl", "site-packages"), (tmp_path / "conda", "conda")]
    roots += [(tmp_path / "nccl", "NCCL_HOME"), (tmp_path / "cuda", "CUDA_PATH")]
    paths = [touch(root / "lib" / "libnccl.so.2") for root, _ in roots]
    for path, (_, via) in zip(paths, roots, strict=True):
        dynamic._loaded.clear()
        assert pathfinder.load_nvidia_dynamic_lib("nccl") == pathfinder.LoadedDL(path, False, len(opened), via)
        os.unlink(path)


def test_the_newer_soname_is_preferred(site, opened):
    for file in ("libcudart.so", "libcudart.so.12", "libcudart.so.13"):
        touch(site / "nvidia" / "cu13" / "lib" / file)
    pathfinder.load_nvidia_dynamic_lib("cudart")
    assert os.path.basename(opened[0]) == "libcudart.so.13"


@pytest.mark.parametrize(("name", "file"), [("nvvm", "nvvm/lib64/libnvvm.so.4"), ("cupti", "lib64/libcupti.so.13")])
def test_the_toolkit_of_the_systems_cudart_comes_last(system_toolkit, opened, name, file):
    path = touch(system_toolkit / file)
    found = pathfinder.load_nvidia_dynamic_lib(name)
    assert (found.abs_path, found.found_via) == (path, "system-ctk-root")


def test_other_libraries_are_not_looked_for_there(system_toolkit, opened):
    touch(system_toolkit / "lib64" / "libcufile.so.0")
    with pytest.raises(pathfinder.DynamicLibNotFoundError):
        pathfinder.load_nvidia_dynamic_lib("cufile")


def test_dependencies_come_first(opened, monkeypatch, tmp_path):
    monkeypatch.setenv("CUDA_PATH", str(tmp_path))
    for soname in ("libcublas.so.13", "libcublasLt.so.13", "libnvblas.so.13"):
        touch(tmp_path / "lib64" / soname)
    pathfinder.load_nvidia_dynamic_lib("nvblas")
    assert [os.path.basename(path) for path in opened] == ["libcublasLt.so.13", "libcublas.so.13", "libnvblas.so.13"]


def test_nvrtc_brings_its_builtins(site, opened):
    folder = site / "nvidia" / "cu13" / "lib"
    nvrtc = touch(folder / "libnvrtc.so.13")
    builtins = touch(folder / "libnvrtc-builtins.so.13.0")
    pathfinder.load_nvidia_dynamic_lib("nvrtc")
    assert opened == [builtins, nvrtc]


def test_copies(site, monkeypatch, tmp_path):
    monkeypatch.setenv("CUDA_PATH", str(tmp_path / "cuda"))
    first = touch(site / "nvidia" / "cu13" / "lib" / "libnvrtc.so.13")
    second = touch(site / "nvidia" / "cuda_nvrtc" / "lib" / "libnvrtc.so.12")
    third = touch(tmp_path / "cuda" / "lib64" / "libnvrtc.so.12")
    (tmp_path / "cuda" / "lib").symlink_to(tmp_path / "cuda" / "lib64")
    assert dynamic.copies_of("nvrtc") == [
        (first, "site-packages"), (second, "site-packages"), (third, "CUDA_PATH"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("variable", "folder", "via"),
    [
        ("CONDA_PREFIX", "lib", "conda"),
        ("CUDA_PATH", "lib64", "CUDA_PATH"),
        ("CUDA_HOME", "lib", "CUDA_PATH"),
    ],
)
def test_really_loaded(make_library, tmp_path, variable, folder, via):
    path = make_library(tmp_path / folder, "libcudla.so.1")
    assert run(PRINT_CUDLA, **{variable: str(tmp_path)}) == f"{path} {via} False"


def test_a_library_that_is_already_loaded_wins(make_library, tmp_path):
    path = make_library(tmp_path / "somewhere", "libcudla.so.1")
    make_library(tmp_path / "conda" / "lib", "libcudla.so.1")
    source = f"import ctypes; ctypes.CDLL({path!r})\n" + PRINT_CUDLA
    out = run(source, CONDA_PREFIX=str(tmp_path / "conda"))
    assert out == f"{path} was-already-loaded-from-elsewhere True"


def test_a_file_that_is_no_library_is_an_error(tmp_path):
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "libcudla.so.1").write_text("not a library")
    source = """
    from cupola.pathfinder import load_nvidia_dynamic_lib
    try:
        load_nvidia_dynamic_lib("cudla")
    except RuntimeError as error:
        print(error)
    """
    assert "cannot be loaded" in run(source, CONDA_PREFIX=str(tmp_path))


def test_a_library_that_the_loader_refuses_is_an_error(tmp_path):
    (tmp_path / "libcudla.so.1").write_text("not a library")
    source = """
    from cupola.pathfinder import DynamicLibNotFoundError, load_nvidia_dynamic_lib
    try:
        load_nvidia_dynamic_lib("cudla")
    except RuntimeError as error:
        print(type(error).__name__, error)
    """
    text = run(source, LD_LIBRARY_PATH=str(tmp_path))
    assert text.startswith("RuntimeError the system's loader finds libcudla.so.1, but it cannot be loaded")
    assert str(tmp_path) in text


def test_a_library_whose_needs_are_missing_is_an_error(make_library, tmp_path):
    needed = make_library(tmp_path / "needed", "libneeded_by_a_test.so.3", "int needed(void) { return 1; }")
    make_library(tmp_path, "libcudla.so.1", "int needed(void); int here(void) { return needed(); }", needed)
    source = """
    from cupola.pathfinder import load_nvidia_dynamic_lib
    try:
        load_nvidia_dynamic_lib("cudla")
    except RuntimeError as error:
        print(error)
    """
    os.unlink(needed)
    assert "libneeded_by_a_test.so.3" in run(source, LD_LIBRARY_PATH=str(tmp_path))


def test_the_table_is_consistent():
    assert len(pathfinder.SUPPORTED_NVIDIA_LIBNAMES) == 29 == len(TOOLKIT_LIBRARIES)
    for name, library in LIBRARIES.items():
        assert library.sonames, name
        assert all(soname.startswith("lib") and ".so" in soname for soname in library.sonames), name
        assert all(dll.endswith(".dll") and "/" not in dll for dll in library.dlls), name
        assert library.dlls or not library.program_files, name
        assert set(library.depends) <= set(LIBRARIES), name
        assert bool(library.folders) == (name not in DRIVER_LIBRARIES), name
