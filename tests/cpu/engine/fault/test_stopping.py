"""Kernels that do not end: Ctrl-C ends the wait, a second one the kernel, and a timeout ends it by itself."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

pytestmark = [
    pytest.mark.cpu_only,  # on a GPU the driver waits, and no signal reaches it
    pytest.mark.unchecked(reason="checked kernels take longer than it waits for"),
]

Run = Callable[..., subprocess.CompletedProcess[str]]

# What a kernel may do while it goes on and on.
ENDLESS = {
    "looks at memory": "while (*(volatile unsigned *)p == 0);",
    "computes": "unsigned x = 1; for (unsigned i = 0; x != 0; i = i * 3 + 1) x = (x * 1664525u + i) | 1; *p = x;",
    "waits at barriers": "__shared__ unsigned a[64]; do { a[threadIdx.x] += *p; __syncthreads(); } while (a[5] < 9);",
    "adds atomically": "while (atomicAdd(p, 2) != 1);",
    "parts": "unsigned x = threadIdx.x; while (x != *p + 5000) x = x % 3 ? x * 3 + 1 : x / 3 + 7; *p = x;",
    "shuffles apart": "if (threadIdx.x < 16) while (*(volatile unsigned *)p == 0) __shfl_sync(0xffff, threadIdx.x, 3);",
}

PROGRAM = r"""
import os, signal, threading, time
import cupola.cpu
{setup}
from cupola import CUDAError, Device, LaunchConfig, Program, launch

device = Device(0)
device.set_current()
stream = device.create_stream()
source = 'extern "C" __global__ void endless(unsigned *p) {{ if (p[8]) return; {body} }}'
kernel = Program(source, "c++").compile("cubin").get_kernel("endless")
memory = device.allocate(64, stream=stream)
config = LaunchConfig(grid=4, block=64)
memory.fill(b"\1", stream=stream)
for _ in range({quick}):
    launch(stream, config, kernel, memory)
    stream.sync()
memory.fill(b"\0", stream=stream)
stream.sync()

waiting, seen = False, []
raised = 0
def handler(number, frame):
    global raised
    if waiting and raised < 2:  # not while the error is made
        raised += 1
        raise KeyboardInterrupt
signal.signal(signal.SIGINT, handler)

def press():
    while True:
        time.sleep(0.2)
        if waiting:
            os.kill(os.getpid(), signal.SIGINT)
if {press}:
    threading.Thread(target=press, daemon=True).start()

def wait(call):
    global waiting
    try:
        waiting = True
        call()
        seen.append("done")
    except KeyboardInterrupt:
        waiting = False
        seen.append("interrupt")
    except CUDAError as error:
        waiting = False
        seen.append(str(error))
    waiting = False

launch(stream, config, kernel, memory)
while len(seen) < 10 and "CUDA_ERROR" not in str(seen):
    wait(lambda: {wait})
