"""Streams, the protocol between libraries, and the default streams."""

from __future__ import annotations

import copy
import pickle
import threading
import weakref

import numpy as np
import pytest

from cupola import (
    LEGACY_DEFAULT_STREAM,
    PER_THREAD_DEFAULT_STREAM,
    Device,
    LaunchConfig,
    Stream,
    StreamOptions,
    launch,
)


class Foreign:
    """A stream of another library."""

    def __init__(self, answer):
        self.answer = answer

    def __cuda_stream__(self):
        return self.answer


class TestCreation:
    def test_defaults(self, device):
        stream = device.create_stream()
        assert stream.is_nonblocking is True and not stream.is_closed
        assert stream.device is device and stream.context == device.context
        assert stream != device.create_stream()
        stream.close()

    @pytest.mark.parametrize(
        ("given", "nonblocking"),
        [
            ({"options": StreamOptions(nonblocking=False)}, False),
            ({"options": {"nonblocking": False}}, False),
            ({"nonblocking": False}, False),
            ({"options": StreamOptions()}, True),
            ({"options": {}}, True),
        ],
    )
    def test_options(self, device, given, nonblocking):
        stream = device.create_stream(**given)
        assert stream.is_nonblocking is nonblocking
        stream.close()

    def test_priority(self, device):
        usual = device.create_stream()
        urgent = device.create_stream(priority=-1)
        assert usual.priority == 0 and urgent.priority == -1
        with pytest.raises(ValueError, match=r"priority must be within \[-\d+, 0\], got 1"):
            device.create_stream(options=StreamOptions(priority=1))
        with pytest.raises(TypeError):
            device.create_stream(priority="high")

    @pytest.mark.parametrize(
        ("given", "error", "text"),
        [
            ({"obj": LEGACY_DEFAULT_STREAM, "options": {}}, ValueError, "not both"),
            ({"options": 3}, TypeError, "StreamOptions"),
            ({"options": {"speed": 1}}, TypeError, "speed"),
            ({"speed": 1}, TypeError, "speed"),
            ({"options": StreamOptions(), "priority": 0}, TypeError, "not both"),
            ({"obj": 5}, TypeError, "__cuda_stream__"),
        ],
    )
    def test_bad_call(self, device, given, error, text):
        with pytest.raises(error, match=text):
            device.create_stream(**given)

    def test_options_are_a_plain_dataclass(self):
        options = StreamOptions(False, -1)
        assert options == StreamOptions(nonblocking=False, priority=-1)
        assert repr(options) == "StreamOptions(nonblocking=False, priority=-1)"
        assert pickle.loads(pickle.dumps(options)) == options
        options.priority = 0
        with pytest.raises(AttributeError):
            options.speed = 1
        with pytest.raises(TypeError):
            hash(options)


class TestProtocol:
    def test_wraps_and_keeps_alive(self, device, stream):
        foreign = Foreign((0, int(stream.handle)))
        alive = weakref.ref(foreign)
        wrapped = device.create_stream(foreign)
        assert wrapped == stream and hash(wrapped) == hash(stream) and wrapped is not stream
        assert wrapped.is_nonblocking is True and wrapped.priority == 0 and wrapped.device is device
        del foreign
        assert alive() is not None
        wrapped.close()
        assert alive() is None
        stream.sync()  # closing the wrapper has not destroyed it

    @pytest.mark.parametrize("answer", [(0, 1), [0, 1], (np.int64(0), np.uint64(1))])
    def test_forms_of_the_answer(self, device, answer):
        assert device.create_stream(Foreign(answer)) == LEGACY_DEFAULT_STREAM

    @pytest.mark.parametrize(
        ("answer", "error"),
        [(1, RuntimeError), ((0, 1, 2), RuntimeError), ((1, 1), RuntimeError), ((0, "x"), TypeError)],
    )
    def test_bad_answer(self, device, answer, error):
        with pytest.raises(error):
            device.create_stream(Foreign(answer))

    def test_attribute_instead_of_method(self, device):
        class Old:
            __cuda_stream__ = (0, 1)

        with pytest.warns(DeprecationWarning, match="should be a method"):
            assert device.create_stream(Old()) == LEGACY_DEFAULT_STREAM

    def test_ours(self, device, stream):
        assert stream.__cuda_stream__() == (0, int(stream.handle))
        assert device.create_stream(stream) == stream

    def test_launch_takes_one_with_a_warning(self, device, stream, module):
        with pytest.warns(DeprecationWarning, match="create_stream"):
            launch(Foreign((0, int(stream.handle))), LaunchConfig(grid=1, block=1), module.get_kernel("nothing"))
        stream.sync()


