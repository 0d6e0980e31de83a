"""Managed memory: pools, the host as a place, advice, moving, discarding."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref

import numpy as np
import pytest

from cupola import (
    Buffer,
    CUDAError,
    Host,
    ManagedBuffer,
    ManagedMemoryResource,
    ManagedMemoryResourceOptions,
    MemoryResource,
    utils,
)
from cupola.bindings import driver
from tests.cpu.driver.calls import ok

SIZE = 1 << 20


@pytest.fixture
def managed(device):
    """Managed memory from outside any pool, of which every advice can be given."""
    if not device.properties.concurrent_managed_access:
        pytest.skip("the device has no concurrent managed access")
    address = ok(driver.cuMemAllocManaged(SIZE, 1))
    buffer = ManagedBuffer.from_handle(address, SIZE)
    yield buffer
    device.sync()
    ok(driver.cuMemFree(address))


# --- the host ---------------------------------------------------------------------------------------------


def test_hosts_are_one_object_each():
    assert Host() is Host() is Host(None)
    assert Host(1) is Host(numa_id=1) is not Host(2)
    assert Host.numa_current() is Host(is_numa_current=True) is not Host()
    assert (Host(3).numa_id, Host(3).is_numa_current) == (3, False)
    assert (Host().numa_id, Host.numa_current().numa_id, Host.numa_current().is_numa_current) == (None, None, True)
    assert [repr(h) for h in (Host(), Host(7), Host.numa_current())] == [
        "Host()",
        "Host(numa_id=7)",
        "Host.numa_current()",
    ]
    assert len({Host(), Host(), Host(1)}) == 2 and Host() != Host(0) and weakref.ref(Host())() is Host()


@pytest.mark.parametrize("host", [Host(), Host(4), Host.numa_current()], ids=repr)
def test_copies_of_a_host_are_the_host(host):
    assert pickle.loads(pickle.dumps(host)) is copy.copy(host) is copy.deepcopy(host) is host


@pytest.mark.parametrize("arguments", [(-1,), (True,), (1.5,), ("0",)])
def test_bad_hosts(arguments):
    with pytest.raises(ValueError, match="numa_id"):
        Host(*arguments)
    with pytest.raises(ValueError, match="together"):
        Host(0, is_numa_current=True)
    with pytest.raises(TypeError):
        Host(0, True)
    for name in ("numa_id", "anything"):
        with pytest.raises(AttributeError):
            setattr(Host(), name, 0)


# --- pools ------------------------------------------------------------------------------------------------

PLACES = [
    (None, None, None, -1),
    ({}, None, None, -1),
    ({"preferred_location": 0}, "device", 0, 0),
    ({"preferred_location": -1}, "host", None, -1),
    ({"preferred_location_type": "device", "preferred_location": 0}, "device", 0, 0),
    ({"preferred_location_type": "host"}, "host", None, -1),
    ({"preferred_location_type": "host_numa", "preferred_location": 0}, "host_numa", 0, -1),
    ({"preferred_location_type": "host_numa"}, "host_numa", ..., -1),
]


@pytest.mark.usefixtures("cuda_13")
@pytest.mark.parametrize(("options", "kind", "number", "device_id"), PLACES, ids=[str(p[0]) for p in PLACES])
def test_pools_of_managed_memory(device, stream, options, kind, number, device_id):
    if options == {"preferred_location_type": "host_numa"} and device.properties.host_numa_id < 0:
        pytest.skip("the NUMA node of the device is not known")
    pool = ManagedMemoryResource(None if options is None else ManagedMemoryResourceOptions(**options))
    if kind is None:
        assert pool.preferred_location is None
    else:
        assert pool.preferred_location[0] == kind
        assert number is ... or pool.preferred_location[1] == number
    assert pool.device_id == device_id and pool.is_handle_owned is (options is not None)
    assert (pool.is_managed, pool.is_device_accessible, pool.is_host_accessible) == (True, True, True)
    with pool.allocate(SIZE, stream=stream) as buffer:
        assert type(buffer) is ManagedBuffer and buffer.memory_resource is pool
        assert buffer.is_managed and buffer.__dlpack_device__() == (13, 0)
        assert repr(buffer) == f"<Buffer ptr={buffer.handle:#x} size={SIZE}>"
        buffer.note = "has a dict"
        buffer.fill(3, stream=stream)
        buffer.prefetch(Host(), stream=stream)
        stream.sync()
        assert (np.from_dlpack(buffer) == 3).all()
    assert type(pool.allocate(0, stream=stream)) is ManagedBuffer
    assert repr(pool).startswith("<ManagedMemoryResource preferred_location=")
    pool.close()


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"preferred_location": -2}, ValueError, "-1 for the host"),
        ({"preferred_location": "host"}, TypeError, "preferred_location_type takes 'host'"),
        ({"preferred_location_type": "device"}, ValueError, "number of a device"),
        ({"preferred_location_type": "device", "preferred_location": -1}, ValueError, "number of a device"),
        ({"preferred_location_type": "host", "preferred_location": 0}, ValueError, "must be None"),
        ({"preferred_location_type": "host_numa", "preferred_location": -1}, ValueError, "NUMA node"),
        ({"preferred_location_type": "moon"}, ValueError, "'device', 'host', 'host_numa'"),
        ({"location": 0}, TypeError, "no option"),
        (5, TypeError, "options must be"),
    ],
)
def test_bad_options(device, options, error, text):
    with pytest.raises(error, match=text):
        ManagedMemoryResource(options)


@pytest.mark.usefixtures("cuda_13")
def test_a_device_that_does_not_exist(device):
    with pytest.raises(CUDAError):
        ManagedMemoryResource({"preferred_location": 99})


# --- wrapping ---------------------------------------------------------------------------------------------


def test_wrapping(managed):
    class Mine(ManagedBuffer):
        pass

    owner = object()
    wrapped = Mine.from_handle(managed.handle, SIZE, owner=owner)
    assert type(wrapped) is Mine and wrapped.owner is owner and wrapped == managed
    assert wrapped.is_managed and wrapped.memory_resource is None
    assert type(Buffer.from_handle(managed.handle, SIZE)) is Buffer
    with pytest.raises(ValueError, match="together"):
        Mine.from_handle(0, 0, MemoryResource(), owner)
    with pytest.raises(RuntimeError, match="instantiated"):
        ManagedBuffer()


OPERATIONS = {
    "read_mostly": lambda b, s: b.read_mostly,
    "read_mostly =": lambda b, s: setattr(b, "read_mostly", True),
    "preferred_location": lambda b, s: b.preferred_location,
    "preferred_location =": lambda b, s: setattr(b, "preferred_location", Host()),
    "accessed_by": lambda b, s: len(b.accessed_by),
    "accessed_by =": lambda b, s: setattr(b, "accessed_by", {Host()}),
    "prefetch": lambda b, s: b.prefetch(Host(), stream=s),
    "discard": lambda b, s: b.discard(stream=s),
    "discard_prefetch": lambda b, s: b.discard_prefetch(Host(), stream=s),
    "prefetch_batch": lambda b, s: utils.prefetch_batch(s, [b], Host()),
    "discard_batch": lambda b, s: utils.discard_batch(s, [b]),
    "discard_prefetch_batch": lambda b, s: utils.discard_prefetch_batch(s, [b], Host()),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_memory_that_is_not_managed(device, stream, name):
    with device.allocate(64, stream=stream) as plain:
        wrapped = ManagedBuffer.from_handle(plain.handle, 64)
        with pytest.raises(ValueError, match="requires a managed-memory allocation"):
            OPERATIONS[name](wrapped, stream)
        wrapped.close()
        with pytest.raises(RuntimeError, match="has been closed"):
            OPERATIONS[name](wrapped, stream)


# --- advice -----------------------------------------------------------------------------------------------


def test_read_mostly(managed):
    assert managed.read_mostly is False
    for value, read in ((True, True), (0, False), ("yes", True), (None, False)):
        managed.read_mostly = value
        assert managed.read_mostly is read


@pytest.mark.usefixtures("cuda_13")
def test_memory_of_pools_takes_no_advice(stream):
    with ManagedMemoryResource({}).allocate(SIZE, stream=stream) as buffer:
        with pytest.raises(CUDAError, match="CUDA_ERROR_NOT_SUPPORTED"):
            buffer.read_mostly = True
        assert buffer.read_mostly is False


def test_preferred_location(device, managed):
    assert managed.preferred_location is None
    for place in (device, Host(), None):
        managed.preferred_location = place
        assert managed.preferred_location == place
    for wrong in (0, "host"):
        with pytest.raises(TypeError, match="Device or a Host"):
            managed.preferred_location = wrong


@pytest.mark.usefixtures("cuda_13")
@pytest.mark.cpu_only  # which nodes there are depends on the machine
def test_preferred_numa_nodes(managed):
    managed.preferred_location = Host(0)
    assert managed.preferred_location is Host(0)
    with pytest.raises(CUDAError, match="no NUMA node 99"):
        managed.preferred_location = Host(99)


def test_accessed_by(device, managed):
    places = managed.accessed_by
    assert len(places) == 0 and repr(places) == "AccessedBySetProxy(set())" and places == set()
    places.add(device)
    assert places == {device} and device in places and Host() not in places and list(places) == [device]
    places |= {Host()}
    assert managed.accessed_by == {device, Host()} and "Host()" in repr(places)
    assert type(places & {Host()}) is set and places - {device} == {Host()}
    for ignored in (Host(5), Host.numa_current(), "nonsense", 0):
        places.discard(ignored)
    places.discard(device)
    places.discard(device)
    assert places == {Host()}
    with pytest.raises(KeyError):
        places.remove(device)
    places.clear()
    assert not places


def test_assigning_accessed_by(device, managed):
    managed.accessed_by = [device]
    managed.accessed_by = (Host(),)
    assert managed.accessed_by == {Host()}
    for wrong, error in (
        ([device, Host(0)], ValueError),
        ([device, Host.numa_current()], ValueError),
        ([device, 0], TypeError),
    ):
        with pytest.raises(error):
            managed.accessed_by = wrong
        assert managed.accessed_by == {Host()}, "nothing changes before all are checked"
    with pytest.raises(ValueError, match="as a whole"):
        managed.accessed_by.add(Host(0))
    with pytest.raises(TypeError):
        managed.accessed_by.add("host")
    managed.accessed_by = ()
    assert managed.accessed_by == set()


# --- moving -----------------------------------------------------------------------------------------------


def last_prefetch(buffer) -> int:
    attribute = driver.CUmem_range_attribute.CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION
    return int(ok(driver.cuMemRangeGetAttribute(4, attribute, buffer.handle, buffer.size)))


def test_prefetching(device, stream, managed):
    for place, number in ((device, 0), (Host(), driver.CU_DEVICE_CPU)):
        managed.prefetch(place, stream=stream)
        stream.sync()
        assert last_prefetch(managed) == number


@pytest.mark.usefixtures("cuda_13")
def test_discarding(device, stream, managed):
    managed.fill(1, stream=stream)
    managed.discard(stream=stream)
    managed.discard_prefetch(device, stream=stream)
    managed.fill(2, stream=stream)
    stream.sync()
    assert last_prefetch(managed) == 0
    assert (np.from_dlpack(managed) == 2).all()


@pytest.mark.parametrize("call", ["prefetch", "discard_prefetch"])
def test_bad_places(device, stream, managed, call):
    move = getattr(managed, call)
    with pytest.raises(ValueError, match="location is required"):
        move(None, stream=stream)
    for wrong in (0, "host", [device]):
        with pytest.raises(TypeError, match="Device or a Host"):
            move(wrong, stream=stream)
    for wrong in (None, 5):
        with pytest.raises(TypeError, match="[Ss]tream"):
            move(device, stream=wrong)
    with pytest.raises(TypeError, match="stream"):
        move(device)


@pytest.fixture
def three(device, stream, managed):
    parts = [ManagedBuffer.from_handle(managed.handle + i * SIZE // 4, SIZE // 4) for i in range(3)]
    yield parts
    stream.sync()


@pytest.mark.usefixtures("cuda_13")
@pytest.mark.parametrize("which", ["one place", "one each", "in the default stream"])
def test_batches(device, stream, three, which):
    if which == "in the default stream":
        stream = device.default_stream
    places = device if which == "one place" else [Host(), device, device]
    utils.prefetch_batch(stream, three, places)
    stream.sync()
    if which != "in the default stream":  # which cannot run the others
        utils.discard_batch(stream, tuple(three))
        utils.discard_prefetch_batch(stream, three, places)
        stream.sync()


@pytest.mark.usefixtures("cuda_13")
def test_where_batches_go(device, stream, three):
    """On memory of their own: the CPU device keeps advice for whole allocations."""
    apart = [ManagedMemoryResource({}).allocate(SIZE, stream=stream) for _ in range(3)]
    utils.prefetch_batch(stream, apart, [device, Host(), device])
    stream.sync()
    assert [last_prefetch(buffer) for buffer in apart] == [0, driver.CU_DEVICE_CPU, 0]


BATCHES = {
    "prefetch_batch": lambda s, b, p: utils.prefetch_batch(s, b, p),
    "discard_batch": lambda s, b, p: utils.discard_batch(s, b),
    "discard_prefetch_batch": lambda s, b, p: utils.discard_prefetch_batch(s, b, p),
}


@pytest.mark.parametrize("name", BATCHES)
def test_bad_batches(device, stream, three, name):
    run = BATCHES[name]
    cases = [
        (stream, three[0], device, TypeError, "ManagedBuffer"),
        (stream, {three[0]}, device, TypeError, "sequence"),
        (stream, (b for b in three), device, TypeError, "sequence"),
        (stream, [], device, ValueError, "at least one"),
        (stream, [three[0], b"x"], device, TypeError, r"buffers\[1\] must be a Buffer"),
        (None, three, device, TypeError, "stream is required"),
        (5, three, device, TypeError, "Stream or GraphBuilder"),
    ]
    if name != "discard_batch":
        cases += [
            (stream, three, [device], ValueError, "3 buffers and 1 locations"),
            (stream, three, None, ValueError, "location is required"),
            (stream, three, [device, None, device], ValueError, "location is required"),
            (stream, three, "xyz", TypeError, "Device or a Host"),
            (stream, three, 5, TypeError, "locations must be"),
        ]
    for queue, buffers, places, error, text in cases:
        with pytest.raises(error, match=text):
            run(queue, buffers, places)


@pytest.mark.usefixtures("cuda_13")
def test_buffers_keep_the_pool(device, stream):
    pool = ManagedMemoryResource({})
    gone = weakref.ref(pool)
    buffer = pool.allocate(SIZE, stream=stream)
    del pool
    gc.collect()
    assert gone() is not None
    buffer.close()
    gc.collect()
    assert gone() is None
