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


# ---- green contexts --------------------------------------------------------------------------------------------------

SM = runtime.cudaDevResourceType.cudaDevResourceTypeSm


@pytest.fixture
def green(device):
    """An execution context of eight multiprocessors, and the rest of the split."""
    whole = ok(runtime.cudaDeviceGetDevResource(0, SM))
    parts, count, rest = ok(runtime.cudaDevSmResourceSplitByCount(1, whole, 0, 8))
    assert count == 1 and parts[0].sm.smCount + rest.sm.smCount == whole.sm.smCount
    made = ok(runtime.cudaGreenCtxCreate(ok(runtime.cudaDevResourceGenerateDesc(parts, 1)), 0, 0))
    yield made
    runtime.cudaExecutionCtxDestroy(made)


def test_a_green_context(green):
    assert ok(runtime.cudaExecutionCtxGetDevResource(green, SM)).sm.smCount == 8
    assert ok(runtime.cudaExecutionCtxGetDevice(green)) == 0
    assert ok(runtime.cudaExecutionCtxGetId(green)) != ok(driver.cuCtxGetId(0))
    stream = ok(runtime.cudaExecutionCtxStreamCreate(green, 0, 0))
    assert ok(runtime.cudaStreamGetDevResource(stream, SM)).sm.smCount == 8
    assert ok(runtime.cudaStreamGetFlags(stream)) == runtime.cudaStreamNonBlocking
    assert int(ok(driver.cuStreamGetCtx(stream))) == int(green)
    ok(runtime.cudaExecutionCtxSynchronize(green))
    ok(runtime.cudaStreamDestroy(stream))


def test_a_structured_split(device):
    whole = ok(runtime.cudaDeviceGetDevResource(0, SM))
    groups = [runtime.cudaDevSmResourceGroupParams(), runtime.cudaDevSmResourceGroupParams()]
    groups[0].smCount, groups[1].smCount = 8, 16
    parts, rest = ok(runtime.cudaDevSmResourceSplit(2, whole, 0, groups))
    assert [part.sm.smCount for part in parts] == [8, 16] and rest.sm.smCount == whole.sm.smCount - 24


def test_events_of_execution_contexts(green, device):
    event = ok(runtime.cudaEventCreate())
    for context in (green, ok(runtime.cudaDeviceGetExecutionCtx(0))):
        ok(runtime.cudaExecutionCtxRecordEvent(context, event))
        ok(runtime.cudaExecutionCtxWaitEvent(context, event))
    ok(runtime.cudaEventSynchronize(event))
    ok(runtime.cudaEventDestroy(event))


def test_destroying(green):
    ok(runtime.cudaExecutionCtxDestroy(green))
    for context in (green, ok(runtime.cudaDeviceGetExecutionCtx(0)), None):
        assert status(runtime.cudaExecutionCtxDestroy(context)) == "cudaErrorInvalidValue"


def test_flags_of_a_green_context_are_for_later(device):
    whole = ok(runtime.cudaDeviceGetDevResource(0, SM))
    description = ok(runtime.cudaDevResourceGenerateDesc([whole], 1))
    assert status(runtime.cudaGreenCtxCreate(description, 0, 1)) == "cudaErrorInvalidValue"
