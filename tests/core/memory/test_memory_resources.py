"""Pools, page-locked memory, and resources written in Python."""

from __future__ import annotations

import gc
import pickle
import threading
from copy import deepcopy

import numpy as np
import pytest

from cupola import (
    Buffer,
    CUDAError,
    DeviceMemoryResource,
    DeviceMemoryResourceOptions,
    LaunchConfig,
    LegacyPinnedMemoryResource,
    MemoryResource,
    PinnedMemoryResource,
    PinnedMemoryResourceOptions,
    Program,
    VirtualMemoryResourceOptions,
    launch,
)
from cupola.bindings import driver
from cupola.core.memory._unpooled import SynchronousMemoryResource

ATTRIBUTES = [
    "release_threshold",
    "reserved_mem_current",
    "reserved_mem_high",
    "reuse_allow_internal_dependencies",
    "reuse_allow_opportunistic",
    "reuse_follow_event_dependencies",
    "used_mem_current",
    "used_mem_high",
]


def test_the_base_class_says_what_is_missing():
    resource = MemoryResource()
    for use in (
        lambda: resource.allocate(1, stream=None),
        lambda: resource.deallocate(1, 1, stream=None),
        lambda: resource.is_device_accessible,
        lambda: resource.is_host_accessible,
        lambda: resource.device_id,
    ):
        with pytest.raises(TypeError, match="must be implemented by subclasses: MemoryResource does not"):
            use()
    assert resource.is_managed is False
    assert resource == resource != MemoryResource()


@pytest.fixture(params=["device", "own device", "pinned", "own pinned"])
def pool(request, device):
    make = {
        "device": lambda: DeviceMemoryResource(device),
        "own device": lambda: DeviceMemoryResource(0, {"max_size": 1 << 26}),
        "pinned": PinnedMemoryResource,
        "own pinned": lambda: PinnedMemoryResource(PinnedMemoryResourceOptions()),
    }
    resource = make[request.param]()
    yield resource
    resource.close()


def test_pools(pool, stream):
    on_device = isinstance(pool, DeviceMemoryResource)
    assert pool.is_device_accessible and pool.is_host_accessible is not on_device
    assert pool.device_id == (0 if on_device else -1)
    assert (pool.is_managed, pool.is_ipc_enabled, pool.is_mapped, pool.uuid) == (False, False, False, None)
    assert int(pool.handle) != 0
    before = pool.attributes.used_mem_current
    buffer = pool.allocate(1000, stream=stream)
    assert buffer.size == 1000 and buffer.memory_resource is pool
    assert buffer.handle % 256 == 0
    assert pool.attributes.used_mem_current > before
    assert pool.attributes.used_mem_high >= pool.attributes.used_mem_current
    buffer.close()
    stream.sync()
    assert pool.attributes.used_mem_current == before


def test_pool_attributes(pool, stream):
    attributes = pool.attributes
    assert attributes is pool.attributes
    assert [name for name in dir(attributes) if not name.startswith("_")] == ATTRIBUTES
    for name in ATTRIBUTES:
        assert type(getattr(attributes, name)) is (bool if name.startswith("reuse") else int)
        with pytest.raises(AttributeError):
            setattr(attributes, name, 0)
    assert repr(attributes).startswith(f"{type(pool).__name__}Attributes(release_threshold=")
    with pytest.raises(RuntimeError, match="attributes"):
        type(attributes)()
    pool.close()
    assert attributes.used_mem_current >= 0


def test_current_pools_keep_their_memory_and_own_pools_do_not(device):
    current, own = DeviceMemoryResource(0), DeviceMemoryResource(0, DeviceMemoryResourceOptions())
    assert not current.is_handle_owned and own.is_handle_owned
    assert current.attributes.release_threshold == 2**64 - 1
    assert own.attributes.release_threshold == 0
    assert int(current.handle) == int(DeviceMemoryResource(device).handle) != int(own.handle)


def test_a_closed_pool_serves_its_buffers(pool, stream):
    buffer = pool.allocate(512, stream=stream)
    pool.close()
    pool.close()
    assert pool.is_closed and int(pool.handle) == 0 and not pool.is_handle_owned
    for use in (lambda: pool.allocate(1, stream=stream), lambda: pool.allocate(0, stream=stream)):
        with pytest.raises(RuntimeError, match=f"{type(pool).__name__} has been closed"):
            use()
    buffer.fill(1, stream=stream)
    stream.sync()
    buffer.close()
    stream.sync()


