"""Buffers: ownership, copies, fills and exchange."""

from __future__ import annotations

import gc
import pickle
import weakref

import numpy as np
import pytest

from cupola import Buffer, CUDAWarning, Device, MemoryResource, PinnedMemoryResource


class Recorder(MemoryResource):
    """Host memory that notes how it is given back."""

    is_device_accessible, is_host_accessible, device_id = False, True, -1

    def __init__(self):
        self.freed = []
        self.kept = {}

    def allocate(self, size, *, stream=None):
        memory = np.zeros(max(size, 1), dtype=np.uint8)
        self.kept[memory.ctypes.data] = memory
        return Buffer.from_handle(memory.ctypes.data, size, mr=self)

    def deallocate(self, ptr, size, *, stream):
        self.freed.append((ptr, size, stream))


@pytest.fixture
def pinned():
    return PinnedMemoryResource()


def as_array(buffer, dtype=np.uint8):
    return np.from_dlpack(buffer).view(dtype)


# --- ownership --------------------------------------------------------------------------------------------


def test_cannot_be_made_directly():
    with pytest.raises(RuntimeError, match="Device.allocate"):
        Buffer()


def test_wrapping_without_an_owner():
    buffer = Buffer.from_handle(0x1000, 16)
    assert (buffer.handle, buffer.size, buffer.memory_resource, buffer.owner) == (0x1000, 16, None, None)
    assert type(buffer.handle) is int and not buffer.is_closed and not buffer.is_mapped
    assert repr(buffer) == "<Buffer ptr=0x1000 size=16>"
    assert buffer == Buffer.from_handle(0x1000, 16) != Buffer.from_handle(0x1000, 17)
    assert hash(buffer) == hash((0x1000, 16)) == hash(Buffer.from_handle(0x1000, 16))
    assert buffer != 0x1000


def test_a_hash_stays():
    one, same, closed = (Buffer.from_handle(0x1000, 16) for _ in range(3))
    places = {one: "found"}
    assert places[same] == "found"
    one.close()
    closed.close()
    assert hash(one) == hash(same) and places[one] == "found" and one in list(places)
    assert one == one and one != same and one != closed and same not in places


def test_an_owner_is_kept():
    owner = np.zeros(4)
    gone = weakref.ref(owner)
    buffer = Buffer.from_handle(owner.ctypes.data, 32, owner=owner)
    assert buffer.owner is owner
    del owner
    gc.collect()
    assert gone() is not None
    buffer.close()
    assert gone() is None and buffer.owner is None


@pytest.mark.parametrize("how", ["close", "collect", "with", "close twice"])
def test_a_resource_gets_its_memory_back_once(how):
    resource = Recorder()
    buffer = resource.allocate(10)
    pointer = buffer.handle
    assert buffer.memory_resource is resource
    if how == "collect":
        del buffer
    elif how == "with":
        with buffer as entered:
            assert entered is buffer
        assert buffer.is_closed
    else:
        buffer.close()
        if how == "close twice":
            buffer.close("not even looked at")
    gc.collect()
    assert [item[:2] for item in resource.freed] == [(pointer, 10)]
    assert resource.freed[0][2].__cuda_stream__()[0] == 0


def test_a_buffer_keeps_its_resource():
    resource = Recorder()
    gone = weakref.ref(resource)
    buffer = resource.allocate(1)
    del resource
    gc.collect()
    assert gone() is not None
    buffer.close()
    gc.collect()
    assert gone() is None


def test_a_cycle_is_collected():
    resource = Recorder()
    resource.mine = resource.allocate(8)
    freed, gone = resource.freed, weakref.ref(resource)
    del resource
    gc.collect()
    assert gone() is None and len(freed) == 1


def test_a_failing_resource_warns():
    class Failing(Recorder):
        def deallocate(self, ptr, size, *, stream):
            raise KeyError("lost")

    buffer = Failing().allocate(12)
    with pytest.warns(CUDAWarning, match="Failing failed to free 12 bytes at 0x.*KeyError: 'lost'"):
        buffer.close()


