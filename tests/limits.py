"""How long a test may take, on a machine that does other work as well.

pytest-timeout's number (of the mark, the command line or pyproject.toml) is what a test may take on an idle machine.
With more threads that want to run than there are processors, each gets its share of them, so the limit grows by that
ratio: the load average of the last minute over the number of processors, and at least 1. When the time is over, the
ratio is looked at again, and the largest that was seen since the test began counts. There are three limits, one after
the other, and all of them grow alike, so their order is kept:

1. Child processes (`tests.processes`) have nine tenths of the test's time, all of them together. What they printed is
   in the failure.
2. The test has all of its time. Then a signal ends it with an exception, and the next test begins.
3. Twice that time: the main thread did not come back from C to take notice of the signal. The process ends, and says
   where each of its threads was. So it does when it does not come to its end after all tests, as where what a test
   has left in memory waits for a kernel that never ends.

Whatever waits in a test waits until something has happened, or until `for_children` says that the time is over.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

DEFAULT = 120.0
"""Seconds of what waits outside of a test, and of programs that tests start."""

MOST = 20.0
"""A kernel that never ends makes a machine busy, too."""


def busy() -> float:
    """How many threads want to run for each processor, in the mean of the last minute, but at least 1."""
    return max(1.0, min(MOST, os.getloadavg()[0] / len(os.sched_getaffinity(0))))


class Limit:
    """The time of one test, from now on."""

    def __init__(self, seconds: float = DEFAULT) -> None:
        self.seconds = seconds
        self._began = time.monotonic()
        self._busy = 1.0

    def whole(self) -> float:
        """All of the seconds that the test may take, as far as is known now."""
        self._busy = max(self._busy, busy())
        return self.seconds * self._busy

    def left(self, part: float = 1.0) -> float:
        """Seconds until this part of the time is over; negative when it is."""
        return self.whole() * part - (time.monotonic() - self._began)


_present: Limit | None = None


def begin(seconds: float) -> Limit:
    """The limit of the test that begins now."""
    global _present
    _present = Limit(seconds)
    return _present


def is_set() -> bool:
    """Whether a test is under way, and its time is watched."""
    return _present is not None


def end() -> None:
    """No test is under way."""
    global _present
    _present = None


def for_children() -> Limit:
    """The limit of the test under way; what is no part of a test gets one of its own."""
    return _present or Limit()


CHILDREN = 0.9
"""The part of the time after which children of a test are ended."""


def seconds() -> float:
    """How long children may still take, for calls that want a number."""
    return max(0.1, for_children().left(CHILDREN))


def eventually(condition: Callable[[], object], *, pause: float = 0.002) -> bool:
    """Wait for what others do: whether the condition holds before the time of children is over."""
    limit = for_children()
    while not condition():
        if limit.left(CHILDREN) <= 0:
            return False
        time.sleep(pause)
    return True


def until(condition: Callable[[], object], told: Callable[[], object] | str = "", *, pause: float = 0.002) -> None:
    """Wait until the condition holds. Fails when the time of children is over."""
    if not eventually(condition, pause=pause):
        words = told if isinstance(told, str) else told()
        seconds = f"{for_children().whole() * CHILDREN:.0f} s"
        raise AssertionError(f"it did not happen in {seconds}: {words or condition}")


def wait(event: threading.Event) -> bool:
    """Wait for another thread: whether the event was set before the time of children is over."""
    limit = for_children()
    while not event.is_set() and (left := limit.left(CHILDREN)) > 0:
        event.wait(left)
    return event.is_set()


def join(*threads: threading.Thread) -> None:
    """Wait for threads to end. Fails when the time of children is over."""
    for thread in threads:
        thread.join(seconds())
        assert not thread.is_alive(), f"{thread.name} has not ended"
