"""Captures of the stand-in for CuPy that a call spoils: the error belongs to that capture, and later ones work."""

from __future__ import annotations

import sys

from tests import processes

PROGRAM = """
import cupy

CALLS = {
    "synchronize": lambda stream, x: stream.synchronize(),
    "device": lambda stream, x: cupy.cuda.Device().synchronize(),
    "get": lambda stream, x: x.get(),
    "asnumpy": lambda stream, x: cupy.asnumpy(x),
    "item": lambda stream, x: x.sum().item(),
    "truth": lambda stream, x: bool((x > 2).all()),
    "text": lambda stream, x: str(x),
    "done": lambda stream, x: stream.done,
    "runtime": lambda stream, x: cupy.cuda.runtime.deviceSynchronize(),
}


def refused(function):
    try:
        function()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return str(error).split(":")[0].removeprefix("cudaErrorStreamCapture")
    return "nothing"


def record(stream, values):
    with stream:
        stream.begin_capture()
        cupy.add(values, 1, out=values)
        graph = stream.end_capture()
        graph.launch(stream)
    stream.synchronize()


def spoil(call, ends):
    stream, other = cupy.cuda.Stream(non_blocking=True), cupy.cuda.Stream(non_blocking=True)
    values = cupy.arange(5)
    with stream:
        stream.begin_capture()
        made = values + 1
        print(refused(lambda: call(stream, made)), end=" ")
        if ends:
            print(refused(stream.end_capture), stream.is_capturing(), end=" ")
    record(other, values)
    if not ends:
        print(refused(stream.end_capture), stream.is_capturing(), end=" ")
    record(stream, values)
    print(values.get().tolist(), (values + 5).get().tolist())


for name, call in CALLS.items():
    spoil(call, True)
    spoil(call, False)
"""


def test_a_spoiled_capture_spoils_no_other(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    command = [sys.executable, "-m", "cupola", "run", "--device", "cpu", script]
    done = processes.run(command)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == 18 * [
        "Unsupported Invalidated False [2, 3, 4, 5, 6] [7, 8, 9, 10, 11]",
    ]