@pytest.mark.cpu_only  # which says so of a pool that is gone
def test_buffers_keep_their_pool_until_they_are_freed(device, stream):
    resource = DeviceMemoryResource(device, {})
    first, second = (resource.allocate(512, stream=stream) for _ in range(2))
    handle, reserved = resource.handle, driver.CUmemPool_attribute.CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT
    resource.close()
    first.close()
    stream.sync()
    assert driver.cuMemPoolGetAttribute(handle, reserved)[0] == driver.CUresult.CUDA_SUCCESS
    second.close()
    stream.sync()
    assert driver.cuMemPoolGetAttribute(handle, reserved)[0] == driver.CUresult.CUDA_ERROR_INVALID_VALUE


def test_explicit_deallocation(device, stream):
    resource = DeviceMemoryResource(device, {})
    buffer = resource.allocate(4096, stream=stream)
    twin = Buffer.from_handle(buffer.handle, 4096)
    assert twin.memory_resource is None
    buffer.set_deallocation_stream(stream)
    used = resource.attributes.used_mem_current
    other = resource.allocate(4096, stream=stream)
    pointer = other.handle
    assert pointer != buffer.handle
    buffer.close()
    other.close()
    stream.sync()
    assert resource.attributes.used_mem_current < used
    with pytest.raises(CUDAError):
        resource.deallocate(pointer, 4096, stream=stream)


def test_subclasses_of_pools_may_watch_releases(device, stream):
    class Watching(DeviceMemoryResource):
        freed = 0

        def deallocate(self, ptr, size, *, stream):
            self.freed += size
            super().deallocate(ptr, size, stream=stream)

    resource = Watching(device, {})
    resource.allocate(300, stream=stream).close()
    stream.sync()
    assert resource.freed == 300 and resource.attributes.used_mem_current == 0


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: DeviceMemoryResource(99), ValueError),
        (lambda: DeviceMemoryResource(-1), ValueError),
        (lambda: DeviceMemoryResource(0, {"no_such": 1}), TypeError),
        (lambda: DeviceMemoryResource(0, 5), TypeError),
        (lambda: PinnedMemoryResource({"no_such": 1}), TypeError),
        (lambda: PinnedMemoryResource({"numa_id": -1}), ValueError),
    ],
)
def test_bad_pools(device, make, error):
    with pytest.raises(error):
        make()


@pytest.mark.parametrize(
    "make",
    [
        lambda: DeviceMemoryResource(0, {}),
        lambda: PinnedMemoryResource({}),
        DeviceMemoryResourceOptions,
        PinnedMemoryResourceOptions,
        VirtualMemoryResourceOptions,
    ],
)
def test_a_misspelt_attribute_is_an_error(device, make):
    with pytest.raises(AttributeError):
        make().ipc_enable = True


def test_bad_allocations(device, stream):
    resource = DeviceMemoryResource(device)
    with pytest.raises(OverflowError):
        resource.allocate(-1, stream=stream)
    for wrong in (None, 5, "stream"):
        with pytest.raises(TypeError):
            resource.allocate(16, stream=wrong)
    with pytest.raises(MemoryError, match="OUT_OF_MEMORY"):
        resource.allocate(1 << 60, stream=stream)
    with pytest.raises(TypeError):
        resource.allocate(16)


def test_no_pool_allocates_into_a_graph(device, stream):
    builder = stream.create_graph_builder().begin_building()
    with pytest.raises(RuntimeError, match="GraphMemoryResource"):
        device.allocate(16, stream=builder)
    builder.close()


def test_memory_may_be_released_during_a_capture(device, stream):
    pool = DeviceMemoryResource(device, {})
    buffer, other = pool.allocate(512, stream=stream), pool.allocate(512, stream=stream)
    used = pool.attributes.used_mem_current
    builder = stream.create_graph_builder().begin_building()
    del buffer
    gc.collect()
    other.close(builder)
    assert builder.is_building and pool.attributes.used_mem_current == used
    graph = builder.end_building().complete()
    graph.launch(stream)
    pool.allocate(1, stream=stream).close()
    stream.sync()
    assert pool.attributes.used_mem_current == 0


def test_threads_share_a_pool(device):
    resource = DeviceMemoryResource(device, {})
    errors: list[BaseException] = []

    def work() -> None:
        try:
            device_here = type(device)(0)
            device_here.set_current()
            stream = device_here.create_stream()
            for size in range(1, 200):
                resource.allocate(size, stream=stream).close()
            stream.sync()
        except BaseException as error:  # reported by the test
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert resource.attributes.used_mem_current == 0


