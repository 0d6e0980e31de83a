"""The searches for Windows, over trees made here; loading is the business of test_loader_windows.py."""

from __future__ import annotations

import os

import pytest

from cupola import pathfinder
from cupola.pathfinder import _canary, _dynamic_libraries, _loader, _platform
from cupola.pathfinder._device_libraries import _BITCODE, _STATIC, _supported
from cupola.pathfinder._header_table import HEADERS, supported
from cupola.pathfinder._tables import DRIVER_LIBRARIES, LIBRARIES
from cupola.pathfinder._versions import stem_of
from tests.pathfinder.conftest import touch

# What this processor's folders are called: the toolkit's, and those of wheels.
NAMES = {"x86_64": {"arch": "x64", "wheel": "x86_64"}, "aarch64": {"arch": "arm64", "wheel": "arm64"}}


def place(platform: _platform.Platform, path: str) -> str:
    return path.format(**NAMES[platform.machine])


# Library, where its DLL is put ("site", or the variable that is set to the root), found via.
LIBRARY_PLACES = [
    ("cudart", "site", "nvidia/cu13/bin/{wheel}/cudart64_13.dll", "site-packages"),
    ("nvrtc", "site", "nvidia/cu13/bin/{wheel}/nvrtc64_130_0.dll", "site-packages"),
    ("nvJitLink", "site", "nvidia/cu13/bin/{wheel}/nvJitLink_130_0.dll", "site-packages"),
    ("nvvm", "site", "nvidia/cu13/bin/{wheel}/nvvm70.dll", "site-packages"),
    ("cudnn", "site", "nvidia/cudnn/bin/{wheel}/cudnn64_9.dll", "site-packages"),
    ("cudart", "CONDA_PREFIX", "Library/bin/{arch}/cudart64_13.dll", "conda"),
    ("nvvm", "CONDA_PREFIX", "Library/nvvm/bin/{arch}/nvvm64_40_0.dll", "conda"),
    ("cudnn", "CUDNN_PATH", "bin/{arch}/cudnn64_9.dll", "CUDNN_PATH"),
    ("nvrtc", "CUDA_PATH", "bin/{arch}/nvrtc64_130_0.dll", "CUDA_PATH"),
    ("nvrtc", "CUDA_PATH", "bin/{arch}/nvrtc64_140_0.dll", "CUDA_PATH"),  # of a CUDA that is not known yet
    ("nvvm", "CUDA_HOME", "nvvm/bin/{arch}/nvvm70.dll", "CUDA_PATH"),
    ("cupti", "CUDA_PATH", "extras/CUPTI/lib/{arch}/cupti64_2025.3.1.dll", "CUDA_PATH"),
    ("cupti", "CUDA_PATH", "extras/CUPTI/lib64/cupti64_2025.3.1.dll", "CUDA_PATH"),
    ("curand", "PROGRAMFILES", "NVIDIA GPU Computing Toolkit/CUDA/v13.0/bin/{arch}/curand64_10.dll", "ProgramFiles"),
    ("cudnn", "PROGRAMFILES", "NVIDIA/CUDNN/v9.12/bin/13.0/{arch}/cudnn64_9.dll", "ProgramFiles"),
]
# Folders that x64 has and arm64 has not.
X64_PLACES = [
    ("cudart", "site", "nvidia/cuda_runtime/bin/cudart64_12.dll", "site-packages"),
    ("nvvm", "site", "nvidia/cuda_nvcc/nvvm/bin/nvvm64_40_0.dll", "site-packages"),
    ("cutensor", "site", "cutensor/bin/cutensor.dll", "site-packages"),
    ("nvrtc", "CONDA_PREFIX", "Library/bin/nvrtc64_120_0.dll", "conda"),
    ("cublasLt", "CUDA_PATH", "bin/cublasLt64_12.dll", "CUDA_PATH"),
    ("nvvm", "PROGRAMFILES", "NVIDIA GPU Computing Toolkit/CUDA/v12.9/nvvm/bin/nvvm64_40_0.dll", "ProgramFiles"),
    ("cudnn", "PROGRAMFILES", "NVIDIA/CUDNN/v9.12/bin/13.0/cudnn64_9.dll", "ProgramFiles"),
]


