"""Eight threads use a device as hard as they can, and nothing may be left behind.

usage: python tests/stress/hammer.py SECONDS

Each thread works on its own objects: it makes streams, events, memory, pools and graphs, launches and copies, checks
what comes out, and lets go of them in a random order, half of them by ``close()`` and half by forgetting them, some in
cycles that only the collector breaks. Events are also handed to the neighbor, which waits for them.

What is alive is counted in the driver's function table, where this program puts its own functions in front of those
that make and destroy handles, so it counts on any device. It prints what happened as JSON.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import itertools
import json
import os
import queue
import random
import re
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any

import numpy as np

import cupola
from cupola import (
    Buffer,
    Device,
    DeviceMemoryResource,
    DeviceMemoryResourceOptions,
    LaunchConfig,
    LegacyPinnedMemoryResource,
    PinnedMemoryResource,
    PinnedMemoryResourceOptions,
    Program,
    launch,
)
from cupola.bindings import driver

THREADS = 8
ELEMENTS = 1000

SOURCE = """
extern "C" __global__ void add(float* x, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] += a;
}
"""

# What makes a handle and what destroys it: (functions and numbers of parameters, function).
HANDLES = {
    "streams": ({"cuStreamCreateWithPriority": 3, "cuStreamCreate": 2}, "cuStreamDestroy"),
    "events": ({"cuEventCreate": 2}, "cuEventDestroy"),
    "pool allocations": ({"cuMemAllocFromPoolAsync": 4}, "cuMemFreeAsync"),
    "host allocations": ({"cuMemHostAlloc": 3, "cuMemAllocHost": 2}, "cuMemFreeHost"),
    "pools": ({"cuMemPoolCreate": 2}, "cuMemPoolDestroy"),
    "graphs": ({"cuStreamEndCapture": 2}, "cuGraphDestroy"),
    "executable graphs": ({"cuGraphInstantiateWithParams": 3, "cuGraphInstantiate": 3}, "cuGraphExecDestroy"),
    "libraries": ({"cuLibraryLoadData": 8}, "cuLibraryUnload"),
}
PARAMETERS = {"cuMemFreeAsync": 2}  # of the functions that destroy; one for the others


class Tally:
    """A number that goes up. It has no lock: the collector may run a destructor that counts at any point of add()."""

    def __init__(self) -> None:
        self._next = itertools.count()
        self._reads = 0

    def add(self) -> None:
        next(self._next)

    def value(self) -> int:
        self._reads += 1
        return next(self._next) - self._reads + 1


class Counts:
    """How many handles of each kind were made and destroyed since :meth:`watch`."""

    def __init__(self) -> None:
        self._made = {kind: Tally() for kind in HANDLES}
        self._destroyed = {kind: Tally() for kind in HANDLES}
        self._functions: list[Any] = []
        header = Path(cupola.__file__).parent / "bindings" / "include" / "cupola" / "driver.h"
        body = header.read_text().split("typedef struct cupola_driver_table {")[1].split("} cupola_driver_table")[0]
        slots = re.findall(r"\(\*(cu\w+)\)\(", body)
        capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
        capsule_pointer.restype, capsule_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        capsule_name = ctypes.pythonapi.PyCapsule_GetName
        capsule_name.restype, capsule_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
        table = capsule_pointer(driver._table, capsule_name(driver._table))
        size = ctypes.c_size_t.from_address(table + 3 * ctypes.sizeof(ctypes.c_void_p)).value
        first = table + size - len(slots) * ctypes.sizeof(ctypes.c_void_p)
        self._slots = {name: first + 8 * number for number, name in enumerate(slots)}

    def watch(self) -> None:
        """Put our functions in front of the driver's. Each of those must have been called before."""
        for kind, (makers, destroyer) in HANDLES.items():
            for maker, parameters in makers.items():
                self._wrap(maker, parameters, self._made[kind])
            self._wrap(destroyer, PARAMETERS.get(destroyer, 1), self._destroyed[kind])

    def _wrap(self, name: str, parameters: int, tally: Tally) -> None:
        slot = ctypes.c_void_p.from_address(self._slots[name])
        shape = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_uint64] * parameters)
        native = shape(slot.value)

        def counted(*arguments: int) -> int:
            status = native(*arguments)
            if status == 0:
                tally.add()
            return status

        function = shape(counted)
        self._functions.append((function, native))
        slot.value = ctypes.cast(function, ctypes.c_void_p).value

    def made(self) -> dict[str, int]:
        return {kind: tally.value() for kind, tally in self._made.items()}

    def alive(self) -> dict[str, int]:
        return {kind: made - self._destroyed[kind].value() for kind, made in self.made().items()}


