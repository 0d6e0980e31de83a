"""Devices and the contexts that the runtime uses."""

from __future__ import annotations

import threading
from functools import partial

import pytest

from cupola.bindings import driver, runtime
from tests.cpu.cudart.calls import ok, status


def run(run_python, source, **environment):
    done = run_python(f"from cupola.bindings import driver as d, runtime as r\n{source}", **environment)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "source",
    [
        # the first call that needs a context makes the primary one current
        "assert r.cudaGetDevice()[1] == 0 and d.cuInit(0)[0] == 0 and int(d.cuCtxGetCurrent()[1]) == 0\n"
        "assert r.cudaMalloc(16)[0] == 0\n"
        "assert d.cuCtxGetCurrent()[1] == d.cuDevicePrimaryCtxRetain(0)[1]",
        # cudaInitDevice makes it, but not current
        "assert r.cudaInitDevice(0, 0, 0)[0] == 0\n"
        "assert d.cuDevicePrimaryCtxGetState(0)[2] == 1 and int(d.cuCtxGetCurrent()[1]) == 0",
        # a reset takes it away until it is needed again
        "assert r.cudaFree(0)[0] == 0 and d.cuDevicePrimaryCtxGetState(0)[2] == 1\n"
        "stream = r.cudaStreamCreate()[1]\n"
        "assert r.cudaDeviceReset()[0] == 0 and d.cuDevicePrimaryCtxGetState(0)[2] == 0\n"
        "assert r.cudaMalloc(16)[0] == 0 and d.cuDevicePrimaryCtxGetState(0)[2] == 1",
    ],
)
def test_the_primary_context(run_python, source):
    run(run_python, source)


def test_a_context_of_the_driver_is_used(device):
    made = ok(driver.cuCtxCreate(None, 0, 0))
    try:
        assert ok(runtime.cudaGetDevice()) == 0
        stream = ok(runtime.cudaStreamCreate())
        assert ok(driver.cuStreamGetCtx(stream)) == made
        ok(runtime.cudaStreamDestroy(stream))
    finally:
        ok(driver.cuCtxDestroy(made))
    ok(runtime.cudaDeviceSynchronize())


def test_threads_start_with_the_first_device(device):
    seen = []

    def work():
        seen.append(ok(runtime.cudaGetDevice()))
        seen.append(ok(runtime.cudaFree(ok(runtime.cudaMalloc(64)))))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [0, ()]


