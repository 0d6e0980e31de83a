"""Contexts: primary ones, a thread's stack, limits, and what happens to handles when a context goes."""

from __future__ import annotations

import threading

import pytest

from cupola.bindings import driver
from tests import limits
from tests.cpu.driver.calls import explanation, ok, status


def make_context():
    return ok(driver.cuCtxCreate(None, 0, 0))


def test_the_current_context_is_a_stack(context):
    own = make_context()
    assert int(ok(driver.cuCtxGetCurrent())) == int(own)
    ok(driver.cuCtxPushCurrent(context))
    assert int(ok(driver.cuCtxPopCurrent())) == int(context)
    assert int(ok(driver.cuCtxPopCurrent())) == int(own)
    assert int(ok(driver.cuCtxGetCurrent())) == int(context)
    ok(driver.cuCtxDestroy(own))


def test_set_current_replaces_the_top(context):
    own = make_context()
    ok(driver.cuCtxSetCurrent(context))
    assert int(ok(driver.cuCtxPopCurrent())) == int(context)
    assert int(ok(driver.cuCtxGetCurrent())) == int(context)  # under the one that cuCtxCreate pushed
    ok(driver.cuCtxDestroy(own))


def test_each_thread_has_its_own_current_context(context):
    seen = []

    def other():
        seen.append(int(ok(driver.cuCtxGetCurrent())))
        seen.append(status(driver.cuCtxSynchronize()))
        seen.append(status(driver.cuStreamCreate(0)))
        seen.append(status(driver.cuCtxPopCurrent()))

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert seen == [0] + ["CUDA_ERROR_INVALID_CONTEXT"] * 3


def test_the_primary_context_is_one_and_counted(context):
    again = ok(driver.cuDevicePrimaryCtxRetain(0))
    assert int(again) == int(context)
    ok(driver.cuDevicePrimaryCtxRelease(0))
    assert ok(driver.cuDevicePrimaryCtxGetState(0))[1] == 1


def test_ids_tell_contexts_apart(context):
    own = make_context()
    assert ok(driver.cuCtxGetId(own)) != ok(driver.cuCtxGetId(context))
    ok(driver.cuCtxDestroy(own))


def test_what_belongs_to_a_destroyed_context_is_refused(context):
    own = make_context()
    stream, event = ok(driver.cuStreamCreate(1)), ok(driver.cuEventCreate(0))
    ok(driver.cuEventRecord(event, stream))
    ok(driver.cuCtxDestroy(own))
    assert int(ok(driver.cuCtxGetCurrent())) == int(context)


@pytest.mark.cpu_only
def test_handles_of_a_destroyed_context(context):
    own = make_context()
    stream, event = ok(driver.cuStreamCreate(1)), ok(driver.cuEventCreate(0))
    ok(driver.cuCtxDestroy(own))
    assert status(driver.cuStreamQuery(stream)) == "CUDA_ERROR_INVALID_HANDLE"
    assert status(driver.cuEventQuery(event)) == "CUDA_ERROR_INVALID_HANDLE"
    assert status(driver.cuCtxSetCurrent(own)) == "CUDA_ERROR_CONTEXT_IS_DESTROYED"
    assert status(driver.cuCtxDestroy(own)) == "CUDA_ERROR_CONTEXT_IS_DESTROYED"
    assert status(driver.cuCtxSetCurrent(driver.CUcontext(0xDEADBEEF))) == "CUDA_ERROR_INVALID_CONTEXT"


@pytest.mark.cpu_only
def test_a_destroyed_context_that_is_current_elsewhere(context):
    own = make_context()
    ok(driver.cuCtxPopCurrent())
    made, gone = threading.Event(), threading.Event()
    seen = []

    def other():
        ok(driver.cuCtxSetCurrent(own))
        made.set()
        limits.wait(gone)
        seen.append(status(driver.cuStreamCreate(0)))

    thread = threading.Thread(target=other)
    thread.start()
    limits.wait(made)
    ok(driver.cuCtxDestroy(own))
    gone.set()
    thread.join()
    assert seen == ["CUDA_ERROR_CONTEXT_IS_DESTROYED"]


LIMIT = driver.CUlimit


