"""Injected faults: which calls, kernels and copies fail, what is told of it, and that all is as before afterwards."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from cupola import CUDAError, LaunchConfig, Program, cpu, launch
from cupola.bindings import driver, runtime

pytestmark = pytest.mark.cpu_only

KERNELS = """
extern "C" __global__ void order(int* next, int* places) { places[blockIdx.x] = atomicAdd(next, 1); }
namespace shapes { __global__ void square(float* x) { x[threadIdx.x] *= x[threadIdx.x]; } }
"""


def allocate_all(count: int) -> list[str]:
    """The names of the statuses of so many calls of cuMemAlloc; what is allocated is freed."""
    results = [driver.cuMemAlloc(1024) for _ in range(count)]
    for status, pointer in results:
        if status == driver.CUresult.CUDA_SUCCESS:
            driver.cuMemFree(pointer)
    return ["" if status == 0 else status.name for status, _ in results]


OUT = "CUDA_ERROR_OUT_OF_MEMORY"

CALLS = [
    ({"call": "cuMemAlloc"}, [OUT, "", "", ""]),
    ({"call": "cuMemAlloc", "nth": 3}, ["", "", OUT, ""]),
    ({"call": "cuMemAlloc", "nth": 2, "times": 2}, ["", OUT, OUT, ""]),
    ({"call": "cuMemAlloc", "nth": 3, "times": 0}, ["", "", OUT, OUT]),
    ({"call": "cuMem*"}, [OUT, "", "", ""]),
    ({"call": "cuMem[AB]lloc", "nth": 2}, ["", OUT, "", ""]),
    ({"call": "cuMemAllocAsync", "times": 0}, ["", "", "", ""]),
    ({"call": "cuMemAlloc", "error": "no_device"}, ["CUDA_ERROR_NO_DEVICE", "", "", ""]),
    ({"call": "cuMemAlloc", "error": driver.CUresult.CUDA_ERROR_UNKNOWN}, ["CUDA_ERROR_UNKNOWN", "", "", ""]),
    ({"call": "cuMemAlloc", "probability": 0.0}, ["", "", "", ""]),
    ({"call": "cuMemAlloc", "probability": 1.0, "times": 0}, [OUT] * 4),
]


@pytest.mark.parametrize(("rule", "expected"), CALLS)
def test_calls(device, rule, expected):
    with cpu.faults(**rule) as faults:
        assert allocate_all(4) == expected
    assert faults.count == sum(map(bool, expected))
    assert allocate_all(2) == ["", ""]


def test_what_happened(device):
    with cpu.faults(call="cuMemAlloc", nth=2, times=2) as faults:
        allocate_all(4)
        assert (faults.applied, faults.count) == (4, 2)
    assert faults.happened == [cpu.Happening(2, "cuMemAlloc"), cpu.Happening(3, "cuMemAlloc")]
    assert repr(faults) == "<Faults call=cuMemAlloc: 2 of 4>"


def test_the_error_says_so(device, stream):
    with cpu.faults(call="cuMemAlloc*"), pytest.raises(CUDAError, match="made to fail by cupola.cpu.faults") as caught:
        device.allocate(16, stream=stream)
    assert (caught.value.name, caught.value.status) == (OUT, 2)


def test_the_same_seed_the_same_faults(device):
    def meet(seed: int) -> list[str]:
        with cpu.faults(call="cuMemAlloc", probability=0.5, seed=seed):
            return allocate_all(40)

    assert meet(1) == meet(1) != meet(2)
    assert 5 < sum(map(bool, meet(3))) < 35


def test_several_rules(device):
    with cpu.faults(call="cuMemAlloc", nth=2), cpu.faults(call="cuMemAlloc", nth=3, error="unknown"):
        assert allocate_all(4) == ["", OUT, "CUDA_ERROR_UNKNOWN", ""]
    with cpu.faults(call="cuMemAlloc") as outer, cpu.faults(call="cuMemAlloc") as inner:
        assert allocate_all(3) == [OUT, OUT, ""]  # one call fails by one rule
    assert (outer.count, inner.count) == (1, 1)


def test_addresses_that_programs_keep(device):
    """What was asked for before a rule was made goes through the same jump."""
    import ctypes

    status, address, _ = driver.cuGetProcAddress(b"cuMemAlloc", 12000, 0)
    allocate = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t)(int(address))
    pointer = ctypes.c_uint64()
    with cpu.faults(call="cuMemAlloc"):
        assert allocate(ctypes.byref(pointer), 64) == 2
        assert allocate(ctypes.byref(pointer), 64) == 0
    assert status == 0
    driver.cuMemFree(pointer.value)


def test_the_runtime(device):
    with cpu.faults(call="cudaMalloc", error="ECC uncorrectable"):
        assert runtime.cudaMalloc(64)[0] == runtime.cudaError_t.cudaErrorECCUncorrectable
        assert runtime.cudaGetLastError()[0] == runtime.cudaError_t.cudaErrorECCUncorrectable
    assert runtime.cudaGetLastError()[0] == 0
    with cpu.faults(call="cuMemAlloc", times=0) as faults:  # what the program calls counts
        status, pointer = runtime.cudaMalloc(64)
        assert (status, faults.applied) == (0, 0)
    runtime.cudaFree(pointer)


def test_late_operations(device, stream):
    buffer = device.allocate(16, stream=stream)
    stream.sync()
    begin = time.monotonic()
    with cpu.faults(delay=0.02, seed=3) as faults:
        for _ in range(4):
            buffer.fill(0, stream=stream)
        stream.sync()
    assert faults.count == faults.applied == 4
    waited = sum(float(happening.what.split()[0]) for happening in faults.happened)
    assert 0 < waited <= time.monotonic() - begin
    buffer.close()


def test_another_order_of_blocks(device, stream):
    kernel = Program(KERNELS, "c++").compile("cubin").get_kernel("order")
    blocks = 101
    next_place, places = (device.allocate(size, stream=stream) for size in (4, 4 * blocks))
    orders = []
    for seed in (1, 1, 2, None):
        next_place.fill(0, stream=stream)
        if seed is None:
            launch(stream, LaunchConfig(grid=blocks, block=1), kernel, next_place, places)
        else:
            with cpu.faults(shuffle=True, seed=seed) as faults:
                launch(stream, LaunchConfig(grid=blocks, block=1), kernel, next_place, places)
                stream.sync()
            assert faults.happened == [cpu.Happening(1, "order")]
        host = np.empty(blocks, np.int32)
        places.copy_to(host, stream=stream)
        stream.sync()
        assert sorted(host) == list(range(blocks))  # each block ran once
        orders.append(host)
    assert not np.array_equal(orders[0], orders[2])
    assert np.count_nonzero(orders[0] != np.arange(blocks)) > blocks // 2


def test_bits_flip(device, stream):
    size = 4096
    buffer = device.allocate(size, stream=stream)
    buffer.fill(0, stream=stream)
    stream.sync()
    host = np.empty(size, np.uint8)
    seen = 0
    with cpu.faults(flip=True, times=0, seed=11) as faults:
        for _ in range(64):
            buffer.copy_to(host, stream=stream)
            stream.sync()
    flipped = [happening.what for happening in faults.happened]
    assert faults.count == 64
    seen = int(np.unpackbits(host).sum())
    ours = sum(f" of {size} at {int(buffer.handle):#x}" in text for text in flipped)
    assert seen <= ours
    assert seen % 2 == ours % 2  # the same bit may flip twice
    buffer.close()


def test_less_memory(device, stream):
    with cpu.faults(memory="1 MiB"):
        status, _ = driver.cuMemAlloc(2 << 20)
        assert status == driver.CUresult.CUDA_ERROR_OUT_OF_MEMORY
    status, pointer = driver.cuMemAlloc(2 << 20)
    assert status == 0
    driver.cuMemFree(pointer)


FATAL = {
    "a kernel": (
        """