def test_several_devices(run_on_devices):
    source = """
import threading
ok = lambda result: (result[1] if len(result) == 2 else result[1:]) if result[0] == 0 else 1 / 0
assert ok(r.cudaGetDeviceCount()) >= 2
a = ok(r.cudaMalloc(64))
ok(r.cudaSetDevice(1))
b = ok(r.cudaMalloc(64))
assert ok(r.cudaPointerGetAttributes(a)).device == 0 and ok(r.cudaPointerGetAttributes(b)).device == 1
seen = []
thread = threading.Thread(target=lambda: seen.append(r.cudaGetDevice()[1]))
thread.start(), thread.join()
assert seen == [0]
assert ok(r.cudaDeviceCanAccessPeer(0, 1)) == 1 and ok(r.cudaDeviceCanAccessPeer(1, 1)) == 0
assert ok(r.cudaDeviceGetP2PAttribute(r.cudaDeviceP2PAttr.cudaDevP2PAttrAccessSupported, 0, 1)) == 1
host = ok(r.cudaDeviceGetHostAtomicCapabilities([0, 8], 2, 0))
peer = ok(r.cudaDeviceGetP2PAtomicCapabilities([0, 8], 2, 0, 1))
assert host == ok(d.cuDeviceGetHostAtomicCapabilities([0, 8], 2, 0))  # none where an H200 is on a PCIe bus
assert peer == ok(d.cuDeviceGetP2PAtomicCapabilities([0, 8], 2, 0, 1))
assert b"cupola" not in ok(d.cuDeviceGetName(64, 0)) or host == peer == [31, 59]
ok(r.cudaDeviceEnablePeerAccess(0, 0))
assert r.cudaDeviceEnablePeerAccess(0, 0)[0] == r.cudaError_t.cudaErrorPeerAccessAlreadyEnabled
ok(r.cudaMemset(a, 7, 64))
ok(r.cudaMemcpyPeer(b, 1, a, 0, 64))
stream = ok(r.cudaStreamCreate())
assert ok(r.cudaStreamGetDevice(stream)) == 1
ok(r.cudaMemset(a, 9, 32))
ok(r.cudaMemcpyPeerAsync(b, 1, a, 0, 16, stream))
extent = r.make_cudaExtent(8, 1, 1)
copy = r.cudaMemcpy3DPeerParms(srcDevice=0, dstDevice=1, extent=extent)
copy.srcPtr, copy.dstPtr = r.make_cudaPitchedPtr(a, 8, 8, 1), r.make_cudaPitchedPtr(b + 24, 8, 8, 1)
ok(r.cudaMemcpy3DPeerAsync(copy, stream))
ok(r.cudaStreamSynchronize(stream))
back = bytearray(64)
ok(r.cudaMemcpy(back, b, 64, 4))
assert back == b"\\x09" * 16 + b"\\x07" * 8 + b"\\x09" * 8 + b"\\x07" * 32, back
ok(r.cudaDeviceDisablePeerAccess(0))
assert r.cudaDeviceDisablePeerAccess(0)[0] == r.cudaError_t.cudaErrorPeerAccessNotEnabled
ok(r.cudaDeviceReset())
assert r.cudaPointerGetAttributes(a)[1].device == 0
"""
    run(partial(run_on_devices, 2), source)


@pytest.mark.cpu_only  # a GPU's runtime may ignore it once a context is there
def test_the_order_of_devices(run_python):
    source = """
import threading
seen = []
assert r.cudaSetValidDevices([1, 0], 2)[0] == 0
thread = threading.Thread(target=lambda: seen.append(r.cudaGetDevice()[1]))
thread.start(), thread.join()
assert seen == [1]
"""
    run(run_python, source, CUPOLA_CPU_DEVICES="2")


def test_limits_and_preferences(device):
    limit = runtime.cudaLimit.cudaLimitStackSize
    before = ok(runtime.cudaDeviceGetLimit(limit))
    ok(runtime.cudaDeviceSetLimit(limit, 4096))
    assert ok(runtime.cudaDeviceGetLimit(limit)) >= 4096
    ok(runtime.cudaDeviceSetLimit(limit, before))
    ok(runtime.cudaDeviceSetCacheConfig(runtime.cudaFuncCache.cudaFuncCachePreferL1))
    assert ok(runtime.cudaDeviceGetCacheConfig()) in list(runtime.cudaFuncCache)
    ok(runtime.cudaDeviceSetCacheConfig(runtime.cudaFuncCache.cudaFuncCachePreferNone))
    least, greatest = ok(runtime.cudaDeviceGetStreamPriorityRange())
    assert least == 0 > greatest
    assert isinstance(ok(runtime.cudaGetDeviceFlags()), int)
    assert status(runtime.cudaSetDeviceFlags(0xFFFF0000)) == "cudaErrorInvalidValue"
    ok(runtime.cudaProfilerStart())
    ok(runtime.cudaProfilerStop())


def attribute(name: str) -> int:
    return ok(runtime.cudaDeviceGetAttribute(getattr(runtime.cudaDeviceAttr, f"cudaDevAttr{name}"), 0))


