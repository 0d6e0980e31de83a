"""A communicator whose messages come from and go to the memory of devices."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from mpi4py import MPI

from cupola import Array, Buffer
from cupola.core.device._stream import stream_in_force

from . import _request
from ._aware import is_cuda_aware, is_host_memory, only_waits
from ._planned import Plan, carry_out
from ._request import RECEIVING, Request
from ._side import Side
from ._staging import Stages
from ._usual import Settings

if TYPE_CHECKING:
    from cupola import Stream

READ, WRITTEN, BOTH = (True, False), (False, True), (True, True)

# Method -> what MPI does with each buffer. The method that does not wait is named as in MPI: Send and Isend.
BUFFERS: dict[str, dict[str, tuple[bool, bool]]] = {
    "Send": {"buf": READ},
    "Ssend": {"buf": READ},
    "Rsend": {"buf": READ},
    "Recv": {"buf": WRITTEN},
    "Sendrecv": {"sendbuf": READ, "recvbuf": WRITTEN},
    "Sendrecv_replace": {"buf": BOTH},
    "Bcast": {"buf": BOTH},
    "Reduce": {"sendbuf": READ, "recvbuf": WRITTEN},
    "Allreduce": {"sendbuf": READ, "recvbuf": WRITTEN},
    "Scan": {"sendbuf": READ, "recvbuf": WRITTEN},
    "Exscan": {"sendbuf": READ, "recvbuf": BOTH},  # the first rank gets nothing
    "Gather": {"sendbuf": READ, "recvbuf": WRITTEN},
    "Gatherv": {"sendbuf": READ, "recvbuf": BOTH},
    "Scatter": {"sendbuf": READ, "recvbuf": WRITTEN},
    "Scatterv": {"sendbuf": READ, "recvbuf": WRITTEN},
    "Allgather": {"sendbuf": READ, "recvbuf": WRITTEN},
    "Allgatherv": {"sendbuf": READ, "recvbuf": BOTH},
    "Alltoall": {"sendbuf": READ, "recvbuf": WRITTEN},
    "Alltoallv": {"sendbuf": READ, "recvbuf": BOTH},
    "Alltoallw": {"sendbuf": READ, "recvbuf": BOTH},
    "Reduce_scatter": {"sendbuf": READ, "recvbuf": WRITTEN},
    "Reduce_scatter_block": {"sendbuf": READ, "recvbuf": WRITTEN},
    "Barrier": {},
}
# Methods that return communicators: theirs take arrays of devices, too.
MAKERS = ("Clone", "Create", "Create_cart", "Create_graph", "Create_group", "Dup", "Split", "Split_type", "Sub")
# Messages from one rank to another; the others are collective operations.
TO_ONE = ("Send", "Ssend", "Rsend", "Recv", "Sendrecv", "Sendrecv_replace")
# Those that only the root gets something from; what the others give for it is not looked at.
TO_ROOT = ("Reduce", "Gather", "Gatherv")
# Collective operations that treat each element by itself, so that a large one may be done in parts, the copies of one
# beside the messages of another.
IN_PARTS = ("Allreduce", "Bcast", "Reduce")


class Comm(Settings):
    """A communicator of mpi4py whose messages come from and go to the memory of devices.

    The methods with capital letters (`Send`, `Irecv`, `Allreduce`, ...) take a Buffer, an :class:`~cupola.Array` or any
    array with DLPack or the CUDA array interface where mpi4py takes a NumPy array. They read it behind what is in the
    stream, and what comes is in the array in stream order. Where MPI is CUDA-aware, it gets the addresses. Elsewhere
    messages pass through pinned memory. All other methods and attributes are those of the communicator of mpi4py.

    Parameters
    ----------
    comm : mpi4py.MPI.Comm
        Such as ``MPI.COMM_WORLD``. It is the same communicator: messages between this and the other form match,
        except those of `part`.
    stream : Stream, optional
        The order in which arrays are read and written. Without it, the thread's current stream; where there is none,
        calls wait for all work of the device, and until what has come is there.
    timeout : float, optional
        How many seconds a call or the `Wait` of a request may take, before it raises TimeoutError. Without it there
        is no limit. Methods in small letters, for Python's objects, have none. For collective operations either all
        ranks have one, or none has.
    part : int, optional
        `Allreduce`, `Bcast` and `Reduce` of more bytes are done in parts of this size. All ranks must then use this
        class for such a call, with the same size.

    Raises
    ------
    TypeError
        If `comm` is not a communicator of mpi4py.

    Examples
    --------
    >>> from mpi4py import MPI
    >>> from cupola import Device, mpi
    >>> comm = mpi.Comm(MPI.COMM_SELF)
    >>> x = Device(0).full(3, 2.0)
    >>> comm.Allreduce(MPI.IN_PLACE, x, op=MPI.SUM)
    >>> x
    <Array shape=(3,) dtype=float64: [2. 2. 2.]>
    """

    def __init__(
        self, comm: MPI.Comm | Comm, *, stream: Stream | None = None, timeout: float | None = None, part: int = 4 << 20
    ) -> None:
        plain: object = comm.comm if isinstance(comm, Comm) else comm
        if not isinstance(plain, MPI.Comm):
            raise TypeError(f"comm must be a communicator of mpi4py, such as MPI.COMM_WORLD, not {type(comm).__name__}")
        if timeout is not None and not timeout > 0:
            raise ValueError(f"timeout must be seconds above 0, or None for no limit, not {timeout!r}")
        if part < 1:
            raise ValueError(f"part must be a number of bytes from 1, not {part!r}")
        self.comm = plain
        self.stream = stream
        self.timeout = timeout
        self.part = part
        self._stages = Stages()

    def __repr__(self) -> str:
        if self.comm == MPI.COMM_NULL:
            return "<Comm null>"
        return f"<Comm rank {self.comm.rank} of {self.comm.size}>"

    def __eq__(self, other: object) -> bool:
        return bool(self.comm == (other.comm if isinstance(other, Comm) else other))

    def __hash__(self) -> int:
        return hash(self.comm.handle)

    if TYPE_CHECKING:  # everything that has no buffer; see _attribute

        def __getattr__(self, name: str) -> Any: ...

    def __reduce__(self) -> tuple[Any, ...]:
        return _made, (self.comm, self.stream, self.timeout, self.part)

    def _like(self, comm: MPI.Comm) -> Comm:
        made = Comm(comm, stream=self.stream, timeout=self.timeout, part=self.part)
        made._stages = self._stages
        return made

    def _start(self, name: str, given: dict[str, Any]) -> Request:
        """Begin a message by the method of mpi4py that does not wait."""
        by_address = is_cuda_aware() and (name in TO_ONE or not only_waits())
        queue, waits, sides, given = self._prepare(name, given, by_address)
        if name.startswith("Sendrecv"):
            requests = self._exchange(given)
        else:
            requests = [getattr(self.comm, "I" + name.lower())(**given)]
        return Request(requests, sides, queue, waits=waits, timeout=self.timeout, what=name)

    def _exchange(self, given: dict[str, Any]) -> list[MPI.Request]:
        """Begin to receive and to send: MPICH 5 does not fill in the status of ``MPI_Isendrecv``."""
        received = given["recvbuf"] if "recvbuf" in given else given["buf"]
        sent = given["sendbuf"] if "sendbuf" in given else _copy_of(given["buf"])
        source, recvtag = given.get("source", MPI.ANY_SOURCE), given.get("recvtag", MPI.ANY_TAG)
        begun = [] if received is None else [self.comm.Irecv(received, source, recvtag)]
        return [*begun, self.comm.Isend(sent, given["dest"], given.get("sendtag", 0))]

    def _do(self, name: str, given: dict[str, Any]) -> None:
        """Do all of a message."""
        if name in IN_PARTS and (parts := self._in_parts(name, given)):
            self._do_in_parts(name, parts)
            return
        status = given.pop("status", None)
        if self.timeout is not None:
            self._start(name, given).Wait(status)
            return
        queue, waits, sides, given = self._prepare(name, given, is_cuda_aware())
        received = None
        if name in RECEIVING:
            given["status"] = status = status or MPI.Status()
        try:
            getattr(self.comm, name)(**given)
        except BaseException:
            for side in sides:
                side.release()
            raise
        if name in RECEIVING:
            assert status is not None
            received = status.Get_count(MPI.BYTE)
        for side in sides:
            side.end(queue, received)
        if waits and any(side.writes and side.is_of_device for side in sides):
            queue.sync()

    def _prepare(
        self, name: str, given: dict[str, Any], by_address: bool
    ) -> tuple[Stream, bool, list[Side], dict[str, Any]]:
        _request.collect()
        sides = {
            parameter: Side(given[parameter], reads=reads, writes=writes)
            for parameter, (reads, writes) in self._directions(name, given).items()
        }
        if not any(side.is_of_device or side.is_shared for side in sides.values()):
            return _NO_QUEUE, False, list(sides.values()), given
        queue, waits = _queue(self.stream)
        given = dict(given)
        for parameter, side in sides.items():
            given[parameter] = side.begin(queue, self._stages, by_address)
        queue.sync()
        return queue, waits, list(sides.values()), given

    def _directions(self, name: str, given: dict[str, Any]) -> dict[str, tuple[bool, bool]]:
        found = {key: way for key, way in BUFFERS[name].items() if given.get(key) is not None}
        if name == "Bcast" and not isinstance(self.comm, MPI.Intercomm):
            found["buf"] = READ if self.comm.rank == given.get("root", 0) else WRITTEN
        elif "sendbuf" in found and given["sendbuf"] is MPI.IN_PLACE and "recvbuf" in found:
            found["recvbuf"] = BOTH
        if name in TO_ROOT and not isinstance(self.comm, MPI.Intercomm) and self.comm.rank != given.get("root", 0):
            found.pop("recvbuf", None)
        return found

    def _is_alone(self) -> bool:
        return not isinstance(self.comm, MPI.Intercomm) and self.comm.size == 1

    def _in_parts(self, name: str, given: dict[str, Any]) -> list[dict[str, Any]]:
        """The arguments of each part, if there is more than one."""
        buffers = {key: given.get(key) for key in BUFFERS[name]}
        flat = {
            key: _flat(memory) for key, memory in buffers.items() if memory is not None and memory is not MPI.IN_PLACE
        }
        if not flat or any(array is None for array in flat.values()):
            return []
        sizes = {(array.size, array.nbytes) for array in flat.values() if array is not None}
        if len(sizes) != 1:
            return []  # for MPI to refuse
        ((count, total),) = sizes
        if total <= self.part or is_cuda_aware() or is_host_memory() or self._is_alone():
            return []  # there are no copies, or no messages beside which they could run
        step = max(1, self.part * count // total)
        return [
            {**given, **{key: array[first : first + step] for key, array in flat.items() if array is not None}}
            for first in range(0, count, step)
        ]

    def _do_in_parts(self, name: str, parts: list[dict[str, Any]]) -> None:
        under_way: list[Request] = []
        for part in parts:
            if len(under_way) == 2:
                under_way.pop(0).Wait()
            under_way.append(self._start(name, part))
        for request in under_way:
            request.Wait()


def _made(comm: MPI.Comm, stream: Stream | None, timeout: float | None, part: int) -> Comm:
    return Comm(comm, stream=stream, timeout=timeout, part=part)


def world(*, stream: Stream | None = None, timeout: float | None = None, part: int = 4 << 20) -> Comm:
    """All ranks of the job, ``MPI_COMM_WORLD``, as a :class:`Comm`; for the parameters see there."""
    return Comm(MPI.COMM_WORLD, stream=stream, timeout=timeout, part=part)


class _NoQueue:
    """Stands for a stream where a message is of the host only."""

    def sync(self) -> None: ...


_NO_QUEUE: Any = _NoQueue()


def _queue(stream: Stream | None) -> tuple[Stream, bool]:
    queue, waits = stream_in_force(stream)
    if not hasattr(queue, "record"):
        raise ValueError("messages are not recorded in graphs: send and receive outside, between launches of the graph")
    return queue, waits


def _flat(memory: Any) -> Array | np.ndarray | None:
    """The elements as one row, if they lie in one piece."""
    if isinstance(memory, Buffer):
        return Array.from_buffer(memory, memory.size, np.uint8)
    if isinstance(memory, Array):
        return memory.reshape(-1) if memory.is_contiguous else None
    if isinstance(memory, np.ndarray):
        return memory.reshape(-1) if memory.flags.c_contiguous else None
    return None


def _copy_of(spec: Any) -> Any:
    """What is sent where the same memory receives at the same time."""
    if isinstance(spec, (list, tuple)):
        return [_copy_of(spec[0]), *spec[1:]]
    return spec.to_numpy() if isinstance(spec, Array) else np.array(spec)


def _method(name: str, run: Callable[[Comm, str, dict[str, Any]], Any], mpi_name: str) -> Callable[..., Any]:
    original = getattr(MPI.Intracomm, mpi_name)
    signature = inspect.signature(original)
    plan = Plan(name, list(signature.parameters.values())[1:], BUFFERS[name])
    waits = run is Comm._do

    def method(self: Comm, *args: Any, **kwargs: Any) -> Any:
        given = plan.bind(args, kwargs)
        if given is None:
            signature.bind(self, *args, **kwargs)  # says what is wrong
        elif waits and carry_out(self, plan, given):
            return None
        else:
            return run(self, name, plan.named(given))
        raise AssertionError(f"{mpi_name} cannot be called so")

    method.__name__ = mpi_name
    method.__qualname__ = f"Comm.{mpi_name}"
    method.__signature__ = signature  # type: ignore[attr-defined]
    method.__doc__ = f"{original.__doc__.splitlines()[-1]} As in mpi4py, and with arrays of devices."
    return method


def _maker(name: str) -> Callable[..., Comm]:
    def method(self: Comm, *args: Any, **kwargs: Any) -> Comm:
        return self._like(getattr(self.comm, name)(*args, **kwargs))

    method.__name__ = name
    method.__qualname__ = f"Comm.{name}"
    method.__doc__ = f"``{name}`` of the communicator of mpi4py; what it makes takes arrays of devices, too."
    return method


def _attribute(name: str) -> property:
    """An attribute of mpi4py's. With one `__getattr__` for all, the interpreter would look longer for each method."""

    def get(self: Comm) -> Any:
        return getattr(self.comm, name)

    return property(get, doc=f"``{name}`` of the communicator of mpi4py.")


for _name in BUFFERS:
    if not hasattr(Settings, _name):
        setattr(Comm, _name, _method(_name, Comm._do, _name))
    setattr(Comm, "I" + _name.lower(), _method(_name, Comm._start, "I" + _name.lower()))
for _name in MAKERS:
    setattr(Comm, _name, _maker(_name))
for _class in (MPI.Intracomm, MPI.Intercomm, MPI.Cartcomm, MPI.Graphcomm, MPI.Distgraphcomm):
    for _name in dir(_class):
        if not _name.startswith("_") and not hasattr(Comm, _name):
            setattr(Comm, _name, _attribute(_name))
