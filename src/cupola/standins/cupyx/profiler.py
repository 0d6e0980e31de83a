"""Measuring functions, and named ranges of time."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable
from typing import Any

import numpy

from cupola.profile import range as _range
from cupola.standins.cupy.cuda.device import get_device_id
from cupola.standins.cupy.cuda.profiler import profile as profile
from cupola.standins.cupy.cuda.stream import Event, get_current_stream, get_elapsed_time


class PerfCaseResult:
    """Times of a function, in seconds.

    Parameters
    ----------
    name : str
        Of the function.
    ts : numpy.ndarray
        The host's times, and those of each device.
    devices : tuple of int
        Which devices.
    """

    def __init__(self, name: str, ts: numpy.ndarray, devices: tuple[int, ...]) -> None:
        self.name, self._ts, self._devices = name, ts, devices

    @property
    def cpu_times(self) -> Any:
        """numpy.ndarray: of the calls, on the host."""
        return self._ts[0]

    @property
    def gpu_times(self) -> Any:
        """numpy.ndarray: of the work, on the devices."""
        return self._ts[1:]

    def to_str(self, show_gpu: bool = False) -> str:
        """The times as a line of text, in microseconds."""
        parts = [("CPU", self.cpu_times)]
        if show_gpu:
            parts += [(f"GPU-{k}", row) for k, row in zip(self._devices, self.gpu_times, strict=True)]
        texts = [
            f"{name}: {row.mean() * 1e6:9.3f} us   +/- {row.std() * 1e6:6.3f} "
            f"(min: {row.min() * 1e6:9.3f} / max: {row.max() * 1e6:9.3f}) us"
            for name, row in parts
        ]
        return f"{self.name:<20s}:" + "     ".join(texts)

    def __str__(self) -> str:
        return self.to_str(show_gpu=True)


def benchmark(
    func: Callable[..., Any],
    args: tuple[Any, ...] = (),
    kwargs: dict[str, Any] | None = None,
    n_repeat: int = 10000,
    *,
    name: str | None = None,
    n_warmup: int = 10,
    max_duration: float = math.inf,
    devices: Any = None,
) -> PerfCaseResult:
    """Call a function many times, and measure the calls on the host and their work on the device."""
    keywords = kwargs or {}
    here = get_device_id()
    if devices is not None and tuple(map(int, devices)) != (here,):
        raise NotImplementedError(
            f"benchmark(devices={devices}): only the current device, {here}, is measured; "
            "measure others in a block of `with cupy.cuda.Device(n):`"
        )
    if n_repeat < 1:
        raise ValueError(f"n_repeat is {n_repeat}: the function is called once at least")
    for _ in range(n_warmup):
        func(*args, **keywords)
    begin, end = Event(), Event()
    rows: list[tuple[float, float]] = []
    started = time.perf_counter()
    stream = get_current_stream()
    stream.synchronize()
    for _ in range(n_repeat):
        begin.record(stream)
        before = time.perf_counter()
        func(*args, **keywords)
        host = time.perf_counter() - before
        end.record(stream)
        end.synchronize()
        rows.append((host, get_elapsed_time(begin, end) * 1e-3))
        if time.perf_counter() - started > max_duration:
            break
    given = name if name is not None else getattr(func, "__name__", "function")
    return PerfCaseResult(given, numpy.asarray(rows).T, (here,))


class time_range(contextlib.ContextDecorator):
    """A range of time with a name, which ``cupola profile --timeline`` shows: of a block, or of calls of a function.

    Parameters
    ----------
    message : str, optional
        The name; of a decorated function its own, unless one is given.
    color_id, argb_color : int, optional
        Mean nothing here.
    sync : bool
        Whether the current stream is waited for at the end.
    """

    def __init__(
        self,
        message: str | None = None,
        color_id: int | None = None,
        argb_color: int | None = None,
        sync: bool = False,
    ) -> None:
        if color_id is not None and argb_color is not None:
            raise ValueError("Only either color_id or argb_color can be specified")
        self.message, self.sync = message, sync
        self._open: list[Any] = []

    def __call__(self, function: Any) -> Any:
        if self.message is None:
            self.message = function.__name__
        return super().__call__(function)

    def __enter__(self) -> time_range:
        if self.message is None:
            raise ValueError("time_range needs a message, where it does not decorate a function")
        self._open.append(_range(self.message))
        self._open[-1].__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        if self.sync:
            get_current_stream().synchronize()
        self._open.pop().__exit__(*error)
