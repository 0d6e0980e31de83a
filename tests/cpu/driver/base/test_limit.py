"""Limits of contexts: what they become, and when they can be set. The tables are what an H200 with driver 580 does."""

from __future__ import annotations

import ctypes
import sys

import pytest

from cupola.bindings import driver
from tests import processes
from tests.cpu.driver.calls import compiled, explanation, ok, status

LIMIT = driver.CUlimit
STACK, FIFO, HEAP = LIMIT.CU_LIMIT_STACK_SIZE, LIMIT.CU_LIMIT_PRINTF_FIFO_SIZE, LIMIT.CU_LIMIT_MALLOC_HEAP_SIZE
BAD = "CUDA_ERROR_INVALID_VALUE"
SOURCE = r"""
extern "C" __global__ void plain() {}
extern "C" __global__ void prints(int n) { if (n) printf("%d\n", n); }
__device__ __noinline__ void say(int n) { printf("%d\n", n); }
extern "C" __global__ void prints_elsewhere(int n) { if (n) say(n); }
extern "C" __global__ void uses_heap(int n) { if (n) free(malloc(n)); }
extern "C" __global__ void frees(int n) { if (n) free((void*)0); }
"""
FRAME = b"""
.version 8.0
.target sm_75
.address_size 64
.visible .global .u32 last;
.visible .entry k(.param .u32 n) {
    .local .align 16 .b8 l[65528];
    .reg .b64 t, b;
    .reg .b32 i;
    ld.param.u32 i, [n];
    mov.u64 b, l;
    cvt.u64.u32 t, i;
    add.u64 t, t, b;
    st.local.u32 [t], i;
    ld.local.u32 i, [b];
    st.global.u32 [last], i;
    ret;
}
\0"""


@pytest.fixture
def own(context):
    """A context of its own, current."""
    made = ok(driver.cuCtxCreate(None, 0, 0))
    yield made
    ok(driver.cuCtxSynchronize())
    ok(driver.cuCtxDestroy(made))


def become(limit, value: int) -> int | str:
    """What the limit is after it was set to a value, or why it was not set."""
    result = status(driver.cuCtxSetLimit(limit, value))
    return int(ok(driver.cuCtxGetLimit(limit))) if result == "CUDA_SUCCESS" else result


PENDING, L2 = LIMIT.CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT, LIMIT.CU_LIMIT_PERSISTING_L2_CACHE_SIZE
VALUES = [
    (
        STACK,
        {1: 16, 1000: 1008, 1025: 1040, 0: 0, 16: 16, 17: 32, 4096: 4096, 523713: BAD, 1 << 40: BAD},
    ),
    (
        FIFO,
        {1: 524288, 5000: 524288, 524288: 524288, 524289: 524544, 600001: 600064, 1 << 20: 1 << 20, 1 << 40: 1 << 31},
    ),
    (HEAP, {1: 4 << 20, 5000: 4 << 20, (4 << 20) + 1: 4259840, 8 << 20: 8 << 20}),
    (PENDING, {0: 32, 1: 32, 25: 32, 64: 64, 4096: 4096, 1 << 26: 599186}),
    (L2, {0: 0, 1: 3932160, 4096: 3932160, 1 << 26: BAD}),
    (LIMIT.CU_LIMIT_MAX_L2_FETCH_GRANULARITY, {64: 64, 128: 128, 129: BAD}),
]


@pytest.mark.parametrize(("limit", "values"), VALUES)
def test_values(own, limit, values):
    assert {value: become(limit, value) for value in values} == values


def test_defaults_of_an_h200(own):
    if b"H200" not in ok(driver.cuDeviceGetName(96, 0)):
        pytest.skip("the defaults of other devices are other ones")
    assert [int(ok(driver.cuCtxGetLimit(limit))) for limit in (STACK, FIFO, HEAP)] == [1024, 8650752, 8388608]


def test_limits_that_can_only_be_asked_for(own):
    for limit, value in ((LIMIT.CU_LIMIT_SHMEM_SIZE, 232448), (LIMIT.CU_LIMIT_CIG_ENABLED, 0)):
        assert int(ok(driver.cuCtxGetLimit(limit))) == value
        assert status(driver.cuCtxSetLimit(limit, value)) == "CUDA_ERROR_NOT_PERMITTED"
    depth = LIMIT.CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH  # of older devices
    assert (
        status(driver.cuCtxGetLimit(depth)) == status(driver.cuCtxSetLimit(depth, 2)) == "CUDA_ERROR_UNSUPPORTED_LIMIT"
    )


@pytest.mark.cpu_only  # an H200 takes 141 GB of its memory for that, and so needs all of it
def test_the_largest_stack(own):
    assert become(STACK, 523712) == 523712


