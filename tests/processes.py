"""Child processes of tests: `run` one to its end, or have a `Child` beside the test.

All of them have one limit (`tests.limits`). A child that reaches it fails the test, with what it printed, and is ended
with all of its descendants, whatever groups and sessions these have made for themselves. So is one that the test leaves
alone, by an exception or by forgetting it.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from subprocess import DEVNULL, PIPE, STDOUT
from types import TracebackType
from typing import Any, NamedTuple

from tests import limits

__all__ = ["DEVNULL", "PIPE", "STDOUT", "Child", "Overdue", "end_all", "living", "run"]

MARK = "CUPOLA_TEST_CHILD"
"""The variable that descendants of a child inherit, a path: "/7/8/0/9/3" is child 3 of process 9 in child 0 of process
8, a worker of pytest's process 7."""

OWN = f"{os.environ.get(MARK, '')}/{os.getpid()}"
"""The mark of this process, below which are those of its children."""

_numbers = itertools.count()


class Overdue(AssertionError):
    """A child had not ended when its time was over."""


class Living(NamedTuple):
    """A process that has not ended."""

    parent: int
    session: int
    began: str
    command: str
    mark: str


def living() -> dict[int, Living]:
    """All processes of the machine that have not ended, by their numbers."""
    processes = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        folder = Path("/proc", name)
        with contextlib.suppress(OSError):
            state, parent, _, session, *rest = (folder / "stat").read_text().rpartition(")")[2].split()
            if state in "ZX":
                continue
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
            try:
                variables = (folder / "environ").read_bytes().decode(errors="replace").split("\0")
            except OSError:  # of another user
                variables = []
            mark = next((v.partition("=")[2] for v in variables if v.startswith(f"{MARK}=")), "")
            processes[int(name)] = Living(int(parent), int(session), rest[15], command, mark)
    return processes


def below(mark: str, processes: Mapping[int, Living]) -> set[int]:
    """The processes that have inherited a mark."""
    return {number for number, process in processes.items() if f"{process.mark}/".startswith(f"{mark}/")}


class Child(subprocess.Popen[Any]):
    """A process beside the test, as `subprocess.Popen` makes it, in a session of its own.

    Used in a ``with`` statement, it is ended after it, with all of its descendants. `wait` and `communicate` fail
    where the process does not end in time.
    """

    def __init__(
        self, command: Iterable[object], *, env: Mapping[str, str] | None = None, text: bool = True, **options: Any
    ) -> None:
        self.mark = f"{OWN}/{next(_numbers)}"
        environment = {**(os.environ if env is None else env), MARK: self.mark}
        words = [word if isinstance(word, bytes) else str(word) for word in command]
        super().__init__(words, env=environment, text=text, start_new_session=True, **options)

    def communicate(self, input: Any = None, timeout: float | None = None) -> tuple[Any, Any]:
        """Give it its input, and return what it prints until its end."""
        assert timeout is None, "the limit is that of the test"
        limit = limits.for_children()
        while (left := limit.left(limits.CHILDREN)) > 0:  # it grows while the machine becomes busier
            try:
                return super().communicate(input, timeout=left)
            except subprocess.TimeoutExpired:
                input = None
        self.end()
        try:
            printed = super().communicate(input, timeout=5)
        except subprocess.TimeoutExpired as error:  # somebody else holds the pipes
            printed = error.output, error.stderr
        raise Overdue(self._overdue(limit, *printed))

    def wait(self, timeout: float | None = None) -> int:
        """Wait until it ends; returns its status."""
        if timeout is not None:
            return super().wait(timeout)
        limit = limits.for_children()
        while (left := limit.left(limits.CHILDREN)) > 0:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return super().wait(left)
        if self.poll() is None:
            self.end()
            raise Overdue(self._overdue(limit, None, None))
        return int(self.returncode)

    def _overdue(self, limit: limits.Limit, *printed: str | bytes | None) -> str:
        seconds = f"{limit.whole() * limits.CHILDREN:.0f} s"
        words = [f"a child process had not ended after {seconds}, and has been killed: {self.args}"]
        for name, text in zip(("standard output", "standard error"), printed, strict=True):
            if text:
                text = text.decode(errors="replace") if isinstance(text, bytes) else text
                words.append(f"---- its {name} ----\n{text.rstrip()}")
        return "\n".join(words)

    def family(self) -> dict[int, Living]:
        """The process itself, until it ends, and its descendants: by their parents, by its session, by their mark."""
        processes = living()
        members = below(self.mark, processes)
        if self.returncode is None or self.pid not in processes:  # otherwise the number is another's by now
            members |= {number for number, process in processes.items() if self.pid in (number, process.session)}
        while more := {number for number, process in processes.items() if process.parent in members} - members:
            members |= more
        return {number: processes[number] for number in members}

    def end(self) -> None:
        """Kill it, if it has not ended, and all of its descendants."""
        limit = limits.Limit(10)
        while (members := self.family()) and limit.left() > 0:
            for number in members:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(number, signal.SIGKILL)
            time.sleep(0.005)
        super().wait(10)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.end()
        super().__exit__(kind, error, traceback)


def run(
    command: Iterable[object],
    *,
    input: Any = None,
    check: bool = False,
    stdout: Any = PIPE,
    stderr: Any = PIPE,
    **options: Any,
) -> subprocess.CompletedProcess[Any]:
    """Run a program to its end, and return its status, which must be 0 if `check` says so, and what it printed."""
    if input is not None:
        options["stdin"] = PIPE
    child = Child(command, stdout=stdout, stderr=stderr, **options)
    try:
        printed = child.communicate(input)
    except BaseException:
        child.end()
        raise
    done = subprocess.CompletedProcess(child.args, child.returncode, *printed)
    if check and done.returncode:
        raise AssertionError(f"status {done.returncode} of {child.args}\n{done.stdout or ''}\n{done.stderr or ''}")
    return done


def end_all() -> list[str]:
    """End what is left of all children, also of those of pytest's workers; returns their commands.

    Helpers of Python's, which end with this process, are no children.
    """
    limit = limits.Limit(5)
    while members := {n: p for n, p in living().items() if p.mark.startswith(f"{OWN}/")}:
        if limit.left() <= 0:  # those that were about to end have done so
            for number in members:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(number, signal.SIGKILL)
            break
        time.sleep(0.05)
    return [process.command for process in members.values()]
