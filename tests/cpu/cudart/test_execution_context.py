"""Execution contexts: calls that name the context they are about. Older drivers have none of these functions."""

from __future__ import annotations

import threading

import pytest

from cupola.bindings import driver, runtime
from tests.cpu.cudart.calls import ok, read, status

pytestmark = pytest.mark.cpu_only


def test_the_context_of_a_device(device):
    context = ok(runtime.cudaDeviceGetExecutionCtx(0))
    assert int(context) == int(ok(driver.cuCtxGetCurrent()))
    assert ok(runtime.cudaExecutionCtxGetDevice(context)) == 0
    assert ok(runtime.cudaExecutionCtxGetId(context)) == ok(driver.cuCtxGetId(0))
    ok(runtime.cudaExecutionCtxSynchronize(context))


def test_streams(memory):
    context = ok(runtime.cudaDeviceGetExecutionCtx(0))
    least, greatest = ok(runtime.cudaDeviceGetStreamPriorityRange())
    stream = ok(runtime.cudaExecutionCtxStreamCreate(context, runtime.cudaStreamNonBlocking, greatest))
    assert ok(runtime.cudaStreamGetFlags(stream)) == runtime.cudaStreamNonBlocking
    assert ok(runtime.cudaStreamGetPriority(stream)) == greatest
    ok(runtime.cudaMemsetAsync(memory, 1, 1024, stream))
    ok(runtime.cudaExecutionCtxSynchronize(context))
    assert ok(runtime.cudaStreamQuery(stream)) == () and (read(memory) == 0x01010101).all()
    ok(runtime.cudaStreamDestroy(stream))
    assert status(runtime.cudaExecutionCtxStreamCreate(context, 99, 0)) == "cudaErrorInvalidValue"


def test_no_context_need_be_current():
    """The thread has none before, and none after."""
    seen = []

    def work():
        context = ok(runtime.cudaDeviceGetExecutionCtx(0))
        stream = ok(runtime.cudaExecutionCtxStreamCreate(context, 0, 0))
        ok(runtime.cudaExecutionCtxSynchronize(context))
        seen.append((int(ok(driver.cuStreamGetCtx(stream))) == int(context), int(ok(driver.cuCtxGetCurrent()))))
        ok(runtime.cudaStreamDestroy(stream))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [(True, 0)]


@pytest.mark.parametrize(
    "call",
    [
        lambda: runtime.cudaExecutionCtxGetDevice(None),
        lambda: runtime.cudaExecutionCtxGetId(0),
        lambda: runtime.cudaExecutionCtxSynchronize(None),
        lambda: runtime.cudaExecutionCtxStreamCreate(None, 0, 0),
    ],
)
def test_null(call):
    assert status(call()) == "cudaErrorInvalidValue"


def test_a_device_that_is_not_there():
    count = ok(runtime.cudaGetDeviceCount())
    assert status(runtime.cudaDeviceGetExecutionCtx(count)) == "cudaErrorInvalidDevice"


@pytest.mark.parametrize("given", [True, False])
def test_conditions_of_a_context(graph, given):
    context = ok(runtime.cudaDeviceGetExecutionCtx(0)) if given else None
    handle = ok(runtime.cudaGraphConditionalHandleCreate_v2(graph, context, 1, 0))
    assert int(handle) != 0