@pytest.mark.cpu_only
def test_a_stack_that_is_refused_is_explained(own):
    assert "at most 523712 bytes" in explanation(driver.cuCtxSetLimit(STACK, 523713))
    assert int(ok(driver.cuCtxGetLimit(STACK))) == 1024


def launch(module, name: str, n: int = 0) -> None:
    function = ok(driver.cuModuleGetFunction(module, name.encode()))
    ok(driver.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, 0, ((n,), (ctypes.c_int,)) if name != "plain" else 0, 0))
    ok(driver.cuCtxSynchronize())


# A kernel, and which limits cannot be set when it was launched; it does nothing then.
CLOSES = [
    ("plain", ()),
    ("prints", (FIFO,)),
    ("prints_elsewhere", (FIFO,)),
    ("uses_heap", (HEAP,)),
    ("frees", (HEAP,)),
]


@pytest.mark.parametrize(("name", "closed"), CLOSES)
def test_limits_that_a_kernel_uses_are_set_before(own, name, closed):
    module = ok(driver.cuModuleLoadData(compiled(SOURCE)))
    assert become(FIFO, 600064) == 600064 and become(HEAP, 16 << 20) == 16 << 20
    launch(module, name)
    for limit, before in ((FIFO, 600064), (HEAP, 16 << 20)):
        assert become(limit, 32 << 20) == (BAD if limit in closed else 32 << 20)
        assert int(ok(driver.cuCtxGetLimit(limit))) == (before if limit in closed else 32 << 20)
    ok(driver.cuModuleUnload(module))


def test_other_contexts_keep_their_limits(own):
    module = ok(driver.cuModuleLoadData(compiled(SOURCE)))
    launch(module, "prints")
    other = ok(driver.cuCtxCreate(None, 0, 0))
    assert become(FIFO, 600000) == 600064
    ok(driver.cuCtxDestroy(other))
    ok(driver.cuModuleUnload(module))


def test_a_launch_with_a_larger_frame_raises_the_limit_of_stacks(own):
    module = ok(driver.cuModuleLoadData(FRAME))
    assert int(ok(driver.cuCtxGetLimit(STACK))) == 1024
    launch(module, "k")
    assert int(ok(driver.cuCtxGetLimit(STACK))) >= 65528
    assert become(STACK, 2048) == 2048
    launch(module, "k")
    assert int(ok(driver.cuCtxGetLimit(STACK))) >= 65528
    ok(driver.cuModuleUnload(module))


def test_a_graph_raises_it_when_it_is_instantiated(own):
    module = ok(driver.cuModuleLoadData(FRAME))
    function, stream = ok(driver.cuModuleGetFunction(module, b"k")), ok(driver.cuStreamCreate(1))
    ok(driver.cuStreamBeginCapture(stream, driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED))
    ok(driver.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, ((0,), (ctypes.c_int,)), 0))
    graph = ok(driver.cuStreamEndCapture(stream))
    assert int(ok(driver.cuCtxGetLimit(STACK))) == 1024
    executable = ok(driver.cuGraphInstantiate(graph, 0))
    assert int(ok(driver.cuCtxGetLimit(STACK))) >= 65528
    ok(driver.cuGraphLaunch(executable, stream))
    ok(driver.cuCtxSynchronize())
    ok(driver.cuGraphExecDestroy(executable))
    ok(driver.cuGraphDestroy(graph))
    ok(driver.cuModuleUnload(module))


PRINTS = """
from cupola import Device, LaunchConfig, Program, launch
from cupola.bindings import driver

device = Device()
device.set_current()
assert int(driver.cuCtxSetLimit(driver.CUlimit.CU_LIMIT_PRINTF_FIFO_SIZE, 1)[0]) == 0
source = 'extern "C" __global__ void number(int n) { for (int i = 0; i < n; i++) printf("%d\\\\n", i); }'
kernel = Program(source, "c++").compile("cubin").get_kernel("number")
stream = device.create_stream()
for n in (2048, 2048, 5000):
    launch(stream, LaunchConfig(grid=1, block=1), kernel, n)
    stream.sync()
"""


@pytest.mark.cpu_only
def test_what_finds_no_room_is_lost(tmp_path):
    """Two launches that fit print all; of the third a GPU may lose a part, and here it is lost, which is said."""
    (tmp_path / "program.py").write_text(PRINTS)
    command = [sys.executable, "-m", "cupola", "run", "--device", "cpu", "program.py"]
    done = processes.run(command, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [int(line) for line in done.stdout.split()] == [*range(2048)] * 3
    assert done.stderr.count("cupola: kernel 'number' printed more") == 1
    assert f"the text of {5000 - 2048} calls of printf is lost" in done.stderr
