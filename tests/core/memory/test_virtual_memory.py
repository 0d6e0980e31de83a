"""Virtual memory: options, growth in place and by moving, access, and undoing what fails half-way."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path

import numpy as np
import pytest

from cupola import (
    Buffer,
    CUDAError,
    Device,
    LaunchConfig,
    MemoryResource,
    Program,
    VirtualMemoryResource,
    VirtualMemoryResourceOptions,
    launch,
)
from cupola.bindings import driver
from cupola.core.memory import _mapping
from cupola.typing import VirtualMemoryAccessType, VirtualMemoryAllocationType, VirtualMemoryLocationType
from tests.conftest import on_cpu_device
from tests.cpu.driver.calls import ok

PROGRAMS = Path(__file__).with_name("programs")

SOURCE = """
extern "C" __global__ void count(long long* x, long long n) {
    for (long long i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) x[i] += i;
}
extern "C" __global__ void last(const int* x, int n, int* out) { *out = x[n - 1]; }
"""


@pytest.fixture(scope="module")
def code():
    from cupola import Device

    Device(0).set_current()
    return Program(SOURCE, "c++", {"arch": f"sm_{Device(0).arch}"}).compile("cubin")


@pytest.fixture
def resource(device):
    if not device.properties.virtual_memory_management_supported:
        pytest.skip("the device has no virtual memory management")
    made = VirtualMemoryResource(device)
    yield made
    device.sync()
    gc.collect()
    assert not made._ranges, "all memory was given back"


@pytest.fixture
def step(resource) -> int:
    return resource._kind()[1]


def bytes_of(buffer, stream) -> np.ndarray:
    back = np.empty(buffer.size, np.uint8)
    buffer.copy_to(back, stream=stream)
    stream.sync()
    return back


# --- allocating -------------------------------------------------------------------------------------------


def test_the_size_is_rounded_up(device, resource, step, stream):
    assert (resource.device, resource.device_id) == (device, 0)
    assert (resource.is_device_accessible, resource.is_host_accessible, resource.is_managed) == (True, False, False)
    assert repr(resource) == f"<VirtualMemoryResource device={device}>"
    assert resource.config == VirtualMemoryResourceOptions()
    with resource.allocate(1000) as buffer:
        assert buffer.size == step and buffer.memory_resource is resource and buffer.device_id == 0
        assert buffer.is_device_accessible and not buffer.is_host_accessible
        buffer.fill(7, stream=stream)
        assert (bytes_of(buffer, stream) == 7).all()
    with resource.allocate(step + 1, stream=stream) as buffer:
        assert buffer.size == 2 * step
        buffer.close(stream)
    with pytest.warns(DeprecationWarning, match="stream=stream"):
        resource.allocate(1, stream).close(stream)


OPTIONS = {
    "minimum": {"granularity": "minimum"},
    "no handle": {"handle_type": None},
    "aligned": {"addr_align": 1 << 26},
    "no alignment": {"addr_align": 0},
    "enums": {"location_type": "device", "allocation_type": "pinned", "self_access": "rw"},
}


@pytest.mark.parametrize("name", OPTIONS)
def test_options(device, resource, stream, name):
    other = VirtualMemoryResource(device, OPTIONS[name])
    with other.allocate(100) as buffer:
        assert buffer.handle % (other.config.addr_align or 1) == 0
        buffer.fill(1, stream=stream)
        assert (bytes_of(buffer, stream) == 1).all()


def test_an_address_to_prefer(device, resource, step):
    base = int(ok(driver.cuMemAddressReserve(4 * step, 0, 0, 0)))
    ok(driver.cuMemAddressFree(base, 4 * step))
    with VirtualMemoryResource(device, {"addr_hint": base}).allocate(step) as buffer:
        assert buffer.handle == base


@pytest.mark.parametrize("location", ["host", "host_numa", "host_numa_current"])
def test_host_memory(device, stream, location):
    needed = (
        "host_virtual_memory_management_supported"
        if location == "host"
        else ("host_numa_virtual_memory_management_supported")
    )
    if not getattr(device.properties, needed):
        pytest.skip("the device has no virtual memory management for the host")
    resource = VirtualMemoryResource(device, {"location_type": location, "peers": [device]})
    assert (resource.device, resource.device_id) == (None, -1)
    assert (resource.is_device_accessible, resource.is_host_accessible) == (False, True)
    assert repr(resource) == "<VirtualMemoryResource device=None>"
    with resource.allocate(64) as buffer:
        assert buffer.device_id == -1 and buffer.__dlpack_device__() == (1, 0)
        np.from_dlpack(buffer)[:] = 5
        with device.allocate(buffer.size, stream=stream) as copy:
            copy.copy_from(buffer, stream=stream)
            assert (bytes_of(copy, stream) == 5).all()


def test_a_device_fills_no_memory_that_it_has_no_access_to(device, stream):
    if not device.properties.host_virtual_memory_management_supported:
        pytest.skip("the device has no virtual memory management for the host")
    with VirtualMemoryResource(device, {"location_type": "host"}).allocate(64) as buffer:
        with pytest.raises(CUDAError, match="CUDA_ERROR_INVALID_VALUE"):
            buffer.fill(1, stream=stream)
        np.from_dlpack(buffer)[:] = 1


BAD_OPTIONS = [
    ({"allocation_type": "paged"}, ValueError, "Unsupported allocation_type: 'paged'"),
    ({"handle_type": "letter"}, ValueError, "Unsupported handle_type: 'letter'"),
    ({"handle_type": "win32"}, NotImplementedError, "win32_kmt"),
    ({"granularity": "large"}, ValueError, "Unsupported granularity: 'large'; it must be 'minimum', 'recommended'"),
    ({"self_access": "w"}, ValueError, "Unknown access spec: 'w'"),
    ({"peers": [0], "peer_access": "x"}, ValueError, "Unknown access spec"),
]


@pytest.mark.parametrize(("options", "error", "text"), BAD_OPTIONS, ids=[str(o[0]) for o in BAD_OPTIONS])
def test_bad_options_are_seen_when_they_are_used(device, resource, options, error, text):
    other = VirtualMemoryResource(device, options)
    with pytest.raises(error, match=text):
        other.allocate(1)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((99,), ValueError),
        ((0, {"colour": "red"}), TypeError),
        ((0, 5), TypeError),
        ((0, {"location_type": "moon"}), ValueError),
    ],
)
def test_bad_resources(device, arguments, error):
    with pytest.raises(error):
        VirtualMemoryResource(*arguments)


def test_devices_that_cannot(device, resource, monkeypatch):
    class Poor:
        properties = type(
            "", (), {"virtual_memory_management_supported": 0, "gpu_direct_rdma_with_cuda_vmm_supported": 0}
        )
        device_id = 0

    monkeypatch.setattr("cupola.core.memory._virtual_memory.Device", lambda number: Poor)
    with pytest.raises(RuntimeError, match="does not support virtual memory management"):
        VirtualMemoryResource(0)
    assert VirtualMemoryResource(0, {"location_type": "host"}).device is None
    Poor.properties.virtual_memory_management_supported = 1
    with pytest.raises(RuntimeError, match="does not support GPUDirect RDMA"):
        VirtualMemoryResource(0, {"gpu_direct_rdma": True})


def test_the_spellings_of_options_are_enums():
    options = VirtualMemoryResourceOptions(location_type="host", handle_type=None, granularity="nonsense", peers=[1])
    assert options.allocation_type is VirtualMemoryAllocationType.PINNED
    assert options.location_type is VirtualMemoryLocationType.HOST
    assert (options.handle_type, options.granularity, options.peers) == (None, "nonsense", (1,))
    assert options.peer_access == "rw" and isinstance(options.peer_access, VirtualMemoryAccessType)


def test_bad_sizes_and_streams(resource):
    with pytest.raises(CUDAError):
        resource.allocate(0)
    with pytest.raises(OverflowError):
        resource.allocate(-1)
    with pytest.raises(CUDAError):
        resource.allocate(1 << 50)
    with pytest.raises(TypeError):
        resource.allocate(1, stream="stream")
    with pytest.raises(TypeError):
        resource.allocate(1.5)
    with pytest.raises(ValueError, match="no memory at 0x1000"):
        resource.deallocate(0x1000, 1)


# --- releasing --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["close", "close on a stream", "collect", "deallocate"])
def test_memory_is_given_back(resource, stream, how):
    buffer = resource.allocate(1)
    address = buffer.handle
    buffer.fill(1, stream=stream)
    if how == "close":
        stream.sync()
        buffer.close()
    elif how == "close on a stream":
        buffer.close(stream)
    elif how == "collect":
        stream.sync()
        del buffer
    else:
        stream.sync()
        size = buffer.size
        buffer = None
        again = resource.allocate(size)
        address = again.handle
        resource.deallocate(again.handle, again.size, stream=stream)
        _mapping.empty(again)
    gc.collect()
    assert not resource._ranges and not Buffer.from_handle(address, 1).is_device_accessible


def test_buffers_keep_the_resource(device, resource):
    other = VirtualMemoryResource(device)
    gone = weakref.ref(other)
    buffer = other.allocate(1)
    del other
    gc.collect()
    assert gone() is not None
    buffer.close()
    gc.collect()
    assert gone() is None


STEPS = ["reserve", "create", "map_at", "set_access", "make_buffer"]


@pytest.mark.cpu_only  # counts the memory of the device, which others use on a GPU
@pytest.mark.parametrize("step_that_fails", STEPS)
@pytest.mark.parametrize("what", ["allocate", "extend", "move"])
def test_what_fails_is_undone(device, resource, step, stream, monkeypatch, step_that_fails, what):
    buffer = resource.allocate(step)
    blocker = None
    if what == "move":
        blocker = take_addresses_behind(buffer, step)
    buffer.fill(3, stream=stream)
    stream.sync()

    def fail(*arguments):
        raise CUDAError(f"{step_that_fails} failed")

    before, _ = ok(driver.cuMemGetInfo())
    known = [(list(r.pieces), list(r.reservations)) for r in resource._ranges.values()]
    with monkeypatch.context() as patch:
        if step_that_fails == "create":
            patch.setattr(resource, "_kind", lambda: (type("", (), {"create": fail}), step), raising=False)
        elif step_that_fails == "set_access" and what != "allocate":
            real, calls = _mapping.set_access, []
            patch.setattr(_mapping, "set_access", lambda *a: fail() if calls else calls.append(real(*a)))
        else:
            patch.setattr(_mapping, step_that_fails, fail)
        if step_that_fails == "make_buffer" and what == "extend":
            buffer.close()
            return  # it makes none
        with pytest.raises(CUDAError, match=f"{step_that_fails} failed"):
            resource.allocate(step) if what == "allocate" else resource.modify_allocation(buffer, 3 * step)
    assert ok(driver.cuMemGetInfo())[0] == before
    assert [(r.pieces, r.reservations) for r in resource._ranges.values()] == known
    assert buffer.size == step and (bytes_of(buffer, stream) == 3).all()
    buffer.close()
    if blocker:
        ok(driver.cuMemAddressFree(*blocker))


# --- growing ----------------------------------------------------------------------------------------------


def take_addresses_behind(buffer, step):
    """Reserve the addresses behind a buffer, so that it cannot grow in place; None when somebody has them already."""
    end = buffer.handle + buffer.size
    base = int(ok(driver.cuMemAddressReserve(step, 0, end, 0)))
    if base == end:
        return base, step
    ok(driver.cuMemAddressFree(base, step))
    return None


@pytest.mark.parametrize("in_place", [True, False])
def test_growing(resource, step, stream, code, in_place):
    buffer = resource.allocate(step)
    buffer.fill(0, stream=stream)
    stream.sync()
    blocker = None if in_place else take_addresses_behind(buffer, step)
    address = buffer.handle
    grown = resource.modify_allocation(buffer, 2 * step + 8)
    if grown is buffer:
        assert grown.handle == address and grown.size == 2 * step + 8
    else:
        assert buffer.is_closed and (buffer.handle, buffer.size) == (0, 0) and grown.size == 3 * step
        assert not Buffer.from_handle(address, 1).is_device_accessible
    assert (grown is buffer) is in_place or blocker is None, "nobody knows what else is behind it on a GPU"
    assert (bytes_of(Buffer.from_handle(grown.handle, step), stream) == 0).all()
    Buffer.from_handle(grown.handle + step, step + 8).fill(0, stream=stream)
    count = (2 * step + 8) // 8
    launch(stream, LaunchConfig(grid=4, block=128), code.get_kernel("count"), grown, count)
    values = bytes_of(grown, stream)[: 8 * count].view(np.int64)
    np.testing.assert_array_equal(values, np.arange(count))
    assert resource.modify_allocation(grown, 3 * step) is grown and grown.size == 3 * step, "it is mapped already"
    assert resource.modify_allocation(grown, step) is grown and grown.size == 3 * step, "nothing shrinks"
    grown.close(stream)
    if blocker:
        ok(driver.cuMemAddressFree(*blocker))


def test_growing_again_and_again(resource, step, stream):
    buffer = resource.allocate(1)
    for n in range(2, 6):
        blocker = take_addresses_behind(buffer, step) if n % 2 else None
        old = buffer.size
        buffer.fill(n, stream=stream)
        stream.sync()
        buffer = resource.modify_allocation(buffer, n * step)
        assert buffer.size == n * step
        assert (bytes_of(Buffer.from_handle(buffer.handle, old), stream) == n).all()
        if blocker:
            ok(driver.cuMemAddressFree(*blocker))
    assert len(resource._ranges) == 1
    buffer.close(stream)


def test_bad_growth(device, resource, step):
    class Other(MemoryResource):
        is_device_accessible, is_host_accessible, device_id = False, True, -1

        def deallocate(self, ptr, size, *, stream):
            pass

    for wrong, error in ((5, TypeError), (None, TypeError), (Buffer.from_handle(0x1000, 8), ValueError)):
        with pytest.raises(error):
            resource.modify_allocation(wrong, step)
    with pytest.raises(ValueError, match="not memory of this resource"):
        resource.modify_allocation(Buffer.from_handle(0x1000, 8, mr=Other()), step)
    with resource.allocate(1) as buffer, pytest.raises(ValueError, match="not memory of this resource"):
        VirtualMemoryResource(device).modify_allocation(buffer, 2 * step)
    with pytest.raises(RuntimeError, match="has been closed"):
        resource.modify_allocation(buffer, step)


@pytest.mark.cpu_only  # a GPU may have no read-only mappings
def test_new_options_stay(resource, step):
    with resource.allocate(step) as buffer:
        assert resource.modify_allocation(buffer, step, {"self_access": "r"}) is buffer
        assert resource.config == VirtualMemoryResourceOptions(self_access="r")
        location = driver.CUmemLocation()
        location.type, location.id = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE, 0
        assert int(ok(driver.cuMemGetAccess(location, buffer.handle))) == 1
        resource.modify_allocation(buffer, 2 * step, VirtualMemoryResourceOptions())
        assert int(ok(driver.cuMemGetAccess(location, buffer.handle))) == 3


# --- access -----------------------------------------------------------------------------------------------

MAY = [
    ({}, [(0, "w"), (0, "r"), (1, "r")], "ok ok CUDA_ERROR_ILLEGAL_ADDRESS"),
    ({"peers": [1]}, [(0, "w"), (1, "w"), (1, "r"), (2, "r")], "ok ok ok CUDA_ERROR_ILLEGAL_ADDRESS"),
    ({"peers": [1, 2], "peer_access": "r"}, [(1, "r"), (2, "r"), (1, "w")], "ok ok CUDA_ERROR_ILLEGAL_ADDRESS"),
    ({"self_access": "r"}, [(0, "r"), (0, "w")], "ok CUDA_ERROR_ILLEGAL_ADDRESS"),
    ({"self_access": None, "peers": [1]}, [(1, "w"), (0, "r")], "ok CUDA_ERROR_ILLEGAL_ADDRESS"),
    ({"peers": [1], "peer_access": None}, [(0, "w"), (1, "r")], "ok CUDA_ERROR_ILLEGAL_ADDRESS"),
    ({"location_type": "host", "peers": [1]}, [(1, "w"), (0, "r")], "ok CUDA_ERROR_ILLEGAL_ADDRESS"),
]


@pytest.mark.parametrize(("options", "calls", "expected"), MAY, ids=[str(m[0]) for m in MAY])
def test_who_may_do_what(run_on_devices, options, calls, expected):
    if "r" in options.values() and not on_cpu_device():
        pytest.skip("a GPU may have no read-only mappings")
    if "location_type" in options and not Device(0).properties.host_virtual_memory_management_supported:
        pytest.skip("the device has no virtual memory management for the host")
    count = 1 + max(number for number, _ in calls)
    done = run_on_devices(count, PROGRAMS / "access.py", OPTIONS=repr(options), CALLS=repr(calls))
    assert done.stdout.split() == expected.split(), done.stderr