class TestHandles:
    def test_from_handle(self, stream):
        again = Stream.from_handle(int(stream.handle))
        assert again == stream and Stream.from_handle(stream.handle) == stream
        again.close()
        stream.sync()

    @pytest.mark.parametrize(("handle", "error"), [("x", TypeError), (None, TypeError), (-1, OverflowError)])
    def test_bad_handle(self, handle, error):
        with pytest.raises(error):
            Stream.from_handle(handle)

    def test_comparison(self, stream):
        assert stream != 3 and stream != "x"
        assert hash(stream) == hash(int(stream.handle))
        assert repr(stream) == f"<Stream handle={int(stream.handle):#x} context={int(stream.context.handle):#x}>"

    @pytest.mark.parametrize("do", [pickle.dumps, copy.copy, copy.deepcopy])
    def test_stays_in_this_process(self, stream, do):
        with pytest.raises(TypeError):
            do(stream)

    def test_subclass_and_weak_reference(self, stream):
        class Mine(Stream):
            pass

        assert issubclass(Mine, Stream) and weakref.ref(stream)() is stream


class TestClosed:
    def test_neutral_answers(self, device):
        one, two = device.create_stream(), device.create_stream()
        one.close()
        one.close()
        two.close()
        assert one.is_closed and hash(one) == hash(0) and int(one.handle) == 0
        assert repr(one) == "<Stream handle=0x0 context=0x0>"
        assert Stream.from_handle(0).is_closed is False

    def test_a_hash_stays(self, device):
        one, null = device.create_stream(), Stream.from_handle(0)
        same, closed = device.create_stream(one), device.create_stream()
        places = {one: "found", null: "null"}
        assert places[same] == "found" and places[Stream.from_handle(0)] == "null"
        for stream in (one, null, closed):
            stream.close()
        assert hash(one) == hash(same) and places[one] == "found" and places[null] == "null"
        assert one == one and one != same and one != closed and same not in places
        assert null != Stream.from_handle(0)

    @pytest.mark.parametrize(
        "use",
        [
            lambda s, d, k: s.sync(),
            lambda s, d, k: s.record(),
            lambda s, d, k: s.wait(d.create_event()),
            lambda s, d, k: d.default_stream.wait(s),
            lambda s, d, k: s.device,
            lambda s, d, k: s.context,
            lambda s, d, k: s.priority,
            lambda s, d, k: s.is_nonblocking,
            lambda s, d, k: s.__cuda_stream__(),
            lambda s, d, k: s.create_graph_builder(),
            lambda s, d, k: d.create_stream(s),
            lambda s, d, k: d.allocate(16, stream=s),
            lambda s, d, k: launch(s, LaunchConfig(grid=1, block=1), k),
        ],
    )
    def test_every_use_is_refused(self, device, module, use):
        stream = device.create_stream()
        stream.close()
        with pytest.raises(RuntimeError, match="^Stream has been closed$"):
            use(stream, device, module.get_kernel("nothing"))

    def test_buffers_outlive_their_stream(self, device, recwarn):
        stream = device.create_stream()
        buffer = device.allocate(1 << 20, stream=stream)
        stream.close()
        buffer.close()
        assert not recwarn.list


