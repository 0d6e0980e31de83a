"""What a checkpoint does to the memory, the counters and the devices of a process on the CPU device."""

from __future__ import annotations

import pytest

from cupola import CUDAError, system
from cupola.checkpoint import Process
from tests.checkpoint_target import Target

pytestmark = pytest.mark.cpu_only

MIB = 1 << 20


def memory_of(pid: int, index: int = 0) -> int | None:
    """Bytes of a device that a process uses, as NVML tells; None: it is not among those that use the device."""
    processes = system.Device(index=index).compute_running_processes
    return next((process.used_gpu_memory for process in processes if process.pid == pid), None)


def is_readable(pid: int, address: int) -> bool:
    """Whether the process itself could read there."""
    with open(f"/proc/{pid}/maps") as maps:
        for line in maps:
            places, access = line.split()[:2]
            begin, end = (int(place, 16) for place in places.split("-"))
            if begin <= address < end:
                return access.startswith("r")
    return False


ALLOCATIONS = {
    "small": "p = int(ok(driver.cuMemAlloc(100)))",
    "with pages of its own": "p = int(ok(driver.cuMemAlloc(100_000)))",
    "large": "p = int(ok(driver.cuMemAlloc(64 << 20)))",
    "pool": "b = cupola.DeviceMemoryResource(0, {}).allocate(8 << 20, stream=stream); p = int(b.handle)",
    "virtual": "b = cupola.VirtualMemoryResource(device).allocate(1 << 21, stream=stream); p = int(b.handle)",
}


@pytest.mark.parametrize("kind", ALLOCATIONS)
def test_memory_is_out_of_reach_and_comes_back(kind: str) -> None:
    """Other memory of the process shares no slab with it here: the pinned flag of the target is closed first."""
    with Target("flag.close(); " + ALLOCATIONS[kind] + "; put(p, b'abcd')") as target:
        address = target.run("p")
        process = Process(target.pid)
        process.lock()
        assert is_readable(target.pid, address)
        process.checkpoint()
        assert not is_readable(target.pid, address)
        process.restore()
        assert is_readable(target.pid, address)
        process.unlock()
        assert target.run("get(p)") == b"abcd"


def test_nvml_shows_that_the_memory_is_free() -> None:
    with Target("p = ok(driver.cuMemAlloc(64 << 20))") as target:
        process = Process(target.pid)
        before = memory_of(target.pid)
        assert before is not None
        assert before >= 64 * MIB
        process.lock()
        assert memory_of(target.pid) == before
        process.checkpoint()
        assert memory_of(target.pid) is None
        process.restore()
        assert memory_of(target.pid) == before
        process.unlock()
        target.run("ok(driver.cuMemFree(p)); 0")
        assert memory_of(target.pid) == before - 64 * MIB


def test_many_allocations() -> None:
    """More than the mappings that a process may have, if each were set apart."""
    setup = """
ps = [int(ok(driver.cuMemAlloc(20_000))) for _ in range(5000)]
for i, p in enumerate(ps):
    put(p, bytes([i % 251]))
"""
    with Target(setup) as target:
        process = Process(target.pid)
        for _ in range(3):
            process.lock()
            process.checkpoint()
            process.restore()
            process.unlock()
        assert target.run("all(get(p, 1)[0] == i % 251 for i, p in enumerate(ps))") is True


def test_host_that_reads_device_memory_waits() -> None:
    """Device pointers are host addresses here; while their memory is away nothing must end the process."""
    with Target("flag.close(); p = int(ok(driver.cuMemAlloc(100_000))); put(p, b'abcd')") as target:
        process = Process(target.pid)
        process.lock()
        process.checkpoint()
        target.tell("ctypes.string_at(p, 4)")
        assert target.is_silent()
        process.restore()
        assert target.answer() == b"abcd"
        process.unlock()


def test_call_that_is_under_way_waits_for_its_memory() -> None:
    """A module is compiled while the process is locked and checkpointed: the call began before."""
    source = "code = cupola.ObjectCode.from_ptx(PTX.replace('counter', 'other').encode())"
    with Target(source) as target:
        process = Process(target.pid)
        target.tell(
            "x = zeros(); cupola.launch(stream, one, code.get_kernel('increment'), x); stream.sync(); number(x.handle)"
        )
        for _ in range(20):
            process.lock(60000)
            process.checkpoint()
            process.restore()
            process.unlock()
        assert target.answer() == 1


def test_work_of_a_green_context_is_waited_for() -> None:
    setup = """
from cupola import ContextOptions, SMResourceOptions
parts, rest = device.resources.sm.split(SMResourceOptions(count=16))
green = device.create_context(ContextOptions(resources=[parts[0]]))
mine = green.create_stream()
x = zeros()
set_flag(0)
cupola.launch(mine, one, code.get_kernel("spin"), flag)
"""
    with Target(setup) as target:
        process = Process(target.pid)
        with pytest.raises(CUDAError, match="CUDA_ERROR_NOT_READY"):
            process.lock(300)
        target.run("set_flag(1)")
        for step in ("lock", "checkpoint", "restore", "unlock"):
            getattr(process, step)()
        assert (
            target.run("cupola.launch(mine, one, code.get_kernel('increment'), x); mine.sync(); number(x.handle)") == 1
        )


