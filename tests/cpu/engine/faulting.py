"""Kernels that go wrong, each on a device of its own, and what is said about it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NoReturn

from cupola import CUDAError, Device, Stream
from tests import processes

_PROGRAM = """
import json, sys
import cupola.cpu
launches, buffers, numbers, arch = json.loads(sys.argv[1])
cupola.cpu.use(devices=len(launches))
import numpy as np
from cupola import Device, LaunchConfig, Program, ProgramOptions, launch
from cupola.pathfinder import find_nvidia_header_directory
from tests.cpu.engine.faulting import print_errors
include = [f for name in ("cudart", "cccl") if (f := find_nvidia_header_directory(name))]
options = ProgramOptions(std="c++17", arch=arch or f"sm_{Device(0).arch}", lineinfo=True, include_path=include)
Device(0).set_current()
code = Program(sys.stdin.read(), code_type="c++", options=options).compile("cubin")

def start(name, device, stream):
    memory = [device.allocate(size, stream=stream) for size in buffers]
    for buffer in memory:
        buffer.fill(0, stream=stream)
    stream.sync()
    shape = {key: tuple(value) if isinstance(value, list) else value for key, value in launches[name].items()}
    launch(stream, LaunchConfig(**shape), code.get_kernel(name), *memory, *map(np.int32, numbers))
    return memory

print_errors(launches, start)
"""


def explanations(
    source: str,
    launches: Mapping[str, Mapping[str, int | tuple[int, ...]]],
    *,
    buffers: Sequence[int] = (256, 256),
    numbers: Sequence[int] = (252,),
    arch: str = "",
) -> dict[str, str]:
    """The error of each kernel of a source, in a process of its own.

    Parameters
    ----------
    source
        CUDA C++.
    launches
        By the name of the kernel, what ``LaunchConfig`` takes; one block of a warp by default.
    buffers
        Bytes of the memory that the kernels' first arguments point to, filled with zeros.
    numbers
        The arguments behind them, ``int``.
    arch
        What to compile for, if not for the device.
    """
    shapes = {name: {"grid": 1, "block": 32, **shape} for name, shape in launches.items()}
    return printed(_PROGRAM, json.dumps([shapes, buffers, numbers, arch]), given=source)


def printed(program: str, *arguments: str, given: str = "") -> dict[str, str]:
    """The errors that a program of Python prints as JSON in its last line; what is given it reads."""
    done = processes.run([sys.executable, "-c", program, *arguments], input=given)
    assert done.returncode == 0, done.stderr
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found


def print_errors(names: Iterable[str], start: Callable[[str, Device, Stream], object]) -> NoReturn:
    """In the process of `printed`: start a kernel for each name, on a device of its own, and tell how each ends.

    What ``start`` returns is kept until the kernel has ended. There must be as many devices as names.
    """
    texts = {}
    for number, name in enumerate(names):
        device = Device(number)
        device.set_current()
        stream = device.create_stream()
        kept = start(name, device, stream)
        try:
            stream.sync()
            texts[name] = "no error"
        except CUDAError as error:
            texts[name] = str(error)
        del kept
    print(json.dumps(texts))
    sys.stdout.flush()
    os._exit(0)  # contexts that failed cannot be left in order
