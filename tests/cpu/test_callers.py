"""The line of Python that launched a kernel, in the error that comes later, without checks."""

from __future__ import annotations

import gc
import inspect
import sys

import pytest

from cupola import CUDAError, Device, LaunchConfig, Program, launch
from cupola.bindings import driver
from cupola.cpu.reports.callers import line_of

pytestmark = [
    pytest.mark.cpu_only,
    pytest.mark.skipif(sys.version_info >= (3, 14), reason="frames of later versions of Python are not read"),
]

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
    names = {"launch": lambda: launch(stream, LaunchConfig(grid=1, block=1), kernel, memory)}
    exec("def function():\n    pass\n\ndef later(): launch()\nlater()", names)
    names.clear()
    gc.collect()
    assert "launched at" in error_of(stream)  # the lambda, whose code this function has


def test_what_is_no_code():
    assert line_of(0, 0) is None
    assert line_of(id(SOURCE), 0) is None
    code = here.__code__
    assert line_of(id(code), 0) == f"{__file__}:{code.co_firstlineno}"
    assert line_of(id(code), 1 << 20) == f"{__file__}:{code.co_firstlineno}"
