"""Kernels launched by kernels: order, streams, events, memory, errors, and what the device runtime's functions return.

The numbers are those of an H200 (driver 580.159, CUDA 13.0); the same tests run there.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cupola import CUDAError, LaunchConfig, ObjectCode, PinnedMemoryResource, cpu, launch
from cupola.bindings import driver
from cupola.graph import GraphDefinition
from tests.conftest import on_cpu_device
from tests.cpu.driver.device_side.programs import Log, linked, pairs

SOURCE = (Path(__file__).parent / "parallelism.cu").read_text()


@pytest.fixture
def code(device):
    return linked(SOURCE)


@pytest.fixture
def log(device, stream):
    return Log(stream)


@pytest.fixture
def run(code, log):
    """Run one thread of a kernel: what it said."""
    return lambda name, *arguments, **options: log.run(code.get_kernel(name), *arguments, **options)


def numbers(device, stream, count: int, type=np.int32, value: int = 0):
    """Device memory with numbers."""
    made = device.allocate(count * np.dtype(type).itemsize, stream=stream)
    made.copy_from(np.full(count, value, type), stream=stream)
    return made


def read(buffer, stream, type=np.int32) -> np.ndarray:
    found = np.zeros(buffer.size // np.dtype(type).itemsize, type)
    buffer.copy_to(found, stream=stream)
    stream.sync()
    return found


# ---- order -----------------------------------------------------------------------------------------------------------


def test_one_after_another_in_a_stream(run):
    assert run("in_a_stream") == [1, 2, 3]


def test_tails_come_when_all_else_is_over(run):
    said = run("tails")
    assert sorted(said[:3]) == [8, 9, 10] and said[3:] == [11, 32, 31, 33, 12]


def test_a_grid_is_over_when_those_it_launched_are(run):
    assert run("nested") == [32, 31, 33, 40]


def test_children_run_at_once(run, device, stream):
    assert run("at_once", numbers(device, stream, 1)) == [1]


def test_each_block_has_a_default_stream(run):
    said = run("by_blocks", config=LaunchConfig(grid=4, block=1))
    assert sorted(said) == [*range(100, 104), *range(200, 204)]
    assert all(said.index(100 + block) < said.index(200 + block) for block in range(4))


def test_each_thread_launches(code, log, device, stream):
    sums = numbers(device, stream, 100)
    launch(stream, LaunchConfig(grid=1, block=100), code.get_kernel("by_threads"), sums)
    assert read(sums, stream).tolist() == [64 * i * (i % 3 == 0) for i in range(100)]


@pytest.mark.parametrize("kernel", ["deep", "deep_tails"])
def test_depth(run, kernel):
    assert run(kernel, np.int32(0), np.int32(200)) == [200]


def test_depth_is_bounded(run):
    assert run("deep", np.int32(0), np.int32(100_000)) == [2048, 69]  # cudaErrorLaunchPendingCountExceeded
    assert run("deep_tails", np.int32(0), np.int32(10_000)) == [10_000]


@pytest.mark.parametrize(("stream_number", "expected"), [(0, (5000, 0)), (4, (5000, 0)), (3, (2048, 69))])
def test_pending_launches(run, device, stream, stream_number, expected):
    number = numbers(device, stream, 1)
    said = run("many", number, np.int32(5000), np.uint64(stream_number))
    assert tuple(said) == expected and read(number, stream)[0] == expected[0]


def test_as_nodes_of_a_graph(code, log, stream):
    definition = GraphDefinition()
    one = LaunchConfig(grid=1, block=1)
    first = definition.launch(one, code.get_kernel("tails"), log.buffer)
    second = first.launch(one, code.get_kernel("in_a_stream"), log.buffer)
    # An H200 does not wait for what the last node of a graph has launched.
    second.launch(one, code.get_kernel("child"), log.buffer, np.int32(50), np.int32(0))
    graph = definition.instantiate()
    for _ in range(2):
        graph.launch(stream)
        said = log.read()
        assert sorted(said[:3]) == [8, 9, 10] and said[3:] == [11, 32, 31, 33, 12, 1, 2, 3, 50]
    graph.close()


# ---- streams and events ----------------------------------------------------------------------------------------------

# the call by its number: what it returns, unless that is 0
STREAMS = {3: 1, 5: 1, 7: 1, 10: 1, 14: 1, 15: 1, 17: 1, 18: 1, 21: 1, 22: 1, 23: 1, 26: 1, 27: 1, 28: 1}


def test_streams_and_events(run):
    assert pairs(run("streams")) == {number: STREAMS.get(number, 0) for number in range(1, 29)}


def test_streams_wait_for_events(run):
    assert run("waits") == [1, 2, 3]


def test_a_stream_belongs_to_the_grid(run, device, stream):
    assert run("shared_stream", numbers(device, stream, 1, np.uint64), config=LaunchConfig(grid=2, block=1)) == [1, 2]


@pytest.mark.cpu_only
def test_what_the_device_runtime_writes_is_written(run):
    """Handles of streams and events in local memory: the check of unset memory knows of them."""
    with cpu.checks(init=True) as checks:
        assert run("waits") == [1, 2, 3]
    assert checks.findings == []


@pytest.mark.parametrize("wrong", [5, 8, 0x1234, 0x0200000000000000])
def test_streams_that_are_none(run, wrong):
    assert run("wrong_stream", np.uint64(wrong)) == [1]


# ---- errors ----------------------------------------------------------------------------------------------------------

# grid, block and dynamic shared memory: the error
SHAPES = {
    (1, 1, 1, 1, 1, 1, 0): 0,
    (0, 1, 1, 1, 1, 1, 0): 9,
    (1, 65536, 1, 1, 1, 1, 0): 9,
    (-1, 1, 1, 1, 1, 1, 0): 9,
    (1, 1, 1, 0, 1, 1, 0): 9,
    (1, 1, 1, 1025, 1, 1, 0): 9,
    (1, 1, 1, 1, 1, 65, 0): 9,
    (1, 1, 1, 32, 32, 2, 0): 9,
    (1, 1, 1, 1, 1, 1, 49152): 0,
    (1, 1, 1, 1, 1, 1, 49153): 9,
    (1, 1, 1, 1, 1, 1, -1): 9,
}


@pytest.mark.parametrize("shape", SHAPES)
def test_shapes(run, shape):
    error = SHAPES[shape]
    assert pairs(run("shape", *map(np.int32, shape))) == {1: error, 2: error, 3: 0}


def test_each_thread_has_a_last_error(run, device, stream):
    errors = numbers(device, stream, 64)
    run("errors_of_threads", errors, config=LaunchConfig(grid=1, block=64))
    assert read(errors, stream).tolist() == [9 * (i % 32 == 1) for i in range(64)]


def test_what_kernels_ask_for(run):
    said = run("kernels", np.int32(2))
    assert said[:3] == [1, 9, 2] or said[:2] == [1, 9]
    assert sorted(said[2:]) == [0, 2, 500, 501]
    assert pairs(run("kernels", np.int32(3))) == {1: 9, 2: 912}  # cudaErrorInvalidClusterSize


def test_buffers_of_parameters(run):
    assert pairs(run("buffers")) == {1: 0, 2: 0, 3: 9, 4: 1}


def test_texts_of_errors(code, device, stream):
    statuses = np.array([0, 1, 9, 65, 69, 700, 12345], np.int32)
    given = device.allocate(statuses.nbytes, stream=stream)
    given.copy_from(statuses, stream=stream)
    target = numbers(device, stream, 2000, np.uint8)
    one = LaunchConfig(grid=1, block=1)
    launch(stream, one, code.get_kernel("texts"), given, np.int32(len(statuses)), target)
    assert bytes(read(target, stream, np.uint8)).rstrip(b"\0").decode().splitlines() == [
        "cudaSuccess:no error",
        "cudaErrorInvalidValue:invalid argument",
        "cudaErrorInvalidConfiguration:invalid configuration argument",
        "cudaErrorLaunchMaxDepthExceeded:launch would exceed maximum depth of nested launches",
        "cudaErrorLaunchPendingCountExceeded:launch failed because launch would exceed "
        "cudaLimitDevRuntimePendingLaunchCount",
        "cudaErrorIllegalAddress:an illegal memory access was encountered",
        "unrecognized error code:unrecognized error code",
    ]


# ---- memory ----------------------------------------------------------------------------------------------------------

# the call by its number: what it returns, unless that is 0
MEMORY = {4: 1, 5: 2, 6: 1, 7: 2, 22: 21, 23: 21, 24: 21, 26: 21, 31: 12, 32: 1, 37: 1}


def test_memory(run, device, stream):
    pinned = PinnedMemoryResource().allocate(64, stream=stream)
    host = np.from_dlpack(pinned).view(np.int32)
    stream.sync()
    host[:] = range(100, 116)
    dev = numbers(device, stream, 160, value=-1)
    dev.copy_from(np.array([1, 2, 3, 4] + [-1] * 156, np.int32), stream=stream)
    said = pairs(run("memory", pinned, dev))
    assert said == {number: MEMORY.get(number, 0) for number in said} and len(said) == 27
    expected = np.full(160, -1, np.int32)
    for start in (0, 4, 8, 100, 104):
        expected[start : start + 4] = [1, 2, 3, 4]
    expected[16:20] = [100, 101, 102, 103]
    expected[28:32] = expected[48:56:2] = 0
    expected[32:40:2] = [1, 3, 1, 3]
    for row in range(4):
        expected[80 + 4 * row : 82 + 4 * row] = 0
        expected[112 + 4 * row : 114 + 4 * row] = expected[4 * row : 4 * row + 2]
    assert read(dev, stream).tolist() == expected.tolist()
    assert host.tolist() == list(range(100, 116))


@pytest.mark.cpu_only
@pytest.mark.parametrize("value", [0, 7, 0x1234])
def test_fills(code, device, stream, value):
    """As CUDA has it. What an H200's device runtime fills with is always 0."""
    target = numbers(device, stream, 16, np.uint8, 99)
    launch(stream, LaunchConfig(grid=1, block=1), code.get_kernel("fill"), target, np.int32(value))
    assert set(read(target, stream, np.uint8)) == {value & 255}


