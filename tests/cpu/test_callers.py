"""The lines of Python that launched a kernel, and that allocated and freed memory, in errors, without checks."""

from __future__ import annotations

import gc
import inspect

import numpy as np
import pytest

from cupola import Buffer, CUDAError, Device, LaunchConfig, Program, launch
from cupola.bindings import driver
from cupola.cpu import _driver
from cupola.graph import GraphDefinition

pytestmark = pytest.mark.cpu_only

SOURCE = 'extern "C" __global__ void bad(int* x) { x[1000000] = 1; }'


@pytest.fixture
def kernel(fresh_device):
    return Program(SOURCE, "c++").compile("cubin").get_kernel("bad")


def error_of(stream) -> str:
    with pytest.raises(CUDAError) as caught:
        stream.sync()
    driver.cuDevicePrimaryCtxReset(0)
    return str(caught.value)


def here() -> int:
    return inspect.currentframe().f_back.f_lineno


def test_a_launch(kernel):
    stream = Device().create_stream()
    memory = Device().allocate(64, stream=stream)
    line = here() + 1
    launch(stream, LaunchConfig(grid=1, block=1), kernel, memory)
    assert f"\n  launched at {__file__}:{line}" in error_of(stream)


def test_a_launch_by_a_package_that_launches_for_others(kernel):
    stream = Device().create_stream()
    memory = Device().allocate(64, stream=stream)
    names = {"launch": launch}
    exec(compile("def call(*given):\n    launch(*given)", "/x/site-packages/torch/launcher.py", "exec"), names)
    line = here() + 1
    names["call"](stream, LaunchConfig(grid=1, block=1), kernel, memory)
    assert f"\n  launched at {__file__}:{line}" in error_of(stream)


def test_a_captured_launch(kernel):
    stream = Device().create_stream()
    memory = Device().allocate(64, stream=stream)
    builder = stream.create_graph_builder().begin_building()
    line = here() + 1
    launch(builder, LaunchConfig(grid=1, block=1), kernel, memory)
    graph = builder.end_building().complete()
    graph.launch(stream)
    assert f"\n  launched at {__file__}:{line}" in error_of(stream)


def test_code_that_is_gone(kernel):
    stream = Device().create_stream()
    memory = Device().allocate(64, stream=stream)
    names = {"launch": launch, "stream": stream, "kernel": kernel, "memory": memory, "LaunchConfig": LaunchConfig}
    code = "def later():\n    launch(stream, LaunchConfig(grid=1, block=1), kernel, memory)\n\nlater()"
    exec(compile(code, "/x/gone.py", "exec"), names)
    names.clear()
    gc.collect()
    assert "\n  launched at /x/gone.py:2" in error_of(stream)


def test_memory(kernel):
    stream = Device().create_stream()
    line = here() + 1
    memory = Device().allocate(4 * 1_000_000, stream=stream)  # just past its end
    launch(stream, LaunchConfig(grid=1, block=1), kernel, memory)
    assert f"4000000-byte allocation at {memory.handle:#x}\n  allocated at {__file__}:{line}" in error_of(stream)


@pytest.mark.parametrize("size", [64, 8_000_000])
def test_freed_memory(kernel, size):
    stream = Device().create_stream()
    line = here() + 1
    memory = Device().allocate(size, stream=stream)
    address = memory.handle
    memory.close(stream)
    stream.sync()
    launch(stream, LaunchConfig(grid=1, block=1), kernel, int(address) - (0 if size > 64 else 4_000_000))
    text = error_of(stream)
    assert f"that was freed\n  allocated at {__file__}:{line}\n  freed at {__file__}:{line + 2}" in text
    assert "\n  launched at " in text


def test_memory_of_the_driver_s_calls(kernel):
    line = here() + 1
    _, address = driver.cuMemAlloc(64)
    assert _driver.lines_of_memory(int(address)) == (f"{__file__}:{line}", None)
    driver.cuMemFree(address)
    assert _driver.lines_of_memory(int(address)) == (f"{__file__}:{line}", f"{__file__}:{line + 2}")
    memory = Buffer.from_handle(address, 64)
    stream = Device().create_stream()
    with pytest.raises(CUDAError, match=rf"that was freed at .*:{line + 2}, allocated at .*:{line}"):
        memory.fill(0, stream=stream)