@pytest.mark.parametrize(
    "limit, value", [(LIMIT.CU_LIMIT_STACK_SIZE, 4096), (LIMIT.CU_LIMIT_MALLOC_HEAP_SIZE, 32 << 20)]
)
def test_limits_can_be_set(context, limit, value):
    own = make_context()
    ok(driver.cuCtxSetLimit(limit, value))
    assert ok(driver.cuCtxGetLimit(limit)) >= value
    ok(driver.cuCtxDestroy(own))


@pytest.mark.cpu_only
@pytest.mark.parametrize(
    "call, expected, says",
    [
        (lambda: driver.cuCtxGetLimit(99), "CUDA_ERROR_INVALID_VALUE", "CUlimit"),
        (lambda: driver.cuCtxCreate(None, 3, 0), "CUDA_ERROR_INVALID_VALUE", "flags"),
        (lambda: driver.cuCtxCreate(None, 0, 99), "CUDA_ERROR_INVALID_DEVICE", "no device 99"),
        (lambda: driver.cuCtxPushCurrent(0), "CUDA_ERROR_INVALID_CONTEXT", "null"),
        (lambda: driver.cuDevicePrimaryCtxSetFlags(0, 0x1000), "CUDA_ERROR_INVALID_VALUE", "flags"),
        (lambda: driver.cuCtxEnablePeerAccess(0, 0), "CUDA_ERROR_INVALID_CONTEXT", "null"),
    ],
)
def test_bad_arguments_are_explained(context, call, expected, says):
    result = call()
    assert status(result) == expected
    assert says in explanation(result)


@pytest.mark.cpu_only
def test_reset_and_release(run_python):
    done = run_python("""
from cupola.bindings import driver as d
def status(r): return r[0].name
d.cuInit(0)
assert status(d.cuDevicePrimaryCtxRelease(0)) == "CUDA_ERROR_INVALID_CONTEXT"
assert d.cuDevicePrimaryCtxGetState(0)[2] == 0
context = d.cuDevicePrimaryCtxRetain(0)[1]
d.cuCtxSetCurrent(context)
stream = d.cuStreamCreate(0)[1]
first = d.cuCtxGetId(context)[1]
assert status(d.cuDevicePrimaryCtxReset(0)) == "CUDA_SUCCESS"
assert d.cuDevicePrimaryCtxGetState(0)[2] == 0
assert status(d.cuStreamCreate(0)) == "CUDA_ERROR_CONTEXT_IS_DESTROYED"
again = d.cuDevicePrimaryCtxRetain(0)[1]
assert int(again) == int(context) and d.cuCtxGetId(context)[1] != first
assert status(d.cuStreamQuery(stream)) == "CUDA_ERROR_INVALID_HANDLE"
assert status(d.cuStreamCreate(0)) == "CUDA_SUCCESS"
for active in (1, 0):  # the reset has not released the first one
    assert status(d.cuDevicePrimaryCtxRelease(0)) == "CUDA_SUCCESS"
    assert d.cuDevicePrimaryCtxGetState(0)[2] == active
assert status(d.cuDevicePrimaryCtxRelease(0)) == "CUDA_ERROR_INVALID_CONTEXT"
d.cuDevicePrimaryCtxRetain(0)
d.cuDevicePrimaryCtxReset(0)
assert status(d.cuDevicePrimaryCtxRelease(0)) == "CUDA_SUCCESS"
assert d.cuDevicePrimaryCtxGetState(0)[2] == 0
""")
    assert done.returncode == 0, done.stderr


@pytest.mark.cpu_only
def test_a_reset_frees_what_came_from_pools(run_python):
    done = run_python("""
from cupola.bindings import driver as d
d.cuInit(0)
d.cuCtxSetCurrent(d.cuDevicePrimaryCtxRetain(0)[1])
pool = d.cuDeviceGetMemPool(0)[1]
used = d.CUmemPool_attribute.CU_MEMPOOL_ATTR_USED_MEM_CURRENT
stream = d.cuStreamCreate(1)[1]
for size in (100, 1 << 20, 1 << 23):
    d.cuMemAllocFromPoolAsync(size, pool, stream)
    freed = d.cuMemAllocFromPoolAsync(size, pool, stream)[1]
    d.cuMemFreeAsync(freed, stream)
assert int(d.cuMemPoolGetAttribute(pool, used)[1]) > 1 << 23
assert d.cuDevicePrimaryCtxReset(0)[0].name == "CUDA_SUCCESS"
assert int(d.cuMemPoolGetAttribute(pool, used)[1]) == 0
""")
    assert done.returncode == 0, done.stderr
