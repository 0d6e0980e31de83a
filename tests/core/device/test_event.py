"""Events: recording, waiting, timing."""

from __future__ import annotations

import copy
import pickle
import weakref

import pytest

from cupola import Event, EventOptions, LaunchConfig, launch


class TestCreation:
    def test_defaults(self, device):
        event = device.create_event()
        assert (event.is_timing_enabled, event.is_blocking_sync, event.is_ipc_enabled) == (False, False, False)
        assert event.device is device and event.context == device.context
        assert event.is_done is True
        event.sync()

    @pytest.mark.parametrize(
        "given",
        [
            {"options": EventOptions(timing_enabled=True, blocking_sync=True)},
            {"options": {"timing_enabled": True, "blocking_sync": True}},
            {"timing_enabled": True, "blocking_sync": True},
        ],
    )
    def test_options(self, device, stream, given):
        for event in (device.create_event(**given), stream.record(**given)):
            assert event.is_timing_enabled and event.is_blocking_sync
            event.sync()

    @pytest.mark.parametrize(
        "given",
        [
            {"options": 3},
            {"options": {"colour": 1}},
            {"timing_enabled": 1},
            {"blocking_sync": "yes"},
            {"ipc_enabled": True},
            {"options": EventOptions(), "timing_enabled": True},
        ],
    )
    def test_bad_options(self, device, given):
        with pytest.raises(TypeError):
            device.create_event(**given)

    def test_options_changed_for_the_worse(self, device):
        options = EventOptions()
        options.timing_enabled = 1
        with pytest.raises(TypeError, match="timing_enabled must be a bool or None, not int"):
            device.create_event(options)
        assert EventOptions.__match_args__ == ("timing_enabled", "blocking_sync", "ipc_enabled")

    def test_older_spellings(self, device):
        with pytest.warns(DeprecationWarning, match="timing_enabled="):
            assert EventOptions(enable_timing=True) == EventOptions(timing_enabled=True)
        with pytest.warns(DeprecationWarning, match="blocking_sync="):
            assert device.create_event({"busy_waited_sync": True}).is_blocking_sync
        with pytest.raises(TypeError, match="give one of them"):
            EventOptions(timing_enabled=True, enable_timing=True)

    def test_none_means_no(self, device):
        assert device.create_event(timing_enabled=None).is_timing_enabled is False


class TestRecording:
    def test_again(self, device, stream):
        event = device.create_event()
        assert stream.record(event) is event and stream.record(event, options={"timing_enabled": True}) is event
        assert event.is_timing_enabled is False
        event.sync()
        assert event.is_done

    @pytest.mark.parametrize("thing", [3, "event", object()])
    def test_not_an_event(self, stream, thing):
        with pytest.raises(TypeError, match="must be an Event"):
            stream.record(thing)


class TestTiming:
    def test_elapsed(self, device, stream, module):
        begin = stream.record(timing_enabled=True)
        for _ in range(10):
            launch(stream, LaunchConfig(grid=4, block=64), module.get_kernel("nothing"))
        end = stream.record(timing_enabled=True)
        end.sync()
        elapsed = end - begin
        assert isinstance(elapsed, float) and 0 < elapsed < 10_000
        assert begin - end == -elapsed
        end -= begin
        assert end == elapsed

    def test_needs_timing(self, stream):
        timed, plain = stream.record(timing_enabled=True), stream.record()
        for a, b in ((timed, plain), (plain, timed), (plain, plain)):
            with pytest.raises(RuntimeError, match="both events need timing"):
                a - b

    def test_needs_recording(self, device, stream):
        recorded = stream.record(timing_enabled=True)
        stream.sync()
        with pytest.raises(RuntimeError, match="record both events"):
            recorded - device.create_event(timing_enabled=True)

    @pytest.mark.parametrize("other", [1, None, "event"])
    def test_only_events(self, stream, other):
        event = stream.record(timing_enabled=True)
        with pytest.raises(TypeError):
            event - other
        with pytest.raises(TypeError):
            other - event


class TestClosed:
    def test_neutral_answers(self, device):
        one, two = device.create_event(), device.create_event()
        assert one != two and one != 3
        one.close()
        one.close()
        two.close()
        assert one.is_closed and hash(one) == hash(0)
        assert int(one.handle) == 0 and repr(one) == "<Event handle=0x0>"

    def test_a_hash_stays(self, device):
        one, closed = device.create_event(), device.create_event()
        address = int(one.handle)
        places = {one: "found"}
        one.close()
        closed.close()
        assert hash(one) == hash(address) and places[one] == "found"
        assert one == one and one != closed and device.create_event() not in places

    @pytest.mark.parametrize(
        "use",
        [
            lambda e, s: e.sync(),
            lambda e, s: e.is_done,
            lambda e, s: e.device,
            lambda e, s: e.context,
            lambda e, s: e.is_timing_enabled,
            lambda e, s: e.is_blocking_sync,
            lambda e, s: e.is_ipc_enabled,
            lambda e, s: e - s.record(timing_enabled=True),
            lambda e, s: s.record(timing_enabled=True) - e,
            lambda e, s: s.record(e),
            lambda e, s: s.wait(e),
        ],
    )
    def test_every_use_is_refused(self, stream, use):
        event = stream.record(timing_enabled=True)
        event.close()
        with pytest.raises(RuntimeError, match="^Event has been closed$"):
            use(event, stream)

    def test_while_work_waits_for_it(self, device, stream):
        other = device.create_stream()
        event = stream.record()
        other.wait(event)
        event.close()
        other.sync()


@pytest.mark.parametrize("do", [pickle.dumps, copy.copy, copy.deepcopy])
def test_stays_in_this_process(device, do):
    with pytest.raises(TypeError):
        do(device.create_event())


def test_weak_reference_and_subclass(device):
    event = device.create_event()
    assert weakref.ref(event)() is event
    assert type("Mine", (Event,), {})
    assert repr(event) == f"<Event handle={int(event.handle):#x}>" and hash(event) == hash(int(event.handle))
