"""Kernels that run in simply made code first: what they compute and report, and the code that replaces it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from cupola.cpu.compiler.facts import QUICK_FIRST
from cupola.numpy import _ahead
from tests import limits

Run = Callable[..., subprocess.CompletedProcess[str]]

pytestmark = [
    pytest.mark.cpu_only,
    pytest.mark.unchecked(reason="checked programs are compiled at once, and well"),
]

BEGIN = r"""
import sys, time
import cupola.cpu
import numpy as np
from cupola import CUDAError, Device, LaunchConfig, ObjectCode, Program, launch
from cupola.cpu.compiler import modules
from cupola.cpu.compiler.facts import QUICK_FIRST
from cupola.cpu.compiler.objects import later, machine

variants = []
made = modules.Variant.__init__
def init(self, *arguments):
    made(self, *arguments)
    variants.append(self)
modules.Variant.__init__ = init
simply = []
emit = machine.emit_object
machine.emit_object = lambda ir, **how: simply.append(how.get("simply", False)) or emit(ir, **how)

def replaced(which=0):
    "Wait for better code."
    while not variants[-1]._better[0][which]:
        time.sleep(0.01)
    return True

device = Device()
device.set_current()
stream = device.create_stream()
def kernel(source, name="k"):
    ptx = bytes(Program(source, "c++", {"name": "here.cu", "lineinfo": True}).compile("ptx").code).rstrip(b"\0")
    return ObjectCode.from_ptx(ptx + QUICK_FIRST.encode()).get_kernel(name)
"""

REPLACED = (
    BEGIN
    + r"""
source = '''
extern "C" __global__ void k(double *p, int n, int turns) {
    __shared__ double s[64];
    for (int t = 0; t < turns || turns < 0; t++) {
        int i = blockIdx.x * 64 + threadIdx.x;
        s[threadIdx.x] = p[i + n] * 1.1 + p[i] / 3 - sqrt(p[i]);
        __syncthreads();
        if (threadIdx.x % 2) p[i] += __shfl_sync(0xffffffff, s[63 - threadIdx.x], 3);
        else p[i] *= __shfl_sync(0xffffffff, s[63 - threadIdx.x] + 1, 4);
    }
}'''
k = kernel(source)
config = LaunchConfig(grid=8, block=64)
memory = device.allocate(8 * 512, stream=stream)
host = np.arange(512) * 0.37
def result():
    from cupola.bindings import driver
    driver.cuMemcpyHtoD(int(memory.handle), host.ctypes.data, host.nbytes)
    launch(stream, config, k, memory, np.int32(0), np.int32(3))
    stream.sync()
    found = np.empty_like(host)
    driver.cuMemcpyDtoH(found.ctypes.data, int(memory.handle), found.nbytes)
    return found.tobytes()
first = result()
print(simply)
results = set()
while {wait} and not all(variants[-1]._better[0]):
    results.add(result())  # while code is replaced
print(replaced(), replaced(1))
results.add(result())
print(results == {first})
print(simply)
for arguments in ((511, 1), (0, -1)):
    try:
        launch(stream, config, k, memory, *map(np.int32, arguments))
        stream.sync()
    except CUDAError as error:
        print(error)
        break
"""
)


def test_the_good_code_replaces_the_quick(tmp_path: Path, run_python: Run) -> None:
    """Results are the same to the bit; faults are found in the same places; the next process gets the good code."""
    done = run_python(REPLACED.replace("{wait}", "True"), XDG_CACHE_HOME=str(tmp_path))
    lines = done.stdout.splitlines()
    assert lines[:4] == ["[True, True]", "True True", "True", "[True, True]"], done.stdout + done.stderr
    assert "out-of-bounds read of 8 bytes" in done.stdout
    assert "at here.cu:6 in k" in done.stdout
    program = REPLACED.replace("{wait}", "False").replace("replaced()", "0").replace("replaced(1)", "0")
    again = run_python(program, XDG_CACHE_HOME=str(tmp_path))
    assert again.stdout.splitlines()[:1] == ["[]"], again.stdout + again.stderr
    assert "at here.cu:6 in k" in again.stdout


ENDLESS = (
    BEGIN
    + r"""
k = kernel('extern "C" __global__ void k(volatile int *p, int on) { while (on) p[threadIdx.x]++; }')
memory = device.allocate(256, stream=stream)
launch(stream, LaunchConfig(grid=1, block=64), k, memory, np.int32(0))
stream.sync()
print(replaced())
try:
    launch(stream, LaunchConfig(grid=1, block=64), k, memory, np.int32(1))
    stream.sync()