@pytest.mark.parametrize(("name", "root", "file", "via"), LIBRARY_PLACES)
def test_libraries(windows, site, opened, without_dependencies, monkeypatch, tmp_path, name, root, file, via):
    base = site if root == "site" else tmp_path / "root"
    if root != "site":
        monkeypatch.setenv(root, str(base))
    path = touch(base / place(windows, file))
    touch(base / place(windows, os.path.dirname(file)) / "another64_13.dll")
    found = pathfinder.load_nvidia_dynamic_lib(name)
    assert (found.abs_path, found.found_via, opened) == (path, via, [path])


@pytest.mark.parametrize(("name", "root", "file", "via"), X64_PLACES)
def test_libraries_that_only_x64_has(
    windows, site, opened, without_dependencies, monkeypatch, tmp_path, name, root, file, via
):
    base = site if root == "site" else tmp_path / "root"
    if root != "site":
        monkeypatch.setenv(root, str(base))
    path = touch(base / file)
    if windows.machine == "aarch64":
        with pytest.raises(pathfinder.DynamicLibNotFoundError):
            pathfinder.load_nvidia_dynamic_lib(name)
        return
    found = pathfinder.load_nvidia_dynamic_lib(name)
    assert (found.abs_path, found.found_via, opened) == (path, via, [path])


@pytest.fixture
def without_dependencies(monkeypatch):
    for library in LIBRARIES.values():
        monkeypatch.setattr(library, "depends", ())


def test_order_of_places(windows, site, opened, monkeypatch, tmp_path):
    """Each place is removed in turn, and the next one is used."""
    for variable in ("CONDA_PREFIX", "CUDA_PATH", "PROGRAMFILES"):
        monkeypatch.setenv(variable, str(tmp_path / variable))
    toolkit = tmp_path / "toolkit"
    cudart = str(toolkit / "bin" / windows.folder / "cudart64_13.dll")
    monkeypatch.setitem(_canary._answers, "cudart", cudart)
    places = [
        (site / "nvidia" / "cu13" / "bin" / NAMES[windows.machine]["wheel"] / "nvvm70.dll", "site-packages"),
        (tmp_path / "CONDA_PREFIX" / "Library" / "nvvm" / "bin" / windows.folder / "nvvm70.dll", "conda"),
        (tmp_path / "CUDA_PATH" / "nvvm" / "bin" / windows.folder / "nvvm70.dll", "CUDA_PATH"),
        (
            tmp_path / "PROGRAMFILES/NVIDIA GPU Computing Toolkit/CUDA/v13.0/nvvm/bin" / windows.folder / "nvvm70.dll",
            "ProgramFiles",
        ),
        (toolkit / "nvvm" / "bin" / windows.folder / "nvvm70.dll", "system-ctk-root"),
    ]
    paths = [touch(path) for path, _ in places]
    for path, (_, via) in zip(paths, places, strict=True):
        _dynamic_libraries._loaded.clear()
        found = pathfinder.load_nvidia_dynamic_lib("nvvm")
        assert (found.abs_path, found.found_via) == (path, via)
        os.unlink(path)
    _dynamic_libraries._loaded.clear()
    with pytest.raises(pathfinder.DynamicLibNotFoundError):
        pathfinder.load_nvidia_dynamic_lib("nvvm")


def test_the_newest_version_counts(windows, opened, monkeypatch, tmp_path):
    monkeypatch.setenv("PROGRAMFILES", str(tmp_path))
    for version in ("v12.9", "v13.10", "v13.9"):
        touch(tmp_path / "NVIDIA GPU Computing Toolkit" / "CUDA" / version / "bin" / windows.folder / "cudart64_13.dll")
    found = pathfinder.load_nvidia_dynamic_lib("cudart")
    assert found.abs_path is not None and "v13.10" in found.abs_path
    folder = tmp_path / "toolkit" / "extras" / "CUPTI" / "lib64"
    for version in ("2024.10.0", "2025.1.0", "2025.3.1"):
        touch(folder / f"cupti64_{version}.dll")
    monkeypatch.setenv("CUDA_PATH", str(tmp_path / "toolkit"))
    pathfinder.get_cuda_path_or_home.cache_clear()
    assert pathfinder.load_nvidia_dynamic_lib("cupti").abs_path == str(folder / "cupti64_2025.3.1.dll")


