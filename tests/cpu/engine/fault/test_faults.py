"""What the CPU device says when a kernel goes wrong. Each fault happens on a device of its own, which it spoils."""

from __future__ import annotations

import ctypes
import re
import struct
import subprocess
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from cupola.cpu.reports.faults import nearest
from tests.cpu.engine.faulting import explanations

pytestmark = pytest.mark.cpu_only

SOURCE = r"""
extern "C" __global__ void past_the_end(int *data, int *other, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    data[i] = n;  // LINE past_the_end
}
extern "C" __global__ void before_the_start(int *data, int *other, int n) {
    int i = threadIdx.x;
    other[i] = data[i - 3];  // LINE before_the_start
}
extern "C" __global__ void scattered(int *data, int *other, int n) {
    int i = threadIdx.x;
    other[i] = data[(i * 7) % 32 == 10 ? 100000 : i];  // LINE scattered
}
extern "C" __global__ void misaligned(int *data, int *other, int n) {
    other[threadIdx.x] = *(int *)((char *)data + 4 * threadIdx.x + (threadIdx.x == 5));  // LINE misaligned
}
extern "C" __global__ void null_pointer(int *data, int *other, int n) {
    int *p = threadIdx.x == 9 ? (int *)(long long)(n - 252) : data;
    other[0] = p[threadIdx.x];  // LINE null_pointer
}
extern "C" __global__ void shared_memory(int *data, int *other, int n) {
    __shared__ int box[40];
    box[threadIdx.x] = 1;  // LINE shared_memory
    __syncthreads();
    data[0] = box[n];
}
extern "C" __global__ void dynamic_shared(int *data, int *other, int n) {
    extern __shared__ int memory[];
    memory[threadIdx.x * 2] = n;  // LINE dynamic_shared
    data[0] = memory[1];
}
__device__ void helper(int *p, int i) {
    atomicAdd(&p[i * 1000], 1);  // LINE atomic
}
extern "C" __global__ void atomic(int *data, int *other, int n) {
    helper(data, threadIdx.x);  // LINE call_of_helper
}
extern "C" __global__ void counters(int *data, int *other, int n) {
    __shared__ int box[40];
    for (int i = threadIdx.x; i < 40; i += blockDim.x) box[i] = 0;
    __syncthreads();
    atomicAdd(&box[threadIdx.x == 45 ? 50 : threadIdx.x % 4], 1);  // LINE counters
    __syncthreads();
    data[threadIdx.x] = box[threadIdx.x % 4];
}
extern "C" __global__ void assertion(int *data, int *other, int n) {
    assert(threadIdx.x < 11);  // LINE assertion
    data[threadIdx.x] = 0;
}
extern "C" __global__ void trapped(int *data, int *other, int n) {
    if (blockIdx.x == 1 && threadIdx.x == 3) __trap();  // LINE trapped
}
extern "C" __global__ void breakpoint(int *data, int *other, int n) {
    if (threadIdx.x == 5) asm volatile("brkpt;");  // LINE breakpoint
}
extern "C" __global__ void barrier(int *data, int *other, int n) {
    if (threadIdx.x < 32) asm volatile("barrier.sync 1;");  // LINE barrier
    else __syncthreads();
}
extern "C" __global__ void partly_inside(double *data, int *other, int n) {
    data[0] = ((double *)((char *)data + n))[0];
}
"""

LAUNCHES: dict[str, dict[str, int | tuple[int, ...]]] = {
    "past_the_end": {"grid": 3},
    "before_the_start": {},
    "scattered": {},
    "misaligned": {},
    "null_pointer": {},
    "shared_memory": {"block": 64},
    "dynamic_shared": {"block": 48, "shmem_size": 256},
    "atomic": {},
    "counters": {"block": 64},
    "assertion": {},
    "trapped": {"grid": 2},
    "breakpoint": {},
    "barrier": {"block": 64},
    "partly_inside": {"block": 1},
}


@dataclass(frozen=True)
class Fault:
    """What the text must have: the CUDA error, the thread and block, and patterns of the rest."""

    status: str
    thread: tuple[int, int, int]
    block: tuple[int, int, int]
    patterns: tuple[str, ...]


