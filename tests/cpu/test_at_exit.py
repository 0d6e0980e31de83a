"""What fails after the last synchronization is told when the process ends, and is in the status of `cupola run`."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests import processes
from tests.cli.test_nvcc import needs_nvcc

pytestmark = pytest.mark.cpu_only

FAULT = """
from cupola import Device, LaunchConfig, Program, launch
source = 'extern "C" __global__ void far(int* x) { for (int i = 0; i < ROUNDS; i++) x[0] += 1; x[1 << 20] = 1; }'
dev = Device()
dev.set_current()
stream = dev.create_stream()
kernel = Program(source.replace('ROUNDS', '%d'), 'c++').compile('cubin').get_kernel('far')
buffer = dev.allocate(64, stream=stream)
stream.sync()
launch(stream, LaunchConfig(grid=1, block=1), kernel, buffer)
print('launched')
"""
HEARD = """
from cupola import CUDAError
try:
    stream.sync()
except CUDAError:
    print('heard')
"""
UNHEARD = "no call of the program has returned the error: CUDA_ERROR_ILLEGAL_ADDRESS"


def run(tmp_path, source: str, *command: str) -> subprocess.CompletedProcess[str]:
    script = tmp_path / "program.py"
    script.write_text(source)
    environment = {**os.environ, "CUPOLA_DEVICE": "cpu"}
    return processes.run([sys.executable, *command, script], env=environment)


@pytest.mark.parametrize("rounds", [1, 30_000_000], ids=["at once", "still running"])
def test_a_script(tmp_path, rounds):
    done = run(tmp_path, FAULT % rounds)
    assert (done.returncode, done.stdout) == (0, "launched\n")
    assert UNHEARD in done.stderr
    assert "'far'" in done.stderr or "far" in done.stderr


@pytest.mark.parametrize("end", ["", "raise SystemExit", "import sys; sys.exit(0)"])
def test_the_command_fails(tmp_path, end):
    done = run(tmp_path, FAULT % 1 + end, "-m", "cupola", "run")
    assert (done.returncode, done.stdout) == (1, "launched\n")
    assert done.stderr.count(UNHEARD) == 1


def test_another_status_stays(tmp_path):
    done = run(tmp_path, FAULT % 1 + "raise SystemExit(3)", "-m", "cupola", "run")
    assert done.returncode == 3
    assert UNHEARD in done.stderr


@pytest.mark.parametrize("command", [(), ("-m", "cupola", "run")])
def test_what_was_heard_is_not_told_again(tmp_path, command):
    done = run(tmp_path, FAULT % 1 + HEARD, *command)
    assert (done.returncode, done.stdout) == (0, "launched\nheard\n")
    assert UNHEARD not in done.stderr


PROGRAM = """
#include <cstdio>
#include <cstdlib>
__global__ void far(int *x) { x[1 << 20] = 1; }
int main(int argc, char **argv) {
    int *x;
    cudaMalloc(&x, 64);
    far<<<1, 1>>>(x);
    puts("launched");
    if (argc > 1) return cudaDeviceSynchronize() == cudaErrorIllegalAddress ? 0 : 1;
    return 0;
}
"""


@needs_nvcc
def test_a_program_in_cpp(tmp_path):
    def cupola(*arguments: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "cupola", *map(str, arguments)]
        return processes.run(command, cwd=tmp_path)

    (tmp_path / "far.cu").write_text(PROGRAM)
    built = cupola("nvcc", "far.cu", "-o", "far")
    assert built.returncode == 0, built.stderr
    done = cupola("run", "--device", "cpu", tmp_path / "far")
    assert (done.returncode, done.stdout) == (1, "launched\n")
    assert UNHEARD in done.stderr
    done = cupola("run", "--device", "cpu", tmp_path / "far", "heard")
    assert done.returncode == 0, done.stderr
    assert UNHEARD not in done.stderr
    done = cupola("run", "--inject", "kernel=far,error=ecc_uncorrectable", tmp_path / "far")
    assert done.returncode == 1
    assert "CUDA_ERROR_ECC_UNCORRECTABLE" in done.stderr
    assert "injected kernel=far: 1 of 1, first number 1: " in done.stderr
