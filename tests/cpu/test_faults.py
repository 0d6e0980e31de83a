"""Injected faults: which calls, kernels and copies fail, what is told of it, and that all is as before afterwards."""

from __future__ import annotations

import ctypes
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from cupola import CUDAError, LaunchConfig, Program, cpu, launch
from cupola.bindings import driver, runtime
from tests import limits, processes

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


ORDER_OF_WARPS = """
extern "C" __global__ void turns(int* places) {
    __shared__ int next;
    if (threadIdx.x == 0) next = 0;
    __syncthreads();
    if (threadIdx.x % 32 == 0) places[threadIdx.x / 32] = atomicAdd(&next, 1);
    __syncthreads();
}
"""


def test_another_order_of_warps(device, stream):
    kernel = Program(ORDER_OF_WARPS, "c++").compile("cubin").get_kernel("turns")
    warps = 12
    places = device.allocate(4 * warps, stream=stream)
    orders = []
    for seed in (1, 1, 2):
        with cpu.faults(shuffle=True, seed=seed):
            launch(stream, LaunchConfig(grid=1, block=32 * warps), kernel, places)
            host = np.empty(warps, np.int32)
            places.copy_to(host, stream=stream)
            stream.sync()
        assert sorted(host) == list(range(warps))
        orders.append(host.tolist())
    assert orders[0] == orders[1] != orders[2]


STREAMS = """
extern "C" __global__ void twice(float* x) { *x *= 2; }
extern "C" __global__ void add(float* x) { *x += 1; }
extern "C" __global__ void wait(volatile int* flag) { while (!*flag); }
"""


@pytest.fixture(scope="module")
def kernels():
    code = Program(STREAMS, "c++").compile("cubin")
    return {name: code.get_kernel(name) for name in ("twice", "add", "wait")}


def compute_in_streams(device, kernels, seed: int) -> tuple[float, list[str]]:
    """Two streams that nothing orders, and one that waits for the first: the result, and what was done one by one."""
    one, two, three = (device.create_stream() for _ in range(3))
    x = device.allocate(4, stream=one)
    result = np.zeros(1, np.float32)
    x.copy_from(result, stream=one)
    one.sync()
    config = LaunchConfig(grid=1, block=1)
    with cpu.faults(reorder=True, seed=seed) as faults:
        for _ in range(3):
            launch(one, config, kernels["twice"], x)
            launch(two, config, kernels["add"], x)
            three.wait(one)
            launch(three, config, kernels["add"], x)
        for stream in (one, two, three):
            stream.sync()
    x.copy_to(result, stream=one)
    one.sync()
    return float(result[0]), [happening.what.partition(" in stream")[0] for happening in faults.happened]


def test_streams_in_an_order_that_a_seed_gives(device, kernels):
    met = {}
    for seed in range(8):
        met[seed] = compute_in_streams(device, kernels, seed)
        assert compute_in_streams(device, kernels, seed) == met[seed]
        result, done = met[seed]
        assert done.count("twice") == 3
        assert done.count("add") == 6
        assert 6 <= result <= 48
    assert len({result for result, _ in met.values()}) > 2


def test_streams_keep_the_order_that_events_make(device, kernels):
    one, two = device.create_stream(), device.create_stream()
    x = device.allocate(4, stream=one)
    config = LaunchConfig(grid=1, block=1)
    for seed in range(10):
        result = np.full(1, 5, np.float32)
        with cpu.faults(reorder=True, seed=seed):
            x.copy_from(result, stream=one)
            launch(one, config, kernels["add"], x)
            two.wait(one)
            launch(two, config, kernels["twice"], x)
            one.wait(two)
            launch(one, config, kernels["add"], x)
            x.copy_to(result, stream=one)
            one.sync()
        assert result[0] == 13


def test_a_graph_and_a_callback_in_turn(device, kernels, stream):
    x = device.allocate(4, stream=stream)
    x.fill(0, stream=stream)
    builder = device.create_graph_builder().begin_building()
    launch(builder, LaunchConfig(grid=1, block=1), kernels["add"], x)
    graph = builder.end_building().complete()
    called = []
    call = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(called.append)
    result = np.zeros(1, np.float32)
    other = device.create_stream()
    with cpu.faults(reorder=True, seed=4) as faults:
        for _ in range(3):
            graph.launch(stream)
        other.wait(stream)
        driver.cuLaunchHostFunc(int(other.handle), ctypes.cast(call, ctypes.c_void_p).value, 0)
        x.copy_to(result, stream=other)
        assert result[0] == 3
    other.sync()
    assert called == [None]
    assert sum("graph" in happening.what for happening in faults.happened) == 3