print("|".join(seen))
"""


def outcome(run_python: Run, body: str, **parts: object) -> list[str]:
    parts = {"setup": "", "wait": "stream.sync()", "press": True, "quick": 0, **parts}
    done = run_python(PROGRAM.format(body=body, **parts), CUPOLA_DEVICE="cpu")
    assert done.returncode == 0, done.stderr
    return done.stdout.strip().split("|")


@pytest.mark.parametrize("body", ENDLESS)
def test_the_second_signal_ends_a_kernel(body: str, run_python: Run) -> None:
    *interrupts, error = outcome(run_python, ENDLESS[body])
    assert interrupts == ["interrupt", "interrupt"]
    assert "CUDA_ERROR_LAUNCH_TIMEOUT" in error and "kernel 'endless'" in error and "Ctrl-C" in error


def test_a_kernel_that_used_to_be_quick_is_ended(run_python: Run) -> None:
    """The main thread may run it itself: then the first signal waits for the second."""
    *interrupts, error = outcome(run_python, ENDLESS["computes"], quick=30)
    assert interrupts and set(interrupts) == {"interrupt"}
    assert "CUDA_ERROR_LAUNCH_TIMEOUT" in error and "Ctrl-C" in error


WAITS = {
    "stream": "stream.sync()",
    "device": "device.sync()",
    "event": "event.sync()",
    "copy": "driver.cuMemcpyDtoH(host, memory.handle, 64)",
    "runtime": "runtime.cudaDeviceSynchronize()",
    "default stream": "driver.cuStreamSynchronize(1)",
}


@pytest.mark.parametrize("wait", WAITS)
def test_what_a_signal_interrupts(wait: str, run_python: Run) -> None:
    """And a program whose kernel still runs may end."""
    program = PROGRAM.replace("while len(seen) < 10", "event = stream.record()\nwhile not seen")
    program = program.replace("create_stream()", "create_stream(options=StreamOptions(nonblocking=False))")
    setup = "from cupola.bindings import driver, runtime\nfrom cupola import StreamOptions\nhost = bytearray(64)"
    parts = {"setup": setup, "wait": WAITS[wait], "press": True, "quick": 0, "body": ENDLESS["looks at memory"]}
    done = run_python(program.format(**parts), CUPOLA_DEVICE="cpu")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "interrupt\n"


GRAPH_WAITS = {
    "event": "cuGraphAddEventWaitNode(graph, [], 0, event)",
    "value": "cuGraphAddBatchMemOpNode(graph, [], 0, waits)",
}


@pytest.mark.parametrize("node", GRAPH_WAITS)
def test_a_signal_leaves_a_graph_that_waits_to_its_work(node: str, run_python: Run) -> None:
    """Also when a launch before was quick: such a graph is not for the thread that handles signals."""
    done = run_python(
        rf"""
import ctypes, os, signal, threading, time
from cupola.bindings import driver
from cupola.bindings.driver import *

def ok(result):
    assert result[0] == 0, result
    return result[1] if len(result) == 2 else None

ok(cuInit(0))
context = ok(cuDevicePrimaryCtxRetain(0))
ok(cuCtxSetCurrent(context))
first, other, event = ok(cuStreamCreate(1)), ok(cuStreamCreate(1)), ok(cuEventCreate(2))
address = ok(cuMemHostAlloc(64, 0))
flag = ctypes.c_uint32.from_address(int(address))
wait = CUstreamBatchMemOpParams()
wait.operation = CUstreamBatchMemOpType.CU_STREAM_MEM_OP_WAIT_VALUE_32
wait.waitValue.address, wait.waitValue.value = int(address), 1
waits = CUDA_BATCH_MEM_OP_NODE_PARAMS()
waits.ctx, waits.count, waits.paramArray = context, 1, [wait]
graph = ok(cuGraphCreate(0))
ok({GRAPH_WAITS[node]})
graph = ok(cuGraphInstantiate(graph, 0))

def begin():
    ok(cuStreamWaitValue32(other, int(address), 1, 0))
    ok(cuEventRecord(event, other))
    ok(cuGraphLaunch(graph, first))

flag.value = 1
for _ in range(3):
    begin()
    ok(cuCtxSynchronize())
flag.value = 0

def press():
    entered.wait()
    time.sleep(0.2)
    os.kill(os.getpid(), signal.SIGINT)
    interrupted.wait()
    flag.value = 1

entered, interrupted = threading.Event(), threading.Event()
thread = threading.Thread(target=press)
thread.start()
try:
    begin()
    entered.set()
    ok(cuStreamSynchronize(first))
except KeyboardInterrupt:
    print("interrupted", flag.value)
    interrupted.set()