@pytest.mark.parametrize("asked", [False, True], ids=["read", "asked"])
def test_both_ways(asked):
    assert _driver.caller_line(asked) == f"{__file__}:{here()}"
    assert eval("_driver.caller_line(asked)") == "<string>:1"
    names = {"launch": lambda: _driver.caller_line(asked)}
    exec(compile("def call():\n    return launch()", "/x/site-packages/torch/launcher.py", "exec"), names)
    exec(compile("def call_it(call):\n    return call()", "/x/site-packages/torch/x.py", "exec"), names)
    assert names["call_it"](names["call"]) == f"{__file__}:{names['launch'].__code__.co_firstlineno}"
    names["launch"] = _driver.caller_line
    exec(compile("def call(asked):\n    return launch(asked)", "/x/site-packages/torch/launcher.py", "exec"), names)
    assert names["call"](asked) == f"{__file__}:{here()}"


def registered(line_of):
    host = np.zeros(16, np.int32)
    line_of["allocated"] = here() + 1
    driver.cuMemHostRegister(host.ctypes.data, host.nbytes, 0)

    def free():
        line_of["freed"] = here() + 1
        driver.cuMemHostUnregister(host.ctypes.data)

    return host.ctypes.data, free, host


def mapped(line_of):
    properties = driver.CUmemAllocationProp()
    properties.type = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    properties.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    size = 1 << 21
    _, handle = driver.cuMemCreate(size, properties, 0)
    _, address = driver.cuMemAddressReserve(2 * size, 0, 0, 0)
    line_of["allocated"] = here() + 1
    assert driver.cuMemMap(address, size, 0, handle, 0)[0] == 0
    access = driver.CUmemAccessDesc()
    access.location = properties.location
    access.flags = driver.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
    assert driver.cuMemSetAccess(address, size, [access], 1)[0] == 0

    def free():
        line_of["freed"] = here() + 1
        assert driver.cuMemUnmap(address, size)[0] == 0

    return int(address), free, handle


def of_a_graph(line_of, captured):
    stream = Device().create_stream()
    if captured:
        driver.cuStreamBeginCapture(stream.handle, driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED)
        line_of["allocated"] = here() + 1
        _, address = driver.cuMemAllocAsync(64, stream.handle)
        _, graph = driver.cuStreamEndCapture(stream.handle)
    else:
        definition = GraphDefinition()
        line_of["allocated"] = here() + 1
        address = definition.allocate(64).dptr
        graph = definition.handle
    _, executable = driver.cuGraphInstantiate(graph, 0)
    assert driver.cuGraphLaunch(executable, stream.handle)[0] == 0

    def free():
        line_of["freed"] = here() + 1
        driver.cuMemFreeAsync(address, stream.handle)
        driver.cuStreamSynchronize(stream.handle)

    return int(address), free, (executable, stream)


@pytest.mark.parametrize("fault", ["beyond", "gone"])
@pytest.mark.parametrize(
    ("make", "word"),
    [
        pytest.param(registered, "unregistered", id="registered"),
        pytest.param(mapped, "unmapped", id="mapped"),
        pytest.param(lambda lines: of_a_graph(lines, captured=False), "freed", id="of_a_node"),
        pytest.param(lambda lines: of_a_graph(lines, captured=True), "freed", id="captured"),
    ],
)
def test_every_kind_of_memory(kernel, make, word, fault):
    lines = {}
    address, free, _keep = make(lines)
    stream = Device().create_stream()
    size = (1 << 21) if word == "unmapped" else 64
    if fault == "gone":
        free()
    # The kernel writes 4,000,000 bytes behind its argument.
    at = address - 4_000_000 + (size if fault == "beyond" else 0)
    launch(stream, LaunchConfig(grid=1, block=1), kernel, at)
    expected = f"  allocated at {__file__}:{lines['allocated']}\n"
    if fault == "gone":
        expected = f" that was {word}\n{expected}  {word} at {__file__}:{lines['freed']}\n"
    text = error_of(stream)
    assert expected in text and f"a {size}-byte allocation at {address:#x}" in text


def test_memory_that_follows_what_was_unmapped(fresh_device):
    lines = {}
    address, free, handle = mapped(lines)
    free()
    assert _driver.lines_of_memory(address) == (f"{__file__}:{lines['allocated']}", f"{__file__}:{lines['freed']}")
    driver.cuMemAddressFree(address, 2 << 21)
    driver.cuMemRelease(handle)
    with pytest.raises(
        CUDAError, match=rf"that was freed at .*:{lines['freed']}, allocated at .*:{lines['allocated']}"
    ):
        Buffer.from_handle(address, 64).fill(0, stream=Device().create_stream())