def test_a_closed_buffer():
    buffer = Buffer.from_handle(0x1000, 16)
    buffer.close()
    assert (buffer.handle, buffer.size, buffer.is_closed, buffer.is_mapped) == (0, 0, True, False)
    assert repr(buffer) == "<Buffer ptr=0x0 size=0>" and hash(buffer) == hash((0, 0))
    with buffer:
        pass
    for use in (
        lambda: buffer.device_id,
        lambda: buffer.is_device_accessible,
        lambda: buffer.is_host_accessible,
        lambda: buffer.is_managed,
        lambda: buffer.__dlpack__(),
        lambda: buffer.__dlpack_device__(),
        lambda: buffer.fill(0, stream=None),
        lambda: buffer.copy_to(stream=None),
        lambda: buffer.copy_from(Buffer.from_handle(0x1000, 0), stream=None),
        lambda: Buffer.from_handle(0x1000, 0).copy_from(buffer, stream=None),
        lambda: buffer.set_deallocation_stream(None),
        lambda: pickle.dumps(buffer),
    ):
        with pytest.raises(RuntimeError, match="Buffer has been closed"):
            use()


@pytest.mark.parametrize(
    ("arguments", "keywords", "error"),
    [
        ((None, 16), {}, TypeError),
        ((-1, 16), {}, OverflowError),
        ((0, -1), {}, OverflowError),
        (("text", 1), {}, ValueError),
        ((0, 16, "resource"), {}, TypeError),
        ((0, 16, Recorder(), object()), {}, ValueError),
        ((0, 16), {"stream": object()}, ValueError),
        ((0, 16, Recorder()), {"stream": object()}, TypeError),
    ],
)
def test_bad_handles(arguments, keywords, error):
    with pytest.raises(error):
        Buffer.from_handle(*arguments, **keywords)


def test_attributes_are_read_only():
    buffer = Buffer.from_handle(0, 0)
    for name in ("handle", "size", "owner", "memory_resource", "anything"):
        with pytest.raises(AttributeError):
            setattr(buffer, name, 1)
    assert not buffer.is_closed


# --- what memory it is ------------------------------------------------------------------------------------


def test_unknown_host_memory(device):
    owner = np.zeros(4)
    buffer = Buffer.from_handle(owner.ctypes.data, 32, owner=owner)
    assert (buffer.is_device_accessible, buffer.is_host_accessible, buffer.is_managed) == (False, True, False)
    assert buffer.device_id == -1 and buffer.__dlpack_device__() == (1, 0)


def test_device_memory(device, stream):
    with device.allocate(64, stream=stream) as buffer:
        assert (buffer.is_device_accessible, buffer.is_host_accessible, buffer.is_managed) == (True, False, False)
        assert buffer.device_id == 0 and buffer.__dlpack_device__() == (2, 0)
        alias = Buffer.from_handle(buffer.handle, 64)
        assert (alias.is_device_accessible, alias.is_host_accessible) == (True, False)
        assert alias.device_id == 0 and alias.memory_resource is None
        with pytest.raises(RuntimeError, match="IPC"):
            pickle.dumps(buffer)


def test_pinned_memory(device, stream, pinned):
    with pinned.allocate(64, stream=stream) as buffer:
        assert (buffer.is_device_accessible, buffer.is_host_accessible) == (True, True)
        assert buffer.device_id == -1 and buffer.__dlpack_device__() == (3, 0)
        alias = Buffer.from_handle(buffer.handle, 64)
        assert (alias.is_device_accessible, alias.is_host_accessible) == (True, True)


# --- release ----------------------------------------------------------------------------------------------


def test_the_release_stream_outlives_its_stream_object(device):
    freed = []

    class Device0(Recorder):
        is_device_accessible = True

        def deallocate(self, ptr, size, *, stream):
            stream.sync()
            freed.append(stream.handle)

    stream = device.create_stream()
    handle = int(stream.handle)
    buffer = Buffer.from_handle(0x1000, 16, mr=Device0(), stream=stream)
    stream.close()
    buffer.close()
    assert [int(h) for h in freed] == [handle]