kernel = Program('namespace a { __global__ void square(float* x) { *x *= *x; } }', 'c++').compile(
    'cubin', name_expressions=['a::square']).get_kernel('a::square')
with cpu.faults(kernel='square', nth=2) as faults:
    launch(stream, LaunchConfig(grid=1, block=1), kernel, buffer)
    stream.sync()
    launch(stream, LaunchConfig(grid=1, block=1), kernel, buffer)
    expect('CUDA_ERROR_LAUNCH_FAILED')
"""
    ),
    "a kernel in a graph": (
        """
kernel = Program('extern "C" __global__ void one(float* x) { *x = 1; }', 'c++').compile('cubin').get_kernel('one')
builder = dev.create_graph_builder().begin_building()
launch(builder, LaunchConfig(grid=1, block=1), kernel, buffer)
graph = builder.end_building().complete()
with cpu.faults(kernel='one', error='misaligned address') as faults:
    graph.launch(stream)
    expect('CUDA_ERROR_MISALIGNED_ADDRESS')
"""
    ),
    "a fill": (
        """
with cpu.faults(copy=True, error='hardware stack error') as faults:
    buffer.fill(1, stream=stream)
    expect('CUDA_ERROR_HARDWARE_STACK_ERROR')
"""
    ),
    "a lost device": (
        """
with cpu.faults(lost=0) as faults:
    expect('CUDA_ERROR_UNKNOWN')
    assert driver.cuDevicePrimaryCtxReset(0)[0] == 0
    status, _ = driver.cuCtxCreate(None, 0, 0)
    assert status.name == 'CUDA_ERROR_UNKNOWN', status