except CUDAError as error:
    print(error)
"""
)


def test_code_that_replaced_other_code_is_ended(tmp_path: Path, run_python: Run) -> None:
    done = run_python(ENDLESS, XDG_CACHE_HOME=str(tmp_path), CUPOLA_CPU_TIMEOUT="0.3")
    assert done.stdout.startswith("True\nCUDA_ERROR_LAUNCH_TIMEOUT"), done.stdout + done.stderr


ALONE = (
    BEGIN
    + r"""
later._start = lambda read, write: {broken}
k = kernel('extern "C" __global__ void k(int *p) { p[threadIdx.x] = 5; }')
memory = device.allocate(256, stream=stream)
launch(stream, LaunchConfig(grid=1, block=64), k, memory)
stream.sync()
print(simply[0], replaced())
print(sorted(simply))
"""
)


@pytest.mark.parametrize(
    "broken", ["(_ for _ in ()).throw(OSError('no process'))", "None"], ids=["cannot be started", "ends at once"]
)
def test_without_a_worker_good_code_is_made_here(broken: str, tmp_path: Path, run_python: Run) -> None:
    done = run_python(ALONE.replace("{broken}", broken), XDG_CACHE_HOME=str(tmp_path))
    assert done.stdout == "True True\n[False, True]\n", done.stdout + done.stderr


SHORT = (
    BEGIN
    + r"""
k = kernel('extern "C" __global__ void k(int *p) { p[threadIdx.x] = 5; }')
memory = device.allocate(256, stream=stream)
launch(stream, LaunchConfig(grid=1, block=64), k, memory)
stream.sync()
print(simply)
"""
)


def test_a_program_that_ends_before_the_worker_is_started_starts_it(tmp_path: Path, run_python: Run) -> None:
    """It ends sooner than a moment after its kernel; some later one finds the good code."""
    program = "import cupola._soon\ncupola._soon.DELAY = 1000\n" + SHORT
    first = run_python(program, XDG_CACHE_HOME=str(tmp_path))
    assert (first.stdout, first.stderr) == ("[True]\n", "")
    limits.until(lambda: run_python(SHORT, XDG_CACHE_HOME=str(tmp_path)).stdout == "[]\n", "it is not found", pause=0.1)


NUMBERS = r"""
import sys
import numpy
import cupola.numpy as np
from cupola.cpu.compiler.objects import machine

given = [0.0, -0.0, numpy.nan, numpy.inf, -numpy.inf, 5e-324, 1e308, 0.1, -2.5, 3.0, 7.7]
def of(kind):
    x = np.asarray(numpy.array([a for a in given for _ in given]).astype(kind))
    return x, np.asarray(numpy.array(given * len(given)).astype(kind))
(x, y), (a, b) = of("d"), of("f")
for made in (x * y + x / y - y, x[:30].sum(), np.exp(x) * y, np.maximum(a, b) ** 2 + np.sqrt(a) - a / b):
    print(made.to_numpy().tobytes().hex())
"""


def test_results_do_not_depend_on_how_code_is_made(tmp_path: Path, run_python: Run) -> None:
    """Nor do those that are no number. But it is not said which of two different ones a double precision sum keeps."""
    outputs = [
        run_python(NUMBERS, XDG_CACHE_HOME=str(tmp_path), CUPOLA_CPU_OPTIMIZE=quick).stdout for quick in ("0", "1")
    ]
    assert len(outputs[0].splitlines()) == 4
    assert outputs[0] == outputs[1]


def test_arrays_ask_for_it(monkeypatch: pytest.MonkeyPatch, device: object) -> None:
    """Unless there is to be no process in the background."""
    assert QUICK_FIRST.encode() == _ahead.QUICK_FIRST
    for allowed in (True, False):
        monkeypatch.setattr(_ahead, "_prepare", lambda allowed=allowed: allowed)
        for source in (_ahead_source(), 'extern "C" __global__ void nothing() {}\n'):
            code = bytes(_ahead.code(source).code)
            assert code.endswith(_ahead.QUICK_FIRST) is allowed


def _ahead_source() -> str:
    """A source whose PTX is in the package."""
    from cupola.numpy import _kernels

    seen: list[str] = []
    patch = pytest.MonkeyPatch()
    with patch.context() as context:
        context.setattr(_kernels, "compiled", lambda source, name: seen.append(source))
        lines = ("const double v0 = READ(0);", "const double v1 = (double)(v0 + s0);")
        _kernels.elementwise.__wrapped__(lines, "v1", ("d",), ("d",), "cc", -1, "d")
    return seen[0]
