"""Memory and events that processes share. The other process is tests/core/memory/ipc_child.py."""

from __future__ import annotations

import copy
import multiprocessing
import os
import pickle
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from cupola import Buffer, CUDAError, Device, DeviceMemoryResource, Event, PinnedMemoryResource
from cupola.bindings import driver
from cupola.core.device import _event_ipc
from cupola.core.memory import _ipc
from tests import limits
from tests.core.memory import ipc_child
from tests.core.memory.ipc_child import SIZE, Gate, add, bytes_of

Ask = Callable[..., Any]


class Child:
    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, other = context.Pipe()
        self.process = context.Process(target=ipc_child.serve, args=(other,), daemon=True)
        self.process.start()
        other.close()

    def __call__(self, function: Callable[..., Any], *arguments: Any) -> Any:
        self.connection.send((function.__name__, arguments))
        if not self.connection.poll(limits.seconds()):
            raise TimeoutError(f"the other process did not answer {function.__name__}")
        error, answer = self.connection.recv()
        if error:
            raise RuntimeError(f"{error}: {answer}")
        return answer

    def stop(self) -> None:
        self.connection.close()
        self.process.join(limits.seconds())
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


@pytest.fixture(scope="module")
def ask() -> Iterator[Ask]:
    """Call a function of tests/core/memory/ipc_child.py in another process."""
    child = Child()
    yield child
    child.stop()


@pytest.fixture
def short_lived() -> Iterator[Child]:
    child = Child()
    yield child
    child.stop()


@pytest.fixture
def pool(device) -> Iterator[DeviceMemoryResource]:
    if not device.properties.handle_type_posix_file_descriptor_supported:
        pytest.skip("the device does not share pools as file descriptors")
    resource = DeviceMemoryResource(0, {"ipc_enabled": True})
    yield resource
    resource.close()


@pytest.fixture
def buffer(pool, stream) -> Iterator[Buffer]:
    buffer = pool.allocate(SIZE, stream=stream)
    buffer.fill(np.int32(5), stream=stream)
    stream.sync()
    yield buffer
    buffer.close()


