"""Resources, and green contexts made of them."""

from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
import pytest

import cupola
from cupola import (
    ContextOptions,
    CUDAError,
    Device,
    LaunchConfig,
    PinnedMemoryResource,
    SMResourceOptions,
    WorkqueueResourceOptions,
    launch,
)
from cupola.bindings import driver
from tests.conftest import on_cpu_device

VERSION = int(cupola.bindings.driver.cuDriverGetVersion()[1])
SOURCE = r"""
extern "C" __global__ void where(unsigned* seen) {
    unsigned smid;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(smid));
    if (threadIdx.x == 0) seen[blockIdx.x] = smid;
    for (long long begin = clock64(); clock64() - begin < 20000;) ;
}
extern "C" __global__ void add(unsigned* x) { atomicAdd(x, 1); }
"""

pytestmark = pytest.mark.skipif(VERSION < 12050, reason="the driver is older than CUDA 12.5")
structured = pytest.mark.skipif(VERSION < 13010, reason="the driver is older than CUDA 13.1")
by_count = pytest.mark.skipif(VERSION >= 13010, reason="the driver can split into different groups")
h200_model = pytest.mark.skipif(not on_cpu_device(), reason="figures of the modeled GPU; cards of a name differ")


@pytest.fixture
def device():
    device = Device(0)
    device.set_current()
    yield device
    device.set_current()


@pytest.fixture
def sm(device):
    return device.resources.sm


@pytest.fixture
def green(device, sm):
    """A green context of 16 multiprocessors."""
    groups, _rest = sm.split(SMResourceOptions(count=16))
    return device.create_context(ContextOptions(groups))


@pytest.fixture
def kernels(device):
    code = cupola.Program(SOURCE, "c++").compile("cubin")
    return {name: code.get_kernel(name) for name in ("where", "add")}


def sizes(result):
    groups, rest = result
    return [group.sm_count for group in groups], rest.sm_count


# ---- what there is ---------------------------------------------------------------------------------------------------


def test_resources_of_a_device(device, sm):
    assert sm.sm_count == device.properties.multiprocessor_count
    assert sm.min_partition_size == sm.coscheduled_alignment in (2, 8)
    assert sm.flags == 0 and sm.handle != 0
    assert device.resources is device.resources
    assert device.resources.sm is not device.resources.sm
    assert device.context.resources.sm.sm_count == sm.sm_count
    assert device.create_stream().resources.sm.sm_count == sm.sm_count


def test_resources_need_no_context():
    seen = []
    thread = threading.Thread(target=lambda: seen.append(Device(0).resources.sm.sm_count))
    thread.start()
    thread.join()
    assert seen[0] >= 2


@structured
def test_workqueues(device, green):
    queues = device.resources.workqueue
    assert (queues.sharing_scope, queues.device) == ("device_ctx", device)
    limit = queues.concurrency_limit
    assert limit >= 1 and queues.handle != 0
    assert queues.configure(WorkqueueResourceOptions("green_ctx_balanced")) is None
    assert (queues.sharing_scope, queues.concurrency_limit) == ("green_ctx_balanced", limit)
    queues.configure(WorkqueueResourceOptions(concurrency_limit=2))
    groups, _ = device.resources.sm.split(SMResourceOptions(16))
    context = device.create_context(ContextOptions([*groups, queues]))
    found = context.resources.workqueue
    assert (found.sharing_scope, found.concurrency_limit) == ("green_ctx_balanced", 2)
    assert green.resources.workqueue.sharing_scope == "device_ctx"
    with pytest.raises(TypeError, match="WorkqueueResourceOptions"):
        queues.configure({"concurrency_limit": 2})


@by_count
def test_workqueues_of_an_older_driver(device):
    with pytest.raises(RuntimeError, match="13.1"):
        _ = device.resources.workqueue


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("everybody",), ValueError),
        ((1,), ValueError),
        ((None, 0), ValueError),
        ((None, -1), ValueError),
        ((None, "4"), TypeError),
    ],
)
def test_options_of_workqueues(arguments, error):
    with pytest.raises(error):
        WorkqueueResourceOptions(*arguments)