FAULTS = {
    "past_the_end": Fault(
        "CUDA_ERROR_ILLEGAL_ADDRESS",
        (0, 0, 0),
        (2, 0, 0),
        (
            r"out-of-bounds write of 4 bytes in global memory",
            r"st\.global",
            r"just past the end of a 256-byte allocation",
        ),
    ),
    "before_the_start": Fault(
        "CUDA_ERROR_ILLEGAL_ADDRESS",
        (0, 0, 0),
        (0, 0, 0),
        (r"out-of-bounds read of 4 bytes", r"12 bytes before a 256-byte allocation"),
    ),
    "scattered": Fault(
        "CUDA_ERROR_ILLEGAL_ADDRESS", (6, 0, 0), (0, 0, 0), (r"\d+ bytes (past the end of|before|inside) a",)
    ),
    "misaligned": Fault(
        "CUDA_ERROR_MISALIGNED_ADDRESS",
        (5, 0, 0),
        (0, 0, 0),
        (r"misaligned read of 4 bytes", r"needs an address that is a multiple of 4"),
    ),
    "null_pointer": Fault("CUDA_ERROR_ILLEGAL_ADDRESS", (9, 0, 0), (0, 0, 0), (r"a null pointer",)),
    "shared_memory": Fault(
        "CUDA_ERROR_ILLEGAL_ADDRESS",
        (40, 0, 0),
        (0, 0, 0),
        (r"write of 4 bytes in shared memory at offset 160", r"has 160 bytes of shared memory \(static\)"),
    ),
    "dynamic_shared": Fault(
        "CUDA_ERROR_ILLEGAL_ADDRESS",
        (32, 0, 0),
        (0, 0, 0),
        (r"shared memory at offset 256", r"256 bytes of shared memory \(dynamic\)"),
    ),
    "atomic": Fault(
        "CUDA_ERROR_ILLEGAL_ADDRESS",
        (1, 0, 0),
        (0, 0, 0),
        (r"write of 4 bytes in global memory", r"inlined at \S+:<call_of_helper> in atomic"),
    ),
    "counters": Fault(
        "CUDA_ERROR_ILLEGAL_ADDRESS",
        (45, 0, 0),
        (0, 0, 0),
        (r"write of 4 bytes in shared memory at offset 200", r"(atom|red)\.shared"),
    ),
    "assertion": Fault(
        "CUDA_ERROR_ASSERT", (11, 0, 0), (0, 0, 0), (r"assertion `threadIdx.x < 11` failed", r"assertion")
    ),
    "trapped": Fault("CUDA_ERROR_LAUNCH_FAILED", (3, 0, 0), (1, 0, 0), (r"executed a trap",)),
    "breakpoint": Fault("CUDA_ERROR_LAUNCH_FAILED", (5, 0, 0), (0, 0, 0), (r"executed a trap",)),
    "barrier": Fault(
        "CUDA_ERROR_LAUNCH_FAILED",
        (0, 0, 0),
        (0, 0, 0),
        (
            r"32 threads from \(32, 0, 0\) to \(63, 0, 0\) wait at barrier 0 for all 64 threads",
            r"32 threads from \(0, 0, 0\) to \(31, 0, 0\) wait at barrier 1 for all 64 threads",
        ),
    ),
    "partly_inside": Fault("CUDA_ERROR_MISALIGNED_ADDRESS", (0, 0, 0), (0, 0, 0), (r"misaligned read of 8 bytes",)),
}


def line_of(mark: str) -> int:
    return next(number for number, line in enumerate(SOURCE.splitlines(), 1) if line.endswith(f"// LINE {mark}"))


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    """The error of each kernel."""
    return explanations(SOURCE, LAUNCHES)


