"""Memory of devices that other ranks read and write (one-sided communication, chapter 12 of the MPI standard).

Where MPI does not take device memory, a window has two copies, which is what the standard calls the separate memory
model: the public one, pinned memory that MPI knows, and the private one, the array. They are made equal where the
standard says so, in `Fence` and `Sync`. Which bytes a rank has stored is found by comparing each copy with what both
were the last time. The standard forbids that a rank stores into its memory while others put something there, so the two
never contradict each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from mpi4py import MPI

from ._aware import is_cuda_aware, only_waits
from ._communicator import Comm, _queue
from ._side import Side, as_array, is_of_device

if TYPE_CHECKING:
    from types import TracebackType

    from cupola import Stream


class Window:
    """An array of each rank, which the other ranks read and write. Collective: all ranks of `comm` make it.

    Parameters
    ----------
    array : Buffer, Array, array of another library, or None
        What the others see, in one piece; None where this rank shows nothing.
    comm : Comm or mpi4py.MPI.Intracomm
    stream : Stream, optional
        The order in which arrays are read and written, as for :class:`Comm`, whose stream counts if this is not given.

    Raises
    ------
    ValueError
        If the elements lie apart.
    RuntimeError
        If Open MPI 4 has no way to make windows here. The error says what to set.
    """

    def __init__(self, array: Any, comm: Comm | MPI.Intracomm, *, stream: Stream | None = None) -> None:
        self._comm = comm if isinstance(comm, Comm) else Comm(comm)
        self.stream = self._comm.stream if stream is None else stream
        self._under_way: list[Side] = []
        self._public: Any = None
        self._array: Any = None
        memory = array
        if array is not None and is_of_device(array):
            queue, _ = _queue(self.stream)
            self._array = as_array(array, queue)
            if not self._array.is_contiguous:
                raise ValueError("a window is memory in one piece: this array's elements lie apart; copy it first")
            memory = self._array if self._is_by_address() else self._copy(queue)
            queue.sync()
        try:
            self.win = MPI.Win.Create(memory, getattr(memory, "itemsize", 1), comm=self._comm.comm)
        except MPI.Exception as error:
            self._give_back()
            if advice := _advice(error):
                raise RuntimeError(advice) from error
            raise

    @staticmethod
    def _is_by_address() -> bool:
        return is_cuda_aware() and not only_waits()

    def _copy(self, queue: Stream) -> np.ndarray:
        """The public copy, for MPI, of the array as it is now."""
        self._known, self._own = (self._comm._stages.take(self._array.nbytes) for _ in range(2))
        self._public = self._comm._stages.take(self._array.nbytes)
        memory = self._of(self._public)
        self._array.copy_to(memory, stream=queue)
        queue.sync()
        self._of(self._known)[...] = memory
        return memory

    def __enter__(self) -> Window:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        if kind is None:  # collective: the other ranks may never come to it
            self.Free()

    def Put(self, origin: Any, target_rank: int, target: Any = None) -> None:
        """Write `origin` into the memory of another rank, until the next synchronization. ``MPI_Put``."""
        self.win.Put(self._lend(origin, reads=True), target_rank, target)

    def Get(self, origin: Any, target_rank: int, target: Any = None) -> None:
        """Read from the memory of another rank; it is in `origin` after the next synchronization. ``MPI_Get``."""
        self.win.Get(self._lend(origin, reads=False), target_rank, target)

    def Accumulate(self, origin: Any, target_rank: int, target: Any = None, op: MPI.Op = MPI.SUM) -> None:
        """Combine `origin` with the memory of another rank. ``MPI_Accumulate``."""
        self.win.Accumulate(self._lend(origin, reads=True), target_rank, target, op)

    def Fence(self, assertion: int = 0) -> None:
        """End what is under way between all ranks, and begin the next. Collective. ``MPI_Win_fence``.

        Parameters
        ----------
        assertion : int
            ``MPI.MODE_NOSTORE`` (this rank has stored nothing in its array since) and ``MPI.MODE_NOPRECEDE`` (nobody
            has put anything) save copies.
        """
        queue, waits = _queue(self.stream)
        self._publish(queue, not assertion & MPI.MODE_NOSTORE)
        self.win.Fence(assertion)
        self._arrive(queue, waits, not assertion & MPI.MODE_NOPRECEDE)

    def Sync(self) -> None:
        """Show the others what this rank has stored, and this rank what they have put.

        Needed beside `Lock` and `Unlock`, where the rank whose memory is used takes no part: call it between a
        synchronization of the ranks, such as `Barrier`, and the next use of the memory. It locks this rank's own part
        of the window meanwhile (``MPI_Win_lock``).
        """
        queue, waits = _queue(self.stream)
        rank = self._comm.rank
        self.win.Lock(rank)
        try:
            self._publish(queue, True)
            self._arrive(queue, waits, True)
        finally:
            self.win.Unlock(rank)

    def Lock(self, rank: int, lock_type: int = MPI.LOCK_EXCLUSIVE, assertion: int = 0) -> None:
        """Begin to use the memory of one rank, which takes no part. ``MPI_Win_lock``."""
        self.win.Lock(rank, lock_type, assertion)

    def Unlock(self, rank: int) -> None:
        """End it: what was put is there, and what was got is here. ``MPI_Win_unlock``."""
        self.win.Unlock(rank)
        self._end_gets()

    def Flush(self, rank: int) -> None:
        """Wait for what was put to, and got from one rank. ``MPI_Win_flush``."""
        self.win.Flush(rank)
        self._end_gets()

    def Free(self) -> None:
        """Give the window up. Collective. The array stays. ``MPI_Win_free``."""
        self.win.Free()
        self._give_back()

    def _give_back(self) -> None:
        if self._public is not None:
            for stage in (self._public, self._known, self._own):
                self._comm._stages.give_back(stage)
            self._public = None

    def _of(self, stage: Any) -> np.ndarray:
        view: np.ndarray = stage.view(self._array.shape, self._array.dtype)
        return view

    def _lend(self, origin: Any, *, reads: bool) -> Any:
        side = Side(origin, reads=reads, writes=not reads)
        if not side.is_of_device and not side.is_shared:
            return origin
        queue, _ = _queue(self.stream)
        lent = side.begin(queue, self._comm._stages, self._is_by_address())
        queue.sync()
        self._under_way.append(side)
        return lent

    def _end_gets(self) -> None:
        queue, waits = _queue(self.stream)
        for side in self._under_way:
            side.end(queue, None)
        self._under_way.clear()
        if waits:
            queue.sync()

    def _publish(self, queue: Stream, stored: bool) -> None:
        """Bring the public copy what this rank has stored in the array."""
        if self._public is not None and stored:
            own = self._of(self._own)
            self._array.copy_to(own, stream=queue)
            queue.sync()
            new, old, public = (_bytes(view) for view in (own, self._of(self._known), self._of(self._public)))
            changed = new != old
            public[changed] = new[changed]
            old[changed] = new[changed]
        else:
            queue.sync()

    def _arrive(self, queue: Stream, waits: bool, put: bool) -> None:
        """Bring the array what others have put into the public copy."""
        if self._public is not None and put:
            public, known = self._of(self._public), self._of(self._known)
            # They may put more at any moment: what is compared is what is copied.
            own = self._of(self._own)
            own[...] = public
            if (_bytes(own) != _bytes(known)).any():
                self._array.copy_from(own, stream=queue)
                known[...] = own
                queue.sync()
        self._end_gets()


def _advice(error: MPI.Exception) -> str:
    """What to do where Open MPI makes no window, which it only calls an invalid one; otherwise nothing."""
    name, version = MPI.get_vendor()
    if name != "Open MPI" or version[0] > 4 or error.Get_error_class() != MPI.ERR_WIN:
        return ""
    said = "Open MPI 4 has no way to make this window (MPI_ERR_WIN). "
    if MPI.Query_thread() == MPI.THREAD_MULTIPLE:
        said += (
            "Without shared memory or an RDMA network that it can use, it refuses programs that may call it from "
            "several threads at once, and mpi4py says so of all programs. If this one does not, set "
            "MPI4PY_RC_THREAD_LEVEL=serialized for all ranks. Otherwise, use "
        )
    else:
        said += "Use "
    return said + "UCX for windows (OMPI_MCA_osc=ucx), Open MPI 5 or MPICH"


def _bytes(view: np.ndarray) -> np.ndarray:
    return view.reshape(-1).view(np.uint8)
