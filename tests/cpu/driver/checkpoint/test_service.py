"""The thread that answers for a process: who may ask, and those who go away or talk nonsense."""

from __future__ import annotations

import os
import signal
import socket

import pytest

from cupola.bindings import driver
from cupola.checkpoint import Process
from tests.checkpoint_target import Target
from tests.cpu.driver.calls import explanation
from tests.limits import eventually

pytestmark = pytest.mark.cpu_only

NOBODY = 65534


def test_another_user_is_refused() -> None:
    if os.geteuid():
        pytest.skip("only the administrator can become another user")
    calls = ("GetState", "GetRestoreThreadId", "Lock", "Checkpoint", "Restore", "Unlock")
    with Target() as target:
        child = os.fork()
        if child == 0:  # the functions need no cuInit, so a forked child can call them
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            refused = 0
            for name in calls:
                function = getattr(driver, f"cuCheckpointProcess{name}")
                arguments = () if name.startswith("Get") else (None,)
                result = function(target.pid, *arguments)
                refused += "belongs to another user" in explanation(result)
            os._exit(refused)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == len(calls)
        assert Process(target.pid).state == "running"


def connect(pid: int) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.connect(f"\0cupola-checkpoint-{pid}")
    return connection


@pytest.mark.parametrize("message", [b"", b"x", b"x" * 1000, bytes(528)])
def test_nonsense_is_not_answered(message: bytes) -> None:
    with Target() as target:
        with connect(target.pid) as connection:
            connection.send(message)
            connection.settimeout(30)
            assert connection.recv(1000) == b""
        assert Process(target.pid).state == "running"


def test_one_who_says_nothing_does_not_hold_up_others_for_ever() -> None:
    with Target() as target, connect(target.pid):
        assert Process(target.pid).state == "running"


def test_silent_connections_of_another_user_hold_nobody_up() -> None:
    """They are closed at once: otherwise each would be waited for, one after the other."""
    if os.geteuid():
        pytest.skip("only the administrator can become another user")
    with Target() as target:
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            closed = 0
            for _ in range(60):
                with connect(target.pid) as connection:
                    connection.settimeout(60)
                    closed += len(connection.recv(1000)) > 0 and connection.recv(1000) == b""
            os.write(write, bytes([closed]))
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0 and os.read(read, 1) == bytes([60])
        os.close(read)
        os.close(write)
        assert Process(target.pid).state == "running"


def launch_waits(target: Target) -> bool:
    """Whether a launch of the target waits, as it does once a lock is asked for; it is still to be answered then."""
    target.tell("increment(x)\nTrue")
    if target.is_silent():
        return True
    target.answer()
    return False


def test_lock_is_given_up_when_nobody_waits_for_it() -> None:
    with Target("x = zeros(); spin()") as target:
        with Target(f"p = Process({target.pid})") as asking:
            asking.tell("p.lock()")
            assert eventually(lambda: launch_waits(target))
        assert target.answer() is True
        assert Process(target.pid).state == "running"


def test_signal_ends_the_wait_for_a_lock() -> None:
    with Target("x = zeros(); spin()") as target, Target(f"p = Process({target.pid})") as asking:
        # A job in the background is started with SIGINT ignored.
        asking.run("__import__('signal').signal(2, __import__('signal').default_int_handler) and None")
        asking.tell("p.lock()")
        assert eventually(lambda: launch_waits(target))
        os.kill(asking.pid, signal.SIGINT)
        with pytest.raises(AssertionError, match="KeyboardInterrupt"):
            asking.answer()
        assert target.answer() is True
        assert target.run("set_flag(1); stream.sync(); number(x.handle) > 0") is True


CHILD = """
def is_open(file):
    return os.path.exists(f"/proc/self/fd/{file}")

def in_child(number):
    child = os.fork()
    if child == 0:
        os._exit(number())
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
0
"""


def test_program_that_closes_all_files() -> None:
    with Target("x = zeros()") as target:
        target.run("os.closerange(3, 256)\nfiles = [os.open('/dev/null', os.O_RDONLY) for _ in range(64)]\n0")
        for _ in range(3):
            driver.cuCheckpointProcessGetState(target.pid)
        assert target.run("increment(x); stream.sync(); number(x.handle)") == 1
        assert target.run("all(os.fstat(f) for f in files)") is True
        target.run(CHILD)
        assert target.run("in_child(lambda: sum(is_open(f) for f in files))") == 64
