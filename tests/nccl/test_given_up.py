"""Calls that a rank cannot finish, or gives up: others hear of it, and no later call takes what is left for its own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests import processes
from tests.left_behind import nothing_left_behind
from tests.nccl.test_cases import PROGRAM as CASES
from tests.nccl.test_cases import run

pytestmark = pytest.mark.cpu_only("NVIDIA's library waits for ranks that never come")

# ---- several processes ----------------------------------------------------------------------------------------------

BEGIN = """
import os, resource, signal, sys, time
from pathlib import Path
import numpy as np
from cupola import Device
from cupola.bindings import nccl
sys.path.insert(0, {folder!r})
from cases import Op, Type, at, config_without_blocking, good, id_of, rest, share

folder = Path(sys.argv[1])
number, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
dev = Device.for_rank()
dev.set_current()
stream = dev.create_stream()

def say(status, *words):
    os.write(1, f"rank {{number}}: {{status.name}} {{' '.join(map(str, words))}}\\n".encode())

def told(comm=None):
    return nccl.ncclGetLastError(comm)[1].decode()

def make():
    identity = bytes(good(nccl.ncclGetUniqueId()).internal) if number == 0 else b""
    return nccl.ncclCommInitRank(size, id_of(share(folder / "id", number, identity)), number)

def total(comm):
    x = dev.full(4, 1.0, stream=stream)
    good(nccl.ncclAllReduce(at(x), at(x), 4, Type.ncclDouble, Op.ncclSum, comm, int(stream.handle)))
    return x.to_numpy(stream=stream)[0]

def until(condition):
    while not condition():
        time.sleep(0.005)

def wait_for(*ranks):  # until they have said that they are done
    (folder / f"done{{number}}").touch()
    until(lambda: all((folder / f"done{{rank}}").exists() for rank in ranks))

def number_of(rank):  # the number of its process
    until((folder / f"process{{rank}}").exists)
    return int((folder / f"process{{rank}}").read_text())

def begins(call):  # as the others will see
    (folder / f"new{{number}}").write_text(str(os.getpid()))
    (folder / f"new{{number}}").rename(folder / f"process{{number}}")
    return call()

def state(rank):
    try:
        return Path(f"/proc/{{number_of(rank)}}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "gone"

def wait_in_calls(*ranks):  # until their threads that have begun a call are asleep, each time that one looks
    for rank in ranks:
        looks = 0
        while looks < 20:
            looks = looks + 1 if state(rank) in "SD" else 0
            time.sleep(0.005)
"""

# One rank has no file descriptors for the others. It lives on until all have an answer.
NO_FILES = """
if number == {poor}:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    free = [os.dup(0) for _ in range({more})]
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(free) + 1, hard))
    for file in free:
        os.close(file)
status, comm = make()
words = told()
if number == {poor}:
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
say(status, words)
wait_for(0, 1, 2)
"""

# Rank 1 leaves a communicator to which rank 0 only sends, more than there is room for on the way.
LEFT = """
comm = good(make())
if number == 1:
    good(nccl.ncclCommRevoke(comm, nccl.NCCL_REVOKE_DEFAULT))
else:
    x = dev.zeros(4 << 20, np.float64, stream=stream)
    good(nccl.ncclSend(at(x), 4 << 20, Type.ncclDouble, 1, comm, int(stream.handle)))
    while (state := good(nccl.ncclCommGetAsyncError(comm))) == 0:
        time.sleep(0.005)
    say(state, told(comm))
wait_for(0, 1)
os._exit(0)
"""

# Rank 3 is gone, rank 2 goes while the others wait for it in a shrink, which they then call once more.
SHRINK = """
comm = good(make())
if number == 3:
    os.kill(os.getpid(), signal.SIGKILL)
if number == 2:
    wait_in_calls(0, 1)
    os.kill(os.getpid(), signal.SIGKILL)
status, _ = begins(lambda: nccl.ncclCommShrink(comm, [3], 1, None, nccl.NCCL_SHRINK_ABORT))
say(status, told())
smaller = good(nccl.ncclCommShrink(comm, [2, 3], 2, None, nccl.NCCL_SHRINK_ABORT))
say(nccl.ncclResult_t.ncclSuccess, total(smaller))
wait_for(0, 1)
os._exit(0)
"""

# Rank 3 dies while others are in a split, and rank 0 has not begun it.
SPLIT = """
comm = good(make())
if number == 3:
    wait_in_calls(1, 2)
    begins(lambda: os.kill(os.getpid(), signal.SIGKILL))
if number == 0:
    until(lambda: state(3) in ("gone", "Z"))
