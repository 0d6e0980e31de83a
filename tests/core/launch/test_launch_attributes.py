"""The other attributes of launches: what they take, what the driver gets, and that such launches run."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from cupola import EventOptions, LaunchConfig, launch
from cupola.bindings.driver import CUlaunchAttribute
from cupola.core.launch._launch_attributes import ATTRIBUTES, convert


def config(**attributes):
    return LaunchConfig(grid=2, block=32, **attributes)


def value_of(name, value):
    """The union's members as the bindings read the bytes that the driver gets."""
    attribute = CUlaunchAttribute()
    packed = convert(name, value)[1]
    attribute.id = ATTRIBUTES[name][0]
    ctypes.memmove(attribute.getPtr() + 8, packed, len(packed))
    return attribute.value


# name, given, remembered
ACCEPTED = [
    ("mem_sync_domain", "remote", "remote"),
    ("cluster_scheduling_policy", "spread", "spread"),
    ("cluster_scheduling_policy", "load_balancing", "load_balancing"),
    ("preferred_shared_memory_carveout", 50, 50),
    ("preferred_shared_memory_carveout", np.int64(100), 100),
    ("portable_cluster_size_mode", "allow_non_portable", "allow_non_portable"),
    ("shared_memory_mode", "prefer_oversized", "prefer_oversized"),
    ("nvlink_util_centric_scheduling", 1, True),
    ("device_updatable_kernel_node", True, True),
    ("priority", 0, 0),
    ("priority", -1, -1),
]


@pytest.mark.parametrize(("name", "given", "remembered"), ACCEPTED)
def test_values(device, name, given, remembered):
    one = config(**{name: given})
    assert getattr(one, name) == remembered
    assert repr(one).endswith(f"programmatic_stream_serialization=False, {name}={remembered!r})")
    other = config()
    assert getattr(other, name) is None and one != other
    setattr(other, name, given)
    assert one == other and hash(one) == hash(other)
    setattr(other, name, None)
    assert other == config() and getattr(other, name) is None


@pytest.mark.parametrize(
    ("name", "given", "error", "text"),
    [
        ("priority", 5, ValueError, r"priority must be within \[-?\d+, 0\], the range of .*, got 5"),
        ("priority", "high", TypeError, "priority must be an int, not str"),
        ("mem_sync_domain", "near", ValueError, "one of 'default', 'remote', got 'near'"),
        ("mem_sync_domain", 1, ValueError, "one of 'default', 'remote'"),
        ("mem_sync_domain_map", (0, 99), ValueError, r"within \[0, \d+\]: .* has \d+ domains?, got 99"),
        ("mem_sync_domain_map", 1, TypeError, "a pair"),
        ("preferred_shared_memory_carveout", 101, ValueError, r"within \[0, 100\] percent, got 101"),
        ("preferred_shared_memory_carveout", -1, ValueError, "percent"),
        ("cluster_scheduling_policy", "none", ValueError, "'spread', 'load_balancing'"),
        ("preferred_cluster", 2, ValueError, "needs a cluster"),
        ("preferred_cluster", (1, 2, 3, 4), ValueError, "at most 3"),
        ("preferred_cluster", 0, ValueError, r"within \[1"),
        ("programmatic_event", 5, TypeError, "programmatic_event must be an Event, not int"),
        ("launch_completion_event", None.__class__, TypeError, "must be an Event"),
        ("access_policy_window", 5, TypeError, "must be a dict with memory"),
        ("access_policy_window", {"memory": 64}, TypeError, "needs the size"),
        ("access_policy_window", {"memory": 64, "sise": 5}, TypeError, "must be a dict"),
        ("access_policy_window", {"memory": 64, "size": 1 << 60}, ValueError, r"within \[0, \d+\] bytes on "),
        ("access_policy_window", {"memory": 64, "size": 0, "hit_ratio": 2}, ValueError, r"within \[0, 1\], got 2"),
        (
            "access_policy_window",
            {"memory": 64, "size": 0, "miss": "persisting"},
            ValueError,
            "miss normal or streaming",
        ),
        ("speed", 1, TypeError, "LaunchConfig has no field 'speed'"),
        ("sizeof", 1, TypeError, "LaunchConfig has no field 'sizeof'$"),
    ],
)
def test_bad(device, name, given, error, text):
    with pytest.raises(error, match=text):
        config(**{name: given})
    if "no field" not in text:
        other = config(mem_sync_domain="remote")
        with pytest.raises(error, match=text):
            setattr(other, name, given)
        assert other == config(mem_sync_domain="remote")