# ---- facts -----------------------------------------------------------------------------------------------------------

FACTS = {1: 101, 2: 0, 3: 0, 4: 0, 5: 1, 6: 0, 7: 6000, 8: 0, 9: 0, 10: 0, 11: 1, 12: 0, 13: 1}
OCCUPANCY = {14: 0, 15: 16, 16: 0, 17: 2, 18: 1, 19: 0, 20: 0, 21: 0, 22: 0}
NOT_FOR_KERNELS = {131}  # attributes that only the host gets


def test_facts(run, device, stream, code):
    attributes, function = numbers(device, stream, 300), numbers(device, stream, 36, value=-1)
    limits = numbers(device, stream, 14, np.int64)
    assert pairs(run("facts", attributes, function, limits)) == FACTS | OCCUPANCY
    found = read(attributes, stream).reshape(-1, 2)
    for number in set(range(1, 147)) - NOT_FOR_KERNELS:
        status, value = driver.cuDeviceGetAttribute(driver.CUdevice_attribute(number), 0)
        if int(status) == 0:
            assert found[number].tolist() == [0, value], number
    own = read(limits, stream, np.int64).reshape(-1, 2)
    assert own[:, 0].tolist() == [0, 0, 0, 215, 0, 0, 0]  # cudaErrorUnsupportedLimit
    for number in set(range(7)) - {3}:
        assert own[number, 1] == driver.cuCtxGetLimit(driver.CUlimit(number))[1]
    kernel = code.get_kernel("child").attributes
    assert read(function, stream)[6:8].tolist() == [kernel.max_threads_per_block, kernel.num_regs]
    assert set(read(function, stream)[10:]) == {-1}  # only what the structure had at first