def test_the_alternative_compiler_is_another_library(windows, opened, monkeypatch, tmp_path):
    monkeypatch.setenv("CUDA_PATH", str(tmp_path))
    touch(tmp_path / "bin" / windows.folder / "nvrtc64_140_0.alt.dll")
    with pytest.raises(pathfinder.DynamicLibNotFoundError, match="alt"):
        pathfinder.load_nvidia_dynamic_lib("nvrtc")


def test_nvrtc_brings_its_builtins(windows, site, opened):
    folder = site / "nvidia" / "cu13" / "bin" / NAMES[windows.machine]["wheel"]
    nvrtc, builtins = touch(folder / "nvrtc64_130_0.dll"), touch(folder / "nvrtc-builtins64_130.dll")
    pathfinder.load_nvidia_dynamic_lib("nvrtc")
    assert opened == [builtins, nvrtc]


def test_the_loader_is_asked_by_name(windows, opened, monkeypatch):
    asked = []

    def try_open(name, *, only_if_loaded=False, **_):
        asked.append((name, only_if_loaded))
        return 7 if name == "nvrtc64_120_0.dll" and not only_if_loaded else 0

    monkeypatch.setattr(_loader, "try_open", try_open)
    monkeypatch.setattr(_loader, "path_of", lambda handle: f"C:\\CUDA\\bin\\{handle}.dll")
    found = pathfinder.load_nvidia_dynamic_lib("nvrtc")
    assert found == pathfinder.LoadedDL("C:\\CUDA\\bin\\7.dll", False, 7, "system-search")
    names = ["nvrtc64_130_0.dll", "nvrtc64_120_0.dll"]
    assert asked == [(name, loaded) for loaded in (True, False) for name in names]


def test_a_pattern_is_no_name_for_the_loader(windows, monkeypatch):
    asked = []
    monkeypatch.setattr(_loader, "try_open", lambda name, **_: asked.append(name) or 0)
    with pytest.raises(pathfinder.DynamicLibNotFoundError, match=r"cupti64_\*\.dll"):
        pathfinder.load_nvidia_dynamic_lib("cupti")
    assert asked == []
    monkeypatch.setattr(_canary, "_ask", lambda names: pytest.fail(f"asked for {names}"))
    assert _canary.system_library("cupti") is None


@pytest.mark.parametrize("name", ["cufile", "cudla", "nccl", "nvshmem_host", "custatevec", "nvcudla"])
def test_what_windows_does_not_have(windows, name):
    with pytest.raises(pathfinder.DynamicLibNotAvailableError, match=f"{name} does not exist for Windows"):
        pathfinder.load_nvidia_dynamic_lib(name)


def test_the_driver(windows, site, opened):
    for name, file in (("cuda", "nvcuda.dll"), ("nvml", "nvml.dll")):
        touch(site / "nvidia" / "cu13" / "bin" / file)
        with pytest.raises(pathfinder.DynamicLibNotFoundError, match=f"{file} was not found.*CUPOLA_DEVICE=cpu"):
            pathfinder.load_nvidia_dynamic_lib(name)
    assert not opened


def test_a_missing_library_says_where_it_was_looked_for(windows, site, monkeypatch, tmp_path):
    folder = f"nvidia/cu13/bin/{NAMES[windows.machine]['wheel']}"
    touch(site / folder / "cudart64_11.dll")
    with pytest.raises(pathfinder.DynamicLibNotFoundError) as error:
        pathfinder.load_nvidia_dynamic_lib("nvrtc")
    for part in (
        "nvrtc64_130_0.dll or nvrtc64_120_0.dll",
        f"{site}/{folder} (site-packages): has cudart64_11.dll",
        "the system's loader (PATH)",
    ):
        assert part in str(error.value)