# ---- splits ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dry_run", [False, True])
def test_split(sm, dry_run):
    (group,), rest = sm.split(SMResourceOptions(16), dry_run=dry_run)
    assert (group.sm_count, rest.sm_count) == (16, sm.sm_count - 16)
    assert group.coscheduled_alignment == group.min_partition_size == sm.coscheduled_alignment
    groups, rest = sm.split(SMResourceOptions(count=[16, 16]), dry_run=dry_run)
    assert [g.sm_count for g in groups] == [16, 16] and rest.sm_count == sm.sm_count - 32


@h200_model
@structured
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (SMResourceOptions(), ([120], 12)),
        (SMResourceOptions(0), ([120], 12)),
        (SMResourceOptions([16, 32]), ([16, 32], 84)),
        (SMResourceOptions([16, None]), ([16, 104], 12)),
        (SMResourceOptions(10, coscheduled_sm_count=2), ([10], 122)),
        (SMResourceOptions(10, backfill=True), ([10], 122)),
        (SMResourceOptions([10, 8], backfill=[True, False]), ([10, 8], 114)),
        (SMResourceOptions([8, 0], [4, 2], backfill=[False, True]), ([8, 124], 0)),
        (SMResourceOptions(32, 8, 16), ([32], 100)),
    ],
)
def test_splits_of_the_modeled_gpu(sm, options, expected):
    assert sizes(sm.split(options)) == expected
    assert sizes(sm.split(options, dry_run=True)) == expected


@by_count
def test_older_drivers_round_up(sm):
    assert sizes(sm.split(SMResourceOptions(10)))[0] == [16]
    for options in (SMResourceOptions([16, 32]), SMResourceOptions(16, coscheduled_sm_count=8)):
        with pytest.raises(RuntimeError, match=r"13\.1"):
            sm.split(options)


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        (SMResourceOptions([]), ValueError, "no entries"),
        (SMResourceOptions(-1), ValueError, "non-negative"),
        (SMResourceOptions([16, -1]), ValueError, "non-negative"),
        (SMResourceOptions(2.5), TypeError, "count"),
        (SMResourceOptions({16: 1}), TypeError, "count"),
        (SMResourceOptions(16, coscheduled_sm_count=[8]), ValueError, "count is not"),
        (SMResourceOptions([16, 16], backfill=[True]), ValueError, "expected 2"),
        ({"count": 16}, TypeError, "SMResourceOptions"),
        (None, TypeError, "SMResourceOptions"),
    ],
)
def test_bad_splits(sm, options, error, match):
    with pytest.raises(error, match=match):
        sm.split(options)


def test_dry_run_is_a_keyword(sm):
    with pytest.raises(TypeError):
        sm.split(SMResourceOptions(16), True)


def test_a_split_that_cannot_be_says_what_can(sm):
    with pytest.raises(CUDAError, match="RESOURCE_CONFIGURATION.*") as caught:
        sm.split(SMResourceOptions(sm.sm_count + 2))
    assert f"of these {sm.sm_count} multiprocessors a group of them can have" in str(caught.value)
    if on_cpu_device():
        assert ("8, 16 ... 120" if VERSION >= 13010 else "8, 16 ... 128 or 132") in str(caught.value)
        begin = "group 0 is to have" if VERSION >= 13010 else "groups of"
        assert f"\n{begin} {sm.sm_count + 2} multiprocessors" in str(caught.value)  # not what was tried to find those


@h200_model
@structured
def test_a_later_group_that_cannot_be_is_named(sm):
    with pytest.raises(CUDAError, match="\ngroup 1 is to have 17 multiprocessors"):
        sm.split(SMResourceOptions([None, 17]))
    with pytest.raises(CUDAError, match="\nnothing is left for group 1"):
        sm.split(SMResourceOptions([None, None]))


@h200_model
@structured
def test_what_each_of_several_groups_can_have(sm):
    with pytest.raises(CUDAError, match=r"each of 3 groups can have 8, 16 \.\.\. 40"):
        sm.split(SMResourceOptions([64, 64, 64]))
    with pytest.raises(CUDAError, match="cannot be split into 40 groups"):
        sm.split(SMResourceOptions([8] * 40))


