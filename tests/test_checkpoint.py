"""`cupola.checkpoint.Process`: what it takes, and a child process that is paused and goes on."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

import cupola
from cupola import checkpoint, typing
from cupola.bindings import driver
from cupola.checkpoint import Process
from tests import processes
from tests.checkpoint_target import Target

# --- the object, without a driver


def test_process_is_a_number() -> None:
    process = Process(12)
    assert process.pid == Process(pid=12).pid == 12
    assert process == process
    assert process != Process(12)
    assert repr(process) == "<Process pid=12>"
    assert pickle.loads(pickle.dumps(process)).pid == 12
    with pytest.raises(AttributeError):
        process.pid = 13  # type: ignore[misc]
    with pytest.raises(AttributeError):
        process.other = 1  # type: ignore[attr-defined]


@pytest.mark.parametrize("pid", [True, 1.0, "1", None])
def test_pid_of_a_wrong_type(pid: object) -> None:
    with pytest.raises(TypeError, match="pid must be an int"):
        Process(pid)  # type: ignore[arg-type]


@pytest.mark.parametrize("pid", [0, -1])
def test_pid_that_is_none(pid: int) -> None:
    with pytest.raises(ValueError, match="pid must be positive"):
        Process(pid)


@pytest.mark.parametrize("timeout", [True, 1.5, "1", None])
def test_timeout_of_a_wrong_type(timeout: object) -> None:
    with pytest.raises(TypeError, match="timeout_ms must be an int"):
        Process(1).lock(timeout)  # type: ignore[arg-type]


def test_negative_timeout() -> None:
    with pytest.raises(ValueError, match="0 waits for ever"):
        Process(1).lock(timeout_ms=-1)


UUID = "0123456789abcdef0123456789abcdef"


@pytest.mark.parametrize("mapping", [5, [], [(UUID, UUID)], {1: 2}, {b"1" * 16: UUID}, {UUID: None}])
def test_mapping_of_a_wrong_type(mapping: object) -> None:
    with pytest.raises(TypeError, match="gpu_mapping"):
        Process(1).restore(mapping)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["", "a", UUID[1:], UUID + "0", "g" * 32, "GPU-" + UUID, "{" + UUID + "}"])
def test_text_that_is_no_uuid(text: str) -> None:
    for mapping in ({text: UUID}, {UUID: text}):
        with pytest.raises(ValueError, match="32 hexadecimal digits"):
            Process(1).restore(mapping)


def test_names() -> None:
    assert checkpoint.__all__ == ["Process"]
    assert cupola.checkpoint is checkpoint
    assert get_args(typing.ProcessStateType) == ("running", "locked", "checkpointed", "failed")


# --- another process


@pytest.fixture(scope="module")
def _available() -> None:
    """Skip where the driver cannot checkpoint processes."""
    status, version = driver.cuDriverGetVersion()
    if status != 0 or version < 12080:
        pytest.skip("checkpoints need a driver of CUDA 12.8 or later")
    if driver.cuCheckpointProcessGetState(os.getpid())[0] == driver.CUresult.CUDA_ERROR_NOT_SUPPORTED:
        pytest.skip("a test has recorded a timeline in this process, which can ask for no checkpoints any more")


pytestmark = pytest.mark.usefixtures("_available")


def in_state(process: Process, state: str) -> None:
    """Bring a running process into a state."""
    if state in {"locked", "checkpointed", "restored"}:
        process.lock()
    if state in {"checkpointed", "restored"}:
        process.checkpoint()
    if state == "restored":
        process.restore()


def test_process_is_paused_and_goes_on() -> None:
    with Target("x = zeros(); increment(x)") as target:
        process = Process(target.pid)
        assert process.state == "running"
        states = []
        for step in STEPS:
            getattr(process, step)()
            states.append(process.state)
        assert states == ["locked", "checkpointed", "locked", "running"]
        assert target.run("increment(x); stream.sync(); number(x.handle)") == 2


STATES = {
    "running": ("running", "lock"),
    "locked": ("locked", "checkpoint unlock"),
    "checkpointed": ("checkpointed", "restore"),
    "restored": ("locked", "checkpoint unlock"),
}
STEPS = ("lock", "checkpoint", "restore", "unlock")


@pytest.mark.parametrize("name", STATES)
def test_steps_in_wrong_order_are_refused(name: str) -> None:
    state, permitted = STATES[name]
    with Target() as target:
        process = Process(target.pid)
        in_state(process, name)
        for step in sorted(set(STEPS) - set(permitted.split())):
            with pytest.raises(cupola.CUDAError, match=f"process {target.pid} is {state}") as caught:
                getattr(process, step)()
            assert caught.value.name == "CUDA_ERROR_ILLEGAL_STATE"
            assert process.state == state


def test_error_says_the_next_step() -> None:
    with Target() as target, pytest.raises(cupola.CUDAError, match=r"only lock\(\) can follow"):
        Process(target.pid).unlock()


def test_restore_thread_is_one_of_the_process() -> None:
    with Target() as target:
        threads = set(map(int, os.listdir(f"/proc/{target.pid}/task")))
        assert Process(target.pid).restore_thread_id in threads


def test_process_asks_itself() -> None:
    with Target("x = zeros(); increment(x); me = Process(os.getpid())") as target:
        assert target.run("me.lock(); me.state") == "locked"
        assert target.run("me.checkpoint(); me.state") == "checkpointed"
        assert target.run("me.restore(); me.state") == "locked"
        assert target.run("me.unlock(); me.state") == "running"
        assert target.run("number(x.handle)") == 1


def test_thread_asks_for_its_process_while_another_one_waits() -> None:
    """The call that waits at the gate does not hold Python's global lock."""
    with Target("x = zeros(); me = Process(os.getpid()); me.lock()") as target:
        source = "t = threading.Timer(0.2, me.unlock); t.start(); increment(x); stream.sync(); number(x.handle)"
        assert target.run(source) == 1


