"""Which instruments the CPU device puts into kernels (compiler/emit/instruments): switched on and off by name.

Several may want the same one, and each switches it off again.
"""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from collections.abc import Iterator

from cupola.cpu import _driver
from cupola.cpu.compiler.emit import instruments

_wanted: Counter[str] = Counter()
_lock = threading.Lock()


def _change(names: tuple[str, ...], by: int) -> None:
    instruments.set_of(names)  # an unknown name changes nothing
    with _lock:
        for name in names:
            _wanted[name] += by
        _driver.set_instruments(instruments.set_of(on()))


def on() -> tuple[str, ...]:
    """Those that are on, in their order."""
    return tuple(name for name in instruments.NAMES if _wanted[name])


def switch_on(*names: str) -> None:
    """Have kernels that are launched from now on observed; those that were launched before are not."""
    _change(names, 1)


def switch_off(*names: str) -> None:
    """Undo one `switch_on`."""
    _change(names, -1)


@contextlib.contextmanager
def switched_on(*names: str) -> Iterator[None]:
    """Instruments for launches in a ``with`` statement."""
    switch_on(*names)
    try:
        yield
    finally:
        switch_off(*names)
