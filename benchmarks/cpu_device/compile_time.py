"""What the first launch of each kernel of the comparison costs: from PTX to machine code.

    python -m benchmarks.cpu_device.compile_time [--rounds N] [--json FILE] [NAME ...]

Times are those of the processor, in milliseconds; nothing is from the cache of object code. Each kernel is compiled
over and over in one process; `sum` is the shortest of all rounds, and the stages are those of that round: reading the
PTX, the passes over it, writing LLVM IR, and what LLVM does. `first` is the first round of a process that has compiled
nothing before, importing the compiler included: what a program pays that has no other kernel.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from typing import Any

STAGES = ("read", "passes", "emit", "parse", "optimise", "code", "load")


def ptx_of(benchmark: Any) -> str:
    """The PTX of a kernel, as NVRTC makes it for the device that the CPU device models."""
    from cupola import Device, Program, ProgramOptions

    options = ProgramOptions(std="c++17", arch=f"sm_{Device().arch}")
    code = Program(benchmark.cuda, code_type="c++", options=options).compile("ptx").code
    return (code if isinstance(code, str) else bytes(code).decode()).rstrip("\0")


def compile_once(ptx: str, block: tuple[int, ...]) -> tuple[list[float], str, int]:
    """The seconds of each stage, the LLVM IR, and the bytes of object code."""
    now = time.process_time
    x, y, z = (*block, 1, 1)[:3]
    times = [now()]
    from cupola.cpu.compiler import modules
    from cupola.cpu.compiler.emit import bodies
    from cupola.cpu.compiler.objects import machine

    loaded = modules.load_image(ptx.encode())
    times.append(now())
    facts = loaded.facts(0, (x, y, z))
    times.append(now())
    ir = bodies.emit_body(facts).ir
    lines = ir.count("\n")
    times.append(now())
    module = machine.parsed(ir)
    times.append(now())
    machine.optimise(module, lines)
    times.append(now())
    code = machine.object_code(module, lines)
    times.append(now())
    machine.load_object(code, "k", machine.helpers_of(ir))
    times.append(now())
    return [after - before for before, after in zip(times, times[1:], strict=False)], ir, len(code)


def measure_first(ptx: str, block: tuple[int, ...]) -> float:
    """The seconds of the first round in a new process."""
    script = (
        "import json, sys; from benchmarks.cpu_device.compile_time import compile_once; "
        "ptx, block = json.load(sys.stdin); print(sum(compile_once(ptx, tuple(block))[0]))"
    )
    return min(
        float(
            subprocess.run(
                [sys.executable, "-c", script],
                input=json.dumps([ptx, block]),
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            ).stdout
        )
        for _ in range(3)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10, help="rounds of which the shortest counts")
    parser.add_argument("--json", help="write the figures to this file, too")
    parser.add_argument("names", nargs="*", help="parts of the names of the kernels to compile")
    options = parser.parse_args()
    os.environ["CUPOLA_DEVICE"] = "cpu"
    os.environ["CUPOLA_CPU_CACHE"] = "0"

    from .field_kernels import FIELD_BENCHMARKS
    from .kernels import BENCHMARKS

    print(f"{'kernel':28}{'PTX':>6}{'IR':>7}{'bytes':>7}" + "".join(f"{s:>9}" for s in (*STAGES, "sum", "first")))
    rows = []
    for benchmark in BENCHMARKS + FIELD_BENCHMARKS:
        if options.names and not any(name in benchmark.name for name in options.names):
            continue
        ptx = ptx_of(benchmark)
        rounds = [compile_once(ptx, benchmark.block) for _ in range(options.rounds)]
        best, ir, size = min(rounds, key=lambda r: sum(r[0]))
        first = measure_first(ptx, benchmark.block)
        figures = [1e3 * seconds for seconds in (*best, sum(best), first)]
        print(
            f"{benchmark.name:28}{ptx.count(chr(10)):6}{ir.count(chr(10)):7}{size:7}"
            + "".join(f"{figure:9.1f}" for figure in figures),
            flush=True,
        )
        rows.append({"kernel": benchmark.name, **dict(zip((*STAGES, "sum", "first"), figures, strict=True))})
    if options.json:
        with open(options.json, "w") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