@pytest.mark.parametrize("make", [LegacyPinnedMemoryResource, lambda: SynchronousMemoryResource(0)])
def test_without_a_pool(device, stream, make):
    resource = make()
    host = resource.is_host_accessible
    assert resource.is_device_accessible
    buffer = resource.allocate(1 << 12)
    assert buffer.size == 1 << 12 and buffer.handle
    buffer.fill(5, stream=stream)
    with PinnedMemoryResource().allocate(1 << 12, stream=stream) as copy:
        buffer.copy_to(copy, stream=stream)
        stream.sync()
        assert (np.from_dlpack(copy) == 5).all()
    buffer.close(stream)
    assert resource.allocate(0).handle == 0
    with pytest.raises(OverflowError):
        resource.allocate(-1)
    with pytest.raises(TypeError):
        resource.allocate(16, stream="stream")
    resource.deallocate(0, 0)
    resource.deallocate(0x1000, 0)  # nothing, which needs no address
    if host:
        assert type(deepcopy(resource)) is type(pickle.loads(pickle.dumps(resource))) is type(resource)
        for use in (lambda: resource.device_id, lambda: resource.allocate(8).device_id):
            with pytest.raises(RuntimeError, match="no device"):
                use()
    else:
        assert resource.device_id == 0


def test_a_resource_in_python_behind_device_allocate(device, stream):
    class Counting(MemoryResource):
        is_device_accessible, is_host_accessible, device_id = True, False, 0

        def __init__(self, source):
            self.source, self.live = source, {}

        def allocate(self, size, *, stream):
            inner = self.source.allocate(size, stream=stream)
            self.live[inner.handle] = inner
            return Buffer.from_handle(inner.handle, size, mr=self, stream=stream)

        def deallocate(self, ptr, size, *, stream):
            self.live.pop(ptr).close(stream)

    resource = Counting(DeviceMemoryResource(device))
    before = device.memory_resource
    device.memory_resource = resource
    try:
        buffer = device.allocate(128, stream=stream)
        assert buffer.memory_resource is resource and len(resource.live) == 1
        copy = buffer.copy_to(stream=stream)
        assert len(resource.live) == 2
        del buffer, copy
        gc.collect()
        assert not resource.live
    finally:
        device.memory_resource = before
    with pytest.raises(TypeError):
        device.memory_resource = "pool"


@pytest.mark.parametrize("options", [None, {}, {"numa_id": 0}])
def test_kernels_reach_pinned_memory(device, stream, options):
    numa = options == {"numa_id": 0}
    properties = device.properties
    if not (properties.host_numa_memory_pools_supported if numa else properties.host_memory_pools_supported):
        pytest.skip("the device has no such pools")
    pool = PinnedMemoryResource(options)
    assert pool._has_access(0)
    assert pool.numa_id == (0 if numa else -1)
    source = 'extern "C" __global__ void k(int* x) { *x += 1; }'
    kernel = Program(source, "c++", {"arch": f"sm_{device.arch}"}).compile("cubin").get_kernel("k")
    with pool.allocate(4, stream=stream) as buffer:
        buffer.fill(0, stream=stream)
        launch(stream, LaunchConfig(grid=1, block=1), kernel, buffer)
        stream.sync()
        assert np.from_dlpack(buffer).view(np.int32) == 1


@pytest.mark.parametrize("make", [LegacyPinnedMemoryResource, lambda: SynchronousMemoryResource(0)])
@pytest.mark.parametrize("default", [True, False], ids=["default stream", "own stream"])
def test_memory_without_a_pool_is_freed_on_threads_without_a_context(device, stream, recwarn, make, default):
    buffers = [make().allocate(1 << 12) for _ in range(3)]
    addresses = [buffer.handle for buffer in buffers]
    if not default:
        for buffer in buffers:
            buffer.set_deallocation_stream(stream)
        del buffer
    thread = threading.Thread(target=buffers.clear)
    thread.start()
    thread.join()
    assert not recwarn.list
    for address in addresses:
        assert not Buffer.from_handle(address, 1 << 12).is_device_accessible


def test_device_memory_without_a_pool_needs_no_current_context(device, recwarn):
    made = []
    thread = threading.Thread(target=lambda: made.append(SynchronousMemoryResource(0).allocate(16)))
    thread.start()
    thread.join()
    assert made[0].is_device_accessible and made[0].size == 16
    made.clear()
    assert not recwarn.list