def test_groups_cannot_be_split_again(sm):
    (group,), _rest = sm.split(SMResourceOptions(16))
    with pytest.raises(CUDAError, match=r"cannot be split again.*context\.resources\.sm"):
        group.split(SMResourceOptions(8))


def test_splits_of_one_resource_in_threads(sm):
    found = []
    threads = [
        threading.Thread(target=lambda: found.extend(sizes(sm.split(SMResourceOptions(16)))[0] for _ in range(50)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [[16]] * 200


# ---- green contexts --------------------------------------------------------------------------------------------------


def test_a_green_context(device, green):
    assert green.is_green and not green.is_closed and not device.context.is_green
    assert green != device.context
    assert green.resources.sm.sm_count == 16
    assert green.device is device


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        (None, ValueError, "resources"),
        (ContextOptions(None), ValueError, "None"),
        (ContextOptions([]), ValueError, "empty"),
        (ContextOptions(5), TypeError, "iterable"),
        (ContextOptions([1]), TypeError, "not of int"),
        ([], TypeError, "ContextOptions"),
        ({}, TypeError, "resources"),
    ],
)
def test_contexts_that_cannot_be_made(device, options, error, match):
    with pytest.raises(error, match=match):
        device.create_context(options)


def test_resources_of_a_dry_run_make_no_context(device, sm):
    groups, rest = sm.split(SMResourceOptions(16), dry_run=True)
    for resources in (groups, [rest]):
        with pytest.raises(ValueError, match="dry-run"):
            device.create_context(ContextOptions(resources))


def test_groups_add_up(device, sm):
    groups, rest = sm.split(SMResourceOptions(count=[16, 16]))
    assert device.create_context({"resources": groups}).resources.sm.sm_count == 32
    assert device.create_context(ContextOptions([rest])).resources.sm.sm_count == sm.sm_count - 32
    assert device.create_context(ContextOptions([sm])).resources.sm.sm_count == sm.sm_count


@structured
def test_groups_of_different_splits(device, sm):
    (one,), _ = sm.split(SMResourceOptions(16))
    (other,), _ = sm.split(SMResourceOptions(32))
    with pytest.raises(CUDAError, match="same split"):
        device.create_context(ContextOptions([one, other]))


def test_a_green_context_of_a_green_context(device, green, kernels):
    (inner,), rest = green.resources.sm.split(SMResourceOptions(8))
    assert (inner.sm_count, rest.sm_count) == (8, 8)
    outside, inside = (places(c, kernels) for c in (green, device.create_context(ContextOptions([inner]))))
    assert inside < outside


def places(context, kernels, stream=None):
    """The multiprocessors on which blocks ran."""
    stream = stream or context.create_stream()
    host = PinnedMemoryResource().allocate(4 * 500, stream=stream)
    launch(stream, LaunchConfig(grid=500, block=32), kernels["where"], host)
    stream.sync()
    return set(np.from_dlpack(host).view(np.uint32).tolist())


def test_kernels_run_on_the_part(device, sm, kernels):
    (group,), rest = sm.split(SMResourceOptions(16))
    one, other = (places(device.create_context(ContextOptions([part])), kernels) for part in (group, rest))
    assert len(one) == 16 and len(other) == rest.sm_count and not one & other


def test_occupancy_and_cooperative_launches(device, green, kernels):
    add, stream = kernels["add"], green.create_stream()
    fits = 16 * add.occupancy.max_active_blocks_per_multiprocessor(1024, 0)
    config = LaunchConfig(grid=16, cluster=2, block=1024)
    assert add.occupancy.max_active_clusters(config, stream=stream) == fits // 2
    memory = device.allocate(4, stream=stream)
    memory.fill(0, stream=stream)
    launch(stream, LaunchConfig(grid=fits, block=1024, is_cooperative=True), add, memory)
    with pytest.raises((CUDAError, ValueError), match="cooperative"):
        launch(stream, LaunchConfig(grid=fits + 1, block=1024, is_cooperative=True), add, memory)
    stream.sync()


# ---- streams and lifetimes -------------------------------------------------------------------------------------------


def test_streams_of_a_green_context(green):
    stream = green.create_stream()
    assert stream.context == green and stream.context.is_green
    assert (stream.is_nonblocking, stream.priority) == (True, 0)
    assert stream.resources.sm.sm_count == 16
    assert green.create_stream({"priority": -2}).priority == -2
    for options, error in (
        ({"nonblocking": False}, ValueError),
        ({"priority": -200}, ValueError),
        ({"colour": 3}, TypeError),
        (3, TypeError),
    ):
        with pytest.raises(error):
            green.create_stream(options)


def test_only_green_contexts_make_streams(device):
    with pytest.raises(RuntimeError, match=r"Device\.create_stream"):
        device.context.create_stream()


def test_current(device, green):
    before = device.set_current(green)
    try:
        assert device.context is green
        stream, event = device.create_stream(), device.create_event()
        assert stream.context == green and event.context == green
        assert device.default_stream.context == green
        assert device.default_stream.resources.sm.sm_count == 16
        assert device.resources.sm.sm_count == device.properties.multiprocessor_count > 16
        with pytest.raises(ValueError, match="non-blocking"):
            device.create_stream(nonblocking=False)
        with pytest.raises(RuntimeError, match="current"):
            green.close()
        device.allocate(64, stream=stream).close()
        device.sync()
    finally:
        assert device.set_current(before) is green
    assert not before.is_green


def test_closed(green, device):
    green.close()
    assert (green.is_closed, green.handle, green.is_green) == (True, None, False)
    assert repr(green) == "<Context handle=0x0 device=0>"
    green.close()
    for use in (lambda: green.resources, green.create_stream, lambda: device.set_current(green)):
        with pytest.raises(RuntimeError, match="Context has been closed"):
            use()


def is_alive(address):
    """Whether a green context of this package has the address."""
    status, _resource = driver.cuCtxGetDevResource(address, driver.CUdevResourceType.CU_DEV_RESOURCE_TYPE_SM)
    return status == 0


@pytest.mark.parametrize("last", ["stream", "event", "context", "resources", "buffer"])
def test_the_last_holder_ends_it(device, sm, last):
    groups, _rest = sm.split(SMResourceOptions(16))
    context = device.create_context(ContextOptions(groups))
    address = int(context.handle)
    stream = context.create_stream()
    holders = {
        "stream": stream,
        "event": stream.record(),
        "context": stream.context,
        "resources": context.resources,
        "buffer": device.allocate(64, stream=stream),
    }
    kept = holders.pop(last)
    holders.clear()
    context.close()
    del stream, context
    gc.collect()
    if last == "stream":
        kept.sync()
        assert kept.context.is_green and kept.resources.sm.sm_count == 16
        kept.record().sync()
    elif last == "event":
        kept.sync()
        assert kept.is_done and kept.context.is_green
    elif last == "context":
        kept.create_stream().sync()
    elif last == "resources":
        assert kept.sm.sm_count == 16
    if on_cpu_device():
        assert is_alive(address)
        del kept
        gc.collect()
        assert not is_alive(address)


def test_a_captured_graph(device, green, kernels):
    stream = green.create_stream()
    host = PinnedMemoryResource().allocate(4 * 500, stream=stream)
    builder = stream.create_graph_builder().begin_building()
    launch(builder, LaunchConfig(grid=500, block=32), kernels["where"], host)
    graph = builder.end_building().complete()
    other = device.create_stream()
    stream.sync()  # the memory was allocated there
    graph.launch(other)
    other.sync()
    assert len(set(np.from_dlpack(host).view(np.uint32).tolist())) == 16


def test_weak_references(device, green, sm):
    for thing in (green, sm, device.resources, green.resources):
        assert weakref.ref(thing)() is thing


def test_threads_share_a_green_context(device, green, kernels):
    found = []

    def work():
        Device(0).set_current()
        found.append(places(green, kernels))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [len(seen) for seen in found] == [16] * 3