# ---- faults ----------------------------------------------------------------------------------------------------------

FAULT = """
from pathlib import Path
from cupola import CUDAError, Device, ObjectCode
from tests.cpu.driver.device_side.programs import Log
device = Device()
device.set_current()
log = Log(device.create_stream())
try:
    log.run(ObjectCode.from_cubin(Path({file!r}).read_bytes()).get_kernel({kernel!r}))
except CUDAError as error:
    print(error)
"""


@pytest.fixture
def run_fault(run_python, code, tmp_path):
    """Run one thread of a kernel in a process of its own, which prints what went wrong."""
    file = tmp_path / "parallelism.cubin"
    file.write_bytes(code.code)
    return lambda kernel, **more: run_python(FAULT.format(file=str(file), kernel=kernel), **more)


# kernel: what the CPU device says
FAULTS = {
    "fault_of_child": "kernel 'wild': out-of-bounds write of 4 bytes in global memory at address 0x10",
    "waits_for_a_fault": "kernel 'wild': out-of-bounds write",
    "no_buffer": "kernel 'no_buffer': a wrong launch by the kernel",
    "child_launches_a_graph": "cudaGraphLaunch in a kernel that another kernel has launched",
    "no_kernel": "0x0 is launched, which is no kernel of this module",
}


@pytest.mark.parametrize("kernel", FAULTS)
def test_faults(run_fault, kernel):
    said = run_fault(kernel).stdout
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in said
    assert not on_cpu_device() or FAULTS[kernel] in said


@pytest.mark.cpu_only
def test_a_buffer_is_launched_once(run_fault):
    """An H200 runs on forever."""
    assert "which was launched already" in run_fault("twice").stdout


@pytest.mark.cpu_only
@pytest.mark.parametrize("kernel", ["tails_forever", "more_and_more"])
def test_launches_without_end_are_stopped(run_fault, kernel):
    said = run_fault(kernel, CUPOLA_CPU_TIMEOUT="1").stdout
    assert "CUDA_ERROR_LAUNCH_TIMEOUT" in said and "CUPOLA_CPU_TIMEOUT" in said


@pytest.mark.cpu_only
def test_memory_that_is_freed_during_a_fill(run_fault):
    """It ended the process. On a GPU the fill may go anywhere."""
    done = run_fault("free_during_fill")
    assert done.returncode == 0, done.stderr
    assert not done.stdout or "of a fill, 4194304 bytes at" in done.stdout


OLD = """
.version 8.0
.target sm_80
.address_size 64
.extern .func (.param .b32 status) cudaDeviceSynchronize();
.visible .entry waits() {
    .reg .b32 %r;
    .param .b32 status;
    call.uni (status), cudaDeviceSynchronize, ();
    ret;
}
"""


@pytest.mark.cpu_only
def test_what_the_device_runtime_no_longer_has(device):
    with pytest.raises(
        CUDAError, match="in kernel 'waits' at PTX line 9: there is no function 'cudaDeviceSynchronize'"
    ):
        ObjectCode.from_ptx(OLD.encode()).get_kernel("waits")
