"""What NCCL answers to calls with one rank, right and wrong ones: ``answers.py [PARTS]`` prints a line for each.

tests/nccl/h200.txt has the lines of NVIDIA's library (2.28.9) on an H200: ``answers.py > tests/nccl/h200.txt`` there,
without those that differ from run to run, and without the ends of parts that NVIDIA's library does not survive.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from cupola import Device
from cupola.bindings import driver, nccl

Type, Op, Result = nccl.ncclDataType_t, nccl.ncclRedOp_t, nccl.ncclResult_t
UNDEFINED = -(2**31)
NUMBERS = """
    blocking cgaClusterSize minCTAs maxCTAs splitShare trafficClass collnetEnable CTAPolicy shrinkShare nvlsCTAs
    nChannelsPerNetPeer nvlinkCentricSched graphUsageMode numRmaCtx maxP2pPeers graphStreamOrdering
    launchOrderImplicit numRmaSig rmaEagerInit hostCftMode nvlsHostMode
"""
said = ""


def show(value: Any) -> str:
    if isinstance(value, nccl.ncclResult_t):
        return value.name
    if isinstance(value, (int, bytes)):
        return value.decode() if isinstance(value, bytes) else str(value)
    return "a handle" if int(value) else "no handle"


def tell(what: str, call: Callable[[], tuple[Any, ...]], shown: bool = True) -> Any:
    """Print the status, what is returned, and the text of an error; returns the first result."""
    global said
    status, *values = call()
    line = f"{what} -> {status.name}"
    if shown and status == Result.ncclSuccess:
        line += "".join(f" {show(value)}" for value in values)
    if status not in (Result.ncclSuccess, Result.ncclInProgress):
        text = re.sub(r"\s+", " ", nccl.ncclGetLastError(None)[1].decode()).strip()
        line += " | " + ("(as before)" if text == said else re.sub(r"0x[0-9a-f]+", "0x...", text))
        said = text
    print(line, flush=True)
    return values[0] if values else None


def good(result: tuple[Any, ...]) -> Any:
    assert result[0] == Result.ncclSuccess, (result[0], nccl.ncclGetLastError(None)[1])
    return result[1] if len(result) > 1 else None


def config(**values: int) -> Any:
    made = nccl.ncclConfig_t()
    made.size, made.magic, made.version = 120, nccl.NCCL_API_MAGIC, good(nccl.ncclGetVersion())
    for name in NUMBERS.split():
        setattr(made, name, UNDEFINED)
    for name, value in values.items():
        setattr(made, name, value)
    return made


class One:
    """A device with a stream, two arrays of eight doubles, and a communicator of one rank."""

    def __init__(self, made: Any = None) -> None:
        self.device = Device(0)
        self.device.set_current()
        self.made = self.device.create_stream()
        self.stream = int(self.made.handle)
        self.arrays = [self.device.array(np.arange(8.0) + 10 * i, stream=self.made) for i in range(2)]
        self.made.sync()
        self.x, self.y = (int(array.buffer.handle) for array in self.arrays)
        self.comm = made or good(nccl.ncclCommInitRank(1, good(nccl.ncclGetUniqueId()), 0))

    def numbers(self) -> str:
        return str(self.arrays[1].to_numpy(stream=self.made)[:2].tolist())


def rest(comm: Any, what: str = "") -> None:
    """Until a communicator without blocking has come to rest."""
    end = time.monotonic() + 10
    while good(nccl.ncclCommGetAsyncError(comm)) == Result.ncclInProgress and time.monotonic() < end:
        time.sleep(0.002)
    if what:
        tell(what, lambda: nccl.ncclCommGetAsyncError(comm))


def names() -> None:
    for number in range(-1, 10):
        try:
            result = Result(number)
        except ValueError:
            result = number  # type: ignore[assignment]
        print(f"ncclGetErrorString({number}) -> {nccl.ncclGetErrorString(result)[1].decode()}")


def initialization() -> None:
    Device(0).set_current()
    new = lambda: good(nccl.ncclGetUniqueId())  # noqa: E731
    for count, rank in ((1, 0), (0, 0), (-1, 0), (1, 1), (1, -1), (2, 5)):
        tell(f"ncclCommInitRank({count}, id, {rank})", lambda c=count, r=rank: nccl.ncclCommInitRank(c, new(), r))
    tell("ncclCommInitRankConfig(1, id, 0, NULL)", lambda: nccl.ncclCommInitRankConfig(1, new(), 0, None))
    tell("ncclCommInitRankScalable(1, 0, 1, [id], NULL)", lambda: nccl.ncclCommInitRankScalable(1, 0, 1, [new()], None))
    for devices in ([0], [0, 0], [99], [-1], [0, 99]):
        tell(f"ncclCommInitAll({devices})", lambda d=devices: nccl.ncclCommInitAll(len(d), d), shown=False)


def configurations(
    tried: tuple[dict[str, int], ...] = (
        {"magic": 0}, {"size": 0}, {"size": 24}, {"version": 0}, {"blocking": 2}, {"blocking": -1},
        {"cgaClusterSize": 9}, {"cgaClusterSize": -1}, {"minCTAs": 4}, {"minCTAs": 0}, {"minCTAs": -1}, {"maxCTAs": 0},
        {"minCTAs": 8, "maxCTAs": 4}, {"minCTAs": 4, "maxCTAs": 8},
    ),
) -> None:  # fmt: skip
    Device(0).set_current()
    for values in tried:
        text = ", ".join(f"{name}={value}" for name, value in values.items())
        tell(
            f"ncclCommInitRankConfig(1, id, 0, {{{text}}})",
            lambda v=values: nccl.ncclCommInitRankConfig(1, good(nccl.ncclGetUniqueId()), 0, config(**v)),
        )


def more_configurations() -> None:
    configurations(
        (
            {"splitShare": 2}, {"splitShare": -1}, {"shrinkShare": 2}, {"trafficClass": -1}, {"collnetEnable": 2},
            {"CTAPolicy": 9}, {"CTAPolicy": -1}, {"nvlsCTAs": 0}, {"nvlsCTAs": -2}, {"nChannelsPerNetPeer": 0},
            {"nvlinkCentricSched": 2},
        )
    )  # fmt: skip


def two_ranks_on_a_device() -> None:
    Device(0).set_current()
    identity = good(nccl.ncclGetUniqueId())
    good(nccl.ncclGroupStart())
    for rank in range(2):
        print(f"ncclCommInitRank(2, id, {rank}) in a group -> {nccl.ncclCommInitRank(2, identity, rank)[0].name}")
    tell("ncclGroupEnd()", nccl.ncclGroupEnd)


def questions() -> None:
    one = One()
    for call in (nccl.ncclCommCount, nccl.ncclCommUserRank, nccl.ncclCommCuDevice, nccl.ncclCommGetAsyncError):
        tell(f"{call.__name__}(comm)", lambda call=call: call(one.comm))
        tell(f"{call.__name__}(NULL)", lambda call=call: call(None))
    for call in (nccl.ncclCommFinalize, nccl.ncclCommDestroy, nccl.ncclCommAbort):
        tell(f"{call.__name__}(NULL)", lambda call=call: call(None))


def split() -> None:
    one = One()
    for color, key in ((0, 0), (7, -3), (-1, 0), (-2, 0), (2**31 - 1, 0)):
        tell(
            f"ncclCommSplit(comm, {color}, {key}, NULL)",
            lambda c=color, k=key: nccl.ncclCommSplit(one.comm, c, k, None),
        )
    tell("ncclCommSplit(NULL, 0, 0, NULL)", lambda: nccl.ncclCommSplit(None, 0, 0, None))
    for values in ({}, {"splitShare": 1}, {"blocking": 2}, {"magic": 0}, {"minCTAs": -1}):
        tell(f"ncclCommSplit(comm, 0, 0, {values})", lambda v=values: nccl.ncclCommSplit(one.comm, 0, 0, config(**v)))
    made = tell(
        "ncclCommSplit(comm, 0, 0, {'blocking': 0})", lambda: nccl.ncclCommSplit(one.comm, 0, 0, config(blocking=0))
    )
    rest(one.comm, "ncclCommGetAsyncError(comm) at last")
    rest(made, "ncclCommGetAsyncError(the new one) at last")
    tell("ncclCommCount(the new one)", lambda: nccl.ncclCommCount(made))
    good(nccl.ncclGroupStart())
    print(f"ncclCommSplit(comm, 0, 0, NULL) in a group -> {nccl.ncclCommSplit(one.comm, 0, 0, None)[0].name}")
    tell("ncclCommSplit(comm, -2, 0, NULL) in a group", lambda: nccl.ncclCommSplit(one.comm, -2, 0, None))
    tell("ncclGroupEnd()", nccl.ncclGroupEnd)
    tell("ncclCommFinalize(comm)", lambda: nccl.ncclCommFinalize(one.comm))
    tell("ncclCommSplit(comm, 0, 0, NULL) behind it", lambda: nccl.ncclCommSplit(one.comm, 0, 0, None))


def shrink() -> None:
    one = One()
    for ranks, flags in (([5], 0), ([-1], 0), ([0], 7), ([0, 0], 0), ([0], 0), ([0], 1)):
        tell(
            f"ncclCommShrink(comm, {ranks}, NULL, {flags})",
            lambda r=ranks, f=flags: nccl.ncclCommShrink(one.comm, r, len(r), None, f),
        )
    tell("ncclCommShrink(NULL, [0], NULL, 0)", lambda: nccl.ncclCommShrink(None, [0], 1, None, 0))
    tell("ncclCommGetAsyncError(comm)", lambda: nccl.ncclCommGetAsyncError(one.comm))


def shrink_by_none() -> None:
    one = One()
    tell("ncclCommShrink(comm, NULL, NULL, 0)", lambda: nccl.ncclCommShrink(one.comm, None, 0, None, 0))


def without_blocking() -> None:
    one = One()
    for _ in range(100):  # until the communicator is not ready yet at the next call
        identity = good(nccl.ncclGetUniqueId())
        status, made = nccl.ncclCommInitRankConfig(1, identity, 0, config(blocking=0))
        early = nccl.ncclAllReduce(one.x, one.y, 8, Type.ncclDouble, Op.ncclSum, made, one.stream)
        if early[0] != Result.ncclSuccess:
            break
    print(f"ncclCommInitRankConfig(1, id, 0, {{'blocking': 0}}) -> {status.name}")
    print(f"ncclAllReduce(...) at once -> {early[0].name} | {nccl.ncclGetLastError(None)[1].decode()}")
    rest(made, "ncclCommGetAsyncError(comm) at last")
    add = lambda: nccl.ncclAllReduce(one.x, one.y, 8, Type.ncclDouble, Op.ncclSum, made, one.stream)  # noqa: E731
    tell("ncclAllReduce(...)", add)
    rest(made, "ncclCommGetAsyncError(comm)")
    good(nccl.ncclGroupStart())
    tell("ncclAllReduce(...) in a group", add)
    tell("ncclGroupEnd()", nccl.ncclGroupEnd)
    rest(made, "ncclCommGetAsyncError(comm)")
    tell("ncclAllReduce(of type 99)", lambda: nccl.ncclAllReduce(one.x, one.y, 8, 99, 0, made, one.stream))
    rest(made, "ncclCommGetAsyncError(comm)")
    child = tell("ncclCommSplit(comm, 0, 0, NULL)", lambda: nccl.ncclCommSplit(made, 0, 0, None), shown=False)
    rest(made, "ncclCommGetAsyncError(comm) at last")
    if child is not None and int(child):
        rest(child, "ncclCommGetAsyncError(the new one) at last")
    tell("ncclCommFinalize(comm)", lambda: nccl.ncclCommFinalize(made))
    rest(made, "ncclCommGetAsyncError(comm) at last")
    tell("ncclAllReduce(...) behind it", add)
    tell("ncclCommFinalize(comm) again", lambda: nccl.ncclCommFinalize(made))
    tell("ncclCommDestroy(comm)", lambda: nccl.ncclCommDestroy(made))


def the_end() -> None:
    one = One()
    tell("ncclCommFinalize(comm)", lambda: nccl.ncclCommFinalize(one.comm))
    tell("ncclCommGetAsyncError(comm)", lambda: nccl.ncclCommGetAsyncError(one.comm))
    tell(
        "ncclAllReduce(...) behind it",
        lambda: nccl.ncclAllReduce(one.x, one.y, 8, Type.ncclDouble, Op.ncclSum, one.comm, one.stream),
    )
    tell("ncclCommFinalize(comm) again", lambda: nccl.ncclCommFinalize(one.comm))
    tell("ncclCommDestroy(comm)", lambda: nccl.ncclCommDestroy(one.comm))
    other = One()
    tell("ncclCommAbort(comm)", lambda: nccl.ncclCommAbort(other.comm))


def operations() -> None:
    one = One()
    x, y, comm, stream, double = one.x, one.y, one.comm, one.stream, Type.ncclDouble
    for kind in (double, 12, 99, -1):
        tell(f"ncclAllReduce(type {int(kind)})", lambda k=kind: nccl.ncclAllReduce(x, y, 8, k, 0, comm, stream))
    for op in (*range(8), -1):
        tell(f"ncclAllReduce(operation {op})", lambda op=op: nccl.ncclAllReduce(x, y, 8, double, op, comm, stream))
    for kind in (Type.ncclFloat8e4m3, Type.ncclFloat8e5m2, Type.ncclBfloat16, Type.ncclUint8):
        tell(f"ncclAllReduce(average of {kind.name})", lambda k=kind: nccl.ncclAllReduce(x, y, 8, k, 4, comm, stream))
    for root in (0, 1, -1):
        tell(f"ncclBroadcast(root {root})", lambda r=root: nccl.ncclBroadcast(x, y, 8, double, r, comm, stream))
        tell(f"ncclReduce(root {root})", lambda r=root: nccl.ncclReduce(x, y, 8, double, 0, r, comm, stream))
        tell(f"ncclGather(root {root})", lambda r=root: nccl.ncclGather(x, y, 8, double, r, comm, stream))
        tell(f"ncclScatter(root {root})", lambda r=root: nccl.ncclScatter(x, y, 8, double, r, comm, stream))
    for peer in (1, -1):
        tell(f"ncclSend(peer {peer})", lambda p=peer: nccl.ncclSend(x, 8, double, p, comm, stream))
        tell(f"ncclRecv(peer {peer})", lambda p=peer: nccl.ncclRecv(y, 8, double, p, comm, stream))
    tell("ncclAllReduce(of nothing)", lambda: nccl.ncclAllReduce(0, 0, 0, double, 0, comm, stream))
    tell("ncclAllReduce(NULL communicator)", lambda: nccl.ncclAllReduce(x, y, 8, double, 0, None, stream))
    tell("ncclAllReduce(NULL stream)", lambda: nccl.ncclAllReduce(x, y, 8, double, 0, comm, None))
    tell("ncclAllGather(type 99)", lambda: nccl.ncclAllGather(x, y, 8, 99, comm, stream))
    tell("ncclReduceScatter(type 99)", lambda: nccl.ncclReduceScatter(x, y, 8, 99, 0, comm, stream))
    tell("ncclAlltoAll(type 99)", lambda: nccl.ncclAlltoAll(x, y, 8, 99, comm, stream))


def factors() -> None:
    one = One()
    two = np.array([2.0])
    make = lambda kind, where: nccl.ncclRedOpCreatePreMulSum(two, kind, where, one.comm)  # noqa: E731
    op = tell("ncclRedOpCreatePreMulSum(double, on the host)", lambda: make(Type.ncclDouble, 1), shown=False)
    print("the first is number", int(op))
    add = lambda kind=Type.ncclDouble: nccl.ncclAllReduce(one.x, one.y, 8, kind, op, one.comm, one.stream)  # noqa: E731
    tell("ncclAllReduce(with it)", add)
    print("the numbers are", one.numbers())
    tell("ncclAllReduce(with it, of float)", lambda: add(Type.ncclFloat))
    tell("ncclRedOpDestroy(it)", lambda: nccl.ncclRedOpDestroy(op, one.comm))
    tell("ncclRedOpDestroy(it) again", lambda: nccl.ncclRedOpDestroy(op, one.comm))
    tell("ncclRedOpDestroy(sum)", lambda: nccl.ncclRedOpDestroy(0, one.comm))
    tell("ncclRedOpDestroy(-1)", lambda: nccl.ncclRedOpDestroy(-1, one.comm))
    tell("ncclRedOpDestroy(of NULL)", lambda: nccl.ncclRedOpDestroy(5, None))
    tell("ncclRedOpCreatePreMulSum(of NULL)", lambda: nccl.ncclRedOpCreatePreMulSum(two, 8, 1, None))
    tell("ncclAllReduce(with it) behind that", add)


def groups() -> None:
    one = One()
    add = lambda kind=Type.ncclDouble: nccl.ncclAllReduce(one.x, one.y, 8, kind, 0, one.comm, one.stream)  # noqa: E731
    tell("ncclGroupEnd() without a group", nccl.ncclGroupEnd)
    good(nccl.ncclGroupStart())
    tell("ncclAllReduce(...)", add)
    tell("ncclAllReduce(type 99)", lambda: add(99))
    tell("ncclGroupEnd()", nccl.ncclGroupEnd)
    print("the numbers are", one.numbers())
    tell("ncclAllReduce(...) behind it", add)
    print("the numbers are", one.numbers())
    good(nccl.ncclGroupStart())
    good(nccl.ncclGroupStart())
    tell("ncclAllReduce(type 99) in the inner group", lambda: add(99))
    tell("ncclGroupEnd() of the inner one", nccl.ncclGroupEnd)
    tell("ncclGroupEnd() of the outer one", nccl.ncclGroupEnd)


def information(**values: Any) -> Any:
    made = nccl.ncclSimInfo_t()
    made.size, made.magic, made.version = 24, 0x74685283, good(nccl.ncclGetVersion())
    made.estimatedTime = -1.0
    for name, value in values.items():
        setattr(made, name, value)
    return made


def simulated() -> None:
    one = One()
    add = lambda count=8: nccl.ncclAllReduce(one.x, one.y, count, Type.ncclDouble, 0, one.comm, one.stream)  # noqa: E731
    found = information()
    tell("ncclGroupSimulateEnd(info) without a group", lambda: nccl.ncclGroupSimulateEnd(found))
    print("estimated:", found.estimatedTime)
    for what, values in (
        ("info", {}),
        ("a wrong magic", {"magic": 1}),
        ("a size of 0", {"size": 0}),
        ("a size of 16", {"size": 16}),
    ):
        found = information(**values)
        good(nccl.ncclGroupStart())
        tell("ncclAllReduce(...)", add)
        tell(f"ncclGroupSimulateEnd({what})", lambda found=found: nccl.ncclGroupSimulateEnd(found))
        print("estimated:", found.estimatedTime, "the numbers are", one.numbers())
        tell("ncclGroupEnd()", nccl.ncclGroupEnd)
    good(nccl.ncclGroupStart())
    tell("ncclAllReduce(...)", add)
    tell("ncclGroupSimulateEnd(NULL)", lambda: nccl.ncclGroupSimulateEnd(None))
    tell("ncclGroupEnd()", nccl.ncclGroupEnd)
    found = information()
    good(nccl.ncclGroupStart())
    tell("ncclSend(to itself)", lambda: nccl.ncclSend(one.x, 8, Type.ncclDouble, 0, one.comm, one.stream))
    tell("ncclRecv(from itself)", lambda: nccl.ncclRecv(one.y, 8, Type.ncclDouble, 0, one.comm, one.stream))
    tell("ncclGroupSimulateEnd(info)", lambda: nccl.ncclGroupSimulateEnd(found))
    print("estimated:", found.estimatedTime, "the numbers are", one.numbers())
    found = information()
    good(nccl.ncclGroupStart())
    good(nccl.ncclGroupStart())
    tell("ncclAllReduce(...) in the inner group", add)
    tell("ncclGroupSimulateEnd(info) of the inner one", lambda: nccl.ncclGroupSimulateEnd(found))
    print("estimated:", found.estimatedTime)
    tell("ncclGroupSimulateEnd(info) of the outer one", lambda: nccl.ncclGroupSimulateEnd(found))
    print("estimated:", found.estimatedTime)
    found = information()
    good(nccl.ncclGroupStart())
    made = nccl.ncclCommInitRank(1, good(nccl.ncclGetUniqueId()), 0)[1]
    tell("ncclGroupSimulateEnd(info) of an initialization", lambda: nccl.ncclGroupSimulateEnd(found))
    print("the communicator:", "made" if int(made) else "not made")
    tell("ncclAllReduce(...) at last", add)
    print("the numbers are", one.numbers())


def memory() -> None:
    one = One()
    place = tell("ncclMemAlloc(4096)", lambda: nccl.ncclMemAlloc(4096), shown=False)
    tell("ncclMemAlloc(0)", lambda: nccl.ncclMemAlloc(0), shown=False)
    tell("ncclMemFree(NULL)", lambda: nccl.ncclMemFree(0))
    handle = tell(
        "ncclCommRegister(comm, place, 4096)", lambda: nccl.ncclCommRegister(one.comm, place, 4096), shown=False
    )
    tell("ncclCommDeregister(comm, handle)", lambda: nccl.ncclCommDeregister(one.comm, handle))
    tell("ncclCommRegister(NULL, place, 4096)", lambda: nccl.ncclCommRegister(None, place, 4096), shown=False)
    tell("ncclCommRegister(comm, NULL, 4096)", lambda: nccl.ncclCommRegister(one.comm, 0, 4096), shown=False)
    tell("ncclCommRegister(comm, place, 0)", lambda: nccl.ncclCommRegister(one.comm, place, 0), shown=False)
    tell("ncclMemFree(place)", lambda: nccl.ncclMemFree(place))


def no_memory_of_nccl() -> None:
    One()
    tell("ncclMemFree(16)", lambda: nccl.ncclMemFree(16))


def windows() -> None:
    one = One()
    place = good(nccl.ncclMemAlloc(8192))
    for flags in (0, 1, 2, 64):
        made = tell(
            f"ncclCommWindowRegister(flags {flags})",
            lambda f=flags: nccl.ncclCommWindowRegister(one.comm, place, 8192, f),
            shown=False,
        )
        print("the window:", "made" if made is not None and int(made) else "none")
    tell("ncclCommWindowRegister(NULL)", lambda: nccl.ncclCommWindowRegister(None, place, 8192, 0), shown=False)
    tell(
        "ncclCommWindowRegister(aligned to 16)",
        lambda: nccl.ncclCommWindowRegister(one.comm, place + 16, 64, 1),
        shown=False,
    )
    tell("ncclCommWindowDeregister(NULL)", lambda: nccl.ncclCommWindowDeregister(one.comm, None))


def a_message_to_nobody() -> None:
    one = One()
    tell("ncclSend(to itself) alone", lambda: nccl.ncclSend(one.x, 8, Type.ncclDouble, 0, one.comm, one.stream))
    tell("ncclAllReduce(...)", lambda: nccl.ncclAllReduce(one.x, one.y, 8, 8, 0, one.comm, one.stream))


def a_message_of_another_size() -> None:
    one = One()
    good(nccl.ncclGroupStart())
    tell("ncclSend(8 to itself)", lambda: nccl.ncclSend(one.x, 8, Type.ncclDouble, 0, one.comm, one.stream))
    tell("ncclRecv(4 from itself)", lambda: nccl.ncclRecv(one.y, 4, Type.ncclDouble, 0, one.comm, one.stream))
    tell("ncclGroupEnd()", nccl.ncclGroupEnd)
    print("the numbers are", one.numbers())


def no_memory_of_the_device() -> None:
    one = One()
    tell("ncclAllReduce(NULL)", lambda: nccl.ncclAllReduce(0, one.y, 8, Type.ncclDouble, 0, one.comm, one.stream))
    print("the stream:", driver.cuStreamSynchronize(one.stream)[0].name)
    tell("ncclCommGetAsyncError(comm)", lambda: nccl.ncclCommGetAsyncError(one.comm))


def checked_pointers() -> None:
    one = One()
    for place in (0, 16):
        tell(
            f"ncclAllReduce(of {place}), checked",
            lambda p=place: nccl.ncclAllReduce(p, one.y, 8, Type.ncclDouble, 0, one.comm, one.stream),
        )
    tell("ncclAllReduce(to NULL), checked", lambda: nccl.ncclAllReduce(one.x, 0, 8, 8, 0, one.comm, one.stream))


def no_id() -> None:
    Device(0).set_current()
    tell("ncclCommInitRank(1, zeros, 0)", lambda: nccl.ncclCommInitRank(1, nccl.ncclUniqueId(), 0))


def nobody_comes() -> None:
    """Of a communicator of two ranks only one comes, does not block, and is aborted."""
    Device(0).set_current()
    made = nccl.ncclCommInitRankConfig(2, good(nccl.ncclGetUniqueId()), 0, config(blocking=0))
    print("ncclCommInitRankConfig(2, id, 0, {'blocking': 0}) ->", made[0].name)
    time.sleep(0.3)
    tell("ncclCommGetAsyncError(comm)", lambda: nccl.ncclCommGetAsyncError(made[1]))
    tell("ncclCommCount(comm)", lambda: nccl.ncclCommCount(made[1]))
    tell("ncclCommAbort(comm)", lambda: nccl.ncclCommAbort(made[1]))


PARTS = [
    names, initialization, configurations, more_configurations, two_ranks_on_a_device, questions, split, shrink,
    shrink_by_none, without_blocking, the_end, operations, factors, groups, simulated, memory, no_memory_of_nccl,
    windows, a_message_to_nobody, a_message_of_another_size, no_memory_of_the_device, checked_pointers, no_id,
    nobody_comes,
]  # fmt: skip


def main(names: list[str]) -> None:
    """Each part in a process of its own, all at a time: what a call has broken is of no account to the next part."""
    variables = {**os.environ, "NCCL_NVLS_ENABLE": "0", "NCCL_CHECK_POINTERS": "0", "NCCL_RAS_ENABLE": "0"}
    end = time.monotonic() + float(os.environ.get("ANSWER_SECONDS", "60"))

    def start(part: str) -> subprocess.Popen[str]:
        more = {"NCCL_CHECK_POINTERS": "1"} if part == "checked_pointers" else {}
        return subprocess.Popen(
            [sys.executable, __file__, "--part", part], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env={**variables, **more},
        )  # fmt: skip

    for part, process in [(name, start(name)) for name in names]:
        print(f"# {part}")
        try:
            out, _ = process.communicate(timeout=max(0.1, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            out = process.communicate()[0] + "(does not return)\n"
        print(out, end="" if out.endswith("\n") else "\n", flush=True)
        if process.returncode not in (0, -9):
            print(f"(ends with {process.returncode})", flush=True)


if __name__ == "__main__":
    known = {part.__name__: part for part in PARTS}
    if sys.argv[1:2] == ["--part"]:
        known[sys.argv[2]]()
        sys.stdout.flush()
        os._exit(0)
    main(sys.argv[1:] or list(known))