def test_lock_gives_up_after_its_time() -> None:
    with Target("x = zeros(); spin()") as target:
        process = Process(target.pid)
        with pytest.raises(cupola.CUDAError, match="300 ms: it goes on") as caught:
            process.lock(timeout_ms=300)
        assert caught.value.name == "CUDA_ERROR_NOT_READY"
        assert process.state == "running"
        assert target.run("increment(x); set_flag(1); stream.sync(); number(x.handle)") == 1
        process.lock()


def test_lock_waits_for_work_that_is_queued() -> None:
    with Target("x = zeros(); spin(); increment(x); y = flag") as target:
        target.tell("threading.Timer(0.5, set_flag, [1]).start()")
        process = Process(target.pid)
        process.lock()
        assert target.answer() is None
        process.checkpoint()
        process.restore()
        process.unlock()
        assert target.run("number(x.handle)") == 1


@pytest.mark.parametrize(
    "call",
    [
        "increment(x)",
        "device.allocate(64, stream=stream)",
        "ok(driver.cuMemAlloc(64))",
        "device.create_stream()",
        "stream.record()",
        "x.fill(1, stream=stream)",
        "put(x.handle, b'1234')",
        "ok(driver.cuModuleLoadData(PTX.encode() + bytes(1)))",
    ],
)
def test_calls_of_a_locked_process_wait(call: str) -> None:
    with Target("x = zeros()") as target:
        process = Process(target.pid)
        process.lock()
        target.tell(call + "\nTrue")
        assert target.is_silent()
        process.checkpoint()
        assert target.is_silent()
        process.restore()
        assert target.is_silent()
        process.unlock()
        assert target.answer() is True


@pytest.mark.parametrize(
    "question",
    ["stream.sync()", "event.is_done", "ok(driver.cuMemGetInfo())", "ok(driver.cuStreamQuery(stream.handle))"],
)
def test_questions_of_a_locked_process_are_answered(question: str) -> None:
    with Target("event = stream.record(); stream.sync()") as target:
        process = Process(target.pid)
        process.lock()
        target.tell(question + "\nTrue")
        assert target.answer() is True
        process.unlock()