def test_the_driver_gets_the_right_members(device, stream):
    event = device.create_event()
    buffer = device.allocate(256, stream=stream)
    assert value_of("priority", 0).priority == 0
    assert int(value_of("mem_sync_domain", "remote").memSyncDomain) == 1
    assert int(value_of("cluster_scheduling_policy", "load_balancing").clusterSchedulingPolicyPreference) == 2
    assert value_of("preferred_shared_memory_carveout", 25).sharedMemCarveout == 25
    assert value_of("nvlink_util_centric_scheduling", True).nvlinkUtilCentricScheduling == 1
    assert int(value_of("portable_cluster_size_mode", "require_portable").portableClusterSizeMode) == 1
    assert int(value_of("shared_memory_mode", "allow_oversized").sharedMemoryMode) == 3
    assert value_of("device_updatable_kernel_node", True).deviceUpdatableKernelNode.deviceUpdatable == 1
    preferred = value_of("preferred_cluster", (4, 2)).preferredClusterDim
    assert (preferred.x, preferred.y, preferred.z) == (4, 2, 1)
    domains = value_of("mem_sync_domain_map", (0, 0)).memSyncDomainMap
    assert (domains.default_, domains.remote) == (0, 0)
    completion = value_of("launch_completion_event", event).launchCompletionEvent
    assert int(completion.event) == int(event.handle) and completion.flags == 0
    programmatic = value_of("programmatic_event", (event, True)).programmaticEvent
    assert int(programmatic.event) == int(event.handle) and programmatic.triggerAtBlockStart == 1
    window = {"memory": buffer, "hit_ratio": 0.5, "miss": "streaming"}
    if device.properties.max_access_policy_window_size >= 256:
        read = value_of("access_policy_window", window).accessPolicyWindow
        assert int(read.base_ptr) == int(buffer.handle) and read.num_bytes == 256 and read.hitRatio == 0.5
        assert (int(read.hitProp), int(read.missProp)) == (2, 1)
    buffer.close(stream)


def test_preferred_cluster(device):
    if not device.properties.cluster_launch:
        pytest.skip("no clusters")
    one = LaunchConfig(grid=4, cluster=2, block=32, preferred_cluster=4)
    assert one.preferred_cluster == (4, 1, 1)
    for bad in (3, (4, 2)):
        with pytest.raises(ValueError, match=r"must be a multiple of the cluster \(2, 1, 1\) and divide the grid"):
            one.preferred_cluster = bad
    with pytest.raises(ValueError, match="needs a cluster"):
        one.cluster = None
    assert one.preferred_cluster == (4, 1, 1)


@pytest.mark.parametrize("options", [{"timing_enabled": True}])
def test_events_that_measure_time_are_refused(device, options):
    event = device.create_event(EventOptions(**options))
    with pytest.raises(ValueError, match="an event without timing"):
        config(launch_completion_event=event)


@pytest.mark.parametrize(
    "attributes",
    [
        {"priority": -1},
        {"mem_sync_domain": "remote"},
        {"mem_sync_domain_map": (0, 0)},
        {"preferred_shared_memory_carveout": 50},
        {"cluster_scheduling_policy": "spread"},
        {"priority": 0, "mem_sync_domain": "default", "preferred_shared_memory_carveout": 0,
         "programmatic_stream_serialization": True},
    ],
    ids=repr,
)  # fmt: skip
def test_launches_run(device, stream, module, out, attributes):
    launch(stream, config(**attributes), module.get_kernel("sum_blocks"), out)
    module.get_kernel("sum_blocks").prepare(config(**attributes))(stream, out)
    stream.sync()
    assert np.from_dlpack(out).view(np.uint32)[0] == 2 * (2 + (1 << 8))


def test_access_policy_window(device, stream, module, out):
    if device.properties.max_access_policy_window_size < 256:
        pytest.skip("the device has no such windows")
    one = config(access_policy_window={"memory": out, "hit_ratio": 1, "hit": "streaming"})
    assert dict(one.access_policy_window) == {
        "memory": out, "size": 256, "hit_ratio": 1.0, "hit": "streaming", "miss": "normal",
    }  # fmt: skip
    launch(stream, one, module.get_kernel("sum_blocks"), out)
    stream.sync()
    assert np.from_dlpack(out).view(np.uint32)[0] == 2 + (1 << 8)


@pytest.mark.parametrize("name", ["launch_completion_event", "programmatic_event"])
def test_events(device, stream, module, out, name):
    if name == "programmatic_event" and device.compute_capability < (9, 0):
        pytest.skip("needs compute capability 9.0")
    event, other = device.create_event(), device.create_stream()
    one = config(**{name: event})
    assert getattr(one, name) == (event if name == "launch_completion_event" else (event, False))
    launch(stream, one, module.get_kernel("sum_blocks"), out)
    other.wait(event)
    launch(other, config(), module.get_kernel("nothing"))
    other.sync()
    event.sync()
    stream.sync()
    assert event.is_done and np.from_dlpack(out).view(np.uint32)[0] == 2 + (1 << 8)
    other.close()


def test_device_updatable_nodes_are_for_captures(device, stream, module):
    from cupola import CUDAError

    one = config(device_updatable_kernel_node=True)
    assert one.device_node == 0
    with pytest.raises(CUDAError):
        launch(stream, one, module.get_kernel("nothing"))


def test_plain_configs_touch_no_driver(run_python):
    done = run_python(
        "from cupola import LaunchConfig\n"
        "LaunchConfig(grid=1, block=1)\n"
        "from cupola.bindings import driver\n"
        "print(driver._provider_name())"
    )
    assert done.stdout.strip() == "None", done.stderr


def test_the_number_of_attributes_is_that_of_the_driver():
    """So that a new one is not forgotten: the launch attributes of CUDA 13.x that are not those of streams only."""
    from cupola.bindings.driver import CUlaunchAttributeID

    own = {"CLUSTER_DIMENSION", "COOPERATIVE", "PROGRAMMATIC_STREAM_SERIALIZATION"}
    not_of_launches = {"IGNORE", "SYNCHRONIZATION_POLICY"}
    named = {
        name.removeprefix("CU_LAUNCH_ATTRIBUTE_"): int(item) for name, item in CUlaunchAttributeID.__members__.items()
    }
    rest = {number for name, number in named.items() if name not in own | not_of_launches and name != "MAX"}
    assert {number for number, _ in ATTRIBUTES.values()} == rest
