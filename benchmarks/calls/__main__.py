"""What one call costs: nanoseconds per call from C, cupola, cuda.core and CuPy, in one run on one GPU.

    python -m benchmarks.calls [--json FILE] [--repeats N] [--bindings [--stub]] [--two-threads] [NAME ...]

cuda.core and CuPy take part when they are installed. Each figure is the best of the repeats; asynchronous work is
synchronized between repeats, outside the time. On the CPU device only cupola is measured. With --bindings it is
single functions of the driver and the runtime, from C, cupola.bindings and cuda.bindings; with --stub, functions that
do nothing. With --two-threads there is a second Python thread, asleep: some calls give up the GIL then that keep it
otherwise.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import threading
import timeit
from collections.abc import Callable
from typing import Any

from .python_side import GRAPHS, cupy_layer, object_layer

# Operations a repeat: few enough that no launch queue fills up (a full one makes every launch wait for the GPU).
NUMBER = {
    "launch, 1 pointer": 400,
    "launch, 3 arguments": 400,
    "launch, 16 buffers": 400,
    **dict.fromkeys(GRAPHS, 40),
}
IMPORTS = {"cupola": "cupola", "cuda.core": "cuda.core", "CuPy": "cupy"}


def best_of(
    contenders: dict[str, Callable[[int], float]], settle: Callable[[], None], number: int, repeats: int
) -> dict[str, float]:
    """The best figure of each, taken in turns, so that a drift of the machine meets all of them alike."""
    best = dict.fromkeys(contenders, float("inf"))
    for repeat in range(repeats + 1):
        for name, measure in contenders.items():
            settle()
            figure = measure(number)
            if repeat > 0:  # the first round warms up
                best[name] = min(best[name], figure)
    settle()
    return best


def python_measure(statement: str, names: dict[str, Any]) -> Callable[[int], float]:
    timer = timeit.Timer(statement, globals=names)
    return lambda n: timer.timeit(n) / n * 1e9


def c_measures(names: dict[str, Any]) -> dict[str, Callable[[int], float]]:
    """The C counterparts, on the very handles that the cupola statements use, but with graphs of their own."""
    import ctypes

    from cupola.bindings import driver

    from .c_side import argument_pointers, build, capture, measurer

    library = build()
    pointer, a, n = ctypes.c_size_t(int(names["b"].handle)), ctypes.c_float(1), ctypes.c_size_t(5)
    three = argument_pointers([pointer, a, n])
    sixteen = [ctypes.c_size_t(int(b.handle)) for b in names["bs"]]
    stream, other, event = (int(names[k].handle) for k in ("stream", "other", "event"))
    green_stream = int(names["green_stream"].handle)
    green = int(driver.cuStreamGetGreenCtx(green_stream)[1])
    handles = {k: int(names[k].handle) for k in ("one", "three", "sixteen")}
    names["keep"] = (pointer, a, n, sixteen)
    plain = capture(library, 20, 0, handles["one"], argument_pointers([pointer]))
    graphs = dict.fromkeys(GRAPHS, plain)  # of its own: what an executable holds may cost something at a launch
    graphs["graph launch, 20 kernels of 16 buffers"] = capture(
        library, 20, 0, handles["sixteen"], argument_pointers(sixteen)
    )
    graphs["graph launch, 20 kernels and a callback"] = capture(
        library, 20, 1, handles["one"], argument_pointers([pointer])
    )
    return {
        "launch, 1 pointer": measurer(library, "launch", handles["one"], stream, argument_pointers([pointer])),
        "launch, 3 arguments": measurer(library, "launch", handles["three"], stream, three),
        "launch, 16 buffers": measurer(library, "launch", handles["sixteen"], stream, argument_pointers(sixteen)),
        "launch + sync": measurer(library, "launch_sync", handles["one"], stream, argument_pointers([pointer])),
        "allocate + free, 1 KiB": measurer(library, "alloc_free", 1024, stream),
        "event record": measurer(library, "event_record", event, stream),
        "event create + record + destroy": measurer(library, "event_life", stream),
        "stream wait event": measurer(library, "wait_event", event, other),
        "copy 1 KiB host to device": measurer(library, "copy", names["b"].handle, names["host"].handle, 1024, stream),
        "fill 1 KiB": measurer(library, "fill", names["b"].handle, 1024, stream),
        "stream create + close": measurer(library, "stream_life", 0),
        "stream of a green context, create + close": measurer(library, "green_stream_life", green),
        "tensor map of a view": measurer(library, "tensor_map", names["tile"].ptr),
        "event create + record + destroy, green context": measurer(library, "event_life", green_stream),
        "texture create + close": measurer(library, "texture_life", names["texture_array"].handle),
        **_opengl(library, names, stream),
        **{row: measurer(library, "graph_launch", graph, stream) for row, graph in graphs.items()},
    }


def _opengl(library: Any, names: dict[str, Any], stream: int) -> dict[str, Callable[[int], float]]:
    from .c_side import measurer

    if "shared" not in names:
        return {}
    return {"OpenGL buffer, map + unmap": measurer(library, "map", names["shared"].handle, stream)}


def import_milliseconds(module: str | None, repeats: int) -> float:
    """The best time of a fresh interpreter that imports the module, in ms."""
    command = [sys.executable, "-c", f"import {module}" if module else "pass"]
    return min(timeit.repeat(lambda: subprocess.run(command, check=True), number=1, repeat=repeats)) * 1e3


def measure_bindings(options: argparse.Namespace) -> None:
    """The table of single functions."""
    from cupola.bindings import driver

    from . import bindings_side as side

    library = side.build()
    if options.stub:
        side.use_stub(library)
    on_gpu = not options.stub and driver.inspect().library != "cupola CPU device"
    if not on_gpu and not options.stub:
        raise SystemExit("there is no GPU: measure the cost of the calls alone with --stub")
    numbers = side.resources(on_gpu)
    layers = {"C": side.c_measures(library, numbers, on_gpu)}
    for label, package in (("cupola", "cupola"), ("cuda.bindings", "cuda")):
        if package == "cupola" or on_gpu:
            try:
                names = side.python_names(package, numbers)
            except ImportError as error:
                print(f"without {label}: {error}")
                continue
            layers[label] = {row: python_measure(text, names) for row, text in side.STATEMENTS.items()}

    def settle() -> None:
        driver.cuCtxSynchronize()

    print(f"nanoseconds per call, best of {options.repeats}, {driver.inspect().library}")
    print(f"{'function':48}" + "".join(f"{label:>15}" for label in layers) + f"{'cupola - C':>12}")
    figures: dict[str, dict[str, float]] = {}
    for row in side.STATEMENTS:
        if options.names and not any(name in row for name in options.names):
            continue
        if options.stub and row.startswith("nvrtc"):
            continue  # a library of its own
        contenders = {label: layer[row] for label, layer in layers.items() if row in layer}
        figures[row] = found = best_of(contenders, settle, 400 if "Launch" in row else 1000, options.repeats)
        cells = "".join(f"{found[label]:15.0f}" if label in found else f"{'-':>15}" for label in layers)
        print(f"{row:48}{cells}{found['cupola'] - found['C']:12.0f}", flush=True)
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"device": driver.inspect().library, "ns": figures}, file, indent=1)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.calls", description=__doc__)
    parser.add_argument("--json", help="write the figures to this file, too")
    parser.add_argument("--repeats", type=int, default=30)
    parser.add_argument("names", nargs="*", help="parts of the names of the rows to run")
    parser.add_argument("--bindings", action="store_true", help="single functions instead of the object layer")
    parser.add_argument("--stub", action="store_true", help="with --bindings: functions that do nothing")
    parser.add_argument("--two-threads", action="store_true", help="beside a second Python thread, asleep")
    options = parser.parse_args()
    if options.two_threads:
        threading.Thread(target=threading.Event().wait, daemon=True).start()
    if options.bindings:
        return measure_bindings(options)

    statements, names = object_layer("cupola")
    layers: dict[str, dict[str, Callable[[int], float]]] = {}
    on_gpu = not names["dev"].name.startswith("cupola")
    if on_gpu:
        layers["C"] = c_measures(names)
    layers["cupola"] = {row: python_measure(*s) for row, s in statements.items()}
    if on_gpu:
        for label, make in (("cuda.core", lambda: object_layer("cuda.core")[0]), ("CuPy", cupy_layer)):
            try:
                layers[label] = {row: python_measure(*s) for row, s in make().items()}
            except ImportError as error:
                print(f"without {label}: {error}")

    def settle() -> None:
        names["dev"].sync()

    print(f"nanoseconds per call, best of {options.repeats}, on {names['dev'].name}")
    print(f"{'operation':48}" + "".join(f"{label:>12}" for label in layers) + f"{'cupola - C':>12}")
    figures: dict[str, dict[str, float]] = {}
    for row in statements:
        if options.names and not any(name in row for name in options.names):
            continue
        contenders = {label: layer[row] for label, layer in layers.items() if row in layer}
        figures[row] = best_of(contenders, settle, NUMBER.get(row, 1000), options.repeats)
        line = f"{row:48}" + "".join(f"{figures[row][x]:12.0f}" if x in figures[row] else f"{'-':>12}" for x in layers)
        if "C" in figures[row]:
            line += f"{figures[row]['cupola'] - figures[row]['C']:12.0f}"
        print(line, flush=True)

    bare = import_milliseconds(None, 10)
    imports = {label: import_milliseconds(IMPORTS[label], 10) - bare for label in layers if label in IMPORTS}
    print("import, ms over a bare interpreter: " + ", ".join(f"{label} {ms:.1f}" for label, ms in imports.items()))
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"device": names["dev"].name, "ns": figures, "import_ms": imports}, file, indent=1)


if __name__ == "__main__":
    main()