def test_objects_work_after_a_restore() -> None:
    """Streams, events, modules and their variables, graphs."""
    setup = """
x = zeros()
start = stream.record(options={"timing_enabled": True})
builder = device.create_graph_builder().begin_building()
cupola.launch(builder, one, code.get_kernel("increment"), x)
graph = builder.end_building().complete()
graph.launch(stream)
stream.sync()
"""
    with Target(setup) as target:
        process = Process(target.pid)
        for _ in range(2):
            in_state(process, "restored")
            process.unlock()
        assert target.run("graph.launch(stream); increment(x); stream.sync(); number(x.handle)") == 3
        library = "kernel = code.get_kernel('increment')\n"
        variable = "ok(driver.cuLibraryGetGlobal(ok(driver.cuKernelGetLibrary(kernel.handle)), b'counter'))[0]"
        assert target.run(f"{library}number({variable})") == 37
        assert target.run("end = stream.record(options={'timing_enabled': True}); end.sync(); end - start > 0") is True


def buffer_of(resource: str) -> str:
    return f"b = cupola.{resource}.allocate(3000, stream=stream); p = int(b.handle)"


MEMORY = {
    "cuMemAlloc": "p = int(ok(driver.cuMemAlloc(100)))",
    "a large one": "p = int(ok(driver.cuMemAlloc(64 << 20)))",
    "a pool": buffer_of("DeviceMemoryResource(0, {})"),
    "virtual memory": buffer_of("VirtualMemoryResource(device)"),
    "what can be shared": buffer_of("DeviceMemoryResource(0, {'ipc_enabled': True})"),
    "what was shared": "p = int(ok(driver.cuMemAlloc(4 << 20))); h = ok(driver.cuIpcGetMemHandle(p))",
}


@pytest.mark.parametrize("kind", MEMORY)
def test_memory_comes_back(kind: str) -> None:
    with Target(MEMORY[kind] + "; put(p, b'abcd'); put(p + 96, b'efgh')") as target:
        process = Process(target.pid)
        in_state(process, "restored")
        process.unlock()
        assert target.run("get(p), get(p + 96)") == (b"abcd", b"efgh")
        assert target.run("put(p, b'ijkl'); get(p)") == b"ijkl"


def test_array_comes_back() -> None:
    setup = """
described = driver.CUDA_ARRAY_DESCRIPTOR()
described.Width, described.NumChannels = 16, 1
described.Format = driver.CUarray_format.CU_AD_FORMAT_UNSIGNED_INT8
array = ok(driver.cuArrayCreate(described))
ok(driver.cuMemcpyHtoA(array, 0, b"0123456789abcdef", 16))
"""
    with Target(setup) as target:
        process = Process(target.pid)
        in_state(process, "restored")
        process.unlock()
        copied = target.run("data = bytearray(16); ok(driver.cuMemcpyAtoH(data, array, 0, 16)); bytes(data)")
        assert copied == b"0123456789abcdef"


def test_pinned_memory_stays_within_reach() -> None:
    with Target() as target:
        process = Process(target.pid)
        in_state(process, "checkpointed")
        assert target.run("set_flag(3); ctypes.string_at(int(flag.handle), 4)") == b"\3\3\3\3"
        process.restore()
        process.unlock()
        assert target.run("get(int(flag.handle))") == b"\3\3\3\3"


def test_managed_memory_is_refused() -> None:
    with Target("m = ok(driver.cuMemAllocManaged(4096, 1))") as target:
        process = Process(target.pid)
        process.lock()
        with pytest.raises(RuntimeError):  # as CUDA_ERROR_NOT_SUPPORTED is
            process.checkpoint()
        assert process.state == "locked"
        process.unlock()
        assert target.run("ok(driver.cuMemFree(m)); 1") == 1


def test_faulted_process_is_not_locked() -> None:
    with Target("increment(64)") as target:
        with pytest.raises(cupola.CUDAError) as caught:
            Process(target.pid).lock()
        assert caught.value.name == "CUDA_ERROR_ILLEGAL_ADDRESS"
        assert Process(target.pid).state == "running"


# --- which processes


def status_of(process: Process, step: str) -> str:
    with pytest.raises(cupola.CUDAError) as caught:
        getattr(process, step)()
    return caught.value.name