def ints(number: int) -> bytes:
    return np.full(SIZE // 4, number, "i4").tobytes()


class TestMemory:
    def test_of_a_device(self, ask, pool, buffer, stream):
        assert ask(ipc_child.see, buffer) == (True, SIZE, True, True, str(pool.uuid), 0, ints(5))
        add(buffer, 2, stream)
        stream.sync()
        ask(ipc_child.add_to, buffer, 10)
        assert bytes_of(buffer, stream) == ints(17)

    def test_of_the_host(self, ask, device, stream):
        if device.properties.host_numa_id < 0 or not device.properties.host_numa_memory_pools_supported:
            pytest.skip("the device has no pools of host memory on a certain node")
        resource = PinnedMemoryResource({"ipc_enabled": True})
        assert resource.numa_id >= 0 and resource.is_ipc_enabled and resource.uuid.version == 4
        with resource.allocate(SIZE, stream=stream) as buffer:
            buffer.fill(np.int32(1), stream=stream)
            stream.sync()
            assert ask(ipc_child.see, buffer) == (True, SIZE, True, True, str(resource.uuid), -1, ints(1))
            ask(ipc_child.add_to, buffer, 4)
            assert bytes_of(buffer, stream) == ints(5)

    def test_large_and_small_ones(self, ask, pool, stream):
        sizes = [1, 4097, 3 << 20, 100]
        buffers = [pool.allocate(size, stream=stream) for size in sizes]
        for number, one in enumerate(buffers):
            one.fill(number + 1, stream=stream)
        stream.sync()
        contents = ask(ipc_child.by_descriptor, pool, *(one.ipc_descriptor for one in buffers))
        assert contents == [bytes([number + 1]) * size for number, size in enumerate(sizes)]
        for one in buffers:
            one.close()

    def test_what_is_let_go_of_before_the_work_is_done(self, ask, pool, stream):
        ask(ipc_child.keep, "pool", pool)
        for size in (SIZE, 4 << 20):
            with pool.allocate(size, stream=stream) as buffer:
                buffer.fill(np.int32(5), stream=stream)
                stream.sync()
                found = ask(ipc_child.through_scratch, pickle.dumps(buffer), 6)
                assert found == np.full(size // 4, 5, "i4").tobytes()
                assert bytes_of(buffer, stream) == np.full(size // 4, 6, "i4").tobytes()
        ask(ipc_child.drop, "pool")

    def test_a_known_pool_and_plain_pickle(self, ask, pool, buffer):
        ask(ipc_child.keep, "pool", pool)
        assert ask(ipc_child.unpickle, pickle.dumps(buffer))[-1] == ints(5)
        ask(ipc_child.drop, "pool")
        with pytest.raises(RuntimeError, match=f"{pool.uuid} was not found"):
            ask(ipc_child.unpickle, pickle.dumps(buffer))

    def test_a_file_descriptor(self, ask, pool, buffer):
        handle = pool.allocation_handle
        assert handle is pool.allocation_handle and int(handle) == handle.handle >= 0
        assert (handle.uuid, handle.is_closed) == (pool.uuid, False)
        answer = ask(ipc_child.through_file, handle, buffer.ipc_descriptor)
        assert answer == (None, True, True, ints(5))
        assert f"handle={handle.handle}" in repr(handle)

    def test_one_mapping_for_a_descriptor(self, ask, pool, buffer):
        assert ask(ipc_child.twice, pool, buffer.ipc_descriptor) == (True, True, ints(5))

    def test_an_imported_pool_does_not_allocate(self, ask, pool):
        with pytest.raises(RuntimeError, match=r"TypeError: .*cannot allocate"):
            ask(ipc_child.allocate_from, pool)

    def test_comes_back_as_itself(self, short_lived, device, stream):
        buffer, event = short_lived(ipc_child.made_here)
        assert buffer.is_mapped and buffer.memory_resource.is_mapped and "mapped" in repr(buffer.memory_resource)
        stream.wait(event)
        assert bytes_of(buffer, stream) == b"\3" * SIZE
        assert pickle.loads(pickle.dumps(buffer.memory_resource)) is buffer.memory_resource
        buffer.close()
        stream.sync()

    @pytest.mark.cpu_only
    def test_outlives_the_exporter(self, short_lived, device, stream):
        buffer, _ = short_lived(ipc_child.made_here)
        short_lived.stop()
        assert bytes_of(buffer, stream) == b"\3" * SIZE
        add(buffer, 1, stream)
        assert bytes_of(buffer, stream)[0] == 4
        buffer.close()

    @pytest.mark.cpu_only
    def test_freed_by_the_exporter_first(self, ask, pool, buffer, stream):
        ask(ipc_child.keep, "buffer", buffer)
        buffer.close()
        stream.sync()
        pool.close()
        ask(ipc_child.drop, "buffer")

    def test_what_is_freed_is_given_back(self, pool, stream):
        for _ in range(3):
            buffer = pool.allocate(8 << 20, stream=stream)
            assert pool.attributes.used_mem_current == 8 << 20
            buffer.close()
            stream.sync()
        assert pool.attributes.used_mem_current == 0
        assert pool.attributes.reserved_mem_current < 64 << 20


class TestEvents:
    def test_other_process_waits(self, ask, device, pool, buffer, stream):
        ask(ipc_child.see, buffer)
        gated = device.create_stream()
        gate = Gate(gated)
        buffer.fill(np.int32(6), stream=gated)
        event = gated.record(ipc_enabled=True, blocking_sync=True)
        try:
            assert ask(ipc_child.state_of, event) == (False, True, False, True)
            ask(ipc_child.wait_and_copy, event, buffer)
        finally:
            gate.open()
        assert ask(ipc_child.finish_copy) == (True, ints(6))
        event.sync()
        gated.close()

    def test_descriptor(self, ask, stream):
        event = stream.record(options={"ipc_enabled": True})
        event.sync()
        assert event.is_ipc_enabled and not event.is_timing_enabled
        descriptor = event.ipc_descriptor
        assert descriptor is event.ipc_descriptor
        same = pickle.loads(pickle.dumps(descriptor))
        assert same == descriptor and same != stream.record(ipc_enabled=True).ipc_descriptor and descriptor != 3
        with pytest.raises(TypeError):
            hash(descriptor)
        # The exporter has the event already.
        with pytest.raises(RuntimeError, match="failed to open"):
            Event.from_ipc_descriptor(descriptor)
        assert ask(ipc_child.state_of, event)[:2] == (True, True)

    def test_many(self, stream):
        for _ in range(300):
            event = stream.record(ipc_enabled=True)
            assert event.ipc_descriptor is not None
            event.close()
        stream.sync()

    @pytest.mark.cpu_only
    def test_a_crash_ends_the_wait(self, device, short_lived):
        event = short_lived(ipc_child.never_reached)
        assert not event.is_done
        short_lived.connection.send(("die", ()))
        with pytest.raises(CUDAError, match="EXTERNAL_DEVICE.*"):
            event.sync()
        with pytest.raises(CUDAError, match="ended before the work"):
            event.is_done  # noqa: B018
        short_lived.process.join(limits.seconds())

    @pytest.mark.cpu_only
    def test_closed_while_another_thread_waits(self, device, short_lived):
        event = short_lived(ipc_child.never_reached)
        handle, found = int(event.handle), []

        def wait():
            device.set_current()
            found.append(driver.cuEventSynchronize(handle))

        thread = threading.Thread(target=wait)
        thread.start()
        time.sleep(0.1)
        event.close()
        time.sleep(0.1)
        assert not found
        short_lived(ipc_child.open_gate)
        limits.join(thread)
        assert found == [(driver.CUresult.CUDA_SUCCESS,)]

    def test_errors(self, device, stream):
        with pytest.raises(TypeError, match="cannot have timing"):
            stream.record(ipc_enabled=True, timing_enabled=True)
        with pytest.raises(TypeError, match=r"stream\.record"):
            device.create_event(ipc_enabled=True)
        event = stream.record(ipc_enabled=True)
        with pytest.raises(TypeError, match="record a new one"):
            stream.record(event)
        with pytest.raises(TypeError):
            pickle.dumps(event)
        with pytest.raises(TypeError):
            copy.copy(event)
        with pytest.raises(TypeError, match="IPCEventDescriptor"):
            Event.from_ipc_descriptor(b"")
        with pytest.raises(ValueError, match="64 bytes"):
            Event.from_ipc_descriptor(_event_ipc.event_descriptor(b"short", False))
        with pytest.raises(RuntimeError, match="ipc_enabled"):
            stream.record().ipc_descriptor  # noqa: B018
        with pytest.raises(RuntimeError, match="ipc_enabled"):
            _ipc.ForkingPickler.dumps(stream.record())
        event.close()
        with pytest.raises(RuntimeError, match="closed"):
            event.ipc_descriptor  # noqa: B018


class TestProcesses:
    @pytest.mark.parametrize("method", ["spawn", "forkserver"])
    def test_arguments(self, method, pool, buffer, stream):
        context = multiprocessing.get_context(method)
        queue = context.Queue()
        event = stream.record(ipc_enabled=True)
        process = context.Process(target=ipc_child.as_arguments, args=(pool, buffer, event, queue), daemon=True)
        process.start()
        try:
            assert queue.get(timeout=limits.seconds()) == 3
            process.join(limits.seconds())
            assert process.exitcode == 0
        finally:
            process.kill()
            process.join()
        assert bytes_of(buffer, stream) == ints(6)

    def test_a_buffer_that_is_closed_before_the_queue_sends_it(self, pool, stream):
        """A queue sends on a thread of its own, so what it is given may be closed by then."""
        buffer = pool.allocate(SIZE, stream=stream)
        before = _ipc.ForkingPickler.dumps(buffer)
        buffer.close()
        assert bytes(_ipc.ForkingPickler.dumps(buffer))[-64:] == bytes(before)[-64:]
        with pytest.raises(RuntimeError, match="Buffer has been closed"):
            pickle.dumps(buffer)
        private = DeviceMemoryResource(0).allocate(SIZE, stream=stream)
        private.close()
        with pytest.raises(RuntimeError, match="Buffer has been closed"):
            _ipc.ForkingPickler.dumps(private)

    def test_fork_is_warned_of(self, run_python):
        done = run_python(
            "import multiprocessing, warnings\n"
            "from multiprocessing.reduction import ForkingPickler\n"
            "from cupola import Device, DeviceMemoryResource\n"
            "multiprocessing.set_start_method('fork')\n"
            "device = Device(0); device.set_current()\n"
            "pool = DeviceMemoryResource(0, {'ipc_enabled': True})\n"
            "with warnings.catch_warnings(record=True) as seen:\n"
            "    warnings.simplefilter('always')\n"
            "    ForkingPickler.dumps(pool); ForkingPickler.dumps(pool)\n"
            "print([(w.category.__name__, 'spawn' in str(w.message)) for w in seen])\n"
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip() == "[('UserWarning', True)]"


class TestResources:
    def test_life(self, device, stream):
        pool = DeviceMemoryResource(device, {"ipc_enabled": True})
        name = pool.uuid
        assert (pool.is_ipc_enabled, pool.is_mapped, name.version) == (True, False, 4)
        assert "ipc" in repr(pool) and pool.register(name) is pool
        assert DeviceMemoryResource.from_registry(name) is pool and pickle.loads(pickle.dumps(pool)) is pool
        handle = pool.allocation_handle
        pool.close()
        assert (pool.is_ipc_enabled, pool.uuid, handle.is_closed, handle.handle) == (False, None, True, -1)
        with pytest.raises(ValueError, match="closed"):
            int(handle)
        with pytest.raises(RuntimeError, match="closed"):
            pool.allocation_handle  # noqa: B018
        with pytest.raises(RuntimeError, match="was not found"):
            DeviceMemoryResource.from_registry(name)

    def test_the_registry_keeps_nothing_alive(self, device):
        name = DeviceMemoryResource(0, {"ipc_enabled": True}).uuid
        with pytest.raises(RuntimeError, match=str(name)):
            PinnedMemoryResource.from_registry(name)

    def test_not_shared(self, device, stream):
        pool = DeviceMemoryResource(0, {})
        for call in (
            lambda: pool.allocation_handle,
            lambda: pool.register(uuid.uuid4()),
            lambda: pickle.dumps(pool),
            lambda: _ipc.ForkingPickler.dumps(pool),
            lambda: Buffer.from_ipc_descriptor(pool, _ipc.buffer_descriptor(b"", 1), stream=stream),
        ):
            with pytest.raises(RuntimeError, match=r"shared|ipc_enabled"):
                call()
        with pool.allocate(16, stream=stream) as buffer, pytest.raises(RuntimeError, match="ipc_enabled"):
            buffer.ipc_descriptor  # noqa: B018
        with pytest.raises(AttributeError, match="memory resource"):
            Buffer.from_handle(64, 16).ipc_descriptor  # noqa: B018

    def test_wrong_names(self, pool):
        with pytest.raises(TypeError, match="UUID"):
            pool.register("name")
        with pytest.raises(ValueError, match="already"):
            pool.register(uuid.uuid4())
        with pytest.raises(TypeError, match="PinnedMemoryResource"):
            PinnedMemoryResource.from_allocation_handle(pool.allocation_handle)
        assert DeviceMemoryResource.from_allocation_handle(0, pool.allocation_handle) is pool

    def test_bad_handles(self, device, tmp_path):
        with pytest.raises(OSError):
            DeviceMemoryResource.from_allocation_handle(0, np.int64(987654))
        with pytest.raises(TypeError, match="file descriptor"):
            PinnedMemoryResource.from_allocation_handle("3")
        with pytest.raises(ValueError, match="negative"):
            _ipc.allocation_handle(-1, None)
        file = os.open(tmp_path / "plain", os.O_CREAT | os.O_RDWR)
        with pytest.raises(CUDAError):
            DeviceMemoryResource.from_allocation_handle(0, file)
        os.close(file)

    def test_a_handle_goes_when_the_modules_are_gone(self, monkeypatch):
        file, other = os.pipe()
        os.close(other)
        handle = _ipc.allocation_handle(file, None)
        monkeypatch.setattr(_ipc, "os", None)  # as at the end of the interpreter
        del handle
        with pytest.raises(OSError):
            os.fstat(file)

    def test_plain_pickle_of_a_handle(self, pool):
        with pytest.raises(TypeError, match="multiprocessing"):
            pickle.dumps(pool.allocation_handle)

    @pytest.mark.parametrize(
        "kind", [_ipc.IPCBufferDescriptor, _event_ipc.IPCEventDescriptor, _ipc.IPCAllocationHandle]
    )
    def test_no_direct_calls(self, kind):
        with pytest.raises(RuntimeError, match=f"{kind.__name__} objects cannot be instantiated"):
            kind()


class TestDescriptors:
    def test_facts(self, buffer):
        descriptor = buffer.ipc_descriptor
        assert descriptor is buffer.ipc_descriptor and descriptor.size == SIZE
        same = pickle.loads(pickle.dumps(descriptor))
        assert same.size == SIZE and same != descriptor and hash(descriptor) == hash(descriptor)

    def test_imports_that_are_refused(self, ask, device, pool, buffer, stream):
        good = buffer.ipc_descriptor
        with pytest.raises(TypeError, match="pool"):
            Buffer.from_ipc_descriptor(3, good, stream=stream)
        with pytest.raises(TypeError, match="IPCBufferDescriptor"):
            Buffer.from_ipc_descriptor(pool, b"", stream=stream)
        with pytest.raises(TypeError, match="stream"):
            Buffer.from_ipc_descriptor(pool, good, stream=None)
        with pytest.raises(CUDAError):  # the process that exports it
            Buffer.from_ipc_descriptor(pool, good, stream=stream)
        with pytest.raises(RuntimeError, match="ValueError: .*64 bytes"):
            ask(ipc_child.by_descriptor, pool, _ipc.buffer_descriptor(b"short", 1))
        with pytest.raises(RuntimeError, match="ValueError: .*claims"):
            ask(ipc_child.by_descriptor, pool, _ipc.buffer_descriptor(good._payload, 1 << 40))
        other = DeviceMemoryResource(0, {"ipc_enabled": True})
        with pytest.raises(RuntimeError, match="CUDAError"):
            ask(ipc_child.by_descriptor, other, good)
        other.close()
        assert ask(ipc_child.by_descriptor, pool, good) == [ints(5)]

    def test_closed(self, pool, stream):
        buffer = pool.allocate(SIZE, stream=stream)
        buffer.close()
        with pytest.raises(RuntimeError, match="closed"):
            buffer.ipc_descriptor  # noqa: B018
        with pytest.raises(RuntimeError, match="closed"):
            pickle.dumps(buffer)

    def test_older_spellings(self, pool, buffer, stream):
        event = stream.record(ipc_enabled=True)
        with pytest.warns(DeprecationWarning, match="property ipc_descriptor"):
            assert buffer.get_ipc_descriptor() is buffer.ipc_descriptor
        with pytest.warns(DeprecationWarning, match="property ipc_descriptor"):
            assert event.get_ipc_descriptor() is event.ipc_descriptor
        with pytest.warns(DeprecationWarning, match="property allocation_handle"):
            assert pool.get_allocation_handle() is pool.allocation_handle
        with pytest.warns(DeprecationWarning, match="stream=stream"), pytest.raises(CUDAError):
            Buffer.from_ipc_descriptor(pool, buffer.ipc_descriptor, stream)
        with pytest.raises(TypeError, match="twice"):
            Buffer.from_ipc_descriptor(pool, buffer.ipc_descriptor, stream, stream=stream)


def test_device_is_still_good(device, stream):
    assert Device(0) == device
