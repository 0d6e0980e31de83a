"""ObjectCode.get_global: variables of the code as buffers."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from cupola import Buffer, CUDAError, LaunchConfig, ObjectCode, Program, launch

SOURCE = r"""
__constant__ float weights[3] = {1, 2, 3};
__device__ int counter = 7;
namespace settings { __device__ double limit = 0.5; }
template <typename T> __device__ T table[4];
extern "C" __global__ void use(float* x) {
    if (threadIdx.x == 0) {
        counter += 1;
        settings::limit *= 2;
    }
    table<float>[threadIdx.x] += 1;
    x[threadIdx.x] = weights[threadIdx.x];
}
"""
NAMES = ("&settings::limit", "&table<float>")


@pytest.fixture
def code(device):
    return Program(SOURCE, "c++", {"arch": f"sm_{device.arch}"}).compile("cubin", name_expressions=NAMES)


def read(buffer: Buffer, dtype: type, stream) -> np.ndarray:
    found = buffer.copy_to(np.empty(buffer.size // np.dtype(dtype).itemsize, dtype), stream=stream)
    stream.sync()
    return found


@pytest.mark.parametrize(
    "name, dtype, values",
    [
        ("weights", np.float32, [1, 2, 3]),
        (b"weights", np.float32, [1, 2, 3]),
        ("counter", np.int32, [7]),
        ("&settings::limit", np.float64, [0.5]),
        ("&table<float>", np.float32, [0, 0, 0, 0]),
    ],
)
def test_initial_values(code, stream, name, dtype, values):
    assert read(code.get_global(name), dtype, stream).tolist() == values


def test_a_kernel_reads_what_is_written(device, code, stream):
    code.get_global("weights").copy_from(np.array([4, 5, 6], np.float32), stream=stream)
    with device.allocate(12, stream=stream) as x:
        launch(stream, LaunchConfig(grid=1, block=3), code.get_kernel("use"), x)
        assert read(x, np.float32, stream).tolist() == [4, 5, 6]
    assert read(code.get_global("counter"), np.int32, stream).tolist() == [8]
    assert read(code.get_global("&settings::limit"), np.float64, stream).tolist() == [1]
    assert read(code.get_global("&table<float>"), np.float32, stream).tolist() == [1, 1, 1, 0]


def test_the_buffer_keeps_the_code(device, stream):
    options = {"arch": f"sm_{device.arch}"}
    counter = Program(SOURCE, "c++", options).compile("cubin").get_global("counter")
    gc.collect()
    assert (counter.device_id, counter.is_device_accessible, counter.memory_resource) == (0, True, None)
    counter.copy_from(np.array([9], np.int32), stream=stream)
    assert read(counter, np.int32, stream).tolist() == [9]
    counter.close()


def test_code_from_ptx(device, stream):
    ptx = Program(SOURCE, "c++", {"arch": f"compute_{device.arch}"}).compile("ptx")
    assert read(ObjectCode.from_ptx(ptx.code).get_global("weights"), np.float32, stream).tolist() == [1, 2, 3]


def test_managed(device, stream):
    if not device.properties.concurrent_managed_access:
        pytest.skip("the host may not read managed memory while the device has work")
    source = '__managed__ int shared = 5; extern "C" __global__ void add() { shared += 1; }'
    code = Program(source, "c++", {"arch": f"sm_{device.arch}"}).compile("cubin")
    shared = code.get_global("shared")
    launch(stream, LaunchConfig(grid=1, block=1), code.get_kernel("add"))
    assert read(shared, np.int32, stream).tolist() == [6]


def test_what_is_not_there(code):
    with pytest.raises(CUDAError, match="there is no variable 'wieghts' in the cubin code.*name_expressions") as raised:
        code.get_global("wieghts")
    assert raised.value.name == "CUDA_ERROR_NOT_FOUND"
    with pytest.raises(TypeError, match="the name of a variable is str or bytes, not int"):
        code.get_global(3)


def test_code_that_must_be_linked_first(device):
    code = Program(SOURCE, "c++", {"arch": f"sm_{device.arch}", "link_time_optimization": True}).compile("ltoir")
    with pytest.raises(RuntimeError, match="link this ltoir code first"):
        code.get_global("weights")
