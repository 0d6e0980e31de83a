"""Device objects, their properties and what is current."""

from __future__ import annotations

import copy
import pickle
import threading
import weakref

import numpy as np
import pytest

from cupola import Context, CUDAError, Device, MemoryResource
from cupola.core.device import _device_properties


def in_thread(function):
    """Run `function` in a new thread and return its result, or raise what it raised."""
    outcome = []

    def run():
        try:
            outcome.append((function(), None))
        except BaseException as error:
            outcome.append((None, error))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    result, error = outcome[0]
    if error is not None:
        raise error
    return result


class TestConstruction:
    def test_one_object_for_each_device_and_thread(self):
        dev = Device(0)
        assert Device(0) is dev and Device(device_id=0) is dev and Device(dev) is dev
        assert Device.__new__(Device, 0) is dev
        other = in_thread(lambda: Device(0))
        assert other is not dev and other == dev and hash(other) == hash(dev)
        assert Device(other) is other

    def test_integers_of_other_kinds(self):
        assert Device(np.int64(0)) is Device(0) and Device(False) is Device(0)

    def test_none_is_the_current_device(self, device):
        assert Device() is device and Device(None) is device
        assert in_thread(lambda: Device().device_id) == 0

    @pytest.mark.parametrize(
        ("argument", "error", "text"),
        [
            (-1, ValueError, "must be >= 0, got -1"),
            (10_000, ValueError, r"must be within \[0, \d+\), got 10000"),
            ("0", TypeError, "not str"),
            (0.0, TypeError, "not float"),
            ([], TypeError, "not list"),
        ],
    )
    def test_bad_argument(self, argument, error, text):
        with pytest.raises(error, match=text):
            Device(argument)

    @pytest.mark.parametrize("call", [lambda: Device(0, 0), lambda: Device(0, x=1), lambda: Device(ordinal=0)])
    def test_bad_call(self, call):
        with pytest.raises(TypeError, match="one argument: device_id"):
            call()

    def test_subclass_gives_the_same_objects(self):
        class Mine(Device):
            pass

        assert Mine(0) is Device(0) and Mine(device_id=0) is Device(0) and Mine() is Device()

    def test_all_devices(self):
        devices = Device.get_all_devices()
        assert [d.device_id for d in devices] == list(range(len(devices)))
        assert devices[0] is Device(0)

    def test_threads_that_come_and_go(self):
        kept = [in_thread(lambda: weakref.ref(Device(0))) for _ in range(20)]
        assert all(reference() is None for reference in kept)


class TestFacts:
    def test_identity(self, device):
        assert int(device) == device.device_id == 0
        assert repr(device) == f"<Device 0 ({device.name})>"
        assert [len(part) for part in device.uuid.split("-")] == [8, 4, 4, 4, 12]
        assert device.uuid == device.uuid.lower() and hash(device) == hash(device.uuid)
        domain, bus, rest = device.pci_bus_id.split(":")
        assert (len(domain), len(bus), rest[2]) == (4, 2, ".")
        assert device == Device(0) and device != 0 and device != "x"

    def test_compute_capability(self, device):
        capability = device.compute_capability
        assert capability == (capability.major, capability.minor) and capability >= (5, 0)
        assert device.arch == f"{capability.major}{capability.minor}"
        properties = device.properties
        assert capability == (properties.compute_capability_major, properties.compute_capability_minor)

    def test_pickle_and_copy_give_the_same_object(self, device):
        assert pickle.loads(pickle.dumps(device)) is device
        assert copy.copy(device) is device and copy.deepcopy(device) is device

    def test_no_new_attributes(self, device):
        with pytest.raises(AttributeError):
            device.colour = "green"
        assert weakref.ref(device)() is device

    def test_can_access_peer(self, device):
        assert device.can_access_peer(device) is True and device.can_access_peer(0) is True
        with pytest.raises(ValueError, match="must be within"):
            device.can_access_peer(10_000)
        with pytest.raises(TypeError):
            device.can_access_peer(None)

    def test_total_memory(self, device):
        from cupola.bindings import driver

        assert device.total_memory == driver.cuDeviceTotalMem(0)[1] > 1 << 30