def test_another_release_stream(device, stream):
    resource = Recorder()
    for change in (lambda b: b.close(stream), lambda b: (b.set_deallocation_stream(stream), b.close())):
        change(resource.allocate(1))
    assert [int(item[2].handle) for item in resource.freed] == [int(stream.handle)] * 2
    for wrong in (None, "stream"):
        with pytest.raises(TypeError):
            resource.allocate(1).set_deallocation_stream(wrong)
    with pytest.raises(TypeError):
        resource.allocate(1).close("stream")


def test_the_default_stream_needs_a_context(run_python):
    program = """
import cupola
class Mine(cupola.MemoryResource):
    is_device_accessible, is_host_accessible, device_id = True, False, 0
    def deallocate(self, ptr, size, *, stream): print("freed", size)
try:
    cupola.Buffer.from_handle(0x1000, 16, mr=Mine())
except RuntimeError as error:
    print(error)
device = cupola.Device(0)
device.set_current()
cupola.Buffer.from_handle(0x1000, 32, mr=Mine()).close()
"""
    done = run_python(program)
    assert "set_current()" in done.stdout and "freed 32" in done.stdout and "freed 16" not in done.stdout
    assert done.returncode == 0, done.stderr


def test_a_default_stream_release_on_another_thread(device):
    import threading

    buffer = device.allocate(256, stream=device.default_stream)
    used = device.memory_resource.attributes.used_mem_current
    thread = threading.Thread(target=buffer.close)
    thread.start()
    thread.join()
    device.sync()
    assert device.memory_resource.attributes.used_mem_current < used


# --- copies and fills -------------------------------------------------------------------------------------


def test_a_round_trip(device, stream, pinned):
    host = pinned.allocate(4096, stream=stream)
    back = pinned.allocate(4096, stream=stream)
    as_array(host)[:] = np.arange(4096) % 251
    on_device = device.allocate(4096, stream=stream)
    on_device.copy_from(host, stream=stream)
    assert on_device.copy_to(back, stream=stream) is back
    stream.sync()
    np.testing.assert_array_equal(as_array(back), as_array(host))
    for buffer in (host, back, on_device):
        buffer.close(stream)


def test_copying_to_a_new_buffer(device, stream, pinned):
    with pinned.allocate(16, stream=stream) as host:
        as_array(host)[:] = 9
        with host.copy_to(stream=stream) as copy:
            assert copy.memory_resource is pinned and copy.size == 16
            stream.sync()
            assert (as_array(copy) == 9).all()
    with pytest.raises(ValueError, match="memory resource"):
        Buffer.from_handle(0x1000, 16).copy_to(stream=stream)


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        (0, np.uint8, 0),
        (255, np.uint8, 255),
        (True, np.uint8, 1),
        (b"\x07", np.uint8, 7),
        (b"\x01\x02", np.dtype("<u2"), 0x0201),
        (np.uint16(4711), np.uint16, 4711),
        (np.float32(1.5), np.float32, 1.5),
        (bytearray(b"\x01\x02\x03\x04"), np.dtype("<u4"), 0x04030201),
        (np.array([1, 2], dtype=np.int8), np.dtype("<u2"), 0x0201),
    ],
    ids=repr,
)
def test_fills(device, stream, pinned, value, dtype, expected):
    with pinned.allocate(64, stream=stream) as buffer:
        buffer.fill(value, stream=stream)
        stream.sync()
        assert (as_array(buffer, dtype) == expected).all()


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (256, OverflowError, "0 to 255"),
        (-1, OverflowError, "0 to 255"),
        (b"", ValueError, "1, 2, or 4 bytes"),
        (b"abc", ValueError, "1, 2, or 4 bytes"),
        (np.int64(1), ValueError, "1, 2, or 4 bytes"),
        (b"ab", ValueError, "divisible by 2"),
        (np.float32(1), ValueError, "divisible by 4"),
        ("a", TypeError, "str"),
        (1.5, TypeError, "float"),
        (None, TypeError, "NoneType"),
        (np.zeros(4, np.uint8)[::2], (ValueError, BufferError), "contiguous"),
    ],
    ids=repr,
)
def test_bad_fills(device, stream, value, error, text):
    buffer = Buffer.from_handle(0x1001, 15)
    with pytest.raises(error, match=text):
        buffer.fill(value, stream=stream)


