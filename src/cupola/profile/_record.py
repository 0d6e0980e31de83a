"""What a timeline consists of."""

from __future__ import annotations

from typing import NamedTuple

# Kinds of records, numbered as those who make them do: cpu/driver/trace/trace.h and cupti.c.
KINDS = (
    "call",
    "kernel",
    "copy",
    "fill",
    "host function",
    "wait",
    "event",
    "values",
    "allocate",
    "free",
    "graph",
    "library",
)  # fmt: skip
PLACES = {"D": "device", "H": "host", "P": "pinned", "M": "managed", "A": "array", " ": ""}


class Record(NamedTuple):
    """Something that took time.

    Parameters
    ----------
    kind : str
        On the host ``"call"``, of the driver or the runtime, ``"range"`` or ``"mark"``. On a device ``"kernel"``,
        ``"copy"``, ``"fill"``, ``"host function"``, ``"wait"``, ``"event"``, ``"values"``, ``"allocate"``, ``"free"``,
        ``"graph"`` or ``"library"``, a call of a math library.
    name : str
        Of the kernel as the compiler has it, of the function or the range; ``"host to device"`` for a copy.
    begin, end : int
        Nanoseconds of the clock of ``time.monotonic_ns``.
    call : int
        The number of the call. Operations have that of the call that asked for them; 0 if it is not known.
    place : int
        The system's number of the thread, for what happened on the host; a number of the stream otherwise.
    device : int
        Ordinal of the device, -1 for the host.
    bytes : int
        Of a copy, a fill, an allocation.
    memory : int
        Bytes of the device's memory in use at the end, where that is known.
    grid, block : tuple of int
        Of a kernel.
    shared : int
        Bytes of dynamic shared memory of a kernel.
    status : int
        The error as a CUresult or cudaError_t; 0 for none.
    """

    kind: str
    name: str
    begin: int
    end: int
    call: int = 0
    place: int = 0
    device: int = -1
    bytes: int = 0
    memory: int = 0
    grid: tuple[int, int, int] = (0, 0, 0)
    block: tuple[int, int, int] = (0, 0, 0)
    shared: int = 0
    status: int = 0

    @property
    def seconds(self) -> float:
        """float: how long it took."""
        return (self.end - self.begin) / 1e9


Raw = tuple[int, int, int, int, int, int, int, str, tuple[int, int, int], tuple[int, int, int], int, int, int, str, str]


def of_raw(raw: Raw) -> Record:
    """A record as C makes it."""
    kind, begin, end, call, place, size, memory, name, grid, block, shared, device, status, source, target = raw
    word = KINDS[kind]
    if word == "copy":
        name = f"{PLACES[source]} to {PLACES[target]}"
    return Record(word, name or word, begin, end, call, place, device, size, memory, grid, block, shared, status)