@pytest.mark.parametrize(
    ("field", "attributes"),
    [
        ("sharedMemPerBlock", "MaxSharedMemoryPerBlock"),
        ("regsPerBlock", "MaxRegistersPerBlock"),
        ("warpSize", "WarpSize"),
        ("maxThreadsPerBlock", "MaxThreadsPerBlock"),
        ("maxThreadsDim", "MaxBlockDimX MaxBlockDimY MaxBlockDimZ"),
        ("maxGridSize", "MaxGridDimX MaxGridDimY MaxGridDimZ"),
        ("totalConstMem", "TotalConstantMemory"),
        ("major", "ComputeCapabilityMajor"),
        ("minor", "ComputeCapabilityMinor"),
        ("multiProcessorCount", "MultiProcessorCount"),
        ("maxTexture2D", "MaxTexture2DWidth MaxTexture2DHeight"),
        ("maxTexture3D", "MaxTexture3DWidth MaxTexture3DHeight MaxTexture3DDepth"),
        ("maxSurface2D", "MaxSurface2DWidth MaxSurface2DHeight"),
        ("pciBusID", "PciBusId"),
        ("asyncEngineCount", "AsyncEngineCount"),
        ("memoryBusWidth", "GlobalMemoryBusWidth"),
        ("l2CacheSize", "L2CacheSize"),
        ("persistingL2CacheMaxSize", "MaxPersistingL2CacheSize"),
        ("maxThreadsPerMultiProcessor", "MaxThreadsPerMultiProcessor"),
        ("sharedMemPerMultiprocessor", "MaxSharedMemoryPerMultiprocessor"),
        ("sharedMemPerBlockOptin", "MaxSharedMemoryPerBlockOptin"),
        ("reservedSharedMemPerBlock", "ReservedSharedMemoryPerBlock"),
        ("regsPerMultiprocessor", "MaxRegistersPerMultiprocessor"),
        ("managedMemory", "ManagedMemory"),
        ("concurrentManagedAccess", "ConcurrentManagedAccess"),
        ("cooperativeLaunch", "CooperativeLaunch"),
        ("maxBlocksPerMultiProcessor", "MaxBlocksPerMultiprocessor"),
        ("accessPolicyMaxWindowSize", "MaxAccessPolicyWindowSize"),
        ("memoryPoolsSupported", "MemoryPoolsSupported"),
        ("clusterLaunch", "ClusterLaunch"),
        ("hostNumaId", "HostNumaId"),
    ],
)
def test_properties(field, attributes):
    value = getattr(ok(runtime.cudaGetDeviceProperties(0)), field)
    expected = [attribute(name) for name in attributes.split()]
    assert (list(value) if len(expected) > 1 else [value]) == expected


def test_names_and_numbers_of_the_device(device):
    properties = ok(runtime.cudaGetDeviceProperties(0))
    assert properties.totalGlobalMem == ok(driver.cuDeviceTotalMem(0))
    assert bytes(properties.uuid.bytes) == bytes(ok(driver.cuDeviceGetUuid(0)).bytes)
    text = ok(runtime.cudaDeviceGetPCIBusId(16, 0))
    assert ok(runtime.cudaDeviceGetByPCIBusId(text)) == 0
    assert ok(runtime.cudaChooseDevice(properties)) in range(ok(runtime.cudaGetDeviceCount()))


@pytest.mark.parametrize(("symbol", "flags"), [(b"cuStreamQuery", 0), (b"cuStreamQuery", 2), (b"cuMemAlloc", 0)])
def test_functions_of_the_driver(symbol, flags):
    found = runtime.cudaDriverEntryPointQueryResult.cudaDriverEntryPointSuccess
    address, result = ok(runtime.cudaGetDriverEntryPointByVersion(symbol, 12000, flags))
    assert address and result == found
    address, result = ok(runtime.cudaGetDriverEntryPoint(symbol, flags))
    assert address and result == found


def test_a_function_the_driver_lacks():
    missing = runtime.cudaDriverEntryPointQueryResult.cudaDriverEntryPointSymbolNotFound
    address, result = ok(runtime.cudaGetDriverEntryPointByVersion(b"cuNoSuchThing", 12000, 0))
    assert not address and result == missing