def test_bad_copies(device, stream):
    buffer = Buffer.from_handle(0x1000, 16)
    with pytest.raises(ValueError, match="the source has 12 bytes, the destination 16"):
        buffer.copy_from(Buffer.from_handle(0x1000, 12), stream=stream)
    with pytest.raises(ValueError, match="the source has 16 bytes, the destination 12"):
        buffer.copy_to(Buffer.from_handle(0x1000, 12), stream=stream)
    for operation in (buffer.copy_from, buffer.copy_to):
        for wrong in (5, "text", [1, 2], object()):
            with pytest.raises(TypeError, match="must be a Buffer, or an array"):
                operation(wrong, stream=stream)
    with pytest.raises(TypeError, match="must be a Buffer"):
        buffer.copy_from(None, stream=stream)
    for operation in (buffer.copy_from, buffer.copy_to):
        with pytest.raises(TypeError, match="stream"):
            operation(Buffer.from_handle(0x1000, 16))
        for wrong in (None, 5):
            with pytest.raises(TypeError, match=r"[Ss]tream"):
                operation(Buffer.from_handle(0x1000, 16), stream=wrong)


# --- exchange ---------------------------------------------------------------------------------------------


def test_numpy_shares_the_memory():
    memory = np.arange(8, dtype=np.uint8)
    buffer = Buffer.from_handle(memory.ctypes.data, 8, mr=HostOnly(memory))
    array = np.from_dlpack(buffer)
    assert array.dtype == np.int8 and array.shape == (8,) and array.flags.writeable
    array[0] = 42
    assert memory[0] == 42
    kept = weakref.ref(buffer)
    del buffer
    gc.collect()
    assert kept() is not None
    del array
    gc.collect()
    assert kept() is None


class HostOnly(Recorder):
    def __init__(self, memory):
        super().__init__()
        self.memory = memory


def test_capsules_that_nobody_consumes():
    buffer = Buffer.from_handle(0x1000, 8, mr=Recorder())
    kept = weakref.ref(buffer)
    capsules = [buffer.__dlpack__(), buffer.__dlpack__(max_version=(1, 0))]
    assert '"dltensor"' in repr(capsules[0]) and '"dltensor_versioned"' in repr(capsules[1])
    del buffer
    assert kept() is not None
    capsules.clear()
    assert kept() is None


@pytest.mark.parametrize(
    ("keywords", "error"),
    [
        ({"dl_device": (1, 0)}, BufferError),
        ({"copy": True}, BufferError),
        ({"max_version": (1,)}, BufferError),
        ({"max_version": 1}, TypeError),
        ({"stream": "1"}, TypeError),
    ],
)
def test_bad_exports(keywords, error):
    buffer = Buffer.from_handle(0x1000, 8, mr=Recorder())
    with pytest.raises(error):
        buffer.__dlpack__(**keywords)
    assert buffer.__dlpack__(copy=False, stream=5) is not None


def test_memory_that_nobody_can_access():
    class Nowhere(Recorder):
        is_device_accessible = is_host_accessible = False

    buffer = Buffer.from_handle(0x1000, 8, mr=Nowhere())
    for use in (buffer.__dlpack__, buffer.__dlpack_device__):
        with pytest.raises(BufferError, match="neither"):
            use()


def test_an_allocation_of_nothing(device, stream):
    with device.allocate(0, stream=stream) as buffer:
        assert (buffer.handle, buffer.size, buffer.is_closed) == (0, 0, False)
    with pytest.raises(OverflowError):
        device.allocate(-1, stream=stream)
    assert isinstance(device, Device)
