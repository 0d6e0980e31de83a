"""Streams, events and recorded graphs with CuPy's interface."""

from __future__ import annotations

import contextlib
import tempfile
import weakref
from pathlib import Path
from typing import Any

import cupola
from cupola.core.device._stream import LEGACY_DEFAULT_STREAM, PER_THREAD_DEFAULT_STREAM
from cupola.numpy._lazy import compute_all, record
from cupola.standins.cupy.cuda import _state, runtime

_capturing: set[int] = set()  # the streams whose captures have begun here and have not ended


class Event:
    """A point in a stream.

    Parameters
    ----------
    block : bool
        Whether a thread that waits sleeps.
    disable_timing : bool
        Whether it has no time.
    interprocess : bool
        Whether other processes may open it.
    """

    def __init__(self, block: bool = False, disable_timing: bool = False, interprocess: bool = False) -> None:
        if interprocess and not disable_timing:
            raise ValueError("Timing must be disabled for interprocess events")
        flags = 1 * block | 2 * disable_timing | 4 * interprocess
        self.ptr: int = runtime.eventCreateWithFlags(flags)
        weakref.finalize(self, _destroy_event, self.ptr).atexit = False

    @property
    def done(self) -> bool:
        """bool: whether it has happened."""
        return runtime.eventQuery(self.ptr) == 0

    def record(self, stream: Any = None) -> None:
        """Put it behind the work that a stream has now; the current one by default."""
        where = get_current_stream() if stream is None else stream
        where._record(self)

    def synchronize(self) -> None:
        """Wait for it."""
        _state.may_wait()
        runtime.eventSynchronize(self.ptr)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Event) and self.ptr == other.ptr

    def __hash__(self) -> int:
        return hash(self.ptr)


def _destroy_event(address: int) -> None:
    with contextlib.suppress(runtime.CUDARuntimeError):  # the context is broken: it has no events any more
        runtime.eventDestroy(address)


def get_elapsed_time(start_event: Event, end_event: Event) -> float:
    """Milliseconds between two events."""
    return float(runtime.eventElapsedTime(start_event.ptr, end_event.ptr))


class _BaseStream:
    """What all streams have. Work of this thread goes to the one whose ``with`` block is innermost."""

    _core: cupola.Stream
    ptr: int
    device_id: int

    def __init__(self, core: cupola.Stream, ptr: int, device_id: int) -> None:
        self._core, self.ptr, self.device_id = core, ptr, device_id
        self._before: list[tuple[int, Any]] = []
        self._kept: list[Any] = []  # memory that recorded work uses

    def use(self) -> Any:
        """Make it the current stream of the thread."""
        _state.set_stream(self._device(), self if self.ptr else None)
        return self

    def __enter__(self) -> Any:
        device = self._device()
        self._before.append((device, _state.stream_of(device)))
        return self.use()

    def __exit__(self, *exception: object) -> None:
        _state.set_stream(*self._before.pop())

    def _device(self) -> int:
        return self.device_id if self.device_id >= 0 else _state.device_id()

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.ptr

    def synchronize(self) -> None:
        """Wait for its work."""
        _state.may_wait()
        runtime.streamSynchronize(self.ptr)

    @property
    def done(self) -> bool:
        """bool: whether all its work is done."""
        return runtime.streamQuery(self.ptr) == 0

    @property
    def is_non_blocking(self) -> bool:
        """bool: whether it takes no part in what the null stream waits for."""
        return bool(runtime.streamGetFlags(self.ptr) & 1)

    @property
    def priority(self) -> int:
        """int: less is sooner."""
        return int(runtime.streamGetPriority(self.ptr))

    def record(self, event: Event | None = None) -> Event:
        """Record an event, a new one by default."""
        made = Event() if event is None else event
        self._record(made)
        return made

    def _record(self, event: Event) -> None:
        runtime.eventRecord(event.ptr, self.ptr)

    def wait_event(self, event: Event) -> None:
        """Let work that is added from now on wait for an event."""
        runtime.streamWaitEvent(self.ptr, event.ptr, 0)

    def add_callback(self, callback: Any, arg: Any) -> None:
        """Call ``callback(stream, status, arg)`` when the work so far is done."""
        runtime.launchHostFunc(self.ptr, lambda given: callback(self, 0, given), arg)

    def launch_host_func(self, callback: Any, arg: Any) -> None:
        """Call ``callback(arg)`` when the work so far is done."""
        runtime.launchHostFunc(self.ptr, callback, arg)

    def begin_capture(self, mode: int | None = None) -> None:
        """Record what is added from now on in a graph, instead of running it."""
        if not self.ptr:
            raise RuntimeError("cannot capture on the default (legacy) stream")
        compute_all()
        # Recorded work waits for nothing that was there before. To wait for the device would spoil another capture.
        if _capturing:
            runtime.streamSynchronize(self.ptr)
        else:
            runtime.deviceSynchronize()
        runtime.streamBeginCapture(self.ptr, runtime.streamCaptureModeRelaxed if mode is None else mode)
        record(self._core, True)
        _capturing.add(self.ptr)

    def end_capture(self) -> Graph:
        """The graph of what was recorded.

        The stream does not record any more, also if this fails.
        """
        try:
            if self.is_capturing():  # otherwise a call has spoiled it, and the driver says so below
                with self:
                    compute_all(self._core)
        except BaseException:
            with contextlib.suppress(runtime.CUDARuntimeError):
                runtime.graphDestroy(self._end())
            raise
        kept = self._kept
        return Graph(self._end(), kept)

    def _end(self) -> int:
        record(self._core, False)
        _capturing.discard(self.ptr)
        self._kept = []
        return int(runtime.streamEndCapture(self.ptr))

    def is_capturing(self) -> bool:
        """Whether work is recorded."""
        return runtime.streamIsCapturing(self.ptr)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _BaseStream) and self.ptr == other.ptr

    def __hash__(self) -> int:
        return hash(self.ptr)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.ptr} (device {self.device_id})>"


