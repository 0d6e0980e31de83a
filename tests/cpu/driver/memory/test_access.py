"""Which device needs access to what is copied or filled: the rules that two H200s show, on whatever device is here.

A case is a pair of memories, the current device and the stream's; all run in one process that sees two devices.
"""

from __future__ import annotations

import ctypes
from itertools import product
from typing import Any

import pytest

from cupola.bindings import driver
from tests.conftest import on_cpu_device
from tests.cpu.driver.calls import explanation, ok, status
from tests.cpu.driver.memory.test_pool import properties, set_access

SIZE = 64
KINDS = ["pool", "virtual", "linear", "managed", "pinned", "pageable"]
RIGHTS = {"pool", "virtual"}  # memory of these kinds is open to its own device and to those that were given access
OPENED = [(), ((1, 0),), ((0, 1),), ((0, 1), (1, 0))]  # (whose memory, to whom)


class Devices:
    """Two devices with their contexts, a stream each, and memory of all kinds on both."""

    def __init__(self) -> None:
        ok(driver.cuInit(0))
        self.contexts = [ok(driver.cuDevicePrimaryCtxRetain(i)) for i in (0, 1)]
        self.opened: tuple[tuple[int, int], ...] = ()
        self.page = ctypes.create_string_buffer(2 * SIZE)
        self.streams, self.memory, self.pools = [], {}, []
        for i in (0, 1):
            ok(driver.cuCtxSetCurrent(self.contexts[i]))
            stream = ok(driver.cuStreamCreate(1))
            pool = ok(driver.cuMemPoolCreate(properties("DEVICE", i)))
            self.memory["pool", i] = ok(driver.cuMemAllocFromPoolAsync(SIZE, pool, stream))
            self.memory["linear", i] = ok(driver.cuMemAlloc(SIZE))
            self.memory["managed", i] = ok(driver.cuMemAllocManaged(SIZE, 1))
            self.memory["pinned", i] = ok(driver.cuMemHostAlloc(SIZE, 0))
            self.memory["pageable", i] = ctypes.addressof(self.page) + i * SIZE
            self.memory["virtual", i] = self.map(i)
            ok(driver.cuStreamSynchronize(stream))
            self.streams.append(stream)
            self.pools.append(pool)

    def map(self, device: int) -> int:
        wanted = driver.CUmemAllocationProp()
        wanted.type = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
        wanted.location.type, wanted.location.id = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE, device
        made = ok(driver.cuMemCreate(2 << 20, wanted, 0))
        address = ok(driver.cuMemAddressReserve(2 << 20, 0, 0, 0))
        ok(driver.cuMemMap(address, 2 << 20, 0, made, 0))
        self.open(address, device, True)
        return int(address)

    def open(self, address: int, device: int, on: bool) -> None:
        right = driver.CUmemAccessDesc()
        right.location.type, right.location.id = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE, device
        right.flags = getattr(driver.CUmemAccess_flags, f"CU_MEM_ACCESS_FLAGS_PROT_{'READWRITE' if on else 'NONE'}")
        ok(driver.cuMemSetAccess(address, 2 << 20, [right], 1))

    def give(self, opened: tuple[tuple[int, int], ...]) -> None:
        for owner in (0, 1):
            on = (owner, 1 - owner) in opened
            if on == ((owner, 1 - owner) in self.opened):
                continue
            ok(set_access(self.pools[owner], 1 - owner, "READWRITE" if on else "NONE"))
            self.open(self.memory["virtual", owner], 1 - owner, on)
        self.opened = opened


def batch(target: int, source: int, stream: Any) -> Any:
    order = driver.CUmemcpyAttributes()
    order.srcAccessOrder = driver.CUmemcpySrcAccessOrder.CU_MEMCPY_SRC_ACCESS_ORDER_STREAM
    return driver.cuMemcpyBatchAsync([target], [source], [SIZE], 1, [order], [0], 1, stream)


def box(target: int, source: int, stream: Any) -> Any:
    form = driver.CUDA_MEMCPY2D()
    form.srcMemoryType = form.dstMemoryType = driver.CUmemorytype.CU_MEMORYTYPE_UNIFIED
    form.srcDevice, form.dstDevice, form.srcPitch, form.dstPitch = source, target, SIZE // 2, SIZE // 2
    form.WidthInBytes, form.Height = SIZE // 2, 2
    return driver.cuMemcpy2DAsync(form, stream)


