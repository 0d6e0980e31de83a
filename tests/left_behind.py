"""What the processes of a test may leave on the machine when they end or are killed: nothing.

cupola keeps what processes share in anonymous files and in sockets without a name in any folder, which are there for as
long as a process holds them. So what can be left are processes, with what they hold, and descriptors of pytest's own.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from tests import limits, processes


@contextlib.contextmanager
def nothing_left_behind() -> Iterator[None]:
    """Fail if what happens meanwhile leaves processes or descriptors; they may take a moment to end."""
    before = left()
    yield
    limits.until(lambda: not left().keys() - before.keys(), lambda: told(before))


def told(before: dict[str, str]) -> str:
    """What is left, and was not there before."""
    return "these are left: " + "; ".join(words for name, words in left().items() if name not in before)


def left() -> dict[str, str]:
    """The descendants of this process, and its descriptors of cupola's: their names, and what is to be said of them."""
    alive = processes.living()
    descendants = processes.below(processes.OWN, alive) | {os.getpid()}
    while more := {number for number, process in alive.items() if process.parent in descendants} - descendants:
        descendants |= more
    things = {}
    for number in descendants - {os.getpid()}:
        holds = ", ".join(descriptors(number)) or "nothing"
        things[f"process {number} {alive[number].began}"] = f"process {number}, {alive[number].command}, holds {holds}"
    return things | {name: name for name in descriptors(os.getpid())}


def descriptors(process: int) -> list[str]:
    """The anonymous files of a process and its sockets that have names, as far as they are cupola's."""
    sockets = {}
    for line in Path("/proc/net/unix").read_text().splitlines()[1:]:
        words = line.split()
        if len(words) == 8:
            sockets[f"socket:[{words[6]}]"] = words[7]
    names = []
    with contextlib.suppress(OSError):  # it has ended, or is another user's
        for file in os.listdir(f"/proc/{process}/fd"):
            with contextlib.suppress(OSError):
                target = os.readlink(f"/proc/{process}/fd/{file}")
                if (name := sockets.get(target, target)).startswith(("/memfd:cupola", "@cupola")):
                    names.append(f"descriptor {file}: {name}")
    return names
