"""Recording a timeline, and what can be made of it."""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING

from cupola._counted import counted
from cupola.bindings import _provider
from cupola.profile import _chrome, _nvtx, _page, _ranges, _summary
from cupola.profile._record import Record, of_raw

if TYPE_CHECKING:
    from types import TracebackType

MOST = 2_000_000  # records: some 300 MB while they are recorded

_only = threading.Lock()
_shared: Timeline | None = None
"""That of ``cupola profile --timeline``. A program that records one, too, takes over meanwhile."""


class Timeline:
    """What happened while it was recorded; :func:`timeline` makes it.

    Attributes
    ----------
    records : list of Record
        By the time of their beginning. Empty until the ``with`` block has ended.
    lost : int
        How many records there was no room for.
    """

    def __init__(self, file: str | os.PathLike[str] | None, most: int) -> None:
        self.records: list[Record] = []
        self.lost = 0
        self._file = None if file is None else os.fspath(file)
        self._most = most
        self._ranges: list[Record] = []
        self._earlier: list[Record] = []
        self._earlier_lost = 0
        self._outer: Timeline | None = None
        if self._file is not None and not self._file.endswith((".json", ".html")):
            raise ValueError(
                f"{self._file}: a timeline is written as .html, for a browser, or as .json, for Perfetto and Chrome"
            )

    def __repr__(self) -> str:
        return f"<Timeline {counted(len(self.records), 'record')}>"

    def __enter__(self) -> Timeline:
        if not _only.acquire(blocking=False):
            raise RuntimeError("a timeline is recorded already: there can be one at a time")
        self._outer = _shared
        try:
            if self._outer is not None:
                self._outer._pause()
            _start(self._most)
        except BaseException:
            if self._outer is not None:
                self._outer._go_on()
            _only.release()
            raise
        self.begin = time.monotonic_ns()
        _ranges.record_into(self._ranges)
        return self

    def _share(self) -> None:
        """Let others be recorded meanwhile: what is in them is in this one, too."""
        global _shared
        self.__enter__()
        _shared = self
        _only.release()

    def _end_sharing(self) -> None:
        global _shared
        _only.acquire()  # one that a thread still records ends first
        _shared = None
        self.__exit__(None, None, None)

    def _pause(self) -> None:
        _wait()
        raw, lost = _stop()
        self._earlier += raw
        self._earlier_lost += lost

    def _resume(self, inner: Timeline, raw: list[Record]) -> None:
        self._earlier += [*raw, *inner._ranges]
        self._earlier_lost += inner.lost
        self._go_on()

    def _go_on(self) -> None:
        _start(max(1, self._most - len(self._earlier)))
        _ranges.record_into(self._ranges)

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        try:
            _wait()
            self.end = time.monotonic_ns()
            raw, self.lost = _stop()
            _ranges.record_into(None)
            if self._outer is not None:
                self._outer._resume(self, raw)
        finally:
            if self._outer is None:
                _ranges.record_into(None)
            _only.release()
        self.lost += self._earlier_lost
        self.records = sorted([*self._earlier, *raw, *self._ranges], key=lambda record: (record.begin, -record.end))
        if self._file is not None:
            self.save(self._file)

    def save(self, file: str | os.PathLike[str]) -> None:
        """Write it to a file.

        Parameters
        ----------
        file : path
            ``.html``: a page that shows it, complete in itself. ``.json``: for Perfetto (ui.perfetto.dev) and
            ``chrome://tracing``.
        """
        name = os.fspath(file)
        text = _page.page(self.records) if name.endswith(".html") else _chrome.trace(self.records)
        with open(name, "w", encoding="utf-8") as out:
            out.write(text)

    def summary(self) -> str:
        """Say where the time went: kernels, copies, waiting, gaps, calls and ranges, the longest first."""
        return _summary.summary(self.records, self.begin, self.end, self.lost)


def timeline(file: str | os.PathLike[str] | None = None, *, most: int = MOST) -> Timeline:
    """Record what happens in a ``with`` block: calls, kernels, copies, graphs, allocations and named ranges.

    On the CPU device its driver notes the times. On a GPU it is CUPTI, which the package ``nvidia-cuda-cupti`` has. At
    the end of the block the work of the current device is waited for.

    Parameters
    ----------
    file : path, optional
        Where to write it at the end: ``.html`` or ``.json``.
    most : int
        How many records to store. What is beyond is counted.

    Returns
    -------
    Timeline

    Raises
    ------
    ValueError
        For a file with another ending.
    RuntimeError
        When the block begins: if another timeline is recorded already, or CUPTI is missing.

    Examples
    --------
    >>> with cupola.profile.timeline() as recorded:
    ...     dev.allocate(1024, stream=stream).close()
    >>> [record.name for record in recorded.records if record.kind == "call"]
    ['cuMemAllocFromPoolAsync', 'cuMemFreeAsync']
    """
    if most < 1:
        raise ValueError(f"most must be at least 1, not {most}")
    return Timeline(file, most)


def _start(most: int) -> None:
    _nvtx.begin()
    if _provider.is_cpu():
        from cupola.cpu import _driver

        _driver.begin_trace(most)
        return
    from cupola.profile import _cupti

    _cupti.start(most)


def _stop() -> tuple[list[Record], int]:
    named, missing = _nvtx.take()
    if _provider.is_cpu():
        from cupola.cpu import _driver

        raw, lost = _driver.end_trace()
        records = [of_raw(each) for each in raw]
    else:
        from cupola.profile import _cupti

        raw, lost = _cupti.stop()
        records = [of_raw(each) for each in raw]
        records += _cupti.graphs(records)
    for name, begin, end, thread in named:
        records.append(Record("range" if end > begin else "mark", name, begin, end, place=thread))
    return records, lost + missing


def _wait() -> None:
    """Wait for the current device. What failed there is the program's to hear of."""
    from cupola.bindings import driver

    status, context = driver.cuCtxGetCurrent()
    if not status and int(context):
        driver.cuCtxSynchronize()
