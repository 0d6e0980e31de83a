"""The table of the checks (tests/cpu/engine/checks/table) under compute-sanitizer on a GPU.

    compare_checks.py record FILE [PART/PARTS]   on a machine with a GPU: run the table, or a part of it, and write what
                                                 compute-sanitizer found; beside FILE is a log of the differences
    compare_checks.py record FILE missing        the same of those kernels that are not in the recorded file yet
    compare_checks.py join FILE...               add such files to the recorded one
    compare_checks.py                            say where the checks of the CPU device and compute-sanitizer differ

Each kernel has a process of its own: of several in one process, compute-sanitizer tells too little of the later ones.
"""

from __future__ import annotations

import concurrent.futures
import re
import subprocess
import sys
import tempfile
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
SECONDS = 15
PROCESSES = 16
MOST_LINES = 20
MARK = "##"
FINDING = re.compile(r"=+ +(Error|Warning|Race|Potential|Uninitialized|Barrier|Divergent|Invalid|ERROR|.*hazard)")
SUMMARY = re.compile(r"SUMMARY|LEAK")
"""The last line that compute-sanitizer says, of each process."""


def rows() -> list[tuple[str, str, str, int, tuple[int, ...], bool]]:
    """File, name, what is to be found, grid, block, and whether there is a second parameter."""
    found = []
    for path in sorted(TABLE.glob("*.cu")):
        for expected, grid, block, name, number in ROW.findall(path.read_text()):
            found.append((path.name, name, expected, int(grid), tuple(map(int, block.split(","))), bool(number)))
    return found


def run(file: str, cubin: str, name: str) -> None:
    """Run a kernel; compute-sanitizer watches this process."""
    from cupola import Device, LaunchConfig, ObjectCode, launch
    from cupola.bindings import driver

    case = next(row for row in rows() if row[:2] == (file, name))
    dev = Device()
    dev.set_current()
    stream = dev.create_stream()
    kernel = ObjectCode.from_cubin(Path(cubin).read_bytes()).get_kernel(name)
    _, memory = driver.cuMemAlloc(4 * WORDS)
    if file != "init.cu":
        driver.cuMemsetD8(memory, 0, 4 * WORDS)
        driver.cuCtxSynchronize()
    print(MARK, "begins", flush=True)
    launch(stream, LaunchConfig(grid=case[3], block=case[4]), kernel, int(memory), *((5,) if case[5] else ()))
    driver.cuCtxSynchronize()
    print(MARK, "done", flush=True)


def watch(file: str, cubin: str, name: str, check: str) -> tuple[str, str]:
    """Say ``found``, ``clean``, ``endless`` when the kernel does not end, or ``failed`` when it was not launched.

    And the beginning of what compute-sanitizer has written.
    """
    command = ["compute-sanitizer", "--tool", TOOLS[check], "--print-limit", "1000"]
    command += ["--racecheck-report", "all"] if check == "race" else []
    command += [sys.executable, __file__, "run", file, cubin, name]
    lines: list[str] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as child:
        timer = threading.Timer(SECONDS, child.kill)  # of the kernel; all else may be slow on a busy machine
        assert child.stdout is not None
        for line in child.stdout:
            lines.append(line)
            if line.startswith(f"{MARK} begins"):
                timer.start()
            elif line.startswith(f"{MARK} done"):
                timer.cancel()
        timer.cancel()
    begun = next((i for i, line in enumerate(lines) if line.startswith(f"{MARK} begins")), None)
    text = "".join(lines[begun:][:MOST_LINES])
    if begun is None:
        return "failed", text
    if any(FINDING.match(line) and not SUMMARY.search(line) for line in lines[begun:]):
        return "found", text
    return "clean" if any(line.startswith(f"{MARK} done") for line in lines) else "endless", text


def record(path: Path, chosen: Sequence[tuple[str, str, str, int, tuple[int, ...], bool]]) -> None:
    """Run kernels of the table, and write what was found."""
    from cupola import Device, Program, ProgramOptions

    dev = Device()
    dev.set_current()
    said = subprocess.run(["compute-sanitizer", "--version"], capture_output=True, text=True).stdout
    version = re.findall(r"\d+\.\d+[.\d]*", said)[:1]
    lines: list[str] = []
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(PROCESSES) as pool:
        for file in {row[0] for row in chosen}:
            options = ProgramOptions(name=file, arch=f"sm_{dev.arch}", lineinfo=True)
            code = Program((TABLE / file).read_text(), "c++", options).compile("cubin").code
            Path(folder, file).write_bytes(code)
        jobs = {
            pool.submit(watch, row[0], f"{folder}/{row[0]}", row[1], CHECKS.get(row[0], "race")): row for row in chosen
        }
        for job in concurrent.futures.as_completed(jobs):
            file, name, expected = jobs[job][:3]
            result, said = job.result()
            lines.append(f"{file} {name} {result}\n")
            if (result == "found") != (expected != "none"):
                with path.with_suffix(".log").open("a") as log:
                    log.write(f"{MARK} {file} {name} {result}\n{said}\n")
            text = f"# {dev.name}, compute-sanitizer {' '.join(version)}\n" + "".join(sorted(lines))
            path.write_text(text)  # again and again: the time on the machine may run out


def recorded(path: Path) -> dict[tuple[str, str], str]:
    """What compute-sanitizer said of each kernel, by file and name."""
    said = {}
    for line in path.read_text().splitlines()[1:]:
        file, name, result = line.split(" ", 2)
        said[file, name] = result
    return said


def join(paths: Sequence[Path]) -> None:
    """Add parts to what is recorded, of kernels that the table has; the later one counts."""
    head = paths[0].read_text().splitlines()[0]
    said = recorded(RECORDED)
    for path in paths:
        said |= recorded(path)
    known = {row[:2] for row in rows()}
    lines = [f"{file} {name} {said[file, name]}\n" for file, name in sorted(known & set(said))]
    RECORDED.write_text(f"{head}\n" + "".join(lines))


def differences() -> list[tuple[str, str, str, str]]:
    """File, kernel, what the table expects, and what compute-sanitizer said, where that is something else."""
    said = recorded(RECORDED)
    found = []
    for file, name, expected, *_ in rows():
        result = said.get((file, name), "not recorded")
        if (result == "found") != (expected != "none"):
            found.append((file, name, expected, result))
    return found


def main() -> None:
    """Run the command."""
    match sys.argv[1:]:
        case ["run", file, cubin, name]:
            run(file, cubin, name)
        case ["record", path]:
            record(Path(path), rows())
        case ["record", path, "missing"]:
            record(Path(path), [row for row in rows() if row[:2] not in recorded(RECORDED)])
        case ["record", path, part]:
            which, _, of = part.partition("/")
            record(Path(path), rows()[int(which) - 1 :: int(of)])
        case ["join", *paths]:
            join([Path(path) for path in paths])
        case []:
            for difference in differences():
                print(*difference)
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main()
