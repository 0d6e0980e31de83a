"""Calls while the queue of a stream is full behind a host function written in Python: nothing may wait with the GIL.

On a GPU a stream takes some thousand launches and then makes the next one wait; the CPU device's queues have no end, so
there the programs only show that the calls work.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).with_name("programs")

START = """
import ctypes, threading, time
from cupola import Device, DeviceMemoryResource, LaunchConfig, LegacyPinnedMemoryResource, Program, launch
from cupola.bindings import driver
from cupola.utils import StridedMemoryView

dev = Device(0)
dev.set_current()
stream, other = dev.create_stream(), dev.create_stream()
code = Program('extern "C" __global__ void k() {}', "c++", {"arch": f"sm_{dev.arch}"}).compile("cubin")
kernel, config = code.get_kernel("k"), LaunchConfig(grid=1, block=1)
launch(stream, config, kernel)
event, timed = stream.record(), stream.record(timing_enabled=True)
buffers = [dev.allocate(64, stream=stream) for _ in range(8)]
stream.sync()
raw = int(stream.handle)
go_on = threading.Event()
hold = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: go_on.wait() and None)
assert int(driver.cuLaunchHostFunc(raw, ctypes.cast(hold, ctypes.c_void_p).value, 0)[0]) == 0
"""

# Another thread fills the queue and waits in a launch; a third lets the host function return a while later.
BESIDE_A_LAUNCH = """
count = 0
def fill():
    global count
    dev.set_current()
    for count in range(1100):
        launch(stream, config, kernel)
filling = threading.Thread(target=fill)
filling.start()
seen = -1
while filling.is_alive() and seen != count:
    seen = count
    time.sleep(0.1)
threading.Timer(0.3, go_on.set).start()
{call}
filling.join()
stream.sync()
print("done")
"""

CAPTURE = "builder = other.create_graph_builder().begin_building(); launch(builder, config, kernel); "

CALLS = {
    "record": "stream.record(event)",
    "record with timing": "stream.record(timed)",
    "record a new event": "stream.record().close()",
    "make and destroy an event": "dev.create_event().close()",
    "wait": "stream.wait(event)",
    "wait for another stream": "stream.wait(other)",
    "other waits for the stream": "other.wait(stream)",
    "allocate": "dev.allocate(64, stream=stream)",
    "free": "buffers.pop().close()",
    "free what is forgotten": "buffers.clear()",
    "launch": "launch(stream, config, kernel)",
    "a stream": "dev.create_stream().close()",
    "synchronise": "stream.sync()",
    "a pool": "DeviceMemoryResource(dev, {}).close()",
    "a host allocation": "LegacyPinnedMemoryResource().allocate(64).close()",
    "a capture": CAPTURE + "builder.end_building().complete()",
    "a capture that nobody ends": CAPTURE + "del builder",
    "attributes of a node": CAPTURE + "[n.config for n in builder.end_building().graph_definition.nodes()]",
    "a view": "StridedMemoryView.from_dlpack(buffers[0], stream_ptr=raw)",
    "bindings: query": "driver.cuStreamQuery(raw)",
    "bindings: record": "driver.cuEventRecord(int(event.handle), raw)",
    "bindings: wait": "driver.cuStreamWaitEvent(raw, int(event.handle), 0)",
    "bindings: event": "driver.cuEventDestroy(driver.cuEventCreate(0)[1])",
    "bindings: free": "driver.cuMemFreeAsync(driver.cuMemAllocAsync(64, raw)[1], raw)",
}


@pytest.fixture
def finishes(run_python) -> Callable[[str | Path], None]:
    """Run a program in a process of its own, to its end, which says ``done``."""

    def check(program: str | Path) -> None:
        done = run_python(program)
        assert (done.stdout, done.returncode) == ("done\n", 0), done.stderr

    return check


@pytest.mark.parametrize("call", CALLS)
def test_beside_a_thread_that_waits_in_a_launch(finishes, call):
    finishes(START + BESIDE_A_LAUNCH.format(call=CALLS[call]))


# One Python thread: only the host function needs the GIL besides, and it comes on a thread of the driver.
ALONE = {
    "record": "stream.record(event)",
    "record with timing": "stream.record(timed)",
    "new events": "stream.record().close()",
    "events that the host waits for asleep": "stream.record(blocking_sync=True).close()",
    "wait": "other.record(event); stream.wait(event)",
    "memory": "dev.allocate(64, stream=stream).close()",
    "launch": "launch(stream, config, kernel)",
    "fill": "buffers[0].fill(0, stream=stream)",
}


BEFORE = """\
sleep = ctypes.cast(ctypes.CDLL(None).usleep, ctypes.c_void_p).value
assert int(driver.cuLaunchHostFunc(raw, sleep, 300_000)[0]) == 0
assert int(driver.cuLaunchHostFunc"""


@pytest.mark.parametrize("call", ALONE)
def test_alone(finishes, call):
    program = START.replace("go_on.wait() and None", "time.sleep(0.2)")
    finishes(program + f"for _ in range(1500):\n    {ALONE[call]}\nstream.sync()\nprint('done')\n")


@pytest.mark.parametrize("call", ALONE)
def test_before_the_host_function_asks_for_the_gil(finishes, call):
    """Until then its thread is none of Python's, so calls think that they are alone, however busy the machine is."""
    program = START.replace("go_on.wait() and None", "None").replace("assert int(driver.cuLaunchHostFunc", BEFORE)
    finishes(program + f"for _ in range(1500):\n    {ALONE[call]}\nstream.sync()\nprint('done')\n")


def test_memory_that_is_still_to_be_freed(finishes):
    """The driver may wait until there is memory: behind a host function that has not even begun to ask for the GIL."""
    finishes(PROGRAMS / "memory_to_be_freed.py")