def test_freed_and_new_memory_afterwards() -> None:
    with Target("ps = [int(ok(driver.cuMemAlloc(1 << 20))) for _ in range(8)]") as target:
        process = Process(target.pid)
        for step in ("lock", "checkpoint", "restore", "unlock"):
            getattr(process, step)()
        target.run("for p in ps: ok(driver.cuMemFree(p))\nqs = [int(ok(driver.cuMemAlloc(1 << 20))) for _ in range(8)]")
        assert (
            target.run("for q in qs: put(q + (1 << 20) - 4, b'wxyz')\n[get(q + (1 << 20) - 4) for q in qs]")
            == [b"wxyz"] * 8
        )


def test_memory_of_another_process_is_refused() -> None:
    with Target(
        "p = int(ok(driver.cuMemAlloc(4 << 20))); put(p, b'abcd'); h = ok(driver.cuIpcGetMemHandle(p))"
    ) as maker:
        handle = maker.run("bytes(h.reserved)")
        opened = f"h = driver.CUipcMemHandle(); h.reserved = {handle!r}; p = int(ok(driver.cuIpcOpenMemHandle(h, 1)))"
        with Target(opened) as target:
            process = Process(target.pid)
            process.lock()
            with pytest.raises(RuntimeError, match="opened or imported memory of another"):
                process.checkpoint()
            process.unlock()
            assert target.run("get(p)") == b"abcd"
            for step in ("lock", "checkpoint", "restore", "unlock"):
                getattr(Process(maker.pid), step)()
            assert target.run("get(p)") == b"abcd"
            target.run("ok(driver.cuIpcCloseMemHandle(p))\n0")
            process.lock()
            process.checkpoint()


IMPORTS = {
    "virtual memory": """
properties = driver.CUmemAllocationProp()
properties.type = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
properties.location.type = driver.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
properties.requestedHandleTypes = KIND
made = ok(driver.cuMemCreate(1 << 21, properties, 0))
file = ok(driver.cuMemExportToShareableHandle(made, KIND, 0))
handle = ok(driver.cuMemImportFromShareableHandle(file, KIND))
""",
    "a pool": """
pool = cupola.DeviceMemoryResource(0, {"ipc_enabled": True})
file = os.dup(int(pool.allocation_handle))
handle = ok(driver.cuMemPoolImportFromShareableHandle(file, KIND, 0))
""",
}


@pytest.mark.parametrize("kind", IMPORTS)
def test_imported_memory_is_refused(kind: str) -> None:
    kind_of_handle = "KIND = driver.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR"
    with Target(kind_of_handle + IMPORTS[kind]) as target:
        process = Process(target.pid)
        process.lock()
        with pytest.raises(RuntimeError, match="imported memory of another"):
            process.checkpoint()
        assert process.state == "locked"


# --- several devices


TWO = """
other = cupola.Device(1)
uuids = [device.uuid, other.uuid]
p = int(ok(driver.cuMemAlloc(64 << 20)))
put(p, b"abcd")
other.set_current()
q = int(ok(driver.cuMemAlloc(32 << 20)))
put(q, b"efgh")
device.set_current()
"""


def test_devices_change_places(run_on_devices) -> None:
    source = f"""
import sys
sys.path.insert(0, {str(__file__.rpartition("/tests/")[0])!r})
from tests.cpu.driver.checkpoint.test_state import change_places
change_places()
"""
    done = run_on_devices(2, source)
    assert done.returncode == 0, done.stderr


def change_places() -> None:
    with Target(TWO) as target:
        process = Process(target.pid)
        first, second = target.run("uuids")
        before = [memory_of(target.pid, 0), memory_of(target.pid, 1)]
        assert before[0] - before[1] == 32 * MIB
        process.lock()
        process.checkpoint()
        for wrong in ({first: second}, {first: second, second: second}, {first: first, first.replace("-", ""): second}):
            with pytest.raises(Exception, match="CUDA_ERROR_INVALID_VALUE"):
                process.restore(wrong)
        process.restore({first: second, second: first})
        assert [memory_of(target.pid, 1), memory_of(target.pid, 0)] == before
        process.unlock()
        assert target.run("[cupola.Device(0).uuid, cupola.Device(1).uuid]") == [first, second]  # kept by the objects
        assert target.run("[ok(driver.cuDeviceGetUuid(i)).bytes[15] for i in (0, 1)]") == [1, 0]
        assert target.run("[ok(driver.cuDeviceGetPCIBusId(13, i))[:10] for i in (0, 1)]") == [
            b"0000:10:00",
            b"0000:11:00",
        ]
        assert target.run("int(ok(driver.cuDeviceGetByPCIBusId(b'0000:11:00.0')))") == 1
        assert target.run("get(p), get(q)") == (b"abcd", b"efgh")
        assert target.run("x = zeros(); increment(x); stream.sync(); number(x.handle)") == 1
        process.lock()
        process.checkpoint()
        process.restore({second: first, first: second})
        process.unlock()
        assert memory_of(target.pid, 1) == before[1]
        assert target.run("[ok(driver.cuDeviceGetUuid(i)).bytes[15] for i in (0, 1)]") == [0, 1]