# Headers, where the folder is put, found via.
HEADER_PLACES = [
    ("cudart", "site", "nvidia/cu13/include", "site-packages"),
    ("cudart", "CONDA_PREFIX", "Library/include", "conda"),
    ("cufft", "CONDA_PREFIX", "Library/include/targets/{arch}", "conda"),
    ("cccl", "CONDA_PREFIX", "Library/include/targets/{arch}/cccl", "conda"),
    ("nvvm", "CONDA_PREFIX", "Library/nvvm/include", "conda"),
    ("cutensor", "CONDA_PREFIX", "Library/include", "conda"),
    ("cccl", "CUDA_PATH", "include/cccl", "CUDA_PATH"),
    ("cudnn", "PROGRAMFILES", "NVIDIA/CUDNN/v9.12/include/13.0", "supported_install_dir"),
    ("cudnn", "PROGRAMFILES", "NVIDIA/CUDNN/v9.7/include", "supported_install_dir"),
]


@pytest.mark.parametrize(("name", "root", "folder", "via"), HEADER_PLACES)
def test_headers(windows, site, monkeypatch, tmp_path, name, root, folder, via):
    base = site if root == "site" else tmp_path / "root"
    if root != "site":
        monkeypatch.setenv(root, str(base))
    folder = place(windows, folder)
    touch(base / folder / HEADERS[name].key)
    assert pathfinder.locate_nvidia_header_directory(name) == pathfinder.LocatedHeaderDir(str(base / folder), via)


def test_headers_of_the_systems_toolkit(windows, monkeypatch, tmp_path):
    monkeypatch.setitem(_canary._answers, "cudart", str(tmp_path / "bin" / windows.folder / "cudart64_13.dll"))
    touch(tmp_path / "include" / "cufft.h")
    found = pathfinder.locate_nvidia_header_directory("cufft")
    assert found == pathfinder.LocatedHeaderDir(str(tmp_path / "include"), "system-ctk-root")


def test_headers_that_windows_does_not_have(windows):
    for name in ("cufile", "cudla"):
        with pytest.raises(RuntimeError, match=f"'{name}' do not exist for Windows"):
            pathfinder.find_nvidia_header_directory(name)


def test_the_constants_of_each_system():
    assert set(supported(windows=False)) - set(supported(windows=True)) == {"cufile", "cudla"}
    assert _supported(_BITCODE, windows=True) == ("device",)
    assert _supported(_STATIC, windows=True) == ("cudadevrt",)


DEVICE_PLACES = [
    ("bitcode", "device", "site", "nvidia/cu13/nvvm/libdevice/libdevice.10.bc", "site-packages"),
    ("bitcode", "device", "CONDA_PREFIX", "Library/nvvm/libdevice/libdevice.10.bc", "conda"),
    ("bitcode", "device", "CUDA_PATH", "nvvm/libdevice/libdevice.10.bc", "CUDA_PATH"),
    ("static", "cudadevrt", "site", "nvidia/cu13/lib/{arch}/cudadevrt.lib", "site-packages"),
    ("static", "cudadevrt", "site", "nvidia/cuda_runtime/lib/{arch}/cudadevrt.lib", "site-packages"),
    ("static", "cudadevrt", "CONDA_PREFIX", "Library/lib/cudadevrt.lib", "conda"),
    ("static", "cudadevrt", "CONDA_PREFIX", "Library/lib/{arch}/cudadevrt.lib", "conda"),
    ("static", "cudadevrt", "CUDA_PATH", "lib/{arch}/cudadevrt.lib", "CUDA_PATH"),
]


@pytest.mark.parametrize(("kind", "name", "root", "file", "via"), DEVICE_PLACES)
def test_device_libraries(windows, site, monkeypatch, tmp_path, kind, name, root, file, via):
    base = site if root == "site" else tmp_path / "root"
    if root != "site":
        monkeypatch.setenv(root, str(base))
    path = touch(base / place(windows, file))
    found = getattr(pathfinder, f"locate_{kind}_lib")(name)
    assert (found.abs_path, found.filename, found.found_via) == (path, os.path.basename(file), via)


def test_device_libraries_that_windows_does_not_have(windows):
    with pytest.raises(ValueError, match="'nccl_device' does not exist for Windows"):
        pathfinder.find_bitcode_lib("nccl_device")


