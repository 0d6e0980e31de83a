"""What ranks do with NCCL: ``cases.py FILE`` on all devices of one process, or, where RANK says so, as one of several.

Each case is a function that gets the ranks of this process, and the same cases run however the ranks lie. The first
rank prints as JSON what was done.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cupola import Device, Stream
from cupola.bindings import driver, nccl

Type, Op = nccl.ncclDataType_t, nccl.ncclRedOp_t


def good(result: tuple[Any, ...]) -> Any:
    """What a call returned beside its status, which must be a success."""
    assert result[0] == nccl.ncclResult_t.ncclSuccess, (result[0], nccl.ncclGetLastError(None)[1])
    return result[1] if len(result) == 2 else result[1:]


@dataclass
class Rank:
    number: int
    device: Device
    stream: Stream
    comm: Any

    @property
    def handle(self) -> int:
        return int(self.stream.handle)

    def put(self, values: np.ndarray) -> Any:
        self.device.set_current()
        return self.device.array(values, stream=self.stream)

    def get(self, array: Any) -> np.ndarray:
        self.device.set_current()
        found: np.ndarray = array.to_numpy(stream=self.stream)
        return found


@dataclass
class World:
    ranks: list[Rank]  # of this process
    size: int

    def group(self, call: Callable[[Rank], tuple[Any, ...]]) -> None:
        good(nccl.ncclGroupStart())
        for rank in self.ranks:
            good(call(rank))
        good(nccl.ncclGroupEnd())

    def results(
        self, values: Callable[[int], np.ndarray], call: Callable[..., Any], target: Any = None
    ) -> list[np.ndarray]:
        """Call with an array of each rank and one for the result, and return the results of the ranks here."""
        sources = [rank.put(values(rank.number)) for rank in self.ranks]
        targets = [rank.put(np.zeros_like(values(rank.number) if target is None else target)) for rank in self.ranks]
        pairs = {rank.number: (at(s), at(t)) for rank, s, t in zip(self.ranks, sources, targets, strict=True)}
        self.group(lambda rank: call(rank, *pairs[rank.number]))
        return [rank.get(array) for rank, array in zip(self.ranks, targets, strict=True)]


def on_cpu_device() -> bool:
    return os.environ.get("CUPOLA_DEVICE") == "cpu" or "CPU" in Device(0).name


def at(array: Any) -> int:
    return int(array.buffer.handle)


# ---- numbers of 16 and 8 bits ---------------------------------------------------------------------------------------


def table(exponent_bits: int, fraction_bits: int, has_infinity: bool) -> np.ndarray:
    """The values of all numbers of a narrow type, by their bits."""
    bits = np.arange(1 << (1 + exponent_bits + fraction_bits))
    exponent = bits >> fraction_bits & (1 << exponent_bits) - 1
    fraction = bits & (1 << fraction_bits) - 1
    bias = (1 << exponent_bits - 1) - 1
    normal = (1 + fraction / (1 << fraction_bits)) * 2.0 ** (exponent - bias)
    values = np.where(exponent > 0, normal, fraction / (1 << fraction_bits) * 2.0 ** (1 - bias))
    largest = (1 << exponent_bits) - 1
    if has_infinity:
        values = np.where(exponent == largest, np.where(fraction > 0, np.nan, np.inf), values)
    else:
        values = np.where((exponent == largest) & (fraction == (1 << fraction_bits) - 1), np.nan, values)
    return np.where(bits >> (exponent_bits + fraction_bits), -values, values)


NARROW = {
    Type.ncclBfloat16: (np.uint16, table(8, 7, True)),
    Type.ncclFloat8e4m3: (np.uint8, table(4, 3, False)),
    Type.ncclFloat8e5m2: (np.uint8, table(5, 2, True)),
}
PLAIN = {
    Type.ncclInt8: np.int8,
    Type.ncclUint8: np.uint8,
    Type.ncclInt32: np.int32,
    Type.ncclUint32: np.uint32,
    Type.ncclInt64: np.int64,
    Type.ncclUint64: np.uint64,
    Type.ncclFloat16: np.float16,
    Type.ncclFloat32: np.float32,
    Type.ncclFloat64: np.float64,
}


def encode(kind: Any, values: np.ndarray) -> np.ndarray:
    """Numbers as those of a type, rounded to the nearest, of two to the even one."""
    if kind not in NARROW:
        return values.astype(PLAIN[kind])
    dtype, known = NARROW[kind]
    positive = known[: len(known) // 2]
    finite = np.flatnonzero(np.isfinite(positive))
    distance = np.abs(np.abs(values)[:, None] - positive[finite][None, :])
    nearest = distance.min(axis=1, keepdims=True)
    best = np.where(distance == nearest, (finite & 1)[None, :] * 1.0, 2.0).argmin(axis=1)
    return (finite[best] | np.where(values < 0, len(known) // 2, 0)).astype(dtype)


def decode(kind: Any, bits: np.ndarray) -> np.ndarray:
    return NARROW[kind][1][bits] if kind in NARROW else bits.astype(np.float64)


def expected(kind: Any, op: Any, inputs: list[np.ndarray], factor: float | None = None) -> np.ndarray:
    """The reduction, in the order of the ranks, each step in the type."""
    if kind in PLAIN and np.issubdtype(PLAIN[kind], np.integer):
        with np.errstate(over="ignore"):
            total = inputs[0] * (1 if factor is None else PLAIN[kind](factor))
            for one in inputs[1:]:
                scaled = one * (1 if factor is None else PLAIN[kind](factor))
                total = {Op.ncclProd: np.multiply, Op.ncclMax: np.maximum, Op.ncclMin: np.minimum}.get(op, np.add)(
                    total, scaled
                )
            return (total // len(inputs)).astype(PLAIN[kind]) if op == Op.ncclAvg else total
    scale = 1 / len(inputs) if op == Op.ncclAvg else factor
    wide = np.float32 if kind != Type.ncclFloat64 else np.float64
    numbers = [decode(kind, one).astype(wide) for one in inputs]
    if scale is not None:
        narrow = wide(decode(kind, encode(kind, np.array([scale])))[0])
        numbers = [decode(kind, encode(kind, one * narrow)).astype(wide) for one in numbers]
    combine = {Op.ncclProd: np.multiply, Op.ncclMax: np.maximum, Op.ncclMin: np.minimum}.get(op, np.add)
    total = numbers[0]
    for one in numbers[1:]:
        total = decode(kind, encode(kind, combine(total, one))).astype(wide)
    return encode(kind, total)


# Bits of the fraction, where numbers are rounded.
FRACTIONS = {
    Type.ncclFloat16: 10, Type.ncclFloat32: 23, Type.ncclFloat64: 52, Type.ncclBfloat16: 7, Type.ncclFloat8e4m3: 3,
    Type.ncclFloat8e5m2: 2,
}  # fmt: skip


def same(kind: Any, found: np.ndarray, wanted: np.ndarray, size: int) -> bool:
    """Whether the numbers are the same to the bit; GPUs add those of more than two ranks in an order of their own."""
    if found.tobytes() == wanted.tobytes():
        return True
    if on_cpu_device() or size < 3 or kind not in FRACTIONS:
        return False
    return np.allclose(decode(kind, found), decode(kind, wanted), rtol=size * 2.0 ** -FRACTIONS[kind])


def numbers_of(kind: Any, rank: int, count: int = 37) -> np.ndarray:
    """Some numbers of a rank: whole and half ones, negative ones where there are any."""
    values = np.random.default_rng(rank).integers(1, 7, count).astype(np.float64)
    integer = kind in PLAIN and np.issubdtype(PLAIN[kind], np.integer)
    signed = not integer or np.issubdtype(PLAIN[kind], np.signedinteger)
    if signed and not integer:
        values[::3] *= -1
    return encode(kind, values if integer else values / 2)


# ---- cases ----------------------------------------------------------------------------------------------------------


def types_and_operations(world: World) -> None:
    for kind in [*PLAIN, *NARROW]:
        inputs = [numbers_of(kind, rank) for rank in range(world.size)]
        for op in (Op.ncclSum, Op.ncclProd, Op.ncclMax, Op.ncclMin, Op.ncclAvg):
            if world.size == 1 and op == Op.ncclAvg and kind in (Type.ncclFloat8e4m3, Type.ncclFloat8e5m2):
                continue  # which NCCL refuses of one rank alone
            wanted = expected(kind, op, inputs)

            def call(rank: Rank, source: int, target: int, kind: Any = kind, op: Any = op) -> Any:
                return nccl.ncclAllReduce(source, target, 37, kind, op, rank.comm, rank.handle)

            for found in world.results(lambda rank, inputs=inputs: inputs[rank], call):
                assert same(kind, found, wanted, world.size), (kind, op, found, wanted)


def sums_with_a_factor(world: World) -> None:
    for kind in (Type.ncclInt32, Type.ncclFloat16, Type.ncclFloat32, Type.ncclFloat64, Type.ncclBfloat16):
        inputs = [numbers_of(kind, rank) for rank in range(world.size)]
        factor = encode(kind, np.array([3.0]))
        wanted = expected(kind, Op.ncclSum, inputs, 3.0)
        for on_device in (False, True):
            places = [rank.put(factor) for rank in world.ranks]
            for rank in world.ranks:
                rank.stream.sync()
            ops = [
                good(nccl.ncclRedOpCreatePreMulSum(at(place) if on_device else factor, kind, not on_device, rank.comm))
                for rank, place in zip(world.ranks, places, strict=True)
            ]
            by_rank = {rank.number: op for rank, op in zip(world.ranks, ops, strict=True)}

            def call(rank: Rank, source: int, target: int, kind: Any = kind, by_rank: Any = by_rank) -> Any:
                return nccl.ncclAllReduce(source, target, 37, kind, by_rank[rank.number], rank.comm, rank.handle)

            for found in world.results(lambda rank, inputs=inputs: inputs[rank], call):
                assert same(kind, found, wanted, world.size), (kind, on_device, found, wanted)
            for rank, op in zip(world.ranks, ops, strict=True):
                good(nccl.ncclRedOpDestroy(op, rank.comm))


def large_and_in_place(world: World) -> None:
    count = 400_001  # more than is at work at a time, and no multiple of anything
    arrays = [rank.put(np.arange(count) * 0.5 + rank.number) for rank in world.ranks]
    where = {rank.number: at(array) for rank, array in zip(world.ranks, arrays, strict=True)}

    def call(rank: Rank) -> Any:
        place = where[rank.number]
        return nccl.ncclAllReduce(place, place, count, Type.ncclDouble, Op.ncclSum, rank.comm, rank.handle)

    world.group(call)
    wanted = np.arange(count) * 0.5 * world.size + sum(range(world.size))
    for rank, array in zip(world.ranks, arrays, strict=True):
        assert (rank.get(array) == wanted).all()


def moves(world: World) -> None:
    n, size, kind = 5, world.size, Type.ncclFloat
    root = size - 1
    blocks = [np.arange(size * n, dtype=np.float32) + 1000 * rank for rank in range(size)]
    whole = np.zeros(size * n, np.float32)

    def check(wanted: Callable[[int], np.ndarray], call: Callable[..., Any]) -> None:
        found = world.results(lambda rank: blocks[rank], call, whole)
        for rank, one in zip(world.ranks, found, strict=True):
            assert (one[: len(wanted(rank.number))] == wanted(rank.number)).all(), (rank.number, one)

    def part(rank: int, block: int) -> np.ndarray:
        return blocks[rank][block * n : (block + 1) * n]

    everybody = range(size)
    total = sum(blocks)
    nothing = np.zeros(0, np.float32)
    check(lambda r: blocks[root], lambda r, s, t: nccl.ncclBroadcast(s, t, size * n, kind, root, r.comm, r.handle))
    check(
        lambda r: total if r == root else nothing,
        lambda r, s, t: nccl.ncclReduce(s, t if r.number == root else None, size * n, kind, 0, root, r.comm, r.handle),
    )
    check(
        lambda r: np.concatenate([part(i, 0) for i in everybody]),
        lambda r, s, t: nccl.ncclAllGather(s, t, n, kind, r.comm, r.handle),
    )
    check(
        lambda r: total[r * n : (r + 1) * n],
        lambda r, s, t: nccl.ncclReduceScatter(s, t, n, kind, 0, r.comm, r.handle),
    )
    check(
        lambda r: np.concatenate([part(i, r) for i in everybody]),
        lambda r, s, t: nccl.ncclAlltoAll(s, t, n, kind, r.comm, r.handle),
    )
    check(
        lambda r: np.concatenate([part(i, 0) for i in everybody]) if r == root else nothing,
        lambda r, s, t: nccl.ncclGather(s, t, n, kind, root, r.comm, r.handle),
    )
    check(lambda r: part(root, r), lambda r, s, t: nccl.ncclScatter(s, t, n, kind, root, r.comm, r.handle))


def messages(world: World) -> None:
    size = world.size
    sources = {r.number: r.put(np.arange(3000, dtype=np.int32) + 10000 * r.number) for r in world.ranks}
    targets = {r.number: r.put(np.zeros(3000, np.int32)) for r in world.ranks}
    good(nccl.ncclGroupStart())
    for rank in world.ranks:  # two messages to the right, in this order, and one to itself
        source, target = at(sources[rank.number]), at(targets[rank.number])
        right, left = (rank.number + 1) % size, (rank.number - 1) % size
        for begin, count in ((0, 1000), (1000, 500)):
            good(nccl.ncclSend(source + 4 * begin, count, Type.ncclInt, right, rank.comm, rank.handle))
            good(nccl.ncclRecv(target + 4 * begin, count, Type.ncclInt, left, rank.comm, rank.handle))
        good(nccl.ncclSend(source + 4 * 2000, 1000, Type.ncclInt, rank.number, rank.comm, rank.handle))
        good(nccl.ncclRecv(target + 4 * 2000, 1000, Type.ncclInt, rank.number, rank.comm, rank.handle))
    good(nccl.ncclGroupEnd())
    for rank in world.ranks:
        found, left = rank.get(targets[rank.number]), (rank.number - 1) % size
        numbers = np.arange(3000)
        assert (found[:1500] == (numbers + 10000 * left)[:1500]).all()
        assert not found[1500:2000].any()
        assert (found[2000:] == (numbers + 10000 * rank.number)[2000:]).all()
    if not on_cpu_device():
        return  # NVIDIA's library does not say what becomes of more than fits
    rank = world.ranks[0]
    source, target = rank.put(np.arange(8)), rank.put(np.zeros(8, np.int64))
    good(nccl.ncclGroupStart())
    good(nccl.ncclSend(at(source), 8, Type.ncclInt64, rank.number, rank.comm, rank.handle))
    good(nccl.ncclRecv(at(target), 4, Type.ncclInt64, rank.number, rank.comm, rank.handle))
    good(nccl.ncclGroupEnd())
    assert rank.get(target).tolist() == [0, 1, 2, 3, 0, 0, 0, 0]


def simulated(world: World) -> None:
    """A group that is only estimated: nothing moves, more takes longer, and the communicator goes on."""
    arrays = {rank.number: rank.put(np.full(1 << 20, 1.0)) for rank in world.ranks}
    times = []
    for count in (1, 1 << 18, 1 << 20):
        found = nccl.ncclSimInfo_t()
        found.size, found.magic, found.version = 24, 0x74685283, nccl.NCCL_VERSION_CODE
        found.estimatedTime = -1.0
        good(nccl.ncclGroupStart())
        for rank in world.ranks:
            place = at(arrays[rank.number])
            good(nccl.ncclAllReduce(place, place, count, Type.ncclDouble, Op.ncclSum, rank.comm, rank.handle))
        good(nccl.ncclGroupSimulateEnd(found))
        times.append(found.estimatedTime)
    if on_cpu_device() or world.size > 1:  # NVIDIA's library does what is of one rank at once
        assert 0 < times[0] < times[1] < times[2], times
        for rank in world.ranks:
            assert (rank.get(arrays[rank.number]) == 1).all()
    assert nccl.ncclGroupSimulateEnd(found)[0] == nccl.ncclResult_t.ncclInvalidUsage  # there is no group
    questions(world)


def order_of_streams(world: World) -> None:
    """What a stream has left in memory is sent, and what comes is there for what follows; also with two streams."""
    others = {}
    for rank in world.ranks:
        rank.device.set_current()
        others[rank.number] = rank.device.create_stream()
    x = {r.number: r.put(np.zeros(1000, np.int32)) for r in world.ranks}
    y = {r.number: r.put(np.zeros(1000, np.int32)) for r in world.ranks}
    for rank in world.ranks:
        rank.stream.sync()
    for value in range(1, 4):
        for rank in world.ranks:
            rank.device.set_current()
            x[rank.number].buffer.fill(value, stream=rank.stream)
            y[rank.number].buffer.fill(value + 10, stream=others[rank.number])
        good(nccl.ncclGroupStart())
        for rank in world.ranks:
            for array, stream in ((x, rank.stream), (y, others[rank.number])):
                place = at(array[rank.number])
                good(nccl.ncclAllReduce(place, place, 4000, Type.ncclUint8, Op.ncclSum, rank.comm, int(stream.handle)))
        good(nccl.ncclGroupEnd())
        for rank in world.ranks:
            found = (rank.get(x[rank.number]), y[rank.number].to_numpy(stream=others[rank.number]))
            for one, wanted in zip(found, (value, value + 10), strict=True):
                assert (one.view(np.uint8) == world.size * wanted).all(), (value, one)
    for stream in others.values():
        stream.close()


def graphs(world: World) -> None:
    """A collective of all ranks here, captured into one graph, with a copy before and one behind it."""
    first = world.ranks[0]
    x = {r.number: r.put(np.full(100, 1.0)) for r in world.ranks}
    y = {r.number: r.put(np.zeros(100)) for r in world.ranks}
    for rank in world.ranks:
        rank.stream.sync()
    first.device.set_current()
    mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
    good(driver.cuStreamBeginCapture(first.handle, mode))
    events = []

    def behind(before: Rank, after: Rank) -> None:
        before.device.set_current()
        events.append(good(driver.cuEventCreate(0)))
        good(driver.cuEventRecord(events[-1], before.handle))
        good(driver.cuStreamWaitEvent(after.handle, events[-1], 0))

    for rank in world.ranks[1:]:
        behind(first, rank)
    for rank in world.ranks:  # x becomes the sum of all x; y what x was before
        rank.device.set_current()
        good(driver.cuMemcpyDtoDAsync(at(y[rank.number]), at(x[rank.number]), 800, rank.handle))

    def call(rank: Rank) -> Any:
        place = at(x[rank.number])
        return nccl.ncclAllReduce(place, place, 100, Type.ncclDouble, Op.ncclSum, rank.comm, rank.handle)

    world.group(call)
    for rank in world.ranks[1:]:
        behind(rank, first)
    first.device.set_current()
    graph = good(driver.cuStreamEndCapture(first.handle))
    executable = good(driver.cuGraphInstantiate(graph, 0))
    for replay in range(1, 4):
        good(driver.cuGraphLaunch(executable, first.handle))
        first.stream.sync()
        for rank in world.ranks:
            assert (rank.get(x[rank.number]) == world.size**replay).all()
            assert (rank.get(y[rank.number]) == world.size ** (replay - 1)).all()
    first.device.set_current()
    good(driver.cuGraphExecDestroy(executable))
    good(driver.cuGraphDestroy(graph))
    for event in events:
        good(driver.cuEventDestroy(event))


def splits(world: World) -> None:
    """Into the even and the odd ranks, the latter in reverse order; and one rank in none."""
    made: dict[int, Any] = {}
    good(nccl.ncclGroupStart())
    for rank in world.ranks:
        color, key = rank.number % 2, -rank.number if rank.number % 2 else rank.number
        made[rank.number] = good(nccl.ncclCommSplit(rank.comm, color, key, None))
    good(nccl.ncclGroupEnd())
    for rank in world.ranks:
        members = [i for i in range(world.size) if i % 2 == rank.number % 2]
        if rank.number % 2:
            members.reverse()
        comm = made[rank.number]
        assert good(nccl.ncclCommCount(comm)) == len(members)
        assert good(nccl.ncclCommUserRank(comm)) == members.index(rank.number)
    x = {r.number: r.put(np.full(10, 10.0**r.number)) for r in world.ranks}

    def call(rank: Rank) -> Any:
        place = at(x[rank.number])
        return nccl.ncclAllReduce(place, place, 10, Type.ncclDouble, Op.ncclSum, made[rank.number], rank.handle)

    world.group(call)
    for rank in world.ranks:
        wanted = sum(10.0**i for i in range(world.size) if i % 2 == rank.number % 2)
        assert (rank.get(x[rank.number]) == wanted).all()
        good(nccl.ncclCommFinalize(made[rank.number]))
        good(nccl.ncclCommDestroy(made[rank.number]))
    good(nccl.ncclGroupStart())
    for rank in world.ranks:
        color = -1 if rank.number == 0 else 7
        made[rank.number] = good(nccl.ncclCommSplit(rank.comm, color, 0, None))
    good(nccl.ncclGroupEnd())
    for rank in world.ranks:
        if rank.number == 0:
            assert int(made[0]) == 0
        else:
            assert good(nccl.ncclCommCount(made[rank.number])) == world.size - 1
            good(nccl.ncclCommDestroy(made[rank.number]))


def shrinks(world: World) -> None:
    if world.size == 1:
        return  # nobody can be left out
    made = {}
    good(nccl.ncclGroupStart())
    for rank in world.ranks[: -1 if world.ranks[-1].number == world.size - 1 else None]:
        made[rank.number] = good(nccl.ncclCommShrink(rank.comm, [world.size - 1], 1, None, nccl.NCCL_SHRINK_DEFAULT))
    good(nccl.ncclGroupEnd())
    for number, comm in made.items():
        assert good(nccl.ncclCommCount(comm)) == world.size - 1
        assert good(nccl.ncclCommUserRank(comm)) == number
        good(nccl.ncclCommDestroy(comm))


NUMBERS_OF_CONFIG = """
    cgaClusterSize minCTAs maxCTAs splitShare trafficClass collnetEnable CTAPolicy shrinkShare nvlsCTAs
    nChannelsPerNetPeer nvlinkCentricSched graphUsageMode numRmaCtx maxP2pPeers graphStreamOrdering
    launchOrderImplicit numRmaSig rmaEagerInit hostCftMode nvlsHostMode