class TestProperties:
    ALL = sorted(name for name in vars(_device_properties.DeviceProperties) if not name.startswith("_"))

    @pytest.mark.parametrize("name", ALL)
    def test_number_is_that_of_the_driver(self, name):
        from cupola.bindings import driver

        line = getattr(_device_properties.DeviceProperties, name)
        assert line.number == int(getattr(driver.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name.upper()}"))

    @pytest.mark.parametrize("name", ALL)
    def test_readable(self, device, name):
        value = getattr(device.properties, name)
        flag = isinstance(vars(_device_properties.DeviceProperties)[name], _device_properties.Flag)
        assert type(value) is (bool if flag else int)

    def test_plausible(self, device):
        properties = device.properties
        assert properties is device.properties
        assert properties.warp_size == 32
        assert properties.max_threads_per_block == 1024
        assert properties.multiprocessor_count >= 1
        assert properties.max_shared_memory_per_block <= properties.max_shared_memory_per_block_optin
        assert properties.unified_addressing is True

    def test_read_only(self, device):
        with pytest.raises(AttributeError, match="read-only"):
            device.properties.warp_size = 64
        with pytest.raises(AttributeError, match="no_such_limit"):
            device.properties.no_such_limit  # noqa: B018
        with pytest.raises(RuntimeError, match="Device.properties"):
            _device_properties.DeviceProperties()


class TestCurrent:
    @pytest.mark.parametrize(
        "use",
        [
            lambda d: d.context,
            lambda d: d.create_stream(),
            lambda d: d.create_event(),
            lambda d: d.allocate(16, stream=d.default_stream),
            lambda d: d.sync(),
            lambda d: d.create_graph_builder(),
        ],
    )
    def test_needed_first_on_every_thread(self, device, use):
        with pytest.raises(CUDAError, match=r"Device 0 is not yet initialized.*set_current\(\)"):
            in_thread(lambda: use(Device(0)))

    def test_primary_context(self, device):
        assert device.set_current() is None
        context = device.context
        assert isinstance(context, Context) and device.context is context and not context.is_closed
        device.set_current()
        assert device.context is context and context.device is device
        assert int(context.handle) != 0
        assert in_thread(lambda: (Device(0).set_current(), Device(0).context)[1]) == context

    def test_swap(self, device):
        context = device.context
        assert device.set_current(context) is context
        assert device.context is context

    def test_closed_context(self, device):
        wrapper = device.create_stream().context
        assert wrapper == device.context and wrapper is not device.context
        with pytest.raises(RuntimeError, match="current on this thread"):
            wrapper.close()
        in_thread(wrapper.close)
        assert wrapper.is_closed and wrapper.handle is None and repr(wrapper).startswith("<Context handle=0x0")
        wrapper.close()
        with pytest.raises(RuntimeError, match="Context has been closed"):
            device.set_current(wrapper)

    @pytest.mark.parametrize("argument", [0, "context", object()])
    def test_not_a_context(self, device, argument):
        with pytest.raises(TypeError, match="must be a Context"):
            device.set_current(argument)

    def test_not_picklable(self, device):
        with pytest.raises(TypeError):
            pickle.dumps(device.context)


class TestMemory:
    def test_default_resource(self, device, stream):
        resource = device.memory_resource
        assert isinstance(resource, MemoryResource) and device.memory_resource is resource
        buffer = device.allocate(64, stream=stream)
        assert buffer.size == 64 and buffer.is_device_accessible
        buffer.close(stream)

    def test_own_resource(self, device, stream):
        class Refusing(MemoryResource):
            def allocate(self, size, *, stream):
                raise MemoryError(size)

        before = device.memory_resource
        device.memory_resource = Refusing()
        try:
            with pytest.raises(MemoryError, match="64"):
                device.allocate(64, stream=stream)
        finally:
            device.memory_resource = before
        with pytest.raises(TypeError, match="must be a MemoryResource"):
            device.memory_resource = "pool"

    def test_stream_is_needed(self, device):
        with pytest.raises(TypeError, match="keyword stream"):
            device.allocate(64)
        with pytest.raises(TypeError, match="stream is required"):
            device.allocate(64, stream=None)

    def test_older_spelling(self, device, stream):
        with pytest.warns(DeprecationWarning, match="stream=stream"):
            device.allocate(64, stream).close(stream)


def test_sync(device):
    assert device.sync() is None


def test_forked_child_is_told(run_python):
    done = run_python(
        """
import os
from cupola import CUDAError, Device
dev = Device(0)
dev.set_current()
stream = dev.create_stream()
child = os.fork()
if not child:
    del stream
    try:
        Device(0)
    except CUDAError as error:
        print(error, flush=True)
        os._exit(7)
    os._exit(1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    )
    assert "spawn" in done.stdout and done.stdout.strip().endswith("7"), done.stdout + done.stderr


def test_exit_with_everything_alive(run_python):
    done = run_python(
        """
from cupola import Device, Program, LaunchConfig, launch
dev = Device(0)
dev.set_current()
stream = dev.create_stream()
event = stream.record()
program = Program('extern "C" __global__ void k(int* x) { *x = 1; }', "c++", {"arch": f"sm_{dev.arch}"})
kernel = program.compile("cubin").get_kernel("k")
buffer = dev.allocate(64, stream=stream)
launch(stream, LaunchConfig(grid=1, block=1), kernel, buffer)
print("end")
"""
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")