def main() -> None:
    """Print what differs from the rules, and how many cases there were."""
    devices, count = Devices(), 0
    batches = ok(driver.cuDriverGetVersion()) >= 13000
    for opened in OPENED:
        devices.give(opened)

        def may(device: int, memory: tuple[str, int], opened: tuple[tuple[int, int], ...] = opened) -> bool:
            return memory[0] not in RIGHTS or memory[1] == device or (memory[1], device) in opened

        def expect(right: bool, result: Any, *case: object, opened: object = opened) -> None:
            nonlocal count
            count += 1
            if status(result) != ("CUDA_SUCCESS" if right else "CUDA_ERROR_INVALID_VALUE"):
                print("opened", opened, *case, "gives", status(result))

        for current, stream in product((0, 1), (0, 1)):
            ok(driver.cuCtxSetCurrent(devices.contexts[current]))
            queue = devices.streams[stream]
            where = f"current {current} stream {stream}"
            for source, target in product(devices.memory, devices.memory):
                # Each kind with itself and with memory of a pool; host to host is no copy of a device.
                if source == target or not {source[0], target[0]} & RIGHTS:
                    continue
                frm, to = devices.memory[source], devices.memory[target]
                by_current, by_stream = (may(d, source) and may(d, target) for d in (current, stream))
                expect(by_current, driver.cuMemcpyAsync(to, frm, SIZE, queue), where, "cuMemcpyAsync", source, target)
                expect(by_current, driver.cuMemcpy(to, frm, SIZE), where, "cuMemcpy", source, target)
                if "pageable" in (source[0], target[0]):
                    continue
                expect(by_current, box(to, frm, queue), where, "cuMemcpy2DAsync", source, target)
                if batches:
                    expect(by_stream, batch(to, frm, queue), where, "cuMemcpyBatchAsync", source, target)
                if source[0] in RIGHTS and target[0] in RIGHTS:
                    ends = to, devices.contexts[target[1]], frm, devices.contexts[source[1]], SIZE
                    expect(True, driver.cuMemcpyPeerAsync(*ends, queue), where, "cuMemcpyPeerAsync", source, target)
            for memory in devices.memory:
                if memory[0] in RIGHTS and current == stream:
                    result = driver.cuMemsetD8Async(devices.memory[memory], 1, SIZE, queue)
                    expect(may(stream, memory), result, where, "cuMemsetD8Async", memory)
            ok(driver.cuStreamSynchronize(queue))
    print(count, "cases")


def test_the_rules(run_on_devices):
    done = run_on_devices(2, "from tests.cpu.driver.memory.test_access import main; main()")
    assert done.stdout.split()[1:] == ["cases"], done.stdout + done.stderr
    assert int(done.stdout.split()[0]) > 1000


def explain() -> None:
    devices = Devices()
    ok(driver.cuCtxSetCurrent(devices.contexts[0]))
    for call in (
        lambda: driver.cuMemcpyAsync(devices.memory["pool", 0], devices.memory["pool", 1], SIZE, devices.streams[1]),
        lambda: driver.cuMemcpyAsync(devices.memory["virtual", 1], devices.memory["pool", 0], SIZE, 0),
        lambda: batch(devices.memory["pool", 0], devices.memory["linear", 0], devices.streams[1]),
        lambda: driver.cuMemsetD8Async(devices.memory["pool", 0], 1, SIZE, devices.streams[1]),
    ):
        print(explanation(call()))


@pytest.mark.cpu_only
def test_the_errors_say_who_may_not_do_what(run_on_devices):
    assert on_cpu_device()
    done = run_on_devices(2, "from tests.cpu.driver.memory.test_access import explain; explain()")
    assert not done.stderr
    said = done.stdout.splitlines()
    assert "the source" in said[0] and "pool of device 1 that device 0, the current context's, may not read" in said[0]
    assert "the target" in said[1] and "mapped memory of device 1 that device 0" in said[1]
    assert "may not write to" in said[1] and "cuMemSetAccess" in said[1]
    assert "a target of the batch" in said[2] and "device 0 that device 1, the stream's" in said[2]
    assert "the target" in said[3] and "device 0 that device 1, the stream's, may not write to" in said[3]
    assert all("cuMemcpyPeerAsync" in line for line in said)