def test_whoever_asks_again_and_again_gets_on(device, kernels):
    one, two = device.create_stream(), device.create_stream()
    x = device.allocate(4, stream=one)
    one.sync()
    with cpu.faults(reorder=True, seed=2):
        for stream in (one, two):
            launch(stream, LaunchConfig(grid=1, block=1), kernels["add"], x)
        event = two.record()
        while not event.is_done:
            pass


def test_a_kernel_that_needs_another_stream(device, kernels):
    """It runs beside the others after a while, whichever of them comes first; so does a wait for a value."""
    one, two, three = (device.create_stream() for _ in range(3))
    flags = device.allocate(8, stream=one)
    flags.fill(0, stream=one)
    one.sync()
    with cpu.faults(reorder=True, seed=1):
        launch(one, LaunchConfig(grid=1, block=1), kernels["wait"], int(flags.handle))
        driver.cuStreamWaitValue32(int(three.handle), int(flags.handle) + 4, 1, 0)
        driver.cuStreamWriteValue32(int(two.handle), int(flags.handle), 1, 0)
        driver.cuStreamWriteValue32(int(two.handle), int(flags.handle) + 4, 1, 0)
        for stream in (one, two, three):
            stream.sync()


def test_a_program_that_makes_no_call(device, kernels, stream):
    """Work is done although nobody waits for it by a call."""
    status, address = driver.cuMemHostAlloc(4, 0)
    pinned = np.frombuffer((ctypes.c_char * 4).from_address(int(address)), np.float32)
    pinned[:] = 1
    with cpu.faults(reorder=True, seed=3):
        for _ in range(3):  # the first is waited for, the others follow at once
            launch(stream, LaunchConfig(grid=1, block=1), kernels["twice"], int(address))
        limits.until(lambda: pinned[0] == 8)
    stream.sync()
    driver.cuMemFreeHost(address)


def test_what_is_left_goes_on_afterwards(device, kernels):
    streams = [device.create_stream() for _ in range(4)]
    x = device.allocate(4, stream=streams[0])
    x.fill(0, stream=streams[0])
    streams[0].sync()
    with cpu.faults(reorder=True, seed=5):
        for stream in streams[1:]:
            stream.wait(streams[0])
        for stream in streams:
            launch(stream, LaunchConfig(grid=1, block=1), kernels["add"], x)
    device.sync()
    result = np.zeros(1, np.float32)
    x.copy_to(result, stream=streams[0])
    assert 1 <= result[0] <= 4


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


def test_less_memory(run_python):
    program = """
from cupola import CUDAError, Device, cpu
from cupola.bindings import driver
device = Device()
device.set_current()
with cpu.faults(memory="1 MiB"):
    assert driver.cuMemAlloc(2 << 20)[0] == driver.CUresult.CUDA_ERROR_OUT_OF_MEMORY
    try:
        device.allocate(1 << 16, stream=device.create_stream())
    except CUDAError as error:
        print(error)
assert driver.cuMemAlloc(2 << 20)[0] == 0
"""
    done = run_python(program, CUPOLA_DEVICE="cpu")
    assert done.stdout.rstrip("\n").endswith(
        "64.0 KiB do not fit: the modeled device 0 has 1.0 MiB of memory (limited by cupola.cpu.faults), of which "
        "0 bytes are in use. Memory pools reserve 2.0 MiB at a time. To free memory would not help."
    ), done.stdout + done.stderr


def test_pools_say_what_they_have_reserved(run_python):
    program = """
from cupola import CUDAError, Device
device = Device()
device.set_current()
stream = device.create_stream()
kept = [device.allocate(1000, stream=stream), device.allocate(3 << 20, stream=stream)]
try:
    device.allocate(8 << 20, stream=stream)
except CUDAError as error:
    print(error)
"""
    done = run_python(program, CUPOLA_DEVICE="cpu", CUPOLA_INJECT="memory=8MiB")
    assert done.stdout.splitlines()[1:] == [
        "8.0 MiB do not fit: the modeled device 0 has 8.0 MiB of memory (limited by cupola.cpu.faults), of which 6.0 "
        "MiB are in use. Of these, memory pools have reserved 6.0 MiB for allocations of 3.0 MiB. Free memory, or trim "
        "the memory pools."
    ], done.stdout + done.stderr


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