TOOL_PLACES = [
    ("nvcc", "site", "nvidia/cu13/bin/nvcc.exe"),
    ("ptxas", "site", "nvidia/cu13/bin/{wheel}/ptxas.exe"),
    ("nvcc", "site", "nvidia/cuda_nvcc/bin/nvcc.exe"),
    ("nvcc", "CONDA_PREFIX", "Library/bin/nvcc.exe"),
    ("cuobjdump", "CUDA_PATH", "bin/cuobjdump.exe"),
    ("cuobjdump", "CUDA_PATH", "bin/{arch}/cuobjdump.exe"),
    ("compute-sanitizer", "CUDA_PATH", "bin/compute-sanitizer.bat"),
    ("ncu", "PROGRAMFILES", "NVIDIA Corporation/Nsight Compute 2025.3.0/ncu.bat"),
    ("nsys", "PROGRAMFILES", "NVIDIA Corporation/Nsight Systems 2025.3.2/target-windows-{arch}/nsys.exe"),
]


@pytest.mark.parametrize(("name", "root", "file"), TOOL_PLACES)
def test_tools(windows, site, monkeypatch, tmp_path, name, root, file):
    base = site if root == "site" else tmp_path / "root"
    if root != "site":
        monkeypatch.setenv(root, str(base))
    path = touch(base / place(windows, file))  # nothing says that it can be run, but its name
    assert pathfinder.find_nvidia_binary_utility(name) == path


def test_the_newest_nsight_counts_and_the_toolkits_does_not(windows, monkeypatch, tmp_path):
    monkeypatch.setenv("PROGRAMFILES", str(tmp_path))
    monkeypatch.setenv("CUDA_PATH", str(tmp_path))
    touch(tmp_path / "bin" / "ncu.exe")
    assert pathfinder.find_nvidia_binary_utility("ncu") is None
    pathfinder.find_nvidia_binary_utility.cache_clear()
    for version in ("2024.3.2", "2025.10.0", "2025.2.1"):
        touch(tmp_path / "NVIDIA Corporation" / f"Nsight Compute {version}" / "ncu.bat")
    found = pathfinder.find_nvidia_binary_utility("ncu")
    assert found is not None and "2025.10.0" in found


def test_a_file_without_its_ending_is_no_program(windows, monkeypatch, tmp_path):
    monkeypatch.setenv("CUDA_PATH", str(tmp_path))
    touch(tmp_path / "bin" / "nvcc")
    touch(tmp_path / "bin" / "nvcc.bat")
    assert pathfinder.find_nvidia_binary_utility("nvcc") is None


@pytest.mark.parametrize(
    ("folder", "in_root"),
    [("bin", True), ("bin/{arch}", True), ("lib", False), ("bin/x86", False), ("lib64", False)],
)
def test_root_of_a_toolkit(windows, tmp_path, folder, in_root):
    library = str(tmp_path / place(windows, folder) / "cudart64_13.dll")
    assert _canary.toolkit_of(library) == (str(tmp_path) if in_root else None)


@pytest.mark.parametrize(
    ("file", "stem"),
    [
        ("nvrtc64_130_0.dll", "nvrtc"),
        ("nvJitLink_130_0.dll", "nvJitLink"),
        ("cublasLt64_13.dll", "cublasLt"),
        ("cudnn64_9.dll", "cudnn"),
        ("nvcuda.dll", "cuda"),
        ("cutensor.dll", "cutensor"),
        ("cupti64_2025.3.1.dll", "cupti"),
        ("libnvrtc.so.13", "nvrtc"),
        ("libcudart.so", "cudart"),
    ],
)
def test_names_of_files(file, stem):
    assert stem_of(file) == stem


@pytest.mark.parametrize(("file", "version"), [("cudart64_13.dll", "13"), ("cupti64_2025.3.1.dll", "2025.3.1")])
def test_versions_in_names(monkeypatch, tmp_path, file, version):
    monkeypatch.setattr("cupola.pathfinder._versions._ask", lambda *_: None)
    assert pathfinder.LoadedDL(str(tmp_path / file), False, 1, "test").version == version


def test_the_drivers_libraries_have_one_name():
    assert {name: library.dlls for name, library in DRIVER_LIBRARIES.items()} == {
        "cuda": ("nvcuda.dll",),
        "nvml": ("nvml.dll",),
        "nvcudla": (),
    }
