"""What it costs that checks exist, while they are off: instructions of a build that asks for them, and not.

    tools/variant.sh with-checks -Dbuildtype=release -Dstrip=false
    tools/variant.sh without-checks -Dbuildtype=release -Dstrip=false -Dc_args=-DCUPOLA_WITHOUT_CHECKS
    python -m benchmarks.cpu_device.without_checks build/with-checks build/without-checks

Valgrind (callgrind) counts the instructions of each thing in the functions of the driver that carry it out, so neither
Python nor how long threads wait for each other matters: the counts are the same on a busy machine.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

KERNELS = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry nothing(.param .u64 x) { ret; }
.visible .entry meet(.param .u64 x) {
    .reg .b32 %i;
    .reg .pred %p;
    mov.u32 %i, 0;
again:
    bar.sync 0;
    add.u32 %i, %i, 1;
    setp.lt.u32 %p, %i, 100;
    @%p bra again;
    ret;
}
"""
FUNCTIONS = ("op_execute", "cuLaunchKernelEx", "cuEventRecord", "cuMemcpyAsync", "cuGraphLaunch")
"""Whose instructions count, and those of what they call. None of them calls another one."""
TIMES = 100


def measure() -> None:
    """Do each thing many times; the counts of each are written to a file of its own."""
    from cupola import Device, LaunchConfig, ObjectCode, launch

    dev = Device()
    dev.set_current()
    stream = dev.create_stream()
    code = ObjectCode.from_ptx(KERNELS.encode())
    nothing, meet = code.get_kernel("nothing"), code.get_kernel("meet")
    x, y = (dev.allocate(4096, stream=stream) for _ in range(2))
    one, block = LaunchConfig(grid=1, block=32), LaunchConfig(grid=1, block=256)
    builder = dev.create_graph_builder().begin_building()
    for _ in range(10):
        launch(builder, one, nothing, x)
    graph = builder.end_building().complete()
    things = {
        "a launch": lambda: launch(stream, one, nothing, x),
        "a copy of 4 KiB": lambda: x.copy_to(y, stream=stream),
        "an event": lambda: stream.record(),
        "a graph of 10 launches": lambda: graph.launch(stream),
        "100 barriers of 256 threads": lambda: launch(stream, block, meet, x),
    }
    for name, function in things.items():
        for count in (10, TIMES):  # the first ones look things up
            control("--zero")
            for _ in range(count):
                function()
                stream.sync()
        control(f"--dump={name}")


def control(order: str) -> None:
    """Tell valgrind what to do with the counts of this process."""
    subprocess.run(["callgrind_control", order, str(os.getpid())], check=True, stdout=subprocess.DEVNULL)


def count(build: Path) -> dict[str, float]:
    """Instructions of each thing, once, in a build."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out", "--smc-check=all-non-file"]
        command += [f"--toggle-collect={name}" for name in FUNCTIONS]
        command += [str(build / "venv" / "bin" / "python"), "-m", "benchmarks.cpu_device.without_checks", "--child"]
        environment = {**os.environ, "CUPOLA_DEVICE": "cpu", "CUPOLA_CPU_THREADS": "1"}
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(done.stderr)
        counts = {}
        for path in Path(folder).iterdir():
            text = path.read_text(errors="replace")
            name = re.search(r"^desc: Trigger: dump (.+)$", text, re.MULTILINE)
            totals = re.search(r"^totals: (\d+)", text, re.MULTILINE)
            if name is not None and totals is not None:
                counts[name[1]] = int(totals[1]) / TIMES
        return counts


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.cpu_device.without_checks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("builds", nargs="*", type=Path)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        measure()
        return
    if len(options.builds) != 2:
        parser.error("two builds are compared")
    first, second = (count(build) for build in options.builds)
    print(f"{'instructions':32}{'with checks':>14}{'without':>12}{'ratio':>9}")
    for name, number in first.items():
        print(f"{name:32}{number:14.1f}{second[name]:12.1f}{number / second[name]:9.4f}")


if __name__ == "__main__":
    sys.exit(main())