class Round:
    """One round of work on a device: everything that it makes, and what it is checked by."""

    def __init__(self, device: Device, kernel: Any, choice: random.Random) -> None:
        self.device, self.kernel, self.choice = device, kernel, choice
        self.made: list[Any] = []

    def keep(self, thing: Any) -> Any:
        self.made.append(thing)
        return thing

    def memory(self, stream: Any) -> Buffer:
        """Device memory, from the device's pool or one of our own."""
        size = 4 * ELEMENTS
        if self.choice.random() < 0.2:
            options = DeviceMemoryResourceOptions(max_size=1 << 25)
            return self.keep(self.keep(DeviceMemoryResource(self.device, options)).allocate(size, stream=stream))
        return self.keep(self.device.allocate(size, stream=stream))

    def host(self, stream: Any) -> Buffer:
        if self.choice.random() < 0.2:
            pool = self.keep(PinnedMemoryResource(PinnedMemoryResourceOptions(max_size=1 << 25)))
            return self.keep(pool.allocate(4 * ELEMENTS, stream=stream))
        return self.keep(LegacyPinnedMemoryResource().allocate(4 * ELEMENTS))

    def run(self, mailbox: queue.Queue[Any], neighbour: queue.Queue[Any]) -> None:
        config = LaunchConfig(grid=-(-ELEMENTS // 128), block=128)
        stream, other = (self.keep(self.device.create_stream(priority=self.choice.choice([0, -1]))) for _ in range(2))
        memory, host = self.memory(stream), self.host(stream)
        memory.fill(0, stream=stream)
        launches = self.choice.randrange(1, 6)
        if self.choice.random() < 0.5:
            builder = self.keep(stream.create_graph_builder().begin_building())
            for _ in range(launches):
                launch(builder, config, self.kernel, memory, np.float32(1), np.int32(ELEMENTS))
            graph = self.keep(builder.end_building().complete())
            graph.launch(stream)
        else:
            for _ in range(launches):
                launch(stream, config, self.kernel, memory, np.float32(1), np.int32(ELEMENTS))
        other.wait(self.keep(stream.record()) if self.choice.random() < 0.5 else stream)
        launch(other, config, self.kernel, memory, np.float32(0.5), np.int32(ELEMENTS))
        with contextlib.suppress(queue.Empty):
            other.wait(mailbox.get_nowait())
        neighbour.put(other.record())
        stream.wait(other)
        memory.copy_to(host, stream=stream)
        done = self.keep(stream.record(timing_enabled=True))
        done.sync()
        found = np.frombuffer((ctypes.c_char * host.size).from_address(host.handle), np.float32)
        if not (found == launches + 0.5).all():
            raise AssertionError(f"{launches} launches left {found[found != launches + 0.5][:4]}")

    def close(self) -> None:
        for thing in self.made:
            thing.close()

    def let_go(self) -> None:
        self.choice.shuffle(self.made)
        for thing in self.made:
            if self.choice.random() < 0.5:
                thing.close()
        if self.choice.random() < 0.1:
            self.made.append(self)  # a cycle


def work(
    device: Device, kernel: Any, seed: int, until: float, boxes: list[queue.Queue[Any]], result: list[int]
) -> None:
    device.set_current()
    choice = random.Random(seed)
    rounds = 0
    while rounds == 0 or time.monotonic() < until:
        work = Round(device, kernel, choice)
        work.run(boxes[seed], boxes[(seed + 1) % THREADS])
        work.let_go()
        rounds += 1
    result[seed] = rounds


def add_kernel(device: Device) -> Any:
    """The kernel, each time in a library of its own."""
    return Program(SOURCE, "c++", {"arch": f"sm_{device.arch}"}).compile("cubin").get_kernel("add")


def hammer(device: Device, seconds: float) -> list[int]:
    """Let the threads work, and return how many rounds each did."""
    device.set_current()
    kernel = add_kernel(device)
    boxes: list[queue.Queue[Any]] = [queue.Queue() for _ in range(THREADS)]
    rounds = [0] * THREADS
    until = time.monotonic() + seconds
    threads = [
        threading.Thread(target=work, args=(device, kernel, seed, until, boxes, rounds)) for seed in range(THREADS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return rounds


def resident() -> int:
    """Bytes of memory that the process holds."""
    return 4096 * int(Path("/proc/self/statm").read_text().split()[1])


def used_by_pools(devices: list[Device]) -> list[int]:
    """Bytes that are taken from the pool of each device, when all that can be given back has been."""
    used = []
    for device in devices:
        device.set_current()
        # Memory that the collector freed while its stream was being captured is given back by the next allocation.
        device.allocate(1, stream=device.default_stream).close()
        device.sync()
        used.append(device.memory_resource.attributes.used_mem_current)
    return used


def call_everything(device: Device) -> None:
    """Call each function that is to be watched, and leave nothing for the collector to let go of later."""
    device.set_current()
    kernel = add_kernel(device)
    boxes: tuple[queue.Queue[Any], queue.Queue[Any]] = (queue.Queue(), queue.Queue())
    for seed in range(20):
        work = Round(device, kernel, random.Random(seed))
        work.run(*boxes)
        work.close()
    device.sync()


def main(seconds: float) -> dict[str, Any]:
    failures: list[str] = []
    threading.excepthook = lambda failed: failures.append(
        "".join(traceback.format_exception(failed.exc_type, failed.exc_value, failed.exc_traceback))
    )
    devices = Device.get_all_devices()
    for device in devices:
        call_everything(device)
    gc.collect()
    time.sleep(1)  # the driver lets go of what graphs kept some time later, on its own thread
    counts = Counts()
    counts.watch()
    for device in devices:
        hammer(device, 1)
    gc.collect()
    bytes_before = resident()
    rounds = [hammer(device, seconds) for device in devices]
    gc.collect()
    looks = 0
    while any(counts.alive().values()) and looks < 400:
        used_by_pools(devices)
        time.sleep(0.05 * max(1, os.getloadavg()[0] / len(os.sched_getaffinity(0))))
        looks += 1
    used, alive = used_by_pools(devices), counts.alive()
    return {
        "failures": failures,
        "rounds": rounds,
        "made": counts.made(),
        "alive": alive,
        "pool bytes": used,
        "resident growth": resident() - bytes_before,
    }


if __name__ == "__main__":
    print(json.dumps(main(float(sys.argv[1])), indent=2))