class Graph:
    """Work that a stream has recorded; from ``Stream.end_capture``."""

    def __init__(self, graph: int, kept: list[Any]) -> None:
        self.graph = graph
        self.graphExec = runtime.graphInstantiate(graph)
        self._kept = kept
        weakref.finalize(self, _destroy, graph, self.graphExec).atexit = False

    def launch(self, stream: Any = None) -> None:
        """Run it in a stream, the current one by default."""
        compute_all()  # what reads arrays that the graph may write
        runtime.graphLaunch(self.graphExec, (get_current_stream() if stream is None else stream).ptr)

    def upload(self, stream: Any = None) -> None:
        """Prepare the first launch."""
        runtime.graphUpload(self.graphExec, (get_current_stream() if stream is None else stream).ptr)

    def debug_dot_str(self, flags: int = 0) -> str:
        """The graph in the language of Graphviz."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "graph.dot"
            runtime.graphDebugDotPrint(self.graph, str(path).encode(), flags)
            return path.read_text()


def _destroy(graph: int, executable: int) -> None:
    with contextlib.suppress(runtime.CUDARuntimeError):  # the context is broken: it has no graphs any more
        runtime.graphExecDestroy(executable)
        runtime.graphDestroy(graph)


class Stream(_BaseStream):
    """A stream.

    Parameters
    ----------
    null : bool
        The null stream.
    non_blocking : bool
        Whether it takes no part in what the null stream waits for.
    ptds : bool
        The default stream of the thread.
    priority : int, optional
        Less is sooner.
    """

    null: Stream
    ptds: Stream

    def __init__(
        self, null: bool = False, non_blocking: bool = False, ptds: bool = False, priority: int | None = None
    ) -> None:
        if null and ptds:
            raise ValueError("null and ptds cannot be both True")
        if null:
            super().__init__(LEGACY_DEFAULT_STREAM, 0, -1)
        elif ptds:
            super().__init__(PER_THREAD_DEFAULT_STREAM, 2, -1)
        else:
            device = _state.device_id()
            core = cupola.Device(device).create_stream(nonblocking=non_blocking, priority=priority)
            super().__init__(core, int(core.handle), device)

    @staticmethod
    def from_external(obj: Any) -> ExternalStream:
        """The stream of another library, which has ``__cuda_stream__``."""
        version, address = obj.__cuda_stream__()
        if version != 0:
            raise ValueError(f"version {version} of __cuda_stream__ is not known")
        made = ExternalStream(address)
        made._owner = obj
        return made


class ExternalStream(_BaseStream):
    """The stream of another library by its address, which must live as long as it is used.

    Parameters
    ----------
    ptr : int
        The address.
    device_id : int
        Whose stream it is.
    """

    def __init__(self, ptr: int, device_id: int = -1) -> None:
        address = int(ptr)
        tokens = {0: LEGACY_DEFAULT_STREAM, 1: LEGACY_DEFAULT_STREAM, 2: PER_THREAD_DEFAULT_STREAM}
        core = tokens.get(address) or cupola.Stream.from_handle(address)
        super().__init__(core, address, device_id)
        self._owner: Any = None


Stream.null = Stream(null=True)
Stream.ptds = Stream(ptds=True)


def get_current_stream(device_id: int = -1) -> Any:
    """The current stream of the thread on a device."""
    found = _state.stream_of(_state.device_id() if device_id < 0 else device_id)
    return Stream.null if found is None else found


def core_stream(stream: Any) -> cupola.Stream:
    """The stream of cupola for one that a program gives; None: the current one."""
    if stream is None:
        stream = get_current_stream()
    if isinstance(stream, _BaseStream):
        return stream._core
    if isinstance(stream, cupola.Stream):
        return stream
    if hasattr(stream, "__cuda_stream__"):
        return Stream.from_external(stream)._core
    raise TypeError(f"stream must be a cupy.cuda.Stream, got {type(stream).__name__}")
