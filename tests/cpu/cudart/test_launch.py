"""Libraries, kernels, launches, occupancy."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from cupola.bindings import driver, runtime
from tests.cpu.cudart.calls import ok, read, shape, status

KIND = runtime.cudaMemcpyKind
TYPES = (ctypes.c_void_p, ctypes.c_int)


@pytest.fixture
def kernel(library):
    return ok(runtime.cudaLibraryGetKernel(library, b"add"))


def launch(kernel, grid, block, memory, value=1, shared=0, stream=0):
    return runtime.cudaLaunchKernel(kernel, grid, block, ((memory, value), TYPES), shared, stream)


def test_libraries(library, cubin, tmp_path):
    assert ok(runtime.cudaLibraryGetKernelCount(library)) == 3
    kernels = ok(runtime.cudaLibraryEnumerateKernels(3, library))
    assert {ok(runtime.cudaFuncGetName(kernel)) for kernel in kernels} == {b"add", b"dynamic", b"few"}
    assert status(runtime.cudaLibraryGetKernel(library, b"none")) == "cudaErrorSymbolNotFound"
    for get, name, expected in (
        (runtime.cudaLibraryGetGlobal, b"answer", 41),
        (runtime.cudaLibraryGetManaged, b"shared_answer", 43),
    ):
        address, size = ok(get(library, name))
        assert size == 4 and read(address, 1)[0] == expected
    path = tmp_path / "library.cubin"
    path.write_bytes(cubin)
    loaded = ok(runtime.cudaLibraryLoadFromFile(str(path).encode(), None, None, 0, None, None, 0))
    assert ok(runtime.cudaLibraryGetKernelCount(loaded)) == 3
    ok(runtime.cudaLibraryUnload(loaded))


def test_launches(kernel, memory, stream):
    ok(launch(kernel, shape(4), shape(64), memory, 1, 0, stream))
    arguments = ((memory, 2), TYPES)
    ok(runtime.cudaLaunchCooperativeKernel(kernel, shape(4), shape(64), arguments, 0, stream))
    cluster = runtime.cudaLaunchAttribute(id=runtime.cudaLaunchAttributeID.cudaLaunchAttributeClusterDimension)
    cluster.val.clusterDim.x, cluster.val.clusterDim.y, cluster.val.clusterDim.z = 2, 1, 1
    config = runtime.cudaLaunchConfig_t(gridDim=shape(4), blockDim=shape(64), stream=stream)
    if ok(runtime.cudaGetDeviceProperties(0)).clusterLaunch:
        config.attrs, config.numAttrs = [cluster], 1
    ok(runtime.cudaLaunchKernelExC(config, kernel, ((memory, 4), TYPES)))
    ok(runtime.cudaStreamSynchronize(stream))
    assert (read(memory) == 7).all()


@pytest.mark.parametrize(
    ("grid", "block", "expected"),
    [
        ((1,), (2048,), "cudaErrorInvalidValue"),
        ((1,), (64, 32, 1), "cudaErrorInvalidValue"),
        ((1,), (1, 1, 65), "cudaErrorInvalidValue"),
        ((0,), (1,), "cudaErrorInvalidValue"),
        ((1, 65536), (1,), "cudaErrorInvalidValue"),
    ],
)
def test_shapes_that_no_kernel_has(kernel, memory, grid, block, expected):
    assert launch(kernel, shape(*grid), shape(*block), memory)[0].name == expected
    assert runtime.cudaGetLastError()[0] != runtime.cudaError_t.cudaSuccess


def test_what_is_no_kernel(device, memory):
    for call in (
        lambda: launch(0, shape(1), shape(1), memory),
        lambda: runtime.cudaFuncGetAttributes(0),
        lambda: runtime.cudaOccupancyMaxActiveBlocksPerMultiprocessor(0, 32, 0),
    ):
        assert status(call()) == "cudaErrorInvalidDeviceFunction"


@pytest.mark.cpu_only
def test_functions_of_modules_can_be_launched(cubin, memory):
    """The driver's handle of a function, for programs that load modules."""
    module = ok(driver.cuModuleLoadData(cubin))
    function = ok(driver.cuModuleGetFunction(module, b"add"))
    ok(launch(function, shape(4), shape(64), memory, 5))
    assert (read(memory) == 5).all()
    assert ok(runtime.cudaGetFuncBySymbol(function)) == function
    assert status(runtime.cudaGetKernel(function)) == "cudaErrorInvalidDeviceFunction"
    ok(driver.cuModuleUnload(module))