def others() -> None:
    """Print what else two H200s have shown, where it is otherwise here."""
    devices = Devices()
    pools, streams, contexts = (devices.memory["pool", 0], devices.memory["pool", 1]), devices.streams, devices.contexts
    host = ok(driver.cuMemPoolCreate(properties("HOST_NUMA", 0)))
    ok(set_access(host, 0, "READWRITE"))
    there = ok(driver.cuMemAllocFromPoolAsync(SIZE, host, streams[0]))
    ok(driver.cuStreamSynchronize(streams[0]))
    ok(driver.cuCtxSetCurrent(contexts[0]))

    def expect(wanted: str, result: Any, what: str) -> None:
        if status(result) != f"CUDA_{wanted}":
            print(what, "gives", status(result))

    def capture(stream: Any, work: Any, wanted: str, ended: str, what: str) -> Any:
        ok(driver.cuStreamBeginCapture(stream, driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED))
        expect(wanted, work(), what)
        result = driver.cuStreamEndCapture(stream)
        expect(ended, result, f"the end of the capture of {what}")
        return result[1]

    # Each side of a copy between contexts needs access rights of the context that is named for it.
    wrong = pools[0], contexts[1], pools[1], contexts[0], SIZE
    expect("ERROR_INVALID_VALUE", driver.cuMemcpyPeerAsync(*wrong, streams[0]), "a peer copy with the contexts swapped")
    expect("ERROR_INVALID_VALUE", driver.cuMemcpyPeer(*wrong), "the same, synchronously")
    # Such a copy cannot be captured, and spoils the capture.
    ends = pools[0], contexts[0], pools[1], contexts[1], SIZE
    for stream in streams:
        unsupported, spoilt = "ERROR_STREAM_CAPTURE_UNSUPPORTED", "ERROR_STREAM_CAPTURE_INVALIDATED"
        capture(stream, lambda s=stream: driver.cuMemcpyPeerAsync(*ends, s), unsupported, spoilt, "a peer copy")
        # A plain one that is refused does not.
        copy = lambda s=stream: driver.cuMemcpyAsync(pools[0], pools[1], SIZE, s)  # noqa: E731
        capture(stream, copy, "ERROR_INVALID_VALUE", "SUCCESS", "a copy without access")
    # That the stream's device may not write to what a captured fill fills is found out when the graph is instantiated.
    for number, wanted in enumerate(("ERROR_INVALID_VALUE", "SUCCESS")):
        fill = lambda s=streams[number]: driver.cuMemsetD8Async(pools[1], 1, SIZE, s)  # noqa: E731
        graph = capture(streams[number], fill, "SUCCESS", "SUCCESS", "a fill")
        expect(wanted, driver.cuGraphInstantiate(graph, 0), f"a graph of stream {number}")
    # Pools of host memory: copies need no access, fills do.
    ok(driver.cuCtxSetCurrent(contexts[1]))
    for target, source in ((there, pools[1]), (pools[1], there)):
        expect("SUCCESS", driver.cuMemcpyAsync(target, source, SIZE, streams[1]), "a copy with a pool of host memory")
        expect("SUCCESS", batch(target, source, streams[1]), "a batch with a pool of host memory")
    expect("ERROR_INVALID_VALUE", driver.cuMemsetD8Async(there, 1, SIZE, streams[1]), "a fill of a pool of host memory")
    # With no context current a batch is refused, a copy within the stream's device is not.
    ok(driver.cuCtxSetCurrent(0))
    expect("ERROR_INVALID_VALUE", batch(pools[1], devices.memory["linear", 1], streams[1]), "a batch without a context")
    copy = driver.cuMemcpyAsync(pools[1], devices.memory["linear", 1], SIZE, streams[1])
    expect("SUCCESS", copy, "a copy without a context")
    print("done")


def test_other_rules(run_on_devices):
    done = run_on_devices(2, "from tests.cpu.driver.memory.test_access import others; others()")
    assert done.stdout == "done\n", done.stdout + done.stderr
