"""A rank that dies or hangs does not hang the others, and nothing is left behind."""

from __future__ import annotations

import pytest

from tests.left_behind import nothing_left_behind
from tests.mpi.mpiexec import mpiexec

PROGRAM = """
import os, signal, sys, time
import numpy as np
from mpi4py import MPI
import cupola
from cupola import Device, mpi
dev = Device.for_rank()
dev.set_current()
stream = dev.create_stream()
wrong = 'extern "C" __global__ void bad(double* x, int i) { x[i] = 1; }'
bad = cupola.compile(wrong).get_kernel("bad")
comm = mpi.world(stream=stream)
x = dev.full(1000, 1.0, stream=stream)
one = cupola.LaunchConfig(grid=1, block=1)
cupola.launch(stream, one, bad, x, 0)
stream.sync()
comm.Allreduce(MPI.IN_PLACE, x)
if sys.argv[1] == "hangs":
    comm.timeout = 2  # from here on: all have come
if comm.rank == 1:
    if sys.argv[1] == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if sys.argv[1] == "faults":
        cupola.launch(stream, one, bad, x, 1 << 20)
        comm.Allreduce(MPI.IN_PLACE, x)
    signal.pause()
try:
    comm.Allreduce(MPI.IN_PLACE, x)
except TimeoutError as error:
    os.write(2, f"rank {comm.rank}: {error}\\n".encode())
    comm.Abort(7)
"""


@pytest.mark.cpu_only("kernels that fault end a GPU's process")
@pytest.mark.parametrize(
    ("how", "words"), [("hangs", "not done within 2 s"), ("killed", ""), ("faults", "kernel 'bad'")]
)
def test_the_others_end(tmp_path, how, words):
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    with nothing_left_behind():
        done = mpiexec(3, ["-m", "mpi4py", script, how])
        assert done.returncode != 0
        assert words in done.stderr