@pytest.mark.parametrize("step", ["state", "restore_thread_id", *STEPS])
def test_processes_that_cannot_be_asked(step: str) -> None:
    with Target(cuda=False) as idle:
        assert status_of(Process(idle.pid), step) == "CUDA_ERROR_NOT_INITIALIZED"
    assert status_of(Process(idle.pid), step) == "CUDA_ERROR_OPERATING_SYSTEM"
    ended = processes.Child([sys.executable, "-c", ""])
    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
    assert status_of(Process(ended.pid), step) == "CUDA_ERROR_NOT_INITIALIZED"
    ended.wait()


def test_thread_stands_for_its_process() -> None:
    with Target("t = threading.Timer(60, int); t.daemon = True; t.start()") as target:
        process = Process(target.run("t.native_id"))
        process.lock()
        assert Process(target.pid).state == "locked"
        process.unlock()


def test_process_that_ends_while_it_is_locked() -> None:
    with Target() as target:
        process = Process(target.pid)
        process.lock()
        target.kill()
        assert status_of(process, "unlock") == "CUDA_ERROR_OPERATING_SYSTEM"


def test_forked_child_is_no_process_of_its_own() -> None:
    fork = """
import signal, warnings
warnings.simplefilter("ignore")  # of the threads that the child will not have
child = os.fork()
if child == 0:
    signal.pause()
child
"""
    with Target() as target:
        child = target.run(fork)
        try:
            assert status_of(Process(child), "lock") == "CUDA_ERROR_NOT_INITIALIZED"
            in_state(Process(target.pid), "restored")
            Process(target.pid).unlock()
        finally:
            os.kill(child, signal.SIGKILL)


def test_stopped_process_answers_when_it_goes_on() -> None:
    source = "import sys; from cupola.checkpoint import Process; p = Process(int(sys.argv[1])); print(p.state)"
    with Target() as target:
        os.kill(target.pid, signal.SIGSTOP)
        command = [sys.executable, "-c", source, str(target.pid)]
        with processes.Child(command, stdout=processes.PIPE) as asking:
            with pytest.raises(subprocess.TimeoutExpired):
                asking.wait(1.5)
            os.kill(target.pid, signal.SIGCONT)
            assert asking.communicate()[0] == "running\n"


def test_several_take_turns() -> None:
    """Who locks need not be who goes on."""
    with Target() as target, Target() as other:
        assert other.run(f"p = Process({target.pid}); p.lock(); p.state") == "locked"
        Process(target.pid).checkpoint()
        assert other.run("p.restore(); p.state") == "locked"
        Process(target.pid).unlock()


# --- onto other devices


def test_restore_takes_uuids() -> None:
    uuids = [d.uuid for d in cupola.Device.get_all_devices()]
    with Target("x = zeros(); increment(x); stream.sync()") as target:
        process = Process(target.pid)
        in_state(process, "checkpointed")
        for wrong in ({UUID: uuids[0]}, {uuids[0]: UUID}, {UUID: UUID}):
            with pytest.raises(cupola.CUDAError) as caught:
                process.restore(wrong)
            assert caught.value.name == "CUDA_ERROR_INVALID_VALUE"
            assert process.state == "checkpointed"
        process.restore({uuid: uuid.replace("-", "") for uuid in uuids})
        process.unlock()
        assert target.run("number(x.handle)") == 1


def test_restore_takes_cuuuid(device: cupola.Device) -> None:
    uuid = driver.cuDeviceGetUuid(0)[1]
    others = {d.uuid: d.uuid for d in cupola.Device.get_all_devices() if d.device_id}
    with Target() as target:
        process = Process(target.pid)
        in_state(process, "checkpointed")
        process.restore({uuid: uuid, **others})
        assert process.state == "locked"


def test_restore_onto_other_devices(run_on_devices) -> None:  # type: ignore[no-untyped-def]
    """Device 0 is another one behind each turn."""
    done = run_on_devices(2, Path(__file__).with_name("checkpoint_round.py"))
    assert done.returncode == 0, done.stderr
    uuids = done.stdout.split()
    assert len(set(uuids)) == len(uuids) >= 2