@pytest.mark.cpu_only
def test_handles_of_kernels(kernel):
    assert ok(runtime.cudaGetKernel(kernel)) == kernel
    function = ok(runtime.cudaGetFuncBySymbol(kernel))
    assert function == ok(driver.cuKernelGetFunction(kernel))


def test_attributes(library, memory, stream):
    kernel = ok(runtime.cudaLibraryGetKernel(library, b"dynamic"))
    found = ok(runtime.cudaFuncGetAttributes(kernel))
    properties = ok(runtime.cudaGetDeviceProperties(0))
    assert found.maxThreadsPerBlock >= 256 and 0 < found.numRegs <= 255 and found.sharedSizeBytes < 4096
    assert found.binaryVersion == properties.major * 10 + properties.minor
    assert found.maxDynamicSharedSizeBytes == 49152 - found.sharedSizeBytes
    assert ok(runtime.cudaFuncGetAttributes(ok(runtime.cudaLibraryGetKernel(library, b"few")))).maxThreadsPerBlock == 64
    # more than 48 KiB has to be asked for
    block, size = shape(256), 64 << 10
    call = ((memory,), (ctypes.c_void_p,))
    assert status(runtime.cudaLaunchKernel(kernel, shape(1), block, call, size, stream)) != "cudaSuccess"
    most = runtime.cudaFuncAttribute.cudaFuncAttributeMaxDynamicSharedMemorySize
    ok(runtime.cudaFuncSetAttribute(kernel, most, size))
    assert ok(runtime.cudaFuncGetAttributes(kernel)).maxDynamicSharedSizeBytes == size
    ok(runtime.cudaLaunchKernel(kernel, shape(1), block, call, size, stream))
    ok(runtime.cudaStreamSynchronize(stream))
    assert (read(memory) == np.arange(256)[::-1]).all()
    assert status(runtime.cudaFuncSetAttribute(kernel, most, 1 << 30)) == "cudaErrorInvalidValue"
    ok(runtime.cudaKernelSetAttributeForDevice(kernel, most, size // 2, 0))
    assert ok(runtime.cudaFuncGetAttributes(kernel)).maxDynamicSharedSizeBytes == size // 2
    ok(runtime.cudaFuncSetCacheConfig(kernel, runtime.cudaFuncCache.cudaFuncCachePreferShared))


def test_parameters(kernel):
    assert ok(runtime.cudaFuncGetParamInfo(kernel, 0)) == (0, 8) and ok(runtime.cudaFuncGetParamInfo(kernel, 1)) == (
        8,
        4,
    )
    assert status(runtime.cudaFuncGetParamInfo(kernel, 2)) == "cudaErrorInvalidValue"


def test_occupancy(library):
    kernel = ok(runtime.cudaLibraryGetKernel(library, b"dynamic"))
    blocks = ok(runtime.cudaOccupancyMaxActiveBlocksPerMultiprocessor(kernel, 256, 0))
    assert blocks >= 1
    assert ok(runtime.cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(kernel, 256, 0, 0)) == blocks
    assert ok(runtime.cudaOccupancyMaxActiveBlocksPerMultiprocessor(kernel, 256, 48 << 10)) < blocks
    assert ok(runtime.cudaOccupancyAvailableDynamicSMemPerBlock(kernel, 1, 256)) > 0
    if ok(runtime.cudaGetDeviceProperties(0)).clusterLaunch:
        config = runtime.cudaLaunchConfig_t(gridDim=shape(16), blockDim=shape(128))
        assert ok(runtime.cudaOccupancyMaxPotentialClusterSize(kernel, config)) >= 8
        size = runtime.cudaLaunchAttribute(id=runtime.cudaLaunchAttributeID.cudaLaunchAttributeClusterDimension)
        size.val.clusterDim.x, size.val.clusterDim.y, size.val.clusterDim.z = 2, 1, 1
        config.attrs, config.numAttrs = [size], 1
        assert ok(runtime.cudaOccupancyMaxActiveClusters(kernel, config)) >= 1