LOST = """
import os
os.environ['CUPOLA_CPU_DEVICES'] = '2'
from cupola import CUDAError, Device, LaunchConfig, Program, cpu, launch, system
from cupola.bindings import driver

def begin(ordinal):
    dev = Device(ordinal)
    dev.set_current()
    return dev.create_stream(), driver.cuCtxGetCurrent()[1], int(driver.cuMemAlloc(64)[1])

stream_1, context_1, y = begin(1)
stream_0, context_0, x = begin(0)
source = 'extern "C" __global__ void read(int* x, int* y) { *x = *y; }'
kernel = Program(source, 'c++').compile('cubin').get_kernel('read')
monitored = system.Device(index=1)
events = monitored.register_events('xid_critical_error')

def read_peer():
    launch(stream_0, LaunchConfig(grid=1, block=1), kernel, x, y)
    stream_0.sync()

def status(call, *arguments):
    return getattr(driver, call)(*arguments)[0].name

assert driver.cuCtxEnablePeerAccess(context_1, 0)[0] == 0
read_peer()
with cpu.faults(lost=1):
    for ask in (lambda: monitored.name, lambda: system.Device(index=1), lambda: monitored.uuid):
        try:
            ask()
        except system.GpuIsLostError:
            pass
        else:
            raise AssertionError
    assert system.get_num_devices() == 2
    assert system.Device(index=0).name
    event = events.wait(timeout_ms=60_000)
    assert (event.event_type, event.event_data) == ('xid_critical_error', 79)
    try:
        events.wait(timeout_ms=60_000)
    except system.GpuIsLostError:
        pass
    else:
        raise AssertionError
    assert driver.cuDeviceCanAccessPeer(0, 1)[1] == 0
    supported = driver.CUdevice_P2PAttribute.CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED
    assert driver.cuDeviceGetP2PAttribute(supported, 0, 1)[1] == 0
    lost = 'CUDA_ERROR_UNKNOWN'
    assert status('cuCtxEnablePeerAccess', context_1, 0) == lost
    assert status('cuMemcpyPeer', x, context_0, y, context_1, 64) == lost
    assert status('cuMemcpyDtoD', x, y, 64) == lost
    assert status('cuMemcpyDtoD', y, x, 64) == lost
    assert status('cuMemsetD8', y, 0, 64) == lost
    assert status('cuStreamSynchronize', int(stream_1.handle)) == lost
    assert status('cuMemsetD8', x, 0, 64) == 'CUDA_SUCCESS'
    try:
        read_peer()
    except CUDAError as error:
        assert error.name == 'CUDA_ERROR_ILLEGAL_ADDRESS', error
        assert 'it is memory of device 1, which is lost' in str(error), error
    else:
        raise AssertionError
assert monitored.name
print('all')
"""


def test_a_lost_device_its_peers_and_nvml(run_python):
    done = run_python(LOST, CUPOLA_DEVICE="cpu")
    assert done.stdout == "all\n", done.stdout + done.stderr


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
    ({"call": "cuMemAloc*"}, ValueError, "'cuMemAloc.*': do you mean cuMemAlloc"),
    ({"call": "cuMemAlloc_v2"}, ValueError, "do you mean cuMemAlloc"),
    ({"call": "cublasSgemm"}, ValueError, "a name of CUDA's headers without _v2"),
    ({"call": "cuGetErrorName"}, ValueError, "no function of the driver or the runtime that can fail"),
    ({"copy": True, "error": "illegal addresses"}, ValueError, "_ADDRESSES': do you mean ILLEGAL_ADDRESS"),
    (
        {"copy": True, "error": "silly"},
        ValueError,
        "there is no error 'CUDA_ERROR_SILLY': there are INVALID_VALUE, OUT",
    ),
    ({"copy": True, "error": "success"}, ValueError, "there is no error 'CUDA_ERROR_SUCCESS'"),
    ({"lost": 16}, ValueError, "lost must be at most 15"),
    ({"flip": True, "device": 16}, ValueError, "device must be at most 15"),
    ({"flip": True, "seed": 2**64}, ValueError, "seed must be at most 9223372036854775807"),
]


@pytest.mark.parametrize(("rule", "error", "text"), WRONG)
def test_rules_that_make_no_sense(rule, error, text):
    with pytest.raises(error, match=text):
        cpu.faults(**rule)


def test_what_only_the_driver_knows(device):
    with pytest.raises(ValueError, match="there is no device 15"), cpu.faults(lost=15):
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
    return processes.run(
        [sys.executable, "-m", "cupola", "run", *options, str(script)],
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
        (["--inject", "reorder,device=0"], "does not go with 'reorder'"),
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
