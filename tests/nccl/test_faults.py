"""A rank that dies, faults or does something else does not hang the others, and nothing is left behind."""

from __future__ import annotations

import pytest

from tests.left_behind import nothing_left_behind
from tests.nccl.test_cases import run

PROGRAM = """
import os, signal, sys, time
from pathlib import Path
import numpy as np
import cupola
from cupola import CUDAError, LaunchConfig
from cupola.bindings import nccl
sys.path.insert(0, {folder!r})
from cases import Op, Type, at, connect, good

how = sys.argv[2]
world = connect(Path(sys.argv[1]))
rank, size = world.ranks[0], world.size
wrong = 'extern "C" __global__ void bad(double* x, int i) {{ x[i] = 1; }}'
bad = cupola.compile(wrong).get_kernel("bad")
x = rank.put(np.full(1000, 1.0))
cupola.launch(rank.stream, LaunchConfig(grid=1, block=1), bad, x, 0)  # compiled now
rank.stream.sync()

def add(comm=rank.comm, count=1000):
    return nccl.ncclAllReduce(at(x), at(x), count, Type.ncclDouble, Op.ncclSum, comm, rank.handle)[0]

def say(text):
    os.write(1, f"rank {{rank.number}}: {{text}}\\n".encode())

def wait_for(*ranks):  # until they have said all
    folder = Path(sys.argv[1]).parent
    (folder / f"said{{rank.number}}").touch()
    while not all((folder / f"said{{number}}").exists() for number in ranks):
        time.sleep(0.005)

assert add() == 0
rank.stream.sync()
if how == "hangs":
    os.environ["CUPOLA_NCCL_TIMEOUT"] = "2"  # from here on, since the ranks need not have come within that time
if rank.number == 1:
    if how in ("killed", "shrink"):
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "faults":
        cupola.launch(rank.stream, LaunchConfig(grid=1, block=1), bad, x, 1 << 20)
    if how == "differs":
        good(nccl.ncclBroadcast(at(x), at(x), 7, Type.ncclFloat, 1, rank.comm, rank.handle))
    if how == "hangs":
        wait_for(0, 2)
        os._exit(3)
if not (how == "differs" and rank.number == 1):
    add()
if how == "shrink":  # go on without rank 1
    while (state := good(nccl.ncclCommGetAsyncError(rank.comm))) == 0:
        time.sleep(0.005)
    assert state == nccl.ncclResult_t.ncclRemoteError, state
    smaller = good(nccl.ncclCommShrink(rank.comm, [1], 1, None, nccl.NCCL_SHRINK_ABORT))
    good(nccl.ncclCommAbort(rank.comm))
    rank.stream.sync()
    x = rank.put(np.full(1000, 2.0))
    assert add(smaller) == 0
    say(f"{{rank.get(x)[0]:g}} from {{good(nccl.ncclCommCount(smaller))}}")
    good(nccl.ncclCommDestroy(smaller))
    os._exit(0)
try:
    rank.stream.sync()
except CUDAError as error:
    say(" ".join(str(error).split()))
say(good(nccl.ncclCommGetAsyncError(rank.comm)).name)
say(nccl.ncclGetErrorString(add())[1].decode())
if how == "hangs":
    wait_for(0, 2)
os._exit(3)
"""
# What rank 1 does, and what the others say, or one of them.
FAULTS = {
    "killed": ["rank 1 has ended, or has left the communicator", "ncclRemoteError", "remote process exited"],
    "faults": ["rank 1 has ended, or has left the communicator", "ncclRemoteError", "remote process exited"],
    "hangs": ["has waited for rank 1 longer than CUPOLA_NCCL_TIMEOUT", "ncclTimeout", "timeout"],
    # Rank 0 or 2 says so, whichever comes first.
    "differs": [" is in ncclAllReduce of 1000 float64 (sum), but rank 1 is in ncclBroadcast of 7 float32 with root 1"],
    "shrink": ["rank 0: 4 from 2", "rank 2: 4 from 2"],
}


@pytest.mark.cpu_only("NVIDIA's library waits for a rank that is gone")
@pytest.mark.parametrize("how", FAULTS)
def test_the_others_go_on(tmp_path, how):
    from tests.nccl.test_cases import PROGRAM as CASES

    words = FAULTS[how]
    script = tmp_path / "program.py"
    script.write_text(PROGRAM.format(folder=str(CASES.parent)))
    with nothing_left_behind():
        done = run(3, script, tmp_path / "id", how)
        for word in words:
            assert word in done.stdout, done.stdout + done.stderr
        if how in ("killed", "faults", "hangs"):
            assert all(f"rank {rank}: {words[1]}" in done.stdout for rank in (0, 2)), done.stdout + done.stderr