status, _ = begins(lambda: nccl.ncclCommSplit(comm, 0, number, None))
say(status, told())
say(nccl.ncclCommSplit(comm, 0, number, None)[0], told())
smaller = good(nccl.ncclCommShrink(comm, [3], 1, None, nccl.NCCL_SHRINK_ABORT))
say(nccl.ncclResult_t.ncclSuccess, total(smaller))
wait_for(0, 1, 2)
os._exit(0)
"""

# Rank 1 alone begins to grow, and gives up. Then all split.
GROW = """
first = good(make())
comm = nccl.ncclCommSplit(first, 0, number, config_without_blocking())[1]
rest(comm)
if number == 1:
    grown = nccl.ncclCommGrow(comm, size + 1, None, -1, None)[1]
    good(nccl.ncclCommAbort(grown))
total(first)  # behind that
status, made = nccl.ncclCommSplit(comm, 0, -number, None)
say(rest(comm) if status == nccl.ncclResult_t.ncclInProgress else status, told(comm))
wait_for(0, 1, 2)
os._exit(0)
"""

# Ranks 0 and 1 make different calls.
DIFFER = """
comm = good(make())
if number == 0:
    status, _ = nccl.ncclCommSplit(comm, 0, number, None)
else:
    status, _ = nccl.ncclCommGrow(comm, size + 1, None, -1, None)
say(status, told())
wait_for(0, 1)
os._exit(0)
"""

JOBS = {
    "no files to connect with": (
        3,
        NO_FILES.format(poor=2, more=6),
        ["rank 0: ncclRemoteError rank", "rank 1: ncclRemoteError rank", "Too many open files"],
    ),
    "no files to be connected with": (
        3,
        NO_FILES.format(poor=0, more=10),
        ["rank 0: nccl", "rank 1: ncclRemoteError", "rank 2: ncclRemoteError"],
    ),
    "no files to meet": (3, NO_FILES.format(poor=0, more=8), [f"rank {rank}: ncclRemoteError" for rank in range(3)]),
    "left": (2, LEFT, ["rank 0: ncclRemoteError rank 1 has ended, or has left the communicator"]),
    "shrink": (
        4,
        SHRINK,
        ["rank 0: ncclRemoteError", "rank 1: ncclRemoteError", "rank 0: ncclSuccess 2.0", "rank 1: ncclSuccess 2.0"],
    ),
    "split": (
        4,
        SPLIT,
        [
            *(f"rank {rank}: ncclRemoteError" for rank in range(3)),
            *(f"rank {rank}: ncclInvalidUsage CommSplit: a call that was to make a communicator" for rank in range(3)),
            *(f"rank {rank}: ncclSuccess 3.0" for rank in range(3)),
        ],
    ),
    "grow": (
        3,
        GROW,
        [
            "rank 0: ncclInvalidUsage rank 0 is in ncclCommSplit, but rank 1 in ncclCommGrow",
            "rank 1: ncclInvalidUsage",
            "rank 2: nccl",
        ],
    ),
    "differ": (
        2,
        DIFFER,
        [
            "rank 0: ncclInvalidUsage rank 0 is in ncclCommSplit, but rank 1 in ncclCommGrow",
            "rank 1: ncclInvalidUsage rank 1 is in ncclCommGrow, but rank 0 in ncclCommSplit",
        ],
    ),
}


@pytest.mark.parametrize("alone", ["", "1"], ids=["one host", "sockets"])
@pytest.mark.parametrize("name", JOBS)
def test_the_others_hear_of_it(tmp_path, name, alone):
    ranks, program, words = JOBS[name]
    script = tmp_path / "program.py"
    script.write_text(BEGIN.format(folder=str(CASES.parent)) + program)
    with nothing_left_behind():
        done = run(ranks, script, tmp_path, NCCL_SHM_DISABLE=alone)
        for word in words:
            assert word in done.stdout, done.stdout + done.stderr


# ---- one process ----------------------------------------------------------------------------------------------------

ALONE = """
import sys, threading
sys.path.insert(0, {folder!r})
from cases import Op, Type, at, config_without_blocking, good, rest
from cupola import Device
from cupola.bindings import nccl

devices = list(Device.get_all_devices())
size = len(devices)
comms = good(nccl.ncclCommInitAll(size, None))
Usage, Success = nccl.ncclResult_t.ncclInvalidUsage, nccl.ncclResult_t.ncclSuccess
"""

# The calls of a group reach the other ranks in their order.
IN_ORDER = """
for _ in range(5):
    made = {}
    good(nccl.ncclGroupStart())
    for rank, comm in enumerate(comms):
        for out in range(size):  # each leaves another rank out
            made[rank, out] = good(nccl.ncclCommSplit(comm, -1 if rank == out else out, (-1) ** out * rank, None))
    good(nccl.ncclGroupEnd())
    for (rank, out), comm in made.items():
        members = [other for other in range(size) if other != out][:: (-1) ** out]
        assert bool(int(comm)) == (rank != out)
        if int(comm):
            assert good(nccl.ncclCommCount(comm)) == size - 1
            assert good(nccl.ncclCommUserRank(comm)) == members.index(rank)
            good(nccl.ncclCommDestroy(comm))
