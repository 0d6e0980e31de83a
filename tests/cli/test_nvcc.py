"""``cupola nvcc`` and ``cupola run`` of what it builds."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

import pytest

from cupola.cli import elf, native, nvcc
from cupola.pathfinder import find_nvidia_binary_utility
from tests import processes

HAS_NVCC = bool(find_nvidia_binary_utility("nvcc") and shutil.which("g++"))
if os.environ.get("CI") and sys.platform == "linux":
    assert HAS_NVCC, "nvcc and g++ belong to a whole installation for tests"
needs_nvcc = pytest.mark.skipif(not HAS_NVCC, reason="needs nvcc (pip install cupola[nvcc]) and g++")

L = "-L/link"
# What the user gives -> what nvcc gets.
FLAGS = {
    "a.cu": f"a.cu -cudart=shared -lineinfo {L}",
    "-o a a.cu -G": f"-o a a.cu -G -cudart=shared {L}",
    "a.cu --generate-line-info --cudart shared": f"a.cu --generate-line-info -cudart=shared {L}",
    "a.cu -cudart=static": f"a.cu -cudart=static -lineinfo {L}",
    "-arch=sm_90 a.cu": f"-arch=sm_90 a.cu -cudart=shared -lineinfo {L}",
    "-arch sm_90 -code sm_90,sm_100 a.cu": (
        f"-arch=sm_90 -code=sm_90,sm_100,compute_90 a.cu -cudart=shared -lineinfo {L}"
    ),
    "-gencode arch=compute_80,code=sm_80 --generate-code=arch=compute_90a,code=sm_90a a.cu": (
        "-gencode=arch=compute_80,code=sm_80 -gencode=arch=compute_90a,code=sm_90a a.cu "
        f"-gencode=arch=compute_90a,code=compute_90a -cudart=shared -lineinfo {L}"
    ),
    "-gencode arch=compute_80,code=[sm_80,compute_80] a.cu": (
        f"-gencode=arch=compute_80,code=[sm_80,compute_80] a.cu -cudart=shared -lineinfo {L}"
    ),
    "-dlto -arch=sm_90 a.cu b.cu": f"-rdc=true -arch=sm_90 a.cu b.cu -cudart=shared -lineinfo {L}",
    "--gpu-architecture=native a.cu": f"-arch=sm_75 a.cu -cudart=shared -lineinfo {L}",
    "-ptx a.cu": "-ptx a.cu",
    "-cubin -arch sm_90a a.cu": "-cubin -arch=sm_90a a.cu -lineinfo",
    "--cubin -G a.cu": "--cubin -G a.cu",
    "-cubin -gencode arch=compute_90,code=sm_90 a.cu": "-cubin -gencode=arch=compute_90,code=sm_90 a.cu -lineinfo",
    "-fatbin -arch=native a.cu": "-fatbin -arch=sm_75 a.cu -lineinfo",
    "--fatbin -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90 --concat a.cu -lineinfo": (
        "--fatbin -gencode=arch=compute_80,code=sm_80 -gencode=arch=compute_90,code=sm_90 --concat a.cu -lineinfo "
        "-gencode=arch=compute_90,code=compute_90"
    ),
    "--version": "--version",
    "": "",
}


@pytest.mark.parametrize("given", FLAGS)
def test_flags(given, monkeypatch):
    monkeypatch.setenv("CUPOLA_CPU_MODEL", "t4")
    assert " ".join(nvcc.adapt(given.split(), "/link")) == FLAGS[given]


def test_a_static_runtime_is_warned_about(capsys):
    nvcc.adapt(["a.cu", "-cudart", "static"], "/link")
    assert "runs on GPUs only" in capsys.readouterr().err


def test_no_nvcc(monkeypatch):
    monkeypatch.setattr("cupola.pathfinder.find_nvidia_binary_utility", lambda name: None)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(SystemExit, match=r'nvcc is not installed: pip install "cupola\[nvcc\]"'):
        nvcc.find_nvcc()


def test_parts_are_missing(monkeypatch, tmp_path):
    root = tmp_path / "nvidia" / "cu13"
    for file in ("bin/nvcc", "bin/nvcc.profile", "bin/ptxas", "include/cuda_runtime.h"):
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).touch()
    monkeypatch.setattr("cupola.pathfinder.find_nvidia_binary_utility", lambda name: str(root / "bin" / "nvcc"))
    with pytest.raises(SystemExit, match="pip install nvidia-cuda-cccl nvidia-cuda-crt nvidia-nvvm, into the same"):
        nvcc.find_nvcc()


def test_no_host_compiler(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(SystemExit, match=r"there is no g\+\+: install one"):
        nvcc.check_host_compiler(["a.cu"])
    nvcc.check_host_compiler(["a.cu", "-ccbin", "/opt/bin/g++"])
    monkeypatch.setattr(shutil, "which", lambda name: "/bin/clang++" if name == "clang++" else None)
    with pytest.raises(SystemExit, match=r"add -ccbin clang\+\+"):
        nvcc.check_host_compiler(["a.cu"])


# ---- programs -------------------------------------------------------------------------------------------------------

HELLO = """
#include <cstdio>
#include <cstdlib>
__device__ int counter;
__managed__ int sum = 5;
__global__ void twice(float* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        x[i] *= 2;
        atomicAdd(&counter, 1);
    }
    if (i == 0) sum += 1;
}
int main(int count, char** arguments) {
    const int n = 1000, too_many = count > 1 ? atoi(arguments[1]) : 0;
    float host[n], *x;
    for (int i = 0; i < n; i++) host[i] = i;
    cudaMalloc(&x, sizeof host);
    cudaMemcpy(x, host, sizeof host, cudaMemcpyHostToDevice);
    twice<<<4, 256>>>(x, n + too_many);
    cudaError_t error = cudaGetLastError();
    if (!error) error = cudaMemcpy(host, x, sizeof host, cudaMemcpyDeviceToHost);
    if (error) {
        puts(cudaGetErrorName(error));
        return 3;
    }
    int counted;
    cudaMemcpyFromSymbol(&counted, counter, sizeof counted);
    printf("%g %d %d\\n", host[999], counted, sum);
}
"""

FIRST = """
#include <cstdio>
extern __constant__ float factor;
extern __device__ float scaled(float);
extern __device__ int calls;
__global__ void scale(float* x) { x[threadIdx.x] = scaled(x[threadIdx.x]); }
int main() {
    float host[32], *x, three = 3;
    for (int i = 0; i < 32; i++) host[i] = i;
    cudaMalloc(&x, sizeof host);
    cudaMemcpy(x, host, sizeof host, cudaMemcpyHostToDevice);
    cudaMemcpyToSymbol(factor, &three, sizeof three);
    scale<<<1, 32>>>(x);
    cudaMemcpy(host, x, sizeof host, cudaMemcpyDeviceToHost);
    int counted = -1;
    cudaError_t error = cudaMemcpyFromSymbol(&counted, calls, sizeof counted);
    printf("%s %g %d\\n", cudaGetErrorName(error), host[31], counted);
}
"""
SECOND = """
__constant__ float factor = 2;
__device__ int calls;
__device__ float scaled(float x) {
    atomicAdd(&calls, 1);
    return factor * x;
}
"""


def cupola(*arguments, folder, **variables):
    command = [sys.executable, "-m", "cupola", *map(str, arguments)]
    environment = {**os.environ, **variables}
    return processes.run(command, cwd=folder, env=environment)


def build(folder, *arguments):
    done = cupola("nvcc", *arguments, "-o", "program", folder=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "program"


@needs_nvcc
@pytest.mark.cpu_only
def test_a_program(tmp_path):
    (tmp_path / "hello.cu").write_text(HELLO)
    build(tmp_path, "hello.cu")
    done = cupola("run", "--device", "cpu", "./program", folder=tmp_path)
    assert (done.stdout, done.stderr, done.returncode) == ("1998 1000 6\n", "", 0)

    done = cupola("run", "--device", "cpu", "./program", "5", folder=tmp_path)
    assert (done.stdout, done.returncode) == ("cudaErrorIllegalAddress\n", 3)
    assert "cupola: cudaErrorIllegalAddress: kernel 'twice': out-of-bounds" in done.stderr
    assert "hello.cu:9" in done.stderr

    found = elf.read(tmp_path / "program")
    assert found.runtime == "libcudart.so.13" and found.has_device_code and not found.has_rpath


@needs_nvcc
@pytest.mark.cpu_only
@pytest.mark.parametrize(
    "flags", ["-rdc=true", "-dlto -arch=sm_90", "-rdc=true -gencode arch=compute_90,code=sm_90"], ids=str
)
def test_several_files(tmp_path, flags):
    (tmp_path / "first.cu").write_text(FIRST)
    (tmp_path / "second.cu").write_text(SECOND)
    build(tmp_path, *flags.split(), "first.cu", "second.cu")
    done = cupola("run", "--device", "cpu", "./program", folder=tmp_path)
    assert (done.stdout, done.stderr) == ("cudaSuccess 93 32\n", "")


def plain_nvcc(folder, *arguments):
    """A program that the user has built without cupola."""
    found = find_nvidia_binary_utility("nvcc")
    link = [f"-L{nvcc_link_folder()}"]
    processes.run([found, *arguments, *link, "-o", "program"], cwd=folder, check=True)


def nvcc_link_folder():
    from cupola.cpu import programs

    return os.path.join(programs.library_folder(), "link13")


@needs_nvcc
@pytest.mark.cpu_only
def test_machine_code_only(tmp_path):
    (tmp_path / "hello.cu").write_text(HELLO)
    plain_nvcc(tmp_path, "hello.cu", "-cudart=shared", "-gencode=arch=compute_90,code=sm_90")
    done = cupola("run", "--device", "cpu", "./program", folder=tmp_path)
    assert (done.stdout, done.returncode) == ("cudaErrorNoKernelImageForDevice\n", 3)
    assert "has a cubin for sm_90 without its PTX" in done.stderr and "build it with" in done.stderr

    # Line information is enough: the PTX is in the machine code then.
    plain_nvcc(tmp_path, "hello.cu", "-cudart=shared", "-gencode=arch=compute_90,code=sm_90", "-lineinfo")
    done = cupola("run", "--device", "cpu", "./program", folder=tmp_path)
    assert (done.stdout, done.stderr) == ("1998 1000 6\n", "")


@needs_nvcc
@pytest.mark.cpu_only
def test_nvidias_runtime_inside(tmp_path):
    (tmp_path / "hello.cu").write_text(HELLO)
    plain_nvcc(tmp_path, "hello.cu")
    done = cupola("run", "--device", "cpu", "./program", folder=tmp_path)
    assert done.returncode == 3, "it fails by itself"
    assert "has NVIDIA's CUDA runtime inside" in done.stderr and "-cudart shared" in done.stderr
    assert "asks for private functions of NVIDIA's driver" in done.stderr


CMAKE = """
cmake_minimum_required(VERSION 3.20)
project(program LANGUAGES CXX CUDA)
enable_testing()
add_library(second STATIC second.cu)
add_executable(program first.cu)
set_target_properties(second program PROPERTIES CUDA_SEPARABLE_COMPILATION ON)
target_link_libraries(program second)
add_test(NAME program COMMAND program)
set_tests_properties(program PROPERTIES PASS_REGULAR_EXPRESSION "cudaSuccess 93 32")
"""


@needs_nvcc
@pytest.mark.cpu_only
@pytest.mark.skipif(not shutil.which("cmake"), reason="needs CMake")
def test_cmake(tmp_path):
    for name, text in {"first.cu": FIRST, "second.cu": SECOND, "CMakeLists.txt": CMAKE}.items():
        (tmp_path / name).write_text(text)
    compiler = tmp_path / "cupola-nvcc"  # as pip makes it of pyproject.toml
    compiler.write_text(f"#!{sys.executable}\nfrom cupola.cli.nvcc import main\nmain()\n")
    compiler.chmod(0o755)
    flags = ["-DCMAKE_CUDA_RUNTIME_LIBRARY=Shared", "-DCMAKE_CUDA_ARCHITECTURES=90"]
    environment = {**os.environ, "CUDACXX": str(compiler)}
    for command in (["cmake", "-B", "build", *flags], ["cmake", "--build", "build"]):
        done = processes.run(command, cwd=tmp_path, env=environment)
        assert done.returncode == 0, done.stdout + done.stderr
    done = cupola("run", "--device", "cpu", "ctest", "--test-dir", "build", folder=tmp_path)
    assert done.returncode == 0 and "100% tests passed" in done.stdout, done.stdout + done.stderr


# ---- what is a program ----------------------------------------------------------------------------------------------


def test_what_is_a_program_of_another_language(tmp_path):
    files = {"a.py": "print()", "b.sh": "#!/bin/sh\n", "c.sh": "#!/bin/sh\n", "d": "#!/usr/bin/env python3\n"}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "b.sh").chmod(0o755)
    (tmp_path / "d").chmod(0o755)
    found = [name for name in files if native.find_program(str(tmp_path / name))]
    assert found == ["b.sh"]
    assert native.find_program("sh") and native.find_program("no_such_program") is None
    assert native.find_program(str(tmp_path)) is None


def test_scripts_pass_the_device_on(tmp_path):
    script = tmp_path / "script.sh"
    script.write_text('#!/bin/sh\necho "$CUPOLA_DEVICE $CUPOLA_CPU_MODEL $1"; exit 7\n')
    script.chmod(0o755)
    done = cupola("run", "--device", "cpu", "--model", "t4", script, "x", folder=tmp_path)
    assert (done.stdout, done.returncode) == ("cpu t4 x\n", 7)


def test_damaged_programs(tmp_path):
    whole = Path(sys.executable).read_bytes()
    path = tmp_path / "program"
    for damage in (whole[:40], whole[:64], whole[:1000], b"\x7fELF\1\1" + whole[6:]):
        path.write_bytes(damage)
        with pytest.raises(ValueError, match=re.escape(str(path))):
            elf.read(path)
    path.write_bytes(whole[:64])
    path.chmod(0o755)
    done = cupola("run", "--device", "cpu", path, folder=tmp_path)
    assert done.returncode == 1 and "cannot start" in done.stderr and "headers of" in done.stderr