"""


def config_without_blocking() -> Any:
    config = nccl.ncclConfig_t()
    config.size, config.magic, config.version = 120, nccl.NCCL_API_MAGIC, nccl.NCCL_VERSION_CODE
    for name in NUMBERS_OF_CONFIG.split():
        setattr(config, name, -(2**31))
    config.blocking = 0
    return config


def rest(comm: Any) -> Any:
    """The state of a communicator that does not block, when it is no longer in progress."""
    while (state := good(nccl.ncclCommGetAsyncError(comm))) == nccl.ncclResult_t.ncclInProgress:
        time.sleep(0.001)
    return state


def calls_that_others_never_make(world: World) -> None:
    """What is in progress cannot be finalized, and ends when it is aborted."""
    Result = nccl.ncclResult_t
    if len(world.ranks) < world.size or not on_cpu_device():
        return  # NVIDIA's library waits for the others of a process
    world.ranks[0].device.set_current()
    identity = good(nccl.ncclGetUniqueId())
    status, alone = nccl.ncclCommInitRankConfig(2, identity, 0, config_without_blocking())
    assert status == Result.ncclInProgress
    for _ in range(2):
        assert nccl.ncclCommFinalize(alone)[0] == Result.ncclInvalidArgument
        assert good(nccl.ncclCommGetAsyncError(alone)) == Result.ncclInProgress
    good(nccl.ncclCommAbort(alone))
    if world.size < 3:
        return
    for call in "shrink", "shrink aborted", "split", "grow":
        made = {}
        good(nccl.ncclGroupStart())
        for rank in world.ranks:
            made[rank.number] = good(nccl.ncclCommSplit(rank.comm, 0, rank.number, config_without_blocking()))
        nccl.ncclGroupEnd()
        assert {rest(rank.comm) for rank in world.ranks} | {rest(comm) for comm in made.values()} == {
            Result.ncclSuccess
        }
        one = made[1]
        if call == "split":
            status, _ = nccl.ncclCommSplit(one, 0, 0, None)
        elif call == "grow":
            status, grown = nccl.ncclCommGrow(one, world.size + 1, None, -1, None)
        else:
            flags = nccl.NCCL_SHRINK_ABORT if call == "shrink aborted" else nccl.NCCL_SHRINK_DEFAULT
            status, _ = nccl.ncclCommShrink(one, [world.size - 1], 1, None, flags)
        assert status == Result.ncclInProgress, call
        if call == "grow":
            good(nccl.ncclCommAbort(grown))
        else:
            assert nccl.ncclCommFinalize(one)[0] == Result.ncclInvalidArgument, call
        for comm in made.values():
            good(nccl.ncclCommAbort(comm))


def without_blocking(world: World) -> None:
    """A communicator that is made while the program goes on."""
    config = config_without_blocking()
    made = {}
    good(nccl.ncclGroupStart())
    for rank in world.ranks:
        made[rank.number] = good(nccl.ncclCommSplit(rank.comm, 0, rank.number, config))
    status = nccl.ncclGroupEnd()[0]
    assert status in (nccl.ncclResult_t.ncclSuccess, nccl.ncclResult_t.ncclInProgress)
    for rank in world.ranks:  # NVIDIA's library fills the new one in when the other has come to rest
        while good(nccl.ncclCommGetAsyncError(rank.comm)) == nccl.ncclResult_t.ncclInProgress:
            time.sleep(0.001)
    for comm in made.values():
        while (state := good(nccl.ncclCommGetAsyncError(comm))) == nccl.ncclResult_t.ncclInProgress:
            time.sleep(0.001)
        assert state == nccl.ncclResult_t.ncclSuccess
        assert good(nccl.ncclCommCount(comm)) == world.size
    # Of one that does not block: it is in progress itself until the new ones are there.
    children = {}
    good(nccl.ncclGroupStart())
    for rank in world.ranks:
        children[rank.number] = good(nccl.ncclCommSplit(made[rank.number], 0, -rank.number, None))
    assert nccl.ncclGroupEnd()[0] == nccl.ncclResult_t.ncclInProgress
    for number, comm in made.items():
        while (state := good(nccl.ncclCommGetAsyncError(comm))) == nccl.ncclResult_t.ncclInProgress:
            time.sleep(0.001)
        assert state == nccl.ncclResult_t.ncclSuccess
        assert good(nccl.ncclCommUserRank(children[number])) == world.size - 1 - number
        good(nccl.ncclCommDestroy(children[number]))
    for comm in made.values():
        status = nccl.ncclCommFinalize(comm)[0]
        assert status in (nccl.ncclResult_t.ncclSuccess, nccl.ncclResult_t.ncclInProgress)
    for comm in made.values():
        while good(nccl.ncclCommGetAsyncError(comm)) == nccl.ncclResult_t.ncclInProgress:
            time.sleep(0.001)
        good(nccl.ncclCommDestroy(comm))


def ends_behind_work(world: World) -> None:
    """What is in streams when a communicator is finalized is carried out."""
    made: dict[int, Any] = {}
    good(nccl.ncclGroupStart())
    for rank in world.ranks:
        made[rank.number] = good(nccl.ncclCommSplit(rank.comm, 0, rank.number, None))
    good(nccl.ncclGroupEnd())
    arrays = {rank.number: rank.put(np.ones(200_000)) for rank in world.ranks}
    for _ in range(10):
        good(nccl.ncclGroupStart())
        for rank in world.ranks:
            place = at(arrays[rank.number])
            good(nccl.ncclAllReduce(place, place, 200_000, Type.ncclDouble, Op.ncclSum, made[rank.number], rank.handle))
        good(nccl.ncclGroupEnd())
    for rank in world.ranks:
        good(nccl.ncclCommFinalize(made[rank.number]))
    for rank in world.ranks:
        assert (rank.get(arrays[rank.number]) == world.size**10).all()
        good(nccl.ncclCommDestroy(made[rank.number]))


def configured(world: World) -> None:
    """The collectives' second forms: the same numbers, and an event that says when they have begun."""
    if good(nccl.ncclGetVersion()) < 23200:
        return  # NVIDIA's library has none
    undefined = -(2**31)
    configs = {}
    for rank in world.ranks:
        config = nccl.ncclCollConfig_t()
        config.size, config.magic, config.version = 72, nccl.NCCL_API_MAGIC, nccl.NCCL_VERSION_CODE
        config.minCTAs = config.maxCTAs = config.nvlsCTAs = config.cgaClusterSize = config.CTAPolicy = undefined
        config.forceAlgSelection = 1
        rank.device.set_current()
        event = good(driver.cuEventCreate(driver.CUevent_flags.CU_EVENT_DISABLE_TIMING))
        config.launchCompletionEvent = int(event)
        configs[rank.number] = config, event
    total = 8 * world.size
    forms = {
        "AllReduce": (Op.ncclSum,), "Reduce": (Op.ncclMax, 0), "Broadcast": (world.size - 1,), "AllGather": (),
        "ReduceScatter": (Op.ncclSum,), "AlltoAll": (), "Gather": (0,), "Scatter": (0,),
    }  # fmt: skip
    for name, more in forms.items():

        def call(rank: Rank, source: int, target: int, function: Any, last: Any, more: Any = more) -> Any:
            arguments = (source, target, 8, Type.ncclInt32, *more, rank.comm, rank.handle)
            return function(*arguments, *last(rank.number))

        plain, second = getattr(nccl, f"nccl{name}"), getattr(nccl, f"nccl{name}Config")
        wanted, found, none = (
            world.results(
                lambda rank: np.arange(total, dtype=np.int32) * (rank + 1),
                lambda *arguments, function=function, last=last: call(*arguments, function, last),
            )
            for function, last in (
                (plain, lambda _: ()),
                (second, lambda number: (configs[number][0],)),
                (second, lambda _: (None,)),
            )
        )
        for one, other, third in zip(wanted, found, none, strict=True):
            assert (one == other).all(), name
            assert (one == third).all(), name
    for _, event in configs.values():
        good(driver.cuEventSynchronize(event))
        good(driver.cuEventDestroy(event))
    rank = world.ranks[0]
    x, (config, gone) = at(rank.put(np.zeros(8))), configs[rank.number]
    config.launchCompletionEvent = 0
    for name, wrong in (("magic", 0), ("size", 8), ("minCTAs", 0), ("nvlsCTAs", -1), ("forceAlgSelection", 2)):
        right = getattr(config, name)
        setattr(config, name, wrong)
        status = nccl.ncclAllReduceConfig(x, x, 8, Type.ncclDouble, Op.ncclSum, rank.comm, rank.handle, config)[0]
        assert status == nccl.ncclResult_t.ncclInvalidArgument, name
        setattr(config, name, right)
    if on_cpu_device():  # an event that is gone ends the call, and not the communicator
        config.launchCompletionEvent = int(gone)
        status = nccl.ncclAllReduceConfig(x, x, 8, Type.ncclDouble, Op.ncclSum, rank.comm, rank.handle, config)[0]
        assert status != nccl.ncclResult_t.ncclSuccess
        for one in world.results(
            lambda rank: np.full(8, rank + 1, np.int32),
            lambda rank, source, target: nccl.ncclAllReduce(
                source, target, 8, Type.ncclInt32, Op.ncclSum, rank.comm, rank.handle
            ),
        ):
            assert (one == world.size * (world.size + 1) // 2).all()


def registered_memory(world: World) -> None:
    for rank in world.ranks:
        rank.device.set_current()
        place = good(nccl.ncclMemAlloc(4096))
        handle = good(nccl.ncclCommRegister(rank.comm, place, 4096))
        good(nccl.ncclCommDeregister(rank.comm, handle))
        # What NVIDIA's library does with a handle that is gone is not documented, and it has windows only where the
        # memory of GPUs allows them.
        if on_cpu_device():
            assert nccl.ncclCommDeregister(rank.comm, handle)[0] == nccl.ncclResult_t.ncclInvalidArgument
            window = good(nccl.ncclCommWindowRegister(rank.comm, place, 4096, nccl.NCCL_WIN_COLL_SYMMETRIC))
            assert good(nccl.ncclWinGetUserPtr(rank.comm, window)) == place
            good(nccl.ncclCommWindowDeregister(rank.comm, window))
            assert nccl.ncclWinGetUserPtr(rank.comm, window)[0] == nccl.ncclResult_t.ncclInvalidArgument
        good(nccl.ncclMemFree(place))


def suspended(world: World) -> None:
    if not on_cpu_device():
        return  # which NCCL it is, is not known
    rank = world.ranks[0]
    suspended, x = nccl.ncclCommMemStat_t.ncclStatGpuMemSuspended, at(rank.put(np.zeros(8)))
    good(nccl.ncclCommSuspend(rank.comm, nccl.NCCL_SUSPEND_MEM))
    assert good(nccl.ncclCommMemStats(rank.comm, suspended)) == 1
    refused = nccl.ncclAllReduce(x, x, 8, Type.ncclDouble, 0, rank.comm, rank.handle)[0]
    assert refused == nccl.ncclResult_t.ncclInvalidUsage
    good(nccl.ncclCommResume(rank.comm))
    assert good(nccl.ncclCommMemStats(rank.comm, suspended)) == 0


def questions(world: World) -> None:
    version = good(nccl.ncclGetVersion())
    assert version // 10000 == 2
    for rank in world.ranks:
        assert good(nccl.ncclCommCount(rank.comm)) == world.size
        assert good(nccl.ncclCommUserRank(rank.comm)) == rank.number
        assert good(nccl.ncclCommCuDevice(rank.comm)) == rank.device.device_id
        assert good(nccl.ncclCommGetAsyncError(rank.comm)) == nccl.ncclResult_t.ncclSuccess


def wrong_arguments(world: World) -> None:
    """Each is refused, says why, and the communicator goes on."""
    rank = world.ranks[0]
    x = at(rank.put(np.zeros(8)))
    comm, stream, size = rank.comm, rank.handle, world.size
    double = Type.ncclDouble
    invalid, usage = nccl.ncclResult_t.ncclInvalidArgument, nccl.ncclResult_t.ncclInvalidUsage
    identity = good(nccl.ncclGetUniqueId())
    calls = [
        (lambda: nccl.ncclAllReduce(x, x, 8, double, 0, None, stream), invalid, "AllReduce : comm argument is NULL"),
        (lambda: nccl.ncclAllReduce(x, x, 8, 12, 0, comm, stream), invalid, "AllReduce : invalid type 12"),
        (
            lambda: nccl.ncclAllReduce(x, x, 8, double, 77, comm, stream),
            invalid,
            "operation 77 unknown to this communicator",
        ),
        (
            lambda: nccl.ncclBroadcast(x, x, 8, double, size, comm, stream),
            invalid,
            f"Broadcast : invalid root {size} (root",
        ),
        (
            lambda: nccl.ncclReduce(x, x, 8, double, 0, -1, comm, stream),
            invalid,
            "Reduce : invalid root -1 (root should",
        ),
        (lambda: nccl.ncclRedOpDestroy(0, comm), invalid, "ncclRedOpDestroy : operator is a NCCL builtin."),
        (lambda: nccl.ncclRedOpDestroy(9, comm), invalid, "operator unknown to this communicator"),
        (lambda: nccl.ncclGroupEnd(), usage, "ncclGroupEnd: not in a group call."),
        (lambda: nccl.ncclCommInitRank(2, identity, 3), invalid, "Invalid rank requested : 3/2"),
        (lambda: nccl.ncclCommInitAll(1, [99]), invalid, "Invalid device 99 (totalnDev="),
    ]
    for call, status, text in calls:
        assert call()[0] == status, (text, status)
        assert text in nccl.ncclGetLastError(None)[1].decode(), (text, nccl.ncclGetLastError(None)[1])
    rank.device.set_current()
    alone = good(nccl.ncclCommInitRank(1, good(nccl.ncclGetUniqueId()), 0))
    op = good(nccl.ncclRedOpCreatePreMulSum(np.array([2.0]), double, 1, alone))
    assert nccl.ncclAllReduce(x, x, 8, double, op, comm, stream)[0] == invalid, "it belongs to the other communicator"
    good(nccl.ncclCommDestroy(alone))
    good(nccl.ncclGroupStart())
    bad = nccl.ncclAllReduce(x, x, 8, 99, 0, comm, stream)[0]
    assert bad == invalid
    assert nccl.ncclGroupEnd()[0] == invalid
    assert b"invalid type 99" in nccl.ncclGetLastError(None)[1]
    assert nccl.ncclGetErrorString(usage)[1] == b"invalid usage (run with NCCL_DEBUG=WARN for details)"
    good(nccl.ncclAllReduce(x, x, 0, double, 0, comm, stream))  # of nothing
    questions(world)


def alone_in_a_group(world: World) -> None:
    """What a rank alone does comes in the order of the calls, reductions by a factor too, before the group ends."""
    rank = world.ranks[0]
    rank.device.set_current()
    alone = good(nccl.ncclCommInitRank(1, good(nccl.ncclGetUniqueId()), 0))
    op = good(nccl.ncclRedOpCreatePreMulSum(np.array([2.0]), Type.ncclDouble, 1, alone))
    x, y, z = (rank.put(np.full(8, value)) for value in (3.0, 0.0, 0.0))
    good(nccl.ncclGroupStart())
    good(nccl.ncclAllReduce(at(x), at(y), 8, Type.ncclDouble, op, alone, rank.handle))
    good(nccl.ncclAllReduce(at(y), at(z), 8, Type.ncclDouble, Op.ncclSum, alone, rank.handle))
    good(nccl.ncclAllReduce(at(z), at(x), 8, Type.ncclDouble, op, alone, rank.handle))
    found = rank.get(z)
    good(nccl.ncclGroupEnd())
    assert (found == 6).all(), found
    assert (rank.get(x) == 12).all()
    good(nccl.ncclCommDestroy(alone))


def strangers(world: World) -> None:
    """Whoever connects to the address of an id and is no rank is sent away."""
    if not on_cpu_device() or len(world.ranks) < 2:
        return  # the id is the CPU device's, and all ranks are to be here
    identity = good(nccl.ncclGetUniqueId())
    raw = bytes(identity.internal)
    nonce, port = raw[8:24], int.from_bytes(raw[26:28], "big")
    address = (socket.inet_ntoa(raw[28:32]), port)
    hello = struct.calcsize("=16sii")  # what comes before the rank
    for text in (b"", b"GET / HTTP/1.0\r\n\r\n", bytes(1 << 16), nonce[:7], bytes(hello) + b"\xff" * 400):
        with socket.create_connection(address) as stranger:
            stranger.sendall(text)
    wrong = id_of(raw[:8] + nonce + b"\xff" * 104)
    assert nccl.ncclCommInitRank(2, wrong, 0)[0] == nccl.ncclResult_t.ncclRemoteError
    made = []
    good(nccl.ncclGroupStart())
    for rank in world.ranks:
        rank.device.set_current()
        made.append(good(nccl.ncclCommInitRank(world.size, identity, rank.number)))
    good(nccl.ncclGroupEnd())
    for comm in made:
        assert good(nccl.ncclCommCount(comm)) == world.size
        good(nccl.ncclCommDestroy(comm))


def grows(world: World) -> None:
    """All ranks but the last have a communicator, which the last one joins."""
    if world.size < 2 or not on_cpu_device():
        return
    last, smaller, made = world.size - 1, {}, {}
    good(nccl.ncclGroupStart())
    for rank in world.ranks:
        smaller[rank.number] = good(nccl.ncclCommSplit(rank.comm, -1 if rank.number == last else 0, rank.number, None))
    good(nccl.ncclGroupEnd())
    own = bytes(128)
    if world.ranks[0].number == 0:
        own = bytes(good(nccl.ncclCommGetUniqueId(smaller[0])).internal)
    told = world.results(
        lambda rank: np.frombuffer(own, np.uint8),
        lambda rank, s, t: nccl.ncclBroadcast(s, t, 128, Type.ncclUint8, 0, rank.comm, rank.handle),
    )
    identity = id_of(told[0].tobytes())
    good(nccl.ncclGroupStart())
    for rank in world.ranks:
        if rank.number == last:
            call = nccl.ncclCommGrow(None, world.size, identity, last, None)
        else:
            call = nccl.ncclCommGrow(smaller[rank.number], world.size, identity if rank.number == 0 else None, -1, None)
        made[rank.number] = good(call)
    good(nccl.ncclGroupEnd())
    totals = world.results(
        lambda rank: np.full(3, 2.0**rank),
        lambda rank, s, t: nccl.ncclAllReduce(s, t, 3, Type.ncclDouble, Op.ncclSum, made[rank.number], rank.handle),
    )
    for rank, total in zip(world.ranks, totals, strict=True):
        assert (total == 2.0**world.size - 1).all()
        assert good(nccl.ncclCommUserRank(made[rank.number])) == rank.number
        assert nccl.ncclCommGrow(made[rank.number], world.size, None, -1, None)[0] == 4  # no more than there are
        good(nccl.ncclCommDestroy(made[rank.number]))
        if rank.number != last:
            good(nccl.ncclCommDestroy(smaller[rank.number]))


def id_of(raw: bytes) -> Any:
    identity = nccl.ncclUniqueId()
    identity.internal = raw
    return identity


CASES = [
    types_and_operations,
    sums_with_a_factor,
    large_and_in_place,
    moves,
    messages,
    simulated,
    order_of_streams,
    graphs,
    splits,
    shrinks,
    without_blocking,
    calls_that_others_never_make,
    ends_behind_work,
    configured,
    registered_memory,
    suspended,
    questions,
    wrong_arguments,
    alone_in_a_group,
    strangers,
    grows,
]


# ---- the job --------------------------------------------------------------------------------------------------------


def share(path: Path, rank: int, text: bytes = b"") -> bytes:
    """Give the other processes some bytes, by a file, or get them."""
    if rank == 0:
        path.with_suffix(".new").write_bytes(text)
        path.with_suffix(".new").rename(path)
        return text
    while not path.exists():
        time.sleep(0.002)
    return path.read_bytes()


def connect(path: Path) -> World:
    """The ranks of this process: one, where RANK says which, and otherwise as many as there are devices."""
    if "RANK" in os.environ:
        number, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        device = Device.for_rank()
        device.set_current()
        identity = nccl.ncclUniqueId()
        made = bytes(good(nccl.ncclGetUniqueId()).internal) if number == 0 else b""
        identity.internal = share(path, number, made)
        return World(
            [Rank(number, device, device.create_stream(), good(nccl.ncclCommInitRank(size, identity, number)))], size
        )
    devices = list(Device.get_all_devices())
    ranks = []
    for number, comm in enumerate(good(nccl.ncclCommInitAll(len(devices), None))):
        devices[number].set_current()
        ranks.append(Rank(number, devices[number], devices[number].create_stream(), comm))
    return World(ranks, len(ranks))


def main(path: Path) -> None:
    world = connect(path)
    said = {}
    for case in CASES:
        try:
            case(world)
            said[case.__name__] = ""
        except Exception:
            said[case.__name__] = traceback.format_exc()
            os.write(2, said[case.__name__].encode())
            break
    # Whether all is well on all ranks is itself a sum.
    flags = world.results(
        lambda rank: np.array([any(said.values())], np.int32),
        lambda rank, s, t: nccl.ncclAllReduce(s, t, 1, Type.ncclInt, Op.ncclSum, rank.comm, rank.handle),
    )
    for rank in world.ranks:
        good(nccl.ncclCommDestroy(rank.comm))
    if any(said.values()):
        sys.exit(1)
    if world.ranks[0].number == 0:
        print(json.dumps({"cases": list(said), "failed elsewhere": int(flags[0][0])}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
