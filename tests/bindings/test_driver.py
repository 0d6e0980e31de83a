"""The driver module on whatever device the tests run on."""

from __future__ import annotations

import ctypes
import threading

import numpy as np
import pytest

from cupola.bindings import driver, nvrtc

SOURCE = b"""
extern "C" __global__ void saxpy(float a, const float *x, float *y, unsigned long long n) {
    unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}
"""


def check(result):
    """The outputs of a successful call."""
    assert result[0] == driver.CUresult.CUDA_SUCCESS, result[0]
    return result[1] if len(result) == 2 else result[1:]


@pytest.fixture(scope="module")
def context():
    check(driver.cuInit(0))
    device = check(driver.cuDeviceGet(0))
    context = check(driver.cuDevicePrimaryCtxRetain(device))
    check(driver.cuCtxSetCurrent(context))
    yield context
    check(driver.cuDevicePrimaryCtxRelease(device))


@pytest.fixture(scope="module")
def cubin(context):
    attribute = driver.CUdevice_attribute
    major = check(driver.cuDeviceGetAttribute(attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0))
    minor = check(driver.cuDeviceGetAttribute(attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0))
    program = nvrtc.nvrtcCreateProgram(SOURCE, b"saxpy.cu", 0, [], [])[1]
    assert nvrtc.nvrtcCompileProgram(program, 1, [b"--gpu-architecture=sm_%d%d" % (major, minor)])[0] == 0
    code = bytearray(nvrtc.nvrtcGetCUBINSize(program)[1])
    assert nvrtc.nvrtcGetCUBIN(program, code)[0] == 0
    nvrtc.nvrtcDestroyProgram(program)
    return bytes(code)


def test_device(context):
    assert check(driver.cuDeviceGetCount()) >= 1
    name = check(driver.cuDeviceGetName(64, 0))
    assert len(name) == 64 and name.rstrip(b"\0")
    assert check(driver.cuCtxGetCurrent()) == context
    free, total = check(driver.cuMemGetInfo())
    assert 0 < free <= total
    assert driver.cuDeviceGet(999)[0] == driver.CUresult.CUDA_ERROR_INVALID_DEVICE


def test_copies(context):
    pointer = check(driver.cuMemAlloc(64))
    check(driver.cuMemcpyHtoD(pointer, bytes(range(64)), 64))
    back = bytearray(64)
    check(driver.cuMemcpyDtoH(back, pointer, 64))
    assert back == bytes(range(64))
    array = np.zeros(16, np.uint32)
    check(driver.cuMemsetD32(pointer, 7, 16))
    check(driver.cuMemcpyDtoH(array, pointer, array.nbytes))
    assert (array == 7).all()
    kind = driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE
    assert check(driver.cuPointerGetAttribute(kind, pointer)) == driver.CUmemorytype.CU_MEMORYTYPE_DEVICE
    check(driver.cuMemFree(pointer))


@pytest.mark.parametrize("way", ["pair", "addresses", "configuration"])
def test_launch(context, cubin, way):
    module = check(driver.cuModuleLoadData(cubin))
    kernel = check(driver.cuModuleGetFunction(module, b"saxpy"))
    stream = check(driver.cuStreamCreate(driver.CUstream_flags.CU_STREAM_NON_BLOCKING))
    n = 1000
    x, y = np.arange(n, dtype=np.float32), np.ones(n, np.float32)
    dx, dy = check(driver.cuMemAlloc(x.nbytes)), check(driver.cuMemAlloc(y.nbytes))
    check(driver.cuMemcpyHtoDAsync(dx, x, x.nbytes, stream))
    check(driver.cuMemcpyHtoDAsync(dy, y, y.nbytes, stream))
    pair = ((2.0, dx, dy, n), (ctypes.c_float, None, ctypes.c_void_p, ctypes.c_size_t))
    if way == "pair":
        check(driver.cuLaunchKernel(kernel, 4, 1, 1, 256, 1, 1, 0, stream, pair, 0))
    elif way == "addresses":
        values = ctypes.c_float(2), ctypes.c_void_p(int(dx)), ctypes.c_void_p(int(dy)), ctypes.c_size_t(n)
        addresses = np.array([ctypes.addressof(v) for v in values], np.uint64)
        check(driver.cuLaunchKernel(kernel, 4, 1, 1, 256, 1, 1, 0, stream, addresses, 0))
    else:
        grid = {"gridDimX": 4, "gridDimY": 1, "gridDimZ": 1, "blockDimX": 256, "blockDimY": 1, "blockDimZ": 1}
        check(driver.cuLaunchKernelEx(driver.CUlaunchConfig(hStream=stream, **grid), kernel, pair, 0))
    check(driver.cuMemcpyDtoHAsync(y, dy, y.nbytes, stream))
    check(driver.cuStreamSynchronize(stream))
    np.testing.assert_array_equal(y, 1 + 2 * x)
    for handle in (dx, dy):
        check(driver.cuMemFree(handle))
    check(driver.cuStreamDestroy(stream))
    check(driver.cuModuleUnload(module))


def test_calls_release_the_gil(context):
    """A host function needs the GIL while the main thread waits for it."""
    stream = check(driver.cuStreamCreate(0))
    seen = []
    callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda data: seen.append(data))
    check(driver.cuLaunchHostFunc(stream, callback, 77))
    check(driver.cuStreamSynchronize(stream))
    assert seen == [77]
    check(driver.cuStreamDestroy(stream))


def test_threads_share_the_table(context):
    results = []

    def work():
        results.append(driver.cuCtxSetCurrent(context)[0])
        results.extend(driver.cuMemFree(driver.cuMemAlloc(256)[1])[0] for _ in range(50))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4 * 51 and not any(results)