class TestWaiting:
    def test_order_between_streams(self, device, module, out):
        first, second = device.create_stream(), device.create_stream()
        add = module.get_kernel("add")
        for _ in range(20):
            launch(first, LaunchConfig(grid=1, block=1), add, out, 1)
            second.wait(first)
            launch(second, LaunchConfig(grid=1, block=1), add, out, 1)
            first.wait(second.record())
        first.sync()
        assert np.from_dlpack(out).view(np.int32)[0] == 40

    def test_a_second_stream_object(self, device):
        first = device.create_stream(priority=-1)
        second = device.create_stream(first)
        assert second == first and second is not first and second.priority == -1
        first.close()
        second.sync()
        assert not second.is_closed

    def test_protocol_object(self, stream):
        stream.wait(Foreign((0, 1)))
        stream.sync()

    def test_event_that_was_never_recorded(self, device, stream):
        stream.wait(device.create_event())
        stream.sync()

    @pytest.mark.parametrize("given", [(1, 1), (0,), 5, (0, "x"), (0, None)])
    def test_what_a_protocol_must_not_return(self, stream, given):
        with pytest.raises(ValueError, match="cannot take the Foreign"):
            stream.wait(Foreign(given))

    def test_what_a_protocol_raises(self, stream):
        class Broken:
            def __cuda_stream__(self):
                raise KeyError("stream")

        with pytest.raises(ValueError, match="cannot take the Broken") as caught:
            stream.wait(Broken())
        assert isinstance(caught.value.__cause__, KeyError)

    @pytest.mark.parametrize("thing", [None, 5, "event", object()])
    def test_cannot_wait_for(self, stream, thing):
        with pytest.raises(ValueError, match="wait\\(\\) takes"):
            stream.wait(thing)


class TestDefaultStreams:
    @pytest.mark.parametrize(("default", "value"), [(LEGACY_DEFAULT_STREAM, 1), (PER_THREAD_DEFAULT_STREAM, 2)])
    def test_constants(self, device, default, value):
        assert int(default.handle) == value
        assert default.is_nonblocking is False and default.priority == 0
        assert default.device is device and default.context == device.context
        default.sync()
        default.wait(default.record())

    def test_need_a_current_context(self, device):
        problems = []

        def use():
            try:
                PER_THREAD_DEFAULT_STREAM.record()
            except RuntimeError as error:
                problems.append(str(error))

        thread = threading.Thread(target=use)
        thread.start()
        thread.join()
        assert "set_current()" in problems[0]

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            (None, LEGACY_DEFAULT_STREAM),
            ("", LEGACY_DEFAULT_STREAM),
            ("0", LEGACY_DEFAULT_STREAM),
            ("true", LEGACY_DEFAULT_STREAM),
            ("1", PER_THREAD_DEFAULT_STREAM),
            ("7x", PER_THREAD_DEFAULT_STREAM),
        ],
    )
    def test_choice(self, device, monkeypatch, text, expected):
        name = "CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM"
        if text is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, text)
        assert Device().default_stream is expected

    def test_choice_follows_each_change_of_the_environment(self, device, monkeypatch):
        name = "CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM"
        others = [f"CUPOLA_TEST_OTHER_{k}" for k in range(3)]
        monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv(others[0], "1")
        monkeypatch.setenv(others[1], "1")
        for text, expected in (("1", PER_THREAD_DEFAULT_STREAM), ("0", LEGACY_DEFAULT_STREAM)) * 2:
            assert Device().default_stream is LEGACY_DEFAULT_STREAM
            monkeypatch.delenv(others[0])  # another takes its place, so there are as many as before
            monkeypatch.setenv(name, text)
            assert Device().default_stream is expected
            monkeypatch.setenv(name, "1")
            assert Device().default_stream is PER_THREAD_DEFAULT_STREAM
            monkeypatch.delenv(name)
            monkeypatch.setenv(others[0], "1")
        monkeypatch.setenv(name, "1")
        for k in range(300):  # more than are remembered
            monkeypatch.setenv(f"{others[2]}_{k}", "1")
        assert Device().default_stream is PER_THREAD_DEFAULT_STREAM
        monkeypatch.delenv(name)
        assert Device().default_stream is LEGACY_DEFAULT_STREAM