@pytest.mark.parametrize("name", FAULTS)
def test_fault_is_explained(name: str, texts: dict[str, str]) -> None:
    fault, text = FAULTS[name], texts[name]
    assert text.startswith(fault.status), text
    assert f"kernel '{name}'" in text
    assert f"in thread {fault.thread} of block {fault.block}" in text, text
    for pattern in fault.patterns:
        pattern = re.sub(r"<(\w+)>", lambda m: str(line_of(m[1])), pattern)
        assert re.search(pattern, text), text
    if name not in ("assertion", "partly_inside"):
        assert re.search(rf"at \S+:{line_of(name)} in ", text), text


def test_backstop_reports_what_no_check_covers(run_python: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    """With a check that says yes to everything, the arena's inaccessible pages stop the kernel."""
    done = run_python(
        """
import ctypes, importlib.util
import cupola.cpu
cupola.cpu.use()
import numpy as np
from cupola.cpu.compiler.emit.memory import bounds, memory
bounds.inside = lambda body, access, site, address, *, row: "true"
from cupola import Device, LaunchConfig, Program, ProgramOptions, launch
device = Device(0)
device.set_current()
source = 'extern "C" __global__ void k(int *p) { p[1ll << 28] = 1; }'
options = ProgramOptions(arch=f"sm_{device.arch}")
kernel = Program(source, code_type="c++", options=options).compile("cubin").get_kernel("k")
stream = device.create_stream()
buffer = device.allocate(64, stream=stream)
launch(stream, LaunchConfig(grid=1, block=1), kernel, buffer)
try:
    stream.sync()
except Exception as error:
    print(error)
import sys, os
sys.stdout.flush()
os._exit(0)
""",
        CUPOLA_CPU_CACHE="0",
    )
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in done.stdout and "no check covers this access" in done.stdout, (
        done.stdout + done.stderr
    )


def test_faults_of_others_reach_their_handler(run_python: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = run_python(
        """
import faulthandler
faulthandler.enable()
import cupola.cpu
cupola.cpu.use()
import numpy as np
from cupola import Device, LaunchConfig, Program, ProgramOptions, launch
device = Device(0)
device.set_current()
source = 'extern "C" __global__ void k() {}'
options = ProgramOptions(arch=f"sm_{device.arch}")
kernel = Program(source, code_type="c++", options=options).compile("cubin").get_kernel("k")
stream = device.create_stream()
launch(stream, LaunchConfig(grid=1, block=1), kernel)
stream.sync()
import ctypes
ctypes.string_at(8)
"""
    )
    assert done.returncode < 0 and "Fatal Python error: Segmentation fault" in done.stderr


def test_the_text_of_the_line_where_its_file_is_there(run_python, tmp_path):
    path = tmp_path / "bad.cu"
    path.write_text('extern "C" __global__ void bad(int* x) {\n    x[1 << 22] = 1;\n}\n')
    done = run_python(f"""
from cupola import Device, LaunchConfig, Program, ProgramOptions, launch
dev = Device()
dev.set_current()
stream = dev.create_stream()
options = ProgramOptions(name={str(path)!r})
kernel = Program(open(options.name).read(), "c++", options).compile("cubin").get_kernel("bad")
launch(stream, LaunchConfig(grid=1, block=1), kernel, dev.allocate(64, stream=stream))
try:
    stream.sync()
except Exception as error:
    print(error)
""")
    assert f"at {path}:2 in bad\n    x[1 << 22] = 1;\n  PTX line" in done.stdout, done.stdout + done.stderr


def test_memory_of_the_host_that_was_passed_for_a_pointer():
    numbers = ctypes.create_string_buffer(64)
    assert nearest(ctypes.addressof(numbers), 4, None).endswith("a NumPy array's; copy that to a Buffer")


@pytest.mark.parametrize(
    ("address", "said"),
    [
        (int.from_bytes(struct.pack("<d", 1.5), "little"), "as a float64 it is 1.5: was a number passed"),
        (int.from_bytes(struct.pack("<d", -1e3), "little") + 64, "as a float64 it is -1000: was a number passed"),
        (0x7F00_0000_0000, None),
        (1 << 60, None),
    ],
)
def test_numbers_that_were_passed_for_pointers(address, said):
    text = nearest(address, 4, None)
    assert text.startswith("there is no allocation near it")
    assert said in text if said else "float64" not in text