"""

# What a group makes when it ends cannot be waited for before.
IN_A_GROUP = """
devices[0].set_current()
for call in nccl.ncclCommDestroy, nccl.ncclCommAbort, lambda comm: nccl.ncclCommRevoke(comm, 0):
    good(nccl.ncclGroupStart())
    alone = good(nccl.ncclCommInitRank(1, good(nccl.ncclGetUniqueId()), 0))
    assert call(alone)[0] == Usage
    assert "call ncclGroupEnd" in nccl.ncclGetLastError(None)[1].decode()
    good(nccl.ncclGroupEnd())
    good(nccl.ncclCommDestroy(alone))
for call in nccl.ncclCommDestroy, nccl.ncclCommAbort:
    alone = good(nccl.ncclCommInitRank(1, good(nccl.ncclGetUniqueId()), 0))
    good(nccl.ncclGroupStart())
    good(nccl.ncclCommFinalize(alone))
    good(call(alone))
    good(nccl.ncclGroupEnd())
"""

# What stops a communicator stops what is being made of it, also where that has hardly begun.
STOPPED = """
for call in ("shrink", "split", "grow") * 4:
    made = {}
    good(nccl.ncclGroupStart())
    for rank, comm in enumerate(comms):
        made[rank] = good(nccl.ncclCommSplit(comm, 0, rank, config_without_blocking()))
    nccl.ncclGroupEnd()
    assert {rest(comm) for comm in [*comms, *made.values()]} == {Success}
    one = made[1]
    if call == "shrink":
        begun = nccl.ncclCommShrink(one, [0], 1, None, nccl.NCCL_SHRINK_DEFAULT)
    elif call == "split":
        begun = nccl.ncclCommSplit(one, 0, 0, None)
    else:
        begun = nccl.ncclCommGrow(one, size + 1, None, -1, None)
    assert begun[0] == nccl.ncclResult_t.ncclInProgress
    good(nccl.ncclCommRevoke(one, nccl.NCCL_REVOKE_DEFAULT))
    if call == "grow":
        assert rest(begun[1]) == Usage
        good(nccl.ncclCommAbort(begun[1]))
    for comm in made.values():
        good(nccl.ncclCommAbort(comm))
"""

# Several threads end a communicator whose operation no other rank takes part in. One of them does it.
BY_THREADS = """
for _ in range(40):
    devices[0].set_current()
    stream = devices[0].create_stream()
    x = devices[0].full(1000, 1.0, stream=stream)
    good(nccl.ncclAllReduce(at(x), at(x), 1000, Type.ncclDouble, Op.ncclSum, comms[0], int(stream.handle)))
    said = []
    def end(call):
        said.append(call(comms[0])[0])
    calls = [nccl.ncclCommDestroy, nccl.ncclCommFinalize] + 4 * [nccl.ncclCommAbort]
    threads = [threading.Thread(target=end, args=(call,)) for call in calls]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    assert Success in said
    assert nccl.ncclCommAbort(comms[0])[0] == nccl.ncclResult_t.ncclInvalidArgument
    for comm in comms[1:]:
        good(nccl.ncclCommAbort(comm))
    comms = good(nccl.ncclCommInitAll(size, None))
"""


@pytest.mark.parametrize(
    "program", [IN_ORDER, IN_A_GROUP, STOPPED, BY_THREADS], ids=["order", "group", "stopped", "threads"]
)
def test_in_one_process(tmp_path, monkeypatch, program):
    monkeypatch.setenv("CUPOLA_CPU_DEVICES", "4")
    monkeypatch.setenv("MALLOC_PERTURB_", "165")  # memory that was freed has other contents
    script = tmp_path / "program.py"
    script.write_text(ALONE.format(folder=str(Path(CASES).parent)) + program)
    done = processes.run([sys.executable, script])
    assert done.returncode == 0, done.stderr


# Whoever connects with the process that made the id can say nothing, or too little, for as long as it likes.
STRANGERS = """
import socket, struct, threading
from cupola import Device
from cupola.bindings import nccl

identity = nccl.ncclGetUniqueId()[1]
raw = bytes(identity.internal)
(family,), (port,) = struct.unpack_from("=H", raw, 24), struct.unpack_from(">H", raw, 26)
host = socket.inet_ntop(family, raw[28:32] if family == socket.AF_INET else raw[32:48])
strangers = []
for number in range(100):
    strangers.append(socket.create_connection((host, port)))
    if number % 3 == 0:
        strangers[-1].send(b"too little")

def join(rank):
    Device(rank).set_current()
    print(nccl.ncclCommInitRank(2, identity, rank)[0].name, flush=True)

threads = [threading.Thread(target=join, args=(rank,)) for rank in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


def test_silent_strangers_hold_nobody_up(monkeypatch):
    """Ten seconds each, one after the other, would be more than the limit."""
    monkeypatch.setenv("CUPOLA_CPU_DEVICES", "2")
    done = processes.run([sys.executable, "-c", STRANGERS])
    assert done.stdout.count("ncclSuccess") == 2, done.stdout + done.stderr
