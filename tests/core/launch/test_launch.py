"""Launching: what is checked, what limits say, and what faults become."""

from __future__ import annotations

import inspect
import pickle

import numpy as np
import pytest

from cupola import (
    Buffer,
    CUDAError,
    DeviceMemoryResource,
    GraphMemoryResource,
    LaunchConfig,
    Program,
    launch,
)

ONE = LaunchConfig(grid=1, block=1)


@pytest.mark.parametrize(
    ("grid", "block"), [(1, 1), (5, 33), ((3, 2), (8, 4)), ((2, 2, 2), (4, 4, 2)), (1, 1024), (1000, 1)]
)
def test_shapes(stream, module, out, grid, block):
    config = LaunchConfig(grid=grid, block=block)
    launch(stream, config, module.get_kernel("sum_blocks"), out)
    stream.sync()
    x, y, z = config.grid
    expected = sum(1 + (i << 8) + (j << 16) + (k << 24) for i in range(x) for j in range(y) for k in range(z))
    assert np.from_dlpack(out).view(np.uint32)[0] == expected % 2**32


def test_the_name_that_is_meant_is_the_end_of_a_sentence(device):
    code = Program("__global__ void saxpy(int*) {}", "c++", {"arch": f"sm_{device.arch}"}).compile("cubin")
    with pytest.raises(CUDAError, match=r"did you mean '_Z5saxpyPi'\? Kernels that are not"):
        code.get_kernel("saxpy")


@pytest.mark.parametrize(
    "method",
    [Buffer.copy_to, Buffer.copy_from, Buffer.fill, DeviceMemoryResource.allocate, GraphMemoryResource.allocate],
)
def test_signatures_have_no_older_spellings(method):
    assert "older" not in inspect.signature(method).parameters and not method.__doc__.startswith(method.__name__)


def test_keywords(stream, module):
    launch(stream=stream, config=ONE, kernel=module.get_kernel("nothing"))
    launch(stream, ONE, kernel=module.get_kernel("nothing"))
    assert str(inspect.signature(launch)) == "(stream, config, kernel, *kernel_args)"
    assert pickle.loads(pickle.dumps(launch)) is launch


@pytest.mark.parametrize(
    ("arguments", "keywords", "text"),
    [
        ((), {}, "is missing stream, config, kernel"),
        ((1, 2), {}, "is missing kernel"),
        ((1,), {"kernel": 3}, "is missing config"),
        ((1, 2, 3), {"kernel": 3}, "multiple values for argument 'kernel'"),
        ((1, 2), {"kernel": 3, "shmem_size": 4}, "unexpected keyword argument 'shmem_size'"),
    ],
)
def test_wrong_keywords(arguments, keywords, text):
    with pytest.raises(TypeError, match=text):
        launch(*arguments, **keywords)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"stream": None}, "a stream is required"),
        ({"stream": 7}, "Stream or GraphBuilder expected"),
        ({"config": None}, "LaunchConfig"),
        ({"config": {"grid": 1, "block": 1}}, "LaunchConfig"),
        ({"kernel": None}, "Kernel"),
        ({"kernel": "nothing"}, "Kernel"),
    ],
)
def test_wrong_types(stream, module, change, text):
    with pytest.raises(TypeError, match=text):
        launch(**{"stream": stream, "config": ONE, "kernel": module.get_kernel("nothing"), **change})


class TestLimits:
    @pytest.mark.parametrize(
        ("config", "text"),
        [
            ({"grid": 1, "block": 1025}, r"block.x is 1025; .* takes at most 1024"),
            ({"grid": 1, "block": (1, 1, 65)}, r"block.z is 65; .* takes at most 64"),
            ({"grid": 1, "block": (64, 64)}, r"block has 4096 threads; .* takes at most 1024"),
            ({"grid": (1, 70000), "block": 1}, r"grid.y is 70000 blocks; .* takes at most 65535"),
            ({"grid": 1, "block": 1, "shmem_size": 1 << 24}, r"uses \d+ bytes of shared memory"),
        ],
    )
    def test_of_the_device(self, stream, module, config, text):
        with pytest.raises(CUDAError, match=text) as caught:
            launch(stream, LaunchConfig(**config), module.get_kernel("nothing"))
        assert caught.value.call == "cuLaunchKernelEx" and caught.value.name.startswith("CUDA_ERROR_")
        assert len(str(caught.value).splitlines()) == 2  # the limit is named once, also where the driver names it
        launch(stream, ONE, module.get_kernel("nothing"))
        stream.sync()

    def test_of_the_kernel(self, stream, module):
        kernel = module.get_kernel("few")
        assert kernel.attributes.max_threads_per_block == 64
        with pytest.raises(CUDAError, match=r"block has 128 threads; kernel few takes at most 64"):
            launch(stream, LaunchConfig(grid=1, block=128), kernel)

    def test_shared_memory_grows_as_needed(self, device, stream, module, out):
        kernel = module.get_kernel("dynamic")
        for size in (1024, 48 * 1024, 64 * 1024, 4096):
            if size > device.properties.max_shared_memory_per_block_optin:
                continue
            launch(stream, LaunchConfig(grid=1, block=128, shmem_size=size), kernel, out, size)
            stream.sync()
            assert np.from_dlpack(out).view(np.uint32)[0] == (size - 1) % 256

    def test_cooperative(self, device, stream, module):
        kernel = module.get_kernel("nothing")
        resident = kernel.occupancy.max_active_blocks_per_multiprocessor(64, 0)
        most = resident * device.properties.multiprocessor_count
        launch(stream, LaunchConfig(grid=most, block=64, is_cooperative=True), kernel)
        stream.sync()
        with pytest.raises(ValueError, match=f"the grid has {most + 1} blocks, the most is {most}"):
            launch(stream, LaunchConfig(grid=most + 1, block=64, is_cooperative=True), kernel)

    def test_serialization(self, device, stream, module):
        config = LaunchConfig(grid=1, block=1, programmatic_stream_serialization=True)
        launch(stream, config, module.get_kernel("nothing"))
        stream.sync()


def test_fault_is_raised_by_sync_and_nothing_else_is_noisy(run_python):
    done = run_python(
        """
from cupola import CUDAError, Device, LaunchConfig, Program, launch
dev = Device(0)
dev.set_current()
stream = dev.create_stream()
source = 'extern "C" __global__ void fault(int* x) { *x = 1; }'
kernel = Program(source, "c++", {"arch": f"sm_{dev.arch}"}).compile("cubin").get_kernel("fault")
event = dev.create_event()
launch(stream, LaunchConfig(grid=1, block=1), kernel, 64)
try:
    stream.sync()
except CUDAError as error:
    print(error.name, error.call, error.status)
stream.close()
event.close()
"""
    )
    assert (done.stdout, done.stderr) == ("CUDA_ERROR_ILLEGAL_ADDRESS cuStreamSynchronize 700\n", "")
