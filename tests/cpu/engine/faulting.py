"""Kernels that go wrong, each on a device of its own, and what is said about it."""

from __future__ import annotations

import json
import subprocess
import sys

Extent = int | tuple[int, int, int]
Launch = tuple[Extent, Extent, int]
"""Grid, block, and bytes of dynamic shared memory."""

_PROGRAM = """
import json, os, sys
import cupola.cpu
source, launches = json.loads(sys.argv[1])
cupola.cpu.use(devices=len(launches))
import numpy as np
from cupola import Device, LaunchConfig, Program, ProgramOptions, launch
from cupola.pathfinder import find_nvidia_header_directory
include = [f for name in ("cudart", "cccl") if (f := find_nvidia_header_directory(name))]
texts = {}
for number, (name, (grid, block, shared)) in enumerate(launches.items()):
    device = Device(number)
    device.set_current()
    options = ProgramOptions(std="c++17", arch=f"sm_{device.arch}", lineinfo=True, include_path=include)
    kernel = Program(source, code_type="c++", options=options).compile("cubin").get_kernel(name)
    stream = device.create_stream()
    data, other = device.allocate(256, stream=stream), device.allocate(256, stream=stream)
    stream.sync()
    grid, block = (tuple(extent) if isinstance(extent, list) else extent for extent in (grid, block))
    launch(stream, LaunchConfig(grid=grid, block=block, shmem_size=shared), kernel, data, other, np.int32(252))
    try:
        stream.sync()
        texts[name] = "no error"
    except Exception as error:
        texts[name] = str(error)
print(json.dumps(texts))
sys.stdout.flush()
os._exit(0)
"""


def explanations(source: str, launches: dict[str, Launch]) -> dict[str, str]:
    """The error of each kernel ``(int *data, int *other, int n)`` of a source, in a process of its own.

    The pointers are to 256 bytes each; ``n`` is 252.
    """
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, json.dumps([source, launches])], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found