status, context = driver.cuCtxCreate(None, 0, 0)
assert status == 0
"""
    ),
}

HEAD = """
from cupola import CUDAError, Device, LaunchConfig, Program, cpu, launch
from cupola.bindings import driver

dev = Device()
dev.set_current()
stream = dev.create_stream()
buffer = dev.allocate(16, stream=stream)
stream.sync()

def expect(name):
    try:
        stream.sync()
    except CUDAError as error:
        assert error.name == name, error
        assert 'cupola.cpu.faults' in str(error), error
    else:
        raise AssertionError('nothing failed')

"""


@pytest.mark.parametrize("name", FATAL)
def test_contexts_that_end(run_python, name):
    done = run_python(HEAD + FATAL[name] + "print(faults.count)", CUPOLA_DEVICE="cpu")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip() == ("0" if "lost" in name else "1")


WRONG = [
    ({}, TypeError, "just one of call, kernel"),
    ({"call": "cuInit", "kernel": "x"}, TypeError, "got call and kernel"),
    ({"call": ""}, TypeError, "a name or a pattern"),
    ({"call": "malloc"}, ValueError, "of the driver"),
    ({"call": "cuInit", "nth": 0}, ValueError, "nth must be at least 1"),
    ({"call": "cuInit", "nth": 1.5}, TypeError, "nth must be an integer"),
    ({"call": "cuInit", "times": -1}, ValueError, "times must be at least 0"),
    ({"call": "cuInit", "probability": 2}, ValueError, "from 0 to 1"),
    ({"call": "cuInit", "device": 0}, TypeError, "does not go with 'call'"),
    ({"call": "cuInit", "error": 3}, TypeError, "member of CUresult"),
    ({"call": "cuInit", "error": "cudaErrorUnknown"}, ValueError, "one of the driver's"),
    ({"shuffle": True, "error": "UNKNOWN"}, TypeError, "nothing fails by shuffle"),
    ({"delay": 0.0}, ValueError, "more than 0"),
    ({"delay": 1e9}, ValueError, "at most 60"),
    ({"memory": "much"}, ValueError, "256 MiB"),
    ({"memory": -1}, ValueError, "at least 0"),
]


@pytest.mark.parametrize(("rule", "error", "text"), WRONG)
def test_rules_that_make_no_sense(rule, error, text):
    with pytest.raises(error, match=text):
        cpu.faults(**rule)


def test_what_only_the_driver_knows(device):
    with pytest.raises(ValueError, match="there is no error 'CUDA_ERROR_SILLY'"), cpu.faults(call="*", error="silly"):
        pass
    with pytest.raises(ValueError, match="there is no device 63"), cpu.faults(lost=63):
        pass
    with cpu.faults(call="cuInit") as faults, pytest.raises(RuntimeError, match="holds already"), faults:
        pass


PROGRAM = """
from cupola.bindings import driver
driver.cuInit(0)
driver.cuCtxSetCurrent(driver.cuDevicePrimaryCtxRetain(0)[1])
print([driver.cuMemAlloc(16)[0].name for _ in range(3)])
"""


def run_program(tmp_path: Path, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    import os

    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    return subprocess.run(
        [sys.executable, "-m", "cupola", "run", *options, str(script)],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )


def test_the_command(tmp_path):
    done = run_program(tmp_path, "--inject", "call=cuMemAlloc,nth=2", "--inject", "delay=0.001")
    assert done.stdout == "['CUDA_SUCCESS', 'CUDA_ERROR_OUT_OF_MEMORY', 'CUDA_SUCCESS']\n", done.stderr
    assert "injected call=cuMemAlloc: 1 of 3, first number 2: cuMemAlloc" in done.stderr
    done = run_program(tmp_path, CUPOLA_DEVICE="cpu", CUPOLA_INJECT="call=cuMemAlloc, nth=3")
    assert done.stdout == "['CUDA_SUCCESS', 'CUDA_SUCCESS', 'CUDA_ERROR_OUT_OF_MEMORY']\n", done.stderr


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--inject", "call"], "'call' needs a value"),
        (["--inject", "copy=1"], "'copy' takes no value"),
        (["--inject", "cal=x"], "there is no 'cal'"),
        (["--inject", "call=cuInit,nth=x"], "'x' is no value for 'nth'"),
        (["--inject", "call=cuInit,call=x"], "given twice"),
        (["--inject", "nth=2"], "just one of"),
        (["--device", "gpu", "--inject", "copy"], "CPU device only"),
    ],
)
def test_commands_that_make_no_sense(tmp_path, options, text):
    done = run_program(tmp_path, *options)
    assert done.returncode == 2
    assert text in done.stderr
