"""What MPI there is, found out in a process of its own: a library of MPI may end the process that it does not like."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec

from .installation import Facts

TIMEOUT = 60.0  # seconds

QUESTION = """
import json, mpi4py
mpi4py.rc.initialize = False
from mpi4py import MPI
from cupola import mpi
from cupola.mpi._aware import is_host_memory
library = MPI.Get_library_version().strip("\\0 \\n").splitlines()[0]
print(json.dumps({"version": library, "cuda_aware": mpi.is_cuda_aware(), "host_memory": is_host_memory()}))
"""


def in_child() -> Facts:
    """The library and whether it takes device memory; ``missing`` where mpi4py is not installed, or ``error``."""
    if find_spec("mpi4py") is None:
        return {"missing": "mpi4py is not installed"}
    try:
        done = subprocess.run([sys.executable, "-c", QUESTION], capture_output=True, text=True, timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        return {"error": f"it did not answer within {TIMEOUT:g} s"}
    try:
        found = json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        lines = done.stderr.strip().splitlines()
        return {"error": lines[-1] if lines else f"the process ended with status {done.returncode}"}
    if not isinstance(found, dict):
        return {"error": f"it answered {found!r}"}
    return {**found, "version": " ".join(found["version"].split())}
