"""A message under way."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mpi4py import MPI

if TYPE_CHECKING:
    from cupola import Stream

    from ._side import Side

SPIN = 0.001  # seconds of asking without a pause
PAUSE = 50e-6  # seconds between questions after that

# Methods whose status says how much has come.
RECEIVING = ("Recv", "Sendrecv", "Sendrecv_replace")

# Messages whose Request nobody keeps: MPI uses their memory until they are done.
# Each with what has release(): sides, and the memory of compiled messages that took too long.
forgotten: list[tuple[list[MPI.Request], Sequence[Any]]] = []


class Request:
    """A message under way, as the methods of :class:`Comm` that do not wait return it.

    What has come is on the device, in stream order, only after `Wait` or a `Test` that returned True: MPI does not
    know of the copy. So ``MPI.Request.Waitall`` does not take these objects; :meth:`Waitall` of this class does.
    """

    def __init__(
        self,
        requests: list[MPI.Request],
        sides: list[Side],
        queue: Stream,
        *,
        waits: bool,
        timeout: float | None,
        what: str,
    ) -> None:
        self._requests = requests  # the first is the one that receives, if any does
        self._sides = sides
        self._queue = queue
        self._waits = waits
        self._timeout = timeout
        self._what = what
        self._done = False
        self._status = MPI.Status()

    def __repr__(self) -> str:
        return f"<Request {self._what} {'done' if self._done else 'under way'}>"

    def Test(self, status: MPI.Status | None = None) -> bool:
        """Tell whether it is done; then what has come is in the queue to the device. ``MPI_Test``."""
        if self._done:
            return True
        status = self._status = status or self._status
        while self._requests:
            # The status of the last one asked, and so of the first, is what counts.
            if not self._requests[-1].Test(status):
                return False
            self._requests.pop()
        self._finish(status)
        return True

    def Wait(self, status: MPI.Status | None = None, *, timeout: float | None = None) -> bool:
        """Wait until it is done. ``MPI_Wait``, or ``MPI_Test`` again and again where there is a time limit.

        Parameters
        ----------
        status : MPI.Status, optional
            Says what has come.
        timeout : float, optional
            Seconds; that of the communicator if not given.

        Returns
        -------
        bool
            True.

        Raises
        ------
        TimeoutError
            When it is not done by then. The message is still under way, so its memory stays in use.
        """
        if self._done:
            return True
        limit = self._timeout if timeout is None else timeout
        status = status or MPI.Status()
        if limit is None:
            while self._requests:
                self._requests[-1].Wait(status)
                self._requests.pop()
            self._finish(status)
            return True
        begin = time.monotonic()
        while not self.Test(status):
            waited = time.monotonic() - begin
            if waited > limit:
                raise TimeoutError(too_late(self._what, limit))
            if waited > SPIN:
                time.sleep(PAUSE)
        return True

    def Cancel(self) -> None:
        """Ask MPI to give the message up; it is done then, one way or the other. ``MPI_Cancel``."""
        for request in self._requests:
            request.Cancel()

    @staticmethod
    def Waitall(requests: Sequence[Request], *, timeout: float | None = None) -> bool:
        """Wait for each of them; `timeout` is for all of them together. Returns True."""
        end = None if timeout is None else time.monotonic() + timeout
        for request in requests:
            request.Wait(timeout=None if end is None else max(0.0, end - time.monotonic()))
        return True

    @staticmethod
    def Testall(requests: Sequence[Request]) -> bool:
        """Tell whether all of them are done."""
        return all([request.Test() for request in requests])

    def _finish(self, status: MPI.Status) -> None:
        self._done = True
        received = None
        if self._what in RECEIVING:
            received = 0 if status.Is_cancelled() else status.Get_count(MPI.BYTE)
        elif status.Is_cancelled():
            received = 0
        for side in self._sides:
            side.end(self._queue, received)
        if self._waits and any(side.writes and side.is_of_device for side in self._sides):
            self._queue.sync()

    def __del__(self) -> None:
        if not getattr(self, "_done", True):
            forgotten.append((self._requests, self._sides))


def too_late(what: str, limit: float) -> str:
    """What TimeoutError says."""
    return f"{what} was not done within {limit:g} s: a rank may have ended or be stuck. comm.Abort() ends all of them"


def collect() -> None:
    """Take the memory back from messages that nobody waits for and that are done."""
    for entry in list(forgotten):
        requests, sides = entry
        if all([request.Test() for request in requests]):
            forgotten.remove(entry)
            for side in sides:
                side.release()