thread.join()
ok(cuCtxSynchronize())
print("done")
"""
    )
    assert done.stdout.split() == ["interrupted", "0", "done"], done.stdout + done.stderr


@pytest.mark.parametrize("body", ENDLESS)
def test_a_timeout_ends_a_kernel(body: str, run_python: Run) -> None:
    (error,) = outcome(run_python, ENDLESS[body], press=False, setup="cupola.cpu.use(timeout=0.5)")
    assert "CUDA_ERROR_LAUNCH_TIMEOUT" in error and "kernel 'endless'" in error and "0.5 seconds" in error


def test_a_timeout_spoils_the_context_until_it_is_reset(run_python: Run) -> None:
    program = (
        PROGRAM
        + r"""
try:
    memory.fill(0, stream=stream)
except CUDAError as error:
    print(error.status)
from cupola.bindings import driver
print(driver.cuDevicePrimaryCtxReset(0))
device.set_current()
stream = device.create_stream()
memory = device.allocate(64, stream=stream)
memory.fill(1, stream=stream)
kernel = Program(source, "c++").compile("cubin").get_kernel("endless")
launch(stream, config, kernel, memory)
stream.sync()
print("well again")
"""
    )
    parts = {"setup": "cupola.cpu.use(timeout=0.5)", "wait": "stream.sync()", "press": False, "quick": 0}
    done = run_python(program.format(body=ENDLESS["computes"], **parts))
    assert done.stdout.endswith("well again\n"), done.stderr


def test_quick_kernels_may_take_turns_for_longer_than_the_timeout(run_python: Run) -> None:
    """A timeout that is far longer than any of them has taken on this machine, as busy as it is."""
    program = r"""
import time, cupola.cpu
timeout = {timeout}
cupola.cpu.use(timeout=timeout)
from cupola import Device, LaunchConfig, Program, launch
device = Device(0)
device.set_current()
stream = device.create_stream()
kernel = Program('extern "C" __global__ void nothing() {}', "c++").compile("cubin").get_kernel("nothing")

def run():
    begin = time.monotonic()
    launch(stream, LaunchConfig(grid=1, block=1), kernel)
    stream.sync()
    return time.monotonic() - begin

run()
print(max(run() for _ in range(200)))
end = time.monotonic() + 3 * timeout
while time.monotonic() < end:
    run()
print("done")
"""
    longest, done = run_python(program.replace("{timeout}", "0")).stdout.split()
    timeout = max(0.2, 20 * float(longest))
    again = run_python(program.replace("{timeout}", str(timeout)))
    assert done == again.stdout.split()[-1] == "done", again.stdout + again.stderr


def test_an_interrupt_of_the_compiler_is_one_of_the_program(run_python: Run) -> None:
    program = r"""
from cupola.cpu.compiler import modules
from cupola import Device, LaunchConfig, Program, launch
def interrupted(*_):
    raise KeyboardInterrupt("here")
modules.LoadedModule.compile = interrupted
device = Device(0)
device.set_current()
kernel = Program('extern "C" __global__ void nothing() {}', "c++").compile("cubin").get_kernel("nothing")
try:
    launch(device.create_stream(), LaunchConfig(grid=1, block=1), kernel)
except KeyboardInterrupt as error:
    print(error)
"""
    done = run_python(program, CUPOLA_DEVICE="cpu")
    assert done.stdout == "here\n", done.stderr


def test_a_crash_of_the_compiler_is_no_fault_of_the_kernel(run_python: Run) -> None:
    """The independent body is compiled while the kernel runs, on a thread that is guarded."""
    program = r"""
import ctypes
from cupola.cpu.compiler import modules
modules.Variant.independent_address = lambda self: ctypes.string_at(8)
import numpy as np
from tests.cpu.engine.kernels import run
run('''extern "C" __global__ void apart() {
    if (threadIdx.x < 16) { __shfl_sync(0xffffffff, 1, 1); } else { __syncwarp(); __shfl_sync(0xffffffff, 1, 2); } }''',
    "apart", 1, 32)
"""
    done = run_python("import faulthandler; faulthandler.enable()\n" + program, CUPOLA_DEVICE="cpu")
    assert done.returncode == -11 and "Segmentation fault" in done.stderr, done.stderr
