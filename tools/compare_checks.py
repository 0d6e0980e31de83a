"""The table of the checks (tests/cpu/engine/checks/table) under compute-sanitizer on a GPU.

    compare_checks.py record [FILE]   on a machine with a GPU: run the table, write what compute-sanitizer found
    compare_checks.py                 say where the checks of the CPU device and compute-sanitizer differ

Each kernel runs in a process of its own, since some of them never end on a GPU.
"""

from __future__ import annotations

import concurrent.futures
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "tests" / "cpu" / "engine" / "checks" / "table"
RECORDED = TABLE / "compute-sanitizer.txt"
ROW = re.compile(r"^//: (\w+) <<<(\d+), (?:dim3\()?([\d, ]+)\)?>>>\nK (\w+)\(int\* out(, int n)?\)", re.MULTILINE)
TOOLS = {"race": "racecheck", "init": "initcheck", "sync": "synccheck"}
CHECKS = {"init.cu": "init", "sync.cu": "sync"}
WORDS = 4096
SECONDS = 15


def rows() -> list[tuple[str, str, str, int, tuple[int, ...], bool]]:
    """File, name, what is to be found, grid, block, and whether there is a second parameter."""
    found = []
    for path in sorted(TABLE.glob("*.cu")):
        for expected, grid, block, name, number in ROW.findall(path.read_text()):
            found.append((path.name, name, expected, int(grid), tuple(map(int, block.split(","))), bool(number)))
    return found


def run(file: str, name: str, cubin: str) -> None:
    """Run one kernel; compute-sanitizer watches this process."""
    from cupola import Device, LaunchConfig, ObjectCode, launch
    from cupola.bindings import driver

    (case,) = [row for row in rows() if row[:2] == (file, name)]
    dev = Device()
    dev.set_current()
    stream = dev.create_stream()
    kernel = ObjectCode.from_cubin(Path(cubin).read_bytes()).get_kernel(name)
    _, memory = driver.cuMemAlloc(4 * WORDS)
    if file != "init.cu":
        driver.cuMemsetD8(memory, 0, 4 * WORDS)
        driver.cuCtxSynchronize()
    launch(stream, LaunchConfig(grid=case[3], block=case[4]), kernel, int(memory), *((5,) if case[5] else ()))
    stream.sync()
    print("done")


def watch(file: str, name: str, check: str, cubin: str) -> str:
    """``found``, ``clean``, or ``endless`` when the kernel does not end."""
    command = ["compute-sanitizer", "--tool", TOOLS[check], "--print-limit", "3"]
    if check == "race":
        command += ["--racecheck-report", "all"]
    command += [sys.executable, __file__, "run", file, name, cubin]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return "endless"
    text = done.stdout + done.stderr
    if "done" not in text and "=========" not in text:
        return "failed " + " ".join(text.split())[-200:]
    summary = re.search(r"(?:ERROR SUMMARY|RACECHECK SUMMARY): (\d+)", text)
    if summary is None:
        return "failed " + " ".join(text.split())[-200:]
    return "found" if int(summary[1]) else "clean"


def record(path: Path) -> None:
    """Run the table, and write what was found."""
    from cupola import Device, Program, ProgramOptions

    dev = Device()
    dev.set_current()
    cubins = {}
    for file in sorted({row[0] for row in rows()}):
        options = ProgramOptions(name=file, arch=f"sm_{dev.arch}", lineinfo=True)
        cubins[file] = f"/tmp/{file}.cubin"
        Path(cubins[file]).write_bytes(Program((TABLE / file).read_text(), "c++", options).compile("cubin").code)
    version = subprocess.run(["compute-sanitizer", "--version"], capture_output=True, text=True).stdout.split()[-1:]
    lines: list[str] = []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        jobs = {pool.submit(watch, row[0], row[1], CHECKS.get(row[0], "race"), cubins[row[0]]): row for row in rows()}
        for job in concurrent.futures.as_completed(jobs):
            file, name, *_ = jobs[job]
            lines.append(f"{file} {name} {job.result()}\n")
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
        case ["run", file, name, cubin]:
            run(file, name, cubin)
        case ["record", *path]:
            record(Path(path[0]) if path else RECORDED)
        case []:
            for difference in differences():
                print(*difference)
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main()
