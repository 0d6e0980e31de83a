"""The table of the checks (tests/cpu/engine/checks/table) under compute-sanitizer on a GPU.

    compare_checks.py record [FILE]   on a machine with a GPU: run the table, write what compute-sanitizer found
    compare_checks.py                 say where the checks of the CPU device and compute-sanitizer differ

A kernel that does not end on a GPU takes its process with it, and the others go on in another one.
"""

from __future__ import annotations

import concurrent.futures
import re
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "tests" / "cpu" / "engine" / "checks" / "table"
RECORDED = TABLE / "compute-sanitizer.txt"
ROW = re.compile(r"^//: (\w+) <<<(\d+), (?:dim3\()?([\d, ]+)\)?>>>\nK (\w+)\(int\* out(, int n)?\)", re.MULTILINE)
TOOLS = {"race": "racecheck", "init": "initcheck", "sync": "synccheck"}
CHECKS = {"init.cu": "init", "sync.cu": "sync"}
WORDS = 4096
SECONDS = 25
MARK = "##"
FINDING = re.compile(r"=+ +(Error|Warning|Race|Potential|Uninitialized|Barrier|Divergent|Invalid|ERROR|.*hazard)")


def rows() -> list[tuple[str, str, str, int, tuple[int, ...], bool]]:
    """File, name, what is to be found, grid, block, and whether there is a second parameter."""
    found = []
    for path in sorted(TABLE.glob("*.cu")):
        for expected, grid, block, name, number in ROW.findall(path.read_text()):
            found.append((path.name, name, expected, int(grid), tuple(map(int, block.split(","))), bool(number)))
    return found


def run(file: str, cubin: str, names: Sequence[str]) -> None:
    """Run kernels, with a line in front of what compute-sanitizer says of each; it watches this process."""
    from cupola import Device, LaunchConfig, ObjectCode, launch
    from cupola.bindings import driver

    cases = {row[1]: row for row in rows() if row[0] == file}
    dev = Device()
    dev.set_current()
    stream = dev.create_stream()
    code = ObjectCode.from_cubin(Path(cubin).read_bytes())
    for name in names:
        case = cases[name]
        print(MARK, name, flush=True)
        kernel = code.get_kernel(name)
        _, memory = driver.cuMemAlloc(4 * WORDS)
        if file != "init.cu":
            driver.cuMemsetD8(memory, 0, 4 * WORDS)
            driver.cuCtxSynchronize()
        launch(stream, LaunchConfig(grid=case[3], block=case[4]), kernel, int(memory), *((5,) if case[5] else ()))
        stream.sync()
        driver.cuCtxSynchronize()
        print(MARK, "done", flush=True)


def watch(file: str, cubin: str, names: Sequence[str], check: str) -> dict[str, str]:
    """For each kernel ``found``, ``clean``, or ``endless`` when it does not end; ``failed`` when its launch does."""
    results: dict[str, str] = {}
    while left := [name for name in names if name not in results]:
        command = ["compute-sanitizer", "--tool", TOOLS[check], "--print-limit", "1000"]
        command += ["--racecheck-report", "all"] if check == "race" else []
        command += [sys.executable, __file__, "run", file, cubin, *left]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as child:
            timer = threading.Timer(SECONDS, child.kill)
            timer.start()
            assert child.stdout is not None
            name, said, done = "", False, True
            for line in child.stdout:
                if line.startswith(MARK):
                    word = line.split()[1]
                    if word == "done":
                        results[name], done = "found" if said else "clean", True
                    else:
                        name, said, done = word, False, False
                elif name and FINDING.match(line):
                    said = True
            timer.cancel()
        if not done:
            results[name] = "found" if said else "endless"
        elif not name:
            results |= dict.fromkeys(left, "failed")
    return results


def record(path: Path) -> None:
    """Run the table, and write what was found."""
    from cupola import Device, Program, ProgramOptions

    dev = Device()
    dev.set_current()
    version = subprocess.run(["compute-sanitizer", "--version"], capture_output=True, text=True).stdout.split()[-2:]
    lines: list[str] = []
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        jobs = {}
        for file in sorted({row[0] for row in rows()}):
            options = ProgramOptions(name=file, arch=f"sm_{dev.arch}", lineinfo=True)
            cubin = f"/tmp/{file}.cubin"
            Path(cubin).write_bytes(Program((TABLE / file).read_text(), "c++", options).compile("cubin").code)
            names = [row[1] for row in rows() if row[0] == file]
            for half in (names[::2], names[1::2]):
                jobs[pool.submit(watch, file, cubin, half, CHECKS.get(file, "race"))] = file
        for job in concurrent.futures.as_completed(jobs):
            lines += [f"{jobs[job]} {name} {result}\n" for name, result in job.result().items()]
            text = f"# {dev.name}, compute-sanitizer {' '.join(version)}\n" + "".join(sorted(lines))
            path.write_text(text)  # again and again: the time on the machine may run out


def differences() -> list[tuple[str, str, str, str]]:
    """File, kernel, what the table expects, and what compute-sanitizer said, where that is something else."""
    said = {}
    for line in RECORDED.read_text().splitlines()[1:]:
        file, name, result = line.split(" ", 2)
        said[file, name] = result
    found = []
    for file, name, expected, *_ in rows():
        result = said.get((file, name), "not recorded")
        if (result == "found") != (expected != "none"):
            found.append((file, name, expected, result))
    return found


def main() -> None:
    """Run the command."""
    match sys.argv[1:]:
        case ["run", file, cubin, *names]:
            run(file, cubin, names)
        case ["record", *path]:
            record(Path(path[0]) if path else RECORDED)
        case []:
            for difference in differences():
                print(*difference)
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main()
