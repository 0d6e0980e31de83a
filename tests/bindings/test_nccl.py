"""What the library fills in after a call has returned. tests/nccl has what it does."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import cupola
from tests import processes

PROGRAM = """
import ctypes, json, sys
from cupola.bindings import _provider
library = ctypes.CDLL(sys.argv[1])
_provider.provide = lambda name: (sys.argv[1], library._handle, None, None, False)
from cupola.bindings import nccl
said = {}
nccl.ncclGroupStart()
split = nccl.ncclCommSplit(5, 0, 0, None)
more = nccl.ncclCommSplit(5, 0, 0, None)[1]
all = nccl.ncclCommInitAll(2, None)[1]
begun = nccl.ncclCommInitRankConfig(2, nccl.ncclUniqueId(), 0, None)
said["before"] = [split[0].name, int(split[1]), int(more), begun[0].name, int(begun[1])]
nccl.ncclGroupEnd()
said["after"] = [int(one) for one in (split[1], more, *all, begun[1])]
said["passed"] = [nccl.ncclCommCount(one)[1] for one in (split[1], more, *all, begun[1])]
said["failed"] = [getattr(one, "name", one) for one in nccl.ncclCommSplit(5, -1, 0, None)]
try:
    nccl.ncclCommInitAll(0, None)
except ValueError as error:
    said["none"] = str(error)
print(json.dumps(said))
"""


@pytest.mark.skipif(not shutil.which("gcc"), reason="needs gcc")
def test_communicators_that_are_filled_in_later(run_python, tmp_path):
    include = Path(cupola.__file__).parent / "bindings" / "include"
    library = tmp_path / "libnccl.so.2"
    source = Path(__file__).with_name("fake_nccl.c")
    processes.run(["gcc", "-Wall", "-Werror", "-shared", "-fPIC", f"-I{include}", "-o", library, source], check=True)
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.replace("sys.argv[1]", repr(str(library))))
    done = run_python(program)
    assert done.returncode == 0, done.stderr
    made = [0x1000 + i for i in range(5)]
    assert json.loads(done.stdout) == {
        "before": ["ncclSuccess", 0, 0, "ncclInProgress", 0],
        "after": made,
        "passed": made,
        "failed": ["ncclInvalidArgument", None],
        "none": "ncclCommInitAll(), ndev must be at least 1",
    }
